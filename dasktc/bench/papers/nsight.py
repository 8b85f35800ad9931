"""Nsight Compute's counters of one count, each in a process of its own under `ncu`.

Where `ncu` is not in the path, or the system lets nobody read counters, the caller is told so with ncu's own words.
"""

from __future__ import annotations

import csv
import pickle
import subprocess
import sys
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.graphs import SIZES, Case

__all__ = ["Counters", "counters", "profile"]

LOADS, HITS, MISSES = (
    "smsp__inst_executed_op_shared_ld.sum",
    "lts__t_sectors_lookup_hit.sum",
    "lts__t_sectors_lookup_miss.sum",
)
TRUST_KERNELS = "regex:^trust_(warp|block)"
SECONDS = 120
"""That one profiled count may take."""


class Counters(NamedTuple):
    """Counters of the kernels of one count by `trust`."""

    loads: float
    """Instructions of warps that load from shared memory."""
    hits: float
    misses: float
    """Sectors that were and were not in the L2 cache."""

    @property
    def hit_rate(self) -> float:
        """Share of the sectors that the L2 cache had."""
        return self.hits / max(1.0, self.hits + self.misses)


def counters(case: Case, order: str) -> Counters | str:
    """Profile a count of a whole graph by kernel `trust`.

    Parameters
    ----------
    case : Case
    order : str

    Returns
    -------
    Counters, or str
        Why there are none.
    """
    result = profile(case, order, "trust", TRUST_KERNELS, (LOADS, HITS, MISSES))
    return result if isinstance(result, str) else Counters(*(sum(values) for values in result.values()))


def profile(
    case: Case, order: str, kernel: str, entries: str, metrics: tuple[str, ...]
) -> dict[str, list[float]] | str:
    """Profile a count of a whole graph.

    Parameters
    ----------
    case : Case
    order : str
    kernel : str
        A kernel of the CUDA backend.
    entries : str
        Which of its entry points are profiled, as `ncu --kernel-name` has it.
    metrics : tuple of str
        Names of Nsight Compute.

    Returns
    -------
    dict of str to list of float, or str
        For each metric its value for each launch; or why there are none.
    """
    profiler = which("ncu")
    if profiler is None:
        return "ncu (Nsight Compute) is not here"
    with TemporaryDirectory(prefix="dasktc-papers-") as folder:
        path = Path(folder, "case")
        path.write_bytes(pickle.dumps(case))
        options = ["--csv", "--print-units", "base", "--kernel-name", entries]
        command = [profiler, *options, "--metrics", ",".join(metrics)]
        command += [sys.executable, "-m", __name__, str(path), kernel, order]
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"ncu took more than {SECONDS} s"
    return _values(process.stdout, metrics) or _last(process.stdout + process.stderr)


def _values(output: str, metrics: tuple[str, ...]) -> dict[str, list[float]] | None:
    """Values by metric of the table that `ncu` prints among other lines; None where a metric has no row."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    values: dict[str, list[float]] = {name: [] for name in metrics}
    for row in csv.DictReader(lines):
        name, value = row.get("Metric Name") or "", row.get("Metric Value") or ""
        if name in values and value.replace(",", "").replace(".", "").isdigit():
            values[name].append(float(value.replace(",", "")))
    return values if all(values.values()) else None


def _last(output: str) -> str:
    """What `ncu` said: its first error, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["nothing"]
    return "ncu: " + next((line for line in lines if "ERROR" in line), lines[-1])


def _count(path: str, kernel: str, order: str) -> None:
    """Count once, in the process that is profiled."""
    from dasktc.backends import get_backend

    case = pickle.loads(Path(path).read_bytes())  # written by `profile`
    get_backend("cuda").count(Bench("cuda", [case], SIZES["cuda", True]).task(case, order), kernel)


if __name__ == "__main__":
    _count(*sys.argv[1:])
