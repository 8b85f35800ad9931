"""Identities of functions: equal in every process, different if their code differs or what it uses."""

import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest

from dasktc.errors import InputError
from dasktc.questions.function_identity import identity

MODULE = """
import os
import numpy as np
import pandas as pd
from functools import partial
{comment}
LIMIT, NAMES, TABLE, UNUSED = {limit}, {{"b", "a", "c"}}, np.arange(3), {unused}

def helper(x):
    return x + {added}

def function(batch):
    def inner(x):
        return helper(x) if x in {{"left", "right", "middle"}} else -x
    try:
        return [inner(value) for value in batch[:LIMIT] if value in NAMES], TABLE, os.sep, pd.DataFrame
    except ValueError:
        return function(batch)

def enclosing(table, times={times}):
    return lambda batch: np.bincount(batch, table, times)

class Base:
    @staticmethod
    def weight(x):
        return x * {weight}

class Callable(Base):
    def __init__(self, value):
        self.value, self.own = value, self
    def method(self, batch):
        return self.value
    def __call__(self, batch):
        return len(batch) * {called}

def by_class(batch):
    return Base.weight(batch)

callable = Callable({enclosed})
found = [function, enclosing(pd.Series([1, {enclosed}])), partial(function, batch={kept}), callable.method, callable]
found.append(by_class)
"""
PLAIN = dict(comment="", limit=5, unused=1, added=1, times=2, enclosed=7, kept=3, called=1, weight=1)
ASK = "from dasktc.questions.function_identity import identity; print([identity(f) for f in found])"


def identities(**changes):
    names = {"__name__": "job"}
    exec(MODULE.format(**PLAIN | changes), names)
    return [identity(function) for function in names["found"]]


def test_comments_places_and_unused_names_do_not_count():
    assert identities() == identities(comment="# a comment\n\n", unused="object()")


@pytest.mark.parametrize(
    ("change", "differ"),
    [
        ({"limit": 6}, [True, False, True, False, False, False]),
        ({"added": 2}, [True, False, True, False, False, False]),
        ({"times": 3}, [False, True, False, False, False, False]),
        ({"enclosed": 8}, [False, True, False, True, True, False]),
        ({"kept": 4}, [False, False, True, False, False, False]),
        ({"called": 2}, [False, False, False, True, True, False]),
        ({"weight": 2}, [False, False, False, True, True, True]),
    ],
    ids=str,
)
def test_code_and_what_it_uses_count(change, differ):
    pairs = zip(identities(), identities(**change), strict=True)
    assert [before != after for before, after in pairs] == differ


def test_other_processes_find_the_same(tmp_path):
    """The order of sets, and where code lies, depend on the process."""
    for seed in "123":
        file = tmp_path / f"job{seed}.py"
        file.write_text(MODULE.format(**PLAIN) + ASK)
        root = str(Path(__file__).parents[2])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", file],
            capture_output=True, text=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": root}, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == str(identities())


def test_other_callables():
    assert identity(len) == identity(len) != identity(max)
    assert identity(np.sum) != identity(np.max)
    assert identity(pd.DataFrame.sum) != identity(pd.DataFrame.max)
    assert identity(set, max) == identity(set, max) != identity(max, set)
    one, other = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)
    assert identity(one) != identity(other)
    assert identity(partial(np.bincount, minlength=3)) != identity(partial(np.bincount, minlength=4))
    assert identity(one).startswith("test_other_callables.<locals>.<lambda> ")


def test_what_cannot_be_compared_is_refused():
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"uses <unlocked _thread.lock.*, of type lock, which a checkpoint cannot"):
        identity(lambda batch: lock)
