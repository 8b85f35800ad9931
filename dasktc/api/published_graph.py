"""`get_graph` returns a graph that a client of the same cluster published."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from dasktc.api.graph import Graph, OwnedCluster
from dasktc.api.opener import enter
from dasktc.errors import InputError, shown
from dasktc.executors.connect import active_client, check_client, joined
from dasktc.executors.place import Place
from dasktc.executors.process.signals import held

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["get_graph"]


def get_graph(name: str, client: ClientLike | None = None) -> Graph:
    """Return a graph that a client of the same cluster published: `client.publish_dataset(name=graph)`.

    Its blocks stay on the cluster until the name is unpublished and no client holds the graph any more.

    Parameters
    ----------
    name : str
    client : distributed.Client, Cluster, str or path, optional
        As for `triangle_count`; the graph owns a connection that is opened for it. Default: the active client.

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
    place = Place.of(client)
    with ExitStack() as stack:
        connected = place.client or active_client()
        if place.connects:
            connected = enter(stack, joined(place.scheduler, place.scheduler_file, place.security))
        if connected is None:
            raise InputError(
                "no client is connected: published graphs are on a cluster; make a distributed.Client first"
            )
        check_client(connected)
        graph = connected.get_dataset(name, default=None)
        if not isinstance(graph, Graph):
            known = ", ".join(map(str, connected.list_datasets())) or "nothing"
            what = "is not published" if graph is None else f"is of type {type(graph).__name__}, no graph,"
            raise InputError(
                f"{shown(name)} {what} at {connected.scheduler.address}, which has {known}: publish a prepared graph "
                "with client.publish_dataset(name=graph)"
            )
        if not place.connects:
            return graph
        with held():
            return Graph(graph._context, OwnedCluster(stack.pop_all()))
