"""Peeling on a device, level by level, in rounds: the launches of kernels/peel.cu.

A level ends with the first round in which nothing goes. Rounds are launched some at a time, and then the host reads how
many edges went in each: one that finds nothing to do takes less than asking. Written against a `Device`, as all
launches are.
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
BATCH = 8
"""Rounds that are launched before the host asks; even, for frontiers are in two lists by turns."""
FEWEST = 16
"""Levels of a window, at least; else an eighth of the level."""
WARP = 32
ROUND = np.dtype(
    [(name, np.uint64) for name in ("size", "frontier", "next_size", "next", "window_size", "window", "left", "when")]
    + [(name, np.int64) for name in ("round", "level", "end", "together")]
)
"""`struct Round` of the kernel."""


@dataclass(frozen=True)
class DevicePeel:
    """As `Peel`.

    Attributes
    ----------
    device : Device
    """

    device: Device

    def rows(self, graph: OrientedCSR) -> Array:
        """The row of every edge, int32."""
        rows = self._empty(graph.edges)
        if graph.edges:
            given = (np.int64(graph.edges), np.int64(graph.rows), graph.offsets, rows)
            spread(self.device, "peel", "peel_rows", (), graph.edges, *given)
        return rows

    def cores(self, graph: OrientedCSR, first: int, last: int) -> Array:
        """As `Peel.cores`."""
        starts, neighbours, _, _ = self._adjacency(graph)
        left = self._xp.diff(starts).astype("int32")
        levels, _ = _Levels(self.device, left, "peel_vertices", (starts, neighbours)).peel(first, last)
        return levels

    def trusses(self, graph: OrientedCSR, supports: Array, first: int, last: int) -> Peeled:
        """As `Peel.trusses`."""
        starts, neighbours, ids, rows = self._adjacency(graph)
        left, triangles = supports.copy(), self._xp.zeros(1, dtype="uint64")
        given = starts, neighbours, ids, rows, graph.columns, triangles
        levels, following = _Levels(self.device, left, "peel_edges", given).peel(first, last, halves=True)
        return Peeled(levels, left, int(triangles[0]), following)

    @property
    def _xp(self) -> Any:
        return self.device.array

    def _empty(self, size: int) -> Array:
        return self._xp.empty(size, dtype="int32")

    def _adjacency(self, graph: OrientedCSR) -> tuple[Array, Array, Array, Array]:
        """Where rows of all neighbours begin, these, their edges, and the row of every edge."""
        xp, rows = self._xp, self.rows(graph)
        above = xp.bincount(graph.columns, minlength=graph.rows)
        starts = graph.offsets.copy()
        starts[1:] += xp.cumsum(above, dtype="int64")
        keys = graph.columns.astype("int64")
        keys <<= EDGE_BITS
        keys |= xp.arange(graph.edges, dtype="int64")
        keys = RadixSort(self.device).sort(keys, graph.rows << EDGE_BITS, EDGE_BITS)
        neighbours, ids = self._empty(2 * graph.edges), self._empty(2 * graph.edges)
        if graph.edges:
            given = (np.int64(graph.edges), graph.offsets, starts, rows, graph.columns, keys, neighbours, ids)
            spread(self.device, "peel", "peel_entries", (), graph.edges, *given)
        return starts, neighbours, ids, rows


class _Levels:
    """Vertices or edges that go level by level.

    Parameters
    ----------
    device : Device
    left : array of int32
        What each has left. Changed in place.
    entry : str
        The kernel of a round.
    given : tuple
        What it takes beside the round.
    """

    def __init__(self, device: Device, left: Array, entry: str, given: tuple[Array, ...]) -> None:
        self._device, self._left, self._entry, self._given = device, left, entry, given
        xp, size = device.array, len(left)
        self._when = xp.full(size, STAYS, dtype="int32")
        self._frontiers = [xp.empty(size, dtype="int32") for _ in range(2)]
        self._windows = [xp.empty(size, dtype="int32") for _ in range(2)]
        self._sizes, self._inside = xp.zeros(BATCH + 1, dtype="uint32"), xp.zeros(2, dtype="uint32")
        self._levels: list[int] = []  # of the rounds
        self._together = max(1, min(WARP, ((1 << 32) - 1) // max(1, len(given[0]))))

    def peel(self, first: int, last: int, halves: bool = False) -> tuple[Array, int | None]:
        """Peel the levels from `first` to `last`: the level of each, -1 of those that stay.

        The number is the level to go on with, where `halves` has it end early since fewer than half stay; else None.
        """
        xp, size, following = self._device.array, len(self._left), None
        alive, level, end = xp.arange(size, dtype="int32"), first - 1, 0
        while len(alive):
            level += 1
            if level >= end:
                if self._levels:
                    alive = alive[self._when[alive] == STAYS]
                if not len(alive):
                    break
                level = max(level, int(self._left[alive].min()))
                if halves and 2 * len(alive) < size and level <= last:
                    following = level
                    break
                end = min(level + max(FEWEST, level >> 3), max(last, level) + 1)
                self._fill(alive[self._left[alive] < end])
            if level > last:
                break
            self._level(level, end)
        table = xp.asarray(np.array([*self._levels, -1], dtype="int32"))
        return table[xp.minimum(self._when, len(self._levels))], following

    def _fill(self, chosen: Array) -> None:
        """Begin a window."""
        self._windows[0][: len(chosen)] = chosen
        self._inside[0] = len(chosen)

    def _level(self, level: int, end: int) -> None:
        self._sizes.fill(0)
        self._inside[1] = 0
        (before, after), inside = self._windows, self._inside
        frontier = self._frontiers[len(self._levels) % 2]
        this = self._round(inside[0:], before, self._sizes[0:], frontier, inside[1:], after, level, end)
        self._run("peel_window", this)
        while True:
            for number in range(BATCH):
                turn = len(self._levels) % 2
                mine, other = self._frontiers[turn], self._frontiers[1 - turn]
                ends = self._sizes[number:], mine, self._sizes[number + 1 :], other
                self._run(self._entry, self._round(*ends, inside[1:], after, level, end), *self._given)
                self._levels.append(level)
            left = int(self._sizes[BATCH])
            if not left:
                break
            self._sizes.fill(0)
            self._sizes[0] = left
        self._windows.reverse()
        self._inside[0] = self._inside[1]

    def _round(self, *given: Any) -> Any:
        """Fill in `struct Round`."""
        *arrays, level, end = given
        made = np.zeros(1, ROUND)
        names = [name for name in ROUND.names or () if ROUND[name] == np.uint64]
        for name, array in zip(names, (*arrays, self._left, self._when), strict=True):
            made[name] = self._device.pointer(array)
        made["round"], made["level"], made["end"], made["together"] = len(self._levels), level, end, self._together
        return made

    def _run(self, entry: str, *values: Any) -> None:
        grid, block = grid_of(self._device, (), THREADS * self._device.processors)
        self._device.launch("peel", entry, (), grid, block, values)
