"""Reads LightGraphs / Graphs.jl text files (.lg, .jlg): `V,E,u|d,name[,...]`, then `source,destination` rows.

Ids are those of the file, 1 to V. A file may hold several graphs one after another; such a file is
refused, because the rows of one would be counted as edges of another.
"""

from __future__ import annotations

from dasktc.io.formats import entries, lines
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids

__all__ = ["looks_like", "parts"]


class _File(entries.IntegerRows):
    separator = ","
    width = 2


def looks_like(head: bytes) -> bool:
    """Return whether decompressed first bytes begin with a LightGraphs header line."""
    return _sizes(head) is not None


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Read a LightGraphs file as one part; InputError if the first line is no header of such a file."""
    header = entries.header_line(url)
    sizes = _sizes(header.text)
    if sizes is None:
        raise entries.bad_header(url, header, "a LightGraphs header 'V,E,u,name' or 'V,E,d,name'")
    return [_File(url, range(1, sizes[0] + 1), sizes[1], len(header.head))], "int"


def _sizes(head: bytes) -> list[int] | None:
    """Parse the numbers of vertices and edges in a header line; return None if it is not a header."""
    fields = [field.strip() for field in head.split(b"\n", 1)[0].split(b",")]
    return lines.counts(fields[:2]) if len(fields) >= 4 and fields[2] in (b"u", b"d") else None
