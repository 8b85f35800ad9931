"""Parsing rows of integers on the CPU, against the parser of any row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dasktc.backends.cpu.rows import parse
from tests.support.row_texts import COMMENTS, IDS, KNOWN, ODD, compare, pairs_of, texts

LARGEST = 2**63 - 1


@given(given_text=texts(IDS) | texts(IDS | ODD))
def test_what_is_parsed_is_what_the_parser_of_any_row_reads(given_text):
    compare(parse, *given_text)


@pytest.mark.parametrize("further", [0, 20])
@pytest.mark.parametrize(("text", "separator", "pairs"), KNOWN)
def test_known_texts_also_before_further_rows(text, separator, pairs, further):
    row = f"\n5{separator or ' '}6"
    assert pairs_of(parse, text + further * row, separator) == (None if pairs is None else pairs + further * [(5, 6)])


@pytest.mark.parametrize("comment", COMMENTS)
def test_no_comment_is_a_row(comment):
    assert pairs_of(parse, f"a\tb\t1\t2\n{comment}\n", "\t", (2, 3)) is None


@pytest.mark.parametrize("sign", ["", "-"])
def test_ids_of_19_digits_are_read_up_to_the_largest_of_64_bits(sign):
    factor = -1 if sign else 1
    assert pairs_of(parse, f"{sign}{LARGEST} 1", None) == [(factor * LARGEST, 1)]
    assert pairs_of(parse, f"1 {sign}{'0' * 18}7\n", None) == [(1, factor * 7)]
    for beyond in (f"{LARGEST + 1}", "9" * 19, "0" * 19 + "7", f"{2**64 + 5}", f"1{'0' * 19}"):
        assert pairs_of(parse, f"1 {sign}{beyond}\n", None) is None


@pytest.mark.parametrize("separator", [None, "\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", ""])
def test_numbers_of_all_lengths_are_read_and_no_longer_ones(separator, end):
    gap, end = separator or " ", end or f"{separator or ' '}x\n"
    numbers = [*(int("9876543219876543219"[:size]) for size in range(1, 19)), LARGEST]
    pairs = [(a, b) for a in numbers for b in numbers]
    text = "".join(f"{a}{gap}{b}{end}" for a, b in pairs)
    assert pairs_of(parse, text, separator) == pairs
    for beyond in (LARGEST + 1, 10**19, 10**31, 10**40):
        for row in ((beyond, 1), (1, beyond)):
            assert pairs_of(parse, f"{row[0]}{gap}{row[1]}{end}{text}", separator) is None


@pytest.mark.parametrize("columns", [(0, 2), (2, 0), (2, 3)])
@pytest.mark.parametrize("separator", [None, "|"])
def test_other_columns(columns, separator):
    gap = separator or " "
    text = "".join(gap.join(map(str, row)) + "\n" for row in [(1, "x-", 3, 4), (5, "#", 7, 8, "y")])
    pair = parse(np.frombuffer(text.encode(), np.uint8), separator, columns)
    rows = [(1, 0, 3, 4), (5, 0, 7, 8)]
    assert [*zip(*(ids.tolist() for ids in pair), strict=True)] == [(row[columns[0]], row[columns[1]]) for row in rows]


@pytest.mark.parametrize(("separator", "columns"), [("é", (0, 1)), (None, (1, 1))])
def test_what_other_dialects_mean_is_left_to_the_parser_of_any_row(separator, columns):
    assert parse(np.frombuffer("1é2\n3 4\n".encode(), np.uint8), separator, columns) is None
