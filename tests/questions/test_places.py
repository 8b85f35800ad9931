"""Every question in every place: the answer of one thread, or the refusal that the reference's table has."""

from __future__ import annotations

import re
from functools import cache

import pandas as pd
import pytest

import dasktc
from dasktc.errors import InputError
from tests.support import places, reference
from tests.support.keywords import keywords
from tests.support.places import PLACES, QUESTIONS, REFUSED
from tests.support.slow_pipeline import skewed_edges, tuned
from tests.support.tiers import each_once, some

EDGES = [*skewed_edges(60, 500, 5), (0, 1)]
FRAME = pd.DataFrame([(u, v, u + v + 1, 1 if (u * v) % 3 else -1) for u, v in EDGES], columns=["u", "v", "w", "sign"])


def asked(question, options, frame):
    source = FRAME if {"weight", "edge_columns"} & {*question.keeps} else FRAME[["u", "v"]]
    if question.of_source:
        return question.ask(source, keywords(**options))
    with dasktc.prepare(source, **keywords(**options, **question.options)) as graph:
        return question.ask(graph, frame)


@cache
def of_one_thread(question):
    return asked(question, PLACES["one thread"], "pandas")


CASES = each_once([(question, place) for question in QUESTIONS for place in [*PLACES][1:]])


@pytest.mark.parametrize(("question", "place"), CASES, ids=lambda value: getattr(value, "call", value))
def test_every_question_in_every_place(request, tmp_path, question, place):
    options = dict(PLACES[place])
    if "distribute" in options:
        options["client"] = request.getfixturevalue("client")
    if "memory" in options:
        options["work_dir"] = tmp_path
    if options.get("backend") == "cuda":
        request.getfixturevalue("emulated")
    sharded = place == "vertices in shards"

    def answer():
        with tuned(least_shards=3 if sharded else 1):
            return asked(question, options, "dask" if sharded else "pandas")

    if (question.call, place) in REFUSED:
        with pytest.raises(InputError, match=re.escape(REFUSED[question.call, place])):
            answer()
    else:
        assert answer() == of_one_thread(question)


ON_A_GPU = [(question,) for question in QUESTIONS if not question.of_source and "top" not in question.call]


@pytest.mark.parametrize(
    "question", some(ON_A_GPU, lambda question: question.call == "motifs()"), ids=lambda question: question.call
)
def test_vertices_in_shards_on_a_gpu(emulated, tmp_path, question):
    options = {"backend": "cuda", "memory": "2GB", "work_dir": tmp_path}
    with tuned(least_shards=3):
        if (question.call, "vertices in shards") in REFUSED:
            with pytest.raises(InputError, match=re.escape(REFUSED[question.call, "vertices in shards"])):
                asked(question, options, "dask")
        else:
            assert asked(question, options, "dask") == asked(question, PLACES["one thread"], "pandas")


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "first"), [(None, 0), ("20MB", 1)])
def test_vertices_in_shards_on_workers(client, tmp_path, memory, first):
    """Every other question without and with a budget."""
    options = {"distribute": "always", "client": client, "memory": memory, "work_dir": tmp_path, "backend": "cpu"}
    for question in QUESTIONS[first::2]:
        if question.of_source or (question.call, "vertices in shards") in REFUSED:
            continue
        with tuned(least_shards=3):
            found = asked(question, options, "pandas")
        assert found == asked(question, PLACES["one thread"], "pandas"), question.call


def test_the_table_has_every_question():
    sections = {
        section
        for section in reference.QUESTIONS
        if section.startswith(("What about", "Which tr", "What do tr", "What if e"))
    }
    names = {name for section in sections for name in reference.QUESTIONS[section] if "plot" not in name}
    asked = {f"Graph.{question.call.partition('(')[0]}" for question in QUESTIONS}
    assert {name for name in names if name.startswith("Graph.")} - {"Graph.columns"} <= asked


def test_the_table_shows_what_is_refused():
    header, _, *rows = places.lines()
    row = next(row for row in rows if row.startswith("| `similarity(top=3)`"))
    assert [cell.strip() for cell in row.split("|")][5] == "no (1)"
    assert header.count("|") == row.count("|") == len(PLACES) + 2
