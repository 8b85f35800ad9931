"""Polars in, Polars out: its frames as sources, and answers in Polars beside those in pandas."""

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc.errors import InputError
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.keywords import keywords
from tests.support.oracle import support
from tests.support.slow_pipeline import skewed_edges

polars = pytest.importorskip("polars", reason="polars, of the extra test")

EDGES = skewed_edges(60, 300, 1)
SRC, DST = (list(side) for side in zip(*EDGES, strict=True))
NAMES = [[f"v{v:03}" for v in side] for side in (SRC, DST)]
QUESTIONS = {
    "triangles": lambda graph, **how: graph.triangles(**how),
    "clustering": lambda graph, **how: graph.clustering(**how),
    "measures": lambda graph, **how: graph.measures(**how),
    "square_clustering": lambda graph, **how: graph.square_clustering(**how),
    "core_number": lambda graph, **how: graph.core_number(**how),
    "edge_support": lambda graph, **how: graph.edge_support(**how),
    "edge_list": lambda graph, **how: graph.edge_list(**how),
    "oriented_edges": lambda graph, **how: graph.oriented_edges(**how),
    "truss": lambda graph, **how: graph.truss(**how),
    "truss of 3": lambda graph, **how: graph.truss(3, **how),
    "triangle_list": lambda graph, **how: graph.triangle_list(**how),
    "some triangles": lambda graph, **how: graph.triangle_list(5, **how),
}


def frame(src=SRC, dst=DST):
    return polars.DataFrame({"src": src, "dst": dst})


@pytest.fixture(scope="module", params=["int", "text"])
def graph(request):
    return dasktc.prepare((SRC, DST) if request.param == "int" else tuple(NAMES), backend="cpu")


def assert_same(found, expected):
    """A Polars frame has pandas' rows, its index as the first column, of Polars' types."""
    assert type(found) is polars.DataFrame
    columns = expected.reset_index() if expected.index.name == "vertex" else expected
    columns = columns.to_frame() if isinstance(columns, pd.Series) else columns
    assert found.columns == list(columns)
    for name, values in columns.items():
        wanted = {"int64": polars.Int64, "float64": polars.Float64}.get(str(values.dtype), polars.String)
        assert found[name].dtype == wanted
        assert found[name].null_count() == 0
        assert found[name].to_list() == values.tolist()


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_comes_in_polars(graph, question):
    ask = QUESTIONS[question]
    assert_same(ask(graph, frame="polars"), ask(graph, frame="pandas"))


def test_answers_for_some(graph):
    some = graph.triangles().index[[3, 1]].tolist()
    assert_same(graph.measures(frame="polars", vertices=some), graph.measures(vertices=some))
    edges = graph.edge_support()[["dst", "src"]].head(4).to_numpy().tolist()
    for question in (graph.edge_support, graph.truss):
        assert_same(question(frame="polars", edges=edges), question(edges=edges))


@pytest.mark.parametrize(
    "options", [{"method": dasktc.Method(partition="hash2d", parts=3)}, {"memory": "17MB"}], ids=str
)
def test_of_parts_and_within_a_budget(options, tmp_path):
    with dasktc.prepare((SRC, DST), backend="cpu", **keywords(**options)) as graph:
        for question in (graph.triangles, graph.edge_support, graph.triangle_list):
            assert_same(question(frame="polars"), question(frame="pandas"))


@pytest.mark.parametrize("of", [(SRC, DST), NAMES], ids=["int", "text"])
@pytest.mark.parametrize("form", [frame, lambda *of: frame(*of).lazy()], ids=["eager", "lazy"])
def test_polars_in_polars_out(form, of):
    graph, expected = dasktc.prepare(form(*of), backend="cpu"), dasktc.prepare(tuple(of), backend="cpu")
    for question in ("triangles", "clustering", "measures", "edge_support", "truss", "core_number", "triangle_list"):
        assert_same(QUESTIONS[question](graph), QUESTIONS[question](expected))
    assert type(graph.triangles(frame="pandas")) is pd.Series
    assert int(dasktc.triangle_count(form(*of))) == int(expected.triangle_count())


def test_no_edges():
    graph = dasktc.prepare(frame([0], [0]), backend="cpu")
    assert graph.triangles().to_dict(as_series=False) == {"vertex": [], "triangles": []}
    assert graph.edge_support().schema == {"src": polars.Int64, "dst": polars.Int64, "support": polars.Int64}


def test_results_that_follow_from_a_frame_do_not_change():
    graph, expected = dasktc.prepare(frame(), backend="cpu"), nx.Graph([(u, v) for u, v in EDGES if u != v])
    assert graph.average_clustering() == pytest.approx(nx.average_clustering(expected))
    assert graph.transitivity() == pytest.approx(nx.transitivity(expected))
    rows = graph.edge_support().rows()
    assert {frozenset((u, v)): count for u, v, count in rows} == support(EDGES)


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_and_weights(lazy):
    table = polars.DataFrame({"x": [9, 9, 9], "w": [8.0, 1.0, 1.0], "to": [1, 2, 0], "from": [0, 1, 2]})
    source = table.lazy() if lazy else table
    graph = dasktc.prepare(source, weight="w")
    assert graph.clustering("w").rows() == [(v, pytest.approx(0.25)) for v in range(3)]
    assert graph.read.what == f"Polars {'Lazy' if lazy else 'Data'}Frame"
    assert (graph.read.columns, graph.read.names, graph.read.width) == ((4, 3), ("from", "to"), 4)
    assert dasktc.prepare(source, columns=("w", "2")).read.names == ("w", "to")
    with pytest.raises(InputError, match="'nowhere'") as error:
        dasktc.prepare(source, columns=("nowhere", "to"))
    assert "\n" not in str(error.value)


def test_of_a_lazy_frame_two_columns_are_computed(tmp_path):
    """A column that is not read is not even computed."""
    ran = []

    def noted(values):
        ran.append(len(values))
        return values

    source = frame().with_columns(other=polars.col("src")).lazy()
    source = source.with_columns(polars.col("other").map_batches(noted, return_dtype=polars.Int64))
    graph = dasktc.prepare(source, columns=("src", "dst"))
    assert graph.edges == len(support(EDGES))
    assert ran == []


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: polars.Series([1, 2]), "polars.series.series.Series holds no edges"),
        (lambda: polars.DataFrame({"a": [1]}), "has the columns a: an edge has two ends"),
        (lambda: frame([0.5, 1.0], [1, 2]), "row 0 of column 'src' of the Polars DataFrame holds 0.5"),
        (lambda: frame([0, None], [1, 2]), "column 'src' of the Polars DataFrame"),
        (lambda: frame().lazy().select(polars.col("none")), r"LazyFrame cannot be read \(ColumnNotFoundError: "),
    ],
)
def test_refused_frames(make, says):
    with pytest.raises(InputError, match=says) as error:
        dasktc.prepare(make())
    assert "\n" not in str(error.value)


def test_columns_of_many_types():
    numbers = np.array([0, 1, 2, 0], dtype="uint16")
    expected = [(0, 1), (1, 1), (2, 1)]
    for cast in (polars.UInt8, polars.Int32, polars.UInt64, polars.Float64):
        source = frame(numbers, np.roll(numbers, -1)).select(polars.all().cast(cast))
        assert dasktc.prepare(source, backend="cpu").triangles().rows() == expected
    text = frame(["a", "b", "c"], ["b", "c", "a"])
    for cast in (polars.Categorical, polars.Enum(["c", "b", "a"])):
        found = dasktc.prepare(text.select(polars.all().cast(cast)), backend="cpu").triangles()
        assert found.rows() == [("a", 1), ("b", 1), ("c", 1)]


def test_without_polars_an_answer_in_it_is_refused_before_anything_is_counted(monkeypatch):
    graph = dasktc.prepare((SRC, DST), backend="cpu")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        InputError, match=r"polars cannot be imported .*pip install polars, or take frame='pandas'"
    ) as error:
        graph.triangles(frame="polars")
    assert "\n" not in str(error.value)
    assert graph._context.counted.by_vertex is None


def test_labels_stay_in_pandas():
    graph = dasktc.prepare(nx.Graph([((0, 0), 1.5), (1.5, "a"), ("a", (0, 0))]))
    with pytest.raises(InputError, match="take frame='pandas'"):
        graph.triangles(frame="polars")


def test_of_a_graph_on_workers(client):
    with dasktc.prepare((SRC, DST), client) as graph:
        for question in ("measures", "edge_support", "truss", "triangle_list", "oriented_edges"):
            assert_same(QUESTIONS[question](graph, frame="polars"), QUESTIONS[question](graph, frame="pandas"))


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
def test_of_a_graph_that_a_device_counts():
    with emulated_cuda.backend(), dasktc.prepare((SRC, DST), backend="cuda") as graph:
        for question in ("triangles", "measures", "edge_support", "triangle_list"):
            assert_same(QUESTIONS[question](graph, frame="polars"), QUESTIONS[question](graph, frame="pandas"))
        found = graph.edge_support(frame="polars", edges=[(SRC[0], DST[0])])
        assert found.rows() == [(SRC[0], DST[0], support(EDGES)[frozenset((SRC[0], DST[0]))])]
