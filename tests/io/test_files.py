"""Finding files, opening them decompressed, detecting their formats, and combining several of them."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import zipfile
from types import ModuleType

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dasktc.errors import DasktcError, InputError
from dasktc.io.files import FORMATS, Format, detect, open_source
from dasktc.io.formats import listing, streams
from dasktc.io.source import ReadOptions
from tests.support.formats import edges

TEXT = b"".join(b"%d %d\n" % (i, i * i % 1009) for i in range(5000))
PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def refused(call, *args, says, **options):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    for words in [says] if isinstance(says, str) else says:
        assert words in text
    return text


@pytest.fixture
def tree(tmp_path):
    """A folder as data writers leave it."""
    names = ["a.txt", "b.csv.gz", "sub/c.txt", "sub/deep/d.txt", "web.graph"]
    beside = [
        *(".hidden", "_SUCCESS", "_metadata", "_common_metadata", ".crc/x", "_temporary/0/part"),
        *("web.properties", "web.offsets", "web.ef", "__MACOSX/a.txt"),
    ]
    for name in names + beside:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1 2\n")
    return tmp_path, [str(tmp_path / name) for name in names]


# What a source names


def test_a_file_is_itself(tree):
    folder, _ = tree
    for name in ("a.txt", ".hidden", "_SUCCESS", "web.properties"):
        assert listing.expand(str(folder / name)) == [str(folder / name)]
    assert listing.expand(folder / "a.txt") == [str(folder / "a.txt")]


def test_a_folder_is_everything_in_it_but_what_stands_beside_the_data(tree):
    folder, names = tree
    assert listing.expand(str(folder)) == sorted(names)
    assert listing.expand(str(folder) + "/") == sorted(names)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.txt", ["a.txt"]),
        ("?.*", ["a.txt", "b.csv.gz"]),
        ("**/*.txt", ["a.txt", "sub/c.txt", "sub/deep/d.txt"]),
        ("s*", ["sub/c.txt", "sub/deep/d.txt"]),
        ("*", ["a.txt", "b.csv.gz", "sub/c.txt", "sub/deep/d.txt", "web.graph"]),
        ("web.*", ["web.graph"]),
        ("[ab].*", ["a.txt", "b.csv.gz"]),
    ],
)
def test_a_pattern_is_what_matches(tree, pattern, wanted):
    folder, _ = tree
    assert listing.expand(f"{folder}/{pattern}") == [str(folder / name) for name in wanted]


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path):
    (tmp_path / "a[1].txt").write_bytes(b"1 2\n")
    assert listing.expand(str(tmp_path / "a[1].txt")) == [str(tmp_path / "a[1].txt")]


def test_side_files_stay_when_their_graph_is_elsewhere(tmp_path):
    (tmp_path / "x.properties").write_bytes(b"1 2\n")
    assert listing.expand(str(tmp_path)) == [str(tmp_path / "x.properties")]


def test_home_is_expanded(tmp_path, monkeypatch):
    (tmp_path / "g.txt").write_bytes(b"1 2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert listing.expand("~/g.txt") == [str(tmp_path / "g.txt")]


@pytest.mark.parametrize("name", ["", "_SUCCESS", ".hidden", "_temporary/x"])
def test_a_folder_without_data_is_refused(tmp_path, name):
    if name:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    refused(listing.expand, str(tmp_path), says=["directory without edges", str(tmp_path)])


def write(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


TABLES = {
    "Delta Lake": ("_delta_log/0.json", "deltalake.DeltaTable("),
    "Apache Hudi": (".hoodie/hoodie.properties", "hudi.HudiTableBuilder"),
    "Apache Iceberg": ("metadata/0.metadata.json", "pyiceberg.table.StaticTable"),
}


@pytest.mark.parametrize("format", TABLES)
@pytest.mark.parametrize(
    "source",
    [
        *("lake", "lake/edges", "lake/edges/data", "lake/edges/data/day=1"),
        *("lake/edges/*.parquet", "lake/**/*.parquet", "lake/*/data/*.parquet", "lake/*/data/day=1", "lake/e*"),
        *("lake/edges/data/day=1/*.parquet", "lake/e*/data/x.parquet"),
    ],
)
def test_tables_with_versions_are_refused_however_they_are_reached(tmp_path, format, source):
    name, advice = TABLES[format]
    table = tmp_path / "lake" / "edges"
    write(table, **{name: b"{}", "data/x.parquet": b"PAR1", "data/day=1/x.parquet": b"PAR1"})
    said = refused(listing.expand, str(tmp_path / source), says=[f"{table} is a table of {format}", advice])
    assert len(said) < 500 + len(str(tmp_path))
    assert listing.expand(str(table / "data" / "x.parquet")) == [str(table / "data" / "x.parquet")]


@pytest.mark.parametrize("format", TABLES)
def test_named_files_of_a_table_are_read_which_is_said_once(tmp_path, caplog, format):
    names = ["data/a.txt", "data/day=1/b.txt", "data/day=2/c.txt"]
    write(tmp_path, **dict.fromkeys(names, b"1 2\n3 4\n"), **{TABLES[format][0]: b"{}"})
    assert len(edges([str(tmp_path / name) for name in names], skip=0)) == 6
    (record,) = caplog.records
    assert f"3 files of {tmp_path}, a table of {format}, are read because they are named" in record.getMessage()


def test_a_table_behind_a_url_is_refused(memory):
    memory({"lake/_delta_log/0.json": b"{}", "lake/x.parquet": b"PAR1"})
    for source in ("memory://files/lake", "memory://files/lake/*.parquet", "memory://files"):
        refused(listing.expand, source, says=["is a table of Delta Lake", "DeltaTable(URL)"])
    assert listing.expand("memory://files/lake/x.parquet") == ["memory://files/lake/x.parquet"]


def test_other_folders_named_metadata_are_read(tmp_path):
    write(tmp_path, **{"metadata/x.txt": b"1 2\n", "data/y.txt": b"1 2\n"})
    assert len(listing.expand(str(tmp_path))) == 2
    assert len(listing.expand(str(tmp_path / "data"))) == 1


LEFT_OVER = [
    "a.txt~",
    "a.txt.bak",
    "b.BAK",
    ".a.txt.swp",
    "a.orig",
    "a.txt.tmp",
    "#a.txt#",
    "a.txt.part",
    "c.crdownload",
]


def test_copies_and_incomplete_files_are_not_read_which_is_said_once(tmp_path, caplog):
    write(tmp_path, **dict.fromkeys(["a.txt", "part-0", "sub/a.txt~", *LEFT_OVER], b"1 2\n"))
    for source, files in ((tmp_path, ["a.txt", "part-0"]), (tmp_path / "a*", ["a.txt"]), (tmp_path / "**", None)):
        caplog.clear()
        found = listing.expand(str(source))
        assert found == [str(tmp_path / name) for name in files or ["a.txt", "part-0"]]
        (record,) = caplog.records
        assert "not read" in record.getMessage()
    for pattern, name in (("*.bak", "a.txt.bak"), ("*~", "a.txt~"), ("#*#", "#a.txt#"), ("a.txt.part", "a.txt.part")):
        assert listing.expand(str(tmp_path / pattern)) == [str(tmp_path / name)]


def test_missing_files_are_refused(tmp_path):
    refused(listing.expand, str(tmp_path / "none.txt"), says=["none.txt", "does not exist"])
    refused(listing.expand, str(tmp_path / "*.none"), says=["*.none", "no file matches"])
    refused(streams.head, str(tmp_path / "none.txt"), says=["none.txt", "does not exist"])
    refused(streams.size, str(tmp_path / "none.txt"), says=["none.txt", "does not exist"])
    refused(streams.open_decompressed, str(tmp_path), says="cannot be opened")


@pytest.mark.parametrize("error", [MemoryError("8 bytes"), InputError("the reader's own words"), DasktcError("x")])
def test_what_is_no_fault_of_the_file_passes(error):
    with pytest.raises(type(error)) as raised, streams.naming("edges.txt"):
        raise error
    assert raised.value is error


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(listing.expand, str(tmp_path / "pipe"), says=["pipe", "not a regular file"])


# URLs


@pytest.fixture
def memory():
    """Files in fsspec's in-memory file system, by name."""
    fs = fsspec.filesystem("memory")

    def put(contents):
        for name, data in contents.items():
            fs.pipe_file(f"/files/{name}", data)

    yield put
    if fs.exists("/files"):
        fs.rm("/files", recursive=True)


def test_urls_of_files_folders_and_patterns(memory):
    names = ["a.txt", "b.txt", "sub/c.csv", "_SUCCESS", ".hidden", "_temporary/x.txt"]
    memory(dict.fromkeys(names, b"1 2\n"))
    assert listing.expand("memory://files/a.txt") == ["memory://files/a.txt"]
    assert listing.expand("memory://files/*.txt") == ["memory:///files/a.txt", "memory:///files/b.txt"]
    wanted = [f"memory:///files/{name}" for name in names[:3]]
    assert listing.expand("memory://files") == wanted
    assert edges("memory://files") == [(1, 2)] * 3


class Hosted(MemoryFileSystem):
    protocol = "hosted"
    store, pseudo_dirs = {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.partition("://")[2].partition("/")[2].strip("/") if "://" in path else path.rstrip("/")


def test_folders_and_patterns_keep_their_host():
    fsspec.register_implementation("hosted", Hosted, clobber=True)
    Hosted().pipe_file("/day/a.txt", b"1 2\n")
    Hosted().pipe_file("/day/b.txt", b"1 2\n")
    for source in ("day", "day/", "day/*.txt", "*/*.txt"):
        wanted = [f"hosted://u:p@h:21/day/{name}.txt" for name in "ab"]
        assert listing.expand(f"hosted://u:p@h:21/{source}") == wanted


def test_chained_urls_keep_their_chain(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("g/a.txt", "1 2\n")
        archive.writestr("g/b.txt", "3 4\n")
    chain = f"::file://{tmp_path}/z.zip"
    assert listing.expand("zip://g/*.txt" + chain) == [f"zip://g/{name}.txt{chain}" for name in "ab"]
    assert edges("zip://g/*.txt" + chain) == [(1, 2), (3, 4)]


def test_a_remote_file_is_decompressed_and_cut_as_a_local_one(memory):
    memory({"g.txt": TEXT, "g.gz": gzip.compress(TEXT)})
    wanted = edges("memory://files/g.gz")
    assert len(wanted) == 5000
    assert edges("memory://files/g.txt", blocksize=1000) == wanted
    assert streams.size("memory://files/g.txt") == len(TEXT)
    assert streams.read_range("memory://files/g.txt", 10, 20) == TEXT[10:20]
    assert streams.is_archive("memory://files/g.gz")


def test_file_urls_are_files(tmp_path):
    for name, of_url in ("g.txt", "g.txt"), ("a b#é.txt", "a%20b%23%C3%A9.txt"), ("a%20b.txt", "a%20b.txt"):
        (tmp_path / name).write_bytes(TEXT)
        assert len(edges(f"file://{tmp_path}/{of_url}", blocksize=1000)) == 5000
        assert listing.expand(f"file://{tmp_path}/{of_url}") == [str(tmp_path / name)]


def test_bad_urls_are_refused(memory):
    memory({"a.txt": b"1 2\n"})
    refused(listing.expand, "memory://files/none.txt", says=["memory://files/none.txt", "does not exist"])
    refused(listing.expand, "memory://files/*.none", says="no file matches")
    refused(listing.expand, "nothing://x/y", says=["nothing://x/y", "nothing"])
    refused(streams.head, "memory://files/none.txt", says="does not exist")


def test_local_files_are_read_without_fsspec(tmp_path):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(TEXT))
    code = (
        "import sys; from dasktc.io.formats import listing, streams\n"
        f"assert streams.head({str(path)!r}, 3) == b'0 0' and listing.expand({str(path)!r})\n"
        "print([name for name in ('fsspec', 'pandas', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Compression


@pytest.mark.parametrize("name", ["g.txt", "g.gz", "g"])
@pytest.mark.parametrize("kinds", [(), *((kind,) for kind in PACK), ("gz", "gz"), ("xz", "zst", "bz2", "gz")])
def test_archives_are_known_by_their_first_bytes(tmp_path, name, kinds):
    data = TEXT
    for kind in kinds:
        data = PACK[kind](data)
    path = tmp_path / name
    path.write_bytes(data)
    assert streams.is_archive(str(path)) == bool(kinds)
    assert streams.size(str(path)) == len(data)
    assert streams.head(str(path), 100) == TEXT[:100]
    assert streams.head(str(path), 1 << 20) == TEXT
    with streams.open_decompressed(str(path)) as stream:
        assert stream.readline() == b"0 0\n"
        assert stream.read() == TEXT[4:]
    assert len(edges(str(path))) == 5000


@pytest.mark.parametrize("kind", PACK)
def test_archives_may_be_joined(tmp_path, kind):
    path = tmp_path / "g"
    path.write_bytes(PACK[kind](TEXT) + PACK[kind](b"7 8\n"))
    assert streams.head(str(path), 1 << 20) == TEXT + b"7 8\n"


def read_all(path):
    with streams.open_decompressed(str(path)) as stream:
        assert stream.readline() == b"0 0\n"
        return stream.read()


@pytest.fixture(scope="module", params=PACK)
def archive(request):
    """An archive that is larger than a stream's buffer."""
    noise = np.random.default_rng(1).integers(0, 1 << 60, (30_000, 2)).tolist()
    return PACK[request.param](b"0 0\n" + b"".join(b"%d %d\n" % (u, v) for u, v in noise))


@pytest.mark.parametrize("left", [0.01, 0.2, 0.7, -1])
def test_a_truncated_archive_is_refused_wherever_the_end_is_met(tmp_path, archive, left):
    data = archive
    path = tmp_path / "g"
    path.write_bytes(data[: int(len(data) * left) if left > 0 else left])
    refused(read_all, path, says=[str(path), "cut short"])
    refused(edges, str(path), says=str(path))


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_damaged_archive_is_refused(tmp_path, kind):
    data = bytearray(PACK[kind](TEXT))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "g"
    path.write_bytes(data)
    refused(edges, str(path), says=[str(path), "damaged"])


def test_damage_in_an_inner_archive_is_named(tmp_path):
    path = tmp_path / "g"
    path.write_bytes(gzip.compress(PACK["zst"](TEXT)[:-30]))
    refused(edges, str(path), says=[str(path), "cut short"])


@pytest.mark.parametrize("kinds", [*((kind,) for kind in PACK), ("gz", "zst"), ("zst", "gz")])
def test_an_archive_damaged_in_its_first_block_leaves_no_file_open(tmp_path, monkeypatch, kinds):
    opened, open_file = [], streams._open
    monkeypatch.setattr(streams, "_open", lambda url: opened.append(open_file(url)) or opened[-1])
    inner, *outer = kinds
    data = PACK[inner](TEXT)[:-12]
    for kind in outer:
        data = PACK[kind](data)
    path = tmp_path / "g"
    path.write_bytes(data)
    refused(streams.open_decompressed, str(path), says=[str(path), "cut short"])
    assert [(stream.closed, stream.raw.closed) for stream in opened] == [(True, True)]


def test_archives_inside_archives_without_end_are_refused(tmp_path):
    data = TEXT
    for _ in range(9):
        data = gzip.compress(data)
    (tmp_path / "g").write_bytes(data)
    refused(streams.head, str(tmp_path / "g"), says="more than 8 times")


@pytest.mark.parametrize("text", [b"BZh9 is a name\n", b"BZh", b"\x1f\x8b", b"PK 1\n", b""])
def test_what_only_begins_like_an_archive_is_none(tmp_path, text):
    (tmp_path / "g").write_bytes(text)
    assert not streams.is_archive(str(tmp_path / "g"))
    assert streams.head(str(tmp_path / "g")) == text


def test_read_range(tmp_path):
    (tmp_path / "g").write_bytes(TEXT)
    assert streams.read_range(str(tmp_path / "g"), 7, 19) == TEXT[7:19]
    assert streams.read_range(str(tmp_path / "g"), len(TEXT) - 2, len(TEXT) + 9) == TEXT[-2:]


# Formats


def zipped(member):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, b"1 2\n" * 100)
    return file.getvalue()


BINARY = bytes(range(256))


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("g.txt", b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", "mtx"),
        ("g.mtx.gz", b"%%matrixmarket matrix coordinate pattern general\n2 2 1\n1 2\n", "mtx"),
        ("g.mtx", b"1 2\n2 3\n", "text"),
        ("g", b"PAR1\x15\x04", "parquet"),
        ("g", b"\x93NUMPY\x01\x00", "npy"),
        ("g", zipped("indices.npy"), "npz"),
        ("g.graph", b"2 1\n2\n1\n", "metis"),
        ("g.graph.gz", b"2 1\n2\n1\n", "metis"),
        ("g.METIS.xz", b"2 1\n2\n1\n", "metis"),
        ("g.graph", BINARY, "bvgraph"),
        ("g.graph.gz", BINARY, "bvgraph"),
        ("g.properties", b"#BVGraph properties\nnodes=1\n", "bvgraph"),
        ("g.smat", b"2 2 1\n0 1 1\n", "smat"),
        ("g.jlg.gz", b"3,1,u,graph\n1,2\n", "lg"),
        ("g", b"3,1,u,graph\n1,2\n", "lg"),
        ("g.csv.bz2", b"1,2\n", "csv"),
        ("g.tsv", b"1\t2\n", "text"),
        ("g.edgelist", b"1 2\n", "text"),
        ("g.txt.zst.gz", b"1 2\n", "text"),
        ("g", b"", "text"),
        ("s3://bucket/g.graph", b"2 1\n2\n1\n", "metis"),
    ],
)
def test_formats_are_told_by_content_then_by_name(name, head, format):
    assert detect(name, head) == format
    assert format in FORMATS


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (zipped("g.txt"), "zip"),
        (BINARY, "binary"),
        (b"<?xml version='1.0'?><graphml>", "XML"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b'{"nodes": []}', "JSON"),
        (b"graph [\n  node [\n", "GML"),
        (b"graph\n[\n  node [\n", "GML"),
        (b"strict digraph {\n a -> b\n", "DOT"),
        (b"*Vertices 3\n", "Pajek"),
        (b"// a\n/* b\n c */ graph G {\n a -- b\n", "DOT"),
        (b"# made by\n\n# hand\ngraph [\n  node [\n", "GML"),
        (b"% a comment\n*Vertices 3\n", "Pajek"),
        (b"*Network g\n*Vertices 3\n", "Pajek"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><graphml>", "XML"),
        (b'\xef\xbb\xbf{"nodes": []}', "JSON"),
        (b"c by hand\nc\np edge 3 2\ne 1 2\n", "DIMACS"),
        (b"p sp 3 2\r\na 1 2 7\r\n", "DIMACS"),
        (b"<http://a> <http://p> <http://b> .\n", "columns=(0, 2)"),
        (b"@prefix e: <http://e/> .\n", "RDF"),
        (b">>graph6<<Bw\n", "graph6"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4c\nsize 8\n", "git lfs pull"),
        (b"404: Not Found", "fetch the file itself"),
        (b"1 2\n2 3\n1 3\n\x1a", "b'\\x1a' from byte 12 on"),
        (b"nodedef>name VARCHAR\n", "GDF"),
        (b"dl n=3 format=edgelist1\n", "UCINET"),
        (zipped("[Content_Types].xml"), "Excel workbook: save its sheet as CSV"),
        (b"1\x00,\x002\x00\r\x00\n\x002\x00,\x003\x00", "UTF-16LE"),
        (b"\x001\x00,\x002\x00\n\x002\x00,\x003\x00\n", "UTF-16BE"),
        (b"\xff\xfe1\x00 \x002\x00", "UTF-16"),
        (b"\xff\xfe\x00\x001\x00\x00\x00", "UTF-32"),
        (b"\x00\x00\xfe\xff\x00\x00\x001", "UTF-32"),
        (b"ARROW1\x00\x00", "Arrow"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x80\x04\x95", "pickle"),
        (b"\x1f\x9d\x90", "unpack"),
        (b"7z\xbc\xaf\x27\x1c", "unpack"),
    ],
)
def test_what_is_not_read_is_named_with_the_way_out(head, says):
    refused(detect, "g.dat", head, says=["g.dat", says, "format=...", ", ".join(FORMATS)])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("g.adjlist", "adjacency list"),
        ("g.lgl.gz", "lines with # are vertices"),
        ("g.sif", "columns=(0, 2)"),
        ("g.tgf", "sed"),
    ],
)
def test_text_that_looks_like_edges_and_holds_others_is_refused_by_its_name(name, says):
    refused(detect, name, b"1 2 3 4\n", says=[says, "format=..."])


@pytest.mark.parametrize(
    "head", [b"//" * 20_000, b"c x\r\n" * 9000, b"/*/" * 20_000, b"# c\r\n" * 9000, b"\n" * 60_000]
)
def test_a_head_that_begins_like_another_format_is_told_at_once(head):
    assert detect("g.txt", head) == "text"


@pytest.mark.parametrize("word", ["graph theory\n", "graph theory {}\n", "creator admin\n", "digraph a\n", "BZh 1\n"])
def test_names_that_are_words_of_other_formats_are_names(word):
    assert detect("g.txt", word.encode()) == "text"


def test_a_named_format_is_taken_at_its_word(tmp_path):
    path = tmp_path / "g.graph"
    path.write_bytes(b"0 1\n1 2\n0 2\n")
    assert edges(str(path), format="text") == [(0, 1), (1, 2), (0, 2)]
    refused(edges, str(path), format="parquet", says=str(path))
    refused(edges, str(path), format="spreadsheet", says=["'spreadsheet'", *FORMATS])


ARCS = [(0, 1), (1, 2), (2, 0)]


def array_file(save, **arrays):
    def write(path):
        with open(path, "wb") as file:
            save(file, **arrays)

    return write


# Of each format: a file's name, what writes it (or its bytes), and the options that it takes.
SAMPLES = {
    "text": ("g.txt", b"0 1\n1 2\n2 0\n", {"columns", "ids", "skip"}),
    "csv": ("g.csv", b"0,1\n1,2\n2,0\n", {"columns", "ids", "skip"}),
    "mtx": ("g.mtx", b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", set()),
    "metis": ("g.graph", b"2 1\n2\n1\n", set()),
    "smat": ("g.smat", b"3 3 3\n0 1 1\n1 2 1\n2 0 1\n", set()),
    "ligra": ("g.adj", b"AdjacencyGraph\n3\n3\n0\n1\n2\n1\n2\n0\n", set()),
    "lg": ("g.lg", b"3,3,d,g\n1,2\n2,3\n3,1\n", set()),
    "parquet": (
        "g.parquet",
        pd.DataFrame(ARCS, columns=["src", "dst"]).to_parquet,
        {"columns", "ids"},
    ),
    "npy": ("g.npy", array_file(np.save, arr=np.array(ARCS)), set()),
    "npz": ("g.npz", array_file(np.savez, src=[0, 1, 2], dst=[1, 2, 0]), {"columns"}),
    "bvgraph": ("g.graph", bytes([0b01010110, 0b10101000, 0]), set()),  # 0 to 1, 1 to 0
}
PROPERTIES = b"graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=2\narcs=2\nwindowsize=0\nminintervallength=0\n"


@pytest.fixture
def sample(tmp_path):
    """A function that writes the sample of a format."""

    def write(format):
        name, contents, _ = SAMPLES[format]
        if callable(contents):
            contents(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(contents)
        if format == "bvgraph":
            (tmp_path / "g.properties").write_bytes(PROPERTIES)
        return str(tmp_path / name)

    return write


def test_every_format_has_a_sample():
    assert list(SAMPLES) == list(FORMATS)


def test_a_format_is_a_module_and_one_entry_of_the_registry(tmp_path, monkeypatch):
    """The entry has its reader, its magic bytes, its suffixes and its options: no other module knows a format."""
    seen = []
    reader = ModuleType("dasktc.io.formats.pairs")
    reader.looks_like = lambda head: head.startswith(b"PAIRS")
    reader.parts = lambda url, options: (seen.append((url, options.columns)) or [], "int")
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    monkeypatch.setitem(FORMATS, "pairs", Format("pairs", (".prs",), by_content=True, options=frozenset({"columns"})))
    (tmp_path / "a.prs.gz").write_bytes(gzip.compress(b"0 1\n"))
    (tmp_path / "b.txt").write_bytes(b"PAIRS\n0 1\n")
    paths = [str(tmp_path / name) for name in ("a.prs.gz", "b.txt")]
    assert open_source(str(tmp_path), ReadOptions(columns=("0", "1"))).parts == ()
    assert seen == [(path, ("0", "1")) for path in paths]
    refused(open_source, paths[0], ReadOptions(skip=1), says=["skip=1", "format pairs:"])


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("option", "value", "given", "change"),
    [
        ("columns", ("1", "0"), "columns=('1', '0')", lambda arcs: [(v, u) for u, v in arcs]),
        ("ids", "text", "ids='text'", lambda arcs: [(str(u), str(v)) for u, v in arcs]),
        ("skip", 1, "skip=1", lambda arcs: arcs[1:]),
        ("skip", 0, "skip=0", lambda arcs: arcs),
    ],
)
@pytest.mark.parametrize("format", SAMPLES)
def test_an_option_is_honoured_or_refused(sample, format, option, value, given, change, named):
    path = sample(format)
    options = {option: value} | ({"format": format} if named else {})
    if option in SAMPLES[format][2]:
        assert edges(path, **options) == change(ARCS)
    else:
        refused(open_source, path, ReadOptions(**options), says=[given, path, f"format {format}:", "format=..."])


@pytest.mark.parametrize("format", SAMPLES)
def test_ids_that_are_integers_may_be_asked_for(sample, format):
    path = sample(format)
    assert edges(path, ids="int") == edges(path) != []


@pytest.mark.parametrize("format", ["parquet", "npy", "npz"])
def test_a_binary_file_is_not_read_as_another(sample, format):
    for other in {"parquet", "npy", "npz"} - {format}:
        refused(edges, sample(format), format=other, says=[f"no {other} file", "format=..."])


def test_a_sparse_matrix_has_no_columns_to_choose_from(tmp_path):
    import scipy.sparse

    path = str(tmp_path / "g.npz")
    scipy.sparse.save_npz(path, scipy.sparse.coo_array(([1, 1], ([0, 1], [1, 2])), shape=(3, 3)))
    assert edges(path) == [(0, 1), (1, 2)]
    refused(edges, path, columns=("row", "col"), says=["columns=('row', 'col')", path, "sparse matrix"])


def test_an_option_is_refused_for_the_file_that_has_no_use_for_it(tmp_path, sample):
    sample("text")
    metis = sample("metis")
    refused(edges, str(tmp_path), skip=1, says=[metis, "skip=1"])


# Several files


def test_several_files_are_one_source(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0 1\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"src,dst\n1,2\n"))
    (tmp_path / "c.graph").write_bytes(b"2 1\n2\n1\n")
    (tmp_path / "d.txt").write_bytes(b"")
    source = open_source(str(tmp_path), ReadOptions())
    assert (source.ids, source.name, len(source.parts)) == ("int", str(tmp_path), 3)
    found = {frozenset(edge) for edge in edges(str(tmp_path))}
    assert found == {frozenset(pair) for pair in [(0, 1), (1, 2)]}
    assert edges([tmp_path / "a.txt", str(tmp_path / "b.csv.gz")]) == [(0, 1), (1, 2)]


def test_first_rows_of_several_files_are_told_from_edges_together(tmp_path, caplog):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_bytes(f"u,v\n{name},x\n".encode())
    assert edges(str(tmp_path)) == [("a", "x"), ("b", "x"), ("c", "x")]
    (said,) = [record.getMessage() for record in caplog.records]
    assert "a.csv, 'u,v', is taken for a header, as those of 2 other files are; use skip=1 if" in said
    for name in "abc":
        (tmp_path / f"{name}.csv").write_bytes(f"person,friend\n{name},x\n".encode())
    refused(edges, str(tmp_path), says=["a.csv holds 'person,friend'", "3 files begin", "skip=1", "skip=0"])
    assert len(edges(str(tmp_path), skip=1)) == 3
    assert len(edges(str(tmp_path), skip=0)) == 6


def test_integers_and_text_do_not_go_together_unless_asked(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0 1\n")
    (tmp_path / "b.txt").write_bytes(b"x y\n")
    refused(edges, str(tmp_path), says=["a.txt", "b.txt", "ids='text'"])
    assert edges(str(tmp_path), ids="text") == [("0", "1"), ("x", "y")]


def test_sources_without_files_are_refused(tmp_path):
    refused(edges, [], says="no source")
    (tmp_path / "a.txt").write_bytes(b"")
    refused(edges, str(tmp_path / "a.txt"), says="no data line")
    (tmp_path / "b.txt").write_bytes(b"")
    refused(edges, str(tmp_path), says="empty")
