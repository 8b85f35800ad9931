"""Errors that a user meets: one line, the fact with figures, its likely cause, what to do."""

__all__ = ["ClusterError", "CountError", "DasktcError", "InputError"]


class DasktcError(Exception):
    """Any refusal of dasktc's own. The command line prints its text and exits with `exit_code`."""

    exit_code = 1

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


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode()
