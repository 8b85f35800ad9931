"""Paths that a caller gives: what is no path, or cannot be what is needed there, is refused before anything is read."""

from __future__ import annotations

import os
from typing import Any

from dasktc.errors import InputError

__all__ = ["as_text", "check_regular", "check_writable_folder"]


def as_text(option: str, path: Any) -> str:
    """A caller's path as text.

    Parameters
    ----------
    option : str
        Its name, for errors.
    path : str or os.PathLike of str

    Raises
    ------
    InputError
        It is of another type, empty, or has a null character.
    """
    text = os.fspath(path) if hasattr(path, "__fspath__") else path
    if not isinstance(text, str):
        raise InputError(f"{option} {path!r} is of type {type(path).__name__}: a path is needed; give a str or a Path")
    if not text:
        raise InputError(f"{option} '' is no path: an empty name stands for nothing; give the name of a file or folder")
    if "\0" in text:
        raise InputError(f"{option} {text!r} is no path: it has a null character, which no name has; leave it out")
    return text


def check_regular(option: str, path: str) -> None:
    """Refuse what exists and is no regular file: reading a pipe or a device may never end.

    Raises
    ------
    InputError
    """
    if os.path.lexists(path) and not os.path.isfile(path) and os.path.exists(path):
        raise InputError(
            f"{option} {path} is no regular file, but a folder, a pipe, a socket or a device: it cannot be read from "
            "the beginning again; give another name, or move it out of the way"
        )


def check_writable_folder(option: str, folder: str) -> None:
    """Refuse a folder in which this user cannot make files.

    Raises
    ------
    InputError
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{option} {folder} cannot be written to by this user; choose another folder")
