"""Fixtures of the tests of benchmarks."""

import pytest

from tests.support.emulation import cupy_strict


@pytest.fixture(scope="module")
def emulated(emulated):
    """The CUDA backend on stand-ins whose arrays are taken for CuPy's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy_strict.ndarray, "__module__", "cupy")
        yield emulated
