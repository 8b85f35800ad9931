"""Standard input (`-`) and binary file objects as sources."""

import bz2
import gzip
import io
import os
import signal
import subprocess
import tempfile

import pandas as pd
import pytest

import dasktc
from dasktc.errors import InputError
from tests.support.keywords import keywords
from tests.support.processes import DASKTC, until

EDGES = b"0 1\n1 2\n2 0\n2 3\n"


def parquet():
    file = io.BytesIO()
    pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0]}).to_parquet(file)
    return file.getvalue()


DATA = {
    "text": EDGES,
    "csv": b"source,target,weight\n0,1,5\n1,2,5\n2,0,5\n",
    "gzip": gzip.compress(EDGES),
    "bzip2 of gzip": bz2.compress(gzip.compress(EDGES)),
    "parquet": parquet(),
    "matrix market": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 1\n3 2\n",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of temporary files, which is empty after each test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def stdin(monkeypatch):
    """Put bytes on standard input."""

    def put(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_the_format_is_detected(place, stdin, data):
    stdin(data)
    assert int(dasktc.triangle_count("-")) == 1
    assert int(dasktc.triangle_count(io.BytesIO(data))) == 1


def test_an_open_file_is_read_from_where_it_stands(place, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes(b"9 9 9 9\n" + EDGES)
    with path.open("rb") as file:
        file.readline()
        assert int(dasktc.triangle_count(file)) == 1
        assert not file.closed
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
        file.write(EDGES)
        file.seek(0)
        assert dasktc.prepare(file).triangles().to_dict() == {0: 1, 1: 1, 2: 1, 3: 0}


def test_beside_other_files(place, stdin, tmp_path):
    (tmp_path / "more.txt").write_bytes(b"3 0\n")
    stdin(EDGES)
    assert int(dasktc.triangle_count(["-", str(tmp_path / "more.txt")])) == 2


def test_a_file_named_so_is_read_by_its_path(place, tmp_path, monkeypatch):
    (tmp_path / "-").write_bytes(EDGES)
    monkeypatch.chdir(tmp_path)
    assert int(dasktc.triangle_count("./-")) == 1


@pytest.mark.parametrize("options", [{}, {"memory": "20MB"}, {"threads": 2}], ids=str)
def test_where_it_is_read(place, stdin, tmp_path, options):
    work = tmp_path / "work"
    work.mkdir()
    stdin(EDGES)
    with dasktc.prepare("-", **keywords(work_dir=work, **options)) as graph:
        assert int(graph.triangle_count()) == 1
    assert list(work.iterdir()) == []


def test_workers_of_this_host_read_it(stdin, client):
    stdin(EDGES)
    assert int(dasktc.triangle_count("-", client)) == 1


@pytest.mark.parametrize(("source", "name"), [("-", "standard input"), (io.BytesIO(b"0 1\n1 x\n"), "the stream")])
def test_an_error_names_the_stream_and_not_its_file(place, stdin, source, name):
    stdin(b"0 1\n1 x\n")
    with pytest.raises(InputError, match=f"line 2 of {name} ") as error:
        dasktc.triangle_count(source, ids="int")
    assert str(place) not in str(error.value)


class Elsewhere:
    """A client of a worker on another host."""

    submit = None

    def scheduler_info(self, **_):
        return {"workers": {"tcp://192.0.2.1:40000": {}}}


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("-", {"scheduler": "tcp://192.0.2.1:8786"}, "but scheduler is given: its bytes go to a file of this host"),
        ("-", {"scheduler_file": "x.json"}, "but scheduler_file is given"),
        ("-", {"client": Elsewhere()}, "but a client of workers on other hosts is given"),
        (["-", "-"], {}, "standard input is named twice"),
        (io.StringIO("0 1\n"), {}, "StringIO yields text"),
        ("-", {"work_dir": "/nowhere/at/all"}, "is no folder"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(place, stdin, source, options, says):
    stdin(EDGES)
    with pytest.raises(InputError, match=says) as error:
        dasktc.triangle_count(source, **keywords(**options))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_closed_streams_are_refused(place, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    file = io.BytesIO(EDGES)
    file.close()
    for source in ("-", file):
        with pytest.raises(InputError, match="the stream is closed"):
            dasktc.triangle_count(source)


COMMANDS = {
    "count": ["count", "-", "--quiet"],
    "plan": ["plan", "-", "--quiet"],
    "estimate": ["estimate", "-", "--quiet"],
    "cliques": ["cliques", "-", "-k", "3", "--quiet"],
    "measures": ["measures", "-", "-o", "out.csv"],
    "truss": ["truss", "-", "-o", "out.csv"],
    "prepare": ["prepare", "-", "graph"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_reads_standard_input(place, stdin, tmp_path, monkeypatch, capfd, command):
    from dasktc.cli.main import main

    monkeypatch.chdir(tmp_path)
    stdin(EDGES)
    assert main(command) == 0
    out = capfd.readouterr().out
    assert out
    if command[0] in ("count", "cliques"):
        assert out == "1\n"
    elif command[0] in ("measures", "truss"):
        assert len(pd.read_csv("out.csv")) == 4
    elif command[0] == "prepare":
        assert int(dasktc.triangle_count("graph")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_no_file(tmp_path, number):
    process = subprocess.Popen(
        [*DASKTC, "count", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    try:
        process.stdin.write(EDGES * 100_000)
        process.stdin.flush()
        until(lambda: any(tmp_path.glob("*/stdin")))
        process.send_signal(number)
        err = process.stderr.read().decode()
        assert process.wait() == 128 + number
    finally:
        process.kill()
        process.communicate()
    assert list(tmp_path.iterdir()) == []
    said = ["dasktc: stopping", "dasktc: error: interrupted"] if number == signal.SIGINT else []
    assert [line.startswith(start) for line, start in zip(err.splitlines(), said, strict=True)] == [True] * len(said)


class Unread(io.BytesIO):
    """A stream that nobody may read."""

    def read1(self, size=-1):
        raise AssertionError("the stream was read")

    read = readinto = readline = read1


REFUSED = {
    "kernel": {"kernel": "nosuch"},
    "partition": {"partition": "nosuch"},
    "parts": {"partition": "edges", "parts": 0},
    "backend": {"backend": "nosuch"},
    "kernel of another backend": {"kernel": "short", "backend": "cpu"},
    "ids": {"ids": "nosuch"},
    "memory": {"memory": "much"},
    "too little memory": {"memory": 0},
    "one column": {"columns": ("a",)},
    "a column twice": {"columns": ("0", "0")},
    "format": {"format": "nosuch"},
    "skip": {"skip": -1},
    "threads": {"threads": 0},
    "client": {"client": 7},
    "progress": {"progress": "nosuch"},
    "work_dir": {"work_dir": "/nowhere/at/all"},
}
REFUSED_BY = {
    "count": (
        dasktc.triangle_count,
        {"verify": 2, "per_vertex": "x.nosuch", "per_edge": "/nowhere/x.csv", "report": "x"},
    ),
    "prepare": (dasktc.prepare, {"weight": 1.5, "duplicates": "nosuch"}),
    "estimate": (dasktc.estimate, {"error": -1, "confidence": 2}),
    "plan": (dasktc.plan, {"gpus": 0, "rates": 3}),
}
BAD = [
    (function, given)
    for function, more in REFUSED_BY.values()
    for given in [*REFUSED.values(), *({name: value} for name, value in more.items())]
]


@pytest.mark.parametrize(("function", "given"), BAD, ids=[f"{f.__name__} {given}" for f, given in BAD])
def test_options_are_refused_before_a_stream_is_read(place, tmp_path, monkeypatch, function, given):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Unread(EDGES)))
    for source in ("-", Unread(EDGES)):
        with pytest.raises(InputError):
            function(source, **keywords(**given))


@pytest.mark.parametrize(
    "command",
    [
        ["count", "-", "--kernel", "nosuch"],
        ["count", "-", "--per-vertex", "out.nosuch"],
        ["cliques", "-", "-k", "1"],
        ["cliques", "-", "-k", "3", "--bound", "-1"],
        ["measures", "-", "-o", "out.nosuch"],
        ["truss", "-", "-o", "out.csv", "-k", "-1"],
        ["prepare", "-", "there"],
        ["estimate", "-", "--error", "7"],
        ["plan", "-", "--memory", "much"],
    ],
    ids=" ".join,
)
def test_commands_refuse_before_standard_input_is_read(place, tmp_path, monkeypatch, capfd, command):
    from dasktc.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Unread(EDGES)))
    assert main(command) == 2
    assert "was read" not in capfd.readouterr().err
