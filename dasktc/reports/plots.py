"""Plots a graph's distributions with matplotlib, which is imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dasktc.counting.context import CountingContext
from dasktc.counting.count_plot import pyplot
from dasktc.questions.distributions import degree_bins, density, edge_summary, middle, vertex_summary
from dasktc.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_clustering", "plot_degrees", "plot_support"]


def plot_degrees(graph: CountingContext, ax: Axes | None = None) -> Axes:
    """Plot the distribution of degrees; see `Graph.plot_degrees`."""
    axes = _axes(ax, "degree", "vertices of a degree")
    axes.set_title(f"Degrees of {plural(graph.vertices, 'vertex')}")
    axes.loglog(*density(degree_bins(graph), "degree", "vertices"), marker="o", markersize=4)
    return axes


def plot_support(graph: CountingContext, ax: Axes | None = None) -> Axes:
    """Plot the distribution of triangles by edge; see `Graph.plot_support`."""
    axes = _axes(ax, "triangles of an edge (support)", "edges of a support")
    bins = edge_summary(graph).bins
    without_triangle = plural(int(bins.loc[bins["support"] == 0, "edges"].sum()), "is", "are")
    axes.set_title(f"Triangles of {plural(graph.edges, 'edge')}, of which {without_triangle} in none")
    axes.loglog(*density(bins[bins["support"] > 0], "support", "edges"), marker="o", markersize=4)
    return axes


def plot_clustering(graph: CountingContext, ax: Axes | None = None) -> Axes:
    """Plot the mean clustering coefficient by degree; see `Graph.plot_clustering`."""
    axes = _axes(ax, "degree", "mean clustering coefficient")
    axes.set_title("Clustering by degree")
    bins = vertex_summary(graph).bins
    bins = bins[bins["degree"] > 1]
    axes.semilogx(middle(bins, "degree"), bins["clustering"], marker="o", markersize=4)
    axes.set_ylim(bottom=0)
    return axes


def _axes(ax: Axes | None, xlabel: str, ylabel: str) -> Axes:
    drawing = pyplot()
    axes: Axes = drawing.subplots(layout="constrained")[1] if ax is None else ax
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)
    return axes
