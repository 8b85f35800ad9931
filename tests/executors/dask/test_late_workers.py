"""Workers of a user's cluster that come back late."""

import gc
import os
import signal
import time

import dask
import pytest
from distributed import Client

import dasktc
from dasktc import generate
from dasktc.executors.dask import late_workers
from tests.support.processes import local_cluster, until


@pytest.mark.slow
def test_workers_of_a_users_cluster_come_back_after_its_timeout(tmp_path):
    """After that time it ends the nanny of a missing worker; with GPUs Dask's 15 s may be too short."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\n\ntime.sleep(2)\n")
    with (
        local_cluster(n_workers=1, preload=[str(slow)]) as users,
        Client(users, set_as_default=False) as client,
        dask.config.set({late_workers.TIMEOUT: "1s"}),
    ):
        graph = dasktc.prepare(generate.kronecker(8), client)
        expected = int(graph.triangle_count())
        (nanny,) = users.workers.values()
        died = time.monotonic()
        os.kill(nanny.pid, signal.SIGKILL)
        until(lambda: not client.ncores())
        assert int(graph.cliques(3)) == expected == int(dasktc.triangle_count(generate.kronecker(8), client))
        assert time.monotonic() - died > 2
        del graph
        until(lambda: (gc.collect(), dask.config.get(late_workers.TIMEOUT))[1] == "1s")
