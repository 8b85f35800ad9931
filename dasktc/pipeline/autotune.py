"""Automatic choice of the counting kernel and of the vertex order, from the degrees that the orientation computed.

No single method wins everywhere (TRUST, section 6.2; Fox et al., section V): where rows hold a handful of entries,
as in roads and meshes, merging two of them costs less than any table; everywhere else the tables of `hub` win on the
CPU, by up to two orders of magnitude. On a GPU small graphs are counted in one launch, and long rows without hubs by
hashing. Each kernel's rules, and the figures behind them, stand with its entry (`backends.cpu.kernels`,
`backends.cuda.kernels`). `planning.plan` chooses the scheme by memory and workers: the graph as one block where that
fits, since partitioning costs counting time, else `hash2d` with the smallest n that fits.
"""

# Times relative to order `degree` and scheme `whole`, kernel hub; geometric means over 17 graphs on the CPU and 33
# (schemes: 23) on the H200; count: counting alone, whole: from source to number. `dasktc bench choose` prints the rows
# of orders as "Orders over degree", and `ORDER` with its figures.
#                 CPU count  whole   H200 count  whole
#   collective-banded  1.45   1.24         1.79   1.18   on graphs without hubs counts are up to 1.1 times as fast in
#   indegree           1.18   1.07         1.39   1.06   these orders; reordering costs as much as that saves
#   none               1.38   1.11         1.86   1.08
#   edges              0.98   1.00         1.11   1.02
#   hash2d, n = 2      1.96   1.42         5.85   1.53
#   vertical, n = 2    1.72   1.83         5.18   1.83
#   proxy, n = 2       1.32   2.27         2.05   2.14

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dasktc.backends import Backend
from dasktc.backends.csr import on_host
from dasktc.backends.kernel import SMALL_ROW, Facts, Rule
from dasktc.executors.base import Executor
from dasktc.options import Options
from dasktc.pipeline.planes.graph import Oriented
from dasktc.registry import KERNELS, ORDERS, kernel_of

__all__ = ["Facts", "choose", "look", "order_reason", "rules"]

Array = Any
USUAL = 0.99


def order_reason(least: float, most: float) -> str:
    """Say why `degree` is the order of `hub`, with how many times as long its counts take in other orders."""
    return f"rows are cut at v, and counts by hub took {least:.1f} to {most:.1f} times as long in the others on an H200"


# Time in each order over that in order `degree` on an H200, geometric means over the 27 graphs of
# `dasktc bench choose --backend cuda`:
#                  collective  collective-banded  indegree   none
#   hub                  1.41               1.49      1.32   1.79
#   trust                0.99               0.98      0.96   1.02
#   hindex               1.01               1.02      1.00   1.08
#   short                1.10               1.22      1.08   1.03
#   preparation          2.18               2.13      1.49   1.47
ORDER = order_reason(1.3, 1.8)


def look(executor: Executor, graph: Oriented) -> Facts:
    """Collect the degree statistics on which the kernels' `auto` rules decide."""
    if graph.facts is not None:
        counts, processors = graph.facts.lengths, graph.facts.processors
    else:
        histograms = executor.gather(graph.out_degree.map(executor, "plan", _rows, executor.backend))
        counts, processors = np.zeros(max(len(rows) for rows, _ in histograms), dtype="int64"), histograms[0][1]
        for rows, _ in histograms:
            counts[: len(rows)] += rows
    size, cumulative_counts = graph.out_degree.size, counts.cumsum()
    usual_row, max_row = int((cumulative_counts < USUAL * size).sum()), int(np.flatnonzero(counts)[-1]) if size else 0
    small_rows, trivial_rows = int(cumulative_counts[SMALL_ROW]), int(cumulative_counts[1])
    narrow_rows, wide_rows = small_rows - trivial_rows, size - small_rows
    return Facts(usual_row, max_row, size, graph.edges, graph.wedges, narrow_rows, wide_rows, processors)


def _rows(out_degree: Array, first: int, backend: Backend) -> tuple[Array, int]:
    """Histogram of row lengths, on the host, and the device's number of processors."""
    bins = 1 + max(SMALL_ROW, int(out_degree.max()) if len(out_degree) else 0)
    return on_host(backend.vertices.lengths(out_degree, bins)).astype("int64", copy=False), backend.processors()


def choose(
    options: Options, facts: Facts | None, cut: Callable[[Options], bool] = lambda _: False
) -> tuple[Options, str]:
    """Choose kernel and vertex order where they are "auto", and give the reasons.

    Parameters
    ----------
    options : Options
        With the backend chosen.
    facts : Facts or None
        None where only the graph's size is known.
    cut : callable (options) -> bool
        Whether a count with this kernel and order is planned in several blocks or splits. It is asked only for kernels
        with an order of their own for that.

    Returns
    -------
    options : Options
        Kernel and order are no longer "auto"; the scheme may still be.
    reason : str
    """
    backend, (kernel, reason) = options.chosen_backend, (options.kernel, f"kernel {options.kernel} as asked")
    if kernel == "auto":
        kernel, reason = _kernel(backend, facts)
    order, order_text = _order(options, cut)
    details = KERNELS[backend][kernel].details if kernel in KERNELS[backend] else None
    reasons = [reason, *([details(facts)] if details else [])]
    return replace(options, kernel=kernel, reorder=order), "; ".join([*reasons, f"order {order}{order_text}"])


def _order(options: Options, cut: Callable[[Options], bool]) -> tuple[str, str]:
    """The order that was asked for, else that of the kernel that was asked for, with the reason."""
    if options.reorder != "auto":
        return options.reorder, " as asked"
    default_order = next(iter(ORDERS))
    if options.kernel == "auto":
        return default_order, f": {ORDER}"
    entry, reason = kernel_of(options.kernel), f": kernel {options.kernel}'s own"
    if entry.cut_order and cut(replace(options, reorder=entry.order)):
        return entry.cut_order, f"{reason} where rows or blocks are cut"
    return entry.order, f": {ORDER}" if entry.order == default_order else reason


def rules(backend: str) -> list[tuple[str, Rule]]:
    """The `auto` rules of a backend's kernels as (kernel, rule), ascending by rank; the first that fits decides."""
    pairs = [(name, rule) for name, kernel in KERNELS[backend].items() for rule in kernel.auto]
    return sorted(pairs, key=lambda pair: pair[1].rank)


def _kernel(backend: str, facts: Facts | None) -> tuple[str, str]:
    if facts is None:
        name = next(iter(KERNELS[backend]))
        return name, f"kernel {name}: a size tells nothing of the rows"
    name, rule = next(pair for pair in rules(backend) if pair[1].fits(facts))
    return name, f"kernel {name}: {rule.why.format(**facts._asdict())}"
