"""Edge attributes: combines weights and directions of rows to those of edges, in the order of each block's columns.

Each row's key, in the ids of the blocks, is sorted together with its direction and weight: the rows of one edge become
neighbours, are combined, and the result is stored at the edge's position in each block. A direction is a bit: of an
edge (u, v) of a block 1 says u → v, 2 says v → u, 3 both.

A weight is stored as the cube root of its ratio to the largest weight, because the geometric mean of a triangle's
weights is a product of such roots (Onnela et al., Physical Review E 71, 065103, 2005). The roots of both directions are
added: the sum over the eight directed triangles of three vertices is a product of such sums (Fagiolo, Physical Review E
76, 026107, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import lazy_backend
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.vertex_maps import VertexMap
from dasktc.errors import CountError, InputError, shown
from dasktc.io.evidence import Notes
from dasktc.options import AttributeOptions, Ids
from dasktc.pipeline.stages.edge_keys import pack, unpack
from dasktc.pipeline.stages.read import noted
from dasktc.wording import advice, option, plural

__all__ = [
    "AGAINST", "ALONG", "Clash", "EdgeAttributes", "Neighbours", "ReadPart", "by_edge", "coded", "differing_weights",
    "directed_neighbours", "distinct_codes", "joined_rows", "largest_loop", "lost_edges", "places_in", "read_part",
    "turned",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
Frame = Any
ALONG, AGAINST = 1, 2
"""Directions of a block's edge (u, v): u → v, and v → u."""
Clash = tuple[int, float, float]
"""The position of an edge's code, and two of its weights."""


class Neighbours(NamedTuple):
    """Each vertex's number of neighbours by the direction of the edge, int64, indexed by the blocks' ids.

    Attributes
    ----------
    out, into, both : array of int64, shape (V,)
        Neighbours by edges from the vertex only, to it only, and in both directions.
    """

    out: Array
    into: Array
    both: Array


@dataclass(frozen=True, eq=False)
class EdgeAttributes:
    """Weights and directions of the edges, in the order of each block's columns.

    Attributes
    ----------
    weight : str or None
        Name of the weight column.
    directed : bool
    largest : float
        The largest weight, those of loops included, as in NetworkX.
    roots : dict of block's place to array of float64
        Cube roots of weight / largest (of the weights themselves where the largest is 0), summed over both directions;
        empty where there are no weights.
    directions : dict of block's place to array of uint8
        Empty where the graph is undirected.
    neighbours : Neighbours or None
        None where the graph is undirected.
    """

    weight: str | None
    directed: bool
    largest: float
    roots: dict[Any, Array]
    directions: dict[Any, Array]
    neighbours: Neighbours | None


@dataclass(frozen=True, eq=False)
class ReadPart:
    """A part of a source whose rows are in memory, so that attributes need no second pass over the files."""

    frame: Frame
    ids: Ids
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Frame:
        """Return the rows."""
        return self.frame


def read_part(part: Any, upstream: Any, runs: int) -> tuple[Frame, Notes | None]:
    """Read a part on the host, with its weights and notes."""
    part, notes = noted(part, runs)
    return part.read(CPU, upstream), notes


def coded(frame: Frame, vertices: VertexMap, place: Array, shift: int, options: AttributeOptions) -> tuple[Array, Any]:
    """Each row's key << 1 | direction (1: from the smaller id to the larger), and its weight; loops are left out."""
    mask = np.asarray(frame["src"] != frame["dst"], dtype=bool)
    frame = frame if mask.all() else frame[mask]
    a, b = (place.take(vertices.dense(frame[end])) for end in ("src", "dst"))
    codes = pack(np.maximum(a, b), np.minimum(a, b), shift)
    codes <<= 1
    if options.directed:
        codes |= a < b
    return codes, frame["weight"].to_numpy() if options.weight is not None else None


def joined_rows(rows: list[tuple[Array, Any]], weighted: bool) -> tuple[Array, Any]:
    """Concatenate the codes and weights of all frames."""
    codes = np.concatenate([np.empty(0, np.int64), *(codes for codes, _ in rows)])
    return codes, np.concatenate([np.empty(0), *(weights for _, weights in rows)]) if weighted else None


def distinct_codes(codes: Array, weights: Any, bound: int, duplicates: str | None) -> tuple[Array, Any, Clash | None]:
    """Sort codes, keep each once, and combine weights of equal codes: the one weight, their sum, or the last row's."""
    codes, order = _ascending(codes, bound, weights is not None)
    is_first = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    if weights is None:
        return codes[first], None, None
    weights = weights[order]
    if duplicates == "sum":
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(weights, first) if len(first) else weights
        _check_sums(sums)
        return codes[first], sums, None
    if duplicates == "last":
        last = np.append(is_first[1:], np.ones(min(1, len(codes)), bool))
        return codes[first], weights[last], None
    clashes = np.flatnonzero(~is_first[1:] & (weights[1:] != weights[:-1]))
    if len(clashes):
        return codes, weights, (int(clashes[0]), float(weights[clashes[0]]), float(weights[clashes[0] + 1]))
    return codes[first], weights[first], None


def _check_sums(sums: Array) -> None:
    if not np.isfinite(sums).all():
        raise InputError(
            f"the sum of an edge's weights passes what float64 holds, 1.8e308: {option('duplicates', 'sum')} adds the "
            f"weights of all its rows; scale them down, or take {advice(duplicates='last')}"
        )


def _ascending(codes: Array, bound: int, positions: bool) -> tuple[Array, Any]:
    """Sort codes below `bound`; with `positions` return each one's old position too, equal codes in their old order."""
    bits = max(1, (len(codes) - 1).bit_length())
    if not positions:
        return CPU.sort(codes, bound), None
    if (bound - 1).bit_length() + bits > 63:
        order = codes.argsort(kind="stable")
        return codes[order], order
    words = codes << bits
    words |= np.arange(len(codes))
    words = CPU.sort(words, bound << bits)
    return words >> bits, words & ((1 << bits) - 1)


def by_edge(codes: Array, weights: Any, largest: float, directed: bool) -> tuple[Array, Any, Any]:
    """For each edge: its key, the bits of its directions, and the sum of the roots of its weights."""
    keys = codes >> 1
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    first, repeat = np.flatnonzero(is_first), np.flatnonzero(~is_first)
    number = np.searchsorted(first, repeat) - 1
    directions = roots = None
    if directed:
        bits = (ALONG << (codes & 1)).astype(np.uint8)
        directions = bits[first]
        directions[number] |= bits[repeat]
    if weights is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            code_roots = np.cbrt(weights / (largest or 1))
        roots = code_roots[first]
        roots[number] += code_roots[repeat]
    return keys[first], directions, roots


def directed_neighbours(keys: Array, directions: Array, shift: int, vertices: int) -> Neighbours:
    """Count each vertex's neighbours by the direction of the edge."""
    high, low = unpack(keys, shift)
    along_mask, against_mask, mutual_mask = (directions == value for value in (ALONG, AGAINST, ALONG | AGAINST))

    def counted(high_mask: Array, low_mask: Array) -> Array:
        return np.bincount(high[high_mask], minlength=vertices) + np.bincount(low[low_mask], minlength=vertices)

    return Neighbours(
        counted(along_mask, against_mask), counted(against_mask, along_mask), counted(mutual_mask, mutual_mask)
    )


def places_in(block: OrientedCSR, keys: Array, shift: int) -> tuple[Any, Array]:
    """Position of each edge of a block among all keys, and whether the edge goes from the smaller id to the larger."""
    u = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
    v = block.column_ids(block.columns)
    block_keys, swap_mask = pack(np.maximum(u, v), np.minimum(u, v), shift), u < v
    if len(block_keys) == len(keys) and np.array_equal(block_keys, keys):
        return slice(None), swap_mask
    places = keys.searchsorted(block_keys)
    if not np.array_equal(keys.take(places, mode="clip"), block_keys):
        raise lost_edges(len(keys), len(block_keys))
    return places, swap_mask


def turned(directions: Array, swapped: Array) -> Array:
    """Express directions relative to each block edge's own (u, v), in a new array."""
    reverse = (directions >> 1) | (directions << 1 & AGAINST)
    return np.where(swapped, reverse, directions)


def largest_loop(frames: list[Frame], options: AttributeOptions) -> float:
    """The largest weight of the loops, -inf where there are none."""
    import pandas as pd

    loop_frames = [frame[["src", "weight"]][np.asarray(frame["src"] == frame["dst"], dtype=bool)] for frame in frames]
    loops = pd.concat(loop_frames, ignore_index=True) if loop_frames else pd.DataFrame({"src": [], "weight": []})
    if not len(loops):
        return -np.inf
    groups = loops.groupby("src")["weight"]
    if options.duplicates is None:
        minima, maxima = groups.min(), groups.max()
        vertex: Any
        if (minima != maxima).any():
            vertex = (minima != maxima).idxmax()
            name = vertex.item() if isinstance(vertex, np.generic) else vertex
            raise differing_weights(f"{shown(name)} and itself", minima[vertex], maxima[vertex])
    with np.errstate(over="ignore", invalid="ignore"):
        vertex_weights = groups.sum() if options.duplicates == "sum" else groups.last()
    _check_sums(vertex_weights.to_numpy())
    return float(vertex_weights.max())


def differing_weights(edge: str, one: float, other: float) -> InputError:
    """The error for an edge whose rows have different weights."""
    return InputError(
        f"rows give the edge between {edge} the weights {one:g} and {other:g}: which is meant is unclear; pass "
        f"{advice(duplicates='sum')} or {advice(duplicates='last')}"
    )


def lost_edges(rows: int, edges: int) -> CountError:
    """The error where rows and blocks have different numbers of edges."""
    return CountError(
        f"the rows hold {plural(rows, 'edge')}, the blocks {edges:,}: some were lost; run again, and report this with "
        "the output of `dasktc info`"
    )
