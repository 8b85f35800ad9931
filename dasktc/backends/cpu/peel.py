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
MOST = 1 << 31
"""More than any vertex or edge has left."""


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


def _levels(remainders: Array) -> Array:
    """The level at which each vertex or edge was removed, the complement of its remainder; -1 for those that stay."""
    return np.where(remainders < 0, ~remainders, NOBODY)


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
def _with_left(numbers: Array, count: Any, remainders: Array, end: Any, selection: Array) -> Any:
    """Copy the numbers of those with 0 to `end` - 1 left, perhaps in place; return how many there are."""
    size = 0
    for place in range(U(count)):
        number = numbers[place]
        if 0 <= remainders[U(number)] < end:
            selection[U(size)] = number
            size += 1
    return size


@inlined
def _least(numbers: Array, count: Any, remainders: Array) -> Any:
    least = remainders[U(numbers[0])]
    for place in range(U(count)):
        least = min(least, remainders[U(numbers[place])])
    return np.int64(least)


@inlined
def _next_window(numbers: Array, count: Any, remainders: Array, level: Any, window: Array) -> Any:
    """Fill the next non-empty window; return how many are left, its first level, its end, and its size."""
    live_count = _with_left(numbers, count, remainders, MOST, numbers)
    end, window_size = level, 0
    if live_count > 0:
        level = max(level, _least(numbers, live_count, remainders))
        end = level + max(FEWEST, level >> 3)
        window_size = _with_left(numbers, live_count, remainders, end, window)
    return live_count, level, end, window_size


@Kernel
def _peel_vertices(
    starts: Int64s,
    neighbours: Int32s,
    remainders: Int32s,
    alive: Int32s,
    window: Int32s,
    queue: Int32s,
    first: int,
    final: int,
) -> None:
    """Remove the vertices of the levels from `first` to `final`."""
    live_count, level, end, window_size = len(remainders), first - 1, 0, 0
    v: Any
    for v in range(live_count):
        alive[v] = v
    while live_count > 0:
        level += 1
        if level >= end:
            live_count, level, end, window_size = _next_window(alive, live_count, remainders, level, window)
        if live_count == 0 or level > final:
            break
        # What the window holds at this level begins the queue; what has a lower level has left the window.
        queue_size = size = 0
        for place in range(U(window_size)):
            v = window[place]
            if 0 <= remainders[U(v)] <= level:
                queue[U(queue_size)] = v
                remainders[U(v)] = ~level
                queue_size += 1
            elif remainders[U(v)] > level:
                window[U(size)] = v
                size += 1
        # A removed vertex takes one from each neighbour, which falls to this level, or into the window.
        window_size, position = size, 0
        while position < queue_size:
            v = U(queue[U(position)])
            position += 1
            for q in range(U(starts[v]), U(starts[v + U(1)])):
                w = U(neighbours[q])
                if remainders[w] <= level:
                    continue
                remainders[w] -= 1
                if remainders[w] == level:
                    queue[U(queue_size)] = w
                    remainders[w] = ~level
                    queue_size += 1
                elif remainders[w] == end - 1:
                    window[U(window_size)] = w
                    window_size += 1


@inlined
def _compact(vertex: Any, starts: Array, stops: Array, entries: Array, remainders: Array) -> None:
    """Drop the dead entries of a row."""
    place = U(starts[vertex])
    for q in range(U(starts[vertex]), U(stops[vertex])):
        neighbour, edge = entries[q, 0], entries[q, 1]
        entries[place, 0], entries[place, 1] = neighbour, edge
        place += U(remainders[U(edge)] >= 0)
    stops[vertex] = np.int64(place)


@inlined
def _wait_at_hub(
    edge: Any, columns: Array, heads: Array, successors: Array, queue: Array, ring: Any, queue_size: Any
) -> Any:
    """Have an edge wait at its hub, and queue the hub unless it is queued; return the queue's next place and length."""
    hub = columns[U(edge)]
    if heads[U(hub)] == NOBODY:
        queue[U(ring)] = hub
        queue_size, ring = queue_size + 1, ring + 1
        if ring == len(queue):
            ring = 0
    successors[U(edge)] = heads[U(hub)]
    heads[U(hub)] = edge
    return ring, queue_size


@inlined
def _entries_to_stream(edge: Any, rows: Array, starts: Array, stops: Array, successors: Array, length: Any) -> Any:
    """Number of entries that would be streamed: those in the other ends' rows of the waiting edges."""
    total = 0
    while edge != NOBODY:
        u = U(rows[U(edge)])
        total += min(stops[u] - starts[u], SEARCH * length)
        edge = successors[U(edge)]
    return total


@inlined
def _others_by_marks(entries: Array, head: Any, tail: Any, marks: Array, remainders: Array, others: Array) -> Any:
    """Note the two other edges of each remaining triangle of an edge, by its hub row's marks; return their number."""
    other_count = U(0)
    for q in range(U(head), U(tail)):
        g = marks[U(entries[q, 0])]
        if g != NOBODY and remainders[U(g)] >= 0 and remainders[U(entries[q, 1])] >= 0:
            others[other_count] = g
            others[other_count + U(1)] = entries[q, 1]
            other_count += U(2)
    return other_count


@inlined
def _others_by_search(
    entries: Array, head: Any, tail: Any, low: Any, row_end: Any, remainders: Array, others: Array
) -> Any:
    """As `_others_by_marks`, but search each entry of one end's row in the other's, from where the last one ended."""
    other_count = U(0)
    for q in range(U(head), U(tail)):
        w, high = entries[q, 0], row_end
        while low < high:
            middle = (low + high) >> 1
            if entries[U(middle), 0] < w:
                low = middle + 1
            else:
                high = middle
        if low == row_end:
            break
        if entries[U(low), 0] == w:
            f, g = entries[q, 1], entries[U(low), 1]
            if remainders[U(f)] >= 0 and remainders[U(g)] >= 0:
                others[other_count] = f
                others[other_count + U(1)] = g
                other_count += U(2)
    return other_count


@Kernel
def _peel_edges(
    starts: Int64s,
    stops: Int64s,
    live: Int32s,
    entries: Int32Rows,
    rows: Int32s,
    columns: ConstInt32s,
    remainders: Int32s,
    alive: Int32s,
    window: Int32s,
    successors: Int32s,
    heads: Int32s,
    marks: Int32s,
    queue: Int32s,
    others: Int32s,
    begin: int,
    final: int,
) -> int:
    """Remove the edges of the levels from `begin` to `final`; return the number of removed triangles."""
    live_count, level, end, triangles = len(remainders), begin - 1, 0, np.int64(0)
    window_size = 0  # edges in the window
    v: Any
    e: Any
    for e in range(live_count):
        alive[e] = e
    while live_count > 0:
        level += 1
        if level >= end:
            live_count, level, end, window_size = _next_window(alive, live_count, remainders, level, window)
        if live_count == 0 or level > final:
            break
        # Edges of this level wait at their hubs, which are in a ring, each at most once; earlier ones leave the window.
        ring = queue_size = hub_count = turn = size = 0
        for place in range(U(window_size)):
            e = window[place]
            if 0 <= remainders[U(e)] <= level:
                ring, queue_size = _wait_at_hub(e, columns, heads, successors, queue, ring, queue_size)
            elif remainders[U(e)] > level:
                window[U(size)] = e
                size += 1
        window_size = size
        # Take the edges that wait at one hub after another; its row is marked if that is worth it.
        while hub_count < queue_size:
            v = U(queue[U(turn)])
            hub_count, turn = hub_count + 1, turn + 1
            if turn == len(queue):
                turn = 0
            e = heads[v]
            heads[v] = NOBODY
            first, last = starts[v], stops[v]
            if last - first > 2 * np.int64(live[v]):
                _compact(v, starts, stops, entries, remainders)
                last = stops[v]
            length = last - first
            uses_marks = SEARCH * _entries_to_stream(e, rows, starts, stops, successors, length) > length
            if uses_marks:
                for q in range(U(first), U(last)):
                    marks[U(entries[q, 0])] = entries[q, 1]
            while e != NOBODY:
                u = U(rows[U(e)])
                head, tail = starts[u], stops[u]
                if tail - head > 2 * np.int64(live[u]):
                    _compact(u, starts, stops, entries, remainders)
                    tail = stops[u]
                if uses_marks and tail - head <= SEARCH * length:
                    other_count = _others_by_marks(entries, head, tail, marks, remainders, others)
                else:
                    short, stop, low, row_end = head, tail, first, last
                    if tail - head > length:
                        short, stop, low, row_end = first, last, head, tail
                    other_count = _others_by_search(entries, short, stop, low, row_end, remainders, others)
                # Each of the other edges loses a triangle, and falls to this level, or into the window.
                triangles += np.int64(other_count >> U(1))
                for number in range(other_count):
                    f = others[number]
                    triangles_left = remainders[U(f)] - 1
                    if triangles_left < level:
                        continue  # it is removed at this level, too
                    remainders[U(f)] = triangles_left
                    if triangles_left == level:
                        ring, queue_size = _wait_at_hub(f, columns, heads, successors, queue, ring, queue_size)
                    elif triangles_left == end - 1:
                        window[U(window_size)] = f
                        window_size += 1
                remainders[U(e)] = ~level
                live[u] -= 1
                live[v] -= 1
                e = successors[U(e)]
            if uses_marks:
                for q in range(U(first), U(last)):
                    marks[U(entries[q, 0])] = NOBODY
    return int(triangles)


PEEL = CpuPeel()
