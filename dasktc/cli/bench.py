"""`dasktc bench`: one command per benchmark, whose module is imported when the command runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from dasktc.bench.report import TURNS, Report, Say, Section
from dasktc.cli.help import INPUT, MEASURED, MEMORY, METHOD, OUTPUT, PLACE, Declare, Group
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
    """Prints to stderr what is being measured, and to stdout each table when it is done; with --json, one object."""

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


def _suite(name: str, *options: Declare, about: str, examples: tuple[str, str]) -> None:
    """Add a command that calls `run` of the suite's module with its options, and prints the report.

    With `--against` it compares the suite's figures with those of another checkout.
    """

    def measure(as_json: bool, against: str | None = None, **options: Any) -> None:
        printer = _Printer(as_json)
        if against is None:
            module = import_module(f"dasktc.bench.{'papers.run' if name == 'papers' else name}")
            report = module.run(**options, say=printer.say)
        else:
            report = _compare(against, printer.say)
        printer.finish(report)

    declared = options_of(*options, reporting)(measure)
    bench.command(name, section="Suites", examples=examples, help=about)(declared)


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
            words += [word for item in values for word in ([param.opts[0]] if flag else [param.opts[0], str(item)])]
    return words


def _figures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: the names of figures and papers that start with `incomplete`."""
    from dasktc.bench.papers.run import FIGURES

    names = {*FIGURES, *(name.split("-")[0] for name in FIGURES)}
    return sorted(name for name in names if name.startswith(incomplete))


def _quick(help: str, details: str = "") -> Declare:
    return MEASURED.flag("--quick", help=help, details=details)


def _graphs(help: str, details: str = "") -> Declare:
    return INPUT.everyday("--graphs", metavar="DIR", help=help, details=details)


def _scale(default: int) -> Declare:
    return INPUT.preset("--scale", default, "Of the Kronecker graph.")


def _seed(help: str) -> Declare:
    return MEASURED.everyday("--seed", type=int, help=help, details="Default: drawn, and told.")


def _runs(default: int, help: str = "Runs; the median is told.", details: str = "") -> Declare:
    """Options of a suite that measures repeatedly: `--runs`, and `--against`, which gives runs another meaning."""
    return options_of(
        MEASURED.preset("--runs", default, help, details=details),
        MEASURED.everyday(
            "--against",
            metavar="DIR",
            help="Compare with another checkout, in turns.",
            details=f"DIR contains its dasktc/. --runs is the number of turns then, by default {TURNS}.",
        ),
    )


def _backend(names: Sequence[str], default: str) -> Declare:
    return METHOD.preset("--backend", default, "Backend that counts.", type=click.Choice(names))


KERNEL = METHOD.preset("--kernel", "auto", "A kernel of CUDA.")
ONLY = MEASURED.everyday(
    "--only", multiple=True, metavar="NAME", help="Only the graph of this name.", details="May be repeated."
)
WORKERS = PLACE.preset("--workers", 2, "Worker processes.")

_suite(
    "papers",
    MEASURED.argument(
        "figures",
        nargs=-1,
        metavar="[FIGURE]...",
        shell_complete=_figures,
        about="E.g. trust-fig4, or a paper, e.g. lstc.",
    ),
    _quick("Small graphs, for a laptop.", "At most two minutes."),
    _graphs("Folder with the papers' graphs.", "soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000."),
    OUTPUT.everyday("--out", metavar="DIR", help="Folder for plots and page.", details="Default: bench-papers."),
    _backend(["auto", "cpu", "cuda"], "auto"),
    about="""Measure the figures of five papers again.

    The papers: TRUST, H-INDEX, Fox et al., LSTC and TC-Stream. Each figure is told to agree or not.
    """,
    examples=(
        "dasktc bench papers trust-fig4 lstc-table3 --quick",
        "dasktc bench papers h-index --graphs graphs --out bench-papers",
    ),
)
_suite(
    "cpu",
    _scale(20),
    _graphs("Folder with real graphs.", "amazon0601, cnr-2000 and ego-Twitter."),
    _runs(3),
    _quick("Scale 14, one run, fewer turns.", "3 instead of 15 turns of one and two workers."),
    MEASURED.everyday("--gapbs", metavar="PATH", help="GAPBS' program tc, to compare with."),
    about="""Compare kernels, workers, files and memory on the CPU.

    Ratios are from one run on one machine.
    """,
    examples=("dasktc bench cpu --quick", "dasktc bench cpu --scale 20 --graphs graphs"),
)
_suite(
    "gpu",
    _graphs("Folder with ego-Facebook and amazon0601."),
    _runs(5, details="They follow a warm-up."),
    _quick("Tiny graphs, one run: a smoke test."),
    KERNEL,
    ONLY,
    PLACE.everyday("--workers", metavar="N,N,...", help="Clusters of N GPUs, too; all: of all."),
    OUTPUT.everyday(
        "--profile",
        metavar="OUT.html",
        help="Write Dask's performance report.",
        details="Of the last cluster of --workers.",
    ),
    INPUT.everyday("--files", metavar="DIR", help="Also write and read files in DIR."),
    MEASURED.everyday(
        "--rival",
        multiple=True,
        metavar="NAME=PROGRAM",
        help="Count in turns with a build of another code.",
        details="TRUST, H-INDEX, TriCore, LSTC, GroupTC-BS or GroupTC-HS; any other program gets the path of a text "
        "edge list and prints the number. May be repeated.",
    ),
    about="""Measure kernels and preparation on a GPU, counts on several.

    Times are in milliseconds; counts are checked.
    """,
    examples=("dasktc bench gpu --quick", "dasktc bench gpu --graphs graphs --workers all"),
)
_suite(
    "ooc",
    INPUT.preset("--scale", (26, 27), "Scale of a graph; may be repeated.", multiple=True),
    MEMORY.preset("--memory", ("16GB",), "Limit; may be repeated.", multiple=True),
    MEMORY.everyday("--host-memory", metavar="BYTES", help="Host memory beyond it; 1: files only."),
    MEMORY.everyday("--work-dir", metavar="DIR", help="Folder for temporary files."),
    METHOD.preset("--partition", "auto", "With a memory limit.", type=NameOf(SCHEMES, "auto")),
    METHOD.everyday("--parts", type=int, metavar="n", help="n, with a memory limit."),
    KERNEL,
    _runs(3, details="They follow a warm-up."),
    about="""Compare counts within --memory on a GPU with those in all of it.

    Seconds, peak, and how much of the copying was hidden.
    """,
    examples=(
        "dasktc bench ooc --scale 26 --memory 16GB",
        "dasktc bench ooc --scale 27 --memory 16GB --memory 32GB --runs 1",
    ),
)
_suite(
    "questions",
    _backend(["cpu", "cuda"], "cpu"),
    INPUT.everyday("--scale", type=int, help="Only a Kronecker graph of this scale."),
    _runs(5, help="Turns; the median is told.", details="They follow a warm-up."),
    _quick("Two tiny graphs, one turn."),
    about="""Compare other questions with the count and with other libraries.

    Triangles of vertices and edges, clustering and lists.
    """,
    examples=("dasktc bench questions --quick", "dasktc bench questions --backend cuda --scale 20"),
)
_suite(
    "soak",
    MEASURED.preset("--minutes", 60.0, "Duration."),
    WORKERS,
    _backend(["cpu", "cuda"], "cpu"),
    _seed("Seed of graphs, options and faults."),
    MEMORY.everyday(
        "--work-dir",
        metavar="DIR",
        help="Folder for files.",
        details="One of at most 1 GiB is also filled and freed as a fault.",
    ),
    about="""Count on a cluster whose workers are killed, stopped and slowed.

    No count of the changing graphs may be wrong, and memory must stay flat.
    """,
    examples=("dasktc bench soak --minutes 10", "dasktc bench soak --minutes 600 --workers 4 --work-dir scratch"),
)
_suite(
    "kills",
    MEASURED.preset("--kills", 50, "Workers to kill in all."),
    _scale(26),
    WORKERS,
    _backend(BACKENDS, "auto"),
    PLACE.preset("--protocol", "auto", "Protocol between workers.", type=click.Choice(PROTOCOLS)),
    _seed("Seed of moments and workers."),
    about="""Count one graph repeatedly while workers are killed.

    Every count must be exact, and every worker come back.
    """,
    examples=("dasktc bench kills --kills 5 --scale 20", "dasktc bench kills --backend cuda --workers 4"),
)
_suite(
    "choose",
    _graphs("Folder with real graphs, too."),
    _runs(5),
    _quick("Two small graphs, one run."),
    ONLY,
    _backend(BACKENDS, "cpu"),
    about="Compare auto's choice with every kernel, order and partition.",
    examples=("dasktc bench choose --quick", "dasktc bench choose --graphs graphs --backend cuda"),
)
_suite(
    "scaling",
    INPUT.everyday(
        "--graphs",
        default="kronecker,random,grid3d,theory",
        metavar="NAME,...",
        help="Graphs to count; default: all four.",
        details="kronecker, random, grid3d, theory.",
    ),
    _scale(18),
    INPUT.preset("--vertices", 1 << 20, "Of the random graph."),
    INPUT.preset("--edges", 1 << 23, "Of the random graph."),
    INPUT.preset("--side", 128, "Of the torus."),
    INPUT.preset("--stars", "25,81,64", "Leaves of its stars."),
    PLACE.preset("--most", 1024, "Most simulated workers."),
    PLACE.everyday(
        "--workers",
        metavar="N,N,...",
        help="Numbers of real workers.",
        details="Default: the number of cores, or of GPUs.",
    ),
    _runs(3, help="Runs; the shortest is told."),
    PLACE.everyday(
        "--rate-network",
        metavar="BYTES",
        help="Received per second, e.g. 1.1GB.",
        details="By a simulated worker. Default: 1.1GB.",
    ),
    _quick("Small graphs, few workers, one run.", "64 simulated workers."),
    MEASURED.flag("--overhead", help="Only Dask's time per task.", details="In a real count of more than 10 s."),
    OUTPUT.everyday(
        "--plot",
        "plots",
        multiple=True,
        metavar="OUT",
        help=".png, .svg, .pdf or .html.",
        details="May be repeated.",
    ),
    counting,
    about="Simulate 1 to 1,024 workers from measured tasks.",
    examples=("dasktc bench scaling --quick", "dasktc bench scaling --scale 20 --workers 1,2,4 --plot scaling.svg"),
)
