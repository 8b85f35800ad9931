"""Graphs in tar archives, as collections publish them: which file has the edges, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile

import pyarrow as pa
import pytest

import dasktc
from dasktc.errors import InputError
from dasktc.io.formats import tar

EDGES = b"1 2\n2 3\n3 1\n3 4\n"
MTX = b"%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n2 1\n3 2\n3 1\n4 3\n"
VECTOR = b"%%MatrixMarket matrix array real general\n4 1\n1\n2\n3\n4\n"
KONECT = {
    "g/": None,
    "g/README.g": b"about g\n",
    "g/meta.g": b"name: g\n",
    "g/ent.g.person.name": b"Ada\nBob\nCy\nDi\n",
    "g/out.g": b"% sym unweighted\n% 4 4 4\n" + EDGES,
}
SUITE_SPARSE = {"g/g_b.mtx": VECTOR, "g/g.mtx": MTX, "g/g_nodename.txt": b"Ada\nBob\nCy\nDi\n"}


def archive(members: dict[str, bytes | None], format: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as file:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.type, member.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            file.addfile(member, None if data is None else io.BytesIO(data))
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize("name", ["g.tar", "g.tar.gz", "g.tar.bz2", "g.tar.xz", "g.tar.zst", "g"])
@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_the_one_file_of_edges_is_read(tmp_path, name, format):
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}.get(name.split(".")[-1], bytes)
    (tmp_path / name).write_bytes(pack(archive({"data": None, "data/README.txt": b"x", "data/é.csv": EDGES}, format)))
    result = dasktc.triangle_count(tmp_path / name)
    assert (int(result), result.vertices, result.edges) == (1, 4, 4)


@pytest.mark.parametrize("members", [KONECT, SUITE_SPARSE], ids=["KONECT", "SuiteSparse"])
def test_archives_of_collections(tmp_path, members):
    (tmp_path / "g.tar.gz").write_bytes(gzip.compress(archive(members)))
    result = dasktc.triangle_count(tmp_path / "g.tar.gz")
    assert (int(result), result.vertices, result.edges) == (1, 4, 4)


def test_the_format_is_that_of_the_member(tmp_path):
    graph = b"3 3\n2 3\n1 3\n1 2\n"
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(archive({"triangle.graph": graph})))
    (tmp_path / "b.tar").write_bytes(archive({"triangle.graph.gz": gzip.compress(graph)}))
    assert [int(dasktc.triangle_count(tmp_path / name)) for name in ("a.tar.gz", "b.tar")] == [1, 1]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"README": b"x"}, "without a file of edges; unpack"),
        ({"a.txt": EDGES, "b.txt": EDGES}, r"several files, a.txt and b.txt among them.*; unpack"),
        ({"a.json": b'{"edges": []}'}, "g.tar/a.json is JSON"),
    ],
    ids=str,
)
def test_which_archives_are_refused(tmp_path, members, says):
    (tmp_path / "g.tar").write_bytes(archive(members))
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(tmp_path / "g.tar")


def test_damage_is_told(tmp_path):
    whole = archive({"data.txt": EDGES * 1000})
    wrong = bytearray(whole)
    wrong[0] ^= 1  # its checksum does not hold
    for data in (bytes(wrong), whole[:3000]):
        (tmp_path / "g.tar").write_bytes(data)
        with pytest.raises(InputError, match=r"damaged or was cut short.*; fetch it again"):
            dasktc.triangle_count(tmp_path / "g.tar")


def test_headers_without_end_are_refused(tmp_path):
    (tmp_path / "g.tar").write_bytes(archive({"n" * (1 << 23): EDGES}))
    with pytest.raises(InputError, match="more than 4,194,304 bytes of names"):
        dasktc.triangle_count(tmp_path / "g.tar")


def test_large_files_beside_the_edges_are_passed_over(tmp_path):
    (tmp_path / "g.tar").write_bytes(archive({"README": bytes(2 * tar._HEADERS), "data.txt": EDGES}))
    assert int(dasktc.triangle_count(tmp_path / "g.tar")) == 1
