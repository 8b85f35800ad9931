"""`python -m dasktc`, and `dasktc`, are the command line."""

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; Ctrl-C while it is being loaded ends in one line too."""
    if sys.stderr is None:  # it was closed: nobody reads it
        sys.stderr = open(os.devnull, "w")  # for as long as the process lives
    try:
        from dasktc.cli.main import main
    except KeyboardInterrupt:
        print("dasktc: error: interrupted: nothing was begun; run it again", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(main())
