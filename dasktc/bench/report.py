"""Benchmark reports: facts about the machine and tables of numbers, printed as text or as JSON."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from dasktc.errors import InputError, shown
from dasktc.options import format_size

__all__ = [
    "CPU",
    "DEVICE",
    "EXACT",
    "SIZE",
    "TURNS",
    "Cell",
    "Report",
    "Say",
    "Section",
    "check_folder",
    "check_runs",
    "command",
    "device",
    "limit",
    "load",
    "machine",
    "quiet",
    "select",
    "surroundings",
    "versions",
]

T = TypeVar("T")
Cell = str | int | float | None
SIZE = "size"
"""Format of a column of bytes, printed as in 1.5 GB."""
CPU, DEVICE, EXACT = 0.05, 0.03, 0.0
"""Share by which another version's figures may be larger: on the CPU, on a device, and of what must not change."""
PACKAGES = (
    "dasktc",
    "numpy",
    "numba",
    "pandas",
    "pyarrow",
    "dask",
    "distributed",
    "igraph",
    "networkit",
    "python-graphblas",
)
TURNS = 7
"""Turns of `--against` where `--runs` is not given."""


@dataclass
class Section:
    """A table of a report."""

    title: str
    columns: dict[str, str]
    """Format specification by column, or SIZE; "" for text."""
    rows: list[list[Cell]] = field(default_factory=list)
    """One cell per column; None where there is nothing to show."""
    notes: list[str] = field(default_factory=list)
    """Lines below the table: what was left out and why, and how to read it."""
    limits: dict[str, float] = field(default_factory=dict)
    """The columns that `--against` compares, each with the share by which its figures may be larger: CPU, DEVICE or
    EXACT."""
    keys: int = 1
    """Number of the first columns that tell a row from the others."""

    def __post_init__(self) -> None:
        assert self.limits.keys() <= self.columns.keys()

    def texts(self) -> list[list[str]]:
        """Rows as text, each cell formatted by its column."""
        return [[_text(c, spec) for c, spec in zip(row, self.columns.values(), strict=True)] for row in self.rows]

    def __str__(self) -> str:
        texts = [list(self.columns), *self.texts()]
        widths = [max(len(row[i]) for row in texts) for i in range(len(self.columns))]
        sides = [">" if spec else "<" for spec in self.columns.values()]
        lines = ["  ".join(f"{t:{sides[i]}{widths[i]}}" for i, t in enumerate(row)) for row in texts]
        return "\n".join([self.title, *("  " + line.rstrip() for line in lines), *("  " + n for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Title, rows as dicts, notes, and what tells how the rows of two versions are compared."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        keys = list(self.columns)[: self.keys]
        return {"title": self.title, "rows": rows, "notes": self.notes, "keys": keys, "limits": self.limits}


Say = Callable[[str | Section], None]
"""Called with a description of what is being measured, and with each table when it is done."""


@dataclass
class Report:
    """All tables of a benchmark."""

    command: str
    """Command that repeats the benchmark."""
    facts: dict[str, str]
    """The machine, and versions."""
    sections: list[Section] = field(default_factory=list)

    def __str__(self) -> str:
        head = [f"{name:<10}{text}" for name, text in {"command": self.command, **self.facts}.items()]
        return "\n\n".join(["\n".join(head), *(str(section) for section in self.sections)])

    def to_dict(self) -> dict[str, Any]:
        """The whole report, ready for JSON."""
        return {
            "command": self.command,
            **self.facts,
            "sections": [section.to_dict() for section in self.sections],
        }


def _text(cell: Cell, spec: str) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return format_size(cell) if spec == SIZE else format(cell, spec)


def quiet(what: str | Section) -> None:
    """Say nothing: a `Say` that ignores what it is given."""


def command(suite: str, *words: str, **options: Any) -> str:
    """Return the command that repeats a benchmark, without options that are None or False.

    Parameters
    ----------
    suite : str
    *words : str
        Arguments behind the options.
    **options : None, bool, number, str or tuple of these
        By name, with underscores; a tuple is an option that is repeated.
    """
    line = ["dasktc", "bench", suite]
    for name, values in options.items():
        for value in values if isinstance(values, tuple) else (values,):
            if value is not None and value is not False:
                line += [f"--{name.replace('_', '-')}"] + [str(value)] * (value is not True)
    return shlex.join([*line, *words])


def check_folder(option: str, path: str | None) -> None:
    """Refuse a path that is given and is no folder (InputError)."""
    if path is not None and not Path(path).is_dir():
        raise InputError(f"--{option} {path} is no folder: no file can stand there; give one, or leave it out")


def check_runs(runs: int) -> None:
    """Refuse a number of runs below 1 (InputError)."""
    if runs < 1:
        raise InputError(f"--runs {runs} is below 1: there would be nothing to show; give 1 or more")


def select(graphs: Mapping[str, T], only: Sequence[str]) -> dict[str, T]:
    """Return the graphs of these names, in upper or lower case, in the order of `graphs`.

    Raises
    ------
    InputError
        No graph has one of the names.
    """
    names = {name.casefold() for name in graphs}
    if unknown := [name for name in only if name.casefold() not in names]:
        raise InputError(f"--only {shown(unknown[0])} is no graph's name; the graphs are: {'; '.join(graphs)}")
    wanted_names = {name.casefold() for name in only}
    return {name: graph for name, graph in graphs.items() if name.casefold() in wanted_names}


def limit(backend: str) -> float:
    """Share by which another version's times on a backend may be longer."""
    return CPU if backend == "cpu" else DEVICE


def surroundings(**more: str) -> dict[str, str]:
    """Facts about the machine on which a report is made: processor, what `more` names, load, versions."""
    return {"machine": machine(), **more, "load": load(), "versions": versions()}


def device(backend: str) -> str:
    """Name of the device on which a backend counts."""
    if backend == "cpu":
        return f"{_processor()}, one thread"
    from dasktc.backends import get_backend

    xp = get_backend(backend).array
    return str(xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"].decode())


def load() -> str:
    """Load average of the machine, for the report."""
    import psutil

    return ", ".join(f"{average:.1f}" for average in psutil.getloadavg()) + " over the last 1, 5, 15 minutes"


def machine() -> str:
    """Name of the processor, numbers of cores, memory and system."""
    import psutil

    memory = psutil.virtual_memory().total
    return f"{_processor()}, {psutil.cpu_count()} cores, {memory / 2**30:.0f} GiB, {platform.platform()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def versions() -> str:
    """Versions of Python and of the packages involved."""
    installed = [f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(installed)
