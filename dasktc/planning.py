"""What a count would run, without counting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dasktc.backend import scratch_bytes, tasks_a_worker, unusable
from dasktc.cluster import connect
from dasktc.errors import InputError
from dasktc.options import Options, bytes_of
from dasktc.plan import Limits, Plan, Sizes, make_plan
from dasktc.planners import PLANNERS
from dasktc.stages import Progress, choose_backend, prepare_edges, silent
from dasktc.tasks import Direct
from dasktc.triangles import as_source
from dasktc.vertices import check_size

__all__ = ["plan_size", "plan_source"]


def plan_source(
    source: Any,
    client: Any = None,
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    ids: str = "auto",
    skip: int | None = None,
    workers: int | str | None = None,
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Read a source, once, and plan its count; parameters as for `triangle_count`.

    `workers` is how many tasks to plan for: the source is prepared in this process.
    """
    chosen = Options(**options)
    found = as_source(source, format, columns, ids, skip)
    with connect(client, scheduler=scheduler, scheduler_file=scheduler_file) as tasks:
        chosen = choose_backend(tasks, chosen)
        return prepare_edges(tasks, found, chosen, progress or silent, _positive("workers", workers)).plan


def plan_size(vertices: int, edges: int, *, workers: int | str | None = None, **options: Any) -> Plan:
    """Plan the count of a graph of a given size whose blocks all have E/n² edges.

    Parameters
    ----------
    vertices, edges : int
    workers : int, optional
        Tasks at a time; default 1.
    **options
        As for `triangle_count`; options of reading are ignored.
    """
    reading = {"format", "columns", "ids", "skip", "scheduler", "scheduler_file", "progress"}
    chosen = Options(**{name: value for name, value in options.items() if name not in reading})
    if bytes_of(chosen.memory) is None and (why := unusable(chosen.chosen_backend)):
        raise InputError(f"{why}; or give --memory, to plan for GPUs that are elsewhere")
    limits = Limits(
        workers=_positive("workers", workers) or 1,
        memory=Direct().memory(bytes_of(chosen.memory), chosen.chosen_backend),
        partition=chosen.partition,
        parts=chosen.parts,
        splits=chosen.splits,
        tasks_a_worker=tasks_a_worker(chosen.chosen_backend, _positive("workers", workers) or 1),
    )
    for name, value in (("vertices", vertices), ("edges", edges)):
        if value < 0:
            raise InputError(f"--{name} {value} is negative: a graph has 0 or more; give its size")
    check_size(vertices)
    if chosen.partition == "proxy":
        raise InputError(
            "--partition proxy cannot be planned from --vertices and --edges: how many proxies a part has depends on "
            "the graph; give the SOURCE"
        )
    return make_plan(
        vertices,
        edges,
        lambda partition, n: _even(partition, n, vertices, edges),
        partial(scratch_bytes, chosen.chosen_backend, chosen.chosen_kernel),
        limits,
    )


def _even(partition: str, parts: int, vertices: int, edges: int) -> Sizes:
    """Sizes of blocks that all have an equal share of the edges and of the vertices."""
    shape = (1 if PLANNERS[partition].replicated else parts, PLANNERS[partition].columns(parts))
    held, rows = -(-edges // shape[0] ** 2), max(1, -(-vertices // shape[0]))
    return Sizes(*(np.full(shape, number, dtype="int64") for number in (held, rows, rows)))


def _positive(name: str, value: int | str | None) -> int | None:
    if isinstance(value, str):
        raise InputError(f"--{name} {value} is no number: a plan is for so many tasks at a time; give how many")
    if value is not None and value < 1:
        raise InputError(f"--{name} {value} is below 1: nobody would count; give 1 or more, or leave it out")
    return value
