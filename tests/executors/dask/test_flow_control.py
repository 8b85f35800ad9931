"""The window of calls in flight, and workers' copies of blocks: by arithmetic, and on real workers."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import dask
import numpy as np
import pytest
from distributed import CancelledError, Client, LocalCluster, get_worker
from hypothesis import given
from hypothesis import strategies as st

from dasktc import generate
from dasktc.answers.edge_support import SUM
from dasktc.api.count import build
from dasktc.backends.csr import OrientedCSR
from dasktc.bench.simulate import Fetches, simulate
from dasktc.counting import tasks as counting
from dasktc.counting.tasks import jobs
from dasktc.errors import CountError
from dasktc.executors.dask import flow_control
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.faults import FaultPolicy
from dasktc.executors.dask.flow_control import DEPTH, FIRST_DEPTH, BlockReplicas, Window, WindowedSubmitter
from dasktc.executors.dask.futures import results
from dasktc.executors.offers import memory_of
from dasktc.options import Options
from dasktc.planning.placement import ReplicaCache, homes, needed
from dasktc.registry import SCHEMES
from tests.support.processes import until
from tests.support.tiers import some

GRAPH, TRIANGLES = generate.kronecker(14, parts=3), 2_843_668


# Dealing


def received(triples, workers, room=float("inf")):
    """Number of blocks of equal size that workers receive, by the simulator."""
    blocks = 1 + int(triples.max())
    built = homes(*needed(triples, 1, np.arange(workers)), np.ones(blocks))
    fetches = Fetches([tuple(triple) for triple in triples.tolist()], [1.0] * blocks, 1e9, built.tolist(), room)
    return sum(simulate([1.0] * len(triples), workers, fetches=fetches).received)


@pytest.mark.parametrize("partition", ["hash2d", "vertical"])
@pytest.mark.parametrize(
    ("parts", "workers"), some([(4, 4), (8, 8), (16, 8), (16, 64)], lambda parts, workers: parts < 16)
)
@pytest.mark.parametrize("room", [float("inf"), 12])
def test_neighbouring_tasks_share_blocks(partition, parts, workers, room):
    """Fewer blocks travel than with triples in the order of their indices, and far fewer than in random order."""
    triples = SCHEMES[partition].triples(parts)
    plain = triples[np.lexsort(triples.T[::-1])]
    shuffled = np.random.default_rng(0).permutation(triples)
    ours = received(triples, workers, room)
    assert ours < 0.8 * received(plain, workers, room)
    assert ours < 0.65 * received(shuffled, workers, room)


def test_parts_with_proxies_stay_where_they_were_built():
    assert received(SCHEMES["proxy"].triples(16), 8) == 0


@given(st.data(), st.integers(1, 6), st.integers(0, 12))
def test_copies_stay_while_they_fit(data, blocks, room):
    """Against a list of used blocks, the latest last; up to three tasks use blocks at the same time."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=blocks, max_size=blocks))
    built = data.draw(st.sets(st.integers(0, blocks - 1)))
    copies, order, running = ReplicaCache(sizes, built, room), [], []
    for wanted in data.draw(st.lists(st.lists(st.integers(0, blocks - 1), max_size=3).map(tuple), max_size=20)):
        if len(running) == 3 or (running and data.draw(st.booleans())):
            copies.give_back(running.pop(0))
        used = {block for task in running for block in task} | set(wanted)
        assert copies.fits(wanted) == (sum(sizes[block] for block in used - built) <= room)
        come, gone = copies.take(wanted)
        running.append(wanted)
        assert sorted(come) == sorted(set(wanted) - built - set(order))
        order = [block for block in order if block not in wanted]
        order += dict.fromkeys(block for block in wanted if block not in built)
        expected = []
        for block in list(order):
            if sum(sizes[other] for other in order) > room and block not in used:
                order.remove(block)
                expected.append(block)
        assert gone == expected
        assert copies.held == sum(sizes[block] for block in order)


# The window


@given(st.data(), st.integers(1, 4), st.integers(0, 40), st.integers(1, 12))
def test_every_call_is_begun_once_whoever_comes_and_goes(data, workers, calls, room):
    threads = {f"w{number}": data.draw(st.integers(1, 3)) for number in range(workers)}
    needs = data.draw(st.lists(st.lists(st.integers(0, 4), max_size=3).map(tuple), min_size=calls, max_size=calls))
    blocks = BlockReplicas({block: 3 for block in range(5)}, {0: ["w0"]}, room)
    found = Window(
        needs, threads, blocks, itertools.count(0, 0.01).__next__
    )  # Hypothesis needs the same clock each time
    flying, begun = {}, []
    while len(found) or flying:
        more, _ = found.begin()
        flying.update(more)
        begun += [call for call, _ in more]
        of_worker = Counter(flying.values())
        assert all(of_worker[name] >= min(threads[name], 1) for name in threads if len(found))
        assert all(number <= DEPTH * 3 for number in of_worker.values())
        if flying:
            done = data.draw(st.lists(st.sampled_from(sorted(flying)), min_size=1, max_size=4, unique=True))
            for call in done:
                del flying[call]
            found.ended(done)
        if data.draw(st.integers(0, 9)) == 0:
            gone = data.draw(st.sampled_from(sorted(threads)))
            number = threads.pop(gone)
            flying = {call: name for call, name in flying.items() if name != gone} | {
                call: "elsewhere" for call, name in flying.items() if name == gone
            }
            threads[f"{gone}'"] = number
            found.set_workers(threads)
    assert sorted(begun) == list(range(calls))


def test_a_worker_that_ran_dry_gets_more():
    """It gets twice as many each time; a worker whose calls take longer than the round trip keeps one waiting."""
    now = itertools.count(step=100)
    found = Window([()] * 1_000, {"fast": 1, "slow": 1}, BlockReplicas({}, {}), now.__next__)
    fast, slow = [], []
    for _ in range(8):
        begun, _ = found.begin()
        fast.append([call for call, worker in begun if worker == "fast"])
        slow += [call for call, worker in begun if worker == "slow"]
        found.ended([*fast[-1], *slow[:1]])
        del slow[:1]
    assert [len(calls) for calls in fast] == [FIRST_DEPTH, 4, 8, 16, *[DEPTH] * 4]
    assert len(slow) == FIRST_DEPTH - 1


@pytest.mark.parametrize(("seconds", "threads", "wanted"), [(0.5, 1, 2), (0.04, 1, 6), (0.04, 2, 12), (0.001, 1, 32)])
def test_short_calls_wait_for_a_fifth_of_a_second(seconds, threads, wanted):
    """As many as run in that time, plus one; they are refilled once half of them have ended; no thread runs dry."""
    now, flying, together = 0.0, [], []
    found = Window([()] * 20_000, {"a": threads, "b": threads}, BlockReplicas({}, {}), lambda: now)
    for _ in range(400):
        begun, _ = found.begin()
        mine = [call for call, worker in begun if worker == "a"]
        together += [len(mine)] * bool(mine)
        flying += mine
        now += seconds
        ended, flying = flying[:threads], flying[threads:]
        found.ended(ended)
    assert len(flying) <= wanted <= len(flying) + max(together)
    assert set(together[-10:]) == {max(threads, -(-wanted // 2))}


def test_near_the_end_few_calls_wait():
    """Workers with free threads can then take the remaining calls."""
    now, flying, most = 0.0, [], []
    found = Window([()] * 200, {"a": 1, "b": 1}, BlockReplicas({}, {}), lambda: now)
    while len(found) or flying:
        flying += found.begin()[0]
        most.append((len(found), max(Counter(worker for _, worker in flying).values())))
        now += 0.001
        of_each = {worker: call for call, worker in reversed(flying)}
        flying = [(call, worker) for call, worker in flying if of_each[worker] != call]
        found.ended(of_each.values())
    assert max(number for _, number in most) == DEPTH
    assert all(number <= max(FIRST_DEPTH, (left + 2 * DEPTH) // 4) for left, number in most)


def test_an_idle_worker_takes_what_a_slow_one_has_not_begun():
    found = Window([()] * 20, {"a": 1, "b": 1}, BlockReplicas({}, {}), itertools.count(step=100).__next__)
    ran, slow = Counter(), None
    while len(found) or slow is None:
        begun, _ = found.begin()
        ran.update(worker for _, worker in begun)
        slow = slow or [call for call, worker in begun if worker == "a"]
        found.ended([call for call, worker in begun if worker == "b"])
    assert ran == {"a": FIRST_DEPTH, "b": 20 - FIRST_DEPTH}


def test_calls_wait_where_their_blocks_do_not_fit_yet():
    """Each needs a block of its own, and three fit, or none: no thread is left idle for lack of memory."""
    held = {block: 10 for block in range(20)}
    needs = [(block,) for block in held]
    for room, flying in ((30, 3), (5, 1)):
        found = Window(needs, {"a": 1}, BlockReplicas(held, {}, room))
        found._workers["a"].depth = 8
        begun, gone = found.begin()
        assert ([call for call, _ in begun], gone) == (list(range(flying)), {})
        found.ended([0])
        begun, gone = found.begin()
        assert (begun, gone) == ([(flying, "a")], {"a": [0]})


# On real workers


@contextmanager
def workers(threads=1, **config):
    """Two workers in this process, whose contents can be inspected."""
    with (
        dask.config.set(config),
        LocalCluster(
            n_workers=2, threads_per_worker=threads, processes=False, dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield cluster, client


@pytest.fixture
def pair():
    with workers() as found:
        yield found


def test_few_calls_are_in_flight(pair):
    """However many calls there are; and every one is run."""
    cluster, client = pair
    most, ran = 0, []
    for number in DaskExecutor(client).map_unordered("many", tired, [(number, 0.002) for number in range(400)]):
        ran.append(number)
        most = max(most, sum(str(key).startswith("('many") for key in list(cluster.scheduler.tasks)))
    assert sorted(ran) == list(range(400))
    assert most <= 2 * (DEPTH + 1)


@pytest.mark.slow
def test_few_calls_that_make_arrays_are_in_flight(pair):
    """There are also few arrays at a time: each is added to earlier ones, and freed."""
    _cluster, client = pair
    flying, arrays = [], []

    def keys(number):
        found = client.run_on_scheduler(states)
        flying.append(client.run_on_scheduler(calls_in_flight))
        arrays.append(sum(state == "memory" and key.startswith(("('many", "('sum")) for key, state in found))
        return [number % 3]

    tasks = DaskExecutor(client)
    calls = [(number, 0.002) for number in range(200)]
    ran, sums = tasks.fold_unordered("many", tired_array, calls, keys, SUM)
    assert sorted(ran) == list(range(200))
    assert [int(found[0]) for found in tasks.gather(sums[key] for key in range(3))] == [6_633, 6_700, 6_567]
    assert max(flying) <= 2 * (DEPTH + 1)
    assert max(arrays) <= 8 * (DEPTH + 1), "a list, its array, its number and a sum a call"


def calls_in_flight(dask_scheduler):
    """Calls that workers run or are given; tasks that take an array out of a call's list depend on the call."""
    tasks = dask_scheduler.tasks.values()
    return sum(t.state == "processing" and str(t.key).startswith("('many") and not t.dependencies for t in tasks)


def states(dask_scheduler):
    """States of all tasks at one moment, for which the scheduler itself must be asked."""
    return [(str(key), task.state) for key, task in dask_scheduler.tasks.items()]


def tired_array(number, seconds):
    time.sleep(seconds)
    return [np.full(100, number), number]


@pytest.mark.slow
def test_visits_are_placed_as_counting_tasks_are(pair):
    """Each block comes to a worker once: no more travels than its tasks need, and the sums are exact."""
    cluster, client = pair
    graph = build(DaskExecutor(client), GRAPH, Options(partition="hash2d", parts=4, splits=1, memory="1GB"))
    logs = [worker.transfer_incoming_log for worker in cluster.workers.values()]
    for log in logs:
        log.clear()
    assert int(graph.triangles().sum()) == 3 * TRIANGLES
    names = {block.key for block in graph._context.blocks.values()}
    came = [Counter(key for got in list(log) for key in got["keys"] if key in names) for log in logs]
    assert all(set(found.values()) == {1} for found in came)
    assert sum(len(found) for found in came) < 16, "of 32 in all if everything went everywhere"


def tired(number, seconds):
    time.sleep(seconds)
    return number


@pytest.mark.slow
def test_a_slow_worker_keeps_nobody_waiting(pair):
    """Each of its calls takes until the other worker has run 35 of the 40, which takes most of both shares."""
    cluster, client = pair
    slow = sorted(cluster.scheduler.workers)[0]
    ELSEWHERE.clear()
    ran = Counter(DaskExecutor(client).map_unordered("share", slower_there, [(slow,)] * 40))
    assert sum(ran.values()) == 40
    assert ran[slow] <= 5


ELSEWHERE: list[str] = []
"""The worker of each call that ran elsewhere than on the slow one; all are threads of this process."""


def slower_there(address):
    here = get_worker().address
    if here == address:
        until(lambda: len(ELSEWHERE) >= 35)
    else:
        time.sleep(0.01)
        ELSEWHERE.append(here)
    return here


@pytest.mark.slow
def test_a_worker_that_comes_later_gets_its_part(pair):
    cluster, client = pair
    ran = Counter()
    for worker in DaskExecutor(client).map_unordered("late", slower_there, [("nobody",)] * 400):
        ran[worker] += 1
        if sum(ran.values()) == 10:
            cluster.scale(3)
    assert sum(ran.values()) == 400
    assert len(ran) == 3


def test_blocks_are_built_where_they_are_counted_with(pair):
    """A worker has built the blocks that it alone needs, and about half of the bytes."""
    _, client = pair
    graph = build(DaskExecutor(client), GRAPH, Options(partition="hash2d", parts=4, splits=1, memory="1GB"))
    where = {place: client.who_has([block.future])[block.key] for place, block in graph._context.blocks.items()}
    work, (first, second) = jobs(graph.plan, "hub", "cpu"), sorted(client.ncores())
    needs = [{place for job in half for place in job.triple.places} for half in (work[:32], work[32:])]
    assert all(first in where[place] for place in needs[0] - needs[1])
    assert all(second in where[place] for place in needs[1] - needs[0])
    sizes = {place: int(graph._context.prepared.sizes.edges[place]) for place in where}
    share = sum(size for place, size in sizes.items() if first in where[place]) / sum(sizes.values())
    assert 0.4 < share < 0.6


# Copies of blocks


def holding(job, *blocks):
    """Count, and return the bytes of blocks that the worker holds meanwhile, including those of waiting calls."""
    data = get_worker().data
    found = [value for key in list(data) if isinstance(value := data.get(key), OrientedCSR)]
    return counting._count(job, *blocks), sum(block.nbytes for block in found)


def peak(client, memory, parts):
    """Peak of the bytes of blocks on a worker during a count, the triangles, and the bytes of the largest task."""
    graph = build(DaskExecutor(client), GRAPH, Options(partition="hash2d", parts=parts, splits=1, memory="1GB"))
    sizes = graph.plan.scheme.block_bytes(graph._context.prepared.sizes)
    largest = max(sum(int(sizes[place]) for place in set(triple.places)) for triple in graph.plan.triples())
    graph._context.executor.store.set_task_memory(largest, memory_of(graph._context.executor, memory))
    calls = [
        (job, *(graph._context.blocks[place] for place in job.triple.places)) for job in jobs(graph.plan, "hub", "cpu")
    ]
    records, held = zip(*graph._context.executor.map_unordered("count", holding, calls), strict=True)
    return max(held), sum(record.count.triangles for record in records), int(sizes.sum()), largest


@pytest.mark.slow
@pytest.mark.parametrize("parts", [6])
def test_copies_of_blocks_keep_to_the_memory_that_they_have(pair, parts):
    """Without a limit a worker holds more; blocks that it built stay, and the count is exact in both cases."""
    _, client = pair
    free, triangles, total, largest = peak(client, 10**9, parts)
    assert triangles == TRIANGLES
    bound = total // 2 + 3 * largest // 2
    assert bound < 0.9 * free
    kept, triangles, *_ = peak(client, bound, parts)
    assert triangles == TRIANGLES
    assert kept <= bound


def policies(cluster):
    """Names of the policies of Dask's memory manager."""
    return {type(policy).__name__ for policy in cluster.scheduler.extensions["amm"].policies}


@pytest.mark.slow
def test_copies_stay_although_no_task_waits_for_them(pair):
    """Each block comes to a worker once, although Dask's memory manager would drop it; later it drops copies again."""
    cluster, client = pair
    graph = build(DaskExecutor(client), GRAPH, Options(partition="hash2d", parts=4, splits=1, memory="1GB"))
    calls = [
        (job, *(graph._context.blocks[place] for place in job.triple.places)) for job in jobs(graph.plan, "hub", "cpu")
    ]
    names, before = {block.key for block in graph._context.blocks.values()}, policies(cluster)
    logs = [worker.transfer_incoming_log for worker in cluster.workers.values()]
    for log in logs:
        log.clear()
    for _ in graph._context.executor.map_unordered("count", counting._count, calls):
        client.amm.run_once()
        assert policies(cluster) == before - {"ReduceReplicas"} | {"KeepCopies"}
    came = [Counter(key for got in list(log) for key in got["keys"] if key in names) for log in logs]
    assert all(set(found.values()) == {1} for found in came)
    until(lambda: client.amm.run_once() or policies(cluster) == before)
    until(lambda: client.amm.run_once() or not cluster.scheduler.replicated_tasks)


def test_nothing_is_asked_of_a_block_that_every_worker_has_built(pair):
    cluster, client = pair
    graph, before = build(DaskExecutor(client), GRAPH, Options(partition="whole", splits=4)), policies(cluster)
    (block,) = graph._context.blocks.values()
    with mock.patch.object(flow_control, "keep_copies", side_effect=AssertionError):
        assert int(graph.triangle_count()) == TRIANGLES
    assert policies(cluster) == before
    logs = [worker.transfer_incoming_log for worker in cluster.workers.values()]
    assert not any(block.key in got["keys"] for log in logs for got in log), "each task takes its worker's own"


@pytest.mark.slow
def test_the_threads_of_a_worker_share_one_copy():
    with workers(threads=3) as (_, client):
        tasks = DaskExecutor(client)
        graph = build(tasks, GRAPH, Options(partition="hash2d", parts=3, splits=4, memory="1GB"))
        calls = [
            (graph._context.blocks[place],) for job in jobs(graph.plan, "hub", "cpu") for place in job.triple.places
        ]
        copies = set(tasks.map_unordered("look", which, calls))
        assert len({thread for *_, thread in copies}) > 2
        assert len({found[:3] for found in copies}) == len({found[:2] for found in copies})


def which(block):
    return get_worker().address, block.place, id(block), threading.get_ident()


class Ended:
    """An ended future whose release changes its status."""

    def __init__(self, key, status):
        self.key, self.status = key, status

    def exception(self, timeout=None):
        return None

    def result(self, timeout=None):
        raise CountError("the real error") if self.key == "wrong" else CancelledError(self.key)


class Letting:
    """A source of such futures that releases those that are done."""

    def __init__(self, futures):
        self.futures = futures

    def __len__(self):
        return 0

    def submit(self):
        found, self.futures = self.futures, []
        return found

    def ended(self, futures):
        for future in futures:
            future.status = "cancelled"

    def set_workers(self, threads):
        pass


def waited(monkeypatch, *futures):
    class Arrivals:
        def __init__(self, *_):
            self.ended = []

        def expect(self, futures):
            self.ended += [(future, future.key, None) for future in futures]

        def take(self, seconds):
            taken, self.ended = self.ended, []
            return taken

    monkeypatch.setattr("dasktc.executors.dask.futures._Arrivals", Arrivals)
    faults = FaultPolicy(None, 1.0, 0, "token")
    return {result for _, result in results(None, faults, Letting(list(futures)))}


def test_what_came_before_its_worker_died_is_there(monkeypatch):
    assert waited(monkeypatch, Ended("a", "finished"), Ended("b", "lost")) == {"a", "b"}


def test_an_error_among_what_is_done_is_told(monkeypatch):
    with pytest.raises(CountError, match="the real error"):
        waited(monkeypatch, Ended("a", "finished"), Ended("wrong", "error"), Ended("b", "finished"))


def test_keys_of_our_tasks():
    """Stranded tasks of other applications are left alone."""
    from dasktc.executors.dask.executor import DaskExecutor
    from dasktc.executors.dask.internals import is_own
    from dasktc.executors.progress.tracker import STAGES

    executor = SimpleNamespace(_token="0123abcd", _numbers=iter(range(1000)))
    for stage in (*STAGES, "read-canonical-orient", "another"):
        for label in ((), ((0, 1, 2), 3)):
            assert is_own(DaskExecutor._key(executor, stage, label))
    assert is_own(("orient-plan-0123abcd", 7))
    for key in ("orient-0123abcd", ("read-parquet-" + "0a" * 16, 0), ("count-0123abcd", "x"), ("inc-1", 2), 5):
        assert not is_own(key)


def test_workers_keep_blocks_of_about_as_many_bytes():
    """Of the blocks that two workers hold, one keeps the largest and the other the two small ones."""
    sizes_of, both = {"a": 1, "b": 1, "c": 2}, ["w0", "w1"]
    held = {key: (nbytes, both) for key, nbytes in sizes_of.items()}
    stands_in = SimpleNamespace(_blocks=sizes_of, _needs=[["a"]], _capacity=lambda largest: 9)
    replicas = WindowedSubmitter._replicas(stands_in, held)
    keeps = Counter()
    for key, names in replicas.holders.items():
        keeps[names[0]] += sizes_of[key]
    assert keeps == {"w0": 2, "w1": 2}


def test_copies_may_take_the_memory_of_all_threads():
    copies = BlockReplicas({"own": 5, "a": 4, "b": 4}, {"own": ["w"]}, 8).copies
    assert copies("w", 2).fits(["a", "b"])
    assert not copies("w", 1).fits(["a"])
