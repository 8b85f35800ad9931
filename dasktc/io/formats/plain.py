"""Parse plain rows of integers on a device with cuDF.

cuDF's CSV reader refuses no text: it returns some number for any field. It is therefore given only blocks
that leave nothing to interpret: unsigned integers below 10^18 and one separator, the same number of fields
in every line. There its result equals that of module `rows`; the check of a block runs on the device.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from dasktc.io.formats.dialect import Dialect

if TYPE_CHECKING:
    from dasktc.backends import Backend

__all__ = ["plain_rows"]

Array = Any
NEWLINE, ZERO, NINE = (ord(mark) for mark in "\n09")
DIGITS = 18
"""Any integer of so many digits fits int64."""


def plain_rows(backend: Backend, block: bytes, dialect: Dialect) -> tuple[Array, Array, int] | None:
    """Read the ids in a block of whole lines on the device.

    Parameters
    ----------
    backend : Backend
        With a `frame` module that reads CSV: cuDF.
    block : bytes
    dialect : Dialect

    Returns
    -------
    source, target : device array of int64
    rows : int
        Or None in place of all three, where the rows are not plain.
    """
    separator = _separator(block, dialect)
    if separator is None:
        return None
    text = block if block.endswith(b"\n") else block + b"\n"
    width = _width(backend.array, text, ord(separator))
    if width is None or max(dialect.columns) >= width:
        return None
    names = [f"f{place}" for place in range(width)]
    chosen = [names[place] for place in dialect.columns]
    used, buffer = sorted(set(chosen)), io.BytesIO(text)
    # Without `compression` cuDF looks for a file's name, has none, and says so on the terminal for every block.
    frame = backend.frame.read_csv(
        buffer, sep=separator, header=None, names=names, usecols=used, dtype="int64", compression=None
    )
    source, target = (frame[name].values for name in chosen)
    return source, target, len(source)


def _separator(block: bytes, dialect: Dialect) -> str | None:
    if dialect.ids == "text":
        return None
    if dialect.separator is not None:
        return dialect.separator
    if sorted(dialect.columns) != [0, 1]:
        return None
    return "\t" if b"\t" in block[: block.find(b"\n")] else " "


def _width(xp: Any, block: bytes, separator: int) -> int | None:
    """Number of fields in every line, or None if the block is not plain."""
    text = xp.asarray(np.frombuffer(block, np.uint8))
    ends = text == NEWLINE
    marks = ends | (text == separator)
    if not bool((marks | ((text >= ZERO) & (text <= NINE))).all()):
        return None
    places = xp.flatnonzero(marks)
    sizes = places[1:] - places[:-1] - 1
    first = int(places[0])
    if not (1 <= first <= DIGITS and bool(((sizes >= 1) & (sizes <= DIGITS)).all())):
        return None
    ends = ends[places]
    width = int(xp.flatnonzero(ends)[0]) + 1
    if len(places) % width:
        return None
    lines = ends.reshape(-1, width)
    return width if bool(lines[:, -1].all()) and not bool(lines[:, :-1].any()) else None
