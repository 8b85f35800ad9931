"""Cliques of 3 to 5 vertices of an oriented graph in one block: the out-neighbourhoods as matrices of bits, ANDed.

Of every clique one vertex, u, has all others as targets. The edges among a row's d targets are d·d bits: bit i of line
j says that the j-th target points to the i-th. Lines j and i of an edge ANDed are what closes a clique of four with u,
v and w; those ANDed with a third line x, what closes one of five (Chiba and Nishizeki, SIAM J. Comput. 14(1), 1985,
doi:10.1137/0214017, section 4, here with sets of bits).

Where every edge points to a smaller id the lines are a lower triangle, and no words are read behind the last bit that
can be set. The words that an AND reads are the work; those of the next size of clique are known when one is counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from dasktc.backends.cpu.instructions import ones
from dasktc.backends.cpu.intersect import TRIPLE, Triple, last_not_above, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Kernel, compiles, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["Cliques", "count", "scratch_bytes"]

U = np.uint64
LONGER = 16
"""Times as long as the row's targets that a target's own row is searched, not read."""


class Cliques(NamedTuple):
    """What a task found.

    Attributes
    ----------
    cliques : int
        Of the size that was asked for.
    work : int
        Words that ANDs for cliques of one vertex more would read.
    wedges : int
        Σ |row(v)| over the task's edges (u, v).
    """

    cliques: int
    work: int
    wedges: int


@inlined
def _set(bits: Array, line: Any, i: Any) -> None:
    bits[U(line) + (U(i) >> U(6))] |= U(1) << (U(i) & U(63))


@inlined
def _lowest(word: Any) -> Any:
    """The place of the lowest bit that is set."""
    return ones((word & (~word + U(1))) - U(1))


@inlined
def _fill(t: Triple, first: Any, last: Any, ordered: Any, words: Any, place: Array, bits: Array) -> None:
    """Set the bits of the edges among a row's targets."""
    offsets, columns = t.stream, t.stream_columns
    for p in range(first, last):
        place[U(columns[p])] = p - first + 1
    for j in range(last - first):
        v, line = U(columns[U(first + j)]), j * words
        begin, end = offsets[v], offsets[v + U(1)]
        few = j if ordered else last - first
        if begin == end or few == 0:
            continue
        if end - begin > LONGER * few:
            at = begin
            for i in range(few):
                x = columns[U(first + i)]
                at = last_not_above(columns, at, end, x)
                if columns[U(at)] == x:
                    _set(bits, line, i)
        else:
            for q in range(begin, end):
                i = place[U(columns[U(q)])]
                if i > 0:
                    _set(bits, line, i - 1)
    for p in range(first, last):
        place[U(columns[p])] = 0


def _count(t: Triple, size: int, ordered: bool, place: Array, bits: Array, both: Array) -> Any:
    offsets, columns = t.stream, t.stream_columns
    cliques = work = wedges = np.int64(0)
    for u in range(t.begin, t.end):
        first, last = offsets[u], offsets[u + 1]
        wedges += wedges_of(columns, first, last, offsets)
        degree = last - first
        if degree < size - 1:
            continue
        words = (degree + 63) >> 6
        bits[: degree * words] = 0
        _fill(t, first, last, ordered, words, place, bits)
        for j in range(degree):
            reach = (j + 63) >> 6 if ordered else words
            for w in range(reach):
                word = bits[U(j * words + w)]
                if size == 3:
                    more = np.int64(ones(word))
                    cliques += more
                    work += more * (w + 1 if ordered else words)
                    continue
                while word:
                    i = (w << 6) + np.int64(_lowest(word))
                    word &= word - U(1)
                    near = (w + 1) if ordered else words
                    for k in range(near):
                        common = bits[U(j * words + k)] & bits[U(i * words + k)]
                        if size == 4:
                            more = np.int64(ones(common))
                            cliques += more
                            work += more * (k + 1 if ordered else words)
                        both[U(k)] = common
                    if size == 5:
                        for k in range(near):
                            common = both[U(k)]
                            while common:
                                x = (k << 6) + np.int64(_lowest(common))
                                common &= common - U(1)
                                for m in range(k + 1 if ordered else words):
                                    cliques += np.int64(ones(both[U(m)] & bits[U(x * words + m)]))
    return cliques, work, wedges


_words = types.Array(types.uint64, 1, "C")
_places = types.Array(types.int32, 1, "C")
count_rows = Kernel(_count, (TRIPLE, types.int64, types.boolean, _places, _words, _words))


def scratch_bytes(vertices: int, longest: int) -> int:
    """Bytes that `count` allocates for a graph of so many vertices, beside its block.

    Parameters
    ----------
    vertices : int
    longest : int
        Entries of the longest row.
    """
    words = -(-longest // 64)
    return 4 * vertices + 8 * words * (longest + 1)


@compiles(count_rows)
def count(task: BlockTask, size: int) -> Cliques:
    """Count the cliques of `size` vertices that the rows of a task are the first vertex of.

    Parameters
    ----------
    task : BlockTask
        Its three blocks are one, in memory, in which no vertices point to each other in a circle.
    size : int
        3, 4 or 5.
    """
    t = triple(task)
    longest = longest_row(t.stream[t.begin : t.end + 1]) if t.end > t.begin else 0
    words = -(-longest // 64)
    scratch = np.zeros(task.index.rows, np.int32), np.empty(longest * words, np.uint64), np.empty(words, np.uint64)
    return Cliques(*map(int, count_rows(t, size, task.index.ordered, *scratch)))
