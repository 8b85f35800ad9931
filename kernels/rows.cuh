// rows: the row that an edge of CSR rows stands in.

// The last of the rows [row, end) that begins at place p or before: no empty row stands in its way.
__device__ __forceinline__ int64 row_at(const int64* offsets, int64 row, int64 end, int64 p) {
  while (end - row > 1) {
    int64 middle = (row + end) >> 1;
    bool before = offsets[middle] <= p;
    row = before ? middle : row;
    end = before ? end : middle;
  }
  return row;
}
