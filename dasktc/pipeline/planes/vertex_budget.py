"""Memory budget of vertex vectors: decides whether they are whole or sharded while vertices are numbered and ranked.

The one rule: vectors are whole where `need(V)` bytes are within the memory of one call; else there are as many shards
as keep a call on one shard within it.
"""

from __future__ import annotations

from typing import NamedTuple

from dasktc.errors import InputError
from dasktc.options import Ids, format_size
from dasktc.pipeline.planes.tuning import TUNING, Tuning
from dasktc.registry import ORDERS, SCHEMES
from dasktc.wording import advice, option, plural

__all__ = ["VertexBudget"]

SHARD_BYTES = {"int": 80, "text": 450}
"""Bytes a vertex where vectors are sharded, with a margin because shards differ in size by some tenths."""
IN_MEMORY = 3
"""Factor without a memory budget: results of eight partitions, not of two, are merged at a time."""
LEAST_MEMORY = 1 << 24
"""Least bytes granted to preparation on workers, where no budget is enforced."""
USUAL_TEXT = 18
"""Bytes of a text id, its offset included, that the figures above assume."""
ROUNDED = 1.02
"""Factor on a suggested --memory, larger than what `format_size` may round off."""
MOST_SHARDS = 512
"""Bound on the number of shards, because every shard exchanges a task input with every partition."""


class VertexBudget(NamedTuple):
    """The memory that vertex vectors may take in one call."""

    call_memory: int | None
    """Bytes that one call may take; None: unbounded."""
    ids: Ids = "int"
    order: str = "degree"
    """Name of the vertex order."""
    times: int = 1
    """Factor on the bytes of ids and ranks: `IN_MEMORY` without a memory budget."""
    on_device: bool = False
    memory_ratio: float = 1.4
    """Bytes of `--memory` per byte that one call may take, at most."""
    width: float = 1.0
    """Length of the text ids relative to `USUAL_TEXT`; at least 1."""
    at_a_time: int = 1
    """Calls that share `call_memory`: one call on whole vectors has all of it, calls on shards a share each."""
    tuning: Tuning = TUNING

    def of(self, vertices: int, nbytes: int) -> VertexBudget:
        """The same budget for text ids that take `nbytes` in all."""
        return self._replace(width=max(1.0, nbytes / max(1, USUAL_TEXT * vertices)))

    def need(self, vertices: int) -> int:
        """Bytes that numbering and ranking take with whole vectors."""
        id_bytes, rank_bytes = self.width * self.tuning.id_bytes[self.ids], ORDERS[self.order].rank_bytes
        return self.times * vertices * int(max(id_bytes, rank_bytes))

    def _asked(self, nbytes: float) -> str:
        """The memory that leaves `nbytes` to one call, for an error's advice."""
        return advice(memory=format_size(ROUNDED * self.memory_ratio * nbytes))

    def fits(self, vertices: int) -> bool:
        """Whether whole vectors fit the memory of one call."""
        return self.call_memory is None or self.need(vertices) <= self.call_memory

    def shards(self, vertices: int) -> int:
        """The number of shards of a vertex vector."""
        return min(MOST_SHARDS, self._wanted(vertices))

    def _wanted(self, vertices: int) -> int:
        if self.call_memory is None or self.fits(vertices):
            return self.tuning.least_shards
        return max(self.tuning.least_shards, 2, -(-vertices * self._vertex_bytes * self.at_a_time // self.call_memory))

    @property
    def _vertex_bytes(self) -> int:
        return int(self.times * SHARD_BYTES[self.ids] * self.width)

    def check(self, vertices: int, partition: str) -> None:
        """Refuse vertex vectors whose shards do not fit, and schemes that need whole vectors where only shards fit.

        Raises
        ------
        InputError
        """
        if self._wanted(vertices) > MOST_SHARDS:
            raise InputError(
                f"{self._fact(vertices)}: {MOST_SHARDS} shards of them do not fit either; give "
                f"{self._asked(self._vertex_bytes * vertices / MOST_SHARDS)}"
            )
        vectors = "" if partition == "auto" else SCHEMES[partition].dealing.whole_vectors
        if vectors and self.shards(vertices) > 1:
            raise InputError(
                f"{self._fact(vertices)}: {option('partition', partition)} keeps {vectors}; let "
                f"{advice(partition='auto')} choose, or give {self._asked(self.need(vertices))}"
            )

    def why(self, vertices: int) -> str:
        """Say, for the plan, whether vertex vectors are whole or sharded, and why."""
        count = self.shards(vertices)
        if self.call_memory is None:
            return f"vertices in {_parts_text(count)}"
        if not self.fits(vertices):
            return f"vertices in {_parts_text(count)}: {self._fact(vertices)}"
        size = format_size(self.need(vertices))
        limit = format_size(self.call_memory)
        return f"vertices in one piece: {size} while they are numbered and ranked, within {limit}"

    def _fact(self, vertices: int) -> str:
        return (
            f"{plural(vertices, 'vertex takes', 'vertices take')} {format_size(self.need(vertices))} while they are "
            f"numbered and ranked, more than the {format_size(self.call_memory or 0)} that one stage may take"
        )


def _parts_text(count: int) -> str:
    return "one piece" if count == 1 else f"{count:,} shards"
