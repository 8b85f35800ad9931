"""Count on the GPUs of hosts that ssh reaches without a password: a worker a GPU.

    pip install asyncssh
    python dasktc-ssh-gpu.py /shared/graph.parquet host1 host2

The first host runs the scheduler, and workers as well. Every host needs the same Python environment at the same path
(pip install "dasktc[cuda13]"), and sees the graph under the same name.

While it counts, http://host1:8787/dasktc shows the progress (pip install "dasktc[dashboard]" on host1).

TLS: UCX has none, and a cluster of ssh is one of a network that is trusted. With PROTOCOL=tls, certificates of
`dasktc cluster tls` and Dask's configuration on every host (`dasktc cluster tls` says which) it is encrypted.
"""

import os
import sys
from typing import Any

from dask.distributed import Client, SSHCluster

import dasktc

GPUS = int(os.environ.get("GPUS", "8"))  # of a host
PROTOCOL = os.environ.get("PROTOCOL", "ucx")  # tcp, where distributed-ucxx is not installed
WORKER_CLASS = "dask_cuda.CUDAWorker"  # one a host starts a worker for each GPU there


def worker_options() -> dict[str, Any]:
    """What a host's workers are given: pools that CuPy and cuDF share, from which UCX sends."""
    return {
        "protocol": PROTOCOL,
        "rmm_pool_size": 0.8,
        "rmm_allocator_external_lib_list": ["cupy"],
        "local_directory": os.environ.get("TMPDIR", "/tmp"),  # on the host's own disk
    }


def options() -> dict[str, Any]:
    """How to reach the hosts, and what to start there."""
    return {
        # known_hosts is checked; port, username, client_keys: see asyncssh.connect
        "connect_options": {"port": int(os.environ.get("SSH_PORT", "22"))},
        "worker_class": WORKER_CLASS,
        "worker_options": worker_options(),
        "scheduler_options": {"protocol": PROTOCOL, "port": 0, "dashboard_address": ":8787"},
        # A Python elsewhere than here: "remote_python": "/shared/venv/bin/python",
    }


def main(source: str, hosts: list[str]) -> None:
    """Start the cluster, count, and end it."""
    with SSHCluster([hosts[0], *hosts], **options()) as cluster, Client(cluster) as client:
        client.wait_for_workers(GPUS * len(hosts))
        dasktc.triangle_count(source, client, backend="cuda").summary()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
