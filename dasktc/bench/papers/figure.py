"""A reproduced figure: a table, a plot, and the paper's claims, each with a verdict of direction and of magnitude.

What is measured and what is concluded from it stand apart. A `Study` measures a `Figure`, a table; each of its claims
reads this table alone, so that tests can hand it a doctored one and see the verdict say no.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from dasktc.bench.papers.bench import NEEDS_GPU, Bench
from dasktc.bench.report import Section

__all__ = ["NOISE", "Claim", "Figure", "Finding", "Plot", "Published", "Study", "Verdict", "spread"]

Kind = Literal["lines", "bars", "stacked"]
Row = dict[str, Any]
TOLD = {True: "yes", False: "no", None: "cannot be told here"}
BY_DEFINITION = "by definition"
NOISE = 1.02
"""Times as fast as another that are none: the same count differs by as much from run to run."""


@dataclass(frozen=True)
class Published:
    """The range of numbers that a paper gives, and how far ours may lie from it."""

    least: float
    most: float
    """A single number is both."""
    factor: float = 2.0
    """Ours lie between `least / factor` and `most * factor`."""
    unit: str = ""
    """Behind the numbers, such as " %"."""

    def holds(self, numbers: list[float]) -> bool:
        """Whether all numbers lie within the band."""
        return all(self.least / self.factor <= number <= self.most * self.factor for number in numbers)

    def __str__(self) -> str:
        ends = f"{self.least:,g}" if self.least == self.most else f"{self.least:,g} to {self.most:,g}"
        return f"within {self.factor:g} times of {ends}{self.unit}"


@dataclass(frozen=True)
class Finding:
    """What a table says to a claim."""

    here: str
    """In words, with figures."""
    direction: bool | None = None
    """Whether it goes the paper's way; None where the table cannot tell, as `here` says."""
    numbers: list[float] = field(default_factory=list)
    """Ours, that are compared with those that are published."""
    exact: bool = False
    """Whether the figures are of what the paper measured, so that the figure's proxy does not stand for them."""


@dataclass(frozen=True)
class Verdict:
    """A paper's claim beside what was found."""

    paper: str
    here: str
    """What the paper says, and what was found."""
    direction: bool | None = None
    magnitude: bool | None = None
    """Whether it goes the paper's way, and whether it is as large within a stated factor; None where it cannot be told,
    or where the paper gives no number."""
    no: str = ""
    """What would make it a no."""
    proxy: str = ""
    """What was measured in place of what the paper measured; empty where it is the same."""
    definition: bool = False
    """Whether the direction follows from how things are defined, so that no measurement could say no."""
    name: str = ""
    """Of the claim."""

    @property
    def agrees(self) -> bool | None:
        """Whether direction and magnitude agree; None where the direction cannot be told, or by definition alone."""
        if self.definition:
            return self.magnitude
        return None if self.direction is None else self.direction and self.magnitude is not False

    @property
    def cells(self) -> tuple[str, str, str]:
        """Direction, magnitude, and whether by proxy, for a table."""
        if self.direction is None and not self.definition:
            return TOLD[None], "", ""
        magnitude = "" if self.magnitude is None else TOLD[self.magnitude]
        return BY_DEFINITION if self.definition else TOLD[self.direction], magnitude, "proxy" if self.proxy else ""

    @property
    def answer(self) -> str:
        """The answer in words."""
        direction, magnitude, proxy = self.cells
        text = f"direction {direction}, magnitude {magnitude}" if magnitude else direction
        return f"{text}, by proxy ({self.proxy})" if proxy else text

    def __str__(self) -> str:
        lines = [f"paper:  {self.paper}", f"here:   {self.here}"]
        lines += [f"no if:  {self.no}"] * bool(self.no)
        return "\n  ".join([*lines, f"agrees: {self.answer}"])

    def to_dict(self) -> dict[str, Any]:
        """Fields, ready for JSON."""
        return {
            "claim": self.name,
            "paper": self.paper,
            "here": self.here,
            "agrees": self.agrees,
            "direction": self.direction,
            "magnitude": self.magnitude,
            "no": self.no,
            "proxy": self.proxy,
            "definition": self.definition,
            "counted": bool(self.proxy),
        }


@dataclass(frozen=True)
class Plot:
    """Data and axes of a plot."""

    kind: Kind
    """Of the series over `x`: lines, bars next to each other, or bars on top of each other."""
    x: list[str]
    """Places on the horizontal axis."""
    series: dict[str, list[float | None]]
    """A number a place; None where there is none."""
    across: str
    up: str
    """What the axes are."""
    log: bool = False
    """Whether the vertical axis is logarithmic."""
    one: bool = False
    """Whether a line marks 1, that what others are compared with."""


@dataclass
class Figure(Section):
    """A reproduced figure or table of a paper."""

    name: str = ""
    """As the command line has it."""
    graphs: list[str] = field(default_factory=list)
    """What it was measured on."""
    proxy: str = ""
    """What stands here for what the paper measured, such as a model of steps for time; empty where it is the same."""
    why: dict[str, str] = field(default_factory=dict)
    """What explains a finding, by the name of the claim; verdicts do not depend on it."""
    verdicts: list[Verdict] = field(default_factory=list)
    plot: Plot | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether all claims agree; None where one cannot be told and none disagrees."""
        answers = [
            verdict.agrees for verdict in self.verdicts if not verdict.definition or verdict.magnitude is not None
        ]
        return False if False in answers else None if None in answers else True

    def records(self) -> list[Row]:
        """Rows as dicts by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        """The cells of a column that hold something."""
        return [row[name] for row in self.records() if row[name] is not None]

    def by(self, key: str, value: str) -> dict[str, Any]:
        """A column's cells that hold something, by the cells of another."""
        return {row[key]: row[value] for row in self.records() if row[value] is not None}

    def __str__(self) -> str:
        table = super().__str__() if self.rows else "\n  ".join([self.title, *self.notes])
        marked = [f"  proxy: {self.proxy}"] * bool(self.proxy)
        return "\n".join([f"{self.name}: {table}", *marked, *("  " + str(verdict) for verdict in self.verdicts)])

    def to_dict(self) -> dict[str, Any]:
        """Table and verdicts, ready for JSON."""
        statements = [verdict.to_dict() for verdict in self.verdicts]
        return {
            "figure": self.name,
            **super().to_dict(),
            "graphs": self.graphs,
            "proxy": self.proxy,
            "statements": statements,
        }


@dataclass(frozen=True)
class Claim:
    """What a paper says of a figure, and how a table decides it."""

    name: str
    """Tells the claims of a figure apart; two of one name are for the CPU and for a GPU."""
    paper: str
    """The paper's statement, with its figures."""
    find: Callable[[Figure], Finding]
    """Reads the figure's rows, and nothing else."""
    no: str = ""
    """What makes the direction a no."""
    published: Published | None = None
    """The paper's numbers; without, there is no verdict of magnitude."""
    on: Literal["both", "cpu", "cuda"] = "both"
    """Whose tables `find` reads. A claim for "cuda" alone cannot be told on the CPU."""
    definition: bool = False
    """Whether the direction follows from definitions, so that nothing could make it a no."""
    exact: bool = False
    """Whether it reads what the paper has, such as edges, on any backend: no proxy stands for that."""
    proxy: str = ""
    """What stands, on any backend, for a part of this claim, such as another system's method by our kernel."""

    def decide(self, figure: Figure) -> Verdict:
        """Compare a figure's table with the paper."""
        finding = self.find(figure)
        magnitude = self.published.holds(finding.numbers) if self.published and finding.numbers else None
        text = "; ".join(filter(None, [finding.here, figure.why.get(self.name)]))
        no = "; ".join(filter(None, [self.no, f"magnitude: not {self.published}" if self.published else ""]))
        shared = "" if self.exact or finding.exact else figure.proxy
        proxy = "; ".join(filter(None, [shared, self.proxy]))
        direction = self.definition or finding.direction
        return Verdict(self.paper, text, direction, magnitude, no, proxy, self.definition, self.name)

    def untold(self) -> Verdict:
        """What is said where only a GPU could tell."""
        return Verdict(self.paper, NEEDS_GPU, no=self.no, name=self.name)


@dataclass(frozen=True)
class Study:
    """A figure or table of a paper that can be measured again."""

    measure: Callable[[Bench], Figure]
    """Makes the table and the plot."""
    claims: tuple[Claim, ...]
    """What the paper says of it."""

    def examine(self, bench: Bench) -> Figure:
        """Measure, and compare with the paper."""
        figure = self.measure(bench)
        figure.verdicts = self.compare(figure, bench.backend)
        return figure

    def compare(self, figure: Figure, backend: str) -> list[Verdict]:
        """Decide each claim by a table that this backend measured."""
        names = dict.fromkeys(claim.name for claim in self.claims)
        claims = [self._claim(name, backend) for name in names]
        return [claim.decide(figure) if claim.on in ("both", backend) else claim.untold() for claim in claims]

    def _claim(self, name: str, backend: str) -> Claim:
        """The claim of a name that reads this backend's tables, else the one that reads the other's."""
        claims = [claim for claim in self.claims if claim.name == name]
        return next((claim for claim in claims if claim.on in ("both", backend)), claims[0])


def spread(values: list[float], form: str = ".2f") -> str:
    """Format the range of some numbers, least to most."""
    if not values:
        return "none"
    least, largest = format(min(values), form), format(max(values), form)
    return least if least == largest else f"{least} to {largest}"
