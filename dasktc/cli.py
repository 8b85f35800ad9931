"""The command line: options in, one number (or one JSON object) out.

Exit 0 done, 2 bad usage or bad input, 130 Ctrl-C, 1 anything else. An error is one line on stderr.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from dasktc.clusters import SAMPLES, sample
from dasktc.errors import DasktcError, InputError
from dasktc.interrupts import INTERRUPTED, dask_hushed, one_at_a_time, was_pressed
from dasktc.options import ASSIGNMENTS, BACKENDS, PARTITIONS, REORDERS
from dasktc.tasks import RETRIES, WORKER_SECONDS

__all__ = ["cli", "main"]

Command = Callable[..., Any]
RUNNING = ("workers", "scheduler", "scheduler_file", "retries", "worker_timeout", "security")
"""Keywords of `connect` that the options of running become."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    with dask_hushed(given), one_at_a_time():
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        cli.main(args=given, prog_name="dasktc", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return _fail(f"{error.format_message()} See `dasktc --help`.", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        return 1
    except Exception as error:
        if was_pressed():
            return _interrupted()
        if "--debug" in given:
            raise
        if isinstance(error, DasktcError):
            return _fail(str(error), error.exit_code)
        return _fail(f"{type(error).__name__}: {error}: not expected; run again with --debug and report it", 1)
    return 0


def _terminated(number: int, frame: Any) -> None:
    """End as after Ctrl-C, so that hidden files go and workers end."""
    raise SystemExit(128 + number)


def _interrupted() -> int:
    return _fail("interrupted: a count without --checkpoint begins anew; with it, finished tasks are kept", INTERRUPTED)


def _fail(text: str, code: int) -> int:
    click.echo("dasktc: error: " + " ".join(text.split()), err=True)
    return code


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add options in the order in which help shows them."""
    return lambda command: functools.reduce(lambda done, option: option(done), reversed(options), command)


def _workers(context: click.Context, option: click.Parameter, text: str | None) -> int | str | None:
    """A number, or "all"."""
    try:
        return text if text in (None, "all") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a whole number nor 'all'.") from None


class KernelName(click.ParamType[str]):
    """`auto`, or a kernel of any backend: looked up when asked for, so that one registered later is among them."""

    name = "kernel"

    def _choice(self) -> click.Choice[str]:
        from dasktc.backend import kernel_names

        return click.Choice(("auto", *kernel_names()))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what no backend has."""
        return "auto" if value == "auto" else self._choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """All names."""
        return self._choice().get_metavar(param, ctx)


reading = _options(
    click.option("--format", metavar="NAME", help="Format of SOURCE, where its content does not tell."),
    click.option("--columns", metavar="A,B", help="The two id columns, by name or position."),
    click.option("--ids", type=click.Choice(["auto", "int", "text"]), default="auto", help="Type of ids."),
    click.option("--skip", type=int, metavar="LINES", help="Leading lines to pass over; 0: the first is data."),
)
counting = _options(
    click.option("--backend", type=click.Choice(BACKENDS), default="auto", help="What counts."),
    click.option("--kernel", type=KernelName(), default="auto", help="How a block triple is counted."),
    click.option("--partition", type=click.Choice(PARTITIONS), default="auto", help="Which block triples."),
    click.option("--assign", type=click.Choice(ASSIGNMENTS), default="random", help="Vertices to the parts of proxy."),
    click.option("--parts", type=int, metavar="n", help="n of hash2d and vertical: n³ tasks; parts of proxy."),
    click.option("--splits", type=int, metavar="m", help="Splits of each task, of rows or edges."),
    click.option("--reorder", type=click.Choice(REORDERS), default="auto", help="Order of vertex ids."),
    click.option("--memory", metavar="BYTES", help="What data may take on one worker, beside Python itself, e.g. 4GB."),
)
running = _options(
    click.option("--workers", callback=_workers, metavar="N", help="Start N workers, or all. Default: this process."),
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
spilling = _options(
    click.option("--work-dir", metavar="DIR", help="Where files of a count beyond --memory stand for the while."),
    click.option("--host-memory", metavar="BYTES", help="Of the host, for what a GPU's --memory has no room for."),
)
printing = _options(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("--quiet", is_flag=True, help="No progress; only the number."),
    click.option("--debug", is_flag=True, help="Show where an error comes from."),
)


class OneLine(click.Group):
    """Commands that Ctrl-C ends without the empty line that click prints first, which only a terminal needs."""

    def invoke(self, context: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as error:
            if sys.stderr.isatty():
                click.echo(err=True)  # the terminal has written ^C
            raise click.Abort from error


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="dasktc")
def cli() -> None:
    """Exact triangle counting of graphs of any size, with Dask."""


@cli.command()
@click.argument("source", nargs=-1, required=True)
@counting
@spilling
@reading
@running
@click.option(
    "--verify",
    type=click.FloatRange(0, 1),
    is_flag=False,
    flag_value=1.0,
    default=0.0,
    metavar="[SHARE]",
    help="Count this share of the tasks again with another kernel (alone: all).",
)
@click.option("--seed", type=int, default=0, help="Of verified tasks and of random parts.")
@click.option("--checkpoint", metavar="DIR", help="Keep finished tasks there; the same command goes on from them.")
@click.option("--per-vertex", metavar="OUT", help="Write every vertex's triangles: .parquet, .csv or .txt.")
@click.option("--per-edge", metavar="OUT", help="Write every edge's triangles: .parquet, .csv or .txt.")
@click.option("--report", metavar="OUT.html", help="Write a page about the count.")
@printing
def count(source: tuple[str, ...], as_json: bool, quiet: bool, debug: bool, **options: Any) -> None:
    """Count the triangles of SOURCE: files, folders, globs or URLs of one graph."""
    from dasktc.triangles import triangle_count

    options = _secured(options)
    options["columns"] = _columns(options["columns"])
    with _progress(quiet) as progress:
        result = triangle_count(list(source), progress=progress, **options)
    if as_json:
        click.echo(json.dumps(result.to_dict()))
    else:
        click.echo(str(result.triangles) if quiet else str(result))


@cli.command()
@click.argument("source", nargs=-1)
@click.option("--vertices", type=int, metavar="V", help="Instead of SOURCE: a graph of this size.")
@click.option("--edges", type=int, metavar="E", help="Its undirected edges.")
@click.option("--wedges", type=int, metavar="W", help="Its oriented wedges, from which probes are estimated.")
@click.option("--gpus", type=int, metavar="G", help="Plan for so many GPUs instead of --workers.")
@click.option("--rate-edges", type=float, metavar="R", help="Index edges that a worker visits in a second.")
@click.option("--rate-probes", type=float, metavar="R", help="Elements that a worker tests in a second.")
@click.option("--rate-network", metavar="BYTES", help="What a worker receives in a second, e.g. 45GB.")
@click.option("--overhead", type=float, metavar="SECONDS", help="The scheduler's time for a task.")
@counting
@spilling
@reading
@running
@printing
def plan(source: tuple[str, ...], as_json: bool, quiet: bool, debug: bool, **options: Any) -> None:
    """Show what counting SOURCE would run: n, m, tasks, bytes, whether it fits, and about how long."""
    from dasktc.planning import Means, predict_size, predict_source

    means = Means(**{name: options.pop(name) for name in Means.__dataclass_fields__})
    options = _secured(options)
    options["columns"] = _columns(options["columns"])
    vertices, edges = options.pop("vertices"), options.pop("edges")
    if bool(source) == (vertices is not None and edges is not None) or (vertices is None) != (edges is None):
        raise click.UsageError("plan takes either SOURCE, or both --vertices and --edges.")
    with _progress(quiet) as progress:
        if source:
            found = predict_source(list(source), means=means, progress=progress, **options)
        else:
            found = predict_size(vertices, edges, means=means, **options)
    click.echo(json.dumps(found.to_dict()) if as_json else str(found))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, hidden=True)
def info(as_json: bool, debug: bool) -> None:
    """Show versions and devices, what is missing, and how to get it."""
    from dasktc.info import collect, describe

    found = collect()
    click.echo(json.dumps(found) if as_json else describe(found))


@cli.command()
@click.argument("kind", type=click.Choice(list(SAMPLES)))
def cluster(kind: str) -> None:
    """Print a sample that starts a Dask cluster and counts on it, or (tls) makes certificates for one."""
    click.echo(sample(kind), nl=False)


@cli.group()
def bench() -> None:
    """Measure dasktc, against what else is installed."""


@bench.command("papers")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--quick", is_flag=True, help="Small graphs: two minutes on a laptop, at most.")
@click.option("--graphs", metavar="DIR", help="Folder with soc-Slashdot0902, amazon0601, ego-Twitter, cnr-2000.")
@click.option("--out", metavar="DIR", help="Folder for plots and page.  [default: bench-papers]")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="What counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_papers(as_json: bool, debug: bool, **options: Any) -> None:
    """What TRUST, H-INDEX, Fox et al., LSTC and TC-Stream show, measured again, and whether it agrees.

    FIGURE is a name such as trust-fig4 or lstc-table3, or a paper's; without any all are run.
    """
    from dasktc.bench.papers.run import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


@bench.command("cpu")
@click.option("--scale", type=int, default=20, show_default=True, help="Of the Kronecker graph.")
@click.option("--graphs", metavar="DIR", help="Folder with amazon0601, cnr-2000 and ego-Twitter.")
@click.option("--runs", type=int, default=3, show_default=True, help="Medians of so many.")
@click.option("--quick", is_flag=True, help="Scale 14, one run.")
@click.option("--gapbs", metavar="PATH", help="GAPBS' tc, where it is installed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_cpu(as_json: bool, debug: bool, **options: Any) -> None:
    """Kernels, workers, files and memory on the CPU: ratios, from one run on one machine."""
    from dasktc.bench.cpu import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


@bench.command("gpu")
@click.option("--graphs", metavar="DIR", help="Folder with ego-Facebook and amazon0601.")
@click.option("--runs", type=int, default=5, show_default=True, help="Medians of so many, after a warm-up.")
@click.option("--quick", is_flag=True, help="Tiny graphs, one run: whether it works.")
@click.option("--kernel", default="hub", show_default=True, help="A kernel of the CUDA backend.")
@click.option("--only", multiple=True, metavar="NAME", help="Graphs whose name begins so; may be repeated.")
@click.option("--workers", callback=_workers, metavar="N", help="Also on clusters of 1, 2, 4, ... N GPUs, or all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_gpu(as_json: bool, debug: bool, **options: Any) -> None:
    """Kernel and preparation on one GPU, and counting on several: milliseconds, counts checked."""
    from dasktc.bench.gpu import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


@bench.command("ooc")
@click.option("--scale", type=int, default=26, show_default=True, help="Of the Kronecker graph.")
@click.option("--memory", multiple=True, default=("16GB",), show_default=True, help="Device memory; may be repeated.")
@click.option("--host-memory", metavar="BYTES", help="Of the host, for what leaves the device; 1: files at once.")
@click.option("--work-dir", metavar="DIR", help="Where files stand for the while.")
@click.option("--partition", type=click.Choice(PARTITIONS), default="auto", show_default=True, help="Of limited runs.")
@click.option("--parts", type=int, metavar="n", help="Of limited runs.")
@click.option("--kernel", default="hub", show_default=True, help="A kernel of the CUDA backend.")
@click.option("--runs", type=int, default=3, show_default=True, help="Medians of so many, after a warm-up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_ooc(as_json: bool, debug: bool, **options: Any) -> None:
    """Counts within --memory on one GPU, against one that has all of it: seconds, peak, what of copying is hidden."""
    from dasktc.bench.ooc import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


@bench.command("choose")
@click.option("--graphs", metavar="DIR", help="Folder with real graphs to add.")
@click.option("--runs", type=int, default=5, show_default=True, help="Medians of so many.")
@click.option("--quick", is_flag=True, help="Two small graphs, one run.")
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True, help="What counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_choose(as_json: bool, debug: bool, **options: Any) -> None:
    """What auto chooses, against every fixed choice of kernel, order and planner."""
    from dasktc.bench.choose import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


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
@click.option("--plot", "plots", multiple=True, metavar="OUT", help="Draw it: .png, .svg, .pdf or .html; repeatable.")
@counting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bench_scaling(as_json: bool, debug: bool, **options: Any) -> None:
    """Speed-up and balance from 1 to 1,024 workers, simulated from measured tasks; real ones beside them."""
    from dasktc.bench.scaling import run

    report = run(**options, say=lambda text: click.echo(text, err=True))
    click.echo(json.dumps(report.to_dict()) if as_json else str(report))


@cli.group()
def generate() -> None:
    """Write a graph whose edges, and often triangles, are known: OUT is .parquet or .txt."""


def _generator(*options: Callable[[Any], Any]) -> Callable[[Command], Any]:
    """Make a `generate` command out of a function that returns a source."""

    def command(make: Command) -> Any:
        @functools.wraps(make)
        def write(
            out: str,
            force: bool,
            as_json: bool,
            debug: bool,
            **options: Any,
        ) -> None:
            from dasktc.cluster import connect
            from dasktc.write import write_edges

            options = _secured(options)
            source = make(**{name: value for name, value in options.items() if name not in RUNNING})
            with connect(**{name: options[name] for name in RUNNING}) as tasks:
                edges = write_edges(source, out, tasks, force)
            facts = {"out": out, "graph": source.name, "edges": edges, "triangles": source.triangles}
            known = "" if source.triangles is None else f", {source.triangles:,} triangles"
            click.echo(json.dumps(facts) if as_json else f"{out}: {source.name}, {edges:,} edges{known}")

        common = (
            click.argument("out"),
            *options,
            running,
            click.option("--force", is_flag=True, help="Replace OUT if it exists."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
            click.option("--debug", is_flag=True, help="Show where an error comes from."),
        )
        return generate.command()(_options(*common)(write))

    return command


@_generator(
    click.option("--scale", type=int, default=20, show_default=True, help="2^SCALE vertices."),
    click.option("--edge-factor", type=int, default=16, show_default=True, help="Edges a vertex."),
    click.option("--seed", type=int, default=1, show_default=True),
)
def kronecker(**recipe: Any) -> Any:
    """Write a Kronecker graph (0.57, 0.19, 0.19)."""
    from dasktc import generate

    return generate.kronecker(**recipe)


@_generator(
    click.option("--vertices", type=int, default=2**27, show_default=True, help="A power of two."),
    click.option("--edges", type=int, default=10**9, show_default=True),
    click.option("--seed", type=int, default=1, show_default=True),
)
def rmat(**recipe: Any) -> Any:
    """Write an R-MAT graph (0.5, 0.1, 0.1); at its defaults the TRUST paper's RM."""
    from dasktc import generate

    return generate.rmat(**recipe)


@_generator(
    click.option("--vertices", type=int, default=10**8, show_default=True),
    click.option("--edges", type=int, default=10**9, show_default=True, help="A multiple of the vertices."),
)
def random(**recipe: Any) -> Any:
    """Write a uniform random graph; at its defaults the TRUST paper's RA."""
    from dasktc import generate

    return generate.random_graph(**recipe)


@_generator(click.option("--side", type=int, default=464, show_default=True, help="SIDE³ vertices."))
def grid3d(**recipe: Any) -> Any:
    """Write a 3D torus; at its default the TRUST paper's 3D."""
    from dasktc import generate

    return generate.grid3d(**recipe)


@_generator(
    click.option("--stars", default="25,81,256", show_default=True, metavar="M,M,...", help="Leaves of each star."),
    click.option("--kind", type=click.Choice(["B1k", "B2k"]), default="B1k", show_default=True),
)
def theory(stars: str, kind: Any) -> Any:
    """Write a Kronecker product of stars, whose triangles arithmetic knows."""
    from dasktc import generate

    try:
        leaves = tuple(int(m) for m in stars.split(","))
    except ValueError:
        raise InputError(f"--stars {stars!r} is not a list of whole numbers: give leaves a star, as in 25,81") from None
    return generate.theory(leaves, kind)


def _secured(options: dict[str, Any]) -> dict[str, Any]:
    """The options with `security` instead of three names of files."""
    from dasktc.security import security_of

    files = [options.pop(name) for name in ("tls_ca_file", "tls_cert", "tls_key")]
    return options | {"security": security_of(*files)}


def _columns(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on stderr; none when that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import logging

    from tqdm import tqdm

    logging.basicConfig(format="%(message)s")
    logging.getLogger("dasktc").setLevel(logging.INFO)

    with tqdm(bar_format="{desc:<10}{bar:30} {n_fmt}/{total_fmt} {elapsed}", leave=False, file=sys.stderr) as bar:

        def show(stage: str, done: int, total: int) -> None:
            bar.total, bar.n = total, done
            bar.set_description_str(stage)

        yield show
