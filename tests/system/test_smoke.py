"""One case per reader, kernel, scheme, order and question, for environments with other versions of dependencies.

It uses nothing of the other tests: `pytest --noconftest -o addopts= -m slow tests/system/test_smoke.py` runs wherever
dasktc, pytest and NetworkX are installed, and `.ci/run` does so with the oldest versions that pyproject.toml allows.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dasktc
from dasktc.io.files import FORMATS
from dasktc.options import Method, RunOptions
from dasktc.registry import KERNELS, ORDERS, SCHEMES
from tests.support.keywords import keywords

pytestmark = pytest.mark.slow

KARATE = nx.karate_club_graph()
TRIANGLES = 45
EDGES = np.array(KARATE.edges, dtype=np.int64)
FRAME = pd.DataFrame(EDGES, columns=["src", "dst"])
DATA = Path(__file__).parents[1] / "data"


def adjacency() -> sp.coo_array:
    return sp.coo_array((np.ones(len(EDGES)), (EDGES[:, 0], EDGES[:, 1])), shape=(34, 34))


def neighbours() -> str:
    return "".join(" ".join(str(v + 1) for v in sorted(KARATE[u])) + "\n" for u in range(34))


def rows(separator: str, first: int = 0) -> str:
    return "".join(f"{u + first}{separator}{v + first}\n" for u, v in EDGES)


def ligra() -> str:
    matrix = adjacency().tocsr()
    numbers = [34, matrix.nnz, *matrix.indptr[:-1], *matrix.indices]
    return "AdjacencyGraph\n" + "".join(f"{number}\n" for number in numbers)


def smat() -> str:
    return f"34 34 {len(EDGES)}\n" + "".join(f"{u} {v} 1\n" for u, v in EDGES)


def market() -> str:
    return f"%%MatrixMarket matrix coordinate pattern general\n34 34 {len(EDGES)}\n" + rows(" ", 1)


FILES = {
    "text": lambda path: path.write_text(rows("\t")),
    "csv": lambda path: FRAME.to_csv(path, index=False),
    "mtx": lambda path: path.write_text(market()),
    "metis": lambda path: path.write_text(f"34 {len(EDGES)}\n" + neighbours()),
    "smat": lambda path: path.write_text(smat()),
    "ligra": lambda path: path.write_text(ligra()),
    "lg": lambda path: path.write_text(f"34,{len(EDGES)},u,karate,2,Int64,graph\n" + rows(",", 1)),
    "parquet": lambda path: FRAME.to_parquet(path),
    "npy": lambda path: np.save(path, EDGES),
    "npz": lambda path: sp.save_npz(path, adjacency().tocsr()),
}
ENDS = {"text": ".txt", "csv": ".csv", "metis": ".graph", "parquet": ".parquet", "npy": ".npy", "npz": ".npz"}
SOURCES = {
    "pandas": lambda: FRAME,
    "NumPy": lambda: EDGES,
    "two columns": lambda: (EDGES[:, 0], EDGES[:, 1]),
    "list": lambda: EDGES.tolist(),
    "Arrow": lambda: __import__("pyarrow").Table.from_pandas(FRAME),
    "Dask": lambda: __import__("dask.dataframe").dataframe.from_pandas(FRAME, npartitions=3),
    "Dask array": lambda: __import__("dask.array").array.from_array(EDGES, chunks=(30, 2)),
    "SciPy": adjacency,
    "NetworkX": lambda: KARATE,
    "text ids": lambda: FRAME.astype(str),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str, tmp_path: Path) -> None:
    if name == "bvgraph":
        pytest.skip("nothing but its own tests writes it")
    path = tmp_path / f"karate{ENDS.get(name, '.' + name)}"
    FILES[name](path)
    assert dasktc.triangle_count(path, backend="cpu") == TRIANGLES


@pytest.mark.parametrize("name", SOURCES)
def test_sources(name: str) -> None:
    assert dasktc.triangle_count(SOURCES[name](), backend="cpu") == TRIANGLES


@pytest.mark.parametrize("kernel", KERNELS["cpu"])
def test_kernels(kernel: str) -> None:
    assert dasktc.triangle_count(FRAME, backend="cpu", method=Method(kernel=kernel), verify=1) == TRIANGLES


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_schemes(scheme: str, threads: int) -> None:
    assert dasktc.triangle_count(FRAME, backend="cpu", method=Method(partition=scheme), threads=threads) == TRIANGLES


@pytest.mark.parametrize("order", ORDERS)
def test_orders(order: str) -> None:
    assert dasktc.triangle_count(FRAME, backend="cpu", method=Method(reorder=order)) == TRIANGLES


def test_questions() -> None:
    with dasktc.prepare(FRAME, backend="cpu") as graph:
        assert graph.triangles().to_dict() == nx.triangles(KARATE)
        assert graph.clustering().to_dict() == pytest.approx(nx.clustering(KARATE))
        assert graph.edge_support(frame="pandas").iloc[:, -1].sum() == 3 * TRIANGLES
        assert graph.core_number().to_dict() == nx.core_number(KARATE)
        assert len(graph.truss(5, frame="pandas")) == nx.k_truss(KARATE, 5).number_of_edges()
        assert len(graph.triangle_list(1000)) == TRIANGLES


def test_weights() -> None:
    with dasktc.prepare(KARATE, weight="weight", backend="cpu") as graph:
        found = graph.clustering("weight", frame="pandas").to_dict()
    assert found == pytest.approx(nx.clustering(KARATE, weight="weight"))


def test_out_of_core_and_a_checkpoint(tmp_path: Path) -> None:
    given = dict(backend="cpu", memory="200MB", parts=3, partition="hash2d", checkpoint=tmp_path / "kept")
    assert (
        dasktc.triangle_count(FRAME, **keywords(**given))
        == dasktc.triangle_count(FRAME, **keywords(**given))
        == TRIANGLES
    )


def test_a_cluster(tmp_path: Path) -> None:
    with dasktc.cluster(workers=2, backend="cpu") as client:
        for distribute in ("always", "never"):
            assert (
                dasktc.triangle_count(
                    FRAME, client, run=RunOptions(distribute=distribute), method=Method(partition="hash2d", parts=2)
                )
                == TRIANGLES
            )
        with dasktc.prepare(DATA / "email-Eu-core.csv.gz", client) as graph:
            assert graph.triangle_count() == 105461
            assert int(graph.triangles(frame="dask").sum().compute()) == 3 * 105461


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dasktc.cli.main import main

    FRAME.to_csv(tmp_path / "karate.csv", index=False)
    out = tmp_path / "vertices.parquet"
    assert main(["count", str(tmp_path / "karate.csv"), "--quiet", "--per-vertex", str(out), "--backend", "cpu"]) == 0
    assert capsys.readouterr().out == f"{TRIANGLES}\n"
    assert pd.read_parquet(out)["triangles"].sum() == 3 * TRIANGLES
