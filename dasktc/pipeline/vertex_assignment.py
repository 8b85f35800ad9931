"""Assignment of each vertex to the part that it is local to, for scheme `proxy` (LSTC, section 4.1).

Any disjoint parts give exact counts; they differ in the number of proxies. Parts come from a method of the registry, or
from the caller's file, in any format that edges may have: each row is a vertex's id and its part, 0 to n - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.io.files import open_source
from dasktc.options import Ids, Options
from dasktc.pipeline.orient import Oriented
from dasktc.pipeline.sharded.vectors import Sharded, there
from dasktc.pipeline.stages.assign import METIS, hashed, metis, of_ids, ranges_of, read_shards, read_whole, reading_of
from dasktc.planning.grid import Shape
from dasktc.registry import ASSIGNMENTS
from dasktc.wording import advice, option, plural

__all__ = ["OWN", "Assignment", "assigned", "own_parts"]

Array = Any


def assigned(executor: Executor, graph: Oriented, options: Options, parts: int, shape: Shape) -> Sharded:
    """Assign each vertex to a part, by the method that the options name.

    Parameters
    ----------
    executor : Executor
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
    method: Assignment = ASSIGNMENTS[str(options.assign)]
    return method.assign(executor, graph, parts, options.seed, shape)


def _by_id(executor: Executor, graph: Oriented, parts: int, seed: int, shape: Shape) -> Sharded:
    return _each_shard(executor, graph, ranges_of, shape.vertices, parts)


def _by_hash(executor: Executor, graph: Oriented, parts: int, seed: int, shape: Shape) -> Sharded:
    return _each_shard(executor, graph, hashed, seed, parts)


def _each_shard(executor: Executor, graph: Oriented, function: Callable[..., Array], *given: Any) -> Sharded:
    """Call `function(ids, *given)` with the ids of each shard of the vertices."""
    starts = graph.order.starts
    return Sharded(
        starts,
        [
            executor.submit("plan", of_ids, function, first, end, executor.backend, *given)
            for first, end in pairwise(starts)
        ],
    )


def _by_metis(executor: Executor, graph: Oriented, parts: int, seed: int, shape: Shape) -> Sharded:
    if len(graph.order.starts) > 2:
        raise InputError(
            f"{METIS} keeps the whole graph in one process, and not even vectors of its "
            f"{plural(shape.vertices, 'vertex')} fit one; take {advice(assign='random')}, or give a larger "
            f"{advice('memory')}"
        )
    given = (list(graph.partitions), shape, parts, executor.memory_per_call, executor.backend)
    return Sharded(graph.order.starts, [executor.submit("plan", metis, *given)])


@dataclass(frozen=True)
class Assignment:
    """A method that assigns vertices to parts: its name, a line of help, and the function that does it."""

    name: str
    help: str
    assign: Callable[[Executor, Oriented, int, int, Shape], Sharded]


OWN = (
    Assignment("random", "by a hash of the id and the seed", _by_hash),
    Assignment("contiguous", "ranges of ids", _by_id),
    Assignment("metis", "METIS's parts, with few edges between them (needs pymetis)", _by_metis),
)
"""In the order of the help text."""


# the caller's file


def own_parts(
    executor: Executor, path: str, ids: Ids, vertices: Any, graph: Oriented, parts: int | None
) -> tuple[Sharded, int]:
    """Read the part of each vertex from a file, on a worker.

    Parameters
    ----------
    executor : Executor
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
    own : Sharded of int64, shape (V,)
    parts : int

    Raises
    ------
    InputError
        The file cannot be read, a part is not a number from 0 to n - 1, a vertex has no part or two different ones, or
        vectors of all vertices do not fit one process. Vectors that exceed a device are on the host.
    """
    starts = graph.order.starts
    if len(starts) > 2 and not executor.backend.on_device:
        raise InputError(
            f"{option('assign', path)} gives all vertices their parts in one process, and vectors of "
            f"{graph.order.size:,} do not fit one; take {advice(assign='random')} or contiguous, or give a larger "
            f"{advice('memory')}"
        )
    held = open_source(path, reading_of(path, ids)).parts
    if len(starts) > 2:
        host, (order, names) = there(executor, "plan", graph.order, vertices)
        read = host.submit("plan", read_shards, path, held, ids, list(names.parts), list(order.parts), parts)
    else:
        host = executor
        read = host.submit("plan", read_whole, path, held, ids, vertices, graph.order.whole, parts)
    *own, number = (of for (of,) in host.transpose("plan", [read], len(starts)))
    return Sharded(starts, executor.map("plan", executor.backend.array.asarray, own)), executor.gather([number])[0]
