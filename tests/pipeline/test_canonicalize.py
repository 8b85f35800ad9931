"""Rows read, partitions and their sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import Method, Options
from dasktc.pipeline.planes import choose
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.tuning import TUNING
from dasktc.pipeline.prepare import prepare_edges
from tests.support.slow_pipeline import source_of


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 0), (2, 2), (9, 9), (1, 2), (0, 2), (0, 2)]])
@pytest.mark.parametrize("text", [False, True])
def test_rows_read_are_edges_and_what_was_dropped(edges, text):
    """A vertex of a loop alone is none."""
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    found = dasktc.triangle_count(
        frame.astype("str") if text else frame, backend="cpu", method=Method(partition="whole")
    )
    loops = sum(u == v for u, v in edges)
    assert (found.vertices, found.loops_dropped) == (3, loops)
    assert found.edges + found.loops_dropped + found.duplicates_dropped == len(edges)


def test_partitions_are_about_equally_large(monkeypatch):
    monkeypatch.setattr(ProcessPlane, "_sorts_together", lambda plane, keys: False)
    monkeypatch.setattr(ProcessPlane, "partitions", lambda *given: 4)
    edges = np.random.default_rng(1).integers(0, 2**40, (4000, 2)).tolist()
    found = prepare_edges(LocalExecutor(), source_of(edges, parts=3), Options())
    held = [len(keys) for keys in found.graph.partitions]
    assert len(held) == 4
    assert max(held) < 1.5 * sum(held) / 4


def test_few_edges_are_cut_where_memory_is_short(tmp_path):
    roomy, tight = (
        choose(LocalExecutor(FileStore(WorkDir(tmp_path), budget)), Options()) for budget in (1 << 30, 4000)
    )
    assert roomy.partitions(1000) == 1
    most = tight.executor.store.memory_in_parallel // TUNING.edge_bytes["cpu"]
    assert tight.partitions(1000) == -(-1000 // most) > 1
