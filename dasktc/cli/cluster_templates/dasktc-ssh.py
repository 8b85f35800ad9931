"""Count on hosts that ssh reaches without a password.

    pip install asyncssh
    python dasktc-ssh.py /shared/graph.parquet host1 host2 host3

The first host runs the scheduler, and a worker as well. Every host needs the same Python environment at the same
path, and sees the graph under the same name. The same by a command, for a cluster that lives on
(pip install paramiko):

    dask ssh --nworkers 8 --nthreads 1 host1 host2 host3 &
    dasktc count --scheduler tcp://host1:8786 /shared/graph.parquet

While it counts, http://host1:8787/dasktc shows the progress (pip install "dasktc[dashboard]" on host1).

GPUs: `dasktc cluster ssh-gpu`.

TLS: `dasktc cluster tls` makes certificates; then `export TLS=/shared/tls`, a folder with ca.pem, cert.pem and
key.pem at the same path on every host. `dask ssh` has no options for it.
"""

import os
import sys
from typing import Any

import dask
from dask.distributed import Client, SSHCluster

import dasktc

WORKERS = int(os.environ.get("WORKERS", "8"))  # processes of one thread each, a host


def options() -> dict[str, Any]:
    """How to reach the hosts, and what to start there."""
    return {
        # known_hosts is checked; port, username, client_keys: see asyncssh.connect
        "connect_options": {"port": int(os.environ.get("SSH_PORT", "22"))},
        "worker_options": {"nthreads": 1, "n_workers": WORKERS},
        "scheduler_options": {"port": 0, "dashboard_address": ":8787"},
        # A Python elsewhere than here: "remote_python": "/shared/venv/bin/python",
    }


def use_tls(folder: str) -> None:
    """Put a folder of certificates into Dask's configuration, which is what reaches the other hosts."""
    files = {"cert": os.path.join(folder, "cert.pem"), "key": os.path.join(folder, "key.pem")}
    comm = "distributed.comm"
    dask.config.set({f"{comm}.default-scheme": "tls", f"{comm}.require-encryption": True})
    dask.config.set({f"{comm}.tls.ca-file": os.path.join(folder, "ca.pem")})
    dask.config.set({f"{comm}.tls.{role}": files for role in ("scheduler", "worker", "client")})


def main(source: str, hosts: list[str]) -> None:
    """Start the cluster, count, and end it."""
    if os.environ.get("TLS"):
        use_tls(os.environ["TLS"])
    with SSHCluster([hosts[0], *hosts], **options()) as cluster, Client(cluster) as client:
        client.wait_for_workers(WORKERS * len(hosts))
        dasktc.triangle_count(source, client).summary()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
