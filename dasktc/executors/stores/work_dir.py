"""The work directory: a folder of one run alone, made when the first file is written and removed at the end."""

from __future__ import annotations

import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from dasktc.errors import DasktcError, InputError
from dasktc.executors.process.paths import check_writable_folder
from dasktc.executors.stores.claims import Claim, remove_abandoned
from dasktc.options import path_text
from dasktc.wording import advice, option

__all__ = ["WorkDir", "check_place", "default_place", "hidden_here", "one_line"]


def check_place(place: str | os.PathLike[str] | None) -> None:
    """Refuse (InputError) a `--work-dir` that cannot hold files, before anything is read."""
    if place is None:
        return
    folder = path_text("work_dir", place)
    if not os.path.isdir(folder):
        raise InputError(f"{option('work_dir', folder)} is no folder: files would stand in it; create it first")
    check_writable_folder(option("work_dir", folder), folder)


def default_place() -> str:
    """Return the folder of temporary files: Dask's `temporary-directory`, else the system's."""
    import dask

    return str(dask.config.get("temporary-directory", None) or tempfile.gettempdir())


def hidden_here(folder: str) -> str | None:
    """Return the name of this host if this process cannot write to the folder, else None."""
    return None if os.access(folder, os.W_OK | os.X_OK) else socket.gethostname()


class WorkDir:
    """A folder for the files of one run.

    It is made in `place`, by default in Dask's `temporary-directory`, else in the system's. It is removed by `close`,
    with the last reference to this object, or when the interpreter ends; after SIGKILL, by the next run on this host
    with the same place (`claims`). Nothing else is ever removed. A forked process removes nothing.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._place = default_place() if place is None else place
        remove_abandoned(self._place)
        self._numbers = itertools.count()
        self._claim: Claim | None = None

    @property
    def folder(self) -> str:
        """Path of the work directory, which is made on first access; DasktcError where it cannot be made."""
        if self._claim is None:
            with one_line(self._place):
                self._claim = Claim(self._place)
        return self._claim.folder

    def new_path(self) -> str:
        """Path of a new file in the work directory."""
        return os.path.join(self.folder, f"{next(self._numbers):08d}")

    def close(self) -> None:
        """Remove the work directory."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None


@contextmanager
def one_line(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the operating system about a work directory into an error of one line."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise DasktcError(
            f"work directory {os.fspath(folder)} cannot be used: {error}; choose one that can be written, with room "
            f"for 25 bytes an edge (with workers 100), with {advice('work_dir')}, or raise {advice('memory')}"
        ) from error
