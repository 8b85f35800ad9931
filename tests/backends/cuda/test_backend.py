"""The whole pipeline on the CUDA backend, emulated on the host; and on a GPU where there is one."""

from __future__ import annotations

import gc
import inspect
import re
import time
from dataclasses import replace
from itertools import cycle, product

import dask
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import dasktc
from dasktc import registry
from dasktc.api import count as triangles
from dasktc.api.count import build
from dasktc.backends import TaskSize, lazy_backend, scratch_bytes, support_bytes
from dasktc.backends.calls import one_call
from dasktc.backends.cpu import visit
from dasktc.backends.cpu.batches import batches
from dasktc.backends.csr import on_host
from dasktc.backends.cuda import launch
from dasktc.backends.cuda import visit as device_visit
from dasktc.counting import checkpoint
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import Offer, memory_of
from dasktc.io.files import open_source
from dasktc.io.formats import text
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, rmat, theory
from dasktc.io.source import ReadOptions
from dasktc.io.write import write_edges
from dasktc.options import Method, Options
from dasktc.pipeline import prepare as stages
from dasktc.questions import estimate as estimates
from tests.backends.cpu.test_kernels import GRAPHS as ORIENTED
from tests.backends.cpu.test_kernels import tasks, turned
from tests.backends.cuda.test_kernels import moved
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cudf_strict, cupy_strict
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.keywords import keywords
from tests.support.slow_pipeline import (
    CPU,
    EVERY_PARTITION,
    EVERY_REORDER,
    pairwise_cover,
    skewed_edges,
    source_of,
    tuned,
)
from tests.support.tiers import each_once, some

EDGES = skewed_edges(60, 400, 1)
LARGER = skewed_edges(150, 1700, 1)
KERNELS_HERE = list(launch.KERNELS)


def facts(result):
    """The facts on which two backends must agree."""
    return (
        result.triangles,
        result.vertices,
        result.edges,
        result.loops_dropped,
        result.duplicates_dropped,
        result.stats.wedges,
    )


# the stand-in


def test_the_stand_in_has_only_what_cupy_has():
    cupy = pytest.importorskip("cupy", reason="needs CuPy, not a GPU")
    for name, function in cupy_strict.functions().items():
        theirs = inspect.signature(getattr(cupy, name)).parameters
        assert list(inspect.signature(function).parameters) == list(theirs), name
    for name, theirs in vars(cupy_strict.cuda).items():
        assert hasattr(cupy.cuda, name), name
        of_kind = {"Stream": ("record", "synchronize", "wait_event"), "Event": ("record", "synchronize")}.get(name, ())
        assert all(hasattr(getattr(cupy.cuda, name), method) and hasattr(theirs, method) for method in of_kind)
    own = {name for name in vars(cupy_strict.ndarray) if not name.startswith("__")}
    assert not {name for name in own if not name.startswith("_") and not hasattr(cupy.ndarray, name)}


@pytest.mark.parametrize(
    "mixed",
    [
        np.asarray,
        np.sort,
        list,
        lambda x: np.add(x, 1),
        lambda x: np.concatenate([x, x]),
        lambda x: x + np.arange(4),
        lambda x: np.arange(4) + x,
        lambda x: x[np.arange(2)],
        lambda x: x.take(np.arange(2)),
        lambda x: x.searchsorted(np.int64(1)),
        lambda x: x.__setitem__(slice(None), np.arange(4)),
        lambda x: range(x[1]),
        lambda x: np.arange(4)[: x[1]],
        lambda x: cupy_strict.concatenate([x, np.arange(4)]),
        lambda x: cupy_strict.add.at(x, x, 1),
    ],
)
def test_the_stand_in_refuses_what_would_copy_in_secret(mixed):
    with pytest.raises((TypeError, NotImplementedError)):
        mixed(cupy_strict.arange(4, dtype="int64"))


def test_an_array_of_many_is_no_truth():
    with pytest.raises(ValueError, match="4 elements"):
        bool(cupy_strict.arange(4))


# the pipeline


def test_the_device_s_work_is_part_of_the_stage_that_submits_it(emulated):
    """A device still works when calls return: counting would be blamed for the time of preparation."""
    slow = replace(emulated, wait=lambda: time.sleep(0.1))
    graph = build(LocalExecutor(backend=slow), source_of(EDGES), Options(backend="cuda"))
    assert graph._context.prepared.seconds["prepare"] >= 0.1


@pytest.mark.parametrize("name", [name for name, _, _ in oracle.GRAPHS])
def test_every_graph(emulated, name):
    edges, triangles_known = next((edges, count) for found, edges, count in oracle.GRAPHS if found == name)
    found = dasktc.triangle_count(source_of(edges, parts=2), backend="cuda", verify=1.0)
    assert (found.backend, found.triangles) == ("cuda", triangles_known)
    assert facts(found) == facts(dasktc.triangle_count(source_of(edges, parts=2), backend="cpu"))


def every_way():
    """Pairs of kernel, order and scheme; partitions of a scheme take turns."""
    turns = {
        scheme: cycle([partition for partition in EVERY_PARTITION if partition["partition"] == scheme])
        for scheme in registry.SCHEMES
    }
    rows = pairwise_cover(KERNELS_HERE, EVERY_REORDER, [*turns])
    return [(kernel, reorder, next(turns[scheme])) for kernel, reorder, scheme in rows]


@pytest.mark.parametrize(("kernel", "reorder", "partition"), each_once(every_way()))
def test_every_kernel_reorder_and_partition(emulated, kernel, reorder, partition):
    """Pairwise combinations, above 1,000 edges; below that `backends/cuda/test_registry.py` has every combination."""
    found = dasktc.triangle_count(
        source_of(LARGER, parts=3), backend="cuda", verify=1.0, **keywords(kernel=kernel, reorder=reorder, **partition)
    )
    assert (found.triangles, found.edges > 1000) == (oracle.triangles(LARGER), True)
    assert found.plan.splits == partition["splits"]


@given(oracle.multigraphs())
def test_any_integer_ids(edges):
    with emulated_cuda.backend():
        graph = dasktc.prepare(source_of(edges, parts=2), backend="cuda", method=Method(partition="hash2d", parts=2))
        assert int(graph.triangle_count()) == oracle.triangles(edges)
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)


@given(oracle.text_multigraphs())
def test_any_text_ids(edges):
    with emulated_cuda.backend():
        graph = dasktc.prepare(source_of(edges, "text", parts=2), backend="cuda")
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)
        support = {frozenset((u, v)): n for u, v, n in graph.edge_support().itertuples(index=False)}
        assert support == oracle.support(edges)


@pytest.mark.parametrize("partition", [{}, {"splits": 3}, {"partition": "hash2d", "parts": 3}])
def test_vertices_edges_and_lists_as_on_the_cpu(emulated, partition):
    on_cpu, on_device = (
        dasktc.prepare(source_of(EDGES), backend=name, **keywords(**partition)) for name in ("cpu", "cuda")
    )
    assert on_device.triangles().equals(on_cpu.triangles())
    assert on_device.edge_support().equals(on_cpu.edge_support())
    assert on_device.clustering().equals(on_cpu.clustering())
    assert on_device.transitivity() == on_cpu.transitivity()
    every = on_cpu.triangle_list()
    assert on_device.triangle_list().equals(every)
    for limit in (0, 1, 10, 100):
        some = on_device.triangle_list(limit)
        assert len(some.merge(every)) == len(some) == min(limit, len(every))
        assert some.equals(on_device.triangle_list(limit))
        assert some.equals(on_cpu.triangle_list(limit))


def test_a_checkpoint_says_how_rows_were_dealt(emulated, monkeypatch, tmp_path):
    """Other cuts give splits other rows, which the wedges need not reveal."""
    on_cpu, on_device = (
        dasktc.prepare(source_of(EDGES), backend=name, method=Method(splits=3)) for name in ("cpu", "cuda")
    )
    assert "rows" not in checkpoint.fingerprint(on_cpu._context)
    assert checkpoint.fingerprint(on_device._context)["rows"] == "dealt by 32"
    with monkeypatch.context() as other:
        other.setattr(checkpoint, "GROUP", 16)
        on_device.triangle_count(checkpoint=tmp_path)
    with pytest.raises(InputError, match="of another count: rows dealt by 16 there, rows dealt by 32 here"):
        on_device.triangle_count(checkpoint=tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        kronecker(7, 8, 1, parts=3),
        rmat(128, 1000, parts=2),
        random_graph(100, 1000, parts=2),
        grid3d(3, parts=2),
        theory((3, 4, 5), "B1k", parts=2),
    ],
    ids=lambda source: source.name.split()[0],
)
def test_generated_on_the_device(emulated, source):
    on_device, on_cpu = (dasktc.triangle_count(source, backend=name) for name in ("cuda", "cpu"))
    assert facts(on_device) == facts(on_cpu)


def written(folder):
    """The same edges in files of each format, with the reader that each has on the device."""
    lines = [f"{u}\t{v}\n" for u, v in EDGES]
    frame = pd.DataFrame(EDGES, columns=["a", "b"])
    (folder / "plain.txt").write_text("".join(lines))
    (folder / "commented.txt").write_text("# a comment\n" + "".join(lines)[:-1])
    (folder / "dos.txt").write_text("".join(lines).replace("\n", "\r\n"))
    (folder / "spaces.txt").write_text("".join(lines).replace("\t", "  "))
    (folder / "single.txt").write_text("".join(lines) + "77\n")
    frame.assign(w=7).to_csv(folder / "three.csv", index=False)
    frame.to_parquet(folder / "wide.parquet", row_group_size=50)
    frame.astype("uint8").to_parquet(folder / "narrow.parquet")
    frame.astype("uint64").to_parquet(folder / "unsigned.parquet")
    frame.astype(str).to_parquet(folder / "text.parquet")
    frame.astype(str).astype("category").to_parquet(folder / "categories.parquet")
    return {
        "plain.txt": {"rows"}, "commented.txt": {"rows"}, "dos.txt": {"rows"}, "spaces.txt": {"rows"},
        "three.csv": {"rows"}, "single.txt": set(), "wide.parquet": {"read_parquet"},
        "narrow.parquet": {"read_parquet"},
        "unsigned.parquet": {"read_parquet"}, "text.parquet": {"read_parquet"}, "categories.parquet": {"read_parquet"},
    }  # fmt: skip


def test_files(emulated, tmp_path, monkeypatch):
    used = set()
    reader, parsed = emulated.frame.read_parquet, text._Lines._device_rows
    monkeypatch.setattr(emulated.frame, "read_parquet", lambda *a, **k: used.add("read_parquet") or reader(*a, **k))

    def device_rows(*args):
        pair = parsed(*args)
        used.update(["rows"] * (pair is not None))
        return pair

    monkeypatch.setattr(text._Lines, "_device_rows", device_rows)
    for name, readers in written(tmp_path).items():
        used.clear()
        path = str(tmp_path / name)
        assert facts(dasktc.triangle_count(path, backend="cuda")) == facts(dasktc.triangle_count(path)), name
        assert used == readers, name


def test_many_parquet_files(emulated, tmp_path):
    """Files are read together where they agree, one by one where they differ, and on the host where cuDF takes none."""
    frame = pd.DataFrame(EDGES, columns=["a", "b"])
    for folder, second in (("same", "int32"), ("wider", "int64"), ("unsigned", "uint64"), ("missing", "Int64")):
        (tmp_path / folder).mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(frame)), 5)):
            rows = frame.iloc[part].astype("int32" if number != 3 else second)
            if folder == "missing" and number == 3:
                rows = pd.concat([rows, pd.DataFrame({"a": [None], "b": [5]}, dtype="Int64")])
            rows.to_parquet(tmp_path / folder / f"{number}.parquet", row_group_size=20)
        path = str(tmp_path / folder)
        if folder == "missing":
            with pytest.raises(InputError) as refused:
                dasktc.triangle_count(path)
            with pytest.raises(InputError, match=re.escape(str(refused.value))):
                dasktc.triangle_count(path, backend="cuda")
        else:
            assert facts(dasktc.triangle_count(path, backend="cuda")) == facts(dasktc.triangle_count(path)), folder


@pytest.mark.slow
@pytest.mark.parametrize("slab", [16, 64, 1 << 20])
def test_text_is_copied_through_pinned_memory(emulated, tmp_path, slab):
    """More slabs than exist at a time, parts that begin within lines, and a row that only the host can parse."""
    from dasktc.backends.cuda import frames
    from dasktc.backends.cuda.upload import Uploader

    device = replace(emulated, upload=Uploader(slab, 3))
    path, rows = tmp_path / "edges.txt", "".join(f"{u} {v}\n" for u, v in EDGES)
    for contents in (
        rows,
        rows[:-1],
        "# first\n" + rows + "5 3 0.5\n",
        rows + "77\n",
        rows + "123456789012345678901 3\n",
    ):
        path.write_text(contents)
        for blocksize in (200, 1 << 20):
            for part in open_source(str(path), ReadOptions(blocksize=blocksize, ids="int")).parts:
                try:
                    known = part.read(CPU, None)
                except InputError as refused:
                    with pytest.raises(InputError, match=re.escape(str(refused))):
                        frames.read(device, CPU, part, None)
                else:
                    edges = frames.read(device, CPU, part, None)
                    assert all((edges[end].tolist() == known[end]).all() for end in ("src", "dst"))


def test_a_file_that_became_shorter(emulated, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" * 100)
    (part,) = open_source(str(path), ReadOptions()).parts
    path.write_text("1 2\n")
    with pytest.raises(InputError, match=r"changed while it was read: it had 400 bytes and has 4;"):
        emulated.read(part, None)
    with pytest.raises(InputError, match=r"ends at byte 4: it has become shorter"):
        emulated.read(part.part, None)


def test_generated_files_are_those_of_the_host(emulated, tmp_path):
    for out in ("edges.parquet", "edges.txt"):
        for source in (kronecker(6, parts=5), random_graph(100, 1000, parts=1), theory((3, 4), "B1k", parts=2)):
            folders = [tmp_path / f"{name}-{source.name}" for name in ("cpu", "cuda")]
            for folder in folders:
                folder.mkdir(exist_ok=True)
                written_edges = write_edges(source, folder / out, LocalExecutor(), backend=folder.name.split("-")[0])
                assert written_edges == sum(part.rows for part in source.parts)
            one, other = (
                {file.relative_to(f): file.read_bytes() for file in f.rglob("*") if file.is_file()} for f in folders
            )
            assert one == other


def test_small_blocks_of_text(emulated, tmp_path):
    """Some blocks are plain, and others need the host's parser."""
    lines = [f"{u} {v}\n" for u, v in EDGES]
    lines[100:100] = ["# in the middle\n", "\n", "-5 7\n", "123456789012345678 3\n", "1234567890123456789 3\n"]
    (tmp_path / "edges.txt").write_text("".join(lines))
    path = str(tmp_path / "edges.txt")
    source = open_source(path, ReadOptions(block=64))
    assert facts(dasktc.triangle_count(source, backend="cuda")) == facts(dasktc.triangle_count(path))
    (tmp_path / "edges.txt").write_text("".join([*lines, "7 seven\n"]))
    with pytest.raises(InputError, match=rf"line {len(lines) + 1} of .*edges.txt"):
        dasktc.triangle_count(open_source(path, ReadOptions(block=64, ids="int")), backend="cuda")


@pytest.fixture
def in_gpu_memory(emulated, monkeypatch):
    """Each kind of object in GPU memory, over the same edges; types are recognised by their modules' names."""
    for kind in (cudf_strict.Series, cudf_strict.DataFrame):
        monkeypatch.setattr(kind, "__module__", "cudf.core")
    monkeypatch.setattr(cupy_strict.ndarray, "__module__", "cupy")
    pairs = np.array(EDGES)
    arrays = [cupy_strict.asarray(pairs[:, k]) for k in (0, 1)]
    frame = cudf_strict.DataFrame({"a": arrays[0], "b": arrays[1], "w": arrays[1]})
    return {
        "array": cupy_strict.asarray(pairs),
        "unsigned array": cupy_strict.asarray(pairs.astype("uint32")),
        "pair": tuple(arrays),
        "frame": frame,
        "frame with known names": cudf_strict.DataFrame({"w": arrays[1], "Source": arrays[0], "Target": arrays[1]}),
        "pair of columns": (frame["a"], frame["b"]),
    }


def test_objects_in_gpu_memory(in_gpu_memory):
    for name, source in in_gpu_memory.items():
        assert int(dasktc.triangle_count(source, backend="cuda")) == oracle.triangles(EDGES), name
        with pytest.raises(InputError, match="is in GPU memory: backend cpu does not read it"):
            dasktc.triangle_count(source, backend="cpu")
    assert dasktc.triangle_count(in_gpu_memory["frame"], backend="cuda", columns=("b", "a")).edges > 0
    a, b = in_gpu_memory["pair"]
    with pytest.raises(InputError, match="'index' perhaps numbers the rows"):
        dasktc.triangle_count(cudf_strict.DataFrame({"index": a, "a": a, "b": b}), backend="cuda")
    with pytest.raises(InputError, match=r"has type float64: ids are integers or strings"):
        dasktc.triangle_count((cupy_strict.zeros(3), cupy_strict.zeros(3)), backend="cuda")


class DaskFrame:
    """The parts of dask-cudf's DataFrame that are used here."""

    __module__ = "dask_cudf.core"

    def __init__(self, frame):
        self._meta, self._parts, self.ndim = frame.iloc[:0], [frame.iloc[:150], frame.iloc[150:]], 2

    def __dask_graph__(self):
        return {}

    def to_delayed(self):
        return [dask.delayed(lambda part=part: part)() for part in self._parts]


def test_a_dask_frame_in_gpu_memory(in_gpu_memory):
    frame = in_gpu_memory["frame"]
    assert int(dasktc.triangle_count(DaskFrame(frame), backend="cuda")) == oracle.triangles(EDGES)
    with pytest.raises(InputError, match=r"is in GPU memory.*to_backend"):
        dasktc.triangle_count(DaskFrame(frame), backend="cpu")


def test_what_visits_take(emulated):
    """The bytes by which a visit is refused are at least those that it takes."""
    graph, used = dasktc.prepare(source_of(EDGES), backend="cuda"), cupy_strict.MEMORY_USED
    before = used.peak = used.now
    graph.triangles()
    (block,) = graph._context.blocks.values()
    assert 4 * graph.edges < used.peak - before <= support_bytes("cuda", graph.edges, block.rows) + 2 * 8 * block.rows


def test_many_chunks_and_partitions(emulated, monkeypatch):
    """Every loop over chunks runs more than once."""
    from dasktc.backends.cuda import backend as cuda
    from dasktc.backends.cuda import frames as cuda_frames

    for module, name in ((cuda_frames, "CHUNK"), (cuda, "CHUNK"), (device_visit, "ENDS")):
        monkeypatch.setattr(module, name, 7)
    chunk = emulated.chunk
    object.__setattr__(emulated, "chunk", 7)
    for reorder in EVERY_REORDER:
        with tuned(piece_edges=7, one_partition=1, partition_edges={"cuda": 50}):
            graph = dasktc.prepare(source_of(EDGES, parts=2), backend="cuda", method=Method(reorder=reorder))
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(EDGES)
    object.__setattr__(emulated, "chunk", chunk)


def test_ids_are_narrowed_where_they_fit(emulated):
    from dasktc.backends.cuda import frames as cuda_frames

    narrow = cuda_frames.narrowed(np.array([1, 2**31 - 1]), np.array([-(2**31), 0]))
    wide = cuda_frames.narrowed(np.array([1, 2**31]), np.array([3, 4], np.int32))
    assert [(str(c.dtype), c.tolist()) for c in narrow] == [("int32", [1, 2**31 - 1]), ("int32", [-(2**31), 0])]
    assert [(str(c.dtype), c.tolist()) for c in wide] == [("int64", [1, 2**31]), ("int64", [3, 4])]


def test_a_checkpoint(emulated, tmp_path):
    options = {"backend": "cuda", "splits": 2, "checkpoint": tmp_path}
    first, again = (dasktc.triangle_count(source_of(EDGES), **keywords(**options)) for _ in range(2))
    assert (first.stats.resumed, again.stats.resumed) == (0, 2)
    assert again.triangles == first.triangles == oracle.triangles(EDGES)


def test_the_caller_s_arrays_are_left_alone(emulated):
    pair = np.array([[3, 1], [1, 2], [2, 3]], np.int64)
    assert int(dasktc.triangle_count(pair, backend="cuda")) == 1
    assert pair.tolist() == [[3, 1], [1, 2], [2, 3]]


# memory


def test_memory_is_what_the_device_has_left(emulated, monkeypatch):
    import rmm

    from dasktc.backends.cuda import memory

    gc.collect()
    monkeypatch.setattr(memory, "_kept_bytes", lambda share=0: 0)
    with one_call():
        pass  # what is not used goes back when it ends
    free = int(0.9 * cupy_strict.MEMORY)
    assert memory_of(LocalExecutor(backend=lazy_backend("cuda"))) == emulated.memory() == free
    assert memory_of(LocalExecutor(backend=lazy_backend("cuda")), 12345) == 12345
    with one_call():
        held = cupy_strict.zeros(1000, dtype="uint8")
        assert emulated.memory() == free
        del held
        assert emulated.memory() == int(0.9 * (cupy_strict.MEMORY + 1000))
    caller_s = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=4096)
    monkeypatch.setattr(rmm.mr, "CURRENT", [caller_s])
    assert emulated.memory() == int(0.9 * (cupy_strict.MEMORY + 4096))
    with one_call():
        held = cupy_strict.zeros(1000, dtype="uint8")
        assert emulated.memory() == int(0.9 * (cupy_strict.MEMORY + 4096 - len(held)))


def test_too_little_device_memory_is_refused(emulated):
    with pytest.raises(InputError, match=r"needs .* more than the 1 kB of one worker"):
        dasktc.triangle_count(source_of(EDGES), backend="cuda", memory=1000, method=Method(partition="whole"))


# the choice


def test_auto_takes_a_gpu(emulated):
    assert dasktc.triangle_count(source_of(EDGES)).backend == "cuda"
    assert dasktc.triangle_count(source_of(EDGES), backend="cpu").backend == "cpu"


@pytest.mark.parametrize(
    ("source", "kernel"),
    [(random_graph(3000, 90_000), "lstc"), (grid3d(8), "short")],
    ids=["few wedges", "rows of three"],
)
def test_auto_takes_a_kernel_by_the_rows_on_a_device_too(emulated, source, kernel):
    found = dasktc.triangle_count(source, backend="cuda")
    assert found.plan.choice.startswith(f"kernel {kernel}: ")
    assert {record.job.kernel for record in found._records} == {kernel}
    assert found.triangles == dasktc.triangle_count(source, backend="cpu").triangles


class Workers(LocalExecutor):
    """An executor of two workers, some of which cannot use a backend."""

    def __init__(self, *reasons):
        self.reasons = reasons

    def run_on_workers(self, function, *args):
        assert args == ("cuda",)
        return [Offer("", why, 0) for why in self.reasons]


def test_workers_choose_the_backend():
    able, lacking = Workers(None, None), Workers(None, "CUDA reports 0 GPUs")
    assert stages.choose_backend(able, Options())[0].backend == "cuda"
    assert stages.choose_backend(able, Options(backend="cuda", kernel="trust"))[0].backend == "cuda"
    assert stages.choose_backend(lacking, Options())[0].backend == "cpu"
    assert stages.choose_backend(lacking, Options(backend="cpu"))[0].backend == "cpu"
    with pytest.raises(InputError, match="CUDA reports 0 GPUs"):
        stages.choose_backend(lacking, Options(backend="cuda"))


def test_a_kernel_that_the_backend_has_not(monkeypatch):
    monkeypatch.setitem(registry.KERNELS, "cuda", {"hub": launch.KERNELS["hub"]})
    with pytest.raises(InputError, match="backend cuda has no kernel lstc, it has hub"):
        stages.choose_backend(Workers(None), Options(backend="cuda", kernel="lstc"))


def test_a_client_without_a_gpu_plans_for_workers_that_have_one():
    """The client's own questions about a backend import no GPU library."""
    assert all(scratch_bytes("cuda", kernel, TaskSize(1000, 1000, 1000, 100)) > 0 for kernel in launch.KERNELS)

    assert dasktc.plan(vertices=10**6, edges=10**7, backend="cuda", memory="8GB").plan.fits


@needs_compiler
def test_on_a_cluster(emulated):
    """Tasks carry the backend's name; the workers' threads, in this process, look it up."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        options = {"backend": "cuda", "partition": "hash2d", "parts": 2, "splits": 2, "verify": 1.0}
        found = dasktc.triangle_count(source_of(EDGES, parts=3), client, **keywords(**options))
        assert (found.backend, found.triangles) == ("cuda", oracle.triangles(EDGES))
        graph = dasktc.prepare(source_of(EDGES), client, backend="cuda")
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(EDGES)
        assert len(client.compute(graph.edge_support()).result()) == graph.edges


# visiting


def joined(found):
    """Batches as one: their places by row and by positions, and their wedges."""
    rows = [[on_host(array).copy() for array in batch[:4]] + [np.array([batch.wedges])] for batch in found]
    *places, wedges = map(np.concatenate, zip(*rows or [[np.empty(0, int)] * 5], strict=True))
    return *places, wedges.sum()


@needs_compiler
@pytest.mark.parametrize("reverse", some([False, True], lambda reverse: not reverse), ids=["forward", "reverse"])
@pytest.mark.parametrize(
    ("ordered", "parts", "splits"),
    some(
        [(ordered, *cut) for ordered in (True, False) for cut in ((1, 1), (1, 3), (2, 2))],
        lambda ordered, parts, splits: ordered == (parts == 1),
    ),
)
def test_visits_are_those_of_the_cpu(parts, splits, ordered, reverse):
    device = HostDevice(reverse)
    for vertices, edges in ORIENTED.values():
        found = edges if ordered else [(turned(u, vertices), turned(v, vertices)) for u, v in edges]
        for task in tasks(found, vertices, parts, splits, ordered):
            supports, count, wedges = device_visit.support(device, task)
            known, known_count, known_wedges = visit.support(task)
            assert (count, wedges) == (known_count, known_wedges)
            assert all((mine == theirs).all() for mine, theirs in zip(supports, known, strict=True))
            assert [supports[0] is s for s in supports] == [known[0] is s for s in known]
            for limit in (0, 1, 7, count, count + 5):
                assert (device_visit.listing(device, task, limit) == visit.listing(task, limit)).all()
            known_places = joined(batches(task, 1 + count // 50))
            for size in (1 + count // 50, 7 + count // 20, count + 5):  # one and seven where triangles are few
                places = joined(device_visit.batches(device, task, size))
                assert all((mine == theirs).all() for mine, theirs in zip(places, known_places, strict=True))
            for block, values in zip((task.index, task.table), supports, strict=False):
                mine, theirs = (np.zeros((2, vertices + 1), np.int64) for _ in range(2))
                device_visit.add_ends(np, block, values, *mine)
                visit.add_ends(block, values, *theirs)
                assert (mine == theirs).all()


# on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize(("kernel", "reorder"), list(product(KERNELS_HERE, ("degree", "collective"))))
def test_pipeline_on_the_device(kernel, reorder):
    for name, edges, count in oracle.GRAPHS:
        found = dasktc.triangle_count(
            source_of(edges, parts=2), backend="cuda", method=Method(kernel=kernel, reorder=reorder), verify=1.0
        )
        assert (found.backend, found.triangles) == ("cuda", count), name


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", KERNELS_HERE)
@pytest.mark.parametrize("partition", EVERY_PARTITION, ids=str)
def test_every_way_on_the_device(partition, kernel):
    """With every order below 1,000 edges, and with one above."""
    for edges, orders in ((EDGES, EVERY_REORDER), (LARGER, ["degree"])):
        for reorder in orders:
            how = {"kernel": kernel, "reorder": reorder, **partition}
            found = dasktc.triangle_count(source_of(edges, parts=3), backend="cuda", verify=1.0, **keywords(**how))
            assert found.triangles == oracle.triangles(edges), how


@pytest.mark.gpu
@pytest.mark.parametrize(("parts", "splits"), [(1, 1), (2, 2)])
def test_visits_on_the_device(parts, splits):
    from dasktc.backends.cuda import backend as cuda

    for vertices, edges in ORIENTED.values():
        for task in tasks(edges, vertices, parts, splits):
            mine, known = device_visit.support(cuda.device(), moved(task)), visit.support(task)
            assert mine[1:] == known[1:]
            assert all((on_host(a) == b).all() for a, b in zip(mine[0], known[0], strict=True))
            assert (on_host(device_visit.listing(cuda.device(), moved(task), 50)) == visit.listing(task, 50)).all()
            known_places, places = joined(batches(task, 1)), joined(device_visit.batches(cuda.device(), moved(task), 7))
            assert all((mine == theirs).all() for mine, theirs in zip(places, known_places, strict=True))


@pytest.mark.gpu
def test_measures_on_the_device():
    named = [tuple(f"{'né'[v % 2]}{v}" for v in edge) for edge in EDGES]
    for edges, ids in ((EDGES, "int"), (named, "text")):
        graph, known = (dasktc.prepare(source_of(edges, ids), backend=name) for name in ("cuda", "cpu"))
        assert graph.triangles().equals(known.triangles())
        assert graph.edge_support().equals(known.edge_support())
        whole = known.triangle_list(None)
        assert graph.triangle_list(None).equals(whole)
        for limit in (1, 100):
            assert graph.triangle_list(limit).equals(known.triangle_list(limit))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("scale", "edges", "count"), [(12, 48400, 486234), (14, 213100, 2843668), (18, 3806602, 82704862)]
)
def test_kronecker_from_end_to_end_on_the_device(scale, edges, count):
    for options in ({}, {"partition": "hash2d", "parts": 3}, {"kernel": "trust"}):
        found = dasktc.triangle_count(kronecker(scale), backend="cuda", **keywords(**options))
        assert (found.edges, found.triangles) == (edges, count)


@pytest.mark.gpu
def test_arrays_of_the_device_stay_there():
    cupy = pytest.importorskip("cupy")
    from dasktc.backends import get_backend

    prepared = triangles.build(LocalExecutor(), kronecker(12), Options(backend="cuda"))
    (block,) = prepared._context.blocks.values()
    assert isinstance(block.columns, cupy.ndarray)
    assert isinstance(on_host(block.columns), np.ndarray)
    assert get_backend("cuda").memory() > 1 << 30


@pytest.mark.gpu
@pytest.mark.parametrize("protocol", ["tcp", "ucx"])
def test_local_cuda_cluster(protocol):
    pytest.importorskip("dask_cuda")
    if protocol == "ucx":
        pytest.importorskip("distributed_ucxx")
    with dasktc.cluster(backend="cuda", protocol=protocol) as client:
        assert client.scheduler.address.startswith(protocol)
        for options in ({"splits": 2}, {"partition": "hash2d", "parts": 2}):
            found = dasktc.triangle_count(kronecker(14, parts=4), client, backend="cuda", **keywords(**options))
            assert (found.backend, found.triangles) == ("cuda", 2843668)


@pytest.mark.gpu
@pytest.mark.parametrize("place", ["here", "workers"])
def test_dask_frames_have_cudf_partitions(place):
    cudf = pytest.importorskip("cudf")
    pytest.importorskip("dask_cudf")
    cut = dict(partition="hash2d", parts=2)
    expected = dasktc.prepare(kronecker(10), backend="cpu", **keywords(**cut)).oriented_edges(frame="pandas")
    options = {"workers": 1} if place == "workers" else {}
    with dasktc.prepare(kronecker(10), backend="cuda", **keywords(**cut, **options)) as graph:
        found = graph.oriented_edges()
        kinds = found.map_partitions(lambda part: pd.Series([type(part).__module__]), meta=pd.Series([], dtype="str"))
        whole = graph.client.compute(found).result() if graph.client else found.compute()
        modules = graph.client.compute(kinds).result() if graph.client else kinds.compute()
        assert isinstance(whole, cudf.DataFrame)
        assert all(module.startswith("cudf") for module in modules)
        pd.testing.assert_frame_equal(whole.to_pandas(), expected)


# estimates and updates


@pytest.mark.parametrize("options", [dict(partition="whole"), dict(partition="hash2d", parts=2)], ids=str)
def test_estimates_and_updates(emulated, options):
    rng = np.random.default_rng(4)
    add, remove = (
        pd.DataFrame(rng.integers(0, size, (rows, 2)), columns=["a", "b"]) for size, rows in ((320, 40), (256, 3000))
    )
    changes = []
    for backend in ("cuda", "cpu"):
        graph = dasktc.prepare(kronecker(8), backend=backend, **keywords(**options))
        counted = estimates._wedges(graph._context)
        sampled = estimates._sample(graph._context, counted, sum(counted.values()) // 3, 5)
        change = graph.update(add=add, remove=remove)
        assert int(change.graph.triangle_count(verify=1.0)) == int(graph.triangle_count()) + change.triangles
        assert change.graph.edge_support().support.sum() == 3 * int(change.graph.triangle_count())
        facts = change.triangles, change.vertices.to_dict(), change.graph.triangles().to_dict()
        # The one block of a device has its edges directed by rows, which repeat here.
        changes.append((None if options["partition"] == "whole" else sampled, *facts))
    assert changes[0] == changes[1]
    assert len(changes[0][2]) > 0
