"""`dasktc bench SUITE --against CHECKOUT`: the figures of a suite here over those of another checkout.

Each turn runs the suite once from either checkout, in processes of its own, one right after the other, so that other
load affects both. They swap places from turn to turn (A B, B A, A B, ...): on a machine that slows down steadily the
second one takes longer, so neighbouring turns err to opposite sides, and the spread of the ratios spans what is true.
With A B in every turn all ratios would err to the same side, and a figure would seem worse that is not.

A figure is a cell of a table: the title, the row's keys and the column name it. The tables say which columns are
compared (`Section.limits`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import comb, inf
from pathlib import Path
from statistics import median, mode
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from dasktc.bench.report import CPU, DEVICE, EXACT, Cell, Report, Say, Section, check_runs, load, quiet
from dasktc.errors import DasktcError, InputError, shown
from dasktc.wording import plural

__all__ = ["Comparison", "Figure", "against", "compare", "compared"]

HERE = Path(__file__).parents[2]
"""The checkout, or folder of packages, that this process runs from."""
OUTSIDE = 0.025
"""Most probability with which the median of all ratios lies below the spread, and as much above it."""

FEWEST = 6
"""Turns from which all ratios of a figure that has not changed seldom lie on one side of 1: 2 of 2^6 times."""


class Figure(NamedTuple):
    """A figure's name: the table's title, the row's keys and the column."""

    title: str
    row: str
    column: str


class Comparison(NamedTuple):
    """A figure of both checkouts: medians, and the median of the ratios of each turn with its spread."""

    other: Cell
    here: Cell
    """Medians; the most frequent value of a figure that must not change."""
    ratio: float | None
    least: float | None
    most: float | None
    """Here over the other checkout; None for a figure that must not change."""
    verdict: str
    """"worse", "unclear", "better", "differs", or "" where there is nothing to tell."""


def against(checkout: str, command: list[str], turns: int, say: Say = quiet) -> Report:
    """Run a suite from another checkout and from this one in turns, and compare the figures.

    Parameters
    ----------
    checkout : str
        Folder that contains `dasktc/`.
    command : list of str
        The suite and its options, as words behind `dasktc bench`.
    turns : int
        They follow a warm-up turn, in which both checkouts compile.
    say : callable (str), optional
        Told what is being measured.

    Raises
    ------
    InputError
        The folder is no checkout, or one of the two refuses the command.
    DasktcError
        The suite fails in one of them.
    """
    check_runs(turns)
    roots = {"other": _root(checkout), "here": HERE}
    reports = []
    for turn in range(turns + 1):
        pair = {}
        for side in reversed(roots) if turn % 2 else roots:
            say(f"turn {turn} of {turns}, {side}" if turn else f"warm-up, {side}")
            pair[side] = _report(roots[side], command, say)
        reports.append((pair["other"], pair["here"]))
    facts = {name: text for name, text in reports[-1][1].items() if isinstance(text, str) and name != "command"}
    facts |= {"load": load(), **{side: f"{root} {_revision(root)}".rstrip() for side, root in roots.items()}}
    line = shlex.join(["dasktc", "bench", *command, "--against", checkout, "--runs", str(turns)])
    return Report(line, facts, compare(reports[1:]))


def _root(checkout: str) -> Path:
    """The checkout's folder; InputError unless Python imports dasktc from there."""
    root = Path(checkout).resolve()
    call = [sys.executable, "-c", "import dasktc; print(dasktc.__file__)"]
    process = subprocess.run(call, env=_environment(root), capture_output=True, text=True, check=False)
    if process.stdout.strip() != str(root / "dasktc" / "__init__.py"):
        raise InputError(
            f"--against {shown(checkout)} is no checkout of dasktc: Python does not import dasktc/ from there; give "
            "the folder that contains dasktc/, such as one that `git worktree add` made"
        )
    return root


def _environment(root: Path) -> dict[str, str]:
    """Environment in which Python finds the checkout's package first, and not that of the current folder."""
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def _report(root: Path, command: list[str], say: Say) -> dict[str, Any]:
    """Run a suite from a checkout, and return its report."""
    words, line = [sys.executable, "-m", "dasktc", "bench", *command, "--runs", "1", "--json"], ""
    with (
        TemporaryFile("w+", encoding="utf-8") as out,
        subprocess.Popen(
            words, env=_environment(root), stdout=out, stderr=subprocess.PIPE, errors="replace"
        ) as process,
    ):
        try:
            for line in filter(str.strip, process.stderr or ()):
                say(f"  {line.rstrip()}")
        except BaseException:
            process.terminate()
            raise
        status = process.wait()
        out.seek(0)
        text = out.read()
    called, reason = shlex.join(["dasktc", *words[3:]]), line.strip().removeprefix("dasktc: error: ")
    if status:
        raise (InputError if status == InputError.exit_code else DasktcError)(
            f"`{called}` of {root} failed ({reason}): it has to run in both checkouts; give "
            f"options that both have, or try it alone with PYTHONPATH={root}"
        )
    with suppress(ValueError):
        report = json.loads(text)
        if isinstance(report, dict) and isinstance(report.get("sections"), list):
            return report
    raise InputError(f"`{called}` of {root} prints no tables in JSON: that version is too old; give a later checkout")


def _revision(root: Path) -> str:
    """The checkout's commit as git describes it; empty where git does not know."""
    with suppress(OSError):
        call = ["git", "-C", str(root), "describe", "--always", "--dirty"]
        return subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip()
    return ""


# comparison


def compare(turns: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Section]:
    """Compare the reports of each turn.

    Parameters
    ----------
    turns : list of (dict, dict)
        Reports as `Report.to_dict` makes them, of the other checkout and of this one.

    Returns
    -------
    list of Section
        What was found, the figures that one checkout lacks, and a table for each of the suite's.
    """
    limits: dict[Figure, float] = {}
    cells: dict[tuple[Figure, int], dict[int, Cell]] = {}
    for turn, pair in enumerate(turns):
        tables = {table["title"]: table for table in pair[1]["sections"]}
        for side in (1, 0):  # tables and rows in the order of this version
            for table in pair[side]["sections"]:
                for figure, limit, cell in _figures(table, tables.get(table["title"], table)):
                    limits.setdefault(figure, limit)
                    cells.setdefault((figure, side), {})[turn] = cell
    comparisons, lacking = dict[Figure, Comparison](), list[list[Cell]]()
    for figure, limit in limits.items():
        former, present = (cells.get((figure, side), {}) for side in (0, 1))
        pairs = [(former[turn], present[turn]) for turn in former if turn in present]
        if pairs:
            comparisons[figure] = compared(pairs, limit)
        else:
            lacking.append([_short(figure.title), *figure[1:], "other" if present else "here"])
    columns = {"table": "", "row": "", "figure": "", "lacking": ""}
    absent = [Section("Figures that one checkout lacks", columns, lacking)] if lacking else []
    return [_summary(comparisons), *absent, *_tables(comparisons)]


def _figures(table: dict[str, Any], pattern: dict[str, Any]) -> Iterator[tuple[Figure, float, Cell]]:
    """The figures of a table, with their limits and cells; `known` is the table in the version that knows limits."""
    rows = Counter[str]()
    for row in table["rows"]:
        keys = pattern.get("keys", list(row)[:1])
        limits = pattern.get("limits", dict.fromkeys((name for name in row if name not in keys), inf))
        name = ", ".join(str(row.get(key)) for key in keys)
        rows[name] += 1
        name += f" ({rows[name]})" * (rows[name] > 1)
        for column, limit in limits.items():
            if row.get(column) is not None:
                yield Figure(table["title"], name, column), limit, row[column]


def compared(pairs: list[tuple[Cell, Cell]], limit: float) -> Comparison:
    """Compare a figure's cells of each turn, of the other checkout and of this one.

    Parameters
    ----------
    pairs : list of (cell, cell)
    limit : float
        Share by which the figure may be larger here; EXACT where it must be the same.
    """
    sizes = [(_number(other), _number(here)) for other, here in pairs]
    numbers = [(other, here) for other, here in sizes if other is not None and here is not None]
    if limit == EXACT or len(numbers) < len(pairs):
        first, second = (mode(side) for side in zip(*pairs, strict=True))
        return Comparison(first, second, None, None, None, "" if first == second else "differs")
    ratios = sorted(_ratio(here, other) for other, here in numbers)
    outside = _outside(len(ratios))
    ratio, least, most = median(ratios), ratios[outside], ratios[-1 - outside]
    verdict = ""
    if ratio > 1 + limit:
        verdict = "worse" if least > 1 and len(ratios) >= FEWEST else "unclear"
    elif ratio < 1 - limit and most < 1 and len(ratios) >= FEWEST:
        verdict = "better"
    other, here = (median(side) for side in zip(*numbers, strict=True))
    return Comparison(other, here, ratio, least, most, verdict)


def _number(cell: Cell) -> float | None:
    """A cell as a number; a size printed as text, as earlier versions do in JSON, as its bytes."""
    from dask.utils import parse_bytes

    if isinstance(cell, str):
        with suppress(ValueError):
            return float(parse_bytes(cell))
        return None
    return cell


def _ratio(here: float, other: float) -> float:
    if other:
        return here / other
    return inf if here else 1.0


def _outside(ratios: int) -> int:
    """How many of the smallest ratios, and of the largest, lie outside of the spread.

    The median of all ratios lies below the k-th smallest of n with the probability that fewer than k of n coins show
    heads, whatever their distribution.
    """
    outside, heads = 0, 1 + ratios
    while heads <= OUTSIDE * 2**ratios:
        outside += 1
        heads += comb(ratios, outside + 1)
    return outside


# tables


COLUMNS = {"other": ",.4g", "here": ",.4g", "here / other": ".3f", "least": ".3f", "most": ".3f", "verdict": ""}
VERDICTS = ("worse", "differs", "unclear", "better")


def _summary(comparisons: dict[Figure, Comparison]) -> Section:
    """The figures with a verdict, the worst kind first."""
    selection = [(figure, comparison) for figure, comparison in comparisons.items() if comparison.verdict]
    selection.sort(key=lambda pair: VERDICTS.index(pair[1].verdict))
    table = Section("Figures that differ", {"table": "", "row": "", "figure": "", **COLUMNS})
    table.rows = [[_short(figure.title), *figure[1:], *_cells(comparison)] for figure, comparison in selection]
    counts = Counter(comparison.verdict for comparison in comparisons.values())
    widths = [
        comparison.most - comparison.least
        for comparison in comparisons.values()
        if comparison.most is not None and comparison.least
    ]
    table.notes = [
        f"of {plural(len(comparisons), 'figure')} " + ", ".join(f"{counts[name]} {name}" for name in VERDICTS),
        "here / other: median of the ratios within turns; least, most: the median of many more turns lies between",
        f"them with a probability of at least 95 % from {FEWEST} turns on",
        f"worse: the ratio is above {1 + CPU:g} on the CPU or {1 + DEVICE:g} on a device, and the least above 1, of at "
        f"least {FEWEST} turns; better: the reverse",
        "unclear: the ratio alone is as bad, take more --runs; differs: a count or a choice that must not change",
    ]
    if any(widths):  # of one turn there is no spread
        table.notes.append(f"half of the spreads are at most {median(widths):.3f} wide")
    return table


def _tables(comparisons: dict[Figure, Comparison]) -> list[Section]:
    tables: dict[str, Section] = {}
    for figure, comparison in comparisons.items():
        table = tables.setdefault(figure.title, Section(figure.title, {"row": "", "figure": "", **COLUMNS}))
        table.rows.append([figure.row, figure.column, *_cells(comparison)])
    return list(tables.values())


def _short(title: str) -> str:
    """The beginning of a title, without the graph's size."""
    return re.split(r": | \(", title)[0]


def _cells(comparison: Comparison) -> list[Cell]:
    """The cells of COLUMNS; numbers that must not change with all digits."""
    if comparison.ratio is None:
        return [*(cell if isinstance(cell, str) else f"{cell:,}" for cell in comparison[:2]), *comparison[2:]]
    return list(comparison)
