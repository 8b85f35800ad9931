"""The graphs of `dasktc bench papers`: made here, at sizes for the device, and real ones from a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, rmat, theory
from dasktc.io.generators.theory import StarKind
from dasktc.io.source import Source

__all__ = ["EVEN", "SIZES", "Case", "Sizes", "generated", "kronecker_case", "real", "rmat_case", "theory_case"]

REAL = {
    "soc-Slashdot0902": "soc-Slashdot0902.txt.gz",
    "amazon0601": "amazon0601-edges.csv.gz",
    "ego-Twitter": "twitter_combined-edges.csv.gz",
    "cnr-2000": "cnr-2000.arcs.tsv.gz",
}
EVEN = ("RM", "RA", "3D")
"""What names of generated graphs without hubs begin with."""
QUICK_REAL = 1
"""How many of these a quick run reads."""


class Sizes(NamedTuple):
    """Sizes of the generated graphs."""

    scale: int
    wide: int
    vertices: int
    side: int
    """Of the Kronecker graph; log2 of RM's vertices; RA's vertices; 3D's side."""
    rates: tuple[int, int]
    """First and last scale of H-INDEX's table IV."""
    stars: int
    """Star products of its table V, the smallest first."""
    streamed: tuple[int, int]
    """Scale and log2 of RM's vertices where blocks come from disk."""
    hosted: tuple[int, int]
    """The same where the host's cores prepare or count: a merge of Kronecker 22 takes one core minutes."""
    tasks: tuple[tuple[int, int], ...] = ((2, 1), (4, 1), (4, 2), (8, 1), (8, 2))
    """n and m of TRUST's table 6."""


SIZES = {
    ("cpu", True): Sizes(13, 14, 20_000, 25, (10, 13), 12, (14, 15), (13, 14), ((2, 1), (2, 2), (4, 1), (4, 2))),
    ("cpu", False): Sizes(17, 18, 300_000, 60, (10, 17), 14, (18, 20), (18, 20)),
    ("cuda", True): Sizes(18, 20, 10**6, 100, (15, 18), 14, (20, 22), (18, 20)),
    ("cuda", False): Sizes(21, 24, 10**7, 300, (18, 23), 17, (22, 24), (20, 22)),
}
"""By backend, and whether the run is a quick one."""


@dataclass(frozen=True)
class Case:
    """A graph of the figures."""

    name: str
    source: Callable[[], Source]
    triangles: int | None = None
    """Where they are known."""


def kronecker_case(scale: int) -> Case:
    """A Kronecker graph, which is heavy-tailed."""
    return Case(f"Kronecker {scale}", partial(kronecker, scale))


def rmat_case(wide: int) -> Case:
    """TRUST's RM, of 2^wide vertices and 8 times as many edges."""
    return Case(f"RM 2^{wide}", partial(rmat, 2**wide, 8 * 2**wide))


def generated(sizes: Sizes) -> list[Case]:
    """Graphs of four kinds: heavy-tailed, two of even degrees (RM, RA) and a grid (3D), the last three TRUST's recipes.

    Parameters
    ----------
    sizes : Sizes
    """
    return [
        kronecker_case(sizes.scale),
        rmat_case(sizes.wide),
        Case(f"RA {sizes.vertices:,}", partial(random_graph, sizes.vertices, 10 * sizes.vertices)),
        Case(f"3D {sizes.side}^3", partial(grid3d, sizes.side), grid3d(sizes.side).triangles),
    ]


def real(folder: str | None, quick: bool) -> list[Case]:
    """The real graphs that the folder holds, the smallest first.

    Parameters
    ----------
    folder : str or None
    quick : bool
    """
    if folder is None:
        return []
    files = [(name, Path(folder, file)) for name, file in REAL.items() if Path(folder, file).is_file()]
    return [Case(name, partial(_of_file, str(path))) for name, path in (files[:QUICK_REAL] if quick else files)]


def _of_file(path: str) -> Source:
    from dasktc.api.opener import as_source

    return as_source(path)


def theory_case(stars: tuple[int, ...], kind: StarKind) -> Case:
    """A Kronecker product of stars, whose triangles follow from arithmetic."""
    source = theory(stars, kind)
    return Case(f"Theory-{'-'.join(map(str, stars))}-{kind}", lambda: source, source.triangles)
