"""Checkpoint of a count or survey: a file with the records of finished tasks, from which an interrupted one resumes.

The first line identifies the count: a fingerprint of the blocks, the plan, the kernel and the version, and for a survey
of its function and columns. Every other line is the record of a task, and for a survey has the task's result, too, as a
compressed pickle. Unpickling may run code: whoever may write to the folder of a survey can make its caller run theirs.
Each line ends with a checksum of the rest, so a line torn by a crash is detected and its task is counted again. A line
with a correct checksum and values that no task can have reported is refused. Only the client writes, so the checkpoint
does not depend on workers.

One run at a time writes: it holds a lock on a second file beside this one, which stays there, empty, so that nobody
locks a file that another run removes. Two runs may write if the disk has no locks, or beside a program that locks the
first file itself, as earlier versions did. Each appends whole lines: a task that both counted is listed twice with the
same count, which is accepted, and a line that one run tears of the other is counted again. That costs time, never
exactness.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import logging
import os
import pickle
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import locket
import numpy as np

from dasktc.backends import ON_DEVICE
from dasktc.backends.cpu.splits import GROUP
from dasktc.backends.csr import OrientedCSR, TaskCount, on_host
from dasktc.counting.context import CountingContext
from dasktc.counting.tasks import Job, Record
from dasktc.errors import DasktcError, InputError
from dasktc.executors.process.paths import check_regular, check_writable_folder
from dasktc.options import Options, path_text
from dasktc.wording import advice, option, plural

__all__ = ["FILE", "LOCK", "Checkpoint", "as_begun", "check_folder", "digest", "fingerprint", "opened"]

FILE = "dasktc-checkpoint.jsonl"
LOCK = f"{FILE}.lock"
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of file systems without locks."""
_log = logging.getLogger("dasktc")
BEGINNING = b'{"graph": "'
SYNC_SECONDS = 1.0
"""Seconds of counting that a crash of the machine may lose."""

What = dict[str, Any]
"""Fields that identify a count."""


def _is_whole(value: Any, minimum: int = 0) -> bool:
    return type(value) is int and minimum <= value < 1 << 63


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= LONGEST


def _is_count(value: Any) -> bool:
    """Whether a value can be a task's triangles, wedges, probes, longest bucket and seconds: triangles <= wedges."""
    if not isinstance(value, list) or len(value) != len(TaskCount._fields) or not all(map(_is_whole, value[:-1])):
        return False
    seconds = value[-1]
    return value[0] <= value[1] and type(seconds) in (int, float) and 0 <= seconds < float("inf")


LONGEST = 1000
"""Largest length of a text in a checkpoint."""
HEADER: dict[str, Callable[[Any], bool]] = {
    "graph": lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None,
    **dict.fromkeys(("vertices", "edges"), _is_whole),
    **dict.fromkeys(("parts", "splits"), lambda value: _is_whole(value, 1)),
    **dict.fromkeys(("partition", "kernel", "backend", "rows", "reorder", "version"), _is_text),
    "column_parts": lambda value: _is_whole(value, 1),
    **dict.fromkeys(("question", "columns", "function", "reduce"), _is_text),
}
"""Checks of the fields of the first line."""
MAY_MISS = {"rows", "column_parts", "question", "columns", "function", "reduce"}
"""Fields of the first line that may be missing."""
RECORD: dict[str, Callable[[Any], bool]] = {
    "task": lambda value: isinstance(value, list) and all(map(_is_whole, value)),
    "count": _is_count,
    "worker": _is_text,
}
"""Checks of the fields of all other lines."""
SURVEY_RECORD = RECORD | {"result": lambda value: isinstance(value, str)}
"""Checks of those fields in the checkpoint of a survey."""


def fingerprint(graph: CountingContext) -> What:
    """Fingerprint a graph's count, ready for JSON: equal only for the same edges, blocks, plan, kernel and version."""
    executor, plan, backend = graph.executor, graph.plan, graph.options.chosen_backend
    places = sorted(graph.blocks)
    digests = executor.gather([executor.submit("fingerprint", _digest, graph.blocks[place]) for place in places])
    return {
        "graph": hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest(),
        **{name: getattr(plan, name) for name in ("vertices", "edges", "partition", "parts", "splits")},
        **({} if plan.column_parts is None else {"column_parts": plan.column_parts}),
        "kernel": graph.options.chosen_kernel,
        "backend": backend,
        # How `splits` deals rows out; earlier versions differed.
        **({"rows": f"dealt by {GROUP}"} if backend in ON_DEVICE else {}),
        "reorder": graph.options.chosen_reorder,
        "version": version("dasktc"),
    }


def _digest(block: OrientedCSR) -> str:
    """Hash the arrays of a block; runs on a worker."""
    return digest(block.offsets, block.columns)


def digest(*arrays: Any) -> str:
    """Hash the bytes of arrays."""
    state = hashlib.blake2b(digest_size=16)
    for array in arrays:
        content: Any = np.ascontiguousarray(on_host(array)).view("u1")
        state.update(content)
    return state.hexdigest()


class Checkpoint:
    """The records of a count by job, those of earlier runs too, in memory and in an open file; made by `opened`.

    Of a survey, it also has the results of earlier runs.
    """

    def __init__(self, file: int, path: Path, jobs: list[Job], lines: list[What]) -> None:
        self._file, self._path, self._synced = file, path, time.monotonic()
        names, self.records = {_name(job): job for job in jobs}, dict[Job, Record]()
        self._results = dict[Job, str]()
        for line in lines:
            job = names.get(tuple(line["task"]))
            if job is None:
                raise _damaged(path, f"task {line['task']} is none of this count's {len(names):,}")
            record = Record(job, TaskCount(*line["count"]), line["worker"])
            if self.records.setdefault(job, record).count[:3] != record.count[:3]:
                raise _damaged(path, f"task {line['task']} is there twice, with different counts")
            if "result" in line:
                self._results[job] = line.pop("result")

    def results(self) -> Iterator[Any]:
        """Yield the results of a survey's tasks that earlier runs finished; each is freed when it is taken."""
        for job in list(self._results):
            try:
                packed = base64.b64decode(self._results.pop(job), validate=True)
                result = pickle.loads(zlib.decompress(packed))
            except Exception as error:  # bytes that are no pickle may raise anything
                reason = f"the result of task {list(_name(job))} cannot be read ({_short(str(error))})"
                raise _damaged(self._path, reason) from None
            yield result

    def add(self, record: Record, *results: Any) -> None:
        """Append a record, of a survey with its result, with one write, on the disk within a second.

        Raises
        ------
        InputError
            The result cannot be pickled.
        DasktcError
            The operating system refused.
        """
        self.records[record.job] = record
        line: What = {"task": _name(record.job), "count": list(record.count), "worker": record.worker}
        for result in results:
            line["result"] = _packed(result)
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
        Made if it does not exist.
    what : dict
        The count's fingerprint.
    jobs : list of Job
        The count's tasks.

    Raises
    ------
    InputError
        It belongs to another count; the error names the differences. Or another process writes to it.
    DasktcError
        The operating system refused.
    """
    check_folder(folder)
    path = Path(folder).absolute() / FILE
    # Open without blocking, in case a pipe or a device has replaced the file since the check.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with ExitStack() as stack:
        with _said_in_one_line(path):
            path.parent.mkdir(exist_ok=True)
            stack.enter_context(_locked(path))
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | flags, 0o644)
            stack.callback(os.close, file)
            lines = _restored(file, path, what)
        yield Checkpoint(file, path, jobs, lines)
        with _said_in_one_line(path):
            os.fsync(file)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse (InputError) a folder that cannot hold a checkpoint, before anything is read."""
    path = Path(path_text("checkpoint", folder)).absolute()
    if os.path.lexists(path) and not os.path.isdir(path):
        argument = option("checkpoint", os.fspath(folder))
        raise InputError(f"{argument} is no folder: one is needed, or a name for a new one")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path.parent} is no folder: checkpoint {path.name} would be in it; create it first")
    check_regular(f"checkpoint {path / FILE}", str(path / FILE))
    check_regular(f"lock of a checkpoint {path / LOCK}", str(path / LOCK))
    if not os.path.exists(path / FILE):
        place = str(path if path.is_dir() else path.parent)
        check_writable_folder(f"{option('checkpoint')} {place}", place)
    elif not os.access(path / FILE, os.R_OK | os.W_OK):
        raise InputError(f"checkpoint {path / FILE} cannot be read and written by this user; choose another folder")


def as_begun(options: Options, folder: str | os.PathLike[str]) -> Options:
    """Take from a checkpoint the choices that a new plan could make differently, because workers or memory differ now.

    Partition, parts and splits default to those of the checkpoint, if there is one.
    """
    check_folder(folder)
    path = Path(folder).absolute() / FILE
    if not path.is_file():
        return options
    with _said_in_one_line(path, "read"), path.open("rb") as file:
        header = _checked(file.readline().removesuffix(b"\n"), path, 1)
    if header is None:
        return options
    _check_header(header, path, 1)
    requests = {"partition": options.partition != "auto", "parts": options.parts, "splits": options.splits}
    choices = {name: header[name] for name, is_given in requests.items() if not is_given}
    if options.column_parts is None and choices.get("partition", options.partition) == header["partition"]:
        choices["column_parts"] = header.get("column_parts")
    return replace(options, **choices)


def _restored(file: int, path: Path, identity: What) -> list[What]:
    """Read the records of an open file; begin the file if it is empty."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise _damaged(path, "it is no regular file")
    text = path.read_bytes()
    numbered_lines = [(number, _checked(line, path, number)) for number, line in enumerate(text.split(b"\n"), 1)]
    if numbered_lines[0][1] is None and (len(numbered_lines) > 1 or not BEGINNING.startswith(text[: len(BEGINNING)])):
        raise InputError(
            f"checkpoint {path} begins with an unknown line: it is damaged, or not a checkpoint of dasktc; "
            f"choose another folder with {advice('checkpoint')}, or remove the file"
        )
    lines = [(number, line) for number, line in numbered_lines if line is not None]  # those with correct checksums
    if not lines:  # even the first one was torn
        os.ftruncate(file, 0)
        _write(file, _line(identity))
        return []
    (first, header), *record_lines = lines
    _check_header(header, path, first)
    if header != identity:
        raise InputError(_differences(path, header, identity))
    if not text.endswith(b"\n"):
        _write(file, b"\n")  # ends a line that a crash tore
    records = [(number, line) for number, line in record_lines if line != header]
    fields = SURVEY_RECORD if "question" in identity else RECORD
    for number, line in records:
        _check_fields(line, fields, path, number)
    return [line for _, line in records]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a checkpoint, which also ends with this process."""
    file = path.with_name(LOCK)
    if file.exists() and file.stat().st_size:  # locking would truncate it
        raise InputError(
            f"{file} is no lock of dasktc, it holds {plural(file.stat().st_size, 'byte')}: move it, or choose "
            f"another folder with {advice('checkpoint')}"
        )
    lock = locket.lock_file(str(file), timeout=0)
    try:
        lock.acquire()
    except locket.LockError:
        raise InputError(
            f"checkpoint {path} is in use: another count writes to it; wait for it, or choose another folder"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        _log.info("%s: the disk has no locks (%s); no other count may use this folder", path, error)
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _packed(result: Any) -> str:
    try:
        pickled = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # objects may raise anything
        raise InputError(
            f"a survey's result of type {type(result).__qualname__} cannot be kept in a checkpoint "
            f"({_short(str(error))}): return numbers, arrays or frames, or leave out {option('checkpoint')}"
        ) from error
    return base64.b64encode(zlib.compress(pickled, 1)).decode()


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


@contextmanager
def _said_in_one_line(path: Path, action: str = "written") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DasktcError(
            f"checkpoint {path} cannot be {action}: {error}; choose with {advice('checkpoint')} a writable "
            "folder with free space"
        ) from error


def _check_header(header: Any, path: Path, number: int) -> None:
    """Refuse a first line of another version, which may have other fields, or one that no version can have written."""
    writer = header.get("version") if isinstance(header, dict) else None
    if _is_text(writer) and writer != (own_version := version("dasktc")):
        raise InputError(_differences(path, {"version": writer}, {"version": own_version}))
    _check_fields(header, HEADER, path, number)


def _check_fields(line: Any, fields: dict[str, Callable[[Any], bool]], path: Path, number: int) -> None:
    """Refuse a line without these fields, or with an impossible value."""
    names = set(line) if isinstance(line, dict) else set()
    if not fields.keys() - MAY_MISS <= names <= fields.keys():
        field_names = ", ".join(fields)
        raise _damaged(path, f"line {number} is no object of {field_names}")
    for name in names:
        if not fields[name](line[name]):
            raise _damaged(path, f"line {number} has an impossible {name}, {_short(line[name])}")


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        f"checkpoint {path} cannot be trusted: {reason}: it was changed, or another program wrote it; choose another "
        f"folder with {advice('checkpoint')}, or remove the file"
    )


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _line(content: What) -> bytes:
    text = json.dumps(content).encode()
    return text + b"\t" + _checksum(text) + b"\n"


def _checked(line: bytes, path: Path, number: int) -> Any:
    """Parse a line of the checkpoint; None if its checksum is wrong."""
    text, _, checksum = line.rpartition(b"\t")
    if not text or checksum != _checksum(text):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"line {number} is no JSON ({_short(str(error))})") from None
    return () if content is None else content  # `null` is neither a line of a checkpoint nor a torn one


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).hexdigest().encode()


def _name(job: Job) -> tuple[int, ...]:
    return (*(part for place in job.triple.places for part in place), job.split)


def _differences(path: Path, header: What, identity: What) -> str:
    names = [name for name in dict.fromkeys([*identity, *header]) if header.get(name) != identity.get(name)]
    names = ["question"] if "question" in names else names
    header_text, identity_text = (
        ", ".join(f"{name} {identity.get(name, 'not given')}" for name in names) for identity in (header, identity)
    )
    question, compared = identity.get("question", "count"), ""
    kind = question if question in ("count", "survey") else "question"
    if {"function", "reduce"} & {*names}:
        compared = " (compared are its code, and what of its module that uses)"
    return (
        f"checkpoint {path} is of another {kind}: {header_text} there, {identity_text} here{compared}; "
        "give the options with which it was begun, or another folder"
    )
