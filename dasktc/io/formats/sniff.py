"""Detects the dialect of a text file of edges (separator, id columns, id type, header) from its first rows.

The first row is the first line that is not blank and does not begin with `#` or `%`: such lines above it are comments.
Below, a line that begins so is a row if it has the fields of one, and below the header of a CSV file nothing is a
comment. The separator is one of `,` `;` `|` and tab,
with optional blanks around it, or any run of blanks: the first of these that gives two integers in every row. Ids are
integers if those of the first data row are, else text. The first row is a header if it has words above integers. Above
text ids it is a header if its ids occur in no other row and either are common column names or differ from all others as
words above numbers do; the layout records if that is doubtful. Other ambiguous files are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from dasktc.errors import InputError
from dasktc.io.evidence import (
    COLUMNS,
    Choice,
    Reading,
    Sample,
    is_integer,
    judge,
    refuse_two_pairs,
    refuse_wider,
    row_with_zeros,
)
from dasktc.io.formats import lines, streams
from dasktc.io.formats.rows import BLANKS, MOST_COLUMNS, Dialect, split
from dasktc.io.id_names import PAIRS, check_two, known_pairs, place_of, plain, position, proposed, weight_position
from dasktc.io.source import ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice, option, plural

__all__ = ["Doubt", "HeaderAloneError", "Layout", "fields_of", "first_line", "sniff"]

_SEPARATORS = (",", ";", "|", "\t", None)
_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
_FRACTION = r"-?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?"
_FIGURES = _NUMBER + r"|-?[0-9]{1,3}([,.'\u2019 \u00a0\u202f][0-9]{3})+|-?[0-9]+( +-?[0-9]+)+"
_MISSING = {"", "-", "?", "\\n", "na", "n/a", "nan", "none", "null", "inf", "-inf"}
_FOREIGN_COMMENT = r"//|/\*|(--|;|!)\s"
_RULE = r"(?=.*---)[-+|=: ]+"
_SIGN = r"[-=<>~.:|*+/\\&]+"
_LINE_END = r"(?<=\S)[\r\v\f\x1c-\x1e\x85\u2028\u2029](?=\S)"
_ROWS = 256
LONG = 4096
"""Characters of a line that are taken as evidence."""
_HEAD, _MOST = 1 << 16, 1 << 20


class Doubt(NamedTuple):
    """A first row that was read as a header or as an edge and may be the other.

    With `zeros` it is a row of integers of which one begins with zeros, which are not kept.
    """

    url: str
    line: int
    row: str
    header: bool
    zeros: bool = False


class Layout(NamedTuple):
    """How to read a file: the dialect, and where the data begins in the (decompressed) file.

    `start` is its byte. `counts` is not None if the first data row may be a header of vertex and edge counts: its line,
    from 1, and the number of data rows that follow if it is one. `doubt` describes a first row that may be a header or
    an edge, or leading zeros of integers. `reading` and `choice` say which columns were taken.
    """

    dialect: Dialect
    start: int
    counts: tuple[int, int] | None
    bytes_per_row: float
    doubt: Doubt | None
    reading: Reading
    choice: Choice


class HeaderAloneError(InputError):
    """A file has a header and no row below, as writers of many files leave where a part has no rows."""


class _Row(NamedTuple):
    """A sampled line: its byte offset, its line number, its text without the end, and the offset of the next line.

    A line that begins with # or % is `marked`: it is a row if its fields are. Above the line are `comments` other such
    lines and, if `excel`, one that names the separator.
    """

    start: int
    line: int
    text: str
    stop: int
    marked: bool
    comments: int
    excel: bool


class _Reading(NamedTuple):
    """The sampled rows under one separator, and their fields; `header` of them are above the data, perhaps `doubtful`.

    `kinds` are those of `_kind`.
    """

    separator: str | None
    columns: tuple[int, int]
    rows: list[_Row]
    fields: list[list[str]]
    header: int
    kinds: list[str]
    doubtful: bool

    @property
    def names(self) -> list[str]:
        """The names in the header, if there is one."""
        return self.fields[0] if self.header else []

    @property
    def widths(self) -> list[int]:
        """Number of fields per row, without the attributes in brackets that NetworkX writes."""
        return [len(split(without_attributes(row.text), self.separator)) for row in self.rows]


def sniff(url: str, options: ReadOptions) -> Layout:
    """Detect how a text file of edges is to be read; `columns`, `ids` and `skip` of the options override the detection.

    InputError: the file holds no edge in the first MiB, or its first rows are ambiguous.
    """
    rows = _sample(url, options.skip or 0)
    if len(rows) == 1 and len(ends := re.findall(_LINE_END, rows[0].text)) > 1:
        raise InputError(
            f"line {rows[0].line} of {url} is the only one, and holds {ends[0]!r} {plural(len(ends), 'time')}: perhaps "
            r"line ends of an old Mac or another program; write line feeds, with '\n'.join(text.splitlines()) in Python"
        )
    if options.skip is None and options.columns is None:
        _refuse_comments(url, rows)
    readings = [r for s in _SEPARATORS if (r := _read_as(s, rows, options))]
    if not readings:
        raise _no_reading(url, rows, options)
    reading = _choose(readings)
    rows, names = reading.rows, reading.names
    if reading.header == len(rows):
        raise HeaderAloneError(f"{url} holds no data line below its header: cut short; check the file")
    choice = _choice(url, reading, options)
    if choice.header:
        for row, fields in zip(rows[1:], reading.fields[1:], strict=True):
            refuse_wider(choice, fields, f"line {row.line} of {url}", repr(row.text[:40].strip()))
    if names:
        _refuse_names(url, reading, options)
        for name in options.columns or ():
            position(url, names, name)  # refuses a name of several columns
    is_mixed = "mixed" in reading.kinds  # records of several types, or numbers of rows above names
    if is_mixed:
        _judge_head(url, reading, choice)
    ids = options.ids or _ids(url, reading, options)
    if not is_mixed:
        _judge_head(url, reading, choice)
    return _layout(url, reading, choice, ids, options)


def _layout(url: str, reading: _Reading, choice: Choice, ids: Ids, options: ReadOptions) -> Layout:
    """Say how the other rows of a file are to be read, and what is to be told of its first ones."""
    rows, names, columns, header = reading.rows, reading.names, reading.columns, reading.header
    first, widths = rows[header], reading.widths
    # Below the header of a CSV file nothing is a comment, so that its data begins in the next line.
    table = bool(header) and reading.separator is not None
    bounds = None if table else (max(2, 1 + max(columns), min(widths[header:])), max(widths[header:]))
    weight = weight_position(url, names, columns, options.weight, max(map(len, reading.fields)))
    if (last := max(*columns, weight or 0)) >= MOST_COLUMNS:
        raise InputError(
            f"column {last + 1} of {url} is beyond the first {MOST_COLUMNS:,}, in which ids and weights may stand; "
            "write the columns that are needed to another file, with cut -f for one"
        )
    id_names = (names[columns[0]], names[columns[1]]) if max(columns) < len(names) else None
    dialect = Dialect(
        reading.separator, columns, ids, weight, id_names if ids == "text" else None, bounds, options.surveyed
    )
    doubt = None
    if reading.doubtful and ids == "text":
        doubt = Doubt(url, rows[0].line, rows[0].text[:60].strip(), bool(header))
    if ids == "int" and options.ids is None:
        choice = replace(choice, zeros=True)
        data = zip(rows[header:], reading.fields[header:], strict=True)
        if zeros := next((row for row, fields in data if row_with_zeros(columns, [fields])), None):
            doubt = Doubt(url, zeros.line, zeros.text[:60].strip(), False, True)
    result = Reading(
        "text file",
        (columns[0] + 1, columns[1] + 1),
        id_names,
        max(*widths, 1 + max(columns)),
        "given" if options.columns else "by position" if choice.by_position else "by name",
        comments_above=(rows[0] if table else first).comments,
        headers=header + first.excel,
    )
    return Layout(
        dialect,
        rows[0].stop if table else first.start,
        _counts(reading, options),
        sum(len(row.text) + 1 for row in rows) / len(rows),
        doubt,
        result,
        choice,
    )


def _choice(url: str, reading: _Reading, options: ReadOptions) -> Choice:
    """Return the choice of the id columns for judgement; refuse names of two pairs."""
    names, is_given = reading.names, options.columns is not None
    choice = Choice(
        url,
        reading.columns,
        tuple(names),
        reading.rows[0].line if names else None,
        blanks=reading.separator is None,
        by_position=not is_given and reading.columns not in known_pairs(names),
        header=len(names) if reading.separator is not None and not is_given and len(names) > 1 else 0,
    )
    if not is_given:
        refuse_two_pairs(choice)
    return replace(choice, labels=choice.labels[:COLUMNS])


def _judge_head(url: str, reading: _Reading, choice: Choice) -> None:
    """Judge the first rows of a file: all of a short one, else only what they show for themselves."""
    if not choice.by_position:
        return
    is_whole = len(reading.rows) < _ROWS and not streams.is_archive(url) and streams.size(url) < _HEAD
    fields = [fields_of(row.text, reading.separator) for row in reading.rows[reading.header :]]
    judge(choice, [Sample(len(fields), [fields])], whole=is_whole)


def fields_of(text: str, separator: str | None) -> tuple[str, ...]:
    """Return the fields of a line for evidence: those that are compared, without attributes in brackets."""
    text = without_attributes(text[:LONG])
    if separator is None or '"' in text:
        return tuple(split(text, separator))
    return tuple(map(str.strip, text.split(separator)))


def _refuse_comments(url: str, rows: list[_Row]) -> None:
    """Refuse first lines that are comments of other languages."""
    remarks = [*takewhile(lambda row: re.match(_FOREIGN_COMMENT, row.text.strip(BLANKS)), rows)]
    if remarks:
        raise InputError(
            f"line {remarks[0].line} of {url} holds {remarks[0].text[:60].strip()!r}: perhaps a comment, but those "
            f"begin with # or %; use {advice(skip=remarks[-1].line)} if it is one, {advice(skip=remarks[0].line - 1)} "
            "if it is an edge"
        )
    if rule := next((row for row in rows[:4] if re.fullmatch(_RULE, row.text.strip(BLANKS))), None):
        raise InputError(
            f"line {rule.line} of {url} holds {rule.text[:60].strip()!r}: a table drawn with lines around "
            f"its rows; write it as CSV, or give {advice('columns')} if this is a row"
        )


def _refuse_names(url: str, reading: _Reading, options: ReadOptions) -> None:
    """Refuse a header with one name fewer than the rows below it have fields."""
    if options.columns is not None and all(name.isdecimal() for name in options.columns):
        return
    names, line = reading.names, reading.rows[0].line
    table = [[*filter(None, fields)] for fields in reading.fields[1:]]
    is_distinct = len({fields[0] for fields in table if fields}) == len(table)
    if is_distinct and len(names) > 1 and {len(names) + 1} == set(map(len, table)):
        raise InputError(
            f"line {line} of {url} names the columns {', '.join(map(repr, names[:8]))}, and rows have one "
            "more: the first perhaps names the row, as R writes it; use "
            f"{advice(skip=line, columns=(1, 2))} if it does, {advice(columns=(0, 1))} if the last column has "
            "no name"
        )


def _sample(url: str, skip: int) -> list[_Row]:
    """Read the first data rows from 64 KiB, or from 1 MiB if 64 KiB hold fewer than two rows with several fields."""
    first = _line_start(url, skip) if skip else 0
    for nbytes, excess in ((_HEAD, 0), (_MOST, lines.LONGEST + 1)):
        data = streams.head(url, nbytes + excess, first)
        is_complete, is_last = len(data) < nbytes, len(data) < nbytes + excess
        start = 3 if first == 0 and data.startswith(b"\xef\xbb\xbf") else 0
        lines.check_lengths(url, first + start, data[start:])
        # The last line that begins in these bytes is kept whole if more bytes have been read.
        stop = data.find(b"\n", nbytes - 1) + 1 or (len(data) if is_last else data.rfind(b"\n") + 1)
        rows = _rows(data[:stop], start, skip)
        if is_complete or sum(_is_wide(row.text) for row in rows if not row.marked) > 1:
            break
    if re.match(rb"%\s*bip\b", streams.head(url, 64) if first else data):
        raise InputError(
            f"{url} says in line 1 that it is a bipartite graph: its two sides number their vertices apart, and "
            "it has no triangles; give the vertices distinct ids, in a file without that line"
        )
    if not rows and skip and streams.head(url).strip():
        raise HeaderAloneError(f"{url} holds no data line below line {skip}: cut short, or skip is too large; check it")
    if not rows:
        place = f" below line {skip}" if skip else "" if is_complete else " in its first MiB"
        raise InputError(
            f"{url} holds no data line{place}: it is empty, or all its lines begin with # or %, as comments above the "
            "first row do; check the file, and if they are rows, put a header above them, as source,target"
        )
    return [row._replace(start=first + row.start, stop=first + row.stop) for row in rows]


def first_line(data: bytes) -> tuple[str, int, bool]:
    """Return the first line that may be a row, of a file's first bytes, its number, and whether no other follows.

    The text is empty if the line cannot be a header: it holds a number, or a word as other rows have it.
    """
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    rows = _rows(data, start, 0)
    first, *word_sets = [{*filter(None, _words(row.text))} for row in rows] or [set()]
    shapes = {_shape(word) for words in word_sets for word in words}
    if not first or any(re.fullmatch(_NUMBER, word) or _shape(word) in shapes for word in first):
        return "", 0, False
    return rows[0].text, rows[0].line, not word_sets


def _line_start(url: str, skip: int) -> int:
    """Return the offset of the line after the first `skip` lines."""
    start = 0
    with streams.open_decompressed(url) as stream:
        while skip > 0 and (text := stream.readline(_MOST)):
            start, skip = start + len(text), skip - text.endswith(b"\n")
    return start


def _rows(data: bytes, start: int, line: int) -> list[_Row]:
    """Return the first rows; after `_ROWS` only those with more than one field, until there are two.

    Lines below the first row that begin with # or % are returned beside them, up to as many.
    """
    rows: list[_Row] = []
    wide_count = comments = 0
    counts, excel = [0, 0], False
    while start < len(data) and (counts[0] < _ROWS or wide_count < 2):
        stop = data.find(b"\n", start) + 1 or len(data)
        line += 1
        text = data[start:stop].decode("utf-8", "replace").rstrip("\r\n")
        mark, is_marked = text.strip(BLANKS)[:1], text.strip(BLANKS)[:1] in ("#", "%")
        if line == 1 and re.fullmatch("sep=.", text):  # it names the separator
            excel = True
        elif mark and (rows or not is_marked):
            wide_count += not is_marked and _is_wide(text)
            if counts[is_marked] < _ROWS or (not is_marked and _is_wide(text)):
                rows.append(_Row(start, line, text, stop, is_marked, comments, excel))
                counts[is_marked] += 1
        comments += is_marked
        start = stop
    return rows


def _is_wide(text: str) -> bool:
    return re.search(rf"[^{BLANKS},;|][{BLANKS},;|]+[^{BLANKS},;|]", text) is not None


def _read_as(separator: str | None, rows: list[_Row], options: ReadOptions) -> _Reading | None:
    """Split the sample at one separator; return None if no row has two fields, or the columns do not exist.

    Marked lines are rows if others have their number of fields and their type of ids.
    """
    table = [split(row.text, separator) for row in rows]
    data_rows = [fields for row, fields in zip(rows, table, strict=True) if not row.marked]
    lengths = {*map(len, data_rows)}
    width = max(lengths)
    has_names = options.columns is not None and not all(name.isdecimal() for name in options.columns)
    readings = []
    for columns in _candidates(table[0], options.columns):
        if width > max(1, *columns):
            types = {_kind(fields, columns) for fields in data_rows}
            rows_read = [
                (row, fields, kind)
                for row, fields in zip(rows, table, strict=True)
                for kind in [_kind(fields, columns)]
                if not row.marked or (min(lengths) <= len(fields) <= width and len(fields) > 1 and kind in types)
            ]
            data, fields, kinds = map(list, zip(*rows_read, strict=True))
            header, is_doubtful = has_names, False
            if rows[0].text in options.headers and kinds[0] in ("text", "single text"):
                header = True
            elif options.skip is None and not has_names:
                header, is_doubtful = _has_header(rows[0].text, fields, kinds, columns)
            readings.append(_Reading(separator, columns, data, fields, int(header), kinds, is_doubtful))
    return next((reading for reading in readings if reading.header), readings[-1] if readings else None)


def _candidates(names: list[str], columns: tuple[str, str] | None) -> list[tuple[int, int]]:
    """Return positions of the id columns: the requested ones, else those with common names, else the first two."""
    if columns is not None:
        places = [place_of(n) if n.isdecimal() else names.index(n) if n in names else None for n in columns]
        if places[0] is None or places[1] is None:
            return []
        check_two(columns, places)
        return [(places[0], places[1])]
    return [*known_pairs(names), (0, 1)]


def _kind(fields: list[str], columns: tuple[int, int]) -> str:
    """Classify a row by its ids: int, text or mixed; "single" for one field, "short" for too few."""
    if len(fields) == 1:
        return "single" if is_integer(fields[0]) else "single text"
    if max(columns) >= len(fields):
        return "short"
    return ("text", "mixed", "int")[sum(is_integer(fields[place]) for place in columns)]


def _has_header(text: str, table: list[list[str]], kinds: list[str], columns: tuple[int, int]) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is doubtful."""
    if text.startswith(",") and len(table[0]) > 2 and table[0] == ["", *map(str, range(len(table[0]) - 1))]:
        return True, False  # as pandas writes columns without names
    if kinds[0] not in ("text", "single text") or any(re.fullmatch(_NUMBER, word) for word in _words(text)):
        return False, False
    if kinds[1:2] == ["int"]:
        return True, False
    if kinds[0] != "text":
        return False, False
    names = [table[0][place] for place in columns]
    if len(table[0]) > 2 and "" in names:  # no edge; the names are refused
        return True, False
    pair = PAIRS.get(tuple(map(plain, names)))
    body = [[fields[place] for place in columns if place < len(fields)] for fields in table[1:]]
    shapes = {_shape(field) for fields in body if pair is None or fields != names for field in fields}
    if any(_shape(name) in shapes for name in names):
        return False, pair is not None and not re.search("[0-9]", "".join(names))
    if pair or (body and (pair is False or _stands_apart(table, columns))):
        return True, not pair
    times = Counter(field for fields in body for field in set(fields))
    repeats = sum(any(times[field] > 1 for field in fields) for fields in body)
    return False, pair is False or (bool(body) and (len(table) < _ROWS or 2 * repeats > len(body)))


def _words(text: str) -> list[str]:
    """Split a line at every separator, without the name that pandas gives a column of row numbers."""
    return re.split(f'[{BLANKS},;|"]+', text.replace("Unnamed: 0", ""))


def _shape(field: str) -> str:
    """Replace each run of digits in a field by 0, so that ids such as p1 and p22 have the same shape."""
    return re.sub("[0-9]+", "0", field)


def _stands_apart(table: list[list[str]], columns: Sequence[int]) -> bool:
    """Return whether the first row differs from all others: a word above numbers, or words above ids of one shape."""
    first, *body = table
    if len(body) < 2:
        return False
    body_columns = [set(fields) for fields in zip(*body, strict=False)]
    words = zip(first, body_columns, strict=False)
    if any(
        word.lower() not in _MISSING and all(re.fullmatch(_FIGURES, field) for field in fields)
        for word, fields in words
    ):
        return True
    return all(
        place < len(body_columns) and len(shapes := set(map(_shape, body_columns[place]))) == 1 and "0" in min(shapes)
        for place in columns
    )


def _choose(readings: list[_Reading]) -> _Reading:
    """Choose the separator under which rows hold integer ids, else the one under which they have equal widths."""

    def clean(reading: _Reading) -> bool:
        # Two tabs in a row are an empty field unless blanks separate everywhere else.
        gaps = reading.separator is None and any(re.search(r"\t *\t", row.text.strip()) for row in reading.rows)
        return not gaps and {"int"} <= set(reading.kinds[reading.header :]) <= {"int", "single"}

    def starts(reading: _Reading) -> bool:
        return next((k for k in reading.kinds[reading.header :] if k != "single"), "") == "int"

    def even(reading: _Reading) -> bool:
        widths = set(reading.widths)
        return len(widths) == 1 and widths != {1}

    def every(reading: _Reading) -> bool:
        return min(reading.widths) > 1

    for predicate in (clean, starts, even, every):
        # Names hold commas rather than other separators.
        for reading in sorted(readings, key=lambda way: predicate is even and "\t|;,".find(way.separator or ",")):
            if predicate(reading):
                return reading
    return readings[0]


def without_attributes(text: str) -> str:
    """Remove the text from the first opening bracket to the last closing one, with the blanks before it."""
    for opening, bracket in ("{}", "[]"):
        first, last = text.find(opening), text.rfind(bracket)
        if 0 <= first < last:
            text = text[:first].rstrip(" ") + text[last + 1 :]
    return text


def _ids(url: str, reading: _Reading, options: ReadOptions) -> Ids:
    """Return the type of the first row's ids; refuse a file whose first row may not be an edge."""
    data = slice(reading.header, None)
    rows, table, kinds = reading.rows[data], reading.fields[data], reading.kinds[data]
    heading_kinds = ("single",) if "int" in kinds else ("single", "single text")
    place, kind = next(((i, k) for i, k in enumerate(kinds) if k not in heading_kinds), (0, "short"))
    if kind == "int":
        return "int"
    excerpt = f"line {rows[place].line} of {url} holds {rows[place].text[:60].strip()!r}"
    if kind == "short":
        raise InputError(
            f"{excerpt}, and column {max(reading.columns) + 1} should be an id: text above the data, or another "
            f"column is meant; use {advice(skip=rows[place].line)}, or name others with {advice('columns')}"
        )
    stop = kinds.index("int") if "int" in kinds else place + 1
    _refuse_weights(url, rows[place:stop], table[place:stop], reading.columns)
    words = table[place]
    id_columns = [column for column, word in enumerate(words) if not re.fullmatch(_SIGN, word)]
    if options.columns is None and any(column not in id_columns for column in reading.columns) and len(id_columns) > 1:
        raise InputError(
            f"{excerpt}, with a sign where an id is expected: another column is meant; name those of ids, as with "
            f"{advice(columns=tuple(id_columns[:2]))}, or use {advice(ids='text')} if it is an id"
        )
    if kind == "mixed":
        raise _mixed_ids(excerpt, rows[place], words, reading)
    # Both ends are text: above integers that is no edge, and numbers, brackets and quotes are perhaps no names.
    if "int" in kinds and (options.skip is None or kind == "single text"):
        line = rows[kinds.index("int")].line
        raise InputError(
            f"{excerpt}, but line {line} holds integers: text above the data, or names; use "
            f"{advice(skip=line - 1)} to skip the lines above, or {advice(ids='text')} if ids are names"
        )
    fields = [words[column] for column in reading.columns if kind == "text"]
    if all(re.fullmatch(_FIGURES, field) for field in fields):
        raise InputError(
            f"{excerpt}: ids with a decimal point or signs between digits, of which '1' and '1.0' may be one vertex; "
            f"write them as integers, or use {advice(ids='text')} to take them as names"
        )
    if any(field.count("(") != field.count(")") for field in fields):
        raise InputError(
            f"{excerpt}: brackets around edges or ids are not read; write two ids a line, with "
            + ("tr -d '()'" if rows[place].text.count("(") == 1 else "sed 's/, */_/g' where commas stand within ids")
            + f", or use {advice(ids='text')} if brackets belong to ids"
        )
    if reading.separator is None and any(field.startswith('"') for field in fields):
        raise InputError(
            f"{excerpt}: quotes are read between commas, ';', '|' or tabs, not between blanks; write the file with one "
            f"of these, or use {advice(ids='text')} if quotes belong to ids"
        )
    widths = sorted(reading.widths[reading.header :])
    if options.columns is None and widths[0] != widths[-1] and widths[len(widths) // 2] > 4:
        raise InputError(
            f"{excerpt}, and lines of {widths[0]} to {widths[-1]} words: prose, or another format; check the file, "
            f"or use {advice(columns=(0, 1))} if the first two words of a line are ids"
        )
    return "text"


def _mixed_ids(excerpt: str, row: _Row, words: list[str], reading: _Reading) -> InputError:
    """Make the error for a row with an integer and another word where two ids are expected."""
    if open_bracket := re.search(r"\w\(", row.text):
        return InputError(
            f"{excerpt}: brackets around edges are not read; write two ids a line, with "
            f"sed 's/^.*{open_bracket[0]}//; s/).*//', or use {advice(ids='text')} if brackets belong to ids"
        )
    if any(re.fullmatch(r"-?[0-9]+([,;:|\s]+-?[0-9]+)+", words[column]) for column in reading.columns):
        return InputError(
            f"{excerpt}: perhaps a vertex and all its neighbours a line; write one edge a line, or use "
            f"{advice(ids='text')} if ids are names"
        )
    if reading.header:
        return InputError(
            f"{excerpt}, with one integer and one that is not below a header: another column is meant, or names; say "
            f"which two hold ids with {advice('columns')}, or use {advice(ids='text')} if ids are names"
        )
    return InputError(
        f"{excerpt} where the first edge is expected, with one integer and one that is not: text above the "
        f"data, or names; use {advice(skip=row.line)} to skip it, or {advice(ids='text')} if ids are names"
    )


def _refuse_weights(url: str, rows: list[_Row], table: list[list[str]], columns: tuple[int, int]) -> None:
    """Refuse rows with an integer and a fraction, because skipping them like text would lose edges."""
    for row, fields in zip(rows, table, strict=True):
        first, second = (fields[column] if column < len(fields) else "" for column in columns)
        for weight, id_ in ((first, second), (second, first)):
            if re.fullmatch(_FRACTION, weight) and re.fullmatch("-?[0-9]+", id_):
                places = [place for place, field in enumerate(fields) if is_integer(field)][:2]
                raise InputError(
                    f"line {row.line} of {url} holds {weight} where an id is expected: this is perhaps a column of "
                    f"weights; name the id columns with {advice('columns')}"
                    + f", as with {advice(columns=tuple(places))}"
                    * (len(places) > 1)
                )


def _counts(reading: _Reading, options: ReadOptions) -> tuple[int, int] | None:
    """Return line and edge count of the first row if it may be a header `vertices [vertices] edges`, else None.

    A header has at least as many vertices as the sample has ids.
    """
    if options.skip is not None or options.columns is not None or reading.header or reading.kinds[0] != "int":
        return None
    counts, *body = reading.fields
    if any(not is_integer(field) or len(field) > 18 for field in counts):
        return None
    if len(counts) != 2 and not (len(counts) == 3 and all(len(fields) < 3 for fields in body)):
        return None
    ids = {name for fields in body for name in fields[:2]}
    return (reading.rows[0].line, int(counts[-1])) if 0 < len(ids) <= int(counts[0]) else None


def _no_reading(url: str, rows: list[_Row], options: ReadOptions) -> InputError:
    if options.columns is None or not any(_is_wide(row.text) for row in rows):
        return InputError(
            f"{url} holds no edge in its first MiB: its lines hold one field each, line {rows[0].line} "
            f"{rows[0].text[:40]!r}; an edge is two ids separated by blanks, a comma, ';', '|' or a tab"
        )
    names = max((split(rows[0].text, separator) for separator in _SEPARATORS), key=len)
    return InputError(
        f"{option('columns', options.columns)} are not in {url}: line {rows[0].line} holds "
        f"{', '.join(map(repr, names[:12]))}; {proposed(options.columns, names)}give two of these names, or positions "
        f"from 0 to {len(names) - 1}"
    )
