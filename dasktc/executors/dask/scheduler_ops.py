"""Copies of results on the workers, kept or dropped through Dask's active memory manager."""

from __future__ import annotations

from typing import Any

__all__ = ["drop_copies", "keep_copies"]


def drop_copies(client: Any, copies: dict[str, list[Any]]) -> None:
    """Have workers drop copies of results (keys by address), except the last copy and those that a task there needs."""

    def drop(copies: dict[str, list[Any]], dask_scheduler: Any) -> None:
        from distributed.active_memory_manager import (
            ActiveMemoryManagerExtension,
            ActiveMemoryManagerPolicy,
            Suggestion,
        )

        class DropCopies(ActiveMemoryManagerPolicy):  # type: ignore[misc, unused-ignore]
            def run(self) -> Any:
                for address, keys in copies.items():
                    if worker := dask_scheduler.workers.get(address):
                        tasks = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
                        yield from (Suggestion("drop", task, {worker}) for task in tasks)

        ActiveMemoryManagerExtension(dask_scheduler, {DropCopies()}, register=False, start=False).run_once()

    client.run_on_scheduler(drop, copies)


def keep_copies(client: Any, groups: list[str], seconds: float, keys: list[Any]) -> dict[Any, tuple[int, list[str]]]:
    """Keep copies of results that no task waits for, for some seconds.

    Dask's memory manager drops such copies every two seconds (`ReduceReplicas`): blocks that later tasks need, but not
    the next ones, would be copied again. A wrapper policy filters our keys, delegates the rest, and uninstalls itself
    on expiry: nothing stays behind, whatever becomes of the client.

    Results are selected by their tasks' groups, the first parts of their keys; each call restarts the time. Returns,
    for those of `keys` that a worker holds, the bytes and the workers that have it.
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
                return (suggestion for suggestion in self.policy.run() if not self.keeps(suggestion.ts.key))

            def keeps(self, key: Any) -> bool:
                return isinstance(key, tuple) and key[0] in self.ends

        # Wrap the policy once; a later call finds the wrapper, and sets further ends.
        manager = dask_scheduler.extensions.get("amm")
        policies = set() if manager is None else manager.policies
        for policy in [policy for policy in policies if isinstance(policy, ReduceReplicas)]:
            policies.remove(policy)
            manager.add_policy(KeepCopies(policy))
        for policy in policies:
            if type(policy).__name__ == KeepCopies.__name__:
                policy.ends.update(dict.fromkeys(groups, monotonic() + seconds))
        tasks = {key: task for key in keys if (task := dask_scheduler.tasks.get(key)) and task.who_has}
        return {key: (task.nbytes, [worker.address for worker in task.who_has]) for key, task in tasks.items()}

    holders: dict[Any, tuple[int, list[str]]] = client.run_on_scheduler(keep, groups, seconds, keys)
    return holders
