"""`dasktc/api/README.md` has every public name, once, and says what the docstrings say today."""

import re

from tests.support import reference


def test_every_public_name_is_on_the_page():
    placed = [name for names in reference.QUESTIONS.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) <= reference.public_names()
    on_page = re.findall(r"^ *- `(?:graph|dasktc|)\.([\w.]+)[(`]", reference.page(), re.MULTILINE)
    assert {name.split(".")[-1] for name in reference.public_names()} <= {name.split(".")[-1] for name in on_page}
    unplaced = reference.public_names() - set(placed)
    assert not [name for name in unplaced if name.startswith(("Graph.", "datasets.", "generate.")) or "." not in name]


def test_every_name_has_a_sentence():
    assert reference.undocumented() == set()
    for name in reference.public_names():
        assert reference.line(name, name).endswith("."), name


def test_the_page_is_fresh():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run python -m tests.support.reference"
