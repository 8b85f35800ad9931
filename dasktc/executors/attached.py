"""The executor of an unpickled graph: over futures that another client of the cluster made."""

from __future__ import annotations

import io
import pickle
from typing import Any

from dasktc.errors import InputError
from dasktc.executors.connect import active_client
from dasktc.executors.dask.executor import DaskExecutor

__all__ = ["AttachedExecutor", "futures_in"]


class AttachedExecutor:
    """The executor of a graph that was unpickled, made when it is first used.

    Dask binds the futures of a published object to the client that asked for it only after they are unpickled.

    Parameters
    ----------
    futures : list of Future
        All that the graph has.
    backend : str
        Its name.
    patience, retries : float, int
        As of `DaskExecutor`.
    """

    def __init__(self, futures: list[Any], backend: str, patience: float, retries: int) -> None:
        self._futures, self._backend, self._options = futures, backend, (patience, retries)
        self._executor: DaskExecutor | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._executor is None:
            self._executor = self._attached()
        return getattr(self._executor, name)

    def _attached(self) -> DaskExecutor:
        client = next((future.client for future in self._futures if future.client is not None), active_client())
        if client is None:
            raise InputError(
                "no client is connected to the cluster that holds this graph: an unpickled graph refers to its blocks "
                "there; make a distributed.Client first, or prepare the graph again"
            )
        for future in self._futures:
            if future.client is None:
                future.bind_client(client)
        client._inform_scheduler_of_futures()  # as Dask does for what it publishes: they stay while this graph does
        return DaskExecutor(client, *self._options).for_backend(self._backend)


def futures_in(*objects: Any) -> list[Any]:
    """Return the futures that objects hold, however deep; what is found is what pickle meets.

    Parameters
    ----------
    *objects : object
    """
    from distributed import Future

    futures: dict[int, Any] = {}  # several may be of one key, and each is bound to a client

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, Future):
                futures[id(obj)] = obj
                return id(obj)
            return None

    Pickler(io.BytesIO(), protocol=5, buffer_callback=lambda _: False).dump(objects)
    return list(futures.values())
