"""Planes alone ask how a run goes: other rooms above the executors do not read an executor's mode."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from unittest import mock

import dasktc
from dasktc.executors.base import Executor
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.local import LocalExecutor

ROOT = Path(dasktc.__file__).parent
FLAGS = {
    "distributed",
    "exchanges",
    "memory_in_parallel",
    "memory_per_call",
    "on_device",
    "shares_memory",
    "transpose_submits",
}
ROOMS = {"answers", "api", "counting", "pipeline", "questions", "saved"}
PROTOCOL = 14
"""Most public members of an executor: what every mode needs; only ever lowered."""
OTHERS = {LocalExecutor: 1, DaskExecutor: 7}
"""Most public members beyond these: what one mode's planes and answers need; only ever lowered."""


def flags(text: str) -> int:
    return sum(isinstance(node, ast.Attribute) and node.attr in FLAGS for node in ast.walk(ast.parse(text)))


def test_planes_alone_ask_how_a_run_goes():
    assert flags("a = executor.distributed or f(x.backend.on_device)") == 2
    read = Counter[str]()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if path.parent.name != "planes":
                read[path.name] += flags(path.read_text())
    assert {name: number for name, number in read.items() if number} == {}


def modes(text: str) -> int:
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    asked = (
        ast.unparse(argument) for call in calls if ast.unparse(call.func) == "isinstance" for argument in call.args
    )
    return sum("DaskExecutor" in argument or "LocalExecutor" in argument for argument in asked)


def test_one_module_of_planes_asks_which_executor_it_has():
    assert modes("x = isinstance(executor, DaskExecutor) or isinstance(executor, A | LocalExecutor)") == 2
    asked = {path.name: modes(path.read_text()) for path in (ROOT / "pipeline").rglob("*.py")}
    assert {name: number for name, number in asked.items() if number} == {"choice.py": 2}


def test_the_protocol_of_executors_does_not_grow():
    members = {name for name in [*vars(Executor), *Executor.__annotations__] if not name.startswith("_")}
    assert {"submit", "map", "fold", "gather", "transpose"} < members
    assert len(members) <= PROTOCOL
    for kind, most in OTHERS.items():
        own = {name for name in {*dir(kind), *vars(kind(mock.MagicMock()))} if not name.startswith("_")}
        assert len(own - members) <= most, own - members
