"""Gives a worker of a cluster that this process started more time to come back.

15 s after a worker died, Dask's clusters look whether a worker of its name is there. If not, they end its nanny, which
was just starting it again, and start no other (`distributed.deploy.spec.SpecCluster._update_worker_status`). A worker
with a GPU needs longer than that while others start beside it: it imports cuDF, makes a CUDA context and sets up UCX.
So two deaths a few seconds apart may cost a cluster all its workers.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any

from dasktc.executors.process.shared_context import SharedContext

__all__ = ["await_late_workers", "late_workers"]

TIMEOUT, PATIENCE = "distributed.deploy.lost-worker-timeout", "1h"


def _patient() -> AbstractContextManager[Any]:
    import dask

    context: AbstractContextManager[Any] = dask.config.set({TIMEOUT: PATIENCE})
    return context


late_workers = SharedContext(_patient)
"""Raises Dask's timeout, which is read when a worker leaves, in the process that started the cluster."""


def await_late_workers(holder: object, client: Any) -> None:
    """Give late workers of a client's cluster more time while an object lives, if this process started the cluster."""
    if getattr(client, "cluster", None) is not None:
        late_workers.__enter__()
        weakref.finalize(holder, late_workers.__exit__)
