"""Edge weights and directions, kept beside the blocks of a graph, wherever these are.

The rows of a source are read once more, with their weights (`pipeline.columns`). Each block combines the rows of its
own edges to arcs (`pipeline.stages.attributes`). The largest weight of all then makes roots of the weights, and the
directions give each vertex's numbers of neighbours.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dasktc.executors.base import Executor, Fold, starmap
from dasktc.executors.upstream import upstream_of
from dasktc.io.evidence import Notes, runs_of
from dasktc.io.source import Source
from dasktc.options import AttributeOptions, format_size, refuse_beyond
from dasktc.pipeline.build_blocks import Blocks, GridPartition
from dasktc.pipeline.columns import names_of, over_blocks, read_rows, refuse_lost_rows
from dasktc.pipeline.planes import Sharded, answers_of
from dasktc.pipeline.prepare import Prepared
from dasktc.pipeline.stages import attributes
from dasktc.pipeline.stages.orient import total
from dasktc.pipeline.stages.read import judged
from dasktc.wording import advice, plural

__all__ = ["edge_attributes", "in_memory"]

Frame = Any
STAGE = "attributes"
LOOP_BYTES = 100
"""Bytes for each row of a loop while the largest weight of loops is found."""


def in_memory(executor: Executor, source: Source) -> Source:
    """Read all rows of a source whose graph is in this process's memory, so that no file is read twice."""
    if not answers_of(executor).in_one_memory:
        return source
    upstream = upstream_of(executor, source.parts)
    calls = [
        (part, dependency, runs_of(len(upstream))) for part, dependency in zip(source.parts, upstream, strict=True)
    ]
    results: list[tuple[Frame, Notes | None]] = executor.gather(
        starmap(executor, "read-rows", attributes.read_part, calls)
    )
    reading = judged(source, source.parts, [notes for _, notes in results if notes is not None])
    parts = tuple(attributes.ReadPart(frame, source.ids) for frame, _ in results)
    return replace(source, parts=parts, reading=reading)


def edge_attributes(
    executor: Executor, prepared: Prepared, blocks: Blocks, source: Source, options: AttributeOptions
) -> attributes.EdgeAttributes:
    """Combine the rows of each edge, and keep its weight and direction beside the blocks.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
    blocks : dict of (i, j) to handle of OrientedCSR
    source : Source
        The graph's source, opened with the weights.
    options : AttributeOptions

    Raises
    ------
    InputError
        Rows give one edge different weights, and no option says how to combine them; or the loops do not fit the
        memory.
    CountError
        The source has changed since it was prepared.
    """
    is_weighted = options.weight is not None
    frames, loop_frames = read_rows(executor, prepared, source, attributes.read_arcs, is_weighted)
    loops = _largest_loop(executor, prepared, loop_frames, options) if is_weighted else -np.inf
    values = np.asarray if is_weighted else None
    arcs, facts = over_blocks(executor, prepared, blocks, frames, values, attributes.arcs_of_block, options)
    clashes = [fact.clash for fact in facts if fact.clash is not None]
    if clashes:
        *ends, one, other = min(clashes, key=lambda clash: (max(clash[:2]), min(clash[:2])))
        raise attributes.differing_weights(names_of(executor, prepared, ends), one, other)
    refuse_lost_rows(prepared, sum(fact.rows for fact in facts))
    largest = max([loops, *(fact.largest for fact in facts)]) if is_weighted else 1.0
    if np.isneginf(largest):  # nothing has a weight
        largest = 0.0
    places = list(arcs)
    roots, directions, neighbours = list[Any](), list[Any](), None
    if is_weighted:
        roots = executor.map(STAGE, attributes.roots_of, [arcs[place] for place in places], largest)
    if options.directed:
        directions = executor.map(STAGE, attributes.directions_of, [arcs[place] for place in places])
        neighbours = _neighbours(executor, prepared, blocks, dict(zip(places, directions, strict=True)))
    arcs.clear()
    executor.wait([*roots, *directions, *([] if neighbours is None else neighbours.parts)])
    return attributes.EdgeAttributes(
        options.weight,
        options.directed,
        largest,
        dict(zip(places, roots, strict=False)),
        dict(zip(places, directions, strict=False)),
        neighbours,
    )


def _largest_loop(executor: Executor, prepared: Prepared, frames: list[Any], options: AttributeOptions) -> float:
    nbytes, loops = LOOP_BYTES * prepared.loops, plural(prepared.loops, "loop takes", "loops take")
    fact = f"{loops} {format_size(nbytes)} while the largest weight is found"
    remedy = f"one call reads them all; drop them, or raise {advice('memory')}"
    refuse_beyond(answers_of(executor).call_bytes, nbytes, fact, remedy, "of one call")
    (largest,) = executor.gather([executor.submit(STAGE, attributes.largest_loop, frames, options)])
    return float(largest)


def _neighbours(executor: Executor, prepared: Prepared, blocks: Blocks, directions: dict[Any, Any]) -> Sharded:
    """Count each vertex's neighbours by direction, in the blocks that have every edge once."""
    partition, plan, sizes, starts = prepared.partition, prepared.plan, prepared.sizes, prepared.graph.order.starts
    width = partition.layout.families[0].parts if isinstance(partition, GridPartition) else 1  # (p, 0) has local rows
    shares = []
    for place in sorted(blocks):
        if place[1] < width:
            numberings = [partition.numbering(side) for side in plan.scheme.sides(plan.parts, place)]
            counted = blocks[place], directions[place], int(sizes.columns[place])
            shares.append(executor.submit(STAGE, attributes.neighbours_of_block, *counted, *numberings, starts))
    parts = []
    for shard_shares, (first, end) in zip(
        executor.transpose(STAGE, shares, len(starts) - 1), pairwise(starts), strict=True
    ):
        fold = Fold(partial(attributes.no_neighbours, end - first), attributes.add_neighbours, total)
        parts.append(executor.fold(STAGE, fold, shard_shares))
    return Sharded(starts, parts)
