"""Edge attributes: combines weights and directions of rows to those of edges, in the order of each block's columns.

The rows that a block may hold (`stages.columns.candidates`) are sorted by edge and direction: those of one arc become
neighbours and are combined. A direction is a bit: of an edge (u, v) of a block 1 says u → v, 2 says v → u, 3 both.

A weight is kept as the cube root of its ratio to the largest weight, because the geometric mean of a triangle's
weights is a product of such roots (Onnela et al., Physical Review E 71, 065103, 2005). The roots of both directions are
added: the sum over the eight directed triangles of three vertices is a product of such sums (Fagiolo, Physical Review E
76, 026107, 2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import lazy_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.errors import InputError, shown
from dasktc.io.evidence import Notes
from dasktc.options import AttributeOptions, Ids
from dasktc.pipeline.stages.columns import ascending, chunks_of, firsts, joined, keys_between, places_among
from dasktc.pipeline.stages.edge_keys import unpack
from dasktc.pipeline.stages.read import noted
from dasktc.planning.schemes import Block
from dasktc.wording import advice, option

__all__ = [
    "AGAINST", "ALONG", "ArcFacts", "Clash", "EdgeAttributes", "Numbering", "ReadPart", "Share", "add_neighbours",
    "arcs_of_block", "differing_weights", "directions_of", "distinct_codes", "largest_loop", "loops_of",
    "neighbours_of_block", "no_neighbours", "read_arcs", "read_part", "roots_of",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
Frame = Any
ALONG, AGAINST = 1, 2
"""Directions of a block's edge (u, v): u → v, and v → u."""
Clash = tuple[int, float, float]
"""The position of an arc's code, and two of its weights."""
Numbering = Any
"""First id and stride of the vertices of a block's rows or columns, or their ids."""
Share = tuple[Array, Numbering]
"""Counts of some vertices of a shard, and the first position and stride of these there, or their positions."""


class ArcFacts(NamedTuple):
    """Facts of the arcs in a range of a block."""

    rows: int
    """Number of rows of these arcs."""
    largest: float
    """The largest weight; -inf where there is none."""
    clash: tuple[int, int, float, float] | None = None
    """Source and target of an edge whose rows have different weights, and two of these."""


@dataclass(frozen=True, eq=False)
class EdgeAttributes:
    """Weights and directions of the edges, in the order of each block's columns."""

    weight: str | None
    """Name of the weight column."""
    directed: bool
    largest: float
    """The largest weight, those of loops included, as in NetworkX."""
    roots: dict[Block, Any]
    """Dict of (i, j) to handle of array of float64. Cube roots of weight / largest (of the weights themselves where the
    largest is 0), summed over both directions; empty where there are no weights."""
    directions: dict[Block, Any]
    """Dict of (i, j) to handle of array of uint8. Empty where the graph is undirected."""
    neighbours: Any
    """Sharded of arrays of int64, shape (3, any), or None. Each vertex's number of neighbours by edges from it only, to
    it only, and in both directions, by the ids of the blocks; None where the graph is undirected."""


# rows


@dataclass(frozen=True, eq=False)
class ReadPart:
    """A part of a source whose rows are in memory, so that a second pass over them takes no time."""

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


def read_arcs(part: Any, upstream: Any, most: int | None, weighted: bool) -> Iterator[Any]:
    """Read a part; yield each frame without loops, and the ids and weights of its loops, None without weights."""
    for frame in chunks_of(part, upstream, most):
        mask = np.asarray(frame["src"] != frame["dst"], dtype=bool)
        yield frame if mask.all() else frame[mask]
        yield loops_of(frame) if weighted else None


def loops_of(frame: Frame) -> Frame:
    """Return the ids and weights of a frame's loops."""
    return frame[["src", "weight"]][np.asarray(frame["src"] == frame["dst"], dtype=bool)]


# arcs


def distinct_codes(
    codes: Array, weights: Any, bound: int, duplicates: str | None
) -> tuple[Array, Any, Array, Clash | None]:
    """Keep each code of some rows once, ascending, and combine weights of equal codes.

    Parameters
    ----------
    codes : array of int64
        Below `bound`. Overwritten.
    weights : array of float64 or None
    bound : int
    duplicates : {"sum", "last"} or None
        What to do with the weights of several rows: add them up, or take the last row's; None: they are equal.

    Returns
    -------
    codes : array of int64
        With `clash`, of all rows, and so are the weights.
    weights : array of float64 or None
    positions : array of int64
        Position of each code's first row, in ascending order of the codes.
    clash : Clash or None
        Two different weights that are neither added up nor replaced.
    """
    codes, positions = ascending(codes, bound, weights is not None)
    first = firsts(codes)
    if weights is None:
        return codes[first], None, first, None
    weights = weights[positions]
    if duplicates == "sum":
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(weights, first) if len(first) else weights
        _check_sums(sums)
        return codes[first], sums, first, None
    if duplicates == "last":
        return codes[first], weights[np.append(first, len(codes))[1:] - 1], first, None
    clashes = np.flatnonzero((codes[1:] == codes[:-1]) & (weights[1:] != weights[:-1]))
    if len(clashes):
        return codes, weights, first, (int(clashes[0]), float(weights[clashes[0]]), float(weights[clashes[0] + 1]))
    return codes[first], weights[first], first, None


def _check_sums(sums: Array) -> None:
    if not np.isfinite(sums).all():
        raise InputError(
            f"the sum of an edge's weights passes what float64 holds, 1.8e308: {option('duplicates', 'sum')} adds the "
            f"weights of all its rows; scale them down, or take {advice(duplicates='last')}"
        )


def arcs_of_block(
    block: OrientedCSR,
    shares: list[tuple[Array, ...]],
    shift: int,
    sources: tuple[int, int],
    options: AttributeOptions,
) -> tuple[Array, ArcFacts]:
    """Return what rows say of each of a block's edges from a range of sources, in the order of its columns.

    Parameters
    ----------
    block : OrientedCSR
    shares : list of (array of int64,) or (array of int64, array of float64)
        Candidates from each frame of the source, in the order of its rows; with weights, if these are kept.
    shift : int
    sources : (int, int)
        The range.
    options : AttributeOptions

    Returns
    -------
    arcs : array
        Without weights directions, uint8; else the sum of the cube roots of each edge's weights, float64, and of a
        directed graph its directions in a second row.
    facts : ArcFacts
        With a clash the arcs are meaningless.

    Raises
    ------
    InputError
        A sum of weights exceeds float64.
    CountError
        An edge of the block has no row.
    """
    codes, *values = joined(shares)
    weights = values[0] if options.weight is not None else None
    codes = codes & (-1 if options.directed else -2)
    count = len(codes)
    codes, weights, positions, clash = distinct_codes(codes, weights, 1 << 2 * shift + 1, options.duplicates)
    if clash is not None:
        source, target = unpack(codes[clash[0]] >> 1, shift)
        return np.empty((2, 0) if options.directed else 0), ArcFacts(0, 0.0, (int(source), int(target), *clash[1:]))
    keys = codes >> 1
    first = firsts(keys)
    places = places_among(keys_between(block, shift, sources), keys[first], "weights and directions", block)
    row_count = np.diff(np.append(positions[first], count))[places].sum()
    facts = ArcFacts(int(row_count), -np.inf if weights is None else float(weights.max(initial=-np.inf)))
    is_mutual = np.diff(np.append(first, len(keys)))[places] == 2
    first = first[places]
    arcs = list[Array]()
    if weights is not None:
        code_roots = np.cbrt(weights)
        roots = code_roots[first]
        roots[is_mutual] += code_roots[first[is_mutual] + 1]
        arcs.append(roots)
    if options.directed:
        arcs.append(np.where(is_mutual, ALONG | AGAINST, ALONG << (codes[first] & 1)).astype(np.uint8))
    return arcs[0] if len(arcs) == 1 else np.stack(arcs), facts


def directions_of(arcs: Array) -> Array:
    """Return the directions of edges from their arcs, uint8."""
    return arcs if arcs.ndim == 1 else arcs[1].astype(np.uint8)


def roots_of(arcs: Array, largest: float) -> Array:
    """Return the sum of the cube roots of each edge's weights / largest; of the weights where that is 0."""
    return (arcs if arcs.ndim == 1 else arcs[0]) / (np.cbrt(largest) or 1)


# neighbours


def neighbours_of_block(
    block: OrientedCSR,
    directions: Array,
    width: int,
    rows: Numbering,
    columns: Numbering,
    starts: tuple[int, ...],
) -> list[list[Share]]:
    """Count each vertex's neighbours in a block by the direction of the edge, on the host.

    Parameters
    ----------
    block : OrientedCSR
    directions : array of uint8
    width : int
        Number of vertices of its columns.
    rows, columns : Numbering
        Of the vertices of its rows and of its columns.
    starts : tuple of int
        The first vertex of each shard of all vertices, and their number.

    Returns
    -------
    list of two Share
        For each shard, those of the rows and of the columns: neighbours by edges from the vertex only, to it only, and
        in both directions, int64 of shape (3, any).
    """
    directions, block_columns = on_host(directions), on_host(block.columns)
    ends = np.arange(block.rows).repeat(np.diff(on_host(block.offsets))), block_columns
    sides = []
    for side_ends, numbering, size, ways in zip(
        ends, (rows, columns), (block.rows, width), ([ALONG, AGAINST, 3], [AGAINST, ALONG, 3]), strict=True
    ):
        counts = np.bincount(directions.astype(np.int64) * size + side_ends, minlength=4 * size).reshape(4, size)
        sides.append(_shares_of(counts[ways], numbering, starts))
    return [list(shares) for shares in zip(*sides, strict=True)]


def _shares_of(counts: Array, numbering: Numbering, starts: tuple[int, ...]) -> list[Share]:
    """Cut the counts of a side's vertices at the first vertices of the shards."""
    shares = list[Share]()
    for first, end in pairwise(starts):
        if isinstance(numbering, tuple):
            id, stride = numbering
            start, stop = (max(0, -((id - bound) // stride)) for bound in (first, end))
            places: Numbering = id + start * stride - first, stride
        else:
            ids = on_host(numbering)
            start, stop = (int(ids.searchsorted(bound)) for bound in (first, end))
            places = ids[start:stop] - first
        shares.append((counts[:, start:stop], places))
    return shares


def no_neighbours(vertices: int) -> Array:
    """Return a zero for each vertex and direction."""
    return np.zeros((3, vertices), np.int64)


def add_neighbours(total: Array, shares: list[Share]) -> Array:
    """Add the neighbours of a shard's vertices in a block to those in others."""
    for counts, places in shares:
        if isinstance(places, tuple):
            first, stride = places
            total[:, first::stride][:, : counts.shape[1]] += counts
        else:
            total[:, places] += counts
    return total


# loops


def largest_loop(frames: list[Frame], options: AttributeOptions) -> float:
    """The largest weight of loops, of which `frames` has ids and weights; -inf where there are none."""
    import pandas as pd

    loops = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"src": [], "weight": []})
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
