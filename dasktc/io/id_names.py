"""Common names of id columns, of columns that number the rows, and of an index that holds ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["INDEX", "NUMBERS", "PAIRS", "known_pairs", "plain"]

PAIRS: dict[tuple[str, ...], bool] = {
    ("src", "dst"): True,
    ("source", "target"): True,
    ("source", "destination"): True,
    ("from", "to"): True,
    ("u", "v"): False,
    ("row", "col"): False,
    ("id1", "id2"): True,
    ("node1", "node2"): True,
    ("vertex1", "vertex2"): True,
    ("fromnode", "tonode"): True,
    ("sourcenode", "targetnode"): True,
    ("startnode", "endnode"): True,
    ("srcid", "dstid"): True,
    ("sourceid", "targetid"): True,
    ("fromid", "toid"): True,
    ("startid", "endid"): True,
    ("fromnodeid", "tonodeid"): True,
    ("sourcenodeid", "targetnodeid"): True,
    ("sourceid", "destinationid"): True,
    ("subject", "object"): True,
    ("subjectid", "objectid"): True,
    ("subj", "obj"): True,
    ("headid", "tailid"): True,
    ("headentity", "tailentity"): True,
    ("nodea", "nodeb"): True,
    ("vertexa", "vertexb"): True,
    ("entity1", "entity2"): True,
    ("origin", "destination"): True,
    ("follower", "followee"): True,
    ("sender", "receiver"): True,
    ("sender", "recipient"): True,
    ("citing", "cited"): True,
    ("head", "tail"): False,
    ("parent", "child"): False,
    ("i", "j"): False,
}
"""Common names of the two id columns, in the form of `plain`, in order of preference.

True marks pairs that cannot be two adjacent vertices: in a text file they are certainly a header, even above text ids.
"""
NUMBERS = frozenset({"", "edgeid", "eid", "index", "idx", "rowid", "rownumber", "unnamed0", "indexlevel0"})
"""Names, in the form of `plain`, of columns that may number the rows: they are id columns only on request."""
INDEX = frozenset({name for pair in PAIRS for name in pair} - {"row", "col", "i", "j"}) | {
    *("node", "nodeid", "vertex", "vertexid")
}
"""Names, in the form of `plain`, with which a frame's index perhaps holds ids."""


def plain(name: str) -> str:
    """Return a column name in lower case without signs between its words; Neo4j's `a:START_ID(B)` gives `startid`."""
    name = re.sub(r"^.*:(START_ID|END_ID)(\(.*\))?$", r"\1", name)
    return re.sub(r"[\W_]+", "", name).lower()


def known_pairs(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of two columns with names of `PAIRS`, in order of preference."""
    plain_names = [plain(name) for name in names]
    for first, second in PAIRS:
        if first in plain_names and second in plain_names:
            yield plain_names.index(first), plain_names.index(second)
