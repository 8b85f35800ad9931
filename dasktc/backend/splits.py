"""A counting task as the CPU kernels take it, and which index rows its split is.

A split is a range of rows that costs about as much as every other. Ranges beat rows dealt one by
one: edges whose column has a long row are counted column by column, and each split marks all such
rows anew. Splits whose rows lie together meet fewer of them, since columns stand before their row.
What an edge costs is estimated from the lengths of its two lists; an evenly spaced sample of edges
tells where the ranges end. That is integer arithmetic on the blocks alone: every worker cuts at
the same rows.
"""

# CPU seconds of all splits together, hub kernel, Kronecker graph of scale 20; one split: 0.43
#                    predicted  measured  learnt
# 8 splits, u % 8            -      0.55  8 ms a split are marks of long rows, which are fetched and set again; the
#                                         rest caches that are filled again for a shorter pass
# 8 ranges                0.48      0.46  the first ranges meet only hubs; largest split 1.1 times the mean

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backend.hub import BLOCK, HUBS, SHORT
from dasktc.backend.intersect import BEHIND, Triple
from dasktc.csr import Array, BlockTask, OrientedCSR
from dasktc.errors import CountError

__all__ = ["rows_of", "sample_bytes", "triple"]

SAMPLE = 1 << 12
"""Edges whose cost is estimated."""
SAMPLED_BYTES = 128
"""Of each while that is done, at most."""

Cost = Callable[[Array, Array, Array], Array]
"""Of |A|, |B| and v, as `probes` has them: tenths of a nanosecond, measured over seven graphs."""


def triple(task: BlockTask) -> Triple:
    """Describe a task to the kernels.

    Parameters
    ----------
    task : BlockTask

    Returns
    -------
    Triple
        Read-only views of the blocks' arrays; copies of those that are not contiguous, not
        aligned, or of another type.

    Raises
    ------
    CountError
        The table block has fewer rows than the index block.
    """
    index, table, stream = task.index, task.table, task.stream
    if table.rows < index.rows:
        raise CountError(
            f"a counting task's index block has {index.rows} rows and its table block {table.rows}: "
            "they are blocks of different row parts; report this with the command that you ran"
        )
    ordered = index.ordered and table.ordered and stream.ordered
    shift = int(table.column_part < index.column_part) if ordered else BEHIND
    blocks = (*_arrays(index), *_arrays(table), *_arrays(stream))
    return Triple(*blocks, *rows_of(task), index is table, shift)


def _arrays(block: OrientedCSR) -> tuple[Array, Array]:
    return _frozen(block.offsets, np.int64), _frozen(block.columns, np.int32)


def _frozen(array: Array, dtype: Any) -> Array:
    view = np.require(array, dtype, ("C", "A")).view()
    view.flags.writeable = False
    return view


def rows_of(task: BlockTask) -> tuple[int, int]:
    """The rows of the index block that a task counts.

    Parameters
    ----------
    task : BlockTask

    Returns
    -------
    begin, end : int
        The ranges of splits 0, 1, ... follow each other, from the first row to the last.
    """
    index = task.index
    if task.splits == 1:
        return 0, index.rows
    if index.edges == 0:
        return (0 if task.split == 0 else index.rows), index.rows
    rows, costs = _sampled(task)
    reached = np.cumsum(costs)
    bounds = np.arange(task.split, task.split + 2) * int(reached[-1]) // task.splits
    begin, end = rows[np.searchsorted(reached, bounds)].tolist()
    return begin if task.split else 0, end if task.split + 1 < task.splits else index.rows


def sample_bytes(edges: int) -> int:
    """Bytes that finding the rows takes, at most.

    Parameters
    ----------
    edges : int
        Of the index block.
    """
    return SAMPLED_BYTES * min(edges, SAMPLE)


def _sampled(task: BlockTask) -> tuple[Array, Array]:
    """Row and estimated cost of every so manieth edge of the index."""
    index, table, stream = task.index, task.table, task.stream
    size = min(index.edges, SAMPLE)
    place = np.arange(size) * index.edges // size
    u = np.searchsorted(index.offsets, place, side="right") - 1
    v = index.columns[place].astype(np.int64)
    a, b = table.offsets[u + 1] - table.offsets[u], stream.offsets[v + 1] - stream.offsets[v]
    if index.ordered and table.ordered and stream.ordered:
        begin, end = index.offsets[u], index.offsets[u + 1]
        a = a * (place - begin) // (end - begin)  # entries before v, as if they were spread evenly
    return u, COSTS[task.cut_for](a, b, v)


def _hub(a: Array, b: Array, v: Array) -> Array:
    listed = np.where((b <= SHORT) | (b <= a), 70 + 18 * b, 560 + 3 * a)
    anded = np.minimum(30 + 16 * (v >> BLOCK), listed)
    return 10 + np.where(a == 0, 0, np.where(v < HUBS, anded, listed))


def _search(a: Array, b: Array, _: Array) -> Array:
    return 50 + 100 * np.minimum(a, b)


def _walk(a: Array, b: Array, _: Array) -> Array:
    return 50 + 20 * (a + b)


def _stream(_: Array, b: Array, __: Array) -> Array:
    return 50 + 20 * b


COSTS: dict[str, Cost] = {"hub": _hub, "trust": _stream, "merge": _walk, "search": _search}
