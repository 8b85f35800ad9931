"""Opens what a call is about: the source, the place where it runs, the backend, and the tracker of its progress.

`triangle_count`, `prepare` and `plan` all begin so; `estimate` and `open_graph` begin with `prepare`.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dasktc.api.progress import showing
from dasktc.api.streams import as_files
from dasktc.backends import ON_DEVICE, get_backend
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.errors import DeviceMemoryError, InputError, neutral_text
from dasktc.executors.base import Executor
from dasktc.executors.connect import connect, threads_here, with_all_threads
from dasktc.executors.memory_budget import limited, within_memory
from dasktc.executors.offers import Offer, memory_of
from dasktc.executors.place import Place
from dasktc.executors.process.ucx import warn_of_tcp
from dasktc.executors.progress.tracker import Progress, Tracker
from dasktc.executors.stores.file_store import blocksize_within
from dasktc.io.id_names import check_two
from dasktc.io.source import ReadOptions, Source
from dasktc.options import AttributeOptions, IdsOption, Options, RunOptions, check_keywords, format_size, read_ids
from dasktc.pipeline.prepare import choose_backend
from dasktc.planning.plan import Plan
from dasktc.planning.start_up import sooner_on_the_cpu
from dasktc.registry import KERNELS, check_choice
from dasktc.saved.opening import SavedGraph, fitted, saved_graph
from dasktc.wording import option

__all__ = ["Call", "as_source", "enter", "on_cpu", "opened", "read_options", "within_free_memory"]

T = TypeVar("T")
log = logging.getLogger("dasktc")

THREAD_BLOCK = 1 << 24
"""Bytes of a file per part if threads share the parts, so that small files, too, have parts for all threads."""


@dataclass(frozen=True)
class Call:
    """A call whose source and place are open."""

    executor: Executor
    """Of the place, with the chosen backend, all threads, and no memory budget."""
    source: Source
    options: Options
    """With the backend chosen and, for a saved graph, what it was saved with."""
    run: RunOptions
    tracker: Tracker
    attributes: AttributeOptions | None
    """Weights and directions that the call keeps."""
    columns: dict[str, Source]
    """The source again for each column of edges that the call keeps, opened with that column."""
    in_process: bool
    """Whether everything runs in this process."""
    why_backend: str
    """For the plan: why the CPU counts although there may be a GPU."""
    connection: ExitStack = field(repr=False)
    """Closes the place when the block ends, unless its content is taken out."""
    offers: list[Offer]
    """What the processes that run calls offered to the backend when it was chosen."""
    why_memory: str = ""
    """For the plan: why there is a budget that nobody gave."""

    def limited(self) -> Executor:
        """Return the executor with the options' memory budget; whoever takes it closes it."""
        return limited(self.executor, self.options.memory, self.run.work_dir, self.run.host_memory)

    def within_memory(self) -> AbstractContextManager[Executor]:
        """Context of the executor with the options' memory budget, whose files are removed afterwards."""
        return within_memory(self.executor, self.options.memory, self.run.work_dir, self.run.host_memory)

    def explained(self, plan: Plan) -> Plan:
        """Return a plan with the reasons for the backend and for counting out of core."""
        choice = "; ".join(filter(None, (plan.choice, self.why_backend)))
        return replace(plan, choice=choice, why="; ".join(filter(None, (plan.why, self.why_memory))))


@contextmanager
def opened(
    question: str,
    source: Any,
    place: Place,
    options: Options,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress | bool | None,
    attributes: AttributeOptions | None = None,
    columns: Iterable[str] = (),
) -> Iterator[Call]:
    """Open a source, then the place where it is read; choose the backend, and close both afterwards.

    Parameters
    ----------
    question : str
        What is asked, for the run's first event.
    source, place, options, reading, run, progress
        As `triangle_count` makes them of its arguments.
    attributes : AttributeOptions, optional
        Weights and directions that the call is to keep; a saved graph has its own. Default: the call keeps none.
    columns : iterable of str
        Names of the columns of edges that the call is to keep.

    Raises
    ------
    InputError
        The source cannot be read, or what is asked for contradicts it.
    ClusterError
        The cluster does not answer.
    """
    if attributes is not None:
        reading = replace(reading, weight=attributes.weight, directed=attributes.directed)
    with as_files(source, place, run) as files:
        data = as_source(files, reading)
        sources = {name: _with_column(files, data, reading, name) for name in columns}
        if isinstance(data, SavedGraph):
            if attributes is not None:
                attributes = _saved_attributes(data, attributes)
            options = fitted(data, options)
        if attributes or sources:
            options = on_cpu(options)
        in_process = threads_here(place, options.backend) > 0
        with showing(progress, asked=question, source=data.name) as tracker, ExitStack() as connection:
            executor, reason = enter(connection, connect(place, options.backend, run)), ""
            # Choose the backend: the CPU where a source is too small for a GPU of this process.
            if in_process and options.backend == "auto" and options.chosen_kernel in KERNELS["cpu"]:
                reason = sooner_on_the_cpu(data.size.stored or None if data.size else None) or ""
            options, offers = choose_backend(executor, replace(options, backend="cpu") if reason else options)
            if options.chosen_backend in ON_DEVICE:
                warn_of_tcp(executor)
            executor = with_all_threads(executor, place, options.chosen_backend)
            if in_process:
                get_backend(options.chosen_backend)  # imported here, so that no stage's time includes it
            yield Call(
                executor, data, options, run, tracker, attributes, sources, in_process, reason, connection, offers
            )


def enter(stack: ExitStack, context: AbstractContextManager[T]) -> T:
    """Enter a context that the stack leaves even if an interrupt comes as soon as it is entered.

    `ExitStack.enter_context` registers a context after it was entered. An interrupt in between would leave its workers
    running for as long as the traceback of the interrupt lives.
    """
    stack.push(context)
    return context.__enter__()


def within_free_memory(function: Callable[[Call], T], call: Call, again: bool = True) -> tuple[T, Call]:
    """Answer a call; if device memory runs out, answer it `again` with `memory` set to the free memory.

    Returns the answer, and the call with the options with which the function succeeded. If the free memory does not
    suffice either, the first DeviceMemoryError is raised.
    """
    answer = said_in_one_line(function)
    try:
        return answer(call), call
    except DeviceMemoryError as error:
        first = neutral_text(error)
        if not again or call.options.memory is not None:
            raise
    gc.collect()
    memory = memory_of(call.executor)
    reason = (
        f"within {format_size(memory)}, the free memory of the device, because it could not hold everything at once"
    )
    log.info("out of core %s", reason)
    call = replace(call, options=replace(call.options, memory=memory), why_memory=reason)
    with suppress(DeviceMemoryError, InputError):
        return answer(call), call
    raise DeviceMemoryError(first)


def on_cpu(options: Options) -> Options:
    """Return the options with the CPU unless a GPU is asked for.

    Functions of surveys are then given NumPy arrays wherever a graph is prepared, and sums of weights are reproducible.
    """
    return replace(options, backend="cpu") if options.backend == "auto" else options


# reading


def read_options(
    format: str | None = None,
    columns: Sequence[str] | str | None = None,
    ids: IdsOption = "auto",
    skip: int | None = None,
    memory: int | str | None = None,
    threads: int = 0,
) -> ReadOptions:
    """Make the reading options from keywords of `triangle_count`.

    Parts of files are sized to fit `memory`, and kept small if threads of this process share them.
    """
    check_keywords(format=format, columns=columns, skip=skip)
    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split(",")]
    pair = None if columns is None else (str(columns[0]), str(columns[1]))
    if pair:
        check_two(pair, pair)
    if format is not None:  # before a stream is read
        from dasktc.io.files import FORMATS

        check_choice("format", format, FORMATS)
    options = ReadOptions(format, pair, read_ids(ids), skip)
    blocksize = options.blocksize if threads < 2 else THREAD_BLOCK
    return replace(options, blocksize=blocksize if memory is None else blocksize_within(memory, blocksize))


def as_source(source: Any, options: ReadOptions | None = None) -> Source:
    """Open a caller's path, URL or object as a `Source`; a `Source` is returned unchanged.

    A path is checked for a saved graph first, because the files of one are not edge files.
    """
    options = ReadOptions() if options is None else options
    items = source if isinstance(source, list | tuple) else [source]
    data: Source
    if isinstance(source, Source):
        data = source
    elif items and all(isinstance(item, str | os.PathLike) for item in items):
        from dasktc.io.catalogue import open_named

        data = saved_graph(source, options) or open_named(source, options)
    else:
        from dasktc.io.memory import from_object

        data = from_object(source, options)
    if options.sample is not None:
        if isinstance(data, SavedGraph):
            raise InputError(
                f"{option('share')} is given for {data.folder}, a saved graph, whose edges are prepared already: leave "
                "it out, and wedges of all edges are sampled"
            )
        data = replace(data, sample=options.sample, triangles=None)  # what is known of all edges is not of a sample
    if isinstance(data, SavedGraph):
        _check_saved_attributes(data, options)
    elif options.weight is not None and data.weight is None:
        raise InputError(f"{data.name} has no weights: {option('weight', options.weight)} is given; leave it out")
    return data


def _with_column(source: Any, data: Source, options: ReadOptions, name: str) -> Source:
    """Open a source again with a column of edges; InputError if it has no columns by name."""
    if isinstance(source, Source) or isinstance(data, SavedGraph):
        name = f"{data.folder}, a saved graph" if isinstance(data, SavedGraph) else data.name
        raise InputError(
            f"{option('edge_columns')} is given for {name}, which has no columns by name: they are read from "
            "text, CSV and Parquet files and from data frames; prepare one of these"
        )
    return as_source(source, replace(options, weight=name, directed=False, surveyed=True, ids=data.ids))


# weights and directions


def _saved_attributes(graph: SavedGraph, attributes: AttributeOptions) -> AttributeOptions:
    """Return the weights and directions of a saved graph; refuse another way to add up weights."""
    if attributes.duplicates is not None:
        raise InputError(
            f"{option('duplicates', attributes.duplicates)} is given, but {graph.folder} is a saved graph, whose edges "
            "have one weight each: leave it out, or prepare the graph again"
        )
    return graph.attributes


def _check_saved_attributes(graph: SavedGraph, options: ReadOptions) -> None:
    """Refuse (InputError) weights or directions with which the graph was not saved."""
    data = graph.attributes
    if options.weight not in (None, data.weight) or (options.directed and not data.directed):
        direction = option("directed", True)
        request = option("weight", options.weight) if options.weight not in (None, data.weight) else direction
        requests = {option("weight", data.weight): data.weight, direction: data.directed}
        saved_names = " and ".join(name for name, is_saved in requests.items() if is_saved)
        raise InputError(
            f"{request} is given, but {graph.folder} was saved with {saved_names or 'neither weights nor directions'}: "
            "prepare the graph again with it"
        )
