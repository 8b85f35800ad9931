"""The launches of `trust`: see kernels/trust.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Launch

if TYPE_CHECKING:
    from dasktc.backends.kernel import Facts

__all__ = [
    "LANES",
    "SMALL_ROW",
    "TRUST",
    "chunk_rows",
    "chunks",
    "details",
    "lanes",
    "scratch_bytes",
    "shared_bytes",
    "subwarp_lanes",
    "teams_of",
    "trust",
]

TRUST = {
    "VH": 1, "CO": 1, "VC": 1, "LEVELS": 6, "THREADS": 1024, "COPIES": 256, "STEPS": 2, "READS": 0,
    "chunk": 0, "lanes": 0,
}  # fmt: skip
"""Macros of the `trust` kernel; `chunk`: rows that a team takes at a time, `lanes`: of the subwarp that takes a list
where lists are not combined; 0: as `chunk_rows` and `subwarp_lanes` have them."""
PHYSICAL = 2
"""VC of lists that are copied."""
LANES = (8, 16, 32)
"""Sizes of subwarps (section 4.2)."""
TRUST_BYTES = 512 << 20
"""Scratch of the `trust` kernel's tables (section 3.1), unless one table alone is larger."""
DEPTH = 128
"""Entries that a bucket of the `trust` kernel holds, at least (section 3.2)."""
BUCKETS = 1024
"""Buckets of a thread block's table; together as many in its warps' tables of SMALL_BUCKETS."""
SMALL_BUCKETS = 32
SMALL_ROW = 100
"""Longest row that a warp takes."""
RESIDENT = 2
"""Thread blocks of a multiprocessor."""
ENTRIES = 1024
"""Entries that a chunk hashes and looks up, about, where rows are many."""
TURNS = 8
"""Chunks that each team has to take, at least, where a chunk is more than one row."""


class Work(NamedTuple):
    """What a kind of team is launched with: entry point, thread blocks, entries of a bucket, rows at a time, lanes."""

    entry: str
    grid: int
    depth: int
    chunk: int
    lanes: int


def trust(launch: Launch) -> None:
    """Sort the rows by team, then count them."""
    rows, lists, work = _sorted(launch)
    for of in work:
        if of.grid:
            _count(launch, of, rows, lists)


def chunks(launch: Launch) -> tuple[int, int]:
    """Rows that a warp and a thread block take at a time."""
    by_block, by_warp = _sorted(launch)[2]
    return by_warp.chunk, by_block.chunk


def lanes(launch: Launch) -> tuple[int, int]:
    """Lanes of the subwarps of a warp and of a thread block, where lists are not combined."""
    by_block, by_warp = _sorted(launch)[2]
    return by_warp.lanes, by_block.lanes


def _sorted(launch: Launch) -> tuple[Array, Array, list[Work]]:
    """Rows by team, longer ones first."""
    shape, xp = launch.shape, launch.device.array
    rows = xp.empty(int(launch.given["rows"][0]), dtype="uint32")
    lists, sampled = xp.zeros(6, dtype="uint32"), xp.zeros((2, 2 + len(LANES)), dtype="uint64")
    launch.spread("trust_rows", len(rows), rows, lists, sampled, launch.totals)
    by_warp, by_block, _, _, longest, _ = (int(number) for number in lists.tolist())
    buckets = BUCKETS if shape["CO"] else SMALL_BUCKETS
    deepest = max(DEPTH, -(-2 * longest // buckets))
    narrow, wide = sampled.tolist()
    return rows, lists, [
        _work(launch, "trust_block", by_block, 1, deepest, wide),
        _work(launch, "trust_warp", by_warp, shape["THREADS"] // 32, DEPTH if shape["CO"] else deepest, narrow),
    ]  # fmt: skip


def _work(launch: Launch, entry: str, rows: int, teams: int, depth: int, sampled: list[int]) -> Work:
    """Blocks that the device and the scratch have room for, of so many teams each."""
    resident = min(RESIDENT * launch.device.processors, max(1, TRUST_BYTES // _table_bytes(depth)))
    grid, (sampled_rows, entries, *steps) = min(resident, -(-rows // teams)), sampled
    mean = entries / sampled_rows if sampled_rows else None
    shape = launch.shape
    chunk = shape["chunk"] or chunk_rows(rows, mean, max(1, grid) * teams)
    return Work(entry, grid, depth, chunk, shape["lanes"] or subwarp_lanes(steps))


def _count(launch: Launch, work: Work, rows: Array, lists: Array) -> None:
    shape, xp = launch.shape, launch.device.array
    threads = shape["THREADS"]
    scratch = xp.empty(work.grid * _table_bytes(work.depth) // 4, dtype="int32")
    copies = xp.empty(work.grid * threads * shape["COPIES"] if shape["VC"] == PHYSICAL else 1, dtype="int32")
    numbers = map(np.uint32, (work.depth, work.chunk, work.lanes))
    values = (rows, lists, scratch, copies, *numbers, launch.totals)
    launch.run(work.entry, work.grid, threads, *values, shared=shared_bytes(shape))


def subwarp_lanes(steps: Sequence[int]) -> int:
    """Choose how many lanes take a list together, what TRUST's section 6.4 leaves open.

    In a step each lane looks up an entry at most. Lists shorter than the subwarp leave lanes idle, longer ones take
    several steps; where a row has fewer lists than the team has subwarps, whole subwarps have none. So the size is that
    with the fewest steps, counted on a sample of the rows; of equal ones the largest, whose lanes read one list side by
    side.

    Parameters
    ----------
    steps : sequence of int
        Of the sampled rows by subwarps of each of LANES.
    """
    return max(zip(steps, LANES, strict=True), key=lambda pair: (-pair[0], pair[1]))[1]


def chunk_rows(rows: int, mean: float | None, teams: int) -> int:
    """Choose how many rows a team takes at a time, what TRUST's section 4.3 and figure 8 leave open.

    Each turn costs the team an atomic addition that it waits for, so short rows are taken several at a time:
    enough of them for ENTRIES entries, to which the addition is little. But never so many that a team has fewer
    than TURNS turns: then one that is last is late by no more than about a turn of TURNS. Rows of much work
    come alone.

    Speed over one row at a time, by chunk, on an H200 (`dasktc bench papers trust-fig8`, collective order):

    ============ ====== ============= ==== ==== ==== ==== ==== =========
    graph        rows   entries a row 2    4    8    16   32   this rule
    ============ ====== ============= ==== ==== ==== ==== ==== =========
    Kronecker 21 0.9 M  thousands     1.00 0.99 0.98 0.93 0.79 1
    RM 2^24      15.5 M 141           1.43 1.74 1.80 1.80 1.83 7: 1.82
    RA 10^7      9.4 M  79            1.51 2.09 2.25 2.21 2.17 12: 2.22
    3D 300^3     27.0 M 12            1.65 2.28 2.89 2.96 2.96 85: 2.95
    Kronecker 18 0.1 M  thousands     0.88 0.73 0.50 0.33 0.21 1
    RM 2^20      1.0 M  116           1.42 1.65 1.71 1.69 1.59 9: 1.70
    RA 10^6      0.9 M  74            1.47 1.75 1.80 1.78 1.61 12: 1.76
    3D 100^3     1.0 M  12            1.49 1.87 2.02 2.04 1.94 14: 2.00
    ============ ====== ============= ==== ==== ==== ==== ==== =========

    Parameters
    ----------
    rows : int
        Of the team's kind: up to 100 entries for warps, more for thread blocks.
    mean : float or None
        Entries that such a row hashes and looks up, as a sample has them; None where it has none of them.
    teams : int
        Warps or thread blocks that the device runs at a time.
    """
    if mean is None:
        return 1
    return max(1, min(int(ENTRIES // max(mean, 1.0)), rows // (TURNS * teams)))


def teams_of(processors: int) -> tuple[int, int]:
    """Warps and thread blocks that a device runs at a time, with the macros' defaults.

    Parameters
    ----------
    processors : int
        Its multiprocessors.
    """
    blocks = RESIDENT * processors
    return blocks * TRUST["THREADS"] // 32, blocks


def details(facts: Facts | None) -> str:
    """What a team takes at a time, if one task has all rows; a task of fewer rows takes no more."""
    if facts is None:
        return "chunks of rows by each task's own"
    warps, blocks = teams_of(facts.processors)
    mean = (facts.edges + facts.wedges) / max(1, facts.narrow + facts.wide)
    by_warp = chunk_rows(facts.narrow, mean, warps)
    by_block = chunk_rows(facts.wide, max(mean, SMALL_ROW * facts.wedges_per_edge), blocks)
    return (
        f"chunks of up to {by_warp:,} rows a warp, for {facts.narrow:,} rows of 2 to {SMALL_ROW} entries and "
        f"{warps:,} warps, {mean:,.0f} entries to look up a row; of {by_block:,} a thread block, for {facts.wide:,} "
        "longer rows"
    )


def _table_bytes(depth: int) -> int:
    """Scratch of one thread block, the levels in shared memory counted in."""
    return 4 * BUCKETS * depth


def shared_bytes(shape: dict[str, int]) -> int:
    """Bytes of `struct Shared`.

    Parameters
    ----------
    shape : dict of str to int
        The macros.
    """
    return 4 * BUCKETS * (1 + shape["LEVELS"]) + 16 * shape["THREADS"] + 8


def scratch_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Bytes beside a task's blocks, at most.

    Parameters
    ----------
    index_edges, block_edges, columns : int
        As in `Backend`.
    """
    deepest = max(DEPTH, -(-2 * columns // BUCKETS))
    return 4 * columns + max(TRUST_BYTES, _table_bytes(deepest)) + (1 << 12)
