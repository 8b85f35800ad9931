"""`python -m dasktc` is the command line."""

import sys

from dasktc.cli import main

if __name__ == "__main__":
    sys.exit(main())
