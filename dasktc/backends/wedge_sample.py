"""A sample of the wedges of a graph's block triples that does not depend on what evaluates it.

A wedge of a triple is a vertex u with two of its outgoing edges, (u, v) in the index block and (u, w) in the table
block; it is closed if the stream block has (v, w). The wedges of all triples, by triple and by row, are numbered 0 to
W - 1. The sample cuts them into strata of equal width and draws one wedge of each by a hash of the stratum's number and
the seed, so that every task knows the sampled wedges of its own triple. A number that the last stratum draws beyond W
is no wedge and is not drawn again: every wedge has the same probability.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from dasktc.backends.csr import OrientedCSR

__all__ = ["MULTIPLIERS", "STEP", "Strata", "wedges_of"]

STEP = 0x9E3779B97F4A7C15
MULTIPLIERS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Multipliers of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195)."""


class Strata(NamedTuple):
    """The sampled wedges of a triple: those of the strata `first` to `end` - 1 that are its own."""

    first: int
    end: int
    before: int
    """Wedges of the triples before this one."""
    width: int
    """Wedges of a stratum."""
    key: int
    """Key of the hash, below 2^64."""
    one: bool
    """Index and table are one block: a wedge is two entries of a row, in either order."""


def wedges_of(index: OrientedCSR, table: OrientedCSR, one: bool, xp: ModuleType, chunk: int = 1 << 22) -> int:
    """Exact number of wedges of a block triple: one factor is split so that no partial sum can exceed 64 bits.

    Where edges point to higher degrees a row has at most √(2E) entries; in another order it may have all vertices.
    `one` says that index and table are one block. `xp` is numpy or cupy, whose arrays the blocks are; it sums the
    wedges of `chunk` rows in one step.
    """
    wedges = 0
    for row in range(0, index.rows, chunk):
        lengths = xp.diff(index.offsets[row : row + chunk + 1])
        factors = lengths - 1 if one else xp.diff(table.offsets[row : row + chunk + 1])[: len(lengths)]
        wedges += (int((lengths * (factors >> 20)).sum()) << 20) + int((lengths * (factors & ((1 << 20) - 1))).sum())
    return wedges >> one
