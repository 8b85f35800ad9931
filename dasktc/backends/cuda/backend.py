"""The CUDA backend: cuDF, CuPy, and kernels compiled by NVRTC.

Imported only by `dasktc.backends.select.cuda_module`, because this module needs a GPU, its driver, CuPy and cuDF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from dasktc.backends.block_facts import ArrayFacts
from dasktc.backends.calls import until_the_call_ends
from dasktc.backends.csr import Array, BlockTask, OrientedCSR, TaskCount
from dasktc.backends.cuda import cliques as device_cliques
from dasktc.backends.cuda import edge_functions as device_recipes
from dasktc.backends.cuda import launch, supports
from dasktc.backends.cuda import visit as device_visit
from dasktc.backends.cuda import wedges as device_wedges
from dasktc.backends.cuda.answers import DeviceAnswers
from dasktc.backends.cuda.bit_matrix import DeviceBitMatrix
from dasktc.backends.cuda.buckets import DeviceBuckets
from dasktc.backends.cuda.edge_arrays import EdgeArrays
from dasktc.backends.cuda.edges import DeviceEdges
from dasktc.backends.cuda.launch import KERNELS
from dasktc.backends.cuda.modules import Modules
from dasktc.backends.cuda.nvrtc import OPTIONS, Defines, source
from dasktc.backends.cuda.peel import DevicePeel
from dasktc.backends.cuda.sort import RadixSort
from dasktc.backends.cuda.text import DeviceText
from dasktc.backends.cuda.vertices import DeviceVertices
from dasktc.backends.edge_functions import Recipe, make_edges
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.backends.part_edges import ArrayPartEdges
from dasktc.backends.protocol import Backend, TextIds
from dasktc.errors import InputError
from dasktc.wording import advice

HOW = "install dasktc[cuda13] or dasktc[cuda12] to match the driver, or count with " + advice(backend="cpu")

try:
    import cupy as cp
except ImportError as error:
    raise InputError(f"CuPy cannot be imported ({error}): the cuda backend is not installed; {HOW}") from error

__all__ = [
    "KERNELS",
    "CudaDevice",
    "backend",
    "count",
    "device",
    "refuse_without_gpu",
    "synchronize",
    "warm",
]

CHUNK = 1 << 22
"""Elements of one step of elementwise arithmetic: 32 MB, which still take longer to move than a launch takes."""


class CudaDevice:
    """The current GPU as launches see it; implements `Device`."""

    array: ModuleType = cp

    def __init__(self) -> None:
        attributes = cp.cuda.Device().attributes
        self.processors = int(attributes["MultiProcessorCount"])
        self.shared_bytes = int(attributes.get("MaxSharedMemoryPerBlockOptin", 1 << 17))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ()  # the receiver's own

    def pointer(self, array: Array) -> int:
        """Address of an array's first element."""
        return int(array.data.ptr)

    def launch(
        self,
        kernel: str,
        entry: str,
        defines: Defines,
        grid: int,
        block: int,
        values: tuple[Any, ...],
        shared: int = 0,
    ) -> None:
        """Run an entry point on the current stream; CuPy raises if the launch fails."""
        # As bytes: CuPy would describe the fields of a structure, which takes longer than all else here.
        plain = tuple(value.view(f"V{value.itemsize}") if isinstance(value, np.ndarray) else value for value in values)
        _function(kernel, entry, defines, shared)((grid,), (block,), plain, shared_mem=shared)

    def later(self, numbers: Array) -> Callable[[], list[int]]:
        """Copy a few numbers to the host; the function waits for that, but for nothing that is launched later."""
        pinned, copied = cp.cuda.alloc_pinned_memory(numbers.nbytes), cp.cuda.Event(disable_timing=True)
        copy = np.frombuffer(pinned, numbers.dtype, numbers.size)
        numbers.get(out=copy, blocking=False)
        copied.record()

        def listed() -> list[int]:
            copied.synchronize()
            return [int(number) for number in copy]

        return listed

    def takes(self, kernel: str, entry: str, defines: Defines) -> tuple[int, int]:
        """Registers per thread, and bytes of static shared memory per block, of a compiled entry point."""
        function = _function(kernel, entry, defines, 0)
        return int(function.num_regs), int(function.shared_size_bytes)


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def device() -> CudaDevice:
    """Describe the current GPU, once per device."""
    return CudaDevice()


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _modules() -> Modules:
    number = cp.cuda.Device().id

    def compile_module(kernel: str, defines: Defines) -> Any:
        with cp.cuda.Device(number):
            module = cp.RawModule(code=source(kernel, defines), options=OPTIONS)
            module.compile()
        return module

    return Modules(compile_module)


@cp.memoize(for_each_device=True)  # type: ignore[untyped-decorator, unused-ignore]
def _function(kernel: str, entry: str, defines: Defines, shared: int) -> Any:
    function = _modules().get(kernel, defines).get_function(entry)
    if shared + function.shared_size_bytes > 48 << 10:
        function.max_dynamic_shared_size_bytes = shared
    return function


def count(task: BlockTask, kernel: str, macros: dict[str, int] | None = None) -> TaskCount:
    """Evaluate one block triple with a kernel; `seconds` are between two events around the launches.

    Parameters
    ----------
    task : BlockTask
        Its blocks are CuPy arrays on the current GPU.
    kernel : str
    macros : dict of str to int, optional
        In place of the kernel's own, such as {"VC": 0} for `trust`.

    Raises
    ------
    InputError
        No kernel has that name.
    """
    if kernel not in KERNELS:
        raise InputError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}; choose one of these")
    _modules().get(KERNELS[kernel].file, launch.defines(kernel, macros))  # compiled before the time is taken
    task = _convert(task)
    begin, end, ready = cp.cuda.Event(), cp.cuda.Event(), launch.ready(device(), task, kernel, macros)
    begin.record()
    launch.start(ready, kernel)
    end.record()
    counts = launch.counts(ready)
    end.synchronize()
    return TaskCount(*counts, seconds=float(cp.cuda.get_elapsed_time(begin, end)) / 1e3)


def _convert(task: BlockTask) -> BlockTask:
    """Convert a task's arrays to the kernels' types; roles of the same block still share it."""
    if all(map(_has_types, (task.index, task.table, task.stream))):
        return task
    blocks = {id(block): _convert_block(block) for block in (task.index, task.table, task.stream)}
    index, table, stream = (blocks[id(block)] for block in (task.index, task.table, task.stream))
    return replace(task, index=index, table=table, stream=stream)


def _has_types(block: OrientedCSR) -> bool:
    """Whether a block's arrays have the kernels' types."""
    return bool(block.offsets.dtype == "int64" and block.columns.dtype == "int32")


def _convert_block(block: OrientedCSR) -> OrientedCSR:
    if _has_types(block):
        return block
    offsets = cp.ascontiguousarray(block.offsets, dtype="int64")
    columns = cp.ascontiguousarray(block.columns, dtype="int32")
    return replace(block, offsets=offsets, columns=columns)


def synchronize() -> None:
    """Wait until the current device has finished."""
    cp.cuda.Device().synchronize()


def _usual_modules() -> list[tuple[str, Defines]]:
    """Modules that a count with kernel `auto` needs: file and macros, in the order in which it needs them."""
    sorts = [("sort", macros) for macros in RadixSort(device()).defines()]
    kernels = [(kernel.file, launch.defines(name)) for name, kernel in KERNELS.items() if kernel.auto]
    narrow, wide = ("edges", (("WIDE", 0),)), ("edges", (("WIDE", 1),))  # wide: keys of sampled edges
    return [("generate", (("WIDE", 0),)), narrow, *sorts, ("vertices", ()), wide, *kernels]


def warm() -> int:
    """Compile every module, or load it from CuPy's cache, and return their number."""
    kernels = [(kernel.file, launch.defines(name)) for name, kernel in KERNELS.items()]
    plain = [(file, ()) for file in ("answers", "bitmatrix", "cliques", "peel", "visit", "wedges")]
    wide = [(file, (("WIDE", wide),)) for file in ("edges", "generate", "text") for wide in (0, 1)]
    outputs = [
        (kernel.support.file, launch.defines(name, {**kernel.support.macros, **macros}))
        for name, kernel in KERNELS.items()
        for macros in ({}, {"VERTICES": 1})
        if kernel.support is not None
    ]
    futures = {_modules().ask(*module) for module in (*_usual_modules(), *kernels, *plain, *wide, *outputs)}
    for future in futures:
        future.result()
    return len(futures)


def _distinct(values: Array) -> Array:
    """Sorted distinct integers, found in chunks because sorting takes twice their memory."""
    parts = [cp.unique(values[start : start + CHUNK]) for start in range(0, len(values), CHUNK)]
    return cp.unique(cp.concatenate(parts)) if len(parts) > 1 else cp.unique(values)


def _make(recipe: Recipe, first: int, last: int) -> tuple[Array, Array]:
    return device_recipes.generate_edges(device(), recipe, first, last) or make_edges(cp, CHUNK, recipe, first, last)


def _support(task: BlockTask, kernel: str) -> tuple[list[Array], int, int]:
    if KERNELS[kernel].support is None:
        return device_visit.support(device(), _convert(task))
    return supports.edges(device(), _convert(task), kernel)


def _frames() -> ModuleType:
    try:
        import cudf
        import rmm  # noqa: F401  (what comes with it)
    except ImportError as error:
        raise InputError(f"cuDF cannot be imported ({error}): edge frames on the GPU need it; {HOW}") from error
    frames: ModuleType = cudf
    return frames


def refuse_without_gpu() -> None:
    """Raise InputError where no GPU or no driver is visible."""
    try:
        devices = cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise InputError(
            f"CUDA reports {error}: no GPU or no driver is visible; check nvidia-smi, or count with "
            f"{advice(backend='cpu')}"
        ) from error
    if devices == 0:
        raise InputError(
            f"CUDA reports 0 GPUs: none is visible; check nvidia-smi, or count with {advice(backend='cpu')}"
        )


@said_in_one_line
def backend(host: Backend) -> Backend:
    """Build the backend; needs cuDF and a GPU. `get_backend` does it once per process.

    Parameters
    ----------
    host : Backend
        Reads the parts that the device cannot.

    Raises
    ------
    InputError
        cuDF, the driver or a GPU is missing.
    DasktcError
        A context and a pool do not fit the GPU's memory.
    """
    refuse_without_gpu()
    for module in _usual_modules():  # compiled while cuDF is imported
        _modules().ask(*module)
    frames = _frames()
    from dasktc.backends.cuda import frames as cuda_frames
    from dasktc.backends.cuda import memory as cuda_memory
    from dasktc.backends.cuda.upload import Uploader

    # From here on calls allocate from the shared pool.
    until_the_call_ends(cuda_memory.share)
    edges = DeviceEdges(device())
    cuda = Backend(
        name="cuda",
        frame=frames,
        array=cp,
        read=lambda part, upstream: cuda_frames.read(cuda, host, part, upstream),
        wrap=EdgeArrays,
        edge_frame=cuda_frames.edge_frame,
        text=TextIds(
            cuda_frames.unite, cuda_frames.ascending, cuda_frames.dense, cuda_frames.arrow_of, cuda_frames.column_of
        ),
        distinct=_distinct,
        lookup=lambda ids, values: ids.searchsorted(values),
        sort=RadixSort(device()).sort,
        merge=RadixSort(device()).merge,
        dealt=lambda arrays, bound, span=None, calls=None: DeviceBuckets(arrays, bound, edges),
        count=count,
        expected_probes=partial(launch.expected_probes, cp),
        support=_support,
        vertex_support=lambda task, *arguments: supports.vertices(device(), _convert(task), *arguments),
        listing=lambda task, limit: device_visit.listing(device(), _convert(task), limit),
        batches=lambda task, size: device_visit.batches(device(), _convert(task), size),
        add_ends=partial(device_visit.add_ends, cp),
        cliques=lambda task, size: device_cliques.count(device(), _convert(task), size),
        closed_wedges=lambda task, strata: device_wedges.closed(device(), _convert(task), strata),
        memory=cuda_memory.available,
        chunk=CHUNK,
        edges=edges,
        part_edges=ArrayPartEdges(cp, CHUNK),
        block_facts=ArrayFacts(cp),
        peel=DevicePeel(device()),
        vertices=DeviceVertices(device()),
        bit_matrix=DeviceBitMatrix(device(), edges, _distinct),
        answers=DeviceAnswers(device()),
        make=_make,
        upload=Uploader(),
        rows=DeviceText(device()).rows,
        references=("plain", "merge"),
        processors=lambda: device().processors,
        wait=synchronize,
        warm=warm,
    )
    return cuda
