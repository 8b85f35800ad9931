"""Options and keywords with invalid values: an error of dasktc's own, in one line, or the correct count."""

import inspect
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dasktc
from dasktc import generate
from dasktc.api.plan import Rates
from dasktc.backends import get_backend
from dasktc.cli.main import cli, main
from dasktc.errors import DasktcError, InputError
from dasktc.executors.connect import connect
from dasktc.executors.place import Place
from dasktc.options import Method, Options, RunOptions, bytes_of
from dasktc.registry import kernel_names
from tests.support.keywords import keywords

EDGES = np.array([[0, 1], [1, 2], [2, 0], [2, 3]])


class Hostile:
    """A value whose every operation fails."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __eq__ = __bool__ = __str__ = __repr__
    __hash__ = None


VALUES = {
    "huge": 10**20,
    "5000 digits": 10**5000,
    "negative": -(10**5000),
    "zero": 0,
    "nan": float("nan"),
    "inf": float("inf"),
    "fraction": Fraction(1, 3),
    "complex": 1j,
    "True": True,
    "empty": "",
    "digits": "9" * 5000,
    "surrogate": "\ud800",
    "NUL": "a\0b",
    "bytes": b"4GB",
    "list": [],
    "pair": [0, 1],
    "set": {1, 2},
    "array": np.array([1, 2]),
    "object": object(),
    "hostile": Hostile(),
}
GRAPH = dasktc.prepare(EDGES, backend="cpu")
SMALL = {
    "kronecker": {"scale": 3},
    "random_graph": {"vertices": 4, "edges": 8},
    "rmat": {"vertices": 8, "edges": 8},
    "grid3d": {"side": 3},
    "theory": {"stars": (2,)},
}
OF_SIZES = ("vertices", "edges", "wedges", "workers", "gpus", "rates", "backend", "method", "memory", "run")
OF_PLANS = [name for name in inspect.signature(dasktc.plan).parameters if name not in ("vertices", "edges", "gpus")]
DOORS = {
    "triangle_count": (lambda **given: dasktc.triangle_count(EDGES, **given), dasktc.triangle_count),
    "prepare": (lambda **given: dasktc.prepare(EDGES, **given).triangle_count(), dasktc.prepare),
    "Method": (lambda **given: dasktc.triangle_count(EDGES, method=Method(**given)), Method),
    "RunOptions": (lambda **given: dasktc.triangle_count(EDGES, run=RunOptions(**given)), RunOptions),
    "Graph.triangle_count": (GRAPH.triangle_count, GRAPH.triangle_count),
    "Graph.triangle_list": (lambda **given: len(GRAPH.triangle_list(**given)) or 1, GRAPH.triangle_list),
    "plan of a source": (lambda **given: dasktc.plan(EDGES, **given) and 1, OF_PLANS),
    "plan of a size": (lambda **given: dasktc.plan(**{"vertices": 30, "edges": 99} | given) and 1, list(OF_SIZES)),
    "Method of a plan": (lambda **given: dasktc.plan(vertices=30, edges=99, method=Method(**given)) and 1, Method),
    "Rates": (lambda **given: str(dasktc.plan(vertices=30, edges=99, rates=Rates(**given))) and 1, Rates),
    **{
        name: (lambda name=name, **given: getattr(generate, name)(**SMALL[name] | given) and 1, getattr(generate, name))
        for name in SMALL
    },
}
KEYWORDS = [
    (door, keyword)
    for door, (_, of) in DOORS.items()
    for keyword in (of if isinstance(of, list) else inspect.signature(of).parameters)
    if keyword != "source"
]


def one_line(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 500, text
    assert ": " in text or "; " in text


@pytest.mark.parametrize(("door", "keyword"), KEYWORDS, ids=lambda value: value)
def test_every_keyword(door, keyword, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = refused = 0
    for name, value in VALUES.items():
        try:
            if keyword == "client" and isinstance(value, str):
                value = replace(Place.of(value), connect_seconds=0.05)
            found = DOORS[door][0](**{keyword: value})
        except DasktcError as error:
            one_line(error)
            refused += 1
        else:
            assert int(found) == 1, name
            right += 1
    assert refused > 10, (right, refused)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4_000_000_000, 4 * 10**9), (np.int64(7), 7), (4e9, 4 * 10**9), (np.float32(8), 8), ("4GB", 4 * 10**9),
        ("4 GiB", 1 << 32), (" 1.5kB ", 1500), ("4e9", 4 * 10**9), ("8", 8), (2**63 - 1, 2**63 - 1), (None, None),
    ],
)  # fmt: skip
def test_sizes(value, expected):
    assert bytes_of(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "'' is not a size"), (" ", "is not a size"), ("GB", "'GB' is not a size"), ("4XB", "is not a size"),
        ("nan", "is not a size"), (True, "True is not a size"), (b"4GB", "is not a size"), ([], "is not a size"),
        (float("nan"), "nan is not a size"), (0.5, "0.5 is below one byte"), ("-4GB", "is below one byte"),
        (float("inf"), r"inf is more than 2\^63"), ("1e400", r"'1e400' is more than 2\^63"), (2**63, "more than 2"),
        ("9" * 5000, r"more than 2\^63"),
    ],
)  # fmt: skip
def test_what_is_no_size(value, message):
    with pytest.raises(InputError, match=f"memory=.*{message}") as error:
        Options(memory=value)
    one_line(error.value)
    with pytest.raises(InputError, match="host_memory="):
        dasktc.triangle_count(EDGES, run=RunOptions(host_memory=value))


def test_integers_of_other_libraries():
    found = dasktc.triangle_count(EDGES, method=Method(parts=np.int64(2), splits=np.uint8(3), seed=np.int32(5)))
    assert (int(found), found.plan.parts, type(found.plan.parts), type(found.plan.splits)) == (1, 2, int, int)


# the command line

TEXTS = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "9" * 5000,
    str(10**20),
    "\u0663",
    "\ud800",
    "a\nb",
    "1.5",
    "GB",
]
UNBOUNDED = {"--scheduler", "--scheduler-file", "--tls-ca-file", "--tls-cert", "--tls-key", "--workers"}


def options_of(command):
    names = [option.opts[0] for option in cli.commands[command].params if option.opts[0].startswith("--")]
    flags = [option.opts[0] for option in cli.commands[command].params if getattr(option, "is_flag", False)]
    return [name for name in names if name not in flags and name not in UNBOUNDED]


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for command in ("count", "plan") for option in options_of(command)]
)
def test_every_option(command, option, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    for text in TEXTS:
        code = main([command, "edges.txt", "--quiet", f"{option}={text}"])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2)
        assert "not expected" not in err, err
        assert (out == "1\n" or command == "plan" or "=0" in f"{option}={text}") if code == 0 else out == ""
        assert err.count("\n") == (code != 0), err
        assert err == "" or err.startswith("dasktc: error: ")


@pytest.mark.parametrize("workers", [10**12, "9" * 20, "1.5", "\u0663x"])
@pytest.mark.parametrize("command", ["count", "plan"])
def test_workers_of_the_command_line(command, workers, tmp_path, capsys):
    (tmp_path / "edges.txt").write_text("0 1\n")
    assert main([command, str(tmp_path / "edges.txt"), "--workers", str(workers)]) == 2
    error = capsys.readouterr().err
    assert "is more than" in error or "neither a whole number" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("workers", [10**12, 10**5000], ids=["1e12", "1e5000"])
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_more_workers_than_a_host_has_memory_for(workers, backend):
    expected = r"workers=.* is more than [\d,]+: each is a process of at least 134 MB, and this host has .*; give 1 to"
    with pytest.raises(InputError, match=expected), connect(Place(workers=workers), backend):
        pass


@pytest.mark.parametrize("options", [{}, {"workers": 1}], ids=str)
def test_without_numbas_compiler(monkeypatch, options):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    get_backend.cache_clear()
    with pytest.raises(InputError, match=r"^NUMBA_DISABLE_JIT is set: kernels would run as Python, .*; unset it$"):
        dasktc.triangle_count(EDGES, backend="cpu", **keywords(**options))
    monkeypatch.undo()
    get_backend.cache_clear()
    assert int(dasktc.triangle_count(EDGES, backend="cpu")) == 1


def test_auto_is_collective_for_trust_and_degree_for_the_rest():
    chosen = {kernel: Options(kernel=kernel).chosen_reorder for kernel in ("auto", *kernel_names())}
    assert chosen.pop("trust") == "collective"
    assert set(chosen.values()) == {"degree"}
    assert Options(kernel="trust", reorder="none").chosen_reorder == "none"
