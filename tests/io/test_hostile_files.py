"""Files that are wrong on purpose: nothing is dropped, nothing hangs, and every refusal is one line.

A case is refused with `InputError`, with memory and time that do not depend on what a header claims.
"""

import gzip
import io
import os
import socket
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions
from tests.support.formats import BACKEND, edges, parquet


def refused(source, *says, **options):
    with pytest.raises(InputError) as caught:
        edges(source, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 700
    for words in says:
        assert words in text
    return text


# Folders and what stands in them

AS_NOBODY = """
import os, sys
from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions
for scheme in ("", "file://"):  # others may not be allowed to import what is imported on the way
    open_source(scheme + sys.argv[1], ReadOptions())
os.setgid(65534), os.setuid(65534)
for source in sys.argv[1:]:
    try:
        print("read", [part.url for part in open_source(source, ReadOptions()).parts])
    except InputError as error:
        print("refused", error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_folders_that_cannot_be_read_are_refused_by_name():
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        Path(place).chmod(0o755)
        folder, closed = f"{place}/data", f"{place}/data/closed"
        for name in ("a.txt", "closed/b.txt", "closed/deep/c.txt"):
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"1 2\n")
        Path(closed).chmod(0o700)
        sources = [
            *(folder, closed, f"{folder}/*", f"{folder}/**/*.txt", f"{folder}/*/*.txt", f"{closed}/b.txt"),
            *(f"file://{folder}", f"file://{folder}/**/*.txt", f"{folder}/*.txt"),
        ]
        command = [sys.executable, "-c", AS_NOBODY, *sources]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == f"read ['{folder}/a.txt']"
    for source, line in zip(sources, lines, strict=False):
        assert line.startswith(f"refused {closed}"), (source, line)
        assert "cannot be read: Permission denied" in line


@pytest.mark.parametrize("pattern", ["", "/**", "/**/*.txt", "/*", "/*/*.txt"])
def test_a_folder_that_fails_halfway_is_refused(tmp_path, monkeypatch, pattern):
    for name in ("a.txt", "sub/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1 2\n")
    scandir = os.scandir

    def failing(path="."):
        if str(path).endswith("sub"):
            raise OSError(5, "Input/output error")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    refused(str(tmp_path) + pattern, f"{tmp_path}/sub cannot be read: Input/output error")


@pytest.mark.parametrize("pattern", ["", "/*", "/**", "/**/*.txt"])
def test_remote_folders_that_cannot_be_listed_are_refused(monkeypatch, pattern):
    fs = fsspec.filesystem("memory")
    for name in ("a.txt", "sub/b.txt"):
        fs.pipe_file(f"/hostile/{name}", b"1 2\n")
    source = "memory://hostile" + pattern
    assert len(edges(source)) == 2
    ls = type(fs).ls

    def failing(self, path, *args, **kwargs):
        if path.rstrip("/").endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return ls(self, path, *args, **kwargs)

    monkeypatch.setattr(type(fs), "ls", failing)
    refused(source, "Permission denied", source)
    fs.rm("/hostile", recursive=True)


def make_irregular(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("pattern", ["", "/*", "/**", "/b*", "/b.txt"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_only_regular_files_are_read(tmp_path, kind, pattern, scheme):
    (tmp_path / "a.txt").write_bytes(b"1 2\n")
    make_irregular(tmp_path / "b.txt", kind)
    refused(f"{scheme}{tmp_path}{pattern}", f"{tmp_path}/b.txt is not a regular file but a {kind}")
    assert edges(f"{tmp_path}/a*") == [(1, 2)]


@pytest.mark.timeout(20)
def test_a_side_file_that_is_a_pipe_does_not_block(tmp_path):
    (tmp_path / "g.graph").write_bytes(bytes(range(200)))
    os.mkfifo(tmp_path / "g.properties")
    refused(str(tmp_path / "g.graph"), "g.properties is not a regular file but a pipe")


@pytest.mark.parametrize("pattern", ["", "/**", "/*", "/**/*.txt", "/sub/**"])
def test_links_in_circles_are_entered_once(tmp_path, pattern):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_bytes(b"1 2\n")
    for name, target in [("loop", "."), ("sub/up", ".."), ("again", "sub")]:
        (tmp_path / name).symlink_to(target)
    assert edges(str(tmp_path) + pattern)[0] == (1, 2)
    (tmp_path / "self").symlink_to("self")
    refused(f"{tmp_path}/self", "self cannot be read: Too many levels of symbolic links")
    refused(str(tmp_path), "self", "Too many levels of symbolic links")


def test_a_folder_behind_a_link_belongs_to_its_folder(tmp_path):
    for name in ("data", "elsewhere/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data/a.txt").write_bytes(b"1 2\n")
    (tmp_path / "elsewhere/deep/b.txt").write_bytes(b"3 4\n")
    (tmp_path / "data/more").symlink_to(tmp_path / "elsewhere")
    assert sorted(edges(str(tmp_path / "data"))) == [(1, 2), (3, 4)]


@pytest.mark.parametrize("pattern", ["memory://hostile/*", "memory://hostile/s*", "memory://hostile/**"])
def test_folders_that_match_a_remote_pattern_are_read(pattern):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/hostile/sub/deep/b.txt", b"1 2\n")
    assert edges(pattern) == [(1, 2)]
    fs.rm("/hostile", recursive=True)


# Names

ODD_NAMES = ["a::b.txt", "zip::b.txt", "simplecache", "a b.txt", "é.txt", "a[1].txt", "#a.txt", "a\nb.txt", b"\xff.txt"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_local_files_of_any_name_are_read(tmp_path, monkeypatch, name):
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with open(path, "wb") as file:
        file.write(b"1 2\n")
    assert edges(os.fsdecode(path)) == edges(str(tmp_path)) == edges(f"{tmp_path}/*") == [(1, 2)]
    monkeypatch.chdir(tmp_path)
    assert edges(os.fsdecode(name)) == edges("*") == [(1, 2)]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "is no path"),
        ("a\0b.txt", "is no path"),
        ("\ud800.txt", "cannot be read"),
        ("\udcff.txt", "does not exist"),
        ("a\nb.txt", "does not exist"),
        ("x" * 300, "File name too long"),
        ("a::b.txt", "does not exist"),
        ("a::*.txt", "no file matches"),
        ("none/*.txt", "no file matches"),
        ("\ud800://x", ""),
        ("memory://\ud800/*", ""),
        ("zip://a::b::c", ""),
        ("::", ""),
        ("://", ""),
        ("a.txt/**", "no file matches"),
        ("[", "no file matches"),
    ],
)
def test_names_of_no_file_are_refused(tmp_path, monkeypatch, source, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"1 2\n")
    refused(source, says)


def test_a_folder_that_is_gone_is_refused(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused("a.txt", "does not exist", "the working directory was removed")
    monkeypatch.chdir(tmp_path)


# Lines without end

LONG = 1 << 20
"""Largest number of bytes in a line."""
MTX = b"%%MatrixMarket matrix coordinate pattern general\n"
PROPERTIES = b"graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=2\narcs=2\nwindowsize=0\nminintervallength=0\n"
# Of each format: a file's name, what stands before a line of so many bytes, how the line begins and goes on, and
# what follows; read as the edge (1, 2).
LINES = {
    "text": ("g.txt", b"", b"1 2 ", b"x", b"\n"),
    "text, below": ("g.txt", b"1 2\n" * 40_000, b"1 2 ", b"x", b"\n1 2\n"),
    "text, comment": ("g.txt", b"", b"# ", b"x", b"\n1 2\n"),
    "text, no line end": ("g.txt", b"", b"1 2 ", b"x", b""),
    "text, zeros": ("g.txt", b"", b"1 2 ", b"0", b"\n"),
    "text, blanks": ("g.txt", b"", b"1 ", b" ", b"2\n"),
    "text, braces": ("g.txt", b"", b"1 2 ", b"{", b"\n"),
    "text, brackets": ("g.txt", b"", b"1 2 ", b"[", b"\n"),
    "text, quotes": ("g.txt", b"", b"1,2,", b'"', b"\n"),
    "text, names and braces": ("g.txt", b"", b"a b ", b"{", b"\n"),
    "text, names and brackets": ("g.txt", b"", b"a b ", b"[", b"\n"),
    "text, names and blanks": ("g.txt", b"", b"a b", b" ", b"c\n"),
    "text, percents": ("g.txt", b"", b"%", b"%", b" matri\n1 2\n"),
    "text, percents and blanks": ("g.txt", b"", b"%" * 30_000, b" ", b"matrix\n1 2\n"),
    "csv": ("g.csv", b"src,dst,w\n", b"1,2,", b"x", b"\n"),
    "csv, separators": ("g.csv", b"src,dst,w\n", b"1,2,", b",", b"\n"),
    "csv, header": ("g.csv", b"", b"src,dst,", b"x", b"\n1,2,\n"),
    "mtx": ("g.mtx", MTX + b"2 2 1\n", b"1 2 ", b" ", b"\n"),
    "mtx, comment": ("g.mtx", MTX, b"% ", b"%", b"\n2 2 1\n1 2\n"),
    "mtx, banner": ("g.mtx", b"", MTX[:-1], b" ", b"\n2 2 1\n1 2\n"),
    "mtx, sizes": ("g.mtx", MTX, b"2 2 1", b" ", b"\n1 2\n"),
    "metis, comment": ("g.metis", b"2 1\n", b"% ", b"x", b"\n2\n1\n"),
    "metis, first comment": ("g.metis", b"", b"% ", b"x", b"\n2 1\n2\n1\n"),
    "metis, header": ("g.metis", b"", b"2 1 ", b" ", b"\n2\n1\n"),
    "metis, blanks": ("g.metis", b"2 1\n2\n", b" ", b" ", b"1\n"),
    "metis, zeros": ("g.metis", b"2 1\n", b"0", b"0", b"2\n1\n"),
    "smat": ("g.smat", b"3 3 1\n", b"1 2 ", b" ", b"1\n"),
    "smat, sizes": ("g.smat", b"", b"3 3 1 ", b" ", b"\n1 2 1\n"),
    "lg": ("g.lg", b"3,1,u,g\n", b"1,2", b" ", b"\n"),
    "lg, header": ("g.lg", b"", b"3,1,u,", b"g", b"\n1,2\n"),
    "properties": ("g.properties", b"", b"# ", b"x", b"\n" + PROPERTIES),
}

READ_WHOLE = set(LINES)


@pytest.fixture
def long_line(tmp_path):
    """Writes a file with a line of so many bytes."""

    def write(case, nbytes, packed=False):
        name, before, begin, fill, after = LINES[case]
        path = tmp_path / name
        data = before + begin + fill * (nbytes - len(begin) - len(after.split(b"\n")[0])) + after
        path.write_bytes(gzip.compress(data, 1) if packed else data)
        if name == "g.properties":
            (tmp_path / "g.graph").write_bytes(bytes([0b01010110, 0b10101000, 0]))
        return str(path)

    return write


@pytest.mark.timeout(60)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", LINES)
def test_a_line_beyond_the_limit_is_refused_by_number(long_line, case, packed):
    number = LINES[case][1].count(b"\n") + 1
    path = long_line(case, 5 * LONG, packed)
    refused(path, f"line {number} of {path} is longer than {LONG:,} bytes")


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", LINES)
def test_a_line_of_the_limit_is_read_or_refused_soon(long_line, case):
    outcome = []
    with suppress(InputError):
        outcome = edges(long_line(case, LONG - 2))
    assert (case in READ_WHOLE) == bool(outcome)


@pytest.mark.parametrize("case", ["text", "csv", "mtx", "mtx, comment", "metis, comment", "smat", "lg", "properties"])
def test_a_line_without_end_takes_no_memory(long_line, case):
    refused(long_line(case, 1 << 22), "longer than")  # imports what reading takes
    path = long_line(case, 1 << 26, packed=True)
    tracemalloc.start()
    refused(path, "longer than")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20


@pytest.mark.slow
def test_a_vertex_of_metis_may_have_more_neighbours_than_fit_a_line(tmp_path):
    leaves = range(2, 300_002)
    rows = [" ".join(map(str, leaves)), *["1"] * len(leaves)]
    data = f"{len(rows)} {len(leaves)}\n".encode() + "\n".join(rows).encode()
    assert len(rows[0]) > 3 << 19
    for packed in (data, gzip.compress(data, 1)):
        (tmp_path / "g.metis").write_bytes(packed)
        for blocksize in (1 << 26, 1 << 18):
            pairs = edges(str(tmp_path / "g.metis"), blocksize=blocksize)
            assert pairs == [*((1, leaf) for leaf in leaves), *((leaf, 1) for leaf in leaves)]


def test_neighbours_beyond_what_the_header_says_take_no_memory(tmp_path):
    path = str(tmp_path / "g.metis")
    for size in (1 << 10, 1 << 22):
        Path(path).write_bytes(gzip.compress(b"3 2\n" + b"1 2 3 " * size + b"\n\n\n", 1))
        tracemalloc.start()
        refused(path, f"lists {3 * size:,} neighbours", "says 2 edges")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 150 << 20


@pytest.mark.parametrize("case", ["mtx", "smat", "lg", "metis"])
def test_compressed_lines_are_read_in_chunks_where_memory_is_short(tmp_path, case):
    rows = np.arange(1, 90_001)
    text = {
        "mtx": MTX + b"90000 90000 90000\n" + b"".join(b"%d 2\n" % row for row in rows),
        "smat": b"90001 90001 90000\n" + b"".join(b"%d 2 1\n" % row for row in rows),
        "lg": b"90000,90000,d,g\n" + b"".join(b"%d,2\n" % row for row in rows),
        "metis": b"90000 45000\n" + b"".join(b"%d\n" % (row + 1 if row % 2 else row - 1) for row in rows),
    }[case]
    path = tmp_path / f"g.{case}"
    path.write_bytes(gzip.compress(text))
    (part,) = open_source(str(path), ReadOptions()).parts
    frames = list(part.chunks(BACKEND, 8000))
    assert len(frames) > 5
    assert max(map(len, frames)) <= 16_000
    assert pd.concat(frames, ignore_index=True).equals(part.read(BACKEND))


# Headers and options

DIGITS = "9" * 5000


def npy(shape, data=b"", descr="'<i8'", order="False"):
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def array(values, dtype="<i8"):
    file = io.BytesIO()
    np.save(file, np.asarray(values, dtype))
    return file.getvalue()


def csr(**changed):
    """The archive of a sparse matrix, with some arrays, or bytes of members, changed."""
    kept = {"format": np.array(b"csr"), "shape": (3, 3), "data": [1.0, 1.0], "indices": [0, 1], "indptr": [0, 1, 2, 2]}
    members = (kept | changed).items()
    return zipped(**{name: value if isinstance(value, bytes) else array(value, None) for name, value in members})


PAIR = array([0, 1, 2]), array([1, 2, 0])
NOT_UTF8 = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"a\xff"))
HEADERS = {
    "negative rows": ("g.npy", npy((-5, 2)), "shape (-5, 2)"),
    "negative columns": ("g.npy", npy((5, -2)), "shape (5, -2)"),
    "rows without end": ("g.npy", npy((10**23, 2)), "1,600,000,000,000,000,000,000,000 bytes before"),
    "rows without end, by column": ("g.npy", npy((10**23, 2), order="True"), "bytes before its 100,000"),
    "rows without end, packed": ("g.npy.gz", gzip.compress(npy((10**23, 2), b"12345678")), "bytes before its 100,000"),
    "one row too many": ("g.npy", npy((3, 2), bytes(32)), "16 bytes before its 3 rows"),
    "one row too few": ("g.npy", npy((1, 2), bytes(32)), "continues after its 1 row"),
    "one row too few, packed": ("g.npy.gz", gzip.compress(npy((1, 2), bytes(32))), "continues after its 1 row"),
    "two arrays": ("g.npy", npy((1, 2), bytes(16)) * 2, "continues after"),
    "a header that Python's parser gives up": ("g.npy", npy("-" * 9000 + "1"), "cannot be read"),
    "digits without end": ("g.npy", npy(f"({DIGITS}, 2)"), "cannot be read"),
    "archived, without end": ("g.npz", zipped(src=npy((10**12,), bytes(8)), dst=PAIR[1]), "'src' in"),
    "archived, beyond any size": ("g.npz", zipped(src=npy((10**23,), bytes(8)), dst=PAIR[1]), "'src' in"),
    "archived, negative": ("g.npz", zipped(src=npy((-1,)), dst=PAIR[1]), "shape (-1,)"),
    "archived, no array": ("g.npz", zipped(src=b"0 1", dst=PAIR[1]), "cannot be read"),
    "sparse, without end": ("g.npz", csr(indices=npy((10**12,), bytes(16))), "'indices' in"),
    "sparse, fractions": ("g.npz", csr(indices=[0.0, 1.5]), "indices are integers"),
    "METIS digits": ("g.metis", f"{DIGITS} 1\n2\n1\n".encode(), "METIS header"),
    "METIS edges": ("g.metis", b"2 99999999999999999999\n2\n1\n", "METIS header"),
    "METIS weights": ("g.metis", b"0 0 10 9223372036854775808\n", "METIS header"),
    "METIS vertices": ("g.metis", b"1000000000000000000 1\n2\n1\n", "2 vertex lines"),
    "METIS neighbour": ("g.metis", f"2 1\n{DIGITS}\n1\n".encode(), "line 2"),
    "SMAT digits": ("g.smat", f"3 3 {DIGITS}\n0 1 1\n".encode(), "line 1"),
    "SMAT entries": ("g.smat", b"3 3 1000000000000000000\n0 1 1\n", "1 edge "),
    "LightGraphs digits": ("g.lg", f"{DIGITS},1,u,g\n1,2\n".encode(), ""),
    "LightGraphs digits, no name": ("g", f"3,{DIGITS},u,g\n1,2\n".encode(), ""),
    "Matrix Market digits": ("g.mtx", MTX + f"3 3 {DIGITS}\n1 2\n".encode(), "g.mtx"),
    "Matrix Market entries": ("g.mtx", MTX + b"3 3 1000000000000000000\n1 2\n", "1 edge "),
    "Matrix Market sizes": ("g.mtx", MTX + b"9223372036854775807 9223372036854775807 1\n1 2\n", "out of range"),
    "Matrix Market field": ("g.mtx", MTX.replace(b"pattern", b"9" * 5000) + b"3 3 1\n1 2\n", "line 1"),
    "Parquet text": ("g.parquet", parquet(src=NOT_UTF8, dst=NOT_UTF8), "UTF8"),
    "text digits": ("g.txt", f"1 2\n{DIGITS} 3\n".encode(), "64-bit"),
    "text digits first": ("g.txt", f"{DIGITS} 3\n1 2\n".encode(), "64-bit"),
    "text surrogates": ("g.txt", b"a b\n\xed\xa0\x80 c\n", "not UTF-8"),
    "text zeros": ("g.txt", b"1 2\n" + b"0" * 5000 + b"1 99999999999999999999\n", "64-bit"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", HEADERS)
def test_what_a_header_claims_is_held_against_the_file(tmp_path, case):
    name, data, says = HEADERS[case]
    path = tmp_path / name
    path.write_bytes(data)
    for blocksize in (1 << 26, 16):
        refused(str(path), *([str(path), says]), blocksize=blocksize)


def gamma(number):
    """Bits of a number of a BVGraph."""
    digits = f"{number + 1:b}"
    return "0" * (len(digits) - 1) + digits


@pytest.mark.parametrize(
    "numbers", [(1, 1, 0, 2**63 - 2), (8, 2, 0, 0, 2**63 - 8, 0)], ids=["longer than any", "from beyond to below"]
)
def test_intervals_of_a_bvgraph_do_not_overflow(tmp_path, numbers):
    bits = "".join(map(gamma, numbers)) + "1" * 16  # those of a number, and lists of none
    (tmp_path / "g.graph").write_bytes(np.packbits(np.array([*bits], "u1")).tobytes())
    properties = PROPERTIES.replace(b"nodes=2\narcs=2", b"nodes=10\narcs=%d" % numbers[0])
    (tmp_path / "g.properties").write_bytes(properties.replace(b"length=0", b"length=4"))
    refused(str(tmp_path / "g.graph"), "an interval leaves the graph or its list")


TWICE = {
    "text": ("g.txt", b"src dst w\n0 1 5\n1 2 5\n2 0 5\n"),
    "csv": ("g.csv", b"src,dst,w\n0,1,5\n1,2,5\n2,0,5\n"),
    "parquet": ("g.parquet", parquet(src=[0, 1, 2], dst=[1, 2, 0], w=[5, 5, 5])),
    "npz": ("g.npz", zipped(src=PAIR[0], dst=PAIR[1], w=PAIR[0])),
}


@pytest.mark.parametrize("columns", [("src", "src"), ("0", "0"), ("0", "src"), ("dst", "1"), ("0", "00")])
@pytest.mark.parametrize("format", TWICE)
def test_one_column_for_both_ends_is_refused(tmp_path, format, columns):
    name, data = TWICE[format]
    (tmp_path / name).write_bytes(data)
    refused(str(tmp_path / name), f"columns={columns!r}", "is one column", columns=columns)
    assert edges(str(tmp_path / name), columns=("src", "dst")) == [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize("column", [DIGITS, "x" * 5000, "-1", "3", "", "\ud800", "\u0663" * 5000])
@pytest.mark.parametrize("format", TWICE)
def test_columns_that_are_not_there_are_refused(tmp_path, format, column):
    name, data = TWICE[format]
    (tmp_path / name).write_bytes(data)
    refused(str(tmp_path / name), "not", columns=("0", column))


# Anything


@st.composite
def damaged(draw):
    """A small file of some format, damaged in a few places."""
    format = draw(st.sampled_from(sorted(SOUND)))
    name, data = SOUND[format]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        piece = draw(st.sampled_from(ODD) | st.binary(max_size=3))
        data = data[:place] + piece + data[place + draw(st.sampled_from([0, 1, len(piece), 40])) :]
    return name, data


SOUND = {
    "mtx": ("g.mtx", MTX + b"3 3 2\n1 2\n2 3\n"),
    "metis": ("g.metis", b"% c\n3 2 011 1\n1 2 7 3 8\n1 1 7\n1 1 8\n"),
    "smat": ("g.smat", b"3 3 2\n0 1 1\n1 2 0.5\n"),
    "lg": ("g.lg", b"3,2,u,graph\n1,2\n3,1\n"),
    "csv": ("g.csv", b'src,dst,w\n0,1,"a"\n1,2,b\n'),
    "text": ("g.txt", b"# c\na b {}\nb c\n"),
    "parquet": ("g.parquet", parquet(src=[0, 1, 2], dst=[1, 2, 0])),
    "npy": ("g.npy", npy((3, 2), bytes(48))),
    "npz": ("g.npz", zipped(src=PAIR[0], dst=PAIR[1])),
    "properties": ("g.properties", PROPERTIES),
    "gzip": ("g.gz", gzip.compress(b"0 1\n1 2\n")),
}
ODD = [b"-1", b"1e400", b"9" * 19, b"9" * 20, b"9" * 5000, b"4294967296", b"1.5", b"nan", b"\xd9\xa3", b"1_0", b"\0"]
ODD += [b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b" ", b",", b'"', b"%", b"(", b"", b"\xff\xff\xff\xff\x07"]


@settings(max_examples=150, deadline=None)
@given(file=damaged(), blocksize=st.sampled_from([1 << 26, 16, 1]))
@example(file=("g.metis", b"% c\n3 2 011 1\n1 2 7 1e4003 8\n1 1 7\n1 1 8\n"), blocksize=1 << 26)
def test_any_damage_is_refused_in_our_words_or_read(tmp_path_factory, file, blocksize):
    name, data = file
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    if name == "g.properties":
        path.with_suffix(".graph").write_bytes(bytes([0b01010110, 0b10101000, 0]))
    try:
        edges(str(path), blocksize=blocksize)
    except InputError as error:
        text = str(error)
    else:
        text = ""
    assert text == "" or text.isprintable()
    assert len(text) < 900
