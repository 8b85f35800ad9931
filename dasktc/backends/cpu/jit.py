"""Compiles Numba kernels on first use, for one signature each, and caches them on disk for later processes.

The cache is in the user's cache folder (in NUMBA_CACHE_DIR where that is set) and never beside the sources, where an
uninstalled package would leave it behind. Numba's own cache differs in two more points. It takes no lock: two processes
that fill it at the same time can leave an index that names another process's machine code, and a process that loads it
may crash. Here each kernel has a lock between processes, which is held while it is loaded or compiled. And Numba checks
only the file in which a kernel is defined, not the files of functions that it calls; here the folder's name depends on
all sources of this package. Cache files that a system crash cut short, and that cannot be read, are made again.

Where no folder is writable, every process compiles for itself. So it does with a version of Numba whose cache is built
differently: `_caches` and the line that uses it are all that is taken of Numba beyond its documented interface (seen
with 0.61 to 0.68; `test_kernels.py` fails where no cache is filled).
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast
from weakref import WeakSet

import numba

from dasktc.once import LOCK, once

__all__ = ["Counts", "Kernel", "compiles", "inlined"]

Function = TypeVar("Function", bound=Callable[..., Any])
Counts = tuple[int, int, int, int]
"""Triangles, wedges, probes and the length of the longest bucket."""

_MONTH = 30 * 24 * 3600


def inlined(function: Function) -> Function:
    """Declare a function that is compiled as part of the kernels that call it."""
    return cast(Function, numba.njit(nogil=True, inline="always")(function))


def compiles(*kernels: Kernel) -> Callable[[Function], Function]:
    """Declare the kernels that a function calls; they are compiled before a counting task's timing starts."""

    def named(function: Function) -> Function:
        function.compiled = kernels  # type: ignore[attr-defined]
        return function

    return named


class Kernel:
    """A function that is compiled for one signature on its first call, and runs without the GIL.

    Parameters
    ----------
    function : callable
    signature : tuple of numba types
        Type of each argument.

    Attributes
    ----------
    loaded : int
        Number of kernels that this process has loaded, of all instances.
    instances : WeakSet of Kernel
        All kernels of the modules that this process has imported.
    """

    loaded = 0
    instances: ClassVar[WeakSet[Kernel]] = WeakSet()

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Any = None
        Kernel.instances.add(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.load()(*arguments)

    def load(self) -> Any:
        """Load the compiled function from the cache, or compile it; further calls do nothing."""
        if self._compiled is not None:
            return self._compiled
        with LOCK:
            if self._compiled is None:
                self._compiled = self._cached() or _only(numba.njit(nogil=True)(self._function), self._signature)
                Kernel.loaded += 1
        return self._compiled

    def _cached(self) -> Any:
        """Compile by way of the cache; None if no folder can hold it, or the cache is unusable."""
        for damaged in (False, True):
            dispatcher = numba.njit(nogil=True)(self._function)
            try:
                dispatcher._cache = _caches()(self._function)
            except (RuntimeError, ImportError, AttributeError):  # "cannot cache function ...: no locator available"
                return None
            try:
                with _locked(Path(dispatcher.stats.cache_path), _place(self._function), damaged):
                    return _only(dispatcher, self._signature)
            except OSError:  # a full disk, or a file system without locks
                return None
            except Exception:  # any: reading a pickle that a system crash cut short may raise anything
                continue
        return None


def _only(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Compile for this signature, and have calls of any other refused instead of compiled."""
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


@contextmanager
def _locked(folder: Path, kernel: str, damaged: bool = False) -> Iterator[None]:
    """Hold the lock of a kernel in the cache; if its files are damaged, first remove them."""
    import locket

    folder.mkdir(parents=True, exist_ok=True)
    with locket.lock_file(str(folder / f"{kernel}.lock")):
        if damaged:
            for index in folder.glob(f"*-{kernel}.*.nbi"):
                index.unlink()
        yield


@once
def _digest(*files: Path) -> str:
    """Digest of the contents of files."""
    return sha256(b"".join(sha256(file.read_bytes()).digest() for file in files)).hexdigest()[:16]


class _Locator:
    """Tells Numba where to cache a function, and by which stamp to recognise that its source is unchanged."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file, self._folder = file, folder
        self._place = _place(function)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator | None:
        folder = _folder() if Path(file).is_file() else None
        return cls(function, file, folder) if folder else None

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return _digest(Path(self._py_file))

    def get_disambiguator(self) -> str:
        return self._place


def _place(function: Callable[..., Any]) -> str:
    """Name a function by its module and line, as a part of the names of its files."""
    return f"{function.__module__}.{function.__code__.co_firstlineno}"


@once
def _caches() -> Any:
    """Numba's class of caches, in our folder."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    class InFolder(CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
        _locator_classes = (_Locator,)

    class Cache(FunctionCache):  # type: ignore[misc, unused-ignore]
        _impl_class = InFolder

    return Cache


def _folder() -> Path | None:
    """Create the cache folder for this Python, Numba and sources; None if none is writable."""
    sources = _digest(*sorted(Path(__file__).parent.glob("*.py")))
    for home in _homes():
        folder = home / "dasktc" / f"numba-{sys.implementation.cache_tag}-{numba.__version__}-{sources}"
        with suppress(OSError):
            new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)
            tempfile.TemporaryFile(dir=folder).close()
            if new:
                _remove_unused(folder.parent)
            return folder
    return None


def _remove_unused(parent: Path) -> None:
    """Remove folders of other versions that no process has used for a month."""
    for folder in parent.glob("numba-*"):
        with suppress(OSError):
            if folder.stat().st_mtime < time.time() - _MONTH:
                shutil.rmtree(folder)


def _homes() -> Iterator[Path]:
    """Yield the folders that may hold the cache, in order of preference."""
    if numba.config.CACHE_DIR:  # NUMBA_CACHE_DIR
        yield Path(numba.config.CACHE_DIR)
    else:
        with suppress(RuntimeError):  # no home directory is known
            yield _user_cache()
    with suppress(OSError):
        if sys.platform == "win32":
            yield Path(tempfile.gettempdir())  # the user's own
        else:
            folder = Path(tempfile.gettempdir(), f"dasktc-{os.getuid()}")
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
                yield folder  # nobody else can place code there that would be loaded and run


def _user_cache() -> Path:
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
