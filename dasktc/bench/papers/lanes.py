"""Counts lanes, sectors, reads and cache lines, to explain how layouts and vertex orders change TRUST's time.

A warp's step looks up to 32 entries up. Where a list is shorter than its team of lanes, lanes idle; whatever the
layout, the list's 32-byte sectors are read. What lanes can save is limited by the share of the time that lookups
take. An order of ids decides which entries share a bucket, and how close together the rows lie that are asked for
most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import get_backend
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.backends.cuda.launch_trust import LANES as SUBWARPS
from dasktc.backends.cuda.launch_trust import shared_bytes, subwarp_lanes
from dasktc.backends.kernel_files import macros as defaults_of
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.graphs import Case
from dasktc.bench.papers.loops import level_reads

__all__ = [
    "Lists",
    "at_most",
    "held",
    "hot_bytes",
    "idle_lanes",
    "lists_of",
    "reads_a_lookup",
    "ruled_lanes",
    "sectors",
    "warp_steps",
]

WARP = 32
LANES = (32, 8, 16)
SECTOR, LINE = 8, 16
"""Columns (32 bits) of a sector of 32 bytes, offsets (64 bits) of a line of 128."""
SAMPLE, WINDOWS = 1 << 21, 64
"""Edges of which rows are looked at, about, and in how many windows of rows that follow each other."""
EVERY = 32
"""Rows of which a launch of `trust` samples one."""
HOT = 0.9
"""Share of the lists."""


class Lists(NamedTuple):
    """The streamed lists as arrays: row, place in the row, first column, length."""

    row: Any
    place: Any
    first: Any
    size: Any


def lists_of(block: OrientedCSR) -> Lists:
    """The lists of a whole graph's rows; of a large one, those of some windows of rows.

    Parameters
    ----------
    block : OrientedCSR
    """
    offsets = on_host(block.offsets)
    rows = _rows(offsets)
    edges = [(int(offsets[a]), int(offsets[b])) for a, b in rows]
    columns = np.concatenate([on_host(block.columns[a:b]) for a, b in edges] or [np.zeros(0, "int32")])
    place = np.concatenate([np.arange(a, b) for a, b in edges] or [np.zeros(0, "int64")])
    row = np.searchsorted(offsets, place, side="right") - 1
    return Lists(row, place - offsets[row], offsets[columns], offsets[columns + 1] - offsets[columns])


def _rows(offsets: Any) -> list[tuple[int, int]]:
    """Ranges of rows with about SAMPLE edges together."""
    last, edges = len(offsets) - 1, int(offsets[-1])
    if edges <= SAMPLE:
        return [(0, last)] if edges else []
    begins = offsets.searchsorted(np.arange(WINDOWS) * edges // WINDOWS, side="left")
    ends = offsets.searchsorted(offsets[begins] + SAMPLE // WINDOWS, side="left")
    return [(int(a), int(b)) for a, b in zip(begins, np.minimum(ends, [*begins[1:], last]), strict=True) if a < b]


def warp_steps(lists: Lists) -> dict[str, int]:
    """Steps of all warps, a warp a row, by layout of its lists.

    Parameters
    ----------
    lists : Lists

    Returns
    -------
    dict of str to int
    """
    row = np.unique(lists.row, return_inverse=True)[1]
    steps = {lanes: _rounds(row, lists.place, lists.size, lanes) for lanes in LANES}
    entries = np.bincount(row, lists.size).astype("int64") if len(row) else np.zeros(1, "int64")
    together = int(-(-entries // WARP).sum())
    return {
        "WC": steps[32],
        "SW (8)": steps[8],
        "SW (16)": steps[16],
        "PC": steps[32] + together,
        "VC": together,
    }


def ruled_lanes(block: OrientedCSR) -> int:
    """The subwarp that a launch of `trust` would choose for a graph whose rows are all for warps.

    Parameters
    ----------
    block : OrientedCSR
    """
    offsets, columns = on_host(block.offsets), on_host(block.columns)
    row = np.arange(0, block.rows, EVERY)
    degree = offsets[row + 1] - offsets[row]
    row, degree = row[degree > 1], degree[degree > 1]
    middle = columns[offsets[row] + degree // 2]
    size = offsets[middle + 1] - offsets[middle]
    return subwarp_lanes([int((-(-degree * lanes // WARP) * -(-size // lanes)).sum()) for lanes in SUBWARPS])


def _rounds(row: Any, place: Any, size: Any, lanes: int) -> int:
    """Steps where subwarps take a row's lists in turn, each its own, and wait for each other at the end of the row."""
    teams = WARP // lanes
    if not len(row):
        return 0
    busy = np.bincount(row * teams + place % teams, -(-size // lanes), minlength=(int(row.max()) + 1) * teams)
    return int(busy.reshape(-1, teams).max(axis=1).sum())


def sectors(lists: Lists, lanes: int) -> int:
    """Sectors that teams of so many lanes read, a list a team; with 0 each sector of a list once, as if combined.

    Parameters
    ----------
    lists : Lists
    lanes : int
        A multiple of 8.
    """
    shift = lists.first % SECTOR
    if not lanes:
        return int(((shift + lists.size + SECTOR - 1) // SECTOR * (lists.size > 0)).sum())
    rest = lists.size % lanes
    whole = lists.size // lanes * (lanes // SECTOR + (shift > 0))
    return int((whole + (rest > 0) * ((shift + rest + SECTOR - 1) // SECTOR)).sum())


def idle_lanes(lists: Lists) -> float:
    """The share of lanes that have no entry, a warp a list.

    Parameters
    ----------
    lists : Lists
    """
    steps = warp_steps(lists)["WC"]
    return 1 - float(lists.size.sum()) / (WARP * steps) if steps else 0.0


def at_most(bench: Bench, case: Case, order: str, whole: float) -> str:
    """Say how much fewer idle lanes could gain at most, and from what that follows.

    Parameters
    ----------
    bench : Bench
        On a GPU.
    case : Case
    order : str
    whole : float
        Seconds of a warp a list.
    """
    lists = lists_of(bench.block(case, order))
    steps = warp_steps(lists)
    built = bench.part(case, order, "trust", {"VC": 0, "STEPS": 1, "lanes": 32})
    share = max(0.0, 1 - built / whole)
    most = 1 / (1 - share * (1 - steps["VC"] / max(1, steps["WC"])))
    read = sectors(lists, WARP) / max(1, sectors(lists, 0))
    return (
        f"{case.name} at most {most:.2f} ({100 * idle_lanes(lists):.0f} % of lanes idle in {100 * share:.0f} % of the "
        f"time; {read:.2f} times the sectors)"
    )


def held() -> str:
    """Say how many threads of `trust` a multiprocessor holds, by layout."""
    from dasktc.bench.papers.device import occupancy

    shared = shared_bytes(defaults_of("trust"), "trust_warp")
    layouts = {"WC": {"VC": 0}, "VC": {"VC": 1}}
    of = {
        name: occupancy("trust", "trust_warp", macros, defaults_of("trust")["THREADS"], shared)
        for name, macros in layouts.items()
    }
    return "; ".join(f"{name}: {taken}" for name, taken in of.items())


def reads_a_lookup(bench: Bench, case: Case, order: str) -> float:
    """Bucket entries that `trust` compares for each entry that it looks up.

    Parameters
    ----------
    bench : Bench
    case : Case
    order : str
    """
    lookups = bench.count(case, order, "trust").probes
    if bench.cuda:
        reads = bench.count(case, order, "trust", {"READS": 1}).probes
    else:
        reads = int(level_reads(bench.task(case, order), 1).sum())
    return reads / lookups if lookups else 0.0


def hot_bytes(bench: Bench, case: Case, order: str) -> int:
    """Bytes of the hottest cache lines of `stream.offsets`, which serve nine tenths of the lookups.

    Parameters
    ----------
    bench : Bench
    case : Case
    order : str
    """
    block = bench.block(case, order)
    asked = on_host(get_backend(bench.backend).array.bincount(block.columns, minlength=block.rows))
    lines = np.add.reduceat(asked, np.arange(0, len(asked), LINE)) if len(asked) else asked
    served = np.cumsum(np.sort(lines)[::-1])
    return int(8 * LINE * (np.searchsorted(served, HOT * served[-1]) + 1)) if len(served) and served[-1] else 0
