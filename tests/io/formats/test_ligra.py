"""Ligra's adjacency graphs."""

import numpy as np
import pytest

from dasktc.errors import InputError
from dasktc.io.formats import ligra
from dasktc.io.source import ReadOptions


@pytest.mark.parametrize("gap", ["\n", " ", "\r\n", " \t"])
@pytest.mark.parametrize("nbytes", [1, 3, 8, 1 << 20])
def test_an_adjacency_graph_of_ligra_is_read_in_blocks(tmp_path, gap, nbytes):
    path = tmp_path / "g"
    rows = [[], [0, 11, 4], [], [], [1], *[[] for _ in range(6)], [0, 1, 2], []]
    offsets = [sum(map(len, rows[:row])) for row in range(13)]
    targets = [target for row in rows for target in row]
    path.write_bytes(gap.join(map(str, ["AdjacencyGraph", 13, 7, *offsets, *targets])).encode())
    (part,), _ = ligra.parts(str(path), ReadOptions())
    found = np.concatenate(list(part.arrays(nbytes)), axis=1)
    assert found.tolist() == [[source for source, row in enumerate(rows) for _ in row], targets]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("AdjacencyGraph x", "is expected"),
        ("AdjacencyGraph 3 4 0 1 2 1 2 0", "holds 3 edges where its header says 4"),
        ("AdjacencyGraph 3 2 0 1 2 1 2 0", "holds 3 edges where its header says 2"),
        ("AdjacencyGraph 2 2 1 1 1 0", "do not ascend"),
        ("AdjacencyGraph 3 3 0 2 1 1 2 0", "do not ascend"),
        ("AdjacencyGraph 2 2 0 x 1 0", "holds 'x'"),
        ("AdjacencyGraph 2 2 0 1 1 5", "the target 5, but ids go from 0 to 1"),
        ("WeightedAdjacencyGraph 2 2 0 1 1 0 7 7", "with weights, which are not read"),
    ],
)
def test_an_adjacency_graph_of_ligra_is_refused(tmp_path, text, says):
    path = tmp_path / "g"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        [list(part.arrays(4)) for part in ligra.parts(str(path), ReadOptions())[0]]
