"""The files of the CUDA kernels: their text, and the macros whose defaults stand there and nowhere else.

Kernels are files `*.cu`. Shared code is in preludes: `csr.cuh`, and those named in a kernel's line `// Preludes: ...`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dasktc.once import once

__all__ = ["folder", "macros", "texts"]

PRELUDE = "csr.cuh"
MORE = re.compile(r"^// Preludes: (.+)$", re.MULTILINE)
"""Matches the line that names the other preludes of a kernel, in their order."""
DEFAULT = re.compile(r"^#ifndef (\w+)\n#define \1 (\d+)", re.MULTILINE)
"""Matches the default of a macro."""


@once
def folder() -> Path:
    """Find the folder of the kernels: inside the package when installed, beside it in a checkout.

    Where they are in neither place, it raises FileNotFoundError.
    """
    package = Path(__file__).parents[1]
    places = (package / "kernels", package.parent / "kernels")
    for place in places:
        if (place / PRELUDE).is_file():
            return place
    raise FileNotFoundError(
        f"{PRELUDE} is neither in {places[0]} nor in {places[1]}: the CUDA kernels are missing from this "
        "installation; install dasktc again"
    )


def texts(kernel: str) -> list[str]:
    """Read what a kernel is compiled from: its preludes, and its own file.

    A kernel is named by its file in the kernels' folder, or by a path, without its suffix.
    """
    text = _text(f"{kernel}.cu")
    preludes = MORE.search(text)
    return [*map(_text, (PRELUDE, *(preludes[1].split() if preludes else ()))), text]


def _text(name: str) -> str:
    return (folder() / name).read_text(encoding="utf-8")


@once
def macros(kernel: str) -> Mapping[str, int]:
    """Read the macros of a kernel and its preludes, by name, with their defaults; of two defaults the first holds."""
    return {name: int(value) for name, value in reversed(DEFAULT.findall("\n".join(texts(kernel))))}
