"""Assignment of each vertex to the part that it is local to, for scheme `proxy` (LSTC, section 4.1).

Any disjoint parts give exact counts; they differ in the number of proxies. Parts come from a method of the registry, or
from the caller's file, in any format that edges may have: each row is a vertex's id and its part, 0 to n - 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from dasktc.backends import ON_DEVICE
from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.options import Ids, Options
from dasktc.pipeline.planes.base import Plane
from dasktc.pipeline.planes.graph import Oriented
from dasktc.pipeline.planes.vectors import Sharded, vectors_on_backend, vectors_on_host
from dasktc.pipeline.stages.assign import METIS, hashed, metis, of_ids, ranges_of, read_shards, read_whole, reading_of
from dasktc.planning.assignments import Membership
from dasktc.planning.grid import Shape
from dasktc.registry import ASSIGNMENTS
from dasktc.wording import advice, option, plural

__all__ = ["assigned", "own_parts"]


def assigned(plane: Plane, graph: Oriented, options: Options, parts: int, shape: Shape) -> Sharded:
    """Assign each vertex to a part, by the method that the options name.

    Parameters
    ----------
    plane : Plane
    graph : Oriented
    options : Options
        `assign`: a method of the registry `ASSIGNMENTS`, or the file that `shape.own` was read from; `seed`.
    parts : int
    shape : Shape

    Returns
    -------
    Sharded of int64, shape (V,)
        The part of each vertex.

    Raises
    ------
    InputError
        METIS is not installed, or the method needs more memory than there is.
    """
    if shape.own is not None:
        return cast("Sharded", shape.own)
    method = ASSIGNMENTS[str(options.assign)].by
    if method is Membership.METIS:
        return _by_metis(plane, graph, parts, shape)
    function, number = (hashed, options.seed) if method is Membership.HASH else (ranges_of, shape.vertices)
    starts, executor = graph.order.starts, plane.executor
    shards = pairwise(starts)
    return Sharded(
        starts, [executor.submit("plan", of_ids, function, *shard, plane.backend, number, parts) for shard in shards]
    )


def _by_metis(plane: Plane, graph: Oriented, parts: int, shape: Shape) -> Sharded:
    if len(graph.order.starts) > 2:
        raise InputError(
            f"{METIS} keeps the whole graph in one process, and not even vectors of its "
            f"{plural(shape.vertices, 'vertex')} fit one; take {advice(assign='random')}, or give a larger "
            f"{advice('memory')}"
        )
    call = list(graph.partitions), shape, parts, plane.stage_memory, plane.backend
    return Sharded(graph.order.starts, [plane.executor.submit("plan", metis, *call)])


# the caller's file


def own_parts(
    plane: Plane, path: str, ids: Ids, vertices: Any, graph: Oriented, parts: int | None
) -> tuple[Sharded, int]:
    """Read the part of each vertex from a file, on a worker.

    Parameters
    ----------
    plane : Plane
    path : str
        A file of two columns: the caller's id of a vertex, and its part.
    ids : {"int", "text"}
        Type of the graph's ids.
    vertices : handle of VertexMap, or Sharded
        The caller's ids by dense id.
    graph : Oriented
    parts : int or None
        n, where it is given; else it is one more than the largest part in the file.

    Returns
    -------
    shard_parts : Sharded of int64, shape (V,)
    parts : int

    Raises
    ------
    InputError
        The file cannot be read, a part is not a number from 0 to n - 1, a vertex has no part or two different ones, or
        vectors of all vertices do not fit one process. Vectors that exceed a device are on the host.
    """
    starts, executor = graph.order.starts, plane.executor
    if len(starts) > 2 and plane.backend.name not in ON_DEVICE:
        raise InputError(
            f"{option('assign', path)} gives all vertices their parts in one process, and vectors of "
            f"{graph.order.size:,} do not fit one; take {advice(assign='random')} or contiguous, or give a larger "
            f"{advice('memory')}"
        )
    file = open_source(path, reading_of(path, ids)).parts
    if len(starts) > 2:
        host, (order, names) = vectors_on_host(executor, "plan", graph.order, vertices)
        result = host.submit("plan", read_shards, path, file, ids, list(names.parts), list(order.parts), parts)
    else:
        host = executor
        result = host.submit("plan", read_whole, path, file, ids, vertices, graph.order.whole, parts)
    *shard_parts, number = (handle for (handle,) in host.transpose("plan", [result], len(starts)))
    (vertex_parts,) = vectors_on_backend(executor, "plan", Sharded(starts, shard_parts))
    return vertex_parts, executor.gather([number])[0]
