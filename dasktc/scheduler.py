"""What only Dask's scheduler can do: small functions that run inside it, sent by value.

A scheduler of a cluster that lives on need not have dasktc installed.
"""

from __future__ import annotations

from typing import Any

__all__ = ["free_stranded", "retry_erred"]


def retry_erred(client: Any, keys: list[Any]) -> None:
    """Have the scheduler run tasks again that it gave up.

    Parameters
    ----------
    client : distributed.Client
    keys : list of task keys
        Those that are not in error any more are left alone.
    """

    def retry(keys: list[Any], dask_scheduler: Any) -> None:
        tasks = dask_scheduler.tasks  # here and now: to retry a task that already runs again may hang it
        dask_scheduler.stimulus_retry([key for key in keys if key in tasks and tasks[key].state == "erred"])

    client.run_on_scheduler(retry, keys)


def free_stranded(client: Any, token: str) -> None:
    """Let tasks whose preferred worker is gone run on any other.

    A preference (`allow_other_workers`) counts when a task is placed. One that became ready while there was
    no worker at all is not placed: Dask 2026.8 looks at it again only when the preferred worker comes back,
    and a worker that was started anew has another address.

    Parameters
    ----------
    client : distributed.Client
    token : str
        What the names of the tasks' groups end with.
    """

    def free(token: str, dask_scheduler: Any) -> None:
        stranded = [
            task
            for task in dask_scheduler.unrunnable
            if task.loose_restrictions and task.group_key.endswith(token) and not dask_scheduler.valid_workers(task)
        ]
        for task in stranded:
            task.worker_restrictions = None
        dask_scheduler.transitions({task.key: "processing" for task in stranded}, f"free-stranded-{token}")

    client.run_on_scheduler(free, token)
