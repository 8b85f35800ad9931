"""Lets a worker of a cluster that this process started come back late.

Dask's clusters look, 15 s after a worker died, whether one of its name is there; if not they end its nanny, which was
just starting it again, and make no other (`distributed.deploy.spec.SpecCluster._update_worker_status`). A worker with a
GPU needs longer than that beside others that start: it imports cuDF, makes a CUDA context and sets up UCX. So a cluster
may lose all its workers by two deaths a few seconds apart.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any

from dasktc.executors.shared_context import SharedContext

__all__ = ["await_late_workers", "late_workers"]

TIMEOUT, PATIENCE = "distributed.deploy.lost-worker-timeout", "1h"


def _patient() -> AbstractContextManager[Any]:
    import dask

    patient: AbstractContextManager[Any] = dask.config.set({TIMEOUT: PATIENCE})
    return patient


late_workers = SharedContext(_patient)
"""Dask reads the setting when a worker goes, in the process that started the cluster."""


def await_late_workers(holder: object, client: Any) -> None:
    """Let workers of a client's cluster come back late for as long as an object lives, if this process started it."""
    if getattr(client, "cluster", None) is not None:
        late_workers.__enter__()
        weakref.finalize(holder, late_workers.__exit__)
