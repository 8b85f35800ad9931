"""Runs the CUDA kernels on the host: compiled by g++ with `cuda_host.hpp`, launched with NumPy arrays."""

import atexit
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from dasktc.backends.cuda import launch
from dasktc.backends.cuda.nvrtc import source

HERE = Path(__file__).parent
ENTRY = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')
SHARED = "DASKTC_TESTS_COMPILED"
"""Environment variable that names the folder of compiled kernels."""
MONTH = 30 * 24 * 3600
FLAGS = ("-std=c++20", "-Og", "-fPIC", "-U_FORTIFY_SOURCE", "-w")
WATCHED = (
    "-g1", "-DDETECT_RACES", "-fsanitize=thread", "-fno-gnu-unique", "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
)  # fmt: skip
"""Flags for a kernel whose races are detected: calls into `races.cpp` before each load and store."""
STATIC = re.compile(r"^( *__shared__ [^;=()]*?\b(\w+)(?:\[[^;]*\])?;)", re.MULTILINE)
"""Matches a variable in shared memory, and its name."""
ALL_RACES = os.environ.get("DASKTC_TESTS_RACES", "0") != "0"
KINDS = ("reads", "writes", "changes by an atomic function, or as RACY_WRITE says,", "reads, as RACY_READ says,")


def compiler():
    """Path of g++ on Linux, whose sections and glibc contexts the emulation needs; else None."""
    return shutil.which("g++") if sys.platform == "linux" else None


needs_compiler = pytest.mark.skipif(compiler() is None, reason="no g++ on Linux, which runs the kernels on the host")


def program(text):
    """Turn a kernel file's text into a host program: dynamic shared memory becomes a buffer of the emulation."""
    text = text.replace("extern __shared__ unsigned char memory[];", "unsigned char* memory = host::dynamic_shared;")
    text = STATIC.sub(r"\1 IF_RACES(host::escapes(&\2);)", text)  # else a scalar's accesses are not instrumented
    wrappers = [
        f'extern "C" const char* launch_{name}(unsigned grid, unsigned block, size_t shared, int reverse, '
        f"void** values) {{ return host::launch({name}, grid, block, shared, reverse, values); }}\n"
        for name in ENTRY.findall(text)
    ]
    return f'#include "{HERE / "cuda_host.hpp"}"\n{text}\n{"".join(wrappers)}'


@cache
def text_of(kernel, defines):
    """The source text of a kernel, read once."""
    return source(kernel, defines)


@cache
def toolchain():
    """Everything beside its text that a compiled kernel depends on."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    ours = [(HERE / name).read_text() for name in ("cuda_host.hpp", "races.hpp", "races.cpp")]
    return "\n".join([version, *FLAGS, *WATCHED, *ours])


@cache
def common(races):
    """Flags with which g++ reads the emulation's header compiled, in half of the time, and what is linked to a kernel.

    Where nothing is cached, both are read as they are.
    """
    watched = WATCHED * races
    if SHARED not in os.environ:
        return watched, [str(HERE / "races.cpp")] * races
    name = f"header-{sha256((toolchain() + str(races) * races).encode()).hexdigest()}"
    kept = Path(os.environ[SHARED]) / name
    if not kept.exists():
        folder = Path(tempfile.mkdtemp(prefix="header-", dir=os.environ[SHARED]))
        (folder / "host.hpp").write_text(program(""))
        gch = ("-x", "c++-header", str(folder / "host.hpp"), "-o", str(folder / "host.hpp.gch"))
        _run(compiler(), *FLAGS, *watched, *gch)
        if races:
            _run(compiler(), *FLAGS, "-c", str(HERE / "races.cpp"), "-o", str(folder / "races.o"))
        try:
            folder.rename(kept)
        except OSError:  # another process was first
            shutil.rmtree(folder)
    os.utime(kept)
    return (*watched, "-include", str(kept / "host.hpp")), [str(kept / "races.o")] * races


@cache
def compiled(text, races=False):
    """Load a kernel's text as a shared library, compiled once for all processes with the same sources and compiler."""
    name = sha256((toolchain() + str(races) * races + text).encode()).hexdigest() + ".so"
    kept = Path(os.environ.get(SHARED, "/nowhere")) / name
    if kept.exists():
        os.utime(kept)
        return ctypes.CDLL(str(kept))
    folder = tempfile.mkdtemp(prefix="emulation-", dir=os.environ.get(SHARED))
    try:
        path, library = Path(folder, "kernel.cpp"), Path(folder, name)
        path.write_text(program(text))
        flags, linked = common(races)
        built = str(path.with_suffix(".o"))
        _run(compiler(), *FLAGS, *flags, "-c", str(path), "-o", built)
        _run(compiler(), *FLAGS, "-shared", built, *linked, "-o", str(library))
        if SHARED in os.environ:
            library = library.rename(kept)
        loaded = ctypes.CDLL(str(library))
    finally:
        if SHARED in os.environ or not races:
            shutil.rmtree(folder)
        else:
            atexit.register(shutil.rmtree, folder)  # a report asks the file for its lines
    return loaded


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def passed(*of):
    """Path of a file that records that a check of exactly these inputs passed; it is kept like compiled kernels."""
    return Path(os.environ.get(SHARED, "/nowhere")) / (sha256(repr(of).encode()).hexdigest() + ".passed")


def cache_folder():
    """The user's folder of compiled kernels, without those unused for a month; None if it is not writable."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dasktc-tests", "kernels")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.stat().st_mtime < time.time() - MONTH:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


class LaunchError(RuntimeError):
    """The emulation found behaviour that is undefined on a GPU."""


class RaceError(LaunchError):
    """Two threads access a word without synchronisation, and at least one of them writes."""


class HostDevice:
    """A device of few processors, on which a launch has few blocks.

    With `reverse` blocks run in descending order; with `races` kernels are compiled so that races are detected, which
    DASKTC_TESTS_RACES=1 in the environment does for all devices.
    """

    array = np
    processors = 2

    def __init__(self, reverse=False, races=ALL_RACES):
        self.reverse = reverse
        self.races = races

    def pointer(self, array):
        return array.ctypes.data

    def later(self, numbers):
        return numbers.tolist

    def launch(self, kernel, entry, defines, grid, block, values, shared=0):
        self.launch_text(text_of(kernel, tuple(dict(defines).items())), entry, grid, block, values, shared)

    def launch_text(self, text, entry, grid, block, values, shared=0):
        library = compiled(text, self.races)
        function = getattr(library, f"launch_{entry}")
        function.restype = ctypes.c_char_p
        held = [self._value(value) for value in values]
        addresses = (ctypes.c_void_p * len(held))(*(value.ctypes.data for value in held))
        failed = function(grid, block, ctypes.c_size_t(shared), int(self.reverse), addresses)
        if failed and failed.startswith(b"race "):
            raise RaceError(f"{entry}: {_told(failed.decode(), library, text, values)}")
        if failed:
            raise LaunchError(failed.decode())

    def _value(self, value):
        """Convert a kernel argument: an array to its address; numbers and structures stay as they are."""
        if isinstance(value, np.ndarray) and value.dtype.kind != "V":
            return np.array([value.ctypes.data], np.uint64)
        return np.atleast_1d(np.asarray(value))


def _told(report, library, text, values):
    """Describe a race in words: the word, the source lines, the threads."""
    shared, address, size, *sides = (int(x, 16 if k in (1, 6, 10) else 10) for k, x in enumerate(report.split()[1:]))
    where = _word(address, size, values) if not shared else f"{size} bytes of shared memory"
    now, before = (_side(library, text, *sides[k : k + 4]) for k in (0, 4))
    return f"race on {where}:\n  {now}\n  {before}, and nothing orders the two"


def _word(address, size, values):
    for number, value in enumerate(values):
        if isinstance(value, np.ndarray) and 0 <= address - value.ctypes.data < value.nbytes:
            return f"element {(address - value.ctypes.data) // value.itemsize} of the array that is parameter {number}"
    return f"{size} bytes of global memory at {address:#x}"


def _side(library, text, block, thread, kind, code):
    lines = text.split("\n")
    shown = _run("addr2line", "-i", "-e", library._name, hex(code - 1)).split("\n")
    numbers = [int(found[1]) - 1 for found in map(re.compile(r"kernel\.cpp:(\d+)").search, shown) if found]
    at = " in ".join(f"`{lines[n - 1].strip()}`" for n in numbers if 0 < n <= len(lines)) or "a line that is not known"
    return f"block {block}, thread {thread} {KINDS[kind]} in {at}"


def count_on(device, task, kernel, macros=None):
    """Triangles, wedges, probes and the longest bucket of a task, by a kernel of the registry on a device."""
    ready = launch.ready(device, task, kernel, macros)
    launch.start(ready, kernel)
    return launch.counts(ready)
