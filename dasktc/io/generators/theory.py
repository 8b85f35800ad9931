"""Kronecker products of star graphs: graphs of any size whose triangles follow from a formula.

The Graph Challenge's "Theory" graphs (Kepner et al., "Design, generation, and validation of extreme
scale power-law graphs", IPDPSW 2018). Factor i is a star with m_i leaves and one loop, on its hub
(kind B1k) or on one leaf (B2k); the product's only loop is removed. With A the product before that,

    V = Π(m + 1),   E = (Π(2m + 1) - 1) / 2,   triangles = (tr A³ - 3 d + 2) / 6

where d counts the entries in the row of the vertex with the loop: B1k has tr A³ = Π(3m + 1) and d = Π(m + 1),
B2k has tr A³ = 4^k and d = 2^k.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Literal

from dasktc.backends.edge_functions import Ends, Recipe

__all__ = ["StarKind", "StarProduct", "theory_edges", "theory_triangles", "theory_vertices"]

StarKind = Literal["B1k", "B2k"]


def theory_vertices(stars: tuple[int, ...]) -> int:
    """Return the number of vertices of a product of stars with these numbers of leaves."""
    return prod(leaves + 1 for leaves in stars)


def theory_edges(stars: tuple[int, ...]) -> int:
    """Return the number of undirected edges of a product of stars, without its one loop."""
    entries: int = prod(2 * leaves + 1 for leaves in stars)
    return (entries - 1) // 2


def theory_triangles(stars: tuple[int, ...], kind: StarKind) -> int:
    """Return the number of triangles of a product of stars, without its one loop."""
    if kind == "B1k":
        closed_walks, ends = prod(3 * leaves + 1 for leaves in stars), theory_vertices(stars)
    else:
        closed_walks, ends = prod(4 for _ in stars), prod(2 for _ in stars)
    return (closed_walks - 3 * ends + 2) // 6


@dataclass(frozen=True)
class StarProduct(Recipe):
    """The edges of a product of stars, each once, by index.

    The entries of one star's adjacency matrix are numbered t = -m..m: t = 0 is the loop, t > 0 is
    (hub, leaf t), and -t is t mirrored. An entry of the product is one t per factor, the digits of a
    number in the balanced mixed radix 2m + 1. Negating the number mirrors the entry and 0 is the loop, so
    1..E are the undirected edges, each once. Ids have the mixed radix m + 1, with hub 0.
    """

    stars: tuple[int, ...]
    kind: StarKind

    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Split each edge's number into digits and combine these to both ids."""
        rest = xp.arange(first + 1 + self.edges, last + 1 + self.edges, dtype=xp.int64)
        row, column = xp.zeros_like(rest), xp.zeros_like(rest)
        has_loops = 0 if self.kind == "B1k" else 1
        place = 1
        for leaves in reversed(self.stars):
            quotient = rest // (2 * leaves + 1)
            digit = rest - quotient * (2 * leaves + 1) - leaves
            loop = has_loops * (digit == 0)
            row += place * (xp.maximum(-digit, 0) + loop)
            column += place * (xp.maximum(digit, 0) + loop)
            rest, place = quotient, place * (leaves + 1)
        return row, column
