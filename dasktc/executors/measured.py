"""`Measured`: a large result with small facts about it; the client gets the facts, the result stays on its worker.

The numbers that a plan needs of a stage (rows, spans, samples) would otherwise take a task for each result, or the
result would come to the client. Arrays inside go from device to device, as they do alone.
"""

from __future__ import annotations

import copyreg
import sys
from typing import Any

from dasktc.backends import get_backend
from dasktc.once import once

__all__ = ["Measured", "value_of"]


class _Registering(type):
    """Metaclass of classes that register with Dask's serialization, whichever of the two modules is imported first."""


def _by_name(kind: type) -> tuple[Any, ...]:
    return _registered, (kind.__name__,)


def _registered(name: str) -> Any:
    register()
    return globals()[name]


copyreg.pickle(_Registering, _by_name)  # a worker that receives an instance first looks up its class


class Measured(metaclass=_Registering):
    """A large value that stays on its worker, and small facts about it."""

    def __init__(self, value: Any, facts: Any) -> None:
        self.value, self.facts = value, facts
        if "distributed" in sys.modules:
            register()

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof  # Dask's measure, which is used on workers

        return int(sizeof(self.value))


def value_of(arg: Any) -> Any:
    """Unwrap a `Measured` argument, also inside lists."""
    if isinstance(arg, Measured):
        return arg.value
    return [value_of(item) for item in arg] if type(arg) is list else arg


@once
def register() -> None:
    """Register `Measured` with Dask, once per process, so that what it holds is sent and measured as it is alone.

    A spawned worker first imports the user's script, which may import this module before Dask.
    """
    from dask.sizeof import sizeof
    from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
    from distributed.protocol.serialize import register_generic

    register_generic(Measured)
    register_generic(Measured, "cuda", cuda_serialize, cuda_deserialize)
    sizeof.register_lazy("cudf", _measure_frames)


def _measure_frames() -> None:
    """Register the bytes of cuDF frames with Dask, as dask-cudf does: else each would count as a small object."""
    from dask.sizeof import sizeof

    sizeof.register(get_backend("cuda").frame.DataFrame, _bytes_of)


def _bytes_of(frame: Any) -> int:
    return sum(int(frame[name].memory_usage(index=False)) for name in frame)
