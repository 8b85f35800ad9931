"""Errors that a user meets: one line, the fact with figures, its likely cause, what to do."""

__all__ = ["ClusterError", "CountError", "DasktcError", "InputError"]


class DasktcError(Exception):
    """Any refusal of dasktc's own. The command line prints its text and exits with `exit_code`."""

    exit_code = 1


class InputError(DasktcError):
    """What the caller handed over cannot be used: a bad option, or a source that cannot be read."""

    exit_code = 2


class ClusterError(DasktcError):
    """The Dask cluster cannot be reached, or it has no worker that could do the work."""


class CountError(DasktcError):
    """A count failed its own check. Exact or refused: there is no result."""
