"""Exact triangle counting of graphs of any size, with Dask."""

from dasktc.errors import ClusterError, CountError, DasktcError, InputError
from dasktc.graph import Graph
from dasktc.result import TriangleCount
from dasktc.triangles import prepare, triangle_count

__all__ = [
    "ClusterError",
    "CountError",
    "DasktcError",
    "Graph",
    "InputError",
    "TriangleCount",
    "prepare",
    "triangle_count",
]
__version__ = "0.1.0"
