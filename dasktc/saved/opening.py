"""Opening: a saved graph as a source, its plan from the manifest alone, and blocks that workers read and check.

A graph is opened with the scheme, n and order that it was saved with, by any number of workers, on the CPU or on GPUs,
and in as many shards of vertex vectors as memory requires. The number of splits, and on another backend the kernel, are
chosen anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
from msgspec.structs import asdict

from dasktc.backends import ON_DEVICE, Backend
from dasktc.backends.block_facts import Hash, VertexFacts
from dasktc.backends.csr import on_host
from dasktc.backends.vertex_maps import VertexMap
from dasktc.errors import InputError
from dasktc.executors.base import CPU, Executor, starmap
from dasktc.io.source import ReadOptions, Source
from dasktc.options import AttributeOptions, Ids, Options
from dasktc.pipeline.autotune import Facts, choose
from dasktc.pipeline.build_blocks import Blocks, GridPartition
from dasktc.pipeline.lstc_partition import ProxyPartition
from dasktc.pipeline.planes import answers_of
from dasktc.pipeline.planes.choice import choose as choose_plane
from dasktc.pipeline.planes.graph import Handles, Oriented
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Prepared, Progress, limits_of
from dasktc.pipeline.stages.attributes import AGAINST, ALONG, EdgeAttributes
from dasktc.pipeline.stages.id_maps import SortedMap, TextMap
from dasktc.pipeline.stages.shards import even
from dasktc.planning.distribution import SourceSize
from dasktc.planning.placement import builders
from dasktc.planning.plan import Limits
from dasktc.planning.schemes import Block
from dasktc.planning.scratch import plan_count
from dasktc.registry import KERNELS, SCHEMES
from dasktc.saved import checks
from dasktc.saved.arrays import StoredArray, read_array
from dasktc.saved.folder import MANIFEST, check_sizes, damaged, joined, manifest_of
from dasktc.saved.manifest import VECTORS, AttributeRecord, Manifest, TextIds, TextRecord, arrays_of, decoded
from dasktc.wording import advice, option, plural

__all__ = ["SavedGraph", "fitted", "open_blocks", "open_plan", "saved_graph"]

Array = Any


@dataclass(frozen=True)
class SavedGraph(Source):
    """A saved graph as a source: it has no parts to read as edges, but a manifest."""

    manifest: Manifest = field(kw_only=True, repr=False)

    @property
    def attributes(self) -> AttributeOptions:
        """The weights and directions that were saved."""
        return self.manifest.kept


def saved_graph(source: Any, options: ReadOptions | None = None) -> SavedGraph | None:
    """Open the manifest of a saved graph, and check that its files are there; no array is read.

    None for any other source than a saved graph. `options` are those by which files of edges would be read.

    InputError: the graph is damaged, of another format or one of several sources, or an option is given that it does
    not take.
    """
    names = list(source) if isinstance(source, list | tuple) else [source]
    if not all(isinstance(name, str | os.PathLike) for name in names):
        return None
    contents = next((content for name in names if (content := manifest_of(name)) is not None), None)
    if contents is None:
        return None
    folder, graph = contents
    manifest = decoded(folder, graph)
    if len(names) > 1:
        raise InputError(
            f"{folder} is a saved graph, and {plural(len(names) - 1, 'more source is', 'more sources are')} given: it "
            "is opened as it is, and no edges are added; give it alone"
        )
    sizes = manifest.files()
    ids: Ids = "text" if isinstance(manifest.ids, TextIds) else "int"
    check_sizes(folder, sizes)
    _refuse_reading(folder, ids, options)
    size = SourceSize(manifest.rows, sum(sizes.values()))
    return SavedGraph(
        manifest.name, (), ids, manifest.triangles, size=size, reading=manifest.read, folder=folder, manifest=manifest
    )


def _refuse_reading(folder: str, ids: str, options: ReadOptions | None) -> None:
    if options is None:
        return
    values = {"format": options.format, "columns": options.columns, "skip": options.skip}
    if options.ids not in (None, ids):
        values["ids"] = options.ids
    for name, value in values.items():
        if value is not None:
            raise InputError(
                f"{option(name, value)} is given for {folder}, a saved graph: it says how files of edges are read, "
                "and these were read when it was prepared; leave it out"
            )


def fitted(saved: SavedGraph, options: Options) -> Options:
    """The options with a saved graph's scheme, n and order, and its seed where its blocks depend on one.

    InputError: an option asks for another value than the one that was saved.
    """
    method, default = {"sort_rows": True, **asdict(saved.manifest.method)}, Options()
    scheme = SCHEMES[method["partition"]]
    free = {"parts": scheme.replicated, "seed": not scheme.dealing.members}  # what no block depends on
    for name in ("partition", "parts", "reorder", "column_parts", "assign", "seed", "proxies", "sort_rows"):
        value = getattr(options, name)
        if value in (getattr(default, name), method[name]) or free.get(name):
            continue
        raise InputError(
            f"{option(name, value)} is asked for, {saved.folder} was saved with {name.replace('_', ' ')} "
            f"{method[name]}: its blocks stay as they are; leave it out, or prepare the graph again"
        )
    if options.splits is not None:
        method["splits"] = options.splits
    if free["seed"]:
        method["seed"] = options.seed
    return replace(options, **method)


def open_plan(
    executor: Executor,
    saved: SavedGraph,
    options: Options,
    limits: Limits | None = None,
    planned_for: str | None = None,
) -> Prepared:
    """Plan the count of a saved graph from its manifest alone.

    Parameters
    ----------
    executor : Executor
        With the options' backend.
    saved : SavedGraph
    options : Options
        As `fitted` returns them, with the backend chosen.
    limits : Limits, optional
        Limits of the workers that the plan is for, where these are not the executor's.
    planned_for : str, optional
        The backend of those workers; default: the options' backend.

    Returns
    -------
    Prepared
        Its vectors and ids are read on first access.

    Raises
    ------
    InputError
        The vertices do not fit the memory.
    """
    manifest, is_automatic = saved.manifest, options.kernel == "auto"
    options, choice = _with_kernel(executor, manifest, options, planned_for)
    vertices, saved_partition = manifest.vertices, manifest.partition()
    plan, partition, options = plan_count(
        options,
        max(vertices, manifest.method.parts),  # the grid stays as it was where updates removed vertices
        manifest.edges,
        lambda *_: saved_partition,
        limits or limits_of(executor, options),
        choice,
        automatic=is_automatic,
        memory_per_call=None if planned_for else choose_plane(executor, options).stage_memory,
        planned_for=planned_for,
        rows=max(manifest.rows - manifest.loops, manifest.half_weight),
    )
    budget = choose_plane(executor, options).vertex_budget(saved.ids)
    if saved.ids == "text":
        budget = budget.for_texts(vertices, sum(array.nbytes for array in arrays_of(manifest.ids)))
    budget.check(vertices, plan.partition)
    shards = budget.shards(vertices)
    plan = replace(plan, vertices=vertices, proxies=partition.proxies, shards=shards, numbering=budget.why(vertices))
    starts = even(vertices, shards)

    def sharded(function: Any, files: _Files) -> Sharded:
        calls = [(function, files, *span, executor.backend) for span in pairwise(starts)]
        return Sharded(starts, lambda: [executor.submit("open", *call) for call in calls])

    order, *degrees = (sharded(_vector, _Files(saved.folder, getattr(manifest, name), vertices)) for name in VECTORS)
    numbering = sharded(_id_map if shards == 1 else _ids, _Files(saved.folder, manifest.ids.shards))
    graph = Oriented(Handles(), order, degrees[0], degrees[1], manifest.wedges, manifest.edges)
    source = Source(saved.name, (), saved.ids, saved.triangles, reading=saved.reading, folder=saved.folder)
    seconds = {"read": 0.0, "prepare": 0.0}
    counts = manifest.rows, manifest.loops
    return Prepared(
        graph, partition, plan, numbering, *counts, source, options, seconds, half_weight=manifest.half_weight
    )


def open_blocks(
    executor: Executor, saved: SavedGraph, options: Options, progress: Progress, attributes: bool
) -> tuple[Prepared, Blocks]:
    """Read a saved graph's blocks and vectors on the workers, and compare every byte with its checksum.

    Parameters
    ----------
    executor : Executor
        With the options' backend.
    saved : SavedGraph
    options : Options
        As `fitted` returns them, with the backend chosen.
    progress : callable
    attributes : bool
        Also read weights and directions.

    Raises
    ------
    InputError
        The graph is damaged, or the largest task does not fit a worker's memory.
    """
    start = time.perf_counter()
    progress("read", 0, 1)
    prepared, record = open_plan(executor, saved, options), saved.manifest.attributes
    plan = prepared.plan
    if not plan.fits:
        raise InputError(
            f"{plan.why}: the saved graph is too large for it; raise {advice('memory')}, or prepare it again with it"
        )
    executor.store.set_task_memory(plan.bytes_per_task, plan.memory)
    blocks = _open_checked(executor, saved, prepared)
    if isinstance(prepared.partition, ProxyPartition):
        members = [executor.submit("open", attrgetter("members"), blocks[part, 1]) for part in range(plan.parts)]
        prepared = replace(prepared, partition=prepared.partition._replace(members=members))
    executor.wait([*blocks.values(), *prepared.numbered.parts])
    if attributes and record is not None:
        prepared = replace(prepared, attributes=_open_attributes(executor, saved, record, prepared))
    return replace(prepared, seconds={"read": time.perf_counter() - start, "prepare": 0.0}), blocks


def _open_checked(executor: Executor, archive: SavedGraph, prepared: Prepared) -> Blocks:
    """Read the blocks on the workers, and check blocks and vertex vectors (`saved.checks`)."""
    manifest, partition, sizes, hasher = archive.manifest, prepared.partition, prepared.sizes, Hash.draw()
    degrees = joined(archive.folder, manifest.out_degree[0].file)
    widths = [1]  # local rows are in column 0
    if isinstance(partition, GridPartition):
        widths = [axis.parts for axis in partition.layout.families]
    requests = {}
    for place, record in manifest.places.items():
        stride, row_first, column_first = 1, 0, 0
        if isinstance(partition, GridPartition):
            stride, row_first = partition.layout.rows.stride, partition.layout.rows.firsts[place[0]]
            column_first = partition.layout.numbering(place[1])[0]
        numbering = stride, row_first, column_first, manifest.graph_shape.ordered, place
        shape = int(sizes.rows[place]), int(sizes.columns[place])
        requests[place] = checks.BlockRead(
            archive.folder, record, numbering, *shape, manifest.vertices, hasher, len(widths) > 1
        )
    vectors = _check_vectors(executor, archive, prepared, hasher)
    expected = checks.Totals(vectors.sources, vectors.targets)
    blocks, totals = _read_blocks(executor, prepared, requests, (expected, degrees))
    # Degrees are those of the blocks in each family of columns, and all families have the same edges.
    families = [
        checks.Totals.add_up(sums for (_, column), sums in totals.items() if first <= column < end)
        for first, end in pairwise([0, *accumulate(widths)])
        if totals
    ]
    if any((sums.sources, sums.targets) != (expected.sources, expected.targets) for sums in families):
        raise damaged(degrees, "its degrees, or those into the vertices, are not those of the blocks")
    if any(sums.pairs != families[0].pairs for sums in families):
        raise damaged(archive.folder, "the blocks of its two families of columns have not the same edges")
    if isinstance(partition, ProxyPartition):
        _check_proxies(executor, archive, partition, blocks)
    elif not manifest.graph_shape.ordered and len(prepared.graph.order.parts) == 1:
        # Ids do not show whether an edge leads to its end of higher degree.
        wholes = (getattr(prepared.graph, name).whole for name in VECTORS)
        rank = executor.submit("open", checks.ranks, *wholes, executor.backend)
        calls = [(block, rank, requests[place].url, executor.backend) for place, block in blocks.items()]
        executor.wait(starmap(executor, "open", checks.refuse_against_ranks, calls))
    return blocks


def _read_blocks(
    executor: Executor, prepared: Prepared, requests: dict[Block, checks.BlockRead], expected: tuple[checks.Totals, str]
) -> tuple[Blocks, dict[Block, checks.Totals]]:
    """Read and check each block by itself; return the sums over each, but of a single block compare them at once."""
    backend, plan, answers = executor.backend, prepared.plan, answers_of(executor)
    if len(requests) == 1:  # each worker may read its own
        ((place, request),) = requests.items()
        make = answers.submit_replicated if plan.scheme.replicated else executor.submit
        return {place: make("open", checks.open_block, replace(request, expected=expected), backend)}, {}
    homes = builders(plan, prepared.sizes, executor.worker_threads)
    calls, workers = [(request, backend) for request in requests.values()], [homes.get(place) for place in requests]
    handles, totals = answers.measured("open", checks.checked_block, calls, workers)
    return dict(zip(requests, handles, strict=True)), dict(zip(requests, totals, strict=True))


def _check_vectors(executor: Executor, archive: SavedGraph, prepared: Prepared, hasher: Hash) -> VertexFacts:
    """Read the vertex vectors, and return the sums over them; refuse an order that is no permutation, and wedges."""
    graph, manifest = prepared.graph, archive.manifest
    shards = zip(graph.order.parts, graph.out_degree.parts, graph.in_degree.parts, graph.order.starts, strict=False)
    handles = [executor.submit("open", checks.checked_vectors, *shard, hasher, executor.backend) for shard in shards]
    vectors = VertexFacts.add_up(executor.gather(handles))
    if vectors.dense != vectors.ids:
        raise damaged(joined(archive.folder, manifest.order[0].file), "its numbers are not those of all vertices")
    if vectors.wedges != graph.wedges:
        reason = f"it says {plural(graph.wedges, 'wedge')}, but the degrees give {vectors.wedges:,}"
        raise damaged(joined(archive.folder, MANIFEST), reason)
    return vectors


def _check_proxies(executor: Executor, archive: SavedGraph, partition: ProxyPartition, blocks: Blocks) -> None:
    """Refuse the blocks of parts with proxies if they do not close the wedges that their tasks must stream."""
    calls = [(blocks[part, 0], blocks[part, 1], executor.backend) for part in range(len(partition.proxies))]
    wedges = executor.gather([executor.submit("open", checks.proxy_wedges, *call) for call in calls])
    if None in wedges:
        file = joined(archive.folder, archive.manifest.places[wedges.index(None), 0].columns.file)
        raise damaged(file, "its members are not those of its part")
    if sum(wedges) != partition.wedges:
        raise damaged(
            joined(archive.folder, MANIFEST),
            f"it says {plural(partition.wedges, 'wedge')} of parts, but the blocks have {sum(wedges):,}",
        )


def _with_kernel(
    executor: Executor, manifest: Manifest, options: Options, backend_name: str | None
) -> tuple[Options, str]:
    """Choose the kernel and say why: the saved one, unless another kernel is asked for or the backend changed."""
    backend, kernel = backend_name or options.chosen_backend, manifest.kernel
    if options.kernel == "auto" and kernel is not None and backend == manifest.backend and kernel in KERNELS[backend]:
        return replace(options, kernel=kernel), manifest.choice
    processors = 1
    if options.chosen_backend in ON_DEVICE and options.kernel == "auto":
        (processors,) = executor.gather([executor.submit("open", methodcaller("processors"), executor.backend)])
    result, reason = choose(replace(options, backend=backend), Facts(**manifest.facts, processors=processors))
    return replace(result, backend=options.backend), reason


# vectors and ids, on the workers


@dataclass(frozen=True)
class _Files:
    """A column that several files hold one after another; of int32 in [0, below), where that bound is given."""

    folder: str
    shards: Sequence[StoredArray[Any] | TextRecord]
    below: int | None = None

    def spans(self, first: int, end: int) -> Iterable[tuple[Any, int, int]]:
        """Yield the shards that have some of the entries `first` to `end`, each with the range of its own entries."""
        start = 0
        for shard in self.shards:
            if start < end and first < start + shard.length:
                yield shard, max(0, first - start), min(shard.length, end - start)
            start += shard.length

    def damaged(self, stored: StoredArray[Any], why: str) -> InputError:
        """Make the error for a file with wrong entries."""
        return damaged(joined(self.folder, stored.file), why)


def _vector(files: _Files, first: int, end: int, backend: Backend, dtype: str = "int32") -> Array:
    parts = []
    for array, begin, stop in files.spans(first, end):
        part = read_array(files.folder, array, backend, begin, stop)
        if files.below is not None and len(part) and int(part.view("uint32").max()) >= files.below:
            raise files.damaged(array, f"a number is not below that of {plural(files.below, 'vertex')}")
        parts.append(part.astype(dtype, copy=False))
    if len(parts) == 1:
        return parts[0]
    return backend.array.concatenate(parts) if parts else backend.array.empty(0, dtype=dtype)


def _ids(files: _Files, first: int, end: int, backend: Backend) -> Any:
    """Read ids, integers of the backend or texts of Arrow; they ascend, also from the one before them."""
    start, shard = max(0, first - 1), files.shards[0]
    if isinstance(shard, TextRecord):
        import pyarrow.compute as pc

        array, ids = shard.letters, _text(files, start, end)
        is_ascending = len(ids) < 2 or pc.all(pc.less(ids[:-1], ids[1:])).as_py()
    else:
        array, ids = shard, _vector(files, start, end, backend, "int64")
        is_ascending = not bool((ids[1:] <= ids[:-1]).any())
    if not is_ascending:
        raise files.damaged(array, "its ids do not ascend")
    return ids[first - start :]


def _text(files: _Files, first: int, end: int) -> Any:
    """Read texts as an Arrow array."""
    import pyarrow as pa

    parts = [pa.array([], pa.large_string())]
    for shard, begin, stop in files.spans(first, end):
        offsets = read_array(files.folder, shard.offsets, None, begin, stop + 1)
        if not 0 <= offsets[0] <= offsets[-1] <= shard.letters.length or (offsets[1:] < offsets[:-1]).any():
            raise files.damaged(shard.offsets, "its texts do not follow each other")
        letters = read_array(files.folder, shard.letters, None, int(offsets[0]), int(offsets[-1]))
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(letters)]
        parts.append(pa.Array.from_buffers(pa.large_string(), stop - begin, buffers))
        try:
            parts[-1].validate(full=True)
        except pa.ArrowInvalid as error:
            raise files.damaged(shard.letters, " ".join(str(error).split())) from None
    return pa.concat_arrays(parts)


def _id_map(files: _Files, first: int, end: int, backend: Backend) -> VertexMap:
    ids = _ids(files, first, end, backend)
    if isinstance(files.shards[0], TextRecord):
        return TextMap(backend.text.column(ids), backend)
    return SortedMap(ids, backend)


# weights and directions, on the workers


def _open_attributes(
    executor: Executor, archive: SavedGraph, record: AttributeRecord, prepared: Prepared
) -> EdgeAttributes:
    """Read weights and directions; refuse numbers of neighbours that are not the degrees."""
    folder, roots, directions, neighbours = archive.folder, dict[Block, Any](), dict[Block, Any](), None
    for place, block in archive.manifest.places.items():
        if block.roots is not None:
            roots[place] = executor.submit("open", read_array, folder, block.roots, executor.backend)
        if block.directions is not None:
            directions[place] = executor.submit("open", _directions, folder, block.directions, executor.backend)
    if record.neighbours is not None:
        outward, inward = prepared.graph.out_degree, prepared.graph.in_degree
        calls = [
            (folder, record.neighbours, *span, prepared.plan.vertices, *degrees)
            for span, *degrees in zip(pairwise(outward.starts), outward.parts, inward.parts, strict=True)
        ]
        neighbours = Sharded(outward.starts, starmap(executor, "open", _neighbours, calls))
    executor.wait([*roots.values(), *directions.values(), *([] if neighbours is None else neighbours.parts)])
    return EdgeAttributes(record.weight, record.directed, record.largest, roots, directions, neighbours)


def _directions(folder: str, stored: StoredArray[Any], backend: Backend) -> Array:
    array = read_array(folder, stored, backend)
    if len(array) and not ALONG <= int(array.min()) <= int(array.max()) <= ALONG | AGAINST:
        raise damaged(joined(folder, stored.file), "a direction is none of an edge's")
    return array


def _neighbours(
    folder: str, arrays: list[StoredArray[Any]], first: int, end: int, vertices: int, *degrees: Array
) -> Array:
    ways, url = [_Files(folder, arrays[way::3]) for way in range(3)], joined(folder, arrays[0].file)
    neighbours = np.stack([_vector(files, first, end, CPU, "int64") for files in ways])
    if end > first and not 0 <= neighbours.min() <= neighbours.max() < vertices:
        raise damaged(url, f"a vertex of {vertices:,} has not so many neighbours")
    if not np.array_equal(neighbours.sum(axis=0), sum(on_host(vector).astype("int64") for vector in degrees)):
        raise damaged(url, "its numbers of neighbours are not the degrees")
    return neighbours
