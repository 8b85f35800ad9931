"""Real processes for tests: a Dask cluster started by Dask's own commands, and certificates for it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import psutil
import pytest

PATIENCE = 60
"""Seconds after which, on an idle machine, an awaited event is taken to have failed."""

DASK = [sys.executable, "-m", "dask"]
DASKTC = [sys.executable, "-m", "dasktc"]


def patience(seconds: float = PATIENCE) -> float:
    """Seconds to wait now: longer than on an idle machine in proportion to the load per core."""
    return seconds * max(1.0, psutil.getloadavg()[0] / (os.cpu_count() or 1))


def until(condition, seconds=PATIENCE, pause=0.02):
    """Wait until a condition on other processes or threads is true; return its value."""
    end = time.monotonic() + patience(seconds)
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(pause)
    return value


def fork_workers() -> None:
    """Have this process start Dask's workers as forks of a process that has imported what they need (`warm.py`).

    A worker's start and first count then take 0.7 CPU seconds instead of 4.5. Programs that tests start still start
    their workers as users' programs do.
    """
    import dask
    from distributed.utils import get_mp_context

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context().set_forkserver_preload(["tests.support.warm"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)
        forkserver.ensure_running()


def lines(file: Path) -> int:
    """Number of complete lines in a file that another process writes; 0 before it exists."""
    return file.read_bytes().count(b"\n") if file.exists() else 0


@dataclass
class Processes:
    """A scheduler and its workers, started by Dask's commands."""

    file: Path
    running: list[subprocess.Popen] = field(default_factory=list)

    @property
    def scheduler(self) -> subprocess.Popen:
        return self.running[0]

    def start(self, what: str, *arguments: str, within: Sequence[str] = ()) -> None:
        log = open(self.file.with_suffix(f".{len(self.running)}.log"), "w")
        command = [*within, *DASK, what, "--no-dashboard", "--scheduler-file", str(self.file), *arguments]
        with log:
            self.running.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))

    def _log(self, number: int) -> Path:
        return self.file.with_suffix(f".{number}.log")

    def log(self, number: int) -> str:
        """The log of a process; the scheduler is number 0."""
        return self._log(number).read_text()

    def end(self) -> None:
        for process in reversed(self.running):
            process.kill()
            process.wait()


@contextmanager
def cluster_of(folder: Path, hosts: Sequence[str], tls=(), within=((), ())) -> Iterator[Processes]:
    """Run `dask scheduler` on the first host and `dask worker` on each; `within` are prefixes of a host's commands."""
    found = Processes(folder / "scheduler.json")
    found.file.unlink(missing_ok=True)
    scheme = "tls" if tls else "tcp"
    try:
        found.start("scheduler", "--host", f"{scheme}://{hosts[0]}", "--port", "0", *tls, within=within[0])
        until(found.file.exists)
        for host, where in zip(hosts, within, strict=True):
            arguments = ("--nthreads", "1", "--no-nanny", "--death-timeout", "60", "--local-directory", str(folder))
            found.start("worker", "--host", f"{scheme}://{host}", *arguments, *tls, within=where)
        until(lambda: all("Registered to" in found.log(number) for number in range(1, len(hosts) + 1)))
        yield found
    finally:
        found.end()


@dataclass(frozen=True)
class Authority:
    """A certificate authority and a certificate that it signed, as files in PEM format."""

    folder: Path

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")

    @property
    def cert(self) -> str:
        return str(self.folder / "cert.pem")

    @property
    def key(self) -> str:
        return str(self.folder / "key.pem")

    @property
    def options(self) -> list[str]:
        return ["--tls-ca-file", self.ca, "--tls-cert", self.cert, "--tls-key", self.key]

    @classmethod
    def new(cls, folder: Path) -> Authority:
        """Make an authority and one certificate with the openssl command."""
        if shutil.which("openssl") is None:
            pytest.skip("no openssl here to make certificates with")
        folder.mkdir()

        def openssl(*arguments: str) -> None:
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

        new = ("req", "-newkey", "rsa:2048", "-nodes")
        openssl(
            *new, "-x509", "-days", "2", "-subj", f"/CN={folder.name} authority", "-keyout", "ca.key", "-out", "ca.pem"
        )
        openssl(*new, "-subj", f"/CN={folder.name}", "-keyout", "key.pem", "-out", "request.pem")
        sign = ("x509", "-req", "-days", "2", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl(*sign, "-in", "request.pem", "-out", "cert.pem")
        return cls(folder)


def dasktc(*arguments: str, within: Sequence[str] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a dasktc command to its end."""
    return subprocess.run(
        [*within, *DASKTC, *arguments], capture_output=True, text=True, timeout=patience(), env=os.environ | environment
    )


def apart_from_page(error: str) -> str:
    """What a count wrote to standard error, without the line that names its page on the dashboard."""
    return "".join(line for line in error.splitlines(keepends=True) if not line.startswith("dashboard: http"))


def local_cluster(**options: Any) -> Any:
    """Start a cluster of this host whose workers have a thread each."""
    from distributed import LocalCluster

    silent = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    return LocalCluster(threads_per_worker=1, **silent, **options)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
