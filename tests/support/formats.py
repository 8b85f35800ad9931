"""Reads files of a format as workers do, for tests of formats."""

import csv
import io
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions

BACKEND = SimpleNamespace(name="cpu", frame=pd, array=np)


def frames(module, path, **options):
    """The frames of a file as workers read them: each part is pickled, and read separately."""
    parts, ids = module.parts(str(path), ReadOptions(**options))
    for part in parts:
        assert part.upstream is None
        frame = pickle.loads(pickle.dumps(part)).read(BACKEND)
        assert list(frame.columns) == ["src", "dst"]
        types = {str(kind) for kind in frame.dtypes}
        assert types == {"str"} if ids == "text" else types in ({"int32"}, {"int64"})
        yield frame


def read(module, path, **options):
    """The edges of a file, in the file's order."""
    return [edge for frame in frames(module, path, **options) for edge in frame.itertuples(index=False, name=None)]


def edges(source, **options):
    """The rows of a source of any format."""
    opened = open_source(source, ReadOptions(**options))
    return [row for part in opened.parts for row in part.read(BACKEND).itertuples(index=False, name=None)]


def parquet(**columns):
    """The bytes of a Parquet file with these columns."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def refused(module, path, *says, **options):
    """Check that the file is refused in one line, which names it and says what is expected."""
    with pytest.raises(InputError) as caught:
        read(module, path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text or str(path).replace(".graph", ".properties") in text
    for words in says:
        assert words in text
    return text


def simple(module, path, **options):
    """Vertices with an edge, and edges, without loops, directions and duplicates."""
    pairs = [np.empty((0, 2), int), *(frame.to_numpy() for frame in frames(module, path, **options))]
    edges = np.sort(np.concatenate(pairs), axis=1)
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    return len(np.unique(edges)), len(edges)


EDGES = [(0, 5), (5, 0), (7, 7), (3, 5)]
SRC, DST = (list(ends) for ends in zip(*EDGES, strict=True))


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
