"""When a count is one call, and how its work is shared."""

import pytest

from dasktc.planning.distribution import SourceSize, choose_distribution, stage_seconds
from dasktc.planning.rates import RATES


@pytest.mark.parametrize(
    ("stored", "backend", "ids", "row"),
    [(0, "cpu", "int", 48), (0, "cuda", "int", 24), (9, "cuda", "int", 40), (0, "cuda", "text", 300)],
)
def test_one_call_is_for_graphs_whose_rows_fit_one_worker(stored, backend, ids, row):
    size, rates = SourceSize(1000, stored), RATES[backend]
    fits, short = (choose_distribution(size, 2, memory, rates, backend, ids) for memory in (1000 * row, 1000 * row - 1))
    assert (fits.kind, short.kind) == ("call", "tasks")
    assert "one worker would need about" in short.why


def test_work_is_shared_by_several_workers_or_the_threads_of_one():
    """Workers that share it send and receive, too; one call has all threads of its worker."""
    size, rates = SourceSize(10**6), RATES["cpu"]
    one, two = (stage_seconds(size, workers, rates) for workers in (1, 2))
    assert one["canonical"] + one["orient"] + one["blocks"] == pytest.approx(10**6 / rates.rows)
    assert two["blocks"] == pytest.approx(rates.sharing * one["blocks"] / 2)
    assert two["read"] == pytest.approx(one["read"] / 2)
    alone, threaded = (choose_distribution(size, 8, 10**12, rates, "cpu", threads=threads).call for threads in (1, 4))
    assert threaded - rates.round_trip == pytest.approx(rates.threading * (alone - rates.round_trip) / 4)
