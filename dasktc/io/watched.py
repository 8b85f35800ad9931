"""Parts of files that are refused if a file changes while it is read.

A file may be replaced or rewritten while a count reads it: parts, or passes, would then be of two graphs. A stamp of
each file (size, time of its last change, inode; of a URL what its server says of it) is taken before anything is read
of it. Whoever has read a part compares the stamp with the file as it then is. The part that is read last thus finds a
change that came between any two parts, in another pass, or on another worker.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import streams
from dasktc.wording import plural

__all__ = ["Stamp", "WatchedPart", "mapped", "stamp", "watched"]

_TOLD = (
    *("size", "ETag", "etag", "e_tag", "mtime", "modified", "LastModified", "last_modified", "Last-Modified"),
    *("updated", "generation", "VersionId", "version_id", "md5", "md5Hash", "content_md5", "Content-MD5", "Digest"),
    *("checksum", "CRC", "date_time", "created"),
)
"""What file systems of fsspec say of a file that differs once the file has changed."""
_READS = ("chunks", "chunks_on_device", "ends", "read_on_device")
"""Optional methods of a part that read it, or return an iterator that does."""


class Stamp(NamedTuple):
    """By what a file is recognised."""

    size: int | None = None
    """In bytes; None behind a URL."""
    time: int | None = None
    """Of the last change, in microseconds: not all file systems keep nanoseconds."""
    inode: tuple[str, int, int] | None = None
    """Host, device and number; compared on one host alone."""
    told: tuple[tuple[str, str], ...] = ()
    """What the server of a URL says."""

    def same(self, other: Stamp) -> bool:
        """Return whether two stamps may be of one file."""
        if self.inode and other.inode and self.inode[0] == other.inode[0] and self.inode != other.inode:
            return False
        return self._replace(inode=None) == other._replace(inode=None)


def stamp(url: str) -> Stamp | None:
    """Take the stamp of a file; None if it is gone, or a server says nothing of it."""
    with suppress(Exception):  # whoever reads the file reports what is wrong
        if not streams.is_remote(url):
            status = os.stat(url)
            inode = socket.gethostname(), status.st_dev, status.st_ino
            return Stamp(status.st_size, status.st_mtime_ns // 1000, inode)
        fs, path = streams.filesystem(url)
        fs.invalidate_cache(path)
        info = fs.info(path)
        return Stamp(told=tuple((name, str(info[name])) for name in _TOLD if info.get(name) is not None))
    return None


@dataclass(frozen=True)
class WatchedPart:
    """A part that compares the stamps of its files once it is read, and else is the part that it wraps."""

    part: Any
    files: tuple[tuple[str, Stamp], ...]
    """Paths or URLs of the files that it reads."""
    is_mapped: bool = False
    """The files are mapped to memory: they may be replaced, but not rewritten, and are not seen by other processes."""

    @property
    def upstream(self) -> Any:
        """The part's."""
        return self.part.upstream

    def read(self, backend: Any, upstream: Any = None) -> Any:
        """Read the part, and refuse files that changed meanwhile."""
        with self._watching():
            return self.part.read(backend, upstream)

    def __getattr__(self, name: str) -> Any:
        """Return what is the part's; its optional methods are watched, too."""
        if name.startswith("__") or name in self.__dataclass_fields__:
            raise AttributeError(name)
        value = getattr(self.part, name)
        if name in _READS:
            return self._chunks(value) if name.startswith("chunks") else self._watching()(value)
        if name == "joined":
            return self._joined
        return (lambda *args: replace(self, part=value(*args))) if name == "noting" else value

    def __reduce__(self) -> Any:
        if self.is_mapped:  # its rows are copied now
            self.refuse_changes()
            return itemgetter(0), ((self.part,),)
        return WatchedPart, (self.part, self.files)

    def _joined(self, successor: Any) -> Any:
        """Return one part for this and another; None as the part does."""
        part = self.part.joined(getattr(successor, "part", successor))
        files = dict.fromkeys((*self.files, *getattr(successor, "files", ())))
        return None if part is None else replace(self, part=part, files=tuple(files))

    def _chunks(self, function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def watched(*args: Any) -> Iterator[Any]:
            with self._watching():
                yield from function(*args)

        return watched

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Refuse files that changed; that comes before any error of reading, of which it is the cause."""
        try:
            yield
        except GeneratorExit:
            raise
        except Exception:
            self.refuse_changes()
            raise
        self.refuse_changes()

    def refuse_changes(self) -> None:
        """Compare the stamps with the files as they are; InputError if they differ."""
        for url, expected in self.files:
            new_stamp = stamp(url)
            if self.is_mapped and (new_stamp is None or new_stamp.inode != expected.inode):
                continue
            if new_stamp is None or not expected.same(new_stamp):
                raise InputError(_changed(url, expected, new_stamp))


def _changed(url: str, expected: Stamp, new_stamp: Stamp | None) -> str:
    if new_stamp is None:
        return f"{url} changed while it was read: it is gone; count again when nothing writes to it"
    facts = "its server says that it is another version"
    if expected.size is not None and new_stamp.size is not None:
        facts = f"it had {plural(expected.size, 'byte')} and has {new_stamp.size:,}"
        if expected.size == new_stamp.size:
            facts = f"it was written again, or replaced, with {plural(new_stamp.size, 'byte')} as before"
    advice = "count again when nothing writes to it"
    if expected.inode and new_stamp.inode and expected.inode[0] != new_stamp.inode[0]:
        advice = (
            f"or host {new_stamp.inode[0]} has another file of that name than {expected.inode[0]}: give all workers "
            "one file, or copies that keep its time, as cp -p makes them"
        )
    return f"{url} changed while it was read: {facts}; {advice}"


def watched(parts: Sequence[Any], url: str, expected: Stamp | None) -> list[Any]:
    """Watch the files of parts.

    Parameters
    ----------
    parts : sequence of Part
        Parts of one file.
    url : str
        Its path or URL, as it was listed; a part may read another file beside it, which is its `url`.
    expected : Stamp or None
        Its stamp, taken before anything was read of it; without one it is not watched.
    """
    stamps = {url: expected}
    for part in parts:
        part_url = getattr(part, "url", url)
        if part_url not in stamps:
            stamps[part_url] = stamp(part_url)
    files = tuple((name, file_stamp) for name, file_stamp in stamps.items() if file_stamp)
    return [WatchedPart(part, files) if files else part for part in parts]


def mapped(parts: Sequence[Any], *columns: Any) -> list[Any]:
    """Watch the files that columns in memory are mapped from, if they are."""
    names = dict.fromkeys(name for column in columns if (name := _mapped_file(column)))
    files = tuple((name, state) for name in names if (state := stamp(name)))
    return [WatchedPart(part, files, is_mapped=True) if files else part for part in parts]


def _mapped_file(column: Any) -> str | None:
    """Path of the file that an array is mapped from, or is a view of such an array; None for others."""
    while isinstance(column, np.ndarray):
        if isinstance(column, np.memmap) and column.filename is not None:
            return os.path.abspath(os.fspath(column.filename))
        column = column.base
    return None
