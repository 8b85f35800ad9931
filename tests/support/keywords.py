"""Options by name, as the command line has them, as keywords of dasktc's functions."""

from __future__ import annotations

from dasktc.executors.place import Place
from dasktc.options import Method, RunOptions

PLACES = ("workers", "scheduler", "scheduler_file", "security")


def keywords(**options):
    """Put options of a method into `method=`, those of a run into `run=`, and places to run into `client=`."""
    kinds = {"method": (Method, Method.__dataclass_fields__), "run": (RunOptions, RunOptions.__dataclass_fields__)}
    for keyword, (kind, names) in {**kinds, "client": (Place, PLACES)}.items():
        if fields := {name: options.pop(name) for name in names if name in options}:
            options[keyword] = kind(**fields)
    return options
