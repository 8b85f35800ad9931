"""Writing edges: each part becomes a piece file where it is read; the client only renames.

Nothing stands under the target's name until all of it is written: pieces go to a hidden folder
beside it, which is removed whatever happens. All workers and the client must see that folder.
Pieces and their join are written from the start each time: a task that Dask runs again does no harm.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dasktc.errors import DasktcError, InputError

if TYPE_CHECKING:
    from dasktc.sources import Part, Source
    from dasktc.tasks import Tasks

__all__ = ["write_edges"]

_SUFFIXES = (".parquet", ".txt")


def write_edges(source: Source, out: str | os.PathLike[str], tasks: Tasks, force: bool = False) -> int:
    """Write the edges of a source as they stand in it: loops, duplicates and directions kept.

    Parameters
    ----------
    source : Source
        Its parts need no upstream value.
    out : path
        OUT.parquet: columns src and dst; one file, or a folder with a file a part where there are
        several. OUT.txt: a line "src<tab>dst" an edge, in the order of the parts, no header.
    tasks : Tasks
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
    target = Path(out).absolute()
    _check_target(target, force)
    hidden = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
    try:
        try:
            hidden.mkdir()
            pieces = _piece_paths(hidden / "pieces", source, target.suffix)
            edges = _write_pieces(source, pieces, tasks)
            _publish(_whole(pieces, hidden, tasks), target, hidden)
        finally:
            _remove(hidden)
    except OSError as error:
        raise DasktcError(
            f"{target} cannot be written: {error}; choose a place with room, which every worker sees"
        ) from error
    return edges


def _check_target(target: Path, force: bool) -> None:
    if target.suffix not in _SUFFIXES:
        raise InputError(f"{target.name!r} ends in neither .parquet nor .txt, the formats written; choose one")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is no folder: {target.name} would stand in it; create it first")
    if not os.path.lexists(target):
        return
    if not force:
        raise InputError(f"{target} exists: it would be lost; choose another name, or replace it with --force")
    others = [name for name in os.listdir(target) if not name.endswith(".parquet")] if target.is_dir() else []
    if others:
        raise InputError(
            f"{target} is a folder with {len(others)} entries other than .parquet files, {others[0]!r} for "
            "one: --force replaces edge files alone; choose another name"
        )


def _piece_paths(folder: Path, source: Source, suffix: str) -> list[str]:
    """Make the folder and name a piece for each part, one for a source without parts."""
    folder.mkdir()
    return [str(folder / f"part-{number:07d}{suffix}") for number in range(max(1, len(source.parts)))]


def _write_pieces(source: Source, pieces: list[str], tasks: Tasks) -> int:
    jobs = list(zip(source.parts or (None,), pieces, strict=True))
    return sum(tasks.gather(tasks.map("write", _write_piece, jobs)))


def _write_piece(job: tuple[Part | None, str]) -> int:
    """Read one part, write it to its path and return its number of edges. Runs on a worker."""
    import pyarrow as pa

    from dasktc.backend import get_backend

    part, path = job
    backend = get_backend("cpu")
    empty: Any = {"src": backend.array.empty(0, "int32"), "dst": backend.array.empty(0, "int32")}
    frame = backend.frame.DataFrame(empty) if part is None else part.read(backend)
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if path.endswith(".txt"):
        from pyarrow.csv import WriteOptions, write_csv

        write_csv(table, path, WriteOptions(include_header=False, delimiter="\t", quoting_style="none"))
    else:
        from pyarrow.parquet import write_table

        write_table(table, path, compression="zstd", use_dictionary=False)
    return int(table.num_rows)


def _whole(pieces: list[str], hidden: Path, tasks: Tasks) -> Path:
    """Return what is to be renamed: the only piece, the folder of pieces, or their join."""
    if len(pieces) == 1:
        return Path(pieces[0])
    if pieces[0].endswith(".parquet"):
        return Path(pieces[0]).parent
    joined = hidden / "joined"
    tasks.gather([tasks.submit("join", _join, pieces, str(joined))])
    return joined


def _join(pieces: list[str], joined: str) -> None:
    """Concatenate text files. Runs on a worker."""
    with open(joined, "wb") as whole:
        for piece in pieces:
            with open(piece, "rb") as text:
                shutil.copyfileobj(text, whole, 1 << 20)


def _publish(whole: Path, target: Path, hidden: Path) -> None:
    """Give the finished file or folder its name; a folder in its place steps aside first."""
    replaced = hidden / "replaced"
    if os.path.lexists(target) and (whole.is_dir() or target.is_dir()):
        target.rename(replaced)
    try:
        whole.replace(target)
    except BaseException:
        if os.path.lexists(replaced):
            replaced.rename(target)
        raise


def _remove(hidden: Path) -> None:
    """Remove the hidden folder: renamed first, so that a task still running finds no place to write."""
    gone = hidden.with_name(hidden.name + ".gone")
    with suppress(OSError):
        hidden.rename(gone)
    for folder in (gone, hidden):
        shutil.rmtree(folder, ignore_errors=True)
