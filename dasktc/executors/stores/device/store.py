"""Runs stages on one GPU within `--memory`, which there means device memory.

Results stay on the device while they fit in three quarters of the budget. Others are copied to pinned memory of the
host, up to `--host-memory`, and beyond that to files in the work directory. A result is copied back when a stage needs
it, and stays if there is room again. The memory that a call takes beside results is not predicted: the allocator
enforces the budget, and a call that exhausts it is made again after all results have left the device. RMM's
FailureCallbackResourceAdaptor, which would let the call continue instead, was not tried: it calls back on any thread
that allocates, also on the prefetching one, while a call uses the results; and copying out a result that is not
contiguous takes memory from the exhausted budget.

Counting tasks overlap three things: while one task counts, a thread reads the blocks of the next tasks from files, or
finds them in pinned memory, and copies them on a stream of its own. Blocks that a later task shares stay.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dasktc.backends.cuda import block_cache
from dasktc.errors import InputError
from dasktc.executors.base import AskWorkers, DelayedValue, Function, LocalStore, ask_nobody
from dasktc.executors.stores.device.handles import (
    SEND_LOCK,
    DeviceEntry,
    DeviceHandle,
    DeviceUsage,
    place_of,
    places_of,
)
from dasktc.executors.stores.device.prefetch import HORIZON, DevicePrefetcher, TransferStats
from dasktc.executors.stores.device.tuning import TUNING, Tuning
from dasktc.executors.stores.file_store import SMALL, small_for, usable
from dasktc.executors.stores.value_files import Flat, Stored, resolve_once, store
from dasktc.executors.stores.work_dir import WorkDir
from dasktc.options import format_size
from dasktc.wording import advice, option

if TYPE_CHECKING:
    from dasktc.executors.stores.device.copies import Arrival, Copied
    from dasktc.executors.stores.device.packing import Packed

__all__ = ["DeviceStore"]

T = TypeVar("T")
AHEAD, LEAVING = 8, 16
"""The budget divided by these is the most that inputs copied ahead for a stage's next call take, and that results being
copied off the device take."""
BLOCKS_AHEAD = 3
"""Blocks that fit beside a task's own, where memory allows: with one, every second copy is waited for."""


class DeviceStore(LocalStore):
    """Makes calls in this process, and keeps results on the device within a budget.

    Parameters
    ----------
    work : WorkDir
    budget : int
        Bytes on the device.
    host : int
        Bytes of pinned memory for results that have left the device.
    tuning : Tuning
        Sizes that tests replace.
    entrywise : bool
        Keep a list as a list of handles, because its entries are needed, and freed, one by one.

    Attributes
    ----------
    transfers : TransferStats
        Statistics of the last counting tasks.
    """

    repeats = True

    def __init__(self, work: WorkDir, budget: int, host: int, tuning: Tuning = TUNING, entrywise: bool = False) -> None:
        from dasktc.backends import get_backend
        from dasktc.backends.cuda import memory as cuda_memory
        from dasktc.executors.stores.device import copies as cuda_copies

        backend = get_backend("cuda")
        self._work, self._budget, self._entrywise = work, max(budget, 1), entrywise
        small = tuning.small
        self._small, self._small_on_host = (small_for(self._budget), SMALL) if small is None else (small, small)
        self._limit = self._task_memory = self.memory_per_call = self._budget - self._budget // 4
        self._budget_context = cuda_memory.Budget(self._budget, backend)
        self._copies = cuda_copies.DeviceCopier(host, tuning)
        self._results: weakref.WeakSet[DeviceHandle] = weakref.WeakSet()
        self._usage = DeviceUsage()
        self._arrivals: dict[Any, Arrival] = {}
        self._prefetcher: DevicePrefetcher | None = None
        self.transfers = TransferStats()

    @property
    def peak(self) -> int:
        """Peak of the bytes allocated on the device."""
        return self._budget_context.peak

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes copied from the device to the host so far, and back."""
        return self._copies.sent, self._copies.received

    @property
    def idle(self) -> bool:
        """Whether no result of this store is referenced any more."""
        return not self._results

    def memory(self, budget: int | None) -> int:
        """Bytes of the budget for a counting task, blocks copied ahead included."""
        return self._budget if budget is None else usable(budget)

    def set_task_memory(self, needed: int, memory: float = float("inf")) -> None:
        """Reserve this many bytes for a counting task; results are moved out for it when tasks begin."""
        self._task_memory = needed

    def make_room(self, needed: int) -> None:
        """Move results out until `needed` bytes of the budget are free of them."""
        with self._budget_context:
            self._move_out_until(max(0, self._budget - needed))
            self._settle()

    def close(self, ask: AskWorkers = ask_nobody) -> None:
        """Remove the work directory."""
        with suppress(Exception):  # the device is gone
            self._settle()
        self._work.close()

    # calls within the budget

    def evaluate(self, function: Function, handles: list[Any]) -> Any:
        """Call a function with the values of handles; if memory is short, again after all results left the device.

        The length of an array is known without loading it; the handle of an entry, without loading its list.

        Raises
        ------
        InputError
            The call needs more than the whole budget.
        """
        first = handles[0] if handles else None
        if function is operator.getitem and isinstance(first, list):
            return first[handles[1]]
        if function is operator.getitem and isinstance(first, DeviceHandle) and first.many:
            return DeviceEntry(first, handles[1])
        if function is len and isinstance(first, DeviceHandle) and first.length is not None:
            return first.length
        is_repeat = False
        while True:
            try:
                with self._budget_context:
                    return function(*resolve_once(list(handles), self._resolve))
            except MemoryError as error:
                reason = " ".join(str(error).split())
            except BaseException:
                with suppress(Exception):  # the device is gone
                    self._settle()
                raise
            if self._settle():
                continue
            has_moved, was_repeat, is_repeat = self._move_all_out(), is_repeat, True
            if was_repeat and not has_moved:
                raise InputError(
                    f"a stage takes more than the {format_size(self._budget)} that {option('memory')} leaves it on the "
                    f"device ({reason}): the graph, or one part of its source, is too large for it; raise "
                    f"{advice('memory')}"
                )

    def expect(self, handles: list[Any]) -> None:
        """Begin to copy inputs from pinned memory, within a share of the budget, while the call before computes."""
        room = self._budget // AHEAD
        with suppress(MemoryError), self._budget_context:
            for place in _pinned_places(handles):
                room -= place.nbytes
                if room < 0:
                    break
                if place not in self._arrivals:
                    self._arrivals[place] = self._copies.fetch(place)

    def _settle(self) -> bool:
        """Wait for copies to and from the device, and drop inputs copied ahead; return whether there were any."""
        arrivals, self._arrivals = self._arrivals, {}
        self._copies.wait(arrivals.values())
        return self._copies.settle() or bool(arrivals)

    def _move_all_out(self) -> bool:
        """Move all results off the device and halve the bytes that may stay there; return whether there were any.

        Blocks that were copied ahead are dropped too, and what a kernel keeps between tasks.
        """
        block_cache.forget()
        has_dropped = self._prefetcher is not None and self._prefetcher.drop()
        handles = self._on_device()
        self._limit //= 2
        for handle in handles:
            self._move_out(handle)
        self._copies.settle()
        with SEND_LOCK:  # values that were being sent are freed by now, too
            return bool(handles) or has_dropped

    # counting tasks

    def tasks(
        self, function: Function, calls: list[tuple[Any, ...]], at_a_time: int = 1
    ) -> Generator[Callable[[], Any]]:
        """Yield for each call a function that makes it; the next calls' blocks are copied to the device meanwhile."""
        self._make_room_for(calls)
        self._settle()
        with self._budget_context, DevicePrefetcher(self._prefetch_capacity(calls), self._copies) as blocks:
            for number, call in enumerate(calls):
                next_calls = calls[number + 1 : number + 1 + HORIZON]
                yield partial(self._call_fenced, function, self._task_arguments(blocks, call, next_calls))
            self.transfers = blocks.stats()

    def _call_fenced(self, function: Function, args: list[Any]) -> Any:
        try:
            return function(*args)
        finally:
            self._copies.fence()  # before the blocks are freed
            args.clear()

    @contextmanager
    def folding(self) -> Iterator[None]:
        """Context in which results, sums among them, stay on the device as far as a task's memory stays free."""
        limit, self._limit = self._limit, min(self._limit, max(0, self._budget - self._task_memory))
        self._move_out_until(self._limit)
        try:
            yield
        finally:
            self._limit = limit

    def task(self, function: Function, call: tuple[Any, ...], next_blocks: list[Any], nbytes: int, spare: bool) -> Any:
        """Run one counting task; meanwhile the next task's blocks are copied to the device.

        The task takes `nbytes`; with `spare` these include a block's bytes for the blocks copied meanwhile.
        """
        if self._prefetcher is None:
            self._prefetcher = DevicePrefetcher(0, self._copies)
        blocks, self._task_memory = self._prefetcher, nbytes
        with self._budget_context:
            blocks.capacity = self._make_room_beside(call, next_blocks, spare)
            args = self._task_arguments(blocks, call, [tuple(next_blocks)])
            try:
                return self.evaluate(function, args)
            finally:
                self._copies.fence()  # before the blocks are freed
                del args
                blocks.settle()  # its copies must begin while the budget is in force

    def end_tasks(self) -> TransferStats:
        """Drop blocks that were copied ahead; return the transfer statistics."""
        if self._prefetcher is None:
            return TransferStats()
        blocks, self._prefetcher = self._prefetcher, None
        self.transfers = blocks.stats()
        blocks.__exit__()
        return self.transfers

    def _task_arguments(
        self, blocks: DevicePrefetcher, call: tuple[Any, ...], next_calls: list[tuple[Any, ...]]
    ) -> list[Any]:
        """Load a call's arguments, and begin to copy those of the following calls."""
        arguments = self.evaluate(lambda: self._resolve_once(call, blocks.use(places_of(call))), [])
        blocks.follow([places_of(next_call) for next_call in next_calls])
        return arguments  # type: ignore[no-any-return]

    def _resolve_once(self, call: tuple[Any, ...], arrivals: dict[Any, Any]) -> list[Any]:
        """The values of a call's arguments; an argument in two roles has one value, on the device or not."""
        values: dict[int, Any] = {}
        for arg in call:
            if id(arg) not in values:
                place = place_of(arg)
                values[id(arg)] = arrivals[place] if place in arrivals else self._resolve(arg)
        return [values[id(arg)] for arg in call]

    def _make_room_for(self, calls: list[tuple[Any, ...]]) -> None:
        """Move out results that do not fit beside a task; none if the blocks of all tasks fit at once."""
        task_blocks = [{arg for arg in call if isinstance(arg, DeviceHandle)} for call in calls]
        blocks = set().union(*task_blocks)
        task = max((sum(block.nbytes for block in arguments) for arguments in task_blocks), default=0)
        scratch = max(0, self._task_memory - task)
        missing_bytes = sum(block.nbytes for block in blocks if block.places is not None)
        if self._resident() + missing_bytes + scratch <= self._budget:
            return
        prefetch_bytes = (BLOCKS_AHEAD - 1) * max((block.nbytes for block in blocks), default=0)  # one is the plan's
        self._move_out_until(max(0, self._budget - self._task_memory - prefetch_bytes))

    def _make_room_beside(self, call: tuple[Any, ...], next_blocks: list[Any], spare: bool) -> int:
        """Move out results that do not fit beside the call; return the bytes left for prefetched blocks."""
        arguments = {id(arg) for arg in call}
        capacity = max(0, self._budget - self._task_memory)
        handles = [handle for handle in self._on_device() if id(handle) not in arguments]
        resident_bytes = sum(handle.nbytes for handle in handles)
        for handle in sorted(handles, key=lambda handle: -handle.nbytes):
            if resident_bytes <= capacity:
                break
            resident_bytes -= handle.nbytes
            self._move_out(handle)
        largest = max((place.nbytes for place in places_of((*call, *next_blocks))), default=0)
        return max(0, capacity + largest * spare - resident_bytes)

    def _prefetch_capacity(self, calls: list[tuple[Any, ...]]) -> int:
        """Bytes for blocks that are copied ahead: the plan includes the largest one, and more may be left."""
        largest = max((place.nbytes for call in calls for place in places_of(call)), default=0)
        return max(largest, self._budget - self._task_memory + largest - self._resident())

    # where results are

    def keep(self, value: Any) -> Any:
        """Return the handle of a result; a small result is its own handle."""
        if isinstance(value, DeviceHandle | DeviceEntry):
            return value
        with self._budget_context:
            return self._keep_list(value) if self._entrywise and isinstance(value, list) else self._keep(value)

    def _keep(self, value: Any) -> Any:
        from dasktc.executors.stores.device.packing import detached, pack

        many = isinstance(value, list)
        values = value if many else [value]
        packed = [pack(entry) for entry in values]
        sizes, host_bytes = [entry.nbytes for entry in packed], sum(len(entry.head) for entry in packed)
        if sum(sizes) + host_bytes < (self._small if sum(sizes) else self._small_on_host):
            copies = [detached(entry) for entry in values]
            return copies if many else copies[0]
        is_resident = sum(sizes) > host_bytes and self._resident() + sum(sizes) <= self._limit
        return self._handle(value, None if is_resident else self._copy_out(packed, many), sizes)

    def _keep_list(self, values: list[Any]) -> list[Any]:
        """Keep the entries of a list, each in memory of its own; return their handles, and empty the list."""
        from dasktc.executors.stores.device.packing import detached, pack

        values.reverse()
        handles: list[Any] = []
        while values:
            value = values.pop()
            packed = [] if isinstance(value, list) else [pack(value)]
            nbytes = sum(entry.nbytes for entry in packed)
            with suppress(MemoryError):
                if nbytes and self._resident() + nbytes <= self._limit:
                    handles.append(self.keep(detached(value)))
                    continue
            is_resident = not packed or nbytes < self._small
            handles.append(
                self.keep(value) if is_resident else self._handle(value, self._copy_out(packed, False), [nbytes])
            )
        return handles

    def _handle(self, value: Any, places: list[Any] | Stored | None, sizes: list[int]) -> DeviceHandle:
        handle = DeviceHandle(value, places, sizes, self._usage)
        self._results.add(handle)
        return handle

    def entries(self, handle: Any) -> list[Any]:
        """Handles of a list's entries, each of which is freed by itself, not with the last of its list."""
        if not isinstance(handle, DeviceHandle):
            return list(handle)
        self.evaluate(lambda: self._separate_entries(handle), [])
        return list(handle.entries())

    def _separate_entries(self, handle: DeviceHandle) -> None:
        """Give each entry memory of its own."""
        from dasktc.executors.stores.device.packing import detached

        if handle.places is None:
            handle.value = [detached(value) for value in handle.value]

    def _copy_out(self, packed: list[Packed], many: bool) -> list[Copied] | Stored:
        """Copy a result to pinned memory, or to a file where that is full."""
        copies = self._copies.to_host(packed)
        if copies is not None:
            self._copies.settle(self._budget // LEAVING)
            return copies
        values = (Flat(value.head, self._copies.streamed(value)) for value in packed)
        return store(self._work.new_path(), values, many).owned()

    def _move_out(self, handle: DeviceHandle) -> None:
        from dasktc.executors.stores.device.packing import pack

        values: list[Any] = handle.value if handle.many else [handle.value]
        handle.moved_out(self._copy_out([pack(value) for value in values], handle.many))

    def _move_out_until(self, limit: int) -> None:
        """Move results out, the largest first, until the others take at most `limit` bytes."""
        for handle in sorted(self._on_device(), key=lambda handle: -handle.nbytes):
            if self._resident() <= limit:
                break
            self._move_out(handle)

    def _on_device(self) -> list[DeviceHandle]:
        """Results that take device memory; moving out one that has only host memory would free nothing."""
        return [handle for handle in self._results if handle.places is None and handle.nbytes]

    def _resident(self) -> int:
        """Bytes of all results on the device."""
        return self._usage.nbytes

    def _resolve(self, handle: Any) -> Any:
        """The value of a handle, or of each handle in a list."""
        if isinstance(handle, list):
            return [self._resolve(item) for item in handle]
        if isinstance(handle, DeviceEntry):
            place = handle.parent.place(handle.number)
            return handle.parent.value[handle.number] if place is None else self._load(place)
        if isinstance(handle, DeviceHandle):
            return handle.value if handle.places is None else self._move_in(handle, handle.places)
        return handle.load() if isinstance(handle, DelayedValue) else handle

    def _load(self, place: Any) -> Any:
        """Copy a value back to the device, or wait for the copy that was begun ahead."""
        arrival = self._arrivals.pop(place, None)
        if arrival is None:
            return self._copies.load(place)
        self._copies.wait([arrival])
        return arrival.value

    def _move_in(self, handle: DeviceHandle, places: list[Any] | Stored) -> Any:
        """Copy a result back; it stays if there is room, and becomes this store's if another worker made it."""
        if handle.account_to(self._usage):
            self._results.add(handle)
        if isinstance(places, list):
            values = [self._load(place) for place in places]
            value = values if handle.many else values[0]
        else:
            value = self._load(places)
        if self._resident() + handle.nbytes <= self._limit:
            handle.moved_in(value)
        return value


def _pinned_places(handles: list[Any]) -> Iterator[Copied]:
    """Yield the places of those handles' values that are in pinned memory."""
    from dasktc.executors.stores.device.copies import Copied

    for handle in handles:
        if isinstance(handle, list):
            yield from _pinned_places(handle)
            continue
        places = (
            [handle.parent.place(handle.number)] if isinstance(handle, DeviceEntry) else getattr(handle, "places", None)
        )
        yield from (place for place in (places if isinstance(places, list) else ()) if isinstance(place, Copied))
