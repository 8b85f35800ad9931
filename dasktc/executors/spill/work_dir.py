"""The work directory: a folder of this run alone, made when the first file is written and removed at the end."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dasktc.errors import DasktcError, InputError

__all__ = ["WorkDir", "check_place", "hidden_here", "one_line"]


def check_place(place: str | os.PathLike[str] | None) -> None:
    """Refuse a `--work-dir` that cannot hold files, before anything is read.

    Raises
    ------
    InputError
    """
    if place is None:
        return
    if not os.fspath(place) or not os.path.isdir(place):
        raise InputError(f"--work-dir {os.fspath(place)!r} is no folder: files would stand in it; create it first")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"--work-dir {os.fspath(place)} cannot be written to by this user; choose another folder")


def hidden_here(folder: str) -> str | None:
    """The name of this host, if this process does not see the folder or cannot write to it."""
    return None if os.access(folder, os.W_OK | os.X_OK) else socket.gethostname()


class WorkDir:
    """A folder for files that only this run knows.

    It is removed by `close`, or when nobody holds it any more, or when the interpreter ends, whatever ends
    it but SIGKILL; nothing else is ever removed. A process that was forked removes nothing.

    Parameters
    ----------
    place : path, optional
        Folder that it stands in. Default: Dask's `temporary-directory`, else the system's.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._place = place
        self._numbers = itertools.count()
        self._folder: str | None = None
        self._end: Callable[[], object] = _nothing

    @property
    def folder(self) -> str:
        """Its path.

        Raises
        ------
        DasktcError
            It cannot be made.
        """
        if self._folder is None:
            place = self._place or _default_place()
            with one_line(place):
                self._folder = os.path.abspath(tempfile.mkdtemp(prefix="dasktc-", dir=place))
            self._end = weakref.finalize(self, _remove, self._folder, os.getpid())
        return self._folder

    def new_path(self) -> str:
        """A name for a new file."""
        return os.path.join(self.folder, f"{next(self._numbers):08d}")

    def close(self) -> None:
        """Remove it."""
        self._end()
        self._folder = None


@contextmanager
def one_line(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Say what the operating system refuses there in one line."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise DasktcError(
            f"work directory {os.fspath(folder)} cannot be used: {error}; choose a --work-dir that can be written, "
            "with room for 25 bytes an edge (with workers 100), or raise --memory"
        ) from error


def _default_place() -> str:
    import dask

    return str(dask.config.get("temporary-directory", None) or tempfile.gettempdir())


def _nothing() -> None:
    """No folder was made yet."""


def _remove(folder: str, process: int) -> None:
    """Renamed first, so that a task which still runs finds no place to write."""
    if os.getpid() != process:
        return
    gone = f"{folder}.gone"
    with suppress(OSError):
        os.rename(folder, gone)
    for name in (gone, folder):
        shutil.rmtree(name, ignore_errors=True)
