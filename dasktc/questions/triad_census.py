"""Triad census of a directed graph: the number of vertex triples of each of the 16 types.

Triangles are visited and counted by the directions of their three edges (`backends.cpu.edge_values.codes`). Triples
with two edges follow from the degrees: all pairs of edges at a vertex, minus those in triangles. Triples with one edge
or none follow from the numbers of edges and vertices (after Batagelj and Mrvar, Social Networks 23, 237-243, 2001, who
also visit pairs of edges). Types have the names of Holland and Leinhardt, as in NetworkX.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, ClassVar

from dasktc.answers.frames import array_module
from dasktc.backends.cpu.sizes import edge_values_bytes
from dasktc.backends.csr import BlockTask
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError
from dasktc.executors.base import Fold
from dasktc.options import CountOptions, whole_number
from dasktc.pipeline.stages.attributes import AGAINST, ALONG
from dasktc.pipeline.stages.columns import Column
from dasktc.pipeline.stages.orient import wedges_of
from dasktc.questions.sums import SUM
from dasktc.questions.survey import Batch, TaskArrays, counts_by_edges
from dasktc.questions.weighted_clustering import attributes_of
from dasktc.wording import advice

__all__ = ["TYPES", "triad_census"]

Array = Any
TYPES = (
    "003", "012", "102", "021D", "021U", "021C", "111D", "111U",
    "030T", "030C", "201", "120D", "120U", "120C", "210", "300",
)  # fmt: skip
BOTH = ALONG | AGAINST
OPEN = {"oo": "021D", "ii": "021U", "io": "021C", "im": "111D", "mo": "111U", "mm": "201"}
"""Types of two edges by direction at their common vertex: o out of it, i into it, m mutual."""


@dataclass(frozen=True)
class DirectionCounts:
    """The visitor that counts triangles by the directions of their edges, on the CPU."""

    fold: ClassVar[Fold[Any]] = SUM

    def visit(self, task: BlockTask, arrays: TaskArrays) -> tuple[Array, int, int]:
        """Count the triangles of a task."""
        from dasktc.backends.cpu import edge_values  # loads Numba: only when needed

        ((of_index, of_table, of_stream),) = arrays.edges
        counts, wedges = edge_values.codes(task, (of_index, of_table, of_stream))
        return counts, int(counts.sum()), wedges


def _codes_of_batch(batch: Batch) -> Array:
    """Count triangles by the directions of their edges."""
    codes = batch["directions_uv"].astype("int32")
    for pair in ("uw", "vw"):
        codes <<= 2
        codes |= batch[f"directions_{pair}"]
    return array_module(codes).bincount(codes, minlength=64)


def triad_census(graph: CountingContext, isolated: int = 0, options: CountOptions | None = None) -> dict[str, int]:
    """Count the vertex triples by type; see `Graph.triad_census`."""
    isolated = whole_number("isolated", isolated, 0, few="it is a number of vertices")
    data, sizes = attributes_of(graph), graph.prepared.sizes
    if data.neighbours is None:
        raise InputError(f"the graph was prepared without directions: prepare it with {advice(directed=True)}")
    columns, visitor = {"directions": Column("uint8", None, data.directions)}, DirectionCounts()
    nbytes = edge_values_bytes(int(sizes.edges.max()), int(sizes.columns.max()))
    counts = counts_by_edges(graph, "triad census", visitor, nbytes, _codes_of_batch, columns, 64, options)
    facts = graph.executor.gather(graph.executor.map("triads", _facts, list(data.neighbours.parts)))
    shard_pairs, single_arcs, mutual_ends = zip(*facts, strict=True)
    pairs = sum(shard_pairs, Counter[str]())
    return _census(counts.tolist(), pairs, sum(single_arcs), sum(mutual_ends) // 2, graph.vertices + isolated)


def _facts(neighbours: Array) -> tuple[Counter[str], int, int]:
    """Return the pairs of edges by type, and the ends of edges out of a vertex and in both directions."""
    out_degrees, in_degrees, reciprocal = neighbours
    return _pairs(out_degrees, in_degrees, reciprocal), int(out_degrees.sum()), int(reciprocal.sum())


def _pairs(out_degrees: Array, in_degrees: Array, reciprocal: Array) -> Counter[str]:
    """Count all pairs of edges at a common vertex by type, including those in triangles."""
    degrees = {"i": in_degrees, "m": reciprocal, "o": out_degrees}
    counts: Counter[str] = Counter()
    for pair, name in OPEN.items():
        a, b = pair[0], pair[1]
        ordered_pairs = wedges_of(degrees[a], degrees[b] - (a == b))
        counts[name] = ordered_pairs // 2 if a == b else ordered_pairs
    return counts


def _census(codes: list[int], pairs: Counter[str], single_arcs: int, mutual: int, vertices: int) -> dict[str, int]:
    census: Counter[str] = Counter(pairs)
    for directions in product((ALONG, AGAINST, BOTH), repeat=3):
        uv, uw, vw = directions
        count = codes[uv << 4 | uw << 2 | vw]
        census[_closed(*directions)] += count
        for first_edge, second_edge in ((uv, uw), (_turned(uv), vw), (_turned(uw), _turned(vw))):
            census[OPEN["".join(sorted("_oim"[way] for way in (first_edge, second_edge)))]] -= count
    # the name of a type has its numbers of mutual, one-way and missing edges
    triad_pairs = {name: (int(name[1]) * count, int(name[0]) * count) for name, count in census.items()}
    census["012"] = single_arcs * (vertices - 2) - sum(singles for singles, _ in triad_pairs.values())
    census["102"] = mutual * (vertices - 2) - sum(mutuals for _, mutuals in triad_pairs.values())
    census["003"] = vertices * (vertices - 1) * (vertices - 2) // 6 - sum(census.values())
    return {name: census[name] for name in TYPES}


def _turned(directions: int) -> int:
    """Return the directions of an edge as seen from its other end."""
    return directions >> 1 | (directions << 1 & BOTH)


def _closed(uv: int, uw: int, vw: int) -> str:
    """Return the type of a triangle."""
    directions = {(0, 1): uv, (0, 2): uw, (1, 2): vw}
    arcs = {pair for pair, direction in directions.items() if direction & ALONG} | {
        pair[::-1] for pair, direction in directions.items() if direction & AGAINST
    }
    mutual = sum(direction == BOTH for direction in directions.values())
    if mutual > 1:
        return "300" if mutual == 3 else "210"
    if mutual == 0:
        cycles = any({(a, b), (b, c), (c, a)} <= arcs for a, b, c in permutations(range(3)))
        return "030C" if cycles else "030T"
    (third,) = {0, 1, 2} - set(next(pair for pair, direction in directions.items() if direction == BOTH))
    outward = sum(source == third for source, _ in arcs)
    return ("120U", "120C", "120D")[outward]
