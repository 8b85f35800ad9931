"""Options of a count as frozen dataclasses, with checks of single values: types, ranges, paths and sizes.

Names of kernels, schemes, orders and assignments are checked against the registries, which import no compiler for this.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import Any, Literal

from dasktc.errors import InputError, shown
from dasktc.registry import (
    ASSIGNMENTS,
    KERNELS,
    ORDERS,
    SCHEMES,
    check_choice,
    check_kernel,
    kernel_of,
    unsorted_kernels,
)
from dasktc.wording import advice, option, plural

__all__ = [
    "BACKENDS",
    "DISTRIBUTE",
    "DUPLICATES",
    "PROTOCOLS",
    "PROXIES",
    "RETRIES",
    "WORKER_SECONDS",
    "AttributeOptions",
    "CountOptions",
    "Ids",
    "Options",
    "RunOptions",
    "bytes_of",
    "check_keywords",
    "format_size",
    "path_text",
    "read_ids",
    "real_number",
    "weight_name",
    "whole_number",
]

Ids = Literal["int", "text"]
"""The type of a source's vertex ids."""
BACKENDS = ("auto", "cpu", "cuda")
PROTOCOLS = ("auto", "tcp", "ucx")
RETRIES = 10
"""Times that a task is submitted again whose worker died more often than Dask tolerates."""
WORKER_SECONDS = 60
"""Seconds without any worker after which a run gives up."""
PROXIES = ("lstc", "tight", "none")
"""Which edges between local vertices and their neighbours the parts of scheme `proxy` keep."""
DUPLICATES = ("sum", "last")
"""Weight of an edge if several rows give it: their sum, or the last."""
DISTRIBUTE = ("auto", "always", "never")
"""Whether a cluster counts by tasks on all workers, or by one call on one worker."""
MOST_BYTES = 2**63 - 1
"""The largest 64-bit size."""
MOST_THREADS = 1 << 12
MOST_NAME, MOST_PATH = 255, 4096
"""Limits on Linux: bytes of a file name, and of a path with its terminating null byte."""


@dataclass(frozen=True)
class Options:
    """How a graph is partitioned, ordered and counted: the inputs of a plan. None and "auto" mean: choose.

    Attributes
    ----------
    backend : {"auto", "cpu", "cuda"}
    kernel, partition, reorder : str
        "auto", or a name of the registries (`dasktc.registry`): any backend's kernel, a scheme, an order.
    parts, splits : int or None
        n (without effect for schemes of one block) and m.
    memory : int, str or None
        Bytes that the data may take in one process, shared by its threads, e.g. "4GB".
    assign : str
        How `proxy` assigns vertices to its parts, or the path of a file of ids and parts.
    seed : int
        Seed of the random parts.
    column_parts : int or None
        Number of column ranges of `vertical` (P2), if it is not n.
    proxies : {"lstc", "tight", "none"}
        Which edges the parts of `proxy` keep.
    sort_rows : bool
        Whether the rows of blocks are sorted, which kernels that hash do not need.
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
    column_parts: int | None = None
    proxies: str = "lstc"
    sort_rows: bool = True

    def __post_init__(self) -> None:
        """Refuse names that do not exist and numbers below one."""
        check_choice("backend", self.backend, BACKENDS)
        check_kernel(self.kernel)
        SCHEMES.check(self.partition, "auto")
        ORDERS.check(self.reorder, "auto")
        object.__setattr__(self, "assign", _assignment(self.assign))
        check_choice("proxies", self.proxies, PROXIES)
        for name in ("parts", "splits", "column_parts"):
            value = getattr(self, name)
            if value is not None:
                number = whole_number(name, value, 1, few="a count has at least one part")
                object.__setattr__(self, name, number)
        self._check_scheme()
        object.__setattr__(self, "seed", whole_number("seed", self.seed, None))
        bytes_of(self.memory)
        _flag("sort_rows", self.sort_rows)
        if not self.sort_rows and kernel_of(self.chosen_kernel).sorted_rows:
            raise InputError(
                f"{option('sort_rows', False)} is given, but kernel {self.chosen_kernel} needs sorted rows: give "
                f"{' or '.join(advice(kernel=name) for name in unsorted_kernels(self.chosen_backend))}, or leave the "
                "option out"
            )

    def _check_scheme(self) -> None:
        """Refuse options that the requested partition scheme does not use."""
        proxies = None if self.proxies == PROXIES[0] else self.proxies
        for name, given, taken in (
            ("column_parts", self.column_parts, lambda scheme: scheme.with_columns is not None),
            ("assign", self.assign_file, lambda scheme: scheme.dealing.members),
            ("proxies", proxies, lambda scheme: scheme.dealing.members),
        ):
            if given is None or (self.partition != "auto" and taken(SCHEMES[self.partition])):
                continue
            takers = " or ".join(advice(partition=scheme) for scheme, of in SCHEMES.items() if taken(of))
            raise InputError(
                f"{option(name, given)} is given with {option('partition', self.partition)}, which does not use it: "
                f"leave it out, or take {takers}"
            )

    @property
    def assign_file(self) -> str | None:
        """The file that `assign` names, or None."""
        return None if self.assign in ASSIGNMENTS else self.assign

    @property
    def chosen_backend(self) -> str:
        """The backend that counts; for "auto" the CPU, until the workers have been asked."""
        return "cpu" if self.backend == "auto" else self.backend

    @property
    def chosen_kernel(self) -> str:
        """The kernel that counts."""
        return next(iter(KERNELS[self.chosen_backend])) if self.kernel == "auto" else self.kernel

    @property
    def chosen_reorder(self) -> str:
        """The vertex order; by default that of the kernel."""
        return kernel_of(self.chosen_kernel).order if self.reorder == "auto" else self.reorder


@dataclass(frozen=True)
class RunOptions:
    """Where a count runs, and where data beyond its memory is kept.

    Attributes
    ----------
    client : distributed.Client or None
        Used as it is, and left open. Without it and the next three, the active client is used; if there is none,
        everything runs in this process.
    workers : int, "all" or None
        Start this many local worker processes of one thread each; "all": one per GPU with cuda, else one per core.
    scheduler : str or None
        Address of a running scheduler, e.g. "tcp://10.0.0.1:8786".
    scheduler_file : str or None
        File that a running scheduler wrote.
    retries : int
        Times that a task is submitted again whose worker died more often than Dask tolerates.
    worker_timeout : float
        Seconds without any worker, at the start or later, after which the run gives up.
    security : distributed.Security or None
        Certificates for `scheduler`, `scheduler_file` and `workers`. None: those of Dask's configuration.
    threads : int or None
        Concurrent calls in this process. If given, everything runs here even if a client is active. None: the number
        of available cores, but one in a task of a Dask worker.
    work_dir : path or None
        Folder for files of data beyond the memory budget.
    host_memory : int, str or None
        Bytes of pinned host memory in each process for data beyond the budget of a GPU.
    distribute : {"auto", "always", "never"} or None
        On a cluster: "always": tasks on all workers; "never": one call on one worker; "auto": whichever is predicted
        to be faster. None: `dasktc.distribute` of Dask's configuration, else "auto".

    Raises
    ------
    InputError
        More than one place to run, or an invalid value.
    """

    client: Any = None
    workers: int | str | None = None
    scheduler: str | None = None
    scheduler_file: str | None = None
    retries: int = RETRIES
    worker_timeout: float = WORKER_SECONDS
    security: Any = None
    work_dir: str | os.PathLike[str] | None = None
    host_memory: int | str | None = None
    distribute: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        """Refuse two places to run, and values of a wrong type or range."""
        retries = whole_number("retries", self.retries, 0, few="it is a number of times")
        seconds = real_number("worker_timeout", self.worker_timeout, 0, above=True, what="number of seconds")
        object.__setattr__(self, "retries", retries)
        object.__setattr__(self, "worker_timeout", seconds)
        if len(places := self.places) > 1:
            raise InputError(f"{' and '.join(places)} were both given: each names a place to run; keep one")
        if self.threads is not None:
            number = whole_number(
                "threads", self.threads, 1, MOST_THREADS, "nothing would run", "no machine has as many"
            )
            object.__setattr__(self, "threads", number)
        if self.scheduler is not None and not (isinstance(self.scheduler, str) and self.scheduler):
            raise InputError(
                f"{option('scheduler', self.scheduler)} is no address, as tcp://10.0.0.1:8786 is: give it as a str"
            )
        if self.scheduler_file is not None:
            object.__setattr__(self, "scheduler_file", path_text("scheduler_file", self.scheduler_file))
        check_keywords(work_dir=self.work_dir, host_memory=self.host_memory)
        if self.distribute is not None:
            check_choice("distribute", self.distribute, DISTRIBUTE)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> RunOptions:
        """Take the options from the arguments of a function, by name: `RunOptions.of(locals())`."""
        return cls(**{name: arguments[name] for name in cls.__dataclass_fields__})

    @property
    def distribution(self) -> str:
        """`distribute` if given, else the value of Dask's configuration."""
        if self.distribute is not None:
            return self.distribute
        import dask

        configured = dask.config.get("dasktc.distribute", "auto")
        check_choice("distribute", configured, DISTRIBUTE)
        return str(configured)

    @property
    def places(self) -> list[str]:
        """The given options that name a place to run; at most one is allowed."""
        named = {
            "client": self.client,
            "workers": self.workers,
            "scheduler": self.scheduler,
            "scheduler-file": self.scheduler_file,
            "threads": self.threads,
        }
        return [name for name, value in named.items() if value is not None]


@dataclass(frozen=True)
class CountOptions:
    """How a prepared graph is counted: verification, checkpoint and progress.

    Attributes
    ----------
    verify : float
        Share of the tasks, 0 to 1, that are counted again by another kernel.
    seed : int
        Seed of the choice of those tasks.
    checkpoint : path or None
        Folder that keeps the results of finished tasks.
    progress : callable (stage, done, total) or None

    Raises
    ------
    InputError
    """

    verify: float = 0.0
    seed: int = 0
    checkpoint: str | os.PathLike[str] | None = None
    progress: Callable[[str, int, int], None] | None = None

    def __post_init__(self) -> None:
        """Refuse values of a wrong type or range."""
        check_keywords(verify=self.verify, seed=self.seed, checkpoint=self.checkpoint, progress=self.progress)


@dataclass(frozen=True)
class AttributeOptions:
    """Which attributes of edges are kept beside their ends: weights and directions.

    Attributes
    ----------
    weight : str, int or None
        The column, or edge attribute, of weights: by name, or by position in digits.
    directed : bool
        Keep directions.
    duplicates : {"sum", "last"} or None
        Weight of an edge if several rows give it: their sum, or the last. None: such rows are refused.

    Raises
    ------
    InputError
    """

    weight: str | None = None
    directed: bool = False
    duplicates: str | None = None

    def __post_init__(self) -> None:
        """Refuse values of a wrong type, and `duplicates` without weights."""
        weight_name(self.weight)
        _flag("directed", self.directed)
        if self.duplicates is not None:
            check_choice("duplicates", self.duplicates, DUPLICATES)
            if self.weight is None:
                raise InputError(
                    f"duplicates={self.duplicates!r} is given without a weight: rows that repeat an edge differ only "
                    "in their weights; name the weight, or leave it out"
                )

    def __bool__(self) -> bool:
        """Return whether any attribute is kept."""
        return self.weight is not None or self.directed


def weight_name(value: Any) -> str | None:
    """Convert the `weight` option for readers: a name, or a column's position in digits.

    Raises
    ------
    InputError
        It is neither a non-empty text nor a whole number of at least 0.
    """
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, str) or not hasattr(value, "__index__") or isinstance(value, bool):
        raise InputError(f"{option('weight', value)} is no name of a column: give a text, or a position from 0")
    return str(whole_number("weight", value, 0, 10**6, "it is a column's position", "no table has as many columns"))


def _assignment(value: Any) -> str:
    """Return the name of an assignment method, or the path of a file, as text."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and text not in ASSIGNMENTS and os.path.exists(text):
        return path_text("assign", text)
    ASSIGNMENTS.check(text)
    return str(text)


def read_ids(value: str) -> Ids | None:
    """Convert the `--ids` option for readers."""
    check_choice("ids", value, ("auto", "int", "text"))
    return None if value == "auto" else value  # type: ignore[return-value]


def bytes_of(value: int | str | None, name: str = "memory") -> int | None:
    """Convert a number, or a text such as "4GB", to bytes.

    Raises
    ------
    InputError
        It is not a size, or below one byte, or too large for 64 bits.
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
        raise InputError(f"{option(name, value)} is not a size in bytes: try 4000000000, 4GB or 4GiB") from None
    except OverflowError:
        size = MOST_BYTES + 1
    if size < 1:
        raise InputError(f"{option(name, value)} is below one byte: nothing would fit; give what one worker may use")
    if size > MOST_BYTES:
        raise InputError(
            f"{option(name, value)} is more than 2^63 bytes: no machine has as many; give what one worker may use"
        )
    return size


def format_size(count: float) -> str:
    """Format bytes for people, with three digits and a decimal unit: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{count:.3g}") < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"


def whole_number(
    name: str, value: Any, least: int | None, most: int | None = None, few: str = "", many: str = ""
) -> int:
    """Check an integer of Python or of another library.

    Parameters
    ----------
    name : str
        Name of the option.
    value : object
    least, most : int or None
        Bounds.
    few, many : str
        Reasons of the bounds, for errors.

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
        raise InputError(f"{option(name, value)} is not a whole number: {give}") from None
    if least is not None and number < least:
        raise InputError(f"{option(name, number)} is below {least:,}: {few or 'out of range'}; {give}")
    if most is not None and number > most:
        raise InputError(f"{option(name, number)} is more than {most:,}: {many or 'out of range'}; {give}")
    return number


def real_number(
    name: str, value: Any, least: float, most: float = inf, above: bool = False, what: str = "number"
) -> float:
    """Check a finite number from `least` (with `above`, above it) to `most`; `what` describes it in errors.

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
        raise InputError(f"{option(name, value)} is no {what} {span}: give one") from None
    if not (isfinite(number) and least <= number <= most) or (above and number == least):
        raise InputError(f"{option(name, value)} is no {what} {span}: give one")
    return number


def check_keywords(**given: Any) -> None:
    """Refuse values of a wrong type before anything is done; None means that the option is not given.

    Parameters
    ----------
    **given
        Values by keyword of `triangle_count`, except those that `Options` and `RunOptions` check.

    Raises
    ------
    InputError
    """
    for name, value in given.items():
        if value is not None:
            _KEYWORDS[name](name, value)


def path_text(name: str, path: Any) -> str:
    """Check a caller's path and return it as text.

    Parameters
    ----------
    name : str
        Name of the option.
    path : str or os.PathLike of str

    Raises
    ------
    InputError
        It is of another type or empty, has a null character, or is too long for a file system.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise InputError(
            f"{option(name, path)} is of type {type(path).__name__}: a path is needed; give a str or a Path"
        )
    if not text:
        raise InputError(f"{option(name, '')} is no path: the name is empty; give the name of a file or folder")
    if "\0" in text:
        raise InputError(f"{option(name, text)} is no path: it has a null character, which no name has; leave it out")
    try:
        encoded = os.fsencode(text)
    except ValueError:
        raise InputError(f"{option(name, text)} is no path: this system has no bytes for it; give another") from None
    if len(encoded) >= MOST_PATH or max(map(len, encoded.split(b"/"))) > MOST_NAME:
        raise InputError(
            f"{option(name, text)} is no path: a name has {MOST_NAME} bytes at most, and a path {MOST_PATH - 1}; "
            "give a shorter one"
        )
    return text


def _path(name: str, value: Any) -> None:
    path_text(name, value)


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name}={shown(value)} is neither True nor False: give one of these")


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise InputError(f"{option(name, value)} is no name: give a text, or leave it out")


def _columns(name: str, value: Any) -> None:
    labels = value.split(",") if isinstance(value, str) else value
    if not isinstance(labels, Sequence) or isinstance(labels, bytes | bytearray) or len(labels) != 2:
        number = f"names {plural(len(labels), 'column')}" if isinstance(labels, Sequence) else "is no list of columns"
        raise InputError(
            f"{option(name, value)} {number}: an edge has two ends; give two names or positions, as in "
            f"{advice(columns=('a', 'b'))}"
        )


def _progress(name: str, value: Any) -> None:
    if not callable(value) and not isinstance(value, bool):
        raise InputError(f"{name}={shown(value)} cannot be called: pass True, or a function of stage, done and total")


_KEYWORDS: dict[str, Callable[[str, Any], object]] = {
    "checkpoint": _path,
    "columns": _columns,
    "force": _flag,
    "format": _text,
    "host_memory": lambda name, value: bytes_of(value, name),
    "limit": lambda name, value: whole_number(name, value, 0, few="it is a number of triangles"),
    "per_edge": _path,
    "per_vertex": _path,
    "progress": _progress,
    "report": _path,
    "seed": lambda name, value: whole_number(name, value, None),
    "skip": lambda name, value: whole_number(name, value, 0, few="it is a number of leading lines"),
    "verify": lambda name, value: real_number(name, value, 0, 1),
    "work_dir": _path,
}
