"""Weighted and directed measures against NetworkX, for every scheme, order and kind of source."""

from dataclasses import dataclass
from math import comb

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.backends.cpu import edge_values
from dasktc.errors import CountError, InputError
from dasktc.executors.base import CPU
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions, Source
from dasktc.options import Method, RunOptions
from dasktc.pipeline.stages import attributes
from dasktc.questions import triad_census as census
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import PLANS, REORDERS, random_edges, tuned
from tests.support.tiers import some

KINDS = ["directed", "weighted", "both"]


def weighted_edges(ids=None):
    """Edge lists, including loops, whose rows may give one edge several weights."""
    weights = st.one_of(st.integers(-3, 5).map(float), st.floats(-10, 10).map(lambda w: round(w, 3)))
    edges = oracle.multigraphs() if ids is None else ids
    return edges.flatmap(
        lambda found: st.lists(weights, min_size=len(found), max_size=len(found)).map(
            lambda w: [(*edge, of) for edge, of in zip(found, w, strict=True)]
        )
    )


def expected_graph(rows, directed, duplicates):
    """The NetworkX graph to compare with: each edge has its last row's weight, or the sum of all."""
    graph = nx.DiGraph() if directed else nx.Graph()
    for u, v, weight in rows:
        before = graph.get_edge_data(u, v, {"w": 0})["w"] if duplicates == "sum" else 0
        graph.add_edge(u, v, w=before + weight)
    return graph


def outcome(function):
    try:
        return function()
    except (InputError, ZeroDivisionError) as error:
        return type(error)


def assert_clustering(found, expected):
    assert found.name == "clustering"
    assert found.index.is_monotonic_increasing
    expected = {v: c for v, c in expected.items() if v in found.index}
    assert found.to_dict() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    weighted_edges(),
    st.sampled_from(KINDS),
    st.sampled_from(["sum", "last"]),
    st.sampled_from([{}, *PLANS]),
    st.sampled_from(REORDERS),
    st.sampled_from([1, 3]),
)
def test_any_multigraph(rows, kind, duplicates, plan, reorder, shards):
    directed, weight = kind != "weighted", None if kind == "directed" else "w"
    frame = pd.DataFrame(rows, columns=["a", "b", "w"]).astype({"w": float})
    keep = {} if weight is None else dict(weight=weight, duplicates=duplicates)
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame, directed=directed, **keywords(reorder=reorder, **keep, **plan))
    simple = expected_graph(rows, directed, duplicates)
    largest = max((w for *_, w in simple.edges(data="w")), default=1)
    if weight and largest == 0 and graph.edges:
        with pytest.raises(InputError, match="largest weight of 'w' is 0"):
            graph.clustering(weight=weight)
    elif weight is None or abs(largest) > 0.01:
        expected = nx.clustering(simple, weight=weight)
        found = graph.clustering(weight=weight)
        scale = max([1, *map(abs, expected.values())])
        assert found.to_dict() == pytest.approx({v: expected[v] for v in found.index}, rel=1e-12, abs=1e-12 * scale)
        if graph.vertices:
            mean = np.mean([expected[v] for v in found.index])
            assert graph.average_clustering(weight=weight) == pytest.approx(mean, rel=1e-12, abs=1e-12 * scale)
    if directed:
        isolated = simple.number_of_nodes() - graph.vertices
        assert graph.triad_census(isolated=isolated) == nx.triadic_census(simple)


@given(oracle.text_multigraphs(), st.sampled_from([1, 2]))
def test_ids_of_text(edges, shards):
    frame = pd.DataFrame(edges, columns=["a", "b"], dtype="str").assign(w=2.0)
    simple = nx.DiGraph(edges)
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame, weight="w", directed=True, ids="text")
    assert_clustering(graph.clustering(), nx.clustering(simple))
    assert_clustering(graph.clustering(weight="w"), nx.clustering(simple))


def sources(tmp_path, graph):
    """The same weighted, directed graph in every kind of source, with the name of its weights there."""
    frame = nx.to_pandas_edgelist(graph)[["source", "target", "w"]]
    array = nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), weight="w", format="csr")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[["w", "target", "source"]].to_csv(tmp_path / "turned.csv", index=False)
    frame.to_csv(tmp_path / "a.txt", index=False, header=False, sep=" ")
    comments = "# a comment\n" + (tmp_path / "a.txt").read_text().replace(" ", "  ", 7) + "\n777\n"
    (tmp_path / "b.txt").write_text(comments)
    scipy.io.mmwrite(tmp_path / "a.mtx", array)
    yield frame, "w"
    yield frame, "2"
    yield pa.table(frame), "w"
    yield graph, "w"
    yield igraph.Graph.DataFrame(frame), "w"
    yield dask_frame(frame), "w"
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        yield array.asformat(form), "w"
    for name, weight in [
        ("a.parquet", "w"),
        ("a.csv", "w"),
        ("a.csv", "2"),
        ("turned.csv", "0"),
        ("a.txt", "2"),
        ("b.txt", "2"),
        ("a.mtx", "w"),
    ]:
        yield str(tmp_path / name), weight


def dask_frame(frame):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=3)


def test_every_kind_of_source(tmp_path):
    rng = np.random.default_rng(1)
    graph = nx.gnp_random_graph(40, 0.2, seed=3, directed=True)
    for _, _, data in graph.edges(data=True):
        data["w"] = round(float(rng.uniform(0.1, 2)), 6)
    expected = nx.clustering(graph, weight="w")
    first = 0
    for source, weight in sources(tmp_path, graph):
        found = dasktc.prepare(source, weight=weight, directed=True).clustering(weight=weight, frame="pandas")
        first = 1 if str(source).endswith(".mtx") else 0
        assert found.to_dict() == pytest.approx(
            {v + first: c for v, c in expected.items() if v + first in found.index}, rel=1e-12
        )
        assert len(found) == sum(degree > 0 for _, degree in graph.degree())


def test_text_ids_of_files(tmp_path):
    rows = [("x", "y", 1.5), ("y", "z", 2.0), ("z", "x", 0.5), ("z", "a b", 1e-3)]
    csv = tmp_path / "names.csv"
    csv.write_text("from,to,w\n" + "".join(f'"{a}",{b},{w}\n' for a, b, w in rows))
    graph = dasktc.prepare(str(csv), weight="w")
    assert_clustering(graph.clustering(weight="w"), nx.clustering(expected_graph(rows, False, "last"), weight="w"))


def test_attributes_of_networkx_edges_default_to_one():
    graph = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    graph[0][1]["weight"] = 4
    found = dasktc.prepare(graph, weight="weight").clustering(weight="weight")
    assert_clustering(found, nx.clustering(graph, weight="weight"))


def test_the_largest_weight_may_be_a_loops():
    rows = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (5, 5, 27.0)]
    frame = pd.DataFrame(rows, columns=["a", "b", "w"])
    assert dasktc.prepare(frame, weight="w").clustering(weight="w").to_dict() == pytest.approx(
        dict.fromkeys(range(3), 1 / 27)
    )


@pytest.mark.parametrize(
    ("rows", "directed", "fits"),
    [
        ([(1, 2, 3.0), (1, 2, 3.0)], False, True),
        ([(1, 2, 3.0), (2, 1, 3.0)], False, True),
        ([(1, 2, 3.0), (2, 1, 4.0)], True, True),
        ([(1, 2, 3.0), (2, 1, 4.0)], False, False),
        ([(1, 2, 3.0), (1, 2, 4.0)], True, False),
        ([(1, 1, 3.0), (1, 1, 4.0)], False, False),
    ],
)
def test_other_weights_of_an_edge_are_refused(rows, directed, fits):
    frame = pd.DataFrame(rows, columns=["a", "b", "w"])
    if fits:
        dasktc.prepare(frame, weight="w", directed=directed)
    else:
        with pytest.raises(
            InputError, match=r"edge between 1 and (2|itself) the weights 3 and 4.*duplicates='sum'"
        ) as error:
            dasktc.prepare(frame, weight="w", directed=directed)
        assert "\n" not in str(error.value)
    for duplicates in ("sum", "last"):
        dasktc.prepare(frame, weight="w", directed=directed, duplicates=duplicates)


FRAME = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 0], "w": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        (FRAME, dict(weight="x"), "no column 'x': its columns are a, b, w"),
        (FRAME, dict(weight="a"), "'a' is named for ids and for values"),
        (FRAME.assign(w=[1, None, 2]), dict(weight="w"), "row 1 of column 'w'.* holds nan where a weight is expected"),
        (FRAME.assign(w=[1, 2, np.inf]), dict(weight="w"), "row 2 of column 'w'.* holds inf"),
        (FRAME.assign(w=["a", "b", "c"]), dict(weight="w"), "weights are numbers"),
        (FRAME.assign(w=np.array([1, "b", 2], dtype=object)), dict(weight="w"), "row 1 of .* holds 'b'"),
        (FRAME, dict(directed="yes"), "neither True nor False"),
        (FRAME, dict(weight="w", duplicates="max"), "choose one of sum, last"),
        (FRAME, dict(duplicates="sum"), "without a weight"),
        (np.array([[0, 1], [1, 2]]), dict(weight="w"), "pass a DataFrame"),
        (nx.path_graph(3), dict(directed=True), "undirected graph.*to_directed"),
        (igraph.Graph.Ring(3), dict(directed=True), "undirected graph"),
        (igraph.Graph.Ring(3), dict(weight="w"), "no attribute 'w'"),
        (dasktc.generate.kronecker(3, 2), dict(weight="w"), "has no weights")
        if hasattr(dasktc, "generate")
        else (FRAME, dict(weight=""), "is no name"),
    ],
)
def test_what_is_refused(source, options, reason):
    with pytest.raises(InputError, match=reason) as error:
        dasktc.prepare(source, **keywords(**options))
    assert "\n" not in str(error.value)


def test_what_was_not_kept_is_refused():
    plain, weighted = dasktc.prepare(FRAME), dasktc.prepare(FRAME, weight="w")
    with pytest.raises(InputError, match="weight='w' is asked for, but the graph was prepared without weights"):
        plain.clustering(weight="w")
    with pytest.raises(InputError, match="prepared with weight='w'"):
        weighted.clustering(weight="v")
    for graph in (plain, weighted):
        with pytest.raises(InputError, match="directed=True"):
            graph.triad_census()
    assert weighted.clustering().tolist() == [1, 1, 1]
    assert not weighted.is_directed()


def test_a_row_without_a_weight_is_named_by_its_number_in_the_file(tmp_path):
    """Row groups are parts, and each part is read separately."""
    frame = pd.DataFrame({"a": range(9), "b": range(1, 10), "w": 1.0})
    frame.loc[7, "w"] = np.nan
    frame.to_parquet(tmp_path / "w.parquet", row_group_size=2)
    source = open_source(str(tmp_path / "w.parquet"), ReadOptions(weight="w", blocksize=1))
    assert len(source.parts) == 5
    for read in (source.parts[3].read, lambda backend: list(source.parts[3].chunks(backend, 1))):
        with pytest.raises(InputError, match=r"row 7 of column 'w'"):
            read(CPU)


def test_a_file_of_another_weight_is_refused(tmp_path):
    lines = {"a": "1 2 3\n2 3 x\n", "b": "1 2 3\n2 3\n", "c": "1 2 3\n2 3 nan\n"}
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=rf"line 2 of .*{name} holds"):
            dasktc.prepare(str(tmp_path / name), weight="2")
    with pytest.raises(InputError, match="no column 'w': it has no header"):
        dasktc.prepare(str(tmp_path / "a"), weight="w")
    (tmp_path / "d.metis").write_text("3 2\n2\n1 3\n2\n")
    with pytest.raises(InputError, match="weights are not read"):
        dasktc.prepare(str(tmp_path / "d.metis"), weight="w")
    (tmp_path / "e.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 5\n")
    with pytest.raises(InputError, match="symmetric matrix"):
        dasktc.prepare(str(tmp_path / "e.mtx"), directed=True)
    assert dasktc.prepare(str(tmp_path / "e.mtx"), weight="w").edges == 1


TRIANGLE = [(0, 1, 1), (1, 2, 1), (2, 0, 1)]


def random_rows(seed, text=False):
    """Rows with loops, repeated edges of differing weights, both directions, and weights that may be negative or 0."""
    rng = np.random.default_rng(seed)
    ends, weights = rng.integers(0, 50, (700, 2)), rng.integers(-2, 9, 700) / 4
    columns = pd.DataFrame(ends, columns=["a", "b"])
    return (columns.map(lambda end: f"v {end}") if text else columns).assign(w=weights)


PLACES = {
    "memory": lambda client, folder: dict(memory="20MB", work_dir=folder),
    "workers": lambda client, folder: dict(client=client, distribute="always"),
    "one worker's call": lambda client, folder: dict(client=client, distribute="never"),
    "workers, memory": lambda client, folder: dict(client=client, memory="20MB", work_dir=folder, distribute="always"),
}
SCHEMES = [
    dict(partition="whole", splits=3),
    dict(partition="hash2d", parts=3, reorder="collective"),
    dict(partition="vertical", parts=2, column_parts=3),
    dict(partition="proxy", parts=3),
]
FEW_TASKS = [{name: min(value, 2) if name == "parts" else value for name, value in plan.items()} for plan in SCHEMES]
"""The same schemes for workers: whose tasks have which parts was settled in this process."""
SETTLED = {"one worker's call": ("hash2d",), "workers, memory": ("whole", "hash2d")}
"""Schemes for places that run the others' code: of one block, and of several."""


@pytest.mark.parametrize(
    ("place", "plan", "directed"),
    some(
        [
            (place, plan, (number + row) % 2 == 0)
            for row, place in enumerate(PLACES)
            for number, plan in enumerate(SCHEMES if place == "memory" else FEW_TASKS)
            if plan["partition"] in SETTLED.get(place, (plan["partition"],))
        ],
        lambda place, plan, directed: plan["partition"] == {"memory": "hash2d", "workers, memory": "whole"}.get(place),
    ),
    ids=lambda value: value if isinstance(value, str) else str(value),
)
def test_every_place_answers_as_networkx(client, tmp_path, place, plan, directed):
    frame = random_rows(len(place), text=plan["partition"] == "whole")
    simple = expected_graph(frame.itertuples(index=False), directed, "sum")
    options = keywords(weight="w", directed=directed, duplicates="sum", **plan, **PLACES[place](client, tmp_path))
    with dasktc.prepare(frame, **options) as graph:
        assert_clustering(graph.clustering("w", frame="pandas"), nx.clustering(simple, weight="w"))
        assert_clustering(graph.clustering(frame="pandas"), nx.clustering(simple))
        chosen = sorted(simple)[:7]
        some = graph.clustering("w", vertices=chosen, frame="pandas")
        assert some.tolist() == pytest.approx([nx.clustering(simple, weight="w")[vertex] for vertex in chosen])
        if directed:
            assert graph.triad_census() == nx.triadic_census(simple)


@pytest.mark.parametrize("plan", [{}, dict(partition="hash2d", parts=2), dict(partition="proxy", parts=2)], ids=str)
def test_rows_come_in_ranges_where_memory_is_short(monkeypatch, tmp_path, plan):
    """Parts are read in chunks, and a block takes the rows of some sources at a time."""
    frame, spans, arcs_of_block = random_rows(3), [], attributes.arcs_of_block
    frame.to_csv(tmp_path / "a.csv", index=False)
    monkeypatch.setattr(
        attributes, "arcs_of_block", lambda *given: spans.append((given[3], len(given[1]))) or arcs_of_block(*given)
    )
    options = keywords(weight="w", directed=True, duplicates="last", edge_columns={"w": "max"}, memory="20MB", **plan)
    simple = expected_graph(frame.itertuples(index=False), True, "last")
    large_rows = tuned(dealt_bytes=10**5, value_bytes=10**5)
    with large_rows, dasktc.prepare(tmp_path / "a.csv", **options) as graph:
        assert_clustering(graph.clustering("w"), nx.clustering(simple, weight="w"))
        assert graph.triad_census() == nx.triadic_census(simple)
        total = graph.survey(lambda batch: float(sum(batch[f"w_{pair}"].sum() for pair in ("uv", "uw", "vw"))), ["w"])
    assert len({span for span, _ in spans}) > 1
    assert all(chunks > 2 for _, chunks in spans)
    here = dasktc.prepare(frame, edge_columns={"w": "max"}, threads=1)
    assert total == here.survey(
        lambda batch: float(sum(batch[f"w_{pair}"].sum() for pair in ("uv", "uw", "vw"))), ["w"]
    )
    frame[frame.a != frame.b].to_csv(tmp_path / "a.csv", index=False)
    with large_rows, pytest.raises(InputError, match=r"edge between \d+ and \d+ the weights"):
        dasktc.prepare(tmp_path / "a.csv", **options | {"duplicates": None})


def test_tasks_are_planned_with_the_values_of_their_edges():
    """Within a memory in which edges alone are one block, they are several with weights, or with a column."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 5000, (200_000, 2)), columns=["a", "b"]).assign(w=rng.random(200_000))
    keep = dict(weight="w", directed=True, duplicates="last")
    here = dasktc.prepare(frame, **keep, threads=1)
    with (
        dasktc.prepare(frame, memory="6MB") as plain,
        dasktc.prepare(frame, memory="6MB", **keep) as weighted,
        dasktc.prepare(frame, memory="6MB", edge_columns={"w": "max"}) as surveyed,
    ):
        assert plain.plan.parts == 1 < weighted.plan.parts == surveyed.plan.parts
        expected = here.clustering("w")
        pd.testing.assert_series_equal(weighted.clustering("w"), expected, rtol=1e-12)
        assert weighted.triad_census() == here.triad_census()
        assert surveyed.survey(lambda batch: len(batch["w_uv"]), ["w"]) == int(here.triangle_count())


def test_sums_do_not_depend_on_the_order_in_which_tasks_end(client):
    frame = random_rows(8)
    how = {"partition": "hash2d", "parts": 2, "splits": 2}  # 16 tasks
    options = keywords(weight="w", duplicates="last", client=client, distribute="always", **how)
    with dasktc.prepare(frame, **options) as graph:
        first, second = (graph.clustering("w", frame="pandas") for _ in range(2))
    pd.testing.assert_series_equal(first, second, check_exact=True)


@dataclass
class ChangingPart:
    """A part that has other rows when it is read again."""

    rows: list
    upstream: None = None

    def read(self, backend, upstream=None):
        """Return the next rows."""
        return pd.DataFrame(self.rows.pop(0), columns=["src", "dst", "weight"]).astype({"weight": float})


@pytest.mark.parametrize(
    ("rows", "reason", "shards"),
    [
        ([(0, 1, 1), (1, 2, 1)], "1 edge of block .* no row", 1),
        ([(0, 1, 1), (1, 2, 1)], "1 edge of block .* no row", 2),
        ([*TRIANGLE, (0, 1, 1)], "3 rows of edges were 4", 1),
        ([*TRIANGLE, (0, 1, 1)], "3 rows of edges were 4", 2),
        ([*TRIANGLE, (0, 7, 1)], "1 vertex is new", 2),
    ],
)
def test_a_source_that_changes_between_its_passes_is_refused(rows, reason, shards):
    """Within memory a source is read twice."""
    source = Source("rows", (ChangingPart([TRIANGLE, rows]),), weight="w")
    with tuned(least_shards=shards), pytest.raises(CountError, match=f"{reason}.*second pass over the source"):
        dasktc.prepare(source, memory="20MB", weight="w")


def test_loops_beyond_memory_are_refused():
    frame = pd.concat([FRAME, pd.DataFrame({"a": [5], "b": [5], "w": [1.0]}, index=[0] * 200_000)])
    with pytest.raises(InputError, match=r"200,000 loops take 20 MB while the largest weight is found"):
        dasktc.prepare(frame, weight="w", memory="20MB")
    dasktc.prepare(frame, weight="w")


@pytest.mark.parametrize("shards", [1, 3])
def test_edges_of_several_values_are_named(shards):
    frame = pd.DataFrame({"a": [9, 3, 5, 5, 9], "b": [3, 5, 9, 3, 5], "w": [1, 2, 1, 3, 1]})
    texts = frame.assign(a=frame.a.astype(str), b=frame.b.astype(str))
    multigraph = nx.from_pandas_edgelist(frame, "a", "b", ["w"], nx.MultiGraph)
    asked = [(rows, keep) for rows in (frame, texts) for keep in (dict(weight="w"), dict(edge_columns=["w"]))]
    for source, keep in [*asked, (multigraph, dict(weight="w"))]:
        with (
            tuned(least_shards=shards),
            pytest.raises(InputError, match=r"rows give the edge between '?3'? and '?5'? "),
        ):
            dasktc.prepare(source, memory="20MB", **keep)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_vertices_in_shards(tmp_path, plan):
    """Within memory, with rows in chunks; averages are those of one process."""
    frame = random_rows(3)
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = keywords(weight="w", directed=True, duplicates="last", **plan)
    here = dasktc.prepare(frame, weight="w", directed=True, duplicates="last", threads=1)
    with tuned(least_shards=3), dasktc.prepare(tmp_path / "a.csv", memory="20MB", **options) as graph:
        assert graph.plan.shards == 3
        assert graph.average_clustering("w") == pytest.approx(here.average_clustering("w"), rel=1e-12)
        assert graph.average_clustering() == pytest.approx(here.average_clustering(), rel=1e-12)
        for vertices in (None, sorted(here.triangles().index[:5])):
            found = graph.clustering("w", vertices=vertices, frame="dask" if vertices is None else "pandas")
            expected = here.clustering("w", vertices=vertices)
            pd.testing.assert_series_equal(found.compute() if vertices is None else found, expected, rtol=1e-12)
        with pytest.raises(InputError, match="the caller would get a number of every vertex"):
            graph.clustering("w")


def test_updates_are_refused():
    with pytest.raises(InputError, match="weights or directions"):
        dasktc.prepare(FRAME, weight="w").update(add=([0], [3]))


def test_some_vertices_and_other_frames():
    graph = dasktc.prepare(FRAME.assign(w=[8.0, 1, 1]), weight="w")
    assert graph.clustering(weight="w", vertices=[2, 0]).to_dict() == pytest.approx({2: 0.25, 0: 0.25})
    assert graph.clustering(weight="w", frame="dask").compute().tolist() == pytest.approx([0.25] * 3)
    assert graph.square_clustering(vertices=[1]).to_dict() == {1: 0}


def test_a_closed_graph_keeps_nothing():
    graph = dasktc.prepare(FRAME, weight="w")
    graph.close()
    assert not isinstance(graph._context.prepared.attributes, attributes.EdgeAttributes)
    with pytest.raises(InputError, match="this graph was closed"):
        graph.clustering("w")
    with pytest.raises(InputError):
        graph.clustering(weight="w")


def test_results_do_not_depend_on_threads():
    frame = nx.to_pandas_edgelist(nx.gnm_random_graph(200, 3000, seed=1)).assign(
        w=np.random.default_rng(2).random(3000)
    )
    first, second = (dasktc.prepare(frame, weight="w", threads=threads, method=Method(splits=4)) for threads in (1, 3))
    pd.testing.assert_series_equal(first.clustering(weight="w"), second.clustering(weight="w"), check_exact=True)


def test_edges_are_put_off_where_the_other_list_is_shorter(monkeypatch):
    """Both ways of visiting an edge are taken, and agree with NetworkX."""
    frame = nx.to_pandas_edgelist(nx.gnp_random_graph(70, 0.6, seed=1, directed=True))
    graph, calls, group = dasktc.prepare(frame, directed=True), [], edge_values.group
    monkeypatch.setattr(edge_values, "group", lambda *args: calls.append(len(args[2])) or group(*args))
    simple = nx.from_pandas_edgelist(frame, create_using=nx.DiGraph)
    assert_clustering(graph.clustering(), nx.clustering(simple))
    assert graph.triad_census() == nx.triadic_census(simple)
    assert len(calls) == 2 * graph.plan.splits
    assert min(calls) > 10


def test_types_of_triads_are_networkx():
    assert tuple(nx.triadic_census(nx.DiGraph([(0, 1)]))) == census.TYPES


def test_counts_of_pairs_pass_64_bits():
    many = np.full(100, 2**31 - 1)
    assert census._pairs(many, many, many)["021D"] == 100 * comb(2**31 - 1, 2) > 2**63


@given(oracle.multigraphs(), st.sampled_from([{}, *PLANS]), st.sampled_from(REORDERS))
def test_squares(edges, plan, reorder):
    graph = dasktc.prepare(pd.DataFrame(edges, columns=["a", "b"]), **keywords(reorder=reorder, **plan))
    found = graph.square_clustering()
    assert found.name == "square_clustering"
    assert found.to_dict() == {v: c for v, c in nx.square_clustering(nx.Graph(edges)).items() if v in found.index}


@pytest.mark.parametrize("edges", [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS])
def test_squares_of_named_graphs(edges):
    found = dasktc.prepare(pd.DataFrame(edges, columns=["a", "b"])).square_clustering()
    assert found.to_dict() == {v: c for v, c in nx.square_clustering(nx.Graph(edges)).items() if v in found.index}


def test_squares_on_workers_and_within_a_budget(client, tmp_path):
    edges = random_edges(40, 200, 4)
    frame, parts = pd.DataFrame(edges, columns=["a", "b"]), Method(partition="hash2d", parts=2)
    expected = {v: c for v, c in nx.square_clustering(nx.Graph(edges)).items() if c}
    for options in (
        {"client": client, "run": RunOptions(distribute="always")},
        {"client": client, "run": RunOptions(distribute="always"), "method": parts},
        {"memory": "20MB", "method": parts},
        {"client": client, "memory": "20MB", "run": RunOptions(distribute="always", work_dir=tmp_path)},
    ):
        with dasktc.prepare(frame, **options) as graph:
            found = graph.square_clustering(frame="pandas")
            assert {v: c for v, c in found.items() if c} == expected


def test_squares_that_do_not_fit_a_worker_are_refused():
    source = generate.random_graph(10_000, 400_000)
    with (
        dasktc.prepare(source, memory="16MB") as graph,
        pytest.raises(InputError, match=r"398,\d+ edges needs .* MB on one worker, more than the .* MB"),
    ):
        graph.square_clustering()


def test_weights_are_named_by_position_too():
    frame = pd.DataFrame({"a": [0, 1, 2, 0], "b": [1, 2, 0, 3], "w": [1.0, 2.0, 4.0, 1.0]})
    by_name = dasktc.prepare(frame, weight="w").clustering("w", frame="pandas")
    by_place = dasktc.prepare(frame, weight=2)
    pd.testing.assert_series_equal(by_place.clustering(2, frame="pandas"), by_name)
    assert by_place.average_clustering("2") == pytest.approx(by_name.mean())


@pytest.mark.parametrize("weight", [-1, True, 2.0, "", np.ones(3), ["w"]], ids=str)
def test_what_names_no_weights_is_refused(weight):
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 0], "w": [1.0, 2.0, 4.0]})
    with pytest.raises(InputError, match="weight"):
        dasktc.prepare(frame, weight=weight)
    with pytest.raises(InputError, match="weight"):
        dasktc.prepare(frame, weight="w").clustering(weight)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_lost_or_repeated_task_is_an_error(monkeypatch, more):
    graph = dasktc.prepare(pd.DataFrame(oracle.complete(9), columns=["a", "b"]).assign(w=1.0), weight="w")
    sums = edge_values.sums
    monkeypatch.setattr(edge_values, "sums", lambda *given: (sums(*given)[0], sums(*given)[1] + more))
    with pytest.raises(CountError, match="wedges, but the degrees give 84: edges were lost or repeated"):
        graph.clustering("w")


def test_weights_of_loops_alone_have_no_coefficients():
    frame = pd.DataFrame({"a": [1], "b": [1], "w": [0.0]})
    assert len(dasktc.prepare(frame, weight="w").clustering("w")) == 0


def test_ratios_of_weights_beyond_float64_are_refused_and_shifted_ones_counted():
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 0], "w": [1e-9, -1e300, -1e300]})
    with pytest.raises(InputError, match="weights of 'w' divided by the largest, 1e-09, exceed float64: shift them"):
        dasktc.prepare(frame, weight="w").clustering("w")
    shifted = dasktc.prepare(frame.assign(w=frame.w + 2e300), weight="w").clustering("w")
    assert shifted.to_list() == pytest.approx([0.25 ** (1 / 3)] * 3)
