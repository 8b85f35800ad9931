"""Parses lines of text, and blocks of them into columns of ids.

There are two parsers with equal results. A compiled pass (`backends.cpu.rows`) is fast, but requires rows of two
integers without quotes or comments; where weights are read, Arrow's CSV reader requires rows of equal width, too. All
other blocks are matched line by line against one regular expression, which defines a row; the first line that does not
match is reported. A block stands below the first row of data, where a line that begins with # or % is a comment only if
it has not the fields of a row (`Dialect.widths`); comments are counted.
"""

# CPU seconds of one thread for amazon0601, 47.9 MB and 3.4 M rows with carriage returns: Arrow 0.37 to 0.49, of them
# 0.09 for a search for carriage returns that end no line and 0.03 for marks that it cannot read; compiled, with both
# in the same pass, 0.06 by a loop over digits, and 0.03 where a plain row is found by comparing 32 bytes at once.

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import lazy_backend
from dasktc.io.evidence import is_integer
from dasktc.once import once
from dasktc.options import Ids
from dasktc.wording import advice, plural

__all__ = [
    "BLANKS", "MOST_COLUMNS", "BadLine", "Dialect", "Rows", "count_rows", "even_columns", "parse", "parse_any",
    "parse_weighted", "split",
]  # fmt: skip

Array = Any
CPU = lazy_backend("cpu")
BLANKS = " \t\r\x0b\x0c"
_ORDINARY = b"0123456789-. \t\r\n,;|"
MOST_COLUMNS = 1 << 12
"""Columns in which ids and weights may stand: with four times as many a regular expression would be too large."""


@dataclass(frozen=True)
class Dialect:
    """Description of how to read a line."""

    separator: str | None
    """One character, with blanks around it, or None for any run of blanks."""
    columns: tuple[int, int]
    """Positions of the source's and the target's id, from 0."""
    ids: Ids
    weight: int | None = None
    """Position of the weight, or of surveyed values, from 0; None: it is not read."""
    names: tuple[str, str] | None = None
    """Names of the two columns of text ids in the header. A row with these names is no edge but a repeated header, of
    files that were joined."""
    widths: tuple[int, int] | None = (2, 2)
    """Fewest and most fields of a row. A line that begins with # or % is a row if its number of fields lies between and
    its ids are of this type, else a comment. None: no line is a comment, as below the header of a CSV file."""
    surveyed: bool = False
    """Whether the fields at `weight` are any text, for surveys."""


class BadLine(Exception):
    """A line that cannot be read: its position in the block, from 0, and the reason."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason


class Rows(NamedTuple):
    """The ids in a block of lines."""

    source: Array
    target: Array
    """Both ends: NumPy int32 or int64, or Arrow large_string."""
    rows: int
    """Number of data rows, including rows of a single id (an isolated vertex)."""
    comments: int
    """Number of lines that were skipped as comments."""


def parse(block: bytes | bytearray, dialect: Dialect) -> Rows:
    """Read the ids in a block of whole lines; BadLine: a line does not hold two ids."""
    if dialect.ids == "int":
        if pair := CPU.rows(np.frombuffer(block, np.uint8), dialect.separator, dialect.columns):
            return Rows(*pair, len(pair[0]), 0)
    return parse_any(block, dialect)


def parse_weighted(block: bytes | bytearray, dialect: Dialect) -> tuple[Rows, Array]:
    """Read ids as `parse` does, and weights, an array of float64, or surveyed values, Python's texts.

    BadLine: a line does not hold two ids and a finite number, or a value that is not empty.
    """
    import pyarrow.compute as pc

    place = dialect.weight
    assert place is not None
    is_plain = dialect.separator is not None or sorted([*dialect.columns, place]) == [0, 1, 2]
    if dialect.ids == "int" and is_plain and not dialect.surveyed:
        types = dict.fromkeys(dialect.columns, "int64") | {place: "float64"}
        columns = even_columns(block, dialect.separator, types)
        if columns and np.isfinite(columns[-1]).all():
            return Rows(columns[0], columns[1], len(columns[0]), 0), columns[2]
    rows = parse(block, dialect)
    lines, places, _ = _data_lines(block, dialect)
    if len(rows.source) < rows.rows:  # a line with one id is no edge
        _, second = pc.extract_regex(lines, _pattern(dialect)).flatten()
        pairs = np.flatnonzero(pc.greater(pc.binary_length(second), 0))
        lines, places = lines.take(pairs), places[pairs]
    if dialect.surveyed:
        return rows, _surveyed(lines, places, dialect, place)
    fields = pc.extract_regex(lines, _value_pattern(dialect, place, True))
    if fields.null_count:
        row = pc.index(fields.is_null(), True).as_py()
        raise BadLine(
            int(places[row]), f"holds no number in column {place + 1}: a weight is expected there; check the line"
        )
    texts = pc.ascii_trim(pc.cast(fields.flatten()[0], "large_string"), '"')
    weights = pc.cast(texts, "float64").to_numpy(zero_copy_only=False)
    faults = np.flatnonzero(~np.isfinite(weights))
    if len(faults):
        raise BadLine(
            int(places[faults[0]]), f"holds {weights[faults[0]]} as its weight: weights are finite; drop the line"
        )
    return rows, weights


def _surveyed(lines: Array, places: Array, dialect: Dialect, place: int) -> Array:
    """Return the text of a field of each line."""
    import pyarrow.compute as pc

    fields = pc.extract_regex(lines, _value_pattern(dialect, place, False))
    gaps = fields.is_null()
    if not fields.null_count:
        values = _convert(fields.flatten()[0], "text", dialect.separator is not None, places)
        gaps = pc.equal(pc.binary_length(values), 0)
    for row in np.flatnonzero(gaps)[:1]:
        raise BadLine(int(places[row]), f"has no value in column {place + 1}: every row needs one; drop the line")
    return values.to_numpy(zero_copy_only=False)


def count_rows(block: bytes | bytearray, dialect: Dialect) -> int:
    """Count the lines that are neither blank nor comments."""
    return len(_data_lines(block, dialect)[1])


def even_columns(
    block: bytes | bytearray, separator: str | None, types: Mapping[int, str], width: int | None = None
) -> list[Array] | None:
    """Read columns of numbers with Arrow's CSV reader; return None if it cannot.

    Parameters
    ----------
    block : bytes
        Whole lines.
    separator : str or None
        One character, or None for any blank: then rows need one tab or one space between fields.
    types : mapping of int to str
        Types of the columns to read, by position from 0.
    width : int, optional
        Number of fields that every row must have. None: any number, equal in all rows.

    Returns
    -------
    list of array or None
        None if rows differ in width, or hold quotes, comments, or anything but these numbers.
    """
    marks = block.translate(None, _ORDINARY)
    if any(mark in marks for mark in b'#%"xX'):  # comments, quotes, and hexadecimal numbers
        return None
    import pyarrow
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    first = block[: block.find(b"\n")]
    if separator is None:
        separator = "\t" if b"\t" in first else " "
    if width not in (None, first.count(separator.encode()) + 1):  # Arrow takes seconds for a million columns
        return None
    names = {f"f{place}": getattr(pyarrow, kind)() for place, kind in types.items()}
    try:
        table = read_csv(
            pyarrow.BufferReader(block),
            ReadOptions(use_threads=False, block_size=len(block) + 1, autogenerate_column_names=True),
            ParseOptions(delimiter=separator, quote_char=False),
            ConvertOptions(include_columns=list(names), column_types=names, null_values=[]),
        )
    except (pyarrow.ArrowInvalid, pyarrow.ArrowKeyError):
        return None
    return [table[name].to_numpy() for name in names]


def parse_any(block: bytes | bytearray, dialect: Dialect) -> Rows:
    """Read rows of any width with one regular expression; as `parse`."""
    import pyarrow.compute as pc

    if b"\r" in block and (match := re.search(rb"\r[^\r\n]", block)):
        raise BadLine(
            block.count(b"\n", 0, match.start()),
            "holds a carriage return that ends no line: line ends of an old Mac; convert them, with tr '\\r' '\\n'",
        )
    if dialect.ids == "text" and b"\0" in block:
        place = block.count(b"\n", 0, block.find(b"\0"))
        raise BadLine(place, f"holds a zero byte: the file is binary or damaged; check it, or {advice('format')}")
    lines, places, comments = _data_lines(block, dialect)
    matches = pc.extract_regex(lines, _pattern(dialect))
    if matches.null_count:
        _refuse(lines, places, matches.is_null(), dialect)
    source, target = matches.flatten()
    is_single = pc.equal(pc.binary_length(target), 0)  # an isolated vertex
    if dialect.separator is not None and dialect.ids == "text":
        has_separator = pc.match_substring_regex(source, f"[,;|]|[{BLANKS}][^{BLANKS}]")
        _refuse(lines, places, pc.and_(is_single, has_separator), dialect)
    has_quotes = dialect.separator is not None and b'"' in block
    pairs = np.flatnonzero(pc.invert(is_single))
    ids = [
        _convert(source, dialect.ids, has_quotes, places).take(pairs),
        _convert(target.take(pairs), dialect.ids, has_quotes, places[pairs]),
    ]
    if dialect.columns[0] > dialect.columns[1]:
        ids.reverse()
    if dialect.names is not None:
        is_header = pc.and_(*map(pc.equal, ids, dialect.names))
        for row in np.flatnonzero(is_header)[:1]:
            raise BadLine(
                int(places[pairs[row]]), "holds the names of the columns again: files were joined with headers; drop it"
            )
    return Rows(ids[0], ids[1], len(source), comments)


def _data_lines(block: bytes | bytearray, dialect: Dialect) -> tuple[Array, Array, int]:
    """Return the lines that are neither blank nor comments, with line ends, their positions, and how many comments."""
    import pyarrow
    import pyarrow.compute as pc

    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    last = [] if block.endswith(b"\n") else [len(block)]
    bounds = np.concatenate([[0], ends, last]).astype(np.int64)
    buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(block)]
    lines = pyarrow.Array.from_buffers(pyarrow.large_binary(), len(bounds) - 1, buffers)  # a view without a copy
    data = pc.invert(pc.match_substring_regex(lines, f"^[{BLANKS}]*(?:\n|$)"))
    comments = 0
    if dialect.widths is not None and (b"#" in block or b"%" in block):
        comment_candidates = np.flatnonzero(pc.match_substring_regex(lines, f"^[{BLANKS}]*[#%]"))
        comment_lines = comment_candidates[~_has_fields(lines.take(comment_candidates), dialect, *dialect.widths)]
        data, comments = data.to_numpy(zero_copy_only=False), len(comment_lines)
        data[comment_lines] = False
    return lines.filter(data), np.flatnonzero(data), comments


def _has_fields(lines: Array, dialect: Dialect, minimum: int, maximum: int) -> Array:
    """Return which lines have two ids and as many fields as a row, without attributes in brackets."""
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(lines, r" *(?:\{.*\}|\[.*\])", "")
    if dialect.separator is None:
        gaps = pc.count_substring_regex(texts, f"[{BLANKS}]+[^{BLANKS}\n]")
        gaps = pc.subtract(gaps, pc.match_substring_regex(texts, f"^[{BLANKS}]+[^{BLANKS}\n]").cast("int64"))
    else:
        gaps = pc.count_substring(pc.replace_substring_regex(texts, '"[^"]*"', ""), dialect.separator)
    gaps = gaps.to_numpy(zero_copy_only=False)
    _, second = pc.extract_regex(lines, _pattern(dialect)).flatten()
    pairs = pc.fill_null(pc.greater(pc.binary_length(second), 0), False).to_numpy(zero_copy_only=False)
    return pairs & (minimum <= gaps + 1) & (gaps + 1 <= maximum)


@once
def _value_pattern(dialect: Dialect, place: int, is_number: bool) -> str:
    """Return the regular expression of a data line with a field, `w`, at a position: a number, or any field."""
    separator = dialect.separator
    blank = "".join(b for b in BLANKS if b != separator)
    number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[iI]nf|[nN]a[nN]"
    if separator is None:
        field = f"[^{BLANKS}\n]+"
        value = number if is_number else field
        before = f"{field}[{BLANKS}]+" * place  # a count of repetitions may be 1,000 at most
        return f"^[{blank}]*{before}(?P<w>{value})(?:[{BLANKS}\n]|$)"
    first = f"{separator}{blank}" if is_number else separator
    field = f'(?:[^{first}\n"][^{separator}\n]*|"(?:[^"\n]|"")*"[{blank}]*|)'
    value = f'(?P<w>{number}|"(?:{number})")' if is_number else f"(?P<w>{field})"
    before = f"{field}[{separator}][{blank}]*" * place
    return f"^[{blank}]*{before}{value}[{blank}]*(?:[{separator}\n]|$)"


@once
def _pattern(dialect: Dialect) -> str:
    """Return the regular expression of a data line: `a` and `b` are the ids in the order of their positions."""
    separator = dialect.separator
    first, last = sorted(dialect.columns)
    blank = "".join(b for b in BLANKS if b != separator)
    if separator is None:
        any_field, gap, rest = f"[^{BLANKS}\n]+", f"[{BLANKS}]+", f"(?:[{BLANKS}][^\n]*)?"
        name = "-?[0-9]+" if dialect.ids == "int" else any_field
    else:
        plain_field, gap = f'[^{separator}{blank}\n"][^{separator}\n]*', f"[{separator}][{blank}]*"
        any_field = f'(?:{plain_field}|"(?:[^"\n]|"")*"[{blank}]*|)'
        name = '-?[0-9]+|"-?[0-9]+"' if dialect.ids == "int" else f'{plain_field}|"(?:[^"\n]|"")+"'
        rest = "(?:\t[^\n]*)?" if separator == "\t" else f"(?:{gap}{any_field})*"
    prefix = (any_field + gap) * first
    infix = (any_field + gap) * (last - first - 1)
    optional = "?" if (first, last) == (0, 1) else ""
    pair = f"{gap}{infix}(?P<b>{name})[{blank}]*{rest}"
    return f"^[{blank}]*{prefix}(?P<a>{name})[{blank}]*(?:{pair}){optional}\n?$"


def _refuse(lines: Array, places: Array, mask: Array, dialect: Dialect) -> None:
    """Raise BadLine for the first wrong line, if there is one."""
    for line in np.flatnonzero(mask)[:1]:
        raise BadLine(int(places[line]), _reason(lines[int(line)].as_py().decode("utf-8", "replace"), dialect))


def _convert(values: Array, ids: str, has_quotes: bool, places: Array) -> Array:
    """Convert the bytes of ids to int64, or to text without quotes."""
    import pyarrow
    import pyarrow.compute as pc

    def converted(values: Array) -> Array:
        text = pc.ascii_trim(values.cast(pyarrow.large_string()), BLANKS)
        if has_quotes:
            content = pc.replace_substring(pc.utf8_slice_codeunits(text, 1, -1), '""', '"')
            text = pc.if_else(pc.starts_with(text, '"'), content, text)
        return text if ids == "text" else text.cast(pyarrow.int64()).to_numpy()

    def fails(last: int) -> bool:
        try:
            converted(values[: last + 1])
        except pyarrow.ArrowInvalid:
            return True
        return False

    try:
        return converted(values)
    except pyarrow.ArrowInvalid:
        row = bisect_left(range(len(values)), True, key=fails)
    # The first id that cannot be converted explains why.
    example = values[row].as_py()[:40].decode("utf-8", "replace")
    if ids == "text":
        reason = f"holds {example!r}, which is not UTF-8 text: another encoding, or damaged; convert it, with iconv"
    else:
        reason = f"holds {example!r}, which is beyond a 64-bit integer: a name, or damaged; use {advice(ids='text')}"
    raise BadLine(int(places[row]), reason)


def split(text: str, separator: str | None) -> list[str]:
    """Split a line into fields, without surrounding blanks and quotes."""
    if separator is None:
        return re.split(f"[{BLANKS}]+", text.strip(BLANKS + "\n"))
    blanks = BLANKS.replace(separator, "")
    try:
        fields = next(csv.reader([text.strip(blanks + "\n")], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a field exceeds the limit of the csv module
        fields = text.split(separator)
    return [field.strip(blanks + "\n") for field in fields]


def _reason(line: str, dialect: Dialect) -> str:
    """Return why the regular expression does not match a line."""
    fields = split(line, dialect.separator)
    for place in sorted(dialect.columns):
        if place >= len(fields):
            return (
                f"holds {plural(len(fields), 'field')} where column {place + 1} should be an id: "
                "cut short, or another separator; check the line"
            )
        if not fields[place]:
            return (
                f"holds no id in column {place + 1}: a missing value, or another column is meant; drop the "
                f"row, or name the id columns with {advice('columns')}"
            )
        if dialect.ids == "int" and dialect.widths is None and line.strip(BLANKS)[0] in "#%":
            return (
                f"holds {fields[place][:40]!r} where an integer id is expected, and below a header of names nothing is "
                f"a comment; drop such lines, or give {advice('skip')} with the number of the header's line"
            )
        if dialect.ids == "int" and fields[place].startswith("{"):
            return (
                f"holds one id and attributes, {fields[place][:40]!r}: perhaps a vertex and the number of its "
                "neighbours on a line above those; write one edge a line, with networkx.write_edgelist for one"
            )
        if dialect.ids == "int" and not is_integer(fields[place]):
            return (
                f"holds {fields[place][:40]!r} where an integer id is expected, as in other rows or as was asked for; "
                f"use {advice(ids='text')} if ids are names, or drop the line if it is a comment, header or total"
            )
    return "opens a quote that it does not close: fields over several lines are not read; write each row on one line"
