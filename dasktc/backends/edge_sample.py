"""A sample of edges that does not depend on where their rows stand: those whose ends have one colour, by a hash of ids.

All rows of an edge, in both directions, are in the sample or none is. Colours are hashes of ids and of a key, so parts
of a source are sampled apart from each other, and loops are always in the sample.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from dasktc.backends.wedge_sample import MULTIPLIERS

__all__ = ["Colours", "colours_of"]

Array = Any


class Colours(NamedTuple):
    """Random colours of vertices."""

    number: int
    """Number of colours, below 2^32; the sample has about one of so many edges."""
    key: int
    """Key of the hash, below 2^64."""


def colours_of(ids: Array, colours: Colours, xp: ModuleType) -> Array:
    """Colour of each id: `number` times the upper half of splitmix64, as an array of uint64.

    An id has one colour, whether it stands in 32 bits or in 64. `xp` is numpy or cupy, whose array the ids are.
    """
    x = ids.astype("int64").view("uint64")
    x += xp.uint64(colours.key)
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        x ^= x >> xp.uint64(shift)
        x *= xp.uint64(multiplier)
    return (x >> xp.uint64(32)) * xp.uint64(colours.number) >> xp.uint64(32)
