# ruff: noqa: E501
"""Mutants: small changes of the code, each of which some test must notice.

`python -m tests.support.mutants --jobs 2` makes each mutant in a copy of the tree, runs the tests that are named for it, and
reports which were killed and which survived; arguments select mutants by name or part of a name. Only mutants that
state why they change nothing may survive. A mutant is found by its function and its text, so that it needs no change if
a function moves to another module. If the text is rewritten, the mutant must be updated: `system/test_mutants.py` fails
where a text does not occur exactly once.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("dasktc", "kernels", "tests", "pyproject.toml")
SECONDS = 600
"""Longest run of a mutant's tests, in seconds; tests that take longer hang, which counts as noticed."""


class Mutant(NamedTuple):
    """A text in a function, its replacement, and the tests that notice it: files, and an expression for pytest's -k."""

    name: str
    function: str
    """Name of the function, class or module, with as much before it as tells it from others; or a file of `kernels/`."""
    text: str
    by: str
    tests: str
    chosen: str = ""
    equivalent: str = ""
    """Why the mutant changes nothing, if it does not."""


def _race(file: str, text: str, by: str, of: str = "", equivalent: str = "") -> Mutant:
    """Make a mutant of a kernel file, for the race detector; `of` is the kernel whose work runs the file."""
    of = of or Path(file).stem
    number = sum(mutant.name.startswith(f"race-{file}") for mutant in RACES)
    name, tests = f"race-{file}-{number + 1}", "backends/cuda/test_races.py"
    RACES.append(Mutant(name, f"kernels/{file}", text, by, tests, f"have_no_races and {of}", equivalent))
    return RACES[-1]


def without(text: str, part: str) -> tuple[str, str]:
    """A text, and the same text without a part that occurs once in it."""
    assert text.count(part) == 1, (text, part)
    return text, text.replace(part, "")


SYNC = "__syncthreads();"
RACES: list[Mutant] = []
# None drops a barrier at the end of keys_scatter's tile, as an earlier list did: there is none, for between the places of
# a tile and those of the next one stand the two barriers that the third and the second mutant drop.
_race("edges.cu", *without("uint64(ranges.counts[r])); }\n    }\n    __syncthreads();", SYNC))
_race("edges.cu", *without("range[i], 1u); }\n    }\n    __syncthreads();", SYNC))
_race("edges.cu", *without("    ranges.clear(borders + 1);\n    __syncthreads();\n#pragma", SYNC))
_race("edges.cu", *without("    ranges.clear(borders + 1);\n    __syncthreads();\n  }", SYNC))
_race("edges.cu", *without("void add_to(uint64* all, uint32 borders) {\n    __syncthreads();", SYNC))
_race("edges.cu", *without("  ranges.clear(borders + 1);\n  __syncthreads();\n  for (int64 k = first_of()", SYNC))
_race("edges.cu", *without("{ own[r] = 0; }\n  __syncthreads();", SYNC))
_race("edges.cu", "atomicOr(word, bit);", "*word |= bit;")
_race("edges.cu", "{ atomicAdd(counts + x, run); }", "{ counts[x] += run; }")
_race(
    "edges.cu", "{ atomicAdd(counts + dense_of(table, b - low), 1u); }", "{ counts[dense_of(table, b - low)] += 1u; }"
)
_race("edges.cu", "atomicAdd(degrees + vertices[high], 0u - run);", "degrees[vertices[high]] -= run;")
_race("edges.cu", "{ atomicAdd(own + x, 1u); }", "{ own[x] += 1u; }")
_race("edges.cu", "{ atomicAdd(counts + id + k, own[k]); }", "{ counts[id + k] += own[k]; }")
_race("edges.cu", *without("{ own[k] = 0; }\n    __syncthreads();", SYNC))
_race("edges.cu", *without("{ own[d] = 0; }\n  __syncthreads();", SYNC))
_race("edges.cu", *without("= mine[i]; }\n    }\n    __syncthreads();", SYNC))
_race("edges.cu", *without("mine[i] >> shift), 1u); }\n    }\n    __syncthreads();", SYNC))
_race("edges.cu", "place[i] = atomicAdd(ranges.counts + range[i], 1u);", "place[i] = ranges.counts[range[i]]++;")
_race("edges.cu", "    atomicMax(facts, unsigned_of(low));\n", "    facts[0] = max(facts[0], unsigned_of(low));\n")
_race("vertices.cu", "atomicAdd(usual + value, 1u);", "usual[value] += 1u;")
_race("vertices.cu", "atomicAdd(counts + value, uint64(1));", "counts[value] += 1;")
_race("vertices.cu", *without("{ usual[k] = 0; }\n  __syncthreads();", SYNC))
_race("trust.cu", *without("    uint32 next = shared.row;\n    __syncthreads();", SYNC))
_race("trust.cu", *without("shared.row = atomicAdd(&lists->block_next, chunk); }\n    __syncthreads();", SYNC))
_race("trust.cu", *without("(lists.ends[rank] - size);\n  Team<WIDE>::sync();", "Team<WIDE>::sync();"))
_race("trust.cu", "    if (all == 0) { Team<WIDE>::sync(); }", "")
_race("tcstream.cu", *without("  __syncwarp();\n  for (uint32 i = threadIdx.x % 32; i < NODES", "__syncwarp();"))
_race("tcstream.cu", *without("lists.many_size >> TOP]; }\n  __syncwarp();", "__syncwarp();"))
_race("hash.cuh", *without("    T::sync();\n    clear();", "T::sync();"), "hindex")
_race("hash.cuh", *without("    clear();\n    T::sync();", "T::sync();"), "hindex")
_race("hash.cuh", "(level = atomicAdd(fill + bucket, 1u))", "(level = fill[bucket]++)", "hindex")
_race("lrb.cuh", *without("{ mine[k] = 0; }\n  __syncthreads();", SYNC), "merge")
_race("lrb.cuh", "atomicAdd(mine + bin, 1u);", "mine[bin]++;", "merge")
_race("csr.cuh", *without("sums[warp] = ends; }\n    __syncthreads();", SYNC), "merge")
_race("csr.cuh", *without("{ counts[k] = start; }\n    __syncthreads();", SYNC), "merge")
_race("sort.cu", *without("count = ranks[warp][digit];\n    __syncwarp();", "__syncwarp();"))
_race("sort.cu", *without("count + __popc(peers); }\n    __syncwarp();", "__syncwarp();"))
_race("peel.cu", "next[atomicAdd(next_size, 1u)] = x;", "next[(*next_size)++] = x;")
_race("peel.cu", "int64 before = atomicAdd(left + x, -1);", "int64 before = left[x]--;")
_race("bitmatrix.cu", "      atomicAdd(degrees + x, 1u);\n", "      degrees[x] += 1u;\n")

KERNELS = "backends/cuda/test_kernels.py"
EXACT = "test_counts_are_exact and not device"
MUTANTS = [
    *RACES,
    # from edges to blocks
    Mutant("rows-read", "without_loops", "return frame, Counts(rows, loops, Span", "return frame, Counts(rows + 1, loops, Span", "pipeline/stages/test_read.py", "rows_read"),
    Mutant("splitter-lost", "Plane.keys_and_starts", 'starts = splitters(executor, "canonical", inputs.handles, rows, count)', 'starts = splitters(executor, "canonical", inputs.handles, rows, count)[1:]', "pipeline/planes/test_base.py", "equally_large"),
    Mutant("partitions-budget", "Plane.partitions", "if edges < min(limit, largest):", "if edges <= limit:", "pipeline/planes/test_base.py", "few_edges"),
    Mutant("loops-kept", "CpuEdges.proper", "return (kept_src[:-1], kept_dst[:-1]), loops, low, high", "return (src, dst), loops, low, high", "pipeline/stages/test_read.py", "rows_read"),
    Mutant("cut-chunks", "split", "back -= len(chunk) - (front - old_front)", "back -= len(chunk)", "pipeline/stages/test_edge_keys.py", "keys_are_cut"),
    Mutant("cut-border", "_part", "np.int64(key < border)", "np.int64(key <= border)", "pipeline/stages/test_edge_keys.py", "keys_are_cut"),
    Mutant("rows-go-on", "cpu.radix.Buckets.rows", "columns, edge, row, offsets", "columns, edge, 0, offsets", "backends/cpu/test_radix.py", "batch_by_batch"),
    Mutant("distinct-kept", "cpu.radix.Buckets.distinct", "            size += count\n", "            size += len(batch)\n", "pipeline/stages/test_edge_keys.py", "several_arrays"),
    Mutant("lately-renewed", "FaultPolicy.threads", "        self._latest = time.monotonic(), threads\n", "", "pipeline/planes/test_workers.py", "asks_seldom"),
    Mutant("order-overflow", "order_by_keys", "if (top + 1) << bits > 2**63 - 1:", "if (top + 1) << bits > 2**66 - 1:", "pipeline/stages/test_orient.py", "order_by_is_a_stable"),
    Mutant("order-ties", "order_by_keys", "    keys *= -1\n    keys += top\n", "", "pipeline/stages/test_orient.py", "order_by_is_a_stable"),
    Mutant("share-begins", "Axis.share", "return vector[(part - first) % self.parts :: self.parts]", "return vector[part % self.parts :: self.parts]", "planning/test_grid.py", "share"),
    Mutant("slabs-spread", "Plane.blocks", "where.get(place) if len(places) >= self.threads else None", "where.get(place)", "pipeline/planes/test_base.py", "slabs"),
    Mutant("ranks-memory", "workers._is_short", " or sums**2 * size > rows", "", "pipeline/planes/test_workers.py", "rank_for_themselves"),
    Mutant("slabs-unequal", "equal_ranges", "sums[-1] * number / count for", "sums[-1] * number / (count + 1) for", "pipeline/stages/test_orient.py", "about_equally"),
    Mutant("urgent", "CallQueue._send", "int(item.urgent)", "0", "pipeline/planes/test_workers.py", "sent_once"),
    Mutant("graph-held", "CallQueue._send", "        waiting.clear()\n", "", "executors/dask/test_call_queue.py", "scheduler"),
    Mutant("graph-large", "CallQueue.add", "self._bytes += call_bytes", "pass", "executors/dask/test_call_queue.py", "large_arguments"),
    Mutant("plan-first", "WorkersPlane.orient", ", calls, urgent=True", ", calls", "pipeline/planes/test_workers.py", "sent_once"),
    Mutant("pieces-first", "WorkersPlane._reduce", "prefer=holders[k], urgent=True)", "prefer=holders[k])", "pipeline/planes/test_workers.py", "sent_once"),
    Mutant("budget-rows", "BudgetPlane._ranked", "border >> shift << shift for", "border for", "executors/test_memory_budget.py", "any_multigraph"),
    Mutant("slabs-weights", "equal_ranges", "[weight / max(1, size) for", "[1 / max(1, size) for", "pipeline/stages/test_shuffle.py", "weighted_quantiles"),
    Mutant("range-number", "distinct_of_range", "[number : number + 2]", "[number - 1 : number + 1]", "pipeline/stages/test_canonical.py", "ranges_of_rows"),
    Mutant("heap-kept", "one_call", "            heap.call_ended(on_worker)\n", "", "backends/test_heap.py", "goes_back"),
    Mutant("heap-between-steps", "ProcessPlane._trim", "            trim_between_steps()\n", "            pass\n", "backends/test_heap.py", "what_a_step_freed"),
    Mutant("heap-after-reading", "workers._read", "        trim_arrow()", "        pass", "backends/test_heap.py", "what_a_step_freed"),
    Mutant("heap-budget", "_rest", "    _malloc.rest()\n", "", "backends/test_heap.py", "until_calls_have_ended"),
    Mutant("heap-begins", "one_call", "        heap.call_begins(on_worker)\n", "        pass\n", "backends/test_heap.py", "from_the_first_call"),
    Mutant("heap-inherited", "_keeping_memory", "            yield\n    finally:\n        _forget_keeping()\n", "            yield\n    finally:\n        pass\n", "backends/test_heap.py", "workers_keep"),
    Mutant("block-size", "OrientedCSR.__sizeof__", "return object.__sizeof__(self) + self.nbytes", "return object.__sizeof__(self)", "counting/test_count.py", "blocks_know_their_size"),
    Mutant("shard-bands", "_by_collective_degree", "    refuse_beyond(bands, bits)\n", "", "pipeline/planes/test_sharded.py", "bands_of_more_vertices"),
    Mutant("shard-numbers", "number_values", 'numbers = ops.find(values, among).astype("int32")', 'numbers = ops.find(values, among).astype("int16").astype("int32")', "system/test_past_32_bits.py", "numbers_of_a_shard"),
    Mutant("own-pages", "value_files", "OWN_PAGES = 1 << 16", "OWN_PAGES = 1 << 20", "executors/stores/test_value_files.py", "memory_of_values"),
    Mutant("shard-samples", "distinct", "SAMPLES, MARGIN = 256, 1.1", "SAMPLES, MARGIN = 2, 1.1", "pipeline/planes/test_sharded.py", "about_equal"),
    Mutant("shard-first", "number_values", "    numbers += first\n", "", "pipeline/stages/test_shards.py", "united_and_numbered"),
    Mutant("remainders", "BudgetPlane.measure", "or not parts or orient.RESIDUES % parts:", "or not parts or orient.RESIDUES < parts:", "executors/stores/device/test_store.py", "dealt_to_ranges"),
    Mutant("wedges-passes", "wedges_of", "    for start in range(0, len(inward), chunk):", "    for start in range(0, max(1, len(inward) - 1), chunk):", "system/test_past_32_bits.py", "several_passes"),
    # planning
    Mutant("parts-as-vertices", "_candidates", "last = min(limits.most_parts, max(first, bound))", "last = min(limits.most_parts, max(first, bound - 1))", "planning/test_plan.py", "as_many_parts"),
    Mutant("triple-bytes", "triple_bytes", "((stream != index) & (stream != table))", "(stream != table)", "planning/test_memory_model.py", "block_that_a_task_has_twice"),
    Mutant("triple-bytes-table", "triple_bytes", "nbytes = block_bytes[index] + block_bytes[table] * (table != index)", "nbytes = block_bytes[index] + block_bytes[table]", "planning/test_memory_model.py", "block_that_a_task_has_twice"),
    Mutant("replica-lru", "ReplicaCache.take", "            self._held.pop(block, None)\n            self._held[block] = None", "            self._held.setdefault(block, None)", "planning/test_placement.py", "used_longest_ago"),
    Mutant("takes-over", "Shares.take", "source = queue or max(self._left.values(), key=len)", "source = queue or max(reversed(self._left.values()), key=bool)", "planning/test_placement.py", "most_left"),
    Mutant("takes-over-end", "Shares.take", "return source.popleft() if queue else source.pop()", "return source.popleft()", "planning/test_placement.py", "most_left"),
    Mutant("parts-bound", "_too_many", "parts > scheme.bound[0]", "parts >= scheme.bound[0]", "pipeline/test_lstc_partition.py", "bits_are"),
    Mutant("partition-of-plan", "make_plan", "            plan, partition = lean_plan\n", "            plan, _ = lean_plan\n", "planning/test_plan.py", "partition_that_is_built"),
    Mutant("lean-asked", "plan_count", "if automatic and lean_name is not None:", "if lean_name is not None:", "backends/cuda/test_edges.py", "five_billion"),
    Mutant("lean-elsewhere", "plan_count", "if backend == options.chosen_backend:", "if True:", "planning/test_scratch.py", "elsewhere"),
    Mutant("call-text", "too_large_for_a_call", ' or backend == "cpu" or ids == "text"', ' or backend == "cpu"', "planning/test_distribution.py", "one_call"),
    Mutant("replica-used", "ReplicaCache.fits", "not in self._built} | self._used.keys()", "not in self._built}", "planning/test_placement.py", "copies_in_use"),
    Mutant("loose-bits", "Layout.loose_bits", "<< bits < 1 << 63 else 0", "<< bits < 1 << 66 else 0", "system/test_past_32_bits.py", "fit_63"),
    Mutant("scratch-slab", "scratch_of.beside_blocks", "min(block, (memory_per_call or 0) // 4))", "0)", "planning/test_scratch.py", "scratch_out_of_core"),
    Mutant("sharing-alone", "stage_seconds", "sharing = rates.sharing if workers > 1 else 1.0", "sharing = rates.sharing", "planning/test_distribution.py", "work_is_shared"),
    Mutant("call-threads", "choose_distribution", "pipeline_seconds(size, 1, rates, threads), ", "pipeline_seconds(size, 1, rates), ", "planning/test_distribution.py", "work_is_shared"),
    Mutant("replica-there", "ReplicaCache.__init__", "self.held = sum(block_bytes[block] for block in self._held)", "self.held = 0", "planning/test_placement.py", "at_the_start"),
    Mutant("splits-seconds", "_splits", "ceil(work / TASK_SECONDS / count)", "ceil(work / TASK_SECONDS)", "planning/test_plan.py", "longer_than_the_longest"),
    Mutant("splits-taken", "_taken", "limits.splits > plan.splits:", "limits.splits >= plan.splits:", "planning/test_plan.py", "did_not_fulfil"),
    Mutant("words", "in_words", "1.95 * entry[1]", "1.0 * entry[1]", "planning/test_cost_model.py", "durations"),
    Mutant("work-empty", "work_of_triples", "edges[stream] / np.maximum(1, rows[stream])", "edges[stream] / rows[stream]", "planning/test_cost_model.py", "empty_blocks"),
    Mutant("overhead-none", "Rates.changed", 'above=name != "overhead")', "above=True)", "planning/test_rates.py", "overhead_may_be"),
    Mutant("heavy-rows", "Scheme.shares", "np.minimum(np.ceil(work[mask] / max(mean, 1)), rows[index[mask]])", "np.ceil(work[mask] / max(mean, 1))", "planning/test_schemes.py", "heavy_triple"),
    Mutant("auto-vectors", "considered", "(pair[1].dealing.unknown or pair[1].dealing.whole_vectors)", "pair[1].dealing.unknown", "planning/test_schemes.py", "keeps_whole_vectors"),
    Mutant("even-rows", "Scheme.even", "        block_sizes[:, 1:] = np.maximum(block_sizes[:, 1:], 1)\n", "", "planning/test_schemes.py", "lower_bound"),
    # executors
    Mutant("keepers", "WindowedSubmitter._replicas", "key=lambda key: -sizes[key]", "key=lambda key: sizes[key]", "executors/dask/test_flow_control.py", "keep_blocks_of_about"),
    Mutant("copies-threads", "BlockReplicas.copies", "capacity = threads * self.capacity -", "capacity = self.capacity -", "executors/dask/test_flow_control.py", "memory_of_all_threads"),
    Mutant("deaths-once", "FaultPolicy.resubmit", "for error in {future.exception().task: future.exception() for future in killed_futures}.values():", "for error in [future.exception() for future in killed_futures]:", "executors/dask/test_faults.py", "death_counts_once"),
    Mutant("deaths-retries", "FaultPolicy.resubmit", "if self._deaths[error.task] > self.retries:", "if self._deaths[error.task] > self.retries + 1:", "executors/dask/test_faults.py", "death_counts_once"),
    Mutant("stranded", "look.free", '        dask_scheduler.transitions({task.key: "processing" for task in tasks}, f"free-stranded-{token}")\n', "", "executors/dask/test_executor.py", "preferred_worker_went"),
    Mutant("stranded-others", "look.free", "task.loose_restrictions and is_own(task.key) and", "task.loose_restrictions and", "executors/dask/test_executor.py", "preferred_worker_went"),
    Mutant("folder-renamed", "_remove", "    with suppress(OSError):\n        os.rename(folder, new_name)\n", "", "executors/stores/test_value_files.py", "no_place_to_write"),
    Mutant("claim-interrupted", "_release", "        _remove(folder, *lock)\n        raise", "        raise", "executors/stores/test_value_files.py", "signal_at_any_moment"),
    Mutant("host-alone", "DeviceStore._on_device", "if handle.places is None and handle.nbytes]", "if handle.places is None]", "executors/stores/device/test_store.py", "host_alone"),
    Mutant("spill-half", "store", "            file.close()\n        _unlink(path)\n", "            file.close()\n", "executors/stores/test_value_files.py", "full_disk"),
    Mutant("spill-owner", "Stored.owned", "        weakref.finalize(self, _unlink, self.path).atexit = False\n", "", "executors/stores/test_value_files.py", "goes_with_its_owner"),
    Mutant("spill-short", "_view", "        if not count:\n            raise EOFError(", "        if not count:\n            break\n            raise EOFError(", "executors/stores/test_value_files.py", "cut_short"),
    Mutant("spill-limit", "FileStore.hold", "if self._resident() + nbytes > self._limit:", "if self._resident() > self._limit:", "executors/stores/test_file_store.py", "what_does_not_fit"),
    Mutant("spill-largest", "FileStore.set_task_memory", "key=lambda result: -result.nbytes", "key=lambda result: result.nbytes", "executors/stores/test_file_store.py", "largest_results_go"),
    Mutant("arrow-kept", "FileStore.keep", "with _MALLOC:", "if True:", "executors/stores/test_file_store.py", "own_pool"),
    Mutant("prefetch-capacity", "_prefetcher", "owner != run or blocks.capacity != capacity:", "owner != run:", "executors/stores/test_shared_file_store.py", "memory_of_each_count"),
    Mutant("prefetch-run", "_prefetcher", "owner != run or blocks.capacity != capacity:", "blocks.capacity != capacity:", "executors/stores/test_shared_file_store.py", "memory_of_each_count"),
    Mutant("prefetch-closed", "Prefetcher.__init__", "        weakref.finalize(self, _end, self._reader)\n", "", "executors/stores/test_shared_file_store.py", "second_question"),
    Mutant("prefetch-waits", "_end", "wait=not threading.current_thread().name.startswith(READER)", "wait=False", "executors/stores/test_shared_file_store.py", "under_way"),
    Mutant("prefetch-dropped", "SharedFileStore.after_tasks", "        ask(_drop_prefetchers, self._run)\n", "        pass\n", "executors/stores/test_shared_file_store.py", "workers_keep_no_block"),
    # counting
    Mutant("digest", "_digest", "digest(block.offsets, block.columns)", "digest(block.columns)", "counting/test_checkpoint.py", "checkpoint_of_another_block"),
    Mutant("survey-resumed", "over_tasks", "            if job not in resumed_jobs\n", "", "questions/test_survey.py", "cut_short"),
    Mutant("survey-columns", "_asked", "repr((names, dtypes, digests))", "repr((names, dtypes))", "questions/test_survey.py", "checkpoint_of_another"),
    Mutant("identity-closure", "_values", "            yield name, cell.cell_contents\n", "            yield name, type(cell.cell_contents).__name__\n", "questions/test_function_identity.py", "code_and_what"),
    Mutant("identity-global", "_values", "            yield name, function.__globals__[name]\n", "            yield name, 0\n", "questions/test_function_identity.py", "code_and_what"),
    Mutant("fsync", "Checkpoint.add", "                os.fsync(self._file)\n                self._synced", "                self._synced", "counting/test_checkpoint.py", "on_the_disk"),
    Mutant("record-twice", "Checkpoint.__init__", "if self.records.setdefault(job, record).count[:3] != record.count[:3]:", "if False:", "counting/test_checkpoint.py", "task_with_two_counts"),
    Mutant("visit-memory", "kernel_and_bytes", "refuse_beyond(plan.memory, nbytes,", "refuse_beyond(2 * plan.memory, nbytes,", "answers/test_edge_support.py", "visits_beyond_memory"),
    Mutant("visit-reserve", "_sums", "task_memory = min(plan.memory, task_memory + graph.answers.bytes_of_sums(nbytes, plan.workers))", "task_memory = task_memory", "answers/test_edge_support.py", "sums_are_reserved"),
    Mutant("support-three", "edge_support._checked", "    if incidences != 3 * triangles:", "    if False:", "answers/test_edge_support.py", "of_a_task_that_do_not_add_up"),
    Mutant("shards-three", "_merged", "    refuse_unless(incidences == 3 * count, UNEQUAL)", "    pass", "answers/test_vertex_counts.py", "vertices_in_shards"),
    Mutant("edges-lost", "partitions", "    refuse_unless(sum(sizes) == graph.edges,", "    refuse_unless(True,", "answers/test_edge_frames.py", "number_of_edges"),
    Mutant("edges-sums", "partitions", "    refuse_unless(total is None or sum(number for _, number in facts) == total,", "    refuse_unless(True,", "answers/test_edge_frames.py", "supports_of_all_edges"),
    Mutant("corners", "_dense_corners", "np.sort(np.concatenate(dense).take(corners), axis=1)", "np.concatenate(dense).take(corners)", "pipeline/planes/test_sharded.py", "results_are_those"),
    Mutant("sample-keys", "hash_key", "x = (2 * seed + number + 1) * STEP % 2**64", "x = (seed + number + 1) * STEP % 2**64", "questions/test_estimate.py", "has_the_key"),
    Mutant("sample-pilot", "estimate", "_sample(graph, wedge_counts, size, hash_key(seed, 1))", "_sample(graph, wedge_counts, size, hash_key(seed, 0))", "questions/test_estimate.py", "has_the_key"),
    Mutant("interval-high", "estimate", "min(wedges, ceil(wedges * high))", "min(wedges, floor(wedges * high))", "questions/test_estimate.py", "value_and_interval"),
    Mutant("interval-low", "estimate", "low, high = min(value, floor(wedges * low))", "low, high = min(value, ceil(wedges * low))", "questions/test_estimate.py", "value_and_interval"),
    Mutant("estimate-rounded", "estimate", "value = (2 * wedges * closed_count + sample_size) // (2 * sample_size)", "value = wedges * closed_count // sample_size", "questions/test_estimate.py", "value_and_interval"),
    Mutant("interval-sided", "estimate", "(1 + confidence) / 2", "confidence", "questions/test_estimate.py", "value_and_interval"),
    Mutant("sample-half", "estimate", " <= graph.edges / 2 and size <= wedges / 2", " <= graph.edges / 2", "questions/test_estimate.py", "half_of_all_wedges"),
    Mutant("sample-allowance", "estimate", "* (1 - error), error, z)", "* 1, error, z)", "questions/test_estimate.py", "smaller_share"),
    Mutant("estimate-loops", "with_facts", "prepared.rows - prepared.loops - graph.edges,", "prepared.rows - graph.edges,", "questions/test_estimate.py", "facts_of_the_graph"),
    Mutant("sample-size", "_needed", "(variance - 2 * square + root)", "(variance + root)", "questions/test_estimate.py", "half_width_needs"),
    Mutant("shards-new-ids", "block_ids_of_shard", "if count := int((places < 0).sum()):", "if count := 0:", "pipeline/test_attributes.py", "changes_between"),
    Mutant("shards-sides", "entries_of_spans", "begin + stride * max(0, -((begin - first) // stride))", "max(begin, first)", "questions/test_columns.py", "vertices_in_shards"),
    Mutant("update-shards", "Vertices._balanced", "largest * count <= UNEVEN", "0 * count <= UNEVEN", "questions/test_update.py", "stay_even"),
    Mutant("update-growth", "Vertices._in_shards", "max(plan.shards, count)", "plan.shards", "questions/test_update.py", "more_shards"),
    Mutant("update-renumbered", "renumbered", "dense, side=\"right\")", "dense)", "questions/test_update.py", "each_shard_leaves"),
    Mutant("update-last-names", "_new_names", "end = len(edit.places) if is_last else end", "end = min(end, len(edit.places))", "questions/test_update.py", "stay_even"),
    Mutant("update-attributes", "_refuse", "if graph.prepared.attributes is not None:", "if graph.prepared.attributes is None and False:", "questions/test_update.py", "weights_and_directions"),
    Mutant("update-text", "_sorted_ids", "permutation = pc.array_sort_indices(names).to_numpy()", "permutation = np.arange(len(names))", "questions/test_update.py", "text_ids_are_in_ascending"),
    Mutant("update-chunks", "_neighbours", "len(is_pivot) - 1))) + start)", "len(is_pivot) - 1))))", "questions/test_update.py", "every_chunk"),
    Mutant("update-pivots", "_changed_edges", "swap = degree > other_degree", "swap = degree < other_degree", "questions/test_update.py", "not_looked_up"),
    Mutant("update-batch-degrees", "update._degrees", "np.add.at(degrees, ids.searchsorted(ends), 1)", "pass", "questions/test_update.py", "not_looked_up"),
    Mutant("update-first", "add_changes", "if min(opposite, beside) < number:", "if opposite < number:", "questions/test_update.py", "graphs_with_hubs"),
    Mutant("update-both", "add_changes", "least = min(sign, signs[U(opposite)], signs[U(beside)])", "least = min(sign, signs[U(opposite)])", "questions/test_update.py", "graphs_with_hubs"),
    Mutant("update-opposite", "add_changes", "if signs[U(opposite)] <= 0:", "if True:", "questions/test_update.py", "graphs_with_hubs"),
    Mutant("update-bisection", "_positions", "range(int((end - start).max()).bit_length())", "range(int((end - start).max() - 1).bit_length())", "questions/test_update.py", "every_edge_of_a_row"),
    Mutant("update-known", "_prepared", ', updated", triangles=None, size=None)', ', updated", size=None)', "questions/test_update.py", "known_triangles"),
    Mutant("update-dealing", "_refuse", "if not (plan.scheme.once and plan.scheme.dealing is BY_REMAINDER):", "if not plan.scheme.once:", "questions/test_update.py", "plugins_scheme"),
    Mutant("update-next-row", "_positions", "is_hit = (start < row_end) &", "is_hit = (start <= row_end) &", "questions/test_update.py", "next_row"),
    Mutant("update-memory", "_refuse", "nbytes = 3 * largest + VERTEX_BYTES * vertices", "nbytes = 0 * largest", "questions/test_update.py", "beyond_memory"),
    Mutant("record-seconds", "_is_count", '0 <= seconds < float("inf")', "0 <= seconds", "counting/test_checkpoint.py", "no_task_reports"),
    Mutant("record-wedges", "Checkpoint.__init__", "record).count[:3] != record.count[:3]", "record).count[:1] != record.count[:1]", "counting/test_checkpoint.py", "two_counts"),
    Mutant("folder-dangling", "check_folder", "if os.path.lexists(path) and not os.path.isdir(path):", "if os.path.exists(path) and not os.path.isdir(path):", "counting/test_checkpoint.py", "refused_before_anything"),
    Mutant("begun-columns", "as_begun", 'if options.column_parts is None and choices.get("partition", options.partition) == header["partition"]:', "if options.column_parts is None:", "counting/test_checkpoint.py", "column_parts_are_not"),
    Mutant("fsync-late", "Checkpoint.add", "if time.monotonic() - self._synced > SYNC_SECONDS:", "if False:", "counting/test_checkpoint.py", "on_the_disk"),
    Mutant("similar-order", "_precedes", "vertex < other", "vertex > other", "questions/test_similarity.py", "ties"),
    Mutant("similar-corner", "_supports", "hits[w] += of_column[U(v)]", "hits[w] += of_row[u]", "questions/test_similarity.py", "named_graphs"),
    Mutant("similar-copies", "_lists", "keys[1:] != keys[:-1]", "keys[1:] == keys[:-1]", "questions/test_similarity.py", "plans_and_reorders"),
    Mutant("similar-leaf", "_adamic_adar", "degrees > 1", "degrees > 0", "questions/test_similarity.py", "leaves_make"),
    Mutant("motif-paws", "_sums_of_vertices", "total_of_products(high * factors) << HALF", "total_of_products(high * factors)", "questions/test_motifs.py", "sums_are_exact"),
    Mutant("motif-cycles", "_four_cycles", "columns[U(q)] > u", "columns[U(q)] >= u", "questions/test_motifs.py", "kinds_contain"),
    Mutant("clique-tasks", "_level", "sorted(tasks) != list(range(splits)) or sum(wedges) != graph.prepared.wedges", "sum(wedges) != graph.prepared.wedges", "questions/test_cliques.py", "came_twice"),
    Mutant("ratios-infinite", "_values", "    if not all(facts):", "    if False:", "pipeline/test_attributes.py", "beyond_float64_are_refused_and"),
    Mutant("edge-sample-colour", "_colour", "x = (x ^ (x >> U(27))) * _SECOND", "x = (x ^ (x >> U(27))) * _FIRST", "questions/test_edge_sample.py", "one_colour"),
    Mutant("edge-sample-last", "_sampled", "= _colour(src[i], colours, key) == _colour(dst[i], colours, key)", "= _colour(src[i], colours, key) <= _colour(dst[i], colours, key)", "questions/test_edge_sample.py", "one_colour"),
    Mutant("edge-sample-rows", "edges_of", "skipped=len(frame) - counts.rows", "skipped=0", "questions/test_edge_sample.py", "one_colour"),
    Mutant("edge-sample-degree", "_seen", "sorted(chain(*largest))[-2]", "sorted(chain(*largest))[-1]", "questions/test_edge_sample.py", "made_of"),
    Mutant("edge-sample-pairs", "estimate_of_sample", "colours**3 * pairs", "colours**2 * pairs", "questions/test_edge_sample.py", "made_of"),
    Mutant("edge-sample-variance", "Seen.interval", "colours**2 - 1, 2 * (colours - 1) * pairs", "colours**2 - 1, (colours - 1) * pairs", "questions/test_edge_sample.py", "deviations_away"),
    Mutant("edge-sample-missed", "Seen.interval", "score_upper(self.pairs, colours * (colours + self.support) ** 2, z)", "self.pairs", "questions/test_edge_sample.py", "few_edges_have"),
    Mutant("edge-sample-told", "Seen.colours_for", "high - low > 2 * error * self.value", "high - low > error * self.value", "questions/test_edge_sample.py", "that_is_told"),
    Mutant("edge-sample-vertices", "_standard_error", "(triangles + 1) * variance", "triangles * variance", "questions/test_edge_sample.py", "vertices or bounds"),
    Mutant("edge-sample-overflow", "write_vertices", "most >= 1 << 63", "most > 1 << 63", "questions/test_edge_sample.py", "64_bits"),
    Mutant("edge-sample-steps", "DeviceEdges.sampled", "end[start : start + self.step]", "end[: self.step]", "backends/cuda/test_edges.py", "sample_of_edges"),
    Mutant("estimate-total", "with_facts", '"total": sum(stage_seconds.values()) + time.perf_counter() - start}', '"total": time.perf_counter() - start}', "questions/test_estimate.py", "total_has"),
    Mutant("estimate-mixed", "_tested", "    if places != triple.places:", "    if False:", "questions/test_estimate.py", "mixed_up"),
    Mutant("estimate-least", "_never_pays", "minimum = 2 * SAMPLE_EDGES * PILOT", "minimum = SAMPLE_EDGES * PILOT", "questions/test_estimate.py", "does_not_pay"),
    Mutant("sample-least", "_sample", "width = max(1, wedges // size)", "width = max(1, -(-wedges // size))", "questions/test_estimate.py", "at_least_as_many"),
    Mutant("sample-closed", "_sample", "(last > 0) or closed_count > sample_size:", "(last > 0):", "questions/test_estimate.py", "repeated_wedges"),
    Mutant("update-choice", "_prepared", "vertices=vertices, choice=plan.choice))", "vertices=vertices))", "questions/test_update.py", "plan_of_the_new_graph"),
    Mutant("update-edges", "_prepared", "if not new_vertices.edges == block_edges == plan.edges + counts.added - counts.removed:", "if new_vertices.edges != block_edges:", "questions/test_update.py", "old_edges_and_those"),
    Mutant("update-block", "_rebuild", "    check_edges(new_block, edges)\n", "", "questions/test_update.py", "while_a_block_is_written"),
    Mutant("update-size", "_numbered", "    check_size(old_count + new_count)\n", "", "questions/test_update.py", "32_bits_are_refused"),
    Mutant("record-text", "_is_text", "value.isprintable() and len(value) <= LONGEST", "value.isprintable()", "counting/test_checkpoint.py", "no_task_reports"),
    Mutant("fsync-seldom", "Checkpoint.add", "                self._synced = time.monotonic()\n", "", "counting/test_checkpoint.py", "on_the_disk"),
    Mutant("values-wedges", "weighted_clustering", "    check(records, plan, graph.prepared.wedges)\n", "", "pipeline/test_attributes.py", "lost_or_repeated"),
    Mutant("values-order", "_merged_nodes", "nodes.pop((level, number ^ 1), None)", "nodes.pop((level, number + 1), None)", "questions/test_sums.py", "whatever_order"),
    Mutant("values-rows", "refuse_lost_rows", "rows != expected * len(partition.layout.families)", "False", "pipeline/test_attributes.py", "changes_between"),
    Mutant("values-ranges", "_ranges", "        rows *= 1 if partition.layout.graph.ordered else 2", "        rows = 1", "pipeline/test_attributes.py", "come_in_ranges"),
    Mutant("values-planned", "_with_visits", "    if not value_bytes:", "    if True:", "planning/test_scratch.py", "values_that_are_kept"),
    Mutant("values-family", "_neighbours", "        if place[1] < width:", "        if True:", "pipeline/test_attributes.py", "answers_as_networkx"),
    Mutant("values-none", "_values", "if data.largest == 0 and graph.edges:", "if data.largest == 0:", "pipeline/test_attributes.py", "loops_alone"),
    # readers and writers
    Mutant("binary", "detect", r'rb"[\x00-\x08\x0e-\x1f]"', r'rb"[\x00-\x08]"', "io/formats/test_text.py", "control_bytes"),
    Mutant("lookup-value", "lookup._find", "value = np.int64(values[i])", "value = np.int64(np.int32(values[i]))", "backends/cpu/test_lookup.py", "each_value"),
    Mutant("lookup-next", "lookup._enter", "slot = (slot + U(1)) & mask", "break", "backends/cpu/test_lookup.py", "each_value"),
    Mutant("distinct-grown", "lookup.distinct", "_enter(members[:size], bits, slots)", "_enter(members[:0], bits, slots)", "backends/cpu/test_lookup.py", "grows"),
    Mutant("distinct-next", "lookup._collect", "slot = (slot + U(1)) & mask", "break", "backends/cpu/test_lookup.py", "grows"),
    Mutant("lookup-order", "lookup.lookup", "places[order] = ids.searchsorted(values[order])", "places[:] = ids.searchsorted(values[order])", "backends/cpu/test_lookup.py", "each_value"),
    Mutant("rows-largest", "cpu.rows._integer", " or value > U(LARGEST)", "", "backends/cpu/test_rows.py", "19_digits"),
    Mutant("rows-digits", "cpu.rows._integer", " or place - begin > U(DIGITS)", "", "backends/cpu/test_rows.py", "19_digits"),
    Mutant("rows-wide", "cpu.rows._parse", " or target[rows] != b", "", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-return", "cpu.rows._parse", " and text[place + U(1)] != NEWLINE):", "):", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-quote", "cpu.rows._parse", "is_odd = text[place] == QUOTE and separator != NEWLINE", "is_odd = False", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-end", "cpu.rows._parse", "place > end if separator == NEWLINE else text[place] == separator", "True", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-plain-first", "cpu.rows._parse", "place < a_end < place + U(DIGITS)", "place < a_end", "backends/cpu/test_rows.py", "all_lengths"),
    Mutant("rows-plain-second", "cpu.rows._parse", "a_end + U(1) < b_end <= a_end + U(DIGITS)", "a_end + U(1) < b_end", "backends/cpu/test_rows.py", "all_lengths"),
    Mutant("rows-plain-none", "cpu.rows._parse", "a_end + U(1) < b_end <=", "b_end <=", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-plain-separator", "cpu.rows._parse", "(text[a_end] == separator or (separator == NEWLINE and _is_blank(text[a_end])))", "True", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-plain-return", "cpu.rows._parse", " and text[b_end] == RETURN)", ")", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("rows-plain-window", "cpu.rows._parse", " and newline < place + U(WINDOW)", "", "backends/cpu/test_rows.py", "all_lengths"),
    Mutant("rows-last-end", "cpu.rows.parse", "    if len(text) and text[-1] != NEWLINE:\n        text = np.append(text, np.uint8(NEWLINE))\n", "", "backends/cpu/test_rows.py", "known_texts"),
    Mutant("metis-entries", "_check", "if 2 * header.edges not in (neighbours, neighbours + loops):", "if 2 * header.edges not in (neighbours, neighbours + loops, neighbours - 1):", "io/formats/test_metis.py", "metis"),
    Mutant("metis-ids", "_dtype", "np.int32 if header.vertices < 1 << 31 else np.int64", "np.int32", "system/test_past_32_bits.py", "metis"),
    Mutant("lines-ids", "EntryPart.dtype", "np.int32 if self.ids.stop <= 1 << 31 else np.int64", "np.int32 if self.ids.stop <= 1 << 32 else np.int64", "system/test_past_32_bits.py", "lines"),
    Mutant("bvgraph-ids", "_Decoder.__init__", "np.int32 if properties.nodes < 1 << 31 else np.int64", "np.int32", "system/test_past_32_bits.py", "nodes_of_a_bvgraph"),
    Mutant("publish-back", "_put_away", 'hidden_folder / "replaced" if os.path.lexists(target) else target', 'hidden_folder / "replaced"', "io/test_write.py", "puts_the_old_folder_back or leaves_the_old_or_the_new"),
    Mutant("input-hidden", "refuse_input", "target.folders(visible=True)", "target.folders()", "io/test_inputs.py", "another_place"),
    Mutant("input-within", "refuse_input", "elif target.is_folder and target.identity in place.folders():", "elif False:", "io/test_inputs.py", "several_names"),
    Mutant("input-saved", "refuse_input", "if not place.is_saved_graph():", "if True:", "io/test_inputs.py", "saved_graph"),
    Mutant("input-pattern", "_match", "range(depth + 1)", "range(1)", "io/test_inputs.py", "several_names"),
    Mutant("input-checkpoint", "triangle_count", "        refuse_input(os.path.join(checkpoint, FILE), source, options.assign_file)\n", "", "io/test_inputs.py", "every_command"),
    Mutant("limit-unused", "bytes_of_triples", "if int(largest_bytes.max()) > limit:", "if False:", "planning/test_plan.py", "never_fits"),
    Mutant("exact-last", "make_plan", "scheme.replicated or successor is None or lean_plan is not None", "scheme.replicated", "planning/test_plan.py", "scratch_of_all_tasks"),
    Mutant("caller-exits", "CallerFunction", "        except BaseException as error:\n", "        except ValueError as error:\n", "questions/test_caller_function.py", "threads"),
    Mutant("caller-frames", "_innermost", "frames > FRAMES", "False", "questions/test_caller_function.py", "recursion and threads"),
    Mutant("caller-signal", "_comes_from_signal", "frame.f_code in codes", "False", "questions/test_caller_function.py", "signal"),
    Mutant("publish-aside", "_put_away", "    if os.path.lexists(old_folder):\n", "    if False:\n", "io/test_write.py", "replaced_by_force"),
    # saved graphs
    Mutant("array-left", "new_file", "os.unlink(temporary)", "pass", "saved/test_saved_graph.py", "leaves_no_file"),
    Mutant("decoder-of-a-thread", "manifest.decoded", "decoder(Manifest).decode(graph)", "msgspec.json.decode(graph, type=Manifest)", "saved/test_saved_graph.py", "at_once"),
    Mutant("manifest-first", "_own_files", "return [MANIFEST, *(name for name in entries if name != MANIFEST)]", "return sorted(entries, reverse=True)", "saved/test_saved_graph.py", "goes_first"),
    Mutant("kernel-lean", "_write_files", "kernel=None if plan.lean else options.chosen_kernel", "kernel=options.chosen_kernel", "backends/cuda/test_edges.py", "saved_where"),
    Mutant("assign-file", "_write_files", 'assign="random" if options.assign_file else str(options.assign),', "assign=str(options.assign),", "saved/test_saved_graph.py", "without_the_file"),
    Mutant("saved-numbers", "_vector", 'if files.below is not None and len(part) and int(part.view("uint32").max()) >= files.below:', 'if files.below is not None and len(part) and int(part.view("uint32").max()) > files.below:', "saved/test_saved_graph.py", "hostile_vectors"),
    Mutant("saved-narrow", "_write_ids", "fits_32_bits = not len(values) or (values[0] >= -(2**31) and values[-1] < 2**31)", "fits_32_bits = not len(values) or (values[0] >= -(2**31) and values[-1] <= 2**31)", "saved/test_saved_graph.py", "border_of_32_bits"),
    Mutant("saved-secrets", "_write_files", "name=without_secrets(source.name),", "name=source.name,", "saved/test_saved_graph.py", "no_secret"),
    Mutant("saved-short", "check_sizes", "if nbytes is not None and nbytes < size:", "if nbytes is not None and nbytes + 1 < size:", "saved/test_saved_graph.py", "every_byte"),
    Mutant("saved-kernel", "_with_kernel", "and backend == manifest.backend and kernel", "and kernel", "saved/test_saved_graph.py", "another_backend"),
    Mutant("saved-parts", "open_plan", "max(vertices, manifest.method.parts),", "vertices,", "saved/test_saved_graph.py", "fewer_vertices"),
    Mutant("saved-known", "_write_files", "triangles=source.triangles,", "triangles=None,", "saved/test_saved_graph.py", "known_triangles"),
    Mutant("saved-text", "open_plan", '    if saved.ids == "text":\n        budget', '    if saved.ids == "never":\n        budget', "saved/test_saved_graph.py", "long_text"),
    Mutant("saved-ids", "_refuse_reading", "if options.ids not in (None, ids):", "if options.ids is not None:", "saved/test_saved_graph.py", "change_nothing"),
    Mutant("array-twice", "new_file", 'temporary = f"{url}.{uuid4().hex[:8]}"', 'temporary = f"{url}.new"', "saved/test_saved_graph.py", "runs_twice"),
    Mutant("folder-slash", "joined", "{links[place].rstrip('/')}/{name}", "{links[place]}/{name}", "saved/test_saved_graph.py", "names_of_files"),
    Mutant("saved-whole", "fitted", 'free = {"parts": scheme.replicated,', 'free = {"parts": False,', "saved/test_saved_graph.py", "change_nothing"),
    Mutant("saved-splits", "fitted", 'method["splits"] = options.splits', "pass", "saved/test_saved_graph.py", "change_nothing"),
    # kernels of the CPU
    Mutant("trust-deep", "bucket_depth", "return max(DEPTH, -(-2 * longest // LARGE))", "return max(DEPTH, -(-longest // LARGE))", "backends/cpu/test_sizes.py", "half_empty"),
    Mutant("trust-small", "insert", "        bucket = (bucket + U(1)) & (buckets - U(1))\n    slots", "        bucket = (bucket + U(1)) & U(1023)\n    slots", "backends/cpu/test_kernels.py", "hash_alike or fill_the_table", "a small table holds 100 entries at most, and a bucket 128: none is ever full; of a large one the masks are equal"),
    Mutant("times-middle", "cpu.times._count", "min(max(low, c), high)", "max(low, c)", "backends/cpu/test_times.py", "shape or length"),
    Mutant("times-signed", "cpu.times._count", "return closing <= window", "return np.int64(closing) <= np.int64(window)", "backends/cpu/test_times.py", "shape or length"),
    Mutant("times-row", "by_times", "        clear(bits, table_columns, table[u], table[u + 1])\n", "", "backends/cpu/test_times.py", "shape"),
    Mutant("times-bytes", "times_bytes", "17 * columns", "9 * columns", "backends/cpu/test_times.py", "memory"),
    Mutant("visit-bytes", "cpu.sizes.visit_bytes", "return 4 * edges + 5 * columns", "return 4 * edges + 4 * columns", "backends/cpu/test_visit.py", "visits_take"),
    Mutant("batches-first", "kernels/visit.cu", "int64 place = (edge ? ends[edge - 1] : 0) - first;", "int64 place = edge ? ends[edge - 1] : 0;", "backends/cuda/test_backend.py", "visits_are"),
    Mutant("batches-wedges", "cuda.visit.batches", "        yield places\n        wedges = 0\n", "        yield places\n", "backends/cuda/test_backend.py", "visits_are"),
    Mutant("labels-subgraphs", "_in_subgraphs", "(bits & ~among == 0) & (bits & touching != 0)", "bits & ~among == 0", "questions/test_on_a_gpu.py", "labels_in"),
    Mutant("labels-checked", "_in_subgraphs", "        refuse_unless(total == whole.triangles and fewest >= 0, fact)\n", "", "questions/test_on_a_gpu.py", "lost_triangles"),
    Mutant("sums-on-a-gpu", "_sums_of_batches", "products *= of_edges.take(edges)", "products = of_edges.take(edges)", "questions/test_on_a_gpu.py", "ids_anywhere"),
    Mutant("deferred", "sizes", "MOST = (1 << 31) - 1", "MOST = (1 << 33) - 1", "system/test_past_32_bits.py", "deferred"),
    Mutant("hub-reach", "hub.by_rows", "table[u + 1] - table[begin] > REACH", "table[u + 1] - table[begin] > 4 * REACH", "system/test_past_32_bits.py", "put_off_may_stand_far"),
    Mutant("hub-reach-vertices", "hub_support.vertices_by_rows", "(deferrals + length(index, u) > limit or table[u + 1] - table[begin] > REACH)", "(deferrals + length(index, u) > limit or table[u + 1] - table[begin] > 4 * REACH)", "system/test_past_32_bits.py", "put_off_may_stand_far"),
    Mutant("hub-reach-edges", "hub_support.edges_by_rows", "            or table[u + 1] - table[begin] > REACH\n", "", "system/test_past_32_bits.py", "supports_of_lists_that_stand_far"),
    # sums past 32 bits, and past what float64 holds
    Mutant("probes-sum", "_sum", "sum(probes), max(collisions)", "int(float(sum(probes))), max(collisions)", "system/test_past_32_bits.py", "reports_of_tasks"),
    Mutant("wedges-sum", "check", "if total != wedges:", "if float(total) != float(wedges):", "system/test_past_32_bits.py", "wedges_of_tasks"),
    Mutant("probes-frame", "TriangleCount.tasks", "return pd.DataFrame(rows, columns=names)", 'return pd.DataFrame(rows, columns=names).astype({"probes": "float64"})', "system/test_past_32_bits.py", "probes_in_a_result"),
    Mutant("probes-json", "TriangleCount.to_dict", "**asdict(self.stats),", '**asdict(self.stats), "probes": float(self.stats.probes),', "system/test_past_32_bits.py", "probes_in_a_result"),
    Mutant("report-join", "_workers", "totals.reindex(names, fill_value=0)", "totals.reindex(names).fillna(0)", "system/test_past_32_bits.py", "tasks_in_a_report"),
    Mutant("report-narrow", "_workers", 'totals["triangles"].to_numpy(),', 'totals["triangles"].to_numpy("int32"),', "system/test_past_32_bits.py", "tasks_in_a_report"),
    Mutant("progress-probes", "Meter._add", "self._probes += count.probes", "self._probes += float(count.probes)", "system/test_past_32_bits.py", "progress_says"),
    Mutant("progress-workers", "Meter._add", "totals[1] + count.probes", "float(totals[1] + count.probes)", "system/test_past_32_bits.py", "progress_says"),
    Mutant("checkpoint-count", "Checkpoint.add", '"count": list(record.count)', '"count": [float(number) for number in record.count]', "system/test_past_32_bits.py", "checkpoint_keeps"),
    Mutant("wedges-arrays", "orient.wedges_of", "wedges += (int((ins * (outs >> 20)).sum()) << 20) + int((ins * (outs & ((1 << 20) - 1))).sum())", "wedges += int((ins * outs).sum())", "system/test_past_32_bits.py", "wedges_of_degrees"),
    Mutant("wedges-compiled", "_totals", "high += inward * (out >> 20)", "high += np.uint32(inward * (out >> 20))", "system/test_past_32_bits.py", "wedges_of_degrees"),
    Mutant("wedges-rows", "wedge_sample.wedges_of", "wedges += (int((lengths * (factors >> 20)).sum()) << 20) + int((lengths * (factors & ((1 << 20) - 1))).sum())", "wedges += int((lengths * factors).sum())", "system/test_past_32_bits.py", "wedges_of_long_rows"),
    Mutant("wedges-numbered", "_never_pays", "if wedges > MOST:", "if wedges > 4 * MOST:", "system/test_past_32_bits.py", "number_are_counted"),
    Mutant("wedge-place", "_closed", "1 + 8.0 * place", "1 + 8 * place", "system/test_past_32_bits.py", "found_by_their_numbers and cpu"),
    Mutant("wedge-place-device", "kernels/wedges.cu", "8.0 * double(place)", "double(8 * place)", "system/test_past_32_bits.py", "found_by_their_numbers and cuda"),
    Mutant("pairs", "pairs_of", "wedges_of(degree - 1, degree)", "int(((degree - 1) * degree).sum())", "system/test_past_32_bits.py", "pairs_of_neighbours"),
    Mutant("pairs-directed", "triad_census._pairs", "ordered_pairs = wedges_of(degrees[a], degrees[b] - (a == b))", "ordered_pairs = int((degrees[a] * (degrees[b] - (a == b))).sum())", "system/test_past_32_bits.py", "pairs_of_neighbours"),
    Mutant("hub-probes", "hub.by_rows", "                probes += b if b <= SHORT else min(a, b)\n", "                probes = np.int32(probes + (b if b <= SHORT else min(a, b)))\n", "system/test_past_32_bits.py", "probes_of_a_complete"),
    Mutant("merge-probes", "intersect.merge", "probes += cut - first + row_end - row", "probes = np.uint32(probes + cut - first + row_end - row)", "system/test_past_32_bits.py", "wedges_of_a_task and not device"),
    Mutant("merge-wedges", "wedges_of", "wedges += length(offsets, columns[p])", "wedges = np.uint32(wedges + length(offsets, columns[p]))", "system/test_past_32_bits.py", "wedges_of_a_task and not device"),
    Mutant("thread-probes", "kernels/csr.cuh", "uint64 triangles = 0, wedges = 0, probes = 0;", "uint64 triangles = 0, wedges = 0;\n  uint32 probes = 0;", "system/test_past_32_bits.py", "wedges_of_a_task_on_a_device"),
    Mutant("warp-sums", "kernels/csr.cuh", "__device__ __forceinline__ uint64 warp_sum(uint64 x) {", "__device__ __forceinline__ uint32 warp_sum(uint32 x) {", "system/test_past_32_bits.py", "wedges_of_a_task_on_a_device"),
    Mutant("expected-probes", "expected_probes", "int(rule(lengths).sum())", 'int(rule(lengths).sum(dtype="int32"))', "system/test_past_32_bits.py", "expected_probes and cpu"),
    Mutant("expected-probes-device", "expected_probes", "_lengths(xp, task, u, v)), macros).sum())", '_lengths(xp, task, u, v)), macros).sum(dtype="int32"))', "system/test_past_32_bits.py", "expected_probes and cuda"),
    Mutant("sides", "added_up", 'counts = xp.zeros(vertices, dtype="int64")', 'counts = xp.zeros(vertices, dtype="float64")', "system/test_past_32_bits.py", "whole_numbers"),
    Mutant("sides-checked", "_checked", "count is None or int(counts.sum()) == 3 * count", 'count is None or int(counts.sum(dtype="float64")) == 3 * count', "system/test_past_32_bits.py", "whole_numbers"),
    Mutant("sides-shards", "_sum", "return int(vector.sum())", 'return int(vector.sum(dtype="float64"))', "system/test_past_32_bits.py", "whole_numbers"),
    Mutant("sides-total", "total", "result = vectors.pop().copy()", 'result = vectors.pop().astype("float64")', "system/test_past_32_bits.py", "whole_numbers"),
    Mutant("ends-sums", "_add_ends", "            at_row[u] += values[p]\n", "            at_row[u] = np.uint32(at_row[u] + values[p])\n", "system/test_past_32_bits.py", "added_up_at_both_ends"),
    Mutant("ends-sums-device", "add_ends", 'xp.add.at(at_column.view("uint64"), block.columns[start:stop], amounts)', 'at_column += xp.bincount(block.columns[start:stop], amounts, len(at_column)).astype("int32")', "system/test_past_32_bits.py", "added_up_at_both_ends"),
    Mutant("facts-sums", "kernels/answers.cu", "  uint64 sum = 0;\n", "  uint32 sum = 0;\n", "system/test_past_32_bits.py", "device_adds_supports"),
    Mutant("task-sums", "edge_support._checked", 'int(array.sum(dtype="int64")) for array in sums', 'int(array.sum(dtype="float64")) for array in sums', "system/test_past_32_bits.py", "compared_with_their_vertices"),
    Mutant("task-sums-narrow", "edge_support._checked", 'int(array.sum(dtype="int64")) for array in sums', 'int(array.sum(dtype="int32")) for array in sums', "system/test_past_32_bits.py", "compared_with_its_triangles"),
    Mutant("edges-summed", "_summed", 'sums = xp.cumsum(values, dtype="int64")[last]', 'sums = xp.cumsum(values, dtype="float64")[last]', "system/test_past_32_bits.py", "edges_in_several_blocks"),
    Mutant("edges-added", "_added", "return part.shape[1], int(part[1].sum())", 'return part.shape[1], int(part[1].sum(dtype="float64"))', "system/test_past_32_bits.py", "edges_in_several_blocks"),
    Mutant("edges-asked", "_matched", "    counts = np.zeros((2, len(distinct_keys)), np.int64)\n", "    counts = np.zeros((2, len(distinct_keys)), np.float64)\n", "system/test_past_32_bits.py", "edges_in_several_blocks"),
    Mutant("vertices-asked", "_asked", "np.empty(len(dense), parts[0][1][number].dtype if parts else np.int64)", "np.empty(len(dense))", "system/test_past_32_bits.py", "in_every_answer"),
    Mutant("vertices-placed", "ArrayAnswers.place", "self.array.empty_like(numbers)", "self.array.empty(len(numbers))", "system/test_past_32_bits.py", "in_every_answer"),
    Mutant("vertices-moved", "filled", 'return backend.array.full(size, value, dtype="int64")', 'return backend.array.full(size, value, dtype="float64")', "system/test_past_32_bits.py", "in_every_answer"),
    Mutant("vertices-most", "_vertices", "on_host(vector.take(places)).astype(np.int64) for vector", "on_host(vector.take(places)).astype(np.float64) for vector", "system/test_past_32_bits.py", "in_every_answer"),
    Mutant("far-merged", "merged", "        x, y = left[U(i)], right[U(j)]\n        common", "        x, y = left[np.uint32(i)], right[U(j)]\n        common", "system/test_past_32_bits.py", "kernels_find_rows and merge"),
    Mutant("far-searched", "_searched", "for p in range(U(i), U(i_end)):", "for p in range(np.uint32(i), np.uint32(i_end)):", "system/test_past_32_bits.py", "kernels_find_rows and search"),
    Mutant("far-walked", "kernels/csr.cuh", "row.first = t.same ? row.begin : t.table.offsets[row.u];", "row.first = t.same ? row.begin : int32(t.table.offsets[row.u]);", "system/test_past_32_bits.py", "kernels_of_a_device_find and plain"),
    Mutant("far-binned", "kernels/lrb.cuh", "t.table.columns + t.table.offsets[list.u(e)]", "t.table.columns + int32(t.table.offsets[list.u(e)])", "system/test_past_32_bits.py", "kernels_of_a_device_find and merge"),
    Mutant("far-edges", "_keys", "v, i = np.int64(column_ids[U(columns[U(p)])]), U(p - start)", "v, i = np.int64(column_ids[U(columns[np.uint32(p)])]), U(p - start)", "system/test_past_32_bits.py", "far_behind"),
    # places beyond 32 bits, and kernels of a device
    Mutant("device-ends", "add_ends", 'xp.arange(start, stop, dtype="int64")', 'xp.arange(start, stop, dtype="int32")', "system/test_past_32_bits.py", "places_of_edges"),
    Mutant("key-columns", "kernels/edges.cu", "place % uint64(columns));", "uint32(place) % uint32(columns));", "system/test_past_32_bits.py", "columns_of_keys"),
    Mutant("key-mask", "kernels/edges.cu", "place & (columns - 1) :", "(place & 0xffff) & (columns - 1) :", "system/test_past_32_bits.py", "columns_of_keys"),
    Mutant("key-bound", "kernels/edges.cu", "bound = start + r * columns;", "bound = start + int32(r * columns);", "system/test_past_32_bits.py", "columns_of_keys"),
    Mutant("hub-records", "kernels/hub.cuh", "return {uint64(start >> 2) << 32 |", "return {uint64(uint32(start >> 2) & 0x3fffffff) << 32 |", KERNELS, "beyond_32_bits and hub"),
    Mutant("wedge-sums", "kernels/vertices.cu", "uint64 all = degree[order[r]], out = outward[r], in = all - out;", "uint32 all = degree[order[r]], out = outward[r], in = all - out;", "backends/cuda/test_vertices.py", "totals_pass"),
    Mutant("merged", "kernels/csr.cuh", "bool up = x <= y, down = y <= x;", "bool up = x <= y, down = y < x;", KERNELS, f"{EXACT} and plain"),
    Mutant("walk-cut", "kernels/csr.cuh", "if (t.same && t.shift == 0) { return p - first; }", "if (t.same && t.shift == 0) { return p - first + 1; }", KERNELS, f"{EXACT} and plain"),
    Mutant("bisected", "kernels/csr.cuh", "return place < end && columns[place] == x;", "return columns[place] == x;", KERNELS, f"{EXACT} and tcstream"),
    Mutant("owner", "kernels/csr.cuh", "row += end <= e ? step : 0;", "row += end < e ? step : 0;", KERNELS, f"{EXACT} and plain"),
    Mutant("wedges", "kernels/csr.cuh", "  sums.wedges += b;\n", "  sums.wedges += b > 0;\n", KERNELS, f"{EXACT} and plain"),
    Mutant("trust-level", "kernels/trust.cu", "return level + 1;", "return level;", KERNELS, "full_buckets_pass and trust and not device"),
    Mutant("trust-full", "kernels/trust.cu", "if (!(word & MORE)) { return false; }", "return false;", KERNELS, "full_buckets_pass and trust and not device"),
    Mutant("trust-part", "kernels/trust.cu", "Part::of((ends - buckets) << doublings, buckets << doublings)", "Part::of(0, buckets)", KERNELS, f"{EXACT} and trust"),
    Mutant("hash-full", "kernels/hash.cuh", "if (size < depth) { return false; }", "return false;", KERNELS, f"{EXACT} and hindex"),
    Mutant("lrb-bin", "kernels/lrb.cuh", "return 32 - __clz(int(min(work, 1ll << 31) - 1));", "return 32 - __clz(int(min(work, 1ll << 31)));", KERNELS, "binned"),
    Mutant("tree", "kernels/tcstream.cu", "int64((node + 1) * many_size >> TOP)", "int64(node * many_size >> TOP)", KERNELS, f"{EXACT} and tcstream"),
    Mutant("tree-low", "kernels/tcstream.cu", "int64(node * many_size >> TOP)", "int64((node + 1) * many_size >> TOP)", KERNELS, f"{EXACT} and tcstream"),
    Mutant("slice-rows", "slices", "first % GROUP, last - first", "0, last - first", KERNELS, "listed_in_slices"),
    Mutant("tree-halves", "kernels/tcstream.cu", "      highs[waiting] = high;", "      highs[waiting] = place;", "backends/cuda/test_kernels.py", "long_lists"),
    Mutant("tree-halves-begin", "kernels/tcstream.cu", "      begins[waiting] = middle + 1;", "      begins[waiting] = middle + 2;", "backends/cuda/test_kernels.py", "long_lists"),
    Mutant("tree-backward", "kernels/tcstream.cu", "max(low, end - back), high, x)", "max(low, end - back + 1), high, x)", "backends/cuda/test_kernels.py", "long_lists"),
    Mutant("compact", "kernels/edges.cu", "(k == 0 || keys[k - 1] != key)", "(keys[k - 1] != key)", "backends/cuda/test_edges.py", "distinct_among_themselves"),
    Mutant("degrees-run", "kernels/edges.cu", "uint32 run = later ? __ffs(int(later)) : 32 - lane;", "uint32 run = later ? __ffs(int(later)) : 31 - lane;", "backends/cuda/test_edges.py", "degrees_and_orientation"),
    Mutant("repeats-run", "kernels/edges.cu", "run = others ? __ffs(int(others)) - 1 : 32;", "run = others ? __ffs(int(others)) - 1 : 31;", "backends/cuda/test_edges.py", "columns_of_distinct"),
    Mutant("repeats-first", "kernels/edges.cu", "lane == 0 || !(repeats >> (lane - 1) & 1)", "!(repeats >> (lane - 1) & 1)", "backends/cuda/test_edges.py", "columns_of_distinct"),
    Mutant("tally-range", "kernels/edges.cu", "range = unit % ranges,", "range = 0,", "backends/cuda/test_edges.py", "dealt_before"),
    Mutant("rows-most", "order_by_rows", "most = xp.uint32(max(0, len(counts) - 1))", "most = xp.uint32(2**31 - 1)", "pipeline/planes/test_process.py", "directed_by_rows"),
    Mutant("rows-repeats", "subtract_ends", "degrees[U(vertices[U(keys[i] & mask)])] -= number", "degrees[U(vertices[U(keys[i] & mask)])] -= 1", "pipeline/planes/test_process.py", "directed_by_rows"),
    Mutant("rows-lengths", "distinct_rows", "start = start if row == last_row else size", "start = size if key != last else start", "pipeline/planes/test_process.py", "directed_by_rows"),
    Mutant("dense", "kernels/edges.cu", "((1u << (x & 31)) - 1));", "((2u << (x & 31)) - 1));", "backends/cuda/test_edges.py", "canonical_keys"),
    Mutant("residues", "kernels/edges.cu", "own + high % modulus * modulus + low % modulus", "own + low % modulus * modulus + high % modulus", "backends/cuda/test_edges.py", "by_remainder"),
    Mutant("order-weight", "kernels/vertices.cu", "(most - weights[v]) << 31 | v", "(most - weights[v]) << 30 | v", "backends/cuda/test_vertices.py", "descending"),
    Mutant("sort-behind", "kernels/sort.cu", "uint32 own = sum - (d == mask ? behind : 0);", "uint32 own = sum;", "backends/cuda/test_sort.py", "end_within_a_tile"),
    Mutant("peel-window", "kernels/peel.cu", "} else if (before == end) {", "} else if (before == end + 1) {", "questions/test_trussness.py", "levels_of_larger or any_multigraph"),
    Mutant("peel-once", "kernels/peel.cu", "if ((f_goes && f < e) || (g_goes && g < e)) { return; }", "if (f_goes && f < e) { return; }", "questions/test_trussness.py", "levels_of_larger or any_multigraph"),
]  # fmt: skip


@cache
def modules() -> dict[Path, str]:
    """The text of each module of the package, by its path within the tree."""
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in (ROOT / "dasktc").rglob("*.py")}


def spans(node: ast.AST, name: str) -> Iterator[tuple[str, int, int]]:
    """Qualified name, first line and last line of each function and class below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        is_scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = f"{name}.{child.name}" if is_scope else name
        if is_scope:
            yield inner, min(line.lineno for line in (child, *child.decorator_list)), child.end_lineno
        yield from spans(child, inner)


@cache
def functions() -> list[tuple[str, Path, int, int]]:
    """Each module, class and function of the package: qualified name, path, where its text begins and where it ends."""
    entries = []
    for path, text in modules().items():
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        module = ".".join(path.with_suffix("").parts)
        entries.append((module, path, 0, len(text)))
        entries += [(name, path, starts[a - 1], starts[b]) for name, a, b in spans(ast.parse(text), module)]
    return entries


def mutated(mutant: Mutant) -> tuple[Path, str]:
    """The path within the tree of the file that the mutant changes, and its text with the change made.

    Raises
    ------
    ValueError
        Its text does not occur in its function, or occurs several times: update the mutant.
    """
    if mutant.function.startswith("kernels/"):
        whole = (ROOT / mutant.function).read_text(encoding="utf-8")
        scopes, texts = [(Path(mutant.function), 0, len(whole))], {Path(mutant.function): whole}
    else:
        scopes = [scope for name, *scope in functions() if f".{name}".endswith(f".{mutant.function}")]
        texts = modules()
    places = {
        (path, place.start())
        for path, start, end in scopes
        for place in re.compile(re.escape(mutant.text)).finditer(texts[path], start, end)
    }
    if len(places) != 1:
        raise ValueError(
            f"mutant {mutant.name}: its text is {len(places)} times in {mutant.function}, not once; aim it anew"
        )
    ((path, place),) = places
    return path, texts[path][:place] + mutant.by + texts[path][place + len(mutant.text) :]


def judge(mutant: Mutant) -> tuple[str, float, str]:
    """Make the mutant in a copy of the tree and run its tests; return the verdict, seconds, and the output's end."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = Path(folder)
        for name in COPIED:
            given = ROOT / name
            copy = shutil.copytree if given.is_dir() else shutil.copy
            copy(given, tree / name)
        try:
            path, text = mutated(mutant)
        except ValueError as error:
            return "not applicable", 0.0, str(error)
        (tree / path).write_text(text, encoding="utf-8")
        files = [str(tree / "tests" / name) for name in mutant.tests.split()]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-o", "addopts=", "-p", "no:cacheprovider"]
        command += ["-m", "not gpu and not catalog", *(["-k", mutant.chosen] if mutant.chosen else []), *files]
        own = os.environ | {"PYTHONPATH": str(tree), "HYPOTHESIS_DATABASE": "none"}
        try:
            done = subprocess.run(
                command, cwd=tree, env=own, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return "killed", time.monotonic() - began, "no end"
    if done.returncode < 0:
        return "killed", time.monotonic() - began, "a signal"
    ways = {0: "equivalent" if mutant.equivalent else "survived", 1: "killed"}
    said = mutant.equivalent or done.stdout[-2000:]
    return ways.get(done.returncode, "not run"), time.monotonic() - began, said


def main() -> int:
    """Judge the selected mutants; return 1 if any survived or could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.mutants", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all mutants otherwise")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.names or any(part in m.name for part in given.names)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, (came, seconds, said) in zip(chosen, pool.map(judge, chosen), strict=True):
            counts[came] += 1
            print(f"{came:14} {mutant.name:22} {seconds:5.0f} s  {mutant.function}", flush=True)
            if came not in ("killed", "equivalent"):
                print("    " + said.replace("\n", "\n    "), flush=True)
    print(", ".join(f"{number} {came}" for came, number in counts.items()))
    return int(counts.keys() - {"killed", "equivalent"} != set())


if __name__ == "__main__":
    sys.exit(main())
