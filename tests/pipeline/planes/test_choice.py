"""Planes alone ask how a run goes: other rooms above the executors do not read an executor's mode."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import dasktc
from dasktc.executors.base import Executor

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
LEFT = {"checks.py": 3}
"""Modules that still read a mode, and how often; entries are only ever lowered."""


PROTOCOL = 23
"""Most public members of an executor: what every mode needs; only ever lowered."""


def flags(text: str) -> int:
    return sum(isinstance(node, ast.Attribute) and node.attr in FLAGS for node in ast.walk(ast.parse(text)))


def test_planes_alone_ask_how_a_run_goes():
    assert flags("a = executor.distributed or f(x.backend.on_device)") == 2
    read = Counter[str]()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if path.parent.name != "planes":
                read[path.name] += flags(path.read_text())
    assert {name: number for name, number in read.items() if number > LEFT.get(name, 0)} == {}


def test_the_protocol_of_executors_does_not_grow():
    members = {name for name in [*vars(Executor), *Executor.__annotations__] if not name.startswith("_")}
    assert {"submit", "map", "fold", "gather", "transpose"} < members
    assert len(members) <= PROTOCOL
