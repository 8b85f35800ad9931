"""The samples for Slurm on a real installation: a login host and two nodes, emulated on this machine."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasktc.cli.cluster_samples import SAMPLES
from dasktc.counting.checkpoint import FILE
from tests.support import hosts
from tests.support.daemons import Slurm, lacking, started
from tests.support.processes import Authority, lines, patience, until
from tests.support.samples import GRAPH, TRIANGLES, written

pytestmark = pytest.mark.slow

SMALL = (("CORES = 8", "CORES = 1"), ('"32GB"', '"1GB"'))
"""Changes to dasktc-slurm.py for such small nodes."""


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Slurm]:
    if why := lacking():
        pytest.skip(why)
    with started(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture
def slurm(running) -> Iterator[Slurm]:
    """The installation, without jobs of earlier tests."""
    yield running
    running.run("scancel", "--user=root")
    until(lambda: not running.jobs())


def test_workers_as_jobs(slurm, tmp_path):
    """Of three jobs, one is cancelled and one gives way to a higher priority while they count with TLS."""
    kept, logs = tmp_path / "kept", tmp_path / "logs"
    changes = (*SMALL, slowly(kept), ("wait_for_workers(1)", "wait_for_workers(3)"))
    tls = str(Authority.new(tmp_path / "tls").folder)
    count = slurm.start("python", written("slurm", tmp_path, *changes), GRAPH, JOBS="3", LOGS=str(logs), TLS=tls)
    until(lambda: count.poll() is not None or lines(kept / FILE) > 3)
    on = {node: slurm.jobs(node) for node in ("n1", "n2")}
    alone, shared = sorted(on, key=lambda node: len(on[node]))
    assert (len(on[alone]), len(on[shared])) == (1, 2)
    stays, goes = on[shared]
    slurm.run("scontrol", "suspend", stays)  # what it works on is not done before the others are gone
    slurm.run("scancel", goes)
    urgent = ("--partition=urgent", f"--nodelist={alone}", "--exclusive", "--output=/dev/null", "--wrap=hostname")
    assert (slurm.ended(goes), slurm.ended(slurm.submit(*urgent))) == ("CANCELLED", "COMPLETED")
    assert count.poll() is None
    slurm.run("scontrol", "resume", stays)
    out, error = count.communicate(timeout=patience())
    assert f"triangles  {TRIANGLES}" in out, error
    assert slurm.jobs() == []
    printed = "".join(path.read_text() for path in logs.iterdir())
    assert printed.count("DUE TO PREEMPTION") == 1
    assert len(re.findall("Start worker at: *tls://", printed)) == 3
    assert set(re.findall("Local Directory: *(.*)/dask-scratch-space/", printed)) == {str(slurm.folder / "local")}


def slowly(kept: Path) -> tuple[str, str]:
    """A change to dasktc-slurm.py: many tasks, and a file that shows how many are done."""
    options = f'method=dasktc.Method(kernel="merge", partition="hash2d", parts=5), checkpoint="{kept}"'
    return "source, client)", f"source, client, {options})"


@pytest.mark.parametrize(("number", "partition"), [(signal.SIGINT, "closed"), (signal.SIGTERM, "all")])
def test_no_job_is_left_behind(slurm, tmp_path, number, partition):
    """By Ctrl-C and by a kill, before any job has started and while one counts."""
    kept, logs = tmp_path / "kept", str(tmp_path / "logs")
    script = written("slurm", tmp_path, *SMALL, slowly(kept))
    process = slurm.start("python", script, GRAPH, JOBS="1", PARTITION=partition, LOGS=logs)
    until(lambda: process.poll() is not None or (slurm.jobs() if partition == "closed" else lines(kept / FILE) > 9))
    os.kill(hosts.child(process.pid), number)
    out, error = process.communicate(timeout=patience())
    assert (process.returncode, out) == (128 + number, "")
    assert re.fullmatch(r"sbatch: Job \d+ to start at .*\n", error)
    assert slurm.jobs() == []


def test_jobs_that_slurm_refuses(slurm, tmp_path):
    script = written("slurm", tmp_path, ("CORES = 8", "CORES = 3"))
    process = slurm.start("python", script, GRAPH, JOBS="2", LOGS=str(tmp_path / "logs"))
    out, error = process.communicate(timeout=patience())
    assert (process.returncode, out) == (1, "")
    assert error.splitlines()[-2].startswith("allocation failure: ")
    assert error.splitlines()[-1].startswith("dasktc: Slurm refuses such a job")
    assert slurm.jobs() == []


def test_all_in_one_job(slurm, tmp_path):
    """Each worker has its own memory limit, not the node's; files of an earlier run of the job do not mislead it."""
    shared = {"SHARED": str(tmp_path), "DASK_LOGGING__DISTRIBUTED": "info"}
    size = ("--ntasks=4", "--mem-per-cpu=500M", f"--output={tmp_path}/out")
    job = slurm.submit("--hold", *size, written("slurm-runner", tmp_path), GRAPH, **shared)
    (tmp_path / f"scheduler-{job}.json").write_text('{"address": "tcp://10.201.78.2:1"}')
    slurm.run("scontrol", "release", job)
    state, out = slurm.ended(job), (tmp_path / "out").read_text()
    assert state == "COMPLETED", out
    assert f"triangles  {TRIANGLES}" in out
    assert ", 2 at a time" in out
    assert re.findall(r"Memory: *(.*)", out) == ["500.00 MiB"] * 2
    assert not list(tmp_path.glob(f"*-{job}.*"))


def test_scheduler_file_in_a_batch_script(slurm, tmp_path):
    """As in the sample's comment: workers on every node, and a job that has completed at the end."""
    written("scheduler-file", tmp_path)
    comment = re.search(r"(?m)^# Under Slurm.*\n((?:#   .*\n)+)", SAMPLES["scheduler-file"].text()).group(1)
    batch = re.sub("(?m)^#   ", "", comment).replace("/shared/graph.parquet", GRAPH).replace("/shared", str(tmp_path))
    # The small graph would be counted by the first worker before another node has started its own.
    waits = "import os, distributed as d; d.Client(scheduler_file=os.environ['SCHEDULER_FILE']).wait_for_workers(2)"
    (tmp_path / "batch.sh").write_text(
        f"#!/usr/bin/env bash\n{batch}".replace("\nbash ", f'\npython -c "{waits}"\nbash ')
    )
    where = (f"--chdir={tmp_path}", f"--output={tmp_path}/out")
    job = slurm.submit("--nodes=2", *where, str(tmp_path / "batch.sh"), CORES="1")
    state, out = slurm.ended(job), (tmp_path / "out").read_text()
    assert state == "COMPLETED", out
    assert f"triangles  {TRIANGLES}" in out
    assert set(re.findall(r"Start worker at: *tcp://([\d.]+)", out)) == {"10.201.78.2", "10.201.78.3"}
    assert not list(tmp_path.glob("scheduler-*.json"))
