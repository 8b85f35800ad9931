"""Graphs to try things with: two that come with the package, and those of public collections by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pandas as pd

__all__ = ["catalogue", "email", "fetch", "karate", "load"]


def karate() -> pd.DataFrame:
    """Return Zachary's karate club: 34 vertices, 78 edges, 45 triangles.

    Returns
    -------
    pandas.DataFrame
        Columns "source" and "target", int64, one row per edge.

    Notes
    -----
    W. W. Zachary, An information flow model for conflict and fission in small groups, J. Anthropological Research 33
    (1977).

    Examples
    --------
    >>> import dasktc
    >>> int(dasktc.triangle_count(dasktc.datasets.karate()))
    45
    """
    return _packaged("karate")


def email() -> pd.DataFrame:
    """Return the e-mails between members of a research institute: 986 vertices, 16,064 edges, 105,461 triangles.

    Returns
    -------
    pandas.DataFrame
        Columns "source" and "target", int64: 25,571 rows, one per sender and receiver, with 642 loops.

    Notes
    -----
    email-Eu-core of SNAP (J. Leskovec, A. Krevl), without the third column of its file.
    """
    return _packaged("email-Eu-core")


def _packaged(name: str) -> pd.DataFrame:
    import pandas as pd

    from dasktc.io.catalogue import DATA

    return pd.read_csv(DATA / f"{name}.csv.gz")


def catalogue() -> pd.DataFrame:
    """Return the graphs of public collections that are known by name.

    Returns
    -------
    pandas.DataFrame
        One row per graph: "name", as `load` and every SOURCE take it, "address", and the "vertices", "edges" and
        "triangles" that the collection states. Its edges may be directed, stand in both directions, and include loops
        and repetitions; SuiteSparse states no triangles.
    """
    from dataclasses import asdict

    import pandas as pd

    from dasktc.io import catalogue as graphs

    frame = pd.DataFrame([asdict(graph) for graph in graphs.catalogue().values()]).drop(columns="md5")
    return frame.astype({"triangles": "Int64"})


def fetch(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Fetch a graph of `catalogue` once, and return the path of its file.

    Parameters
    ----------
    name : str
        Such as "snap:amazon0601".
    folder : path, optional
        Where files are kept. Default: `dasktc/graphs` in the user's folder for caches (`XDG_CACHE_HOME`).

    Returns
    -------
    Path

    Raises
    ------
    InputError
        The catalogue has no such graph, or its address cannot be read.
    """
    from dasktc.errors import InputError
    from dasktc.io import catalogue as graphs

    graph = graphs.find(name)
    if graph is None:
        raise InputError(f"{name!r} names no graph of a collection: names are collection:graph, as snap:ca-GrQc")
    return graphs.fetch(graph, folder)


def load(name: str, folder: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Fetch a graph of `catalogue` once, and return its rows; `triangle_count` and `prepare` take the name itself.

    Parameters
    ----------
    name, folder
        As `fetch` takes them.

    Returns
    -------
    pandas.DataFrame
        Columns "src" and "dst", integers, one row per row of the file, with loops, directions and repetitions.

    Raises
    ------
    InputError
        As `fetch`; or the file cannot be read.
    """
    import pandas as pd

    from dasktc.backends import get_backend
    from dasktc.io.files import open_source
    from dasktc.io.source import ReadOptions

    parts, backend = open_source(fetch(name, folder), ReadOptions()).parts, get_backend("cpu")
    frame: pd.DataFrame = pd.concat([part.read(backend) for part in parts], ignore_index=True)
    return frame
