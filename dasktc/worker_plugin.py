"""What workers that dasktc starts do first. Imports distributed."""

from __future__ import annotations

import gc
from typing import Any

from distributed import WorkerPlugin

from dasktc import count  # noqa: F401  (what tasks need, and with it most of what is ever imported)
from dasktc.backend import get_backend

__all__ = ["Prepared"]


class Prepared(WorkerPlugin):  # type: ignore[misc]
    """Imports what tasks need, and leaves it out of all garbage collections: see module `garbage`.

    Also in a worker that is started again.

    Parameters
    ----------
    backend : str
        "cpu": it is loaded too. The CUDA backend takes its device when a task first needs it.
    """

    name = "dasktc-prepared"

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def setup(self, worker: Any) -> None:
        """Before the worker's first task."""
        if self._backend == "cpu":
            get_backend("cpu")
        gc.collect()
        gc.freeze()
