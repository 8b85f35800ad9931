"""`dasktc bench gpu` on tiny graphs with the emulated CUDA backend: its output, and that it checks counts."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations

import pytest

from dasktc import generate
from dasktc.bench import gpu, gpu_files, gpu_scaling, ooc
from dasktc.bench.end_to_end import end_to_end
from dasktc.bench.report import select
from dasktc.cli.main import main
from dasktc.errors import CountError, InputError
from dasktc.executors.local import LocalExecutor

pytestmark = pytest.mark.usefixtures("emulated")


def test_the_table(capsys):
    tiny = [word for case in gpu.QUICK[1:] for word in ("--only", case.name)]
    assert main(["bench", "gpu", "--quick", *tiny, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"].startswith("dasktc bench gpu --quick --kernel auto --only")
    section, small, left = found["sections"]
    rows = {row["graph"]: row for row in section["rows"]}
    assert rows["3D torus 3^3"] | {"kernel": 0, "prepare": 0, "bytes": 0, "bytes, count": 0} == {
        "graph": "3D torus 3^3", "edges": 81, "triangles": 27, "by": "short", "kernel": 0, "prepare": 0, "bytes": 0,
        "bytes, count": 0,
        "published": None, "reach, kernel": None, "reach, prepare": None, "checked": "known",
    }  # fmt: skip
    assert rows["uniform, 2,000 vertices"]["checked"] == "with another kernel"
    assert all(row["kernel"] > 0 and row["prepare"] > 0 for row in section["rows"])
    assert [(row["graph"], row["auto takes"]) for row in small["rows"]] == [
        ("2,000 random edges in NumPy", "bitmatrix")
    ]
    assert [row["graph"] for row in left["rows"]] == ["uniform, 2,000 vertices", "3D torus 3^3"]
    assert all(row["taken afterwards"] == row["of it by the pool"] > 0 for row in left["rows"])
    assert main(["bench", "gpu", "--quick", "--only", "3d torus 3^3", "--kernel", "merge"]) == 0
    printed = capsys.readouterr().out
    assert "one GPU, kernel merge" in printed
    assert "uniform" not in printed


def test_every_graph_of_the_full_table_names_its_rows_and_answer():
    for case in gpu.CASES:
        source = case.source()
        assert sum(part.last - part.first for part in source.parts) == case.rows, case.name
        assert source.triangles in (None, case.triangles), case.name


def test_small_graphs(tmp_path):
    edges = "".join(f"{u} {v}\n" for u, v in combinations(range(9), 2))
    with gzip.open(tmp_path / "facebook_combined.txt.gz", "wt") as file:
        file.write(edges)
    graphs = {**gpu.SMALL, "ego-Facebook": ("facebook_combined.txt.gz", 84, 1)}
    section = gpu._small(tmp_path, 1, 500, lambda text: None, graphs)
    (name, triangles, taken, wall, kernel, reach), of_numpy = section.rows
    assert (taken, *of_numpy[::2][:2]) == ("bitmatrix", "500 random edges in NumPy", "bitmatrix")
    assert (name, triangles, reach) == ("ego-Facebook", 84, 1)
    assert wall > 0
    assert kernel > 0
    assert [(case.name, case.triangles) for case in gpu._small_cases(tmp_path, graphs)] == [("ego-Facebook", 84)]
    assert section.notes[0] == f"amazon0601: amazon0601-edges.csv.gz is not in --graphs {tmp_path}"
    with pytest.raises(CountError, match="ego-Facebook has 85 triangles, 84 were counted"):
        gpu._small(tmp_path, 1, 500, lambda text: None, {"ego-Facebook": ("facebook_combined.txt.gz", 85, 3)})


def test_files(tmp_path, monkeypatch):
    section = gpu_files.files(str(tmp_path), 1, True, lambda text: None)
    assert [row[0] for row in section.rows] == ["Kronecker 6, .parquet", "Kronecker 6, .txt"]
    assert all(0 < value for row in section.rows for value in (row[1], row[2], row[4], row[6]))
    assert list(tmp_path.iterdir()) == []
    counts = iter([5, 5, 6])
    monkeypatch.setattr(gpu_files, "triangle_count", lambda *_, **__: Counted(next(counts)))
    with pytest.raises(CountError, match="reading is wrong"):
        gpu_files.files(str(tmp_path), 1, True, lambda text: None)


class Counted(int):
    """The parts of a result that the table of files uses."""

    seconds = {"read": 1.0}  # noqa: RUF012


def test_several_gpus(monkeypatch):
    @contextmanager
    def connect(run, backend):
        assert backend == "cuda"
        yield LocalExecutor(threads=run.workers)

    monkeypatch.setattr(gpu_scaling, "connect", connect)
    monkeypatch.setattr(gpu_scaling, "_warm", lambda: None)
    rows = gpu_scaling.several([(gpu.QUICK[-1], "auto")], 1, [1, 2, 3], lambda text: None).rows
    assert [row[:2] for row in rows] == [["3D torus 3^3", 1], ["3D torus 3^3", 2], ["3D torus 3^3", 3]]
    assert {row[2] for row in rows} == {"short"}, "what auto takes"
    assert rows[0][-1] == 1.0
    assert rows[0][-2] == 1.0
    assert rows[1][-2] == float("inf"), "one worker, which alone has tasks"
    wrong = replace(gpu.QUICK[-1], triangles=28)
    with pytest.raises(CountError, match="has 28 triangles, the cluster counted 27"):
        gpu_scaling.several([(wrong, "hub")], 1, [1], lambda text: None)


@pytest.mark.slow
def test_end_to_end_on_workers_of_the_cpu(tmp_path):
    """The figures of a cluster are collected in the same way on CPUs and GPUs."""
    cases, page = [replace(gpu.QUICK[-1], triangles=None), kronecker_8()], tmp_path / "profile.html"
    section = end_to_end(cases, 1, [1, 2], "cpu", lambda text: None, str(page))
    rows = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
    assert [row["workers"] for row in rows] == ["no client", "1", "2"] * 2
    for row in rows:
        assert row["wall"] > 0
        assert 0 <= row["kernel/wall"] <= 1
        assert 0 < row["computing"] <= 1
    assert rows[0]["tasks"] == rows[0]["waits"] == 0
    assert rows[-1]["tasks"] > 10
    assert rows[-1]["waits"] > 1
    assert rows[-1]["counted"] == "as tasks on all workers"
    assert "<html" in page.read_text()
    with pytest.raises(CountError, match="27 were counted on no client"):
        end_to_end([replace(gpu.QUICK[-1], triangles=28)], 1, [], "cpu", lambda text: None)


def kronecker_8():
    return replace(gpu.QUICK[-1], name="Kronecker 8", source=lambda: generate.kronecker(8), triangles=10_618)


@pytest.mark.parametrize("workers", ["", "0", "1,x", "-1"])
def test_numbers_of_workers(workers):
    assert gpu_scaling.numbers("1,4") == [1, 4]
    with pytest.raises(InputError, match="is no list of numbers"):
        gpu_scaling.numbers(workers)


def test_out_of_core(capsys, monkeypatch):
    from dasktc.executors.stores.device.store import DeviceStore

    monkeypatch.setattr(DeviceStore, "_make_room_for", lambda self, calls: self._move_out_until(0))
    options = ["--scale", "8", "--memory", "17MB", "--memory", "20MB", "--partition", "hash2d", "--parts", "2"]
    options += ["--kernel", "hub"]
    assert main(["bench", "ooc", *options, "--host-memory", "1", "--runs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"].startswith("dasktc bench ooc --scale 8 --memory 17MB --memory 20MB --runs 1")
    ((whole, *limited),) = (section["rows"] for section in found["sections"])
    assert (whole["memory"], whole["plan"], whole["hidden"], whole["times all"]) == (
        "all",
        "whole, n = 1, hub",
        None,
        1.0,
    )
    assert [row["memory"] for row in limited] == ["17MB", "20MB"]
    for row in limited:
        assert row["triangles"] == whole["triangles"]
        assert row["plan"] == "hash2d, n = 2, hub"
        assert min(row["to the host"], row["from the host"]) > 0
        assert row["copied"].startswith("4 blocks")
        assert 0 <= row["hidden"] <= 1
        assert row["copying"] > 0
    with pytest.raises(CountError, match="Kronecker 8 has 1 triangles, 10,618 were counted within --memory"):
        ooc.run(8, ("17MB",), runs=1, known={8: 1})
    with pytest.raises(InputError, match="--runs 0"):
        ooc.run(8, runs=0)


def test_the_first_to_use_the_device_counts_what_is_allocated(monkeypatch):
    """As in a new process, where no pool exists yet."""
    used: list[str] = []
    monkeypatch.setattr(ooc, "get_backend", lambda name: used.append(name))
    monkeypatch.setattr(ooc, "_measured", lambda *_: used.append("measured") or [][0])
    with pytest.raises(IndexError):
        ooc.run(4)
    assert used == ["cuda", "measured"]


def test_clusters_come_before_this_process_uses_a_device(monkeypatch):
    used: list[str] = []
    monkeypatch.setattr(gpu, "several", lambda *_: used.append("several"))
    monkeypatch.setattr(gpu, "end_to_end", lambda *_: used.append("end to end"))
    monkeypatch.setattr("dasktc.backends.get_backend", lambda name: used.append(name) or [][0])
    with pytest.raises(IndexError):
        gpu.run(quick=True, workers="2")
    assert used == ["several", "end to end", "cuda"]


def test_a_wrong_count_ends_it():
    with pytest.raises(CountError, match="has 28 triangles, 27 were counted"):
        gpu._table([replace(gpu.QUICK[-1], triangles=28)], "hub", 1, lambda text: None)


@pytest.mark.parametrize(("reach", "said"), [((1e-9, 1e9), True), ((1e9, 1e-9), True), ((1e9, 1e9), False)])
def test_what_bounds_graphs_is_said_once_where_kernel_or_preparation_miss_their_reach(reach, said):
    cases = [replace(case, reach=reach, bound="why") for case in gpu.QUICK[-2:]]
    notes = [note for note in gpu._table(cases, "hub", 1, lambda text: None).notes if note.startswith("above reach")]
    assert len(notes) == said
    assert all("why" in note and all(case.name in note for case in cases) for note in notes)
    assert all("kernels/hub.cu" in note for note in notes)


def test_what_does_not_fit_is_frozen_heap():
    section = gpu._table([replace(gpu.QUICK[-1], rows=10**10)], "hub", 1, lambda text: None)
    assert section.rows == []
    assert section.notes[0] == "3D torus 3^3 does not fit: 10,000,000,000 raw edges take 25 bytes each"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"runs": 0}, "--runs 0"), ({"graphs": "/no/such"}, "--graphs"), ({"only": ("X",), "quick": True}, "--only 'X'")],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        gpu.run(**options)


def test_graphs_are_chosen_by_their_whole_names():
    cases = {case.name: case for case in gpu.CASES + gpu.LARGE}
    assert list(select(cases, ("kronecker 26", "ra"))) == ["RA", "Kronecker 26"]
    for names in (("Kronecker 2",), ("RA", "Kronecker 2")):
        with pytest.raises(InputError, match=r"'Kronecker 2' is no graph's name; the graphs are: Kronecker 20; .*28$"):
            select(cases, names)
