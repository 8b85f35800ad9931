"""Sums of floats are the same bits whatever order their parts come in, and however they are grouped."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dasktc.questions.sums import IN_ORDER, added_in_order


@given(st.integers(1, 40), st.randoms(use_true_random=False), st.integers(2, 5))
def test_sums_are_the_same_whatever_order_their_parts_come_in(count, random, arity):
    arrays = np.random.default_rng(count).standard_normal((count, 3)) * 10.0 ** np.arange(count)[:, None]
    parts = [{(0, number): array} for number, array in enumerate(arrays)]
    expected = IN_ORDER.start()
    for part in parts:
        expected = IN_ORDER.add(expected, part)
    assert len(expected) == bin(count).count("1")
    random.shuffle(parts)
    while len(parts) > 1:
        chosen = [parts.pop(random.randrange(len(parts))) for _ in range(min(arity, len(parts)))]
        parts.append(IN_ORDER.combine(chosen))
    found = added_in_order(parts[0])
    assert found.tolist() == added_in_order(expected).tolist()
    np.testing.assert_allclose(found, arrays.sum(axis=0), rtol=1e-9)
    assert (
        arrays.tolist()
        == (np.random.default_rng(count).standard_normal((count, 3)) * 10.0 ** np.arange(count)[:, None]).tolist()
    )
