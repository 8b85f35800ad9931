"""Settings of Dask that several runs share."""

import dask

from dasktc.executors.dask import late_workers
from dasktc.executors.process.shared_context import SharedContext


def test_the_settings_of_dask_go_with_the_last_who_needs_them():
    """Whichever of the users ends first."""
    setting = late_workers.TIMEOUT
    before = dask.config.get(setting)
    settings = SharedContext(late_workers._patient)
    with settings:
        settings.__enter__()
        assert dask.config.get(setting) == "1h"
    assert dask.config.get(setting) == "1h"
    settings.__exit__()
    assert dask.config.get(setting) == before
