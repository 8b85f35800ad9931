"""Ctrl-C at any moment: an answer at once, one line at the end, exit code 130, and only the checkpoint is left."""

import functools
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

import dasktc
from dasktc import generate
from dasktc.__main__ import main as start
from dasktc.cli import main as cli
from dasktc.counting.checkpoint import FILE
from dasktc.executors import connect
from dasktc.executors.local import LocalExecutor
from dasktc.executors.place import Place
from dasktc.executors.process import keyboard
from dasktc.executors.process import signals as interrupts
from dasktc.executors.process.keyboard import AT_ONCE, NOTICE, SAME_SECONDS
from dasktc.executors.process.signals import INTERRUPTED
from dasktc.io.write import write_edges
from tests.support.processes import DASKTC, lines, patience, until
from tests.support.tiers import some

OTHER_LINE = "dasktc: error: interrupted: run the command again\n"
"""Of a command without --checkpoint."""
LINE = (
    "dasktc: error: interrupted: run the command again, which goes on where it was: the checkpoint has the finished "
    "tasks\n"
)
"""Of a command with it."""
STOPPING = f"{NOTICE}\n"
SLOW = ("--kernel", "merge", "--partition", "hash2d", "--parts", "6", "--splits", "4", "--verify", "--quiet")


@pytest.fixture(autouse=True)
def handler_of_python():
    """Other libraries, dask-jobqueue for one, set a handler of their own when they are imported."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def one_press(monkeypatch):
    """Signals that a test raises in this process are one press, however slowly it runs: a second would end it."""
    monkeypatch.setattr(keyboard, "SAME_SECONDS", 3600.0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph whose count takes longer than a test waits."""
    path = tmp_path_factory.mktemp("graph") / "graph.parquet"
    write_edges(generate.kronecker(17), path, LocalExecutor())
    return str(path)


@pytest.fixture
def shared(cluster, client, tmp_path_factory):
    """The scheduler file of a cluster that outlives the counts, and a client of it."""
    file = tmp_path_factory.mktemp("shared") / "scheduler.json"
    file.write_text(json.dumps({"address": cluster.scheduler_address}))
    return file, client


class Pressed:
    """A count in a session of its own, as started by a terminal, whose processes all receive SIGINT."""

    def __init__(self, folder, graph, *options):
        self.kept, self.temporary = folder / "kept", folder / "temporary"
        self.temporary.mkdir()
        arguments = ["count", graph, *SLOW, "--checkpoint", str(self.kept), "--per-edge", str(folder / "out.parquet")]
        self.process = subprocess.Popen(
            [*DASKTC, *arguments, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(self.temporary)},
        )

    def begun(self):
        """Whether the program has passed Python's own start: dasktc, unlike Python, catches SIGTERM."""
        with open(f"/proc/{self.process.pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt"))
        return int(caught.split()[1], 16) >> signal.SIGTERM - 1 & 1

    def press(self, after):
        """Send the signal after it has run for some seconds."""
        until(self.begun)
        time.sleep(after)
        os.killpg(self.process.pid, signal.SIGINT)

    def check(self):
        """Check for the notice and one line, exit code 130 as a shell sees it, no process, and no file."""
        out, err = self.process.communicate(timeout=patience())
        assert (out, err) == ("", STOPPING + LINE)
        assert self.process.returncode in (INTERRUPTED, -signal.SIGINT)  # Python ends itself by SIGINT now and then
        until(lambda: not living(self.process.pid), seconds=5)
        assert {path.name for path in self.kept.parent.iterdir()} <= {"kept", "temporary"}
        assert not self.kept.exists() or {path.name for path in self.kept.iterdir()} <= {FILE, f"{FILE}.lock"}
        assert not [path for path in self.temporary.rglob("*") if path.suffix != ".lock" and path.is_file()]


def living(session):
    """Processes of a session that have not ended; the state is the field after the name in /proc."""
    found = subprocess.run(["ps", "-s", str(session), "-o", "stat=,args="], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if not line.startswith("Z")]


COMPILED = """
import hashlib, sys
from dasktc.cli.main import main
from dasktc.executors.process import environment

def collect():
    print("begun", flush=True, file=sys.__stdout__)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # compiled code, for minutes

environment.collect = collect
sys.exit(main(["info"]))
"""


def test_an_answer_comes_at_once_and_a_second_press_ends(tmp_path):
    """The main thread is in compiled code, where no handler of Python is called."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMPILED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "begun\n"
        used = psutil.Process(process.pid).cpu_times().user
        until(lambda: psutil.Process(process.pid).cpu_times().user > used + 0.2)  # spent there
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == STOPPING
        time.sleep(2 * SAME_SECONDS)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(patience()) == INTERRUPTED
        assert process.stderr.read() == f"{AT_ONCE}\n"


@pytest.mark.slow
def test_workers_end_with_a_client_that_ends_at_once(tmp_path, graph):
    running = Pressed(tmp_path, graph, "--workers", "2")
    until(lambda: lines(running.kept / FILE) > 10)
    running.press(after=0)
    running.press(after=2 * SAME_SECONDS)
    out, err = running.process.communicate(timeout=patience())
    assert out == ""
    assert err in (STOPPING + f"{AT_ONCE}\n", STOPPING + LINE)  # it may have ended within the second
    assert running.process.returncode in (INTERRUPTED, -signal.SIGINT)
    until(lambda: not living(running.process.pid), seconds=10)


@pytest.mark.slow
@pytest.mark.parametrize("counting", [False, True])
def test_with_local_workers(tmp_path, graph, counting):
    """While they are being started, or begin to work; later on the tasks counted until then are in the checkpoint."""
    running = Pressed(tmp_path, graph, "--workers", "2")
    if counting:
        until(lambda: lines(running.kept / FILE) > 10)
    running.press(after=0 if counting else 2)
    running.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(3), lambda seed: seed == 1))
def test_on_a_cluster_that_lives_on(tmp_path, graph, shared, seed):
    """Its tasks disappear from the scheduler, and its workers stay usable."""
    file, client = shared
    running = Pressed(tmp_path, graph, "--scheduler-file", str(file))
    if seed:
        until(lambda: tasks_on(client))
    running.press(after=random.Random(seed).uniform(0, 3))
    running.check()
    until(lambda: not tasks_on(client), seconds=5)
    assert client.submit(sum, [1, 2], pure=False).result(timeout=patience()) == 3


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_no_tasks_either(tmp_path, graph, shared):
    """After SIGKILL the scheduler notices by itself. The same command continues from the checkpoint."""
    file, client = shared
    running = Pressed(tmp_path, graph, "--scheduler-file", str(file))
    until(lambda: lines(running.kept / FILE) > 10)
    running.process.kill()
    running.process.communicate()
    until(lambda: not tasks_on(client), seconds=20)


def tasks_on(client):
    return client.run_on_scheduler(lambda dask_scheduler: sum(str(k).startswith("('") for k in dask_scheduler.tasks))


@pytest.fixture
def handlers():
    """Restores the signal handlers after a test."""
    before = {number: signal.getsignal(number) for number in interrupts.ENDING}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


ENDS = [
    (signal.SIGINT, KeyboardInterrupt, None),
    (signal.SIGTERM, SystemExit, 128 + signal.SIGTERM),
    (signal.SIGHUP, SystemExit, 128 + signal.SIGHUP),
]


@pytest.mark.parametrize(("number", "error", "code"), ENDS)
def test_in_this_process(handlers, number, error, code):
    """The handlers are installed while a command runs, and removed afterwards."""
    with interrupts.one_at_a_time():
        with pytest.raises(error) as caught:
            signal.raise_signal(number)
        for again in interrupts.ENDING:
            signal.raise_signal(again)  # the same press again; a batch system sends one signal after another
        assert interrupts.ended_by() == number
        assert getattr(caught.value, "code", None) == code
    for other, handler in handlers.items():
        signal.signal(other, handler)
    with interrupts.one_at_a_time():
        assert interrupts.ended_by() is None
    assert {other: signal.getsignal(other) for other in handlers} == handlers


@pytest.mark.parametrize(("number", "error", "code"), ENDS)
def test_what_starts_or_ends_workers_is_not_broken_off(handlers, number, error, code):
    reached = []
    with interrupts.one_at_a_time():
        with pytest.raises(error), interrupts.held():
            reached.append(signal.raise_signal(number))
    assert reached == [None]
    assert interrupts.ended_by() == number


def test_what_nohup_ignores_stays_ignored(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupts.one_at_a_time():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) is not handlers[signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is handlers[signal.SIGTERM]


def test_threads_of_workers_do_not_hear_a_terminal():
    masks = []
    with interrupts.loop_without_interrupts() as loop:
        heard = threading.Event()
        loop.add_callback(lambda: (masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())), heard.set()))
        assert heard.wait(patience())
    assert masks[0] >= interrupts.OF_TERMINALS == {signal.SIGINT, signal.SIGHUP}
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & masks[0]


EDGES = [0, 1, 2], [1, 2, 0]
START = """
import os, signal, sys, threading, time
import dasktc
from dasktc.executors.place import Place

EDGES = [0, 1, 2], [1, 2, 0]
QUESTIONS = {
    "count": lambda: dasktc.triangle_count(EDGES, Place(workers=1)),
    "prepare": lambda: dasktc.prepare(EDGES, Place(workers=1)).close(),
    "cluster": lambda: dasktc.cluster(1, "cpu").close(),
}

if __name__ == "__main__":
    import psutil

    def workers():
        found = []
        for process in psutil.Process().children(recursive=True):
            try:
                if "spawn_main" in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except psutil.Error:
                pass
        return found

    question, *delays = sys.argv[1:]
    QUESTIONS[question]()  # a session in which workers were started before
    heard = 0
    for delay in map(float, delays):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            QUESTIONS[question]()
            timer.join()
            time.sleep(1)
        except KeyboardInterrupt:
            heard += 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ends = time.monotonic() + 20
        while workers():
            assert time.monotonic() < ends, f"interrupted after {delay} s, workers {workers()} are left"
            time.sleep(0.05)
    print(heard)
"""


def interrupted(folder, question, delays):
    """Number of interrupts that a script of its own raised; it fails where workers are left."""
    script = folder / "script.py"
    script.write_text(START)
    done = subprocess.run(
        [sys.executable, script, question, *map(str, delays)], capture_output=True, text=True, timeout=patience(300)
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


QUESTIONS = {
    "count": lambda: dasktc.triangle_count(EDGES, client=Place(workers=1)),
    "prepare": lambda: dasktc.prepare(EDGES, client=Place(workers=1)),
    "cluster": lambda: dasktc.cluster(1, "cpu"),
}
CASES = list(itertools.product(QUESTIONS, ["LocalCluster", "Client", "page"]))
QUICK = {("count", "LocalCluster"), ("prepare", "page"), ("cluster", "Client")}


@pytest.mark.parametrize(("question", "point"), some(CASES, lambda *case: case in QUICK))
def test_an_interrupt_while_workers_start_ends_them(monkeypatch, question, point):
    """Python's own handler would raise inside Dask, which forgets what it had started."""
    import distributed

    reached = []

    def signalled(made):
        @functools.wraps(made)
        def make(*args, **kwargs):
            result = made(*args, **kwargs)
            reached.append(signal.raise_signal(signal.SIGINT))
            return result

        return make

    if point == "page":
        monkeypatch.setattr(connect, "show_page", signalled(connect.show_page))
    else:
        monkeypatch.setattr(distributed, point, signalled(getattr(distributed, point)))
    before, handler = set(psutil.Process().children(recursive=True)), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as kept:  # its traceback keeps what was started from being collected
        QUESTIONS[question]()
    assert reached == [None], "it is delivered when the start has an owner"
    assert kept.value is not None
    assert signal.getsignal(signal.SIGINT) is handler
    until(lambda: not [child for child in psutil.Process().children(recursive=True) if new_worker(child, before)])


def new_worker(process, before):
    """Whether a process is a worker that was started since; the helpers of multiprocessing stay."""
    try:
        command = " ".join(process.cmdline())
        return process not in before and process.status() != "zombie" and "tracker" not in command
    except psutil.Error:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(("question", "first"), [("count", 1), ("prepare", 3), ("cluster", 5)])
def test_a_script_that_is_interrupted_at_any_moment_of_the_start(tmp_path, question, first):
    """The three questions take turns at the moments, as one function starts the workers of all."""
    delays = [step / 10 for step in range(first, 20, 6)]
    assert interrupted(tmp_path, question, delays) == len(delays)


@pytest.mark.parametrize("ends", [ValueError, None])
def test_a_signal_is_delivered_whoever_handles_it(ends):
    """Python's own handler hears of it afterwards, once, also where what was started failed."""
    before, reached = signal.getsignal(signal.SIGINT), []

    def start():
        with interrupts.held(), interrupts.held():
            reached.append(signal.raise_signal(signal.SIGINT))
            if ends is not None:
                raise ends

    with pytest.raises(KeyboardInterrupt):
        start()
    assert reached == [None]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_late_second_signal_breaks_in():
    reached = []

    def start():
        with interrupts.held(grace_seconds=0.05):
            reached.append(signal.raise_signal(signal.SIGINT))
            time.sleep(0.1)
            reached.append(signal.raise_signal(signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        start()
    assert reached == [None]


@pytest.mark.parametrize("context", [interrupts.held, interrupts.one_at_a_time])
def test_other_threads_delay_nothing_and_have_no_handlers(context):
    def run():
        before = signal.getsignal(signal.SIGINT)
        with context():
            same.append(signal.getsignal(signal.SIGINT) is before)

    same = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert same == [True]


@pytest.mark.parametrize(("number", "error", "_"), ENDS)
def test_an_error_that_came_of_it_is_not_reported(handlers, monkeypatch, capsys, number, error, _):
    """A library may turn the interrupt into an error of its own."""

    def collect():
        try:
            signal.raise_signal(number)
        except error:
            raise ImportError("half of it was loaded") from None

    monkeypatch.setattr("dasktc.executors.process.environment.collect", collect)
    assert cli.main(["info"]) == 128 + number
    assert capsys.readouterr().err == (STOPPING + OTHER_LINE if number == signal.SIGINT else "")


def test_while_the_command_line_is_loaded(monkeypatch, capsys):
    class Pressed:
        def find_spec(self, name, path=None, target=None):
            if name == "dasktc.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "dasktc.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Pressed(), *sys.meta_path])
    assert start() == INTERRUPTED
    assert capsys.readouterr().err == "dasktc: error: interrupted: nothing was begun; run it again\n"
