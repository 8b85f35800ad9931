"""Errors for users, each one line: the fact with figures, its likely cause, what to do."""

from __future__ import annotations

import re
import reprlib
from typing import Any

__all__ = ["ClusterError", "CountError", "DasktcError", "DeviceMemoryError", "InputError", "shown", "without_secrets"]


class DasktcError(Exception):
    """Any refusal of dasktc's own. The command line prints its text and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*(without_secrets(text) if isinstance(text, str) else text for text in arguments))

    def __str__(self) -> str:
        """Return the text in one line that any terminal takes: what cannot be printed, as in odd paths, is escaped."""
        text = super().__str__()
        return text if text.isprintable() else "".join(map(_printable, text))


class InputError(DasktcError):
    """What the caller handed over cannot be used: a bad option, or a source that cannot be read."""

    exit_code = 2


class ClusterError(DasktcError):
    """The Dask cluster cannot be reached, or it has no worker that could do the work."""


class CountError(DasktcError):
    """A count failed its own check. Exact or refused: there is no result."""


class DeviceMemoryError(DasktcError):
    """A count needs more device memory than other programs leave free; with a smaller --memory it may fit."""


_PASSWORD = re.compile(r"(\w://[^\s/?#:@]*):[^\s/?#]*@")
_SIGNED = re.compile(r"([?&;][^\s=&;]*(?:auth|credential|key|passw|secret|sig|token)[^\s=&;]*=)[^\s&;#'\"]+", re.I)


def without_secrets(text: str) -> str:
    """Replace the passwords of URLs, and values of their queries that sign or authorize, by `***`."""
    return _SIGNED.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text)) if "://" in text else text


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode()


class _Short(reprlib.Repr):
    """`repr`, cut short."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        """Shorten large integers: Python refuses to print more than 4,300 digits."""
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"<integer of {x.bit_length():,} bits>"


def shown(value: Any) -> str:
    """Format a value for an error: one short line, whatever its type."""
    return " ".join(_Short().repr(value).split())
