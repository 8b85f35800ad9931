"""Values in files, blocks read ahead of their use, and the order of triples that makes this effective."""

import gc
import io
import os
import shutil
import subprocess
import sys
import threading
from itertools import pairwise, zip_longest
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dasktc
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.vertex_maps import TableMap
from dasktc.errors import DasktcError, InputError
from dasktc.executors.base import CPU
from dasktc.executors.dask.worker_state import WorkerState
from dasktc.executors.stores import claims, shared_file_store
from dasktc.executors.stores import prefetch as ahead
from dasktc.executors.stores import value_files as spill
from dasktc.executors.stores.claims import Claim
from dasktc.executors.stores.prefetch import Prefetcher
from dasktc.executors.stores.value_files import ALIGNMENT, flatten, load, store
from dasktc.executors.stores.work_dir import WorkDir, check_place
from dasktc.io.write import write_page
from dasktc.options import RunOptions
from dasktc.pipeline.stages.id_maps import TextMap
from dasktc.planning.schemes import Triple, hash2d

NUMBERS = arrays.arrays(st.sampled_from(["int32", "int64", "bool", "float64"]), arrays.array_shapes(min_side=0))


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return type(a) is type(b) and all(map(same, a, b)) if isinstance(a, list | tuple) else a == b


@pytest.mark.parametrize("mapped", [1, 1 << 30])
@pytest.mark.parametrize("copy", [False, True])
@given(values=st.lists(st.one_of(NUMBERS, NUMBERS.map(np.transpose), st.text(), st.tuples(st.integers(), NUMBERS))))
def test_what_is_written_is_read_back(tmp_path_factory, mapped, copy, values):
    path = str(tmp_path_factory.mktemp("spill") / "file")
    with mock.patch.object(spill, "MAPPED", mapped):
        stored = store(path, map(flatten, values), many=True)
        assert same(load(stored, copy), values)
        assert all(same(load(stored.section(k), copy), value) for k, value in enumerate(values))
    assert os.path.getsize(path) == stored.nbytes == sum(stored.section(k).nbytes for k in range(len(values)))
    assert not any(start % ALIGNMENT for start in stored.starts.tolist())


@pytest.mark.parametrize("mapped", [1, 1 << 30])
@pytest.mark.parametrize("copy", [False, True])
def test_what_stages_hand_on(tmp_path, mapped, copy):
    values = [
        pd.DataFrame({"src": [1, 2], "dst": [2**40, 5]}),
        pd.DataFrame({"src": ["a", "bc"], "dst": ["", "d"]}, dtype="str"),
        OrientedCSR(np.array([0, 1]), np.array([7], "int32"), 3, 1, 2, True, (1, 2)),
        TableMap(3, np.arange(4, dtype="int32"), np.arange(4)),
        TextMap(pa.array(["x", "yz"], pa.large_string()), CPU),
    ]
    with mock.patch.object(spill, "MAPPED", mapped):
        frame, text, block, table, names = load(store(str(tmp_path / "f"), map(flatten, values), True), copy)
    pd.testing.assert_frame_equal(frame, values[0])
    pd.testing.assert_frame_equal(text, values[1])
    assert (block.stride, block.ordered, block.place) == (3, True, (1, 2))
    assert block.columns.ctypes.data % 8 == 0
    assert (block.offsets.tolist(), block.columns.tolist(), table.table.tolist()) == ([0, 1], [7], [0, 1, 2, 3])
    assert names.ids.equals(values[4].ids)


@pytest.mark.parametrize("mapped", [1, 1 << 30])
def test_nobody_changes_a_file_by_its_arrays(tmp_path, mapped):
    with mock.patch.object(spill, "MAPPED", mapped):
        stored = store(str(tmp_path / "f"), [flatten(np.arange(9))], many=False)
        load(stored)[:] = 0
        assert load(stored).tolist() == list(range(9))


def test_a_file_goes_with_its_owner_and_arrays_outlive_it(tmp_path):
    path = tmp_path / "f"
    with mock.patch.object(spill, "MAPPED", 1):
        stored = store(str(path), [flatten(np.arange(9))], many=False).owned()
        found = load(stored)
    assert path.exists()
    del stored
    gc.collect()
    assert not path.exists()
    assert found.tolist() == list(range(9))


FREED_IN_ANY_ORDER = """
import random, sys
import numpy as np
from dasktc.bench.measure import resident_bytes
from dasktc.executors.stores.value_files import flatten, load, store

draw, alive, objects, excess = random.Random(1), {}, [], 0
values = [flatten(np.zeros(draw.randrange(1 << 16, 1 << 20), "uint8")) for _ in range(60)]
stored = store(sys.argv[1], values, many=True)
before = resident_bytes()
for turn in range(1_000):
    alive[draw.randrange(30)] = load(stored.section(draw.randrange(60)))
    objects.append(bytes(700))  # what lives on beyond a value in the heap keeps the value's pages there
    if turn % 3 == 0:
        del alive[draw.choice(list(alive))]
    if turn % 10 == 0:
        excess = max(excess, resident_bytes() - before - sum(value.nbytes for value in alive.values()))
alive.clear()
print(excess, resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory of glibc's heap")
def test_memory_of_values_goes_back_whatever_the_order_in_which_they_are_freed(tmp_path):
    """Some 13 MB of values are alive: the process holds these, and 2 MB at most besides, where a heap has 13 MB."""
    command = [sys.executable, "-c", FREED_IN_ANY_ORDER, str(tmp_path / "f")]
    excess, left = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert excess < 2 << 20
    assert left < 2 << 20


def test_a_file_that_was_cut_short_is_refused_in_one_line(tmp_path):
    stored = store(str(tmp_path / "f"), [flatten(np.arange(9))], many=False)
    os.truncate(stored.path, 50)
    with pytest.raises(DasktcError, match=r"ends .* bytes too early; choose one that can be written") as error:
        load(stored)
    assert "\n" not in str(error.value)
    os.unlink(stored.path)
    with pytest.raises(DasktcError, match="No such file"):
        load(stored)


def test_a_full_disk_leaves_no_piece_of_a_file(tmp_path):
    def values():
        yield flatten(np.arange(9))
        raise MemoryError

    with pytest.raises(MemoryError):
        store(str(tmp_path / "f"), values(), many=True)
    full = OSError(28, "No space left on device")
    with (
        mock.patch.object(spill, "_write", side_effect=full),
        pytest.raises(DasktcError, match=r"No space .* memory=\.\.\.$"),
    ):
        store(str(tmp_path / "f"), [flatten(1)], many=False)
    assert list(tmp_path.iterdir()) == []


class FullDisk(io.FileIO):
    """A file that accepts no more bytes, not even when it is closed."""

    def write(self, data):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("size", [1, 100_000], ids=["in the buffer", "beside it"])
def test_a_disk_that_is_full_to_the_end_is_said_in_one_line(tmp_path, monkeypatch, size):
    """Closing a file writes again what was refused, and is refused again."""
    monkeypatch.setattr(spill, "open", lambda path, mode: io.BufferedWriter(FullDisk(path, mode)), raising=False)
    with pytest.raises(DasktcError, match=r"No space .* memory=\.\.\.$"):
        store(str(tmp_path / "f"), [flatten(np.arange(size))], many=False)
    assert list(tmp_path.iterdir()) == []


# The work directory


def test_the_work_directory_is_made_late_and_removed_alone(tmp_path):
    (tmp_path / "mine").touch()
    work = WorkDir(tmp_path)
    assert os.listdir(tmp_path) == ["mine"]
    with open(work.new_path(), "w"):
        assert len(os.listdir(tmp_path)) == 2
    work.close()
    work.close()
    assert os.listdir(tmp_path) == ["mine"]
    assert WorkDir(tmp_path).new_path().startswith(str(tmp_path))  # dropped at once
    gc.collect()
    assert os.listdir(tmp_path) == ["mine"]


def test_a_forked_process_removes_nothing(tmp_path):
    work = WorkDir(tmp_path)
    folder = work.folder
    _, _, (_, (lock,), _), _ = work._claim.release.peek()
    with mock.patch("os.getpid", return_value=-1):
        work.close()
    assert os.path.isdir(folder)
    claims.remove_abandoned(tmp_path)
    assert os.path.isdir(folder)
    lock.release()


def test_its_default_place_is_dask_s(tmp_path):
    import dask

    with dask.config.set({"temporary-directory": str(tmp_path)}):
        assert os.path.dirname(WorkDir().folder) == str(tmp_path)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("{}/missing", "is no folder"),
        ("{}/file", "is no folder"),
        ("{}/" + "a" * 300, "a name has 255 bytes at most"),
        ("", "'' is no path"),
        ("a\0b", "has a null character"),
        (5, "5 is of type int: a path is needed"),
        (b"/tmp", "is of type bytes"),
        (True, "is of type bool"),
    ],
)
def test_a_place_that_is_no_folder_is_refused(tmp_path, place, why):
    (tmp_path / "file").touch()
    place = place.format(tmp_path) if isinstance(place, str) else place
    for door in (dasktc.prepare, dasktc.triangle_count):
        with pytest.raises(InputError, match=rf"(--work-dir |work_dir=).*{why}"):
            door(([0], [1]), run=RunOptions(work_dir=place))


def test_a_place_that_is_not_ours_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="cannot be written to by this user"):
        check_place(tmp_path)


# What killed processes leave

KILLED = """
import os, signal, sys
from dasktc.executors.stores.claims import Claim
from dasktc.executors.stores.work_dir import WorkDir
work, hidden = WorkDir(sys.argv[1]), Claim(sys.argv[1], ".dasktc-")
for name in (work.new_path(), hidden.folder + "/part"):
    open(name, "w").close()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folders_of_a_killed_process_go_with_the_next_run(tmp_path):
    """Those of a living process stay; hidden folders beside outputs use the same class."""
    held = WorkDir(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    hidden, *left = sorted(os.listdir(tmp_path))
    assert (hidden[0], len(left)) == (".", 1)
    there = held.folder
    assert sorted(os.listdir(tmp_path)) == sorted([hidden, *left, os.path.basename(there)])
    WorkDir(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [hidden, os.path.basename(there)]
    write_page("", tmp_path / "page.html")
    assert sorted(os.listdir(tmp_path)) == [os.path.basename(there), "page.html"]


@pytest.mark.parametrize(
    ("name", "locks", "goes"),
    [
        ("{host}-{boot}-0a1b2c3d", True, True),
        ("{host}-{boot}-0a1b2c3d", False, False),
        ("{host}-00aa11bb-0a1b2c3d", True, True),
        ("{host}-00aa11bb-0a1b2c3d", False, True),  # where no locks can be asked for: of an earlier boot
        ("{host}-{boot}-0a1b2c3d.gone", False, True),
        ("{host}2-{boot}-0a1b2c3d", True, False),
        ("{host}-b-{boot}-0a1b2c3d", True, False),
        ("{host}-{boot}-notes of mine", True, False),
        ("notes", True, False),
    ],
)
@pytest.mark.parametrize("made", [os.mkdir, Path.touch, lambda path: path.symlink_to(path.parent.parent)])
@pytest.mark.parametrize("user", ["this", "another"])
def test_what_counts_as_abandoned(tmp_path, monkeypatch, name, locks, goes, made, user):
    if not locks:
        monkeypatch.setattr(claims.locket, "lock_file", mock.Mock(side_effect=OSError(37, "No locks available")))
    folder = tmp_path / f"dasktc-{name.format(host=claims._host(), boot=claims._boot())}"
    made(folder)
    if user == "another":
        monkeypatch.setattr(os, "getuid", lambda: -1)
    claims.remove_abandoned(tmp_path)
    assert os.path.lexists(folder) != (goes and made is os.mkdir and user == "this")


def test_a_folder_that_was_taken_for_abandoned_before_it_was_locked(tmp_path):
    """Another process intervened between making and locking it, so it is made again."""
    honest, seen = claims._locked, []

    def slow(folder, timeout):
        seen.append(folder)
        if len(seen) == 1:
            shutil.rmtree(folder)
        lock = honest(folder, timeout)
        if len(seen) == 2:
            os.rename(folder, f"{folder}.gone")
        return lock

    with mock.patch.object(claims, "_locked", slow):
        claim = Claim(tmp_path)
    assert (claim.folder, len(set(seen))) == (seen[2], 3)
    claim.release()
    claims.remove_abandoned(tmp_path)
    assert os.listdir(tmp_path) == []
    with mock.patch.object(claims.locket, "lock_file", side_effect=OSError(37, "No locks available")):
        claim = Claim(tmp_path)
    assert os.listdir(tmp_path) == [os.path.basename(claim.folder)]
    claim.release()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("module", "name"), [(os, "mkdir"), (claims, "_locked"), (os, "rename"), (shutil, "rmtree")])
def test_a_signal_at_any_moment_leaves_no_folder(tmp_path, monkeypatch, module, name):
    """Signals come between making and locking it, and between renaming it and removing its contents."""
    honest, calls = getattr(module, name), []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            return honest(*args, **options)
        if name in ("mkdir", "rename"):
            honest(*args, **options)
        raise SystemExit(143)

    monkeypatch.setattr(module, name, interrupted)

    def made_and_released():
        claim = Claim(tmp_path)
        claim.release()

    with pytest.raises(SystemExit):
        made_and_released()
    assert calls
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_a_task_that_still_runs_finds_no_place_to_write(tmp_path, monkeypatch):
    """Files written into a folder that is being removed would stay."""
    claim, honest, late = Claim(tmp_path), shutil.rmtree, []

    def slow(folder, **options):
        with pytest.raises(FileNotFoundError):
            Path(claim.folder, "late").touch()
        late.append(folder)
        honest(folder, **options)

    monkeypatch.setattr(claims.shutil, "rmtree", slow)
    claim.release()
    assert late
    assert os.listdir(tmp_path) == []


# Reading ahead


def stored_blocks(folder, sizes):
    return [store(str(folder / str(k)), [flatten(np.full(size, k))], False) for k, size in enumerate(sizes)]


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    calls=st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=3), max_size=20),
    room=st.integers(0, 2000),
)
def test_values_are_right_and_no_more_is_held_than_there_is_room(tmp_path_factory, sizes, calls, room):
    places = stored_blocks(tmp_path_factory.mktemp("blocks"), sizes)
    calls = [[places[k % len(places)] for k in call] for call in calls]
    with Prefetcher(room) as blocks:
        for call, following in zip_longest(calls, calls[1:]):
            found = blocks.use(call)
            blocks.prepare(following or [])
            assert [found[place].tolist() for place in call] == [load(place).tolist() for place in call]
            assert sum(place.nbytes for place in blocks._values if place not in call) <= room


def test_the_next_task_s_block_is_read_while_this_one_counts(tmp_path):
    """It is not read again when its turn comes."""
    places, readers, read = stored_blocks(tmp_path, [9, 9]), [], threading.Event()

    def noted(place, copy):
        readers.append(threading.current_thread() is threading.main_thread())
        if place is places[1]:
            read.set()
        return load(place, copy)

    with mock.patch.object(ahead, "load", noted), Prefetcher(10_000) as blocks:
        blocks.use(places[:1])
        blocks.prepare(places[1:])
        assert read.wait(10)
        blocks.use(places[1:])
        blocks.use(places)
    assert readers == [False, False]


def test_what_was_used_last_stays(tmp_path):
    places = stored_blocks(tmp_path, [9] * 4)
    with mock.patch.object(ahead, "load", side_effect=load) as reading, Prefetcher(2 * places[0].nbytes) as blocks:
        for k in (0, 1, 2, 0, 3, 0, 2):
            blocks.use([places[k]])
        assert reading.call_count == 4  # 0, 1, 2 and 3; the later 0 and 2 were held


def test_runs_that_share_a_worker_leave_each_other_s_blocks(monkeypatch):
    """The end of one closes only its own prefetcher; that of a dead client's run is closed by the next run."""
    state, drop = WorkerState(), shared_file_store._drop_prefetchers

    monkeypatch.setattr(shared_file_store, "worker_state", lambda worker=None: state)
    of = shared_file_store._prefetcher
    first = of("a", 100)
    drop("b", None)
    assert of("a", 100) is first
    reader = first._reader
    del first
    second = of("b", 100)
    with pytest.raises(RuntimeError, match="after shutdown"):
        reader.submit(len, "")
    drop("a", None)
    assert of("b", 100) is second
    assert of("b", 200) is not second, "another count of the same run"
    drop("b", None)
    assert not state.prefetchers


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_neighbouring_triples_share_two_blocks(n):
    order = [Triple(*(divmod(place, n) for place in places)) for places in hash2d(n).tolist()]
    triples = sorted(order, key=lambda triple: (triple.table, triple.index))
    assert len(set(order)) == n**3
    missing = [len(set(b.places) - set(a.places)) for a, b in pairwise(order)]
    assert sum(missing) <= 1.25 * len(missing)
    assert n < 4 or sum(missing) < 0.7 * sum(len(set(b.places) - set(a.places)) for a, b in pairwise(triples))
