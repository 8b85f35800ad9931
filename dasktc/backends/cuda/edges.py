"""Edges on a device, from raw ids to oriented keys: the launches of kernels/edges.cu.

Each step writes nothing but its result, so that preparing a graph takes little more memory than two arrays of its
edges. Written against a `Device`, as all launches are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.csr import Array, on_host
from dasktc.backends.cuda.device import THREADS, Device, grid_of, spread
from dasktc.backends.edge_sample import Colours, colours_of
from dasktc.backends.kernel_files import macros
from dasktc.backends.vertex_maps import RangeMap

__all__ = ["DeviceEdges", "Facts", "RankedIds"]

SIGN = 1 << 63
TALLY_BITS, SMALL_TALLY_BITS = 15, 13
"""Binary logarithm of the ids that a block counts in shared memory, and of those where it has at most 128 KiB."""
TALLIES = 16
"""Most blocks that count the same ids, each some of the ends."""


class Facts(NamedTuple):
    """Number of loops among raw edges, and the range low..high of the other edges' ids (low > high without any)."""

    loops: int
    low: int
    high: int


@dataclass(frozen=True)
class RankedIds(RangeMap):
    """One bit per id, and a running count per 32 bits.

    It takes a quarter of a byte per id of the range, so that lookups stay in the second level cache.

    Attributes
    ----------
    low : int
        The smallest id.
    size : int
        Number of vertices.
    table : array of uint32, shape (2 words,), or None
        Words of bits, each followed by the number of bits before it; None where every id of the range occurs.
    edges : DeviceEdges
    """

    low: int
    size: int
    table: Array | None
    edges: DeviceEdges

    @property
    def first(self) -> int | None:
        """The smallest id, where the others follow it without gaps; else None."""
        return int(self.low) if self.table is None else None

    def dense(self, ids: Any) -> Array:
        """Dense ids, int32, by lookup."""
        return self.edges.dense(getattr(ids, "values", ids), self)

    @property
    def ids(self) -> Array:
        """The caller's ids, ascending, int64, on the device."""
        xp = self.edges.device.array
        if self.table is None:
            return xp.arange(self.low, self.low + self.size, dtype="int64")
        bits = xp.unpackbits(xp.ascontiguousarray(self.table[::2]).view("uint8"), bitorder="little")
        return xp.flatnonzero(bits) + self.low

    def external(self, dense: Any) -> Any:
        """The caller's ids, int64."""
        if self.table is None:
            return np.asarray(dense, dtype="int64") + self.low
        bits = np.ascontiguousarray(on_host(self.table)[::2]).astype("<u4").view("u1")
        return (np.flatnonzero(np.unpackbits(bits, bitorder="little")) + self.low).take(dense)


@dataclass(frozen=True)
class DeviceEdges:
    """Edge functions of a device; implements `protocol.Edges`.

    Raw edges are two arrays of int32 or int64, `src` and `dst`; keys are arrays of int64, `high << shift | low`;
    degrees and ranks are arrays of int32 over the vertices. Results are new arrays, and inputs are not changed, except
    by `mark`, `count_ends`, `add_degrees` and `add_sources`, which update their first argument, and by `distinct_rows`.

    Attributes
    ----------
    device : Device
    many : int
        Edges from which ends are dealt out before they are counted.
    step : int
        Edges whose colours are computed at a time.
    """

    device: Device
    many: int = 1 << 20
    step: int = 1 << 22

    @property
    def ranges(self) -> int:
        """Most ranges to which keys are dealt."""
        return macros("edges")["RANGES"]

    # raw edges

    def proper(self, src: Array, dst: Array) -> tuple[tuple[Array, Array], int, int, int]:
        """Both ends of all edges, loops included; how many are loops, and the range of the other edges' ids."""
        return (src, dst), *self.facts(src, dst)

    def without_loops(self, src: Array, dst: Array) -> tuple[Array, Array]:
        """Both ends of all edges that are not loops."""
        proper = src != dst
        return (src, dst) if bool(proper.all()) else (src[proper], dst[proper])

    def sampled(self, src: Array, dst: Array, colours: Colours) -> tuple[Array, Array]:
        """Select the edges whose ends have one colour."""
        xp = self.device.array
        is_sampled = xp.empty(len(src), dtype=bool)
        for start in range(0, len(src), self.step):
            ends = (end[start : start + self.step] for end in (src, dst))
            source_colours, target_colours = (colours_of(end, colours, xp) for end in ends)
            is_sampled[start : start + self.step] = source_colours == target_colours
        return src[is_sampled], dst[is_sampled]

    def facts(self, src: Array, dst: Array) -> Facts:
        """Count loops, and find the range of the other edges' ids."""
        facts = self.device.array.zeros(3, dtype="uint64")
        self._run("edges_facts", len(src), *_wide(src, dst), np.int64(len(src)), facts)
        low, high, loops = facts.tolist()  # ids with their sign bit flipped
        return Facts(loops, ~(low - SIGN), high - SIGN)

    def marks(self, width: int) -> Array:
        """Make a table for the given number of ids, with no bit set."""
        return self.device.array.zeros(2 * (-(-width // 32)), dtype="uint32")

    def mark(self, table: Array, src: Array, dst: Array, low: int) -> None:
        """Set the bits of the ids, counted from `low`, of all edges except loops."""
        self._run("edges_mark", len(src), *_wide(src, dst), np.int64(len(src)), np.int64(low), table)

    def marked(self, present: Array) -> Array:
        """Make a table of marks of flags, one per id."""
        table, ids = self.marks(len(present)), self.device.array.flatnonzero(present)
        self.mark(table, ids[:-1], ids[1:], 0)  # edges from each id to the next: no vertex is alone
        return table

    def ranked(self, table: Array, low: int, width: int) -> RankedIds:
        """Make the map of the ids whose bits are set in a table of `marks`."""
        words, ranks = len(table) // 2, self.device.array.empty(len(table), dtype="uint32")
        values = (table, np.int64(words), self._share(words))
        starts = self._starts("edges_counts", words, *values)
        if (size := int(starts[-1])) == width:
            return RankedIds(low, size, None, self)
        self._run("edges_ranks", words, *values, starts, ranks)
        return RankedIds(low, size, ranks, self)

    def dense(self, ids: Array, of: RankedIds) -> Array:
        """Dense ids, int32, by lookup in a map."""
        dense, (ids,) = self.device.array.empty(len(ids), dtype="int32"), _wide(ids)
        self._run("edges_dense", len(ids), ids, np.int64(len(ids)), np.int64(of.low), _or_null(of.table), dense)
        return dense

    def count_ends(self, counts: Array, src: Array, dst: Array, of: Any) -> None:
        """Add 1 to the counts of both ends, by dense id, of all edges except loops; modulo 2^32."""
        edge_values = *_wide(src, dst), *_numbers(src, of)
        if len(src) < self.many:
            self._run("edges_ends", len(src), *edge_values, counts)
            return
        # Ends are dealt to bins of ids; a block counts those of a range of ids in shared memory, then adds them up.
        xp, launch, shape = self.device.array, self.device.launch, macros("edges")
        bits = TALLY_BITS if getattr(self.device, "shared_bytes", 0) > 4 << TALLY_BITS else SMALL_TALLY_BITS
        shift = max(bits, (len(counts) - 1).bit_length() - shape["BIN_BITS"])
        bins = xp.zeros((1 << shape["BIN_BITS"]) + 1, dtype="uint64")
        defines, block = (("WIDE", int(edge_values[0].dtype == "int64")),), shape["DEAL_BLOCK"]
        grid = min(-(-len(src) // (shape["DEAL_ROWS"] * block)), THREADS // block * self.device.processors)
        launch("edges", "edges_bins", defines, grid, block, (*edge_values, np.uint32(shift), bins))
        launch("edges", "share_starts", defines, 1, shape["SCAN"], (bins, np.uint32(len(bins))))
        ends = xp.empty(2 * len(src), dtype="uint32")
        launch("edges", "edges_deal", defines, grid, block, (*edge_values, np.uint32(shift), bins, ends))
        numbers = map(np.uint32, (((len(counts) - 1) >> shift) + 1, shift, bits, TALLIES))
        values, block = (bins, *numbers, ends, np.int64(len(counts)), counts), shape["TALLY_BLOCK"]
        launch("edges", "edges_tally", defines, self.device.processors, block, values, 4 << bits)

    def keys(self, src: Array, dst: Array, of: Any, shift: int, rank: Array | None = None) -> Array:
        """Canonical keys in the order of the edges, with ranks oriented ones; a loop's is 0, which is no edge's key."""
        return self._keys((src, dst), of, shift, rank, np.uint64(0), np.uint32(0), np.uint64(0))

    def _keys(self, ends: tuple[Array, Array], of: Any, shift: int, rank: Array | None, *ranges: Any) -> Array:
        """Keys, counted by ranges: first keys of all but the first, how many these are, and counts."""
        keys = self.device.array.empty(len(ends[0]), dtype="int64")
        values = (*_wide(*ends), *_numbers(ends[0], of), np.uint32(shift), _or_null(rank), keys)
        self._run("edges_keys", len(keys), *values, *ranges)
        return keys

    def lazy_keys(self, src: Array, dst: Array, of: Any, shift: int) -> Array:
        """Canonical keys, as an array."""
        return self.keys(src, dst, of, shift)

    # keys

    def between(self, keys: Array, first: int, end: int) -> Array:
        """Select the keys with first <= key < end, in no order."""
        return self.split(keys, [first, end])[1]

    def split(self, keys: Array, starts: list[int]) -> list[Array]:
        """Deal keys to ranges that begin at 0 and at each of `starts`: one array each, in no order.

        The arrays are separate, so that each can be freed by itself.
        """
        if not starts:
            return [keys]
        counts, first = self.device.array.zeros(len(starts) + 1, dtype="uint64"), self._first(starts)
        borders = np.uint32(len(starts))
        self._run("keys_counts", len(keys), keys, np.int64(len(keys)), first, borders, counts)
        return self._scattered(keys, counts.tolist(), first, 0, [0] * len(counts))

    def split_rows(
        self, edges: Iterator[tuple[Array, Array]], of: Any, rank: Array, rows: list[int], shift: int
    ) -> Iterator[list[Array]]:
        """Make oriented keys, and deal them to ranges of rows; see `protocol.Edges`.

        The next keys are made before the host waits for how many of the last ones go where.
        """
        starts, widths = [end << shift for end in rows[:-1]], [(end - 1).bit_length() for end in rows]
        first, counted = self._first(starts), deque[Any]()
        for ends in edges:
            counts = self.device.array.zeros(len(rows), dtype="uint64")
            keys = self._keys(ends, of, shift, rank, first, np.uint32(len(starts)), counts)
            counted.append((keys, self.device.later(counts)))
            del ends, keys
            if len(counted) > 1:
                last, sizes = counted.popleft()
                yield self._scattered(last, sizes(), first, shift, widths)
                del last
        for last, sizes in counted:
            yield self._scattered(last, sizes(), first, shift, widths)

    def _first(self, starts: list[int]) -> Array:
        return self.device.array.asarray(np.array(starts, dtype="int64"))

    def _scattered(self, keys: Array, sizes: list[int], first: Array, shift: int, widths: list[int]) -> list[Array]:
        """Keys of each range; their lower ends have `shift` bits, and then as many as `widths` says."""
        if len(sizes) == 1:
            return [keys]
        xp = self.device.array
        ranges = [xp.empty(size, dtype="int64") for size in sizes]
        pointers = xp.asarray(np.array([self.device.pointer(array) for array in ranges], dtype="uint64"))
        form = np.uint32(len(first)), np.uint32(shift), xp.asarray(np.array(widths, dtype="uint32")), pointers
        places = xp.zeros(len(ranges), dtype="uint64")
        self._run("keys_scatter", len(keys), keys, np.int64(len(keys)), first, *form, places)
        return ranges

    def distinct(self, keys: Array, shift: int) -> Array:
        """Drop repeats and loops among ascending keys; return `keys` itself where there are none."""
        if not len(keys):
            return keys
        values = (keys, np.int64(len(keys)), np.uint32(shift), self._share(len(keys)))
        starts = self._starts("keys_distinct", len(keys), *values)
        if (count := int(starts[-1])) == len(keys):
            return keys
        result = self.device.array.empty(count, dtype="int64")
        self._run("keys_compact", len(keys), *values, starts, result)
        return result

    def distinct_rows(
        self, keys: Array, shift: int, lengths: Array, vertices: Array, degrees: Array
    ) -> Callable[[], Array]:
        """Columns (int32) of ascending keys over ranks, without repeats and loops; see `protocol.Buckets`."""
        values = (keys, np.int64(len(keys)), np.uint32(shift), self._share(len(keys)))
        starts = self._starts("keys_distinct", len(keys), *values)
        columns = self.device.array.empty(len(keys), dtype="int32")
        self._run("keys_rows", len(keys), *values, starts, columns, lengths, vertices, degrees)
        count = self.device.later(starts[-1:])

        def kept() -> Array:
            (size,) = count()
            return columns[:size] if 4 * size > 3 * len(columns) else columns[:size].copy()

        return kept

    def add_degrees(self, degrees: Array, keys: Array, shift: int) -> None:
        """Add 1 to the degrees of both ends of each key; the high ends ascend."""
        self._run("keys_degrees", len(keys), keys, np.int64(len(keys)), np.uint32(shift), degrees)

    def add_sources(self, degrees: Array, keys: Array, shift: int) -> None:
        """Add 1 to the degree of the high end of each key."""
        self._run("keys_sources", len(keys), keys, np.int64(len(keys)), np.uint32(shift), degrees)

    def oriented(self, keys: Array, rank: Array, shift: int) -> Array:
        """Keys over the ranks of the ends, the higher rank first."""
        result = self.device.array.empty(len(keys), dtype="int64")
        self._run("keys_orient", len(keys), keys, np.int64(len(keys)), np.uint32(shift), rank, result)
        return result

    orient = oriented

    def residues(self, keys: Array, shift: int, modulus: int) -> Array:
        """Number of keys with each pair of their ends' remainders, uint64, row-major; modulus² <= `ranges`."""
        counts = self.device.array.zeros(modulus**2, dtype="uint64")
        self._run("keys_residues", len(keys), keys, np.int64(len(keys)), np.uint32(shift), np.uint32(modulus), counts)
        return counts

    def placed(self, keys: Array, shift: int, modulus: int, firsts: Array, widths: Array) -> Array:
        """Recode keys by block, with ends dealt out by remainder: firsts[i, j] + row * widths[j] + column."""
        result = self.device.array.empty(len(keys), dtype="int64")
        values = (np.int64(len(keys)), np.uint32(shift), np.uint32(modulus), firsts, widths)
        self._run("keys_place", len(keys), keys, *values, result)
        return result

    def rows(self, keys: Array, start: int, rows: int, columns: int) -> tuple[Array, Array]:
        """Offsets (int64) and columns (int32) of the rows of ascending keys, each start + row * columns + column."""
        offsets = self.device.array.empty(rows + 1, dtype="int64")
        numbers = self.device.array.empty(len(keys), dtype="int32")
        values = (keys, np.int64(len(keys)), np.int64(start), np.int64(columns))
        self._run("keys_offsets", rows + 1, *values, np.int64(rows), offsets)
        self._run("keys_columns", len(keys), *values, numbers)
        return offsets, numbers

    def _warps(self, size: int) -> int:
        """Number of warps in the grid for `size` elements."""
        grid, block = grid_of(self.device, "edges", (), size)
        return grid * block // 32

    def _share(self, size: int) -> Any:
        """Number of elements for each warp of the grid, a multiple of 32."""
        return np.int64(-(-size // (32 * self._warps(size))) * 32)

    def _starts(self, entry: str, size: int, *values: Any) -> Array:
        """Running sums of what the warps' shares contain; the last is the total."""
        starts = self.device.array.empty(self._warps(size) + 1, dtype="uint64")
        self._run(entry, max(1, size), *values, starts)
        self.device.launch(
            "edges", "share_starts", (("WIDE", 0),), 1, macros("edges")["SCAN"], (starts, np.uint32(len(starts)))
        )
        return starts

    def _run(self, entry: str, threads: int, *values: Any) -> None:
        """Launch about `threads` threads, if there are any."""
        if threads:
            wide = entry.startswith("edges") and values[0].dtype == "int64"
            spread(self.device, "edges", entry, (("WIDE", int(wide)),), threads, *values)


def _wide(*columns: Array) -> list[Array]:
    """Make columns contiguous and of one type, int32 or int64."""
    is_narrow = all(column.dtype == "int32" for column in columns)
    result = [column.astype("int32" if is_narrow else "int64", copy=False) for column in columns]
    return [column if column.flags.c_contiguous else column.copy() for column in result]


def _numbers(src: Array, ids: Any) -> tuple[Any, ...]:
    """Number of edges, and how their ids become dense ones; no table where ids are used as they are."""
    return np.int64(len(src)), np.int64(ids.low), _or_null(getattr(ids, "table", None))


def _or_null(table: Array | None) -> Any:
    return np.uint64(0) if table is None else table
