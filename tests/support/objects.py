"""Opens objects in memory and reads them as workers do, for tests of them."""

import pickle

import dask
import pandas as pd

from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions
from tests.support.formats import BACKEND as CPU

PAIRS = [(0, 1), (1, 2), (2, 0), (1, 1), (1, 0), (0, 1)]
SRC, DST = (list(side) for side in zip(*PAIRS, strict=True))


def open_object(obj, **options):
    return from_object(obj, ReadOptions(**options))


def read(source):
    """All parts as one frame, each read from its pickled copy as a worker would read it."""
    frames = []
    for part in source.parts:
        upstream = None if part.upstream is None else part.upstream.compute(scheduler="sync")
        frames.append(pickle.loads(pickle.dumps(part, protocol=5)).read(CPU, upstream))
        pd.testing.assert_frame_equal(frames[-1], part.read(CPU, upstream))
        dtypes = set(map(str, frames[-1].dtypes))
        assert dtypes == {"str"} if source.ids == "text" else dtypes in ({"int32"}, {"int64"})
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"src": [], "dst": []})


def pairs(source):
    frame = read(source)
    return list(zip(frame["src"].tolist(), frame["dst"].tolist(), strict=True))


def table(src=SRC, dst=DST, **kwargs):
    return pd.DataFrame({"src": pd.Series(src, **kwargs), "dst": pd.Series(dst, **kwargs)})


def dask_frame(frame, npartitions=3, convert=True):
    import dask.dataframe as dd

    with dask.config.set({"dataframe.convert-string": convert}):
        return dd.from_pandas(frame, npartitions=npartitions)


class Capsule:
    """A table, or a column, of an unknown library, with the Arrow PyCapsule interface."""

    def __init__(self, table):
        self.table = table
        if hasattr(table, "columns"):
            self.columns = table.columns

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


BIG = 2**63


def one_line(error):
    text = str(error.value)
    fact, _, rest = text.partition(": ")
    assert fact
    assert "; " in rest
    assert "\n" not in text
    return text


def foreign(module):
    """An object of a library that is not installed here."""
    return type("Thing", (), {"__module__": module})()
