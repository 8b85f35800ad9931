"""Workers that die while they count: SIGKILL to real processes, and the same exact number afterwards."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc import generate
from dasktc.answers.edge_support import SUM
from dasktc.api.count import build
from dasktc.counting import tasks as counting
from dasktc.counting.tasks import jobs
from dasktc.errors import ClusterError
from dasktc.executors.base import CPU
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.io.source import Source
from dasktc.options import Method, Options, RunOptions
from tests.support.keywords import keywords
from tests.support.processes import patience, until
from tests.support.slow_pipeline import tuned
from tests.support.tiers import some

GRAPH, TRIANGLES, EDGES = generate.kronecker(14, parts=6), 2_843_668, 213_100


@pytest.fixture
def mortal(cluster, client):
    """Two worker processes with nannies, which replace them."""
    return SimpleNamespace(cluster=cluster, client=client)


def pids(mortal):
    return [nanny.pid for nanny in mortal.cluster.workers.values() if nanny.pid]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all(mortal):
    """Kill every worker, and return when the scheduler has noticed."""
    known = set(mortal.client.ncores())
    for pid in pids(mortal):
        kill(pid)
    until(lambda: not known & set(mortal.client.ncores()))


@contextmanager
def killing(mortal, seed, kills):
    """Kill a random worker at random times, `kills` times in all; the first time soon, as some answers take 50 ms."""
    rng, over, killed = random.Random(seed), threading.Event(), []

    def strike():
        for number in range(kills):
            if over.wait(rng.uniform(0, 0.3 if number else 0.02)):
                return
            killed.append(rng.choice(until(lambda: pids(mortal))))
            kill(killed[-1])

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def prepared(mortal, **options):
    """The prepared graph, with results in the workers' memory: planned for 1 GB, which nothing enforces."""
    return build(DaskExecutor(mortal.client), GRAPH, Options(**{"memory": "1GB", **options}))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "parts"), [(0, 6), (1, 6), (2, 6), (3, 2), (4, 2)])
def test_a_source_that_is_read_again_may_give_its_rows_in_another_order(mortal, seed, parts):
    """As tables of a database do: borders of ranges are the same for all workers, before and after a death."""
    import dask.dataframe as dd

    def part(number):
        edges = np.random.default_rng(number).integers(0, 400, (18_000 // parts, 2)) ** 2 // 400
        return pd.DataFrame(edges, columns=["src", "dst"]).sample(frac=1, random_state=os.getpid() % 1000)

    triangles = int(dasktc.triangle_count(pd.concat([part(number) for number in range(parts)]), backend="cpu"))
    frame = dd.from_map(part, range(parts), meta=part(0).iloc[:0])
    with tuned(one_partition=1, task_bytes={"tcp": 0}), killing(mortal, seed, kills=2) as killed:
        result = dasktc.triangle_count(frame, mortal.client, run=RunOptions(distribute="always"))
    assert killed
    assert int(result) == triangles


@pytest.mark.parametrize(
    ("seed", "options"),
    some(
        [
            (0, {"partition": "hash2d", "parts": 3, "splits": 1}),
            (1, {"partition": "whole", "splits": 27}),
            (2, {"partition": "hash2d", "parts": 6, "splits": 1, "memory": "950KB"}),
        ],
        lambda seed, options: seed == 0,
    ),
    ids=str,
)
def test_the_count_is_exact_while_workers_die(mortal, seed, options):
    """Workers die more often than Dask forgives a task; also with little memory for copies of blocks."""
    with killing(mortal, seed, kills=6) as killed:
        result = prepared(mortal, **options).triangle_count(verify=0.1, seed=seed)
    assert killed
    assert (int(result), result.edges) == (TRIANGLES, EDGES)
    triples = 1 if options.get("partition") == "whole" else options.get("parts", 3) ** 3
    assert result.plan.tasks == (triples - result.plan.empty_triples) * result.plan.splits


@pytest.mark.parametrize(
    ("seed", "options"),
    [(1, {"partition": "hash2d", "parts": 3, "splits": 1}), (2, {"partition": "whole", "splits": 27})],
    ids=str,
)
@pytest.mark.slow
def test_only_what_died_is_counted_again(mortal, tmp_path, seed, options):
    """Every task records where it runs: all its runs but the last were on workers that were killed meanwhile."""
    graph = prepared(mortal, **options)
    rng, log, taken, killed = random.Random(seed), tmp_path / "log", {}, []
    strikes = rng.sample(range(1, 24), 3)
    calls = [
        (job, log, *(graph._context.blocks[p] for p in job.triple.places)) for job in jobs(graph.plan, "hub", "cpu")
    ]
    for record in graph._context.executor.map_unordered("count", counted_and_logged, calls):
        taken[str(record.job)] = record
        if len(taken) in strikes:
            killed.append(rng.choice(until(lambda: pids(mortal))))
            kill(killed[-1])
    assert sum(record.count.triangles for record in taken.values()) == TRIANGLES
    runs: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        job, _, pid = line.rpartition(" ")
        runs.setdefault(job, []).append(int(pid))
    again = [job for job, where in runs.items() if len(where) > 1]
    assert runs.keys() == taken.keys()
    assert killed
    assert all(set(where[:-1]) <= set(killed) for where in runs.values())
    assert all(taken[job].worker.endswith(f":{where[-1]}") for job, where in runs.items())
    assert len(again) <= 4 * len(killed)


def counted_and_logged(job, log, *blocks):
    with open(log, "a") as file:
        file.write(f"{job} {os.getpid()}\n")
    time.sleep(0.05)
    return counting._count(job, *blocks)


@pytest.mark.slow
def test_tasks_without_blocks_go_on_when_all_workers_die(mortal):
    """Their preferred workers are gone for good: new workers have other addresses."""
    done = []
    for number in DaskExecutor(mortal.client, patience(15)).map_unordered("alone", numbered, [(i,) for i in range(20)]):
        done.append(number)
        if len(done) in (2, 5, 9):
            kill_all(mortal)
    assert sorted(done) == list(range(20))


def numbered(number):
    time.sleep(0.1)
    return number


@pytest.mark.parametrize("stage", some(["plan", "count"], lambda stage: stage == "count"))
def test_all_workers_die_at_once(mortal, stage):
    """Everything that they held is made again, from the source on."""

    def strike(now, done, total):
        if now == stage and done == 0:
            kill_all(mortal)

    assert int(dasktc.triangle_count(GRAPH, mortal.client, progress=strike)) == TRIANGLES


@pytest.mark.slow
def test_workers_die_between_prepare_and_count(mortal):
    graph = prepared(mortal, partition="hash2d", parts=2)
    kill(pids(mortal)[0])
    assert int(graph.triangle_count()) == TRIANGLES
    kill_all(mortal)
    assert int(graph.triangle_count(verify=0.5)) == TRIANGLES


@pytest.mark.slow
@pytest.mark.parametrize("files", [False, True], ids=["in memory", "in files"])
def test_triangles_by_vertex_are_exact_while_workers_die(mortal, expected, tmp_path, files):
    """Sums that they held are made again; of files, those that were not written."""
    options, in_files = {"partition": "hash2d", "parts": 3, "splits": 2}, {"memory": "1GB", "work_dir": tmp_path}
    graph = (
        dasktc.prepare(GRAPH, mortal.client, **keywords(**options, **in_files))
        if files
        else prepared(mortal, **options)
    )
    with killing(mortal, seed=1, kills=4) as killed:
        found = graph.triangles()
    assert killed
    pd.testing.assert_series_equal(found, expected)


@pytest.fixture(scope="module")
def expected():
    return dasktc.prepare(GRAPH).triangles()


QUESTIONS = {
    "supports": lambda graph: graph.edge_support(frame="pandas"),
    "measures": lambda graph: graph.measures(),
    "list": lambda graph: graph.triangle_list(limit=10**6, frame="pandas"),
    "trusses": lambda graph: graph.truss(frame="pandas"),
    "cores": lambda graph: graph.core_number(),
    "triangle types": lambda graph: graph.triangle_types(graph.measures()["degree"] % 3),
    "oriented edges": lambda graph: graph.oriented_edges(frame="pandas"),
}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_exact_while_workers_die(mortal, question):
    ask = QUESTIONS[question]
    graph = prepared(mortal, partition="hash2d", parts=2, splits=2)
    with killing(mortal, seed=3, kills=2) as killed:
        found = ask(graph)
    assert killed
    known = ask(dasktc.prepare(GRAPH, method=Method(partition="hash2d", parts=2)))
    assert found.reset_index().equals(known.reset_index())


def keys_of(rows):
    ends = np.sort(np.asarray(rows, dtype="int64"), axis=1)
    return ends[:, 0] << 32 | ends[:, 1]


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 3])
def test_updates_are_exact_while_workers_die(mortal, shards):
    """While the update is made, and afterwards: every block of the new graph was on one of the workers."""
    rows, rng = pd.concat([part.read(CPU) for part in GRAPH.parts]).to_numpy(), np.random.default_rng(7)
    remove, add = rows[::50], rng.integers(0, 20_000, (400, 2))
    add = add[add[:, 0] != add[:, 1]]
    with tuned(least_shards=shards):
        graph = prepared(mortal, partition="hash2d", parts=2)
    with killing(mortal, seed=shards, kills=3) as killed:
        change = graph.update(add=add, remove=remove)
    assert killed
    assert change.graph.plan.shards == shards
    keys = np.union1d(np.setdiff1d(keys_of(rows), keys_of(remove)), keys_of(add))
    known = dasktc.prepare((keys >> 32, keys & (2**32 - 1)), backend="cpu")
    assert TRIANGLES + change.triangles == int(known.triangle_count())
    kill_all(mortal)
    assert int(change.graph.triangle_count(verify=0.5)) == int(known.triangle_count())
    pd.testing.assert_series_equal(change.graph.triangles(), known.triangles())


def weighted_rows():
    ends = pd.concat([part.read(CPU) for part in GRAPH.parts], ignore_index=True)
    return ends.assign(w=np.random.default_rng(1).integers(1, 9, len(ends)) / 8)


@pytest.mark.slow
@pytest.mark.parametrize("files", [False, True], ids=["in memory", "in files"])
def test_weights_and_directions_are_kept_and_used_while_workers_die(mortal, tmp_path, files):
    """Bit for bit: sums of floats are made in the order of the plan, however often a task runs."""
    keep = dict(
        weight="w", directed=True, duplicates="last", partition="hash2d", parts=2, splits=2, distribute="always"
    )
    place = dict(memory="1GB", work_dir=tmp_path) if files else {}
    frame, found = weighted_rows(), []
    for kills in (0, 3):
        with killing(mortal, seed=5, kills=kills) as killed:
            graph = dasktc.prepare(frame, mortal.client, **keywords(**keep, **place))
        with graph, killing(mortal, seed=6, kills=kills) as killed_later:
            found.append((graph.clustering("w", frame="pandas"), graph.triad_census()))
        assert bool(killed) == bool(killed_later) == bool(kills)
    pd.testing.assert_series_equal(found[0][0], found[1][0], check_exact=True)
    assert found[0][1] == found[1][1]
    here = dasktc.prepare(frame, weight="w", directed=True, duplicates="last", backend="cpu", threads=1)
    assert here.triad_census() == found[1][1]
    pd.testing.assert_series_equal(here.clustering("w"), found[1][0], rtol=1e-12)


@pytest.mark.slow
def test_a_visit_that_kills_every_worker_is_named(mortal):
    """It is the only task, so it is the one: Dask counts a death for all that the worker was given."""
    graph = prepared(mortal, partition="whole", splits=1)
    [job] = jobs(graph.plan, "trust", "cpu")
    calls = [(job, *(graph._context.blocks[place] for place in job.triple.places))]
    with pytest.raises(ClusterError, match=rf"4 workers died with task .*\({re.escape(str(job))}\): it, or another "):
        DaskExecutor(mortal.client, retries=0).fold_unordered("support", deadly_visit, calls, lambda _: [0], SUM)


def deadly_visit(job, *blocks):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_while_it_is_asked_does_not_answer(mortal, tmp_path):
    assert DaskExecutor(mortal.client).run_on_workers(first_to_die, tmp_path / "first") == ["alive"]


def first_to_die(file):
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return "alive"
    os.kill(os.getpid(), signal.SIGKILL)


class LostOnItsWay:
    """A result that ends its worker when it is pickled for sending."""

    def __reduce__(self) -> Any:
        os._exit(1)


def lost_then_failing(file):
    if not file.exists():
        file.touch()
        return LostOnItsWay()
    raise ValueError("made again, it fails")


def test_a_task_that_fails_after_its_first_result_was_lost_on_its_way_is_not_waited_for(mortal, tmp_path):
    """Dask never reports such a future."""
    executor = DaskExecutor(mortal.client)
    with pytest.raises(ValueError, match="made again, it fails"):
        executor.gather([executor.submit("plan", lost_then_failing, tmp_path / "first")])


@dataclass(frozen=True)
class DeadlyPart:
    """A part that ends its worker, like one that exceeds memory."""

    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(("retries", "deaths"), [(0, 4), (1, 5)])
def test_a_part_that_kills_every_worker_is_refused_in_one_line(mortal, retries, deaths):
    with pytest.raises(
        ClusterError, match=rf"^{deaths} workers died with task .*'read-.*: .*\(retries=\.\.\.\)$"
    ) as error:
        dasktc.triangle_count(Source("deadly", (DeadlyPart(),)), mortal.client, run=RunOptions(retries=retries))
    assert "\n" not in str(error.value)


@dataclass(frozen=True)
class Lives:
    """Ends the worker that runs it, the first so many times; a file counts these."""

    file: Path
    deaths: int

    def spend(self) -> None:
        with open(self.file, "a") as file:
            file.write("x")
        if self.file.stat().st_size <= self.deaths:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class UnluckyPart:
    """The edges of a triangle, read by a worker that is killed repeatedly."""

    lives: Lives
    upstream: None = None

    def read(self, backend: Any, upstream: Any = None) -> Any:
        self.lives.spend()
        return pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0]})


@pytest.mark.slow
def test_a_part_whose_worker_dies_six_times_is_read(mortal, tmp_path):
    part = UnluckyPart(Lives(tmp_path / "lives", 6))
    assert int(dasktc.triangle_count(Source("unlucky", (part,)), mortal.client)) == 1


COUNTING, REBUILDING = r"\('count-.*\) \(Triple\(.*\), split 0 of 1\)", r"\('_*(?!count)[a-z-]+-[0-9a-f]{8}', .*\)"


@pytest.mark.slow
def test_counting_tasks_whose_workers_die_six_times(mortal, tmp_path):
    """A task that keeps killing workers is named, or another of its worker's, because Dask counts deaths for each.

    That may be a task that makes something again that was lost with the worker.
    """
    graph = prepared(mortal, partition="hash2d", parts=2, splits=1)
    work = [
        (job, *(graph._context.blocks[place] for place in job.triple.places)) for job in jobs(graph.plan, "hub", "cpu")
    ]
    lives = Lives(tmp_path / "lives", 6)
    calls = [(job, lives if job == work[3][0] else None, *blocks) for job, *blocks in work]
    found = list(graph._context.executor.map_unordered("count", counted_by_the_unlucky, calls))
    assert sum(record.count.triangles for record in found) == TRIANGLES
    hopeless = [(job, Lives(tmp_path / "more", 100) if job == work[3][0] else None, *b) for job, *b in work]
    with pytest.raises(ClusterError, match=rf"^5 workers died with task ({COUNTING}|{REBUILDING}): it, or "):
        list(DaskExecutor(mortal.client, retries=1).map_unordered("count", counted_by_the_unlucky, hopeless))


def counted_by_the_unlucky(job, lives, *blocks):
    if lives is not None:
        lives.spend()
    return counting._count(job, *blocks)
