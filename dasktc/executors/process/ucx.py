"""UCX, which copies blocks from GPU to GPU where TCP copies them through the host: when it is used, what it logs."""

from __future__ import annotations

import logging
import os
from collections import Counter
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from dasktc.errors import InputError
from dasktc.executors.base import Executor
from dasktc.once import LOCK
from dasktc.wording import advice

__all__ = ["chosen_protocol", "log_ucx", "refuse_ucx", "warn_of_tcp"]

log = logging.getLogger("dasktc")
_warned = set[str]()


def chosen_protocol(protocol: str) -> str:
    """Choose the network between workers with GPUs; "auto": UCX where it is installed, else TCP.

    UCX is refused (InputError) where it was asked for and is not installed.
    """
    if protocol == "ucx" and not _installed():
        raise InputError(
            "protocol 'ucx' is not installed here: distributed-ucxx brings it; pip install distributed-ucxx-cu13 (or "
            "-cu12), or leave the protocol out"
        )
    return ("ucx" if _installed() else "tcp") if protocol == "auto" else protocol


def refuse_ucx(protocol: str) -> None:
    """Refuse UCX (InputError), where it was asked for, between workers without GPUs."""
    if protocol == "ucx":
        raise InputError(
            "protocol 'ucx' joins workers that have GPUs, and these have none: they use TCP; leave it out, or pass "
            "backend 'cuda'"
        )


def _installed() -> bool:
    return find_spec("distributed_ucxx") is not None


def log_ucx(client: Any) -> None:
    """Log at DEBUG what UCX's Python layer would print to stderr, here and on all workers, present and to come.

    It reports every connection to a worker that dies as an error: 10 to 80 lines a death, while the count goes on.
    """
    if "UCXPY_LOG_LEVEL" not in os.environ:  # else somebody wants to see them
        _redirect()
        client.register_plugin(_plugin())


def _plugin() -> Any:
    from distributed import WorkerPlugin

    class LogUcx(WorkerPlugin):  # type: ignore[misc]
        idempotent = True
        name = "dasktc-log-ucx"

        def setup(self, worker: Any) -> None:
            _redirect()

    return LogUcx()


def _redirect() -> None:
    """Replace the handlers of UCX's Python logger, which print, by one that passes records to dasktc's logger."""
    logger = logging.getLogger("ucx")
    if not any(isinstance(handler, _ToOurLog) for handler in logger.handlers):
        logger.handlers[:] = [_ToOurLog()]


class _ToOurLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.debug("UCX: %s", " ".join(record.getMessage().split()))


def warn_of_tcp(executor: Executor) -> None:
    """Warn once per cluster where several GPUs of one host use TCP and UCX would be faster.

    The executor's workers count with CUDA.
    """
    client = getattr(executor, "client", None)
    address = getattr(getattr(client, "scheduler", None), "address", None)
    with LOCK:
        if address is None or address in _warned:
            return
        _warned.add(address)
    tcp_workers = {worker for worker in executor.worker_threads if not worker.startswith(("ucx", "inproc"))}
    hosts = Counter(urlsplit(worker).hostname for worker in tcp_workers)
    host, number = max(hosts.items(), key=lambda pair: pair[1], default=("", 0))
    if number > 1:
        log.warning(
            "dasktc: warning: %d GPU workers of %s send each other edges by TCP, through the host's memory, at about "
            "1 GB/s: UCX takes them from GPU to GPU at 45; %sstart them by %s or LocalCUDACluster(protocol='ucx', "
            "rmm_pool_size=0.01)",
            number,
            host,
            "" if _installed() else "install distributed-ucxx-cu13 (or -cu12), and ",
            advice(workers="all"),
        )
