# ruff: noqa: E501
"""Mutants: small changes of the code, each of which some test must notice.

`python -m tests.mutants --jobs 2` makes each mutant in a copy of the tree, runs the tests that are named for it, and
reports which were killed and which survived; arguments select mutants by name or part of a name. Only mutants that
state why they change nothing may survive. If the text of a place is rewritten, its mutants must be updated:
`test_mutants.py` fails where a text does not occur exactly once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("dasktc", "kernels", "tests", "pyproject.toml")
SECONDS = 600
"""Longest run of a mutant's tests, in seconds; tests that take longer hang, which counts as noticed."""


class Mutant(NamedTuple):
    """A text in a file, its replacement, and the tests that notice it: files, and an expression for pytest's -k."""

    name: str
    path: str
    text: str
    by: str
    tests: str
    chosen: str = ""
    equivalent: str = ""
    """Why the mutant changes nothing, if it does not."""


def _m(name: str, path: str, text: str, by: str, tests: str, chosen: str = "", equivalent: str = "") -> Mutant:
    if not path.startswith("kernels/"):
        path = f"dasktc/{path}"
    return Mutant(name, path, text, by, tests, chosen, equivalent)


def _race(file: str, text: str, by: str, of: str = "", equivalent: str = "") -> Mutant:
    """Make a mutant of a kernel file, for the race detector; `of` is the kernel whose work runs the file."""
    of = of or Path(file).stem
    number = sum(mutant.name.startswith(f"race-{file}") for mutant in RACES)
    name, tests = f"race-{file}-{number + 1}", "test_races.py"
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
_race("edges.cu", *without("1u); }\n    }\n    __syncthreads();", SYNC))
_race("edges.cu", *without("    ranges.clear(borders + 1);\n    __syncthreads();", SYNC))
_race("edges.cu", *without("  ranges.clear(borders + 1);\n  __syncthreads();\n  for (int64 k = first_of()", SYNC))
_race("edges.cu", *without("{ own[r] = 0; }\n  __syncthreads();", SYNC))
_race("edges.cu", "atomicOr(word, bit);", "*word |= bit;")
_race("edges.cu", "{ atomicAdd(degrees + high, run); }", "{ degrees[high] += run; }")
_race("edges.cu", "atomicAdd(degrees + (keys[k] >> shift), 1u);", "degrees[keys[k] >> shift] += 1u;")
_race("edges.cu", "place[i] = atomicAdd(ranges.counts + range[i], 1u);", "place[i] = ranges.counts[range[i]]++;")
_race("edges.cu", "    atomicMax(facts, low);\n", "    facts[0] = max(facts[0], low);\n")
_race("vertices.cu", "atomicAdd(usual + value, 1u);", "usual[value] += 1u;")
_race("vertices.cu", "atomicAdd(counts + value, uint64(1));", "counts[value] += 1;")
_race("vertices.cu", *without("{ usual[k] = 0; }\n  __syncthreads();", SYNC))
_race("trust.cu", *without("    uint32 next = shared.row;\n    __syncthreads();", SYNC))
_race("trust.cu", *without("shared.row = atomicAdd(&lists->block_next, chunk); }\n    __syncthreads();", SYNC))
_race("trust.cu", *without("(lists.ends[rank] - size);\n  TeamOf<WIDE>::sync();", "TeamOf<WIDE>::sync();"))
_race("trust.cu", "    if (all == 0) { TeamOf<WIDE>::sync(); }", "")
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

KERNELS = "test_cuda_kernels.py"
EXACT = "test_counts_are_exact and not device"
MUTANTS = [
    *RACES,
    # from edges to blocks
    _m("rows-read", "pipeline/canonicalize.py", "return frame, _Counts(rows, loops, Span", "return frame, _Counts(rows + 1, loops, Span", "test_contracts.py", "rows_read"),
    _m("splitter-lost", "pipeline/canonicalize.py", 'starts = splitters(executor, "canonical", given.handles, rows, count)', 'starts = splitters(executor, "canonical", given.handles, rows, count)[1:]', "test_contracts.py", "equally_large"),
    _m("partitions-budget", "pipeline/canonicalize.py", "if edges < min(ONE_PARTITION, largest):", "if edges <= ONE_PARTITION:", "test_contracts.py", "few_edges"),
    _m("loops-kept", "backends/cpu/edges.py", "return kept[0][:-1], kept[1][:-1], loops, low, high", "return *given, loops, low, high", "test_contracts.py", "rows_read"),
    _m("cut-chunks", "backends/cpu/radix.py", "behind -= len(chunk) - (front - before)", "behind -= len(chunk)", "test_stages.py", "keys_are_cut"),
    _m("cut-border", "backends/cpu/radix.py", "np.int64(key < border)", "np.int64(key <= border)", "test_stages.py", "keys_are_cut"),
    _m("rows-go-on", "backends/cpu/shared_arrays.py", "columns, edge, row, offsets", "columns, edge, 0, offsets", "test_stages.py", "batch_by_batch"),
    _m("distinct-kept", "pipeline/edge_keys.py", "        kept += len(once)\n", "        kept += len(batch)\n", "test_stages.py", "several_arrays"),
    _m("lately-renewed", "executors/dask/faults.py", "        self._latest = time.monotonic(), threads\n", "", "test_stages.py", "asks_seldom"),
    _m("order-overflow", "pipeline/orient.py", "if (top + 1) << bits > 2**63 - 1:", "if (top + 1) << bits > 2**66 - 1:", "test_past_32_bits.py", "weights"),
    _m("order-ties", "pipeline/orient.py", "    keys *= -1\n    keys += top\n", "", "test_reorder.py", "order_by_is_a_stable"),
    _m("share-begins", "planning/grid.py", "return vector[(part - first) % self.parts :: self.parts]", "return vector[part % self.parts :: self.parts]", "test_contracts.py", "share"),
    _m("slabs-spread", "pipeline/build_blocks.py", "at = [where.get(place) if len(places) >= executor.workers else None for place", "at = [where.get(place) for place", "test_contracts.py", "slabs"),
    _m("ranks-memory", "pipeline/orient.py", " or len(degrees) ** 2 * size > edges:", ":", "test_stages.py", "rank_for_themselves"),
    _m("slabs-unequal", "pipeline/orient.py", "rows[len(rows) * number // ranges]", "rows[len(rows) * number // (ranges + 1)]", "test_stages.py", "about_equally"),
    _m("urgent", "executors/dask/executor.py", '"priority": int(urgent)', '"priority": 0', "test_stages.py", "while_the_plan"),
    _m("plan-first", "pipeline/orient.py", ", [planner], urgent=True", ", [planner]", "test_stages.py", "while_the_plan"),
    _m("pieces-first", "pipeline/shuffle.py", "prefer=at[k], urgent=True)", "prefer=at[k])", "test_stages.py", "while_the_plan"),
    _m("slabs-rows", "pipeline/build_blocks.py", "    offsets = offsets[: layout.rows.sizes[place[0]] + 1]", "    offsets = offsets[:]", "test_stages.py", "while_the_plan"),
    _m("slabs-kept", "pipeline/orient.py", "        taken, self.slabs[:] = list(self.slabs), []\n", "        taken = list(self.slabs)\n", "test_stages.py", "while_the_plan"),
    _m("heap-kept", "backends/calls.py", "            heap.call_ended(on_worker)\n", "", "test_heap.py", "goes_back"),
    _m("heap-budget", "backends/heap.py", "    _malloc.rest()\n", "", "test_heap.py", "until_calls_have_ended"),
    _m("heap-begins", "backends/calls.py", "        heap.call_begins(on_worker)\n", "        pass\n", "test_heap.py", "from_the_first_call"),
    _m("heap-inherited", "executors/connect.py", "            yield\n    finally:\n        _forget_keeping()\n", "            yield\n    finally:\n        pass\n", "test_heap.py", "workers_keep"),
    _m("block-size", "backends/csr.py", "return object.__sizeof__(self) + self.nbytes", "return object.__sizeof__(self)", "test_count.py", "blocks_know_their_size"),
    _m("shard-bands", "pipeline/orient_sharded.py", "    _refuse_beyond(bands, bits)\n", "", "test_contracts.py", "bands_of_more_vertices"),
    _m("shard-numbers", "pipeline/sharded/unique.py", 'numbers = ops.find(values, among).astype("int32")', 'numbers = ops.find(values, among).astype("int16").astype("int32")', "test_past_32_bits.py", "numbers_of_a_shard"),
    _m("shard-samples", "pipeline/sharded/unique.py", "SAMPLES, MARGIN = 256, 1.1", "SAMPLES, MARGIN = 2, 1.1", "test_shards.py", "about_equal"),
    _m("shard-first", "pipeline/sharded/unique.py", "    numbers += first\n", "", "test_shards.py", "numbered_in_ascending"),
    _m("remainders", "pipeline/build_blocks.py", "if graph.residues is not None and parts and RESIDUES % parts == 0:", "if graph.residues is not None and parts and RESIDUES >= parts:", "test_on_gpu.py", "dealt_to_ranges"),
    _m("wedges-passes", "pipeline/orient.py", "    for start in range(0, len(inward), CHUNK):", "    for start in range(0, max(1, len(inward) - 1), CHUNK):", "test_past_32_bits.py", "several_passes"),
    # planning
    _m("parts-as-vertices", "planning/plan.py", "last = min(MAX_PARTS, max(first, most))", "last = min(MAX_PARTS, max(first, most - 1))", "test_contracts.py", "as_many_parts"),
    _m("triple-bytes", "planning/memory_model.py", "((stream != index) & (stream != table))", "(stream != table)", "test_contracts.py", "block_that_a_task_has_twice"),
    _m("triple-bytes-table", "planning/memory_model.py", "once = held[index] + held[table] * (table != index)", "once = held[index] + held[table]", "test_contracts.py", "block_that_a_task_has_twice"),
    _m("replica-lru", "planning/placement.py", "            self._held.pop(block, None)\n            self._held[block] = None", "            self._held.setdefault(block, None)", "test_contracts.py", "used_longest_ago"),
    _m("takes-over", "planning/placement.py", "longest = own or max(self._left.values(), key=len)", "longest = own or max(reversed(self._left.values()), key=bool)", "test_contracts.py", "most_left"),
    _m("takes-over-end", "planning/placement.py", "return longest.popleft() if own else longest.pop()", "return longest.popleft()", "test_contracts.py", "most_left"),
    _m("parts-bound", "planning/plan.py", "parts > scheme.bound[0]", "parts >= scheme.bound[0]", "test_proxies.py", "bits_are"),
    _m("measured-last", "planning/plan.py", "            measure(leaner.partition, leaner.parts)  #", "            pass  #", "test_contracts.py", "measured_last"),
    _m("lean-asked", "planning/scratch.py", "if automatic else None", "if lean_kernel(backend) else None", "test_cuda_edges.py", "five_billion"),
    _m("lean-elsewhere", "planning/scratch.py", "if plan.lean and backend == options.chosen_backend:", "if plan.lean:", "test_contracts.py", "elsewhere"),
    _m("call-text", "planning/distribution.py", ' or backend == "cpu" or ids == "text"', ' or backend == "cpu"', "test_contracts.py", "one_call"),
    _m("replica-used", "planning/placement.py", "not in self._built} | self._used.keys()", "not in self._built}", "test_contracts.py", "copies_in_use"),
    _m("loose-bits", "planning/grid.py", "<< bits < 1 << 63 else 0", "<< bits < 1 << 66 else 0", "test_past_32_bits.py", "fit_63"),
    _m("scratch-slab", "planning/scratch.py", "min(block, (memory_per_call or 0) // 4))", "0)", "test_contracts.py", "scratch_out_of_core"),
    _m("sharing-alone", "planning/distribution.py", "sharing = rates.sharing if workers > 1 else 1.0", "sharing = rates.sharing", "test_contracts.py", "work_is_shared"),
    _m("call-threads", "planning/distribution.py", "pipeline_seconds(size, 1, rates, threads), ", "pipeline_seconds(size, 1, rates), ", "test_contracts.py", "work_is_shared"),
    _m("replica-there", "planning/placement.py", "self.held = sum(block_bytes[block] for block in self._held)", "self.held = 0", "test_contracts.py", "at_the_start"),
    _m("splits-seconds", "planning/plan.py", "ceil(work / TASK_SECONDS / scheduled)", "ceil(work / TASK_SECONDS)", "test_contracts.py", "longer_than_the_longest"),
    _m("splits-taken", "planning/plan.py", "limits.splits > plan.splits:", "limits.splits >= plan.splits:", "test_contracts.py", "did_not_fulfil"),
    _m("words", "planning/cost_model.py", "1.95 * of[1]", "1.0 * of[1]", "test_contracts.py", "durations"),
    _m("turns", "planning/cost_model.py", "work * -(-plan.tasks // plan.workers) /", "work * (plan.tasks // plan.workers) /", "test_contracts.py", "in_turns"),
    _m("work-empty", "planning/cost_model.py", "edges[stream] / np.maximum(1, rows[stream])", "edges[stream] / rows[stream]", "test_contracts.py", "empty_blocks"),
    _m("overhead-none", "planning/rates.py", 'above=name != "overhead")', "above=True)", "test_contracts.py", "overhead_may_be"),
    _m("heavy-rows", "planning/schemes.py", "np.minimum(np.ceil(work[heavy] / max(mean, 1)), rows[index[heavy]])", "np.ceil(work[heavy] / max(mean, 1))", "test_contracts.py", "heavy_triple"),
    _m("auto-vectors", "planning/schemes.py", "(pair[1].dealing.unknown or pair[1].dealing.whole_vectors)", "pair[1].dealing.unknown", "test_contracts.py", "keeps_whole_vectors"),
    _m("even-rows", "planning/schemes.py", "        each[:, 1:] = np.maximum(each[:, 1:], 1)\n", "", "test_contracts.py", "lower_bound"),
    # executors
    _m("keepers", "executors/dask/flow_control.py", "key=lambda key: -sizes[key]", "key=lambda key: sizes[key]", "test_contracts.py", "keep_blocks_of_about"),
    _m("copies-threads", "executors/dask/flow_control.py", "capacity = threads * self.capacity -", "capacity = self.capacity -", "test_contracts.py", "memory_of_all_threads"),
    _m("deaths-once", "executors/dask/faults.py", "for error in {future.exception().task: future.exception() for future in killed}.values():", "for error in [future.exception() for future in killed]:", "test_contracts.py", "death_counts_once"),
    _m("deaths-retries", "executors/dask/faults.py", "if self._deaths[error.task] > self.retries:", "if self._deaths[error.task] > self.retries + 1:", "test_contracts.py", "death_counts_once"),
    _m("stranded", "executors/dask/faults.py", '        dask_scheduler.transitions({task.key: "processing" for task in stranded}, f"free-stranded-{token}")\n', "", "test_cluster.py", "preferred_worker_went"),
    _m("stranded-others", "executors/dask/faults.py", "task.loose_restrictions and is_own(task.key) and", "task.loose_restrictions and", "test_cluster.py", "preferred_worker_went"),
    _m("folder-renamed", "executors/spill/claims.py", "    with suppress(OSError):\n        os.rename(folder, gone)\n", "", "test_spill.py", "no_place_to_write"),
    _m("claim-interrupted", "executors/spill/claims.py", "        _remove(folder, *lock)\n        raise", "        raise", "test_spill.py", "signal_at_any_moment"),
    _m("host-alone", "executors/device/store.py", "if handle.places is None and handle.nbytes]", "if handle.places is None]", "test_on_gpu.py", "host_alone"),
    _m("spill-half", "executors/spill/value_files.py", "            file.close()\n        _unlink(path)\n", "            file.close()\n", "test_spill.py", "full_disk"),
    _m("spill-owner", "executors/spill/value_files.py", "        weakref.finalize(self, _unlink, self.path).atexit = False\n", "", "test_spill.py", "goes_with_its_owner"),
    _m("spill-short", "executors/spill/value_files.py", "        if not more:\n            raise EOFError(", "        if not more:\n            break\n            raise EOFError(", "test_spill.py", "cut_short"),
    _m("spill-limit", "executors/spill/file_store.py", "if self._resident() + nbytes <= self._limit:", "if self._resident() <= self._limit:", "test_contracts.py", "what_does_not_fit"),
    _m("spill-largest", "executors/spill/file_store.py", "key=lambda result: -result.nbytes", "key=lambda result: result.nbytes", "test_contracts.py", "largest_results_go"),
    _m("prefetch-capacity", "executors/spill/shared_file_store.py", "mine = owner == run and left.capacity == capacity", "mine = owner == run", "test_contracts.py", "memory_of_each_count"),
    _m("prefetch-run", "executors/spill/shared_file_store.py", "mine = owner == run and left.capacity == capacity", "mine = bool(owner) and left.capacity == capacity", "test_contracts.py", "memory_of_each_count"),
    _m("prefetch-counting", "executors/spill/shared_file_store.py", " if thread not in state.counting]", "]", "test_contracts.py", "second_question"),
    _m("prefetch-dropped", "executors/spill/shared_file_store.py", "        ask(_drop_prefetchers, self._run)\n", "        pass\n", "test_contracts.py", "workers_keep_no_block"),
    # counting
    _m("digest", "counting/checkpoint.py", "for array in (block.offsets, block.columns):", "for array in (block.columns,):", "test_contracts.py", "checkpoint_of_another_block"),
    _m("fsync", "counting/checkpoint.py", "                os.fsync(self._file)\n                self._synced", "                self._synced", "test_contracts.py", "on_the_disk"),
    _m("record-twice", "counting/checkpoint.py", "if self.records.setdefault(job, record).count[:3] != record.count[:3]:", "if False:", "test_checkpoint.py", "task_with_two_counts"),
    _m("visit-memory", "counting/edge_support.py", "    if need > plan.memory:", "    if need > 2 * plan.memory:", "test_contracts.py", "visits_beyond_memory"),
    _m("visit-reserve", "counting/edge_support.py", "needed = min(plan.memory, needed + 2 * nbytes // shares)", "needed = needed", "test_contracts.py", "sums_are_reserved"),
    _m("support-three", "counting/edge_support.py", "    _refuse_unless_three(job, sums.values(), triangles)", "    pass", "test_contracts.py", "of_a_task_that_do_not_add_up"),
    _m("shards-three", "counting/vertex_counts.py", "    refuse_unless(counted == 3 * count, UNEQUAL)", "    pass", "test_contracts.py", "vertices_in_shards"),
    _m("edges-lost", "counting/edge_frames.py", "    refuse_unless(sum(sizes) == graph.edges,", "    refuse_unless(True,", "test_contracts.py", "number_of_edges"),
    _m("edges-sums", "counting/edge_frames.py", "    refuse_unless(total is None or sum(of for _, of in added) == total,", "    refuse_unless(True,", "test_contracts.py", "supports_of_all_edges"),
    _m("corners", "counting/external_ids.py", "ids = np.sort(np.concatenate(dense).take(corners), axis=1)", "ids = np.concatenate(dense).take(corners)", "test_shards.py", "results_are_those"),
    _m("sample-keys", "counting/estimate.py", "x = (2 * seed + number + 1) * STEP % 2**64", "x = (seed + number + 1) * STEP % 2**64", "test_estimate.py", "has_the_key"),
    _m("sample-pilot", "counting/estimate.py", "_sample(graph, counted, size, _key(seed, 1))", "_sample(graph, counted, size, _key(seed, 0))", "test_estimate.py", "has_the_key"),
    _m("interval-high", "counting/estimate.py", "min(wedges, ceil(wedges * high))", "min(wedges, floor(wedges * high))", "test_estimate.py", "value_and_interval"),
    _m("interval-low", "counting/estimate.py", "low=min(value, floor(wedges * low))", "low=min(value, ceil(wedges * low))", "test_estimate.py", "value_and_interval"),
    _m("estimate-rounded", "counting/estimate.py", "value = (2 * wedges * closed + sampled) // (2 * sampled)", "value = wedges * closed // sampled", "test_estimate.py", "value_and_interval"),
    _m("interval-sided", "counting/estimate.py", "(1 + confidence) / 2", "confidence", "test_estimate.py", "value_and_interval"),
    _m("sample-half", "counting/estimate.py", " <= graph.edges / 2 and size <= wedges / 2", " <= graph.edges / 2", "test_estimate.py", "half_of_all_wedges"),
    _m("sample-allowance", "counting/estimate.py", "* (1 - error), error, z)", "* 1, error, z)", "test_estimate.py", "smaller_share"),
    _m("estimate-loops", "counting/estimate.py", "prepared.rows - prepared.loops - graph.edges,", "prepared.rows - graph.edges,", "test_estimate.py", "facts_of_the_graph"),
    _m("sample-size", "counting/estimate.py", "(variance - 2 * square + root)", "(variance + root)", "test_estimate.py", "half_width_needs"),
    _m("update-shards", "counting/update.py", "if plan.shards > 1:", "if plan.shards > 2:", "test_update.py", "in_shards"),
    _m("update-attributes", "counting/update.py", "if graph.prepared.attributes is not None:", "if graph.prepared.attributes is None and False:", "test_update.py", "weights_and_directions"),
    _m("update-text", "counting/update.py", "ascending = pc.array_sort_indices(joined).to_numpy()", "ascending = np.arange(len(joined))", "test_update.py", "text_ids_are_in_ascending"),
    _m("update-chunks", "counting/update.py", "len(wanted) - 1))) + start)", "len(wanted) - 1))))", "test_update.py", "every_chunk"),
    _m("update-bisection", "counting/update.py", "range(int((end - at).max()).bit_length())", "range(int((end - at).max() - 1).bit_length())", "test_update.py", "every_edge_of_a_row"),
    _m("update-known", "counting/update.py", ', updated", triangles=None, size=None)', ', updated", size=None)', "test_update.py", "known_triangles"),
    _m("update-dealing", "counting/update.py", "if not (plan.scheme.once and plan.scheme.dealing is BY_REMAINDER):", "if not plan.scheme.once:", "test_update.py", "plugins_scheme"),
    _m("update-next-row", "counting/update.py", "there = (at < behind) &", "there = (at <= behind) &", "test_update.py", "next_row"),
    _m("update-memory", "counting/update.py", "needed := 3 * largest + 60 * plan.vertices", "needed := 0 * largest", "test_update.py", "beyond_memory"),
    _m("record-seconds", "counting/checkpoint.py", '0 <= seconds < float("inf")', "0 <= seconds", "test_checkpoint.py", "no_task_reports"),
    _m("record-wedges", "counting/checkpoint.py", "record).count[:3] != record.count[:3]", "record).count[:1] != record.count[:1]", "test_checkpoint.py", "two_counts"),
    _m("folder-dangling", "counting/checkpoint.py", "if os.path.lexists(path) and not os.path.isdir(path):", "if os.path.exists(path) and not os.path.isdir(path):", "test_checkpoint.py", "refused_before_anything"),
    _m("begun-columns", "counting/checkpoint.py", 'if options.column_parts is None and taken.get("partition", options.partition) == begun["partition"]:', "if options.column_parts is None:", "test_checkpoint.py", "column_parts_are_not"),
    _m("fsync-late", "counting/checkpoint.py", "if time.monotonic() - self._synced > SYNC_SECONDS:", "if False:", "test_contracts.py", "on_the_disk"),
    _m("clique-tasks", "counting/cliques.py", "sorted(tasks) != list(range(splits)) or sum(wedges) != graph.prepared.wedges", "sum(wedges) != graph.prepared.wedges", "test_cliques.py", "came_twice"),
    _m("ratios-infinite", "counting/weighted_clustering.py", "if any(not np.isfinite(roots).all()", "if any(False and not np.isfinite(roots).all()", "test_attributes.py", "beyond_float64_are_refused_and"),
    _m("estimate-total", "counting/estimate.py", '"total": sum(before.values()) + time.perf_counter() - began}', '"total": time.perf_counter() - began}', "test_estimate.py", "total_has"),
    _m("estimate-mixed", "counting/estimate.py", "    if places != triple.places:", "    if False:", "test_estimate.py", "mixed_up"),
    _m("estimate-least", "counting/estimate.py", "least = 2 * SAMPLE_EDGES * PILOT", "least = SAMPLE_EDGES * PILOT", "test_estimate.py", "does_not_pay"),
    _m("sample-least", "counting/estimate.py", "width = max(1, wedges // size)", "width = max(1, -(-wedges // size))", "test_estimate.py", "at_least_as_many"),
    _m("sample-closed", "counting/estimate.py", "(last > 0) or closed > sampled:", "(last > 0):", "test_estimate.py", "repeated_wedges"),
    _m("update-choice", "counting/update.py", "vertices=size.vertices, choice=plan.choice))", "vertices=size.vertices))", "test_update.py", "plan_of_the_new_graph"),
    _m("update-edges", "counting/update.py", "if not size.edges == held == plan.edges + counts.added - counts.removed:", "if size.edges != held:", "test_update.py", "old_edges_and_those"),
    _m("update-block", "counting/update.py", "    check_edges(made, edges)\n", "", "test_update.py", "while_a_block_is_written"),
    _m("update-size", "counting/update.py", "    check_size(size.vertices)\n", "", "test_update.py", "32_bits_are_refused"),
    _m("record-text", "counting/checkpoint.py", "value.isprintable() and len(value) <= LONGEST", "value.isprintable()", "test_checkpoint.py", "no_task_reports"),
    _m("fsync-seldom", "counting/checkpoint.py", "                self._synced = time.monotonic()\n", "", "test_contracts.py", "on_the_disk"),
    _m("values-wedges", "counting/weighted_clustering.py", "    if wedges != graph.prepared.wedges:", "    if False:", "test_attributes.py", "lost_or_repeated"),
    _m("values-none", "counting/weighted_clustering.py", "if kept.largest == 0 and graph.edges:", "if kept.largest == 0:", "test_attributes.py", "loops_alone"),
    # readers and writers
    _m("binary", "io/files.py", r'rb"[\x00-\x08\x0e-\x1f]"', r'rb"[\x00-\x08]"', "test_contracts.py", "control_bytes"),
    _m("metis-entries", "io/formats/metis.py", "if 2 * header.edges not in (neighbours, neighbours + loops):", "if 2 * header.edges not in (neighbours, neighbours + loops, neighbours - 1):", "test_contracts.py", "metis"),
    _m("metis-ids", "io/formats/metis.py", "np.int32 if header.vertices < 1 << 31 else np.int64", "np.int32", "test_past_32_bits.py", "metis"),
    _m("lines-ids", "io/formats/entries.py", "np.int32 if self.ids.stop <= 1 << 31 else np.int64", "np.int32 if self.ids.stop <= 1 << 32 else np.int64", "test_past_32_bits.py", "lines"),
    _m("bvgraph-ids", "io/formats/bvgraph.py", "np.int32 if properties.nodes < 1 << 31 else np.int64", "np.int32", "test_past_32_bits.py", "nodes_of_a_bvgraph"),
    _m("publish-back", "io/write.py", 'hidden / "replaced" if os.path.lexists(target) else target', 'hidden / "replaced"', "test_write.py", "puts_the_old_folder_back or leaves_the_old_or_the_new"),
    _m("publish-aside", "io/write.py", "    if os.path.lexists(aside):\n", "    if False:\n", "test_write.py", "replaced_by_force"),
    # saved graphs
    _m("array-left", "saved/arrays.py", "            os.unlink(temporary)", "            pass", "test_saved_graph.py", "leaves_no_file"),
    _m("manifest-first", "saved/folder.py", "return [MANIFEST, *(name for name in entries if name != MANIFEST)]", "return sorted(entries, reverse=True)", "test_saved_graph.py", "goes_first"),
    _m("kernel-lean", "saved/writing.py", "kernel=None if plan.lean else options.chosen_kernel", "kernel=options.chosen_kernel", "test_cuda_edges.py", "saved_where"),
    _m("assign-file", "saved/writing.py", 'assign="random" if options.assign_file else str(options.assign),', "assign=str(options.assign),", "test_saved_graph.py", "without_the_file"),
    _m("saved-numbers", "saved/opening.py", 'if files.below is not None and len(part) and int(part.view("uint32").max()) >= files.below:', 'if files.below is not None and len(part) and int(part.view("uint32").max()) > files.below:', "test_saved_graph.py", "hostile_vectors"),
    _m("saved-narrow", "saved/writing.py", "narrow = not len(values) or (values[0] >= -(2**31) and values[-1] < 2**31)", "narrow = not len(values) or (values[0] >= -(2**31) and values[-1] <= 2**31)", "test_saved_graph.py", "border_of_32_bits"),
    _m("saved-secrets", "saved/writing.py", "name=without_secrets(source.name),", "name=source.name,", "test_saved_graph.py", "no_secret"),
    _m("saved-short", "saved/folder.py", "if held is not None and held < size:", "if held is not None and held + 1 < size:", "test_saved_graph.py", "every_byte"),
    _m("saved-kernel", "saved/opening.py", "and backend == manifest.backend and kept", "and kept", "test_saved_graph.py", "another_backend"),
    _m("saved-parts", "saved/opening.py", "max(vertices, manifest.method.parts),", "vertices,", "test_saved_graph.py", "fewer_vertices"),
    _m("saved-known", "saved/writing.py", "triangles=source.triangles,", "triangles=None,", "test_saved_graph.py", "known_triangles"),
    _m("saved-text", "saved/opening.py", '    if saved.ids == "text":\n        budget', '    if saved.ids == "never":\n        budget', "test_saved_graph.py", "long_text"),
    _m("saved-ids", "saved/opening.py", "if options.ids not in (None, ids):", "if options.ids is not None:", "test_saved_graph.py", "change_nothing"),
    _m("array-twice", "saved/arrays.py", 'temporary = f"{url}.{uuid4().hex[:8]}"', 'temporary = f"{url}.new"', "test_saved_graph.py", "runs_twice"),
    _m("folder-slash", "saved/folder.py", "{links[place].rstrip('/')}/{name}", "{links[place]}/{name}", "test_saved_graph.py", "names_of_files"),
    _m("saved-whole", "saved/opening.py", 'free = {"parts": scheme.replicated,', 'free = {"parts": False,', "test_saved_graph.py", "change_nothing"),
    _m("saved-splits", "saved/opening.py", 'kept["splits"] = options.splits', "pass", "test_saved_graph.py", "change_nothing"),
    # kernels of the CPU
    _m("trust-deep", "backends/cpu/sizes.py", "return max(DEPTH, -(-2 * longest // LARGE))", "return max(DEPTH, -(-longest // LARGE))", "test_contracts.py", "half_empty"),
    _m("trust-small", "backends/cpu/intersect.py", "        bucket = (bucket + U(1)) & (buckets - U(1))\n    slots", "        bucket = (bucket + U(1)) & U(1023)\n    slots", "test_kernels.py", "hash_alike or fill_the_table", "a small table holds 100 entries at most, and a bucket 128: none is ever full; of a large one the masks are equal"),
    _m("visit-bytes", "backends/cpu/visit.py", "return 4 * edges + 5 * columns", "return 4 * edges + 4 * columns", "test_contracts.py", "visits_take"),
    _m("deferred", "backends/cpu/sizes.py", "MOST = (1 << 31) - 1", "MOST = (1 << 33) - 1", "test_past_32_bits.py", "deferred"),
    _m("hub-reach", "backends/cpu/hub.py", "table[u + 1] - table[begin] > REACH", "table[u + 1] - table[begin] > 4 * REACH", "test_past_32_bits.py", "put_off_may_stand_far"),
    _m("hub-reach-vertices", "backends/cpu/hub_support.py", "(deferred + length(index, u) > most or table[u + 1] - table[begin] > REACH)", "(deferred + length(index, u) > most or table[u + 1] - table[begin] > 4 * REACH)", "test_past_32_bits.py", "put_off_may_stand_far"),
    _m("hub-reach-edges", "backends/cpu/hub_support.py", "            or table[u + 1] - table[begin] > REACH\n", "", "test_past_32_bits.py", "supports_of_lists_that_stand_far"),
    # sums past 32 bits, and past what float64 holds
    _m("probes-sum", "counting/tasks.py", "sum(probes), max(collisions)", "int(float(sum(probes))), max(collisions)", "test_past_32_bits.py", "reports_of_tasks"),
    _m("wedges-sum", "counting/tasks.py", "if handled != wedges:", "if float(handled) != float(wedges):", "test_past_32_bits.py", "wedges_of_tasks"),
    _m("probes-frame", "counting/result.py", "return pd.DataFrame(rows, columns=names)", 'return pd.DataFrame(rows, columns=names).astype({"probes": "float64"})', "test_past_32_bits.py", "probes_in_a_result"),
    _m("probes-json", "counting/result.py", '"probes": self.stats.probes,', '"probes": float(self.stats.probes),', "test_past_32_bits.py", "probes_in_a_result"),
    _m("report-join", "counting/html_report.py", "totals.reindex(names, fill_value=0)", "totals.reindex(names).fillna(0)", "test_past_32_bits.py", "tasks_in_a_report"),
    _m("report-narrow", "counting/html_report.py", 'totals["triangles"].to_numpy(),', 'totals["triangles"].to_numpy("int32"),', "test_past_32_bits.py", "tasks_in_a_report"),
    _m("progress-probes", "counting/work.py", "self._probes += count.probes", "self._probes += float(count.probes)", "test_past_32_bits.py", "progress_says"),
    _m("progress-workers", "counting/work.py", "of[1] + count.probes", "float(of[1] + count.probes)", "test_past_32_bits.py", "progress_says"),
    _m("checkpoint-count", "counting/checkpoint.py", '"count": list(record.count)', '"count": [float(number) for number in record.count]', "test_past_32_bits.py", "checkpoint_keeps"),
    _m("wedges-arrays", "pipeline/orient.py", "wedges += (int((of * (by >> 20)).sum()) << 20) + int((of * (by & ((1 << 20) - 1))).sum())", "wedges += int((of * by).sum())", "test_past_32_bits.py", "wedges_of_degrees"),
    _m("wedges-compiled", "backends/cpu/vertices.py", "high += inward * (out >> 20)", "high += np.uint32(inward * (out >> 20))", "test_past_32_bits.py", "wedges_of_degrees"),
    _m("wedges-rows", "backends/wedge_sample.py", "wedges += (int((of * (by >> 20)).sum()) << 20) + int((of * (by & ((1 << 20) - 1))).sum())", "wedges += int((of * by).sum())", "test_past_32_bits.py", "wedges_of_long_rows"),
    _m("wedges-numbered", "counting/estimate.py", "if wedges > MOST:", "if wedges > 4 * MOST:", "test_past_32_bits.py", "number_are_counted"),
    _m("wedge-place", "backends/cpu/wedges.py", "1 + 8.0 * place", "1 + 8 * place", "test_past_32_bits.py", "found_by_their_numbers and cpu"),
    _m("wedge-place-device", "kernels/wedges.cu", "8.0 * double(place)", "double(8 * place)", "test_past_32_bits.py", "found_by_their_numbers and cuda"),
    _m("pairs", "counting/vertex_counts.py", "return ((int((others * high).sum()) << 20) + int((others * low).sum())) // 2", "return int((others * degree).sum()) // 2", "test_past_32_bits.py", "pairs_of_neighbours"),
    _m("pairs-directed", "counting/triad_census.py", "return (int((a * (b >> 20)).sum()) << 20) + int((a * (b & ((1 << 20) - 1))).sum())", "return int((a * b).sum())", "test_past_32_bits.py", "pairs_of_neighbours"),
    _m("hub-probes", "backends/cpu/hub.py", "                probes += b if b <= SHORT else min(a, b)\n", "                probes = np.int32(probes + (b if b <= SHORT else min(a, b)))\n", "test_past_32_bits.py", "probes_of_a_complete"),
    _m("merge-probes", "backends/cpu/intersect.py", "probes += cut - first + row_end - row", "probes = np.uint32(probes + cut - first + row_end - row)", "test_past_32_bits.py", "wedges_of_a_task and not device"),
    _m("merge-wedges", "backends/cpu/intersect.py", "wedges += length(offsets, columns[p])", "wedges = np.uint32(wedges + length(offsets, columns[p]))", "test_past_32_bits.py", "wedges_of_a_task and not device"),
    _m("thread-probes", "kernels/csr.cuh", "uint64 triangles = 0, wedges = 0, probes = 0;", "uint64 triangles = 0, wedges = 0;\n  uint32 probes = 0;", "test_past_32_bits.py", "wedges_of_a_task_on_a_device"),
    _m("warp-sums", "kernels/csr.cuh", "__device__ __forceinline__ uint64 warp_sum(uint64 x) {", "__device__ __forceinline__ uint32 warp_sum(uint32 x) {", "test_past_32_bits.py", "wedges_of_a_task_on_a_device"),
    _m("expected-probes", "backends/cpu/probes.py", "int(rule(lengths).sum())", 'int(rule(lengths).sum(dtype="int32"))', "test_past_32_bits.py", "expected_probes and cpu"),
    _m("expected-probes-device", "backends/cuda/probes.py", "_lengths(xp, task, u, v)), macros).sum())", '_lengths(xp, task, u, v)), macros).sum(dtype="int32"))', "test_past_32_bits.py", "expected_probes and cuda"),
    _m("sides", "counting/vertex_counts.py", 'counts = xp.zeros(vertices, dtype="int64")', 'counts = xp.zeros(vertices, dtype="float64")', "test_past_32_bits.py", "whole_numbers"),
    _m("sides-checked", "counting/vertex_counts.py", "count is None or int(counts.sum()) == 3 * count", 'count is None or int(counts.sum(dtype="float64")) == 3 * count', "test_past_32_bits.py", "whole_numbers"),
    _m("sides-shards", "counting/vertex_counts.py", "return int(vector.sum())", 'return int(vector.sum(dtype="float64"))', "test_past_32_bits.py", "whole_numbers"),
    _m("sides-total", "pipeline/orient.py", "result = vectors.pop().copy()", 'result = vectors.pop().astype("float64")', "test_past_32_bits.py", "whole_numbers"),
    _m("ends-sums", "backends/cpu/visit.py", "            at_row[u] += values[p]\n", "            at_row[u] = np.uint32(at_row[u] + values[p])\n", "test_past_32_bits.py", "added_up_at_both_ends"),
    _m("ends-sums-device", "backends/cuda/visit.py", 'xp.add.at(at_column.view("uint64"), block.columns[start:stop], more)', 'at_column += xp.bincount(block.columns[start:stop], more, len(at_column)).astype("int32")', "test_past_32_bits.py", "added_up_at_both_ends"),
    _m("facts-sums", "kernels/answers.cu", "  uint64 sum = 0;\n", "  uint32 sum = 0;\n", "test_past_32_bits.py", "device_adds_supports"),
    _m("task-sums", "counting/edge_support.py", 'int(array.sum(dtype="int64")) for array in sums', 'int(array.sum(dtype="float64")) for array in sums', "test_past_32_bits.py", "compared_with_their_vertices"),
    _m("task-sums-narrow", "counting/edge_support.py", 'int(array.sum(dtype="int64")) for array in sums', 'int(array.sum(dtype="int32")) for array in sums', "test_past_32_bits.py", "compared_with_its_triangles"),
    _m("edges-summed", "counting/edge_frames.py", 'sums = xp.cumsum(values, dtype="int64")[last]', 'sums = xp.cumsum(values, dtype="float64")[last]', "test_past_32_bits.py", "edges_in_several_blocks"),
    _m("edges-added", "counting/edge_frames.py", "return part.shape[1], int(part[1].sum())", 'return part.shape[1], int(part[1].sum(dtype="float64"))', "test_past_32_bits.py", "edges_in_several_blocks"),
    _m("edges-asked", "counting/edge_frames.py", "    counts = np.zeros((2, len(wanted)), np.int64)\n", "    counts = np.zeros((2, len(wanted)), np.float64)\n", "test_past_32_bits.py", "edges_in_several_blocks"),
    _m("vertices-asked", "counting/vertex_frames.py", "np.empty(len(dense), parts[0][1][number].dtype if parts else np.int64)", "np.empty(len(dense))", "test_past_32_bits.py", "in_every_answer"),
    _m("vertices-placed", "counting/vertex_frames.py", "array_module(values).empty_like(values)", "array_module(values).empty(len(values))", "test_past_32_bits.py", "in_every_answer"),
    _m("vertices-moved", "pipeline/sharded/vectors.py", 'return backend.array.full(size, value, dtype="int64")', 'return backend.array.full(size, value, dtype="float64")', "test_past_32_bits.py", "in_every_answer"),
    _m("vertices-most", "counting/distributions.py", "on_host(of.take(places)).astype(np.int64) for of", "on_host(of.take(places)).astype(np.float64) for of", "test_past_32_bits.py", "in_every_answer"),
    _m("far-merged", "backends/cpu/intersect.py", "        x, y = left[U(i)], right[U(j)]\n        common", "        x, y = left[np.uint32(i)], right[U(j)]\n        common", "test_past_32_bits.py", "kernels_find_rows and merge"),
    _m("far-searched", "backends/cpu/intersect.py", "for p in range(U(i), U(i_end)):", "for p in range(np.uint32(i), np.uint32(i_end)):", "test_past_32_bits.py", "kernels_find_rows and search"),
    _m("far-walked", "kernels/csr.cuh", "row.first = t.same ? row.begin : t.table.offsets[row.u];", "row.first = t.same ? row.begin : int32(t.table.offsets[row.u]);", "test_past_32_bits.py", "kernels_of_a_device_find and plain"),
    _m("far-binned", "kernels/lrb.cuh", "t.table.columns + t.table.offsets[list.u(e)]", "t.table.columns + int32(t.table.offsets[list.u(e)])", "test_past_32_bits.py", "kernels_of_a_device_find and merge"),
    _m("far-edges", "backends/cpu/edge_columns.py", "v, i = np.int64(column_ids[U(columns[U(p)])]), U(p - start)", "v, i = np.int64(column_ids[U(columns[np.uint32(p)])]), U(p - start)", "test_past_32_bits.py", "far_behind"),
    # places beyond 32 bits, and kernels of a device
    _m("device-ends", "backends/cuda/visit.py", 'xp.arange(start, stop, dtype="int64")', 'xp.arange(start, stop, dtype="int32")', "test_past_32_bits.py", "places_of_edges"),
    _m("key-columns", "kernels/edges.cu", "place % uint64(columns));", "uint32(place) % uint32(columns));", "test_past_32_bits.py", "columns_of_keys"),
    _m("key-mask", "kernels/edges.cu", "place & (columns - 1) :", "(place & 0xffff) & (columns - 1) :", "test_past_32_bits.py", "columns_of_keys"),
    _m("key-bound", "kernels/edges.cu", "bound = start + r * columns;", "bound = start + int32(r * columns);", "test_past_32_bits.py", "columns_of_keys"),
    _m("hub-records", "kernels/hub.cuh", "return uint64(start >> 2) << 32 |", "return uint64(uint32(start >> 2) & 0x3fffffff) << 32 |", KERNELS, "beyond_32_bits and hub"),
    _m("wedge-sums", "kernels/vertices.cu", "uint64 out = outward[rank[v]], in = degree[v] - out;", "uint32 out = outward[rank[v]], in = degree[v] - out;", "test_cuda_vertices.py", "wedges_pass"),
    _m("merged", "kernels/csr.cuh", "bool up = x <= y, down = y <= x;", "bool up = x <= y, down = y < x;", KERNELS, f"{EXACT} and plain"),
    _m("walk-cut", "kernels/csr.cuh", "if (t.same && t.shift == 0) { return p - first; }", "if (t.same && t.shift == 0) { return p - first + 1; }", KERNELS, f"{EXACT} and plain"),
    _m("bisected", "kernels/csr.cuh", "return place < end && columns[place] == x;", "return columns[place] == x;", KERNELS, f"{EXACT} and tcstream"),
    _m("owner", "kernels/csr.cuh", "row += end <= e ? step : 0;", "row += end < e ? step : 0;", KERNELS, f"{EXACT} and plain"),
    _m("wedges", "kernels/csr.cuh", "  sums.wedges += b;\n", "  sums.wedges += b > 0;\n", KERNELS, f"{EXACT} and plain"),
    _m("trust-level", "kernels/hash.cuh", "return level + 1;", "return level;", KERNELS, "full_buckets_pass and trust and not device"),
    _m("hash-full", "kernels/hash.cuh", "if (size < depth) { return false; }", "return false;", KERNELS, "full_buckets_pass and trust and not device"),
    _m("lrb-bin", "kernels/lrb.cuh", "return 32 - __clz(int(min(work, 1ll << 31) - 1));", "return 32 - __clz(int(min(work, 1ll << 31)));", KERNELS, "binned"),
    _m("tree", "kernels/tcstream.cu", "int64((node + 1) * many_size >> TOP)", "int64(node * many_size >> TOP)", KERNELS, f"{EXACT} and tcstream"),
    _m("tree-low", "kernels/tcstream.cu", "int64(node * many_size >> TOP)", "int64((node + 1) * many_size >> TOP)", KERNELS, f"{EXACT} and tcstream"),
    _m("tree-halves", "kernels/tcstream.cu", "      highs[waiting] = high;", "      highs[waiting] = place;", "test_cuda_kernels.py", "long_lists"),
    _m("tree-halves-begin", "kernels/tcstream.cu", "      begins[waiting] = middle + 1;", "      begins[waiting] = middle + 2;", "test_cuda_kernels.py", "long_lists"),
    _m("tree-backward", "kernels/tcstream.cu", "max(low, end - back), high, x)", "max(low, end - back + 1), high, x)", "test_cuda_kernels.py", "long_lists"),
    _m("compact", "kernels/edges.cu", "(k == 0 || keys[k - 1] != key)", "(keys[k - 1] != key)", "test_cuda_edges.py", "distinct_among_themselves"),
    _m("degrees-run", "kernels/edges.cu", "uint32 run = later ? __ffs(int(later)) : 32 - lane;", "uint32 run = later ? __ffs(int(later)) : 31 - lane;", "test_cuda_edges.py", "degrees_and_orientation"),
    _m("dense", "kernels/edges.cu", "((1u << (x & 31)) - 1));", "((2u << (x & 31)) - 1));", "test_cuda_edges.py", "canonical_keys"),
    _m("residues", "kernels/edges.cu", "own + high % modulus * modulus + low % modulus", "own + low % modulus * modulus + high % modulus", "test_cuda_edges.py", "by_remainder"),
    _m("order-weight", "kernels/vertices.cu", "(most - weights[v]) << 31 | v", "(most - weights[v]) << 30 | v", "test_cuda_vertices.py", "descending"),
    _m("sort-behind", "kernels/sort.cu", "uint32 own = sum - (d == mask ? behind : 0);", "uint32 own = sum;", "test_cuda_sort.py", "end_within_a_tile"),
    _m("peel-window", "kernels/peel.cu", "} else if (before == end) {", "} else if (before == end + 1) {", "test_truss.py", "levels_of_larger or any_multigraph"),
    _m("peel-once", "kernels/peel.cu", "if ((f_goes && f < e) || (g_goes && g < e)) { return; }", "if (f_goes && f < e) { return; }", "test_truss.py", "levels_of_larger or any_multigraph"),
]  # fmt: skip


def mutated(mutant: Mutant, root: Path = ROOT) -> str:
    """The text of the mutant's file with the change made.

    Raises
    ------
    ValueError
        Its text does not occur, or occurs several times: update the mutant.
    """
    whole = (root / mutant.path).read_text(encoding="utf-8")
    if (times := whole.count(mutant.text)) != 1:
        raise ValueError(f"mutant {mutant.name}: its text is {times} times in {mutant.path}, not once; aim it anew")
    return whole.replace(mutant.text, mutant.by)


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
            (tree / mutant.path).write_text(mutated(mutant, tree), encoding="utf-8")
        except ValueError as error:
            return "not applicable", 0.0, str(error)
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
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all mutants otherwise")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.names or any(part in m.name for part in given.names)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, (came, seconds, said) in zip(chosen, pool.map(judge, chosen), strict=True):
            counts[came] += 1
            print(f"{came:14} {mutant.name:22} {seconds:5.0f} s  {mutant.path}", flush=True)
            if came not in ("killed", "equivalent"):
                print("    " + said.replace("\n", "\n    "), flush=True)
    print(", ".join(f"{number} {came}" for came, number in counts.items()))
    return int(counts.keys() - {"killed", "equivalent"} != set())


if __name__ == "__main__":
    sys.exit(main())
