"""Peeling on a device, level by level, in rounds: the launches of kernels/peel.cu.

A level ends with the first round that removes nothing. Several rounds are launched before the host reads how many edges
each has removed, because a round without work takes less time than asking. Written against a `Device`, as all launches
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dasktc.backends.csr import Array, OrientedCSR
from dasktc.backends.cuda.device import THREADS, Device, grid_of, spread
from dasktc.backends.cuda.sort import RadixSort
from dasktc.backends.protocol import Peeled

__all__ = ["DevicePeel"]

STAYS = (1 << 31) - 1
EDGE_BITS = 32
BATCH, LARGEST = 2, 32
"""Rounds launched before the host asks: one more than the level before had; at least the first, at most the second."""
COUNTERS = 1 << 12
"""Sizes that are kept before they are cleared: of frontiers, one per round, and of windows, one per level."""
FEWEST = 16
"""Least number of levels of a window; else it has an eighth of the level."""
WARP = 32
ROUND = np.dtype(
    [(name, np.uint64) for name in ("size", "frontier", "next_size", "next", "window_size", "window", "left", "when")]
    + [(name, np.int64) for name in ("round", "level", "end", "together")]
)
"""Layout of `struct Round` in the kernel."""


@dataclass(frozen=True)
class DevicePeel:
    """Peels vertices and edges on a device; implements `Peel`."""

    device: Device

    def rows(self, graph: OrientedCSR) -> Array:
        """The row of every edge, int32."""
        rows = self._empty(graph.edges)
        if graph.edges:
            values = (np.int64(graph.edges), np.int64(graph.rows), graph.offsets, rows)
            spread(self.device, "peel", "peel_rows", (), graph.edges, *values)
        return rows

    def cores(self, graph: OrientedCSR, first: int, last: int) -> Array:
        """As `Peel.cores`."""
        starts, neighbours, _, _ = self._adjacency(graph)
        degrees = self._xp.diff(starts).astype("int32")
        levels, _ = _Levels(self.device, degrees, "peel_vertices", (starts, neighbours)).peel(first, last)
        return levels

    def trusses(self, graph: OrientedCSR, supports: Array, first: int, last: int) -> Peeled:
        """As `Peel.trusses`."""
        starts, neighbours, ids, rows = self._adjacency(graph)
        counts, triangles = supports.copy(), self._xp.zeros(1, dtype="uint64")
        arrays = starts, neighbours, ids, rows, graph.columns, triangles
        levels, next_level = _Levels(self.device, counts, "peel_edges", arrays).peel(first, last, halves=True)
        return Peeled(levels, counts, int(triangles[0]), next_level)

    @property
    def _xp(self) -> Any:
        return self.device.array

    def _empty(self, size: int) -> Array:
        return self._xp.empty(size, dtype="int32")

    def _adjacency(self, graph: OrientedCSR) -> tuple[Array, Array, Array, Array]:
        """Starts of the rows of all neighbours, the neighbours, their edges, and the row of every edge."""
        xp, rows = self._xp, self.rows(graph)
        in_degrees = xp.bincount(graph.columns, minlength=graph.rows)
        starts = graph.offsets.copy()
        starts[1:] += xp.cumsum(in_degrees, dtype="int64")
        keys = graph.columns.astype("int64")
        keys <<= EDGE_BITS
        keys |= xp.arange(graph.edges, dtype="int64")
        keys = RadixSort(self.device).sort(keys, graph.rows << EDGE_BITS, EDGE_BITS)
        neighbours, ids = self._empty(2 * graph.edges), self._empty(2 * graph.edges)
        if graph.edges:
            values = (np.int64(graph.edges), graph.offsets, starts, rows, graph.columns, keys, neighbours, ids)
            spread(self.device, "peel", "peel_entries", (), graph.edges, *values)
        return starts, neighbours, ids, rows


class _Levels:
    """Peels vertices or edges level by level.

    Parameters
    ----------
    device : Device
    counts : array of int32
        Remaining degree or triangles of each. Changed in place.
    entry : str
        Entry point of a round.
    arrays : tuple
        Its further arguments beside the round.
    """

    def __init__(self, device: Device, counts: Array, entry: str, arrays: tuple[Array, ...]) -> None:
        self._device, self._counts, self._entry, self._arrays = device, counts, entry, arrays
        xp, size = device.array, len(counts)
        self._removal_rounds = xp.full(size, STAYS, dtype="int32")
        self._frontiers = [xp.empty(size, dtype="int32") for _ in range(2)]
        self._windows = [xp.empty(size, dtype="int32") for _ in range(2)]
        self._frontier_sizes, self._window_sizes = (xp.zeros(COUNTERS, dtype="uint32") for _ in range(2))
        self._round_place = self._level_place = 0  # places in these two
        self._rounds = 1  # rounds of the level before
        self._levels: list[int] = []  # level of each round
        self._share = max(1, min(WARP, ((1 << 32) - 1) // max(1, len(arrays[0]))))

    def peel(self, first: int, last: int, halves: bool = False) -> tuple[Array, int | None]:
        """Peel levels `first` to `last`; return the level of each, -1 for those that stay, and a level or None.

        With `halves` it ends early once fewer than half stay; the level is then the one to continue with.
        """
        xp, size, next_level = self._device.array, len(self._counts), None
        survivors, level, end = xp.arange(size, dtype="int32"), first - 1, 0
        # Levels share a window, a list of what a few of them may remove, so that no level looks at all survivors.
        while len(survivors):
            level += 1
            if level >= end:
                if self._levels:
                    survivors = survivors[self._removal_rounds[survivors] == STAYS]
                if not len(survivors):
                    break
                level = max(level, int(self._counts[survivors].min()))
                if halves and 2 * len(survivors) < size and level <= last:
                    next_level = level
                    break
                end = min(level + max(FEWEST, min(level >> 3, COUNTERS - 2)), max(last, level) + 1)
                self._fill(survivors[self._counts[survivors] < end])
            if level > last:
                break
            self._level(level, end)
        table = xp.asarray(np.array([*self._levels, -1], dtype="int32"))
        return table[xp.minimum(self._removal_rounds, len(self._levels))], next_level

    def _fill(self, members: Array) -> None:
        """Begin a window with these vertices or edges."""
        self._windows[0][: len(members)] = members
        self._window_sizes.fill(0)
        self._window_sizes[0] = len(members)
        self._level_place = 0

    def _level(self, level: int, end: int) -> None:
        """Remove what has this level, and then everything that falls to it in consequence."""
        if self._round_place + LARGEST + 1 > COUNTERS:
            self._frontier_sizes.fill(0)
            self._round_place = 0
        window, next_window = self._windows
        size, next_size = self._window_sizes[self._level_place :], self._window_sizes[self._level_place + 1 :]
        lists = size, window, self._frontier_sizes[self._round_place :], self._frontiers[len(self._levels) % 2]
        self._run("peel_window", self._round(*lists, next_size, next_window, level, end))
        # Rounds are launched in batches; the host reads afterwards how many each has removed.
        batch, rounds = min(LARGEST, max(BATCH, self._rounds + 1)), 0
        while True:
            for _ in range(batch):
                turn, sizes = len(self._levels) % 2, self._frontier_sizes[self._round_place :]
                lists = sizes, self._frontiers[turn], sizes[1:], self._frontiers[1 - turn]
                self._run(self._entry, self._round(*lists, next_size, next_window, level, end), *self._arrays)
                self._levels.append(level)
                self._round_place += 1
            removals = self._frontier_sizes[self._round_place - batch : self._round_place + 1].tolist()
            rounds += sum(map(bool, removals[:-1]))
            if not removals[-1]:
                break
            batch = LARGEST
            if self._round_place + LARGEST + 1 > COUNTERS:
                self._frontier_sizes.fill(0)
                self._frontier_sizes[0] = removals[-1]
                self._round_place = 0
        self._rounds = rounds
        self._windows.reverse()
        self._level_place += 1

    def _round(self, *values: Any) -> Any:
        """Fill in `struct Round`."""
        *arrays, level, end = values
        pointers = [self._device.pointer(array) for array in (*arrays, self._counts, self._removal_rounds)]
        return np.array([(*pointers, len(self._levels), level, end, self._share)], ROUND)

    def _run(self, entry: str, *values: Any) -> None:
        grid, block = grid_of(self._device, "peel", (), THREADS * self._device.processors)
        self._device.launch("peel", entry, (), grid, block, values)
