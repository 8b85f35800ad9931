"""Writes frames of edges or results to a file: workers write one part file per frame, the client only renames.

The target gets its name when it is complete: part files go to a hidden folder beside it, which is removed in any case.
All workers and the client must see that folder. Part files and their concatenation are always written from the start,
so a task may run again.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import DasktcError, InputError
from dasktc.executors.base import Executor, starmap
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.process.paths import check_writable_folder
from dasktc.executors.stores.claims import PREFIX, Claim, remove_abandoned
from dasktc.io.source import Part, Source
from dasktc.options import path_text
from dasktc.wording import advice, option, plural

__all__ = [
    "FRAMES",
    "PAGES",
    "check_target",
    "hidden_beside",
    "is_same_target",
    "publish",
    "write_edges",
    "write_frames",
    "write_page",
]

EDGES = (".parquet", ".txt")
FRAMES = (".parquet", ".csv", ".txt")
"""Extensions of the output formats of results."""
PAGES = (".html",)
GPU_PARTS = 16
"""Parts that a worker's GPU makes in one task, so that several threads have parts to write."""
WRITERS = 16
"""Largest number of threads that write a GPU's parts: compressing takes a hundred times as long as making."""
HIDDEN = f".{PREFIX}"
"""Prefix of the folders that hold incomplete files."""


def write_edges(
    source: Source, out: str | os.PathLike[str], executor: Executor, force: bool = False, backend: str = "cpu"
) -> int:
    """Write the edges of a source unchanged, with loops, duplicates and directions.

    Parameters
    ----------
    source : Source
        Its parts need no upstream value.
    out : path
        OUT.parquet: columns src and dst; one file, or a folder with one file per part if there are
        several. OUT.txt: one line "src<tab>dst" per edge, in the order of the parts, no header.
    executor : Executor
    force : bool
        Replace an existing file, or a folder that holds nothing but .parquet files.
    backend : {"auto", "cpu", "cuda"}
        Backend that makes a generated graph's edges: with cuda GPUs make them and threads write them; the files are
        the same. "auto": GPUs if every worker has one.

    Returns
    -------
    int
        Number of edges written.

    Raises
    ------
    InputError
        `out` has another extension, exists already, or its folder does not; or `backend` is cuda and a worker has no
        GPU.
    DasktcError
        The operating system refused to write.
    """
    check_target(out, EDGES, force)
    parts, has_gpus = source.parts or (None,), _on_gpus(executor, backend)

    def write(paths: list[str]) -> list[Any]:
        jobs = list(zip(parts, paths, strict=True))
        if not has_gpus:
            return executor.map("write", _write_part, jobs)
        group = GPU_PARTS if isinstance(executor, DaskExecutor) else len(jobs)
        groups = [jobs[first : first + group] for first in range(0, len(jobs), group)]
        return executor.map("write", _write_made, groups)

    return _write_hidden(out, executor, len(parts), write)


def write_frames(frames: list[Any], out: str | os.PathLike[str], executor: Executor, force: bool | None = None) -> int:
    """Write data frames, concatenated.

    Parameters
    ----------
    frames : list of handles of DataFrame, at least one
        With the same columns.
    out : path
        OUT.parquet: one file, or a folder with one file per frame if there are several. OUT.csv: with a header,
        and quotes where necessary. OUT.txt: tabs, no header.
    executor : Executor
    force : bool, optional
        As for `check_target`.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    InputError
        `out` has another extension, exists already, or its folder does not; or text has tabs, quotes or line
        ends, with which OUT.txt could not be read again.
    DasktcError
        The operating system refused to write.
    """
    check_target(out, FRAMES, force)

    def write(paths: list[str]) -> list[Any]:
        headers = [path.endswith(".csv") and number == 0 for number, path in enumerate(paths)]
        return starmap(executor, "write", _write_frame, list(zip(frames, paths, headers, strict=True)))

    return _write_hidden(out, executor, len(frames), write)


def write_page(text: str, out: str | os.PathLike[str], force: bool | None = None) -> None:
    """Write an HTML page to OUT.html.

    `force` and errors are those of `check_target`; DasktcError: the operating system refused to write.
    """
    check_target(out, PAGES, force)
    target = Path(out).absolute()
    with hidden_beside(target) as hidden_folder:
        page = hidden_folder / "page.html"
        page.write_text(text, encoding="utf-8", errors="backslashreplace")
        publish(page, target, hidden_folder)


def check_target(out: str | os.PathLike[str], suffixes: tuple[str, ...], force: bool | None) -> None:
    """Refuse a target that cannot be written, or whose existing file would be lost.

    Parameters
    ----------
    out : path
    suffixes : tuple of str
        The extensions that it may have, such as ".csv".
    force : bool or None
        Replace an existing file, or a folder that holds nothing but .parquet files. None: the caller has no option.

    Raises
    ------
    InputError
        The extension is another one, the folder is missing or cannot be written, or the target exists already.
    """
    target = Path(path_text("path", out)).absolute()
    if target.suffix not in suffixes:
        endings = ", ".join(suffixes)
        raise InputError(f"{target.name!r} ends in none of {endings}, the formats that are written; choose one")
    if not os.path.isdir(target.parent):
        raise InputError(f"{target.parent} is no folder: {target.name} would be in it; create it first")
    check_writable_folder(f"{target.name} cannot be made: its folder {target.parent}", str(target.parent))
    if not os.path.lexists(target):
        return
    if not force:
        remedy = "remove it" if force is None else f"replace it with {advice(force=True)}"
        raise InputError(f"{target} exists: it would be lost; choose another name, or {remedy}")
    files = [name for name in os.listdir(target) if not name.endswith(".parquet")] if target.is_dir() else []
    if files:
        raise InputError(
            f"{target} is a folder with {plural(len(files), 'entry')} other than .parquet files, {files[0]!r} for "
            f"one: {option('force', True)} replaces only edge files; choose another name"
        )


def is_same_target(first: Path, second: Path) -> bool:
    """Return whether two targets in existing folders are one file: by links, or where case or Unicode form differ.

    Whether a file system tells names of another case apart is found out with a file in a hidden folder.
    """
    if os.path.lexists(first) and os.path.lexists(second):
        with suppress(OSError):  # a link that leads nowhere
            if first.samefile(second):
                return True
    ends = Path(os.path.realpath(first)), Path(os.path.realpath(second))
    if not ends[0].parent.exists() or not ends[1].parent.exists() or not ends[0].parent.samefile(ends[1].parent):
        return False
    names = ends[0].name, ends[1].name
    if names[0] == names[1]:
        return True
    if _folded(names[0]) != _folded(names[1]):
        return False
    with hidden_beside(first) as hidden_folder:
        (hidden_folder / names[0]).touch()
        return (hidden_folder / names[1]).exists()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _write_hidden(
    file: str | os.PathLike[str], executor: Executor, count: int, write: Callable[[list[str]], list[Any]]
) -> int:
    """Write `count` part files by tasks, which return their rows, join them, and publish the result as the target."""
    target = Path(file).absolute()
    with hidden_beside(target) as hidden_folder:
        folder, result = hidden_folder / "parts", hidden_folder / "joined"
        folder.mkdir()
        paths = [str(folder / f"part-{number:07d}{target.suffix}") for number in range(count)]
        rows = sum(executor.gather(write(paths)))
        if count == 1:
            result = Path(paths[0])
        elif target.suffix == ".parquet":
            result = folder
        else:
            executor.gather([executor.submit("join", _join, paths, str(result))])
        publish(result, target, hidden_folder)
    return int(rows)


@contextmanager
def hidden_beside(target: Path) -> Iterator[Path]:
    """Make a hidden folder for incomplete files, and remove it in any case."""
    try:
        remove_abandoned(target.parent, HIDDEN)
        claim = Claim(target.parent, HIDDEN, 0o777)
        try:
            yield Path(claim.folder)
        finally:
            claim.release()
    except OSError as error:
        raise DasktcError(
            f"{target} cannot be written: {error.strerror or error}; choose a folder with free space, which every "
            "worker sees"
        ) from error


def _write_part(job: tuple[Part | None, str]) -> int:
    """Read one part, write it to its path and return its number of edges; runs on a worker."""
    from dasktc.backends import get_backend

    part, path = job
    backend = get_backend("cpu")
    empty: Any = {"src": backend.array.empty(0, "int32"), "dst": backend.array.empty(0, "int32")}
    return _write_frame(backend.frame.DataFrame(empty) if part is None else part.read(backend), path)


def _on_gpus(executor: Executor, backend: str) -> bool:
    """Return whether workers make edges on their GPUs."""
    if backend == "cpu":
        return False
    from dasktc.backends.gpu_edges import no_gpu

    reasons = [reason for reason in executor.run_on_workers(no_gpu) if reason]
    if reasons and backend == "cuda":
        raise InputError(reasons[0])
    return not reasons


@said_in_one_line
def _write_made(jobs: list[tuple[Part | None, str]]) -> int:
    """Make parts on the GPU, one after another, while threads write the previous ones; runs on a worker."""
    import pyarrow as pa

    from dasktc.backends.gpu_edges import make_on_host

    threads = max(1, min(WRITERS, len(os.sched_getaffinity(0))))
    queue, rows = deque[Future[int]](), 0
    with ThreadPoolExecutor(threads) as writers:
        for part, path in jobs:
            ends = None if part is None else make_on_host(part)
            if ends is None:
                queue.append(writers.submit(_write_part, (part, path)))
            else:
                queue.append(writers.submit(_write_table, pa.table([*ends], names=["src", "dst"]), path))
            if len(queue) > 2 * threads:  # each holds the edges of a part
                rows += queue.popleft().result()
        return rows + sum(future.result() for future in queue)


def _write_frame(frame: Any, path: str, header: bool = False) -> int:
    """Write a frame to its path and return its number of rows; runs on a worker."""
    import pyarrow as pa

    return _write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None), path, header)


def _write_table(table: Any, path: str, header: bool = False) -> int:
    with open(path, "wb") as file:  # by Python, because Arrow refuses names that are not UTF-8
        if path.endswith(".parquet"):
            from pyarrow.parquet import write_table

            write_table(table, file, compression="zstd", use_dictionary=False)
        else:
            import pyarrow as pa
            from pyarrow.csv import WriteOptions, write_csv

            quotes, delimiter = ("needed", ",") if path.endswith(".csv") else ("none", "\t")
            reason = None if delimiter == "," else _unreadable(table)
            try:
                if reason is None:
                    options = WriteOptions(include_header=header, delimiter=delimiter, quoting_style=quotes)
                    write_csv(table, file, options)
            except pa.ArrowInvalid as error:
                reason = f"an id holds a tab, a quote or the end of a line ({error})"
            if reason is not None:
                raise InputError(f"{reason}: .txt cannot represent it; write .csv or .parquet")
    return int(table.num_rows)


def _unreadable(table: Any) -> str | None:
    """Describe an id that a reader of .txt would misread as a comment, a blank line or another id, if there is one."""
    import pyarrow.compute as pc
    from pyarrow import types

    for column in table.columns[:2]:
        if types.is_string(column.type) or types.is_large_string(column.type):
            mismatches = column.filter(pc.match_substring_regex(column, r"^[#%\s]|\s$|^$"))
            if len(mismatches):
                return f"id {mismatches[0].as_py()!r} would be read as a comment, as no id, or without its blanks"
    return None


def _join(paths: list[str], target_path: str) -> None:
    """Concatenate text files; runs on a worker."""
    with open(target_path, "wb") as target:
        for path in paths:
            with open(path, "rb") as text:
                shutil.copyfileobj(text, target, 1 << 20)


def publish(finished: Path, target: Path, hidden: Path) -> None:
    """Rename the finished file or folder to the target; an existing folder is renamed aside first.

    No clean-up removes that temporary name, so a process that is killed in between loses neither folder.
    """
    old_folder = hidden.with_name(f"replaced-{hidden.name[-8:]}")
    try:
        if os.path.lexists(target) and (finished.is_dir() or target.is_dir()):
            target.rename(old_folder)
        finished.replace(target)
    finally:  # also if a signal came in between
        try:
            _put_away(old_folder, target, hidden)
        except BaseException:  # or if one comes now
            _put_away(old_folder, target, hidden)
            raise


def _put_away(old_folder: Path, target: Path, hidden_folder: Path) -> None:
    """Move a replaced folder to where it is removed, or back if nothing has replaced it."""
    if os.path.lexists(old_folder):
        old_folder.rename(hidden_folder / "replaced" if os.path.lexists(target) else target)
