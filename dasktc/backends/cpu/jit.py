"""Compiling Numba kernels: for one signature each, when first needed, kept on disk for later processes.

Numba's own cache takes no lock. Two processes that fill it at the same time can leave an index
that names another's machine code, and a process that loads it may crash. Here a lock between
processes is held around every load and every compilation. Numba also looks only at the file that
a kernel stands in, not at the files of the functions that it calls: a stamp of all the files of
this package is kept with the cache, which is emptied when they change, and when it cannot be read: a machine that
went down while it was filled leaves files that are cut short.

Where no cache can be written (neither beside the sources nor in the user's cache directory nor in
NUMBA_CACHE_DIR) every process compiles for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["Counts", "Kernel", "compiles", "inlined"]

Function = TypeVar("Function", bound=Callable[..., Any])
Counts = tuple[int, int, int, int]
"""Triangles, wedges, probes and the longest bucket."""

_loading = threading.RLock()


def _sources() -> str:
    """Size and time of change of every source file of this package."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return "\n".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)


_SOURCES = _sources()


def inlined(function: Function) -> Function:
    """Mark a function that is compiled as part of the kernels that call it."""
    return cast(Function, numba.njit(nogil=True, inline="always")(function))


def compiles(*kernels: Kernel) -> Callable[[Function], Function]:
    """Name what a function of a counting task compiles: that is done before its time is taken."""

    def named(function: Function) -> Function:
        function.compiled = kernels  # type: ignore[attr-defined]
        return function

    return named


class Kernel:
    """A function, compiled for one signature on its first call; it runs without the GIL.

    Parameters
    ----------
    function : callable
    signature : tuple of numba types
        One argument each.
    """

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.load()(*arguments)

    def load(self) -> Any:
        """Load the compiled function from the cache, or compile it; does nothing the second time."""
        with _loading:
            if self._compiled is None:
                self._compiled = self._cached() or self._uncached()
        return self._compiled

    def _cached(self) -> Any:
        """Compile by way of the cache; None if there is no directory to keep it in, or the cache is of no use."""
        for damaged in (False, True):
            try:
                dispatcher = numba.njit(nogil=True, cache=True)(self._function)
            except RuntimeError:  # Numba: "cannot cache function ...: no locator available"
                return None
            try:
                with _fresh(Path(dispatcher.stats.cache_path), damaged):
                    return _only(dispatcher, self._signature)
            except OSError:  # a full disk, or a file system without locks
                return None
            except Exception:  # any at all: of reading a pickle that a crash of the machine tore
                continue
        return None

    def _uncached(self) -> Any:
        return _only(numba.njit(nogil=True)(self._function), self._signature)


def _only(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Compile for this signature, and refuse any other instead of compiling again."""
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


@contextmanager
def _fresh(directory: Path, damaged: bool = False) -> Iterator[None]:
    """Hold the cache directory's lock; empty it first if it is damaged, or filled from other sources than these."""
    import locket

    directory.mkdir(parents=True, exist_ok=True)
    with locket.lock_file(str(directory / "dasktc.lock")):
        stamp = directory / "dasktc.stamp"
        if damaged or not stamp.exists() or stamp.read_text(errors="replace") != _SOURCES:
            for index in directory.glob("*.nbi"):
                index.unlink()
            stamp.write_text(_SOURCES)
        yield
