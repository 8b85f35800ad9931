"""Exact or refused: every way in which a count can go wrong must be noticed."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import statistics
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dask.sizeof import sizeof
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.api.progress import JsonLines
from dasktc.backends.csr import OrientedCSR, TaskCount
from dasktc.counting import tasks as counting
from dasktc.counting.statistics import CountStatistics
from dasktc.counting.tasks import Job, Record, check, jobs, verify_records
from dasktc.errors import CountError, DasktcError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Method
from dasktc.pipeline.planes import base
from dasktc.pipeline.stages import blocks as building
from dasktc.planning import scratch
from dasktc.planning.plan import Triple
from tests.support.keywords import keywords
from tests.support.oracle import complete, wheel
from tests.support.slow_pipeline import EVERY_KERNEL, block_of, changed, cpu, random_edges, skewed_edges, source_of

EDGES = skewed_edges(120, 900, 1)


@pytest.fixture(scope="module")
def graph():
    return dasktc.prepare(source_of(EDGES), method=Method(partition="hash2d", parts=2, splits=2))


@pytest.fixture(scope="module")
def records(graph):
    return graph.triangle_count()._records


@contextmanager
def kernels(change):
    """Kernels whose results are changed before they are returned: change(task, kernel, count)."""
    honest = cpu()
    lying = replace(honest, count=lambda task, kernel: change(task, kernel, honest.count(task, kernel)))
    with mock.patch.object(counting, "get_backend", return_value=lying):
        yield


def only(kernel, **wrong):
    """Change the results of one kernel only."""

    def change(task, name, count):
        return count._replace(**{f: getattr(count, f) + d for f, d in wrong.items()}) if name == kernel else count

    return change


# check()


def test_check_passes_what_is_right(graph, records):
    check(records, graph.plan, graph._context.prepared.graph.wedges)
    check(records[::-1], graph.plan, graph._context.prepared.graph.wedges)


@pytest.mark.parametrize("which", [0, 7, -1])
def test_a_lost_record_is_refused(graph, records, which):
    left = [record for record in records if record is not records[which]]
    with pytest.raises(CountError, match=r"15 counting tasks reported, 15 of them different, but 16 planned"):
        check(left, graph.plan, graph._context.prepared.graph.wedges)


def test_a_repeated_record_is_refused(graph, records):
    with pytest.raises(CountError, match=r"17 counting tasks reported, 16 of them different, but 16 planned"):
        check([*records, records[3]], graph.plan, graph._context.prepared.graph.wedges)


def test_a_record_in_another_s_place_is_refused(graph, records):
    """There are as many records as planned; where both tasks have no wedges, even the sums agree."""
    swapped = [*records[1:], records[1]]
    with pytest.raises(CountError, match=r"16 counting tasks reported, 15 of them different"):
        check(swapped, graph.plan, graph._context.prepared.graph.wedges)


@pytest.mark.parametrize("difference", [-1, 1, 10**6])
def test_wrong_wedges_are_refused_with_both_figures(graph, records, difference):
    wedges = graph._context.prepared.graph.wedges
    found = [*records[1:], replace(records[0], count=wrong(records[0].count, wedges=difference))]
    with pytest.raises(CountError, match=rf"handled {wedges + difference:,} wedges, but the degrees give {wedges:,}"):
        check(found, graph.plan, wedges)


def wrong(count, **differences):
    return count._replace(**{name: getattr(count, name) + d for name, d in differences.items()})


def test_a_wrong_known_answer_is_refused_with_both_figures():
    assert int(dasktc.triangle_count(source_of(complete(6), triangles=20))) == 20
    with pytest.raises(CountError, match=r"20 triangles counted, but 21 are known for a test"):
        dasktc.triangle_count(source_of(complete(6), triangles=21))


def test_every_job_of_the_plan_is_run_once(graph):
    work = jobs(graph.plan, "hub", "cpu")
    assert len(work) == len(set(work)) == graph.plan.tasks
    assert {(job.triple, job.split) for job in work} == {(t, s) for t in graph.plan.triples() for s in range(2)}
    assert {(job.splits, job.kernel, job.backend) for job in work} == {(2, "hub", "cpu")}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_has_ended_lies_evenly_among_the_splits(workers):
    """For each worker, any first part of its splits has their mean place, so its time predicts that of the others."""
    with dasktc.prepare(source_of(EDGES), method=Method(splits=60)) as whole:
        plan = replace(whole.plan, workers=workers)
    work = jobs(plan, "hub", "cpu")
    each = len(work) // workers
    for worker in range(workers):
        places = [job.split for job in work[worker * each : (worker + 1) * each]]
        means = [np.mean(places[:number]) for number in range(5, each + 1)]
        assert max(abs(mean - np.mean(places)) for mean in means) < 0.15 * plan.splits


# Damage on the way to the blocks


def without_a_column(block):
    """The block without one edge: the first edge of a wedge inside the block, if there is one."""
    degree = np.diff(block.offsets)
    place = next((p for p, column in enumerate(block.columns) if degree[column]), None)
    if place is None:
        return block
    offsets = block.offsets - (block.offsets > place)
    return replace(block, offsets=offsets, columns=np.delete(block.columns, place))


def with_a_column_changed(block):
    """The block with one edge changed to another target, so that the number of edges stays."""
    degree = np.diff(block.offsets)
    for place, column in enumerate(block.columns):
        other = np.flatnonzero(degree != degree[column])
        if len(other):
            columns = block.columns.copy()
            columns[place] = other[0]
            return replace(block, columns=columns)
    return block


def build_with(damage, place=(0, 0)):
    stack = building.stack

    def damaged(slabs, at, layout, backend):
        block = stack(slabs, at, layout, backend)
        return damage(block) if at == place else block

    return mock.patch.object(building, "stack", damaged)


@pytest.mark.parametrize("partition", [{"partition": "whole"}, {"partition": "hash2d", "parts": 2}])
@pytest.mark.parametrize("reorder", ["degree", "collective"])
def test_a_block_that_lost_an_edge_is_refused(partition, reorder):
    with (
        build_with(without_a_column),
        pytest.raises(CountError, match=r"block P\[0\]\[0\] holds [\d,]+ edges, the plan [\d,]+"),
    ):
        dasktc.triangle_count(source_of(EDGES), **keywords(reorder=reorder, **partition))


@pytest.mark.parametrize("partition", [{"partition": "whole"}, {"partition": "hash2d", "parts": 2}])
@pytest.mark.parametrize("damage", [without_a_column, with_a_column_changed])
def test_a_block_that_changes_after_it_was_built_is_refused(damage, partition):
    graph = dasktc.prepare(source_of(EDGES), **keywords(**partition))
    assert int(graph.triangle_count()) > 0
    blocks = {place: damage(block) for place, block in graph._context.blocks.items()}
    with pytest.raises(CountError, match=r"handled [\d,]+ wedges, but the degrees give [\d,]+"):
        changed(graph, blocks=blocks).triangle_count()


def test_a_block_in_another_s_place_is_refused():
    graph = dasktc.prepare(source_of(EDGES), method=Method(partition="hash2d", parts=2))
    blocks = dict(graph._context.blocks)
    blocks[0, 1], blocks[1, 0] = blocks[1, 0], blocks[0, 1]
    with pytest.raises(CountError):
        changed(graph, blocks=blocks).triangle_count()


def test_a_task_refuses_blocks_of_other_places():
    """Wedges are sums over index and stream, which a wrong table would not change."""
    graph = dasktc.prepare(source_of(EDGES), method=Method(partition="hash2d", parts=3))
    job = jobs(graph.plan, "hub", "cpu")[5]
    right = [graph._context.blocks[place] for place in job.triple.places]
    assert counting._count(job, *right).job == job
    for role, (i, j) in enumerate(job.triple.places):
        other = graph._context.blocks[i, (j + 1) % 3]
        with pytest.raises(CountError):
            counting._count(job, *right[:role], other, *right[role + 1 :])


@pytest.mark.parametrize("stage", ["keys_of", "distinct"])
def test_edges_lost_before_the_degrees_are_known_change_the_reported_edges(stage):
    """No later check can notice them; only the source's known answer and its duplicates reveal them."""
    honest = getattr(base, stage)
    with mock.patch.object(base, stage, lambda *args: honest(*args)[:-1]), pytest.raises(CountError):
        dasktc.triangle_count(source_of(complete(9), triangles=84), method=Method(partition="hash2d"))


# verify


@pytest.mark.parametrize("kernel", EVERY_KERNEL)
@pytest.mark.parametrize("field", ["triangles", "probes"])
def test_a_kernel_that_lies_is_caught(kernel, field):
    with kernels(only(kernel, **{field: 1})), pytest.raises(CountError) as error:
        dasktc.triangle_count(source_of(EDGES), method=Method(kernel=kernel), verify=1.0)
    text = str(error.value)
    assert "\n" not in text
    assert f"kernel {kernel} is wrong there" in text
    assert f"kernel={kernel!r}" not in text.split("count with")[1]
    assert "split" in text


@pytest.mark.parametrize("kernel", EVERY_KERNEL)
def test_a_kernel_that_lies_about_wedges_is_caught_without_verify(kernel):
    with kernels(only(kernel, wedges=1)), pytest.raises(CountError, match="wedges"):
        dasktc.triangle_count(source_of(EDGES), method=Method(kernel=kernel))


def test_wedges_that_are_wrong_in_two_tasks_and_right_in_sum_are_caught():
    def shifted(task, kernel, count):
        return count._replace(wedges=count.wedges + {0: 1, 1: -1}.get(task.split, 0) * (kernel == "hub"))

    with kernels(shifted):
        assert int(dasktc.triangle_count(source_of(EDGES))) > 0
        with pytest.raises(CountError, match="kernel hub is wrong"):
            dasktc.triangle_count(source_of(EDGES), verify=1.0)


def test_without_verify_a_lying_kernel_is_believed():
    """This is why `verify` exists: wedges alone do not reveal a wrong number of triangles."""
    honest = int(dasktc.triangle_count(source_of(EDGES)))
    with kernels(only("hub", triangles=1)):
        result = dasktc.triangle_count(source_of(EDGES))
    assert int(result) == honest + result.plan.tasks
    assert result.stats.verified == 0


@pytest.mark.parametrize(("share", "tasks"), [(0.0, 0), (1e-9, 1), (0.25, 4), (0.5, 8), (1.0, 16)])
def test_a_share_of_the_tasks_is_verified(graph, share, tasks):
    assert graph.triangle_count(verify=share).stats.verified == tasks


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf")])
def test_verify_is_a_share(graph, share):
    with pytest.raises(InputError, match="verify="):
        graph.triangle_count(verify=share)


def verified_jobs(graph, records, seed):
    """The jobs that `verify` chooses, in its order."""
    seen = []

    class Watched(LocalExecutor):
        def map_unordered(self, stage, function, calls):
            calls = list(calls)
            seen.extend(call[0].job for call in calls)
            return super().map_unordered(stage, function, calls)

    verify_records(Watched(), graph._context.blocks, records, 0.3, seed)
    return seen


@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_the_seed_alone_chooses_what_is_verified(seed, rng):
    """Results do not depend on the order in which tasks end on a cluster."""
    graph = dasktc.prepare(source_of(wheel(9)), method=Method(partition="hash2d", parts=2))
    records = graph.triangle_count()._records
    shuffled = rng.sample(records, len(records))
    assert set(verified_jobs(graph, shuffled, seed)) == set(verified_jobs(graph, records, seed))


def test_other_seeds_choose_others(graph, records):
    assert len({frozenset(verified_jobs(graph, records, seed)) for seed in range(10)}) > 5


# The result


def test_records_are_in_the_order_of_the_jobs(graph, records):
    assert [record.job for record in records] == sorted(jobs(graph.plan, "hub", "cpu"))


def test_tasks_frame_has_a_row_a_task(graph):
    result = graph.triangle_count()
    frame = result.tasks
    assert len(frame) == 16
    assert list(frame.columns) == ["index", "table", "stream", "split", *TaskCount._fields, "worker", "began", "ended"]
    assert frame["began"].min() == 0
    assert (frame["began"] <= frame["ended"]).all()
    assert (frame["triangles"].sum(), frame["wedges"].sum()) == (int(result), result.stats.wedges)
    assert set(frame["split"]) == {0, 1}


def test_to_dict_has_what_the_command_line_promises(graph):
    shown = json.loads(json.dumps(graph.triangle_count(verify=0.5).to_dict()))
    assert set(shown) >= {
        "triangles", "vertices", "edges", "loops_dropped", "duplicates_dropped", "backend", "workers", "kernel",
        "partition", "parts", "splits", "reorder", "seconds", "wedges", "probes", "max_collision",
        "time_imbalance", "space_imbalance", "edges_per_second",
    }  # fmt: skip
    stages = dict(shown["seconds"])
    assert set(stages) == {"read", "prepare", "count", "verify", "total"}
    assert stages.pop("total") >= sum(stages.values()) - 1e-3
    assert shown["tasks"] == 16


def test_the_result_of_an_empty_graph_is_whole(graph):
    result = dasktc.triangle_count(source_of([]), verify=1.0)
    shown = json.loads(json.dumps(result.to_dict()))
    assert (shown["triangles"], shown["vertices"], shown["edges"], shown["wedges"]) == (0, 0, 0, 0)
    assert "<table>" in result._repr_html_()
    assert "triangles" in repr(result)


def test_html_escapes_what_came_from_outside():
    result = dasktc.triangle_count(source_of(complete(4)))._replace(kernel="<b>")
    assert "<b>" not in result._repr_html_()


def fake_record(worker, seconds):
    job = Job(Triple((0, 0), (0, 0), (0, 0)), 0, 1, "hub", "cpu")
    return Record(job, TaskCount(0, 0, 0, 3, seconds), worker)


def statistics_of(graph, records, workers=1, **more):
    """The statistics of a count whose tasks reported these records."""
    return CountStatistics.of(records, TaskCount(0, 0, 0, 3, 0.0), graph.plan, workers, 2.0, **more)


def test_time_imbalance_is_busiest_over_least_busy(graph):
    found = [fake_record("a", 1.0), fake_record("b", 0.5), fake_record("a", 2.0)]
    assert statistics_of(graph, found, workers=2).time_imbalance == 6.0
    assert statistics_of(graph, found[:1]).time_imbalance == 1.0


def test_the_kernels_rate_is_that_of_the_busiest_worker(graph):
    found = [fake_record("a", 1.0), fake_record("b", 2.5), fake_record("a", 2.0)]
    stats = statistics_of(graph, found)
    assert (stats.kernel_seconds, stats.kernel_edges_per_second) == (3.0, graph.edges / 3)
    assert stats.edges_per_second == graph.edges / 2
    assert statistics_of(graph, [fake_record("a", 0.0)]).kernel_edges_per_second is None
    assert statistics_of(graph, []).kernel_seconds == 0.0


def test_a_resumed_count_has_no_times(graph):
    stats = statistics_of(graph, [fake_record("a", 1.0)], resumed=1, verified=2)
    assert (stats.time_imbalance, stats.kernel_seconds, stats.edges_per_second) == (None, None, None)
    assert (stats.kernel_edges_per_second, stats.resumed, stats.verified, stats.max_collision) == (None, 1, 2, 3)


@pytest.mark.parametrize("batch", [1, 2, 3, 10])
def test_counts_are_added_up_in_batches(batch):
    job = Job(Triple((0, 0), (0, 0), (0, 0)), 0, 1, "hub", "cpu")
    counts = [TaskCount(2**62, 1, 10, 3, 0.5), TaskCount(2**62, 2, 20, 7, 0.25), TaskCount(2**62, 3, 30, 5, 1.0)]
    found = counting.add_up(LocalExecutor(), [Record(job, count, "a") for count in counts], batch)
    assert found == (3 * 2**62, 6, 60, 7, 1.75)


def test_a_worker_that_did_nothing_is_no_balance(graph):
    """One of two workers ran everything: the balance is not 1.0."""
    assert statistics_of(graph, [fake_record("a", 1.0)], workers=2).time_imbalance != 1.0


# A prepared graph


def test_a_prepared_graph_is_counted_again_and_again(graph):
    first, second = graph.triangle_count(), graph.triangle_count(verify=0.5, seed=3)
    assert (int(first), first.stats.wedges, first.stats.probes) == (
        int(second),
        second.stats.wedges,
        second.stats.probes,
    )


def test_a_prepared_graph_is_counted_by_any_kernel(graph):
    results = [graph.triangle_count(kernel=kernel, verify=1.0) for kernel in EVERY_KERNEL]
    assert [result.kernel for result in results] == EVERY_KERNEL
    assert len({(int(result), result.stats.wedges) for result in results}) == 1
    with pytest.raises(InputError, match="kernel='fastest' does not exist"):
        graph.triangle_count(kernel="fastest")


def test_another_kernel_keeps_the_budget_too():
    """The plan's bytes are valid only for the kernel for which it was made."""
    edges = random_edges(40, 200, 2)
    with mock.patch.object(scratch, "scratch_bytes", lambda name, kernel, *_, **__: 10**6 * (kernel == "merge")):
        with pytest.raises(InputError):
            dasktc.triangle_count(source_of(edges), method=Method(kernel="merge", partition="whole"), memory="100kB")
        graph = dasktc.prepare(source_of(edges), method=Method(kernel="hub", partition="whole"), memory="100kB")
        with pytest.raises(InputError):
            graph.triangle_count(kernel="merge")


def test_progress_says_every_stage_in_order():
    said = []
    dasktc.triangle_count(
        source_of(EDGES), verify=1.0, method=Method(splits=3), progress=lambda *step: said.append(step)
    )
    stages = list(dict.fromkeys(stage for stage, _, _ in said))
    assert stages == ["read", "canonical", "orient", "reorder", "plan", "blocks", "count", "sum", "verify"]
    assert [step for step in said if step[0] == "count"] == [("count", done, 3) for done in range(4)]


def test_a_result_is_its_number(graph, capsys):
    result = graph.triangle_count()
    number = int(result)
    assert type(number) is int
    assert type(result + 1) is int
    assert result == number == result.triangles
    assert result != number + 1
    assert number - 1 < result < number + 1
    assert hash(result) == hash(number)
    assert f"{result:,}|{result}" == f"{number:,}|{number}"
    assert json.loads(json.dumps({"triangles": result})) == {"triangles": number}
    assert np.asarray([result, 1]).tolist() == [number, 1]
    assert np.asarray(result).dtype == np.int64
    assert str(result) == f"{number}"
    assert repr(result).startswith(f"triangles  {number:,}\nvertices   ")
    assert result.summary() is None
    assert capsys.readouterr().out == f"{result!r}\n"
    for same in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert (type(same), same, same.plan, same.stats) == (type(result), result, result.plan, result.stats)
    assert str(number) in result._repr_html_().replace(",", "")


STATISTICS = (
    *("mean", "fmean", "geometric_mean", "harmonic_mean", "median", "median_low", "mode", "quantiles"),
    *("pstdev", "pvariance", "stdev", "variance"),
)


@pytest.mark.parametrize("others", [[], [1], [True], [0.5], [Fraction(1, 3)], [Decimal(7)]], ids=repr)
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_results_are_those_of_integers(name, others):
    """Also integral results, which the standard library converts to the type of the numbers."""
    results = [dasktc.triangle_count(source_of(complete(size))) for size in (4, 5, 5)]
    function, numbers = getattr(statistics, name), [int(result) for result in results]

    def answer(data):
        try:
            value = function(data)
        except TypeError as error:  # a Decimal beside integers is refused by some
            return str(error)
        return int(value) if isinstance(value, dasktc.TriangleCount) else value

    assert repr(answer([*results, *others])) == repr(answer([*numbers, *others]))
    assert repr(answer(results[1:])) == repr(answer(numbers[1:]))


def test_other_libraries_take_a_result_for_an_integer():
    result = dasktc.triangle_count(source_of(complete(5)))
    assert not dataclasses.is_dataclass(result)  # Polars makes a struct of one
    assert pd.Series([result, result]).dtype == pd.DataFrame({"triangles": [result]})["triangles"].dtype == np.int64
    assert pa.array([result]).type == pa.int64()
    for number in (type(result)(5), type(result).from_bytes(b"\x05", "big"), type(result)(Fraction(5)), round(result)):
        assert type(number) is int
    assert Fraction(result, 4) == Fraction(5, 2)
    assert (math.isqrt(result), math.gcd(result, 4), divmod(result, 3), list(range(result))[-1]) == (3, 2, (3, 1), 9)
    same = getattr(copy, "replace", type(result)._replace)(result, backend="none")  # of Python from 3.13 on
    assert (same, same.backend, same.plan) == (result, "none", result.plan)


def test_a_count_beyond_64_bits_is_its_number(graph):
    large = graph.triangle_count()._replace(triangles=2**70 + 1)
    assert large == 2**70 + 1
    assert pickle.loads(pickle.dumps(large)) - 1 == 2**70


def test_a_graph_says_what_it_holds(capsys):
    with dasktc.prepare(source_of(EDGES), method=Method(partition="hash2d", parts=2)) as graph:
        held = f"{graph.edges:,}"
        assert str(graph).startswith(f"Graph(vertices={graph.vertices}, edges={graph.edges}, hash2d, ")
        assert "in this process" in str(graph)
        assert "in this process" in repr(graph)
        assert held in repr(graph)
        assert graph.summary() is None
        assert capsys.readouterr().out == f"{graph!r}\n"
        assert held in graph._repr_html_()
    assert str(graph) == "Graph(closed)"
    assert "\n" not in repr(graph)
    assert "closed" in graph._repr_html_()


@pytest.mark.parametrize("closed", ["client", "cluster"])
def test_a_graph_whose_cluster_is_gone_says_so(closed):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        graph = dasktc.prepare([(0, 1), (1, 2), (2, 0)], client)
        assert cluster.scheduler_address in repr(graph)
        {"client": client, "cluster": cluster}[closed].close()
        for text in (repr(graph), str(graph), graph._repr_html_()):
            assert "3" in text
            assert "a cluster that is gone" in text


def test_only_public_names_are_listed():
    assert set(dir(dasktc)) == {*dasktc.__all__, "datasets", "generate", "__version__"}
    count = "import dasktc; print(dasktc.generate.kronecker(3).name)"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kronecker scale 3")


def test_progress_is_shown(capsys):
    for count in (
        lambda **more: dasktc.triangle_count(source_of(EDGES), **keywords(**more)),
        dasktc.prepare(source_of(EDGES)).triangle_count,
    ):
        number = count(progress=False)
        assert capsys.readouterr().err == ""
        assert count(progress=True) == number
        assert "count" in capsys.readouterr().err
    with pytest.raises(InputError, match="progress='yes' cannot be called: pass True"):
        dasktc.triangle_count(source_of(EDGES), progress="yes")


def test_progress_as_lines_of_json(capsys):
    dasktc.triangle_count(source_of(EDGES), method=Method(splits=3), progress=JsonLines())
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    said = [(event["stage"], event["event"], event["done"], event["total"]) for event in events]
    assert said[:2] == [("run", "begun", 0, 1), ("read", "begun", 0, 1)]
    assert ("count", "ended", 3, 3) in said
    assert said[-1] == ("run", "ended", 1, 1)
    assert events[-1]["triangles"] == int(dasktc.triangle_count(source_of(EDGES)))


def test_errors_of_tasks_are_those_of_the_user():
    """An error raised by a part reaches the caller unchanged."""
    from dasktc.io.source import Source

    class Broken:
        upstream = None

        def read(self, backend, upstream=None):
            raise InputError("line 3 of x.txt holds nothing")

    with pytest.raises(DasktcError, match=r"line 3 of x\.txt"):
        dasktc.triangle_count(Source("broken", (Broken(),)))


# A task by hand


def test_a_task_by_hand():
    """K4 in degree order, as one block and cut in two splits."""
    block = block_of([[], [0], [0, 1], [0, 1, 2]])
    for kernel in EVERY_KERNEL:
        for splits in (1, 2, 5):
            found = [counting._count(Job(WHOLE, s, splits, kernel, "cpu"), block, block, block) for s in range(splits)]
            assert (sum(r.count.triangles for r in found), sum(r.count.wedges for r in found)) == (4, 4)
            assert isinstance(found[0].count, TaskCount)
            assert all(r.count.seconds >= 0 for r in found)


WHOLE = Triple((0, 0), (0, 0), (0, 0))


def test_blocks_know_their_size():
    block = block_of([[1, 2], [], [0]])
    assert isinstance(block, OrientedCSR)
    assert (block.rows, block.edges, block.nbytes) == (3, 3, 4 * 8 + 3 * 4)
    many = OrientedCSR(np.zeros(1001, "int64"), np.zeros(1000, "int32"), members=np.zeros(500, "int32"))
    assert 0 <= sizeof(many) - (8 * 1001 + 4 * 1000 + 4 * 500) < 1000, "what Dask goes by"
