"""Prepared graphs that exist: `open_graph` opens a saved one, `get_graph` one that a client published."""

from __future__ import annotations

import os
from contextlib import ExitStack
from copy import copy
from typing import TYPE_CHECKING

from dasktc.api.count import prepare
from dasktc.api.graph import Graph, OwnedCluster
from dasktc.api.opener import enter
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import InputError, shown
from dasktc.executors.connect import active_client, check_client, joined
from dasktc.executors.place import Place
from dasktc.executors.process.signals import held
from dasktc.options import Backend, Method, MethodName, RunOptions, path_text
from dasktc.pipeline.prepare import Progress
from dasktc.saved.folder import MANIFEST
from dasktc.saved.opening import saved_graph

if TYPE_CHECKING:
    from dasktc.executors.place import ClientLike

__all__ = ["get_graph", "open_graph"]


@said_in_one_line
def open_graph(
    path: str | os.PathLike[str],
    client: ClientLike | None = None,
    *,
    backend: Backend = "auto",
    method: Method | MethodName = "auto",
    memory: int | str | None = None,
    threads: int | None = None,
    run: RunOptions = RunOptions(),  # noqa: B008  (frozen)
    progress: Progress | bool | None = None,
) -> Graph:
    """Open a graph that `Graph.save` wrote; it is ready to be counted without preparation.

    Each worker reads the blocks that it counts and verifies their checksums; afterwards the folder is no longer needed.
    The graph may have been saved by other workers, more or fewer, on the CPU or on GPUs.

    Parameters
    ----------
    path : path or fsspec URL
        The folder, which all workers must see.
    client, backend, memory, threads, run, progress
        As for `triangle_count`.
    method : Method or str
        Of a method only `kernel` and `splits` may differ from those of the saved graph. Default: the kernel for which
        it was prepared (on another backend the choice of "auto" there), and the splits that the workers need.

    Returns
    -------
    Graph
        As from `prepare`, with the scheme, n and order with which it was saved.

    Raises
    ------
    InputError
        There is no saved graph; it is damaged or of a newer format; a file of it cannot be read; or there is too little
        memory.
    ClusterError
        The cluster does not answer or has no workers.

    Examples
    --------
    >>> import dasktc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nbytes = dasktc.prepare(([0, 1, 2], [1, 2, 0])).save(f"{folder}/triangle")
    ...     graph = dasktc.open_graph(f"{folder}/triangle")
    >>> graph.triangles().to_dict()
    {0: 1, 1: 1, 2: 1}
    """
    archive = saved_graph(path_text("path", path))
    if archive is None:
        raise InputError(
            f"{shown(os.fspath(path))} holds no saved graph: it does not exist, or has no {MANIFEST}, which is "
            "written last; save one with Graph.save or `dasktc prepare`, or give edges to dasktc.prepare"
        )
    return prepare(
        archive, client, backend=backend, method=method, memory=memory, threads=threads, run=run, progress=progress
    )


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
        joined_client = place.client or active_client()
        if place.connects:
            joined_client = enter(stack, joined(place))
        if joined_client is None:
            raise InputError(
                "no client is connected: published graphs are on a cluster; make a distributed.Client first"
            )
        check_client(joined_client)
        graph = joined_client.get_dataset(name, default=None)
        if not isinstance(graph, Graph):
            names = ", ".join(map(str, joined_client.list_datasets())) or "nothing"
            problem = "is not published" if graph is None else f"is of type {type(graph).__name__}, no graph,"
            raise InputError(
                f"{shown(name)} {problem} at {joined_client.scheduler.address}, which has {names}: publish a prepared "
                "graph with client.publish_dataset(name=graph)"
            )
        found = copy(graph)  # of a cluster in this process Dask hands out the published object itself
        if place.connects:
            with held():
                found._owned = OwnedCluster(stack.pop_all())
        return found
