"""Which cases of a parametrised test are in the default tier; all others are marked slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], default: Callable[..., bool]) -> list[Any]:
    """Mark the cases as slow for which `default` is not true."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=() if default(*case) else pytest.mark.slow) for case in every]


def once(cases: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Those of the cases that bring a value of some parameter which no case before them had."""
    seen: list[tuple[int, Any]] = []
    chosen = []
    for case in cases:
        if new := [value for value in enumerate(case) if value not in seen]:
            seen.extend(new)
            chosen.append(case)
    return chosen


def each_once(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Mark the cases as slow that bring no new value of any parameter."""
    every = list(cases)
    chosen = once(every)
    return some(every, lambda *case: case in chosen)
