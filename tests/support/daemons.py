"""Slurm's own daemons, from Debian's packages, on emulated hosts of this machine (hosts.py).

apt-get install --no-install-recommends slurmctld slurmd slurm-client munge
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import hosts
from tests.support.processes import patience, until
from tests.support.samples import environment, executable

CONF = """
ClusterName=dasktc
SlurmctldHost=login
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
TaskProlog={folder}/prolog
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory,CR_LLN
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=2
NodeName=n[1-2] CPUs=2 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES PriorityTier=1
PartitionName=urgent Nodes=ALL PriorityTier=2
PartitionName=closed Nodes=ALL State=DOWN
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")


@dataclass(frozen=True)
class Slurm:
    """Runs commands on the login host, in a folder that the nodes share."""

    folder: Path
    login: hosts.Host

    def environment(self, **more: str) -> dict[str, str]:
        local = str(self.folder / "local" / "login")
        return environment(self.folder, SLURM_CONF=str(self.folder / "slurm.conf"), **({"TMPDIR": local} | more))

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = self.environment(**more)
        return subprocess.Popen(self.login.command(*command), cwd=self.folder, env=env, text=True, **pipes)

    def run(self, *command: str, **more: str) -> str:
        """Run a command, which must succeed; return what it prints."""
        process = self.start(*command, **more)
        out, error = process.communicate(timeout=patience())
        assert process.returncode == 0, out + error
        return out

    def submit(self, *arguments: str, **more: str) -> str:
        """Submit a batch job; return its number."""
        return self.run("sbatch", "--parsable", *arguments, **more).strip()

    def jobs(self, node: str = "") -> list[str]:
        """Numbers of the jobs that have not ended."""
        where = (f"--nodelist={node}",) if node else ()
        return self.run("squeue", "--noheader", "--format=%A", *where).split()

    def idle(self) -> int:
        """Number of nodes that wait for jobs; 0 while the daemons start."""
        process = self.start("sinfo", "--noheader", "--partition=all", "--states=idle", "--format=%D")
        return int(process.communicate(timeout=patience())[0] or 0)

    def ended(self, job: str) -> str:
        """Wait for a job to end; return its state."""

        def state() -> str:
            return re.search(r"JobState=(\w+)", self.run("scontrol", "show", "job", job)).group(1)

        until(lambda: state() not in ("PENDING", "RUNNING", "COMPLETING"))
        return state()


def lacking() -> str | None:
    """Why Slurm is not available here; None where it is."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(missing)}: not installed here"
    return "a node has 2 CPUs, this machine 1" if os.cpu_count() == 1 else hosts.lacking()


@contextmanager
def started(folder: Path) -> Iterator[Slurm]:
    """Start a login host and two nodes, which wait for jobs."""
    (folder / "slurm.conf").write_text(CONF.format(folder=folder))
    (folder / "state").mkdir()
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o600)
    executable(folder / "prolog", f'echo "export TMPDIR={folder}/local"')  # as sites do it: a node's own disk
    with hosts.hosts_of(folder, ("login", "n1", "n2")) as found, ExitStack() as stack:
        slurm = Slurm(folder, found["login"])
        slurm.run("mkdir", slurm.environment()["TMPDIR"])

        def daemon(host: str, *command: str) -> None:
            log = stack.enter_context(open(folder / f"{command[0]}-{host}.log", "w"))
            process = subprocess.Popen(found[host].command(*command), env=slurm.environment(), stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)

        files = {"socket": "munge.socket", "key-file": "key", "pid-file": "munged.pid", "seed-file": "seed"}
        daemon("login", "munged", "--foreground", "--force", *(f"--{name}={folder / at}" for name, at in files.items()))
        try:
            until((folder / "munge.socket").exists)
            daemon("login", "slurmctld", "-D")
            for node in ("n1", "n2"):
                daemon(node, "slurmd", "-D", "-N", node)
            until(lambda: slurm.idle() == 2)
        except AssertionError as error:
            raise RuntimeError("".join(log.read_text() for log in folder.glob("*.log"))) from error
        yield slurm
