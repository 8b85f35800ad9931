"""Similarity of vertices, against NetworkX, igraph and the definitions, for every scheme, order and executor."""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction
from math import fsum, inf, log, sqrt

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.backends.cpu import hub_tables
from dasktc.errors import CountError, InputError
from dasktc.executors.base import MemoryStore
from dasktc.executors.local import LocalExecutor
from dasktc.executors.stores.file_store import FileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import SIMILARITIES, Options
from dasktc.questions import adjacency, similarity
from dasktc.questions.similarity import MEASURES, MOST
from tests.support import oracle
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import prepare, skewed_edges, source_of, tuned, within
from tests.support.tiers import each_once, some

NAMES = list(SIMILARITIES)
WEIGHTED = NAMES[5:]
PLANS = [
    dict(partition="whole", splits=3),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=3),
    dict(partition="vertical", parts=2),
    dict(partition="proxy", parts=3),
]
REORDERS = ["degree", "collective", "indegree", "none"]
EDGES = [*nx.gnm_random_graph(40, 240, seed=5).edges(), (3, 3), (40, 41), (41, 40), (1, 40)]
NETWORKX = {
    "jaccard": nx.jaccard_coefficient,
    "adamic_adar": nx.adamic_adar_index,
    "resource_allocation": nx.resource_allocation_index,
}


class Oracle:
    """The measures by their definitions, with sets."""

    def __init__(self, edges):
        self.edges = oracle.clean(edges)
        self.neighbours = {vertex: set() for edge in self.edges for vertex in edge}
        for u, v in self.edges:
            self.neighbours[u].add(v)
            self.neighbours[v].add(u)

    def value(self, name, u, v):
        of_u, of_v = self.neighbours[u], self.neighbours[v]
        common, degrees = of_u & of_v, sorted((len(of_u), len(of_v)))
        return {
            "jaccard": lambda: len(common) / len(of_u | of_v),
            "overlap": lambda: len(common) / degrees[0],
            "cosine": lambda: sqrt(Fraction(len(common) ** 2, degrees[0] * degrees[1])),
            "sorensen": lambda: 2 * len(common) / sum(degrees),
            "common_neighbors": lambda: len(common),
            "adamic_adar": lambda: fsum(
                1 / np.log(d) if d > 1 else inf for d in map(len, map(self.neighbours.get, common))
            ),
            "resource_allocation": lambda: fsum(1 / len(self.neighbours[w]) for w in common),
        }[name]()

    def most_similar(self, name, top):
        rows = []
        for u in sorted(self.neighbours):
            others = {v for w in self.neighbours[u] for v in self.neighbours[w]} - {u}
            values = sorted((-self.value(name, u, v), v) for v in others)
            rows += [(u, v, -value) for value, v in values[:top]]
        return rows


def check_rows(frame, name, expected):
    assert list(frame.columns) == ["src", "dst", name]
    assert frame[name].dtype == (np.int64 if name == "common_neighbors" else np.float64)
    assert [*zip(frame.src, frame.dst, strict=True)] == [(u, v) for u, v, _ in expected]
    np.testing.assert_allclose(frame[name], [value for *_, value in expected], rtol=1e-13, atol=0)


def check(graph, edges, names=NAMES, tops=(3,)):
    known = Oracle(edges)
    ends = sorted(tuple(sorted(edge)) for edge in known.edges)
    vertices = sorted(known.neighbours)
    pairs = [(u, v) for u in vertices[::5] for v in vertices]
    for name in names:
        check_rows(
            graph.similarity(measure=name, frame="pandas"), name, [(u, v, known.value(name, u, v)) for u, v in ends]
        )
        if pairs:
            check_rows(
                graph.similarity(pairs, name, frame="pandas"), name, [(u, v, known.value(name, u, v)) for u, v in pairs]
            )
        for top in tops:
            frame = graph.similarity(measure=name, top=top, frame="pandas")
            check_rows(frame, name, known.most_similar(name, top))


@pytest.mark.parametrize(
    "edges", [pytest.param(edges, id=name) for name, edges, _ in oracle.GRAPHS if len(edges) < 2000]
)
def test_named_graphs(edges):
    check(prepare(edges), edges, tops=(1, 7))


@pytest.mark.parametrize(("plan", "reorder"), each_once((plan, reorder) for plan in PLANS for reorder in REORDERS))
def test_plans_and_reorders(plan, reorder):
    check(prepare(EDGES, reorder=reorder, **plan), EDGES)


@given(oracle.text_multigraphs(), st.sampled_from(PLANS), st.sampled_from(NAMES))
def test_any_multigraph_of_text(edges, plan, name):
    check(prepare(edges, **plan), edges, [name])


@given(oracle.multigraphs(), st.sampled_from(PLANS), st.sampled_from(NAMES))
def test_any_multigraph(edges, plan, name):
    check(prepare(edges, **plan), edges, [name])


@pytest.mark.parametrize("file", ["email-Eu-core.csv.gz", "netscience.csv.gz", "dolphins.mtx.gz", "polbooks.mtx.gz"])
def test_other_libraries_have_the_same_numbers(data, file):
    graph = dasktc.prepare(str(data / file), threads=2)
    ends = graph.edge_support()[["src", "dst"]].to_numpy()
    ids, places = np.unique(ends, return_inverse=True)
    random = ids[np.random.default_rng(1).integers(0, len(ids), (500, 2))]
    random = random[random[:, 0] != random[:, 1]]
    simple = nx.Graph(ends.tolist())
    other = igraph.Graph(edges=places.reshape(-1, 2))
    for pairs in (None, random):
        asked = ends if pairs is None else pairs
        for name, of_networkx in NETWORKX.items():
            known = [value for *_, value in of_networkx(simple, list(map(tuple, asked.tolist())))]
            np.testing.assert_allclose(graph.similarity(pairs, name)[name], known, rtol=1e-12, atol=0)
        at = ids.searchsorted(asked).tolist()
        for name, of_igraph in (("jaccard", other.similarity_jaccard), ("sorensen", other.similarity_dice)):
            np.testing.assert_allclose(
                graph.similarity(pairs, name)[name], of_igraph(pairs=at, loops=False), rtol=1e-15, atol=0
            )


def test_pairs_in_every_form_are_answered_as_given():
    graph, known = prepare(EDGES), Oracle(EDGES)
    pairs = [(5, 3), (3, 5), (3, 3), (5, 3), (40, 2)]
    expected = [(u, v, known.value("adamic_adar", u, v)) for u, v in pairs]
    columns = [list(ends) for ends in zip(*pairs, strict=True)]
    forms = [
        pairs,
        np.array(pairs),
        pd.DataFrame(pairs, columns=["x", "y"]),
        pd.DataFrame(pairs, columns=["src", "dst"]).assign(w=1)[["w", "dst", "src"]],
        columns,
        [np.array(ends) for ends in columns],
    ]
    for form in forms:
        check_rows(graph.similarity(form, "adamic_adar"), "adamic_adar", expected)
    assert graph.similarity(pairs, frame="dask").compute().equals(graph.similarity(pairs))
    assert graph.similarity([], "overlap").empty
    for name, question in (("pairs", graph.similarity), ("edges", lambda rows: graph.edge_support(edges=rows))):
        with pytest.raises(InputError, match=f"{name} has columns 'u' and 'v', which are names of ids, and so are"):
            question(pd.DataFrame(pairs, columns=["u", "v"]).assign(v2=0).rename(columns={"v2": "v"}))
    text = prepare([("b", "a"), ("a", "10"), ("10", "b"), ("9", "a")])
    assert text.similarity([("9", "b"), ("b", "9")], "common_neighbors").values.tolist() == [
        ["9", "b", 1],
        ["b", "9", 1],
    ]


def test_a_vertex_is_its_own_and_its_leaves_make_adamic_adar_infinite():
    graph = prepare([(0, 1), (0, 2), (1, 2), (2, 3)])
    assert graph.similarity([(2, 2), (0, 0)], "jaccard")["jaccard"].tolist() == [1, 1]
    assert graph.similarity([(2, 2), (0, 0)], "adamic_adar")["adamic_adar"].tolist() == [inf, 1 / log(2) + 1 / log(3)]


def test_labels_of_any_type():
    graph = dasktc.prepare(nx.Graph([((0, "a"), 1.5), (1.5, (2,)), ((2,), (0, "a")), (1.5, 7)]))
    assert graph.similarity([((2,), 7)], "common_neighbors").values.tolist() == [[(2,), 7, 1]]
    assert len(graph.similarity(top=2)) == 8
    with pytest.raises(InputError, match=r"pairs has 1 id that is not in the graph, for example 9"):
        graph.similarity([((2,), 9)])


def test_ties_are_in_ascending_order():
    graph = prepare([(0, leaf) for leaf in (9, 3, 7, 5, 1)])
    frame = graph.similarity(top=2)
    assert frame.values.tolist() == [
        [1, 3, 1], [1, 5, 1], [3, 1, 1], [3, 5, 1], [5, 1, 1], [5, 3, 1], [7, 1, 1], [7, 3, 1], [9, 1, 1], [9, 3, 1]
    ]  # fmt: skip


TIED = [*((0, w) for w in (10, 11, 12)), *((1, w) for w in (10, 11, 12, *range(20, 26))), (2, 10)]
"""Vertices 1 and 2 have cosines 3 / √27 and 1 / √3 with vertex 0."""


def test_equal_quotients_are_ties():
    assert 3 / sqrt(27) < 1 / sqrt(3), "rounded"
    frame = prepare(TIED).similarity(measure="cosine", top=2)
    assert frame[frame.src == 0].dst.tolist() == [1, 2]


@pytest.mark.parametrize("threads", [1, 3])
def test_answers_do_not_depend_on_threads(threads):
    edges = skewed_edges(300, 6_000, 3)
    graph, alone = prepare(edges, threads=threads), prepare(edges)
    for name in NAMES:
        for question in (dict(), dict(top=5)):
            pd.testing.assert_frame_equal(
                graph.similarity(measure=name, **question), alone.similarity(measure=name, **question), rtol=1e-13
            )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(measure="dice"), "measure='dice' does not exist: choose one of jaccard, overlap"),
        (dict(measure=3), "measure 3 is not one of jaccard"),
        (dict(pairs=[(0, 1)], top=3), "pairs are given with top=3: .*; leave out top"),
        (dict(pairs=[(0, 99), (98, 1)]), "pairs has 2 ids that are not in the graph, for example 98"),
        (dict(pairs="ab"), "pairs holds 'ab' where a pair of vertices is expected"),
        (dict(pairs=([0, 1], [2])), "column 0 of the pair for pairs has 2 rows, column 1 of the pair for pairs 1"),
        (dict(pairs=[("a", "b")]), "pairs"),
        (dict(top=0), "top=0 is below 1: nothing would be found"),
        (dict(top=MOST + 1), "top=1001 is more than 1,000"),
        (dict(top=1.5), "top=1.5 is not a whole number"),
        (dict(top=1, bound=0), "bound=0 is below 1"),
        (
            dict(top=1, bound=5_000),
            r"walking 5\.\d\de\+03 wedges, more than the bound of 5e\+03: about .* of one thread",
        ),
        (dict(frame="cudf"), "frame='cudf' is asked for"),
    ],
    ids=str,
)
def test_what_is_refused(arguments, message):
    with pytest.raises(InputError, match=message) as error:
        prepare(EDGES).similarity(**arguments)
    assert "\n" not in str(error.value)


def test_memory_is_kept_or_refused(monkeypatch):
    wanted = dasktc.prepare(generate.kronecker(9), backend="cpu")
    with pytest.raises(InputError, match=r"neighbours of 2 vertices, [\d,]+ in all, take [\d.]+ kB .* than the 10 kB"):
        within(wanted, 10_000).similarity([(0, 1)])
    with pytest.raises(InputError, match=r"the neighbours of \d+ vertices, 9,482 in all"):
        within(wanted, 250_000).similarity(top=1)
    with pytest.raises(InputError, match=r"top=900 of \d+ vertices takes .* more than the 250 kB"):
        within(wanted, 250_000).similarity(top=900)
    monkeypatch.setattr(similarity, "kernel_and_bytes", lambda graph: ("hub", graph.plan.memory))
    with pytest.raises(InputError, match=r"a task that adds up weights needs .* at n = 1, more than the"):
        wanted.similarity(measure="adamic_adar")


@pytest.mark.parametrize("plan", [dict(), dict(parts=3), dict(partition="proxy", parts=3)], ids=str)
def test_all_bytes_are_planned_for(plan, monkeypatch):
    graph = dasktc.prepare(generate.kronecker(12), backend="cpu", threads=1, **keywords(**plan))
    context, held, planned = graph._context, sum(block.nbytes for block in graph._context.blocks.values()), []
    monkeypatch.setattr(MemoryStore, "set_task_memory", lambda self, needed, memory: planned.append(needed))

    def lists():
        return adjacency.adjacency(context, None, 2 * graph.edges)

    def weighted():
        return similarity._weighted_supports(context, MEASURES["adamic_adar"].weight)

    for call, others in ((lists, 0), (weighted, held)):
        call()
        hub_tables.forget()
        tracemalloc.start()
        try:
            call()
            taken = others + tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert taken <= planned[-1]
    assert planned[-1] < 40 * held


def test_lost_neighbours_and_wedges_are_an_error(monkeypatch):
    graph = prepare(EDGES, parts=2)
    keys, task = adjacency._keys, similarity.weighted_support
    monkeypatch.setattr(adjacency, "_keys", lambda *arguments: keys(*arguments)[1:])
    for question in (dict(pairs=[(0, 1), (2, 3)]), dict(top=2)):
        with pytest.raises(CountError, match="the neighbours of vertices and their degrees differ"):
            graph.similarity(**question)

    def short(*arguments):
        sums, triangles, wedges = task(*arguments)
        return sums, triangles, wedges - 1

    monkeypatch.setattr(similarity, "weighted_support", short)
    with pytest.raises(CountError, match="wedges"):
        graph.similarity(measure="resource_allocation")


def test_a_task_is_cut_in_halves_where_memory_is_short(monkeypatch):
    graph, whole = prepare(EDGES, partition="whole", splits=1), similarity.weighted_support
    expected = graph.similarity(measure="adamic_adar")

    def short(task, *arguments):
        if task.rows is None:
            raise MemoryError("short")
        return whole(task, *arguments)

    monkeypatch.setattr(similarity, "weighted_support", short)
    pd.testing.assert_frame_equal(graph.similarity(measure="adamic_adar"), expected, rtol=1e-13)


ON_A_CLUSTER = [dict(partition="whole", splits=3), dict(parts=2), dict(partition="proxy", parts=3)]


@pytest.mark.parametrize("plan", some(ON_A_CLUSTER[1:], lambda plan: "partition" not in plan), ids=str)
def test_on_a_cluster(client, plan):
    edges = [(f"v{u}", f"v{v}") for u, v in EDGES]
    graph, alone = retuned(prepare(edges, client, **plan), partition_bytes=9_600), prepare(edges)
    for name in ("jaccard", "adamic_adar"):
        spread, expected = graph.similarity(measure=name), alone.similarity(measure=name)
        assert spread.npartitions > 1
        assert spread.dtypes.to_dict() == expected.dtypes.to_dict()
        pd.testing.assert_frame_equal(client.compute(spread).result(), expected, rtol=1e-13)
        pairs = [("v1", "v2"), ("v40", "v3")]
        found = graph.similarity(pairs, name, frame="pandas")
        pd.testing.assert_frame_equal(found, alone.similarity(pairs, name), rtol=1e-13)
        found = client.compute(graph.similarity(measure=name, top=3)).result()
        pd.testing.assert_frame_equal(found, alone.similarity(measure=name, top=3), rtol=1e-13)


@pytest.mark.parametrize(
    ("partition", "shards"),
    some(
        [("whole", 1), ("whole", 2), ("hash2d", 3), ("proxy", 1), ("proxy", 3)],
        lambda partition, shards: (partition, shards) in (("whole", 1), ("proxy", 3)),
    ),
)
def test_in_files_and_in_shards(tmp_path, partition, shards):
    edges = skewed_edges(60, 500, 4)
    options = Options(memory="1GB", partition=partition, parts=2, reorder="degree")
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 8_000, small=1))
    tasks.store._limit = 0
    with tuned(least_shards=shards):
        graph = build(tasks, source_of(edges, parts=3), options)
    graph, alone = retuned(graph, frame_bytes=1), prepare(edges)
    assert graph.plan.shards == shards
    for name in NAMES:
        expected = alone.similarity(measure=name)
        pd.testing.assert_frame_equal(graph.similarity(measure=name), expected, rtol=1e-13)
        pairs = expected[["src", "dst"]].iloc[::3].reset_index(drop=True)
        pd.testing.assert_frame_equal(graph.similarity(pairs, name), alone.similarity(pairs, name), rtol=1e-13)
        found = graph.similarity(measure=name, top=3)
        pd.testing.assert_frame_equal(found, alone.similarity(measure=name, top=3), rtol=1e-13)
    tasks.close()


# on a device


@pytest.fixture
def emulated():
    if compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    with emulated_cuda.backend() as found:
        yield found


@pytest.mark.parametrize(
    "plan",
    [dict(partition="whole"), dict(parts=2), dict(partition="proxy", parts=2, reorder="none"), dict(memory="20MB")],
    ids=str,
)
def test_on_a_device(emulated, plan, tmp_path):
    plan = plan | dict(work_dir=tmp_path) if "memory" in plan else plan
    edges = [*skewed_edges(60, 400, 1), (99, 99)]
    graph, alone = prepare(edges, backend="cuda", **plan), prepare(edges, backend="cpu")
    for name in NAMES:
        expected = alone.similarity(measure=name)
        pd.testing.assert_frame_equal(graph.similarity(measure=name), expected, rtol=1e-13)
        found = graph.similarity(measure=name, frame="cudf").to_pandas()
        pd.testing.assert_frame_equal(found, expected, rtol=1e-13)
        pairs = expected[["src", "dst"]].iloc[::-3].reset_index(drop=True)
        pd.testing.assert_frame_equal(graph.similarity(pairs, name), alone.similarity(pairs, name), rtol=1e-13)
    check(graph, edges, tops=(1, 5))
    graph.close()


@pytest.mark.parametrize("listed", [1, 40, 10_000])
def test_wedges_are_listed_in_pieces_on_a_device(emulated, listed):
    """A star's middle has more wedges than are listed at once, and its leaves share a list."""
    edges = [*skewed_edges(60, 300, 2), *((0, leaf) for leaf in range(60, 120))]
    with retuned(prepare(edges, backend="cuda"), listed_wedges=listed) as graph:
        known = Oracle(edges)
        for name in NAMES:
            frame = graph.similarity(measure=name, top=4, frame="cudf").to_pandas()
            check_rows(frame, name, known.most_similar(name, 4))


@pytest.mark.gpu
@pytest.mark.parametrize("listed", [1 << 12, 1 << 24])
def test_most_similar_on_the_device(listed):
    """In pieces of the lists of some hubs, and of many vertices at once."""
    edges = [*skewed_edges(200, 2000, 2), *((0, leaf) for leaf in range(200, 1000))]
    with retuned(prepare(edges, backend="cuda"), listed_wedges=listed) as graph:
        check(graph, edges, tops=(1, 5))


def test_most_similar_that_do_not_fit_a_device(emulated, tmp_path):
    edges = skewed_edges(300, 3000, 6)
    graph = prepare(edges, backend="cuda", memory="2MB", work_dir=tmp_path)
    with pytest.raises(InputError, match=r"top=900 of \d+ vertices takes .* more than the 2 MB of one worker"):
        graph.similarity(top=900)
    graph.close()


def test_equal_quotients_are_ties_on_a_device(emulated):
    frame = prepare(TIED, backend="cuda").similarity(measure="cosine", top=2, frame="pandas")
    assert frame[frame.src == 0].dst.tolist() == [1, 2]


def test_no_edges_on_a_device(emulated):
    graph = prepare([(1, 1)], backend="cuda")
    for name in NAMES:
        assert graph.similarity(measure=name).empty


def test_measures_have_their_numbers():
    assert tuple(MEASURES) == SIMILARITIES


# the command line


def test_the_command_writes_every_edge(run, source, tmp_path):
    out = tmp_path / "s.csv"
    code, said, err = run("similarity", source, "-o", out)
    assert (code, err) == (0, "")
    assert "jaccard of 4 pairs: every edge" in said
    pd.testing.assert_frame_equal(pd.read_csv(out), dasktc.prepare(str(source)).similarity())
    code, _, err = run("similarity", source, "-o", out)
    assert code == 2
    assert "exists" in err


def test_the_command_writes_the_most_similar(run, source, tmp_path):
    out = tmp_path / "s.parquet"
    code, said, _ = run("similarity", source, "--measure", "adamic_adar", "--top", 1, "--out", out, "--json")
    assert code == 0
    found = json.loads(said)
    assert found | {"read": None, "seconds": None} == {
        "output": str(out),
        "measure": "adamic_adar",
        "top": 1,
        "rows": 4,
        "vertices": 4,
        "edges": 4,
        "read": None,
        "backend": "cpu",
        "seconds": None,
    }
    assert found["seconds"].keys() == {"read", "prepare", "similarity", "write", "total"}
    pd.testing.assert_frame_equal(
        pd.read_parquet(out), dasktc.prepare(str(source)).similarity(measure="adamic_adar", top=1)
    )
    assert run("similarity", source, "-o", tmp_path / "w.txt", "--quiet") == (0, "4\n", "")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("-o", "t.json"), "t.json"),
        ((), "--out"),
        (("-o", "t.csv", "--top", "0"), "--top 0 is below 1"),
        (("-o", "t.csv", "--top", "2", "--bound", "3"), "walking 10 wedges, more than the bound of 3"),
        (("-o", "t.csv", "--measure", "dice"), "dice"),
    ],
    ids=str,
)
def test_bad_use_of_the_command(run, source, tmp_path, monkeypatch, options, named):
    monkeypatch.chdir(tmp_path)
    code, said, err = run("similarity", source, *options)
    assert (code, said) == (2, "")
    assert err.startswith("dasktc: error:")
    assert named in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.txt"]
