"""A source of edges is a list of parts, each of which a worker reads independently; read options of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dasktc.options import Ids
from dasktc.planning.distribution import SourceSize

if TYPE_CHECKING:
    from dasktc.backends import Backend

__all__ = ["Part", "ReadOptions", "Source"]


class Part(Protocol):
    """A part of a source, which one worker reads without the others. It is pickled: small, without open files.

    Some methods are optional. `chunks(backend, most)` yields the same rows as `read` in frames of about `most` rows,
    where memory is short (`chunks_on_device` on a device). `read_on_device(backend, upstream)` returns the frame
    on the device, or None where only the host's reader takes the data. Parts in memory have `rows`, the number of
    edges, and `ends(backend)`, which returns both columns as arrays of the backend, or None where only `read` can.
    """

    @property
    def upstream(self) -> Any:
        """A Dask Delayed that `read` needs the value of (a partition of a Dask DataFrame), or None."""
        ...

    def read(self, backend: Backend, upstream: Any = None) -> Any:
        """Read the part.

        Parameters
        ----------
        backend : Backend
        upstream : object
            The computed value of `self.upstream`; None where that is None.

        Returns
        -------
        DataFrame of `backend.frame`
            Columns "src" and "dst", both of one integer type (int32 or int64) or both string
            (`Source.ids`), no missing value; one row an edge as it stands in the source: loops,
            duplicates and directions kept. A third column, "weight", where the source was opened with it.

        Raises
        ------
        InputError
            The part cannot be read, with the line number where there is one.
        """
        ...


@dataclass(frozen=True)
class ReadOptions:
    """How a source is to be read; None means: detect it.

    Attributes
    ----------
    format : str or None
        A format's name (`dasktc.io.files.FORMATS`).
    columns : tuple of two str or None
        Names, or positions as digits ("0"), of the two id columns. Names demand a header row.
    ids : {"int", "text"} or None
    skip : int or None
        Leading lines to pass over. 0 says that the first line is data, whatever it looks like.
    blocksize : int
        Bytes of a splittable file that one part takes.
    weight : str or None
        The column, or edge attribute, of weights, by name or position; None: none are read.
    directed : bool
        The direction of each row matters: a source without directions is refused.
    """

    format: str | None = None
    columns: tuple[str, str] | None = None
    ids: Ids | None = None
    skip: int | None = None
    blocksize: int = 64 << 20
    weight: str | None = None
    directed: bool = False


@dataclass(frozen=True)
class Source:
    """A source of edges.

    Attributes
    ----------
    name : str
        What a user calls it: a path, or a description.
    parts : tuple of Part
        Together every edge once. May be empty (a graph without edges).
    ids : {"int", "text"}
        The type of ids in every part.
    triangles : int or None
        The known answer, where arithmetic gives one.
    size : SourceSize or None
        None: not known.
    in_memory : bool
        The parts hold rows of this process, which travel with them.
    weight : str or None
        What frames of parts have in a third column "weight", of finite float64; None: there is none.
    frames : {"cudf", "dask", "dask-cudf"} or None
        What answers are given as where nobody says, for the caller works with it: of a source in GPU memory cuDF, of a
        Dask collection the like. None: of any other.
    """

    name: str
    parts: tuple[Part, ...]
    ids: Ids = "int"
    triangles: int | None = None
    size: SourceSize | None = None
    in_memory: bool = False
    weight: str | None = None
    frames: str | None = None
