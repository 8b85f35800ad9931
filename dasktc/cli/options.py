"""Options of the command line that several commands share, declared once, and their parameter types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

import dasktc.backends  # declares kernels
import dasktc.planning  # noqa: F401  (declares schemes, orders, assignments and methods)
from dasktc.cli.help import INPUT, MEMORY, METHOD, OUTPUT, PLACE, Declare
from dasktc.options import BACKENDS, DISTRIBUTE, PROXIES, RETRIES, WORKER_SECONDS, Method, RunOptions
from dasktc.registry import ASSIGNMENTS, METHODS, ORDERS, SCHEMES, check_choice, kernel_names

if TYPE_CHECKING:
    from dasktc.executors.place import Place

__all__ = [
    "LOG_LEVEL",
    "PATH",
    "SOURCE",
    "NameOf",
    "PathName",
    "as_json",
    "counting",
    "debug",
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
]


def options_of(*options: Declare) -> Declare:
    """Combine options into one decorator; `--help` shows them in this order."""

    def declare(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return declare


def _workers(context: click.Context, option: click.Parameter, text: str | None) -> int | str | None:
    """Parse `--workers`: a number or "all"."""
    try:
        return text if text in (None, "all") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor 'all'.") from None


class NameOf(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.4 on
    """A parameter type: a name from a registry, plug-ins included, or one of `extras`.

    Names, those of a registry or of a function that lists them, are looked up when needed.
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


class PathName(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # as NameOf
    """A parameter type: the name of a file or folder, or a URL; it is not checked here.

    `click.Path` asks the system for the file, which raises errors for texts that are no names.
    """

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


SOURCE = INPUT.argument(
    "source", nargs=-1, required=True, type=PATH, about="Files, folders, globs, URLs; - is standard input."
)
_reading = options_of(
    INPUT.everyday("--columns", metavar="A,B", help="The two id columns, by name, or position from 0."),
    INPUT.everyday(
        "--ids", type=click.Choice(["auto", "int", "text"]), default="auto", help="Whether ids are numbers or texts."
    ),
    INPUT.option("--format", metavar="NAME", help="Format of SOURCE, if its content does not show it."),
    INPUT.option("--skip", type=int, metavar="LINES", help="Leading lines to skip; 0: the first line is data."),
)
counting = options_of(
    METHOD.everyday(
        "--backend",
        type=click.Choice(BACKENDS),
        default="auto",
        help="On CPUs or GPUs; auto: a GPU if that is faster.",
    ),
    METHOD.option(
        "--kernel",
        type=NameOf(kernel_names, "auto"),
        default="auto",
        help="How a block triple is counted; auto: chosen from the row lengths. See `dasktc info --methods`.",
    ),
    METHOD.option(
        "--partition",
        type=NameOf(SCHEMES, "auto"),
        default="auto",
        help="How the graph is partitioned into block triples; auto: chosen from the memory. See `dasktc info "
        "--methods`.",
    ),
    METHOD.option(
        "--parts",
        type=int,
        metavar="n",
        help="n, the number of parts; `dasktc info --methods` names the partitions that have it.",
    ),
    METHOD.option("--column-parts", type=int, metavar="p", help="Number of column ranges of vertical, if it is not n."),
    METHOD.option("--splits", type=int, metavar="m", help="Number of splits of each task, by rows or edges."),
    METHOD.option(
        "--reorder",
        type=NameOf(ORDERS, "auto"),
        default="auto",
        help="Vertex order; auto: the order of the kernel. See `dasktc info --methods`.",
    ),
    METHOD.option(
        "--assign",
        type=NameOrFile(ASSIGNMENTS),
        default="random",
        metavar="NAME|FILE",
        help="How proxy assigns vertices to parts, see `dasktc info --methods`; or a FILE with two columns, ids and "
        "parts from 0 to n - 1.",
    ),
    METHOD.option(
        "--proxies",
        type=click.Choice(PROXIES),
        default="lstc",
        help="Edges that a part of proxy keeps. lstc: those left by LSTC's transformation (section 4.1); tight: only "
        "those that a count reads, of local vertices and between their out-neighbours; none: no transformation.",
    ),
    MEMORY.everyday(
        "--memory",
        metavar="BYTES",
        help="Memory for data in each process, e.g. 4GB.",
        details="Python itself is beside it. What does not fit goes to --work-dir.",
    ),
)
_joining = options_of(
    PLACE.option("--threads", type=int, help="Threads of this process. Default: its available cores."),
    PLACE.everyday("--scheduler", metavar="ADDR", help="Use the Dask cluster at ADDR."),
    PLACE.everyday("--scheduler-file", type=PATH, metavar="FILE", help="Use the Dask cluster that wrote FILE."),
    PLACE.option("--retries", type=int, default=RETRIES, help="How often to submit a task again whose worker died."),
    PLACE.option(
        "--worker-timeout",
        type=float,
        default=WORKER_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Give up after this time without any worker.",
    ),
    PLACE.option(
        "--tls-ca-file",
        type=PATH,
        metavar="PEM",
        help="Certificate of the authority that signs the cluster's certificates.",
    ),
    PLACE.option("--tls-cert", type=PATH, metavar="PEM", help="Certificate of this process."),
    PLACE.option("--tls-key", type=PATH, metavar="PEM", help="Key of that certificate, if it is in another file."),
)
running = options_of(
    PLACE.everyday(
        "--workers",
        callback=_workers,
        metavar="N",
        help="Start N worker processes, or all.",
        details="Without it, everything runs in this process. all: one per GPU with cuda, else one per core.",
    ),
    _joining,
)
_distributing = PLACE.option(
    "--distribute",
    type=click.Choice(DISTRIBUTE),
    help="On a cluster. always: tasks on all workers; never: one call on one worker; auto: whichever is predicted "
    "to be faster.",
)
_naming = options_of(
    METHOD.everyday(
        "--method",
        type=NameOf(METHODS, "auto"),
        default="auto",
        help="A published system by name, e.g. trust.",
        details="It is a kernel, a partition and an order, which the next options change. See `dasktc info --methods`.",
    ),
    counting,
    MEMORY.option(
        "--work-dir", type=PATH, metavar="DIR", help="Folder for data beyond --memory; all workers must see it."
    ),
    MEMORY.option("--host-memory", metavar="BYTES", help="Pinned host memory for data beyond a GPU's --memory."),
    _reading,
)
preparing = options_of(_naming, running, _distributing)
planning = options_of(
    _naming,
    PLACE.everyday(
        "--workers",
        callback=_workers,
        metavar="N",
        help="Plan for N tasks at a time.",
        details="Each with --memory, or what one has here. Default: those of the cluster, or this process's threads.",
    ),
    _joining,
    _distributing,
)
watching = OUTPUT.option(
    "--progress",
    type=click.Choice(["auto", "json", "none"]),
    default="auto",
    help="auto: a bar if standard error is a terminal. json: one event per line on standard error, an object with "
    "stage, done, total, share and seconds left.",
)
replacing = OUTPUT.flag("--force", help="Replace output files that exist.")
as_json = OUTPUT.flag("--json", "as_json", help="Print one JSON object.")
debug = OUTPUT.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
reporting = options_of(as_json, debug)
LOG_LEVEL = "dasktc.log-level"
"""Key of the log level in the `meta` of a command's context, where the functions that it calls look it up."""
printing = options_of(
    as_json,
    OUTPUT.flag("--quiet", help="Print only the number, if any; no progress."),
    OUTPUT.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        callback=lambda context, option, level: context.meta.update({LOG_LEVEL: level}),
        expose_value=False,
        help="Messages on standard error. Default: info if it is a terminal, else warning.",
    ),
    debug,
)


def keywords_of(options: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of a command to the keywords of the function that it calls: method, run, client and others.

    Options that stand on the command line are changes of the method that `--method` names.
    """
    (place, run, rest), source = running_of(options), click.get_current_context().get_parameter_source
    changes = {name: rest.pop(name) for name in Method.__dataclass_fields__ if name in rest}
    changes = {name: value for name, value in changes.items() if source(name) is not ParameterSource.DEFAULT}
    method = Method.of(rest.pop("method"), **changes)
    return {**rest, "method": method, "run": run, "client": place}


def running_of(options: dict[str, Any]) -> tuple[Place, RunOptions, dict[str, Any]]:
    """Split the options of a command: the place to run, how it is run, and all others.

    Those of the three TLS files become the place's `security`.
    """
    from dasktc.executors.place import Place
    from dasktc.executors.process.tls import security_of

    files = [options.pop(name) for name in ("tls_ca_file", "tls_cert", "tls_key")]
    rest = {**options, "security": security_of(*files)}
    place, run = (
        {name: rest.pop(name) for name in kind.__dataclass_fields__ if name in rest} for kind in (Place, RunOptions)
    )
    return Place(**place), RunOptions(**run), rest
