"""Imported by the process from which workers are forked, so that they need not import and load all this themselves."""

import distributed  # noqa: F401

import dasktc
from dasktc.options import Method

dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), method=Method(kernel="hub"))
