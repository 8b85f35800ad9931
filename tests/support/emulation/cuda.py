"""Imports the CUDA backend with strict stand-ins for its GPU libraries: `with backend(): get_backend("cuda")`."""

import gc
import sys
from contextlib import contextmanager

import dasktc.backends.select
from tests.support.emulation import cudf_strict, cupy_strict, streams


@contextmanager
def backend():
    """Context with the backend's modules imported anew on the stand-ins; they are removed afterwards."""
    stand_ins = {
        "cupy": cupy_strict.module(),
        "cudf": cudf_strict.module(),
        "pylibcudf": cudf_strict.pylibcudf(),
        **cudf_strict.rmm(),
    }
    before = {name: sys.modules.get(name) for name in (*stand_ins, *_own())}
    allocator = cupy_strict.ALLOCATOR[0]
    _forget()
    sys.modules.update(stand_ins)
    try:
        yield dasktc.backends.get_backend("cuda")
    finally:
        _forget()
        _put_back(before)
        cupy_strict.ALLOCATOR[0] = allocator
        left, streams.VIOLATIONS[:] = list(streams.VIOLATIONS), []
        assert not left, left


@contextmanager
def allocator(allocate):
    """Context with a function that allocates in place of the usual one, and returns what frees the memory."""
    gc.collect()
    cupy_strict.INSTEAD[0] = allocate
    try:
        yield
    finally:
        cupy_strict.INSTEAD[0] = None


def _put_back(before):
    """Restore the real modules, or none; other modules imported meanwhile stay, as Numba cannot be imported twice."""
    for name, module in before.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


def _forget():
    dasktc.backends.get_backend.cache_clear()
    dasktc.backends.select.cuda_module.cache_clear()
    for name in _own():
        del sys.modules[name]
        package, _, module = name.rpartition(".")
        vars(sys.modules[package]).pop(module, None)


def _own():
    """The modules that import a GPU library."""
    names = ("backends.cuda.backend", "backends.cuda.frames", "backends.cuda.memory", "backends.cuda.upload")
    names += ("executors.stores.device.copies", "executors.stores.device.packing", "executors.stores.device.pinned")
    return [f"dasktc.{name}" for name in names if f"dasktc.{name}" in sys.modules]
