"""Running stages on workers with a GPU each, all of which keep `--memory` of their devices.

What the scheduler moves and the workers hold are `placed.Result`s: module `at_worker`. Everything else is as on any
cluster. Each counting task is sent with the blocks of the next one of its share, which come while it waits.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dasktc.errors import ClusterError
from dasktc.executors.base import Fold
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.device.handles import Result
from dasktc.executors.device.prefetch import TransferStats
from dasktc.executors.device.worker_store import Counted, Within, end, forget, peak
from dasktc.executors.spill.file_store import LEAST
from dasktc.executors.spill.prefetch import with_next
from dasktc.executors.spill.work_dir import WorkDir

__all__ = ["OnGpus"]


class OnGpus(DaskExecutor):
    """Submits the stage functions to workers that keep a budget.

    Parameters
    ----------
    executor : DaskExecutor
    work : WorkDir or None
        All workers see it; None: each has its own folder.
    memory : int
        Bytes on each device.
    host : int, optional
        Bytes of pinned memory of each worker. Default: half of what it may take.
    small : int, optional
        As for `OnDisk`.

    Attributes
    ----------
    moves : dict of str to Moves
        Of the counting tasks that ran last, by worker.
    """

    def __init__(
        self,
        executor: DaskExecutor,
        work: WorkDir | None,
        memory: int,
        host: int | None = None,
        small: int | None = None,
    ) -> None:
        vars(self).update(vars(executor))
        self._work, self._memory, self._copies = work, memory, float(executor.memory())
        self._within = Within(self._token, None if work is None else work.folder, memory, host, small)
        self.memory_per_call = self._needed = memory - memory // 4
        self.moves: dict[str, TransferStats] = {}

    def memory(self, budget: int | None = None, backend: str = "cpu") -> int:
        """What is left of a device's budget for a task: a worker counts one at a time."""
        return self._memory if budget is None or budget >= LEAST else budget

    def peaks(self) -> dict[str, int]:
        """The most bytes on each worker's device until now."""
        return dict(self._waiting.ask(self.client.run, peak, self._token, on_error="ignore"))

    def close(self) -> None:
        """Have the workers let go of everything."""
        try:
            if self.client.status == "running":
                with suppress(ClusterError):  # without a scheduler there is nobody to ask
                    self._waiting.ask(self.client.run, forget, self._token, on_error="ignore")
        finally:
            if self._work is not None:
                self._work.close()

    def _wrap_call(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """A call is made within the budget."""
        return (function,) if isinstance(function, Counted) else (self._within, function)

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Submit the calls; each result is kept before the next is made, and handed over by a task of its own."""
        plain = self._plain
        made = [plain(stage, self._within.stream, function, *call) for call in calls]
        counts = self.gather([plain(stage, len, results) for results in made])
        return [
            plain(stage, operator.getitem, results, k)
            for results, count in zip(made, counts, strict=True)
            for k in range(count)
        ]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring results here, where there may be no GPU: they are of the host."""
        return [_loaded(found) for found in super().gather(handles)]

    def values(self, handles: list[Any]) -> list[Any]:
        """Futures of results, not of where they are."""
        return [self._plain("values", self._within.value, handle) for handle in handles]

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Take small results as they come; blocks are copied to the device while the task before counts."""
        counted, ahead = self._ahead(function, calls, False)
        for _, result in self._results(partial(self._submit_all, stage, counted), ahead):
            yield result
        self._end()

    def fold_unordered(
        self,
        stage: str,
        function: Callable[..., list[Any]],
        calls: Iterable[tuple[Any, ...]],
        keys: Callable[[Any], Sequence[Any]],
        fold: Fold,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """As on any cluster; arrays are kept where the budget has room for them."""
        counted, ahead = self._ahead(function, calls, True)
        found = super().fold_unordered(stage, counted, ahead, keys, fold)
        self._end()
        return found

    def _ahead(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], folded: bool
    ) -> tuple[Counted, list[tuple[Any, ...]]]:
        """Calls, each with those blocks of the one after it that it does not need itself."""
        work = [tuple(call) for call in calls]
        counted = Counted(self._within, function, self._needed, len(work[0]) if work else 0, folded)
        return counted, [(*call, *_blocks(following or (), call)) for call, following in with_next(work)]

    def _end(self) -> None:
        self.moves = dict(self._waiting.ask(self.client.run, end, self._token, on_error="ignore"))

    def _beside(self, blocks: int) -> float:
        """Blocks that came from other workers are in the host's memory."""
        return self._copies


def _blocks(following: tuple[Any, ...], call: tuple[Any, ...]) -> list[Any]:
    from distributed import Future

    own = {arg.key for arg in call if isinstance(arg, Future)}
    return list({arg.key: arg for arg in following if isinstance(arg, Future) and arg.key not in own}.values())


def _loaded(found: Any) -> Any:
    if isinstance(found, list):
        return [_loaded(item) for item in found]
    return pickle.loads(found.hosted()[0].head) if isinstance(found, Result) else found
