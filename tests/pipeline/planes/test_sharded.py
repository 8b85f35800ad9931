"""Sharded vertices: the same ids, blocks and counts as whole vectors, and no array as large as the vertices."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import product
from threading import Thread
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dasktc
from dasktc import generate
from dasktc.api.count import build
from dasktc.backends.csr import on_host
from dasktc.errors import InputError
from dasktc.executors.base import CPU, Fold
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.executors.offers import memory_of
from dasktc.executors.stores.file_store import FileStore, stage_memory_within
from dasktc.executors.stores.shared_file_store import SharedFileStore
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.io.write import write_edges
from dasktc.options import AttributeOptions, Method, Options, RunOptions
from dasktc.pipeline.attributes import edge_attributes
from dasktc.pipeline.columns import edge_column
from dasktc.pipeline.planes import budget, choose
from dasktc.pipeline.planes import vertex_budget as vertex_room
from dasktc.pipeline.planes.choice import sharded
from dasktc.pipeline.planes.distinct import numbered
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.planes.vertex_budget import VertexBudget
from dasktc.pipeline.prepare import prepare_blocks, prepare_edges
from dasktc.pipeline.stages.attributes import ReadPart
from dasktc.pipeline.stages.columns import Columns
from dasktc.pipeline.stages.shards import integers
from dasktc.planning.schemes import BY_REMAINDER
from dasktc.questions import similarity, weighted_clustering
from dasktc.questions.signed_triangles import signed_triangles
from dasktc.questions.similarity import MEASURES
from dasktc.questions.survey import survey
from dasktc.questions.triad_census import triad_census
from dasktc.questions.triangle_types import triangle_types
from dasktc.questions.update import update
from dasktc.registry import ORDERS, SCHEMES
from dasktc.reports.outputs import Outputs
from tests.support.keywords import keywords
from tests.support.oracle import (
    complete,
    messy,
    multigraphs,
    support,
    text_multigraphs,
    triangles,
    triangles_per_vertex,
)
from tests.support.processes import patience
from tests.support.retuned import retuned
from tests.support.slow_pipeline import (
    EVERY_REORDER,
    by_degree,
    orientation,
    random_edges,
    skewed_edges,
    source_of,
    tuned,
)
from tests.support.tiers import some

SPARSE = 7
"""Triangles of a random graph of 300,000 vertices, each of which draws two neighbours."""
CHOICES = [
    {"partition": "whole"},
    {"partition": "edges", "splits": 3},
    *({"partition": "hash2d", "parts": n} for n in (1, 2, 3)),
    *({"partition": "vertical", "parts": n} for n in (1, 2, 3)),
]


def in_shards(count):
    return tuned(least_shards=count)


def many_partitions(large):
    """Lower the limits, so that a handful of edges are treated as many."""
    return tuned(one_partition=1, partition_edges={"cpu": large})


def arrays_of(graph, tasks):
    """The arrays and fields of every block, by place."""
    places = sorted(graph._context.blocks)
    blocks = tasks.gather([graph._context.blocks[place] for place in places])
    return [
        (place, block.offsets.tolist(), block.columns.tolist(), block.stride, block.row_first, block.column_first,
         block.ordered, block.place)
        for place, block in zip(places, blocks, strict=True)
    ]  # fmt: skip


def vectors_of(graph, tasks):
    found = graph._context.prepared.graph
    vectors = (tasks.gather(vector.parts) for vector in (found.order, found.out_degree, found.in_degree))
    return [np.concatenate([on_host(part) for part in vector]).tolist() for vector in vectors]


def ids_of(graph, tasks):
    """The caller's ids by dense id."""
    found = graph._context.prepared.vertices
    if isinstance(found, Sharded):
        return [name for part in tasks.gather(found.parts) for name in part.tolist()]
    (known,) = tasks.gather([found])
    return known.external(np.arange(graph.vertices)).tolist()


def everything(graph, tasks):
    counted = sorted((record.job, record.count[:4]) for record in graph.triangle_count(verify=1.0)._records)
    return (
        arrays_of(graph, tasks),
        vectors_of(graph, tasks),
        ids_of(graph, tasks),
        graph._context.prepared.wedges,
        counted,
    )


def check(tasks, given, ids, shards, options, parts=3, large=20):
    with by_degree():
        expected = build(LocalExecutor(), source_of(given, ids, parts), options)
    with in_shards(shards), many_partitions(large):
        found = build(tasks, source_of(given, ids, parts), options)
    assert found.plan.shards == shards
    assert isinstance(found._context.prepared.vertices, Sharded)
    assert everything(found, tasks) == everything(expected, LocalExecutor())
    assert int(found.triangle_count()) == triangles(given)
    return found


# Bit for bit


WIDE = st.one_of(multigraphs(max_edges=90), text_multigraphs(max_edges=90))


def kind_of(given):
    return "text" if given and isinstance(given[0][0], str) else "int"


@pytest.mark.parametrize("reorder", EVERY_REORDER)
@given(given=WIDE, shards=st.integers(2, 6), choice=st.sampled_from(CHOICES), parts=st.integers(1, 4))
@example(given=[], shards=3, choice=CHOICES[0], parts=1)
@example(given=[(1, 1)], shards=2, choice=CHOICES[3], parts=1)
@example(given=messy(complete(9)), shards=4, choice=CHOICES[-1], parts=2)
@example(given=[("", "0"), ("0", "00"), ("00", ""), ("\U0010ffff", "\uffff")], shards=3, choice=CHOICES[4], parts=2)
@settings(max_examples=settings.default.max_examples // 2)
def test_shards_of_any_multigraph_give_what_whole_vectors_give(reorder, given, shards, choice, parts):
    check(LocalExecutor(), given, kind_of(given), shards, Options(reorder=reorder, **choice), parts)


@pytest.mark.parametrize(
    ("ids", "reorder"),
    some(
        product(["int", "text"], EVERY_REORDER),
        lambda ids, reorder: (ids == "text") == EVERY_REORDER.index(reorder) % 2,
    ),
)
def test_a_larger_graph_in_many_shards(reorder, ids):
    """Hubs in every partition, also bands above 100, and blocks that are built in several slabs."""
    given = [*complete(125), *skewed_edges(900, 4_000, 5)]
    if ids == "text":
        given = [(f"v{u}", f"v{v}") for u, v in given]
    for choice in (CHOICES[0], CHOICES[-1]):
        with by_degree():
            expected = build(LocalExecutor(), source_of(given, ids, 5), Options(reorder=reorder, **choice))
        with in_shards(7), many_partitions(500):
            found = build(LocalExecutor(), source_of(given, ids, 5), Options(reorder=reorder, **choice))
        assert len(found._context.prepared.graph.order.parts) > 3
        assert everything(found, LocalExecutor()) == everything(expected, LocalExecutor())


@given(given=WIDE, reorder=st.sampled_from(EVERY_REORDER), choice=st.sampled_from(CHOICES))
@settings(max_examples=settings.default.max_examples // 2)
def test_shards_in_files(tmp_path_factory, given, reorder, choice):
    options = Options(memory="1GB", reorder=reorder, **choice)
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path_factory.mktemp("work")), 1 << 20, small=1))
    tasks.store._limit = 0
    check(tasks, given, kind_of(given), 3, options)
    tasks.close()


def updated(given, cut, choice):
    """The graph of the first rows, prepared and then updated: all other rows are added, and every third is removed."""
    kind = kind_of(given)
    add, remove = (
        pd.DataFrame(rows, columns=["src", "dst"], dtype="str" if kind == "text" else "int64")
        for rows in (given[cut:], given[::3])
    )
    graph = build(LocalExecutor(), source_of(given[:cut], kind, 3), Options(**choice))
    return graph.update(add=add, remove=remove).graph


@given(given=WIDE, cut=st.integers(0, 60), shards=st.integers(2, 6), choice=st.sampled_from(CHOICES[:5]))
@example(given=messy(complete(9)), cut=20, shards=4, choice=CHOICES[0])
@settings(max_examples=settings.default.max_examples // 2)
def test_updates_in_shards_give_what_whole_vectors_give(given, cut, shards, choice):
    given = given or [(0, 0)]
    with by_degree():
        expected = updated(given, cut, choice)
    with in_shards(shards), many_partitions(20):
        found = updated(given, cut, choice)
    assert found.plan.shards == shards
    assert everything(found, LocalExecutor()) == everything(expected, LocalExecutor())


@pytest.mark.slow
def test_shards_on_workers_that_share_a_disk(client, tmp_path):
    given, options = skewed_edges(50, 300, 7), Options(memory="1GB", reorder="collective", partition="hash2d", parts=2)
    tasks = DaskExecutor(client, store=SharedFileStore(WorkDir(tmp_path), 1 << 20, small=1))
    check(tasks, given, "int", 2, options, 2, large=150)
    tasks.close()


def test_transitivity_needs_no_whole_vector():
    given = skewed_edges(100, 900, 2)
    with in_shards(4):
        graph = dasktc.prepare(source_of(given, parts=3))
    assert graph.transitivity() == dasktc.prepare(source_of(given)).transitivity() > 0


# What the shards are made of


def test_two_threads_may_make_a_vector_on_first_access():
    vector = Sharded((0, 3), lambda: ["part"])

    def meanwhile(frame, event, function):
        if event == "c_return" and function is callable:
            sys.setprofile(None)
            other = Thread(target=lambda: vector.parts)
            other.start()
            other.join()

    sys.setprofile(meanwhile)
    try:
        assert vector.parts == ["part"]
    finally:
        sys.setprofile(None)


def test_shards_are_about_equal_whatever_the_lists_share():
    """A tenth of the values are in each of 20 lists, the others in one of them."""
    rng = np.random.default_rng(3)
    values = rng.permutation(50_000) * 2**40 - 2**55
    lists = [np.sort(np.concatenate([values[:5_000], part])) for part in np.array_split(values[5_000:], 20)]
    expected = []
    found, _ = numbered(
        LocalExecutor(), "a test", lists, lambda size: expected.append(size) or -(-size // 5_000), integers(CPU)
    )
    sizes = [len(part) for part in found.parts]
    assert sum(sizes) == 50_000
    assert 50_000 < expected[-1] < 1.2 * 50_000
    assert max(sizes) < 1.5 * min(sizes)


# Nothing is as large as the vertices


class Watched(LocalExecutor):
    """Records the bytes that each call receives and returns."""

    def __init__(self, workers):
        super().__init__()
        self.workers, self.largest, self.most = workers, 0, 0

    def watched(self, function):
        def call(*args):
            before = list(held(args))
            result = function(*args)
            sizes = [*before, *held(result)]
            self.largest, self.most = max(self.largest, *sizes, 0), max(self.most, sum(sizes))
            return result

        return call

    def submit(self, stage, function, *args, **options):
        return self.watched(function)(*args)

    def map(self, stage, function, inputs, *shared):
        return super().map(stage, self.watched(function), inputs, *shared)

    def fold(self, stage, fold, inputs):
        return super().fold(stage, Fold(fold.start, self.watched(fold.add), fold.combine), inputs)

    def stream(self, stage, function, calls):
        return super().stream(stage, self.watched(lambda *call: list(function(*call))), calls)

    def map_unordered(self, stage, function, calls):
        return super().map_unordered(stage, self.watched(function), calls)


def held(value):
    """Bytes of all arrays in a value."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from held(item)
    elif hasattr(value, "columns") and hasattr(value, "offsets"):
        yield from held([value.offsets, value.columns])
    elif hasattr(value, "nbytes"):
        yield int(value.nbytes)
    elif hasattr(value, "memory_usage"):
        yield int(value.memory_usage(index=False).sum())


def watched(parts, reorder, ids="int"):
    """The largest array while 200 vertices and 400 edges per part are prepared, in `parts` shards and partitions."""
    given = random_edges(200 * parts, 400 * parts, 3)
    given = [(f"{u:09}", f"{v:09}") for u, v in given] if ids == "text" else [(u * 2**30, v * 2**30) for u, v in given]
    tasks, options = Watched(parts), Options(reorder=reorder, partition="hash2d", parts=max(1, parts // 2))
    with in_shards(parts), many_partitions(400):
        found = prepare_edges(tasks, source_of(given, ids, parts), options)
        prepare_blocks(tasks, found, options)
    assert len(found.graph.order.parts) == parts
    return tasks


@pytest.mark.parametrize(
    ("reorder", "ids"),
    some(
        [*((how, "int") for how in EVERY_REORDER), ("degree", "text")], lambda how, ids: (how, ids) == ("degree", "int")
    ),
)
def test_no_array_grows_with_the_vertices(reorder, ids):
    small, large = watched(8, reorder, ids), watched(32, reorder, ids)
    assert large.largest < 1.5 * small.largest
    assert large.most < 1.5 * small.most
    assert large.largest < 8 * 200 * 32 / 3  # a vector of all vertices takes 51,200 bytes


def of_labels(context):
    ids = np.concatenate(context.executor.gather(context.prepared.vertices.parts))
    labels = pd.Series(np.arange(len(ids)) % 3, ids).sample(frac=1, random_state=1)
    return triangle_types(context, labels)["triangles"].sum()


def of_update(context):
    """Edges that an update adds: between old vertices, and to new ones between and below these; others leave."""
    parts, is_text = len(context.prepared.graph.order.parts), context.prepared.source.ids == "text"
    edges = [(u, v) for u, v in random_edges(200 * parts, 400 * parts, 3) if u != v]
    remove = [edge for edge in edges if {*edge} & {*edges[0], *edges[1]}]
    add = [*zip(range(40), range(80, 40, -1), strict=True), *((v, -v) for v in range(1, 40))]
    old, new = ({v for edge in rows for v in edge} for rows in (edges, {*edges} - {*remove} | {*add}))
    assert old - new
    assert new - old
    frames = (pd.DataFrame([(f"{u:09}", f"{v:09}") if is_text else (u, v) for u, v in rows]) for rows in (add, remove))
    context = replace(context, prepared=replace(context.prepared, attributes=None, columns=Columns()))
    change = update(context, *frames)
    assert change.graph.vertices == len(new)
    return change.removed


QUESTIONS = {
    "update": of_update,
    "survey": lambda context: survey(context, lambda batch: int(batch["w_uv"].sum()), ["w"]),
    "triangle types": of_labels,
    "signed triangles": lambda context: signed_triangles(context, "w")["balanced"],
    "weighted clustering": lambda context: weighted_clustering.average_clustering(context, "w"),
    "triad census": lambda context: triad_census(context)["012"],
    "weighted supports": lambda context: len(similarity._weighted_supports(context, MEASURES["adamic_adar"].weight)),
    "given pairs": lambda context: similarity.similarity(
        context, [(0, 0), (7, 7)], "resource_allocation"
    ).resource_allocation.sum(),
}


def watched_question(question, parts, ids):
    """The largest arrays while columns and weights are kept, and a question is answered, as in `watched`."""
    given = random_edges(200 * parts, 400 * parts, 3)
    given = [(f"{u:09}", f"{v:09}") for u, v in given] if ids == "text" else given
    tasks, options = Watched(parts), Options(partition="hash2d", parts=parts // 4)
    source = source_of(given, ids, parts)
    with in_shards(parts), many_partitions(400):
        context = build(tasks, source, options)._context
    frames = [part.read(CPU).assign(weight=1.0) for part in source.parts]
    source = replace(source, parts=tuple(ReadPart(frame, ids) for frame in frames), weight="w")
    tasks.largest = tasks.most = 0
    kept = edge_column(tasks, context.prepared, context.blocks, source, "w", "max")
    values = edge_attributes(tasks, context.prepared, context.blocks, source, AttributeOptions("w", True, "last"))
    prepared = replace(context.prepared, columns=Columns({}, {"w": kept}), attributes=values)
    assert len(values.neighbours.parts) == parts
    assert QUESTIONS[question](replace(context, prepared=prepared)) > 0
    return tasks


@pytest.mark.parametrize(
    ("question", "ids"),
    some(
        [*((question, "int") for question in QUESTIONS), ("survey", "text"), ("update", "text")],
        lambda *case: case in [("survey", "int"), ("update", "int")],
    ),
)
def test_no_array_of_a_question_grows_with_the_vertices(question, ids):
    small, large = watched_question(question, 8, ids), watched_question(question, 32, ids)
    assert large.largest < 1.5 * small.largest
    assert large.largest < 8 * 200 * 32 / 3


def test_a_whole_vector_would_be_seen():
    found = [Watched(parts) for parts in (8, 32)]
    for tasks in found:
        with many_partitions(400):
            prepare_edges(tasks, source_of(random_edges(200 * tasks.workers, 400 * tasks.workers, 3)), Options())
    assert found[1].largest > 3 * found[0].largest


# The rule


@pytest.mark.slow
def test_ids_that_might_have_been_more_are_a_map_after_all(tmp_path):
    """2,000 rows may have 4,000 vertices, or as many as the parts' own ids together, but have 40."""
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 16_000))
    for scale, ids in ((2**40, "int"), (1, "int"), (1, "text")):
        given = [(scale * u, scale * v) for u, v in random_edges(40, 2_000, 1)]
        given = [(str(u), str(v)) for u, v in given] if ids == "text" else given
        with mock.patch.object(budget, "dense_ends", side_effect=AssertionError("frames have their numbers")):
            found = build(tasks, source_of(given, ids, 4), Options(memory="1GB"))
        assert found.plan.shards == 1
        assert ids_of(found, tasks) == orientation(given).ids
        assert int(found.triangle_count()) == triangles(given)
    tasks.close()


def test_vertices_are_in_one_piece_while_they_fit():
    room = VertexBudget(42_000)
    assert (room.need(1_000), room.shards(1_000), room.shards(1_001)) == (42_000, 1, 2)
    assert room.shards(10_000) == 20
    assert VertexBudget(80_000, order="collective").shards(1_000) == 1
    assert VertexBudget(79_999, order="collective").shards(1_000) == 2
    assert VertexBudget(199_999, ids="text").shards(1_000) == 3
    assert VertexBudget(200_000, ids="text").for_texts(1_000, 17_000).shards(1_000) == 1
    assert VertexBudget(200_000, ids="text").for_texts(1_000, 180_000).shards(1_000) == 23  # ten times as wide
    assert VertexBudget(None).shards(2**31) == 1
    assert VertexBudget(42_000, on_device=True).shards(1_001) == 2
    assert "1,000 vertices take 42 kB" in VertexBudget(40_000).why(1_000)
    assert VertexBudget(50_000).why(1_000).startswith("vertices in one piece: 42 kB")
    VertexBudget(200).check(1_000, "auto")
    with pytest.raises(
        InputError, match=r"than the 100 B .*: 512 shards of them do not fit either; give memory='223 B'"
    ):
        VertexBudget(100).check(1_000, "auto")


def test_the_room_is_that_of_the_executor(client, tmp_path):
    """Of one call within a budget; of a thread's share of its worker, where more is merged at once; else unlimited."""
    options = Options(reorder="collective", memory="20MB")
    on_disk = LocalExecutor(FileStore(WorkDir(tmp_path), 20_000))
    assert choose(on_disk, options).vertex_budget("text") == VertexBudget(
        15_000, "text", "collective", memory_ratio=20_000_000 / 15_000
    )
    share = memory_of(DaskExecutor(client))
    assert share > vertex_room.LEAST_MEMORY
    assert choose(DaskExecutor(client), Options(reorder="collective")).vertex_budget("int") == VertexBudget(
        share, "int", "collective", 3
    )
    assert choose(LocalExecutor(), options).vertex_budget("int").call_memory is None
    on_disk.close()


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """A file with 300,000 vertices and twice as many edges, and a file with few."""
    folder = tmp_path_factory.mktemp("graphs")
    for count in (300_000, 1_000):
        write_edges(generate.random_graph(count, 2 * count), folder / f"{count}.parquet", LocalExecutor())
    return [str(folder / f"{count}.parquet") for count in (300_000, 1_000)]


MEASURED = """
import gc, json, sys
import dasktc
from dasktc.bench.measure import forget_peak, peak_bytes, resident_bytes

path, small, options = *sys.argv[1:3], json.loads(sys.argv[3])
method, place = {"reorder": options.pop("reorder")}, options.pop("work_dir")
options["run"] = dasktc.RunOptions(work_dir=place)
dasktc.triangle_count(small, per_vertex=sys.argv[4] + "small.parquet", method=dasktc.Method(**method), **options)
gc.collect()
before = resident_bytes()
forget_peak()
result = dasktc.triangle_count(path, method=dasktc.Method(parts=4, **method), per_vertex=sys.argv[4], **options)
print(json.dumps([int(result), result.vertices, result.plan.shards, peak_bytes() - before]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured and forgotten through /proc")
def test_vertices_that_do_not_fit_keep_the_budget(sparse, tmp_path):
    """By the rule whole vectors would take 24 MB, and a call has 10.4 MB; triangles by vertex are also written."""
    memory = 18_000_000
    options = json.dumps({"memory": memory, "reorder": "collective", "work_dir": str(tmp_path)})
    command = [sys.executable, "-c", MEASURED, *sparse, options, str(tmp_path / "v.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience())
    assert done.returncode == 0, done.stderr
    triangles, vertices, shards, peak = json.loads(done.stdout)
    assert (triangles, vertices) == (SPARSE, 300_000)
    assert shards > 1
    assert peak < memory


def test_the_plan_says_how_vertices_are_kept(sparse):
    options = {"memory": "18MB"}
    plan = dasktc.plan(sparse[0], **keywords(**options)).plan
    assert plan == dasktc.triangle_count(sparse[0], **keywords(**options)).plan
    assert plan.shards > 1
    assert f"prepared      vertices in {plan.shards} shards" in str(plan)
    assert "take 12.6 MB while they are numbered and ranked, more than the 10.4 MB" in str(plan)
    sized = dasktc.plan(vertices=plan.vertices, edges=plan.edges, **keywords(**options)).plan
    assert (sized.shards, sized.numbering) == (plan.shards, plan.numbering)
    assert plan.to_dict()["shards"] == plan.shards
    assert (
        dasktc.plan(vertices=1_000, edges=2_000, **keywords(**options)).plan.shards
        == dasktc.plan(sparse[1], **keywords(**options)).plan.shards
        == 1
    )


def test_what_takes_whole_vectors_is_refused_with_figures(sparse, monkeypatch):
    keeps = replace(BY_REMAINDER, whole_vectors="a vector of its own")
    monkeypatch.setitem(SCHEMES, "kept", replace(SCHEMES["whole"], name="kept", dealing=keeps))
    with pytest.raises(InputError, match=r"take 12.6 MB .* partition='kept' keeps .* give memory='22.3 MB'") as error:
        dasktc.triangle_count(sparse[0], memory="18MB", method=Method(partition="kept"))
    assert "\n" not in str(error.value)
    assert stage_memory_within(22_200_000) >= 12_600_000


@pytest.mark.slow
def test_parts_with_proxies_are_counted_where_vertices_are_in_shards(sparse):
    result = dasktc.triangle_count(sparse[0], memory="18MB", method=Method(partition="proxy", parts=4))
    assert (int(result), result.plan.partition) == (SPARSE, "proxy")
    assert result.plan.shards > 1


def test_more_vertices_than_columns_can_name_are_refused_in_shards():
    ids = [np.arange(start, start + 30) for start in (0, 10)]
    huge_shards = integers(CPU)._replace(unite=lambda lists: range(1 << 30))
    with pytest.raises(InputError, match="the graph has 3,221,225,472 vertices, 2,147,483,647 at most"):
        numbered(LocalExecutor(), "vertices", ids, lambda _: 3, huge_shards)


def test_a_series_of_all_vertices_is_refused_with_figures(sparse, tmp_path):
    graph = dasktc.prepare(sparse[0], memory="18MB", run=RunOptions(work_dir=tmp_path))
    for ask in (graph.triangles, graph.clustering):
        with pytest.raises(
            InputError, match=r"300,000 vertices take 12.6 MB .* with per_vertex=.*, or prepare with a larger memory="
        ):
            ask()


# Results under the caller's ids


def results(graph):
    return graph.triangles(), graph.clustering(), graph.edge_support(), graph.triangle_list(), graph.triangle_list(2)


PARTS = {"partition": "proxy", "parts": 3}


@pytest.mark.parametrize("choice", [CHOICES[0], CHOICES[1], CHOICES[4], CHOICES[7], PARTS], ids=str)
@given(given=WIDE, reorder=st.sampled_from(EVERY_REORDER), shards=st.integers(2, 5))
@example(given=[], reorder="degree", shards=2)
@example(given=messy(complete(9)), reorder="none", shards=4)
@settings(max_examples=settings.default.max_examples // 4)
def test_results_are_those_of_whole_vectors(choice, given, reorder, shards):
    source, options = partial(source_of, given, kind_of(given), 3), Options(reorder=reorder, **choice)
    with by_degree():
        expected = results(build(LocalExecutor(), source(), options))
    with in_shards(shards), many_partitions(20):
        found = results(retuned(build(LocalExecutor(), source(), options), partition_bytes=30 * 24))
    for one, other in zip(found[:2], expected[:2], strict=True):
        pd.testing.assert_series_equal(one, other)
    for one, other in zip(found[2:], expected[2:], strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("ids", ["int", "text"])
def test_requested_vertices(ids):
    """Each shard is asked for the ids that it may have."""
    given = [(f"v{u}", f"v{v}") if ids == "text" else (u, v) for u, v in complete(30)]
    wanted = [name for edge in given[::-7] for name in edge]
    with in_shards(4):
        graph = build(LocalExecutor(), source_of(given, ids, 3), Options())
    found = graph.triangles(vertices=wanted)
    assert found.index.tolist() == wanted
    assert found.tolist() == [29 * 28 // 2] * len(wanted)
    for missing in ("w", "a", "v31") if ids == "text" else (-1, 31, 99):
        with pytest.raises(InputError, match=f"1 id that is not in the graph, for example '?{missing}'?"):
            graph.triangles(vertices=[*wanted, missing])
    assert not len(graph.triangles(vertices=[]))


@pytest.mark.parametrize("ids", ["int", "text"])
def test_results_in_files(tmp_path, ids):
    """Written by an executor that keeps nothing in memory: one file of vertices per shard."""
    given = skewed_edges(60, 700, 7)
    given = [(f"v{u}", f"v{v}") for u, v in given] if ids == "text" else given
    tasks = LocalExecutor(FileStore(WorkDir(tmp_path), 1 << 20, small=1))
    tasks.store._limit = 0
    with in_shards(3), many_partitions(100):
        graph = build(tasks, source_of(given, ids, 3), Options(memory="1GB", partition="hash2d", parts=2))
    Outputs(per_vertex=tmp_path / "v.parquet", per_edge=tmp_path / "e.parquet").write(
        graph._context, graph.triangle_count()
    )
    tasks.close()
    vertices, supports = pd.read_parquet(tmp_path / "v.parquet"), pd.read_parquet(tmp_path / "e.parquet")
    assert vertices.set_index("vertex")["triangles"].to_dict() == triangles_per_vertex(given)
    assert vertices["vertex"].is_monotonic_increasing
    assert {frozenset(row[:2]): row[2] for row in supports.itertuples(index=False)} == support(given)
    assert len(list((tmp_path / "v.parquet").iterdir())) == 3


@pytest.mark.slow
def test_results_on_workers(client, tmp_path):
    given = [(f"v{u}", f"v{v}") for u, v in skewed_edges(50, 400, 7)]
    graph = check(DaskExecutor(client), given, "text", 3, Options(partition="hash2d", parts=2), large=150)
    alone = build(LocalExecutor(), source_of(given, "text", 2), Options())
    pd.testing.assert_series_equal(graph.clustering(), alone.clustering())
    pd.testing.assert_frame_equal(graph.triangle_list(), alone.triangle_list())
    Outputs(per_edge=tmp_path / "e.csv").write(graph._context, graph.triangle_count())
    found = pd.read_csv(tmp_path / "e.csv")
    assert {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)} == support(given)


def test_bands_of_more_vertices_than_64_bits_hold_are_refused():
    graph = SimpleNamespace(order=SimpleNamespace(size=2**31, starts=(0, 2**31)))
    plane = sharded(choose(LocalExecutor(), Options()), 2)
    with pytest.raises(InputError, match="do not fit 64 bits"):
        plane.reorder(graph, ORDERS["collective-banded"], 32)
