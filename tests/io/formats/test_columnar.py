"""Parquet files: every rule of the reader on small files."""

from __future__ import annotations

import gzip
from types import SimpleNamespace
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dasktc.errors import InputError
from dasktc.io.formats import columnar
from dasktc.io.source import ReadOptions
from tests.support.formats import BACKEND, DST, EDGES, SRC, read, refused


def parquet(path, row_group_size=None, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_parquet_integers(tmp_path, kind):
    other = "int64" if kind == "int32" else "int16"
    path = parquet(tmp_path / "g.parquet", src=pa.array(SRC, kind), dst=pa.array(DST, other))
    assert read(columnar, path) == EDGES


TEXT = ["a", "b", "", "1"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
)
def test_parquet_text(tmp_path, kind):
    path = parquet(tmp_path / "g.parquet", 2, src=pa.array(TEXT).cast(kind), dst=pa.array(TEXT[::-1]))
    assert columnar.parts(str(path), ReadOptions())[1] == "text"
    for blocksize in (1, 1 << 20):
        assert read(columnar, path, blocksize=blocksize) == list(zip(TEXT, TEXT[::-1], strict=True))


def test_parquet_ids_are_converted_on_request(tmp_path):
    mixed = parquet(tmp_path / "g.parquet", src=["1", "2"], dst=[3, 4])
    assert read(columnar, mixed, ids="int") == [(1, 3), (2, 4)]
    assert read(columnar, mixed, ids="text") == [("1", "3"), ("2", "4")]
    refused(columnar, mixed, "'src' string and 'dst' int64")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["1", "x"], "row 1 of column 'src'.* holds 'x' .*: ids='int' takes integers; .*ids='text'"),
        ([None, "x"], "row 1 of column 'src'.* holds 'x' "),
        (["1", ""], "row 1 of column 'src'.* holds '' "),
        (["1", None], "row 1 of column 'src'.* holds None .*: a missing value is no id"),
        (["1", "9" * 20], f"row 1 of column 'src'.* holds {'9' * 20} .*renumber, or pass ids='text'"),
    ],
)
def test_a_text_that_is_no_integer_is_named_where_these_are_requested(tmp_path, texts, says):
    path = parquet(tmp_path / "g.parquet", src=texts, dst=["3", "4"])
    with pytest.raises(InputError, match=says):
        read(columnar, path, ids="int")


@pytest.mark.parametrize(("blocksize", "expected"), [(1, 5), (16 * 3, 5), (16 * 6, 3), (1 << 20, 1)])
def test_parquet_parts_are_row_groups(tmp_path, blocksize, expected):
    path = parquet(tmp_path / "g.parquet", 3, weight=[0.5] * 13, src=list(range(13)), dst=list(range(1, 14)))
    options = ReadOptions(blocksize=blocksize)
    assert len(columnar.parts(str(path), options)[0]) == expected
    assert read(columnar, path, blocksize=blocksize) == [(i, i + 1) for i in range(13)]


def test_parquet_without_rows(tmp_path):
    nothing = pa.array([], "int64")
    assert read(columnar, parquet(tmp_path / "g.parquet", src=nothing, dst=nothing)) == []
    texts = pa.array([], "string")
    ((part,), _) = columnar.parts(str(parquet(tmp_path / "t.parquet", src=texts, dst=texts)), ReadOptions(ids="text"))
    assert [list(frame.columns) for frame in part.chunks(BACKEND, 10)] == [["src", "dst"]]


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (["w", "dst", "src"], None, ("src", "dst")),
        (["Target", "Source", "w"], None, ("Source", "Target")),
        (["w", "u", "v"], None, ("u", "v")),
        (["~id", "~from", "~to"], None, ("~from", "~to")),
        (["name:START_ID(A)", "w", ":END_ID(B)"], None, ("name:START_ID(A)", ":END_ID(B)")),
        (["Edge_ID", "b"], None, ("Edge_ID", "b")),
        (["id", "b"], None, ("id", "b")),
        (["a", "b", "start", "end"], None, ("a", "b")),
        (["a", "b", "c"], None, ("a", "b")),
        (["a", "b", "c"], ("c", "a"), ("c", "a")),
        (["a", "b", "c"], ("2", "1"), ("c", "b")),
        (["a", "1", "0"], ("0", "1"), ("0", "1")),
        (["src", "dst", "c"], ("c", "dst"), ("c", "dst")),
    ],
)
def test_parquet_columns(tmp_path, names, columns, expected):
    table = {name: [10 * place, 10 * place + 1] for place, name in enumerate(names)}
    path = parquet(tmp_path / "g.parquet", **table)
    assert read(columnar, path, columns=columns) == list(zip(*(table[name] for name in expected), strict=True))


def test_ids_in_names_of_folders_are_not_passed_over(tmp_path):
    folder = tmp_path / "source=1"
    folder.mkdir()
    path = parquet(folder / "g.parquet", target=[2, 3], year=[1999, 2000])
    with pytest.raises(InputError, match="'source' in the names of its folders"):
        columnar.parts(str(path), ReadOptions())
    assert read(columnar, path, columns=("target", "year")) == [(2, 1999), (3, 2000)]
    other = parquet(folder / "h.parquet", a=[2, 3], b=[1999, 2000])
    assert read(columnar, other) == [(2, 1999), (3, 2000)]


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        ({"a": [1, 2]}, {}, "columns a"),
        ({"Unnamed: 0": [1, 2], "a": [1, 2], "b": [1, 2]}, {}, "perhaps numbers the rows"),
        ({"id": [1, 2], "a": [1, 2], "b": [1, 2]}, {}, "perhaps numbers the rows"),
        ({"src": pa.array([1, 2], "date32"), "dst": [1, 2]}, {}, "'src' date32"),
        ({"src": [1, None], "dst": [1, 2]}, {}, "holds None where an id is expected: a missing value"),
        ({"src": ["a", None], "dst": ["a", "b"]}, {}, "holds None where an id is expected: a missing value"),
        ({"src": pa.array([1, 1 << 63], "uint64"), "dst": [1, 2]}, {}, f"holds {1 << 63} where an id is expected"),
        ({"src": [True, False], "dst": [1, 2]}, {}, "'src' bool"),
        ({"src": [[1], [2]], "dst": [1, 2]}, {}, "list"),
        ({"src": [1, 2], "dst": [1, 2]}, {"columns": ("src", "x")}, "'x' is not among them"),
        ({"src": [1, 2], "dst": [1, 2]}, {"columns": ("0", "2")}, "'2' is not among them"),
    ],
)
def test_parquet_is_refused(tmp_path, table, options, says):
    refused(columnar, parquet(tmp_path / "g.parquet", **table), says, **options)


def test_damaged_parquet_is_refused(tmp_path, write):
    good = parquet(tmp_path / "g.parquet", src=SRC, dst=DST).read_bytes()
    refused(columnar, write("cut.parquet", good[:-9]))
    refused(columnar, write("zero.parquet", good[:4] + bytes(60) + good[64:]))
    refused(columnar, write("g.parquet.gz", gzip.compress(good)), "decompress")
    refused(columnar, write("text.parquet", "1 2\n"), "b'1 2\\n'")


def test_files_that_cannot_be_read_at_once_are_read_one_by_one(monkeypatch, caplog):
    """Except where memory is short: then the call is made again with less memory in use beside it."""
    from dasktc.io.formats import columnar

    both = columnar._RowGroups(tuple(columnar._Groups(name, (0,), 1) for name in "xy"), ("a", "b"), "int")
    backend = SimpleNamespace(frame=pd)

    def read(_, part):
        if len(part.files) > 1:
            raise RuntimeError("pages of two kinds")
        return pd.DataFrame({"src": [1], "dst": [2 + (part.files[0].url == "y")]})

    monkeypatch.setattr(columnar, "_read_by_cudf", read)
    with caplog.at_level("INFO", "dasktc"):
        assert both.read_on_device(backend).to_dict("list") == {"src": [1, 1], "dst": [2, 3]}
    assert "2 files are read one by one" in caplog.text
    monkeypatch.setattr(columnar, "_read_by_cudf", mock.Mock(side_effect=MemoryError("std::bad_alloc")))
    with pytest.raises(MemoryError):
        both.read_on_device(backend)
