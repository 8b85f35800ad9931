"""`dasktc bench`: each benchmark is a module that is imported when its command runs."""

from __future__ import annotations

import json
from typing import Any

import click

from dasktc.cli.options import NameOf, counting, reporting
from dasktc.options import BACKENDS, PROTOCOLS
from dasktc.registry import SCHEMES

__all__ = ["bench"]


@click.group()
def bench() -> None:
    """Measure dasktc, against what else is installed."""


def _say(text: str) -> None:
    """Tell what is being measured."""
    click.echo(text, err=True)


def _print(report: Any, as_json: bool) -> None:
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


def _figures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: names of figures and papers with this prefix."""
    from dasktc.bench.papers.run import FIGURES

    names = {*FIGURES, *(name.split("-")[0] for name in FIGURES)}
    return sorted(name for name in names if name.startswith(incomplete))


@bench.command("papers")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...", shell_complete=_figures)
@click.option("--quick", is_flag=True, help="Small graphs: two minutes on a laptop, at most.")
@click.option("--graphs", metavar="DIR", help="Folder with soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000.")
@click.option("--out", metavar="DIR", help="Folder for plots and page.  [default: bench-papers]")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="What counts.")
@reporting
def bench_papers(as_json: bool, **options: Any) -> None:
    """What TRUST, H-INDEX, Fox et al., LSTC and TC-Stream show, measured again, and whether it agrees.

    FIGURE is a name such as trust-fig4 or lstc-table3, or a paper's; without any all are run.
    """
    from dasktc.bench.papers.run import run

    _print(run(**options, say=_say), as_json)


@bench.command("cpu")
@click.option("--scale", type=int, default=20, show_default=True, help="Of the Kronecker graph.")
@click.option("--graphs", metavar="DIR", help="Folder with amazon0601, cnr-2000 and ego-Twitter.")
@click.option("--runs", type=int, default=3, show_default=True, help="Medians of so many.")
@click.option("--quick", is_flag=True, help="Scale 14, one run, 3 turns of one worker and two instead of 15.")
@click.option("--gapbs", metavar="PATH", help="GAPBS' tc, where it is installed.")
@reporting
def bench_cpu(as_json: bool, **options: Any) -> None:
    """Kernels, workers, files and memory on the CPU: ratios, from one run on one machine."""
    from dasktc.bench.cpu import run

    _print(run(**options, say=_say), as_json)


@bench.command("gpu")
@click.option("--graphs", metavar="DIR", help="Folder with ego-Facebook and amazon0601.")
@click.option("--runs", type=int, default=5, show_default=True, help="Medians of so many, after a warm-up.")
@click.option("--quick", is_flag=True, help="Tiny graphs, one run: whether it works.")
@click.option("--kernel", default="auto", show_default=True, help="A kernel of the CUDA backend.")
@click.option("--only", multiple=True, metavar="NAME", help="Only the graph of this name; may be repeated.")
@click.option("--workers", metavar="N,N,...", help="Also on clusters of so many GPUs, or all.")
@click.option("--profile", metavar="OUT.html", help="With --workers: Dask's performance report of the last cluster.")
@click.option("--files", metavar="DIR", help="Also write graphs to files there, and read them.")
@reporting
def bench_gpu(as_json: bool, **options: Any) -> None:
    """Kernel and preparation on one GPU, and counting on several: milliseconds, counts checked."""
    from dasktc.bench.gpu import run

    _print(run(**options, say=_say), as_json)


@bench.command("ooc")
@click.option("--scale", type=int, multiple=True, default=(26, 27), show_default=True, help="May be repeated.")
@click.option("--memory", multiple=True, default=("16GB",), show_default=True, help="Device memory; may be repeated.")
@click.option("--host-memory", metavar="BYTES", help="Of the host, for what leaves the device; 1: files at once.")
@click.option("--work-dir", metavar="DIR", help="Where files stand for the while.")
@click.option("--partition", type=NameOf(SCHEMES, "auto"), default="auto", show_default=True, help="Of limited runs.")
@click.option("--parts", type=int, metavar="n", help="Of limited runs.")
@click.option("--kernel", default="auto", show_default=True, help="A kernel of the CUDA backend.")
@click.option("--runs", type=int, default=3, show_default=True, help="Medians of so many, after a warm-up.")
@reporting
def bench_ooc(as_json: bool, **options: Any) -> None:
    """Counts within --memory on one GPU, against one that has all of it: seconds, peak, what of copying is hidden."""
    from dasktc.bench.ooc import run

    _print(run(**options, say=_say), as_json)


@bench.command("questions")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What counts.")
@click.option("--scale", type=int, help="Of a Kronecker graph that takes the place of all others.")
@click.option("--runs", type=int, default=5, show_default=True, help="Medians of so many turns, after a warm-up.")
@click.option("--quick", is_flag=True, help="Two tiny graphs, one turn.")
@reporting
def bench_questions(as_json: bool, **options: Any) -> None:
    """Triangles per vertex and per edge, clustering and lists beside the count, and beside other libraries."""
    from dasktc.bench.questions import run

    _print(run(**options, say=_say), as_json)


@bench.command("soak")
@click.option("--minutes", type=float, default=60.0, show_default=True, help="How long.")
@click.option("--workers", type=int, default=2, show_default=True, help="Processes that count, and are killed.")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What counts.")
@click.option("--seed", type=int, help="Of graphs, options and troubles.  [default: drawn, and reported]")
@click.option("--work-dir", metavar="DIR", help="Where files stand; one of at most 1 GiB is filled and freed, too.")
@reporting
def bench_soak(as_json: bool, **options: Any) -> None:
    """Count changing graphs on a cluster whose workers are killed, stopped and slowed: 0 wrong, memory flat."""
    from dasktc.bench.soak import run

    _print(run(**options, say=_say), as_json)


@bench.command("kills")
@click.option("--kills", type=int, default=50, show_default=True, help="Until so many workers were killed.")
@click.option("--scale", type=int, default=26, show_default=True, help="Of the Kronecker graph.")
@click.option("--workers", type=int, default=2, show_default=True, help="Processes that count, and are killed.")
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True, help="What counts.")
@click.option("--protocol", type=click.Choice(PROTOCOLS), default="auto", show_default=True, help="Between workers.")
@click.option("--seed", type=int, help="Of moments and workers.  [default: drawn, and reported]")
@reporting
def bench_kills(as_json: bool, **options: Any) -> None:
    """Count a graph again and again while workers are killed: every count is exact, every worker comes back."""
    from dasktc.bench.kills import run

    _print(run(**options, say=_say), as_json)


@bench.command("choose")
@click.option("--graphs", metavar="DIR", help="Folder with real graphs to add.")
@click.option("--runs", type=int, default=5, show_default=True, help="Medians of so many.")
@click.option("--quick", is_flag=True, help="Two small graphs, one run.")
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True, help="What counts.")
@reporting
def bench_choose(as_json: bool, **options: Any) -> None:
    """What auto chooses, against every fixed choice of kernel, order and scheme."""
    from dasktc.bench.choose import run

    _print(run(**options, say=_say), as_json)


@bench.command("scaling")
@click.option("--graphs", default="kronecker,random,grid3d,theory", show_default=True, help="What to count.")
@click.option("--scale", type=int, default=18, show_default=True, help="Of the Kronecker graph.")
@click.option("--vertices", type=int, default=1 << 20, show_default=True, help="Of the random graph.")
@click.option("--edges", type=int, default=1 << 23, show_default=True, help="Of the random graph.")
@click.option("--side", type=int, default=128, show_default=True, help="Of the torus.")
@click.option("--stars", default="25,81,64", show_default=True, help="Of the theory graph.")
@click.option("--most", type=int, default=1024, show_default=True, help="Simulated workers.")
@click.option("--workers", metavar="N,N,...", help="Real workers. Default: as many as there are cores, or GPUs.")
@click.option("--runs", type=int, default=3, show_default=True, help="The least of so many.")
@click.option("--rate-network", metavar="BYTES", help="What a simulated worker receives in a second.  [default: 1.1GB]")
@click.option("--quick", is_flag=True, help="Small graphs, 64 simulated workers, one run.")
@click.option("--overhead", is_flag=True, help="Only what Dask takes a task, in a real count of more than 10 s.")
@click.option("--plot", "plots", multiple=True, metavar="OUT", help="Draw it: .png, .svg, .pdf or .html; repeatable.")
@counting
@reporting
def bench_scaling(as_json: bool, **options: Any) -> None:
    """Speed-up and balance from 1 to 1,024 workers, simulated from measured tasks; real ones beside them."""
    from dasktc.bench.scaling import run

    _print(run(**options, say=_say), as_json)
