"""Output files of a count: triangles by vertex and by edge against the oracles, and the report."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import resource
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import networkx
import pandas as pd
import pytest

import dasktc
from dasktc.api import repeat
from dasktc.cli.main import main
from dasktc.errors import CountError, DasktcError, DeviceMemoryError, InputError
from dasktc.generate import kronecker
from dasktc.io.write import is_same_target
from dasktc.options import Method, RunOptions
from dasktc.questions import measures
from dasktc.reports import charts, outputs
from dasktc.reports import html_report as report
from dasktc.reports.findings import Allowance, findings_of
from tests.support.keywords import keywords
from tests.support.oracle import support, triangles, triangles_per_vertex
from tests.support.slow_pipeline import random_edges, skewed_edges, source_of, within
from tests.support.tiers import some

EDGES = skewed_edges(60, 400, 3)
EXPECTED = triangles(EDGES)
NAMES = [(f"v {u}", f"v,{v}") for u, v in random_edges(20, 80, 5)]


def read(path, columns):
    """The written rows, as tuples."""
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        header = None if path.suffix == ".txt" else 0
        names = columns if path.suffix == ".txt" else None
        frame = pd.read_csv(path, sep="\t" if path.suffix == ".txt" else ",", header=header, names=names)
    assert list(frame.columns) == columns
    return list(frame.itertuples(index=False, name=None))


def by_edge(rows):
    return {frozenset((u, v)): count for u, v, count in rows}


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt"])
@pytest.mark.parametrize("edges", [EDGES, NAMES], ids=["int", "text"])
@pytest.mark.parametrize("options", [{}, {"partition": "hash2d", "parts": 2}, {"partition": "edges"}], ids=str)
def test_triangles_by_vertex_and_by_edge(tmp_path, suffix, edges, options):
    vertex, edge = tmp_path / f"v{suffix}", tmp_path / f"e{suffix}"
    source = source_of(edges, "int" if edges is EDGES else "text", parts=2)
    result = dasktc.triangle_count(source, per_vertex=vertex, per_edge=edge, **keywords(**options))
    assert int(result) == triangles(edges)
    vertices = read(vertex, ["vertex", "triangles"])
    assert dict(vertices) == triangles_per_vertex(edges)
    assert vertices == sorted(vertices)
    rows = read(edge, ["src", "dst", "support"])
    assert by_edge(rows) == support(edges)
    assert rows == sorted(rows)
    assert sorted(tmp_path.iterdir()) == [edge, vertex]


@pytest.mark.parametrize("suffix", some([".parquet", ".csv", ".txt"], lambda suffix: suffix == ".parquet"))
def test_workers_write_partitions(tmp_path, client, suffix):
    vertex, edge = tmp_path / f"v{suffix}", tmp_path / f"e{suffix}"
    source = source_of(EDGES, parts=3)
    dasktc.triangle_count(
        source, client, method=Method(partition="hash2d", parts=2), per_vertex=str(vertex), per_edge=str(edge)
    )
    assert dict(read(vertex, ["vertex", "triangles"])) == triangles_per_vertex(EDGES)
    rows = read(edge, ["src", "dst", "support"])
    assert len(rows) == len(support(EDGES))
    assert by_edge(rows) == support(EDGES)


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_a_graph_without_edges_has_empty_files(tmp_path, where, request):
    vertex, edge = tmp_path / "v.csv", tmp_path / "e.csv"
    client = request.getfixturevalue("client") if where == "cluster" else None
    dasktc.triangle_count(source_of([]), client, per_vertex=vertex, per_edge=edge)
    assert read(vertex, ["vertex", "triangles"]) == read(edge, ["src", "dst", "support"]) == []


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("per_vertex", "v.xls", r"'v\.xls' ends in none of \.parquet, \.csv, \.txt"),
        ("per_edge", "e", r"'e' ends in none of"),
        ("report", "r.htm", r"'r\.htm' ends in none of \.html"),
        (
            "per_vertex",
            "there.csv",
            r"there\.csv exists: it would be lost; choose another name, or replace it with force=True",
        ),
        ("report", "missing/r.html", r"missing is no folder: r\.html would be in it"),
        ("report", "there.csv/r.html", r"there\.csv is no folder: r\.html would be in it"),
        ("report", "a" * 300 + "/r.html", "a name has 255 bytes at most"),
    ],
)
def test_a_name_is_refused_before_anything_is_read(tmp_path, option, name, why):
    (tmp_path / "there.csv").write_text("mine")
    with mock.patch("dasktc.api.count._prepared_graph") as build, pytest.raises(InputError, match=why):
        dasktc.triangle_count(source_of(EDGES), **keywords(**{option: tmp_path / name}))
    assert not build.called
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


def test_two_outputs_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"x\.csv is named for two outputs"):
        dasktc.triangle_count(source_of(EDGES), per_vertex=tmp_path / "x.csv", per_edge=f"{tmp_path}/./x.csv")
    assert list(tmp_path.iterdir()) == []


def is_case_insensitive(folder):
    (folder / "case").touch()
    return (folder / "CASE").exists()


@pytest.mark.parametrize("force", [False, True])
def test_two_outputs_that_are_one_file_through_a_link_are_refused_before_the_count(tmp_path, force):
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    pairs = [("real/x.csv", "folder/x.csv"), ("real/../real/x.csv", "folder/x.csv")]
    if force:
        for name in ("there.csv", "real/there.csv"):
            (tmp_path / name).write_text("mine")
        (tmp_path / "soft.csv").symlink_to("there.csv")
        (tmp_path / "lost.csv").symlink_to("absent.csv")
        os.link(tmp_path / "there.csv", tmp_path / "hard.csv")
        pairs += [("there.csv", "soft.csv"), ("there.csv", "hard.csv"), ("absent.csv", "lost.csv")]
        pairs += [("real/there.csv", "folder/there.csv")]
    before = sorted(tmp_path.rglob("*"))
    for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
        with mock.patch("dasktc.api.count._prepared_graph") as build, pytest.raises(InputError) as caught:
            dasktc.triangle_count(source_of(EDGES), per_vertex=tmp_path / one, per_edge=tmp_path / other, force=force)
        assert not build.called
        assert re.search(r"is named for two outputs: the second would replace the first", str(caught.value))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("same", [False, True])
def test_names_of_another_case_are_one_file_where_the_file_system_says_so(tmp_path, monkeypatch, same):
    if is_case_insensitive(tmp_path):
        pytest.skip("this file system is such a one")
    (tmp_path / "case").unlink()
    exists = Path.exists
    if same:
        monkeypatch.setattr(Path, "exists", lambda path: exists(path) or exists(path.with_name(path.name.lower())))
    assert is_same_target(tmp_path / "x.csv", tmp_path / "X.csv") == same
    assert not is_same_target(tmp_path / "x.csv", tmp_path / "y.csv")
    assert is_same_target(tmp_path / "e\u0301.csv", tmp_path / "\u00e9.csv") is False
    assert list(tmp_path.iterdir()) == []


def test_a_report_needs_sorted_rows(tmp_path):
    given = {"kernel": "trust", "sort_rows": False, "partition": "whole"}
    for name, value in {"report": "r.html", "per_edge": "e.csv", "per_vertex": "v.csv", "checkpoint": "k"}.items():
        with mock.patch("dasktc.api.count._prepared_graph") as build, pytest.raises(InputError) as caught:
            dasktc.triangle_count(source_of(EDGES), **keywords(**given, **{name: tmp_path / value}))
        assert not build.called
        assert str(caught.value) == (
            f"{name} needs sorted rows, but sort_rows=False is given: leave one of the two out"
        )
    assert list(tmp_path.iterdir()) == []


def test_no_control_character_of_a_name_or_an_id_reaches_the_report(tmp_path):
    odd = "a\x1b[31m\x07\x9b\u202e"
    source = tmp_path / f"{odd}.csv"
    source.write_text(f"{odd},b\nb,c\n{odd},c\n")
    dasktc.triangle_count(source, report=tmp_path / "r.html", ids="text", format="csv")
    text = (tmp_path / "r.html").read_text()
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert text.count(r"a\x1b[31m\x07\x9b\u202e") >= 5  # the title twice, the command, a vertex and its edges


def test_the_count_is_not_lost_with_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("dasktc.io.write.publish", mock.Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(DasktcError, match=rf"^{EXPECTED:,} triangles were counted, but .*v\.csv cannot be written"):
        dasktc.triangle_count(source_of(EDGES), per_vertex=tmp_path / "v.csv")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def disk_of(nbytes):
    """Let files take at most `nbytes` bytes: the system then refuses writes as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("option", "name"),
    [
        *((option, f"o{end}") for option in ("per_vertex", "per_edge") for end in (".parquet", ".csv", ".txt")),
        ("report", "r.html"),
    ],
)
def test_a_full_disk_leaves_nothing_half_written(tmp_path, option, name):
    with (
        disk_of(100),
        pytest.raises(
            DasktcError, match=rf"^{EXPECTED:,} triangles were counted, but .*{name} cannot be written: .*large"
        ),
    ):
        dasktc.triangle_count(source_of(EDGES), **keywords(**{option: tmp_path / name}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with (
        mock.patch("dasktc.api.count._prepared_graph") as build,
        pytest.raises(InputError, match="cannot be written to by this"),
    ):
        dasktc.triangle_count(source_of(EDGES), report=tmp_path / "r.html")
    assert not build.called


@pytest.mark.parametrize("option", ["per_vertex", "per_edge", "report"])
@pytest.mark.parametrize(
    ("given", "why"), [(5, "5 is of type int"), (b"v.csv", "of type bytes"), ("", "is no path"), ("\0.csv", "null")]
)
def test_what_is_no_path_is_refused(option, given, why):
    with pytest.raises(InputError, match=rf"{option}=.*{why}"):
        dasktc.triangle_count(source_of(EDGES), **keywords(**{option: given}))


def test_names_that_are_not_utf8(tmp_path):
    vertex, page = (tmp_path / os.fsdecode(name) for name in (b"v\xff.parquet", b"r\xff.html"))
    source = replace(source_of(EDGES), name=os.fsdecode(b"x\xff.txt"))
    dasktc.triangle_count(source, per_vertex=vertex, report=page)
    assert sorted(tmp_path.iterdir()) == [page, vertex]
    assert r"triangles in x\udcff.txt" in page.read_text()


def test_what_does_not_fit_is_refused_before_the_count(tmp_path):
    said, graph = [], dasktc.prepare(source_of(EDGES))
    with (
        mock.patch("dasktc.api.count._prepared_graph", return_value=within(graph, 1_000)._context),
        pytest.raises(InputError, match="it keeps a number for every edge"),
    ):
        dasktc.triangle_count(source_of(EDGES), per_edge=tmp_path / "e.csv", progress=lambda *step: said.append(step))
    assert said == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "function"), [("per_vertex", "vertex_frames"), ("per_edge", "edge_frames")])
def test_another_number_than_the_count_is_refused(tmp_path, option, function):
    honest = getattr(measures, function)

    def wrong(graph):
        found, count = honest(graph)
        return found, count + 1

    with mock.patch.object(outputs, function, wrong), pytest.raises(CountError, match="were counted: some were lost"):
        dasktc.triangle_count(source_of(EDGES), **keywords(**{option: tmp_path / "o.csv"}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [("a\tb", "a tab, a quote or the end of a line"), ("#a", "'#a' would be read as a comment"), ("", "''")],
)
def test_ids_that_text_cannot_say_need_another_format(tmp_path, name, why):
    source = source_of([(name, "c"), ("c", "d")], "text")
    with pytest.raises(InputError, match=rf"{why}.*write \.csv or \.parquet"):
        dasktc.triangle_count(source, per_vertex=tmp_path / "v.txt")
    assert list(tmp_path.iterdir()) == []


def test_the_report_names_what_was_counted(tmp_path):
    page = tmp_path / "r.html"
    result = dasktc.triangle_count(source_of(EDGES), method=Method(splits=3), report=page)
    text = page.read_text()
    assert f"<title>{int(result):,} triangles in a test</title>" in text
    assert "3 tasks" in text
    assert all(name in text for name in ("counted by", "bytes a task", "Wall time by stage", "numba"))
    assert text.count("<td>(0, 0)</td>") == 9
    assert list(tmp_path.iterdir()) == [page]


def numbers_of(text):
    """The numbers beside the name of a report, by what they are."""
    header = re.search("<header>(.*?)</header>", text)[1]
    return {name: number for number, name in re.findall(r"<b>([^<]*)</b><span>([^<]*)</span>", header)}


def test_the_report_begins_with_exact_numbers_then_plots_then_folded_the_run_and_the_method(tmp_path):
    page, path = tmp_path / "r.html", tmp_path / "my.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    result = dasktc.triangle_count(path, method=Method(splits=3), report=page)
    text, graph = page.read_text(), networkx.Graph(EDGES)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    graph.remove_nodes_from(list(networkx.isolates(graph)))
    assert numbers_of(text) == {
        "triangles": f"{result:,}",
        "vertices": f"{len(graph):,}",
        "edges": f"{graph.size():,}",
        "transitivity": f"{networkx.transitivity(graph):.4f}",
        "average clustering": f"{networkx.average_clustering(graph):.4f}",
        "maximum degree": f"{max(degree for _, degree in graph.degree):,}",
    }
    shown, _, folded = text.partition("<details>")
    assert "<h1>my.txt</h1>" in shown
    assert shown.index("</header>") < shown.index("<svg") < shown.index("Vertices with most triangles")
    assert [re.search(f"<summary>{name}", folded) is not None for name in ("The run: ", "The method: kernel ")] == [
        True
    ] * 2
    assert not re.search("Wall time|counted by|bytes a task|dasktc count", shown)
    assert text.count("<details") == text.count("</details>") == 3  # the tasks are folded within the method


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/b.csv", "b.csv"),
        ("s3://c/d.parquet/", "d.parquet/"),
        ("C:\\e\\f.txt", "f.txt"),
        ("kronecker scale 3/4", None),
    ],
)
def test_the_report_names_a_file_without_its_folders(source, name):
    result = dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), backend="cpu")
    assert f"<h1>{name or source}</h1>" in report.page(result, source)


def test_a_report_of_no_edge_has_numbers(tmp_path):
    dasktc.triangle_count(([], []), report=tmp_path / "r.html", backend="cpu")
    numbers = numbers_of((tmp_path / "r.html").read_text())
    assert (numbers["transitivity"], numbers["average clustering"], numbers["maximum degree"]) == (
        "0.0000",
        "0.0000",
        "0",
    )


def page_within(**allowance):
    """The page of a graph for which a report may take so much."""
    with dasktc.prepare(source_of(EDGES)) as graph:
        result = graph.triangle_count()
        return report.page(result, "g", findings_of(graph._context, result, Allowance(seconds=0, **allowance)))


def test_the_report_says_that_the_average_was_not_computed():
    text = page_within(edge_ratio=1e9, vertex_ratio=1e9)
    numbers = numbers_of(text)
    assert numbers["average clustering"] == "–"
    assert "Triangles of vertices were not counted: that takes about" in text
    graph = networkx.Graph(EDGES)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert numbers["transitivity"] == f"{networkx.transitivity(graph):.4f}"  # needs degrees only


def test_the_report_escapes_names_and_shortens_the_tasks():
    text = report.page(dasktc.triangle_count(source_of(EDGES), method=Method(splits=3)), "<i>&", most_tasks=2)
    assert "<i>" not in text
    assert "&lt;i&gt;&amp;" in text
    assert "The 1 longest of 3 tasks, and 1 at random" in text
    assert text.count("<td>(0, 0)</td>") == 6


def test_the_report_tells_of_the_graph_and_how_to_repeat_the_count(tmp_path):
    page, path = tmp_path / "r.html", tmp_path / "my graph.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    dasktc.triangle_count(path, method=Method(kernel="merge", seed=3), verify=1.0, report=page)
    text = page.read_text()
    assert text.count("<svg") == 4  # degrees, support, clustering, timeline
    assert f"dasktc count &#x27;{path}&#x27; --kernel merge --seed 3 --verify 1.0</code>" in text
    with dasktc.prepare(path) as graph:
        of_vertices, of_edges = graph.measures(), graph.edge_support()
    (best,) = of_edges.nlargest(1, "support").itertuples(index=False, name=None)
    assert f"<td class=n>{best[2]}</td>" in text
    assert f"<td>{of_vertices['triangles'].idxmax()}</td><td class=n>" in text
    assert "nothing was sent" in text
    assert not re.search(r'(?:src|href)="|@import|url\(', text)
    assert "prefers-color-scheme: dark" in text


def test_the_report_repeats_every_option_that_was_given(tmp_path):
    page, path = tmp_path / "r.html", tmp_path / "graph.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    dasktc.triangle_count(path, method=Method(kernel="trust", parts=2, partition="hash2d"), report=page)
    command = re.search(r"<code>(dasktc count .*?)</code>", page.read_text())[1]
    assert command == f"dasktc count {path} --kernel trust --partition hash2d --parts 2"
    objects = {"source", "client", "threads", "backend", "memory", "method", "run"}
    silent = {*objects, "per_vertex", "per_edge", "report", "force", "progress"}
    usual = {name: of.default for name, of in inspect.signature(dasktc.triangle_count).parameters.items()}
    assert {name: default for name, default in usual.items() if name not in silent} == repeat.USUAL
    method, run = Method(kernel="merge", seed=3), RunOptions(retries=3)
    dasktc.triangle_count(source_of(EDGES), method=method, run=run, threads=2, verify=0.5, report=page, force=True)
    assert (
        "dasktc.triangle_count(&lt;Source&gt;, verify=0.5, threads=2, method=dasktc.Method(kernel=&#x27;merge&#x27;, "
        "seed=3), run=dasktc.RunOptions(retries=3))"
    ) in page.read_text()


def test_the_report_says_what_it_leaves_out_since_it_would_take_long(tmp_path):
    text = page_within(edge_ratio=1e9)
    assert "Triangles of edges were not counted: that takes about" in text
    assert "per_edge=... counts them" in text
    assert "Edges with most triangles" not in text
    dasktc.triangle_count(source_of(EDGES), report=tmp_path / "s.html", per_edge=tmp_path / "e.csv")
    assert "Edges with most triangles" in (tmp_path / "s.html").read_text()


def test_the_report_of_a_cluster_has_its_workers_and_what_they_sent(tmp_path, client):
    page = tmp_path / "r.html"
    result = dasktc.triangle_count(
        source_of(EDGES, parts=3), client, method=Method(partition="hash2d", parts=2), report=page
    )
    text = page.read_text()
    assert all(f"<td>{worker}</td>" in text for worker in result.tasks["worker"].unique())
    assert "workers sent" in text
    assert f"&lt;Source&gt;, &#x27;{client.scheduler.address}&#x27;," in text
    assert "Vertices with most triangles" in text
    assert "Edges with most triangles" in text


def test_the_report_out_of_core_and_of_a_resumed_count(tmp_path):
    for number in range(2):
        page = tmp_path / f"{number}.html"
        where = {"memory": "16MB", "work_dir": tmp_path, "checkpoint": tmp_path / "kept", "splits": 3}
        dasktc.triangle_count(source_of(EDGES), report=page, **keywords(**where))
        assert "Edges with most triangles" in page.read_text()
        assert ("3 tasks were in the checkpoint" in page.read_text()) == bool(number)


def test_the_report_of_many_tasks_is_small():
    result = dasktc.triangle_count(source_of(EDGES))
    one = result._records[0]
    records = [replace(one, worker=f"host:{n % 1000}", began=n / 9, ended=n / 9 + 50) for n in range(20_000)]
    text = report.page(result._replace(_records=records), "a graph")
    assert len(text) < 500_000
    assert "40 of 1,000 workers" in text
    assert "The 100 longest of 20,000 tasks, and 100 at random" in text


def test_a_report_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(DasktcError, match=r"r\.html cannot be written: .*Permission denied"):
        dasktc.triangle_count(source_of(EDGES), report=tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_exist_are_replaced_by_force(tmp_path, capsys, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"v.csv": "--per-vertex", "e.parquet": "--per-edge", "r.html": "--report"}
    for name in files:
        Path(name).write_text("old")
    source = str(data / "email-Eu-core.csv.gz")
    command = ["count", source, "--quiet", *itertools.chain.from_iterable((option, f) for f, option in files.items())]
    assert main(command) == 2
    assert "replace it with --force" in capsys.readouterr().err
    assert {Path(name).read_text() for name in files} == {"old"}
    assert main([*command, "--force"]) == 0
    assert len(pd.read_csv("v.csv")) == 986
    assert len(pd.read_parquet("e.parquet")) == 16_064
    for number, command in enumerate((["truss", source, "-o", "t.csv"], ["measures", source, "-o", "t.csv"])):
        Path("t.csv").write_text("old")
        assert (main(command), main([*command, "--force"])) == (2, 0)
        assert len(pd.read_csv("t.csv")) == (16_064, 986)[number]
    Path("folder.parquet").mkdir()
    Path("folder.parquet/mine.txt").write_text("mine")
    assert main(["count", source, "--per-edge", "folder.parquet", "--force"]) == 2
    assert "1 entry other than .parquet files" in capsys.readouterr().err


@pytest.mark.parametrize("most", [90.0, 100_000.0])
def test_no_label_of_a_chart_is_cut_off(most):
    chart = charts.line_chart([1.0, most], [1.0, 2.0], ["", ""], (charts.Axis("x"), charts.Axis("y")))
    labels = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">([\w.]+)</text>', chart)
    assert (charts.short(most) in [text for _, text in labels]) == (most == 100_000)
    assert all(float(at) + 3.5 * len(text) <= charts.WIDTH for at, text in labels)  # half of 7 units a character


def test_charts_of_a_report_are_so_wide_that_their_labels_can_be_read():
    (least,) = re.findall(r"minmax\(min\(([\d.]+)rem, 100%\), 1fr\)", report.STYLE)
    assert 11 * (16 * float(least) - 26) / charts.WIDTH > 10  # pixels, of labels of 11 units in a padded panel


def test_a_second_try_out_of_core_replaces_what_the_first_has_written(tmp_path, monkeypatch):
    real, budgets = outputs.edge_frames, []

    def edge_frames(graph, *given):
        budgets.append(graph.options.memory)
        if len(budgets) == 1:
            raise DeviceMemoryError("the GPU has no room for 1 GB, 0 B of its 8 GB are free")
        return real(graph, *given)

    monkeypatch.setattr(outputs, "edge_frames", edge_frames)
    files = {"per_vertex": tmp_path / "v.csv", "per_edge": tmp_path / "e.csv"}
    assert dasktc.triangle_count(([0, 1, 2, 2], [1, 2, 0, 3]), backend="cpu", **keywords(**files)) == 1
    assert budgets[0] is None
    assert budgets[1] is not None
    assert all(path.stat().st_size for path in files.values())


def test_writing_is_a_stage_with_progress_and_total_is_wall_time(tmp_path):
    """Each part takes time that nothing else reports."""
    paths = {"per_vertex": tmp_path / "v.csv", "per_edge": tmp_path / "e.parquet", "report": tmp_path / "r.html"}
    steps, moments = [], []

    def progress(*step):
        steps.append(step)
        moments.append(time.perf_counter())

    began = time.perf_counter()
    with mock.patch.object(outputs, "write_answer", side_effect=lambda *given: time.sleep(0.2)):
        result = dasktc.triangle_count(kronecker(6), verify=1.0, threads=1, progress=progress, **keywords(**paths))
    elapsed = time.perf_counter() - began
    stages = dict(result.seconds)
    total = stages.pop("total")
    assert list(stages) == ["read", "prepare", "count", "verify", "write", "report"]
    assert stages["write"] >= 0.4
    assert sum(stages.values()) <= total <= elapsed
    assert total >= moments[-1] - moments[0]
    assert [step for step in steps if step[0] == "write"] == [("write", number, 2) for number in range(3)]
    assert steps[-1][0] == "report"
    assert f"write {stages['write']:.2f}" in repr(result)
