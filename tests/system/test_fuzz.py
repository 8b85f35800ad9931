"""Fuzzing of files, damaged files, objects and options, with oracles: a case is counted exactly, or refused.

The other tiers draw a few examples of each target; `pytest -m fuzz --fuzz-seconds N` draws for N seconds in all, each
round with another seed, which a failure names.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import time
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import dasktc
from dasktc.errors import InputError
from dasktc.io.files import FORMATS
from dasktc.registry import KERNELS, ORDERS, SCHEMES
from tests.support import oracle
from tests.support.keywords import keywords

CPU = {"backend": "cpu", "threads": 1}
SMALL = oracle.multigraphs(max_vertices=10, max_edges=40)
PLAIN = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40)
"""Edges that every format can represent: few ids, from 0 on."""


def one_line(error: InputError) -> None:
    text = str(error)
    assert text.isprintable(), text
    assert len(text) < 1000, text


# Text in every style that is one: what was written is what is counted


@st.composite
def styles(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "separator": draw(st.sampled_from([" ", "\t", ",", "  ", " \t", ", "])),
        "end": draw(st.sampled_from(["\n", "\r\n"])),
        "comment": draw(st.sampled_from(["", "# a comment", "% 1 2 3", "#"])),
        "between": draw(st.booleans()),
        "blank": draw(st.booleans()),
        "weight": draw(st.sampled_from(["", "1.5", "-2e3"])),
        "last": draw(st.booleans()),
        "lead": draw(st.sampled_from(["", " "])),
        "pack": draw(st.sampled_from(["", ".gz", ".bz2", ".xz"])),
    }


def in_style(edges: list[tuple[int, int]], style: dict[str, Any]) -> bytes:
    separator, end = style["separator"], style["end"]
    lines = [
        style["lead"] + separator.join([str(u), str(v), *([style["weight"]] if style["weight"] else [])])
        for u, v in edges
    ]
    if style["comment"]:
        lines.insert(len(lines) // 2 if style["between"] else 0, style["comment"])
    if style["blank"]:
        lines.insert(len(lines) // 3, "")
    text = (end.join(lines) + (end if style["last"] else "")).encode()
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    return pack[style["pack"]](text)


def text(folder: Path, edges: list[tuple[int, int]], style: dict[str, Any]) -> None:
    path = folder / f"edges.txt{style['pack']}"
    path.write_bytes(in_style(edges, style))
    columns = (0, 1) if style["weight"] else None
    result = dasktc.triangle_count(path, columns=columns, skip=0, **keywords(**CPU))
    simple = oracle.clean(edges)
    found = (
        result.triangles,
        result.edges,
        result.loops_dropped,
        result.edges + result.duplicates_dropped + result.loops_dropped,
    )
    assert found == (oracle.triangles(edges), len(simple), sum(u == v for u, v in edges), len(edges)), in_style(
        edges, style
    )


# Files of every format, damaged: what is counted is what the reader read, and all else is refused in one line


def table(edges: list[tuple[int, int]]) -> pd.DataFrame:
    return pd.DataFrame(edges, columns=["src", "dst"], dtype="int64")


def matrix(edges: list[tuple[int, int]]) -> sp.csr_array:
    u, v = np.array(edges).T
    return sp.coo_array((np.ones(len(u)), (u, v)), shape=(21, 21)).tocsr()


def saved(save: Any, *given: Any) -> bytes:
    file = io.BytesIO()
    save(file, *given)
    return file.getvalue()


def adjacency(edges: list[tuple[int, int]]) -> str:
    near = [sorted({v for e in edges for v in e if u in e and e[0] != e[1]} - {u}) for u in range(21)]
    return f"21 {sum(map(len, near)) // 2}\n" + "".join(" ".join(str(v + 1) for v in row) + "\n" for row in near)


def ligra(edges: list[tuple[int, int]]) -> str:
    rows = [[v for u, v in edges if u == row] for row in range(21)]
    offsets = [sum(map(len, rows[:row])) for row in range(21)]
    return "AdjacencyGraph " + " ".join(map(str, [21, len(edges), *offsets, *(v for row in rows for v in row)]))


WRITERS = {
    "txt": lambda edges: "".join(f"{u}\t{v}\n" for u, v in edges).encode(),
    "csv": lambda edges: table(edges).to_csv(index=False).encode(),
    "txt.gz": lambda edges: gzip.compress("".join(f"{u} {v}\n" for u, v in edges).encode(), mtime=0),
    "mtx": lambda edges: (
        f"%%MatrixMarket matrix coordinate pattern general\n21 21 {len(edges)}\n"
        + "".join(f"{u + 1} {v + 1}\n" for u, v in edges)
    ).encode(),
    "graph": lambda edges: adjacency(edges).encode(),
    "smat": lambda edges: (f"21 21 {len(edges)}\n" + "".join(f"{u} {v} 1\n" for u, v in edges)).encode(),
    "ligra": lambda edges: ligra(edges).encode(),
    "lg": lambda edges: (
        f"21,{len(edges)},u,g,2,Int64,graph\n" + "".join(f"{u + 1},{v + 1}\n" for u, v in edges)
    ).encode(),
    "parquet": lambda edges: table(edges).to_parquet(),
    "npy": lambda edges: saved(np.save, np.array(edges)),
    "npz": lambda edges: saved(sp.save_npz, matrix(edges)),
}
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "repeat", "end", "digit"]), st.floats(0, 1), st.integers(1, 255)
    ),
    max_size=3,
)


def damaged(content: bytes, damage: list[tuple[str, float, int]]) -> bytes:
    held = bytearray(content)
    for how, where, value in damage:
        place = int(where * len(held))
        match how:
            case "flip" if place < len(held):
                held[place] ^= value
            case "cut":
                del held[place : place + value % 16]
            case "insert":
                held[place:place] = bytes([value])
            case "repeat":
                held[place:place] = held[place : place + value]
            case "end":
                del held[place:]
            case "digit":
                held[place:place] = str(value**9).encode()
    return bytes(held)


def files(folder: Path, kind: str, edges: list[tuple[int, int]], damage: list[tuple[str, float, int]]) -> None:
    for old in folder.iterdir():
        old.unlink()
    path = folder / f"edges.{kind}"
    path.write_bytes(damaged(WRITERS[kind](edges), damage))
    try:
        with dasktc.prepare(path, **keywords(**CPU)) as graph:
            read = graph.edge_support(frame="pandas")
            found = graph.triangle_count(verify=1)
    except InputError as error:
        if not damage and not (edges and edges[0][1] == len(edges) - 1 and "looks like a header" in str(error)):
            raise
        one_line(error)
        return
    again = list(read[["src", "dst"]].itertuples(index=False, name=None))
    assert found == oracle.triangles(again), path.read_bytes()
    if not damage:
        assert found == oracle.triangles(edges)


# Objects: ids of any type


IDS = st.one_of(
    st.integers(-(2**63), 2**64),
    st.integers(0, 5),
    st.floats(-3, 3) | st.sampled_from([float("nan"), 2.5, 2.0, float("inf")]),
    st.text(max_size=2),
    st.sampled_from([None, True, b"x", pd.NA, pd.NaT, np.int8(3), np.uint64(2**63)]),
)
KINDS = {
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "list": lambda rows: rows,
    "columns": lambda rows: ([u for u, _ in rows], [v for _, v in rows]),
    "objects": lambda rows: np.array([*rows, (None, None)], dtype=object)[:-1],
    "array": lambda rows: np.array(rows),
    "Arrow": lambda rows: pa.table({"a": [u for u, _ in rows], "b": [v for _, v in rows]}),
    "categories": lambda rows: pd.DataFrame(rows, columns=["a", "b"]).astype("category"),
}


def is_id(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def objects(folder: Path, kind: str, rows: list[tuple[Any, Any]]) -> None:
    try:
        source = KINDS[kind](rows)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return  # no such object
    try:
        result = dasktc.triangle_count(source, **keywords(**CPU))
    except InputError as error:
        one_line(error)
        if len(rows) > 2 and kind not in ("array", "categories") and all(map(is_id, chain(*rows))):
            raise
        return
    kinds = {str if isinstance(v, str) else float if isinstance(v, float) else int for row in rows for v in row}
    assert len(kinds) < 2 or kinds == {int, float} or kind in ("array", "categories"), (rows, "mixed ids were taken")
    taken = source.tolist() if kind == "array" else rows  # NumPy makes text of numbers beside text
    assert result == oracle.triangles([(u, v) for u, v in taken])


# Options: two kernels and two schemes on every graph, and the oracle


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    scheme = draw(st.sampled_from([*SCHEMES]))
    given: dict[str, Any] = {"partition": scheme, "reorder": draw(st.sampled_from([*ORDERS]))}
    if not SCHEMES[scheme].replicated and draw(st.booleans()):
        given["parts"] = draw(st.integers(1, 5))
    if draw(st.booleans()):
        given["splits"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        given["memory"] = draw(st.sampled_from(["64MB", "1GB"]))
    given["threads"] = draw(st.integers(1, 3))
    given["seed"] = draw(st.integers(0, 3))
    return given


def counts(folder: Path, edges: list[tuple[int, int]], ways: list[dict[str, Any]], kernels: list[str]) -> None:
    expected, supports = oracle.triangles(edges), oracle.support(edges)
    source = np.array(edges, dtype=np.int64).reshape(-1, 2) if edges else ([], [])
    for way in ways:
        try:
            with dasktc.prepare(source, backend="cpu", **keywords(**way)) as graph:
                for kernel in kernels:
                    result = graph.triangle_count(kernel=kernel, verify=1)
                    assert result == expected, (way, kernel)
                    assert result.edges == len(supports)
                found = graph.edge_support(frame="pandas")
                assert {frozenset((u, v)): n for u, v, n in found.itertuples(index=False)} == supports, way
                assert graph.triangles(frame="pandas").to_dict() == oracle.triangles_per_vertex(edges), way
        except InputError as error:
            one_line(error)
            if "memory" not in str(error) and "parts" not in str(error):
                raise


TARGETS: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": (text, {"edges": PLAIN, "style": styles()}),
    "files": (files, {"kind": st.sampled_from([*WRITERS]), "edges": PLAIN, "damage": DAMAGE}),
    "objects": (
        objects,
        {"kind": st.sampled_from([*KINDS]), "rows": st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6)
         | st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)},
    ),
    "options": (
        counts,
        {"edges": SMALL, "ways": st.lists(options(), min_size=2, max_size=2),
         "kernels": st.lists(st.sampled_from([*KERNELS["cpu"]]), min_size=2, max_size=2, unique=True)},
    ),
}  # fmt: skip


def draw(target: str, folder: Path, examples: int, number: int | None = None) -> None:
    body, strategies = TARGETS[target]
    quick = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)

    def once(**drawn: Any) -> None:
        body(folder, **drawn)

    run = quick(given(**strategies)(once))
    (run if number is None else seed(number)(run))()


def test_every_format_is_fuzzed() -> None:
    assert {*FORMATS} - {"bvgraph"} <= {"text", "metis", *WRITERS}


@pytest.mark.parametrize("target", TARGETS)
def test_a_few(target: str, tmp_path: Path) -> None:
    draw(target, tmp_path, 6 if target == "options" else 20)


@pytest.mark.fuzz
@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", TARGETS)
def test_for_some_time(target: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    ends = time.monotonic() + pytestconfig.getoption("--fuzz-seconds") / len(TARGETS)
    first = time.time_ns() % 2**32
    for number in count(first):
        print(f"{target}: seed {number}")
        draw(target, tmp_path, 200, number)
        if time.monotonic() > ends:
            print(f"{target}: {200 * (number - first + 1):,} examples")
            return
