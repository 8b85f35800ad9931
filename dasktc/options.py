"""Options of a count as frozen dataclasses, with checks of single values: types, ranges, paths and sizes.

Names of kernels, schemes, orders and assignments are checked against the registries, which import no compiler for this.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from numbers import Real
from typing import Any, Literal, get_args

from dasktc.errors import InputError, shown
from dasktc.registry import (
    ASSIGNMENTS,
    KERNELS,
    METHODS,
    ORDERS,
    SCHEMES,
    check_choice,
    check_has_kernel,
    kernel_names,
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
    "SIMILARITIES",
    "WORKER_SECONDS",
    "AttributeOptions",
    "Backend",
    "CountOptions",
    "Distribute",
    "Duplicates",
    "Ids",
    "IdsOption",
    "MeasureName",
    "Method",
    "MethodName",
    "Options",
    "Protocol",
    "Proxies",
    "RunOptions",
    "bytes_of",
    "check_keywords",
    "format_size",
    "path_text",
    "read_ids",
    "real_number",
    "refuse_beyond",
    "weight_name",
    "whole_number",
]

Ids = Literal["int", "text"]
"""The type of a source's vertex ids."""
IdsOption = Literal["auto", "int", "text"]
Backend = Literal["auto", "cpu", "cuda"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
MethodName = Literal["auto", "trust", "h-index", "fox-merge", "fox-search", "lstc", "tc-stream"]
"""What `method=` takes beside a `Method`; `Method.of` takes the names of plugins, too."""
Protocol = Literal["auto", "tcp", "ucx"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
RETRIES = 10
"""Times that a task is submitted again whose worker died more often than Dask tolerates."""
WORKER_SECONDS = 60
"""Seconds without any worker after which a run gives up."""
Proxies = Literal["lstc", "tight", "none"]
PROXIES: tuple[Proxies, ...] = get_args(Proxies)
"""Which edges between local vertices and their neighbours the parts of scheme `proxy` keep."""
Duplicates = Literal["sum", "last"]
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)
"""Weight of an edge if several rows give it: their sum, or the last."""
MeasureName = Literal[
    "jaccard", "overlap", "cosine", "sorensen", "common_neighbors", "adamic_adar", "resource_allocation"
]
SIMILARITIES: tuple[MeasureName, ...] = get_args(MeasureName)
"""Measures of similarity; compiled code knows them by their numbers in this order."""
Distribute = Literal["auto", "always", "never"]
DISTRIBUTE: tuple[Distribute, ...] = get_args(Distribute)
"""Whether a cluster counts by tasks on all workers, or by one call on one worker."""
MOST_BYTES = 2**63 - 1
"""The largest 64-bit size."""
MOST_NAME, MOST_PATH = 255, 4096
"""Limits on Linux: bytes of a file name, and of a path with its terminating null byte."""


@dataclass(frozen=True)
class Method:
    """How a graph is partitioned, ordered and counted; None and "auto" mean: chosen from the graph and the memory.

    `Method.of("trust")` is the method of a published system. Functions that take `method=` take its name, too.

    Attributes
    ----------
    kernel : str
        How a block triple is counted: "auto", chosen from the row lengths of the graph, or
        <kernel>.
    partition : str
        How the graph is cut into block triples: "auto", chosen from the memory, or
        <partition>.
    parts, splits : int or None
        n and m of the partition; n has no effect for schemes of one block.
    reorder : str
        Order of the vertices: "auto", that of the kernel that is named (for `trust` collective, or
        collective-banded where rows or blocks are cut), else degree, or
        <reorder>.
    assign : str or path
        How `proxy` assigns vertices to its parts:
        <assign>. Or the path of a file with two columns: ids of vertices, and their parts from 0 to n - 1.
    column_parts : int or None
        Number of column ranges of `vertical` (TC-Stream's P2), if it is not `parts`.
    proxies : {"lstc", "tight", "none"}
        Edges that the parts of `proxy` keep. "lstc": those that LSTC's transformation leaves; "tight": only those that
        a count reads, of local vertices and between their out-neighbours; "none": all edges between local vertices
        and their neighbours, without a transformation.
    sort_rows : bool
        False: leave the rows of blocks unsorted, as H-INDEX does, which saves a part of preparation; for kernels that
        hash (`trust`, `hindex`), and only for the number of triangles. `proxy` sorts its rows in any case.
    seed : int
        Seed of `proxy`'s random parts, of the choice of verified tasks, and of the sample of an estimate.

    Raises
    ------
    InputError
        A name that does not exist, a number out of range, or an option that the partition or the kernel does not use.

    Examples
    --------
    >>> import dasktc
    >>> triangle = ([0, 1, 2], [1, 2, 0])
    >>> dasktc.triangle_count(triangle, method=dasktc.Method(kernel="merge")).kernel
    'merge'
    >>> dasktc.triangle_count(triangle, method=dasktc.Method.of("tc-stream", parts=2)).plan.partition
    'vertical'
    """

    kernel: str = "auto"
    partition: str = "auto"
    parts: int | None = None
    splits: int | None = None
    reorder: str = "auto"
    assign: str | os.PathLike[str] = "random"
    column_parts: int | None = None
    proxies: Proxies = "lstc"
    sort_rows: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse names that do not exist and numbers below one."""
        check_choice("kernel", self.kernel, ("auto", *kernel_names()))
        SCHEMES.check(self.partition, "auto")
        ORDERS.check(self.reorder, "auto")
        assign = os.fspath(self.assign) if isinstance(self.assign, os.PathLike) else self.assign
        if isinstance(assign, str) and assign not in ASSIGNMENTS and os.path.exists(assign):
            path_text("assign", assign)
        else:
            ASSIGNMENTS.check(assign)
        object.__setattr__(self, "assign", assign)
        check_choice("proxies", self.proxies, PROXIES)
        for name in ("parts", "splits", "column_parts"):
            value = getattr(self, name)
            if value is not None:
                number = whole_number(name, value, 1, few="a count has at least one part")
                object.__setattr__(self, name, number)
        self._check_scheme()
        object.__setattr__(self, "seed", whole_number("seed", self.seed, None))
        _flag("sort_rows", self.sort_rows)
        kernel = next(iter(KERNELS["cpu"])) if self.kernel == "auto" else self.kernel
        if not self.sort_rows and kernel_of(kernel).sorted_rows:
            raise InputError(
                f"{option('sort_rows', False)} is given, but kernel {kernel} needs sorted rows: give "
                f"{' or '.join(advice(kernel=name) for name in unsorted_kernels('cpu'))}, or leave the option out"
            )

    @classmethod
    def of(cls, name: str, **changes: Any) -> Method:
        """Return the method of a published system, with changes.

        Parameters
        ----------
        name : str
            "auto", or
            <method>.
        **changes
            Attributes with other values than that method's.

        Raises
        ------
        InputError
            No method has that name.

        Examples
        --------
        >>> import dasktc
        >>> method = dasktc.Method.of("trust", parts=2)
        >>> method.kernel, method.partition, method.parts
        ('trust', 'hash2d', 2)
        """
        METHODS.check(name, "auto")
        published = METHODS[name].options if name != "auto" else {}
        return Method(**{**published, **changes})

    def _check_scheme(self) -> None:
        """Refuse options that the requested partition scheme does not use."""
        proxies = None if self.proxies == PROXIES[0] else self.proxies
        for name, value, is_taken in (
            ("column_parts", self.column_parts, lambda scheme: scheme.with_columns is not None),
            ("assign", self.assign_file, lambda scheme: scheme.dealing.members),
            ("proxies", proxies, lambda scheme: scheme.dealing.members),
        ):
            if value is None or (self.partition != "auto" and is_taken(SCHEMES[self.partition])):
                continue
            takers = " or ".join(advice(partition=scheme) for scheme, entry in SCHEMES.items() if is_taken(entry))
            raise InputError(
                f"{option(name, value)} is given with {option('partition', self.partition)}, which does not use it: "
                f"leave it out, or take {takers}"
            )

    @property
    def assign_file(self) -> str | None:
        """The file that `assign` names, or None."""
        return None if self.assign in ASSIGNMENTS else str(self.assign)


@dataclass(frozen=True)
class Options(Method):
    """A method, the backend that counts by it, and the memory that it may take: the inputs of a plan."""

    backend: str = "auto"
    """{"auto", "cpu", "cuda"}."""
    memory: int | str | None = None
    """Bytes that the data may take in one process, shared by its threads, e.g. "4GB"."""

    def __post_init__(self) -> None:
        """Refuse a backend that does not exist, and a size that is none."""
        check_choice("backend", self.backend, BACKENDS)
        super().__post_init__()
        bytes_of(self.memory)

    @classmethod
    def by(cls, method: Method | str, backend: str = "auto", memory: int | str | None = None) -> Options:
        """Take the method from a caller's `method=`: a `Method`, or the name of one; refuse (InputError) others."""
        if isinstance(method, str):
            method = Method.of(method)
        if not isinstance(method, Method):
            names = ", ".join(("auto", *METHODS))
            raise InputError(f"method={shown(method)} is no method: give a dasktc.Method, or one of the names {names}")
        fields = {name: getattr(method, name) for name in Method.__dataclass_fields__}
        options = cls(**fields, backend=backend, memory=memory)
        if backend != "auto":  # for "auto" the workers are asked first
            check_has_kernel(backend, options.kernel)
        return options

    @property
    def method(self) -> Method:
        """The method alone."""
        return Method(**{name: getattr(self, name) for name in Method.__dataclass_fields__})

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
        """The vertex order; by default that of the kernel for an uncut graph."""
        return kernel_of(self.chosen_kernel).order if self.reorder == "auto" else self.reorder


@dataclass(frozen=True)
class RunOptions:
    """Where data beyond the memory goes, and what happens when workers fail.

    Attributes
    ----------
    work_dir : path or None
        Folder for the files of a count that exceeds `memory`: up to 25 bytes per edge, with workers 100, in a
        subfolder that is removed afterwards. It should be on a disk; a folder in memory would save none. None: Dask's
        `temporary-directory`, else the system's. All workers must see it, or the count is refused; GPU workers use a
        folder each if some do not see the default.
    host_memory : int, str or None
        Bytes of pinned host memory in each process for data beyond a GPU's `memory`. None: half of the free memory, or
        of a worker's memory limit.
    retries : int
        Times that a task is submitted again whose worker died more often than Dask tolerates (3 times).
    worker_timeout : float
        Seconds without any worker, at the start or later, after which the count ends with an error.
    distribute : {"auto", "always", "never"} or None
        On a cluster: "always": tasks on all workers; "never": one call on one worker; "auto": whichever is predicted
        to be faster. `result.plan.distribution` gives the reason. None: `dasktc.distribute` of Dask's configuration,
        else "auto".

    Raises
    ------
    InputError
        An invalid value.
    """

    work_dir: str | os.PathLike[str] | None = None
    host_memory: int | str | None = None
    retries: int = RETRIES
    worker_timeout: float = WORKER_SECONDS
    distribute: Distribute | None = None

    def __post_init__(self) -> None:
        """Refuse values of a wrong type or range."""
        retries = whole_number("retries", self.retries, 0, few="it is a number of times")
        seconds = real_number("worker_timeout", self.worker_timeout, 0, above=True, what="number of seconds")
        object.__setattr__(self, "retries", retries)
        object.__setattr__(self, "worker_timeout", seconds)
        check_keywords(work_dir=self.work_dir, host_memory=self.host_memory)
        if self.distribute is not None:
            check_choice("distribute", self.distribute, DISTRIBUTE)

    @property
    def distribution(self) -> Distribute:
        """`distribute` if given, else the value of Dask's configuration."""
        if self.distribute is not None:
            return self.distribute
        import dask

        configured: Distribute = dask.config.get("dasktc.distribute", "auto")
        check_choice("distribute", configured, DISTRIBUTE)
        return configured


@dataclass(frozen=True)
class CountOptions:
    """How the tasks of a count or survey run: verification, checkpoint and progress."""

    verify: float = 0.0
    """Share of the tasks, 0 to 1, that are counted again by another kernel."""
    seed: int = 0
    """Seed of the choice of those tasks."""
    checkpoint: str | os.PathLike[str] | None = None
    """Folder that keeps the results of finished tasks."""
    progress: Callable[[str, int, int], None] | None = None
    """Called with (stage, done, total)."""

    def __post_init__(self) -> None:
        """Refuse (InputError) values of a wrong type or range."""
        check_keywords(verify=self.verify, seed=self.seed, checkpoint=self.checkpoint, progress=self.progress)


@dataclass(frozen=True)
class AttributeOptions:
    """Which attributes of edges are kept beside their ends: weights and directions."""

    weight: str | None = None
    """The column, or edge attribute, of weights: by name, or by position in digits."""
    directed: bool = False
    """Keep directions."""
    duplicates: str | None = None
    """Weight of an edge if several rows give it: their sum, or the last. None: such rows are refused."""

    def __post_init__(self) -> None:
        """Refuse (InputError) values of a wrong type, and `duplicates` without weights."""
        weight_name(self.weight)
        _flag("directed", self.directed)
        if self.duplicates is not None:
            check_choice("duplicates", self.duplicates, DUPLICATES)
            if self.weight is None:
                raise InputError(
                    f"{option('duplicates', self.duplicates)} is given without a weight: rows that repeat an edge "
                    "differ only in their weights; name the weight, or leave it out"
                )

    def __bool__(self) -> bool:
        """Return whether any attribute is kept."""
        return self.weight is not None or self.directed


def weight_name(value: Any) -> str | None:
    """Convert the `weight` option for readers: a name, or a column's position in digits.

    InputError: it is neither a non-empty text nor a whole number of at least 0.
    """
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, str) or not hasattr(value, "__index__") or isinstance(value, bool):
        raise InputError(f"{option('weight', value)} is no name of a column: give a text, or a position from 0")
    return str(whole_number("weight", value, 0, 10**6, "it is a column's position", "no table has as many columns"))


def read_ids(value: str) -> Ids | None:
    """Convert the `--ids` option for readers."""
    check_choice("ids", value, get_args(IdsOption))
    return None if value == "auto" else value  # type: ignore[return-value]


def bytes_of(value: int | str | None, name: str = "memory") -> int | None:
    """Convert a number, or a text such as "4GB", to bytes.

    InputError: it is not a size, or below one byte, or too large for 64 bits.
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


def refuse_beyond(memory: int | None, nbytes: int, fact: str, remedy: str, holder: str = "of one worker") -> None:
    """Refuse (InputError) more bytes than a memory has, None for one without a limit, in the words of the caller."""
    if memory is not None and nbytes > memory:
        raise InputError(f"{fact}, more than the {format_size(memory)} {holder}: {remedy}")


def whole_number(
    name: str, value: Any, least: int | None, most: int | None = None, few: str = "", many: str = ""
) -> int:
    """Check an integer of Python or of another library; refuse (InputError) other values.

    Parameters
    ----------
    name : str
        Name of the option.
    value : object
    least, most : int or None
        Bounds.
    few, many : str
        Reasons of the bounds, for errors.
    """
    span = "one" if least is None else f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{option(name, value)} is not a whole number: give {span}") from None
    if least is not None and number < least:
        raise InputError(f"{option(name, number)} is below {least:,}: {few or 'out of range'}; give {span}")
    if most is not None and number > most:
        raise InputError(f"{option(name, number)} is more than {most:,}: {many or 'out of range'}; give {span}")
    return number


def real_number(
    name: str, value: Any, least: float, most: float = inf, above: bool = False, what: str = "number"
) -> float:
    """Check a finite number from `least` (with `above`, above it) to `most`; `what` describes it in an InputError."""
    span = f"from {least:g} to {most:g}" if isfinite(most) else f"above {least:g}" if above else f"from {least:g} on"
    try:
        number = nan if isinstance(value, bool | str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = nan
    if not (isfinite(number) and least <= number <= most) or (above and number == least):
        raise InputError(f"{option(name, value)} is no {what} {span}: give one")
    return number


def check_keywords(**options: Any) -> None:
    """Refuse (InputError) values of a wrong type before anything is done; None means that the option is not given.

    Parameters
    ----------
    **options
        Values by keyword of `triangle_count`, except those that `Options` and `RunOptions` check.
    """
    for name, value in options.items():
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


def _run(name: str, value: Any) -> None:
    if not isinstance(value, RunOptions):
        raise InputError(f"{name}={shown(value)} is no dasktc.RunOptions: give one, or leave it out")


_KEYWORDS: dict[str, Callable[[str, Any], object]] = {
    "checkpoint": path_text,
    "columns": _columns,
    "force": _flag,
    "format": _text,
    "host_memory": lambda name, value: bytes_of(value, name),
    "induced": _flag,
    "limit": lambda name, value: whole_number(name, value, 0, few="it is a number of triangles"),
    "per_edge": path_text,
    "per_vertex": path_text,
    "progress": _progress,
    "report": path_text,
    "run": _run,
    "seed": lambda name, value: whole_number(name, value, None),
    "skip": lambda name, value: whole_number(name, value, 0, few="it is a number of leading lines"),
    "verify": lambda name, value: real_number(name, value, 0, 1),
    "work_dir": path_text,
}
