"""What a worker process imports and compiles, or loads, before it has counted anything."""

import distributed  # noqa: F401

from dasktc import support, triangles  # noqa: F401
from dasktc.backend import cpu

cpu.warm()
