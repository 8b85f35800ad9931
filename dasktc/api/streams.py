"""Reads standard input (`-`) and binary file objects as sources: their bytes go to a file that ends with the call.

The file lets parts be read more than once, by threads and by workers of this host. A folder of its own holds it, in
the work directory, which is removed at the end of the call, after Ctrl-C too, and after SIGKILL by the next run there
(`executors.stores.claims`).
"""

from __future__ import annotations

import io
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from dasktc.errors import DasktcError, InputError, neutral_text
from dasktc.executors.connect import active_client, check_client
from dasktc.executors.place import Place
from dasktc.executors.stores.work_dir import WorkDir, check_place, one_line
from dasktc.io.inputs import STANDARD_INPUT
from dasktc.options import RunOptions
from dasktc.wording import advice, option

__all__ = ["as_files"]

NAME = "stdin"
CHUNK = 1 << 20


@contextmanager
def as_files(source: Any, place: Place, run: RunOptions) -> Iterator[Any]:
    """Read the streams of a source to files, which exist until the block ends.

    A stream can be read once: all options that can be checked without the source are checked before.

    Parameters
    ----------
    source : object
        A source, or a list of them.
    place : Place
        Where the files are to be read.
    run : RunOptions
        Its `work_dir` holds them.

    Yields
    ------
    object
        The source itself if it has no stream, else a list with a file in place of each.

    Raises
    ------
    InputError
        Standard input is closed or named twice, a file object yields text, or workers on other hosts are to read.
    DasktcError
        There is no room for the file.
    """
    items = list(source) if isinstance(source, list | tuple) else [source]
    if not any(map(_is_stream, items)):
        yield source
        return
    _refuse_elsewhere(place)
    check_place(run.work_dir)
    if sum(isinstance(item, str | os.PathLike) and _is_stream(item) for item in items) > 1:
        raise InputError("standard input is named twice: it can be read once; name - once")
    with closing(WorkDir(run.work_dir)) as work:
        files = [_written(item, work, number) if _is_stream(item) else item for number, item in enumerate(items)]
        try:
            yield files
        except DasktcError as error:  # the file is gone when it is read
            text = neutral_text(error)
            for number, item in reversed([*enumerate(items)]):
                if _is_stream(item):
                    name = "standard input" if isinstance(item, str | os.PathLike) else "the stream"
                    text = text.replace(files[number], name)
            raise type(error)(text) from error


def _is_stream(item: Any) -> bool:
    if isinstance(item, str | os.PathLike):
        return os.fspath(item) == STANDARD_INPUT
    return isinstance(getattr(item, "file", item), io.IOBase)  # a temporary file has its file inside


def _written(item: Any, work: WorkDir, number: int) -> str:
    """Copy the rest of a stream to a file; return its path."""
    path = os.path.join(work.folder, f"{NAME}-{number}" if number else NAME)
    stream = _bytes_of(item)
    with one_line(work.folder), open(path, "xb") as file:
        reader = getattr(stream, "read1", stream.read)  # returns after each system call, so that signals are noticed
        while data := reader(CHUNK):
            file.write(data)
    return path


def _bytes_of(item: Any) -> Any:
    """Return the binary stream of standard input, or of a file object."""
    stream = sys.stdin if isinstance(item, str | os.PathLike) else getattr(item, "file", item)
    if stream is None or stream.closed:
        raise InputError("the stream is closed: nothing can be read; open it again, or redirect a file to it")
    stream = getattr(stream, "buffer", stream)
    if isinstance(stream, io.TextIOBase) or not stream.readable():
        raise InputError(
            f"{type(stream).__name__} yields text, or cannot be read: edges are read from bytes; open the file with "
            "mode 'rb', or pass io.BytesIO"
        )
    return stream


def _refuse_elsewhere(place: Place) -> None:
    """Refuse workers that may be on other hosts, because they do not see the file."""
    place_name = None
    if place.scheduler is not None or place.scheduler_file is not None:
        place_name = option(place.names[0])
    elif place.threads is None and place.workers is None:
        client = place.client or active_client()
        if client is not None:
            check_client(client)
        place_name = "a client of workers on other hosts" if client is not None and not _all_here(client) else None
    if place_name is not None:
        raise InputError(
            f"the source is a stream, but {place_name} is given: its bytes go to a file of this host, which other "
            f"hosts do not see; save it to a file that all workers see, or count here with {advice('workers')} or "
            f"{advice('threads')}"
        )


def _all_here(client: Any) -> bool:
    """Return whether every worker of a client runs on this host."""
    from distributed.comm import get_address_host
    from distributed.utils import get_ip

    addresses = {"127.0.0.1", "::1", "localhost", socket.gethostname(), get_ip()}
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return all(get_address_host(address) in addresses for address in workers)
