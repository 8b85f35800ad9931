"""The plan of a count: scheme, n and m, and whether a task fits a worker's memory.

Bytes are computed from the blocks' edges and rows, before any block is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from math import ceil
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.options import format_size
from dasktc.planning.memory_model import Scratch, bytes_of_triples
from dasktc.planning.rates import Rates, probes_of
from dasktc.planning.schemes import BYTES_PER_ROW, Block, Numbers, Scheme, Sizes, Triple, considered, scheme_of
from dasktc.registry import SCHEMES
from dasktc.wording import option, plural

__all__ = ["BlockSizes", "HasSizes", "Limits", "Plan", "Proxies", "even_blocks", "make_plan", "splits_for"]

MAX_PARTS = 64
MORE_SPLITS = (2, 4, 8, 16)
"""Factors by which the splits of a block that all tasks share are increased where scratch does not fit beside it."""
SOONER = 2
"""How many of these factors are tried before the leaner kernel, because they take less time. The leaner kernel takes
1.5 to 1.7 times as long as the usual one on Kronecker 22 and 24, and each of 8 splits 13 ms more than its share of 488
on Kronecker 26 (H200)."""
LARGE = 1 << 30
"""Edges from which the usual kernel on a grid of few parts is faster than the leaner kernel on one block: Kronecker 27
takes 1.5 s at n = 2, and 3.5 s; with all memory of an H200 it takes 1.7."""
MAX_TASKS = 10**6
"""Most block triples, and most triples times splits, that a scheduler is given."""

TASK_SECONDS = 2.0
"""Longest predicted time of a counting task, so that progress is reported in time, a dying worker loses little, and a
checkpoint keeps nearly everything. A split costs some milliseconds."""


class HasSizes(Protocol):
    """A partition of a graph as a plan needs it: the sizes of its blocks."""

    @property
    def sizes(self) -> Sizes: ...  # noqa: D102


class BlockSizes(NamedTuple):
    """A partition of which nothing but the sizes is known."""

    sizes: Sizes


Partition = TypeVar("Partition", bound=HasSizes)


class Proxies(NamedTuple):
    """Sizes of one part before and after LSTC's transformation (tables 3 and 4): vertices and edges."""

    vertices_induced: int
    vertices: int
    edges_induced: int
    edges: int
    """V_ind, V_res, E_ind and E_res."""


@dataclass(frozen=True)
class Limits:
    """What the cluster offers and what the caller asked for."""

    workers: int
    """Number of concurrent tasks."""
    memory: int
    """Bytes that one task may use."""
    partition: str = "auto"
    """A scheme's name, or "auto"."""
    parts: int | None = None
    splits: int | None = None
    """n and m where the caller set them, at least 1. More parts than vertices are taken as V; more splits than the
    largest index block has rows (for `edges`: edges) are taken as that number, since the others would be empty."""
    tasks_a_worker: int = 4
    """Least number of tasks per worker where the caller set no splits, as far as there are rows or edges to split."""
    least_parts: int = 1
    most_parts: int = MAX_PARTS
    """The smallest and the largest n to try, where the caller set none."""
    column_parts: int | None = None
    """Number of column parts where it differs from that of the rows (P2 of `vertical`)."""
    rates: Rates | None = None
    """Rates of the workers; with them no task is planned to take longer than TASK_SECONDS, unless the caller set
    splits."""
    times: float = 1.0
    """The kernel's time relative to the usual kernel."""
    value_bytes: int = 0
    """Bytes of values that are kept for each edge beside the blocks, and that visits of triangles take."""


@dataclass(frozen=True)
class Plan:
    """The plan of a count: scheme, n and m, the tasks, and the bytes that they take.

    Attributes
    ----------
    partition : str
        The scheme's name.
    parts, splits : int
        n and m.
    vertices, edges : int
    tasks : int
        Number of counting tasks: scheduled triples, heavy ones counted several times, times splits.
    bytes_per_task : int
        Bytes of the largest task: each of its blocks once, and scratch.
    bytes_total : int
        Bytes of all blocks, each once.
    block_edges_min, block_edges_max : int
        Edges of the smallest and the largest block in the role of a table.
    memory, workers : int
        The limits that were planned for.
    fits : bool
    why : str
        How n and m were chosen, or what does not fit.
    choice : str
        How kernel and order were chosen.
    proxies : tuple of Proxies
        One for each part of `proxy`.
    lean : bool
        Whether it fits only with the scratch of a leaner kernel.
    shards, numbering : int and str
        Number of shards of vertex vectors while vertices are numbered and ranked (1: whole vectors), and why.
    distribution : str
        Whether a cluster runs it as tasks on all workers or as one call on one, and why; "" where nothing was chosen.
    column_parts : int or None
        P2 of `vertical`, where it was asked for.
    empty_triples, heavy_triples : int
        Number of block triples without a task, because their index or stream has no edges; and of those with more than
        m splits.
    shares : array of int64, shape (triples,), or None
        Number of times that the m splits of each of the scheme's triples are scheduled (`Scheme.shares`); None: once.
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
    distribution: str = ""
    column_parts: int | None = None
    empty_triples: int = 0
    heavy_triples: int = 0
    shares: Numbers | None = field(default=None, repr=False, compare=False)

    @property
    def scheme(self) -> Scheme:
        """The object of the plan's scheme."""
        return scheme_of(self.partition, self.column_parts)

    @property
    def scheduled(self) -> Numbers:
        """The scheduled triples as numbers of blocks, shape (.., 3): each has `splits` tasks, heavy ones repeat."""
        triples = self.scheme.triples(self.parts)
        return triples if self.shares is None else np.repeat(triples, self.shares, axis=0)

    def triples(self) -> Iterator[Triple]:
        """Emit all block triples of the scheme before splitting, also those without a task."""
        return (triple for triple, _ in self._shared())

    def tasks_of_triples(self) -> Iterator[tuple[Triple, int]]:
        """Emit the scheduled block triples with their numbers of splits."""
        return ((triple, share * self.splits) for triple, share in self._shared() if share)

    def _shared(self) -> Iterator[tuple[Triple, int]]:
        columns, triples = self.scheme.columns(self.parts), self.scheme.triples(self.parts).tolist()
        shares = [1] * len(triples) if self.shares is None else self.shares.tolist()
        for places, share in zip(triples, shares, strict=True):
            yield Triple(*(divmod(place, columns) for place in places)), share

    def to_dict(self) -> dict[str, Any]:
        """All fields except the shares, ready for JSON."""
        fields = asdict(replace(self, shares=None)) | {"proxies": [part._asdict() for part in self.proxies]}
        del fields["shares"]
        return fields

    @property
    def graph(self) -> str:
        """Its size, in words."""
        return f"{plural(self.vertices, 'vertex')}, {plural(self.edges, 'edge')}"

    def rows(self) -> list[tuple[str, str]]:
        """Rows of (name, text) for display."""
        choices = [("choice", self.choice), ("prepared", self.numbering), ("distribution", self.distribution)]
        empty, heavy_triples = self.empty_triples, self.heavy_triples
        remarks = f"; {plural(empty, 'triple has', 'triples have')} no wedges and no task" if empty else ""
        remarks += f"; {plural(heavy_triples, 'heavy triple is', 'heavy triples are')} several" if heavy_triples else ""
        return [
            ("graph", self.graph),
            ("partition", self.partition),
            ("n (parts)", f"{self.parts:,}" + (f", {self.column_parts:,} of columns" if self.column_parts else "")),
            ("m (splits)", f"{self.splits:,}"),
            ("tasks", f"{self.tasks:,}{remarks}"),
            ("bytes a task", f"{self.bytes_per_task:,} ({format_size(self.bytes_per_task)})"),
            ("bytes in all", f"{self.bytes_total:,} ({format_size(self.bytes_total)})"),
            ("for", f"{self.workers:,} at a time, {format_size(self.memory)} each"),
            ("fits", "yes" if self.fits else "NO"),
            ("why", self.why),
            *((name, text) for name, text in choices if text),
            *(
                (f"G_{part}", f"V_ind {v_ind:,}, V_res {v_res:,}, E_ind {e_ind:,}, E_res {e_res:,}")
                for part, (v_ind, v_res, e_ind, e_res) in enumerate(self.proxies)
            ),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self.rows())

    @property
    def cut(self) -> str:
        """Whether splits are ranges of the index block's "edges" or of its "rows"."""
        return self.scheme.cut

    @property
    def space_imbalance(self) -> float | None:
        """Edges of the largest over those of the smallest block (TRUST, table 6)."""
        return self.block_edges_max / self.block_edges_min if self.block_edges_min else None


def even_blocks(vertices: int, edges: int, column_parts: int | None = None) -> Callable[[str, int], BlockSizes]:
    """Return a measure, as `make_plan` takes it, of graphs whose blocks all have equally many edges."""
    return lambda partition, n: BlockSizes(scheme_of(partition, column_parts).even(n, vertices, edges))


def make_plan(
    vertices: int,
    edges: int,
    measure: Callable[[str, int], Partition],
    scratch: Scratch,
    limits: Limits,
    lean: Scratch | None = None,
) -> tuple[Plan, Partition]:
    """Choose scheme, n and m: the smallest n whose largest task fits.

    Before it cuts the graph into parts, or refuses, it tries more splits, which need less scratch, and the leaner
    kernel.

    Parameters
    ----------
    vertices, edges : int
    measure : callable (scheme, n) -> partition
        Partitions the graph and measures the blocks.
    scratch : callable (TaskSize) -> int
    limits : Limits
    lean : callable (TaskSize) -> int, optional
        Scratch of a leaner kernel.

    Returns
    -------
    plan : Plan
        `fits` says whether the largest task fits; a plan that does not fit is not counted but refused.
    partition : object
        The plan's, as `measure` returned it; those of other n are not kept.
    """
    candidates: Iterator[Any] = chain(_candidates(vertices, edges, limits), [None])
    lean_plan: tuple[Plan, Partition] | None = None  # fits, but may be slower than a grid of few parts
    for (scheme, parts), successor in pairwise(candidates):
        partition = measure(scheme.name, parts)
        planner = partial(_plan, scheme, parts, vertices, edges, partition.sizes)
        # Of a grid that does not fit and is not the last, nothing is used.
        is_used = scheme.replicated or successor is None or lean_plan is not None
        plan = planner(scratch, limits, exact=is_used)
        if plan.fits:
            break
        splits = MORE_SPLITS if (scheme.replicated or lean_plan) and limits.splits is None else ()
        if split := _in_splits(plan, planner, scratch, limits, splits[:SOONER]):
            plan = split
            break
        if lean_plan is not None:
            plan, partition = lean_plan
            break
        if (
            lean is not None
            and (scheme.replicated or successor is None)
            and (alternative := planner(lean, limits, exact=False)).fits
        ):
            plan = replace(alternative, lean=True, why=f"{alternative.why}; {plan.why} with the usual kernel")
            if edges >= LARGE and successor is not None:
                lean_plan = plan, partition  # of one block, so little is kept
                continue
            break
        if split := _in_splits(plan, planner, scratch, limits, splits[SOONER:]):
            plan = split
            break
    return replace(plan, why="; ".join([plan.why, *_taken(plan, limits)])), partition


def _in_splits(
    plan: Plan, planner: Callable[..., Plan], scratch: Scratch, limits: Limits, times: tuple[int, ...]
) -> Plan | None:
    """The same graph in the fewest splits that fit, among multiples `times` of the plan's; None: none of them fits."""
    split_counts = (factor * plan.splits for factor in times if factor * plan.tasks <= MAX_TASKS)
    plans = (planner(scratch, replace(limits, splits=splits), exact=False) for splits in split_counts)
    result = next((candidate for candidate in plans if candidate.fits), None)
    return result and replace(result, why=f"{result.why}; {plan.why} in fewer splits")


def _taken(plan: Plan, limits: Limits) -> Iterator[str]:
    """Say which requests exceed the graph (more parts than vertices, more splits than rows), and what is taken."""
    is_replicated = limits.partition != "auto" and SCHEMES[limits.partition].replicated
    if limits.parts is not None and limits.parts > plan.parts and not is_replicated:
        bound = f"{plural(plan.vertices, 'vertex makes', 'vertices make')} no more parts"
        yield f"{shown(limits.parts)} parts are taken as {plan.parts:,}: {bound}"
    if limits.splits is not None and limits.splits > plan.splits:
        bound = f"the largest index block has no more {plan.cut}"
        yield f"{shown(limits.splits)} splits are taken as {plan.splits:,}: {bound}"


def _candidates(vertices: int, edges: int, limits: Limits) -> Iterator[tuple[Scheme, int]]:
    """Emit the (scheme, n) to try, the preferred first; at least one."""
    is_automatic, schemes = limits.partition == "auto", considered(limits.partition, limits.column_parts)
    bound = max(1, vertices)  # more parts than vertices make no block smaller
    parts = None if limits.parts is None else min(limits.parts, bound)
    if limits.column_parts is not None and schemes[0].tasks(parts or 1) > MAX_TASKS:
        raise InputError(
            f"{option('column_parts', limits.column_parts)} makes "
            f"{plural(schemes[0].tasks(parts or 1), 'block triple')}, {MAX_TASKS:,} at most can be scheduled: blocks "
            "would be tiny; give fewer, or leave it out"
        )
    for scheme in schemes:
        if scheme.replicated:
            if not is_automatic or (parts in (None, 1) and limits.least_parts == 1):
                yield scheme, 1
                if is_automatic and 1 in (bound, parts):
                    return
        elif parts is not None:
            problem = _too_many(scheme, parts, limits)
            if problem is None:
                yield scheme, parts
            elif scheme is schemes[-1]:
                raise InputError(f"{problem}; give a smaller n, or leave it out")
        else:
            first = max(limits.least_parts, 2 if is_automatic else 1)
            last = min(limits.most_parts, max(first, bound))
            counts = (n for n in scheme.candidates or range(1, limits.most_parts) if first <= n < last)
            yield from ((scheme, n) for n in counts if scheme.least_bytes(vertices, edges, n) <= limits.memory)
            yield scheme, last


def _too_many(scheme: Scheme, parts: int, limits: Limits) -> str | None:
    """Return why a scheme does not take this number of parts; None where it does."""
    request = option("parts", limits.parts)
    if scheme.bound and parts > scheme.bound[0]:
        bound, reason = scheme.bound
        return f"{request} is more than the {bound} that {option('partition', scheme.name)} takes: {reason}"
    if (triples := scheme.tasks(parts)) > MAX_TASKS:
        triple_text = f"{request} makes {plural(triples, 'block triple')}"
        return f"{triple_text}, {MAX_TASKS:,} at most can be scheduled: blocks would be tiny"
    return None


def _plan(
    scheme: Scheme,
    parts: int,
    vertices: int,
    edges: int,
    sizes: Sizes,
    scratch: Scratch,
    limits: Limits,
    exact: bool = True,
) -> Plan:
    """Make the plan of a scheme and an n; unless `exact`, one that does not fit has too few bytes for a task."""
    triples = scheme.triples(parts)
    shares = scheme.shares(triples, sizes)
    if int(shares.sum()) > MAX_TASKS:
        shares = np.minimum(shares, 1)
    triple_count = int(shares.sum())
    splits = _splits(scheme, triples, triple_count, edges, sizes, limits)
    # The largest task decides whether the plan fits, and its blocks explain it.
    nbytes = bytes_of_triples(scheme, parts, splits, sizes, scratch, triples, shares, None if exact else limits.memory)
    largest, tables = int(nbytes.max()), sizes.edges.ravel()[triples[:, 1]]
    blocks = sorted(divmod(place, scheme.columns(parts)) for place in set(triples[nbytes.argmax()].tolist()))
    return Plan(
        partition=scheme.name,
        parts=parts,
        splits=splits,
        vertices=vertices,
        edges=edges,
        tasks=triple_count * splits,
        bytes_per_task=largest,
        bytes_total=int(scheme.block_bytes(sizes).sum()),
        block_edges_min=int(tables.min()),
        block_edges_max=int(tables.max()),
        memory=limits.memory,
        workers=limits.workers,
        fits=largest <= limits.memory,
        why=_why(scheme, parts, vertices, largest, blocks, limits),
        column_parts=limits.column_parts,
        empty_triples=int((shares == 0).sum()),
        heavy_triples=int((shares > 1).sum()),
        shares=None if bool((shares == 1).all()) else shares,
    )


def _splits(scheme: Scheme, triples: Numbers, count: int, edges: int, sizes: Sizes, limits: Limits) -> int:
    """Choose m: as asked for, or enough for every worker's tasks; no split is empty, and all can be scheduled."""
    bound = edges if scheme.cut == "edges" else int(sizes.rows.ravel()[triples[:, 0]].max())
    if limits.splits is None:
        target = splits_for(limits.workers, count, limits.tasks_a_worker)
        if limits.rates is not None:
            work = limits.times * (edges / limits.rates.edges + probes_of(edges) / limits.rates.probes)
            target = max(target, ceil(work / TASK_SECONDS / count))
        return max(1, min(target, bound, MAX_TASKS // count))
    splits = max(1, min(limits.splits, bound))
    if count * splits > MAX_TASKS:
        raise InputError(
            f"{option('splits', limits.splits)} makes {plural(count * splits, 'task')} of "
            f"{plural(count, 'block triple')}, {MAX_TASKS:,} at most can be scheduled: tasks would be tiny; give a "
            "smaller m, or leave it out"
        )
    return splits


def splits_for(workers: int, triples: int, tasks_a_worker: int) -> int:
    """The smallest m that gives each worker at least `tasks_a_worker` tasks."""
    return -(-tasks_a_worker * workers // triples)


def _why(scheme: Scheme, parts: int, vertices: int, largest: int, blocks: list[Block], limits: Limits) -> str:
    demand = f"{scheme.name} at n = {parts} needs {format_size(largest)} for its largest task"
    budget = f"the {format_size(limits.memory)} of one worker"
    if largest <= limits.memory:
        return f"{demand}, within {budget}"
    names = ", ".join(f"P[{i}][{j}]" for i, j in blocks)
    rows = f", {format_size(BYTES_PER_ROW * vertices)} of it offsets" if scheme.replicated else ""
    return f"{demand} (blocks {names}{rows}), more than {budget}"
