"""Exceptions for users, each one line: the fact with figures, its likely cause, what to do."""

from __future__ import annotations

import html
import re
from typing import Any

from dasktc.wording import rendered, shown

__all__ = [
    "ClusterError",
    "CountError",
    "DasktcError",
    "DeviceMemoryError",
    "InputError",
    "html_text",
    "neutral_text",
    "printable",
    "shortened",
    "shown",
    "without_secrets",
]


class DasktcError(Exception):
    """Base class of dasktc's errors. The command line prints the text and exits with `exit_code`.

    A message may name options in both languages (`dasktc.wording`). It is read in that of the process that has the
    error: an error that travels is made again from what it was made of.
    """

    exit_code = 1

    def __init__(self, *arguments: Any) -> None:
        self._neutral = tuple(without_secrets(text) if isinstance(text, str) else text for text in arguments)
        super().__init__(*(shortened(rendered(text)) if isinstance(text, str) else text for text in self._neutral))

    def __str__(self) -> str:
        """Return the text as one printable line: unprintable characters, as in odd paths, are escaped."""
        return printable(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the error was made of."""
        return type(self), self._neutral, vars(self)


class InputError(DasktcError, ValueError):
    """The caller's input cannot be used: an invalid option, or a source that cannot be read."""

    exit_code = 2


class ClusterError(DasktcError):
    """The Dask cluster cannot be reached, or has no worker that can do the work."""


class CountError(DasktcError):
    """A count failed its own check, so there is no result: counts are exact or refused."""


class DeviceMemoryError(DasktcError):
    """A count needs more device memory than is free; with a smaller `memory` it may fit."""


LONGEST = 500
"""Largest number of characters in a message, whatever a library said that it cites."""
_PASSWORD = re.compile(r"(\w://[^\s/?#:@]*):[^\s/?#]*@")
_SIGNED = re.compile(r"([?&;][^\s=&;]*(?:auth|credential|key|passw|secret|sig|token)[^\s=&;]*=)[^\s&;#'\"]+", re.I)


def neutral_text(error: BaseException) -> str:
    """Return an error's whole text as one line for another message, which another process may show in its language."""
    return " ".join((" ".join(map(str, error._neutral)) if isinstance(error, DasktcError) else str(error)).split())


def without_secrets(text: str) -> str:
    """Replace passwords in URLs, and query values that sign or authorize, by `***`."""
    return _SIGNED.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text)) if "://" in text else text


def shortened(text: str) -> str:
    """Cut the middle of a text longer than `LONGEST`: its beginning, the fact, is kept, and its end, what to do."""
    if len(text) <= LONGEST:
        return text
    advice = text.rfind("; ")
    end = text[advice:] if len(text) - advice <= LONGEST // 2 else ""
    return f"{text[: LONGEST - len(end) - 4].rstrip()} ...{end}"


def printable(text: str) -> str:
    """Escape the unprintable characters of a text as one line: a terminal or a browser would obey those of a name."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else " " if character.isspace() else ascii(character)[1:-1]
        for character in text
    )


def html_text(text: str) -> str:
    """Escape a text for HTML, its unprintable characters too."""
    return html.escape(printable(text))
