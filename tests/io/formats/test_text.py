"""Text and CSV files: what a line is, what is refused and how, and that cutting into parts changes nothing."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
import re
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import dasktc
from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.formats import rows, sniff, streams, text
from dasktc.io.formats.rows import BadLine, Dialect, parse
from dasktc.io.source import ReadOptions
from tests.support.formats import BACKEND

BIG = 1 << 63


@pytest.fixture
def path(tmp_path):
    return tmp_path / "g.txt"


def frames(path, **options):
    """The source's ids and frames as workers read them: each part is pickled, and read separately."""
    source = open_source(str(path), ReadOptions(**options))
    found = [pickle.loads(pickle.dumps(part)).read(BACKEND) for part in source.parts]
    for frame in found:
        assert list(frame.columns) == ["src", "dst"]
        types = {str(kind) for kind in frame.dtypes}
        assert types == {"str"} if source.ids == "text" else types <= {"int32", "int64"} and len(types) == 1
    return source.ids, found


def read(path, data, **options):
    path.write_bytes(data)
    _, found = frames(path, **options)
    return [edge for frame in found for edge in frame.itertuples(index=False, name=None)]


def refused(path, data, *says, **options):
    with pytest.raises(InputError) as caught:
        read(path, data, **options)
    message = str(caught.value)
    assert "\n" not in message
    for words in (*says, str(path)):
        assert words in message
    return message


# Lines

EDGES = [(0, 1), (10, 2), (2, 0)]

SAME = {
    "space": b"0 1\n10 2\n2 0\n",
    "tab": b"0\t1\n10\t2\n2\t0\n",
    "comma": b"0,1\n10,2\n2,0\n",
    "bar": b"0|1\n10|2\n2|0\n",
    "semicolon": b"0;1\n10;2\n2;0\n",
    "blanks around a comma": b"0, 1\n10 ,2\n 2 , 0 \n",
    "blanks around a tab": b" 0\t 1\n10 \t2\n2\t0 \n",
    "runs of blanks": b"0  1\n10   2\n2 \t 0\n",
    "columns under one another": b"       0        1\n      10        2\n       2        0\n",
    "tabs and spaces": b"0\t1\n10 2\n2\t 0\n",
    "aligned with tabs": b"0\t\t1\n10\t2\n2\t\t0\n",
    "trailing blanks": b"0 1 \n10 2\t\n2 0  \n",
    "blank lines": b"\n0 1\n\n  \n10 2\n\t\n2 0\n\n",
    "blank lines in CSV": b"\n0,1\n\n  \n10,2\n\t\n2,0\n\n",
    "CRLF": b"0 1\r\n10 2\r\n2 0\r\n",
    "CRLF in CSV": b"0,1\r\n10,2\r\n2,0\r\n",
    "no final line end": b"0 1\n10 2\n2 0",
    "no final line end, CRLF": b"0 1\r\n10 2\r\n2 0",
    "UTF-8 BOM": b"\xef\xbb\xbf0 1\n10 2\n2 0\n",
    "BOM, then a comment": b"\xef\xbb\xbf# a b\n0 1\n10 2\n2 0\n",
    "BOM, then a header": b"\xef\xbb\xbfsrc,dst\n0,1\n10,2\n2,0\n",
    "comments above": b"# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n10\t2\n2\t0\n",
    "comments of KONECT": b"% sym unweighted\n% 3 3 3\n0 1\n10 2\n2 0\n",
    "comments between": b"0 1\n# 5 6\n10 2\n  % 7 8\n\t#9 9\n2 0\n#\n",
    "comments in CSV": b"0,1\n# 5,6\n10,2\n%7,8\n2,0\n",
    "comment after an edge": b"0 1 # 5 6\n10 2\n2 0 % x\n",
    "weights": b"0 1 0.5\n10 2 1e-3\n2 0 7\n",
    "timestamps": b"0\t1\t5\t1290000000\n10\t2\t5\t1290000001\n2\t0\t5\t1290000002\n",
    "empty attributes": b"0 1 {}\n10 2 {}\n2 0 {}\n",
    "attributes": b"0 1 {'w': 1, 'x': '2;3|4'}\n10 2 {}\n2 0 {'a': [1, 2]}\n",
    "ragged": b"0 1 5 6\n10 2\n2 0 0.1\n",
    "ragged CSV": b"0,1,5,6\n10,2\n2,0,,\n",
    "a separator at the end": b"0,1,\n10,2,\n2,0,\n",
    "quoted": b'"0","1"\n"10","2"\n"2","0"\n',
    "some quoted": b'0,"1"\n"10",2,"a,""b"\n2,0\n',
    "quoted text after the ids": b'0,1,"a, b"\n10,2,"c ""d"" e"\n2,0,f\n',
    "stray quotes after the ids": b'0 1 "a\n10 2 b"\n2 0 \'c\n',
    "inches after the ids": b'0,1,5" disk\n10,2,x\n2,0,"y"\n',
    "stray quotes after the ids, tab": b'0\t1\t"a\n10\t2\tb\n2\t0\tc"\n',
    "separator of Excel": b"sep=;\r\na;b\r\n0;1\r\n10;2\r\n2;0\r\n",
    "header": b"id_1,id_2\n0,1\n10,2\n2,0\n",
    "header of LDBC": b":START_ID(P)|:END_ID(P)|date:LONG\n0|1|5\n10|2|5\n2|0|5\n",
    "header below comments": b"# x\n\nuser\tfriend\n0\t1\n10\t2\n2\t0\n",
    "header with blanks in names": b"from node,to node\n0,1\n10,2\n2,0\n",
    "quoted header": b'"a","b, c"\n0,1\n10,2\n2,0\n',
    "title": b"MyGraph\n0 1\n10 2\n2 0\n",
    "known names beside numbers of rows": b"Unnamed: 0,from,to\n7,0,1\n8,10,2\n9,2,0\n",
    "missing values elsewhere": b"0,1,,7\n10,2,8,\n2,0,,\n",
    "known names elsewhere": b",Source,Weight,Target\n0,0,5,1\n1,10,5,2\n2,2,5,0\n",
    "single ids": b"7\n0 1\n8\n10 2\n2 0\n9\n",
    "single ids in CSV": b"0,1\n8\n10,2\n2,0\n9",
    "number of vertices above": b"3\n0 1\n10 2\n2 0\n",
    "leading zeros": b"00 1\n010 2\n2 -0\n",
    "names in other columns": b"0,1,x0x\n10,2,#1\n2,0,%y\n",
    "bytes in other columns": b"0 1 \xff\n10 2 \xe9\n2 0 \x80\n",
    "other white space": b"0\x0b1\n10\x0c2\n2 0\x0c\n",
}


@pytest.mark.parametrize("blocksize", [1 << 20, 5])
@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_the_same_edges_however_they_are_written(path, data, blocksize):
    assert read(path, data, blocksize=blocksize) == EDGES
    assert read(path, gzip.compress(data)) == EDGES


MARKED = {
    "hashtags below a header": (
        b"source,target\ncat,#dog\n#dog,#fish\n#fish,cat\ncat,owl\n",
        {},
        [("cat", "#dog"), ("#dog", "#fish"), ("#fish", "cat"), ("cat", "owl")],
        (0, 1, 0),
    ),
    "hashtags alone below a header": (
        b"# made by hand\nsource,target\n#a,#b\n#b,#c\n",
        {},
        [("#a", "#b"), ("#b", "#c")],
        (1, 1, 0),
    ),
    "hashtags between blanks": (
        b"# a b\ncat #dog\n#dog #fish\n%fish cat\n# a comment of words\n#\n",
        {},
        [("cat", "#dog"), ("#dog", "#fish"), ("%fish", "cat")],
        (1, 0, 2),
    ),
    "hashtags with attributes": (
        b"cat #dog {'w': 1}\n#dog #fish {'w': 2, 'x': 'a b'}\n",
        {},
        [("cat", "#dog"), ("#dog", "#fish")],
        (0, 0, 0),
    ),
    "hashtags without a header": (b"a,#b\n#b,#c\n#c\n#x,y,z\n", {}, [("a", "#b"), ("#b", "#c")], (0, 0, 2)),
    "comments between integers": (b"# x\n%\n1 2\n# 3 4\n#5 6\n2 3\n", {}, [(1, 2), (2, 3)], (2, 0, 2)),
    "a mark before two integers": (b"a 1 2\n# 2 3\n# 2 3 4\n", {"columns": ("1", "2")}, [(1, 2), (2, 3)], (0, 0, 1)),
    "below a header between blanks": (b"from to\n1 2\n# 3 4\n", {}, [(1, 2)], (0, 1, 1)),
    "below a separator of Excel": (b"sep=;\n# x\na;b\n1;2\n", {}, [(1, 2)], (1, 2, 0)),
    "a header passed over": (b"a,b\n1,2\n# 3,4\n", {"skip": 1}, [(1, 2)], (0, 0, 1)),
    "weights": (b"1 2 5\n# 2 3 4\n2 3 4\n", {"weight": "2"}, [(1, 2, 5), (2, 3, 4)], (0, 0, 1)),
    "weights in quotes": (b'1,2,"5"\n2,3,4\n', {"weight": "2"}, [(1, 2, 5), (2, 3, 4)], (0, 0, 0)),
}


@pytest.mark.parametrize(("data", "options", "edges", "skipped"), MARKED.values(), ids=MARKED)
def test_a_line_below_the_first_row_is_a_comment_only_without_the_fields_of_one(path, data, options, edges, skipped):
    path.write_bytes(data)
    layout = sniff.sniff(str(path), ReadOptions(**options))
    comments, headers, below = skipped
    assert (layout.reading.comments_above, layout.reading.headers) == (comments, headers)
    block, weights = data[layout.start :], []
    if "weight" in options:
        parsed, *weights = rows.parse_weighted(block, layout.dialect)
    else:
        parsed = rows.parse(block, layout.dialect)
    assert parsed.comments == below
    assert [*zip(*(column.tolist() for column in (*parsed[:2], *weights)), strict=True)] == edges
    if "weight" not in options:
        for blocksize in (1 << 20, 7):
            assert read(path, data, blocksize=blocksize, **options) == edges


def test_below_the_header_of_a_csv_file_nothing_is_a_comment(path):
    refused(path, b"a,b\n1,2\n# 3,4\n", "line 3", "'# 3'", "skip=...")
    refused(path, b"a,b\n# 3,4\n1,2\n", "line 2", "'# 3'", "skip=...")
    assert read(path, b"a,b\n1,2\n# 3,4\n2,3\n", skip=1) == [(1, 2), (2, 3)]


def test_a_file_of_comments_alone_says_how_they_become_rows(path):
    advised = refused(path, b"#a,#b\n#b,#c\n", "no data line").rsplit("as ", 1)[1]
    assert read(path, advised.encode() + b"\n#a,#b\n#b,#c\n") == [("#a", "#b"), ("#b", "#c")]


TEXT = {
    "space": (b"a b\nb c\n", [("a", "b"), ("b", "c")]),
    "tab": (b"New York\tRome\nRome\tLa Paz\n", [("New York", "Rome"), ("Rome", "La Paz")]),
    "tab between commas": (
        b"Smith, Ann\tDoe, Jim\nDoe, Jim\tLee, Kim\n",
        [("Smith, Ann", "Doe, Jim"), ("Doe, Jim", "Lee, Kim")],
    ),
    "bar between commas": (b"Doe, J|Roe, A\nRoe, A|Poe, E\n", [("Doe, J", "Roe, A"), ("Roe, A", "Poe, E")]),
    "comma": (b"Doe, Jane\nA B,C D E\n", [("Doe", "Jane"), ("A B", "C D E")]),
    "quotes": (b'"a, b",c\n "d ""e""" , f\n"", x,\n', None),
    "quoted": (b'"a, b",c\n "d ""e""" , f\n" g",h\n', [("a, b", "c"), ('d "e"', "f"), (" g", "h")]),
    "quotes inside": (b"5\" disk,it's\nx,y\n", [('5" disk', "it's"), ("x", "y")]),
    "not ASCII": ("é ü\nü 東京\n".encode(), [("é", "ü"), ("ü", "東京")]),
    "CRLF": (b"a,b\r\nb,c\r\n", [("a", "b"), ("b", "c")]),
    "isolated": (b"a b\nc\nb d\n", [("a", "b"), ("b", "d")]),
    "attributes": (b"a b {}\nb c {'w': 1, 'x': 2}\n", [("a", "b"), ("b", "c")]),
    "weights": (b"a b 0.5\nb c 1\n", [("a", "b"), ("b", "c")]),
    "ragged": (b"a b\nb c 1\nc d 1 2\n", [("a", "b"), ("b", "c"), ("c", "d")]),
    "ragged CSV": (b"a b,c\nc,d,1\n", [("a b", "c"), ("c", "d")]),
    "comments": (b"# x y\na b\n  % z z\nb #c\n", [("a", "b"), ("b", "#c")]),
    "known header": (b"source,target\na,b\nb,c\n", [("a", "b"), ("b", "c")]),
    "known names, but vertices": (b"source target\ntarget x\n", [("source", "target"), ("target", "x")]),
    "names like a header": (b"u v\nw u\n", [("u", "v"), ("w", "u")]),
    "numbers among names": (b"a b\nc 5\n", [("a", "b"), ("c", "5")]),
    "not missing": (b"NA nan\nnull None\n", [("NA", "nan"), ("null", "None")]),
    "hexadecimal": (b"0x1 0x2\n0x02 0x1\n", [("0x1", "0x2"), ("0x02", "0x1")]),
}


@pytest.mark.parametrize("blocksize", [1 << 20, 4])
@pytest.mark.parametrize(("data", "edges"), TEXT.values(), ids=TEXT)
def test_names(path, data, edges, blocksize):
    if edges is None:
        refused(path, data, "line 3", "no id in column 1")
    else:
        assert read(path, data, blocksize=blocksize) == edges
        assert open_source(str(path), ReadOptions()).ids == "text"


# A first row above ids of text: what it is taken for, and whether a warning says so. `=` is any separator.
FIRST_ROWS = {
    "letters": ("u=v", "a=b a=c b=c", "header", True),
    "letters that are ids": ("u=v", "a=b u=b b=c", "edge", True),
    "quoted": ('"From"="To"', "a=b b=c", "header", False),
    "numbered": ("node1=node2", "a=b b=c", "header", False),
    "numbered ids": ("node1=node2", "node3=node4", "edge", False),
    "Neo4j": (":START_ID(A)=:END_ID(A)=:TYPE", "a=b=K b=c=K", "header", False),
    "Gephi": ("Source=Target=Type=Weight", "a=b=x=1.0 b=c=x=1.0", "header", False),
    "unknown": ("person=friend", "ann=bob bob=carl", "edge", True),
    "unknown ids": ("ann=bob", "bob=carl ann=carl", "edge", False),
    "above numbers": ("person=friend=since", "ann=bob=1999 bob=carl=2000", "header", True),
    "beside missing numbers": ("ann=bob=NA", "carl=dan=1999 dan=eve=2000", "edge", True),
    "above ids of one shape": ("person=friend", "p1=p22 p22=p333", "header", True),
    "known names that are ids": ("from=to", "from=x x=y", "edge", True),
    "below a comment": ("u=v", "a=b b=c", "header", True),
    "alone": ("a=b", "", "edge", False),
    "alone, perhaps a header": ("u=v", "", "edge", True),
}


@pytest.mark.parametrize("separator", [",", ";", "|", "\t", " "])
@pytest.mark.parametrize("case", FIRST_ROWS)
def test_a_first_row_above_names_is_a_header_or_an_edge_and_doubts_are_said(path, caplog, case, separator):
    first, below, what, doubtful = FIRST_ROWS[case]
    if separator == " ":
        first = first.replace('"', "")
    comment = ["# a b"] * (case == "below a comment")
    edges = [tuple(row.split("=")[:2]) for row in ([first] if what == "edge" else []) + below.split()]
    data = "".join(f"{row}\n" for row in [*comment, *(row.replace("=", separator) for row in [first, *below.split()])])
    for written in (data.encode(), gzip.compress(data.encode())):
        caplog.clear()
        assert read(path, written) == edges
        said = [record.getMessage() for record in caplog.records]
        line, means = 1 + len(comment), "a header" if what == "header" else "an edge"
        assert len(said) == doubtful
        for words in said:
            assert words.startswith(f"dasktc: warning: line {line} of {path}, ")
            ways = f"skip={line} if it is a header, skip={line - 1} if it is an edge"
            assert words.endswith(f"is taken for {means}; use {ways}")
    caplog.clear()
    read(path, data.encode(), skip=len(comment))
    assert not caplog.records


def test_a_first_row_far_from_others_like_it_is_an_edge_without_a_word(path, caplog):
    """Where the sampled rows are apart, too, as in a large graph whose edges stand in no order."""
    names = [f"{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}{'uvwxyz'[i // 100]}" for i in range(600)]
    data = "".join(f"{a} {b}\n" for a, b in zip(names[::2], names[1::2], strict=True))
    assert len(read(path, data.encode())) == 300
    assert not caplog.records
    assert len(read(path, b"person friend\n" + b"ann bob\n" * 300)) == 301
    assert len(caplog.records) == 1


def test_integers_as_names_differ_where_their_spelling_does(path):
    data = b"1 01\n01 001\n+1 1.0\n"
    assert read(path, data, ids="text") == [("1", "01"), ("01", "001"), ("+1", "1.0")]


@pytest.mark.parametrize(
    ("data", "options", "edges"),
    [
        (b"9,0,1\n9,10,2\n9,2,0\n", {"columns": ("1", "2")}, EDGES),
        (b"9,1,0\n9,2,10\n9,0,2\n", {"columns": ("2", "1")}, EDGES),
        (b"9 0 8 1\n9 10  8 2\n9 2 8 0\n", {"columns": ("1", "3")}, EDGES),
        (b"w\tb\ta\n\t1\t0\n\t2\t10\n\t0\t2\n", {"columns": ("a", "b")}, EDGES),
        (b"w\ta\tb\n\t0\t1\nx y\t10\t2\n\t2\t0\n", {"columns": ("a", "b")}, EDGES),
        (b"x,y,z\n0,1,a\n10,2,b\n2,0,c\n", {"columns": ("0", "1")}, EDGES),
        (b"a,b\nx,y\n1,2\n", {"columns": ("a", "b"), "skip": 0}, [("x", "y"), ("1", "2")]),
        (b"t\na,b\n1,2\n", {"columns": ("a", "b"), "skip": 1}, [(1, 2)]),
        (b"source,target\n1,2\n", {"skip": 0}, [("source", "target"), ("1", "2")]),
        (b"a b\nc d\n5 6\n", {"skip": 2}, [(5, 6)]),
        (b"a b\nc d\n5 6\n", {"ids": "text"}, [("a", "b"), ("c", "d"), ("5", "6")]),
        (b"1 a\n2 b\n", {"ids": "text"}, [("1", "a"), ("2", "b")]),
        (b"1.0 2.0\n", {"ids": "text"}, [("1.0", "2.0")]),
        (b"# c\n1 2\n3 4\n", {"skip": 2}, [(3, 4)]),
        (b"1 2\n3 4\n", {"ids": "int"}, [(1, 2), (3, 4)]),
        (b"s,t\n1,2\n", {"ids": "text"}, [("1", "2")]),
        (b"u,v\na,b\n", {"skip": 0}, [("u", "v"), ("a", "b")]),
        (b"name,age,friend\na,33,b\n", {"columns": ("name", "friend")}, [("a", "b")]),
        (b"s t\nr1 1 2\nr2 3 4\n", {"columns": ("1", "2"), "skip": 1}, [(1, 2), (3, 4)]),
        (b"a -> b\nb -> c\n", {"columns": ("0", "2")}, [("a", "b"), ("b", "c")]),
        (b"(a,b)\n", {"ids": "text"}, [("(a", "b)")]),
        (b"1 2 3\n2 3\n3\n", {"columns": ("0", "1")}, [(1, 2), (2, 3)]),
        (b"a -\n", {"ids": "text"}, [("a", "-")]),
        (b'"a b" c\n', {"ids": "text"}, [('"a', 'b"')]),
    ],
)
@pytest.mark.parametrize("blocksize", [1 << 20, 3])
def test_options_overrule(path, data, options, edges, blocksize):
    assert read(path, data, blocksize=blocksize, **options) == edges


def test_integers_of_all_sizes(path):
    limits = [(BIG - 1, -BIG), (-1, 0)]
    data = b"".join(b"%d %d\n" % edge for edge in limits)
    assert read(path, data) == limits
    assert read(path, b"0 1 x\n" + data) == [(0, 1), *limits]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (b"0 1\n", "int32"),
        (b"%d %d\n" % ((1 << 31) - 1, -(1 << 31)), "int32"),
        (b"0 %d\n" % (1 << 31), "int64"),
        (b"%d 0\n" % -((1 << 31) + 1), "int64"),
    ],
)
def test_ids_are_as_narrow_as_they_can_be(path, data, dtype):
    path.write_bytes(b"1 2\n" + data)
    assert {str(kind) for kind in frames(path)[1][0].dtypes} == {dtype}


# What is refused

REFUSED = {
    "empty": (b"", ["no data line"]),
    "blank": (b"\n  \n\n", ["no data line"]),
    "comments only": (b"# a\n% b\n", ["no data line"]),
    "header only": (b"source,target\n", ["no data line below its header"]),
    "header above single names": (b"source,target\nx\n", ["line 2", "column 2"]),
    "single ids only": (b"1\n2\n3\n", ["no edge", "line 1"]),
    "names on their own": (b"a\nb\n", ["no edge", "line 1"]),
    "a word": (b"1 2\n3 4\nabc 5\n", ["line 3", "'abc'", "ids='text'"]),
    "a word in the second column": (b"1,2\n3,x y\n", ["line 2", "'x y'", "ids='text'"]),
    "a word alone": (b"1 2\nEOF\n", ["line 2", "'EOF'"]),
    "a fraction": (b"1 2\n3 4.5\n", ["line 2", "'4.5'"]),
    "a decimal": (b"1 2\n1.0 3\n", ["line 2", "'1.0'"]),
    "a decimal by a large id": (b"1 2\n9007199254740993 3\n1.0 2\n", ["line 3", "'1.0'"]),
    "decimals first": (b"1.0 2.0\n3 4\n", ["line 1", "ids='text'"]),
    "only decimals": (b"1.0 2.0\n3.0 4.0\n", ["line 1", "decimal", "ids='text'"]),
    "an exponent": (b"1 2\n1e3 3\n", ["line 2", "'1e3'"]),
    "hexadecimal": (b"1 2\n0x10 3\n", ["line 2", "'0x10'"]),
    "a plus sign": (b"1 2\n+1 3\n", ["line 2", "'+1'"]),
    "an underscore": (b"1 2\n1_000 3\n", ["line 2", "'1_000'"]),
    "a minus sign": (b"1 2\n- 3\n", ["line 2", "'-'"]),
    "not a number": (b"1 2\nnan 3\n", ["line 2", "'nan'"]),
    "missing, as pandas writes it": (b"1,2\n,3\n", ["line 2", "no id in column 1"]),
    "missing at the end": (b"1,2\n3,\n", ["line 2", "no id in column 2"]),
    "missing before a weight": (b"1,2,5\n3,,5\n", ["line 2", "no id in column 2"]),
    "missing in tabs": (b"1\t2\t9\n3\t\t9\n", ["line 2", "no id in column 2"]),
    "missing and quoted": (b'1,2\n"",3\n', ["line 2", "no id in column 1"]),
    "missing name": (b"a,b\n,c\n", ["line 2", "no id in column 1"]),
    "another separator": (b"1,2\n3 4\n", ["line 2", "'3 4'"]),
    "another separator between names": (b"a,b\nb,c\nc;d\n", ["line 3", "1 field"]),
    "beyond 64 bits": (b"1 2\n%d 3\n" % BIG, ["line 2", str(BIG), "64-bit", "ids='text'"]),
    "below 64 bits": (b"1 2\n3 %d\n" % (-BIG - 1), ["line 2", str(-BIG - 1)]),
    "beyond 64 bits, alone": (b"1 2\n%d\n" % BIG, ["line 2", str(BIG)]),
    "beyond 64 bits, first": (b"%d 1\n" % (1 << 64), ["line 1", "64-bit"]),
    "beyond 64 bits, quoted": (b'1,2\n"%d",3\n' % BIG, ["line 2", str(BIG)]),
    "a number without end": (b"1 2\n" + b"9" * 5000 + b" 3\n", ["line 2", "64-bit"]),
    "one integer first": (b"1 a\n2 b\n", ["line 1", "skip=1", "ids='text'"]),
    "one integer below comments": (b"# x\n\na 1\n2 3\n", ["line 3", "skip=3", "ids='text'"]),
    "text above": (b"A graph\nwith two lines\n1 2\n3 4\n", ["line 1", "line 3", "skip=2", "ids='text'"]),
    "a comment that goes on": (b"# Relations:\n   -1 (is a customer)\n1\t2\t-1\n", ["line 2", "skip=2"]),
    "prose": (b"It is a file of words, and\nnot a graph at all.\n", ["line 1", "prose"]),
    "a column without a name": (b",a,b\n0,5,6\n", ["line 1", "columns=(1, 2)"]),
    "a column without a name, names": (b",a,b\n0,x,y\n1,x,z\n", ["line 1", "'' perhaps numbers", "columns=(1, 2)"]),
    "numbers of rows, as pandas names them": (b"Unnamed: 0,a,b\n0,x,y\n1,y,z\n", ["line 1", "'Unnamed: 0' perhaps"]),
    "numbers of rows": (b"id,a,b\n0,5,6\n", ["line 1", "'id' perhaps numbers", "columns=(1, 2)"]),
    "a column that is none of ids": (
        b"a,age,b\nx,33,y\nz,34,y\n",
        ["line 1", "'age' is perhaps no id", "columns=(0, 2)"],
    ),
    "names of rows, as R writes them": (b"from to\n1 5 6\n2 6 7\n", ["line 1", "one more", "columns=(1, 2)"]),
    "thousands": (b'a,b\n"1,000","2,000"\n"2,000","1,234"\n', ["line 2", "between digits", "ids='text'"]),
    "several edges a line": (b"1 2; 2 3; 1 3\n", ["line 1", "between digits"]),
    "edges in brackets": (b"(1,2)\n(2,3)\n", ["line 1", "brackets", "ids='text'"]),
    "nodes in brackets": (b"(0, 1) (0, 2) {}\n", ["line 1", "brackets", "ids='text'"]),
    "arrows": (b"a -> b\nb -> c\n", ["line 1", "a sign", "columns=(0, 2)"]),
    "adjacency": (b"1 2 3\n2 3\n3\n", ["1 to 3 ids", "neighbours", "columns=(0, 1)"]),
    "adjacency of names": (b"a,b,c,d\nb,c,e\nc,d\n", ["2 to 4 ids", "neighbours", "columns=(0, 1)"]),
    "triples": (b"a\tlikes\tb\nb\tlikes\tc\nc\tknows\ta\nc\tlikes\tb\n", ["relations", "columns=(0, 2)"]),
    "adjacency matrix": (b"0 1 1\n1 0 1\n", ["3 numbers", "matrix", "columns=(0, 1)"]),
    "weighted matrix": (b"a,b,c,d\n0,5,6,7\n5,0,1,2\n6,1,0,3\n7,2,3,0\n", ["4 numbers", "matrix"]),
    "files joined with their headers": (b"from,to\na,b\n" * 300, ["line 3", "names of the columns again"]),
    "quotes between blanks": (b'"New York" "Rome"\n', ["line 1", "quotes", "ids='text'"]),
    "old Mac": (b"1 2\r3 4\r5 6\r", ["line 1", "the only one", r"'\r' 2 times", "splitlines"]),
    "vertical tabs": (b"1 2\v2 3\v3 1\n", ["line 1", "the only one", "splitlines"]),
    "separators of lines in Unicode": ("a,b\u2028b,c\u2028c,a\n".encode(), ["line 1", "the only one", r"'\u2028'"]),
    "a weight above two columns": (b"weight,a,b\n5,1,2\n5,2,3\n", ["'weight' is perhaps no id", "columns=(1, 2)"]),
    "columns of pandas without names": (b",0,1\n0,5,6\n1,6,7\n2,7,5\n", ["numbers the rows", "columns=(1, 2)"]),
    "names with blanks below a header": (
        b"a b\nJo X Al Y\nAl Y Bo Z\n",
        ["2 to 4 words", "separate the two names by a tab"],
    ),
    "a comment of another kind below": (b"1 2\n2 3\n// 3 4 is no edge\n", ["line 3", "'//'", "if it is a comment"]),
    "old Mac, below": (b"1 2\r\n3 4\r5 6\r\n", ["line 2", "carriage return"]),
    "an open quote": (b'1,2,"a\n3,4,b"\n', ["line 1", "quote"]),
    "an open quote between names": (b'a,b\n"c,d\n', ["line 2", "quote"]),
    "zero bytes": (b"a b\n" * 20000 + b"c\0 d\n", ["line 20001", "zero byte"]),
    "Latin-1": (b"a b\ncaf\xe9 d\n", ["line 2", "UTF-8"]),
    "bipartite": (b"% bip unweighted\n1 1\n1 2\n", ["bipartite"]),
}


@pytest.mark.parametrize("blocksize", [1 << 20, 3])
@pytest.mark.parametrize(("data", "says"), REFUSED.values(), ids=REFUSED)
def test_refused(path, data, says, blocksize):
    refused(path, data, *says, blocksize=blocksize if len(data) < 1000 else 1 << 15)


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (b"a b\nc d\n", {"ids": "int"}, ["line 1", "'a'"]),
        (b"a,b\n1,2\n", {"columns": ("a", "c")}, ["columns=('a', 'c')", "'a', 'b'"]),
        (b"1,2\n3,4\n", {"columns": ("0", "2")}, ["columns=('0', '2')", "0 to 1"]),
        (b"1,2\n3,4\n", {"columns": ("1", "1")}, ["columns=('1', '1')"]),
        (b"1,2,3\n3,4\n", {"columns": ("0", "2")}, ["line 2", "column 3"]),
        (b"1 2 3\n4\n", {"columns": ("0", "2")}, ["line 2", "column 3"]),
        (b"x,y\n1,2,3\n", {"columns": ("0", "2")}, ["line 1", "column 3", "columns=..."]),
        (b"1 2\n3 4\n", {"skip": 2}, ["no data line below line 2"]),
        (b"1 2\n3 x\n", {"skip": 1}, ["line 2", "skip=2"]),
        (b"a,b\n", {"columns": ("a", "b")}, ["no data line below its header"]),
    ],
)
def test_refused_with_options(path, data, options, says):
    if "columns=('1', '1')" in says:
        with pytest.raises(InputError, match=r"columns=\('1', '1'\) is one column"):
            read(path, data, **options)
    else:
        refused(path, data, *says, **options)


@pytest.mark.parametrize("weight", [b'"1,5"', b'"1,234"', b'"5', b'5"'])
def test_a_comma_within_a_weight_ends_no_number(weight):
    dialect = rows.Dialect(",", (0, 1), "int", weight=2)
    with pytest.raises(rows.BadLine, match=r"holds no number in column 3|opens a quote"):
        rows.parse_weighted(b"1,2,5\n2,3," + weight + b"\n", dialect)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bad", [1, 7, 500, 999])
def test_a_bad_line_is_named_wherever_it_stands(path, bad, packed):
    lines = ["# comment", "0 1", *(f"{i} {i + 1}" for i in range(2, 1000))]
    lines[bad] = "7 x"
    data = "\r\n".join(lines).encode()
    if bad == 1:
        assert len(read(path, data, skip=2, block=100)) == 998
    else:
        refused(path, gzip.compress(data) if packed else data, f"line {bad + 1} ", "'x'", blocksize=64, block=100)


# A header of counts

COUNTS = {
    "vertices and edges": b"3 2\n1 2\n2 3\n",
    "more vertices than have edges": b"9 2\n1 2\n2 3\n",
    "other separator": b"3 2\n1\t2\n2\t3\n",
    "comments and blanks": b"# c\n3 2\n\n# d\n1 2\n2 3\n\n",
    "single ids count": b"4 3\n1 2\n2 3\n4\n",
    "weights below": b"3 2\n1 2 0.5\n2 3 0.1\n",
    "CSV": b"3,2\r\n1,2\r\n2,3\r\n",
    "of a matrix": b"3 3 2\n1 2\n2 3\n",
}


@pytest.mark.parametrize("blocksize", [1 << 20, 3])
@pytest.mark.parametrize("data", COUNTS.values(), ids=COUNTS)
def test_a_header_of_counts_is_refused_with_both_ways_out(path, data, blocksize):
    line = data[: data.index(b"3")].count(b"\n") + 1 if b"#" in data else 1
    for packed in (data, gzip.compress(data)):
        refused(path, packed, f"line {line} ", f"skip={line} ", "skip=0", blocksize=blocksize)
        below = read(path, packed, blocksize=blocksize, skip=line)
        assert below == [(1, 2), (2, 3)]
        whole = read(path, packed, blocksize=blocksize, skip=0)
        assert whole[1:] == below
        assert whole[0][0] in (3, 4, 9)


@pytest.mark.parametrize("blocksize", [1 << 20, 3])
@pytest.mark.parametrize(
    "data",
    [
        b"1 2\n2 3\n3 1\n",  # two rows follow, but one vertex cannot have them
        b"0 2\n1 2\n0 1\n",
        b"3 2\n1 2\n",
        b"3 2\n1 2\n2 3\n3 1\n",
        b"2 1\n",
        b"1 0\n",
        b"5 2 7\n1 2 7\n2 3 7\n",
        b"10 0 1\n14 0 1\n",
        b"a b\n3 2\n1 2\n2 3\n",
    ],
)
def test_an_edge_is_not_taken_for_a_header_of_counts(path, data, blocksize):
    rows_below_names = data.splitlines()[b"a" in data :]
    edges = [tuple(map(int, line.split()[:2])) for line in rows_below_names]
    assert read(path, data, blocksize=blocksize) == edges


def test_rows_of_a_large_file_are_counted_only_if_the_count_is_plausible(path, monkeypatch):
    data = b"9999 9000000\n" + b"1 2\n" * 1000
    monkeypatch.setattr(text, "count_rows", lambda block: pytest.fail("counted"))
    assert len(read(path, data, blocksize=512)) == 1001


# Cutting and blocks

TINY = b"# c\r\n1 22\n333  4\r\n\n5 6 x\n# d\n77 8\n9 10"
TINY_EDGES = [(1, 22), (333, 4), (5, 6), (77, 8), (9, 10)]


@pytest.mark.parametrize("blocksize", range(1, len(TINY) + 2))
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_cut_may_fall_on_any_byte(path, blocksize, end):
    assert read(path, TINY + end, blocksize=blocksize) == TINY_EDGES


@pytest.mark.parametrize("block", range(1, len(TINY) + 2))
def test_a_block_may_end_at_any_byte(path, block):
    assert read(path, gzip.compress(TINY), block=block) == TINY_EDGES
    assert read(path, TINY, block=block) == TINY_EDGES
    assert read(path, TINY, blocksize=2 * block, block=block) == TINY_EDGES


def test_blocks_of_narrow_and_wide_ids_make_one_frame(path):
    edges = [(1, 2), (3, 4), (1 << 40, 5), (6, 7)]
    assert read(path, gzip.compress(b"".join(b"%d %d\n" % edge for edge in edges)), block=8) == edges
    names = [(f"n{i}", f"m{i}") for i in range(9)]
    assert read(path, gzip.compress("".join(f"{a} {b}\n" for a, b in names).encode()), block=8) == names


@pytest.mark.parametrize("widths", [(1, 15), (15, 1), (1, 15, 1), (6, 6)])
@pytest.mark.parametrize("block", [1 << 10, 1 << 14])
def test_rows_may_become_shorter_or_longer_than_the_first_ones(path, widths, block):
    edges = [(10**width - 1, number) for width in widths for number in range(3_000)]
    data = b"".join(b"%d %d\n" % edge for edge in edges)
    assert read(path, data, block=block) == edges
    assert read(path, gzip.compress(data), block=block) == edges


@pytest.mark.parametrize("name", ["%d", "vertex-%d"])
def test_frames_of_a_chunk_are_nearly_full_and_have_no_row_more(path, name):
    """A row more would be sliced off, and whoever keeps either slice would keep the memory of both."""
    line = f"{name} {name}\n"
    path.write_text("".join(line % (k, k + 1) for k in range(100_000, 140_000)))
    (part,) = open_source(str(path), ReadOptions()).parts
    sizes = list(map(len, part.chunks(BACKEND, 8000)))
    assert sum(sizes) == 40_000
    assert all(6000 < size <= 8000 for size in sizes[:-1])
    assert sizes[-1] <= 8000


@pytest.mark.parametrize(
    ("line", "says"), [(b"7\n", "no edge in its first MiB"), (b"# c\n", "no data line in its first")]
)
def test_a_file_that_begins_with_a_megabyte_of_nothing_is_refused(path, line, says):
    data = line * (2_000_000 // len(line)) + b"1 2\n"
    refused(path, gzip.compress(data, 1), says)
    assert read(path, data, skip=2_000_000 // len(line)) == [(1, 2)]


@pytest.mark.parametrize("lines", [3, 30_000])
def test_data_may_begin_far_down(path, lines):
    data = b"# a comment line\n" * lines + b"\n1 2\n2 3\n"
    assert read(path, data) == [(1, 2), (2, 3)]
    assert read(path, data, blocksize=3) == [(1, 2), (2, 3)]
    refused(path, data + b"3 x\n", f"line {lines + 4} ")


def test_a_line_longer_than_a_block(path):
    data = b"1 2 " + b"x" * 200_000 + b"\n2 3\n"
    assert read(path, data, block=1 << 10) == read(path, gzip.compress(data), block=1 << 10) == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    "head",
    [b"-" * 100_000 + b"x y", b"--- x" * 20_000 + b" y", b":START_ID(" * 50_000 + b",:START_ID(" * 3],
    ids=["a rule", "rules", "names of Neo4j"],
)
def test_a_long_first_line_takes_no_time(path, head):
    start = process_time()
    assert read(path, head + b"\n1,2\n2,3\n", skip=1) == [(1, 2), (2, 3)]
    with suppress(InputError):
        read(path, head + b"\n1,2\n2,3\n")
    assert process_time() - start < 30


@pytest.mark.parametrize("separator", [b",", b" ", b"\t"])
def test_columns_far_to_the_right(path, separator):
    last, first = rows.MOST_COLUMNS - 1, rows.MOST_COLUMNS - 2
    lines = [[b"7"] * (last - 1) + ends for ends in ([b"1", b"2"], [b"2", b"3"], [b"3", b"4"])]
    data = b"\n".join(map(separator.join, lines))
    bad = data + b"\n" + separator.join([b"7"] * last + [b"x"]) + b"\n"
    assert read(path, data + b"\n# a comment\n", columns=(str(first), str(last))) == [(1, 2), (2, 3), (3, 4)]
    refused(path, bad, "line 4", "'x'", columns=(str(first), str(last)))
    source = open_source(str(path), ReadOptions(columns=("0", "1"), weight=str(last)))
    with pytest.raises(InputError, match=f"line 4 of .* holds no number in column {last + 1}"):
        source.parts[0].read(BACKEND)
    wide = b"\n".join(separator.join([b"7", *line]) for line in lines)
    refused(path, wide, f"column {last + 2}", "cut", columns=("0", str(last + 1)))
    refused(path, wide, f"column {last + 2}", "cut", columns=("0", "1"), weight=str(last + 1))


def test_plain_rows_are_left_to_the_compiled_parser(path, monkeypatch):
    monkeypatch.setattr(rows, "parse_any", lambda *_: pytest.fail("slow"))
    lines = [b"%d%s%d%s" % (i, b"%s", i * 7, b"%s") for i in range(-5, 1000)]
    for separator, rest in [(b" ", b""), (b"\t", b"\r"), (b",", b",0.5"), (b" ", b" {}"), (b"|", b"|a")]:
        data = b"\n".join(line % (separator, rest) for line in lines)
        assert len(read(path, data)) == 1005


def test_a_few_rows_are_enough_to_tell(path, monkeypatch):
    heads, head = [], streams.head
    monkeypatch.setattr(streams, "head", lambda url, n=1 << 16, start=0: heads.append(n) or head(url, n, start))
    data = b"0 1\n" * 100_000
    path.write_bytes(data)
    sniff.sniff(str(path), ReadOptions())
    assert max(heads) == 1 << 16


# One definition of a line, slow and simple, against the two ways in which blocks are read

BLANKS = " \t\r\x0b\x0c"


def cells(line, separator):
    """The fields of a line, as pairs of text and whether it was quoted; None for an invalid field."""
    if separator is None:
        return [(word, False) for word in re.split(f"[{BLANKS}]+", line.strip(BLANKS))]
    blanks = BLANKS.replace(separator, "")
    found = []
    while True:
        line = line.lstrip(blanks)
        quoted = line.startswith('"')
        if quoted:
            closed = re.match(r'"((?:[^"]|"")*)"', line)
            line = line[closed.end() :].lstrip(blanks) if closed else "x"
            field = None if line[:1] not in ("", separator) else closed[1].replace('""', '"')
        cell, _, rest = line.partition(separator)
        found.append(((field if quoted else cell.strip(blanks)), quoted) if not quoted or field is not None else None)
        if separator not in line or found[-1] is None:
            return found
        line = rest


def id_of(cell, ids):
    """The id in a field; None if it is invalid."""
    if cell is None or not cell[0]:
        return None
    if ids == "text":
        return cell[0]
    whole = re.fullmatch("-?[0-9]+", cell[0])
    return int(cell[0]) if whole and -BIG <= int(cell[0]) < BIG else None


def row_of(line, dialect):
    """A line's edge; "single" if it has one id, "" if it is blank, "#" if it is a comment, None if it is invalid."""
    if not line.strip(BLANKS):
        return ""
    if line.strip(BLANKS)[0] in "#%" and dialect.widths is not None:
        fewest, most = dialect.widths
        plain = re.sub('"[^"]*"', "", line) if dialect.separator else line.strip(BLANKS)
        width = plain.count(dialect.separator) + 1 if dialect.separator else len(re.split(f"[{BLANKS}]+", plain))
        edge = row_of(line, dataclasses.replace(dialect, widths=None)) if fewest <= width <= most else None
        return edge if isinstance(edge, tuple) else "#"
    found = cells(line, dialect.separator)
    if dialect.separator not in (None, "\t") and None in found:
        return None
    if len(found) == 1 and set(dialect.columns) == {0, 1}:
        several = (
            dialect.separator
            and dialect.ids == "text"
            and re.search(f"[,;|]|[{BLANKS}][^{BLANKS}]", line.strip(BLANKS))
        )
        return None if several or id_of(found[0], dialect.ids) is None else "single"
    if len(found) <= max(dialect.columns):
        return None
    edge = tuple(id_of(found[place], dialect.ids) for place in dialect.columns)
    return None if None in edge else edge


dialects = st.builds(
    Dialect,
    st.sampled_from([None, ",", ";", "|", "\t"]),
    st.sampled_from([(0, 1), (0, 1), (1, 0), (1, 2), (3, 0)]),
    st.sampled_from(["int", "text"]),
    st.none(),
    st.none(),
    st.sampled_from([(2, 2), (2, 4), (3, 3), None]),
)
plain = st.integers(-20, 20).map(str)
odd = st.sampled_from(
    [
        *(
            "a",
            '"1"',
            '"a,b"',
            '"a""b"',
            '""',
            "",
            '"',
            'x"y',
            '"1" x',
            ' "2" ',
            "é",
            "#3",
            "%",
            "NA",
            "\x0c",
        ),
        *("0x1", "1.0", "-", "+1", "007", "1 2", " 1 ", str(BIG - 1), str(BIG), str(-BIG), str(-BIG - 1)),
    ]
)


@st.composite
def documents(draw, fields):
    """A dialect, and a text that mostly follows it."""
    dialect = draw(dialects)
    usual = [dialect.separator] if dialect.separator else [" ", "  ", "\t"]
    line = st.lists(fields, min_size=1, max_size=5).flatmap(
        lambda cells: st.sampled_from(usual * 4 + list(" ,;|\t")).map(lambda separator: separator.join(cells))
    )
    other = st.sampled_from(["", "  ", "# 1 2", " % x", "\t"])
    ends = st.sampled_from(["\n", "\n", "\r\n", " \n"])
    lines = draw(st.lists(st.tuples(line | line | line | other, ends), max_size=6))
    return dialect, "".join(a + b for a, b in lines).removesuffix(draw(st.sampled_from(["", "\n"])))


@given(documents(plain | odd) | documents(plain))
@example((Dialect(",", (0, 1), "text"), '"a"",b\n'))
def test_blocks_are_read_as_their_lines_are(document):
    dialect, data = document
    expected = [row_of(line, dialect) for line in data.split("\n")]
    if None in expected:
        with pytest.raises(BadLine) as caught:
            parse(data.encode(), dialect)
        assert expected[caught.value.place] is None
        return
    source, target, count, comments = parse(data.encode(), dialect)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [row for row in expected if len(row) == 2]
    assert (count, comments) == (sum(row not in ("", "#") for row in expected), expected.count("#"))


@given(st.data())
def test_cutting_changes_nothing(tmp_path_factory, data):
    dialect, document = data.draw(documents(plain))
    path = tmp_path_factory.mktemp("cut") / "g"

    def outcome(contents, **options):
        try:
            return read(path, contents, **options)
        except InputError as error:
            return str(error)

    whole = outcome(document.encode(), ids=dialect.ids, skip=0)
    assume("perhaps" not in whole)  # of a file that is short as stored all rows are judged when it is opened
    assert outcome(gzip.compress(document.encode()), ids=dialect.ids, skip=0) == whole
    blocksize = data.draw(st.integers(1, 40))
    assert outcome(document.encode(), ids=dialect.ids, skip=0, blocksize=blocksize) == whole


@given(
    st.lists(st.tuples(*[st.integers(-BIG, BIG - 1)] * 2), min_size=1),
    st.sampled_from([" ", "\t", ",", ";", "|", "   ", " , "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", " 7", " {}"]),
)
def test_what_is_written_is_read(tmp_path_factory, edges, separator, end, rest):
    if separator.strip():
        rest = rest.replace(" ", separator)
    contents = end.join(f"{u}{separator}{v}{rest}" for u, v in edges).encode()
    assert read(tmp_path_factory.mktemp("write") / "g", contents, skip=0, blocksize=64) == edges


@pytest.mark.parametrize("columns", [("0", "2"), ("source", "w"), ("2", "1")])
def test_a_column_of_weights_is_named(tmp_path, columns):
    """The error does not advise skipping a line of data."""
    path = tmp_path / "a.csv"
    path.write_text("source,target,w\n0,1,1.5\n1,2,2\n2,0,1\n2,3,4\n")
    with pytest.raises(InputError, match=r"line 2 of .* holds 1.5 where an id is expected: .* weights; name") as error:
        open_source(str(path), ReadOptions(columns=columns))
    assert "skip=..." not in str(error.value)


@pytest.mark.parametrize("byte", [b"\x01", b"\x08", b"\x0e", b"\x1a", b"\x1f"])
def test_control_bytes_are_no_text(tmp_path, byte):
    file = tmp_path / "graph.txt"
    file.write_bytes(b"1 2\n2 3\n" + byte + b"1 3\n")
    with pytest.raises(InputError, match="binary data"):
        dasktc.triangle_count(str(file), backend="cpu")
