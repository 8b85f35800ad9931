"""`dasktc bench kills`: counts a graph repeatedly while its workers are killed.

The first kill comes at a random moment of a count, and every other time a second one within seconds; either may hit any
worker, one that counts or one that is just coming back. Each count must end exact, and afterwards every worker must be
there again.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from statistics import median
from typing import Any

from dasktc.api.cluster import cluster
from dasktc.api.count import triangle_count
from dasktc.bench.report import Report, Say, Section, quiet, surroundings
from dasktc.errors import CountError, DasktcError, InputError
from dasktc.io.generators.synthetic import kronecker
from dasktc.options import Backend, Protocol, RunOptions
from dasktc.wording import plural

__all__ = ["Killer", "drawn_seed", "run", "worker_pids"]

SECOND = 8.0
"""Seconds after a kill within which the second one comes: a worker with a GPU takes 5 to 7 s to come back."""
BACK = 120.0
"""Seconds within which workers must come back after a count."""


def run(
    kills: int = 50,
    scale: int = 26,
    workers: int = 2,
    backend: Backend = "auto",
    protocol: Protocol = "auto",
    seed: int | None = None,
    say: Say = quiet,
) -> Report:
    """Count a Kronecker graph repeatedly until this number of workers has been killed during counts.

    Parameters
    ----------
    kills : int
    scale : int
        Scale of the graph: 2^scale vertices, 16 edges each.
    workers : int
        Number of worker processes that count and are killed.
    backend : {"auto", "cpu", "cuda"}
    protocol : {"auto", "tcp", "ucx"}
        As for `dasktc.cluster`.
    seed : int, optional
        Seed of moments and workers; if it is not given, it is drawn and reported.
    say : callable
        Told of each count.

    Returns
    -------
    Report

    Raises
    ------
    CountError
        An answer differed from that of the undisturbed cluster.
    InputError
        `kills` is below 1.
    """
    if kills < 1:
        raise InputError(f"--kills {kills}: no worker would be killed; give 1 or more")
    seed = drawn_seed(seed)
    draw = random.Random(seed)
    graph, took, refused, late = kronecker(scale, parts=4 * workers), [], [], 0
    with cluster(workers, backend, protocol=protocol) as client:
        quiet, known = [], 0
        for _ in range(3):  # the first compiles, and connects workers
            began = time.monotonic()
            known = int(triangle_count(graph, client, backend=backend, run=RunOptions(distribute="always")))
            quiet.append(time.monotonic() - began)
        killer = Killer(client, draw, min(quiet))
        while killer.kills < kills:
            killer.begin()
            while killer.kills_more:
                before, began = killer.kills, time.monotonic()
                try:
                    found = int(triangle_count(graph, client, backend=backend, run=RunOptions(distribute="always")))
                except DasktcError as error:
                    refused.append(" ".join(str(error).split()))
                    say(f"after {plural(killer.kills, 'kill')}: {refused[-1]}")
                    continue
                if found != known:
                    raise CountError(
                        f"a count during which workers were killed gave {found:,} triangles, {known:,} are right "
                        f"(seed {seed}): wrong; report this"
                    )
                if killer.kills > before:
                    took.append(time.monotonic() - began)
                    say(f"{killer.kills - before} killed: exact after {took[-1]:.1f} s")
            late += not _all_back(client, workers)
        address = client.scheduler.address.split(":", maxsplit=1)[0]
    command = f"dasktc bench kills --kills {kills} --scale {scale} --workers {workers} --backend {backend}"
    report = Report(
        f"{command} --protocol {protocol} --seed {seed}",
        surroundings(),
    )
    facts = Section(f"Kronecker {scale} while workers are killed ({address})", {"what": "", "how many": ",.1f"})
    facts.rows += [
        ["workers killed", killer.kills],
        ["counts exact", len(took)],
        ["counts wrong", 0],
        ["counts refused", len(refused)],
        [f"times not all came back in {BACK:g} s", late],
        ["seconds of a count without kills", min(quiet)],
        ["seconds with kills, median", median(took) if took else None],
        ["seconds with kills, most", max(took, default=None)],
    ]
    facts.notes += [f"refused: {why}" for why in refused[:5]]
    report.sections.append(facts)
    return report


class Killer:
    """Kills workers of a cluster on this host, in a thread.

    Parameters
    ----------
    client : distributed.Client
        Client of a cluster that this process started.
    draw : random.Random
    seconds : float
        Duration of a count, within which the first kill comes.

    Attributes
    ----------
    kills : int
        Workers killed so far.
    """

    def __init__(self, client: Any, draw: random.Random, seconds: float) -> None:
        self.kills = 0
        self._client, self._draw, self._seconds = client, draw, seconds
        self._thread = threading.Thread()

    def begin(self) -> None:
        """Kill one worker within a count's time, and every other time a second one soon after."""
        pauses = [self._draw.uniform(0, self._seconds)]
        if self._draw.random() < 0.5:
            pauses.append(self._draw.uniform(0, SECOND))
        self._thread = threading.Thread(target=self._kill, args=(pauses,), name="killer", daemon=True)
        self._thread.start()

    @property
    def kills_more(self) -> bool:
        """Whether a further kill is still to come."""
        return self._thread.is_alive()

    def _kill(self, pauses: list[float]) -> None:
        for pause in pauses:
            time.sleep(pause)
            while not (pids := worker_pids(self._client)):
                time.sleep(0.1)
            with suppress(ProcessLookupError):
                os.kill(self._draw.choice(pids), signal.SIGKILL)
                self.kills += 1


def drawn_seed(seed: int | None) -> int:
    """The given seed, or a random one."""
    return random.SystemRandom().randrange(1 << 32) if seed is None else seed


def worker_pids(client: Any) -> list[int]:
    """Process ids of the workers of a cluster that this process started."""
    nannies = getattr(client.cluster, "workers", {}).values()
    return [nanny.pid for nanny in nannies if getattr(nanny, "pid", None)]


def _all_back(client: Any, workers: int) -> bool:
    until = time.monotonic() + BACK
    while len(client.cluster.scheduler.workers) < workers:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
