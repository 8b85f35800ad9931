"""Generated graphs: a part is a range of edge indices, and the worker that reads it computes the edges.

`kronecker` is the Graph 500 kind; `random_graph`, `rmat` and `grid3d` are the TRUST paper's three
synthetic graphs (Pandey et al., TPDS 2021, Table 2: RA, RM, 3D), identical at their defaults;
`theory` makes graphs whose triangles follow from a formula. The same arguments give the same edges
on any backend, for any number of parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from dasktc.backends import Backend
from dasktc.backends.edge_functions import Grid3D, Kronecker, RandomGraph, Recipe, RMat
from dasktc.errors import InputError
from dasktc.io.generators.theory import StarKind, StarProduct, theory_edges, theory_triangles, theory_vertices
from dasktc.io.source import Source
from dasktc.options import whole_number
from dasktc.planning.distribution import SourceSize
from dasktc.wording import advice, option, plural

__all__ = ["GeneratedPart", "grid3d", "kronecker", "random_graph", "rmat", "theory"]

EDGES_PER_PART = 1 << 22
"""Default number of edges of a part: 32 MiB of ids."""

_MOST_EDGES = 1 << 42  # a million parts
_MOST_STARS = 26  # 3^26 < 2^42


@dataclass(frozen=True)
class GeneratedPart:
    """A part of a generated graph: edges first <= i < last of a recipe."""

    recipe: Recipe
    first: int
    last: int
    upstream: ClassVar[None] = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Make the edges.

        Returns
        -------
        DataFrame of `backend.frame`, or pair of arrays
            Columns "src" and "dst": int32 if the graph's ids fit, else int64.

        Raises
        ------
        InputError
            The recipe has no such edge (`random_graph`).
        """
        return backend.make(self.recipe, self.first, self.last)

    @property
    def rows(self) -> int:
        """Number of edges."""
        return self.last - self.first

    def joined(self, other: Any) -> GeneratedPart | None:
        """Return one part for this and the next one; None if the other does not continue this."""
        is_successor = isinstance(other, GeneratedPart) and (other.recipe, other.first) == (self.recipe, self.last)
        return replace(self, last=other.last) if is_successor else None

    def shares(self, count: int) -> list[GeneratedPart]:
        """Cut the part into at most `count` parts of about equal size."""
        cuts = [self.first + self.rows * share // count for share in range(count + 1)]
        return [replace(self, first=a, last=b) for a, b in pairwise(cuts) if a < b] or [self]

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of at most `most` edges each."""
        for first in range(self.first, self.last, most):
            yield backend.read(replace(self, first=first, last=min(first + most, self.last)), None)

    read_on_device, chunks_on_device = read, chunks


def kronecker(scale: int = 20, edge_factor: int = 16, seed: int = 1, parts: int | None = None) -> Source:
    """Return a Kronecker graph with the Graph 500 shares 0.57, 0.19, 0.19, 0.05.

    Edge i draws k_b = splitmix64(64 i + b + 2^40 seed) >> 40 for each bit b of its ids (Leskovec et
    al., "Kronecker graphs", JMLR 2010, section 3.6, as R-MAT). Ids are not scrambled.

    Parameters
    ----------
    scale : int
        The graph has 2**scale ids.
    edge_factor : int
        edge_factor * 2**scale edges are drawn, loops and duplicates included.
    seed : int
        0 <= seed < 2**24.
    parts : int, optional
        Number of parts; default: about 2**22 edges per part.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        An argument is out of range.
    """
    scale = whole_number("scale", scale, 0, 62)
    edge_factor = whole_number("edge_factor", edge_factor, 0, _MOST_EDGES)
    seed = whole_number("seed", seed, 0, 2**24 - 1)
    name = f"kronecker scale {scale}, edge factor {edge_factor}, seed {seed}"
    return _source(name, Kronecker(2**scale, edge_factor << scale, seed), parts)


def random_graph(vertices: int = 10**8, edges: int = 10**9, parts: int | None = None) -> Source:
    """Return the TRUST paper's RA: every vertex draws edges / vertices neighbours uniformly.

    Parameters
    ----------
    vertices : int
        2 <= vertices <= 2**32, the range of the hash.
    edges : int
        A multiple of `vertices`.
    parts : int, optional
        Number of parts; default: about 2**22 edges per part.

    Returns
    -------
    Source
        Without loops; duplicates as drawn. Reading a part raises InputError if the recipe would draw
        a loop again for ever, because its hash has fixed points.

    Raises
    ------
    InputError
        An argument is out of range.
    """
    vertices = whole_number("vertices", vertices, 2, 2**32)
    edges = whole_number("edges", edges, 0, _MOST_EDGES)
    if edges % vertices:
        raise InputError(
            f"{edges} edges over {vertices} vertices leave {edges % vertices} over: every vertex of the "
            f"random graph draws equally many; choose {advice(edges=edges - edges % vertices + vertices)}"
        )
    return _source(f"random {vertices} vertices, {edges} edges", RandomGraph(vertices, edges), parts)


def rmat(vertices: int = 2**27, edges: int = 10**9, seed: int = 1, parts: int | None = None) -> Source:
    """Return the TRUST paper's RM: an R-MAT graph with shares 0.5, 0.1, 0.1, 0.3.

    Parameters
    ----------
    vertices : int
        A power of two.
    edges : int
        Edges drawn, loops and duplicates included.
    seed : int
        0 <= seed < 2**32.
    parts : int, optional
        Number of parts; default: about 2**22 edges per part.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        An argument is out of range.
    """
    vertices = whole_number("vertices", vertices, 1, 2**62)
    edges = whole_number("edges", edges, 0, _MOST_EDGES)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    power = 1 << vertices.bit_length() - 1
    if vertices != power:
        raise InputError(
            f"{vertices} vertices are no power of two: R-MAT halves the ids at every level; "
            f"choose {advice(vertices=power)} or {2 * power}"
        )
    return _source(f"rmat {vertices} vertices, {edges} edges, seed {seed}", RMat(vertices, edges, seed), parts)


def grid3d(side: int = 464, parts: int | None = None) -> Source:
    """Return the TRUST paper's 3D: the side³ torus, each vertex joined to its +1 neighbours.

    Side 3 has rings of three vertices, 27 triangles. With side 2 the +1 neighbour is the -1 neighbour, so
    every edge occurs twice and clean-up leaves a cube; side 1 is one vertex with three loops.

    Parameters
    ----------
    side : int
        Vertices along each axis.
    parts : int, optional
        Number of parts; default: about 2**22 edges per part.

    Returns
    -------
    Source
        With its number of triangles: the 3 side² rings are triangles for side 3; other sides have none.

    Raises
    ------
    InputError
        An argument is out of range.
    """
    side = whole_number("side", side, 1, 2**20)
    return _source(f"grid3d side {side}", Grid3D(side**3, 3 * side**3, side), parts, triangles=27 if side == 3 else 0)


def theory(stars: tuple[int, ...] = (25, 81, 256), kind: StarKind = "B1k", parts: int | None = None) -> Source:
    """Return a Kronecker product of star graphs, every undirected edge once.

    Parameters
    ----------
    stars : sequence of int
        Leaves of every star.
    kind : {"B1k", "B2k"}
        Place of each star's loop: on the hub or on one leaf. The product's loop is left out.
    parts : int, optional
        Number of parts; default: about 2**22 edges per part.

    Returns
    -------
    Source
        With its number of triangles (`theory_triangles`).

    Raises
    ------
    InputError
        An argument is out of range.
    """
    if not isinstance(kind, str) or kind not in ("B1k", "B2k"):
        raise InputError(f"{option('kind', kind)} is no kind of theory graph; choose B1k or B2k")
    if not isinstance(stars, Sequence) or isinstance(stars, bytes) or not stars:
        example = advice(stars=(25, 81, 256))
        raise InputError(f"{option('stars', stars)} names no star: a product needs at least one; try {example}")
    stars = tuple(whole_number("stars", leaves, 1, _MOST_EDGES) for leaves in stars)
    if len(stars) > _MOST_STARS:
        raise InputError(
            f"{option('stars')} names {plural(len(stars), 'star')}: each makes a product three times larger, "
            f"{_MOST_STARS} at most are within the limit; give fewer"
        )
    recipe = StarProduct(theory_vertices(stars), theory_edges(stars), stars, kind)
    name = f"theory {'-'.join(map(str, stars))}-{kind}"
    return _source(name, recipe, parts, theory_triangles(stars, kind))


def _source(name: str, recipe: Recipe, parts: int | None, triangles: int | None = None) -> Source:
    edges = recipe.edges
    if edges > _MOST_EDGES:
        raise InputError(f"{name} has {edges} edges: the limit is {_MOST_EDGES}; choose a smaller graph")
    if parts is None:
        parts = max(1, -(-edges // EDGES_PER_PART))
    shares = GeneratedPart(recipe, 0, edges).shares(min(whole_number("parts", parts, 1), edges)) if edges else ()
    return Source(name, tuple(shares), triangles=triangles, size=SourceSize(edges))
