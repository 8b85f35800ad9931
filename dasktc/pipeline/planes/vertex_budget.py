"""The memory that vectors of all vertices may take in a call, and so whether they are whole or cut into shards.

Vectors of V vertices take `need(V)` bytes while vertices are numbered and ranked. They are whole if these fit the
memory of one call. Else they are cut into the fewest shards with which a call on one shard fits.
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
"""Bytes of a shard per vertex, by kind of ids; with a margin, because shards differ in size by some tenths."""
MERGE_FACTOR = 3
"""Factor on the bytes of ids and ranks without a memory budget: ids of eight partitions, not two, merge at a time."""
LEAST_MEMORY = 1 << 24
"""Bytes that a call on a worker may take at least where no budget is enforced."""
USUAL_TEXT = 18
"""Bytes of a text id and its offset for which `SHARD_BYTES` and `Tuning.id_bytes` hold."""
ROUNDED = 1.02
"""Factor on the --memory that an error suggests: it suffices although `format_size` rounds it."""
MOST_SHARDS = 512
"""Most shards: every partition sends an array to every shard."""


class VertexBudget(NamedTuple):
    """The memory that vectors of all vertices may take in one call."""

    call_memory: int | None
    """Bytes that one call may take; None: unbounded."""
    ids: Ids = "int"
    order: str = "degree"
    """Name of the vertex order."""
    factor: int = 1
    """Multiplies the bytes of ids and ranks: `MERGE_FACTOR` without a memory budget."""
    on_device: bool = False
    memory_ratio: float = 1.4
    """Ratio of `--memory` to `call_memory`, or an upper bound of it."""
    width: float = 1.0
    """Mean bytes of the text ids relative to `USUAL_TEXT`; at least 1."""
    at_a_time: int = 1
    """Number of calls on shards that run at the same time and share `call_memory`; one on whole vectors runs alone."""
    tuning: Tuning = TUNING

    def for_texts(self, vertices: int, nbytes: int) -> VertexBudget:
        """The same budget for text ids of `nbytes` in all."""
        return self._replace(width=max(1.0, nbytes / max(1, USUAL_TEXT * vertices)))

    def need(self, vertices: int) -> int:
        """Bytes that numbering and ranking take with whole vectors."""
        id_bytes, rank_bytes = self.width * self.tuning.id_bytes[self.ids], ORDERS[self.order].rank_bytes
        return self.factor * vertices * int(max(id_bytes, rank_bytes))

    def _advice(self, nbytes: float) -> str:
        """The option that lets one call take `nbytes`."""
        return advice(memory=format_size(ROUNDED * self.memory_ratio * nbytes))

    def fits(self, vertices: int) -> bool:
        """Whether whole vectors fit the memory of one call."""
        return self.call_memory is None or self.need(vertices) <= self.call_memory

    def shards(self, vertices: int) -> int:
        """The number of shards of a vertex vector."""
        return min(MOST_SHARDS, self._fitting_shards(vertices))

    def _fitting_shards(self, vertices: int) -> int:
        """The fewest shards that fit, even if they are too many."""
        if self.call_memory is None or self.fits(vertices):
            return self.tuning.least_shards
        return max(self.tuning.least_shards, 2, -(-vertices * self._vertex_bytes * self.at_a_time // self.call_memory))

    @property
    def _vertex_bytes(self) -> int:
        return int(self.factor * SHARD_BYTES[self.ids] * self.width)

    def check(self, vertices: int, partition: str) -> None:
        """Refuse vertex vectors whose shards do not fit, and schemes that need whole vectors where only shards fit.

        Raises
        ------
        InputError
        """
        if self._fitting_shards(vertices) > MOST_SHARDS:
            raise InputError(
                f"{self._fact(vertices)}: {MOST_SHARDS} shards of them do not fit either; give "
                f"{self._advice(self._vertex_bytes * vertices / MOST_SHARDS)}"
            )
        vectors = "" if partition == "auto" else SCHEMES[partition].dealing.whole_vectors
        if vectors and self.shards(vertices) > 1:
            raise InputError(
                f"{self._fact(vertices)}: {option('partition', partition)} keeps {vectors}; let "
                f"{advice(partition='auto')} choose, or give {self._advice(self.need(vertices))}"
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
