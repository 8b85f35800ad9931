"""Formats the command that repeats a count, or the call if the source is an object, for the report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dasktc.errors import shown
from dasktc.executors.place import Place
from dasktc.options import Method, Options, RunOptions

__all__ = ["repeating"]

USUAL: dict[str, Any] = {
    **dict.fromkeys(("format", "columns", "skip", "checkpoint"), None),
    "ids": "auto",
    "verify": 0.0,
}
"""Keywords of a count that may have a report, and their defaults."""


def repeating(source: Any, options: Options, place: Place, run: RunOptions, keywords: Mapping[str, Any]) -> str:
    """Format the command that repeats a count, without its output files.

    Parameters
    ----------
    source : object
    options : Options
    place : Place
        A client becomes the address of its scheduler, and certificates are left out.
    run : RunOptions
    keywords : mapping of str to object
        Other keywords of `triangle_count`, by name.

    Returns
    -------
    str
        For a shell; if the source is no path, a call in Python.
    """
    method, settings = _changes(options.method), _changes(options, base=Method)
    settings |= {name: keywords[name] for name, default in USUAL.items() if keywords[name] != default}
    address = getattr(getattr(place.client, "scheduler", None), "address", None)
    replacements = {"client": None, "security": None, "scheduler": address or place.scheduler}
    place_options = {name: value for name, value in {**_changes(place), **replacements}.items() if value}
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        words = ["dasktc", "count", *map(os.fspath, paths)]
        for name, value in {**method, **settings, **place_options, **_changes(run)}.items():
            words += [f"--{name.replace('_', '-')}", _word(value)]
        return shlex.join(map(str, words))
    client = place_options.get("scheduler", place_options.get("scheduler_file"))
    words = [f"<{type(source).__name__}>", *([repr(client)] if client else []), *_keywords(settings)]
    words += [f"threads={place_options['threads']}"] if "threads" in place_options else []
    words += [f"method=dasktc.Method({', '.join(_keywords(method))})"] if method else []
    words += [f"run=dasktc.RunOptions({', '.join(_keywords(_changes(run)))})"] if _changes(run) else []
    return f"dasktc.triangle_count({', '.join(words)})"


def _changes(options: Any, base: type | None = None) -> dict[str, Any]:
    """Fields of a frozen object that differ from their defaults, except those of a base class."""
    base_names = {field.name for field in fields(base)} if base else set()
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(options)}
    return {name: value for name, (value, default) in values.items() if name not in base_names and value != default}


def _keywords(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={shown(value) if isinstance(value, int) else repr(value)}" for name, value in values.items()]


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, os.PathLike):
        return str(value)
    return shown(value) if isinstance(value, int) else str(value)
