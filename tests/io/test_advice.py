"""Messages of the readers: what they advise gives the right count at the first try, and they are short."""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import logging
import re
import shlex
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

import dasktc
from dasktc.cli.main import main
from dasktc.errors import LONGEST, InputError
from dasktc.io.formats import streams
from dasktc.wording import command_line
from tests.support.formats import parquet
from tests.support.keywords import keywords

TRIANGLE = b"1 2\n2 3\n3 1\n"
BANNER = b"%%MatrixMarket matrix coordinate pattern general\n"
ADVISED = {
    "arrows": ("g.txt", b"1 -> 2\n2 -> 3\n3 -> 1\n", 1),
    "arrows between names": ("g.txt", b"a -> b\nb -> c\nc -> a\n", 1),
    "a sign first": ("g.txt", b"- 1 2\n- 2 3\n- 3 1\n", 1),
    "a comment of C": ("g.txt", b"// my graph\n// of three\n" + TRIANGLE, 1),
    "a comment of SQL": ("g.txt", b"# a\n-- my graph\n" + TRIANGLE, 1),
    "text above": ("g.txt", b"A graph\nof two lines\n" + TRIANGLE, 1),
    "a row of one integer above": ("g.txt", b"of 3\n" + TRIANGLE, 1),
    "numbers of rows": ("g.csv", b"id,a,b\n0,5,6\n1,6,7\n2,7,5\n", 1),
    "names of rows": ("g.txt", b"from to\n1 5 6\n2 6 7\n3 7 5\n", 1),
    "a header of counts": ("g.txt", b"3 3\n" + TRIANGLE, 1),
    "adjacency": ("g.txt", b"1 2 9\n2 3\n3 1 7 8\n", 1),
    "adjacency matrix": ("g.txt", b"0 1 1\n1 0 1\n", 0),
    "relations": ("g.txt", b"a\tl\tb\nb\tl\tc\nc\tk\ta\nc\tl\tb\n", 1),
    "nodes in brackets": ("g.txt", b"(0, 0) (1, 0) {}\n(1, 0) (1, 1) {}\n(0, 0) (1, 1) {}\n", 1),
    "edges in brackets": ("g.txt", b"(1,2)\n(2,3)\n(3,1)\n", 1),
    "beyond 64 bits": ("g.txt", b"1 2\n2 9223372036854775808\n9223372036854775808 1\n", 1),
    "rows wider than the header": ("g.csv", b"src,dst\n1,2,5,6\n2,3,5,6\n3,1,5,6\n", 1),
    "Matrix Market from 0 on": ("g.mtx", BANNER + b"3 3 3\n0 1\n0 2\n1 2\n", 1),
    "Matrix Market without sizes": ("g.mtx", BANNER + TRIANGLE, 1),
    "a SIF network": ("g.sif", b"a x b\nb x c\nc x a\n", 1),
    "N-Triples": ("g.nt", b"<a> <k> <b> .\n<b> <k> <c> .\n<c> <k> <a> .\n", 1),
    "PACE": ("g.gr", b"c x\np tw 3 3\n1 2\n2 3\n3 1\n", 1),
    "records of types": ("g.txt", b"T\t7\t8\t9\nM\t1\nD\t1\t2\t1\nD\t2\t3\t1\nD\t3\t1\t1\n", 1),
    "TGF": ("g.tgf", b"1 a\n2 b\n3 c\n#\n1 2 x\n2 3 y\n3 1 z\n", 1),
    "Hive": ("g.txt", b"1\x012\n2\x013\n3\x011\n", 1),
    "edges as calls": ("g.txt", b"Edge(1,2,9)\nEdge(2,3,9)\nEdge(3,1,9)\n", 1),
    "weights first": ("g.csv", b"w,a,b\n0.5,1,2\n0.25,2,3\n1.5,3,1\n", 1),
    "METIS as text": ("g.txt", b"5 5\n2 3\n1 3\n1 2 4 5\n3\n3\n", 1),
    "gSpan": ("g.txt", b"t # 0\nv 0 2\nv 1 2\nv 2 2\ne 0 1 2\ne 0 2 2\ne 1 2 2\n", 1),
    "DIMACS": ("g.txt", b"c x\np edge 3 3\ne 1 2\ne 2 3\ne 3 1\n", 1),
    "numbers of rows alone": ("g.txt", b"0 5 6\n1 6 7\n2 7 5\n", 1),
    "two pairs of names": ("g.csv", b"src,dst,source,target\n1,2,7,8\n2,3,7,9\n3,1,7,6\n", 1),
    "one letter before ids": ("g.txt", b"e 1 2\ne 2 3\ne 3 1\n", 1),
    "a number between names": ("g.txt", b"a 1 b\nb 2 c\nc 3 a\n", 1),
    "weights without a header": ("g.csv", b"0.5,1,2\n0.25,2,3\n1.5,3,1\n", 1),
    "a name below integers": ("g.txt", TRIANGLE + b"a b\nb c\nc a\n", 2),
    "a name far below integers": ("g.txt", TRIANGLE + b"4 5\n" * 300 + b"a b\nb c\nc a\n", 2),
    "decimal points": ("g.txt", b"1.0 2.0\n2.0 3.0\n3.0 1.0\n", 1),
    "quotes between blanks": ("g.txt", b'"a" "b"\n"b" "c"\n"c" "a"\n', 1),
    "words": ("g.txt", b"a b x y z w\nb c x y z w v u\nc a k l m n o\n", 1),
    "an integer beside names": ("g.csv", b"src,dst\n1,a\na,b2\nb2,1\n", 1),
}


VALUE = r"(?:\([^)]*\)|\[[^]]*\]|'[^']*'|\d+)"
PYTHON = re.compile(rf"(?:(?:skip|columns|ids|format)={VALUE}(?:, )?)+")
COMMAND = re.compile(r"(?:--(?:skip|columns|ids|format) (?:'[^']*'|[\w,]+) ?)+")


def options_of(message):
    """The first options that a message of Python advises."""
    found = PYTHON.search(message)
    arguments = ast.parse(f"f({found[0]})", mode="eval").body.keywords if found else ()
    return {argument.arg: ast.literal_eval(argument.value) for argument in arguments}


def triangles_as_advised(path, message):
    """The number that a count gives with the first options that a message of the command line advises."""
    options = COMMAND.search(message)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["count", str(path), *shlex.split(options[0].rstrip(" ,")), "--quiet"]) == 0
    return int(printed.getvalue())


def refusal(source, language):
    """The message that a reader of a language gets."""
    with pytest.raises(InputError) as caught, language():
        dasktc.triangle_count(source)
    return str(caught.value)


@pytest.mark.parametrize("language", [contextlib.nullcontext, command_line], ids=["Python", "command line"])
@pytest.mark.parametrize(("name", "data", "triangles"), ADVISED.values(), ids=ADVISED)
def test_advice_gives_the_right_count_at_the_first_try(tmp_path, name, data, triangles, language):
    path = tmp_path / name
    path.write_bytes(data)
    message = refusal(str(path), language)
    assert len(message) <= LONGEST
    assert str(path) in message
    command = re.search(
        r"((?:grep|sed|tr|awk) .*?'(?: \S+' '\S+'| '[^']*')?(?: and cut -d ' ' -f 2,3)?)(?=[ ;,]|$)", message
    )
    if command is None and language is command_line:
        assert triangles_as_advised(path, message) == triangles
    elif command is None:
        options = options_of(message)
        assert options
        assert dasktc.triangle_count(str(path), **keywords(**options)).triangles == triangles
    else:
        shell = command[1].replace(" and ", " | ")
        other = tmp_path / "other.txt"
        other.write_bytes(subprocess.run(["bash", "-c", shell], input=data, capture_output=True, check=True).stdout)
        assert dasktc.triangle_count(str(other)).triangles == triangles


OTHER_FORMATS = {
    "parquet": TRIANGLE,
    "npy": TRIANGLE,
    "mtx": TRIANGLE,
    "metis": b"10 20\n20 30\n30 10\n",
    "smat": TRIANGLE,
    "ligra": TRIANGLE,
    "lg": TRIANGLE,
}


@pytest.mark.parametrize("format", OTHER_FORMATS)
def test_a_wrong_format_is_found_where_it_is_advised_to_look(tmp_path, format):
    path = tmp_path / "g.txt"
    path.write_bytes(OTHER_FORMATS[format])
    for language, says in ((contextlib.nullcontext, "format=..."), (command_line, "--format")):
        with pytest.raises(InputError) as caught, language():
            dasktc.triangle_count(str(path), format=format)
        assert re.search(f"(check|or) (the line, or )?{re.escape(says)}", str(caught.value))
        assert len(str(caught.value)) <= LONGEST
    for options in ({}, {"format": "text"}):
        assert dasktc.triangle_count(str(path), **options).triangles == 1


LEFT_OUT = {
    "columns of Matrix Market": ("g.mtx", BANNER + b"3 3 3\n1 2\n2 3\n3 1\n", {"columns": ("0", "1")}),
    "names of LightGraphs": ("g.lg", b"3,3,u,g\n1,2\n2,3\n1,3\n", {"ids": "text"}),
    "lines of METIS": ("g.graph", b"3 3\n2 3\n1 3\n1 2\n", {"skip": 1}),
    "weights of METIS": ("g.graph", b"3 3\n2 3\n1 3\n1 2\n", {"weight": "w"}),
}


@pytest.mark.parametrize(("name", "data", "given"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_an_option_that_a_format_lacks_is_left_out_as_advised(tmp_path, name, data, given):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match="leave it out") as caught:
        dasktc.prepare(str(path), **keywords(**given))
    assert len(str(caught.value)) <= LONGEST
    assert dasktc.triangle_count(str(path)).triangles == 1


MENDED = {
    "no id in a row": ("a,b,c\n1,2,x\n2,3,x\n3,,x\n3,1,x\n", r"holds no id in column 2.* drop the row", "3,,x\n"),
    "a comment below a header": (
        "src,dst\n1,2\n# x\n2,3\n3,1\n",
        "nothing is a comment; drop such lines",
        "# x\n",
    ),
    "a header again": (
        "src,dst\na1,b1\nb1,c1\nsrc,dst\nc1,a1\n",
        "holds the names .* again: .* drop it",
        "src,dst\n",
    ),
}


@pytest.mark.parametrize(("text", "says", "dropped"), MENDED.values(), ids=MENDED)
def test_lines_that_are_dropped_as_advised_leave_the_right_count(tmp_path, text, says, dropped):
    path = tmp_path / "g.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        dasktc.triangle_count(str(path))
    assert len(str(caught.value)) <= LONGEST
    first, last = text.rsplit(dropped, 1)
    path.write_text(first + last)
    assert dasktc.triangle_count(str(path)).triangles == 1


GIVEN = {
    "text above wider rows": ("g.csv", b"x,y\n5,1,2\n5,2,3\n5,3,1\n", {"columns": ("1", "2")}),
    "weights taken for ids": ("g.csv", b"0.5,1,2\n0.25,2,3\n1.5,3,1\n", {"columns": ("0", "1")}),
    "names taken for integers": ("g.csv", b"a,b\nb,c\nc,a\n", {"ids": "int"}),
}


@pytest.mark.parametrize(("name", "data", "given"), GIVEN.values(), ids=GIVEN)
def test_options_are_replaced_as_advised(tmp_path, name, data, given):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(str(path), **given)
    assert len(str(caught.value)) <= LONGEST
    options = options_of(str(caught.value))
    assert options
    assert dasktc.triangle_count(str(path), **{**given, **keywords(**options)}).triangles == 1


DAMAGED = {
    "Matrix Market": (
        "g.mtx",
        BANNER + b"3 3 3\n1 2\nx y\n3 1\n",
        {},
        "Invalid integer value.*export it again",
        (b"x y", b"2 3"),
    ),
    "Ligra": ("g.adj", b"AdjacencyGraph\n3\n3\n0\n1\n2\n1\n2\n7\n", {}, "export it again, or check", (b"7", b"0")),
    "a zero byte": ("g.txt", b"1 2\n2 3\n" * 20_000 + b"3\0 1\n", {"ids": "text"}, "a zero byte", (b"\0", b"")),
    "no line ends": ("g.txt", TRIANGLE + b"4" * (1 << 20) + b" 5\n", {}, "is longer than", (b"4" * (1 << 20), b"4")),
}


@pytest.mark.parametrize(("name", "data", "given", "says", "mend"), DAMAGED.values(), ids=DAMAGED)
def test_files_that_are_mended_as_advised_give_the_right_count(tmp_path, name, data, given, says, mend):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        dasktc.triangle_count(str(path), **given)
    assert len(str(caught.value)) <= LONGEST
    path.write_bytes(data.replace(*mend))
    assert dasktc.triangle_count(str(path), **given).triangles == 1


def test_the_line_of_a_header_is_skipped_as_advised_where_comments_follow(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("src,dst\n1,2\n# x\n2,3\n3,1\n")
    with pytest.raises(InputError, match=r"give skip=\.\.\. with the number of the header's line"):
        dasktc.triangle_count(str(path))
    assert dasktc.triangle_count(str(path), skip=1).triangles == 1


def test_names_that_do_not_exist_are_replaced_as_advised(tmp_path):
    (tmp_path / "g.csv").write_bytes(b"srcc,dstt,w\n1,2,5\n2,3,5\n3,1,5\n")
    (tmp_path / "g.parquet").write_bytes(parquet(srcc=ENDS[0], dstt=ENDS[1], w=[5, 5, 5]))
    for path in map(str, sorted(tmp_path.iterdir())):
        with pytest.raises(InputError, match="did you mean") as caught:
            dasktc.triangle_count(path, columns=("src", "dst"))
        assert options_of(str(caught.value).partition("did you mean")[2]) == {"columns": ("srcc", "dstt")}
        assert dasktc.triangle_count(path, columns=("srcc", "dstt")).triangles == 1
        with pytest.raises(InputError, match="is one column: an edge has two ends; give two"):
            dasktc.triangle_count(path, columns=("srcc", "srcc"))


def test_files_of_integers_and_of_names_are_read_as_text_as_advised(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"1,2\n2,3\n3,1\n")
    (tmp_path / "b.csv").write_bytes(b"a,b\nb,c\nc,a\n")
    message = refusal(str(tmp_path), contextlib.nullcontext)
    assert options_of(message) == {"ids": "text"}
    assert dasktc.triangle_count(str(tmp_path), ids="text").triangles == 2


def test_a_first_row_of_names_that_may_be_a_header_is_read_as_advised(tmp_path, caplog):
    path = tmp_path / "g.csv"
    path.write_bytes(b"who,whom\nann,bob\nbob,cy\ncy,ann\n")
    assert dasktc.triangle_count(str(path)).vertices == 5
    assert "use skip=1 if it is a header, skip=0 if it is an edge" in caplog.text
    caplog.clear()
    for skip, vertices in ((1, 3), (0, 5)):
        assert dasktc.triangle_count(str(path), skip=skip).vertices == vertices
    assert not caplog.text


def test_neighbours_between_commas_are_said(tmp_path):
    path = tmp_path / "g.txt"
    for text in ("1 2,3\n2 1,3\n3 1,2\n", "1:2,3\n2:1,3\n3:1,2\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="perhaps a vertex and all its neighbours a line; write one edge a line"):
            dasktc.triangle_count(str(path))
    path.write_bytes(TRIANGLE)
    assert dasktc.triangle_count(str(path)).triangles == 1


def test_arrays_of_other_shapes_are_named_as_advised(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, src=ENDS[0], dst=ENDS[1][:2], other=ENDS[1])
    with pytest.raises(InputError, match="name others with columns") as caught:
        dasktc.triangle_count(str(path))
    assert len(str(caught.value)) <= LONGEST
    assert dasktc.triangle_count(str(path), columns=("src", "other")).triangles == 1
    scipy.sparse.save_npz(path, scipy.sparse.coo_array(1 - np.eye(3, dtype=int)))
    with pytest.raises(InputError, match="it has no columns to choose from; leave it out"):
        dasktc.triangle_count(str(path), columns=("src", "other"))
    assert dasktc.triangle_count(str(path)).triangles == 1


def test_columns_of_two_types_are_replaced_as_advised(tmp_path):
    path = tmp_path / "g.parquet"
    path.write_bytes(parquet(src=ENDS[0], dst=["x", "y", "z"], b=ENDS[1], w=[0.5, 1.5, 2.5]))
    with pytest.raises(InputError, match=r"name other columns with columns=\.\.\., or write these as int64"):
        dasktc.triangle_count(str(path))
    assert dasktc.triangle_count(str(path), columns=("src", "b")).triangles == 1
    with pytest.raises(InputError, match=r"has no column 'v': its columns are "):
        dasktc.prepare(str(path), columns=("src", "b"), weight="v")
    with dasktc.prepare(str(path), columns=("src", "b"), weight="w") as graph:
        assert graph.triangle_count().triangles == 1


def numpy_of(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


ENDS = np.array([[1, 2, 3], [2, 3, 1]])
ADVISED_OF_COLUMNS = {
    "times first": ("g.parquet", parquet(t=[0.5, 1.5, 2.5], a=ENDS[0], b=ENDS[1])),
    "an id beyond 63 bits": (
        "g.parquet",
        parquet(u=pa.array([1, 2, 1 << 63], "uint64"), v=pa.array([2, 1 << 63, 1], "uint64")),
    ),
    "numbers of rows": ("g.parquet", parquet(idx=[0, 1, 2], a=ENDS[0] + 4, b=ENDS[1] + 4)),
}


@pytest.mark.parametrize(("name", "data"), ADVISED_OF_COLUMNS.values(), ids=ADVISED_OF_COLUMNS)
def test_columns_that_are_advised_for_tables_give_the_right_count(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    messages = [refusal(str(path), language) for language in (contextlib.nullcontext, command_line)]
    assert max(map(len, messages)) <= LONGEST
    assert dasktc.triangle_count(str(path), **keywords(**options_of(messages[0]))).triangles == 1
    assert triangles_as_advised(path, messages[1]) == 1


ARRAYS = {
    "its transpose": (ENDS, lambda array: array.T),
    "weights": (np.c_[ENDS.T, [0.5, 1.5, 2.5]], lambda array: array[:, :2].astype("int64")),
    "fractions": (ENDS.T.astype(float), lambda array: array[:, :2].astype("int64")),
    "an adjacency matrix": (1 - np.eye(3, dtype=int), scipy.sparse.coo_array),
}
SAVED = {
    "its transpose": "save its transpose",
    "weights": "array[:, :2].astype('int64')",
    "fractions": "array[:, :2].astype('int64')",
    "an adjacency matrix": "scipy.sparse.coo_array(array) with scipy.sparse.save_npz",
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_are_saved_as_advised_give_the_right_count(tmp_path, case):
    array, made = ARRAYS[case]
    np.save(tmp_path / "g.npy", array)
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(str(tmp_path / "g.npy"))
    assert SAVED[case] in str(caught.value)
    if scipy.sparse.issparse(made(array)):
        scipy.sparse.save_npz(tmp_path / "other.npz", made(array))
    else:
        np.save(tmp_path / "other.npy", made(array))
    (other,) = tmp_path.glob("other.*")
    assert dasktc.triangle_count(str(other)).triangles == 1


OBJECTS = {
    "weights first": (pd.DataFrame({"w": [0.5, 1.5, 2.5], "a": ENDS[0], "b": ENDS[1]}), "columns=('a', 'b')"),
    "names beside numbers": (pd.DataFrame({"a": [1, 2, 3], "b": ["2", "3", "1"]}), "ids='text'"),
    "columns of other types": ((ENDS[0], ["2", "3", "1"]), "ids='text'"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_what_is_advised_for_objects_gives_the_right_count(case):
    source, option = OBJECTS[case]
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(source)
    assert option in str(caught.value)
    assert len(str(caught.value)) <= LONGEST
    name, value = option.split("=")
    assert dasktc.triangle_count(source, **keywords(**{name: ast.literal_eval(value)})).triangles == 1


def test_an_index_of_ids_is_read_as_advised():
    frame = pd.DataFrame({"source": ENDS[0], "a": ENDS[1], "w": 1}).set_index("source")
    with pytest.raises(InputError, match=r"pass frame\.reset_index\(\)"):
        dasktc.triangle_count(frame)
    assert dasktc.triangle_count(frame.reset_index()).triangles == 1


def test_a_matrix_in_memory_is_read_as_advised():
    frame = pd.DataFrame(1 - np.eye(4, dtype=int), list("abcd"), list("abcd"))
    with pytest.raises(InputError, match=r"pass scipy\.sparse\.csr_array\(frame\)"):
        dasktc.triangle_count(frame)
    assert dasktc.triangle_count(scipy.sparse.csr_array(frame)).triangles == 4


WRITTEN = {
    "METIS of another count": (
        "g.graph",
        "3 2\n2 3\n1 3\n1 2\n",
        "its header is wrong; fetch or export it again",
        "3 3\n2 3\n1 3\n1 2\n",
    ),
    "METIS beyond its vertices": ("g.graph", "3 3\n2 3\n1 4\n1 2\n", "check the line", "3 3\n2 3\n1 3\n1 2\n"),
    "METIS without a blank line": (
        "g.graph",
        "4 3\n2 4\n1 4\n1 2\n",
        "lost its blank lines",
        "4 3\n2 4\n1 4\n\n1 2\n",
    ),
    "LightGraphs cut short": ("g.lg", "3,3,u,g\n1,2\n2,3\n", "cut short", "3,3,u,g\n1,2\n2,3\n1,3\n"),
    "LightGraphs beyond its vertices": ("g.lg", "3,3,u,g\n1,2\n2,4\n1,3\n", "line 3", "3,3,u,g\n1,2\n2,3\n1,3\n"),
}


@pytest.mark.parametrize(("name", "text", "says", "mended"), WRITTEN.values(), ids=WRITTEN)
def test_files_with_counts_that_are_mended_as_advised_give_the_right_count(tmp_path, name, text, says, mended):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(str(path))
    assert says in str(caught.value)
    assert len(str(caught.value)) <= LONGEST
    path.write_text(mended)
    assert dasktc.triangle_count(str(path)).triangles == 1


def test_commas_that_group_digits_are_refused(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("src,dst\n1,000,2\n2,3\n")
    with pytest.raises(InputError, match=r"line 2 .* holds 3 fields, '1,000,2', below a header of 2: .*groups digits"):
        dasktc.triangle_count(str(path))


def test_a_part_of_a_header_alone_has_no_rows(tmp_path):
    for name, text in (("0", "src,dst\n0,1\n1,2\n"), ("1", "src,dst\n2,0\n"), ("2", "src,dst\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    assert dasktc.triangle_count(str(tmp_path)).triangles == 1
    with pytest.raises(InputError, match="no data line below its header"):
        dasktc.triangle_count(str(tmp_path / "2.csv"))


def test_a_first_line_that_is_a_header_of_other_files_is_one_where_nothing_else_stands(tmp_path):
    for name, text in (("0", "a,b\n"), ("1", "a,b\n0,1\n1,2\n"), ("2", "a,b\n2,0\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    result = dasktc.triangle_count(str(tmp_path))
    assert (result.triangles, result.vertices, result.read.headers) == (1, 3, 2)
    assert result.read.ids == "columns 'a' and 'b', 1 and 2 of 2, by position"


def test_a_first_line_of_all_files_is_a_header_where_one_holds_nothing_else(tmp_path):
    names = ("0", "a,b\n"), ("1", "a,b\nann,bob\nbob,cy\n"), ("2", "a,b\ncy,ann\n")
    for name, text in names:
        (tmp_path / f"{name}.csv").write_text(text)
    result = dasktc.triangle_count(str(tmp_path))
    assert (result.triangles, result.vertices, result.read.headers) == (1, 3, 2)
    assert dasktc.triangle_count(str(tmp_path), skip=1).vertices == 3
    assert dasktc.triangle_count(str(tmp_path), skip=0).vertices == 5
    for name, text in names:
        (tmp_path / f"{name}.csv").write_text(text.replace("a,b", "7,8").replace("ann", "1").replace("bob", "2"))
    (tmp_path / "2.csv").unlink()
    assert dasktc.triangle_count(str(tmp_path), ids="text").vertices == 5


def test_a_first_line_of_names_that_two_files_share_is_refused_and_either_option_reads_them(tmp_path):
    for name in "ab":
        rows = "".join(f"{name}{chr(97 + k % 26)}{chr(97 + k // 26)},{name}{k}x\n" for k in range(300))
        (tmp_path / f"{name}.csv").write_text("who,whom\n" + rows)
    with pytest.raises(InputError, match="with which 2 files begin: a header, or one edge in all of them"):
        dasktc.triangle_count(str(tmp_path))
    assert dasktc.triangle_count(str(tmp_path), skip=1).vertices == 1200
    assert dasktc.triangle_count(str(tmp_path), skip=0).vertices == 1202


def test_a_first_edge_that_two_files_share_is_one_if_its_ids_are_like_others(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("p1,p2\np2,p3\n")
    assert dasktc.triangle_count(str(tmp_path)).vertices == 3
    (tmp_path / "a.csv").write_text("p1,p2\n")
    assert dasktc.triangle_count(str(tmp_path)).vertices == 3
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("1,2\n2,3\n")
    assert dasktc.triangle_count(str(tmp_path), ids="text").vertices == 3


def test_leading_zeros_that_are_lost_are_said_once(tmp_path, caplog):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("src,dst\n7,8\n007,7\n")
    with caplog.at_level(logging.WARNING, "dasktc"):
        dasktc.triangle_count(str(tmp_path))
    assert caplog.text.count("'007,7'") == 1
    caplog.clear()
    for ids, vertices in (("text", 3), ("int", 2)):
        assert dasktc.triangle_count(str(tmp_path), ids=ids).vertices == vertices
    assert "007" not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 2 | 3 |\n| 3 | 1 |\n",
        "  a  |  b  \n-----+-----\n   1 |   2\n   2 |   3\n   3 |   1\n(3 rows)\n\n",
        "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n| 2 | 3 |\n| 3 | 1 |\n+---+---+\n",
    ],
)
def test_a_drawn_table_is_read_once_it_is_written_as_csv(tmp_path, text):
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"a table drawn with lines around .* write it as CSV"):
        dasktc.triangle_count(str(path))
    rows = [line for line in text.splitlines() if set(line) & set("123") and "rows" not in line]
    path.write_text("a,b\n" + "".join(line.strip("| ").replace("|", ",") + "\n" for line in rows))
    assert dasktc.triangle_count(str(path)).triangles == 1


def test_a_hypergraph_is_named(tmp_path):
    path = tmp_path / "g.hgr"
    path.write_text("3 4 11\n1 2\n2 3\n1 2 3\n")
    with pytest.raises(InputError, match="hypergraph"):
        dasktc.triangle_count(str(path))


def test_zeros_after_a_member_of_gzip_are_passed_over_in_blocks(tmp_path):
    path = tmp_path / "g.gz"
    member = gzip.compress(TRIANGLE)
    path.write_bytes(member + bytes(1 << 23) + member)
    reads = []
    with open(path, "rb") as raw:

        class Counted:
            def read(self, nbytes):
                reads.append(nbytes)
                return raw.read(nbytes)

        assert streams._Gzip(Counted()).read(1 << 20) == 2 * TRIANGLE
    assert len(reads) < 1000
    assert dasktc.triangle_count(str(path)).triangles == 1
    with open(path, "ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match="bytes of zeros follow"):
        dasktc.triangle_count(str(path))


@pytest.mark.parametrize("advice", ["; install it", ""])
def test_a_message_is_a_line_of_a_terminal_whatever_a_library_said(advice):
    message = str(InputError("hdfs://x cannot be opened: " + "classpath " * 2000 + advice))
    assert len(message) <= LONGEST
    assert message.startswith("hdfs://x cannot be opened")
    assert message.endswith(advice or "...")


K4 = np.ones((4, 4), int) - np.eye(4, dtype=int)


@pytest.mark.parametrize("matrix", [K4, K4.astype(bool), K4.astype(float), 5 * K4], ids=["int", "bool", "float", "5"])
@pytest.mark.parametrize("make", [pd.DataFrame, np.asarray])
def test_an_adjacency_matrix_is_counted_as_advised(matrix, make):
    """A frame without names of its own, and an array that is no edge list."""
    with pytest.raises(InputError, match=r"adjacency matrix") as caught:
        dasktc.triangle_count(make(matrix))
    assert re.search(r"scipy\.sparse\.csr_array\((frame|array)\)", str(caught.value))
    assert int(dasktc.triangle_count(scipy.sparse.csr_array(make(matrix)))) == 4


def test_a_frame_with_as_many_rows_as_columns_may_be_edges():
    frame = pd.DataFrame([(1, 2, 5), (2, 3, 6), (3, 1, 7)])
    assert int(dasktc.triangle_count(frame)) == 1
    assert int(dasktc.triangle_count(frame.iloc[:2, :2])) == 0
    symmetric = pd.DataFrame([(1, 2, 3, 4), (2, 3, 1, 0), (3, 1, 1, 0), (4, 0, 0, 2)])
    assert int(dasktc.triangle_count(symmetric, columns=("0", "1"))) == 1
