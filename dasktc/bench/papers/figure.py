"""A reproduced figure: a table, a plot, and the paper's statements beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from dasktc.bench.report import Section

__all__ = ["Figure", "Plot", "Statement", "spread"]

Kind = Literal["lines", "bars", "stacked"]


@dataclass(frozen=True)
class Statement:
    """A statement that a paper's figure makes, and whether the measurement agrees.

    Attributes
    ----------
    paper, here : str
        What the paper says, and what was found.
    agrees : bool or None
        Computed from what was found; None where it cannot be told without a GPU, or without something that
        `here` names.
    counted : bool
        Whether the paper's figure is time, and what was found a count that says the same.
    """

    paper: str
    here: str
    agrees: bool | None = None
    counted: bool = False

    @property
    def answer(self) -> str:
        """The answer in words: yes, no, or not decidable."""
        told = {True: "yes", False: "no", None: "cannot be told here"}[self.agrees]
        return f"{told}, by a count" if self.counted and self.agrees is not None else told

    def __str__(self) -> str:
        return f"paper:  {self.paper}\n  here:   {self.here}\n  agrees: {self.answer}"

    def to_dict(self) -> dict[str, Any]:
        """Fields, ready for JSON."""
        return {"paper": self.paper, "here": self.here, "agrees": self.agrees, "counted": self.counted}


@dataclass(frozen=True)
class Plot:
    """Data and axes of a plot.

    Attributes
    ----------
    kind : {"lines", "bars", "stacked"}
        Of the series over `x`: lines, bars next to each other, or bars on top of each other.
    x : list of str
        Places on the horizontal axis.
    series : dict of str to list
        A number a place; None where there is none.
    across, up : str
        What the axes are.
    log : bool
        Whether the vertical axis is logarithmic.
    one : bool
        Whether a line marks 1, that what others are compared with.
    """

    kind: Kind
    x: list[str]
    series: dict[str, list[float | None]]
    across: str
    up: str
    log: bool = False
    one: bool = False


@dataclass
class Figure(Section):
    """A reproduced figure or table of a paper.

    Attributes
    ----------
    name : str
        As the command line has it.
    graphs : list of str
        What it was measured on.
    statements : list of Statement
    plot : Plot or None
    """

    name: str = ""
    graphs: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    plot: Plot | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether all statements agree; None where one cannot be told and none disagrees."""
        answers = [statement.agrees for statement in self.statements]
        return False if False in answers else None if None in answers else True

    def __str__(self) -> str:
        table = super().__str__() if self.rows else "\n  ".join([self.title, *self.notes])
        return "\n".join([f"{self.name}: {table}", *("  " + str(statement) for statement in self.statements)])

    def to_dict(self) -> dict[str, Any]:
        """Table and statements, ready for JSON."""
        said = [statement.to_dict() for statement in self.statements]
        return {"figure": self.name, **super().to_dict(), "graphs": self.graphs, "statements": said}


def spread(values: list[float], form: str = ".2f") -> str:
    """Format the range of some numbers, least to most."""
    least, most = format(min(values), form), format(max(values), form)
    return least if least == most else f"{least} to {most}"
