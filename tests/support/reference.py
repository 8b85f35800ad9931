"""Write `dasktc/api/README.md`, each public name and a line of its docstring: `python -m tests.support.reference`."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import dasktc
from dasktc.summary import Summarised
from tests.support import places

PAGE = Path(dasktc.__file__).parent / "api" / "README.md"
LONGEST = 160
"""Longest sentence that stands whole; of a longer one what precedes its colon."""
MADE = Summarised
"""Classes that functions make, not users."""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "How many triangles?": ("triangle_count", "TriangleCount"),
    "Several questions about one graph": (
        *("prepare", "Graph", "Graph.triangle_count", "Graph.vertices", "Graph.edges", "Graph.read", "Graph.plan"),
        *("Graph.client", "Graph.is_directed", "Graph.is_multigraph", "Graph.summary", "Graph.save", "open_graph"),
        *("get_graph", "Graph.close"),
    ),
    "What about each vertex?": (
        *("Graph.measures", "Graph.triangles", "Graph.clustering", "Graph.square_clustering", "Graph.core_number"),
    ),
    "What about each edge?": (
        *("Graph.edge_support", "Graph.similarity", "Graph.truss", "Graph.edge_list", "Graph.oriented_edges"),
    ),
    "Which triangles and cliques?": ("Graph.triangle_list", "Graph.cliques", "Graph.motifs"),
    "What do triangles have in common?": (
        *("Graph.survey", "Graph.triangle_types", "Graph.signed_triangles", "Graph.temporal_triangles"),
        *("TemporalTriangles", "Graph.columns", "Fold"),
    ),
    "What about the whole graph?": (
        *("Graph.transitivity", "Graph.average_clustering", "Graph.triad_census", "Graph.plot_degrees"),
        *("Graph.plot_clustering", "Graph.plot_support"),
    ),
    "What if edges change?": ("Graph.update",),
    "About how many triangles?": ("estimate", "Graph.estimate", "TriangleEstimate"),
    "How long will it take, and does it fit?": ("plan", "Prediction", "Rates"),
    "By which method?": ("Method", "RunOptions"),
    "Where does it run?": ("cluster", "Cluster"),
    "Which graphs to try?": (
        *("datasets.karate", "datasets.email", "datasets.catalogue", "datasets.load", "datasets.fetch"),
        *("generate.kronecker", "generate.rmat", "generate.random_graph", "generate.grid3d", "generate.theory"),
        "generate.GeneratedPart",
    ),
    "What if it fails?": ("InputError", "CountError", "ClusterError", "DeviceMemoryError", "DasktcError"),
}
"""The names of each section, in order; attributes, and methods that no section names, follow their class."""


def public_names() -> set[str]:
    """Every public name, except the attributes of instances."""
    names = set(dasktc.__all__)
    for module in ("datasets", "generate"):
        names |= {f"{module}.{name}" for name in getattr(dasktc, module).__all__}
    for name in dasktc.__all__:
        if inspect.isclass(getattr(dasktc, name)):
            names |= {f"{name}.{member}" for member in members(getattr(dasktc, name))}
    return names


def members(of: type) -> list[str]:
    """Public methods, properties and class attributes that the package defines for a class."""
    if issubclass(of, BaseException) or of.__name__ not in dasktc.__all__:
        return []
    ours = [base for base in of.__mro__ if base.__module__.startswith("dasktc.")]
    names = {name: None for base in reversed(ours) for name in vars(base) if not name.startswith("_")}
    return [name for name in names if name not in documented(of)]


def attributes(of: type) -> dict[tuple[str, ...], str]:
    """Attributes of a class, as the entries of its docstring's section name them, each with its sentence."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|\Z)", inspect.getdoc(of) or "", re.DOTALL | re.M)
    found: dict[tuple[str, ...], str] = {}
    for entry in re.split(r"\n(?=\S)", section[1]) if section else ():
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found[tuple(names.split(", "))] = sentence(text) if text.strip() else f"{kind.strip()}."
    return found


def documented(of: type) -> set[str]:
    """The names of these attributes."""
    return {name for names in attributes(of) for name in names}


def undocumented() -> set[str]:
    """Public fields of public dataclasses that their docstrings leave out."""
    found = set()
    for of in (getattr(dasktc, name) for name in dasktc.__all__):
        if inspect.isclass(of) and is_dataclass(of):
            names = {field.name for field in fields(of) if not field.name.startswith("_")}
            found |= {f"{of.__name__}.{name}" for name in names - documented(of)}
    return found


def sentence(text: str) -> str:
    """The first sentence of a text."""
    first = re.split(r"(?<=\.)(?<!e\.g\.)\s", " ".join(text.split()))[0]
    fact, colon, _ = first.partition(":")
    return f"{fact}." if colon and len(first) > LONGEST and " " in fact else first


def signature(name: str, value: Any) -> str:
    """A call without types and defaults; the bare name of a property, an error, and what only functions make."""
    if not callable(value) or (inspect.isclass(value) and (issubclass(value, MADE) or not is_dataclass(value))):
        return name
    shown: list[str] = []
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if parameter.name not in ("self", "cls"):
            shown.append("*" * 2 * (parameter.kind is parameter.VAR_KEYWORD) + parameter.name)
    return f"{name}({', '.join(shown)})"


def resolved(name: str) -> Any:
    """The object of a name, without the call of a property."""
    value: Any = dasktc
    for part in name.split("."):
        value = inspect.getattr_static(value, part) if inspect.isclass(value) else getattr(value, part)
    return value.__func__ if isinstance(value, classmethod | staticmethod) else value


def home(value: Any) -> str:
    """The link to the module of an object."""
    function = value.fget if isinstance(value, property) else getattr(value, "func", value)
    path = Path(inspect.getfile(inspect.unwrap(function)))
    return f"[{path.name}]({Path(os.path.relpath(path, PAGE.parent)).as_posix()})"


def line(name: str, shown: str) -> str:
    """A name as it is called, with the sentence of its docstring."""
    value = resolved(name)
    summary = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return f"`{signature(shown, value)}`: {sentence(summary)}"


def item(text: str, indent: str = "") -> str:
    """A wrapped item of a list."""
    indents = {"initial_indent": f"{indent}- ", "subsequent_indent": f"{indent}  "}
    return fill(text, 120, break_on_hyphens=False, **indents)


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The interface, by question"
    yield ""
    yield fill(
        "Every public name, with the first sentence of its docstring; `help(dasktc.triangle_count)` and its like have "
        "parameters, errors and examples. `python -m tests.support.reference` writes this page.",
        120,
    )
    placed = {name for names in QUESTIONS.values() for name in names}
    for question, names in QUESTIONS.items():
        yield ""
        yield f"## {question}"
        yield ""
        for name in names:
            value = resolved(name)
            shown = name.replace("Graph.", "graph.") if name.startswith("Graph.") else f"dasktc.{name}"
            yield item(f"{line(name, shown)} {home(value)}")
            if not inspect.isclass(value):
                continue
            for group, text in attributes(value).items():
                yield item(f"{', '.join(f'`.{one}`' for one in group)}: {text}", "  ")
            for member in members(value):
                if f"{name}.{member}" not in placed:
                    yield item(line(f"{name}.{member}", f".{member}"), "  ")
        if question == "Where does it run?":
            yield ""
            yield fill(
                "What a graph is asked, by where it lies; `tests/questions/test_places.py` asks it all, of a GPU in "
                "the emulation that runs kernels on the host:",
                120,
            )
            yield ""
            yield from places.lines()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} is written\n")
