"""Outputs that are what a call reads are refused, with --force too, whatever names both have."""

from __future__ import annotations

import io
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import dasktc
from dasktc.api import files
from dasktc.cli.help import OUTPUT
from dasktc.cli.main import cli, main
from dasktc.errors import InputError
from dasktc.io.inputs import refuse_input
from dasktc.options import Method

TRIANGLE = "a,b\n0,1\n1,2\n2,0\n"
NEEDED = {"--per-vertex": ["--share", "0.5"]}
"""Options without which another is refused anyway, of `estimate`."""


def outputs():
    """Every command that reads a source, with each of its options and arguments that name an output."""
    for name, command in cli.commands.items():
        places = [option for option in command.params if option.type.name == "path"]
        if any(option.name == "source" for option in places):
            for option in places:
                if getattr(option, "group", None) == OUTPUT or option.name in ("checkpoint", "out"):
                    yield pytest.param(name, option, id=f"{name} {option.opts[0]}")


def test_commands_have_outputs():
    assert len(list(outputs())) >= 9


@pytest.mark.parametrize(("command", "option"), list(outputs()))
def test_every_command_keeps_its_source(tmp_path, capsys, command, option):
    suffix = ".html" if option.name == "report" else ".csv"
    source, folder = tmp_path / f"graph{suffix}", tmp_path / "folder"
    folder.mkdir()
    for file in (source, folder / source.name):
        file.write_text(TRIANGLE)
    given = ["--force"] if "force" in {other.name for other in cli.commands[command].params} else []
    for other in cli.commands[command].params:
        if other.required and other.opts[0].startswith("-") and other is not option:
            given += [other.opts[0], str(tmp_path / "other.csv")]
    given += NEEDED.get(option.opts[0], []) if command == "estimate" else []
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    for read, written in ((source, source), (folder, folder), (folder, folder / f"new{suffix}")):
        named = [option.opts[0], str(written)] if option.opts[0].startswith("-") else [str(written)]
        with mock.patch("dasktc.api.opener.as_files") as reading:
            assert main([command, "--format", "csv", *given, str(read), *named]) == 2
        assert not reading.called
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "read" in error or "is no folder" in error  # a checkpoint
        assert str(written) in error
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before
    assert source.read_text() == TRIANGLE


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with names of one file, and with folders."""
    for name in ("data/sub", "elsewhere", "table.parquet"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("graph.csv", "data/part.csv", "data/sub/part.csv", "table.parquet/part.parquet", "elsewhere/x.csv"):
        (tmp_path / name).write_text(TRIANGLE)
    os.link(tmp_path / "graph.csv", tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to("graph.csv")
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


REFUSED = [
    ("graph.csv", "graph.csv", "is graph.csv, which is read: it would be lost"),
    ("graph.csv", "./graph.csv", "is graph.csv, which is read"),
    ("graph.csv", "data/../graph.csv", "is graph.csv"),
    ("graph.csv", "soft.csv", "is graph.csv"),
    ("graph.csv", "hard.csv", "is graph.csv"),
    ("soft.csv", "graph.csv", "is soft.csv"),
    ("file://{}/graph.csv", "graph.csv", "is file://"),
    ("simplecache::file://{}/graph.csv", "graph.csv", "is simplecache::"),
    (["elsewhere/x.csv", Path("graph.csv")], "graph.csv", "is graph.csv"),
    ("data", "data/new.csv", "is in data, all of which is read"),
    ("data", "link/new.csv", "is in data"),
    ("link", "data/sub/new.csv", "is in link"),
    ("data", "data/sub/part.csv", "is in data"),
    (".", "new.csv", r"is in \., all of which is read"),
    ("data/*.csv", "data/part.csv", r"is among the files that data/\*\.csv names"),
    ("*/*.csv", "data/new.csv", "is among"),
    ("link/*.csv", "data/new.csv", "is among"),
    ("dat?", "data/sub/new.csv", "is among"),
    ("data/**/*.csv", "data/sub/new.csv", "is among"),
    ("data/**/*.csv", "data/new.csv", "is among"),
    ("**/sub/*.csv", "data/sub/new.csv", "is among"),
    ("data/**", "data/sub/new.csv", "is among"),
    ("**/sub", "data/sub/deep/new.csv", "is among"),
    ("table.parquet/part.parquet", "table.parquet", "holds table.parquet/part.parquet, which is read"),
    ("memory://graphs/one", "memory://graphs/one/", "is memory://graphs/one"),
    ("memory://graphs", "memory://graphs/one", "is in memory://graphs"),
]


@pytest.mark.parametrize(("source", "output", "why"), REFUSED, ids=lambda value: str(value))
def test_one_file_of_several_names_is_refused(place, source, output, why):
    sources = [source] if isinstance(source, str) else source
    sources = [item.format(place) if isinstance(item, str) else item for item in sources]
    for given in (sources, sources[0] if len(sources) == 1 else tuple(sources)):
        with pytest.raises(InputError, match=why):
            refuse_input(output, None, given)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("graph.csv", "new.csv"),
        ("graph.csv", "data/part.csv"),
        ("data", "new.csv"),
        ("data", "data.csv"),
        ("data", "elsewhere/new.csv"),
        ("data", "data/.checkpoint"),  # hidden entries of a folder are not read
        ("data/*.csv", "new.csv"),
        ("data/*.csv", "data/sub/new.csv"),
        ("*.csv", "data/new.csv"),
        ("*", ".checkpoint"),
        ("data/**/*.csv", "data/sub/new.parquet"),
        ("data/**/edges/*.csv", "data/new.csv"),
        ("data/**/edges/*.csv", "data/sub/new.csv"),
        ("data/**/*.csv", "data/.hidden/new.csv"),
        ("**/*.csv", "data/sub/.new.csv"),
        ("elsewhere/x.csv", "table.parquet"),
        ("missing.csv", "also-missing.csv"),
        ("memory://graphs/one", "memory://graphs/two"),
        ("https://example.org/graph.csv", "graph.csv"),
        ("snap:amazon0601", "new.csv"),
        ("", "new.csv"),
        ("a\0b", "new.csv"),
        ([("0", "1"), ("1", "2")], "new.csv"),
    ],
    ids=str,
)
def test_another_place_is_written(place, source, output):
    refuse_input(output, source)


def test_open_and_mapped_files_and_standard_input_are_compared(place, monkeypatch):
    np.save("mapped.npy", np.array([[0, 1], [1, 2]]))
    with open("graph.csv", "rb") as file:
        for source in (file, [file], ["elsewhere/x.csv", file]):
            with pytest.raises(InputError, match="is the open file, which is read"):
                refuse_input("soft.csv", source)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        with pytest.raises(InputError, match="is the open file"):
            refuse_input("graph.csv", "-")
        refuse_input("new.csv", "-")
    refuse_input("graph.csv", io.BytesIO(b""))
    mapped = np.load("mapped.npy", mmap_mode="r")
    for source in (mapped, (mapped[:, 0], mapped[:, 1])):
        with pytest.raises(InputError, match=r"is .*mapped\.npy, which is read"):
            refuse_input("mapped.npy", source)


def test_functions_refuse_what_they_read(tmp_path):
    source, parts, saved = tmp_path / "graph.csv", tmp_path / "parts.csv", tmp_path / "saved"
    source.write_text(TRIANGLE)
    parts.write_text("0,0\n1,1\n2,0\n")
    dasktc.prepare(source).save(saved)
    method = Method(partition="proxy", parts=2, assign=parts)
    for call in (
        lambda: dasktc.triangle_count(source, per_vertex=source, force=True),
        lambda: dasktc.triangle_count(source, per_edge=parts, force=True, method=method),
        lambda: dasktc.estimate(source, share=0.5, per_vertex=source, force=True),
        lambda: files.write_measures(source, source, force=True),
        lambda: files.write_truss(source, parts, force=True, method=method),
        lambda: files.write_similarity(source, source, force=True),
    ):
        with pytest.raises(InputError, match="which is read: it would be lost"):
            call()
    assert source.read_text() == TRIANGLE
    assert int(dasktc.open_graph(saved).triangle_count()) == 1


def test_a_checkpoint_replaces_nothing(tmp_path, monkeypatch):
    """It may be kept beside the file that is read, not among the files of a folder that are all read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/graph.csv").write_text(TRIANGLE)
    for folder in (".", "data"):
        assert int(dasktc.triangle_count("data/graph.csv", checkpoint=folder)) == 1
    for folder in ("data", "data/new"):
        with pytest.raises(InputError, match=r"dasktc-checkpoint\.jsonl is in data, all of which is read"):
            dasktc.triangle_count("data", checkpoint=folder)
    assert int(dasktc.triangle_count("data/*.csv", checkpoint="data")) == 1


def test_files_beside_those_of_a_saved_graph_are_written(tmp_path):
    saved = tmp_path / "saved"
    dasktc.prepare([(0, 1), (1, 2), (2, 0)]).save(saved)
    for outputs in ({"checkpoint": saved}, {"per_vertex": saved / "vertices.csv"}, {"report": saved / "report.html"}):
        assert int(dasktc.triangle_count(saved, **outputs)) == 1
    assert int(dasktc.triangle_count(saved)) == 1
    dasktc.prepare([(0, 1), (1, 2), (2, 0)]).save("memory://saved-beside")
    refuse_input("memory://saved-beside/vertices.csv", "memory://saved-beside")
