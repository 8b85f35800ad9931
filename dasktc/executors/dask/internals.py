"""What dasktc uses of Dask beyond its documented interface: all of it stands here.

Dask's pages call the state of its scheduler an internal detail, and its dashboard and the heartbeats of its workers
have no interface for others. Every entry was seen with Dask and distributed 2026.8.0, has a test in `test_internals.py`
that fails where it no longer holds, and a way on where a version lacks it.

| entry | uses | without it |
|---|---|---|
| `retry_erred` | `Scheduler.stimulus_retry`, states of tasks | `Client.retry`: the client has to hold all inputs |
| `look` | `Scheduler.unrunnable`, `valid_workers`, `transitions` | stranded tasks wait for their preferred worker |
| | `Scheduler.task_groups`, `WorkerState.processing` | a stage shows no share before it ends |
| `block_bytes` | `WorkerState.has_what`, `TaskState.prefix` | the page shows no blocks in memory |
| `add_metrics` | `Worker.metrics` | the page shows no steps within tasks, no bytes sent, no names of processes |
| `keep_futures` | `Client._inform_scheduler_of_futures` | a graph from a pickle lives as long as the pickled one |
| `add_pages` | `Scheduler.http_application`, `distributed.dashboard` | no page `/dasktc` |
| `group_graph` | `TaskGroupGraph` of the dashboard | Dask's own page `/groups`, which answers 500 |

One more is in `process/usage.py`, which imports nothing from here: `resources_of` reads a worker's bytes sent, spilled
and allowed (`transfer_outgoing_bytes_total`, `memory_manager`); without them they are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

__all__ = [
    "add_metrics", "add_pages", "block_bytes", "group_graph", "group_pages", "is_own", "keep_futures", "look",
    "retry_erred", "template",
]  # fmt: skip

LACKING = (AttributeError, ImportError, KeyError, TypeError)
"""What is raised where a version of Dask lacks an entry, or has another form of it."""
Steps = tuple[int, int]
"""Finished steps, and all steps."""
Draw = Callable[[Any, dict[str, Any], Any], None]
"""Draws a page: called with the scheduler, the variables of its template, and the empty Bokeh document."""
GROUPS = "/groups", "/individual-groups"
"""Dask's pages of task groups."""


# Functions within these run inside the scheduler; they are sent by value.


def retry_erred(client: Any, futures: Sequence[Any]) -> None:
    """Have the scheduler run tasks again that it gave up; tasks that are no longer in error are left alone."""

    def retry(keys: list[Any], dask_scheduler: Any) -> None:
        tasks = dask_scheduler.tasks  # checked here and now: retrying a task that already runs again may hang it
        dask_scheduler.stimulus_retry([key for key in keys if key in tasks and tasks[key].state == "erred"])

    try:
        client.run_on_scheduler(retry, [future.key for future in futures])
    except LACKING:
        client.retry(futures)


def is_own(key: Any) -> bool:
    """Whether a task's key is one that `DaskExecutor` makes: (stage-token, number), perhaps with a label between."""
    match key:
        case (str(name), *_, int()):
            return re.fullmatch(r"[a-z-]+-[0-9a-f]{8}", name) is not None
    return False


def look(client: Any, token: str, metric: str) -> tuple[dict[str, Steps], dict[str, list[Steps]]]:
    """Let tasks whose preferred worker is gone run on any worker; return the progress of this run's stages.

    A preference (`allow_other_workers`) counts when a task is placed. A task that became ready while there was no
    worker at all is not placed: Dask looks at it again only when the preferred worker comes back, and a worker that
    was started anew has another address. Tasks of other runs are included, because results may be made of theirs;
    those of other applications on the cluster are left alone.

    Parameters
    ----------
    client : distributed.Client
    token : str
        Suffix of the names of the run's task groups.
    metric : str
        Name of the workers' metric with the steps of tasks under way.

    Returns
    -------
    groups : dict of str to (int, int)
        For each stage of this run, how many tasks have run, of how many.
    within : dict of str to list of (int, int)
        For its tasks under way that report their own steps, how many are done, of how many.
    """

    def free(dask_scheduler: Any) -> None:
        tasks = [
            task
            for task in dask_scheduler.unrunnable
            if task.loose_restrictions and is_own(task.key) and not dask_scheduler.valid_workers(task)
        ]
        for task in tasks:
            task.worker_restrictions = None
        dask_scheduler.transitions({task.key: "processing" for task in tasks}, f"free-stranded-{token}")

    def progress(dask_scheduler: Any) -> Any:
        final_states = ("memory", "released", "forgotten")
        # Finished and all tasks of each stage, and steps of the tasks that run.
        groups = {
            group.prefix.name: (sum(group.states.get(state, 0) for state in final_states), sum(group.states.values()))
            for name, group in dask_scheduler.task_groups.items()
            if name.endswith(token)
        }
        steps_of_stages: dict[str, list[Any]] = {}
        for worker in dask_scheduler.workers.values():
            steps = worker.metrics.get(metric, {})
            for task in worker.processing if steps else ():
                if str(task.key) in steps and task.group.name.endswith(token):
                    steps_of_stages.setdefault(task.prefix.name, []).append(steps[str(task.key)])
        return groups, steps_of_stages

    def both(dask_scheduler: Any) -> Any:
        with suppress(*LACKING):
            free(dask_scheduler)
        with suppress(*LACKING):
            return progress(dask_scheduler)
        return {}, {}

    answer: tuple[dict[str, Steps], dict[str, list[Steps]]] = client.run_on_scheduler(both)
    return answer


def block_bytes(scheduler: Any) -> dict[str, int]:
    """Bytes of blocks in each worker's memory, by address; called in the scheduler."""
    with suppress(*LACKING):
        return {
            address: sum(task.nbytes for task in worker.has_what if "blocks" in task.prefix.name)
            for address, worker in scheduler.workers.items()
        }
    return {}


# Workers and clients


def add_metrics(worker: Any, metrics: Mapping[str, Callable[[Any], Any]]) -> None:
    """Have a worker's heartbeats report more: each function is called with the worker."""
    with suppress(*LACKING):  # a new dict: changing the old one during a heartbeat would end the worker
        worker.metrics = {**worker.metrics, **metrics}


def has_metric(worker: Any, name: str) -> bool:
    """Whether a worker reports a metric."""
    return name in getattr(worker, "metrics", {})


def keep_futures(client: Any) -> None:
    """Tell the scheduler that a client needs all its futures, also those that it has from a pickle."""
    with suppress(*LACKING):
        client._inform_scheduler_of_futures()


# The dashboard


def add_pages(scheduler: Any, name: str, pages: Mapping[str, Draw]) -> bool:
    """Serve pages on a scheduler's dashboard, before its own; call it in the scheduler's thread.

    All pages of the dashboard link to the page `name`; each function draws the page at its path. It returns False where
    there is no dashboard.
    """
    try:
        from distributed.dashboard.core import BokehApplication
        from distributed.dashboard.scheduler import template_variables
        from tornado.ioloop import IOLoop

        applications = [app for app in scheduler.http_application.applications if hasattr(app, "prefix")]
        if not applications:
            return False
        variables = template_variables(scheduler)
        if name not in variables["pages"]:
            variables["pages"].append(name)
        application = BokehApplication(dict(pages), scheduler, applications[0].prefix, variables)
        scheduler.http_application.applications.insert(0, application)
        application.initialize(IOLoop.current())
        application.start()
    except LACKING:
        return False
    return True


def template(source: str) -> Any:
    """Make a Jinja template that may extend those of Dask's pages."""
    from distributed.dashboard.components.scheduler import env

    return env.from_string(source)


def group_graph() -> Any:
    """The class of Dask's plot of task groups, with a layout by dependencies; None where a version has no such plot.

    Dask 2026.8 takes the groups in descending order of their names, because `dask.order.order` no longer regards the
    dependencies that it is passed; its page answers 500 (KeyError) if a group's name follows that of one it needs,
    and if two groups need each other, as those of a stage whose tasks are submitted ahead may.
    """
    try:
        from distributed.dashboard.components.scheduler import TaskGroupGraph
    except LACKING:
        return None

    class GroupGraph(TaskGroupGraph):  # type: ignore[misc, unused-ignore]
        def update_layout(self) -> tuple[dict[str, Any], dict[str, Any]]:
            groups = self.scheduler.task_groups
            dependencies = {
                name: {group.name for group in groups[name].dependencies if group.name in groups} - {name}
                for name in groups
            }
            nodes = {name: {"x": x, "y": y} for name, (x, y) in places_of_groups(dependencies).items()}
            return nodes, {
                name: {"nstart": dependencies[name], "nend": [name] * len(dependencies[name])} for name in groups
            }

    return GroupGraph


def group_pages() -> dict[str, Draw]:
    """Dask's pages of task groups with that plot; none where there is no such plot."""
    if (graph_class := group_graph()) is None:
        return {}
    from distributed.dashboard.components.scheduler import BOKEH_THEME

    def draw(source: str, scheduler: Any, variables: dict[str, Any], document: Any) -> None:
        graph = graph_class(scheduler, sizing_mode="stretch_both")
        graph.update()
        document.add_periodic_callback(graph.update, 200)
        document.title = "Dask: Task Groups Graph"
        document.theme = BOKEH_THEME
        document.add_root(graph.root)
        if source:
            document.template = template(source)
            document.template_variables.update(variables)

    return dict(zip(GROUPS, (partial(draw, '{% extends "simple.html" %}'), partial(draw, "")), strict=True))


def places_of_groups(needs: Mapping[str, set[str]]) -> dict[str, tuple[int, int]]:
    """Place each group to the right of those that it needs, and those without a place of their own above."""
    places = dict[str, tuple[int, int]]()
    names = list(needs)
    while names:
        placeable_names = [name for name in names if needs[name] <= places.keys()] or [_of_a_circle(needs, places)]
        for name in placeable_names:
            positions = [places[dependency] for dependency in needs[name] if dependency in places]
            x = 1 + max((x for x, _ in positions), default=-1)
            y = max((y for _, y in positions), default=0)
            while (x, y) in places.values():
                y += 1
            places[name] = x, y
        names = [name for name in names if name not in places]
    return places


def _of_a_circle(dependencies: Mapping[str, set[str]], places: Mapping[str, tuple[int, int]]) -> str:
    """A group of a circle of groups that need each other, where every group without a place needs such a one."""
    name = next(name for name in dependencies if name not in places)
    visits = set[str]()
    while name not in visits:
        visits.add(name)
        name = min(dependencies[name] - places.keys())
    return name
