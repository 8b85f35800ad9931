"""Partitions of schemes that assign rows and columns to blocks by vertex id: grids of CSR blocks.

A partition assigns the vertices to the parts of a scheme and knows the sizes of its blocks. A plane measures and builds
them. `lay_out` has the table from what a scheme declares of its blocks to the function that cuts them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from dasktc.options import Options
from dasktc.pipeline.lstc_partition import part_vertices
from dasktc.pipeline.planes.base import Blocks, Plane
from dasktc.pipeline.planes.graph import Oriented
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.placement import Where
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Cut, Sizes
from dasktc.registry import SCHEMES

__all__ = ["Blocks", "GridPartition", "Partition", "by_ranges", "by_remainder", "lay_out"]


class Partition(Protocol):
    """An assignment of the vertices to the blocks of a scheme, with the blocks' sizes; the blocks are not built yet.

    Attributes
    ----------
    sizes : Sizes
        Of the blocks.
    proxies : tuple of Proxies
        One for each part, where the scheme has proxies.
    wedges : int
        Wedges that all counting tasks together must stream.
    """

    @property
    def sizes(self) -> Sizes: ...  # noqa: D102

    @property
    def proxies(self) -> tuple[Proxies, ...]: ...  # noqa: D102

    @property
    def wedges(self) -> int: ...  # noqa: D102

    def numbering(self, side: int) -> Any:
        """First id and stride of the vertices of a side (`Scheme.sides`), or a handle of their ids."""

    def build(self, plane: Plane, graph: Oriented, where: Where) -> Blocks:
        """Build the blocks, each on the worker that `where` names; the graph's partitions are taken over."""


class GridPartition(NamedTuple):
    """A grid of blocks, each with a contiguous range of keys."""

    layout: Layout
    sizes: Sizes
    wedges: int
    proxies: tuple[Proxies, ...] = ()

    @classmethod
    def measured(cls, plane: Plane, graph: Oriented, layout: Layout) -> GridPartition:
        """Measure the blocks of a layout, without building them."""
        return cls(layout, plane.measure(graph, layout), graph.wedges)

    def numbering(self, side: int) -> tuple[int, int]:
        """First id and stride of the vertices in a row or column of the grid."""
        return self.layout.numbering(side)

    def build(self, plane: Plane, graph: Oriented, where: Where) -> Blocks:
        """Shuffle the oriented edges into the blocks."""
        return plane.blocks(graph, self.layout, self.sizes.edges, where)


def by_remainder(plane: Plane, graph: Oriented, parts: int, options: Options, shape: Shape) -> GridPartition:
    """Assign rows and columns to parts by id % n (`planning.schemes.BY_REMAINDER`), and measure the blocks.

    Parameters
    ----------
    plane : Plane
    graph : Oriented
    parts : int
        n.
    options : Options
    shape : Shape
    """
    axis = Axis(shape.vertices, parts)
    return GridPartition.measured(plane, graph, Layout(axis, (axis,), shape))


def by_ranges(plane: Plane, graph: Oriented, parts: int, options: Options, shape: Shape) -> GridPartition:
    """Assign rows and columns to ranges of ids with equal degree sums (`planning.schemes.BY_RANGES`).

    Rows are cut into n ranges by out-degree. Columns are cut into the same n ranges, and into `column_parts` (default:
    n) ranges by in-degree. Parameters as for `by_remainder`.
    """
    rows, columns = (
        Axis(shape.vertices, count, (*plane.cut_evenly("plan", degree, Axis(degree.size, 1), count)[0], degree.size))
        for count, degree in ((parts, graph.out_degree), (options.column_parts or parts, graph.in_degree))
    )
    return GridPartition.measured(plane, graph, Layout(rows, (rows, columns), shape))


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
