"""`Tuning`: sizes by which results are kept and copied on a device, in one object that tests replace."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Sizes on which it depends where a result lies and how it is copied, but no result."""

    small: int | None = None
    """Bytes below which a result stays as it is, as for `FileStore`; None: by the budget."""
    slab: int = 1 << 24
    """Bytes of a slab of pinned memory: copying one takes 0.3 ms, and a result wastes half a slab on average."""
    shared_fill: int = 1 << 20
    """Bytes from which several threads fill a slab from a mapped file."""


TUNING = Tuning()
"""The values of every run."""
