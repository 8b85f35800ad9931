"""Vertex ids: tables, sorted arrays and text give the same dense ids, and map back to the caller's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends import vertex_maps
from dasktc.backends.vertex_maps import TableMap
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.io.source import Source
from dasktc.options import Options
from dasktc.pipeline.prepare import prepare_edges
from dasktc.pipeline.stages.id_maps import SortedMap, TextMap
from tests.support.oracle import GRAPHS, multigraphs, text_multigraphs
from tests.support.slow_pipeline import by_dense_id, orientation, random_edges, source_of

LEAST, MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class FramePart:
    """A part that is already a frame."""

    frame: Any
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        return self.frame


def frames(*pairs, ids="int"):
    """A source with one part for each (src, dst)."""
    parts = (FramePart(pd.DataFrame({"src": src, "dst": dst})) for src, dst in pairs)
    return Source("frames", tuple(parts), ids)


def run(source, **options):
    return prepare_edges(LocalExecutor(), source, Options(**options))


SCALES = {TableMap: lambda v: v, SortedMap: lambda v: v * 2**40, TextMap: lambda v: f"{v:05d}"}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize(("name", "edges", "count"), GRAPHS, ids=[name for name, _, _ in GRAPHS])
def test_every_map_gives_the_same_graph(kind, name, edges, count):
    place = {v: i for i, v in enumerate(sorted({end for edge in edges for end in edge}))}
    named = [(SCALES[kind](place[u]), SCALES[kind](place[v])) for u, v in edges]
    found = run(source_of(named, "text" if kind is TextMap else "int", parts=2))
    if len(place) > 2:
        assert isinstance(found.vertices, kind)
    slow = orientation(named)
    assert by_dense_id(found) == (slow.order, slow.edges)


@pytest.mark.parametrize("kind", SCALES)
@given(edges=multigraphs(), parts=st.integers(1, 4))
def test_external_ids_come_back(kind, edges, parts):
    place = {v: i for i, v in enumerate(sorted({end for edge in edges for end in edge}))}
    named = [(SCALES[kind](place[u]), SCALES[kind](place[v])) for u, v in edges]
    check_round_trip(named, "text" if kind is TextMap else "int", parts)


@given(edges=multigraphs(), parts=st.integers(1, 4))
def test_any_int64_comes_back(edges, parts):
    check_round_trip(edges, "int", parts)


@given(edges=text_multigraphs(), parts=st.integers(1, 4))
def test_any_text_comes_back(edges, parts):
    check_round_trip(edges, "text", parts)


def check_round_trip(edges, kind, parts):
    found, slow = run(source_of(edges, kind, parts)), orientation(edges)
    assert found.vertices.size == len(slow.ids)
    assert found.vertices.external(np.arange(len(slow.ids))).tolist() == slow.ids
    if slow.ids and kind == "int":
        dense = found.vertices.dense(pd.Series(slow.ids, dtype="int64"))
    else:
        dense = found.vertices.dense(pd.Series(slow.ids, dtype="str"))
    assert dense.tolist() == list(range(len(slow.ids)))
    assert by_dense_id(found) == (slow.order, slow.edges)


@pytest.mark.parametrize("low", [LEAST, -1, 0, 1, 2**31 - 2, 2**31, MOST - 9])
def test_tables_start_at_any_id(low):
    edges = [(low + u, low + v) for u, v in random_edges(10, 60, 1)]
    found = run(source_of(edges, parts=3))
    assert isinstance(found.vertices, TableMap)
    check_round_trip(edges, "int", 3)


def test_ids_at_both_ends_of_int64():
    edges = [(LEAST, MOST), (MOST, 0), (0, LEAST), (LEAST + 1, MOST - 1), (LEAST, LEAST)]
    found = run(source_of(edges))
    assert isinstance(found.vertices, SortedMap)
    check_round_trip(edges, "int", 2)
    assert int(dasktc.triangle_count(source_of(edges))) == 1


def test_loops_alone_make_no_vertex():
    found = run(source_of([(5, 5), (10**15, 10**15), (1, 2)]))
    assert found.vertices.external(np.arange(2)).tolist() == [1, 2]


def test_parts_may_differ_in_width():
    """int32 beside int64 parts; only one of them has negative ids."""
    parts = [(np.array([0, 1], "int32"), np.array([1, 2], "int32")), (np.array([2]), np.array([-(2**40)]))]
    found = run(frames(*parts))
    assert found.vertices.external(np.arange(4)).tolist() == [-(2**40), 0, 1, 2]
    close = [(np.array([0, 1], "int32"), np.array([1, 2], "int32")), (np.array([2]), np.array([-5]))]
    assert isinstance(run(frames(*close)).vertices, TableMap)
    assert int(dasktc.triangle_count(frames(*close, (np.array([0]), np.array([2]))))) == 1


@pytest.mark.parametrize("ids", ["int", "text"])
def test_a_source_without_parts(ids):
    assert int(dasktc.triangle_count(Source("nothing", (), ids))) == 0


@pytest.mark.parametrize(("ids", "dtype"), [("int", "int64"), ("int", "int32"), ("text", "str")])
def test_parts_without_rows_or_with_loops_alone(ids, dtype):
    empty, one, two, three = (pd.Series(list(v), dtype=dtype) for v in ("", "1", "2", "3"))
    source = frames((empty, empty), (one, two), (two, two), (two, three), (empty, empty), (three, one), ids=ids)
    result = dasktc.triangle_count(source)
    assert (int(result), result.vertices, result.loops_dropped) == (1, 3, 1)
    assert dasktc.triangle_count(frames((empty, empty), (one, one), ids=ids)).vertices == 0


@pytest.mark.parametrize("dtype", ["str", pd.StringDtype("python"), pd.StringDtype("pyarrow"), object])
def test_any_kind_of_text_column(dtype):
    src, dst = (pd.Series(list(side), dtype=dtype) for side in ("abcb", "bcab"))
    assert int(dasktc.triangle_count(frames((src, dst), ids="text"))) == 1


def test_text_columns_in_several_chunks():
    """As a concatenated frame or a Parquet row group has them."""
    src, dst = (
        pd.Series(pd.array(pa.chunked_array([list(a), list(b)], pa.large_string()), dtype="str"))
        for a, b in (("ab", "cx"), ("bc", "ay"))
    )
    result = dasktc.triangle_count(frames((src, dst), ids="text"))
    assert (int(result), result.edges) == (1, 4)


@pytest.mark.parametrize("kind", SCALES)
def test_too_many_vertices_are_refused_with_figures(kind):
    edges = [(SCALES[kind](u), SCALES[kind](u + 1)) for u in range(1_500)]
    with (
        mock.patch.object(vertex_maps, "MAX_VERTICES", 1_499),
        pytest.raises(InputError, match=r"1,501 vertices, 1,499 at most"),
    ):
        dasktc.triangle_count(source_of(edges, "text" if kind is TextMap else "int"))


def test_frames_of_the_caller_are_left_alone():
    frame = pd.DataFrame({"src": [0, 1, 2, 2, 1], "dst": [1, 2, 0, 2, 0]})
    before = frame.copy(deep=True)
    for scale in (1, 2**40):
        assert int(dasktc.triangle_count(frame * scale)) == 1
    dasktc.triangle_count(frame)
    pd.testing.assert_frame_equal(frame, before)
