"""The graphs of `dasktc bench papers`: made here, at sizes for the device, and real ones from a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dasktc.generate import grid3d, kronecker, random_graph, rmat, theory
from dasktc.sources import Source
from dasktc.theory import Kind

__all__ = ["Case", "generated", "real", "theory_case"]

REAL = {
    "soc-Slashdot0902": "soc-Slashdot0902.txt.gz",
    "amazon0601": "amazon0601-edges.csv.gz",
    "ego-Twitter": "twitter_combined-edges.csv.gz",
    "cnr-2000": "cnr-2000.arcs.tsv.gz",
}
QUICK_REAL = 1
"""How many of these a quick run reads."""


@dataclass(frozen=True)
class Case:
    """A graph.

    Attributes
    ----------
    name : str
    source : callable () -> Source
    triangles : int or None
        Where they are known.
    """

    name: str
    source: Callable[[], Source]
    triangles: int | None = None


def generated(backend: str, quick: bool) -> list[Case]:
    """Graphs of four kinds: heavy-tailed, two uniform ones (RM, RA) and a grid (3D), the last three TRUST's recipes.

    Parameters
    ----------
    backend : {"cpu", "cuda"}
        A GPU gets larger ones.
    quick : bool
    """
    scale, wide, vertices, side = {
        ("cpu", True): (14, 15, 30_000, 30),
        ("cpu", False): (17, 18, 300_000, 60),
        ("cuda", True): (18, 20, 10**6, 100),
        ("cuda", False): (21, 24, 10**7, 300),
    }[backend, quick]
    return [
        Case(f"Kronecker {scale}", lambda: kronecker(scale)),
        Case(f"RM 2^{wide}", lambda: rmat(2**wide, 8 * 2**wide)),
        Case(f"RA {vertices:,}", lambda: random_graph(vertices, 10 * vertices)),
        Case(f"3D {side}^3", lambda: grid3d(side), 0),
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
    found = [(name, Path(folder, file)) for name, file in REAL.items() if Path(folder, file).is_file()]
    return [_from_file(name, path) for name, path in (found[:QUICK_REAL] if quick else found)]


def _from_file(name: str, path: Path) -> Case:
    from dasktc.triangles import as_source

    return Case(name, lambda: as_source(str(path)))


def theory_case(stars: tuple[int, ...], kind: Kind) -> Case:
    """A product of stars, whose triangles arithmetic knows."""
    source = theory(stars, kind)
    return Case(f"Theory-{'-'.join(map(str, stars))}-{kind}", lambda: source, source.triangles)
