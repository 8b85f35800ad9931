"""Parts of objects: what is pickled, and that nothing is copied."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dasktc.io.memory.parts import PART_BYTES
from tests.support.objects import CPU, dask_frame, open_object, table
from tests.support.tiers import some

ROWS = 1_000_000
LARGE = {
    "numpy": lambda n: np.arange(2 * n).reshape(n, 2),
    "pandas": lambda n: pd.DataFrame(np.arange(3 * n).reshape(n, 3)),
    "nullable": lambda n: table(range(n), range(n), dtype="Int64"),
    "arrow integers": lambda n: table(range(n), range(n), dtype="int64[pyarrow]"),
    "text": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str)),
    "objects": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str), dtype=object),
    "categories": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str), dtype="category"),
    "long and short": lambda n: table(["x"] * n, ["x"] * (n - 9) + ["y" * 1_000_000] * 9),
    "views": lambda n: (pa.array([f"id {i:020}" for i in range(n)], pa.string_view()),) * 2,
}


@pytest.mark.parametrize("kind", some(LARGE, lambda kind: kind in ("text", "categories")))
def test_a_part_pickles_its_rows_alone(kind):
    rows = ROWS if kind in ("numpy", "pandas", "text") else ROWS // 2
    source = open_object(LARGE[kind](rows))
    sizes = []
    for part in source.parts:
        buffers = []
        head = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        sizes.append(len(head) + sum(memoryview(buffer).nbytes for buffer in buffers))
        assert len(pickle.dumps(part, protocol=4)) < PART_BYTES + 10_000
        assert len(pickle.dumps(part, protocol=5)) < PART_BYTES + 10_000
    assert len(sizes) > 1
    assert max(sizes) < PART_BYTES + 10_000
    assert sum(len(part.src) for part in source.parts) == rows


def test_nothing_is_copied_without_pickling():
    src, dst = np.arange(2_000_000), np.arange(2_000_000)
    source = open_object((src, pd.Series(dst, copy=False)))
    assert len(source.parts) > 1
    for part in source.parts:
        frame = part.read(CPU)
        assert np.shares_memory(frame["src"].to_numpy(), src)
        assert np.shares_memory(frame["dst"].to_numpy(), dst)


def test_a_dask_part_leaves_its_delayed_behind():
    frame = table(range(ROWS), range(ROWS))
    part = open_object(dask_frame(frame, 2)).parts[1]
    assert part.upstream is not None
    assert len(pickle.dumps(part)) < 1000


@pytest.mark.slow
def test_workers_read_parts_without_a_warning(client):
    frame = pd.DataFrame(np.arange(4_000_000).reshape(-1, 2), columns=["src", "dst"])
    for source in open_object(frame), open_object(dask_frame(frame[:1000])):
        upstream = [None if part.upstream is None else client.compute(part.upstream) for part in source.parts]
        pairs_of = [client.submit(_total, part, above) for part, above in zip(source.parts, upstream, strict=True)]
        total = frame.to_numpy().sum() if upstream[0] is None else frame[:1000].to_numpy().sum()
        assert sum(client.gather(pairs_of)) == total


def _total(part, upstream):
    return int(part.read(CPU, upstream).to_numpy().sum())
