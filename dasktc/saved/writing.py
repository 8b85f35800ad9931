"""Saving: the workers write a prepared graph's blocks, vertex vectors and ids, and the client the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.errors import InputError, without_secrets
from dasktc.executors.base import Executor, starmap
from dasktc.options import Options
from dasktc.pipeline.autotune import look
from dasktc.pipeline.build_blocks import Blocks, GridPartition, Partition
from dasktc.pipeline.lstc_partition import ProxyPartition
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.prepare import Prepared
from dasktc.planning.plan import Proxies
from dasktc.saved import manifest
from dasktc.saved.arrays import MOST, StoredArray, write_arrays
from dasktc.saved.folder import write_folder
from dasktc.wording import option

__all__ = ["write_graph"]

Array = Any


def write_graph(executor: Executor, prepared: Prepared, blocks: Blocks, options: Options, out: str) -> int:
    """Save a graph in the folder or at the URL that `folder.check_new` returned; return the bytes of its arrays.

    All workers must see it. InputError: the scheme is a plug-in's, with a partition class of its own. DasktcError: a
    file cannot be written.
    """
    content = write_folder(out, partial(_write_files, executor, prepared, blocks, options))
    return sum(array.nbytes for array in manifest.arrays_of(content))


def _write_files(
    executor: Executor, prepared: Prepared, blocks: Blocks, options: Options, folder: str
) -> manifest.Manifest:
    """Write all files but the manifest, and return what that will say."""
    graph, plan, source = prepared.graph, prepared.plan, prepared.source
    layout = _layout_record(prepared.partition, plan.partition)
    records, facts = _write_arrays(executor, prepared, blocks, folder), look(executor, graph)
    return manifest.Manifest(
        name=without_secrets(source.name),
        triangles=source.triangles,
        vertices=plan.vertices,
        edges=plan.edges,
        rows=prepared.rows,
        loops=prepared.loops,
        half_weight=prepared.half_weight,
        wedges=graph.wedges,
        read=replace(source.read, what=without_secrets(source.read.what)),
        method=manifest.MethodRecord(
            partition=plan.partition,
            parts=plan.parts,
            column_parts=plan.column_parts,
            splits=options.splits and min(options.splits, MOST),  # there are never more than edges
            reorder=options.chosen_reorder,
            assign="random" if options.assign_file else str(options.assign),  # a file may be gone when it is opened
            proxies=options.proxies,
            seed=options.seed,
        ),
        backend=options.chosen_backend,  # type: ignore[arg-type]
        kernel=None if plan.lean else options.chosen_kernel,
        choice=plan.choice,
        facts={name: int(getattr(facts, name)) for name in manifest.FACTS},
        layout=layout,
        **records,
    )


def _write_arrays(executor: Executor, prepared: Prepared, blocks: Blocks, folder: str) -> dict[str, Any]:
    """Write all arrays by tasks; return the fields of the manifest that tell of them."""
    values, places, vertices = prepared.attributes, sorted(blocks), prepared.vertices
    vectors = {name: getattr(prepared.graph, name).parts for name in manifest.VECTORS}
    ids = vertices.parts if isinstance(vertices, Sharded) else [vertices]
    calls: list[tuple[Any, ...]] = [(blocks[place], _write_block, folder, _name("block", *place)) for place in places]
    if values is not None:
        for place in places:
            arrays = [values.roots.get(place), values.directions.get(place)]
            calls.append((arrays, _write_attributes, folder, _name("attributes", *place)))
    for name, parts in vectors.items():
        file = name.replace("_", "-")
        calls += [(part, _write_vector, folder, _name(file, number)) for number, part in enumerate(parts)]
    calls += [(part, _write_ids, folder, _name("ids", number)) for number, part in enumerate(ids)]
    results: Iterator[Any] = iter(executor.gather(starmap(executor, "save", _write, calls)))
    # The records come in the order of the calls.
    block_arrays = [next(results) for _ in places]
    if values is not None:
        block_arrays = [arrays | next(results) for arrays in block_arrays]
    records: dict[str, Any] = {"blocks": [manifest.BlockRecord(**arrays) for arrays in block_arrays]}
    records |= {name: [next(results) for _ in parts] for name, parts in vectors.items()}
    records["ids"] = (manifest.TextIds if prepared.source.ids == "text" else manifest.IntegerIds)(shards=list(results))
    if values is not None:
        neighbours = None
        if values.neighbours is not None:
            calls = [
                (part, _write_neighbours, folder, _name("neighbours", number))
                for number, part in enumerate(values.neighbours.parts)
            ]
            shards = executor.gather(starmap(executor, "save", _write, calls))
            neighbours = [array for arrays in shards for array in arrays]
        records["attributes"] = manifest.AttributeRecord(
            weight=values.weight, directed=values.directed, largest=values.largest, neighbours=neighbours
        )
    return records


def _name(*parts: Any) -> str:
    return f"{'-'.join(map(str, parts))}.bin"


def _write(value: Any, function: Callable[..., Any], folder: str, name: str) -> Any:
    """Write the arrays of a value. Runs on a worker."""
    return function(value, folder, name)


def _write_block(block: OrientedCSR, folder: str, name: str) -> dict[str, StoredArray[Any]]:
    arrays = {"offsets": block.offsets, "columns": block.columns, "members": block.members}
    return write_arrays(folder, name, arrays)


def _write_attributes(arrays: list[Array | None], folder: str, name: str) -> dict[str, StoredArray[Any]]:
    return write_arrays(folder, name, dict(zip(("roots", "directions"), arrays, strict=True)))


def _write_neighbours(neighbours: Array, folder: str, name: str) -> tuple[StoredArray[Any], ...]:
    return tuple(write_arrays(folder, name, dict(zip(("out", "into", "both"), neighbours, strict=True))).values())


def _write_vector(vector: Array, folder: str, name: str) -> StoredArray[Any]:
    values = vector.astype("int32", copy=False)  # ids and degrees are below 2^31
    return write_arrays(folder, name, {"values": values})["values"]


def _write_ids(ids: Any, folder: str, name: str) -> StoredArray[Any] | manifest.TextRecord:
    """Write the ids of a map or of a shard: integers in the narrowest type that fits, or the buffers of texts."""
    vertex_ids: Any = ids.external(np.arange(ids.size)) if hasattr(ids, "external") else ids
    if hasattr(vertex_ids, "__array_interface__") or hasattr(vertex_ids, "get"):
        values = on_host(vertex_ids)
        fits_32_bits = not len(values) or (values[0] >= -(2**31) and values[-1] < 2**31)  # ascending
        values = values.astype("int32" if fits_32_bits else "int64", copy=False)
        return write_arrays(folder, name, {"values": values})["values"]
    import pyarrow as pa

    text = vertex_ids if isinstance(vertex_ids, pa.Array) else vertex_ids.combine_chunks()
    text = pa.concat_arrays([text.cast(pa.large_string())])  # a copy without the rest of a sliced array
    _, places, data = text.buffers()
    offsets = np.frombuffer(places, "int64", len(text) + 1, 8 * text.offset) if len(text) else np.zeros(1, "int64")
    letters = np.frombuffer(data or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return manifest.TextRecord(**write_arrays(folder, name, {"offsets": offsets - offsets[0], "letters": letters}))


def _layout_record(partition: Partition, scheme: str) -> manifest.GridRecord | manifest.PartsRecord:
    if isinstance(partition, GridPartition):
        rows, *families = (axis.starts or axis.parts for axis in (partition.layout.rows, *partition.layout.families))
        return manifest.GridRecord(rows=rows, families=families)
    if isinstance(partition, ProxyPartition):
        proxies = [Proxies(*map(int, sizes)) for sizes in partition.proxies]
        return manifest.PartsRecord(wedges=partition.wedges, proxies=proxies)
    raise InputError(
        f"{option('partition', scheme)} has a partition of its own, {type(partition).__name__}, which is not saved; "
        "prepare the graph with another"
    )
