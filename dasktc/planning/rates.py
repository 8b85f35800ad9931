"""Measured rates of one worker, with which predictions are made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dasktc.options import real_number

__all__ = ["CALL_SECONDS", "RATES", "Rates", "probes_of"]

CALL_SECONDS = 1e-4
"""What a task takes in one process beside its count: 16,064 tasks of email-Eu-core, on a busy core of an AMD EPYC."""

PROBES_PER_EDGE, OF_EDGES, GROWTH = 78, 15_702_423, 0.256
"""Of the hub kernel on the Kronecker graph of scale 20, and the power of |E| with which they grow.

That is 26, 78 and 160 at scales 14, 20 and 24, as measured; a random graph has 10 and fewer.
"""


@dataclass(frozen=True)
class Rates:
    """Measured throughput of one worker, for predicted times.

    Attributes
    ----------
    edges : float
        Index edges visited.
    probes : float
        Streamed elements tested.
    network : float
        Bytes received.
    overhead : float
        The scheduler's seconds a task.
    read : float
        Bytes of files read and decoded.
    rows : float
        Rows of the source made to blocks: canonical, oriented, reordered and built.
    round_trip : float
        Seconds until the client has a task's result, and the next task has begun.
    sharing : float
        How many times the work of one call several workers do together: they send and receive, and merge again.
    threading : float
        How many times the work of one thread several threads of one process do together.
    source : str
        Where the figures come from.
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

    def changed(self, **given: float | None) -> Rates:
        """Return the rates with those replaced that are given.

        Raises
        ------
        InputError
            A rate is not above 0, or the overhead is below 0.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            option = name if name == "overhead" else f"rate-{name}"
            chosen[name] = real_number(option, value, 0, above=name != "overhead")
        named = ", ".join(chosen)
        return replace(self, **chosen, source=f"{self.source}; {named} as given") if chosen else self


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
"""As measured. The two terms of counting make 0.5 to 1.8 times what single graphs took on a core, 0.9 to 3 on an H200:
most for what caches hold, least for large random graphs."""


def probes_of(edges: int) -> int:
    """Estimate the probes of a graph of which the edges alone are known, as of a Kronecker graph."""
    return int(PROBES_PER_EDGE * (edges / OF_EDGES) ** GROWTH * edges)
