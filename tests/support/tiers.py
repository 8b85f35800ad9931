"""Selects the cases of a parametrised test for the default tier; all others are marked slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], default: Callable[..., bool]) -> list[Any]:
    """Mark the cases as slow for which `default` is false."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=() if default(*case) else pytest.mark.slow) for case in every]


def once(cases: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Those cases that have a value of some parameter which no earlier case had."""
    seen: list[tuple[int, Any]] = []
    chosen = []
    for case in cases:
        if new := [value for value in enumerate(case) if value not in seen]:
            seen.extend(new)
            chosen.append(case)
    return chosen


def each_once(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Mark the cases as slow that have no new value of any parameter."""
    every = list(cases)
    chosen = once(every)
    return some(every, lambda *case: case in chosen)
