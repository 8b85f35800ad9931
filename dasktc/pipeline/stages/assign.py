"""Assignment of vertices to parts: arithmetic of the methods, and reading of the caller's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backends import Backend, lazy_backend
from dasktc.backends.csr import on_host
from dasktc.backends.vertex_maps import VertexMap
from dasktc.errors import InputError, shown
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids, format_size, refuse_beyond
from dasktc.pipeline.stages.edge_keys import unpack
from dasktc.planning.grid import Shape
from dasktc.wording import advice, option, plural

__all__ = [
    "METIS", "METIS_BYTES", "MOST_ENDS", "MOST_PARTS", "hashed", "metis", "of_ids", "ranges_of", "read_shards",
    "read_whole", "reading_of",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
METIS_BYTES = 120
"""About the bytes per edge that METIS and its input take."""
MOST_PARTS = 64
"""Most parts that a file may name, which is the limit of the scheme."""
MOST_ENDS = (1 << 31) - 1
"""Most ends of edges that METIS takes, as pymetis is built."""
METIS = option("assign", "metis")


def of_ids(function: Callable[..., Array], first: int, end: int, backend: Backend, *given: Any) -> Array:
    """Call `function(ids, *given)` with the ids from `first` to `end`."""
    return function(backend.array.arange(first, end, dtype="int64"), *given)


def ranges_of(ids: Array, vertices: int, parts: int) -> Array:
    """Parts that are ranges of ids."""
    return ids * parts // max(1, vertices)


def hashed(ids: Array, seed: int, parts: int) -> Array:
    """Parts by a hash of the id and the seed."""
    number = ids.astype("uint64").dtype.type
    words = (ids + seed % 2**31 * 0x2545F491).astype("uint64") * number(0x9E3779B97F4A7C15)
    words ^= words >> number(32)
    words *= number(0xD6E8FEB86659FD93)
    return ((words >> number(33)) % number(parts)).astype("int64")


def reading_of(path: str, ids: Ids) -> ReadOptions:
    """Read options of the file: tables may have a header; in other files all lines are rows of plain text."""
    if path.lower().endswith((".parquet", ".pq", ".npy", ".npz", ".csv")):
        return ReadOptions(ids=ids)
    return ReadOptions("text", ids=ids, skip=0)


def read_whole(
    path: str, held: tuple[Part, ...], ids: Ids, vertices: VertexMap, order: Array, parts: int | None
) -> list[Any]:
    """The part of each vertex, indexed by new id, on the host, and n."""
    dense, number = _read(path, held, ids, vertices.external(np.arange(len(order))), parts)
    return [dense.take(on_host(order)), number]


def read_shards(
    path: str, held: tuple[Part, ...], ids: Ids, names: list[Any], order: list[Array], parts: int | None
) -> list[Any]:
    """The parts of each shard's vertices, indexed by new id, and n."""
    dense, number = _read(path, held, ids, np.concatenate([np.asarray(shard_names) for shard_names in names]), parts)
    return [*map(dense.take, order), number]


def _read(path: str, file_parts: tuple[Part, ...], ids: Ids, external_ids: Any, parts: int | None) -> tuple[Array, int]:
    """The part of each vertex, indexed by dense id, and n."""
    import pandas as pd

    frames, last = [part.read(CPU) for part in file_parts], (parts or MOST_PARTS) - 1
    rows = pd.concat([frame[["src", "dst"]] for frame in frames]) if frames else pd.DataFrame({"src": [], "dst": []})
    numbers = pd.to_numeric(rows["dst"], errors="coerce")
    if ids == "text" and path.lower().endswith(".csv") and numbers[:1].isna().any():  # a header, as all is text
        rows, numbers = rows[1:], numbers[1:]
    mask = ~numbers.between(0, last) | (numbers % 1 != 0)
    if mask.any():
        raise InputError(
            f"{option('assign', path)} puts vertex {_first(rows['src'][mask])} into part "
            f"{_first(rows['dst'][mask])}, which is no number from 0 to {last}: the second column is the part; "
            f"number them from 0, or give as many with {advice('parts')}"
        )
    table = pd.Series(numbers.to_numpy("int64"), index=pd.Index(rows["src"])).groupby(level=0)
    minima, maxima = table.min(), table.max()
    if (conflict := minima != maxima).any():
        raise InputError(
            f"{option('assign', path)} puts vertex {_first(conflict.index[conflict])} into parts "
            f"{minima[conflict].iloc[0]} and {maxima[conflict].iloc[0]}: parts are disjoint; keep one row"
        )
    names = pd.Index(np.asarray(external_ids, dtype=object if ids == "text" else "int64"))
    place = minima.index.get_indexer(names) if len(minima) else np.full(len(names), -1)
    if (gaps := place < 0).any():
        raise InputError(
            f"{option('assign', path)} has no part for {int(gaps.sum()):,} of {plural(len(names), 'vertex')}, e.g. "
            f"{_first(names[gaps])}: each has to be local to one; add them"
        )
    dense = minima.to_numpy("int64").take(place) if len(names) else np.zeros(0, "int64")
    part_count = 1 + int(dense.max(initial=0))
    if part_count > len(names):  # a plan has at most as many parts as vertices: renumber the parts in use
        dense = np.unique(dense, return_inverse=True)[1]
    return dense, parts or part_count


def _first(values: Any) -> str:
    return shown(values.tolist()[0])


def metis(partitions: list[Array], shape: Shape, parts: int, memory_per_call: int | None, backend: Backend) -> Array:
    """Assign parts by METIS in one task, which holds the whole graph, both directions, in host memory."""
    try:
        import pymetis
    except ImportError:
        raise InputError(
            f"{METIS} needs the pymetis package, which is not installed: METIS is an optional extra; "
            f"run pip install 'dasktc[metis]', or take {advice(assign='random')}"
        ) from None
    edges = sum(len(part) for part in partitions)
    nbytes = METIS_BYTES * edges
    cause = "it has the whole graph in memory, both directions"
    remedy = f"{cause}; raise {advice('memory')}, or take {advice(assign='random')}"
    refuse_beyond(memory_per_call, nbytes, f"{METIS} takes {format_size(nbytes)}", remedy, "that one stage may take")
    if 2 * edges > MOST_ENDS:
        raise InputError(
            f"the graph has {plural(edges, 'edge')}, METIS numbers {MOST_ENDS // 2:,} at most: its package counts "
            f"in 32 bits; take {advice(assign='random')}"
        )
    keys: Any = np.concatenate([on_host(part) for part in partitions])
    ends = np.stack(unpack(keys, shape.shift))
    sources, targets = ends.reshape(-1), ends[::-1].reshape(-1)
    positions = np.argsort(sources, kind="stable")
    offsets = np.searchsorted(sources[positions], np.arange(shape.vertices + 1))
    if parts == 1 or not edges:
        return backend.array.zeros(shape.vertices, dtype="int64")
    _, membership = pymetis.part_graph(
        parts, pymetis.CSRAdjacency(offsets.astype("int32"), targets[positions].astype("int32"))
    )
    return backend.array.asarray(membership, dtype="int64")
