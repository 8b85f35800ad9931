"""Launches of the edge-centric kernels `search`, `merge`, `hindex` and `tcstream`; see kernels/lrb.cuh."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends.cpu.splits import GROUP, Share, groups
from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import THREADS, Launch, grid_of

__all__ = [
    "SETTINGS",
    "hindex",
    "hindex_bytes",
    "list_bytes",
    "merge",
    "search",
    "slices",
    "tcstream",
    "unbinned_bytes",
]

BINS = 32
"""Bins of edges by work."""
SLICE = 1 << 26
"""Edges listed in one slice, plus at most those of one row."""
CUT_BYTES = 2
"""Bytes per row while slices are cut: six numbers for each group of rows."""
COUNTERS = 1 << 20
"""Bytes of the counters, BINS per block; a GPU holds at most some thousands of blocks."""
BUCKETS, WARP_BUCKETS = 1024, 32
"""Buckets of a thread block's hash table, and of a warp's."""
DEPTH = 128
"""Least number of entries of a bucket in a thread block's table."""
SETTINGS = {"slice": SLICE, "depth": DEPTH, "vertices": 1}
"""Settings of these launches. `vertices`, of `tcstream`: count a graph that is one block by vertices; 0: by an edge
list, as other triples are."""
HINDEX_BYTES = 512 << 20
"""Scratch of the `hindex` kernel's tables, unless one table alone is larger."""

EDGE_LIST = np.dtype([("at", np.uint64), ("size", np.int64)])
"""Layout of `struct EdgeList` in the prelude."""


class Binned(NamedTuple):
    """A task's edges in bins: the list in the kernels' form, where each bin starts, and the arrays of the list."""

    edge_list: Any
    starts: list[int]
    memory: Array


def binned(launch: Launch) -> Binned:
    """List the edges that have work, by bins: histogram, prefix sums, scatter.

    Parameters
    ----------
    launch : Launch
        With fewer than 2^32 edges, as slices have; the wedges are added to its totals.
    """
    device, xp, rows = launch.device, launch.device.array, int(launch.fields["rows"][0])
    grid, _ = grid_of(device, launch.file, launch.defines, rows)
    counts = xp.zeros(BINS * grid + 1, dtype="uint32")
    launch.spread("lrb_histogram", rows, counts, launch.totals)
    launch.run("lrb_starts", 1, launch.shape["STARTS"], counts, np.uint32(len(counts)))
    starts = [int(start) for start in counts[::grid].tolist()]
    memory = xp.empty(3 * starts[-1], dtype="uint32")
    edge_list = np.zeros(1, EDGE_LIST)
    edge_list["at"], edge_list["size"] = device.pointer(memory), starts[-1]
    if starts[-1]:
        launch.spread("lrb_scatter", rows, counts, edge_list)
    return Binned(edge_list, starts, memory)


def slices(launch: Launch, size: int | None = None) -> Iterator[Launch]:
    """Cut a task's rows into slices of at most about `size` edges, by default SLICE; a longer row is not cut."""
    size = launch.shape["slice"] if size is None else size
    fields = launch.fields
    begin, step, rows = (int(fields[name][0]) for name in ("begin", "step", "rows"))
    for first, last in pairwise([0, *_cuts(launch, begin, step, rows, size), rows]):
        if first < last:
            part = fields.copy()
            part["begin"], part["skip"], part["rows"] = begin + first // GROUP * step, first % GROUP, last - first
            yield launch._replace(fields=part)


def _cuts(launch: Launch, begin: int, step: int, rows: int, size: int) -> list[int]:
    """Numbers of rows after which a share is cut: those that hold its edges `size`, twice `size`, ..."""
    xp, offsets = launch.device.array, launch.task.index.offsets
    if launch.task.index.edges <= size:
        return []
    firsts, ends = groups(Share(begin, step, rows), offsets, xp)
    edges = xp.arange(size, int(ends[-1]), size, dtype="int64")
    group = ends.searchsorted(edges, side="right")
    edges_before = xp.concatenate([xp.zeros(1, dtype="int64"), ends])[group]
    row = offsets.searchsorted(offsets[firsts[group]] + edges - edges_before, side="right") - 1
    cuts: list[int] = (GROUP * group + row - firsts[group]).tolist()
    return cuts


def search(launch: Launch) -> None:
    """Launch `search` in slices, once for every bin with edges."""
    for part in slices(launch):
        _by_bins(part, "search_bin", THREADS * launch.device.processors)


def merge(launch: Launch) -> None:
    """Launch `merge` in slices, once for every bin with edges."""
    for part in slices(launch):
        _by_bins(part, "merge_bin", launch.shape["MOST_TPI"])


def _by_bins(launch: Launch, entry: str, largest_team: int) -> None:
    """Launch an entry for each bin, with 2^split threads per edge: SUB of bin k's work 2^k each, at most `most`."""
    shape = launch.shape
    edges = binned(launch)
    for k, (begin, end) in enumerate(pairwise(edges.starts)):
        team = min(max((1 << k) // shape["SUB"], 1), largest_team)
        split = (shape["TPI"] or team).bit_length() - 1
        if begin < end:
            numbers = (np.uint32(begin), np.uint32(end), np.uint32(split))
            launch.spread(entry, (end - begin) << split, edges.edge_list, *numbers, launch.totals)


def hindex(launch: Launch) -> None:
    """Launch `hindex`: short lists are hashed by warps, and long ones by blocks."""
    longest = 0 if launch.shape["LRB"] else _longest(launch)
    for part in slices(launch):
        edges = binned(part)
        if not launch.shape["LRB"]:
            _by_warps(part, edges, edges.starts[-1], _depth(launch.shape["depth"], longest, WARP_BUCKETS))
            continue
        short_end = edges.starts[launch.shape["SHORT"].bit_length()]  # bins 0 to log2 SHORT
        _by_warps(part, edges, short_end)
        _by_blocks(part, edges, short_end)


def _longest(launch: Launch) -> int:
    """Upper bound of the number of entries hashed for one edge."""
    offsets = [block.offsets for block in (launch.task.table, launch.task.stream)]
    longest = [int(launch.device.array.diff(rows).max()) if len(rows) > 1 else 0 for rows in offsets]
    return max(longest) if launch.shape["LONGER"] else min(longest)


def _by_warps(launch: Launch, edges: Binned, end: int, depth: int = 0) -> None:
    """Use a warp per edge; where its table may exceed shared memory, `depth` entries per bucket are in scratch."""
    threads, warp_bytes = launch.shape["THREADS"], 4 * WARP_BUCKETS * depth
    warps = min(THREADS // 32 * launch.device.processors, end, max(1, HINDEX_BYTES // max(1, warp_bytes)))
    if not warps:
        return
    threads = min(threads, 32 * warps)
    grid = 32 * warps // threads
    scratch = launch.device.array.empty(max(1, grid * threads // 32 * warp_bytes // 4), dtype="int32")
    values = (np.uint32(0), np.uint32(end), scratch, np.uint32(depth), launch.totals)
    launch.run("hindex_warp", grid, threads, edges.edge_list, *values)


def _by_blocks(launch: Launch, edges: Binned, start: int) -> None:
    threads, end = launch.shape["THREADS"], edges.starts[-1]
    if start == end:
        return
    longest = 1 << max(k for k, (first, last) in enumerate(pairwise(edges.starts)) if first < last)
    depth = _depth(launch.shape["depth"], longest)
    blocks = min(THREADS // threads * launch.device.processors, max(1, HINDEX_BYTES // _table_bytes(depth)))
    grid = min(blocks, end - start)
    scratch = launch.device.array.empty(grid * _table_bytes(depth) // 4, dtype="int32")
    values = (np.uint32(start), np.uint32(end), scratch, np.uint32(depth), launch.totals)
    launch.run("hindex_block", grid, threads, edges.edge_list, *values)


def _depth(least: int, longest: int, buckets: int = BUCKETS) -> int:
    """Entries that a bucket must hold so that a table of `longest` entries stays half empty, at least so many."""
    return max(least, -(-2 * longest // buckets))


def _table_bytes(depth: int) -> int:
    """Scratch bytes of one thread block, as if no levels were in shared memory."""
    return 4 * BUCKETS * depth


def tcstream(launch: Launch) -> None:
    """Launch `tcstream`, by warps: by vertices where the graph is one block, else by a list of edges."""
    task = launch.task
    if launch.shape["vertices"] and task.index is task.table is task.stream:
        next_edges = launch.device.array.zeros(1, dtype="uint64")
        threads = 32 * -(-task.index.edges // launch.shape["TAKE"])
        launch.spread("tcstream_vertices", threads, np.int64(task.index.rows), next_edges, launch.totals)
        return
    for part in slices(launch):
        edges = binned(part)
        if edges.starts[-1]:
            part.spread("tcstream_edges", edges.starts[-1], edges.edge_list, launch.totals)


def list_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of a slice's list and of its passes' counters."""
    return 12 * min(max(index_edges, block_edges), SLICE + columns) + CUT_BYTES * columns + COUNTERS


def hindex_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of `hindex` beside a task's blocks: the list, and the hash tables."""
    depth = _depth(DEPTH, 2 * columns)  # lists of a bin are at least half as long as its bound, which may exceed all
    return list_bytes(index_edges, block_edges, columns) + max(HINDEX_BYTES, _table_bytes(depth))


def unbinned_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of `hindex-unbinned` beside a task's blocks; parameters as for `hindex_bytes`."""
    warp_bytes = 4 * WARP_BUCKETS * _depth(DEPTH, columns, WARP_BUCKETS)
    lengths = 8 * (columns + 1)
    return list_bytes(index_edges, block_edges, columns) + lengths + max(HINDEX_BYTES, warp_bytes)
