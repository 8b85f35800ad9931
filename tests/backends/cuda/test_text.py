"""Parsing rows of integers on a device, against the host's parser; and copying bytes of files to the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dasktc.backends.cuda.text import DeviceText
from dasktc.io.formats import lines
from tests.support.emulation.host import HostDevice, needs_compiler
from tests.support.row_texts import COMMENTS, IDS, KNOWN, ODD, compare, pairs_of, texts

BOTH = [DeviceText(HostDevice(reverse)) for reverse in (False, True)]
"""Threads in ascending and in descending order."""


@needs_compiler
@pytest.mark.parametrize("device", BOTH, ids=["forward", "reverse"])
@given(given_text=texts(IDS) | texts(IDS | ODD))
def test_what_is_parsed_is_what_the_host_parses(device, given_text):
    compare(device.rows, *given_text)


@needs_compiler
@pytest.mark.parametrize(("text", "separator", "pairs"), [*KNOWN, (f"1 {'9' * 19}\n", None, None)])
def test_known_texts(text, separator, pairs):
    for device in BOTH:
        assert pairs_of(device.rows, text, separator) == pairs


@needs_compiler
@pytest.mark.parametrize("comment", COMMENTS)
def test_no_comment_is_a_row(comment):
    for device in BOTH:
        assert pairs_of(device.rows, f"a\tb\t1\t2\n{comment}\n", "\t", (2, 3)) is None


@pytest.mark.parametrize("size", [10, lines.LONGEST // 2, lines.LONGEST + 1, 3 * lines.LONGEST])
def test_long_lines_are_noticed(size):
    text = np.full(4 * lines.LONGEST, ord("1"), np.uint8)
    text[1000::1000] = ord("\n")
    assert not lines.may_be_long(text)
    text[12345 : 12345 + size] = ord("1")
    assert lines.may_be_long(text) or size <= lines.LONGEST
    assert not (lines.may_be_long(text) and size < lines.LONGEST // 2)
