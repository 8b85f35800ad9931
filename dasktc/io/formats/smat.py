"""Reads SMAT files: a line `rows columns entries`, then one line `row column value` per entry, 0-based.

Ids are those of the file. An entry is an edge whatever its value, as in `dasktc.io.formats.matrixmarket`.
"""

from __future__ import annotations

from dasktc.io.formats import entries, lines
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids

__all__ = ["parts"]


class _File(entries.IntegerRows):
    separator = None
    width = 3


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Read an SMAT file as one part; InputError if the first line is not three sizes, or the matrix is not square."""
    header = entries.header_line(url)
    sizes = lines.counts(header.text.split())
    if sizes is None or len(sizes) != 3:
        raise entries.bad_header(url, header, "an SMAT header 'rows columns entries'")
    entries.check_square(url, sizes[:2])
    return [_File(url, range(sizes[0]), sizes[2], len(header.head))], "int"
