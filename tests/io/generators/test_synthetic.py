"""Generated graphs against known answers and slow transcriptions of their recipes."""

import pickle
from functools import reduce
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array

from dasktc.backends.cuda.edge_functions import generate_edges
from dasktc.backends.edge_functions import RMAT_CUTS, make_edges
from dasktc.errors import InputError
from dasktc.io.generators import synthetic as generate
from dasktc.io.generators.synthetic import GeneratedPart, grid3d, kronecker, random_graph, rmat, theory
from dasktc.io.generators.theory import theory_edges, theory_triangles, theory_vertices
from tests.support.emulation.host import HostDevice, compiler

SMALL = {
    "kronecker": lambda parts: kronecker(9, 8, seed=3, parts=parts),
    "random": lambda parts: random_graph(50, 1000, parts=parts),
    "rmat": lambda parts: rmat(2**11, 5000, parts=parts),
    "grid3d": lambda parts: grid3d(7, parts=parts),
    "B1k": lambda parts: theory((3, 4, 5), "B1k", parts=parts),
    "B2k": lambda parts: theory((3, 4, 5), "B2k", parts=parts),
}


def backend(chunk=1 << 15):
    def make(recipe, first, last):
        return pd.DataFrame(dict(zip(("src", "dst"), make_edges(np, chunk, recipe, first, last), strict=True)))

    return SimpleNamespace(make=make)


def ends(source, chunk=1 << 15):
    frames = [part.read(backend(chunk)) for part in source.parts]
    return pd.concat(frames).to_numpy().T


def edge_list(recipe, first, last):
    return list(map(tuple, GeneratedPart(recipe, first, last).read(backend()).to_numpy().tolist()))


def cleaned(source):
    """Undirected unique edges without loops, as a lower triangle whose first rows are the hubs."""
    src, dst = ends(source)
    rank = np.argsort(np.argsort(-np.bincount(np.concatenate([src, dst])), stable=True))
    low, high = np.sort([rank[src], rank[dst]], axis=0)
    matrix = coo_array((np.ones(len(low), np.int64), (high, low)), shape=(len(rank), len(rank))).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1
    return matrix


def triangles(lower):
    return int((lower @ lower).multiply(lower).sum())


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def integer_hash(a):
    a = ((a + 0x7ED55D16) + (a << 12)) % 2**32
    a = ((a ^ 0xC761C23C) ^ (a >> 19)) % 2**32
    a = ((a + 0x165667B1) + (a << 5)) % 2**32
    a = ((a + 0xD3A2646C) ^ (a << 9)) % 2**32
    a = ((a + 0xFD7046C5) + (a << 3)) % 2**32
    return ((a ^ 0xB55A4F09) ^ (a >> 16)) % 2**32


def kronecker_edge(i, scale, seed):
    row = column = 0
    for b in range(scale):
        k = splitmix64((64 * i + b + seed * 2**40) % 2**64) >> 40
        row |= (k >= 12750684) << b
        column |= (9563013 <= k < 12750684 or k >= 15938355) << b
    return row, column


def random_edge(k, vertices, edges):
    i = k // (edges // vertices)
    draw = integer_hash(k % 2**32)
    while draw % vertices == i:
        draw = integer_hash(draw)
    return i, draw % vertices


def rmat_edge(k, levels, seed):
    a, b, c = 0.5, 0.1, 0.1
    step = integer_hash(seed)
    start, stride = integer_hash(2 * k * step % 2**32), integer_hash((2 * k + 1) * step % 2**32)
    row = column = 0
    for level in range(levels):
        bit = 1 << (levels - 1 - level)
        r = integer_hash((start + level * stride) % 2**32) / (2**32 - 1)
        if r < a:
            continue
        if r < a + b:
            column += bit
        elif r < a + b + c:
            row += bit
        else:
            row, column = row + bit, column + bit
    return row, column


@pytest.mark.parametrize(("scale", "edges", "count"), [(12, 48_400, 486_234), (14, 213_100, 2_843_668)])
def test_kronecker_known_answers(scale, edges, count):
    lower = cleaned(kronecker(scale, parts=3))
    assert (lower.nnz, triangles(lower)) == (edges, count)


@pytest.mark.parametrize(
    ("scale", "edge_factor", "seed", "first"),
    [(0, 3, 1, 0), (7, 16, 1, 0), (8, 16, 5, 700), (17, 1, 2**24 - 1, 10**5), (33, 2, 1, 2**33 + 5)],
)
def test_kronecker_follows_the_recipe(scale, edge_factor, seed, first):
    recipe = kronecker(scale, edge_factor, seed, parts=1).parts[0].recipe
    last = min(first + 300, recipe.edges)
    assert edge_list(recipe, first, last) == [kronecker_edge(i, scale, seed) for i in range(first, last)]


@pytest.mark.parametrize(
    ("vertices", "edges", "first"),
    [(2, 40, 0), (3, 300, 0), (1000, 3000, 2700), (10**8, 10**9, 10**9 - 300), (2**32, 2**33, 2**33 - 300)],
)
def test_random_graph_follows_the_recipe(vertices, edges, first):
    recipe = random_graph(vertices, edges, parts=1).parts[0].recipe
    last = min(first + 300, edges)
    made = edge_list(recipe, first, last)
    assert made == [random_edge(k, vertices, edges) for k in range(first, last)]
    assert all(src != dst for src, dst in made)


@pytest.mark.parametrize(
    ("levels", "edges", "seed", "first"),
    [(0, 5, 1, 0), (6, 300, 1, 0), (10, 1000, 7, 800), (27, 10**9, 1, 10**9 - 300), (40, 2**33, 1, 2**32)],
)
def test_rmat_follows_the_recipe(levels, edges, seed, first):
    recipe = rmat(2**levels, edges, seed, parts=1).parts[0].recipe
    last = min(first + 300, edges)
    assert edge_list(recipe, first, last) == [rmat_edge(k, levels, seed) for k in range(first, last)]


def test_rmat_cuts_decide_as_the_division_does():
    # The quotient grows with h, so the two sides of each cut stand for every h.
    for cut, share in zip(map(int, RMAT_CUTS), (0.5, 0.5 + 0.1, 0.5 + 0.1 + 0.1), strict=True):
        assert (cut - 1) / (2**32 - 1) < share <= cut / (2**32 - 1)
    h = np.concatenate([np.arange(int(cut) - 1000, int(cut) + 1000) for cut in RMAT_CUTS])
    quotient = h.astype(np.uint32) / np.float64(2**32 - 1)
    for cut, share in zip(RMAT_CUTS, (0.5, 0.5 + 0.1, 0.5 + 0.1 + 0.1), strict=True):
        assert ((h.astype(np.uint32) >= cut) == (quotient >= share)).all()


@pytest.mark.parametrize("side", range(1, 7))
def test_grid3d_is_a_torus(side):
    def number(x, y, z):
        return x % side + y % side * side + z % side * side**2

    axes = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    wanted = {
        frozenset((number(x, y, z), number(x + dx, y + dy, z + dz)))
        for x in range(side)
        for y in range(side)
        for z in range(side)
        for dx, dy, dz in axes
    }
    source = grid3d(side, parts=2)
    src, dst = ends(source)
    assert len(src) == 3 * side**3
    assert {frozenset(edge) for edge in zip(src.tolist(), dst.tolist(), strict=True)} == wanted
    assert triangles(cleaned(source)) == source.triangles


@pytest.mark.parametrize("kind", ["B1k", "B2k"])
@pytest.mark.parametrize("stars", [(1,), (4,), (1, 1), (2, 3), (3, 1, 2), (1, 2, 2, 3)])
def test_theory_is_a_kronecker_product(stars, kind):
    def star(leaves):
        matrix = np.zeros((leaves + 1, leaves + 1), np.int64)
        matrix[0, 1:] = matrix[1:, 0] = 1
        hub_or_leaf = 0 if kind == "B1k" else 1
        matrix[hub_or_leaf, hub_or_leaf] = 1
        return matrix

    product = reduce(np.kron, map(star, stars))
    assert np.trace(product) == 1
    np.fill_diagonal(product, 0)
    source = theory(stars, kind, parts=2)
    made = np.zeros_like(product)
    np.add.at(made, tuple(ends(source)), 1)
    assert (made + made.T == product).all()
    assert theory_vertices(stars) == len(product)
    assert theory_edges(stars) == product.sum() // 2
    assert source.triangles == np.trace(product @ product @ product) // 6


@pytest.mark.parametrize(
    ("stars", "vertices", "edges", "b1k"),
    [((5, 9, 16, 25), 26_520, 175_873, 264_799), ((25, 81, 256), 547_924, 2_132_284, 2_102_761)],
)
def test_theory_published_figures(stars, vertices, edges, b1k):
    assert (theory_vertices(stars), theory_edges(stars)) == (vertices, edges)
    assert theory_triangles(stars, "B1k") == b1k


@pytest.mark.parametrize(("kind", "count"), [("B1k", 2_102_761), ("B2k", 7)])
def test_theory_counted(kind, count):
    source = theory((25, 81, 256), kind)
    lower = cleaned(source)
    assert (lower.nnz, triangles(lower), source.triangles) == (2_132_284, count, count)


@pytest.mark.parametrize("kind", ["B1k", "B2k"])
def test_theory_with_ids_over_32_bits(kind):
    stars = (81, 256, 625, 81, 5)
    recipe = theory(stars, kind, parts=1).parts[0].recipe
    made = edge_list(recipe, recipe.edges - 500, recipe.edges)
    assert max(map(max, made)) > 2**32
    assert len({frozenset(edge) for edge in made}) == 500
    loop = (0, 0) if kind == "B1k" else (1, 1)
    for row, column in made:
        for leaves in reversed(stars):
            row, row_digit = divmod(row, leaves + 1)
            column, column_digit = divmod(column, leaves + 1)
            ends = (row_digit, column_digit)
            assert ends == loop or min(ends) == 0 < max(ends)
        assert row == column == 0


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("parts", [2, 3, 10, 10**6])
def test_any_number_of_parts_gives_the_same_edges(make, parts):
    source = make(parts)
    assert len(source.parts) == min(parts, source.parts[0].recipe.edges)
    source = make(min(parts, 50))
    assert (ends(source, chunk=97) == ends(make(1))).all()


@given(st.sampled_from(sorted(SMALL)), st.data())
def test_any_range_is_that_range_of_the_whole(name, data):
    (whole,) = SMALL[name](1).parts
    first = data.draw(st.integers(0, whole.last))
    last = data.draw(st.integers(first, whole.last))
    frame = GeneratedPart(whole.recipe, first, last).read(backend(chunk=data.draw(st.integers(1, 4000))))
    expected = whole.read(backend())[first:last].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, expected)


@pytest.mark.parametrize(
    ("source", "recipe_edges"),
    [
        (kronecker(), 16 * 2**20),
        (random_graph(), 10**9),
        (rmat(), 10**9),
        (grid3d(), 299_692_032),
        (theory(), 2_132_284),
        (kronecker(5, edge_factor=0), 0),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_parts_cover_every_edge_in_about_four_million_each(source, recipe_edges):
    bounds = [0] + [part.last for part in source.parts]
    assert [part.first for part in source.parts] == bounds[:-1]
    assert bounds[-1] == recipe_edges
    assert all(part.last - part.first <= generate.EDGES_PER_PART for part in source.parts)
    assert len(source.parts) == -(-recipe_edges // generate.EDGES_PER_PART)


@pytest.mark.parametrize(("scale", "dtype"), [(4, "int32"), (31, "int32"), (32, "int64")])
def test_ids_are_int32_where_they_fit(scale, dtype):
    part = kronecker(scale).parts[0]
    frame = GeneratedPart(part.recipe, 0, 10).read(backend())
    assert list(frame.columns) == ["src", "dst"]
    assert set(frame.dtypes) == {np.dtype(dtype)}
    assert frame.to_numpy().min() >= 0


LARGE = [
    (lambda: kronecker(9, 8, seed=3), 0),
    (lambda: kronecker(26, seed=2**20, parts=1), 2**30 - 200),
    (lambda: kronecker(38, parts=1), 2**42 - 200),
    (lambda: rmat(2**11, 5000), 0),
    (lambda: rmat(seed=7, parts=1), 10**9 - 200),
    (lambda: random_graph(5, 1000), 0),  # every fifth draw is a loop
    (lambda: random_graph(2**32, 2**33, parts=1), 2**33 - 200),
    (lambda: grid3d(1), 0),
    (lambda: grid3d(7), 100),
    (lambda: grid3d(2000, parts=1), 3 * 2000**3 - 200),
]


def check_device(device, on_host):
    for make, first in LARGE:
        recipe = make().parts[0].recipe
        last = min(first + 200, recipe.edges)
        found, expected = generate_edges(device, recipe, first, last), recipe.ends(np, first, last)
        assert {end.dtype for end in found} == {np.dtype("int64" if recipe.vertices > 2**31 else "int32")}
        for end, wanted in zip(found, expected, strict=True):
            assert on_host(end).tolist() == wanted.tolist(), recipe
    assert generate_edges(device, theory((3, 4)).parts[0].recipe, 0, 2) is None


@pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")
@pytest.mark.parametrize("reverse", [False, True])
def test_a_device_makes_the_same_edges(reverse):
    check_device(HostDevice(reverse), np.asarray)


@pytest.mark.gpu
def test_a_gpu_makes_the_same_edges():
    cuda = import_module("dasktc.backends.cuda.backend")
    check_device(cuda.device(), lambda array: array.get())


def test_neighbouring_parts_are_joined():
    parts = kronecker(9, 8, parts=5).parts
    whole = reduce(GeneratedPart.joined, parts)
    assert (whole.first, whole.last, whole.rows) == (0, 8 * 2**9, 8 * 2**9)
    assert parts[0].joined(parts[2]) is None
    assert parts[0].joined(kronecker(9, 8, seed=2, parts=5).parts[1]) is None
    assert parts[0].joined(object()) is None


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_parts_are_small_when_pickled(make):
    part = make(2).parts[1]
    text = pickle.dumps(part)
    assert len(text) < 500
    assert pickle.loads(text) == part
    assert part.upstream is None


def test_random_graph_refuses_a_hash_that_repeats():
    hash_of_itself = 215_829_462
    assert integer_hash(hash_of_itself) == hash_of_itself
    recipe = random_graph(300_000_000, 300_000_000).parts[0].recipe
    first, last = hash_of_itself - 5, hash_of_itself + 5
    if compiler() is not None:
        with pytest.raises(InputError, match=f"edge {hash_of_itself} .* joins vertex {hash_of_itself} to itself"):
            generate_edges(HostDevice(), recipe, first, last)
    part = GeneratedPart(recipe, first, last)
    with pytest.raises(InputError, match=f"edge {hash_of_itself} .* joins vertex {hash_of_itself} to itself"):
        part.read(backend())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kronecker(-1), "scale=-1 is below 0: out of range; give 0 to 62"),
        (lambda: kronecker(63), "scale=63 is more than 62"),
        (lambda: kronecker(45), "has 562949953421312 edges: the limit is"),
        (lambda: kronecker(4, -1), "edge_factor=-1 is below 0: out of range; give 0 to "),
        (lambda: kronecker(4, seed=2**24), "seed=16777216 is more than 16,777,215"),
        (lambda: kronecker(4, parts=0), "parts=0 is below 1"),
        (lambda: random_graph(1, 5), "vertices=1 is below 2"),
        (lambda: random_graph(2**32 + 1, 2**33 + 2), "vertices=4294967297 is more"),
        (lambda: random_graph(3, 10), "10 edges over 3 vertices leave 1 over: .*; choose edges=12"),
        (lambda: rmat(12, 10), "12 vertices are no power of two: .*; choose vertices=8 or 16"),
        (lambda: rmat(8, -1), "edges=-1 is below 0"),
        (lambda: rmat(8, 10, seed=2**32), "seed=4294967296 is more"),
        (lambda: grid3d(0), "side=0 is below 1"),
        (lambda: theory(()), r"stars=\(\) names no star"),
        (lambda: theory((3, 0)), "stars=0 is below 1"),
        (lambda: theory((1,) * 27), "stars names 27 stars"),
        (lambda: theory((3,), "B3k"), "kind='B3k' is no kind of theory graph; choose B1k or B2k"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
