"""The launch of `lstc`: see kernels/lstc.cu."""

from __future__ import annotations

from dasktc.backends.cuda.device import THREADS, Launch

__all__ = ["LSTC", "lstc"]

LSTC = {"TILE": 1024, "THREADS": 128, "CHUNK": 4}
"""Macros of the `lstc` kernel: what they mean stands in its source."""


def lstc(launch: Launch) -> None:
    """Fill the GPU with blocks, which take vertices until none is left.

    Parameters
    ----------
    launch : Launch
    """
    shape, rows = launch.shape, int(launch.given["rows"][0])
    grid = min(THREADS // shape["THREADS"] * launch.device.processors, -(-rows // shape["CHUNK"]))
    taken = launch.device.array.zeros(1, dtype="uint32")
    launch.run("lstc_rows", grid, shape["THREADS"], taken, launch.totals)
