"""`Labels`: the caller's vertices as Python objects, for graphs that are counted by their positions.

A graph object may name its vertices by any hashable objects, such as tuples or floats. Its edges are read as pairs of
positions, 0 to V - 1, and all stages and workers see these integers. Labels stay in the caller's process: the last step
of an answer replaces positions by labels, and vertices and edges that a caller requests are translated before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dasktc.errors import InputError, shown

__all__ = ["Labels"]

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
