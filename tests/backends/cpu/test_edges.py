"""Passes over raw edges whose vertices have an entry each in a table, beyond the size from which this is prefetched."""

from __future__ import annotations

import numpy as np
import pytest

from dasktc.backends import get_backend
from dasktc.backends.cpu.edges import AHEAD, FAR
from dasktc.pipeline.stages.ids import IdRange

EDGES = get_backend("cpu").edges


@pytest.mark.parametrize("width", [FAR, FAR + 1, 3 * FAR])
@pytest.mark.parametrize("rows", [0, 1, AHEAD, AHEAD + 1, 3000])
@pytest.mark.parametrize(("dtype", "low"), [("int32", 0), ("int32", -7), ("int64", 2**40)])
def test_large_tables_are_read_and_written_as_small_ones(width, rows, dtype, low):
    rng = np.random.default_rng(width + rows)
    offsets = rng.integers(0, width, (rows, 2))  # columns of a table of rows: strided
    offsets[: rows // 3] = offsets[rows - rows // 3 :]
    src, dst = (low + offsets).astype(dtype).T
    rank, ids = rng.permutation(width).astype("int32"), IdRange(low, width)

    counts = np.zeros(width, "int32")
    EDGES.count_ends(counts, src, dst, ids)
    assert (counts == np.bincount(offsets.ravel(), minlength=width)).all()

    ranks = np.sort(rank[offsets], axis=1).astype("int64").reshape(-1, 2)
    keys = EDGES.keys(src, dst, ids, 20, rank)
    assert (keys == (ranks[:, 1] << 20 | ranks[:, 0])).all()
