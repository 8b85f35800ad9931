"""Distributions of degrees, triangles and coefficients against the frames, and their plots."""

import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.counting.count_plot import MOST_BARS, plot_count
from dasktc.counting.tasks import Record
from dasktc.counting.timeline import timeline
from dasktc.counting.tuning import TUNING
from dasktc.errors import InputError
from dasktc.options import Method, RunOptions
from dasktc.questions.distributions import STARTS, degree_bins, edge_summary, vertex_summary
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import needs_compiler
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of, tuned

EDGES = skewed_edges(90, 900, 3)
NAMES = [(f"v {u}", f"v,{v}") for u, v in random_edges(20, 80, 5)]
WAYS = [{}, {"partition": "hash2d", "parts": 2}, {"partition": "proxy", "parts": 3}, {"partition": "vertical"}]


def check(graph):
    """Check that the workers' distributions equal those of the frames of all vertices and edges."""
    vertices, edges = graph.measures(frame="pandas").reset_index(), graph.edge_support(frame="pandas")
    found, of_edges = vertex_summary(graph._context), edge_summary(graph._context)
    same = dict(check_dtype=False, check_index_type=False)
    place = STARTS.searchsorted(vertices["degree"], side="right") - 1
    grouped = vertices.groupby(STARTS[place])
    assert found.bins["degree"].tolist() == list(grouped.groups)
    assert found.bins["vertices"].tolist() == grouped.size().tolist()
    np.testing.assert_allclose(found.bins["clustering"], grouped["clustering"].mean())
    np.testing.assert_allclose(found.bins["triangles"], grouped["triangles"].mean())
    pd.testing.assert_frame_equal(degree_bins(graph._context), found.bins[["degree", "last", "vertices"]])
    best = vertices[vertices["triangles"] > 0].sort_values(["triangles", "vertex"], ascending=[False, True])
    best = best.head(TUNING.highest).reset_index(drop=True)
    pd.testing.assert_frame_equal(found.most, best[["vertex", "degree", "triangles", "clustering"]], **same)
    place = STARTS.searchsorted(edges["support"], side="right") - 1
    assert of_edges.bins["edges"].tolist() == edges.groupby(STARTS[place]).size().tolist()
    best = edges[edges["support"] > 0].sort_values(["support", "src", "dst"], ascending=[False, True, True])
    pd.testing.assert_frame_equal(of_edges.most, best.head(TUNING.highest).reset_index(drop=True), **same)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("edges", [EDGES, NAMES], ids=["int", "text"])
def test_workers_find_what_the_frames_say(options, edges):
    with dasktc.prepare(source_of(edges, "int" if edges is EDGES else "text", parts=2), **keywords(**options)) as graph:
        check(graph)


@pytest.mark.slow
def test_on_a_cluster_and_out_of_core(client, tmp_path):
    with dasktc.prepare(source_of(EDGES, parts=3), client, method=Method(partition="hash2d", parts=2)) as graph:
        check(graph)
    with dasktc.prepare(source_of(EDGES), memory="16MB", run=RunOptions(work_dir=tmp_path)) as graph:
        assert edge_summary(graph._context).bins["edges"].sum() == graph.edges
        assert vertex_summary(graph._context).bins["vertices"].sum() == graph.vertices


@pytest.mark.slow
@pytest.mark.parametrize("edges", [EDGES, NAMES], ids=["int", "text"])
def test_where_vertices_are_in_shards(client, edges):
    with tuned(least_shards=3):
        graph = dasktc.prepare(
            source_of(edges, "int" if edges is EDGES else "text", parts=2), client, method=Method(partition="hash2d")
        )
    assert graph.plan.shards == 3
    check(graph)


@needs_compiler
@pytest.mark.parametrize("options", [{}, {"partition": "vertical"}], ids=str)
def test_on_a_device(options):
    with emulated_cuda.backend(), dasktc.prepare(np.array(EDGES), backend="cuda", **keywords(**options)) as graph:
        check(graph)


def test_bins_hold_every_number():
    assert (np.diff(STARTS) > 0).all()
    assert STARTS[:9].tolist() == list(range(9))
    assert STARTS[-1] > 1 << 60


def test_ties_go_to_the_lower_ids():
    with dasktc.prepare(([0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 0, 4, 5, 3, 7, 8, 6])) as graph:
        retuned(graph, highest=3)
        assert vertex_summary(graph._context).most["vertex"].tolist() == [0, 1, 2]
        assert edge_summary(graph._context).most[["src", "dst"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]


def test_without_edges():
    with dasktc.prepare(source_of([])) as graph:
        assert (
            len(degree_bins(graph._context))
            == len(vertex_summary(graph._context).bins)
            == len(edge_summary(graph._context).bins)
            == 0
        )
        assert len(vertex_summary(graph._context).most) == len(edge_summary(graph._context).most) == 0


def record(worker, began, ended):
    return Record(None, None, worker, began, ended)


def test_tasks_of_a_lane_do_not_overlap():
    times = timeline([record("b", 10, 14), record("a", 11, 12), record("b", 12, 13), record("b", 13, 15)])
    assert (times.workers, times.lanes.tolist()) == (["a", "b"], [1, 2])
    assert times.lane.tolist() == [0, 0, 1, 1]
    assert times.busy.tolist() == [1, 7]
    assert times.seconds == 5
    np.testing.assert_allclose(times.shares_of(1, 5), [0.5, 0.5, 1, 1, 0.5])
    assert timeline([Record(None, None, "a")]).workers == []


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots(1, 2)


def test_plots(axes):
    with dasktc.prepare(source_of(EDGES), method=Method(splits=4)) as graph:
        for name in ("plot_degrees", "plot_clustering", "plot_support"):
            axes[0].clear()
            assert getattr(graph, name)(axes[0]) is axes[0]
            (line,) = axes[0].lines
            assert len(line.get_xdata()) > 3
        result = graph.triangle_count()
    assert result.plot(axes) is axes[0].figure
    assert "4 counting tasks" in axes[1].get_title()
    assert len(axes[1].patches) == 4
    axes[1].clear()
    plot_count([*result._records] * (MOST_BARS // 4 + 1), result.seconds, 0, axes)
    assert not axes[1].patches
    assert len(axes[1].collections) == 1


def test_without_matplotlib_it_says_what_to_install():
    result = dasktc.triangle_count(source_of(EDGES))
    with mock.patch.dict(sys.modules, {"matplotlib": None}), pytest.raises(InputError, match="pip install matplotlib"):
        result.plot()
