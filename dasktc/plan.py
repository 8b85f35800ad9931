"""Planners: which block triples a count is made of, and whether a task fits a worker's memory.

A planner names blocks P[i][j] of the oriented graph, the edges (u, v) with u % n = i and v % n = j:

whole    the one block of n = 1 in all three roles: replicate the graph, split its rows
         (TRUST, section 5.1).
hash2d   (P[i][k], P[i][j], P[k][j]) for all i, j, k: n² blocks, n³ tasks (TRUST, sections 5.2, 5.3).

Each task is cut in m splits by rows. Bytes are arithmetic on the blocks' edges, known before any
block is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from dasktc.errors import InputError

__all__ = ["PLANNERS", "Block", "Limits", "Plan", "Scratch", "Triple", "make_plan"]

Block = tuple[int, int]
Scratch = Callable[[int, int], int]
"""Bytes of kernel scratch for (index edges, table columns)."""
Grid = Callable[[int], "np.ndarray[Any, np.dtype[np.int64]]"]
"""Edges in each block of the n × n partition, shape (n, n)."""

MAX_PARTS = 64
MAX_TRIPLES = 10**6
BYTES_PER_EDGE, BYTES_PER_ROW = 4, 8


@dataclass(frozen=True, order=True)
class Triple:
    """The three blocks of a counting task, by their places (i, j) in the 2D partition."""

    index: Block
    table: Block
    stream: Block

    @property
    def places(self) -> tuple[Block, Block, Block]:
        """The three places, index first."""
        return self.index, self.table, self.stream


def whole(parts: int) -> Iterator[Triple]:
    """Emit the whole graph in all three roles."""
    yield Triple((0, 0), (0, 0), (0, 0))


def hash2d(parts: int) -> Iterator[Triple]:
    """Emit TRUST's n³ triples."""
    for i, j, k in product(range(parts), repeat=3):
        yield Triple((i, k), (i, j), (k, j))


PLANNERS: dict[str, Callable[[int], Iterator[Triple]]] = {"whole": whole, "hash2d": hash2d}


@dataclass(frozen=True)
class Limits:
    """What the cluster offers and what the caller asked for.

    Attributes
    ----------
    workers : int
        Tasks that run at a time.
    memory : int
        Bytes that one task may use.
    partition : {"auto", "whole", "hash2d"}
    parts, splits : int or None
        n and m where the caller set them, 1 or more.
    """

    workers: int
    memory: int
    partition: str = "auto"
    parts: int | None = None
    splits: int | None = None


@dataclass(frozen=True)
class Plan:
    """What a count will run.

    Attributes
    ----------
    partition : str
        The planner.
    parts, splits : int
        n and m.
    vertices, edges : int
    tasks : int
        Counting tasks: triples times splits.
    bytes_per_task : int
        Blocks, each once, and scratch of the largest task.
    bytes_total : int
        All blocks, each once.
    block_edges_min, block_edges_max : int
        Edges of the smallest and the largest block.
    memory, workers : int
        What was planned for.
    fits : bool
    why : str
        How n and m were chosen, or what does not fit.
    """

    partition: str
    parts: int
    splits: int
    vertices: int
    edges: int
    tasks: int
    bytes_per_task: int
    bytes_total: int
    block_edges_min: int
    block_edges_max: int
    memory: int
    workers: int
    fits: bool
    why: str

    def triples(self) -> Iterator[Triple]:
        """Emit the block triples, before splitting."""
        return PLANNERS[self.partition](self.parts)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            ("graph", f"{self.vertices:,} vertices, {self.edges:,} edges"),
            ("partition", self.partition),
            ("n (parts)", f"{self.parts:,}"),
            ("m (splits)", f"{self.splits:,}"),
            ("tasks", f"{self.tasks:,}"),
            ("bytes a task", f"{self.bytes_per_task:,} ({size(self.bytes_per_task)})"),
            ("bytes in all", f"{self.bytes_total:,} ({size(self.bytes_total)})"),
            ("for", f"{self.workers:,} at a time, {size(self.memory)} each"),
            ("fits", "yes" if self.fits else "NO"),
            ("why", self.why),
        ]
        return "\n".join(f"{name:<14}{text}" for name, text in rows)

    @property
    def space_imbalance(self) -> float | None:
        """Edges of the largest over those of the smallest block (TRUST, table 6)."""
        return self.block_edges_max / self.block_edges_min if self.block_edges_min else None


def make_plan(vertices: int, edges: int, grid: Grid, scratch: Scratch, limits: Limits) -> Plan:
    """Choose planner, n and m: the smallest n whose largest task fits.

    Parameters
    ----------
    vertices, edges : int
    grid : callable (n) -> array of int64, shape (n, n)
        Edges in each block.
    scratch : callable (index_edges, table_columns) -> int
    limits : Limits

    Returns
    -------
    Plan
        Whether it fits is in the plan; counting one that does not is refused.
    """
    plan = None
    for partition, parts in _candidates(vertices, edges, limits):
        plan = _plan(partition, parts, vertices, edges, grid(parts), scratch, limits)
        if plan.fits:
            break
    assert plan is not None
    return plan


def _candidates(vertices: int, edges: int, limits: Limits) -> Iterator[tuple[str, int]]:
    """Emit the (planner, n) worth looking at, the wanted one first and at least one."""
    if limits.partition == "whole" or (limits.partition == "auto" and limits.parts == 1):
        yield "whole", 1
        return
    if limits.parts is not None:
        if limits.parts**3 > MAX_TRIPLES:
            raise InputError(
                f"--parts {limits.parts} makes {limits.parts**3:,} block triples, {MAX_TRIPLES:,} at most can be "
                "scheduled: blocks would be tiny; give a smaller n, or leave it out"
            )
        yield "hash2d", limits.parts
        return
    if limits.partition == "auto":
        yield "whole", 1
    first = 2 if limits.partition == "auto" else 1
    possible = (n for n in range(first, MAX_PARTS + 1) if _least_bytes(vertices, edges, n) <= limits.memory)
    yield from (("hash2d", n) for n in possible)
    yield "hash2d", MAX_PARTS


def _least_bytes(vertices: int, edges: int, parts: int) -> int:
    """What a task needs at the least: one block of E/n² edges.

    TRUST's guess is three of them (section 6.5), which a skewed graph can do with less than.
    """
    return BYTES_PER_EDGE * edges // parts**2 + BYTES_PER_ROW * (vertices // parts)


def _plan(partition: str, parts: int, vertices: int, edges: int, grid: Any, scratch: Scratch, limits: Limits) -> Plan:
    triples = list(PLANNERS[partition](parts))
    splits = limits.splits or -(-4 * limits.workers // len(triples))
    rows = max(1, -(-vertices // parts))
    block_bytes = BYTES_PER_EDGE * grid + BYTES_PER_ROW * (rows + 1)
    largest, triple = max((_task_bytes(t, grid, block_bytes, rows, splits, scratch), t) for t in triples)
    fits = largest <= limits.memory
    return Plan(
        partition=partition,
        parts=parts,
        splits=splits,
        vertices=vertices,
        edges=edges,
        tasks=len(triples) * splits,
        bytes_per_task=largest,
        bytes_total=int(block_bytes.sum()),
        block_edges_min=int(grid.min()),
        block_edges_max=int(grid.max()),
        memory=limits.memory,
        workers=limits.workers,
        fits=fits,
        why=_why(partition, parts, largest, triple, limits),
    )


def _task_bytes(triple: Triple, grid: Any, block_bytes: Any, rows: int, splits: int, scratch: Scratch) -> int:
    blocks = sum(int(block_bytes[place]) for place in set(triple.places))
    return blocks + scratch(-(-int(grid[triple.index]) // splits), rows)


def _why(partition: str, parts: int, largest: int, triple: Triple, limits: Limits) -> str:
    need = f"{partition} at n = {parts} needs {size(largest)} for its largest task"
    budget = f"the {size(limits.memory)} of one worker"
    if largest <= limits.memory:
        return f"{need}, within {budget}"
    blocks = ", ".join(f"P[{i}][{j}]" for i, j in sorted(set(triple.places)))
    return f"{need} (blocks {blocks}), more than {budget}"


def size(count: float) -> str:
    """Bytes for people: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{count:.3g}") < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"
