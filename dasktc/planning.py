"""What a count would run, without counting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dasktc.backend import tasks_a_worker, unusable
from dasktc.budget import within_memory
from dasktc.cluster import connect
from dasktc.disk import room_within, usable
from dasktc.errors import InputError
from dasktc.options import Options, bytes_of
from dasktc.plan import Limits, Plan, Sizes, make_plan
from dasktc.planners import PLANNERS
from dasktc.stages import Progress, choose_backend, prepare_edges, scratch_of, silent
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
    work_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Read a source, once, and plan its count; parameters as for `triangle_count`.

    `workers` is how many tasks to plan for: the source is prepared in this process.
    """
    chosen = Options(**options)
    found = as_source(source, format, columns, ids, skip, chosen.memory)
    with (
        connect(client, scheduler=scheduler, scheduler_file=scheduler_file) as connected,
        within_memory(connected, chosen.memory, work_dir, backend=chosen.chosen_backend) as tasks,
    ):
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
    reading = {"format", "columns", "ids", "skip", "scheduler", "scheduler_file", "work_dir", "progress"}
    chosen = Options(**{name: value for name, value in options.items() if name not in reading})
    given, backend = bytes_of(chosen.memory), chosen.chosen_backend
    if given is None and (why := unusable(backend)):
        raise InputError(f"{why}; or give --memory, to plan for GPUs that are elsewhere")
    on_disk = given is not None and backend == "cpu"
    limits = Limits(
        workers=_positive("workers", workers) or 1,
        memory=usable(given) if on_disk and given is not None else Direct().memory(given, backend),
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
        scratch_of(chosen, edges, room_within(given) if on_disk and given is not None else None),
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
