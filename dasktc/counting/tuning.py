"""`Tuning`: sizes at which questions change how they are answered, in one object that tests replace."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Sizes on which the way to an answer depends, but no answer."""

    batch: int = 10_000
    """Number of counts that one task adds up."""
    partition_bytes: int = 128 << 20
    """Bytes of a partition of a Dask DataFrame."""
    frame_bytes: int = 100
    """Bytes per row of an edge frame while it is made: keys, numbers, their order, and ids."""
    split_bytes: int = 200
    """The same where vertex vectors are sharded."""
    list_limit: int = 1_000_000
    """Largest list without a limit that a caller receives in one frame."""
    probe_limit: int = 1 << 16
    """Largest limit for which triangles are searched without counting first."""
    highest: int = 20
    """Number of vertices, and of edges, in the lists of those with most triangles."""
    update_chunk: int = 1 << 22
    """Columns, or pairs of neighbours, that an update processes at a time."""
    listed_wedges: int = 1 << 24
    """Most wedges that a GPU lists at once to find the most similar vertices."""
    shared_count: int = 1 << 18
    """Number of edges from which several threads share a count while trusses are peeled."""
    peeled_edges: int = (1 << 31) - 1
    """Largest number of edges that one worker peels: positions have 32 bits."""
    survey_batch: int = 1 << 16
    """Most triangles of a batch of a survey on the CPU, where so many stay in a cache, unless a block's row is
    longer."""
    device_batch: int = 1 << 25
    """Most triangles of a batch of a survey on a GPU, where launches and waits then take little time."""
    subset_labels: int = 8
    """Most labels by which a GPU counts in subgraphs, of which there are 120 for 8."""
    motif_edges: int = (1 << 32) - 1
    """Edges of a graph whose cycles of four, fewer than half the square of its edges, fit 63 bits."""
    recount: float = 16
    """If more than one in so many edges of a candidate for the k-truss is removed, the rest are counted again."""


TUNING = Tuning()
"""The values of every run."""
