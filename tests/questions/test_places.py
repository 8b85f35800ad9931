"""Every question in every place: the answer of one thread, or the refusal that the reference's table has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pandas as pd
import pytest
from distributed import Client

import dasktc
from tests.support import places, reference
from tests.support.keywords import keywords
from tests.support.places import PLACES, QUESTIONS
from tests.support.slow_pipeline import skewed_edges, tuned
from tests.support.tiers import each_once, some

EDGES = [*skewed_edges(60, 500, 5), (0, 1)]
FRAME = pd.DataFrame([(u, v, u + v + 1, 1 if (u * v) % 3 else -1) for u, v in EDGES], columns=["u", "v", "w", "sign"])


SHARDED = "vertices in shards"
OTHER_PLACES = {
    f"{SHARDED} on a GPU": {"memory": "2GB", "backend": "cuda"},
    f"{SHARDED} on workers": {"distribute": "always", "backend": "cpu"},
    f"{SHARDED} on workers, `--memory`": {"memory": "20MB", "distribute": "always", "backend": "cpu"},
}
"""Combinations that the reference's table does not have."""


def asked(ask: Callable[..., Any], question: places.Question, place: str, frame: str = "pandas") -> Any:
    with tuned(least_shards=3 if SHARDED in place else 1):
        return ask(question, place, frame)


@pytest.fixture(scope="module")
def ask(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Asks a question in a place. Those that keep the same share a prepared graph, which forgets what was counted."""
    with ExitStack() as stack:

        @cache
        def client() -> Client:
            return stack.enter_context(Client(request.getfixturevalue("cluster"), set_as_default=False))

        @cache
        def options_of(place: str) -> dict[str, Any]:
            options = dict((PLACES | OTHER_PLACES)[place])
            if "distribute" in options:
                options["client"] = client()
            if "memory" in options:
                options["work_dir"] = tmp_path_factory.mktemp("work")
            if options.get("backend") == "cuda":
                request.getfixturevalue("emulated")
            return options

        @cache
        def graph_of(place: str, keeps: tuple[str, ...]) -> dasktc.Graph:
            options = options_of(place) | {name: places.KEPT[name] for name in keeps}
            return stack.enter_context(dasktc.prepare(source_of(keeps), **keywords(**options)))

        def ask(question: places.Question, place: str, frame: str) -> Any:
            if question.of_source:
                return question.ask(source_of(question.keeps), keywords(**options_of(place)))
            graph = graph_of(place, question.keeps)
            graph._context.counted.forget()
            return question.ask(graph, frame)

        yield ask


def source_of(keeps: tuple[str, ...]) -> pd.DataFrame:
    return FRAME if {"weight", "edge_columns"} & {*keeps} else FRAME[["u", "v"]]


@pytest.fixture(scope="module")
def expected(ask: Callable[..., Any]) -> Callable[[places.Question], Any]:
    """The answer of one thread."""
    return cache(lambda question: asked(ask, question, "one thread"))


CASES = each_once([(question, place) for question in QUESTIONS for place in [*PLACES][1:]])


@pytest.mark.parametrize(("question", "place"), CASES, ids=lambda value: getattr(value, "call", value))
def test_every_question_in_every_place(ask, expected, question, place):
    frame = "dask" if place == SHARDED else "pandas"
    assert asked(ask, question, place, frame) == expected(question)


ON_A_GPU = [(question,) for question in QUESTIONS if not question.of_source]


@pytest.mark.parametrize(
    "question", some(ON_A_GPU, lambda question: question.call == "motifs()"), ids=lambda question: question.call
)
def test_vertices_in_shards_on_a_gpu(ask, expected, question):
    assert asked(ask, question, f"{SHARDED} on a GPU", "dask") == expected(question)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "first"), [(f"{SHARDED} on workers", 0), (f"{SHARDED} on workers, `--memory`", 1)])
def test_vertices_in_shards_on_workers(ask, expected, place, first):
    """Every other question without and with a budget."""
    for question in QUESTIONS[first::2]:
        if not question.of_source:
            assert asked(ask, question, place) == expected(question), question.call


def test_the_table_has_every_question():
    sections = {
        section
        for section in reference.QUESTIONS
        if section.startswith(("What about", "Which tr", "What do tr", "What if e"))
    }
    names = {name for section in sections for name in reference.QUESTIONS[section] if "plot" not in name}
    asked = {f"Graph.{question.call.partition('(')[0]}" for question in QUESTIONS}
    assert {name for name in names if name.startswith("Graph.")} - {"Graph.columns"} <= asked
