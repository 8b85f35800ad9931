"""Blocks: arithmetic of the CSR blocks of schemes that assign rows and columns to blocks by vertex id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.protocol import Buckets
from dasktc.errors import CountError
from dasktc.pipeline.stages.edge_keys import pack, transform, unpack
from dasktc.planning.grid import Axis, Layout
from dasktc.planning.schemes import Block
from dasktc.wording import plural

__all__ = [
    "Filling", "block_keys", "block_of_rows", "block_of_slab", "check_edges", "checked_block", "columns_of_ranges",
    "columns_of_rows", "edges_per_block", "fill_rows", "keys_of_rows", "places_before", "slab", "slab_of_keys",
    "slab_spans", "stack", "stacked", "sums_of_parts",
]  # fmt: skip

Array = Any


def sums_of_parts(vector: Array, first: int, axis: Axis) -> list[int]:
    """Sum of each part's share of a shard."""
    return [int(axis.share(vector, part, first).sum()) for part in range(axis.parts)]


def places_before(
    vector: Array, first: int, axis: Axis, before: list[int], wanted: list[list[int]], backend: Backend
) -> list[list[int]]:
    """For each part and cut, the number of entries whose running sum is below the cut's target sum."""
    xp, places = backend.array, []
    for part in range(axis.parts):
        sums = xp.cumsum(axis.share(vector, part, first), dtype="int64")
        cuts = xp.asarray(np.array(wanted[part], dtype="int64") - before[part])
        places.append(sums.searchsorted(cuts).tolist())
    return places


def edges_per_block(keys: Array | list[Array], layout: Layout, backend: Backend) -> list[int]:
    """Edges of one partition, or of several, in each block of the grid, in row-major order."""
    if isinstance(keys, list):
        counts = [edges_per_block(part_keys, layout, backend) for part_keys in keys]
        return [sum(addends) for addends in zip(*counts, strict=True)]
    if (modulus := layout.residues) and modulus**2 <= backend.edges.ranges:
        block_counts: list[int] = backend.edges.residues(keys, layout.shift, modulus).tolist()
        return block_counts
    xp, chunk, (rows, columns) = backend.array, backend.chunk, layout.shape
    edges = xp.zeros(rows * columns, dtype="int64")
    for start in range(0, len(keys), chunk):
        source, target = unpack(keys[start : start + chunk], layout.shift)
        row, column_offset = layout.rows.dealt(source, xp)[0] * columns, 0
        for axis in layout.families:
            edges += xp.bincount(row + column_offset + axis.dealt(target, xp)[0], minlength=rows * columns)
            column_offset += axis.parts
    result: list[int] = edges.tolist()
    return result


def fill_rows(span: tuple[int, int], buckets: Buckets, shift: int, loose: int, offsets: Array, columns: Array) -> None:
    """Sort the keys of a span of buckets, and write their rows into the arrays of the block."""
    buckets.write_rows(*span, shift, loose, offsets, columns)


def columns_of_rows(
    span: tuple[int, int], buckets: Buckets, shift: int, lengths: Array, vertices: Array, degrees: Array
) -> Array:
    """Sort oriented keys of a span of buckets, and keep each once: the columns; the vectors are those of `Buckets`."""
    return buckets.distinct_rows(*span, shift, lengths, vertices, degrees)()


def columns_of_ranges(
    ranges: list[list[Array]], rows: list[int], backend: Backend, lengths: Array, vertices: Array, degrees: Array
) -> Iterator[Array]:
    """As `columns_of_rows`, of slices of keys of the ranges of `Edges.split_rows`, which are taken over.

    A device computes those of all ranges before their numbers are waited for.
    """
    started = list[Callable[[], Array]]()
    ranges.reverse()
    for end in rows:
        bits = (end - 1).bit_length()
        buckets = backend.dealt(ranges.pop(), end << bits)
        started.append(buckets.distinct_rows(0, len(buckets), bits, lengths, vertices, degrees))
        del buckets
    started.reverse()
    while started:
        yield started.pop()()


def keys_of_rows(columns: Array, first: int, lengths: Array, shift: int, backend: Backend) -> Array:
    """Oriented keys of the edges from `first` on, from their columns and the lengths of all rows."""
    xp = backend.array
    ends, keys = xp.cumsum(lengths, dtype="int64"), xp.empty(len(columns), dtype="int64")
    for start in range(0, len(columns), backend.chunk):
        column = columns[start : start + backend.chunk]
        places = xp.arange(first + start, first + start + len(column), dtype="int64")
        keys[start : start + len(column)] = pack(ends.searchsorted(places, side="right"), column, shift)
    return keys


def block_of_rows(
    columns: list[Array], lengths: Array, place: Block, layout: Layout, backend: Backend, edges: int | None
) -> OrientedCSR:
    """Build the block of all rows from their lengths and their columns, one array after another."""
    offsets = backend.array.zeros(layout.rows.sizes[place[0]] + 1, dtype="int64")  # a block without edges has a row
    backend.array.cumsum(lengths, dtype="int64", out=offsets[1 : len(lengths) + 1])
    return checked_block([(offsets, _joined(columns, backend))], place, layout, backend, edges)


def slab_spans(layout: Layout, first_rows: list[list[int]]) -> list[tuple[int, int, int, int, int]]:
    """Arguments of `slab` for every slab of every block: its range of keys, and how keys make rows.

    Parameters
    ----------
    layout : Layout
    first_rows : list of lists of int
        For each row of the grid, of each slab.
    """
    firsts, widths, slabs = layout.first_keys, layout.widths, len(first_rows[0])
    blocks = zip(layout.places, firsts, widths, strict=False)  # the last first key is the end of all
    starts = [first + row * width for (i, _), first, width in blocks for row in first_rows[i]]
    spans = pairwise([*starts, firsts[-1]])
    return [(*span, widths[number // slabs], firsts[-1], layout.loose_bits) for number, span in enumerate(spans)]


def block_keys(keys: Array | list[Array], layout: Layout, family: int, backend: Backend) -> Array:
    """Recode the keys of one or several arrays by their blocks, within one family of columns."""
    if isinstance(keys, list):
        return backend.array.concatenate([block_keys(part_keys, layout, family, backend) for part_keys in keys])
    xp, axis = backend.array, layout.families[family]
    offset = sum(preceding_axis.parts for preceding_axis in layout.families[:family])
    firsts = np.array(layout.first_keys[:-1], dtype="int64").reshape(layout.shape)[:, offset : offset + axis.parts]
    first_keys = xp.asarray(np.ascontiguousarray(firsts).ravel())
    family_widths = layout.widths[offset : offset + axis.parts]
    widths = xp.asarray(np.array(family_widths, dtype="int64"))
    if layout.residues:
        return backend.edges.placed(keys, layout.shift, layout.residues, first_keys, widths)

    def placed(chunk: Array) -> Array:
        source, target = unpack(chunk, layout.shift)
        (i, row), (j, column) = layout.rows.dealt(source, xp), axis.dealt(target, xp)
        return first_keys.take(i * axis.parts + j) + row * widths.take(j) + column

    return transform(keys, placed, backend)


def slab(
    slices: list[Array], start: int, end: int, columns: int, bound: int, loose: int, backend: Backend
) -> tuple[Array, Array]:
    """Sort the keys of a slab, [start, end), and return the offsets and columns of its rows.

    A row has `columns` keys; every key of the block is below `bound`; the lowest `loose` bits need not be sorted.
    """
    return backend.dealt(slices, bound, (start, end)).rows(start, -(-(end - start) // columns), columns, loose)


def slab_of_keys(
    keys: Array, start: int, end: int, columns: int, bound: int, loose: int, backend: Backend
) -> tuple[Array, Array]:
    """As `slab`, of keys that are ascending already."""
    return backend.edges.rows(keys, start, -(-(end - start) // columns), columns)


def block_of_slab(
    slices: list[Array],
    start: int,
    end: int,
    columns: int,
    bound: int,
    loose: int,
    backend: Backend,
    place: Block,
    layout: Layout,
    edges: int | None,
) -> OrientedCSR:
    """Build a block that has a single slab."""
    return checked_block([slab(slices, start, end, columns, bound, loose, backend)], place, layout, backend, edges)


def checked_block(slabs: list[Any], place: Block, layout: Layout, backend: Backend, edges: int | None) -> OrientedCSR:
    """Stack the slabs of a block, and check that it has as many edges as were measured."""
    block = stack(slabs, place, layout, backend)
    check_edges(block, edges)
    return block


class Filling:
    """Copies slabs into a block allocated at full size, because two copies of its bytes need not fit a budget.

    Parameters
    ----------
    place : (int, int)
    layout : Layout
    edges : int
        Of the block.
    backend : Backend
    """

    def __init__(self, place: Block, layout: Layout, edges: int, backend: Backend) -> None:
        self._place, self._layout, self._backend = place, layout, backend
        self._rows, self._edges = layout.rows.sizes[place[0]], edges
        self._row = self._edge = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return 8 * (self._rows + 1) + 4 * self._edges

    def start(self) -> OrientedCSR:
        """Allocate the block, empty."""
        xp = self._backend.array
        slab = xp.zeros(self._rows + 1, dtype="int64"), xp.empty(self._edges, dtype="int32")
        return stack([slab], self._place, self._layout, self._backend)

    def add(self, block: OrientedCSR, slab: tuple[Array, Array]) -> OrientedCSR:
        """Copy the next slab into the block."""
        offsets, columns = slab
        row, edge = self._row + len(offsets) - 1, self._edge + len(columns)
        if edge <= self._edges:
            block.offsets[self._row + 1 : row + 1] = offsets[1:]
            block.offsets[self._row + 1 : row + 1] += self._edge
            block.columns[self._edge : edge] = columns
        self._row, self._edge = row, edge
        return block

    def check(self) -> None:
        """Refuse slabs that do not have as many edges as the plan says (CountError)."""
        _check_edges(self._place, self._edge, self._edges)


def stack(slabs: list[Any], place: Block, layout: Layout, backend: Backend) -> OrientedCSR:
    """Assemble a block from its slabs."""
    offsets, columns = stacked(slabs, backend)
    firsts = layout.rows.firsts[place[0]], layout.numbering(place[1])[0]
    geometry = layout.rows.stride, *firsts, layout.graph.ordered, place
    return OrientedCSR(offsets, columns, *geometry, sorted_rows=layout.loose_bits == 0)


def check_edges(block: OrientedCSR, edges: int | None) -> None:
    """Refuse a block that does not have as many edges as the plan says (CountError)."""
    _check_edges(block.place, block.edges, edges)


def _check_edges(place: Block, edges: int, expected: int | None) -> None:
    if expected not in (None, edges):
        raise CountError(
            f"block P[{place[0]}][{place[1]}] holds {plural(edges, 'edge')}, the plan {expected:,}: edges were "
            "lost; run again, and report this with the output of `dasktc info`"
        )


def stacked(slabs: list[Any], backend: Backend) -> tuple[Array, Array]:
    """Concatenate slabs of rows to the offsets and columns of one block.

    The list belongs to the task and is emptied slab by slab, so that copied slabs can be freed.
    """
    xp = backend.array
    if len(slabs) == 1:
        offsets, columns = slabs[0]
        return offsets, columns
    offsets = xp.zeros(1 + sum(len(o) - 1 for o, _ in slabs), dtype="int64")
    row = edge = 0
    for number, (o, c) in enumerate(slabs):
        slabs[number] = c
        offsets[row + 1 : row + len(o)] = o[1:]
        offsets[row + 1 : row + len(o)] += edge
        row, edge = row + len(o) - 1, edge + len(c)
    del o, c
    return offsets, _joined(slabs, backend)


def _joined(arrays: list[Any], backend: Backend) -> Array:
    """Concatenate arrays of columns; the list is emptied array by array."""
    if len(arrays) == 1:
        columns: Array = arrays.pop()
        return columns
    columns, edge = backend.array.empty(sum(map(len, arrays)), dtype="int32"), 0
    arrays.reverse()
    while arrays:
        part = arrays.pop()
        columns[edge : edge + len(part)] = part
        edge += len(part)
    return columns
