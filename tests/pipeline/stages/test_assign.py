"""Assignments of vertices to parts: by hash, by ranges, by METIS, and from the rows of a file."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import InputError
from dasktc.pipeline.stages.assign import hashed, metis, of_ids, ranges_of, read_shards, read_whole, reading_of
from dasktc.pipeline.stages.attributes import ReadPart
from dasktc.pipeline.stages.ids import map_of_integers
from dasktc.planning.grid import Shape
from dasktc.planning.plan import MAX_PARTS
from tests.support.oracle import complete
from tests.support.slow_pipeline import CPU, canonical_keys, orientation


@given(st.integers(0, 300), st.integers(1, MAX_PARTS), st.integers(0, 2**70), st.integers(0, 300))
def test_every_vertex_has_a_part(vertices, parts, seed, cut):
    """Ids of any shard have the parts that they have together; ranges ascend, and hashes depend on the seed."""
    for function, number in ((ranges_of, vertices), (hashed, seed)):
        whole = of_ids(function, 0, vertices, CPU, number, parts).tolist()
        cut = min(cut, vertices)
        shards = [of_ids(function, *shard, CPU, number, parts).tolist() for shard in ((0, cut), (cut, vertices))]
        assert sum(shards, []) == whole  # noqa: RUF017
        assert set(whole) <= set(range(parts))
        if function is ranges_of:
            assert whole == [vertex * parts // vertices for vertex in range(vertices)]


def test_hashed_parts_are_about_equal_and_depend_on_the_seed():
    ids = np.arange(2_000)
    own = [hashed(ids, seed, 4) for seed in (0, 1)]
    assert (own[0] != own[1]).sum() > 1_000
    assert min(np.bincount(own[0])) > 400


def parts_by_metis(edges, parts, memory=None):
    keys, shift = canonical_keys(edges)
    return metis([keys[::2], keys[1::2]], Shape(len(orientation(edges).ids), shift, True), parts, memory, CPU)


def test_metis_keeps_neighbours_together():
    """Two cliques joined by an edge: each part is a clique."""
    own = parts_by_metis([*complete(20), *((u + 20, v + 20) for u, v in complete(20)), (0, 20)], 2)
    assert sorted([set(own[:20]), set(own[20:])], key=min) == [{0}, {1}]


@pytest.mark.parametrize("edges", [[], [(0, 1)], complete(9)])
@pytest.mark.parametrize("parts", [1, 3, MAX_PARTS])
def test_metis_takes_more_parts_than_vertices(edges, parts):
    own = parts_by_metis(edges, parts)
    assert len(own) == len(orientation(edges).ids)
    assert set(own) <= set(range(parts))


def test_what_metis_does_not_take_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"takes 4.32 kB, more than the 4 kB that one stage may take.*assign='random'"):
        parts_by_metis(complete(9), 2, 4_000)
    many = np.broadcast_to(np.int64(0), 1 << 30)
    with pytest.raises(InputError, match=r"1,073,741,824 edges.*METIS.*method=Method\(assign='random'\)"):
        metis([many], Shape(1, 1, True), 2, None, CPU)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(InputError, match=r"pip install 'dasktc\[metis\]'"):
        parts_by_metis(complete(5), 2)


def read(rows, names, order, parts, ids="int", path="parts.txt"):
    """The parts of vertices by new id, from rows in two parts of a file; whole, and as two shards read them."""
    kind = "str" if ids == "text" else "int64"
    held = [
        ReadPart(pd.DataFrame(some, columns=["src", "dst"]).astype({"src": kind}), ids)
        for some in (rows[::2], rows[1::2])
    ]
    if ids == "int":
        own, number = read_whole(
            path, held, ids, map_of_integers(np.array(names, "int64"), CPU), np.array(order, "int64"), parts
        )
        cut = len(names) // 2
        shards = [np.array(half, dtype="int64") for half in (names[:cut], names[cut:])]
        orders = [np.array(half, dtype="int64") for half in (order[:cut], order[cut:])]
        *in_shards, again = read_shards(path, held, ids, shards, orders, parts)
        assert (np.concatenate(in_shards).tolist(), again) == (own.tolist(), number)
        return own.tolist(), number
    own, number = read_shards(path, held, ids, [np.array(names, dtype=object)], [np.array(order, "int64")], parts)
    return own.tolist(), number


@given(st.lists(st.integers(-9, 40), unique=True, max_size=12), st.integers(1, 4), st.integers(0, 5), st.booleans())
def test_a_file_says_which_part_a_vertex_is_in(names, parts, seed, given_parts):
    """Also of vertices that the graph does not have; parts beyond the number of vertices are renumbered."""
    rng, names = np.random.default_rng(seed), sorted(names)
    named = {vertex: int(rng.integers(parts)) for vertex in [*names, 99]}
    order = rng.permutation(len(names)).tolist()
    rows = [(vertex, named[vertex]) for vertex in rng.permutation(list(named)).tolist()]
    own, number = read(rows, names, order, parts if given_parts else None)
    in_use = sorted({named[vertex] for vertex in names})
    renumbered = names and in_use[-1] >= len(names)
    assert own == [in_use.index(named[names[place]]) if renumbered else named[names[place]] for place in order]
    assert number == (parts if given_parts else 1 if not names else 1 + in_use[-1])


@pytest.mark.parametrize(("path", "header"), [("parts.csv", True), ("parts.csv", False), ("parts.txt", False)])
def test_vertices_named_by_text(path, header):
    rows = [*([("vertex", "part")] if header else []), *((f"v{u}", str(u % 2)) for u in range(6))]
    frame = rows[::2] + rows[1::2]
    assert read(frame, [f"v{u}" for u in range(6)], range(6), None, "text", path) == ([0, 1] * 3, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0), (1, 1), (2, 2)], r"has no part for 1 of 4 vertices, e.g. 3"),
        ([(0, 0), (1, 1), (2, 5), (3, 0)], r"vertex 2 into part 5, which is no number from 0 to 2"),
        ([(0, 0), (1, -1), (2, 1), (3, 0)], r"vertex 1 into part -1"),
        ([(0, 0), (1, 1), (2, 1), (3, 0), (1, 2)], r"vertex 1 into parts 1 and 2"),
    ],
)
def test_a_file_that_assigns_wrongly_is_refused(rows, message):
    with pytest.raises(InputError, match=message):
        read(rows, range(4), range(4), 3)


def test_how_a_file_is_read():
    """A table may have a header; each line of other files is a row."""
    assert [reading_of(path, "int").skip for path in ("a.csv", "A.PARQUET", "a.npy", "a.txt")][3] == 0
    assert reading_of("a.txt", "text").format == "text"
    assert reading_of("a.csv", "int") == reading_of("A.PARQUET", "int") != reading_of("a.txt", "int")
