"""Files: finding those that a source names, and opening them decompressed.

A compressed file is known by its first bytes, not by its name, and may be compressed more than
once. Local files are opened by the standard library; fsspec is imported for URLs only.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from dasktc.errors import InputError

__all__ = ["expand", "head", "is_compressed", "is_remote", "open_decompressed", "read_range", "size"]

# What file systems and writers of data sets leave beside the data.
_SIDE_FILES = {"_SUCCESS", "_metadata", "_common_metadata"}
_SIDE_FOLDERS = {"_temporary", "_delta_log", "_spark_metadata", "__MACOSX", "__pycache__"}
_BVGRAPH_SIDE = {".properties", ".offsets", ".ef", ".obl", ".cmp", ".dcf"}
_NESTING = 8  # an archive inside an archive ...: more than this is a trap, not data
_BUFFER = 1 << 18


def expand(source: str | os.PathLike[str]) -> list[str]:
    """List the files that a source names.

    Parameters
    ----------
    source : str or path
        A file, a folder (everything under it), a glob pattern (`**` for any depth), or an fsspec
        URL of one of these. Hidden files, `_SUCCESS` and the like, and the side files of a
        BVGraph (`.properties`, `.offsets`, ... beside a `.graph`) are left out of folders and
        patterns.

    Returns
    -------
    list of str
        Paths or URLs, sorted.

    Raises
    ------
    InputError
        There is no such file, or no file with edges among them.
    """
    source = os.fspath(source)
    if not is_remote(source):
        source = os.path.expanduser(source)
    names = _expand_remote(source) if is_remote(source) else _expand_local(source)
    files = names if names == [source] else _data_files(names, source)
    if not files:
        raise InputError(
            f"{source} is a directory without edges: it holds no file that could be data; "
            "give a file, or a folder or pattern with files in it"
        )
    return sorted(files)


def head(url: str, nbytes: int = 1 << 16) -> bytes:
    """First `nbytes` bytes of a file (fewer where it is shorter), decompressed."""
    with open_decompressed(url) as stream:
        return stream.read(nbytes)


def is_compressed(url: str) -> bool:
    """Whether the file's first bytes are those of a gzip, bzip2, xz or Zstandard archive."""
    with _open(url) as stream, _naming(url):
        return _archive_kind(stream) is not None


def is_remote(url: str) -> bool:
    """Whether the name is an fsspec URL rather than a local path."""
    return "://" in url or "::" in url


def size(url: str) -> int:
    """Bytes of the file as it is stored."""
    with _naming(url):
        if not is_remote(url):
            return os.stat(url).st_size
        fs, path = _filesystem(url)
        return int(fs.size(path))


def read_range(url: str, start: int, stop: int) -> bytes:
    """Bytes `start` to `stop` of the file as it is stored."""
    with _open(url) as stream, _naming(url):
        stream.seek(start)
        return stream.read(stop - start)


def open_decompressed(url: str) -> io.BufferedReader:
    """Open a file for reading, decompressed as often as it was compressed.

    Parameters
    ----------
    url : str
        A path or an fsspec URL.

    Returns
    -------
    io.BufferedReader
        Seekable if the file is not compressed. A truncated or damaged archive raises InputError
        from whichever read meets the damage.

    Raises
    ------
    InputError
        The file cannot be opened.
    """
    stream = _open(url)
    try:
        for _ in range(_NESTING):
            with _naming(url):
                kind = _archive_kind(stream)
            if kind is None:
                return stream
            stream = io.BufferedReader(_Guarded(_ARCHIVES[kind][1](stream), stream, url), _BUFFER)
        raise InputError(f"{url} is compressed more than {_NESTING} times over; decompress it first")
    except BaseException:
        stream.close()
        raise


def _expand_local(source: str) -> list[str]:
    if os.path.isfile(source):
        return [source]
    if os.path.isdir(source):
        return _below(source)
    if os.path.exists(source):
        raise InputError(f"{source} is not a regular file, and data is read more than once; save it to a file first")
    if not glob.has_magic(source):
        raise InputError(f"{source} does not exist; check the path (the working directory is {os.getcwd()})")
    matches = glob.glob(source, recursive=True)
    if not matches:
        raise InputError(f"no file matches {source}; check the pattern (the working directory is {os.getcwd()})")
    below = [name for match in matches if os.path.isdir(match) for name in _below(match)]
    return list({match for match in matches if os.path.isfile(match)}.union(below))


def _below(folder: str) -> list[str]:
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]


def _expand_remote(source: str) -> list[str]:
    with _naming(source):
        fs, path = _filesystem(source)
        if fs.isfile(path):
            return [source]
        if fs.isdir(path):
            found = fs.find(path)
        elif not glob.has_magic(path):
            raise InputError(f"{source} does not exist; check the URL")
        else:
            found = [name for name in fs.glob(path) if not fs.isdir(name)]
            if not found:
                raise InputError(f"no file matches {source}; check the pattern")
    # In a chain such as simplecache::s3://bucket/x the first link with a path is the one that was listed.
    links = source.split("::")
    place = next(i for i, link in enumerate(links) if "://" in link)
    return ["::".join([*links[:place], fs.unstrip_protocol(name), *links[place + 1 :]]) for name in found]


def _data_files(names: list[str], source: str) -> list[str]:
    """Leave out what stands beside the data, in folders that the caller did not name."""
    graphs = {_without_gz(name)[: -len(".graph")] for name in names if _without_gz(name).endswith(".graph")}
    given = set(re.split(r"[/\\]", source))
    return [name for name in names if not _is_side_file(name, graphs, given)]


def _is_side_file(path: str, graphs: set[str], given: set[str]) -> bool:
    *folders, name = re.split(r"[/\\]", path)
    stem, suffix = os.path.splitext(_without_gz(path))
    if any((folder.startswith(".") or folder in _SIDE_FOLDERS) and folder not in given for folder in folders):
        return True
    return name.startswith(".") or name in _SIDE_FILES or (suffix in _BVGRAPH_SIDE and stem in graphs)


def _without_gz(name: str) -> str:
    return name.removesuffix(".gz")


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    fs, path = fsspec.core.url_to_fs(url)
    return fs, path


def _open(url: str) -> io.BufferedReader:
    with _naming(url):
        if not is_remote(url):
            return io.BufferedReader(io.FileIO(url), _BUFFER)
        fs, path = _filesystem(url)
        raw: Any = fs.open(path, "rb")
        stream = _Remote(raw, _BUFFER)
        stream.filesystem = fs
        return stream


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Turn whatever the file system raises into an InputError that names the file."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{url} does not exist; check the path") from None
    except ImportError as error:
        raise InputError(f"{url} cannot be opened without a missing library: {error}") from error
    except Exception as error:  # remote file systems raise their libraries' own types
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{url} cannot be opened: {reason}; check the path and your rights") from error


def _archive_kind(stream: io.BufferedReader) -> str | None:
    start = stream.peek(16)
    return next((kind for kind, (magics, _) in _ARCHIVES.items() if start.startswith(magics)), None)


def _open_zstd(stream: BinaryIO) -> Any:
    # PyArrow's reader, since python-zstandard's ends a truncated file without an error.
    import pyarrow

    if not pyarrow.Codec.is_available("zstd"):
        raise InputError("this pyarrow cannot read Zstandard; install pyarrow from PyPI or conda-forge")
    source = pyarrow.PythonFile(stream, mode="r")
    return pyarrow.CompressedInputStream(source, "zstd")


_ARCHIVES: dict[str, tuple[tuple[bytes, ...], Callable[[BinaryIO], Any]]] = {
    "gzip": ((b"\x1f\x8b\x08",), lambda stream: gzip.GzipFile(fileobj=stream, mode="rb")),
    "bzip2": (
        tuple(b"BZh%d" % level + block for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
        lambda stream: bz2.BZ2File(stream),
    ),
    "xz": ((b"\xfd7zXZ\x00",), lambda stream: lzma.LZMAFile(stream)),
    "Zstandard": (
        (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + i]) + b"\x2a\x4d\x18" for i in range(16))),
        _open_zstd,
    ),
}


class _Remote(io.BufferedReader):
    """A stream that keeps its file system: those of archives close their files when they are collected."""

    filesystem: Any


class _Guarded(io.RawIOBase):
    """A decompressing stream whose errors name the file."""

    def __init__(self, archive: Any, compressed: BinaryIO, url: str) -> None:
        self._archive, self._compressed, self._url = archive, compressed, url

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._archive.read(len(buffer))
        except InputError:
            raise
        except (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            raise InputError(
                f"{self._url} cannot be decompressed: {str(error).rstrip('.')}; "
                "the file is damaged or was cut short: fetch it again"
            ) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._archive.close()
            self._compressed.close()
        super().close()
