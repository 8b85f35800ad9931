"""What rows say of edges: read in a pass of its own over the source, and placed beside the blocks where these are.

Columns of surveys, weights and directions are read with the ids in one more pass, by the same parts. A part deals its
rows to the blocks that may hold their edges, as shares that travel from worker to worker, and each block takes what
concerns its own edges (`pipeline.stages.columns`). No vector of all edges is in one place unless one block has them.
Within `--memory` parts are read in chunks, and the rows of a block come in ranges of their edges' sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.errors import InputError, shown
from dasktc.executors.base import CPU, Executor
from dasktc.executors.measured import Measured
from dasktc.executors.upstream import upstream_of
from dasktc.io.source import Source
from dasktc.pipeline.build_blocks import Blocks, GridPartition
from dasktc.pipeline.planes import answers_of
from dasktc.pipeline.planes import choose as choose_plane
from dasktc.pipeline.planes.vectors import map_on_host
from dasktc.pipeline.prepare import Prepared
from dasktc.pipeline.stages.columns import (
    Column,
    Deal,
    Repeats,
    candidates,
    categories_of,
    distinct_texts,
    encoded,
    lost_rows,
    read_values,
    typed,
    values_of_block,
)
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.pipeline.stages.orient import inverse
from dasktc.planning.grid import Axis
from dasktc.wording import advice, option, plural

__all__ = ["edge_column", "ids_on_host", "over_blocks", "read_rows", "refuse_lost_rows", "refuse_shards"]

STAGE = "columns"


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
    frames, facts = read_rows(executor, prepared, source, read_values, source.untyped)
    dtype = typed(executor.gather(facts), source.untyped, f"column {shown(name)}")
    categories = None
    if dtype == "int32":
        if repeats == "sum":
            raise InputError(
                f"{option('edge_columns')}={{{name!r}: 'sum'}} is given for text: take 'first', 'min' or 'max'"
            )
        texts = executor.gather(executor.map(STAGE, distinct_texts, list(frames)))
        categories = categories_of(text for part_texts in texts for text in part_texts)
    values = partial(encoded, dtype=dtype, categories=categories)
    function = partial(_values_and_rows, dtype=dtype, repeats=repeats, name=name)
    handles, rows = over_blocks(executor, prepared, blocks, frames, values, function, *ids_on_host(executor, prepared))
    refuse_lost_rows(prepared, sum(rows))
    return Column(dtype, categories, handles)


def read_rows(
    executor: Executor, prepared: Prepared, source: Source, function: Callable[..., Any], *args: Any
) -> tuple[list[Any], list[Any]]:
    """Read a source once more, on the host.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
    source : Source
        The graph's source.
    function : callable (part, upstream, most, *args) -> iterator
        Yields frames of at most `most` rows without loops, each followed by what is said of it; None: of any number.

    Returns
    -------
    frames, facts : list of handles

    Raises
    ------
    InputError
        Vertices are in shards.
    """
    refuse_shards(prepared)
    memory, tuning = answers_of(executor).frame_bytes, choose_plane(executor, prepared.options).tuning
    most = None if memory is None else max(1, memory // (tuning.row_bytes[source.ids] + tuning.dealt_bytes))
    upstream = upstream_of(executor, source.parts)
    calls = [(part, value, most, *args) for part, value in zip(source.parts, upstream, strict=True)]
    results = executor.stream("read-columns", function, calls)
    return results[::2], results[1::2]


def refuse_shards(prepared: Prepared) -> None:
    """Refuse (InputError) to keep what needs vectors of all vertices, if they are in shards."""
    if prepared.plan.shards > 1:
        raise InputError(
            f"{prepared.plan.numbering}: weights, directions and columns of edges need vectors of all vertices; "
            f"prepare with a larger {advice('memory')}"
        )


def over_blocks(
    executor: Executor,
    prepared: Prepared,
    blocks: Blocks,
    frames: list[Any],
    values: Callable[[Any], Any] | None,
    function: Callable[..., Measured],
    *args: Any,
) -> tuple[dict[Any, Any], list[Any]]:
    """Bring the rows of frames to the blocks that may hold their edges, and call a function for each block.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
    blocks : dict of (i, j) to handle of OrientedCSR
    frames : list of handles of DataFrame
        As `read_rows` returns them; the list is emptied.
    values : callable (column) -> array, or None
        As for `candidates`.
    function : callable (block, shares, shift, sources, *args) -> Measured
        Returns an array with an entry for each of the block's edges from a range of sources, and facts about it.

    Returns
    -------
    arrays : dict of (i, j) to handle of array
    facts : list
        Of each block and range.
    """
    partition, answers, places = prepared.partition, answers_of(executor), sorted(blocks)
    vertices, order = ids_on_host(executor, prepared)
    layout = partition.layout if isinstance(partition, GridPartition) else None
    sources = _ranges(executor, prepared)
    deal = Deal(shift_of(prepared.plan.vertices), layout, len(places), tuple(sources))
    spans = list(pairwise([*sources, prepared.plan.vertices]))
    place = executor.submit(STAGE, inverse, order, CPU)
    slices = executor.map(STAGE, candidates, frames, vertices, place, deal, values)
    shares = iter(executor.transpose(STAGE, slices, len(places) * len(spans)))
    calls = [(blocks[block], next(shares), deal.shift, span, *args) for block in places for span in spans]
    arrays, facts = answers.measured(STAGE, partial(_of_host, function, executor.backend), calls, [None] * len(calls))
    calls.clear()
    parts = [arrays[first : first + len(spans)] for first in range(0, len(arrays), len(spans))]
    join = partial(executor.submit, STAGE, _joined)
    handles = [ranges[0] if len(ranges) == 1 else join(ranges, executor.backend) for ranges in parts]
    executor.wait(handles)
    return dict(zip(places, handles, strict=True)), facts


def refuse_lost_rows(prepared: Prepared, rows: int) -> None:
    """Refuse (CountError) another number of rows than the edges of all blocks have."""
    partition, expected = prepared.partition, prepared.rows - prepared.loops
    if isinstance(partition, GridPartition) and rows != expected * len(partition.layout.families):
        raise lost_rows(f"{plural(expected, 'row')} of edges were {rows // len(partition.layout.families):,}")


def _ranges(executor: Executor, prepared: Prepared) -> list[int]:
    """Return the first source of each range, so that its rows in a block fit a call."""
    memory, plan, sizes = answers_of(executor).call_bytes, prepared.plan, prepared.sizes
    if memory is None:
        return [0]
    rows, partition = prepared.rows - prepared.loops, prepared.partition
    if isinstance(partition, GridPartition):
        rows = -(-rows * int(sizes.edges.max()) // max(1, plan.edges))
        rows *= 1 if partition.layout.graph.ordered else 2
    else:  # every block gets all rows, in both directions
        rows *= 2
    plane = choose_plane(executor, prepared.options)
    outward = prepared.graph.out_degree
    ranges = max(1, -(-plane.tuning.value_bytes * rows // memory))
    return plane.cut_evenly(STAGE, outward, Axis(outward.size, 1), ranges)[0]


def _values_and_rows(*args: Any, **options: Any) -> Measured:
    block, shares, shift, sources, vertices, order = args
    return Measured(*values_of_block(block, shares, shift, sources, vertices=vertices, order=order, **options))


def _joined(arrays: list[Any], backend: Backend) -> Any:
    return backend.array.concatenate(arrays, axis=-1)


# rows are dealt and combined on the host; what a block keeps lies where its arrays do


def ids_on_host(executor: Executor, prepared: Prepared) -> tuple[Any, Any]:
    """Return handles of the map of the vertices, and of the dense id of each id of the blocks, for the host."""
    return map_on_host(executor, STAGE, prepared.vertices, prepared.graph.order.whole, prepared.source.ids)


def _of_host(function: Callable[..., Measured], backend: Backend, block: OrientedCSR, *args: Any) -> Measured:
    """Call a function with a block on the host, and put the array that it returns where the block is."""
    offsets, columns, members = map(on_host, (block.offsets, block.columns, block.members))
    result = function(replace(block, offsets=offsets, columns=columns, members=members), *args)
    return Measured(backend.array.asarray(result.value), result.facts)
