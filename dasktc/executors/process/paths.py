"""Checks of paths given by the caller, before anything is read."""

from __future__ import annotations

import os

from dasktc.errors import InputError

__all__ = ["check_regular", "check_writable_folder"]


def check_regular(label: str, path: str) -> None:
    """Refuse (InputError) a path that exists and is not a regular file: reading a pipe or a device may never end.

    The label is what errors call it: the option with the path.
    """
    if os.path.lexists(path) and not os.path.isfile(path) and os.path.exists(path):
        raise InputError(
            f"{label} is no regular file, but a folder, a pipe, a socket or a device: it cannot be read from "
            "the beginning again; give another name, or move it out of the way"
        )


def check_writable_folder(label: str, folder: str) -> None:
    """Refuse (InputError) a folder in which this user cannot create files.

    The label is what errors call it: the option with the folder.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{label} cannot be written to by this user; choose another folder")
