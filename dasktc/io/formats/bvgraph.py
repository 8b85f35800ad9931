"""Reads BVGraph files of the WebGraph framework (LAW): NAME.graph, a bit stream, beside NAME.properties.

The format is that of Boldi and Vigna, "The WebGraph Framework I: Compression Techniques" (WWW
2004), with the zeta codes of their "Codes for the World Wide Web" (Internet Mathematics, 2005):
each node's successors are copied from the list of one of the nodes just before it, plus intervals,
plus residuals as gaps. The `webgraph` package on PyPI cannot open the files that LAW publishes: it
needs an Elias-Fano index (.ef) that only WebGraph's own programs build. So the stream is decoded
here, front to back, keeping the lists of the last `windowsize` nodes; to start in the middle, a part
needs only these lists and a bit position.

Node ids are the file's own, 0-based.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dasktc.backends import Backend
from dasktc.errors import InputError
from dasktc.io.formats import lines, streams
from dasktc.io.source import Part, ReadOptions
from dasktc.options import Ids
from dasktc.wording import plural

__all__ = ["parts", "properties_url"]

ARC_BYTES = 8
"""Bytes of `ReadOptions.blocksize` per arc, about the length of a text line with two ids."""
CODES = {"DELTA": 1, "GAMMA": 2, "UNARY": 5, "ZETA": 6}
FIELDS = {"OUTDEGREES": "GAMMA", "BLOCKS": "GAMMA", "RESIDUALS": "ZETA", "REFERENCES": "UNARY"}
FIELDS |= {"BLOCK_COUNT": "GAMMA"}
"""The fields whose code `compressionflags` may change, in the decoder's order, with their usual code."""

LARGEST = {"nodes": 1 << 61, "arcs": 1 << 61, "windowsize": 1 << 16, "minintervallength": 1 << 31, "zetak": 15}
"""The numbers of a .properties file and their upper limits, with which sums do not overflow. The limit of the window,
whose lists every part keeps, is far above what WebGraph writes."""
USUAL = {"windowsize": "7", "minintervallength": "4", "zetak": "3"}


class Properties(NamedTuple):
    """Contents of a .properties file; `codes` are numbers of `CODES` in the order of `FIELDS`."""

    nodes: int
    arcs: int
    window: int
    min_interval: int
    zeta: int
    codes: tuple[int, ...]


@dataclass(frozen=True)
class _Nodes:
    """The arcs of nodes `first` to `stop`: `arcs` of them, from bit `bit` of the stream on."""

    url: str
    properties: Properties
    first: int
    stop: int
    arcs: int
    bit: int
    bytes: tuple[int, int | None]
    degrees: Any  # of up to `window` nodes just before, with their concatenated lists
    lists: Any
    upstream: None = None

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        first_byte, stop_byte = self.bytes
        stream = _stream(self.url, first_byte, stop_byte)
        decoder = _Decoder(self.url, self.properties, stream, self.bit - 8 * first_byte)
        decoder.carry(self.degrees, self.lists)
        degrees, targets = decoder.decode(self.first, self.stop, self.arcs)
        if len(degrees) != self.stop - self.first or len(targets) != self.arcs:
            raise InputError(_wrong_arcs(self.url, self.properties))
        ids = np.arange(self.first, self.stop, dtype=targets.dtype)
        return backend.frame.DataFrame({"src": np.repeat(ids, degrees), "dst": targets})


class _Decoder:
    """Decodes consecutive runs of nodes and keeps the window between runs."""

    def __init__(self, url: str, properties: Properties, stream: Any, bit: int) -> None:
        self.url, self.properties, self.stream = url, properties, stream
        self.at = np.array([bit], np.int64)
        self.dtype = np.dtype(np.int32 if properties.nodes < 1 << 31 else np.int64)
        self.carry(np.empty(0, np.int64), np.empty(0, self.dtype))

    def carry(self, degrees: Any, lists: Any) -> None:
        """Set the window: the successor lists of the nodes just before."""
        self.degrees, self.lists = degrees, lists

    def decode(self, first: int, stop: int, most: int) -> tuple[Any, Any]:
        """Decode nodes from `first` up to `stop` with at most `most` arcs; return their degrees and successors."""
        from dasktc.io.formats import bvstream

        window_size, properties = len(self.degrees), self.properties
        if stop - first > 8 * len(self.stream) - int(self.at[0]):  # a node takes a bit or more
            raise InputError(_wrong_arcs(self.url, properties))
        offsets = np.zeros(window_size + stop - first + 1, np.int64)
        np.cumsum(self.degrees, out=offsets[1 : window_size + 1])
        lists = np.empty(len(self.lists) + most, self.dtype)
        lists[: len(self.lists)] = self.lists
        layout = np.array([*properties[:1], *properties[2:5], *properties.codes], np.int64)
        try:
            end = bvstream.decode(self.stream, self.at, layout, first, window_size, offsets, lists)
        except ValueError as error:
            raise InputError(
                f"{self.url} cannot be decoded near bit {self.at[0]:,} of its part: {error}: it is damaged, "
                "cut short or does not belong to its .properties file; fetch both again"
            ) from error
        window_start = max(0, end - properties.window)
        self.carry(np.diff(offsets[window_start : end + 1]), lists[offsets[window_start] : offsets[end]].copy())
        return np.diff(offsets[window_size : end + 1]), lists[offsets[window_size] : offsets[end]]


def parts(url: str, options: ReadOptions) -> tuple[list[Part], Ids]:
    """Cut a BVGraph file into node ranges; `url` is the .graph or the .properties file, beside which the other must be.

    Both may be compressed. A graph with more arcs than fit one part is decoded once here, range by range, to find where
    the parts start; this needs the memory of one part and of the compressed file.

    InputError: the .properties file is missing or describes another format, or the stream contradicts it.
    """
    url = _beside(url, "properties", "graph") or url
    properties = _properties(url)
    arcs_per_part = max(1, options.blocksize // ARC_BYTES)
    if properties.arcs <= arcs_per_part:
        empty = np.empty(0, np.int32)
        part = _Nodes(url, properties, 0, properties.nodes, properties.arcs, 0, (0, None), empty, empty)
        return [part], "int"
    ranges: list[Part] = list(_ranges(url, properties, arcs_per_part))
    return ranges, "int"


def properties_url(url: str) -> str | None:
    """Return the .properties file beside a .graph file, which makes it a BVGraph; None if there is none."""
    return _beside(url, "graph", "properties")


def _beside(url: str, extension: str, sibling: str) -> str | None:
    """Return the existing file that differs from `url` in its extension only, or None."""
    base, dot, suffix = url.rpartition(f".{extension}")
    if not dot or (suffix and not suffix.startswith(".")):
        return None
    stem = f"{base}.{sibling}"
    for candidate in dict.fromkeys((stem + suffix, stem, f"{stem}.gz")):
        try:
            streams.size(candidate)
        except InputError:
            continue
        return candidate
    return None


def _ranges(url: str, properties: Properties, arcs_per_part: int) -> Iterator[_Nodes]:
    decoder = _Decoder(url, properties, _stream(url, 0, None), 0)
    node = arcs = 0
    limit = arcs_per_part
    while node < properties.nodes:
        bit, window = int(decoder.at[0]), (decoder.degrees, decoder.lists)
        degrees, targets = decoder.decode(node, min(properties.nodes, node + arcs_per_part), limit)
        if not len(degrees):  # a single node has more arcs
            if limit > properties.arcs:
                raise InputError(_wrong_arcs(url, properties))
            limit *= 2
            continue
        stop, limit = node + len(degrees), arcs_per_part
        span = (bit // 8, -(-int(decoder.at[0]) // 8))
        yield _Nodes(url, properties, node, stop, len(targets), bit, span, *window)
        node, arcs = stop, arcs + len(targets)
    if arcs != properties.arcs:
        raise InputError(_wrong_arcs(url, properties))


def _stream(url: str, start: int, stop: int | None) -> Any:
    """Bytes `start` to `stop` of the decompressed stream."""
    if stop is not None and not streams.is_archive(url):
        return np.frombuffer(streams.read_range(url, start, stop), np.uint8)
    with streams.open_decompressed(url) as file:
        return np.frombuffer(file.read(), np.uint8)[start:stop]


def _wrong_arcs(url: str, properties: Properties) -> str:
    return (
        f"{url} does not hold the {plural(properties.arcs, 'arc')} of {plural(properties.nodes, 'node')} that its "
        ".properties file says: the two files do not belong together or one is damaged; fetch both again"
    )


def _properties(url: str) -> Properties:
    source = properties_url(url)
    if source is None:
        raise InputError(f"{url} has no .properties file beside it: a BVGraph needs both; fetch the missing one")
    with streams.open_decompressed(source) as file:
        rows = [row.decode("latin-1") for row in lines.header_lines(file, source)]
    pairs = (row.split("=", 1) for row in rows if "=" in row and not row.startswith("#"))
    values = {key.strip(): value.strip() for key, value in pairs}
    graph_class, order = values.get("graphclass", ""), values.get("endianness", "big")
    if not graph_class:
        raise InputError(
            f"{source} names no graphclass: it is not the .properties file of a graph, or damaged; fetch it again, or "
            f"move it if {url} is no BVGraph"
        )
    if not graph_class.endswith(".BVGraph") or order != "big":
        raise InputError(
            f"{source} says graphclass={graph_class[:80]}, endianness={order[:20]}: only big-endian BVGraph files are "
            "read; convert the graph with WebGraph, or to a list of arcs"
        )
    nodes, arcs, window, min_interval, zeta = (_number(source, values, name) for name in LARGEST)
    return Properties(nodes, arcs, window, min_interval, zeta, _codes(source, values.get("compressionflags", "")))


def _number(url: str, values: dict[str, str], name: str) -> int:
    text = values.get(name, USUAL.get(name, ""))
    if not text:
        raise InputError(f"{url} lacks the number {name!r}: damaged; fetch it again")
    minimum, maximum = int(name == "zetak"), LARGEST[name]
    number = lines.counts([text.encode()])
    if number is None or not minimum <= number[0] <= maximum:
        raise InputError(
            f"{url} says {name}={text[:40]!r}, which is out of range, {minimum} to {maximum}: damaged; fetch it again"
        )
    return number[0]


def _codes(source: str, flags: str) -> tuple[int, ...]:
    codes = dict(FIELDS)
    for flag in flags.replace("|", " ").split():
        field, _, code = flag.rpartition("_")
        if field == "OFFSETS":
            continue
        if field not in codes or code not in CODES:
            raise InputError(
                f"{source} says compressionflags={flags[:200]}: {flag[:40]} is not read; recompress without it"
            )
        codes[field] = code
    return tuple(CODES[code] for code in codes.values())
