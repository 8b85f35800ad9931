"""Radix sort on a device, against NumPy's sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.backends.cuda.sort import LARGE, SORT, RadixSort, Tile
from tests.support.emulation.host import HostDevice, needs_compiler

TINY = {"tile": Tile(64, 3, 6), "small": Tile(32, 2, 5), "few": 150}
"""Tiles of 192 keys, and of 64 for at most `few` keys, so that tests cross the borders of both."""
BOTH = [RadixSort(HostDevice(reverse), **TINY) for reverse in (False, True)]
"""Threads and blocks in ascending and in descending order."""
SIZES = st.one_of(st.integers(0, 70), st.sampled_from([63, 64, 65, 128, 150, 151, 191, 192, 193, 384, 385, 1200]))


@st.composite
def keys_below(draw):
    """Keys of any width: random, few different ones, ascending, descending, or all equal."""
    bits, size, rng = draw(st.integers(1, 63)), draw(SIZES), np.random.default_rng(draw(st.integers(0, 99)))
    keys = rng.integers(0, 2**bits - 1, size, dtype="int64", endpoint=True)
    order = draw(st.sampled_from(["random", "few", "ascending", "descending", "equal", "largest"]))
    keys = {
        "few": lambda: keys[rng.integers(0, min(3, size), size)] if size else keys,
        "ascending": lambda: np.sort(keys),
        "descending": lambda: np.sort(keys)[::-1].copy(),
        "equal": lambda: np.full_like(keys, keys[0] if size else 0),
        "largest": lambda: np.full_like(keys, 2**bits - 1),
    }.get(order, lambda: keys)()
    return keys, draw(st.sampled_from([2**bits, int(keys.max(initial=0)) + 1]))


@needs_compiler
@pytest.mark.parametrize("radix", BOTH, ids=["forward", "reverse"])
@given(given_keys=keys_below(), low=st.just(0) | st.integers(0, 62))
def test_keys_of_every_width_keep_their_order_where_they_differ_below(radix, given_keys, low):
    keys, bound = given_keys
    assert radix.sort(keys.copy(), bound, low).tolist() == keys[np.argsort(keys >> low, kind="stable")].tolist()


@needs_compiler
@pytest.mark.parametrize("radix", BOTH, ids=["forward", "reverse"])
@given(given_keys=keys_below(), cuts=st.lists(st.integers(0, 400), max_size=SORT["ARRAYS"] + 5))
def test_arrays_are_sorted_together_and_stay_as_they_are(radix, given_keys, cuts):
    keys, bound = given_keys
    arrays = [part.copy() for part in np.split(keys, sorted(cuts))]
    inputs = list(arrays)
    assert radix.merge(inputs, bound).tolist() == np.sort(keys).tolist()
    assert inputs == []
    assert np.concatenate(arrays).tolist() == keys.tolist()


@needs_compiler
@pytest.mark.parametrize("radix", BOTH, ids=["forward", "reverse"])
@pytest.mark.parametrize("sizes", [(770, 800, 1), (1000, 960, 775, 5), (768, 769)])
def test_arrays_that_end_within_a_tile(radix, sizes):
    """Further arrays follow, whose keys of the highest digit go after those of the partial tile."""
    rng = np.random.default_rng(1)
    for bound in (1 << 6, 1 << 20):
        arrays = [rng.integers(0, bound, size) for size in sizes]
        for keys in arrays:
            keys[::3] = bound - 1
        known = np.sort(np.concatenate(arrays))
        assert radix.merge(arrays, bound).tolist() == known.tolist()


@needs_compiler
@pytest.mark.parametrize("size", [LARGE.keys - 1, LARGE.keys, 3 * LARGE.keys + 1])
def test_tiles_of_the_usual_size(size):
    keys = np.random.default_rng(size).integers(0, 2**40, size)
    assert RadixSort(HostDevice(), few=0).sort(keys.copy(), 2**40).tolist() == np.sort(keys).tolist()


@needs_compiler
def test_sums_of_64_bits(monkeypatch):
    monkeypatch.setattr("dasktc.backends.cuda.sort.LONG", 500)
    keys = np.random.default_rng(1).integers(0, 2**20, 1000)
    assert BOTH[0].sort(keys.copy(), 2**20).tolist() == np.sort(keys).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 1000, (1 << 18) + 1, 20_000_003])
@pytest.mark.parametrize("bits", [1, 24, 48, 54, 63])
def test_on_the_device(size, bits):
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    radix, rng = RadixSort(cuda.device()), np.random.default_rng(bits)
    keys = rng.integers(0, 2**bits - 1, size, dtype="int64", endpoint=True)
    keys[: size // 3] = keys[0]
    known = cp.asarray(np.sort(keys))
    for _ in range(3):  # tiles come in another order each time
        assert bool((radix.sort(cp.asarray(keys), 2**bits) == known).all())
    parts = [cp.asarray(part) for part in np.array_split(keys, 5)]
    assert bool((radix.merge(list(parts), 2**bits) == known).all())
    low = bits // 2
    stable = keys[np.argsort(keys >> low, kind="stable")]
    assert bool((radix.sort(cp.asarray(keys), 2**bits, low) == cp.asarray(stable)).all())


@pytest.mark.gpu
@pytest.mark.whole_gpu
def test_more_keys_than_32_bits_of_sums_on_the_device():
    cp = pytest.importorskip("cupy")
    from dasktc.backends.cuda import backend as cuda

    size = (1 << 30) + 12345
    if cp.cuda.runtime.memGetInfo()[0] < 30 * size:
        pytest.skip(f"the GPU has no {30 * size:,} bytes free")
    keys = cp.arange(size, dtype="int64")
    keys *= 0x9E3779B1
    keys &= 2**31 - 1
    total = int(keys.sum())
    result = RadixSort(cuda.device()).sort(keys, 2**31)
    assert bool((result[1:] >= result[:-1]).all())
    assert int(result.sum()) == total


def test_a_device_of_little_shared_memory_has_smaller_tiles():
    device = HostDevice()
    device.shared_bytes = 1 << 16
    keys = np.random.default_rng(5).integers(0, 2**40, 3 * LARGE.keys + 1)
    small = RadixSort(device, few=0)
    assert small.defines() != RadixSort(HostDevice(), few=0).defines()
    assert small.sort(keys.copy(), 2**40).tolist() == np.sort(keys).tolist()
