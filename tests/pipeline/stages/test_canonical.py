"""Canonicalization: keys of edges by every kind of id map, against rows relabelled one by one."""

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import CountError
from dasktc.pipeline.stages.blocks import stacked
from dasktc.pipeline.stages.canonical import (
    DENSE,
    count_ends,
    dense_ends,
    distinct_in_buckets,
    distinct_of_range,
    keys_in_chunks,
    keys_in_range,
    keys_of,
    keys_of_places,
    keys_of_samples,
    keys_of_slab,
    lazy_keys_of,
    oriented_in_ranges,
    ranked_in_ranges,
    slab_of_range,
)
from dasktc.pipeline.stages.edge_keys import shift_of, unpack
from dasktc.pipeline.stages.id_maps import arrays_of
from dasktc.pipeline.stages.ids import IdRange, map_of_integers, map_of_marks, map_of_texts
from dasktc.pipeline.stages.orient import ranks_and_starts, zero_degrees
from dasktc.pipeline.stages.shards import even
from tests.support.oracle import multigraphs
from tests.support.slow_pipeline import CPU, canonical_keys, frame_of

LOW, WIDTH = -5, 60
NAMES = {
    "range": lambda place: LOW + 3 * place,
    "table": lambda place: LOW + 3 * place,
    "sorted": lambda place: place * 2**50 - 2**60,
    "text": lambda place: f"{place:03d}",
}


def map_from(kind, names):
    """A map of these ids."""
    if kind == "range":
        return IdRange(LOW, WIDTH)
    if kind == "table":
        return map_of_marks(np.isin(np.arange(WIDTH), np.array(names, "int64") - LOW), LOW, WIDTH, CPU)
    if kind == "sorted":
        return map_of_integers(np.array(names, "int64"), CPU)
    return map_of_texts(pa.array(names, pa.large_string()), CPU)


@pytest.mark.parametrize("kind", NAMES)
@given(edges=multigraphs(max_edges=40), parts=st.integers(1, 3), spans=st.integers(1, 3))
def test_every_map_gives_the_keys_of_the_edges(kind, edges, parts, spans):
    """At once, in chunks, as they are read, and of samples; directions do not matter, and rows keep their places."""
    ids = sorted({end for u, v in edges if u != v for end in (u, v)})
    pairs = [(ids.index(u), ids.index(v)) for u, v in edges if u != v]
    names = [NAMES[kind](place) for place in range(len(ids))]
    dense = {place: name - LOW if kind == "range" else place for place, name in enumerate(names)}
    size = WIDTH if kind == "range" else len(ids)
    shift = shift_of(size)
    wanted = [min(dense[u], dense[v]) << shift | max(dense[u], dense[v]) for u, v in pairs]
    rows, vertices = [(names[u], names[v]) for u, v in pairs], map_from(kind, names)
    frames = [frame_of(piece, "text" if kind == "text" else "int") for piece in (rows[:7], rows[7:])]
    few = SimpleNamespace(array=np, edges=CPU.edges, chunk=3)
    for found in (keys_of(frames, vertices, shift, CPU), keys_in_chunks(frames, vertices, shift, few)):
        assert found.dtype == "int64"
        assert found.tolist() == wanted
    if kind == "range":
        assert [key for ends in lazy_keys_of(frames, vertices, shift, CPU) for key in ends.keys()] == wanted
        assert [key for frame in frames for key in keys_in_range(arrays_of(frame), vertices, shift)] == wanted
    if kind == "sorted":
        samples = keys_of_samples(vertices, [np.array(rows, "int64").reshape(-1, 2).T], shift, few)
        assert [keys.tolist() for keys in samples] == [wanted]
        places = np.array(pairs, "int64").reshape(-1, 2).T
        numbers = np.array([*range(1, size), 0][:size], "int32")
        moved = [sorted(((u + 1) % size, (v + 1) % size)) for u, v in pairs]
        assert keys_of_places(places, numbers, shift, CPU).tolist() == [u << shift | v for u, v in moved]
    buckets = CPU.dealt([np.array(wanted, "int64")], 1 << 2 * shift)
    distinct = [distinct_in_buckets(span, buckets, shift) for span in pairwise(even(len(buckets), spans))]
    assert np.concatenate(distinct).tolist() == sorted(set(wanted))


@pytest.mark.parametrize("kind", ["range", "sorted", "text"])
@given(edges=multigraphs(max_edges=40), ranges=st.integers(1, 4), step=st.integers(1, 3))
def test_ranges_of_rows_have_each_edge_once_over_ranks_by_rows(kind, edges, ranges, step):
    """Frames are counted and cut one by one; repeats, which may be in several of them, meet in a range."""
    rows = [(u, v) for u, v in edges if u != v]
    ids = sorted({end for row in rows for end in row})
    names = [place if kind == "range" else NAMES[kind](place) for place in range(len(ids))]
    pairs = [(ids.index(u), ids.index(v)) for u, v in rows]
    vertices, shift = DENSE if kind == "range" else map_from(kind, names), shift_of(max(1, len(ids)))
    pieces = [[(names[u], names[v]) for u, v in piece] for piece in (pairs[:7], pairs[7:9], pairs[9:])]
    frames = [
        [frame_of(piece, "text" if kind == "text" else "int") for piece in pieces[:2]],
        frame_of(pieces[2], "text" if kind == "text" else "int"),
    ]
    if kind != "range":
        frames = [dense_ends(frame, vertices, CPU) for frame in frames]
    counts = [count_ends(zero_degrees(len(ids), CPU), frame, DENSE, CPU) for frame in frames]
    named = Counter(end for pair in pairs for end in pair)
    assert sum(counts).tolist() == [named[vertex] for vertex in range(len(ids))]
    sample = np.array([min(pair) << shift | max(pair) for pair in pairs[::step]], "int64")
    ranks = ranks_and_starts(list(counts), [sample], [len(pairs)], ranges, shift, CPU)
    by_rows = sorted(range(len(ids)), key=lambda vertex: (-min(named[vertex], len(ids) - 1), vertex))
    assert [by_rows.index(vertex) for vertex in range(len(ids))] == ranks[0].tolist()
    cuts = [oriented_in_ranges(frame, DENSE, ranks, shift, CPU, cut_rows=1) for frame in frames]
    *slices, (rank, *rest) = ranked_in_ranges(
        frames[0], DENSE, 1, list(counts), [sample], [len(pairs)], ranges, shift, CPU
    )
    assert (rank.tolist(), rest) == (ranks[0].tolist(), [*ranks[1:]])
    assert [[part.tolist() for part in parts] for parts in slices] == [
        [part.tolist() for part in parts] for parts in cuts[0]
    ]
    borders = list(pairwise([0, *ranks[1], 1 << 2 * shift]))
    found = []
    for number, (first, end) in enumerate(borders):
        keys = distinct_of_range([array for cut in cuts for array in cut[number]], ranks, number, shift, CPU).tolist()
        assert all(first <= key < end for key in keys)
        found += keys
    ends = ({by_rows.index(u), by_rows.index(v)} for u, v in pairs)
    assert found == sorted({max(pair) << shift | min(pair) for pair in ends})
    for number, (first, end) in enumerate(borders):
        for key in (first - 1, end):
            with pytest.raises(CountError, match=r"edges of other rows than .* the source has given other edges"):
                distinct_of_range([np.array([first, key])], ranks, number, shift, CPU)


@given(edges=multigraphs(), cuts=st.lists(st.integers(0, 60), max_size=4), unnamed=st.integers(0, 3))
def test_slabs_of_ranges_have_the_rows_of_all_vertices_with_an_edge(edges, cuts, unnamed):
    """Vertices of loops alone rank last, and have no row, even where a range begins with them."""
    keys, shift = canonical_keys(edges)
    low, high = unpack(keys, shift)
    degrees, shift = np.bincount(np.append(low, high)).astype("int32"), shift + 2
    counts = np.append(degrees, np.zeros(unnamed, "int32"))
    ranks = ranks_and_starts([counts], [low << shift | high], [1], 1, shift, CPU)
    rows = ranks[0].take(np.stack([low, high])).astype("int64")
    directed = np.sort(rows.max(axis=0) << shift | rows.min(axis=0))
    ranks = ranks[0], sorted(row << shift for row in cuts), ranks[2]
    spans = pairwise([0, *ranks[1], 1 << 2 * shift])
    parts = [directed[(directed >= first) & (directed < end)] for first, end in spans]
    slabs = [slab_of_range(part, ranks, number, shift, CPU) for number, part in enumerate(parts)]
    for part, slab, key in zip(parts, slabs, [0, *ranks[1]], strict=True):
        assert keys_of_slab(slab, key >> shift, shift, CPU).tolist() == part.tolist()
    offsets, columns = stacked(slabs, CPU)
    sources, targets = unpack(directed, shift)
    assert columns.tolist() == targets.tolist()
    assert np.diff(offsets).tolist() == [(sources == row).sum() for row in range(len(degrees))]


def test_a_slab_refuses_an_edge_of_a_vertex_that_no_row_named():
    with pytest.raises(CountError, match=r"edges of other rows than 4 to 6 .* the source has given other edges"):
        slab_of_range(np.array([5 << 3, 6 << 3]), (None, [4 << 3], 6), 1, 3, CPU)
