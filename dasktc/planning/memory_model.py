"""Bytes that counting tasks hold, computed from the edges and rows of blocks that are not built yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backends.protocol import TaskSize
from dasktc.planning.schemes import BYTES_PER_ROW, Numbers, Scheme, Sizes

__all__ = ["Scratch", "bytes_of_triples", "task_bytes", "triple_bytes"]

Scratch = Callable[[TaskSize], int]
"""Returns the most bytes of kernel scratch that a task takes."""


def task_bytes(scheme: Scheme, parts: int, splits: int, sizes: Sizes, scratch: Scratch) -> Numbers:
    """Bytes held by a task of each triple, int64: each of its blocks once, and scratch."""
    return bytes_of_triples(scheme, parts, splits, sizes, scratch, scheme.triples(parts))


def bytes_of_triples(
    scheme: Scheme,
    parts: int,
    splits: int,
    sizes: Sizes,
    scratch: Scratch,
    triples: Numbers,
    shares: Numbers | None = None,
    limit: int | None = None,
) -> Numbers:
    """Bytes held by a task of each triple, int64: each of its blocks once, and scratch.

    Parameters
    ----------
    scheme, parts, splits, sizes, scratch
    triples : array of int64, shape (triples, 3)
        The scheme's, for this number of parts.
    shares : array of int64, shape (triples,), optional
        How many times each triple's splits are scheduled; None: once.
    limit : int, optional
        The only question is whether a task takes more bytes than this. If one of the largest tasks does, the scratch
        of the others is left out: where blocks differ in size, no two of n³ tasks are alike.
    """
    edges, widths = sizes.edges.ravel(), np.maximum(sizes.rows, sizes.columns).ravel()
    nbytes: Numbers = triple_bytes(triples, scheme.block_bytes(sizes).ravel())
    lower = scheme.dealing.lower(parts, sizes).ravel()[triples[:, 1:]].all(axis=1)
    # Scratch, from the edges and widths of each triple's blocks; triples that are alike are asked about once.
    times = splits if shares is None else splits * np.maximum(shares, 1)
    cuts, classes = 1 if scheme.cut == "edges" else times, parts if scheme.dealing.in_turn else 1
    index_edges, *other_edges = edges[triples].T
    cut = np.broadcast_to(cuts, len(triples))
    tasks = np.stack([-(-index_edges // times), *other_edges, widths[triples].max(axis=1), cut, lower], axis=1)
    if scheme.cut == "edges":
        nbytes += BYTES_PER_ROW * (int(sizes.rows[0, 0]) + 1)  # offsets of the range

    def scratch_of(kinds: Numbers) -> Numbers:
        return np.array(
            [scratch(TaskSize(i, t, s, width, cut, classes, bool(low))) for i, t, s, width, cut, low in kinds.tolist()]
        )

    if limit is not None:
        largest = np.unique([nbytes.argmax(), *tasks[:, :4].argmax(axis=0)])
        largest_bytes = nbytes[largest] + scratch_of(tasks[largest])
        if int(largest_bytes.max()) > limit:
            nbytes[largest] = largest_bytes
            return nbytes
    if len(tasks) == 1:
        kinds, number = tasks, np.zeros(1, dtype="int64")  # saves the tenth of a millisecond that `unique` takes
    else:
        kinds, number = np.unique(tasks, axis=0, return_inverse=True)
    nbytes += scratch_of(kinds)[number.ravel()]
    return nbytes


def triple_bytes(triples: Numbers, block_bytes: Numbers) -> Any:
    """Bytes of each triple's blocks, each block counted once.

    Parameters
    ----------
    triples : array of int64, shape (triples, 3)
        Numbers of each triple's blocks.
    block_bytes : array, shape (blocks,)
        Bytes of each block.
    """
    index, table, stream = triples.T
    nbytes = block_bytes[index] + block_bytes[table] * (table != index)
    return nbytes + block_bytes[stream] * ((stream != index) & (stream != table))
