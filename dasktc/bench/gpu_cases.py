"""The graphs of `dasktc bench gpu`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, rmat
from dasktc.io.source import Source

__all__ = ["CASES", "LARGE", "PUBLISHED", "QUICK", "SMALL", "Case", "Small"]

PUBLISHED = (
    "measured once, on one H200, with GroupTC-BS of https://github.com/Jangbao/TC-Compare-V2, its input in CSR (Li et "
    'al., "A Comparative Study of Intersection-Based Triangle Counting Algorithms on GPUs", IPDPS 2024); a build of '
    "November 2026 with nvcc 13.0 took 10.2, 57.3 and 4.4 ms on Kronecker 20 and 22 and on random edges of 20 M "
    "vertices; to measure it: --rival GroupTC-BS=PROGRAM"
)
"""What the fixed figures of the fastest published kernel are."""


@dataclass(frozen=True)
class Case:
    """A graph of the table, with its known and target figures."""

    name: str
    source: Callable[[], Source]
    rows: int
    """Number of raw edges."""
    triangles: int | None
    published: float | None = None
    """Milliseconds of the fastest published kernel, as `PUBLISHED` says; `--rival` measures a build of one."""
    reach: tuple[float, float] | None = None
    """Target milliseconds of kernel and preparation, on one H200."""
    bound: str | None = None
    """What limits them instead, as measured there."""


_RA = (
    "an edge is one random record of 32 bytes, for which DRAM reads 64: the loads alone take 25.9 ms, 38.6 G sectors a "
    "second, which is what the card gives; tests add 2, lookups some 4, making the records 3.8; "
    "preparation gathers 2 · 10^9 ranks at 38 G a second"
)
_RM = (
    "an edge is one random record of 32 bytes, for which DRAM reads 64: the loads alone take 25.0 ms, what the card "
    "gives; tests add 5, lookups of what the marks pass some 8, making the records 4.2; "
    "preparation gathers 2 · 10^9 ranks at 38 G a second, 52 of its 156 ms, and sorts as long"
)
_UNIFORM = (
    "an edge is one random record: 10^8 in 2.25 ms, 44 G a second, some from the L2, where DRAM gives 38 G; making the "
    "records takes 0.4"
)
_TABLES = (
    "at scale 24 lists against tables in shared memory take 18 of 40 ms: issue slots, L2 and shared memory are some "
    "70 % busy, DRAM 50 %; near hubs 8: L2 72 %, issue slots 82 %; making the lists 7: random sectors, L2 60 %; "
    "kernels take 26 of 29 ms of preparation, 10 to sort at 2.3 TB/s, 6 to count ends, 4 to gather ranks"
)
_LISTS = (
    "lists against tables in shared memory take 164 of 281 ms at scale 26, making them 45, edges 41, near hubs 27, "
    "each as busy as at scale 24"
)
_ROWS = (
    "load latency: 13 of 18 cycles between two instructions of a warp wait for a load; L2 67 % busy, DRAM 39 %; of "
    "12.5 ms that preparing 300^3 takes, kernels take 10, 4.6 to sort at 2.3 TB/s, 2.4 to count ends"
)


CASES = (
    Case("Kronecker 20", lambda: kronecker(20), 16 << 20, 424_270_360, 10.2, (1.5, 5), _TABLES),
    Case("Kronecker 22", lambda: kronecker(22), 16 << 22, 2_111_176_581, 57, (6.5, 9), _TABLES),
    Case("Kronecker 24", lambda: kronecker(24), 16 << 24, 10_284_939_290, 348, (33, 28), _TABLES),
    Case("uniform, 20 M vertices", lambda: random_graph(2 * 10**7, 10**8), 10**8, None, 4.3, (2.2, 18), _UNIFORM),
    Case("3D torus 300^3", lambda: grid3d(300), 3 * 300**3, 0, 2.3, (0.25, 12), _ROWS),
    Case("RA", lambda: random_graph(), 10**9, 1_221, 55, (25, 130), _RA),
    Case("RM", lambda: rmat(), 10**9, 4_114_617, 69, (27, 130), _RM),
    Case("3D, 464^3", lambda: grid3d(464), 3 * 464**3, 0, 8.4, (0.8, 40), _ROWS),
)
LARGE = (
    Case("Kronecker 26", lambda: kronecker(26), 16 << 26, 49_149_238_467, None, (240, 140), _LISTS),
    Case("Kronecker 28", lambda: kronecker(28), 16 << 28, 231_446_155_786),
)
"""Graphs that are measured only if --only names them."""
QUICK = (
    Case("Kronecker 12", lambda: kronecker(12), 16 << 12, 486_234),
    Case("uniform, 2,000 vertices", lambda: random_graph(2000, 10_000), 10_000, None),
    Case("3D torus 3^3", lambda: grid3d(3), 81, 27),
)
Small = tuple[str, int, int]
"""File, triangles, and target milliseconds from a device array to the answer."""
SMALL: dict[str, Small] = {
    "ego-Facebook": ("facebook_combined.txt.gz", 1_612_010, 1),
    "amazon0601": ("amazon0601-edges.csv.gz", 3_986_507, 8),
}
