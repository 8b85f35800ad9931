"""Caches, on the device, tables that CUDA kernels make of blocks alone, for the next task on the same blocks.

The splits of a triple follow each other on a worker, and differ only in the rows to count: without a cache each would
make hubs' bitmaps, records of rows and narrow copies of columns again. Tables are kept until one of the blocks is
freed, a task on other blocks comes, or `forget` is called: never more than what one task was announced to need.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from dasktc.backends.csr import BlockTask

__all__ = ["forget", "once"]


class _Shelf:
    """The cached tables of a process; threads that count different blocks concurrently replace each other's."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a block may be freed, and call `clear`, wherever memory is collected
        self._blocks: tuple[Any, ...] = ()
        self._tables: dict[str, tuple[object, Any]] = {}

    def clear(self, *_: Any) -> None:
        with self._lock:
            self._blocks = ()
            self._tables.clear()

    def find(self, task: BlockTask, name: str, key: object) -> Any:
        """The cached table, or None; a table made otherwise, or of other blocks, is dropped."""
        with self._lock:
            if not self._holds(task):
                self.clear()
            entry = self._tables.get(name)
            if entry and entry[0] != key:
                del self._tables[name]
            return entry[1] if entry and entry[0] == key else None

    def keep(self, task: BlockTask, name: str, key: object, table: Any) -> None:
        with self._lock:
            if not self._holds(task):
                self.clear()
                self._blocks = tuple(weakref.ref(block, self.clear) for block in (task.table, task.stream))
            self._tables[name] = key, table

    def _holds(self, task: BlockTask) -> bool:
        blocks = [block() for block in self._blocks]
        return len(blocks) == 2 and blocks[0] is task.table and blocks[1] is task.stream


_shelf = _Shelf()


def once(task: BlockTask, name: str, key: object, make: Callable[[], Any]) -> Any:
    """Make a table of a task's table and stream blocks, or return the cached one.

    Parameters
    ----------
    task : BlockTask
    name : str
    key : object
        Everything else that the table depends on.
    make : callable () -> object, not None
        Makes the table, which nobody may change.
    """
    table = _shelf.find(task, name, key)
    if table is None:
        table = make()
        _shelf.keep(task, name, key, table)
    return table


def forget() -> None:
    """Free the cached tables, before memory is needed for other work."""
    _shelf.clear()
