"""Reads Ligra's adjacency graphs: the word AdjacencyGraph, n, m, n offsets and m targets, all between white space.

Vertices are numbered from 0 to n - 1; the targets of vertex i begin at its offset. Two streams are read side by side,
one of offsets and one of targets, so that a part holds a block of each and never all offsets. Graphs with weights are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dasktc.errors import InputError
from dasktc.io.formats import entries, lines, streams
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice

__all__ = ["looks_like", "parts"]

Array = Any
HEAD = re.compile(rb"\s*(Weighted)?AdjacencyGraph\s+")
SIZES = re.compile(HEAD.pattern + rb"([0-9]+)\s+([0-9]+)(?:\s+|$)")


@dataclass(frozen=True)
class _File(entries.BlockPart):
    url: str
    vertices: int
    edges: int
    start: int

    def arrays(self, nbytes: int) -> Iterator[Array]:
        """Yield the edges of the file; raise InputError if their number is wrong."""
        dtype = np.dtype(np.int32 if self.vertices <= 1 << 31 else np.int64)
        yield np.empty((2, 0), dtype)
        offsets = self._numbers(nbytes, 0, self.vertices)
        starts, first, total = np.empty(0, np.int64), 0, 0
        for targets in self._numbers(nbytes, self.vertices, None):
            if len(targets) and targets.max() >= self.vertices:
                self._refuse(f"the target {targets.max()}, but ids go from 0 to {self.vertices - 1}")
            places = np.arange(total, total + len(targets))
            total += len(targets)
            if total > self.edges:  # the numbers in excess are counted but not kept
                continue
            while (not len(starts) or starts[-1] < total) and (block := next(offsets, None)) is not None:
                self._check(starts, block)
                starts = np.concatenate([starts, block])
                count = max(0, int(np.searchsorted(starts, places[0], side="right")) - 1)
                starts, first = starts[count:], first + count
            rows = np.searchsorted(starts, places, side="right") - 1
            yield np.stack([first + rows, targets]).astype(dtype)
            count = int(rows[-1])
            starts, first = starts[count:], first + count
        for block in offsets:
            self._check(starts, block)
            starts, first = block[-1:], first + len(starts) + len(block) - 1
        entries.check_total(self.url, total, self.edges)

    def _check(self, starts: Array, block: Array) -> None:
        """Refuse offsets that do not ascend from 0 to the number of edges."""
        last = starts[-1] if len(starts) else 0
        is_valid_start = len(starts) > 0 or block[0] == 0
        if not is_valid_start or block.max() > self.edges or (np.diff(block, prepend=last) < 0).any():
            self._refuse(f"offsets that do not ascend from 0 to {self.edges}, as {block[:3].tolist()}")

    def _numbers(self, nbytes: int, skipped: int, count: int | None) -> Iterator[Array]:
        """Yield blocks of at most `count` numbers after the first `skipped`, each of one number at least."""
        rest = b""
        with streams.open_decompressed(self.url) as stream:
            streams.skip(stream, self.start)
            while (count is None or count > 0) and (rest or stream):
                block = stream.read(nbytes)
                text = rest + block
                end = len(text) if not block else 1 + max(text.rfind(blank) for blank in (b" ", b"\n", b"\t", b"\r"))
                text, rest = text[:end], text[end:]
                if text.translate(None, lines.INTEGERS) or re.search(rb"[0-9]{19}", text) or len(rest) > lines.LONGEST:
                    match = re.search(rb"[^\s]*(?:[^0-9\s]|[0-9]{19})[^\s]*", text) or re.match(rb".*", rest)
                    self._refuse(repr((match[0] if match else b"")[:40].decode("latin-1")))
                numbers = np.fromstring(text, np.int64, sep=" ") if text.strip() else np.empty(0, np.int64)
                step = min(skipped, len(numbers))
                numbers, skipped = numbers[step:], skipped - step
                numbers = numbers if count is None else numbers[:count]
                count = None if count is None else count - len(numbers)
                if len(numbers):
                    yield numbers
                if not block:
                    return

    def _refuse(self, fact: str) -> NoReturn:
        raise InputError(
            f"{self.url} holds {fact}: damaged, or another format; export it again, or check {advice('format')}"
        )


def looks_like(head: bytes) -> bool:
    """Return whether decompressed first bytes are those of an adjacency graph of Ligra."""
    return HEAD.match(head) is not None


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Read an adjacency graph as one part; InputError if the file does not begin with two sizes, or has weights."""
    head = streams.head(url, 1 << 12)
    match = SIZES.match(head)
    sizes = lines.counts([match[2], match[3]]) if match else None
    if match is None or sizes is None:
        header = entries.HeaderLine(head, head[:60], 1)
        raise entries.bad_header(url, header, "'AdjacencyGraph', a number of vertices and one of edges")
    vertices, edges = sizes
    if match[1]:
        raise InputError(
            f"{url} is an adjacency graph of Ligra with weights, which are not read; if it has a number a line, leave "
            f"them out, with sed -e 1s/Weighted// -e {3 + vertices + edges}q"
        )
    return [_File(url, vertices, edges, match.end())], "int"
