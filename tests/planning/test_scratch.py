"""Scratch memory of kernels, in plans for here and elsewhere."""

import pytest

from dasktc.backends.cpu.sizes import visit_of_values_bytes
from dasktc.backends.cuda import sizes as cuda_sizes
from dasktc.backends.protocol import TaskSize
from dasktc.options import Options, bytes_of
from dasktc.planning.plan import Limits, even_blocks
from dasktc.planning.scratch import plan_count, scratch_of


def test_a_plan_for_gpus_elsewhere_leaves_this_process_its_kernel():
    size, options = (10**8, 10**9), Options(backend="cpu", kernel="hub", reorder="degree")
    for memory, lean in (("60GB", False), ("7GB", True)):
        limits = Limits(1, bytes_of(memory), "whole", splits=64)
        plan, _, kept = plan_count(options, *size, even_blocks(*size), limits, "", automatic=True, planned_for="cuda")
        assert (plan.lean, plan.fits, kept.kernel) == (lean, True, "hub")


@pytest.mark.parametrize(
    ("partition", "edges", "ahead"), [("whole", 10**6, False), ("hash2d", 10**7, True), ("vertical", 10**6, True)]
)
def test_scratch_out_of_core_has_a_block_ahead_or_a_slab_of_the_block_that_is_built(partition, edges, ahead):
    """No block comes ahead of tasks that all have the same one."""
    options, task = (
        Options(backend="cpu", kernel="merge", partition=partition, reorder="degree"),
        TaskSize(10**6, 10**6, 10**6, 1000),
    )
    alone = scratch_of(options, edges, None)(task)
    block = 4 * 10**6 + 8 * 1001
    for memory in (1 << 20, 1 << 40):
        needed = scratch_of(options, edges, memory)(task)
        if ahead:
            assert needed - alone >= block
        else:
            assert needed == max(alone, min(block, memory // 4))


@pytest.mark.parametrize(("edges", "roles"), [(10**6, 1), (10**7, 3)])
def test_scratch_includes_a_visit_of_the_values_that_are_kept(edges, roles):
    """A single block has one array of values, a triple of several three; a block ahead brings its own."""
    options = Options(backend="cpu", kernel="merge", partition="hash2d", reorder="degree")
    task, values = TaskSize(10**6, 10**6, 10**6, 1000, parts=4), 8 * 10**6
    alone, beside = (scratch_of(options, edges, memory, value_bytes=8)(task) for memory in (None, 1 << 20))
    assert alone == roles * values + visit_of_values_bytes(10**6, 1000, 4)
    assert beside - alone == (0 if roles == 1 else values + 4 * 10**6 + 8 * 1001)
    assert scratch_of(options, edges, None, value_bytes=0)(task) < alone


def test_scratch_on_a_device_includes_a_batch_and_a_number_for_each_edge():
    options = Options(backend="cuda", kernel="merge", partition="hash2d", reorder="degree")
    task = TaskSize(10**5, 10**6, 10**6, 1000, splits=10, parts=4)
    beside = visit_of_values_bytes(0, 1000, 4) + cuda_sizes.visit_of_values_bytes(10**5, 8)
    assert scratch_of(options, 10**7, None, value_bytes=8)(task) == 3 * 8 * 10**6 + beside
