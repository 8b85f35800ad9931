"""Graphs of public collections by name, such as `snap:amazon0601`: where they are, and what is published about them.

`data/catalogue.tsv` lists them, with the numbers of vertices, edges and triangles that the collection states. A graph
is fetched once, into a folder of the user, and a count of it must give the published number of triangles, if there is
one. Graphs of KONECT and SuiteSparse are tar archives, which are read as they are.
"""

from __future__ import annotations

import csv
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.formats import streams
from dasktc.io.source import ReadOptions, Source
from dasktc.once import once
from dasktc.wording import plural

__all__ = ["PublicGraph", "cache_folder", "catalogue", "fetch", "find", "open_named"]

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class PublicGraph:
    """A graph of a public collection."""

    name: str
    """Collection and graph, as "snap:amazon0601"."""
    address: str
    """An fsspec URL of one file."""
    vertices: int
    edges: int
    """Numbers as the collection states them: its edges may be directed, stand in both directions, and include loops and
    repetitions."""
    triangles: int | None = None
    """As the collection states it; None: it states none."""
    md5: str | None = None
    """Checksum of the file, where the collection publishes one."""


@once
def catalogue() -> dict[str, PublicGraph]:
    """Return the graphs of `catalogue.tsv` by name."""
    with (DATA / "catalogue.tsv").open(newline="", encoding="utf-8") as file:
        graphs = [
            PublicGraph(name, address, int(vertices), int(edges), int(triangles) if triangles else None, md5 or None)
            for name, address, vertices, edges, triangles, md5 in list(csv.reader(file, delimiter="\t"))[1:]
        ]
    return {graph.name: graph for graph in graphs}


def find(name: Any) -> PublicGraph | None:
    """Return the graph of this name, or None if the name is of no collection, or a file is called so.

    InputError: the collection is known, but has no graph of this name here.
    """
    if not isinstance(name, str) or ":" not in name or streams.is_remote(name):
        return None
    graphs = catalogue()
    collection = name.partition(":")[0]
    if collection not in {graph.partition(":")[0] for graph in graphs} or os.path.lexists(name):
        return None
    if name not in graphs:
        lower = {graph.lower(): graph for graph in graphs}
        names = [lower[graph] for graph in get_close_matches(name.lower(), lower, 2)]
        raise InputError(
            f"{name} is not in the catalogue, which has {len(graphs)} graphs: "
            + (f"perhaps {' or '.join(names)} is meant" if names else "another collection or name")
            + "; dasktc.datasets.catalogue() lists them, and other graphs are read from a file or URL"
        )
    return graphs[name]


def cache_folder() -> Path:
    """Return the folder of fetched graphs: `dasktc/graphs` in the folder that the system has for caches."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dasktc" / "graphs"


def fetch(graph: PublicGraph, folder: str | os.PathLike[str] | None = None) -> Path:
    """Fetch the file of a graph unless it was fetched before; an interrupted or damaged transfer leaves none.

    It is kept in a folder, by default `cache_folder()`. InputError: the address cannot be read, or what came is not the
    file that is published.
    """
    cache = Path(folder) if folder is not None else cache_folder()
    path = cache / graph.name.replace(":", "-") / graph.address.rsplit("/", 1)[-1]
    if path.exists():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=path.parent) as part:
            _transfer(graph, f"{part}/{path.name}")
            os.replace(f"{part}/{path.name}", path)
    except OSError as error:
        raise InputError(
            f"{path.parent} cannot keep {graph.name}: {error.strerror}; set XDG_CACHE_HOME to a folder of yours"
        ) from error
    return path


def _transfer(graph: PublicGraph, part: str) -> None:
    """Copy the file behind the address, with a bar on a terminal, and check its size and checksum."""
    from fsspec.callbacks import TqdmCallback

    with streams.naming(graph.address):
        fs, path = streams.filesystem(graph.address)
        size = fs.info(path).get("size")
        bar = {"desc": graph.name, "unit": "B", "unit_scale": True, "disable": None, "leave": False}
        fs.get_file(path, part, callback=TqdmCallback(tqdm_kwargs=bar))
    nbytes = os.stat(part).st_size
    if size is not None and nbytes != size:
        raise InputError(f"{graph.address} has {plural(size, 'byte')}, of which {nbytes:,} came: cut off; run it again")
    if graph.md5 is not None:
        with open(part, "rb") as file:
            digest = hashlib.file_digest(file, "md5").hexdigest()
        if digest != graph.md5:
            raise InputError(
                f"{graph.address} has the MD5 sum {digest}, not the published {graph.md5}: damaged, or another "
                "version; fetch it yourself and give the file"
            )


def open_named(source: str | os.PathLike[str] | Sequence[str], options: ReadOptions) -> Source:
    """Open a source by name, as `open_source` does, where graphs of the catalogue may stand for files.

    The published number of triangles of such a graph is known, if it is the whole source.
    """
    names = [source] if isinstance(source, str | os.PathLike) else list(source)
    graphs = [find(name) for name in names]
    files = [os.fspath(name) if graph is None else str(fetch(graph)) for name, graph in zip(names, graphs, strict=True)]
    graph_source = open_source(files if any(graphs) else source, options)
    if len(graphs) != 1 or graphs[0] is None:
        return graph_source
    return replace(graph_source, name=graphs[0].name, triangles=graphs[0].triangles)
