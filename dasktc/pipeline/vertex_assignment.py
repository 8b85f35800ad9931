"""Assignment of each vertex to the part that it is local to, for scheme `proxy` (LSTC, section 4.1).

Any disjoint parts give exact counts; they differ in the number of proxies. Parts come from a method of the registry, or
from the caller's file, in any format that edges may have: each row is a vertex's id and its part, 0 to n - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.errors import InputError, shown
from dasktc.executors.base import CPU, Executor
from dasktc.io.files import open_source
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids, Options, format_size
from dasktc.pipeline.edge_keys import unpack
from dasktc.pipeline.id_maps import VertexMap
from dasktc.pipeline.orient import Oriented
from dasktc.pipeline.sharded.vectors import Sharded, there
from dasktc.planning.grid import Shape
from dasktc.registry import ASSIGNMENTS
from dasktc.wording import advice, option, plural

__all__ = ["OWN", "Assignment", "assigned", "own_parts"]

Array = Any
METIS_BYTES = 120
"""About the bytes per edge that METIS and its input take."""
MOST_PARTS = 64
"""Most parts that a file may name, which is the limit of the scheme."""
MOST_ENDS = (1 << 31) - 1
"""Most ends of edges that METIS takes, as pymetis is built."""


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
    return _each_shard(executor, graph, _ranges, shape.vertices, parts)


def _by_hash(executor: Executor, graph: Oriented, parts: int, seed: int, shape: Shape) -> Sharded:
    return _each_shard(executor, graph, _hashed, seed, parts)


def _each_shard(executor: Executor, graph: Oriented, function: Callable[..., Array], *given: Any) -> Sharded:
    """Call `function(ids, *given)` with the ids of each shard of the vertices."""
    starts = graph.order.starts
    return Sharded(
        starts,
        [
            executor.submit("plan", _of_ids, function, first, end, executor.backend, *given)
            for first, end in pairwise(starts)
        ],
    )


def _of_ids(function: Callable[..., Array], first: int, end: int, backend: Backend, *given: Any) -> Array:
    return function(backend.array.arange(first, end, dtype="int64"), *given)


def _by_metis(executor: Executor, graph: Oriented, parts: int, seed: int, shape: Shape) -> Sharded:
    if len(graph.order.starts) > 2:
        raise InputError(
            f"{_METIS} keeps the whole graph in one process, and not even vectors of its "
            f"{plural(shape.vertices, 'vertex')} fit one; take {advice(assign='random')}, or give a larger "
            f"{advice('memory')}"
        )
    given = (list(graph.partitions), shape, parts, executor.memory_per_call, executor.backend)
    return Sharded(graph.order.starts, [executor.submit("plan", _metis, *given)])


@dataclass(frozen=True)
class Assignment:
    """A method that assigns vertices to parts: its name, a line of help, and the function that does it."""

    name: str
    help: str
    assign: Callable[[Executor, Oriented, int, int, Shape], Sharded]


_METIS = option("assign", "metis")
OWN = (
    Assignment("random", "by a hash of the id and the seed", _by_hash),
    Assignment("contiguous", "ranges of ids", _by_id),
    Assignment("metis", "METIS's parts, with few edges between them (needs pymetis)", _by_metis),
)
"""In the order of the help text."""


def _ranges(ids: Array, vertices: int, parts: int) -> Array:
    return ids * parts // max(1, vertices)


def _hashed(ids: Array, seed: int, parts: int) -> Array:
    number = ids.astype("uint64").dtype.type
    mixed = (ids + seed % 2**31 * 0x2545F491).astype("uint64") * number(0x9E3779B97F4A7C15)
    mixed ^= mixed >> number(32)
    mixed *= number(0xD6E8FEB86659FD93)
    return ((mixed >> number(33)) % number(parts)).astype("int64")


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
    held = open_source(path, _reading(path, ids)).parts
    if len(starts) > 2:
        host, (order, names) = there(executor, "plan", graph.order, vertices)
        read = host.submit("plan", _read_shards, path, held, ids, list(names.parts), list(order.parts), parts)
    else:
        host = executor
        read = host.submit("plan", _read_whole, path, held, ids, vertices, graph.order.whole, parts)
    *own, number = (of for (of,) in host.transpose("plan", [read], len(starts)))
    return Sharded(starts, executor.map("plan", executor.backend.array.asarray, own)), executor.gather([number])[0]


def _reading(path: str, ids: Ids) -> ReadOptions:
    """Read options of the file: tables may have a header; in other files all lines are rows of plain text."""
    if path.lower().endswith((".parquet", ".pq", ".npy", ".npz", ".csv")):
        return ReadOptions(ids=ids)
    return ReadOptions("text", ids=ids, skip=0)


def _read_whole(
    path: str, held: tuple[Part, ...], ids: Ids, vertices: VertexMap, order: Array, parts: int | None
) -> list[Any]:
    """The part of each vertex, indexed by new id, on the host, and n."""
    dense, number = _read(path, held, ids, vertices.external(np.arange(len(order))), parts)
    return [dense.take(on_host(order)), number]


def _read_shards(
    path: str, held: tuple[Part, ...], ids: Ids, names: list[Any], order: list[Array], parts: int | None
) -> list[Any]:
    """The parts of each shard's vertices, indexed by new id, and n."""
    dense, number = _read(path, held, ids, np.concatenate([np.asarray(of) for of in names]), parts)
    return [*map(dense.take, order), number]


def _read(path: str, held: tuple[Part, ...], ids: Ids, external: Any, parts: int | None) -> tuple[Array, int]:
    """The part of each vertex, indexed by dense id, and n."""
    import pandas as pd

    frames, last = [part.read(CPU) for part in held], (parts or MOST_PARTS) - 1
    given = pd.concat([frame[["src", "dst"]] for frame in frames]) if frames else pd.DataFrame({"src": [], "dst": []})
    numbers = pd.to_numeric(given["dst"], errors="coerce")
    if ids == "text" and path.lower().endswith(".csv") and numbers[:1].isna().any():  # a header, as all is text
        given, numbers = given[1:], numbers[1:]
    wrong = ~numbers.between(0, last) | (numbers % 1 != 0)
    if wrong.any():
        raise InputError(
            f"{option('assign', path)} puts vertex {_first(given['src'][wrong])} into part "
            f"{_first(given['dst'][wrong])}, which is no number from 0 to {last}: the second column is the part; "
            f"number them from 0, or give as many with {advice('parts')}"
        )
    table = pd.Series(numbers.to_numpy("int64"), index=pd.Index(given["src"])).groupby(level=0)
    least, most = table.min(), table.max()
    if (twice := least != most).any():
        raise InputError(
            f"{option('assign', path)} puts vertex {_first(twice.index[twice])} into parts {least[twice].iloc[0]} and "
            f"{most[twice].iloc[0]}: parts are disjoint; keep one row"
        )
    names = pd.Index(np.asarray(external, dtype=object if ids == "text" else "int64"))
    place = least.index.get_indexer(names) if len(least) else np.full(len(names), -1)
    if (missing := place < 0).any():
        raise InputError(
            f"{option('assign', path)} has no part for {int(missing.sum()):,} of {plural(len(names), 'vertex')}, e.g. "
            f"{_first(names[missing])}: each has to be local to one; add them"
        )
    dense = least.to_numpy("int64").take(place) if len(names) else np.zeros(0, "int64")
    in_use = 1 + int(dense.max(initial=0))
    if in_use > len(names):  # a plan has at most as many parts as vertices: renumber the parts in use
        dense = np.unique(dense, return_inverse=True)[1]
    return dense, parts or in_use


def _first(values: Any) -> str:
    return shown(values.tolist()[0])


def _metis(partitions: list[Array], shape: Shape, parts: int, memory_per_call: int | None, backend: Backend) -> Array:
    """Assign parts by METIS in one task, which holds the whole graph, both directions, in host memory."""
    try:
        import pymetis
    except ImportError:
        raise InputError(
            f"{_METIS} needs the pymetis package, which is not installed: METIS is an optional extra; "
            f"run pip install 'dasktc[metis]', or take {advice(assign='random')}"
        ) from None
    need = METIS_BYTES * sum(len(part) for part in partitions)
    if memory_per_call is not None and need > memory_per_call:
        raise InputError(
            f"{_METIS} takes {format_size(need)}, more than the {format_size(memory_per_call)} that one stage may "
            f"take: it has the whole graph in memory, both directions; raise {advice('memory')}, or take "
            f"{advice(assign='random')}"
        )
    keys: Any = np.concatenate([on_host(part) for part in partitions])
    if 2 * len(keys) > MOST_ENDS:
        raise InputError(
            f"the graph has {plural(len(keys), 'edge')}, METIS numbers {MOST_ENDS // 2:,} at most: its package counts "
            f"in 32 bits; take {advice(assign='random')}"
        )
    ends = np.stack(unpack(keys, shape.shift))
    sources, targets = ends.reshape(-1), ends[::-1].reshape(-1)
    place = np.argsort(sources, kind="stable")
    offsets = np.searchsorted(sources[place], np.arange(shape.vertices + 1))
    if parts == 1 or not len(keys):
        return backend.array.zeros(shape.vertices, dtype="int64")
    _, membership = pymetis.part_graph(
        parts, pymetis.CSRAdjacency(offsets.astype("int32"), targets[place].astype("int32"))
    )
    return backend.array.asarray(membership, dtype="int64")
