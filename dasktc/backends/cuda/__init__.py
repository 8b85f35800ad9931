"""The GPU's arrays, frames and kernels: CuPy, cuDF, and kernels compiled by NVRTC."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dasktc.once import once

__all__ = ["module"]


@once
def module() -> Any:
    """Import `dasktc.backends.cuda.backend`, whose import fails where CuPy cannot be imported.

    Raises
    ------
    InputError
        CuPy is missing or damaged.
    """
    return import_module(f"{__name__}.backend")
