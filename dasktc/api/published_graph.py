"""`get_graph` returns a graph that a client of the same cluster published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dasktc.api.graph import Graph
from dasktc.errors import InputError, shown
from dasktc.executors.connect import active_client, check_client

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["get_graph"]


def get_graph(name: str, client: Client | None = None) -> Graph:
    """Return a graph that a client of the same cluster published: `client.publish_dataset(name=graph)`.

    Its blocks stay on the cluster until the name is unpublished and no client holds the graph any more.

    Parameters
    ----------
    name : str
    client : distributed.Client, optional
        Default: the active client.

    Raises
    ------
    InputError
        No client is connected, it is asynchronous, or its cluster has no graph of that name.

    Examples
    --------
    >>> import dasktc
    >>> with dasktc.cluster(workers=1, backend="cpu") as client:  # doctest: +SKIP
    ...     client.publish_dataset(roads=dasktc.prepare("roads.txt", client))
    ...     dasktc.get_graph("roads", client).triangle_count()
    """
    client = active_client() if client is None else client
    if client is None:
        raise InputError("no client is connected: published graphs are on a cluster; make a distributed.Client first")
    check_client(client)
    graph = client.get_dataset(name, default=None)
    if not isinstance(graph, Graph):
        known = ", ".join(map(str, client.list_datasets())) or "nothing"
        what = "is not published" if graph is None else f"is of type {type(graph).__name__}, no graph,"
        raise InputError(
            f"{shown(name)} {what} at {client.scheduler.address}, which has {known}: publish a prepared graph with "
            "client.publish_dataset(name=graph)"
        )
    return graph
