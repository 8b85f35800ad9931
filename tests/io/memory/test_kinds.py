"""Recognizing an object's library without importing it."""

import os
import subprocess
import sys

import pytest

from dasktc.errors import InputError
from tests.support.objects import one_line, open_object


class Foreign:
    """An object of a library whose code fails."""

    __module__ = "ibis.expr"
    columns = ("u", "v")

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("no such\ntype")


def test_a_library_that_fails():
    with pytest.raises(InputError, match=r"ibis.expr.Foreign cannot be read \(RuntimeError: no such type\)") as error:
        open_object(Foreign())
    one_line(error)


CHEAP = """
import sys
import numpy as np
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions
from_object(np.array([[0, 1]]), ReadOptions())
print(*sorted({"dask", "distributed", "networkx", "igraph", "scipy", "cudf", "cupy"} & set(sys.modules)))
"""


def test_detection_imports_no_library():
    done = subprocess.run([sys.executable, "-c", CHEAP], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.split() == []
