"""Sparse matrices as sources."""

import numpy as np
import pytest
import scipy.sparse

from dasktc.errors import InputError
from tests.support.objects import one_line, open_object, pairs, read

SPARSE = ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
@pytest.mark.parametrize("format", SPARSE)
def test_sparse(kind, format):
    matrix = kind((np.ones(4), ([0, 1, 2, 4], [1, 2, 0, 3])), shape=(6, 6)).asformat(format)
    assert sorted(pairs(open_object(matrix))) == [(0, 1), (1, 2), (2, 0), (4, 3)]


def damaged(format, **changed):
    matrix = scipy.sparse.coo_array((np.ones(4), ([0, 1, 2, 3], [1, 2, 0, 3])), shape=(4, 4)).asformat(format)
    for name, change in changed.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


def with_row(row):
    def change(rows):
        rows[0] = row
        return rows

    return change


COMPRESSED = {
    "far": ({"indptr": lambda p: p * 10**8}, "indptr from 0 to 400,000,000 .* for indices of length 4"),
    "far in between": ({"indptr": lambda p: p + np.array([0, 10**9, 0, 0, 0])}, "that falls in between"),
    "below": ({"indptr": lambda p: p - 2}, "indptr from -2 to 2"),
    "short": ({"indptr": lambda p: p[:-1]}, r"shape \(4,\), where 5 integers belong"),
    "none": ({"indptr": lambda p: p[:0]}, r"shape \(0,\), where 5 integers belong"),
    "floats": ({"indptr": lambda p: p + 0.5}, "indptr of float64"),
    "of 64 bits": ({"indptr": lambda p: p.astype("int64") + 2**32}, "indptr from 4,294,967,296"),
    "of two dimensions": ({"indptr": lambda p: p[None]}, r"shape \(1, 5\)"),
    "no array": ({"indptr": lambda p: None}, "cannot be read"),
    "indices": (
        {"indices": lambda p: p + 10**6},
        "indexes .* 1,000,000 to 1,000,003|cannot be read .* 1000003 exceeds",
    ),
    "negative indices": ({"indices": lambda p: p - 1}, "indexes .* -1 to 2|cannot be read .* negative"),
    "few indices": ({"indices": lambda p: p[:2]}, "indptr from 0 to 4 .* for indices of length 2"),
    "of another shape": ({"_shape": lambda p: (2, 2)}, "matrix of 2 x 2 has indptr"),
}
DAMAGED = [(kind, *case) for kind in ("csr", "csc", "bsr") for case in COMPRESSED.values()] + [
    ("coo", {"coords": lambda c: (c[0] + 10**9, c[1])}, "indexes rows 1,000,000,000 to"),
    ("coo", {"coords": lambda c: (c[0] - 1, c[1])}, "indexes rows -1 to 2"),
    ("coo", {"coords": lambda c: (c[0], c[1][:2])}, r"stores columns as int.* of shape \(2,\)"),
    ("coo", {"coords": lambda c: (c[0] + 0.5, c[1])}, "stores rows as float64"),
    ("lil", {"rows": with_row([99])}, "indexes columns 0 to 99"),
    ("lil", {"rows": with_row([-1])}, "indexes columns -1 to"),
    ("lil", {"rows": with_row(["a"])}, "stores columns as <U"),
    ("lil", {"rows": with_row([1.5])}, "stores columns as float64"),
    ("lil", {"rows": with_row(None)}, "cannot be read"),
    ("lil", {"rows": lambda rows: rows[:2]}, "has 2 lists of columns"),
    ("dok", {"_dict": lambda d: d | {(10**9, 1): 1.0}}, "indexes rows 0 to 1,000,000,000"),
    ("dok", {"_dict": lambda d: d | {(0, 1.5): 1.0}}, "stores rows as float64"),
    ("dok", {"_dict": lambda d: d | {(0, 1, 2): 1.0}}, "cannot be read"),
    ("dia", {"offsets": lambda o: o[:1]}, r"has offsets of int.* and shape \(1,\)"),
    ("dia", {"offsets": lambda o: o + 0.5}, "has offsets of float64"),
    ("dia", {"data": lambda d: d.ravel()}, "for diagonals of shape"),
]


@pytest.mark.parametrize(("format", "changed", "message"), DAMAGED)
def test_damaged_sparse_matrices(format, changed, message):
    """SciPy's compiled code trusts the arrays: it would crash the process, or read beyond them."""
    with pytest.raises(InputError, match=message) as error:
        read(open_object(damaged(format, **changed)))
    one_line(error)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_what_lies_behind_the_last_pointer_is_no_entry(format):
    spare = damaged(format, indices=lambda p: np.r_[p, [77] * 9], data=lambda d: np.r_[d, [1.0] * 9])
    assert sorted(pairs(open_object(spare))) == [(0, 1), (1, 2), (2, 0), (3, 3)]


def test_the_padding_of_blocks_is_no_edge():
    matrix = scipy.sparse.csr_array((np.ones(2), ([0, 3], [1, 2])), shape=(4, 4)).tobsr(blocksize=(2, 2))
    assert matrix.data.size == 8
    assert pairs(open_object(matrix)) == [(0, 1), (3, 2)]


@pytest.mark.parametrize(
    ("format", "expected"),
    [("coo", [(0, 1), (1, 2), (1, 2)]), ("csr", [(0, 1), (1, 2)]), ("csc", [(0, 1), (1, 2)])],
)
def test_stored_zeros_and_repeated_entries_are_edges(format, expected):
    entries = scipy.sparse.coo_array(([0.0, 1, -1], ([0, 1, 1], [1, 2, 2])), shape=(3, 3))
    assert pairs(open_object(entries.asformat(format))) == expected
