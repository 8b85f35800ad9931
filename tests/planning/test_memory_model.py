"""Bytes of a task's blocks."""

import numpy as np

from dasktc.planning.memory_model import triple_bytes


def test_a_block_that_a_task_has_twice_is_counted_once():
    held = np.array([1, 10, 100])
    triples = [(0, 1, 2), (0, 0, 1), (0, 1, 0), (0, 1, 1), (2, 2, 2)]
    assert triple_bytes(np.array(triples), held).tolist() == [sum(held[k] for k in set(of)) for of in triples]
