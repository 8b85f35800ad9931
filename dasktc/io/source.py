"""`Source`: a list of parts that workers read independently; and the options for reading files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dasktc.backends import Backend
from dasktc.backends.edge_sample import Colours
from dasktc.io.evidence import Reading
from dasktc.io.labels import Labels
from dasktc.options import Ids
from dasktc.planning.distribution import SourceSize

__all__ = ["Part", "ReadOptions", "Source"]


class Part(Protocol):
    """A part of a source, which one worker reads without the others. It is pickled: small, without open files.

    Some methods are optional. If memory is short, `chunks(backend, most)` yields the rows of `read` in frames of about
    `most` rows (on a device `chunks_on_device`). `read_on_device(backend, upstream)` returns the frame on the device,
    or two arrays, its columns, or None if only the host's reader can read the data. Parts in memory have `rows`, the
    number of edges, and `ends(backend)`, which returns both columns as arrays of the backend, or None if only `read`
    can.

    A part that can say more about its rows has `noting(notes)`, which returns the part that fills `notes` while it is
    read, and `choice`, which is None unless its id columns are to be judged by the rows noted (`io.evidence`).
    """

    @property
    def upstream(self) -> Any:
        """The Dask Delayed whose value `read` needs (a partition of a Dask DataFrame), or None."""
        ...

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read the part.

        Parameters
        ----------
        backend : Backend
        upstream : object
            The computed value of `self.upstream`; None if that is None.

        Returns
        -------
        DataFrame of `backend.frame`
            Columns "src" and "dst", both of one integer type (int32 or int64) or both string
            (`Source.ids`), no missing value; one row per edge as in the source, with loops, duplicates
            and directions. A third column, "weight", if the source was opened with weights.

        Raises
        ------
        InputError
            The part cannot be read; the error has the line number if there is one.
        """
        ...


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a source; None means: detect."""

    format: str | None = None
    """A format's name (`dasktc.io.files.FORMATS`)."""
    columns: tuple[str, str] | None = None
    """Names, or positions as digits ("0"), of the two id columns. Names demand a header row."""
    ids: Ids | None = None
    skip: int | None = None
    """Number of leading lines to skip. 0: the first line is data, whatever it looks like."""
    headers: frozenset[str] = frozenset()
    """First lines that are headers of other files of the source."""
    blocksize: int = 64 << 20
    """Bytes per part of a splittable file."""
    block: int = 4 << 20
    """Bytes of a text file that are parsed at a time."""
    weight: str | None = None
    """The column, or edge attribute, of weights, by name or position; None: weights are not read."""
    directed: bool = False
    """Whether the direction of each row matters; a source without directions is then refused."""
    surveyed: bool = False
    """Whether `weight` names a column of any values, for surveys, rather than weights."""
    sample: Colours | None = None
    """The colours by which edges are sampled; None: all are read."""


@dataclass(frozen=True)
class Source:
    """A source of edges."""

    name: str
    """Name for users: a path, or a description."""
    parts: tuple[Part, ...]
    """Parts that together contain every edge once; may be empty (a graph without edges)."""
    ids: Ids = "int"
    """The type of ids in every part."""
    triangles: int | None = None
    """Number of triangles, if a formula gives it."""
    size: SourceSize | None = None
    """Rows and bytes; None: unknown."""
    in_memory: bool = False
    """Whether the parts hold rows of this process, which are sent with them."""
    weight: str | None = None
    """Name of the weights in the third column "weight" of the parts' frames, of finite float64; None: no weights. Of a
    surveyed column the values are int64, finite float64, or text."""
    frames: str | None = None
    """Default frame type of answers, the one with which the caller works: cuDF for a source in GPU memory, Dask for a
    Dask collection, Polars for its frames. None for any other source."""
    reading: Reading | None = None
    """The id columns and how they were chosen; None where edges do not stand in columns."""
    labels: Labels | None = None
    """The caller's vertices, if they are neither integers nor text: ids are then positions among them. They stay in the
    caller's process."""
    folder: str = ""
    """Path or URL of a saved graph; empty for any other source."""
    untyped: bool = False
    """Whether surveyed values are the fields of text files, which are numbers if all of them are."""
    sample: Colours | None = None
    """The colours by which the rows of parts are sampled as they are read; None: all are kept."""

    @property
    def read(self) -> Reading:
        """What is read, or was read, of the source."""
        return self.reading or Reading(self.name)
