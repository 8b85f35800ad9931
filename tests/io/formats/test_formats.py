"""File formats other than text: every rule of every reader on small files, and a table of real files."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import pickle
import re
import sys
import tarfile
from contextlib import suppress
from types import SimpleNamespace
from unittest import mock
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import InputError
from dasktc.io.formats import bvgraph, columnar, lightgraphs, ligra, lines, matrixmarket, metis, smat, streams
from dasktc.io.source import ReadOptions
from tests.support.tiers import some

BACKEND = SimpleNamespace(name="cpu", frame=pd, array=np)


def frames(module, path, **options):
    """The frames of a file as workers read them: each part is pickled, and read separately."""
    parts, ids = module.parts(str(path), ReadOptions(**options))
    for part in parts:
        assert part.upstream is None
        frame = pickle.loads(pickle.dumps(part)).read(BACKEND)
        assert list(frame.columns) == ["src", "dst"]
        types = {str(kind) for kind in frame.dtypes}
        assert types == {"str"} if ids == "text" else types in ({"int32"}, {"int64"})
        yield frame


def read(module, path, **options):
    """The edges of a file, in the file's order."""
    return [edge for frame in frames(module, path, **options) for edge in frame.itertuples(index=False, name=None)]


def refused(module, path, *says, **options):
    """Check that the file is refused in one line, which names it and says what is expected."""
    with pytest.raises(InputError) as caught:
        read(module, path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text or str(path).replace(".graph", ".properties") in text
    for words in says:
        assert words in text
    return text


def simple(module, path, **options):
    """Vertices with an edge, and edges, without loops, directions and duplicates."""
    pairs = [np.empty((0, 2), int), *(frame.to_numpy() for frame in frames(module, path, **options))]
    edges = np.sort(np.concatenate(pairs), axis=1)
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    return len(np.unique(edges)), len(edges)


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to


# Matrix Market


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


# METIS

METIS_READ = {
    "plain": ("3 2\n2 3\n1\n1\n", [(1, 2), (1, 3), (2, 1), (3, 1)]),
    "spaces": (" 3\t2 \n\t2 3  \n 1\n1", [(1, 2), (1, 3), (2, 1), (3, 1)]),
    "CRLF": ("3 2\r\n2 3\r\n1\r\n1\r\n", [(1, 2), (1, 3), (2, 1), (3, 1)]),
    "isolated": ("4 1\n\n3\n2\n\n", [(2, 3), (3, 2)]),
    "isolated at the end": ("3 1\n2\n1\n", [(1, 2), (2, 1)]),
    "comments": ("% x\n3 1 0\n% 1 2\n\n%\n  % y\n3\n2\n% z", [(2, 3), (3, 2)]),
    "blank tail": ("2 1\n2\n1\n\n\n", [(1, 2), (2, 1)]),
    "edge weights": ("3 2 1\n2 7 3 8\n1 7\n1 8\n", [(1, 2), (1, 3), (2, 1), (3, 1)]),
    "real weights": ("2 1 001\n2 0.5\n1 5e-1\n", [(1, 2), (2, 1)]),
    "vertex weights": ("2 1 10\n9 2\n9 1\n", [(1, 2), (2, 1)]),
    "two vertex weights": ("3 1 010 2\n9 9 2\n9 9 1\n9 9\n", [(1, 2), (2, 1)]),
    "sizes": ("2 1 100\n5 2\n5 1\n", [(1, 2), (2, 1)]),
    "everything": ("3 1 111 2\n5 9 9 2 7\n5 9 9 1 7\n5 8 8\n", [(1, 2), (2, 1)]),
    "weights of none": ("2 1 0 3\n2\n1\n", [(1, 2), (2, 1)]),
    "loop listed once": ("2 2\n1 2\n1\n", [(1, 1), (1, 2), (2, 1)]),
    "loop listed twice": ("2 2\n1 1 2\n1\n", [(1, 1), (1, 1), (1, 2), (2, 1)]),
    "no edges": ("3 0\n\n\n\n", []),
    "no vertices": ("0 0\n", []),
}


METIS_CUTS = [(1 << 26, lines.LONGEST), (1, 12), (5, 9)]


@pytest.mark.parametrize(
    ("blocksize", "longest"),
    some(itertools.product([1 << 26, 1, 5], [lines.LONGEST, 12, 9]), lambda *cut: cut in METIS_CUTS),
)
@pytest.mark.parametrize("name", METIS_READ)
def test_metis_is_read(write, monkeypatch, name, blocksize, longest):
    monkeypatch.setattr(lines, "LONGEST", longest)
    text, edges = METIS_READ[name]
    assert read(metis, write("g.graph", text), blocksize=blocksize) == edges
    assert read(metis, write("g.graph.xz", gzip.compress(text.encode())), blocksize=blocksize) == edges


METIS_REFUSED = {
    "empty": ("", "METIS header"),
    "word in the header": ("3 x\n2\n1\n\n", "line 1 ", "METIS header"),
    "one number": ("3\n2\n1\n\n", "line 1 ", "METIS header"),
    "five numbers": ("3 1 0 1 1\n2\n1\n\n", "line 1 ", "METIS header"),
    "bad fmt": ("3 1 2\n2\n1\n\n", "line 1 ", "METIS header"),
    "long fmt": ("3 1 0001\n2\n1\n\n", "line 1 ", "METIS header"),
    "too few lines": ("5 2\n2 3\n1\n1\n", "3 vertex lines", "says 5"),
    "too many lines": ("2 1\n2\n1\n2\n", "line 4 ", "beyond the header's 2 vertices"),
    "blank lines lost": ("5 1\n4\n2\n", "2 vertex lines", "says 5"),
    "wrong edges": ("3 3\n2 3\n1\n1\n", "lists 4 neighbours", "says 3 edges"),
    "edges listed once": ("3 2\n2 3\n\n\n", "lists 2 neighbours", "says 2 edges"),
    "neighbour 0": ("3 2\n2 3\n0\n1\n", "line 3 ", "vertex 2", "'0'"),
    "neighbour beyond": ("% c\n3 2\n2 3\n% c\n1\n4\n", "line 6 ", "vertex 3", "'4'"),
    "negative": ("3 2\n2 -3\n1\n1\n", "line 2 ", "'-3'"),
    "word": ("3 2\n2 3\n1\nx\n", "line 4 ", "'x'"),
    "fraction": ("3 2\n2 3\n1.5\n1\n", "line 3 ", "'1.5'"),
    "weighted fraction": ("3 2 1\n2 1 3.5 1\n1 1\n1 1\n", "line 2 ", "'3.5'"),
    "weight is a word": ("2 1 1\n2 x\n1 7\n", "line 2 ", "'x'"),
    "weight missing": ("3 2 1\n2 7 3\n1 7\n1 8\n", "line 2 ", "holds 3 numbers"),
    "vertex weight missing": ("3 1 10\n9 2\n9 1\n\n", "line 4 ", "holds 0 numbers"),
    "weighted vertex missing": ("3 1 10\n9 2\n9 1\n", "2 vertex lines", "says 3"),
    "beyond 64 bits": ("2 1\n99999999999999999999\n1\n", "line 2 ", "neighbour from 1 to 2"),
    "comment after numbers": ("3 2\n2 3 % c\n1\n1\n", "line 2 ", "'%'"),
}


@pytest.mark.parametrize("longest", [lines.LONGEST, 12])
@pytest.mark.parametrize("blocksize", [1 << 26, 5])
@pytest.mark.parametrize("name", METIS_REFUSED)
def test_metis_is_refused(write, monkeypatch, name, blocksize, longest):
    text, *says = METIS_REFUSED[name]
    monkeypatch.setattr(lines, "LONGEST", max([longest, *map(len, text.split())]))
    refused(metis, write("g.graph", text), *says, blocksize=blocksize)


@given(
    vertices=st.integers(1, 30),
    pairs=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=60),
    blocksize=st.integers(1, 80),
    lead=st.integers(0, 2),
    weighted=st.booleans(),
    longest=st.sampled_from([lines.LONGEST, 14, 23]),
)
def test_metis_any_graph_any_cut(tmp_path_factory, vertices, pairs, blocksize, lead, weighted, longest):
    kept = {frozenset(p) for p in pairs if max(p) <= vertices and p[0] != p[1]}
    lists = {v: sorted(min(edge - {v}) for edge in kept if v in edge) for v in range(1, vertices + 1)}
    fields = {v: [item for w in lists[v] for item in ([w, 0.5] if weighted else [w])] for v in lists}
    rows = [" ".join(map(str, [7] * lead + fields[v])) + "\n" for v in lists]
    path = tmp_path_factory.mktemp("metis") / "g.graph"
    path.write_text(f"{vertices} {len(kept)} {bool(lead):d}{weighted:d} {lead}\n" + "% c\n".join(rows))
    with patch.object(lines, "LONGEST", longest):
        assert read(metis, path, blocksize=blocksize) == [(v, w) for v in lists for w in lists[v]]


# SMAT and LightGraphs

COUNTED_READ = {
    "smat": (smat, "3 3 3\n0 1 1\n1 2 0.5\n2 2 0\n", [(0, 1), (1, 2), (2, 2)]),
    "smat with blanks": (smat, " 3\t3 1\n\n  0  2\t1e3 \n\n", [(0, 2)]),
    "smat, no entries": (smat, "3 3 0\n", []),
    "smat CRLF": (smat, "3 3 1\r\n0 2 1\r\n", [(0, 2)]),
    "lg": (lightgraphs, "3,2,u,graph\n1,2\n3,1\n", [(1, 2), (3, 1)]),
    "lg with more": (lightgraphs, "3,2,d,graph,2,Int64,simplegraph\n1,2\n3,1", [(1, 2), (3, 1)]),
    "lg CRLF": (lightgraphs, "3,1,u,graph\r\n1,3\r\n", [(1, 3)]),
    "lg, no edges": (lightgraphs, "3,0,u,graph\n", []),
}


@pytest.mark.parametrize("name", COUNTED_READ)
def test_counted_lines_are_read(write, name):
    module, text, edges = COUNTED_READ[name]
    assert read(module, write("g", text)) == edges
    assert read(module, write("g", gzip.compress(gzip.compress(text.encode())))) == edges


COUNTED_REFUSED = {
    "smat header": (smat, "3 3\n0 1 1\n", "line 1 ", "'3 3'"),
    "smat empty": (smat, "", "line 1 "),
    "smat negative": (smat, "3 3 -1\n0 1 1\n", "line 1 "),
    "smat rectangular": (smat, "3 4 1\n0 1 1\n", "3 x 4"),
    "smat too few": (smat, "3 3 2\n0 1 1\n", "1 edge ", "says 2"),
    "smat too many": (smat, "3 3 1\n0 1 1\n1 2 1\n", "2 edges", "says 1"),
    "smat beyond": (smat, "3 3 2\n0 1 1\n\n3 1 1\n", "line 4 ", "from 0 to 2"),
    "smat negative id": (smat, "3 3 2\n0 1 1\n-1 1 1\n", "line 3 "),
    "smat nan": (smat, "3 3 2\n0 1 1\nnan 1 1\n", "line 3 ", "'nan 1 1'"),
    "smat word": (smat, "3 3 2\n0 1 1\n0 x 1\n", "line 3 ", "'0 x 1'"),
    "smat no value": (smat, "3 3 2\n0 1 1\n0 2\n", "line 3 "),
    "smat never a value": (smat, "3 3 2\n0 1\n0 2\n", "line 2 "),
    "smat wide": (smat, "3 3 2\n0 1 1\n0 2 1 1\n", "line 3 "),
    "smat always wide": (smat, "3 3 2\n0 1 1 1\n0 2 1 1\n", "line 2 "),
    "smat zero byte": (smat, "3 3 1\n0 1\x002 1\n", "line 2 "),
    "smat beyond 64 bits": (smat, f"3 3 1\n0 {1 << 64} 1\n", "line 2 "),
    "lg header": (lightgraphs, "3,2\n1,2\n3,1\n", "line 1 ", "'V,E,u,name'"),
    "lg kind": (lightgraphs, "3,2,x,graph\n1,2\n3,1\n", "line 1 "),
    "lg too few": (lightgraphs, "3,3,u,graph\n1,2\n3,1\n", "2 edges", "says 3"),
    "lg two graphs": (lightgraphs, "3,2,u,a\n1,2\n3,1\n2,1,u,b\n1,2\n", "line 4 ", "2 1 u b"),
    "lg id 0": (lightgraphs, "3,2,u,graph\n1,2\n0,1\n", "line 3 ", "from 1 to 3"),
    "lg beyond": (lightgraphs, "3,2,u,graph\n1,2\n4,1\n", "line 3 "),
    "lg weighted": (lightgraphs, "3,2,u,graph\n1,2,1.0\n3,1,1.0\n", "line 2 "),
}


@pytest.mark.parametrize("name", COUNTED_REFUSED)
def test_counted_lines_are_refused(write, name):
    module, text, *says = COUNTED_REFUSED[name]
    refused(module, write("g", text), *says)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"3,2,u,graph\n1,2\n", True),
        (b"3, 2, d, g, 2\n", True),
        (b"3,2\n1,2\n", False),
        (b"u,v,u,w\n", False),
    ],
)
def test_lightgraphs_header(head, expected):
    assert lightgraphs.looks_like(head) is expected


@pytest.mark.parametrize("nbytes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [b"", b"\n", b"ab\n\nc\n", b"abcdefgh\ni\n\n\nj", b"no end"])
def test_blocks_are_whole_lines(text, nbytes):
    blocks = [block for _, block in lines.blocks(io.BytesIO(text), nbytes, "g", 0)]
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert sum(map(lines.count_nonblank, blocks)) == sum(bool(line.strip()) for line in text.split(b"\n"))


# The line formats against slow readers that follow their rules to the letter


def metis_slowly(vertices, edges, body):
    """The edges of a METIS file without weights, by a slow reader; None if the file is invalid."""
    rows = [row.split() for row in body.splitlines() if not row.strip(" \t").startswith("%")]
    found = [(v, int(field)) for v, row in enumerate(rows, 1) for field in row if field.isdecimal()]
    clean = all(field.isdecimal() and 1 <= int(field) <= vertices for row in rows for field in row)
    loops = sum(v == w for v, w in found)
    invisible = len(rows) == vertices - 1 and sorted(found) == sorted((w, v) for v, w in found)
    complete = (len(rows) >= vertices or invisible) and not any(rows[vertices:])
    return found if clean and complete and 2 * edges in (len(found), len(found) + loops) else None


def smat_slowly(rows, entries, body):
    """The edges of an SMAT file, by a slow reader; None if the file is invalid."""
    fields = [line.split() for line in body.split("\n") if line.strip()]
    with suppress(ValueError):
        found = [(int(row), int(column), float(value))[:2] for row, column, value in fields]
        if len(found) == entries and all(0 <= end < rows for edge in found for end in edge):
            return found
    return None


def entries_slowly(rows, entries, body):
    """The edges of a Matrix Market file with integer values and one-digit ids, by a slow reader; None if invalid."""
    lines_ = [line.strip() for line in body.split("\n") if line.strip()]
    found = [re.match(r"([0-9]+)\s+([0-9]+)\s+-?[0-9]", line) for line in lines_]
    if len(found) != entries or None in found:
        return None
    edges = [(int(match[1]), int(match[2])) for match in found]
    return edges if all(1 <= end <= rows for edge in edges for end in edge) else None


@given(
    format_=st.sampled_from(["metis", "smat", "mtx"]),
    size=st.integers(1, 4),
    count=st.integers(0, 3),
    body=st.lists(st.sampled_from(["1", "2", "3", "1 2", "2 1 1", "1 1 0", "\n", "\n", "\n", " ", "%", "4", "-"])),
    blocksize=st.sampled_from([1, 3, 30, 1 << 26]),
)
def test_any_text(tmp_path_factory, format_, size, count, body, blocksize):
    module, header, slowly = {
        "metis": (metis, f"{size} {count}\n", metis_slowly),
        "smat": (smat, f"{size} {size} {count}\n", smat_slowly),
        "mtx": (matrixmarket, mtx("integer", "general", f"{size} {size} {count}"), entries_slowly),
    }[format_]
    text = "".join(body)
    path = tmp_path_factory.mktemp("any") / "g.txt"
    path.write_text(header + text)
    expected = slowly(size, count, text)
    if expected is None:
        refused(module, path, blocksize=blocksize)
    else:
        assert read(module, path, blocksize=blocksize) == expected


# Parquet

EDGES = [(0, 5), (5, 0), (7, 7), (3, 5)]
SRC, DST = (list(ends) for ends in zip(*EDGES, strict=True))


def parquet(path, row_group_size=None, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_parquet_integers(tmp_path, kind):
    other = "int64" if kind == "int32" else "int16"
    path = parquet(tmp_path / "g.parquet", src=pa.array(SRC, kind), dst=pa.array(DST, other))
    assert read(columnar, path) == EDGES


TEXT = ["a", "b", "", "1"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
)
def test_parquet_text(tmp_path, kind):
    path = parquet(tmp_path / "g.parquet", 2, src=pa.array(TEXT).cast(kind), dst=pa.array(TEXT[::-1]))
    assert columnar.parts(str(path), ReadOptions())[1] == "text"
    for blocksize in (1, 1 << 20):
        assert read(columnar, path, blocksize=blocksize) == list(zip(TEXT, TEXT[::-1], strict=True))


def test_parquet_ids_are_converted_on_request(tmp_path):
    mixed = parquet(tmp_path / "g.parquet", src=["1", "2"], dst=[3, 4])
    assert read(columnar, mixed, ids="int") == [(1, 3), (2, 4)]
    assert read(columnar, mixed, ids="text") == [("1", "3"), ("2", "4")]
    refused(columnar, mixed, "'src' string and 'dst' int64")
    refused(columnar, parquet(tmp_path / "x.parquet", src=["1", "x"], dst=[3, 4]), "'x'", ids="int")


@pytest.mark.parametrize(("blocksize", "expected"), [(1, 5), (16 * 3, 5), (16 * 6, 3), (1 << 20, 1)])
def test_parquet_parts_are_row_groups(tmp_path, blocksize, expected):
    path = parquet(tmp_path / "g.parquet", 3, weight=[0.5] * 13, src=list(range(13)), dst=list(range(1, 14)))
    options = ReadOptions(blocksize=blocksize)
    assert len(columnar.parts(str(path), options)[0]) == expected
    assert read(columnar, path, blocksize=blocksize) == [(i, i + 1) for i in range(13)]


def test_parquet_without_rows(tmp_path):
    nothing = pa.array([], "int64")
    assert read(columnar, parquet(tmp_path / "g.parquet", src=nothing, dst=nothing)) == []
    texts = pa.array([], "string")
    ((part,), _) = columnar.parts(str(parquet(tmp_path / "t.parquet", src=texts, dst=texts)), ReadOptions(ids="text"))
    assert [list(frame.columns) for frame in part.chunks(BACKEND, 10)] == [["src", "dst"]]


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (["w", "dst", "src"], None, ("src", "dst")),
        (["Target", "Source", "w"], None, ("Source", "Target")),
        (["w", "u", "v"], None, ("u", "v")),
        (["~id", "~from", "~to"], None, ("~from", "~to")),
        (["name:START_ID(A)", "w", ":END_ID(B)"], None, ("name:START_ID(A)", ":END_ID(B)")),
        (["Edge_ID", "b"], None, ("Edge_ID", "b")),
        (["id", "b"], None, ("id", "b")),
        (["a", "b", "start", "end"], None, ("a", "b")),
        (["a", "b", "c"], None, ("a", "b")),
        (["a", "b", "c"], ("c", "a"), ("c", "a")),
        (["a", "b", "c"], ("2", "1"), ("c", "b")),
        (["a", "1", "0"], ("0", "1"), ("0", "1")),
        (["src", "dst", "c"], ("c", "dst"), ("c", "dst")),
    ],
)
def test_parquet_columns(tmp_path, names, columns, expected):
    table = {name: [10 * place, 10 * place + 1] for place, name in enumerate(names)}
    path = parquet(tmp_path / "g.parquet", **table)
    assert read(columnar, path, columns=columns) == list(zip(*(table[name] for name in expected), strict=True))


def test_ids_in_names_of_folders_are_not_passed_over(tmp_path):
    folder = tmp_path / "source=1"
    folder.mkdir()
    path = parquet(folder / "g.parquet", target=[2, 3], year=[1999, 2000])
    with pytest.raises(InputError, match="'source' in the names of its folders"):
        columnar.parts(str(path), ReadOptions())
    assert read(columnar, path, columns=("target", "year")) == [(2, 1999), (3, 2000)]
    other = parquet(folder / "h.parquet", a=[2, 3], b=[1999, 2000])
    assert read(columnar, other) == [(2, 1999), (3, 2000)]


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        ({"a": [1, 2]}, {}, "columns a"),
        ({"Unnamed: 0": [1, 2], "a": [1, 2], "b": [1, 2]}, {}, "perhaps numbers the rows"),
        ({"id": [1, 2], "a": [1, 2], "b": [1, 2]}, {}, "perhaps numbers the rows"),
        ({"src": pa.array([1, 2], "date32"), "dst": [1, 2]}, {}, "'src' date32"),
        ({"src": [1, None], "dst": [1, 2]}, {}, "lacks 1 id"),
        ({"src": ["a", None], "dst": ["a", "b"]}, {}, "lacks 1 id"),
        ({"src": pa.array([1, 1 << 63], "uint64"), "dst": [1, 2]}, {}, f"{1 << 63}: integer ids are below 2^63"),
        ({"src": [True, False], "dst": [1, 2]}, {}, "'src' bool"),
        ({"src": [[1], [2]], "dst": [1, 2]}, {}, "list"),
        ({"src": [1, 2], "dst": [1, 2]}, {"columns": ("src", "x")}, "src and x are not among them"),
        ({"src": [1, 2], "dst": [1, 2]}, {"columns": ("0", "2")}, "0 and 2 are not among them"),
    ],
)
def test_parquet_is_refused(tmp_path, table, options, says):
    refused(columnar, parquet(tmp_path / "g.parquet", **table), says, **options)


def test_damaged_parquet_is_refused(tmp_path, write):
    good = parquet(tmp_path / "g.parquet", src=SRC, dst=DST).read_bytes()
    refused(columnar, write("cut.parquet", good[:-9]))
    refused(columnar, write("zero.parquet", good[:4] + bytes(60) + good[64:]))
    refused(columnar, write("g.parquet.gz", gzip.compress(good)), "decompress")
    refused(columnar, write("text.parquet", "1 2\n"), "b'1 2\\n'")


# NumPy


def saved(path, array, **options):
    np.save(path, array, **options)
    return path


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["i1", "u2", "<i4", ">i4", "<i8", ">i8", "<u8", ">u8"])
def test_npy(tmp_path, kind, order):
    path = saved(tmp_path / "g.npy", np.asarray(EDGES, kind, order=order))
    for blocksize in (1, 2 * np.dtype(kind).itemsize * 3, 1 << 20):
        assert read(columnar, path, blocksize=blocksize) == EDGES
    assert len(columnar.parts(str(path), ReadOptions(blocksize=1))[0]) == len(EDGES)
    packed = tmp_path / "packed.npy"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(columnar, packed, blocksize=1) == EDGES


def test_npy_of_no_edges(tmp_path):
    assert read(columnar, saved(tmp_path / "g.npy", np.empty((0, 2), int))) == []


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 5), int), "save its transpose"),
        (np.zeros((5, 3), int), "shape (m, 2)"),
        (np.zeros(6, int), "shape (m, 2)"),
        (np.int64(3), "shape (m, 2)"),
        (np.zeros((5, 2)), "float64"),
        (np.array([["a", "b"]]), "integers"),
        (np.array([[1, 1 << 63]], np.uint64), "below 2^63"),
        (np.array([[1, None]], object), "object of shape (1, 2): edges are integers of shape (m, 2); save two columns"),
        (np.array([[1, 2, 3], [1, None, 2]], object), "save two columns of int64"),
        (np.array([1, 2]), "save two columns of int64"),
        (np.zeros((2, 5)), "save two columns of int64"),
    ],
)
def test_npy_is_refused(tmp_path, array, says):
    refused(columnar, saved(tmp_path / "g.npy", array, allow_pickle=True), says)


def test_damaged_npy_is_refused(tmp_path, write):
    good = saved(tmp_path / "g.npy", np.array(EDGES)).read_bytes()
    refused(columnar, write("cut.npy", good[:-1]), "1 byte before", "cut short")
    refused(columnar, write("cut.npy.gz", gzip.compress(good[:-1])), "1 byte before")
    refused(columnar, write("head.npy", good[:20]))
    refused(columnar, write("version.npy", good[:6] + b"\x09" + good[7:]))


ARCHIVES = {
    "named": ({"dst": DST, "src": SRC, "weight": [0.5] * 4}, None, EDGES),
    "asked for": ({"a": DST, "b": SRC, "c": SRC}, ("b", "a"), EDGES),
    "one array": ({"edges": EDGES}, None, EDGES),
    "one of two": ({"src": np.array(SRC, "i4"), "dst": np.array(DST, "u4")}, None, EDGES),
    "no edges": ({"src": np.empty(0, int), "dst": np.empty(0, int)}, None, []),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, name, save):
    arrays, columns, edges = ARCHIVES[name]
    save(tmp_path / "g.npz", **arrays)
    assert read(columnar, tmp_path / "g.npz", columns=columns) == edges
    (tmp_path / "packed.npz").write_bytes(bz2.compress((tmp_path / "g.npz").read_bytes()))
    assert read(columnar, tmp_path / "packed.npz", columns=columns) == edges


@pytest.mark.parametrize(
    ("arrays", "columns", "says"),
    [
        ({"a": SRC, "b": DST}, None, "columns=..."),
        ({"src": SRC, "dst": DST[:3]}, None, "(4,) and (3,)"),
        ({"src": EDGES, "dst": EDGES}, None, "(4, 2) and (4, 2)"),
        ({"src": SRC, "dst": [0.5] * 4}, None, "float64"),
        ({"src": SRC, "dst": DST}, ("src", "x"), "src and x"),
        ({"edges": SRC}, None, "shape (m, 2)"),
        ({"src": SRC, "dst": np.array([1, "a", None, 2], object)}, None, "pickle"),
        ({"src": SRC, "dst": np.array([1, 2, 3, 1 << 63], np.uint64)}, None, "below 2^63"),
    ],
)
def test_npz_is_refused(tmp_path, arrays, columns, says):
    np.savez(tmp_path / "g.npz", **arrays)
    refused(columnar, tmp_path / "g.npz", says, columns=columns)


def test_damaged_npz_is_refused(tmp_path, write):
    np.savez(tmp_path / "g.npz", src=np.arange(100), dst=np.arange(100))
    good = (tmp_path / "g.npz").read_bytes()
    refused(columnar, write("cut.npz", good[:-30]))
    refused(columnar, write("flip.npz", good[:300] + bytes([good[300] ^ 255]) + good[301:]), "CRC")


STORED = sp.coo_array((np.array([1.0, 0.0, 2.0, 3.0]), (SRC, DST)), shape=(8, 8))
"""One of its entries is an explicit zero."""


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("container", [sp.coo_array, sp.coo_matrix, sp.csr_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_stored_zeros_are_edges(tmp_path, container, compressed):
    matrix = container(STORED)
    assert matrix.nnz == 4
    sp.save_npz(tmp_path / "g.npz", matrix, compressed=compressed)
    assert sorted(read(columnar, tmp_path / "g.npz")) == sorted(EDGES)


@pytest.mark.parametrize("format_", ["bsr", "dia"])
def test_sparse_padding_is_no_edge(tmp_path, format_):
    matrix = STORED.tobsr((2, 2)) if format_ == "bsr" else STORED.todia()
    sp.save_npz(tmp_path / "g.npz", matrix)
    assert sorted(read(columnar, tmp_path / "g.npz")) == sorted(set(EDGES) - {(5, 0)})


def test_sparse_is_refused(tmp_path):
    path = tmp_path / "g.npz"
    sp.save_npz(path, sp.csr_matrix((3, 4)))
    refused(columnar, path, "3 x 4", "bipartite")
    good = {"format": b"csr", "shape": (3, 3), "data": [1.0, 1.0], "indices": [0, 1], "indptr": [0, 1, 2, 2]}
    for damage in ({"indices": [0, 3]}, {"indices": [0, -1]}, {"indptr": [0, 9, 1, 2]}, {"format": b"abc"}):
        np.savez(path, **good | damage)
        refused(columnar, path)
    np.savez(path, **good)
    assert read(columnar, path) == [(0, 0), (1, 1)]
    np.savez(path, format=b"coo", shape=(3, 3), data=[1.0], row=[0], col=[3])
    refused(columnar, path)


# BVGraph: a slow encoder of the format, straight from the paper's tables


def unary(n):
    return "0" * n + "1"


def gamma(n):
    digits = f"{n + 1:b}"
    return unary(len(digits) - 1) + digits[1:]


def delta(n):
    digits = f"{n + 1:b}"
    return gamma(len(digits) - 1) + digits[1:]


def zeta(k):
    def code(n):
        shell = (n + 1).bit_length() - 1
        shell -= shell % k
        value, span = n + 1 - (1 << shell), (1 << shell + k) - (1 << shell)
        width = (span - 1).bit_length()
        short = (1 << width) - span
        digits = f"{value:0{width - 1}b}" if value < short else f"{value + short:0{width}b}"
        return unary(shell // k) + digits * (span > 1)

    return code


def signed(n):
    return 2 * n if n >= 0 else -2 * n - 1


def encoded(lists, window, min_interval, codes, draw):
    """The bits of a graph; `draw(choices)` picks each reference."""
    bits = ""
    for x, successors in enumerate(lists):
        bits += codes["OUTDEGREES"](len(successors))
        if not successors:
            continue
        rest = list(successors)
        if window:
            reference = draw(range(min(x, window) + 1))
            bits += codes["REFERENCES"](reference)
            if reference:
                source = lists[x - reference]
                runs = [(kept, len(list(run))) for kept, run in itertools.groupby(s in rest for s in source)]
                blocks = [0] if runs and not runs[0][0] else []
                blocks = [*blocks, *(length for _, length in runs)][:-1]  # the last one follows from the others
                bits += codes["BLOCK_COUNT"](len(blocks))
                bits += "".join(codes["BLOCKS"](n - bool(i)) for i, n in enumerate(blocks))
                rest = [s for s in rest if s not in source]
        if rest and min_interval:
            found, rest = intervals(rest, min_interval)
            bits += gamma(len(found))
            for i, (left, length) in enumerate(found):
                gap = signed(left - x) if i == 0 else left - sum(found[i - 1]) - 1
                bits += gamma(gap) + gamma(length - min_interval)
        for i, residual in enumerate(rest):
            bits += codes["RESIDUALS"](signed(residual - x) if i == 0 else residual - rest[i - 1] - 1)
    return bits


def intervals(rest, shortest):
    groups = itertools.groupby(enumerate(rest), lambda pair: pair[1] - pair[0])
    runs = [[s for _, s in run] for _, run in groups]
    found = [(run[0], len(run)) for run in runs if len(run) >= shortest]
    return found, [s for run in runs if len(run) < shortest for s in run]


def bvgraph_file(folder, lists, window=3, min_interval=2, k=3, names=None, draw=max, **properties):
    names = {"OUTDEGREES": "GAMMA", "BLOCKS": "GAMMA", "RESIDUALS": "ZETA", "REFERENCES": "UNARY"} | (names or {})
    functions = {"GAMMA": gamma, "DELTA": delta, "UNARY": unary, "ZETA": zeta(k)}
    codes = {"BLOCK_COUNT": gamma} | {field: functions[name] for field, name in names.items()}
    bits = encoded(lists, window, min_interval, codes, draw)
    bits += "0" * (-len(bits) % 8)
    (folder / "g.graph").write_bytes(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)))
    values = {
        "graphclass": "it.unimi.dsi.webgraph.BVGraph",
        "nodes": len(lists),
        "arcs": sum(map(len, lists)),
        "windowsize": window,
        "minintervallength": min_interval,
        "zetak": k,
        "compressionflags": "|".join(f"{field}_{name}" for field, name in names.items()),
    }
    text = "#BVGraph properties\n" + "".join(f"{key}={value}\n" for key, value in (values | properties).items())
    (folder / "g.properties").write_text(text)
    return folder / "g.graph"


def arcs(lists):
    return [(x, y) for x, successors in enumerate(lists) for y in successors]


LISTS = [
    [1, 2, 3, 4, 9],
    [],
    [0, 2, 3, 4, 9, 11],
    [0, 2, 3, 8],
    [11],
    *[[i % 12] for i in range(4)],
    [],
    [],
    [0, 11],
]


@st.composite
def adjacency(draw):
    nodes = draw(st.integers(1, 20))
    return [sorted(draw(st.sets(st.integers(0, nodes - 1)))) for _ in range(nodes)]


CODE_NAMES = st.sampled_from(["GAMMA", "DELTA", "UNARY", "ZETA"])


@given(
    lists=adjacency(),
    window=st.integers(0, 4),
    min_interval=st.sampled_from([0, 1, 2, 4]),
    k=st.integers(1, 5),
    names=st.fixed_dictionaries({field: CODE_NAMES for field in ("OUTDEGREES", "BLOCKS", "RESIDUALS")}),
    blocksize=st.sampled_from([1, 40, 200, 1 << 26]),
    random=st.randoms(use_true_random=False),
)
def test_bvgraph_any_graph(tmp_path_factory, lists, window, min_interval, k, names, blocksize, random):
    folder = tmp_path_factory.mktemp("bv")
    path = bvgraph_file(folder, lists, window, min_interval, k, names, random.choice)
    assert read(bvgraph, path, blocksize=blocksize) == arcs(lists)


@pytest.mark.parametrize("suffixes", [("", ""), (".gz", ""), (".gz", ".gz"), ("", ".gz")])
def test_bvgraph_files_may_be_compressed(tmp_path, suffixes):
    path = bvgraph_file(tmp_path, LISTS)
    for name, suffix in zip(("graph", "properties"), suffixes, strict=True):
        if suffix:
            old = tmp_path / f"g.{name}"
            (tmp_path / f"g.{name}{suffix}").write_bytes(gzip.compress(old.read_bytes()))
            old.unlink()
    path = tmp_path / f"g.graph{suffixes[0]}"
    assert bvgraph.properties_url(str(path)) == str(tmp_path / f"g.properties{suffixes[1]}")
    before = sorted(tmp_path.iterdir())
    for blocksize in (40, 1 << 26):
        assert read(bvgraph, path, blocksize=blocksize) == arcs(LISTS)
        assert read(bvgraph, tmp_path / f"g.properties{suffixes[1]}", blocksize=blocksize) == arcs(LISTS)
    assert sorted(tmp_path.iterdir()) == before


def test_bvgraph_parts(tmp_path):
    path = bvgraph_file(tmp_path, LISTS)
    parts, ids = bvgraph.parts(str(path), ReadOptions(blocksize=40))
    assert (len(parts) > 3, ids) == (True, "int")


@pytest.mark.parametrize("dtype", some(["int32", "int64"], lambda dtype: dtype == "int64"))
def test_bvgraph_ids_of_either_width(tmp_path, dtype):
    url = str(bvgraph_file(tmp_path, LISTS))
    decoder = bvgraph._Decoder(url, bvgraph._properties(url), bvgraph._stream(url, 0, None), 0)
    decoder.dtype = np.dtype(dtype)
    degrees, targets = decoder.decode(0, len(LISTS), sum(map(len, LISTS)))
    assert (degrees.tolist(), targets.tolist()) == ([*map(len, LISTS)], [y for _, y in arcs(LISTS)])
    assert targets.dtype == dtype


def test_nothing_of_the_bvgraph_decoder_is_cached_without_a_lock():
    from dasktc.io.formats import bvstream

    compiled = [found for found in vars(bvstream).values() if hasattr(found, "py_func")]
    assert compiled
    assert [found.stats.cache_path for found in compiled] == [None] * len(compiled)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"arcs": 20}, "20 arcs"),
        ({"arcs": 24}, "24 arcs"),
        ({"nodes": 11}, "g.graph"),
        ({"nodes": "many"}, "'many'"),
        ({"arcs": -1}, "out of range"),
        ({"zetak": 0}, "out of range"),
        ({"graphclass": "it.unimi.dsi.webgraph.EFGraph"}, "EFGraph"),
        ({"graphclass": ""}, "names no graphclass"),
        *(
            ({name: number}, f"says {name}='{number[:40]}', which is out of range")
            for name in ("nodes", "arcs", "windowsize", "minintervallength", "zetak")
            for number in (str(10**20), "9" * 5000, "-1", "1_0", "1.5")
        ),
        ({"nodes": 1 << 60}, "g.graph"),
        ({"arcs": 1 << 60}, "g.graph"),
        ({"endianness": "little"}, "little"),
        ({"compressionflags": "RESIDUALS_GOLOMB"}, "RESIDUALS_GOLOMB"),
    ],
)
@pytest.mark.parametrize("blocksize", [40, 1 << 26])
def test_bvgraph_is_refused(tmp_path, properties, says, blocksize):
    assert len(arcs(LISTS)) == 22
    refused(bvgraph, bvgraph_file(tmp_path, LISTS, **properties), says, blocksize=blocksize)


def test_bvgraph_needs_its_properties(tmp_path):
    path = bvgraph_file(tmp_path, LISTS)
    (tmp_path / "g.properties").unlink()
    assert bvgraph.properties_url(str(path)) is None
    assert bvgraph.properties_url(str(tmp_path / "g.graphml")) is None
    refused(bvgraph, path, "no .properties file")


@pytest.mark.parametrize("blocksize", [40, 1 << 26])
def test_damaged_bvgraph_is_refused_or_stays_a_graph(tmp_path, blocksize):
    path = bvgraph_file(tmp_path, LISTS)
    good = path.read_bytes()
    for length in range(len(good) - 1):
        path.write_bytes(good[:length])
        refused(bvgraph, path, blocksize=blocksize)
    outcomes = set()
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        edges = None
        with suppress(InputError):
            edges = read(bvgraph, path, blocksize=blocksize)
        outcomes.add(edges is None)
        if edges is not None:
            assert len(edges) == len(arcs(LISTS))
            assert all(0 <= end < len(LISTS) for edge in edges for end in edge)
    assert outcomes == {True, False}


# Real files


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def module_of(format_):
    known = {"mtx": matrixmarket, "METIS": metis, "LightGraphs/Graphs.jl": lightgraphs, "LAW": bvgraph}
    if format_.startswith("Graph Challenge mmio"):
        return matrixmarket
    return known.get(format_.strip('"').split()[0])


@pytest.mark.catalog
@pytest.mark.parametrize("blocksize", [1 << 26, 1 << 20])
def test_catalog(graphs_dir, tmp_path, blocksize):
    rows = [row for row in table(graphs_dir / "catalog.tsv") if module_of(row["format"])]
    assert len(rows) >= 12
    for row in rows:
        path, module = graphs_dir / row["file"], module_of(row["format"])
        if module is not bvgraph and blocksize < 1 << 26:  # only plain files are cut
            path = tmp_path / row["file"]
            path.write_bytes(streams.open_decompressed(str(graphs_dir / row["file"])).read())
        assert simple(module, path, blocksize=blocksize) == (int(row["V"]), int(row["E"])), row["name"]


@pytest.mark.catalog
def test_catalog_bvgraph_arcs(graphs_dir):
    expected = pd.read_csv(graphs_dir / "cnr-2000.arcs.tsv.gz", sep="\t", header=None).to_numpy()
    for blocksize in (1 << 26, 1 << 22):
        parts, _ = bvgraph.parts(str(graphs_dir / "cnr-2000.graph.gz"), ReadOptions(blocksize=blocksize))
        found = pd.concat([part.read(BACKEND) for part in parts]).to_numpy()
        assert np.array_equal(found, expected)


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


def test_files_that_cannot_be_read_at_once_are_read_one_by_one(monkeypatch, caplog):
    """Except where memory is short: then the call is made again with less memory in use beside it."""
    from dasktc.io.formats import columnar

    both = columnar._Files(tuple(columnar._RowGroups(name, ("a", "b"), (0,), 1, "int") for name in "xy"))
    backend = SimpleNamespace(array=np)

    def read(_, parts):
        if len(parts) > 1:
            raise RuntimeError("pages of two kinds")
        return pd.DataFrame({"src": [1], "dst": [2 + (parts[0].url == "y")]})

    monkeypatch.setattr(columnar, "_read_by_cudf", read)
    with caplog.at_level("INFO", "dasktc"):
        source, target = both.read_on_device(backend)
    assert (source.tolist(), target.tolist()) == ([1, 1], [2, 3])
    assert "2 files are read one by one" in caplog.text
    monkeypatch.setattr(columnar, "_read_by_cudf", mock.Mock(side_effect=MemoryError("std::bad_alloc")))
    with pytest.raises(MemoryError):
        both.read_on_device(backend)


# Ligra


@pytest.mark.parametrize("gap", ["\n", " ", "\r\n", " \t"])
@pytest.mark.parametrize("nbytes", [1, 3, 8, 1 << 20])
def test_an_adjacency_graph_of_ligra_is_read_in_blocks(tmp_path, gap, nbytes):
    path = tmp_path / "g"
    rows = [[], [0, 11, 4], [], [], [1], *[[] for _ in range(6)], [0, 1, 2], []]
    offsets = [sum(map(len, rows[:row])) for row in range(13)]
    targets = [target for row in rows for target in row]
    path.write_bytes(gap.join(map(str, ["AdjacencyGraph", 13, 7, *offsets, *targets])).encode())
    (part,), _ = ligra.parts(str(path), ReadOptions())
    found = np.concatenate(list(part.arrays(nbytes)), axis=1)
    assert found.tolist() == [[source for source, row in enumerate(rows) for _ in row], targets]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("AdjacencyGraph x", "is expected"),
        ("AdjacencyGraph 3 4 0 1 2 1 2 0", "holds 3 edges where its header says 4"),
        ("AdjacencyGraph 3 2 0 1 2 1 2 0", "holds 3 edges where its header says 2"),
        ("AdjacencyGraph 2 2 1 1 1 0", "do not ascend"),
        ("AdjacencyGraph 3 3 0 2 1 1 2 0", "do not ascend"),
        ("AdjacencyGraph 2 2 0 x 1 0", "holds 'x'"),
        ("AdjacencyGraph 2 2 0 1 1 5", "the target 5, but ids go from 0 to 1"),
        ("WeightedAdjacencyGraph 2 2 0 1 1 0 7 7", "with weights, which are not read"),
    ],
)
def test_an_adjacency_graph_of_ligra_is_refused(tmp_path, text, says):
    path = tmp_path / "g"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        [list(part.arrays(4)) for part in ligra.parts(str(path), ReadOptions())[0]]
