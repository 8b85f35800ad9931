"""Blocks: keys in the ranges of their blocks, slabs and stacked rows, against the edges of each block in a loop."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import CountError
from dasktc.pipeline.stages import blocks
from dasktc.pipeline.stages.edge_keys import cut, unpack
from dasktc.pipeline.stages.shards import even
from dasktc.planning.grid import Axis, Layout, Shape
from tests.support.oracle import complete, multigraphs
from tests.support.slow_pipeline import CPU, oriented_keys


def axis_of(vertices, parts, in_ranges):
    return Axis(vertices, parts, even(vertices, parts) if in_ranges else None)


def vertices_of(axis, part):
    return range(part, axis.vertices, axis.parts) if axis.starts is None else range(*axis.starts[part : part + 2])


def edges_of(block):
    """Edges of a block, row by row, in the ids of the graph."""
    rows = block.row_ids(np.repeat(np.arange(block.rows), np.diff(block.offsets)))
    return list(zip(rows.tolist(), block.column_ids(block.columns).tolist(), strict=True))


@pytest.mark.parametrize(("in_ranges", "families"), [(False, 1), (True, 1), (True, 2)])
@given(
    edges=multigraphs(max_vertices=16, max_edges=90),
    parts=st.integers(1, 4),
    slabs=st.integers(1, 3),
    sort_rows=st.booleans(),
)
def test_blocks_hold_the_edges_of_their_rows_and_columns(in_ranges, families, edges, parts, slabs, sort_rows):
    keys, outward, shift = oriented_keys(edges)
    pairs = set(zip(*(end.tolist() for end in unpack(keys, shift)), strict=True))
    rows, pieces = axis_of(len(outward), parts, in_ranges), [keys[::2], keys[1::2]]
    columns = (rows, axis_of(len(outward), parts + 1, in_ranges))[:families]
    layout = Layout(rows, columns, Shape(len(outward), shift, True, sort_rows=sort_rows))
    sides = [(axis, part) for axis in columns for part in range(axis.parts)]
    wanted = [
        [(u, v) for u in vertices_of(rows, i) for v in vertices_of(*sides[j]) if (u, v) in pairs]
        for i, j in layout.places
    ]
    sizes = [len(of_block) for of_block in wanted]
    assert blocks.edges_per_block(pieces, layout, CPU) == sizes

    firsts = [[size * number // slabs for number in range(slabs)] for size in rows.sizes]
    spans, bound = blocks.slab_spans(layout, firsts), max(1, layout.first_keys[-1])
    moved = [blocks.block_keys(keys if family else pieces, layout, family, CPU) for family in range(families)]
    slices = [cut(of_family, [start for start, *_ in spans[1:]], bound, CPU) for of_family in moved]
    of_slabs = list(zip(*slices, strict=True))
    for number, (place, of_block) in enumerate(zip(layout.places, wanted, strict=True)):
        own = range(number * slabs, (number + 1) * slabs)
        made = [blocks.slab(list(of_slabs[k]), *spans[k], CPU) for k in own]
        block, filling = (
            blocks.checked_block(list(made), place, layout, CPU, sizes[number]),
            blocks.Filling(place, layout, len(of_block), CPU),
        )
        assert (block.place, block.sorted_rows, block.ordered) == (place, sort_rows or layout.loose_bits == 0, True)
        assert block.offsets[-1] == len(block.columns) == len(of_block)
        found = edges_of(block)
        assert sorted(found) == sorted(of_block)
        assert [u for u, _ in found] == [u for u, _ in of_block], "row by row"
        assert found == of_block or not block.sorted_rows
        filled = filling.start()
        for one in made:
            filling.add(filled, one)
        filling.check()
        assert filling.nbytes == block.offsets.nbytes + block.columns.nbytes
        assert (filled.offsets.tolist(), filled.columns.tolist()) == (block.offsets.tolist(), block.columns.tolist())
        if slabs == 1:
            whole = blocks.block_of_slab(list(of_slabs[number]), *spans[number], CPU, place, layout, None)
            assert edges_of(whole) == found


def test_lost_edges_are_an_error():
    keys, outward, shift = oriented_keys(complete(9))
    axis = Axis(9, 1)
    layout = Layout(axis, (axis,), Shape(len(outward), shift, True))
    (span,) = blocks.slab_spans(layout, [[0]])
    with pytest.raises(CountError, match=r"block P\[0\]\[0\] holds 35 edges, the plan 36: edges were lost"):
        blocks.block_of_slab([keys[1:]], *span, CPU, (0, 0), layout, 36)
    for some, held in ((keys[1:], 35), (np.append(keys, 8 << shift), 37)):
        filling = blocks.Filling((0, 0), layout, 36, CPU)
        filling.add(filling.start(), blocks.slab([some], *span, CPU))
        with pytest.raises(CountError, match=rf"holds {held} edges, the plan 36"):
            filling.check()


@given(multigraphs(), st.integers(1, 5))
def test_rows_of_ranges_are_those_of_the_whole_block(edges, ranges):
    """Slabs of ascending keys, and rows that are written span by span, follow one another."""
    keys, outward, shift = oriented_keys(edges)
    size = len(outward)
    starts = [size * number // ranges << shift for number in range(1, ranges)]
    slices, bound = cut(keys, starts, 1 << 2 * shift, CPU), max(1, size << shift)
    made = [
        blocks.slab_of_keys(np.sort(keys_of_slab), *span, 1 << shift, bound, 0, CPU)
        for keys_of_slab, span in zip(slices, pairwise([0, *starts, size << shift]), strict=True)
    ]
    offsets, columns = blocks.slab([keys], 0, size << shift, 1 << shift, bound, 0, CPU)
    assert np.concatenate([of_rows for _, of_rows in made]).tolist() == columns.tolist()
    assert [count for of_slab, _ in made for count in np.diff(of_slab)] == np.diff(offsets).tolist()
    buckets = CPU.dealt([keys], bound)
    written = np.zeros_like(offsets), np.empty_like(columns)
    for span in pairwise(even(len(buckets), 3)):
        blocks.fill_rows(span, buckets, shift, 0, *written)
    assert [array.tolist() for array in written] == [offsets.tolist(), columns.tolist()]


@pytest.mark.parametrize("in_ranges", [False, True], ids=["by remainder", "in ranges"])
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 4), st.integers(1, 3), st.integers(2, 4))
def test_rows_are_cut_at_sums_that_run_over_all_shards(in_ranges, degrees, parts, shards, cuts):
    axis, vector = axis_of(len(degrees), parts, in_ranges), np.array(degrees)
    own = [[degrees[v] for v in vertices_of(axis, part)] for part in range(parts)]
    wanted = [[sum(of_part) * cut // cuts for cut in range(1, cuts)] for of_part in own]
    places, before = np.zeros((parts, cuts - 1), int), [0] * parts
    for first, end in pairwise(even(len(degrees), shards)):
        places += blocks.places_before(vector[first:end], first, axis, before, wanted, CPU)
        sums = blocks.sums_of_parts(vector[first:end], first, axis)
        before = [earlier + more for earlier, more in zip(before, sums, strict=True)]
    assert before == [sum(of_part) for of_part in own]
    assert places.tolist() == [
        [sum(running < target for running in accumulate(of_part)) for target in targets]
        for of_part, targets in zip(own, wanted, strict=True)
    ]
