"""Saved graphs that are opened again: the same answers with other workers and backends, or a refusal in one line."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest import mock

import fsspec
import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

import dasktc
from dasktc.api.count import build
from dasktc.backends import host_threads
from dasktc.cli.main import main
from dasktc.errors import DasktcError, InputError
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor
from dasktc.options import Method, Options, RunOptions
from dasktc.saved import arrays as array_files
from dasktc.saved import folder as saved_folder
from dasktc.saved import opening, writing
from dasktc.saved.arrays import StoredArray, read_array, write_arrays
from dasktc.saved.folder import MANIFEST
from dasktc.saved.manifest import VECTORS
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.hostile_graphs import arrays_of, changed, checksummed, content_of
from tests.support.keywords import keywords
from tests.support.oracle import clean, triangles
from tests.support.slow_pipeline import EVERY_REORDER, skewed_edges, source_of, tuned
from tests.support.tiers import each_once, some

EDGES = skewed_edges(70, 500, 3)
COUNT = triangles(EDGES)
VERTICES = len({v for edge in clean(EDGES) for v in edge})
PLANS = [
    {"partition": "whole"},
    {"partition": "edges", "splits": 3},
    {"partition": "hash2d", "parts": 3},
    {"partition": "vertical", "parts": 2, "column_parts": 3},
    {"partition": "proxy", "parts": 3},
]
TEXT = [(f"é{u}", f"é{v}") for u, v in EDGES]


OPENED_AT_ONCE = """
import sys, threading
import dasktc

def opened():
    together.wait()
    dasktc.open_graph(sys.argv[1], threads=1)

sys.setswitchinterval(1e-6)
together = threading.Barrier(8)
threads = [threading.Thread(target=opened) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def in_shards(count):
    return tuned(least_shards=count)


@contextmanager
def small_chunks():
    """Cut arrays into many chunks and slabs."""
    with mock.patch.object(array_files, "CHUNK", 64), mock.patch.object(host_threads, "SLAB", 192):
        yield


def answers(graph, trusses=True):
    result = graph.triangle_count(verify=1.0)
    of_edges = graph.edge_support(frame="pandas")
    return [
        (int(result), result.edges, result.vertices, result.loops_dropped, result.duplicates_dropped),
        graph.triangles().to_dict(),
        list(of_edges.itertuples(index=False)),
        graph.triangle_list(limit=10**6, frame="pandas").values.tolist(),
        list(graph.truss(frame="pandas").itertuples(index=False)) if trusses else None,
        graph.average_clustering(),
    ]


@pytest.fixture(scope="module")
def wanted():
    return answers(dasktc.prepare(source_of(EDGES), backend="cpu"))


@pytest.fixture
def saved(tmp_path):
    """A graph of four blocks."""
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="hash2d", parts=2)).save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.fixture
def proxied(tmp_path):
    """A graph of two parts and their proxies."""
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="proxy", parts=2)).save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.fixture
def cut(tmp_path):
    """A graph of two blocks."""
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="vertical", parts=1)).save(
        tmp_path / "graph"
    )
    return tmp_path / "graph"


@pytest.mark.parametrize("partition", ["hash2d", "proxy", "vertical"])
def test_blocks_of_other_sizes_than_a_manifest_says_are_refused(tmp_path, partition):
    """Answers allocate sums of so many vertices: larger numbers would be written past their ends."""
    folder = tmp_path / "graph"
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition=partition, parts=2)).save(folder)
    manifest = content_of(folder)
    for number, block in enumerate(manifest["blocks"]):
        for name in {"offsets", "columns", "members"} & block.keys():
            blocks = copy.deepcopy(manifest["blocks"])
            blocks[number][name]["length"] -= 1
            rewritten(folder, blocks=blocks)
            with pytest.raises(InputError, match="is damaged"):
                dasktc.open_graph(folder)
    rewritten(folder, blocks=manifest["blocks"])
    assert int(dasktc.open_graph(folder).triangle_count()) == COUNT
    for layout in (
        {"type": "parts", "wedges": 0, "proxies": []},
        {"type": "parts", "wedges": 0, "proxies": [[1, 1, 1, 1]] * 2},
        {"type": "grid", "rows": 2, "families": [2]},
        {"type": "grid", "rows": 2, "families": [1, 1]},
    ):
        if layout != manifest["layout"]:
            rewritten(folder, layout=layout)
            with pytest.raises(InputError, match="is damaged"):
                dasktc.open_graph(folder)


@pytest.mark.parametrize("axis", [("rows",), ("families", 0), ("families", 1)])
@pytest.mark.parametrize(
    "starts", [[], [0, VERTICES], [1, 5, VERTICES], [0, 5, VERTICES + 1], [0, VERTICES + 1, VERTICES]]
)
def test_ranges_that_are_not_those_of_the_vertices_are_refused(tmp_path, axis, starts):
    folder = tmp_path / "graph"
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="vertical", parts=2)).save(folder)
    content = content_of(folder)
    at(content["layout"], axis[:-1])[axis[-1]] = starts
    rewritten(folder, layout=content["layout"])
    with pytest.raises(InputError, match=r"is damaged: its grid has ranges that are not those of|its layout is not"):
        dasktc.open_graph(folder)


@pytest.mark.parametrize(
    ("plan", "reorder"), each_once((plan, order) for plan in PLANS for order in EVERY_REORDER), ids=str
)
def test_all_answers_are_those_of_the_graph(tmp_path, plan, reorder):
    with small_chunks():
        graph = dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(reorder=reorder, **plan))
        assert graph.save(tmp_path / "graph") == sum(
            of["length"] * np.dtype(of["dtype"]).itemsize for of in arrays_of(content_of(tmp_path / "graph"))
        )
        with mock.patch.object(pickle, "load", side_effect=AssertionError):
            again = dasktc.open_graph(tmp_path / "graph", backend="cpu", threads=2)
        shutil.rmtree(tmp_path / "graph")
    assert answers(again) == answers(graph)
    same = ("partition", "parts", "splits", "bytes_per_task", "choice", "proxies", "shards")
    assert [getattr(again.plan, name) for name in same] == [getattr(graph.plan, name) for name in same]
    assert int(again.triangle_count(kernel="search")) == COUNT


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[2]], ids=str)
def test_updates_of_an_opened_graph(tmp_path, plan):
    dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(**plan)).save(tmp_path / "graph")
    change = dasktc.open_graph(tmp_path / "graph").update(
        add=([0, 500], [501, 1]), remove=([EDGES[0][0]], [EDGES[0][1]])
    )
    changed = [edge for edge in EDGES if set(edge) != set(EDGES[0])] + [(0, 501), (500, 1)]
    assert int(change.graph.triangle_count()) == triangles(changed)
    change.graph.save(tmp_path / "changed")
    opened = answers(dasktc.open_graph(tmp_path / "changed"))
    assert opened[1:] == answers(dasktc.prepare(source_of(changed)))[1:]


@pytest.mark.parametrize("plan", some(PLANS, lambda plan: plan["partition"] == "whole"), ids=str)
def test_workers_save_and_open(tmp_path, client, wanted, plan):
    with mock.patch.object(DaskExecutor, "gather", autospec=True, side_effect=DaskExecutor.gather) as gathered:
        graph = dasktc.prepare(source_of(EDGES), client, **keywords(**plan))
        graph.save(tmp_path / "graph")
        opened = dasktc.open_graph(tmp_path / "graph", client)
        values = [value for call in gathered.call_args_list for value in call.args[1]]
        assert not [value for value in values if getattr(value, "nbytes", 0) > 4096]
    shutil.copytree(tmp_path / "graph", tmp_path / "copy")
    shutil.rmtree(tmp_path / "graph")
    assert int(opened.triangle_count()) == COUNT
    assert opened.triangles().to_dict() == wanted[1]
    opened.save(f"file://{tmp_path}/again")
    for name in ("copy", "again"):
        assert answers(dasktc.open_graph(tmp_path / name)) == wanted
    assert int(dasktc.triangle_count(tmp_path / "copy", client)) == COUNT
    client.publish_dataset(graph=opened)
    try:
        assert int(dasktc.get_graph("graph", client).triangle_count()) == COUNT
    finally:
        client.unpublish_dataset("graph")


@pytest.mark.parametrize(("edges", "ids"), [(EDGES, "int"), (TEXT, "text")], ids=["int", "text"])
def test_shards_of_vectors_and_ids(tmp_path, edges, ids):
    expected = answers(dasktc.prepare(source_of(edges, ids), backend="cpu", method=Method(partition="hash2d", parts=2)))
    for saves, opens in ((1, 3), (3, 1), (3, 2)):
        with small_chunks():
            with in_shards(saves):
                graph = build(
                    LocalExecutor(), source_of(edges, ids), Options(backend="cpu", partition="hash2d", parts=2)
                )
                assert graph.plan.shards == saves
                graph.save(tmp_path / "graph", force=True)
            with in_shards(opens):
                opened = dasktc.open_graph(tmp_path / "graph", backend="cpu")
        assert opened.plan.shards == opens
        assert answers(opened, trusses=opens == 1)[:4] == expected[:4]


@pytest.mark.parametrize("how", some(["here", "workers"], lambda how: how == "here"))
def test_within_memory(tmp_path, client, wanted, how):
    where = {"client": client} if how == "workers" else {}
    within = {"memory": "40MB", "work_dir": tmp_path, **where}
    with dasktc.prepare(source_of(EDGES), **keywords(partition="hash2d", parts=3, **within)) as graph:
        graph.save(tmp_path / "graph")
    assert answers(dasktc.open_graph(tmp_path / "graph")) == wanted
    with dasktc.open_graph(tmp_path / "graph", **keywords(**within)) as opened:
        assert int(opened.triangle_count()) == COUNT
        assert opened.triangles().to_dict() == wanted[1]
    with pytest.raises(InputError, match=r"more than the .* saved graph is too large for it; raise memory=\.\.\."):
        dasktc.open_graph(tmp_path / "graph", memory=100)


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
def test_a_gpu_and_the_cpu_open_the_same_folder(tmp_path, wanted):
    plans = [PLANS[2], PLANS[0], PLANS[4]]
    for number, plan in enumerate(plans):
        dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(**plan)).save(tmp_path / f"cpu-{number}")
    dasktc.prepare(source_of(TEXT, "text"), backend="cpu").save(tmp_path / "text")
    with emulated_cuda.backend():
        for number, plan in enumerate(plans):
            opened = dasktc.open_graph(tmp_path / f"cpu-{number}", backend="cuda")
            assert int(opened.triangle_count(verify=1.0)) == COUNT
            assert opened.triangles().to_dict() == wanted[1]
            dasktc.prepare(source_of(EDGES), backend="cuda", **keywords(**plan)).save(tmp_path / f"cuda-{number}")
        text = dasktc.open_graph(tmp_path / "text", backend="cuda")
        assert text.triangles().to_dict() == {f"é{vertex}": count for vertex, count in wanted[1].items()}
        with dasktc.open_graph(
            tmp_path / "cpu-0", backend="cuda", memory="40MB", run=RunOptions(work_dir=tmp_path)
        ) as opened:
            assert int(opened.triangle_count()) == COUNT
    for number in range(len(plans)):
        assert answers(dasktc.open_graph(tmp_path / f"cuda-{number}", backend="cpu")) == wanted


@pytest.mark.parametrize("end", [-(2**31), -(2**31) - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32])
def test_ids_at_the_border_of_32_bits(tmp_path, end):
    dasktc.prepare(([0, 1, end], [1, end, 0])).save(tmp_path / "graph")
    assert dasktc.open_graph(tmp_path / "graph").triangles().to_dict() == {0: 1, 1: 1, end: 1}


def test_ids_of_64_bits_and_graphs_without_edges(tmp_path):
    ids = [-(2**63), -5, 2**63 - 1, 2**40]
    ends = (np.array([ids[i] for i in (0, 1, 2, 2)]), np.array([ids[i] for i in (1, 2, 0, 3)]))
    dasktc.prepare(ends).save(tmp_path / "wide")
    assert dasktc.open_graph(tmp_path / "wide").triangles().to_dict() == {ids[0]: 1, ids[1]: 1, ids[2]: 1, ids[3]: 0}
    for name, source in {"none": ([], []), "loop": ([1], [1])}.items():
        dasktc.prepare(source).save(tmp_path / name)
        graph = dasktc.open_graph(tmp_path / name)
        assert (int(graph.triangle_count()), graph.vertices, len(graph.triangles())) == (0, 0, 0)


def test_weights_and_directions(tmp_path, client):
    frame = pd.DataFrame(EDGES, columns=["a", "b"]).assign(w=lambda rows: rows.a + rows.b * 0.1)
    graph = dasktc.prepare(
        frame, weight="w", directed=True, duplicates="last", method=Method(partition="hash2d", parts=2)
    )
    graph.save(tmp_path / "graph")
    opened = dasktc.open_graph(tmp_path / "graph")
    assert opened.clustering(weight="w").to_dict() == graph.clustering(weight="w").to_dict()
    assert (opened.triad_census(), opened.clustering().to_dict()) == (
        graph.triad_census(),
        graph.clustering().to_dict(),
    )
    dasktc.prepare(tmp_path / "graph", weight="w").save(tmp_path / "weighted")
    assert int(dasktc.triangle_count(tmp_path / "weighted", client)) == int(graph.triangle_count())
    for number, how in enumerate(({"client": client}, {"memory": "1GB"}, {"client": client, "memory": "1GB"})):
        with dasktc.open_graph(tmp_path / "graph", **keywords(**how, work_dir=tmp_path)) as elsewhere:
            assert elsewhere.clustering(weight="w", frame="pandas").to_dict() == pytest.approx(
                graph.clustering(weight="w").to_dict(), rel=1e-12
            )
            assert elsewhere.triad_census() == graph.triad_census()
            elsewhere.save(tmp_path / str(number))
        again = dasktc.open_graph(tmp_path / str(number), threads=1)
        assert again.clustering(weight="w").to_dict() == opened.clustering(weight="w").to_dict()
    for saves, opens in ((1, 3), (3, 2), (2, 1)):
        with tuned(least_shards=saves), dasktc.open_graph(tmp_path / "graph", memory="20MB") as source:
            assert source.plan.shards == saves
            source.save(tmp_path / "shards", force=True)
        with tuned(least_shards=opens), dasktc.open_graph(tmp_path / "shards", memory="20MB") as again:
            assert again.clustering("w", frame="dask").compute().to_dict() == opened.clustering("w").to_dict()
            assert again.triad_census() == graph.triad_census()
    with pytest.raises(InputError, match=r"duplicates='sum' is given, .* is a saved graph"):
        dasktc.prepare(tmp_path / "graph", weight="w", duplicates="sum")
    with pytest.raises(InputError, match=r"weight='v' is given, .* saved with weight='w' and directed=True"):
        dasktc.prepare(tmp_path / "graph", weight="v")


def test_every_byte_is_looked_at(tmp_path, saved):
    for path in sorted(saved.iterdir()):
        whole = path.read_bytes()
        for at in (len(whole) - 1 if path.name == MANIFEST else 64, len(whole) // 2):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(InputError, match=r"damaged|format"):
                dasktc.triangle_count(saved)
        path.write_bytes(whole[:-9])
        with pytest.raises(InputError, match="damaged"):
            dasktc.open_graph(saved)
        if path.name != MANIFEST:
            path.write_bytes(whole[:-1])
            with pytest.raises(InputError, match=f"has {len(whole) - 1:,} bytes instead of {len(whole):,}"):
                dasktc.open_graph(saved)
        path.unlink()
        with pytest.raises(InputError, match=rf"{path.name} is missing|binary data|holds no saved graph|a saved graph"):
            dasktc.triangle_count(saved)
        path.write_bytes(whole)
    assert int(dasktc.triangle_count(saved)) == COUNT


def test_what_is_damaged_while_it_is_read(tmp_path, saved, monkeypatch):
    monkeypatch.setattr(opening, "check_sizes", lambda *_: None)
    order = saved / "order-0.bin"
    order.write_bytes(order.read_bytes()[:80])
    with pytest.raises(InputError, match=r"order-0.bin ends at byte \d+: it has become shorter"):
        dasktc.open_graph(saved)
    order.unlink()
    with pytest.raises(InputError, match=r"order-0.bin does not exist"):
        dasktc.open_graph(saved)


def rewritten(folder, head=(), **fields):
    checksummed(folder, content_of(folder) | fields, **dict(head))


def test_other_formats_are_refused(saved):
    for number in (1, 3):
        rewritten(saved, {"format": number, "version": "9.9"})
        says = rf"format {number}, written by dasktc 9.9; this dasktc reads format 2 alone: save the graph again"
        with pytest.raises(InputError, match=says):
            dasktc.triangle_count(saved)
    (saved / MANIFEST).write_text('{"format": 1, "version": "0.1.0", "vertices": 3, "blocks": []}')
    with pytest.raises(
        InputError, match=r"format 1, written by dasktc 0\.1\.0; .* save the graph again from its source"
    ):
        dasktc.open_graph(saved)
    for number in (0, "1", None, True):
        (saved / MANIFEST).write_text(json.dumps({"format": number, "version": "9.9", "graph": {}}))
        with pytest.raises(InputError, match="is damaged"):
            dasktc.open_graph(saved)
    (saved / MANIFEST).write_text("[1]")
    with pytest.raises(InputError, match="is damaged"):
        dasktc.open_graph(saved)


def test_a_scheme_that_is_not_installed_is_named(saved):
    rewritten(saved, method=content_of(saved)["method"] | {"partition": "toy"})
    with pytest.raises(InputError, match="partition toy, which is not installed"):
        dasktc.open_graph(saved)


def places_of(value, path=()):
    """Paths of all values within dicts and lists; of a list, of its first two."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, of in inner:
        yield from places_of(of, (*path, name))


HOSTILE = ([], {}, -1, 3, 10**30, 2.5, "x", True, None)


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["saved", "attributed", "proxied", "cut"])
def test_no_hostile_manifest_ends_otherwise_than_in_one_line(request, graph):
    saved = request.getfixturevalue(graph)
    manifest = (saved / MANIFEST).read_text()
    for path in places_of(json.loads(manifest)["graph"]):
        for value in HOSTILE:
            content = {"graph": json.loads(manifest)["graph"]}
            of = at(content, ("graph", *path)[:-1])
            of[("graph", *path)[-1]] = value
            checksummed(saved, content["graph"])
            with suppress(DasktcError):  # InputError and CountError, too: another error, or another count, is a defect
                opened = dasktc.open_graph(saved)
                assert int(opened.triangle_count()) == COUNT, (path, value)
                opened.clustering(weight="w" if graph == "attributed" else None)


@pytest.mark.parametrize("splits", [3, 2**63 - 1, 2**63, 10**30])
@pytest.mark.parametrize("partition", ["whole", "edges"])
def test_any_splits_that_are_taken_can_be_opened(tmp_path, partition, splits):
    graph = dasktc.prepare(source_of(EDGES), method=Method(partition=partition, splits=splits))
    graph.save(tmp_path / "graph")
    again = dasktc.open_graph(tmp_path / "graph")
    assert (int(again.triangle_count()), again.plan.splits) == (COUNT, graph.plan.splits)


def test_fields_of_another_type_are_named(saved):
    manifest = content_of(saved)
    for fields, says in (
        ({"vertices": "9"}, "Expected `int`, got `str` - at `graph.vertices`"),
        ({"vertices": 2**31}, "Expected `int` <= 2147483647 - at `graph.vertices`"),
        ({"method": {**manifest["method"], "parts": 0}}, "Expected `int` >= 1 - at `graph.method.parts`"),
        ({"method": {**manifest["method"], "parts": True}}, "Expected `int`, got `bool` - at `graph.method.parts`"),
        ({"backend": "tpu"}, "Invalid enum value 'tpu' - at `graph.backend`"),
        ({"layout": {"type": "ring"}}, "Invalid value 'ring' - at `graph.layout.type`"),
        ({"order": None}, "Expected `array`, got `null` - at `graph.order`"),
        ({"order": []}, "Expected `array` of length >= 1 - at `graph.order`"),
        ({"facts": {}}, "its facts are not usual, longest, rows, edges, wedges, narrow, wide"),
        ({"method": {**manifest["method"], "reorder": "x"}}, "reorder='x' does not exist"),
        ({"colour": 3}, "Object contains unknown field `colour`"),
    ):
        rewritten(saved, **{**manifest, **fields})
        with pytest.raises(InputError, match=rf"{MANIFEST} is damaged: .*{re.escape(says)}.*; fetch it again"):
            dasktc.open_graph(saved)


def test_parts_that_no_block_has_are_refused(tmp_path):
    dasktc.prepare(source_of(EDGES), backend="cpu").save(tmp_path / "graph")
    method = content_of(tmp_path / "graph")["method"]
    for parts in (2, 2**62):
        rewritten(tmp_path / "graph", method=method | {"parts": parts})
        with pytest.raises(InputError, match=r"is damaged: its 1 block is not those of 1 by 1"):
            dasktc.plan(tmp_path / "graph")


def test_a_block_that_is_not_what_the_plan_says(saved):
    content = content_of(saved)
    content["blocks"][0]["columns"]["length"] += 1
    rewritten(saved, blocks=content["blocks"])
    with pytest.raises(InputError, match=r"is damaged: .*its blocks hold 285 edges, the graph 284"):
        dasktc.open_graph(saved)


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[2], PLANS[4]], ids=str)
@pytest.mark.parametrize(("name", "value"), [("columns", 2**30), ("columns", -1), ("offsets", 2**30), ("offsets", -1)])
def test_no_kernel_follows_a_hostile_block(tmp_path, plan, name, value):
    dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(**plan)).save(tmp_path / "graph")
    content = content_of(tmp_path / "graph")
    for block in content["blocks"]:
        changed(tmp_path / "graph", content, block[name], lambda values: values[1:-1].fill(value))
    says = r"block-\d-\d.bin is damaged: (its rows are not those|a column is none) of a block of"
    with pytest.raises(InputError, match=says):
        dasktc.open_graph(tmp_path / "graph")


@pytest.mark.parametrize("name", ["../order-0.bin", "/order-0.bin", "sub/order-0.bin", "zip::order-0.bin", ".."])
def test_no_file_outside_of_the_folder_is_read(saved, name):
    content = content_of(saved)
    shutil.copy(saved / "order-0.bin", saved.parent)
    content["order"][0]["file"] = name
    rewritten(saved, order=content["order"])
    with pytest.raises(InputError, match=r"Expected `str` matching regex .* - at `graph\.order\[0\]\.file`"):
        dasktc.open_graph(saved)


@pytest.fixture
def attributed(tmp_path):
    """A graph of four blocks with weights and directions."""
    frame = pd.DataFrame(EDGES, columns=["a", "b"]).assign(w=1.0)
    graph = dasktc.prepare(
        frame, weight="w", directed=True, duplicates="last", method=Method(partition="hash2d", parts=2)
    )
    graph.save(tmp_path / "attributed")
    return tmp_path / "attributed"


@pytest.mark.parametrize("name", ["../neighbours-0.bin", "/neighbours-0.bin", ".."])
def test_no_vector_or_attribute_outside_of_the_folder_is_read(attributed, name):
    manifest = (attributed / MANIFEST).read_text()
    shutil.copy(attributed / "neighbours-0.bin", attributed.parent)
    paths = [*((field, 0) for field in VECTORS), ("ids", "shards", 0)]
    paths += [("blocks", 3, of) for of in ("roots", "directions")]
    paths += [("attributes", "neighbours", of) for of in range(3)]
    for path in paths:
        content = json.loads(manifest)["graph"]
        at(content, path)["file"] = name
        rewritten(attributed, **content)
        with pytest.raises(InputError, match=r"Expected `str` matching regex .* - at `graph.*file`"):
            dasktc.open_graph(attributed)


def at(content, path):
    for name in path:
        content = content[name]
    return content


BYTES = {"file": "x.bin", "dtype": "u1", "length": 1, "start": 64, "crc32": "00000000"}


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        (("blocks", 3, "roots"), {"length": 3}, r"block \(1, 1\) has (3|None) roots in place of"),
        (("blocks", 3), {"roots": None}, r"block \(1, 1\) has (3|None) roots in place of"),
        (("blocks", 3), {"members": BYTES}, "Expected `int32`|Invalid enum value 'u1'"),
        (("blocks", 3, "roots"), {"dtype": "u1"}, "Invalid enum value 'u1'"),
        (("blocks", 3, "directions"), {"dtype": "i1"}, "Invalid enum value 'i1'"),
        (("attributes",), {"weight": None}, r"has \d+ roots in place of None"),
        (("attributes",), {"directed": False}, r"has \d+ directions in place of None"),
        (("attributes",), {"neighbours": None}, "neighbours"),
        (("attributes", "neighbours", 0), {"length": 3}, "its neighbours has 3 entries"),
        (("attributes", "neighbours", 0), {"dtype": "f8"}, "Invalid enum value 'f8'"),
        (("attributes",), {"largest": "x"}, "Expected `float`"),
        (("order", 0), {"length": 3}, "its order has 3 entries"),
        (("order", 0), {"dtype": "f4"}, "Invalid enum value 'f4'"),
        (("in_degree", 0), {"length": 3}, "its in_degree has 3 entries"),
        (("out_degree", 0), {"dtype": "u4"}, "Invalid enum value 'u4'"),
        (("ids", "shards", 0), {"length": 3}, "its ids has 3 entries"),
        (("ids", "shards", 0), {"dtype": "f4"}, "Invalid enum value 'f4'"),
        (("ids",), {"type": "text"}, r"graph\.ids\.shards"),
    ],
)
def test_vectors_and_attributes_are_as_long_as_the_graph(attributed, path, fields, says):
    content = content_of(attributed)
    at(content, path).update(fields)
    rewritten(attributed, **content)
    with pytest.raises(InputError, match=f"is damaged: .*{says}"):
        dasktc.open_graph(attributed)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(((field, 0), value) for field in VECTORS for value in (-1, VERTICES, 2**30)),
        (("blocks", 2, "directions"), 0),
        (("blocks", 2, "directions"), 4),
        (("attributes", "neighbours", 2), -1),
        (("attributes", "neighbours", 1), 2**40),
    ],
)
def test_no_answer_follows_hostile_vectors_or_attributes(attributed, path, value):
    content = content_of(attributed)
    array = at(content, path)
    changed(attributed, content, array, lambda values: values.__setitem__(3, value))
    file = re.escape(array["file"])
    with pytest.raises(InputError, match=f"{file} is damaged: "):
        dasktc.open_graph(attributed)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [("offsets", 3, 2**40), ("offsets", 3, -1), ("offsets", 0, -9), ("offsets", -1, 2**40), ("letters", 0, 255)],
)
def test_no_hostile_text_is_read(tmp_path, name, index, value):
    dasktc.prepare(source_of(TEXT, "text")).save(tmp_path / "graph")
    content = content_of(tmp_path / "graph")
    array = content["ids"]["shards"][0][name]
    changed(tmp_path / "graph", content, array, lambda values: values.__setitem__(index, value))
    with pytest.raises(InputError, match=r"ids-0.bin is damaged: "):
        dasktc.open_graph(tmp_path / "graph")


@pytest.mark.parametrize("length", [0, 1, 3])
def test_texts_are_as_many_as_vertices(tmp_path, length):
    dasktc.prepare(source_of(TEXT, "text")).save(tmp_path / "graph")
    content = content_of(tmp_path / "graph")
    content["ids"]["shards"][0]["offsets"]["length"] = length
    checksummed(tmp_path / "graph", content)
    with pytest.raises(InputError, match=r"is damaged: its ids has -?\d entr.*, not one for each of 69 vertices"):
        dasktc.open_graph(tmp_path / "graph")


def test_no_secret_of_a_url_is_saved(tmp_path):
    source = replace(source_of(EDGES), name="https://me:hunter2@host/g.csv?sig=hunter2&part=1, and 1 more")
    dasktc.prepare(source).save(tmp_path / "graph")
    assert not [path.name for path in (tmp_path / "graph").iterdir() if b"hunter2" in path.read_bytes()]
    assert opening.saved_graph(tmp_path / "graph").name == "https://me:***@host/g.csv?sig=***&part=1, and 1 more"


def test_a_graph_opens_without_the_file_that_assigned_its_vertices(tmp_path):
    parts = tmp_path / "parts.txt"
    parts.write_text("".join(f"{v} {v % 3}\n" for v in {v for edge in EDGES for v in edge}))
    dasktc.prepare(source_of(EDGES), method=Method(partition="proxy", assign=str(parts))).save(tmp_path / "graph")
    parts.unlink()
    graph = dasktc.open_graph(tmp_path / "graph")
    assert (int(graph.triangle_count(verify=1.0)), graph.plan.parts) == (COUNT, 3)
    assert content_of(tmp_path / "graph")["method"]["assign"] == "random"


def test_a_task_that_runs_twice_at_a_time_writes_one_whole_file(tmp_path, monkeypatch):
    """Dask may run a task again while its first run still writes."""
    crc32, folder = array_files._crc32, str(tmp_path)

    def twice(*given, **named):
        monkeypatch.setattr(array_files, "_crc32", crc32)
        write_arrays(folder, "file", {"a": np.arange(9)})
        return crc32(*given, **named)

    monkeypatch.setattr(array_files, "_crc32", twice)
    places = write_arrays(folder, "file", {"a": np.arange(9)})
    assert read_array(folder, places["a"]).tolist() == [*range(9)]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("folder", "url"),
    [
        ("s3://bucket/graph", "s3://bucket/graph/a.bin"),
        ("s3://bucket/graph/", "s3://bucket/graph/a.bin"),
        ("simplecache::s3://bucket/graph/", "simplecache::s3://bucket/graph/a.bin"),
        ("zip://graph::s3://bucket/all.zip", "zip://graph/a.bin::s3://bucket/all.zip"),
    ],
)
def test_names_of_files_behind_urls(folder, url):
    """Servers take // for another name."""
    assert saved_folder.joined(folder, "a.bin") == url


def test_an_array_that_cannot_be_written_leaves_no_file(tmp_path, monkeypatch):
    write_arrays(str(tmp_path), "file", {"a": np.arange(9)})
    before = (tmp_path / "file").read_bytes()
    monkeypatch.setattr(array_files, "_crc32", mock.Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(DasktcError, match="No space left"):
        write_arrays(str(tmp_path), "file", {"a": np.arange(5)})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_nothing_half_written(tmp_path, saved, monkeypatch, error):
    graph, write = dasktc.prepare(source_of(EDGES)), array_files.write_arrays
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def failing(folder, name, arrays):
        if "degree" in name:
            raise error
        return write(folder, name, arrays)

    monkeypatch.setattr(writing, "write_arrays", failing)
    for out in (tmp_path / "new", saved):
        with pytest.raises((DasktcError, KeyboardInterrupt)):
            graph.save(out, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_a_full_disk_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(array_files.os, "replace", mock.Mock(side_effect=OSError(28, "No space left on device")))
    out = tmp_path / "graph"
    with pytest.raises(
        DasktcError, match=rf"^{re.escape(str(out))}/[\w-]+\.bin cannot be written: No space left on device;"
    ):
        dasktc.prepare(source_of(EDGES)).save(out)
    assert os.listdir(tmp_path) == []


def test_what_stands_there_is_kept(tmp_path, saved):
    graph = dasktc.open_graph(saved)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("x")
    (tmp_path / "file").write_text("x")
    for out, force, says in (
        (saved, False, "which is read: it would be lost"),
        (tmp_path / "data", False, "exists: it would be lost"),
        (tmp_path / "data", True, "1 entry and no dasktc-graph.json"),
        (tmp_path / "file", True, "is a file"),
        (tmp_path / "no" / "graph", False, "is no folder"),
        ("", False, "no path"),
    ):
        with pytest.raises(InputError, match=says):
            graph.save(out, force=force)
    (tmp_path / "empty").mkdir()
    graph.save(tmp_path / "empty", force=True)
    graph.close()
    with pytest.raises(InputError, match="was closed"):
        graph.save(tmp_path / "late")


@pytest.mark.parametrize("remote", [False, True], ids=["folder", "url"])
def test_force_deletes_no_file_that_is_not_the_graphs(tmp_path, remote):
    """A folder with a manifest may hold other files, and a manifest may name some."""
    out = f"memory://forced-{tmp_path.name}/graph" if remote else str(tmp_path / "graph")
    graph = dasktc.prepare(source_of(EDGES), backend="cpu")
    graph.save(out)
    fs, path = saved_folder.streams.filesystem(out)
    names = {os.path.basename(name) for name in fs.ls(path, detail=False)}
    for name, says in (
        ("thesis.txt", r"graph has 1 entry that is not the saved graph's, 'thesis\.txt' for one: force=True would"),
        ("mine.bin", "'mine.bin' for one"),
        ("folder/x", "'folder' for one"),
    ):
        fs.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
        fs.pipe_file(f"{path}/{name}", b"mine")
        with pytest.raises(InputError, match=says):
            graph.save(out, force=True)
        assert fs.cat_file(f"{path}/{name}") == b"mine"
        fs.rm(f"{path}/{name.split('/')[0]}", recursive=True)
    content = json.loads(fs.cat_file(f"{path}/{MANIFEST}"))
    content["graph"]["order"][0]["file"] = "thesis.txt"
    fs.pipe_file(f"{path}/thesis.txt", b"mine")
    fs.pipe_file(f"{path}/{MANIFEST}", json.dumps(content).encode())
    with pytest.raises(InputError, match=r"2 entries that are not the saved graph's"):
        graph.save(out, force=True)
    fs.pipe_file(f"{path}/{MANIFEST}", b"{")
    with pytest.raises(InputError, match="which files are the graph's is unknown"):
        graph.save(out, force=True)
    assert {os.path.basename(name) for name in fs.ls(path, detail=False)} == {*names, "thesis.txt"}
    fs.rm_file(f"{path}/thesis.txt")
    content["graph"]["order"][0]["file"] = "order-0.bin"
    fs.pipe_file(f"{path}/{MANIFEST}", json.dumps(content | {"format": 7}).encode())  # of any format, and changed
    graph.save(out, force=True)
    assert int(dasktc.open_graph(out).triangle_count()) == COUNT


def test_a_file_that_comes_while_a_graph_is_replaced_stays(tmp_path, saved, monkeypatch):
    graph, write = dasktc.prepare(source_of(EDGES)), array_files.write_arrays

    def late(*given):
        (saved / "late").write_text("mine")
        return write(*given)

    monkeypatch.setattr(writing, "write_arrays", late)
    with pytest.raises(InputError, match="'late' for one"):
        graph.save(saved, force=True)
    assert (saved / "late").read_text() == "mine"
    assert os.listdir(tmp_path) == ["graph"]


def test_urls(tmp_path, wanted):
    url = "memory://saved/graph"
    graph = dasktc.prepare(source_of(TEXT, "text"))
    graph.save(url)
    with pytest.raises(InputError, match="exists"):
        graph.save(url)
    graph.save(url, force=True)
    assert int(dasktc.triangle_count(url)) == COUNT
    assert dasktc.open_graph(url).triangles().sum() == sum(wanted[1].values())
    fs = saved_folder.streams.filesystem(url)[0]
    (block,) = fs.glob("/saved/graph/block-*")
    fs.pipe_file(block, fs.cat_file(block)[:-70])
    with pytest.raises(InputError, match="damaged"):
        dasktc.open_graph(url)
    with mock.patch.object(writing, "write_arrays", side_effect=OSError("gone")), pytest.raises(DasktcError):
        graph.save(url, force=True)
    assert not fs.exists("/saved/graph")
    with pytest.raises(InputError, match="holds no saved graph"):
        dasktc.open_graph(url)


class _NotedFiles(MemoryFileSystem):
    """Notes the names of files that are removed."""

    protocol = "noted"
    store, pseudo_dirs, removed = {}, [""], []

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("noted://"))

    def rm_file(self, path):
        self.removed.append(os.path.basename(path))
        super().rm_file(path)


def test_the_manifest_of_a_replaced_graph_goes_first():
    """A folder behind a URL is not removed at once: without a manifest it does not open meanwhile."""
    fsspec.register_implementation("noted", _NotedFiles, clobber=True)
    graph = dasktc.prepare(source_of(EDGES))
    graph.save("noted://there/graph")
    _NotedFiles.removed.clear()
    graph.save("noted://there/graph", force=True)
    assert len(_NotedFiles.removed) > 1
    assert _NotedFiles.removed[0] == "dasktc-graph.json"
    assert int(dasktc.open_graph("noted://there/graph").triangle_count()) == COUNT


class _PlainWebServer(MemoryFileSystem):
    """Lists no folder, or names alone, and sends a whole file whatever part of it is asked for."""

    protocol = "plainweb"
    lists = False

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("plainweb://"))

    def ls(self, path, detail=True, **options):
        if not self.lists:
            raise FileNotFoundError(path)
        return [entry | {"size": None} for entry in super().ls(path, detail=True)]

    def cat_file(self, path, start=None, end=None, **options):
        return super().cat_file(path)


@pytest.mark.parametrize("lists", [False, True])
def test_a_web_server_that_neither_lists_nor_cuts_files(monkeypatch, lists):
    monkeypatch.setattr(_PlainWebServer, "lists", lists)
    fsspec.register_implementation("plainweb", _PlainWebServer, clobber=True)
    with small_chunks():
        dasktc.prepare(source_of(EDGES), method=Method(partition="hash2d", parts=2)).save(
            "memory://served/graph", force=True
        )
        assert int(dasktc.triangle_count("plainweb://served/graph")) == COUNT
    saved_folder.streams.filesystem("memory://served")[0].rm_file("/served/graph/block-1-0.bin")
    with pytest.raises(InputError, match=r"block-1-0\.bin is missing"):
        dasktc.open_graph("plainweb://served/graph")


@pytest.mark.parametrize("url", ["memory://lost/graph", "simplecache::memory://lost/graph"])
def test_no_graph_is_saved_in_the_memory_of_a_process_that_ends(tmp_path, client, capsys, url):
    source = tmp_path / "edges.csv"
    source.write_text("0,1\n1,2\n2,0\n")
    assert main(["prepare", str(source), url]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{url} is in a process's memory: nothing of it is left when this command ends; choose" in shown.err
    graph = dasktc.prepare(source, client, run=RunOptions(distribute="always"))
    with pytest.raises(InputError, match="each worker would write to its own"):
        graph.save(url)
    assert not saved_folder.streams.filesystem("memory://lost")[0].exists("/lost")


def test_every_command_takes_it(tmp_path, data, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([*map(str, arguments)])
        return code, capsys.readouterr()

    edges = data / "email-Eu-core.csv.gz"
    code, said = run("prepare", edges, "graph", "--partition", "hash2d", "--parts", 2, "--json")
    fields = json.loads(said.out)
    assert (code, fields["out"], fields["edges"], fields["parts"]) == (0, "graph", 16_064, 2)
    assert run("count", "graph", "--quiet")[1].out == "105461\n"
    assert json.loads(run("plan", "graph", "--json")[1].out)["tasks"] >= 8
    assert "hash2d" in run("plan", "graph", "--gpus", 8)[1].out
    for command in (
        ("measures", "graph", "-o", "c.csv"),
        ("truss", "graph", "-o", "t.csv"),
        ("estimate", "graph"),
        ("count", "graph", "--per-vertex", "v.csv", "--per-edge", "e.csv", "--report", "r.html", "--checkpoint", "k"),
        ("count", "graph", "--checkpoint", "k"),
        ("count", "graph", "--seed", 5),
        ("prepare", "graph", "graph", "--force"),
    ):
        code, said = run(*command)
        assert code == 0, said.err
    for command, says in (
        (("prepare", edges, "graph"), "replace a saved graph with --force"),
        (("count", "graph", edges), "1 more source is given"),
        (("count", "graph", "--partition", "whole"), "saved with partition hash2d"),
        (("count", "graph", "--parts", 3), "saved with parts 2"),
        (("count", "graph", "--reorder", "none"), "saved with reorder degree"),
        (("count", "graph", "--proxies", "tight"), "--proxies tight is given with --partition auto"),
        (("count", "graph", "--no-sort-rows", "--kernel", "trust"), "saved with sort rows True"),
        (("count", "graph", "--columns", "a,b"), "--columns"),
        (("count", "graph", "--ids", "text"), "--ids"),
        (("cliques", "graph"), "saved with partition hash2d"),
        (("count", "graph/block-0-0.bin"), "a file of a saved graph"),
        (("count", "graph/dasktc-graph.json"), "the manifest of a saved graph: give its folder"),
    ):
        code, said = run(*command)
        assert (code, said.out, said.err.count("\n")) == (2, "", 1)
        assert says in said.err


def test_a_seed_that_changes_no_block_is_the_callers(tmp_path, saved):
    dasktc.prepare(source_of(EDGES), method=Method(seed=3, partition="whole")).save(tmp_path / "whole")
    content = opening.saved_graph(tmp_path / "whole")
    for seed in (0, 3, 5):
        assert int(dasktc.triangle_count(tmp_path / "whole", method=Method(seed=seed), verify=0.5)) == COUNT
        assert opening.fitted(content, Options(seed=seed)).seed == seed
    dasktc.prepare(tmp_path / "whole", method=Method(seed=5)).save(tmp_path / "again")
    assert content_of(tmp_path / "again")["method"]["seed"] == 5
    dasktc.prepare(source_of(EDGES), method=Method(seed=3, partition="proxy", parts=2)).save(tmp_path / "proxy")
    assert opening.fitted(opening.saved_graph(tmp_path / "proxy"), Options()).seed == 3
    assert int(dasktc.triangle_count(saved, method=Method(seed=5))) == COUNT  # hash2d: by id % n
    with pytest.raises(InputError, match=r"seed=5 is asked for, .* saved with seed 3"):
        dasktc.triangle_count(tmp_path / "proxy", method=Method(seed=5))


def test_the_kernel_that_another_backend_was_asked_for_is_not_kept(tmp_path):
    dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(kernel="merge")).save(tmp_path / "graph")
    here, there = (dasktc.plan(tmp_path / "graph", gpus=gpus).plan.choice for gpus in (None, 1))
    assert here.startswith("kernel merge as asked")
    assert there.startswith("kernel short: ")


def test_the_known_triangles_of_a_source_are_saved(tmp_path):
    for known in (COUNT, COUNT + 1):
        dasktc.prepare(source_of(EDGES, triangles=known)).save(tmp_path / "graph", force=True)
        graph = dasktc.open_graph(tmp_path / "graph")
        if known == COUNT:
            assert int(graph.triangle_count()) == COUNT
        else:
            with pytest.raises(InputError, match=f"it says {known:,} triangles, but {COUNT:,} were counted"):
                graph.triangle_count()


def test_options_that_change_nothing_of_a_saved_graph_are_taken(tmp_path, saved):
    """`whole` has no parts, the ids are of the type that is asked for, and tasks are cut anew."""
    dasktc.prepare(source_of(EDGES), method=Method(partition="whole", splits=3)).save(tmp_path / "whole")
    assert int(dasktc.triangle_count(tmp_path / "whole", method=Method(parts=5), ids="int")) == COUNT
    for splits in (1, 2, 3, None):
        assert dasktc.triangle_count(tmp_path / "whole", method=Method(splits=splits)).plan.splits == (splits or 3)
    assert int(dasktc.triangle_count(saved, ids="int")) == COUNT


def test_fewer_vertices_than_parts_after_an_update(tmp_path):
    graph = dasktc.prepare(source_of(EDGES), backend="cpu", method=Method(partition="hash2d", parts=5))
    keep = clean(EDGES) - {next(iter(clean(EDGES)))}
    graph.update(remove=pd.DataFrame([tuple(edge) for edge in keep])).graph.save(tmp_path / "graph")
    again = dasktc.open_graph(tmp_path / "graph")
    assert (again.vertices, again.plan.parts, int(again.triangle_count())) == (2, 5, 0)


def test_long_text_ids_are_opened_in_the_shards_that_memory_asks_for(tmp_path):
    ids = [f"{number:06}" * 1000 for number in range(1500)]
    dasktc.prepare(pd.DataFrame({"a": ids[:-1], "b": ids[1:]}), backend="cpu").save(tmp_path / "graph")
    with dasktc.open_graph(tmp_path / "graph", memory="32MB", run=RunOptions(work_dir=tmp_path)) as graph:
        assert graph.plan.shards > 1
        assert graph.edges == 1499


def test_plans_are_made_of_the_manifest_alone(saved):
    for path in saved.glob("*.bin"):
        path.write_bytes(bytes(path.stat().st_size))
    assert dasktc.plan(saved, workers=7).plan.tasks >= 28


def test_ranges_of_arrays(tmp_path):
    values = {"a": np.arange(1000, dtype="int32"), "b": np.arange(333), "none": np.empty(0), "c": np.arange(9)[::2]}
    with small_chunks():
        places = write_arrays(str(tmp_path), "file", values)
        for name, array in values.items():
            assert np.array_equal(read_array(str(tmp_path), places[name]), array)
            for first in range(0, len(array) + 1, 1 + len(array) // 9):
                for end in range(first, len(array) + 1, 1 + len(array) // 11):
                    assert np.array_equal(read_array(str(tmp_path), places[name], None, first, end), array[first:end])
    assert all(place.start % 64 == 0 for place in places.values())
    assert isinstance(places["a"], StoredArray)
    assert Path(tmp_path / "file").read_bytes().startswith(array_files.MAGIC)


class SlowFile(AbstractBufferedFile):
    def _initiate_upload(self):
        self.sent = b""

    def _upload_chunk(self, final=False):
        time.sleep(0.0005)
        self.sent += self.buffer.getvalue()
        if final:
            self.fs.store[self.path] = MemoryFile(self.fs, self.path, self.sent)
        return True


class SlowFiles(MemoryFileSystem):
    protocol = "slowly"
    store, pseudo_dirs = {}, [""]

    def _open(self, path, mode="rb", **options):
        return SlowFile(self, path, mode, block_size=100) if mode == "wb" else super()._open(path, mode, **options)


def test_remote_files_are_written_in_order(tmp_path):
    fsspec.register_implementation("slowly", SlowFiles, clobber=True)
    values = {"a": np.arange(1000, dtype="int32"), "b": np.arange(333)}
    with small_chunks(), mock.patch.object(host_threads, "allowed_threads", return_value=4):
        places = write_arrays("slowly://bucket", "file", values)
        for name, array in values.items():
            assert np.array_equal(read_array("slowly://bucket", places[name]), array)
        write_arrays(str(tmp_path), "file", values)
    assert SlowFiles().cat_file("slowly://bucket/file") == (tmp_path / "file").read_bytes()


def test_threads_of_a_fresh_process_open_a_graph_at_once(tmp_path):
    with dasktc.prepare(EDGES, threads=1) as graph:
        graph.save(tmp_path / "saved")
    command = [sys.executable, "-c", OPENED_AT_ONCE, str(tmp_path / "saved")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_row_that_is_longer_than_degrees_allow_is_saved_again(emulated, tmp_path):
    """A GPU ranks by rows: a centre whose leaves are named by more rows points to all of them."""
    leaves = [(1000, leaf) for leaf in range(200)]
    pairs = [(leaf, leaf + 1) for leaf in range(0, 200, 2) for _ in range(400)]
    with dasktc.prepare(np.array(leaves + pairs), backend="cuda", method=Method(partition="whole")) as graph:
        graph.save(tmp_path / "first")
    with dasktc.open_graph(tmp_path / "first", backend="cuda") as graph:
        graph.save(tmp_path / "second")
    facts = [json.loads((tmp_path / name / MANIFEST).read_text())["graph"]["facts"] for name in ("first", "second")]
    assert facts[0] == facts[1]
    assert facts[0]["longest"] == 200


def test_a_weighted_graph_without_edges(tmp_path):
    frame = pd.DataFrame({"a": np.empty(0, "int64"), "b": np.empty(0, "int64"), "w": np.empty(0)})
    with dasktc.prepare(frame, weight="w") as graph:
        graph.save(tmp_path / "graph")
    with dasktc.open_graph(tmp_path / "graph") as graph:
        assert graph.clustering(weight="w").to_dict() == {}
