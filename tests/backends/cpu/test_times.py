"""Triangles by the times of their edges, against loops over sets with Python's integers."""

import tracemalloc
from collections import Counter
from itertools import product

import numpy as np
import pytest

from dasktc.backends.cpu import sizes
from dasktc.backends.cpu.times import time_counts
from dasktc.backends.csr import BlockTask, OrientedCSR
from tests.backends.cpu.test_kernels import block, clique, neighbours, random_edges, tasks, wedges_of

LEAST, MOST = -(2**63), 2**63 - 1
TIMES = {
    "equal": [MOST],
    "both ends": [LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST],
    "powers of two": [0, *(2**k - 1 for k in range(1, 64)), *(2**k for k in range(63))],
    "days": range(300),
}
GRAPHS = {
    "nothing": (0, []),
    "path": (9, [(u, u - 1) for u in range(1, 9)]),
    "triangle among empty rows": (40, [(31, 2), (11, 2), (31, 11)]),
    "sparse": (99, random_edges(99, 400, 1)),
    "clique": (20, clique(20)),
}
WINDOWS = [0, 150, 2**53 + 1, 2**63, 2**64 - 1]


def drawn(edges, values, seed):
    """A time of each edge."""
    return dict(zip(edges, np.random.default_rng(seed).choice(values, len(edges)).tolist(), strict=True))


def expected(times, window):
    """Triangles by bit lengths, and those within the window."""
    rows, bins, within = neighbours(times), Counter(), 0
    for u, v in times:
        for w in rows[u] & rows.get(v, set()):
            first, second, third = sorted((times[u, v], times[u, w], times[v, w]))
            bins[(second - first).bit_length(), (third - first).bit_length()] += 1
            within += third - first <= window
    return bins, within


def times_of(block, times):
    """The time of each of a block's edges, not to be written to, as on a worker."""
    rows = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets))).tolist()
    values = np.array(
        [times[edge] for edge in zip(rows, block.column_ids(block.columns).tolist(), strict=True)], np.int64
    )
    values.flags.writeable = False
    return values


def found(of_tasks, times, window):
    """The sums over tasks, in the form of `expected`, and the wedges."""
    results = [
        time_counts(task, tuple(times_of(of, times) for of in (task.index, task.table, task.stream)), window)
        for task in of_tasks
    ]
    counts, within, wedges = map(sum, zip(*results, strict=True))
    bins = {place: int(counts[place]) for place in zip(*(at.tolist() for at in counts.nonzero()), strict=True)}
    return bins, within, wedges


def ranges_of_edges(edges, vertices):
    """Tasks of a whole graph, whose index blocks are thirds of its edges, each split by rows."""
    whole = block(edges, vertices)
    for part, split in product(range(3), range(2)):
        cut = whole.edge_range(whole.edges * part // 3, whole.edges * (part + 1) // 3)
        yield BlockTask(cut, whole, whole, split, 2)


SHAPES = {
    "whole": tasks,
    "splits": lambda edges, vertices: tasks(edges, vertices, splits=3),
    "edges": ranges_of_edges,
    "hash2d": lambda edges, vertices: tasks(edges, vertices, parts=3),
    "hash2d, unordered": lambda edges, vertices: tasks(edges, vertices, parts=2, ordered=False),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("values", TIMES)
def test_every_shape_of_tasks(name, values):
    vertices, edges = GRAPHS[name]
    for number, (shape, of_tasks) in enumerate(SHAPES.items()):
        times, window = drawn(edges, TIMES[values], number), WINDOWS[number]
        assert found(of_tasks(edges, vertices), times, window) == (*expected(times, window), wedges_of(edges)), shape


def test_differences_of_every_bit_length():
    """The smallest and the largest span of each bit length, from either end of int64."""
    edges = [(1, 0), (2, 0), (2, 1)]
    for exponent, change in product(range(65), [-1, 0]):
        span = min((1 << exponent) + change, 2**64 - 1)
        for first, opening in ((LEAST, span // 2), (LEAST, 0), (MOST - span, span)):
            values, turn = [first, first + opening, first + span], exponent % 3
            times = dict(zip(edges, values[turn:] + values[:turn], strict=True))
            bins, within, _ = found(tasks(edges, 3), times, span)
            assert (bins, within) == ({(opening.bit_length(), span.bit_length()): 1}, 1)
            if span:
                assert found(tasks(edges, 3), times, span - 1)[1] == 0


def test_memory_is_what_is_planned_for():
    columns = 1 << 18
    row = OrientedCSR(np.array([0, columns]), np.arange(columns, dtype=np.int32))
    task = BlockTask(OrientedCSR(np.array([0, 1]), np.zeros(1, np.int32)), row, row)
    times = np.zeros(1, np.int64), np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    time_counts(task, times, 0)
    tracemalloc.start()
    counts, within, _ = time_counts(task, times, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts[0, 0] == within == columns
    planned = sizes.times_bytes(columns)
    assert peak <= planned <= 1.25 * peak
