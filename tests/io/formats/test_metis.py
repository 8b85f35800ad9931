"""METIS files: every rule of the reader on small files."""

import gzip
import itertools
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.errors import InputError
from dasktc.io.formats import lines, metis
from tests.support.formats import read, refused
from tests.support.tiers import some


@pytest.mark.parametrize("lines", ["2 3\n1 3\n1 2 3\n", "2 3\n1 3\n1\n", "2 3\n1\n1 2\n"])
def test_metis_lists_each_edge_twice(tmp_path, lines):
    file = tmp_path / "graph.metis"
    file.write_text(f"3 3\n{lines}")
    with pytest.raises(InputError, match="each listed twice"):
        dasktc.triangle_count(str(file), backend="cpu")


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
