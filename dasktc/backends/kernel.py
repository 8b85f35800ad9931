"""Entries of the kernels' registries: what a plan, `auto` and help ask of a kernel. Imports neither Numba nor CuPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, ClassVar, NamedTuple

from dasktc.backends.protocol import GraphBounds, TaskSize

__all__ = ["LISTED", "MOST_HUBS", "NO_CORE", "ROWS", "Facts", "Kernel", "Rule", "hub_count"]

MOST_HUBS = 1 << 16
"""Rows that `hub` and `bitmap` make bitmaps of on a GPU, at most."""
HUB_BYTES = 4
"""Bytes an index edge that the hubs' bitmaps may take."""


def hub_count(index_edges: int, stream_rows: int, lower: bool = True, most: int = MOST_HUBS) -> int:
    """Choose the number of hubs: their bitmaps, hubs²/16 bytes, take at most HUB_BYTES an index edge.

    Parameters
    ----------
    index_edges, stream_rows : int
    lower : bool
        Blocks that are no lower triangles have no hubs.
    most : int
    """
    return min(most, isqrt(16 * HUB_BYTES * index_edges), stream_rows) if lower else 0


class Facts(NamedTuple):
    """What is known of an oriented graph before its ids are chosen.

    Attributes
    ----------
    usual : int
        Entries of a row that 99 % of the rows do not exceed.
    longest : int
        Entries of the longest row.
    rows, edges, wedges : int
    narrow, wide : int
        Rows of 2 to 100 entries, and of more: TRUST's two kinds.
    processors : int
        Of the device that counts; 1 on the CPU.
    """

    usual: int
    longest: int
    rows: int
    edges: int
    wedges: int
    narrow: int = 0
    wide: int = 0
    processors: int = 1

    @property
    def wedges_per_edge(self) -> float:
        """Entries of the list that an edge leads to, in the mean over the edges."""
        return self.wedges / max(1, self.edges)

    @property
    def skew(self) -> float:
        """The same over the mean row: 1 or less without hubs, for edges then lead to rows like any other."""
        return self.wedges * self.rows / max(1, self.edges) ** 2

    @property
    def covered(self) -> float:
        """Upper bound of the share of rows for which `hub` and `bitmap` keep bitmaps on a GPU."""
        return hub_count(self.edges, self.rows) / max(1, self.rows)

    @property
    def even(self) -> float:
        """The mean row over the usual one."""
        return self.edges / max(1, self.rows * self.usual)


class Rule(NamedTuple):
    """When `auto` takes a kernel: for graphs all of whose facts are within some ranges.

    Attributes
    ----------
    rank : int
        Of all kernels' rules for a backend the first that fits is taken, in ascending order.
    within : dict of str to (float, float)
        Least and most by fact; none: any graph.
    why : str
        What the plan says, with facts in braces.
    """

    rank: int
    within: dict[str, tuple[float, float]]
    why: str

    def fits(self, facts: Facts) -> bool:
        """Whether every fact is within its range."""
        return all(least <= getattr(facts, name) <= most for name, (least, most) in self.within.items())


LISTED = 64
"""Longest row of a graph that `hub` counts by records of its rows on a GPU."""
NO_CORE: dict[str, tuple[float, float]] = {"wedges_per_edge": (0, 8), "longest": (0, LISTED)}
"""Nor do most wedges lead to a few long rows: a torus has 3 an edge, a clique with many leaves hundreds, and one
in a large mesh hides in the mean."""
ROWS = "99 % of the rows have at most {usual:,} entries, the longest {longest:,}"


@dataclass(frozen=True)
class Kernel:
    """What every backend's kernels have.

    Attributes
    ----------
    name, help : str
        Of `--kernel`, and a line about it with its paper and section.
    auto : tuple of Rule
        When `auto` takes it; none: only who asks for it gets it.
    order : str
        The order of ids that comes with it where it was asked for and no order was.
    lean : bool
        It takes little more than the blocks themselves: for graphs that the default has no room for.
    sorted_rows : bool
        It needs rows in ascending order.
    keeps_tables : bool
        It keeps tables for its next task on the same blocks; before any other kernel they go.
    details : callable (Facts or None) -> str, optional
        What the plan says more of it; None of a graph of which only the size is known.
    times : float
        Seconds of a count over those of the backend's default kernel, on a Kronecker graph of scale 18.
    cost : callable (array, array, array) -> array, optional
        What an index edge costs, as `splits.Cost`; default: as `merge`.
    """

    backend: ClassVar[str]

    name: str
    help: str
    auto: tuple[Rule, ...] = field(default=(), kw_only=True)
    order: str = field(default="degree", kw_only=True)
    lean: bool = field(default=False, kw_only=True)
    sorted_rows: bool = field(default=True, kw_only=True)
    keeps_tables: bool = field(default=False, kw_only=True)
    details: Callable[[Facts | None], str] | None = field(default=None, kw_only=True)
    times: float = field(default=1.0, kw_only=True)
    cost: Callable[[Any, Any, Any], Any] | None = field(default=None, kw_only=True)

    def scratch_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Bytes that it allocates for a task beside its blocks, at most; less where the graph is known."""
        raise NotImplementedError

    @property
    def gives_supports(self) -> bool:
        """Whether it gives triangles by edge and by vertex itself."""
        return False

    def support_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Bytes that it then works with for a task, beside its blocks and the results, at most."""
        raise NotImplementedError
