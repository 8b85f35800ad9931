"""What was read from a source, and whether it may be right: `Reading`, the evidence of sampled rows, and `judge`.

Where the two id columns of a table have no known names and the caller names none, the first two are taken. That is a
guess. Every part that is read so samples its rows; the samples travel with the facts of the parts, and `judge` compares
all columns before anything is counted. It refuses what speaks against the guess, in one line with the option that
reads the table right. Text files, Parquet files, frames in memory, of Dask and on devices are judged alike.
"""

from __future__ import annotations

import logging
import pickle
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple, Self

from dasktc.errors import InputError
from dasktc.io.id_names import ATTRIBUTES, INDEX, NUMBERS, distinct_pairs, known_pairs, plain
from dasktc.wording import advice, plural

__all__ = [
    "BOOLEANS",
    "Choice",
    "Notes",
    "NotingPart",
    "Reading",
    "Sample",
    "columns_taken",
    "index_refused",
    "is_integer",
    "judge",
    "judge_all",
    "note_frame",
    "refuse_two_pairs",
    "refuse_wider",
    "row_with_zeros",
    "runs_of",
    "sample_of",
    "say_zeros",
    "warn_of_zeros",
]

log = logging.getLogger("dasktc")

COLUMNS = 8
"""Columns that are compared with each other; further ones are attributes."""
RUN, RUNS = 16, 32
"""Neighbouring rows that are sampled together, and the most of such runs of a part."""
ROWS = 1 << 14
"""Rows that all parts together sample at most, except that each samples one run."""
Row = tuple[str, ...]
LIKE = {"int": 0.3, "text": 0.1}
"""Share of equal ids from which two columns hold the same ids. Small integers, such as weights, coincide by chance."""
MORE = 4
"""How many times as large as that of the columns taken this share must be in two other columns."""
CHANCE = 3
"""Rows that chance must give, so that it means something if there is none."""
BOOLEANS = ("True", "TRUE", "true", "False", "FALSE", "false")
"""Texts that are booleans where a column of a file without types holds nothing else, as pandas reads them."""
_FIRST_TWO = advice(columns=(0, 1))
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?inf|nan", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """What was read of a source.

    Attributes
    ----------
    what : str
        What holds the edges, where these stand in no columns: "NetworkX Graph", "mtx file".
    columns : tuple of two int or None
        Positions of the two id columns, from 1.
    names : tuple of two str or None
        Their names, where they have some.
    width : int or None
        Number of columns.
    selection : {"by name", "by position", "given"} or None
        How the two were chosen.
    rows : int or None
        Rows that were read, loops and repeated edges among them; None until then.
    comments_above, comments_below : int
        Lines skipped as comments: above the first row of a file, and below it.
    singles : int
        Lines of one id, which is a vertex without edges.
    headers : int
        Lines skipped as headers.
    others : int
        Number of the source's files in which other columns were taken than in its first.
    """

    what: str = "source"
    columns: tuple[int, int] | None = None
    names: tuple[str, str] | None = None
    width: int | None = None
    selection: str | None = None
    rows: int | None = None
    comments_above: int = 0
    comments_below: int = 0
    singles: int = 0
    headers: int = 0
    others: int = 0

    def joined(self, other: Reading) -> Reading:
        """Return the reading of a source that has another file."""
        is_same_choice = (self.columns, self.names, self.selection) == (other.columns, other.names, other.selection)
        return replace(
            self,
            comments_above=self.comments_above + other.comments_above,
            headers=self.headers + other.headers,
            others=self.others + other.others + (not is_same_choice),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def ids(self) -> str:
        """The id columns and how they were found, for people."""
        if self.columns is None:
            return f"both ends of each edge of the {self.what}"
        source, target = self.columns
        places = f"{source} and {target} of {self.width}"
        text = (
            f"columns {places}" if self.names is None else "columns {!r} and {!r}".format(*self.names) + f", {places}"
        )
        exceptions = f"; in {self.others:,} of the files otherwise" if self.others else ""
        return f"{text}, {self.selection}{exceptions}"

    def _rows(self) -> list[tuple[str, str]]:
        """Rows of (name, text) for people."""
        lines = [
            (self.headers, "header", ""),
            (self.comments_above, "comment", " above the rows"),
            (self.comments_below, "comment", " among the rows"),
            (self.singles, "single-id", ""),
        ]
        skipped = ", ".join(f"{plural(count, f'{name} line')}{place}" for count, name, place in lines if count)
        rows = [] if self.rows is None else [("rows", f"{self.rows:,}")]
        return [("ids", self.ids), *rows, *([("skipped", skipped)] if skipped else [])]

    def __str__(self) -> str:
        return "; ".join(f"{name}: {text}" for name, text in self._rows())


@dataclass(frozen=True)
class Choice:
    """The choice of two id columns, as far as it may be judged."""

    where: str
    """The file or the object, for errors."""
    columns: tuple[int, int] = (0, 1)
    """Positions from 0 of the columns that were taken."""
    labels: tuple[str, ...] = ()
    """Names of the columns; empty where they have none."""
    line: int | None = None
    """Line of a text file that names them."""
    kinds: tuple[str, ...] = ()
    """The type of each column, "int", "text" or "other", where a type says so; else empty."""
    index: tuple[str, ...] = ()
    """Names of a frame's index."""
    is_file: bool = True
    """Whether options are given on the command line."""
    blanks: bool = False
    """Whether blanks separate the fields of a line."""
    by_position: bool = True
    """Whether the columns were taken by position; if not, nothing speaks against them but single rows."""
    header: int = 0
    """Number of names of a header that rows may not exceed by two; 0: there is none."""
    zeros: bool = False
    """Whether ids became integers although nobody asked for it, so that leading zeros are lost."""

    @property
    def says(self) -> str:
        """The beginning of an error: where the columns are named, and their names."""
        if not self.labels:
            return self.where
        names = ", ".join(map(repr, self.labels[:COLUMNS]))
        if self.line is None:
            return f"{self.where} has the columns {names}"
        return f"line {self.line} of {self.where} names the columns {names}"

    def option(self, *columns: int) -> str:
        """The option that names these columns."""
        names: list[str] | list[int] = list(columns)
        if self.labels and self.line is None and max(columns) < len(self.labels):
            labels = [self.labels[column] for column in columns]
            if len(set(self.labels)) == len(self.labels) and all(re.fullmatch(r"[^\W\d]\w{0,40}", n) for n in labels):
                names = labels
        return advice(columns=tuple(names))


class Sample(NamedTuple):
    """Rows that were sampled from a part."""

    size: int
    """Rows of the part."""
    runs: list[list[Row]]
    """Runs of neighbouring rows, in order; a row has the fields of all columns."""
    first: bool = True
    """Whether the part begins with the first row of a file or a table."""

    @property
    def rows(self) -> list[Row]:
        """All sampled rows."""
        return [row for run in self.runs for row in run]


class Notes:
    """What a part tells about its rows while it is read: it is made where the part is read, and filled there.

    Of runs of neighbouring rows it keeps `most`, each pickled: a tenth of the memory of its texts.
    """

    def __init__(self, most: int = RUNS) -> None:
        self.comments, self.singles, self.count, self.most = 0, 0, 0, most
        self._runs: list[bytes] = []
        self._blocks, self._stride = 0, 1

    def wanted(self) -> bool:
        """Whether rows of the next block are to be noted: of every block at first, later of fewer and fewer."""
        self._blocks += 1
        return (self._blocks - 1) % self._stride == 0

    def add(self, rows: Sequence[Row]) -> None:
        """Note neighbouring rows; of too many runs every second one is kept."""
        self._runs += [pickle.dumps(list(rows[start : start + RUN])) for start in range(0, len(rows), RUN)]
        while len(self._runs) > 2 * self.most:
            self._runs, self._stride = self._runs[::2], 2 * self._stride

    def sample(self, first: bool = True) -> Sample:
        """Return the rows that were kept."""
        runs = self._runs[:: -(-len(self._runs) // self.most) or 1]
        return Sample(self.count, [pickle.loads(run) for run in runs], first)


class NotingPart:
    """A part, a frozen dataclass with a field `notes`, that can note its rows."""

    def noting(self, notes: Notes) -> Self:
        """Return this part, which notes rows of all columns when it is read."""
        part: Any = self
        copy: Self = replace(part, notes=notes)
        return copy


def runs_of(parts: int) -> int:
    """Return the number of runs that each of a source's parts samples."""
    return max(1, min(RUNS, ROWS // RUN // max(1, parts)))


def even_runs(count: int, most: int) -> list[range]:
    """Return runs of neighbouring rows, evenly spaced in a number of rows; all rows where these are few."""
    if count <= most * RUN:
        return [range(count)] if count else []
    step = max(RUN, (count - RUN) // max(1, most - 1))
    return [range(start, start + RUN) for start in range(0, count - RUN + 1, step)]


def note_frame(notes: Notes, frame: Any) -> None:
    """Note evenly spaced rows of a frame or table: of pandas, Arrow, or in GPU memory. Only these are copied."""
    for run in even_runs(len(frame), notes.most):
        if hasattr(frame, "iloc"):
            rows = frame.iloc[run.start : run.stop]
            rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
            columns = [rows.iloc[:, place].tolist() for place in range(min(COLUMNS, rows.shape[1]))]
        else:
            columns = [column.to_pylist() for column in frame.slice(run.start, len(run)).columns[:COLUMNS]]
        texts = (["" if value is None or value != value else str(value) for value in column] for column in columns)
        notes.add(list(zip(*texts, strict=True)))
    notes.count += len(frame)


def sample_of(frame: Any) -> Sample:
    """Return evenly spaced rows of a frame or table."""
    notes = Notes()
    note_frame(notes, frame)
    return notes.sample()


def judge_all(noted: Iterable[tuple[Choice | None, Sample]]) -> None:
    """Judge the samples of a source's parts, in order, together for all files in which the same columns were taken.

    InputError as `judge`.
    """
    groups: dict[Choice, tuple[Choice, list[Sample]]] = {}
    for choice, sample in noted:
        if choice is None:
            continue
        if choice.header:
            for row in sample.rows:
                refuse_wider(choice, row, choice.where, _shown(row))
        if choice.by_position:
            groups.setdefault(replace(choice, where="", line=None), (choice, []))[1].append(sample)
    for choice, samples in groups.values():
        judge(choice, samples)
        _warn_of_two_sides(choice, samples)


def _warn_of_two_sides(choice: Choice, samples: Sequence[Sample]) -> None:
    """Warn of two columns of three rows or more without a common id."""
    columns = _columns_of(samples)
    if max(choice.columns) >= len(columns) or len(columns[0].values) < 3:
        return
    source, target = (columns[place] for place in choice.columns)
    is_complete = all(len(sample.rows) == sample.size for sample in samples)
    if _have_none_in_common(source, target, is_complete):
        log.warning(
            "dasktc: warning: columns %d and %d of %s have no id in common%s, as %s: two sides of a bipartite graph, "
            "or not both ends of the edges; if others are, name them with %s",
            *(choice.columns[0] + 1, choice.columns[1] + 1, choice.where, "" if is_complete else " in a sample"),
            *(_shown([source.values[0], target.values[0]]), advice("columns")),
        )


def say_zeros(noted: Iterable[tuple[Choice | None, Sample]]) -> None:
    """Warn of the first sampled row with an integer id whose leading zeros are lost."""
    for choice, sample in noted:
        if choice is not None and choice.zeros and (row := row_with_zeros(choice.columns, sample.rows)):
            warn_of_zeros(f"{choice.where}, in {_shown(row)},")
            return


def row_with_zeros(columns: tuple[int, int], rows: Iterable[Sequence[str]]) -> Sequence[str] | None:
    """Return the first row with an id that begins with a zero before other digits."""
    zeros = re.compile("-?0[0-9]+|-0")
    return next((row for row in rows if any(i < len(row) and zeros.fullmatch(row[i]) for i in columns)), None)


def warn_of_zeros(place: str) -> None:
    """Say where an integer with leading zeros stands."""
    log.warning(
        "dasktc: warning: %s holds an integer with leading zeros, which are not kept: 007 and 7 are one id; use %s if "
        "they are two, %s if they are one",
        place,
        advice(ids="text"),
        advice(ids="int"),
    )


def judge(choice: Choice, samples: Sequence[Sample] = (), whole: bool = True) -> None:
    """Refuse two columns that were taken by position, if anything speaks against them.

    The samples are of all parts, in order; without any, only names and types are judged. `whole` tells whether they
    cover the source: a file's first rows only show the shape of its lines.

    InputError shows a row or the columns, and the option that reads it right.
    """
    columns = _columns_of(samples)
    _judge_names(choice, columns)
    table = [row for sample in samples for row in sample.rows]
    if not table:
        return
    _judge_lines(choice, table)
    _judge_ids_in_rows(choice, table)
    if max(choice.columns) >= len(columns):
        return
    if whole or len({columns[place].kind for place in choice.columns}) > 1:
        _judge_numbering(choice, samples, columns)
    if whole:
        _judge_booleans(choice, columns)
        _judge_others(choice, columns, all(len(sample.rows) == sample.size for sample in samples))


def columns_taken(what: str, choice: Choice, given: bool) -> tuple[Reading, Choice | None]:
    """Describe the two columns that were taken of a table with names, and judge their names.

    `what` the table is, is for results: "parquet file". `given` tells whether the caller named the two. The choice is
    returned if it is to be judged by the table's rows, too; None if the two are given or have names of ids, or are all
    columns.

    InputError: the names speak against the choice.
    """
    (source, target), labels = choice.columns, choice.labels
    selection = "given" if given else "by name" if choice.columns in known_pairs(labels) else "by position"
    reading = Reading(what, (source + 1, target + 1), (labels[source], labels[target]), len(labels), selection)
    if not given:
        refuse_two_pairs(choice)
    if selection != "by position":
        return reading, None
    judge(choice)
    return reading, choice if len(labels) > 2 else None


def _refused(choice: Choice, fact: str, mend: str) -> InputError:
    return InputError(f"{choice.where} {fact[:250]}; {mend}")


def is_integer(field: str) -> bool:
    """Return whether a field is an integer: decimal digits, optionally after a minus sign."""
    return re.fullmatch(r"-?[0-9]+", field) is not None


def _shown(row: Sequence[str]) -> str:
    text = " ".join(row)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


# names


def refuse_two_pairs(choice: Choice) -> None:
    """Refuse columns among which two pairs have well-known names of ids."""
    pairs = distinct_pairs(choice.labels)
    if len(pairs) > 1:
        first, second = (" and ".join(repr(choice.labels[place]) for place in pair) for pair in pairs[:2])
        raise InputError(
            f"{choice.says}: {first} are names of ids, and so are {second}; say which with "
            f"{choice.option(*pairs[0])} or {choice.option(*pairs[1])}"
        )


def index_refused(table: str, index: Sequence[str]) -> InputError:
    """Make the error for a frame with ids in its index."""
    names = ", ".join(map(repr, index))
    return InputError(
        f"{table} has an index named {names}, which is not read: ids perhaps stand in it; pass "
        "frame.reset_index(), or name two columns of ids with columns"
    )


def _judge_names(choice: Choice, columns: list[_Column]) -> None:
    """Refuse an index named like ids, and a column whose name says that it numbers the rows, or describes them."""
    labels, kinds = choice.labels, choice.kinds or tuple(column.kind for column in columns)
    if any(plain(name) in INDEX for name in choice.index):
        raise index_refused(choice.where, choice.index)
    numbers = set(NUMBERS)
    if len(labels) > 2 and kinds and kinds[0] != "other":
        repeats = kinds[1:COLUMNS].count(kinds[0]) > 1
        has_repeats = bool(columns) and len(columns[0].distinct) < len(columns[0].values)
        numbers |= (
            {"id"} if not has_repeats and (repeats or len(set(kinds[1:3])) == 1 != len(set(kinds[:2]))) else set()
        )
    reasons = dict.fromkeys(ATTRIBUTES, "is perhaps no id") | dict.fromkeys(numbers, "perhaps numbers the rows")
    for place in choice.columns:
        if place < len(labels) and plain(labels[place]) in reasons and (len(labels) > 2 or "" in labels):
            candidates = [position for position in range(len(labels)) if plain(labels[position]) not in reasons]
            ways = choice.option(*candidates[:2]) if len(candidates) > 1 else "columns"
            raise InputError(
                f"{choice.says}: {labels[place]!r} {reasons[plain(labels[place])]}; name those of ids, as with {ways}, "
                f"or {choice.option(*choice.columns)} if it holds ids"
            )


# lines


def refuse_wider(choice: Choice, row: Sequence[str], place: str, text: str) -> None:
    """Refuse a row with two fields or more than its header has names, as where commas group digits of an id.

    `row` has its fields; `place` and `text` say where it stands, and how it is shown.
    """
    width = next((place for place in range(len(row), 0, -1) if row[place - 1]), 0)  # a separator may end a line
    if width <= choice.header:
        return
    has_digit_groups = any(
        re.fullmatch("-?[0-9]{1,3}", a) and re.fullmatch("[0-9]{3}", b) for a, b in pairwise(row[:width])
    )
    if not has_digit_groups and width == choice.header + 1:
        return
    records = "perhaps records of several types; write the edges alone, or use"
    cause = "the separator perhaps groups digits; write ids without it, or use" if has_digit_groups else records
    raise InputError(
        f"{place} holds {plural(width, 'field')}, {text}, below a header of {choice.header}: {cause} "
        f"{advice(skip=choice.line, columns=(0, 1))} if the first two fields are ids"
    )


def _judge_lines(choice: Choice, table: list[Row]) -> None:
    """Refuse lines that are no rows of one table: records of several types, and names with blanks."""
    widths = sorted({len(row) for row in table})
    if not choice.is_file:
        return
    letters = {row[0] for row in table}
    # One word begins every line, as the letter of DIMACS files does.
    if len(letters) == 1 and widths[0] > 2 and not is_integer(table[0][0]):
        if len(table) > 1 and all(is_integer(row[1]) and is_integer(row[2]) for row in table):
            raise _refused(
                choice,
                f"begins every line with {table[0][0][:20]!r} before two integers, as {_shown(table[0])}",
                f"use {choice.option(1, 2)} if these are the ids",
            )
    # Several letters begin lines: records of several types.
    if 1 < len(letters) < min(6, len(table)) and all(re.fullmatch("[A-Za-z]", letter) for letter in letters):
        fields = {field for row in table for field in row[1:3]}
        shapes = {letter: frozenset(len(row) for row in table if row[0] == letter) for letter in letters}
        has_integers = all(is_integer(row[1]) for row in table if len(row) > 1)
        if not letters & fields and (len(set(shapes.values())) > 1 or has_integers):
            names = ", ".join(sorted(letters))
            edges = next((a for a in "eEaA" if a in letters), Counter(row[0] for row in table).most_common(1)[0][0])
            raise _refused(
                choice,
                f"holds lines that begin with {names} and differ in what follows, as {_shown(table[-1])}: records of "
                "several types, as gSpan writes them, of which some are edges",
                "write the edges alone, two ids a line, with "
                f"awk -F'[,;|[:blank:]]+' '$1 == \"{edges}\" {{print $2, $3}}' for one, or "
                f"use {_FIRST_TWO} if the letters are ids",
            )
    # Lines differ in their number of words: names contain blanks.
    if choice.blanks and len(widths) > 1:
        words = [row for row in table if not any(map(is_integer, row[:2]))]
        misfits = [row for row in words if not all(map(_NUMBER.fullmatch, row[2:]))]
        if misfits:
            raise _refused(
                choice,
                f"holds lines of {widths[0]} to {widths[-1]} words, as {_shown(misfits[0])}: names perhaps contain "
                "blanks, which also separate them",
                f"separate the two names by a tab, or use {_FIRST_TWO} if the first two words of a line are ids",
            )


def _judge_ids_in_rows(choice: Choice, table: list[Row]) -> None:
    """Refuse a matrix, and adjacency lists: rows of ids of three widths and more."""
    widths = sorted({len(row) for row in table})
    bits = len(table) > 1 and widths[0] > 2 and {field for row in table for field in row} <= {"0", "1"}
    square = len(table) == widths[0] > 3 and table == [*zip(*table, strict=False)]
    if choice.is_file and len(widths) == 1 and (bits or square):
        raise _refused(
            choice,
            f"holds lines of {widths[0]} numbers that are perhaps an adjacency matrix",
            f"write one edge a line, or use {_FIRST_TWO} if the first two are ids",
        )
    if len(widths) < 3:
        return
    ids = {field for row in table for field in row[:2]}
    extras = {field for row in table for field in row[2:] if field}
    integers = any(is_integer(row[0].rstrip(":")) and is_integer(row[1]) for row in table if len(row) > 1)
    if all(map(is_integer, extras)) if integers else any(f in ids and not is_integer(f) for f in extras):
        metis = f"use {advice(format='metis')} if line 1 has the numbers of both, " if _like_metis(table) else ""
        raise _refused(
            choice,
            f"holds lines of {widths[0]} to {widths[-1]} ids, as {_shown(max(table, key=len))}: perhaps a vertex and "
            "all its neighbours a line",
            f"write one edge a line, {metis}or use {_FIRST_TWO} if only the first two are ids",
        )


def _like_metis(table: list[Row]) -> bool:
    """Return whether the first row may have the numbers of vertices and edges above neighbours."""
    first, *lists = table
    if not 2 <= len(first) <= 4 or not all(is_integer(field) for row in table for field in row):
        return False
    return len(lists) <= int(first[0]) and all(1 <= int(field) <= int(first[0]) for row in lists for field in row)


# columns


class _Column(NamedTuple):
    """The sampled values of a column, and their type: "other" cannot be ids."""

    values: list[str]
    distinct: set[str]
    kind: str

    @property
    def numbers(self) -> list[int]:
        return sorted(map(int, self.distinct))


def _columns_of(samples: Sequence[Sample]) -> list[_Column]:
    """Return the columns that nearly all sampled rows have."""
    table = [row for sample in samples for row in sample.rows]
    columns = []
    for place in range(min(COLUMNS, max(map(len, table), default=0))):
        values = [row[place] if place < len(row) else "" for row in table]
        texts = [value for value in values if value]
        kind = "other"
        if len(texts) >= 0.9 * len(values):
            number = all(map(_NUMBER.fullmatch, texts))
            kind = "int" if all(map(is_integer, texts)) else "other" if number else "text"
        columns.append(_Column(values, set(texts), kind))
    return columns


def _shared(first: _Column, second: _Column) -> float:
    """Share of the distinct values of two columns that both have."""
    common = len(first.distinct & second.distinct)
    return common / max(1, len(first.distinct) + len(second.distinct) - common)


def _range_shared(first: _Column, second: _Column) -> float:
    """Share of the range of two columns of integers that both have, without the outer twentieths."""
    (a, b), (c, d) = (
        (numbers[len(numbers) // 20], numbers[-1 - len(numbers) // 20]) for numbers in (first.numbers, second.numbers)
    )
    return max(0, min(b, d) - max(a, c) + 1) / (max(b, d) - min(a, c) + 1)


def _judge_numbering(choice: Choice, samples: Sequence[Sample], columns: list[_Column]) -> None:
    """Refuse a first column that numbers the rows, of a table or of each of its files, before two others.

    In a path or a cycle the first ids number the rows as well: then the second ids are distinct, and the third column
    has fewer of the first two's ids than these share.
    """
    if choice.columns != (0, 1) or len(columns) < 3 or len(columns[0].values) < 3 or columns[0].kind != "int":
        return
    last = -1
    for sample in samples:
        for place, run in enumerate(sample.runs):
            numbers = [int(row[0] or -1) for row in run]
            is_begin = place == 0 and sample.first
            if numbers != [*range(numbers[0], numbers[0] + len(run))]:
                return
            if numbers[0] not in (0, 1) if is_begin else numbers[0] <= last:
                return
            last = numbers[-1]
    # The first column numbers the rows: refused, unless the third has values or the first two make a path.
    first, second, third = columns[:3]
    if second.kind != third.kind or third.kind == "other":
        return
    if third.kind == "int":
        matches = sum(a == b for a, b in zip(second.values, third.values, strict=True))
        has_few_values = len(third.distinct) == 1 or 10 * len(third.distinct) <= len(second.distinct)
        is_beyond_ids = third.numbers[0] > 10 * max(first.numbers[-1], second.numbers[-1])
        is_distinct = 10 * len(second.distinct) > 9 * len(second.values)
        path = is_distinct and _shared(first, second) >= max(0.5, 1.5 * _shared(second, third))
        if 2 * matches > len(second.values) or has_few_values or is_beyond_ids or path or first.values == third.values:
            return
    raise _refused(
        choice,
        f"begins with a column that numbers the rows, as {_shown(samples[0].rows[1])}",
        f"use {choice.option(1, 2)} if ids are in the two columns after it, {choice.option(0, 1)} if the first holds "
        "ids",
    )


def _judge_others(choice: Choice, columns: list[_Column], is_complete: bool) -> None:
    """Refuse the two columns taken if two others share many more ids; among them are the ends of triples."""
    pair = [columns[place] for place in choice.columns]
    share = _shared(*pair)
    if 1 in (len(column.distinct) for column in pair) and len({*zip(*(c.values for c in pair), strict=True)}) < len(
        pair[0].values
    ):
        share = 0.0  # one value beside repeated ones: a label, and no middle of a star
    if not is_complete and pair[0].kind == pair[1].kind == "int":
        share = max(share, _range_shared(*pair))
    for left, right in combinations(range(len(columns)), 2):
        first, second = columns[left], columns[right]
        kind = first.kind
        if {left, right} == set(choice.columns) or kind != second.kind or kind == "other":
            continue
        common = len(first.distinct & second.distinct)
        rows = list(zip(first.values, second.values, strict=True))
        loops = sum(a == b for a, b in rows)
        if 2 * loops > len(rows) or 2 * len(set(rows)) < len(rows):  # no edges: alike, or labels
            continue
        overlap = _shared(first, second)
        is_around = {left, right} == {0, 2} and choice.columns == (0, 1)
        least_ends = min(len(first.distinct), len(second.distinct))
        is_apart = is_around and loops == 0 and 2 * len(columns[1].distinct) <= least_ends and _is_apart(columns[:3])
        relation = is_apart or (is_around and 4 * len(columns[1].distinct) <= max(4, least_ends))
        labels = [column for column in pair if column not in (first, second) and _is_label(column, pair, columns)]
        if (
            kind == "int"
            and not (labels or is_apart)
            and not ({left, right} & {*choice.columns} and _are_ends(first, second))
        ):
            continue  # small integers of two columns, as weights and ids, are equal by chance
        minimum = 1 if is_around and (kind == "text" or len(columns[1].distinct) == 1) else 2
        threshold = LIKE["text"] if share == 0 and _alike_sparse(first, second) else LIKE[kind]
        is_larger = overlap >= threshold and overlap >= MORE * share
        triples = (
            relation
            and common >= minimum
            and overlap > 2 * share
            and (overlap >= LIKE[kind] or _alike_sparse(first, second))
        )
        if common >= minimum and (is_larger or triples):
            remark = "perhaps relations in the column between them" if is_around else "and the columns taken do not"
            sample = next(iter(sorted(first.distinct & second.distinct)))
            raise _refused(
                choice,
                f"holds the same ids in columns {left + 1} and {right + 1}, as {sample[:40]!r}, {remark}",
                f"use {choice.option(left, right)} if these are the ids, {choice.option(*choice.columns)} if columns "
                f"{choice.columns[0] + 1} and {choice.columns[1] + 1} are",
            )


def _have_none_in_common(first: _Column, second: _Column, is_complete: bool) -> bool:
    """Return whether two columns have no id in common: in a sample, other ranges of integers or beginnings of text."""
    if first.kind == second.kind == "int" and not is_complete:
        return first.numbers[-1] < second.numbers[0] or second.numbers[-1] < first.numbers[0]
    beginnings = ({value[: None if is_complete else 1] for value in column.distinct} for column in (first, second))
    return set.isdisjoint(*beginnings)


def _judge_booleans(choice: Choice, columns: list[_Column]) -> None:
    """Refuse a column of booleans, which are no ids in frames, unless the other column has one of them, and more."""
    pair = [columns[place] for place in choice.columns]
    for place, column, other in zip(choice.columns, pair, reversed(pair), strict=True):
        is_name = bool(column.distinct & other.distinct) and not other.distinct <= {*BOOLEANS}
        if len(column.values) > 1 and column.distinct and column.distinct <= {*BOOLEANS} and not is_name:
            raise _refused(
                choice,
                f"holds booleans in column {place + 1}, as {column.values[0]!r}: ids are integers or names",
                f"name the two id columns, with {choice.option(*choice.columns)} if these are",
            )


def _is_label(column: _Column, pair: Sequence[_Column], columns: Sequence[_Column]) -> bool:
    """Return whether a column may be no id: it has few values, or another one in each row, as numbers and times have.

    A single value beside one that differs in every row is the middle of a star.
    """
    rows = len(column.values)
    largest = max(len(neighbour.distinct) for neighbour in columns[:3])
    if len(column.distinct) == 1:
        return not any(len(neighbour.distinct) == rows for neighbour in pair)
    return 4 * len(column.distinct) <= largest or 20 * len(column.distinct) >= 19 * rows


def _is_apart(columns: Sequence[_Column]) -> bool:
    """Return whether the integers of a middle column lie below or above those of the two around it.

    No edge from the first to the middle one is then part of a triangle.
    """
    if {column.kind for column in columns} != {"int"}:
        return False
    middle, ranges = columns[1].numbers, [columns[0].numbers, columns[2].numbers]
    return all(middle[-1] < numbers[0] or middle[0] > numbers[-1] for numbers in ranges)


def _are_ends(first: _Column, second: _Column) -> bool:
    """Return whether two columns of integers are perhaps the ends of edges.

    No row is a loop, and either chance would give some, or one column is never above the other, where it would be.
    """
    rows = [(int(a), int(b)) for a, b in zip(first.values, second.values, strict=True) if a and b]
    targets = sorted(b for _, b in rows)
    smaller_pairs = sum(bisect_left(targets, a) for a, _ in rows) / len(targets)
    larger_pairs = len(targets) - sum(bisect_right(targets, a) for a, _ in rows) / len(targets)
    sides = {"below": sum(b < a for a, b in rows), "above": sum(b > a for a, b in rows)}
    loops, expected = len(rows) - sum(sides.values()), len(rows) - smaller_pairs - larger_pairs
    return (
        loops == 0
        and max(expected, smaller_pairs if sides["below"] == 0 else 0, larger_pairs if sides["above"] == 0 else 0)
        >= CHANCE
    )


def _alike_sparse(first: _Column, second: _Column) -> bool:
    """Return whether two columns may have the same ids, of which the sample has few: integers of one range."""
    if first.kind != "int":
        return True
    return _shared(first, second) >= 0.02 and _range_shared(first, second) >= 0.5
