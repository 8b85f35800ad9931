"""Formats of lines against slow readers that follow their rules to the letter."""

import re
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from dasktc.io.formats import matrixmarket, metis, smat
from tests.io.formats.test_matrixmarket import mtx
from tests.support.formats import read, refused


def metis_slowly(vertices, edges, body):
    """The edges of a METIS file without weights, by a slow reader; None if the file is invalid."""
    rows = [row.split() for row in body.splitlines() if not row.strip(" \t").startswith("%")]
    found = [(v, int(field)) for v, row in enumerate(rows, 1) for field in row if field.isdecimal()]
    clean = all(field.isdecimal() and 1 <= int(field) <= vertices for row in rows for field in row)
    loops = sum(v == w for v, w in found)
    invisible = len(rows) == vertices - 1 and sorted(found) == sorted((w, v) for v, w in found)
    complete = (len(rows) >= vertices or invisible) and not any(rows[vertices:])
    return found if clean and complete and 2 * edges in (len(found), len(found) + loops) else None


def smat_slowly(rows, entries, body):
    """The edges of an SMAT file, by a slow reader; None if the file is invalid."""
    fields = [line.split() for line in body.split("\n") if line.strip()]
    with suppress(ValueError):
        found = [(int(row), int(column), float(value))[:2] for row, column, value in fields]
        if len(found) == entries and all(0 <= end < rows for edge in found for end in edge):
            return found
    return None


def entries_slowly(rows, entries, body):
    """The edges of a Matrix Market file with integer values and one-digit ids, by a slow reader; None if invalid."""
    lines_ = [line.strip() for line in body.split("\n") if line.strip()]
    found = [re.match(r"([0-9]+)\s+([0-9]+)\s+-?[0-9]", line) for line in lines_]
    if len(found) != entries or None in found:
        return None
    edges = [(int(match[1]), int(match[2])) for match in found]
    return edges if all(1 <= end <= rows for edge in edges for end in edge) else None


@given(
    format_=st.sampled_from(["metis", "smat", "mtx"]),
    size=st.integers(1, 4),
    count=st.integers(0, 3),
    body=st.lists(st.sampled_from(["1", "2", "3", "1 2", "2 1 1", "1 1 0", "\n", "\n", "\n", " ", "%", "4", "-"])),
    blocksize=st.sampled_from([1, 3, 30, 1 << 26]),
)
def test_any_text(tmp_path_factory, format_, size, count, body, blocksize):
    module, header, slowly = {
        "metis": (metis, f"{size} {count}\n", metis_slowly),
        "smat": (smat, f"{size} {size} {count}\n", smat_slowly),
        "mtx": (matrixmarket, mtx("integer", "general", f"{size} {size} {count}"), entries_slowly),
    }[format_]
    text = "".join(body)
    path = tmp_path_factory.mktemp("any") / "g.txt"
    path.write_text(header + text)
    expected = slowly(size, count, text)
    if expected is None:
        refused(module, path, blocksize=blocksize)
    else:
        assert read(module, path, blocksize=blocksize) == expected
