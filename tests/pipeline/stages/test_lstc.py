"""LSTC's parts against its algorithm, step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends import get_backend
from dasktc.backends.part_edges import ArrayPartEdges
from dasktc.errors import CountError
from dasktc.options import PROXIES
from dasktc.pipeline.stages import lstc
from dasktc.pipeline.stages.edge_keys import unpack
from dasktc.pipeline.stages.orient import wedges_of
from tests.support.oracle import complete, multigraphs
from tests.support.slow_pipeline import CPU, kept_by_part, oriented_keys

MANY_PARTS = 64


def bits_of_parts(keys, own, parts, shift, how, backend):
    """Bits of the parts of G_p, and of the tails and heads of what parts keep."""
    local = lstc.own_bits(own, 0, backend)
    induced = lstc.neighbours(keys, local, parts, shift, backend)
    if how == "none":
        return induced, induced, induced
    if how == "tight":
        heads = lstc.targets(keys, local, lstc.no_bits(local, 0), parts, shift, backend)
        return induced, local | heads, heads
    kept, before = local, -1
    while (held := sum(lstc.held_from(kept, 0, parts))) > before:
        before, kept = held, lstc.reached_bits(keys, induced, kept, parts, shift, backend)
    return induced, kept, kept


ARRAYS = replace(get_backend("cpu"), part_edges=ArrayPartEdges(np, 7))
"""The backend with array arithmetic on the edges of parts, in chunks that end within a graph."""


@pytest.mark.parametrize("backend", [CPU, ARRAYS], ids=["compiled", "arrays"])
@pytest.mark.parametrize("how", PROXIES)
@given(multigraphs(max_vertices=14, max_edges=50), st.integers(1, 5) | st.just(MANY_PARTS), st.integers(0, 9))
def test_parts_are_those_of_the_paper(backend, how, edges, parts, seed):
    """Of any of 64 parts, the last of which is the sign of a mask; and of shards of the vertices."""
    keys, outward, shift = oriented_keys(edges)
    size, pairs = len(outward), set(zip(*(end.tolist() for end in unpack(keys, shift)), strict=True))
    own = np.random.default_rng(seed).integers(max(0, parts - 5), parts, size)
    induced, tails, heads = bits_of_parts(keys, own, parts, shift, how, backend)
    held, held_induced = lstc.held_from(tails, 0, parts), lstc.held_from(induced, 0, parts)
    edges_induced, out = (
        lstc.inside(keys, induced, parts, shift, backend),
        {u: [v for w, v in pairs if w == u] for u in range(size)},
    )
    for part in range(max(0, parts - 5), parts):
        local = set(np.flatnonzero(own == part).tolist())
        of_induced, vertices, kept = kept_by_part(out, local, how)
        assert (held_induced[part], edges_induced[part], held[part]) == (*of_induced, len(vertices))
        degrees = lstc.part_degrees(keys, lstc.roles_of(tails, heads, own, part), parts, shift, backend)
        of_local = {(u, v) for u, v in kept if u in local}
        wedges = sum(len([1 for w, _ in kept if w == v]) for _, v in of_local)
        assert (
            lstc.counts_of(*degrees)
            == (len(of_local), len(kept), wedges)
            == (*map(sum, map(np.ndarray.tolist, degrees)), wedges_of(*degrees))
        )

        cut = size // 2
        shards = [(tails[first:end], heads[first:end], own[first:end], first) for first, end in ((0, cut), (cut, size))]
        of_shards = [lstc.members_of(tail, mine, first, part, backend) for tail, _, mine, first in shards]
        members, flags = (lstc.together(list(of), backend) for of in zip(*of_shards, strict=True))
        assert members.tolist() == sorted(vertices)
        assert flags.tolist() == [v in local for v in members]
        before = len(of_shards[0][0])
        number = [
            lstc.numbers_of(*shards[0][:2], 0, part, backend),
            lstc.numbers_of(*shards[1][:2], before, part, backend),
        ]
        numbered = lstc.keys_in_part(keys, np.concatenate(number), parts, shift, backend)
        middle = len(members) // 2
        borders = [(0, middle), (middle, len(members))]
        slices = [numbered[(numbered >= low << shift) & (numbered < high << shift)] for low, high in borders]
        calls = zip(slices, borders, strict=True)
        slabs = [lstc.slabs_of_part([some], rows, flags, shift, backend) for some, rows in calls]
        for side, wanted in enumerate((of_local, kept)):
            given_slabs = [slab[side] for slab in slabs]
            block = lstc.block_of_part(given_slabs, (part, side), members, True, backend, len(wanted))
            rows = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
            found = list(zip(rows.tolist(), block.column_ids(block.columns).tolist(), strict=True))
            assert found == sorted(wanted)


def test_lost_edges_of_a_part_are_an_error():
    keys, outward, shift = oriented_keys(complete(6))
    members, flags = np.arange(6, dtype="int32"), np.ones(6, bool)
    _, all_rows = lstc.slabs_of_part([keys[1:]], (0, len(outward)), flags, shift, CPU)
    with pytest.raises(CountError, match=r"block P\[0\]\[1\] holds 14 edges, the plan 15"):
        lstc.block_of_part([all_rows], (0, 1), members, True, CPU, 15)
