"""The CUDA kernels' source text, and how it is compiled.

Kernels are files `*.cu`. Shared code is in preludes: `csr.cuh`, and those named in a kernel's line `// Preludes: ...`.
They are prepended as text, never included from a path, because CuPy's cache of compiled kernels hashes only the text
that it is given: after an edit of an included file a stale kernel could run. Entry points are `extern "C"`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dasktc.once import once

__all__ = ["ARCHITECTURES", "OPTIONS", "Defines", "folder", "source"]

ARCHITECTURES = (75, 80, 90, 100, 120)
"""Compute capabilities, times ten, for which tests compile every kernel."""
OPTIONS = ("--std=c++17",)
"""Options of the compiler."""
PRELUDE = "csr.cuh"
MORE = re.compile(r"^// Preludes: (.+)$", re.MULTILINE)
"""Matches the line that names the other preludes of a kernel, in their order."""

Defines = tuple[tuple[str, int], ...]
"""Names and values of preprocessor macros."""


@once
def folder() -> Path:
    """Find the folder of the kernels: inside the package when installed, beside it in a checkout.

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
    """Build the source text to compile: macros, preludes, kernel.

    Parameters
    ----------
    kernel : str
        Name of a file in the kernels' folder, or a path, without its suffix.
    defines : mapping of str to int
        Preprocessor macros, placed before everything else; names in lower case are settings of the launch alone.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in dict(defines).items() if name.isupper())
    text = _text(f"{kernel}.cu")
    named = MORE.search(text)
    preludes = (PRELUDE, *(named[1].split() if named else ()))
    return "\n".join((macros, *map(_text, preludes), text))


def _text(name: str) -> str:
    return (folder() / name).read_text(encoding="utf-8")
