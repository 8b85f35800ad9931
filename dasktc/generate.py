"""Generated graphs with known answers, under the path that users import; see `dasktc.io.generators`."""

from dasktc.io.generators.synthetic import *  # noqa: F403
from dasktc.io.generators.synthetic import __all__ as __all__
