"""What is made at the first call of a process is made once, and completely, whichever of its threads come first."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dasktc.errors import ClusterError, InputError
from dasktc.once import once
from dasktc.planning import orders
from dasktc.registry import Registry
from tests.support.first_calls import THREADS, WAYS
from tests.support.processes import patience
from tests.support.tiers import some

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("way", some(WAYS, lambda way: way == "threads"))
def test_every_question_from_eight_threads_of_a_fresh_process(tmp_path, way):
    command = [sys.executable, "-m", "tests.support.first_calls", way, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience(120))
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


def at_once(function):
    """The function's outcomes in eight threads that call it at the same moment."""
    together, outcomes = threading.Barrier(THREADS), []

    def call():
        together.wait()
        try:
            outcomes.append(function())
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=call) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_threads_that_meet_get_the_one_result():
    @once
    def make():
        time.sleep(0.05)
        return object()

    assert len({id(made) for made in at_once(make)}) == 1


def test_a_refusal_is_remembered_and_another_error_is_not():
    calls = []

    @once
    def fail(kind):
        calls.append(kind)
        raise kind("not here")

    refused = at_once(lambda: fail(InputError))
    assert {(type(error), str(error)) for error in refused} == {(InputError, "not here")}
    assert len({id(error) for error in refused}) == THREADS, "each has frames of its own"
    with pytest.raises(ClusterError):
        fail(ClusterError)
    with pytest.raises(ClusterError):
        fail(ClusterError)
    assert calls == [InputError, ClusterError, ClusterError]


def test_a_registry_is_filled_once():
    names = Registry("reorder")
    with pytest.raises(RuntimeError, match="nothing is declared yet for reorder"):
        list(names)
    names.declare(orders.OWN, orders.Order)
    assert len({id(found) for found in at_once(lambda: names.data)}) == 1


def test_a_setting_that_numba_refuses(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n")
    code = "import os, sys; os.environ['NUMBA_NUM_THREADS'] = '0'; from dasktc.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "count", str(path)], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("it refuses a setting in the environment (NUMBA_NUM_THREADS=0); unset or correct it\n")
    assert len(done.stderr.splitlines()) == 1
