"""`dasktc info --warm-up`: compiles what later processes load, for images of clusters and machines that begin."""

from __future__ import annotations

import time
from typing import Any

from dasktc.api.count import prepare, triangle_count
from dasktc.api.methods import Method
from dasktc.backends.select import get_backend, unusable
from dasktc.datasets import karate
from dasktc.errors import InputError
from dasktc.options import BACKENDS, Backend
from dasktc.registry import ORDERS

__all__ = ["collect", "describe"]


def collect() -> dict[str, Any]:
    """Compile the kernels of every backend that is usable here: how many, and the seconds; or why there are none."""
    names = [name for name in BACKENDS if name != "auto"]
    return {name: {"why": str(InputError(why))} if (why := unusable(name)) else _warm(name) for name in names}


def _warm(name: Backend) -> dict[str, Any]:
    start = time.perf_counter()
    compiled = get_backend(name).warm()
    # What CuPy compiles of array expressions is compiled where these run.
    for order in ORDERS:
        triangle_count(karate(), backend=name, method=Method(reorder=order))
    with prepare(karate(), backend=name) as graph:
        graph.measures()
    return {"compiled": compiled, "seconds": time.perf_counter() - start}


def describe(facts: dict[str, Any]) -> str:
    """Format the dict of `collect` as text: a line a backend."""
    lines = []
    for name, fact in facts.items():
        warmed = "{compiled:,} compiled in {seconds:.1f} s"
        lines.append(f"{name:<6}{fact['why'] if 'why' in fact else warmed.format(**fact)}")
    return "\n".join(lines)
