"""The header of LightGraphs files."""

import pytest

from dasktc.io.formats import lightgraphs


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"3,2,u,graph\n1,2\n", True),
        (b"3, 2, d, g, 2\n", True),
        (b"3,2\n1,2\n", False),
        (b"u,v,u,w\n", False),
    ],
)
def test_lightgraphs_header(head, expected):
    assert lightgraphs.looks_like(head) is expected
