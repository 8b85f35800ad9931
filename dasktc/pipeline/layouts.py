"""Lays out a graph by a scheme: the table from what a scheme declares of its blocks to the function that cuts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dasktc.options import Options
from dasktc.pipeline.build_blocks import Partition, by_ranges, by_remainder
from dasktc.pipeline.lstc_partition import part_vertices
from dasktc.pipeline.planes.base import Plane
from dasktc.pipeline.planes.graph import Oriented
from dasktc.planning.grid import Shape
from dasktc.planning.schemes import Cut
from dasktc.registry import SCHEMES

__all__ = ["lay_out"]

_FUNCTIONS: dict[Any, Callable[..., Partition]] = {
    Cut.BY_REMAINDER: by_remainder,
    Cut.BY_RANGES: by_ranges,
    Cut.WITH_PROXIES: part_vertices,
}


def lay_out(plane: Plane, graph: Oriented, scheme: str, parts: int, options: Options, shape: Shape) -> Partition:
    """Assign the vertices to a scheme's blocks at n = `parts`, and measure the blocks."""
    cut = SCHEMES[scheme].dealing.lay_out
    function: Callable[..., Partition] = _FUNCTIONS.get(cut, cut)
    return function(plane, graph, parts, options, shape)
