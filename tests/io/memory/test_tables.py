"""Tables, arrays, pairs of columns and lists of edges as sources."""

from array import array

import dask.array as da
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given

import dasktc
from dasktc.errors import InputError
from tests.support.objects import (
    DST,
    PAIRS,
    SRC,
    Capsule,
    dask_frame,
    foreign,
    one_line,
    open_object,
    pairs,
    read,
    table,
)
from tests.support.oracle import GRAPHS, clean, multigraphs, text_multigraphs, triangles

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


@pytest.mark.parametrize("kind", SOURCES)
def test_every_row_is_an_edge(kind):
    source = open_object(SOURCES[kind](), columns=("src", "dst") if "by name" in kind else None)
    assert (source.ids, pairs(source)) == ("int", PAIRS)


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
        (pd.DataFrame({"a": [1]}), "has the columns a: an edge has two ends"),
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


@pytest.mark.parametrize("form", ["pandas", "parquet"])
def test_tables_that_were_joined_or_turned_are_counted(tmp_path, form):
    """pandas names levels of the index, or the columns' axis."""
    first, second = (pd.DataFrame(rows, columns=["a", "b"]) for rows in ([(1, 2), (2, 3)], [(3, 1), (4, 1)]))
    ends = pd.DataFrame({"edge": [0, 0, 1, 1, 2, 2], "end": ["source", "target"] * 3, "vertex": [1, 2, 2, 3, 3, 1]})
    for made in (pd.concat({"x": first, "y": second}), ends.pivot(index="edge", columns="end", values="vertex")):
        if form == "parquet":
            made.to_parquet(tmp_path / "g.parquet")
        source = made if form == "pandas" else str(tmp_path / "g.parquet")
        assert int(dasktc.triangle_count(source, threads=1, backend="cpu")) == 1


def test_series_of_different_indexes_are_refused():
    table = pd.DataFrame({"a": [1, 2, 3], "b": [2, 3, 1]})
    with pytest.raises(InputError) as error:
        open_object((table["a"], table["b"].sort_values()))
    assert "different indexes" in one_line(error)
    assert len(read(open_object((table["a"], table["b"])))) == 3


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


@pytest.mark.parametrize("option", [dict(weight="w"), dict(directed=True), dict(edge_columns=["w"])], ids=list)
def test_values_of_edges_in_gpu_memory_are_refused_by_name(option):
    frame = type("DataFrame", (pd.DataFrame,), {"__module__": "cudf"})({"src": [0], "dst": [1], "w": [2]})
    with pytest.raises(
        InputError, match=r"is in GPU memory: weights, directions and columns .* pandas DataFrame of it"
    ):
        dasktc.prepare(frame, **option)
