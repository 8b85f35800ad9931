"""LSTC's parts against its algorithm, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import CountError
from dasktc.options import PROXIES
from dasktc.pipeline.stages.edge_keys import unpack
from dasktc.pipeline.stages.lstc import (
    block_of_part,
    counts_of,
    held_from,
    inside,
    keys_in_part,
    members_of,
    neighbours,
    no_bits,
    numbers_of,
    own_bits,
    part_degrees,
    reached_bits,
    roles_of,
    slabs_of_part,
    targets,
    together,
)
from dasktc.pipeline.stages.orient import wedges_of
from tests.support.oracle import complete, multigraphs
from tests.support.slow_pipeline import CPU, kept_by_part, oriented_keys

MANY_PARTS = 64


def bits_of_parts(keys, own, parts, shift, how):
    """Bits of the parts of G_p, and of the tails and heads of what parts keep."""
    local = own_bits(own, 0, CPU)
    induced = neighbours(keys, local, parts, shift, CPU)
    if how == "none":
        return induced, induced, induced
    if how == "tight":
        heads = targets(keys, local, no_bits(local, 0), parts, shift, CPU)
        return induced, local | heads, heads
    kept, before = local, -1
    while (held := sum(held_from(kept, 0, parts))) > before:
        before, kept = held, reached_bits(keys, induced, kept, parts, shift, CPU)
    return induced, kept, kept


@pytest.mark.parametrize("how", PROXIES)
@given(multigraphs(max_vertices=14, max_edges=50), st.integers(1, 5) | st.just(MANY_PARTS), st.integers(0, 9))
def test_parts_are_those_of_the_paper(how, edges, parts, seed):
    """Of any of 64 parts, the last of which is the sign of a mask; and of shards of the vertices."""
    keys, outward, shift = oriented_keys(edges)
    size, pairs = len(outward), set(zip(*(end.tolist() for end in unpack(keys, shift)), strict=True))
    own = np.random.default_rng(seed).integers(max(0, parts - 5), parts, size)
    induced, tails, heads = bits_of_parts(keys, own, parts, shift, how)
    held, held_induced = held_from(tails, 0, parts), held_from(induced, 0, parts)
    edges_induced, out = (
        inside(keys, induced, parts, shift, CPU),
        {u: [v for w, v in pairs if w == u] for u in range(size)},
    )
    for part in range(max(0, parts - 5), parts):
        local = set(np.flatnonzero(own == part).tolist())
        of_induced, vertices, kept = kept_by_part(out, local, how)
        assert (held_induced[part], edges_induced[part], held[part]) == (*of_induced, len(vertices))
        degrees = part_degrees(keys, roles_of(tails, heads, own, part), parts, shift, CPU)
        of_local = {(u, v) for u, v in kept if u in local}
        wedges = sum(len([1 for w, _ in kept if w == v]) for _, v in of_local)
        assert (
            counts_of(*degrees)
            == (len(of_local), len(kept), wedges)
            == (*map(sum, map(np.ndarray.tolist, degrees)), wedges_of(*degrees))
        )

        cut = size // 2
        shards = [(tails[first:end], heads[first:end], own[first:end], first) for first, end in ((0, cut), (cut, size))]
        of_shards = [members_of(tail, mine, first, part, CPU) for tail, _, mine, first in shards]
        members, flags = (together(list(of), CPU) for of in zip(*of_shards, strict=True))
        assert members.tolist() == sorted(vertices)
        assert flags.tolist() == [v in local for v in members]
        before = len(of_shards[0][0])
        number = [numbers_of(*shards[0][:2], 0, part, CPU), numbers_of(*shards[1][:2], before, part, CPU)]
        numbered = keys_in_part(keys, np.concatenate(number), parts, shift, CPU)
        middle = len(members) // 2
        borders = [(0, middle), (middle, len(members))]
        slices = [numbered[(numbered >= low << shift) & (numbered < high << shift)] for low, high in borders]
        slabs = [slabs_of_part([some], rows, flags, shift, CPU) for some, rows in zip(slices, borders, strict=True)]
        for side, wanted in enumerate((of_local, kept)):
            given_slabs = [slab[side] for slab in slabs]
            block = block_of_part(given_slabs, (part, side), members, True, CPU, len(wanted))
            rows = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
            found = list(zip(rows.tolist(), block.column_ids(block.columns).tolist(), strict=True))
            assert found == sorted(wanted)


def test_lost_edges_of_a_part_are_an_error():
    keys, outward, shift = oriented_keys(complete(6))
    members, flags = np.arange(6, dtype="int32"), np.ones(6, bool)
    _, all_rows = slabs_of_part([keys[1:]], (0, len(outward)), flags, shift, CPU)
    with pytest.raises(CountError, match=r"block P\[0\]\[1\] holds 14 edges, the plan 15"):
        block_of_part([all_rows], (0, 1), members, True, CPU, 15)
