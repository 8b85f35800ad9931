"""Reading: frames of parts without loops, and what is noted of them, against the rows."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.io.generators.synthetic import kronecker
from dasktc.pipeline.stages import read as reading
from dasktc.pipeline.stages.attributes import ReadPart
from tests.support.oracle import multigraphs, text_multigraphs
from tests.support.slow_pipeline import CPU, frame_of


def rows(frames):
    return [row for frame in frames for row in zip(frame["src"].tolist(), frame["dst"].tolist(), strict=True)]


@given(st.lists(multigraphs() | text_multigraphs(), min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 9))
def test_rows_read_are_edges_and_what_was_dropped(parts, step, most):
    """Parts at once or in chunks, of integers or text: the rows that are no loops, in their order."""
    ids = "text" if any(isinstance(end, str) for edges in parts for edge in edges for end in edge) else "int"
    parts = [[(str(u), str(v)) if ids == "text" else (u, v) for u, v in edges] for edges in parts]
    made = [ReadPart(frame_of(edges, ids), ids) for edges in parts]
    proper = [[(u, v) for u, v in edges if u != v] for edges in parts]
    found, counts = reading.read_parts([(part, None) for part in made], lambda rows: step, CPU)
    found = found if isinstance(found, list) else [found]
    assert [rows([frame]) for frame in found] == proper
    for frame in found:
        assert list(frame.columns) == ["src", "dst"]
        assert isinstance(frame.index, pd.RangeIndex), "an index of the kept rows would be as large as the ids"
    assert (counts.rows, counts.rows - counts.loops) == (sum(map(len, parts)), sum(map(len, proper)))
    ends = [end for edges in proper for edge in edges for end in edge]
    if ids == "int":
        assert (
            counts.span
            == ((min(ends), max(ends), len(ends) // 2) if ends else (0, -1, 0))
            == reading.Span.measured(found)
        )
        assert counts.sample.T.tolist() == [[*edge] for edges in proper for edge in edges[::step]]
    else:
        assert counts.span is counts.sample is None
    for part, edges, kept in zip(made, parts, proper, strict=True):
        frames, facts = (list(reading.read_chunks(part, None, most, CPU))[first::2] for first in (0, 1))
        assert rows(frames) == kept
        assert max(map(len, frames)) <= most
        assert (sum(of.rows for of in facts), sum(of.loops for of in facts)) == (len(edges), len(edges) - len(kept))


@given(st.integers(0, 20), st.integers(1, 7))
def test_slices_follow_one_another(size, most):
    edges = [(number, -number) for number in range(size)]
    slices = list(reading.slices_of_rows(frame_of(edges), most))
    assert rows(slices) == edges
    assert [len(some) for some in slices if len(some)] == [min(most, size - first) for first in range(0, size, most)]


@pytest.mark.parametrize("ids", ["int", "text"])
def test_a_source_without_parts_reads_as_no_edges(ids):
    frame, counts = reading.read_parts([(reading.NoPart(ids), None)], lambda rows: 1, CPU)
    assert (len(frame), counts.rows, counts.loops) == (0, 0, 0)


def test_generated_parts_are_joined_while_they_are_few_rows():
    parts = kronecker(6, parts=9).parts
    merged = reading.join_parts(parts, 300)
    assert 1 < len(merged) < len(parts)
    assert max(map(reading.part_size, merged)) <= 300
    assert rows(part.read(CPU) for part in merged) == rows(part.read(CPU) for part in parts)
    others = tuple(ReadPart(frame_of([(1, 2)]), "int") for _ in range(2))
    assert reading.join_parts(others, 300) == others
    assert reading.part_size(others[0]) == 0
