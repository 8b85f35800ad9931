"""`dasktc.cluster` starts Dask workers on this host, as `--workers` does on the command line."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from dasktc.api.graph import OwnedCluster
from dasktc.executors.connect import started
from dasktc.executors.dask.progress import page_of
from dasktc.options import BACKENDS, PROTOCOLS
from dasktc.registry import check_choice

__all__ = ["StartedCluster", "cluster"]


class StartedCluster:
    """Workers that `cluster` started, and a client that is connected to them.

    Attributes
    ----------
    client : distributed.Client
        The active client of the process, so that every count uses it.
    """

    def __init__(self, client: Any, owned: OwnedCluster) -> None:
        self.client, self._owned = client, owned

    @property
    def dashboard_link(self) -> str:
        """Address of the page that shows a count's progress: `/dasktc` if it is available, else Dask's dashboard."""
        return page_of(self.client)

    def close(self) -> None:
        """Close the client and end the workers; a second call does nothing."""
        self._owned.close()

    def __enter__(self) -> Any:
        return self.client

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StartedCluster({self.client!r})"

    def _repr_html_(self) -> str:
        return str(self.client._repr_html_())


def cluster(
    workers: int | str = "all", backend: str = "auto", *, security: Any = None, protocol: str = "auto"
) -> StartedCluster:
    """Start workers on this host, as `--workers` does.

    A worker is a process with one thread, one per core, or one per GPU. Workers with a GPU have a pool of device memory
    and, if UCX is installed, exchange edges between GPUs with it. Until the workers end, `triangle_count` and `prepare`
    use them by default.

    Parameters
    ----------
    workers : int or "all"
        Number of workers; "all": one per core, or one per GPU that CUDA shows.
    backend : {"auto", "cpu", "cuda"}
        "auto": GPUs if there are any and dask-cuda is installed.
    security : distributed.Security, optional
        TLS certificates. Default: those of Dask's configuration.
    protocol : {"auto", "tcp", "ucx"}
        Protocol between workers with GPUs. "auto": UCX if distributed-ucxx is installed. Other workers use TCP.

    Returns
    -------
    StartedCluster
        A `with` statement yields its `distributed.Client` and ends the workers; without one use `.client` and
        `.close()`. The workers also end when the object is garbage collected, and with the process.

    Raises
    ------
    InputError
        Fewer than one worker, more than the host has memory or GPUs for, an unusable certificate, or UCX although it
        is not installed or the workers have no GPU.
    ClusterError
        Workers could not be started.

    Examples
    --------
    >>> import dasktc
    >>> with dasktc.cluster(workers=1, backend="cpu") as client:
    ...     int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), client))
    1
    """
    check_choice("backend", backend, BACKENDS)
    check_choice("protocol", protocol, PROTOCOLS)
    opened = ExitStack()
    owned = OwnedCluster(opened)
    try:
        opened.push(start := started(workers, backend, security, default=True, protocol=protocol))
        return StartedCluster(start.__enter__(), owned)
    except BaseException:  # an interrupt, too
        owned.close()
        raise
