"""Saved graphs with wrong arrays or manifests, though every checksum is right: refused in one line, or harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from math import comb
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from msgspec import inspect

import dasktc
from dasktc.backends import get_backend, host_threads
from dasktc.backends.block_facts import ArrayFacts, Hash
from dasktc.errors import InputError
from dasktc.options import Method, RunOptions
from dasktc.saved import arrays as array_files
from dasktc.saved.folder import MANIFEST
from dasktc.saved.manifest import VECTORS, Manifest
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.hostile_graphs import changed, checksummed, content_of
from tests.support.keywords import keywords
from tests.support.processes import patience
from tests.support.slow_pipeline import skewed_edges, source_of, tuned

EDGES = skewed_edges(70, 500, 3)
CASES = 120
"""Cases of the default tier: of each of the nine graphs thirteen."""


def drawn(folder, seed, cases, seconds):
    """Draw cases in a process of its own, and return how many ended in which way."""
    command = [sys.executable, "-m", "tests.support.hostile_graphs", str(folder), str(seed), str(cases), str(seconds)]
    where = os.pathsep.join([str(Path(dasktc.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=patience(seconds + 120),
        check=False,
        env={**os.environ, "PYTHONPATH": where},
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    return json.loads(ended.stdout.splitlines()[-1])


def test_no_hostile_array_ends_otherwise_than_in_one_line(tmp_path):
    outcomes = drawn(tmp_path / "graphs", 0, CASES, 300)
    assert sum(outcomes.values()) == CASES
    assert outcomes["refused"] > CASES // 2


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_hostile_arrays_for_some_time(tmp_path, pytestconfig):
    seed = time.time_ns() % 2**32
    print(f"hostile graphs: seed {seed}")
    print(drawn(tmp_path / "graphs", seed, 10**9, pytestconfig.getoption("--fuzz-seconds") / 5))


PLANS = {
    "whole": {"partition": "whole"},
    "hash2d": {"partition": "hash2d", "parts": 3},
    "vertical": {"partition": "vertical", "parts": 2, "column_parts": 3},
    "proxy": {"partition": "proxy", "parts": 2},
}


def saved_as(folder, plan="whole", **more):
    dasktc.prepare(source_of(EDGES), backend="cpu", **keywords(**PLANS[plan], **more)).save(folder)
    return content_of(folder)


def refused(folder, file, why, **options):
    """Assert that a graph is refused by an error about this file."""
    with pytest.raises(InputError, match=rf"{file} is damaged.*{why}") as caught:
        dasktc.open_graph(folder, backend="cpu", **keywords(**options))
    assert len(str(caught.value)) <= 500
    assert "report" not in str(caught.value)


def reverse(values):
    values[:] = values[::-1].copy()


def raised(values):
    values[len(values) // 2 :] += 1


def turned(values):
    """Exchange two different entries, so that the sum stays."""
    first, last = int(values.argmin()), int(values.argmax())
    values[[first, last]] = values[[last, first]]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("change", [raised, turned])
def test_vectors_are_those_of_the_blocks(tmp_path, plan, name, change):
    """A permutation of the order is another graph, whose ids are permuted; no kernel trusts more of it."""
    folder = tmp_path / "graph"
    content = saved_as(folder, plan)
    changed(folder, content, content[name][0], change)
    if (name, change) == ("order", turned):
        dasktc.open_graph(folder).triangle_count(verify=1)
    elif name == "order":
        refused(folder, r"order-0\.bin", "")
    else:
        refused(folder, rf"(\w+-degree-0\.bin|{MANIFEST})", "degrees")


@pytest.mark.parametrize("plan", PLANS)
def test_the_wedges_of_the_degrees_are_not_all_that_is_compared(tmp_path, plan):
    """Both degrees are permuted in the same way: their wedges stay the same."""
    folder = tmp_path / "graph"
    content = saved_as(folder, plan)
    for name in ("out_degree", "in_degree"):
        changed(folder, content, content[name][0], reverse)
    refused(folder, r"out-degree-0\.bin", "are not those of")


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("repeats", [False, True])
def test_columns_ascend_in_each_row(tmp_path, plan, repeats):
    folder = tmp_path / "graph"
    content = saved_as(folder, plan)
    block = content["blocks"][-1]
    place = block["offsets"]
    offsets = np.fromfile(folder / place["file"], "i8", place["length"], offset=place["start"])
    row = int(np.diff(offsets).argmax())
    first, end = offsets[row : row + 2]

    def change(values):
        values[first:end] = values[first] if repeats else values[first:end][::-1].copy()

    changed(folder, content, block["columns"], change)
    refused(folder, r"block-\d-\d\.bin", "the columns of a row do not ascend")


def test_columns_ascend_across_what_a_thread_reads(tmp_path):
    """Every descent is seen, whichever slab it is in or between."""
    folder = tmp_path / "graph"
    with mock.patch.object(array_files, "CHUNK", 64), mock.patch.object(host_threads, "SLAB", 128):
        dasktc.prepare((np.repeat(range(40), 40), np.tile(range(40, 80), 40)), backend="cpu").save(folder)
        content = content_of(folder)
        assert dasktc.open_graph(folder).edges == 1600
        columns = content["blocks"][0]["columns"]
        data = (folder / columns["file"]).read_bytes()
        for place in [*range(25, 40), *range(57, 72)]:  # a slab has 32 columns, a row 40

            def change(values, at=place):
                values[[at - 1, at]] = values[[at, at - 1]]

            changed(folder, content, columns, change)
            refused(folder, r"block-0-0\.bin", "do not ascend" if place % 40 else "")
            (folder / columns["file"]).write_bytes(data)


def test_in_degree_order_columns_are_below_their_rows(tmp_path):
    folder = tmp_path / "graph"
    content = saved_as(folder)
    block = content["blocks"][0]

    def upward(values):
        values[-1] = content["vertices"] - 1  # of the last row: a loop

    changed(folder, content, block["columns"], upward)
    refused(folder, r"block-0-0\.bin", "a column is not below its row")


def test_an_edge_leads_to_its_end_of_higher_degree_in_any_order(tmp_path):
    """An edge that stands there in both directions has the degrees that the vectors say, and is one edge too many."""
    folder = tmp_path / "graph"
    dasktc.prepare(([0, 2, 4], [1, 3, 5]), backend="cpu", method=Method(reorder="none")).save(folder)
    content = content_of(folder)
    rows, columns = np.array([0, 1, 3]), np.array([1, 0, 2])
    arrays = {
        "offsets": np.searchsorted(rows, range(7)),
        "columns": columns,
        "out_degree": np.bincount(rows, minlength=6),
        "in_degree": np.bincount(columns, minlength=6),
    }
    for name, values in arrays.items():
        place = content[name][0] if name in content else content["blocks"][0][name]

        def change(stored, given=values):
            stored[:] = given

        changed(folder, content, place, change)
    content["wedges"] = 2
    checksummed(folder, content)
    refused(folder, r"block-0-0\.bin", "an edge does not lead from its end of lower degree")


def test_both_families_of_columns_have_the_same_edges(tmp_path):
    """Two edges exchange their targets in one family alone: all degrees stay."""
    folder = tmp_path / "graph"
    dasktc.prepare(([4, 5], [0, 1]), backend="cpu", method=Method(partition="vertical", parts=1)).save(folder)
    manifest = (folder / MANIFEST).read_text()
    for number in range(2):
        content = json.loads(manifest)["graph"]
        block = content["blocks"][number]
        data = (folder / block["columns"]["file"]).read_bytes()
        changed(folder, content, block["columns"], reverse)
        refused(folder, "graph", "two families of columns have not the same edges")
        (folder / block["columns"]["file"]).write_bytes(data)
        (folder / MANIFEST).write_text(manifest)


@pytest.mark.parametrize("change", [reverse, lambda v: v.__setitem__(1, v[0]), lambda v: v.__setitem__(-1, 99)])
def test_members_ascend_and_are_vertices(tmp_path, change):
    folder = tmp_path / "graph"
    content = saved_as(folder, "proxy")
    changed(folder, content, content["blocks"][0]["members"], change)
    refused(folder, r"block-0-0\.bin", "members")


def test_no_block_of_a_grid_has_members(tmp_path):
    folder = tmp_path / "graph"
    content = saved_as(folder)
    content["blocks"][0]["members"] = content["order"][0]
    checksummed(folder, content)
    refused(folder, MANIFEST, r"block \(0, 0\) has \d+ members in place of None")


@pytest.mark.parametrize("ids", ["int", "text"])
@pytest.mark.parametrize("shards", [1, 3])
def test_ids_ascend(tmp_path, ids, shards, monkeypatch):
    folder = tmp_path / "graph"
    edges = EDGES if ids == "int" else [(f"é{u:03}", f"é{v:03}") for u, v in EDGES]
    dasktc.prepare(source_of(edges, ids), backend="cpu", method=Method(partition="hash2d", parts=2)).save(folder)
    content = content_of(folder)
    with tuned(least_shards=shards):
        assert dasktc.open_graph(folder).plan.shards == shards
    array = content["ids"]["shards"][0]
    array = array if ids == "int" else array["letters"]
    data = (folder / array["file"]).read_bytes()
    width = 1 if ids == "int" else 5

    def exchange(values, place):
        left, right = (
            slice(place * width, place * width + width),
            slice(place * width + width, place * width + 2 * width),
        )
        values[left], values[right] = values[right].copy(), values[left].copy()

    for place in range(0, content["vertices"] - 1, 5):
        changed(folder, content, array, lambda values, at=place: exchange(values, at))
        refused(folder, r"ids-0\.bin", "its ids do not ascend")
        (folder / array["file"]).write_bytes(data)


def test_the_triangles_that_a_manifest_says_are_counted(tmp_path):
    folder = tmp_path / "graph"
    content = saved_as(folder)
    content["triangles"] = 5
    checksummed(folder, content)
    with pytest.raises(InputError, match=rf"{MANIFEST} is damaged: it says 5 triangles, but [\d,]+ were counted;"):
        dasktc.triangle_count(folder, backend="cpu")


def test_neighbours_by_direction_are_those_of_the_degrees(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(EDGES, columns=["a", "b"])
    dasktc.prepare(frame, directed=True, threads=1).save(tmp_path / "graph")
    content = content_of(tmp_path / "graph")
    changed(tmp_path / "graph", content, content["attributes"]["neighbours"][2], raised)
    refused(tmp_path / "graph", r"neighbours-0\.bin", "its numbers of neighbours are not the degrees")


@pytest.mark.parametrize("plan", ["whole", "hash2d"])
def test_workers_check_the_blocks_that_they_read(tmp_path, client, plan):
    folder = tmp_path / "graph"
    content = saved_as(folder, plan)
    assert int(dasktc.open_graph(folder, client).triangle_count()) > 0
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    for array, change in (
        (content["blocks"][-1]["columns"], reverse),
        (content["out_degree"][0], reverse),
        (content["order"][0], raised),
    ):
        changed(folder, content, array, change)
        with pytest.raises(InputError, match=r"is damaged"):
            dasktc.open_graph(folder, client)
        for name, before in data.items():
            (folder / name).write_bytes(before)
        content = content_of(folder)


def test_blocks_are_checked_within_memory(tmp_path):
    folder = tmp_path / "graph"
    content = saved_as(folder, "hash2d")
    with dasktc.open_graph(folder, memory="40MB", run=RunOptions(work_dir=tmp_path)) as graph:
        assert int(graph.triangle_count()) > 0
    changed(folder, content, content["in_degree"][0], turned)
    refused(folder, rf"(out-degree-0\.bin|{MANIFEST})", "", memory="40MB", work_dir=tmp_path)


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
@pytest.mark.parametrize("plan", PLANS)
def test_a_device_checks_its_blocks(tmp_path, plan):
    folder = tmp_path / "graph"
    content = saved_as(folder, plan)
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    with emulated_cuda.backend():
        assert int(dasktc.open_graph(folder, backend="cuda").triangle_count()) > 0
        for array, change in (
            (content["blocks"][-1]["columns"], reverse),
            (content["blocks"][-1]["offsets"], raised),
            (content["out_degree"][0], turned),
            (content["order"][0], raised),
        ):
            changed(folder, content, array, change)
            with pytest.raises(InputError, match=r"is damaged"):
                dasktc.open_graph(folder, backend="cuda")
            for name, before in data.items():
                (folder / name).write_bytes(before)
            content = content_of(folder)


def block_of(rng, rows, columns):
    lists = [np.sort(rng.choice(columns, rng.integers(0, min(columns, 9)), replace=False)) for _ in range(rows)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
    return offsets, np.concatenate([np.empty(0), *lists]).astype(np.int32)


@pytest.mark.parametrize("chunk", [5, 1 << 24])
def test_compiled_facts_are_those_of_array_arithmetic(chunk):
    rng, cpu, arrays, by = np.random.default_rng(3), get_backend("cpu").block_facts, ArrayFacts(np, chunk), Hash.draw()
    for number in range(30):
        offsets, columns = block_of(rng, int(rng.integers(1, 30)), int(rng.integers(1, 30)))
        if number % 3 == 1 and len(columns):
            rng.shuffle(columns)
        if number % 3 == 2:
            columns[:] -= rng.integers(0, 5)
        assert cpu.column_facts(columns, by) == arrays.column_facts(columns, by)
        rows = len(offsets) - 1
        for behind in (None, -2, 0, 3):
            given = (0, rows, by.over(3, 1), 20, 3, behind)
            assert cpu.row_facts(offsets, columns, *given) == arrays.row_facts(offsets, columns, *given)
        pair = by.over(3, 1), by.over(3, 2)
        assert cpu.pair_total(offsets, columns, *pair) == arrays.pair_total(offsets, columns, *pair)
        vectors = [rng.integers(0, 2**31, rows, dtype=np.int32) for _ in range(3)]
        facts = cpu.vertex_facts(*vectors, 7, by)
        assert facts == arrays.vertex_facts(*vectors, 7, by)
        assert facts.wedges == sum(int(a) * int(b) for a, b in zip(*vectors[1:], strict=True))
    wrong = np.array([0, 3, 2, 9, 4], np.int64), np.arange(4, dtype=np.int32)
    for own in (cpu, arrays):
        assert own.row_facts(*wrong, 0, 4, by, 9, 1, None).wrong == 3


def test_sums_do_not_depend_on_how_vertices_are_numbered():
    rng, own, by = np.random.default_rng(5), get_backend("cpu").block_facts, Hash.draw()
    columns = rng.integers(0, 1000, 500, dtype=np.int32)
    assert own.column_facts(columns, by.over(7, 3)).total == own.column_facts(columns * 7 + 3, by).total
    assert Hash.draw() != Hash.draw()


def test_differences_that_cancel_are_seen():
    """Of any hash whose values are a polynomial of few terms, such differences of degrees would cancel."""
    own = get_backend("cpu").block_facts
    for order in range(1, 9):
        signs = np.array([(-1) ** k for k in range(order + 1)])
        for trial in range(200):
            by = Hash.draw()
            ids = (trial + np.arange(order + 1) * (1 + trial % 5)).astype(np.int32)
            words = [own.column_facts(ids[k : k + 1], by).total for k in range(order + 1)]
            coefficients = signs * np.array([comb(order, k) for k in range(order + 1)])
            assert sum(int(c) * w for c, w in zip(coefficients, words, strict=True)) % 2**64


# the manifest


def fields_of(kind, path=()):
    """Paths to all fields of the manifest, and whether each may be left out."""
    if isinstance(kind, inspect.UnionType):
        for inner in kind.types:
            yield from fields_of(inner, path)
    elif isinstance(kind, inspect.StructType | inspect.DataclassType):
        for field in kind.fields:
            yield (*path, field.encode_name), not field.required
            yield from fields_of(field.type, (*path, field.encode_name))
    elif isinstance(kind, inspect.ListType):
        yield from fields_of(kind.item_type, (*path, 0))


FIELDS = sorted(set(fields_of(inspect.type_info(Manifest))), key=str)


def value_at(content, path):
    for name in path:
        here = (isinstance(content, dict) and name in content) or (isinstance(content, list) and len(content) > name)
        if not here:
            return None
        content = content[name]
    return content


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """Folders and manifests of a graph with attributes and of one with proxies."""
    import pandas as pd

    folders = [tmp_path_factory.mktemp("manifests") / name for name in ("attributed", "proxy")]
    frame = pd.DataFrame(EDGES, columns=["a", "b"]).assign(w=1.0)
    given = {"weight": "w", "directed": True, "duplicates": "last", "partition": "hash2d", "parts": 2}
    dasktc.prepare(frame, **keywords(**given)).save(folders[0])
    saved_as(folders[1], "proxy")
    return [(folder, (folder / MANIFEST).read_text()) for folder in folders]


def opens_or_is_refused(folder, content):
    """Assert that a manifest is refused by one line that names it, or that its graph answers."""
    checksummed(folder, content)
    try:
        with dasktc.open_graph(folder, threads=1) as graph:
            graph.triangle_count(verify=1)
    except InputError as error:
        text = str(error)
        assert str(folder) in text
        assert "report" not in text
        assert len(text) <= 500, text
        return False
    return True


WRONG = (None, [], {}, True, -1, 0, 1, 3, 2**31, 2**62, 2**63, 10**30, 2.5, "", "x", "cuda", [1], [[-1]], {"a": 1})


@pytest.mark.parametrize(("path", "nullable"), FIELDS, ids=str)
def test_every_field_of_a_manifest(manifests, path, nullable):
    """Its absence, a value of another type, and one out of range; graphs that have it take turns at the values."""

    def has(manifest):
        parent = value_at(json.loads(manifest)["graph"], path[:-1])
        return value_at(parent, path[-1:]) is not None or (isinstance(parent, dict) and path[-1] in parent)

    owners = [(folder, manifest) for folder, manifest in manifests if has(manifest)]
    for turn, (folder, manifest) in enumerate(owners):
        content = json.loads(manifest)["graph"]
        owner = value_at(content, path[:-1])
        if isinstance(owner, dict):
            del owner[path[-1]]
            opened = opens_or_is_refused(folder, content)
            assert not (opened and not nullable), f"{path} may be missing"
        for value in WRONG[turn :: len(owners)]:
            content = json.loads(manifest)["graph"]
            value_at(content, path[:-1])[path[-1]] = value
            opens_or_is_refused(folder, content)
        (folder / MANIFEST).write_text(manifest)


def test_a_missing_field_is_named(tmp_path):
    folder = tmp_path / "graph"
    content = saved_as(folder)
    del content["edges"]
    checksummed(folder, content)
    refused(folder, MANIFEST, "Object missing required field `edges`")


def test_degrees_that_are_not_those_of_the_blocks_are_refused(tmp_path):
    """Square clustering would write behind its adjacency lists."""
    folder = tmp_path / "graph"
    content = saved_as(folder)
    data = (folder / "in-degree-0.bin").read_bytes()
    for change in (raised, lambda values: values.__setitem__(0, 0)):
        changed(folder, content, content["in_degree"][0], change)
        refused(folder, rf"({MANIFEST}|out-degree-0\.bin)", "degrees")
        (folder / "in-degree-0.bin").write_bytes(data)
