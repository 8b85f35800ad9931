"""Choices of `auto`: made by the rows of the graph, explained in the plan, and without effect on the number."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.api.graph import Graph
from dasktc.backends import lazy_backend
from dasktc.backends.cpu.backend import KERNELS
from dasktc.backends.cuda.launch_trust import ENTRIES, TURNS, chunk_rows
from dasktc.bench import choices
from dasktc.bench import choose as table
from dasktc.cli.main import main
from dasktc.errors import CountError
from dasktc.executors.local import LocalExecutor
from dasktc.io.generators.synthetic import grid3d, kronecker
from dasktc.options import Method, Options
from dasktc.pipeline.autotune import ORDER, Facts, choose, look, order_reason, rules
from dasktc.pipeline.prepare import prepare_edges
from dasktc.registry import ORDERS
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import needs_compiler
from tests.support.oracle import complete, multigraphs, triangles
from tests.support.slow_pipeline import orientation, prepared, random_edges, source_of


@given(multigraphs(max_vertices=30))
def test_facts_are_those_of_the_rows(edges):
    found = prepared(edges)
    slow = orientation(edges, by_rows=True)
    lengths = sorted(len(row) for row in slow.out.values())
    facts = look(LocalExecutor(), found.graph)
    if not lengths:
        assert facts == Facts(0, 0, 0, 0, 0)
        return
    assert (facts.narrow, facts.wide) == (sum(2 <= n <= 100 for n in lengths), sum(n > 100 for n in lengths))
    assert facts.processors == 1
    assert facts.longest == lengths[-1]
    assert facts.usual == next(k for k in range(len(lengths)) if sum(n <= k for n in lengths) >= 0.99 * len(lengths))
    assert (facts.rows, facts.edges, facts.wedges) == (len(lengths), len(slow.edges), slow.wedges)
    mean = len(slow.edges) / len(lengths)
    assert facts.wedges_per_edge == slow.wedges / len(slow.edges)
    assert facts.skew == pytest.approx(facts.wedges_per_edge / mean)
    assert facts.even == pytest.approx(mean / max(1, facts.usual))


def test_short_rows_are_walked_and_others_meet_tables():
    assert dasktc.prepare(grid3d(30))._context.options.kernel == "merge"
    assert dasktc.prepare(kronecker(8))._context.options.kernel == "hub"


def test_a_kernel_that_is_asked_for_is_taken():
    for kernel in ("hub", "search", "trust"):
        graph = dasktc.prepare(grid3d(5), method=Method(kernel=kernel))
        assert graph._context.options.kernel == kernel
        assert f"kernel {kernel} as asked" in graph.plan.choice
        assert graph._context.options.reorder == ("collective-banded" if kernel == "trust" else "degree")


def test_an_order_that_is_asked_for_is_taken():
    graph = dasktc.prepare(grid3d(5), method=Method(reorder="indegree"))
    assert graph._context.options.reorder == "indegree"
    assert "order indegree as asked" in graph.plan.choice


def test_the_plan_says_why(tmp_path, capsys):
    path = tmp_path / "mesh.txt"
    path.write_text(
        "".join(f"{u} {v}\n" for u, v in [(k, k + 1) for k in range(300)] + [(k, k + 2) for k in range(300)])
    )
    assert main(["plan", str(path), "--verbose"]) == 0
    assert "kernel merge: 99 % of the rows are no longer than 2" in capsys.readouterr().out
    assert main(["count", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kernel"], found["reorder"], found["triangles"]) == ("merge", "degree", 299)


def test_another_kernel_later_is_the_one_that_was_asked_for():
    edges = complete(12)
    graph = dasktc.prepare(source_of(edges))
    for kernel in ("merge", "search"):
        result = graph.triangle_count(kernel=kernel)
        assert (int(result), result.kernel) == (triangles(edges), kernel)
        assert result.plan.choice.startswith(f"kernel {kernel} as asked")


MEASURED = {
    "Kronecker 10": (Facts(37, 43, 897, 10_504, 209_345), "lstc"),
    "Kronecker 14": (Facts(110, 139, 12_504, 213_100, 13_243_864), "lstc"),
    "Kronecker 18": (Facts(244, 414, 174_274, 3_806_602, 659_191_683), "bitmap"),
    "Kronecker 19": (Facts(280, 532, 335_692, 7_741_858, 1_712_433_503), "bitmap"),
    "Kronecker 20": (Facts(262, 675, 646_174, 15_702_423, 4_424_229_281), "hub"),
    "Kronecker 22": (Facts(431, 1051, 2_397_429, 64_152_562, 28_927_386_669), "hub"),
    "RM 2^16": (Facts(18, 27, 64_953, 497_747, 5_238_269), "short"),
    "RM 2^18": (Facts(20, 35, 259_109, 2_032_829, 23_980_825), "short"),
    "RM 2^20": (Facts(22, 36, 1_032_981, 8_232_184, 107_038_184), "hub"),
    "RM 2^22": (Facts(24, 45, 4_114_340, 33_174_855, 471_404_747), "hub"),
    "RM 2^24": (Facts(26, 51, 16_384_650, 133_292_702, 2_056_477_221), "hub"),
    "RA 10^6": (Facts(17, 19, 1_000_000, 9_999_912, 63_885_812), "hub"),
    "RA 10^7": (Facts(17, 20, 10_000_000, 99_999_918, 638_717_586), "hub"),
    "random, degree 4": (Facts(4, 6, 20_000_000, 39_999_999, 43_611_787), "short"),
    "random, degree 40": (Facts(34, 39, 1_000_000, 19_999_557, 261_029_988), "hub"),
    "random, degree 60": (Facts(51, 55, 1_000_000, 29_999_116, 591_311_463), "hub"),
    "random, degree 100": (Facts(87, 92, 1_000_000, 49_997_517, 1_652_079_696), "trust"),
    "random 10^5, degree 100": (Facts(87, 91, 100_000, 4_997_419, 165_168_480), "trust"),
    "random 10^5, degree 400": (Facts(365, 373, 100_000, 19_959_863, 2_650_310_755), "trust"),
    "random 10^4, degree 400": (Facts(358, 362, 10_000, 1_960_575, 255_791_243), "bitmap"),
    "clique 1500": (Facts(1484, 1499, 1500, 1_124_250, 561_375_500), "bitmap"),
    "torus 50^3": (Facts(4, 6, 125_000, 375_000, 1_110_000), "short"),
    "torus 300^3": (Facts(3, 6, 27_000_000, 81_000_000, 242_460_000), "short"),
    "torus 464^3": (Facts(3, 6, 99_897_344, 299_692_032, 899_000_000), "short"),
    "clique 400": (Facts(396, 399, 400, 79_800, 10_586_800), "bitmap"),
    "clique 600": (Facts(594, 599, 600, 179_700, 35_820_200), "bitmap"),
    "theory 25-81-256": (Facts(82, 257, 547_924, 2_132_284, 70_013_161), "bitmap"),
    "theory 4-5-9-16-25": (Facts(170, 300, 132_600, 1_582_861, 99_408_170), "bitmap"),
    "ca-GrQc": (Facts(23, 43, 5_241, 14_484, 68_367), "lstc"),
    "dblp-2010": (Facts(13, 74, 300_647, 807_700, 3_385_564), "bitmap"),
    "144": (Facts(13, 15, 144_649, 1_074_393, 5_146_416), "short"),
    "amazon0601": (Facts(10, 24, 403_394, 2_443_408, 10_746_389), "short"),
    "celegans": (Facts(12, 13, 453, 2_025, 8_586), "short"),
    "email-Eu-core": (Facts(41, 47, 986, 16_064, 332_563), "lstc"),
    "ego-Twitter": (Facts(74, 129, 81_306, 1_342_296, 40_974_029), "lstc"),
    "email-Enron": (Facts(41, 70, 36_692, 183_831, 3_768_826), "lstc"),
    "ego-Facebook": (Facts(111, 125, 4_039, 88_234, 2_568_611), "lstc"),
    "p2p-Gnutella31": (Facts(9, 14, 62_586, 147_892, 447_234), "short"),
    "wing": (Facts(4, 4, 62_032, 121_544, 115_596), "short"),
}
"""Graphs, each with the fastest kernel on an H200, or one within 10 % or 0.15 ms (once 0.3) of its time."""


@pytest.mark.parametrize("name", MEASURED)
def test_a_device_takes_what_was_fastest(name):
    facts, fastest = MEASURED[name]
    options, why = choose(Options(backend="cuda"), facts)
    assert (options.kernel, options.reorder) == (fastest, "degree")
    assert why.startswith(f"kernel {fastest}: ")
    assert "{" not in why


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_a_dense_core_among_leaves_is_not_walked(backend):
    """A clique of 1,000 vertices with 200,000 leaves: hub took 0.004 s on the CPU where merge took 0.47."""
    facts = Facts(1, 999, 201_000, 699_500, 166_367_000)
    assert choose(Options(backend=backend), facts)[0].kernel == ("hub" if backend == "cpu" else "bitmap")


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_a_dense_core_in_a_large_forest_is_not_walked(backend):
    """A clique of 1,500 vertices and 80 M edges of paths: 8 wedges an edge on average, most of them for few threads."""
    facts = Facts(1, 1499, 80_001_500, 81_124_250, 641_375_500)
    assert choose(Options(backend=backend), facts)[0].kernel == ("hub" if backend == "cpu" else "bitmap")


def test_a_clique_on_a_path_is_not_left_to_few_thread_blocks():
    facts = Facts(1, 599, 120_600, 299_700, 35_940_200)
    assert choose(Options(backend="cuda"), facts)[0].kernel == "bitmap"


@pytest.mark.parametrize("degree", [1, 4, 40])
def test_the_choice_counts_what_others_count(degree):
    edges = random_edges(300, 300 * degree // 2, degree)
    result = dasktc.triangle_count(source_of(edges), verify=1.0)
    assert int(result) == triangles(edges)
    assert (
        np.unique(
            [int(dasktc.triangle_count(source_of(edges), method=Method(kernel=k))) for k in ("hub", "merge")]
        ).size
        == 1
    )


# the table


def test_the_table_has_every_choice_and_graph(tmp_path, capsys):
    with gzip.open(tmp_path / "ca-GrQc.txt.gz", "wt") as file:
        file.writelines(f"{u} {v}\n" for u, v in complete(30))
    report = table.run(quick=True, graphs=str(tmp_path))
    chosen, fixed, seconds, whole, orders, over_degree, facts = report.sections
    names = [str(choice) for choice in choices.choices("cpu")]
    own = {"hub": "degree", "trust": "collective", "hindex": "degree"}
    in_others = [f"{kernel}, {order}" for kernel in own for order in ORDERS if order != own[kernel]]
    cut = [f"hub, {scheme}" for scheme in ("edges", "hash2d", "vertical", "proxy")]
    assert sorted(names) == sorted([*KERNELS, *in_others, *cut])
    assert [row[0] for row in chosen.rows] == [*table.QUICK, "ca-GrQc.txt.gz"]
    assert [row[0] for row in fixed.rows] == ["auto", *names]
    for (_, edges, auto, count, best, least, ratio, _), row in zip(chosen.rows, seconds.to_dict()["rows"], strict=True):
        assert edges > 0
        assert (count, least) == (row[auto], row[best])
        assert least == min(row[name] for name in KERNELS)
        assert ratio == pytest.approx(count / least)
    assert all(worst >= mean >= 1 - 1e-9 for *_, worst, mean in fixed.rows)
    assert list(seconds.columns)[1:] == [*KERNELS, *cut]
    assert all(
        a > b for of, on in zip(whole.rows, seconds.rows, strict=True) for a, b in zip(of[1:], on[1:], strict=True)
    )
    kinds = ["hub", "trust", "hindex", "hub, from source to number", "preparation"]
    assert [row[:2] for row in orders.rows] == [[graph, kind] for graph, *_ in chosen.rows for kind in kinds]
    assert list(orders.columns)[2:] == list(ORDERS)
    assert [row[0] for row in over_degree.rows] == kinds
    mean, skew, even = pytest.approx(28 / 3), pytest.approx(28 / 3 / 14.5), pytest.approx(0.5)
    assert facts.rows[-1][1:] == [29, 29, 30, 435, 4060, 28, 0, 1, mean, skew, even, 1]
    assert table.run(quick=True, only=("TORUS 30³",)).sections[0].rows[0][0] == "torus 30³"
    assert main(["bench", "choose", "--quick", "--only", "RA"]) == 2
    assert "--only 'RA' is no graph's name; the graphs are: Kronecker 10; torus 30³" in capsys.readouterr().err
    assert main(["bench", "choose", "--runs", "0"]) == 2
    assert "--runs 0 is below 1" in capsys.readouterr().err


def test_kernels_that_disagree_end_the_table(monkeypatch):
    real = Graph.triangle_count

    def wrong(graph, *, kernel=None, **kwargs):
        result = real(graph, kernel=kernel, **kwargs)
        return result._replace(triangles=result.triangles + (kernel == "search"))

    monkeypatch.setattr(Graph, "triangle_count", wrong)
    with pytest.raises(CountError, match="kernel search counts"):
        table.run(quick=True)


def test_what_is_more_than_a_tenth_slower_is_named():
    fast, slow = choices.Choice("hub", "degree"), choices.Choice("merge", "degree")
    of = choices.Measured(slow, 9, Facts(1, 1, 9, 9, 9), {fast: 1.0, slow: 1.2}, {fast: 2.0, slow: 2.1})
    section = table._choices({"G": of, "H": replace(of, auto=fast)}, "cpu")
    assert section.notes[-2] == "more than 1.1 times the best and 0.1 ms: G"
    one = "the best fixed choice for all graphs is hub: auto takes at most 1.20 times as long (G)"
    assert section.notes[-1] == one
    assert section.rows[0][2:] == ["merge", 1200, "hub", 1000, 1.2, 1.05]
    brief = choices.Measured(slow, 9, Facts(1, 1, 9, 9, 9), {fast: 1e-5, slow: 9e-5}, {fast: 2.0, slow: 2.1})
    assert table._choices({"G": brief}, "cpu").notes[-2].endswith(" ms: none")


def test_orders_are_compared_with_the_usual_one_and_give_the_reason_of_plans():
    """Twice as long in each further order on one graph, and 1.5 times on another: sqrt(3) in the mean."""

    def measured(factor: float) -> choices.Measured:
        times = {
            choices.Choice(kernel, order): 1e-3 * factor**place
            for kernel in choices.IN_EVERY_ORDER
            for place, order in enumerate(ORDERS)
        }
        prepare = dict.fromkeys(ORDERS, 2e-3)
        return choices.Measured(choices.Choice("hub", "degree"), 9, Facts(1, 1, 9, 9, 9), times, times, prepare)

    graphs = {"G": measured(2.0), "H": measured(1.5)}
    section = table._orders_over_degree(graphs, "cuda")
    assert section.rows[0] == ["hub", *(pytest.approx(3 ** (0.5 * place)) for place in range(1, len(ORDERS)))]
    assert section.rows[-1][1:] == [1.0] * (len(ORDERS) - 1)
    assert section.notes == [f"order degree: {order_reason(3**0.5, 9.0)}"]
    assert choose(Options(kernel="hub"), None)[1].endswith(f"order degree: {ORDER}")
    assert table._orders(graphs, "cuda").rows[0] == ["G", "hub", *(pytest.approx(2.0**k) for k in range(len(ORDERS)))]


@needs_compiler
@pytest.mark.slow
def test_the_table_on_an_emulated_device(monkeypatch):
    monkeypatch.setattr(table, "QUICK", {"torus 4³": lambda: grid3d(4), "Kronecker 6": lambda: kronecker(6)})
    with emulated_cuda.backend():
        report = table.run(quick=True, backend="cuda")
    assert report.facts["device"] == "emulated"
    assert {row[2] for row in report.sections[0].rows} <= {kernel for kernel, _ in rules("cuda")}
    assert {"short", "hub, proxy"} < set(report.sections[2].columns)
    assert [row[1] for row in report.sections[4].rows][:4] == ["hub", "trust", "hindex", "short"]
    assert all(row["processors"] == 2 for row in report.sections[-1].to_dict()["rows"])


@needs_compiler
def test_facts_on_an_emulated_device():
    """The longest row of a clique is as long as any row can be in a graph with so many edges."""
    with emulated_cuda.backend():
        executor = LocalExecutor(backend=lazy_backend("cuda"))
        found = prepare_edges(executor, source_of(complete(110)), Options(backend="cuda"))
        facts = look(executor, found.graph)
    assert (facts.rows, facts.edges, facts.longest, facts.usual) == (110, 5995, 109, 108)
    assert (facts.narrow, facts.wide) == (99, 9)


# the order of a kernel


EVEN = Facts(51, 170, 1_000_000, 29_999_116, 591_311_463)
"""Facts of random edges of degree 60, except for one row that is too long for `short`."""


def test_trust_comes_with_its_order_where_it_was_asked_for():
    options, why = choose(Options(backend="cuda", kernel="trust"), EVEN)
    assert (options.kernel, options.reorder) == ("trust", "collective")
    assert "order collective: kernel trust's own" in why
    options, why = choose(Options(backend="cuda"), EVEN)
    assert (options.kernel, options.reorder) == ("trust", Options().chosen_reorder) == ("trust", "degree")
    assert f"order degree: {ORDER}" in why
    options, why = choose(Options(backend="cuda", reorder="indegree"), EVEN)
    assert (options.kernel, options.reorder) == ("trust", "indegree")


# chunks of `trust`


def test_the_plan_says_the_chunks_of_trust():
    facts = Facts(3, 3, 27_005_000, 81_000_000, 243_000_000, 27_000_000, 1000, 132)
    options, why = choose(Options(backend="cuda", kernel="trust"), facts)
    assert options.reorder == "collective"
    assert choose(Options(backend="cuda"), MEASURED["random, degree 60"][0])[0].reorder == "degree"
    mean = 81_000_000 * 4 / 27_001_000
    assert f"chunks of up to {chunk_rows(27_000_000, mean, 8448)} rows a warp, for 27,000,000 rows" in why
    assert "of 1 a thread block, for 1,000 longer rows" in why
    assert "chunks of rows by each task's own" in choose(Options(backend="cuda", kernel="trust"), None)[1]
    assert "chunk" not in choose(Options(backend="cpu", kernel="trust"), facts)[1]


@given(st.integers(0, 10**9), st.floats(1, 10**7) | st.none(), st.integers(1, 10**4))
def test_chunks_leave_every_team_its_turns(rows, mean, teams):
    chunk = chunk_rows(rows, mean, teams)
    assert chunk >= 1
    assert chunk == 1 or (chunk * TURNS * teams <= rows and chunk * mean <= ENTRIES)
    assert chunk_rows(2 * rows, mean, teams) >= chunk
    assert chunk_rows(rows, mean, 2 * teams) <= chunk
