"""Functions of the caller: what would end a process is an error of the function, once, wherever it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import dasktc
from dasktc.errors import InputError
from dasktc.questions.caller_function import FRAMES, CallerFunction
from tests.support import oracle
from tests.support.slow_pipeline import source_of

METHOD = dasktc.Method(partition="hash2d", parts=2)
COUNT = dasktc.Fold(int, lambda total, batch: total + batch, sum)


class OfAnotherKind(BaseException):
    """An exception that is not an Exception."""


def exits(*batch):
    sys.exit(3)


def is_interrupted(*batch):
    raise KeyboardInterrupt


def ends(*batch):
    raise OfAnotherKind("of the caller")


FUNCTIONS = [
    (exits, r"^function exits raised SystemExit\(3\), with which the process"),
    (ends, r"^function ends raised OfAnotherKind\('of the caller'\), with which"),
]


def length(batch):
    return len(batch["u"])


@pytest.fixture(params=["one thread", "threads", "workers"])
def graph(request):
    if request.param == "workers":
        with dasktc.prepare(oracle.complete(9), request.getfixturevalue("client"), method=METHOD) as graph:
            yield graph
    else:
        yield dasktc.prepare(oracle.complete(9), threads=1 if request.param == "one thread" else 2, method=METHOD)


@pytest.mark.parametrize(("function", "reason"), FUNCTIONS)
def test_a_function_that_would_end_its_process_is_refused_once(graph, function, reason):
    with pytest.raises(InputError, match=reason):
        graph.survey(function)
    for fold in (
        COUNT._replace(start=function),
        COUNT._replace(add=function),
        COUNT._replace(combine=function),
    ):
        with pytest.raises(InputError, match=reason):
            graph.survey(length, reduce=fold)
    assert graph.survey(length, reduce=COUNT) == 84  # its workers live


def test_ctrl_c_is_an_error_in_other_threads_alone():
    """No signal raises there; in the main thread nothing tells an exception of the function from one of Ctrl-C."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match=r"is_interrupted raised KeyboardInterrupt\(\)"):
        pool.submit(CallerFunction(is_interrupted), {}).result()
    with pytest.raises(KeyboardInterrupt):
        CallerFunction(is_interrupted)({})


def recurses(batch):
    return recurses(batch)


def test_a_recursion_without_end_is_told(graph):
    with pytest.raises(RecursionError) as caught:
        graph.survey(recurses)
    assert sum(frame.name == "recurses" for frame in caught.traceback) <= FRAMES
    assert graph.survey(length) == 84


def test_a_function_of_no_triangle_is_refused():
    for source in (source_of([]), oracle.star(3)):
        with pytest.raises(InputError, match=r"^function exits raised"):
            dasktc.prepare(source).survey(exits)


def test_other_errors_pass_unchanged():
    for error in (ValueError("of the caller"), MemoryError(), InputError("of a library")):

        def fails(batch, error=error):
            raise error

        with pytest.raises(type(error)) as caught:
            CallerFunction(fails)({})
        assert caught.value is error


def test_what_is_called_is_named():
    class Summary:
        def __call__(self, batch):
            sys.exit()

    for function, name in (
        (partial(partial(exits), 1), "exits"),
        (Summary(), "Summary"),
        (Summary().__call__, "Summa"),
    ):
        with pytest.raises(InputError, match=rf"^function .*{name}"):
            CallerFunction(function)({})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_within_a_function_ends_the_process(number):
    """Handlers of Python, of the caller and of dasktc raise within the function that runs in the main thread."""

    def waits(batch):
        os.kill(os.getpid(), number)
        while True:
            pass

    def handler(*signal):
        sys.exit(7)

    class Handler:
        def __call__(self, *signal):
            handler()

    ways = [handler, partial(handler), partial(partial(handler), 1), Handler(), Handler().__call__]
    ways += [signal.default_int_handler] if number == signal.SIGINT else []
    for way in ways:
        before = signal.signal(number, way)
        try:
            with pytest.raises((SystemExit, KeyboardInterrupt)):
                CallerFunction(waits)({})
        finally:
            signal.signal(number, before)


def test_exit_in_one_process_does_not_end_a_script():
    script = (
        "import dasktc, sys\n"
        "try:\n"
        "    dasktc.prepare([(0, 1), (1, 2), (2, 0)]).survey(lambda batch: sys.exit(0))\n"
        "except dasktc.InputError as error:\n"
        "    print('refused:', error)\n"
        "print('goes on')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused: function <lambda> raised SystemExit(0)")
    assert done.stdout.endswith("goes on\n")


def test_a_fold_needs_three_functions():
    with pytest.raises(InputError, match=r"nor a dasktc\.Fold of three functions"):
        dasktc.prepare(oracle.complete(4)).survey(length, reduce=dasktc.Fold(1, 2, 3))
