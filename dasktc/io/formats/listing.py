"""Expands a source into its files: a file, all files under a folder, matches of a pattern, local or behind a URL.

A folder of a table format (Delta Lake, Apache Hudi, Apache Iceberg) is refused, also where a pattern or a folder above
it reaches into it, because files of earlier versions stand beside the current ones. Files that are named themselves
are read, so that the list of current files that the table's own library gives can be passed.

Every folder must be readable, or the source is refused, because edges in an unreadable folder would silently
be missing from the count. Symbolic links are followed, and no folder is entered twice. Only regular files hold
data: a pipe, a socket or a device is refused, because reading it could block and data is read more than once.
"""

from __future__ import annotations

import fnmatch
import glob
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from dasktc.errors import InputError
from dasktc.io.formats import streams

__all__ = ["expand", "warn_of_tables"]

log = logging.getLogger("dasktc")

# Files that file systems and writers of data sets leave beside the data.
_SIDE_FILES = {"_SUCCESS", "_metadata", "_common_metadata"}
_SIDE_FOLDERS = {"_temporary", "_spark_metadata", "__MACOSX", "__pycache__"}
_LEFT_OVER = re.compile(r".*(~|\.(bak|swp|swo|orig|tmp|temp|part|partial|crdownload|download|rej))|#.*#", re.IGNORECASE)
"""Names of copies that editors keep, and of downloads and writes that did not end."""
_TABLES = {
    "_delta_log": (
        "Delta Lake",
        "pass the files that deltalake.DeltaTable(PATH).file_uris() lists (pip install deltalake)",
    ),
    ".hoodie": (
        "Apache Hudi",
        "pass pyarrow.Table.from_batches(hudi.HudiTableBuilder.from_base_uri(PATH).build().read()), and name its two "
        "id columns with columns=[A, B] (pip install hudi)",
    ),
    "metadata": (
        "Apache Iceberg",
        "pass pyiceberg.table.StaticTable.from_metadata(FILE).scan().to_arrow(), where FILE is the newest "
        "*.metadata.json in its folder metadata (pip install pyiceberg)",
    ),
}
"""Folders that make the one that holds them a table: the format, and how its current rows are read."""
_BVGRAPH_SIDE = {".properties", ".offsets", ".ef", ".obl", ".cmp", ".dcf"}


class _Entry(NamedTuple):
    """An entry of a folder: its name, its path, and whether it is a folder itself."""

    name: str
    path: str
    is_folder: bool


def expand(source: str | os.PathLike[str]) -> list[str]:
    """List the files that a source names.

    Parameters
    ----------
    source : str or path
        A file, a folder (everything under it), a glob pattern (`**` for any depth), or an fsspec
        URL of one of these. Hidden files, `_SUCCESS` and the like, and the side files of a
        BVGraph (`.properties`, `.offsets`, ... beside a `.graph`) are left out of folders and
        patterns.

    Returns
    -------
    list of str
        Paths or URLs, sorted.

    Raises
    ------
    InputError
        There is no such file or no file with edges, a file is not a regular one, or a folder
        cannot be read.
    """
    source = os.fsdecode(source)
    if not source or "\0" in source:
        raise InputError(f"{source!a} is no path: it is empty or holds a zero byte; name a file, a folder or a URL")
    if streams.is_remote(source):
        names = _remote(source)
    else:
        source = os.path.expanduser(source)
        names = _listed(_Local(), source, source)
    if not names:
        raise InputError(
            f"{source} is a directory without edges: it holds no file that could be data; "
            "give a file, or a folder or pattern with files in it"
        )
    for name in names:
        streams.check_regular(name)
    return sorted(names)


def _remote(source: str) -> list[str]:
    with streams.naming(source):
        fs, path = streams.filesystem(source)
    if "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)):
        return _listed(_Local(), path if os.path.lexists(path) else unquote(path), source)
    names = _listed(_Remote(fs, source), path, source)
    if names == [path]:
        return [source]
    # In a chain such as simplecache::s3://bucket/x the first link with a path is the one that was listed.
    links = source.split("::")
    place = next(i for i, link in enumerate(links) if "://" in link)
    link, tail = links[place].rstrip("/"), path.rstrip("/")
    # Some file systems strip the host.
    host = link.removesuffix(tail).rstrip("/") if link.endswith(tail) else ""
    has_host = "://" in host
    urls = [f"{host}/{name.lstrip('/')}" if has_host else fs.unstrip_protocol(name) for name in names]
    return ["::".join([*links[:place], url, *links[place + 1 :]]) for url in urls]


def _listed(fs: _FileSystem, path: str, source: str) -> list[str]:
    """List the files that `path` names on a file system, without those beside the data."""
    if fs.is_file(path):
        return [path]
    explicit_names = set(_parts(source))
    if fs.is_folder(path):
        _refuse_tables(fs, _above(path))
        names = set(_below(fs, path, explicit_names))
    elif fs.exists(path):
        return [path]
    elif not glob.has_magic(path):
        raise InputError(f"{source} does not exist; check the path{_here(source)}")
    else:
        root, parts = _split(path)
        _refuse_tables(fs, _above(root))
        matches = set(_matches(fs, root, parts, explicit_names)) if fs.is_folder(root) else set()
        if not matches:
            raise InputError(f"no file matches {source}; check the pattern{_here(source)}")
        folders = {match for match in matches if fs.is_folder(match)}
        names = (matches - folders).union(*(_below(fs, folder, explicit_names) for folder in folders))
    stems = {name.removesuffix(".gz") for name in names}
    graphs = {name.removesuffix(".graph") for name in stems if name.endswith(".graph")}
    names = {name for name in names if not _is_side_file(name, graphs, explicit_names)}
    *_, pattern = _parts(source)
    # The pattern ends as such names do.
    is_leftover_pattern = glob.has_magic(pattern) and _LEFT_OVER.fullmatch(pattern)
    leftovers = [] if is_leftover_pattern else sorted(name for name in names if _LEFT_OVER.fullmatch(_parts(name)[-1]))
    if leftovers:
        log.warning(
            "dasktc: warning: %s of %s%s not read: by name a copy that an editor kept, or a file that was never "
            "completed; name it itself if its edges count",
            os.path.basename(leftovers[0]),
            source,
            f" and {len(leftovers) - 1:,} more are" if len(leftovers) > 1 else " is",
        )
    return list(names.difference(leftovers))


def _parts(path: str) -> list[str]:
    return re.split(r"[/\\]", path)


def _here(source: str) -> str:
    if streams.is_remote(source):
        return ""
    try:
        return f" (the working directory is {os.getcwd()})"
    except OSError:
        return " (the working directory was removed)"


def _split(pattern: str) -> tuple[str, list[str]]:
    """Split a pattern into the folder above its first wildcard, and the parts below."""
    parts = pattern.split("/")
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    parent = "/".join(parts[:first])
    return parent + "/" * (first > 0 and not parent.strip("/")), [part for part in parts[first:] if part]


def _matches(fs: _FileSystem, folder: str, parts: list[str], explicit_names: set[str]) -> Iterator[str]:
    """Yield the paths that match a pattern below a folder; a matching folder stands for all files under it."""
    if not parts:
        yield folder
        return
    first, *rest = parts
    if first == "**":
        if not rest:
            yield folder
            return
        for subfolder, _ in _folders(fs, folder, explicit_names):
            yield from _matches(fs, subfolder, rest, explicit_names)
    elif not glob.has_magic(first):
        _refuse_tables(fs, [folder])
        path = os.path.join(folder, first)
        if fs.is_folder(path) if rest else fs.exists(path):
            yield from _matches(fs, path, rest, explicit_names)
    else:
        for entry in _entries(fs, folder, explicit_names):
            is_hidden = entry.name.startswith(".") and not first.startswith(".")
            if is_hidden or not fnmatch.fnmatch(entry.name, first):
                continue
            if not entry.is_folder:
                yield from [] if rest else [entry.path]
            elif not _is_side_folder(entry.name, explicit_names):
                yield from _matches(fs, entry.path, rest, explicit_names)


def _folders(fs: _FileSystem, folder: str, explicit_names: set[str]) -> Iterator[tuple[str, list[_Entry]]]:
    """Yield a folder and all folders below it, once each, with their entries."""
    queue, identities = [folder], {fs.identity(folder)}
    while queue:
        folder = queue.pop()
        entries = _entries(fs, folder, explicit_names)
        yield folder, entries
        for entry in entries:
            if entry.is_folder and not _is_side_folder(entry.name, explicit_names):
                identity = fs.identity(entry.path)
                if identity not in identities:
                    identities.add(identity)
                    queue.append(entry.path)


def _entries(fs: _FileSystem, folder: str, explicit_names: set[str]) -> list[_Entry]:
    """List a folder; InputError if it is a table's."""
    entries = fs.entries(folder)
    for entry in entries:
        if entry.is_folder and entry.name in _TABLES and entry.name not in explicit_names and _is_of_table(fs, entry):
            raise _table(fs, folder, entry.name)
    return entries


def _is_of_table(fs: _FileSystem, entry: _Entry) -> bool:
    """Return whether a folder with such a name is a table's; `metadata` is also the name of others."""
    return entry.name != "metadata" or any(file.name.endswith(".metadata.json") for file in fs.entries(entry.path))


def _above(folder: str) -> Iterator[str]:
    """Yield the folders above a partition (`day=1`, the `data` of Iceberg), up to one that is none by its name."""
    folder, name = os.path.split(folder.rstrip("/"))
    while name == "data" or "=" in name:
        yield folder
        folder, name = os.path.split(folder)


def _refuse_tables(fs: _FileSystem, folders: Iterable[str]) -> None:
    """Refuse folders that are tables, without listing them."""
    for folder in folders:
        if name := _kind_of_table(fs, folder):
            raise _table(fs, folder, name)


def _kind_of_table(fs: _FileSystem, folder: str) -> str | None:
    """Return the name of the folder that makes this one a table, if it has one."""
    entries = (_Entry(name, os.path.join(folder, name), True) for name in _TABLES)
    return next((child.name for child in entries if fs.is_folder(child.path) and _is_of_table(fs, child)), None)


def warn_of_tables(files: Sequence[str]) -> None:
    """Log, once for each table, that local files of it were named themselves, which are read, current or not."""
    fs = _Local()
    folders = Counter(os.path.dirname(os.path.abspath(file)) for file in files if not streams.is_remote(file))
    tables: Counter[tuple[str, str]] = Counter()
    for folder, count in folders.items():
        for place in (folder, *_above(folder)):
            if name := _kind_of_table(fs, place):
                tables[place, name] += count
    for (folder, name), count in tables.items():
        log.warning(
            "dasktc: warning: %d files of %s, a table of %s, are read because they are named, whether its current "
            "version has them or not; give the folder to see how its current rows are read",
            *(count, folder, _TABLES[name][0]),
        )


def _table(fs: _FileSystem, folder: str, name: str) -> InputError:
    format, advice = _TABLES[name]
    place = repr(os.path.abspath(folder)) if isinstance(fs, _Local) else "URL"
    return InputError(
        f"{folder or '.'} is a table of {format}, as its folder {name} says: files of earlier versions stand beside "
        f"the current ones; {advice.replace('PATH', place)}"
    )


def _below(fs: _FileSystem, folder: str, explicit_names: set[str]) -> list[str]:
    return [
        entry.path for _, entries in _folders(fs, folder, explicit_names) for entry in entries if not entry.is_folder
    ]


def _is_side_folder(name: str, explicit_names: set[str]) -> bool:
    return (name.startswith(".") or name in _SIDE_FOLDERS) and name not in explicit_names


def _is_side_file(path: str, graphs: set[str], explicit_names: set[str]) -> bool:
    *folders, name = _parts(path)
    stem, suffix = os.path.splitext(path.removesuffix(".gz"))
    if any(_is_side_folder(folder, explicit_names) for folder in folders):
        return True
    return name.startswith(".") or name in _SIDE_FILES or (suffix in _BVGRAPH_SIDE and stem in graphs)


class _Local:
    """The local file system. A path without permission is refused, never treated as missing."""

    def is_file(self, path: str) -> bool:
        return stat.S_ISREG(self._mode(path))

    def is_folder(self, path: str) -> bool:
        return stat.S_ISDIR(self._mode(path))

    def exists(self, path: str) -> bool:
        return self._mode(path) != 0

    def entries(self, folder: str) -> list[_Entry]:
        """List a folder; InputError if that fails."""
        try:
            with os.scandir(folder or ".") as items:
                return [_Entry(e.name, os.path.join(folder, e.name), _leads_to_folder(e)) for e in items]
        except OSError as error:
            raise _unreadable(folder, error) from error

    def identity(self, folder: str) -> object:
        """Return a key that is the same for every link to this folder."""
        try:
            status = os.stat(folder or ".")
        except OSError as error:
            raise _unreadable(folder, error) from error
        return status.st_dev, status.st_ino

    def _mode(self, path: str) -> int:
        """Return the mode of a file; 0 if it does not exist."""
        try:
            return os.stat(path or ".").st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except (OSError, ValueError) as error:  # ValueError: a path that cannot be encoded
            raise _unreadable(path, error) from error


class _Remote:
    """The files behind a URL."""

    def __init__(self, fs: Any, source: str) -> None:
        self._fs, self._source = fs, source

    def is_file(self, path: str) -> bool:
        with streams.naming(self._source):
            return bool(self._fs.isfile(path))

    def is_folder(self, path: str) -> bool:
        with streams.naming(self._source):
            return bool(self._fs.isdir(path))

    def exists(self, path: str) -> bool:
        with streams.naming(self._source):
            return bool(self._fs.exists(path))

    def entries(self, folder: str) -> list[_Entry]:
        with streams.naming(self._source):
            infos = self._fs.ls(folder, detail=True)
        paths = [(info["name"].rstrip("/"), info["type"] == "directory") for info in infos]
        return [
            _Entry(path.rsplit("/", 1)[-1], path, is_folder)
            for path, is_folder in paths
            if path.strip("/") != folder.strip("/")  # object stores list a marker of the folder itself
        ]

    def identity(self, folder: str) -> object:
        return folder


_FileSystem = _Local | _Remote


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link is no folder, and is refused as a file
        return False


def _unreadable(path: str, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(
        f"{path} cannot be read: {reason}: its edges would be missing from the count; check the path and "
        "your rights, or name the files themselves"
    )
