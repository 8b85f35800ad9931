"""The backend of a name: the one of this process, a stand-in that needs none, and why a process cannot use it."""

from __future__ import annotations

import os
from typing import Any, cast

from dasktc.backends.protocol import BACKENDS, ON_DEVICE, Backend
from dasktc.errors import InputError, neutral_text
from dasktc.once import once

__all__ = ["cuda_module", "get_backend", "lazy_backend", "unusable"]


@once
def get_backend(name: str) -> Backend:
    """Import the named backend, once per process.

    A name that no backend has, and a backend that this process cannot use, are refused (InputError).
    """
    if name == "cpu":
        numba = _numba()
        if numba.config.DISABLE_JIT:
            raise InputError("NUMBA_DISABLE_JIT is set: kernels would run as Python, a thousand times slower; unset it")
        from dasktc.backends.cpu import backend as cpu

        return cpu.BACKEND
    if name == "cuda":
        backend: Backend = cuda_module().backend(lazy_backend("cpu"))
        return backend
    raise InputError(f"backend {name!r} is not one of {', '.join(BACKENDS)}; choose one of these")


def _numba() -> Any:
    try:
        import numba
    except Exception as failed:  # it refuses some settings while it is imported
        settings = [f"{name}={value[:40]}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
        advice_text = (
            f"it refuses a setting in the environment ({', '.join(settings)[:150]}); unset or correct it"
            if settings
            else "its installation is damaged, or does not match that of NumPy; install dasktc again"
        )
        why = " ".join(f"{type(failed).__name__}: {failed}".split())[:150]
        raise InputError(f"Numba, which compiles the kernels, cannot be imported ({why}): {advice_text}") from failed
    return numba


@once
def cuda_module() -> Any:
    """Import `dasktc.backends.cuda.backend`, which only this function does.

    Where CuPy is missing or damaged, it raises InputError.
    """
    from dasktc.backends.cuda import backend

    return backend


class _LazyBackend:
    """Proxy of a backend that this process need not be able to use; it forwards attributes to that of `get_backend`."""

    def __init__(self, name: str) -> None:
        self.name, self.on_device = name, name in ON_DEVICE

    def __getattr__(self, part: str) -> Any:
        if part[0] == "_":  # looked up by copying and pickling
            raise AttributeError(part)
        return getattr(get_backend(self.name), part)

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_backend, (self.name,)


@once
def lazy_backend(name: str) -> Backend:
    """The named backend, imported by the process that first asks for more than its name and `on_device`.

    Only its name travels with tasks, so a client can pass on a backend that it cannot use itself.
    """
    return cast(Backend, _LazyBackend(name))


def unusable(name: str) -> str | None:
    """Why this process cannot use a backend; None where it can."""
    try:
        get_backend(name)
    except InputError as error:
        return neutral_text(error)
    return None
