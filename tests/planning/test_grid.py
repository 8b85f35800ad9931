"""Parts of rows and columns."""

import numpy as np
import pytest

from dasktc.planning.grid import Axis


@pytest.mark.parametrize("first", [0, 1, 5, 7])
def test_the_share_of_a_part_wherever_the_vector_begins(first):
    axis = Axis(20, 3)
    for part in range(3):
        assert axis.share(np.arange(first, 20), part, first).tolist() == [v for v in range(first, 20) if v % 3 == part]
