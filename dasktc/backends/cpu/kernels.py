"""Entries of the CPU kernels. A kernel is a module and an entry of `OWN`, or of a plug-in.

Entries refer to their modules by name; these import Numba, and are imported with the first task.
"""

# CPU seconds of a count, hub over merge, in degree order; in brackets the row length that 99 % of the vertices do not
# exceed.
# torus 30³ to 70³ [4] 1.26 to 1.28; triangular mesh 200² [3] 1.35, 500² [3] 1.30; wing [4] 1.17; random, degree 2 [2]
# 1.36 to 1.50; random, degree 4 [4] 1.27 (100 k edges) to 0.97 (2 M edges); random, degree 6 [6] 0.86 to 1.04;
# p2p-Gnutella31 [9] 0.97; dblp-2010 [13] 0.91; amazon0601 0.60; ego-Twitter [74] 0.24; Kronecker 16 0.03. Below 20,000
# wedges merge is faster too, by no more than 0.1 ms.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, ClassVar

from dasktc.backends.cpu import probes
from dasktc.backends.cpu.sizes import hash_bytes, hub_bytes, support_bytes
from dasktc.backends.cpu.splits import hub_cost, sample_bytes, search_cost, stream_cost, tile_cost
from dasktc.backends.csr import BlockTask
from dasktc.backends.kernel import NO_CORE, ROWS, Kernel, Rule
from dasktc.backends.protocol import GraphBounds, TaskSize
from dasktc.registry import KERNELS

__all__ = ["OWN", "CpuKernel"]


@dataclass(frozen=True)
class CpuKernel(Kernel):
    """A CPU kernel's registry entry: all that the backend knows of it.

    Attributes
    ----------
    count : callable (task) -> (int, int, int, int), or str
        Returns triangles, wedges, probes and the longest bucket of a task; or its name "module:function".
        `jit.compiles` declares what it compiles.
    probes : probes.Rule
        Probes of index edges, from lengths and positions alone.
    scratch : callable (TaskSize, GraphBounds or None) -> int
        Upper bound of the bytes that it allocates beside a task's blocks, as in `Backend`.
    support : str, optional
        Module that computes triangles by edge and by vertex, with functions `edges` and `vertices` like those of
        `supports`; None: the kernel does not.
    support_scratch : callable (TaskSize, GraphBounds or None) -> int
        As `scratch`, for these functions, beside what they return.
    """

    backend: ClassVar[str] = "cpu"

    count: str | Callable[[BlockTask], tuple[int, int, int, int]]
    probes: probes.Rule
    scratch: Callable[[TaskSize, GraphBounds | None], int] = lambda *_: 0
    support: str | None = None
    support_scratch: Callable[[TaskSize, GraphBounds | None], int] = lambda *_: 0

    @property
    def function(self) -> Any:
        """The function that counts a task."""
        return resolve_name(self.count) if isinstance(self.count, str) else self.count

    def load(self) -> None:
        """Import the function that counts a task, and compile its kernels or load them from the cache."""
        for part in getattr(self.function, "compiled", ()):
            part.load()

    def scratch_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes beside a task's blocks: of the kernel, or of the sample for cutting splits."""
        return max(_sample_bytes(of), self.scratch(of, graph))

    @property
    def gives_supports(self) -> bool:
        """Whether a module computes triangles by edge and by vertex."""
        return self.support is not None

    def support_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes beside a task's blocks and the results."""
        return max(_sample_bytes(of), self.support_scratch(of, graph))


def _sample_bytes(of: TaskSize) -> int:
    return sample_bytes(of.splits * of.index_edges, of.splits) if of.splits > 1 else 0


HERE = "dasktc.backends.cpu"
OWN = (
    CpuKernel(
        "hub",
        "bitmaps of hubs, the shorter list streamed",
        f"{HERE}.hub_tables:count",
        probes.hub,
        hub_bytes,
        auto=(Rule(90, {}, f"{ROWS}, and tables pay"),),
        keeps_tables=True,
        cost=hub_cost,
        support=f"{HERE}.supports",
        support_scratch=support_bytes,
        words="bitmaps of hubs",
    ),
    CpuKernel(
        "trust",
        "TRUST's vertex-centric hashing (sections 3.1 to 3.3)",
        f"{HERE}.intersect:count_trust",
        probes.trust,
        hash_bytes,
        order="collective",
        cut_order="collective-banded",
        sorted_rows=False,
        cost=stream_cost,
        times=38,
        words="hash tables",
    ),
    CpuKernel(
        "hindex",
        "H-INDEX's hash of each edge's shorter list (section III)",
        f"{HERE}.hindex:count_hindex",
        probes.hindex,
        hash_bytes,
        sorted_rows=False,
        times=45,
        words="hash tables",
    ),
    CpuKernel(
        "merge",
        "Fox et al.'s Intersect-Path: two lists walked in step (section III-B)",
        f"{HERE}.intersect:count_merge",
        probes.merge,
        auto=(Rule(10, {"usual": (0, 4)} | NO_CORE, f"{ROWS}, and walking two costs less than any table"),),
        support=f"{HERE}.merge_support",
        times=23,
        words="lists walked in step",
    ),
    CpuKernel(
        "search",
        "Fox et al.'s Par-Search: the shorter list bisected in the longer (section III-B)",
        f"{HERE}.intersect:count_search",
        probes.search,
        cost=search_cost,
        times=32,
        words="bisection",
    ),
    CpuKernel(
        "lstc",
        "LSTC's search in tiles of a row (section 4.4)",
        f"{HERE}.bisection:count_lstc",
        probes.lstc,
        cost=tile_cost,
        times=60,
        words="bisection in tiles",
    ),
    CpuKernel(
        "tcstream",
        "TC-Stream's search of uncut lists (section 4.2)",
        f"{HERE}.bisection:count_tcstream",
        probes.tcstream,
        cost=search_cost,
        times=55,
        words="bisection",
    ),
    CpuKernel(
        "plain",
        "two lists walked in step, the simplest kernel",
        f"{HERE}.plain:count",
        probes.merge,
        times=25,
        words="lists walked in step",
    ),
)
"""The package's own CPU kernels, the default first."""
KERNELS["cpu"].declare(OWN, Kernel)
