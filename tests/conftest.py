"""Fixtures that several test modules share."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulation.host import SHARED
from hypothesis import HealthCheck, settings

settings.register_profile("dasktc", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("dasktc")

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--graphs",
        default=str(HERE.parent.parent / "shared" / "graphs"),
        help="directory of real graphs with a catalog.tsv, for -m catalog",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have what one of pytest-xdist's workers compiles used by the others."""
    if SHARED not in os.environ:
        os.environ[SHARED] = tempfile.mkdtemp(prefix="dasktc-compiled-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(SHARED)))


def pytest_collection_finish() -> None:
    """Spare what collects garbage, in many tests, the modules and tests that stay anyway."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def graphs_dir(request: pytest.FixtureRequest) -> Path:
    folder = Path(request.config.getoption("--graphs"))
    if not (folder / "catalog.tsv").is_file():
        pytest.skip(f"no catalogue of real graphs at {folder}; name one with --graphs=DIR")
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """The small real graphs kept in the repository."""
    return HERE / "data"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two worker processes, shared by the tests that do not harm them."""
    from distributed import LocalCluster

    from dasktc.backends import get_backend

    get_backend("cpu")
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
    ) as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client that is nobody's default: it must be passed on."""
    from distributed import Client

    with Client(cluster, set_as_default=False) as found:
        yield found
