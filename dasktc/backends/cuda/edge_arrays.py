"""Edges of integer ids in a GPU's memory, as the stages read them: two arrays with as much of a frame as stages use.

A cuDF frame takes 0.2 ms to make of two arrays, and 0.1 ms for each column or slice that is taken out of it, which is
more than the kernels that read them take for some million edges. So only workers hold cuDF frames, which Dask, its
dashboard and a user see there (`backends.protocol.Backend.edge_frame`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dasktc.backends.csr import Array

__all__ = ["EdgeArrays"]


@dataclass(frozen=True, eq=False)
class EdgeArrays:
    """An edge frame of two arrays, `src` and `dst`, of one type of integers and one length."""

    src: Array
    dst: Array
    columns = ("src", "dst")

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, key: str | slice) -> Any:
        """The array of a column, or the edges of a slice of rows, which are views."""
        return getattr(self, key) if isinstance(key, str) else EdgeArrays(self.src[key], self.dst[key])

    @property
    def iloc(self) -> EdgeArrays:
        """Itself: its slices are of rows."""
        return self
