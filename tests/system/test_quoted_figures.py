"""Figures that pages quote: they are those of the kernels' headers, tables and constants in which they were noted."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasktc.api import count
from dasktc.backends.cpu import kernels as cpu_kernels
from dasktc.backends.cpu.splits import GROUP
from dasktc.backends.cuda import kernels as cuda_kernels
from dasktc.bench import gpu_cases
from dasktc.bench.papers import run
from dasktc.executors import memory_budget
from dasktc.pipeline import autotune
from dasktc.registry import ORDERS

ROOT = Path(__file__).parents[2]
SCALES = ("Kronecker 20", "Kronecker 22")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tables(name: str, *columns: str) -> list[dict[str, str]]:
    """Rows by column of the page's table that has these columns."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page(name).splitlines()]
    (begin,) = [k for k, row in enumerate(rows) if set(columns) <= set(row) and len(row) > 1]
    found = []
    for row in rows[begin + 2 :]:
        if len(row) < len(rows[begin]):
            break
        found.append(dict(zip(rows[begin], row, strict=False)))
    return found


def same(quoted: str, noted: str) -> bool:
    """Whether a quoted number is the noted one, to the digits that are quoted."""
    digits = len(quoted.partition(".")[2])
    return f"{float(noted):.{digits}f}" == f"{float(quoted):.{digits}f}"


def header(file: str) -> list[str]:
    """The comment at the top of a kernel's file, line by line."""
    lines = (ROOT / "kernels" / file).read_text(encoding="utf-8").splitlines()
    end = next(k for k, line in enumerate(lines) if not line.startswith("//"))
    return [line.removeprefix("//").strip() for line in lines[:end]]


def noted_in_header(kernel: str) -> tuple[str, str] | None:
    """Milliseconds at scales 20 and 22 of a kernel's own header."""
    if kernel in ("hub", "bitmap"):
        versions = [line for line in header("hub.cu") if "measured" in line]
        line = versions[-1] if kernel == "hub" else next(v for v in versions if "`bitmap`" in v)
        k20, k22, *_ = re.findall(r"[\d.]+", line.split("measured")[1])
        return k20, k22
    if kernel == "lstc-unshared":
        (found,) = re.findall(r"in global memory ([\d.]+)\. Other graphs", " ".join(header("lstc.cu")))
        return "-", found
    text = " ".join(header(f"{kernel}.cu")) if (ROOT / "kernels" / f"{kernel}.cu").is_file() else ""
    found = re.search(r"Kronecker 20 \([^)]*\) ([\d.]+)(?: \([\d.]+\))?, Kronecker 22 (\d+(?:\.\d+)?)", text)
    return (found[1], found[2]) if found else None


KERNELS = {row["name"].strip("`"): row for row in tables("kernels/README.md", "name", "header", "choose")}


def test_every_kernel_stands_in_its_pages_table():
    assert set(KERNELS) == {kernel.name for kernel in cuda_kernels.OWN}


@pytest.mark.parametrize("kernel", KERNELS)
def test_times_of_a_kernel_are_those_of_its_header(kernel: str):
    quoted, noted = KERNELS[kernel]["header"], noted_in_header(kernel)
    if noted is None:
        assert quoted == "-", "the page quotes what the header does not say"
        return
    for one, other in zip(quoted.split("; "), noted, strict=True):
        assert one == other == "-" or same(one, other), (quoted, noted)


def test_times_of_choose_are_those_of_the_registrys_table():
    lines = Path(cuda_kernels.__file__).read_text(encoding="utf-8").splitlines()
    top = next(k for k, line in enumerate(lines) if re.match(r"# +hub +bitmap", line))
    names = lines[top].lstrip("# ").split()[:-1]
    noted = {}
    for line in lines[top + 1 :]:
        if (found := re.match(r"#   (\S.*?)   +([\d. -]+?)  +[\d.]+ [MG]\b", line)) is None:
            break
        noted[found[1]] = found[2].split()
    assert f"covers {len(noted)} graphs" in page("kernels/README.md").replace("\n", " ")
    for kernel, row in KERNELS.items():
        if row["choose"] == "-":
            assert kernel not in names
            continue
        for quoted, scale in zip(row["choose"].split("; "), SCALES, strict=True):
            assert same(quoted, noted[scale][names.index(kernel)]), (kernel, scale)


def test_times_in_other_orders_are_those_beside_the_reason_that_plans_print():
    lines = Path(autotune.__file__).read_text(encoding="utf-8").splitlines()
    top = next(k for k, line in enumerate(lines) if re.match(r"# +collective +collective-banded", line))
    orders = lines[top].lstrip("# ").split()
    noted = {name: times for _, name, *times in map(str.split, lines[top + 1 : top + 6])}
    rows = tables("dasktc/README.md", "counting with", "`none`")
    assert noted == {row["counting with"].strip("`"): [row[f"`{order}`"] for order in orders] for row in rows}
    usual, *others = ORDERS
    assert (usual, others) == ("degree", orders)
    times = list(map(float, noted["hub"]))
    assert autotune.ORDER == autotune.order_reason(min(times), max(times))


def test_times_of_supports_are_those_of_their_header():
    lines = header("support.cu")

    def noted(begin: str) -> list[str]:
        (line,) = [line for line in lines if line.startswith(begin)]
        return re.findall(r"(?<![\w.])[\d.]+(?![\w.])", line.removeprefix(begin).partition("    ")[2])

    (both,) = [line for line in lines if line.startswith("PLAIN: edges, vertices")]
    pairs = re.findall(r"([\d.]+), ([\d.]+)", both)
    columns = {
        "count": noted("count"),
        "by vertex": noted("vertices: near hubs by squares"),
        "by edge": noted("edges: all lists"),
    }
    rows = tables("kernels/README.md", "graph", "count", "by edge: kernel, question")
    for row in rows:
        if not row["graph"].startswith("Kronecker"):
            continue
        place = ("Kronecker 20", "Kronecker 22", "Kronecker 24").index(row["graph"])
        by_vertex, by_edge = (row[f"{how}: kernel, question"].split(";")[0] for how in ("by vertex", "by edge"))
        if row["kernel"] == "`bitmap`":
            assert (by_edge, by_vertex) == pairs[place]
        else:
            cells = {"count": row["count"], "by vertex": by_vertex, "by edge": by_edge}
            assert all(same(cell, columns[name][place]) for name, cell in cells.items()), row


def test_cpu_kernels_take_as_long_as_the_registry_says():
    times = [kernel.times for kernel in cpu_kernels.OWN[1:]]
    (text,) = re.findall(r"scale 18 they take (\d+ to \d+) times as long as `hub`", page("dasktc/README.md"))
    assert text == f"{min(times):.0f} to {max(times):.0f}"


def test_fixed_and_measured_times_of_a_gpu_stand_in_one_table():
    def figure(cell: str) -> float | None:
        return None if cell == "-" else float(cell)

    column = "fastest published kernel (GroupTC-BS, its input in CSR), measured once"
    rows = tables("dasktc/bench/README.md", "graph", "kernel", "prepare", column)
    assert [figure(row[column]) for row in rows] == [case.published for case in gpu_cases.CASES]
    (prepare,) = [row["prepare"] for row in rows if row["graph"] == "Kronecker 24"]
    assert f"of the {prepare} ms that preparation takes" in page("dasktc/README.md").replace("\n", " ")


def test_constants_that_pages_and_docstrings_quote():
    text, least = page("dasktc/README.md"), memory_budget.SHARE >> 20
    assert f"with less than {least} MiB per thread fewer are used" in text
    assert f"With less than {least} MiB per thread fewer threads are used" in (count.triangle_count.__doc__ or "")
    assert f"groups of {GROUP} rows dealt out in turn on a GPU" in text
    assert f"groups of {GROUP} rows, a warp's, in turn" in page("dasktc/bench/papers/README.md").replace("\n", " ")


# tables of notebooks, and the README


def recorded(notebook: str) -> dict[str, dict[str, list[object]]]:
    """Columns of the tables that a notebook has written out, by the name of the second one."""
    cells = json.loads(page(f"notebooks/{notebook}.ipynb"))["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    texts = [
        found[1] for code in codes if (found := re.match(r"pd\.DataFrame\(\s*(\{.*\})\s*\)\.set_index", code, re.S))
    ]
    return {list(table)[1]: table for table in map(ast.literal_eval, texts)}


QUESTIONS = ("triangles per vertex", "clustering", "support of every edge", "list of 1,000")


def test_questions_of_a_gpu_take_what_the_benchmarks_page_says():
    rows = tables("dasktc/bench/README.md", "graph", "count", *QUESTIONS)
    _, *columns = recorded("gpus")["count"].values()
    for row, noted in zip(rows, zip(*columns, strict=True), strict=True):
        cells = [row[name] for name in ("count", *QUESTIONS)]
        assert all(same(cell, str(time)) for cell, time in zip(cells, noted, strict=True)), row["graph"]
    kernels = tables("kernels/README.md", "graph", "count", "by edge: kernel, question")
    for row in rows:
        (own,) = [
            of for of in kernels if of["graph"].replace(" of ", " ") == row["graph"] and of["kernel"] != "`bitmap`"
        ]
        quoted = [own[f"by {end}: kernel, question"].split("; ")[1] for end in ("vertex", "edge")]
        assert quoted == [row[QUESTIONS[0]], row[QUESTIONS[2]]]


def test_counts_on_clusters_and_out_of_core_take_what_the_benchmarks_page_says():
    text = page("dasktc/bench/README.md").replace("\n", " ")
    for graph, *times in zip(*recorded("gpus")["no cluster, 1 GPU"].values(), strict=True):
        assert re.search(rf"{graph} {times[0]:g}(\.0)?, {times[1]:g}(, and| and|,) {times[2]:g}", text), graph
    rows = [
        row
        for row in tables("dasktc/bench/README.md", "`--memory`", "plan", "to the host, back")
        if "times)" in row["time"]
    ]
    rows = [row for row in rows if row["`--memory`"] == "16 GB"]
    for row, graph, _, times, out, back in zip(rows, *recorded("gpus")["raw edges"].values(), strict=True):
        assert f"({times} times)" in row["time"], graph
        assert row["to the host, back"] in ("0, 0" if out == back == "-" else f"{out.removesuffix(' GB')}, {back}")
    seconds, ratio = re.findall(r"([\d.]+) s \(([\d.]+) times\)", rows[-1]["time"])[0]
    quoted = re.search(r"within 16 GB of one GPU take ([\d.]+) s, ([\d.]+) times", page("README.md"))
    assert quoted is not None
    assert abs(float(quoted[1]) - float(seconds)) < 0.051
    assert quoted[2] == ratio


def test_the_readme_says_how_long_others_take_as_the_benchmarks_page_does():
    text = page("README.md").replace("\n ", "")
    rows = tables("dasktc/bench/README.md", "", "relative to dasktc's reorder + count")
    noted = [row["relative to dasktc's reorder + count"] for row in rows if "dasktc" not in row[""]][1:]
    assert "take {}, {} and {} times as long".format(*noted) in text
    ratios: dict[str, list[float]] = {}
    for row in tables("dasktc/bench/README.md", "graph", "dasktc", "TRUST", "TriCore"):
        graph, ours, *others = row.values()
        fastest = min(float(other) for other in others if other != "-")
        ratios.setdefault(graph.split()[0], []).extend(fastest / float(time) for time in ours.split(" to "))
    kronecker, uniform = ratios.values()
    quoted = f"{min(kronecker):.1f} to {max(kronecker):.1f} times, on random edges {min(uniform):.1f}."
    assert f"the best of six published kernels {quoted}" in text


# the papers' table


def of_papers() -> dict[str, str]:
    """The column `paper` of all rows of a figure, by its name."""
    found: dict[str, str] = {}
    name = ""
    for row in tables("dasktc/bench/papers/README.md", "figure", "paper", "direction"):
        name = row["figure"].strip("`") or name
        found[name] = f"{found.get(name, '')} {row['what']} {row['paper']};"
    return found


REPEATABLE = ("trust-fig5", "trust-fig7", "trust-fig14", "trust-table3", "hindex-fig3", "lstc-table3", "lstc-table4")
"""Figures that are counts on the CPU, so that a quick run finds them again to the digit."""


@pytest.mark.slow
def test_counted_figures_are_what_a_quick_run_counts(tmp_path: Path):
    report = run.run(list(REPEATABLE), backend="cpu", quick=True, out=str(tmp_path), say=lambda name: None)
    texts = {section.title: str(section) for section in report.sections}
    name = ""
    for row in tables("dasktc/bench/papers/README.md", "figure", "paper", "direction"):
        name = row["figure"].strip("`") or name
        if name in REPEATABLE and row["what"] != "the numbers on two star products":
            (text,) = [text for text in texts.values() if text.startswith(f"{name}: ")]
            counted = [number.replace(",", "") for number in re.findall(r"\d[\d,]*\.?\d*", text)]
            for number in re.findall(r"\d[\d,]*\.?\d*", row["ours"]):
                assert any(same(number.strip(",").replace(",", ""), other) for other in counted), (name, number)


def published() -> Iterator[object]:
    for name, study in run.FIGURES.items():
        for claim in study.claims:
            if claim.published is not None and name not in RATIOS:
                yield pytest.param(name, claim.name, id=f"{name}-{claim.name}-{claim.on}")


RATIOS = {"hindex-fig3", "hindex-table6", "lstc-table8"}
"""Figures whose band is on ours over the paper's, not on a number that the paper prints."""


def close(one: float, other: float) -> bool:
    """Whether two numbers agree to the digits that a page has room for."""
    return abs(one - other) <= 0.03 * max(abs(one), abs(other))


@pytest.mark.parametrize(("name", "claim"), list(published()))
def test_the_papers_numbers_in_the_table_are_those_of_the_bands(name: str, claim: str):
    quoted = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", of_papers()[name])]
    for band in (of.published for of in run.FIGURES[name].claims if of.name == claim and of.published):
        for end in (band.least, band.most):
            assert any(close(end, number) or close(end, 100 * number) for number in quoted), (end, quoted)
