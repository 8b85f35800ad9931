"""Sizes of tables."""

import pytest

from dasktc.backends.cpu import sizes


@pytest.mark.parametrize("longest", [1, 10**5, 10**6, 10**8])
def test_the_table_of_the_longest_row_stays_half_empty(longest):
    assert sizes.bucket_depth(longest) * sizes.LARGE >= 2 * longest
