"""The launches of `hub` and its plain form `bitmap`: see kernels/hub.cu, and for outputs kernels/support.cu.

Both files have the same entry points; in the second, those that find triangles also take the outputs.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from dasktc.backends.csr import Array, BlockTask, OrientedCSR
from dasktc.backends.cuda import block_cache
from dasktc.backends.cuda.device import Launch
from dasktc.backends.cuda.launch_edges import slices
from dasktc.backends.kernel import hub_count
from dasktc.backends.kernel_files import macros
from dasktc.errors import InputError
from dasktc.wording import advice, plural

__all__ = ["HUB", "bitmap_bytes", "hub", "hub_bytes", "hub_support_bytes", "longest_row"]

HUB = macros("hub")
"""Macros of the `hub` and `bitmap` kernels, explained in their source."""
RECORD_BYTES = 8
"""Bytes of a list's record."""
PRINTS_BYTES, MARKS_BYTES = 16, 32
"""Bytes of a short row's record: of fingerprints, half a sector, or of marks, a sector."""
MOST_MARKED = 255
"""Entries of the longest row whose length fits a record of marks."""
NARROW = 1 << 16
"""Rows of a lower triangle up to which columns serve as their own fingerprints."""
WAVES = 8
"""Times that the thread blocks of `hub_edges` would fill the GPU: as its registers leave room for five of eight, the
other three would run alone at the end, three in eight of the work."""
MOST_COLUMNS = 1 << 34
"""Columns of a block that a list's record can address."""


def longest_row(xp: ModuleType, task: BlockTask) -> int:
    """Number of entries of the longest row of a task's table and stream.

    Parameters
    ----------
    xp : module
        numpy or cupy, whose arrays the task's blocks are.
    task : BlockTask
    """
    return max(int(xp.diff(block.offsets).max()) if block.rows else 0 for block in _distinct(task))


def _distinct(task: BlockTask) -> list[OrientedCSR]:
    return [task.table] if task.table is task.stream else [task.table, task.stream]


def _longest(hub: Launch) -> int:
    """The same as `longest_row`, by a kernel that needs no memory."""

    def measure() -> int:
        longest = hub.device.array.zeros(1, dtype="uint32")
        for block in _distinct(hub.task):
            hub.spread("hub_longest", block.rows, block.offsets, np.int64(block.rows), longest)
        return int(longest[0])

    return int(block_cache.once(hub.task, "longest row", None, measure))


def _bitmap_words(hubs: int) -> int:
    group = hubs >> 5
    return (group + 1) * ((group << 4) + (hubs & 31))


def hub(launch: Launch) -> None:
    """Launch `hub`: short rows by edges, near hubs by bitmaps, the rest by tables; with PLAIN there are no tables.

    Parameters
    ----------
    launch : Launch
        `hubs`, `near` and `tables` of its `struct Task` are filled in.

    Raises
    ------
    InputError
        A block has more columns than a list's record can address.
    """
    task, fields, shape = launch.task, launch.fields, launch.shape
    plain = "PLAIN" in shape
    if not plain and max(task.table.edges, task.stream.edges) >= MOST_COLUMNS:
        raise InputError(
            f"a block holds {plural(max(task.table.edges, task.stream.edges), 'edge')}, kernel hub takes fewer than "
            f"{MOST_COLUMNS:,}: its lists' places are 34-bit numbers; take more parts, or {advice(kernel='bitmap')}"
        )
    if not plain and (longest := _longest(launch)) <= shape["SHORT"]:
        _by_records(launch, _record_bytes(launch, longest))
        return
    lower = task.table.lower and task.stream.lower
    hubs = hub_count(task.index.edges, task.stream.rows, lower, shape["BITMAP"])
    has_two_tables = task.table is not task.stream
    near = hubs if plain else min(hubs, shape["NEAR"])
    if launch.outputs and not (shape.get("VERTICES") and task.index is task.table is task.stream):
        near = 0  # by edge, (v, w) has triangles not only with near hubs
    fields["hubs"], fields["near"] = hubs, near
    fields["tables"] = task.stream.rows if has_two_tables else 0
    long_rows = min(task.index.rows, task.table.edges // (shape["SMALL"] + 1))
    keys = task.stream.rows + has_two_tables * task.table.rows if long_rows and not plain else 0
    lists = launch.device.array.zeros(keys + 1, dtype="uint64")
    records = _by_rows(launch, hubs, long_rows, lists, plain)
    if records > max(1, _share_edges(task)):
        _by_rounds(launch, lists, keys)
    elif records:
        _by_tables(launch, lists, keys, records)


def _record_bytes(hub: Launch, longest: int) -> int:
    """Bytes of a record: of marks for longer rows, unless these and offsets exceed CAPACITY bytes per edge.

    For a split, records take no more than its lists and the narrow columns would.
    """
    stream, shape = hub.task.stream, hub.shape
    limit = shape["CAPACITY"] * stream.edges - RECORD_BYTES * (hub.task.index.edges - _share_edges(hub.task))
    is_wide = shape["FEW_PRINTS"] < longest <= MOST_MARKED and (MARKS_BYTES + 8) * stream.rows <= limit
    return MARKS_BYTES if is_wide else PRINTS_BYTES


def _by_records(hub: Launch, size: int) -> None:
    """Count a task that has only short rows, with records of `size` bytes."""
    stream = hub.task.stream
    entries = {PRINTS_BYTES: ("hub_records", "hub_short"), MARKS_BYTES: ("hub_marks", "hub_group")}[size]
    narrow = (np.uint32(stream.lower and stream.rows <= NARROW),) if size == PRINTS_BYTES else ()

    def make() -> Array:
        records = hub.device.array.empty((stream.rows, size // 4), dtype="uint32")
        hub.spread(entries[0], stream.rows, np.int64(stream.rows), records, *narrow)
        return records

    records = block_cache.once(hub.task, "records", size, make)
    hub.spread(entries[1], int(hub.fields["rows"][0]), records, *narrow, hub.totals, *hub.outputs)


def _by_rows(hub: Launch, hubs: int, long_rows: int, lists: Array, plain: bool) -> int:
    """Count short rows and near hubs; count the lists of each table, and return the number of all lists."""
    device, xp, shape = hub.device, hub.device.array, hub.shape
    bitmaps = block_cache.once(hub.task, "bitmaps", hubs, lambda: _bitmaps(hub, hubs))
    items = xp.empty((long_rows + hub.task.index.edges // shape["ITEM_EDGES"] + 1, 2), dtype="uint32")
    state, total = xp.zeros(2, dtype="uint32"), xp.zeros(1, dtype="uint64")
    values = (bitmaps, items, state[:1], lists, total, np.uint32(plain), hub.totals)
    hub.spread("hub_edges", int(hub.fields["rows"][0]), *values, *hub.outputs, waves=WAVES)
    records = device.later(total) if long_rows and not plain else None  # near hubs run while their memory is allocated
    if long_rows and (int(hub.fields["near"][0]) or plain):
        entry, warps = ("hub_plain", shape["PLAIN_WARPS"]) if plain else ("hub_near", shape["NEAR_WARPS"])
        grid = min(32 * device.processors, len(items))
        if hub.outputs and not plain:
            near = int(hub.fields["near"][0])
            bitmaps = block_cache.once(hub.task, "square", near, lambda: _square(hub, near))
        hub.run(entry, grid, 32 * warps, bitmaps, items, state[:1], state[1:], hub.totals, *hub.outputs)
    return records()[0] if records else 0


def _bitmaps(hub: Launch, hubs: int) -> Array:
    bitmaps = hub.device.array.zeros(_bitmap_words(hubs) + 1, dtype="uint32")
    if hubs:
        hub.spread("hub_bitmaps", 32 * hubs, bitmaps)
    return bitmaps


def _square(hub: Launch, near: int) -> Array:
    square = hub.device.array.zeros(near * -(-near // 32), dtype="uint32")
    hub.spread("hub_square", 32 * near, square)
    return square


def _share_edges(task: BlockTask) -> int:
    """Edges of a split, if all splits were equal."""
    return -(-task.index.edges // task.splits)


def _by_rounds(hub: Launch, lists: Array, keys: int) -> None:
    """Stream the lists of one slice of rows after another, each with no more records than a split has edges."""
    pieces = -(-_longest(hub) // hub.shape["PIECE"])
    for part in slices(hub, -(-_share_edges(hub.task) // pieces)):
        total = hub.device.array.zeros(1, dtype="uint64")
        lists.fill(0)
        part.spread("hub_counts", int(part.fields["rows"][0]), lists, total)
        if records := int(total[0]):
            _by_tables(part, lists, keys, records)


def _by_tables(hub: Launch, lists: Array, keys: int, total: int) -> None:
    """Group the lists by the table against which they are streamed, and stream them."""
    device, xp, shape, task = hub.device, hub.device.array, hub.shape, hub.task
    ends = xp.cumsum(lists, dtype="uint64")
    records = xp.empty(total, dtype="uint64")
    owners = (xp.empty(total, dtype="uint64"),) if hub.outputs else ()
    hub.spread("hub_lists", int(hub.fields["rows"][0]), ends, records, *owners)
    items = xp.empty((min(keys, total) + total // shape["ITEM_LISTS"] + 1, 2), dtype="uint32")
    state = xp.zeros(2, dtype="uint32")
    hub.spread("hub_items", keys, ends, np.int64(keys), items, state[:1])
    table, stream = block_cache.once(task, "narrow columns", None, lambda: _narrows(hub))
    grid = min(32 * device.processors, len(items))
    values = (table, stream, ends, records, items, state[:1], state[1:], hub.totals, *owners, *hub.outputs)
    hub.run("hub_tables", grid, 32 * shape["MET_WARPS" if hub.outputs else "TABLE_WARPS"], *values)


def _narrows(hub: Launch) -> tuple[Array, Array]:
    """The low halves of the columns of the table block and of the stream block."""
    task = hub.task
    table = _narrow(hub, task.table.columns)
    return table, table if task.table is task.stream else _narrow(hub, task.stream.columns)


def _narrow(hub: Launch, columns: Array) -> Array:
    """The low halves of columns, four to a word."""
    halves = hub.device.array.empty(-(-len(columns) // 4) + 1, dtype="uint64")
    hub.spread("hub_narrow", len(halves), columns, np.int64(len(columns)), halves)
    return halves


def hub_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of `hub`'s bytes beside a task's blocks: a record per edge of the split, 4 bytes per edge, tables.

    Parameters
    ----------
    index_edges, block_edges, columns : int
        As in `Backend`.
    """
    edges = max(index_edges, block_edges)
    lists = RECORD_BYTES * index_edges + (HUB["CAPACITY"] - RECORD_BYTES) * edges
    return bitmap_bytes(index_edges, block_edges, columns) + lists + 2 * _item_bytes(edges, columns) + 64 * columns


def hub_support_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of `hub` with outputs beside blocks and outputs: each record also stores its owner.

    Parameters
    ----------
    index_edges, block_edges, columns : int
        As in `Backend`.
    """
    near = min(hub_count(max(index_edges, block_edges), columns), HUB["NEAR"])
    return hub_bytes(index_edges, block_edges, columns) + RECORD_BYTES * index_edges + near * (near // 8 + 4)


def bitmap_bytes(index_edges: int, block_edges: int, columns: int) -> int:
    """Upper bound of the bytes of `bitmap` beside a task's blocks: the hubs' bitmaps and work items.

    Parameters
    ----------
    index_edges, block_edges, columns : int
        As in `Backend`.
    """
    edges = max(index_edges, block_edges)
    return 4 * _bitmap_words(hub_count(edges, columns)) + _item_bytes(edges, columns) + (1 << 12)


def _item_bytes(edges: int, columns: int) -> int:
    return 8 * (min(edges // (HUB["SMALL"] + 1), columns) + edges // HUB["ITEM_EDGES"])
