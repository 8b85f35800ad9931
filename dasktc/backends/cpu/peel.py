"""Peeling on the CPU: core numbers of vertices and trussness of edges, level by level.

Cores (Batagelj and Zaversnik, arXiv:cs/0310049): at level t vertices with t remaining neighbours are removed, and each
of their neighbours loses one. Trusses (Wang and Cheng, PVLDB 5, 2012, section 4): at level t edges with t remaining
triangles are removed, and for each of these triangles its two other edges lose one; the triangles are found in the rows
of the edge's ends.

* Removed edges wait at their end of smaller id, the hub: the hub's row is marked once for all of them, and the rows of
  the other ends are streamed against the marks. Where few edges wait, or one row is much shorter, its entries are
  searched in the other.
* A row drops its dead entries when they are half of it.
* Levels look for their edges in a window of edges with few more triangles. An edge enters it when it loses the triangle
  that kept it out, so that all edges are scanned only once per window.
"""

# CPU seconds on one core, peeling alone, trussness of all edges:
#                                                predicted   amazon0601  cnr-2000  Kronecker 18
# helpers that Numba inlines, given arrays             0.3          2.0       3.1          14.0  references counted
# one function; triangles found, then counted down                  1.4       0.4           3.9
# a level is the complement of what was left                        1.0       0.4           3.4  a miss less an edge
# Finding an edge's triangles in functions of their own, each inlined once, makes no difference beyond noise: medians of
# 21 and of 15 runs in turns on Kronecker 17 were 1.5 % more and 2.7 % less.

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.intersect import arrays_of
from dasktc.backends.cpu.jit import ConstInt32s, ConstInt64s, Int32Rows, Int32s, Int64s, Kernel, inlined
from dasktc.backends.csr import Array, OrientedCSR
from dasktc.backends.protocol import Peeled

__all__ = ["PEEL"]

U = np.uint64
FEWEST = 16
"""Least number of levels of a window; else it has an eighth of the level, so that a graph has few windows."""
SEARCH = 8
"""Least ratio of the lengths of two rows at which the shorter one's entries are searched in the longer."""
NOBODY = np.int32(-1)


class CpuPeel:
    """Peels vertices and edges on the CPU; implements `Peel`."""

    def rows(self, graph: OrientedCSR) -> Array:
        """The row of every edge, int32."""
        return np.repeat(np.arange(graph.rows, dtype=np.int32), np.diff(graph.offsets))

    def cores(self, graph: OrientedCSR, first: int, last: int) -> Array:
        """As `Peel.cores`."""
        starts = _starts(graph)
        neighbours, degrees = np.empty(2 * graph.edges, np.int32), np.diff(starts).astype(np.int32)
        _fill_neighbours(*arrays_of(graph), starts[:-1].copy(), neighbours)
        _peel_vertices(starts, neighbours, degrees, *(np.empty(graph.rows, np.int32) for _ in range(3)), first, last)
        return _levels(degrees)

    def trusses(self, graph: OrientedCSR, supports: Array, first: int, last: int) -> Peeled:
        """As `Peel.trusses`."""
        starts, rows = _starts(graph), np.empty(graph.edges, np.int32)
        entries, counts = np.empty((2 * graph.edges, 2), np.int32), supports.copy()
        _fill_entries(*arrays_of(graph), starts[:-1].copy(), entries, rows)
        of_edges = [np.empty(graph.edges, np.int32) for _ in range(3)]
        heads, marks, queue = np.full(graph.rows, NOBODY), np.full(graph.rows, NOBODY), np.empty(graph.rows, np.int32)
        live = np.diff(starts).astype(np.int32)
        others = np.empty(2 * int(live.max(initial=0)), np.int32)
        arrays = starts[:-1].copy(), starts[1:].copy(), live, entries, rows, arrays_of(graph)[1], counts
        triangles = _peel_edges(*arrays, *of_edges, heads, marks, queue, others, first, last)
        return Peeled(_levels(counts), counts, int(triangles))


def _levels(left: Array) -> Array:
    """The level at which each vertex or edge was removed, whose complement is in `left`; -1 for those that stay."""
    return np.where(left < 0, ~left, NOBODY)


def _starts(graph: OrientedCSR) -> Array:
    """Starts of the rows of all neighbours, and the end of the last row."""
    starts = np.zeros(graph.rows + 1, np.int64)
    np.cumsum(np.diff(graph.offsets) + np.bincount(graph.columns, minlength=graph.rows), out=starts[1:])
    return starts


@Kernel
def _fill_neighbours(offsets: ConstInt64s, columns: ConstInt32s, place: Int64s, neighbours: Int32s) -> None:
    """Fill the rows of all neighbours; they ascend because columns are below their row and rows come in order."""
    for u in range(len(offsets) - 1):
        for p in range(U(offsets[u]), U(offsets[u + 1])):
            v = U(columns[p])
            neighbours[U(place[u])] = columns[p]
            neighbours[U(place[v])] = u
            place[u] += 1
            place[v] += 1


@Kernel
def _fill_entries(offsets: ConstInt64s, columns: ConstInt32s, place: Int64s, entries: Int32Rows, rows: Int32s) -> None:
    """As `_fill_neighbours`, with the edge of each neighbour, which is its place in the columns."""
    for u in range(len(offsets) - 1):
        for p in range(U(offsets[u]), U(offsets[u + 1])):
            v = U(columns[p])
            tail_place, head_place = U(place[u]), U(place[v])
            entries[tail_place, 0], entries[tail_place, 1] = columns[p], p
            entries[head_place, 0], entries[head_place, 1] = u, p
            rows[p] = u
            place[u] += 1
            place[v] += 1


@inlined
def _gone(numbers: Array, count: Any, left: Array) -> Any:
    """Compact the numbers of what is left, in place; return how many there are."""
    size = 0
    for place in range(U(count)):
        number = numbers[place]
        if left[U(number)] >= 0:
            numbers[U(size)] = number
            size += 1
    return size


@inlined
def _least(numbers: Array, count: Any, left: Array) -> Any:
    least = left[U(numbers[0])]
    for place in range(U(count)):
        least = min(least, left[U(numbers[place])])
    return np.int64(least)


@inlined
def _below(numbers: Array, count: Any, left: Array, end: Any, below: Array) -> Any:
    """Copy the numbers of those with fewer than `end` left; return how many there are."""
    size = 0
    for place in range(U(count)):
        number = numbers[place]
        if left[U(number)] < end:
            below[U(size)] = number
            size += 1
    return size


@inlined
def _next_window(numbers: Array, count: Any, left: Array, level: Any, window: Array) -> Any:
    """Fill the next non-empty window; return how many are left, its first level, its end, and its size."""
    remaining = _gone(numbers, count, left)
    end, inside = level, 0
    if remaining > 0:
        level = max(level, _least(numbers, remaining, left))
        end = level + max(FEWEST, level >> 3)
        inside = _below(numbers, remaining, left, end, window)
    return remaining, level, end, inside


@Kernel
def _peel_vertices(
    starts: Int64s,
    neighbours: Int32s,
    left: Int32s,
    alive: Int32s,
    window: Int32s,
    queue: Int32s,
    first: int,
    final: int,
) -> None:
    """Remove the vertices of the levels from `first` to `final`."""
    remaining, level, end, inside = len(left), first - 1, 0, 0
    v: Any
    for v in range(remaining):
        alive[v] = v
    while remaining > 0:
        level += 1
        if level >= end:
            remaining, level, end, inside = _next_window(alive, remaining, left, level, window)
        if remaining == 0 or level > final:
            break
        # What the window holds at this level begins the queue; what has a lower level has left the window.
        waiting = size = 0
        for place in range(U(inside)):
            v = window[place]
            if 0 <= left[U(v)] <= level:
                queue[U(waiting)] = v
                left[U(v)] = ~level
                waiting += 1
            elif left[U(v)] > level:
                window[U(size)] = v
                size += 1
        # A removed vertex takes one from each neighbour, which falls to this level, or into the window.
        inside, done = size, 0
        while done < waiting:
            v = U(queue[U(done)])
            done += 1
            for q in range(U(starts[v]), U(starts[v + U(1)])):
                w = U(neighbours[q])
                if left[w] <= level:
                    continue
                left[w] -= 1
                if left[w] == level:
                    queue[U(waiting)] = w
                    left[w] = ~level
                    waiting += 1
                elif left[w] == end - 1:
                    window[U(inside)] = w
                    inside += 1


@inlined
def _compact(vertex: Any, starts: Array, stops: Array, entries: Array, left: Array) -> None:
    """Drop the dead entries of a row."""
    place = U(starts[vertex])
    for q in range(U(starts[vertex]), U(stops[vertex])):
        neighbour, edge = entries[q, 0], entries[q, 1]
        entries[place, 0], entries[place, 1] = neighbour, edge
        place += U(left[U(edge)] >= 0)
    stops[vertex] = np.int64(place)


@inlined
def _wait_at_hub(
    edge: Any, columns: Array, heads: Array, following: Array, queue: Array, ring: Any, queued: Any
) -> Any:
    """Have an edge wait at its hub, and queue the hub unless it is queued; return the queue's next place and length."""
    hub = columns[U(edge)]
    if heads[U(hub)] == NOBODY:
        queue[U(ring)] = hub
        queued, ring = queued + 1, ring + 1
        if ring == len(queue):
            ring = 0
    following[U(edge)] = heads[U(hub)]
    heads[U(hub)] = edge
    return ring, queued


@inlined
def _entries_to_stream(waiting: Any, rows: Array, starts: Array, stops: Array, following: Array, length: Any) -> Any:
    """Number of entries that would be streamed: those in the other ends' rows of the waiting edges."""
    total = 0
    while waiting != NOBODY:
        u = U(rows[U(waiting)])
        total += min(stops[u] - starts[u], SEARCH * length)
        waiting = following[U(waiting)]
    return total


@inlined
def _others_by_marks(entries: Array, head: Any, tail: Any, marks: Array, left: Array, others: Array) -> Any:
    """Note the two other edges of each remaining triangle of an edge, by its hub row's marks; return their number."""
    written = U(0)
    for q in range(U(head), U(tail)):
        g = marks[U(entries[q, 0])]
        if g != NOBODY and left[U(g)] >= 0 and left[U(entries[q, 1])] >= 0:
            others[written] = g
            others[written + U(1)] = entries[q, 1]
            written += U(2)
    return written


@inlined
def _others_by_search(entries: Array, head: Any, tail: Any, low: Any, behind: Any, left: Array, others: Array) -> Any:
    """As `_others_by_marks`, but search each entry of one end's row in the other's, from where the last one ended."""
    written = U(0)
    for q in range(U(head), U(tail)):
        w, high = entries[q, 0], behind
        while low < high:
            middle = (low + high) >> 1
            if entries[U(middle), 0] < w:
                low = middle + 1
            else:
                high = middle
        if low == behind:
            break
        if entries[U(low), 0] == w:
            f, g = entries[q, 1], entries[U(low), 1]
            if left[U(f)] >= 0 and left[U(g)] >= 0:
                others[written] = f
                others[written + U(1)] = g
                written += U(2)
    return written


@Kernel
def _peel_edges(
    starts: Int64s,
    stops: Int64s,
    live: Int32s,
    entries: Int32Rows,
    rows: Int32s,
    columns: ConstInt32s,
    left: Int32s,
    alive: Int32s,
    window: Int32s,
    following: Int32s,
    heads: Int32s,
    marks: Int32s,
    queue: Int32s,
    others: Int32s,
    begin: int,
    final: int,
) -> int:
    """Remove the edges of the levels from `begin` to `final`; return the number of removed triangles."""
    remaining, level, end, triangles = len(left), begin - 1, 0, np.int64(0)
    inside = 0  # edges in the window
    v: Any
    e: Any
    for e in range(remaining):
        alive[e] = e
    while remaining > 0:
        level += 1
        if level >= end:
            remaining, level, end, inside = _next_window(alive, remaining, left, level, window)
        if remaining == 0 or level > final:
            break
        # Edges of this level wait at their hubs, which are in a ring, each at most once; earlier ones leave the window.
        ring = queued = done = turn = size = 0
        for place in range(U(inside)):
            e = window[place]
            if 0 <= left[U(e)] <= level:
                ring, queued = _wait_at_hub(e, columns, heads, following, queue, ring, queued)
            elif left[U(e)] > level:
                window[U(size)] = e
                size += 1
        inside = size
        # Take the edges that wait at one hub after another; its row is marked if that is worth it.
        while done < queued:
            v = U(queue[U(turn)])
            done, turn = done + 1, turn + 1
            if turn == len(queue):
                turn = 0
            e = heads[v]
            heads[v] = NOBODY
            first, last = starts[v], stops[v]
            if last - first > 2 * np.int64(live[v]):
                _compact(v, starts, stops, entries, left)
                last = stops[v]
            length = last - first
            marked = SEARCH * _entries_to_stream(e, rows, starts, stops, following, length) > length
            if marked:
                for q in range(U(first), U(last)):
                    marks[U(entries[q, 0])] = entries[q, 1]
            while e != NOBODY:
                u = U(rows[U(e)])
                head, tail = starts[u], stops[u]
                if tail - head > 2 * np.int64(live[u]):
                    _compact(u, starts, stops, entries, left)
                    tail = stops[u]
                if marked and tail - head <= SEARCH * length:
                    written = _others_by_marks(entries, head, tail, marks, left, others)
                else:
                    short, stop, low, behind = head, tail, first, last
                    if tail - head > length:
                        short, stop, low, behind = first, last, head, tail
                    written = _others_by_search(entries, short, stop, low, behind, left, others)
                # Each of the other edges loses a triangle, and falls to this level, or into the window.
                triangles += np.int64(written >> U(1))
                for number in range(written):
                    f = others[number]
                    triangles_left = left[U(f)] - 1
                    if triangles_left < level:
                        continue  # it is removed at this level, too
                    left[U(f)] = triangles_left
                    if triangles_left == level:
                        ring, queued = _wait_at_hub(f, columns, heads, following, queue, ring, queued)
                    elif triangles_left == end - 1:
                        window[U(inside)] = f
                        inside += 1
                left[U(e)] = ~level
                live[u] -= 1
                live[v] -= 1
                e = following[U(e)]
            if marked:
                for q in range(U(first), U(last)):
                    marks[U(entries[q, 0])] = NOBODY
    return int(triangles)


PEEL = CpuPeel()
