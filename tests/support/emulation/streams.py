"""Streams, events and pinned memory for `cupy_strict`: accesses that they do not order fail, or give wrong results.

A copy that the host does not wait for happens as late as CUDA allows: when something waits for it. So a pinned
buffer that is refilled too early is copied with its new contents, and one that is read too early holds arbitrary
values. Each memory records which stream wrote it and which ones use it; reading it on another stream whose work does
not come after that raises RaceError, and freeing it while another stream may still use it is recorded in VIOLATIONS.
"""

import bisect
import sys
import threading
import time
import weakref

import numpy as np

LOCK = threading.RLock()
VIOLATIONS = []
_here = threading.local()


class RaceError(RuntimeError):
    """An access whose result is undefined on a GPU."""


class Stream:
    """A stream: its work so far as a number, and how much of the other streams' work it knows to be done."""

    null = None

    def __init__(self, null=False, non_blocking=False, ptds=False):
        assert null or non_blocking, "a stream that blocks waits for all that is done on the null stream"
        self.tick, self.seen, self._late = 0, weakref.WeakKeyDictionary(), []

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *error):
        _stack().pop()

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        with LOCK:
            _learn(self.seen, event)

    def synchronize(self):
        self.record().synchronize()

    def work(self):
        """Queue one more unit of work; return its number."""
        self.tick += 1
        return self.tick

    def later(self, do):
        """Defer an action until something waits for it."""
        with LOCK:
            self._late.append((self.work(), do))
            return self.tick

    def run(self, until):
        """Run the deferred actions up to number `until`."""
        with LOCK:
            while self._late and self._late[0][0] <= until:
                self._late.pop(0)[1]()


class Host:
    """The thread that queues work; everything that it queues later comes after what it has waited for."""

    seen = weakref.WeakKeyDictionary()  # noqa: RUF012


class Event:
    """A point in a stream's work."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.stream = self.reached = None
        self.tick, self.seen = 0, {}

    def record(self, stream=None):
        with LOCK:
            self.stream, self.reached = stream or current(), None
            self.seen = dict(self.stream.seen.items())
            self.tick = self.stream.later(self._reach)

    def synchronize(self):
        with LOCK:
            _learn(Host.seen, self)

    @property
    def done(self):
        return self.stream is None or self.reached is not None

    def _reach(self):
        self.reached = time.perf_counter()


def _learn(seen, event):
    if event.stream is None:
        return
    event.stream.run(event.tick)
    for stream, tick in (*event.seen.items(), (event.stream, event.tick)):
        if seen.get(stream, 0) < tick:
            seen[stream] = tick


def get_elapsed_time(begin, end):
    assert begin.stream is not None, "an event that was never recorded"
    assert end.stream is not None, "an event that was never recorded"
    if begin.reached is None or end.reached is None:
        raise RaceError("cudaErrorNotReady: nobody has waited for an event")
    return max(1e3 * (end.reached - begin.reached), 1e-6)


Stream.null = Stream(null=True)


def _stack():
    if not hasattr(_here, "streams"):
        _here.streams = [Stream.null]
    return _here.streams


def current():
    """The stream to which this thread's work goes."""
    return _stack()[-1]


class Memory:
    """Record of an allocation: its last write and its uses."""

    def __init__(self):
        self.stream = current()
        self.written, self.uses = (self.stream, self.stream.tick), {}

    def use(self, stream=None):
        """Record a read or write on the current stream."""
        stream = stream or current()
        if stream is Stream.null and self.written[0] is stream and not stream._late:
            self.uses[stream] = stream.work()  # the usual
            return
        with LOCK:
            self._ordered(stream, *self.written, "written")
            self.uses[stream] = stream.work()

    def write(self, stream, do):
        """Have a stream write to it when its work is run."""
        with LOCK:
            for other, tick in self.uses.items():
                self._ordered(stream, other, tick, "used")
            self._ordered(stream, *self.written, "written")
            tick = stream.later(do)
            self.written, self.uses[stream] = (stream, tick), tick

    def _ordered(self, stream, other, tick, what):
        if other is stream:
            stream.run(tick)
        elif not after(stream, other, tick):
            raise RaceError(f"memory is {what} by another stream, whose event nobody waited for")

    def freed(self):
        """Record which streams may still use it."""
        for other, tick in self.uses.items():
            if other is not self.stream and not after(self.stream, other, tick):
                VIOLATIONS.append("memory went back to its stream while another one may still use it")


def after(stream, other, tick):
    """Whether a stream's next work comes after the given work of another."""
    return max(stream.seen.get(other, 0), Host.seen.get(other, 0)) >= tick


# pinned memory

_pinned = []  # (first address, the one behind the last), ascending


class PinnedMemory(np.ndarray):
    """Host memory with which copies can be asynchronous; initially it holds arbitrary values."""


def alloc_pinned_memory(size):
    made = np.full(max(1, size), 0x5A, "u1")
    place = made.ctypes.data, made.ctypes.data + len(made)
    with LOCK:
        bisect.insort(_pinned, place)
    weakref.finalize(made, _pinned.remove, place)
    return made.view(PinnedMemory)


def pinned_bytes():
    """Bytes of all existing pinned memory."""
    return sum(end - start for start, end in _pinned)


def is_pinned(array):
    start = array.ctypes.data
    with LOCK:
        at = bisect.bisect_right(_pinned, (start, sys.maxsize)) - 1
        return at >= 0 and start + array.nbytes <= _pinned[at][1]
