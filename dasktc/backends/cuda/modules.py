"""Compiled modules of CUDA kernels: each is compiled once, in a thread, by whoever asks for it first.

NVRTC compiles without the GIL, some 0.5 s a module, or CuPy loads the module from its cache of compiled kernels. A
process that has just begun asks for the usual modules, which are then compiled side by side while cuDF is imported and
the source is read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from dasktc.backends.cuda.nvrtc import Defines

__all__ = ["Modules"]


class Modules:
    """Modules of one device by kernel file and macros.

    Parameters
    ----------
    compile_module : callable (kernel, defines) -> module
        Compiles a module; called in a thread of its own.
    """

    def __init__(self, compile_module: Callable[[str, Defines], Any]) -> None:
        self._compile_module = compile_module
        self._threads = ThreadPoolExecutor(thread_name_prefix="nvrtc")
        self._futures = dict[tuple[str, Defines], Future[Any]]()
        self._lock = Lock()

    def ask(self, kernel: str, defines: Defines) -> Future[Any]:
        """Begin to compile a module that nobody asked for yet, or that could not be compiled."""
        with self._lock:
            future = self._futures.get((kernel, defines))
            if future is None or (future.done() and future.exception() is not None):
                future = self._futures[kernel, defines] = self._threads.submit(self._compile_module, kernel, defines)
            return future

    def get(self, kernel: str, defines: Defines) -> Any:
        """Wait for a module; raises what its compilation raised."""
        return self.ask(kernel, defines).result()
