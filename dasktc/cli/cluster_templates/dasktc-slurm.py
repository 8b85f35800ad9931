"""Count on workers that are Slurm jobs of their own, started from here (a login node, a notebook).

    pip install dask-jobqueue
    python dasktc-slurm.py /shared/graph.parquet

Slurm may start the jobs at different times, and end them: the count begins with the workers that are there,
takes in those that come, and does the work of those that go again.

While it counts, the page /dasktc of this host, port 8787, shows the progress (pip install "dasktc[dashboard]").

TLS: `dasktc cluster tls` makes certificates; then `export TLS=/shared/tls`, a folder with ca.pem, cert.pem and
key.pem that every node sees and nobody else reads.
"""

import logging
import os
import signal
import subprocess
import sys
from typing import Any

from dask.distributed import Client
from dask_jobqueue.slurm import SLURMCluster

import dasktc
from dasktc.executors.process.tls import security_of

JOBS = int(os.environ.get("JOBS", "4"))
CORES = 8  # of a job: a worker process of one thread each


def options() -> dict[str, Any]:
    """What a job asks Slurm for."""
    return {
        "queue": os.environ.get("PARTITION"),  # sbatch --partition
        "account": os.environ.get("ACCOUNT"),  # sbatch --account
        "cores": CORES,
        "processes": CORES,
        "memory": "32GB",
        "walltime": "01:00:00",
        "interface": os.environ.get("INTERFACE"),  # the fast network's, e.g. "ib0"
        "local_directory": "${TMPDIR:-/tmp}",  # on the node's own disk, as its shell knows it
        "job_name": "dasktc",
        "log_directory": os.environ.get("LOGS", "dasktc-logs"),  # what the jobs print
        # GPUs: `dasktc cluster slurm-gpu`; or one job a GPU, with dask-cuda's worker instead of Dask's:
        # "cores": 1, "processes": 1, "worker_command": "dask cuda worker",
        # "job_extra_directives": ["--gpus-per-task=1"],
        # "worker_extra_args": ["--rmm-pool-size", "0.8", "--set-rmm-allocator-for-libs", "cupy"],
    }


def certificates() -> dict[str, Any]:
    """TLS, if there is a folder of certificates."""
    folder = os.environ.get("TLS")
    if not folder:
        return {}
    files = [os.path.join(folder, name) for name in ("ca.pem", "cert.pem", "key.pem")]
    return {"security": security_of(*files), "protocol": "tls://", "shared_temp_directory": folder}


def end(number: int, frame: Any) -> None:
    """End as a shell reports a signal, by way of `with`, which cancels the jobs."""
    logging.disable()  # Dask would tell of every connection that this closes
    sys.exit(128 + number)


def main(source: str) -> None:
    """Start the jobs, count, and end them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, end)
    with SLURMCluster(**options(), **certificates()) as cluster, Client(cluster) as client:
        # Slurm says when a job could start, or why never; SLURMCluster would wait for it all the same.
        if subprocess.run(["sbatch", "--test-only"], input=cluster.job_script(), text=True).returncode:
            sys.exit("dasktc: Slurm refuses such a job, for the reason above; change PARTITION, ACCOUNT or options()")
        cluster.scale(jobs=JOBS)
        client.wait_for_workers(1)  # as long as the queue takes; --worker-timeout counts from here
        dasktc.triangle_count(source, client).summary()


if __name__ == "__main__":
    main(sys.argv[1])
