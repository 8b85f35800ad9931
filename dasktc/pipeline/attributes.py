"""Weights and directions of edges, beside the blocks of a graph that one process prepares.

The rows of a source are read once, with their weights. Their ends go through the stages of every graph; then each row's
key, by the ids that blocks are built with, is sorted together with its direction and its weight, so that the rows of an
edge come together, and what they say of it is put where the edge stands in each block. A direction is a bit: of an edge
(u, v) of a block 1 says u → v, 2 says v → u, 3 both.

A weight is kept as the cube root of its share of the largest one, which is what the geometric mean of a triangle's
weights is made of (Onnela et al., Physical Review E 71, 065103, 2005). Both directions' roots are added: the sum over
the eight directed triangles of three vertices is a product of such sums (Fagiolo, Physical Review E 76, 026107, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.csr import OrientedCSR
from dasktc.errors import CountError, InputError, shown
from dasktc.executors.base import CPU, Executor
from dasktc.io.source import Source
from dasktc.options import AttributeOptions, Ids
from dasktc.pipeline.build_blocks import Blocks
from dasktc.pipeline.edge_keys import pack, shift_of, unpack
from dasktc.pipeline.id_maps import VertexMap
from dasktc.pipeline.orient import inverse
from dasktc.pipeline.prepare import Prepared

__all__ = ["AGAINST", "ALONG", "EdgeAttributes", "attach", "read_rows"]

Array = Any
Frame = Any
ALONG, AGAINST = 1, 2
"""Directions of a block's edge (u, v): u → v, and v → u."""


class Neighbours(NamedTuple):
    """Each vertex's number of neighbours by direction of the edge, int64, over the blocks' ids.

    Attributes
    ----------
    out, into, both : array of int64, shape (V,)
        Only from the vertex, only to it, and both.
    """

    out: Array
    into: Array
    both: Array


@dataclass(frozen=True, eq=False)
class EdgeAttributes:
    """What is known of edges beside their ends, in the order of each block's columns.

    Attributes
    ----------
    weight : str or None
        The name of the weights.
    directed : bool
    largest : float
        The largest weight, loops' included, as in NetworkX.
    roots : dict of block's place to array of float64
        Sums of cube roots of weights by the largest (of themselves where that is 0); empty where there are no weights.
    directions : dict of block's place to array of uint8
        Empty where the graph is not directed.
    neighbours : Neighbours or None
        Of a directed graph.
    """

    weight: str | None
    directed: bool
    largest: float
    roots: dict[Any, Array]
    directions: dict[Any, Array]
    neighbours: Neighbours | None


@dataclass(frozen=True, eq=False)
class _ReadPart:
    """A part of a source whose rows have been read already, so that attributes need no second pass over files."""

    frame: Frame
    ids: Ids
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Frame:
        return self.frame


def read_rows(executor: Executor, source: Source) -> tuple[Source, list[Frame]]:
    """Read all rows of a source, with their weights.

    Returns
    -------
    source : Source
        The same without weights, of the rows in memory.
    frames : list of DataFrame
        "src", "dst", and "weight" where there are any.
    """
    upstream = executor.upstream([part.upstream for part in source.parts])
    frames: list[Frame] = executor.gather(
        executor.submit_all("read-rows", _read, list(zip(source.parts, upstream, strict=True)))
    )
    parts = tuple(_ReadPart(frame[["src", "dst"]], source.ids) for frame in frames)
    return replace(source, parts=parts, weight=None), frames


def _read(part: Any, upstream: Any) -> Frame:
    return part.read(CPU, upstream)


def attach(
    executor: Executor, prepared: Prepared, blocks: Blocks, frames: list[Frame], options: AttributeOptions
) -> EdgeAttributes:
    """Put what the rows say of each edge beside the blocks.

    Parameters
    ----------
    executor : Executor
        Of this process.
    prepared : Prepared
    blocks : dict of (i, j) to handle of OrientedCSR
    frames : list of DataFrame
        As `read_rows` returns them; the list is emptied.
    options : AttributeOptions

    Raises
    ------
    InputError
        Rows repeat an edge with other weights, and no option says what that means.
    CountError
        The rows and the blocks have different edges.
    """
    vertices, order = executor.gather([prepared.vertices, prepared.graph.order.whole])
    shift, weighted = shift_of(len(order)), options.weight is not None
    loops = _loops(frames, options) if weighted else -np.inf
    place = inverse(order, CPU)
    rows = executor.gather(executor.map("attributes", _coded, frames, vertices, place, shift, options))
    codes, weights = _joined(rows, weighted)
    rows.clear()
    codes, weights, clash = _distinct(codes, weights, 1 << 2 * shift + 1, options.duplicates)
    if clash is not None:
        ends = vertices.external(np.sort(order[list(unpack(codes[clash[0]] >> 1, shift))])).tolist()
        raise _differing(" and ".join(map(shown, ends)), *clash[1:])
    largest = max(loops, float(weights.max(initial=-np.inf))) if weighted else 1.0
    keys, directions, roots = _by_edge(codes, weights, largest, options.directed)
    if len(keys) != prepared.graph.edges:
        raise _lost(len(keys), prepared.graph.edges)
    neighbours = _neighbours(keys, directions, shift, len(order)) if options.directed else None
    made = EdgeAttributes(options.weight, options.directed, largest, {}, {}, neighbours)
    for name, handle in blocks.items():
        (block,) = executor.gather([handle])
        places, swapped = _places(block, keys, shift)
        if roots is not None:
            made.roots[name] = roots[places]
        if directions is not None:
            made.directions[name] = _turned(directions[places], swapped)
    return made


def _coded(frame: Frame, vertices: VertexMap, place: Array, shift: int, options: AttributeOptions) -> tuple[Array, Any]:
    """Each row's key and, in the lowest bit, whether it goes from the smaller id to the larger; and its weight."""
    proper = np.asarray(frame["src"] != frame["dst"], dtype=bool)
    frame = frame if proper.all() else frame[proper]
    a, b = (place.take(vertices.dense(frame[end])) for end in ("src", "dst"))
    codes = pack(np.maximum(a, b), np.minimum(a, b), shift)
    codes <<= 1
    if options.directed:
        codes |= a < b
    return codes, frame["weight"].to_numpy() if options.weight is not None else None


def _joined(rows: list[tuple[Array, Any]], weighted: bool) -> tuple[Array, Any]:
    codes = np.concatenate([np.empty(0, np.int64), *(codes for codes, _ in rows)])
    return codes, np.concatenate([np.empty(0), *(weights for _, weights in rows)]) if weighted else None


Clash = tuple[int, float, float]
"""The position of an edge's code, and two of its weights."""


def _distinct(codes: Array, weights: Any, bound: int, duplicates: str | None) -> tuple[Array, Any, Clash | None]:
    """Ascending codes, each once, and their weights: of equal codes the one weight, their sum, or the last row's."""
    codes, order = _ascending(codes, bound, weights is not None)
    new = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    first = np.flatnonzero(new)
    if weights is None:
        return codes[first], None, None
    weights = weights[order]
    if duplicates == "sum":
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(weights, first) if len(first) else weights
        _check_sums(sums)
        return codes[first], sums, None
    if duplicates == "last":
        last = np.append(new[1:], np.ones(min(1, len(codes)), bool))
        return codes[first], weights[last], None
    wrong = np.flatnonzero(~new[1:] & (weights[1:] != weights[:-1]))
    if len(wrong):
        return codes, weights, (int(wrong[0]), float(weights[wrong[0]]), float(weights[wrong[0] + 1]))
    return codes[first], weights[first], None


def _check_sums(sums: Array) -> None:
    if not np.isfinite(sums).all():
        raise InputError(
            "the sum of an edge's weights passes what float64 holds, 1.8e308: duplicates='sum' adds the weights of "
            "all its rows; scale them down, or take duplicates='last'"
        )


def _ascending(codes: Array, bound: int, positions: bool) -> tuple[Array, Any]:
    """Sort codes below a bound; with `positions` say where each stood, equal ones in the order in which they stood."""
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


def _by_edge(codes: Array, weights: Any, largest: float, directed: bool) -> tuple[Array, Any, Any]:
    """Each edge's key, its directions, and the sum of its weights' roots."""
    keys = codes >> 1
    new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    first, again = np.flatnonzero(new), np.flatnonzero(~new)
    number = np.searchsorted(first, again) - 1
    directions = roots = None
    if directed:
        bits = (ALONG << (codes & 1)).astype(np.uint8)
        directions = bits[first]
        directions[number] |= bits[again]
    if weights is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            of_codes = np.cbrt(weights / (largest or 1))
        roots = of_codes[first]
        roots[number] += of_codes[again]
    return keys[first], directions, roots


def _neighbours(keys: Array, directions: Array, shift: int, vertices: int) -> Neighbours:
    high, low = unpack(keys, shift)
    along, against, both = (directions == value for value in (ALONG, AGAINST, ALONG | AGAINST))

    def counted(one: Array, other: Array) -> Array:
        return np.bincount(high[one], minlength=vertices) + np.bincount(low[other], minlength=vertices)

    return Neighbours(counted(along, against), counted(against, along), counted(both, both))


def _places(block: OrientedCSR, keys: Array, shift: int) -> tuple[Any, Array]:
    """Where each edge of a block stands among all keys, and whether it goes from the smaller id to the larger."""
    u = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
    v = block.column_ids(block.columns)
    own, swapped = pack(np.maximum(u, v), np.minimum(u, v), shift), u < v
    if len(own) == len(keys) and np.array_equal(own, keys):
        return slice(None), swapped
    places = keys.searchsorted(own)
    if not np.array_equal(keys.take(places, mode="clip"), own):
        raise _lost(len(keys), len(own))
    return places, swapped


def _turned(directions: Array, swapped: Array) -> Array:
    """Directions as the block has its edges; a new array."""
    turned = (directions >> 1) | (directions << 1 & AGAINST)
    return np.where(swapped, turned, directions)


def _loops(frames: list[Frame], options: AttributeOptions) -> float:
    """The largest weight of loops."""
    import pandas as pd

    of_loops = [frame[["src", "weight"]][np.asarray(frame["src"] == frame["dst"], dtype=bool)] for frame in frames]
    loops = pd.concat(of_loops, ignore_index=True) if of_loops else pd.DataFrame({"src": [], "weight": []})
    if not len(loops):
        return -np.inf
    by_vertex = loops.groupby("src")["weight"]
    if options.duplicates is None:
        least, most = by_vertex.min(), by_vertex.max()
        vertex: Any
        if (least != most).any():
            vertex = (least != most).idxmax()
            name = vertex.item() if isinstance(vertex, np.generic) else vertex
            raise _differing(f"{shown(name)} and itself", least[vertex], most[vertex])
    with np.errstate(over="ignore", invalid="ignore"):
        of_vertices = by_vertex.sum() if options.duplicates == "sum" else by_vertex.last()
    _check_sums(of_vertices.to_numpy())
    return float(of_vertices.max())


def _differing(edge: str, one: float, other: float) -> InputError:
    return InputError(
        f"rows give the edge between {edge} the weights {one:g} and {other:g}: which is meant is unclear; pass "
        "duplicates='sum' or duplicates='last'"
    )


def _lost(rows: int, edges: int) -> CountError:
    return CountError(
        f"the rows hold {rows:,} edges, the blocks {edges:,}: some were lost; run again, and report this with the "
        "output of `dasktc info`"
    )
