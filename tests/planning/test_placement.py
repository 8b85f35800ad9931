"""Copies of blocks on workers, and who counts the last tasks."""

from dasktc.planning.placement import ReplicaCache, Shares


def test_what_was_used_longest_ago_is_evicted():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2)
    for block in "aba":
        cache.take([block])
        cache.give_back([block])
    assert cache.take(["c"]) == (["c"], ["b"])


def test_copies_in_use_take_room_until_they_are_given_back():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2)
    cache.take("ab")
    assert (cache.fits("a"), cache.fits("ab"), cache.fits("c")) == (True, True, False)
    cache.give_back("a")
    assert cache.fits("c")


def test_copies_that_are_there_at_the_start_take_room():
    cache = ReplicaCache(dict.fromkeys("abc", 1), capacity=2, there="ab")
    assert cache.take("c") == (["c"], ["a"])


def test_an_idle_worker_takes_the_last_task_of_the_one_with_most_left():
    for given in ({"a": [0], "b": [1, 2, 3], "c": [4]}, {"a": [1, 2, 3], "b": [0], "c": [4]}):
        assert Shares(given | {"idle": []}).take("idle") == 3
