"""Columns of vertices and of edges that surveys read: numbers as they are, text as codes of its categories.

Each row of a source is a candidate for the block that holds its edge (u, v): a code, (u << shift | v) << 1, and 1 more
if the row leads from v to u; and a value. A block sorts its candidates, finds its own edges among them, and combines
the values of each as the caller said; directions and weights are combined likewise (`stages.attributes`). Where memory
is short, a block's edges are processed in ranges of their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dasktc.backends import lazy_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.errors import CountError, InputError
from dasktc.io.evidence import BOOLEANS
from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.pipeline.stages.read import slices_of_rows
from dasktc.planning.grid import Layout
from dasktc.wording import plural

__all__ = [
    "REPEATS", "Column", "Columns", "Deal", "Repeats", "TypeFacts", "ValueFacts", "ascending", "candidates",
    "categories_of", "chunks_of", "codes_of", "distinct_texts", "encoded", "facts_of", "firsts", "joined",
    "keys_between", "lost_rows", "places_among", "read_values", "typed", "values_of_block",
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
    """A column kept beside the blocks of a graph."""

    dtype: str
    """Of the arrays: int64, float64, or int32 for codes."""
    categories: tuple[str, ...] | None
    """What the codes 0, 1, ... stand for, ascending; None: the values are numbers."""
    values: Any = field(repr=False)
    """Sharded, or dict of (i, j) to handle of array. Of vertices: a vector by the ids of the blocks. Of edges: an array
    for each block, in the order of its columns."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns kept of a graph, by name; a name is of vertices or of edges."""

    vertices: dict[str, Column] = field(default_factory=dict)
    edges: dict[str, Column] = field(default_factory=dict)


class TypeFacts(NamedTuple):
    """Facts of the values in a part of a source."""

    kind: str
    """{"int", "float", "infinite", "no number", "boolean", "text", ""}. Empty where there are no values; "infinite" for
    floats with NaN or infinite ones among them, "no number" where all texts of an untyped file are such, "boolean"
    where all of them are true or false."""
    largest: int
    """The largest absolute value of integers, beside fractions of those of an untyped file."""


class ValueFacts(NamedTuple):
    """Facts of the values of edges in a range of a block."""

    rows: int
    """Number of rows of these edges."""
    clash: tuple[int, int] | None = None
    """Source and target of an edge whose rows have different values, where these are not combined."""


# types


def codes_of(texts: Array, categories: tuple[str, ...]) -> Array:
    """Return the position of each text among ascending categories, int32."""
    import pandas as pd

    return pd.Index(categories, dtype="str").get_indexer(pd.Index(texts, dtype="str")).astype(np.int32)


def categories_of(texts: Any) -> tuple[str, ...]:
    """Return the distinct texts, ascending."""
    return tuple(sorted(set(texts)))


def chunks_of(part: Any, upstream: Any, most: int | None) -> Iterator[Frame]:
    """Read a part on the host, in frames of at most `most` rows; None: in one."""
    chunks = getattr(part, "chunks", None)
    for frame in [part.read(CPU, upstream)] if most is None or chunks is None else chunks(CPU, most):
        yield from slices_of_rows(frame, most or max(1, len(frame)))


def read_values(part: Any, upstream: Any, most: int | None, untyped: bool) -> Iterator[Any]:
    """Read a part's rows that are no loops; yield each frame, and facts of its column "weight"."""
    for frame in chunks_of(part, upstream, most):
        mask = np.asarray(frame["src"] != frame["dst"], dtype=bool)
        edges = frame if mask.all() else frame[mask]
        yield edges
        yield facts_of(edges["weight"], untyped)


def facts_of(values: Any, untyped: bool) -> TypeFacts:
    """Return the facts of values; texts of an untyped file are numbers if all of them are."""
    if not len(values):
        return TypeFacts("", 0)
    texts = values
    if untyped:
        values = _numbers(values)
    if values.dtype.kind == "b":
        return TypeFacts("boolean", 1)
    if values.dtype.kind == "i":
        return TypeFacts("int", max(-int(values.min()), int(values.max())))
    if values.dtype.kind == "f":
        mask = np.isfinite(values)
        kind = "float" if mask.all() else "no number" if untyped and not mask.any() else "infinite"
        return TypeFacts(kind, _largest_integer(texts) if untyped else 0)
    return TypeFacts("text", 0)


def _largest_integer(texts: Any) -> int:
    """Return the largest absolute value of those texts of numbers that are integers of 16 or more digits, else 0."""
    integers = texts[texts.str.fullmatch(" *[+-]?[0-9]{16,} *")]
    return max((abs(int(text)) for text in integers), default=0)


def _numbers(texts: Any) -> Any:
    """Convert texts to booleans, integers or floats, if all of them are such; those are booleans that pandas reads."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(np.asarray(texts, dtype=object), pa.large_string())
    if pc.all(pc.is_in(column, pa.array(BOOLEANS, pa.large_string()))).as_py():
        return pc.equal(pc.utf8_lower(column), "true").to_numpy(zero_copy_only=False)
    if pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():  # Arrow reads 0x10 as 16
        return texts
    if pc.any(pc.match_substring(column, "+")).as_py():  # Arrow reads no integer with one
        column = pc.replace_substring_regex(column, r"^( *)\+([0-9.])", r"\1\2")
    for kind in (pa.int64(), pa.float64()):
        try:
            return column.cast(kind).to_numpy()
        except pa.ArrowInvalid:
            continue
    return texts


def typed(facts: list[TypeFacts], untyped: bool, name: str) -> str:
    """Return the type of a column from the facts of all parts: int64, float64, or int32 for codes.

    Raises
    ------
    InputError
        Parts have numbers and text, NaN or infinite numbers, or integers that float64 does not hold beside fractions.
    """
    kinds = {fact.kind for fact in facts if fact.kind}
    if kinds == {"no number"}:
        return "int32"
    if kinds == {"boolean"}:
        return "int64"
    if "text" in kinds or "boolean" in kinds:
        if kinds != {"text"} and not untyped:
            raise InputError(f"{name} has numbers in some rows and text in others: a column is of one type; convert it")
        return "int32"
    if not kinds.isdisjoint({"infinite", "no number"}):
        raise InputError(f"{name} has NaN or infinite values beside numbers: fill them in, or drop such rows")
    largest = max((fact.largest for fact in facts), default=0)
    if kinds <= {"int"}:
        return "int64"
    if largest > EXACT:
        raise InputError(
            f"{name} has an integer of {largest:.4g} beside fractions, or beyond 64 bits: float64 holds integers up to "
            "2^53; shift or scale them"
        )
    return "float64"


def distinct_texts(frame: Frame) -> list[str]:
    """Return the distinct values of a frame of text."""
    return list(map(str, frame["weight"].unique()))


# edges


class Deal(NamedTuple):
    """How rows of a source are dealt to the blocks, and within each to ranges of their edges' sources."""

    shift: int
    """Bits of an id in a key."""
    layout: Layout | None
    """Of the grid; None: each block may hold any edge."""
    blocks: int
    sources: tuple[int, ...] = (0,)
    """The first source of each range, from 0 on."""


def encoded(values: Any, dtype: str, categories: tuple[str, ...] | None) -> Array:
    """Convert a frame's values to the type of their column; text becomes the codes of its categories."""
    if categories is not None:
        return codes_of(values, categories)
    array: Array = _numbers(values) if values.dtype.kind not in "if" else values.to_numpy()
    return array.astype(dtype, copy=False)


def candidates(
    frame: Frame, ends: list[Array], deal: Deal, values: Callable[[Any], Array] | None
) -> list[tuple[Array, ...]]:
    """Deal a frame's rows to the blocks that may hold their edges.

    Parameters
    ----------
    frame : DataFrame
        With values "weight" where these are read, without loops.
    ends : list of two arrays
        The ids in the blocks of "src" and "dst" of its rows.
    deal : Deal
    values : callable (column) -> array, or None
        Converts the values; None: there are none.

    Returns
    -------
    list of (array of int64,) or (array of int64, array)
        For each block, in row-major order, and each range of sources: codes and values of rows in their order. Where
        ids do not tell the direction of an edge, there is a code for both.
    """
    a, b = (ids.astype(np.int64) for ids in ends)
    sources, targets, reverse_mask = np.maximum(a, b), np.minimum(a, b), a < b
    columns = () if values is None else (values(frame["weight"]),)
    layout, ranges = deal.layout, len(deal.sources)
    if layout is None or not layout.graph.ordered:
        sources, targets = np.stack([a, b], axis=1).ravel(), np.stack([b, a], axis=1).ravel()
        reverse_mask, columns = np.arange(len(sources)) & 1 > 0, tuple(column.repeat(2) for column in columns)
    codes = pack(sources, targets, deal.shift)
    codes <<= 1
    codes |= reverse_mask
    arrays = codes, *columns
    if deal.blocks * ranges == 1:
        return [arrays]
    number = np.searchsorted(deal.sources, sources, side="right") - 1
    if layout is None or deal.blocks == 1:
        return _dealt(arrays, number, ranges) * deal.blocks
    number += layout.rows.dealt(sources, np)[0] * layout.shape[1] * ranges
    families, first = list[list[tuple[Array, ...]]](), 0
    for axis in layout.families:
        column = first + axis.dealt(targets, np)[0]
        families.append(_dealt(arrays, number + column * ranges, deal.blocks * ranges))
        first += axis.parts
    # a block is of one family, and has no rows of another
    return [max(shares, key=lambda share: len(share[0])) for shares in zip(*families, strict=True)]


def _dealt(arrays: tuple[Array, ...], number: Array, count: int) -> list[tuple[Array, ...]]:
    """Deal rows by the number of their share, below `count`; they keep their order."""
    if count == 1:
        return [arrays]
    positions = number.astype(np.uint16 if count < 1 << 16 else np.int64).argsort(kind="stable")
    cuts = np.cumsum(np.bincount(number, minlength=count))[:-1]
    return list(zip(*(np.split(array[positions], cuts) for array in arrays), strict=True))


def joined(shares: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Join the rows of shares; those of a single one are not copied."""
    if len(shares) == 1:
        return shares[0]
    return tuple(map(np.concatenate, zip(*shares, strict=True))) or (np.empty(0, np.int64), np.empty(0))


def ascending(keys: Array, bound: int, positions: bool = True) -> tuple[Array, Any]:
    """Sort keys below `bound`, in place; with `positions` return the old ones too, equal keys in their old order."""
    bits = max(1, (len(keys) - 1).bit_length())
    if not positions:
        return CPU.sort(keys, bound), None
    if (bound - 1).bit_length() + bits > 63:
        old_positions = keys.argsort(kind="stable")
        return keys[old_positions], old_positions
    words = keys << bits
    words |= np.arange(len(keys))
    words = CPU.sort(words, bound << bits)
    return words >> bits, words & ((1 << bits) - 1)


def firsts(keys: Array) -> Array:
    """Positions of the first of equal, ascending keys."""
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def keys_between(block: OrientedCSR, shift: int, sources: tuple[int, int]) -> Array:
    """Keys of a block's edges whose sources are in a range, in the order of its columns."""
    ids = block.row_ids(np.arange(block.rows))
    first, end = ids.searchsorted(sources)
    row_ids = ids[first:end].repeat(np.diff(block.offsets[first : end + 1]))
    return pack(row_ids, block.column_ids(block.columns[block.offsets[first] : block.offsets[end]]), shift)


def places_among(block_keys: Array, keys: Array, name: str, block: OrientedCSR) -> Any:
    """Return the position of each of a block's edges among the distinct, ascending keys of rows, as an index.

    Raises
    ------
    CountError
        An edge has no row.
    """
    if len(block_keys) == len(keys) and np.array_equal(block_keys, keys):
        return slice(None)
    places = keys.searchsorted(block_keys)
    if count := int((keys.take(places, mode="clip") != block_keys).sum() if len(keys) else len(block_keys)):
        raise lost_rows(f"{name}: {plural(count, 'edge')} of block {block.place} have no row")
    return places


def lost_rows(fact: str) -> CountError:
    """The error where rows of a second pass over a source are not those of its edges."""
    return CountError(f"{fact} in a second pass over the source: it has changed; prepare it again")


def values_of_block(
    block: OrientedCSR,
    shares: list[tuple[Array, ...]],
    shift: int,
    sources: tuple[int, int],
    dtype: str,
    repeats: Repeats | None,
    name: str,
) -> tuple[Array, ValueFacts]:
    """Return the value of each of a block's edges from a range of sources, in the order of its columns.

    Parameters
    ----------
    block : OrientedCSR
    shares : list of (array of int64, array)
        Candidates from each frame of the source, in the order of its rows.
    shift : int
    sources : (int, int)
        The range.
    dtype : str
    repeats : {"first", "min", "max", "sum"} or None
        What to do with the values of several rows; None: they are equal, else refused.
    name : str
        Of the column, for errors.

    Returns
    -------
    values : array
    facts : ValueFacts
        With a clash the values are meaningless.

    Raises
    ------
    InputError
        A sum exceeds 64 bits.
    CountError
        An edge of the block has no row.
    """
    codes, values = joined(shares)
    keys, positions = ascending(codes >> 1, 1 << 2 * shift)
    values = values.astype(dtype, copy=False)[positions]
    first_positions, block_keys = firsts(keys), keys_between(block, shift, sources)
    places = places_among(block_keys, keys[first_positions], name, block)
    first, end = first_positions[places], np.append(first_positions, len(keys))[1:][places]
    row_count = int((end - first).sum())
    facts = ValueFacts(row_count)
    if repeats == "first" or not row_count:
        return values.take(first), facts
    if repeats is None:
        minima, maxima = (_reduced(function, values, first, end) for function in (np.minimum, np.maximum))
        for edge in np.flatnonzero(minima != maxima)[:1]:
            source, target = unpack(block_keys[edge], shift)
            facts = ValueFacts(row_count, (int(source), int(target)))
        return minima, facts
    if repeats == "sum":
        _refuse_sums(values, end - first, name)
        return _reduced(np.add, values, first, end), facts
    return _reduced(np.minimum if repeats == "min" else np.maximum, values, first, end), facts


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
