"""Columns of ids: their types, and values that are refused."""

from decimal import Decimal

import dask.array as da
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

import dasktc
from dasktc.errors import InputError
from tests.support.objects import BIG, PAIRS, dask_frame, one_line, open_object, pairs, read, table
from tests.support.oracle import multigraphs, text_multigraphs

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "dtype",
    [
        *INTEGERS,
        "Int8",
        "UInt64",
        "Float64",
        "float32",
        "object",
        "category",
        "int16[pyarrow]",
        "double[pyarrow]",
    ],
)
def test_integer_types(dtype, lazy):
    frame = table(dtype=dtype)
    options = {"ids": "int"} if dtype == "object" else {}
    source = open_object(dask_frame(frame, convert=dtype != "object") if lazy else frame, **options)
    assert source.ids == "int"
    assert pairs(source) == PAIRS


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_narrow_integers_stay_narrow(dtype):
    assert set(read(open_object(np.array(PAIRS, dtype=dtype))).dtypes) == {np.dtype("int32")}


TEXTS = ["str", "object", "category", "string", "string[python]", "large_string[pyarrow]"]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", TEXTS)
def test_text_types(dtype, lazy):
    frame = table(["", "b", "ü"], ["b", "12", "a"]).astype(dtype)
    source = open_object(dask_frame(frame, 2, convert=dtype != "object") if lazy else frame)
    assert source.ids == "text"
    assert pairs(source) == [("", "b"), ("b", "12"), ("ü", "a")]


def coded_views(words, chunks):
    """Dictionary-encoded views, in `chunks` chunks or as one array."""
    coded = pa.DictionaryArray.from_arrays(pa.array(range(len(words)), pa.uint32()), pa.array(words, pa.string_view()))
    return pa.chunked_array([coded[first::chunks] for first in range(chunks)]) if chunks else coded


@pytest.mark.parametrize(
    "obj",
    [
        np.array([["a", "bc"], ["bc", "d"]]),
        np.array([["a", "bc"], ["bc", "d"]], dtype=np.dtypes.StringDType()),
        (["a", "bc"], np.array(["bc", "d"], dtype=object)),
        pa.table({"u": pa.array(["a", "bc"], pa.string_view()), "v": pa.array(["bc", "d"]).dictionary_encode()}),
        da.from_array(np.array([["a", "bc"], ["bc", "d"]]), chunks=1),
        da.from_array(np.array([["a", "bc"], ["bc", "d"]], dtype=object), chunks=1),
        pa.table([coded_views(["a", "bc"], 1), coded_views(["bc", "d"], 1)], ["u", "v"]),  # polars' categories
        pa.table([coded_views(["a", "bc"], 2), coded_views(["bc", "d"], 0)], ["u", "v"]),
    ],
    ids=["fixed width", "StringDType", "pair", "arrow", "dask array", "dask objects", "views", "chunks of views"],
)
def test_other_text(obj):
    assert pairs(open_object(obj)) == [("a", "bc"), ("bc", "d")]


@given(multigraphs(), text_multigraphs())
def test_any_multigraph_comes_back(numbers, texts):
    for edges, ids in (numbers, "int"), (texts, "text"):
        src, dst = map(list, zip(*edges, strict=True)) if edges else ([], [])
        source = open_object((src, dst), ids=ids)
        assert (pairs(source), source.ids) == (edges, ids)
        assert pairs(open_object(table(src, dst, dtype=object), ids="text")) == [(str(u), str(v)) for u, v in edges]


@pytest.mark.parametrize(
    "frame",
    [
        table(),
        table(dtype="uint64") + np.uint64(2**64 - 9),
        table(dtype=float),
        table([1, "x"], ["x", 2**70]),
    ],
    ids=["int", "beyond int64", "float", "mixed"],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_numbers_as_text(frame, lazy):
    obj = dask_frame(frame, 1, convert=False) if lazy else frame
    whole = [[str(int(v)) if isinstance(v, float) else str(v) for v in frame[side].tolist()] for side in frame]
    assert pairs(open_object(obj, ids="text")) == list(zip(*whole, strict=True))


def test_categories_of_any_objects():
    mixed = pd.Categorical([1, "x", 1], categories=pd.Index([1, "x"], dtype=object))
    assert pairs(open_object(table(mixed, mixed), ids="text")) == [("1", "1"), ("x", "x"), ("1", "1")]
    with pytest.raises(InputError, match=r"row 1 .* holds 'x'"):
        open_object(table(mixed, mixed))


class Hostile:
    """A value whose every operation fails."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __eq__ = __bool__ = __repr__
    __hash__ = object.__hash__


REFUSED = {
    "fraction": ([0, 1, 2.5], "row 2 of column 'src' of the .*DataFrame.* holds 2.5"),
    "nan": ([0, 1, float("nan")], "row 2 .* holds nan .* missing"),
    "infinity": ([0, 1, float("inf")], "row 2 .* holds inf"),
    "rounded float": ([0.0, 1, 2.0**53], r"row 2 .* holds 9007199254740992\.0 .* float64 rounds"),
    "rounded float32": (np.array([0, 1, 2**24], dtype=np.float32), "row 2 .* float32 rounds"),
    "NA": (pd.array([0, 1, None], dtype="Int64"), "row 2 .* holds None .* missing"),
    "arrow null": (pd.array([0, 1, None], dtype="int64[pyarrow]"), "row 2 .* missing"),
    "no string": (["a", "b", None], "row 2 .* missing"),
    "null among objects": (np.array(["a", "b", None], dtype=object), "row 2 .* holds None .* missing"),
    "no category": (pd.Categorical(["a", "b", None]), "row 2 .* missing"),
    "null category": (pa.DictionaryArray.from_arrays([0, 0, 1], pa.array(["a", None])), "row 2 .* missing"),
    "no integer category": (pd.Categorical([1, 2, None]), "row 2 .* missing"),
    "uint64": (np.array([0, 1, BIG], dtype=np.uint64), f"row 2 .* holds {BIG} .* to {BIG - 1}"),
    "long": ([-1, 1, BIG], f"row 2 .* holds {BIG} .* to {BIG - 1}"),
    "low": (np.array([0, 1, -BIG - 1], dtype=object), f"row 2 .* holds -{BIG + 1} .* from -{BIG}"),
    "bool": ([True, False, True], "column 'src' .* type bool"),
    "boolean": (pd.array([True, False, True], dtype="boolean"), "type bool"),
    "True among integers": (np.array([0, 1, True], dtype=object), "row 2 .* holds True .* not bool"),
    "mixed": ([0, 1, "x"], "row 2 .* holds 'x' .* not str"),
    "mixed the other way": (["x", "y", 1], "row 2 .* holds 1 .* not int"),
    "tuples": ([(0, 1), (1, 2), (2, 3)], r"row 0 .* holds \(0, 1\) .* not tuple"),
    "bytes": (np.array([b"a", b"b", b"c"]), r"row 0 .* not bytes"),
    "dates": (pd.date_range("2020", periods=3), "type datetime64"),
    "periods": (pd.period_range("2020", periods=3, freq="D"), "type .*period"),
    "complex": (np.array([0j, 1j, 2j]), "type complex"),
    "long beyond Python's digits": (
        np.array([0, 1, 10**5000], dtype=object),
        "row 2 .* holds <integer of 16,610 bits>",
    ),
    "lone surrogate": (pd.Series(["a", "b", "\ud800"], dtype=object), r"row 2 .* holds '\\ud800' .* UTF-8"),
    "dictionaries": (np.array([{}, {1: 2}, {}], dtype=object), r"row 0 .* holds \{\} .* not dict"),
    "lists": (pd.Series([[0], [1, 2], []]), r"row 0 .* holds \[0\] .* not list"),
    "what has no repr": (np.array([0, 1, Hostile()], dtype=object), "row 2 .* holds <Hostile instance .* not Hostile"),
}

UNREADABLE = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.arange(3, dtype="i4")), pa.py_buffer(b"\xff\xfe")]
)
OUTSIDE = {of: pa.DictionaryArray.from_arrays([0, 9], pa.array(of), safe=False) for of in ((1, 2), ("a", "b"))}


@pytest.mark.parametrize(
    "obj",
    [
        pa.table([UNREADABLE, UNREADABLE], ["u", "v"]),
        *(pa.table([column, column], ["u", "v"]) for column in OUTSIDE.values()),
        (["a", "\ud800"], ["b", "c"]),
        np.array([["a", "b"], ["b", "\ud800"]]),
        nx.Graph([("a", "\ud800")]),
        ([10**5000, "a"], ["b", "c"]),
    ],
    ids=["bytes", "code of an integer", "code of a text", "list", "array", "nodes", "digits"],
)
def test_text_that_is_none(obj):
    """Arrow's functions would read beyond the end of some, or only fail on others."""
    with pytest.raises(InputError, match=r"cannot be read \(ArrowInvalid: .*|row [01] of .* holds .* UTF-8") as error:
        read(open_object(obj, ids="text" if isinstance(obj, tuple) else None))
    one_line(error)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", REFUSED)
def test_refused_values(kind, lazy):
    values, message = REFUSED[kind]
    if isinstance(values, pa.Array):
        values = pd.Series(values, dtype=pd.ArrowDtype(values.type))
    frame = pd.DataFrame({"src": values})
    frame["dst"] = frame["src"]
    with pytest.raises(InputError, match=message) as error:
        read(open_object(dask_frame(frame, 1, convert=False) if lazy else frame))
    assert ("partition 0 " in one_line(error)) == (lazy and "row" in message)


def test_a_row_is_named_beyond_the_first_part():
    numbers = np.zeros((2_000_000, 2))
    numbers[1_999_999, 1] = 0.5
    with pytest.raises(InputError, match=r"row 1999999 of column 1 of the NumPy array holds 0.5"):
        read(open_object(numbers))


def test_text_is_refused_where_integers_are_demanded():
    with pytest.raises(InputError, match="row 0 of column 'src' of the pandas DataFrame holds 'a'") as error:
        read(open_object(table(["a"], ["b"]), ids="int"))
    one_line(error)


@pytest.mark.parametrize("lazy", [False, True])
def test_two_types_of_ids_are_refused_or_made_text(lazy):
    frame = table([1, 2], ["a", "b"])
    obj = dask_frame(frame, 1) if lazy else frame
    with pytest.raises(InputError, match=r"column 'src' .* type int, column 'dst' .* type text") as error:
        open_object(obj)
    one_line(error)
    assert pairs(open_object(obj, ids="text")) == [("1", "a"), ("2", "b")]


DECIMAL = [pa.decimal128(38, 0), pa.decimal256(60, 0), pa.decimal128(30, 2), pa.float64(), pa.float32()]
WHERE = ["arrow", "pandas", "parquet"]


def in_form(where, tmp_path, columns):
    frame = pa.table(dict(zip(("src", "dst"), columns, strict=True)))
    if where == "parquet":
        pa.parquet.write_table(frame, tmp_path / "edges.parquet")
    return {"arrow": frame, "pandas": frame.to_pandas(), "parquet": str(tmp_path / "edges.parquet")}[where]


@pytest.mark.parametrize("type_", DECIMAL, ids=str)
@pytest.mark.parametrize("where", WHERE)
def test_whole_decimals_and_floats_are_integers(tmp_path, where, type_):
    numbers = [[0, 1, 2, 70000], [1, 2, 0, -5]]
    source = in_form(where, tmp_path, [pa.array(side).cast(type_) for side in numbers])
    assert dasktc.prepare(source).triangles().to_dict() == {-5: 0, 0: 1, 1: 1, 2: 1, 70000: 0}
    texts = dasktc.prepare(source, ids="text").triangles()
    assert texts.to_dict() == {"-5": 0, "0": 1, "1": 1, "2": 1, "70000": 0}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(
    ("side", "says"),
    [
        ([Decimal("1"), Decimal("2.5")], "row 1 of column 'src' of .* holds '2.5' .* a fraction is no id"),
        ([Decimal("1"), Decimal(BIG)], f"row 1 of column 'src' of .* holds {BIG} .* pass ids='text'"),
        ([Decimal("1"), None], "row 1 of column 'src' of .* a missing value is no id|column 'src' of .* lacks 1 id"),
        ([1.0, 2.5], "row 1 of column 'src' of .* holds 2.5 .* a fraction is no id"),
        ([1.0, 2.0**53], "row 1 of column 'src' of .* float64 rounds integers"),
        ([1.0, float("nan")], "row 1 of column 'src' of .* a missing value is no id"),
    ],
)
def test_numbers_that_are_no_ids_are_refused_with_their_row(tmp_path, where, side, says):
    source = in_form(where, tmp_path, [pa.array(side), pa.array(side[:1] * 2)])
    with pytest.raises(InputError, match=says) as error:
        dasktc.prepare(source)
    one_line(error)
    if BIG in [int(value or 0) for value in side if value == value]:
        assert str(BIG) in dasktc.prepare(source, ids="text").triangles().index


def test_a_row_of_a_later_row_group_is_named(tmp_path):
    column = pa.array([float(row) for row in range(9)] + [9.5])
    pa.parquet.write_table(pa.table({"src": column, "dst": column}), tmp_path / "x.parquet", row_group_size=4)
    for memory in (None, "64MiB"):
        with pytest.raises(InputError, match=r"row 9 of column 'src' of .*x\.parquet holds 9\.5"):
            dasktc.triangle_count(tmp_path / "x.parquet", memory=memory)
