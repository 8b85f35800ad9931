"""Decodes the BVGraph bit stream with Numba; see `dasktc.io.formats.bvgraph` for the papers.

`stream` is an array of bytes, `at` an array of one int64, the next bit to read (the highest bit of a
byte first). `layout` holds nodes, windowsize, minintervallength, zetak and the five codes. Every
function raises ValueError if the stream cannot be that of a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit, types

from dasktc.backends.cpu.jit import Kernel

__all__ = ["decode"]

Array = Any
P = ParamSpec("P")
R = TypeVar("R")
NODES, WINDOW, MIN_INTERVAL, ZETA, OUTDEGREES, BLOCKS, RESIDUALS, REFERENCES, BLOCK_COUNT = range(9)
DELTA_CODE, GAMMA_CODE, UNARY_CODE = 1, 2, 5
WIDEST = 62
"""Bits of the widest number that is read; with its leading one it is below 2 ** 63."""


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that is compiled with the kernel that calls it, and cached with that kernel.

    All such functions are in this file, whose digest is part of the cache key.
    """
    return cast(Callable[P, R], njit(nogil=True)(function))


@_compiled
def _unary(stream: Array, cursor: Array) -> int:
    start = bit = int(cursor[0])
    last = 8 * len(stream)
    while bit < last and not (stream[bit >> 3] >> (7 - (bit & 7))) & 1:
        bit += 1
    if bit >= last:
        raise ValueError("the stream ends inside a number")
    cursor[0] = bit + 1
    return bit - start


@_compiled
def _binary(stream: Array, cursor: Array, width: int) -> int:
    bit = int(cursor[0])
    if width > WIDEST:
        raise ValueError("a number is wider than 62 bits")
    if bit + width > 8 * len(stream):
        raise ValueError("the stream ends inside a number")
    value = 0
    for place in range(bit, bit + width):
        value = value << 1 | int(stream[place >> 3] >> (7 - (place & 7))) & 1
    cursor[0] = bit + width
    return value


@_compiled
def _gamma(stream: Array, cursor: Array) -> int:
    width = _unary(stream, cursor)
    return (1 << width | _binary(stream, cursor, width)) - 1


@_compiled
def _zeta(stream: Array, cursor: Array, k: int) -> int:
    shell = _unary(stream, cursor) * k
    value = _binary(stream, cursor, shell + k - 1)
    base = 1 << shell
    if value < base:
        return value + base - 1
    return (value << 1 | _binary(stream, cursor, 1)) - 1


@_compiled
def _number(stream: Array, cursor: Array, layout: Array, field: int) -> int:
    code = layout[field]
    if code == GAMMA_CODE:
        return _gamma(stream, cursor)
    if code == UNARY_CODE:
        return _unary(stream, cursor)
    if code == DELTA_CODE:
        width = _gamma(stream, cursor)
        return (1 << width | _binary(stream, cursor, width)) - 1
    return _zeta(stream, cursor, layout[ZETA])


@_compiled
def _signed(value: int) -> int:
    return -(value + 1 >> 1) if value & 1 else value >> 1


@_compiled
def _copy(stream: Array, cursor: Array, layout: Array, source: Array, target: Array) -> int:
    """Copy the blocks that this list shares with the referred list; return their number of arcs."""
    count = start = 0
    is_copied = True
    blocks = _number(stream, cursor, layout, BLOCK_COUNT)
    for block in range(blocks + 1):
        if block == blocks:  # the rest after the last block is one more block
            length = len(source) - start
        else:
            length = _number(stream, cursor, layout, BLOCKS) + (block > 0)
        if length > len(source) - start or (is_copied and length > len(target) - count):
            raise ValueError("a list copies more arcs than there are")
        if is_copied:
            for offset in range(length):
                target[count + offset] = source[start + offset]
            count += length
        start += length
        is_copied = not is_copied
    return count


@_compiled
def _intervals(stream: Array, cursor: Array, layout: Array, node: int, target: Array) -> int:
    """Write the runs of consecutive successors; return their number of arcs."""
    count = 0
    end = -1
    for interval in range(_gamma(stream, cursor)):
        gap = _gamma(stream, cursor)
        start = end + 1 + gap if interval else node + _signed(gap)
        extent = _gamma(stream, cursor)
        if start < 0 or max(start, extent) > layout[NODES]:  # checked before their sum overflows
            raise ValueError("an interval leaves the graph or its list")
        length = extent + layout[MIN_INTERVAL]
        end = start + length
        if end > layout[NODES] or length > len(target) - count:
            raise ValueError("an interval leaves the graph or its list")
        for offset in range(length):
            target[count + offset] = start + offset
        count += length
    return count


@_compiled
def _residuals(stream: Array, cursor: Array, layout: Array, node: int, target: Array) -> None:
    successor = node + _signed(_number(stream, cursor, layout, RESIDUALS))
    for place in range(len(target)):
        if place:
            successor += 1 + _number(stream, cursor, layout, RESIDUALS)
        if successor < 0 or successor >= layout[NODES]:
            raise ValueError("a successor is outside the graph")
        target[place] = successor


def _decode(stream: Array, cursor: Array, layout: Array, node: int, window: int, offsets: Array, lists: Array) -> int:
    for i in range(window, len(offsets) - 1):
        mark, begin = cursor[0], offsets[i]
        degree = _number(stream, cursor, layout, OUTDEGREES)
        if degree > layout[NODES]:
            raise ValueError("a list is longer than the graph has nodes")
        if degree > len(lists) - begin:
            cursor[0] = mark
            return i
        target = lists[begin : begin + degree]
        offsets[i + 1] = begin + degree
        list_node = node + i - window
        copies = runs = 0
        if degree and layout[WINDOW]:
            reference = _number(stream, cursor, layout, REFERENCES)
            if reference > min(i, layout[WINDOW]):
                raise ValueError("a list refers to one outside the window")
            if reference:
                source = lists[offsets[i - reference] : offsets[i - reference + 1]]
                copies = _copy(stream, cursor, layout, source, target)
        if copies < degree and layout[MIN_INTERVAL]:
            runs = _intervals(stream, cursor, layout, list_node, target[copies:])
        if copies + runs < degree:
            _residuals(stream, cursor, layout, list_node, target[copies + runs :])
        if 0 < copies + runs and not (copies == degree or runs == degree):
            target.sort()  # three ascending runs; a later list copies from their order
    return len(offsets) - 1


def _kernel(ids: Any) -> Kernel[int]:
    """Compile for lists of this type; the stream is a read-only view of bytes."""
    stream = types.Array(types.uint8, 1, "C", readonly=True)
    numbers = types.Array(types.int64, 1, "C")
    lists = types.Array(ids, 1, "C")
    return Kernel(_decode, (stream, numbers, numbers, types.int64, types.int64, numbers, lists))


KERNELS = {4: _kernel(types.int32), 8: _kernel(types.int64)}
"""Kernels by the bytes of an id."""


def decode(stream: Array, cursor: Array, layout: Array, node: int, window: int, offsets: Array, lists: Array) -> int:
    """Decode nodes until `offsets` or `lists` is full.

    Parameters
    ----------
    stream, cursor, layout : arrays
        See the module. Afterwards `cursor` is at the first node that was not decoded.
    node : int
        The first node to decode.
    window : int
        Number of nodes just before it whose lists are already in `lists`.
    offsets : array of int64
        List i is `lists[offsets[i]:offsets[i + 1]]`; the first `before + 1` are given, the rest written.
    lists : array of int32 or int64

    Returns
    -------
    int
        The number of lists now in `lists`, the given ones included.

    Raises
    ------
    ValueError
        The stream is not that of a graph with this layout.
    """
    return int(KERNELS[lists.itemsize](stream, cursor, layout, node, window, offsets, lists))
