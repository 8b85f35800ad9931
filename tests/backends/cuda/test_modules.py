"""Compiled modules: each is compiled once, side by side with others."""

from __future__ import annotations

from threading import Barrier, Event

import pytest

from dasktc.backends.cuda.modules import Modules

SECONDS = 30


def test_a_module_that_is_being_compiled_is_waited_for():
    begun, may_end, compiled = Event(), Event(), list[str]()

    def compile_slowly(kernel: str, defines: object) -> str:
        compiled.append(kernel)
        begun.set()
        assert may_end.wait(SECONDS)
        return f"module of {kernel}"

    modules = Modules(compile_slowly)
    future = modules.ask("hub", ())
    assert begun.wait(SECONDS)
    assert not future.done()
    assert modules.ask("hub", ()) is future
    may_end.set()
    assert modules.get("hub", ()) == "module of hub"
    assert compiled == ["hub"]


def test_modules_are_compiled_side_by_side_and_by_their_macros():
    both = Barrier(2, timeout=SECONDS)  # broken if one waits for the other
    modules = Modules(lambda kernel, defines: (both.wait(), kernel, defines)[1:])
    futures = [modules.ask("sort", (("LONG", long),)) for long in (0, 1)]
    assert [future.result(SECONDS) for future in futures] == [("sort", (("LONG", long),)) for long in (0, 1)]


def test_a_module_that_could_not_be_compiled_is_tried_again():
    failures = [OSError("the cache is full")]

    def compile_at_last(kernel: str, defines: object) -> str:
        if failures:
            raise failures.pop()
        return kernel

    modules = Modules(compile_at_last)
    with pytest.raises(OSError, match="the cache is full"):
        modules.get("hub", ())
    assert modules.get("hub", ()) == "hub"
