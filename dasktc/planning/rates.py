"""Measured rates of one worker, on which predictions are based."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dasktc.options import real_number

__all__ = ["CALL_SECONDS", "RATES", "Rates", "probes_of"]

CALL_SECONDS = 1e-4
"""Seconds of a task in one process beside its count: 16,064 tasks of email-Eu-core, on a busy core of an AMD EPYC."""

PROBES_PER_EDGE, OF_EDGES, GROWTH = 78, 15_702_423, 0.256
"""Probes per edge of the hub kernel on the Kronecker graph of scale 20, its edges, and the power of |E| by which probes
per edge grow.

They are 26, 78 and 160 at scales 14, 20 and 24, as measured; a random graph has 10 and fewer.
"""


@dataclass(frozen=True)
class Rates:
    """Measured throughput of one worker, for predictions of time.

    Attributes
    ----------
    edges : float
        Index edges visited per second.
    probes : float
        Streamed elements tested per second.
    network : float
        Bytes received per second.
    overhead : float
        Seconds of the scheduler per task.
    read : float
        Bytes of files read and decoded per second.
    rows : float
        Rows of the source made into blocks per second: canonical, oriented, reordered and built.
    round_trip : float
        Seconds until the client has a task's result, and the next task has begun.
    sharing : float
        Work of several workers together relative to one call: they send, receive, and merge again.
    threading : float
        Work of several threads of one process together relative to one thread.
    source : str
        Origin of the figures.
    """

    edges: float
    probes: float
    network: float
    overhead: float
    read: float
    rows: float
    round_trip: float
    sharing: float
    threading: float
    source: str

    def changed(self, **rates: float | None) -> Rates:
        """Return the rates with the given ones replaced.

        Raises
        ------
        InputError
            A rate is not above 0, or the overhead is below 0.
        """
        changes = {name: value for name, value in rates.items() if value is not None}
        for name, value in changes.items():
            option = name if name == "overhead" else f"rate_{name}"
            changes[name] = real_number(option, value, 0, above=name != "overhead")
        names = ", ".join(changes)
        return replace(self, **changes, source=f"{self.source}; {names} as given") if changes else self


RATES = {
    "cpu": Rates(
        edges=3.5e7,
        probes=2.3e9,
        network=1.1e9,
        overhead=0.002,
        read=2e8,
        rows=1.4e7,
        round_trip=0.015,
        sharing=1.25,
        threading=1.15,
        source="kernel hub on one core of an AMD EPYC and of an Intel Xeon: Kronecker graphs of scale 16 to 24, random "
        "graphs of 10 and 100 million edges; "
        "TCP; 1.8 to 4.2 ms a task on a busy machine; reading and preparing: Kronecker 20 from Parquet",
    ),
    "cuda": Rates(
        edges=2e10,
        probes=8.3e11,
        network=1.1e9,
        overhead=0.002,
        read=9e9,
        rows=3e9,
        round_trip=0.012,
        sharing=1.0,
        threading=1.0,
        source="kernel hub on one H200: Kronecker graphs of scale 20 to 24, a random graph; TCP (UCX between two GPUs "
        "of a host: 45e9); 1.8 to 4.2 ms a task on a busy machine; reading: Kronecker 22 and 24 from the page cache",
    ),
}
"""As measured. The two terms of counting add up to 0.5 to 1.8 times the time of single graphs on a core, and 0.9 to 3
times on an H200: most for graphs that caches hold, least for large random graphs."""


def probes_of(edges: int) -> int:
    """Estimate the probes of a graph from its number of edges alone, as if it were a Kronecker graph."""
    return int(PROBES_PER_EDGE * (edges / OF_EDGES) ** GROWTH * edges)
