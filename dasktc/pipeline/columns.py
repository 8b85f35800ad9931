"""Values of edges in the rows of a source: read in a pass of its own, and kept beside the blocks, on their workers.

Columns of surveys, weights and directions are read with the ids in one more pass, by the same parts. A part deals its
rows to the blocks that may hold their edges, as shares that travel from worker to worker, and each block keeps the
values of its own edges (`pipeline.stages.columns`). No vector of all edges is in one place unless one block has them.
Within `--memory` parts are read in chunks, and the rows of a block come in ranges of their edges' sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

from dasktc.backends import Backend
from dasktc.backends.csr import OrientedCSR
from dasktc.errors import InputError, shown
from dasktc.executors.base import Executor
from dasktc.executors.measured import Measured
from dasktc.executors.upstream import upstream_of
from dasktc.io.source import Source
from dasktc.pipeline.build_blocks import Blocks, GridPartition
from dasktc.pipeline.planes import answers_of
from dasktc.pipeline.planes import choose as choose_plane
from dasktc.pipeline.planes.block_ids import BlockIds, block_ids
from dasktc.pipeline.prepare import Prepared
from dasktc.pipeline.stages.columns import (
    REPEATS,
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
from dasktc.planning.grid import Axis
from dasktc.wording import option, plural

__all__ = ["edge_column", "names_of", "over_blocks", "read_rows", "refuse_lost_rows"]

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
        A row has no value; values are of several types; rows give an edge different values; or text is to be summed.
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
    function = partial(values_of_block, dtype=dtype, repeats=repeats, name=name)
    handles, block_facts = over_blocks(executor, prepared, blocks, frames, values, function)
    for ends in sorted(fact.clash for fact in block_facts if fact.clash is not None)[:1]:
        raise InputError(
            f"rows give the edge between {names_of(executor, prepared, ends)} different values of {name}: which is "
            f"meant is unclear; pass edge_columns={{{name!r}: {' | '.join(map(repr, REPEATS))}}}"
        )
    refuse_lost_rows(prepared, sum(fact.rows for fact in block_facts))
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
    """
    memory, tuning = answers_of(executor).frame_bytes, choose_plane(executor, prepared.options).tuning
    most = None if memory is None else max(1, memory // (tuning.row_bytes[source.ids] + tuning.dealt_bytes))
    upstream = upstream_of(executor, source.parts)
    calls = [(part, value, most, *args) for part, value in zip(source.parts, upstream, strict=True)]
    results = executor.stream("read-columns", function, calls)
    return results[::2], results[1::2]


def over_blocks(
    executor: Executor,
    prepared: Prepared,
    blocks: Blocks,
    frames: list[Any],
    values: Callable[[Any], Any] | None,
    function: Callable[..., tuple[Any, Any]],
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
    function : callable (block, shares, shift, sources, *args) -> (array, facts)
        Returns an array with an entry for each of the block's edges from a range of sources, and facts about it.

    Returns
    -------
    arrays : dict of (i, j) to handle of array
    facts : list
        Of each block and range.
    """
    partition, answers, places = prepared.partition, answers_of(executor), sorted(blocks)
    layout = partition.layout if isinstance(partition, GridPartition) else None
    sources = _ranges(executor, prepared)
    deal = Deal(shift_of(prepared.plan.vertices), layout, len(places), tuple(sources))
    spans = list(pairwise([*sources, prepared.plan.vertices]))
    slices = _block_ids(executor, prepared).map(frames, candidates, deal, values)
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


def _joined(arrays: list[Any], backend: Backend) -> Any:
    return backend.array.concatenate(arrays, axis=-1)


# rows are dealt and combined on the host; what a block keeps lies where its arrays do


def _block_ids(executor: Executor, prepared: Prepared) -> BlockIds:
    return block_ids(executor, STAGE, prepared.vertices, prepared.graph.order, prepared.source.ids)


def names_of(executor: Executor, prepared: Prepared, ends: Iterable[int]) -> str:
    """Return the caller's ids, or labels, of both ends of an edge, given by the ids of the blocks, for errors."""
    names, labels = _block_ids(executor, prepared).names(list(ends)), prepared.source.labels
    return " and ".join(map(shown, names if labels is None else labels.of(names)))


def _of_host(function: Callable[..., tuple[Any, Any]], backend: Backend, block: OrientedCSR, *args: Any) -> Measured:
    """Call a function with a block on the host, and put the array that it returns where the block is."""
    values, facts = function(block.on_host(), *args)
    return Measured(backend.array.asarray(values), facts)
