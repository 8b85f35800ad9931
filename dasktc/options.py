"""The options of a count, checked in one place: names that exist, numbers that make sense, values of the right type."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import Any

from dasktc.errors import InputError, shown
from dasktc.io.source import Ids

__all__ = [
    "ASSIGNMENTS",
    "BACKENDS",
    "PARTITIONS",
    "REORDERS",
    "Options",
    "bytes_of",
    "check_keywords",
    "read_ids",
    "real_number",
    "whole_number",
]

BACKENDS = ("auto", "cpu", "cuda")
PARTITIONS = ("auto", "whole", "edges", "hash2d", "proxy", "vertical")
ASSIGNMENTS = ("random", "contiguous", "metis")
REORDERS = ("auto", "degree", "collective", "indegree", "none")
MOST_BYTES = 2**63 - 1
"""What 64-bit sizes and addresses reach."""
MOST_NAME, MOST_PATH = 255, 4096
"""Bytes of the name of a file, and of a path with its end, on Linux."""


@dataclass(frozen=True)
class Options:
    """How to count. Attributes are the command line's options; None means: choose.

    Attributes
    ----------
    backend : {"auto", "cpu", "cuda"}
    kernel : str
        "auto", or the name of any backend's kernel (`dasktc.backends.kernel_names`).
    partition : {"auto", "whole", "edges", "hash2d", "proxy", "vertical"}
    parts, splits : int or None
        n (accepted without effect by `whole` and `edges`) and m.
    reorder : {"auto", "degree", "collective", "indegree", "none"}
    memory : int, str or None
        Bytes that the data may take in one process, shared by its threads, e.g. "4GB".
    assign : {"random", "contiguous", "metis"}
        How `proxy` deals vertices out to its parts.
    seed : int
        Of the random parts.
    """

    backend: str = "auto"
    kernel: str = "auto"
    partition: str = "auto"
    parts: int | None = None
    splits: int | None = None
    reorder: str = "auto"
    memory: int | str | None = None
    assign: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse names that do not exist and numbers below one."""
        _one_of("backend", self.backend, BACKENDS)
        if not (isinstance(self.kernel, str) and self.kernel == "auto"):
            _one_of("kernel", self.kernel, ("auto", *_kernel_names()))
        _one_of("partition", self.partition, PARTITIONS)
        _one_of("reorder", self.reorder, REORDERS)
        _one_of("assign", self.assign, ASSIGNMENTS)
        for name in ("parts", "splits"):
            value = getattr(self, name)
            if value is not None:
                number = whole_number(name, value, 1, few="a count has at least one part")
                object.__setattr__(self, name, number)
        object.__setattr__(self, "seed", whole_number("seed", self.seed, None))
        bytes_of(self.memory)

    @property
    def chosen_backend(self) -> str:
        """The backend that counts; of "auto" the one that needs nothing, until the workers were asked."""
        return "cpu" if self.backend == "auto" else self.backend

    @property
    def chosen_kernel(self) -> str:
        """The kernel that counts."""
        return "hub" if self.kernel == "auto" else self.kernel

    @property
    def chosen_reorder(self) -> str:
        """`degree` lets a kernel cut rows at v; `collective` is TRUST's own."""
        if self.reorder != "auto":
            return self.reorder
        return "collective" if self.chosen_kernel == "trust" else "degree"


def read_ids(value: str) -> Ids | None:
    """The `--ids` option as readers take it."""
    _one_of("ids", value, ("auto", "int", "text"))
    return None if value == "auto" else value  # type: ignore[return-value]


def bytes_of(value: int | str | None, name: str = "memory") -> int | None:
    """Bytes of a number or of a text such as "4GB".

    Raises
    ------
    InputError
        It is not a size, or below one byte, or more than 64 bits tell.
    """
    if value is None:
        return None
    from dask.utils import parse_bytes

    number = isinstance(value, Real) and not isinstance(value, bool)
    text = isinstance(value, str) and any(map(str.isdecimal, value))  # Dask takes "" for one byte, and "GB" for 10^9
    try:
        if not (number or text):
            raise ValueError
        size = int(parse_bytes(value) if text else value)
    except ValueError:
        raise InputError(f"--{name} {shown(value)} is not a size in bytes: try 4000000000, 4GB or 4GiB") from None
    except OverflowError:
        size = MOST_BYTES + 1
    if size < 1:
        raise InputError(f"--{name} {shown(value)} is below one byte: nothing would fit; give what one worker may use")
    if size > MOST_BYTES:
        raise InputError(
            f"--{name} {shown(value)} is more than 2^63 bytes: no machine has as many; give what one worker may use"
        )
    return size


def whole_number(
    name: str, value: Any, least: int | None, most: int | None = None, few: str = "", many: str = ""
) -> int:
    """Check an integer, of Python or of another library.

    Parameters
    ----------
    name : str
        Of the option.
    value : object
    least, most : int or None
        Bounds.
    few, many : str
        Why there are these.

    Raises
    ------
    InputError
    """
    give = f"give {least:,} or more" if least is not None and most is None else "give one"
    give = f"give {least:,} to {most:,}" if least is not None and most is not None else give
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"--{name} {shown(value)} is not a whole number: {give}") from None
    if least is not None and number < least:
        raise InputError(f"--{name} {shown(number)} is below {least:,}: {few or 'out of range'}; {give}")
    if most is not None and number > most:
        raise InputError(f"--{name} {shown(number)} is more than {most:,}: {many or 'out of range'}; {give}")
    return number


def real_number(
    name: str, value: Any, least: float, most: float = inf, above: bool = False, what: str = "number"
) -> float:
    """Check a finite number from `least` (with `above`: above it) to `most`, of what the option is a number.

    Raises
    ------
    InputError
    """
    span = f"from {least:g} to {most:g}" if isfinite(most) else f"above {least:g}" if above else f"from {least:g} on"
    try:
        if isinstance(value, bool | str | bytes | bytearray):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"--{name} {shown(value)} is no {what} {span}: give one") from None
    if not (isfinite(number) and least <= number <= most) or (above and number == least):
        raise InputError(f"--{name} {shown(value)} is no {what} {span}: give one")
    return number


def check_keywords(**given: Any) -> None:
    """Refuse values of a wrong type, before anything is done; None passes: it means that the option is not given.

    Parameters
    ----------
    **given
        Values by keyword of `triangle_count`; those of `Options` and of `connect` are checked there.

    Raises
    ------
    InputError
    """
    for name, value in given.items():
        if value is not None:
            _KEYWORDS[name](name.replace("_", "-"), value)


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise InputError(f"--{name} {shown(value)} is no name: give a text, or leave it out")


def _path(name: str, value: Any) -> None:
    try:
        if not isinstance(value, str | os.PathLike) or not isinstance(text := os.fspath(value), str):
            raise ValueError
        encoded = os.fsencode(text)
    except ValueError:  # of encoding too
        raise InputError(f"--{name} {shown(value)} is no path: give the name of a file or a folder") from None
    if b"\0" in encoded or len(encoded) >= MOST_PATH or max(map(len, encoded.split(b"/"))) > MOST_NAME:
        raise InputError(
            f"--{name} {shown(value)} is no path: a name has {MOST_NAME} bytes at most, a path {MOST_PATH - 1}, and "
            "none is 0; give another"
        )


def _columns(name: str, value: Any) -> None:
    labels = value.split(",") if isinstance(value, str) else value
    if not isinstance(labels, Sequence) or isinstance(labels, bytes | bytearray) or len(labels) != 2:
        number = f"names {len(labels)} columns" if isinstance(labels, Sequence) else "is no list of columns"
        raise InputError(
            f"--{name} {shown(value)} {number}: an edge has two ends; give two names or positions, as in --columns a,b"
        )


def _callable(name: str, value: Any) -> None:
    if not callable(value):
        raise InputError(f"{name} {shown(value)} cannot be called: pass a function of stage, done and total")


_KEYWORDS: dict[str, Callable[[str, Any], object]] = {
    "checkpoint": _path,
    "columns": _columns,
    "format": _text,
    "host_memory": lambda name, value: bytes_of(value, name),
    "limit": lambda name, value: whole_number(name, value, 0, few="so many triangles are listed at most"),
    "per_edge": _path,
    "per_vertex": _path,
    "progress": _callable,
    "report": _path,
    "scheduler": _text,
    "scheduler_file": _path,
    "seed": lambda name, value: whole_number(name, value, None),
    "skip": lambda name, value: whole_number(name, value, 0, few="it is a number of leading lines"),
    "verify": lambda name, value: real_number(name, value, 0, 1),
    "work_dir": _path,
}


def _kernel_names() -> tuple[str, ...]:
    from dasktc.backends import kernel_names

    return kernel_names()


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"--{name} {shown(value)} does not exist: choose one of {', '.join(choices)}")
