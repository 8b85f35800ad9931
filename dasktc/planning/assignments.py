"""Registered assignments of vertices to parts (`--assign`), declared as data. No module compares their names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from dasktc.registry import ASSIGNMENTS

__all__ = ["OWN", "Assignment", "Membership"]


class Membership(Enum):
    """What decides the part of a vertex: a hash of its id and the seed, its range of ids, or METIS."""

    HASH = auto()
    RANGE = auto()
    METIS = auto()


@dataclass(frozen=True)
class Assignment:
    """A method that assigns vertices to parts: its name, a line of help, and what decides."""

    name: str
    help: str
    by: Membership


OWN = (
    Assignment("random", "by a hash of the id and the seed", Membership.HASH),
    Assignment("contiguous", "ranges of ids", Membership.RANGE),
    Assignment("metis", "METIS's parts, with few edges between them (needs pymetis)", Membership.METIS),
)
"""In the order of the help text."""
ASSIGNMENTS.declare(OWN, Assignment)
