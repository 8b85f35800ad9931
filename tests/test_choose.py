"""What `auto` chooses: by the rows of the graph, said in the plan, and never at the cost of the count."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from oracle import complete, multigraphs, triangles
from pipeline import orientation, prepared, random_edges, source_of

import dasktc
from dasktc.backend.cpu import KERNELS
from dasktc.bench import choose as table
from dasktc.choose import Facts, choose, look
from dasktc.cli import main
from dasktc.errors import CountError
from dasktc.generate import grid3d, kronecker
from dasktc.options import Options
from dasktc.tasks import Direct


@given(multigraphs(max_vertices=30))
@settings(max_examples=60)
def test_facts_are_those_of_the_rows(edges):
    found = prepared(edges)
    slow = orientation(edges)
    lengths = sorted(len(row) for row in slow.out.values())
    facts = look(Direct(), found.graph, "cpu")
    if not lengths:
        assert facts == Facts(0, 0, 0.0)
        return
    assert facts.longest == lengths[-1]
    assert facts.usual == next(k for k in range(len(lengths)) if sum(n <= k for n in lengths) >= 0.99 * len(lengths))
    assert facts.wedges_per_edge == slow.wedges / len(slow.edges)


def test_short_rows_are_walked_and_others_meet_tables():
    assert dasktc.prepare(grid3d(30)).options.kernel == "merge"
    assert dasktc.prepare(kronecker(8)).options.kernel == "hub"


def test_a_kernel_that_is_asked_for_is_taken():
    for kernel in ("hub", "search", "trust"):
        graph = dasktc.prepare(grid3d(5), kernel=kernel)
        assert graph.options.kernel == kernel
        assert f"kernel {kernel} as asked" in graph.plan.choice
        assert graph.options.reorder == ("collective" if kernel == "trust" else "degree")


def test_an_order_that_is_asked_for_is_taken():
    graph = dasktc.prepare(grid3d(5), reorder="indegree")
    assert graph.options.reorder == "indegree"
    assert "order indegree as asked" in graph.plan.choice


def test_the_plan_says_why(tmp_path, capsys):
    path = tmp_path / "mesh.txt"
    path.write_text(
        "".join(f"{u} {v}\n" for u, v in [(k, k + 1) for k in range(300)] + [(k, k + 2) for k in range(300)])
    )
    assert main(["plan", str(path)]) == 0
    assert "kernel merge: 99 % of the rows have at most 2 entries" in capsys.readouterr().out
    assert main(["count", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kernel"], found["reorder"], found["triangles"]) == ("merge", "degree", 299)


def test_another_kernel_later_is_the_one_that_was_asked_for():
    edges = complete(12)
    graph = dasktc.prepare(source_of(edges))
    for kernel in ("merge", "search"):
        result = graph.triangle_count(kernel=kernel)
        assert (int(result), result.kernel) == (triangles(edges), kernel)
        assert result.plan.choice.startswith(f"kernel {kernel} as asked")


def test_a_device_leaves_the_choice_to_hub():
    options, why = choose(Options(backend="cuda"), Facts(2, 3, 1.0))
    assert (options.kernel, options.reorder) == ("hub", "degree")
    assert why.startswith("kernel hub")


@pytest.mark.parametrize("degree", [1, 4, 40])
def test_the_choice_counts_what_others_count(degree):
    edges = random_edges(300, 300 * degree // 2, degree)
    result = dasktc.triangle_count(source_of(edges), verify=1.0)
    assert int(result) == triangles(edges)
    assert np.unique([int(dasktc.triangle_count(source_of(edges), kernel=k)) for k in ("hub", "merge")]).size == 1


# the table


def test_the_table_has_every_choice_and_graph(tmp_path, capsys):
    with gzip.open(tmp_path / "ca-GrQc.txt.gz", "wt") as file:
        file.writelines(f"{u} {v}\n" for u, v in complete(30))
    report = table.run(quick=True, graphs=str(tmp_path))
    choices, fixed = report.sections
    assert [row[0] for row in choices.rows] == [*table.QUICK, "ca-GrQc.txt.gz"]
    assert [row[0] for row in fixed.rows] == ["auto", *KERNELS]
    for _, edges, kernel, count, best, least, ratio, _ in choices.rows:
        assert edges > 0
        assert {kernel, best} <= {*KERNELS}
        assert ratio == pytest.approx(count / least)
    assert all(worst >= mean >= 1 - 1e-9 for name, worst, _, mean, *_ in fixed.rows if name != "auto")
    assert main(["bench", "choose", "--runs", "0"]) == 2
    assert "--runs 0 is below 1" in capsys.readouterr().err


def test_kernels_that_disagree_end_the_table(monkeypatch):
    real = table.triangle_count

    def wrong(*args, kernel="auto", **kwargs):
        result = real(*args, kernel=kernel, **kwargs)
        return replace(result, triangles=result.triangles + (kernel == "search"))

    monkeypatch.setattr(table, "triangle_count", wrong)
    with pytest.raises(CountError, match="kernel search counts"):
        table.run(quick=True)
