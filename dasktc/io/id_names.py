"""Names of columns: common ones of ids, of numbers of rows and of an index with ids, and those that a caller gives."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from dasktc.errors import InputError, shown
from dasktc.wording import advice, nearest, option

__all__ = [
    "ATTRIBUTES", "INDEX", "NUMBERS", "PAIRS", "check_two", "choose", "distinct_pairs", "ends_of", "known_pairs",
    "place_of", "plain", "position", "proposed", "weight_position",
]  # fmt: skip

log = logging.getLogger("dasktc")

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
ATTRIBUTES = frozenset(
    "age amount capacity cost count date datetime dist distance edgetype kind label predicate rating rel relation "
    "relationship score sign similarity time timestamp ts type weight weights wt year".split()
)
"""Names, in the form of `plain`, of columns that describe edges or vertices: they are id columns only on request."""
INDEX = frozenset({name for pair in PAIRS for name in pair} - {"row", "col", "i", "j"}) | {
    *("node", "nodeid", "vertex", "vertexid")
}
"""Names, in the form of `plain`, with which a frame's index perhaps holds ids."""


def plain(name: str) -> str:
    """Return a column name in lower case without signs between its words; Neo4j's `a:START_ID(B)` gives `startid`."""
    group = r"\(.*\)" if name.endswith(")") else ""  # where it may end, known at once: no time for a long name
    name = re.sub(rf"^.*:(START_ID|END_ID){group}$", r"\1", name)
    return re.sub(r"[\W_]+", "", name).lower()


def known_pairs(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of two columns with names of `PAIRS`, in order of preference."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(plain(name), []).append(place)
    for first, second in PAIRS:
        yield from product(places.get(first, ()), places.get(second, ()))


def distinct_pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of `known_pairs`, each once, whichever of its columns is the first."""
    return list({frozenset(pair): pair for pair in known_pairs(names)}.values())


def ends_of(name: str, labels: Sequence[object]) -> tuple[int, int]:
    """Return the positions of both ends in a table of pairs: two columns with known names of ids, else the first two.

    `name` is that of the parameter, for errors, and for the log where the ends are not the first two. InputError:
    several columns have such names.
    """
    names = [str(label) for label in labels]
    pairs = distinct_pairs(names)
    if len(pairs) > 1:
        one, other = (" and ".join(repr(names[place]) for place in pair) for pair in pairs[:2])
        raise InputError(f"{name} has columns {one}, which are names of ids, and so are {other}; pass two columns")
    ends = pairs[0] if pairs else (0, 1)
    if ends != (0, 1):
        log.warning("%s: the ends are its columns %r and %r", name, *(names[place] for place in ends))
    return ends


def choose(
    where: str, names: Sequence[str], columns: tuple[str, str] | None, kinds: Sequence[str | None]
) -> tuple[int, int]:
    """Choose the two id columns: the requested ones, those with common names, or the first two.

    Parameters
    ----------
    where : str
        The file or the object, for errors.
    names : sequence of str
        Its columns, in order.
    columns : tuple of two str or None
        Names, or positions as digits.
    kinds : sequence of str or None
        Type of ids in each column; the first two are chosen only if their types are equal and not None.

    Returns
    -------
    tuple of two int
        Positions from 0.

    Raises
    ------
    InputError
        A requested column does not exist, both are the same, or the choice is unclear.
    """
    if columns is not None:
        source, target = (position(where, names, name) for name in columns)
        if source is not None and target is not None:
            check_two(columns, (source, target))
            return source, target
    else:
        keys = re.findall(r"([^/=]+)=[^/]*/", where)
        for pair in known_pairs([*names, *keys]):
            if key := next((keys[place - len(names)] for place in pair if place >= len(names)), None):
                raise InputError(
                    f"{where} has the columns {', '.join(names)[:200]}, and {key!r} in the names of its folders, which "
                    f"are not read as ids; write both ids into the files{_for_example(', or name two of these', names)}"
                )
            return pair
        if len(names) > 1 and kinds[0] == kinds[1] is not None:
            return 0, 1
    # Nothing says which columns hold ids: the error proposes two of one kind.
    names_by_kind = (
        [name for name, id_kind in zip(names, kinds, strict=True) if id_kind == kind] for kind in ("int", "text")
    )
    candidates = next((group for group in names_by_kind if len(group) > 1), names)
    example = _for_example("name them", candidates) or "write two columns of ids"
    proposal = proposed(columns or (), names)
    fact = "which two hold ids is unclear" if len(names) > 1 else "an edge has two ends"
    if columns:
        unknown_names = [name for name in columns if position(where, names, name) is None]
        excerpts = (name if len(name) <= 80 else f"{name[:60]}... ({len(name):,} characters)" for name in unknown_names)
        fact = f"{' and '.join(map(repr, excerpts))} {'is' if len(unknown_names) == 1 else 'are'} not among them"
    raise InputError(
        f"{where} has the columns {', '.join(names)[:200] or '(none)'}: {fact}; "
        + (f"{proposal}name two of these" if proposal else example)
    )


def proposed(columns: Iterable[str], names: Sequence[str]) -> str:
    """Return the question whether columns with nearly the requested names are meant, for an error; "" if none are."""
    columns = [*columns]
    nearest_names = [name if name in names or name.isdecimal() else nearest(name, names) for name in columns]
    if nearest_names == columns or None in nearest_names or nearest_names[0] == nearest_names[1]:
        return ""
    return f"did you mean {advice(columns=tuple(nearest_names))}? Else "


def _for_example(option: str, names: Sequence[str]) -> str:
    """Return the advice to name two columns, with the first two of those that may hold ids."""
    if len(names) < 2:
        return ""
    example = f", as with {advice(columns=tuple(names[:2]))}" if max(map(len, names[:2])) <= 40 else ""
    return f"{option} with {advice('columns')}{example}"


def check_two(columns: tuple[str, str], places: Sequence[object]) -> None:
    """Refuse two names of one column, with which every edge would be a loop."""
    if places[0] == places[1]:
        raise InputError(f"{option('columns', columns)} is one column: an edge has two ends; give two")


def place_of(name: str) -> int | None:
    """Parse a name as a column's position from 0; return None if it is not a number."""
    return int(name) if name.isdecimal() and len(name) < 19 else None


def position(where: str, names: Sequence[str], name: str, width: int | None = None) -> int | None:
    """Return the position of a column that a caller gives by name, or by position in digits; None if there is none.

    Parameters are those of `weight_position`. InputError: several columns have that name.
    """
    places = [place for place, known in enumerate(names) if known == name]
    if len(places) > 1:
        raise InputError(
            f"{where} has {len(places)} columns {shown(name)}: which is meant is unclear; give its position in place "
            f"of the name, {', '.join(map(str, places[:-1]))} or {places[-1]}, or rename one"
        )
    place = places[0] if places else place_of(name)
    return place if place is not None and place < (len(names) if width is None else width) else None


def weight_position(
    where: str, names: Sequence[str], ends: Sequence[int], name: str | None, width: int | None = None
) -> int | None:
    """Return the position of the column of weights, or of values, which a caller gives by name, or position in digits.

    Parameters
    ----------
    where : str
        The file or the object, for errors.
    names : sequence of str
        Of the columns; empty where they have none.
    ends : sequence of int
        Positions of the two id columns.
    name : str or None
        None: weights are not read, and the result is None.
    width : int, optional
        Number of columns; default: as many as names.

    Raises
    ------
    InputError
        There is no such column, or it is an id column.
    """
    if name is None:
        return None
    place = position(where, names, name, width)
    if place is None:
        fact = f"its columns are {', '.join(names[:12])}" if names else "it has no header with names"
        raise InputError(f"{where} has no column {shown(name)}: {fact}; name one of its columns, or a position from 0")
    if place in ends:
        raise InputError(
            f"column {shown(name)} is named for ids and for values of {where}: it cannot be both; name another"
        )
    return place
