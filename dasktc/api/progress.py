"""Progress of a call for people who watch: a bar in a terminal or a notebook, or one JSON line an event."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from dasktc.pipeline.prepare import Progress

__all__ = ["json_lines", "showing"]


@contextmanager
def showing(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield what a call reports its progress to.

    Parameters
    ----------
    progress : callable (stage, done, total), bool or None
        True: a bar, a widget in Jupyter, which is there from the first event to the end of the block. False and None:
        nothing.
    """
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.close()


_STAGE = "{desc} {elapsed}"
_BAR = "{desc}{bar} {n_fmt}/{total_fmt} {elapsed}"
"""Stages of one step show no bar: it would stand at nothing until they end."""


class _Bar:
    """A bar of tqdm; made at the first event, so that lines before it stand alone."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc=stage, bar_format=_STAGE, leave=False, ncols=70)
        self._bar.total, self._bar.n = total, done
        self._bar.bar_format = _BAR if total > 1 else _STAGE
        self._bar.set_description_str(f"{stage:<10}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def json_lines(stream: TextIO | None = None) -> Progress:
    """Return a callable that writes an event as one line: `{"stage": …, "done": …, "total": …}`.

    Parameters
    ----------
    stream : text stream, optional
        Default: standard error as it is when an event comes.
    """

    def write(stage: str, done: int, total: int) -> None:
        line = json.dumps({"stage": stage, "done": done, "total": total})
        print(line, file=stream or sys.stderr, flush=True)

    return write
