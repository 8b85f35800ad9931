"""The samples of `cluster_templates` by name, which `dasktc cluster` prints or writes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from dasktc.errors import DasktcError, InputError
from dasktc.options import path_text
from dasktc.wording import advice

__all__ = ["SAMPLES", "Sample"]


@dataclass(frozen=True)
class Sample:
    """A sample."""

    file: str
    """Its own name, which its usage lines have, too."""
    sentence: str
    """What it starts."""

    def text(self) -> str:
        """Return the text."""
        return (files("dasktc.cli.cluster_templates") / self.file).read_text(encoding="utf-8")

    def write(self, path: str | os.PathLike[str], force: bool = False) -> str:
        """Write the text to a file, or to a folder under its own name; return the path.

        InputError: the file exists, and `force` is not given; or no file can have this name. DasktcError: it cannot be
        written.
        """
        target = Path(path_text("out", path))
        if target.is_dir():
            target /= self.file
        try:
            with open(target, "w" if force else "x", encoding="utf-8") as file:
                file.write(self.text())
        except FileExistsError:
            raise InputError(f"{target} exists: name another file, or replace it with {advice(force=True)}") from None
        except FileNotFoundError:
            raise InputError(f"{target} cannot be written: there is no folder {target.parent}; make it") from None
        except OSError as error:
            raise DasktcError(
                f"{target} cannot be written: {error.strerror}; give a place with room and rights"
            ) from None
        return str(target)


SAMPLES = {
    "scheduler-file": Sample("dasktc-scheduler-file.sh", "By hand, on hosts that share a file."),
    "slurm": Sample("dasktc-slurm.py", "Workers as Slurm jobs, started from a login node."),
    "slurm-runner": Sample("dasktc-slurm-runner.sh", "Scheduler, client and workers in one Slurm job."),
    "slurm-gpu": Sample("dasktc-slurm-gpu.sh", "The GPUs of several nodes, in one Slurm job."),
    "kubernetes": Sample("dasktc-kubernetes.yaml", "Pods, by Dask's operator, and a job that counts."),
    "kubernetes-gpu": Sample("dasktc-kubernetes-gpu.yaml", "The same with a GPU for each worker."),
    "dockerfile": Sample("Dockerfile", "Images of these pods, for CPUs and for GPUs."),
    "ssh": Sample("dasktc-ssh.py", "Hosts that ssh reaches without a password."),
    "ssh-gpu": Sample("dasktc-ssh-gpu.py", "The same with a worker for each GPU."),
    "tls": Sample("dasktc-tls.sh", "Certificates, with which a cluster is encrypted."),
}
"""The sample of each kind."""
