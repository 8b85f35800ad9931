"""Refuses outputs that would replace what a call reads, or that would be read with it the next time.

Files and folders are compared by what they are, not by their names: relative paths, symbolic and hard links, and other
spellings on file systems that ignore case lead to the same one.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import streams
from dasktc.options import path_text

__all__ = ["MANIFEST", "STANDARD_INPUT", "refuse_input"]

STANDARD_INPUT = "-"
MANIFEST = "dasktc-graph.json"
"""File of a saved graph, which names those that are read of its folder."""


def refuse_input(output: str | os.PathLike[str], *inputs: Any) -> None:
    """Refuse (InputError) an output that is an input, holds one, or would be among the files of one.

    Nothing is read of either. Hidden entries of a folder are not among its files.

    Parameters
    ----------
    output : path or fsspec URL
        A file or folder, which need not exist.
    *inputs : object
        Sources as callers give them, and names of other files that the call reads; None is none. Of a list, its items.
        Compared are paths, URLs, patterns, standard input, open files and arrays that are mapped from a file.
    """
    out = path_text("path", output)
    target = _Place.of(out)
    folders = set(target.folders(visible=True))
    for name, place in _places(inputs):
        if place.is_url != target.is_url:
            continue
        if place.identity is None:
            if glob.has_magic(place.path) and target.matches(place.path):
                raise InputError(f"{out} is among the files that {name} names, which are read: choose another place")
        elif place.identity == target.identity:
            raise InputError(f"{out} is {name}, which is read: it would be lost; choose another name")
        elif place.identity in folders:
            if not place.is_saved_graph():
                raise InputError(f"{out} is in {name}, all of which is read: choose a place outside this folder")
        elif target.is_folder and target.identity in place.folders():
            raise InputError(f"{out} holds {name}, which is read: it would be lost; choose another name")


class _Place:
    """A file, folder, pattern or URL."""

    def __init__(self, path: str, is_url: bool = False, identity: Hashable = None) -> None:
        self.path, self.is_url = path, is_url
        self.identity = _identity(path, is_url) if identity is None else identity
        """Device and inode number, or the URL; None if it does not exist."""

    @classmethod
    def of(cls, name: str) -> _Place:
        """Find the place that a path or URL names; in a chain of URLs that of the last one."""
        if not streams.is_remote(name):
            return cls(os.path.expanduser(name))
        last = name.rsplit("::", 1)[-1]
        if "://" not in last:
            return cls(last)
        protocol, _, rest = last.partition("://")
        if protocol in ("file", "local"):
            return cls(rest if os.path.lexists(rest) else unquote(rest))
        return cls(f"{protocol}://{rest.strip('/')}", True)

    @property
    def is_folder(self) -> bool:
        return self.is_url or os.path.isdir(self.path)

    def folders(self, visible: bool = False) -> Iterator[Hashable]:
        """Yield the identity of each folder above it, or only of those below which no part of its path is hidden."""
        path = PurePath(self.path if self.is_url else _real(self.path))
        while path.parent != path and not (visible and path.name.startswith(".")):
            path = path.parent
            yield _identity(str(path), self.is_url)

    def matches(self, pattern: str) -> bool:
        """Return whether it, or a folder above it, matches a pattern, in which ** stands for any folders."""
        root = pattern
        while glob.has_magic(root):
            root = os.path.dirname(root)
        folder, path = PurePath(os.path.realpath(root or ".")), PurePath(_real(self.path))
        patterns = [part for part in pattern[len(root) :].split("/") if part]
        return path.is_relative_to(folder) and _match(path.relative_to(folder).parts, patterns)

    def is_saved_graph(self) -> bool:
        path = f"{self.path}/{MANIFEST}"
        if not self.is_url:
            return os.path.isfile(path)
        with suppress(Exception):  # whoever reads it reports an unreachable file system
            fs, name = streams.filesystem(path)
            return bool(fs.isfile(name))
        return False


def _match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether `io.formats.listing` would list a path of these parts: it, or a folder above it, matches."""
    if not patterns or patterns == ["**"]:
        return not any(name.startswith(".") for name in names)
    first, *rest = patterns
    if first == "**":
        depth = next((place for place, name in enumerate(names) if name.startswith(".")), len(names))
        return any(_match(names[place:], rest) for place in range(depth + 1))
    if not names or (names[0].startswith(".") and not first.startswith(".")):
        return False
    return fnmatch.fnmatch(names[0], first) and _match(names[1:], rest)


def _real(path: str) -> str:
    """Return the path of an entry without links in the folders above it."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _identity(path: str, is_url: bool) -> Hashable:
    if is_url:
        return str(PurePath(path))
    with suppress(OSError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return None


def _places(inputs: Iterable[Any]) -> Iterator[tuple[str, _Place]]:
    """Yield the name and the place of each input that is in a file system."""
    for source in inputs:
        for item in source if isinstance(source, list | tuple) else [source]:
            if isinstance(item, str | os.PathLike | np.memmap):
                name: Any = item.filename if isinstance(item, np.memmap) else item
                name = "" if name is None else os.fsdecode(name)
                if name != STANDARD_INPUT:
                    if name and "\0" not in name:
                        yield name, _Place.of(name)
                    continue
                item = sys.stdin
            stream = getattr(item, "file", item)  # a temporary file has its file inside
            if isinstance(stream, io.IOBase):
                with suppress(OSError, ValueError):  # it is closed, or no file
                    status = os.fstat(stream.fileno())
                    yield "the open file", _Place("", identity=(status.st_dev, status.st_ino))
