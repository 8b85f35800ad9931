"""Matrix Market files: every rule of the reader on small files, and real files."""

import bz2
import gzip
import re
import sys
import tarfile

import pytest

from dasktc.io.formats import matrixmarket
from dasktc.io.source import ReadOptions
from tests.support.formats import read, refused, simple, table


@pytest.fixture(params=["fast_matrix_market", "scipy"])
def mtx_library(request, monkeypatch):
    if request.param == "scipy":
        monkeypatch.setitem(sys.modules, "fast_matrix_market", None)
    return request.param


def mtx(field, symmetry, size, *rows, banner="%%MatrixMarket"):
    return "\n".join([f"{banner} matrix coordinate {field} {symmetry}", "% a comment", size, *rows, ""])


MTX_READ = {
    "general": (mtx("real", "general", "3 3 3", "1 2 0.5", "2 1 1e-3", "3 3 -1"), [(1, 2), (2, 1), (3, 3)]),
    "pattern": (mtx("pattern", "symmetric", "3 3 2", "2 1", "3 1"), [(2, 1), (3, 1)]),
    "integer": (mtx("integer", "general", "3 3 1", "1 3 -7"), [(1, 3)]),
    "explicit zero": (mtx("integer", "general", "3 3 2", "1 3 0", "2 3 1"), [(1, 3), (2, 3)]),
    "complex": (mtx("complex", "hermitian", "3 3 1", "3 1 1.5 -2"), [(3, 1)]),
    "skew-symmetric": (mtx("real", "skew-symmetric", "3 3 1", "2 1 4"), [(2, 1)]),
    "duplicate": (mtx("pattern", "general", "2 2 2", "1 2", "1 2"), [(1, 2), (1, 2)]),
    "no entries": (mtx("pattern", "general", "3 3 0"), []),
    "no vertices": (mtx("pattern", "general", "0 0 0"), []),
    "blank lines": (mtx("real", "general", "3 3 2", "1 2 1", "", " \t", "3 1 1", ""), [(1, 2), (3, 1)]),
    "indented": (mtx("real", "general", "  3 3 1", "   1   2  1"), [(1, 2)]),
    "more fields": (mtx("pattern", "general", "3 3 2", "1 2 5", "2 3 5 e").rstrip("\n"), [(1, 2), (2, 3)]),
    "no last line end": (mtx("real", "general", "3 3 2", "1 2 5", "2 3 5e0").rstrip("\n"), [(1, 2), (2, 3)]),
    "CRLF": (mtx("pattern", "general", "3 3 1", "1 2").replace("\n", "\r\n"), [(1, 2)]),
    "any case": (mtx("PATTERN", "General", "3 3 1", "1 2", banner="%%MatrixMarket"), [(1, 2)]),
    "one percent": (mtx("pattern", "general", "3 3 1", "1 2", banner="%MatrixMarket"), [(1, 2)]),
    "indented banner": (mtx("pattern", "general", "3 3 1", "1 2", banner="  %%MatrixMarket"), [(1, 2)]),
}


@pytest.mark.parametrize("blocksize", [1 << 26, 4])
@pytest.mark.parametrize("name", MTX_READ)
def test_matrix_market_is_read(write, mtx_library, name, blocksize):
    text, edges = MTX_READ[name]
    found = read(matrixmarket, write("g.mtx", text), blocksize=blocksize)
    assert found == edges


MTX_REFUSED = {
    "no banner": ("3 3 1\n1 2 1\n", "Missing banner"),
    "broken banner": ("%%Matrix Market matrix coordinate pattern general\n2 2 1\n1 2\n", "Missing banner"),
    "bad object": ("%%MatrixMarket graph coordinate pattern general\n2 2 1\n1 2\n", "line 1 ", "graph"),
    "bad field": (mtx("text", "general", "2 2 1", "1 2 1"), "line 1 ", "text"),
    "bad symmetry": (mtx("real", "odd", "2 2 1", "1 2 1"), "line 1 ", "odd"),
    "header only": ("%%MatrixMarket matrix coordinate real general\n", "EOF"),
    "vector": ("%%MatrixMarket vector coordinate real general\n3 1\n1 5\n", "3 x 1"),
    "array": (
        "%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n",
        "array of 2 x 2",
        "coordinate format",
    ),
    "rectangular": (mtx("pattern", "general", "3 4 1", "1 4"), "3 x 4", "bipartite"),
    "negative size": (mtx("pattern", "general", "-2 -2 1", "1 2"), "negative"),
    "size beyond 64 bits": (mtx("pattern", "general", f"{1 << 64} {1 << 64} 1", "1 2"), "out of range"),
    "too few": (mtx("real", "general", "3 3 3", "1 2 1", "2 3 1"), "g.mtx"),
    "too many": (mtx("real", "general", "3 3 1", "1 2 1", "2 3 1"), "g.mtx"),
    "row 0": (mtx("pattern", "general", "3 3 2", "1 2", "0 2"), "line 5 "),
    "row beyond": (mtx("pattern", "general", "3 3 2", "1 2", "4 2"), "line 5 "),
    "column beyond": (mtx("pattern", "general", "3 3 2", "1 2", "2 4"), "line 5 "),
    "negative id": (mtx("pattern", "general", "3 3 2", "1 2", "-1 2"), "line 5 "),
    "no value": (mtx("real", "general", "3 3 2", "1 2 1", "2 3"), "line 5 "),
    "one id": (mtx("pattern", "general", "3 3 2", "1 2", "2"), "line 5 "),
    "word": (mtx("real", "general", "3 3 2", "1 2 1", "2 3 x"), "line 5 "),
    "real as integer": (mtx("integer", "general", "3 3 2", "1 2 1", "2 3 inf"), "line 5 "),
    "column is a fraction": (mtx("real", "general", "3 3 2", "1 2 1", "2 2.5 1"), "line 5 ", "'2 2.'"),
    "column and value in one": (mtx("integer", "general", "3 3 2", "1 2 1", "2 3-1"), "line 5 "),
    "letter after the column": (mtx("pattern", "general", "3 3 2", "1 2", "2 3x"), "line 5 "),
    "NUL byte": (mtx("integer", "general", "3 3 2", "1 2 1", "2 3 1\x004"), "line 5 "),
    "NUL byte above": (mtx("integer", "general\0", "3 3 2", "1 2 1", "2 3 1"), "line 1 "),
    "no end of line": (mtx("real", "general", "3 3 3", "1 2 1", "2 3 1 e").rstrip("\n"), "2 edges"),
    "comment among entries": (mtx("real", "general", "3 3 2", "1 2 1", "% here", "2 3 1"), "g.mtx"),
}


@pytest.mark.parametrize("blocksize", [1 << 26, 4])
@pytest.mark.parametrize("name", MTX_REFUSED)
def test_matrix_market_is_refused(write, mtx_library, name, blocksize):
    text, *says = MTX_REFUSED[name]
    refused(matrixmarket, write("g.mtx", text), *says, blocksize=blocksize)


@pytest.mark.parametrize("blocksize", [7, 64, 1000])
def test_matrix_market_parts_cover_the_file(write, blocksize):
    rows = [f"{i} {1 + i * 7 % 400} {i / 3}" + "\n" * (i % 5 == 0) for i in range(1, 401)]
    path = write("g.mtx", mtx("real", "general", "400 400 400", *rows))
    parts, _ = matrixmarket.parts(str(path), ReadOptions(blocksize=blocksize))
    assert len(parts) > 3
    assert read(matrixmarket, path, blocksize=blocksize) == [(i, 1 + i * 7 % 400) for i in range(1, 401)]
    rows[300] = "301 999 1"
    refused(
        matrixmarket,
        write("bad.mtx", mtx("real", "general", "400 400 400", *rows)),
        "line 364 ",
        blocksize=blocksize,
    )


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lambda text: gzip.compress(gzip.compress(text))])
def test_matrix_market_compressed(write, mtx_library, packed):
    text, edges = MTX_READ["general"]
    assert read(matrixmarket, write("g.mtx", packed(text.encode())), blocksize=4) == edges


def test_matrix_market_in_a_damaged_archive(write, mtx_library):
    rows = [f"{i} {1 + i * 7 % 30000}" for i in range(1, 30001)]
    good = gzip.compress(mtx("pattern", "general", "30000 30000 30000", *rows).encode())
    refused(matrixmarket, write("cut.mtx", good[:-6]), "cut short")
    refused(matrixmarket, write("checksum.mtx", good[:-8] + bytes(4) + good[-4:]), "incorrect data check")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%%MatrixMarket matrix coordinate real general\n", True),
        (b"%MatrixMarket matrix coordinate real general\n", True),
        (b"  %%MatrixMarket matrix coordinate real general\n", True),
        (b"%%matrixmarket MATRIX Coordinate Real General\n", True),
        (b"%%__BadBanner matrix coordinate real general\n", True),
        (b"%%Matrix Market matrix coordinate real general\n", True),
        (b"%%MatrixMarket vector array real general\n", True),
        (b"% a comment about a matrix\n1 2\n", False),
        (b"% sym unweighted\n1 2\n", False),
        (b"# matrix coordinate\n1 2\n", False),
        (b"2 1\n3 1\n", False),
        (b"% first\n%%MatrixMarket matrix coordinate real general\n", False),
        (b"", False),
    ],
)
def test_matrix_market_banner(head, expected):
    assert matrixmarket.looks_like(head) is expected


@pytest.mark.catalog
@pytest.mark.parametrize("blocksize", [1 << 26, 100])
def test_catalog_odd_matrix_market(graphs_dir, tmp_path, mtx_library, blocksize):
    with tarfile.open(graphs_dir / "mtx-odd.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # of Python 3.11.4 on
        archive.extractall(tmp_path)
    rows = table(graphs_dir / "mtx-odd.tsv")
    assert {row["file"] for row in rows} == {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.mtx")}
    for row in rows:
        path = tmp_path / row["file"]
        if row["V"] == "-":
            refused(matrixmarket, path, blocksize=blocksize)
        else:
            expected = int(row["V"]), int(row["E"])
            assert simple(matrixmarket, path, blocksize=blocksize) == expected, row["file"]
        banner = re.match(rb"\s*%", path.read_bytes()) is not None
        assert matrixmarket.looks_like(path.read_bytes()[:4096]) is banner
