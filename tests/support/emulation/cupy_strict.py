"""A stand-in for CuPy on the host, for tests: its arrays are NumPy's, and it refuses what CuPy refuses.

It has only functions and parameters that CuPy has (`backends/cuda/test_backend.py` compares the signatures where CuPy
is installed). An array is not a NumPy array, and becomes one only by `get`; it can be combined with Python numbers,
NumPy scalars and arrays of its kind. It is stricter than CuPy: NumPy's functions do not take it, it cannot be iterated
over, and no NumPy array indexes it, because all these would copy silently. `empty` returns arbitrary values.

Bytes are counted as on a device: every array, and CuPy's temporary allocations, as in its source: a sort takes a second
array of keys, a mask a running sum of 32 bits per element, writing by place the places in 32 bits, `unique` a copy, a
sort of it and a mask.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import types
import weakref

import numpy as np

from tests.support.emulation import streams
from tests.support.emulation.host import HostDevice

HOST, LAUNCHING = HostDevice(), threading.Lock()
NUMBERS = (bool, int, float, np.generic)
SCATTERED = {
    "add": "int32 uint32 uint64 float16 float32 float64",
    "minimum": "int32 uint32 uint64 float32 float64",
    "maximum": "int32 uint32 uint64 float32 float64",
}
"""Types supported by a ufunc's `at`: those with an atomic function in CUDA."""


PLACE_BYTES = 4
"""Bytes of a place, as CuPy numbers the elements of an array."""


class _Used:
    """Bytes of all arrays on the device, their peak, and bytes copied to the host."""

    def __init__(self):
        self.now = self.peak = self.moved = 0
        self._held = {}

    def hold(self, array):
        """Count the memory of an array once, for as long as any array uses it; return its record."""
        while isinstance(array.base, np.ndarray):
            array = array.base
        found = self._held.get(id(array))
        if found is None:
            allocated = _allocate(array.nbytes)
            found = self._held[id(array)] = streams.Memory()
            self.now += array.nbytes
            self.peak = max(self.peak, self.now)
            weakref.finalize(array, self._free, id(array), array.nbytes, allocated)
        return found

    def work(self, size):
        """Record temporary memory of so many bytes."""
        _allocate(size)(size)
        self.peak = max(self.peak, self.now + size)

    def _free(self, key, size, allocated):
        self._held.pop(key).freed()
        self.now -= size
        allocated(size)


def _unlimited(size):
    """Allocate; the returned function frees the memory."""
    return lambda size: None


ALLOCATOR = [_unlimited]
"""CuPy's allocator, which may be set; inside `using_allocator` a thread has another one."""
INSTEAD = [None]
"""A test's allocator, which replaces both: a device with little memory."""
_own = threading.local()


def _allocate(size):
    return (INSTEAD[0] or _usual)(size)


def _usual(size):
    return getattr(_own, "allocator", ALLOCATOR[0])(size)


@contextlib.contextmanager
def _using_allocator(allocator=None):
    before = vars(_own).copy()
    _own.allocator = allocator
    try:
        yield
    finally:
        vars(_own).clear()
        vars(_own).update(before)


MEMORY_USED = _Used()


class ndarray:
    """An array on the device."""

    __hash__ = None

    def __init__(self, held):
        self._lies = held
        self._memory = MEMORY_USED.hold(held)

    @property
    def _held(self):
        """The elements, for work on the current stream."""
        self._memory.use()
        return self._lies

    @property
    def base(self):
        """The array of which it is a view; None if it has memory of its own."""
        return self._lies.base

    # leaving the device

    def get(self, stream=None, order="C", out=None, blocking=True):
        MEMORY_USED.moved += self.nbytes
        stream = stream or streams.current()
        self._memory.use(stream)
        found, out = self._lies.copy(), np.empty_like(self._lies) if out is None else out
        assert (out.dtype, out.shape, out.flags.c_contiguous) == (self.dtype, self.shape, True)
        assert blocking or streams.is_pinned(out), "a copy to pageable memory blocks"
        stream.later(lambda: np.copyto(out, found))
        if blocking:
            stream.synchronize()
        return out

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray) or (arr.dtype, arr.shape) != (self.dtype, self.shape):
            raise TypeError("only an array of NumPy of the same type and shape is copied to the device")
        assert self._lies.flags.c_contiguous
        assert arr.flags.c_contiguous
        stream, lies = stream or streams.current(), self._lies
        assert streams.is_pinned(arr), "a copy from pageable memory blocks"
        self._memory.write(stream, lambda: np.copyto(lies, arr))

    def _waited(self):
        """The elements, after the current stream has finished."""
        found = self._held
        streams.current().synchronize()
        return found

    def tolist(self):
        MEMORY_USED.moved += self.nbytes
        return self._waited().tolist()

    def item(self):
        return self._waited().item()

    def __int__(self):
        return int(self._one())

    def __float__(self):
        return float(self._one())

    def __bool__(self):
        return bool(self._one())

    def _one(self):
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is no number")
        return self._waited().reshape(())[()]

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise TypeError(f"numpy.{ufunc.__name__} was given an array on the device")

    def __array_function__(self, function, kinds, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} was given an array on the device")

    def __iter__(self):
        raise TypeError("an array on the device is iterated over: a copy an element")

    # what it is

    dtype = property(lambda self: self._lies.dtype)
    shape = property(lambda self: self._lies.shape)
    ndim = property(lambda self: self._lies.ndim)
    size = property(lambda self: self._lies.size)
    nbytes = property(lambda self: self._lies.nbytes)
    itemsize = property(lambda self: self._lies.itemsize)
    flags = property(
        lambda self: types.SimpleNamespace(
            c_contiguous=self._lies.flags.c_contiguous, f_contiguous=self._lies.flags.f_contiguous
        )
    )
    data = property(lambda self: types.SimpleNamespace(ptr=self._held.ctypes.data))

    def __len__(self):
        return len(self._lies)

    def __repr__(self):
        return f"device {self._lies!r}"

    def __reduce__(self):
        return ndarray, (self._waited().copy(),)

    # parts

    def __getitem__(self, key):
        key = _key(key)
        found = _device((self._lies if _is_view(key) else self._held)[key])
        if isinstance(key, np.ndarray) and key.dtype == bool:
            MEMORY_USED.work(PLACE_BYTES * key.size)
        return found

    def __setitem__(self, key, value):
        key = _key(key)
        if isinstance(key, np.ndarray) and self.size >= 2**31:
            raise OverflowError("values are scattered into 2^31 places at most")
        if isinstance(key, np.ndarray) and (key.dtype != bool or isinstance(value, ndarray)):
            MEMORY_USED.work(PLACE_BYTES * key.size)
        self._held[key] = _value(value)

    def take(self, indices, axis=None, out=None):
        return _device(self._held.take(_value(indices), axis))

    def searchsorted(self, v, side="left", sorter=None):
        return searchsorted(self, v, side, sorter)

    def view(self, dtype=None, type=None):
        return _device(self._lies.view(dtype))

    def reshape(self, *shape):
        return _device((self._lies if self._lies.flags.c_contiguous else self._held).reshape(*shape))

    def ravel(self):
        return _device(self._held.ravel())

    def copy(self, order="C"):
        return _device(self._held.copy())

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        return _device(self._held.astype(dtype, copy=copy))

    def clip(self, min=None, max=None, out=None):
        return _device(self._held.clip(_value(min), _value(max)))

    def fill(self, value):
        self._held.fill(_value(value))

    def nonzero(self):
        found = tuple(map(_device, self._held.nonzero()))
        MEMORY_USED.work(8 * self.size)
        return found

    def repeat(self, repeats, axis=None):
        return repeat(self, repeats, axis)

    # of all elements

    def sum(self, axis=None, dtype=None, out=None, keepdims=False):
        return _device(self._held.sum(axis=axis, dtype=dtype, keepdims=keepdims))

    def min(self, axis=None, out=None, keepdims=False):
        return _device(self._held.min(axis=axis, keepdims=keepdims))

    def max(self, axis=None, out=None, keepdims=False):
        return _device(self._held.max(axis=axis, keepdims=keepdims))

    def any(self, axis=None, out=None, keepdims=False):
        return _device(self._held.any(axis=axis, keepdims=keepdims))

    def all(self, axis=None, out=None, keepdims=False):
        return _device(self._held.all(axis=axis, keepdims=keepdims))

    def cumsum(self, axis=None, dtype=None, out=None):
        if out is None:
            return _device(self._held.cumsum(axis=axis, dtype=dtype))
        self._held.cumsum(axis=axis, dtype=dtype, out=out._held)
        return out

    def sort(self, axis=-1, kind=None):
        _stable(kind)
        MEMORY_USED.work(self.nbytes)  # a radix sort moves keys between two buffers
        self._held.sort(axis=axis)

    def argsort(self, axis=-1, kind=None):
        _stable(kind)
        found = _device(self._held.argsort(axis=axis, kind="stable"))
        MEMORY_USED.work(2 * self.nbytes + found.nbytes)  # keys and places, and the second buffer of both
        return found


def _device(found):
    return ndarray(np.asarray(found))


def _value(value):
    """Convert the other operand of an operation: an array of this kind, or a number."""
    if isinstance(value, ndarray):
        return value._held
    if value is None or isinstance(value, NUMBERS):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def _key(key):
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    if isinstance(key, ndarray):
        if key.ndim == 0:
            raise TypeError("an element of an array on the device is no Python index; use int()")
        return key._held
    if key is None or key is Ellipsis or isinstance(key, (int, np.integer)):
        return key
    if isinstance(key, slice):
        for end in (key.start, key.stop, key.step):
            if not (end is None or isinstance(end, (int, np.integer))):
                raise TypeError("slice indices must be integers; an element on the device is none")
        return key
    raise TypeError(f"an array on the device is indexed by {type(key)}")


def _is_view(key):
    return (
        all(part is None or part is Ellipsis or isinstance(part, slice) for part in key)
        if isinstance(key, tuple)
        else isinstance(key, slice)
    )


def _stable(kind):
    if kind not in (None, "stable"):
        raise ValueError(f"kind={kind!r} is not supported")


def _operator(name):
    def operate(self, other):
        if not isinstance(other, (ndarray, *NUMBERS)):
            raise TypeError(f"Unsupported type {type(other)}")
        found = getattr(self._held, name)(_value(other))
        if found is NotImplemented:
            return found
        return self if name.startswith("__i") and name != "__invert__" else _device(found)

    return operate


for _name in "add sub mul floordiv truediv mod and or xor lshift rshift".split():
    for _kind in ("__{}__", "__r{}__", "__i{}__"):
        setattr(ndarray, _kind.format(_name), _operator(_kind.format(_name)))
for _name in "eq ne lt le gt ge".split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("__neg__", "__invert__", "__abs__"):
    setattr(ndarray, _name, lambda self, _name=_name: _device(getattr(self._held, _name)()))


# making arrays


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    return _device(np.array(a._held if isinstance(a, ndarray) else a, dtype=dtype, copy=copy))


def ascontiguousarray(a, dtype=None):
    return _device(np.ascontiguousarray(a._held if isinstance(a, ndarray) else a, dtype=dtype))


def arange(start, stop=None, step=1, dtype=None):
    return _device(np.arange(0 if stop is None else start, start if stop is None else stop, step, dtype=dtype))


def empty(shape, dtype=float, order="C"):
    made = np.empty(shape, dtype)
    made.reshape(-1).view("u1")[:] = 0xA5
    return _device(made)


def zeros(shape, dtype=float, order="C"):
    return _device(np.zeros(shape, dtype))


def ones(shape, dtype=float, order="C"):
    return _device(np.ones(shape, dtype))


def full(shape, fill_value, dtype=None, order="C"):
    return _device(np.full(shape, _value(fill_value), dtype))


def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    return zeros(a.shape if shape is None else shape, dtype or a.dtype)


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    return empty(prototype.shape if shape is None else shape, dtype or prototype.dtype)


def _joined(join):
    def joining(tup, axis=0, out=None, *, dtype=None, casting="same_kind"):
        if any(not isinstance(item, ndarray) for item in tup):
            raise TypeError("Only cupy arrays can be concatenated")
        return _device(join([item._held for item in tup], axis, dtype=dtype, casting=casting))

    return joining


concatenate = _joined(np.concatenate)
stack = _joined(np.stack)


# functions of arrays, each with CuPy's own parameters


def searchsorted(a, v, side="left", sorter=None):
    if not isinstance(v, (ndarray, int, float)) or isinstance(v, np.generic) or sorter is not None:
        raise NotImplementedError("Only python scalars or ndarrays are supported for v")
    return _device(np.searchsorted(a._held, _value(v), side))


def repeat(a, repeats, axis=None):
    if isinstance(repeats, ndarray):
        raise TypeError("repeats must be on the host")
    return _device(a._held.repeat(repeats, axis))


def where(condition, x=None, y=None):
    return _device(np.where(condition._held, _value(x), _value(y)))


def bincount(x, weights=None, minlength=None):
    MEMORY_USED.work(x.size)  # whether each is negative
    return _device(np.bincount(x._held, None if weights is None else weights._held, minlength or 0))


def diff(a, n=1, axis=-1, prepend=None, append=None):
    return _device(np.diff(a._held))


def flatnonzero(a):
    return a.nonzero()[0]


def unpackbits(a, axis=None, bitorder="big"):
    return _device(np.unpackbits(a._held, axis, bitorder=bitorder))


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True):
    MEMORY_USED.work(2 * ar.nbytes)  # a copy, and its sort
    found = _device(np.unique(ar._held))
    MEMORY_USED.work(ar.nbytes + (1 + PLACE_BYTES) * ar.size)
    return found


def sort(a, axis=-1, kind=None):
    found = a.copy()
    found.sort(axis, kind)
    return found


def argsort(a, axis=-1, kind=None):
    return a.argsort(axis, kind)


def cumsum(a, axis=None, dtype=None, out=None):
    return a.cumsum(axis, dtype, out)


class ufunc:
    """An elementwise function of two arrays."""

    def __init__(self, name):
        self._function, self._takes = getattr(np, name), SCATTERED.get(name, "").split()

    def __call__(self, a, b, out=None):
        found = self._function(_value(a), _value(b), out=None if out is None else out._held)
        return _device(found)

    def at(self, a, indices, b=None):
        if a.dtype.name not in self._takes:
            raise TypeError(f"scatter of {a.dtype.name}: only {', '.join(self._takes)} are supported")
        if a.size >= 2**31 or indices.size >= 2**31:
            raise OverflowError("values are scattered into 2^31 places at most")
        value = b._held.astype(a.dtype) if isinstance(b, ndarray) else a.dtype.type(b)
        cast = value.nbytes if isinstance(b, ndarray) and b.dtype != a.dtype else 0
        MEMORY_USED.work(PLACE_BYTES * indices.size + cast)
        self._function.at(a._held, indices._held, value)


class unary:
    """An elementwise function of one array."""

    def __init__(self, name):
        self._function = getattr(np, name)

    def __call__(self, x):
        return _device(self._function(x._held))


log, sqrt = map(unary, ("log", "sqrt"))
add, minimum, maximum = map(ufunc, ("add", "minimum", "maximum"))
bitwise_or, bitwise_xor, left_shift, right_shift, not_equal = map(
    ufunc, ("bitwise_or", "bitwise_xor", "left_shift", "right_shift", "not_equal")
)
bool_, int32, int64, uint8, uint32, uint64 = np.bool_, np.int32, np.int64, np.uint8, np.uint32, np.uint64
float64 = np.float64


# kernels


def memoize(for_each_device=False):
    return functools.cache


class RawModule:
    """Kernels, compiled for the host."""

    def __init__(self, code, options=()):
        self._code = code

    def compile(self):
        pass

    def get_function(self, name):
        return _Function(self._code, name)


class _Function:
    max_dynamic_shared_size_bytes = 48 << 10
    num_regs, shared_size_bytes = 40, 1 << 10

    def __init__(self, code, name):
        self._code, self._name = code, name

    def __call__(self, grid, block, args, shared_mem=0):
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        for value in args:
            structure = isinstance(value, np.ndarray) and value.dtype.kind == "V"
            assert isinstance(value, (ndarray, np.generic)) or structure, f"a kernel is given {type(value)}"
        values = tuple(value._held if isinstance(value, ndarray) else value for value in args)
        with LAUNCHING:
            HOST.launch_text(self._code, self._name, *grid, *block, values, shared_mem)


class OutOfMemoryError(MemoryError):
    """The error of CuPy's own allocator."""


class CUDARuntimeError(RuntimeError):
    """An error that CUDA reports."""


class Device:
    """The only device."""

    id = 0
    attributes = {  # noqa: RUF012
        "MultiProcessorCount": HostDevice.processors,
        "MaxThreadsPerMultiProcessor": 2048,
        "MaxRegistersPerMultiprocessor": 1 << 16,
        "MaxSharedMemoryPerMultiprocessor": 228 << 10,
    }
    compute_capability = "90"

    def __init__(self, device=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def synchronize(self):
        streams.Stream.null.synchronize()


class _Pool:
    """A memory pool of the runtime: bytes that it holds on the device, and those in use."""

    reserved = used = 0
    threshold = 0


POOLS = {}
RELEASE, RESERVED, USED = 4, 5, 7


def _create_pool(properties):
    POOLS[len(POOLS) + 1] = _Pool()
    return len(POOLS)


def _pool_attribute(pool, attribute):
    return getattr(POOLS[pool], {RELEASE: "threshold", RESERVED: "reserved", USED: "used"}[attribute])


def _trim(pool, least):
    POOLS[pool].reserved = max(POOLS[pool].used, min(POOLS[pool].reserved, least))


MEMORY = 8 << 30
runtime = types.SimpleNamespace(
    MemPoolProps=lambda *kind: kind,
    cudaMemPoolAttrReleaseThreshold=RELEASE,
    cudaMemPoolAttrReservedMemCurrent=RESERVED,
    cudaMemPoolAttrUsedMemCurrent=USED,
    memPoolCreate=_create_pool,
    memPoolGetAttribute=_pool_attribute,
    memPoolSetAttribute=lambda pool, attribute, value: setattr(POOLS[pool], "threshold", value),
    memPoolTrimTo=_trim,
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: 1,
    memGetInfo=lambda: (MEMORY, 2 * MEMORY),
    driverGetVersion=lambda: 13000,
    getDeviceProperties=lambda device: {"name": b"emulated"},
)
cuda = types.SimpleNamespace(
    Device=Device,
    Event=streams.Event,
    Stream=streams.Stream,
    alloc_pinned_memory=streams.alloc_pinned_memory,
    get_current_stream=streams.current,
    get_elapsed_time=streams.get_elapsed_time,
    memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=runtime,
    set_allocator=lambda allocator: ALLOCATOR.__setitem__(0, allocator),
    using_allocator=_using_allocator,
)


def module():
    """This file as the module `cupy`."""
    made = types.ModuleType("cupy")
    here = vars(sys.modules[__name__])
    made.__dict__.update({name: value for name, value in here.items() if not name.startswith("_")})
    made.__version__ = "14.2.0"
    return made


def functions():
    """The functions that stand in for CuPy's, by name."""
    here = vars(sys.modules[__name__])
    return {
        name: function
        for name, function in here.items()
        if inspect.isfunction(function) and name not in ("memoize", "module", "functions") and not name.startswith("_")
    }
