"""The command line: takes options, prints one number (or one JSON object).

Exit codes: 0 done, 2 bad usage or bad input, 1 any other error, 128 + N for signal N: 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP, 141 if nobody reads the output any more. An error is one line on stderr; after Ctrl-C a line that says so
comes at once, before it, and a second Ctrl-C ends the process.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TextIO

import click

from dasktc.cli.bench import bench
from dasktc.cli.cluster_samples import SAMPLES
from dasktc.cli.generate import generate
from dasktc.cli.help import INPUT, METHOD, OUTPUT, PLACE, SAFETY, Command, Declare, Group
from dasktc.cli.options import (
    LOG_LEVEL,
    PATH,
    SOURCE,
    keywords_of,
    options_of,
    planning,
    preparing,
    printing,
    replacing,
    reporting,
    watching,
)
from dasktc.errors import DasktcError, printable, shortened, without_secrets
from dasktc.executors.process.keyboard import answered
from dasktc.executors.process.signals import INTERRUPTED, dask_hushed, ended_by, one_at_a_time
from dasktc.options import DUPLICATES, SIMILARITIES
from dasktc.wording import command_line

__all__ = ["cli", "main"]

BROKEN_PIPE = 128 + 13
"""13 is SIGPIPE, which not every system defines."""
COMPLETE = "_DASKTC_COMPLETE"
"""Environment variable with which a shell requests completions; the script of `dasktc completion` sets it."""
SHELLS = ("bash", "zsh", "fish")
RATES = ("edges", "probes", "network", "overhead")
"""Fields of `dasktc.Rates`, which options of `plan` set."""
TABLE = "File: .parquet, .csv or .txt."
"""Help of a file for results."""
SHOWN = 200
"""Leading characters of an answer that are repeated in the error if it cannot be written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the arguments of the process, and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if COMPLETE in os.environ:  # a shell requests completions
        cli.main(args=words, prog_name="dasktc", complete_var=COMPLETE)
    if sys.stdout is None:
        return _fail("standard output is closed: the answer would be lost; redirect it to a file, or /dev/null", 1)
    with dask_hushed(words), one_at_a_time(), command_line():
        code = _run(words)
        try:
            sys.stderr.flush()
        except OSError:  # progress that could not be written
            _let_go(sys.stderr)
        return code


def _run(words: list[str]) -> int:
    try:
        publish = partial(_publish, sys.stdout)
        with redirect_stdout(io.StringIO()) as answer:
            code: int | None = cli.main(args=words, prog_name="dasktc", standalone_mode=False, obj=publish)
        return code or _say(answer.getvalue())
    except click.exceptions.NoArgsIsHelpError as error:
        _complain(error.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "dasktc"
        return _fail(f"{error.format_message()} See `{command} --help`.", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(words)
    except Exception as error:
        if number := ended_by():
            return _interrupted(words) if number == signal.SIGINT else 128 + number
        if "--debug" in words:
            raise
        if isinstance(error, DasktcError):
            return _fail(str(error), error.exit_code)
        return _fail(f"{type(error).__name__}: {error}: not expected; run again with --debug and report it", 1)


def _interrupted(words: Sequence[str]) -> int:
    answered()
    command = next((cli.commands[word] for word in words if word in cli.commands), None)
    advice = "run the command again"
    if any(word.split("=")[0] == "--checkpoint" for word in words):
        advice += ", which goes on where it was: the checkpoint has the finished tasks"
    elif command is not None and any(parameter.name == "checkpoint" for parameter in command.params):
        advice += ", which begins anew; with --checkpoint, finished tasks are kept"
    return _fail(f"interrupted: {advice}", INTERRUPTED)


def _fail(text: str, code: int) -> int:
    _complain("dasktc: error: " + shortened(printable(" ".join(without_secrets(text).split()))))
    return code


def _complain(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:  # nobody reads it, or nothing can be written: the exit code tells
        _let_go(sys.stderr)


def _say(answer: str) -> int:
    """Print a command's output to stdout, and return the exit code.

    If the reader closes the pipe early, as `head` does, the command ends quietly with the exit code that shells report
    for a broken pipe. Characters that the stream's encoding lacks, as in a file name that is not UTF-8, are escaped.
    """
    try:
        try:
            click.echo(answer, nl=False)
        except UnicodeEncodeError:  # nothing is written yet
            encoding = sys.stdout.encoding
            click.echo(answer.encode(encoding, "backslashreplace").decode(encoding), nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        _let_go(sys.stdout)
        start = " ".join(answer.split())[:SHOWN]
        return _fail(
            f"standard output cannot be written: {error}; redirect it to a place with room. The answer begins: {start}",
            1,
        )
    return 0


def _publish(stdout: TextIO, part: str) -> None:
    """Print a part of a command's output at once; end the command if it cannot be printed."""
    with redirect_stdout(stdout):
        code = _say(part)
    if code:
        raise click.exceptions.Exit(code)


def _let_go(stream: Any) -> None:
    """Discard a stream's buffer, which the interpreter would otherwise try to write again when it exits."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class OneLine(Group):
    """A command group that leaves out the empty line which click prints after Ctrl-C."""

    def invoke(self, context: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as error:
            raise click.Abort from error


class OptionalShare(Command):
    """A command whose `--verify` takes an optional share: the next argument, if that is a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite `--verify` without a number after it as `--verify=1`."""
        for place in range(len(args) - 1):
            if args[place] == "--":
                break
            if args[place] == "--verify":
                try:
                    float(args[place + 1])
                except ValueError:
                    args[place] = "--verify=1"
        return super().parse_args(ctx, args)


ASK, BEFORE, AROUND = "Ask a graph", "Plan and prepare", "Clusters, benchmarks, this installation"
"""Sections of commands."""


@click.group(
    cls=OneLine,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=("dasktc count graph.csv", "dasktc plan graph.csv --memory 4GB"),
    epilog="Every command has --help, with examples, and --help-all.",
)
@click.version_option(package_name="dasktc")
def cli() -> None:
    """Count the triangles of graphs of any size exactly, with Dask."""


def _question(
    *options: Declare, examples: tuple[str, str], section: str = ASK, cls: type[Command] = Command
) -> Callable[[Callable[..., tuple[Any, Any]]], click.Command]:
    """Make a command about a graph of a function that takes SOURCE, the `options` as keywords, and `progress`.

    The function returns its result, and what --quiet prints of it: None for nothing.
    """

    def command(ask: Callable[..., tuple[Any, Any]]) -> click.Command:
        @wraps(ask)
        def answer(source: tuple[str, ...], progress: str, as_json: bool, quiet: bool, **options: Any) -> None:
            keywords = keywords_of(options)
            result, number = ask(list(source), progress=_reporter(quiet, progress), **keywords)
            _print(result, number, as_json, quiet)

        declared = options_of(SOURCE, *options, watching, printing)(answer)
        return cli.command(cls=cls, section=section, examples=examples)(declared)

    return command


def _print(result: Any, number: Any, as_json: bool, quiet: bool) -> None:
    """Print a result: as a JSON object, with --quiet only its number (None: nothing), else as a summary."""
    if as_json:
        click.echo(_printable_lines(json.dumps(result.to_dict())))
    elif not (quiet and number is None):
        click.echo(_printable_lines(str(number) if quiet else repr(result)))


@_question(
    preparing,
    SAFETY.everyday(
        "--verify",
        type=click.FloatRange(0, 1),
        is_flag=False,
        flag_value=1.0,
        default=0.0,
        metavar="[SHARE]",
        help="Count tasks again with another kernel.",
        details="SHARE of them, a number from 0 to 1; without SHARE, all.",
    ),
    METHOD.option("--seed", type=int, default=0, help="Seed of the choice of verified tasks and of random parts."),
    METHOD.option(
        "--sort-rows/--no-sort-rows",
        default=True,
        help="Whether to sort the rows of blocks; only trust and hindex count unsorted rows.",
    ),
    SAFETY.everyday("--checkpoint", type=PATH, metavar="DIR", help="Keep finished tasks; the same command resumes."),
    OUTPUT.everyday("--per-vertex", type=PATH, metavar="OUT", help="Write every vertex's triangles.", details=TABLE),
    OUTPUT.everyday("--per-edge", type=PATH, metavar="OUT", help="Write every edge's triangles.", details=TABLE),
    OUTPUT.everyday(
        "--report",
        type=PATH,
        metavar="OUT.html",
        help="Write a page about graph and count.",
        details="It needs sorted rows.",
    ),
    replacing,
    cls=OptionalShare,
    examples=(
        "dasktc count graph.csv --columns source,target",
        "dasktc count graph.csv --memory 4GB --per-vertex out.csv --report out.html",
    ),
)
def count(source: list[str], **options: Any) -> tuple[Any, Any]:
    """Count the triangles of a graph."""
    from dasktc.api.count import triangle_count

    result = triangle_count(source, **options)
    return result, result.triangles


@_question(
    OUTPUT.everyday("-o", "--out", type=PATH, required=True, metavar="OUT", help=TABLE),
    replacing,
    preparing,
    examples=(
        "dasktc measures graph.csv -o vertices.csv",
        "dasktc measures graph.csv --columns 0,1 --workers all -o vertices.parquet",
    ),
)
def measures(source: list[str], **options: Any) -> tuple[Any, Any]:
    """Write degree, triangles and clustering of every vertex."""
    from dasktc.api.files import write_measures

    return write_measures(source, **options), None


@_question(
    preparing,
    OUTPUT.argument("out", type=PATH, about="Folder for the graph: a SOURCE of every command."),
    OUTPUT.flag("--force", help="Replace a saved graph in OUT."),
    INPUT.everyday("--weight", metavar="NAME", help="Keep the weights of this column."),
    INPUT.flag("--directed", help="Keep the directions of edges."),
    INPUT.everyday("--duplicates", type=click.Choice(DUPLICATES), help="Weight of an edge that several rows give."),
    METHOD.option("--seed", type=int, default=0, help="Seed of random parts."),
    section=BEFORE,
    examples=(
        "dasktc prepare graph.csv graph.dasktc",
        "dasktc prepare graph.csv graph.dasktc --weight weight --duplicates sum",
    ),
)
def prepare(source: list[str], **options: Any) -> tuple[Any, Any]:
    """Prepare a graph once and save it; every command reads it."""
    from dasktc.api.files import save_source

    return save_source(source, **options), None


@cli.command(
    section=BEFORE,
    examples=(
        "dasktc plan graph.csv --memory 4GB",
        "dasktc plan --vertices 955000000 --edges 37400000000 --gpus 8",
    ),
)
@INPUT.argument("source", nargs=-1, type=PATH, about="Files, folders, globs or URLs of one graph; or:")
@INPUT.everyday("--vertices", type=int, metavar="V", help="Number of vertices of a graph.")
@INPUT.everyday("--edges", type=int, metavar="E", help="Number of its undirected edges.")
@INPUT.option("--wedges", type=int, metavar="W", help="Number of its oriented wedges, from which probes are estimated.")
@PLACE.everyday("--gpus", type=int, metavar="G", help="Plan for G GPUs, also where there are none.")
@PLACE.option("--rate-edges", type=float, metavar="R", help="Index edges per second that a worker visits.")
@PLACE.option("--rate-probes", type=float, metavar="R", help="Probes per second that a worker makes.")
@PLACE.option("--rate-network", metavar="BYTES", help="Bytes per second that a worker receives, e.g. 45GB.")
@PLACE.option("--overhead", type=float, metavar="SECONDS", help="Time of the scheduler per task.")
@OUTPUT.flag("--verbose", "-v", help="Also all figures, and the rates assumed.")
@planning
@watching
@printing
def plan(source: tuple[str, ...], progress: str, as_json: bool, quiet: bool, verbose: bool, **options: Any) -> None:
    """Predict time and memory of a count, without counting."""
    from dasktc.api.plan import Rates
    from dasktc.api.plan import plan as predict

    size = {name: options.pop(name) for name in ("vertices", "edges", "workers")}
    sized = [size["vertices"] is not None, size["edges"] is not None]
    if any(sized) != all(sized) or bool(source) == all(sized):
        raise click.UsageError("plan takes either SOURCE, or both --vertices and --edges.")
    rates = Rates(**{name: options.pop(name if name == "overhead" else f"rate_{name}") for name in RATES})
    keywords = keywords_of({**options, "workers": None})
    prediction = predict(list(source) or None, rates=rates, progress=_reporter(quiet, progress), **size, **keywords)
    if verbose and not (as_json or quiet):
        click.echo(_printable_lines(prediction.text(verbose=True)))
    else:
        _print(prediction, prediction, as_json, quiet)


@_question(
    OUTPUT.everyday(
        "-k",
        "--k",
        type=int,
        metavar="K",
        help="Write the K-truss alone.",
        details="With the triangles of each edge within it.",
    ),
    OUTPUT.everyday("-o", "--out", "--output", "out", type=PATH, required=True, metavar="OUT", help=TABLE),
    replacing,
    preparing,
    examples=("dasktc truss graph.csv -o edges.csv", "dasktc truss graph.csv -k 4 -o core.parquet --workers all"),
)
def truss(source: list[str], **options: Any) -> tuple[Any, Any]:
    """Write the trussness of every edge, or the K-truss.

    The k-truss is the largest subgraph each of whose edges is in k - 2 of its triangles; the trussness of an edge is
    the largest k of a k-truss with it.
    """
    from dasktc.api.files import write_truss

    result = write_truss(source, **options)
    return result, result.facts["largest" if result.facts["k"] is None else "edges"]


@_question(
    OUTPUT.preset(
        "--measure",
        "jaccard",
        "Measure of common neighbours.",
        type=click.Choice(SIMILARITIES),
        metavar="NAME",
        details=f"One of {', '.join(SIMILARITIES)}.",
    ),
    OUTPUT.everyday(
        "--top",
        type=int,
        metavar="K",
        help="Write each vertex's K most similar ones.",
        details="Among all with a common neighbour; without K, the ends of every edge are compared.",
    ),
    SAFETY.option(
        "--bound",
        type=click.IntRange(min=1),
        metavar="WEDGES",
        help="Refuse longer work of --top, in wedges. Default: 10^11.",
    ),
    OUTPUT.everyday("-o", "--out", type=PATH, required=True, metavar="OUT", help=TABLE),
    replacing,
    preparing,
    examples=(
        "dasktc similarity graph.csv -o edges.csv",
        "dasktc similarity graph.csv --measure cosine --top 10 -o similar.parquet",
    ),
)
def similarity(source: list[str], bound: int | None, **options: Any) -> tuple[Any, Any]:
    """Write how similar the ends of every edge are.

    The common neighbours of two vertices are compared with the neighbours of both, or added up by weights.
    """
    from dasktc.api.files import write_similarity
    from dasktc.questions.similarity import BOUND

    result = write_similarity(source, bound=BOUND if bound is None else bound, **options)
    return result, result.facts["rows"]


@_question(
    preparing,
    OUTPUT.preset("--error", 0.01, "Half the interval's width.", metavar="SHARE"),
    OUTPUT.preset("--confidence", 0.95, "Probability that it holds.", metavar="SHARE"),
    OUTPUT.everyday(
        "--share",
        type=float,
        metavar="SHARE",
        help="Read a sample of the edges.",
        details="Only this share of the edges is prepared; the interval is what it tells.",
    ),
    OUTPUT.everyday(
        "--per-vertex",
        type=PATH,
        metavar="OUT",
        help="Write every vertex's estimate.",
        details=f"With --share, and standard errors. {TABLE}",
    ),
    replacing,
    METHOD.option("--seed", type=int, default=0, help="Seed of the sample and of random parts."),
    examples=("dasktc estimate graph.csv --error 0.001 --json", "dasktc estimate graph.csv --share 0.05"),
)
def estimate(source: list[str], **options: Any) -> tuple[Any, Any]:
    """Estimate the triangles from a sample, with an interval."""
    from dasktc.api.count import estimate

    result = estimate(source, **options)
    return result, f"{result.value} {result.low} {result.high}"


@_question(
    OUTPUT.everyday(
        "-k",
        "--k",
        type=click.IntRange(3, 5),
        metavar="K",
        default=4,
        show_default=True,
        help="Vertices of a clique.",
    ),
    SAFETY.everyday(
        "--bound",
        type=click.IntRange(min=1),
        metavar="WORDS",
        help="Refuse longer work, in 64-bit words.",
        details="That is the number of words of bit matrices to AND. Default: 10^13.",
    ),
    preparing,
    examples=("dasktc cliques graph.csv", "dasktc cliques graph.csv -k 5 --threads 4 --json"),
)
def cliques(source: list[str], k: int, bound: int | None, progress: Any, **options: Any) -> tuple[Any, Any]:
    """Count the cliques of k vertices."""
    from dasktc.api.count import prepare
    from dasktc.api.progress import showing
    from dasktc.questions.cliques import BOUND, clique_count

    if options["method"].partition == "auto":
        options["method"] = replace(options["method"], partition="whole")
    with prepare(source, progress=progress, **options) as graph:
        with showing(progress, asked="cliques", source=graph._context.prepared.source.name) as tracker:
            result = clique_count(graph._context, k, BOUND if bound is None else bound, tracker)
    return result, result.cliques


cli.add_command(generate)


@cli.command(
    section=AROUND,
    examples=("dasktc cluster slurm", "dasktc cluster kubernetes -o ."),
    chapters=lambda: [("Kinds", [(kind, sample.sentence) for kind, sample in SAMPLES.items()])],
)
@OUTPUT.argument("kind", type=click.Choice(list(SAMPLES)), required=False, metavar="[KIND]", about="One of these.")
@OUTPUT.everyday(
    "-o",
    "--out",
    type=PATH,
    metavar="FILE",
    help="Write it to FILE, or to a folder.",
    details="In a folder it gets its own name, dasktc-KIND with a suffix or Dockerfile.",
)
@OUTPUT.flag("--force", help="Replace FILE if it exists.")
@click.pass_context
def cluster(context: click.Context, kind: str | None, out: str | None, force: bool) -> None:
    """Print a sample that starts a Dask cluster and counts on it."""
    if kind is None:
        if out is not None or force:
            raise click.UsageError(f"KIND is missing. Choose from: {', '.join(SAMPLES)}.")
        click.echo(context.get_help())
    elif out is None:
        click.echo(SAMPLES[kind].text(), nl=False)
    else:
        click.echo(f"{SAMPLES[kind].write(out, force)}: its first lines tell how to use it")


cli.add_command(bench)


@cli.command(section=AROUND, examples=("dasktc info --methods", "dasktc info --warm-up"))
@OUTPUT.flag("--methods", help="Explain methods, kernels, partitions and orders.")
@OUTPUT.flag("--warm-up", help="Compile all kernels now, for images of clusters.")
@reporting
def info(methods: bool, warm_up: bool, as_json: bool) -> None:
    """Show versions, devices and missing packages, or the methods."""
    if methods and warm_up:
        raise click.UsageError("--methods and --warm-up are two questions: give one of them.")
    if methods:
        from dasktc.cli.methods import collect, describe
    elif warm_up:
        from dasktc.cli.warm_up import collect, describe
    else:
        from dasktc.executors.process.environment import collect, describe
    facts = collect()
    click.echo(json.dumps(facts) if as_json else describe(facts))


@cli.command(section=AROUND, examples=('eval "$(dasktc completion bash)"', "dasktc completion fish"))
@INPUT.argument("shell", type=click.Choice(list(SHELLS)), metavar="SHELL", about=f"{', '.join(SHELLS)}.")
def completion(shell: str) -> None:
    """Print a script with which a shell completes commands.

    bash and zsh: add eval "$(dasktc completion SHELL)" to ~/.bashrc or ~/.zshrc; fish: write the script to
    ~/.config/fish/completions/dasktc.fish.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(cli, {}, "dasktc", COMPLETE).source())


def _printable_record(record: Any) -> bool:
    """Escape the unprintable characters of a message."""
    record.msg, record.args = _printable_lines(record.getMessage()), ()
    return True


def _printable_lines(text: str) -> str:
    """Escape unprintable characters, as in names of files; the ends of lines stay."""
    return "\n".join(map(printable, text.split("\n")))


def _reporter(quiet: bool, style: str) -> Any:
    """Set up logging, and return the reporter that --progress names: no bar with --quiet or without a terminal."""
    import logging

    from dasktc.api.progress import Bar, JsonLines

    watched = style == "auto" and not quiet and sys.stderr.isatty()
    level = click.get_current_context().meta.get(LOG_LEVEL) or ("info" if watched else "warning")
    logging.basicConfig(format="%(message)s")
    logging.getLogger("dasktc").setLevel(level.upper())
    shows_page = not quiet and style != "json" and click.get_current_context().meta.get(LOG_LEVEL) is None
    logging.getLogger("dasktc.page").setLevel("INFO" if shows_page else "NOTSET")
    logging.getLogger("dasktc").addFilter(_printable_record)
    return JsonLines(sys.stderr) if style == "json" else Bar() if watched else None
