"""Oracles and small graphs for the whole test suite: slow and simple by design, never timed.

Edges are pairs of ids, integers or strings, as a caller might write them, including loops, duplicates and both
directions. Every oracle drops loops and ignores direction and multiplicity.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import combinations, product

import networkx as nx
from hypothesis import strategies as st

Edge = tuple[Hashable, Hashable]


def clean(edges: Iterable[Edge]) -> set[frozenset]:
    """Return the undirected simple edges."""
    return {frozenset(edge) for edge in edges if edge[0] != edge[1]}


def support(edges: Iterable[Edge]) -> dict[frozenset, int]:
    """Count each simple edge's triangles: the common neighbours of its two ends."""
    simple = clean(edges)
    neighbours = {vertex: set() for edge in simple for vertex in edge}
    for u, v in simple:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return {frozenset((u, v)): len(neighbours[u] & neighbours[v]) for u, v in simple}


def triangles(edges: Iterable[Edge]) -> int:
    """Count triangles, each of which is in the supports of its three edges."""
    return sum(support(edges).values()) // 3


def triangles_per_vertex(edges: Iterable[Edge]) -> dict[Hashable, int]:
    """Count the triangles of every vertex with an edge; each is in the supports of two of the vertex's edges."""
    twice = Counter()
    for edge, count in support(edges).items():
        twice.update(dict.fromkeys(edge, count))
    return {vertex: count // 2 for vertex, count in twice.items()}


def _multigraphs(ids, max_vertices: int, max_edges: int):
    """Edges over few distinct ids, so that triangles, loops and duplicates in both directions occur."""
    vertices = st.lists(ids, min_size=1, max_size=max_vertices, unique=True)
    return vertices.flatmap(
        lambda found: st.lists(st.tuples(st.sampled_from(found), st.sampled_from(found)), max_size=max_edges)
    )


def multigraphs(max_vertices: int = 12, max_edges: int = 60):
    """Edge lists over integer ids of any size that int64 holds."""
    ids = st.one_of(st.integers(0, 2 * max_vertices), st.integers(-(2**63), 2**63 - 1))
    return _multigraphs(ids, max_vertices, max_edges)


def text_multigraphs(max_vertices: int = 12, max_edges: int = 60):
    """Edge lists over string ids, including the empty string and strings of digits."""
    ids = st.one_of(st.integers(0, 99).map(str), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
    return _multigraphs(ids, max_vertices, max_edges)


def complete(vertices: int) -> list[Edge]:
    """The complete graph K_n."""
    return list(combinations(range(vertices), 2))


def star(leaves: int) -> list[Edge]:
    """Hub 0 and its leaves."""
    return [(0, leaf) for leaf in range(1, leaves + 1)]


def wheel(rim: int) -> list[Edge]:
    """Hub 0 and a cycle of 1..rim around it."""
    return star(rim) + [(i, i % rim + 1) for i in range(1, rim + 1)]


def friendship(blades: int) -> list[Edge]:
    """Triangles that share only vertex 0."""
    return star(2 * blades) + [(2 * i - 1, 2 * i) for i in range(1, blades + 1)]


def book(pages: int) -> list[Edge]:
    """Triangles that share edge (0, 1), whose ends are both hubs."""
    return [(0, 1), *product((0, 1), range(2, pages + 2))]


def aligned_hubs(vertices: int, stride: int) -> list[Edge]:
    """Return K_n over multiples of `stride`, the worst case for a hash id % 2^k: all neighbours collide."""
    return [(stride * u, stride * v) for u, v in complete(vertices)]


def messy(edges: list[Edge]) -> list[Edge]:
    """Return the same graph with every edge in both directions, one of them twice, and a loop at every vertex."""
    return [*edges, *((v, u) for u, v in edges), *edges[:1], *((u, u) for u, _ in edges)]


GRAPHS: list[tuple[str, list[Edge], int]] = [
    ("empty", [], 0),
    ("loop", [(7, 7)], 0),
    ("edge", [(0, 1)], 0),
    ("edge both ways", [(0, 1), (1, 0)], 0),
    ("path", [(0, 1), (1, 2)], 0),
    ("triangle", [(0, 1), (1, 2), (2, 0)], 1),
    ("triangle messy", messy([(0, 1), (1, 2), (2, 0)]), 1),
    ("triangle of extreme ids", [(-(2**63), 2**63 - 1), (2**63 - 1, 0), (0, -(2**63))], 1),
    ("two triangles apart", [(0, 1), (1, 2), (2, 0), (10, 11), (11, 12), (12, 10)], 2),
    ("two triangles on an edge", book(2), 2),
    ("square", [(0, 1), (1, 2), (2, 3), (3, 0)], 0),
    ("K4", complete(4), 4),
    ("K5 less an edge", complete(5)[1:], 7),
    ("K20 messy", messy(complete(20)), 1140),
    ("star", star(50), 0),
    ("wheel", wheel(9), 9),
    ("wheel W3 is K4", wheel(3), 4),
    ("friendship", friendship(12), 12),
    ("book", book(200), 200),
    ("K33", list(product(range(3), range(3, 6))), 0),
    ("Petersen", list(nx.petersen_graph().edges()), 0),
    ("octahedron", list(nx.octahedral_graph().edges()), 8),
    ("icosahedron", list(nx.icosahedral_graph().edges()), 20),
    ("karate", list(nx.karate_club_graph().edges()), 45),
    ("hubs that hash alike", aligned_hubs(40, 2**20), 9880),
    ("hub of 3000 with one triangle", [*star(3000), (1500, 3000)], 1),
]
"""Name, edges with integer ids, number of triangles."""
