"""Connects to what runs the tasks: this process, local workers (on CPUs or GPUs), or a running Dask cluster.

Clusters of other kinds (Slurm, Kubernetes, SSH) are started by the Dask projects for them; a client of any of these
can be passed in.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from dasktc.backends import get_backend
from dasktc.backends.calls import dask_worker
from dasktc.backends.heap import DASK_TRIM, KEEPING
from dasktc.backends.host_threads import allowed_threads
from dasktc.errors import ClusterError, DasktcError, InputError
from dasktc.executors.base import Executor, for_backend
from dasktc.executors.dask.executor import DaskExecutor
from dasktc.executors.dask.late_workers import late_workers
from dasktc.executors.dask.progress import show_page
from dasktc.executors.local import LocalExecutor
from dasktc.executors.place import CONNECT_SECONDS, Place
from dasktc.executors.process.gpu_discovery import devices, visible
from dasktc.executors.process.paths import check_regular
from dasktc.executors.process.shared_context import SharedContext
from dasktc.executors.process.signals import held, loop_without_interrupts
from dasktc.executors.process.tls import checked, greet
from dasktc.executors.process.ucx import chosen_protocol, log_ucx, refuse_ucx
from dasktc.executors.stores.claims import Claim, remove_abandoned
from dasktc.executors.stores.work_dir import WorkDir, default_place
from dasktc.options import RunOptions, format_size, whole_number
from dasktc.wording import advice, option, plural

__all__ = [
    "active_client", "check_client", "connect", "current_client", "joined", "started", "threads_here",
    "with_all_threads",
]  # fmt: skip

log = logging.getLogger("dasktc")
page_log = logging.getLogger("dasktc.page")
"""Told the page's address for clusters that were there before; the command shows it also where no bar is shown."""
GPU_FILES = ("/dev/nvidiactl", "/dev/dxg")
"""Files of a system with an NVIDIA driver, on Linux or WSL."""
POOL = 0.01
"""Initial size of a worker's pool, as a share of the device's memory or of what is free there; a full pool doubles.
UCX maps memory of such pools to other devices, but not memory of `cudaMallocAsync`."""
LEAST_POOL = 1 << 20
"""Bytes; 0 would mean no size to dask-cuda."""
GPU_WORKER_BYTES = 3 << 29
"""Device memory of a worker without data: CUDA contexts and libraries, those of its nanny included. On an H200 whose
other programs leave 1.3 GB no worker starts."""
SPAWN = "distributed.nanny.pre-spawn-environ"
KEPT_BY_DASK = {
    "distributed.admin.low-level-log-length": (1000, 200),
    "distributed.admin.log-length": (10_000, 1000),
    "distributed.admin.system-monitor.log-length": (7200, 1200),
    "distributed.scheduler.events-cleanup-delay": ("1h", "10m"),
    "distributed.worker.profile.interval": ("10ms", "200ms"),
    "distributed.admin.tick.interval": ("20ms", "500ms"),
}
"""How much of the past Dask keeps in memory: its default, and our value for clusters started here, where the user set
none. These are the latest messages of every connection, with their tasks' arguments; log records; half seconds of the
dashboard's plots; events of workers that left. They fill for as long as an hour, and this process grows meanwhile. The
last but one entry is how often a worker samples its threads for the page of profiles. Dask keeps the text of every
source file that a sample meets, so a worker grew by 0.8 MB a minute for an hour, and 100 samples a second took a tenth
of the CPU time of its event loop. The last is how often a server looks whether its event loop is late: 200 times a
second in this process, where scheduler, client and two nannies do."""
PORT_TAKEN = "Port .* is already in use"
"""Dask's warning where another program took the dashboard's port after we looked for a free one."""
STARTING = threading.RLock()
"""Held by the thread that starts workers: meanwhile environment, configuration and filters of warnings are its own."""
WORKER_BYTES = 1 << 27
"""Least resident memory of a worker's interpreter and libraries."""


@contextmanager
def connect(place: Place | None = None, backend: str = "cpu", run: RunOptions | None = None) -> Iterator[Executor]:
    """Yield the executor of a place, and close what was started for it.

    Parameters
    ----------
    place : Place, optional
        Default: the active client, or this process.
    backend : str
        Kind of local workers to start or, in this process, the backend that counts. The CPU backend is loaded (and
        compiled) here first, so that the workers find compiled code; that of CUDA is loaded by the workers alone.
    run : RunOptions, optional
        Its `retries` and `worker_timeout` apply on a cluster.

    Raises
    ------
    InputError
        Fewer than one worker, or more than fit the host's memory; unusable certificates; no client.
    ClusterError
        The scheduler does not answer, or no worker joined.
    """
    place = Place() if place is None else place
    run = RunOptions() if run is None else run
    if place.scheduler is not None or place.scheduler_file is not None:
        with joined(place) as client:
            yield _on(client, run)
    elif place.workers is not None:
        with started(place.workers, backend, place.security) as client:
            yield _on(client, run)
    else:
        if place.security is not None:
            checked(place.security)
        _step_aside()
        if threads := threads_here(place, backend):
            yield LocalExecutor(threads=threads)
        else:
            yield _on(active_client() if place.client is None else place.client, run)


def threads_here(place: Place, backend: str) -> int:
    """Number of threads where everything runs in this process (1 where a GPU counts); 0 where workers run the calls.

    The backend is named as the caller asked for it.
    """
    if place.threads is None and (place.names or active_client() is not None):
        return 0
    if backend == "cuda" or (backend == "auto" and _may_use_a_gpu()):
        return 1
    return place.threads or allowed_threads()


def with_all_threads(executor: Executor, place: Place, backend: str) -> Executor:
    """Return the executor for the chosen backend.

    In this process it gets all its threads now if the CPU was chosen although there may be a GPU.
    """
    executor = for_backend(executor, backend)
    if executor.backend.on_device and (place.threads or 1) > 1:
        log.warning(
            "dasktc: warning: %s makes nothing faster on a GPU, which does one call after another: it is 1 there; "
            "leave it out, or take %s",
            option("threads", place.threads),
            advice(backend="cpu"),
        )
    if executor.backend.on_device or not isinstance(executor, LocalExecutor) or len(executor.worker_threads) > 1:
        return executor
    return LocalExecutor(executor.store, place.threads or allowed_threads())


def _may_use_a_gpu() -> bool:
    """Whether a GPU and CuPy seem to be present; loading CuPy would tell for sure, but takes seconds."""
    return any(map(os.path.exists, GPU_FILES)) and ("cupy" in sys.modules or find_spec("cupy") is not None)


@contextmanager
def started(
    workers: int | str, backend: str, security: Any = None, default: bool = False, protocol: str = "auto"
) -> Iterator[Any]:
    """Start workers on this host, and yield a client of them; both are closed afterwards.

    Parameters
    ----------
    workers : int or "all"
    backend : {"auto", "cpu", "cuda"}
        "auto": one worker per GPU where dask-cuda and a GPU are present, else one per core.
    security : distributed.Security, optional
    default : bool
        Make the client the active one of this process.
    protocol : {"auto", "tcp", "ucx"}
        Network between workers with GPUs; "auto": UCX where it is installed. Workers without GPUs use TCP.

    Raises
    ------
    InputError, ClusterError
        As for `connect`.
    """
    _end_if_imported_again()
    security = checked(security)
    if find_spec("bokeh") is None:
        log.info("the dashboard has no pages: bokeh is not installed; pip install 'dasktc[dashboard]'")
    if _wants_gpus(backend):
        start = _on_gpus(workers, security, default, chosen_protocol(protocol))
    else:
        refuse_ucx(protocol)
        get_backend("cpu")  # its compilation may take long, and may be interrupted
        start = _local(workers, security, default)
    with ExitStack() as stack:
        with held(), STARTING:
            for context in (late_workers, _silence, _brief_logs):
                stack.enter_context(context)
            client = stack.enter_context(start)
        try:
            yield client
        finally:
            with held():
                stack.close()


def current_client() -> Any:
    """The client that the calling code made its current one; None where there is none, and in an event loop of Dask.

    Such a loop, in a thread of its own, unpickles what it receives for whoever asked for it. A notebook's code runs in
    an event loop too, in the main thread.
    """
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    if threading.current_thread() is not threading.main_thread():
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            return None
    with suppress(ValueError):
        return Client.current(allow_global=False)
    return None


def active_client() -> Any:
    """The current Dask client of the process or of the task that calls this, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        return None
    is_unusable = not client.asynchronous and client.scheduler is None  # its cluster did not start
    return None if is_unusable else client


def check_client(client: Any) -> None:
    """Refuse (InputError) what is no client, and a closed or asynchronous one, which runs no tasks synchronously."""
    if not hasattr(client, "submit") or not hasattr(client, "scheduler_info"):
        columns = f", or {advice('columns')} where these are meant" if isinstance(client, list | tuple) else ""
        raise InputError(
            f"client is a {type(client).__name__}, a distributed.Client is needed: it runs the tasks; pass "
            f"Client(address){columns}"
        )
    if getattr(client, "status", "running") in ("closing", "closed"):
        raise InputError("the client is closed: nobody runs its tasks any more; pass one that is connected, or none")
    if getattr(client, "asynchronous", False):
        raise InputError(
            "the client is asynchronous: its calls return coroutines; pass Client(address), or count in another thread"
        )


def _on(client: Any, run: RunOptions) -> DaskExecutor:
    check_client(client)
    executor = DaskExecutor(client, run.worker_timeout, run.retries)
    executor.faults.threads()
    show_page(client, page_log)
    return executor


def _step_aside() -> None:
    """Inside a Dask task, secede for good: the tasks it waits for need its thread, and a prepared graph outlives it."""
    if dask_worker() is not None:
        from distributed import secede

        with suppress(ValueError, KeyError):  # it seceded before, or runs no task
            secede()


@contextmanager
def joined(place: Place, default: bool = False) -> Iterator[Any]:
    """Connect to the running scheduler of a place, by its address or by the file that it wrote, and yield the client.

    With `default` the client becomes the active one of this process. A file that is not a regular one, and certificates
    that cannot be used, are refused (InputError). It raises ClusterError where the scheduler does not answer.
    """
    file, seconds = place.scheduler_file, place.connect_seconds
    if file is not None:
        check_regular(option("scheduler_file", file), os.fspath(file))
    security = checked(place.security)
    from distributed import Client

    try:
        address = place.scheduler or _address(file, seconds)
        if security.require_encryption and "://" not in address:
            address = f"tls://{address}"
        greet(address, security, seconds)
        client = Client(address, timeout=seconds, set_as_default=default, security=security)
    except InputError:
        raise
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"no scheduler answered at {str(place.scheduler or file)[:200]} in {seconds:g} s "
            f"({type(error).__name__}): it is not running, the address is wrong, or it uses TLS and the address does "
            "not say tls://; start one with `dask scheduler` and give the address that it prints"
        ) from None
    with client:
        yield client


def _address(file: str | os.PathLike[str] | None, seconds: float) -> str:
    """Read the address from a scheduler file; a scheduler that is just starting gets time to write it."""
    ends = time.monotonic() + seconds
    while True:
        try:
            with open(file or "") as text:
                address = json.load(text)["address"]
            if isinstance(address, str):
                return address
            raise TypeError(f"{type(address).__name__} is no address")
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            if time.monotonic() > ends:
                raise ClusterError(
                    f"scheduler file {str(file)[:200]!r} names no address after {seconds:g} s "
                    f"({type(error).__name__}): no scheduler wrote it, or to another path; start one with "
                    "`dask scheduler --scheduler-file FILE`, on a disk that all hosts mount"
                ) from None
        time.sleep(0.1)


def _wants_gpus(backend: str) -> bool:
    has_gpus = backend == "auto" and find_spec("dask_cuda") is not None and bool(devices())
    return backend == "cuda" or has_gpus


def _number(workers: int | str, total: int | None) -> int | None:
    """Number of workers to start: as given, or `total` for "all"."""
    if isinstance(workers, str) and workers == "all":
        return total
    from distributed.system import MEMORY_LIMIT

    limit = max(os.cpu_count() or 1, MEMORY_LIMIT // WORKER_BYTES)
    explanation = (
        f"each is a process of at least {format_size(WORKER_BYTES)}, and this host has {format_size(MEMORY_LIMIT)} of "
        "memory"
    )
    return whole_number("workers", workers, 1, limit, few="nobody would count", many=explanation)


@contextmanager
def _on_gpus(workers: int | str, security: Any, default: bool, protocol: str) -> Iterator[Any]:
    """Start one worker per GPU, whose cuDF and CuPy share an RMM pool; this process touches no GPU."""
    number = _number(workers, None)
    try:
        from dask_cuda import LocalCUDACluster  # noqa: TID251  (here alone)
    except ImportError as import_error:
        raise InputError(
            f"dask-cuda cannot be imported ({import_error}): it starts a worker a GPU; install dasktc[cuda13] or "
            f"dasktc[cuda12] to match the driver, or leave {option('workers')} out to count on one GPU"
        ) from import_error
    from distributed import Client

    pool = _pool(number)
    with ExitStack() as stack:
        try:
            with _main_guarded(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", PORT_TAKEN, UserWarning)
                cluster = LocalCUDACluster(
                    n_workers=number,
                    threads_per_worker=1,
                    protocol=protocol,
                    rmm_pool_size=pool,
                    rmm_allocator_external_lib_list=["cupy"],
                    dashboard_address=f"127.0.0.1:{_free_port(8787)}",
                    silence_logs=logging.CRITICAL,
                    security=security,
                )
                stack.enter_context(cluster)
                _refuse_failed(cluster)
        except DasktcError:
            raise
        except Exception as error:  # from NVML, dask-cuda or the workers
            raise InputError(
                f"no cluster of {plural(workers, 'GPU') if isinstance(workers, int) else 'GPUs'} could be started "
                f"({' '.join(str(error).split())}): fewer are visible, or the driver does not answer; check nvidia-smi "
                f"and CUDA_VISIBLE_DEVICES, or start fewer with {advice('workers')}"
            ) from error
        client = stack.enter_context(Client(cluster, set_as_default=default))
        if protocol == "ucx":
            log_ucx(client)
        show_page(client)
        yield client


def _refuse_failed(cluster: Any) -> None:
    """Refuse a cluster with workers that failed to start: dask-cuda returns it as if nothing were wrong."""
    from distributed import Status

    count = sum(worker.status is Status.failed for worker in cluster.workers.values())
    if count:
        raise ClusterError(
            f"{count} of {plural(len(cluster.workers), 'worker')} could not be started on a GPU: other programs hold "
            f"its memory, or the driver does not answer; check nvidia-smi, or leave {option('workers')} out"
        )


def _pool(number: int | None) -> int | float:
    """Initial size of the workers' RMM pools, in bytes or as a share of the device, within what others leave free.

    Where other programs leave so little that no worker starts, it raises ClusterError.
    """
    sizes = [device["free_bytes"] for device in visible(number)]
    free = min(sizes) if sizes and None not in sizes else None  # of the fullest GPU, where the driver says it
    if free is not None and free < GPU_WORKER_BYTES + LEAST_POOL:
        raise ClusterError(
            f"a GPU has {format_size(free)} free, a worker takes {format_size(GPU_WORKER_BYTES)} before it holds any "
            f"data: other programs hold the rest; end them (nvidia-smi lists them), or leave {option('workers')} out"
        )
    return POOL if free is None else max(LEAST_POOL, int(POOL * (free - GPU_WORKER_BYTES)))


@contextmanager
def _local(workers: int | str, security: Any, default: bool) -> Iterator[Any]:
    number = _number(workers, os.cpu_count() or 1)
    from distributed import Client, LocalCluster

    with loop_without_interrupts() as loop, ExitStack() as stack:
        try:
            with _main_guarded(), _starting(number), warnings.catch_warnings(), _keeping_memory():
                warnings.filterwarnings("ignore", PORT_TAKEN, UserWarning)
                cluster = LocalCluster(
                    local_directory=stack.enter_context(_folder_of_workers()),
                    n_workers=number,
                    threads_per_worker=1,
                    dashboard_address=f"127.0.0.1:{_free_port(8787)}",
                    silence_logs=logging.CRITICAL,
                    security=security,
                    loop=loop,
                )
                client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=default))
            show_page(client)
            yield client
        finally:
            stack.close()
            with STARTING:
                _forget_keeping()


@contextmanager
def _folder_of_workers() -> Iterator[str]:
    """Yield a new folder for workers' files, and remove it afterwards.

    Dask kills a worker whose task does not end within four seconds, and leaves what that worker had there.
    """
    place = default_place()
    os.makedirs(place, exist_ok=True)
    remove_abandoned(place)
    claim = Claim(place)
    try:
        yield claim.folder
    finally:
        claim.release()


@contextmanager
def _keeping_memory() -> Iterator[None]:
    """Have the workers that are started meanwhile reuse freed memory instead of trimming it, unless the user set this.

    By default Dask has them trim, and malloc maps large arrays anew each time, so that each is faulted in again: two
    workers that count Kronecker 20 then spend 0.7 s of system time, and 0.3 s with one heap.
    """
    import dask

    environ = dask.config.get(SPAWN, {})
    trims, *settings = KEEPING
    old_value = os.environ.get(trims, str(DASK_TRIM))  # Dask leaves there what it set for earlier workers
    if environ.get(trims) != DASK_TRIM or old_value != str(DASK_TRIM) or any(name in os.environ for name in settings):
        yield
        return
    os.environ.update({name: str(value) for name, value in KEEPING.items()})  # it goes before Dask's configuration
    try:
        with dask.config.set({SPAWN: {**environ, **KEEPING}}):
            yield
    finally:
        _forget_keeping()


def _forget_keeping() -> None:
    """Take our variables out of this process's environment, where Dask puts them whenever a worker starts."""
    for name, value in KEEPING.items():
        if os.environ.get(name) == str(value):
            del os.environ[name]


@contextmanager
def _silent() -> Iterator[None]:
    levels = {handler: handler.level for handler in logging.getLogger("distributed").handlers}
    for handler in levels:
        handler.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for handler, level in levels.items():
            handler.setLevel(level)


_silence = SharedContext(_silent)
"""Active while any cluster started here is up; with a context each, one that ends would show the others' logs."""


def _brief() -> AbstractContextManager[Any]:
    import dask

    values = {name: value for name, (default, value) in KEPT_BY_DASK.items() if dask.config.get(name, None) == default}
    brief: AbstractContextManager[Any] = dask.config.set(values)
    return brief


_brief_logs = SharedContext(_brief)
"""Active while any cluster started here is up: its parts create their logs as they start, workers at any time."""


IMPORTED_AGAIN = "DASKTC_MAIN_IMPORTED_AGAIN"
"""Environment variable with the path of a file, which a worker creates if its start runs the user's script again."""


def _end_if_imported_again() -> None:
    """End, quietly, a starting worker process that has run the user's script again as its main module.

    Such a process runs it as "__mp_main__", which becomes its main module once it has run to its end.
    """
    script = sys.modules.get("__mp_main__")  # in other processes an alias of the main module
    if script is not None and script.__name__ == "__mp_main__" and script is not sys.modules["__main__"]:
        with suppress(KeyError, OSError):
            open(os.environ[IMPORTED_AGAIN], "w").close()
        raise SystemExit(1)


@contextmanager
def _main_guarded() -> Iterator[None]:
    """Report in one line the failure of a script that starts workers whenever it is imported.

    A worker's process imports the main module of the process that starts it.
    """
    work = WorkDir(tempfile.gettempdir())  # Dask's own folder may be missing, which `_starting` reports
    os.environ[IMPORTED_AGAIN] = marker = work.new_path()
    try:
        yield
    except Exception:
        if not os.path.exists(marker):
            raise
        raise InputError(
            f"{_main_file()} starts workers whenever it is imported, and every worker imports it: its call has to "
            'stand below `if __name__ == "__main__":`; move it there, or leave workers out'
        ) from None
    finally:
        os.environ.pop(IMPORTED_AGAIN, None)  # another thread may start workers, too
        work.close()


def _main_file() -> str:
    return str(getattr(sys.modules["__main__"], "__file__", "the main module"))


@contextmanager
def _starting(number: int | None) -> Iterator[None]:
    """Turn a failure to start workers into an error of one line."""
    try:
        yield
    except (OSError, RuntimeError, TimeoutError) as error:
        workers = "workers" if number is None else plural(number, "worker")
        if broken := _main_error():
            raise InputError(
                f"{workers} could not be started: each imports {_main_file()}, which ends there with "
                f"{broken[:200]}; have what it imports found from there, or move what fails below "
                '`if __name__ == "__main__":`'
            ) from error
        main = sys.modules["__main__"]
        script = None if main.__spec__ else getattr(main, "__file__", None)
        if script is not None and not os.path.isfile(script):
            raise InputError(
                f"{workers} could not be started: each imports the script, and {script} is no file, as where Python "
                "reads it from standard input; save it to a file, or leave workers out"
            ) from error
        causes = [error, error.__cause__, error.__context__]
        reasons = "; ".join(dict.fromkeys(" ".join(str(cause).split()) for cause in causes if cause is not None))
        raise ClusterError(
            f"{workers} could not be started ({reasons}): the system allows no more processes, memory or "
            f"open files, or no folder for temporary files; start fewer with {advice('workers')}, or see `ulimit -a`"
        ) from error


def _main_error() -> str | None:
    """Error of this process's script where a worker imports it; None where that works, or there is no script.

    Dask says only that the worker's process has ended, so the import is made once more, as multiprocessing makes it.
    """
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if os.environ.get(IMPORTED_AGAIN) and os.path.exists(os.environ[IMPORTED_AGAIN]):
        return None  # it starts workers itself, which `_main_guarded` says
    if spec is None and not os.path.isfile(file or ""):
        return None
    run, name = ("run_path", file) if spec is None else ("run_module", spec.name)
    call = f"import runpy, sys; sys.path[:] = {sys.path!r}; sys.argv[:] = {sys.argv!r}; "
    code = f"{call}runpy.{run}({name!r}, run_name='__mp_main__')"
    with suppress(OSError, subprocess.TimeoutExpired, ValueError):
        process = subprocess.run(
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_SECONDS
        )
        lines = process.stderr.decode(errors="replace").split("\n")
        messages = [line.strip() for line in lines if line.strip()]
        return messages[-1] if process.returncode and messages else None
    return None


def _free_port(port: int) -> int:
    """The wanted port of this host if nobody listens there, else 0, which means any."""
    with socket.socket() as probe:
        return 0 if probe.connect_ex(("127.0.0.1", port)) == 0 else port
