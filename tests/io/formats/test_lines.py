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
