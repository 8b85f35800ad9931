"""Reads Parquet files by row groups; module `npy` reads .npy and .npz files.

The first bytes of a file determine which of the three formats it has.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from dasktc.backends import Backend
from dasktc.backends.heap import trim_arrow
from dasktc.errors import InputError, shown
from dasktc.io.columns import FILE, Place, edge_frame, integers_of_text, kept_values, readable, settle, to_ids
from dasktc.io.evidence import COLUMNS, Choice, Notes, NotingPart, Reading, columns_taken, note_frame
from dasktc.io.formats import npy, streams
from dasktc.io.id_names import choose, weight_position
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import advice, plural

__all__ = ["parts"]

log = logging.getLogger("dasktc")

MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK": "npz"}
ROW_BYTES = 16
"""Bytes of `ReadOptions.blocksize` per Parquet row: two 64-bit ids."""
FIRST_ROWS = 1 << 16
"""Rows of a row group among which rows are sampled; decoding it takes them all."""
UNNAMED_INDEX = "__index_level_"
"""Beginning of the names that pandas gives levels of an index without a name."""
PAGE_BYTES = 1 << 18
"""Bytes read at a time if a row group is not read as a whole."""


class _Groups(NamedTuple):
    """Row groups of a file: their numbers, their rows, and the number of rows before them, for errors."""

    url: str
    groups: tuple[int, ...]
    rows: int
    first: int = 0


@dataclass(frozen=True)
class _RowGroups(NotingPart):
    """Row groups of a file, or of several, which cuDF reads together because one file leaves most of a device idle."""

    files: tuple[_Groups, ...]
    names: tuple[str, str]
    ids: Ids
    weight: str | None = None
    reading: Reading | None = None
    choice: Choice | None = None
    notes: Notes | None = None
    surveyed: bool = False
    upstream: ClassVar[None] = None

    @property
    def rows(self) -> int:
        """Rows of all row groups."""
        return sum(file.rows for file in self.files)

    @property
    def begins(self) -> bool:
        """Whether the part begins with the first row of a file."""
        return self.files[0].first == 0

    def joined(self, other: Any) -> _RowGroups | None:
        """Return one part for this and another; None if one call of cuDF cannot read both."""
        if not isinstance(other, _RowGroups) or (other.names, other.ids) != (self.names, self.ids):
            return None
        return None if self.ids == "text" else replace(self, files=self.files + other.files)

    def note(self, files: Iterable[_Groups]) -> None:
        """Note rows of each row group, of all columns: evenly spaced ones of its first `FIRST_ROWS`."""
        from pyarrow.parquet import ParquetFile

        if (notes := self.notes) is None:
            return
        for file in files:
            rows = notes.count + file.rows
            if self.choice is not None:
                with streams.open_decompressed(file.url) as stream, readable(file.url, FILE):
                    parquet_file = ParquetFile(stream)
                    names = _columns_of(parquet_file.schema_arrow)[:COLUMNS]
                    for group in [group for group in file.groups if notes.wanted()]:
                        batches = parquet_file.iter_batches(FIRST_ROWS, [group], columns=names, use_threads=False)
                        for batch in islice(batches, 1):
                            note_frame(notes, batch)
            notes.count = rows

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        from pyarrow.parquet import ParquetFile

        frames = []
        for file in self.files:
            with streams.open_decompressed(file.url) as stream, readable(file.url, FILE):
                # Buffers of Arrow's threads hide a server's latency, and are kept after reading.
                parquet_file = ParquetFile(stream, pre_buffer=streams.is_remote(file.url))
                table = parquet_file.read_row_groups(file.groups, columns=self._columns, use_threads=False)
                del parquet_file
            _check(file, table.num_rows)
            self.note([file])
            frames.append(self._frame(backend, file, table))
            del table
            trim_arrow()  # otherwise Arrow keeps the memory of decoding
        return frames[0] if len(frames) == 1 else backend.frame.concat(frames, ignore_index=True)

    def chunks(self, backend: Backend, most: int) -> Iterator[Any]:
        """Yield frames of at most `most` rows; row groups are decoded page by page."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        for file in self.files:
            with streams.open_decompressed(file.url) as stream, readable(file.url, FILE):
                parquet_file, rows = ParquetFile(stream, pre_buffer=False, buffer_size=PAGE_BYTES), 0
                if not file.rows:
                    table = parquet_file.read_row_groups(file.groups, columns=self._columns, use_threads=False)
                    yield self._frame(backend, file, table)
                for batch in parquet_file.iter_batches(most, file.groups, columns=self._columns, use_threads=False):
                    yield self._frame(backend, file, pa.table(batch), rows)
                    rows += len(batch)
                    trim_arrow()
            _check(file, rows)
            self.note([file])

    @property
    def _columns(self) -> list[str]:
        return [*self.names, *([] if self.weight is None else [self.weight])]

    def _frame(self, backend: Backend, file: _Groups, table: Any, row: int = 0) -> Any:
        pair, weights = [], None
        for name in self.names:
            place, column = Place(f"column {name!r} of {file.url}", file.first + row, FILE), table.column(name)
            if self.ids == "int" and _kind(column.type) == "text":
                column = integers_of_text(column, place)
            pair.append(to_ids(settle(column, self.ids, place), self.ids, place))
        if self.weight is not None:
            name = f"column {shown(self.weight)} of {file.url}"
            weights = kept_values(table.column(self.weight), name, file.first + row, self.surveyed)
        return edge_frame(backend, pair[0], pair[1], weights)

    def read_on_device(self, backend: Backend, upstream: Any = None) -> Any:
        """Read with cuDF, all files in one call, or one by one if that fails.

        Return None if ids are missing or of a type that only the host's reader supports.
        """
        try:
            with readable(self.files[0].url, FILE) if len(self.files) == 1 else nullcontext():
                frame = _read_by_cudf(backend, self)
            if frame is not None:
                self.note(self.files)
            if frame is not None or len(self.files) == 1:
                return frame
        except Exception as error:  # reading files one by one shows which one is damaged
            if isinstance(error, MemoryError) or len(self.files) == 1:
                raise
            log.info(
                "%d files are read one by one, because cuDF cannot read them in one call: %s", len(self.files), error
            )
        frames = [replace(self, files=(file,)).read_on_device(backend) for file in self.files]
        if any(frame is None for frame in frames):
            return None
        return backend.frame.concat(frames, ignore_index=True)


def _check(file: _Groups, rows: int) -> None:
    if rows != file.rows:
        raise InputError(
            f"{file.url} holds {plural(rows, 'row')} in row groups that should hold {file.rows:,}: damaged; save it "
            "again"
        )


def _read_by_cudf(backend: Backend, part: _RowGroups) -> Any:
    urls, groups = [file.url for file in part.files], [[*file.groups] for file in part.files]
    if any(map(streams.is_remote, urls)) or part.names[0] == part.names[1]:
        return None
    table = backend.frame.read_parquet(urls, columns=[*part.names], row_groups=groups, use_pandas_metadata=False)
    pair = [table[name] for name in part.names]
    for column in pair:  # which must equal the ids of this type that Arrow would read
        is_valid = column.dtype.kind in "iu" and column.dtype != "uint64"
        if part.ids == "text":
            is_valid = column.dtype == "str" or column.dtype == object
        if not is_valid or bool(column.isna().any()):
            return None
    return backend.frame.DataFrame({"src": pair[0], "dst": pair[1]})


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a Parquet, .npy or .npz file into parts.

    `columns` of the options are Parquet columns, or arrays of an .npz file. InputError: the file has none of these
    formats or another one than `options.format`, or does not hold two columns of integers (in Parquet files: or of
    text).
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
    return [npy.Archive(url, options.columns)], "int"


def _parquet(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    from pyarrow.parquet import ParquetFile

    if streams.is_archive(url):
        raise InputError(
            f"{url} is a compressed Parquet file, whose row groups cannot be read one by one; decompress it first"
        )
    with streams.open_decompressed(url) as stream, readable(url, FILE):
        file = ParquetFile(stream)
        metadata, schema = file.metadata, file.schema_arrow
        if twins := [name for name, count in Counter(schema.names).items() if count > 1]:
            raise InputError(
                f"{url} has {schema.names.count(twins[0])} columns {shown(twins[0])}: those of Parquet files are read "
                "by name; write it again with different names"
            )
        column_kinds = {name: _kind(schema.field(name).type) for name in _columns_of(schema)}
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise ValueError(f"its row groups hold {plural(sum(rows), 'row')} where it says {metadata.num_rows:,}")
    # By position two columns have one type: fractions before two integers are weights or times, not ids.
    labels = tuple(column_kinds)
    columns = choose(url, labels, options.columns, [*column_kinds.values()])
    names = labels[columns[0]], labels[columns[1]]
    kinds = {name: "int" if kind == "number" else kind for name, kind in column_kinds.items()}
    index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    reading, choice = columns_taken(
        "parquet file",
        Choice(
            url,
            columns,
            labels,
            kinds=tuple(kind or "other" for kind in kinds.values()),
            index=tuple(name for name in index if isinstance(name, str) and not name.startswith(UNNAMED_INDEX)),
        ),
        given=options.columns is not None,
    )
    types = {kinds[name] for name in names}
    if None in types or (len(types) > 1 and options.ids is None):
        column_text = " and ".join(f"{name!r} {schema.field(name).type}" for name in names)
        raise InputError(
            f"the columns of {url} are {column_text}: ids are integers or text, both the same; name other columns "
            f"with {advice('columns')}, or write these as int64"
        )
    ids: Ids = options.ids or ("int" if types == {"int"} else "text")
    ends = [schema.names.index(name) for name in names]
    place = weight_position(url, schema.names, ends, options.weight)
    weight = None if place is None else schema.names[place]
    limit, first, parts = max(1, options.blocksize // ROW_BYTES), 0, list[Part]()
    groups, count = list[int](), 0
    for group, size in enumerate([*rows, limit + 1]):  # neighbouring ones up to `limit` rows; a larger one by itself
        if groups and count + size > limit:
            file = _Groups(url, tuple(groups), count, first)
            first_reading = None if first else reading
            parts.append(_RowGroups((file,), names, ids, weight, first_reading, choice, surveyed=options.surveyed))
            groups, count, first = [], 0, first + count
        groups, count = [*groups, group], count + size
    return parts, ids


def _columns_of(schema: Any) -> list[str]:
    """Return the names of a file's columns, without those that pandas gives an index without a name."""
    return [name for name in schema.names if not name.startswith(UNNAMED_INDEX)]


def _kind(type_: Any) -> str | None:
    """Return which ids a column of a type may hold: "int", "text", or "number" if integers in another type; or None."""
    import pyarrow.types as pt

    if pt.is_dictionary(type_):
        return _kind(type_.value_type)
    if pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_):
        return "text"
    return "int" if pt.is_integer(type_) else "number" if pt.is_floating(type_) or pt.is_decimal(type_) else None
