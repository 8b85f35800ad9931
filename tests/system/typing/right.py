"""Right uses of the public interface: type checkers find nothing wrong, and every answer has its type."""

from typing import assert_type

import dask.dataframe as dd
import pandas as pd
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dasktc

EDGES = ([0, 1, 2], [1, 2, 0])


def results(result: dasktc.TriangleCount, estimate: dasktc.TriangleEstimate) -> None:
    number: int = result
    assert_type(number + result, int)
    assert_type(str(result), str)
    assert_type(result.stats.probes, int)
    assert_type(result.stats.kernel_seconds, float | None)
    assert_type(result.seconds["count"], float)
    assert_type(result.tasks, pd.DataFrame)
    assert_type(result.plot(), Figure)
    result.summary()
    assert_type(estimate.value, int)
    estimate.summary()


def vertices(graph: dasktc.Graph) -> None:
    assert_type(graph.triangles(), "pd.Series[int]")
    assert_type(graph.triangles(frame="pandas", vertices=[1]), "pd.Series[int]")
    assert_type(graph.triangles(frame="polars"), pl.DataFrame)
    assert_type(graph.triangles(frame="dask"), dd.Series)
    assert_type(graph.clustering(), "pd.Series[float]")
    assert_type(graph.clustering("weight", frame="polars"), pl.DataFrame)
    assert_type(graph.square_clustering(), "pd.Series[float]")
    assert_type(graph.core_number(), "pd.Series[int]")
    assert_type(graph.measures(), pd.DataFrame)
    assert_type(graph.measures(frame="dask"), dd.DataFrame)
    assert_type(graph.transitivity(), float)
    assert_type(graph.average_clustering(), float)
    assert_type(graph.triad_census(), dict[str, int])


def edges(graph: dasktc.Graph) -> None:
    assert_type(graph.edge_support(), pd.DataFrame)
    assert_type(graph.edge_support(frame="polars", edges=[(0, 1)]), pl.DataFrame)
    assert_type(graph.similarity([(0, 1)], "cosine"), pd.DataFrame)
    assert_type(graph.similarity(top=3, frame="polars"), pl.DataFrame)
    assert_type(graph.motifs(), dict[str, int])
    assert_type(graph.truss(), pd.DataFrame)
    assert_type(graph.truss(4, frame="polars"), pl.DataFrame)
    assert_type(graph.triangle_list(10), pd.DataFrame)
    assert_type(graph.triangle_list(frame="dask"), dd.DataFrame)
    assert_type(graph.edge_list(), dd.DataFrame)
    assert_type(graph.edge_list(frame="polars"), pl.DataFrame)
    assert_type(graph.oriented_edges(), dd.DataFrame)
    assert_type(graph.oriented_edges(frame="pandas"), pd.DataFrame)


def graphs(graph: dasktc.Graph) -> None:
    assert_type(graph.triangle_count(kernel="merge", verify=0.5), dasktc.TriangleCount)
    assert_type(graph.estimate(error=0.1), dasktc.TriangleEstimate)
    assert_type(graph.cliques(4), int)
    assert_type(graph.survey(lambda batch: {"all": len(batch["u"])}), dict[str, int])
    largest: dasktc.Fold[int] = dasktc.Fold(lambda: 0, lambda found, size: max(found, int(size)), max)
    assert_type(graph.survey(lambda batch: batch["u"].max(), reduce=largest), int)
    assert_type(graph.is_directed(), bool)
    assert_type(graph.vertices, int)
    assert_type(graph.plot_degrees(), Axes)
    assert_type(graph.save("folder"), int)
    with graph as same:
        change = same.update(add=[(0, 1)])
    assert_type(change.vertices, "pd.Series[int]")
    assert_type(change.graph, dasktc.Graph)
    graph.summary()
