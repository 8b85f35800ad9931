"""Recipes of generated graphs: arithmetic from an edge's index to its two ends.

Every recipe is counter-based: edge i depends only on i and the recipe, so any range of edges can be made anywhere, and
the graph is the same for any number of parts. All arithmetic is on unsigned integers that wrap around, with integer
thresholds, so every array module gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from dasktc.errors import InputError
from dasktc.wording import option

__all__ = ["KRONECKER_CUTS", "RMAT_CUTS", "Grid3D", "Kronecker", "RMat", "RandomGraph", "Recipe", "make_edges"]

Array = Any
Ends = tuple[Array, Array]

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_REDRAWS = 1000


@dataclass(frozen=True)
class Recipe(ABC):
    """A graph that is computed from edge indices; it is pickled with every part.

    Attributes
    ----------
    vertices : int
        Exclusive upper bound of the ids.
    edges : int
        Number of edges made, including loops, duplicates and both directions.
    """

    vertices: int
    edges: int

    @property
    def bits(self) -> int:
        """Bits of an id, where the number of vertices is a power of two."""
        return self.vertices.bit_length() - 1

    @abstractmethod
    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Return sources and targets of edges first <= i < last: arrays of `xp`, any integer types."""


@dataclass(frozen=True)
class Kronecker(Recipe):
    """A Kronecker (R-MAT) graph with the Graph 500 shares 0.57, 0.19, 0.19, 0.05."""

    seed: int

    @property
    def counter(self) -> int:
        """Argument of splitmix64 for bit 0 of edge 0, its increment included."""
        return (self.seed * 2**40 + _GOLDEN) % 2**64

    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Choose the quadrant at each level by splitmix64."""
        counter = xp.arange(first, last, dtype=xp.uint64)
        counter *= xp.uint64(64)
        counter += xp.uint64(self.counter)
        draws = _splitmix64(xp, counter, self.bits)
        return _descend(xp, draws, KRONECKER_CUTS, last - first)


@dataclass(frozen=True)
class RMat(Recipe):
    """The TRUST paper's RM: an R-MAT graph with shares 0.5, 0.1, 0.1, 0.3."""

    seed: int

    @property
    def hashed_seed(self) -> int:
        """Factor of the arithmetic progressions, the hash of the seed."""
        return int(_jenkins(np, np.array([self.seed], np.uint32))[0])

    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Choose the quadrant at each level by hashes of an arithmetic progression with a hashed start and stride."""
        seed = self.hashed_seed
        start = _jenkins(xp, _progression(xp, 2 * first * seed, 2 * seed, last - first))
        stride = _jenkins(xp, _progression(xp, (2 * first + 1) * seed, 2 * seed, last - first))
        draws = (_jenkins(xp, start + stride * xp.uint32(level)) for level in range(self.bits))
        return _descend(xp, draws, RMAT_CUTS, last - first)


@dataclass(frozen=True)
class RandomGraph(Recipe):
    """The TRUST paper's RA: every vertex draws edges / vertices neighbours uniformly."""

    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Draw each target by hashing the edge's index, and hash again while that makes a loop."""
        source = xp.arange(first, last, dtype=xp.int64) // (self.edges // self.vertices)
        draw = _jenkins(xp, _progression(xp, first, 1, last - first))
        target = _modulo(draw, self.vertices)
        for _ in range(_REDRAWS):
            loops = xp.flatnonzero(target == source)
            if not len(loops):
                return source, target
            draw[loops] = _jenkins(xp, draw[loops])
            target[loops] = _modulo(draw[loops], self.vertices)
        self.refuse(first + int(loops[0]))

    def refuse(self, edge: int) -> NoReturn:
        """Refuse an edge that stays a loop however often it is drawn."""
        vertex = edge // (self.edges // self.vertices)
        raise InputError(
            f"edge {edge} of the random graph joins vertex {vertex} to itself {_REDRAWS} times on end: "
            f"its hash is at a fixed point or in a short cycle; choose other {option('vertices')} or {option('edges')}"
        )


@dataclass(frozen=True)
class Grid3D(Recipe):
    """The TRUST paper's 3D: a torus in which every vertex joins its +1 neighbour on each axis."""

    side: int

    def ends(self, xp: ModuleType, first: int, last: int) -> Ends:
        """Edge 3 v + axis goes from vertex v to its +1 neighbour on that axis."""
        vertex = xp.arange(first // 3, -(-last // 3), dtype=xp.int64)
        neighbours = xp.empty((len(vertex), 3), dtype=xp.int64)
        for axis in range(3):
            step = self.side**axis
            at_end = _modulo(vertex // step, self.side) == self.side - 1
            neighbours[:, axis] = vertex + xp.where(at_end, step - self.side * step, step)
        cut = slice(first % 3, first % 3 + last - first)
        return xp.repeat(vertex, 3)[cut], neighbours.ravel()[cut]


def _modulo(values: Array, divisor: int) -> Array:
    """Return `values % divisor` of values >= 0, as int64; NumPy vectorises //, but not %."""
    values = values.astype("int64")
    return values - values // divisor * divisor


def _progression(xp: ModuleType, start: int, step: int, length: int) -> Array:
    """Return `length` terms of start, start + step, ... modulo 2^32."""
    counter = xp.arange(length, dtype=xp.uint32)
    counter *= xp.uint32(step % 2**32)
    counter += xp.uint32(start % 2**32)
    return counter


def make_edges(xp: ModuleType, chunk: int, recipe: Recipe, first: int, last: int) -> Ends:
    """Make edges first <= i < last of a recipe, `chunk` at a time: arrays of int32, or int64 where ids need that."""
    src, dst = (xp.empty(last - first, dtype=xp.int32 if recipe.vertices <= 2**31 else xp.int64) for _ in range(2))
    for start in range(first, last, chunk):
        stop = min(start + chunk, last)
        src[start - first : stop - first], dst[start - first : stop - first] = recipe.ends(xp, start, stop)
    return src, dst


def _splitmix64(xp: ModuleType, counter: Array, bits: int) -> Iterator[Array]:
    """Yield splitmix64(counter + b) for b = bits - 1, ..., 0, each in the same buffer.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. `counter` already holds the
    increment. The last step, x ^ x >> 31, does not change the upper 24 bits, the only ones used, and is left out.
    """
    x, shifted = xp.empty_like(counter), xp.empty_like(counter)
    for bit in reversed(range(bits)):
        xp.add(counter, xp.uint64(bit), out=x)
        for shift, mix in ((30, _MIX_1), (27, _MIX_2)):
            xp.right_shift(x, xp.uint64(shift), out=shifted)
            x ^= shifted
            x *= mix
        yield x


def _jenkins(xp: ModuleType, a: Array) -> Array:
    """Overwrite `a` (uint32) with Bob Jenkins' integer hash of it, and return it."""
    shifted = xp.empty_like(a)

    def mixed(combine: Any, constant: int, merge: Any, shift: Any, bits: int) -> None:
        shift(a, xp.uint32(bits), out=shifted)
        combine(a, xp.uint32(constant), out=a)
        merge(a, shifted, out=a)

    add, xor, left, right = xp.add, xp.bitwise_xor, xp.left_shift, xp.right_shift
    mixed(add, 0x7ED55D16, add, left, 12)
    mixed(xor, 0xC761C23C, xor, right, 19)
    mixed(add, 0x165667B1, add, left, 5)
    mixed(add, 0xD3A2646C, xor, left, 9)
    mixed(add, 0xFD7046C5, add, left, 3)
    mixed(xor, 0xB55A4F09, xor, right, 16)
    return a


def _descend(xp: ModuleType, draws: Iterable[Array], cuts: tuple[Any, ...], length: int) -> Ends:
    """Return rows and columns after a descent into quadrants, with one draw per level, highest bit first.

    A draw below cuts[0] sets neither bit, below cuts[1] the column's, below cuts[2] the row's, and otherwise both: the
    row bit is draw >= cuts[1], the column bit the parity of the number of cuts passed.
    """
    bits = xp.zeros((2, length), dtype=xp.uint8)  # eight levels at a time, because bytes are fastest to shift
    ids = xp.zeros((2, length), dtype=xp.uint64)
    count = 0
    for draw in draws:
        row = draw >= cuts[1]
        column = (draw >= cuts[0]) ^ row ^ (draw >= cuts[2])
        bits <<= xp.uint8(1)
        bits[0] |= row.view(xp.uint8)
        bits[1] |= column.view(xp.uint8)
        count += 1
        if count == 8:
            ids = ids << xp.uint64(8) | bits
            count = 0
    ids = ids << xp.uint64(count) | bits & xp.uint8(2**count - 1)
    return ids[0], ids[1]


KRONECKER_CUTS = tuple(np.uint64(cut << 40) for cut in (9563013, 12750684, 15938355))
"""0.57, 0.76 and 0.95 of 2^24, compared with the upper 24 of 64 bits."""

RMAT_CUTS = tuple(map(np.uint32, (2147483648, 2576980377, 3006477107)))
"""0.5, 0.6 and 0.7: the least hashes h of 32 bits for which h / (2^32 - 1), rounded to a double, is not below that."""
