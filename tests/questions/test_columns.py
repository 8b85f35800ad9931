"""Columns of edges and vertices in surveys, and the questions built on them, against brute force."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dasktc
from dasktc.errors import InputError
from tests.questions.test_survey import PLANS, REORDERS, triangles_of
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import tuned

KINDS = ["a", "b", "long text", "ü"]
REDUCED = {"first": lambda values: values[0], "min": min, "max": max, "sum": sum}


def rows_of(edges):
    """Rows of edges with a time, a sign, a fraction and a kind, all that rows may differ in."""
    row = st.tuples(
        st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9),
        st.sampled_from([1, -1]),
        st.floats(-1e9, 1e9),
        st.sampled_from(KINDS),
    )
    return edges.flatmap(
        lambda found: st.lists(row, min_size=len(found), max_size=len(found)).map(
            lambda values: pd.DataFrame(
                [(*edge, *of) for edge, of in zip(found, values, strict=True)],
                columns=["src", "dst", "time", "sign", "share", "kind"],
            ).astype({"time": "int64", "sign": "int64", "share": float, "kind": "str"})
        )
    )


def prepared(source, columns, client=None, **options):
    given = dict(edge_columns=columns, threads=None if client else 1) | options
    return dasktc.prepare(source, client, **keywords(**given))


def edges_of(frame, name, repeats):
    """The value of each edge."""
    values = {}
    for src, dst, value in frame[["src", "dst", name]].itertuples(index=False):
        if src != dst:
            values.setdefault(frozenset((src, dst)), []).append(value)
    return {edge: REDUCED[repeats](of) for edge, of in values.items()}


def seen(graph, names):
    """Each triangle's values by edge, as ids and values of a survey."""

    def listed(batch):
        return Counter(map(tuple, pd.DataFrame(batch).itertuples(index=False)))

    ids, found = graph.triangles().index, {}
    for (u, v, w, *values), count in graph.survey(listed, names).items():
        assert count == 1
        u, v, w = (ids[end] for end in (u, v, w))
        edges = [frozenset(pair) for pair in ((u, v), (u, w), (v, w))]
        by_name = [dict(zip(edges, values[3 * k : 3 * k + 3], strict=True)) for k in range(len(names))]
        assert tuple(sorted((u, v, w))) not in found
        found[tuple(sorted((u, v, w)))] = by_name
    return found


@given(
    rows_of(oracle.multigraphs()),
    st.sampled_from(PLANS),
    st.sampled_from(REORDERS),
    st.sampled_from(["first", "min", "max"]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 3]),
)
def test_any_multigraph(frame, plan, reorder, repeats, threads, shards):
    names = ["time", "kind"]
    with tuned(least_shards=shards):
        graph = prepared(frame, dict.fromkeys(names, repeats), reorder=reorder, threads=threads, **plan)
    categories = graph.columns["kind"]
    kinds = sorted(set(frame["kind"][frame["src"] != frame["dst"]]))
    assert categories == (tuple(kinds) if kinds else "int64")
    values = [edges_of(frame, name, repeats) for name in names]
    found = seen(graph, names)
    assert found.keys() == triangles_of(zip(frame["src"], frame["dst"], strict=True))
    for times, kinds in found.values():
        assert times == {edge: values[0][edge] for edge in times}
        assert {edge: categories[code] for edge, code in kinds.items()} == {edge: values[1][edge] for edge in kinds}


@given(
    rows_of(oracle.multigraphs()),
    st.sampled_from(PLANS),
    st.sampled_from(REORDERS),
    st.integers(0, 2**64 - 1) | st.sampled_from([0, 7, 2**64 - 1]),
)
def test_signed_and_temporal_triangles(frame, plan, reorder, window):
    graph = prepared(frame, {"sign": "min", "time": "max"}, reorder=reorder, **plan)
    signs, times = edges_of(frame, "sign", "min"), edges_of(frame, "time", "max")
    triangles = [
        [frozenset(pair) for pair in combinations(triangle, 2)]
        for triangle in triangles_of(zip(frame["src"], frame["dst"], strict=True))
    ]
    negative = Counter(sum(signs[edge] < 0 for edge in triangle) for triangle in triangles)
    assert graph.signed_triangles("sign") == {
        **{kind: negative[number] for number, kind in enumerate(["+++", "++-", "+--", "---"])},
        "balanced": negative[0] + negative[2],
        "unbalanced": negative[1] + negative[3],
    }
    spans = [sorted(times[edge] for edge in triangle) for triangle in triangles]
    temporal = graph.temporal_triangles("time", window=window)
    assert temporal.triangles == len(triangles)
    assert temporal.within == sum(last - first <= window for first, _, last in spans)
    expected = Counter((power(second - first), power(last - first)) for first, second, last in spans)
    assert {(row.opening, row.closing): row.triangles for row in temporal.histogram.itertuples()} == expected


def power(time):
    """The largest power of two up to a time; 0 of 0."""
    return 1 << (time.bit_length() - 1) if time else 0


@pytest.mark.parametrize("repeats", REDUCED)
def test_repeated_edges(repeats):
    rows = [
        (0, 1, 5, 2.5),
        (1, 0, 3, -1.0),
        (1, 2, 7, 0.25),
        (2, 0, 1, 1.0),
        (0, 2, 1, 8.0),
        (1, 0, 9, 4.0),
        (1, 1, 6, 0.0),
    ]
    frame = pd.DataFrame(rows, columns=["src", "dst", "time", "share"])
    for reorder in REORDERS:
        graph = prepared(frame, dict.fromkeys(["time", "share"], repeats), reorder=reorder)
        ((times, shares),) = seen(graph, ["time", "share"]).values()
        assert times == edges_of(frame, "time", repeats)
        assert shares == edges_of(frame, "share", repeats)


FRAME = pd.DataFrame(
    {
        "src": [0, 1, 2, 2, 3, 3],
        "dst": [1, 2, 0, 3, 1, 3],
        "time": [2**62 + 1, 5, 7, 2**62, 0, 1],
        "share": [0.5, 1, 2, -3.25, 1e-9, 7],
        "kind": ["x", "a, b", 'quote "', "x", "ü", "loop"],
    }
)


def outcome(graph):
    names = ["time", "share", "kind"]
    return graph.columns, graph.survey(lambda b: Counter(map(tuple, pd.DataFrame(b).itertuples(index=False))), names)


@pytest.fixture(scope="module")
def expected():
    columns, rows = outcome(prepared(FRAME, ["time", "share", "kind"]))
    assert columns == {"time": "int64", "share": "float64", "kind": ("a, b", 'quote "', "x", "ü")}
    return columns, rows


def written(tmp_path, kind):
    if kind in ("csv", "turned", "quoted"):
        frame = FRAME[["kind", "dst", "time", "src", "share"]] if kind == "turned" else FRAME
        frame.to_csv(tmp_path / "a.csv", index=False, quoting=1 if kind == "quoted" else 0)
        return tmp_path / "a.csv"
    if kind == "tsv":
        FRAME.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
        return tmp_path / "a.tsv"
    FRAME.to_parquet(tmp_path / "a.parquet", row_group_size=2)
    return tmp_path / "a.parquet"


@pytest.mark.parametrize("kind", ["csv", "turned", "quoted", "tsv", "parquet"])
def test_files(kind, tmp_path, expected):
    assert outcome(prepared(written(tmp_path, kind), ["time", "share", "kind"])) == expected


def test_frames(expected):
    import dask.dataframe as dd

    categorical = FRAME.astype({"kind": "category"})
    for source in (pl.from_pandas(FRAME), pa.table(FRAME), categorical, dd.from_pandas(FRAME, npartitions=3)):
        assert outcome(prepared(source, ["time", "share", "kind"])) == expected


def test_text_files_have_one_type_for_all_parts(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,n,f,t\n0,1,1,1,1\n1,2,2,2,2\n")
    (tmp_path / "b.csv").write_text("src,dst,n,f,t\n2,0,3,0.5,x\n")
    graph = prepared([tmp_path / "a.csv", tmp_path / "b.csv"], ["n", "f", "t"])
    assert graph.columns == {"n": "int64", "f": "float64", "t": ("1", "2", "x")}
    assert graph.survey(lambda b: b["f_uv"] + b["f_uw"] + b["f_vw"], ["f"]).tolist() == [3.5]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((1.5, "nan", 2), "column 'n' has NaN or infinite values beside numbers"),
        ((1, "inf", 2), "column 'n' has NaN or infinite values beside numbers"),
        ((0.5, 2**53 + 1, 2), "an integer of 9.007e[+]15 beside fractions, or beyond 64 bits"),
        ((1, 2**64 - 1, 2), "an integer of 1.845e[+]19 beside fractions, or beyond 64 bits"),
    ],
)
def test_numbers_of_text_files_are_refused_as_those_of_frames_are(tmp_path, values, reason):
    rows = zip((0, 1, 2), (1, 2, 0), values, strict=True)
    (tmp_path / "a.csv").write_text("src,dst,n\n" + "".join(f"{src},{dst},{value}\n" for src, dst, value in rows))
    with pytest.raises(InputError, match=reason):
        prepared(tmp_path / "a.csv", ["n"])


def test_a_part_without_a_number_is_judged_with_the_others(tmp_path):
    for name, values in (("a", ("nan", "inf")), ("b", (1, 2)), ("c", ("x", "nan"))):
        (tmp_path / f"{name}.csv").write_text(f"src,dst,n\n0,{ord(name)},{values[0]}\n1,{ord(name)},{values[1]}\n")
    a, b, c = (tmp_path / f"{name}.csv" for name in "abc")
    with pytest.raises(InputError, match="column 'n' has NaN or infinite values beside numbers"):
        prepared([a, b], ["n"])
    assert prepared([a, c], ["n"]).columns == {"n": ("inf", "nan", "x")}
    assert prepared([a, b, c], ["n"]).columns == {"n": ("1", "2", "inf", "nan", "x")}


@pytest.mark.parametrize(("true", "false"), [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_booleans_of_text_files_are_those_of_frames(tmp_path, true, false):
    """In all parts, or they are names."""

    def written(name, first, values):
        rows = "".join(f"{first + row},{(first + row + 1) % 4},{value}\n" for row, value in enumerate(values))
        (tmp_path / name).write_text(f"src,dst,flag\n{rows}")
        return tmp_path / name

    a, b = written("a.csv", 0, [true, false]), written("b.csv", 2, [false, false])
    frame = pd.DataFrame({"src": [0, 1, 2, 3, 0], "dst": [1, 2, 3, 0, 2], "flag": [True, False, False, False, True]})
    c = written("c.csv", 0, []).with_name("c.csv")
    c.write_text(f"src,dst,flag\n0,2,{true}\n")
    known, found = prepared(frame, ["flag"]), prepared([a, b, c], ["flag"])
    assert known.columns == found.columns == {"flag": "int64"}
    for graph in (known, found):
        assert graph.survey(lambda b: int((b["flag_uv"] + b["flag_uw"] + b["flag_vw"]).sum()), ["flag"]) == 3
    names = prepared([a, b, written("d.csv", 8, ["maybe", 1])], ["flag"])
    assert names.columns == {"flag": tuple(sorted([true, false, "maybe", "1"]))}
    assert prepared([a, b, written("e.csv", 8, [1, 0])], ["flag"]).columns == {
        "flag": tuple(sorted([true, false, "1", "0"]))
    }


def test_tables_that_carry_an_index_have_their_ids_there():
    import pyarrow as pa

    edges = pd.DataFrame({"src": [10, 11, 12], "dst": [11, 12, 10]})
    for name in ("id", "vertex", None):
        frame = pd.DataFrame({"age": [1, 2, 4]}, index=pd.Index([12, 11, 10], name=name))
        graph = dasktc.prepare(edges, vertices=pa.Table.from_pandas(frame))
        assert graph.survey(lambda b: b["age_u"] + 0 * b["u"], ["age"]).sum() in {1, 2, 4}
    with pytest.raises(InputError, match="whose values its rows have is unclear"):
        dasktc.prepare(edges, vertices=pa.table({"age": [1, 2, 4]}))


@pytest.mark.filterwarnings("error")
def test_text_of_no_edge_is_no_text():
    for values in (["a"], pd.Categorical(["a"])):
        graph = prepared(pd.DataFrame({"src": [0], "dst": [0], "kind": values}), ["kind"])
        assert graph.columns == {"kind": "int64"}


def test_words_that_are_no_numbers_are_text(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,n,m,h\n0,1,nan,1,1\n1,2,nan,nan,0x10\n2,0,inf,x,2\n")
    graph = prepared(tmp_path / "a.csv", ["n", "m", "h"])
    assert graph.columns == {"n": ("inf", "nan"), "m": ("1", "nan", "x"), "h": ("0x10", "1", "2")}


def test_integers_of_text_files_may_have_a_plus_sign(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,sign,time,tag\n0,1,+1,+9007199254740993,+x\n1,2,-1, +2,+1\n2,0,+1,3,+-1\n")
    graph = prepared(tmp_path / "a.csv", ["sign", "time", "tag"])
    assert graph.columns == {"sign": "int64", "time": "int64", "tag": ("+-1", "+1", "+x")}
    assert graph.signed_triangles("sign")["++-"] == 1
    assert [graph.temporal_triangles("time", window=2**53 + more).within for more in (-2, -1)] == [0, 1]


def test_positions_and_text_ids(tmp_path):
    (tmp_path / "a.txt").write_text("a b 3\nb c 4\nc a 5\n")
    graph = prepared(tmp_path / "a.txt", ["2"], ids="text")
    assert graph.survey(lambda b: b["2_uv"] + b["2_uw"] + b["2_vw"], ["2"]).tolist() == [12]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_within_memory(tmp_path, expected, plan):
    for kind in ("csv", "parquet"):
        graph = prepared(written(tmp_path, kind), ["time", "share", "kind"], memory="20MB", **plan)
        assert graph.columns == expected[0]
        assert seen(graph, ["time", "share", "kind"]) == seen(
            prepared(FRAME, ["time", "share", "kind"]), ["time", "share", "kind"]
        )
        graph.close()


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "kind"), [(None, "frame"), ("20MB", "file")])
def test_on_workers(client, tmp_path, expected, memory, kind):
    random = np.random.default_rng(1)
    frame = pd.DataFrame(random.integers(0, 40, (600, 2)), columns=["src", "dst"])
    frame = frame.assign(time=random.integers(0, 1000, 600), kind=random.choice(KINDS, 600))
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    names = dict.fromkeys(["time", "kind"], "first")
    here = prepared(frame, names)
    labels = pd.DataFrame({"vertex": range(40), "group": np.arange(40) % 3})
    source = frame if kind == "frame" else tmp_path / "a.parquet"
    place = dict(memory=memory, work_dir=tmp_path) if memory else {}
    with prepared(source, names, client, partition="hash2d", parts=2, vertices=labels, **place) as graph:
        assert graph.columns == {"group": "int64", **here.columns}
        assert seen(graph, ["time", "kind"]) == seen(here, ["time", "kind"])
        found, alone = graph.temporal_triangles("time", window=99), here.temporal_triangles("time", window=99)
        assert found.within == alone.within
        assert found.histogram.equals(alone.histogram)
        types = graph.triangle_types("group")
        assert types.equals(here.triangle_types(labels.set_index("vertex")["group"]))


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("ids", [int, str])
def test_columns_of_vertices_in_shards(plan, ids):
    edges = pd.DataFrame([(ids(u), ids(v)) for u, v in oracle.wheel(12)], columns=["src", "dst"])
    names = sorted({*edges["src"], *edges["dst"]})
    vertices = pd.DataFrame({"vertex": names, "age": np.arange(len(names)) / 4, "group": ["ab"[len(names) % 2]] * 13})
    with tuned(least_shards=3):
        graph = prepared(edges, [], vertices=vertices.sample(frac=1, random_state=1), **plan)
    assert graph._context.plan.shards == 3
    rows = graph.survey(lambda b: Counter(map(tuple, pd.DataFrame(b).itertuples(index=False))), ["age", "group"])
    found = [tuple(sorted(names[int(end)] for end in row[:3])) for row in rows]
    assert sorted(found) == sorted(triangles_of(edges.itertuples(index=False)))
    for u, v, w, *values in rows:
        assert values == [u / 4, v / 4, w / 4, 0, 0, 0]


def test_columns_of_vertices():
    vertices = pd.DataFrame({"vertex": [3, 2, 1, 0, 9], "group": list("yxyxz"), "age": [1.5, 2, 3, 4, 5]})
    graph = prepared(FRAME, ["time"], vertices=vertices)
    assert graph.columns == {"group": ("x", "y", "z"), "age": "float64", "time": "int64"}
    rows = graph.survey(lambda b: Counter(map(tuple, pd.DataFrame(b).itertuples(index=False))), ["age", "group"])
    age, group = vertices.set_index("vertex")["age"], vertices.set_index("vertex")["group"]
    for u, v, w, *values in rows:
        assert values[:3] == [age[end] for end in (u, v, w)]
        assert ["xyz"[int(code)] for code in values[3:]] == [group[end] for end in (u, v, w)]
    assert graph.survey(len, (name for name in ["age"])) == graph.survey(len, ["age"]) > graph.survey(len)
    indexed = prepared(FRAME, [], vertices=pl.from_pandas(vertices))
    assert indexed.triangle_types("group").equals(graph.triangle_types(group))
    named = vertices.assign(id=1).drop(index=4).drop(columns="vertex").iloc[::-1].reset_index(drop=True)
    assert prepared(FRAME, [], vertices=named.rename_axis("vertex")).columns["id"] == "int64"
    within = prepared(FRAME, [], vertices=vertices.set_index("vertex"), memory="20MB")
    assert within.triangle_types("group").equals(graph.triangle_types(group))
    with pytest.raises(InputError, match="columns of vertices or edges, which an update lacks"):
        graph.update(add=([0], [3]))
    with pytest.raises(InputError, match="column 'group' is of vertices"):
        graph.signed_triangles("group")


def without(**changes):
    return FRAME.assign(**changes)


REFUSED = {
    "all": (FRAME, {"time": "all"}, {}, "is none of first, min, max, sum: an edge keeps one value"),
    "no list": (FRAME, "time", {}, "edge_columns='time' is no list of names"),
    "no text": (FRAME, [3], {}, "edge_columns has 3 for a name"),
    "unknown": (FRAME, ["x"], {}, "the pandas DataFrame has no column 'x'"),
    "an id": (FRAME, ["src"], {}, "is named for ids and for values"),
    "sum of text": (FRAME, {"kind": "sum"}, {}, "is given for text: take"),
    "absent": (
        without(time=[1, 2, None, 4, 5, 6]),
        ["time"],
        {},
        "row 2 of column 'time' .* has no value, as 1 row has",
    ),
    "absent text": (without(kind=["a", None, "b", "c", "d", "e"]), ["kind"], {}, "row 1 of column 'kind'"),
    "absent category": (
        without(kind=pd.Categorical([1, None, 2, 1, 1, 2])),
        ["kind"],
        {},
        "row 1 of column 'kind' .* has no value, as 1 row has",
    ),
    "no UTF-8": (
        without(kind=pd.Series(["a", "\ud800", *"bcde"], dtype=object)),
        ["kind"],
        {},
        "row 1 of column 'kind' .* where a value is",
    ),
    "times": (without(time=pd.Timestamp("2026-01-01")), ["time"], {}, "type datetime64.*astype"),
    "dates": (without(time=datetime.date(2026, 1, 1)), ["time"], {}, "has type date: .*to_datetime and astype"),
    "decimals": (without(share=decimal.Decimal("1.5")), ["share"], {}, "has type Decimal: .*astype..float64"),
    "two types": (without(kind=[1, "a", "b", 2, "d", "e"]), ["kind"], {}, "of the types int and str"),
    "infinite": (without(share=np.inf), ["share"], {}, "row 0 of column 'share' .* inf where a number is expected"),
    "repeats": (
        pd.concat([FRAME, without(time=4)]),
        ["time"],
        {},
        "the edge between [0-3] and [0-3] different values of time",
    ),
    "sum": (pd.concat([FRAME, FRAME]), {"time": "sum"}, {}, "may reach 9.22e[+]18, more than int64"),
    "pairs": (([0, 1, 2], [1, 2, 0]), ["time"], {}, "edge_columns is given for builtins.tuple"),
    "generated": (dasktc.generate.kronecker(4), ["time"], {}, "which has no columns by name"),
    "no frame": (FRAME, [], dict(vertices=[1, 2]), r"vertices=\[1, 2\] is no DataFrame"),
    "missing": (
        FRAME,
        [],
        dict(vertices=pd.DataFrame({"g": [1, 2]})),
        "vertex 2 has no row in vertices, as 2 vertices",
    ),
    "lazy": (FRAME, [], dict(vertices=pl.LazyFrame({"vertex": range(4)})), "LazyFrame at .* is no DataFrame"),
    "no index": (FRAME, [], dict(vertices=pl.DataFrame({"id": range(4)})), r"the columns \['id'\], and no index of"),
    "ids beside an index": (FRAME, [], dict(vertices=pd.DataFrame({"Node_ID": range(4)})), "and no index of ids"),
    "two levels": (
        FRAME,
        [],
        dict(vertices=pd.DataFrame({"g": range(4)}, index=pd.MultiIndex.from_product([[0, 1], [0, 1]]))),
        r"row 0 of `vertices` holds \(0, 0\) where an id is expected",
    ),
    "two columns of ids": (
        FRAME,
        [],
        dict(vertices=pd.DataFrame([[0, 1]], columns=["vertex", "vertex"])),
        "named by different texts",
    ),
    "list for a name": (FRAME, [["time"]], {}, r"edge_columns has \['time'\] for a name"),
    "no name": (FRAME, [], dict(vertices=pd.DataFrame({"": range(4)})), "named by different texts, none of them empty"),
    "one name": (FRAME, ["time"], dict(vertices=pd.DataFrame({"time": range(4)})), "one of edges and one of vertices"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    source, columns, options, reason = REFUSED[case]
    with pytest.raises(InputError, match=reason):
        prepared(source, columns, **dict(threads=1) | options)


def test_refused_files(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("src,dst,n\n0,1,1\n1,2,\n")
    with pytest.raises(InputError, match=r"line 3 .*has no value in column 3"):
        prepared(tmp_path / "a.csv", ["n"])
    with pytest.raises(InputError, match="no column 'm'"):
        prepared(tmp_path / "a.csv", ["m"])
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1.5\n")
    with pytest.raises(InputError, match="whose entries have no columns by name"):
        prepared(tmp_path / "a.mtx", ["n"])
    with caplog.at_level("WARNING", "dasktc"):
        prepared(FRAME, ["time"]).save(tmp_path / "saved")
    assert "columns are not saved" in caplog.text
    with pytest.raises(InputError, match="saved, a saved graph, which has no columns by name"):
        prepared(tmp_path / "saved", ["time"])


def test_refused_questions():
    graph = prepared(FRAME, ["time", "share", "kind"])
    with pytest.raises(InputError, match="column 'time' has the value"):
        graph.signed_triangles("time")
    with pytest.raises(InputError, match="column 'kind' is text: signs"):
        graph.signed_triangles("kind")
    with pytest.raises(InputError, match="column 'share' has type float64: times are integers"):
        graph.temporal_triangles("share")
    with pytest.raises(InputError, match="column 'kind' has type text: times are integers"):
        graph.temporal_triangles("kind")
    for window in (-1, 1 << 64, 1.5, True, np.array([1])):
        with pytest.raises(InputError, match=r"^window=.*give 0 to 18,446,744,073,709,551,615$"):
            graph.temporal_triangles("time", window=window)
    for names in (None, 5, [["time"]]):
        with pytest.raises(InputError, match="is no list of names"):
            graph.survey(len, names)
    with pytest.raises(InputError, match="prepared with the columns time, share, kind: 'sign' is none"):
        graph.signed_triangles("sign")
    assert graph.temporal_triangles("time").within is None
