"""Opens a source by name: lists its files, detects their formats, and cuts them into parts.

`FORMATS` is the registry of file formats.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from math import inf, isfinite
from typing import Any, NamedTuple

from dasktc.errors import InputError
from dasktc.io.evidence import Reading, warn_of_zeros
from dasktc.io.formats import listing, streams
from dasktc.io.formats.sniff import Doubt, HeaderAloneError, first_line
from dasktc.io.source import Part, ReadOptions, Source
from dasktc.io.watched import Stamp, stamp, watched
from dasktc.options import Ids
from dasktc.planning.distribution import SourceSize
from dasktc.registry import check_choice
from dasktc.wording import advice, option, plural

__all__ = ["FORMATS", "detect", "open_source"]

log = logging.getLogger("dasktc")


class Format(NamedTuple):
    """A file format: the module that reads it, and how its files are recognized."""

    module: str
    """A module of `dasktc.io.formats` with a function `parts`."""
    extensions: tuple[str, ...] = ()
    """File name extensions in lower case, after those of compression have been removed."""
    magic: bytes = b""
    """First bytes of its files."""
    by_content: bool = False
    """Whether the module has a function `looks_like` that recognizes the first bytes of such a file."""
    options: frozenset[str] = frozenset()
    """The options among `columns`, `ids`, `skip` and `weight` that it supports; others are refused."""
    row_bytes: float | None = 12
    """Approximate bytes per row in real and generated graphs; None: too variable."""


_ALL = frozenset({"columns", "ids", "skip", "weight"})
FORMATS = {
    "text": Format("text", options=_ALL),
    "csv": Format("text", (".csv",), options=_ALL),
    "mtx": Format("matrixmarket", by_content=True, options=frozenset({"weight"}), row_bytes=11),
    "metis": Format("metis", (".graph", ".metis"), row_bytes=6),
    "smat": Format("smat", (".smat",), row_bytes=14),
    "ligra": Format("ligra", by_content=True, row_bytes=8),
    "lg": Format("lightgraphs", (".lg", ".jlg"), by_content=True, row_bytes=9),
    "parquet": Format("columnar", (".parquet", ".pq"), b"PAR1", options=_ALL - {"skip"}, row_bytes=5),
    "npy": Format("columnar", (".npy",), b"\x93NUMPY", row_bytes=8),
    "npz": Format("columnar", (".npz",), options=frozenset({"columns"}), row_bytes=6),
    "bvgraph": Format("bvgraph", (".properties",), row_bytes=None),
}
"""The registry of file formats, by the names that users give. A new format is a module and an entry here."""

_SURVEYED = ("text", "csv", "parquet")
"""Formats with columns of any values."""
_UNUSED = {
    "columns": "it has no columns to choose from",
    "ids": "its ids are integers",
    "skip": "it says itself where its edges begin",
    "weight": "its weights are not read",
}

COMPRESSED = 3.5
"""Typical ratio of the size of text to that of its archive."""
_COMPRESSION = {".gz", ".bz2", ".xz", ".zst", ".zstd", ".tgz", ".tbz2", ".txz"}
_FOREIGN = {
    rb"\x93DASKTC\n": "a file of a saved graph: give its folder, with the dasktc-graph.json that belongs to it",
    rb"ARROW1|FEA1|\xff{4}.{3}\0": "an Arrow or Feather file: write it as Parquet",
    rb"\x89HDF": "an HDF5 file: write its edges as Parquet or .npy",
    rb"ORC": "an ORC file: write it as Parquet",
    rb"Obj\x01": "an Avro file: write it as Parquet",
    rb"SQLite format 3\0|.{8}DUCK": "a database: write its table of edges as Parquet or CSV",
    rb"MATLAB [0-9.]+ MAT-file": "a file of MATLAB: write the matrix as Matrix Market, with scipy.io.mmwrite",
    rb"[ -~]+\x01[ -~]+\r?\n": "text of Hive, with \\001 between fields: write tabs, with tr '\\001' '\\t'",
    rb"\x80[\x02-\x05]": "a Python pickle: write its edges as Parquet or .npy",
    rb"7z\xbc\xaf|Rar!|\x1f\x9d|\x04\x22M\x18": "an archive of a kind that is not read: unpack it first",
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "UTF-32 text: convert it, with iconv -f UTF-32 -t UTF-8",
    rb"\xff\xfe|\xfe\xff": "UTF-16 text: convert it, with iconv -f UTF-16 -t UTF-8",
    rb"([\t\n\r -~]\0){8}": "UTF-16 text: convert it, with iconv -f UTF-16LE -t UTF-8",
    rb"(\0[\t\n\r -~]){8}": "UTF-16 text: convert it, with iconv -f UTF-16BE -t UTF-8",
    rb"(?i)\s*<(\?xml|!doctype|html|table|graphml|gexf)": "XML or a web page: write its edges as text",
    rb"version https://git-lfs": "a pointer of Git LFS: fetch the file itself, with git lfs pull",
    rb"(?i)(404: not found|access denied|forbidden)\s*$": "what a server answers for a file: fetch the file itself",
    rb'\{"format": ?\d+, ?"version": ?"': "the manifest of a saved graph: give its folder",
    rb"\s*[{\[]": "JSON: write its edges as text",
    rb"(?i)\s*(?>//[^\n]*\n\s*|/\*.*?\*/\s*)*((strict\s+)?(di)?graph(\s+[^\s{]+)?\s*{(?!\s*})|graph\s*\[|creator\s+\"|"
    rb"\*(vertices|network)\b)": "GML, DOT or Pajek: write its edges as text, with networkx.write_edgelist for one",
    rb">>(di)?graph6<<|>>sparse6<<|nodedef>|(?i:dl\s+n\s*=)": (
        "graph6, GDF or UCINET DL: write its edges as text, with networkx.write_edgelist for one"
    ),
    rb"(?>c([ \t][^\n]*)?\r?\n)*p[ \t]+[a-z]+[ \t]+[0-9]+[ \t]+[0-9]+[^\n]*\n(?>c([ \t][^\n]*)?\r?\n)*[0-9]": (
        "a graph of the PACE challenges: write its edges as text, with grep '^[0-9]'"
    ),
    rb"(?>c([ \t][^\n]*)?\r?\n)*p[ \t]+[a-z]+[ \t]+[0-9]+[ \t]+[0-9]+\s": (
        "a DIMACS graph: write its edges as text, with grep '^[ae] ' and cut -d ' ' -f 2,3"
    ),
    rb"t[ \t]+#?[ \t]*-?[0-9]+[^\n]*\n\s*v[ \t]": (
        "a gSpan file of graphs: write the edges of one as text, with grep '^e ' and cut -d ' ' -f 2,3"
    ),
    rb"<[^<>\s]+>\s+<[^<>\s]+>\s|@prefix\s": (
        f"RDF: write its edges as text, or read N-Triples with {advice(format='text', columns=(0, 2))}"
    ),
}

_NAMED = {
    ".adjlist": "an adjacency list by its name: write one edge a line, with networkx.write_edgelist",
    ".hgr": "a hypergraph by its name, of sets of vertices: write one edge a line, as two vertices",
    ".lgl": "an LGL file by its name, whose lines with # are vertices: write one edge a line, with igraph's write_ncol",
    ".sif": f"a SIF network by its name: rows of three are read with {advice(format='text', columns=(0, 2))}",
    ".sql": "an SQL script by its name: write the table of edges as CSV",
    ".tgf": "a TGF file by its name: its edges begin below its line #; write these alone, with sed '1,/^#/d'",
}
"""Descriptions of text formats by extension, for those that the bytes do not reveal."""


def open_source(source: str | os.PathLike[str] | Sequence[str], options: ReadOptions) -> Source:
    """List the files of a source, detect their formats and cut them into parts.

    A source is one or several files, folders, glob patterns or fsspec URLs. InputError: there are no such files, their
    format is unknown or does not support an option, or they do not belong together.
    """
    if options.format is not None:
        check_choice("format", options.format, FORMATS)
    names = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not names:
        raise InputError("no source is given; name a file, a folder, a pattern or a URL")
    urls = [url for name in names for url in listing.expand(name)]
    listing.warn_of_tables(urls)
    files, header_error = _files_of(urls, options)
    examples: dict[Ids, str] = {}  # the first file with ids of a type
    parts: list[Part] = []
    reading: Reading | None = None
    rows = nbytes_in_all = 0.0  # infinite if unknown for one file
    for file in files:
        examples.setdefault(file.ids, file.url)
        reading = reading.joined(file.reading) if reading else file.reading
        parts.extend(watched(file.parts, file.url, file.start.stamp))
        archive = os.path.splitext(file.url.lower())[1] in _COMPRESSION
        nbytes = inf if streams.is_remote(file.url) else streams.size(file.url) * (COMPRESSED if archive else 1)
        row_bytes = FORMATS[file.format].row_bytes
        nbytes_in_all, rows = nbytes_in_all + nbytes, rows + (inf if row_bytes is None else nbytes / row_bytes)
    _say_doubts([doubt for part in parts if (doubt := getattr(part, "doubt", None))])
    if len(examples) > 1:
        raise InputError(
            f"{examples['int']} has integer ids and {examples['text']} has text: files of different graphs, or names "
            f"that look like numbers; use {advice(ids='text')} to take all of them as text"
        )
    if not examples and header_error is not None:
        raise header_error
    if not examples:
        raise InputError(f"{plural(len(urls), 'file')} of {names[0]} are all empty; check what wrote them")
    size = SourceSize(int(rows), int(nbytes_in_all)) if isfinite(rows) else None
    return Source(
        ", ".join(os.fspath(name) for name in names),
        tuple(parts),
        next(iter(examples)),
        size=size,
        weight=options.weight,
        reading=reading,
        untyped=options.surveyed and all(FORMATS[file.format].module == "text" for file in files),
    )


class _Start(NamedTuple):
    """The first line of a file that is no comment, whether it has no other, and the file's stamp before it was read."""

    line: str
    number: int
    single: bool
    stamp: Stamp | None


class _File(NamedTuple):
    """A file of a source, cut into parts."""

    url: str
    format: str
    parts: list[Any]
    ids: Ids
    reading: Reading
    start: _Start


def _read_file(url: str, format: str, options: ReadOptions, start: _Start) -> _File | HeaderAloneError:
    """Cut a file into parts; return, not raise, that it has a header alone: other files may have rows."""
    try:
        parts, ids = _module(format).parts(url, options)
    except HeaderAloneError as error:
        return error
    reading = next(filter(None, (getattr(part, "reading", None) for part in parts)), None)
    return _File(url, format, parts, ids, reading or Reading(f"{format} file"), start)


def _files_of(urls: Sequence[str], options: ReadOptions) -> tuple[list[_File], HeaderAloneError | None]:
    """Cut each file with rows into parts; return the error of the first with a header alone, too."""
    results = []
    for url in urls:
        first_stamp = stamp(url)
        head, path = streams.first_bytes(url)
        if not head and len(urls) > 1:
            continue  # writers of many files leave empty ones
        format = options.format or detect(path, head)
        if options.surveyed and format not in _SURVEYED:
            raise InputError(
                f"{url} is of format {format}, whose entries have no columns by name: columns of edges are read from "
                "text, CSV and Parquet files and from data frames; write it as one of these"
            )
        for name, fact in _UNUSED.items():
            value = getattr(options, name)
            if name not in FORMATS[format].options and value not in (None, "int"):  # such formats have integer ids
                raise InputError(
                    f"{option(name, value)} is given for {url}, of format {format}: {fact}; leave it out, or name "
                    f"another format with {advice('format')}"
                )
        has_siblings = len(urls) > 1 and FORMATS[format].module == "text" and options.skip is None
        line = first_line(head) if has_siblings else ("", 0, False)
        results.append(_read_file(url, format, options, _Start(*line, stamp=first_stamp)))
    headers = _shared_headers([file for file in results if isinstance(file, _File)])
    new_options = replace(options, headers=headers)
    for place, file in enumerate(results):
        if isinstance(file, _File) and file.start.line in headers and file.reading.names is None:
            # Its header was taken for a row.
            results[place] = _read_file(file.url, file.format, new_options, file.start)
    header_error = next((file for file in results if isinstance(file, HeaderAloneError)), None)
    return [file for file in results if isinstance(file, _File)], header_error


def _shared_headers(files: Sequence[_File]) -> frozenset[str]:
    """Return the first lines that are headers: that of a file is one in all files.

    A first line that all files share is one if some hold nothing else; else it is refused where it holds names.
    """
    headers = {file.start.line for file in files if file.start.line and file.reading.names is not None}
    if len(files) > 1 and len({file.start.line for file in files}) == 1 and not headers and files[0].start.line:
        line, number, *_ = files[0].start
        singles = [file.start.single for file in files]
        if any(singles) and not all(singles):
            return frozenset([line])
        if {file.ids for file in files} == {"text"}:
            raise _shared_line(files[0].url, number, line, len(files))
    return frozenset(headers)


def _shared_line(url: str, line: int, text: str, files: int) -> InputError:
    return InputError(
        f"line {line} of {url} holds {text[:60].strip()!r}, with which {files:,} files begin: a header, or one "
        f"edge in all of them; use {advice(skip=line)} if it is a header, {advice(skip=line - 1)} if it is an edge"
    )


def _say_doubts(doubts: list[Doubt]) -> None:
    """Log how doubtful first rows were read, once for all files; refuse an equal first edge in several files."""
    if zeros := [doubt for doubt in doubts if doubt.zeros]:
        warn_of_zeros(f"line {zeros[0].line} of {zeros[0].url}, {zeros[0].row!r},")
    doubts = [doubt for doubt in doubts if not doubt.zeros]
    if not doubts:
        return
    first = doubts[0]
    count = sum(doubt.row == first.row for doubt in doubts)
    if count > 1 and not first.header:
        raise _shared_line(first.url, first.line, first.row, count)
    log.warning(
        "dasktc: warning: line %d of %s, %r, is taken for %s%s; use %s if it is a header, %s if it is an edge",
        *(first.line, first.url, first.row, "a header" if first.header else "an edge"),
        f", as those of {len(doubts) - 1:,} other files are" * (len(doubts) > 1),
        *(advice(skip=first.line), advice(skip=first.line - 1)),
    )


def detect(url: str, head: bytes) -> str:
    """Return the name in `FORMATS` of a file's format, by its first bytes, then by its name; "text" if neither tells.

    `head` has its first decompressed bytes: at least some hundred, unless the file is shorter. InputError: the bytes
    are of a format that is not read.
    """
    for name, format in FORMATS.items():
        if format.magic and head.startswith(format.magic):
            return name
        if format.by_content and _module(name).looks_like(head):
            return name
    # The first bytes are of no format: the extension decides, unless they are of one that is not read.
    stem, extension = os.path.splitext(url.lower())
    while extension in _COMPRESSION:
        stem, extension = os.path.splitext(stem)
    extension_format = next((name for name, format in FORMATS.items() if extension in format.extensions), "text")
    if head.startswith(b"PK\x03\x04"):
        member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if member.endswith(b".npy"):
            return "npz"
        if member == b"[Content_Types].xml" or member.startswith((b"xl/", b"_rels/", b"docProps/")):
            raise _unread(url, "an Excel workbook: save its sheet as CSV")
        raise _unread(url, "a zip archive: unpack it first")
    if extension_format == "bvgraph":
        return "bvgraph"
    below_comments = re.sub(rb"^(\xef\xbb\xbf)?(\s*[#%][^\n]*\n)*", b"", head)
    for pattern, kind in _FOREIGN.items():
        if re.match(pattern, below_comments, re.DOTALL):
            raise _unread(url, kind)
    if match := re.search(rb"[\x00-\x08\x0e-\x1f]", head):
        if extension == ".graph":
            return "bvgraph"
        first = match.start()
        fact = f"begins with {head[:8]!r}" if first < 8 else f"holds {head[first : first + 8]!r} from byte {first:,} on"
        raise _unread(url, f"binary data that {fact}: damaged, or a format that is not read")
    if extension in _NAMED:
        raise _unread(url, _NAMED[extension])
    return extension_format


def _module(name: str) -> Any:
    return import_module(f"dasktc.io.formats.{FORMATS[name].module}")


def _unread(url: str, kind: str) -> InputError:
    return InputError(f"{url} is {kind}; if it is not, name its format with {advice('format')} ({', '.join(FORMATS)})")
