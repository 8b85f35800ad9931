"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from dasktc.executors.dask.executor import RETRIES, WORKER_SECONDS
from dasktc.options import ASSIGNMENTS, BACKENDS, PARTITIONS, REORDERS

__all__ = [
    "RUNNING",
    "KernelName",
    "counting",
    "options_of",
    "printing",
    "reading",
    "running",
    "secured",
    "spilling",
    "workers_of",
]

RUNNING = ("workers", "scheduler", "scheduler_file", "retries", "worker_timeout", "security")
"""Keywords of `connect` that the options of running become."""


def options_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add options in the order in which help shows them."""
    return lambda command: functools.reduce(lambda done, option: option(done), reversed(options), command)


def workers_of(context: click.Context, option: click.Parameter, text: str | None) -> int | str | None:
    """A number, or "all"."""
    try:
        return text if text in (None, "all") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor 'all'.") from None


class KernelName(click.ParamType[str]):
    """`auto`, or a kernel of any backend: looked up when asked for, so that one registered later is among them."""

    name = "kernel"

    def _choice(self) -> click.Choice[str]:
        from dasktc.backends import kernel_names

        return click.Choice(("auto", *kernel_names()))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what no backend has."""
        return "auto" if value == "auto" else self._choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """All names."""
        return self._choice().get_metavar(param, ctx)


reading = options_of(
    click.option("--format", metavar="NAME", help="Format of SOURCE, where its content does not tell."),
    click.option("--columns", metavar="A,B", help="The two id columns, by name or position."),
    click.option("--ids", type=click.Choice(["auto", "int", "text"]), default="auto", help="Type of ids."),
    click.option("--skip", type=int, metavar="LINES", help="Leading lines to pass over; 0: the first is data."),
)
counting = options_of(
    click.option("--backend", type=click.Choice(BACKENDS), default="auto", help="What counts."),
    click.option("--kernel", type=KernelName(), default="auto", help="How a block triple is counted."),
    click.option("--partition", type=click.Choice(PARTITIONS), default="auto", help="Which block triples."),
    click.option("--assign", type=click.Choice(ASSIGNMENTS), default="random", help="Vertices to the parts of proxy."),
    click.option("--parts", type=int, metavar="n", help="n of hash2d and vertical: n³ tasks; parts of proxy."),
    click.option("--splits", type=int, metavar="m", help="Splits of each task, of rows or edges."),
    click.option("--reorder", type=click.Choice(REORDERS), default="auto", help="Order of vertex ids."),
    click.option("--memory", metavar="BYTES", help="What data may take on one worker, beside Python itself, e.g. 4GB."),
)
running = options_of(
    click.option("--workers", callback=workers_of, metavar="N", help="Start N workers, or all. Default: this process."),
    click.option("--scheduler", metavar="ADDR", help="Use the Dask cluster at ADDR."),
    click.option("--scheduler-file", metavar="FILE", help="Use the Dask cluster that wrote FILE."),
    click.option("--retries", type=int, default=RETRIES, help="How often to submit again what workers died under."),
    click.option(
        "--worker-timeout",
        type=float,
        default=WORKER_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Give up after so long without any worker.",
    ),
    click.option("--tls-ca-file", metavar="PEM", help="Authority that signs the cluster's certificates."),
    click.option("--tls-cert", metavar="PEM", help="Our certificate."),
    click.option("--tls-key", metavar="PEM", help="Its key, if it is not in the same file."),
)
spilling = options_of(
    click.option("--work-dir", metavar="DIR", help="Where files beyond --memory stand; all workers must see it."),
    click.option("--host-memory", metavar="BYTES", help="Of the host, for what a GPU's --memory has no room for."),
)
printing = options_of(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("--quiet", is_flag=True, help="No progress; only the number."),
    click.option("--debug", is_flag=True, help="Show where an error comes from."),
)


def secured(options: dict[str, Any]) -> dict[str, Any]:
    """The options with `security` instead of three names of files."""
    from dasktc.executors.tls import security_of

    files = [options.pop(name) for name in ("tls_ca_file", "tls_cert", "tls_key")]
    return options | {"security": security_of(*files)}
