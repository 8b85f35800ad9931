"""Where a call runs: this process, local workers to start, or a cluster to join or to use."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from dasktc.errors import InputError
from dasktc.options import path_text, whole_number
from dasktc.wording import option

if TYPE_CHECKING:
    from distributed import Client

    ClientLike: TypeAlias = "Client | HasClient | str | os.PathLike[str]"
    """What names the place of a call: a client, a cluster, an address, or the path of a scheduler file."""

__all__ = ["CONNECT_SECONDS", "MOST_THREADS", "HasClient", "Place"]

CONNECT_SECONDS = 10.0
MOST_THREADS = 1 << 12
ADDRESS = re.compile(r"[\w.+-]+://.+|(\[[\dA-Fa-f:.]+\]|[\w.-]+):\d+")
"""Addresses of schedulers, with a protocol or a port; other texts are paths of scheduler files."""


@dataclass(frozen=True)
class Place:
    """Where a call runs; without any field on the active client, or in this process if there is none.

    Raises
    ------
    InputError
        More than one place to run, or an invalid value.
    """

    client: Any = None
    """`distributed.Client` or None. Used as it is, and left open."""
    workers: int | str | None = None
    """Start this many local worker processes of one thread each; "all": one per GPU with cuda, else one per core."""
    scheduler: str | None = None
    """Address of a running scheduler, e.g. "tcp://10.0.0.1:8786"."""
    scheduler_file: str | os.PathLike[str] | None = None
    """File that a running scheduler wrote."""
    security: Any = None
    """`distributed.Security` or None. Certificates for `scheduler`, `scheduler_file` and `workers`. None: those of
    Dask's configuration."""
    threads: int | None = None
    """Concurrent calls in this process. If given, everything runs here even if a client is active. None: the number of
    available cores, but one in a task of a Dask worker."""
    connect_seconds: float = CONNECT_SECONDS
    """Seconds within which the scheduler answers, and its file has its address."""

    def __post_init__(self) -> None:
        """Refuse two places to run, and values of a wrong type or range."""
        if len(names := self.names) > 1:
            pair = " and ".join(map(option, names))
            raise InputError(f"{pair} were both given: each names a place to run; keep one")
        if self.threads is not None:
            number = whole_number(
                "threads", self.threads, 1, MOST_THREADS, "nothing would run", "no machine has as many"
            )
            object.__setattr__(self, "threads", number)
        if self.scheduler is not None and not (isinstance(self.scheduler, str) and self.scheduler):
            raise InputError(
                f"{option('scheduler', self.scheduler)} is no address, as tcp://10.0.0.1:8786 is: give it as a str"
            )
        if self.scheduler_file is not None:
            object.__setattr__(self, "scheduler_file", path_text("scheduler_file", self.scheduler_file))

    @classmethod
    def of(cls, client: Any, threads: int | None = None) -> Place:
        """Return the place that a caller's `client=` and `threads=` name.

        Parameters
        ----------
        client : distributed.Client, dasktc.Cluster, str, os.PathLike, Place or None
            A text with a protocol or a port is an address, another text or a path a scheduler file.
        threads : int or None

        Raises
        ------
        InputError
            As the class; or the client is none of these.
        """
        if client is not None and threads is not None:
            pair = f"{option('client')} and {option('threads')}"
            raise InputError(f"{pair} were both given: each names a place to run; keep one")
        if isinstance(client, cls):
            return client
        if isinstance(client, os.PathLike):
            return cls(scheduler_file=path_text("client", client))
        if isinstance(client, str):
            path_text("client", client)
            return cls(scheduler=client) if ADDRESS.fullmatch(client) else cls(scheduler_file=client)
        if isinstance(client, HasClient):
            client = client.client
        return cls(client=client, threads=threads)

    @property
    def connects(self) -> bool:
        """Whether workers are started, or a connection is opened, for the call."""
        return any(value is not None for value in (self.workers, self.scheduler, self.scheduler_file))

    @property
    def names(self) -> list[str]:
        """The given fields that name a place to run; at most one is allowed."""
        field_names = [field.name for field in fields(self) if field.name not in ("security", "connect_seconds")]
        return [name for name in field_names if getattr(self, name) is not None]


class HasClient:
    """What `dasktc.cluster` returns: it has a client in its attribute `client`."""

    client: Client
