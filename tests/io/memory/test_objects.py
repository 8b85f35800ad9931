"""Python objects as sources: data frames, arrays, sparse matrices, graphs, Dask collections and lists of edges."""

import os
import pickle
import subprocess
import sys
from array import array
from decimal import Decimal
from types import SimpleNamespace

import dask
import dask.array as da
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given

import dasktc
from dasktc.errors import InputError
from dasktc.io.memory import from_object
from dasktc.io.memory.parts import PART_BYTES
from dasktc.io.source import ReadOptions
from tests.support.oracle import GRAPHS, clean, messy, multigraphs, text_multigraphs, triangles
from tests.support.tiers import some

CPU = SimpleNamespace(name="cpu", frame=pd, array=np)
PAIRS = [(0, 1), (1, 2), (2, 0), (1, 1), (1, 0), (0, 1)]
SRC, DST = (list(side) for side in zip(*PAIRS, strict=True))


def open_object(obj, **options):
    return from_object(obj, ReadOptions(**options))


def read(source):
    """All parts as one frame, each read from its pickled copy as a worker would read it."""
    frames = []
    for part in source.parts:
        upstream = None if part.upstream is None else part.upstream.compute(scheduler="sync")
        frames.append(pickle.loads(pickle.dumps(part, protocol=5)).read(CPU, upstream))
        pd.testing.assert_frame_equal(frames[-1], part.read(CPU, upstream))
        dtypes = set(map(str, frames[-1].dtypes))
        assert dtypes == {"str"} if source.ids == "text" else dtypes in ({"int32"}, {"int64"})
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"src": [], "dst": []})


def pairs(source):
    frame = read(source)
    return list(zip(frame["src"].tolist(), frame["dst"].tolist(), strict=True))


def table(src=SRC, dst=DST, **kwargs):
    return pd.DataFrame({"src": pd.Series(src, **kwargs), "dst": pd.Series(dst, **kwargs)})


def dask_frame(frame, npartitions=3, convert=True):
    import dask.dataframe as dd

    with dask.config.set({"dataframe.convert-string": convert}):
        return dd.from_pandas(frame, npartitions=npartitions)


SOURCES = {
    "pandas": table,
    "pandas by name": lambda: table().assign(weight=0.5)[["weight", "src", "dst"]],
    "dask": lambda: dask_frame(table()),
    "numpy": lambda: np.array(PAIRS),
    "numpy Fortran": lambda: np.asfortranarray(PAIRS),
    "numpy big-endian": lambda: np.array(PAIRS, dtype=">i8"),
    "numpy floats": lambda: np.array(PAIRS, dtype=float),
    "numpy masked": lambda: np.ma.masked_array(PAIRS, mask=False),
    "pair of lists": lambda: (SRC, DST),
    "pair of mixed types": lambda: [tuple(SRC), np.array(DST, dtype=np.uint8)],
    "pair of series": lambda: (pd.Series(SRC), pd.Index(DST)),
    "pair of arrow": lambda: (pa.array(SRC), pa.chunked_array([DST[:2], DST[2:]])),
    "pair of arrow capsules": lambda: tuple(Capsule(pa.chunked_array([side[:2], side[2:]])) for side in (SRC, DST)),
    "pair of arrow capsules with dictionaries": lambda: [
        Capsule(pa.chunked_array([pa.array(side).dictionary_encode()])) for side in (SRC, DST)
    ],
    "pair of array.array": lambda: (array("q", SRC), array("i", DST)),
    "dask array": lambda: da.from_array(np.array(PAIRS), chunks=(2, 2)),
    "dask array by columns": lambda: da.from_array(np.array(PAIRS), chunks=(4, 1)),
    "dask array of floats": lambda: da.from_array(np.array(PAIRS, dtype=float), chunks=(2, 2)),
    "dask array of unknown length": lambda: dask_frame(table()).to_dask_array(),
    "dask array, masked": lambda: da.ma.masked_array(da.from_array(np.array(PAIRS), chunks=4), mask=False),
    "pair of dask arrays": lambda: [da.from_array(np.array(side), chunks=2) for side in (SRC, DST)],
    "pair of dask arrays in other blocks": lambda: (da.from_array(np.array(SRC), 2), da.from_array(np.array(DST), 5)),
    "pair of dask arrays of other types": lambda: (
        da.from_array(np.array(SRC, np.uint64), 2),
        da.from_array(np.array(DST, np.int64), 2),
    ),
    "pair of dask arrays of unknown length": lambda: [dask_frame(table())[name].to_dask_array() for name in table()],
    "pair of dask series": lambda: [dask_frame(table(), 2)[name] for name in table()],
    "pair of dask series and array": lambda: (dask_frame(table(), 3)["src"], da.from_array(np.array(DST), chunks=2)),
    "arrow": lambda: pa.table({"src": SRC, "dst": DST}),
    "arrow chunked": lambda: pa.concat_tables([pa.table({"src": SRC[i:], "dst": DST[i:]})[:3] for i in (0, 3)]),
    "arrow capsule": lambda: Capsule(pa.table({"src": SRC, "dst": DST})),
}


class Capsule:
    """A table, or a column, of an unknown library, with the Arrow PyCapsule interface."""

    def __init__(self, table):
        self.table = table
        if hasattr(table, "columns"):
            self.columns = table.columns

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_row_is_an_edge(kind):
    source = open_object(SOURCES[kind](), columns=("src", "dst") if "by name" in kind else None)
    assert (source.ids, pairs(source)) == ("int", PAIRS)


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


BIG = 2**63
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


class Foreign:
    """An object of a library whose code fails."""

    __module__ = "ibis.expr"
    columns = ("u", "v")

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("no such\ntype")


def test_a_library_that_fails():
    with pytest.raises(InputError, match=r"ibis.expr.Foreign cannot be read \(RuntimeError: no such type\)") as error:
        open_object(Foreign())
    one_line(error)


def of_blocks(make):
    """A Dask Array that computes to another shape or type than it declares."""
    return da.map_blocks(make, da.from_array(np.array(PAIRS), chunks=2), dtype="int64", meta=np.empty((0, 0), "int64"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: da.zeros((4, 3), dtype=int), r"Dask Array has shape \(4, 3\)"),
        (lambda: da.zeros(4, dtype=int), "holds no edges"),
        (lambda: da.zeros((4, 2), dtype=bool), "column 0 of the Dask Array has type bool"),
        (lambda: da.from_array(np.array([[0, 0.5]])), "row 0 of column 1 of the Dask Array's block 0 holds 0.5"),
        (lambda: of_blocks(lambda block: block[:, :1]), r"block 0 was computed to cannot be read \(IndexError: "),
        (lambda: of_blocks(lambda block: None), r"block 0 was computed to cannot be read \(TypeError: "),
        (lambda: of_blocks(lambda block: block.astype(str)), "block 0 holds ids of type text where int is expected"),
        (lambda: dask.delayed(table)(), "shows its contents only when computed.* dask.dataframe.from_delayed"),
        (lambda: [dask.delayed(table)()] * 2, "the pair holds a dask.delayed"),
        (lambda: (da.zeros(4, dtype=int), np.zeros(4, int)), "holds dask.array.core.Array, numpy.ndarray: of Dask's"),
        (lambda: [da.zeros((4, 2), dtype=int)] * 2, "two columns are read, 1-D arrays or Series"),
        (lambda: [da.zeros(4, dtype=int)] * 3, "the sequence of 3 holds"),
        (lambda: [dask_frame(table())] * 2, "two columns are read, 1-D arrays or Series"),
        (lambda: (da.zeros(4, dtype=int), da.zeros(5, dtype=int)), "column 0 of the pair has 4 rows, column 1 5"),
        (lambda: (da.zeros(4, dtype=int), da.zeros(4, dtype=bool)), "column 1 of the pair has type bool"),
        (
            lambda: (da.zeros(4, dtype=int), da.zeros(4, dtype=int).astype("U1")),
            "column 0 of the pair holds ids of type int, column 1 of the pair of type text",
        ),
        (
            lambda: [dask_frame(table(), blocks)["src"] for blocks in (2, 3)],
            "have 2 and 3 blocks, of unknown lengths",
        ),
        (
            lambda: (dask_frame(table())["src"], dask_frame(table())["dst"].loc[:4]),
            "column 0 of a block of the pair has 2 rows, column 1 1",
        ),
        (
            lambda: (da.zeros(2, dtype=int), da.from_array(np.array([1, 0.5]))),
            "row 1 of column 1 of the pair's block 0 holds 0.5",
        ),
    ],
)
def test_refused_dask_collections(make, message):
    with pytest.raises(InputError, match=message) as error:
        read(open_object(make()))
    one_line(error)


def one_line(error):
    text = str(error.value)
    fact, _, rest = text.partition(": ")
    assert fact
    assert "; " in rest
    assert "\n" not in text
    return text


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


def test_a_pair_of_dask_arrays_of_a_gpu_is_pointed_to_one_collection():
    sides = [da.from_array(np.array(side), chunks=2) for side in (SRC, DST)]
    for side in sides:
        side._meta = foreign("cupy")
    with pytest.raises(InputError, match=r"in GPU memory: .* pass dask\.array\.stack") as error:
        open_object(sides)
    one_line(error)


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


def foreign(module):
    """An object of a library that is not installed here."""
    return type("Thing", (), {"__module__": module})()


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (foreign("cudf.core.dataframe"), "cudf.core.dataframe.Thing .*to_pandas"),
        (foreign("dask_cudf._expr.collection"), r"to_backend\(.pandas.\)"),
        (foreign("cugraph.structure.graph_classes"), "view_edge_list"),
        (foreign("cupyx.scipy.sparse"), "get"),
        ((foreign("cupy"), foreign("cupy")), "cupy.Thing .*get"),
        (foreign("graph_tool"), r"graph_tool.Thing is not read itself: .* pass graph.get_edges\(\)"),
        (foreign("elsewhere"), "elsewhere.Thing holds no edges"),
        (pd.Series([1]), "holds no edges"),
        (nx, "holds no edges"),
        ({1: 2}, "holds no edges"),
        (pa.array([1]), "holds no edges"),
        (np.int64(3), "holds no edges"),
        (pd.DataFrame({"a": [1]}), r"columns are \['a'\]"),
        (np.zeros((3, 4), dtype=int), r"shape \(3, 4\)"),
        (np.zeros(3, dtype=int), r"shape \(3,\)"),
        (([0, 1], [1]), "column 0 of the pair has 2 rows, column 1 of the pair 1"),
        (("ab", "cd"), "builtins.str"),
        (([0], 1), "builtins.int"),
        (([0], np.int64(1)), "numpy.int64"),
        (([0], {1}), "builtins.set"),
        (([0], np.zeros((1, 1))), "numpy.ndarray"),
        (np.ma.masked_array([[0, 1], [1, 2]], mask=[[0, 0], [1, 0]]), "row 1 of column 0 .* missing"),
        (scipy.sparse.coo_array((2, 3)), r"shape \(2, 3\)"),
        (scipy.sparse.coo_array((3,)), r"shape \(3,\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_objects(obj, message):
    with pytest.raises(InputError, match=message) as error:
        open_object(obj)
    one_line(error)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(None, (1, 2)), (("c", "a"), (3, 1)), (("1", "0"), (2, 1)), (("2", "b"), (4, 2))],
)
@pytest.mark.parametrize("make", [lambda t: t, dask_frame, pa.Table.from_pandas], ids=["pandas", "dask", "arrow"])
def test_columns(make, columns, expected):
    frame = pd.DataFrame({"a": [1], "b": [2], "c": [3], "2": [4]})
    assert pairs(open_object(make(frame), columns=columns)) == [expected]


@pytest.mark.parametrize("make", [lambda t: t, dask_frame, pa.Table.from_pandas], ids=["pandas", "dask", "arrow"])
@pytest.mark.parametrize("names", [("Unnamed: 0", "from", "to"), ("w", "Source", "Target"), ("a", "u", "v")])
def test_columns_with_well_known_names_are_taken_as_in_files(make, names):
    assert pairs(open_object(make(pd.DataFrame([[1, 2, 3]], columns=names)))) == [(2, 3)]


@pytest.mark.parametrize("make", [lambda t: t, dask_frame, pa.Table.from_pandas], ids=["pandas", "dask", "arrow"])
@pytest.mark.parametrize("name", ["Unnamed: 0", "index", "edge_id", "", "id"])
def test_a_column_that_numbers_rows_is_not_taken_for_ids_unasked(make, name):
    frame = pd.DataFrame([[1, 2, 3]], columns=[name, "a", "b"])
    with pytest.raises(InputError, match=f"'{name}' perhaps numbers the rows; name those of ids"):
        open_object(make(frame))
    assert pairs(open_object(make(frame), columns=("a", "b"))) == [(2, 3)]
    assert pairs(open_object(make(frame), columns=(name, "b"))) == [(1, 3)]


def test_a_frame_that_is_an_adjacency_matrix_is_refused():
    frame = nx.to_pandas_adjacency(nx.complete_graph(4), dtype=int)
    with pytest.raises(InputError, match=r"4 names: perhaps an adjacency matrix; pass scipy.sparse.csr_array\(frame\)"):
        open_object(frame)
    assert pairs(open_object(scipy.sparse.csr_array(frame))) == [(u, v) for u in range(4) for v in range(4) if u != v]
    assert pairs(open_object(pd.DataFrame([[0, 1], [1, 2]]))) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("columns", [("a", "x"), ("a", "2"), ("a", "-1"), ("a", "a"), ("b", "1")])
@pytest.mark.parametrize("lazy", [False, True])
def test_refused_columns(columns, lazy):
    frame = pd.DataFrame({"a": [1], "b": [2]})
    with pytest.raises(InputError, match="column") as error:
        open_object(dask_frame(frame, 1) if lazy else frame, columns=columns)
    one_line(error)


@pytest.mark.parametrize("options", [{"columns": ("0", "1")}, {"format": "csv"}, {"skip": 0}])
def test_options_that_have_no_meaning_are_refused(options):
    with pytest.raises(InputError, match="leave them out"):
        open_object(np.array(PAIRS), **options)


def test_columns_of_one_name():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    assert pairs(open_object(frame)) == [(1, 2)]


SPARSE = ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
@pytest.mark.parametrize("format", SPARSE)
def test_sparse(kind, format):
    matrix = kind((np.ones(4), ([0, 1, 2, 4], [1, 2, 0, 3])), shape=(6, 6)).asformat(format)
    assert sorted(pairs(open_object(matrix))) == [(0, 1), (1, 2), (2, 0), (4, 3)]


def damaged(format, **changed):
    matrix = scipy.sparse.coo_array((np.ones(4), ([0, 1, 2, 3], [1, 2, 0, 3])), shape=(4, 4)).asformat(format)
    for name, change in changed.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


def with_row(row):
    def change(rows):
        rows[0] = row
        return rows

    return change


COMPRESSED = {
    "far": ({"indptr": lambda p: p * 10**8}, "indptr from 0 to 400,000,000 .* for indices of length 4"),
    "far in between": ({"indptr": lambda p: p + np.array([0, 10**9, 0, 0, 0])}, "that falls in between"),
    "below": ({"indptr": lambda p: p - 2}, "indptr from -2 to 2"),
    "short": ({"indptr": lambda p: p[:-1]}, r"shape \(4,\), where 5 integers belong"),
    "none": ({"indptr": lambda p: p[:0]}, r"shape \(0,\), where 5 integers belong"),
    "floats": ({"indptr": lambda p: p + 0.5}, "indptr of float64"),
    "of 64 bits": ({"indptr": lambda p: p.astype("int64") + 2**32}, "indptr from 4,294,967,296"),
    "of two dimensions": ({"indptr": lambda p: p[None]}, r"shape \(1, 5\)"),
    "no array": ({"indptr": lambda p: None}, "cannot be read"),
    "indices": (
        {"indices": lambda p: p + 10**6},
        "indexes .* 1,000,000 to 1,000,003|cannot be read .* 1000003 exceeds",
    ),
    "negative indices": ({"indices": lambda p: p - 1}, "indexes .* -1 to 2|cannot be read .* negative"),
    "few indices": ({"indices": lambda p: p[:2]}, "indptr from 0 to 4 .* for indices of length 2"),
    "of another shape": ({"_shape": lambda p: (2, 2)}, "matrix of 2 x 2 has indptr"),
}
DAMAGED = [(kind, *case) for kind in ("csr", "csc", "bsr") for case in COMPRESSED.values()] + [
    ("coo", {"coords": lambda c: (c[0] + 10**9, c[1])}, "indexes rows 1,000,000,000 to"),
    ("coo", {"coords": lambda c: (c[0] - 1, c[1])}, "indexes rows -1 to 2"),
    ("coo", {"coords": lambda c: (c[0], c[1][:2])}, r"stores columns as int.* of shape \(2,\)"),
    ("coo", {"coords": lambda c: (c[0] + 0.5, c[1])}, "stores rows as float64"),
    ("lil", {"rows": with_row([99])}, "indexes columns 0 to 99"),
    ("lil", {"rows": with_row([-1])}, "indexes columns -1 to"),
    ("lil", {"rows": with_row(["a"])}, "stores columns as <U"),
    ("lil", {"rows": with_row([1.5])}, "stores columns as float64"),
    ("lil", {"rows": with_row(None)}, "cannot be read"),
    ("lil", {"rows": lambda rows: rows[:2]}, "has 2 lists of columns"),
    ("dok", {"_dict": lambda d: d | {(10**9, 1): 1.0}}, "indexes rows 0 to 1,000,000,000"),
    ("dok", {"_dict": lambda d: d | {(0, 1.5): 1.0}}, "stores rows as float64"),
    ("dok", {"_dict": lambda d: d | {(0, 1, 2): 1.0}}, "cannot be read"),
    ("dia", {"offsets": lambda o: o[:1]}, r"has offsets of int.* and shape \(1,\)"),
    ("dia", {"offsets": lambda o: o + 0.5}, "has offsets of float64"),
    ("dia", {"data": lambda d: d.ravel()}, "for diagonals of shape"),
]


@pytest.mark.parametrize(("format", "changed", "message"), DAMAGED)
def test_damaged_sparse_matrices(format, changed, message):
    """SciPy's compiled code trusts the arrays: it would crash the process, or read beyond them."""
    with pytest.raises(InputError, match=message) as error:
        read(open_object(damaged(format, **changed)))
    one_line(error)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_what_lies_behind_the_last_pointer_is_no_entry(format):
    spare = damaged(format, indices=lambda p: np.r_[p, [77] * 9], data=lambda d: np.r_[d, [1.0] * 9])
    assert sorted(pairs(open_object(spare))) == [(0, 1), (1, 2), (2, 0), (3, 3)]


def test_the_padding_of_blocks_is_no_edge():
    matrix = scipy.sparse.csr_array((np.ones(2), ([0, 3], [1, 2])), shape=(4, 4)).tobsr(blocksize=(2, 2))
    assert matrix.data.size == 8
    assert pairs(open_object(matrix)) == [(0, 1), (3, 2)]


@pytest.mark.parametrize(
    ("format", "expected"),
    [("coo", [(0, 1), (1, 2), (1, 2)]), ("csr", [(0, 1), (1, 2)]), ("csc", [(0, 1), (1, 2)])],
)
def test_stored_zeros_and_repeated_entries_are_edges(format, expected):
    entries = scipy.sparse.coo_array(([0.0, 1, -1], ([0, 1, 1], [1, 2, 2])), shape=(3, 3))
    assert pairs(open_object(entries.asformat(format))) == expected


GRAPH_TYPES = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@pytest.mark.parametrize("graph_type", GRAPH_TYPES)
@given(edges=multigraphs())
def test_networkx_has_the_edges_of_the_graph(graph_type, edges):
    graph = graph_type(edges)
    graph.add_node(5)
    source = open_object(graph)
    listed = sorted(map(sorted, graph.edges()))
    assert sorted(map(sorted, pairs(source))) == listed
    assert source.ids == "int"


@pytest.mark.parametrize("graph_type", GRAPH_TYPES)
@given(edges=text_multigraphs())
def test_networkx_with_names(graph_type, edges):
    graph = graph_type(edges)
    source = open_object(graph)
    assert sorted(map(sorted, pairs(source))) == sorted(map(sorted, graph.edges()))
    assert source.ids == ("text" if edges else "int")


@pytest.mark.parametrize("nodes", [[(0, 0), (0, 1), (1, 1)], [1, "1", 2.5], [float("inf"), float("nan"), True]])
def test_networkx_numbers_other_nodes(nodes):
    graph = nx.DiGraph([(nodes[2], nodes[0]), (nodes[0], nodes[1])])
    labels = list(graph)
    source = open_object(graph)
    assert [(labels[u], labels[v]) for u, v in pairs(source)] == list(graph.edges())
    assert [source.labels.of([i])[0] is node for i, node in enumerate(labels)] == [True] * 3
    with pytest.raises(InputError, match="ids='int' takes integers; leave it out") as error:
        open_object(graph, ids="int")
    one_line(error)


def test_networkx_integers_of_other_types_and_sizes():
    assert pairs(open_object(nx.Graph([(np.int32(3), 4)]))) == [(3, 4)]
    assert pairs(open_object(nx.DiGraph([(3, 4)]), ids="text")) == [("3", "4")]
    with pytest.raises(InputError, match=f"row 1 of the NetworkX graph's nodes holds {BIG}"):
        open_object(nx.Graph([(0, BIG)]))


def test_networkx_views_and_subclasses():
    class Roads(nx.Graph):
        pass

    graph = Roads(messy([(0, 1), (1, 2), (2, 3)]))
    assert sorted(pairs(open_object(graph.subgraph([1, 2, 3])))) == [(1, 1), (1, 2), (2, 2), (2, 3)]


@pytest.mark.parametrize("directed", [False, True])
def test_igraph(directed):
    graph = igraph.Graph(n=9, edges=PAIRS, directed=directed)
    source = open_object(graph)
    assert source.ids == "int"
    assert sorted(map(sorted, pairs(source))) == sorted(map(sorted, PAIRS))
    graph.vs["name"] = list("abcdefghi")
    named = open_object(graph)
    assert named.ids == "text"
    assert sorted(pairs(named)) == sorted(("abcdefghi"[u], "abcdefghi"[v]) for u, v in pairs(source))
    assert pairs(open_object(graph, ids="int")) == pairs(source)


@pytest.mark.parametrize(
    ("names", "ids"),
    [([30, 10, 20], [10, 20, 30]), ([(0, 1), 2.5, "a"], [(0, 1), 2.5, "a"]), (["b", "a", "c"], ["a", "b", "c"])],
)
def test_names_of_igraph_vertices_are_their_ids(names, ids):
    graph = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    graph.vs["name"] = names
    assert dasktc.prepare(graph).triangles().index.tolist() == ids


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a", "a", "b"], "1 repeat another or are no ids of 3"),
        (["a", None, "b"], "1 are missing of 3"),
        ([1.0, float("nan"), 2.0], "1 are missing of 3"),
        ([["a"], ["b"], ["c"]], "3 repeat another or are no ids of 3"),
    ],
)
def test_igraph_names_that_do_not_tell_vertices_apart(names, says, caplog):
    graph = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    graph.vs["name"] = names
    source = open_object(graph)
    assert sorted(map(sorted, pairs(source))) == [[0, 1], [0, 2], [1, 2]]
    assert source.labels is None
    assert says in caplog.text
    assert "answers have vertex indices" in caplog.text


@pytest.mark.parametrize(
    "obj",
    [
        table([], [], dtype=object),
        np.empty((0, 2)),
        ([], []),
        nx.Graph(),
        nx.empty_graph(3, create_using=nx.MultiGraph),
        igraph.Graph(),
        scipy.sparse.csr_array((4, 4)),
        scipy.sparse.coo_matrix((0, 0)),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_no_edges(obj):
    assert open_object(obj).parts == ()


@pytest.mark.parametrize(("name", "edges", "count"), GRAPHS, ids=[name for name, *_ in GRAPHS])
def test_named_graphs_survive_every_door(name, edges, count):
    array = np.array(edges, dtype=np.int64).reshape(-1, 2)
    for obj in array, pd.DataFrame(array), nx.MultiDiGraph(edges):
        found = pairs(open_object(obj))
        assert clean(found) == clean(edges)
        assert triangles(found) == count


@pytest.mark.parametrize("dtype", ["object", "str", "int8"])
@pytest.mark.parametrize("ids", ["int", "text"])
def test_a_dask_partition_may_be_empty(ids, dtype):
    part = open_object(dask_frame(table(["a"], ["b"]), 1), ids=ids).parts[0]
    frame = part.read(CPU, table([], [], dtype=dtype))
    assert len(frame) == 0
    assert set(map(str, frame.dtypes)) == ({"str"} if ids == "text" else {"int32" if dtype == "int8" else "int64"})


def test_a_meta_that_lies_is_found_when_read():
    source = open_object(dask_frame(table(dtype=object), 2, convert=False))
    assert source.ids == "text"
    with pytest.raises(InputError, match=r"column 'src' .* partition 0 .* type int where text") as error:
        read(source)
    one_line(error)


class Refusing:
    """A scheduler that refuses to compute."""

    def __call__(self, *args, **kwargs):
        raise AssertionError("something was computed")


def test_building_a_dask_source_computes_nothing():
    import dask.dataframe as dd

    called = []

    def load(number):
        called.append(number)
        return table(list(range(number)), [number] * number)

    meta = table([0], [0])[:0]
    with dask.config.set(scheduler=Refusing()):
        open_object(da.from_array(np.array(PAIRS), chunks=(2, 1)))
        source = open_object(dd.from_map(load, [2, 0, 3], meta=meta).assign(weight=1.0))
    assert (called, len(source.parts), source.ids) == ([], 3, "int")
    assert pairs(source) == [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    assert called == [2, 0, 3]


def test_only_the_id_columns_are_read_from_parquet(tmp_path):
    import dask.dataframe as dd

    table().assign(weight=0.5).to_parquet(tmp_path / "edges.parquet")
    source = open_object(dd.read_parquet(tmp_path), columns=("src", "dst"))
    assert list(source.parts[0].upstream.compute(scheduler="sync").columns) == ["src", "dst"]
    assert pairs(source) == PAIRS


ROWS = 1_000_000
LARGE = {
    "numpy": lambda n: np.arange(2 * n).reshape(n, 2),
    "pandas": lambda n: pd.DataFrame(np.arange(3 * n).reshape(n, 3)),
    "nullable": lambda n: table(range(n), range(n), dtype="Int64"),
    "arrow integers": lambda n: table(range(n), range(n), dtype="int64[pyarrow]"),
    "text": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str)),
    "objects": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str), dtype=object),
    "categories": lambda n: table(np.arange(n).astype(str), np.arange(n).astype(str), dtype="category"),
    "long and short": lambda n: table(["x"] * n, ["x"] * (n - 9) + ["y" * 1_000_000] * 9),
    "views": lambda n: (pa.array([f"id {i:020}" for i in range(n)], pa.string_view()),) * 2,
}


@pytest.mark.parametrize("kind", some(LARGE, lambda kind: kind in ("text", "categories")))
def test_a_part_pickles_its_rows_alone(kind):
    rows = ROWS if kind in ("numpy", "pandas", "text") else ROWS // 2
    source = open_object(LARGE[kind](rows))
    sizes = []
    for part in source.parts:
        buffers = []
        head = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        sizes.append(len(head) + sum(memoryview(buffer).nbytes for buffer in buffers))
        assert len(pickle.dumps(part, protocol=4)) < PART_BYTES + 10_000
        assert len(pickle.dumps(part, protocol=5)) < PART_BYTES + 10_000
    assert len(sizes) > 1
    assert max(sizes) < PART_BYTES + 10_000
    assert sum(len(part.src) for part in source.parts) == rows


def test_nothing_is_copied_without_pickling():
    src, dst = np.arange(2_000_000), np.arange(2_000_000)
    source = open_object((src, pd.Series(dst, copy=False)))
    assert len(source.parts) > 1
    for part in source.parts:
        frame = part.read(CPU)
        assert np.shares_memory(frame["src"].to_numpy(), src)
        assert np.shares_memory(frame["dst"].to_numpy(), dst)


def test_a_dask_part_leaves_its_delayed_behind():
    frame = table(range(ROWS), range(ROWS))
    part = open_object(dask_frame(frame, 2)).parts[1]
    assert part.upstream is not None
    assert len(pickle.dumps(part)) < 1000


@pytest.mark.slow
def test_workers_read_parts_without_a_warning(client):
    frame = pd.DataFrame(np.arange(4_000_000).reshape(-1, 2), columns=["src", "dst"])
    for source in open_object(frame), open_object(dask_frame(frame[:1000])):
        upstream = [None if part.upstream is None else client.compute(part.upstream) for part in source.parts]
        pairs_of = [client.submit(_total, part, above) for part, above in zip(source.parts, upstream, strict=True)]
        total = frame.to_numpy().sum() if upstream[0] is None else frame[:1000].to_numpy().sum()
        assert sum(client.gather(pairs_of)) == total


def _total(part, upstream):
    return int(part.read(CPU, upstream).to_numpy().sum())


CHEAP = """
import sys
import numpy as np
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions
from_object(np.array([[0, 1]]), ReadOptions())
print(*sorted({"dask", "distributed", "networkx", "igraph", "scipy", "cudf", "cupy"} & set(sys.modules)))
"""


def test_detection_imports_no_library():
    done = subprocess.run([sys.executable, "-c", CHEAP], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.split() == []


class Tensor:
    """The interface of a PyTorch tensor, without PyTorch."""

    __module__ = "torch"

    def __init__(self, array, is_cuda=False):
        self.array, self.is_cuda = np.asarray(array), is_cuda
        self.ndim = self.array.ndim

    def __len__(self):
        return len(self.array)

    def numpy(self):
        return self.array


EDGE_LISTS = {
    "list of tuples": PAIRS,
    "list of lists": [list(pair) for pair in PAIRS],
    "tuple of tuples": tuple(PAIRS),
    "one edge": PAIRS[:1],
    "an edge a column": np.array(PAIRS).T,
    "one edge a column": np.array(PAIRS[:1]).T,
    "no edge a column": np.empty((2, 0), int),
    "an edge a column, Dask": da.from_array(np.array(PAIRS).T, chunks=(1, 4)),
    "tensor": Tensor(PAIRS),
    "edge_index": Tensor(np.array(PAIRS).T),
    "two tensors": (Tensor(SRC), Tensor(DST)),
}


@pytest.mark.parametrize("name", EDGE_LISTS)
def test_lists_and_columns_of_edges(name):
    obj = EDGE_LISTS[name]
    assert pairs(open_object(obj)) == {"one": PAIRS[:1], "no": []}.get(name.split()[0], PAIRS)


def test_names_of_edges_in_a_list():
    assert pairs(open_object([("a", "b"), ("b", "c"), ("c", "a")])) == [("a", "b"), ("b", "c"), ("c", "a")]


@pytest.mark.parametrize(
    "obj",
    [
        ([0, 1], [2, 3]),
        [[0, 1], [2, 3]],
        [np.array([0, 1]), np.array([2, 3])],
        (np.array([0, 1]), (2, 3)),
        (range(2), range(2, 4)),
        [[0, 1], (2, 3)],
    ],
    ids=repr,
)
def test_two_sequences_are_two_columns(obj):
    assert pairs(open_object(obj)) == [(0, 2), (1, 3)]
    assert pairs(open_object([[0, 1, 2], [1, 2, 0]])) == [(0, 1), (1, 2), (2, 0)]
    assert pairs(open_object([(0,), (2,)])) == [(0, 2)]


@pytest.mark.parametrize(
    ("obj", "edges"),
    [
        ([(0, 2), (5, 6)], [(0, 2), (5, 6)]),
        (((0, 2), (5, 6)), [(0, 2), (5, 6)]),
        ([(np.int32(0), 2.0), (5, np.uint8(6))], [(0, 2), (5, 6)]),
        ([("a", "b"), ("c", np.str_("d"))], [("a", "b"), ("c", "d")]),
        (list(pd.DataFrame({"u": [0, 5], "v": [2, 6]}).itertuples(index=False)), [(0, 2), (5, 6)]),
    ],
    ids=repr,
)
def test_two_tuples_of_two_ids_are_two_edges(obj, edges):
    assert pairs(open_object(obj)) == edges


@given(multigraphs(), text_multigraphs())
def test_any_edges_are_listed(numbers, texts):
    for edges, ids in (numbers, "int"), (texts, "text"):
        assert not edges or pairs(open_object(edges, ids=ids)) == edges


def test_two_tuples_of_arrays_are_no_edges():
    with pytest.raises(InputError, match="column 0 of the pair"):
        pairs(open_object([(np.array([0, 1]), np.array([2, 3])), (np.array([4, 5]), np.array([6, 7]))]))


def test_sources_updates_and_answers_take_the_same_two_edges():
    asked = [(0, 2), (5, 6)]
    graph = dasktc.prepare([(0, 2), (2, 5), (5, 6), (6, 2)]).update(remove=asked).graph
    assert graph.edge_support(frame="pandas")[["src", "dst"]].values.tolist() == [[2, 5], [2, 6]]
    for edges in (asked, ([0, 5], [2, 6]), [[0, 5], [2, 6]], [np.array([0, 5]), np.array([2, 6])]):
        prepared = dasktc.prepare(edges)
        assert prepared.edge_support(frame="pandas")[["src", "dst"]].values.tolist() == [[0, 2], [5, 6]]
        assert prepared.edge_support(frame="pandas", edges=edges)[["src", "dst"]].values.tolist() == [[0, 2], [5, 6]]


class Elsewhere:
    __module__ = "dgl.heterograph"


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ([], "the list is empty: it names no file and holds no edge"),
        ([(0, 1, 2.5)], r"item 0 of the list is \(0, 1, 2.5\) .* weights and attributes are not read"),
        ([(0, 1), (1, 2), 5], "item 2 of the list is 5 where an edge is expected"),
        ([(0, 1), ("a", "b"), (1, 2)], "ids are all integers or all strings"),
        (np.zeros((3, 3), int), r"has shape \(3, 3\): an edge list has one edge a row, or a column"),
        (Tensor(PAIRS, is_cuda=True), "the tensor is in GPU memory: .*cupy.from_dlpack"),
        (Elsewhere(), r"dgl.heterograph.Elsewhere is not read itself: .*pass graph.edges\(\)"),
    ],
)
def test_refused_lists_of_edges(obj, message):
    with pytest.raises(InputError, match=message) as error:
        read(open_object(obj))
    one_line(error)


ITERABLES = {
    "set": lambda: set(PAIRS),
    "frozenset": lambda: frozenset(PAIRS),
    "set of frozensets": lambda: {frozenset(pair) for pair in PAIRS if len(set(pair)) == 2},
    "list of sets": lambda: [{u, v} for u, v in PAIRS if u != v],
    "generator": lambda: (pair for pair in PAIRS),
    "iterator": lambda: iter(PAIRS),
    "zip": lambda: zip(SRC, DST, strict=True),
    "map": lambda: map(list, PAIRS),
    "keys": lambda: dict.fromkeys(PAIRS).keys(),
    "values": lambda: dict(enumerate(PAIRS)).values(),
    "items": lambda: {0: 1, 1: 2, 2: 0}.items(),
    "edges": lambda: nx.Graph(PAIRS).edges,
    "edges()": lambda: nx.DiGraph(PAIRS).edges(),
    "in_edges": lambda: nx.DiGraph(PAIRS).in_edges,
    "edges of a multigraph": lambda: nx.MultiGraph(PAIRS).edges,
    "edges() of a multigraph": lambda: nx.MultiDiGraph(PAIRS).edges(),
    "edges of nodes": lambda: nx.Graph(PAIRS).edges([0, 1]),
}


@pytest.mark.parametrize("make", ITERABLES.values(), ids=ITERABLES)
def test_iterables_of_pairs_are_edges(make):
    listed = sorted(sorted(tuple(edge)[:2]) for edge in make())  # a MultiGraph's edges have keys, too
    assert sorted(map(sorted, pairs(open_object(make())))) == listed
    assert int(dasktc.triangle_count(make())) == 1


def test_a_set_of_two_is_two_edges():
    assert sorted(
        pairs(
            open_object(
                {
                    (
                        1,
                        2,
                    ),
                    (3, 4),
                }
            )
        )
    ) == [(1, 2), (3, 4)]
    assert pairs(open_object(iter([[1, 2], [3, 4]]))) == [(1, 2), (3, 4)]


def test_an_update_takes_iterables():
    graph = dasktc.prepare(nx.path_graph(3).edges())
    assert graph.update(add={(0, 2)}).triangles == 1
    assert graph.update(add=((u, 2 - u) for u in (0,)), remove=set()).triangles == 1


CONSUMED = iter(PAIRS)
list(CONSUMED)


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        (set(), "the set is empty"),
        (CONSUMED, "the list_iterator is empty: it names no file and holds no edge, or was consumed before"),
        (nx.Graph(PAIRS).edges(data=True), "item 0 of the EdgeDataView is .*weights and attributes are not read"),
        (nx.Graph(PAIRS).nodes, "item 0 of the NodeView is 0 where an edge is expected"),
        ({frozenset({1})}, "item 0 of the set is frozenset"),
        ((x for x in "abc"), "item 0 of the generator is 'a' where an edge"),
        (nx.grid_2d_graph(2, 2).edges(), "not tuple"),
        ({(1, "a")}, "ids of type int"),
    ],
)
def test_iterables_of_other_things_are_refused(obj, says):
    with pytest.raises(InputError, match=says) as error:
        open_object(obj)
    one_line(error)


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
