"""Counts that exceed `--memory`: the same numbers, within the budget, and no files left behind."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from unittest import mock

import dask.dataframe as dd
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.api.opener import as_source
from dasktc.backends import get_backend
from dasktc.counting.checkpoint import FILE
from dasktc.errors import InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores import value_files as spill
from dasktc.executors.stores.claims import LOCK
from dasktc.executors.stores.file_store import LEAST, FileStore
from dasktc.executors.stores.shared_file_store import SharedFileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.io.write import write_edges
from dasktc.options import Method, Options, RunOptions
from tests.support.keywords import keywords
from tests.support.oracle import (
    complete,
    messy,
    multigraphs,
    support,
    text_multigraphs,
    triangles,
    triangles_per_vertex,
)
from tests.support.processes import lines, patience, until
from tests.support.retuned import retuned
from tests.support.slow_pipeline import EVERY_PARTITION, EVERY_REORDER, random_edges, skewed_edges, source_of
from tests.support.tiers import some

KRONECKER_16, KRONECKER_18 = 15_673_792, 82_704_862
ROOMY = "1GB"


@contextmanager
def on_disk(folder, budget, kept=0):
    """An executor that keeps `kept` bytes of results in memory, and cuts partitions for a tiny budget."""
    tasks = LocalExecutor(FileStore(WorkDir(folder), budget, small=1))
    tasks.store._limit = kept
    yield tasks
    tasks.close()


def facts(result):
    dropped = result.loops_dropped, result.duplicates_dropped
    counts = sorted((record.job, record.count[:4]) for record in result._records)
    return int(result), result.vertices, result.edges, *dropped, result.stats.wedges, counts


# The same numbers


@pytest.mark.parametrize("reorder", some(EVERY_REORDER, lambda reorder: reorder == "degree"))
@given(
    edges=st.one_of(multigraphs(max_edges=90), text_multigraphs(max_edges=90)),
    kept=st.sampled_from([0, 300, 10**6]),
    partition=st.sampled_from(EVERY_PARTITION),
    mapped=st.sampled_from([1, 1 << 20]),
)
@example(edges=messy(complete(9)), kept=0, partition=EVERY_PARTITION[-1], mapped=1)
@example(edges=messy(complete(20)), kept=0, partition=EVERY_PARTITION[0], mapped=1)
@settings(max_examples=settings.default.max_examples // 3)
def test_any_multigraph_gives_what_it_gives_in_memory(tmp_path_factory, reorder, edges, kept, partition, mapped):
    """Every result, or some of them, are in files; a partition has at most 75 edges, a frame 18 rows."""
    ids = "text" if edges and isinstance(edges[0][0], str) else "int"
    source, options = source_of(edges, ids, parts=3), Options(memory=ROOMY, reorder=reorder, **partition)
    plain = build(LocalExecutor(), source, options)
    expected = plain.triangle_count(verify=1.0)
    with mock.patch.object(spill, "MAPPED", mapped), on_disk(tmp_path_factory.mktemp("work"), 4_000, kept) as tasks:
        graph = build(tasks, source, options)
        assert facts(graph.triangle_count(verify=1.0)) == facts(expected)
        assert int(expected) == triangles(edges)
        assert graph.triangles().to_dict() == triangles_per_vertex(edges)
        assert [frozenset(row) for row in graph.triangle_list().to_numpy().tolist()] == [
            frozenset(row) for row in plain.triangle_list().to_numpy().tolist()
        ]
        found = retuned(graph, frame_bytes=1).edge_support()
        assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == support(edges)
        graph._context.counted.by_vertex = None  # they are added up from the edges' now
        assert graph.triangles().to_dict() == triangles_per_vertex(edges)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ids", "options"),
    some(
        [("int", {"partition": "hash2d", "parts": 2, "splits": 2}), ("text", {})],
        lambda ids, options: ids == "text" and not options,
    ),
    ids=str,
)
def test_workers_that_share_a_disk_give_the_same(client, tmp_path, options, ids):
    edges = skewed_edges(60, 700, 7)
    if ids == "text":
        edges = [(str(u), str(v)) for u, v in edges]
    source, chosen = source_of(edges, ids, parts=3), Options(memory=ROOMY, **options)
    expected = build(LocalExecutor(), source, chosen).triangle_count()
    tasks = DaskExecutor(client, store=SharedFileStore(WorkDir(tmp_path), 40_000, small=1))
    graph = build(tasks, source, chosen)
    result = graph.triangle_count(verify=0.5)
    assert facts(result)[:6] == facts(expected)[:6]
    (folder,) = tmp_path.iterdir()
    graph.triangles()  # the map of the ids and their order are made when somebody asks, and kept
    before = len(os.listdir(folder))
    assert graph.triangles().to_dict() == triangles_per_vertex(edges)
    assert len(os.listdir(folder)) <= before + 3 + 3, "a sum a side and three results: what was added up is gone"
    found = graph.edge_support()
    assert isinstance(found, dd.DataFrame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask.base.get_scheduler", lambda *args, **kwargs: client.get)
        computed = found.compute()
    assert {frozenset(row[:2]): row[2] for row in computed.itertuples(index=False)} == support(edges)
    graph._context.counted.by_vertex = None  # they are added up from the edges' now
    assert graph.triangles().to_dict() == triangles_per_vertex(edges)
    assert len(graph.triangle_list()) == triangles(edges)
    assert len(os.listdir(tmp_path)) == 1
    tasks.close()
    assert os.listdir(tmp_path) == []


def test_a_file_per_frame_of_edges(tmp_path):
    edges = random_edges(60, 900, 3)
    with on_disk(tmp_path, 20_000) as tasks:
        from dasktc.reports.outputs import Outputs

        graph = build(tasks, source_of(edges, parts=2), Options(memory=ROOMY))
        outputs = Outputs(per_vertex=tmp_path / "v.csv", per_edge=tmp_path / "e.parquet")
        outputs.write(graph._context, graph.triangle_count())
    assert (tmp_path / "e.parquet").is_dir()
    found = pd.read_parquet(tmp_path / "e.parquet")
    assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == support(edges)
    assert pd.read_csv(tmp_path / "v.csv").set_index("vertex")["triangles"].to_dict() == triangles_per_vertex(edges)


def test_a_dask_dataframe_is_computed_a_partition_at_a_time(tmp_path):
    edges, held = random_edges(50, 600, 5), []

    def made(part):
        held.append(len(os.listdir(tmp_path)))
        return part

    frame = dd.from_pandas(pd.DataFrame(edges, columns=["a", "b"]), npartitions=4)
    frame = frame.map_partitions(made, meta=frame._meta)
    with on_disk(tmp_path, 20_000) as tasks:
        assert int(build(tasks, as_source(frame), Options(memory=ROOMY)).triangle_count()) == triangles(edges)
    assert len(held) == 4


def test_what_fits_is_never_written(tmp_path):
    source = source_of(skewed_edges(300, 5_000, 2), parts=4)
    with mock.patch.object(FileStore, "write", side_effect=AssertionError("it fits")):
        result = dasktc.triangle_count(source, memory=ROOMY, run=RunOptions(work_dir=tmp_path))
    plain = dasktc.triangle_count(source)
    assert facts(result)[:6] == facts(plain)[:6]
    assert os.listdir(tmp_path) == []


# The budget

MEASURED = """
import gc, json, sys
import dasktc
from dasktc.bench.measure import forget_peak, peak_bytes, resident_bytes

path, small, out, options = sys.argv[1:4] + [json.loads(sys.argv[4])]
ask, memory, place = (options.pop(name, None) for name in ("ask", "memory", "work_dir"))
how = {"memory": memory, "method": dasktc.Method(**options), "run": dasktc.RunOptions(work_dir=place)}

def run(path, out):
    outputs = {ask: out} if ask and ask.startswith("per_") else {}
    if ask and not outputs:
        return len(dasktc.prepare(path, **how).triangle_list(limit=1000))
    result = dasktc.triangle_count(path, **how, **outputs)
    return [int(result), result.plan.parts]

run(small, out + "-small.parquet")
gc.collect()
before = resident_bytes()
forget_peak()
print(json.dumps([run(path, out + ".parquet"), peak_bytes() - before]))
"""


@pytest.fixture(scope="module")
def kronecker(tmp_path_factory):
    """Files with a graph of scale 18, in row groups of a million, and one of scale 10."""
    folder = tmp_path_factory.mktemp("graphs")
    for scale in (10, 18):
        write_edges(generate.kronecker(scale), folder / f"{scale}.parquet", LocalExecutor())
    return [str(folder / f"{scale}.parquet") for scale in (18, 10)]


def measured(kronecker, folder, **options):
    """Results of a run in a process of its own, and the bytes that it took beside the interpreter and libraries."""
    command = [sys.executable, "-c", MEASURED, *kronecker, str(folder / "out"), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured and forgotten through /proc")
def test_a_count_keeps_a_quarter_and_a_seventh_of_the_memory_it_would_take(kronecker, tmp_path):
    in_memory, needed = measured(kronecker, tmp_path)
    assert in_memory == [KRONECKER_18, 1]
    for share, more_parts in ((4, False), (7, True)):
        memory = max(LEAST, needed // share)
        (found, parts), peak = measured(kronecker, tmp_path, memory=memory, work_dir=str(tmp_path))
        assert found == KRONECKER_18
        assert peak < memory
        assert parts > 1 or not more_parts
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured and forgotten through /proc")
@pytest.mark.parametrize(
    "options",
    some(
        [{"partition": "hash2d", "parts": 2}, {"partition": "edges", "memory": 40_000_000},
         {"partition": "vertical", "parts": 13, "memory": 40_000_000},
         {"partition": "proxy", "parts": 6, "memory": 64_000_000},
         {"ask": "per_edge", "reorder": "collective", "memory": 48_000_000}, {"ask": "list"}],
        lambda options: options.get("partition") == "hash2d",
    ),
    ids=str,
)  # fmt: skip
def test_every_way_keeps_the_budget(kronecker, tmp_path, options):
    memory = options.get("memory", 36_000_000)
    found, peak = measured(kronecker, tmp_path, **({"memory": memory} | options))
    assert found == 1000 if options.get("ask") == "list" else found[0] == KRONECKER_18
    assert peak < memory


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured and forgotten through /proc")
def test_text_ids_keep_the_budget(tmp_path):
    paths = []
    for scale in (16, 10):
        frame = get_backend("cpu").read(generate.kronecker(scale, parts=1).parts[0], None)
        paths.append(str(tmp_path / f"{scale}.txt"))
        frame.map("user-{}".format).to_csv(paths[-1], sep="\t", header=False, index=False)
    found, peak = measured(paths, tmp_path, memory=24_000_000)
    assert found[0] == KRONECKER_16
    assert peak < 24_000_000


ON_WORKERS = """
import json, sys
from contextlib import contextmanager

import dasktc
from dasktc.bench.measure import forget_peak, peak_bytes, resident_bytes
from dasktc.bench.pipeline import _warm
from dasktc.io.generators.synthetic import kronecker
from dasktc.api.opener import as_source

@contextmanager
def given(number, threads):
    from distributed import Client, LocalCluster
    where = {"n_workers": number, "threads_per_worker": threads, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**where) as cluster, Client(cluster, set_as_default=False) as client:
        yield client

def rows(number):
    from dasktc.backends import get_backend
    return kronecker(18, parts=40).parts[number].read(get_backend("cpu")).astype("int64")

def frame(parts):
    import dask.dataframe as dd
    return dd.from_map(rows, range(parts), meta=rows(0).iloc[:0])

if __name__ == "__main__":
    path, tiny, workers, options = *sys.argv[1:3], *map(json.loads, sys.argv[3:])
    framed = options.pop("frame", False)
    with given(*workers) as client:
        client.run(_warm, as_source(tiny))  # then every stage, in every process
        first = frame(8) if framed else kronecker(12, parts=8)
        dasktc.triangle_count(first, client, method=dasktc.Method(parts=3), **options)
        before = client.run(resident_bytes)
        client.run(forget_peak)
        result = dasktc.triangle_count(frame(40) if framed else path, client, **options)
        peaks = client.run(peak_bytes)
    print(json.dumps([int(result), result.plan.parts, max(peaks[worker] - before[worker] for worker in peaks)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured and forgotten through /proc")
@pytest.mark.parametrize(
    ("workers", "options"), [([2, 1], {"memory": 28_000_000, "frame": True})], ids=["a Dask DataFrame of 67 MB"]
)
def test_every_worker_keeps_the_budget(kronecker, tmp_path, workers, options):
    """Without --work-dir, files are where Dask's own are, which all workers of one machine see."""
    program, work = tmp_path / "program.py", tmp_path / "work"
    program.write_text(ON_WORKERS)  # workers import it
    work.mkdir()
    command = [sys.executable, str(program), *kronecker, json.dumps(workers), json.dumps(options)]
    there = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(work)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(), env=there)
    assert done.returncode == 0, done.stderr
    triangles, parts, peak = json.loads(done.stdout)
    assert (triangles, parts) == (KRONECKER_18, 3)
    assert peak < options["memory"]
    assert not [name for name in os.listdir(work) if name.startswith("dasktc-")]


@pytest.mark.slow
def test_workers_that_die_lose_no_file_that_counts(cluster, client, tmp_path):
    """Random workers are killed repeatedly; results that they had not written are made again."""
    over, killed, rng = threading.Event(), [], random.Random(5)

    def strike():
        while len(killed) < 5 and not over.wait(rng.uniform(0.1, 0.5)):
            alive = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            if alive:
                killed.append(rng.choice(alive))
                with suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    options = {"partition": "hash2d", "parts": 3, "memory": "20MB", "work_dir": tmp_path}
    try:
        result = dasktc.triangle_count(generate.kronecker(14, parts=6), client, **keywords(**options))
    finally:
        over.set()
        striking.join()
    assert killed
    assert int(result) == 2_843_668
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("partition", some(["whole", "edges"], lambda partition: partition == "whole"))
def test_what_must_be_whole_is_refused_with_figures(kronecker, tmp_path, partition):
    with pytest.raises(InputError, match=rf"{partition} at n = 1 needs 2\d.* MB .*, more than the 15.8 MB") as error:
        dasktc.triangle_count(
            kronecker[0], memory="20MB", method=Method(partition=partition), run=RunOptions(work_dir=tmp_path)
        )
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == []


def test_metis_is_refused_with_figures(kronecker):
    pytest.importorskip("pymetis")
    with pytest.raises(
        InputError, match=r"assign='metis' takes 457 MB, more than the 23.9 MB .* method=Method\(assign='random'\)"
    ):
        dasktc.triangle_count(kronecker[0], memory="36MB", method=Method(partition="proxy", parts=4, assign="metis"))


def test_a_frame_of_all_edges_is_refused_with_figures(kronecker):
    graph = dasktc.prepare(kronecker[0], memory="36MB")
    with pytest.raises(InputError, match=r"3,806,602 edges takes 381 MB .* more than the 23.9 MB .* per_edge"):
        graph.edge_support()


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["20MB", "1GB"])
def test_the_plan_is_that_of_the_count(kronecker, memory):
    plan = dasktc.plan(kronecker[0], memory=memory).plan
    assert plan == dasktc.triangle_count(kronecker[0], memory=memory).plan
    sized = dasktc.plan(vertices=plan.vertices, edges=plan.edges, memory=memory, method=Method(parts=plan.parts)).plan
    assert sized.memory == plan.memory
    assert sized.bytes_per_task <= plan.bytes_per_task <= 1.5 * sized.bytes_per_task


# What is left behind


def command(graph, work, *more):
    place = ["--work-dir", str(work), "--quiet"]
    return [sys.executable, "-m", "dasktc", "count", str(graph), "--memory", "20MB", *place, *more]


HEARING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs do not hear it
from dasktc.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def ended(running):
    """False while it runs; if a program has ended too early, its output is shown."""
    assert running.poll() is None, running.stderr.read()
    return False


@contextmanager
def counting(graph, work, *more):
    """A count with files in its work directory, in a session of its own, as a terminal starts it."""
    arguments = [sys.executable, "-c", HEARING, *command(graph, work, *more)[3:]]
    pipes, there = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}, os.environ | {"TMPDIR": str(work / "mine")}
    running = subprocess.Popen(arguments, text=True, start_new_session=True, env=there, **pipes)
    try:
        until(lambda: ended(running) or any(set(os.listdir(folder)) - {LOCK} for folder in work.glob("dasktc-*")))
        yield running
    finally:
        running.kill()
        running.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "more"),
    some(
        [(signal.SIGINT, []), (signal.SIGTERM, []), (signal.SIGHUP, []), (signal.SIGTERM, ["--workers", "2"])],
        lambda number, more: number == signal.SIGHUP and not more,
    ),
    ids=str,
)
def test_a_count_that_is_ended_leaves_nothing(kronecker, tmp_path, number, more):
    """No files, also none in the folders of Dask's workers, which a closing terminal signals as well."""
    (tmp_path / "mine").mkdir()
    with counting(kronecker[0], tmp_path, "--kernel", "merge", *more) as running:
        os.killpg(running.pid, number) if number == signal.SIGHUP else running.send_signal(number)
        out, err = running.communicate(timeout=patience())
        assert (running.returncode, out, err.count("\n")) == (128 + number, "", 2 * (number == signal.SIGINT))
    assert os.listdir(tmp_path) == ["mine"]
    assert not [path for path in (tmp_path / "mine").rglob("*") if path.suffix != ".lock" and path.is_file()]


@pytest.mark.slow
def test_a_count_that_is_killed_goes_on_from_its_checkpoint(kronecker, tmp_path):
    """It does not need its old work directory, which it could not remove and the next run removes."""
    work, kept = tmp_path / "work", tmp_path / "kept"
    (work / "mine").mkdir(parents=True)
    more = ["--parts", "4", "--kernel", "merge", "--checkpoint", str(kept)]
    with counting(kronecker[0], work, *more) as running:
        until(lambda: ended(running) or lines(kept / FILE) >= 10)
        running.kill()
    assert len(os.listdir(work)) == 2
    assert sorted(os.listdir(tmp_path)) == ["kept", "work"]
    done = subprocess.run(command(kronecker[0], work, *more[:4], "--json", *more[4:]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["triangles"] == KRONECKER_18
    assert found["resumed"] >= 9
    assert os.listdir(work) == ["mine"]


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
from dasktc.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("more", some([[], ["--workers", "1"]], lambda more: not more), ids=str)
def test_a_disk_that_takes_no_more_is_said_in_one_line(kronecker, tmp_path, more):
    arguments = command(kronecker[0], tmp_path, *more)[3:]
    done = subprocess.run([sys.executable, "-c", FULL, *arguments], capture_output=True, text=True, timeout=patience())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"error: work directory {tmp_path}" in done.stderr
    assert "File too large; choose one that can be written" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_none_is_refused_before_anything_is_read(tmp_path):
    done = subprocess.run(command("no-such-graph", tmp_path / "none"), capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--work-dir" in done.stderr


@pytest.mark.slow
def test_a_prepared_graph_holds_its_files_and_they_go_with_it(kronecker, tmp_path):
    graph = dasktc.prepare(kronecker[0], memory="20MB", run=RunOptions(work_dir=tmp_path))
    assert int(graph.triangle_count()) == int(graph.triangle_count(kernel="trust")) == KRONECKER_18
    assert len(os.listdir(tmp_path)) == 1
    del graph
    assert os.listdir(tmp_path) == []
