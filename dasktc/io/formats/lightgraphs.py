"""LightGraphs / Graphs.jl text files (.lg, .jlg): `V,E,u|d,name[,...]`, then `source,destination` rows.

Ids are the file's own, 1 to V. A file may hold several graphs one after another; such a file is
refused, since the rows of one would pass for edges of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dasktc.errors import InputError
from dasktc.io.formats import files, lines

if TYPE_CHECKING:
    from dasktc.backends import Backend
    from dasktc.io.source import Ids, Part, ReadOptions

__all__ = ["OPTIONS", "looks_like", "parts"]

OPTIONS: dict[str, frozenset[str]] = {"lg": frozenset()}


@dataclass(frozen=True)
class _File:
    url: str
    vertices: int
    edges: int
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        pairs = lines.id_pairs(self.url, ",", 2, range(1, self.vertices + 1), self.edges)
        return backend.frame.DataFrame(pairs)


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
    head = files.head(url, 1024)
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
    if len(fields) < 4 or fields[2] not in (b"u", b"d") or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    return int(fields[0]), int(fields[1])
