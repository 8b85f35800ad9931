"""Lines of text formats that open with a header of counts: cutting, counting, reading, blaming."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, NoReturn

from dasktc.errors import InputError
from dasktc.io.formats import files

__all__ = ["blocks", "filled", "id_pairs"]

SEPARATORS = {None: r"\s+", ",": ","}
"""How pandas spells a separator of `str.split`."""


def blocks(stream: BinaryIO, nbytes: int) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines, of about `nbytes` bytes or one line."""
    pieces: list[bytes] = []
    while data := stream.read(nbytes):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, data[:cut]])
            pieces = [data[cut:]]
        else:
            pieces.append(data)
    if any(pieces):
        yield b"".join(pieces)


def filled(block: bytes) -> int:
    """Count the lines that hold more than blanks."""
    text = block.translate(None, b" \t\r")
    while b"\n\n" in text:
        text = text.replace(b"\n\n", b"\n")
    text = text.strip(b"\n")
    return text.count(b"\n") + 1 if text else 0


def id_pairs(url: str, separator: str | None, width: int, bounds: range, rows: int) -> Any:
    """Read the integer pairs that begin the lines after line 1.

    Parameters
    ----------
    url : str
    separator : {None, ","}
        None: any white space.
    width : {2, 3}
        Fields of a line; a third one is a number, and is not kept.
    bounds : range
        What an id may be.
    rows : int
        How many rows the header says.

    Returns
    -------
    pandas.DataFrame
        Columns "src" and "dst", int32 where `bounds` allows it, else int64.

    Raises
    ------
    InputError
        A line is not of that form, or there are not `rows` of them.
    """
    import numpy as np
    import pandas as pd

    types = dict(enumerate(["int64", "int64", "float64"][:width]))
    with files.open_decompressed(url) as stream:
        stream.readline()
        try:
            with np.errstate(invalid="ignore"):  # a "nan" among integers is refused without a warning
                frame = pd.read_csv(
                    stream,
                    sep=SEPARATORS[separator],
                    header=None,
                    dtype=types,
                    na_filter=False,
                    quoting=csv.QUOTE_NONE,
                    low_memory=False,
                )
        except pd.errors.EmptyDataError:
            frame = pd.DataFrame({place: pd.Series(dtype=kind) for place, kind in types.items()})
        except (ValueError, OverflowError):
            _blame(url, separator, width, bounds)
    if len(frame.columns) != width:
        _blame(url, separator, width, bounds)
    frame = frame[[0, 1]].set_axis(["src", "dst"], axis=1)
    if len(frame) and (int(frame.min().min()) < bounds.start or int(frame.max().max()) >= bounds.stop):
        _blame(url, separator, width, bounds)
    if len(frame) != rows:
        raise InputError(
            f"{url} holds {len(frame):,} edges where line 1 says {rows:,}: the file was cut short or joined "
            "with another, or its header is wrong; fetch or export it again"
        )
    return frame.astype("int32" if bounds.stop <= 1 << 31 else "int64")


def _blame(url: str, separator: str | None, width: int, bounds: range) -> NoReturn:
    """Name the first line that is wrong; slow, and only run when one is."""
    with files.open_decompressed(url) as stream:
        for number, raw in enumerate(islice(stream, 1, None), 2):
            fields = raw.decode("utf-8", "replace").strip().split(separator)
            if fields not in ([], [""]) and not _is_row(fields, width, bounds):
                raise InputError(
                    f"line {number} of {url} holds {' '.join(fields)[:40]!r} where two integers from "
                    f"{bounds.start} to {bounds.stop - 1}{' and a value' * (width == 3)} are expected: "
                    "damaged, or another format; check the line, or --format"
                )
    raise InputError(f"{url} cannot be read as lines of two integers: damaged, or another format; check --format")


def _is_row(fields: list[str], width: int, bounds: range) -> bool:
    try:
        numbers = [int(fields[0]), int(fields[1]), *map(float, fields[2:])]
    except (ValueError, IndexError):
        return False
    return len(numbers) == width and all(number in bounds for number in numbers[:2])
