"""Options by name, as the command line has them, as keywords of dasktc's functions; graphs prepared with them."""

import networkx as nx
import pandas as pd

import dasktc
from dasktc.executors.place import Place
from dasktc.options import Method, RunOptions
from tests.support import oracle

PLANS = [
    dict(partition="whole", splits=3),
    dict(partition="edges", splits=3),
    dict(partition="hash2d", parts=3),
    dict(partition="vertical", parts=2),
    dict(partition="proxy", parts=3),
]
"""Options of each scheme."""
REORDERS = ["degree", "collective", "indegree", "none"]
PLACES = ("workers", "scheduler", "scheduler_file", "security")


def keywords(**options):
    """Put options of a method into `method=`, those of a run into `run=`, and places to run into `client=`."""
    kinds = {"method": (Method, Method.__dataclass_fields__), "run": (RunOptions, RunOptions.__dataclass_fields__)}
    for keyword, (kind, names) in {**kinds, "client": (Place, PLACES)}.items():
        if fields := {name: options.pop(name) for name in names if name in options}:
            options[keyword] = kind(**fields)
    return options


def prepare(edges, client=None, **options):
    """Prepare edges as a frame, with options by name."""
    return dasktc.prepare(pd.DataFrame(edges, columns=["src", "dst"]), client, **keywords(**options))


def simple(edges):
    """The simple graph of some edges."""
    return nx.Graph([tuple(edge) for edge in oracle.clean(edges)])
