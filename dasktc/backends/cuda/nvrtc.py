"""How a CUDA kernel is compiled: the text to compile, and the compiler's options.

Macros and preludes are prepended as text, never included from a path, because CuPy's cache of compiled kernels hashes
only the text that it is given: after an edit of an included file a stale kernel could run. Entry points are
`extern "C"`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dasktc.backends.kernel_files import texts

__all__ = ["ARCHITECTURES", "OPTIONS", "Defines", "source"]

ARCHITECTURES = (75, 80, 90, 100, 120)
"""Compute capabilities, times ten, for which tests compile every kernel."""
OPTIONS = ("--std=c++17",)
"""Options of the compiler."""

Defines = tuple[tuple[str, int], ...]
"""Names and values of preprocessor macros."""


def source(kernel: str, defines: Mapping[str, int] | Defines = ()) -> str:
    """Build the source text to compile: macros, preludes, kernel.

    `defines` are in place of the files' defaults; names in lower case are settings of the launch alone.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in dict(defines).items() if name.isupper())
    return "\n".join((macros, *texts(kernel)))
