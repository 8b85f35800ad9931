"""Texts of rows of integers, on which compiled parsers of plain rows are compared with the parser of any row."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dasktc.io.formats.rows import Dialect, parse_any

BIG = 2**31
IDS = st.one_of(
    st.integers(0, 99).map(str),
    st.integers(-(2**40), 2**40).map(str),
    st.sampled_from([*(str(sign * (BIG + k)) for sign in (1, -1) for k in (-1, 0, 1)), "007", "-0", "9" * 18]),
)
ODD = st.sampled_from(
    ["", "+5", "x", "1.5", "-", "--1", '"3"', "0x1", "1e3", "#", "%", "\0", "9" * 19, "0" * 18 + "1", str(2**63)]
)
SEPARATORS = st.sampled_from([None, None, ",", "\t", ";", " "])


@st.composite
def texts(draw, fields):
    """A dialect, and a text that mostly follows it."""
    separator = draw(SEPARATORS)
    blanks = st.text(alphabet="".join(c for c in " \t\r\v\f" if c != separator), max_size=2)
    gaps = (
        st.sampled_from([" ", "\t", "  ", " \t\v"])
        if separator is None
        else st.builds(lambda a, b: a + separator + b, blanks, blanks)
    )
    plain = st.tuples(IDS, gaps, IDS, st.sampled_from(["", "", "\r", " "])).map("".join)
    any_row = st.builds(
        lambda start, cells, gap, end: start + gap.join(cells) + end,
        st.sampled_from(["", " ", "\t"]),
        st.lists(fields, min_size=1, max_size=4),
        gaps,
        st.sampled_from(["", "", " ", "\r", "\t"]),
    )
    no_row = st.sampled_from(["", "# c", "%", " # x", "\t# c\t5\t9", "  ", "\r", "#\rx", '# "'])
    rows = draw(st.lists(st.one_of(plain, plain, plain, any_row, no_row), max_size=50))
    columns = draw(st.sampled_from([(0, 1), (0, 1), (1, 0), (0, 2), (2, 1), (1, 1), (2, 3)]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return Dialect(separator, columns, "int"), end.join(rows) + draw(st.sampled_from(["", end, end + end]))


def compare(parser, dialect, text):
    """What a parser of plain rows returns is what the parser of any row returns, in the narrowest type."""
    block = text.encode()
    pair = parser(np.frombuffer(block, np.uint8), dialect.separator, dialect.columns)
    if pair is not None and block:
        source, target, count, comments = parse_any(block, dialect)
        assert [ids.tolist() for ids in pair] == [source.tolist(), target.tolist()]
        assert (count, comments) == (len(pair[0]), 0)
        wide = any(not -BIG <= vertex < BIG for ids in (source, target) for vertex in ids.tolist())
        assert {ids.dtype.name for ids in pair} == {"int64" if wide else "int32"}


def pairs_of(parser, text, separator, columns=(0, 1)):
    """The pairs of ids that a parser of plain rows finds; None where it leaves a text to the other one."""
    found = parser(np.frombuffer(text.encode(), np.uint8), separator, columns)
    return None if found is None else list(zip(*(ids.tolist() for ids in found), strict=True))


COMMENTS = ["# a\t5\t9", "\t# a\t5\t9", " \t\t%\t5\t9"]
"""Lines that are comments, whose third and fourth fields between tabs are integers."""

KNOWN = [
    ("", None, []),
    ("\n \n\r\n\t", None, []),
    ("1 2\n# 1 2\n", None, None),
    ("1 2\n\t%3 4", None, None),
    ("1 2\n3\t4\n-5   6 0.5 x\r\n007 8", None, [(1, 2), (3, 4), (-5, 6), (7, 8)]),
    ("1,2\n 3 , 4 ,x\n", ",", [(1, 2), (3, 4)]),
    ("1\t2\n3\t 4\t5 6\n", "\t", [(1, 2), (3, 4)]),
    (f"1 {'9' * 18}\n", None, [(1, 10**18 - 1)]),
    ("1 +2\n", None, None),
    ("1 2\n3\n", None, None),
    ("1 2\r3 4\n", None, None),
    ("# a\rb\n1 2\n", None, None),
    ("1 2\r \n", None, None),
    ("1 2 x\r\r\n3 4 x\ry\n", None, None),
    ("1 \r2\n", None, None),
    ("1 2\r\r\n\r\r\n3 4\r", None, [(1, 2), (3, 4)]),
    ("-2147483648 2147483647\n", None, [(-(2**31), 2**31 - 1)]),
    ("0 2147483648\n1 2\n", None, [(0, 2**31), (1, 2)]),
    ("1,2 x\n", ",", None),
    ("1,,2\n", ",", None),
    ("1,2x\n", ",", None),
    ("1,\n", ",", None),
    ("1;2\n", ",", None),
    ("1;2\n", None, None),
    ("1 2x\n", None, None),
    ("\t1\t2\n", "\t", None),
    ('1,2,"3"\n', ",", None),
    ("1 2\n" * 3000 + "1 x\n", None, None),
    ("1 2\n" * 3000, None, [(1, 2)] * 3000),
    ("\r" * 5000 + "\n" + " " * 3000 + "1 2", None, [(1, 2)]),
]
"""A text, its separator, and its pairs of ids; None where it is left to the parser of any row."""
