"""Checks of paths given by the caller, before anything is read."""

from __future__ import annotations

import os

from dasktc.errors import InputError

__all__ = ["check_regular", "check_writable_folder"]


def check_regular(label: str, path: str) -> None:
    """Refuse a path that exists and is not a regular file: reading a pipe or a device may never end.

    Parameters
    ----------
    label : str
        What errors call it: the option with the path.
    path : str

    Raises
    ------
    InputError
    """
    if os.path.lexists(path) and not os.path.isfile(path) and os.path.exists(path):
        raise InputError(
            f"{label} is no regular file, but a folder, a pipe, a socket or a device: it cannot be read from "
            "the beginning again; give another name, or move it out of the way"
        )


def check_writable_folder(label: str, folder: str) -> None:
    """Refuse a folder in which this user cannot create files.

    Parameters
    ----------
    label : str
        What errors call it: the option with the folder.
    folder : str

    Raises
    ------
    InputError
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{label} cannot be written to by this user; choose another folder")
