"""The folder of a saved graph: files of arrays and a manifest, which is written last and marks completion.

On a local disk the folder gets its name when it is complete. Behind a URL, where folders cannot be renamed, files are
written in place: the folder does not open before it has a manifest, and when it is replaced, its manifest goes first.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dasktc.errors import DasktcError, InputError, neutral_text, shown
from dasktc.executors.process.paths import check_writable_folder
from dasktc.io.formats import streams
from dasktc.io.write import hidden_beside, publish
from dasktc.options import path_text
from dasktc.wording import option, plural

__all__ = [
    "FILE",
    "FORMAT",
    "MANIFEST",
    "Manifest",
    "check_fields",
    "check_new",
    "check_sizes",
    "joined",
    "manifest_of",
    "new_folder",
]

_FORCE = option("force", True)
Manifest = dict[str, Any]
"""Description of a saved graph, ready for JSON."""
MANIFEST = "dasktc-graph.json"
FILE = re.compile(r"[a-z]+[-\w]*\.bin", re.ASCII)
"""Names of the files of arrays."""
FORMAT = 1
"""Number of the format that is written, and the highest number that can be read."""
_NO_FOLDER = {".txt", ".tsv", ".csv", ".mtx", ".parquet", ".npy", ".npz", ".gz", ".bz2", ".xz", ".zst"}
"""Extensions of names behind URLs that are assumed to be files without a request."""


def joined(folder: str, name: str) -> str:
    """Return the path or URL of an entry of a folder; in a chain of URLs the first with a path is the folder."""
    if not streams.is_remote(folder):
        return os.path.join(folder, name)
    links = folder.split("::")
    place = next((number for number, link in enumerate(links) if "://" in link), 0)
    return "::".join([*links[:place], f"{links[place].rstrip('/')}/{name}", *links[place + 1 :]])


def manifest_of(source: str | os.PathLike[str]) -> tuple[str, Manifest] | None:
    """Read the manifest of a saved graph.

    Parameters
    ----------
    source : path or fsspec URL

    Returns
    -------
    folder : str
    manifest : dict
        The result is None if the source is no saved graph.

    Raises
    ------
    InputError
        The manifest is damaged, or of a newer format.
    """
    text = _local(os.fsdecode(source))
    if "\0" in text:
        return None
    folder = text if streams.is_remote(text) else os.path.abspath(os.path.expanduser(text))
    path = joined(folder, MANIFEST)
    if not _is_file(path):
        return None
    try:
        with streams.open_decompressed(path) as file:
            content = json.loads(file.read())
        number = content["format"]
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ValueError(f"format {number!r}")
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, " ".join(str(error).split())) from None
    if number > FORMAT:
        raise InputError(
            f"{folder} is a saved graph of format {number}, written by dasktc {content.get('version')}; this dasktc "
            f"reads formats up to {FORMAT}: install a newer one, or save the graph again with this one"
        )
    if content.pop("checksum", None) != _checksum(content):
        raise damaged(path, "its checksum differs")
    return folder, content


def damaged(path: str, why: str) -> InputError:
    """Make the error for a damaged manifest."""
    return InputError(
        f"{path} is damaged ({why}): it was cut short or changed; fetch it again, or save the graph again"
    )


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


def check_fields(folder: str, content: Manifest, shape: Any) -> None:
    """Refuse a manifest with wrong fields; its checksum does not prove that dasktc wrote it.

    Parameters
    ----------
    folder : str
    content : dict
    shape : dict
        A type, where int means 0 to 2^63 - 1; `[shape]`, a list of such; `{name: shape}`, a dict with at least these
        fields; `{str: shape}`, a dict with any keys; a tuple of shapes, any one of these. A missing field that may be
        None is set to None.

    Raises
    ------
    InputError
    """
    if wrong := _unlike(content, shape):
        raise damaged(joined(folder, MANIFEST), f"its {wrong}")


def _unlike(value: Any, shape: Any, name: str = "content") -> str | None:
    """Describe the first field that does not have its shape; None if all have."""
    if isinstance(shape, tuple):
        problems = [_unlike(value, one, name) for one in shape]
        return None if None in problems else problems[0]
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or not 0 <= value < 1 << 63)):
        return f"{name} is {shown(value)}"
    inner: Iterator[tuple[Any, Any, str]] = iter(())
    if isinstance(shape, list):
        inner = ((one, shape[0], name) for one in value)
    elif isinstance(shape, dict):
        fields = dict.fromkeys(value, shape[str]) if str in shape else shape
        for field, of in fields.items():
            if field not in value:
                if not (isinstance(of, tuple) and type(None) in of):
                    return f"{name} has no {field}"
                value[field] = None
        inner = ((value[field], of, field) for field, of in fields.items())
    return next((wrong for one in inner if (wrong := _unlike(*one))), None)


def check_sizes(folder: str, sizes: dict[str, int]) -> None:
    """Refuse a folder with missing or truncated files.

    Parameters
    ----------
    folder : str
    sizes : dict of str to int
        Least number of bytes of each file.

    Raises
    ------
    InputError
    """
    there = _sizes(folder, sizes)
    for name, size in sizes.items():
        if name not in there:
            raise InputError(f"{folder} is damaged: {name} is missing; fetch it again, or save the graph again")
        had = there[name]
        if had is not None and had < size:
            raise InputError(
                f"{folder} is damaged: {name} has {plural(had, 'byte')} instead of {size:,}; fetch it again, or save "
                "the graph again"
            )


def _sizes(folder: str, names: Iterable[str]) -> dict[str, int | None]:
    """Return the size of each existing file; None if a server does not tell."""
    with streams.naming(folder):
        if not streams.is_remote(folder):
            with os.scandir(folder) as entries:
                return {entry.name: entry.stat().st_size for entry in entries}
        fs, path = streams.filesystem(folder)
        there: dict[str, int | None] = {}
        with suppress(FileNotFoundError):  # a plain web server may list no folder
            there = {os.path.basename(entry["name"].rstrip("/")): entry["size"] for entry in fs.ls(path, detail=True)}
        for name in names:
            if there.get(name) is None:  # neither does it list sizes: each file is asked for its own
                with suppress(FileNotFoundError):
                    there[name] = fs.info(f"{path.rstrip('/')}/{name}")["size"]
        return there


def check_new(out: str | os.PathLike[str], force: bool, outlives: str | None = None) -> str:
    """Refuse a folder that cannot be written, or whose contents would be lost.

    Parameters
    ----------
    out : path or fsspec URL
    force : bool
        Replace a saved graph.
    outlives : str, optional
        Why a folder in a process's memory would be useless; None if it would not.

    Returns
    -------
    str
        Its absolute path, or its URL.

    Raises
    ------
    InputError
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
    names = _entries(text)
    if names is None:
        return text
    if not force:
        raise InputError(
            f"{text} exists: it would be lost; choose another name, or replace a saved graph with {_FORCE}"
        )
    _own_files(text, names)
    return text


def _entries(folder: str) -> dict[str, bool] | None:
    """Return the names in a folder and whether each is a file; None if there is no such folder."""
    with streams.naming(folder):
        if not streams.is_remote(folder):
            if not os.path.isdir(folder):
                return None
            with os.scandir(folder) as entries:
                return {entry.name: entry.is_file() for entry in entries}
        fs, path = streams.filesystem(folder)
        if not fs.exists(path):
            return None
        listed = {entry["name"].rstrip("/"): entry["type"] == "file" for entry in fs.ls(path, detail=True)}
        # object stores list a marker of the folder itself
        return {os.path.basename(name): kind for name, kind in listed.items() if name.strip("/") != path.strip("/")}


def _own_files(folder: str, names: dict[str, bool] | None) -> list[str]:
    """Return the files that replacing a saved graph removes, the manifest first; refuse a folder with any other entry.

    Parameters
    ----------
    folder : str
    names : dict of str to bool, or None
        As from `_entries`.

    Raises
    ------
    InputError
    """
    if not names:
        return []
    if MANIFEST not in names:
        raise InputError(
            f"{folder} is a folder with {plural(len(names), 'entry')} and no {MANIFEST}, not a saved graph: "
            f"{_FORCE} replaces only these; choose another name"
        )
    path = joined(folder, MANIFEST)
    try:
        with streams.open_decompressed(path) as file:
            own = {MANIFEST, *filter(FILE.fullmatch, _named(json.loads(file.read())))}
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged ({' '.join(str(error).split())}): which files are the graph's is unknown, so {_FORCE} "
            "does not replace it; remove the folder yourself, or choose another name"
        ) from None
    others = [name for name, is_file in names.items() if name not in own or not is_file]
    if others:
        raise InputError(
            f"{folder} has {plural(len(others), 'entry that is', 'entries that are')} not the saved graph's, "
            f"{shown(others[0])} for one: {_FORCE} would delete them; move them elsewhere, or choose another name"
        )
    return [MANIFEST, *(name for name in names if name != MANIFEST)]


def _named(content: Any) -> Iterator[str]:
    """Yield the names of files in a manifest of any format."""
    if isinstance(content, dict):
        file = content.get("file")
        if isinstance(file, str):
            yield file
    for inner in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _named(inner)


@contextmanager
def new_folder(out: str) -> Iterator[tuple[str, Manifest]]:
    """Yield a folder for files and the manifest to fill in; at the end the folder is published with its manifest.

    If anything fails, nothing is published; on a local disk an earlier folder of that name stays. Of an earlier saved
    graph only the files that its manifest names are deleted.

    Parameters
    ----------
    out : str
        As returned by `check_new`.

    Raises
    ------
    DasktcError
        The folder cannot be written.
    """
    content: Manifest = {"format": FORMAT}
    if not streams.is_remote(out):
        target = Path(out)
        with hidden_beside(target) as hidden:
            folder = hidden / "graph"
            folder.mkdir()
            try:
                yield str(folder), content
            except DasktcError as error:  # it names a file in a folder that no longer exists
                raise type(error)(neutral_text(error).replace(str(folder), str(target))) from error
            (folder / MANIFEST).write_text(_text(content))
            _own_files(out, _entries(out))  # other files may have come meanwhile
            publish(folder, target, hidden)
        return
    fs, path = streams.filesystem(out)
    try:
        for name in _own_files(out, _entries(out)):
            fs.rm_file(f"{path}/{name}")
        fs.makedirs(path, exist_ok=True)
        yield out, content
        fs.pipe_file(f"{path}/{MANIFEST}", _text(content).encode())
    except BaseException as error:
        with suppress(Exception):
            for name in filter(FILE.fullmatch, _entries(out) or {}):
                fs.rm_file(f"{path}/{name}")
            fs.rmdir(path)
        if isinstance(error, DasktcError) or not isinstance(error, Exception):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DasktcError(
            f"{out} cannot be written: {reason}; choose a place with free space that all workers see"
        ) from error


def _text(content: Manifest) -> str:
    return json.dumps({**content, "checksum": _checksum(content)}) + "\n"


def _checksum(content: Manifest) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
