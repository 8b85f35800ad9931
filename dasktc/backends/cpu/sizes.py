"""Sizes of the CPU kernels' tables and the bytes that they take, for plans; imports no Numba."""

from __future__ import annotations

from math import isqrt

from dasktc.backends.protocol import GraphBounds, TaskSize

__all__ = [
    "AHEAD", "BATCH", "BLOCK", "DEPTH", "HUBS", "LARGE", "PAIRS", "SHORT", "SMALL", "SPARSE", "TILE", "WORDS",
    "bitmap_words", "bucket_depth", "edge_values_bytes", "hash_bytes", "hub_bytes", "hub_count", "most_deferred",
    "support_bytes", "times_bytes", "visit_bytes", "visit_of_values_bytes",
]  # fmt: skip

# hub

SHORT = 32
"""Longest row that never gets a table of its own, because streaming it costs less than deferring the edge."""
HUBS = 10240
"""Most hubs: their bitmaps then take 6.9 MB, which stay in a third level cache."""
BLOCK = 9
"""Binary logarithm of the ids in one step of an AND, 512: a cache line, and the widest vector register."""
WORDS = 1 << BLOCK - 6
"""64-bit words of a block."""
SPARSE = 2
"""Elements of the shorter list that one such step must save."""
AHEAD = 8
"""Deferred lists that are prefetched ahead of the current one."""
BATCH = (1 << 12) - 1
"""Rows whose bits are kept until their triangles are processed hub by hub: 5.5 MB, and as many as counters of 12 bits
hold. With 256 and 1,024 rows the groups of a hub are so small that supports of a Kronecker graph of scale 18 take 1.6
and 1.2 times as long."""
PAIRS = 1 << 18
"""Pairs of such a row and a hub that are stored, in addition to those of one row."""
MOST = (1 << 31) - 1
"""Most edges deferred at once, because groups are numbered in 32 bits."""
FEW, SHARE = 1 << 13, 16
"""At most FEW edges, or one in SHARE of the block's edges, are deferred at once, so that planned memory is nearly used.

The resulting ranges of rows, one after another, take 0 to 2 % longer (Kronecker graph of scale 20).
"""

# trust, hindex

SMALL, LARGE = 32, 1024
"""Buckets of the small and of the large hash table."""
DEPTH = 128
"""Entries of a bucket (TRUST, section 3.2)."""

# lstc

TILE = 1024
"""Entries of a tile; in the paper, the threads of a block."""


def bitmap_words(hubs: int) -> int:
    """Number of 64-bit words in the bitmaps of the hubs 0 to hubs - 1."""
    group = hubs >> BLOCK
    return WORDS * (group + 1) * ((group << BLOCK - 1) + (hubs & (1 << BLOCK) - 1))


def most_deferred(index_edges: int, block_edges: int) -> int:
    """The most edges deferred at once, except those of one row, by the edges of the split and of its index block."""
    return min(MOST, index_edges, max(FEW, block_edges // SHARE))


def hub_count(edges: int, rows: int) -> int:
    """Choose a stream block's number of hubs so that their bitmaps, hubs²/16 bytes, take at most 4 bytes per edge."""
    return min(HUBS, isqrt(64 * edges), rows)


def hub_bytes(size: TaskSize, graph: GraphBounds | None) -> int:
    """Upper bound of the bytes of `hub`'s tables for a task."""
    columns, index_edges = size.columns, size.splits * size.index_edges
    longest = columns if graph is None else min(columns, graph.longest)
    rows = columns if graph is None else graph.rows_above(SHORT, size)
    marker_bytes = rows if graph is not None and graph.ordered and size.lower else columns
    hubs = hub_count(size.stream_edges, columns) if size.lower and (graph is None or graph.ordered) else 0
    bitmaps = 8 * bitmap_words(hubs)
    tables = 4 * rows + marker_bytes + columns // 8  # waiting, marker, bits
    chunk = max(most_deferred(size.index_edges, index_edges), longest)  # or a longer row
    deferrals = min(chunk, index_edges)
    return bitmaps + tables + 8 * (deferrals + AHEAD) + (1 << 10)


def support_bytes(size: TaskSize, graph: GraphBounds | None) -> int:
    """Upper bound of the working memory of `supports.edges` beside the supports, in bytes; `vertices` takes less."""
    hubs = hub_count(size.stream_edges, size.columns) if size.lower and (graph is None or graph.ordered) else 0
    words, deferrals = WORDS * (1 + (hubs >> BLOCK)), most_deferred(size.index_edges, size.splits * size.index_edges)
    ranks, hits, groups = 2 * bitmap_words(hubs), 4 * size.columns, 4 * (max(deferrals, size.columns) + AHEAD)
    batch = 8 * BATCH * words + 12 * (PAIRS + hubs) + 4 * hubs
    return hub_bytes(size, graph) + ranks + hits + groups + batch + (1 << 17)


def bucket_depth(longest: int) -> int:
    """Entries that a bucket must hold so that the table of the longest row, of `longest` entries, stays half empty."""
    return max(DEPTH, -(-2 * longest // LARGE))


def hash_bytes(size: TaskSize, graph: GraphBounds | None) -> int:
    """Upper bound of the bytes of `trust`'s and `hindex`'s table for a task."""
    longest = size.columns if graph is None else min(size.columns, graph.longest)
    return 4 * LARGE * (1 + bucket_depth(longest)) + (1 << 17)


def visit_bytes(edges: int, columns: int) -> int:
    """Bytes that a visit of a task's triangles allocates beside its blocks; see `requirements.support_bytes`."""
    return 4 * edges + 5 * columns


def edge_values_bytes(edges: int, columns: int) -> int:
    """Upper bound of the bytes that `edge_values` and its caller allocate for a task of blocks of this size.

    12 bytes a deferred edge and 1 each for the codes of three; and for each row or column a bit, a value, a place, two
    counters, and three sums with those of its side.
    """
    return 16 * edges + 80 * columns


def visit_of_values_bytes(edges: int, columns: int, parts: int) -> int:
    """Bytes of a visit beside blocks and values: `edge_values_bytes`, and a number of every vertex and of the sides."""
    return edge_values_bytes(edges, columns) + (72 + 8 * parts) * columns


def times_bytes(columns: int) -> int:
    """Upper bound of the bytes that `times.time_counts` allocates: a bit, a time and a place a column, and counters."""
    return 17 * columns + (1 << 19)
