"""Reads the one file of edges in a tar archive, as collections publish their graphs, without unpacking the archive.

The members are passed in order. The first that may hold edges is read; another one behind it is an error at the end of
the data, unless the archive names the first for itself: `NAME/NAME.mtx` of SuiteSparse, `NAME/out.NAME` of KONECT.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from dasktc.errors import InputError

__all__ = ["EdgeFile", "is_tar"]

_HEADERS = 1 << 22
"""Most bytes before the data of a member: names, attributes and padding; more are damage, and would fill memory."""
_BLOCK = 1 << 16
_DOCUMENTS = ("readme", "license", "licence", "copying")


def is_tar(head: bytes) -> bool:
    """Tell a tar archive by its first 262 bytes."""
    return head[257:262] == b"ustar" and b"\0" in head[:257]


class EdgeFile(io.RawIOBase):
    """The data of the file of edges in a tar archive, of which `stream` is at the first byte; `url` names it for users.

    InputError: the archive is damaged or holds no such file; from a read: it is cut short, or holds a second one.
    """

    def __init__(self, stream: BinaryIO, url: str) -> None:
        self._stream, self._url = _Bounded(stream, url), url
        source: Any = self._stream  # which has the two methods that are called
        try:
            self._archive = tarfile.open(fileobj=source, mode="r|", bufsize=_BLOCK)
        except tarfile.TarError as error:
            raise self._damaged(error) from error
        member = self._next()
        if member is None:
            raise InputError(
                f"{url} is a tar archive without a file of edges; unpack it, and give the files with edges"
            )
        self.member = member.name
        self._data: Any = self._archive.extractfile(member)
        file = PurePosixPath(member.name)
        self._is_last = file.parent.name in (file.stem, file.name.removeprefix("out."))  # named for the archive

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer with the next data, and return the number of bytes; 0 at the end."""
        try:
            data: bytes = self._data.read(len(buffer))
        except tarfile.TarError as error:
            raise self._damaged(error) from error
        if not data and not self._is_last:
            self._is_last = True
            if (member := self._next()) is not None:
                raise InputError(
                    f"{self._url} holds several files, {self.member} and {member.name} among them: which has the edges "
                    "is not clear; unpack it, and give the files with edges"
                )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the archive."""
        if not self.closed:
            self._archive.close()
            self._stream.close()
        super().close()

    def _next(self) -> tarfile.TarInfo | None:
        """Return the next regular file that may hold edges, and pass over the data of those before."""
        try:
            while True:
                self._stream.left = _HEADERS
                member: tarfile.TarInfo | None = self._archive.next()
                self._stream.left = None
                if member is None or (member.isfile() and not _is_beside(member.name)):
                    return member
                if data := self._archive.extractfile(member) if member.isfile() else None:
                    while data.read(_BLOCK):
                        pass
        except tarfile.TarError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self._url} is a tar archive that is damaged or was cut short: {error}; fetch it again")


class _Bounded:
    """A stream whose next bytes may be limited in number."""

    def __init__(self, stream: BinaryIO, url: str) -> None:
        self._stream, self._url = stream, url
        self.left: int | None = _HEADERS

    def read(self, nbytes: int) -> bytes:
        data = self._stream.read(nbytes)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise InputError(
                    f"{self._url} is a tar archive with more than {_HEADERS:,} bytes of names before a file: damaged; "
                    "fetch it again"
                )
        return data

    def close(self) -> None:
        self._stream.close()


def _is_beside(path: str) -> bool:
    """Return whether a member is by its name no file of edges: a text about the data, or attributes of its vertices."""
    file = PurePosixPath(path)
    graph = file.parent.name
    return (
        file.name.lower().startswith(_DOCUMENTS)
        or any(part.startswith(".") for part in file.parts)
        or (graph != "" and file.name.startswith((f"meta.{graph}", f"ent.{graph}")))
        or (graph != "" and file.name.startswith(f"{graph}_") and file.suffix == ".mtx")
    )
