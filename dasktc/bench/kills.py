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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dasktc.api.cluster import cluster
from dasktc.api.count import triangle_count
from dasktc.bench.report import Report, Say, Section, command, quiet, surroundings
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
    graph, outcomes = kronecker(scale, parts=4 * workers), _Outcomes()
    with cluster(workers, backend, protocol=protocol) as client:

        def count() -> tuple[int, float]:
            start = time.monotonic()
            result = triangle_count(graph, client, backend=backend, run=RunOptions(distribute="always"))
            return int(result), time.monotonic() - start

        calm = [count() for _ in range(3)]  # the first compiles, and connects workers
        triangles = calm[-1][0]
        killer = Killer(client, random.Random(seed), min(seconds for _, seconds in calm))
        while killer.kills < kills:
            killer.begin()
            while killer.kills_more:
                _count_disturbed(count, triangles, killer, outcomes, seed, say)
            outcomes.late += not _all_back(client, workers)
        address = client.scheduler.address.split(":", maxsplit=1)[0]
    table = Section(f"Kronecker {scale} while workers are killed ({address})", {"what": "", "how many": ",.1f"})
    table.rows += [
        ["workers killed", killer.kills],
        ["counts exact", len(outcomes.seconds)],
        ["counts wrong", 0],
        ["counts refused", len(outcomes.refusals)],
        [f"times not all came back in {BACK:g} s", outcomes.late],
        ["seconds of a count without kills", min(seconds for _, seconds in calm)],
        ["seconds with kills, median", median(outcomes.seconds) if outcomes.seconds else None],
        ["seconds with kills, most", max(outcomes.seconds, default=None)],
    ]
    table.notes += [f"refused: {refusal}" for refusal in outcomes.refusals[:5]]
    options = {"scale": scale, "workers": workers, "backend": backend, "protocol": protocol, "seed": seed}
    return Report(command("kills", kills=kills, **options), surroundings(), [table])


@dataclass
class _Outcomes:
    """Seconds of the exact counts with kills, messages of refused counts, and times that workers came back late."""

    seconds: list[float] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    late: int = 0


def _count_disturbed(
    count: Callable[[], tuple[int, float]], triangles: int, killer: Killer, outcomes: _Outcomes, seed: int, say: Say
) -> None:
    """Count while workers are killed, and note how that ended; CountError for a wrong count."""
    kills = killer.kills
    try:
        number, seconds = count()
    except DasktcError as error:
        outcomes.refusals.append(" ".join(str(error).split()))
        say(f"after {plural(killer.kills, 'kill')}: {outcomes.refusals[-1]}")
        return
    if number != triangles:
        raise CountError(
            f"a count during which workers were killed gave {number:,} triangles, {triangles:,} are right "
            f"(seed {seed}): wrong; report this"
        )
    if killer.kills > kills:
        outcomes.seconds.append(seconds)
        say(f"{killer.kills - kills} killed: exact after {seconds:.1f} s")


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
    deadline = time.monotonic() + BACK
    while len(client.cluster.scheduler.workers) < workers:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
