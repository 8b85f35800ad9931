"""A prepared graph, in blocks on the workers, and what can be asked of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from dasktc.count import Blocks, Record, check, count_jobs, jobs, verify_records
from dasktc.errors import CountError, InputError
from dasktc.options import Options
from dasktc.plan import Plan
from dasktc.result import TriangleCount
from dasktc.stages import Prepared, Progress, silent
from dasktc.tasks import Tasks

__all__ = ["Graph"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph that is ready to be counted, again and again; made by `dasktc.prepare`.

    Its blocks stay on the workers (without a client, in this process) for as long as it lives.
    """

    tasks: Tasks = field(repr=False)
    prepared: Prepared = field(repr=False)
    blocks: Blocks = field(repr=False)
    options: Options

    @property
    def plan(self) -> Plan:
        """The plan of its count."""
        return self.prepared.plan

    @property
    def vertices(self) -> int:
        """Vertices with an edge after clean-up."""
        return self.plan.vertices

    @property
    def edges(self) -> int:
        """Distinct undirected edges after clean-up."""
        return self.plan.edges

    def triangle_count(
        self,
        *,
        kernel: str | None = None,
        verify: float = 0.0,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> TriangleCount:
        """Count the triangles.

        Parameters
        ----------
        kernel : str, optional
            Default: the one that the graph was prepared for.
        verify : float
            Share of the tasks, 0 to 1, that are counted again by another kernel.
        seed : int
            Of the choice of those tasks.
        progress : callable (stage, done, total), optional

        Returns
        -------
        TriangleCount

        Raises
        ------
        CountError
            A check failed: there is no result.
        """
        if not 0 <= verify <= 1:
            raise InputError(f"--verify {verify} is not a share: give a number from 0 to 1")
        began, report = time.perf_counter(), progress or silent
        options = self.options if kernel is None else replace(self.options, kernel=kernel)
        plan, work = self.plan, jobs(self.plan, options.chosen_kernel, options.chosen_backend)
        # 7. Count, a task a block triple and split.
        records = []
        report("count", 0, plan.tasks)
        for record in count_jobs(self.tasks, self.blocks, work):
            records.append(record)
            report("count", len(records), plan.tasks)
        ended = time.perf_counter()
        # 8. Check, and add up.
        check(records, plan, self.prepared.graph.wedges)
        verified = 0
        if verify:
            report("verify", 0, 1)
            verified = verify_records(self.tasks, self.blocks, records, verify, seed)
        return self._result(options, sorted(records), verified, ended - began, began)

    def _result(
        self, options: Options, records: list[Record], verified: int, count: float, began: float
    ) -> TriangleCount:
        triangles, known = sum(r.count.triangles for r in records), self.prepared.source.triangles
        if known is not None and triangles != known:
            raise CountError(
                f"{triangles:,} triangles counted, {known:,} are known for {self.prepared.source.name}: "
                "the count or the generator is wrong; report this with the output of `dasktc info`"
            )
        before = self.prepared.seconds
        return TriangleCount(
            triangles=triangles,
            vertices=self.vertices,
            edges=self.edges,
            loops_dropped=self.prepared.loops,
            duplicates_dropped=self.prepared.rows - self.prepared.loops - self.edges,
            backend=options.chosen_backend,
            workers=self.tasks.workers,
            kernel=options.chosen_kernel,
            reorder=self.options.chosen_reorder,
            plan=self.plan,
            seconds={**before, "count": count, "total": sum(before.values()) + time.perf_counter() - began},
            wedges=sum(r.count.wedges for r in records),
            probes=sum(r.count.probes for r in records),
            verified=verified,
            records=records,
        )
