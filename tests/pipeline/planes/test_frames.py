"""Edge frames: reading leaves one type of them on every plane, whatever the source is, in the arrays' own memory."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dasktc
from dasktc.backends import get_backend
from dasktc.backends.cuda.edge_arrays import EdgeArrays
from dasktc.executors.measured import Measured
from dasktc.io.files import open_source
from dasktc.io.generators.synthetic import kronecker
from dasktc.io.memory import from_object
from dasktc.io.memory.device import DevicePart
from dasktc.io.source import ReadOptions
from dasktc.pipeline.planes.budget import BudgetProcessPlane
from dasktc.pipeline.planes.process import ProcessPlane
from dasktc.pipeline.planes.workers import WorkersPlane
from dasktc.pipeline.stages.id_maps import arrays_of
from dasktc.pipeline.stages.read import slices_of_rows, without_loops
from tests.support.emulation import cudf_strict
from tests.support.keywords import keywords
from tests.support.slow_pipeline import skewed_edges, source_of, tuned
from tests.support.tiers import some

EDGES = skewed_edges(40, 300, 2)
NAMED = [(f"n{u:02d}", f"n{v:02d}") for u, v in EDGES]
PAIRS = np.array(EDGES)


def written(path, write):
    """A source that is read from a file."""
    write(path)
    return open_source(str(path), ReadOptions())


SOURCES = {
    "text file": lambda folder: written(
        folder / "edges.csv", lambda path: path.write_text("".join(f"{u},{v}\n" for u, v in EDGES))
    ),
    "Parquet file": lambda folder: written(
        folder / "edges.parquet", pd.DataFrame(PAIRS, columns=["src", "dst"]).to_parquet
    ),
    "array": lambda folder: from_object(PAIRS, ReadOptions()),
    "pair of arrays": lambda folder: from_object((PAIRS[:, 0].copy(), PAIRS[:, 1].copy()), ReadOptions()),
    "pandas frame": lambda folder: from_object(pd.DataFrame(PAIRS, columns=["src", "dst"]), ReadOptions()),
    "sparse matrix": lambda folder: from_object(
        scipy.sparse.coo_array((np.ones(len(PAIRS), "int8"), tuple(PAIRS.T)), (40, 40)), ReadOptions()
    ),
    "several parts": lambda folder: source_of(EDGES, parts=5),
    "generated": lambda folder: kronecker(6, parts=3),
    "text ids": lambda folder: source_of(NAMED, "text", parts=2),
    "file of text ids": lambda folder: written(
        folder / "names.csv", lambda path: path.write_text("".join(f"{u},{v}\n" for u, v in NAMED))
    ),
    "no edges": lambda folder: from_object(np.empty((0, 2), "int64"), ReadOptions()),
}
every_source = pytest.mark.parametrize("name", SOURCES)
every_plane = pytest.mark.parametrize(
    ("plane", "options"), [(ProcessPlane, {}), (BudgetProcessPlane, {"memory": "20MB"})], ids=["process", "budget"]
)


def flat(results):
    """Frames of results, each of which is a frame or a list of frames."""
    return [frame for result in results for frame in (result if isinstance(result, list) else [result])]


def held(keys, dask_worker):
    """The type and Dask's size of each result of reading that a worker holds, by key."""
    values = {key: dask_worker.data[key] for key in keys if key in dask_worker.data}
    frames = {key: flat([value.value if isinstance(value, Measured) else value]) for key, value in values.items()}
    return {
        key: ([(type(frame), len(frame)) for frame in frames[key]], dask_worker.state.tasks[key].nbytes)
        for key in values
    }


@contextmanager
def reading(plane):
    """Context that yields the frames which a plane reads meanwhile, and what the workers hold of them."""
    frames, on_workers, read = [], {}, plane.read

    def watched(given, source):
        found = read(given, source)
        handles = list(found.frames)
        if plane is WorkersPlane:
            for answer in given.executor.client.run(held, [handle.key for handle in handles]).values():
                on_workers.update(answer)
        frames.extend(flat(given.executor.gather(handles)))
        return found

    with mock.patch.object(plane, "read", watched):
        yield frames, on_workers


def rows_of(frames):
    """The rows of frames, without loops."""
    tables = [frame.to_pandas() if hasattr(frame, "to_pandas") else frame for frame in frames]
    return sorted(
        (u, v) for table in tables for u, v in zip(table["src"].tolist(), table["dst"].tolist(), strict=True) if u != v
    )


def check(frames, source, library):
    """Check the type and the columns of frames, and that they have the edges of their source."""
    known = [part.read(get_backend("cpu")) for part in source.parts]
    assert rows_of(frames) == rows_of(known)
    for frame in frames:
        assert type(frame) is library
        assert list(frame.columns) == ["src", "dst"]
        kinds = {frame[name].dtype.kind for name in frame.columns}
        assert kinds == {"i"} if source.ids == "int" else not kinds & set("iuf")


@every_source
@every_plane
def test_frames_are_pandas(tmp_path, plane, options, name):
    source = SOURCES[name](tmp_path)
    with reading(plane) as (frames, _):
        dasktc.prepare(source, backend="cpu", **keywords(**options)).close()
    check(frames, source, pd.DataFrame)


@pytest.mark.parametrize(
    "name", some(SOURCES, lambda name: name in ("text file", "pair of arrays", "generated", "text ids"))
)
def test_frames_on_workers_are_pandas(tmp_path, inner, name):
    source = SOURCES[name](tmp_path)
    with reading(WorkersPlane) as (frames, on_workers):
        dasktc.prepare(source, inner, backend="cpu", **keywords(distribute="always")).close()
    check(frames, source, pd.DataFrame)
    types = [kind for kinds, _ in on_workers.values() for kind in kinds]
    assert sorted(types, key=str) == sorted([(pd.DataFrame, len(frame)) for frame in frames], key=str)


@every_source
@every_plane
def test_frames_of_a_device_are_arrays_or_cudf(emulated, tmp_path, plane, options, name):
    source = SOURCES[name](tmp_path)
    with reading(plane) as (frames, _), tuned(piece_edges=50):
        dasktc.prepare(source, backend="cuda", **keywords(**options)).close()
    check(frames, source, EdgeArrays if source.ids == "int" else cudf_strict.DataFrame)
    assert source.ids == "text" or {str(frame["src"].dtype) for frame in frames} == {"int32"}


def test_frames_are_the_memory_of_the_arrays(monkeypatch):
    """Those of a caller, and those that a generator has made."""
    from dasktc.backends.cpu import backend as cpu

    src, dst = np.arange(500), np.arange(1, 501)
    with reading(ProcessPlane) as (frames, _):
        dasktc.prepare((src, dst), backend="cpu")
    (frame,) = frames
    assert np.shares_memory(frame["src"].values, src)
    assert np.shares_memory(frame["dst"].values, dst)
    make, made = cpu.make_edges, []
    monkeypatch.setattr(cpu, "make_edges", lambda *given: made.append(make(*given)) or made[-1])
    frame = cpu.BACKEND.read(kronecker(6).parts[0], None)
    ((src, dst),) = made
    assert np.shares_memory(frame["src"].values, src)
    assert np.shares_memory(frame["dst"].values, dst)
    piece = list(slices_of_rows(frame, 100))[1]
    assert np.shares_memory(piece["dst"].values, dst)


# on a GPU


def copies_of_a_device():
    """What frames of CuPy arrays, their slices, and Dask's measure of them are not as they should be; none."""
    import cupy
    import distributed  # noqa: F401  (then results are registered with Dask)
    from dask.sizeof import sizeof

    backend, faults = get_backend("cuda"), []
    src, dst = cupy.arange(1000, dtype="int32"), cupy.arange(1, 1001, dtype="int32")
    used = cupy.get_default_memory_pool().used_bytes()
    edges = backend.read(DevicePart(src, dst, "a test", "a copy"), None)
    frame = backend.edge_frame(edges)
    if cupy.get_default_memory_pool().used_bytes() != used:
        faults.append("memory was allocated")
    proper = without_loops(edges, backend)[0]
    for offset, table in (
        (0, edges),
        (0, frame),
        (0, proper),
        *((600, list(slices_of_rows(of, 300))[2]) for of in (edges, frame)),
    ):
        for array, held_array in zip((src, dst), arrays_of(table), strict=True):
            if held_array.data.ptr != array.data.ptr + 4 * offset or held_array.dtype != "int32":
                faults.append(f"from row {offset} a {type(table)} is a copy")
    if not 0 <= sizeof(Measured(frame, None)) - 8 * len(src) < 100:
        faults.append(f"Dask's measure is {sizeof(Measured(frame, None))}")
    make, made = backend.make, []
    object.__setattr__(backend, "make", lambda *given: made.append(make(*given)) or made[-1])
    try:
        frame = backend.edge_frame(backend.read(kronecker(12).parts[0], None))
    finally:
        object.__setattr__(backend, "make", make)
    for array, held_array in zip(*made, arrays_of(frame), strict=True):
        if held_array.data.ptr != array.data.ptr or type(frame) is not backend.frame.DataFrame:
            faults.append("generated edges are copied")
    return faults


@pytest.mark.gpu
@every_source
@every_plane
def test_frames_of_a_gpu_are_arrays_or_cudf(tmp_path, plane, options, name):
    cudf = pytest.importorskip("cudf")
    source = SOURCES[name](tmp_path)
    with reading(plane) as (frames, _):
        dasktc.prepare(source, backend="cuda", **keywords(**options)).close()
    check(frames, source, EdgeArrays if source.ids == "int" else cudf.DataFrame)


@pytest.mark.gpu
def test_frames_of_a_gpu_are_the_memory_of_the_arrays():
    pytest.importorskip("cudf")
    assert copies_of_a_device() == []


@pytest.mark.gpu
def test_frames_on_a_worker_of_a_gpu_are_cudf(tmp_path):
    """Their bytes count for Dask."""
    cudf = pytest.importorskip("cudf")
    pytest.importorskip("dask_cuda")
    with dasktc.cluster(backend="cuda", workers=1) as client:
        assert [*client.run(copies_of_a_device).values()] == [[]]
        for name, make in SOURCES.items():
            source = make(tmp_path)
            with reading(WorkersPlane) as (frames, on_workers):
                dasktc.prepare(source, client, backend="cuda", **keywords(distribute="always")).close()
            check(frames, source, cudf.DataFrame)
            assert on_workers, name
            for kinds, nbytes in on_workers.values():
                assert {kind for kind, _ in kinds} == {cudf.DataFrame}, name
                rows = sum(rows for _, rows in kinds)
                assert nbytes >= 8 * rows, name
                assert source.ids == "text" or nbytes < 8 * rows + 1000, name
