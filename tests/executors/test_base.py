"""Folds, trees and lists of handles: each handle is taken once, and no result is overwritten."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dasktc.executors.base import Fold, tree
from dasktc.executors.local import LocalExecutor
from dasktc.pipeline.stages.orient import total


@given(st.lists(st.integers(), min_size=1, max_size=100), st.integers(2, 9))
def test_tree_takes_every_handle_once(handles, arity):
    left, groups = list(handles), []
    assert tree(LocalExecutor(), "sum", lambda group: groups.append(len(group)) or sum(group), left, arity) == sum(
        handles
    )
    assert not left
    assert sum(groups) == (len(handles) + len(groups) - 1 if groups else 0)
    assert max(groups, default=0) <= arity


def test_fold_takes_every_input_once_and_holds_one_result():
    """The same holds for a tree: neither overwrites a result that came from elsewhere."""
    adding = Fold(lambda: np.zeros(3, int), lambda found, item: np.add(found, item, out=found), total)
    inputs = [np.full(3, 10**k) for k in range(5)]
    assert LocalExecutor().fold("sum", adding, list(inputs)).tolist() == [11111] * 3
    assert (
        tree(LocalExecutor(), "sum", adding.combine, [adding.alone(item) for item in inputs], 2).tolist() == [11111] * 3
    )
    assert [item.tolist() for item in inputs] == [[10**k] * 3 for k in range(5)]
    left = list(inputs)
    LocalExecutor().fold("sum", adding, left)
    assert not left


def test_handles_are_given_up_once_they_are_used():
    """A kept handle would keep its memory on the workers."""
    handles = [[1, 2], [3, 4]]
    assert LocalExecutor().transpose("stage", handles, 2) == [[1, 3], [2, 4]]
    inputs = [1, 2, 3]
    assert LocalExecutor().map("stage", lambda item, by: item * by, inputs, 2) == [2, 4, 6]
    assert handles == inputs == []
