"""Planners: which block triples a count is made of, and whether a task fits a worker's memory.

A planner names blocks P[i][j] of the oriented graph, the edges (u, v) with u % n = i and v % n = j:

whole    the one block of n = 1 in all three roles: replicate the graph, split its rows
         (TRUST, section 5.1).
edges    the same, its edges split into equal ranges (H-INDEX: Pandey et al., HPEC 2019, section III).
hash2d   (P[i][k], P[i][j], P[k][j]) for all i, j, k: n² blocks, n³ tasks (TRUST, sections 5.2, 5.3).

Each task is cut in m splits, by rows but for `edges`. Bytes are arithmetic on the blocks' edges, known before any
block is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dasktc.errors import InputError

__all__ = ["PLANNERS", "Block", "Limits", "Plan", "Scratch", "Triple", "make_plan"]

Block = tuple[int, int]
Scratch = Callable[[int, int, int], int]
"""Bytes of kernel scratch for (a task's index edges, edges of the largest block, columns)."""
Grid = Callable[[int], "np.ndarray[Any, np.dtype[np.int64]]"]
"""Edges in each block of the n × n partition, shape (n, n)."""

Places = np.ndarray[Any, np.dtype[np.int64]]
"""Block triples, shape (triples, 3): index, table, stream, with P[i][j] as i·n + j."""

REPLICATED = ("whole", "edges")
"""Planners of which every task has the whole graph."""

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


def whole(parts: int) -> Places:
    """Emit the whole graph in all three roles."""
    return np.zeros((1, 3), dtype="int64")


def hash2d(parts: int) -> Places:
    """Emit TRUST's n³ triples."""
    i, j, k = np.indices((parts,) * 3).reshape(3, -1)
    return np.stack([i * parts + k, i * parts + j, k * parts + j], axis=1)


PLANNERS: dict[str, Callable[[int], Places]] = {"whole": whole, "edges": whole, "hash2d": hash2d}


@dataclass(frozen=True)
class Limits:
    """What the cluster offers and what the caller asked for.

    Attributes
    ----------
    workers : int
        Tasks that run at a time.
    memory : int
        Bytes that one task may use.
    partition : {"auto", "whole", "edges", "hash2d"}
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
        for places in PLANNERS[self.partition](self.parts).tolist():
            yield Triple(*(divmod(place, self.parts) for place in places))

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Rows of (name, text) for people."""
        return [
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

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self.rows())

    @property
    def cut(self) -> str:
        """What the splits cut the index block by: "edges" or "rows"."""
        return "edges" if self.partition == "edges" else "rows"

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
    scratch : callable (index_edges, block_edges, columns) -> int
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
    if limits.partition in REPLICATED:
        yield limits.partition, 1
        return
    if limits.partition == "auto" and limits.parts == 1:
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
    possible = (n for n in range(first, MAX_PARTS) if _least_bytes(vertices, edges, n) <= limits.memory)
    yield from (("hash2d", n) for n in possible)
    yield "hash2d", MAX_PARTS


def _least_bytes(vertices: int, edges: int, parts: int) -> int:
    """The mean bytes of a task's blocks: the largest task has at least these.

    TRUST's 3|E|/n² edges (section 6.5), less the blocks that stand twice in one of the n³ triples.
    """
    total = BYTES_PER_EDGE * edges + BYTES_PER_ROW * (_rows(vertices, parts) + 1) * parts**2
    return (3 * parts - 2) * total // parts**3


def _rows(vertices: int, parts: int) -> int:
    return max(1, -(-vertices // parts))


def _plan(partition: str, parts: int, vertices: int, edges: int, grid: Any, scratch: Scratch, limits: Limits) -> Plan:
    triples, rows = PLANNERS[partition](parts), _rows(vertices, parts)
    splits = limits.splits or -(-4 * limits.workers // len(triples))
    block_bytes = BYTES_PER_EDGE * grid + BYTES_PER_ROW * (rows + 1)
    largest_block = int(grid.max())
    scratches = np.array([scratch(-(-held // splits), largest_block, rows) for held in grid.ravel().tolist()])
    needed = _task_bytes(triples, block_bytes.ravel()) + scratches[triples[:, 0]]
    if partition == "edges":
        needed += 2 * BYTES_PER_ROW * (rows + 1)  # offsets of the range, made in two steps
    largest = int(needed.max())
    blocks = sorted(divmod(place, parts) for place in set(triples[needed.argmax()].tolist()))
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
        block_edges_max=largest_block,
        memory=limits.memory,
        workers=limits.workers,
        fits=fits,
        why=_why(partition, parts, largest, blocks, limits),
    )


def _task_bytes(triples: Places, block_bytes: Any) -> Any:
    """Bytes of each triple's blocks, each once."""
    index, table, stream = triples.T
    once = block_bytes[index] + block_bytes[table] * (table != index)
    return once + block_bytes[stream] * ((stream != index) & (stream != table))


def _why(partition: str, parts: int, largest: int, blocks: list[Block], limits: Limits) -> str:
    need = f"{partition} at n = {parts} needs {size(largest)} for its largest task"
    budget = f"the {size(limits.memory)} of one worker"
    if largest <= limits.memory:
        return f"{need}, within {budget}"
    named = ", ".join(f"P[{i}][{j}]" for i, j in blocks)
    return f"{need} (blocks {named}), more than {budget}"


def size(count: float) -> str:
    """Bytes for people: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{count:.3g}") < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"
