"""Interrupted counts that resume from checkpoints: after errors, after SIGKILL, and from torn and foreign files."""

import errno
import itertools
import json
import os
import re
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc import generate
from dasktc.backends.csr import OrientedCSR
from dasktc.counting import checkpoint
from dasktc.counting import count as counting
from dasktc.counting.checkpoint import FILE, LOCK
from dasktc.counting.tasks import jobs
from dasktc.errors import DasktcError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.io.write import write_edges
from dasktc.options import Method
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.oracle import triangles
from tests.support.processes import apart_from_page, cluster_of, lines, patience, until
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of

EDGES = skewed_edges(80, 600, 3)
EXPECTED = triangles(EDGES)
OPTIONS = {"partition": "hash2d", "parts": 2, "splits": 2}
TASKS = 16


def count(folder, edges=EDGES, **options):
    """Count with this checkpoint; return the result and the number of tasks that really ran."""
    ran = []
    honest = counting.count_jobs

    def counted(tasks, blocks, work):
        ran.extend(work)
        return honest(tasks, blocks, work)

    with mock.patch.object(counting, "count_jobs", counted):
        result = dasktc.triangle_count(source_of(edges), checkpoint=folder, **keywords(**OPTIONS | options))
    return result, len(ran)


def broken_off(folder, after):
    """Run a count that ends with an error once it has so many records."""

    def progress(stage, done, total):
        if stage == "count" and done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dasktc.triangle_count(source_of(EDGES), checkpoint=folder, progress=progress, **keywords(**OPTIONS))


@pytest.mark.parametrize("after", [0, 1, 7, 16])
def test_a_count_goes_on_where_it_was_cut_short(tmp_path, after):
    broken_off(tmp_path, after)
    result, ran = count(tmp_path)
    assert (int(result), ran, len(result._records)) == (EXPECTED, TASKS - after, TASKS)
    plain = dasktc.triangle_count(source_of(EDGES), **keywords(**OPTIONS))
    assert [r.count[:3] for r in result._records] == [r.count[:3] for r in plain._records]
    again, ran = count(tmp_path, verify=1.0)
    assert (int(again), ran, again.stats.verified) == (EXPECTED, 0, TASKS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, LOCK]


def test_on_a_cluster_and_then_here(tmp_path, client):
    result = dasktc.triangle_count(source_of(EDGES), client, checkpoint=tmp_path / "kept", **keywords(**OPTIONS))
    assert int(result) == EXPECTED
    here, ran = count(tmp_path / "kept")
    assert (int(here), ran) == (EXPECTED, 0)


@pytest.mark.parametrize("cut", range(1, 200, 13))
def test_a_torn_line_is_counted_again(tmp_path, cut):
    """The tear may be anywhere: inside the last records, or in the first line before anything else was written."""
    count(tmp_path)
    file = tmp_path / FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    result, ran = count(tmp_path)
    assert int(result) == EXPECTED
    assert ran == len(set(whole.split(b"\n")) - set(whole[:-cut].split(b"\n")) - {b""})
    assert count(tmp_path)[1] == 0
    file.write_bytes(whole[: min(cut, whole.index(b"\n"))])
    assert count(tmp_path)[1] == TASKS


def test_a_changed_record_is_not_believed(tmp_path):
    count(tmp_path)
    file = tmp_path / FILE
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"count": [', b'"count": [1')
    file.write_bytes(b"".join(lines))
    result, ran = count(tmp_path)
    assert (int(result), ran) == (EXPECTED, 1)


@pytest.mark.parametrize(
    ("edges", "options", "differs"),
    [
        ([*EDGES[:-1], (1000, 1001)], {}, "graph [0-9a-f]{32}, vertices"),
        (random_edges(80, 600, 4), {}, "graph [0-9a-f]{32}"),
        (EDGES, {"parts": 3}, "graph .*, parts 2 there, graph .*, parts 3 here"),
        (EDGES, {"splits": 1}, "splits 2 there, splits 1 here"),
        (EDGES, {"kernel": "merge"}, "kernel hub there, kernel merge here"),
        (EDGES, {"reorder": "none"}, "reorder degree there, .*reorder none here"),
    ],
)
def test_a_checkpoint_of_another_count_is_refused(tmp_path, edges, options, differs):
    count(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(InputError, match=f"is of another count: .*{differs}.*; give the options"):
        count(tmp_path, edges, **options)
    assert (tmp_path / FILE).read_bytes() == before


def test_column_parts_are_not_taken_for_another_scheme(tmp_path):
    """It would be refused for an option that nobody gave."""
    dasktc.triangle_count(
        source_of(EDGES), checkpoint=tmp_path, method=Method(partition="vertical", parts=2, column_parts=3)
    )
    with pytest.raises(InputError, match=r"another count: .*, partition vertical, column_parts 3 there, .*"):
        dasktc.triangle_count(source_of(EDGES), checkpoint=tmp_path, method=Method(partition="hash2d"))


def test_an_order_that_had_another_meaning_is_refused_by_the_ids_of_its_blocks(tmp_path):
    """`collective` once meant bands: under the same name, blocks with other ids belong to another count."""
    count(tmp_path, reorder="collective-banded")
    changed(tmp_path, 0, lambda line: line | {"reorder": "collective"})
    with pytest.raises(InputError, match=r"is of another count: graph [0-9a-f]{32} there, graph [0-9a-f]{32} here; "):
        count(tmp_path, reorder="collective")


def test_what_only_the_one_that_was_begun_was_given_is_named(tmp_path):
    graph = dasktc.prepare(
        EDGES, backend="cpu", method=Method(partition="vertical", parts=2, column_parts=2, kernel="hub")
    )
    graph.triangle_count(checkpoint=tmp_path)
    other = dasktc.prepare(EDGES, backend="cpu", method=Method(partition="vertical", parts=2, kernel="hub"))
    with pytest.raises(InputError, match="another count: column_parts 2 there, column_parts not given here; give"):
        other.triangle_count(checkpoint=tmp_path)


COUNT = [1, 2, 3, 0, 0.5]
HUGE = "9" * 5000
DEEP = "[" * 20_000 + "]" * 20_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The checkpoint of a finished count."""
    folder = tmp_path_factory.mktemp("finished")
    count(folder)
    return (folder / FILE).read_bytes()


def changed(folder, number, change):
    """Change a line of a finished checkpoint, and correct its checksum."""
    file = folder / FILE
    lines = file.read_bytes().splitlines()
    text = change(json.loads(lines[number].rpartition(b"\t")[0]))
    text = text.encode() if isinstance(text, str) else json.dumps(text).encode()
    lines[number] = text + b"\t" + checkpoint._checksum(text)
    file.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (3, lambda line: line | {"count": [9, 8, 9, 0, 0.1]}, r"line 4 has an impossible count, \[9, 8, "),
        (3, lambda line: line | {"count": [-1, 8, 9, 0, 0.1]}, "impossible count"),
        (3, lambda line: line | {"count": [1, 8, -9, 0, 0.1]}, "impossible count"),
        (3, lambda line: line | {"count": [1, 1 << 63, 9, 0, 0.1]}, "impossible count"),
        (3, lambda line: line | {"count": [True, 8, 9, 0, 0.1]}, "impossible count"),
        (3, lambda line: line | {"count": [1.0, 8, 9, 0, 0.1]}, "impossible count"),
        (3, lambda line: line | {"count": [1, 8, 9, 0, float("nan")]}, "impossible count"),
        (3, lambda line: line | {"count": [1, 8, 9, 0, float("inf")]}, "impossible count"),
        (3, lambda line: line | {"count": [1, 8, 9, 0, "1"]}, "impossible count"),
        (3, lambda line: line | {"count": [[1], 8, 9, 0, 1]}, "impossible count"),
        (3, lambda line: line | {"count": COUNT[:4]}, "impossible count"),
        (3, lambda line: line | {"count": {"triangles": 1}}, "impossible count"),
        (3, lambda line: line | {"count": None}, "impossible count, None"),
        (3, lambda line: line | {"task": None}, "line 4 has an impossible task, None"),
        (3, lambda line: line | {"task": [[0, 0], [0, 0], [0, 0], 0]}, "impossible task"),
        (3, lambda line: line | {"task": [0] * 6}, "none of this count's 16"),
        (3, lambda line: line | {"task": [9] * 7}, "none of this count's 16"),
        (3, lambda line: line | {"worker": 5}, "impossible worker, 5"),
        (3, lambda line: line | {"worker": "a\nb"}, "impossible worker"),
        (3, lambda line: line | {"worker": "a" * 1001}, "impossible worker"),
        (3, lambda line: line | {"more": 5}, "line 4 is no object of task, count, worker"),
        (3, lambda line: {"task": line["task"], "count": line["count"]}, "line 4 is no object"),
        (3, lambda line: [line], "line 4 is no object"),
        (3, lambda line: None, "line 4 is no object"),
        (3, lambda line: "{", "line 4 is no JSON"),
        (3, lambda line: HUGE, "line 4 is no JSON"),
        (3, lambda line: DEEP, "line 4 is no JSON"),
        (0, lambda line: [line], "line 1 is no object of graph, vertices"),
        (0, lambda line: None, "line 1 is no object"),
        (0, lambda line: 5, "line 1 is no object"),
        (0, lambda line: HUGE, "line 1 is no JSON"),
        (0, lambda line: line | {"parts": "2"}, "line 1 has an impossible parts, '2'"),
        (0, lambda line: line | {"parts": 0}, "impossible parts, 0"),
        (0, lambda line: line | {"splits": True}, "impossible splits, True"),
        (0, lambda line: line | {"partition": None}, "impossible partition, None"),
        (0, lambda line: line | {"edges": -1}, "impossible edges, -1"),
        (0, lambda line: line | {"graph": "x"}, "impossible graph, 'x'"),
        (0, lambda line: {name: line[name] for name in line if name != "parts"}, "line 1 is no object"),
    ],
)
def test_what_no_task_reports_is_refused(tmp_path, finished, number, change, why):
    """It is refused whatever the checksum says, and nothing is written."""
    (tmp_path / FILE).write_bytes(finished)
    changed(tmp_path, number, change)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(InputError, match=f"cannot be trusted: .*{why}.*; choose another") as caught:
        count(tmp_path)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("number", [0, 1, 2], ids=["triangles", "wedges", "probes"])
def test_a_task_with_two_counts_is_refused(tmp_path, finished, number):
    """Its seconds, and the bucket that was longest, may differ: both runs counted it."""
    file = tmp_path / FILE
    file.write_bytes(finished)
    line = file.read_bytes().splitlines(keepends=True)[3]
    file.write_bytes(file.read_bytes() + line)
    assert count(tmp_path)[1] == 0
    file.write_bytes(file.read_bytes() + line)
    changed(tmp_path, -1, lambda line: line | {"count": [*line["count"][:3], 7, 0.125]})
    assert count(tmp_path)[1] == 0

    def another(line):
        line["count"][number] += 1 if number else -1  # no more triangles than wedges
        return line

    changed(tmp_path, -1, another)
    with pytest.raises(InputError, match="is there twice, with different counts"):
        count(tmp_path)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("door", [count, lambda folder: dasktc.prepare(([0], [1])).triangle_count(checkpoint=folder)])
@pytest.mark.parametrize("kind", ["fifo", "device", "socket", "folder"])
def test_only_a_regular_file_is_opened(tmp_path, kind, door):
    """Opening a pipe would wait for ever, and so would reading a device."""
    file = tmp_path / FILE
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        os.mknod(file, stat.S_IFSOCK | 0o600)
    with pytest.raises(InputError, match=r"checkpoint .* is no regular file"):
        door(tmp_path)


@pytest.mark.timeout(30)
def test_a_pipe_that_took_the_place_meanwhile_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / FILE)
    monkeypatch.setattr(checkpoint, "check_regular", lambda *_: None)
    with pytest.raises(InputError, match="it is no regular file"):
        count(tmp_path)


def test_another_version_is_refused(tmp_path):
    count(tmp_path)
    with (
        mock.patch.object(checkpoint, "version", return_value="0.0.7"),
        pytest.raises(InputError, match=r"of another count: version .* there, version 0\.0\.7 here"),
    ):
        count(tmp_path)


@pytest.mark.parametrize(
    "stored", sorted((Path(__file__).parents[1] / "data" / "checkpoints").iterdir()), ids=lambda p: p.stem
)
def test_a_checkpoint_that_was_stored_goes_on_or_is_refused_by_version(stored, tmp_path):
    """Checkpoints of each version: any change of their contents, or of how tasks are cut, needs a new version."""
    (tmp_path / FILE).write_bytes(stored.read_bytes())
    kept, counted = len(stored.read_text().splitlines()) - 1, set()
    given = dict(backend="cpu", partition="hash2d", parts=3, kernel="merge", reorder="degree", checkpoint=tmp_path)

    def count_karate():
        return dasktc.triangle_count(
            stored.parent.parent / "karate.csv.gz",
            progress=lambda *now: counted.add(now[1:]) if now[0] == "count" else None,
            **keywords(**given),
        )

    if stored.stem.endswith(version("dasktc")):
        assert count_karate() == 45
        assert min(counted) == (kept, 27), "these were counted before"
    else:
        with pytest.raises(InputError, match=rf"version {re.escape(stored.stem[7:])} there"):
            count_karate()
        assert (tmp_path / FILE).read_bytes() == stored.read_bytes()


def test_a_checkpoint_of_a_version_with_other_fields_is_refused_by_version(tmp_path):
    count(tmp_path)
    first, *others = (tmp_path / FILE).read_text().splitlines(True)
    what = json.loads(first.split("\t")[0]) | {"version": "9.9", "colour": "blue"}
    (tmp_path / FILE).write_bytes(checkpoint._line(what) + "".join(others).encode())
    with pytest.raises(InputError, match=r"version 9\.9 there"):
        count(tmp_path)


def test_a_file_of_something_else_is_kept(tmp_path):
    for text in ("my thesis\n", "my only note"):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(InputError, match="begins with an unknown line"):
            count(tmp_path)
        assert (tmp_path / FILE).read_text() == text


def test_a_checkpoint_in_use_is_refused(tmp_path):
    graph = dasktc.prepare(source_of(EDGES), **keywords(**OPTIONS))
    with (
        checkpoint.opened(tmp_path, checkpoint.fingerprint(graph._context), []),
        pytest.raises(InputError, match="is in use: another count writes to it"),
    ):
        graph.triangle_count(checkpoint=tmp_path)
    assert int(graph.triangle_count(checkpoint=tmp_path)) == EXPECTED


@pytest.mark.timeout(30)
def test_the_lock_is_no_file_of_somebody_else(tmp_path):
    """Taking the lock would empty that file; opening a pipe would wait."""
    (tmp_path / LOCK).write_text("mine")
    with pytest.raises(InputError, match=r"lock is no lock of dasktc, it holds 4 bytes: move it"):
        count(tmp_path)
    assert (tmp_path / LOCK).read_text() == "mine"
    (tmp_path / LOCK).unlink()
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(InputError, match=r"lock of a checkpoint .* is no regular file"):
        count(tmp_path)


@pytest.mark.parametrize(
    ("refused", "exact"), [(errno.ENOLCK, True), (errno.EOPNOTSUPP, True), (errno.EROFS, False)], ids=str
)
def test_a_disk_without_locks(tmp_path, refused, exact):
    """Two counts may then write: tasks that both ran are recorded twice, and accepted. Other refusals are reported."""
    with mock.patch("locket._LockFile.acquire", side_effect=OSError(refused, os.strerror(refused))):
        if not exact:
            with pytest.raises(DasktcError, match=r"checkpoint .* cannot be written: .*Read-only"):
                count(tmp_path)
            return
        graph = dasktc.prepare(source_of(EDGES), **keywords(**OPTIONS))
        work = jobs(graph.plan, graph._context.options.chosen_kernel, "cpu")
        with checkpoint.opened(tmp_path, checkpoint.fingerprint(graph._context), work):
            assert int(count(tmp_path)[0]) == EXPECTED
        (record,) = list(dasktc.triangle_count(source_of(EDGES), **keywords(**OPTIONS))._records)[:1]
        with checkpoint.opened(tmp_path, checkpoint.fingerprint(graph._context), work) as other:
            other.add(record)
        assert count(tmp_path)[1] == 0


@pytest.mark.parametrize("begun", ["", "{", '{"graph": "', '{"graph": "01'])
def test_a_first_line_that_was_torn_is_written_anew(tmp_path, begun):
    (tmp_path / FILE).write_text(begun)
    assert count(tmp_path)[1] == TASKS
    assert count(tmp_path)[1] == 0


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("missing/kept", "missing is no folder"),
        ("file", "'.*file' is no folder"),
        ("file/kept", "file is no folder"),
        ("dangling", "'.*dangling' is no folder"),
        ("a" * 300 + "/kept", "a name has 255 bytes at most"),
        (b"", "'' is no path"),
        (b"a\0b", "has a null character"),
        (5, "checkpoint=5 is of type int: a path is needed"),
        ([], r"checkpoint=\[\] is of type list"),
        (b"kept", "is of type bytes"),
    ],
)
def test_a_folder_that_cannot_be_is_refused_before_anything_is_read(tmp_path, folder, why):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    where = tmp_path / folder if isinstance(folder, str) else folder
    where = where.decode() if where in (b"", b"a\0b") else where
    with mock.patch("dasktc.api.opener.as_source") as reading, pytest.raises(InputError, match=why):
        dasktc.triangle_count(source_of(EDGES), checkpoint=where)
    assert not reading.called
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file"]


@pytest.mark.parametrize("there", [False, True])
def test_what_is_not_ours_is_refused_before_anything_is_read(tmp_path, finished, monkeypatch, there):
    if there:
        (tmp_path / FILE).write_bytes(finished)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with mock.patch("dasktc.api.opener.as_source") as reading, pytest.raises(InputError, match="by this user; choose"):
        count(tmp_path)
    assert not reading.called


@pytest.mark.parametrize("call", ["write", "ftruncate", "fsync"])
def test_a_disk_that_refuses_is_one_line(tmp_path, call):
    with (
        mock.patch.object(checkpoint.os, call, side_effect=OSError(28, "No space left on device")),
        pytest.raises(DasktcError, match=r"checkpoint .* cannot be written: .*No space left .*with free space$"),
    ):
        count(tmp_path)
    assert int(count(tmp_path)[0]) == EXPECTED


def test_short_writes_are_completed(tmp_path):
    honest = os.write
    with mock.patch.object(checkpoint.os, "write", lambda file, text: honest(file, text[:7])):
        count(tmp_path)
    assert count(tmp_path)[1] == 0


def test_what_is_not_given_is_taken_from_the_checkpoint(tmp_path):
    """Without it, another number of workers or less memory would give another plan."""
    count(tmp_path)
    result = dasktc.triangle_count(source_of(EDGES), checkpoint=tmp_path)
    assert (result.plan.partition, result.plan.parts, result.plan.splits) == ("hash2d", 2, 2)
    assert (int(result), result.stats.resumed) == (EXPECTED, TASKS)


def test_a_resumed_count_says_so_and_claims_no_speed(tmp_path):
    broken_off(tmp_path, 7)
    result, _ = count(tmp_path)
    shown = result.to_dict()
    assert (shown["resumed"], shown["edges_per_second"], shown["time_imbalance"]) == (7, None, None)
    assert (shown["kernel_seconds"], shown["kernel_edges_per_second"]) == (None, None)
    assert "7 tasks were in the checkpoint" in repr(result)
    assert "resumed" not in repr(dasktc.triangle_count(source_of(EDGES)))


def test_a_repeated_first_line_is_passed_over(tmp_path):
    count(tmp_path)
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes() * 2)
    assert count(tmp_path)[1] == 0


def test_an_empty_graph(tmp_path):
    assert int(count(tmp_path, [])[0]) == 0
    assert int(count(tmp_path, [])[0]) == 0


@pytest.mark.slow
def test_the_whole_program_is_killed_again_and_again(tmp_path):
    """SIGKILL as soon as some tasks are on disk; each run continues from what the last one left."""
    graph, kept = tmp_path / "graph.parquet", tmp_path / "kept"
    write_edges(generate.kronecker(14), graph, LocalExecutor())
    command = [sys.executable, "-m", "dasktc", "count", str(graph), "--kernel", "trust", "--partition", "hash2d"]
    command += ["--parts", "4", "--splits", "4", "--reorder", "degree", "--checkpoint", str(kept), "--quiet"]

    def killed(after):
        running = subprocess.Popen(command, stdout=subprocess.PIPE)
        until(lambda: lines(kept / FILE) >= after or running.poll() is not None, pause=0.005)
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()

    held = 1
    for _ in range(3):
        killed(after=held + 20)
        assert lines(kept / FILE) >= held
        held = lines(kept / FILE)
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience())
    assert (done.stdout.strip(), done.stderr) == ("2843668", "")
    assert lines(kept / FILE) == 4**3 * 4 + 1


@pytest.mark.slow
def test_the_scheduler_and_the_client_are_killed(tmp_path):
    """Each time, the same command on another cluster continues from the finished tasks."""
    graph, kept = tmp_path / "graph.parquet", tmp_path / "kept"
    write_edges(generate.kronecker(14), graph, LocalExecutor())
    command = [sys.executable, "-m", "dasktc", "count", str(graph), "--kernel", "trust", "--partition", "hash2d"]
    command += ["--parts", "4", "--splits", "4", "--scheduler-file", str(tmp_path / "scheduler.json")]
    command += ["--checkpoint", str(kept)]
    held = 1

    def begun():
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: lines(kept / FILE) >= held + 20 or running.poll() is not None)
        return running

    with cluster_of(tmp_path, ("127.0.0.1", "127.0.0.1")) as found:
        running = begun()
        running.kill()
        running.communicate()
        held = lines(kept / FILE)
        running = begun()
        found.scheduler.kill()
        out, err = running.communicate(timeout=patience())
    error = apart_from_page(err)
    assert (out, running.returncode, error.count("\n")) == ("", 1, 1)
    assert error.startswith("dasktc: error: the scheduler does not answer any more (")
    held = lines(kept / FILE)
    assert 1 + 2 * 20 <= held < 4**3 * 4
    with cluster_of(tmp_path, ("127.0.0.1",), within=((),)):
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=patience())
    found = json.loads(done.stdout)
    said = apart_from_page(done.stderr)
    assert (found["triangles"], found["resumed"], said) == (2_843_668, held - 1, "")


CSR = OrientedCSR(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32))


def test_a_checkpoint_of_another_block_has_another_fingerprint():
    others = replace(CSR, offsets=np.array([0, 1, 3])), replace(CSR, columns=np.array([0, 1, 1], np.int32))
    assert len({checkpoint._digest(block) for block in (CSR, replace(CSR), *others)}) == 3


def test_records_are_on_the_disk_while_a_count_runs(tmp_path, monkeypatch):
    """That is, before the file is closed: a system crash meanwhile loses one second. It is asked no more often."""
    synced, fsync = [], os.fsync

    def noted(file):
        synced.append((tmp_path / checkpoint.FILE).read_bytes().count(b"\n"))
        fsync(file)

    clock = itertools.count(step=2.0)  # seconds, at each look
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(checkpoint.os, "fsync", noted)
    edges = pd.DataFrame(oracle.complete(20), columns=["src", "dst"])
    found = dasktc.triangle_count(edges, backend="cpu", method=Method(partition="hash2d", parts=2), checkpoint=tmp_path)
    assert found.triangles == 1140
    assert synced == [*range(2, len(found.tasks) + 2), len(found.tasks) + 1]
    assert len(found.tasks) > 4
    synced.clear()
    clock = itertools.count(step=0.4)
    dasktc.triangle_count(
        edges, backend="cpu", method=Method(partition="hash2d", parts=2), checkpoint=tmp_path / "seldom"
    )
    assert 2 <= len(synced) <= len(found.tasks) / 2
