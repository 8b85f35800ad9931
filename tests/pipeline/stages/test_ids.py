"""Numbering: ranges, sorted arrays and text give dense ids in the order of the caller's, and map back to them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.pipeline.stages import ids as numbering
from dasktc.pipeline.stages.id_maps import TextMap, map_of
from dasktc.pipeline.stages.shards import unite
from tests.support.oracle import multigraphs, text_multigraphs
from tests.support.slow_pipeline import CPU, frame_of

LEAST, MOST = -(2**63), 2**63 - 1


def in_frames(edges, parts, ids="int"):
    """Frames of the edges that are no loops, and their distinct ids, ascending."""
    edges = [edge for edge in edges if edge[0] != edge[1]]
    names = sorted({end for edge in edges for end in edge}, key=lambda name: name.encode() if ids == "text" else name)
    return [frame_of(edges[part::parts], ids) for part in range(parts)], names


def check(vertices, names):
    assert vertices.size == len(names)
    assert vertices.external(np.arange(len(names))).tolist() == names
    column = pd.Series(names[::-1], dtype="str" if isinstance(vertices, TextMap) else "int64")
    assert vertices.dense(column).tolist() == [*range(len(names))][::-1]


def check_places(found, frames, names):
    """Distinct ids of some frames, and the positions of both ends of their edges among them."""
    ids, places = found
    assert ids.tolist() == names
    ends = [[end for frame in frames for end in frame[name].tolist()] for name in ("src", "dst")]
    assert [[names[place] for place in of_ends] for of_ends in places] == ends


@given(multigraphs(), st.integers(1, 4))
def test_any_integers(edges, parts):
    frames, names = in_frames(edges, parts)
    distinct = [numbering.distinct_integers(frame, CPU) for frame in frames]
    check(numbering.map_of_integers(unite(distinct, CPU), CPU), names)
    ids = numbering.distinct_integers(frames, CPU)
    check(map_of([ids[:3], ids[3:]], "int", CPU), names)
    low = min(names, default=0)
    check_places(numbering.places_of_integers(frames, low, max(names, default=0) - low + 1, CPU), frames, names)


@pytest.mark.parametrize("low", [LEAST, -1, 0, 1, 2**31 - 2, 2**31, MOST - 24])
@given(edges=multigraphs(), parts=st.integers(1, 4))
def test_ids_of_a_narrow_range(low, edges, parts):
    """From marks of the ids in each frame, or from degrees."""
    frames, names = in_frames([(low + (u + 1) % 25, low + (v + 1) % 25) for u, v in edges], parts)
    marks = numbering.mark_ids(numbering.clear_marks(25, CPU), frames, low, CPU)
    assert np.flatnonzero(marks).tolist() == [name - low for name in names]
    check(numbering.map_of_marks(marks, low, 25, CPU), names)
    check(numbering.map_of_degrees([marks.astype("int32") * 3], numbering.IdRange(low, 25), CPU), names)


@given(text_multigraphs(), st.integers(1, 4))
def test_any_text(edges, parts):
    """In the order of the bytes of UTF-8; pieces are copies: slices would travel with the whole array."""
    frames, names = in_frames(edges, parts, "text")
    columns = [numbering.distinct_texts(frame, CPU) for frame in frames]
    assert [len(column) for column in columns] == [len({*frame["src"], *frame["dst"]}) for frame in frames]
    check(numbering.map_of_texts(numbering.unite_texts(columns, CPU), CPU), names)
    whole = pa.array(names, pa.large_string())
    check(map_of([whole[:2], whole[2:]], "text", CPU), names)
    assert numbering.text_size(whole, CPU) == (len(names), whole.nbytes)
    check_places(numbering.places_of_texts(frames, CPU), frames, names)
    kind = numbering.texts(CPU)
    pieces = kind.cut(whole, names[1:3])
    assert [piece.tolist() for piece in pieces] == [part for part in (names[:1], names[1:2], names[2:])][: len(pieces)]
    assert all(piece.offset == 0 for piece in pieces)
    assert kind.unite([whole[::2], whole]).tolist() == names
    assert kind.find(whole[::-1], whole).tolist() == [*range(len(names))][::-1]


def test_hashes_of_text_depend_on_the_text_alone():
    """Hashes are made in chunks, and do not show it."""
    names = pa.array([str(number) for number in range(numbering.HASHED_AT_A_TIME + 20)], pa.large_string())
    whole = numbering.texts(CPU).hash(names)
    assert whole.max() < 2**63
    assert len(set(whole.tolist())) == len(names)
    assert whole[-40:].tolist() == numbering.texts(CPU).hash(names[len(names) - 40 :]).tolist()
