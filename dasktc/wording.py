"""Words of messages: options in the language of who reads them, counts with their nouns, values as one short line.

A caller in Python knows the option `kernel='hub'`, one at a terminal `--kernel hub`. A message may be made anywhere, on
a worker too, and is read elsewhere. So `option` and `advice` put both texts into it, between characters that Unicode
reserves for the inside of a program, and `rendered` keeps one of the two. Errors do that when they are made and again
when another process has received them, and log records when they are emitted. Python's is the language of a process;
the command line sets its own while a command runs (`command_line`).
"""

from __future__ import annotations

import logging
import re
import reprlib
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

__all__ = ["advice", "command_line", "nearest", "option", "plural", "rendered", "shown"]

_BEGIN, _MIDDLE, _END = "\ufdd0", "\ufdd1", "\ufdd2"
"""Characters around Python's text and the command line's; Unicode gives them no meaning, so names do not have them."""
_BOTH = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_MIDDLE}([^{_BEGIN}{_END}]*){_END}")
_METHOD, _RUN, _CLUSTER = "method=Method({})", "run=RunOptions({})", "client=dasktc.cluster({})"
_SECURITY = "client=dasktc.cluster(scheduler=..., security=Security({}))"
_PLACES = {
    **dict.fromkeys(("kernel", "partition", "parts", "splits", "reorder", "assign", "column_parts"), _METHOD),
    **dict.fromkeys(("proxies", "sort_rows", "seed"), _METHOD),
    **dict.fromkeys(("work_dir", "host_memory", "retries", "worker_timeout", "distribute"), _RUN),
    **dict.fromkeys(("workers", "scheduler", "scheduler_file", "security"), _CLUSTER),
    **dict.fromkeys(("tls_ca_file", "tls_client_cert", "tls_client_key"), _SECURITY),
}
"""Where Python's functions take an option that is not an argument of their own."""
_COMMAND_NAMES = {"path": "OUT", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
"""What the command line calls by another name, or takes without one."""
LONGEST_VALUE = 160
"""Characters of an option's value, which may be a path."""
_PYTHON_NAMES = {"rate_edges": "edges", "rate_network": "network", "rate_probes": "probes"}
"""What Python calls by another name: fields of `Rates`."""
_NONE = object()
_at_terminal = False


@contextmanager
def command_line() -> Iterator[None]:
    """Write messages for a reader at the command line, until the block ends."""
    global _at_terminal
    former, _at_terminal = _at_terminal, True
    try:
        yield
    finally:
        _at_terminal = former


def rendered(text: str) -> str:
    """Return a text in the language of this process's caller."""
    return _BOTH.sub(r"\2" if _at_terminal else r"\1", text) if _BEGIN in text else text


def option(name: str, value: Any = _NONE) -> str:
    """Return an option as its caller wrote it, for the fact of a message.

    Parameters
    ----------
    name : str
        Keyword of Python.
    value : object, optional
        Default: the name stands alone.

    Returns
    -------
    str
        For `rendered`, which messages and log records apply.

    Examples
    --------
    >>> rendered(f"{option('kernel', 'hubb')} does not exist")
    "kernel='hubb' does not exist"
    >>> with command_line():
    ...     print(rendered(f"{option('kernel', 'hubb')} does not exist"))
    --kernel hubb does not exist
    """
    word = _PYTHON_NAMES.get(name, name)
    return _both(word if value is _NONE else f"{word}={shown(value, LONGEST_VALUE)}", _at_command_line(name, value))


def advice(*names: str, **values: Any) -> str:
    """Return options as a caller would have to write them, for the advice of a message.

    Parameters
    ----------
    *names : str
        Options whose value is up to the caller.
    **values : object
        Options and their values.

    Examples
    --------
    >>> rendered(f"give {advice(kernel='hub', parts=2)}, or more {advice('memory')}")
    "give method=Method(kernel='hub', parts=2), or more memory=..."
    """
    options = {**dict.fromkeys(names, _NONE), **values}
    texts_by_place: dict[str, list[str]] = {}
    for name, value in options.items():
        text = f"{name}={'...' if value is _NONE else shown(value, LONGEST_VALUE)}"
        texts_by_place.setdefault(_PLACES.get(name, text), []).append(text)
    return _both(
        ", ".join(
            place.format(", ".join(texts)) if "{}" in place else place for place, texts in texts_by_place.items()
        ),
        (" " if values else ", ").join(_at_command_line(name, value) for name, value in options.items()),
    )


def _both(python: str, command: str) -> str:
    return f"{_BEGIN}{python}{_MIDDLE}{command}{_END}"


def _at_command_line(name: str, value: Any) -> str:
    words = name.replace("_", "-")
    if value is False:
        return f"--no-{words}"
    words = _COMMAND_NAMES.get(name, f"--{words}")
    return words if value is _NONE or value is True else f"{words} {_argument(value)}"


def _argument(value: Any) -> str:
    """Return a value as an argument of a command, quoted where a shell asks for it."""
    if isinstance(value, list | tuple):
        return ",".join(map(_argument, value))
    text = shown(value, LONGEST_VALUE)
    return value if isinstance(value, str) and len(text) == len(value) + 2 and shlex.quote(value) == value else text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a caller may have meant, whatever its case; None if none is near.

    Examples
    --------
    >>> nearest("Hubb", ("auto", "hub", "trust"))
    'hub'
    """
    names_in_lower_case = {candidate.lower(): candidate for candidate in names}
    matches = get_close_matches(name.lower(), names_in_lower_case, 1)
    return names_in_lower_case[matches[0]] if matches else None


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with the noun, or noun and verb, that agrees with it.

    Parameters
    ----------
    number : int
    one : str
        For the number one.
    many : str, optional
        For all others. Default: the plural of `one`, by its ending.

    Examples
    --------
    >>> plural(1, "worker"), plural(2000, "vertex"), plural(0, "row has", "rows have")
    ('1 worker', '2,000 vertices', '0 rows have')
    """
    return f"{number:,} {one if number == 1 else many or _plural_of(one)}"


def _plural_of(noun: str) -> str:
    for ending, plural_ending in (("ex", "ices"), ("y", "ies"), ("ch", "ches"), ("ss", "sses")):
        if noun.endswith(ending):
            return noun.removesuffix(ending) + plural_ending
    return f"{noun}s"


class _Short(reprlib.Repr):
    """`repr`, shortened."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = longest

    def repr_int(self, x: int, level: int) -> str:
        """Shorten large integers, because Python refuses to print more than 4,300 digits."""
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"<integer of {x.bit_length():,} bits>"


def shown(value: Any, longest: int = 60) -> str:
    """Format a value of any type as one short line for an error, a text with at most `longest` characters."""
    return " ".join(_Short(longest).repr(value).split())


def _in_one_language(record: logging.LogRecord) -> bool:
    """Render the options that a log record names."""
    if _BEGIN in (text := record.getMessage()):
        record.msg, record.args = rendered(text), ()
    return True


logging.getLogger("dasktc").addFilter(_in_one_language)
