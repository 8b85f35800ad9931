"""Edge weights and directions, kept in arrays parallel to each block's columns, for graphs prepared in one process.

The rows of a source are read once, with their weights. Their ends go through the same stages as those of any graph.
Each row's key, in the ids of the blocks, is then sorted together with its direction and weight: the rows of one edge
become neighbours, are combined, and the result is stored at the edge's position in each block. A direction is a bit: of
an edge (u, v) of a block 1 says u → v, 2 says v → u, 3 both.

A weight is stored as the cube root of its ratio to the largest weight, because the geometric mean of a triangle's
weights is a product of such roots (Onnela et al., Physical Review E 71, 065103, 2005). The roots of both directions are
added: the sum over the eight directed triangles of three vertices is a product of such sums (Fagiolo, Physical Review E
76, 026107, 2007).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dasktc.errors import shown
from dasktc.executors.base import CPU, Executor, starmap
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import Notes, runs_of
from dasktc.io.source import Source
from dasktc.options import AttributeOptions
from dasktc.pipeline.build_blocks import Blocks
from dasktc.pipeline.prepare import Prepared
from dasktc.pipeline.stages import attributes
from dasktc.pipeline.stages.edge_keys import shift_of, unpack
from dasktc.pipeline.stages.orient import inverse
from dasktc.pipeline.stages.read import judged

__all__ = ["attach", "read_rows"]

Frame = Any


def read_rows(executor: Executor, source: Source) -> tuple[Source, list[Frame]]:
    """Read all rows of a source, with their weights.

    Returns
    -------
    source : Source
        The same source without weights; its parts are the rows in memory.
    frames : list of DataFrame
        "src", "dst", and "weight" where there are any.
    """
    upstream = upstream_of(executor, source.parts)
    calls = [
        (part, dependency, runs_of(len(upstream))) for part, dependency in zip(source.parts, upstream, strict=True)
    ]
    results: list[tuple[Frame, Notes | None]] = executor.gather(
        starmap(executor, "read-rows", attributes.read_part, calls)
    )
    reading = judged(source, source.parts, [notes for _, notes in results if notes is not None])
    frames = [frame for frame, _ in results]
    parts = tuple(attributes.ReadPart(frame[["src", "dst"]], source.ids) for frame in frames)
    return replace(source, parts=parts, weight=None, reading=reading), frames


def attach(
    executor: Executor, prepared: Prepared, blocks: Blocks, frames: list[Frame], options: AttributeOptions
) -> attributes.EdgeAttributes:
    """Combine the rows of each edge, and store its weight and direction beside the blocks.

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
        Rows give one edge different weights, and no option says how to combine them.
    CountError
        The rows and the blocks do not have the same edges.
    """
    vertices, order = executor.gather([prepared.vertices, prepared.graph.order.whole])
    shift, has_weights = shift_of(len(order)), options.weight is not None
    loops = attributes.largest_loop(frames, options) if has_weights else -np.inf
    place = inverse(order, CPU)
    rows = executor.gather(executor.map("attributes", attributes.coded, frames, vertices, place, shift, options))
    codes, weights = attributes.joined_rows(rows, has_weights)
    rows.clear()
    codes, weights, clash = attributes.distinct_codes(codes, weights, 1 << 2 * shift + 1, options.duplicates)
    if clash is not None:
        ends = vertices.external(np.sort(order[list(unpack(codes[clash[0]] >> 1, shift))])).tolist()
        if prepared.source.labels is not None:
            ends = prepared.source.labels.of(ends)
        raise attributes.differing_weights(" and ".join(map(shown, ends)), *clash[1:])
    largest = max(loops, float(weights.max(initial=-np.inf))) if has_weights else 1.0
    keys, directions, roots = attributes.by_edge(codes, weights, largest, options.directed)
    if len(keys) != prepared.graph.edges:
        raise attributes.lost_edges(len(keys), prepared.graph.edges)
    neighbours = attributes.directed_neighbours(keys, directions, shift, len(order)) if options.directed else None
    edge_attributes = attributes.EdgeAttributes(options.weight, options.directed, largest, {}, {}, neighbours)
    for name, handle in blocks.items():
        (block,) = executor.gather([handle])
        places, swap_mask = attributes.places_in(block, keys, shift)
        if roots is not None:
            edge_attributes.roots[name] = roots[places]
        if directions is not None:
            edge_attributes.directions[name] = attributes.turned(directions[places], swap_mask)
    return edge_attributes
