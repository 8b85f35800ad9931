"""Predicts whether a small file is counted on the CPU before the GPU's libraries have started."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from dasktc.options import format_size

__all__ = ["sooner_on_the_cpu"]

START = {"cpu": 2.0, "cuda": 5.0}
"""Seconds until a new process has loaded a backend: Numba's compiled kernels from their cache; CuPy and cuDF."""
RATE = {"cpu": 2e7, "cuda": 5e8}
"""Bytes of text or Parquet per second, from file to number in one process: Kronecker 17 on one core, whose 22.7 MB of
text took 0.5 to 1.1 s and 9.1 MB of Parquet 0.35 to 1.0; Kronecker 22 on an H200."""


def sooner_on_the_cpu(nbytes: int | None) -> str | None:
    """Return why `auto` takes the CPU for files of so many bytes (None: of unknown size); None where it does not.

    It does not where a GPU is faster, or its libraries are already loaded or not installed.
    """
    if nbytes is None or "cudf" in sys.modules or not all(map(find_spec, ("cupy", "cudf"))):
        return None
    cpu, cuda = (START[backend] + nbytes / RATE[backend] for backend in ("cpu", "cuda"))
    if cpu > cuda:
        return None
    return (
        f"backend cpu: {format_size(nbytes)} take about {cpu:.1f} s there and {cuda:.1f} on a GPU, whose libraries "
        f"take {START['cuda']:.0f} to start"
    )
