"""`Labels`: the caller's vertices as Python objects, for graphs that are counted by their positions.

A graph object may name its vertices by any hashable objects, such as tuples or floats. Its edges are read as pairs of
positions, 0 to V - 1, and all stages and workers see these integers. Labels stay in the caller's process: the last step
of an answer replaces positions by labels, and vertices and edges that a caller requests are translated before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown
from dasktc.io.id_names import ends_of

__all__ = ["Labels", "pairs_of_labels"]

Array = Any


class Labels:
    """The labels of vertices, by position: distinct, hashable objects; the vertex with id i has the i-th of them."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._array = np.fromiter(self._values, object, len(self._values))
        self._positions = {label: position for position, label in enumerate(self._values)}

    def __len__(self) -> int:
        return len(self._values)

    @property
    def kinds(self) -> str:
        """Names of the labels' types, for errors."""
        return ", ".join(sorted({type(label).__name__ for label in self._values}))

    def of(self, ids: Any) -> Array:
        """Return the labels of ids, as an array of objects."""
        return self._array.take(np.asarray(ids, dtype=np.int64))

    def name_index(self, frame: Any) -> None:
        """Replace the ids in the index of a pandas frame or series by labels."""
        import pandas as pd

        frame.index = pd.Index(self.of(frame.index), dtype=object, name=frame.index.name, tupleize_cols=False)

    def ids(self, labels: Iterable[Any]) -> Array:
        """Return the ids of labels, int64; -1 for a label of no vertex."""
        return np.array([self._position(label) for label in labels], dtype=np.int64)

    def _position(self, label: Any) -> int:
        try:
            return self._positions.get(label, -1)
        except TypeError:
            raise InputError(
                f"{shown(label)} is no vertex: its type {type(label).__name__} cannot be hashed; pass the graph's own "
                "vertices"
            ) from None

    def extended(self, labels: Iterable[Any]) -> Labels:
        """Return these labels, followed by the others of some labels."""
        new_labels = dict.fromkeys(label for label in labels if self._position(label) < 0)
        if None in new_labels:
            raise InputError("add holds None where a vertex is expected: it is a missing value; drop such rows first")
        return Labels([*self._values, *new_labels])

    def text(self) -> list[str]:
        """Return `str` of every label; InputError: two labels have the same text."""
        texts: dict[str, Any] = {}
        for label in self._values:
            twin = texts.setdefault(str(label), label)
            if twin is not label:
                raise InputError(
                    f"the vertices {shown(twin)} and {shown(label)}, of types {type(twin).__name__} and "
                    f"{type(label).__name__}, have the same text: written, they would be one; rename one of them, for "
                    "example with networkx.relabel_nodes"
                )
        return list(texts)


def pairs_of_labels(edges: Any, name: str) -> list[tuple[Any, Any]]:
    """Return a caller's edges as pairs of labels; `name` is that of the parameter, for errors.

    They are a NetworkX graph, a table, an array of shape (m, 2), a pair of lists or arrays, or an iterable of pairs;
    InputError refuses others.
    """
    if hasattr(edges, "adjacency"):
        return [(u, v) for u, v in edges.edges()]
    if hasattr(edges, "to_pandas"):
        edges = edges.to_pandas()
    if hasattr(edges, "iloc") and getattr(edges, "ndim", 0) == 2 and edges.shape[1] >= 2:
        return list(zip(*(edges.iloc[:, place] for place in ends_of(name, edges.columns)), strict=True))
    # Two lists or arrays are two columns; two tuples are two edges, because labels may be tuples.
    columns = edges if isinstance(edges, Sequence) and len(edges) == 2 else [()]
    if all(isinstance(column, list) or getattr(column, "ndim", 0) == 1 for column in columns):
        if len(edges[0]) != len(edges[1]):
            raise InputError(
                f"{name} have {len(edges[0]):,} first ends and {len(edges[1]):,} second ones: an edge has two; pass "
                "columns of equal length"
            )
        return list(zip(*edges, strict=True))
    if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
        raise _no_pairs(edges, name)
    pairs = list(edges)
    for pair in pairs:
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise _no_pairs(pair, name)
    return [tuple(pair) for pair in pairs]


def _no_pairs(value: Any, name: str) -> InputError:
    return InputError(
        f"{name} holds {shown(value)} where a pair of vertices is expected: an edge has two ends; give a list of pairs "
        "of the graph's own vertices, a table of two columns, or a NetworkX graph"
    )
