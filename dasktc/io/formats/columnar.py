"""Reads Parquet files by row groups; module `npy` reads .npy and .npz files.

The first bytes of a file determine which of the three formats it has.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from dasktc.errors import InputError, shown
from dasktc.io.evidence import COLUMNS, Choice, Notes, Reading, judge, note_frame, refuse_two_pairs
from dasktc.io.formats import columns, npy, streams
from dasktc.io.id_names import known_pairs
from dasktc.io.numbers import Place, integers_of_decimals, integers_of_floats, whole_numbers
from dasktc.io.weights import kept_values
from dasktc.wording import advice, option, plural

if TYPE_CHECKING:
    from dasktc.backends import Backend
    from dasktc.io.source import Part, ReadOptions
    from dasktc.options import Ids

__all__ = ["parts"]

log = logging.getLogger("dasktc")

MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK": "npz"}
ROW_BYTES = 16
"""Bytes of `ReadOptions.blocksize` per Parquet row: two 64-bit ids."""
FIRST_ROWS = 1 << 16
"""Rows of a row group among which rows are sampled; decoding it takes them all."""
PAGE_BYTES = 1 << 18
"""Bytes read at a time if a row group is not read as a whole."""


@dataclass(frozen=True)
class _RowGroups:
    url: str
    names: tuple[str, str]
    groups: tuple[int, ...]
    rows: int
    ids: Ids
    weight: str | None = None
    first: int = 0
    """Number of preceding rows in the file, for errors."""
    reading: Reading | None = None
    choice: Choice | None = None
    notes: Notes | None = None
    surveyed: bool = False
    upstream: None = None

    def noting(self, notes: Notes) -> _RowGroups:
        """Return this part, which notes rows of all columns when it is read."""
        return replace(self, notes=notes)

    def note(self) -> None:
        """Note rows of each row group, of all columns: evenly spaced ones of its first `FIRST_ROWS`."""
        if self.notes is None:
            return
        rows = self.notes.count + self.rows
        if self.choice is None:
            self.notes.count = rows
            return
        from pyarrow.parquet import ParquetFile

        with streams.open_decompressed(self.url) as stream, columns.one_line(self.url):
            file = ParquetFile(stream)
            names = _columns_of(file.schema_arrow)[:COLUMNS]
            for group in [group for group in self.groups if self.notes.wanted()]:
                for batch in islice(file.iter_batches(FIRST_ROWS, [group], columns=names, use_threads=False), 1):
                    note_frame(self.notes, batch)
        self.notes.count = rows

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        with streams.open_decompressed(self.url) as stream, columns.one_line(self.url):
            table = ParquetFile(stream, pre_buffer=True).read_row_groups(
                self.groups, columns=self._columns, use_threads=False
            )
        self._check(table.num_rows)
        self.note()
        frame = self._frame(backend, table)
        del table
        pa.default_memory_pool().release_unused()  # otherwise Arrow keeps the memory of decoding
        return frame

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of at most `most` rows; row groups are decoded page by page."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        with streams.open_decompressed(self.url) as stream, columns.one_line(self.url):
            file, rows = ParquetFile(stream, pre_buffer=False, buffer_size=PAGE_BYTES), 0
            if not self.rows:
                yield self._frame(backend, file.read_row_groups(self.groups, columns=self._columns, use_threads=False))
            for batch in file.iter_batches(most, self.groups, columns=self._columns, use_threads=False):
                yield self._frame(backend, pa.table(batch), rows)
                rows += len(batch)
                pa.default_memory_pool().release_unused()
        self._check(rows)
        self.note()

    @property
    def begins(self) -> bool:
        """Whether the part begins with the first row of its file."""
        return self.first == 0

    @property
    def _columns(self) -> list[str]:
        return [*self.names, *([] if self.weight is None else [self.weight])]

    def _check(self, rows: int) -> None:
        if rows != self.rows:
            raise InputError(
                f"{self.url} holds {plural(rows, 'row')} in row groups that should hold {self.rows:,}: damaged; save "
                "it again"
            )

    def _frame(self, backend: Backend, table: Any, row: int = 0) -> Any:
        import pyarrow as pa

        with columns.one_line(self.url):
            pair = [_arrow_ids(self.url, name, table.column(name), self.ids, self.first + row) for name in self.names]
        if self.ids == "text":
            frame = backend.frame.DataFrame(pa.table(pair, names=["src", "dst"]).to_pandas())
        else:
            frame = columns.frame(backend, *(column.to_numpy() for column in pair))
        if self.weight is not None:
            name = f"column {shown(self.weight)} of {self.url}"
            frame["weight"] = kept_values(table.column(self.weight), name, self.first + row, self.surveyed)
        return frame

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Read with cuDF; return None if ids are missing or of a type that only the host's reader supports."""
        with columns.one_line(self.url):
            frame = _read_by_cudf(backend, [self])
        if frame is not None:
            self.note()
        return frame

    def joined(self, other: Any) -> _Files | None:
        """Return one part for this and another; None if one call of cuDF cannot read both."""
        return _Files((self,)).joined(other)


@dataclass(frozen=True)
class _Files:
    """Row groups of several files that cuDF reads together, because pages of one file leave most of a device idle."""

    parts: tuple[_RowGroups, ...]
    upstream: None = None

    @property
    def rows(self) -> int:
        """Rows of all row groups."""
        return sum(part.rows for part in self.parts)

    @property
    def begins(self) -> bool:
        """Whether the parts begin with the first row of a file."""
        return self.parts[0].begins

    @property
    def choice(self) -> Choice | None:
        """The choice of the id columns, which is the same in all files."""
        return self.parts[0].choice

    def noting(self, notes: Notes) -> _Files:
        """Return these parts, which note rows of all columns when they are read."""
        return _Files(tuple(part.noting(notes) for part in self.parts))

    def joined(self, other: Any) -> _Files | None:
        """Return one part for these and another; None if one call of cuDF cannot read all."""
        first = self.parts[0]
        if not isinstance(other, _RowGroups) or (other.names, other.ids) != (first.names, first.ids):
            return None
        return None if other.ids == "text" else _Files((*self.parts, other))

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read the row groups one after another."""
        return backend.frame.concat([part.read(backend) for part in self.parts], ignore_index=True)

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Read all row groups in one call, or one by one if that fails; return None as for one file."""
        try:
            if (frame := _read_by_cudf(backend, self.parts)) is not None:
                for part in self.parts:
                    part.note()
                return frame
        except MemoryError:
            raise
        except Exception as error:  # reading files one by one shows which one is damaged
            log.info(
                "%d files are read one by one, because cuDF cannot read them in one call: %s", len(self.parts), error
            )
        frames = [part.read_on_device(backend) for part in self.parts]
        if any(frame is None for frame in frames):
            return None
        return tuple(backend.array.concatenate([frame[end].values for frame in frames]) for end in ("src", "dst"))


def _read_by_cudf(backend: Backend, parts: Sequence[_RowGroups]) -> Any:
    names, ids = parts[0].names, parts[0].ids
    if any(streams.is_remote(part.url) for part in parts) or names[0] == names[1]:
        return None
    urls, groups = [part.url for part in parts], [[*part.groups] for part in parts]
    table = backend.frame.read_parquet(urls, columns=[*names], row_groups=groups, use_pandas_metadata=False)
    pair = [table[name] for name in names]
    if any(bool(column.isna().any()) for column in pair) or not all(_taken(column, ids) for column in pair):
        return None
    return backend.frame.DataFrame({"src": pair[0], "dst": pair[1]})


def _taken(column: Any, ids: Ids) -> bool:
    """Return whether cuDF's column equals the ids of this type that Arrow would read."""
    if ids == "int":
        return bool(column.dtype.kind in "iu" and column.dtype != "uint64")
    return bool(column.dtype == "str" or column.dtype == object)


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a Parquet, .npy or .npz file into parts.

    Parameters
    ----------
    url : str
    options : ReadOptions
        `columns` are Parquet columns, or arrays of an .npz file.

    Raises
    ------
    InputError
        The file has none of these formats or another one than `options.format`, or does not hold two
        columns of integers (in Parquet files: or of text).
    """
    start = streams.head(url, 1 << 16)
    format = next((name for magic, name in MAGIC.items() if start.startswith(magic)), None)
    if format is None or options.format not in (None, format):
        raise InputError(
            f"{url} begins with {start[:8]!r}, which no {options.format or 'Parquet, .npy or .npz'} file does: "
            f"another format, or damaged; check {advice('format')}"
        )
    if format == "parquet":
        return _parquet(url, options)
    if format == "npy":
        return npy.array_parts(url, start, options), "int"
    return npy.archive_parts(url, options), "int"


def _parquet(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    from pyarrow.parquet import ParquetFile

    if streams.is_archive(url):
        raise InputError(
            f"{url} is a compressed Parquet file, whose row groups cannot be read one by one; decompress it first"
        )
    with streams.open_decompressed(url) as stream, columns.one_line(url):
        file = ParquetFile(stream)
        metadata, schema = file.metadata, file.schema_arrow
        kinds = {name: _kind(schema.field(name).type) for name in dict.fromkeys(_columns_of(schema))}
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise ValueError(f"its row groups hold {plural(sum(rows), 'row')} where it says {metadata.num_rows:,}")
    # By position two columns have one type: fractions before two integers are weights or times, not ids.
    exact = {
        name: "other" if kind == "int" and not _is_integer(schema.field(name).type) else kind
        for name, kind in kinds.items()
    }
    names = columns.choose(url, list(kinds), options.columns, exact)
    reading, choice = _reading(url, names, kinds, options, _index_of(schema))
    types = {kinds[name] for name in names}
    if None in types or (len(types) > 1 and options.ids is None):
        chosen = " and ".join(f"{name!r} {schema.field(name).type}" for name in names)
        raise InputError(
            f"the columns of {url} are {chosen}: ids are integers or text, both the same; name other columns "
            f"with {advice('columns')}, or write these as int64"
        )
    ids: Ids = options.ids or ("int" if types == {"int"} else "text")
    weight = None if options.weight is None else columns.named(schema.names, options.weight)
    if weight in names or (options.weight is not None and weight is None):
        raise InputError(
            f"{url} has the columns {', '.join(schema.names)[:200]}: "
            f"{'edge column ' + shown(options.weight) if options.surveyed else option('weight', options.weight)} is "
            f"{'none of them' if weight is None else 'one of the two of ids'}; name another"
        )
    together = _pack(rows, max(1, options.blocksize // ROW_BYTES))
    counts = [sum(rows[group] for group in groups) for groups in together]
    firsts = accumulate(counts, initial=0)
    of_parts = zip(together, counts, firsts, strict=False)
    parts = [
        _RowGroups(url, names, groups, count, ids, weight, first, choice=choice, surveyed=options.surveyed)
        for groups, count, first in of_parts
    ]
    return [replace(part, reading=reading) if not part.first else part for part in parts], ids


def _reading(
    url: str, names: tuple[str, str], kinds: Mapping[str, Ids | None], options: ReadOptions, index: tuple[str, ...]
) -> tuple[Reading, Choice | None]:
    """Describe the choice of the id columns, and return what is to be judged if it was made by position."""
    labels = list(kinds)
    source, target = (labels.index(name) for name in names)
    selection = "given" if options.columns else "by name" if (source, target) in known_pairs(labels) else "by position"
    reading = Reading("parquet file", (source + 1, target + 1), names, len(labels), selection)
    choice = Choice(url, (source, target), tuple(labels), kinds=tuple(kind or "other" for kind in kinds.values()))
    if selection == "given":
        return reading, None
    refuse_two_pairs(choice)
    if selection == "by name":
        return reading, None
    judge(replace(choice, index=index))
    return reading, choice if len(labels) > 2 else None


def _columns_of(schema: Any) -> list[str]:
    """Return the names of a file's columns, without those that pandas gives an index without a name."""
    return [name for name in schema.names if not name.startswith("__index_level_")]


def _index_of(schema: Any) -> tuple[str, ...]:
    """Return the names of the columns that pandas wrote of a frame's index."""
    index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    return tuple(name for name in index if isinstance(name, str) and not name.startswith("__index_level_"))


def _pack(sizes: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Group neighbouring row groups up to `most` rows; a larger one is a group of its own."""
    packed: list[list[int]] = []
    total = 0
    for place, size in enumerate(sizes):
        if not packed or total + size > most:
            packed.append([])
            total = 0
        packed[-1].append(place)
        total += size
    return [tuple(places) for places in packed]


def _is_integer(type_: Any) -> bool:
    import pyarrow.types as pt

    return _is_integer(type_.value_type) if pt.is_dictionary(type_) else bool(pt.is_integer(type_))


def _kind(type_: Any) -> Ids | None:
    import pyarrow.types as pt

    if pt.is_dictionary(type_):
        return _kind(type_.value_type)
    if pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_):
        return "text"
    return "int" if pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_) else None


def _arrow_ids(url: str, name: str, column: Any, ids: Ids, first: int) -> Any:
    """Convert a column to ids; numbers other than integers as in a column in memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise InputError(
            f"column {name!r} of {url} lacks {plural(column.null_count, 'id')}: an edge needs both ends; drop these "
            "rows"
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    place = Place(f"column {name!r} of {url}", first)
    if pa.types.is_decimal(column.type):
        if ids == "text":
            column = pa.chunked_array([list(map(str, whole_numbers(column.to_pylist(), place)))], pa.string())
        else:
            column = pa.chunked_array([integers_of_decimals(column, place)])
    elif pa.types.is_floating(column.type):
        column = pa.chunked_array([pa.array(integers_of_floats(column.to_numpy(), place))])
    if ids == "text":
        column = column.cast(pa.string())
        column.validate(full=True)  # bytes that are not UTF-8 would fail later, anywhere
        return column
    if column.type == pa.uint64() and len(column) and (top := pc.max(column).as_py()) >= 1 << 63:
        raise InputError(
            f"column {name!r} of {url} holds {top}: integer ids are below 2^63; renumber the vertices, or use "
            f"{advice(ids='text')}"
        )
    return column.cast(pa.int32() if column.type in (pa.int8(), pa.int16(), pa.int32()) else pa.int64())
