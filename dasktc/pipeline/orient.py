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
from math import isqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import aligned, on_host
from dasktc.backends.cuda.launch_trust import SMALL_ROW
from dasktc.executors.base import Executor, Fold
from dasktc.executors.dask.worker_events import stage_ended
from dasktc.executors.measured import Measured
from dasktc.pipeline.canonicalize import Canonical
from dasktc.pipeline.edge_keys import cut, unpack
from dasktc.pipeline.sharded.vectors import Sharded

__all__ = [
    "CUTS",
    "RESIDUES",
    "Facts",
    "Oriented",
    "Ranks",
    "SlabsAhead",
    "add_degrees",
    "add_sources",
    "degrees_of",
    "inverse",
    "order_by",
    "orient",
    "oriented",
    "oriented_in_ranges",
    "row_starts",
    "total",
    "wedges_of",
]

Array = Any
CHUNK = 1 << 22
"""Vertices whose wedges are summed in one pass."""
CUTS = 1024
"""Ranges of rows with about equally many edges; the row ranges of blocks are made of these."""


RESIDUES = 12
"""Modulus of the ends' remainders by which edges are counted: measures grids of n parts where n divides it."""
RANK_BYTES = 4
FEW = 8
"""Most partial sums that are handed to their consumers without a task that adds them up."""


class Facts(NamedTuple):
    """Statistics of an oriented graph's vertices that the plan needs.

    Attributes
    ----------
    vertices, edges, wedges : int
        The vertices with an edge; Σ in(v)·out(v).
    lengths : array of int64
        Number of rows of each length, on the host.
    cuts : list of int, length CUTS + 1
        Entry k: the row in which the running sum of row lengths reaches k / CUTS of the edges; empty where no caller
        cuts rows.
    processors : int
        Multiprocessors of the device.
    """

    vertices: int
    edges: int
    wedges: int
    lengths: Array
    cuts: list[int]
    processors: int


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


class Ranks(NamedTuple):
    """Ranks of the vertices, and ranges of rows with about equally many edges.

    Attributes
    ----------
    rank : array of int32, shape (V,)
        By dense id.
    starts : list of int
        First oriented key of each range but the first.
    """

    rank: Array
    starts: list[int]


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
    sources = Fold(partial(_zeros, size, backend), partial(add_sources, shift=shift, backend=backend), total)
    if executor.distributed:
        calls = [(keys, own, shift, backend) for keys, own in zip(edges.partitions, ranks, strict=True)]
        edges.partitions.clear()
        partitions = executor.submit_all("orient", oriented_in_ranges if ahead else oriented, calls)
        outward = _folded(executor, sources, list(partitions))
        slabs = ahead.slabs(list(partitions), ranks, outward, planner) if ahead else []
    elif ranges is None or edges.sample is None or _exceeds(executor.memory_per_call, edges.sample):
        turn = _oriented_in_place if executor.shares_memory else oriented
        partitions, folded = executor.map_and_fold("orient", turn, edges.partitions, sources, rank, shift, backend)
        outward = [folded]
    else:
        (rows,) = executor.gather([executor.submit("orient", _rows_of, edges.sample, rank, ranges, shift, backend)])
        sums = Fold(partial(_no_sums, size, backend), partial(_add_sums, shift=shift, backend=backend), list.pop)
        starts = [row << shift for row in rows[1:]]
        made, folded = executor.map_and_fold(
            "orient", _oriented_slices, edges.partitions, sums, rank, starts, shift, backend
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
        for function in (_dense, _out_degree, _in_degree)
    )
    degrees_by_rank = order, out_degree, in_degree
    graph = Oriented(partitions, *degrees_by_rank, facts.wedges, facts.edges, facts, rows, counts, slabs)
    return graph, vectors


def degrees_of(size: int, shift: int, backend: Backend) -> Fold:
    """Make the fold that reduces partitions of canonical edges to the degrees of all ids below `size`."""
    return Fold(partial(_zeros, size, backend), partial(add_degrees, shift=shift, backend=backend), total)


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
    ranked, given = (_ranks, ()) if samples is None else (_ranks_and_starts, (*samples, shift))
    ranks = {
        home: executor.submit("orient", ranked, list(degrees), *given, executor.backend, prefer=home)
        for home in dict.fromkeys(homes)
    }
    return [ranks[home] for home in homes]


def _vector(executor: Executor, function: Callable[..., Array], vectors: Any, *given: Any) -> list[Any]:
    return [executor.submit("degrees", function, vectors, *given)]


def _sum(vectors: list[Array]) -> Array:
    return total(vectors) if len(vectors) > 1 else vectors[0]


def _ranks(degrees: list[Array], backend: Backend) -> Array:
    return inverse(order_by(_sum(degrees), backend), backend)


def _ranks_and_starts(degrees: list[Array], samples: list[Array], ranges: int, shift: int, backend: Backend) -> Ranks:
    """Ranks, and the starts of ranges by samples of canonical keys; whoever has the same input computes the same."""
    rank = _ranks(degrees, backend)
    return Ranks(rank, row_starts(samples, rank, ranges, shift, backend))


def _dense(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    """Dense id of each rank: the vertex's position among the vertices with an edge."""
    degree, rank, _ = vectors
    order = inverse(rank, backend)[:vertices]
    if vertices < len(degree):
        order = (backend.array.cumsum(degree > 0, dtype="int64") - 1).take(order)
    return order.astype("int32", copy=False)


def _out_degree(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    return vectors[2][:vertices]


def _in_degree(vectors: list[Array], vertices: int, backend: Backend) -> Array:
    degree, rank, outward = vectors
    inward = degree.take(inverse(rank, backend)[:vertices])
    inward -= outward[:vertices]
    return inward


def _measured(
    degrees: list[Array], ranks: Array | Ranks, outward: list[Array], cuts: int, backend: Backend
) -> Measured:
    vectors = [_sum(degrees), ranks.rank if isinstance(ranks, Ranks) else ranks, _sum(outward)]
    return Measured(vectors, _facts(vectors, cuts, backend))


def _facts(vectors: list[Array], cuts: int, backend: Backend) -> Facts:
    """Compute the plan's statistics from degrees and ranks by id, and from out-degrees by rank."""
    degree, _, outward = vectors
    edges, vertices = int(outward.sum(dtype="int64")), int((degree > 0).sum())
    rows = outward[:vertices]
    wedges = backend.vertices.wedges(*vectors)
    stage_ended("orient")
    bins = 1 + max(SMALL_ROW, isqrt(2 * edges))  # a row of d entries has d targets of degree >= d: d² <= 2·E
    counts = backend.vertices.lengths(rows, bins)
    places = []
    if cuts:
        wanted = backend.array.asarray([edges * k // cuts for k in range(cuts + 1)], dtype="int64")
        places = backend.array.cumsum(rows, dtype="int64").searchsorted(wanted).tolist()
    lengths = on_host(counts).astype("int64", copy=False)
    return Facts(vertices, edges, wedges, lengths, places, backend.processors())


def total(vectors: list[Array]) -> Array:
    """Sum vectors into a new one; the inputs, which may also be other tasks' inputs, stay unchanged.

    The list belongs to the task and is emptied vector by vector: one that is mapped from a file is in memory only while
    it is added.
    """
    result = vectors.pop().copy()
    while vectors:
        result += vectors.pop()
    return result


def order_by(weight: Array, backend: Backend) -> Array:
    """Sort the vertices by descending weight, ties by ascending id, with one integer sort.

    Parameters
    ----------
    weight : array of integers, shape (V,), not negative
    backend : Backend

    Returns
    -------
    array of int32, shape (V,)
        The vertices in this order; int64 where a weight and an id do not fit 63 bits together.
    """
    return backend.vertices.order(weight)


def _zeros(size: int, backend: Backend) -> Array:
    return backend.array.zeros(size, dtype="int32")


def add_degrees(degree: Array, keys: Array, shift: int, backend: Backend) -> Array:
    """Add the degrees that canonical edges contribute to `degree`, in place."""
    backend.edges.add_degrees(degree, keys, shift)
    return degree


def add_sources(out_degree: Array, keys: Array | list[Any], shift: int, backend: Backend) -> Array:
    """Add the out-degrees that oriented edges, which may be cut, contribute to `out_degree`, in place."""
    if isinstance(keys, list):
        for some in keys:
            add_sources(out_degree, some, shift, backend)
    else:
        backend.edges.add_sources(out_degree, keys, shift)
    return out_degree


def inverse(order: Array, backend: Backend) -> Array:
    """The inverse of a permutation, int32: each vertex's rank in an order."""
    return backend.vertices.inverse(order)


def oriented(keys: Array, rank: Array, shift: int, backend: Backend) -> Array:
    """Relabel canonical keys by rank, the larger rank as the source; the edges keep their positions."""
    return backend.edges.oriented(keys, aligned(rank), shift)


def oriented_in_ranges(keys: Array, ranks: Ranks, shift: int, backend: Backend) -> list[list[Array]]:
    """Orient keys, and cut them into the ranges of rows, in one pass."""
    made = backend.edges.lazy_oriented(keys, aligned(ranks.rank), shift)
    return [[some] for some in backend.edges.split(made, ranks.starts)]


def row_starts(samples: list[Array], rank: Array, ranges: int, shift: int, backend: Backend) -> list[int]:
    """First keys of all ranges of rows but the first, with about equally many edges each, by sampled canonical keys."""
    rows = np.sort(on_host(oriented(backend.array.concatenate(samples), rank, shift, backend)) >> shift)
    return [int(rows[len(rows) * number // ranges]) << shift if len(rows) else 0 for number in range(1, ranges)]


def _oriented_slices(keys: Array, rank: Array, starts: list[int], shift: int, backend: Backend) -> list[Array]:
    """Orient keys, and cut them before each of `starts`."""
    return cut(oriented(keys, rank, shift, backend), starts, 1 << 2 * shift, backend)


def _no_sums(size: int, backend: Backend) -> list[Array]:
    """Zeroed sums: out-degrees, and numbers of edges by the remainders of their two ends."""
    return [_zeros(size, backend), backend.array.zeros(RESIDUES**2, dtype="uint64")]


def _add_sums(sums: list[Array], slices: list[Array], shift: int, backend: Backend) -> list[Array]:
    # All memory is allocated before anything is added, because a call that lacks memory is repeated.
    counted = [backend.edges.residues(keys, shift, RESIDUES) for keys in slices]
    for keys, counts in zip(slices, counted, strict=True):
        add_sources(sums[0], keys, shift, backend)
        sums[1] += counts
    return sums


def _exceeds(memory: int | None, sample: Array) -> bool:
    """Whether a call's budget is too small to orient a sample: its keys, both ends and the result."""
    return memory is not None and 4 * int(sample.nbytes) > memory


def _rows_of(sample: Array, rank: Array, ranges: int, shift: int, backend: Backend) -> list[int]:
    """Cut rows into ranges with about equally many edges, by a sample of canonical keys; return their first rows."""
    sources, targets = unpack(on_host(oriented(backend.array.asarray(sample), rank, shift, backend)), shift)
    sources = np.sort(sources[sources != targets])
    return sorted({0, *(int(sources[len(sources) * k // ranges]) for k in range(1, ranges) if len(sources))})


def _oriented_in_place(keys: Array, rank: Array, shift: int, backend: Backend) -> Array:
    """Orient keys in place, as `oriented` does; nobody else may use these keys."""
    return backend.edges.orient(keys, aligned(rank), shift)


def wedges_of(inward: Array, outward: Array) -> int:
    """Σ in·out as an exact Python int: factors are split so that no partial sum exceeds 64 bits."""
    wedges = 0
    for start in range(0, len(inward), CHUNK):
        of, by = (vector[start : start + CHUNK].astype("int64", copy=False) for vector in (inward, outward))
        wedges += (int((of * (by >> 20)).sum()) << 20) + int((of * (by & ((1 << 20) - 1))).sum())
    return wedges
