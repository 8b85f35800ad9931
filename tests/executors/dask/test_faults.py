"""Deaths of workers, counted."""

from types import SimpleNamespace

import pytest

from dasktc.errors import ClusterError
from dasktc.executors.dask import faults as fault_policy


class Future:
    """Dask's future of a task that has ended so many workers."""

    status = "lost"

    def __init__(self, key, error):
        self.key, self._error = key, error

    def exception(self):
        return self._error


def test_a_death_counts_once_for_all_that_waited_for_it(monkeypatch):
    error = SimpleNamespace(task="read", allowed_failures=0)
    monkeypatch.setattr(fault_policy, "was_killed", lambda future: True)
    monkeypatch.setattr(fault_policy, "retry_erred", lambda *given: None)
    policy = fault_policy.FaultPolicy(SimpleNamespace(), 1, 2, "token")
    waited = [Future(f"count-{k}", Dead(error)) for k in range(9)]
    policy.resubmit(waited)
    policy.resubmit(waited)
    with pytest.raises(ClusterError, match=r"^3 workers died with task read:"):
        policy.resubmit(waited)


class Dead(Exception):
    def __init__(self, of):
        super().__init__(of.task)
        self.task, self.allowed_failures = of.task, of.allowed_failures
