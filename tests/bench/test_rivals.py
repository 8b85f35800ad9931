"""Other programs beside dasktc in `dasktc bench gpu --rival`: their files, what they print, and what is refused.

A Python script stands for each program: it reads the files that the adapter wrote, counts with sets, and prints the
program's lines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.api.count import build
from dasktc.api.opener import as_source
from dasktc.bench import gpu
from dasktc.bench.rivals import ADAPTERS, Answer, Rows, generic, read_rivals, rivals
from dasktc.cli.main import main
from dasktc.errors import InputError
from dasktc.executors.local import LocalExecutor
from dasktc.options import Options
from tests.support.oracle import multigraphs, triangles

SCRIPT = """
import os
import sys
from array import array
from configparser import ConfigParser
from pathlib import Path

kind, *arguments = sys.argv[1:]
assert os.environ["CUDA_MODULE_LOADING"] == "EAGER", "its first launch would load the kernels"

def numbers(path, code):
    found = array(code)
    found.frombytes(Path(path).read_bytes())
    return found.tolist()

if kind == "text":
    pairs = [tuple(map(int, line.split())) for line in open(arguments[0])]
elif kind == "LSTC":
    words = list(map(int, Path(arguments[0]).read_text().split()))
    (rows, edges, offsets, columns), rest = words[:4], words[4:]
    assert (offsets, columns, len(rest)) == (rows + 1, edges, rows + 1 + edges)
    begin, adjacent = rest[:offsets], rest[offsets:]
    pairs = [(u, v) for u in range(rows) for v in adjacent[begin[u]:begin[u + 1]]]
else:
    folder = arguments[0]
    if kind.startswith("GroupTC"):
        config = ConfigParser()
        config.read(arguments[0].removeprefix("-config="))
        assert [name for name, on in config["comm"].items() if on == "true"] == [kind.lower()]
        assert config[kind]["iteration_count"] == "10"
        folder = config["comm"]["dataset_file_path"] + config["comm"]["datasets_1"]
    begin, adjacent = numbers(f"{folder}/begin.bin", "q"), numbers(f"{folder}/adjacent.bin", "i")
    pairs = [(u, v) for u in range(len(begin) - 1) for v in adjacent[begin[u]:begin[u + 1]]]
    ends = [end for pair in pairs for end in pair]
    if kind == "TRUST":
        degrees = [b - a for a, b in zip(begin, begin[1:])]
        bands = [(degree <= 100) + (degree < 2) for degree in degrees]
        assert bands == sorted(bands), "it bisects for the first row of a warp, and ends at the first row below 2"
        assert arguments[1:] == ["1", "1024", "1024", "1"]
    if kind == "H-INDEX":
        assert numbers(f"{folder}/edge", "i") == ends and len(arguments) == 7
    if kind == "TriCore":
        assert numbers(f"{folder}/head.bin", "i") == ends[::2]
        assert {(v, u) for u, v in pairs} == set(pairs), "it orients by itself"
    if kind.startswith("GroupTC"):
        assert numbers(f"{folder}/source.bin", "i") == ends[::2]
        assert all(u < v for u, v in pairs)
assert len(set(pairs)) == len(pairs)
sides = {}
for u, v in pairs:
    sides.setdefault(u, set()).add(v)
    sides.setdefault(v, set()).add(u)
count = sum(len(sides[u] & sides[v]) for u, v in {(min(pair), max(pair)) for pair in pairs}) // 3
print({
    "TRUST": f"{arguments[0]},9,8,{count},0.002,0.5 ",
    "H-INDEX": f"{arguments[0]},9,8,{count},0.002,0.001,0.5,1 ",
    "TriCore": f"vert:9  edge: 8\\ntotal count {count}\\ntotal time  0.004 seconds\\ntotal count {count}\\n"
               "total time  0.002 seconds\\nmerge average time of 5 round = 7",
    "LSTC": 3 * f"\\nSearch : 0.001 sec Vertex : 9 Edge : 8 Triangle : {count}  Sum_result : 0.001 Sec, "
            "total_time : 0.002 Sec\\n" + "\\nTotal avg of 3 RUNS : 0.002 Sec",
    "text": f"9 vertices\\n{count:,}",
}.get(kind, f"[info] Run algorithm {kind}\\n[info] Iter 0, kernel use 0.009 s\\n[info] Iter 10, avg kernel use 0.002 s"
            f"\\n[info] Triangle count {count}"))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rivals") / "program.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def program(script: Path, name: str, kind: str) -> tuple[str, ...]:
    return (f"{name}={sys.executable} {script} {kind}",)


CASE = gpu.QUICK[-1]


@pytest.mark.parametrize("name", [*ADAPTERS, "mine"])
def test_a_program_reads_its_files_and_its_count_is_checked(name: str, script: Path, emulated: Any):
    kind = {"GroupTC": "GroupTC-BS", "mine": "text"}.get(name, name)
    section = rivals([CASE], read_rivals(program(script, name.lower(), kind)), "auto", 2, lambda text: None)
    ((graph, edges, count, rival, theirs, ours, ratio),) = section.rows
    assert (graph, edges, count, rival) == ("3D torus 3^3", 81, 27, name)
    if name == "mine":
        assert theirs > 0
        assert "wall time" in section.notes[-1]
    else:
        assert theirs == pytest.approx(2.0)
        assert "https://github.com/" in section.notes[-1]
    assert ratio == pytest.approx(theirs / ours)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('a,1,2,28,0.1,0.2,0.3,1')", "counts 28 triangles, dasktc 27: one of them is wrong"),
        ("print('a,1,2,-2147483648,0.1,0.2,0.3,1')", "counts -2,147,483,648 triangles"),
        ("print('a,1,2,27,0.1,0.2,0.3,1'); raise SystemExit(3)", "it ended with 3 and printed 'a,1,2,27"),
        ("print('no device')", "it ended with 0 and printed 'no device' last"),
        ("", "printed 'nothing' last"),
    ],
)
def test_a_wrong_count_and_a_failure_leave_no_time_and_one_line(text: str, said: str, tmp_path: Path, emulated: Any):
    path = tmp_path / "p.py"
    path.write_text(text)
    section = rivals([CASE], read_rivals((f"H-INDEX={sys.executable} {path}",)), "auto", 3, lambda text: None)
    assert section.rows[0][4] is None
    assert section.rows[0][6] is None
    (line,) = [note for note in section.notes if note.startswith("3D torus 3^3, H-INDEX ")]
    assert said in line
    assert "\n" not in line
    assert len(line) < 500


def test_the_command_shows_it_beside_the_fixed_figures(script: Path, emulated: Any, capsys: Any):
    (text,) = program(script, "TRUST", "TRUST")
    assert main(["bench", "gpu", "--quick", "--only", "3d torus 3^3", "--rival", text, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert f"--rival '{text}'" in found["command"]
    (row,) = found["sections"][-1]["rows"]
    assert (row["rival"], row["triangles"], row["rival, ms"]) == ("TRUST", 27, pytest.approx(2))
    (first,) = found["sections"][0]["rows"]
    assert first["TRUST, ms"] == row["rival, ms"], "it stands beside the fixed figure"
    published = next(note for note in found["sections"][0]["notes"] if note.startswith("published: "))
    for part in (
        "measured once, on one H200, with GroupTC-BS",
        "IPDPS 2024",
        "https://github.com/Jangbao/TC-Compare-V2",
    ):
        assert part in published


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("TRUST",), "is no NAME=PROGRAM"),
        (("=a",), "is no NAME=PROGRAM"),
        (("TRUST=/nowhere/tc",), "/nowhere/tc' cannot be run"),
        ((f"a={sys.executable}", f"a={sys.executable}"), "stands twice"),
        ((f"trust={sys.executable}", f"TRUST={sys.executable}"), "stands twice"),
    ],
)
def test_what_is_no_program_is_refused_before_anything_is_measured(texts: tuple[str, ...], said: str):
    with pytest.raises(InputError, match=said):
        gpu.run(quick=True, rival=texts, say=lambda text: pytest.fail("measures"))


# files and lines, without a GPU


@given(multigraphs(), st.booleans())
def test_regrouped_edges_are_the_same(edges: list[tuple[int, int]], both: bool):
    source = as_source(np.array(edges, "int64").reshape(-1, 2))
    graph = build(LocalExecutor(), source, Options(backend="cpu", partition="whole", reorder="degree"))
    block = graph._context.blocks[0, 0]
    rows = Rows(block.offsets, block.columns)
    of = rows.regrouped(both)
    pairs = list(zip(of.sources.tolist(), of.columns.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert len(of.offsets) == len(rows.offsets)
    assert len(pairs) == (1 + both) * block.edges
    once = {(min(pair), max(pair)) for pair in pairs}
    assert once == {(min(pair), max(pair)) for pair in zip(rows.sources.tolist(), rows.columns.tolist(), strict=True)}
    assert triangles(sorted(once)) == triangles(edges)


def test_lines_of_other_programs_are_no_answer():
    for adapter in ADAPTERS.values():
        assert adapter.parse("CUDA error: no kernel image is available\n") is None
        assert adapter.parse("") is None
    assert generic.parse("3 runs, v1.2\n1,234 triangles in 0.5 s") == Answer(1234)
    assert generic.parse("none") is None
