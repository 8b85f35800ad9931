"""The plan: planner, n and m, and whether a task fits a worker's memory.

Bytes are arithmetic on the blocks' edges and rows, known before any block is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

from dasktc.errors import InputError, shown
from dasktc.planning.memory_model import BYTES_PER_EDGE, BYTES_PER_ROW, Scratch, Sizes, block_bytes, task_bytes
from dasktc.planning.schemes import PLANNERS, Block, Numbers, Planner, Triple

__all__ = ["Limits", "Measure", "Plan", "Proxies", "make_plan", "size", "splits_for"]

MAX_PARTS = 64
MAX_TASKS = 10**6
"""What a scheduler is given at the most: block triples, and these times splits."""
WORTH_TRYING = {"proxy": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)}
"""Values of n that `proxy` tries where none is given: each costs passes over all edges."""

Measure = Callable[[str, int], Sizes]
"""Sizes of the blocks of a planner's grid at n."""


class Proxies(NamedTuple):
    """What LSTC's transformation does to one part (tables 3 and 4): vertices and edges before and after.

    Attributes
    ----------
    vertices_induced, vertices, edges_induced, edges : int
        V_ind, V_res, E_ind and E_res.
    """

    vertices_induced: int
    vertices: int
    edges_induced: int
    edges: int


@dataclass(frozen=True)
class Limits:
    """What the cluster offers and what the caller asked for.

    Attributes
    ----------
    workers : int
        Tasks that run at a time.
    memory : int
        Bytes that one task may use.
    partition : {"auto", "whole", "edges", "hash2d", "vertical", "proxy"}
    parts, splits : int or None
        n and m where the caller set them, 1 or more. More parts than vertices are taken as V, more splits than the
        rows (for `edges` the edges) of the largest index block as these: the others would be empty.
    tasks_a_worker : int
        So many at least where the caller set no splits, as far as there are rows or edges to split.
    least_parts : int
        The smallest n to try.
    """

    workers: int
    memory: int
    partition: str = "auto"
    parts: int | None = None
    splits: int | None = None
    tasks_a_worker: int = 4
    least_parts: int = 1


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
        Edges of the smallest and the largest block that is a table.
    memory, workers : int
        What was planned for.
    fits : bool
    why : str
        How n and m were chosen, or what does not fit.
    choice : str
        How kernel and order were chosen.
    proxies : tuple of Proxies
        One a part of `proxy`.
    lean : bool
        Fits with the scratch of a leaner kernel alone.
    shards, numbering : int and str
        How vertices are kept while they are numbered and ranked (1: in whole vectors), and why.
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
    choice: str = ""
    proxies: tuple[Proxies, ...] = ()
    lean: bool = False
    shards: int = 1
    numbering: str = ""

    @property
    def planner(self) -> Planner:
        """The planner itself."""
        return PLANNERS[self.partition]

    def triples(self) -> Iterator[Triple]:
        """Emit the block triples, before splitting."""
        columns = self.planner.columns(self.parts)
        for places in self.planner.triples(self.parts).tolist():
            yield Triple(*(divmod(place, columns) for place in places))

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return asdict(self) | {"proxies": [part._asdict() for part in self.proxies]}

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
            *((name, text) for name, text in (("choice", self.choice), ("prepared", self.numbering)) if text),
            *((f"G_{part}", _kept(sizes)) for part, sizes in enumerate(self.proxies)),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self.rows())

    @property
    def cut(self) -> str:
        """What the splits cut the index block by: "edges" or "rows"."""
        return self.planner.cut

    @property
    def space_imbalance(self) -> float | None:
        """Edges of the largest over those of the smallest block (TRUST, table 6)."""
        return self.block_edges_max / self.block_edges_min if self.block_edges_min else None


def make_plan(
    vertices: int, edges: int, measure: Measure, scratch: Scratch, limits: Limits, lean: Scratch | None = None
) -> Plan:
    """Choose planner, n and m: the smallest n whose largest task fits.

    Before the graph is cut into parts, or refused, the leaner kernel is tried.

    Parameters
    ----------
    vertices, edges : int
    measure : callable (partition, n) -> Sizes
    scratch : callable (TaskSize) -> int
    limits : Limits
    lean : callable (TaskSize) -> int, optional
        Scratch of a leaner kernel.

    Returns
    -------
    Plan
        Whether it fits is in the plan; counting one that does not is refused.
    """
    candidates: Iterator[Any] = chain(_candidates(vertices, edges, limits), [None])
    for (partition, parts), after in pairwise(candidates):
        graph = (partition, parts, vertices, edges, measure(partition, parts))
        plan = _plan(*graph, scratch, limits)
        if plan.fits:
            break
        whole = PLANNERS[partition].replicated or after is None
        if lean is not None and whole and (leaner := _plan(*graph, lean, limits)).fits:
            plan = replace(leaner, lean=True, why=f"{leaner.why}; {plan.why} with the usual kernel")
            break
    return replace(plan, why="; ".join([plan.why, *_taken(plan, limits)]))


def _taken(plan: Plan, limits: Limits) -> Iterator[str]:
    """What was asked for and is more than the graph has."""
    ignored = limits.partition != "auto" and PLANNERS[limits.partition].replicated
    if limits.parts is not None and limits.parts > plan.parts and not ignored:
        yield f"--parts {shown(limits.parts)} is taken as {plan.parts:,}: {plan.vertices:,} vertices make no more parts"
    if limits.splits is not None and limits.splits > plan.splits:
        most = f"the largest index block has no more {plan.cut}"
        yield f"--splits {shown(limits.splits)} is taken as {plan.splits:,}: {most}"


def _candidates(vertices: int, edges: int, limits: Limits) -> Iterator[tuple[str, int]]:
    """Emit the (planner, n) worth looking at, the wanted one first and at least one."""
    partition = "hash2d" if limits.partition == "auto" else limits.partition
    if PLANNERS[partition].replicated:
        yield partition, 1
        return
    most = max(1, vertices)  # more parts than vertices make no block smaller
    asked = None if limits.parts is None else min(limits.parts, most)
    if limits.partition == "auto" and asked in (None, 1) and limits.least_parts == 1:
        yield "whole", 1
        if most == 1 or asked == 1:
            return
    if asked is not None:
        _refuse_too_many(partition, asked, limits)
        yield partition, asked
        return
    first = max(limits.least_parts, 2 if limits.partition == "auto" else 1)
    most = min(MAX_PARTS, max(first, most))
    tried = (n for n in WORTH_TRYING.get(partition, range(1, MAX_PARTS)) if first <= n < most)
    yield from ((partition, n) for n in tried if _least(partition, vertices, edges, n) <= limits.memory)
    yield partition, most


def _refuse_too_many(partition: str, parts: int, limits: Limits) -> None:
    triples, asked = parts if partition == "proxy" else parts**3, shown(limits.parts)
    if partition == "proxy" and parts > MAX_PARTS:
        raise InputError(
            f"--parts {asked} is more than the {MAX_PARTS} that --partition proxy takes: a vertex's parts are bits of "
            "one number; give a smaller n, or leave it out"
        )
    if triples > MAX_TASKS:
        raise InputError(
            f"--parts {asked} makes {triples:,} block triples, {MAX_TASKS:,} at most can be "
            "scheduled: blocks would be tiny; give a smaller n, or leave it out"
        )


def _least(partition: str, vertices: int, edges: int, parts: int) -> float:
    """The mean bytes of a task's blocks: the largest task has at least these.

    For `hash2d` TRUST's 3|E|/n² edges (section 6.5), less the blocks that stand twice in one of the n³ triples.
    """
    columns, rows = PLANNERS[partition].least(parts)
    return BYTES_PER_EDGE * edges * columns + BYTES_PER_ROW * vertices * rows


def _plan(
    partition: str, parts: int, vertices: int, edges: int, sizes: Sizes, scratch: Scratch, limits: Limits
) -> Plan:
    planner, width = PLANNERS[partition], PLANNERS[partition].columns(parts)
    triples = planner.triples(parts)
    splits = _splits(planner, triples, edges, sizes, limits)
    needed = task_bytes(partition, parts, splits, sizes, scratch)
    largest, tables = int(needed.max()), sizes.edges.ravel()[triples[:, 1]]
    blocks = sorted(divmod(place, width) for place in set(triples[needed.argmax()].tolist()))
    return Plan(
        partition=partition,
        parts=parts,
        splits=splits,
        vertices=vertices,
        edges=edges,
        tasks=len(triples) * splits,
        bytes_per_task=largest,
        bytes_total=int(block_bytes(partition, sizes).sum()),
        block_edges_min=int(tables.min()),
        block_edges_max=int(tables.max()),
        memory=limits.memory,
        workers=limits.workers,
        fits=largest <= limits.memory,
        why=_why(partition, parts, vertices, largest, blocks, limits),
    )


def _splits(planner: Planner, triples: Numbers, edges: int, sizes: Sizes, limits: Limits) -> int:
    """m: as asked, or so that every worker has its tasks, but none that is empty or that no scheduler could take."""
    most = edges if planner.cut == "edges" else int(sizes.rows.ravel()[triples[:, 0]].max())
    if limits.splits is None:
        wanted = splits_for(limits.workers, len(triples), limits.tasks_a_worker)
        return max(1, min(wanted, most, MAX_TASKS // len(triples)))
    splits = max(1, min(limits.splits, most))
    if len(triples) * splits > MAX_TASKS:
        raise InputError(
            f"--splits {shown(limits.splits)} makes {len(triples) * splits:,} tasks of {len(triples):,} block triples, "
            f"{MAX_TASKS:,} at most can be scheduled: tasks would be tiny; give a smaller m, or leave it out"
        )
    return splits


def splits_for(workers: int, triples: int, tasks_a_worker: int) -> int:
    """Choose m: so many tasks for each worker, at least."""
    return -(-tasks_a_worker * workers // triples)


def _why(partition: str, parts: int, vertices: int, largest: int, blocks: list[Block], limits: Limits) -> str:
    need = f"{partition} at n = {parts} needs {size(largest)} for its largest task"
    budget = f"the {size(limits.memory)} of one worker"
    if largest <= limits.memory:
        return f"{need}, within {budget}"
    named = ", ".join(f"P[{i}][{j}]" for i, j in blocks)
    rows = f", {size(BYTES_PER_ROW * vertices)} of it offsets" if PLANNERS[partition].replicated else ""
    return f"{need} (blocks {named}{rows}), more than {budget}"


def _kept(of: Proxies) -> str:
    return f"V_ind {of.vertices_induced:,}, V_res {of.vertices:,}, E_ind {of.edges_induced:,}, E_res {of.edges:,}"


def size(count: float) -> str:
    """Bytes for people: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{count:.3g}") < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"
