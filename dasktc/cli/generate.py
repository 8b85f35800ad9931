"""`dasktc generate`: writes generated graphs, whose edges, and often triangles, are known."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import click

from dasktc.cli.help import INPUT, METHOD, OUTPUT, Group, argument, option
from dasktc.cli.options import PATH, options_of, reporting, running, running_of
from dasktc.errors import InputError
from dasktc.wording import plural

__all__ = ["generate"]

Command = Callable[..., Any]


@click.group(
    cls=Group,
    section="Plan and prepare",
    examples=("dasktc generate kronecker graph.parquet --scale 16", "dasktc generate theory graph.txt --stars 5,9"),
)
def generate() -> None:
    """Write a generated graph; its triangles are often known."""


def _generator(*options: Callable[[Any], Any], examples: tuple[str, str]) -> Callable[[Command], Any]:
    """Make a subcommand of `generate` from a function that returns a source."""

    def command(make: Command) -> Any:
        @functools.wraps(make)
        def write(out: str, force: bool, as_json: bool, backend: str, **options: Any) -> None:
            from dasktc.executors.connect import connect
            from dasktc.io.write import write_edges

            place, run, recipe = running_of(options)
            source = make(**recipe)
            with connect(place, run=run) as executor:
                edges = write_edges(source, out, executor, force, backend)
            facts = {"out": out, "graph": source.name, "edges": edges, "triangles": source.triangles}
            triangles = "" if source.triangles is None else f", {plural(source.triangles, 'triangle')}"
            click.echo(json.dumps(facts) if as_json else f"{out}: {source.name}, {plural(edges, 'edge')}{triangles}")

        common = (
            argument("out", group=OUTPUT, type=PATH, about="File for the edges: .parquet or .txt."),
            *options,
            running,
            option(
                "--backend",
                group=METHOD,
                everyday=True,
                type=click.Choice(["auto", "cpu", "cuda"]),
                default="auto",
                help="What makes edges; auto: a GPU if there is one.",
            ),
            option("--force", group=OUTPUT, everyday=True, is_flag=True, help="Replace OUT if it exists."),
            reporting,
        )
        return generate.command(section="Graphs", examples=examples)(options_of(*common)(write))

    return command


def _size(name: str, default: int, help: str) -> Callable[[Command], Any]:
    return option(name, group=INPUT, everyday=True, type=int, default=default, show_default=True, help=help)


SEED = _size("--seed", 1, "Seed of the edges.")


@_generator(
    _size("--scale", 20, "2^N vertices."),
    _size("--edge-factor", 16, "Edges per vertex."),
    SEED,
    examples=(
        "dasktc generate kronecker graph.parquet --scale 16",
        "dasktc generate kronecker graph.parquet --scale 24 --workers all",
    ),
)
def kronecker(**recipe: Any) -> Any:
    """Write a Kronecker graph with initiator (0.57, 0.19, 0.19)."""
    from dasktc.io.generators import synthetic as generate

    return generate.kronecker(**recipe)


@_generator(
    _size("--vertices", 2**27, "A power of two."),
    _size("--edges", 10**9, "Rows of edges."),
    SEED,
    examples=(
        "dasktc generate rmat graph.parquet --vertices 1024 --edges 8000",
        "dasktc generate rmat graph.parquet --workers all",
    ),
)
def rmat(**recipe: Any) -> Any:
    """Write an R-MAT graph; the defaults give the TRUST paper's RM.

    Its probabilities are (0.5, 0.1, 0.1).
    """
    from dasktc.io.generators import synthetic as generate

    return generate.rmat(**recipe)


@_generator(
    _size("--vertices", 10**8, "Vertices."),
    _size("--edges", 10**9, "A multiple of --vertices."),
    examples=(
        "dasktc generate random graph.parquet --vertices 1000 --edges 8000",
        "dasktc generate random graph.parquet --workers all",
    ),
)
def random(**recipe: Any) -> Any:
    """Write a random graph; the defaults give the TRUST paper's RA."""
    from dasktc.io.generators import synthetic as generate

    return generate.random_graph(**recipe)


@_generator(
    _size("--side", 464, "N³ vertices."),
    examples=(
        "dasktc generate grid3d graph.txt --side 10",
        "dasktc generate grid3d graph.parquet --workers all",
    ),
)
def grid3d(**recipe: Any) -> Any:
    """Write a 3D torus; the default gives the TRUST paper's 3D."""
    from dasktc.io.generators import synthetic as generate

    return generate.grid3d(**recipe)


@_generator(
    option(
        "--stars",
        group=INPUT,
        everyday=True,
        default="25,81,256",
        show_default=True,
        metavar="M,M,...",
        help="Leaves of each star.",
    ),
    option(
        "--kind",
        group=INPUT,
        everyday=True,
        type=click.Choice(["B1k", "B2k"]),
        default="B1k",
        show_default=True,
        help="Which product.",
    ),
    examples=(
        "dasktc generate theory graph.txt --stars 3,4,5",
        "dasktc generate theory graph.parquet --kind B2k",
    ),
)
def theory(stars: str, kind: Any) -> Any:
    """Write a Kronecker product of stars.

    A formula gives its number of triangles.
    """
    from dasktc.io.generators import synthetic as generate

    try:
        leaves = tuple(int(m) for m in stars.split(","))
    except ValueError:
        raise InputError(
            f"--stars {stars!r} is not a list of whole numbers: give the leaves of each star, as in 25,81"
        ) from None
    return generate.theory(leaves, kind)
