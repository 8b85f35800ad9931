"""BVGraph files, from a slow encoder of the format, straight from the paper's tables."""

import gzip
import itertools
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.errors import InputError
from dasktc.io.formats import bvgraph
from dasktc.io.source import ReadOptions
from tests.support.formats import BACKEND, read, refused
from tests.support.tiers import some


def unary(n):
    return "0" * n + "1"


def gamma(n):
    digits = f"{n + 1:b}"
    return unary(len(digits) - 1) + digits[1:]


def delta(n):
    digits = f"{n + 1:b}"
    return gamma(len(digits) - 1) + digits[1:]


def zeta(k):
    def code(n):
        shell = (n + 1).bit_length() - 1
        shell -= shell % k
        value, span = n + 1 - (1 << shell), (1 << shell + k) - (1 << shell)
        width = (span - 1).bit_length()
        short = (1 << width) - span
        digits = f"{value:0{width - 1}b}" if value < short else f"{value + short:0{width}b}"
        return unary(shell // k) + digits * (span > 1)

    return code


def signed(n):
    return 2 * n if n >= 0 else -2 * n - 1


def encoded(lists, window, min_interval, codes, draw):
    """The bits of a graph; `draw(choices)` picks each reference."""
    bits = ""
    for x, successors in enumerate(lists):
        bits += codes["OUTDEGREES"](len(successors))
        if not successors:
            continue
        rest = list(successors)
        if window:
            reference = draw(range(min(x, window) + 1))
            bits += codes["REFERENCES"](reference)
            if reference:
                source = lists[x - reference]
                runs = [(kept, len(list(run))) for kept, run in itertools.groupby(s in rest for s in source)]
                blocks = [0] if runs and not runs[0][0] else []
                blocks = [*blocks, *(length for _, length in runs)][:-1]  # the last one follows from the others
                bits += codes["BLOCK_COUNT"](len(blocks))
                bits += "".join(codes["BLOCKS"](n - bool(i)) for i, n in enumerate(blocks))
                rest = [s for s in rest if s not in source]
        if rest and min_interval:
            found, rest = intervals(rest, min_interval)
            bits += gamma(len(found))
            for i, (left, length) in enumerate(found):
                gap = signed(left - x) if i == 0 else left - sum(found[i - 1]) - 1
                bits += gamma(gap) + gamma(length - min_interval)
        for i, residual in enumerate(rest):
            bits += codes["RESIDUALS"](signed(residual - x) if i == 0 else residual - rest[i - 1] - 1)
    return bits


def intervals(rest, shortest):
    groups = itertools.groupby(enumerate(rest), lambda pair: pair[1] - pair[0])
    runs = [[s for _, s in run] for _, run in groups]
    found = [(run[0], len(run)) for run in runs if len(run) >= shortest]
    return found, [s for run in runs if len(run) < shortest for s in run]


def bvgraph_file(folder, lists, window=3, min_interval=2, k=3, names=None, draw=max, **properties):
    names = {"OUTDEGREES": "GAMMA", "BLOCKS": "GAMMA", "RESIDUALS": "ZETA", "REFERENCES": "UNARY"} | (names or {})
    functions = {"GAMMA": gamma, "DELTA": delta, "UNARY": unary, "ZETA": zeta(k)}
    codes = {"BLOCK_COUNT": gamma} | {field: functions[name] for field, name in names.items()}
    bits = encoded(lists, window, min_interval, codes, draw)
    bits += "0" * (-len(bits) % 8)
    (folder / "g.graph").write_bytes(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)))
    values = {
        "graphclass": "it.unimi.dsi.webgraph.BVGraph",
        "nodes": len(lists),
        "arcs": sum(map(len, lists)),
        "windowsize": window,
        "minintervallength": min_interval,
        "zetak": k,
        "compressionflags": "|".join(f"{field}_{name}" for field, name in names.items()),
    }
    text = "#BVGraph properties\n" + "".join(f"{key}={value}\n" for key, value in (values | properties).items())
    (folder / "g.properties").write_text(text)
    return folder / "g.graph"


def arcs(lists):
    return [(x, y) for x, successors in enumerate(lists) for y in successors]


LISTS = [
    [1, 2, 3, 4, 9],
    [],
    [0, 2, 3, 4, 9, 11],
    [0, 2, 3, 8],
    [11],
    *[[i % 12] for i in range(4)],
    [],
    [],
    [0, 11],
]


@st.composite
def adjacency(draw):
    nodes = draw(st.integers(1, 20))
    return [sorted(draw(st.sets(st.integers(0, nodes - 1)))) for _ in range(nodes)]


CODE_NAMES = st.sampled_from(["GAMMA", "DELTA", "UNARY", "ZETA"])


@given(
    lists=adjacency(),
    window=st.integers(0, 4),
    min_interval=st.sampled_from([0, 1, 2, 4]),
    k=st.integers(1, 5),
    names=st.fixed_dictionaries({field: CODE_NAMES for field in ("OUTDEGREES", "BLOCKS", "RESIDUALS")}),
    blocksize=st.sampled_from([1, 40, 200, 1 << 26]),
    random=st.randoms(use_true_random=False),
)
def test_bvgraph_any_graph(tmp_path_factory, lists, window, min_interval, k, names, blocksize, random):
    folder = tmp_path_factory.mktemp("bv")
    path = bvgraph_file(folder, lists, window, min_interval, k, names, random.choice)
    assert read(bvgraph, path, blocksize=blocksize) == arcs(lists)


@pytest.mark.parametrize("suffixes", [("", ""), (".gz", ""), (".gz", ".gz"), ("", ".gz")])
def test_bvgraph_files_may_be_compressed(tmp_path, suffixes):
    path = bvgraph_file(tmp_path, LISTS)
    for name, suffix in zip(("graph", "properties"), suffixes, strict=True):
        if suffix:
            old = tmp_path / f"g.{name}"
            (tmp_path / f"g.{name}{suffix}").write_bytes(gzip.compress(old.read_bytes()))
            old.unlink()
    path = tmp_path / f"g.graph{suffixes[0]}"
    assert bvgraph.properties_url(str(path)) == str(tmp_path / f"g.properties{suffixes[1]}")
    before = sorted(tmp_path.iterdir())
    for blocksize in (40, 1 << 26):
        assert read(bvgraph, path, blocksize=blocksize) == arcs(LISTS)
        assert read(bvgraph, tmp_path / f"g.properties{suffixes[1]}", blocksize=blocksize) == arcs(LISTS)
    assert sorted(tmp_path.iterdir()) == before


def test_bvgraph_parts(tmp_path):
    path = bvgraph_file(tmp_path, LISTS)
    parts, ids = bvgraph.parts(str(path), ReadOptions(blocksize=40))
    assert (len(parts) > 3, ids) == (True, "int")


@pytest.mark.parametrize("dtype", some(["int32", "int64"], lambda dtype: dtype == "int64"))
def test_bvgraph_ids_of_either_width(tmp_path, dtype):
    url = str(bvgraph_file(tmp_path, LISTS))
    decoder = bvgraph._Decoder(url, bvgraph._properties(url), bvgraph._stream(url, 0, None), 0)
    decoder.dtype = np.dtype(dtype)
    degrees, targets = decoder.decode(0, len(LISTS), sum(map(len, LISTS)))
    assert (degrees.tolist(), targets.tolist()) == ([*map(len, LISTS)], [y for _, y in arcs(LISTS)])
    assert targets.dtype == dtype


def test_nothing_of_the_bvgraph_decoder_is_cached_without_a_lock():
    from dasktc.io.formats import bvstream

    compiled = [found for found in vars(bvstream).values() if hasattr(found, "py_func")]
    assert compiled
    assert [found.stats.cache_path for found in compiled] == [None] * len(compiled)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"arcs": 20}, "20 arcs"),
        ({"arcs": 24}, "24 arcs"),
        ({"nodes": 11}, "g.graph"),
        ({"nodes": "many"}, "'many'"),
        ({"arcs": -1}, "out of range"),
        ({"zetak": 0}, "out of range"),
        ({"graphclass": "it.unimi.dsi.webgraph.EFGraph"}, "EFGraph"),
        ({"graphclass": ""}, "names no graphclass"),
        *(
            ({name: number}, f"says {name}='{number[:40]}', which is out of range")
            for name in ("nodes", "arcs", "windowsize", "minintervallength", "zetak")
            for number in (str(10**20), "9" * 5000, "-1", "1_0", "1.5")
        ),
        ({"nodes": 1 << 60}, "g.graph"),
        ({"arcs": 1 << 60}, "g.graph"),
        ({"endianness": "little"}, "little"),
        ({"compressionflags": "RESIDUALS_GOLOMB"}, "RESIDUALS_GOLOMB"),
    ],
)
@pytest.mark.parametrize("blocksize", [40, 1 << 26])
def test_bvgraph_is_refused(tmp_path, properties, says, blocksize):
    assert len(arcs(LISTS)) == 22
    refused(bvgraph, bvgraph_file(tmp_path, LISTS, **properties), says, blocksize=blocksize)


def test_bvgraph_needs_its_properties(tmp_path):
    path = bvgraph_file(tmp_path, LISTS)
    (tmp_path / "g.properties").unlink()
    assert bvgraph.properties_url(str(path)) is None
    assert bvgraph.properties_url(str(tmp_path / "g.graphml")) is None
    refused(bvgraph, path, "no .properties file")


@pytest.mark.parametrize("blocksize", [40, 1 << 26])
def test_damaged_bvgraph_is_refused_or_stays_a_graph(tmp_path, blocksize):
    path = bvgraph_file(tmp_path, LISTS)
    good = path.read_bytes()
    for length in range(len(good) - 1):
        path.write_bytes(good[:length])
        refused(bvgraph, path, blocksize=blocksize)
    outcomes = set()
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        edges = None
        with suppress(InputError):
            edges = read(bvgraph, path, blocksize=blocksize)
        outcomes.add(edges is None)
        if edges is not None:
            assert len(edges) == len(arcs(LISTS))
            assert all(0 <= end < len(LISTS) for edge in edges for end in edge)
    assert outcomes == {True, False}


@pytest.mark.catalog
def test_catalog_bvgraph_arcs(graphs_dir):
    expected = pd.read_csv(graphs_dir / "cnr-2000.arcs.tsv.gz", sep="\t", header=None).to_numpy()
    for blocksize in (1 << 26, 1 << 22):
        parts, _ = bvgraph.parts(str(graphs_dir / "cnr-2000.graph.gz"), ReadOptions(blocksize=blocksize))
        found = pd.concat([part.read(BACKEND) for part in parts]).to_numpy()
        assert np.array_equal(found, expected)
