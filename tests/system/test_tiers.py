"""The default tier contains everything once; tests marked slow are further cases."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from dasktc.io.files import FORMATS
from dasktc.registry import KERNELS, ORDERS, SCHEMES
from tests import conftest
from tests.support.processes import patience

HOLDS = {
    ("planning/test_plan.py", "kernel"): KERNELS["cpu"],
    ("planning/test_plan.py", "reorder"): ORDERS,
    ("planning/test_plan.py", "partition"): SCHEMES,
    ("backends/cuda/test_backend.py", "kernel"): KERNELS["cuda"],
    ("backends/cuda/test_backend.py", "reorder"): ORDERS,
    ("backends/cuda/test_backend.py", "partition"): SCHEMES,
    ("executors/dask/test_executor.py", "count"): ("in_files", "on_workers"),
    ("io/test_files.py", "format"): FORMATS,
}
"""Values that parameters of a module's tests must take: on the CPU, on the emulated device, on workers, from files."""


def test_the_default_tier_holds_everything_once(request: pytest.FixtureRequest):
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    cases = [(item.path.relative_to(conftest.HERE).as_posix(), item.callspec.params) for item in items]
    if request.config.option.keyword or {module for module, _ in HOLDS} - {name for name, _ in cases}:
        pytest.skip("a part of the tests was asked for")
    for (module, parameter), wanted in HOLDS.items():
        given = [params.get(parameter) for name, params in cases if name == module]
        named = [value.get(parameter) if isinstance(value, dict) else value for value in given]
        names = [getattr(name, "__name__", name) for name in named]
        lacking = [name for name in wanted if name not in names]
        assert not lacking, f"{module} has no test of the default tier with {parameter} {', '.join(lacking)}"


@pytest.mark.skipif(os.name != "posix", reason="the lock is of POSIX")
@pytest.mark.parametrize("alone", [True, False])
def test_a_test_that_needs_all_of_a_gpu_waits_for_the_others(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(conftest.tempfile, "gettempdir", lambda: str(tmp_path))
    begun = threading.Event()

    def item(*marks: str) -> SimpleNamespace:
        return SimpleNamespace(get_closest_marker=lambda name: name if name in marks else None)

    def other() -> None:
        with conftest.gpu_shared(item("gpu", *(["whole_gpu"] if alone else []))):
            begun.set()

    beside = threading.Thread(target=other)
    with conftest.gpu_shared(item("gpu")), conftest.gpu_shared(item()):
        beside.start()
        assert begun.wait(0.2 if alone else patience(10)) is not alone
    beside.join(patience(10))
    assert begun.is_set()
