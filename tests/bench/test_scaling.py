"""`dasktc bench scaling`: real task lists, real counts, the tables and the picture."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import pytest

import dasktc
from dasktc.api.count import build
from dasktc.bench import overhead, plot, scaling
from dasktc.bench.curves import Curve, figure_15, notes, table_6
from dasktc.bench.report import Report
from dasktc.bench.scaled import Priced, Real, plan_for, price
from dasktc.cli import main as command
from dasktc.cli.main import main
from dasktc.counting.tasks import jobs
from dasktc.errors import CountError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Options
from tests.support.keywords import keywords
from tests.support.processes import fork_workers
from tests.support.tiers import some

SMALL = kronecker(9)


def priced(workers: int, each: float = 1.0, triangles: int = 7) -> Priced:
    """A plan with 4 tasks per worker that take equally long."""
    return Priced(workers, 1, 4 * workers, 100, triangles, 1.0, [each / workers] * (4 * workers), [(0, 0, 0)], [1000])


def curve() -> Curve:
    found = Curve(SMALL)
    found.real = [Real(workers, 7, 4.0 / workers, 1.0, 4.5 / workers, 0.001, 0.01) for workers in (1, 2)]
    found.points = [found.point(priced(workers), 1e9) for workers in (1, 2, 4)]
    found.partitioned = [found.point(priced(workers), 1e9) for workers in (2, 4)]
    found.partitioned_real = [replace(real, parts=8, space_imbalance=1.2) for real in found.real]
    return found


# What is measured


def test_overhead_is_what_was_not_in_tasks(client: Any) -> None:
    options = Options(backend="cpu", kernel="merge", partition="hash2d", splits=1, parts=3)
    found = overhead._measured(DaskExecutor(client), SMALL, options)
    assert (found.workers, found.parts, found.tasks) == (2, 3, 27)
    assert 0 < found.within < 2 * found.seconds
    assert found.outside == 2 * found.seconds - found.within
    assert found.scheduler > 0
    assert 0 < found.between <= found.outside
    shown = found._replace(seconds=2.0, within=3.0, between=0.05, scheduler=0.027)
    row = overhead.section([shown], quick=True).texts()[0]
    assert row == ["2", "3", "27", "2.00", "3.00", "2.00", "37.04", "25.0%", "1.00"]


def test_time_between_tasks_is_that_of_a_thread() -> None:
    def noted(worker, thread, *times):
        return [
            {"worker": worker, "thread": thread, "startstops": [
                {"action": "transfer", "start": start - 5, "stop": start},
                {"action": "compute", "start": start, "stop": stop},
            ]}
            for start, stop in times
        ]  # fmt: skip

    tasks = [*noted("a", 1, (30, 40), (10, 20)), *noted("a", 2, (0, 5), (6, 7)), *noted("b", 1, (100, 101))]
    assert overhead._spent(tasks) == (27.0, 11.0)


@pytest.mark.parametrize("asked", [{}, {"partition": "hash2d", "parts": 3}, {"partition": "edges"}])
def test_every_number_of_workers_has_the_plan_that_make_plan_chooses(asked: dict[str, Any]) -> None:
    plan = dasktc.plan(SMALL, memory="1GB", **keywords(**asked)).plan
    for workers in (1, 2, 7, 40):
        found = plan_for(plan, workers)
        assert found == replace(
            dasktc.plan(SMALL, memory="1GB", workers=workers, **keywords(**asked)).plan,
            bytes_per_task=plan.bytes_per_task,
            why=plan.why,
        )


def test_every_task_is_counted_and_has_its_own_price() -> None:
    options = Options(partition="hash2d", parts=3)
    alone, many = price(SMALL, options, [1, 20], runs=2)
    graph = build(LocalExecutor(), SMALL, options)
    assert (len(alone.costs), alone.splits, len(many.costs), many.splits) == (27, 1, 81, 3)
    assert all(seconds >= 0 for seconds in many.costs)
    assert sum(many.costs) > 0
    assert alone.triangles == many.triangles == int(graph.triangle_count())
    assert many.space_imbalance == graph.plan.space_imbalance
    places = list(graph._context.blocks)
    assert many.block_bytes == [graph._context.blocks[place].nbytes for place in places]
    work = jobs(plan_for(graph.plan, 20), "hub", "cpu")
    needs = many.fetches(1.0).needs
    assert [tuple(places[block] for block in blocks) for blocks in needs] == [job.triple.places for job in work]


def test_splits_stay_as_they_were_asked_for() -> None:
    assert [found.splits for found in price(SMALL, Options(splits=6), [1, 8], runs=1)] == [6, 6]


# What is shown


def test_speed_up_is_over_one_worker() -> None:
    found = curve()
    rows, edges = figure_15(found).to_dict()["rows"], found.points[0].priced.edges
    assert [row["workers"] for row in rows] == [1, 2, 4]
    assert [row["speed-up"] for row in rows] == pytest.approx([1, 2, 4])
    assert [row["real speed-up"] for row in rows] == [1.0, 2.0, None]
    assert [row["10⁹ edges/s"] * row["kernel s"] for row in rows] == pytest.approx([edges * 1e-9] * 3)
    assert [row["time imbalance"] for row in rows] == pytest.approx([1, 1, 1])
    counts = [row["count s"] for row in rows]
    assert counts[0] == pytest.approx(0.01 + 4 * (0.001 + 1))
    assert all(row["count s"] > row["kernel s"] for row in rows)
    assert rows[2]["count speed-up"] == pytest.approx(counts[0] / counts[2])


def test_the_table_of_parts_says_what_twice_the_workers_gain() -> None:
    table = table_6(curve())
    rows = table.to_dict()["rows"]
    assert [row["workers"] for row in rows] == [1, 2, 4]
    assert [row["real kernel s"] for row in rows] == [4.0, 2.0, None]
    assert [row["kernel s"] is None for row in rows] == [True, False, False]
    assert table.notes == ["speed-up from 2 to 4 workers: 2.00"]
    assert any("1.00 ms" in note and "10 ms" in note for note in notes([curve()], 1e9))


def test_what_travels_before_the_tasks_of_the_largest_graph_is_said() -> None:
    said = notes([curve()], 1e9)[-1]
    assert "at n = 8, m = 2 on 1,024 GPUs" in said
    assert "9.06 TB of blocks travel before the tasks" in said
    assert "9.87 s at 1 GB a second, beside 0.08181 s of counting" in said


def test_plans_that_count_differently_are_not_shown() -> None:
    found = curve()
    found.points.append(found.point(priced(8, triangles=8), 1e9))
    with pytest.raises(CountError, match=r"\[7, 8\] triangles of kronecker scale 9"):
        scaling._compare(found)


def test_without_matplotlib_a_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    report = Report("dasktc bench scaling", {"machine": "M"}, [figure_15(curve())])
    for name in ("a.png", "b.html"):
        plot.draw([curve()], report, tmp_path / name)
    assert str(report).count("matplotlib is not installed") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", some(["a.png", "a.svg", "a.pdf", "a.html"], lambda name: name == "a.html"))
def test_pictures_are_drawn(name: str, tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    report = Report("dasktc bench <scaling>", {"machine": "a machine"}, [figure_15(curve())])
    plot.draw([curve()], report, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert len(data) > 5_000
    if name == "a.html":
        assert b"bench &lt;scaling&gt;" in data
        assert b"speed-up" in data
        assert b"a machine" in data
    if name == "a.svg":
        assert b"<svg" in data


# The command


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run everything in one fresh process, because starting one for each takes long."""
    with ProcessPoolExecutor(1, get_context("spawn"), fork_workers) as pool:
        monkeypatch.setattr(scaling, "in_fresh_process", lambda *args: pool.submit(*args).result())
        yield


class _Measured:
    """Stands for measurements in fresh processes, and notes what stdout had when each began."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self.out, self.printed = capsys, "", list[str]()

    def __call__(self, function: Any, source: Any, options: Any, numbers: Any, runs: int) -> Any:
        self.printed.append(self.read())
        if function is scaling.price:
            return [priced(workers) for workers in numbers]
        real = curve().real[numbers - 1]
        return [real, replace(real, parts=8, space_imbalance=1.2)]

    def read(self) -> str:
        self.out += self._capsys.readouterr().out
        return self.out


TWO = ["bench", "scaling", "--quick", "--graphs", "kronecker,random", "--workers", "1,2"]


def test_a_table_is_printed_when_it_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = _Measured(capsys)
    monkeypatch.setattr(scaling, "in_fresh_process", measured)
    assert main(TWO) == 0
    assert len(measured.printed) == 8  # of each graph: real ones of 1 and of 2, tasks of all, tasks of parts
    assert [out.count("simulated workers, and real ones") for out in measured.printed] == [0, 0, 0, 1, 1, 1, 1, 2]
    assert [out.count("table 6)") for out in measured.printed] == [0, 0, 0, 0, 1, 1, 1, 1]
    out = measured.read()
    assert (out.count("simulated workers, and real ones"), out.count("table 6)")) == (2, 2), "each table once"
    assert out.count("TRUST's table 6 times counting alone") == 1
    assert f"command   dasktc {TWO[0]} {TWO[1]}" in out


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured = _Measured(capsys)
    monkeypatch.setattr(scaling, "in_fresh_process", measured)
    assert main([*TWO, "--json"]) == 0
    assert len(json.loads(measured.read())["sections"]) == 4
    assert set(measured.printed) == {""}


def test_a_reader_that_has_gone_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = _Measured(capsys)
    monkeypatch.setattr(scaling, "in_fresh_process", measured)
    monkeypatch.setattr(command, "_say", lambda part: command.BROKEN_PIPE)
    assert main(TWO) == command.BROKEN_PIPE
    assert len(measured.printed) == 3


@pytest.mark.slow
def test_the_command_from_end_to_end(one_process: None, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "scaling.html"
    sizes = ["--graphs", "kronecker", "--scale", "8", "--most", "16", "--runs", "1"]
    arguments = ["bench", "scaling", *sizes, "--workers", "2", "--memory", "1GB", "--plot", str(out), "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["sections"]) == 2
    rows = found["sections"][0]["rows"]
    assert [(row["workers"], row["m"], row["tasks"]) for row in rows] == [(w, 4 * w, 4 * w) for w in (1, 2, 4, 8, 16)]
    assert all(row["real kernel s"] is not None for row in rows[:2])
    assert all(row["real kernel s"] is None for row in rows[2:])
    parted = found["sections"][1]["rows"]
    assert [(row["workers"], row["n"], row["m"]) for row in parted] == [(1, 2, 1), (2, 2, 1), (8, 2, 4), (16, 2, 8)]
    assert all(row["kernel s"] is not None for row in parted)
    assert [row["real kernel s"] is not None for row in parted] == [True, True, False, False]
    assert "--scale 8" in found["command"]
    assert found["command"].endswith("--memory 1GB")
    assert found["command"] in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--graphs", "kronecker,lattice"), "--graphs 'lattice'"),
        (("--stars", "3,x"), "--stars '3,x'"),
        (("--most", "12"), "--most 12"),
        (("--most", "1"), "--most 1"),
        (("--runs", "0"), "--runs 0"),
        (("--workers", "0"), "--workers '0'"),
        (("--workers", "two"), "--workers 'two'"),
        (("--plot", "a.txt"), "--plot a.txt"),
        (("--plot", "nowhere/a.png"), "its folder is not there"),
        (("--rate-network", "fast"), "--rate-network fast"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "scaling", *arguments]) == 2
    assert message in capsys.readouterr().err
