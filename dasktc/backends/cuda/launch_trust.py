"""The launches of `trust`: see kernels/trust.cu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Launch
from dasktc.backends.kernel import SMALL_ROW, Facts
from dasktc.backends.kernel_files import macros
from dasktc.wording import plural

__all__ = [
    "LANES",
    "SETTINGS",
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

PHYSICAL = 2
"""Value of VC with which lists are copied."""
LANES = (8, 16, 32)
"""Sizes of subwarps (section 4.2)."""
TRUST_BYTES = 512 << 20
"""Scratch of the `trust` kernel's tables (section 3.1), unless one table alone is larger."""
ROOM = {"trust_block": 1 << 15, "trust_warp": 1 << 11}
"""Entries, at least, for which a table has room: 4 per bucket, if buckets are as many as the macros' defaults. In the
paper 128 (section 3.2), of fewer buckets."""
ENTRIES = 4096
"""About how many entries a chunk hashes and looks up, where there are many rows."""
TURNS = 4
"""Least number of chunks per team, where a chunk has more than one row."""
SETTINGS = {"chunk": 0, "lanes": 0, "turns": TURNS, "scratch": TRUST_BYTES}
"""`chunk`: rows that a team takes in one turn; `lanes`: lanes of the subwarp that takes a list, where lists are not
combined; 0: as `chunk_rows` and `subwarp_lanes` choose."""


class Work(NamedTuple):
    """Launch parameters of one kind of team: entry point, thread blocks, entries per bucket, rows per turn, lanes."""

    entry: str
    grid: int
    depth: int
    chunk: int
    lanes: int


def trust(launch: Launch) -> None:
    """Launch `trust`: sort the rows by kind of team, then count them."""
    rows, lists, work = _deal_rows(launch)
    for kind in work:
        if kind.grid:
            _count(launch, kind, rows, lists)


def chunks(launch: Launch) -> tuple[int, int]:
    """Number of rows that a warp, and that a thread block, takes in one turn."""
    block_work, warp_work = _deal_rows(launch)[2]
    return warp_work.chunk, block_work.chunk


def lanes(launch: Launch) -> tuple[int, int]:
    """Number of lanes in the subwarps of a warp, and of a thread block, where lists are not combined."""
    block_work, warp_work = _deal_rows(launch)[2]
    return warp_work.lanes, block_work.lanes


def _deal_rows(launch: Launch) -> tuple[Array, Array, list[Work]]:
    """Deal the rows to warps and thread blocks; return them, `struct Lists`, and the launches, that of blocks first."""
    shape, xp = launch.shape, launch.device.array
    rows, teams = xp.empty(int(launch.fields["rows"][0]), dtype="uint32"), shape["THREADS"] // 32
    lists, samples = xp.zeros(6, dtype="uint32"), xp.zeros((2, 2 + len(LANES)), dtype="uint64")
    launch.spread("trust_rows", len(rows), rows, lists, samples, launch.totals)
    warp_rows, block_rows, _, _, longest, _ = (int(number) for number in lists.tolist())
    warp_sample, block_sample = samples.tolist()
    return rows, lists, [
        _work(launch, "trust_block", block_rows, 1, longest, block_sample),
        _work(launch, "trust_warp", warp_rows, teams, SMALL_ROW if shape["CO"] else longest, warp_sample),
    ]  # fmt: skip


def _work(launch: Launch, entry: str, rows: int, teams: int, longest: int, sample: list[int]) -> Work:
    """Choose the launch of one kind: as many blocks of `teams` teams as the device and the scratch can hold."""
    shape = launch.shape
    depth = -(-max(ROOM[entry], 2 * longest) * teams // _buckets(shape)[entry])
    blocks = shape["RESIDENT"] // shape["THREADS"] * launch.device.processors
    blocks = min(blocks, max(1, shape["scratch"] // max(1, _table_bytes(shape, entry, depth))))
    grid, (sampled_rows, entries, *steps) = min(blocks, -(-rows // teams)), sample
    mean = entries / sampled_rows if sampled_rows else None
    chunk = shape["chunk"] or chunk_rows(rows, mean, max(1, grid) * teams, shape["turns"])
    return Work(entry, grid, depth, chunk, shape["lanes"] or subwarp_lanes(steps))


def _count(launch: Launch, work: Work, rows: Array, lists: Array) -> None:
    shape, xp = launch.shape, launch.device.array
    threads = shape["THREADS"]
    scratch = xp.empty(max(1, work.grid * _table_bytes(shape, work.entry, work.depth) // 4), dtype="uint32")
    copies = xp.empty(work.grid * threads * shape["COPIES"] if shape["VC"] == PHYSICAL else 1, dtype="int32")
    numbers = map(np.uint32, (work.depth, work.chunk, work.lanes))
    values = (rows, lists, scratch, copies, *numbers, launch.totals)
    launch.run(work.entry, work.grid, threads, *values, shared=shared_bytes(shape, work.entry))


def subwarp_lanes(steps: Sequence[int]) -> int:
    """Choose how many lanes take a list together, which TRUST's section 6.4 leaves open.

    In one step each lane looks up at most one entry. Lists shorter than the subwarp leave lanes idle, and longer ones
    take several steps; where a row has fewer lists than the team has subwarps, whole subwarps are idle. So the size is
    that with the fewest steps, counted on a sample of the rows; among equals the largest, whose lanes read adjacent
    entries of one list.

    Parameters
    ----------
    steps : sequence of int
        Steps of the sampled rows, for subwarps of each of LANES.
    """
    return max(zip(steps, LANES, strict=True), key=lambda pair: (-pair[0], pair[1]))[1]


def chunk_rows(rows: int, mean: float | None, teams: int, turns: int = TURNS) -> int:
    """Choose how many rows a team takes in one turn, which TRUST's section 4.3 and figure 8 leave open.

    Each turn costs the team an atomic addition that it waits for, and a warp takes as many short rows of a chunk at
    the same time as its buckets have room for, so several short rows are taken in one turn: enough for ENTRIES entries,
    compared to which the addition is cheap. But a team always has at least `turns` turns, so that the last team to
    finish is late by at most about a turn in `turns`. Rows with much work are taken singly.

    Speed over one row at a time, by chunk, on an H200, in degree order; RA with 8 edges a vertex. Of the small RM, RA
    and 3D, 32 is the size nearest to the rule's that was measured:

    ============ ====== ============= ==== ==== ==== ==== ==== ==== ==========
    graph        rows   entries a row 2    4    8    16   32   64   this rule
    ============ ====== ============= ==== ==== ==== ==== ==== ==== ==========
    Kronecker 21 0.9 M  thousands     0.98 0.95 0.90 0.82 0.67 0.55 1
    RM 2^24      15.5 M 141           1.52 1.95 2.29 2.68 2.94 3.02 29: 2.88
    RA 10^7      9.4 M  51            1.56 1.95 2.25 2.80 3.42 3.62 80: 3.57
    3D 300^3     27.0 M 12            1.93 3.66 6.78 11.6 18.6 21.6 341: 19.8
    Kronecker 18 0.1 M  thousands     0.91 0.84 0.73 0.53 0.33 0.18 1
    RM 2^20      1.0 M  116           1.57 2.11 2.56 2.68 2.63 2.38 35
    RA 10^6      0.9 M  51            1.54 2.19 2.66 3.12 3.31 3.18 37
    3D 100^3     1.0 M  12            1.70 2.86 4.17 5.71 6.67 6.60 39
    ============ ====== ============= ==== ==== ==== ==== ==== ==== ==========

    Parameters
    ----------
    rows : int
        Number of rows of the team's kind: up to 100 entries for warps, more for thread blocks.
    mean : float or None
        Entries that such a row hashes and looks up, on average in a sample; None where the sample has no such row.
    teams : int
        Warps or thread blocks that the device runs at the same time.
    turns : int
        Least number of chunks per team.
    """
    if mean is None:
        return 1
    return max(1, min(int(ENTRIES // max(mean, 1.0)), rows // (turns * teams)))


def teams_of(processors: int) -> tuple[int, int]:
    """Number of warps and of thread blocks that a device runs at the same time, with the macros' defaults."""
    shape = macros("trust")
    blocks = shape["RESIDENT"] // shape["THREADS"] * processors
    return blocks * shape["THREADS"] // 32, blocks


def details(facts: Facts | None) -> str:
    """Say, for the plan, what a team takes in one turn if one task has all rows; tasks with fewer rows take no more."""
    if facts is None:
        return "chunks of rows by each task's own"
    warps, blocks = teams_of(facts.processors)
    mean = (facts.edges + facts.wedges) / max(1, facts.narrow + facts.wide)
    warp_chunk = chunk_rows(facts.narrow, mean, warps)
    block_chunk = chunk_rows(facts.wide, max(mean, SMALL_ROW * facts.wedges_per_edge), blocks)
    return (
        f"chunks of up to {plural(warp_chunk, 'row')} a warp, for {plural(facts.narrow, 'row')} of 2 to {SMALL_ROW} "
        f"entries and {warps:,} warps, {mean:,.0f} entries to look up a row; of {block_chunk:,} a thread block, for "
        f"{facts.wide:,} longer rows"
    )


def _table_bytes(shape: Mapping[str, int], entry: str, depth: int) -> int:
    """Scratch bytes of one thread block: levels of its tables beyond those in shared memory."""
    return 4 * _buckets(shape)[entry] * max(0, depth - shape["LEVELS"])


def _buckets(shape: Mapping[str, int]) -> dict[str, int]:
    """Buckets of one thread block's tables, by entry point."""
    return {
        "trust_block": shape["BLOCK_BUCKETS"],
        "trust_warp": shape["WARP_BUCKETS"] * (shape["THREADS"] // 32),
    }


def shared_bytes(shape: Mapping[str, int], entry: str) -> int:
    """Bytes of shared memory of an entry point's thread block, `struct Shared` and its tables, from the macros."""
    return 16 * shape["THREADS"] + 8 + 4 * shape["LEVELS"] * _buckets(shape)[entry]


def scratch_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of `trust` beside a task's blocks."""
    return 4 * columns + max(TRUST_BYTES, 4 * (2 * columns + ROOM["trust_block"])) + (1 << 12)
