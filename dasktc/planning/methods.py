"""The published systems by name (`method="trust"`, `--method trust`): which kernel, partition and order each one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dasktc.registry import METHODS

__all__ = ["OWN", "PublishedMethod"]


@dataclass(frozen=True)
class PublishedMethod:
    """A published system as options of `dasktc.Method`.

    Attributes
    ----------
    name, help : str
        Value of `method`, and a sentence that says what the system does.
    paper : str
        Authors, venue and year.
    options : mapping of str to object
        Attributes of `Method`. An order that is left out is the kernel's own.
    """

    name: str
    help: str
    paper: str
    options: Mapping[str, Any]


def _published(name: str, paper: str, help: str, **options: Any) -> PublishedMethod:
    return PublishedMethod(name, help, paper, MappingProxyType(options))


FOX = "Fox, Green, Gabert, An and Bader, Fast and Adaptive List Intersections on the GPU, IEEE HPEC 2018"
OWN = (
    _published(
        "trust",
        "Pandey et al., TRUST: Triangle Counting Reloaded on GPUs, IEEE TPDS 2021",
        "vertex-centric hashing of a hashed 2D partition, in collective degree order, which is banded where rows or "
        "blocks are cut",
        kernel="trust",
        partition="hash2d",
    ),
    _published(
        "h-index",
        "Pandey et al., H-INDEX: Hash-Indexing for Parallel Triangle Counting on GPUs, IEEE HPEC 2019",
        "a hash table of the shorter list of every edge, in equal ranges of edges; ids as they are",
        kernel="hindex",
        partition="edges",
        reorder="none",
    ),
    _published(
        "fox-merge",
        FOX,
        "Intersect-Path: two lists walked in step, with threads by the logarithm of an edge's work; ids as they are",
        kernel="merge",
        partition="whole",
        reorder="none",
    ),
    _published(
        "fox-search",
        FOX,
        "Par-Search: the shorter list bisected in the longer, with threads by the logarithm of an edge's work; ids as "
        "they are",
        kernel="search",
        partition="whole",
        reorder="none",
    ),
    _published(
        "lstc",
        "Tamboli and Jatala, LSTC: Large-Scale Triangle Counting on Single GPU, ICPE 2026",
        "parts of the vertices with proxies, reduced by LSTC's transformation, and search in tiles of a row; ids as "
        "they are",
        kernel="lstc",
        partition="proxy",
        proxies="lstc",
        reorder="none",
    ),
    _published(
        "tc-stream",
        "Huang et al., TC-Stream: Large-Scale Graph Triangle Counting on a Single Machine Using GPUs, IEEE TPDS 2022",
        "vertical parts by ranges of rows and columns, streamed, and search of uncut lists, in degree order",
        kernel="tcstream",
        partition="vertical",
        reorder="degree",
    ),
)
"""In the order of help texts."""
METHODS.declare(OWN, PublishedMethod)
