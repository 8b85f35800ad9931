"""How results show themselves: `str` one line, `repr` and HTML the summary, which `summary()` prints."""

import csv
import io
import json

import pandas as pd
import pytest

import dasktc
from dasktc.api.files import save_source, write_measures, write_similarity, write_truss
from dasktc.options import Method
from dasktc.questions.cliques import clique_count
from dasktc.summary import Summarised, as_html, as_text
from tests.support.slow_pipeline import skewed_edges, source_of

EDGES = skewed_edges(40, 200, 1)
NUMBERS = {
    "count": lambda folder: dasktc.triangle_count(source_of(EDGES)),
    "estimate": lambda folder: dasktc.prepare(source_of(EDGES)).estimate(),
    "cliques": lambda folder: clique_count(
        dasktc.prepare(source_of(EDGES), method=Method(partition="whole"))._context, 3
    ),
}
OTHERS = {
    "graph": lambda folder: dasktc.prepare(source_of(EDGES)),
    "measures": lambda folder: write_measures(source_of(EDGES), folder / "v.csv"),
    "similarity": lambda folder: write_similarity(source_of(EDGES), folder / "s.csv"),
    "truss": lambda folder: write_truss(source_of(EDGES), folder / "t.csv"),
    "saved": lambda folder: save_source(source_of(EDGES), folder / "saved"),
}


@pytest.mark.parametrize("name", [*NUMBERS, *OTHERS])
def test_every_result_shows_itself_in_the_same_ways(name, tmp_path, capsys):
    result = {**NUMBERS, **OTHERS}[name](tmp_path)
    assert isinstance(result, Summarised)
    assert "\n" not in str(result)
    capsys.readouterr()
    assert result.summary() is None
    assert capsys.readouterr().out == f"{result!r}\n"
    page = result._repr_html_()
    assert page == as_html(result._rows())
    assert all(name in page for name, _ in result._rows())
    assert repr(result) == as_text(result._rows(), 11)


@pytest.mark.parametrize("name", [*NUMBERS, *OTHERS])
def test_every_result_says_what_was_read(name, tmp_path):
    """The columns that were taken, too: another one is a number of another graph."""
    result = {**NUMBERS, **OTHERS}[name](tmp_path)
    read = dasktc.triangle_count(source_of(EDGES)).read
    assert [row for row in result._rows() if row in read._rows()] == read._rows()
    assert name == "graph" or result.to_dict()["read"] == read.to_dict()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_result_that_is_a_number_is_written_as_one(name, tmp_path):
    result, known = NUMBERS[name](tmp_path), int(dasktc.triangle_count(source_of(EDGES)))
    assert str(result) == str(known)
    file = io.StringIO()
    csv.writer(file).writerow(["graph", result])
    assert file.getvalue() == f"graph,{known}\r\n"


def test_a_count_in_tables_is_its_number():
    result = dasktc.triangle_count(source_of(EDGES))
    table = pd.DataFrame({"graph": ["a"], "triangles": [result]})
    assert table.to_csv(index=False) == f"graph,triangles\na,{int(result)}\n"
    assert str(int(result)) in str(table)
    polars = pytest.importorskip("polars", reason="polars, of the extra test")
    assert polars.Series([result]).dtype == polars.Int64
    assert polars.DataFrame({"triangles": [result]}).rows() == [(int(result),)]


def test_a_graph_shows_questions_and_facts():
    questions = {
        *("triangle_count", "triangles", "edge_support", "clustering", "measures", "square_clustering", "triad_census"),
        *("transitivity", "average_clustering", "core_number", "truss", "triangle_list", "estimate", "cliques"),
        *("similarity", "motifs", "update", "oriented_edges", "plot_degrees", "plot_clustering", "plot_support"),
        *("edge_list", "survey", "triangle_types", "signed_triangles", "temporal_triangles", "save", "close"),
    }
    facts = {"vertices", "edges", "columns", "plan", "read", "client", "is_directed", "is_multigraph", "summary"}
    assert {name for name in dir(dasktc.prepare(source_of(EDGES))) if not name.startswith("_")} == questions | facts


def test_a_count_shows_facts_and_its_statistics():
    result = dasktc.triangle_count(source_of(EDGES), verify=1.0)
    facts = {
        *("triangles", "vertices", "edges", "loops_dropped", "duplicates_dropped", "read", "backend", "kernel"),
        *("reorder", "workers", "plan", "seconds", "stats", "tasks", "plot", "to_dict", "summary"),
    }
    assert {name for name in set(dir(result)) - set(dir(int)) if not name.startswith("_")} == facts
    shown = json.loads(json.dumps(result.to_dict()))
    for name in type(result.stats).__dataclass_fields__:
        assert shown[name] == getattr(result.stats, name)
    assert result.stats.verified == len(result.tasks) == shown["tasks"]
