"""`dasktc.cluster` starts Dask workers on this host, or joins a running cluster."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from dasktc.api.graph import OwnedCluster
from dasktc.api.opener import enter
from dasktc.errors import InputError
from dasktc.executors.connect import joined, started
from dasktc.executors.dask.progress import page_of
from dasktc.executors.place import HasClient, Place
from dasktc.executors.process.signals import held
from dasktc.options import BACKENDS, PROTOCOLS, Backend, Protocol
from dasktc.registry import check_choice

if TYPE_CHECKING:
    from distributed import Client, Security

__all__ = ["Cluster", "cluster"]


class Cluster(HasClient):
    """Workers that `cluster` started or joined, and a client that is connected to them.

    Attributes
    ----------
    client : distributed.Client
        The active client of the process, so that every count uses it.
    """

    def __init__(self, client: Client, owned: OwnedCluster) -> None:
        self.client, self._owned = client, owned

    @property
    def dashboard_link(self) -> str:
        """Address of the page that shows a count's progress: `/dasktc` if it is available, else Dask's dashboard."""
        return page_of(self.client)

    def close(self) -> None:
        """Close the client, and end the workers that were started; a second call does nothing."""
        self._owned.close()

    def __enter__(self) -> Client:
        return self.client

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cluster({self.client!r})"

    def _repr_html_(self) -> str:
        return str(self.client._repr_html_())


def cluster(
    workers: int | Literal["all"] | None = None,
    backend: Backend = "auto",
    *,
    scheduler: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    security: Security | None = None,
    protocol: Protocol = "auto",
) -> Cluster:
    """Start workers on this host, or join the cluster of a running scheduler.

    A worker that is started is a process with one thread, one per core, or one per GPU. Workers with a GPU have a pool
    of device memory and, if UCX is installed, exchange edges between GPUs with it. Until the cluster is closed,
    `triangle_count` and `prepare` use it by default.

    Parameters
    ----------
    workers : int or "all", optional
        Number of workers to start. Default: "all", one per core, or one per GPU that CUDA shows.
    backend : {"auto", "cpu", "cuda"}
        Kind of workers to start. "auto": GPUs if there are any and dask-cuda is installed.
    scheduler : str, optional
        Join the cluster of the scheduler at this address, e.g. "tcp://10.0.0.1:8786".
    scheduler_file : path, optional
        Join the cluster of the scheduler that wrote this file.
    security : distributed.Security, optional
        TLS certificates. Default: those of Dask's configuration.
    protocol : {"auto", "tcp", "ucx"}
        Protocol between started workers with GPUs. "auto": UCX if distributed-ucxx is installed. Other workers use TCP.

    Returns
    -------
    Cluster
        A `with` statement yields its `distributed.Client` and closes it; without one use `.client` and `.close()`.
        Started workers end then, or when the object is garbage collected, and with the process; joined ones go on.

    Raises
    ------
    InputError
        Fewer than one worker, more than the host has memory or GPUs for, an unusable certificate, UCX although it is
        not installed or the workers have no GPU, or options to start workers beside a cluster to join.
    ClusterError
        Workers could not be started, or the scheduler does not answer.

    Examples
    --------
    >>> import dasktc
    >>> with dasktc.cluster(workers=1, backend="cpu") as client:
    ...     int(dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), client))
    1
    """
    check_choice("backend", backend, BACKENDS)
    check_choice("protocol", protocol, PROTOCOLS)
    place = Place(workers=workers, scheduler=scheduler, scheduler_file=scheduler_file, security=security)
    is_joining = place.scheduler is not None or place.scheduler_file is not None
    if is_joining and (backend, protocol) != ("auto", "auto"):
        argument = f"backend={backend!r}" if backend != "auto" else f"protocol={protocol!r}"
        raise InputError(
            f"{argument} and {place.names[0]} were both given: the workers of a cluster to join run already; keep one"
        )
    if is_joining:
        start = joined(place, default=True)
    else:
        start = started("all" if workers is None else workers, backend, security, default=True, protocol=protocol)
    with ExitStack() as stack:
        client = enter(stack, start)
        with held():
            return Cluster(client, OwnedCluster(stack.pop_all()))
