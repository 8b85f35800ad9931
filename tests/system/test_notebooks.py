"""Notebooks as they are committed: outputs where readers shall see them, and none that tells of a machine."""

import ast
import base64
import json
import re
import struct
import sys
from types import ModuleType, SimpleNamespace

import pytest

from tests.support import notebook_outputs
from tests.support.notebook_outputs import (
    FOLDER,
    TELLING,
    WITH_OUTPUTS,
    cleaned,
    code_cells,
    digest,
    texts,
    without_machine,
)

NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
MOST_BYTES = 400_000
"""Most bytes of a notebook with its outputs, and half of it of a picture."""


def read(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def source(cell):
    """A cell's code, without what is IPython's."""
    lines = "".join(cell["source"]).splitlines()
    return "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_all_code_can_be_parsed(name):
    for cell in code_cells(read(name)):
        ast.parse(source(cell))


@pytest.mark.parametrize("name", NAMES)
def test_outputs_stand_where_they_belong(name):
    cells = code_cells(read(name))
    has_outputs = [bool(cell["outputs"]) or cell["execution_count"] is not None for cell in cells]
    assert any(has_outputs) == (name in WITH_OUTPUTS), "python -m tests.support.notebook_outputs, or nbstripout"


def test_the_hook_that_strips_outputs_leaves_those_that_readers_see():
    hooks = (FOLDER.parent / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (excluded,) = re.findall(r"id: nbstripout\n\s+exclude: (\S+)", hooks)
    assert {name for name in NAMES if re.search(excluded, f"notebooks/{name}.ipynb")} == set(WITH_OUTPUTS)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs_are_those_of_the_code(name):
    notebook = read(name)
    cells = code_cells(notebook)
    assert notebook["metadata"]["dasktc"]["code"] == digest(notebook), (
        "python -m tests.support.notebook_outputs runs it again"
    )
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"display_data", "execute_result", "stream"}
    assert {o["name"] for cell in cells for o in cell["outputs"] if o["output_type"] == "stream"} <= {"stdout"}


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs_tell_of_no_machine(name):
    outputs = [output for cell in code_cells(read(name)) for output in cell["outputs"]]
    told = [
        found[0] for output in outputs for text in texts(output) if (found := re.search(f".*(?:{TELLING}).*", text))
    ]
    assert told == []
    assert notebook_outputs.WIDGETS not in json.dumps(outputs)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_a_reader_sees_plots_that_are_small(name):
    data = [output.get("data", {}) for cell in code_cells(read(name)) for output in cell["outputs"]]
    pictures = [base64.b64decode("".join(forms["image/png"])) for forms in data if "image/png" in forms]
    assert len(pictures) >= 2
    for picture in pictures:
        assert picture.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", picture[16:24])
        assert 300 < width < 1600
        assert 100 < height < 1000
        assert len(picture) < MOST_BYTES / 2
    assert (FOLDER / f"{name}.ipynb").stat().st_size < MOST_BYTES


def test_what_tells_of_a_machine_is_taken_out():
    told = "(tcp://10.0.0.1:4567) http://me:8787/status 127.0.0.1 /tmp/x/y " + f"'{FOLDER}/a.py'"
    clean = without_machine(told)
    assert not re.search(TELLING, clean)
    assert clean == "(tcp://HOST:PORT) http://HOST:PORT/status HOST ... '.../notebooks/a.py'"
    assert without_machine(clean) == clean
    cell = {"cell_type": "code", "metadata": {"execution": {"began": 1}, "tags": []}, "source": ["1"]}
    widget = {"output_type": "display_data", "data": {notebook_outputs.WIDGETS: {}, "text/plain": ["bar"]}}
    stream = {"output_type": "stream", "name": "stdout", "text": [told]}
    found = cleaned({"cells": [cell | {"outputs": [widget, stream]}], "metadata": {"widgets": {}}})
    assert found["cells"][0]["outputs"] == [stream | {"text": clean}]
    assert found["cells"][0]["metadata"] == {"tags": []}
    assert "widgets" not in found["metadata"]


def test_the_killing_comes_after_the_counting():
    text = "\n".join(source(cell) for cell in code_cells(read("cluster")))
    assert text.index("result = graph.triangle_count()") < text.index("checkpoint=") < text.index("os.kill(")


def test_the_notebook_of_gpus_starts_their_workers_itself(monkeypatch):
    """Its first cells run with a stand-in for dask-cuda, which no other machine has."""
    cells = [source(cell) for cell in code_cells(read("gpus"))]
    started = []
    stand_in = ModuleType("dask_cuda")
    stand_in.LocalCUDACluster = lambda **options: started.append(options) or SimpleNamespace()
    monkeypatch.setitem(sys.modules, "dask_cuda", stand_in)
    monkeypatch.setattr("distributed.Client", lambda cluster: SimpleNamespace(cluster=cluster))
    (start,) = [cell for cell in cells if "LocalCUDACluster(" in cell]
    exec(start, {"GPU": True, "find_spec": lambda name: None})
    assert [options["threads_per_worker"] for options in started] == [1]
    assert started[0]["rmm_allocator_external_lib_list"] == ["cupy"]
    assert any("oriented_edges()" in cell for cell in cells)


def test_the_notebook_of_gpus_has_the_phrases_of_its_sentence_in_their_order():
    """Each has a section, which says what the dashboard shows meanwhile."""
    text = "\n".join("".join(cell["source"]) for cell in read("gpus")["cells"] if cell["cell_type"] == "markdown")
    sections = dict(section.partition("\n")[::2] for section in text.split("\n## ")[1:])
    phrases = ("LocalCUDACluster", "Workers hold cuDF edge frames", "A task graph", "Oriented CSR", "Collective degree",
               "Counting tasks, and the CuPy kernels")  # fmt: skip
    found = [title for title in sections if title.startswith(phrases)]
    assert [title.startswith(phrase) for title, phrase in zip(found, phrases, strict=True)] == [True] * len(phrases)
    assert all(re.search("dashboard|task stream", sections[title]) for title in found)
