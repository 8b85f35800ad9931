"""Options of the command line that several commands share, declared once, and their parameter types."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

import dasktc.backends  # declares kernels
import dasktc.planning  # noqa: F401  (declares schemes, orders, assignments and methods)
from dasktc.cli.help import INPUT, MEMORY, METHOD, OUTPUT, PLACE, argument, option
from dasktc.options import BACKENDS, DISTRIBUTE, PROXIES, RETRIES, WORKER_SECONDS
from dasktc.registry import ASSIGNMENTS, METHODS, ORDERS, SCHEMES, check_choice, kernel_names

if TYPE_CHECKING:
    from dasktc.executors.place import Place
    from dasktc.options import RunOptions

    _TextType = click.ParamType[str]
else:
    _TextType = click.ParamType  # not generic before click 8.2

__all__ = [
    "LOG_LEVEL",
    "PATH",
    "SOURCE",
    "NameOf",
    "PathName",
    "as_json",
    "counting",
    "keywords_of",
    "options_of",
    "planning",
    "preparing",
    "printing",
    "replacing",
    "reporting",
    "running",
    "running_of",
    "watching",
    "workers_of",
]


def options_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine options into one decorator; `--help` shows them in this order."""
    return lambda command: functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


def workers_of(context: click.Context, option: click.Parameter, text: str | None) -> int | str | None:
    """Parse `--workers`: a number or "all"."""
    try:
        return text if text in (None, "all") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor 'all'.") from None


def _names(context: click.Context, option: click.Parameter, text: str | None) -> list[str] | None:
    """Split names at their commas."""
    return None if text is None else [name.strip() for name in text.split(",")]


class NameOf(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.4 on
    """A parameter type: a name from a registry, plug-ins included, or one of `more`. Names are looked up when needed.

    Parameters
    ----------
    names : collection of str
        A registry, or a function that lists names.
    *more : str
        Other values that the option takes.
    """

    name = "name"

    def __init__(self, names: Iterable[str] | Callable[[], Iterable[str]], *extras: str) -> None:
        self._names, self._more = names, extras

    def _choice(self) -> click.Choice[str]:
        return click.Choice((*self._more, *(self._names() if callable(self._names) else self._names)))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; refuse one that does not exist."""
        if value in self._more:
            return str(value)
        choice = self._choice()
        check_choice(str(param.name) if param else self.name, value, choice.choices)
        return choice.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """List the names that start with `incomplete`, for shell completion."""
        return self._choice().shell_complete(ctx, param, incomplete)


class PathName(_TextType):
    """A parameter type: the name of a file or folder, or a URL; it is not checked here."""

    name = "path"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete file names."""
        return [CompletionItem(incomplete, type="file")]


PATH = PathName()


class NameOrFile(NameOf):
    """A parameter type: a name as in `NameOf`, or the path of an existing file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path of an existing file, or check the name."""
        return value if os.path.exists(value) else super().convert(value, param, ctx)


SOURCE = argument(
    "source", nargs=-1, required=True, type=PATH, about="Files, folders, globs, URLs; - is standard input."
)
reading = options_of(
    option(
        "--columns",
        group=INPUT,
        everyday=True,
        callback=_names,
        metavar="A,B",
        help="The two id columns, by name or position.",
    ),
    option(
        "--ids",
        group=INPUT,
        everyday=True,
        type=click.Choice(["auto", "int", "text"]),
        default="auto",
        help="Whether ids are numbers or texts.",
    ),
    option("--format", group=INPUT, metavar="NAME", help="Format of SOURCE, if its content does not show it."),
    option("--skip", group=INPUT, type=int, metavar="LINES", help="Leading lines to skip; 0: the first line is data."),
)
counting = options_of(
    option(
        "--backend",
        group=METHOD,
        everyday=True,
        type=click.Choice(BACKENDS),
        default="auto",
        help="On CPUs or GPUs; auto: a GPU if that is faster.",
    ),
    option(
        "--kernel",
        group=METHOD,
        type=NameOf(kernel_names, "auto"),
        default="auto",
        help="How a block triple is counted; auto: chosen from the row lengths. See `dasktc info --methods`.",
    ),
    option(
        "--partition",
        group=METHOD,
        type=NameOf(SCHEMES, "auto"),
        default="auto",
        help="How the graph is partitioned into block triples; auto: chosen from the memory. See `dasktc info "
        "--methods`.",
    ),
    option(
        "--parts",
        group=METHOD,
        type=int,
        metavar="n",
        help="n, the number of parts; `dasktc info --methods` names the partitions that have it.",
    ),
    option(
        "--column-parts",
        group=METHOD,
        type=int,
        metavar="p",
        help="Number of column ranges of vertical, if it is not n.",
    ),
    option("--splits", group=METHOD, type=int, metavar="m", help="Number of splits of each task, by rows or edges."),
    option(
        "--reorder",
        group=METHOD,
        type=NameOf(ORDERS, "auto"),
        default="auto",
        help="Vertex order; auto: the order of the kernel. See `dasktc info --methods`.",
    ),
    option(
        "--assign",
        group=METHOD,
        type=NameOrFile(ASSIGNMENTS),
        default="random",
        metavar="NAME|FILE",
        help="How proxy assigns vertices to parts, see `dasktc info --methods`; or a FILE with two columns, ids and "
        "parts from 0 to n - 1.",
    ),
    option(
        "--proxies",
        group=METHOD,
        type=click.Choice(PROXIES),
        default="lstc",
        help="Edges that a part of proxy keeps. lstc: those left by LSTC's transformation (section 4.1); tight: only "
        "those that a count reads, of local vertices and between their out-neighbours; none: no transformation.",
    ),
    option(
        "--memory",
        group=MEMORY,
        everyday=True,
        metavar="BYTES",
        help="Memory for data in each process, e.g. 4GB.",
        details="Python itself is beside it. What does not fit goes to --work-dir.",
    ),
)


def _workers(help: str, details: str) -> Callable[[Any], Any]:
    return option("--workers", group=PLACE, everyday=True, callback=workers_of, metavar="N", help=help, details=details)


_joining = options_of(
    option(
        "--threads", group=PLACE, type=int, metavar="N", help="Threads of this process. Default: its available cores."
    ),
    option("--scheduler", group=PLACE, everyday=True, metavar="ADDR", help="Use the Dask cluster at ADDR."),
    option(
        "--scheduler-file",
        group=PLACE,
        everyday=True,
        type=PATH,
        metavar="FILE",
        help="Use the Dask cluster that wrote FILE.",
    ),
    option(
        "--retries",
        group=PLACE,
        type=int,
        default=RETRIES,
        help="How often to submit a task again whose worker died.",
    ),
    option(
        "--worker-timeout",
        group=PLACE,
        type=float,
        default=WORKER_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Give up after this time without any worker.",
    ),
    option(
        "--tls-ca-file",
        group=PLACE,
        type=PATH,
        metavar="PEM",
        help="Certificate of the authority that signs the cluster's certificates.",
    ),
    option("--tls-cert", group=PLACE, type=PATH, metavar="PEM", help="Certificate of this process."),
    option(
        "--tls-key",
        group=PLACE,
        type=PATH,
        metavar="PEM",
        help="Key of that certificate, if it is in another file.",
    ),
)
running = options_of(
    _workers(
        "Start N worker processes, or all.",
        "Without it, everything runs in this process. all: one per GPU with cuda, else one per core.",
    ),
    _joining,
)
distributing = options_of(
    option(
        "--distribute",
        group=PLACE,
        type=click.Choice(DISTRIBUTE),
        help="On a cluster. always: tasks on all workers; never: one call on one worker; auto: whichever is predicted "
        "to be faster.",
    )
)
watching = options_of(
    option(
        "--progress",
        group=OUTPUT,
        type=click.Choice(["auto", "json", "none"]),
        default="auto",
        help="auto: a bar if standard error is a terminal. json: one event per line on standard error, an object with "
        "stage, done, total, share and seconds left.",
    )
)
spilling = options_of(
    option(
        "--work-dir",
        group=MEMORY,
        type=PATH,
        metavar="DIR",
        help="Folder for data beyond --memory; all workers must see it.",
    ),
    option(
        "--host-memory",
        group=MEMORY,
        metavar="BYTES",
        help="Pinned host memory for data beyond a GPU's --memory.",
    ),
)
naming = option(
    "--method",
    group=METHOD,
    everyday=True,
    type=NameOf(METHODS, "auto"),
    default="auto",
    help="A published system by name, e.g. trust.",
    details="It is a kernel, a partition and an order, which the next options change. See `dasktc info --methods`.",
)
preparing = options_of(naming, counting, spilling, reading, running, distributing)
planning = options_of(
    naming,
    counting,
    spilling,
    reading,
    _workers("Plan for N tasks at a time.", "Default: those of the cluster, or the threads of this process."),
    _joining,
    distributing,
)
replacing = options_of(
    option("--force", group=OUTPUT, everyday=True, is_flag=True, help="Replace output files that exist.")
)
as_json = option("--json", "as_json", group=OUTPUT, everyday=True, is_flag=True, help="Print one JSON object.")
_debug = option("--debug", group=OUTPUT, is_flag=True, expose_value=False, help="Show the traceback of an error.")
reporting = options_of(as_json, _debug)
LOG_LEVEL = "dasktc.log-level"
"""Key of the log level in the `meta` of a command's context, where the functions that it calls look it up."""


def _keep_level(context: click.Context, option: click.Parameter, level: str | None) -> None:
    context.meta[LOG_LEVEL] = level


_log_level = option(
    "--log-level",
    group=OUTPUT,
    type=click.Choice(["debug", "info", "warning", "error"]),
    callback=_keep_level,
    expose_value=False,
    help="Messages on standard error. Default: info if it is a terminal, else warning.",
)
_quiet = option("--quiet", group=OUTPUT, everyday=True, is_flag=True, help="Print only the number; no progress.")
printing = options_of(as_json, _quiet, _log_level, _debug)


def keywords_of(options: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of a command to the keywords of the function that it calls: method, run, client and others.

    Options that stand on the command line are changes of the method that `--method` names.
    """
    from dasktc.options import Method

    (place, run, options_left), source = running_of(options), click.get_current_context().get_parameter_source
    changes = {name: options_left.pop(name) for name in Method.__dataclass_fields__ if name in options_left}
    changes = {name: value for name, value in changes.items() if source(name) is not ParameterSource.DEFAULT}
    method = Method.of(options_left.pop("method"), **changes)
    return {**options_left, "method": method, "run": run, "client": place}


def running_of(options: dict[str, Any]) -> tuple[Place, RunOptions, dict[str, Any]]:
    """Split the options of a command: the place to run, how it is run, and all others."""
    from dasktc.executors.place import Place
    from dasktc.options import RunOptions

    rest = secured(options)
    kinds = (
        {name: rest.pop(name) for name in kind.__dataclass_fields__ if name in rest} for kind in (Place, RunOptions)
    )
    place, run = kinds
    return Place(**place), RunOptions(**run), rest


def secured(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the options of the three TLS files by one option `security`."""
    from dasktc.executors.process.tls import security_of

    files = [options.pop(name) for name in ("tls_ca_file", "tls_cert", "tls_key")]
    return options | {"security": security_of(*files)}
