"""Files that are wrong on purpose: nothing is left out, nothing hangs, and every refusal is one line.

A case is refused with `InputError`, in memory and time that do not follow what a header claims.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pandas as pd
import pytest

from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions

BACKEND = SimpleNamespace(name="cpu", frame=pd, array=np)


def edges(source, **options):
    opened = open_source(source, ReadOptions(**options))
    return [row for part in opened.parts for row in part.read(BACKEND).itertuples(index=False, name=None)]


def refused(source, *says, **options):
    with pytest.raises(InputError) as caught:
        edges(source, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 700
    for words in says:
        assert words in text
    return text


# Folders and what stands in them

AS_NOBODY = """
import os, sys
from dasktc.errors import InputError
from dasktc.io.files import open_source
from dasktc.io.source import ReadOptions
for scheme in ("", "file://"):  # others may not be allowed to import what is imported on the way
    open_source(scheme + sys.argv[1], ReadOptions())
os.setgid(65534), os.setuid(65534)
for source in sys.argv[1:]:
    try:
        print("read", [part.url for part in open_source(source, ReadOptions()).parts])
    except InputError as error:
        print("refused", error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_folders_that_cannot_be_read_are_refused_by_name():
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        Path(place).chmod(0o755)
        folder, closed = f"{place}/data", f"{place}/data/closed"
        for name in ("a.txt", "closed/b.txt", "closed/deep/c.txt"):
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"1 2\n")
        Path(closed).chmod(0o700)
        sources = [
            *(folder, closed, f"{folder}/*", f"{folder}/**/*.txt", f"{folder}/*/*.txt", f"{closed}/b.txt"),
            *(f"file://{folder}", f"file://{folder}/**/*.txt", f"{folder}/*.txt"),
        ]
        command = [sys.executable, "-c", AS_NOBODY, *sources]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == f"read ['{folder}/a.txt']"
    for source, line in zip(sources, lines, strict=False):
        assert line.startswith(f"refused {closed}"), (source, line)
        assert "cannot be read: Permission denied" in line


@pytest.mark.parametrize("pattern", ["", "/**", "/**/*.txt", "/*", "/*/*.txt"])
def test_a_folder_that_fails_halfway_is_refused(tmp_path, monkeypatch, pattern):
    for name in ("a.txt", "sub/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1 2\n")
    scandir = os.scandir

    def failing(path="."):
        if str(path).endswith("sub"):
            raise OSError(5, "Input/output error")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    refused(str(tmp_path) + pattern, f"{tmp_path}/sub cannot be read: Input/output error")


@pytest.mark.parametrize("pattern", ["", "/*", "/**", "/**/*.txt"])
def test_remote_folders_that_cannot_be_listed_are_refused(monkeypatch, pattern):
    fs = fsspec.filesystem("memory")
    for name in ("a.txt", "sub/b.txt"):
        fs.pipe_file(f"/hostile/{name}", b"1 2\n")
    source = "memory://hostile" + pattern
    assert len(edges(source)) == 2
    ls = type(fs).ls

    def failing(self, path, *args, **kwargs):
        if path.rstrip("/").endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return ls(self, path, *args, **kwargs)

    monkeypatch.setattr(type(fs), "ls", failing)
    refused(source, "Permission denied", source)
    fs.rm("/hostile", recursive=True)


def make_irregular(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("pattern", ["", "/*", "/**", "/b*", "/b.txt"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_only_regular_files_are_read(tmp_path, kind, pattern, scheme):
    (tmp_path / "a.txt").write_bytes(b"1 2\n")
    make_irregular(tmp_path / "b.txt", kind)
    refused(f"{scheme}{tmp_path}{pattern}", f"{tmp_path}/b.txt is not a regular file but a {kind}")
    assert edges(f"{tmp_path}/a*") == [(1, 2)]


@pytest.mark.timeout(20)
def test_a_side_file_that_is_a_pipe_does_not_block(tmp_path):
    (tmp_path / "g.graph").write_bytes(bytes(range(200)))
    os.mkfifo(tmp_path / "g.properties")
    refused(str(tmp_path / "g.graph"), "g.properties is not a regular file but a pipe")


@pytest.mark.parametrize("pattern", ["", "/**", "/*", "/**/*.txt", "/sub/**"])
def test_links_in_circles_are_entered_once(tmp_path, pattern):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_bytes(b"1 2\n")
    for name, target in [("loop", "."), ("sub/up", ".."), ("again", "sub")]:
        (tmp_path / name).symlink_to(target)
    assert edges(str(tmp_path) + pattern)[0] == (1, 2)
    (tmp_path / "self").symlink_to("self")
    refused(f"{tmp_path}/self", "self cannot be read: Too many levels of symbolic links")
    refused(str(tmp_path), "self", "Too many levels of symbolic links")


def test_a_folder_behind_a_link_belongs_to_its_folder(tmp_path):
    for name in ("data", "elsewhere/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data/a.txt").write_bytes(b"1 2\n")
    (tmp_path / "elsewhere/deep/b.txt").write_bytes(b"3 4\n")
    (tmp_path / "data/more").symlink_to(tmp_path / "elsewhere")
    assert sorted(edges(str(tmp_path / "data"))) == [(1, 2), (3, 4)]


@pytest.mark.parametrize("pattern", ["memory://hostile/*", "memory://hostile/s*", "memory://hostile/**"])
def test_folders_that_match_a_remote_pattern_are_read(pattern):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/hostile/sub/deep/b.txt", b"1 2\n")
    assert edges(pattern) == [(1, 2)]
    fs.rm("/hostile", recursive=True)


# Names

ODD_NAMES = ["a::b.txt", "zip::b.txt", "simplecache", "a b.txt", "é.txt", "a[1].txt", "#a.txt", "a\nb.txt", b"\xff.txt"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_local_files_of_any_name_are_read(tmp_path, monkeypatch, name):
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with open(path, "wb") as file:
        file.write(b"1 2\n")
    assert edges(os.fsdecode(path)) == edges(str(tmp_path)) == edges(f"{tmp_path}/*") == [(1, 2)]
    monkeypatch.chdir(tmp_path)
    assert edges(os.fsdecode(name)) == edges("*") == [(1, 2)]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "is no path"),
        ("a\0b.txt", "is no path"),
        ("\ud800.txt", "cannot be read"),
        ("\udcff.txt", "does not exist"),
        ("a\nb.txt", "does not exist"),
        ("x" * 300, "File name too long"),
        ("a::b.txt", "does not exist"),
        ("a::*.txt", "no file matches"),
        ("none/*.txt", "no file matches"),
        ("\ud800://x", ""),
        ("memory://\ud800/*", ""),
        ("zip://a::b::c", ""),
        ("::", ""),
        ("://", ""),
        ("a.txt/**", "no file matches"),
        ("[", "no file matches"),
    ],
)
def test_names_of_no_file_are_refused(tmp_path, monkeypatch, source, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"1 2\n")
    refused(source, says)


def test_a_folder_that_is_gone_is_refused(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused("a.txt", "does not exist", "the working directory was removed")
    monkeypatch.chdir(tmp_path)
