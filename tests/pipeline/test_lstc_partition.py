"""LSTC's partition against its algorithm, step by step, and TC-Stream's ranges against the degrees."""

import json
import re
from dataclasses import replace
from math import comb
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends import lazy_backend, select
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, rmat
from dasktc.options import PROXIES, Method, Options
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.vertex_assignment import own_parts
from dasktc.planning.plan import MAX_PARTS, Proxies
from dasktc.registry import SCHEMES
from tests.support.keywords import keywords
from tests.support.oracle import complete, multigraphs, triangles
from tests.support.slow_pipeline import kept_by_part, orientation, random_edges, skewed_edges, source_of, tuned
from tests.support.tiers import some


@given(
    multigraphs(max_vertices=14, max_edges=50),
    st.integers(1, 5),
    st.sampled_from(["random", "contiguous", "metis"]),
    st.integers(0, 3),
    st.sampled_from(["degree", "collective", "none"]),
    st.sampled_from(PROXIES),
    st.sampled_from([1, 3]),
)
def test_parts_are_those_of_the_paper(edges, parts, how, seed, reorder, keep, shards):
    shards = 1 if how == "metis" else shards
    options = {"parts": parts, "assign": how, "seed": seed, "reorder": reorder, "proxies": keep}
    with tuned(least_shards=shards):
        graph = dasktc.prepare(source_of(edges, parts=2), **keywords(partition="proxy", **options))
    assert graph.plan.shards == shards
    slow, layout = orientation(edges), graph._context.prepared.partition
    order, own = (np.concatenate(vector.parts) for vector in (graph._context.prepared.graph.order, layout.own))
    for part, found in enumerate(graph.plan.proxies):
        local = {int(order[v]) for v in np.flatnonzero(own == part)}
        (vertices_induced, edges_induced), vertices, kept = kept_by_part(slow.out, local, keep)
        assert found == Proxies(vertices_induced, len(vertices), edges_induced, len(kept))
        assert set(order[graph._context.blocks[part, 1].members].tolist()) == vertices
    assert int(graph.triangle_count(verify=1.0)) == triangles(edges)


# which vertices are local where


# a file of parts


@pytest.mark.parametrize("name", ["parts.csv", "parts.parquet"])
def test_a_file_of_parts_of_vertices_named_by_text(tmp_path, name):
    frame = pd.DataFrame({"vertex": [f"v{u}" for u in range(6)], "part": [0, 1, 0, 1, 1, 0]})
    path = tmp_path / name
    frame.astype(str).to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    edges = [(f"v{u}", f"v{v}") for u, v in complete(6)]
    graph = dasktc.prepare(source_of(edges[1:], "text"), method=Method(partition="proxy", assign=str(path)))
    found = graph._context.prepared
    names = found.vertices.external(found.graph.order.whole).tolist()
    assert dict(zip(names, found.partition.own.whole, strict=True)) == dict(frame.itertuples(index=False))
    assert (int(graph.triangle_count()), graph.plan.parts) == (16, 2)


def test_a_file_of_parts_is_for_any_scheme_whose_blocks_have_members(tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEMES, "other", replace(SCHEMES["proxy"], name="other"))
    path = tmp_path / "parts.txt"
    path.write_text("".join(f"{u} {u % 2}\n" for u in range(6)))
    result = dasktc.triangle_count(source_of(complete(6)), method=Method(partition="other", assign=str(path)))
    assert (int(result), result.plan.parts) == (20, 2)


@pytest.mark.parametrize("parts", [None, 9])
def test_a_file_may_have_parts_beyond_the_number_of_vertices(tmp_path, parts):
    path = tmp_path / "parts.txt"
    path.write_text("0 0\n1 5\n2 7\n3 7\n")
    result = dasktc.triangle_count(
        source_of(complete(4)), method=Method(partition="proxy", assign=str(path), parts=parts)
    )
    assert (int(result), result.plan.parts) == (4, 4)


def test_what_has_all_vertices_in_one_process_is_refused_where_they_are_in_shards(tmp_path):
    path = tmp_path / "parts.txt"
    path.write_text("0 0\n1 1\n2 1\n3 0\n")
    for assign_by in ("metis", str(path)):
        with tuned(least_shards=2), pytest.raises(InputError, match="assign='random'"):
            dasktc.triangle_count(source_of(complete(4)), method=Method(partition="proxy", parts=2, assign=assign_by))


def test_a_client_without_a_gpu_gives_its_workers_a_file_of_parts(tmp_path, monkeypatch):
    """The client asks nothing of a library that only workers have."""
    path = tmp_path / "parts.txt"
    path.write_text("0 0\n1 1\n2 1\n")
    monkeypatch.setattr(select, "get_backend", mock.Mock(side_effect=InputError("no GPU here")))
    executor = mock.Mock(backend=lazy_backend("cuda"))
    executor.transpose.return_value = [["shard"], ["number"]]
    executor.map.side_effect = lambda stage, function, values, *shared: [f"{value} on device" for value in values]
    executor.gather.side_effect = lambda handles: [2 for _ in handles]
    graph = mock.Mock(order=Sharded([0, 3], ["order"]))
    own, parts = own_parts(mock.Mock(executor=executor), str(path), "int", "vertices", graph, None)
    assert (own.starts, own.parts, parts) == ([0, 3], ["shard on device"], 2)


# what parts keep


def test_a_part_needs_far_fewer_edges_than_the_transformation_leaves():
    """E_res of `tight` relative to LSTC's, and LSTC's relative to that without a transformation."""
    kept = {}
    for source in (kronecker(12), rmat(2**14, 2**17), random_graph(30_000, 300_000), grid3d(30)):
        total = {}
        for how in PROXIES:
            plan = dasktc.plan(source, method=Method(partition="proxy", parts=4, proxies=how)).plan
            total[how] = sum(part.edges for part in plan.proxies)
            assert sum(part.edges_induced for part in plan.proxies) == total.get("none", total[how]) or how != "none"
        assert total["tight"] < total["lstc"] < total["none"]
        kept[source.name.split()[0]] = total["tight"] / total["lstc"]
    assert list(kept.values()) == pytest.approx([0.95, 0.87, 0.85, 0.58], abs=0.02)


# what people see


def test_the_plan_shows_both_tables(tmp_path, capsys):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in skewed_edges(60, 300, 1)))
    given = ["plan", str(path), "--partition", "proxy", "--parts", "3"]
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [list(part) for part in found["proxies"]] == [[*Proxies._fields]] * 3
    assert main([*given, "--verbose"]) == 0
    assert re.search("G_2 +V_ind ", capsys.readouterr().out)
    parts = tmp_path / "parts.txt"
    parts.write_text("".join(f"{v} {v % 2}\n" for v in range(60)))
    assert main([*given[:4], "--assign", str(parts), "--proxies", "tight", "--verbose"]) == 0
    assert re.search("G_1 +V_ind ", capsys.readouterr().out)


def test_more_parts_than_bits_are_refused():
    with pytest.raises(InputError, match=rf"parts={MAX_PARTS + 1} is more than the {MAX_PARTS}"):
        dasktc.triangle_count(source_of(complete(MAX_PARTS + 1)), method=Method(partition="proxy", parts=MAX_PARTS + 1))
    for vertices, parts in ((9, 9), (MAX_PARTS + 1, MAX_PARTS)):
        result = dasktc.triangle_count(source_of(complete(vertices)), method=Method(partition="proxy", parts=MAX_PARTS))
        assert (int(result), result.plan.parts) == (comb(vertices, 3), parts)


def test_a_size_alone_does_not_tell_the_proxies():
    with pytest.raises(InputError, match="give the source"):
        dasktc.plan(vertices=100, edges=1_000, method=Method(partition="proxy"))


def test_an_unknown_assignment_is_refused():
    with pytest.raises(InputError, match="assign='odd' does not exist"):
        dasktc.triangle_count(source_of(complete(4)), method=Method(assign="odd"))


@pytest.mark.parametrize("partition", some(["proxy", "vertical"], lambda partition: partition == "proxy"))
def test_the_smallest_n_worth_trying_that_fits(partition):
    """LSTC's parts shrink slowly with n, because hubs are proxies in nearly all of them."""
    source = source_of(random_edges(500, 1_500, 3))
    whole = dasktc.plan(source, method=Method(partition=partition, parts=1)).plan.bytes_per_task
    found = dasktc.plan(source, method=Method(partition=partition), memory=whole * 3 // 4).plan
    assert found.fits
    assert found.parts > 1
    before = dasktc.plan(source, method=Method(partition=partition, parts=found.parts - 1), memory=whole * 3 // 4).plan
    assert not before.fits
    small = source_of(random_edges(20, 60, 3))  # of which every n is tried
    assert not dasktc.plan(small, method=Method(partition=partition), memory=100).plan.fits


# ranges


@pytest.mark.parametrize("reorder", ["degree", "collective", "none"])
def test_ranges_have_about_equally_many_edges(reorder):
    """Rows by out-degree, columns by in-degree: each range is off by at most its largest vertex."""
    source = source_of(random_edges(3_000, 30_000, 2))
    found = dasktc.prepare(source, method=Method(partition="vertical", parts=5, reorder=reorder))._context.prepared
    rows, columns = found.partition.layout.rows, found.partition.layout.families[1]
    for axis, degree in ((rows, found.graph.out_degree.whole), (columns, found.graph.in_degree.whole)):
        edges = [int(axis.share(degree, part).sum()) for part in range(5)]
        assert sum(edges) == found.plan.edges
        assert max(edges) - min(edges) <= 2 * int(degree.max())


@given(
    multigraphs(max_vertices=14, max_edges=50),
    st.integers(1, 4),
    st.integers(1, 7),
    st.sampled_from([1, 3]),
    st.sampled_from(["degree", "collective", "none"]),
)
def test_as_many_column_ranges_as_asked(edges, parts, columns, splits, reorder):
    options = {"parts": parts, "column_parts": columns, "splits": splits, "reorder": reorder}
    result = dasktc.prepare(source_of(edges, parts=2), **keywords(partition="vertical", **options)).triangle_count(
        verify=1.0
    )
    assert int(result) == triangles(edges)
    plan = result.plan
    triples = list(plan.triples())
    assert len(set(triples)) == plan.parts**2 * columns
    assert {t.table[1] for t in triples} == {t.stream[1] for t in triples} == {plan.parts + k for k in range(columns)}


@pytest.mark.parametrize("partition", ["auto", "whole", "hash2d", "proxy", "vertical"])
@pytest.mark.parametrize(
    ("name", "given", "taker"),
    [("column_parts", 2, "vertical"), ("proxies", "tight", "proxy"), ("assign", "parts.csv", "proxy")],
)
def test_what_a_partition_does_not_know_is_refused(partition, name, given, taker, tmp_path):
    if name == "assign":
        given = str(tmp_path / given)
        Path(given).touch()
    says = rf"{name}=.* is given with partition='{partition}', .* method=Method\(partition='{taker}'\)$"
    if partition == taker:
        Options(partition=partition, **{name: given})
        return
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(source_of(complete(4)), **keywords(partition=partition, **{name: given}))


def test_too_many_column_ranges_are_refused():
    with pytest.raises(InputError, match="column_parts=4000000 makes 4,000,000 block triples"):
        dasktc.triangle_count(source_of(complete(4)), method=Method(partition="vertical", column_parts=4_000_000))


def test_a_size_alone_plans_column_ranges():
    plan = dasktc.plan(
        vertices=10_000, edges=100_000, method=Method(partition="vertical", parts=3, column_parts=5)
    ).plan
    assert (plan.tasks, plan.bytes_total) == (45, 8 * 24 + 2 * 8 * 3334 * 12 + 4 * (9 * 11112 + 15 * 6667))


# triples without wedges, and heavy ones


@pytest.mark.parametrize(
    ("source", "empty", "most"), [(kronecker(14), 247, 3.5), (rmat(2**17, 2**20), 302, 3.5)], ids=["Kronecker", "RM"]
)
def test_empty_triples_are_no_task_and_heavy_ones_are_several(source, empty, most):
    """Uncut, the largest of the others would have 19 and 42 times the mean probes."""
    graph = dasktc.prepare(source, method=Method(kernel="tcstream", partition="vertical", parts=8))
    result, sizes = graph.triangle_count(), graph._context.prepared.partition.sizes.edges
    without = [t for t in graph.plan.triples() if 0 in (sizes[t.index], sizes[t.table], sizes[t.stream])]
    assert len(without) == graph.plan.empty_triples == empty
    assert not {record.job.triple for record in result._records} & set(without)
    probes = [record.count.probes for record in result._records]
    assert max(probes) < most * sum(probes) / len(probes)
    assert f"{empty} triples have no wedges and no task" in str(graph.plan)
    assert json.loads(json.dumps(graph.plan.to_dict()))["empty_triples"] == empty


@given(
    multigraphs(max_vertices=14, max_edges=30),
    st.sampled_from(["vertical", "hash2d", "proxy"]),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_what_is_no_task_has_no_wedge(edges, partition, parts, splits):
    graph = dasktc.prepare(source_of(edges), method=Method(partition=partition, parts=parts, splits=splits))
    plan, sizes = graph.plan, graph._context.prepared.partition.sizes.edges
    empty = {t for t in plan.triples() if not (sizes[t.index] and sizes[t.stream])}
    result = graph.triangle_count(verify=1.0)
    counted = {record.job.triple for record in result._records}
    assert len(empty) - plan.empty_triples == len(counted & empty) == (len(empty) == len(list(plan.triples())))
    assert int(result) == triangles(edges)
    assert len(result._records) == plan.tasks == len(list(plan.scheduled)) * plan.splits


def test_more_ranges_than_vertices():
    for parts in (4, 9):
        assert int(dasktc.triangle_count(source_of(complete(4)), method=Method(partition="vertical", parts=parts))) == 4
