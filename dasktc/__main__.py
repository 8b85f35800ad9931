"""`python -m dasktc`, and `dasktc`, are the command line."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; Ctrl-C while it is being loaded ends in one line too."""
    try:
        from dasktc.cli.main import main
    except KeyboardInterrupt:
        print("dasktc: error: interrupted: nothing was begun; run it again", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(main())
