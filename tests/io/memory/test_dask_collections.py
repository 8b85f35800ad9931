"""Dask collections as sources."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest

import dasktc
from dasktc import generate
from dasktc.errors import InputError
from dasktc.io.memory import from_object
from dasktc.io.source import ReadOptions
from tests.support.objects import CPU, DST, PAIRS, SRC, dask_frame, one_line, open_object, pairs, read, table
from tests.support.slow_pipeline import random_edges


def of_blocks(make):
    """A Dask Array that computes to another shape or type than it declares."""
    return da.map_blocks(make, da.from_array(np.array(PAIRS), chunks=2), dtype="int64", meta=np.empty((0, 0), "int64"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: da.zeros((4, 3), dtype=int), r"Dask Array has shape \(4, 3\)"),
        (lambda: da.zeros(4, dtype=int), "holds no edges"),
        (lambda: da.zeros((4, 2), dtype=bool), "column 0 of the Dask Array has type bool"),
        (lambda: da.from_array(np.array([[0, 0.5]])), "row 0 of column 1 of the Dask Array's block 0 holds 0.5"),
        (lambda: of_blocks(lambda block: block[:, :1]), r"block 0 was computed to cannot be read \(IndexError: "),
        (lambda: of_blocks(lambda block: None), r"block 0 was computed to cannot be read \(TypeError: "),
        (lambda: of_blocks(lambda block: block.astype(str)), "block 0 holds ids of type text where int is expected"),
        (lambda: dask.delayed(table)(), "shows its contents only when computed.* dask.dataframe.from_delayed"),
        (lambda: [dask.delayed(table)()] * 2, "the pair holds a dask.delayed"),
        (lambda: (da.zeros(4, dtype=int), np.zeros(4, int)), "holds dask.array.core.Array, numpy.ndarray: of Dask's"),
        (lambda: [da.zeros((4, 2), dtype=int)] * 2, "two columns are read, 1-D arrays or Series"),
        (lambda: [da.zeros(4, dtype=int)] * 3, "the sequence of 3 holds"),
        (lambda: [dask_frame(table())] * 2, "two columns are read, 1-D arrays or Series"),
        (
            lambda: (da.zeros(4, dtype=int), da.zeros(5, dtype=int)),
            "column 0 of the pair has 4 rows, column 1 of the pair 5",
        ),
        (lambda: (da.zeros(4, dtype=int), da.zeros(4, dtype=bool)), "column 1 of the pair has type bool"),
        (
            lambda: (da.zeros(4, dtype=int), da.zeros(4, dtype=int).astype("U1")),
            "column 0 of the pair holds ids of type int, column 1 of the pair of type text",
        ),
        (
            lambda: [dask_frame(table(), blocks)["src"] for blocks in (2, 3)],
            "have 2 and 3 blocks, of unknown lengths",
        ),
        (
            lambda: (dask_frame(table())["src"], dask_frame(table())["dst"].loc[:4]),
            "column 0 of the pair's block has 2 rows, column 1 of the pair's block 1",
        ),
        (
            lambda: (da.zeros(2, dtype=int), da.from_array(np.array([1, 0.5]))),
            "row 1 of column 1 of the pair's block 0 holds 0.5",
        ),
    ],
)
def test_refused_dask_collections(make, message):
    with pytest.raises(InputError, match=message) as error:
        read(open_object(make()))
    one_line(error)


def test_a_pair_of_dask_arrays_of_a_gpu_is_pointed_to_one_collection():
    sides = [da.from_array(np.array(side), chunks=2) for side in (SRC, DST)]
    of_gpu = type("ndarray", (np.ndarray,), {"__module__": "cupy"})
    for side in sides:
        side._meta = np.empty(0, np.int64).view(of_gpu)
    with pytest.raises(InputError, match=r"in GPU memory: .* pass dask\.array\.stack") as error:
        open_object(sides)
    one_line(error)


@pytest.mark.parametrize("dtype", ["object", "str", "int8"])
@pytest.mark.parametrize("ids", ["int", "text"])
def test_a_dask_partition_may_be_empty(ids, dtype):
    part = open_object(dask_frame(table(["a"], ["b"]), 1), ids=ids).parts[0]
    frame = part.read(CPU, table([], [], dtype=dtype))
    assert len(frame) == 0
    assert set(map(str, frame.dtypes)) == ({"str"} if ids == "text" else {"int32" if dtype == "int8" else "int64"})


def test_a_meta_that_lies_is_found_when_read():
    source = open_object(dask_frame(table(dtype=object), 2, convert=False))
    assert source.ids == "text"
    with pytest.raises(InputError, match=r"column 'src' .* partition 0 .* type int where text") as error:
        read(source)
    one_line(error)


class Refusing:
    """A scheduler that refuses to compute."""

    def __call__(self, *args, **kwargs):
        raise AssertionError("something was computed")


def test_building_a_dask_source_computes_nothing():
    import dask.dataframe as dd

    called = []

    def load(number):
        called.append(number)
        return table(list(range(number)), [number] * number)

    meta = table([0], [0])[:0]
    with dask.config.set(scheduler=Refusing()):
        open_object(da.from_array(np.array(PAIRS), chunks=(2, 1)))
        source = open_object(dd.from_map(load, [2, 0, 3], meta=meta).assign(weight=1.0))
    assert (called, len(source.parts), source.ids) == ([], 3, "int")
    assert pairs(source) == [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    assert called == [2, 0, 3]


def test_only_the_id_columns_are_read_from_parquet(tmp_path):
    import dask.dataframe as dd

    table().assign(weight=0.5).to_parquet(tmp_path / "edges.parquet")
    source = open_object(dd.read_parquet(tmp_path), columns=("src", "dst"))
    assert list(source.parts[0].upstream.compute(scheduler="sync").columns) == ["src", "dst"]
    assert pairs(source) == PAIRS


def test_partitions_in_which_columns_stand_otherwise_are_read_by_name():
    import dask.dataframe as dd

    first = pd.DataFrame({"src": [0, 1], "dst": [1, 2], "time": [5, 6]})
    other = pd.DataFrame({"time": [7], "extra": [9], "dst": [0], "src": [2]})
    parts = [dask.delayed(frame) for frame in (first, other)]
    source = dd.from_delayed(parts, meta=first[:0], verify_meta=False)
    assert pairs(open_object(source)) == [(0, 1), (1, 2), (2, 0)]
    graph = dasktc.prepare(source, edge_columns=["time"], threads=1)
    assert graph.survey(lambda b: b["time_uv"] + b["time_uw"] + b["time_vw"], ["time"]).tolist() == [18]


def test_building_a_source_computes_nothing(inner, threads):
    import dask.dataframe as dd

    def refuse(*args, **kwargs):
        raise AssertionError("computed")

    frame = dd.from_pandas(pd.DataFrame(random_edges(100, 500, 6), columns=["a", "b"]), npartitions=4)
    with dask.config.set(scheduler=refuse), inner.as_current():
        assert len(from_object(frame, ReadOptions()).parts) == 4
        generate.kronecker(30)
    assert not threads.scheduler.task_prefixes
