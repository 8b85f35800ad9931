"""The default tier holds everything once; what is marked slow is more of it."""

from __future__ import annotations

import pytest

from dasktc.io.files import FORMATS
from dasktc.registry import KERNELS, ORDERS, SCHEMES

HOLDS = {
    ("test_plan.py", "kernel"): KERNELS["cpu"],
    ("test_plan.py", "reorder"): ORDERS,
    ("test_plan.py", "partition"): SCHEMES,
    ("test_cuda_pipeline.py", "kernel"): KERNELS["cuda"],
    ("test_cuda_pipeline.py", "reorder"): ORDERS,
    ("test_cuda_pipeline.py", "partition"): SCHEMES,
    ("test_cluster.py", "count"): ("in_files", "on_workers"),
    ("test_files.py", "format"): FORMATS,
}
"""What parameters of a module's tests have as values: on the CPU, on the emulated device, on workers, from files."""


def test_the_default_tier_holds_everything_once(request: pytest.FixtureRequest):
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    if request.config.option.keyword or {module for module, _ in HOLDS} - {item.path.name for item in items}:
        pytest.skip("a part of the tests was asked for")
    for (module, parameter), wanted in HOLDS.items():
        given = [item.callspec.params.get(parameter) for item in items if item.path.name == module]
        named = [value.get(parameter) if isinstance(value, dict) else value for value in given]
        names = [getattr(name, "__name__", name) for name in named]
        lacking = [name for name in wanted if name not in names]
        assert not lacking, f"{module} has no test of the default tier with {parameter} {', '.join(lacking)}"
