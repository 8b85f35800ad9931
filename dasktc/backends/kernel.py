"""Registry entries of kernels: what a plan, `auto` and help ask of a kernel. Imports neither Numba nor CuPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, ClassVar, NamedTuple

from dasktc.backends.kernel_files import macros
from dasktc.backends.protocol import GraphBounds, TaskSize

__all__ = ["NO_CORE", "ROWS", "SMALL_ROW", "Facts", "Kernel", "Rule", "hub_count"]

SMALL_ROW = 100
"""Most entries of a row that `trust` deals to a warp, or to fewer buckets (TRUST, section 4.3)."""
HUB_BYTES = 4
"""Most bytes of the hubs' bitmaps per index edge."""


def hub_count(index_edges: int, stream_rows: int, lower: bool = True, most: int | None = None) -> int:
    """Choose the number of hubs so that their bitmaps, hubs²/16 bytes, take at most HUB_BYTES per index edge.

    Blocks that are no lower triangles have none. There are at most `most`, by default as many as `hub` has on a GPU.
    """
    most = macros("hub")["BITMAP"] if most is None else most
    return min(most, isqrt(16 * HUB_BYTES * index_edges), stream_rows) if lower else 0


class Facts(NamedTuple):
    """Statistics of an oriented graph that are known before the order of its ids is chosen.

    Attributes
    ----------
    usual : int
        Number of entries that 99 % of the rows do not exceed.
    longest : int
        Entries of the longest row.
    rows, edges, wedges : int
    narrow, wide : int
        Number of rows with 2 to SMALL_ROW entries, and with more: TRUST's two kinds.
    processors : int
        Multiprocessors of the device that counts; 1 on the CPU.
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
        """Mean length, over the edges, of the list that an edge leads to."""
        return self.wedges / max(1, self.edges)

    @property
    def skew(self) -> float:
        """`wedges_per_edge` over the mean row: 1 or less without hubs, because edges then lead to average rows."""
        return self.wedges * self.rows / max(1, self.edges) ** 2

    @property
    def covered(self) -> float:
        """Upper bound of the share of rows for which `hub` and `bitmap` keep bitmaps on a GPU."""
        return hub_count(self.edges, self.rows) / max(1, self.rows)

    @property
    def even(self) -> float:
        """The mean row length over the usual one."""
        return self.edges / max(1, self.rows * self.usual)


class Rule(NamedTuple):
    """Condition under which `auto` takes a kernel: some facts of the graph are within given ranges.

    Attributes
    ----------
    rank : int
        Among all rules of a backend's kernels, in ascending order, the first that fits decides.
    within : dict of str to (float, float)
        Least and most value by fact; empty: any graph.
    why : str
        The plan's explanation, with facts in braces.
    """

    rank: int
    within: dict[str, tuple[float, float]]
    why: str

    def fits(self, facts: Facts) -> bool:
        """Whether every fact is within its range."""
        return all(minimum <= getattr(facts, name) <= maximum for name, (minimum, maximum) in self.within.items())


NO_CORE: dict[str, tuple[float, float]] = {"wedges_per_edge": (0, 8), "longest": (0, 64)}
"""Facts of graphs whose wedges do not mostly lead to a few long rows: a torus has 3 wedges an edge, a clique with many
leaves hundreds; the mean alone would hide one in a large mesh."""
ROWS = "99 % of the rows are no longer than {usual:,}, the longest is {longest:,}"


@dataclass(frozen=True)
class Kernel:
    """Registry entry of a kernel, as far as it is the same for every backend.

    Attributes
    ----------
    name, help : str
        Value of `--kernel`, and a line of help with its paper and section.
    words : str
        How it counts, in one to three plain words, for the summary of a plan.
    auto : tuple of Rule
        When `auto` takes it; empty: only on request.
    order : str
        Order of ids that is used where this kernel was asked for and no order was.
    cut_order : str
        The same where rows or blocks are cut (n or m above 1); "" for the same order.
    lean : bool
        Takes little memory beside the blocks: for graphs whose default tables do not fit.
    sorted_rows : bool
        Needs rows in ascending order.
    keeps_tables : bool
        Keeps tables for its next task on the same blocks; they are freed before any other kernel runs.
    details : callable (Facts or None) -> str, optional
        Adds to the plan's explanation; None for a graph of which only the size is known.
    times : float
        Time of a count relative to the backend's default kernel, on a Kronecker graph of scale 18.
    cost : callable (array, array, array) -> array, optional
        Cost of index edges, as `splits.Cost`; default: that of `merge`.
    """

    backend: ClassVar[str]

    name: str
    help: str
    words: str = field(default="", kw_only=True)
    auto: tuple[Rule, ...] = field(default=(), kw_only=True)
    order: str = field(default="degree", kw_only=True)
    cut_order: str = field(default="", kw_only=True)
    lean: bool = field(default=False, kw_only=True)
    sorted_rows: bool = field(default=True, kw_only=True)
    keeps_tables: bool = field(default=False, kw_only=True)
    details: Callable[[Facts | None], str] | None = field(default=None, kw_only=True)
    times: float = field(default=1.0, kw_only=True)
    cost: Callable[[Any, Any, Any], Any] | None = field(default=None, kw_only=True)

    def scratch_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes that it allocates for a task beside its blocks; tighter where the graph is known."""
        raise NotImplementedError

    @property
    def gives_supports(self) -> bool:
        """Whether it computes triangles by edge and by vertex itself."""
        return False

    def support_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes that this takes for a task beside its blocks and the results."""
        raise NotImplementedError
