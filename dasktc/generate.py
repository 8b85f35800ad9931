"""Generated graphs with known answers, importable from here; see `dasktc.io.generators`."""

from dasktc.io.generators.synthetic import *  # noqa: F403
from dasktc.io.generators.synthetic import __all__ as __all__
