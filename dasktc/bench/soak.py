"""`dasktc bench soak`: counts changing graphs on one cluster while its workers are killed, stopped and slowed.

Every answer is compared with a known one: from arithmetic for theory graphs and tori, for random graphs from a count in
this process with another kernel. A case ends exact, refused with an error of dasktc's own, or wrong; the run fails if
any is wrong, if any other exception is raised, if a file is left, or if memory grows.

A worker that is killed every half minute cannot show that it keeps memory. So any worker may be killed in the first
eighth of the time; then one is spared, and its memory, that of its GPU and of this process must stay flat. Both
processes first load all compiled kernels, 0.3 MB each: otherwise a rare one would be loaded when chance first asks for
it, and look like growth.

Dask itself keeps records of tasks that are long over. A control, another cluster with a client in a process of its own,
runs as many tasks of the same names that do nothing, submitted in the same batches; what its processes grow by is
subtracted.
"""

from __future__ import annotations

import errno
import gc
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import psutil

from dasktc.api.cluster import cluster
from dasktc.api.count import prepare, triangle_count
from dasktc.backends.select import get_backend
from dasktc.bench.kills import drawn_seed, worker_pids
from dasktc.bench.report import Report, Say, Section, quiet, surroundings
from dasktc.errors import CountError, DasktcError, InputError
from dasktc.executors.local import LocalExecutor
from dasktc.executors.process.gpu_discovery import visible
from dasktc.io.generators.synthetic import grid3d, kronecker, random_graph, theory
from dasktc.io.source import Source
from dasktc.io.write import write_edges
from dasktc.options import DISTRIBUTE, Backend, Method, RunOptions, format_size
from dasktc.registry import KERNELS, ORDERS, SCHEMES
from dasktc.wording import plural

__all__ = ["FLAT", "Known", "run"]

FLAT = 0.02
"""Growth of memory, from the second quarter of the time to the last, from which a run fails."""
SETTLED = 600.0
"""Least duration of a run, in seconds, for its memory to be judged: before that, caches and compiled code fill."""
SPARED = 1 / 8
"""Share of the time after which one worker is spared."""
SMALL_DISK = 1 << 30
"""Bytes of the largest file system that is filled on purpose."""
SIGNALS = [name for name in ("SIGINT", "SIGTERM", "SIGKILL", "SIGHUP") if hasattr(signal, name)]
MEMORY = (None, None, "200MB", "1GB")
CONTROLLED = ("client", "worker")
"""Whose memory the control has, too."""
Sizes = list[tuple[float, dict[str, int]]]
"""At each time, in seconds since the run began, bytes by what takes them."""
Batches = list[list[str]]
"""Tasks that were submitted together, by the names of their groups."""


class Known(NamedTuple):
    """A graph whose number of triangles is known."""

    name: str
    source: Source
    triangles: int


def run(
    minutes: float = 60.0,
    workers: int = 2,
    backend: Backend = "cpu",
    seed: int | None = None,
    work_dir: str | None = None,
    say: Say = quiet,
) -> Report:
    """Count for some minutes on a cluster whose workers are disturbed.

    Parameters
    ----------
    minutes : float
    workers : int
        Number of worker processes.
    backend : {"cpu", "cuda"}
    seed : int, optional
        Seed of graphs, options and disturbances; if it is not given, it is drawn and reported.
    work_dir : str, optional
        Folder for files. Its file system is also filled and freed, if it has at most 1 GiB.
    say : callable
        Told once a minute what has happened.

    Returns
    -------
    Report

    Raises
    ------
    CountError
        An answer was wrong, a file was left, a worker ended that nobody killed, or memory grew by more than 2 % beyond
        that of the control in a run of ten minutes or more.
    InputError
        `minutes` is not above 0.
    """
    if not minutes > 0:
        raise InputError(f"--minutes {minutes} is no time: give more than 0")
    seed = drawn_seed(seed)
    draw = random.Random(seed)
    began = time.monotonic()
    ends, last_report, spared_from = began + 60 * minutes, began, began + 60 * minutes * SPARED
    outcomes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    sizes, control_sizes = Sizes(), Sizes()
    get_backend("cpu").warm()
    with _folder(work_dir) as folder:
        with cluster(workers=workers, backend=backend) as client, _control(workers) as no_ops:
            trouble = _Trouble(client, folder, random.Random(seed + 1), spared_from)
            batches = _submitted(client)
            control = no_ops(batches)
            with trouble:
                while time.monotonic() < ends:
                    case = _known(draw)
                    scene = draw.choice(SCENES)
                    refusal = _refusal(scene, seed, case, client, backend, folder, draw)
                    outcomes["refused" if refusal else "exact"] += 1
                    refusals.update([refusal] if refusal else [])
                    now = time.monotonic() - began
                    sizes.append((now, _held(client, backend, trouble.spared)))
                    control_sizes.append((now, control.result()))
                    control = no_ops(batches)
                    if time.monotonic() > last_report + 60:
                        last_report = time.monotonic()
                        say(f"{(last_report - began) / 60:.0f} minutes: {dict(outcomes)}, {dict(trouble.made)}")
        gc.collect()
        files = sorted(str(path) for path in folder.rglob("*") if not path.is_dir())
    # Memory that the control needed as well is not the counts'.
    growth = {
        who: _growth(sizes, control_sizes if who in CONTROLLED else [], who)
        for who in (*CONTROLLED, *(["device"] if backend == "cuda" else []))
    }
    seconds = time.monotonic() - began
    notes = [f"memory of a {who}: {_percent(grown)}" for who, grown in growth.items()]
    of_dask = {who: _medians(control_sizes, who) for who in CONTROLLED}
    notes += [
        f"as many tasks that do nothing: {format_size(max(0, after - before))} more of a {who}, subtracted"
        for who, (before, after) in of_dask.items()
    ]
    notes += [f"refused {number} times: {why}" for why, number in refusals.most_common(5)]
    try:
        _judge(files, growth, seconds)
    except CountError:  # it names one of several causes
        for note in (f"{dict(outcomes)}, {dict(trouble.made)}", *notes):
            say(note)
        raise
    command = f"dasktc bench soak --minutes {minutes:g} --workers {workers} --backend {backend} --seed {seed}"
    report = Report(command, surroundings())
    facts = Section("soak", {"what": "", "how many": ",.0f"})
    facts.rows += [["seed", seed], ["seconds", seconds], ["wrong", 0]]
    facts.rows += [[name, number] for counted in (outcomes, trouble.made) for name, number in sorted(counted.items())]
    facts.rows.append(["files left", 0])
    facts.notes += notes
    report.sections.append(facts)
    return report


def _refusal(scene: Callable[..., None], seed: int, case: Known, *context: Any) -> str | None:
    """Play a scene, whose count must be exact or refused; return the beginning of the refusal, None where exact."""
    try:
        scene(case, *context)
    except CountError as error:
        raise CountError(f"{scene.__name__} of {case.name}, seed {seed}: {error}") from error
    except DasktcError as error:
        return f"{type(error).__name__}: {' '.join(str(error).split()[:6])} ..."
    return None


def _judge(files: list[str], growth: dict[str, float | None], seconds: float) -> None:
    if files:
        raise CountError(
            f"{plural(len(files), 'file was', 'files were')} left by counts, first {files[0]}: they are lost room; "
            "report this"
        )
    for who, grown in growth.items():
        if grown is not None and seconds >= SETTLED and grown > FLAT:
            raise CountError(
                f"memory of a {who} grew by {_percent(grown)} from the second quarter of the time to the last: "
                "something is kept that no count needs; report this"
            )


def _medians(sizes: Sizes, who: str) -> tuple[int, int]:
    """Medians of the second quarter of the time and of the last; 0 where one has no figure."""
    figures = [(when, sizes_by_owner[who]) for when, sizes_by_owner in sizes if who in sizes_by_owner]
    last = figures[-1][0] if figures else 0.0
    quarters: list[list[int]] = [[], [], [], []]
    for when, size in figures:
        quarters[min(3, int(4 * when / last) if last else 0)].append(size)
    before, after = (int(median(quarters[number])) if quarters[number] else 0 for number in (1, 3))
    return before, after


def _growth(sizes: Sizes, control: Sizes, who: str) -> float | None:
    """Growth from the second quarter of the time to the last, less that of the control; None without figures."""
    before, after = _medians(sizes, who)
    of_dask = _medians(control, who)
    return (after - before - max(0, of_dask[1] - of_dask[0])) / before if before and after else None


def _percent(grown: float | None) -> str:
    return "too short a run to tell" if grown is None else f"{grown:+.1%}"


def _held(client: Any, backend: str, spared: int | None) -> dict[str, int]:
    """Bytes of this process, of the spared worker, and of that worker's GPU.

    Raises
    ------
    CountError
        The spared worker has ended.
    """
    gc.collect()
    sizes = {"client": psutil.Process().memory_info().rss}
    if spared is None:
        return sizes
    pids = worker_pids(client)
    if spared not in pids:
        raise CountError(f"worker process {spared} has ended, which nobody killed: its log says why; report this")
    sizes["worker"] = psutil.Process(spared).memory_info().rss
    if backend == "cuda":
        gpu = visible()[pids.index(spared)]  # one worker per GPU, in their order
        if None not in (gpu["memory_bytes"], gpu["free_bytes"]):  # some drivers do not report these
            sizes["device"] = gpu["memory_bytes"] - gpu["free_bytes"]
    return sizes


def _submitted(client: Any) -> Batches:
    """A list to which each submission of tasks to a client's scheduler, which lives in this process, is added."""
    from distributed import SchedulerPlugin

    batches = Batches()

    class Submissions(SchedulerPlugin):  # type: ignore[misc, unused-ignore]
        name = "dasktc-soak"

        def update_graph(self, scheduler: Any, *, keys: set[Any], **_: Any) -> None:
            batches.append([str(key[0] if isinstance(key, tuple) else key) for key in keys])

    client.cluster.scheduler.add_plugin(Submissions())
    return batches


@contextmanager
def _control(workers: int) -> Iterator[Callable[[Batches], Future[dict[str, int]]]]:
    """Yield a function that has the control run the tasks of batches, which it empties, and report its memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _start_control, (workers,)) as pool:

        def no_ops(batches: Batches) -> Future[dict[str, int]]:
            submitted = [batches.pop(0) for _ in range(len(batches))]
            return pool.submit(_run_control, submitted)

        yield no_ops
        pool.submit(_stop_control).result()


_CONTROL = list[Any]()
"""In the control's process: its cluster."""


def _start_control(workers: int) -> None:
    _CONTROL.append(cluster(workers=workers, backend="cpu"))


def _run_control(batches: Sequence[Sequence[str]]) -> dict[str, int]:
    """Run tasks that do nothing; return the bytes of this process, and of a worker on average."""
    client, numbers, results = _CONTROL[0].client, itertools.count(), [None]
    for names in batches:  # each task needs a result, as most tasks of a count do
        keys = [(name, next(numbers)) for name in names]
        inputs = list(itertools.islice(itertools.cycle(results), len(keys)))
        results = client.map(_no_op, inputs, key=keys, pure=False)
        client.gather(results)
    gc.collect()
    sizes = [psutil.Process(pid).memory_info().rss for pid in worker_pids(client)]
    return {"client": psutil.Process().memory_info().rss, "worker": int(mean(sizes))}


def _stop_control() -> None:
    _CONTROL.pop().close()


def _no_op(result: None) -> None:
    """Do nothing."""


@contextmanager
def _folder(work_dir: str | None) -> Iterator[Path]:
    if work_dir is not None and not os.path.isdir(work_dir):
        raise InputError(f"--work-dir {work_dir!r} is no folder: files would stand in it; create it first")
    folder = Path(tempfile.mkdtemp(prefix="dasktc-soak-", dir=work_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# graphs


def _known(draw: random.Random) -> Known:
    """Draw a graph of 100 to 200,000 edges."""
    kind = draw.choice(("theory", "torus", "kronecker", "random"))
    if kind == "theory":
        stars = tuple(draw.sample((3, 4, 5, 7, 9), draw.randint(2, 4)))
        source = theory(stars, kind=draw.choice(("B1k", "B2k")))
    elif kind == "torus":
        source = grid3d(draw.randint(4, 24))
    elif kind == "kronecker":
        source = kronecker(draw.randint(6, 13), draw.randint(1, 24), draw.randrange(1 << 24))
    else:
        vertices = 1 << draw.randint(7, 13)
        source = random_graph(vertices, vertices * draw.randint(1, 16))
    triangles = source.triangles
    if triangles is None:
        triangles = int(triangle_count(source, backend="cpu", threads=1, method=Method(kernel="merge", reorder="none")))
    return Known(source.name, source, triangles)


def _options(draw: random.Random, backend: str, folder: Path) -> dict[str, Any]:
    scheme, reorder = draw.choice(("auto", *SCHEMES)), draw.choice(("auto", *ORDERS))
    method = Method(draw.choice(("auto", *KERNELS[backend])), scheme, reorder=reorder)
    memory, distribute = draw.choice(MEMORY), draw.choice(DISTRIBUTE)
    if scheme in SCHEMES and not SCHEMES[scheme].replicated:
        method = replace(method, parts=draw.randint(1, 4))
    run = RunOptions(work_dir=folder, distribute=distribute)
    return {"backend": backend, "method": method, "memory": memory, "run": run}


# scenes; each raises CountError if an answer is wrong


def _check(triangles: int, case: Known, what: str) -> None:
    if triangles != case.triangles:
        raise CountError(f"{what} gave {triangles:,} triangles, {case.triangles:,} are known: wrong; report this")


def counted(case: Known, client: Any, backend: str, folder: Path, draw: random.Random) -> None:
    """Count the graph with random options."""
    options = _options(draw, backend, folder)
    _check(int(triangle_count(case.source, client, **options)), case, f"{options}")


def asked(case: Known, client: Any, backend: str, folder: Path, draw: random.Random) -> None:
    """Ask a prepared graph for answers per vertex and per edge."""
    options = _options(draw, backend, folder)
    with prepare(case.source, client, **options) as graph:
        by_vertex = int(graph.triangles(frame="pandas").sum())
        by_edge = int(graph.edge_support(frame="pandas").iloc[:, -1].sum())
    for asked_of, triple in (("triangles", by_vertex), ("edge_support", by_edge)):
        if triple != 3 * case.triangles:
            raise CountError(
                f"{asked_of}() with {options} adds up to {triple:,}, three times {case.triangles:,} triangles are "
                "known: wrong; report this"
            )


def resumed(case: Known, client: Any, backend: str, folder: Path, draw: random.Random) -> None:
    """Count twice with a checkpoint, of which a part is cut off in between."""
    options, checkpoint = _options(draw, backend, folder), folder / "checkpoint"
    try:
        for _ in range(2):
            _check(int(triangle_count(case.source, client, checkpoint=checkpoint, **options)), case, f"{options}")
            for file in checkpoint.glob("*.jsonl"):
                os.truncate(file, draw.randint(0, file.stat().st_size))
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def signalled(case: Known, client: Any, backend: str, folder: Path, draw: random.Random) -> None:
    """End a program by a signal while it counts beside another with the same checkpoint; then resume from it."""
    graph, checkpoint = folder / "graph.parquet", folder / "signalled"
    write_edges(case.source, graph, LocalExecutor())
    command = [sys.executable, "-m", "dasktc", "count", str(graph), "--quiet", "--checkpoint", str(checkpoint)]
    command += ["--backend", backend, "--partition", "hash2d", "--parts", "3", "--kernel", KERNELS_OF_FILES[backend]]
    try:
        with ExitStack() as stack:  # leaves no program behind where a count is wrong
            programs = [
                stack.enter_context(
                    subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                )
                for _ in range(2)
            ]
            time.sleep(draw.uniform(0, 3))
            for program in programs:
                program.send_signal(getattr(signal, draw.choice(SIGNALS)))
            for program in programs:
                output, _ = program.communicate(timeout=600)
                if program.returncode == 0:
                    _check(int(output), case, "a program that was signalled too late")
        last = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if last.returncode and os.strerror(errno.ENOSPC) in last.stderr:  # the disk was filled just then
            raise DasktcError(last.stderr.strip())
        if last.returncode:
            raise CountError(f"a program did not go on from a checkpoint: {last.stderr.strip()}: report this")
        _check(int(last.stdout), case, "a program that went on from a checkpoint")
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
        graph.unlink(missing_ok=True)


def left_alone(case: Known, client: Any, backend: str, folder: Path, draw: random.Random) -> None:
    """Close a second client while it counts: it gets an error, and the cluster continues to count."""
    from distributed import Client

    second = Client(client.scheduler.address, set_as_default=False)
    closing = threading.Timer(draw.uniform(0, 1), second.close)
    closing.start()
    try:
        options = _options(draw, backend, folder) | {"memory": None}
        triangles = case.triangles
        with suppress(DasktcError):
            triangles = int(triangle_count(case.source, second, **options))
        _check(triangles, case, "a client that closed")
    finally:
        closing.join()
        second.close()
    counted(case, client, backend, folder, draw)


KERNELS_OF_FILES = {"cpu": "merge", "cuda": "hub"}
SCENES = (counted, counted, asked, asked, resumed, signalled, left_alone)


class _Trouble:
    """Disturbs the cluster at random, in a thread: kills, stops and slows workers, and fills a small disk.

    Attributes
    ----------
    made : Counter
        Number of disturbances by kind.
    spared : int or None
        Process id of the worker that is no longer killed.
    """

    def __init__(self, client: Any, folder: Path, draw: random.Random, spared_from: float) -> None:
        self.made: Counter[str] = Counter()
        self.spared: int | None = None
        self._spared_from = spared_from
        self._client, self._folder, self._draw = client, folder, draw
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._make, name="trouble", daemon=True)
        small = shutil.disk_usage(folder).total <= SMALL_DISK
        self._kinds = [self._kill, self._stop, self._slow, *([self._fill] if small else [])]

    def __enter__(self) -> _Trouble:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()

    def _make(self) -> None:
        while not self._over.wait(self._draw.uniform(1, 8)):
            pids = worker_pids(self._client)
            if not pids or len(pids) != len(self._client.cluster.scheduler.workers):  # some are still coming back
                continue
            if self.spared is None and time.monotonic() > self._spared_from:
                with suppress(Exception):  # an error of Dask's, where the worker is just lost: another is spared then
                    self._client.run(get_backend("cpu").warm)
                    self.spared = pids[0]
            pid, kind = self._draw.choice(pids), self._draw.choice(self._kinds)
            if not (pid == self.spared and kind == self._kill):
                with suppress(OSError):
                    kind(pid)

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.made["workers killed"] += 1

    def _stop(self, pid: int, seconds: float | None = None) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            self._over.wait(self._draw.uniform(0.1, 4))
        finally:
            os.kill(pid, signal.SIGCONT)
        self.made["workers stopped"] += 1

    def _slow(self, pid: int) -> None:
        for _ in range(20):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        self.made["workers slowed"] += 1

    def _fill(self, pid: int) -> None:
        filler = self._folder.parent / f"{self._folder.name}.filler"
        try:
            with suppress(OSError), filler.open("wb") as file:
                while not self._over.is_set():
                    file.write(bytes(1 << 20))
            self._over.wait(self._draw.uniform(0.1, 2))
        finally:
            filler.unlink(missing_ok=True)
        self.made["disk filled"] += 1
