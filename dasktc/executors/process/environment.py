"""`dasktc info`: versions, devices and missing packages of this machine, and how to install the packages."""

from __future__ import annotations

import os
import platform
from typing import Any

from dasktc.executors.process import gpu_discovery as gpus
from dasktc.options import format_size

__all__ = ["collect", "describe"]

REQUIRED = ("dasktc", "dask", "distributed", "numpy", "pandas", "pyarrow", "numba", "scipy", "fsspec")
OPTIONAL = {
    "bokeh": ("Dask's dashboard", "pip install 'dasktc[dashboard]'"),
    "fast_matrix_market": ("faster reading of Matrix Market files", "pip install 'dasktc[readers]'"),
    "igraph": ("dasktc bench cpu", "pip install 'dasktc[bench]'"),
    "matplotlib": ("plots in notebooks and of dasktc bench papers", "pip install 'dasktc[bench]'"),
}


def collect() -> dict[str, Any]:
    """Versions, the machine, the backends and missing optional packages, as a dict ready for JSON."""
    import psutil

    gpu = gpus.collect()
    return {
        "versions": {"python": platform.python_version()} | {name: gpus.installed(name) for name in REQUIRED},
        "optional": {name: gpus.installed(name) for name in OPTIONAL},
        "machine": {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "memory_available_bytes": psutil.virtual_memory().available,
        },
        "gpu": gpu,
        "backends": {"cpu": "ready", "cuda": gpu["state"]},
        "missing": {name: list(use) for name, use in OPTIONAL.items() if gpus.installed(name) is None},
    }


def describe(facts: dict[str, Any]) -> str:
    """Format the dict of `collect` as text."""
    machine = facts["machine"]
    lines = [f"{name:<20}{number or 'missing'}" for name, number in (facts["versions"] | facts["optional"]).items()]
    lines.append(
        f"{'machine':<20}{machine['system']}, {machine['cores']} cores, {format_size(machine['memory_bytes'])}"
    )
    lines.append(f"{'backend cpu':<20}{facts['backends']['cpu']}")
    lines += gpus.describe(facts["gpu"])
    lines += [f"{name} is missing, for {use}: {advice}" for name, (use, advice) in facts["missing"].items()]
    return "\n".join(lines)
