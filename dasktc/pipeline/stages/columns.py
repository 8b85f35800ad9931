"""Columns of vertices and of edges that surveys read: numbers as they are, text as codes of its categories.

Each row of a source is a candidate for the block that holds its edge: a key, row id << shift | column id, and a value.
A block sorts its candidates, finds its own edges among them, and combines the values of each as the caller said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dasktc.backends import lazy_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.vertex_maps import VertexMap
from dasktc.errors import CountError, InputError, shown
from dasktc.pipeline.stages.edge_keys import pack
from dasktc.planning.grid import Layout
from dasktc.wording import plural

__all__ = [
    "REPEATS", "Column", "Columns", "Facts", "Repeats", "candidates", "categories_of", "codes_of", "distinct_texts",
    "facts_of", "placed", "read_values", "typed", "values_of_block",
]  # fmt: skip

Array = Any
Frame = Any
CPU = lazy_backend("cpu")
Repeats = Literal["first", "min", "max", "sum"]
REPEATS: tuple[Repeats, ...] = get_args(Repeats)
"""Values of an edge that several rows give: of the first row, the least, the greatest, or their sum."""
EXACT = 1 << 53
"""Integers up to here are exact in float64."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column kept beside the blocks of a graph.

    Attributes
    ----------
    dtype : str
        Of the arrays: int64, float64, or int32 for codes.
    categories : tuple of str or None
        What the codes 0, 1, ... stand for, ascending; None: the values are numbers.
    values : handle of array, or dict of (i, j) to handle of array
        Of vertices: one array by the ids of the blocks. Of edges: one for each block, in the order of its columns.
    """

    dtype: str
    categories: tuple[str, ...] | None
    values: Any = field(repr=False)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns kept of a graph, by name; a name is of vertices or of edges."""

    vertices: dict[str, Column] = field(default_factory=dict)
    edges: dict[str, Column] = field(default_factory=dict)


class Facts(NamedTuple):
    """Facts of the values in a part of a source.

    Attributes
    ----------
    kind : {"int", "float", "text", ""}
        Empty where there are no values.
    largest : int
        The largest absolute value of integers.
    """

    kind: str
    largest: int


# types


def codes_of(texts: Array, categories: tuple[str, ...]) -> Array:
    """Return the position of each text among ascending categories, int32."""
    import pandas as pd

    return pd.Index(categories, dtype="str").get_indexer(pd.Index(texts, dtype="str")).astype(np.int32)


def categories_of(texts: Any) -> tuple[str, ...]:
    """Return the distinct texts, ascending."""
    return tuple(sorted(set(texts)))


def read_values(part: Any, upstream: Any, untyped: bool) -> list[Any]:
    """Read a part's rows that are no loops on the host; return the frame, and facts of its column "weight"."""
    frame = part.read(CPU, upstream)
    mask = np.asarray(frame["src"] != frame["dst"], dtype=bool)
    frame = frame if mask.all() else frame[mask]
    return [frame, facts_of(frame["weight"], untyped)]


def facts_of(values: Any, untyped: bool) -> Facts:
    """Return the facts of values; texts of an untyped file are numbers if all of them are."""
    if not len(values):
        return Facts("", 0)
    if untyped:
        values = _numbers(values)
    if values.dtype.kind == "i":
        return Facts("int", max(-int(values.min()), int(values.max())))
    return Facts("float" if values.dtype.kind == "f" else "text", 0)


def _numbers(texts: Any) -> Any:
    """Convert texts to integers, else to floats, if all of them are finite numbers."""
    import pyarrow as pa

    column = pa.array(np.asarray(texts, dtype=object), pa.large_string())
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = column.cast(kind).to_numpy()
        except pa.ArrowInvalid:
            continue
        if np.isfinite(numbers).all():
            return numbers
    return texts


def typed(facts: list[Facts], untyped: bool, name: str) -> str:
    """Return the type of a column from the facts of all parts: int64, float64, or int32 for codes.

    Raises
    ------
    InputError
        Parts have numbers and text, or integers that float64 does not hold beside fractions.
    """
    kinds = {fact.kind for fact in facts if fact.kind}
    if "text" in kinds:
        if kinds != {"text"} and not untyped:
            raise InputError(f"{name} has numbers in some rows and text in others: a column is of one type; convert it")
        return "int32"
    largest = max((fact.largest for fact in facts), default=0)
    if kinds <= {"int"}:
        return "int64"
    if largest > EXACT:
        raise InputError(
            f"{name} has fractions, and an integer of {largest:.4g}: float64 holds integers up to 2^53; shift or scale "
            "them"
        )
    return "float64"


def distinct_texts(frame: Frame) -> list[str]:
    """Return the distinct values of a frame of text."""
    return list(map(str, frame["weight"].unique()))


# vertices


def placed(values: Array, dense: Array, order: Array) -> Array:
    """Reorder values to the ids of the blocks.

    Parameters
    ----------
    values : array, shape (V,)
    dense : array of int64, shape (V,)
        The dense id of each value.
    order : array of integers, shape (V,)
        The dense id of each id of the blocks.
    """
    dense_values = np.empty_like(values)
    dense_values[dense] = values
    return dense_values.take(order)


# edges


def candidates(
    frame: Frame,
    vertices: VertexMap,
    place: Array,
    shift: int,
    layout: Layout | None,
    blocks: int,
    dtype: str,
    categories: tuple[str, ...] | None,
) -> list[tuple[Array, Array]]:
    """Return the keys and values of a frame's rows that each block may hold.

    Parameters
    ----------
    frame : DataFrame
        "src", "dst", and values "weight", without loops.
    vertices : VertexMap
    place : array
        The id in the blocks of each dense id.
    shift : int
        Bits of an id in a key.
    layout : Layout or None
        Of the grid; None: each block may hold any edge.
    blocks : int
    dtype : str
    categories : tuple of str or None

    Returns
    -------
    list of (array of int64, array)
        For each block, in row-major order; rows in their order. Where ids do not tell the direction of an edge, there
        is a key for both.
    """
    values = frame["weight"]
    if categories is not None:
        array = codes_of(values, categories)
    else:
        array = (_numbers(values) if values.dtype.kind not in "if" else values.to_numpy()).astype(dtype, copy=False)
    a, b = (place.take(vertices.dense(frame[end])).astype(np.int64) for end in ("src", "dst"))
    sources, targets = np.maximum(a, b), np.minimum(a, b)
    if layout is None or not layout.graph.ordered:
        sources, targets = np.stack([a, b], axis=1).ravel(), np.stack([b, a], axis=1).ravel()
        array = array.repeat(2)
    keys = pack(sources, targets, shift)
    if blocks == 1 or layout is None:
        return [(keys, array)] * blocks
    row, width, column_offset = layout.rows.dealt(sources, np)[0] * layout.shape[1], blocks, 0
    shares: list[list[tuple[Array, Array]]] = [[] for _ in range(width)]
    for axis in layout.families:
        number = row + column_offset + axis.dealt(targets, np)[0]
        order = number.argsort(kind="stable")
        cuts = np.cumsum(np.bincount(number, minlength=width))[:-1]
        for share, selection in zip(shares, np.split(order, cuts), strict=True):
            if len(selection):
                share.append((keys[selection], array[selection]))
        column_offset += axis.parts
    return [_joined(share, array.dtype) for share in shares]


def _joined(share: list[tuple[Array, Array]], dtype: Any) -> tuple[Array, Array]:
    if len(share) == 1:
        return share[0]
    keys, values = [np.empty(0, np.int64)], [np.empty(0, dtype)]
    return np.concatenate([*keys, *(part for part, _ in share)]), np.concatenate(
        [*values, *(part for _, part in share)]
    )


def values_of_block(
    block: OrientedCSR,
    shares: list[tuple[Array, Array]],
    shift: int,
    dtype: str,
    repeats: Repeats | None,
    name: str,
    vertices: VertexMap,
    order: Array,
) -> Array:
    """Return the value of each edge of a block, in the order of its columns.

    Parameters
    ----------
    block : OrientedCSR
    shares : list of (array of int64, array)
        Candidates from each part of the source, in the order of its rows.
    shift : int
    dtype : str
    repeats : {"first", "min", "max", "sum"} or None
        What to do with the values of several rows; None: they are equal, else refused.
    name : str
        Of the column, for errors.
    vertices : VertexMap
    order : array
        The dense id of each id of the blocks; both give the caller's ids, for errors.

    Raises
    ------
    InputError
        Rows give an edge different values, or a sum exceeds 64 bits.
    CountError
        An edge of the block has no row.
    """
    keys, values = _joined(shares, np.dtype(dtype)) if shares else (np.empty(0, np.int64), np.empty(0, dtype))
    rank = keys.argsort(kind="stable")
    keys, values = keys[rank], values[rank]
    sources = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
    block_keys = pack(sources, block.column_ids(block.columns), shift)
    first, end = keys.searchsorted(block_keys), keys.searchsorted(block_keys, side="right")
    if (first == end).any():
        raise CountError(
            f"{name}: {plural(int((first == end).sum()), 'edge')} of block {block.place} have no row in a second pass "
            "over the source: it has changed; prepare it again"
        )
    if repeats == "first" or not len(block_keys):
        return values.take(first)
    if repeats is None:
        minima, maxima = (_reduced(function, values, first, end) for function in (np.minimum, np.maximum))
        for edge in np.flatnonzero(minima != maxima)[:1]:
            ends = vertices.external(order.take([sources[edge], block.column_ids(block.columns)[edge]])).tolist()
            raise InputError(
                f"rows give the edge between {' and '.join(map(shown, ends))} different values of {name}: which is "
                f"meant is unclear; pass edge_columns={{{name!r}: {' | '.join(map(repr, REPEATS))}}}"
            )
        return minima
    if repeats == "sum":
        _refuse_sums(values, end - first, name)
        return _reduced(np.add, values, first, end)
    return _reduced(np.minimum if repeats == "min" else np.maximum, values, first, end)


def _reduced(function: Any, values: Array, first: Array, end: Array) -> Array:
    """Reduce each range of values, none of which is empty."""
    bounds = np.stack([first, end], axis=1).ravel()
    padded_values = np.append(values, values[-1:])  # an end may lie behind the last value
    return function.reduceat(padded_values, bounds)[::2]


def _refuse_sums(values: Array, counts: Array, name: str) -> None:
    """Refuse sums that may exceed 64 bits."""
    largest = max(-float(values.min()), float(values.max()))
    bound = largest * int(counts.max())
    if bound >= (1 << 63) if values.dtype.kind == "i" else not np.isfinite(bound):
        raise InputError(
            f"the sum of {name} over {int(counts.max()):,} rows of an edge may reach {bound:.3g}, more than "
            f"{values.dtype} holds; scale the values down"
        )
