// Shared by kernels with outputs: where a triangle (u, v, w) is added, and the walk that finds two lists' common
// entries.
//
// By edge the three sums are those of the index, table and stream block, by the places of their columns; with VERTICES
// those of index rows, index columns and table columns. Some or all of them may be the same array.

#ifndef VERTICES
#define VERTICES 0  // 1: sums by vertex, 64-bit; 0: by edge, 32-bit
#endif

#if VERTICES
using Sum = uint64;

struct Out {
  Sum *rows, *columns, *third;

  // Adds the `count` triangles of index edge (u, v), at place p.
  __device__ __forceinline__ void edge(int64, int64 u, int64 v, uint32 count) const {
    atomicAdd(rows + u, Sum(count));
    atomicAdd(columns + v, Sum(count));
  }
  // Adds one triangle's third vertex w, by its places in the table's and the stream's columns.
  __device__ __forceinline__ void third_vertex(uint32 w, int64, int64) const { atomicAdd(third + w, Sum(1)); }
};
#else
using Sum = uint32;

struct Out {
  Sum *index, *table, *stream;

  __device__ __forceinline__ void edge(int64 p, int64, int64, uint32 count) const { atomicAdd(index + p, count); }
  __device__ __forceinline__ void third_vertex(uint32, int64 in_table, int64 in_stream) const {
    atomicAdd(table + in_table, 1u);
    atomicAdd(stream + in_stream, 1u);
  }
};
#endif

// Finds the entries of A, [first, first + a) of the table's columns, in B, [begin, begin + b) of the stream's; adds
// their triangles and counts them. Neither list is empty.
__device__ __forceinline__ uint32 meet_lists(
    const Task& t, int64 first, int64 a, int64 begin, int64 b, const Out& out) {
  const int32 *table = t.table.columns, *stream = t.stream.columns;
  bool walked = b <= 8 * a;
  uint32 found = 0;
  for (int64 i = first, j = begin; i < first + a && j < begin + b;) {
    int32 w = table[i];
    if (!walked) { j = lower_bound(stream, j, begin + b, w); }
    if (j == begin + b) { break; }
    int32 x = stream[j];
    if (w == x) {
      out.third_vertex(uint32(w), i, j);
      found++;
    }
    i += w <= x;
    j += walked ? x <= w : w == x;
  }
  return found;
}

// Adds the triangles of an index edge whose table row begins at `first` and has `a` entries before v.
__device__ __forceinline__ void meet_edge(
    const Task& t, int64 u, int64 p, int64 v, int64 first, int64 a, const Out& out) {
  int64 begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
  uint32 found = meet_lists(t, first, a, begin, b, out);
  if (found) { out.edge(p, u, v, found); }
}
