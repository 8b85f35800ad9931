"""Opens and decompresses files, local or behind a URL; module `listing` expands a source into files.

A compressed file is recognised by its first bytes, not by its name, and may be compressed more than
once; of a tar archive its one file of edges is read (module `tar`). The standard library opens local files; fsspec is
imported only for URLs.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from dasktc.errors import DasktcError, InputError
from dasktc.io.formats import tar

__all__ = [
    "check_regular",
    "filesystem",
    "filling",
    "first_bytes",
    "head",
    "in_process_memory",
    "is_archive",
    "is_remote",
    "naming",
    "open_decompressed",
    "read_exactly",
    "read_range",
    "size",
    "skip",
]

_NESTING = 8  # deeper nesting of archives is a trap, not data
_PADDING = 1 << 24
"""Most zeros after a member of gzip; more are damage, and cost seconds each time that the file is opened."""
_BUFFER, _CHUNK = 1 << 18, 1 << 26
_MAGIC = 512
"""First bytes by which archives are told."""
_IRREGULAR = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def head(url: str, nbytes: int = 1 << 16, start: int = 0) -> bytes:
    """Read `nbytes` bytes of the decompressed file from byte `start`; fewer if the file ends before."""
    with open_decompressed(url) as stream:
        skip(stream, start)
        return stream.read(nbytes)


def first_bytes(url: str) -> tuple[bytes, str]:
    """Return what `head` reads, and the name of the file that has it: in a tar archive that of its file of edges."""
    stream, name = _open_data(url)
    with stream:
        return stream.read(1 << 16), name


def is_archive(url: str) -> bool:
    """Return whether the file's first bytes are those of a gzip, bzip2, xz, Zstandard or tar archive."""
    with _open(url) as stream, naming(url):
        return _archive_kind(stream) is not None or tar.is_tar(stream.peek(_MAGIC))


def is_remote(url: str) -> bool:
    """Return whether the name is an fsspec URL rather than a local path.

    A chain of URLs has a protocol before its first "::"; a local file may have "::" in its name.
    """
    if "://" in url or "::" not in url:
        return "://" in url
    from fsspec import available_protocols

    return url.split("::")[0] in available_protocols() and not os.path.lexists(url)


def check_regular(url: str) -> None:
    """Refuse a local path that is no regular file: opening a pipe would block, and data is read more than once."""
    if is_remote(url):
        return
    with naming(url):
        mode = os.stat(url).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            f"{url} is not a regular file but a {_IRREGULAR.get(stat.S_IFMT(mode), 'special file')}, and data is "
            "read more than once; save it to a file, or remove it from the folder"
        )


def size(url: str) -> int:
    """Return the size in bytes of the file as stored, that is compressed if it is an archive."""
    with naming(url):
        if not is_remote(url):
            return os.stat(url).st_size
        fs, path = filesystem(url)
        return int(fs.size(path))


def read_range(url: str, start: int, stop: int) -> bytes:
    """Read bytes `start` to `stop` of the file as stored; fewer if it ends before."""
    with _open(url) as stream, naming(url):
        stream.seek(start)
        return read_exactly(stream, stop - start)


@contextmanager
def filling(url: str) -> Iterator[Callable[[Any, int], None]]:
    """Open a file for threads that read ranges of it, by the function that is yielded.

    It takes a buffer and a start, and fills the buffer with the bytes from there; InputError: the file ends before.
    """
    check_regular(url)
    with naming(url):
        (fs, path), descriptor = filesystem(url) if is_remote(url) else (None, url), -1
        if fs is None:
            descriptor = os.open(url, os.O_RDONLY | os.O_CLOEXEC)

    def read_some(view: memoryview, start: int) -> int:
        if fs is None:
            return os.preadv(descriptor, [view], start)
        data = fs.cat_file(path, start=start, end=start + len(view))
        if len(data) > len(view):  # a plain web server may send all of a file, whatever was asked for
            data = data[start : start + len(view)]
        view[: len(data)] = data
        return len(data)

    def fill(buffer: Any, start: int) -> None:
        view, count = memoryview(buffer), 0
        while count < len(view):
            with naming(url):
                nbytes = read_some(view[count:], start + count)
            if not nbytes:
                raise InputError(
                    f"{url} ends at byte {start + count:,}: it has become shorter; read it again, or fetch it again"
                )
            count += nbytes

    try:
        yield fill
    finally:
        if fs is None:
            os.close(descriptor)


def read_exactly(stream: BinaryIO, nbytes: int) -> bytes:
    """Read `nbytes` bytes, fewer if the stream ends before; memory is allocated only for existing bytes."""
    chunks: list[bytes] = []
    while nbytes > 0 and (data := stream.read(min(nbytes, _CHUNK))):
        chunks.append(data)
        nbytes -= len(data)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def skip(stream: BinaryIO, nbytes: int) -> None:
    """Skip `nbytes` bytes of a newly opened stream, in bounded memory."""
    if stream.seekable():
        stream.seek(nbytes)
        return
    while nbytes > 0 and (data := stream.read(min(nbytes, _BUFFER))):
        nbytes -= len(data)


def open_decompressed(url: str) -> io.BufferedReader:
    """Open a file for reading, decompressed as often as it was compressed; of a tar archive its file of edges.

    The stream is seekable if the file, a path or an fsspec URL, is no archive. InputError: the file cannot be opened;
    from the read that meets the damage: the archive is truncated or damaged.
    """
    return _open_data(url)[0]


def _open_data(url: str) -> tuple[io.BufferedReader, str]:
    """Open a file as `open_decompressed` does, and name it: in a tar archive by the path of its data, else by `url`."""
    stream, name = _open(url), url
    try:
        for _ in range(_NESTING):
            with naming(url):
                kind = _archive_kind(stream)
                is_packed = kind is None and tar.is_tar(stream.peek(_MAGIC))
            if is_packed:
                member = tar.EdgeFile(stream, url)
                stream, name = io.BufferedReader(member, _BUFFER), f"{url}/{member.member}"
            elif kind is None:
                return stream, name
            else:
                stream = io.BufferedReader(_Guarded(_ARCHIVES[kind][1](stream), stream, url), _BUFFER)
        raise InputError(f"{url} is compressed more than {_NESTING} times over; decompress it first")
    except BaseException:
        stream.close()
        raise


def filesystem(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path on it."""
    import fsspec

    fs, path = fsspec.core.url_to_fs(url)
    return fs, path


def in_process_memory(url: str) -> bool:
    """Return whether a URL's files are in the memory of the process that writes them, as with memory://."""
    if not is_remote(url):
        return False
    from fsspec.implementations.memory import MemoryFileSystem

    fs: Any = filesystem(url)[0]
    while fs is not None and not isinstance(fs, MemoryFileSystem):
        fs = getattr(fs, "fs", None)  # the next in a chain of URLs
    return fs is not None


def _open(url: str) -> io.BufferedReader:
    check_regular(url)
    with naming(url):
        if not is_remote(url):
            return io.BufferedReader(io.FileIO(url), _BUFFER)
        fs, path = filesystem(url)
        file: Any = fs.open(path, "rb")
        stream = _Remote(file, _BUFFER)
        stream.filesystem = fs
        return stream


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Convert any exception of the file system into an InputError that names the file.

    Errors of dasktc pass unchanged, and so does MemoryError, because the file is not at fault.
    """
    try:
        yield
    except (DasktcError, MemoryError):
        raise
    except ImportError as error:
        raise InputError(f"{url} cannot be opened without a missing library: {error}") from error
    except Exception as error:  # remote file systems raise the types of their libraries
        if isinstance(error, FileNotFoundError) and not _not_reached(error.__cause__):
            raise InputError(f"{url} does not exist; check the path") from None
        cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
        reason = getattr(cause, "strerror", None) or cause
        place = "address, the network" if is_remote(url) else "path"
        raise InputError(f"{url} cannot be opened: {reason}; check the {place} and your rights") from error


def _not_reached(cause: BaseException | None) -> bool:
    """Return whether a FileNotFoundError has another cause than absence: fsspec's HTTP raises it for any failure."""
    if isinstance(cause, OSError):
        return not isinstance(cause, FileNotFoundError)
    return getattr(cause, "status", 404) not in (404, 410)


def _archive_kind(stream: io.BufferedReader) -> str | None:
    start = stream.peek(16)
    return next((kind for kind, (magics, _) in _ARCHIVES.items() if start.startswith(magics)), None)


def _open_zstd(stream: BinaryIO) -> Any:
    # PyArrow's reader, because python-zstandard's ends a truncated file without an error.
    import pyarrow

    if not pyarrow.Codec.is_available("zstd"):
        raise InputError("this pyarrow cannot read Zstandard; install pyarrow from PyPI or conda-forge")
    source = pyarrow.PythonFile(stream, mode="r")
    return pyarrow.CompressedInputStream(source, "zstd")


class _Gzip:
    """Reads members of gzip one after the other, and passes over zeros after them, with which tapes fill blocks.

    The standard library reads such zeros one at a time.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._member, self._rest = stream, zlib.decompressobj(wbits=31), b""

    def read(self, nbytes: int) -> bytes:
        """Read `nbytes` bytes, fewer at the end."""
        chunks: list[bytes] = []
        while nbytes > 0 and (data := self._read_some(nbytes)):
            chunks.append(data)
            nbytes -= len(data)
        return b"".join(chunks)

    def _read_some(self, nbytes: int) -> bytes:
        while True:
            if self._member.eof:
                self._rest = self._member.unused_data.lstrip(b"\0")
                zeros = 0
                while not self._rest:
                    block = self._stream.read(_BUFFER)
                    if not block:
                        return b""
                    zeros += len(block)
                    if zeros > _PADDING:
                        raise ValueError(f"more than {_PADDING:,} bytes of zeros follow a compressed member")
                    self._rest = block.lstrip(b"\0")
                self._member = zlib.decompressobj(wbits=31)
            block = self._rest or self._stream.read(_BUFFER)
            data = self._member.decompress(block, nbytes)
            self._rest = self._member.unconsumed_tail
            if data:
                return data
            if not block and not self._member.eof:
                raise EOFError("it ends within a compressed member")

    def close(self) -> None:
        """Do nothing: the stream's owner closes it."""


_ARCHIVES: dict[str, tuple[tuple[bytes, ...], Callable[[BinaryIO], Any]]] = {
    "gzip": ((b"\x1f\x8b\x08",), lambda stream: _Gzip(stream)),
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
    """A stream that keeps its file system alive, because file systems of archives close their files when collected."""

    filesystem: Any


class _Guarded(io.RawIOBase):
    """A decompressing stream that converts errors of the codec to InputError with the file's name."""

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
