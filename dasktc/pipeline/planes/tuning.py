"""`Tuning`: the thresholds at which a plane changes how it moves partitions, in one object that tests replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dasktc.backends import PARTITION_EDGES
from dasktc.pipeline.stages.shuffle import WANTED_SAMPLES
from dasktc.planning.placement import ONE_PARTITION

__all__ = ["TUNING", "Tuning"]


def _by_name(**values: Any) -> Any:
    return field(default_factory=lambda: dict(values))


@dataclass(frozen=True)
class Tuning:
    """Sizes that decide how partitions are made and moved; a mapping is by backend, unless it says otherwise."""

    one_partition: int = ONE_PARTITION
    """Edges below which a graph is one partition, unless memory is short."""
    partition_edges: Mapping[str, int] = field(default_factory=lambda: dict(PARTITION_EDGES))
    """Most edges of a partition."""
    row_bytes: Mapping[str, int] = _by_name(int=160, text=640)
    """Mapping of {"int", "text"} to int. Bytes per row of a chunk that is read, by kind of ids: of the decoded row,
    of frames with and without loops, of dense ids and of keys."""
    dealt_bytes: int = 200
    """Bytes per row, beside `row_bytes`, while the rows of a chunk and their values are dealt to the blocks."""
    value_bytes: int = 160
    """Bytes per row while a block sorts the rows of a range of sources, and takes its edges' values from them."""
    edge_bytes: Mapping[str, int] = _by_name(cpu=40, cuda=240)
    """Bytes per edge of a partition at the stage that takes the most memory: sorting a copy of a partition from a file.
    A device counts six times as many: its partitions are then small, and most of the budget is left for results, which
    stay there."""
    split_bytes: int = 100
    """The same where vertex vectors are sharded: a partition then has the ids of its own vertices beside its edges."""
    device_pieces: int = 8
    """Most arrays for the edges of a device: the result and the sorting scratch of one are small beside all edges. More
    would make too many tasks on a cluster, where each pair of arrays may be one."""
    piece_edges: int = 1 << 26
    """Edges of such an array, unless there are then fewer than `least_pieces` arrays, or more than `device_pieces`."""
    least_pieces: int = 5
    """Fewest arrays, unless these have fewer than `split_edges` edges: sorting one takes two fifths of all keys."""
    split_edges: int = 1 << 24
    """Fewest edges of an array where there are several."""
    made_twice: int = 1 << 21
    """Rows from which keys are not stored before they are dealt out: each of the two passes makes them from the ends of
    the edges, which takes as long as writing them, and no memory."""
    ranked_rows: int = 1 << 32
    """Rows from which vertices are not ranked by rows: more of them than 32 bits count might name one vertex."""
    frame_rows: int = (1 << 31) - 1
    """Most rows of a frame that a worker makes: cuDF counts rows in 32 bits. A worker may have a list of frames."""
    direct: int = 1 << 12
    """Most slices, each a task, of an exchange in one step."""
    passes: Mapping[str, int] = _by_name(cpu=4, cuda=64)
    """Most ranges each of which reads a whole partition to pick its keys; for more, a task cuts the partition once."""
    samples: Mapping[str, int] = _by_name(cpu=WANTED_SAMPLES, cuda=1 << 12)
    """Sampled edges in one process that cut ranges. A GPU's few ranges may differ by some 5 %: it waits while the host
    sorts the sample."""
    cut_rows: Mapping[str, int] = _by_name(cpu=1 << 20, cuda=1 << 27)
    """Rows whose keys a worker makes and cuts into ranges at a time, beside those that it has cut."""
    partial_sums: int = 8
    """Most partial sums that each consumer adds up by itself; a task adds up more."""
    few_edges: int = 1 << 18
    """Edges below which a graph is counted on one thread: in 30 ms; two threads take as long, and 1.3 times the CPU
    time."""
    task_bytes: Mapping[str, int] = _by_name(tcp=3 << 19, ucx=1 << 27)
    """Mapping of {"tcp", "ucx"} to int. Bytes that a worker receives in the 1.4 ms that a task costs the scheduler: 1.1
    GB/s, or 100 GB/s over NVLink."""
    id_bytes: Mapping[str, int] = _by_name(int=42, text=200)
    """Mapping of {"int", "text"} to int. Bytes per vertex while the ids of two partitions are merged; of text with
    about ten characters."""
    small_table: int = 1 << 26
    """Most ids of a range that is looked up in a table although it has 4 to 16 ids for each row. Searching an id takes
    the CPU as long as 100 entries of a table, and a sample of edges has few rows, but ids of the graph's range."""
    least_shards: int = 1
    """Fewest shards of a vector of all vertices."""
    ranges_a_thread: int = 4
    """Ranges of buckets per thread: several, because they take unlike times, and a free thread takes the next one."""


TUNING = Tuning()
"""The values of every run; a test that needs others replaces this object."""
