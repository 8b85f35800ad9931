// rows: finds the row of an edge in CSR rows.

// The last of the rows [row, end) that begins at place p or before; it is not empty.
__device__ __forceinline__ int64 row_at(const int64* offsets, int64 row, int64 end, int64 p) {
  while (end - row > 1) {
    int64 middle = (row + end) >> 1;
    bool before = offsets[middle] <= p;
    row = before ? middle : row;
    end = before ? end : middle;
  }
  return row;
}
