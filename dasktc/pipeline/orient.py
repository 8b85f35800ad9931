"""Orientation: ranks the vertices by degree, and directs every edge from its end of lower degree to that of higher.

Rank 0 is the vertex of highest degree; ties are broken by dense id. After relabelling by rank an oriented edge points
from the larger to the smaller rank, so that hubs, which many edges point to, have short rows (Shun and Tangwongsan,
ICDE 2015; TRUST, section 2.2).

Σ in(v)·out(v) of the oriented graph is the number of wedges that a count must stream. It is computed here from the
degrees alone, and every count is checked against it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.executors.base import Executor, Fold
from dasktc.executors.dask.worker_events import stage_ended
from dasktc.executors.measured import Measured
from dasktc.pipeline.canonicalize import Canonical
from dasktc.pipeline.sharded.vectors import Sharded
from dasktc.pipeline.stages.orient import (
    CUTS,
    Facts,
    Ranks,
    add_degrees,
    add_sources,
    add_sums,
    dense_ids,
    facts_of,
    first_rows,
    in_degrees,
    no_sums,
    oriented,
    oriented_in_place,
    oriented_in_ranges,
    oriented_slices,
    out_degrees,
    ranks_and_starts,
    ranks_of,
    sum_of,
    total,
    totals_of,
    zero_degrees,
)

__all__ = [
    "Oriented",
    "SlabsAhead",
    "degrees_of",
    "orient",
]

Array = Any


RANK_BYTES = 4
FEW = 8
"""Most partial sums that are handed to their consumers without a task that adds them up."""


class SlabsAhead(Protocol):
    """Building of the slabs of a single block while the plan is made (`build_blocks.slabs_ahead`)."""

    def samples(self, canonical: list[Any]) -> tuple[list[Any], int]:
        """Samples of the canonical partitions, and the number of ranges of rows."""

    def slabs(self, cut_up: list[Any], ranks: list[Any], outward: list[Any], planner: str | None) -> list[Any]:
        """Submit the slab of each range.

        Parameters
        ----------
        cut_up : list of handles
            Partitions that are oriented and cut; emptied.
        ranks : list of handles of Ranks
            Those of each canonical partition's worker.
        outward : list of handles
            What the plan depends on: the worker that makes it builds no slab before these are there.
        planner : str or None
            That worker.
        """


class Oriented(NamedTuple):
    """An oriented graph over ranks.

    Attributes
    ----------
    partitions : list of handles of int64 arrays
        Keys source << shift | target with target < source, in no order. With `slabs` each is cut: a list that has,
        for every range of rows, a list of arrays.
    order : Sharded, of int32
        The dense id of each rank.
    out_degree, in_degree : Sharded, of int32
        Degrees by rank; in-degrees of int64 where vertices are in shards.
    wedges : int
        Σ in(v)·out(v).
    edges : int
    facts : Facts or None
        Statistics of the vertices, where their vectors are whole.
    rows : list of int or None
        First row of each range that the edges were dealt to; every range has equally many consecutive partitions.
    slabs : list of handles
        Slabs of a single block of all edges, where these are built while the plan is made; else empty.
    residues : array of uint64, shape (RESIDUES²,), or None
        Number of edges for each pair of remainders of source and target, where these were counted.
    """

    partitions: list[Any]
    order: Sharded
    out_degree: Sharded
    in_degree: Sharded
    wedges: int
    edges: int
    facts: Facts | None = None
    rows: list[int] | None = None
    residues: Any = None
    slabs: list[Any] = []  # noqa: RUF012  (never filled: `orient` makes a new one)

    def ranges(self) -> list[Any]:
        """Hand over the partitions and empty their list; one list per range of rows where edges were dealt to these."""
        count = 1 if self.rows is None else len(self.partitions) // len(self.rows)
        grouped = [self.partitions[first : first + count] for first in range(0, len(self.partitions), count)]
        taken, self.partitions[:] = list(self.partitions), []
        return taken if self.rows is None else grouped

    def take_slabs(self) -> list[Any]:
        """Hand over the slabs, and empty their list."""
        taken, self.slabs[:] = list(self.slabs), []
        return taken


def orient(
    executor: Executor,
    edges: Canonical,
    size: int,
    shift: int,
    ranges: int | None = None,
    ahead: SlabsAhead | None = None,
) -> tuple[Oriented, Any]:
    """Rank the vertices by degree, and direct every edge to its end of higher degree.

    Vertices without an edge come last in the ranks, and are left out of the graph.

    Parameters
    ----------
    executor : Executor
    edges : Canonical
        Its partitions are emptied. Its `folded`, if any, is the vector of degrees (`degrees_of`).
    size : int
        Number of vertices, those without an edge included.
    shift : int
        Bits of an id in an edge key.
    ranges : int, optional
        Deal the edges to about this number of ranges of rows in the same pass; only where edges were sampled.
    ahead : SlabsAhead, optional
        Have workers build the slabs of a single block before this function waits for the statistics. Oriented
        partitions are then cut into its ranges of rows.

    Returns
    -------
    graph : Oriented
    vectors : handle of a list of arrays, or list of handles of arrays, shape (size,) each
        Degrees and ranks by the ids of the canonical edges, and out-degrees by rank.
    """
    rows, counts, slabs, backend = None, None, list[Any](), executor.backend
    if edges.folded is None:
        degrees = _folded(executor, degrees_of(size, shift, backend), list(edges.partitions))
    else:
        degrees = [edges.folded]
    samples = ahead.samples(edges.partitions) if ahead else None
    ranks = _ranks_for(executor, degrees, len(edges.partitions), size, edges.rows, shift, samples)
    rank, planner = ranks[0], executor.homes(1)[0] if ahead else None
    sources = Fold(partial(zero_degrees, size, backend), partial(add_sources, shift=shift, backend=backend), total)
    if executor.distributed:
        calls = [(keys, own, shift, backend) for keys, own in zip(edges.partitions, ranks, strict=True)]
        edges.partitions.clear()
        partitions = executor.submit_all("orient", oriented_in_ranges if ahead else oriented, calls)
        outward = _folded(executor, sources, list(partitions))
        slabs = ahead.slabs(list(partitions), ranks, outward, planner) if ahead else []
    elif ranges is None or edges.sample is None or _exceeds(executor.memory_per_call, edges.sample):
        turn = oriented_in_place if executor.shares_memory else oriented
        partitions, folded = executor.map_and_fold("orient", turn, edges.partitions, sources, rank, shift, backend)
        outward = [folded]
    else:
        (rows,) = executor.gather([executor.submit("orient", first_rows, edges.sample, rank, ranges, shift, backend)])
        sums = Fold(partial(no_sums, size, backend), partial(add_sums, shift=shift, backend=backend), list.pop)
        starts = [row << shift for row in rows[1:]]
        made, folded = executor.map_and_fold(
            "orient", oriented_slices, edges.partitions, sums, rank, starts, shift, backend
        )
        outward, residues = executor.transpose("orient", [folded], 2)
        partitions = [piece for of in executor.transpose("orient", made, len(rows)) for piece in of]
        counts = on_host(executor.gather(residues)[0])
    cuts = CUTS if executor.exchanges or backend.on_device else 0
    vectors: Any
    if executor.exchanges:
        (vectors,), (facts,) = executor.measured(
            "orient-plan", _measured, [(degrees, rank, outward, cuts, executor.backend)], [planner], urgent=True
        )
    else:
        vectors = [*degrees, rank, *outward]
        (facts,) = executor.gather([executor.submit("orient-plan", _facts, list(vectors), cuts, executor.backend)])
    order, out_degree, in_degree = (
        Sharded((0, facts.vertices), partial(_vector, executor, function, vectors, facts.vertices, executor.backend))
        for function in (dense_ids, out_degrees, in_degrees)
    )
    degrees_by_rank = order, out_degree, in_degree
    graph = Oriented(partitions, *degrees_by_rank, facts.wedges, facts.edges, facts, rows, counts, slabs)
    return graph, vectors


def degrees_of(size: int, shift: int, backend: Backend) -> Fold:
    """Make the fold that reduces partitions of canonical edges to the degrees of all ids below `size`."""
    return Fold(partial(zero_degrees, size, backend), partial(add_degrees, shift=shift, backend=backend), total)


def _folded(executor: Executor, fold: Fold, partitions: list[Any]) -> list[Any]:
    """Fold partitions to one vector, or to at most FEW partial sums: consumers add these sooner than a task would."""
    if executor.exchanges and len(partitions) <= FEW:
        return executor.map("orient", fold.alone, partitions)
    return [executor.fold("orient", fold, partitions)]


def _ranks_for(
    executor: Executor,
    degrees: list[Any],
    count: int,
    size: int,
    edges: int,
    shift: int,
    samples: tuple[list[Any], int] | None,
) -> list[Any]:
    """Handles of the ranks, one for each of `count` partitions; with samples those of Ranks.

    Each partition's worker computes them for itself where sending them takes longer than the tasks, and the partial
    sums of degrees no more memory than its edges. Nobody then waits for them to be computed elsewhere and sent.
    """
    homes = executor.homes(count)
    if len(degrees) < 2 or RANK_BYTES * size <= executor.task_bytes or len(degrees) ** 2 * size > edges:
        homes = [None] * count
    ranked, given = (ranks_of, ()) if samples is None else (ranks_and_starts, (*samples, shift))
    ranks = {
        home: executor.submit("orient", ranked, list(degrees), *given, executor.backend, prefer=home)
        for home in dict.fromkeys(homes)
    }
    return [ranks[home] for home in homes]


def _vector(executor: Executor, function: Callable[..., Array], vectors: Any, *given: Any) -> list[Any]:
    return [executor.submit("degrees", function, vectors, *given)]


def _measured(
    degrees: list[Array], ranks: Array | Ranks, outward: list[Array], cuts: int, backend: Backend
) -> Measured:
    vectors = [sum_of(degrees), ranks.rank if isinstance(ranks, Ranks) else ranks, sum_of(outward)]
    return Measured(vectors, _facts(vectors, cuts, backend))


def _facts(vectors: list[Array], cuts: int, backend: Backend) -> Facts:
    """Statistics for the plan; says that orientation has ended when the totals are known."""
    totals = totals_of(vectors, backend)
    stage_ended("orient")
    return facts_of(vectors, totals, cuts, backend)


def _exceeds(memory: int | None, sample: Array) -> bool:
    """Whether a call's budget is too small to orient a sample: its keys, both ends and the result."""
    return memory is not None and 4 * int(sample.nbytes) > memory
