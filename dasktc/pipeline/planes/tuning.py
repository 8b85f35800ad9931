"""`Tuning`: the thresholds at which a plane changes how it moves partitions, in one object that tests replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dasktc.backends import PARTITION_EDGES
from dasktc.planning.placement import ONE_PARTITION

__all__ = ["TUNING", "Tuning"]


def _by_name(**values: Any) -> Any:
    return field(default_factory=lambda: dict(values))


@dataclass(frozen=True)
class Tuning:
    """Sizes on which the movement of partitions depends; by backend, where they are mappings."""

    one_partition: int = ONE_PARTITION
    """Edges below which a graph is one partition, unless memory is short."""
    partition_edges: Mapping[str, int] = field(default_factory=lambda: dict(PARTITION_EDGES))
    """Most edges of a partition."""
    row_bytes: Mapping[str, int] = _by_name(int=160, text=640)
    """Mapping of {"int", "text"} to int. Bytes for each row of a chunk of a part: decoded, as a frame, without loops,
    with its ids looked up, and as keys."""
    dealt_bytes: int = 200
    """Bytes for each row of a chunk while it is dealt to the blocks with its values, beside `row_bytes`."""
    value_bytes: int = 160
    """Bytes for each row of a range of sources while a block sorts it, and takes the values of its edges."""
    edge_bytes: Mapping[str, int] = _by_name(cpu=40, cuda=240)
    """Bytes an edge of a partition at the stage that takes most memory: a sorted copy of a partition from a file. Six
    times as many on a device, so that most of the budget is left for results, which then stay there."""
    split_bytes: int = 100
    """The same where vertex vectors are sharded: a partition then holds its own vertices in addition to its edges."""
    device_pieces: int = 8
    """Arrays in which a device holds its edges in one process, so that the results and the sorting scratch of one array
    are small compared to all edges. On a cluster every pair of arrays would be a task."""
    piece_edges: int = 1 << 26
    """Least edges of each of these arrays."""
    least_pieces: int = 3
    """Least arrays of `split_edges` edges or more: one array's scratch is then a third of all edges."""
    split_edges: int = 1 << 22
    """Edges from which a device holds them in several arrays."""
    made_twice: int = 1 << 21
    """Rows from which keys are not stored before they are dealt out: both passes over them make them anew from the
    edges' ends, which takes as long as writing them, and no memory."""
    ranked_rows: int = 1 << 32
    """Rows from which their number at a vertex might exceed 32 bits: vertices are then not ranked by them."""
    direct: int = 1 << 12
    """Largest number of slice tasks in a shuffle of one step."""
    passes: Mapping[str, int] = _by_name(cpu=4, cuda=64)
    """Most ranges for which a pass per range over a partition is cheap, so that the partition need not be cut."""
    partial_sums: int = 8
    """Most partial sums that are handed to their consumers without a task that adds them up."""
    few_edges: int = 1 << 18
    """Edges below which a graph has one thread: it is counted in 30 ms; two take as long, and 1.3 times the CPU
    time."""
    task_bytes: Mapping[str, int] = _by_name(tcp=3 << 19, ucx=1 << 27)
    """Mapping of {"tcp", "ucx"} to int. Bytes that a worker receives in the 1.4 ms that a task costs the scheduler: 1.1
    GB/s, or 100 GB/s over NVLink."""
    id_bytes: Mapping[str, int] = _by_name(int=42, text=200)
    """Mapping of {"int", "text"} to int. Bytes a vertex that merging the ids of two partitions takes (text: ids of
    about ten characters)."""
    small_table: int = 1 << 26
    """Ids of a range for which a table is small. To look an id up in sorted ids takes the CPU as long as 100 entries of
    a table: a sample of the edges has few rows, whose ids are in the range of the graph."""
    least_shards: int = 1
    """Fewest shards of a vector of all vertices."""
    ranges_a_thread: int = 4
    """Ranges of buckets per thread; several, because they take unlike times, and a free thread takes the next."""


TUNING = Tuning()
"""The values of every run; a test that needs others replaces this object."""
