"""Edges of generated graphs, made on a device: the launches of kernels/generate.cu."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.backends.edge_functions import KRONECKER_CUTS, RMAT_CUTS, Grid3D, Kronecker, RandomGraph, Recipe, RMat

__all__ = ["generate_edges"]


def generate_edges(device: Device, recipe: Recipe, first: int, last: int) -> tuple[Array, Array] | None:
    """Make edges first <= i < last of a recipe.

    Returns
    -------
    source, target : array of int32, or int64 where ids need that
        None for a recipe that has no kernel.

    Raises
    ------
    InputError
        The recipe has no such edge (`RandomGraph`).
    """
    if type(recipe) not in _ENTRIES:
        return None
    entry, arguments = _ENTRIES[type(recipe)]
    xp, wide = device.array, int(recipe.vertices > 2**31)
    source, target = (xp.empty(last - first, dtype="int64" if wide else "int32") for _ in range(2))
    failure = xp.zeros(1, dtype="uint64")
    if last > first:
        values = (np.uint64(first), np.int64(last - first), *arguments(recipe, failure), source, target)
        spread(device, "generate", entry, (("WIDE", wide),), last - first, *values)
    if isinstance(recipe, RandomGraph) and (complement := int(failure[0])):
        recipe.refuse(2**64 - 1 - complement)
    return source, target


_ENTRIES: dict[type[Recipe], tuple[str, Callable[[Any, Array], Iterable[Any]]]] = {
    Kronecker: (
        "generate_kronecker",
        lambda recipe, _: (np.uint64(recipe.counter), np.uint32(recipe.bits), *map(np.uint64, KRONECKER_CUTS)),
    ),
    RMat: (
        "generate_rmat",
        lambda recipe, _: (np.uint32(recipe.hashed_seed), np.uint32(recipe.bits), *RMAT_CUTS[1:]),
    ),
    RandomGraph: (
        "generate_random",
        lambda recipe, failure: (np.uint64(recipe.vertices), np.uint64(recipe.edges // recipe.vertices), failure),
    ),
    Grid3D: ("generate_grid3d", lambda recipe, _: (np.uint64(recipe.side),)),
}
"""Entry point of a recipe, and its values; `failure` receives the edge that a random graph does not have."""
