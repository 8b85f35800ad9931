"""SMAT files: a line `rows columns entries`, then one line `row column value` an entry, 0-based.

Ids are the file's own. An entry is an edge whatever its value, as in `dasktc.io.formats.matrixmarket`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dasktc.errors import InputError
from dasktc.io.formats import lines

if TYPE_CHECKING:
    from dasktc.io.source import Ids, Part, ReadOptions

__all__ = ["OPTIONS", "parts"]

OPTIONS: dict[str, frozenset[str]] = {"smat": frozenset()}


@dataclass(frozen=True)
class _File(lines.ByBlock):
    url: str
    rows: int
    entries: int
    upstream: None = None

    def arrays(self, nbytes: int) -> Iterator[Any]:
        return lines.id_pairs(self.url, None, 3, range(self.rows), self.entries, nbytes)


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Read an SMAT file as one part.

    Parameters
    ----------
    url : str
    options : ReadOptions

    Raises
    ------
    InputError
        The first line is not three counts, or the matrix is not square.
    """
    first = lines.first_line(url)
    sizes = lines.counts(first.split())
    if sizes is None or len(sizes) != 3:
        raise InputError(
            f"line 1 of {url} holds {first[:40].decode('utf-8', 'replace')!r} where an SMAT file has rows, "
            "columns and entries: another format; check --format"
        )
    rows, columns, entries = sizes
    if rows != columns:
        raise InputError(
            f"{url} is a matrix of {rows:,} x {columns:,}: only a square one is the adjacency of a graph; "
            "for a bipartite graph give its vertices distinct ids in one edge list"
        )
    return [_File(url, rows, entries)], "int"
