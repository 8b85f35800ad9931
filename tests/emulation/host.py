"""The CUDA kernels on the host: compiled by g++ with `cuda_host.hpp`, launched with NumPy arrays."""

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

from dasktc.backends.cuda.nvrtc import source

HERE = Path(__file__).parent
ENTRY = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')
SHARED = "DASKTC_TESTS_COMPILED"
"""Names the folder that keeps compiled kernels."""
MONTH = 30 * 24 * 3600
FLAGS = ("-std=c++20", "-O1", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-w")


def compiler():
    """g++ on Linux: the emulation needs its sections and glibc's contexts."""
    return shutil.which("g++") if sys.platform == "linux" else None


def program(text):
    """A kernel file's text as a host program: dynamic shared memory becomes a buffer of the emulation."""
    text = text.replace("extern __shared__ unsigned char memory[];", "unsigned char* memory = host::dynamic_shared;")
    wrappers = [
        f'extern "C" const char* launch_{name}(unsigned grid, unsigned block, size_t shared, int reverse, '
        f"void** values) {{ return host::launch({name}, grid, block, shared, reverse, values); }}\n"
        for name in ENTRY.findall(text)
    ]
    return f'#include "{HERE / "cuda_host.hpp"}"\n{text}\n{"".join(wrappers)}'


@cache
def text_of(kernel, defines):
    """The source of a kernel, read once."""
    return source(kernel, defines)


@cache
def toolchain():
    """What a compiled kernel depends on beside its text."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    return "\n".join([version, *FLAGS, (HERE / "cuda_host.hpp").read_text()])


@cache
def compiled(text):
    """Load a kernel's text as a shared library, compiled once for all processes with the same sources and compiler."""
    name = sha256((toolchain() + text).encode()).hexdigest() + ".so"
    kept = Path(os.environ.get(SHARED, "/nowhere")) / name
    if kept.exists():
        os.utime(kept)
        return ctypes.CDLL(str(kept))
    with tempfile.TemporaryDirectory(prefix="emulation-", dir=os.environ.get(SHARED)) as folder:
        path, library = Path(folder, "kernel.cpp"), Path(folder, name)
        path.write_text(program(text))
        command = [compiler(), *FLAGS, str(path), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return ctypes.CDLL(str(library.rename(kept) if SHARED in os.environ else library))


def passed(*of):
    """The file that says that something passed which depends on this alone; it is kept as compiled kernels are."""
    return Path(os.environ.get(SHARED, "/nowhere")) / (sha256(repr(of).encode()).hexdigest() + ".passed")


def cache_folder():
    """The user's folder of compiled kernels, without those not used for a month; None if it cannot be written."""
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
    """The emulation met what a GPU leaves undefined."""


class HostDevice:
    """A device of few processors, so that a launch has few blocks; `reverse` runs them in descending order."""

    array = np
    processors = 2

    def __init__(self, reverse=False):
        self.reverse = reverse

    def pointer(self, array):
        return array.ctypes.data

    def launch(self, kernel, entry, defines, grid, block, values, shared=0):
        self.launch_text(text_of(kernel, tuple(dict(defines).items())), entry, grid, block, values, shared)

    def launch_text(self, text, entry, grid, block, values, shared=0):
        function = getattr(compiled(text), f"launch_{entry}")
        function.restype = ctypes.c_char_p
        held = [self._value(value) for value in values]
        addresses = (ctypes.c_void_p * len(held))(*(value.ctypes.data for value in held))
        failed = function(grid, block, ctypes.c_size_t(shared), int(self.reverse), addresses)
        if failed:
            raise LaunchError(failed.decode())

    def _value(self, value):
        """What a kernel parameter holds: an array's address, or a number or structure itself."""
        if isinstance(value, np.ndarray) and value.dtype.fields is None:
            return np.array([value.ctypes.data], np.uint64)
        return np.atleast_1d(np.asarray(value))
