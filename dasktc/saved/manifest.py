"""The manifest of a saved graph: what is in its `graph`, as records that msgspec reads and checks.

Types, ranges and names of files are the records'. A block's numbers of rows and edges are the lengths of its arrays,
and its place and numbering follow from the scheme and the layout, so the manifest says nothing twice. What is left to
`check_consistency` are sums and lengths that must agree. No checksum proves that dasktc wrote a manifest, so both are
checked before memory is taken by any of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, MsgspecError, Raw, Struct

from dasktc.backends.kernel import Facts
from dasktc.backends.vertex_maps import MAX_VERTICES
from dasktc.errors import InputError, neutral_text
from dasktc.io.evidence import Reading
from dasktc.options import AttributeOptions, Options
from dasktc.pipeline.build_blocks import GridPartition, Partition
from dasktc.pipeline.lstc_partition import ProxyPartition
from dasktc.pipeline.planes.vectors import Sharded
from dasktc.pipeline.stages.edge_keys import shift_of
from dasktc.planning.grid import Axis, Layout, Shape
from dasktc.planning.plan import Proxies
from dasktc.planning.schemes import Block, Scheme, Sizes, scheme_of
from dasktc.registry import ORDERS, SCHEMES
from dasktc.saved.arrays import MOST, Count, StoredArray
from dasktc.saved.folder import MANIFEST, damaged, decoder, joined
from dasktc.wording import plural

__all__ = [
    "FACTS", "VECTORS", "AttributeRecord", "BlockRecord", "GridRecord", "IntegerIds", "Manifest", "MethodRecord",
    "PartsRecord", "TextIds", "TextRecord", "arrays_of", "decoded",
]  # fmt: skip

FACTS = tuple(name for name in Facts._fields if name != "processors")
VECTORS = ("order", "out_degree", "in_degree")
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Bytes = StoredArray[Literal["u1"]]
Int32 = StoredArray[Literal["i4"]]
Int64 = StoredArray[Literal["i8"]]
Float64 = StoredArray[Literal["f8"]]
Shards = Annotated[list[Int32], Meta(min_length=1)]
Ranges = Positive | tuple[Count, ...]
"""Parts of an axis: their number, or the starts of ranges and the number of vertices; see `planning.grid.Axis`."""


class _Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A format has its fields and no others; those that are None are left out."""


class MethodRecord(_Record, frozen=True, kw_only=True):
    """The options with which a graph was prepared; see `dasktc.Method` and `Options`."""

    partition: str
    parts: Positive
    column_parts: Positive | None = None
    splits: Positive | None = None
    reorder: str
    assign: str
    proxies: str
    seed: int


class GridRecord(_Record, frozen=True, tag="grid"):
    """A grid of blocks: the parts of its rows, and those of its families of columns."""

    rows: Ranges
    families: Annotated[list[Ranges], Meta(min_length=1)]

    def layout(self, graph: Shape) -> Layout:
        """The layout of the grid for a graph; a ValueError if it has ranges of other vertices."""
        axes, vertices = list[Axis](), graph.vertices
        for parts in (self.rows, *self.families):
            if isinstance(parts, int):
                axes.append(Axis(vertices, parts))
            elif not parts or (parts[0], parts[-1]) != (0, vertices) or list(parts) != sorted(parts):
                raise ValueError(f"its grid has ranges that are not those of {plural(vertices, 'vertex')}")
            else:
                axes.append(Axis(vertices, len(parts) - 1, parts))
        return Layout(axes[0], tuple(axes[1:]), graph)


class PartsRecord(_Record, frozen=True, tag="parts"):
    """Parts with proxies: the wedges that all tasks together must stream, and the sizes of the parts."""

    wedges: Count
    proxies: list[Proxies]


class BlockRecord(_Record, frozen=True):
    """The arrays of a block: `members` in a part with proxies, `roots` with weights, `directions` with directions."""

    offsets: Int64
    columns: Int32
    members: Int32 | None = None
    roots: Float64 | None = None
    directions: Bytes | None = None


class TextRecord(_Record, frozen=True):
    """The buffers of an Arrow array of `large_string`: offsets, one more than there are texts, and UTF-8 bytes."""

    offsets: Int64
    letters: Bytes

    @property
    def length(self) -> int:
        """Number of texts."""
        return self.offsets.length - 1


class IntegerIds(_Record, frozen=True, tag="int"):
    """The caller's ids by dense id, in shards."""

    shards: Annotated[list[StoredArray[Literal["i4", "i8"]]], Meta(min_length=1)]


class TextIds(_Record, frozen=True, tag="text"):
    """The caller's ids by dense id, in shards."""

    shards: Annotated[list[TextRecord], Meta(min_length=1)]


class AttributeRecord(_Record, frozen=True, kw_only=True):
    """Weights and directions of the edges; see `pipeline.stages.attributes.EdgeAttributes`.

    Numbers of neighbours are three arrays for each shard of the vertices, in turn.
    """

    weight: str | None = None
    directed: bool
    largest: float
    neighbours: Annotated[list[Int64], Meta(min_length=3)] | None = None


class Manifest(_Record, frozen=True, kw_only=True):
    """A saved graph.

    Attributes
    ----------
    name, triangles, read
        Of the source; see `io.source.Source`.
    vertices, edges, rows, loops, wedges : int
        Of the graph; `rows` were read, `loops` of them dropped.
    half_weight : int
        Of a graph that was updated; see `pipeline.prepare.Prepared`.
    kernel : str or None
        Chosen for `backend`, for the reason `choice`; None where another fits more memory.
    facts : dict of str to int
        `backends.kernel.Facts` but for the processors, which are those of the device that counts.
    blocks : list of BlockRecord
        In row-major order.
    order, out_degree, in_degree : list of StoredArray
        Dense ids by rank, and degrees by rank, in shards.
    """

    name: str
    triangles: Count | None = None
    vertices: Annotated[int, Meta(ge=0, le=MAX_VERTICES)]
    edges: Count
    rows: Count
    loops: Count
    half_weight: Count = 0
    wedges: Count
    read: Reading
    method: MethodRecord
    backend: Literal["cpu", "cuda"]
    kernel: str | None = None
    choice: str
    facts: dict[str, Count]
    layout: GridRecord | PartsRecord
    blocks: list[BlockRecord]
    order: Shards
    out_degree: Shards
    in_degree: Shards
    ids: IntegerIds | TextIds
    attributes: AttributeRecord | None = None

    @property
    def scheme(self) -> Scheme:
        """The partition scheme."""
        return scheme_of(self.method.partition, self.method.column_parts)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of the blocks."""
        parts = self.method.parts
        return 1 if self.scheme.replicated else parts, self.scheme.columns(parts)

    @property
    def places(self) -> dict[Block, BlockRecord]:
        """The blocks by their places."""
        columns = self.shape[1]
        return {divmod(number, columns): block for number, block in enumerate(self.blocks)}

    @property
    def kept(self) -> AttributeOptions:
        """The weights and directions."""
        record = self.attributes
        return AttributeOptions() if record is None else AttributeOptions(record.weight, record.directed)

    @property
    def graph_shape(self) -> Shape:
        """Properties of the graph that the blocks depend on."""
        return Shape(self.vertices, shift_of(self.vertices), ORDERS[self.method.reorder].ordered)

    def partition(self) -> Partition:
        """The assignment of the vertices to the blocks, with the blocks' sizes."""
        lengths = [(block.columns.length, block.offsets.length - 1) for block in self.blocks]
        edges, rows = np.array(lengths, "int64").T.reshape(2, *self.shape)
        if isinstance(self.layout, GridRecord):
            layout = self.layout.layout(self.graph_shape)
            return GridPartition(layout, Sizes(edges, *layout.sizes), self.wedges)
        empty, sizes, proxies = Sharded((0, 0), []), Sizes(edges, rows, rows), tuple(self.layout.proxies)
        return ProxyPartition(empty, empty, empty, sizes, proxies, self.layout.wedges, self.graph_shape, [], [])

    def files(self) -> dict[str, int]:
        """The least number of bytes of each file."""
        sizes: dict[str, int] = {}
        for array in arrays_of(self):
            sizes[array.file] = max(sizes.get(array.file, 0), array.end)
        return sizes


def arrays_of(record: Any) -> Iterator[StoredArray[Any]]:
    """Yield all arrays of a record."""
    if isinstance(record, StoredArray):
        yield record
    elif isinstance(record, list | tuple | _Record):
        for value in msgspec.structs.astuple(record) if isinstance(record, _Record) else record:
            yield from arrays_of(value)


def decoded(folder: str, graph: Raw) -> Manifest:
    """Read the `graph` of a manifest, and refuse one with wrong fields, or with fields that do not fit each other.

    InputError: it is damaged, or its scheme is not installed.
    """
    try:
        manifest = decoder(Manifest).decode(graph)
        if manifest.method.partition in SCHEMES:
            check_consistency(manifest)
    except (MsgspecError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        reason = neutral_text(error).partition(";")[0].replace("`$", "`graph")
        raise damaged(joined(folder, MANIFEST), reason) from None
    if manifest.method.partition not in SCHEMES:
        raise InputError(
            f"{folder} is saved in partition {manifest.method.partition}, which is not installed here: install the "
            "plug-in that has it"
        )
    return manifest


def check_consistency(manifest: Manifest) -> None:
    """Refuse fields that do not fit each other (ValueError, or any error of interpreting them)."""
    vertices, edges, method, layout = manifest.vertices, manifest.edges, manifest.method, manifest.layout
    Options(**msgspec.structs.asdict(method), backend=manifest.backend)
    if manifest.facts.keys() != set(FACTS):
        raise ValueError(f"its facts are not {', '.join(FACTS)}")
    if manifest.loops > manifest.rows - edges:
        raise ValueError(f"its rows are {manifest.rows:,}, but edges {edges:,}, loops {manifest.loops:,}")
    # The blocks are those of the layout, and each family of columns has all edges.
    (rows, columns), count, widths = manifest.shape, len(manifest.blocks), [1]  # a part's local rows are in column 0
    if rows * columns != count or max(method.parts, method.column_parts or 1) > count:
        raise ValueError(f"its {plural(count, 'block is', 'blocks are')} not those of {rows:,} by {columns:,}")
    if isinstance(layout, PartsRecord):
        parts = len(layout.proxies), 2
    else:
        grid = layout.layout(manifest.graph_shape)
        parts, widths = grid.shape, [axis.parts for axis in grid.families]
    has_proxies, attributes = manifest.scheme.dealing.members, manifest.kept
    if parts != (rows, columns) or isinstance(layout, PartsRecord) != has_proxies:
        raise ValueError(f"its layout is not one of {rows:,} by {plural(columns, 'block')} of {method.partition}")
    sizes = manifest.partition().sizes
    for first, end in pairwise([0, *accumulate(widths)]):
        if (total := int(sizes.edges[:, first:end].sum())) != edges:
            raise ValueError(f"its blocks hold {plural(total, 'edge')}, the graph {edges:,}")
    for place, block in manifest.places.items():
        vertex_count, edge_count = int(sizes.rows[place]), int(sizes.edges[place])
        for name, expected in (
            ("offsets", vertex_count + 1),
            ("members", vertex_count if has_proxies else None),
            ("roots", None if attributes.weight is None else edge_count),
            ("directions", edge_count if attributes.directed else None),
        ):
            array = getattr(block, name)
            length = None if array is None else array.length
            if length != expected:
                raise ValueError(f"block {place} has {length} {name} in place of {expected}")
    # The vertex vectors have an entry a vertex.
    neighbours = None if manifest.attributes is None else manifest.attributes.neighbours
    if attributes.directed != (neighbours is not None):
        raise ValueError(f"its neighbours do not fit directed={attributes.directed}")
    vectors = [(name, getattr(manifest, name)) for name in VECTORS] + [("ids", manifest.ids.shards)]
    vectors += [("neighbours", (neighbours or [])[way::3]) for way in range(3 * attributes.directed)]
    for name, shards in vectors:
        length = sum(shard.length for shard in shards)
        if length != vertices or any(shard.length < 0 for shard in shards):
            raise ValueError(f"its {name} has {plural(length, 'entry')}, not one for each of {vertices:,} vertices")
