"""Edge keys: packed, merged, made distinct, ranked and cut, against sorted lists and sets."""

from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends import get_backend
from dasktc.backends.cpu import edges as cpu_edges
from dasktc.backends.cpu import radix
from dasktc.backends.cpu.edges import CpuEdges
from dasktc.backends.vertex_maps import MAX_VERTICES
from dasktc.pipeline.stages.edge_keys import cut, distinct, ends_of, pack, ranked, shift_of, transform, unpack
from dasktc.pipeline.stages.ids import IdRange
from tests.support.slow_pipeline import CPU, key_arrays

ARRAYS = key_arrays()


@pytest.mark.parametrize(("vertices", "bits"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (MAX_VERTICES, 31)])
def test_bits_of_an_id(vertices, bits):
    assert shift_of(vertices) == bits
    assert vertices <= 1 << bits < max(3, 2 * vertices)


@given(st.integers(1, MAX_VERTICES), st.data())
def test_keys_hold_both_ends(vertices, data):
    ids = st.lists(st.tuples(*[st.integers(0, vertices - 1)] * 2), min_size=1, max_size=9)
    high, low = np.array(data.draw(ids)).T
    shift = shift_of(vertices)
    for dtype in ("int32", "int64"):
        keys = pack(high.astype(dtype), low.astype(dtype), shift)
        assert keys.dtype == "int64"
        assert keys.min() >= 0
        assert [end.tolist() for end in unpack(keys, shift)] == [high.tolist(), low.tolist()]


@given(st.lists(ARRAYS, min_size=1, max_size=5))
def test_merge_and_distinct_leave_their_arrays_alone_and_empty_their_list(pieces):
    copies = [piece.copy() for piece in pieces]
    everything = np.concatenate(copies).tolist()
    for function, last, expected in ((CPU.merge, 0, sorted(everything)), (distinct, CPU, sorted(set(everything)))):
        given_up = list(pieces)
        assert function(given_up, 100, last).tolist() == expected
        assert given_up == []
    assert all((piece == copy).all() for piece, copy in zip(pieces, copies, strict=True))


@given(st.lists(st.integers(0, 2**62), max_size=50), st.sampled_from([0, 40, 58]))
def test_values_are_ranked_in_ascending_order(values, fewer):
    """Also where a value and its position do not fit 63 bits together."""
    values = [value >> fewer for value in values]
    found, places = ranked(np.array(values, dtype="int64"), (2**62 >> fewer) + 1, CPU)
    assert found.tolist() == sorted(set(values))
    assert places.dtype == "int32"
    assert [found[place] for place in places] == values


@given(ARRAYS, st.lists(st.integers(0, 120), max_size=6).map(sorted), st.sampled_from([1, 1 << 10]), st.integers(1, 12))
def test_cut_makes_a_piece_of_every_range(keys, starts, ranges, guess):
    """In one pass, however much a key's leading bits tell about its range; or by sorting, for many ranges."""
    with mock.patch.object(CpuEdges, "ranges", ranges), mock.patch.object(cpu_edges, "GUESS", guess):
        pieces, borders = cut(keys, starts, 100, CPU), [0, *starts, 10**9]
    assert len(pieces) == len(starts) + 1
    for piece, low, high in zip(pieces, borders, borders[1:], strict=False):
        assert sorted(piece.tolist()) == sorted(key for key in keys.tolist() if low <= key < high)


@pytest.mark.parametrize("made", [False, True], ids=["keys", "made of edges"])
@pytest.mark.parametrize("borders", [0, 1, 2, 6, 7, 8, 50])
def test_keys_are_cut_at_borders(borders, made):
    """Also where ranges are empty, at both ends and in the middle."""
    draw = np.random.default_rng(borders)
    src, dst = draw.integers(0, 64, (2, 100_000), "int32")
    keys = np.minimum(src, dst).astype("int64") << 6 | np.maximum(src, dst)
    starts = sorted(draw.integers(0, 64 << 6, borders).tolist())
    if borders > 5:
        starts[1], starts[-1] = starts[0], 64 << 6
    found = cut(CPU.edges.lazy_keys(src, dst, IdRange(0, 64), 6) if made else keys, starts, 64 << 6, CPU)
    for piece, first, end in zip(found, [0, *starts], [*starts, 64 << 6], strict=True):
        assert np.array_equal(np.sort(piece), np.sort(keys[(keys >= first) & (keys < end)]))
    assert sum(map(len, found)) == len(keys)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_chunks_go_over_every_key(size):
    keys = np.arange(size * CPU.chunk + 3)
    longest = []
    found = transform(keys, lambda chunk: longest.append(len(chunk)) or chunk * 2, CPU)
    assert (found == keys * 2).all()
    ends = list(ends_of(keys, 3, CPU))
    assert [np.concatenate(of).tolist() for of in zip(*ends, strict=True)] == [
        (keys >> 3).tolist(),
        (keys & 7).tolist(),
    ]
    assert max(*longest, *(len(source) for source, _ in ends)) <= CPU.chunk


@pytest.mark.parametrize("batch", [1, 100, 1 << 16])
def test_keys_of_several_arrays_are_distinct(batch):
    """Equal keys in any of the arrays, and in batches of any size."""
    backend = replace(get_backend("cpu"), dealt=partial(radix.dealt, batch=batch))
    arrays = [np.random.default_rng(k).integers(0, 3_000, 4_000) for k in range(3)]
    expected = np.unique(np.concatenate(arrays))
    assert np.array_equal(distinct(list(arrays), 1 << 12, backend), expected)
    assert np.array_equal(distinct([np.arange(10), np.arange(5)], 1 << 12, backend), np.arange(10))
    assert len(distinct([np.empty(0, "int64")], 1 << 12, backend)) == 0
