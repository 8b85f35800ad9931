"""Checks of a saved graph's arrays before a kernel trusts them.

A checksum proves that bytes are those that were written, not that dasktc wrote them, and kernels index memory with what
they find in blocks and vertex vectors. A worker therefore checks each block that it opens:

    rows        lie one behind the other within the columns
    columns     ascend in each row, are those of the block's vertices, and in `degree` order are below their row
    members     of a part with proxies ascend, and are vertices of the graph

What concerns several blocks is compared by sums (`backends.block_facts`), wherever these blocks are: out-degrees and
in-degrees are those of the blocks, every family of columns has the same edges, and the order is a permutation. In an
order other than by degree, each edge leads to the end of higher degree. Degrees then give the wedges of a count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dasktc.backends import Backend
from dasktc.backends.block_facts import WORD, Hash, RowFacts, VertexFacts
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.host_threads import in_threads
from dasktc.executors.measured import Measured
from dasktc.saved.arrays import read_array
from dasktc.saved.folder import damaged, joined
from dasktc.saved.manifest import BlockRecord
from dasktc.wording import plural

__all__ = [
    "BlockRead", "Totals", "checked_block", "checked_vectors", "open_block", "proxy_wedges", "ranks",
    "refuse_against_ranks",
]  # fmt: skip

Array = Any
EDGES = 1 << 22
"""Edges of a part with proxies, or in another order than by degree, that are checked at a time."""


class Totals(NamedTuple):
    """Sums over a block's edges, modulo 2^64: of the hashes of their sources, of their targets, and of the edges."""

    sources: int = 0
    targets: int = 0
    pairs: int = 0

    @classmethod
    def add_up(cls, blocks: Iterable[Totals]) -> Totals:
        """Add the sums of several blocks."""
        return cls(*(sum(column) % WORD for column in zip(cls(), *blocks, strict=True)))


@dataclass(frozen=True)
class BlockRead:
    """A block to open: where its arrays are, and what they must be."""

    folder: str
    record: BlockRecord
    numbering: tuple[int, int, int, bool, Any]
    """Fields of the block, from `stride` to `place`, a pair of int."""
    rows: int
    columns: int
    """Numbers of its rows and of its columns."""
    vertices: int
    """Number of the graph's vertices."""
    by: Hash
    """Hash of vertices."""
    pairs: bool = False
    """Whether to sum the hashes of the edges, too."""
    expected: tuple[Totals, str] | None = None
    """What the sums of the graph's only block must be, and the file whose degrees they are."""

    @property
    def url(self) -> str:
        """The file of its columns."""
        return joined(self.folder, self.record.columns.file)


def open_block(read: BlockRead, backend: Backend) -> OrientedCSR:
    """Read and check a block. Runs on a worker."""
    block: OrientedCSR = checked_block(read, backend).value
    return block


def checked_block(read: BlockRead, backend: Backend) -> Measured:
    """Read and check a block; its sums are the facts about it. Runs on a worker."""
    record, hasher, url = read.record, read.by, read.url
    stride, row_first, column_first, ordered, place = read.numbering
    offsets = read_array(read.folder, record.offsets, backend)
    columns, (descents, targets) = backend.block_facts.facts_of_file(
        lambda callback: read_array(read.folder, record.columns, backend, look=callback),
        hasher.over(stride, column_first),
    )
    members = None if record.members is None else read_array(read.folder, record.members, backend)
    block = OrientedCSR(offsets, columns, *read.numbering, members)
    # Without a column below its row no number of a row may be compared with that of a column.
    distance = column_first - row_first if ordered else None
    facts, row_hasher = backend.block_facts, hasher.over(stride, row_first)

    def look(first: int) -> RowFacts:
        end = min(block.rows, first + facts.step)
        return facts.row_facts(offsets, columns, first, end, row_hasher, read.columns, stride, distance)

    rows = RowFacts.add_up(in_threads(look, block.rows, facts.step))
    if rows.wrong or int(offsets[0]) != 0 or int(offsets[-1]) != block.edges:
        raise damaged(url, f"its rows are not those of a block of {plural(block.edges, 'edge')}")
    if rows.outside:
        raise damaged(url, f"a column is none of a block of {read.rows:,} by {plural(read.columns, 'vertex')}")
    if descents != rows.descents:
        raise damaged(url, "the columns of a row do not ascend")
    if rows.above:
        raise damaged(url, "a column is not below its row, as it is in degree order")
    totals = Totals(rows.total, targets)
    if members is not None:
        totals = _totals_of_members(block, members, read, backend)
    if read.pairs:
        totals = totals._replace(
            pairs=facts.pair_total(offsets, columns, row_hasher, hasher.over(stride, column_first))
        )
    if read.expected is not None and totals != read.expected[0]:
        raise damaged(read.expected[1], f"its degrees are not those of block {place}")
    return Measured(block, totals)


def _totals_of_members(block: OrientedCSR, members: Array, request: BlockRead, backend: Backend) -> Totals:
    """Check the members of a part with proxies, and sum the hashes of its edges' ends."""
    url = request.url
    facts = backend.block_facts.column_facts(members, request.by)
    if facts.descents or (len(members) and not 0 <= int(members[0]) <= int(members[-1]) < request.vertices):
        raise damaged(url, f"its members do not ascend, or are none of {plural(request.vertices, 'vertex')}")
    sources = targets = 0
    for row, column in _ends(block, backend):
        sources += backend.block_facts.column_facts(members.take(row), request.by).total
        targets += backend.block_facts.column_facts(members.take(column), request.by).total
    return Totals(sources % WORD, targets % WORD)


def _ends(block: OrientedCSR, backend: Backend) -> Iterable[tuple[Array, Array]]:
    """Yield rows and columns of a block's edges, some edges at a time."""
    for first in range(0, block.edges, EDGES):
        columns = block.columns[first : first + EDGES]
        places = backend.array.arange(first, first + len(columns), dtype="int64")
        yield block.offsets.searchsorted(places, side="right") - 1, columns


def proxy_wedges(local: OrientedCSR, part: OrientedCSR, backend: Backend) -> int | None:
    """The wedges of a part with proxies that start at a local vertex; None if its blocks have other members."""
    mask: Any = local.members != part.members
    if bool(mask.any()):
        return None
    lengths = backend.array.diff(part.offsets)
    return sum(int(lengths.take(column).sum()) for _, column in _ends(local, backend))


def checked_vectors(order: Array, outward: Array, inward: Array, first: int, by: Hash, backend: Backend) -> VertexFacts:
    """Facts of a shard of the vertex vectors, whose first entry is that of vertex `first`. Runs on a worker."""
    step = backend.block_facts.step

    def look(start: int) -> VertexFacts:
        dense, out_degrees, in_degrees = (vector[start : start + step] for vector in (order, outward, inward))
        return backend.block_facts.vertex_facts(dense, out_degrees, in_degrees, first + start, by)

    return VertexFacts.add_up(in_threads(look, len(order), step))


def ranks(order: Array, outward: Array, inward: Array, backend: Backend) -> Array:
    """The rank of each vertex by degree, in which edges are directed: ties go by the dense ids in `order`."""
    xp = backend.array
    degree = outward.astype("int64") + inward
    keys = ((degree.max() - degree) << 31 | order) if len(degree) else degree
    rank = xp.empty(len(order), dtype="int32")
    rank[keys.argsort()] = xp.arange(len(order), dtype="int32")
    return rank


def refuse_against_ranks(block: OrientedCSR, rank: Array, url: str, backend: Backend) -> None:
    """Refuse a block with an edge that does not lead to its end of higher degree. Runs on a worker."""
    for row, column in _ends(block, backend):
        if bool((rank.take(block.row_ids(row)) <= rank.take(block.column_ids(column))).any()):
            raise damaged(url, "an edge does not lead from its end of lower degree to that of higher")
