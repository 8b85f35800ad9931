"""Exact triangle counting of graphs of any size, with Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dasktc import datasets as datasets
    from dasktc import generate as generate
    from dasktc.api.cluster import Cluster, cluster
    from dasktc.api.count import estimate, prepare, triangle_count
    from dasktc.api.graph import Graph
    from dasktc.api.methods import Method, RunOptions
    from dasktc.api.open_graph import get_graph, open_graph
    from dasktc.api.plan import Rates, plan
    from dasktc.counting.result import TriangleCount
    from dasktc.errors import ClusterError, CountError, DasktcError, DeviceMemoryError, InputError
    from dasktc.executors.base import Fold
    from dasktc.planning.cost_model import Prediction
    from dasktc.questions.estimate import TriangleEstimate
    from dasktc.questions.temporal_triangles import TemporalTriangles

__all__ = [
    "Cluster",
    "ClusterError",
    "CountError",
    "DasktcError",
    "DeviceMemoryError",
    "Fold",
    "Graph",
    "InputError",
    "Method",
    "Prediction",
    "Rates",
    "RunOptions",
    "TemporalTriangles",
    "TriangleCount",
    "TriangleEstimate",
    "cluster",
    "estimate",
    "get_graph",
    "open_graph",
    "plan",
    "prepare",
    "triangle_count",
]
__version__ = "0.1.0"

_NAMES = {
    "api.cluster": ("Cluster", "cluster"),
    "api.count": ("estimate", "prepare", "triangle_count"),
    "api.graph": ("Graph",),
    "api.methods": ("Method", "RunOptions"),
    "api.open_graph": ("get_graph", "open_graph"),
    "api.plan": ("Rates", "plan"),
    "counting.result": ("TriangleCount",),
    "errors": ("ClusterError", "CountError", "DasktcError", "DeviceMemoryError", "InputError"),
    "executors.base": ("Fold",),
    "planning.cost_model": ("Prediction",),
    "questions.estimate": ("TriangleEstimate",),
    "questions.temporal_triangles": ("TemporalTriangles",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("datasets", "generate")
"""That users name without importing them."""


if not TYPE_CHECKING:  # type checkers would find every name

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: NetworkX imports its backends' packages at every start."""
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"dasktc.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"dasktc.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
