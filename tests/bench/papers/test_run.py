"""`dasktc bench papers` at tiny sizes: what its tables must contain, and that directions are computed from them."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api.count import build
from dasktc.api.graph import Graph
from dasktc.api.opener import as_source
from dasktc.backends.csr import BlockTask, OrientedCSR
from dasktc.bench.papers import (
    fox,
    fox_memory,
    hindex,
    lanes,
    loops,
    lstc,
    lstc_kernel,
    lstc_memory,
    nsight,
    run,
    tcstream,
    trust_balance,
    trust_chunks,
    trust_degrees,
    trust_hash,
    trust_scaling,
)
from dasktc.bench.papers.bench import Bench, lengths
from dasktc.bench.papers.figure import Figure
from dasktc.bench.papers.graphs import SIZES, Case, Sizes, generated, real
from dasktc.bench.report import device
from dasktc.cli.main import main
from dasktc.counting.result import TriangleCount
from dasktc.errors import CountError, DasktcError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation import cupy_strict
from tests.support.emulation.host import compiler
from tests.support.oracle import multigraphs, triangles
from tests.support.processes import patience

COUNTED = {
    "hindex-fig4", "hindex-fig5", "hindex-gpus", "lstc-fig8", "lstc-fig10", "lstc-table6", "lstc-table9",
    "lstc-table10", "tcstream-fig9", "tcstream-table3", "trust-fig12", "trust-fig13", "trust-fig15", "trust-table6",
}  # fmt: skip
"""Figures that are counts on a GPU too, of many GPUs by one, or of other systems' methods by our kernels."""
TINY = Sizes(8, 8, 500, 5, (6, 8), 4, (7, 8), (7, 8), ((2, 1), (2, 2)))


@pytest.fixture
def emulated() -> Iterator[Any]:
    """The CUDA backend for one test, because most others measure the CPU."""
    if compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")
    with emulated_cuda.backend() as found, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy_strict.ndarray, "__module__", "cupy")
        yield found


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench("cpu", generated(TINY), TINY, quick=True)


@pytest.fixture(scope="module")
def figures(bench: Bench) -> dict[str, Figure]:
    return {name: study.examine(bench) for name, study in run.FIGURES.items()}


def rows(figure: Figure) -> list[dict[str, Any]]:
    return figure.to_dict()["rows"]


def block(edges: list[tuple[int, int]], order: str = "degree") -> OrientedCSR:
    source = as_source(np.array(edges, "int64").reshape(-1, 2))
    return build(LocalExecutor(), source, Options(partition="whole", reorder=order))._context.blocks[0, 0]


def neighbours(of: OrientedCSR) -> list[list[int]]:
    return [of.columns[a:b].tolist() for a, b in zip(of.offsets[:-1], of.offsets[1:], strict=True)]


def whole(of: OrientedCSR) -> BlockTask:
    return BlockTask(of, of, of)


# what every figure has


@pytest.mark.slow
@pytest.mark.parametrize("name", run.FIGURES)
def test_every_figure_has_a_table_a_plot_and_statements(figures: dict[str, Figure], name: str):
    figure = figures[name]
    assert figure.rows
    assert all(len(row) == len(figure.columns) for row in figure.rows)
    assert figure.plot is not None
    assert all(len(values) == len(figure.plot.x) for values in figure.plot.series.values())
    assert figure.verdicts
    assert all(said.paper and said.here for said in figure.verdicts)
    assert json.loads(json.dumps(figure.to_dict()))["statements"]


@pytest.mark.slow
def test_what_takes_a_gpu_is_said_and_not_answered(figures: dict[str, Figure]):
    for said in (v for figure in figures.values() for v in figure.verdicts):
        assert (said.direction is None) >= ("needs a GPU" in said.here)
    assert not any(v.agrees for v in figures["trust-fig3"].verdicts if not v.proxy)
    assert all(v.proxy for v in figures["fox-fig4"].verdicts)


# TRUST


@pytest.mark.slow
def test_levels_read_are_all_reads(figures: dict[str, Figure]):
    for row in rows(figures["trust-fig3"]):
        shares = [row[str(level)] for level in trust_hash.LEVELS]
        assert shares == sorted(shares)
        assert 0 < shares[0] <= shares[-1] <= 1


@given(multigraphs())
def test_level_reads_are_those_of_a_list_searched_from_its_head(edges: list[tuple[int, int]]):
    of = block(edges)
    row, expected = neighbours(of), Counter[int]()
    for u, entries in enumerate(row):
        if len(entries) < 2:
            continue
        for w in (w for v in entries for w in row[v]):
            bucket = [x for x in entries if x % 32 == w % 32]
            read = bucket.index(w) + 1 if w in bucket else len(bucket)
            expected.update(range(read))
        assert u < of.rows
    assert loops.level_reads(whole(of), 4).tolist() == [
        *(expected[level] for level in range(3)),
        sum(count for level, count in expected.items() if level >= 3),
    ]


@pytest.mark.slow
def test_shares_of_the_time_sum_to_one(figures: dict[str, Figure]):
    for row in rows(figures["trust-fig4"]):
        assert row["construction"] + row["intersection"] + row["rest"] == pytest.approx(1)


@given(multigraphs(), st.booleans(), st.sampled_from([2, 100, loops.ONE_SIZE]))
def test_hashing_counts_like_the_oracle(edges: list[tuple[int, int]], per_edge: bool, small_row: int):
    of = block(edges)
    assert loops.hashed(whole(of), loops.LOOK_UP, per_edge, small_row).triangles == triangles(edges)
    assert loops.hashed(whole(of), loops.BUILD, per_edge, small_row).triangles == 0
    assert loops.hashed(whole(of), loops.WALK, per_edge, small_row).collision == 0


def longest_bucket(of: OrientedCSR, small_row: int) -> int:
    found = [0]
    for row in neighbours(of):
        if len(row) > 1:
            buckets = 32 if len(row) <= small_row else 1024
            found.append(max(Counter(x % buckets for x in row).values()))
    return max(found)


@pytest.mark.slow
def test_the_longest_bucket_is_that_of_an_independent_count(bench: Bench, figures: dict[str, Figure]):
    for case, row in zip(bench.cases, rows(figures["trust-table3"]), strict=True):
        assert row["BS"] == longest_bucket(bench.block(case, "none"), loops.ONE_SIZE)
        for column, order in (("CO", "none"), ("CO + RO (IN)", "indegree"), ("CO + RO (OUT)", "collective")):
            assert row[column] == longest_bucket(bench.block(case, order), 100)
        assert row["CO"] <= row["BS"]


def test_a_row_of_one_bucket_takes_32_or_1024_buckets():
    same = block([(0, 32 * k) for k in range(1, 150)], "none")
    hub = OrientedCSR(np.array([0, 149, *[149] * 4800]), np.arange(32, 32 * 150, 32, dtype="int32"))
    assert same.edges == hub.edges
    every = loops.hashed(whole(hub), loops.BUILD, False, loops.ONE_SIZE, unbounded=True)
    assert every.collision == longest_bucket(hub, loops.ONE_SIZE) == 149
    assert loops.hashed(whole(hub), loops.BUILD, False, loops.ONE_SIZE).collision == loops.DEPTH
    assert loops.hashed(whole(hub), loops.BUILD).collision == longest_bucket(hub, 100) == 5


@pytest.mark.slow
def test_speeds_are_over_the_baseline(figures: dict[str, Figure]):
    for row in rows(figures["trust-fig12"]):
        assert row["BS"] == 1
        assert row["VC"] is None
        assert all(row[name] > 0 for name in ("VH", "CO", "RO (IN)", "RO (OUT)"))


@given(multigraphs())
def test_lists_of_a_row_are_as_unlike_as_an_independent_count_says(edges: list[tuple[int, int]]):
    of = block(edges)
    row, expected = neighbours(of), []
    for entries in row:
        sizes = [len(row[v]) for v in entries if row[v]]
        if len(sizes) > 1:
            expected.append(max(sizes) / min(sizes))
    assert trust_degrees.ratios_of_lists(of).tolist() == pytest.approx(expected)


@pytest.mark.slow
def test_reads_by_order_are_over_those_in_degree_order(bench: Bench, figures: dict[str, Figure]):
    for case, row in zip(bench.cases, rows(figures["trust-fig13"]), strict=True):
        reads = {order: lanes.reads_a_lookup(bench, case, order) for order in ("degree", "indegree")}
        assert row["IN, % fewer"] == pytest.approx(100 * (1 - reads["indegree"] / reads["degree"]))


@pytest.mark.parametrize(("teams", "chunk"), list(product((1, 2, 3), (1, 2, 7))))
def test_a_schedule_is_no_shorter_than_it_can_be(teams: int, chunk: int):
    costs = np.array([5, 1, 1, 9, 2, 2, 2, 30, 1])
    length = trust_chunks.makespan(costs, teams, chunk)
    pieces = [int(costs[i : i + chunk].sum()) for i in range(0, len(costs), chunk)]
    assert max(max(pieces), -(-sum(pieces) // teams)) <= length <= sum(pieces)
    assert teams > 1 or length == sum(pieces)


def test_row_costs_are_what_is_hashed_and_looked_up(bench: Bench):
    of = bench.block(bench.cases[0], "collective")
    row = neighbours(of)
    expected = [len(r) + sum(len(row[v]) for v in r) for r in row if len(r) > 1]
    assert trust_chunks.row_costs(of).tolist() == expected


@given(multigraphs())
def test_warp_steps_are_those_of_lists_dealt_by_hand(edges: list[tuple[int, int]]):
    of = block(edges)
    row = neighbours(of)

    def rounds(width: int) -> int:
        teams, steps = 32 // width, 0
        for entries in row:
            busy = [sum(-(-len(row[v]) // width) for v in entries[team::teams]) for team in range(teams)]
            steps += max(busy)
        return steps

    together = sum(-(-sum(len(row[v]) for v in entries) // 32) for entries in row)
    found = lanes.warp_steps(lanes.lists_of(of))
    assert found == {
        "WC": rounds(32),
        "SW (8)": rounds(8),
        "SW (16)": rounds(16),
        "PC": rounds(32) + together,
        "VC": together,
    }
    assert found["VC"] <= found["WC"]


def lists(first: list[int], size: list[int]) -> lanes.Lists:
    return lanes.Lists(*(np.array(of) for of in ([0] * len(size), range(len(size)), first, size)))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=8), st.sampled_from([8, 16, 32]))
def test_sectors_are_those_of_every_step(ends: list[tuple[int, int]], width: int):
    of = lists(*map(list, zip(*ends, strict=True))) if ends else lists([], [])
    steps = [range(a + k, min(a + k + width, a + n)) for a, n in ends for k in range(0, n, width)]
    assert lanes.sectors(of, width) == sum(len({place // 8 for place in step}) for step in steps)
    assert lanes.sectors(of, 0) == sum(len({place // 8 for place in range(a, a + n)}) for a, n in ends)


def test_idle_lanes_are_those_without_an_entry():
    assert lanes.idle_lanes(lists([0, 0, 0], [32, 16, 0])) == pytest.approx(0.25)
    assert lanes.idle_lanes(lists([], [])) == 0


def test_lists_of_a_large_graph_are_those_of_some_rows(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    of = bench.block(bench.cases[0], "collective")
    every = lanes.lists_of(of)
    assert len(every.row) == of.edges
    monkeypatch.setattr(lanes, "SAMPLE", of.edges // 3)
    some = lanes.lists_of(of)
    assert 0.2 * of.edges < len(some.row) < 0.7 * of.edges
    degree = np.diff(of.offsets)
    assert all((some.row == row).sum() == degree[row] for row in np.unique(some.row))
    columns = of.columns[of.offsets[some.row] + some.place]
    assert (some.size == degree[columns]).all()
    assert (some.first == of.offsets[columns]).all()


def test_hot_lines_serve_nine_tenths_of_the_lists(bench: Bench):
    case = bench.cases[0]
    asked = Counter(int(v) // 16 for v in bench.block(case, "indegree").columns)
    served, lines = 0, 0
    while served < 0.9 * sum(asked.values()):
        served, lines = served + asked.most_common()[lines][1], lines + 1
    assert lanes.hot_bytes(bench, case, "indegree") == 128 * lines


def test_reads_a_lookup_are_those_of_the_levels(bench: Bench):
    case = bench.cases[0]
    reads = int(loops.level_reads(bench.task(case, "collective"), 5).sum())
    lookups = loops.hashed(bench.task(case, "collective"), loops.LOOK_UP).wedges
    assert lanes.reads_a_lookup(bench, case, "collective") == pytest.approx(reads / lookups)


def test_why_tasks_take_unlike_times():
    probes = np.array([1000, 2000, 3000, 4000])
    told = trust_balance._why_unlike(np.tile(2e-3 + 1e-6 * probes, (3, 1)), probes, 2)
    assert told == (
        "a task takes 4.500 ms, 2.000 ms of it without any probe, probes tell 100 % of the differences, the same task "
        "differs 1.00 to 1.00 times from run to run, the first splits take 0.80 times as long as the second ones and "
        "make 0.67 times the probes"
    )
    noisy = np.array([[1.0, 1.0], [2.0, 3.0], [4.0, 1.0]])
    assert "differs 3.50 to 4.00 times" in trust_balance._why_unlike(noisy, np.array([5, 5]), 1)


@given(multigraphs(), st.integers(1, 4))
def test_ranges_of_vertices_hold_all_edges_and_all_work(edges: list[tuple[int, int]], n: int):
    of = block(edges)
    row, size = neighbours(of), max(1, -(-of.rows // n))
    work, held = np.zeros((n, n, n), "int64"), np.zeros((n, n), "int64")
    for u, v in ((u, v) for u, entries in enumerate(row) for v in entries):
        held[u // size, v // size] += 1
        for w in row[v]:
            work[u // size, v // size, w // size] += 1
    found = loops.range_partition(of.offsets, of.columns, n)
    assert (found[0] == work).all()
    assert (found[1] == held).all()


IMBALANCES = ("time IR", "work IR", "space IR", "range work IR", "range space IR")


@pytest.mark.slow
def test_imbalances_are_at_least_one(figures: dict[str, Figure]):
    found = rows(figures["trust-table6"])
    assert [(row["n"], row["m"], row["tasks"]) for row in found] == [(2, 1, 8), (2, 2, 16)] * 3
    assert all(row[name] is None or row[name] >= 1 for row in found for name in IMBALANCES)


def test_ranges_are_those_of_the_order_that_makes_them_more_even(bench: Bench):
    case = bench.cases[2]
    of = [trust_balance.range_imbalance(bench.block(case, order), 2) for order in ("none", "collective-banded")]
    found = trust_balance._by_ranges(bench, case, 2)
    assert None not in found
    assert found == [min(ratio for ratio in ways if ratio) for ways in zip(*of, strict=True)]


def test_gpus_of_figure_15_are_as_fast_as_their_slowest_split(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """The time of each split is proportional to the entries that it looks up."""
    count = Graph.triangle_count

    def by_work(graph: Graph) -> TriangleCount:
        found = count(graph)
        of = [(record, record.count._replace(seconds=float(record.count.wedges))) for record in found._records]
        return found._replace(_records=[replace(record, count=timed) for record, timed in of])

    monkeypatch.setattr(Graph, "triangle_count", by_work)
    one, four = (bench.slowest_split(bench.cases[0], number, **trust_scaling.COUNTED) for number in (1, 4))
    wedges = bench.count(bench.cases[0], "collective", "trust").wedges
    assert one == wedges
    assert wedges / 4 <= four < wedges / 2


@pytest.mark.slow
def test_real_workers_of_trust_and_lstc_count_and_say_how_long(bench: Bench):
    for busiest in (trust_scaling._busiest(bench, 2), lstc_kernel._on_workers(bench, bench.cases, 2)):
        assert list(busiest) == bench.names
        assert all(seconds > 0 for seconds in busiest.values())
    assert trust_scaling._gpus(bench) == 0


# Fox et al.


@given(st.lists(st.integers(1, 400), max_size=60))
def test_warps_take_all_work_and_no_less_than_their_longest_edge(work: list[int]):
    array = np.array(work, "int64")
    for threads in (1, 2, 32, 256):
        steps = fox._warps(array, threads)
        assert 32 * int(steps.sum()) >= sum(work)
        assert int(steps.max(initial=0)) == max((-(-w // threads) for w in work), default=0)


@given(multigraphs(), st.sampled_from([1, 4, 32, 256]))
def test_sectors_are_those_of_lanes_that_bisect_in_step(edges: list[tuple[int, int]], threads: int):
    of = block(edges)
    assert fox_memory.sectors_a_search(of, threads) == pytest.approx(read_by_lanes(of, threads))


def read_by_lanes(of: OrientedCSR, threads: int) -> float:
    """Sectors per search, computed lane by lane: the distinct sectors that the lanes read in each step."""
    first, columns = of.offsets.tolist(), of.columns.tolist()
    pairs = []
    for u in range(of.rows):
        for p in range(first[u], first[u + 1]):
            v = columns[p]
            lists = [(first[u], p), (first[v], first[v + 1])]
            few, many = sorted(lists, key=lambda ends: ends[1] - ends[0])
            if few[0] < few[1]:
                pairs.append((few, many))
    pairs.sort(key=lambda pair: (pair[0][1] - pair[0][0] - 1).bit_length())
    parts = [(*pair, part) for pair in pairs for part in range(threads)]
    sectors = searches = 0
    for warp in range(0, len(parts), 32):
        reads: list[dict[tuple[int, int], int]] = []
        for few, many, part in parts[warp : warp + 32]:
            share = -(-(few[1] - few[0]) // threads)
            low, mine = many[0], {}
            for turn, place in enumerate(range(few[0] + part * share, min(few[0] + (part + 1) * share, few[1]))):
                mine[turn, 0], high, step = place, many[1], 1
                while low < high:
                    mine[turn, step], middle, step = (low + high) // 2, (low + high) // 2, step + 1
                    low, high = (middle + 1, high) if columns[middle] < columns[place] else (low, middle)
                if low < many[1]:
                    mine[turn, 99] = low
                searches += 1
            reads.append(mine)
        for moment in set().union(*reads):
            sectors += len({mine[moment] // 8 for mine in reads if moment in mine})
    return sectors / searches if searches else 0.0


def test_work_of_a_search_is_the_shorter_list(bench: Bench):
    of = bench.block(bench.cases[0])
    row = neighbours(of)
    expected = [min(place, len(row[v])) for entries in row for place, v in enumerate(entries)]
    assert sorted(fox.search_work(of).tolist()) == sorted(w for w in expected if w)


@given(multigraphs())
def test_steps_by_both_estimates_are_those_of_lanes(edges: list[tuple[int, int]]):
    of = block(edges)
    row, found = neighbours(of), fox.estimated(of)
    lists = [(min(k, len(row[v])), max(k, len(row[v]))) for r in row for k, v in enumerate(r)]
    searches = [(few, many, max(1, (many - 1).bit_length())) for few, many in lists if few]
    for steps, work in zip(found, ([f for f, _, _ in searches], [f * log for f, _, log in searches]), strict=True):
        longest = reads = 0
        for k in {(w - 1).bit_length() for w in work}:
            threads = max(1, (1 << k) // fox.SUB)
            mine = [-(-f // threads) * (1 + log) for (f, _, log), w in zip(searches, work, strict=True)
                    if (w - 1).bit_length() == k]  # fmt: skip
            longest = max(longest, *mine)
            warps = [max(mine[i : i + max(1, 32 // threads)]) for i in range(0, len(mine), max(1, 32 // threads))]
            reads += sum(warps) * max(1, threads // 32)
        assert steps == pytest.approx(max(reads / fox.RESIDENT, longest))


@given(multigraphs(), st.booleans())
def test_binning_puts_each_edge_with_work_into_its_bin(edges: list[tuple[int, int]], merged: bool):
    of = block(edges)
    t, row = loops.triple(whole(of)), neighbours(of)
    places, starts = np.full((of.edges, 2), -1), np.zeros(loops.BINS + 1, "int64")
    loops._binning(t, merged, places, starts)
    found = {}
    for k in range(loops.BINS):
        for u, p in places[starts[k] : starts[k + 1]].tolist():
            a, b = p - int(of.offsets[u]), len(row[of.columns[p]])
            work = a + b if merged else min(a, b)
            assert work <= 1 << k
            assert k == 0 or work > 1 << (k - 1)
            found[p] = u
    assert sorted(found) == [
        p for u, r in enumerate(row) for p in range(of.offsets[u], of.offsets[u] + len(r))
        if p > of.offsets[u] and row[of.columns[p]]
    ]  # fmt: skip


# LSTC


@pytest.mark.slow
def test_no_part_grows_when_proxies_are_removed(figures: dict[str, Figure]):
    for name, letter in (("lstc-table3", "V"), ("lstc-table4", "E")):
        found = rows(figures[name])
        assert all(row[f"{letter}_res"] <= row[f"{letter}_ind"] for row in found)
        for graph in {row["graph"] for row in found}:
            of = [row[f"{letter}_res"] for row in found if row["graph"] == graph]
            assert len(of) == lstc.PARTS + 1
            assert of[-1] == sum(of[:-1])


@pytest.mark.slow
def test_local_vertices_are_in_their_part(bench: Bench, figures: dict[str, Figure]):
    totals = {row["graph"]: row["V_res"] for row in rows(figures["lstc-table3"]) if row["part"] == "total"}
    for case in bench.cases:
        assert totals[case.name] >= bench.block(case).rows


@pytest.mark.slow
def test_every_way_to_deal_vertices_out_is_there(figures: dict[str, Figure]):
    pytest.importorskip("pymetis")
    ways = ["random", "contiguous", "metis", lstc.UNDIVIDED]
    assert [row["assign"] for row in rows(figures["lstc-table6"])] == ways * 2
    assert all(row["total"] == row["partition"] + row["kernel"] for row in rows(figures["lstc-table6"]))


@pytest.mark.slow
def test_a_wider_tile_searches_no_more(figures: dict[str, Figure], bench: Bench):
    for case, row in zip(bench.cases, rows(figures["lstc-fig7"]), strict=True):
        searches = [row[str(width)] for width in lstc.WIDTHS]
        assert searches == sorted(searches, reverse=True)
        assert searches[-1] >= 1
        _, a, b = lengths(bench.block(case))
        expected = sum(-(-x // 64) * y for x, y in zip(a.tolist(), b.tolist(), strict=True)) / int(b.sum())
        assert searches[0] == pytest.approx(expected)


def test_threads_that_a_processor_holds(emulated: Any):
    from dasktc.bench.papers.device import occupancy

    def held(block: int, shared: int = 0) -> int:
        return occupancy("lstc", "lstc_rows", {"TILE": block, "THREADS": block}, block, shared).threads

    assert held(128) == 12 * 128  # 40 registers a thread: 12 blocks of 4 warps of 1280
    assert held(32) == 32 * 32  # no more than 32 blocks
    assert held(1024) == 1024
    assert held(128, 100 << 10) == 2 * 128
    assert "40 registers, 1,024 B" in str(occupancy("lstc", "lstc_rows", {"TILE": 64, "THREADS": 64}, 64))


# H-INDEX


@given(multigraphs(), st.booleans())
def test_collisions_are_those_of_an_independent_count(edges: list[tuple[int, int]], longer: bool):
    of = block(edges, "none")
    row = neighbours(of)
    met = entries = 0
    for u, v in ((u, v) for u, r in enumerate(row) for v in r if r and row[v]):
        lists = sorted((row[u], row[v]), key=len)
        of_edge = lists[longer] if len(row[u]) != len(row[v]) else row[v] if longer else row[u]
        met += sum(count - 1 for count in Counter(x % 32 for x in of_edge).values())
        entries += len(of_edge)
    assert loops.collisions(whole(of), longer) == (met, entries)


@pytest.mark.slow
def test_the_published_collisions_of_a_star_product(figures: dict[str, Figure]):
    found = {row["graph"]: row for row in rows(figures["hindex-fig3"])}
    assert 2 * found["Theory-16-25-81-B1k"]["shorter"] == 2_304_450
    assert all(row["shorter"] <= row["longer"] for row in found.values())


@pytest.mark.slow
def test_rates_are_of_the_graphs_that_are_named(figures: dict[str, Figure]):
    assert [row["graph"] for row in rows(figures["hindex-table4"])] == ["Kronecker 6", "Kronecker 7", "Kronecker 8"]
    found = {row["graph"]: row for row in rows(figures["hindex-table5"])}
    assert len(found) == 8
    assert found["Theory-9-16-B1k"] | {"M edges / s": 0} == {
        "graph": "Theory-9-16-B1k", "vertices": 170, "edges": 313, "triangles": 144, "M edges / s": 0,
    }  # fmt: skip
    assert all(row["M edges / s"] > 0 for row in found.values())


# TC-Stream


@pytest.mark.slow
def test_steps_of_a_count_from_disk(figures: dict[str, Figure]):
    for row in rows(figures["tcstream-overlap"]):
        assert row["copy"] is None
        longest = max(row["load"], row["count"])
        assert row["over the longest"] == pytest.approx(row["overlapped"] / longest)
        total = row["load"] + row["count"]
        assert row["hidden"] == pytest.approx((total - row["overlapped"]) / (total - longest))
        assert row["MB read"] > 0
        assert row["sub-tasks"] > 1


def test_the_executor_reads_all_blocks_from_files_in_turn_and_ahead(bench: Bench):
    """Each read is recorded; in turn, no read begins before the task that needs it."""
    tasks, turn, ahead = tcstream._measured(bench, bench.cases[0])
    plan = bench.prepared(bench.cases[0], kernel="tcstream", partition="vertical", parts=tcstream.PARTS, splits=1).plan
    assert tasks == plan.tasks
    assert min(turn.nbytes, ahead.nbytes) > plan.bytes_total / 2
    assert min(turn.load, ahead.load) > 0


@pytest.mark.slow
def test_the_transformation_and_tight_parts_take_less(figures: dict[str, Figure]):
    cells = {(row["graph"], row["parts"], row["proxies"]): row["max MB"] for row in rows(figures["lstc-table5"])}
    for graph, parts, _ in cells:
        of = [cells[graph, parts, how] for how in ("tight", "lstc", "none")]
        assert of == sorted(of)


@pytest.mark.slow
def test_reads_with_and_without_shared_memory(bench: Bench, figures: dict[str, Figure]):
    for case, row in zip(bench.cases, rows(figures["lstc-fig10"]), strict=True):
        of, within, alone, wedges = lengths(bench.block(case)), 0, 0, 0
        sizes = np.diff(bench.block(case).offsets).tolist()
        for _, a, b in zip(*(numbers.tolist() for numbers in of), strict=True):
            within += b * -(-a // 1024)
            alone += b * (2 + max(0, int(np.ceil(np.log2(a)))))
            wedges += b
        assert row["with, a wedge"] == pytest.approx((within + sum(sizes)) / wedges)
        assert row["without, a wedge"] == pytest.approx(alone / wedges)


# counts


def test_counts_that_differ_end_it(bench: Bench):
    case = Case("a path", bench.cases[0].source, triangles=1)
    with pytest.raises(CountError, match=r"hub counts [0-9,]+ triangles of a path, arithmetic 1"):
        bench.count(case, "degree", "hub")


# the command


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch):
    for key in SIZES:
        monkeypatch.setitem(SIZES, key, TINY)


@pytest.mark.slow
def test_plots_and_page(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("matplotlib")
    out = tmp_path / "made" / "here"
    assert main(["bench", "papers", "trust-fig4", "lstc", "--backend", "cpu", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    command = f"dasktc bench papers --backend cpu --out {out} trust-fig4 lstc"
    assert found["command"] == command
    names = ["trust-fig4", *(name for name in run.FIGURES if name.startswith("lstc"))]
    assert [section.get("figure") for section in found["sections"]] == [*names, None]
    assert {path.name for path in out.iterdir()} == {*(f"{name}.png" for name in names), "papers.html"}
    assert all((out / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    page = (out / "papers.html").read_text()
    assert all(f'id="{name}"' in page for name in names)
    assert page.count("data:image/png;base64") == len(names)
    assert command in page
    assert found["plots"] == str(out / "papers.html")


def test_a_plot_names_graphs_device_and_command():
    from dasktc.bench.papers.plots import _caption

    caption = _caption(Figure("", {}, graphs=["G", "H"]), "one thread", "dasktc bench papers")
    assert caption == "graphs: G; H\ndevice: one thread\ncommand: dasktc bench papers"


def test_without_matplotlib_text_and_one_line(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "papers", "trust-table3", "--backend", "cpu"]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if "matplotlib" in line] == [f"plots     {run.NO_PLOTS}"]
    assert "The longest bucket met, a count" in printed
    assert "agrees: yes" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_quick_ends_in_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run all of it as users do; the limit is two minutes on a laptop."""
    began = time.process_time()
    assert main(["bench", "papers", "--quick", "--backend", "cpu", "--out", str(tmp_path)]) == 0
    assert time.process_time() - began < patience(90)  # beside others, a CPU second does less
    printed = capsys.readouterr().out
    assert all(f"{name}: " in printed for name in run.FIGURES)
    assert printed.count("\n  paper:  ") == printed.count("\n  agrees: ") > 30


def test_names_that_do_not_exist_are_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "papers", "trust-fig6"]) == 2
    assert "figure 'trust-fig6' does not exist: choose of trust-fig3, " in capsys.readouterr().err
    assert run.chosen(["fox", "fox-fig4"]) == ["fox-fig3", "fox-fig4", "fox-fig5", "fox-table2", "fox-estimate"]
    assert run.chosen([]) == list(run.FIGURES)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"graphs": "/nowhere"}, "is no folder"), ({"out": __file__}, "is a file"), ({"backend": "tpu"}, "'tpu'")],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run.run(**options)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured():
    pytest.importorskip("matplotlib")
    with pytest.raises(DasktcError, match="cannot be written"):
        run.run(out=f"{__file__}/plots", say=lambda name: pytest.fail("measures"))


def test_real_graphs_take_part_where_they_are(tmp_path: Path):
    from dasktc.bench.papers import graphs

    (tmp_path / graphs.REAL["amazon0601"]).touch()
    (tmp_path / graphs.REAL["cnr-2000"]).touch()
    assert [case.name for case in real(str(tmp_path), quick=False)] == ["amazon0601", "cnr-2000"]
    assert [case.name for case in real(str(tmp_path), quick=True)] == ["amazon0601"]
    assert real(None, quick=True) == []


# on a GPU, emulated


@pytest.mark.slow
def test_a_gpu_runs_the_kernels_with_their_macros(emulated: Any, monkeypatch: pytest.MonkeyPatch):
    """Compute every figure with the real kernels, but fewer settings than on a GPU, as each is compiled anew."""
    monkeypatch.setattr(trust_hash, "LEVELS", (1, 6, 8))
    monkeypatch.setattr(trust_chunks, "CHUNKS", (1, 3))
    monkeypatch.setattr(lstc, "WIDTHS", (64, 128, 256))
    monkeypatch.setattr(hindex, "PUBLISHED", {})
    monkeypatch.setattr(tcstream, "TOPS", (0, 5))
    monkeypatch.setattr(trust_scaling, "SMALL", (1, 2))
    monkeypatch.setattr(trust_scaling, "LARGE_QUICK", (4,))
    sizes = TINY._replace(scale=5, wide=5, vertices=50, side=3, rates=(4, 5), stars=1, streamed=(4, 5), tasks=((2, 1),))
    bench = Bench("cuda", generated(sizes), sizes, quick=True)
    for name, study in run.FIGURES.items():
        figure = study.examine(bench)
        assert figure.rows, name
        assert all(len(row) == len(figure.columns) for row in figure.rows)
        assert not any("needs a GPU" in said.here for said in figure.verdicts), name
        assert name != "lstc-table7" or all("the notes say why" in said.here for said in figure.verdicts)
        assert (name in COUNTED) == any(said.proxy for said in figure.verdicts), name
    assert device("cuda") == "emulated"


@pytest.mark.gpu
@pytest.mark.timeout(1200)  # 290 s with nothing beside it; Nsight Compute starts a process for each of its counts
def test_quick_on_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "papers", "--quick", "--backend", "cuda", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["sections"][:-1]
    assert [figure["figure"] for figure in found] == list(run.FIGURES)
    assert all(figure["rows"] for figure in found)
    said = [statement for figure in found for statement in figure["statements"] if figure["figure"] not in COUNTED]
    assert not any(statement["counted"] or "needs a GPU" in statement["here"] for statement in said)


NCU = """#!/bin/sh
echo '==PROF== Connected to process 1'
echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
for order in "$@"; do :; done
loads=1,000; hits=40; [ $order = degree ] && loads=2,000 && hits=30
case "$*" in *lstc_rows*)
for word in "$@"; do [ "$last" = --metrics ] && metrics=$word; last=$word; done
for metric in $(echo $metrics | tr , ' '); do
case "$*" in *lstc-unshared*) value=400 ;; *) value=100 ;; esac
echo "\\"0\\",\\"lstc_rows\\",\\"$metric\\",\\"\\",\\"$value\\""
done; exit 0 ;;
esac
for kernel in trust_warp trust_block; do
echo "\\"0\\",\\"$kernel\\",\\"smsp__inst_executed_op_shared_ld.sum\\",\\"inst\\",\\"$loads\\""
echo "\\"0\\",\\"$kernel\\",\\"lts__t_sectors_lookup_hit.sum\\",\\"sector\\",\\"$hits\\""
echo "\\"0\\",\\"$kernel\\",\\"lts__t_sectors_lookup_miss.sum\\",\\"sector\\",\\"10\\""
done
"""
NO_RIGHTS = (
    "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to read counters'\nexit 1\n"
)


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands for ncu")
def test_a_profilers_counters_are_added_up_over_kernels(monkeypatch, tmp_path):
    script, case = tmp_path / "ncu", generated(TINY)[0]
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    script.write_text(NCU)
    script.chmod(0o755)
    assert nsight.counters(case, "degree") == (4_000, 60, 20)
    assert nsight.counters(case, "indegree") == (2_000, 80, 20)
    figure = trust_degrees.orders(Bench("cuda", [case], TINY))
    more = 100 * (0.8 / 0.75 - 1)
    assert figure.rows == [[case.name, 4_000, 50, 50, 0.75, pytest.approx(more), pytest.approx(more)]]
    assert not figure.proxy
    study = run.FIGURES["trust-fig13"]
    assert [verdict.direction for verdict in study.compare(figure, "cuda")] == [True] * 4
    figure.rows[0][2:] = [-1, -1, 0.75, -1, -1]
    assert [verdict.direction for verdict in study.compare(figure, "cuda")] == [False] * 4
    profiled = lstc_memory.efficiency(Bench("cuda", [case], TINY))
    assert [row[1:] for row in profiled.rows] == [["without", *[400.0] * 6], ["with", *[100.0] * 6]]
    fewer, _, stalls, *_ = run.FIGURES["lstc-table7"].compare(profiled, "cuda")
    assert (fewer.here, fewer.direction, stalls.direction) == (f"times that without: {case.name} 0.25", True, True)
    figure = lstc_memory._counted(Bench("cpu", [case], TINY))
    assert isinstance(figure, Figure)
    assert not figure.proxy
    assert figure.rows[0][3] == 75
    script.write_text(NO_RIGHTS)
    assert "ERR_NVGPUCTRPERM" in nsight.counters(case, "degree")
    assert "ERR_NVGPUCTRPERM" in str(lstc_memory._counted(Bench("cpu", [case], TINY)))
    none = lstc_memory.efficiency(Bench("cuda", [case], TINY))
    assert "ERR_NVGPUCTRPERM" in none.notes[-1]
    assert none.rows == [[case.name, how, *[None] * 6] for how in ("without", "with")]
    assert {verdict.direction for verdict in run.FIGURES["lstc-table7"].compare(none, "cuda")} == {None}
    script.unlink()
    assert nsight.counters(case, "degree") == "ncu (Nsight Compute) is not here"
