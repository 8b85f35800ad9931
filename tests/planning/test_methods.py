"""Published systems by name: each counts by what it names, uncut and in two parts."""

import inspect
import pickle
import re
from pathlib import Path

import pytest

import dasktc
from dasktc import Method
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.options import Options
from dasktc.registry import METHODS
from tests.support.oracle import triangles
from tests.support.slow_pipeline import skewed_edges, source_of

EDGES = skewed_edges(150, 1_500, 5)
PUBLISHED = {
    "trust": ("trust", "hash2d", "collective"),
    "h-index": ("hindex", "edges", "none"),
    "fox-merge": ("merge", "whole", "none"),
    "fox-search": ("search", "whole", "none"),
    "lstc": ("lstc", "proxy", "none"),
    "tc-stream": ("tcstream", "vertical", "degree"),
}
README = Path(__file__).parents[2] / "dasktc" / "README.md"


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("name", PUBLISHED)
def test_each_counts_by_what_it_names(name, parts):
    kernel, partition, reorder = PUBLISHED[name]
    method = Method.of(name, parts=parts, splits=1)
    result = dasktc.triangle_count(source_of(EDGES), backend="cpu", method=method, verify=1.0)
    banded = "-banded" if name == "trust" and parts > 1 else ""
    assert (result.kernel, result.plan.partition, result.reorder) == (kernel, partition, f"{reorder}{banded}")
    assert result.plan.parts == (1 if partition in ("edges", "whole") else parts)
    assert bool(result.plan.proxies) == (name == "lstc")
    assert int(result) == triangles(EDGES)


def test_the_names_are_these():
    assert list(METHODS) == list(PUBLISHED)
    with pytest.raises(InputError, match="method='trus' does not exist: did you mean 'trust'"):
        dasktc.triangle_count(source_of(EDGES), method="trus")
    with pytest.raises(InputError, match=r"method=3 is no method: .* auto, trust, h-index"):
        dasktc.prepare(source_of(EDGES), method=3)


@pytest.mark.parametrize(
    ("method", "order"),
    [
        (Method(kernel="trust", partition="whole", splits=1), "collective"),
        (Method(kernel="trust", partition="whole", splits=2), "collective-banded"),
        (Method(kernel="trust", partition="hash2d", parts=2, splits=1), "collective-banded"),
        (Method(kernel="trust", partition="vertical", parts=1, splits=1), "collective"),
        (Method(kernel="trust", partition="proxy", parts=2), "collective-banded"),
        (Method.of("trust", reorder="indegree", parts=2), "indegree"),
    ],
    ids=str,
)
def test_trusts_order_is_banded_where_the_graph_is_cut(method, order):
    source = source_of(EDGES)
    result = dasktc.triangle_count(source, backend="cpu", method=method)
    assert (result.reorder, int(result)) == (order, triangles(EDGES))
    assert f"order {order}" in dasktc.plan(source, backend="cpu", method=method).plan.choice


def test_trusts_order_is_banded_where_memory_cuts_the_graph():
    """The plan is made before the order is known, and again with it: both see the same n and m."""
    whole = dasktc.plan(source_of(EDGES), backend="cpu", method=Method.of("trust", splits=1)).plan
    assert "order collective:" in whole.choice
    few = dasktc.plan(
        source_of(EDGES), backend="cpu", method=Method.of("trust", splits=1), memory=whole.bytes_per_task - 1
    ).plan
    assert few.parts > 1
    assert "order collective-banded" in few.choice
    size = {"vertices": 10**6, "edges": 10**8, "backend": "cpu", "method": Method.of("trust", splits=1)}
    assert "order collective:" in dasktc.plan(**size).plan.choice
    assert "order collective-banded" in dasktc.plan(**size, memory="300MB").plan.choice


def test_changes_of_a_method():
    assert Method.of("auto") == Method()
    assert Method.of("trust", parts=2) == Method(kernel="trust", partition="hash2d", parts=2)
    assert Method.of("lstc", proxies="tight").kernel == "lstc"
    assert pickle.loads(pickle.dumps(Method.of("h-index"))) == Method.of("h-index")
    options = Options.by("tc-stream", "cpu", "1GB")
    assert (options.method, options.backend, options.memory) == (Method.of("tc-stream"), "cpu", "1GB")
    with pytest.raises(InputError, match="column_parts=2 is given with partition='hash2d'"):
        Method.of("trust", column_parts=2)


def test_the_command_line_has_them(tmp_path, capsys):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    given = ["count", str(tmp_path / "edges.txt"), "--json", "--backend", "cpu"]
    assert main([*given, "--method", "trust", "--parts", "2", "--splits", "1"]) == 0
    assert '"kernel": "trust", "partition": "hash2d", "parts": 2' in capsys.readouterr().out
    assert main([*given, "--method", "h-index", "--reorder", "degree"]) == 0
    assert '"reorder": "degree"' in capsys.readouterr().out
    assert main([*given, "--method", "trist"]) == 2
    assert re.search(r"--method trist does not exist: did you mean 'trust'\?", capsys.readouterr().err)


def test_the_package_page_has_a_row_for_each():
    page = " ".join(README.read_text().split())
    for name, published in METHODS.items():
        options = published.options
        row = re.search(rf"\| `{name}` \|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|", page)
        assert row, name
        assert row[1].strip() == f"`{options['kernel']}`"
        assert row[2].strip().startswith(f"`{options['partition']}`")
        assert options.get("reorder", "collective-banded") in row[3]
        assert published.paper.split(",")[0].split(" et al.")[0].split(" and ")[0] in row[4]


PARAMETERS = (
    "source, client, columns, ids, format, skip, backend, method, memory, threads, run, checkpoint, verify, "
    "per_vertex, per_edge, report, force, progress"
)


def parameters(function):
    return ", ".join(inspect.signature(function).parameters)


def test_the_functions_take_these_and_no_more():
    shared = "columns, ids, format, skip, backend, method, memory, threads, run, progress"
    assert parameters(dasktc.triangle_count) == PARAMETERS
    assert len(PARAMETERS.split(", ")) == 18
    assert (
        parameters(dasktc.prepare) == f"source, client, {shared}, weight, directed, duplicates, edge_columns, vertices"
    )
    assert parameters(dasktc.open_graph) == "path, client, backend, method, memory, threads, run, progress"
    assert parameters(dasktc.estimate) == f"source, client, error, confidence, share, per_vertex, force, {shared}"
    assert parameters(dasktc.plan) == f"source, client, vertices, edges, wedges, workers, gpus, rates, {shared}"
    assert parameters(dasktc.cluster) == "workers, backend, scheduler, scheduler_file, security, protocol"
    assert parameters(dasktc.Method) == (
        "kernel, partition, parts, splits, reorder, assign, column_parts, proxies, sort_rows, seed"
    )
    assert parameters(dasktc.RunOptions) == "work_dir, host_memory, retries, worker_timeout, distribute"


def test_the_help_of_a_count_fits_seventy_lines():
    assert len(inspect.getdoc(dasktc.triangle_count).splitlines()) <= 70
    assert "vertical: n ranges" in " ".join(Method.__doc__.split())
    assert "tc-stream: vertical parts" in " ".join(Method.of.__doc__.split())


@pytest.mark.parametrize("name", dasktc.__all__)
def test_public_names_are_imported_when_they_are_used(name):
    assert getattr(dasktc, name).__doc__
