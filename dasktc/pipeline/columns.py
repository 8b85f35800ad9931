"""Columns of edges: read in a pass of their own over the source, and placed beside the blocks where these are.

Each column is read with the ids in one more pass, by the same parts. A part deals its rows to the blocks that may hold
their edges, as shares that travel from worker to worker, and each block takes the values of its own edges from them
(`pipeline.stages.columns`). No vector of all edges is in one place unless one block has them all.
"""

from __future__ import annotations

from dasktc.errors import InputError, shown
from dasktc.executors.base import CPU, Executor, starmap
from dasktc.executors.upstream import upstream_of
from dasktc.io.source import Source
from dasktc.pipeline.build_blocks import Blocks, GridPartition
from dasktc.pipeline.prepare import Prepared
from dasktc.pipeline.stages.columns import (
    Column,
    Repeats,
    candidates,
    categories_of,
    distinct_texts,
    read_values,
    typed,
    values_of_block,
)
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.pipeline.stages.orient import inverse
from dasktc.wording import advice, option

__all__ = ["edge_column"]


def edge_column(
    executor: Executor, prepared: Prepared, blocks: Blocks, source: Source, name: str, repeats: Repeats | None
) -> Column:
    """Read a column of edges and place it beside the blocks.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
    blocks : dict of (i, j) to handle of OrientedCSR
    source : Source
        The graph's source, opened with this column.
    name : str
    repeats : {"first", "min", "max", "sum"} or None
        What to do with the values of an edge that several rows give; None: they are equal, else refused.

    Raises
    ------
    InputError
        A row has no value; values are of several types; rows give an edge different values; text is to be summed; or
        vertices are in shards.
    CountError
        The source has changed since it was prepared.
    """
    if prepared.plan.shards > 1:
        raise InputError(
            f"{prepared.plan.numbering}: columns of edges need vectors of all vertices; prepare with a larger "
            f"{advice('memory')}"
        )
    upstream, is_untyped = upstream_of(executor, source.parts), source.untyped
    calls = [(part, dependency, is_untyped) for part, dependency in zip(source.parts, upstream, strict=True)]
    frames, facts = executor.transpose("read-columns", starmap(executor, "read-columns", read_values, calls), 2)
    dtype = typed(executor.gather(facts), is_untyped, f"column {shown(name)}")
    categories = None
    if dtype == "int32":
        if repeats == "sum":
            raise InputError(
                f"{option('edge_columns')}={{{name!r}: 'sum'}} is given for text: take 'first', 'min' or 'max'"
            )
        texts = executor.gather(executor.map("columns", distinct_texts, list(frames)))
        categories = categories_of(text for part_texts in texts for text in part_texts)
    order, vertices, partition = prepared.graph.order.whole, prepared.vertices, prepared.partition
    place, shift = executor.submit("columns", inverse, order, CPU), shift_of(prepared.plan.vertices)
    layout, places = partition.layout if isinstance(partition, GridPartition) else None, sorted(blocks)
    slices = executor.map("columns", candidates, frames, vertices, place, shift, layout, len(places), dtype, categories)
    shares = executor.transpose("columns", slices, len(places))
    values = {
        block: executor.submit(
            "columns", values_of_block, blocks[block], share, shift, dtype, repeats, name, vertices, order
        )
        for block, share in zip(places, shares, strict=True)
    }
    executor.wait(values.values())
    return Column(dtype, categories, values)
