"""Parses rows of two integers from a text, in one compiled pass over its bytes.

Texts are read as `io.formats.rows` reads them, and left to it where they differ from the plain case, as on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dasktc.backends.cpu.instructions import WINDOW, byte_mask, eight_bytes, trailing_zeros
from dasktc.backends.cpu.jit import ConstBytes, Ids, KernelOfIds, inlined
from dasktc.backends.csr import Array

__all__ = ["parse"]

SHORTEST = 4
"""Bytes of the shortest row, with its end."""
DIGITS = 19
"""Most digits of an id: any number of so many digits fits 64 bits without a sign, and is then compared with LARGEST."""
LARGEST = 2**63 - 1
NEWLINE, RETURN, TAB, SPACE, QUOTE, HASH, PERCENT, MINUS, ZERO = map(ord, '\n\r\t "#%-0')

U = np.uint64


@inlined
def _is_blank(byte: Any) -> Any:
    """Whether a byte is a blank, but no carriage return, which is plain at the end of a line alone."""
    return byte == SPACE or (TAB <= byte < RETURN and byte != NEWLINE)


@inlined
def _behind_blanks(text: Any, start: Any, separator: Any) -> Any:
    """The first byte from a place on that is no blank, or the separator."""
    place = start
    while text[place] != separator and _is_blank(text[place]):
        place += U(1)
    return place


@inlined
def _behind_field(text: Any, start: Any, separator: Any) -> Any:
    """Where the field at a place ends: before a separator, the end of the line, or, between separators, a quote."""
    place, is_spaced = start, separator == NEWLINE
    while (
        text[place] != separator
        and text[place] != NEWLINE
        and text[place] != RETURN
        and not (_is_blank(text[place]) if is_spaced else text[place] == QUOTE)
    ):
        place += U(1)
    return place


@inlined
def _next_field(text: Any, end: Any, separator: Any) -> Any:
    """Where the field behind one that ends at a place begins; the place itself where nothing separates them."""
    place = _behind_blanks(text, end, separator)
    if separator != NEWLINE:
        place = _behind_blanks(text, place + U(1), separator) if text[place] == separator else end
    return place


@inlined
def _integer(text: Any, start: Any) -> Any:
    """The integer at a place, and its end: the place itself where there is none of 64 bits."""
    is_negative = text[start] == MINUS
    begin = start + U(is_negative)
    place, value = begin, U(0)
    digit = U(text[place]) - U(ZERO)
    while digit < U(10):
        value = value * U(10) + digit
        place += U(1)
        digit = U(text[place]) - U(ZERO)
    if place == begin or place - begin > U(DIGITS) or value > U(LARGEST):
        place = start
    return -np.int64(value) if is_negative else np.int64(value), place


@inlined
def _ends(text: Any, start: Any) -> Any:
    """Where the first two bytes that are no digits, and the first line end, are among WINDOW bytes; else behind these.

    They are compared together: numbers differ in length, and a loop over digits would mispredict where each one ends.
    """
    others = ~byte_mask(text, start, U(ZERO), U(10))
    newlines = byte_mask(text, start, U(NEWLINE), U(1)) | U(1 << WINDOW)
    second = others & (others - U(1))
    return start + trailing_zeros(others), start + trailing_zeros(second), start + trailing_zeros(newlines)


@inlined
def _number(text: Any, start: Any, end: Any) -> Any:
    """The number whose digits, fewer than DIGITS, stand between two places; the text has eight bytes from the first."""
    size = min(end - start, U(8))
    # The first digits become the last bytes of a word, after zeros; then neighbours are joined.
    word = (eight_bytes(text, start) & U(0x0F0F0F0F0F0F0F0F)) << (U(64) - U(8) * size)
    word = (U(10) * word + (word >> U(8))) & U(0x00FF00FF00FF00FF)
    word = (U(100) * word + (word >> U(16))) & U(0x0000FFFF0000FFFF)
    value = (U(10000) * word + (word >> U(32))) & U(0xFFFFFFFF)
    for place in range(start + size, end):
        value = value * U(10) + U(text[place]) - U(ZERO)
    return np.int64(value)


@KernelOfIds
def _parse(source: Ids, target: Ids, text: ConstBytes, separator: int, first: int, between: int) -> tuple[int, bool]:
    """Parse lines, the last of which has an end, up to an id that is too wide for the arrays.

    Returns the number of rows, -1 for odd ones, and whether there is such an id.
    """
    rows, place = 0, U(0)
    while place < U(len(text)):
        # Most lines are two short numbers, one separator and an end.
        is_plain = False
        if first + between == 0 and place + U(WINDOW + 8) <= U(len(text)):
            a_end, b_end, newline = _ends(text, place)
            is_plain = (
                place < a_end < place + U(DIGITS)
                and a_end + U(1) < b_end <= a_end + U(DIGITS)
                and (text[a_end] == separator or (separator == NEWLINE and _is_blank(text[a_end])))
                and (b_end == newline or (b_end + U(1) == newline and text[b_end] == RETURN))
                and newline < place + U(WINDOW)
            )
        if is_plain:
            a, b, place = _number(text, place, a_end), _number(text, a_end + U(1), b_end), newline
        else:
            begin = place
            while _is_blank(text[place]):
                place += U(1)
            if text[place] == HASH or text[place] == PERCENT:
                return -1, False
            has_row = text[place] != NEWLINE and text[place] != RETURN  # else the line is blank
            if has_row:
                place = _behind_blanks(text, begin, separator)
                for _ in range(first):
                    end = _behind_field(text, place, separator)
                    place = _next_field(text, end, separator)
                    if place == end:
                        return -1, False
                a, end = _integer(text, place)
                if end == place:
                    return -1, False
                place = _next_field(text, end, separator)
                if place == end:
                    return -1, False
                for _ in range(between):
                    end = _behind_field(text, place, separator)
                    place = _next_field(text, end, separator)
                    if place == end:
                        return -1, False
                b, end = _integer(text, place)
                if end == place:
                    return -1, False
                place = _behind_blanks(text, end, separator)
                is_end = text[place] == NEWLINE or text[place] == RETURN
                if not (is_end or (place > end if separator == NEWLINE else text[place] == separator)):
                    return -1, False
            while text[place] != NEWLINE:
                is_odd = text[place] == QUOTE and separator != NEWLINE
                if is_odd or (text[place] == RETURN and text[place + U(1)] != RETURN and text[place + U(1)] != NEWLINE):
                    return -1, False
                place += U(1)
        place += U(1)
        if is_plain or has_row:
            source[rows], target[rows] = a, b
            if source[rows] != a or target[rows] != b:
                return rows, True
            rows += 1
    return rows, False


def parse(text: Array, separator: str | None, columns: tuple[int, int]) -> tuple[Array, Array] | None:
    """Parse a text of whole lines; see `protocol.Backend.rows`.

    Parameters
    ----------
    text : array of uint8
    separator : str or None
        One character; None: any run of blanks.
    columns : tuple of two int
        Columns of the source's and the target's id, counted from 0.

    Returns
    -------
    source, target : array of int32, or int64 where ids need that
        None where `io.formats.rows.parse` has to parse the text: a row does not hold two integers of at most 19 digits
        each, below 2^63 in magnitude, begins with # or %, or holds a quote.
    """
    first, last = sorted(columns)
    if first == last or not (separator or "").isascii():
        return None
    if len(text) and text[-1] != NEWLINE:
        text = np.append(text, np.uint8(NEWLINE))
    mark = NEWLINE if separator is None else ord(separator)
    for dtype in (np.int32, np.int64):
        pair = [np.empty(len(text) // SHORTEST + 1, dtype) for _ in range(2)]
        rows, is_wide = _parse(*pair, text, mark, first, last - first - 1)
        if rows < 0:
            return None
        if not is_wide:
            break
    source, target = (ids[:rows] for ids in (pair if columns[0] == first else pair[::-1]))
    return source, target
