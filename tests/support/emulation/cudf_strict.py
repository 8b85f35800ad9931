"""A stand-in, based on pandas, for the parts of cuDF and RMM that edge frames need; as strict as `cupy_strict`."""

import io
import types
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.emulation import cupy_strict as cp


class Series:
    """A column on the device."""

    __hash__ = None

    def __init__(self, data=None, index=None, dtype=None, name=None):
        if isinstance(data, Series):
            data = data._held
        elif isinstance(data, cp.ndarray):
            data = data._lies  # wrapped, which is no work on a stream
        elif not isinstance(data, (list, pa.Array, pa.ChunkedArray, np.ndarray, pd.Series)):
            raise TypeError(f"a column is made of {type(data)}")
        if isinstance(data, (pa.Array, pa.ChunkedArray)):
            data = pd.array(data, dtype="str")
        self._held = pd.Series(data, dtype=dtype, copy=False).reset_index(drop=True)
        self._index, self.name = index, name
        if self._held.dtype.kind in "iufb":
            cp.MEMORY_USED.hold(self._held.to_numpy())

    dtype = property(lambda self: self._held.dtype)
    index = property(lambda self: self._index)
    ndim = 1

    def __len__(self):
        return len(self._held)

    def __iter__(self):
        raise TypeError("Series object is not iterable. Consider using `.to_arrow()`, `.to_pandas()` or `.values_host`")

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a host NumPy array via __array__ is not allowed")

    @property
    def values(self):
        if self.dtype.kind not in "iufb":
            raise TypeError("String arrays are not supported by CuPy")
        return cp.ndarray(self._held.to_numpy())

    @property
    def iloc(self):
        return _Places(self)

    def __ne__(self, other):
        return Series((self._held != other._held).astype(bool))

    def astype(self, dtype):
        return Series(self._held.astype(dtype))

    def isna(self):
        return Series(self._held.isna())

    def any(self):
        return self._held.any()

    def min(self):
        return self._held.min()

    def max(self):
        return self._held.max()

    def sum(self):
        return self._held.sum()

    def unique(self):
        return Series(self._held.drop_duplicates())

    def sort_values(self, *, ignore_index=False):
        ordered = sorted(self._held.tolist(), key=str.encode)
        return Series(pa.array(ordered, pa.large_string()))

    def searchsorted(self, values, side="left"):
        held = [item.encode() for item in self._held.tolist()]
        wanted = [item.encode() for item in values._held.tolist()]
        return cp.ndarray(np.searchsorted(np.array(held, object), np.array(wanted, object), side).astype("int64"))

    def take(self, indices):
        if not isinstance(indices, cp.ndarray):
            raise TypeError("places on the host: a copy in secret")
        return Series(self._held.take(indices._held))

    def reset_index(self, *, drop):
        return Series(self._held)

    def to_pandas(self):
        held = self._held.rename(self.name)
        return held if self._index is None else held.set_axis(self._index)

    def memory_usage(self, index=True, deep=False):
        return self._held.memory_usage(index=False)

    def to_arrow(self):
        return pa.array(self._held.tolist(), pa.large_string())


class DataFrame:
    """Columns on the device."""

    def __init__(self, data=None, index=None, columns=None, dtype=None, copy=None):
        if copy is not None:
            raise NotImplementedError("copy is not currently implemented.")
        if any(isinstance(column, np.ndarray) for column in data.values()):
            raise TypeError("a frame is made of host arrays: a copy in secret")
        self._columns = {name: Series(column) for name, column in data.items()}
        if len({len(column) for column in self._columns.values()}) > 1:
            raise ValueError("columns differ in length")
        self.index = index

    columns = property(lambda self: list(self._columns))
    ndim = 2

    @classmethod
    def from_pylibcudf(cls, table, metadata=None):
        return cls(dict(zip(metadata["columns"], table._columns, strict=True)))

    def __iter__(self):
        return iter(self._columns)

    def __len__(self):
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return Series(self._columns[key], self.index, name=key)
        if isinstance(key, Series) and key.dtype == bool:
            kept = key._held
            return DataFrame({name: Series(column._held[kept]) for name, column in self._columns.items()})
        raise TypeError(f"a frame is indexed by {type(key)}")

    @property
    def iloc(self):
        return _Places(self)

    def reset_index(self, *, drop):
        return self

    def set_index(self, keys):
        left = {name: column for name, column in self._columns.items() if name != keys}
        return DataFrame(left, pd.Index(self._columns[keys]._held, name=keys))

    def to_pandas(self):
        return pd.DataFrame({name: column._held for name, column in self._columns.items()}).set_axis(
            pd.RangeIndex(len(self)) if self.index is None else self.index
        )


def _index(data, name=None):
    """The index of a column on the device."""
    if not isinstance(data, (Series, cp.ndarray)):
        raise TypeError(f"an index is made of {type(data)}: a copy in secret")
    return pd.Index(data._held, name=name)


def from_pandas(obj):
    if isinstance(obj, pd.Series):
        return Series(obj, obj.index, name=obj.name)
    return DataFrame({name: Series(obj[name]) for name in obj.columns}, obj.index)


class _Places:
    def __init__(self, whole):
        self._whole = whole

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        if isinstance(self._whole, Series):
            return Series(self._whole._held.iloc[rows])
        return DataFrame({name: Series(column._held.iloc[rows]) for name, column in self._whole._columns.items()})


def concat(objs, ignore_index=False):
    if isinstance(objs[0], DataFrame):
        return from_pandas(pd.concat([item.to_pandas() for item in objs], ignore_index=ignore_index))
    return Series(pd.concat([item._held for item in objs], ignore_index=True))


def read_parquet(filepath_or_buffer, engine="cudf", columns=None, *, row_groups=None, use_pandas_metadata=True):
    if not isinstance(filepath_or_buffer, list):
        filepath_or_buffer, row_groups = [filepath_or_buffer], [row_groups]
    tables = [
        pq.ParquetFile(path).read_row_groups(groups, columns=columns)
        for path, groups in zip(filepath_or_buffer, row_groups, strict=True)
    ]
    if len({table.schema.remove_metadata() for table in tables}) > 1:
        raise ValueError("Invalid Parquet file: schemas of the files differ")
    found = pa.concat_tables(tables)
    return DataFrame({name: _column(found.column(name)) for name in columns})


def _column(column):
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        return Series(column)
    if pa.types.is_dictionary(column.type):
        return Series(pd.Series(column.to_pandas(), dtype="category"))
    return Series(column.to_pandas())


def read_csv(filepath_or_buffer, sep=",", *, header="infer", names=None, usecols=None, dtype=None, compression="infer"):
    assert isinstance(filepath_or_buffer, io.BytesIO)
    if compression == "infer":  # libcudf writes this on the terminal
        warnings.warn("Auto detection of compression type is supported only for file type buffers.", stacklevel=2)
    assert compression in (None, "infer")
    found = pd.read_csv(filepath_or_buffer, sep=sep, header=header, names=names, usecols=usecols, dtype=dtype)
    return DataFrame({name: Series(found[name]) for name in found.columns})


def module():
    """This file as the module `cudf`."""
    made = types.ModuleType("cudf")
    made.__dict__.update(
        Series=Series,
        DataFrame=DataFrame,
        concat=concat,
        read_parquet=read_parquet,
        read_csv=read_csv,
        from_pandas=from_pandas,
        RangeIndex=pd.RangeIndex,
        Index=_index,
    )
    made.__version__ = "26.10.2"
    return made


# pylibcudf


class Column:
    """A column that wraps an array."""

    @staticmethod
    def from_cuda_array_interface(obj, stream=None):
        if not isinstance(obj, cp.ndarray):
            raise TypeError("Object does not implement __cuda_array_interface__")
        if not obj.flags.c_contiguous:
            raise ValueError("Data must be C-contiguous")
        return Series(obj)


class Table:
    """Columns without names."""

    def __init__(self, columns):
        self._columns = columns


def pylibcudf():
    """The parts of `pylibcudf`, which cuDF brings, as a module."""
    made = types.ModuleType("pylibcudf")
    made.Column, made.Table = Column, Table
    return made


# RMM


class DeviceMemoryResource:
    """Base class of RMM's allocators."""

    def allocate(self, size):
        pass

    def free(self, size):
        pass


class CudaMemoryResource(DeviceMemoryResource):
    """The device's own allocator."""


class CudaAsyncViewMemoryResource(DeviceMemoryResource):
    """An allocator from a pool of the runtime's, whose handle must be of the type that CUDA's bindings define."""

    def __init__(self, pool_handle):
        if isinstance(pool_handle, int):
            raise ValueError("pool_handle must be a cudaMemPool_t or CUmemoryPool")
        self._pool = cp.POOLS[int(pool_handle)]

    def allocate(self, size):
        self._pool.used += size
        self._pool.reserved = max(self._pool.reserved, self._pool.used)

    def free(self, size):
        self._pool.used -= size


class _Adaptor(DeviceMemoryResource):
    def __init__(self, upstream_mr):
        self.upstream_mr = upstream_mr

    def allocate(self, size):
        self.upstream_mr.allocate(size)

    def free(self, size):
        self.upstream_mr.free(size)


class PoolMemoryResource(_Adaptor):
    """RMM's pool of memory over another allocator."""

    def __init__(self, upstream_mr, initial_pool_size=None, maximum_pool_size=None):
        super().__init__(upstream_mr)
        self._size, self._used = initial_pool_size, 0

    def allocate(self, size):
        self._used += size
        while self._used > self._size:
            self._size *= 2

    def free(self, size):
        self._used -= size

    def pool_size(self):
        return self._size


class LimitingResourceAdaptor(_Adaptor):
    """An allocator that refuses requests beyond its limit."""

    def __init__(self, upstream_mr, allocation_limit):
        super().__init__(upstream_mr)
        self._limit, self._used = allocation_limit, 0

    def allocate(self, size):
        if self._used + size > self._limit:
            raise MemoryError(f"std::bad_alloc: out_of_memory: {size} bytes beside {self._used} of {self._limit}")
        super().allocate(size)
        self._used += size

    def free(self, size):
        self._used -= size
        super().free(size)

    def get_allocated_bytes(self):
        return self._used


class StatisticsResourceAdaptor(_Adaptor):
    """An allocator that counts allocations."""

    def __init__(self, upstream_mr):
        super().__init__(upstream_mr)
        self.allocation_counts = types.SimpleNamespace(current_bytes=0, peak_bytes=0)
        self._pushed = []

    def allocate(self, size):
        super().allocate(size)
        for counts in (self.allocation_counts, *self._pushed):
            counts.current_bytes += size
            counts.peak_bytes = max(counts.peak_bytes, counts.current_bytes)

    def free(self, size):
        super().free(size)
        for counts in (self.allocation_counts, *self._pushed):
            counts.current_bytes -= size

    def push_counters(self):
        self._pushed.append(types.SimpleNamespace(current_bytes=0, peak_bytes=0))
        return self.allocation_counts

    def pop_counters(self):
        return self._pushed.pop()


def rmm():
    """Modules of RMM in their initial state, by name."""
    made, resources, allocators, of_cupy = (
        types.ModuleType(name) for name in ("rmm", "rmm.mr", "rmm.allocators", "rmm.allocators.cupy")
    )

    def allocate(size):
        resource = resources.CURRENT[0]
        resource.allocate(size)
        return resource.free

    resources.__dict__.update(
        CudaAsyncViewMemoryResource=CudaAsyncViewMemoryResource,
        CudaMemoryResource=CudaMemoryResource,
        LimitingResourceAdaptor=LimitingResourceAdaptor,
        PoolMemoryResource=PoolMemoryResource,
        StatisticsResourceAdaptor=StatisticsResourceAdaptor,
        CURRENT=[CudaMemoryResource()],
        get_current_device_resource=lambda: resources.CURRENT[0],
        set_current_device_resource=lambda resource: resources.CURRENT.__setitem__(0, resource),
    )
    of_cupy.rmm_cupy_allocator = allocate
    made.mr, made.allocators, allocators.cupy, made.__version__ = resources, allocators, of_cupy, "26.10.0"
    return {module.__name__: module for module in (made, resources, allocators, of_cupy)}
