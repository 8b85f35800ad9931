"""The public `Method` and `RunOptions`; the docstring of `Method` lists the names of the registries."""

from __future__ import annotations

import re
from textwrap import fill

import dasktc.backends  # declares kernels
import dasktc.planning  # noqa: F401  (declares schemes, orders, assignments and methods)
from dasktc.options import Method, RunOptions
from dasktc.registry import ASSIGNMENTS, METHODS, ORDERS, SCHEMES, kernel_lines

__all__ = ["Method", "RunOptions"]


def _with_names(text: str) -> str:
    """Replace the placeholders of a docstring, such as <kernel>, by the lists of the registries."""
    registries = (SCHEMES, ORDERS, ASSIGNMENTS, METHODS)
    lines = {"kernel": kernel_lines(), **{names.option: names.lines() for names in registries}}

    def listed(placeholder: re.Match[str]) -> str:
        indent, option, rest = placeholder.groups()
        text = "; ".join(f"{name}: {line}" for name, line in lines[option]) + rest
        return fill(text, 116, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)

    return re.sub(r"^( *)<(\w+)>(.*)$", listed, text, flags=re.MULTILINE)


for _documented in (Method, Method.of.__func__):  # type: ignore[attr-defined]
    if _documented.__doc__:  # none with python -OO
        _documented.__doc__ = _with_names(_documented.__doc__)
