"""The plumbing of `dasktc bench cpu`: every row exists and counts are compared; nothing is timed."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.api.opener import as_source
from dasktc.backends.cpu import hub_tables
from dasktc.bench import cpu, others, tables, ways
from dasktc.bench.kernels import HAND, OURS, Inputs
from dasktc.bench.measure import StageMeter, forget_peak, in_fresh_process, peak_bytes, resident_bytes
from dasktc.bench.pipeline import ClusterRun
from dasktc.bench.report import Report, Section
from dasktc.bench.tables import Measured
from dasktc.bench.turns import Turn, take_turns
from dasktc.bench.ways import Way
from dasktc.errors import CountError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Options
from tests.support.oracle import messy, multigraphs, triangles, wheel
from tests.support.processes import fork_workers

FAKE_TC = f"""#!{sys.executable}
import sys
import numpy as np
if "-h" in sys.argv:
    print(" -f <file>   : load graph from file")
    raise SystemExit
data = open(sys.argv[sys.argv.index("-f") + 1], "rb").read()
edges, vertices = np.frombuffer(data[1:17], "int64")
offsets = np.frombuffer(data[17 : 25 + 8 * vertices], "int64")
columns = np.frombuffer(data[25 + 8 * vertices :], "int32")
assert data[0] == 0 and offsets[0] == 0 and offsets[-1] == edges == len(columns)
dense = np.zeros((vertices, vertices), "int64")
for u in range(vertices):
    row = columns[offsets[u] : offsets[u + 1]]
    assert (np.diff(row) > 0).all()
    dense[u, row] = 1
print(np.trace(dense @ dense @ dense) // 6, "triangles")
"""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    for name, step in (("dense", 1), ("far apart", 10**8)):
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.writelines(f"{step * u} {step * v}\n" for u, v in messy(wheel(9)))
    return folder


@pytest.fixture(scope="module")
def report(graphs: Path) -> Iterator[Report]:
    """The report with all measurements, made in a single process because starting one for each takes long."""
    files = {name: (f"{name}.csv.gz", 9, name == "far apart") for name in ("dense", "far apart", "absent")}
    with pytest.MonkeyPatch.context() as patch, ProcessPoolExecutor(1, get_context("spawn"), fork_workers) as pool:
        patch.setattr(cpu, "FILES", files)
        patch.setattr(cpu, "in_fresh_process", lambda *args, **kwargs: pool.submit(*args, **kwargs).result())
        yield cpu.run(quick=True, graphs=str(graphs))


def rows(report: Report, title: str) -> list[dict[str, Any]]:
    (found,) = (s for s in report.to_dict()["sections"] if s["title"].startswith(title))
    return found["rows"]


@pytest.mark.slow
def test_all_kernels_and_the_marker_are_measured(report: Report):
    found = {row["counter"] for row in rows(report, "One thread, the count")}
    assert found >= {"dasktc reorder + count", HAND.name, "igraph", *(counter.name for counter in OURS)}


@pytest.mark.slow
def test_the_known_number_of_triangles_is_shown(report: Report):
    assert "2,843,668 triangles" in str(report)


@pytest.mark.slow
def test_stages_add_up(report: Report):
    seconds = {row["stage"]: row["CPU s"] for row in rows(report, "One thread, our stages")}
    parts = [name for name in seconds if name not in ("reorder + count", "whole")]
    assert sum(seconds[name] for name in parts) == pytest.approx(seconds["whole"])


@pytest.mark.slow
def test_both_phases_are_compared_between_workers(report: Report):
    found = rows(report, "Two workers")
    assert [(row["phase"], row["turns"]) for row in found] == [("count", cpu.QUICK_TURNS), ("whole run", 1)]
    for row in found:
        assert row["one, CPU s"] > 0
        assert row["busier of two"] >= row["other of two"] >= 0
        assert row["ratio of medians"] == row["busier of two"] / row["one, CPU s"]
        assert row["median of ratios"] > 0


@pytest.mark.slow
def test_threads_and_workers_count_from_files_in_turns(report: Report):
    found = {row["run by"]: row for row in rows(report, "Threads and workers")}
    assert list(found) == [
        "one thread",
        *(name for name in found if name.endswith("threads")),
        "one worker",
        "two workers",
        ways.HALVES,
    ]
    assert found["one thread"]["wall over one thread"] == found["one thread"]["CPU over one thread"] == 1


@pytest.mark.parametrize("second", [5, 6])
def test_two_processes_count_at_the_same_time(second):
    counts = [(5, 2.0), (second, 4.0)]
    pair = mock.Mock(submit=lambda *call: mock.Mock(result=counts.pop))
    if second != 5:
        with pytest.raises(CountError, match="one counts 6 triangles, the other 5"):
            ways._halves(pair, "")
    else:
        way = ways._halves(pair, "")
        assert (way.triangles, way.cpu) == (5, 3.0)


def test_ways_are_compared_within_turns():
    found = Measured(14, 1)
    found.ways = {
        "one thread": [Way(1, 4.0, 4.0), Way(1, 8.0, 6.0), Way(1, 2.0, 2.0)],
        "2 threads": [Way(1, 2.0, 4.0), Way(1, 6.0, 9.0), Way(1, 1.0, 2.0)],
    }
    assert tables._ways(found).rows == [["one thread", 4.0, 4.0, 1.0, 1.0, 3], ["2 threads", 2.0, 4.0, 0.5, 1.0, 3]]


@pytest.mark.slow
def test_memory_is_measured_alone_and_on_workers(report: Report):
    found = rows(report, "Peak memory, all")
    assert [(row["source"], row["run by"]) for row in found] == [
        ("generated", "one process"),
        ("Parquet", "one process"),
        ("generated", "1 worker process"),
        ("generated", "2 worker processes"),
        ("Parquet", "2 worker processes"),
    ]
    assert all(row["bytes an edge"] > row["without interpreters"] for row in found)


@pytest.mark.slow
def test_every_stage_has_a_memory_peak(report: Report):
    stages = [row["stage"] for row in rows(report, "Peak memory by stage")]
    assert stages == ["read", "canonical", "orient", "reorder", "plan", "blocks", "count", "sum"]


@pytest.mark.slow
def test_files_are_read_packed_and_plain(report: Report):
    found = {row["file"]: row["triangles"] for row in rows(report, "From file")}
    assert found == {"dense": 9, "far apart": 9}
    assert "absent: skipped, absent.csv.gz is not in" in str(report)


@pytest.mark.slow
def test_overhead_is_given_by_workers(report: Report):
    assert [row["worker processes"] for row in rows(report, "Dask's share: 256")] == [1, 2]


@pytest.mark.slow
def test_the_report_says_what_repeats_it(report: Report, graphs: Path):
    found = json.loads(json.dumps(report.to_dict()))
    assert found["command"] == f"dasktc bench cpu --quick --graphs {graphs}"
    assert "numba" in found["versions"]
    assert "cores" in found["machine"]


def test_a_tool_that_counts_otherwise_ends_the_benchmark():
    found = Measured(14, 1)
    found.check("g", "dasktc hub", 5)
    with pytest.raises(CountError, match="igraph counts 6 triangles of g, dasktc hub 5"):
        found.check("g", "igraph", 6)


def test_workers_that_count_otherwise_end_the_benchmark(monkeypatch: pytest.MonkeyPatch):
    turns = [Turn((5, 5), 1.0, [0.5, 0.5]), Turn((5, 6), 1.0, [0.5, 0.5])]
    monkeypatch.setattr(cpu, "in_fresh_process", lambda *_: turns)
    with pytest.raises(CountError, match=r"on two workers in turns counts 6 .* dasktc on one worker in turns 5:"):
        cpu._turns(Measured(14, 1), 2)


@pytest.mark.parametrize(("runs", "turns"), [(1, 15), (2, 8), (3, 5), (15, 1), (40, 1)])
def test_turns_are_dealt_out_to_runs(runs: int, turns: int):
    assert cpu._turns_a_run(runs, quick=False) == turns
    assert 1 < cpu._turns_a_run(1, quick=True) < cpu.TURNS


@pytest.mark.parametrize("order", [1, -1])
def test_the_busier_worker_is_told_by_its_seconds(order: int):
    """The busier workers of the turns took 3, 6 and 4 s: their median is half of one worker's, their ratios' is 0.6."""
    found = Measured(14, 1)
    found.turns = [
        Turn((1, 1), one, two[::order]) for one, two in ((4.0, [3.0, 1.0]), (10.0, [2.0, 6.0]), (8.0, [4.0]))
    ]
    for workers, whole in ((1, [8.0]), (2, [5.0, 4.0])):
        found.clusters["generated", workers] = [ClusterRun(1, 3, whole[::order], [0], [0], 1, 0.0)]
    assert tables._workers(found).rows == [
        ["count", 8.0, 4.0, 1.0, 0.5, 0.6, 3],
        ["whole run", 8.0, 5.0, 4.0, 0.625, 0.625, 1],
    ]


@pytest.mark.slow
def test_counts_in_turns_begin_without_tables(client: Any, monkeypatch: pytest.MonkeyPatch):
    """Tables that a worker keeps from its last count would make the next one cheaper than a single count."""
    one, two = (build(DaskExecutor(client), kronecker(8), Options(backend="cpu")) for _ in range(2))
    count, counted, before, after = Graph.triangle_count, [], [], []

    def watched(graph: Graph) -> Any:
        counted.append(graph)
        before.append(keeping(client))
        result = count(graph)
        after.append(keeping(client))
        return result

    monkeypatch.setattr(Graph, "triangle_count", watched)
    found = take_turns(one, two, turns=2)
    assert counted == [one, two] * 3  # a warm-up of each
    assert [turn.triangles for turn in found] == [(int(count(one)),) * 2] * 2
    assert not any(before)
    assert all(after)


def keeping(client: Any) -> int:
    """Number of workers that keep tables in the thread that runs tasks."""
    there = [client.submit(_keeps, workers=[worker], pure=False) for worker in client.ncores()]
    return sum(client.gather(there))


def _keeps() -> bool:
    return hub_tables.kept() is not None


def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(others, "find_spec", lambda name: None)
    monkeypatch.setattr(others.shutil, "which", lambda name: None)
    found = {tool.name: tool.missing for tool in others.other_tools(None)}
    assert found["igraph"] == "not installed: pip install 'dasktc[bench]'"
    assert all(missing.startswith("not installed") for missing in found.values())


def test_gapbs_reads_the_graph_that_was_written(tmp_path: Path):
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (1, 3), (5, 6)]
    binary = program(tmp_path / "tc", FAKE_TC)
    Inputs(str(tmp_path)).save("edges", np.array(edges, "int32"))
    (tool,) = (tool for tool in others.other_tools(binary) if tool.name == "gapbs")
    assert tool.missing == ""
    assert in_fresh_process(tool.run, Inputs(str(tmp_path))).triangles == 2


def test_another_program_is_not_gapbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = program(tmp_path / "tc", "#!/bin/sh\necho Usage: tc qdisc\n")
    with pytest.raises(InputError, match="does not print the usage of GAPBS"):
        others.other_tools(other)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert others.other_tools(None)[-1].missing == others.GAPBS_MISSING


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("options", "message"), [({"runs": 0}, "--runs 0 is below 1"), ({"graphs": "/nowhere"}, "is no folder")]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        cpu.run(**options)


def test_a_transitivity_that_makes_no_whole_triangles_is_refused():
    igraph = pytest.importorskip("igraph")
    path = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0), (2, 3)])
    assert others.whole_triangles(path.transitivity_undirected(), path) == 1
    with pytest.raises(CountError, match="triples makes"):
        others.whole_triangles(0.5, path)


@given(multigraphs())
def test_the_marker_counts_like_the_oracle(edges: list[tuple[int, int]]):
    from dasktc.bench.marker import count_by_marks

    array = np.array(edges, "int64").reshape(-1, 2)
    block = build(LocalExecutor(), as_source(array), Options(partition="whole"))._context.blocks[0, 0]
    assert count_by_marks(block.offsets, block.columns) == triangles(edges)


def test_a_stage_meter_separates_stages():
    meter = StageMeter()
    for stage in ("read", "count", "count"):
        meter(stage, 0, 2)
        held = np.ones((64 if stage == "count" else 1) << 17)
        del held
    meter.stop()
    assert list(meter.seconds) == list(meter.peaks) == ["read", "count"]
    assert meter.peaks["count"] - meter.peaks["read"] > 32 << 20


def test_a_peak_is_not_below_what_is_resident():
    forget_peak()
    held = np.ones(1 << 22)
    assert peak_bytes() >= resident_bytes() - (1 << 20)
    assert len(held)


@pytest.mark.slow
def test_a_fresh_process_may_use_one_thread_and_no_module_of_this_one():
    threads, loaded = in_fresh_process(_fresh)
    assert threads == "1"
    assert not loaded


def _fresh() -> tuple[str | None, bool]:
    import os

    return os.environ.get("OMP_NUM_THREADS"), "igraph" in sys.modules


def test_a_table_shows_what_is_missing_as_a_dash():
    table = Section("T", {"name": "", "value": ".1f"}, [["a", 1.25], ["bb", None]], ["a note"])
    assert str(table) == "T\n  name  value\n  a       1.2\n  bb        -\n  a note"
