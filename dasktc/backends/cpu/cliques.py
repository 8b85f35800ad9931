"""Cliques of 3 to 5 vertices in a graph of one block: rows of out-neighbourhoods' bit matrices are ANDed.

In every clique one vertex, u, has all others as targets. The edges among a row's d targets are d·d bits: bit i of line
j says that the j-th target points to the i-th. The AND of lines j and i of an edge gives the vertices that close a
clique of four with u, v and w; a further AND with a third line x, those that close a clique of five (Chiba and
Nishizeki, SIAM J. Comput. 14(1), 1985, doi:10.1137/0214017, section 4, here with sets of bits).

Where every edge points to a smaller id, the lines are a lower triangle, and no words are read behind the last bit that
can be set. The work is the number of words that ANDs read; counting one size of clique yields the words for the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.cpu.instructions import ones, trailing_zeros
from dasktc.backends.cpu.intersect import Triple, last_not_above, longest_row, triple, wedges_of
from dasktc.backends.cpu.jit import Int32s, Kernel, Words, inlined
from dasktc.backends.csr import Array, BlockTask

__all__ = ["Cliques", "count", "scratch_bytes"]

U = np.uint64
LONGER = 16
"""A target's own row is searched instead of read where it is at least this many times as long as the row's targets."""


class Cliques(NamedTuple):
    """Cliques of one size in a task, and the work for the next size."""

    cliques: int
    """Number of cliques of the requested size."""
    work: int
    """Words that ANDs would read to count cliques with one vertex more."""
    wedges: int
    """Σ |row(v)| over the task's edges (u, v)."""


@inlined
def _set(bits: Array, line: Any, i: Any) -> None:
    bits[U(line) + (U(i) >> U(6))] |= U(1) << (U(i) & U(63))


@inlined
def _fill(t: Triple, first: Any, last: Any, ordered: Any, words: Any, place: Array, bits: Array) -> None:
    """Set the bits of the edges among a row's targets."""
    offsets, columns = t.stream, t.stream_columns
    for p in range(first, last):
        place[U(columns[p])] = p - first + 1
    for j in range(last - first):
        v, line = U(columns[U(first + j)]), j * words
        begin, end = offsets[v], offsets[v + U(1)]
        count = j if ordered else last - first
        if begin == end or count == 0:
            continue
        # A much longer row is bisected for the targets, a shorter one looked up in their places.
        if end - begin > LONGER * count:
            position = begin
            for i in range(count):
                x = columns[U(first + i)]
                position = last_not_above(columns, position, end, x)
                if columns[U(position)] == x:
                    _set(bits, line, i)
        else:
            for q in range(begin, end):
                i = place[U(columns[U(q)])]
                if i > 0:
                    _set(bits, line, i - 1)
    for p in range(first, last):
        place[U(columns[p])] = 0


@Kernel
def _count(t: Triple, size: int, ordered: bool, place: Int32s, bits: Words, pair_bits: Words) -> Any:
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
        # A clique is u and size - 1 of its targets: the bits of target j, of i in them, and so on.
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
                    i = (w << 6) + np.int64(trailing_zeros(word))
                    word &= word - U(1)
                    word_count = (w + 1) if ordered else words
                    for k in range(word_count):
                        common = bits[U(j * words + k)] & bits[U(i * words + k)]
                        if size == 4:
                            more = np.int64(ones(common))
                            cliques += more
                            work += more * (k + 1 if ordered else words)
                        pair_bits[U(k)] = common
                    if size == 5:
                        for k in range(word_count):
                            common = pair_bits[U(k)]
                            while common:
                                x = (k << 6) + np.int64(trailing_zeros(common))
                                common &= common - U(1)
                                for m in range(k + 1 if ordered else words):
                                    cliques += np.int64(ones(pair_bits[U(m)] & bits[U(x * words + m)]))
    return cliques, work, wedges


def scratch_bytes(vertices: int, longest: int) -> int:
    """Bytes that `count` allocates beside the block of a graph, from the number of entries of its longest row, too."""
    words = -(-longest // 64)
    return 4 * vertices + 8 * words * (longest + 1)


def count(task: BlockTask, size: int) -> Cliques:
    """Count the cliques of `size` vertices, 3 to 5, whose first vertex is one of the task's rows.

    The task's three blocks are one block, in memory, of an acyclic graph.
    """
    t = triple(task)
    longest = longest_row(t.stream[t.begin : t.end + 1]) if t.end > t.begin else 0
    words = -(-longest // 64)
    scratch = np.zeros(task.index.rows, np.int32), np.empty(longest * words, np.uint64), np.empty(words, np.uint64)
    return Cliques(*map(int, _count(t, size, task.index.ordered, *scratch)))
