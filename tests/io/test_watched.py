"""Sources that change while they are read: refused, whichever part, pass or process read them."""

import os
import pickle
import shutil
import socket
from unittest import mock

import fsspec
import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.api.opener import as_source, read_options
from dasktc.backends import get_backend
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.io.source import ReadOptions
from dasktc.io.watched import Stamp, WatchedPart, stamp
from dasktc.options import Options, RunOptions
from dasktc.pipeline.planes import choose
from tests.io.test_files import PROPERTIES, SAMPLES
from tests.support.keywords import keywords
from tests.support.oracle import triangles
from tests.support.slow_pipeline import skewed_edges

EDGES = np.array(skewed_edges(60, 400, 3))
OTHERS = np.array(skewed_edges(60, 400, 4))
CHANGED = "changed while it was read"
WRITE = {
    "npy": lambda path, edges: np.save(path, edges),
    "parquet": lambda path, edges: pd.DataFrame(edges, columns=["src", "dst"]).to_parquet(path, row_group_size=100),
    "csv": lambda path, edges: path.write_text("".join(f"{u},{v}\n" for u, v in edges)),
    "txt": lambda path, edges: path.write_text("".join(f"{u} {v} 1.5\n" for u, v in edges)),
}


def later(path):
    """Move a file's time on, as writing it a moment later would."""
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**7))


def replaced(path, kind, edges=OTHERS):
    new = path.with_name(f"new.{kind}")
    WRITE[kind](new, edges)
    os.replace(new, path)


def rewritten(path, kind, edges=OTHERS):
    WRITE[kind](path, edges)
    later(path)


def cut(path, kind):
    os.truncate(path, path.stat().st_size // 3)


def gone(path, kind):
    path.unlink()


def after_part(number, change):
    """Change a file when its parts up to `number` were read, in whatever way they are read."""
    seen = []
    original = WatchedPart.read, WatchedPart.__getattr__

    def counted(part, *given, **more):
        if len(seen) == number:
            change()
        seen.append(part)
        return original[0](part, *given, **more)

    def chunked(part, name):
        value = original[1](part, name)
        if name != "chunks":
            return value

        def chunks(*given):
            if len(seen) == number:
                change()
            seen.append(part)
            yield from value(*given)

        return chunks

    return mock.patch.multiple(WatchedPart, read=counted, __getattr__=chunked)


@pytest.mark.parametrize("kind", WRITE)
@pytest.mark.parametrize("change", [replaced, rewritten, cut, gone])
@pytest.mark.parametrize("memory", [None, "40MB"])
def test_a_file_that_changes_between_its_parts_is_refused(tmp_path, kind, change, memory):
    path = tmp_path / f"edges.{kind}"
    WRITE[kind](path, EDGES)
    small = ReadOptions(blocksize=600)
    with mock.patch("dasktc.api.count.read_options", return_value=small):
        given = {"threads": 1, "memory": memory, "backend": "cpu"} | ({"work_dir": tmp_path} if memory else {})
        assert len(as_source(path, small).parts) > 2
        assert int(dasktc.triangle_count(path, **keywords(**given))) == triangles(EDGES.tolist())
        with after_part(1, lambda: change(path, kind)), pytest.raises(InputError, match=CHANGED) as caught:
            dasktc.triangle_count(path, **keywords(**given))
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize("format", SAMPLES)
def test_every_format_is_watched(tmp_path, format):
    """From the moment when its files are listed."""
    name, contents, _ = SAMPLES[format]
    path = tmp_path / name
    if callable(contents):
        contents(path)
    else:
        path.write_bytes(contents)
    if format == "bvgraph":
        (tmp_path / "g.properties").write_bytes(PROPERTIES)
    source = as_source(path, read_options())
    dasktc.triangle_count(source, threads=1)
    later(path)
    with pytest.raises(InputError, match=CHANGED):
        dasktc.triangle_count(source, threads=1)


def test_what_is_read_again_is_watched_too(tmp_path):
    """A second pass over parts that did not change meanwhile is none; after a change it is refused."""
    path = tmp_path / "edges.npy"
    np.save(path, EDGES)
    source = as_source(path, read_options())
    plane = choose(LocalExecutor(), Options())
    assert plane.read(source).rows == plane.read(source).rows == len(EDGES)
    replaced(path, "npy")
    with pytest.raises(InputError, match=CHANGED):
        plane.read(source)
    with pytest.raises(InputError, match=CHANGED):
        dasktc.triangle_count(source)


def test_weights_are_watched(tmp_path):
    path = tmp_path / "edges.csv"
    frame = pd.DataFrame(EDGES, columns=["a", "b"]).assign(w=1.0)
    frame.to_csv(path, index=False)
    with after_part(0, lambda: later(path)), pytest.raises(InputError, match=rf"{CHANGED}: it was written again"):
        dasktc.prepare(path, weight="w", threads=1)


def test_workers_compare_their_file_with_the_one_that_was_listed(tmp_path, client):
    path = tmp_path / "edges.npy"
    np.save(path, EDGES)
    source = as_source(path, ReadOptions(blocksize=1000))
    count = dasktc.triangle_count(source, client, run=RunOptions(distribute="always"))
    assert int(count) == triangles(EDGES.tolist())
    replaced(path, "npy")
    for how in ("always", "never"):
        with pytest.raises(InputError, match=CHANGED):
            dasktc.triangle_count(source, client, run=RunOptions(distribute=how))


def test_a_change_is_said_before_the_error_that_it_causes(tmp_path):
    path = tmp_path / "edges.txt"
    WRITE["txt"](path, EDGES)
    (part,) = as_source(path, read_options()).parts
    path.write_text("1 2\nno edge at all\n")
    with pytest.raises(InputError, match=rf"{CHANGED}: it had [\d,]+ bytes and has 19"):
        part.read(get_backend("cpu"))
    later(path)
    (part,) = as_source(path, ReadOptions(columns=("0", "1"), ids="int")).parts
    with pytest.raises(InputError, match="line 2"):
        part.read(get_backend("cpu"))


def test_a_file_that_is_touched_while_another_is_read_is_its_own_matter(tmp_path):
    for name in ("a.txt", "b.txt"):
        WRITE["txt"](tmp_path / name, EDGES)
    with after_part(1, lambda: later(tmp_path / "a.txt")):  # every part of a.txt was read before
        dasktc.triangle_count([tmp_path / "a.txt", tmp_path / "b.txt"], threads=1)
    with after_part(1, lambda: later(tmp_path / "b.txt")), pytest.raises(InputError, match=rf"b\.txt {CHANGED}"):
        dasktc.triangle_count([tmp_path / "a.txt", tmp_path / "b.txt"], threads=1)


def test_a_file_behind_a_url_is_watched():
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/watched/edges.txt", b"1 2\n2 3\n3 1\n")
    source = as_source("memory://watched/edges.txt", read_options())
    assert int(dasktc.triangle_count(source)) == 1
    fs.pipe_file("/watched/edges.txt", b"1 2\n2 3\n3 4\n")
    with pytest.raises(InputError, match=rf"edges\.txt {CHANGED}: its server says that it is another version"):
        dasktc.triangle_count(source)
    fs.rm("/watched", recursive=True)
    with pytest.raises(InputError, match=rf"{CHANGED}: it is gone"):
        dasktc.triangle_count(source)


@pytest.mark.parametrize("told", ["ETag", "mtime", "LastModified", "generation", "md5Hash", "size"])
def test_what_servers_say_of_a_file(monkeypatch, told):
    from fsspec.implementations.memory import MemoryFileSystem

    says = {told: "first"}
    monkeypatch.setattr(MemoryFileSystem, "info", lambda self, path, **options: {"name": path, **says})
    before = stamp("memory://x/edges.txt")
    assert before == stamp("memory://x/edges.txt") == Stamp(told=((told, "first"),))
    says[told] = "second"
    assert not before.same(stamp("memory://x/edges.txt"))


def test_a_server_that_says_nothing_is_not_asked_again(monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    fsspec.filesystem("memory").pipe_file("/silent.txt", b"1 2\n2 3\n3 1\n")
    monkeypatch.setattr(MemoryFileSystem, "info", mock.Mock(side_effect=OSError("no HEAD")))
    monkeypatch.setattr(MemoryFileSystem, "isfile", lambda self, path: True)
    assert stamp("memory://silent.txt") is None


def test_inodes_are_compared_on_one_host_alone(tmp_path, monkeypatch):
    path = tmp_path / "edges.npy"
    np.save(path, EDGES)
    here = stamp(str(path))
    shutil.copy2(path, tmp_path / "copy.npy")
    copy = stamp(str(tmp_path / "copy.npy"))
    assert not here.same(copy)
    source = as_source(path, read_options())
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert here.same(stamp(str(tmp_path / "copy.npy")))
    os.replace(tmp_path / "copy.npy", path)
    assert int(dasktc.triangle_count(source)) == triangles(EDGES.tolist())
    later(path)
    with pytest.raises(InputError, match=rf"or host elsewhere has another file of that name than {here.inode[0]}"):
        dasktc.triangle_count(source)


def test_a_mapped_file_may_be_replaced_but_not_rewritten(tmp_path):
    path = tmp_path / "edges.npy"
    np.save(path, EDGES)
    mapped = np.load(path, mmap_mode="r")
    columns = mapped[:, 0], mapped[:, 1]
    frame = pd.DataFrame({"a": columns[0], "b": columns[1]}, copy=False)
    sources = [as_source(of) for of in (mapped, columns, frame)]
    for source in sources:
        assert int(dasktc.triangle_count(source)) == triangles(EDGES.tolist())
    changes = np.load(path, mmap_mode="r+")
    changes[0] = changes[1]
    changes.flush()
    later(path)
    for source in sources:
        with pytest.raises(InputError, match=CHANGED):
            dasktc.triangle_count(source)
        with pytest.raises(InputError, match=CHANGED):
            pickle.dumps(source)
    source = as_source(mapped)
    assert not isinstance(pickle.loads(pickle.dumps(source)).parts[0], WatchedPart)
    count = int(dasktc.triangle_count(source))
    np.save(tmp_path / "new.npy", OTHERS)
    os.replace(tmp_path / "new.npy", path)  # what is mapped stays as it was
    assert int(dasktc.triangle_count(source)) == count
    path.unlink()
    assert int(dasktc.triangle_count(source)) == count


def test_a_watched_part_is_else_the_part(tmp_path):
    path = tmp_path / "edges.parquet"
    WRITE["parquet"](path, EDGES)
    first, second, *_ = as_source(path, ReadOptions(blocksize=1600)).parts
    assert (first.rows, first.ids, first.upstream) == (first.part.rows, "int", None)
    assert not hasattr(first, "ends")
    assert not hasattr(first, "places")
    assert pickle.loads(pickle.dumps(first)) == first
    both = first.joined(second)
    assert both.rows == first.rows + second.rows
    assert both.files == first.files
    assert len(both.read(get_backend("cpu"))) == both.rows
    text = tmp_path / "names.csv"
    text.write_text("a,b\nb,c\nc,a\n")
    (names,) = as_source(text, ReadOptions(ids="text", columns=("0", "1"))).parts
    assert first.joined(names) is None
    later(path)
    with pytest.raises(InputError, match=CHANGED):
        both.read(get_backend("cpu"))
