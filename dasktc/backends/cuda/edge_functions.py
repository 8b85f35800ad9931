"""Edges of generated graphs, made on a device: the launches of kernels/generate.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, spread
from dasktc.backends.edge_functions import KRONECKER_CUTS, RMAT_CUTS, Grid3D, Kronecker, RandomGraph, Recipe, RMat

__all__ = ["made"]

Launch = Callable[[str, tuple[Any, ...]], None]


def made(device: Device, recipe: Recipe, first: int, last: int) -> tuple[Array, Array] | None:
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
    launch_one = _MAKE.get(type(recipe))
    if launch_one is None:
        return None
    xp, wide = device.array, int(recipe.vertices > 2**31)
    source, target = (xp.empty(last - first, dtype="int64" if wide else "int32") for _ in range(2))

    def launch(entry: str, values: tuple[Any, ...]) -> None:
        given = (np.uint64(first), np.int64(last - first), *values, source, target)
        spread(device, "generate", entry, (("WIDE", wide),), last - first, *given)

    if last > first:
        launch_one(device, recipe, launch)
    return source, target


def _kronecker(_: Device, recipe: Any, launch: Launch) -> None:
    cuts = map(np.uint64, KRONECKER_CUTS)
    launch("generate_kronecker", (np.uint64(recipe.counter), np.uint32(recipe.bits), *cuts))


def _rmat(_: Device, recipe: Any, launch: Launch) -> None:
    launch("generate_rmat", (np.uint32(recipe.hashed_seed), np.uint32(recipe.bits), *map(np.uint64, RMAT_CUTS)))


def _random(device: Device, recipe: Any, launch: Launch) -> None:
    failed = device.array.zeros(1, dtype="uint64")
    launch("generate_random", (np.uint64(recipe.vertices), np.uint64(recipe.edges // recipe.vertices), failed))
    if refused := int(failed[0]):
        recipe.refuse(2**64 - 1 - refused)


def _grid3d(_: Device, recipe: Any, launch: Launch) -> None:
    launch("generate_grid3d", (np.uint64(recipe.side),))


_MAKE: dict[type[Recipe], Callable[[Device, Any, Launch], None]] = {
    Kronecker: _kronecker,
    RMat: _rmat,
    RandomGraph: _random,
    Grid3D: _grid3d,
}
