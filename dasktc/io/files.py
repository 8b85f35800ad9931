"""From the name of a source to its parts: which files, which format, which module reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from importlib import import_module

from dasktc.errors import InputError
from dasktc.io.formats import files, listing
from dasktc.io.formats.columns import listed
from dasktc.io.source import Ids, Part, ReadOptions, Source

__all__ = ["FORMATS", "detect", "open_source"]

FORMATS = {
    "text": "text",
    "csv": "text",
    "mtx": "matrixmarket",
    "metis": "metis",
    "smat": "smat",
    "lg": "lightgraphs",
    "parquet": "columnar",
    "npy": "columnar",
    "npz": "columnar",
    "bvgraph": "bvgraph",
}
"""Formats by name, and the modules of this package that read them."""

_UNUSED = {
    "columns": "it has no columns to choose from",
    "ids": "its ids are integers",
    "skip": "it says itself where its edges begin",
}

_COMPRESSION = {".gz", ".bz2", ".xz", ".zst", ".zstd"}
_EXTENSIONS = {
    ".csv": "csv",
    ".graph": "metis",
    ".metis": "metis",
    ".smat": "smat",
    ".lg": "lg",
    ".jlg": "lg",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".properties": "bvgraph",
}
_MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy"}
_FOREIGN = {
    rb"ARROW1|FEA1": "an Arrow or Feather file: write it as Parquet",
    rb"\x89HDF": "an HDF5 file: write its edges as Parquet or .npy",
    rb"ORC": "an ORC file: write it as Parquet",
    rb"\x80[\x02-\x05]": "a Python pickle: write its edges as Parquet or .npy",
    rb"7z\xbc\xaf|Rar!|\x1f\x9d|\x04\x22M\x18": "an archive of a kind that is not read: unpack it first",
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "UTF-32 text: convert it, with iconv -f UTF-32 -t UTF-8",
    rb"\xff\xfe|\xfe\xff": "UTF-16 text: convert it, with iconv -f UTF-16 -t UTF-8",
    rb"(?i)\s*<(\?xml|!doctype|html|graphml|gexf)": "XML or a web page: write its edges as text",
    rb"\s*[{\[]": "JSON: write its edges as text",
    rb"(?i)\s*((strict\s+)?(di)?graph(\s+[^\s{]+)?\s*{(?!\s*})|graph\s*\[|creator\s+\"|\*vertices\b)": (
        "GML, DOT or Pajek: write its edges as text, with networkx.write_edgelist for one"
    ),
}


def open_source(source: str | os.PathLike[str] | Sequence[str], options: ReadOptions) -> Source:
    """Find the files of a source and cut them into parts.

    Parameters
    ----------
    source : str, path, or sequence of these
        Files, folders, glob patterns or fsspec URLs.
    options : ReadOptions

    Returns
    -------
    Source

    Raises
    ------
    InputError
        There are no such files, their format is not known or takes no such option, or they do not
        go together.
    """
    if options.format is not None and options.format not in FORMATS:
        raise InputError(f"format {options.format!r} is not known; give one of {', '.join(FORMATS)}")
    names = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not names:
        raise InputError("no source is given; name a file, a folder, a pattern or a URL")
    urls = [url for name in names for url in listing.expand(name)]
    found: dict[Ids, str] = {}
    parts: list[Part] = []
    for url in urls:
        start = files.head(url)
        if not start and len(urls) > 1:
            continue  # writers of many files leave empty ones
        name = options.format or detect(url, start)
        module = import_module(f"dasktc.io.formats.{FORMATS[name]}")
        _refuse_unused(url, name, module.OPTIONS[name], options)
        pieces, ids = module.parts(url, options)
        found.setdefault(ids, url)
        parts.extend(pieces)
    if len(found) > 1:
        raise InputError(
            f"{found['int']} has integer ids and {found['text']} has text: files of different graphs, or names "
            "that look like numbers; use --ids text to take all of them as text"
        )
    if not found:
        raise InputError(f"{len(urls)} files of {names[0]} are all empty; check what wrote them")
    return Source(", ".join(os.fspath(name) for name in names), tuple(parts), next(iter(found)))


def detect(url: str, head: bytes) -> str:
    """Tell a file's format by its first bytes, then by its name.

    Parameters
    ----------
    url : str
    head : bytes
        Its first bytes, decompressed: some hundred at least, unless it is shorter.

    Returns
    -------
    str
        A name in `FORMATS`. What looks like nothing else is text.

    Raises
    ------
    InputError
        The bytes are of a format that is not read.
    """
    from dasktc.io.formats import lightgraphs, matrixmarket

    if matrixmarket.looks_like(head):
        return "mtx"
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    extension = _extension(url)
    if head.startswith(b"PK\x03\x04"):
        member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if member.endswith(b".npy"):
            return "npz"
        raise _unread(url, "a zip archive: unpack it first")
    if head[257:262] == b"ustar":
        raise _unread(url, "a tar archive: unpack it first, with tar -xf, and give the files with edges")
    if _EXTENSIONS.get(extension) == "bvgraph":
        return "bvgraph"
    for pattern, what in _FOREIGN.items():
        if re.match(pattern, head):
            raise _unread(url, what)
    if re.search(rb"[\x00-\x08\x0e-\x1f]", head):
        if extension == ".graph":
            return "bvgraph"
        raise _unread(url, f"binary data that begins with {head[:8]!r}: damaged, or a format that is not read")
    if extension == ".adjlist":
        raise _unread(url, "an adjacency list by its name: write one edge a line, with networkx.write_edgelist")
    return "lg" if lightgraphs.looks_like(head) else _EXTENSIONS.get(extension, "text")


def _extension(url: str) -> str:
    stem, extension = os.path.splitext(url.lower())
    while extension in _COMPRESSION:
        stem, extension = os.path.splitext(stem)
    return extension


def _unread(url: str, what: str) -> InputError:
    return InputError(f"{url} is {what}; if it is none, name its format with --format ({', '.join(FORMATS)})")


def _refuse_unused(url: str, name: str, taken: Collection[str], options: ReadOptions) -> None:
    """Refuse an option that the format has no use for; integers are what such formats hold anyway."""
    for option, why in _UNUSED.items():
        value = getattr(options, option)
        if option not in taken and value not in (None, "int"):
            raise InputError(
                f"--{option} {listed(value) if option == 'columns' else value} is given for {url}, of format "
                f"{name}: {why}; leave it out, or name another --format"
            )
