"""Registries of schemes, kernels, orders, assignments and methods by name: the package's own, then those of plug-ins.

A plug-in is a distribution with an entry point in the group of a registry; the name is that of the object:

    [project.entry-points."dasktc.schemes"]
    toy = "toy_scheme:TOY"

So every process with the plug-in installed knows it, including workers started elsewhere. A plug-in that cannot be
used is left out: a log message names its distribution, and so does the error if its name is requested.

This module knows nothing of the objects: the module that has them declares them when it is imported, which importing
its package does. So lower layers can look up names here.
"""

from __future__ import annotations

import logging
from collections import UserDict
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from dasktc import wording
from dasktc.errors import InputError
from dasktc.once import LOCK, once

__all__ = [
    "ASSIGNMENTS", "KERNELS", "METHODS", "ORDERS", "SCHEMES", "WITHOUT_STAGES", "Registry", "check_choice",
    "check_has_kernel", "check_stages", "kernel_lines", "kernel_names", "kernel_of", "unsorted_kernels",
]  # fmt: skip

T = TypeVar("T")
_log = logging.getLogger("dasktc")


class Registry(UserDict[str, T]):
    """Objects by name, in the order of help texts; an entry that is set here is known only to this process.

    Parameters
    ----------
    option : str
        The option whose values are the names.
    group : str, optional
        Entry-point group of plug-ins; each entry point is an object or a sequence of objects.
    **where
        Attribute values by which objects of a group belong to this registry.
    """

    def __init__(self, option: str, group: str | None = None, **where: str) -> None:
        self.option, self._group, self._where = option, group, where
        self._declared: tuple[Sequence[T], type] | None = None
        self.broken: dict[str, str] = {}
        self._filled: dict[str, T] | None = None

    def declare(self, objects: Sequence[T], kind: type) -> None:
        """Take the package's own objects, in the order of help texts, and their class; all have `name` and `help`."""
        self._declared = objects, kind

    @property
    def data(self) -> dict[str, T]:  # type: ignore[override]
        """The entries; plug-ins are looked for when the first one is needed."""
        if self._filled is None:
            with LOCK:
                if self._filled is None:
                    self._filled = self._fill()
        return self._filled

    def _fill(self) -> dict[str, T]:
        if self._declared is None:
            raise RuntimeError(f"nothing is declared yet for {self.option}: import dasktc.backends and dasktc.planning")
        objects, kind = self._declared
        entries = {entry.name: entry for entry in objects}  # type: ignore[attr-defined]
        for point, provided in _plugins(self._group, kind) if self._group else ():
            if isinstance(provided, str):
                self.broken[point.name] = provided
                continue
            for entry in provided:
                if any(getattr(entry, name) != value for name, value in self._where.items()):
                    continue
                if entry.name in entries:
                    self.broken[entry.name] = _left_out(point, "the name is taken")
                else:
                    entries[entry.name] = entry
        return entries

    def check(self, name: str, *more: str) -> None:
        """Refuse (InputError) a name that is neither in the registry nor among the option's other values."""
        check_choice(self.option, name, (*more, *self))

    def lines(self) -> list[tuple[str, str]]:
        """List each name with its line of help, for the command line, docstrings and the README."""
        return [(name, entry.help) for name, entry in self.items()]  # type: ignore[attr-defined]


@once
def _plugins(group: str, kind: type) -> list[tuple[EntryPoint, Any]]:
    """Load the entry points of a group, in the same order in all processes: the objects of each, or its problem."""
    points = sorted(entry_points(group=group), key=lambda point: (_distribution(point), point.name))
    return [(point, _loaded(point, kind)) for point in points]


def _loaded(point: EntryPoint, kind: type) -> tuple[Any, ...] | str:
    try:
        provided = point.load()
    except (Exception, SystemExit) as failed:  # a plug-in's module may raise anything
        return _left_out(point, " ".join(f"{type(failed).__name__}: {failed}".split()))
    provided = tuple(provided) if isinstance(provided, (tuple, list)) else (provided,)
    for entry in provided:
        if not isinstance(entry, kind):
            return _left_out(point, f"{entry!r:.60} is no {kind.__name__}")
        if entry.name != point.name:  # type: ignore[attr-defined]
            return _left_out(point, f"its name is {entry.name!r}, which the entry point should have")  # type: ignore[attr-defined]
    return provided


def _left_out(point: EntryPoint, problem: str) -> str:
    """Log that a plug-in is left out and return the message."""
    warning = f"plug-in {point.name!r} ({point.value}) of {_distribution(point)} is left out: {problem}"
    _log.warning("dasktc: warning: %s; mend or uninstall it", warning)
    return warning


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


def check_choice(option: str, name: str, names: Collection[str]) -> None:
    """Refuse (InputError) a value of an option that is none of its choices."""
    if isinstance(name, str) and name in names:
        return
    for registry in (SCHEMES, *KERNELS.values()):
        if registry.option == option and isinstance(name, str) and name in registry.broken:
            reason = registry.broken[name]
            raise InputError(f"{wording.option(option, name)} cannot be used: {reason}; mend or uninstall it")
    suggestion = wording.nearest(name, names) if isinstance(name, str) else None
    choose = f"did you mean {suggestion!r}? Choose one of" if suggestion else "choose one of"
    raise InputError(f"{wording.option(option, name)} does not exist: {choose} {', '.join(names)}")


SCHEMES: Registry[Any] = Registry("partition", "dasktc.schemes")
KERNELS: dict[str, Registry[Any]] = {
    backend: Registry("kernel", "dasktc.kernels", backend=backend) for backend in ("cpu", "cuda")
}
ORDERS: Registry[Any] = Registry("reorder")
ASSIGNMENTS: Registry[Any] = Registry("assign")
METHODS: Registry[Any] = Registry("method")


WITHOUT_STAGES = {"bitmatrix": "small graphs in memory, from raw edges to the number: a matrix of bits"}
"""CUDA kernels that replace all stages (`counting.small_graph`): names and lines of help."""


def kernel_of(name: str) -> Any:
    """Return the kernel of a name from the first backend that has it."""
    first = next(iter(KERNELS["cuda"]))  # stands for kernels without stages, which need no order
    return next(registry[key] for key in (name, first) for registry in KERNELS.values() if key in registry)


def unsorted_kernels(backend: str) -> list[str]:
    """List the kernels of a backend that count unsorted rows."""
    return [name for name, kernel in KERNELS[backend].items() if not kernel.sorted_rows]


def check_has_kernel(backend: str, kernel: str) -> None:
    """Refuse (InputError) a kernel that a backend lacks."""
    kernels = KERNELS[backend]
    if kernel not in ("auto", *kernels, *WITHOUT_STAGES):
        raise InputError(
            f"backend {backend} has no kernel {kernel}, it has {', '.join(kernels)}: choose one of these, or another "
            "backend"
        )


def check_stages(kernel: str) -> None:
    """Refuse (InputError) a kernel that replaces all stages where stages are required."""
    if kernel in WITHOUT_STAGES:
        raise InputError(
            f"kernel {kernel} counts a source in memory in one step on a GPU of this process, with no stages to plan "
            "or to prepare for: take it for `triangle_count`, or take another kernel"
        )


def kernel_names() -> tuple[str, ...]:
    """List the names of the kernels of all backends, each once, the default first."""
    return tuple(dict.fromkeys([*(name for registry in KERNELS.values() for name in registry), *WITHOUT_STAGES]))


def kernel_lines() -> list[tuple[str, str]]:
    """List each kernel's name with its line of help, which tells if only CUDA has it."""
    return [
        *KERNELS["cpu"].lines(),
        *((name, f"on CUDA, {line}") for name, line in KERNELS["cuda"].lines() if name not in KERNELS["cpu"]),
        *((name, f"on CUDA, {line}") for name, line in WITHOUT_STAGES.items()),
    ]
