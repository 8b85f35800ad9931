"""Blocks with unsorted rows: counts are the same, and functions that need sorted rows refuse them."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.backends import get_backend
from dasktc.backends.cpu import radix
from dasktc.backends.csr import BlockTask
from dasktc.cli.main import main
from dasktc.counting.tasks import Job, _counted
from dasktc.errors import CountError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Method, Options
from dasktc.pipeline.prepare import prepare_blocks, prepare_edges
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.schemes import Triple
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler
from tests.support.keywords import keywords
from tests.support.oracle import multigraphs, triangles
from tests.support.slow_pipeline import EVERY_PARTITION, EVERY_REORDER, pairwise_cover, skewed_edges, source_of
from tests.support.tiers import each_once

HASHING = ["trust", "hindex"]
EDGES = skewed_edges(900, 14_000, 5)
EXPECTED = triangles(EDGES)


def count(edges=EDGES, **options):
    return dasktc.triangle_count(source_of(edges, parts=3), **keywords(sort_rows=False, **options))


def blocks(edges, threads=1, **options):
    executor, chosen = LocalExecutor(threads=threads), Options(backend="cpu", kernel="trust", **options)
    prepared = prepare_edges(executor, source_of(edges, parts=3), chosen)
    return prepare_blocks(executor, prepared, prepared.options)[1]


def rows_of(block):
    return [block.columns[a:b].tolist() for a, b in zip(block.offsets[:-1], block.offsets[1:], strict=True)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("partition", "parts"), [("whole", 1), ("hash2d", 2), ("vertical", 2)])
def test_rows_hold_the_same_in_another_order(partition, parts, threads):
    how = {"partition": partition, "parts": parts, "threads": threads}
    in_order, found = (blocks(EDGES, sort_rows=sort, **how) for sort in (True, False))
    assert in_order.keys() == found.keys()
    for place, block in found.items():
        assert (in_order[place].sorted_rows, block.sorted_rows) == (True, False)
        assert [sorted(row) for row in rows_of(block)] == rows_of(in_order[place])
    assert any(rows_of(found[place]) != rows_of(in_order[place]) for place in found)


@pytest.mark.parametrize(
    ("kernel", "reorder", "partition"), each_once(pairwise_cover(HASHING, EVERY_REORDER, EVERY_PARTITION))
)
def test_every_order_and_partition(kernel, reorder, partition):
    result = count(kernel=kernel, reorder=reorder, verify=1.0, **partition)
    assert (int(result), result.stats.verified) == (EXPECTED, result.plan.tasks)


@given(multigraphs(), st.sampled_from(HASHING), st.sampled_from(EVERY_PARTITION))
def test_any_multigraph(edges, kernel, partition):
    assert int(count(edges, kernel=kernel, verify=1.0, **partition)) == triangles(edges)


@pytest.mark.parametrize("options", [{"threads": 2}, {"memory": "40MB"}, {"memory": "40MB", "partition": "hash2d"}])
def test_on_threads_and_in_files(options):
    assert int(count(kernel="hindex", **options)) == EXPECTED


@pytest.mark.slow
def test_on_workers(client):
    for options in ({}, {"partition": "hash2d", "parts": 2}, {"distribute": "never"}):
        assert int(count(client=client, kernel="trust", verify=1.0, **options)) == EXPECTED


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
def test_on_a_device():
    """With more keys than are sorted completely anyway."""
    edges = skewed_edges(300, 2_500, 5)
    with emulated_cuda.backend():
        for kernel, parts in (("trust", 1), ("hindex", 2), ("hindex-unbinned", 1)):
            result = count(edges, backend="cuda", kernel=kernel, partition="hash2d", parts=parts, verify=1.0)
            assert (int(result), result.kernel) == (triangles(edges), kernel)


@pytest.mark.gpu
@pytest.mark.parametrize(("kernel", "parts"), list(product(["trust", "hindex", "hindex-unbinned"], [1, 2])))
def test_on_a_gpu(kernel, parts):
    """The counts are known; a graph of many tiles is sorted only by the bits of its rows."""
    result = dasktc.triangle_count(
        dasktc.generate.kronecker(18),
        backend="cuda",
        method=Method(kernel=kernel, partition="hash2d", parts=parts, sort_rows=False),
    )
    assert (int(result), result.edges) == (82_704_862, 3_806_602)


@given(st.integers(1, 2**50), st.lists(st.integers(0, 3), max_size=4), st.integers(0, 52), st.integers(0, 99))
def test_merged_keys_ascend_but_for_their_lowest_bits(bound, sizes, low, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, bound, (0, 7, 1_500, 90_000)[size]) for size in sizes]
    every = np.concatenate([np.empty(0, np.int64), *arrays])
    merged = radix.merge(list(arrays), bound, low)
    assert (np.diff(merged >> low) >= 0).all()
    assert (np.sort(merged) == np.sort(every)).all()


def test_keys_beyond_63_bits_are_sorted():
    wide, narrow = (Axis(vertices, 64) for vertices in (2**31 - 1, 2**20))
    assert Layout(wide, (wide,), Shape(2**31 - 1, 31, True, sort_rows=False)).loose_bits == 25
    assert Layout(narrow, (narrow,), Shape(2**20, 20, True, sort_rows=False)).widths == [1 << 14] * 64**2
    ranges = Axis(2**31 - 1, 4, (0, 1, 2, 3, 2**31 - 1))
    layout = Layout(ranges, (ranges, ranges), Shape(2**31 - 1, 31, True, sort_rows=False))
    assert layout.loose_bits == 0
    assert layout.widths == [1, 1, 1, 2**31 - 4, 1, 1, 1, 2**31 - 4] * 4


def test_a_kernel_that_needs_rows_in_order_gets_none_other():
    block = blocks(EDGES, sort_rows=False)[0, 0]
    job = Job(Triple((0, 0), (0, 0), (0, 0)), 0, 1, "merge", "cpu")
    with pytest.raises(
        CountError, match=r"kernel merge needs rows in ascending order, .*\(kernel='trust'\) or .*\(kernel='hindex'\)$"
    ):
        _counted(BlockTask(block, block, block), job, "merge")
    assert get_backend("cpu").count(BlockTask(block, block, block), "hindex").triangles == EXPECTED


@pytest.mark.parametrize("kernel", ["auto", "hub", "merge", "lstc"])
def test_other_kernels_are_refused(kernel):
    with pytest.raises(
        InputError,
        match=r"needs sorted rows: give .*\(kernel='trust'\) or .*\(kernel='hindex'\), or leave the option out$",
    ):
        count(kernel=kernel)


def test_what_is_made_of_sorted_rows_is_refused(tmp_path):
    for name in ("checkpoint", "per_vertex", "per_edge"):
        with pytest.raises(InputError, match=f"{name} needs sorted rows"):
            count(kernel="trust", **{name: tmp_path / "out.txt"})
    with pytest.raises(InputError, match="sort_rows=1 is neither True nor False"):
        Options(sort_rows=1)


def test_the_option(tmp_path, capsys):
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 0\n")
    command = ["count", str(tmp_path / "g.txt"), "--kernel", "hindex", "--no-sort-rows", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["triangles"] == 1
    assert main([*command[:2], "--no-sort-rows"]) == 2
    assert "kernel hub needs sorted rows" in capsys.readouterr().err
