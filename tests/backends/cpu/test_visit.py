"""Memory of visits."""

import tracemalloc

import numpy as np

from dasktc.backends.cpu import sizes, visit
from dasktc.backends.csr import BlockTask, OrientedCSR


def test_visits_take_what_is_planned_for():
    """For a table with more columns than edges, the columns dominate: a byte and 4 for each."""
    columns = 1 << 20
    wide = OrientedCSR(np.array([0, 2]), np.array([0, columns - 1], np.int32))
    task = BlockTask(OrientedCSR(np.array([0, 1]), np.zeros(1, np.int32)), wide, wide)
    visit.support(task)
    tracemalloc.start()
    visit.support(task)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    planned = sizes.visit_bytes(3, columns)
    assert peak <= planned + (1 << 16)
    assert planned <= peak + (1 << 16)
