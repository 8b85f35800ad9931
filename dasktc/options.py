"""The options of a count, checked in one place: names that exist, numbers that make sense."""

from __future__ import annotations

from dataclasses import dataclass

from dasktc.errors import InputError
from dasktc.io.source import Ids

__all__ = ["ASSIGNMENTS", "BACKENDS", "PARTITIONS", "REORDERS", "Options", "bytes_of"]

BACKENDS = ("auto", "cpu", "cuda")
PARTITIONS = ("auto", "whole", "edges", "hash2d", "proxy", "vertical")
ASSIGNMENTS = ("random", "contiguous", "metis")
REORDERS = ("auto", "degree", "collective", "indegree", "none")


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
        if self.kernel != "auto":
            _one_of("kernel", self.kernel, ("auto", *_kernel_names()))
        _one_of("partition", self.partition, PARTITIONS)
        _one_of("reorder", self.reorder, REORDERS)
        _one_of("assign", self.assign, ASSIGNMENTS)
        for name in ("parts", "splits"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise InputError(f"--{name} {value!r} is not a whole number: give 1 or more")
            if value is not None and value < 1:
                raise InputError(f"--{name} {value} is below 1: a count has at least one part; give 1 or more")
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
        It is not a size, or below one byte.
    """
    if value is None:
        return None
    from dask.utils import parse_bytes

    try:
        found = int(parse_bytes(value))
    except ValueError:
        raise InputError(f"--{name} {value!r} is not a size in bytes: try 4000000000, 4GB or 4GiB") from None
    if found < 1:
        raise InputError(f"--{name} {value} is below one byte: nothing would fit; give what one worker may use")
    return found


def _kernel_names() -> tuple[str, ...]:
    from dasktc.backends import kernel_names

    return kernel_names()


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"--{name} {value!r} does not exist: choose one of {', '.join(choices)}")
