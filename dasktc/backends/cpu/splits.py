"""Index rows of each split of a counting task, on any backend.

On a GPU groups of 32 rows are dealt out to the splits in turn, where TRUST deals out single rows, u % g (section 5.1):
neighbouring rows cost about the same, so every split gets its share of each kind, and a warp's rows stay adjacent.

On a CPU a split is a range of rows, and all ranges cost about the same. Ranges beat rows dealt one by one there,
because edges whose column has a long row are counted column by column, and each split marks all such rows anew; splits
of adjacent rows meet fewer of them, since columns come before their row. The cost of an edge is estimated from the
lengths of its two lists, and an evenly spaced sample of edges determines where the ranges end. That is integer
arithmetic on the blocks alone: every worker cuts at the same rows, on any backend, because the sample's lists are
looked up where the blocks are, and its costs are computed on the host.
"""

# CPU seconds of all splits together, hub kernel, Kronecker graph of scale 20; one split: 0.43
#                    predicted  measured  learnt
# 8 splits, u % 8            -      0.55  8 ms a split go to marks of long rows, which are fetched and set again; the
#                                         rest to caches that are filled again for a shorter pass
# 8 ranges                0.48      0.43  the first ranges meet only hubs; largest split 1.1 times the mean

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import NamedTuple

import numpy as np

from dasktc.backends.cpu.sizes import BLOCK, HUBS, SHORT, SPARSE, TILE
from dasktc.backends.csr import BEHIND, Array, BlockTask, on_host
from dasktc.registry import KERNELS

__all__ = [
    "GROUP", "Cost", "Share", "groups", "halves", "hub_cost", "rows_of", "sample_bytes", "search_cost", "share_of",
    "stream_cost", "tile_cost", "walk_cost",
]  # fmt: skip

GROUP = 32
"""Rows that are dealt out together, a warp's, as in the kernels' prelude."""

SAMPLE, SAMPLES_A_SPLIT = 1 << 13, 32
"""Least number of edges whose cost is estimated; each split is then within some hundredths of its share."""
SAMPLED_BYTES = 110
"""Most bytes that each of these edges takes during the estimate."""

SEARCH, STEP = 10, 12
"""Cost of an entry that is searched for, and of a step of the bisection."""
POWERS = 1 << np.arange(32, dtype="int64")
ROW = 230
"""Cost of a row beside its edges."""

_thread = threading.local()

Cost = Callable[[Array, Array, Array], Array]
"""Returns the cost of edges from |A|, |B| and v, as in `probes`, in tenths of a nanosecond.

That of `hub` is fitted to fourths and eighths of two Kronecker graphs, ego-Twitter and amazon0601, most of which are
then within 6 % of their share.
"""


class Share(NamedTuple):
    """Index rows of a split: groups of GROUP rows, from `begin` on and then every `step` rows; `rows` in all."""

    begin: int
    step: int
    rows: int


def share_of(task: BlockTask, xp: ModuleType = np) -> Share:
    """The rows of the index block that a task counts, whether they are a range or dealt out.

    `xp` is numpy or cupy, whose arrays the task's blocks are.
    """
    if not _dealt(task):
        begin, end = rows_of(task, xp)
        return Share(begin, GROUP, end - begin)
    count, split = -(-task.index.rows // GROUP), task.split
    rows = GROUP * max(0, -(-(count - split) // task.splits))
    left_out = GROUP * count - task.index.rows if count and (count - 1) % task.splits == split else 0
    return Share(GROUP * split, GROUP * task.splits, rows - left_out)


def groups(share: Share, offsets: Array, xp: ModuleType) -> tuple[Array, Array]:
    """First row of each group of a share, and the running sums of the groups' edges.

    Parameters
    ----------
    share : Share
        With at least one row.
    offsets : array of int64
        Offsets of the index block.
    xp : module
        numpy or cupy.

    Returns
    -------
    first, ends : array of int64, shape (groups,)
    """
    begin, step, rows = share
    first = xp.arange(begin, begin + -(-rows // GROUP) * step, step, dtype="int64")
    ends = xp.minimum(first + GROUP, int(first[-1]) + rows - GROUP * (len(first) - 1))  # the last may be shorter
    return first, xp.cumsum(offsets[ends] - offsets[first])


def _dealt(task: BlockTask) -> bool:
    return task.dealt and task.rows is None


def rows_of(task: BlockTask, xp: ModuleType = np) -> tuple[int, int]:
    """First row of the index block that a task counts, and the end of its range, where its split is a range.

    The ranges of splits 0, 1, ... follow each other, from the first row to the last. `xp` is numpy or cupy, whose
    arrays the task's blocks are.
    """
    if task.rows is not None:
        return task.rows
    if task.splits == 1:
        return 0, task.index.rows
    # A thread keeps the cuts of a triple, because it often counts several splits in succession.
    blocks, key = (task.index, task.table, task.stream), (task.splits, task.cut_for)
    references, cut_key, cuts = getattr(_thread, "kept", ((), None, []))
    if cut_key != key or any(block() is not current for block, current in zip(references, blocks, strict=True)):
        cuts = _cuts(task, xp)
        _thread.kept = [weakref.ref(block) for block in blocks], key, cuts
    return cuts[task.split], cuts[task.split + 1]


def halves(task: BlockTask, xp: ModuleType = np) -> list[BlockTask]:
    """Cut a task into two with about equally many edges; a task with a single row is cut into none.

    Groups that were dealt out are dealt out again: split s of m becomes splits s and s + m of 2m. A range is cut into
    splits 2s and 2s + 1 of 2m with explicit rows, because an estimate from another sample might omit a row or count it
    twice. `xp` is as for `rows_of`.
    """
    share = share_of(task, xp)
    if share.rows < 2:
        return []
    if _dealt(task) and share.rows > GROUP:
        return [replace(task, split=split, splits=2 * task.splits) for split in (task.split, task.split + task.splits)]
    begin, end = share.begin, share.begin + share.rows
    starts = task.index.offsets[begin : end + 1]
    half_edges = (int(starts[0]) + int(starts[-1])) // 2
    middle = begin + min(max(1, int(starts.searchsorted(half_edges, side="right")) - 1), end - begin - 1)
    half_task = replace(task, split=2 * task.split, splits=2 * task.splits)
    return [replace(half_task, rows=(begin, middle)), replace(half_task, split=half_task.split + 1, rows=(middle, end))]


def _cuts(task: BlockTask, xp: ModuleType) -> list[int]:
    """First row of each split, followed by the number of rows."""
    index, table, stream = task.index, task.table, task.stream
    if index.edges == 0:
        return [0] + [index.rows] * task.splits
    # Row and estimated cost of every k-th edge of the index block.
    size = _sample(index.edges, task.splits)
    place = xp.arange(size, dtype="int64") * index.edges // size
    u = index.offsets.searchsorted(place, side="right") - 1
    v = index.columns[place].astype("int64")
    a, b = table.offsets[u + 1] - table.offsets[u], stream.offsets[v + 1] - stream.offsets[v]
    first, degree = index.offsets[u], index.offsets[u + 1] - index.offsets[u]
    if task.shift != BEHIND:
        a = a * (place - first) // degree  # estimated entries before v, as if they were spread evenly
    u, v, a, b, degree = (on_host(array) for array in (u, v, a, b, degree))
    # The cost function of the kernel, on whichever backend it is; kernels without one are cut like `merge`.
    entries = (registry[task.cut_for] for registry in KERNELS.values() if task.cut_for in registry)
    cost: Cost = next((entry.cost for entry in entries if entry.cost), walk_cost)
    cost_sums = np.cumsum(1 + ROW // degree + cost(a, b, v))
    bounds = np.arange(1, task.splits) * int(cost_sums[-1]) // task.splits
    return [0, *u[np.searchsorted(cost_sums, bounds)].tolist(), index.rows]


def sample_bytes(edges: int, splits: int) -> int:
    """Upper bound of the bytes that determining the rows of splits takes, from the edges of the index block."""
    return SAMPLED_BYTES * _sample(edges, splits)


def _sample(edges: int, splits: int) -> int:
    return min(edges, max(SAMPLE, SAMPLES_A_SPLIT * splits))


def hub_cost(a: Array, b: Array, v: Array) -> Array:
    """Estimated cost of edges for `hub`, by their case: ANDed bitmaps, streamed list, or deferred."""
    anded = (v < HUBS) & (np.minimum(a, b) > SPARSE * ((v >> BLOCK) + 1))
    put_off = np.where(v < HUBS, 90, 500 + 5 * a // 2)
    streamed = np.where((b <= SHORT) | (b <= a), 70 + 13 * b, put_off)
    return np.where(a == 0, 0, np.where(anded, 55 + 16 * (v >> BLOCK), streamed))


def search_cost(a: Array, b: Array, _: Array) -> Array:
    """Estimated cost of edges for kernels that search the shorter list in the longer."""
    return 50 + np.minimum(a, b) * (SEARCH + STEP * _steps(np.maximum(a, b)))


def tile_cost(a: Array, b: Array, _: Array) -> Array:
    """Estimated cost of edges for `lstc`, which searches v's list in every tile of u's."""
    return 50 + b * -(-a // TILE) * (SEARCH + STEP * _steps(np.minimum(a, TILE)))


def _steps(lengths: Array) -> Array:
    """Steps of a bisection: the exact number of bits of the lengths, so that all workers cut at the same rows."""
    return np.searchsorted(POWERS, lengths, side="right")


def walk_cost(a: Array, b: Array, _: Array) -> Array:
    """Estimated cost of edges for kernels that walk both lists."""
    return 50 + 20 * (a + b)


def stream_cost(_: Array, b: Array, __: Array) -> Array:
    """Estimated cost of edges for kernels that stream v's list against a table of u's."""
    return 50 + 20 * b
