"""Id columns: the choice of two, checks for integers; converts library errors to one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.id_names import known_pairs
from dasktc.wording import advice, nearest, option

__all__ = [
    "check_two",
    "choose",
    "frame",
    "integers",
    "listed",
    "named",
    "one_line",
    "place_of",
]

Array = Any


def choose(
    url: str, names: list[str], columns: tuple[str, str] | None, kinds: Mapping[str, str | None]
) -> tuple[str, str]:
    """Choose the two id columns: the requested ones, those with common names, or the first two.

    Parameters
    ----------
    url : str
    names : list of str
        The columns of the file, in order.
    columns : tuple of two str or None
        Names, or positions as digits.
    kinds : mapping of str to str or None
        Type of ids in each column; the first two are chosen only if their types are equal and not None.

    Raises
    ------
    InputError
        A requested column does not exist, both are the same, or the choice is unclear.
    """
    if columns is not None:
        places = [named(names, name) for name in columns]
        if None not in places:
            check_two(columns, places)
            return str(places[0]), str(places[1])
    else:
        keys = re.findall(r"([^/=]+)=[^/]*/", url)
        for pair in known_pairs([*names, *keys]):
            if key := next((keys[place - len(names)] for place in pair if place >= len(names)), None):
                raise InputError(
                    f"{url} has the columns {', '.join(names)[:200]}, and {key!r} in the names of its folders, which "
                    f"are not read as ids; write both ids into the files{_for_example(', or name two of these', names)}"
                )
            return names[pair[0]], names[pair[1]]
        if len(names) > 1 and kinds[names[0]] == kinds[names[1]] is not None and names[0] != names[1]:
            return names[0], names[1]
    names_by_kind = [[name for name in names if kinds[name] == kind] for kind in ("int", "text")]
    alike = next((group for group in names_by_kind if len(group) > 1), [])
    example = _for_example("name them", alike if len(alike) > 1 else names) or "write two columns of ids"
    proposal = proposed(columns or (), names)
    raise InputError(
        f"{url} has the columns {', '.join(names)[:200] or '(none)'}: "
        f"{listed(columns, ' and ') + ' are not among them' if columns else 'which two hold ids is unclear'}; "
        + (f"{proposal}name two of these" if proposal else example)
    )


def proposed(columns: Iterable[str], names: Sequence[str]) -> str:
    """Return the question whether columns with nearly the requested names are meant, for an error; "" if none are."""
    columns = [*columns]
    nearest_names = [name if name in names or name.isdecimal() else nearest(name, names) for name in columns]
    if nearest_names == columns or None in nearest_names or nearest_names[0] == nearest_names[1]:
        return ""
    return f"did you mean {advice(columns=tuple(nearest_names))}? Else "


def _for_example(option: str, names: list[str]) -> str:
    """Return the advice to name two columns, with the first two of those that may hold ids."""
    if len(names) < 2:
        return ""
    example = f", as with {advice(columns=tuple(names[:2]))}" if max(map(len, names[:2])) <= 40 else ""
    return f"{option} with {advice('columns')}{example}"


def check_two(columns: tuple[str, str], places: Sequence[object]) -> None:
    """Refuse two names of one column, with which every edge would be a loop."""
    if places[0] == places[1]:
        raise InputError(f"{option('columns', columns)} is one column: an edge has two ends; give two")


def listed(columns: tuple[str, str], separator: str = ",") -> str:
    """Return the requested names in the form of an error."""
    return separator.join(name if len(name) <= 80 else f"{name[:60]}... ({len(name):,} characters)" for name in columns)


def place_of(name: str) -> int | None:
    """Parse a name as a column's position from 0; return None if it is not a number."""
    return int(name) if name.isdecimal() and len(name) < 19 else None


def named(names: list[str], name: str) -> str | None:
    """Return the column that a caller gives by name, or by position from 0 in digits; None if there is none."""
    if name in names:
        return name
    place = place_of(name)
    return names[place] if place is not None and place < len(names) else None


def integers(url: str, name: str, array: Array) -> Array:
    """Convert integers to int32 or int64 of this machine's byte order.

    Parameters
    ----------
    url, name : str
        The file and the array, for errors.
    array : array
        Of any shape.

    Raises
    ------
    InputError
        The array holds no integers, or one of 2^63 or more.
    """
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} in {url} holds {array.dtype}: ids in NumPy files are integers; save it as int64, or "
            "text ids in a Parquet or text file"
        )
    kind, size = array.dtype.kind, array.dtype.itemsize
    if (kind, size) == ("u", 8) and len(array) and array.max() >= 1 << 63:
        raise InputError(f"{name} in {url} holds {array.max()}: ids must be below 2^63; renumber the vertices")
    return np.ascontiguousarray(array, np.int32 if size < 4 or (kind, size) == ("i", 4) else np.int64)


def frame(backend: Backend, src: Array, dst: Array) -> Any:
    """Make an edge frame of two integer arrays of shape (rows,), promoted to one type."""
    dtype = np.promote_types(src.dtype, dst.dtype)
    return backend.frame.DataFrame({"src": src.astype(dtype, copy=False), "dst": dst.astype(dtype, copy=False)})


@contextmanager
def one_line(url: str) -> Iterator[None]:
    """Convert any exception of a library into an InputError of one line that names the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of a dozen types, among them zipfile's, tokenize's and Arrow's own
        raise InputError(
            f"{url} cannot be read: {' '.join(str(error).split())[:200].rstrip('.')}: damaged, cut short, or "
            "ids that do not fit; fetch or save it again"
        ) from error
