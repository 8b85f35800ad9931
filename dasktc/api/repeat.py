"""Formats the command that repeats a count, or the call if the source is an object, for the report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dasktc.errors import shown
from dasktc.options import RETRIES, WORKER_SECONDS

__all__ = ["repeating"]

USUAL: dict[str, Any] = {
    **dict.fromkeys(("backend", "kernel", "partition", "reorder", "ids"), "auto"),
    **dict.fromkeys(("parts", "splits", "memory", "format", "columns", "skip", "workers", "scheduler"), None),
    **dict.fromkeys(("scheduler_file", "distribute", "checkpoint", "threads", "work_dir", "host_memory"), None),
    "column_parts": None,
    "proxies": "lstc",
    "assign": "random",
    "retries": RETRIES,
    "worker_timeout": WORKER_SECONDS,
    "verify": 0.0,
    "seed": 0,
}
"""Options of a count that may have a report, and their defaults: its rows are sorted."""


def repeating(source: Any, given: Mapping[str, Any]) -> str:
    """Format the command that repeats a count, without its output files.

    Parameters
    ----------
    source : object
    given : mapping of str to object
        The keywords of `triangle_count`; a client becomes the address of its scheduler, and certificates are left out.

    Returns
    -------
    str
        For a shell; if the source is no path, a call in Python.
    """
    options = {name: given[name] for name, usual in USUAL.items() if given[name] != usual}
    address = getattr(getattr(given["client"], "scheduler", None), "address", None)
    if address is not None:
        options["scheduler"] = address
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        words = ["dasktc", "count", *map(os.fspath, paths)]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", _word(value)]
        return shlex.join(map(str, words))
    values = {name: shown(value) if isinstance(value, int) else repr(value) for name, value in options.items()}
    said = "".join(f", {name}={value}" for name, value in values.items())
    return f"dasktc.triangle_count(<{type(source).__name__}>{said})"


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, os.PathLike):
        return str(value)
    return shown(value) if isinstance(value, int) else str(value)
