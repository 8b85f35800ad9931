"""What goes to a file when results do not fit in memory."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from dasktc.executors.stores.file_store import FileStore, SpillableResult
from dasktc.executors.stores.work_dir import WorkDir


class Noting:
    """A value that notes which of Arrow's pools is used while it is pickled, and while it is read again."""

    pools: ClassVar[list[str]] = []

    def __init__(self):
        self.note()

    def note(self):
        self.pools.append(pa.default_memory_pool().backend_name)

    def __reduce__(self):
        self.note()
        return Noting, ()


def spilling(folder, budget):
    return FileStore(WorkDir(folder), budget, small=1)


def test_what_does_not_fit_beside_the_others_goes_to_a_file(tmp_path):
    store = spilling(tmp_path, 40_000)  # a quarter for results
    kept = [store.keep(np.zeros(4_000, np.uint8)) for _ in range(3)]
    assert [isinstance(handle, SpillableResult) for handle in kept] == [True, True, False]


def test_the_largest_results_go_first(tmp_path):
    store = spilling(tmp_path, 40_000)
    small, large = (store.keep(np.zeros(size, np.uint8)) for size in (2_000, 7_000))
    store.set_task_memory(36_000)
    assert (small.stored is None, large.stored is None) == (True, False)


def test_arrow_s_values_are_freed_to_the_system_during_calls_alone(tmp_path):
    """Arrow's own pool keeps memory that lies between other values, also where a call fails or calls another."""
    store, pool = spilling(tmp_path, 40_000), pa.default_memory_pool().backend_name
    names = list[str]()

    def note():
        names.append(pa.default_memory_pool().backend_name)

    def outer():
        store.call(note, [])
        note()

    store.call(outer, [])
    with pytest.raises(ZeroDivisionError):
        store.call(lambda: 1 // 0, [])
    assert names == ["system", "system"]
    assert pa.default_memory_pool().backend_name == pool


def test_arrow_s_own_pool_is_not_used_where_results_are_kept_and_loaded(tmp_path):
    """Its first byte takes 2 MB."""
    store, value = FileStore(WorkDir(tmp_path), 0, small=1), Noting()  # in files
    Noting.pools.clear()
    for result in (value, iter([value])):
        store.load(store.keep(result))
    assert Noting.pools == 4 * ["system"]
