"""Triangles by vertex in shards."""

from types import SimpleNamespace

import numpy as np
import pytest

from dasktc.answers import vertex_counts
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor


def test_vertices_in_shards_that_do_not_add_up_are_refused():
    graph = SimpleNamespace(
        executor=LocalExecutor(),
        plan=SimpleNamespace(shards=2),
        prepared=SimpleNamespace(
            graph=SimpleNamespace(order=SimpleNamespace(starts=(0, 3, 5))),
            partition=SimpleNamespace(numbering=lambda side: (0, 1)),
        ),
    )
    made = vertex_counts._merged(graph, {0: np.array([1, 1, 1, 0, 0])}, 1)
    assert [part.tolist() for part in made.parts] == [[1, 1, 1], [0, 0]]
    with pytest.raises(CountError, match="add up"):
        vertex_counts._merged(graph, {0: np.array([1, 1, 1, 0, 0])}, 2)
