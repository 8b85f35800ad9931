"""Writing frames of edges or of results: each becomes a piece file where it is; the client only renames.

Nothing stands under the target's name until all of it is written: pieces go to a hidden folder
beside it, which is removed whatever happens. All workers and the client must see that folder.
Pieces and their join are written from the start each time: a task that Dask runs again does no harm.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dasktc.errors import DasktcError, InputError
from dasktc.executors.paths import as_text, check_writable_folder
from dasktc.executors.spill.claims import PREFIX, Claim, remove_abandoned

if TYPE_CHECKING:
    from dasktc.executors.base import Executor
    from dasktc.io.source import Part, Source

__all__ = ["FRAMES", "PAGES", "check_target", "write_edges", "write_frames", "write_page"]

EDGES = (".parquet", ".txt")
FRAMES = (".parquet", ".csv", ".txt")
"""Endings of the formats that results are written in."""
PAGES = (".html",)
HIDDEN = f".{PREFIX}"
"""What names of folders begin with where files stand that are not complete."""


def write_edges(source: Source, out: str | os.PathLike[str], executor: Executor, force: bool = False) -> int:
    """Write the edges of a source as they stand in it: loops, duplicates and directions kept.

    Parameters
    ----------
    source : Source
        Its parts need no upstream value.
    out : path
        OUT.parquet: columns src and dst; one file, or a folder with a file a part where there are
        several. OUT.txt: a line "src<tab>dst" an edge, in the order of the parts, no header.
    executor : Executor
    force : bool
        Replace an existing file, or a folder that holds nothing but .parquet files.

    Returns
    -------
    int
        Number of edges written.

    Raises
    ------
    InputError
        `out` has another ending, exists already, or stands in no folder.
    DasktcError
        The operating system refused to write.
    """
    check_target(out, EDGES, force)
    parts = source.parts or (None,)
    return _written(out, executor, len(parts), lambda pieces: _write_parts(list(parts), pieces, executor))


def write_frames(frames: list[Any], out: str | os.PathLike[str], executor: Executor) -> int:
    """Write data frames, one below the other.

    Parameters
    ----------
    frames : list of handles of DataFrame, at least one
        With the same columns.
    out : path
        OUT.parquet: one file, or a folder with a file a frame where there are several. OUT.csv: with a header,
        quotes where they are needed. OUT.txt: tabs, no header.
    executor : Executor

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    InputError
        `out` has another ending, exists already, or stands in no folder; or text has tabs, quotes or ends of
        lines and OUT.txt could not be read again.
    DasktcError
        The operating system refused to write.
    """
    check_target(out, FRAMES)
    return _written(out, executor, len(frames), lambda pieces: _write_results(frames, pieces, executor))


def write_page(text: str, out: str | os.PathLike[str]) -> None:
    """Write a page; parameters, apart from its text, and errors are those of `write_frames`.

    Parameters
    ----------
    text : str
    out : path
        OUT.html.
    """
    check_target(out, PAGES)
    target = Path(out).absolute()
    with _hidden_beside(target) as hidden:
        page = hidden / "page.html"
        page.write_text(text, encoding="utf-8", errors="backslashreplace")
        _publish(page, target, hidden)


def check_target(out: str | os.PathLike[str], suffixes: tuple[str, ...], force: bool | None = None) -> None:
    """Refuse a name that cannot be written, or whose file would be lost.

    Parameters
    ----------
    out : path
    suffixes : tuple of str
        The endings that it may have.
    force : bool, optional
        Replace an existing file, or a folder that holds nothing but .parquet files. None: there is no such option.

    Raises
    ------
    InputError
    """
    target = Path(as_text("OUT", out)).absolute()
    if target.suffix not in suffixes:
        endings = ", ".join(suffixes)
        raise InputError(f"{target.name!r} ends in none of {endings}, the formats that are written; choose one")
    if not os.path.isdir(target.parent):
        raise InputError(f"{target.parent} is no folder: {target.name} would stand in it; create it first")
    check_writable_folder(f"{target.name} stands in a folder,", str(target.parent))
    if not os.path.lexists(target):
        return
    if not force:
        way_out = "remove it" if force is None else "replace it with --force"
        raise InputError(f"{target} exists: it would be lost; choose another name, or {way_out}")
    others = [name for name in os.listdir(target) if not name.endswith(".parquet")] if target.is_dir() else []
    if others:
        raise InputError(
            f"{target} is a folder with {len(others)} entries other than .parquet files, {others[0]!r} for "
            "one: --force replaces edge files alone; choose another name"
        )


def _written(out: str | os.PathLike[str], executor: Executor, count: int, write: Callable[[list[str]], int]) -> int:
    """Have `count` pieces written, and give their whole the target's name."""
    target = Path(out).absolute()
    with _hidden_beside(target) as hidden:
        pieces = _piece_paths(hidden / "pieces", count, target.suffix)
        rows = write(pieces)
        _publish(_whole(pieces, hidden, executor), target, hidden)
    return rows


@contextmanager
def _hidden_beside(target: Path) -> Iterator[Path]:
    """Make a hidden folder for what is not complete, and remove it whatever happens."""
    try:
        remove_abandoned(target.parent, HIDDEN)
        claim = Claim(target.parent, HIDDEN, 0o777)
        try:
            yield Path(claim.folder)
        finally:
            claim.release()
    except OSError as error:
        raise DasktcError(
            f"{target} cannot be written: {error}; choose a place with room, which every worker sees"
        ) from error


def _piece_paths(folder: Path, count: int, suffix: str) -> list[str]:
    """Make the folder and name the pieces."""
    folder.mkdir()
    return [str(folder / f"part-{number:07d}{suffix}") for number in range(count)]


def _write_parts(parts: list[Part | None], pieces: list[str], executor: Executor) -> int:
    return sum(executor.gather(executor.map("write", _write_part, list(zip(parts, pieces, strict=True)))))


def _write_part(job: tuple[Part | None, str]) -> int:
    """Read one part, write it to its path and return its number of edges. Runs on a worker."""
    from dasktc.backends import get_backend

    part, path = job
    backend = get_backend("cpu")
    empty: Any = {"src": backend.array.empty(0, "int32"), "dst": backend.array.empty(0, "int32")}
    return _write_frame(backend.frame.DataFrame(empty) if part is None else part.read(backend), path)


def _write_results(frames: list[Any], pieces: list[str], executor: Executor) -> int:
    headers = [piece.endswith(".csv") and number == 0 for number, piece in enumerate(pieces)]
    jobs = zip(frames, pieces, headers, strict=True)
    return sum(executor.gather([executor.submit("write", _write_frame, *job) for job in jobs]))


def _write_frame(frame: Any, path: str, header: bool = False) -> int:
    """Write a frame to its path and return its number of rows. Runs on a worker."""
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    with open(path, "wb") as file:  # by Python: Arrow takes no names that are not UTF-8
        if path.endswith(".parquet"):
            from pyarrow.parquet import write_table

            write_table(table, file, compression="zstd", use_dictionary=False)
        else:
            _write_text(table, file, path.endswith(".csv"), header)
    return int(table.num_rows)


def _write_text(table: Any, file: Any, comma: bool, header: bool) -> None:
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    quotes, delimiter = ("needed", ",") if comma else ("none", "\t")
    why = None if comma else _unreadable(table)
    try:
        if why is None:
            write_csv(table, file, WriteOptions(include_header=header, delimiter=delimiter, quoting_style=quotes))
    except pa.ArrowInvalid as error:
        why = f"an id holds a tab, a quote or the end of a line ({error})"
    if why is not None:
        raise InputError(f"{why}: .txt has no way to say so; write .csv or .parquet")


def _unreadable(table: Any) -> str | None:
    """Say which ids a reader of plain text would take for something else."""
    import pyarrow.compute as pc
    from pyarrow import types

    for column in table.columns[:2]:
        if types.is_string(column.type) or types.is_large_string(column.type):
            odd = column.filter(pc.match_substring_regex(column, r"^([#%]|\s*$)"))
            if len(odd):
                return f"id {odd[0].as_py()!r} would be read as a comment, or as none"
    return None


def _whole(pieces: list[str], hidden: Path, executor: Executor) -> Path:
    """Return what is to be renamed: the only piece, the folder of pieces, or their join."""
    if len(pieces) == 1:
        return Path(pieces[0])
    if pieces[0].endswith(".parquet"):
        return Path(pieces[0]).parent
    joined = hidden / "joined"
    executor.gather([executor.submit("join", _join, pieces, str(joined))])
    return joined


def _join(pieces: list[str], joined: str) -> None:
    """Concatenate text files. Runs on a worker."""
    with open(joined, "wb") as whole:
        for piece in pieces:
            with open(piece, "rb") as text:
                shutil.copyfileobj(text, whole, 1 << 20)


def _publish(whole: Path, target: Path, hidden: Path) -> None:
    """Give the finished file or folder its name; a folder in its place steps aside first.

    It does so under a name that nobody removes: a process that is killed in between loses neither.
    """
    aside = hidden.with_name(f"replaced-{hidden.name[-8:]}")
    if os.path.lexists(target) and (whole.is_dir() or target.is_dir()):
        target.rename(aside)
    try:
        whole.replace(target)
    except BaseException:
        if os.path.lexists(aside):
            aside.rename(target)
        raise
    if os.path.lexists(aside):
        aside.rename(hidden / "replaced")
