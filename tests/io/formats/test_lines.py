"""Blocks of whole lines."""

import io

import pytest

from dasktc.io.formats import lines


@pytest.mark.parametrize("nbytes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [b"", b"\n", b"ab\n\nc\n", b"abcdefgh\ni\n\n\nj", b"no end"])
def test_blocks_are_whole_lines(text, nbytes):
    blocks = [block for _, block in lines.blocks(io.BytesIO(text), nbytes, "g", 0)]
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert sum(map(lines.count_nonblank, blocks)) == sum(bool(line.strip()) for line in text.split(b"\n"))


@pytest.mark.parametrize("nbytes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [b"\n", b"ab\n\nc\n", b"abcdefgh\ni\n\n\nj"])
def test_blocks_have_the_lines_that_begin_before_stop(text, nbytes):
    starts = [place for place in range(len(text)) if place == 0 or text[place - 1] == ord("\n")]
    for stop in range(1, len(text) + 1):
        found = list(lines.blocks(io.BytesIO(text), nbytes, "g", 0, stop))
        end = next((start for start in starts if start >= stop), len(text))
        assert b"".join(block for _, block in found) == text[:end]
        assert {offset for offset, _ in found} <= set(starts)
