"""The command line: its contract on stdout, stderr and exit codes, and every kind of bad input."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import util as import_util
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

import dasktc
from dasktc.backends.select import get_backend
from dasktc.cli import warm_up
from dasktc.cli.main import main
from dasktc.errors import CountError
from tests.support.tiers import some

KEYS = {
    *("triangles", "vertices", "edges", "loops_dropped", "duplicates_dropped", "backend", "workers", "kernel"),
    *("partition", "parts", "splits", "reorder", "seconds", "wedges", "probes", "max_collision"),
    *("time_imbalance", "space_imbalance", "edges_per_second", "kernel_seconds", "kernel_edges_per_second"),
}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def triangle(tmp_path: Path) -> Path:
    return write(tmp_path / "triangle.txt", "# three edges\n0 1\n1 2\n2 0\n2 2\n0 1\n")


def test_count_prints_one_json_object(run: Any, triangle: Path) -> None:
    code, out, err = run("count", triangle, "--json")
    found = json.loads(out)
    assert code == 0
    assert err == ""
    assert out.count("\n") == 1
    assert found.keys() >= KEYS
    assert found["seconds"].keys() == {"read", "prepare", "count", "total"}
    assert (found["triangles"], found["vertices"], found["edges"]) == (1, 3, 3)
    assert (found["loops_dropped"], found["duplicates_dropped"]) == (1, 1)


def test_count_for_people(run: Any, triangle: Path) -> None:
    code, out, err = run("count", triangle)
    assert (code, err) == (0, "")
    assert out.startswith("triangles  1\n")
    assert "1 loop, 1 duplicate" in out
    assert run("count", triangle, "--quiet") == (0, "1\n", "")


@pytest.mark.parametrize(
    ("text", "triangles", "vertices"),
    [("5 5\n7 7\n", 0, 0), ("1 2\n2 1\n", 0, 2), ("0 1\n1 2\n2 0\n9\n", 1, 3)],
    ids=["only loops", "one edge twice", "an isolated vertex"],
)
def test_small_graphs_are_valid(run: Any, tmp_path: Path, text: str, triangles: int, vertices: int) -> None:
    for options in ((), ("--partition", "hash2d", "--parts", 3), ("--reorder", "collective", "--verify")):
        code, out, _ = run("count", write(tmp_path / "g.txt", text), "--json", *options)
        assert code == 0
        assert (json.loads(out)["triangles"], json.loads(out)["vertices"]) == (triangles, vertices)


@pytest.mark.parametrize("kernel", ["hub", "trust", "merge", "search"])
def test_every_option_of_a_count(run: Any, data: Path, kernel: str) -> None:
    options = ("--partition", "hash2d", "--parts", 2, "--splits", 3, "--reorder", "indegree", "--memory", "1GB")
    code, out, _ = run("count", data / "email-Eu-core.csv.gz", "--kernel", kernel, "--verify", 0.5, "--json", *options)
    found = json.loads(out)
    assert code == 0
    assert (found["triangles"], found["kernel"], found["tasks"], found["verified"]) == (105_461, kernel, 24, 12)


def test_several_files_are_one_graph(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "0 1\n1 2\n")
    write(tmp_path / "b.txt", "2 0\n")
    assert run("count", tmp_path / "a.txt", tmp_path / "b.txt", "--quiet")[:2] == (0, "1\n")
    assert run("count", tmp_path, "--quiet")[:2] == (0, "1\n")
    assert run("count", tmp_path / "*.txt", "--quiet")[:2] == (0, "1\n")


@pytest.mark.slow
def test_worker_processes_give_the_same(run: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dasktc.executors.connect._free_port", lambda wanted: 0)  # other test processes may want it too
    code, out, err = run("count", data / "email-Eu-core.csv.gz", "--workers", 2, "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["triangles"], json.loads(out)["workers"]) == (105_461, 2)


BAD_FILES: dict[str, tuple[str | bytes | None, tuple[Any, ...], str]] = {
    "no-data.txt": ("# nothing\n\n", (), "data"),
    "single.txt": ("1\n2\n3\n", (), "single"),
    "text.txt": ("a b\nb c\n", ("--ids", "int"), "line 1"),
    "late-text.txt": ("1 2\n2 3\nthree 1\n", (), "line 3"),
    "nan.csv": ("1,2\n2,nan\n", (), "line 2"),
    "fraction.csv": ("1,2\n2,3.5\n", (), "line 2"),
    "beyond.txt": ("1 2\n2 9223372036854775808\n", (), "line 2"),
    "header.txt": ("9 3\n1 2\n2 3\n3 1\n", (), "--skip 1"),
    "banner.mtx": ("%%MatrixMarket matrix coordinate nonsense general\n2 2 1\n1 2\n", (), "banner.mtx"),
    "wrong-banner.mtx": ("%%NotAMatrix\n2 2 1\n1 2\n", (), "wrong-banner.mtx"),
    "short.mtx": ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n", (), "short.mtx"),
    "rectangle.mtx": ("%%MatrixMarket matrix coordinate pattern general\n3 2 1\n1 2\n", (), "square"),
    "truncated.txt.gz": (gzip.compress(b"1 2\n" * 9999)[:40], (), "truncated.txt.gz"),
    "junk.bin": (bytes(range(256)) * 9, (), "--format"),
    "short.metis": ("3 2\n2\n1\n\n", (), "short.metis"),
    "parquet.parquet": (b"PAR1 and no more", (), "parquet.parquet"),
    "format.txt": ("1 2\n", ("--format", "nonsense"), "parquet"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file(run: Any, tmp_path: Path, name: str) -> None:
    content, options, named = BAD_FILES[name]
    assert content is not None
    refused(*run("count", write(tmp_path / name, content), *options), 2, named)


def refused(code: int, out: str, err: str, wanted: int, *named: str) -> None:
    assert (code, out) == (wanted, "")
    assert err.startswith("dasktc: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for text in named:
        assert text in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("count",), "SOURCE"),
        (("prepare", "{triangle}"), "OUT"),
        (("count", "no-such-file.txt"), "no-such-file.txt"),
        (("count", "{triangle}", "--nonsense"), "--nonsense"),
        (("count", "{triangle}", "--kernel", "nonsense"), "hub"),
        (("count", "{triangle}", "--parts", "0"), "--parts 0"),
        (("count", "{triangle}", "--splits", "0"), "--splits 0"),
        (("count", "{triangle}", "--splits", "-1"), "--splits -1"),
        (("count", "{triangle}", "--retries", "-1"), "--retries -1"),
        (("count", "{triangle}", "--worker-timeout", "0"), "--worker-timeout 0"),
        (("count", "{triangle}", "--tls-cert", "{tmp}/none.pem"), "--tls-cert"),
        (("plan", "{triangle}", "--retries", "-1"), "--retries -1"),
        (("generate", "random", "{tmp}/out.txt", "--retries", "-1"), "--retries -1"),
        (("generate", "random", "{tmp}/out.txt", "--tls-key", "{tmp}/none.pem"), "--tls-key"),
        (("cluster", "nonsense"), "kubernetes"),
        (("count", "{triangle}", "--parts", "two"), "two"),
        (("count", "{triangle}", "--memory", "plenty"), "plenty"),
        (("count", "{triangle}", "--memory", "0"), "--memory 0"),
        (("count", "{triangle}", "--memory", "10"), "10 B"),
        (("count", "{triangle}", "--workers", "0"), "--workers 0"),
        (("count", "{triangle}", "--skip", "-1"), "--skip -1"),
        (("count", "{triangle}", "--columns", "0"), "--columns"),
        (("count", "{triangle}", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "scheduler"),
        (("plan",), "SOURCE"),
        (("plan", "--vertices", "9"), "--edges"),
        (("generate", "kronecker", "out.nonsense"), "parquet"),
        (("generate", "theory", "{tmp}/out.txt", "--stars", "3,many"), "many"),
        (("generate", "random", "{tmp}/out.txt", "--vertices", "10", "--edges", "15"), "15"),
    ],
)
def test_bad_usage(run: Any, triangle: Path, tmp_path: Path, arguments: tuple[str, ...], named: str) -> None:
    filled = [a.format(triangle=triangle, tmp=tmp_path) for a in arguments]
    refused(*run(*filled), 2, named)
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    "given", [["--verify", ...], ["--verify", "--", ...], ["--verify", "0.5", ...], [..., "--verify"]]
)
def test_a_share_to_verify_may_be_left_out(run: Any, triangle: Path, given: list[Any]) -> None:
    code, out, err = run("count", "--quiet", *(triangle if word is ... else word for word in given))
    assert (code, out) == (0, "1\n"), err


def test_directory_without_edges(run: Any, tmp_path: Path) -> None:
    refused(*run("count", tmp_path), 2, str(tmp_path))


@pytest.mark.slow
def test_scheduler_that_does_not_answer(run: Any, triangle: Path) -> None:
    refused(*run("count", triangle, "--scheduler", "tcp://127.0.0.1:1"), 1, "tcp://127.0.0.1:1")
    refused(*run("count", triangle, "--scheduler-file", triangle), 1, "names no address")


def test_unexpected_error_is_one_line_without_debug(run: Any, triangle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("dasktc.api.count.triangle_count", fail)
    refused(*run("count", triangle), 1, "ZeroDivisionError", "by zero", "--debug")
    with pytest.raises(ZeroDivisionError):
        main(["count", str(triangle), "--debug"])


def test_failed_check_is_exit_1(run: Any, triangle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise CountError("wedges differ: lost; run again")

    monkeypatch.setattr("dasktc.counting.count.check", fail)
    refused(*run("count", triangle), 1, "wedges differ")


def test_plan_json(run: Any, data: Path) -> None:
    file = data / "email-Eu-core.csv.gz"
    code, out, _ = run("plan", file, "--memory", "60kB", "--json")
    found = json.loads(out)
    assert code == 0
    assert found.keys() >= {"parts", "splits", "tasks", "bytes_per_task", "bytes_total", "fits"}
    assert found["fits"]
    assert found["parts"] > 1
    assert found["bytes_per_task"] <= 60_000
    assert json.loads(run("plan", file, "--partition", "whole", "--memory", "60kB", "--json")[1])["fits"] is False
    assert "NO" in run("plan", file, "--partition", "whole", "--memory", "60kB")[1]
    refused(*run("count", file, "--partition", "whole", "--memory", "60kB"), 2, "60 kB")


def test_plan_of_a_size(run: Any) -> None:
    arguments = ("--vertices", 955_000_000, "--edges", 37_400_000_000, "--memory", "100GB", "--workers", 64)
    code, out, _ = run("plan", *arguments, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["fits"]
    assert (found["partition"], found["tasks"]) == ("hash2d", found["parts"] ** 3 * found["splits"])


def test_options_of_running_are_those_of_every_command(run: Any, triangle: Path, tmp_path: Path) -> None:
    running = ("--retries", 3, "--worker-timeout", 5)
    for arguments in (
        ("count", triangle),
        ("plan", triangle),
        ("plan", "--vertices", 10, "--edges", 20),
        ("generate", "kronecker", tmp_path / "out.txt", "--scale", 5),
    ):
        assert run(*arguments, *running)[::2] == (0, "")


@pytest.mark.parametrize(
    "arguments", [("count", "{triangle}"), ("plan", "{triangle}"), ("generate", "grid3d", "{out}")]
)
def test_a_cluster_without_workers(run: Any, triangle: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    filled = [a.format(triangle=triangle, out=tmp_path / "out.parquet") for a in arguments]
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL) as empty:
        found = run(*filled, "--scheduler", empty.scheduler_address, "--worker-timeout", 0.3)
    refused(*found, 1, "no worker joined", "in 0.3 s", "--worker-timeout")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "edges", "triangles"),
    [
        (("kronecker", "--scale", 12, "--seed", 1), 48_400, 486_234),
        (("theory", "--stars", "3,4,5", "--kind", "B1k"), 346, 287),
        (("theory", "--stars", "3,4,5", "--kind", "B2k"), 346, 7),
        (("grid3d", "--side", 5), 375, 0),
        (("random", "--vertices", 1000, "--edges", 8000), None, None),
        (("rmat", "--vertices", 1024, "--edges", 8000), None, None),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "txt"])
def test_generate_then_count(
    run: Any, tmp_path: Path, arguments: tuple[Any, ...], edges: int | None, triangles: int | None, suffix: str
) -> None:
    out = tmp_path / f"graph.{suffix}"
    assert run("generate", arguments[0], out, *arguments[1:])[0] == 0
    code, text, _ = run("count", out, "--json")
    assert code == 0
    if edges is not None:
        assert (json.loads(text)["edges"], json.loads(text)["triangles"]) == (edges, triangles)
    refused(*run("generate", arguments[0], out, *arguments[1:]), 2, "--force")
    assert run("generate", arguments[0], out, *arguments[1:], "--force")[0] == 0


def test_generate_asks_for_a_gpu(run: Any, tmp_path: Path) -> None:
    """The edges are the same without a GPU, which `auto` allows and `cuda` does not."""
    out = tmp_path / "graph.txt"
    assert run("generate", "grid3d", out, "--side", 4, "--backend", "cpu")[0] == 0
    made = out.read_bytes()
    assert run("generate", "grid3d", out, "--side", 4, "--force")[0] == 0
    assert out.read_bytes() == made
    if import_util.find_spec("cupy") is None:
        refused(*run("generate", "grid3d", out, "--side", 4, "--force", "--backend", "cuda"), 2, "CuPy")
        assert out.read_bytes() == made


def test_warm_up_compiles_for_every_usable_backend(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usable = replace(get_backend("cpu"), warm=lambda: 7)
    monkeypatch.setattr(warm_up, "get_backend", lambda name: {"cpu": usable}[name])
    monkeypatch.setattr(warm_up, "unusable", {"cpu": None, "cuda": "CUDA reports 0 GPUs"}.get)
    found = json.loads(run("info", "--warm-up", "--json")[1])
    assert found == {"cpu": {"compiled": 7, "seconds": found["cpu"]["seconds"]}, "cuda": {"why": "CUDA reports 0 GPUs"}}
    text = run("info", "--warm-up")[1]
    assert re.fullmatch(r"cpu   7 compiled in [\d.]+ s\ncuda  CUDA reports 0 GPUs\n", text)
    assert run("info", "--warm-up", "--methods")[0] == 2


def test_info(run: Any) -> None:
    assert "backend cpu" in run("info")[1]
    found = json.loads(run("info", "--json")[1])
    assert found["backends"] == {"cpu": "ready", "cuda": found["gpu"]["state"]}
    assert set(found["gpu"]["packages"]) == {"CuPy", "cuDF", "RMM", "dask-cuda", "dask-cuDF", "UCXX"}


@pytest.mark.parametrize(
    "start",
    some(
        [["-m", "dasktc"], ["-c", "import sys; from dasktc.cli import main; sys.exit(main.main())"]],
        lambda start: start[0] == "-m",
    ),
)
def test_as_a_program(start: list[str], triangle: Path) -> None:
    done = subprocess.run(
        [sys.executable, *start, "count", str(triangle), "--json"], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["triangles"] == 1


@pytest.mark.parametrize("encoding", ["utf-8", "iso8859-1"])
def test_names_that_standard_output_cannot_encode(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """Files have the requested names, which are escaped in what is printed."""
    out = tmp_path / os.fsdecode(b"\xff.txt")
    with open(tmp_path / "out", "w", encoding=encoding, errors="strict") as strict:
        monkeypatch.setattr(sys, "stdout", strict)
        assert main(["generate", "kronecker", str(out), "--scale", "4"]) == 0
    assert (tmp_path / "out").read_text().startswith(rf"{tmp_path}/\udcff.txt: kronecker scale 4, ")
    assert out.exists()
    assert capfd.readouterr() == ("", "")


SAYING = [
    *(("count", "{}", *more) for more in ((), ("--json",), ("--quiet",))),
    *(("plan", "--vertices", "9", "--edges", "9", *more) for more in ((), ("--json",))),
    *(("generate", "kronecker", "{}.parquet", "--scale", "4", *more) for more in ((), ("--json",))),
    ("info",),
    ("info", "--json"),
    ("cluster", "tls"),
    ("--help",),
    ("count", "--help"),
    ("--version",),
]


@pytest.mark.parametrize("arguments", SAYING, ids=" ".join)
def test_an_answer_that_cannot_be_written(
    triangle: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """A full disk: an error that repeats the answer; a closed pipe: no error; a closed stream: nothing begins."""
    given = [text.format(triangle) for text in arguments]
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(given) == 1
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "standard output cannot be written: [Errno 28] No space left on device; redirect it" in err
    assert arguments[0] != "count" or "--help" in arguments or re.search(r"begins: \D*1\b", err)
    Path(f"{triangle}.parquet").unlink(missing_ok=True)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(given) == 128 + signal.SIGPIPE
    assert capfd.readouterr() == ("", "")
    Path(f"{triangle}.parquet").unlink(missing_ok=True)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(given) == 1
    assert capfd.readouterr().err.startswith("dasktc: error: standard output is closed: the answer would be lost;")
    assert not Path(f"{triangle}.parquet").exists()


@pytest.mark.slow
def test_streams_as_a_shell_gives_them(triangle: Path) -> None:
    """Including what Python itself does with the streams at its start and end."""
    script = 'run() { "$PYTHON" -m dasktc count "$@" --quiet; }\n'
    script += 'run "$0" >&-; echo $?; run "$0" >/dev/full; echo $?; run "$0" 2>&-; echo $?; run no 2>/dev/full; echo $?'
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(["sh", "-c", script, triangle], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["1", "1", "1", "0", "2"]
    closed, full = done.stderr.splitlines()
    assert "is closed" in closed
    assert full.endswith("The answer begins: 1")


def test_every_folder_of_modules_is_installed():
    root = Path(dasktc.__file__).parent
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    folders = {".".join(("dasktc", *path.parent.relative_to(root).parts)) for path in root.rglob("*.py")}
    assert folders == set(project["tool"]["setuptools"]["packages"])


def test_no_control_character_of_a_name_reaches_the_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = "a\x1b[31m\x9b"
    Path(f"{odd}.txt").write_text("1 2 9\n2 3 9\n3 1 9\n")
    Path(f"{odd}.tsv").write_text("007\tsame\n")  # a first row that may be a header: a warning
    for arguments in (
        ("count", f"{odd}.txt"),
        ("prepare", f"{odd}.txt", f"{odd}.graph"),
        ("count", f"{odd}.txt", "--json"),
        ("count", f"{odd}.tsv", "--ids", "text"),
        ("count", f"{odd}.csv"),
        ("count", f"{odd}.txt", "--kernel", odd),
        (odd,),
    ):
        main([*arguments])
        said = capsys.readouterr()
        assert said.out + said.err
        assert not [c for c in said.out + said.err if not c.isprintable() and c != "\n"], arguments
