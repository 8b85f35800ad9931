"""What only Dask's scheduler can do: small functions that run inside it, sent by value."""

from __future__ import annotations

from typing import Any

__all__ = ["drop_copies", "free_stranded", "keep_copies", "retry_erred"]


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


def drop_copies(client: Any, copies: dict[str, list[Any]]) -> None:
    """Have workers drop copies of results: neither the last one, nor one that a task needs there.

    Parameters
    ----------
    client : distributed.Client
    copies : dict of str to list of task keys
        By address.
    """

    def drop(copies: dict[str, list[Any]], dask_scheduler: Any) -> None:
        for address, keys in copies.items():
            worker = dask_scheduler.workers.get(address)
            tasks = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
            idle = [
                task.key
                for task in tasks
                if worker in (task.who_has or ())
                and len(task.who_has) > 1
                and all(waiting.processing_on is not worker for waiting in task.waiters or ())
            ]
            if idle:
                dask_scheduler.request_remove_replicas(address, idle, stimulus_id=f"drop-copies-{id(idle)}")

    client.run_on_scheduler(drop, copies)


def keep_copies(client: Any, groups: list[str], seconds: float, keys: list[Any]) -> dict[Any, tuple[int, list[str]]]:
    """For some seconds, keep copies of results that no task waits for.

    Dask's memory manager drops them every two seconds (`ReduceReplicas`): blocks that the next tasks do not need, but
    later ones do, would have to come again. What stands in for that policy passes on what it says of other results,
    and goes by itself: whatever becomes of the client, nothing stays behind.

    Parameters
    ----------
    client : distributed.Client
    groups : list of str
        Names of the tasks' groups.
    seconds : float
        Said again before they are over, it holds on.
    keys : list of task keys
        Whose places are asked for.

    Returns
    -------
    dict of task key to (int, list of str)
        Bytes of results, and the workers that have them; of those that are nowhere, nothing.
    """

    def keep(groups: list[str], seconds: float, keys: list[Any], dask_scheduler: Any) -> Any:
        from time import monotonic

        from distributed.active_memory_manager import ActiveMemoryManagerPolicy, ReduceReplicas

        class KeepCopies(ActiveMemoryManagerPolicy):  # type: ignore[misc, unused-ignore]
            def __init__(self, policy: Any) -> None:
                self.policy = policy
                self.ends: dict[str, float] = {}

            def run(self) -> Any:
                self.ends = {group: end for group, end in self.ends.items() if end > monotonic()}
                if not self.ends:
                    self.manager.policies.remove(self)
                    self.manager.add_policy(self.policy)
                return (said for said in self.policy.run() if said.ts.group_key not in self.ends)

        manager = dask_scheduler.extensions.get("amm")
        policies = set() if manager is None else manager.policies
        for policy in [policy for policy in policies if isinstance(policy, ReduceReplicas)]:
            policies.remove(policy)
            manager.add_policy(KeepCopies(policy))
        for policy in policies:
            if type(policy).__name__ == KeepCopies.__name__:
                policy.ends.update(dict.fromkeys(groups, monotonic() + seconds))
        found = {key: task for key in keys if (task := dask_scheduler.tasks.get(key)) and task.who_has}
        return {key: (task.nbytes, [worker.address for worker in task.who_has]) for key, task in found.items()}

    there: dict[Any, tuple[int, list[str]]] = client.run_on_scheduler(keep, groups, seconds, keys)
    return there
