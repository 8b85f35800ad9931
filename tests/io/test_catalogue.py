"""Graphs of public collections by name, against a server on the loopback, and the graphs that come with the package."""

import hashlib
import io
import tarfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import dasktc
from dasktc.cli.main import main
from dasktc.errors import CountError, InputError
from dasktc.io import catalogue
from tests.support import oracle

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3), (1, 0)]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *of):
        pass

    def send_head(self):
        if self.path.startswith("/busy/"):
            return self.send_error(503)
        return super().send_head()


@contextmanager
def serving(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def archive(mode, members):
    """A tar archive of texts, as KONECT and SuiteSparse publish graphs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as file:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A collection `small` with one right graph, one whose published count is another, and some that do not come."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "files").mkdir()
    data = "".join(f"{u}\t{v}\n" for u, v in EDGES).encode()
    (tmp_path / "files" / "g.txt").write_bytes(b"# a small graph\n" + data)
    digest = hashlib.md5((tmp_path / "files" / "g.txt").read_bytes()).hexdigest()
    rows = "".join(f"{u + 1} {v + 1} 1 0\n" for u, v in EDGES)
    (tmp_path / "files" / "download.tsv.k.tar.bz2").write_bytes(
        archive("w:bz2", {"k/README.k": "A graph", "k/out.k": f"% asym\n% 6 4 4\n{rows}", "k/meta.k": "name: k"})
    )
    entries = "".join(f"{u + 1} {v + 1}\n" for u, v in EDGES)
    (tmp_path / "files" / "s.tar.gz").write_bytes(
        archive("w:gz", {"s/s.mtx": f"%%MatrixMarket matrix coordinate pattern general\n4 4 6\n{entries}"})
    )
    with serving(tmp_path / "files") as address:
        graphs = [
            catalogue.PublicGraph("small:k", f"{address}/download.tsv.k.tar.bz2", 4, 6, 1),
            catalogue.PublicGraph("small:group/s", f"{address}/s.tar.gz", 4, 6),
            catalogue.PublicGraph("small:right", f"{address}/g.txt", 4, 6, 1, digest),
            catalogue.PublicGraph("small:wrong", f"{address}/g.txt", 4, 6, 2),
            catalogue.PublicGraph("small:damaged", f"{address}/g.txt", 4, 6, 1, "0" * 32),
            catalogue.PublicGraph("small:absent", f"{address}/h.txt", 4, 6, 1),
            catalogue.PublicGraph("small:refused", f"{address}/busy/g.txt", 4, 6, 1),
            catalogue.PublicGraph("small:away", "http://127.0.0.1:9/g.txt", 4, 6, 1),
        ]
        monkeypatch.setattr(catalogue, "catalogue", lambda: {graph.name: graph for graph in graphs})
        yield tmp_path


def test_a_graph_is_fetched_once_and_its_count_is_the_published_one(collection, capsys):
    assert main(["count", "small:right"]) == 0
    assert "triangles  1\n" in capsys.readouterr().out
    (collection / "files" / "g.txt").unlink()
    assert int(dasktc.triangle_count("small:right")) == 1
    frame = dasktc.datasets.load("small:right")
    assert [*frame.itertuples(index=False, name=None)] == EDGES
    assert dasktc.datasets.fetch("small:right").read_bytes().startswith(b"# a small graph")


@pytest.mark.parametrize("name", ["small:k", "small:group/s"])
def test_graphs_in_archives_are_read_where_they_lie(collection, name):
    result = dasktc.triangle_count(name)
    assert (int(result), result.vertices, result.edges) == (1, 4, 4)
    assert dasktc.datasets.load(name)[["src", "dst"]].to_numpy().tolist() == [[u + 1, v + 1] for u, v in EDGES]
    assert len([path for path in (collection / "cache").rglob("*") if path.is_file()]) == 1


def test_another_count_than_the_published_one_is_an_error(collection):
    with pytest.raises(CountError, match="1 triangle counted, but 2 are known for small:wrong"):
        dasktc.triangle_count("small:wrong")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("small:damaged", "MD5 sum .* not the published 0000"),
        ("small:absent", "does not exist"),
        ("small:refused", "cannot be opened: 503, .*; check the address, the network and your rights"),
        ("small:away", "cannot be opened: .*; check the address, the network and your rights"),
        ("small:rigth", "perhaps small:right "),
        ("small:x0y1z2q3w4", "another collection or name"),
    ],
)
def test_what_cannot_be_fetched_is_refused_and_leaves_no_file(collection, name, says):
    with pytest.raises(InputError, match=says):
        dasktc.triangle_count(name)
    assert [path for path in (collection / "cache").rglob("*") if path.is_file()] == []


def test_a_file_of_that_name_and_other_names_with_colons_are_files(collection, monkeypatch):
    monkeypatch.chdir(collection)
    (collection / "small:right").write_text("0 1\n")
    assert int(dasktc.triangle_count("small:right")) == 0
    with pytest.raises(InputError, match="other:right does not exist"):
        dasktc.triangle_count("other:right")
    with pytest.raises(InputError, match="names no graph of a collection"):
        dasktc.datasets.load("other:right")


def test_the_catalogue_is_a_table_of_addresses_and_published_numbers():
    frame = dasktc.datasets.catalogue()
    assert list(frame.columns) == ["name", "address", "vertices", "edges", "triangles"]
    assert frame.name.is_unique
    assert frame.name.str.fullmatch(r"[a-z-]+:(\w+/)?[\w-]+").all()
    assert frame.address.str.fullmatch(r"https?://[\w./-]+").all()
    assert (frame[["vertices", "edges"]] > 0).all(axis=None)
    collection = frame.name.str.split(":").str[0]
    assert set(collection) == {"snap", "graph-challenge", "konect", "suitesparse"}
    assert (frame.triangles.isna() == (collection == "suitesparse")).all()
    assert (frame.triangles.dropna() > 0).all()
    known = dict(zip(frame.name, frame.triangles, strict=True))
    assert known["snap:amazon0601"] == 3_986_507


@pytest.mark.parametrize(("name", "vertices", "edges"), [("karate", 34, 78), ("email", 986, 16_064)])
def test_the_packaged_graphs(name, vertices, edges):
    frame = getattr(dasktc.datasets, name)()
    result = dasktc.triangle_count(frame)
    assert (result.vertices, result.edges) == (vertices, edges)
    assert int(result) == oracle.triangles(map(tuple, frame.to_numpy().tolist()))
