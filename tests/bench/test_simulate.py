"""The simulator, against a slow walk from tick to tick, and where the answer is arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasktc.bench.simulate import Fetches, simulate
from dasktc.planning.placement import shares


def tick_by_tick(costs, workers, overhead, needs, sizes, homes, room):
    """Walk through time in whole ticks; lists record who asks, who is being served, and who works until when."""
    copies = [[] for _ in range(workers)]  # the ones used last at the end

    def fetch(w, wanted):
        came = 0
        for b in dict.fromkeys(wanted):
            if homes[b] == w:
                continue
            if b in copies[w]:
                copies[w].remove(b)
            else:
                came += sizes[b]
            copies[w].append(b)
        for b in list(copies[w]):
            if sum(sizes[c] for c in copies[w]) > room and b not in wanted:
                copies[w].remove(b)
        return came

    todo = [[t for t in range(len(costs)) if t * workers // len(costs) == w] for w in range(workers)]
    works_until = dict.fromkeys(range(workers), 0)
    busy, received, ran = [0] * workers, [0] * workers, [None] * len(costs)
    asks, served, served_until, now, ended = [], None, 0, 0, 0
    while any(todo) or served is not None or works_until:
        again = True
        while again:  # without overhead, several things may happen in one tick
            again = False
            for w in sorted(works_until):
                if works_until[w] == now:
                    del works_until[w]
                    asks.append(w)
                    again = True
            if served is not None and served_until == now:
                w, t = served
                came = fetch(w, needs[t])
                works_until[w] = now + came + costs[t]
                busy[w] += costs[t]
                received[w] += came
                ran[t], served = w, None
                ended = max(ended, works_until[w])
                again = True
            if served is None and asks and any(todo):
                if works_until and min(works_until.values()) == now:
                    again = True  # those who end now ask now, before the scheduler goes on
                    continue
                w = asks.pop(0)
                most = max(len(share) for share in todo)
                if todo[w]:
                    t = todo[w].pop(0)
                else:
                    t = next(share for share in todo if len(share) == most).pop()
                served, served_until = (w, t), now + overhead
                again = True
        now += 1
        if not any(todo) and served is None:
            break
    return ended, busy, received, ran


@given(st.data(), st.integers(1, 6), st.integers(0, 4), st.integers(0, 4))
def test_the_same_as_a_walk_from_tick_to_tick(data, workers, overhead, blocks):
    costs = data.draw(st.lists(st.integers(1, 9), max_size=25))
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=blocks, max_size=blocks))
    some = st.lists(st.integers(0, blocks - 1), max_size=3).map(tuple) if blocks else st.just(())
    needs = data.draw(st.lists(some, min_size=len(costs), max_size=len(costs)))
    homes = data.draw(st.lists(st.integers(0, workers - 1), min_size=blocks, max_size=blocks))
    room = data.draw(st.integers(0, 12) | st.just(10**6))
    found = simulate(costs, workers, overhead, Fetches(needs, sizes, 1.0, homes, room))
    assert (found.seconds, found.busy, found.received, found.ran) == tick_by_tick(
        costs, workers, overhead, needs, sizes, homes, room
    )


@given(st.integers(0, 200), st.integers(1, 50))
def test_shares_are_dealt_as_the_executor_deals_calls(tasks, workers):
    found = shares(tasks, workers)
    assert [t for share in found for t in share] == list(range(tasks))
    assert all(t * workers // tasks == worker for worker, share in enumerate(found) for t in share)


@given(st.integers(1, 20), st.integers(1, 8), st.floats(1e-3, 10))
def test_equal_tasks_without_overhead_speed_up_perfectly(each, workers, cost):
    found = simulate([cost] * (each * workers), workers)
    alone = simulate([cost] * (each * workers), 1)
    assert alone.seconds == pytest.approx(workers * found.seconds)
    assert found.time_imbalance == 1
    assert found.kernel == found.seconds


def test_no_tasks_take_no_time():
    found = simulate([], 3, 1.0)
    assert (found.seconds, found.busy, found.time_imbalance) == (0.0, [0.0] * 3, None)


def test_more_workers_than_tasks_do_not_help():
    few, many = simulate([2.0, 2.0, 2.0], 3), simulate([2.0, 2.0, 2.0], 100)
    assert few.seconds == many.seconds == 2
    assert sorted(many.busy)[-4:] == [0, 2, 2, 2]
    assert many.time_imbalance is None


def test_the_scheduler_bounds_what_many_workers_gain():
    found = simulate([0.1] * 1000, 500, overhead=0.01)
    assert found.seconds == pytest.approx(1000 * 0.01 + 0.1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.integers(1, 10), st.floats(0, 0.1))
def test_bounds_that_every_schedule_keeps(costs, workers, overhead):
    found = simulate(costs, workers, overhead)
    assert found.seconds >= max(sum(costs) / workers, len(costs) * overhead + min(costs)) - 1e-9
    assert found.seconds <= sum(costs) / workers + max(costs) + len(costs) * overhead + overhead + 1e-9
    assert sum(found.busy) == pytest.approx(sum(costs))


def test_a_block_is_fetched_once_by_each_worker_that_has_not_built_it():
    fetches = Fetches([(0,)] * 8, [100.0], 10.0, [0])
    found = simulate([1.0] * 8, 4, 0.0, fetches)
    assert found.received == [0, 100, 100, 100]
    assert found.seconds == 11  # worker 0 meanwhile takes over what the others have not begun
    assert found.busy == [5, 1, 1, 1]


def test_an_idle_worker_takes_over_from_the_one_with_most_left():
    found = simulate([9.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2)
    assert found.ran == [0, 1, 1, 1, 1, 1]
    assert found.seconds == 9
