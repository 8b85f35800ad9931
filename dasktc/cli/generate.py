"""`dasktc generate`: writes generated graphs, whose edges, and often triangles, are known."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import click

from dasktc.cli.options import PATH, options_of, reporting, running, running_of
from dasktc.errors import InputError
from dasktc.wording import plural

__all__ = ["generate"]

Command = Callable[..., Any]


@click.group()
def generate() -> None:
    """Write a generated graph, whose edges and often triangles are known, to OUT: .parquet or .txt."""


def _generator(*options: Callable[[Any], Any]) -> Callable[[Command], Any]:
    """Make a subcommand of `generate` from a function that returns a source."""

    def command(make: Command) -> Any:
        @functools.wraps(make)
        def write(
            out: str,
            force: bool,
            as_json: bool,
            backend: str,
            **options: Any,
        ) -> None:
            from dasktc.executors.connect import connect
            from dasktc.io.write import write_edges

            place, run, recipe = running_of(options)
            source = make(**recipe)
            with connect(place, run=run) as executor:
                edges = write_edges(source, out, executor, force, backend)
            facts = {"out": out, "graph": source.name, "edges": edges, "triangles": source.triangles}
            known = "" if source.triangles is None else f", {plural(source.triangles, 'triangle')}"
            click.echo(json.dumps(facts) if as_json else f"{out}: {source.name}, {plural(edges, 'edge')}{known}")

        common = (
            click.argument("out", type=PATH),
            *options,
            running,
            click.option(
                "--backend",
                type=click.Choice(["auto", "cpu", "cuda"]),
                default="auto",
                show_default=True,
                help="Backend that makes the edges. auto: a GPU if there is one.",
            ),
            click.option("--force", is_flag=True, help="Replace OUT if it exists."),
            reporting,
        )
        return generate.command()(options_of(*common)(write))

    return command


@_generator(
    click.option("--scale", type=int, default=20, show_default=True, help="2^SCALE vertices."),
    click.option("--edge-factor", type=int, default=16, show_default=True, help="Edges per vertex."),
    click.option("--seed", type=int, default=1, show_default=True),
)
def kronecker(**recipe: Any) -> Any:
    """Write a Kronecker graph with initiator (0.57, 0.19, 0.19)."""
    from dasktc.io.generators import synthetic as generate

    return generate.kronecker(**recipe)


@_generator(
    click.option("--vertices", type=int, default=2**27, show_default=True, help="Number of vertices, a power of two."),
    click.option("--edges", type=int, default=10**9, show_default=True),
    click.option("--seed", type=int, default=1, show_default=True),
)
def rmat(**recipe: Any) -> Any:
    """Write an R-MAT graph with (0.5, 0.1, 0.1); the defaults give the TRUST paper's RM."""
    from dasktc.io.generators import synthetic as generate

    return generate.rmat(**recipe)


@_generator(
    click.option("--vertices", type=int, default=10**8, show_default=True),
    click.option(
        "--edges", type=int, default=10**9, show_default=True, help="Number of edges, a multiple of --vertices."
    ),
)
def random(**recipe: Any) -> Any:
    """Write a uniform random graph; the defaults give the TRUST paper's RA."""
    from dasktc.io.generators import synthetic as generate

    return generate.random_graph(**recipe)


@_generator(click.option("--side", type=int, default=464, show_default=True, help="Side of the torus: SIDE³ vertices."))
def grid3d(**recipe: Any) -> Any:
    """Write a 3D torus; the default gives the TRUST paper's 3D."""
    from dasktc.io.generators import synthetic as generate

    return generate.grid3d(**recipe)


@_generator(
    click.option("--stars", default="25,81,256", show_default=True, metavar="M,M,...", help="Leaves of each star."),
    click.option("--kind", type=click.Choice(["B1k", "B2k"]), default="B1k", show_default=True),
)
def theory(stars: str, kind: Any) -> Any:
    """Write a Kronecker product of stars, whose number of triangles follows from a formula."""
    from dasktc.io.generators import synthetic as generate

    try:
        leaves = tuple(int(m) for m in stars.split(","))
    except ValueError:
        raise InputError(
            f"--stars {stars!r} is not a list of whole numbers: give the leaves of each star, as in 25,81"
        ) from None
    return generate.theory(leaves, kind)
