"""Running stages on one GPU within `--memory`, which is device memory there.

Results stay on the device while they fit in three quarters of the budget; then they are copied to pinned memory of
the host, up to `--host-memory`, and then to files in the work directory. Each comes back when a stage needs it,
and stays if there is room again. What a call takes beside results is not foretold but kept by the allocator: a call
that finds the budget used up is made again after all results have left the device.

Counting tasks overlap three things: a thread reads the blocks of the next tasks from files, or finds them in pinned
memory, and copies them on a stream of its own, while this task counts. Blocks that a later task shares stay.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from dasktc.backends.cuda import block_cache as kept
from dasktc.errors import InputError
from dasktc.executors.base import Fold
from dasktc.executors.device.handles import Part, Result, Used, place_of, places_of
from dasktc.executors.device.prefetch import HORIZON, AheadOnDevice, TransferStats
from dasktc.executors.spill.file_store import Later, OnDisk, once_each
from dasktc.executors.spill.value_files import Flat, Stored, store
from dasktc.executors.spill.work_dir import WorkDir
from dasktc.planning.plan import size

if TYPE_CHECKING:
    from dasktc.executors.device.copies import Copied
    from dasktc.executors.device.packing import Packed

__all__ = ["OnGpu"]

T = TypeVar("T")
BLOCKS_AHEAD = 3
"""Blocks that room is made for beside a task's own, where there is any: with one, every second copy is waited for."""


class OnGpu(OnDisk):
    """Calls the stage functions in this process, and keeps what is on the device within a budget.

    Parameters
    ----------
    work : WorkDir
    budget : int
        Bytes on the device.
    host : int
        Bytes of pinned memory for results that left it.
    small : int, optional
        As for `OnDisk`.

    Attributes
    ----------
    moves : TransferStats
        Of the counting tasks that ran last.
    """

    def __init__(self, work: WorkDir, budget: int, host: int, small: int | None = None) -> None:
        from dasktc.backends import get_backend
        from dasktc.backends.cuda import memory as cuda_memory
        from dasktc.executors.device import copies as cuda_copies

        get_backend("cuda")
        super().__init__(work, budget, small)
        self._limit = self._budget - self._budget // 4
        self._there, self._copies = cuda_memory.Budget(self._budget), cuda_copies.Copies(host)
        self._results: weakref.WeakSet[Result] = weakref.WeakSet()
        self._used = Used()
        self.moves = TransferStats()

    @property
    def peak(self) -> int:
        """The most bytes on the device until now."""
        return self._there.peak

    def set_task_memory(self, needed: int) -> None:
        """Hear what a counting task takes: results make room for it when tasks begin."""
        self._needed = needed

    def submit(self, stage: str, function: Callable[..., Any], *args: Any, prefer: str | None = None) -> Any:
        """Call the function."""
        if function is operator.getitem and isinstance(args[0], Result) and args[0].many:
            return Part(*args)
        return self._keep(self._call(function, *args))

    def stream(self, stage: str, function: Callable[..., Iterator[Any]], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call the function; each result is kept before the next is made."""
        found: list[Any] = []
        for call in calls:
            before = len(found)

            def go_on(*args: Any, before: int = before) -> None:
                for result in islice(function(*args), len(found) - before, None):
                    found.append(self._keep(result))

            self._call(go_on, *call)
        return found

    def map(self, stage: str, function: Callable[..., Any], inputs: list[Any], *shared: Any) -> list[Any]:
        """Call the function for each input, dropping the input afterwards."""
        inputs.reverse()
        results, loaded = [], self._call(lambda *found: found, *shared)
        while inputs:
            result = self._length(inputs[-1]) if function is len else None
            if result is None:
                result = self._call(lambda value: function(value, *loaded), inputs[-1])
            del inputs[-1]
            results.append(self._keep(result))
        return results

    def fold(self, stage: str, fold: Fold, inputs: list[Any]) -> Any:
        """Reduce each input alone and add the results: a call that is made again must not add twice."""
        inputs.reverse()
        result = fold.start() if not inputs else self.submit(stage, fold.alone, inputs.pop())
        while inputs:
            result = self.submit(stage, fold.combine, [result, self.submit(stage, fold.alone, inputs.pop())])
        return result

    def transpose(self, stage: str, handles: list[Any], count: int) -> list[list[Any]]:
        """Transpose lists of pieces; each goes when nobody needs it any more, not with the last of its list."""
        rows, handles[:] = list(handles), []
        for row in rows:
            if isinstance(row, Result):
                self._call(lambda row=row: self._set_apart(row))
        return [[Part(row, k, True) if isinstance(row, Result) else row[k] for row in rows] for k in range(count)]

    def gather(self, handles: Iterable[Any]) -> list[Any]:
        """Bring (small) results here."""
        return self._call(lambda *found: list(found), *handles)

    def map_unordered(
        self, stage: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call the function as the results are asked for; the next calls' blocks are copied meanwhile."""
        work = [tuple(call) for call in calls]
        self._make_room_for(work)
        with self._there, AheadOnDevice(self._beside(work), self._copies) as blocks:
            for number, call in enumerate(work):
                following = work[number + 1 : number + 1 + HORIZON]
                args = self._found(blocks, call, following)
                try:
                    result = function(*args)
                finally:
                    self._copies.fence()  # before blocks are let go of
                    del args
                yield result
            self.moves = blocks.moves()

    def fold_unordered(self, *given: Any) -> tuple[list[Any], dict[Any, Any]]:
        """Combine each call's arrays; results stay on the device where calls have room beside them."""
        before, self._limit = self._limit, min(self._limit, max(0, self._budget - self._needed))
        self._leave_until(self._limit)
        try:
            return super().fold_unordered(*given)
        finally:
            self._limit = before

    def _made(self, function: Callable[..., list[Any]], call: tuple[Any, ...]) -> list[Any]:
        return self._call(function, *call)

    def _found(self, blocks: AheadOnDevice, call: tuple[Any, ...], following: list[tuple[Any, ...]]) -> list[Any]:
        """A call's arguments; those of the ones that follow are on their way."""
        wanted = places_of(call)
        found = self._call(lambda: blocks.use(wanted))
        blocks.follow([places_of(later) for later in following])
        return [found[place] if (place := place_of(arg)) in found else self._resolve(arg) for arg in call]

    def _make_room_for(self, work: list[tuple[Any, ...]]) -> None:
        """Let results leave that a task has no room beside; if all tasks' blocks fit at once, none."""
        of_tasks = [{arg for arg in call if isinstance(arg, Result)} for call in work]
        blocks, task = set().union(*of_tasks), max((sum(arg.nbytes for arg in of) for of in of_tasks), default=0)
        scratch = max(0, self._needed - task)
        missing = sum(block.nbytes for block in blocks if block.places is not None)
        if self._resident() + missing + scratch <= self._budget:
            return
        ahead = (BLOCKS_AHEAD - 1) * max((block.nbytes for block in blocks), default=0)  # of one the plan has thought
        self._leave_until(max(0, self._budget - self._needed - ahead))

    def _leave_until(self, memory_per_call: int) -> None:
        """Let results leave, the largest first, until the others take so many bytes at the most."""
        for result in sorted(self._on_device(), key=lambda result: -result.nbytes):
            if self._resident() <= memory_per_call:
                break
            self._leave(result)

    def _beside(self, work: list[tuple[Any, ...]]) -> int:
        largest = max((place.nbytes for call in work for place in places_of(call)), default=0)
        return max(largest, self._budget - self._needed + largest - self._resident())

    # calls within the budget

    def _call(self, function: Callable[..., T], *handles: Any) -> T:
        """Call a function of results, if need be again after all others have left the device."""
        again = False
        while True:
            try:
                with self._there:
                    return function(*once_each(self._resolve, handles))
            except MemoryError as error:
                why = " ".join(str(error).split())
            moved, tried, again = self._all_out(), again, True
            if tried and not moved:
                raise InputError(
                    f"a stage takes more than the {size(self._budget)} that --memory leaves it on the device ({why}): "
                    "the graph, or one part of its source, is too large for it; raise --memory"
                )

    def _all_out(self) -> bool:
        """Have all results leave the device, and fewer stay there from now on; whether there were any.

        What a kernel keeps between tasks goes too.
        """
        kept.forget()
        there = self._on_device()
        self._limit //= 2
        for result in there:
            self._leave(result)
        return bool(there)

    # where results are

    def _keep(self, result: Any) -> Any:
        """The handle of a result: itself if it is small."""
        with self._there:
            return self._put(result)

    def _put(self, result: Any) -> Any:
        from dasktc.executors.device.packing import detached, pack

        many = isinstance(result, list)
        values = result if many else [result]
        packed = [pack(value) for value in values]
        sizes, on_host = [value.on_device for value in packed], sum(len(value.head) for value in packed)
        if sum(sizes) + on_host < self._small:
            alone = [detached(value) for value in values]
            return alone if many else alone[0]
        stays = sum(sizes) > on_host and self._resident() + sum(sizes) <= self._limit
        found = Result(result, None if stays else self._out(packed, many), sizes, self._used)
        self._results.add(found)
        return found

    def _set_apart(self, row: Result) -> None:
        """Give each entry memory of its own."""
        from dasktc.executors.device.packing import detached

        if row.places is None:
            row.value = [detached(value) for value in row.value]

    def _out(self, packed: list[Packed], many: bool) -> list[Copied] | Stored:
        """Copy a result to pinned memory, or to a file where that is full."""
        copied = self._copies.to_host(packed)
        if copied is not None:
            return copied
        values = (Flat(value.head, self._copies.streamed(value)) for value in packed)
        return store(self._work.new_path(), values, many).owned()

    def _leave(self, result: Result) -> None:
        from dasktc.executors.device.packing import pack

        values: list[Any] = result.value if result.many else [result.value]
        result.leave(self._out([pack(value) for value in values], result.many))

    def _on_device(self) -> list[Result]:
        return [result for result in self._results if result.places is None]

    def _resident(self) -> int:
        return self._used.nbytes

    def _resolve(self, arg: Any, copy: bool = False) -> Any:
        if isinstance(arg, list):
            return [self._resolve(item) for item in arg]
        if isinstance(arg, Part):
            place = arg.of.place(arg.number)
            return arg.of.value[arg.number] if place is None else self._copies.load(place)
        if isinstance(arg, Result):
            return arg.value if arg.places is None else self._back(arg, arg.places)
        return arg.load() if isinstance(arg, Later) else arg

    def _back(self, result: Result, places: list[Any] | Stored) -> Any:
        """Copy a result back; it stays if there is room."""
        if isinstance(places, list):
            found = [self._copies.load(place) for place in places]
            value = found if result.many else found[0]
        else:
            value = self._copies.load(places)
        if self._resident() + result.nbytes <= self._limit:
            result.come(value)
        return value

    def _length(self, arg: Any) -> int | None:
        """Of what lies elsewhere, so that it need not come back."""
        return arg.length if isinstance(arg, Result) else None
