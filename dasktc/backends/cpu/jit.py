"""Compiles Numba kernels on first use, for one signature each, and caches them on disk for later processes.

The cache is in the user's cache folder (in NUMBA_CACHE_DIR where that is set) and never beside the sources, where an
uninstalled package would leave it behind. Numba's own cache differs in two more points. It takes no lock: two processes
that fill it at the same time can leave an index that names another process's machine code, and a process that loads it
may crash. Here each kernel has a lock between processes, which is held while it is loaded or compiled. And Numba checks
only the file in which a kernel is defined, not the files of functions that it calls; here the folder's name depends on
all sources of this package. Cache files that a system crash cut short, and that cannot be read, are made again.

Where no folder is writable, every process compiles for itself, and the log says why at level DEBUG. So it does with a
version of Numba whose cache is built differently: `_caches` and the line that uses it are all that is taken of Numba
beyond its documented interface (seen with 0.61 to 0.68; `test_kernels.py` fails where no cache is filled).
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import update_wrapper
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast, get_type_hints
from weakref import WeakSet

import numba
import numpy as np
from numba import types

from dasktc.once import LOCK, once

__all__ = [
    "Bytes", "ConstBytes", "ConstIds", "ConstInt32s", "ConstInt64Rows", "ConstInt64s", "ConstReals", "Counts", "Ids",
    "Int32Rows", "Int32s", "Int64Rows", "Int64s", "Kernel", "KernelOfIds", "Reals", "UInt16s",
    "UInt32Rows", "Word", "Words", "compiles", "ends_of", "inlined", "numba_types",
]  # fmt: skip

log = logging.getLogger("dasktc")

# Annotations of kernels' parameters. Const: the kernel does not write to the array. Others: contiguous.
Bytes = Annotated[Any, types.Array(types.uint8, 1, "C")]
UInt16s = Annotated[Any, types.Array(types.uint16, 1, "C")]
Int32s = Annotated[Any, types.Array(types.int32, 1, "C")]
Int64s = Annotated[Any, types.Array(types.int64, 1, "C")]
Words = Annotated[Any, types.Array(types.uint64, 1, "C")]
Reals = Annotated[Any, types.Array(types.float64, 1, "C")]
UInt32Rows = Annotated[Any, types.Array(types.uint32, 2, "C")]
Int32Rows = Annotated[Any, types.Array(types.int32, 2, "C")]
Int64Rows = Annotated[Any, types.Array(types.int64, 2, "C")]
ConstBytes = Annotated[Any, types.Array(types.uint8, 1, "C", readonly=True)]
ConstInt32s = Annotated[Any, types.Array(types.int32, 1, "C", readonly=True)]
ConstInt64s = Annotated[Any, types.Array(types.int64, 1, "C", readonly=True)]
ConstReals = Annotated[Any, types.Array(types.float64, 1, "C", readonly=True)]
ConstInt64Rows = Annotated[Any, types.Array(types.int64, 2, "C", readonly=True)]
Word = Annotated[Any, types.uint64]
Ids = Annotated[Any, "ids", "C", False]
"""Ids of the type for which a `KernelOfIds` is compiled."""
ConstIds = Annotated[Any, "ids", "C", True]

numba_types: dict[Any, Any] = {int: types.int64, bool: types.boolean, None: types.none}
"""Numba's type of a parameter by its annotation, if that is none of the above."""

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
Counts = tuple[int, int, int, int]
"""Triangles, wedges, probes and the length of the longest bucket."""

_MONTH = 30 * 24 * 3600


def inlined(function: Function) -> Function:
    """Declare a function that is compiled as part of the kernels that call it."""
    return cast(Function, numba.njit(nogil=True, inline="always")(function))


@inlined
def ends_of(key: Any, shift: Any) -> Any:
    """The ends of an edge's key, high << shift | low."""
    return np.uint64(key >> shift), np.uint64(key & ((1 << shift) - 1))


def compiles(*kernels: Kernel[Any]) -> Callable[[Function], Function]:
    """Declare the kernels that a function calls; they are compiled before a counting task's timing starts."""

    def named(function: Function) -> Function:
        function.compiled = kernels  # type: ignore[attr-defined]
        return function

    return named


class Kernel(Generic[Result]):
    """A function that is compiled for one signature on its first call, and runs without the GIL.

    Parameters
    ----------
    function : callable
    signature : tuple, optional
        Numba type, annotation or tuple of these for each argument; default: the function's annotations.
    ids : numba type, optional
        Type of the ids in arguments that are annotated as `Ids` and the like.

    Attributes
    ----------
    loaded : int
        Number of kernels that this process has loaded, of all instances.
    instances : WeakSet of Kernel
        All kernels of the modules that this process has imported.
    """

    loaded = 0
    instances: ClassVar[WeakSet[Kernel[Any]]] = WeakSet()

    def __init__(
        self, function: Callable[..., Result], signature: tuple[Any, ...] | None = None, ids: Any = None
    ) -> None:
        self._function = function
        self._signature = signature
        self._ids = ids
        self._compiled: Any = None
        update_wrapper(self, function)  # for its name, documentation and parameters
        Kernel.instances.add(self)

    def __call__(self, *arguments: Any) -> Result:
        """Run the compiled function."""
        result: Result = self.load()(*arguments)
        return result

    def load(self) -> Any:
        """Load the compiled function from the cache, or compile it; further calls do nothing."""
        if self._compiled is not None:
            return self._compiled
        with LOCK:
            if self._compiled is None:
                self._compiled = self._cached() or self._only(numba.njit(nogil=True)(self._function))
                Kernel.loaded += 1
        return self._compiled

    def _only(self, dispatcher: Any) -> Any:
        """Compile for this signature, and have calls of any other refused instead of compiled."""
        annotations = self._signature
        if annotations is None:
            hints = get_type_hints(self._function, include_extras=True)
            annotations = tuple(hints[name] for name in hints if name != "return")
        dispatcher.compile(tuple(map(self._type_of, annotations)))
        dispatcher.disable_compile()
        return dispatcher

    def _type_of(self, annotation: Any) -> Any:
        """Numba's type of a parameter."""
        if isinstance(annotation, types.Type):
            return annotation
        if isinstance(annotation, tuple):
            return types.Tuple([*map(self._type_of, annotation)])
        if annotation in numba_types:
            return numba_types[annotation]
        kind, *array = annotation.__metadata__
        return types.Array(self._ids, 1, *array) if array else kind

    def _cached(self) -> Any:
        """Compile by way of the cache; None if no folder can hold it, or the cache is unusable."""
        for damaged in (False, True):
            dispatcher = numba.njit(nogil=True)(self._function)
            try:
                dispatcher._cache = _caches()(self._function)
            except (RuntimeError, ImportError, AttributeError) as error:  # "... no locator available for file ..."
                log.debug("%s is compiled for this process alone: %r", self._function.__name__, error)
                return None
            try:
                with _locked(Path(dispatcher.stats.cache_path), _place(self._function), damaged):
                    return self._only(dispatcher)
            except OSError as error:  # a full disk, or a file system without locks
                log.debug("%s is compiled for this process alone: %r", self._function.__name__, error)
                return None
            except Exception as error:  # any: reading a pickle that a system crash cut short may raise anything
                log.debug("%s is compiled again: %r", self._function.__name__, error)
        return None


class KernelOfIds(Generic[Result]):
    """A kernel for ids of 32 bits and one for ids of 64 bits: the type of its first argument selects one of them.

    The function's first parameter is annotated as `Ids` and the like.
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        self._kernels = {np.dtype(ids.name): Kernel(function, ids=ids) for ids in (types.int32, types.int64)}

    def __call__(self, ids: Any, *arguments: Any) -> Result:
        """Run the compiled function."""
        return self._kernels[ids.dtype](ids, *arguments)


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
            # Remove folders of other versions that no process has used for a month.
            for other in folder.parent.glob("numba-*") if new else ():
                with suppress(OSError):
                    if other.stat().st_mtime < time.time() - _MONTH:
                        shutil.rmtree(other)
            return folder
    return None


def _homes() -> Iterator[Path]:
    """Yield the folders that may hold the cache, in order of preference."""
    if numba.config.CACHE_DIR:  # NUMBA_CACHE_DIR
        yield Path(numba.config.CACHE_DIR)
    else:
        with suppress(RuntimeError):  # no home directory is known
            home = Path.home()
            if sys.platform == "win32":
                yield Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
            elif sys.platform == "darwin":
                yield home / "Library" / "Caches"
            else:
                yield Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    with suppress(OSError):
        if sys.platform == "win32":
            yield Path(tempfile.gettempdir())  # the user's own
        else:
            folder = Path(tempfile.gettempdir(), f"dasktc-{os.getuid()}")
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
                yield folder  # nobody else can place code there that would be loaded and run
