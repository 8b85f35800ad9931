"""Rates that a caller may give."""

import pytest

from dasktc.errors import InputError
from dasktc.planning.rates import RATES


def test_overhead_may_be_none_and_rates_may_not():
    assert RATES["cpu"].changed(overhead=0.0).overhead == 0
    for bad in ({"overhead": -1.0}, {"edges": 0.0}, {"probes": 0.0}):
        with pytest.raises(InputError):
            RATES["cpu"].changed(**bad)
