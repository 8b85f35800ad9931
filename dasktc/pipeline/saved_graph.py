"""Saved graphs: a prepared graph's blocks, vertex vectors and ids in files that workers write and read, and a manifest.

    block-I-J.bin     offsets, columns and, with `proxy`, members of block (I, J)
    order-K.bin       dense ids by rank, int32; so are out-degree-K.bin and in-degree-K.bin, the degrees by rank
    ids-K.bin         the caller's ids by dense id: integers, or text as offsets and UTF-8 bytes
    attributes-I-J.bin, neighbours.bin      weights and directions

K numbers the shards of vectors, one where they were whole. `io.array_files` writes the arrays, in the same form for
every backend; the manifest has their places and checksums. A graph is opened with the scheme, n and order that it was
saved with, by any number of workers, on the CPU or on GPUs, and in as many shards as memory requires. The number of
splits, and on another backend the kernel, are chosen anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import accumulate, pairwise
from typing import Any, cast, get_args

import numpy as np

from dasktc.backends import ON_DEVICE, Backend
from dasktc.backends.block_facts import Hash, VertexFacts
from dasktc.backends.csr import OrientedCSR, on_host
from dasktc.errors import InputError, neutral_text, shown, without_secrets
from dasktc.executors.base import Executor
from dasktc.io.array_files import DIGITS, StoredArray, read_array, write_arrays
from dasktc.io.evidence import Reading
from dasktc.io.saved_folder import FILE, MANIFEST, Manifest, check_fields, check_sizes, damaged, joined, manifest_of
from dasktc.io.source import ReadOptions, Source
from dasktc.options import AttributeOptions, Ids, Options
from dasktc.pipeline.attributes import AGAINST, ALONG, EdgeAttributes, Neighbours
from dasktc.pipeline.autotune import Facts, choose, look
from dasktc.pipeline.build_blocks import Blocks, GridPartition, Partition
from dasktc.pipeline.id_maps import SortedMap, TextMap, VertexMap
from dasktc.pipeline.lstc_partition import ProxyPartition
from dasktc.pipeline.orient import Oriented
from dasktc.pipeline.prepare import Prepared, Progress, limits_of, silent
from dasktc.pipeline.saved_checks import (
    BlockRead,
    Totals,
    checked_block,
    checked_vectors,
    damaged_array,
    open_block,
    proxy_wedges,
    ranks,
    refuse_against_ranks,
)
from dasktc.pipeline.sharded.vectors import Sharded, even
from dasktc.pipeline.sharded.vertex_budget import vertex_budget_of
from dasktc.planning.distribution import SourceSize
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.placement import builders
from dasktc.planning.plan import Limits, Proxies
from dasktc.planning.schemes import Sizes, scheme_of
from dasktc.planning.scratch import plan_count
from dasktc.registry import KERNELS, ORDERS, SCHEMES, check_choice
from dasktc.wording import advice, option, plural

__all__ = ["SavedGraph", "fitted", "open_blocks", "open_plan", "saved_graph", "write_graph"]

Array = Any
VECTORS = ("order", "out_degree", "in_degree")
_NO = type(None)
_MOST = (1 << 63) - 1
"""Largest integer that a manifest can hold."""
_ARRAYS = {str: {"file": str, "dtype": str, "length": int, "start": int, "crc32": str}}
_FIELDS = {
    "version": str,
    "name": str,
    "ids": str,
    "triangles": (int, _NO),
    "vertices": int,
    "edges": int,
    "rows": int,
    "loops": int,
    "read": (
        {
            "what": str,
            "columns": ([int], _NO),
            "names": ([str], _NO),
            "width": (int, _NO),
            "selection": (str, _NO),
            "rows": (int, _NO),
            **{name: int for name in ("comments_above", "comments_below", "headers", "others")},
        },
        _NO,
    ),
    "wedges": [int],
    "partition": str,
    "parts": int,
    "column_parts": (int, _NO),
    "splits": (int, _NO),
    "reorder": str,
    "backend": str,
    "kernel": (str, _NO),
    "assign": str,
    "seed": object,
    "proxies_kept": str,
    "choice": (str, _NO),
    "facts": {str: int},
    "shift": int,
    "ordered": bool,
    "grid": ([{"parts": int, "starts": ([int], _NO)}], _NO),
    "sizes": {str: [[int]]},
    "proxies": [[int]],
    "blocks": [
        {
            "place": [int],
            **{name: int for name in ("stride", "row_first", "column_first")},
            "ordered": bool,
            "arrays": _ARRAYS,
        }
    ],
    **{name: [_ARRAYS] for name in (*VECTORS, "id_shards")},
    "attributes": (
        {
            "weight": (str, _NO),
            "directed": bool,
            "largest": str,
            "blocks": [{"place": [int], "arrays": _ARRAYS}],
            "neighbours": (_ARRAYS, _NO),
        },
        _NO,
    ),
}
"""Names and types of the manifest's fields, in the form that `check_fields` takes."""


@dataclass(frozen=True)
class SavedGraph(Source):
    """A saved graph as a source: it has no parts to read as edges.

    Attributes
    ----------
    manifest : dict
    """

    manifest: Manifest = field(default_factory=dict, repr=False)

    @property
    def attributes(self) -> AttributeOptions:
        """The weights and directions that were saved."""
        kept = self.manifest["attributes"]
        return AttributeOptions() if kept is None else AttributeOptions(kept["weight"], kept["directed"])


# saving


def write_graph(
    executor: Executor, prepared: Prepared, blocks: Blocks, options: Options, folder: str, content: Manifest
) -> int:
    """Have the workers write a graph's files, and fill in its manifest.

    Parameters
    ----------
    executor : Executor
    prepared : Prepared
    blocks : dict of (i, j) to handle of OrientedCSR
    options : Options
    folder : str
        Where the files go: a path or URL that all workers see.
    content : dict
        Receives the manifest's fields.

    Returns
    -------
    int
        Bytes of the arrays.

    Raises
    ------
    InputError
        The scheme is a plug-in's, with a partition class of its own.
    DasktcError
        A file cannot be written.
    """
    graph, plan = prepared.graph, prepared.plan
    layout = _layout_fields(prepared.partition, plan.partition)
    places, vertices = sorted(blocks), prepared.vertices
    ids = vertices.parts if isinstance(vertices, Sharded) else [vertices]
    calls: list[tuple[Any, ...]] = [
        (blocks[i, j], _block_arrays, joined(folder, f"block-{i}-{j}.bin")) for i, j in places
    ]
    for name in VECTORS:
        parts = getattr(graph, name).parts
        url = joined(folder, name.replace("_", "-"))
        calls += [(part, _vector_arrays, f"{url}-{number}.bin") for number, part in enumerate(parts)]
    calls += [(part, _id_arrays, joined(folder, f"ids-{number}.bin")) for number, part in enumerate(ids)]
    written: Iterator[Any] = iter(executor.gather(executor.submit_all("save", _write, calls)))
    facts = look(executor, graph)
    content |= {
        "version": version("dasktc"),
        "name": without_secrets(prepared.source.name),
        "ids": prepared.source.ids,
        "triangles": prepared.source.triangles,
        "vertices": plan.vertices,
        "edges": plan.edges,
        "rows": prepared.rows,
        "loops": prepared.loops,
        "read": prepared.source.read.to_dict() | {"what": without_secrets(prepared.source.read.what)},
        "wedges": [graph.wedges, prepared.wedges],
        "partition": plan.partition,
        "parts": plan.parts,
        "column_parts": plan.column_parts,
        "splits": options.splits and min(options.splits, _MOST),  # there are never more than edges
        "reorder": options.chosen_reorder,
        "backend": options.chosen_backend,
        "kernel": None if plan.lean else options.chosen_kernel,
        "assign": "random" if options.assign_file else options.assign,  # a file may be gone when the graph is opened
        "seed": options.seed,
        "proxies_kept": options.proxies,
        "choice": plan.choice,
        "facts": {name: int(value) for name, value in facts._asdict().items() if name != "processors"},
        **layout,
        "sizes": {name: values.tolist() for name, values in prepared.sizes._asdict().items()},
        "proxies": [list(map(int, of)) for of in plan.proxies],
        "blocks": [{"place": list(place), **next(written)} for place in places],
        **{name: [next(written)["arrays"] for _ in getattr(graph, name).parts] for name in VECTORS},
        "id_shards": [next(written)["arrays"] for _ in ids],
        "attributes": _write_attributes(prepared.attributes, folder),
    }
    return sum(place.nbytes for place in _arrays(folder, content))


def _write(value: Any, function: Any, url: str) -> dict[str, Any]:
    """Write the arrays of a value, and return their places as JSON fields. Runs on a worker."""
    facts, arrays = function(value)
    return {**facts, "arrays": _fields(write_arrays(url, arrays))}


def _fields(places: dict[str, StoredArray]) -> dict[str, Any]:
    return {
        name: {
            "file": os.path.basename(place.url.split("::")[0]),
            "dtype": place.dtype,
            "length": place.length,
            "start": place.start,
            "crc32": place.checksums,
        }
        for name, place in places.items()
    }


def _block_arrays(block: OrientedCSR) -> tuple[dict[str, Any], dict[str, Array]]:
    facts = {name: getattr(block, name) for name in ("stride", "row_first", "column_first", "ordered")}
    arrays = {"offsets": block.offsets, "columns": block.columns}
    return facts, arrays if block.members is None else {**arrays, "members": block.members}


def _vector_arrays(vector: Array) -> tuple[dict[str, Any], dict[str, Array]]:
    return {}, {"values": vector.astype("int32", copy=False)}  # ids and degrees are below 2^31


def _id_arrays(ids: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The ids of a map or of a shard: integers in the narrowest type that fits, or text as offsets and bytes."""
    there: Any = ids.external(np.arange(ids.size)) if hasattr(ids, "external") else ids
    if hasattr(there, "__array_interface__") or hasattr(there, "get"):
        values = on_host(there)
        narrow = not len(values) or (values[0] >= -(2**31) and values[-1] < 2**31)  # ascending
        return {}, {"values": values.astype("int32" if narrow else "int64", copy=False)}
    import pyarrow as pa

    text = there if isinstance(there, pa.Array) else there.combine_chunks()
    text = pa.concat_arrays([text.cast(pa.large_string())])  # a copy without the rest of a sliced array
    offsets = (
        np.frombuffer(text.buffers()[1], "int64", len(text) + 1, 8 * text.offset) if len(text) else np.zeros(1, "int64")
    )
    data = text.buffers()[2]
    letters = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])] if data else np.empty(0, np.uint8)
    return {}, {"offsets": offsets - offsets[0], "letters": letters}


def _layout_fields(partition: Partition, scheme: str) -> dict[str, Any]:
    if isinstance(partition, GridPartition):
        layout, axes = partition.layout, [partition.layout.rows, *partition.layout.families]
        shape, grid = layout.graph, [{"parts": axis.parts, "starts": axis.starts} for axis in axes]
    elif isinstance(partition, ProxyPartition):
        shape, grid = partition.shape, None
    else:
        raise InputError(
            f"{option('partition', scheme)} has a partition of its own, {type(partition).__name__}, which is not "
            "saved; prepare the graph with another"
        )
    return {"shift": shape.shift, "ordered": shape.ordered, "grid": grid}


def _write_attributes(kept: EdgeAttributes | None, folder: str) -> Manifest | None:
    if kept is None:
        return None
    blocks = []
    for i, j in sorted(kept.roots.keys() | kept.directions.keys()):
        arrays = {"roots": kept.roots.get((i, j)), "directions": kept.directions.get((i, j))}
        there = {name: array for name, array in arrays.items() if array is not None}
        places = write_arrays(joined(folder, f"attributes-{i}-{j}.bin"), there)
        blocks.append({"place": [i, j], "arrays": _fields(places)})
    neighbours = kept.neighbours and _fields(write_arrays(joined(folder, "neighbours.bin"), kept.neighbours._asdict()))
    facts = {"weight": kept.weight, "directed": kept.directed, "largest": kept.largest.hex()}
    return {**facts, "blocks": blocks, "neighbours": neighbours}


# opening


def saved_graph(source: Any, options: ReadOptions | None = None) -> SavedGraph | None:
    """Open the manifest of a saved graph, and check that its files are there; no array is read.

    Parameters
    ----------
    source : object
        What the caller gave as a source.
    options : ReadOptions, optional
        How files of edges would be read.

    Returns
    -------
    SavedGraph or None
        None for any other source.

    Raises
    ------
    InputError
        The graph is damaged, of a newer format or one of several sources, or an option is given that it does not take.
    """
    names = list(source) if isinstance(source, list | tuple) else [source]
    if not all(isinstance(name, str | os.PathLike) for name in names):
        return None
    opened = next((made for name in names if (made := manifest_of(name)) is not None), None)
    if opened is None:
        return None
    folder, content = opened
    check_fields(folder, content, _FIELDS)
    if len(names) > 1:
        raise InputError(
            f"{folder} is a saved graph, and {plural(len(names) - 1, 'more source is', 'more sources are')} given: it "
            "is opened as it is, and no edges are added; give it alone"
        )
    if content["partition"] not in SCHEMES:
        raise InputError(
            f"{folder} is saved in partition {content['partition']}, which is not installed here: install the plug-in "
            "that has it"
        )
    try:
        _interpret(folder, content)
    except InputError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise damaged(joined(folder, MANIFEST), f"its fields do not fit each other: {why}") from None
    sizes: dict[str, int] = {}
    for place in _arrays(folder, content):
        name = os.path.basename(place.url.split("::")[0])
        sizes[name] = max(sizes.get(name, 0), place.end)
    check_sizes(folder, sizes)
    _refuse_reading(folder, content["ids"], options)
    rows, ids = SourceSize(content["rows"], sum(sizes.values())), cast(Ids, content["ids"])
    fields = content.get("read")  # of graphs that were saved before it was recorded there is none
    reading = None if fields is None else Reading.of_dict({name: fields.get(name) for name in Reading().to_dict()})
    return SavedGraph(
        content["name"], (), ids, content["triangles"], size=rows, reading=reading, folder=folder, manifest=content
    )


def _interpret(folder: str, content: Manifest) -> None:
    """Check a manifest by interpreting it: errors of its interpretation pass, contradictions raise ValueError."""
    _check_options(content)
    sizes, (_, wedges) = _sizes(content), content["wedges"]
    partition = _partition(content, sizes, tuple(Proxies(*of) for of in content["proxies"]), wedges)
    scheme, parts = scheme_of(content["partition"], content["column_parts"]), content["parts"]
    rows, columns = 1 if scheme.replicated else parts, scheme.columns(parts)
    places = [(i, j) for i in range(rows) for j in range(columns)]
    blocks = content["blocks"]
    for name, there in (
        ("blocks", [tuple(block["place"]) for block in blocks]),
        ("grid", [*_extents(partition)] if content["grid"] else places if columns == 2 else []),
        *((f"sizes of {name}", [*np.ndindex(of.shape)]) for name, of in sizes._asdict().items()),
    ):
        if there != places:
            raise ValueError(f"{name} are not those of {rows:,} by {plural(columns, 'block')}")
    if content["grid"] is None and len(content["proxies"]) != rows:
        raise ValueError(f"proxies are of {len(content['proxies']):,} parts, not of {rows:,}")
    extents = _extents(partition)
    for at in places:  # sums by vertex are allocated with these sizes
        size = int(sizes.rows[at]), int(sizes.columns[at])
        if size != extents.get(at, (size[0], size[0])):
            raise ValueError(f"block {at} has not {plural(size[0], 'row')} and {plural(size[1], 'column')}")
    for block, (i, j) in zip(blocks, places, strict=True):
        numbered = tuple(block[name] for name in ("stride", "row_first", "column_first", "ordered"))
        if isinstance(partition, GridPartition):
            rows_of, layout = partition.layout.rows, partition.layout
            expected = rows_of.stride, rows_of.firsts[i], layout.numbering(j)[0], layout.graph.ordered
        else:
            expected = 1, 0, 0, content["ordered"]
        if numbered != expected:
            raise ValueError(f"block {(i, j)} is numbered as {numbered}, not as {expected}")
    Facts(**content["facts"], processors=1)
    if not 0 <= content["loops"] <= content["rows"] - content["edges"]:
        raise ValueError(f"rows are {content['rows']:,}, but edges {content['edges']:,}, loops {content['loops']:,}")
    _check_edges(content, partition, sizes, wedges)
    _check_blocks(blocks, sizes, content["grid"] is None)
    for name in (*VECTORS, "id_shards"):
        of_shard = {"offsets", "letters"} if name == "id_shards" and content["ids"] == "text" else {"values"}
        if not content[name] or any(shard.keys() != of_shard for shard in content[name]):
            raise ValueError(f"arrays of {name} are not {of_shard}")
    _check_vectors(content)
    if content["attributes"] is not None:
        _check_attributes(content["attributes"], content["vertices"], dict(zip(places, sizes.edges.flat, strict=True)))
    for place in _arrays(folder, content):
        if len(place.checksums) % DIGITS:
            raise ValueError(f"checksums have not {DIGITS} digits each")


def _check_options(content: Manifest) -> None:
    """Refuse options with which no graph is prepared, and numbers of parts that the blocks do not have (ValueError)."""
    attributes = content["attributes"]
    try:
        Options(**_prepared_with(content), backend=content["backend"], seed=content["seed"])
        check_choice("ids", content["ids"], get_args(Ids))
        if attributes is not None:
            AttributeOptions(attributes["weight"], attributes["directed"])
    except InputError as error:
        raise ValueError(neutral_text(error).partition(";")[0]) from None
    if ORDERS[content["reorder"]].ordered != content["ordered"]:
        raise ValueError(f"ordered is {content['ordered']} in the order {content['reorder']}")
    count = len(content["blocks"])  # before memory is taken for so many parts
    numbers = [content["parts"], content["column_parts"] or 1, *(axis["parts"] for axis in content["grid"] or [])]
    if not 1 <= min(numbers) <= max(numbers) <= count:
        raise ValueError(
            f"{plural(count, 'block is', 'blocks are')} none of {' and '.join(f'{number:,}' for number in numbers)} "
            "parts"
        )


def _prepared_with(content: Manifest) -> dict[str, Any]:
    """The options with which a saved graph was prepared, all but the seed."""
    options = {name: content[name] for name in ("partition", "parts", "reorder", "assign", "column_parts", "splits")}
    return {**options, "proxies": content["proxies_kept"]}


def _check_edges(content: Manifest, partition: Partition, sizes: Sizes, wedges: int) -> None:
    """Refuse blocks without all edges in each family of columns, or tasks with other wedges (ValueError)."""
    widths = [1]  # a part's local rows are in column 0
    if isinstance(partition, GridPartition):
        widths = [axis.parts for axis in partition.layout.families]
        if wedges != content["wedges"][0]:
            raise ValueError(f"the tasks have {plural(wedges, 'wedge')}, the graph {content['wedges'][0]:,}")
    for first, end in pairwise([0, *accumulate(widths)]):
        if (held := int(sizes.edges[:, first:end].sum())) != content["edges"]:
            raise ValueError(f"its blocks hold {plural(held, 'edge')}, the graph {content['edges']:,}")


def _check_blocks(blocks: list[Manifest], sizes: Sizes, proxies: bool) -> None:
    """Refuse arrays whose types and lengths are not those of their block (ValueError)."""
    for block in blocks:
        place = tuple(block["place"])
        rows, edges = int(sizes.rows[place]), int(sizes.edges[place])
        expected = {"offsets": ("i8", rows + 1), "columns": ("i4", edges)}
        if proxies:
            expected["members"] = ("i4", rows)
        if _kinds(block["arrays"]) != expected:
            raise ValueError(f"block {place} has not the arrays of {plural(rows, 'row')} and {plural(edges, 'edge')}")


def _check_vectors(content: Manifest) -> None:
    """Refuse vertex vectors and ids whose type or length does not match the graph (ValueError)."""
    text, vertices = content["ids"] == "text", content["vertices"]
    for name in (*VECTORS, "id_shards"):
        of, types = ("offsets", ["i8"]) if text else ("values", ["i4", "i8"])
        if name in VECTORS:
            of, types = "values", ["i4"]
        arrays = [shard[of] for shard in content[name]]
        behind = of == "offsets"  # one more offset than values
        if sum(array["length"] - behind for array in arrays) != vertices or any(
            array["dtype"] not in types or array["length"] < behind for array in arrays
        ):
            raise ValueError(f"{name} are not of {plural(vertices, 'vertex')}")
    if text and any(shard["letters"]["dtype"] != "u1" for shard in content["id_shards"]):
        raise ValueError("id_shards are no text")


def _check_attributes(kept: Manifest, vertices: int, edges: dict[tuple[int, int], Any]) -> None:
    """Refuse weights and directions that do not match the edges of the blocks, given by place (ValueError)."""
    types = {"roots": "f8"} if kept["weight"] is not None else {}
    types |= {"directions": "u1"} if kept["directed"] else {}
    there = [tuple(block["place"]) for block in kept["blocks"]]
    if sorted(there) != sorted(edges):
        raise ValueError(f"attributes are of blocks {shown(there)}")
    for place, block in zip(there, kept["blocks"], strict=True):
        if _kinds(block["arrays"]) != {name: (of, edges[place]) for name, of in types.items()}:
            raise ValueError(f"block {place}'s attributes are not those of {plural(edges[place], 'edge')}")
    numbers = {name: ("i8", vertices) for name in Neighbours._fields} if kept["directed"] else {}
    if _kinds(kept["neighbours"] or {}) != numbers:
        raise ValueError(f"neighbours are not those of {plural(vertices, 'vertex')}, directed={kept['directed']}")
    float.fromhex(kept["largest"])


def _kinds(arrays: Manifest) -> dict[str, tuple[str, int]]:
    """Type and length of each array."""
    return {name: (of["dtype"], of["length"]) for name, of in arrays.items()}


def _refuse_reading(folder: str, ids: str, options: ReadOptions | None) -> None:
    if options is None:
        return
    given = {"format": options.format, "columns": options.columns, "skip": options.skip}
    if options.ids not in (None, ids):
        given["ids"] = options.ids
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{option(name, value)} is given for {folder}, a saved graph: it says how files of edges are read, "
                "and these were read when it was prepared; leave it out"
            )


def fitted(saved: SavedGraph, options: Options) -> Options:
    """The options with a saved graph's scheme, n and order, and its seed where its blocks depend on one.

    Raises
    ------
    InputError
        An option asks for another value than the one that was saved.
    """
    content, default = {"sort_rows": True, **saved.manifest}, Options()
    scheme = SCHEMES[content["partition"]]
    free = {"parts": scheme.replicated, "seed": not scheme.dealing.members}  # what no block depends on
    for name in ("partition", "parts", "reorder", "column_parts", "assign", "seed", "proxies", "sort_rows"):
        asked, had = getattr(options, name), content.get("proxies_kept" if name == "proxies" else name)
        if asked in (getattr(default, name), had) or free.get(name):
            continue
        raise InputError(
            f"{option(name, asked)} is asked for, {saved.folder} was saved with {name.replace('_', ' ')} {had}: its "
            "blocks stay as they are; leave it out, or prepare the graph again"
        )
    kept = _prepared_with(content)
    if options.splits is not None:
        kept["splits"] = options.splits
    if not free["seed"]:
        kept["seed"] = content["seed"]
    return replace(options, **kept)


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
    content, automatic = saved.manifest, options.kernel == "auto"
    options, choice = _with_kernel(executor, content, options, planned_for)
    vertices, edges = content["vertices"], content["edges"]
    proxies = tuple(Proxies(*of) for of in content["proxies"])
    of_graph, to_stream = content["wedges"]
    saved_partition = _partition(content, _sizes(content), proxies, to_stream)
    plan, partition, options = plan_count(
        options,
        max(vertices, content["parts"]),  # the grid stays as it was where updates removed vertices
        edges,
        lambda *_: saved_partition,
        limits or limits_of(executor, options),
        choice,
        automatic=automatic,
        memory_per_call=None if planned_for else executor.memory_per_call,
        planned_for=planned_for,
    )
    ids = [_places(saved.folder, arrays) for arrays in content["id_shards"]]
    budget = vertex_budget_of(executor, options, saved.ids)
    if saved.ids == "text":
        budget = budget.of(vertices, sum(place.nbytes for of in ids for place in of.values()))
    budget.check(vertices, plan.partition)
    shards = budget.shards(vertices)
    plan = replace(plan, vertices=vertices, proxies=proxies, shards=shards, numbering=budget.why(vertices))
    starts = even(vertices, shards)
    order, out_degree, in_degree = (
        Sharded(starts, partial(_open_vector, executor, [_places(saved.folder, of) for of in content[name]], starts))
        for name in VECTORS
    )
    graph = Oriented([], order, out_degree, in_degree, of_graph, edges)
    numbered = Sharded(starts, partial(_open_ids, executor, ids, starts, shards == 1))
    source = Source(saved.name, (), saved.ids, saved.triangles, reading=saved.reading, folder=saved.folder)
    seconds = {"read": 0.0, "prepare": 0.0}
    return Prepared(graph, partition, plan, numbered, content["rows"], content["loops"], source, options, seconds)


def open_blocks(
    executor: Executor, saved: SavedGraph, options: Options, progress: Progress = silent, attributes: bool = False
) -> tuple[Prepared, Blocks]:
    """Read a saved graph's blocks and vectors on the workers, and compare every byte with its checksum.

    Parameters
    ----------
    executor : Executor
        With the options' backend.
    saved : SavedGraph
    options : Options
        As `fitted` returns them, with the backend chosen.
    progress : callable, optional
    attributes : bool
        Also read weights and directions; the executor must then be of this process, with the CPU backend.

    Raises
    ------
    InputError
        The graph is damaged, or the largest task does not fit a worker's memory.
    """
    began = time.perf_counter()
    progress("read", 0, 1)
    prepared = open_plan(executor, saved, options)
    plan, content = prepared.plan, saved.manifest
    if not plan.fits:
        raise InputError(
            f"{plan.why}: the saved graph is too large for it; raise {advice('memory')}, or prepare it again with it"
        )
    executor.set_task_memory(plan.bytes_per_task)
    blocks = _open_checked(executor, saved, prepared)
    if isinstance(prepared.partition, ProxyPartition):
        members = [executor.submit("open", _members, blocks[part, 1]) for part in range(plan.parts)]
        prepared = replace(prepared, partition=prepared.partition._replace(members=members))
    executor.wait([*blocks.values(), *prepared.numbered.parts])
    kept = _open_attributes(content["attributes"], saved.folder) if attributes else None
    if kept is not None and kept.neighbours is not None:
        degrees = executor.gather([prepared.graph.out_degree.whole, prepared.graph.in_degree.whole])
        if not np.array_equal(sum(kept.neighbours), sum(of.astype("int64") for of in degrees)):
            url = _places(saved.folder, content["attributes"]["neighbours"])["both"].url
            raise damaged_array(url, "its numbers of neighbours are not the degrees")
    seconds = {"read": time.perf_counter() - began, "prepare": 0.0}
    return replace(prepared, seconds=seconds, attributes=kept), blocks


def _open_checked(executor: Executor, saved: SavedGraph, prepared: Prepared) -> Blocks:
    """Read the blocks on the workers, and check blocks and vertex vectors (`saved_checks`)."""
    content, plan, sizes, by = saved.manifest, prepared.plan, prepared.sizes, Hash.draw()
    where, layout = builders(plan, sizes, executor.worker_threads), getattr(prepared.partition, "layout", None)
    pairs = layout is not None and len(layout.families) > 1
    reads = {}
    for block in content["blocks"]:
        place, arrays = tuple(block["place"]), _places(saved.folder, block["arrays"])
        facts = (block["stride"], block["row_first"], block["column_first"], block["ordered"], place)
        numbers = int(sizes.rows[place]), int(sizes.columns[place])
        reads[place] = BlockRead(arrays, facts, *numbers, content["vertices"], by, pairs)
    at, backend = [where.get(place) for place in reads], executor.backend
    vectors = _check_vectors_alone(executor, saved, prepared, by)
    degrees = _places(saved.folder, content["out_degree"][0])["values"].url
    if len(reads) == 1:  # each worker may read its own
        ((place, read),) = reads.items()
        read = replace(read, expected=(Totals(vectors.sources, vectors.targets), degrees))
        make = executor.replicated if plan.scheme.replicated else executor.submit
        blocks = {place: make("open", open_block, read, backend)}
    else:
        calls = [(read, backend) for read in reads.values()]
        if executor.memory_per_call is None:
            handles, totals = executor.measured("open", checked_block, calls, at)
        else:  # one at a time: a whole block may take more than a thread's share of the budget
            made = [
                executor.submit("open", _block_and_totals, *call, prefer=worker)
                for call, worker in zip(calls, at, strict=True)
            ]
            handles, small = executor.transpose("open", made, 2)
            totals = executor.gather(small)
        blocks = dict(zip(reads, handles, strict=True))
        _compare_totals(saved, dict(zip(reads, totals, strict=True)), layout, vectors, degrees)
    if layout is None:
        _check_proxies(executor, saved, blocks)
    elif not content["ordered"]:
        urls = {place: read.arrays["columns"].url for place, read in reads.items()}
        _check_directions(executor, prepared, blocks, urls)
    return blocks


def _block_and_totals(read: BlockRead, backend: Backend) -> list[Any]:
    checked = checked_block(read, backend)
    return [checked.value, checked.facts]


def _check_vectors_alone(executor: Executor, saved: SavedGraph, prepared: Prepared, by: Hash) -> VertexFacts:
    """Read the vertex vectors, and return the sums over them; refuse an order that is no permutation, and wedges."""
    graph, content = prepared.graph, saved.manifest
    shards = zip(graph.order.parts, graph.out_degree.parts, graph.in_degree.parts, graph.order.starts, strict=False)
    made = [executor.submit("open", checked_vectors, *shard, by, executor.backend) for shard in shards]
    vectors = VertexFacts.add_up(executor.gather(made))
    if vectors.dense != vectors.ids:
        url = _places(saved.folder, content["order"][0])["values"].url
        raise damaged_array(url, "its numbers are not those of all vertices")
    if vectors.wedges != graph.wedges:
        said = f"it says {plural(graph.wedges, 'wedge')}, but the degrees give {vectors.wedges:,}"
        raise damaged(joined(saved.folder, MANIFEST), said)
    return vectors


def _compare_totals(
    saved: SavedGraph, totals: dict[Any, Totals], layout: Layout | None, vectors: VertexFacts, degrees: str
) -> None:
    """Refuse blocks that have not the degrees of the vectors, or not the same edges in each family of columns."""
    widths = [1] if layout is None else [axis.parts for axis in layout.families]  # local rows are in column 0
    starts, families = [0, *accumulate(widths)], list[Totals]()
    for first, end in pairwise(starts):
        families.append(Totals.add_up(of for (_, column), of in totals.items() if first <= column < end))
    if any((of.sources, of.targets) != (vectors.sources, vectors.targets) for of in families):
        raise damaged_array(degrees, "its degrees, or those into the vertices, are not those of the blocks")
    if any(of.pairs != families[0].pairs for of in families):
        raise damaged_array(saved.folder, "the blocks of its two families of columns have not the same edges")


def _check_proxies(executor: Executor, saved: SavedGraph, blocks: Blocks) -> None:
    """Refuse the blocks of parts with proxies if they do not close the wedges that their tasks must stream."""
    parts, expected = saved.manifest["parts"], saved.manifest["wedges"][1]
    calls = [(blocks[part, 0], blocks[part, 1], executor.backend) for part in range(parts)]
    wedges = executor.gather([executor.submit("open", proxy_wedges, *call) for call in calls])
    if None in wedges:
        part = wedges.index(None)
        raise damaged_array(joined(saved.folder, f"block-{part}-0.bin"), "its members are not those of its part")
    if sum(wedges) != expected:
        raise damaged(
            joined(saved.folder, MANIFEST),
            f"it says {plural(expected, 'wedge')} of parts, but the blocks have {sum(wedges):,}",
        )


def _check_directions(executor: Executor, prepared: Prepared, blocks: Blocks, urls: dict[Any, str]) -> None:
    """Refuse an edge against the order by degree, where the ids do not show it; vectors must be whole for that."""
    graph, backend = prepared.graph, executor.backend
    if len(graph.order.parts) > 1:
        return
    rank = executor.submit("open", ranks, graph.order.whole, graph.out_degree.whole, graph.in_degree.whole, backend)
    calls = [(block, rank, urls[place], backend) for place, block in blocks.items()]
    executor.wait(executor.submit_all("open", refuse_against_ranks, calls))


def _with_kernel(
    executor: Executor, content: Manifest, options: Options, planned_for: str | None
) -> tuple[Options, str]:
    """Choose the kernel and say why: the saved one, unless another kernel is asked for or the backend changed."""
    backend, kept = planned_for or options.chosen_backend, content["kernel"]
    if options.kernel == "auto" and backend == content["backend"] and kept in KERNELS[backend]:
        return replace(options, kernel=kept), content["choice"]
    processors = 1
    if options.chosen_backend in ON_DEVICE and options.kernel == "auto":
        (processors,) = executor.gather([executor.submit("open", _processors, executor.backend)])
    chosen = replace(options, backend=backend)
    chosen, why = choose(chosen, Facts(**content["facts"], processors=processors))
    return replace(chosen, backend=options.backend), why


def _processors(backend: Backend) -> int:
    return backend.processors()


def _sizes(content: Manifest) -> Sizes:
    columns = scheme_of(content["partition"], content["column_parts"]).columns(content["parts"])
    shape = (-1, columns)
    return Sizes(*(np.array(content["sizes"][name], "int64").reshape(shape) for name in Sizes._fields))


def _partition(content: Manifest, sizes: Sizes, proxies: tuple[Proxies, ...], wedges: int) -> Partition:
    vertices = content["vertices"]
    shape = Shape(vertices, content["shift"], content["ordered"])
    if content["grid"] is None:
        nothing = Sharded((0, 0), [])
        return ProxyPartition(nothing, nothing, nothing, sizes, proxies, wedges, shape, [], [])
    axes = [Axis(vertices, of["parts"], of["starts"] and tuple(of["starts"])) for of in content["grid"]]
    return GridPartition(Layout(axes[0], tuple(axes[1:]), shape), sizes, wedges, proxies)


def _extents(partition: Partition) -> dict[Any, tuple[int, int]]:
    """Numbers of rows and columns of each block of a grid, by its place."""
    if not isinstance(partition, GridPartition):
        return {}
    rows, columns = partition.layout.sizes
    return {place: (int(rows[place]), int(columns[place])) for place in partition.layout.places}


def _places(folder: str, arrays: Manifest) -> dict[str, StoredArray]:
    for of in arrays.values():
        if not FILE.fullmatch(of["file"]):
            raise damaged_array(folder, f"{shown(of['file'])} is no file of a saved graph")
    return {
        name: StoredArray(joined(folder, of["file"]), of["dtype"], of["length"], of["start"], of["crc32"])
        for name, of in arrays.items()
    }


def _arrays(folder: str, content: Manifest) -> Iterator[StoredArray]:
    """Yield the places of all arrays of a saved graph."""
    kept = content["attributes"]
    of_files = [block["arrays"] for block in content["blocks"]]
    of_files += [arrays for name in (*VECTORS, "id_shards") for arrays in content[name]]
    if kept is not None:
        of_files += [block["arrays"] for block in kept["blocks"]] + [kept["neighbours"] or {}]
    for arrays in of_files:
        yield from _places(folder, arrays).values()


def _members(block: OrientedCSR) -> Array:
    return block.members


def _open_vector(executor: Executor, places: list[dict[str, StoredArray]], starts: tuple[int, ...]) -> list[Any]:
    files, backend = _Files([of["values"] for of in places], starts[-1]), executor.backend
    return [executor.submit("open", _vector, files, *span, backend, "int32") for span in pairwise(starts)]


@dataclass(frozen=True)
class _Files:
    """An array that several files hold one after another; of int32 in [0, below), where that bound is given."""

    arrays: list[StoredArray]
    below: int | None = None

    def read(self, first: int, end: int, backend: Backend) -> list[Array]:
        """Read the entries `first` to `end`: an array for each file that holds some of them, and at least one array."""
        starts = [0, *accumulate(place.length for place in self.arrays)]
        parts = []
        for place, start in zip(self.arrays, starts, strict=False):
            if start < end and first < start + place.length:
                part = read_array(place, backend, max(0, first - start), min(place.length, end - start))
                if self.below is not None and len(part) and int(part.view("uint32").max()) >= self.below:
                    raise damaged_array(place.url, f"a number is not below that of {plural(self.below, 'vertex')}")
                parts.append(part)
        return parts or [backend.array.empty(0, dtype=self.arrays[0].dtype)]


def _vector(files: _Files, first: int, end: int, backend: Backend, dtype: str) -> Array:
    parts = [part.astype(dtype, copy=False) for part in files.read(first, end, backend)]
    return parts[0] if len(parts) == 1 else backend.array.concatenate(parts)


def _ids(files: _Files, first: int, end: int, backend: Backend) -> Array:
    """Read integer ids, which ascend, also from the one before them."""
    before = max(0, first - 1)
    ids = _vector(files, before, end, backend, "int64")
    if bool((ids[1:] <= ids[:-1]).any()):
        raise damaged_array(files.arrays[0].url, "its ids do not ascend")
    return ids[first - before :]


def _open_ids(
    executor: Executor, places: list[dict[str, StoredArray]], starts: tuple[int, ...], whole: bool
) -> list[Any]:
    if "letters" not in places[0]:
        files = _Files([of["values"] for of in places])
        function = _integer_map if whole else _ids
        return [executor.submit("open", function, files, *span, executor.backend) for span in pairwise(starts)]
    offsets, letters = (tuple(of[name] for of in places) for name in ("offsets", "letters"))
    text = _text_map if whole else _text
    return [
        executor.submit("open", text, _Text(offsets, letters), *span, executor.backend) for span in pairwise(starts)
    ]


@dataclass(frozen=True)
class _Text:
    """A text column in several files: offsets, one more than there are values, and bytes."""

    offsets: tuple[StoredArray, ...]
    letters: tuple[StoredArray, ...]


def _integer_map(files: _Files, first: int, end: int, backend: Backend) -> VertexMap:
    return SortedMap(_ids(files, first, end, backend), backend)


def _text(files: _Text, first: int, end: int, backend: Backend) -> Any:
    """Read the text ids `first` to `end` as an Arrow array; they ascend, also from the one before them."""
    import pyarrow.compute as pc

    before = max(0, first - 1)
    ids = _unordered_text(files, before, end)
    if not pc.all(pc.less(ids[:-1], ids[1:])).as_py() and len(ids) > 1:
        raise damaged_array(files.letters[0].url, "its ids do not ascend")
    return ids[first - before :]


def _unordered_text(files: _Text, first: int, end: int) -> Any:
    import pyarrow as pa

    parts, start = [], 0
    for places in zip(files.offsets, files.letters, strict=True):
        length = places[0].length - 1
        begin, behind = max(0, first - start), min(length, end - start)
        start += length
        if begin < behind:
            offsets = read_array(places[0], None, begin, behind + 1)
            if not 0 <= offsets[0] <= offsets[-1] <= places[1].length or (offsets[1:] < offsets[:-1]).any():
                raise damaged_array(places[0].url, "its texts do not follow each other")
            letters = read_array(places[1], None, int(offsets[0]), int(offsets[-1]))
            buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(letters)]
            part = pa.Array.from_buffers(pa.large_string(), behind - begin, buffers)
            try:
                part.validate(full=True)
            except pa.ArrowInvalid as error:
                raise damaged_array(places[1].url, " ".join(str(error).split())) from None
            parts.append(part)
    return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())


def _text_map(files: _Text, first: int, end: int, backend: Backend) -> VertexMap:
    ids = _text(files, first, end, backend)
    return TextMap(backend.text.column(ids), backend)


def _open_attributes(content: Manifest | None, folder: str) -> EdgeAttributes | None:
    if content is None:
        return None
    kept: dict[str, dict[Any, Array]] = {"roots": {}, "directions": {}}
    for block in content["blocks"]:
        for name, place in _places(folder, block["arrays"]).items():
            array = kept[name][tuple(block["place"])] = read_array(place)
            if name == "directions" and len(array) and not ALONG <= array.min() <= array.max() <= ALONG | AGAINST:
                raise damaged_array(place.url, "a direction is none of an edge's")
    numbers = {}
    for name, place in _places(folder, content["neighbours"] or {}).items():
        array = numbers[name] = read_array(place)
        if len(array) and not 0 <= array.min() <= array.max() < len(array):
            raise damaged_array(place.url, f"a vertex of {len(array):,} has not so many neighbours")
    neighbours = Neighbours(**numbers) if numbers else None
    largest = float.fromhex(content["largest"])
    return EdgeAttributes(
        content["weight"], content["directed"], largest, kept["roots"], kept["directions"], neighbours
    )
