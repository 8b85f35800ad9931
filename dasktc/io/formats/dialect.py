"""Dialects of text lines: separators, fields, integers. Module `rows` parses whole blocks of lines."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import NamedTuple

from dasktc.options import Ids

__all__ = ["BLANKS", "Dialect", "Doubt", "is_integer", "split"]

BLANKS = " \t\r\x0b\x0c"


@dataclass(frozen=True)
class Dialect:
    """Description of how to read a line.

    Attributes
    ----------
    separator : str or None
        One character, with blanks around it, or None for any run of blanks.
    columns : tuple of two int
        Positions of the source's and the target's id, from 0.
    ids : {"int", "text"}
    weight : int or None
        Position of the weight, or of surveyed values, from 0; None: it is not read.
    names : tuple of two str or None
        Names of the two columns of text ids in the header. A row with these names is no edge but a repeated header, of
        files that were joined.
    widths : tuple of two int or None
        Fewest and most fields of a row. A line that begins with # or % is a row if its number of fields lies between
        and its ids are of this type, else a comment. None: no line is a comment, as below the header of a CSV file.
    surveyed : bool
        Whether the fields at `weight` are any text, for surveys.
    """

    separator: str | None
    columns: tuple[int, int]
    ids: Ids
    weight: int | None = None
    names: tuple[str, str] | None = None
    widths: tuple[int, int] | None = (2, 2)
    surveyed: bool = False


class Doubt(NamedTuple):
    """A first row that was read as a header or as an edge and may be the other.

    With `zeros` it is a row of integers of which one begins with zeros, which are not kept.
    """

    url: str
    line: int
    row: str
    header: bool
    zeros: bool = False


def is_integer(field: str) -> bool:
    """Return whether a field is an integer: decimal digits, optionally after a minus sign."""
    return re.fullmatch(r"-?[0-9]+", field) is not None


def split(text: str, separator: str | None) -> list[str]:
    """Split a line into fields, without surrounding blanks and quotes."""
    if separator is None:
        return re.split(f"[{BLANKS}]+", text.strip(BLANKS + "\n"))
    blanks = BLANKS.replace(separator, "")
    try:
        fields = next(csv.reader([text.strip(blanks + "\n")], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a field exceeds the limit of the csv module
        fields = text.split(separator)
    return [field.strip(blanks + "\n") for field in fields]
