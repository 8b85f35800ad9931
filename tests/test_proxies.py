"""LSTC's partition against its algorithm step by step, and TC-Stream's ranges against the degrees."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import complete, multigraphs, triangles
from pipeline import orientation, random_edges, skewed_edges, source_of
from tiers import some

import dasktc
from dasktc.api.plan import plan_size, plan_source
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.pipeline import vertex_assignment as assign
from dasktc.planning.plan import MAX_PARTS, Proxies


def transformed(out, local):
    """Algorithm 2, one proxy after another: vertices and edges before and after."""
    inward = {v: [u for u in out if v in out[u]] for v in out}
    vertices = local | {w for v in local for w in [*out[v], *inward[v]]}
    induced = len(vertices), sum(w in vertices for v in vertices for w in out[v])
    while True:
        useless = [v for v in vertices - local if not any(u in vertices for u in inward[v])]
        if not useless:
            break
        vertices -= {useless[0]}
    edges = {(v, w) for v in vertices for w in out[v] if w in vertices}
    return induced, vertices, edges


@given(
    multigraphs(max_vertices=14, max_edges=50),
    st.integers(1, 5),
    st.sampled_from(["random", "contiguous"]),
    st.integers(0, 3),
    st.sampled_from(["degree", "collective", "none"]),
)
def test_parts_are_those_of_the_paper(edges, parts, how, seed, reorder):
    graph = dasktc.prepare(
        source_of(edges, parts=2), partition="proxy", parts=parts, assign=how, seed=seed, reorder=reorder
    )
    slow, order, layout = orientation(edges), graph.prepared.graph.order.whole, graph.prepared.partition
    for part in range(graph.plan.parts):
        local = {int(order[v]) for v in np.flatnonzero(layout.own == part)}
        (vertices_induced, edges_induced), vertices, kept = transformed(slow.out, local)
        found = graph.plan.proxies[part]
        assert found == Proxies(vertices_induced, len(vertices), edges_induced, len(kept))
        index, table = graph.blocks[part, 0], graph.blocks[part, 1]
        assert set(order[table.members].tolist()) == vertices
        assert edges_of(table, order) == kept
        assert edges_of(index, order) == {(u, v) for u, v in kept if u in local}
    assert int(graph.triangle_count(verify=1.0)) == triangles(edges)


def edges_of(block, order):
    rows = np.repeat(np.arange(block.rows), np.diff(block.offsets))
    ends = order[block.row_ids(rows)], order[block.column_ids(block.columns)]
    assert len(set(zip(*ends, strict=True))) == block.edges
    return set(zip(*(end.tolist() for end in ends), strict=True))


# which vertices are local where


@pytest.mark.parametrize("how", ["random", "contiguous", "metis"])
def test_every_vertex_is_local_to_one_part(how):
    graph = dasktc.prepare(source_of(random_edges(500, 3_000, 1)), partition="proxy", parts=4, assign=how)
    sizes = np.bincount(graph.prepared.partition.own, minlength=4)
    assert sizes.sum() == graph.vertices
    assert sizes.min() > 80


def test_random_parts_depend_on_the_seed_alone():
    edges = source_of(random_edges(300, 2_000, 1))
    own = [prepare_own(edges, seed) for seed in (0, 0, 1)]
    assert (own[0] == own[1]).all()
    assert (own[0] != own[2]).any()


def prepare_own(edges, seed):
    return dasktc.prepare(edges, partition="proxy", parts=3, seed=seed).prepared.partition.own


def test_metis_keeps_neighbours_together():
    """Two cliques joined by an edge: a part is a clique, and its proxies are what the bridge needs."""
    edges = [*complete(20), *((u + 20, v + 20) for u, v in complete(20)), (0, 20)]
    result = dasktc.triangle_count(source_of(edges), partition="proxy", parts=2, assign="metis")
    assert int(result) == triangles(edges)
    assert sum(part.edges for part in result.plan.proxies) <= len(edges) + 20
    random = dasktc.triangle_count(source_of(edges), partition="proxy", parts=2)
    assert sum(part.edges for part in random.plan.proxies) > len(edges) + 100


@pytest.mark.parametrize("edges", [[], [(0, 1)], complete(9)])
@pytest.mark.parametrize("parts", [1, 3, MAX_PARTS])
def test_metis_takes_more_parts_than_vertices(edges, parts):
    result = dasktc.triangle_count(source_of(edges), partition="proxy", parts=parts, assign="metis")
    assert int(result) == triangles(edges)


def test_a_graph_too_large_for_metis_is_refused(monkeypatch):
    monkeypatch.setattr(assign, "MOST_ENDS", 40)
    with pytest.raises(InputError, match=r"36 edges.*METIS.*--assign random"):
        dasktc.triangle_count(source_of(complete(9)), partition="proxy", parts=2, assign="metis")


def test_metis_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(InputError, match=r"pip install 'dasktc\[metis\]'"):
        dasktc.triangle_count(source_of(complete(5)), partition="proxy", parts=2, assign="metis")


# what people see


def test_the_plan_shows_both_tables(tmp_path, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in skewed_edges(60, 300, 1)))
    given = ["plan", str(path), "--partition", "proxy", "--parts", "3"]
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [list(part) for part in found["proxies"]] == [[*Proxies._fields]] * 3
    assert main(given) == 0
    assert "G_2           V_ind " in capsys.readouterr().out


def test_more_parts_than_bits_are_refused():
    with pytest.raises(InputError, match=rf"--parts {MAX_PARTS + 1} is more than the {MAX_PARTS}"):
        dasktc.triangle_count(source_of(complete(MAX_PARTS + 1)), partition="proxy", parts=MAX_PARTS + 1)
    assert int(dasktc.triangle_count(source_of(complete(9)), partition="proxy", parts=MAX_PARTS)) == 84


def test_a_size_alone_does_not_tell_the_proxies():
    with pytest.raises(InputError, match="give the SOURCE"):
        plan_size(100, 1_000, partition="proxy")


def test_an_unknown_assignment_is_refused():
    with pytest.raises(InputError, match="--assign 'odd' does not exist"):
        dasktc.triangle_count(source_of(complete(4)), assign="odd")


@pytest.mark.parametrize("partition", some(["proxy", "vertical"], lambda partition: partition == "proxy"))
def test_the_smallest_n_worth_trying_that_fits(partition):
    """LSTC's parts shrink slowly: hubs are proxies nearly everywhere."""
    source = source_of(random_edges(500, 1_500, 3))
    whole = plan_source(source, partition=partition, parts=1).bytes_per_task
    found = plan_source(source, partition=partition, memory=whole * 3 // 4)
    assert found.fits
    assert found.parts > 1
    before = plan_source(source, partition=partition, parts=found.parts - 1, memory=whole * 3 // 4)
    assert not before.fits
    assert not plan_source(source, partition=partition, memory=1_000).fits


# ranges


@pytest.mark.parametrize("reorder", ["degree", "collective", "none"])
def test_ranges_have_about_equally_many_edges(reorder):
    """Rows by out-degree, columns by in-degree: each is off by no more than its largest vertex."""
    source = source_of(random_edges(3_000, 30_000, 2))
    found = dasktc.prepare(source, partition="vertical", parts=5, reorder=reorder).prepared
    rows, columns = found.partition.layout.rows, found.partition.layout.families[1]
    for axis, degree in ((rows, found.graph.out_degree.whole), (columns, found.graph.in_degree.whole)):
        edges = [int(axis.share(degree, part).sum()) for part in range(5)]
        assert sum(edges) == found.plan.edges
        assert max(edges) - min(edges) <= 2 * int(degree.max())


def test_more_ranges_than_vertices():
    for parts in (4, 9):
        assert int(dasktc.triangle_count(source_of(complete(4)), partition="vertical", parts=parts)) == 4
