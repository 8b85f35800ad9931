"""Sums of what tasks return: exact ones of surveys, and reproducible ones of floats.

Sums of surveys are of numbers, arrays, dicts and pandas objects of numbers; integers do not overflow. Sums of floats
depend on the order in which they are added: `IN_ORDER` adds numbered arrays in one tree over their numbers, whatever
order they come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from dasktc.backends.csr import on_host
from dasktc.errors import InputError, shown
from dasktc.executors.base import Fold

__all__ = ["IN_ORDER", "SUM", "added_in_order"]

Array = Any
Nodes = dict[tuple[int, int], Array]
"""Sums by level and number: node k of a level is the sum of nodes 2·k and 2·k + 1 of the level below; inputs have 0."""

BOUND = 1 << 62
"""Integers of an array are refused from here on: two below it cannot exceed 64 bits together."""


def _plus(left: Any, right: Any) -> Any:
    """Add a result to a sum, which is None where nothing was added; neither is changed."""
    if right is None:
        return left
    addend = _number(right)
    return addend if left is None else _sum_of(left, addend)


def _number(value: Any) -> Any:
    """Convert a result to the type in which it is added, on the host: integers become Python's, or int64 in arrays."""
    if isinstance(value, Mapping):
        return {key: _number(entry) for key, entry in value.items()}
    if hasattr(value, "groupby"):
        value = value.to_pandas() if hasattr(value, "to_pandas") else value  # of cuDF
    elif hasattr(value, "dtype"):
        value = on_host(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return _wide(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "groupby"):
        return _grouped(value)
    raise _no_number(value)


def _wide(array: Any) -> Any:
    """Return an array of int64 or of floats, whose integers may be added to others."""
    if array.dtype.kind not in "biuf":
        raise _no_number(array)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.size and max(-int(array.min()), int(array.max())) >= BOUND:
        raise InputError(
            f"a survey's sum reaches {max(abs(int(array.min())), int(array.max())):.3g}, and 64 bits hold less than "
            "twice that: return a dict of Python integers, which have no bound, or floats"
        )
    return array.astype(np.int64)


def _grouped(value: Any) -> Any:
    """Return a pandas object with one row for each entry of its index, ascending."""
    import pandas as pd

    frame = value.to_frame(name=0) if isinstance(value, pd.Series) else value
    columns = {name: _wide(frame[name].to_numpy()) for name in frame.columns}
    if not frame.columns.is_unique:
        raise InputError(f"a survey's frame has the columns {list(frame.columns)}: give each a name of its own")
    table = pd.DataFrame(columns, index=frame.index)
    try:
        table = table.sort_index()
    except TypeError:
        names = " and ".join(sorted({type(label).__name__ for label in table.index}))
        raise InputError(
            f"a survey's frame has an index of the types {names}: rows are added in the order of their index; give it "
            "labels of one type"
        ) from None
    # Rows of one label are added up, unless the sum may exceed 64 bits.
    if not frame.index.is_unique:
        bound = max(
            (int(np.abs(array).max(initial=0)) for array in columns.values() if array.dtype.kind == "i"), default=0
        )
        if bound * len(frame) >= BOUND:
            raise InputError(
                f"a survey's frame repeats its index, and {len(frame):,} rows of up to {bound:.3g} may exceed 64 bits: "
                "add them up by index first, or return floats"
            )
        table = _by_index(table)
    if not isinstance(value, pd.Series):
        return table
    series = table[0]
    series.name = value.name
    return series


def _by_index(table: Any) -> Any:
    """Add up rows of equal labels, next to each other; a missing label is one of its own, a missing number stays."""
    levels = list(range(table.index.nlevels))
    numbers = table.groupby(level=levels, dropna=False, observed=True, sort=False).ngroup().to_numpy()
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    sums = {name: np.add.reduceat(table[name].to_numpy(), firsts) for name in table.columns}
    return type(table)(sums, index=table.index.take(firsts))


def _sum_of(left: Any, right: Any) -> Any:
    """Add two converted results of one kind."""
    if type(left) is not type(right) and not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise InputError(
            f"a survey's function returned a {type(left).__name__} and a {type(right).__name__}: what is summed is of "
            "one type; return the same for every batch"
        )
    if isinstance(left, dict):
        return left | {key: _sum_of(left[key], entry) if key in left else entry for key, entry in right.items()}
    if isinstance(left, np.ndarray):
        if left.shape != right.shape:
            raise InputError(
                f"a survey's function returned arrays of shapes {left.shape} and {right.shape}: arrays are added entry "
                "by entry; give numpy.bincount a minlength, or return a dict or a Series"
            )
        return _wide(left + right)
    if hasattr(left, "groupby"):
        return _frames_added(left, right)
    return left + right


def _frames_added(left: Any, right: Any) -> Any:
    import pandas as pd

    if isinstance(left, pd.DataFrame) and set(left.columns) != set(right.columns):
        raise InputError(
            f"a survey's function returned frames with the columns {list(left.columns)} and {list(right.columns)}: "
            "rows are added by index; return the same columns for every batch"
        )
    return _grouped(pd.concat([left, right]))


def _no_number(value: Any) -> InputError:
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"{shown(value)}"
    return InputError(
        f"a survey's function returned {kind}: a sum is of numbers, arrays, dicts and pandas objects of numbers; "
        "return one of these, or give reduce a dasktc.Fold"
    )


def _combined(results: list[Any]) -> Any:
    total = None
    for result in results:
        total = _plus(total, result)
    return total


SUM = Fold(lambda: None, _plus, _combined)
"""Fold that adds up results; None where there was none."""


def _merged_nodes(parts: list[Nodes]) -> Nodes:
    """Put nodes together, and add up siblings; a node is the same sum whatever came first."""
    nodes: Nodes = {}
    for part in parts:
        for (level, number), array in part.items():
            while (sibling := nodes.pop((level, number ^ 1), None)) is not None:
                level, number, array = level + 1, number >> 1, sibling + array
            nodes[level, number] = array
    return nodes


def added_in_order(nodes: Nodes) -> Array:
    """Add up the nodes that have no sibling, at least one, in the order of their numbers."""
    first, *others = sorted(nodes, key=lambda node: node[1] << node[0])
    total = nodes[first]
    for node in others:
        total = total + nodes[node]
    return total


IN_ORDER = Fold(dict, lambda nodes, more: _merged_nodes([nodes, more]), _merged_nodes)
"""Fold that adds up arrays {(0, k): array}, with k = 0, 1, ..., in an order that depends on their number alone."""
