"""Vertex ids: tables, sorted arrays and text give the same dense ids, and map back to the caller's."""

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
from dasktc.pipeline.stages.attributes import ReadPart
from dasktc.pipeline.stages.id_maps import SortedMap, TextMap
from tests.support.oracle import multigraphs, text_multigraphs
from tests.support.slow_pipeline import by_dense_id, orientation, random_edges, source_of, tuned

LEAST, MOST = -(2**63), 2**63 - 1


def frames(*pairs, ids="int"):
    """A source with one part for each (src, dst)."""
    parts = (ReadPart(pd.DataFrame({"src": src, "dst": dst}), ids) for src, dst in pairs)
    return Source("frames", tuple(parts), ids)


def run(source, **options):
    return prepare_edges(LocalExecutor(), source, Options(**options))


SCALES = {TableMap: lambda v: v, SortedMap: lambda v: v * 2**40, TextMap: lambda v: f"{v:05d}"}


def check_round_trip(edges, parts):
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    found, slow = run(source_of(edges, ids, parts)), orientation(edges, by_rows=True)
    assert found.vertices.size == len(slow.ids)
    assert found.vertices.external(np.arange(len(slow.ids))).tolist() == slow.ids
    dense = found.vertices.dense(pd.Series(slow.ids, dtype="int64" if slow.ids and ids == "int" else "str"))
    assert dense.tolist() == list(range(len(slow.ids)))
    assert by_dense_id(found) == (slow.order, slow.edges)
    return found.vertices


@given(edges=multigraphs() | text_multigraphs(), parts=st.integers(1, 4))
def test_any_ids_come_back(edges, parts):
    check_round_trip(edges, parts)


EXTREME = [(LEAST, MOST), (MOST, 0), (0, LEAST), (LEAST + 1, MOST - 1), (LEAST, LEAST), (7, 7)]
NARROW = random_edges(10, 60, 1)


@pytest.mark.parametrize("low", [LEAST, -1, 0, 1, 2**31 - 2, 2**31, MOST - 9, None])
def test_tables_start_at_any_id_and_wide_ids_have_none(low):
    edges = EXTREME if low is None else [(low + u, low + v) for u, v in NARROW]
    assert isinstance(check_round_trip(edges, 3), SortedMap if low is None else TableMap)


@pytest.mark.parametrize(
    ("times", "small", "kind"), [(16, 1 << 26, TableMap), (16, 1 << 10, SortedMap), (17, 1 << 26, SortedMap)]
)
def test_a_small_table_serves_few_rows(times, small, kind):
    """Ids of a sample of the edges are spread over those of its graph."""
    rows = 10_000
    ends = np.linspace(0, times * rows + 65_535, 2 * rows).astype(np.int64)
    with tuned(small_table=small):
        found = run(frames((ends[:rows], ends[rows:]))).vertices
    assert isinstance(found, kind)
    assert found.external(np.arange(2 * rows)).tolist() == ends.tolist()


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


def in_chunks(letters):
    """Text in two chunks, as a concatenated frame or a Parquet row group has it."""
    return pd.array(pa.chunked_array([letters[:2], letters[2:]], pa.large_string()), dtype="str")


@pytest.mark.parametrize("column", ["str", pd.StringDtype("python"), pd.StringDtype("pyarrow"), object, in_chunks])
def test_any_kind_of_text_column(column):
    columns = (list("abcx"), list("bcay"))
    src, dst = (pd.Series(in_chunks(of)) if column is in_chunks else pd.Series(of, dtype=column) for of in columns)
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
