"""Samples of how to start a Dask cluster, ready to be changed: scripts and a manifest, printed by `dasktc cluster`."""

from importlib.resources import files

__all__ = ["SAMPLES", "sample"]

SAMPLES = {
    "scheduler-file": "scheduler-file.sh",
    "slurm": "slurm.py",
    "slurm-runner": "slurm-runner.sh",
    "slurm-gpu": "slurm-gpu.sh",
    "kubernetes": "kubernetes.yaml",
    "kubernetes-gpu": "kubernetes-gpu.yaml",
    "ssh": "ssh.py",
    "ssh-gpu": "ssh-gpu.py",
    "tls": "tls.sh",
}
"""File of each kind."""


def sample(kind: str) -> str:
    """The text of a sample.

    Parameters
    ----------
    kind : str
        One of SAMPLES.
    """
    return (files("dasktc.cli.cluster_templates") / SAMPLES[kind]).read_text()
