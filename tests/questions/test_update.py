"""Edges added to and removed from a prepared graph, against new counts of the changed edges."""

from contextlib import ExitStack
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.api.graph import Graph, OwnedCluster
from dasktc.backends import GraphBounds, TaskSize, vertex_maps
from dasktc.errors import CountError, InputError
from dasktc.planning.schemes import BY_REMAINDER
from dasktc.questions import update as updates
from dasktc.registry import SCHEMES
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import source_of, tuned
from tests.support.tiers import some

PLANS = [
    dict(partition="whole"),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=2),
    dict(partition="hash2d", parts=5, splits=2),
]
HERE = dict(backend="cpu", threads=1)


def frame(edges, ids="int64"):
    return pd.DataFrame(edges, columns=["src", "dst"]).astype(ids)


def test_rows_come_in_any_form_that_prepare_takes(tmp_path):
    import dask.dataframe as dd

    graph = dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]), **keywords(**HERE))
    rows = frame([(3, 0), (3, 1), (1, 3)])
    np.savetxt(tmp_path / "add.txt", rows.to_numpy(), fmt="%d")
    forms = [rows, dd.from_pandas(rows, npartitions=2), rows.to_numpy(), [(3, 1), (3, 0), (3, 0)], ([3, 3], [1, 0])]
    for add in (*forms, tmp_path / "add.txt", [str(tmp_path / "add.txt")]):
        assert graph.update(add=add).triangles == 3
    for nothing in (None, [], (), rows[:0], rows[:0].to_numpy(), dd.from_pandas(rows[:0], npartitions=1)):
        assert graph.update(add=nothing).triangles == 0


def changed(edges, add, remove):
    """The simple edges after the changes."""
    return (oracle.clean(edges) - oracle.clean(remove)) | oracle.clean(add)


def check(graph, edges, add, remove, ids="int64"):
    """Compare the answers of an update with those of new counts; return the new graph."""
    after = [tuple(edge) for edge in changed(edges, add, remove)]
    change = graph.update(add=frame(add, ids), remove=frame(remove, ids))
    old, new = oracle.triangles_per_vertex(edges), oracle.triangles_per_vertex(after)
    differences = {v: new.get(v, 0) - old.get(v, 0) for v in {*old, *new}}
    assert change.triangles == oracle.triangles(after) - oracle.triangles(edges)
    assert change.vertices.to_dict() == {v: more for v, more in differences.items() if more}
    assert change.vertices.index.is_monotonic_increasing
    assert (change.vertices.name, change.vertices.dtype) == ("triangles", np.int64)
    assert (change.added, change.removed) == tuple(
        len(one - other)
        for one, other in (
            (set(map(frozenset, after)), oracle.clean(edges)),
            (oracle.clean(edges), set(map(frozenset, after))),
        )
    )
    result = change.graph.triangle_count(verify=1.0)
    assert (result.triangles, result.vertices, result.edges) == (oracle.triangles(after), len(new), len(after))
    assert change.graph.triangles().to_dict() == new
    assert change.graph.transitivity() == dasktc.prepare(frame(after, ids), **keywords(**HERE)).transitivity()
    supports = change.graph.edge_support()
    assert {frozenset(ends): n for *ends, n in supports.itertuples(index=False)} == oracle.support(after)
    return change.graph


BATCHES = oracle.multigraphs(10, 40).flatmap(
    lambda edges: st.tuples(
        st.just(edges),
        *[
            st.lists(
                st.tuples(*[st.one_of(st.sampled_from([v for e in edges for v in e] or [0]), st.integers(-3, 30))] * 2),
                max_size=25,
            )
        ]
        * 4,
    )
)


@pytest.mark.parametrize("options", some(PLANS, lambda options: options == PLANS[2]), ids=str)
@given(batch=BATCHES, shards=st.integers(1, 4))
def test_two_updates_in_a_row(options, batch, shards):
    edges, *lists = batch
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame(edges), **keywords(**HERE, **options))
    with graph:
        once = check(graph, edges, *lists[:2])
        check(once, [tuple(edge) for edge in changed(edges, *lists[:2])], *lists[2:])
        assert int(graph.triangle_count()) == oracle.triangles(edges)
        assert graph.triangles().to_dict() == oracle.triangles_per_vertex(edges)


@given(
    edges=oracle.text_multigraphs(8, 30),
    add=oracle.text_multigraphs(8, 20),
    share=st.integers(1, 4),
    shards=st.integers(1, 3),
)
def test_text_ids(edges, add, share, shards):
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame(edges, "str"), ids="text", **keywords(**HERE))
    with graph:
        check(graph, edges, [*add, *edges[:2]], edges[::share], "str")


@pytest.mark.parametrize("shards", [1, 3])
def test_ids_of_64_bits(shards):
    edges = [(u << 55, -(v << 54)) for u, v in oracle.complete(7)]
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame(edges), **keywords(**HERE))
    low, high = np.iinfo("int64").min, np.iinfo("int64").max
    check(graph, edges, [(low, high), (low, 1 << 55), (high, 1 << 55), (3, 4)], edges[::4])


def test_differences_of_text_ids_are_in_ascending_order():
    graph = dasktc.prepare(
        frame([("d", "b"), ("b", "c"), ("b", "a"), ("c", "a")], "str"), ids="text", **keywords(**HERE)
    )
    change = graph.update(add=frame([("d", "c"), ("0", "b"), ("0", "d")], "str"))
    assert list(change.vertices.items()) == [("0", 1), ("b", 2), ("c", 1), ("d", 2)]


def test_what_is_in_both_lists_stays_or_comes():
    graph = dasktc.prepare(frame([(0, 1), (1, 2), (2, 0)]), **keywords(**HERE))
    both = frame([(0, 1), (7, 1)])
    change = graph.update(add=both, remove=both)
    assert (change.triangles, change.added, change.removed) == (0, 1, 0)
    assert change.graph.triangles().to_dict() == {0: 1, 1: 1, 2: 1, 7: 0}


@pytest.mark.parametrize("rows", [None, frame([]), np.empty((0, 2), "int64"), frame([(5, 5), (9, 9)])])
def test_nothing_changes(rows):
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE))
    change = graph.update(add=rows, remove=rows)
    assert (change.triangles, change.added, change.removed, len(change.vertices)) == (0, 0, 0, 0)
    assert int(change.graph.triangle_count()) == 10


@pytest.mark.parametrize("shards", [1, 3])
def test_everything_goes_and_comes_back(shards):
    edges = frame(oracle.complete(6))
    for options in PLANS:
        with tuned(least_shards=shards):
            graph = dasktc.prepare(edges, **keywords(**HERE, **options))
        nothing = graph.update(remove=edges)
        assert (nothing.triangles, nothing.graph.vertices, nothing.graph.edges) == (-20, 0, 0)
        assert int(nothing.graph.triangle_count()) == 0
        again = nothing.graph.update(add=edges)
        assert (again.triangles, int(again.graph.triangle_count())) == (20, 20)


def test_new_vertices_have_the_largest_ids():
    graph = dasktc.prepare(frame(oracle.complete(4)), **keywords(**HERE))
    after = graph.update(add=frame([(-5, 0), (99, 0), (99, 1)])).graph
    (block,) = after._context.blocks.values()
    order = after._context.prepared.graph.order.whole
    assert after._context.prepared.vertices.external(order).tolist()[4:] == [-5, 99]
    assert np.diff(block.offsets)[4:].tolist() == [1, 2]


def test_dropped_rows_are_those_of_the_batch():
    graph = dasktc.prepare(frame(oracle.complete(4)), **keywords(**HERE))
    result = graph.update(add=frame([(0, 9), (9, 0), (0, 9), (3, 3), (0, 1)])).graph.triangle_count()
    assert (result.edges, result.loops_dropped, result.duplicates_dropped) == (7, 1, 2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(partition="proxy"), "into several blocks"),
        (dict(partition="vertical"), "into several blocks"),
        (dict(reorder="collective"), "does not keep the order"),
    ],
)
def test_refused(options, why):
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE, **options))
    with pytest.raises(InputError, match=why):
        graph.update(add=frame([(0, 9)]))


def test_a_plugins_scheme_that_assigns_vertices_otherwise_is_refused(monkeypatch):
    """Its blocks are as many as those of `hash2d`, and every edge is in one of them."""
    contiguous = replace(SCHEMES["hash2d"], name="contiguous", dealing=replace(BY_REMAINDER, in_turn=False))
    monkeypatch.setitem(SCHEMES, "contiguous", contiguous)
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE, partition="contiguous", parts=2))
    with pytest.raises(InputError, match=r"partition='contiguous' .* or assigns vertices by their degrees: .*'hash2d'"):
        graph.update(add=frame([(0, 9)]))


def in_shards(count, edges, ids="int64", **options):
    kind = "text" if ids == "str" else "int"
    with tuned(least_shards=count):
        return dasktc.prepare(frame(edges, ids), ids=kind, **keywords(**HERE | options))


def sizes_of_shards(graph):
    prepared = graph._context.prepared
    return [np.diff(vector.starts) for vector in (prepared.vertices, prepared.graph.order, prepared.graph.in_degree)]


@pytest.mark.parametrize("ids", ["int64", "str"])
def test_shards_stay_even_while_a_graph_grows(ids):
    """New ids are all above the old ones, and new vertices have the last ids in the blocks."""
    edges = [(100, 101), (101, 102), (100, 102), (102, 103), (103, 104), (104, 105)]
    if ids == "str":
        edges = [(str(u), str(v)) for u, v in edges]
    graph, name = in_shards(3, edges, ids), str if ids == "str" else int
    for first in range(105, 165, 10):
        new = [(name(v), name(v + 1)) for v in range(first, first + 10)] + [(name(first), name(first + 2))]
        graph = check(graph, edges, new, edges[:1], ids)
        edges = [tuple(edge) for edge in changed(edges, new, edges[:1])]
        for sizes in sizes_of_shards(graph):
            assert len(sizes) == graph.plan.shards == 3
            assert sizes.max() <= 2 * sizes.mean()


def test_more_vertices_take_more_shards():
    edges = oracle.complete(6)
    graph = in_shards(2, edges)
    with tuned(least_shards=5):
        after = graph.update(add=frame([(0, v) for v in range(20, 34)])).graph
    assert (graph.plan.shards, after.plan.shards) == (2, 5)
    assert after.plan.numbering == "vertices in 5 shards"
    assert all(sizes.tolist() == [4] * 5 for sizes in sizes_of_shards(after))
    assert after.triangles().to_dict() == {v: 10 if v < 6 else 0 for v in (*range(6), *range(20, 34))}


def test_vertices_beyond_all_shards_are_refused(tmp_path):
    graph = in_shards(2, oracle.complete(6), memory="16MB", work_dir=tmp_path)
    with (
        graph,
        tuned(least_shards=513),
        pytest.raises(InputError, match="512 shards of them do not fit either; give memory="),
    ):
        graph.update(add=frame([(0, 9)]))


def test_a_vertex_of_each_shard_leaves():
    edges = [*oracle.complete(9), *((v, v + 10) for v in range(9))]
    check(in_shards(4, edges), edges, [], edges[-9::2])


def test_an_update_in_shards_is_saved(tmp_path):
    edges = oracle.wheel(12)
    with in_shards(3, edges, partition="hash2d", parts=2) as graph:
        after = graph.update(add=frame([(50, 3), (50, 4)]), remove=frame(edges[:3])).graph
        after.save(tmp_path / "graph")
        opened = dasktc.open_graph(tmp_path / "graph")
        assert opened.triangles().to_dict() == after.triangles().to_dict()
        assert int(opened.triangle_count(verify=1.0)) == int(after.triangle_count())
    known = [tuple(edge) for edge in changed(edges, [(50, 3), (50, 4)], edges[:3])]
    check(opened, known, [(50, 5), (7, 8)], edges[:5])


@pytest.mark.parametrize("options", [{"weight": "w"}, {"directed": True}], ids=["weights", "directions"])
def test_weights_and_directions_are_refused(options):
    """New edges would have none, and the kept ones would be those of other edges."""
    graph = dasktc.prepare(frame(oracle.complete(5)).assign(w=1.0), **keywords(**HERE, **options))
    with pytest.raises(InputError, match="which an update lacks for new edges: prepare the updated source"):
        graph.update(add=frame([(0, 9)]))


def test_ids_of_another_type_are_refused():
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE))
    with pytest.raises(InputError):
        graph.update(add=frame([("a", "b")], "str"))


def test_an_edge_lost_on_the_way_is_an_error(monkeypatch):
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE))
    whole = updates._make_edit
    monkeypatch.setattr(updates, "_make_edit", lambda *given: (edit := whole(*given))._replace(insert=edit.insert[1:]))
    with pytest.raises(CountError, match="edges were lost"):
        graph.update(add=frame([(0, 9), (1, 9)]))


def test_an_edge_lost_while_a_block_is_written_is_an_error(monkeypatch):
    graph, whole = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE)), updates._rebuild
    monkeypatch.setattr(
        updates, "_rebuild", lambda block, edit, *given: whole(block, edit._replace(insert=edit.insert[1:]), *given)
    )
    with pytest.raises(CountError, match="holds 11 edges, the plan 12"):
        graph.update(add=frame([(0, 9), (1, 9)]))


@pytest.mark.parametrize("name", ["added", "removed"])
def test_the_new_graph_has_the_old_edges_and_those_that_changed(monkeypatch, name):
    """Here degrees and blocks agree with each other, but not with the numbers of added and removed edges."""
    graph, whole = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE)), updates._difference

    def difference(*given):
        change = whole(*given)
        return change._replace(counts=change.counts._replace(**{name: getattr(change.counts, name) + 1}))

    monkeypatch.setattr(updates, "_difference", difference)
    with pytest.raises(CountError, match="are expected: edges were lost or repeated"):
        graph.update(add=frame([(0, 9), (1, 9)]), remove=frame([(0, 1)]))


def test_more_vertices_than_ids_of_32_bits_are_refused(monkeypatch):
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE))
    monkeypatch.setattr(vertex_maps, "MAX_VERTICES", 6)
    assert graph.update(add=frame([(0, 9)])).graph.vertices == 6
    with pytest.raises(InputError, match="the graph has 7 vertices, 6 at most"):
        graph.update(add=frame([(0, 9), (0, 10)]))


def test_the_plan_of_the_new_graph_says_what_that_of_the_old_one_said():
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE, partition="hash2d", parts=2))
    plan = graph.update(add=frame([(0, 9)])).graph.plan
    assert graph.plan.choice.startswith("kernel ")
    assert (plan.choice, plan.partition, plan.parts) == (graph.plan.choice, "hash2d", 2)
    assert (plan.vertices, plan.edges) == (6, 11)


def test_chunks():
    edges = oracle.complete(9)
    check(
        retuned(dasktc.prepare(frame(edges), **keywords(**HERE)), update_chunk=7),
        edges,
        [(20, v) for v in range(9)],
        edges[::3],
    )


def test_neighbours_in_every_chunk_of_a_block():
    """Far from each other: what one chunk has is no neighbourhood of another's."""
    edges = oracle.wheel(20) + [(u + 30, v + 30) for u, v in oracle.wheel(9)]
    graph = retuned(dasktc.prepare(frame(edges), **keywords(**HERE)), update_chunk=7)
    check(graph, edges, [(35, 37), (3, 33), (7, 9)], [(30, 32), (12, 13)])


@pytest.mark.parametrize("row", [3, 4, 7, 8])
def test_every_edge_of_a_row_is_found(row):
    """Rows of 2^k entries need one more bisection than those of one entry less."""
    edges = [*oracle.complete(row), *((row, v) for v in range(row))]
    graph = dasktc.prepare(frame(edges), **keywords(**HERE))
    for edge in edges:
        assert graph.update(add=frame([edge])).added == 0
        assert graph.update(remove=frame([edge])).triangles == 1 - row


def test_an_edge_of_the_next_row_is_not_found_in_the_row_before():
    graph = dasktc.prepare(frame(oracle.complete(5)), **keywords(**HERE))
    after = graph.update(add=frame([(5, 3), (6, 4)])).graph  # rows of one entry, in order
    for absent in [(5, 4), (6, 3), (5, 6), (6, 5), (5, 0)]:
        change = after.update(remove=frame([absent]))
        assert (change.removed, change.graph.edges) == (0, 12)


def test_the_known_triangles_of_a_source_are_not_those_of_the_new_graph():
    graph = dasktc.prepare(source_of(oracle.complete(5), triangles=10), **keywords(**HERE))
    after = graph.update(remove=frame([(0, 1)])).graph
    assert int(after.triangle_count()) == 7


def test_an_update_beyond_memory_is_refused_and_half_the_blocks_fit(tmp_path):
    """The block of the whole graph, twice and a mask, takes more than a call may; those of the advised parts do not."""
    within = HERE | {"memory": "8MB", "work_dir": tmp_path}
    source = generate.random_graph(20_000, 900_000)
    with (
        dasktc.prepare(source, **keywords(partition="whole", **within)) as graph,
        pytest.raises(
            InputError, match=r"an update needs 12.5 MB at n = 1, more than .*; prepare with .*\(parts=2\), or"
        ),
    ):
        graph.update(add=frame([(0, 99_999)]))
    with dasktc.prepare(source, **keywords(partition="hash2d", parts=2, **within)) as graph:
        assert graph.update(add=frame([(0, 99_999)])).added == 1


@pytest.mark.slow
@pytest.mark.parametrize(("shards", "memory"), [(1, None), (3, None), (3, "20MB")])
@pytest.mark.parametrize("options", PLANS[::2], ids=str)
def test_on_workers(client, tmp_path, options, shards, memory):
    edges, place = oracle.wheel(40), {"memory": memory, "work_dir": tmp_path, "distribute": "always"}
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame(edges), client, backend="cpu", **keywords(**options, **place))
    add, remove = [(3, 5), (50, 3), (50, 4), (50, 60)], [(0, 7), (1, 2), (0, 1)]
    change, after = graph.update(add=frame(add), remove=frame(remove)), changed(edges, add, remove)
    known = oracle.triangles(map(tuple, after))
    assert change.triangles == known - oracle.triangles(edges)
    assert int(change.graph.triangle_count()) == known
    assert int(graph.triangle_count()) == oracle.triangles(edges)
    assert change.graph.triangles().to_dict() == oracle.triangles_per_vertex([tuple(edge) for edge in after])


def test_a_larger_graph():
    source, rng = generate.kronecker(12), np.random.default_rng(1)
    graph = dasktc.prepare(source, **keywords(**HERE))
    kept = graph.edge_support()[["src", "dst"]]
    add, remove = pd.DataFrame(rng.integers(0, 5000, (400, 2)), columns=["src", "dst"]), kept.iloc[::50]
    change = graph.update(add=add, remove=remove)
    after = dasktc.prepare(pd.concat([kept.drop(kept.index[::50]), add]), **keywords(**HERE))
    assert int(graph.triangle_count()) + change.triangles == int(after.triangle_count())
    assert int(change.graph.triangle_count()) == int(after.triangle_count())
    pd.testing.assert_series_equal(change.graph.triangles(), after.triangles())
    more = after.triangles().sub(graph.triangles(), fill_value=0).astype("int64")
    pd.testing.assert_series_equal(change.vertices, more[more != 0])


@pytest.mark.parametrize("shards", [1, 5])
def test_within_memory(tmp_path, shards):
    with tuned(least_shards=shards):
        graph = dasktc.prepare(generate.kronecker(10), memory="16MiB", **keywords(**HERE, work_dir=tmp_path))
    add = pd.DataFrame(np.random.default_rng(2).integers(0, 1500, (300, 2)), columns=["src", "dst"])
    change = graph.update(add=add)
    expected = int(graph.triangle_count()) + change.triangles
    graph.close()
    assert int(change.graph.triangle_count()) == expected
    change.graph.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("first", ["old", "new"])
def test_workers_end_with_the_last_of_the_graphs_that_they_hold(first):
    ended = []
    opened = ExitStack()
    opened.callback(ended.append, True)
    graph = Graph(dasktc.prepare(([0, 1, 2, 2], [1, 2, 0, 3]), **keywords(**HERE))._context, OwnedCluster(opened))
    change = graph.update(add=([3], [1]))
    again = copy(change.graph)
    one, other = (graph, change.graph) if first == "old" else (change.graph, graph)
    one.close()
    one.close()
    assert not ended
    assert int(other.triangle_count()) == (2 if first == "old" else 1)
    other.close()
    assert not ended
    assert int(again.triangle_count()) == 2
    again.close()
    assert ended


def hub_graph(name):
    """Edges of a graph whose hubs are neighbours of many vertices."""
    if name == "star":
        edges = oracle.star(200)
    elif name == "clique and pendants":
        edges = [*oracle.complete(30), *((v, v + 100) for v in range(0, 30, 3))]
    else:
        edges = dasktc.prepare(generate.kronecker(10), **keywords(**HERE)).edge_support()[["src", "dst"]]
    return np.asarray(edges)


@pytest.mark.parametrize("name", ["star", "clique and pendants", "kronecker"])
@pytest.mark.parametrize(("options", "shards"), [(PLANS[0], 1), (PLANS[1], 1), (PLANS[2], 3)], ids=str)
def test_chains_of_updates_of_graphs_with_hubs(name, options, shards):
    """Ends of rows are drawn in proportion to degrees, and a hub gains and loses edges."""
    rng, edges = np.random.default_rng(3), hub_graph(name)
    with tuned(least_shards=shards):
        graph = dasktc.prepare(frame(edges), **keywords(**HERE, **options))
    for rows, share in ((5, 0.01), (300, 0.5), (100, 0.0)):
        before, hub = graph.triangles(), np.bincount(edges.ravel()).argmax()
        of_hub = np.stack([np.full(rows, hub), rng.integers(0, edges.max() + 9, rows)], axis=1)
        add = np.concatenate([rng.choice(edges.ravel(), (rows, 2)), of_hub])
        is_removed = rng.random(len(edges)) < share
        change = graph.update(add=frame(add), remove=frame(edges[is_removed]))
        edges = np.array([*map(tuple, changed(edges, add, edges[is_removed]))])
        anew, graph = dasktc.prepare(frame(edges), **keywords(**HERE)), change.graph
        after = anew.triangles()
        more = after.sub(before, fill_value=0).astype("int64")
        pd.testing.assert_series_equal(change.vertices, more[more != 0])
        assert 3 * change.triangles == more.sum()
        assert int(graph.triangle_count(verify=1.0)) == int(anew.triangle_count())
        pd.testing.assert_series_equal(graph.triangles(), after)


@pytest.mark.parametrize(
    ("add", "remove", "lookups"),
    [
        ([(0, leaf) for leaf in range(300, 310)], [(0, 1)], 11),
        ([(500, leaf) for leaf in range(1, 201)], [], 400),  # a hub of the batch
    ],
)
def test_neighbours_of_hubs_are_not_looked_up(monkeypatch, add, remove, lookups):
    """But those of the other end of a changed edge, which has fewer."""
    graph, whole, numbers = dasktc.prepare(frame(oracle.star(200)), **keywords(**HERE)), updates._with_neighbours, []

    def with_neighbours(*given):
        changed = whole(*given)
        numbers.append(np.bincount(changed.neighbours >> updates.SHIFT)[changed.pivots].sum())
        return changed

    monkeypatch.setattr(updates, "_with_neighbours", with_neighbours)
    graph.update(add=frame(add), remove=frame(remove))
    assert numbers == [lookups]


def lengths_of(graph):
    """The lengths of the rows of a graph's only block."""
    (block,) = graph._context.executor.gather(graph._context.blocks.values())
    return np.diff(block.offsets)[: graph.vertices]


@pytest.mark.parametrize(
    ("edges", "add", "remove"),
    [
        (oracle.complete(12), [(0, 12)], []),
        (oracle.complete(12), [(12, vertex) for vertex in range(12)], []),
        (oracle.star(60), [(61, vertex) for vertex in range(1, 61)], []),  # a hub that comes last
        (oracle.star(60), [(vertex, vertex + 30) for vertex in range(1, 31)], [(0, vertex) for vertex in range(1, 60)]),
        ([*oracle.complete(9), (9, 10), (9, 11)], [], oracle.complete(9)),
    ],
)
@pytest.mark.parametrize("repeats", [1, 9])
def test_bounds_of_rows_are_those_of_the_new_graph(tmp_path, edges, add, remove, repeats):
    """Rows that repeat may have ranked vertices, and the ranks of an update are those of before."""
    rows = [*edges, *[edge for edge in edges if edge[0] % 2] * (repeats - 1)]
    graph = dasktc.prepare(frame(rows), **keywords(**HERE, partition="whole"))
    for _ in range(2):
        graph = graph.update(add=frame(add), remove=frame(remove)).graph
        graph.save(tmp_path / "saved", force=True)
        weights = graph._context.prepared.weights
        bounds, lengths = GraphBounds(weights, ordered=True), lengths_of(graph)
        assert bounds.longest >= lengths.max()
        size = TaskSize(len(edges), len(edges), len(edges), graph.vertices)
        for entries in range(int(lengths.max())):
            assert bounds.rows_above(entries, size) >= 1 + np.flatnonzero(lengths > entries)[-1]
        opened = dasktc.open_graph(tmp_path / "saved")
        assert opened._context.prepared.weights == weights
        add, remove = remove, add
