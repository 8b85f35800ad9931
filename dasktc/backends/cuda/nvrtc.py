"""The CUDA kernels' source text, and what compiling it needs.

Kernels are files `*.cu`. What they share stands in preludes: `csr.cuh`, and those that a kernel's line
`// Preludes: ...` names. They are prepended as text, never included from a path: CuPy's cache of compiled
kernels hashes the text it is given and nothing else, so that after an edit of an included file a stale
kernel could run. Entry points are `extern "C"`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["ARCHITECTURES", "OPTIONS", "Defines", "folder", "source"]

ARCHITECTURES = (75, 80, 90, 100, 120)
"""Compute capabilities, times ten, that every kernel is compiled for in tests."""
OPTIONS = ("--std=c++17",)
"""Of the compiler."""
PRELUDE = "csr.cuh"
MORE = re.compile(r"^// Preludes: (.+)$", re.MULTILINE)
"""Names the other preludes of a kernel, in their order."""

Defines = tuple[tuple[str, int], ...]
"""Names and values of preprocessor macros."""


@cache
def folder() -> Path:
    """Find the kernels: inside the package when installed, beside it in a checkout.

    Raises
    ------
    FileNotFoundError
        They are in neither place.
    """
    package = Path(__file__).parents[2]
    places = (package / "kernels", package.parent / "kernels")
    for place in places:
        if (place / PRELUDE).is_file():
            return place
    raise FileNotFoundError(
        f"{PRELUDE} is neither in {places[0]} nor in {places[1]}: the CUDA kernels are missing from this "
        "installation; install dasktc again"
    )


def source(kernel: str, defines: Mapping[str, int] | Defines = ()) -> str:
    """Build the text to compile.

    Parameters
    ----------
    kernel : str
        A file of the kernels' folder, or the path of one elsewhere, without its suffix.
    defines : mapping of str to int
        Preprocessor macros, put before everything else; names in lower case are for the launch alone.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in dict(defines).items() if name.isupper())
    text = _text(f"{kernel}.cu")
    named = MORE.search(text)
    preludes = (PRELUDE, *(named[1].split() if named else ()))
    return "\n".join((macros, *map(_text, preludes), text))


def _text(name: str) -> str:
    return (folder() / name).read_text(encoding="utf-8")
