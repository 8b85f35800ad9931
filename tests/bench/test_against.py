"""`dasktc bench SUITE --against CHECKOUT`, with folders in place of checkouts whose suites print what a test wants."""

from __future__ import annotations

import json
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any

import pytest

from dasktc.bench.against import FEWEST, _outside, against, compare, compared
from dasktc.bench.report import CPU, DEVICE, EXACT, SIZE, TURNS, Report, Section
from dasktc.cli.main import main
from dasktc.errors import DasktcError, InputError

MAIN = """
import json, os, sys
from pathlib import Path

here = Path(__file__).parent
with open(here.parents[1] / "calls", "a") as calls:
    print(json.dumps([here.parent.name, sys.argv[1:], os.getcwd()]), file=calls)
turn = sum(line.startswith(f'["{here.parent.name}"') for line in open(here.parents[1] / "calls")) - 1
print("measuring", file=sys.stderr)
"""


@pytest.fixture
def checkouts(tmp_path, monkeypatch):
    """Make two folders that stand for the other checkout and this one; return a function that sets what they run."""

    def make(other: str, here: str) -> str:
        for name, body in (("other", other), ("here", here)):
            package = tmp_path / name / "dasktc"
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
            (package / "__main__.py").write_text(MAIN + body)
        return str(tmp_path / "other")

    monkeypatch.setattr("dasktc.bench.against.HERE", tmp_path / "here")
    return make


def printing(*sections: Section) -> str:
    """Program of a suite that prints these tables; a cell that is a list has an entry for each call."""
    report = Report("dasktc bench cpu", {"machine": "a machine", "GPUs": "none"}, list(sections)).to_dict()
    return f"""
report = json.loads({json.dumps(report)!r})
for section in report["sections"]:
    for row in section["rows"]:
        row.update({{name: cell[turn] for name, cell in row.items() if isinstance(cell, list)}})
print(json.dumps(report))
"""


def table(seconds: Any, tasks: Any = 4, **more: Any) -> Section:
    columns = {"stage": "", "CPU s": ".3f", "tasks": "d", "ratio": ".2f"}
    return Section("stages", columns, [["read", seconds, tasks, 0.5]], limits={"CPU s": CPU, "tasks": EXACT}, **more)


def calls(checkout: str) -> list[list[Any]]:
    return [json.loads(line) for line in (Path(checkout).parent / "calls").read_text().splitlines()]


def rows(sections: list[Section], title: str) -> list[dict[str, Any]]:
    return [row for section in sections if section.title == title for row in section.to_dict()["rows"]]


# the processes


def test_checkouts_swap_places_from_turn_to_turn(checkouts):
    other = checkouts(*[printing(table(1.0))] * 2)
    against(other, ["cpu", "--quick"], 3)
    made = [name for name, _, _ in calls(other)]
    assert made == ["other", "here", "here", "other", "other", "here", "here", "other"]
    assert all(a == b for a, b in list(pairwise(made))[1::2]), "whoever came second comes first then"


def test_a_turn_runs_the_suite_once_from_each_checkout_in_the_current_folder(checkouts, tmp_path, monkeypatch):
    other = checkouts(*[printing(table(1.0))] * 2)
    (folder := tmp_path / "elsewhere" / "dasktc").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('the current folder is not the checkout')")
    monkeypatch.chdir(folder.parent)
    against(other, ["cpu", "--graphs", "a folder"], 1)
    for name, words, folder in calls(other):
        assert name in ("other", "here")
        assert words == ["bench", "cpu", "--graphs", "a folder", "--runs", "1", "--json"]
        assert folder == str(tmp_path / "elsewhere")


def test_the_warm_up_is_left_out(checkouts):
    other = checkouts(printing(table([1.0] * 7)), printing(table([9.0, *[1.0] * 6])))
    (row, _) = rows(against(other, ["cpu"], 6).sections, "stages")
    assert (row["here"], row["here / other"], row["most"]) == (1.0, 1.0, 1.0)


def test_the_report_says_what_was_compared_and_where(checkouts, tmp_path):
    other, said = checkouts(*[printing(table(1.0))] * 2), list[Any]()
    report = against(other, ["cpu"], 1, said.append)
    assert report.command == f"dasktc bench cpu --against {other} --runs 1"
    assert (report.facts["other"], report.facts["here"]) == (other, str(tmp_path / "here"))
    assert report.facts["machine"] == "a machine"
    assert said == ["warm-up, other", "  measuring", "warm-up, here", "  measuring", "turn 1 of 1, here",
                    "  measuring", "turn 1 of 1, other", "  measuring"]  # fmt: skip
    assert json.loads(json.dumps(report.to_dict()))["sections"]


def test_a_folder_without_the_package_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"is no checkout of dasktc: .*; give the folder that contains dasktc/"):
            against(str(folder), ["cpu"], 1)


def test_a_package_from_elsewhere_is_not_the_folder_s(checkouts, monkeypatch):
    """A folder around a checkout that Python finds anyway."""
    other = checkouts("", "")
    monkeypatch.setenv("PYTHONPATH", other)
    with pytest.raises(InputError, match="is no checkout of dasktc"):
        against(str(Path(other).parent), ["cpu"], 1)


def test_no_turns_are_refused(tmp_path):
    with pytest.raises(InputError, match="--runs 0 is below 1"):
        against(str(tmp_path), ["cpu"], 0)


@pytest.mark.parametrize(("status", "kind"), [(2, InputError), (1, DasktcError), (3, DasktcError)])
def test_a_suite_that_fails_in_one_checkout_is_cited(checkouts, status, kind):
    body = f"print('dasktc: error: no such option: --memory', file=sys.stderr); sys.exit({status})"
    other = checkouts(body, printing(table(1.0)))
    message = r"`dasktc bench ooc --memory 1GB --runs 1 --json` of \S+other failed \(no such option: --memory\)"
    with pytest.raises(kind, match=message) as caught:
        against(other, ["ooc", "--memory", "1GB"], 1)
    assert type(caught.value) is kind
    assert f"PYTHONPATH={other}" in str(caught.value)
    assert len(calls(other)) == 1, "the other checkout comes first, so that nothing is measured before"


@pytest.mark.parametrize("printed", ["a table", "[1]", "{}", ""])
def test_a_suite_without_tables_in_json_is_refused(checkouts, printed):
    other = checkouts(f"print({printed!r})", printing(table(1.0)))
    with pytest.raises(InputError, match="prints no tables in JSON: that version is too old; give a later checkout"):
        against(other, ["cpu"], 1)


# one figure


def turns(*ratios: float) -> list[tuple[Any, Any]]:
    return [(2.0, 2.0 * ratio) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "limit", "verdict"),
    [
        ([1.06] * 7, CPU, "worse"),
        ([1.06, 1.01, 1.2, 1.07, 1.3, 1.06, 1.05], CPU, "worse"),
        ([1.06, 0.99, 1.2, 1.07, 1.3, 1.06, 1.05], CPU, "unclear"),
        ([1.04] * 7, CPU, ""),
        ([1.04] * 7, DEVICE, "worse"),
        ([1.02] * 7, DEVICE, ""),
        ([1.06] * FEWEST, CPU, "worse"),
        ([1.06] * (FEWEST - 1), CPU, "unclear"),
        ([0.9] * 7, CPU, "better"),
        ([0.9] * 6 + [1.1], CPU, ""),
        ([0.9] * (FEWEST - 1), CPU, ""),
        ([0.96] * 7, CPU, ""),
        ([1.06] * 14 + [0.9], CPU, "worse"),  # a single turn that went another way is outside of the spread
    ],
)
def test_a_figure_is_worse_above_its_limit_if_its_spread_is_above_one(ratios, limit, verdict):
    assert compared(turns(*ratios), limit).verdict == verdict


def test_ratios_are_taken_within_turns():
    """A machine that becomes three times as slow changes the medians, but no ratio."""
    found = compared([(1.0, 1.1), (2.0, 2.2), (3.0, 3.3)], CPU)
    assert (found.other, found.here) == (2.0, 2.2)
    assert (found.least, found.ratio, found.most) == pytest.approx((1.1, 1.1, 1.1))


def test_a_steady_drift_makes_nothing_worse():
    """The second run of every turn takes 10 % longer: with places swapped the spread spans 1, otherwise it does not."""
    swapped = [(1.0, 1.1) if turn % 2 else (1.1, 1.0) for turn in range(7)]
    assert compared(swapped, CPU).verdict != "worse"
    assert compared([(1.0, 1.1)] * 7, CPU).verdict == "worse"


@pytest.mark.parametrize("number", range(1, 40))
def test_the_spread_holds_the_median_with_95_percent(number):
    def below(outside: int) -> float:
        """Probability that at most so many of the ratios lie below the median of all."""
        return sum(comb(number, k) for k in range(outside + 1)) / 2**number

    outside = _outside(number)
    assert below(outside) <= 0.025 or outside == 0
    assert below(outside + 1) > 0.025
    assert (number < FEWEST) == (below(0) > 0.025)


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(58, 58)] * 3, ""),
        ([(58, 59)] * 3, "differs"),
        ([(58, 57)] * 3, "differs"),
        ([(58, 58), (58, 60), (57, 58)], ""),  # the usual number is the same
        ([("hub", "hub")] * 3, ""),
        ([("hub", "short")] * 3, "differs"),
    ],
)
def test_counts_and_choices_must_not_change(pairs, verdict):
    found = compared(pairs, EXACT)
    assert (found.verdict, found.ratio) == (verdict, None)


def test_nothing_over_nothing_is_no_change_and_something_is():
    assert compared([(0.0, 0.0)] * 7, CPU).ratio == 1.0
    assert compared([(0, 5)] * 7, CPU).verdict == "worse"


def test_a_size_in_words_is_compared_with_bytes():
    """Earlier versions print sizes as text, in JSON too."""
    found = compared([("16.4 GB", 16_400_000_000)] * 7, DEVICE)
    assert (found.ratio, found.verdict) == (pytest.approx(1.0), "")
    assert compared([("16.4 GB", 18_000_000_000)] * 7, DEVICE).verdict == "worse"
    assert compared([("plenty", 18_000_000_000)] * 7, DEVICE).verdict == "differs"


# whole reports


def report(*sections: Section) -> dict[str, Any]:
    return Report("", {}, list(sections)).to_dict()


def test_only_columns_with_a_limit_are_compared():
    sections = compare([(report(table(1.0)), report(table(2.0, 5)))] * 7)
    assert [(row["figure"], row["verdict"]) for row in rows(sections, "stages")] == [
        ("CPU s", "worse"), ("tasks", "differs"),
    ]  # fmt: skip
    (summary, _) = sections
    assert [(row[0], row[2], row[-1]) for row in summary.rows] == [
        ("stages", "CPU s", "worse"), ("stages", "tasks", "differs"),
    ]  # fmt: skip
    assert summary.notes[0] == "of 2 figures 1 worse, 1 differs, 0 unclear, 0 better"


def test_figures_that_one_side_lacks_are_named():
    """New rows, new columns and new tables; in an earlier version nothing says which columns are compared."""
    here = report(
        Section("gone: now", {"graph": "", "ms": ".1f"}, [["a", 1.0]], limits={"ms": DEVICE}),
        Section("same", {"graph": "", "ms": ".1f", "new": "d"}, [["a", 1.0, 7], ["b", 2.0, None]],
                limits={"ms": DEVICE, "new": EXACT}),
    )  # fmt: skip
    earlier = {"sections": [
        {"title": "gone", "rows": [{"graph": "a", "ms": 1.0, "why": None}], "notes": []},
        {"title": "same", "rows": [{"graph": "a", "ms": 1.0}, {"graph": "c", "ms": 3.0}], "notes": []},
    ]}  # fmt: skip
    sections = compare([(earlier, here)] * 7)
    assert rows(sections, "Figures that one checkout lacks") == [
        {"table": "gone", "row": "a", "figure": "ms", "lacking": "other"},
        {"table": "same", "row": "a", "figure": "new", "lacking": "other"},
        {"table": "same", "row": "b", "figure": "ms", "lacking": "other"},
        {"table": "gone", "row": "a", "figure": "ms", "lacking": "here"},
        {"table": "same", "row": "c", "figure": "ms", "lacking": "here"},
    ]
    assert [(row["row"], row["figure"]) for row in rows(sections, "same")] == [("a", "ms")]


def test_rows_are_told_apart_by_their_keys():
    def clusters(*seconds: float) -> Section:
        places = [("g", "1"), ("g", "2"), ("h", "1"), ("h", "1")]
        cells = [[*place, time] for place, time in zip(places, seconds, strict=True)]
        return Section("clusters", {"graph": "", "workers": "", "ms": ".1f"}, cells, limits={"ms": CPU}, keys=2)

    sections = compare([(report(clusters(1, 2, 3, 4)), report(clusters(2, 2, 3, 8)))] * 7)
    found = {row["row"]: row["here / other"] for row in rows(sections, "clusters")}
    assert found == {"g, 1": 2, "g, 2": 1, "h, 1": 1, "h, 1 (2)": 2}


def test_a_column_that_is_compared_exists():
    with pytest.raises(AssertionError):
        Section("T", {"graph": "", "ms": ""}, limits={"s": CPU})


def test_a_size_is_printed_in_words_and_kept_as_a_number():
    sizes = Section("T", {"graph": "", "peak": SIZE}, [["a", 16_400_000_000]])
    assert "16.4 GB" in str(sizes)
    assert sizes.to_dict()["rows"] == [{"graph": "a", "peak": 16_400_000_000}]


# the command line


@pytest.mark.parametrize(
    ("command", "words", "number"),
    [
        (["cpu"], ["cpu"], TURNS),
        (["cpu", "--quick", "--scale=12", "--runs", "3", "--json"], ["cpu", "--scale", "12", "--quick"], 3),
        (["ooc", "--memory", "1GB", "--memory", "2GB"], ["ooc", "--memory", "1GB", "--memory", "2GB"], TURNS),
        (["gpu", "--only", "RA", "--profile", "x.html", "--workers", "1,2"],
         ["gpu", "--only", "RA", "--workers", "1,2"], TURNS),
        (["scaling", "--plot", "x.svg", "--kernel", "hub", "--memory", "1GB"],
         ["scaling", "--kernel", "hub", "--memory", "1GB"], TURNS),
        (["questions", "--backend", "cpu"], ["questions", "--backend", "cpu"], TURNS),
        (["choose", "--runs", "2"], ["choose"], 2),
    ],
)  # fmt: skip
def test_a_command_line_becomes_the_words_of_its_turns(monkeypatch, capsys, command, words, number):
    """Without what is printed or written: every turn would write it again."""
    asked = []

    def record(checkout: str, line: list[str], turns: int, say: Any) -> Report:
        asked.append((checkout, line, turns))
        return Report("", {})

    monkeypatch.setattr("dasktc.bench.against.against", record)
    assert main(["bench", *command, "--against", "DIR"]) == 0
    (checkout, line, turns) = asked[0]
    assert (checkout, sorted(line), turns) == ("DIR", sorted(words), number)
    capsys.readouterr()


def test_the_comparison_is_printed(checkouts, capsys):
    other = checkouts(printing(table(1.0)), printing(table(1.5)))
    assert main(["bench", "cpu", "--against", other, "--runs", "6"]) == 0
    printed, said = capsys.readouterr()
    assert "stages  read  CPU s       1   1.5         1.500  1.500  1.500  worse" in printed
    assert "of 2 figures 1 worse" in printed
    assert "turn 6 of 6, other" in said


def test_no_checkout_is_an_error_of_one_line(tmp_path, capsys):
    assert main(["bench", "cpu", "--against", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
