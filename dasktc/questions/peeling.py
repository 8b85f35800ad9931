"""Peels a graph on one worker, which receives all of its blocks: core numbers of vertices, trussness of edges.

The k-truss is the largest subgraph each of whose edges has k - 2 triangles in it. It lies in the (k - 1)-core, the
largest subgraph each of whose vertices has k - 1 neighbours in it, so triangles are counted only there, by the kernel
that computes supports. Then the backend peels (`backends.protocol.Peel`): each removed edge removes its triangles, and
only their other edges are updated. If many edges of a k-truss are removed at once, the supports of the remaining edges
are counted again instead. As a check, removed and remaining triangles must add up to the triangles counted.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from dasktc.answers.edge_support import VISITED, supports_of_task
from dasktc.answers.external_ids import in_shards
from dasktc.backends import Backend, core_bytes, peel_bytes, support_bytes, support_kernels, support_scratch_bytes
from dasktc.backends.csr import OrientedCSR
from dasktc.backends.protocol import GraphBounds, Peeled, TaskSize
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, refuse_unless
from dasktc.counting.tuning import Tuning
from dasktc.errors import InputError
from dasktc.executors.threads import results
from dasktc.options import format_size, refuse_beyond
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.edge_keys import distinct, pack, shift_of
from dasktc.planning.schemes import Block, Triple
from dasktc.registry import ORDERS
from dasktc.wording import advice, plural

__all__ = ["PLACED", "TrussFacts", "core_vector", "distinct_edges", "fits_one_worker", "truss", "trussness_in_blocks"]

Array = Any
MOST = (1 << 31) - 1
"""Largest level, in 32 bits."""
PLACED = 32
"""Bytes an edge with which trussness is brought back to the blocks that the edges came from."""
SHIFT = 32
ONE = Triple((0, 0), (0, 0), (0, 0))


class TrussFacts(NamedTuple):
    """Sizes and totals of a truss decomposition, or of one truss."""

    vertices: int
    edges: int
    """Numbers of vertices and edges of the answer."""
    largest: int
    """The largest trussness, or support within the truss; 0 without edges."""
    total: int
    """The sum of these numbers over all edges."""


class _How(NamedTuple):
    """Inputs of a worker besides the blocks."""

    backend: Backend
    kernel: str
    threads: int
    vertices: int
    edges: int
    dropped: bool
    """Whether edges were dropped before, so that some of the vertices have none."""
    copies: str
    """As `CountingContext.folder_of_copies`."""
    tuning: Tuning


def truss(graph: CountingContext, k: int | None) -> tuple[Any, Any, TrussFacts]:
    """Peel the edges on one worker.

    Parameters
    ----------
    graph : CountingContext
    k : int or None
        The requested truss; None: the trussness of every edge.

    Returns
    -------
    block : handle of OrientedCSR
        The edges of the graph, or of the k-truss, as one block.
    values : handle of array of int32, shape (edges,)
        Trussness, or the triangles of each edge within the truss.
    facts : TrussFacts

    Raises
    ------
    InputError
        The worker has not enough memory.
    CountError
        A check failed: there is no result.
    """
    settings = _how(graph)
    result = graph.executor.submit("truss", _truss, settings, k, list(graph.blocks.values()))
    (block,), (values,), facts = graph.executor.transpose("truss", [result], 3)
    return block, values, graph.executor.gather(facts)[0]


def core_vector(graph: CountingContext) -> Sharded:
    """Compute core numbers on one worker, by the ids of the blocks, in the shards of the vertices."""
    settings = _how(graph, trusses=False)
    result = graph.executor.submit("cores", _cores, settings, list(graph.blocks.values()))
    return in_shards(graph.executor, "cores", result, graph.prepared.graph.order.starts)


def fits_one_worker(graph: CountingContext, extra_bytes: int = 0) -> bool:
    """Whether one worker can peel the edges, with `extra_bytes` an edge."""
    backend = graph.executor.backend.name
    _, nbytes = _kernel_and_bytes(graph, backend, _threads(graph))
    return graph.edges <= graph.tuning.peeled_edges and nbytes + extra_bytes * graph.edges <= graph.plan.memory


def trussness_in_blocks(graph: CountingContext) -> dict[Block, Any]:
    """Compute the trussness of every edge on one worker: a handle of an array of int32 for each block."""
    executor, places = graph.executor, list(graph.blocks)
    result = executor.submit(
        "truss", _trussness_in_blocks, _how(graph, extra_bytes=PLACED), list(graph.blocks.values())
    )
    return dict(zip(places, [array for (array,) in executor.transpose("truss", [result], len(places))], strict=True))


def _threads(graph: CountingContext) -> int:
    return graph.answers.threads_of_a_call if graph.executor.backend.name == "cpu" else 1


def _how(graph: CountingContext, trusses: bool = True, extra_bytes: int = 0) -> _How:
    """Reserve the memory of the single call that computes trusses or cores, or refuse it."""
    plan, executor, threads = graph.plan, graph.executor, _threads(graph)
    backend = executor.backend.name
    if graph.edges > graph.tuning.peeled_edges:
        raise InputError(
            f"the graph has {plural(graph.edges, 'edge')}, but one worker peels at most "
            f"{graph.tuning.peeled_edges:,}: prepare a part of it"
        )
    kernel, nbytes = _kernel_and_bytes(graph, backend, threads) if trusses else ("", _bytes_of_cores(graph, backend))
    nbytes += extra_bytes * graph.edges
    fact = f"peeling {plural(graph.edges, 'edge')} needs {format_size(nbytes)} on one worker"
    cause = "it receives the whole graph, and the neighbours of every vertex"
    remedy = f"{cause}; raise {advice('memory')}, or take a larger worker"
    refuse_beyond(plan.memory, nbytes, fact, remedy, "that it has")
    executor.store.set_task_memory(nbytes, plan.memory)
    has_dropped_edges = graph.edges < graph.prepared.graph.edges
    facts = graph.vertices, graph.edges, has_dropped_edges, graph.folder_of_copies, graph.tuning
    return _How(executor.backend, kernel, threads, *facts)


def _kernel_and_bytes(graph: CountingContext, backend: str, threads: int) -> tuple[str, int]:
    """Choose the kernel that computes supports; return it and the bytes of the call with the blocks that it joins."""
    plan, edges, vertices = graph.plan, graph.edges, graph.vertices
    nbytes = _bytes_of_one_block(graph)
    nbytes += 32 * edges + 32 * vertices  # the edges cut out, and their positions
    peel = peel_bytes(backend, vertices, edges)
    size = TaskSize(-(-edges // threads), edges, edges, vertices, threads)
    for kernel in support_kernels(backend, graph.options.chosen_kernel):
        scratch = support_scratch_bytes(backend, kernel, size, GraphBounds(graph.prepared.weights, ordered=True))
        total = nbytes + max(peel, threads * (4 * edges + scratch))
        if total <= plan.memory:
            return kernel, total
    return VISITED, nbytes + max(peel, threads * support_bytes(backend, edges, vertices))


def _bytes_of_cores(graph: CountingContext, backend: str) -> int:
    return _bytes_of_one_block(graph) + core_bytes(backend, graph.vertices, graph.edges)


def _bytes_of_one_block(graph: CountingContext) -> int:
    """Bytes of the blocks and, if there are several, of all edges as one block."""
    sizes = graph.prepared.sizes
    nbytes = int(graph.plan.scheme.block_bytes(sizes).sum())
    if len(graph.blocks) != 1 or not ORDERS[graph.options.chosen_reorder].ordered:
        nbytes += 40 * int(sizes.edges.sum()) + 12 * graph.edges + 40 * graph.vertices
    return nbytes


# on the worker


def _cores(settings: _How, blocks: list[OrientedCSR]) -> Array:
    joined_block = _together(settings, blocks)
    cores = settings.backend.peel.cores(joined_block, 0, MOST)
    if joined_block.members is None:
        return cores[: settings.vertices]  # a block may have rows without a vertex
    core_numbers = settings.backend.array.zeros(settings.vertices, dtype="int32")
    core_numbers[joined_block.members] = cores
    return core_numbers


def _truss(settings: _How, k: int | None, blocks: list[OrientedCSR]) -> list[Any]:
    joined_block = _together(settings, blocks)
    if settings.dropped:
        joined_block, _ = _cut(settings, joined_block, settings.backend.array.ones(joined_block.edges, dtype=bool))
    block, values = _decomposed(settings, joined_block) if k is None else _k_truss(settings, joined_block, k)
    vertices = block.rows if block.members is not None else settings.vertices
    largest, total = (int(values.max()), int(values.sum(dtype="int64"))) if block.edges else (0, 0)
    return [block, values, TrussFacts(vertices, block.edges, largest, total)]


def _trussness_in_blocks(settings: _How, blocks: list[OrientedCSR]) -> list[Array]:
    joined_block, trussness = _decomposed(settings, _together(settings, blocks))
    shift, backend = shift_of(settings.vertices), settings.backend
    keys = _keys_of(joined_block, shift, backend)
    order = keys.argsort()
    keys, trussness = keys[order], trussness[order]
    return [trussness[keys.searchsorted(_keys_of(block, shift, backend))] for block in blocks]


def distinct_edges(blocks: list[OrientedCSR], vertices: int, edges: int, copies: str, backend: Backend) -> Array:
    """Return the keys of the different edges of all blocks, ascending, whichever way they point; empties the list.

    Another number than the graph's `edges` is refused; `copies` is `CountingContext.folder_of_copies`.
    """
    keys, shift = list[Array](), shift_of(vertices)
    while blocks:
        keys.append(_keys_of(blocks.pop(), shift, backend))
    if len(keys) == 1 and bool((keys[0][1:] > keys[0][:-1]).all()):
        edge_keys = keys.pop()  # as those of one block in `degree` order are
    else:
        edge_keys = distinct(keys, 1 << (2 * shift), backend)
    fact = f"the blocks hold {len(edge_keys):,} different edges, but the plan {edges:,}"
    refuse_unless(len(edge_keys) == edges, fact, copies)
    return edge_keys


def _keys_of(block: OrientedCSR, shift: int, backend: Backend) -> Array:
    """Return the key of each edge of a block, whichever way it points."""
    u, v, xp = block.row_ids(backend.peel.rows(block)), block.column_ids(block.columns), backend.array
    return pack(xp.maximum(u, v), xp.minimum(u, v), shift)


def _together(settings: _How, parts: list[OrientedCSR]) -> OrientedCSR:
    """Join all edges to one block in an order in which columns are below their rows: usually the existing order."""
    if len(parts) == 1 and parts[0].ordered and parts[0].members is None:
        return parts[0]
    shift, is_ordered = shift_of(settings.vertices), all(block.ordered for block in parts)
    blocks = list(parts)  # the inputs of a task must not be modified
    edge_keys = distinct_edges(blocks, settings.vertices, settings.edges, settings.copies, settings.backend)
    members = None
    if not is_ordered:
        edge_keys, members = _by_degree(settings, edge_keys, shift)
    edges = settings.backend.edges
    return OrientedCSR(*edges.rows(edge_keys, 0, settings.vertices, 1 << shift), ordered=True, members=members)


def _by_degree(settings: _How, keys: Array, shift: int) -> tuple[Array, Array]:
    """Return keys over ranks by descending degree, and the id of each rank."""
    xp = settings.backend.array
    high, low = keys >> shift, keys & ((1 << shift) - 1)
    degree = xp.bincount(high, minlength=settings.vertices) + xp.bincount(low, minlength=settings.vertices)
    members = xp.argsort(-degree).astype("int32")
    rank = xp.empty(settings.vertices, dtype="int64")
    rank[members] = xp.arange(settings.vertices, dtype="int64")
    u, v = rank[high], rank[low]
    keys = pack(xp.maximum(u, v), xp.minimum(u, v), shift)
    return settings.backend.sort(keys, 1 << (2 * shift)), members


def _cut(settings: _How, block: OrientedCSR, mask: Array) -> tuple[OrientedCSR, Array]:
    """Return a block of the remaining edges over the vertices that have one, and the positions of these edges."""
    xp = settings.backend.array
    places = xp.flatnonzero(mask)
    rows, columns = settings.backend.peel.rows(block)[places], block.columns[places]
    is_vertex = xp.zeros(block.rows, dtype=bool)
    is_vertex[rows] = True
    is_vertex[columns] = True
    number = xp.cumsum(is_vertex, dtype="int32")
    number -= 1
    members = xp.flatnonzero(is_vertex)
    keys = pack(number[rows], number[columns], SHIFT)
    arrays = settings.backend.edges.rows(keys, 0, len(members), 1 << SHIFT)
    return OrientedCSR(*arrays, ordered=True, members=block.row_ids(members).astype("int32")), places


def _core(settings: _How, block: OrientedCSR, degree: int) -> tuple[OrientedCSR, Array | None]:
    """Return the core of that degree and the positions of its edges (None: all edges)."""
    membership = settings.backend.peel.cores(block, degree - 1, degree - 1) < 0
    if bool(membership.all()):
        return block, None
    mask = membership[block.columns]
    mask &= membership[settings.backend.peel.rows(block)]
    return _cut(settings, block, mask)


def _supports(settings: _How, block: OrientedCSR) -> tuple[Array, int]:
    """Count the triangles of each edge, int32, and of the block, on all threads."""
    xp = settings.backend.array
    if not block.edges:
        return xp.zeros(0, dtype="int32"), 0
    splits = settings.threads if block.edges >= settings.tuning.shared_count else 1

    splits_of_block = [Job(ONE, split, splits, settings.kernel, settings.backend.name) for split in range(splits)]
    calls = (partial(supports_of_task, job, (block,) * 3) for job in splits_of_block)
    arrays, records = zip(*results(splits, calls, splits), strict=True)
    supports, triangles = arrays[0][ONE.index], sum(record.count.triangles for record in records)
    for addends in arrays[1:]:
        supports += addends[ONE.index]
    lengths = xp.diff(block.offsets)
    wedge_sum, expected = sum(record.count.wedges for record in records), int(lengths[block.columns].sum())
    refuse_unless(
        wedge_sum == expected, f"the count handled {plural(wedge_sum, 'wedge')}, but the rows have {expected:,}"
    )
    refuse_unless(int(supports.sum(dtype="int64")) == 3 * triangles, "supports do not add up to 3 per triangle")
    return supports, triangles


def _peeled(settings: _How, block: OrientedCSR, supports: Array, first: int, last: int) -> Peeled:
    """Peel the trusses; whenever the backend stops early, cut out the remaining edges and continue with them."""
    result = settings.backend.peel.trusses(block, supports, first, last)
    if result.following is None:
        return result
    rest, places = _cut(settings, block, result.levels < 0)
    remainder = _peeled(settings, rest, result.left[places], result.following, last)
    result.levels[places] = remainder.levels
    result.left[places] = remainder.left
    return Peeled(result.levels, result.left, result.triangles + remainder.triangles)


def _decomposed(settings: _How, joined_block: OrientedCSR) -> tuple[OrientedCSR, Array]:
    """Compute the trussness of every edge: 2 outside the 2-core and for edges without triangles."""
    xp = settings.backend.array
    trussness = xp.full(joined_block.edges, 2, dtype="int32")
    core, places = _core(settings, joined_block, 2)
    supports, triangles = _supports(settings, core)
    mask = supports > 0
    if not bool(mask.all()):
        core, core_places = _cut(settings, core, mask)
        supports, places = supports[core_places], core_places if places is None else places[core_places]
    if core.edges:
        result = _peeled(settings, core, supports, 1, MOST)
        refuse_unless(
            result.triangles == triangles,
            f"{plural(result.triangles, 'triangle was', 'triangles were')} peeled, but {triangles:,} counted",
        )
        values = result.levels + 2
        if places is None:
            trussness = values
        else:
            trussness[places] = values
    return joined_block, trussness


def _k_truss(settings: _How, joined_block: OrientedCSR, k: int) -> tuple[OrientedCSR, Array]:
    """Compute the k-truss and the triangles of its edges."""
    if k <= 2:
        return joined_block, _supports(settings, joined_block)[0]
    block, threshold = joined_block, k - 2
    while True:
        block, _ = _core(settings, block, k - 1)
        supports, triangles = _supports(settings, block)
        mask = supports >= threshold
        removals = block.edges - int(mask.sum())
        if not removals:
            return block, supports
        if settings.tuning.recount * removals < block.edges:
            break
        block, places = _cut(settings, block, mask)
        if threshold == 1:  # no other edge had a triangle with the removed ones
            return block, supports[places]
    result = _peeled(settings, block, supports, threshold - 1, threshold - 1)
    mask = result.levels < 0
    block, places = _cut(settings, block, mask)
    supports = result.left[places]
    incidences = int(supports.sum(dtype="int64"))
    refuse_unless(
        3 * (triangles - result.triangles) == incidences,
        f"{plural(triangles, 'triangle was', 'triangles were')} counted, {result.triangles:,} peeled, and edges have "
        f"{incidences:,} left together",
    )
    return block, supports
