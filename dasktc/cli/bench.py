"""`dasktc bench`: one command per benchmark, whose module is imported when the command runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from dasktc.bench.report import Report, Section
from dasktc.cli.help import INPUT, MEASURED, MEMORY, METHOD, OUTPUT, PLACE, Group, argument, option
from dasktc.cli.options import NameOf, counting, reporting
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


def _measure(run: Callable[..., Report], as_json: bool, **options: Any) -> None:
    """Run a benchmark and print its report."""
    printer = _Printer(as_json)
    printer.finish(run(**options, say=printer.say))


def _figures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: the names of figures and papers that start with `incomplete`."""
    from dasktc.bench.papers.run import FIGURES

    names = {*FIGURES, *(name.split("-")[0] for name in FIGURES)}
    return sorted(name for name in names if name.startswith(incomplete))


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
@option(
    "--quick",
    group=MEASURED,
    everyday=True,
    is_flag=True,
    help="Small graphs, for a laptop.",
    details="At most two minutes.",
)
@option(
    "--graphs",
    group=INPUT,
    everyday=True,
    metavar="DIR",
    help="Folder with the papers' graphs.",
    details="soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000.",
)
@option(
    "--out",
    group=OUTPUT,
    everyday=True,
    metavar="DIR",
    help="Folder for plots and page.",
    details="Default: bench-papers.",
)
@option(
    "--backend",
    group=METHOD,
    everyday=True,
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    help="Backend that counts.",
)
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
    examples=(
        "dasktc bench cpu --quick",
        "dasktc bench cpu --scale 20 --graphs graphs",
    ),
)
@option(
    "--scale",
    group=INPUT,
    everyday=True,
    type=int,
    default=20,
    show_default=True,
    help="Of the Kronecker graph.",
)
@option(
    "--graphs",
    group=INPUT,
    everyday=True,
    metavar="DIR",
    help="Folder with real graphs.",
    details="amazon0601, cnr-2000 and ego-Twitter.",
)
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=3,
    show_default=True,
    help="Runs; the median is told.",
)
@option(
    "--quick",
    group=MEASURED,
    everyday=True,
    is_flag=True,
    help="Scale 14, one run, fewer turns.",
    details="3 instead of 15 turns of one and two workers.",
)
@option("--gapbs", group=MEASURED, everyday=True, metavar="PATH", help="GAPBS' program tc, to compare with.")
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
    examples=(
        "dasktc bench gpu --quick",
        "dasktc bench gpu --graphs graphs --workers all",
    ),
)
@option("--graphs", group=INPUT, everyday=True, metavar="DIR", help="Folder with ego-Facebook and amazon0601.")
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=5,
    show_default=True,
    help="Runs; the median is told.",
    details="They follow a warm-up.",
)
@option("--quick", group=MEASURED, everyday=True, is_flag=True, help="Tiny graphs, one run: a smoke test.")
@option("--kernel", group=METHOD, everyday=True, default="auto", show_default=True, help="A kernel of CUDA.")
@option(
    "--only",
    group=MEASURED,
    everyday=True,
    multiple=True,
    metavar="NAME",
    help="Only the graph of this name.",
    details="May be repeated.",
)
@option(
    "--workers",
    group=PLACE,
    everyday=True,
    metavar="N,N,...",
    help="Clusters of N GPUs, too; all: of all.",
)
@option(
    "--profile",
    group=OUTPUT,
    everyday=True,
    metavar="OUT.html",
    help="Write Dask's performance report.",
    details="Of the last cluster of --workers.",
)
@option(
    "--files",
    group=INPUT,
    everyday=True,
    metavar="DIR",
    help="Also write and read files in DIR.",
)
@option(
    "--rival",
    group=MEASURED,
    everyday=True,
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
@option(
    "--scale",
    group=INPUT,
    everyday=True,
    type=int,
    multiple=True,
    default=(26, 27),
    show_default=True,
    help="Scale of a graph; may be repeated.",
)
@option(
    "--memory",
    group=MEMORY,
    everyday=True,
    multiple=True,
    default=("16GB",),
    show_default=True,
    help="Limit; may be repeated.",
)
@option(
    "--host-memory",
    group=MEMORY,
    everyday=True,
    metavar="BYTES",
    help="Host memory beyond it; 1: files only.",
)
@option("--work-dir", group=MEMORY, everyday=True, metavar="DIR", help="Folder for temporary files.")
@option(
    "--partition",
    group=METHOD,
    everyday=True,
    type=NameOf(SCHEMES, "auto"),
    default="auto",
    show_default=True,
    help="With a memory limit.",
)
@option("--parts", group=METHOD, everyday=True, type=int, metavar="n", help="n, with a memory limit.")
@option("--kernel", group=METHOD, everyday=True, default="auto", show_default=True, help="A kernel of CUDA.")
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=3,
    show_default=True,
    help="Runs; the median is told.",
    details="They follow a warm-up.",
)
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
    examples=(
        "dasktc bench questions --quick",
        "dasktc bench questions --backend cuda --scale 20",
    ),
)
@option(
    "--backend",
    group=METHOD,
    everyday=True,
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Backend that counts.",
)
@option("--scale", group=INPUT, everyday=True, type=int, help="Only a Kronecker graph of this scale.")
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=5,
    show_default=True,
    help="Turns; the median is told.",
    details="They follow a warm-up.",
)
@option("--quick", group=MEASURED, everyday=True, is_flag=True, help="Two tiny graphs, one turn.")
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
    examples=(
        "dasktc bench soak --minutes 10",
        "dasktc bench soak --minutes 600 --workers 4 --work-dir scratch",
    ),
)
@option(
    "--minutes",
    group=MEASURED,
    everyday=True,
    type=float,
    default=60.0,
    show_default=True,
    help="Duration.",
)
@option(
    "--workers",
    group=PLACE,
    everyday=True,
    type=int,
    default=2,
    show_default=True,
    help="Worker processes.",
)
@option(
    "--backend",
    group=METHOD,
    everyday=True,
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Backend that counts.",
)
@option(
    "--seed",
    group=MEASURED,
    everyday=True,
    type=int,
    help="Seed of graphs, options and faults.",
    details="Default: drawn, and told.",
)
@option(
    "--work-dir",
    group=MEMORY,
    everyday=True,
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
    examples=(
        "dasktc bench kills --kills 5 --scale 20",
        "dasktc bench kills --backend cuda --workers 4",
    ),
)
@option(
    "--kills",
    group=MEASURED,
    everyday=True,
    type=int,
    default=50,
    show_default=True,
    help="Workers to kill in all.",
)
@option(
    "--scale",
    group=INPUT,
    everyday=True,
    type=int,
    default=26,
    show_default=True,
    help="Of the Kronecker graph.",
)
@option(
    "--workers",
    group=PLACE,
    everyday=True,
    type=int,
    default=2,
    show_default=True,
    help="Worker processes.",
)
@option(
    "--backend",
    group=METHOD,
    everyday=True,
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="Backend that counts.",
)
@option(
    "--protocol",
    group=PLACE,
    everyday=True,
    type=click.Choice(PROTOCOLS),
    default="auto",
    show_default=True,
    help="Protocol between workers.",
)
@option(
    "--seed",
    group=MEASURED,
    everyday=True,
    type=int,
    help="Seed of moments and workers.",
    details="Default: drawn, and told.",
)
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
    examples=(
        "dasktc bench choose --quick",
        "dasktc bench choose --graphs graphs --backend cuda",
    ),
)
@option("--graphs", group=INPUT, everyday=True, metavar="DIR", help="Folder with real graphs, too.")
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=5,
    show_default=True,
    help="Runs; the median is told.",
)
@option("--quick", group=MEASURED, everyday=True, is_flag=True, help="Two small graphs, one run.")
@option(
    "--backend",
    group=METHOD,
    everyday=True,
    type=click.Choice(BACKENDS),
    default="cpu",
    show_default=True,
    help="Backend that counts.",
)
@reporting
def bench_choose(as_json: bool, **options: Any) -> None:
    """Compare auto's choice with every kernel, order and partition."""
    from dasktc.bench.choose import run

    _measure(run, as_json, **options)


@bench.command(
    "scaling",
    section="Suites",
    examples=(
        "dasktc bench scaling --quick",
        "dasktc bench scaling --scale 20 --workers 1,2,4 --plot scaling.svg",
    ),
)
@option(
    "--graphs",
    group=INPUT,
    everyday=True,
    default="kronecker,random,grid3d,theory",
    metavar="NAME,...",
    help="Graphs to count; default: all four.",
    details="kronecker, random, grid3d, theory.",
)
@option(
    "--scale",
    group=INPUT,
    everyday=True,
    type=int,
    default=18,
    show_default=True,
    help="Of the Kronecker graph.",
)
@option(
    "--vertices",
    group=INPUT,
    everyday=True,
    type=int,
    default=1 << 20,
    show_default=True,
    help="Of the random graph.",
)
@option(
    "--edges",
    group=INPUT,
    everyday=True,
    type=int,
    default=1 << 23,
    show_default=True,
    help="Of the random graph.",
)
@option("--side", group=INPUT, everyday=True, type=int, default=128, show_default=True, help="Of the torus.")
@option(
    "--stars",
    group=INPUT,
    everyday=True,
    default="25,81,64",
    show_default=True,
    help="Leaves of its stars.",
)
@option(
    "--most",
    group=PLACE,
    everyday=True,
    type=int,
    default=1024,
    show_default=True,
    help="Most simulated workers.",
)
@option(
    "--workers",
    group=PLACE,
    everyday=True,
    metavar="N,N,...",
    help="Numbers of real workers.",
    details="Default: the number of cores, or of GPUs.",
)
@option(
    "--runs",
    group=MEASURED,
    everyday=True,
    type=int,
    default=3,
    show_default=True,
    help="Runs; the shortest is told.",
)
@option(
    "--rate-network",
    group=PLACE,
    everyday=True,
    metavar="BYTES",
    help="Received per second, e.g. 1.1GB.",
    details="By a simulated worker. Default: 1.1GB.",
)
@option(
    "--quick",
    group=MEASURED,
    everyday=True,
    is_flag=True,
    help="Small graphs, few workers, one run.",
    details="64 simulated workers.",
)
@option(
    "--overhead",
    group=MEASURED,
    everyday=True,
    is_flag=True,
    help="Only Dask's time per task.",
    details="In a real count of more than 10 s.",
)
@option(
    "--plot",
    "plots",
    group=OUTPUT,
    everyday=True,
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
