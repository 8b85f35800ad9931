"""A checkpoint: what counting tasks reported, kept on disk so that a count that was cut short goes on.

One file of lines. The first says what is counted: a fingerprint of the blocks, the plan, the kernel and
the version. Each of the others is the record of a task. A line ends with a checksum of the rest, so one
that a crash tore is known and its task counted again. Only the client writes, whatever becomes of workers.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dasktc.backends import ON_DEVICE
from dasktc.backends.cpu.splits import GROUP
from dasktc.backends.csr import OrientedCSR, TaskCount, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record
from dasktc.errors import DasktcError, InputError
from dasktc.options import Options

__all__ = ["FILE", "Checkpoint", "as_begun", "check_folder", "fingerprint", "opened"]

FILE = "dasktc-checkpoint.jsonl"
BEGINNING = b'{"graph": "'
SYNC_SECONDS = 1.0
"""How much counting a crash of the machine may lose."""

What = dict[str, Any]
"""What is counted, by name."""


def fingerprint(graph: CountingContext) -> What:
    """Say what a graph's count is: equal only for the same edges, blocks, plan, kernel and version.

    Parameters
    ----------
    graph : CountingContext

    Returns
    -------
    dict
        Ready for JSON.
    """
    executor, plan, backend = graph.executor, graph.plan, graph.options.chosen_backend
    places = sorted(graph.blocks)
    digests = executor.gather([executor.submit("fingerprint", _digest, graph.blocks[place]) for place in places])
    return {
        "graph": hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest(),
        "vertices": plan.vertices,
        "edges": plan.edges,
        "partition": plan.partition,
        "parts": plan.parts,
        "splits": plan.splits,
        "kernel": graph.options.chosen_kernel,
        "backend": backend,
        **({"rows": f"dealt by {GROUP}"} if backend in ON_DEVICE else {}),  # as `splits` has it: it was otherwise once
        "reorder": graph.options.chosen_reorder,
        "version": version("dasktc"),
    }


def _digest(block: OrientedCSR) -> str:
    """Hash a block's arrays. Runs on a worker."""
    found = hashlib.blake2b(digest_size=16)
    for array in (block.offsets, block.columns):
        held: Any = np.ascontiguousarray(on_host(array)).view("u1")
        found.update(held)
    return found.hexdigest()


class Checkpoint:
    """The records of a count, in memory and in an open file; made by `opened`.

    Attributes
    ----------
    records : dict of Job to Record
        What earlier runs left, and what was added.
    """

    def __init__(self, file: int, path: Path, jobs: list[Job], lines: list[What]) -> None:
        self._file, self._path, self._synced = file, path, time.monotonic()
        names = {_name(job): job for job in jobs}
        known = ((names.get(tuple(line["task"])), line) for line in lines)
        self.records = {job: _record(job, line) for job, line in known if job is not None}

    def add(self, record: Record) -> None:
        """Append a record: one write, on the disk within a second.

        Raises
        ------
        DasktcError
            The operating system refused.
        """
        self.records[record.job] = record
        line = {"task": _name(record.job), "count": list(record.count), "worker": record.worker}
        with _said_in_one_line(self._path):
            _write(self._file, _line(line))
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()


@contextmanager
def opened(folder: str | os.PathLike[str], what: What, jobs: list[Job]) -> Iterator[Checkpoint]:
    """Open the checkpoint in a folder, or begin one.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    what : dict
        The count's fingerprint.
    jobs : list of Job
        The count's tasks.

    Yields
    ------
    Checkpoint

    Raises
    ------
    InputError
        It is of another count: what differs is named. Or another process writes to it.
    DasktcError
        The operating system refused.
    """
    path = Path(folder).absolute() / FILE
    with _said_in_one_line(path):
        path.parent.mkdir(exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        with _said_in_one_line(path):
            lines = _restored(file, path, what)
        yield Checkpoint(file, path, jobs, lines)
        with _said_in_one_line(path):
            os.fsync(file)
    finally:
        os.close(file)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot hold a checkpoint, before anything is read.

    Raises
    ------
    InputError
    """
    path = Path(folder).absolute()
    if not os.fspath(folder) or (path.exists() and not path.is_dir()):
        raise InputError(f"--checkpoint {os.fspath(folder)!r} is no folder: one is needed, or a name for a new one")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder: checkpoint {path.name} would stand in it; create it first")


def as_begun(options: Options, folder: str | os.PathLike[str]) -> Options:
    """Take from a checkpoint what the plan would choose anew, and otherwise: workers and memory may differ now.

    Parameters
    ----------
    options : Options
    folder : path

    Returns
    -------
    Options
        Partition, parts and splits that are not given are those of the checkpoint, if there is one.
    """
    path = Path(folder).absolute() / FILE
    begun = _checked(path.read_bytes().partition(b"\n")[0]) if path.is_file() else None
    if begun is None:
        return options
    chosen = {"partition": options.partition != "auto", "parts": options.parts, "splits": options.splits}
    kept: Any = {name: begun[name] for name, given in chosen.items() if not given and name in begun}
    return replace(options, **kept)


def _restored(file: int, path: Path, what: What) -> list[What]:
    """The records of an open file, which is begun if nothing is there."""
    _lock(file, path)
    text = path.read_bytes()
    lines = _lines(text, path)
    if not lines:
        os.truncate(file, 0)
        _write(file, _line(what))
    elif lines[0] != what:
        raise InputError(_differences(path, lines[0], what))
    elif not text.endswith(b"\n"):
        _write(file, b"\n")  # the end of a line that a crash tore
    return [line for line in lines[1:] if "task" in line]


def _lock(file: int, path: Path) -> None:
    """Hold the file until it is closed, or this process dies."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"checkpoint {path} is in use: another count writes to it; wait for it, or choose another folder"
        ) from None


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


@contextmanager
def _said_in_one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DasktcError(
            f"checkpoint {path} cannot be written: {error}; choose a --checkpoint folder that can be, with room"
        ) from error


def _lines(text: bytes, path: Path) -> list[What]:
    """The lines whose checksum is right; none where even the first was torn."""
    first, *others = (_checked(line) for line in text.split(b"\n"))
    if first is None and (others or not BEGINNING.startswith(text[: len(BEGINNING)])):
        raise InputError(
            f"checkpoint {path} begins with a line of another kind: it is damaged, or not of dasktc; "
            "choose another --checkpoint folder, or remove the file"
        )
    return [line for line in (first, *others) if line is not None]


def _line(content: What) -> bytes:
    text = json.dumps(content).encode()
    return text + b"\t" + _checksum(text) + b"\n"


def _checked(line: bytes) -> What | None:
    text, _, checksum = line.rpartition(b"\t")
    return json.loads(text) if text and checksum == _checksum(text) else None


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).hexdigest().encode()


def _name(job: Job) -> tuple[int, ...]:
    return (*(part for place in job.triple.places for part in place), job.split)


def _record(job: Job, line: What) -> Record:
    return Record(job, TaskCount(*line["count"]), line["worker"])


def _differences(path: Path, kept: What, what: What) -> str:
    differs = [name for name in what if kept.get(name) != what[name]]
    theirs, ours = (", ".join(f"{name} {found.get(name)}" for name in differs) for found in (kept, what))
    return (
        f"checkpoint {path} is of another count: {theirs} there, {ours} here; "
        "give the options that it was begun with, or another folder"
    )
