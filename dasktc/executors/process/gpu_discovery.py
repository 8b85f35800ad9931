"""Lists this machine's GPUs and the packages that the CUDA backend needs, without touching a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dasktc.options import format_size
from dasktc.wording import plural

__all__ = ["collect", "describe", "devices", "install", "installed", "visible"]

PACKAGES = {
    "CuPy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "cuDF": ("cudf-cu13", "cudf-cu12", "cudf"),
    "RMM": ("rmm-cu13", "rmm-cu12", "rmm"),
    "dask-cuda": ("dask-cuda",),
    "dask-cuDF": ("dask-cudf-cu13", "dask-cudf-cu12", "dask-cudf"),
    "UCXX": ("distributed-ucxx-cu13", "distributed-ucxx-cu12", "distributed-ucxx"),
}
"""Distributions of each package, by its usual name: for CUDA 13, for CUDA 12, and on conda."""
OPTIONAL = {
    "dask-cuda": "workers on GPUs",
    "dask-cuDF": "Dask DataFrames on GPUs",
    "UCXX": "blocks that travel from GPU to GPU, not through the host",
}
NEWEST_DRIVER = 580
"""First driver that runs CUDA 13; older ones, from 525 on, run CUDA 12."""


def devices(only: str | None = None) -> list[dict[str, Any]]:
    """List the GPUs that the driver shows, or only those with the given numbers or UUIDs, separated by commas.

    Each has `name`, `memory_bytes`, `free_bytes`, `driver` and `capability`; the list is empty where there is no
    driver.
    """
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return []
    query = [smi, "--query-gpu=name,memory.total,memory.free,driver_version,compute_cap"]
    query += ["--format=csv,noheader,nounits", *([] if only is None else [f"--id={only}"])]
    try:
        process = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [_device(line) for line in process.stdout.splitlines() if line.count(",") == 4]


def _device(line: str) -> dict[str, Any]:
    name, total, free, driver, capability = (field.strip() for field in line.split(","))
    memory = {"memory_bytes": _bytes(total), "free_bytes": _bytes(free)}
    return {"name": name, **memory, "driver": driver, "capability": capability}


def _bytes(mebibytes: str) -> int | None:
    return int(mebibytes) << 20 if mebibytes.isdigit() else None


def visible(number: int | None = None) -> list[dict[str, Any]]:
    """List the GPUs that CUDA shows to this process, or the first `number` of them, as `devices` does."""
    numbers = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices()[:number] if numbers is None else devices(",".join(numbers.replace(" ", "").split(",")[:number]))


def install(gpus: list[dict[str, Any]]) -> str:
    """The command that installs what the CUDA backend needs, for the driver of the GPUs that `devices` lists."""
    drivers = [device["driver"].partition(".")[0] for device in gpus]
    has_old_driver = any(driver.isdigit() and int(driver) < NEWEST_DRIVER for driver in drivers)
    return f"pip install 'dasktc[{'cuda12' if has_old_driver else 'cuda13'}]'"


def collect() -> dict[str, Any]:
    """Devices, packages and what is missing, as a dict ready for JSON.

    Returns
    -------
    dict
        `devices`; `packages`, the version or None by name; `missing`, by name the purpose and the command that installs
        it; `state`, a sentence.
    """
    gpus = devices()
    packages = {name: installed(*candidates) for name, candidates in PACKAGES.items()}
    absent_packages = [name for name, number in packages.items() if number is None]
    remedies = {name: [OPTIONAL.get(name, "counting on a GPU"), install(gpus)] for name in absent_packages}
    return {
        "devices": gpus,
        "packages": packages,
        "missing": remedies if gpus else {},
        "state": _state(gpus, [name for name in absent_packages if name not in OPTIONAL]),
    }


def _state(gpus: list[dict[str, Any]], packages: list[str]) -> str:
    if not gpus:
        return "no GPU: nvidia-smi shows none; where there is one, install NVIDIA's driver"
    if packages:
        return f"not installed, {', '.join(packages)} missing: {install(gpus)}"
    return f"ready for {plural(len(gpus), 'GPU')}, which backend auto takes"


def describe(facts: dict[str, Any]) -> list[str]:
    """Format the dict of `collect` as lines of text."""
    lines = []
    for number, device in enumerate(facts["devices"]):
        memory = format_size(device["memory_bytes"]) if device["memory_bytes"] else "memory not known"
        lines.append(f"{f'GPU {number}':<20}{device['name']}, {memory}, driver {device['driver']}")
    lines += [f"{name:<20}{number or 'missing'}" for name, number in facts["packages"].items()]
    lines.append(f"{'backend cuda':<20}{facts['state']}")
    return lines + [f"{name} is missing, for {use}: {advice}" for name, (use, advice) in facts["missing"].items()]


def installed(*candidates: str) -> str | None:
    """Version of the first distribution among `candidates` that is installed; None where none is."""
    for name in candidates:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
