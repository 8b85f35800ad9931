"""NumPy's files and archives: every rule of the reader on small files."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from dasktc.io.formats import columnar
from dasktc.io.source import ReadOptions
from tests.support.formats import DST, EDGES, SRC, read, refused


def saved(path, array, **options):
    np.save(path, array, **options)
    return path


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["i1", "u2", "<i4", ">i4", "<i8", ">i8", "<u8", ">u8"])
def test_npy(tmp_path, kind, order):
    path = saved(tmp_path / "g.npy", np.asarray(EDGES, kind, order=order))
    for blocksize in (1, 2 * np.dtype(kind).itemsize * 3, 1 << 20):
        assert read(columnar, path, blocksize=blocksize) == EDGES
    assert len(columnar.parts(str(path), ReadOptions(blocksize=1))[0]) == len(EDGES)
    packed = tmp_path / "packed.npy"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(columnar, packed, blocksize=1) == EDGES


def test_npy_of_no_edges(tmp_path):
    assert read(columnar, saved(tmp_path / "g.npy", np.empty((0, 2), int))) == []


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 5), int), "save its transpose"),
        (np.zeros((5, 3), int), "shape (m, 2)"),
        (np.zeros(6, int), "shape (m, 2)"),
        (np.int64(3), "shape (m, 2)"),
        (np.zeros((5, 2)), "float64"),
        (np.array([["a", "b"]]), "integers"),
        (np.array([[1, 1 << 63]], np.uint64), "below 2^63"),
        (np.array([[1, None]], object), "object of shape (1, 2): edges are integers of shape (m, 2); save two columns"),
        (np.array([[1, 2, 3], [1, None, 2]], object), "save two columns of int64"),
        (np.array([1, 2]), "save two columns of int64"),
        (np.zeros((2, 5)), "save two columns of int64"),
    ],
)
def test_npy_is_refused(tmp_path, array, says):
    refused(columnar, saved(tmp_path / "g.npy", array, allow_pickle=True), says)


def test_damaged_npy_is_refused(tmp_path, write):
    good = saved(tmp_path / "g.npy", np.array(EDGES)).read_bytes()
    refused(columnar, write("cut.npy", good[:-1]), "1 byte before", "cut short")
    refused(columnar, write("cut.npy.gz", gzip.compress(good[:-1])), "1 byte before")
    refused(columnar, write("head.npy", good[:20]))
    refused(columnar, write("version.npy", good[:6] + b"\x09" + good[7:]))


ARCHIVES = {
    "named": ({"dst": DST, "src": SRC, "weight": [0.5] * 4}, None, EDGES),
    "asked for": ({"a": DST, "b": SRC, "c": SRC}, ("b", "a"), EDGES),
    "one array": ({"edges": EDGES}, None, EDGES),
    "one of two": ({"src": np.array(SRC, "i4"), "dst": np.array(DST, "u4")}, None, EDGES),
    "no edges": ({"src": np.empty(0, int), "dst": np.empty(0, int)}, None, []),
}


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, name, save):
    arrays, columns, edges = ARCHIVES[name]
    save(tmp_path / "g.npz", **arrays)
    assert read(columnar, tmp_path / "g.npz", columns=columns) == edges
    (tmp_path / "packed.npz").write_bytes(bz2.compress((tmp_path / "g.npz").read_bytes()))
    assert read(columnar, tmp_path / "packed.npz", columns=columns) == edges


@pytest.mark.parametrize(
    ("arrays", "columns", "says"),
    [
        ({"a": SRC, "b": DST}, None, "columns=..."),
        ({"src": SRC, "dst": DST[:3]}, None, "(4,) and (3,)"),
        ({"src": EDGES, "dst": EDGES}, None, "(4, 2) and (4, 2)"),
        ({"src": SRC, "dst": [0.5] * 4}, None, "float64"),
        ({"src": SRC, "dst": DST}, ("src", "x"), "'x' is not among them"),
        ({"edges": SRC}, None, "shape (m, 2)"),
        ({"src": SRC, "dst": np.array([1, "a", None, 2], object)}, None, "pickle"),
        ({"src": SRC, "dst": np.array([1, 2, 3, 1 << 63], np.uint64)}, None, "below 2^63"),
    ],
)
def test_npz_is_refused(tmp_path, arrays, columns, says):
    np.savez(tmp_path / "g.npz", **arrays)
    refused(columnar, tmp_path / "g.npz", says, columns=columns)


def test_damaged_npz_is_refused(tmp_path, write):
    np.savez(tmp_path / "g.npz", src=np.arange(100), dst=np.arange(100))
    good = (tmp_path / "g.npz").read_bytes()
    refused(columnar, write("cut.npz", good[:-30]))
    refused(columnar, write("flip.npz", good[:300] + bytes([good[300] ^ 255]) + good[301:]), "CRC")


STORED = sp.coo_array((np.array([1.0, 0.0, 2.0, 3.0]), (SRC, DST)), shape=(8, 8))
"""One of its entries is an explicit zero."""


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("container", [sp.coo_array, sp.coo_matrix, sp.csr_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_stored_zeros_are_edges(tmp_path, container, compressed):
    matrix = container(STORED)
    assert matrix.nnz == 4
    sp.save_npz(tmp_path / "g.npz", matrix, compressed=compressed)
    assert sorted(read(columnar, tmp_path / "g.npz")) == sorted(EDGES)


@pytest.mark.parametrize("format_", ["bsr", "dia"])
def test_sparse_padding_is_no_edge(tmp_path, format_):
    matrix = STORED.tobsr((2, 2)) if format_ == "bsr" else STORED.todia()
    sp.save_npz(tmp_path / "g.npz", matrix)
    assert sorted(read(columnar, tmp_path / "g.npz")) == sorted(set(EDGES) - {(5, 0)})


def test_sparse_is_refused(tmp_path):
    path = tmp_path / "g.npz"
    sp.save_npz(path, sp.csr_matrix((3, 4)))
    refused(columnar, path, "3 x 4", "bipartite")
    good = {"format": b"csr", "shape": (3, 3), "data": [1.0, 1.0], "indices": [0, 1], "indptr": [0, 1, 2, 2]}
    for damage in ({"indices": [0, 3]}, {"indices": [0, -1]}, {"indptr": [0, 9, 1, 2]}, {"format": b"abc"}):
        np.savez(path, **good | damage)
        refused(columnar, path)
    np.savez(path, **good)
    assert read(columnar, path) == [(0, 0), (1, 1)]
    np.savez(path, format=b"coo", shape=(3, 3), data=[1.0], row=[0], col=[3])
    refused(columnar, path)
