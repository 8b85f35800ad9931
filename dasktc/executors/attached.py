"""The executor of an unpickled graph, whose futures another client of the cluster made."""

from __future__ import annotations

import io
import pickle
from threading import RLock
from typing import Any, Self

from dasktc.backends import lazy_backend
from dasktc.errors import InputError
from dasktc.executors.connect import active_client, current_client
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.internals import keep_futures

__all__ = ["AttachedExecutor", "futures_in"]


class AttachedExecutor(DaskExecutor):
    """The executor of an unpickled graph, which finds its client on first use.

    It does so no earlier because Dask unpickles the futures of a published object first, and binds them to the client
    that asked for it afterwards. Code with a current client (`Client.as_current`) unpickles for that client: its
    futures are bound at once, so that the pickled graph may go.

    Parameters
    ----------
    futures : list of Future
        All futures of the graph.
    backend : str
        Name of the backend.
    patience, retries : float, int
        As for `DaskExecutor`.
    """

    def __init__(self, futures: list[Any], backend: str, patience: float, retries: int) -> None:
        self._futures, self._options, self.backend = futures, (patience, retries), lazy_backend(backend)
        self._attaching, self._is_attached = RLock(), False
        client = current_client()
        if client is not None:
            self._bind(client)

    def __copy__(self) -> Self:  # of the executor with its client
        self._attach()
        duplicate = object.__new__(type(self))
        vars(duplicate).update(vars(self))
        return duplicate

    def __getattr__(self, name: str) -> Any:  # of an attribute that `DaskExecutor.__init__` makes
        if name.startswith("__"):
            raise AttributeError(name)
        self._attach()
        return self.__getattribute__(name)

    def _attach(self) -> None:
        with self._attaching:
            if not self._is_attached:
                self._find_client()
                self._is_attached = True

    def _find_client(self) -> None:
        client = next((future.client for future in self._futures if future.client is not None), active_client())
        if client is None:
            raise InputError(
                "no client is connected to the cluster that holds this graph: an unpickled graph refers to its blocks "
                "there; make a distributed.Client first, or prepare the graph again"
            )
        self._bind(client)
        super().__init__(client, *self._options, backend=self.backend)

    def _bind(self, client: Any) -> None:
        for future in self._futures:
            if future.client is None:
                future.bind_client(client)
        keep_futures(client)  # as Dask does for published futures: they live as long as this graph


def futures_in(*objects: Any) -> list[Any]:
    """Return the futures that objects hold, however deep, as pickling these objects meets them."""
    finder = _Finder()
    finder.dump(objects)
    return list(finder.futures.values())


class _Finder(pickle.Pickler):
    """Notes the futures that it meets.

    A class in a function would hold them until Python collects cycles, for every class is in one.
    """

    def __init__(self) -> None:
        from distributed import Future

        super().__init__(io.BytesIO(), protocol=5, buffer_callback=lambda _: False)
        self._type = Future
        self.futures: dict[int, Any] = {}  # by identity: several may have the same key, and each is bound to a client

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, self._type):
            self.futures[id(obj)] = obj
            return id(obj)
        return None
