"""The list of mutants: each can be made in the current code, and its tests exist."""

import ast
from pathlib import Path

from tests.support.mutants import MUTANTS, functions, modules, mutated

TESTS = Path(__file__).parents[1]


def changed_function(path, whole):
    """The text of the smallest function that a mutant changes: to parse whole modules takes ten times as long."""
    text = modules()[path]
    place = next((number for number, (old, new) in enumerate(zip(text, whole, strict=False)) if old != new), 0)
    start, end = min(
        ((start, end) for _, where, start, end in functions() if start <= place < end and where == path),
        key=lambda span: span[1] - span[0],
    )
    changed = whole[start : end + len(whole) - len(text)]
    return f"if True:\n{changed}" if changed.startswith(" ") else changed


def test_every_mutant_can_be_made():
    problems = []
    for mutant in MUTANTS:
        try:
            path, whole = mutated(mutant)
        except (OSError, ValueError) as error:
            problems.append(str(error))
            continue
        if path.suffix == ".py":
            ast.parse(changed_function(path, whole))
        if mutant.text == mutant.by or not all((TESTS / name).is_file() for name in mutant.tests.split()):
            problems.append(f"mutant {mutant.name} changes nothing, or its tests are not there")
    assert not problems, "\n".join(problems)


def test_there_are_a_hundred_of_different_names():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 100
