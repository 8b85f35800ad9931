"""Makes a source of two Dask columns: 1-D Dask Arrays, or Series of Dask DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dasktc.errors import InputError
from dasktc.io.ids import agree, ids_of_meta, places_of
from dasktc.io.memory.device import ON_GPU
from dasktc.io.memory.kinds import kind, meta_of, roots
from dasktc.io.memory.parts import PartitionPart
from dasktc.io.source import ReadOptions, Source
from dasktc.wording import plural

__all__ = ["from_dask_columns", "is_dask_column"]

UNKNOWN = float("nan")


def is_dask_column(item: Any) -> bool:
    """Return whether an object is a Dask collection of rows."""
    delayed = any(base.__name__ == "Delayed" for base in type(item).__mro__)  # a Delayed has any attribute
    return "dask" in roots(item) and not delayed and hasattr(item, "to_delayed") and getattr(item, "ndim", 0) > 0


def from_dask_columns(pair: Sequence[Any], options: ReadOptions) -> Source:
    """Make one part of each block of a column and the same rows of the other column; nothing is computed.

    Arrays with known block lengths are rechunked to common blocks; otherwise blocks are matched by position.

    Raises
    ------
    InputError
        One is no Dask column, or is in GPU memory; their types or lengths differ; or they have different numbers of
        blocks of unknown lengths.
    """
    if len(pair) != 2 or not all(is_dask_column(item) and item.ndim == 1 for item in pair):
        kinds = ", ".join(dict.fromkeys(map(kind, pair)))
        raise InputError(
            f"the sequence of {len(pair)} holds {kinds}: of Dask's collections two columns are read, 1-D arrays or "
            "Series; pass two, or one array of shape (m, 2)"
        )
    if any(not set(roots(meta_of(item))).isdisjoint(ON_GPU) for item in pair):
        raise InputError(
            "the pair holds Dask columns in GPU memory: they are read as one collection; pass "
            "dask.array.stack((src, dst), axis=1), or a Dask DataFrame of both"
        )
    of_all = places_of((0, 1), "pair")
    ids = options.ids or agree([ids_of_meta(_meta_of(item), at) for item, at in zip(pair, of_all, strict=True)], of_all)
    import dask

    table, parts = dask.delayed(_table, pure=True), []
    for number, ends in enumerate(zip(*map(_delayed, _aligned(*pair)), strict=True)):
        places = places_of((0, 1), f"pair's block {number}")
        parts.append(PartitionPart(table(*ends), (0, 1), ids, options.ids is not None, places))
    return Source("pair of Dask columns", tuple(parts), ids, frames="dask")


def _meta_of(column: Any) -> Any:
    meta = meta_of(column)
    return meta.reshape(-1) if hasattr(meta, "reshape") else meta


def _delayed(column: Any) -> list[Any]:
    blocks = column.to_delayed()
    return blocks.ravel().tolist() if hasattr(blocks, "ravel") else list(blocks)


def _aligned(src: Any, dst: Any) -> tuple[Any, Any]:
    """Return the two columns in blocks of the same rows, as far as block lengths are known."""
    lengths = [column.shape[0] if hasattr(column, "chunks") else UNKNOWN for column in (src, dst)]
    if all(length == length for length in lengths):
        if lengths[0] != lengths[1]:
            raise _of_two_lengths("the pair", *lengths)
        return src, dst.rechunk(src.chunks)
    if src.npartitions != dst.npartitions:
        raise InputError(
            f"the pair's columns have {src.npartitions:,} and {plural(dst.npartitions, 'block')}, of unknown lengths: "
            "which rows belong together is not known; call compute_chunk_sizes() of arrays, or pass a Dask DataFrame "
            "of both"
        )
    return src, dst


def _of_two_lengths(kind: str, src: Any, dst: Any) -> InputError:
    return InputError(
        f"column 0 of {kind} has {plural(src, 'row')}, column 1 {dst:,}: an edge has two ends; pass columns of equal "
        "length"
    )


def _table(src: Any, dst: Any) -> Any:
    """Join a block of each column; runs on a worker."""
    import pandas as pd

    if len(src) != len(dst):
        raise _of_two_lengths("a block of the pair", len(src), len(dst))
    return pd.DataFrame(
        {name: pd.Series(getattr(ids, "array", ids)) for name, ids in enumerate((src, dst))}, copy=False
    )
