"""`dasktc bench`: one command per benchmark, whose module is imported when the command runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from dasktc.bench.report import Report, Section
from dasktc.cli.options import NameOf, counting, reporting
from dasktc.options import BACKENDS, PROTOCOLS
from dasktc.registry import SCHEMES

__all__ = ["bench"]


@click.group()
def bench() -> None:
    """Measure dasktc, and compare it with the other tools that are installed."""


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


@bench.command("papers")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...", shell_complete=_figures)
@click.option("--quick", is_flag=True, help="Small graphs: at most two minutes on a laptop.")
@click.option("--graphs", metavar="DIR", help="Folder with soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000.")
@click.option("--out", metavar="DIR", help="Folder for the plots and the page.  [default: bench-papers]")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Backend that counts.")
@reporting
def bench_papers(as_json: bool, **options: Any) -> None:
    """Measure figures of TRUST, H-INDEX, Fox et al., LSTC and TC-Stream again, and tell whether they agree.

    FIGURE is the name of a figure, such as trust-fig4 or lstc-table3, or of a paper. Default: all figures.
    """
    from dasktc.bench.papers.run import run

    _measure(run, as_json, **options)


@bench.command("cpu")
@click.option("--scale", type=int, default=20, show_default=True, help="Scale of the Kronecker graph.")
@click.option("--graphs", metavar="DIR", help="Folder with amazon0601, cnr-2000 and ego-Twitter.")
@click.option("--runs", type=int, default=3, show_default=True, help="Number of runs; medians are reported.")
@click.option("--quick", is_flag=True, help="Scale 14, one run, and 3 instead of 15 turns of one and two workers.")
@click.option("--gapbs", metavar="PATH", help="Path of GAPBS' program tc, to compare with.")
@reporting
def bench_cpu(as_json: bool, **options: Any) -> None:
    """Compare kernels, workers, files and memory on the CPU: ratios from one run on one machine."""
    from dasktc.bench.cpu import run

    _measure(run, as_json, **options)


@bench.command("gpu")
@click.option("--graphs", metavar="DIR", help="Folder with ego-Facebook and amazon0601.")
@click.option(
    "--runs", type=int, default=5, show_default=True, help="Number of runs after a warm-up; medians are reported."
)
@click.option("--quick", is_flag=True, help="Tiny graphs, one run: a smoke test.")
@click.option("--kernel", default="auto", show_default=True, help="A kernel of the CUDA backend.")
@click.option("--only", multiple=True, metavar="NAME", help="Measure only the graph of this name; may be repeated.")
@click.option("--workers", metavar="N,N,...", help="Measure clusters of N GPUs, too; all: of all GPUs.")
@click.option(
    "--profile", metavar="OUT.html", help="With --workers: write Dask's performance report of the last cluster."
)
@click.option("--files", metavar="DIR", help="Also write graphs to files in DIR and measure reading them.")
@click.option(
    "--rival",
    multiple=True,
    metavar="NAME=PROGRAM",
    help="Count the same graphs in turns with your build of TRUST, H-INDEX, TriCore, LSTC, GroupTC-BS or GroupTC-HS; "
    "any other program gets the path of a text edge list and prints the number. May be repeated.",
)
@reporting
def bench_gpu(as_json: bool, **options: Any) -> None:
    """Measure kernels and preparation on one GPU, and counts on several, in milliseconds; counts are checked."""
    from dasktc.bench.gpu import run

    _measure(run, as_json, **options)


@bench.command("ooc")
@click.option(
    "--scale",
    type=int,
    multiple=True,
    default=(26, 27),
    show_default=True,
    help="Scale of a Kronecker graph; may be repeated.",
)
@click.option(
    "--memory", multiple=True, default=("16GB",), show_default=True, help="Limit of device memory; may be repeated."
)
@click.option("--host-memory", metavar="BYTES", help="Host memory for data beyond --memory; 1: files only.")
@click.option("--work-dir", metavar="DIR", help="Folder for temporary files.")
@click.option(
    "--partition",
    type=NameOf(SCHEMES, "auto"),
    default="auto",
    show_default=True,
    help="Partition of runs with a memory limit.",
)
@click.option("--parts", type=int, metavar="n", help="n of runs with a memory limit.")
@click.option("--kernel", default="auto", show_default=True, help="A kernel of the CUDA backend.")
@click.option(
    "--runs", type=int, default=3, show_default=True, help="Number of runs after a warm-up; medians are reported."
)
@reporting
def bench_ooc(as_json: bool, **options: Any) -> None:
    """Compare counts within --memory on one GPU with counts that use all of it: seconds, peak, hidden copying."""
    from dasktc.bench.ooc import run

    _measure(run, as_json, **options)


@bench.command("questions")
@click.option(
    "--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Backend that counts."
)
@click.option("--scale", type=int, help="Measure only a Kronecker graph of this scale.")
@click.option(
    "--runs", type=int, default=5, show_default=True, help="Number of turns after a warm-up; medians are reported."
)
@click.option("--quick", is_flag=True, help="Two tiny graphs, one turn.")
@reporting
def bench_questions(as_json: bool, **options: Any) -> None:
    """Compare triangles per vertex and edge, clustering and lists with the count and with other libraries."""
    from dasktc.bench.questions import run

    _measure(run, as_json, **options)


@bench.command("soak")
@click.option("--minutes", type=float, default=60.0, show_default=True, help="Duration.")
@click.option("--workers", type=int, default=2, show_default=True, help="Worker processes, which are killed meanwhile.")
@click.option(
    "--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Backend that counts."
)
@click.option("--seed", type=int, help="Seed of graphs, options and faults.  [default: drawn, and reported]")
@click.option(
    "--work-dir", metavar="DIR", help="Folder for files; one of at most 1 GiB is also filled and freed as a fault."
)
@reporting
def bench_soak(as_json: bool, **options: Any) -> None:
    """Count changing graphs on a cluster whose workers are killed, stopped and slowed: no wrong count, flat memory."""
    from dasktc.bench.soak import run

    _measure(run, as_json, **options)


@bench.command("kills")
@click.option(
    "--kills", type=int, default=50, show_default=True, help="Number of workers to kill before the benchmark ends."
)
@click.option("--scale", type=int, default=26, show_default=True, help="Scale of the Kronecker graph.")
@click.option("--workers", type=int, default=2, show_default=True, help="Worker processes, which are killed meanwhile.")
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True, help="Backend that counts.")
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), default="auto", show_default=True, help="Protocol between workers."
)
@click.option("--seed", type=int, help="Seed of the moments and the workers.  [default: drawn, and reported]")
@reporting
def bench_kills(as_json: bool, **options: Any) -> None:
    """Count one graph repeatedly while workers are killed: every count must be exact, every worker come back."""
    from dasktc.bench.kills import run

    _measure(run, as_json, **options)


@bench.command("choose")
@click.option("--graphs", metavar="DIR", help="Folder with real graphs to measure, too.")
@click.option("--runs", type=int, default=5, show_default=True, help="Number of runs; medians are reported.")
@click.option("--quick", is_flag=True, help="Two small graphs, one run.")
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True, help="Backend that counts.")
@reporting
def bench_choose(as_json: bool, **options: Any) -> None:
    """Compare the choice of auto with every fixed kernel, order and scheme."""
    from dasktc.bench.choose import run

    _measure(run, as_json, **options)


@bench.command("scaling")
@click.option("--graphs", default="kronecker,random,grid3d,theory", show_default=True, help="Graphs to count.")
@click.option("--scale", type=int, default=18, show_default=True, help="Scale of the Kronecker graph.")
@click.option("--vertices", type=int, default=1 << 20, show_default=True, help="Vertices of the random graph.")
@click.option("--edges", type=int, default=1 << 23, show_default=True, help="Edges of the random graph.")
@click.option("--side", type=int, default=128, show_default=True, help="Side of the torus.")
@click.option("--stars", default="25,81,64", show_default=True, help="Leaves of each star of the theory graph.")
@click.option("--most", type=int, default=1024, show_default=True, help="Largest number of simulated workers.")
@click.option("--workers", metavar="N,N,...", help="Numbers of real workers. Default: the number of cores, or of GPUs.")
@click.option("--runs", type=int, default=3, show_default=True, help="Number of runs; the shortest is reported.")
@click.option(
    "--rate-network", metavar="BYTES", help="Bytes per second that a simulated worker receives.  [default: 1.1GB]"
)
@click.option("--quick", is_flag=True, help="Small graphs, 64 simulated workers, one run.")
@click.option("--overhead", is_flag=True, help="Measure only Dask's time per task, in a real count of more than 10 s.")
@click.option(
    "--plot", "plots", multiple=True, metavar="OUT", help="Plot to OUT: .png, .svg, .pdf or .html; may be repeated."
)
@counting
@reporting
def bench_scaling(as_json: bool, **options: Any) -> None:
    """Simulate speed-up and balance of 1 to 1,024 workers from measured tasks, beside real workers."""
    from dasktc.bench.scaling import run

    _measure(run, as_json, **options)
