"""Entries of the CUDA kernels. A kernel is a file `*.cu` and an entry of `OWN`, or of a plug-in.

Launches of a few lines are in this module; others have a module `launch_*` of their own.
"""

# Milliseconds on an H200, degree order (`dasktc bench choose --backend cuda`):
#                             hub  bitmap   trust   merge    lstc   short   wedges
#   torus 50³               0.247   0.268   0.322   0.406   0.172   0.062      1 M   rows of 3
#   torus 300³              1.008   1.559   2.332   3.581  22.176   0.300    242 M   rows of 3, 81 M edges
#   torus 464³              3.24    -     11.197   11.89    -       0.97     900 M   300 M edges
#   random, degree 4        1.263   1.677   2.551   3.093  12.577   1.353     44 M   40 M edges
#   p2p-Gnutella31          0.426   0.505   0.458   0.756   0.193   0.113    0.4 M
#   dblp-2010               1.227   0.479   0.559   0.917   0.445   0.420    3.4 M   rows: 300,647
#   amazon0601              0.475   0.400   0.528   0.663   0.870   0.128     11 M   usual row 10
#   144                     0.415   0.374   0.487   0.647   0.414   0.123    5.1 M   usual row 13
#   email-Enron             1.145   0.316   0.437   0.570   0.160   0.488    3.8 M
#   ego-Twitter             1.383   0.742   0.874   0.934   0.558   1.244     41 M   longest row 129
#   Kronecker 14            0.363   0.277   0.362   0.542   0.586   2.334     13 M   longest row 139
#   Kronecker 19            1.720   1.536   2.119   7.124   9.499  45.526    1.7 G
#   Kronecker 20            2.469   2.998   4.535  16.676  20.672  74.679    4.4 G
#   Kronecker 22            8.625  16.137  26.830 104.773 109.188 301.874     29 G
#   RM 2^20                 0.476   1.165   0.878   1.012   1.999   0.624    107 M   even 0.36
#   RM 2^24                 4.775  26.619  12.298  18.963  34.876   9.386    2.1 G   even 0.31, 133 M edges
#   RA 10^7                 3.213   9.530   7.348  12.292  24.068   5.681    639 M   usual row 17
#   random, degree 40       0.971   7.470   1.794   2.700   4.764   1.903    261 M   usual row 34
#   random, degree 60       2.120  11.899   2.984   4.927   7.630   4.201    591 M   usual row 51, covered 0.04
#   random, degree 100     16.388  19.495   6.568  11.908  14.931  11.061    1.7 G   usual row 87
#   10^5 v., degree 400     4.056   9.363   3.830  15.821  15.509  51.518    2.7 G   covered 0.36
#   clique 1500             0.883   0.423   0.889   4.935  64.886 271.588    561 M   covered 1
#   clique 600              0.602   0.288   -       -       3.340   -         36 M
#   clique 400              0.493   0.273   -       -       1.584   -         11 M   rows too few for all thread blocks
#
# The graphs from files, the torus of 464³ and the cliques of 600 and 400 were measured before version 3 of trust.cu; in
# turns with it, version 5 took 0.31 to 1.07 times as long, without amazon0601.
# Times are between events right around a kernel's launches, and vary by up to 0.3 ms from run to run; `plain` takes 0.9
# to 3.6 times as long as `short`. By these times and those of a dozen more graphs, what auto takes is the fastest
# kernel or takes 1.07 times as long at most, except for 0.03 ms (1.22) on Kronecker 10, 0.3 (2.12) on Kronecker 14,
# where it was faster by 0.16 in another run, 0.08 (1.15) on RA 10^6 and 0.06 (1.14) on dblp-2010. hub, the best fixed
# choice, takes 1.65 times as long as the fastest on average, 5.4 at most.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import ClassVar, NamedTuple

from dasktc.backends.cpu import probes
from dasktc.backends.cpu.splits import hub_cost, search_cost, stream_cost, tile_cost
from dasktc.backends.cuda import launch_edges, launch_hub, launch_trust
from dasktc.backends.cuda import probes as device_probes
from dasktc.backends.cuda.device import THREADS, Launch
from dasktc.backends.cuda.probes import Rule as ProbesRule
from dasktc.backends.kernel import NO_CORE, ROWS, Kernel, Rule
from dasktc.backends.protocol import GraphBounds, TaskSize
from dasktc.registry import KERNELS

__all__ = ["OWN", "CudaKernel", "Support", "by_edges"]


def by_edges(launch: Launch) -> None:
    """Launch a kernel with the single entry point `<file>_rows`, which uses a thread per edge."""
    launch.spread(f"{Path(launch.file).name}_rows", int(launch.fields["rows"][0]), launch.totals)


def short(launch: Launch) -> None:
    """Launch `short` on as many thread blocks as fit the GPU at the same time."""
    fields, shape = launch.fields, launch.shape
    # In blocks of one order, the entries before v in a row are those before v's place.
    is_cut = fields["same"][0] and fields["shift"][0] == 0
    grid = min(-(-int(fields["rows"][0]) // shape["BLOCK"]), shape["BLOCKS"] * launch.device.processors)
    entry = ("short_rows" if is_cut else "short_blocks") + ("_each" if launch.outputs else "")
    launch.run(entry, grid, shape["BLOCK"], launch.totals, *launch.outputs)


def lstc(launch: Launch) -> None:
    """Launch `lstc` on as many blocks as fill the GPU; they take vertices until none is left."""
    shape, rows = launch.shape, int(launch.fields["rows"][0])
    grid = min(THREADS // shape["THREADS"] * launch.device.processors, -(-rows // shape["CHUNK"]))
    next_vertex = launch.device.array.zeros(1, dtype="uint32")
    launch.run("lstc_rows", grid, shape["THREADS"], next_vertex, launch.totals)


def no_scratch(index_edges: int, block_edges: int, columns: int) -> int:
    """Bytes of a kernel that allocates nothing but its sums."""
    return 1 << 12


class Support(NamedTuple):
    """Form of a kernel that computes triangles by edge and by vertex: the same `launch`, with outputs.

    Attributes
    ----------
    file : str
        As for the kernel. With the macro VERTICES its outputs are by vertex.
    scratch : callable (index_edges, block_edges, columns) -> int
        As for the kernel.
    macros : mapping of str to int
        Macros in addition to those of the kernel.
    """

    file: str
    scratch: Callable[[int, int, int], int]
    macros: Mapping[str, int] = {}


@dataclass(frozen=True)
class CudaKernel(Kernel):
    """A CUDA kernel's registry entry: all that the backend knows of it.

    Attributes
    ----------
    file : str
        Name of a file in the kernels' folder, or a path, without its suffix.
    probes : callable (Edges, macros) -> array
        Probes of index edges, from lengths and positions alone (`probes.Rule`).
    launch : callable (Launch)
        Counts a task.
    scratch : callable (index_edges, block_edges, columns) -> int
        Upper bound of the bytes that it allocates beside a task's blocks, as in `Backend`.
    macros : mapping of str to int
        Macros in place of the defaults in its files, or that these do not define. A name in lower case is no macro but
        a setting of the launch, which needs no recompilation.
    support : Support, optional
        Its form that computes triangles by edge and by vertex, if it has one.
    """

    backend: ClassVar[str] = "cuda"

    file: str
    probes: ProbesRule
    launch: Callable[[Launch], None] = by_edges
    scratch: Callable[[int, int, int], int] = no_scratch
    macros: Mapping[str, int] = field(default_factory=dict)
    support: Support | None = None

    @property
    def gives_supports(self) -> bool:
        """Whether it has a form with outputs."""
        return self.support is not None

    def support_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes beside a task's blocks and the outputs."""
        return self.support.scratch(of.index_edges, of.block_edges, of.columns) if self.support is not None else 0

    def scratch_bytes(self, of: TaskSize, graph: GraphBounds | None = None) -> int:
        """Upper bound of the bytes beside a task's blocks; it does not depend on the graph."""
        return self.scratch(of.index_edges, of.block_edges, of.columns)


FEW, SOME = 5_000_000, 2 * 10**9
"""Wedges that are counted in about the time of a few launches, and in the time of building tables."""
LISTED = launch_hub.HUB["SHORT"]
"""Longest row of a graph that `hub` counts by records of its rows."""
CACHED = 1 << 22
"""Edges that stay in a GPU's cache."""
SHARED = 160
"""Longest row of a small graph that thread blocks share evenly, a few rows at a time."""
SMALL = "few wedges, {wedges:,}"

OWN = (
    CudaKernel(
        "hub",
        "near hubs' bitmaps, the shorter list streamed against 16-bit tables, or records of short rows",
        "hub",
        device_probes.hub,
        launch_hub.hub,
        launch_hub.hub_bytes,
        support=Support("support", launch_hub.hub_support_bytes),
        auto=(Rule(90, {}, f"{ROWS}, and records or tables pay"),),
        keeps_tables=True,
        cost=hub_cost,
        words="bitmaps of hubs",
    ),
    CudaKernel(
        "bitmap",
        "the plain form of hub: bitmaps of hubs and little else beside the graph",
        "hub",
        device_probes.bitmap,
        launch_hub.hub,
        launch_hub.bitmap_bytes,
        {"PLAIN": 1, "MERGED": 64},
        Support("support", launch_hub.bitmap_bytes),
        auto=(Rule(70, {"longest": (LISTED + 1, inf), "wedges": (0, SOME)}, f"{ROWS}, and bitmaps are soon filled"),),
        lean=True,
        keeps_tables=True,
        cost=hub_cost,
        words="bitmaps of hubs",
    ),
    CudaKernel(
        "trust",
        "TRUST's vertex-centric hashing, rows dealt out in chunks (sections 3 and 4)",
        "trust",
        device_probes.same(probes.trust),
        launch_trust.trust,
        launch_trust.scratch_bytes,
        launch_trust.SETTINGS,
        auto=(
            Rule(
                60,
                {"usual": (30, inf), "longest": (LISTED + 1, inf), "skew": (0, 1), "covered": (0, 0.4)},
                f"{ROWS}, too long for records, and there are no hubs",
            ),
        ),
        order="collective",
        cut_order="collective-banded",
        sorted_rows=False,
        details=launch_trust.details,
        cost=stream_cost,
        words="hash tables",
    ),
    CudaKernel(
        "hindex",
        "H-INDEX's hash of each edge's shorter list (section III)",
        "hindex",
        device_probes.hindex,
        launch_edges.hindex,
        launch_edges.hindex_bytes,
        launch_edges.SETTINGS,
        sorted_rows=False,
        words="hash tables",
    ),
    CudaKernel(
        "hindex-unbinned",
        "H-INDEX without binning: a warp and 32 buckets for every edge (baseline of TRUST's figure 12)",
        "hindex",
        device_probes.hindex,
        launch_edges.hindex,
        launch_edges.unbinned_bytes,
        launch_edges.SETTINGS | {"LRB": 0},
        sorted_rows=False,
        words="hash tables",
    ),
    CudaKernel(
        "merge",
        "Fox et al.'s Intersect-Path: two lists walked in parts (sections III-B and III-C)",
        "merge",
        device_probes.same(probes.merge),
        launch_edges.merge,
        launch_edges.list_bytes,
        launch_edges.SETTINGS,
        words="lists walked in step",
    ),
    CudaKernel(
        "search",
        "Fox et al.'s Par-Search: the shorter list bisected in the longer (sections III-B and III-C)",
        "search",
        device_probes.same(probes.search),
        launch_edges.search,
        launch_edges.list_bytes,
        launch_edges.SETTINGS,
        cost=search_cost,
        words="bisection",
    ),
    CudaKernel(
        "search-log",
        "Par-Search, its edges binned by the estimate d_u log d_v (Fox et al., equation 2), not by d_u alone",
        "search",
        device_probes.same(probes.search),
        launch_edges.search,
        launch_edges.list_bytes,
        launch_edges.SETTINGS | {"LOG": 1},
        cost=search_cost,
        words="bisection",
    ),
    CudaKernel(
        "lstc",
        "LSTC's search in tiles of a row in shared memory (section 4.4)",
        "lstc",
        device_probes.lstc,
        lstc,
        auto=(
            Rule(
                30,
                {"longest": (0, SHARED), "wedges": (0, FEW), "rows": (0, 1 << 17)},
                f"{SMALL}: one launch, no tables in global memory",
            ),
            Rule(
                40,
                {"longest": (LISTED + 1, SHARED), "wedges": (0, 10 * FEW), "rows": (0, 1 << 17)},
                f"{SMALL}, and no row keeps a thread block long",
            ),
        ),
        cost=tile_cost,
        words="bisection in tiles",
    ),
    CudaKernel(
        "lstc-unshared",
        "LSTC without shared memory: rows searched in place, in global memory (baseline of its figure 9)",
        "lstc",
        device_probes.lstc,
        lstc,
        macros={"TILE": 0},
        cost=stream_cost,
        words="bisection",
    ),
    CudaKernel(
        "tcstream",
        "TC-Stream's search, the tree's top in shared memory (sections 4.2 and 4.3)",
        "tcstream",
        device_probes.same(probes.tcstream),
        launch_edges.tcstream,
        launch_edges.list_bytes,
        launch_edges.SETTINGS,
        cost=search_cost,
        words="bisection",
    ),
    CudaKernel(
        "tcstream-recursive",
        "TC-Stream's recursion: the shorter list's middle entry first, then both halves (section 4.2)",
        "tcstream",
        device_probes.same(probes.tcstream),
        launch_edges.tcstream,
        launch_edges.list_bytes,
        launch_edges.SETTINGS | {"SEARCH": 1},
        cost=search_cost,
        words="bisection",
    ),
    CudaKernel(
        "tcstream-backward",
        "TC-Stream's Algorithm 5: each search in doubling steps from the longer list's end",
        "tcstream",
        device_probes.same(probes.tcstream),
        launch_edges.tcstream,
        launch_edges.list_bytes,
        launch_edges.SETTINGS | {"SEARCH": 2},
        cost=search_cost,
        words="bisection",
    ),
    CudaKernel(
        "short",
        "rows of a handful of entries, a thread a row, in registers",
        "short",
        device_probes.same(probes.merge),
        short,
        support=Support("short", no_scratch),
        auto=(
            Rule(10, {"usual": (0, 4)} | NO_CORE, f"{ROWS}, and a thread holds one in registers"),
            Rule(20, {"usual": (0, 15), "longest": (0, LISTED), "wedges": (0, 6 * FEW)}, f"{ROWS}, and {SMALL}"),
            Rule(
                80,
                {"longest": (0, LISTED), "even": (0, 0.45), "edges": (0, CACHED)},
                f"{ROWS}, and the graph stays in the cache",
            ),
        ),
        words="rows in registers",
    ),
    CudaKernel(
        "plain",
        "two lists walked in step, a thread an edge: what others are verified with",
        "plain",
        device_probes.same(probes.merge),
        words="lists walked in step",
    ),
)
"""The package's own CUDA kernels, the default first."""
KERNELS["cuda"].declare(OWN, Kernel)
