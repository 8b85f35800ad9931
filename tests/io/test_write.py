"""Written edge files: their contents, what a failure leaves behind, and what is refused."""

import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dasktc.errors import DasktcError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.io.source import Source
from dasktc.io.write import write_edges, write_frames

EDGES = 16 * 2**6


@pytest.fixture(scope="module")
def on_cluster():
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as client:
        yield DaskExecutor(client)


@pytest.fixture(params=["direct", "cluster"])
def tasks(request):
    return LocalExecutor() if request.param == "direct" else request.getfixturevalue("on_cluster")


def wanted():
    (part,) = kronecker(6, parts=1).parts
    from dasktc.backends import get_backend

    return part.read(get_backend("cpu"))


@dataclass(frozen=True)
class BrokenPart:
    """A part whose reading fails."""

    error: type[BaseException]
    upstream = None

    def read(self, backend, upstream=None):
        raise self.error("broken on purpose")


def broken(error):
    good = kronecker(6, parts=2).parts
    return Source("broken", (*good, BrokenPart(error)))


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_text(tmp_path, tasks, parts):
    out = tmp_path / "g.txt"
    assert write_edges(kronecker(6, parts=parts), str(out), tasks) == EDGES
    lines = "".join(f"{src}\t{dst}\n" for src, dst in wanted().itertuples(index=False))
    assert out.read_text() == lines
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_parquet(tmp_path, tasks, parts):
    out = tmp_path / "g.parquet"
    assert write_edges(kronecker(6, parts=parts), str(out), tasks) == EDGES
    assert out.is_file() == (parts == 1)
    assert parts == 1 or len(list(out.iterdir())) == parts
    pd.testing.assert_frame_equal(pq.read_table(out).to_pandas(), wanted())
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["g.txt", "g.parquet"])
@pytest.mark.parametrize("source", [Source("none", ()), kronecker(6, edge_factor=0)], ids=lambda source: source.name)
def test_no_edges(tmp_path, source, name):
    out = tmp_path / name
    assert write_edges(source, str(out), LocalExecutor()) == 0
    if name == "g.txt":
        assert out.read_bytes() == b""
    else:
        assert dict(pq.read_table(out).to_pandas().dtypes) == {
            "src": np.dtype("int32"),
            "dst": np.dtype("int32"),
        }


def test_a_relative_name_is_taken_from_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_edges(kronecker(3), "g.txt", LocalExecutor())
    assert (tmp_path / "g.txt").exists()


@pytest.mark.parametrize("name", ["g.txt", "g.parquet"])
@pytest.mark.parametrize("error", [InputError, KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_by_a_failure(tmp_path, name, error):
    with pytest.raises(error, match="broken on purpose"):
        write_edges(broken(error), str(tmp_path / name), LocalExecutor())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_by_a_failure_on_a_worker(tmp_path, on_cluster):
    with pytest.raises(InputError, match="broken on purpose"):
        write_edges(broken(InputError), str(tmp_path / "g.parquet"), on_cluster)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["g.txt", "g.parquet"])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("before", ["file", "folder"])
def test_an_existing_target_is_replaced_by_force_alone(tmp_path, name, parts, before):
    out = tmp_path / name
    if before == "file":
        out.write_text("old")
    else:
        out.mkdir()
        (out / "old.parquet").write_text("old")
    source = kronecker(6, parts=parts)
    with pytest.raises(InputError, match=r"exists: .* force=True"):
        write_edges(source, str(out), LocalExecutor())
    with pytest.raises(KeyboardInterrupt):
        write_edges(broken(KeyboardInterrupt), str(out), LocalExecutor(), force=True)
    kept = out if before == "file" else out / "old.parquet"
    assert kept.read_text() == "old"
    assert write_edges(source, str(out), LocalExecutor(), force=True) == EDGES
    assert list(tmp_path.iterdir()) == [out]
    assert not (out / "old.parquet").exists()
    assert out.is_dir() == (name == "g.parquet" and parts == 3)


def test_a_failing_rename_puts_the_old_folder_back(tmp_path, monkeypatch):
    from pathlib import Path

    def refuse(self, target):
        raise PermissionError(13, "Permission denied", str(target))

    out = tmp_path / "g.parquet"
    out.mkdir()
    (out / "old.parquet").write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(DasktcError, match=r"g\.parquet cannot be written: .*Permission denied.*; choose"):
        write_edges(kronecker(6), str(out), LocalExecutor(), force=True)
    assert (out / "old.parquet").read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_signal_after_it_was_published_leaves_nothing_aside(tmp_path, monkeypatch):
    from pathlib import Path

    out, honest, calls = tmp_path / "g.parquet", Path.rename, []
    out.mkdir()
    (out / "old.parquet").write_text("old")

    def interrupted(self, target):
        calls.append(target)
        if len(calls) == 2:
            raise SystemExit(143)
        honest(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(SystemExit):
        write_edges(kronecker(6), str(out), LocalExecutor(), force=True)
    assert out.is_file()
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["rename", "replace"])
def test_a_signal_while_it_is_published_leaves_the_old_or_the_new_folder(tmp_path, monkeypatch, name, when):
    from pathlib import Path

    out, honest, calls = tmp_path / "g.parquet", getattr(Path, name), []
    out.mkdir()
    (out / "old.parquet").write_text("old")

    def interrupted(self, target):
        calls.append(target)
        if len(calls) > 1 or when == "after":
            honest(self, target)
        if len(calls) == 1:
            raise SystemExit(143)

    monkeypatch.setattr(Path, name, interrupted)
    with pytest.raises(SystemExit):
        write_edges(kronecker(6), str(out), LocalExecutor(), force=True)
    assert (out.is_file(), out.is_dir()) == ((True, False) if (name, when) == ("replace", "after") else (False, True))
    assert list(tmp_path.iterdir()) == [out]


def test_force_spares_a_folder_of_other_things(tmp_path):
    out = tmp_path / "g.parquet"
    out.mkdir()
    (out / "thesis.tex").write_text("words")
    with pytest.raises(InputError, match=r"1 entry other than \.parquet files, 'thesis\.tex'"):
        write_edges(kronecker(6), str(out), LocalExecutor(), force=True)
    assert (out / "thesis.tex").exists()


@pytest.mark.parametrize("name", ["g", "g.csv", "g.txt.gz", "parquet"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"'{name}' ends in none of .parquet, .txt"):
        write_edges(kronecker(3), str(tmp_path / name), LocalExecutor())


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"missing is no folder: g\.txt would be in it; create it first"):
        write_edges(kronecker(3), str(tmp_path / "missing" / "g.txt"), LocalExecutor())


def test_a_worker_that_does_not_see_the_folder_is_one_line(tmp_path, monkeypatch):
    from dasktc.io import write

    table, elsewhere = write._write_table, tmp_path / "elsewhere" / "part-0000000.txt"
    monkeypatch.setattr(write, "_write_table", lambda rows, path, *header: table(rows, str(elsewhere), *header))
    with pytest.raises(DasktcError, match=r"cannot be written: .*No such file.*every worker sees") as caught:
        write_edges(kronecker(3), str(tmp_path / "g.txt"), LocalExecutor())
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_terminated_program_leaves_nothing(tmp_path):
    """After SIGTERM, with which batch systems end a job, the hidden files are removed."""
    command = [sys.executable, "-m", "dasktc", "generate", "kronecker", str(tmp_path / "g.txt"), "--scale", "19"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list(tmp_path.iterdir()):
        assert running.poll() is None
        time.sleep(0.01)
    running.terminate()
    assert running.communicate() == (b"", b"")
    assert running.returncode == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", [" #x", " a", "a ", "#a", "", " "])
def test_ids_that_txt_cannot_hold_are_refused(tmp_path, odd):
    path = tmp_path / "g.txt"
    frame = pd.DataFrame({"src": ["a", "b c"], "dst": ["b", odd]})
    with pytest.raises(InputError, match=r"would be read as .*write \.csv or \.parquet"):
        write_frames([LocalExecutor().store.keep(frame)], str(path), LocalExecutor())
    assert not path.exists()
