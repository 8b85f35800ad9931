"""`dasktc bench`: one command per benchmark, whose module is imported when the command runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from dasktc.bench.report import TURNS, Report, Say, Section
from dasktc.cli.help import INPUT, MEASURED, MEMORY, METHOD, OUTPUT, PLACE, Group, argument, option
from dasktc.cli.options import NameOf, counting, options_of, reporting
from dasktc.options import BACKENDS, PROTOCOLS
from dasktc.registry import SCHEMES

__all__ = ["bench"]


@click.group(
    cls=Group,
    section="Clusters, benchmarks, this installation",
    examples=("dasktc bench cpu --quick", "dasktc bench papers trust-fig4 --quick"),
)
def bench() -> None:
    """Measure dasktc, and compare it with other tools."""


class _Printer:
    """Prints to stderr what is being measured, and to stdout each table when it is done; with --json, one object.

    Parameters
    ----------
    as_json : bool
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json, self._printed = as_json, list[Section]()

    def say(self, what: str | Section) -> None:
        """Print what is being measured, or a table."""
        if isinstance(what, str):
            click.echo(what, err=True)
        elif not self._as_json:
            self._printed.append(what)
            click.get_current_context().obj(f"{what}\n\n")

    def finish(self, report: Report) -> None:
        """Print how the report was made and the tables that are not printed yet."""
        if self._as_json:
            click.echo(json.dumps(report.to_dict()))
            return
        rest = [section for section in report.sections if not any(section is printed for printed in self._printed)]
        click.echo(str(replace(report, sections=rest)))


def _measure(run: Callable[..., Report], as_json: bool, against: str | None = None, **options: Any) -> None:
    """Run a benchmark, or compare it with another checkout's, and print the report."""
    printer = _Printer(as_json)
    if against is None:
        report = run(**options, say=printer.say)
    else:
        report = _compare(against, printer.say)
    printer.finish(report)


def _compare(checkout: str, say: Say) -> Report:
    """Run this command's suite, with the options that were given, here and from another checkout."""
    from dasktc.bench.against import against

    context = click.get_current_context()
    turns = context.params["runs"] if _given(context, "runs") else TURNS
    return against(checkout, [str(context.info_name), *_words(context)], turns, say)


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _words(context: click.Context) -> list[str]:
    """The options on the command line that say what is measured, and not how often or what is written."""
    words = []
    for param in context.command.params:
        name, value = str(param.name), context.params.get(str(param.name))
        if _given(context, name) and name not in ("against", "runs") and getattr(param, "group", OUTPUT) != OUTPUT:
            flag = getattr(param, "is_flag", False)
            values = value if isinstance(value, tuple) else [value]
            words += [word for one in values for word in ([param.opts[0]] if flag else [param.opts[0], str(one)])]
    return words


def _figures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: the names of figures and papers that start with `incomplete`."""
    from dasktc.bench.papers.run import FIGURES

    names = {*FIGURES, *(name.split("-")[0] for name in FIGURES)}
    return sorted(name for name in names if name.startswith(incomplete))


_option = partial(option, everyday=True)
_flag = partial(_option, is_flag=True)
_number = partial(_option, type=int, show_default=True)
_quick = partial(_flag, "--quick", group=MEASURED)
_graphs = partial(_option, "--graphs", group=INPUT, metavar="DIR")
_seed = partial(_option, "--seed", group=MEASURED, type=int, details="Default: drawn, and told.")
_scale = partial(_number, "--scale", group=INPUT, help="Of the Kronecker graph.")
KERNEL = _option("--kernel", group=METHOD, default="auto", show_default=True, help="A kernel of CUDA.")
ONLY = _option(
    "--only",
    group=MEASURED,
    multiple=True,
    metavar="NAME",
    help="Only the graph of this name.",
    details="May be repeated.",
)
WORKERS = _number("--workers", group=PLACE, default=2, help="Worker processes.")


def _runs(default: int, help: str = "Runs; the median is told.", details: str = "") -> Callable[[Any], Any]:
    """Options of a suite that measures repeatedly: `--runs`, and `--against`, which gives runs another meaning."""
    return options_of(
        _number("--runs", group=MEASURED, default=default, help=help, details=details),
        _option(
            "--against",
            group=MEASURED,
            metavar="DIR",
            help="Compare with another checkout, in turns.",
            details=f"DIR contains its dasktc/. --runs is the number of turns then, by default {TURNS}.",
        ),
    )


def _backend(names: Sequence[str], default: str) -> Callable[[Any], Any]:
    kind = click.Choice(names)
    return _option(
        "--backend", group=METHOD, type=kind, default=default, show_default=True, help="Backend that counts."
    )


@bench.command(
    "papers",
    section="Suites",
    examples=(
        "dasktc bench papers trust-fig4 lstc-table3 --quick",
        "dasktc bench papers h-index --graphs graphs --out bench-papers",
    ),
)
@argument(
    "figures",
    group=MEASURED,
    nargs=-1,
    metavar="[FIGURE]...",
    shell_complete=_figures,
    about="E.g. trust-fig4, or a paper, e.g. lstc.",
)
@_quick(help="Small graphs, for a laptop.", details="At most two minutes.")
@_graphs(help="Folder with the papers' graphs.", details="soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000.")
@_option("--out", group=OUTPUT, metavar="DIR", help="Folder for plots and page.", details="Default: bench-papers.")
@_backend(["auto", "cpu", "cuda"], "auto")
@reporting
def bench_papers(as_json: bool, **options: Any) -> None:
    """Measure the figures of five papers again.

    The papers: TRUST, H-INDEX, Fox et al., LSTC and TC-Stream. Each figure is told to agree or not.
    """
    from dasktc.bench.papers.run import run

    _measure(run, as_json, **options)


@bench.command(
    "cpu",
    section="Suites",
    examples=("dasktc bench cpu --quick", "dasktc bench cpu --scale 20 --graphs graphs"),
)
@_scale(default=20)
@_graphs(help="Folder with real graphs.", details="amazon0601, cnr-2000 and ego-Twitter.")
@_runs(default=3)
@_quick(help="Scale 14, one run, fewer turns.", details="3 instead of 15 turns of one and two workers.")
@_option("--gapbs", group=MEASURED, metavar="PATH", help="GAPBS' program tc, to compare with.")
@reporting
def bench_cpu(as_json: bool, **options: Any) -> None:
    """Compare kernels, workers, files and memory on the CPU.

    Ratios are from one run on one machine.
    """
    from dasktc.bench.cpu import run

    _measure(run, as_json, **options)


@bench.command(
    "gpu",
    section="Suites",
    examples=("dasktc bench gpu --quick", "dasktc bench gpu --graphs graphs --workers all"),
)
@_graphs(help="Folder with ego-Facebook and amazon0601.")
@_runs(default=5, details="They follow a warm-up.")
@_quick(help="Tiny graphs, one run: a smoke test.")
@KERNEL
@ONLY
@_option("--workers", group=PLACE, metavar="N,N,...", help="Clusters of N GPUs, too; all: of all.")
@_option(
    "--profile",
    group=OUTPUT,
    metavar="OUT.html",
    help="Write Dask's performance report.",
    details="Of the last cluster of --workers.",
)
@_option("--files", group=INPUT, metavar="DIR", help="Also write and read files in DIR.")
@_option(
    "--rival",
    group=MEASURED,
    multiple=True,
    metavar="NAME=PROGRAM",
    help="Count in turns with a build of another code.",
    details="TRUST, H-INDEX, TriCore, LSTC, GroupTC-BS or GroupTC-HS; any other program gets the path of a text edge "
    "list and prints the number. May be repeated.",
)
@reporting
def bench_gpu(as_json: bool, **options: Any) -> None:
    """Measure kernels and preparation on a GPU, counts on several.

    Times are in milliseconds; counts are checked.
    """
    from dasktc.bench.gpu import run

    _measure(run, as_json, **options)


@bench.command(
    "ooc",
    section="Suites",
    examples=(
        "dasktc bench ooc --scale 26 --memory 16GB",
        "dasktc bench ooc --scale 27 --memory 16GB --memory 32GB --runs 1",
    ),
)
@_option(
    "--scale",
    group=INPUT,
    type=int,
    multiple=True,
    default=(26, 27),
    show_default=True,
    help="Scale of a graph; may be repeated.",
)
@_option("--memory", group=MEMORY, multiple=True, default=("16GB",), show_default=True, help="Limit; may be repeated.")
@_option("--host-memory", group=MEMORY, metavar="BYTES", help="Host memory beyond it; 1: files only.")
@_option("--work-dir", group=MEMORY, metavar="DIR", help="Folder for temporary files.")
@_option(
    "--partition",
    group=METHOD,
    type=NameOf(SCHEMES, "auto"),
    default="auto",
    show_default=True,
    help="With a memory limit.",
)
@_option("--parts", group=METHOD, type=int, metavar="n", help="n, with a memory limit.")
@KERNEL
@_runs(default=3, details="They follow a warm-up.")
@reporting
def bench_ooc(as_json: bool, **options: Any) -> None:
    """Compare counts within --memory on a GPU with those in all of it.

    Seconds, peak, and how much of the copying was hidden.
    """
    from dasktc.bench.ooc import run

    _measure(run, as_json, **options)


@bench.command(
    "questions",
    section="Suites",
    examples=("dasktc bench questions --quick", "dasktc bench questions --backend cuda --scale 20"),
)
@_backend(["cpu", "cuda"], "cpu")
@_option("--scale", group=INPUT, type=int, help="Only a Kronecker graph of this scale.")
@_runs(default=5, help="Turns; the median is told.", details="They follow a warm-up.")
@_quick(help="Two tiny graphs, one turn.")
@reporting
def bench_questions(as_json: bool, **options: Any) -> None:
    """Compare other questions with the count and with other libraries.

    Triangles of vertices and edges, clustering and lists.
    """
    from dasktc.bench.questions import run

    _measure(run, as_json, **options)


@bench.command(
    "soak",
    section="Suites",
    examples=("dasktc bench soak --minutes 10", "dasktc bench soak --minutes 600 --workers 4 --work-dir scratch"),
)
@_option("--minutes", group=MEASURED, type=float, default=60.0, show_default=True, help="Duration.")
@WORKERS
@_backend(["cpu", "cuda"], "cpu")
@_seed(help="Seed of graphs, options and faults.")
@_option(
    "--work-dir",
    group=MEMORY,
    metavar="DIR",
    help="Folder for files.",
    details="One of at most 1 GiB is also filled and freed as a fault.",
)
@reporting
def bench_soak(as_json: bool, **options: Any) -> None:
    """Count on a cluster whose workers are killed, stopped and slowed.

    No count of the changing graphs may be wrong, and memory must stay flat.
    """
    from dasktc.bench.soak import run

    _measure(run, as_json, **options)


@bench.command(
    "kills",
    section="Suites",
    examples=("dasktc bench kills --kills 5 --scale 20", "dasktc bench kills --backend cuda --workers 4"),
)
@_number("--kills", group=MEASURED, default=50, help="Workers to kill in all.")
@_scale(default=26)
@WORKERS
@_backend(BACKENDS, "auto")
@_option(
    "--protocol",
    group=PLACE,
    type=click.Choice(PROTOCOLS),
    default="auto",
    show_default=True,
    help="Protocol between workers.",
)
@_seed(help="Seed of moments and workers.")
@reporting
def bench_kills(as_json: bool, **options: Any) -> None:
    """Count one graph repeatedly while workers are killed.

    Every count must be exact, and every worker come back.
    """
    from dasktc.bench.kills import run

    _measure(run, as_json, **options)


@bench.command(
    "choose",
    section="Suites",
    examples=("dasktc bench choose --quick", "dasktc bench choose --graphs graphs --backend cuda"),
)
@_graphs(help="Folder with real graphs, too.")
@_runs(default=5)
@_quick(help="Two small graphs, one run.")
@ONLY
@_backend(BACKENDS, "cpu")
@reporting
def bench_choose(as_json: bool, **options: Any) -> None:
    """Compare auto's choice with every kernel, order and partition."""
    from dasktc.bench.choose import run

    _measure(run, as_json, **options)


@bench.command(
    "scaling",
    section="Suites",
    examples=("dasktc bench scaling --quick", "dasktc bench scaling --scale 20 --workers 1,2,4 --plot scaling.svg"),
)
@_option(
    "--graphs",
    group=INPUT,
    default="kronecker,random,grid3d,theory",
    metavar="NAME,...",
    help="Graphs to count; default: all four.",
    details="kronecker, random, grid3d, theory.",
)
@_scale(default=18)
@_number("--vertices", group=INPUT, default=1 << 20, help="Of the random graph.")
@_number("--edges", group=INPUT, default=1 << 23, help="Of the random graph.")
@_number("--side", group=INPUT, default=128, help="Of the torus.")
@_option("--stars", group=INPUT, default="25,81,64", show_default=True, help="Leaves of its stars.")
@_number("--most", group=PLACE, default=1024, help="Most simulated workers.")
@_option(
    "--workers",
    group=PLACE,
    metavar="N,N,...",
    help="Numbers of real workers.",
    details="Default: the number of cores, or of GPUs.",
)
@_runs(default=3, help="Runs; the shortest is told.")
@_option(
    "--rate-network",
    group=PLACE,
    metavar="BYTES",
    help="Received per second, e.g. 1.1GB.",
    details="By a simulated worker. Default: 1.1GB.",
)
@_quick(help="Small graphs, few workers, one run.", details="64 simulated workers.")
@_flag("--overhead", group=MEASURED, help="Only Dask's time per task.", details="In a real count of more than 10 s.")
@_option(
    "--plot",
    "plots",
    group=OUTPUT,
    multiple=True,
    metavar="OUT",
    help=".png, .svg, .pdf or .html.",
    details="May be repeated.",
)
@counting
@reporting
def bench_scaling(as_json: bool, **options: Any) -> None:
    """Simulate 1 to 1,024 workers from measured tasks."""
    from dasktc.bench.scaling import run

    _measure(run, as_json, **options)
