"""What an object is, told by the modules that its types are defined in: nothing is imported to ask."""

from __future__ import annotations

from typing import Any

from dasktc.errors import InputError

__all__ = ["kind", "roots", "unknown"]


def roots(obj: Any) -> list[str]:
    """Top-level modules that the object's type and its bases are defined in."""
    return [base.__module__.partition(".")[0] for base in type(obj).__mro__]


def kind(obj: Any) -> str:
    """Full name of the object's type, for errors."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def unknown(obj: Any) -> InputError:
    """Build the error about an object that is no source."""
    return InputError(
        f"{kind(obj)} holds no edges: dasktc reads paths, pandas and Dask DataFrames, Arrow tables, "
        "NumPy arrays (m, 2), pairs of columns, SciPy sparse matrices, NetworkX and igraph graphs; pass one"
    )
