"""Surveys, columns, weights and directions on a GPU, against brute force and the CPU: emulated, and on one."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends.csr import on_host
from dasktc.errors import CountError, InputError
from dasktc.questions import triangle_types
from tests.questions.test_survey import PLANS, REORDERS, triangles_of
from tests.support import oracle
from tests.support.emulation.host import needs_compiler
from tests.support.keywords import keywords
from tests.support.retuned import retuned
from tests.support.slow_pipeline import skewed_edges
from tests.support.tiers import each_once

KEPT = dict(
    weight="share", directed=True, duplicates="last", edge_columns=dict.fromkeys(["time", "kind", "sign"], "max")
)
SKEWED = [*skewed_edges(60, 500, 5), (0, 1)]


def rows_of(edges, seed=1, ids=int):
    """Rows of edges with values, and some rows again with others, some of them turned."""
    random = np.random.default_rng(seed)
    rows = np.array([*edges, *(edge[::-1] for edge in edges[::3])], dtype=np.int64).reshape(-1, 2)
    frame = pd.DataFrame({"src": [*map(ids, rows[:, 0].tolist())], "dst": [*map(ids, rows[:, 1].tolist())]})
    return frame.assign(
        time=random.integers(-(2**63), 2**63 - 1, len(rows)) >> random.integers(0, 63, len(rows)),
        sign=random.choice([1, -1], len(rows)),
        share=random.uniform(-1, 3, len(rows)),
        kind=random.choice(["a", "b", "long text", "ü"], len(rows)),
    ).astype({"kind": "str"})


def groups_of(frame):
    """A group for each vertex."""
    ids = pd.unique(pd.concat([frame["src"], frame["dst"]]))
    return pd.DataFrame({"vertex": ids, "group": [sum(map(ord, str(vertex))) % 3 for vertex in ids]})


def prepared(frame, backend="cuda", client=None, **options):
    kept = KEPT if len(frame) else {name: KEPT[name] for name in ("weight", "directed", "duplicates")}
    return dasktc.prepare(
        frame, client, **keywords(**kept | dict(backend=backend, vertices=groups_of(frame)) | options)
    )


def listed(batch):
    """The rows of a batch, each with how often it came; arrays of a device are copied."""
    return Counter(map(tuple, pd.DataFrame({name: on_host(values) for name, values in batch.items()}).to_numpy(object)))


def triangles_with_values(graph, names):
    """Each triangle's values by edge and by vertex, whichever of its vertices is u."""
    found = Counter()
    for row, count in graph.survey(listed, names).items():
        ends, values = row[:3], row[3:]
        by_edge = {}
        for number, name in enumerate(sorted(names, key=names.index)):
            keys = ends if name == "group" else [frozenset(pair) for pair in ((*ends[:2],), ends[::2], ends[1:])]
            by_edge |= {(name, key): value for key, value in zip(keys, values[3 * number :], strict=False)}
        found[frozenset(ends), frozenset(by_edge.items())] += count
    return found


def answers(graph):
    """Everything that values decide."""
    temporal = graph.temporal_triangles("time", window=1 << 40)
    return {
        "survey": triangles_with_values(graph, ["group", "time", "kind", "sign"]),
        "columns": graph.columns,
        "types": graph.triangle_types("group").to_dict("list"),
        "signs": graph.signed_triangles("sign"),
        "times": (temporal.triangles, temporal.within, temporal.histogram.to_dict("list")),
        "triads": graph.triad_census(),
        "directed": graph.clustering(frame="pandas").round(12).to_dict(),
    }


def weighted(graph):
    return graph.clustering("share", frame="pandas").sort_index()


def check(frame, client=None, **options):
    """Compare a GPU with one thread of the CPU."""
    known, graph = prepared(frame, "cpu", threads=1), prepared(frame, client=client, **options)
    assert answers(graph) == answers(known)
    np.testing.assert_allclose(weighted(graph).to_numpy(), weighted(known).to_numpy(), rtol=1e-12, atol=1e-12)
    return graph


@needs_compiler
@pytest.mark.parametrize(("plan", "reorder"), each_once([(plan, reorder) for plan in PLANS for reorder in REORDERS]))
def test_every_way_is_that_of_the_cpu(emulated, plan, reorder):
    check(rows_of(SKEWED), reorder=reorder, **plan)


@needs_compiler
@given(edges=oracle.multigraphs(), plan=st.sampled_from(PLANS), size=st.sampled_from([1, 3, 1 << 16]))
def test_every_triangle_comes_once(emulated, edges, plan, size):
    graph = dasktc.prepare(pd.DataFrame([*edges], columns=["src", "dst"]), **keywords(backend="cuda", **plan))
    ids = graph.triangles(frame="pandas").index
    batches = retuned(graph, device_batch=size).survey(listed)
    found = {tuple(sorted(ids[list(row)])): count for row, count in batches.items()}
    assert found == dict.fromkeys(triangles_of(edges), 1)


@needs_compiler
def test_a_survey_goes_on_from_a_checkpoint(emulated, tmp_path):
    frame, names, steps = rows_of(SKEWED), ["time", "kind"], []

    def interrupt(*step):
        steps.append(step)
        if step[1] == 3:
            raise KeyboardInterrupt

    def survey(progress=None):
        with prepared(frame, partition="hash2d", parts=2) as graph:
            return graph.survey(listed, names, checkpoint=tmp_path, progress=progress)

    with pytest.raises(KeyboardInterrupt):
        survey(interrupt)
    found, steps = survey(lambda *step: steps.append(step)), steps[4:]
    assert steps[0][1] == 3
    with prepared(frame, "cpu") as graph:
        assert sum(found.values()) == sum(graph.survey(listed, names).values()) == int(graph.triangle_count())
    with pytest.raises(InputError, match=r"another survey: backend cuda, .* there, backend cpu"):
        prepared(frame, "cpu", partition="hash2d", parts=2, splits=1).survey(listed, names, checkpoint=tmp_path)


@needs_compiler
@pytest.mark.parametrize("most", [0, 8])
@pytest.mark.parametrize("labels", [1, 2, 3, 5])
def test_labels_in_subgraphs_and_in_batches(emulated, labels, most):
    label = {vertex: vertex % labels for vertex in range(60)}
    expected = Counter(tuple(sorted(label[vertex] for vertex in triangle)) for triangle in triangles_of(SKEWED))
    for plan in (PLANS[1], PLANS[3]):
        graph = dasktc.prepare(pd.DataFrame(SKEWED, columns=["src", "dst"]), **keywords(backend="cuda", **plan))
        types = retuned(graph, subset_labels=most).triangle_types(label)
        types = types.set_index(["a", "b", "c"])["triangles"].to_dict()
        assert {type_: count for type_, count in types.items() if count} == expected


@needs_compiler
def test_labels_of_a_series_on_the_device(emulated):
    with dasktc.prepare(np.array(oracle.complete(6)), backend="cuda") as graph:
        answer = graph.triangles(frame="cudf")
        types = graph.triangle_types(answer)
    assert types[["a", "b", "c", "triangles"]].values.tolist() == [[10, 10, 10, 20]]


@needs_compiler
@pytest.mark.parametrize("ids", [lambda vertex: 10**12 + 7 * vertex, lambda vertex: f"é{vertex}"], ids=["wide", "text"])
def test_ids_anywhere(emulated, ids):
    check(rows_of(SKEWED, ids=ids))


@needs_compiler
def test_within_memory(emulated, tmp_path):
    with check(rows_of(SKEWED), memory="2GB", work_dir=tmp_path) as graph:
        with pytest.raises(InputError, match="column 'time' has the value"):
            graph.signed_triangles("time")


@needs_compiler
def test_a_saved_graph(emulated, tmp_path):
    graph, known = (prepared(rows_of(SKEWED), backend) for backend in ("cuda", "cpu"))
    known.save(tmp_path / "graph")
    opened = dasktc.open_graph(tmp_path / "graph", backend="cuda")
    graph.save(tmp_path / "again")
    again = dasktc.open_graph(tmp_path / "again", backend="cpu", threads=1)
    for other in (opened, again):
        assert other.triad_census() == known.triad_census()
        np.testing.assert_allclose(weighted(other).to_numpy(), weighted(known).to_numpy(), rtol=1e-12, atol=1e-12)


@needs_compiler
def test_on_workers(emulated):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        check(rows_of(SKEWED), client, partition="hash2d", parts=2).close()


@needs_compiler
def test_results_of_a_device_are_added_up(emulated):
    graph = dasktc.prepare(pd.DataFrame(oracle.complete(9)), backend="cuda")
    xp = emulated.array
    by_vertex = graph.survey(lambda b: xp.bincount(xp.concatenate([b["u"], b["v"], b["w"]]), minlength=9))
    assert isinstance(by_vertex, np.ndarray)
    assert by_vertex.tolist() == graph.triangles(frame="pandas").tolist()
    assert graph.survey(lambda b: {"n": (b["u"] >= 0).sum()}) == {"n": 84}
    assert graph.survey(lambda b: b["u"].max() * 0 + 0.5) == 0.5
    none = dasktc.prepare(pd.DataFrame(oracle.star(5)), backend="cuda")
    assert none.survey(lambda b: xp.bincount(b["u"], minlength=6)).tolist() == [0] * 6


@needs_compiler
@pytest.mark.parametrize(
    "kept", [dict(weight="share", duplicates="last"), dict(edge_columns={"time": "max"}), dict(vertices=True)], ids=list
)
def test_values_stay_on_the_cpu_unless_a_gpu_is_asked_for(emulated, kept):
    frame = rows_of(SKEWED)
    kept = {**kept, "vertices": groups_of(frame)} if "vertices" in kept else kept
    for backend, chosen in (("auto", "cpu"), ("cuda", "cuda")):
        assert dasktc.prepare(frame, backend=backend, **kept)._context.options.chosen_backend == chosen
    assert dasktc.prepare(frame, backend="auto")._context.options.chosen_backend == "cuda"


@needs_compiler
@pytest.mark.parametrize(("splits", "parts"), [(1, 1), (3, 1), (2, 2)])
def test_what_a_plan_accepts_is_answered(emulated, splits, parts):
    """The memory that a plan of kept values needs suffices for every question of them."""
    frame = rows_of(skewed_edges(300, 6000, 3))
    options = dict(partition="hash2d", parts=parts, splits=splits)
    needed = prepared(frame, memory="1GB", **options).plan.bytes_per_task
    with pytest.raises(InputError, match="memory"):
        prepared(frame, memory=needed // 2, **options)
    for memory in range(needed, 4 * needed, needed // 8):
        with suppress(InputError):
            graph = prepared(frame, memory=memory, **options)
            break
    for ask in (lambda: graph.clustering("share"), lambda: graph.signed_triangles("sign"), graph.triad_census):
        ask()
    assert graph.survey(lambda batch: len(batch["u"]), ["time", "kind", "sign"]) == int(graph.triangle_count())


@needs_compiler
def test_lost_triangles_are_refused(emulated, monkeypatch):
    graph, bits_of = dasktc.prepare(pd.DataFrame(oracle.complete(9)), backend="cuda"), triangle_types._label_bits
    monkeypatch.setattr(triangle_types, "_label_bits", lambda *args: bits_of(*args) | 1)
    with pytest.raises(CountError, match=r"triangles by labels are \d+, of a type at least -?\d+, but 84 were counted"):
        graph.triangle_types({vertex: vertex % 2 for vertex in range(9)})


@needs_compiler
def test_memory_is_refused_with_figures(emulated):
    graph = dasktc.prepare(pd.DataFrame(oracle.complete(40)), backend="cuda", memory="500kB")
    with pytest.raises(InputError, match=r"survey needs .* n = \d+, more than the .* of one worker: .* numbers"):
        graph.survey(lambda batch: len(batch["u"]))


# on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_way_on_the_device(plan):
    for reorder in REORDERS:
        check(rows_of(SKEWED), reorder=reorder, **plan)


@pytest.mark.gpu
def test_memory_and_ids_on_the_device(tmp_path):
    check(rows_of(SKEWED, ids=lambda vertex: f"é{vertex}"))
    check(rows_of(SKEWED), memory="2GB", work_dir=tmp_path).close()


@pytest.mark.gpu
def test_results_of_the_device_are_added_up():
    cp, cudf = pytest.importorskip("cupy"), pytest.importorskip("cudf")
    graph = dasktc.prepare(dasktc.generate.kronecker(14), backend="cuda")
    by_vertex = graph.survey(lambda b: sum(cp.bincount(b[end], minlength=graph.vertices) for end in "uvw"))
    assert by_vertex.tolist() == graph.triangles(frame="pandas").tolist()
    series = graph.survey(lambda b: cudf.Series(b["u"] % 7).value_counts())
    assert int(series.sum()) == 2843668
    label = {int(vertex): int(vertex) % 3 for vertex in graph.triangles(frame="pandas").index}
    known = dasktc.prepare(dasktc.generate.kronecker(14), backend="cpu")
    assert graph.triangle_types(label).equals(known.triangle_types(label))
