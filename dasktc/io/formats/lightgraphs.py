"""LightGraphs / Graphs.jl text files (.lg, .jlg): `V,E,u|d,name[,...]`, then `source,destination` rows.

Ids are the file's own, 1 to V. A file may hold several graphs one after another; such a file is
refused, since the rows of one would pass for edges of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dasktc.errors import InputError
from dasktc.io.formats import lines

if TYPE_CHECKING:
    from dasktc.io.source import Ids, Part, ReadOptions

__all__ = ["OPTIONS", "looks_like", "parts"]

OPTIONS: dict[str, frozenset[str]] = {"lg": frozenset()}


@dataclass(frozen=True)
class _File(lines.ByBlock):
    url: str
    vertices: int
    edges: int
    upstream: None = None

    def arrays(self, nbytes: int) -> Iterator[Any]:
        return lines.id_pairs(self.url, ",", 2, range(1, self.vertices + 1), self.edges, nbytes)


def looks_like(head: bytes) -> bool:
    """Whether decompressed first bytes are a LightGraphs header line."""
    return _header(head) is not None


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Read a LightGraphs file as one part.

    Parameters
    ----------
    url : str
    options : ReadOptions

    Raises
    ------
    InputError
        The first line is not a LightGraphs header.
    """
    head = lines.first_line(url)
    header = _header(head)
    if header is None:
        text = head.split(b"\n", 1)[0][:40].decode("utf-8", "replace")
        raise InputError(
            f"line 1 of {url} holds {text!r} where a LightGraphs file has 'V,E,u,name' or 'V,E,d,name': "
            "another format; check --format"
        )
    return [_File(url, *header)], "int"


def _header(head: bytes) -> tuple[int, int] | None:
    fields = [field.strip() for field in head.split(b"\n", 1)[0].split(b",")]
    sizes = lines.counts(fields[:2])
    if len(fields) < 4 or fields[2] not in (b"u", b"d") or sizes is None:
        return None
    return sizes[0], sizes[1]
