"""`dasktc generate`: writes generated graphs, whose edges, and often triangles, are known."""

from __future__ import annotations

import json
from typing import Any

import click

from dasktc.cli.help import INPUT, METHOD, OUTPUT, Declare, Group
from dasktc.cli.options import PATH, options_of, reporting, running, running_of
from dasktc.errors import InputError
from dasktc.wording import plural

__all__ = ["generate"]


@click.group(
    cls=Group,
    section="Plan and prepare",
    examples=("dasktc generate kronecker graph.parquet --scale 16", "dasktc generate theory graph.txt --stars 5,9"),
)
def generate() -> None:
    """Write a generated graph; its triangles are often known."""


def _generator(
    name: str, *options: Declare, about: str, examples: tuple[str, str], function: str | None = None
) -> None:
    """Add a command that writes the source of a `function` of `dasktc.generate`, of which `options` are the recipe.

    Default: the function has the name of the command.
    """

    def write(out: str, force: bool, as_json: bool, backend: str, **options: Any) -> None:
        from dasktc.executors.connect import connect
        from dasktc.io.generators import synthetic
        from dasktc.io.write import write_edges

        place, run, recipe = running_of(options)
        source = getattr(synthetic, function or name)(**recipe)
        with connect(place, run=run) as executor:
            edges = write_edges(source, out, executor, force, backend)
        facts = {"out": out, "graph": source.name, "edges": edges, "triangles": source.triangles}
        triangles = "" if source.triangles is None else f", {plural(source.triangles, 'triangle')}"
        click.echo(json.dumps(facts) if as_json else f"{out}: {source.name}, {plural(edges, 'edge')}{triangles}")

    declared = options_of(
        OUTPUT.argument("out", type=PATH, about="File for the edges: .parquet or .txt."),
        *options,
        running,
        METHOD.everyday(
            "--backend",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            help="What makes edges; auto: a GPU if there is one.",
        ),
        OUTPUT.flag("--force", help="Replace OUT if it exists."),
        reporting,
    )(write)
    generate.command(name, section="Graphs", examples=examples, help=about)(declared)


def _leaves(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Parse `--stars`: whole numbers between commas."""
    try:
        return tuple(int(leaves) for leaves in text.split(","))
    except ValueError:
        raise InputError(
            f"--stars {text!r} is not a list of whole numbers: give the leaves of each star, as in 25,81"
        ) from None


SEED = INPUT.preset("--seed", 1, "Seed of the edges.")

_generator(
    "kronecker",
    INPUT.preset("--scale", 20, "2^N vertices."),
    INPUT.preset("--edge-factor", 16, "Edges per vertex."),
    SEED,
    about="Write a Kronecker graph with initiator (0.57, 0.19, 0.19).",
    examples=(
        "dasktc generate kronecker graph.parquet --scale 16",
        "dasktc generate kronecker graph.parquet --scale 24 --workers all",
    ),
)
_generator(
    "rmat",
    INPUT.preset("--vertices", 2**27, "A power of two."),
    INPUT.preset("--edges", 10**9, "Rows of edges."),
    SEED,
    about="""Write an R-MAT graph; the defaults give the TRUST paper's RM.

    Its probabilities are (0.5, 0.1, 0.1).
    """,
    examples=(
        "dasktc generate rmat graph.parquet --vertices 1024 --edges 8000",
        "dasktc generate rmat graph.parquet --workers all",
    ),
)
_generator(
    "random",
    INPUT.preset("--vertices", 10**8, "Vertices."),
    INPUT.preset("--edges", 10**9, "A multiple of --vertices."),
    about="Write a random graph; the defaults give the TRUST paper's RA.",
    examples=(
        "dasktc generate random graph.parquet --vertices 1000 --edges 8000",
        "dasktc generate random graph.parquet --workers all",
    ),
    function="random_graph",
)
_generator(
    "grid3d",
    INPUT.preset("--side", 464, "N³ vertices."),
    about="Write a 3D torus; the default gives the TRUST paper's 3D.",
    examples=("dasktc generate grid3d graph.txt --side 10", "dasktc generate grid3d graph.parquet --workers all"),
)
_generator(
    "theory",
    INPUT.preset("--stars", "25,81,256", "Leaves of each star.", metavar="M,M,...", callback=_leaves),
    INPUT.preset("--kind", "B1k", "Which product.", type=click.Choice(["B1k", "B2k"])),
    about="""Write a Kronecker product of stars.

    A formula gives its number of triangles.
    """,
    examples=("dasktc generate theory graph.txt --stars 3,4,5", "dasktc generate theory graph.parquet --kind B2k"),
)
