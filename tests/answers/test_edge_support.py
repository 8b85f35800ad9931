"""Triangles by edge and by vertex: their memory and their sums."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

import dasktc
from dasktc.answers import edge_support
from dasktc.errors import CountError, InputError
from tests.support import oracle
from tests.support.keywords import keywords
from tests.support.slow_pipeline import within


def prepared(edges, **options):
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    return dasktc.prepare(frame, **keywords(**{"backend": "cpu", "partition": "whole"} | options))


def test_visits_beyond_memory_are_refused(monkeypatch):
    """No kernel with outputs fits: a visit fits with exactly the bytes that it takes, and is refused with one less."""
    monkeypatch.setattr(edge_support, "support_kernels", lambda *given: [])
    graph = prepared(oracle.complete(60))
    kernel, need = edge_support.kernel_and_bytes(graph._context)
    assert kernel == edge_support.VISITED
    for memory in (need, need - 1, need * 3 // 4):
        tight = within(graph, memory)._context
        if memory == need:
            assert edge_support.kernel_and_bytes(tight) == (kernel, need)
        else:
            with pytest.raises(InputError, match="of one worker"):
                edge_support.kernel_and_bytes(tight)


def test_sums_are_reserved_beside_what_a_task_takes(monkeypatch):
    graph, asked = prepared(oracle.complete(60)), []
    _, need = edge_support.kernel_and_bytes(graph._context)
    store = type(graph._context.executor.store)
    monkeypatch.setattr(store, "set_task_memory", lambda store, needed, memory: asked.append(needed))
    graph.triangles()
    assert asked[0] >= need + 2 * 8 * 60


def lying(monkeypatch, name, change):
    """A backend of which one function's results are changed."""
    honest = edge_support.get_backend

    def get_backend(asked):
        backend = honest(asked)
        return SimpleNamespace(**{**_members(backend), name: lambda *given: change(getattr(backend, name)(*given))})

    monkeypatch.setattr(edge_support, "get_backend", get_backend)


def _members(backend):
    return {name: getattr(backend, name) for name in dir(backend) if not name.startswith("__")}


def one_more(found):
    sums, *counts = found
    next(iter(sums.values()))[0] += 1
    return (sums, *counts)


def test_sums_of_a_task_that_do_not_add_up_are_refused(monkeypatch):
    lying(monkeypatch, "vertex_support", one_more)
    with pytest.raises(CountError, match="not three each"):
        prepared(oracle.complete(20), kernel="hub").triangles()
