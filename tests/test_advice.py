"""Messages of the readers: what they advise gives the right count at the first try, and they are short."""

from __future__ import annotations

import gzip
import logging
import re
import subprocess

import pytest

import dasktc
from dasktc.errors import LONGEST, InputError
from dasktc.io.formats import streams

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
    "gSpan": ("g.txt", b"t # 0\nv 0 2\nv 1 2\nv 2 2\ne 0 1 2\ne 0 2 2\ne 1 2 2\n", 1),
    "DIMACS": ("g.txt", b"c x\np edge 3 3\ne 1 2\ne 2 3\ne 3 1\n", 1),
}


def options_of(message):
    """The first options that a message advises."""
    found = re.search(r"(?:--(?:skip|columns|ids|format) [\w,]+ ?)+", message)
    pairs = re.findall(r"--(\w+) ([\w,]+)", found[0]) if found else []
    values = {"skip": int, "columns": lambda text: tuple(text.split(","))}
    return {name: values.get(name, str)(value.rstrip(",")) for name, value in pairs}


@pytest.mark.parametrize(("name", "data", "triangles"), ADVISED.values(), ids=ADVISED)
def test_advice_gives_the_right_count_at_the_first_try(tmp_path, name, data, triangles):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(str(path))
    message = str(caught.value)
    assert len(message) <= LONGEST
    assert str(path) in message
    command = re.search(r"((?:grep|sed|tr) .*?'(?: and cut -d ' ' -f 2,3)?)(?=[ ;,]|$)", message)
    if command is None:
        options = options_of(message)
        assert options
        assert dasktc.triangle_count(str(path), **options).triangles == triangles
    else:
        shell = command[1].replace(" and ", " | ")
        other = tmp_path / "other.txt"
        other.write_bytes(subprocess.run(["bash", "-c", shell], input=data, capture_output=True, check=True).stdout)
        assert dasktc.triangle_count(str(other)).triangles == triangles


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
