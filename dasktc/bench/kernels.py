"""Times counting kernels on one prepared graph, each in a process of its own, without preparation.

`prepare_inputs` writes the graph once; our kernels, the plain Numba kernel (`marker`) and other tools (`others`) read
the same files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

__all__ = ["HAND", "OURS", "Counted", "Counter", "Inputs", "cpu_seconds", "prepare_inputs"]

Array = Any
T = TypeVar("T")
ORDERS = ("degree", "collective")


class Counted(NamedTuple):
    """The triangles that a counter counted, and its CPU seconds."""

    triangles: int
    seconds: float


@dataclass(frozen=True)
class Inputs:
    """Files that all counters read."""

    folder: str
    """Contains edges.npy, int32 (edges, 2), canonical over dense ids, and for each order of ids the offsets (int64) and
    columns (int32) of the oriented graph."""

    def edges(self) -> Array:
        """The canonical edges."""
        return self._load("edges")

    def oriented(self, order: str) -> tuple[Array, Array]:
        """Offsets and columns of the oriented graph in an order of ids."""
        return self._load(f"{order}-offsets"), self._load(f"{order}-columns")

    def save(self, name: str, array: Array) -> None:
        """Write an array under its name."""
        import numpy as np

        np.save(Path(self.folder, f"{name}.npy"), array)

    def _load(self, name: str) -> Array:
        import numpy as np

        return np.load(Path(self.folder, f"{name}.npy"))


class Counter(NamedTuple):
    """A tool or kernel that counts triangles, with the function that runs it."""

    name: str
    run: Callable[[Inputs], Counted]
    call: str
    """The timed call, as a user would write it."""
    missing: str = ""
    """How to install it, where it is missing."""


def cpu_seconds(function: Callable[[], T]) -> tuple[T, float]:
    """Call a function, and return its result and its CPU seconds."""
    began = time.process_time()
    value = function()
    return value, time.process_time() - began


def prepare_inputs(inputs: Inputs, scale: int) -> tuple[int, int]:
    """Write the files of a Kronecker graph; return its numbers of vertices and edges."""
    import numpy as np

    from dasktc.api.count import build
    from dasktc.executors.local import LocalExecutor
    from dasktc.io.generators.synthetic import kronecker
    from dasktc.options import Options
    from dasktc.pipeline.planes import choose
    from dasktc.pipeline.stages.edge_keys import unpack

    executor, source = LocalExecutor(), kronecker(scale)
    plane = choose(executor, Options())
    frames = plane.read(source)
    numbering = plane.number(frames, "int")
    edges = np.concatenate(list(plane.canonical(frames, numbering).partitions))
    vertices, dense = np.unique(np.stack(unpack(edges, numbering.shift), axis=1), return_inverse=True)
    inputs.save("edges", dense.reshape(-1, 2).astype("int32"))
    for order in ORDERS:
        block = build(executor, source, Options(partition="whole", reorder=order))._context.blocks[0, 0]
        inputs.save(f"{order}-offsets", block.offsets)
        inputs.save(f"{order}-columns", block.columns)
    return len(vertices), len(edges)


def _kernel(name: str, order: str, inputs: Inputs) -> Counted:
    import numpy as np

    from dasktc.backends import get_backend
    from dasktc.backends.csr import BlockTask, OrientedCSR

    def count(offsets: Array, columns: Array) -> int:
        block = OrientedCSR(offsets, columns, ordered=order == "degree")
        return get_backend("cpu").count(BlockTask(block, block, block), name).triangles

    count(np.array([0, 0, 1, 3]), np.array([0, 0, 1], "int32"))  # compiles, or loads compiled code
    offsets, columns = inputs.oriented(order)
    return Counted(*cpu_seconds(lambda: count(offsets, columns)))


def _hand(inputs: Inputs) -> Counted:
    from dasktc.bench.marker import count_by_marks

    count_by_marks.load()
    offsets, columns = inputs.oriented("degree")
    return Counted(*cpu_seconds(lambda: int(count_by_marks(offsets, columns))))


def _ours(kernel: str, order: str) -> Counter:
    return Counter(f"dasktc {kernel}", partial(_kernel, kernel, order), f"kernel {kernel}, {order} order")


HAND = Counter("marker", _hand, "dasktc.bench.marker.count_by_marks, degree order")
OURS = (
    _ours("hub", "degree"),
    _ours("trust", "collective"),
    _ours("merge", "degree"),
    _ours("search", "degree"),
)
