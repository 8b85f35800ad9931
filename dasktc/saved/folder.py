"""The folder of a saved graph: files of arrays and a manifest, which is written last and marks completion.

On a local disk the folder gets its name when it is complete. Behind a URL, where folders cannot be renamed, files are
written in place: the folder does not open before it has a manifest, and when it is replaced, its manifest goes first.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, MsgspecError, Raw, Struct

from dasktc.errors import DasktcError, InputError, neutral_text, shown
from dasktc.executors.process.paths import check_writable_folder
from dasktc.io.formats import streams
from dasktc.io.inputs import MANIFEST
from dasktc.io.write import hidden_beside, publish
from dasktc.once import once
from dasktc.options import path_text
from dasktc.wording import option, plural

__all__ = [
    "FILE", "FORMAT", "MANIFEST", "check_new", "check_sizes", "damaged", "decoder", "joined",
    "manifest_of", "write_folder", "writing",
]  # fmt: skip

_FORCE = option("force", True)
FILE = r"(?a)\A[a-z]+[-\w]*\.bin\Z"
"""Pattern of the names of all other files, which are `saved.arrays`'."""
FORMAT = 2
"""Number of the format that is written, and the only one that is read."""
_NO_FOLDER = {".txt", ".tsv", ".csv", ".mtx", ".parquet", ".npy", ".npz", ".gz", ".bz2", ".xz", ".zst"}
"""Extensions of names behind URLs that are assumed to be files without a request."""
Graph = TypeVar("Graph", bound=Struct)
_IS_FILE = re.compile(FILE).match


class _Manifest(Struct):
    """What a manifest has in every format since the second; what `graph` is depends on the format.

    `version` is that of the dasktc that wrote it, `checksum` that of the bytes of `graph`.
    """

    format: Annotated[int, Meta(ge=1)]
    version: str = "of an unknown version"
    checksum: str = ""
    graph: Raw = Raw()


@once
def decoder(record: type[Graph]) -> msgspec.json.Decoder[Graph]:
    """Return the decoder of a record; msgspec ends the process where two threads meet at a record's first use."""
    return msgspec.json.Decoder(record)


def joined(folder: str, name: str) -> str:
    """Return the path or URL of an entry of a folder; in a chain of URLs the first with a path is the folder."""
    if not streams.is_remote(folder):
        return os.path.join(folder, name)
    links = folder.split("::")
    place = next((number for number, link in enumerate(links) if "://" in link), 0)
    return "::".join([*links[:place], f"{links[place].rstrip('/')}/{name}", *links[place + 1 :]])


def manifest_of(source: str | os.PathLike[str]) -> tuple[str, Raw] | None:
    """Read the manifest of a saved graph, a path or fsspec URL, and verify its format and checksum.

    Returns the folder, and the JSON of its `graph`; None if the source is no saved graph. InputError: the manifest is
    damaged, or of another format.
    """
    text = _local(os.fsdecode(source))
    if "\0" in text:
        return None
    folder = text if streams.is_remote(text) else os.path.abspath(os.path.expanduser(text))
    path = joined(folder, MANIFEST)
    if not _is_file(path):
        return None
    with streams.open_decompressed(path) as file:
        content = file.read()
    try:
        manifest = decoder(_Manifest).decode(content)
    except (MsgspecError, ValueError, RecursionError) as error:
        raise damaged(path, str(error)) from None
    if manifest.format != FORMAT:
        raise InputError(
            f"{folder} is a saved graph of format {manifest.format}, written by dasktc {manifest.version}; this "
            f"dasktc reads format {FORMAT} alone: save the graph again from its source, or open it with that dasktc"
        )
    if manifest.checksum != _checksum(manifest.graph):
        raise damaged(path, "its checksum differs")
    return folder, manifest.graph


def damaged(path: str, why: str) -> InputError:
    """Make the error for a manifest, a file or a folder that cannot be a saved graph's."""
    return InputError(f"{path} is damaged: {' '.join(why.split())}; fetch it again, or save the graph again")


def _is_file(path: str) -> bool:
    if not streams.is_remote(path):
        return os.path.isfile(path)
    folder = os.path.dirname(path)
    if glob.has_magic(folder) or os.path.splitext(folder)[1].lower() in _NO_FOLDER:
        return False
    with suppress(Exception):  # whoever opens it next reports an unreachable file
        fs, name = streams.filesystem(path)
        return bool(fs.isfile(name))
    return False


def _local(url: str) -> str:
    """Return the path of a file:// URL; other names are unchanged."""
    if url.startswith(("file://", "local://")) and "::" not in url:
        return str(streams.filesystem(url)[1])
    return url


def check_sizes(folder: str, sizes: dict[str, int]) -> None:
    """Refuse a folder in which files are missing, or have fewer bytes than `sizes` says."""
    entries = _entries(folder) or {}
    for name, size in sizes.items():
        nbytes = entries[name].size if name in entries else None
        if nbytes is None and streams.is_remote(folder):  # a plain web server lists no folder, or no sizes
            with streams.naming(folder), suppress(FileNotFoundError):
                fs, path = streams.filesystem(joined(folder, name))
                nbytes = fs.info(path)["size"]
                entries[name] = _Entry(True, nbytes)
        if name not in entries:
            raise damaged(folder, f"{name} is missing")
        if nbytes is not None and nbytes < size:
            raise damaged(folder, f"{name} has {plural(nbytes, 'byte')} instead of {size:,}")


class _Entry(NamedTuple):
    """An entry of a folder, and its size where the file system tells."""

    is_file: bool
    size: int | None


def _entries(folder: str) -> dict[str, _Entry] | None:
    """Return the entries of a folder by name; None if there is no such folder."""
    with streams.naming(folder):
        if not streams.is_remote(folder):
            if not os.path.isdir(folder):
                return None
            with os.scandir(folder) as entries:
                sizes = {entry.name: entry.stat().st_size if entry.is_file() else None for entry in entries}
                return {name: _Entry(size is not None, size) for name, size in sizes.items()}
        fs, path = streams.filesystem(folder)
        if not fs.exists(path):
            return None
        infos: dict[str, Any] = {}
        with suppress(FileNotFoundError):  # a plain web server may list no folder
            infos = {entry["name"].rstrip("/"): entry for entry in fs.ls(path, detail=True)}
        infos.pop(path.rstrip("/"), None)  # object stores list a marker of the folder itself
        return {os.path.basename(name): _Entry(info["type"] == "file", info["size"]) for name, info in infos.items()}


def check_new(out: str | os.PathLike[str], force: bool, outlives: str | None) -> str:
    """Refuse a folder that cannot be written, or whose contents would be lost; return its absolute path, or its URL.

    With `force` a saved graph is replaced. `outlives` says why a folder in a process's memory would be useless; None if
    it would not.
    """
    text = _local(path_text("path", out))
    if streams.is_remote(text):
        with streams.naming(text):
            if outlives and streams.in_process_memory(text):
                raise InputError(f"{text} is in a process's memory: {outlives}; choose a path, or a URL that stays")
    else:
        target = Path(text).expanduser().absolute()
        text = str(target)
        if not target.parent.is_dir():
            raise InputError(f"{target.parent} is no folder: {target.name} would be in it; create it first")
        check_writable_folder(f"{target.name} cannot be made: its folder {target.parent}", str(target.parent))
        if os.path.lexists(target) and not target.is_dir():
            raise InputError(f"{target} is a file: a folder is needed for a graph; choose another name")
    if (entries := _entries(text)) is not None:
        if not force:
            raise InputError(
                f"{text} exists: it would be lost; choose another name, or replace a saved graph with {_FORCE}"
            )
        _own_files(text, entries)
    return text


def _own_files(folder: str, entries: dict[str, _Entry] | None) -> list[str]:
    """Return the files that replacing a saved graph removes, the manifest first; refuse a folder with any other entry.

    `entries` are those of `_entries`.
    """
    if not entries:
        return []
    if MANIFEST not in entries:
        raise InputError(
            f"{folder} is a folder with {plural(len(entries), 'entry')} and no {MANIFEST}, not a saved graph: "
            f"{_FORCE} replaces only these; choose another name"
        )
    path = joined(folder, MANIFEST)
    with streams.open_decompressed(path) as file:
        content = file.read()
    try:
        graph_files = {MANIFEST, *filter(_IS_FILE, _file_names(msgspec.json.decode(content)))}
    except (MsgspecError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged ({' '.join(str(error).split())}): which files are the graph's is unknown, so {_FORCE} "
            "does not replace it; remove the folder yourself, or choose another name"
        ) from None
    strangers = [name for name, entry in entries.items() if name not in graph_files or not entry.is_file]
    if strangers:
        raise InputError(
            f"{folder} has {plural(len(strangers), 'entry that is', 'entries that are')} not the saved graph's, "
            f"{shown(strangers[0])} for one: {_FORCE} would delete them; move them elsewhere, or choose another name"
        )
    return [MANIFEST, *(name for name in entries if name != MANIFEST)]


def _file_names(content: Any) -> Iterator[str]:
    """Yield the names of files in a manifest of any format."""
    if isinstance(content, dict):
        file = content.get("file")
        if isinstance(file, str):
            yield file
    for value in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _file_names(value)


def write_folder(out: str, write: Callable[[str], Graph]) -> Graph:
    """Write a saved graph: its files by a function, then its manifest, with which the folder is published.

    `out` is as `check_new` returned it. `write` writes the files to the folder that it is given, and returns the
    `graph` of the manifest, which is returned. If anything fails, nothing is published; on a local disk an earlier
    folder of that name stays. Of an earlier saved graph only the files that its manifest names are deleted.

    DasktcError: the folder cannot be written.
    """
    if not streams.is_remote(out):
        target = Path(out)
        with hidden_beside(target) as hidden_folder:
            folder = hidden_folder / "graph"
            folder.mkdir()
            try:
                graph = write(str(folder))
            except DasktcError as error:  # it names a file in a folder that no longer exists
                raise type(error)(neutral_text(error).replace(str(folder), str(target))) from error
            (folder / MANIFEST).write_bytes(_encoded(graph))
            _own_files(out, _entries(out))  # other files may have come meanwhile
            publish(folder, target, hidden_folder)
        return graph
    fs, path = streams.filesystem(out)
    with writing(out):
        try:
            for name in _own_files(out, _entries(out)):
                fs.rm_file(f"{path}/{name}")
            fs.makedirs(path, exist_ok=True)
            graph = write(out)
            fs.pipe_file(f"{path}/{MANIFEST}", _encoded(graph))
        except BaseException:
            with suppress(Exception):
                for name in filter(_IS_FILE, _entries(out) or {}):
                    fs.rm_file(f"{path}/{name}")
                fs.rmdir(path)
            raise
    return graph


@contextmanager
def writing(url: str) -> Iterator[None]:
    """Convert any exception of the file system into a DasktcError that names what is written."""
    try:
        yield
    except DasktcError:
        raise
    except Exception as error:  # remote file systems raise the types of their libraries
        reason = getattr(error, "strerror", None) or error
        raise DasktcError(
            f"{url} cannot be written: {reason}; choose a place with free space that all workers see"
        ) from error


def _encoded(graph: Struct) -> bytes:
    content = Raw(msgspec.json.encode(graph))
    return msgspec.json.encode(_Manifest(FORMAT, version("dasktc"), _checksum(content), content)) + b"\n"


def _checksum(graph: Raw) -> str:
    return hashlib.blake2b(graph, digest_size=16).hexdigest()
