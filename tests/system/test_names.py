"""Retired names are not used again for modules, classes, functions, parameters or attributes.

The names of schemes, kernels and orders are never compared: their registry entries declare their properties.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dasktc
import dasktc.backends
import dasktc.planning  # declare what registries list
from dasktc.registry import KERNELS, ORDERS, SCHEMES

ROOT = Path(dasktc.__file__).parent
MODULES = {
    "by_shard", "by_vertex", "dealing", "garbage", "keys", "names", "numbering", "scheduler", "waiting", "window"
}  # fmt: skip
CLASSES = {
    "AtWorker", "Calls", "Copies", "CostModelOptions", "Direct", "Feed", "Given", "Held", "Kind", "Means",
    "Moves", "OnCluster", "OnDisk", "OnGpu", "OnGpus", "OnSharedDisk", "Parted", "StartedCluster", "Tasks", "Whole",
}  # fmt: skip
OTHERS = {"around", "each", "estimate_triangles", "everywhere", "found", "pieces", "reserve", "room", "seats"}
"""Names retired for functions, parameters and attributes, also with leading underscores."""


def names(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, kind and name of everything that a module's text defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
            for field in node.body:
                targets = field.targets if isinstance(field, ast.Assign) else [getattr(field, "target", None)]
                yield from ((field.lineno, "attribute", t.id) for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "function", node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, "parameter", node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, "attribute", node.attr


def retired(kind: str, name: str) -> bool:
    name = name.lstrip("_")
    return name in (CLASSES if kind == "class" else OTHERS)


def places(text: str, module: str) -> list[str]:
    defined = [(1, "module", module)] if Path(module).stem in MODULES else []
    defined += [name for name in names(ast.parse(text)) if retired(*name[1:])]
    return [f"{module}:{line}: {kind} {name}" for line, kind, name in sorted(defined)]


TEXT = """class Held:
    room: int
    seats = 1
    def _each(self, found):
        self._pieces = lambda room: 1
def reserve(): pass
"""


def test_every_kind_of_place_is_seen():
    expected = ["class Held", "attribute room", "attribute seats", "function _each", "parameter found"]
    expected += ["attribute _pieces", "parameter room", "function reserve"]
    assert [place.split(": ")[1] for place in places(TEXT, "a.py")] == expected
    assert places("def room_of(each_one): names = found = 1", "io/keys.py") == ["io/keys.py:1: module io/keys.py"]


@pytest.mark.parametrize(
    "room", sorted({path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")})
)
def test_no_name_that_was_given_up(room):
    files = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0].removesuffix(".py") == room]
    assert [p for path in files for p in places(path.read_text(), path.relative_to(ROOT).as_posix())] == []


def compared(text: str) -> list[str]:
    """Comparisons of something called partition, scheme, kernel, reorder or order with a name of a registry."""
    known = {*SCHEMES, *ORDERS, *KERNELS["cpu"], *KERNELS["cuda"]}
    made = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            called = {getattr(side, "attr", getattr(side, "id", "")).removeprefix("chosen_") for side in sides}
            names = {part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)}
            if called & {"partition", "scheme", "kernel", "reorder", "order"} and names & known:
                made.append(ast.unparse(node))
    return made


def test_no_name_of_a_registry_is_compared():
    text = (
        "a.partition == 'proxy', kernel in ('hub', 'x'), a.chosen_reorder != 'degree', partition == 'auto', b == 'hub'"
    )
    assert len(compared(text)) == 3
    files = [path for path in sorted(ROOT.rglob("*.py")) if "bench" not in path.parts]
    assert {path.name: compared(path.read_text()) for path in files if compared(path.read_text())} == {}
