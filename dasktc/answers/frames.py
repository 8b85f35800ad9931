"""Frame types of answers: pandas, cuDF, or a Dask DataFrame of either, and how partitions become one of them.

An answer is made in partitions, in ascending order of the caller's ids. `FrameKind` names their library, so that
frames made on a device are copied to the host once, at the end, or not at all. `gathered` and `spread` return the
partitions to the caller, in one frame or as a Dask collection.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from dasktc.backends import ON_DEVICE, Backend, get_backend
from dasktc.backends.csr import on_host
from dasktc.backends.vertex_maps import VertexMap
from dasktc.counting.context import CountingContext
from dasktc.errors import InputError, shown
from dasktc.executors.base import starmap, unchanged
from dasktc.executors.process.gpu_discovery import installed
from dasktc.io.columns import Place, settle, to_ids
from dasktc.io.write import write_frames
from dasktc.pipeline.planes import Answers
from dasktc.pipeline.planes.block_ids import cuts_at_shards
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.row_ids import ascending_ids, places_among
from dasktc.registry import check_choice
from dasktc.wording import plural

__all__ = [
    "FRAMES",
    "PANDAS",
    "FrameKind",
    "FrameName",
    "array_module",
    "column",
    "dense_ids",
    "empty",
    "external_ids",
    "external_ids_on_device",
    "frame_kind",
    "frame_of",
    "gathered",
    "given_ids",
    "id_columns",
    "id_shards",
    "ids_of",
    "in_library",
    "labelled",
    "numbered",
    "on_device_where_counted",
    "rows_of_partition",
    "spread",
    "unknown",
    "with_rows",
    "write_answer",
]

Array = Any
Library = Literal["pandas", "cudf"]
BACKEND_OF: dict[str, str] = {"pandas": "cpu", "cudf": "cuda"}
FrameName = Literal["pandas", "polars", "cudf", "dask"]
FRAMES: tuple[FrameName, ...] = get_args(FrameName)
"""Frame types of an answer."""


@dataclass(frozen=True)
class FrameKind:
    """The frame type of an answer."""

    kind: str
    """One of FRAMES."""
    library: Library
    """In which it is made: of a Dask DataFrame's partitions too. Polars frames are made of pandas ones."""

    @property
    def whole(self) -> bool:
        """Whether the caller receives all rows in one frame."""
        return self.kind != "dask"


PANDAS = FrameKind("pandas", "pandas")
"""The frame type from which files are written."""


def frame_kind(graph: CountingContext, frame: str | None, rows: str = "vertices") -> FrameKind:
    """Choose the frame type of an answer.

    Parameters
    ----------
    graph : CountingContext
    frame : {"pandas", "polars", "cudf", "dask"} or None
        The caller's choice. None: cuDF for a source in GPU memory, a Dask DataFrame for a Dask collection, and for
        edges with a client; Polars for a Polars frame; else pandas, and always for a source with labels.
    rows : {"vertices", "edges", "list"}
        Meaning of the rows.

    Returns
    -------
    FrameKind
        Partitions of a Dask DataFrame are cuDF if GPUs count and the source was in GPU memory or Dask's configuration
        sets "dataframe.backend" to cudf. Within `memory` frames are made on the host.

    Raises
    ------
    InputError
        There is no such frame type, cuDF was requested and the CPU counts, Polars is not installed, or dask_cudf is not
        for a Dask DataFrame of cuDF partitions.
    """
    on_device, source = graph.options.chosen_backend in ON_DEVICE, graph.prepared.source.frames
    labels = graph.prepared.source.labels
    if labels is not None and frame in (None, "pandas"):
        return PANDAS
    if frame is None:
        frame = {"cudf": "cudf", "dask-cudf": "dask", "dask": "dask", "polars": "polars"}.get(source or "", "pandas")
        if rows == "edges":
            frame = graph.answers.edge_frame or frame
    else:
        if not isinstance(frame, str):
            raise InputError(f"frame {shown(frame)} is not one of {', '.join(FRAMES)}; choose one of these")
        check_choice("frame", frame, FRAMES)
    if labels is not None:
        raise InputError(
            f"frame={frame!r} is asked for, but the vertices are of type {labels.kinds}: such objects stay in this "
            "process; take frame='pandas', or prepare the graph with ids='text', which takes str of each"
        )
    if frame == "cudf" and not on_device:
        raise InputError(
            "frame='cudf' is asked for, but the graph was counted with backend cpu: its results are on the host; "
            "prepare it with backend='cuda', or take frame='pandas'"
        )
    # Only a Dask DataFrame leaves open which library its partitions are of.
    if frame != "dask":
        is_cudf = frame == "cudf"
    else:
        import dask

        makes_cudf = source in ("cudf", "dask-cudf") or dask.config.get("dataframe.backend", "pandas") == "cudf"
        is_cudf = on_device and makes_cudf
    return _checked(FrameKind(frame, "cudf" if is_cudf and graph.answers.frames_on_device else "pandas"))


def on_device_where_counted(graph: CountingContext, kind: FrameKind) -> FrameKind:
    """Make a Dask DataFrame's partitions cuDF if GPUs count without a budget."""
    on_device = graph.options.chosen_backend in ON_DEVICE and graph.answers.frames_on_device
    return kind if kind.whole or not on_device else _checked(FrameKind("dask", "cudf"))


def _checked(kind: FrameKind) -> FrameKind:
    """Refuse (InputError) Polars where it is missing, and cuDF partitions where Dask cannot handle these.

    Importing dask_cudf registers cuDF frames with Dask.
    """
    if kind.kind == "polars":
        _polars()
    if kind.whole or kind.library != "cudf":
        return kind
    try:
        import_module("dask_cudf")
    except ImportError as error:
        build = next((build for build in ("cu13", "cu12") if installed(f"cudf-{build}")), None)
        conda = build is None and installed("cudf")
        command = "conda install -c rapidsai dask-cudf" if conda else f"pip install dask-cudf-{build or 'cu13'}"
        raise InputError(
            f"the partitions of this Dask DataFrame are cuDF frames, but dask_cudf cannot be imported ({error}): "
            f"Dask needs it for them in this process; {command}, or take frame='pandas'"
        ) from error
    return kind


def _polars() -> Any:
    try:
        return import_module("polars")
    except ImportError as error:
        raise InputError(
            f"frame='polars' is asked for, but polars cannot be imported ({error}): it is not installed with dasktc; "
            "pip install polars, or take frame='pandas'"
        ) from error


# columns


def backend_of(array: Array) -> Backend:
    """Return the backend whose memory an array is in."""
    return get_backend("cuda" if hasattr(array, "get") else "cpu")


def array_module(array: Array) -> Any:
    """Return CuPy for an array on a device, else NumPy."""
    return get_backend("cuda").array if hasattr(array, "get") else np


def column(ids: Any) -> Any:
    """Convert the caller's ids to a type that pandas accepts."""
    import pandas as pd

    return ids if isinstance(ids, np.ndarray) else pd.array(ids, dtype="str")


def ids_of(vertices: VertexMap, dense: Array, library: Library) -> Any:
    """Map dense ids to a column of the caller's ids for a frame of the library; on a device if the ids are there."""
    if library == "pandas":
        return column(vertices.external(on_host(dense)))
    map_ids = getattr(vertices, "ids", None)
    if map_ids is None or isinstance(dense, np.ndarray):
        return vertices.external(on_host(dense))
    ids = map_ids.take(dense)
    return ids.reset_index(drop=True) if hasattr(ids, "reset_index") else ids


def id_columns(vertices: Any, columns: Mapping[str, Array], library: Library) -> dict[str, Any]:
    """Map columns of dense ids to columns of the caller's ids for a frame of the library, as `ids_of` does.

    `vertices` is the map of all vertices; or a list of arrays, the caller's ids of those that occur, and the columns
    have positions among them.
    """
    if not isinstance(vertices, list):
        return {name: ids_of(vertices, dense, library) for name, dense in columns.items()}
    if isinstance(vertices[0], np.ndarray):
        ids: Any = np.concatenate(vertices)
    else:
        import pyarrow as pa

        ids = pa.concat_arrays(vertices)
    entries = {name: ids.take(places) for name, places in columns.items()}
    return {name: column(values) for name, values in entries.items()} if library == "pandas" else entries


def external_ids_on_device(vertices: VertexMap) -> Any:
    """The caller's ids of all dense ids: an array on a device, or the first id if they are consecutive; else None."""
    first: int | None = getattr(vertices, "first", None)
    if first is not None:
        return first
    ids = getattr(vertices, "ids", None)
    return ids if hasattr(ids, "__cuda_array_interface__") and getattr(ids, "dtype", None) == "int64" else None


def frame_of(columns: dict[str, Any], library: Library, first: int = 0) -> Any:
    """Make a frame of columns of equal length; its index starts at `first`."""
    if library == "pandas":
        import pandas as pd

        host_columns = {name: on_host(values) for name, values in columns.items()}
        size = len(next(iter(host_columns.values())))
        return pd.DataFrame(host_columns, index=pd.RangeIndex(first, first + size), copy=False)
    cudf = get_backend("cuda").frame
    on_device = {name: cudf.Series(a) if isinstance(a, np.ndarray) else a for name, a in columns.items()}
    frame = cudf.DataFrame(on_device)
    if first:
        frame.index = cudf.RangeIndex(first, first + len(frame))
    return frame


# partitions


def with_rows(parts: list[Any], sizes: list[int]) -> tuple[list[Any], list[int]]:
    """Drop partitions without rows, but keep one if all are empty; return partitions and numbers of rows."""
    pairs = [(part, size) for part, size in zip(parts, sizes, strict=True) if size] or [(parts[0], 0)]
    return [part for part, _ in pairs], [size for _, size in pairs]


def rows_of_partition(graph: CountingContext, ids: int, numbers: int) -> int:
    """Number of rows that fill a partition, for `ids` columns of ids and `numbers` columns of numbers."""
    id_bytes = 8
    if graph.prepared.source.ids == "text":
        widths = graph.executor.map("ids", _text_bytes, list(id_shards(graph).parts))
        id_bytes += sum(graph.executor.gather(widths)) // max(1, graph.vertices)
    return max(1, graph.tuning.partition_bytes // (ids * id_bytes + 8 * numbers))


def gathered(answers: Answers, frames: list[Any], kind: FrameKind) -> Any:
    """Bring the partitions to the caller as one frame; rows are numbered from 0, or keep their index."""
    if kind.library == "cudf":
        frames = answers.values(frames)
    parts = answers.executor.gather(frames)
    frame = parts[0] if len(parts) == 1 else get_backend(BACKEND_OF[kind.library]).frame.concat(parts)
    return in_library(frame, kind)


def in_library(frame: Any, kind: FrameKind) -> Any:
    """Convert a whole frame from the library in which it was made to the one that the caller gets.

    Polars has no index: the ids of a frame of vertices become its first column.
    """
    if kind.kind == kind.library:
        return frame
    if kind.kind != "polars":
        return get_backend("cuda").frame.from_pandas(frame)
    import pyarrow as pa

    columns = frame.reset_index() if frame.index.name == "vertex" else frame
    return _polars().from_arrow(pa.Table.from_pandas(columns, preserve_index=False))


def numbered(
    graph: CountingContext,
    frames: list[Any],
    rows: list[int],
    kind: FrameKind,
    ids: Iterable[str],
    numbers: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Make the answer from partitions whose rows are numbered from 0.

    `ids` names the columns of ids, `numbers` the other columns, each with its type.
    """
    if kind.whole:
        return labelled(graph, gathered(graph.answers, frames, kind), ids)
    id_type = "int64" if graph.prepared.source.ids == "int" else "str"
    meta = empty({**dict.fromkeys(ids, id_type), **numbers}, kind.library)
    firsts = [0, *accumulate(rows)]
    divisions = (*firsts[:-1], firsts[-1] - 1) if firsts[-1] else None
    return spread(graph, frames, meta, divisions)


def spread(graph: CountingContext, frames: list[Any], meta: Any, divisions: tuple[Any, ...] | None) -> Any:
    """Make a Dask DataFrame or Series of partitions, at least one, that stay where they are.

    `meta` is an empty frame with the columns' types. `divisions` are the first index of each partition, and the last
    index of all; None: unknown.
    """
    import dask.dataframe as dd

    return dd.from_delayed(graph.answers.delayed(frames), meta=meta, divisions=divisions, verify_meta=False)


def _text_bytes(ids: Any) -> int:
    """Bytes of a map or a shard of text ids."""
    column = getattr(ids, "ids", ids)
    return int(column.memory_usage(index=False) if hasattr(column, "memory_usage") else column.nbytes)


# labels


def labelled(graph: CountingContext, frame: Any, columns: Iterable[str] = ()) -> Any:
    """Replace ids by labels in columns of a pandas frame, or without columns in its index, if the source has labels."""
    labels = graph.prepared.source.labels
    if labels is None:
        return frame
    if names := list(columns):
        return frame.assign(**{name: labels.of(frame[name]) for name in names})
    labels.name_index(frame)
    return frame


def write_answer(graph: CountingContext, frames: list[Any], out: str | os.PathLike[str], force: bool | None) -> None:
    """Write pandas frames, given by handles, as `write_frames` does; labels are written as text.

    InputError: two labels have the same text; or as `write_frames`.
    """
    labels, executor = graph.prepared.source.labels, graph.executor
    if labels is not None:
        import pyarrow as pa

        texts = executor.submit("labels", unchanged, pa.array(labels.text(), pa.large_string()))
        frames = [executor.submit("labels", _with_text, frame, texts) for frame in frames]
    write_frames(frames, out, executor, force)


def _with_text(frame: Any, texts: Any) -> Any:
    ends = [name for name in ("vertex", "src", "dst") if name in frame]
    return frame.assign(**{name: column(texts.take(frame[name].to_numpy())) for name in ends})


# requested ids


def given_ids(graph: CountingContext, values: Any, name: str) -> Any:
    """Check the ids that a caller requests; return an array of int64 or of text, or, with labels, their positions.

    They are a sequence, a set, an array, or a column of pandas, Arrow, CuPy or cuDF; `name` is that of the parameter,
    for errors. The position of a label of no vertex is -1. InputError: they are not ids, or have another type than the
    graph's ids.
    """
    if hasattr(values, "__cuda_array_interface__") or type(values).__module__.partition(".")[0] == "cudf":
        values = values.to_pandas() if hasattr(values, "to_pandas") else values.get()
    if isinstance(values, set | frozenset | dict):
        values = list(values)
    if getattr(values, "nlevels", 1) > 1:  # an index of several levels, which is one of tuples
        values = values.to_numpy()
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        raise InputError(f"{name} {shown(values)} is no list of ids: give a list, an array or a column")
    ids, labels = graph.prepared.source.ids, graph.prepared.source.labels
    if labels is not None:
        return labels.ids(values)
    place, text = Place(f"`{name}`"), ids == "text"
    id_array = to_ids(settle(values, "text" if text else None, place), "text" if text else "int", place)
    return id_array.astype(np.int64) if ids == "int" else id_array


def id_shards(graph: CountingContext) -> Sharded:
    """The caller's ids by dense id, in shards of arrays; a map of all vertices is the only shard."""
    vertices = graph.prepared.vertices
    return vertices if isinstance(vertices, Sharded) else Sharded((0, graph.vertices), [vertices])


def dense_ids(graph: CountingContext, ids: Any) -> Array:
    """Return the dense id of each id from `given_ids`, int64 on the host; -1 for ids that are not in the graph."""
    executor, shards = graph.executor, id_shards(graph)
    numbers, starts, cut = cuts_at_shards(executor, "ids", shards, graph.prepared.source.ids)
    dense, lists, places = np.empty(len(ids), np.int64), [ids], slice(None)
    if len(numbers) > 1:  # each shard is asked for the ids that it may have
        sorted_ids, places = ascending_ids(ids)
        lists = cut(sorted_ids, starts)
    pairs = zip(numbers, lists, strict=True)
    calls = [(shards.parts[number], shards.starts[number], shard_ids) for number, shard_ids in pairs]
    dense[places] = np.concatenate(executor.gather(starmap(executor, "ids", _dense_of_shard, calls)))
    return dense


def external_ids(graph: CountingContext, dense: Array) -> Any:
    """Return a pandas column of the caller's ids, or labels, for a few dense ids."""
    executor, source = graph.executor, graph.prepared.source
    ids = np.empty(len(dense), dtype=np.int64 if source.ids == "int" else object)
    for places, values in executor.gather(id_shards(graph).map(executor, "ids", _external_of_shard, dense)):
        ids[places] = values
    names = column(ids if source.ids == "int" else ids.tolist())
    return names if source.labels is None else source.labels.of(names)


def _external_of_shard(part: Any, first: int, dense: Array) -> tuple[Array, Any]:
    if hasattr(part, "external"):
        return np.arange(len(dense)), np.asarray(part.external(dense))
    places = np.flatnonzero((dense >= first) & (dense < first + len(part)))
    return places, np.asarray(on_host(part).take(dense[places] - first))


def _dense_of_shard(part: Any, first: int, ids: Any) -> Array:
    shard_ids = part.external(np.arange(part.size)) if hasattr(part, "external") else on_host(part)
    places = places_among(shard_ids, ids)
    return np.where(places < 0, places, places + first)


def unknown(name: str, example: Any, count: int, noun: str) -> InputError:
    """Make the error for requested ids or edges that are not in the graph; it names the first and their number."""
    example = example.item() if isinstance(example, np.generic) else example
    return InputError(
        f"{name} has {plural(count, f'{noun} that is', f'{noun}s that are')} not in the graph, for example "
        f"{shown(example)}: after clean-up a graph has edges without loops, and the vertices at their ends; leave them "
        "out"
    )


def empty(columns: dict[str, str], library: Library) -> Any:
    """Make a frame without rows, from which a Dask DataFrame takes names and types of columns."""
    import pandas as pd

    frame = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in columns.items()})
    return frame if library == "pandas" else get_backend("cuda").frame.from_pandas(frame)
