"""Generates edges for the host on a GPU; CuPy suffices, so that cuDF, which takes seconds, is not imported."""

from __future__ import annotations

from typing import Any

from dasktc.backends.csr import Array
from dasktc.backends.cuda.edge_functions import generate_edges
from dasktc.backends.select import cuda_module
from dasktc.errors import InputError, neutral_text

__all__ = ["make_on_host", "no_gpu"]


def no_gpu() -> str | None:
    """Why this process cannot generate edges on a GPU, for which CuPy suffices; None where it can."""
    try:
        cuda_module().refuse_without_gpu()
    except InputError as error:
        return neutral_text(error)
    return None


def make_on_host(part: Any) -> tuple[Array, Array] | None:
    """Make the edges of a generated part on the GPU, and copy them to the host: int32, or int64 where ids need that.

    None for a part that is not generated, or whose recipe has no kernel.
    """
    recipe = getattr(part, "recipe", None)
    ends = None if recipe is None else generate_edges(cuda_module().device(), recipe, part.first, part.last)
    return None if ends is None else (ends[0].get(), ends[1].get())
