"""Schemes: splits, bounds, and which of them `auto` considers."""

from dataclasses import replace

import numpy as np
import pytest

from dasktc.planning.memory_model import triple_bytes
from dasktc.planning.schemes import Sizes, considered, scheme_of
from dasktc.registry import SCHEMES


def test_the_splits_of_a_heavy_triple_are_no_more_than_its_rows():
    vertical, rows = scheme_of("vertical"), np.array([[2] * 4, [500] * 4])
    edges = np.array([[10**6, 10, 10**6, 10], [10, 10, 10, 10]])
    triples = vertical.triples(2)
    shares = vertical.shares(triples, Sizes(edges, rows, rows))
    assert shares.max() == 2
    assert (shares <= rows.ravel()[triples[:, 0]]).all()


def test_auto_takes_no_scheme_that_keeps_whole_vectors_or_whose_sizes_are_not_known(monkeypatch):
    usual = [scheme.name for scheme in considered("auto")]
    for name, unlike in (("plain", {}), ("vectors", {"whole_vectors": "x"}), ("sizes", {"unknown": "x"})):
        scheme = scheme_of("hash2d")
        scheme = replace(scheme, name=name, auto=99, dealing=replace(scheme.dealing, **unlike))
        monkeypatch.setitem(SCHEMES, name, scheme)
    assert [scheme.name for scheme in considered("auto")] == [*usual, "plain"]


@pytest.mark.parametrize("scheme", ["whole", "edges", "hash2d", "vertical"])
def test_the_largest_task_of_a_size_is_no_smaller_than_its_lower_bound(scheme):
    """A graph without vertices has a row."""
    scheme = scheme_of(scheme)
    for parts in [1] if scheme.replicated else [1, 2, 3, 7, 16]:
        for vertices, edges in ((0, 0), (5, 3), (10**5, 10**6)):
            sizes = scheme.even(parts, vertices, edges)
            assert min(sizes.rows.min(), sizes.columns.min()) >= 1
            largest = triple_bytes(scheme.triples(parts), scheme.block_bytes(sizes).ravel()).max()
            assert scheme.least_bytes(vertices, edges, parts) <= largest
