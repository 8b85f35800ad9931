"""What is read is said, and two columns are taken by position only where nothing speaks against them."""

import gzip
import inspect
import json
import pickle
import tracemalloc

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dasktc
from dasktc.cli import main
from dasktc.errors import InputError
from dasktc.io.evidence import RUN, RUNS, Notes
from dasktc.options import RunOptions
from tests.support import oracle
from tests.support.emulation import cudf_strict
from tests.support.keywords import keywords

FORMS = ["csv", "tsv", "blanks", "gz", "parquet", "pandas", "polars", "arrow", "dask"]
"""Of a table; text has no header, so that its columns have no names."""
SEPARATORS = {"csv": ",", "tsv": "\t", "blanks": " ", "gz": ","}


class Exporting:
    """A table that exports Arrow, as a Polars DataFrame does."""

    def __init__(self, table):
        self._table, self.columns = table, table.columns

    def __arrow_c_stream__(self, schema=None):
        return self._table.__arrow_c_stream__(schema)


def made(frame, form, folder):
    """Make a table of a form: a file, or an object."""
    if form in SEPARATORS:
        path = folder / f"g.{'tsv' if form == 'tsv' else 'csv' if form == 'csv' else 'txt'}"
        text = frame.to_csv(sep=SEPARATORS[form], header=False, index=False).encode()
        path.write_bytes(gzip.compress(text) if form == "gz" else text)
        return str(path)
    if form == "parquet":
        frame.to_parquet(folder / "g.parquet", index=False, row_group_size=max(1, len(frame) // 3))
        return str(folder / "g.parquet")
    makers = {
        "pandas": lambda: frame,
        "polars": lambda: Exporting(pa.Table.from_pandas(frame, preserve_index=False)),
        "arrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
        "dask": lambda: dd.from_pandas(frame, npartitions=2),
    }
    return makers[form]()


def count(source, **options):
    return dasktc.triangle_count(source, threads=1, backend="cpu", **keywords(**options))


def graph(vertices=60, edges=400, seed=1, name=None):
    """Distinct random edges u < v, in ascending order."""
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(map(int, rng.integers(0, vertices, 2)))) for _ in range(edges)}
    rows = sorted((u, v) for u, v in pairs if u != v)
    rows = [(name(u), name(v)) for u, v in rows] if name else rows
    return pd.DataFrame(rows, columns=["c0", "c1"])


def numbered(edges, start=0):
    """The edges below a column that numbers the rows."""
    return pd.DataFrame({"c0": range(start, start + len(edges)), "c1": edges["c0"], "c2": edges["c1"]})


def with_middle(edges, values):
    return pd.DataFrame({"c0": edges["c0"], "c1": values, "c2": edges["c1"]})


def named(u):
    return f"n{u}"


INTEGERS, NAMES = graph(), graph(name=named)
LARGE = graph(400, 3000)
SORTED = LARGE.sample(frac=1, random_state=1, ignore_index=True) + 1426
MIXED = INTEGERS.sample(frac=1, random_state=1, ignore_index=True) + 1100
REFUSED = {
    "row numbers from 0": (numbered(INTEGERS), (1, 2), "numbers the rows"),
    "row numbers from 1": (numbered(INTEGERS, 1), (1, 2), "numbers the rows"),
    "row numbers of a triangle": (
        numbered(pd.DataFrame({"c0": [0, 0, 1], "c1": [1, 2, 2]})),
        (1, 2),
        "numbers the rows",
    ),
    "row numbers of a cycle": (numbered(pd.DataFrame({"c0": [1, 2, 3], "c1": [2, 3, 1]})), (1, 2), "numbers the rows"),
    "row numbers of many rows": (numbered(LARGE), (1, 2), "numbers the rows"),
    "times first": (
        pd.DataFrame({"c0": 1082040961 + 977 * np.arange(len(LARGE)), "c1": LARGE["c0"], "c2": LARGE["c1"]}),
        (1, 2),
        "same ids in columns 2 and 3",
    ),
    "times of several contacts first": (
        pd.DataFrame({"c0": 20 + 20 * (np.arange(len(MIXED)) // 7), "c1": MIXED["c0"], "c2": MIXED["c1"]}),
        (1, 2),
        "same ids in columns 2 and 3",
    ),
    "times of several contacts before ids in ascending order": (
        pd.DataFrame({"c0": 31220 + 20 * (np.arange(len(LARGE)) // 40), "c1": SORTED["c0"], "c2": SORTED["c1"]}),
        (1, 2),
        "same ids in columns 2 and 3",
    ),
    "triples": (with_middle(NAMES, np.resize(["likes", "knows"], len(NAMES))), (0, 2), "same ids in columns 1 and 3"),
    "triples of one relation": (with_middle(NAMES, "r"), (0, 2), "same ids in columns 1 and 3"),
    "triples of three rows": (
        pd.DataFrame({"c0": [0, 1, 0], "c1": [0, 0, 0], "c2": [1, 2, 2]}),
        (0, 2),
        "columns 1 and 3",
    ),
    "triples of small integers": (with_middle(LARGE, np.arange(len(LARGE)) % 5), (0, 2), "columns 1 and 3"),
    "triples of integers": (
        with_middle(LARGE, 100000 + np.arange(len(LARGE)) % 5),
        (0, 2),
        "same ids in columns 1 and 3",
    ),
    "types of both ends": (
        pd.DataFrame({"c0": NAMES["c0"], "c1": "person", "c2": NAMES["c1"], "c3": "person"}),
        (0, 2),
        "same ids in columns 1 and 3",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_speaks_against_the_first_two_columns_is_refused_and_the_advice_counts(tmp_path, case, form):
    frame, columns, says = REFUSED[case]
    source = made(frame, form, tmp_path)
    with pytest.raises(InputError) as caught:
        count(source)
    text, names = str(caught.value), [frame.columns[column] for column in columns]
    assert says in text
    assert "\n" not in text
    assert len(text) <= 500
    given = columns if form in SEPARATORS else tuple(names)
    assert f"columns={given!r}" in text
    result = count(source, columns=given)
    edges = list(zip(frame.iloc[:, columns[0]], frame.iloc[:, columns[1]], strict=True))
    assert int(result) == oracle.triangles(edges)
    assert result.read.selection == "given"
    assert result.read.columns == (columns[0] + 1, columns[1] + 1)


class OnDevice:
    """The parts of dask-cudf's DataFrame that are used here."""

    __module__ = "dask_cudf.core"

    def __init__(self, frame):
        self._meta, half = frame.iloc[:0], len(frame) // 2
        self._parts = [frame.iloc[:half], frame.iloc[half:]]
        self.ndim, self.columns, self.npartitions = 2, self._meta.columns, 2

    def __dask_graph__(self):
        return {}

    def to_delayed(self):
        return [dask.delayed(part) for part in self._parts]


@pytest.mark.parametrize("case", ["row numbers from 0", "triples", "triples of integers"])
def test_frames_and_files_on_a_gpu_are_judged_alike(emulated, monkeypatch, tmp_path, case):
    frame, _, says = REFUSED[case]
    for form in ("csv", "blanks", "gz", "parquet"):
        for options in ({}, {"memory": "64MB"}):
            with pytest.raises(InputError, match=says):
                dasktc.triangle_count(made(frame, form, tmp_path), backend="cuda", **keywords(**options))
    for kind in (cudf_strict.Series, cudf_strict.DataFrame):
        monkeypatch.setattr(kind, "__module__", "cudf.core")
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(cudf_strict.from_pandas(frame), backend="cuda")
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(OnDevice(cudf_strict.from_pandas(frame)), backend="cuda")
    edges = cudf_strict.from_pandas(LARGE.assign(w=1))
    assert dasktc.triangle_count(edges, backend="cuda").read.ids == "columns 'c0' and 'c1', 1 and 2 of 3, by position"
    path = made(LARGE.assign(w=1), "csv", tmp_path)
    assert dasktc.triangle_count(path, backend="cuda").read == count(path).read


RNG = np.random.default_rng(7)
PATH = pd.DataFrame({"c0": range(500), "c1": range(1, 501)})
BIPARTITE = pd.DataFrame({"c0": RNG.integers(0, 100, 400), "c1": RNG.integers(100, 180, 400)})
KEPT = {
    "weights": LARGE.assign(w=RNG.integers(1, 100, len(LARGE))),
    "weights of one": LARGE.assign(w=1),
    "times": LARGE.assign(t=1082040961 + np.arange(len(LARGE))),
    "weights and times": LARGE.assign(w=1, t=1082040961 + np.arange(len(LARGE))),
    "fractions": LARGE.assign(w=RNG.random(len(LARGE))),
    "a path with weights": PATH.assign(w=RNG.integers(1, 50, 500)),
    "a path with weights of one": PATH.assign(w=1),
    "a path with times": PATH.assign(w=1082040961 + np.arange(500)),
    "a cycle with weights": PATH.assign(c1=(PATH["c0"] + 1) % 500, w=RNG.integers(1, 50, 500)),
    "ratings": pd.DataFrame(
        {"u": RNG.integers(0, 90, 900), "i": RNG.integers(1000, 1400, 900), "r": RNG.integers(1, 6, 900)}
    ),
    "names with labels": NAMES.assign(
        kind=np.resize(["x", "y"], len(NAMES)), other=np.resize(["y", "x", "z"], len(NAMES))
    ),
    "names with weights": NAMES.assign(w=RNG.integers(1, 9, len(NAMES))),
    "names of two sides with attributes": pd.DataFrame(
        {
            "u": [f"u{k % 40}" for k in range(300)],
            "i": [f"i{k % 77}" for k in range(300)],
            "a": np.resize(["red", "blue"], 300),
            "b": np.resize(["blue", "red", "red"], 300),
        }
    ),
    "two sides with weights": BIPARTITE.assign(w=RNG.integers(1, 101, len(BIPARTITE))),
    "a star with weights": pd.DataFrame({"c0": 0, "c1": range(1, 101), "w": RNG.integers(1, 101, 100)}),
    "a path with numbers": PATH.assign(w=range(500)),
    "many attributes": LARGE.assign(**{f"a{k}": RNG.integers(0, 50, len(LARGE)) for k in range(9)}),
    "first ids that ascend at first": pd.concat(
        [PATH.iloc[:300], LARGE.assign(c0=LARGE["c0"] + 300)], ignore_index=True
    ).assign(w=RNG.integers(1, 9, 300 + len(LARGE))),
}


@pytest.mark.parametrize("form", ["csv", "blanks", "gz", "parquet", "pandas", "dask"])
@pytest.mark.parametrize("case", KEPT)
def test_edge_lists_with_more_columns_are_read(tmp_path, case, form):
    frame = KEPT[case]
    result = count(made(frame, form, tmp_path))
    assert int(result) == oracle.triangles(list(zip(frame.iloc[:, 0], frame.iloc[:, 1], strict=True)))
    assert result.read.columns == (1, 2)
    assert (result.read.width, result.read.selection, result.read.rows) == (frame.shape[1], "by position", len(frame))


# names


@pytest.mark.parametrize("form", [*FORMS[:5], "pandas", "polars", "arrow", "dask"])
@pytest.mark.parametrize(
    ("one", "other"),
    [("subject", "object"), ("head", "tail"), ("Head ID", "Tail ID"), ("sender", "recipient"), ("u", "v")],
)
def test_known_names_of_the_ends_are_found_wherever_they_stand(tmp_path, form, one, other):
    frame = pd.DataFrame({one: NAMES["c0"], "relation": "r", other: NAMES["c1"]})
    if form in SEPARATORS:
        frame.columns = [name.replace(" ", "_") for name in frame]
        path = tmp_path / "g.txt"
        frame.to_csv(path, sep=SEPARATORS[form], index=False)
        source = str(path)
    else:
        source = made(frame, form, tmp_path)
    result = count(source)
    assert int(result) == oracle.triangles(list(NAMES.itertuples(index=False, name=None)))
    assert (result.read.columns, result.read.width, result.read.selection) == ((1, 3), 3, "by name")
    assert result.read.names == (frame.columns[0], frame.columns[2])


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "arrow", "dask"])
def test_two_pairs_of_known_names_are_refused(tmp_path, form):
    frame = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0], "subject": [5, 6, 7], "object": [6, 7, 8]})
    if form == "csv":
        frame.to_csv(tmp_path / "g.csv", index=False)
    source = str(tmp_path / "g.csv") if form == "csv" else made(frame, form, tmp_path)
    with pytest.raises(InputError, match="'src' and 'dst' are names of ids, and so are 'subject' and 'object'"):
        count(source)
    assert int(count(source, columns=["src", "dst"])) == 1


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "arrow", "dask"])
@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["src", "dst", "src", "w"], {}),
        (["a", "b", "b", "w"], dict(columns=["a", "b"])),
        (["src", "dst", "w", "w"], dict(weight="w")),
        (["src", "dst", "w", "w"], dict(edge_columns=["w"])),
    ],
    ids=["known", "columns", "weight", "edge_columns"],
)
def test_a_name_of_two_columns_is_refused(tmp_path, form, names, options):
    rows = pd.DataFrame([[0, 1, 2, 5], [1, 2, 0, 6], [2, 0, 1, 7]], columns=names)
    table = pa.Table.from_arrays([pa.array(rows.iloc[:, place]) for place in range(4)], names)
    if form == "csv":
        rows.to_csv(tmp_path / "g.csv", index=False)
    elif form == "parquet":
        pq.write_table(table, tmp_path / "g.parquet")
    path = str(tmp_path / f"g.{form}")
    source = path if form in ("csv", "parquet") else table if form == "arrow" else made(rows, form, tmp_path)
    reason = (
        "2 columns .*different names$" if form == "parquet" else "so are|which is meant is unclear; give its position"
    )
    with pytest.raises(InputError, match=reason):
        dasktc.prepare(source, **options)
    if form != "parquet":
        options = {name: 3 if name == "weight" else ["0", "3"] if name == "columns" else ["3"] for name in options}
        assert dasktc.prepare(source, **{"columns": ["0", "1"], **options}).edges == 3


@pytest.mark.parametrize("lazy", [False, True])
def test_ids_in_the_index_of_a_frame_are_refused(tmp_path, lazy):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3], "w": [1, 2, 3, 4]})
    frames = [edges.set_index("src"), edges.set_index("src")[["dst"]]]
    if not lazy:
        frames += [edges.assign(n=1).groupby(["src", "dst"]).sum(), edges.groupby(["src", "dst"]).sum()]
    for frame in frames:
        source = dd.from_pandas(frame, npartitions=2) if lazy else frame
        with pytest.raises(InputError, match=r"index named 'src'.*pass frame.reset_index\(\)"):
            count(source)
        assert int(count(source.reset_index())) == 1
    frames[0].rename(columns={"dst": "other"}).to_parquet(tmp_path / "half.parquet")
    with pytest.raises(InputError, match="index named 'src'"):
        count(str(tmp_path / "half.parquet"))
    assert int(count(str(tmp_path / "half.parquet"), columns=["src", "other"])) == 1
    frames[0].to_parquet(tmp_path / "whole.parquet")
    assert int(count(str(tmp_path / "whole.parquet"))) == 1
    assert int(count(edges.rename_axis("number"))) == 1


# lines

LINES = {
    "gSpan": ("t # 0\nv 0 2\nv 1 2\nv 2 2\ne 0 1 2\ne 0 2 2\ne 1 2 2\n", "gSpan file of graphs"),
    "g, n and e": ("g one\nn 0 A x\nn 1 B x\nn 2 A x\ne 0 1\ne 1 2\ne 2 0\n", "differ in what follows"),
    "n and e of one width": ("g x\nn 0 A\nn 1 B\ne 0 1\ne 1 0\n", "differ in what follows"),
    "e alone": ("e 1 2\ne 2 3\ne 1 3\n", "before two integers.*columns=\\(1, 2\\)"),
    "nodes first": ("n 0 A x\nn 1 B x\nn 2 A x\ne 0 1\ne 1 2\ne 2 0\n", "differ in what follows"),
    "names with blanks": ("New York Boston {}\nNew York L A {}\nBoston L A {}\n", "names perhaps contain blanks"),
    "neighbours": ("1 2 3\n2 3\n3\n", "all its neighbours"),
    "a matrix": ("0 1 1\n1 0 1\n1 1 0\n", "adjacency matrix"),
}


@pytest.mark.parametrize("before", [0, 400])
@pytest.mark.parametrize("case", LINES)
def test_lines_that_are_no_rows_of_a_table_are_refused(tmp_path, case, before):
    text, says = LINES[case]
    above = "".join(f"a{k} a{k + 1}\n" for k in range(before)) if "names" in case else text * (before // 4)
    (tmp_path / "g.txt").write_text(above + text * (1 + before // 10))
    with pytest.raises(InputError, match=says):
        count(str(tmp_path / "g.txt"))


def test_rows_far_from_the_first_are_judged_too(tmp_path):
    """A part that looks harmless is not judged alone: others of the same file, or other files, speak."""
    head = pd.DataFrame({"c0": [f"a{k}" for k in range(300)], "c1": [f"r{k % 3}" for k in range(300)], "c2": "x"})
    frame = pd.concat([head.assign(c2=[f"b{k}" for k in range(300)]), with_middle(NAMES, "r")], ignore_index=True)
    for form in FORMS:
        with pytest.raises(InputError, match="same ids in columns 1 and 3"):
            count(made(frame, form, tmp_path))
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        numbered(LARGE.iloc[number * 500 : number * 500 + 500]).to_csv(
            folder / f"{number}.csv", header=False, index=False
        )
    with pytest.raises(InputError, match="numbers the rows"):
        count(str(folder))


def test_a_column_that_is_empty_shifts_no_other(tmp_path):
    path = tmp_path / "g.tsv"
    rows = "".join(f"\t{u}\t{v}\n" for u, v in INTEGERS.itertuples(index=False))
    path.write_text("w\tsrc\tdst\n" + rows)
    assert count(str(path)).read.columns == (2, 3)
    path.write_text("".join(f"{u}\t{v}\t\t{v}\n" for u, v in INTEGERS.itertuples(index=False)))
    assert int(count(str(path))) == oracle.triangles(list(INTEGERS.itertuples(index=False, name=None)))


# what a result says

TRIANGLE = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 0], "w": [0.5, 0.5, 1.5]})


def test_a_result_says_what_was_read(tmp_path, capfd):
    path = tmp_path / "g.csv"
    path.write_text("# made by hand\n# in two lines\na,b,w\n0,1,.5\n1,2,.5\n2,0,1.5\n2,2,1\n")
    result = count(str(path))
    said = [line for line in repr(result).splitlines() if line.split()[0] in ("ids", "rows", "skipped")]
    assert said == [
        "ids        columns 'a' and 'b', 1 and 2 of 3, by position",
        "rows       4",
        "skipped    1 header line, 2 comment lines above the rows",
    ]
    assert pickle.loads(pickle.dumps(result)).read == result.read
    assert "columns &#x27;a&#x27; and &#x27;b&#x27;, 1 and 2 of 3, by position" in result._repr_html_()
    main.main(["count", str(path), "--threads", "1", "--json"])
    printed = capfd.readouterr().out
    assert json.loads(printed)["read"] == result.to_dict()["read"]
    assert json.loads(printed)["read"]["columns"] == [1, 2]


@pytest.mark.parametrize(
    ("make", "ids"),
    [
        (lambda: TRIANGLE, "columns 'a' and 'b', 1 and 2 of 3, by position"),
        (lambda: TRIANGLE[["a", "b"]].to_numpy(), "both ends of each edge of the NumPy array"),
        (lambda: ([0, 1, 2], [1, 2, 0]), "both ends of each edge of the pair"),
    ],
)
def test_objects_say_what_they_are(make, ids):
    result = count(make())
    assert (int(result), result.read.ids, result.read.rows) == (1, ids, 3)


def test_graphs_estimates_updates_and_saved_graphs_carry_it(tmp_path):
    graph = dasktc.prepare(TRIANGLE, threads=1, backend="cpu")
    assert graph.read.ids == "columns 'a' and 'b', 1 and 2 of 3, by position"
    assert graph.read.rows == 3
    assert "by position" in repr(graph)
    assert graph.estimate().read == graph.triangle_count().read == graph.read
    assert graph.estimate().to_dict()["read"]["selection"] == "by position"
    assert graph.update(add=[(2, 3), (1, 3)]).graph.read == graph.read
    graph.save(tmp_path / "saved")
    opened = dasktc.open_graph(tmp_path / "saved", threads=1, backend="cpu")
    assert opened.read == graph.read == opened.triangle_count().read
    weighted = dasktc.prepare(TRIANGLE, weight="w", threads=1)
    assert weighted.read == graph.read


def test_chunks_and_workers_carry_it(tmp_path, client):
    path = made(LARGE.assign(w=1), "csv", tmp_path)
    expected = count(path).read
    assert count(path, memory="16MiB").read == expected
    for how in ("always", "never"):
        assert dasktc.triangle_count(path, client, backend="cpu", run=RunOptions(distribute=how)).read == expected
        with pytest.raises(InputError, match="numbers the rows"):
            dasktc.triangle_count(
                made(numbered(LARGE), "tsv", tmp_path), client, backend="cpu", run=RunOptions(distribute=how)
            )
    with pytest.raises(InputError, match="numbers the rows"):
        count(made(numbered(LARGE), "tsv", tmp_path), memory="16MiB")


def test_notes_take_little_memory_beside_the_budget():
    """Notes of all parts are in memory until the last one is read, and no budget counts them."""
    tracemalloc.start()
    notes = Notes()
    for first in range(0, RUNS * RUN, RUN):
        notes.add([(f"{k}", f"{k + 1}") for k in range(first, first + RUN)])
    own = tracemalloc.Filter(True, inspect.getfile(Notes))  # what other threads allocate meanwhile is not the notes'
    nbytes = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([own]).traces)
    tracemalloc.stop()
    assert notes.sample().rows == [(f"{k}", f"{k + 1}") for k in range(RUNS * RUN)]
    assert 10 * RUNS * RUN < nbytes < 30 * RUNS * RUN


def test_comments_among_the_rows_are_counted_in_every_part(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("# above\n" + "".join(f"{k} {k + 1}\n# one of {k} words\n" for k in range(300)))
    for options in ({}, {"memory": "16MiB"}):
        read = count(str(path), **options).read
        assert (read.rows, read.comments_above, read.comments_below, read.headers) == (300, 1, 300, 0)
    assert "skipped    1 comment line above the rows, 300 comment lines among the rows" in repr(count(str(path)))


def test_files_whose_columns_were_found_in_another_way_are_said(tmp_path):
    (tmp_path / "a.csv").write_text("source,target\n0,1\n")
    (tmp_path / "b.csv").write_text("# c\n1,2\n0,2\n")
    read = count([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]).read
    assert read.ids == "columns 'source' and 'target', 1 and 2 of 2, by name; in 1 of the files otherwise"
    assert (read.rows, read.headers, read.comments_above, read.others) == (3, 1, 1, 1)


def far_rows(folder, form, odd, header=""):
    """Write 40,000 rows, of which the last half is made by `odd`, as one file, compressed, or as two files."""
    rows = [f"{k},{k + 1}" for k in range(1, 20_001)], [odd(k) for k in range(20_001, 40_001)]
    if form == "two files":
        for name, part in zip("ab", rows, strict=True):
            (folder / f"{name}.csv").write_text(header + "\n".join(part) + "\n")
        return str(folder)
    text = header + "\n".join(rows[0] + rows[1]) + "\n"
    path = folder / ("g.csv.gz" if form == "gz" else "g.csv")
    path.write_bytes(gzip.compress(text.encode()) if form == "gz" else text.encode())
    return str(path)


FAR = ["csv", "gz", "two files"]


@pytest.mark.parametrize("form", FAR)
@pytest.mark.parametrize("header", ["", "src,dst\n", "a,b\n"], ids=["no header", "known names", "other names"])
def test_leading_zeros_far_from_the_first_rows_are_said_once(tmp_path, caplog, form, header):
    source = far_rows(tmp_path, form, lambda k: f"{k:07},{k + 1:07}", header)
    for options in ({}, {"memory": "40MB"}):
        caplog.clear()
        count(source, **options)
        (said,) = [record.message for record in caplog.records if "leading zeros" in record.message]
        assert ("b.csv" if form == "two files" else source) in said
    caplog.clear()
    for ids, vertices in (("text", 40_002), ("int", 40_001)):
        assert count(source, ids=ids).vertices == vertices
    assert "leading zeros" not in caplog.text


def test_leading_zeros_of_two_files_are_said_once(tmp_path, caplog):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("007,8\n" + "\n".join(f"{k:07},8" for k in range(9, 20_000)) + "\n")
    count(str(tmp_path))
    assert caplog.text.count("leading zeros") == 1


TWO_SIDES = {
    "keys and values": (b"source=1 target=2\nsource=2 target=3\nsource=1 target=3\n", "'source=1 target=2'"),
    "commas before tabs": (b"a;1,a;2\na;2,a;3\na;1,a;3\n", "'a 1,a'"),
    "far from the first rows": (b"".join(b"f:%d,t:%d\n" % (i, i + 1) for i in range(20_000)), "'f:0 t:1'"),
    "numbers far from the first rows": (b"".join(b"%d,%d\n" % (i, i + 90_000) for i in range(20_000)), "'0 90000'"),
}


@pytest.mark.parametrize("case", TWO_SIDES)
def test_two_columns_without_a_common_id_are_said(tmp_path, caplog, case):
    data, example = TWO_SIDES[case]
    (tmp_path / "g.txt").write_bytes(data)
    assert int(count(str(tmp_path / "g.txt"))) == 0
    (line,) = [record.getMessage() for record in caplog.records if "in common" in record.getMessage()]
    assert line.startswith("dasktc: warning: columns 1 and 2 of ")
    sample = " in a sample" if len(data) > 100_000 else ""
    assert f"no id in common{sample}, as {example}: two sides" in line
    assert "columns=..." in line


@pytest.mark.parametrize("data", [b"\t1\t2\n\t2\t3\n\t3\t1\n", b"1 2\n2 3\t\n3 1\n", b"\t1 2\n\t2 3\n\t3 1\n"])
def test_tabs_that_indent_or_end_a_line_are_no_empty_fields(tmp_path, data):
    (tmp_path / "g.txt").write_bytes(data)
    assert int(count(str(tmp_path / "g.txt"))) == 1


def test_years_before_the_ends_are_refused(tmp_path):
    edges = graph(60, 300)
    years = pd.DataFrame({"c0": 1990 + np.arange(len(edges)) * 7 % 30, "c1": edges["c0"], "c2": edges["c1"]})
    with pytest.raises(InputError, match="the same ids in columns 2 and 3"):
        count(made(years, "csv", tmp_path))


ORDINARY = {
    "from 0 1 on, not ascending": ("0 1\n1 2\n0 2\n", 1),
    "symmetric": ("0 1\n1 0\n0 2\n2 0\n1 2\n2 1\n", 1),
    "vertices first": ("0\n1\n2\n3\n4\n0 1\n1 2\n0 2\n", 1),
    "named v and w": ("v,w\n1,2\n2,3\n3,1\n", 1),
    "named v and w, with a weight": ("v,w,weight\n1,2,5\n2,3,6\n3,1,7\n", 1),
    "two columns of labels": ("label,label2\na,b\nb,c\nc,a\n", 1),
    "two names above four columns": ("source target\n0 1 5 7\n1 2 5 7\n0 2 5 8\n", 1),
    "a title of two words": ("Zachary karate\n1 2\n2 3\n3 1\n", 1),
    "an indented row": ("\t0\t1\n1\t2\n0\t2\n", 1),
    "a line separator in a name": ("a\u2028b c\n", 0),
    "intervals of visits": (
        "\n".join(
            f"{i * 37 % 99},{1000 + i * 7 % 300},{5000 + i * i % 97},{5001 + i * i % 97 + i % 8}" for i in range(400)
        ),
        0,
    ),
}


@pytest.mark.parametrize("case", ORDINARY)
def test_ordinary_lists_are_counted(tmp_path, case):
    text, triangles = ORDINARY[case]
    (tmp_path / "g.txt").write_text(text)
    assert int(count(str(tmp_path / "g.txt"))) == triangles


@pytest.mark.parametrize("case", ["from 0 1 on, not ascending", "symmetric"])
def test_nothing_is_said_of_ordinary_integers(tmp_path, caplog, case):
    (tmp_path / "g.txt").write_text(ORDINARY[case][0])
    count(str(tmp_path / "g.txt"))
    assert not caplog.records


def test_files_may_begin_with_the_same_edge(tmp_path):
    (tmp_path / "a.txt").write_text("0 1\n2 0\n1 2\n")
    (tmp_path / "b.txt").write_text("0 1\n3 0\n1 3\n")
    assert int(count(str(tmp_path))) == 2


@pytest.mark.parametrize("skip", [0, None])
@pytest.mark.parametrize(
    "text",
    [
        "New York Boston\n1 Boston\n2 Boston\n3 Boston\n",
        "Rome Paris\nNew York Boston\n1 Boston\n2 Boston\n3 Boston\n4 Paris\n",
    ],
)
def test_names_with_blanks_are_refused_though_few(tmp_path, text, skip):
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(InputError, match=r"names perhaps contain blanks|with one integer and one that is not"):
        dasktc.triangle_count(tmp_path / "g.txt", skip=skip, threads=1, backend="cpu")


def test_lines_of_one_id_are_said(tmp_path):
    (tmp_path / "g.txt").write_bytes(b"1 2\n2 3\n3 1\n4\n5\n")
    read = count(str(tmp_path / "g.txt")).read
    assert (read.rows, read.singles) == (3, 2)
    assert "skipped: 2 single-id lines" in str(read)


def test_a_minus_before_zero_is_lost_and_said(tmp_path, caplog):
    (tmp_path / "g.txt").write_bytes(b"-0 1\n1 2\n2 -0\n")
    assert int(count(str(tmp_path / "g.txt"))) == 1
    assert "'-0 1'" in caplog.text


@pytest.mark.parametrize("form", FAR)
@pytest.mark.parametrize("header", ["src,dst\n", "a,b\n"], ids=["known names", "other names"])
def test_rows_wider_than_the_header_far_from_the_first_are_refused(tmp_path, form, header):
    source = far_rows(tmp_path, form, lambda k: f"{k // 1000},{k % 1000:03},{k + 1}", header)
    file = "b.csv" if form == "two files" else source
    for options in ({}, {"memory": "40MB"}):
        with pytest.raises(InputError, match=r"holds 3 fields.* below a header of 2: the separator perhaps") as error:
            count(source, **options)
        assert file in str(error.value)
    assert count(source, skip=1, columns=("0", "1")).edges


def test_a_part_whose_rows_are_wider_is_judged_where_the_first_rows_have_two_columns(tmp_path):
    source = far_rows(tmp_path, "two files", lambda k: " ".join(map(str, range(k, k + 2 + k % 4))).replace(" ", ","))
    with pytest.raises(InputError, match="perhaps a vertex and all its neighbours a line"):
        count(source)


SMALL = [(7, 0, 8), (8, 0, 9), (9, 1, 7), (8, 1, 10), (10, 0, 7), (9, 1, 10)]
"""Triples of few rows: (subject, predicate, object)."""


@pytest.mark.parametrize("form", ["blanks", "csv", "parquet", "pandas"])
def test_few_triples_of_integers_are_told_by_predicates_outside_the_ids(tmp_path, form):
    frame = pd.DataFrame(SMALL, columns=["c0", "c1", "c2"])
    with pytest.raises(InputError, match=r"holds the same ids in columns 1 and 3.* relations in the column between"):
        count(made(frame, form, tmp_path))
    columns = ("0", "2") if form in SEPARATORS else ("c0", "c2")
    expected = oracle.triangles([(one, other) for one, _, other in SMALL])
    assert expected
    assert count(made(frame, form, tmp_path), columns=columns).triangles == expected
    # Users, items and ratings: where a rating is the number of its user, they are no ends of an edge.
    ratings = pd.DataFrame(
        [(1, 11, 1), (2, 12, 3), (3, 11, 2), (4, 12, 4), (5, 11, 1), (2, 11, 5)], columns=frame.columns
    )
    assert count(made(ratings, form, tmp_path)).edges == 6


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["True,1,2", "False,2,3", "True,3,1"], "holds booleans in column 1"),
        (["True,a,b", "False,b,c", "True,c,a"], "holds booleans in column 1, as '.*': ids are integers or names"),
        (["a,true", "b,false", "c,true"], "holds booleans in column 2"),
        (["true,false", "false,false", "true,true"], "holds booleans in column 1"),
        (["TRUE\ta\tb", "TRUE\tb\tc"], "holds booleans in column 1"),
    ],
)
def test_booleans_are_no_ids_in_files_as_in_frames(tmp_path, rows, says):
    (tmp_path / "g.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(tmp_path / "g.csv", skip=0)
    dasktc.triangle_count(tmp_path / "g.csv", columns=(0, 1), ids="text", skip=0)


def test_names_may_be_true(tmp_path):
    for rows in (["true,false", "false,maybe", "true,maybe"], ["true,a"]):
        (tmp_path / "g.csv").write_text("\n".join(rows) + "\n")
        assert int(dasktc.triangle_count(tmp_path / "g.csv", skip=0)) == len(rows) // 3
