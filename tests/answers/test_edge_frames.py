"""Frames of edges: their number and their sum."""

import pytest

from dasktc.answers import edge_frames
from dasktc.errors import CountError
from tests.answers.test_edge_support import prepared
from tests.support import oracle


def test_the_number_of_edges_is_that_of_their_supports(monkeypatch):
    graph, joined = prepared(oracle.complete(20)), edge_frames._joined

    monkeypatch.setattr(edge_frames, "_joined", lambda slices: joined(slices)[:, 1:])
    with pytest.raises(CountError, match="differ in number"):
        graph.edge_support()


@pytest.mark.parametrize("parts", [1, 2])
def test_the_supports_of_all_edges_are_three_for_each_triangle(monkeypatch, parts):
    graph, joined = prepared(oracle.complete(20), partition="hash2d", parts=parts), edge_frames._joined

    def one_less(slices):
        found = joined(slices)
        found[1, found[1].argmax()] -= 1
        return found

    monkeypatch.setattr(edge_frames, "_joined", one_less)
    with pytest.raises(CountError, match="support of edges do not add up"):
        graph.edge_support()
