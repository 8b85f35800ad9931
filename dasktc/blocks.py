"""The oriented graph's keys to CSR blocks on the workers.

For n × n blocks, edge (u, v) gets the key ((u % n)·n + v % n)·R² + (u // n)·R + v // n with
R = ceil(V / n) rows a block: one sort brings the edges of each block together, rows ascending and
columns ascending inside a row. With fewer blocks than workers a block is built in slabs of rows,
so that every worker builds.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from dasktc.backend import get_backend
from dasktc.csr import OrientedCSR
from dasktc.edges import partition_count
from dasktc.keys import merge, transform, unpack
from dasktc.orient import Oriented
from dasktc.plan import Block
from dasktc.shuffle import exchange
from dasktc.tasks import Tasks

__all__ = ["Layout", "build_blocks", "grid_edges"]

Array = Any


class Layout(NamedTuple):
    """How vertices are spread over blocks.

    Attributes
    ----------
    parts : int
        n.
    vertices : int
        V.
    shift : int
        Bits an id takes in an edge key.
    ordered : bool
        Every edge points to a smaller id (`degree` order).
    """

    parts: int
    vertices: int
    shift: int
    ordered: bool

    @property
    def rows(self) -> int:
        """R, the rows of every block."""
        return max(1, -(-self.vertices // self.parts))

    @property
    def area(self) -> int:
        """R², the keys that belong to one block."""
        return self.rows**2


def grid_edges(tasks: Tasks, graph: Oriented, layout: Layout, backend: str) -> Any:
    """Edges in each block, an int64 NumPy array of shape (n, n)."""
    counted = tasks.map("plan", _histogram, list(graph.partitions), layout, backend)
    shape = (layout.parts, layout.parts)
    return np.array(tasks.gather(counted), dtype="int64").sum(axis=0).reshape(shape)


def _histogram(keys: Array, layout: Layout, backend: str) -> list[int]:
    """Edges of one partition in each block, row after row."""
    xp, n, chunk = get_backend(backend).array, layout.parts, get_backend(backend).chunk
    if n == 1:
        return [len(keys)]
    found = xp.zeros(n * n, dtype="int64")
    for start in range(0, len(keys), chunk):
        source, target = unpack(keys[start : start + chunk], layout.shift)
        found += xp.bincount(source % n * n + target % n, minlength=n * n)
    return [int(edges) for edges in found]


def build_blocks(tasks: Tasks, graph: Oriented, layout: Layout, backend: str) -> dict[Block, Any]:
    """Shuffle the oriented edges into n² CSR blocks.

    Parameters
    ----------
    tasks : Tasks
    graph : Oriented
        Its partitions are emptied.
    layout : Layout
    backend : str

    Returns
    -------
    dict of (i, j) to handle of OrientedCSR
        By place in the 2D partition.
    """
    n = layout.parts
    slabs = -(-partition_count(graph.edges, tasks.workers) // n**2)
    rows = tasks.gather([tasks.submit("blocks", _slab_rows, graph.out_degree, layout, slabs, backend)])[0]
    starts = [b * layout.area + row * layout.rows for b in range(n * n) for row in rows[b // n]]
    keys = tasks.map("blocks", _block_keys, graph.partitions, layout, backend)
    ranges = exchange(tasks, "blocks", keys, starts[1:], n * n * layout.area, backend)
    ends = [*starts[1:], n * n * layout.area]
    built = [
        tasks.submit("blocks", _slab, pieces, start, end, layout, backend)
        for pieces, start, end in zip(ranges, starts, ends, strict=True)
    ]
    places = [(i, j) for i in range(n) for j in range(n)]
    return {
        place: tasks.submit("blocks", _stack, built[b * slabs : (b + 1) * slabs], place, layout, backend)
        for b, place in enumerate(places)
    }


def _slab_rows(out_degree: Array, layout: Layout, slabs: int, backend: str) -> list[list[int]]:
    """For each row part i, the first rows of `slabs` ranges of rows with about equally many edges."""
    xp, found = get_backend(backend).array, []
    for i in range(layout.parts):
        edges = xp.cumsum(out_degree[i :: layout.parts])
        wanted = xp.arange(1, slabs) * (int(edges[-1]) if len(edges) else 0) // slabs
        found.append([0, *(int(row) for row in edges.searchsorted(wanted))])
    return found


def _block_keys(keys: Array, layout: Layout, backend: str) -> Array:
    n, rows, area = layout.parts, layout.rows, layout.area

    def placed(chunk: Array) -> Array:
        source, target = unpack(chunk, layout.shift)
        if n == 1:
            return source * rows + target
        block = source % n * n + target % n
        return block * area + source // n * rows + target // n

    return transform(keys, placed, backend)


def _slab(pieces: list[Array], start: int, end: int, layout: Layout, backend: str) -> tuple[Array, Array]:
    """Offsets and columns of the rows whose keys lie in [start, end)."""
    xp, chunk = get_backend(backend).array, get_backend(backend).chunk
    keys = merge(pieces, layout.parts**2 * layout.area, backend)
    offsets = keys.searchsorted(xp.arange(start, end + 1, layout.rows, dtype="int64"))
    columns = xp.empty(len(keys), dtype="int32")
    for first in range(0, len(keys), chunk):
        columns[first : first + chunk] = keys[first : first + chunk] % layout.rows
    return offsets, columns


def _stack(slabs: list[tuple[Array, Array]], place: tuple[int, int], layout: Layout, backend: str) -> OrientedCSR:
    xp = get_backend(backend).array
    offsets, columns = slabs[0]
    if len(slabs) > 1:
        columns = xp.concatenate([c for _, c in slabs])
        before = [0, *accumulate(len(c) for _, c in slabs[:-1])]
        offsets = xp.concatenate([offsets[:1], *(o[1:] + b for (o, _), b in zip(slabs, before, strict=True))])
    return OrientedCSR(offsets, columns, layout.parts, place[0], place[1], layout.ordered)
