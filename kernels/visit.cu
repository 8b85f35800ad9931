// visit: finds each triangle of a task once, to list it or to add it to its edges.
//
// A thread per edge (u, v), A = the entries of table.row(u) before v, B = stream.row(v). The entries of the shorter
// list are searched in the longer one, both ascending, each from the place where the last one was found: common
// entries come in ascending order. It is plain, because it runs beside no other kernel.
//
// Each of a triangle's three edges has a place in the columns of index, table or stream.
//
//   visit_support   adds one at each of the three places
//   visit_edges     writes every index edge's number of triangles, by its place among the split's edges
//   visit_places    writes row u and the three places of triangles, in the order that the running sums of these numbers
//                   give
//
// One H200, ms, Kronecker 22, 2.11 G triangles: all places in batches of 2^23, 2^25 and 2^27 triangles take 1,452, 1,358
// and 1,372; a survey by labels, 27 counters, with CuPy 1,764; signs 2,045; times 5,762; sums of weights 4,954.
//
// Preludes: rows.cuh

// Calls `found(place in table, place in stream)` for the common entries of the two lists of index edge p.
template <class Found> __device__ __forceinline__ uint32 each_triangle(
    const Task& t, int64 p, int64 first, int64 last, Sums& sums, const Found& found) {
  int64 v = t.index.columns[p], begin = t.stream.offsets[v], b = t.stream.length(v);
  int64 a = before(t, p, first, last, v);
  sums.wedges += b;
  bool swap = a > b;
  const int32 *row = t.table.columns + first, *list = t.stream.columns + begin;
  const int32 *few = swap ? list : row, *many = swap ? row : list;
  int64 size = min(a, b), end = max(a, b);
  uint32 count = 0;
  for (int64 i = 0, at = 0; i < size; i++) {
    at = lower_bound(many, at, end, few[i]);
    if (at == end) { break; }
    if (many[at] != few[i]) { continue; }
    found(first + (swap ? at : i), begin + (swap ? i : at));
    count++;
  }
  sums.triangles += count;
  return count;
}

extern "C" __global__ void visit_support(
    Task t, uint32* in_index, uint32* in_table, uint32* in_stream, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64, int64 p, int64 first, int64 last) {
    uint32 count = each_triangle(t, p, first, last, sums, [&](int64 in_row, int64 in_list) {
      atomicAdd(in_table + in_row, 1u);
      atomicAdd(in_stream + in_list, 1u);
    });
    if (count) { atomicAdd(in_index + p, count); }
  });
  sums.add_up(totals);
}

// `group_starts` are the sums of the edges of the groups of rows before each one of the split.
extern "C" __global__ void visit_edges(Task t, const int64* group_starts, uint32* counts, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64 u, int64 p, int64 first, int64 last) {
    int64 group = (u - t.begin) / t.step;
    int64 edge = group_starts[group] + p - t.index.offsets[t.begin + group * t.step];
    counts[edge] = each_triangle(t, p, first, last, sums, [](int64, int64) {});
  });
  sums.add_up(totals);
}

// `ends` are the running sums of the numbers. Of the triangles in this order, those from place `first` on are written,
// `size` of them, which are those of the split's edges [begin, end). A thread per edge, whichever its row: rows with
// many triangles lie next to each other.
extern "C" __global__ void visit_places(
    Task t, const int64* group_starts, int64 groups, const int64* ends, int64 begin, int64 end, int64 first, int64 size,
    int32* rows, int64* in_index, int64* in_table, int64* in_stream) {
  Sums sums;
  for (int64 edge = begin + first_of(); edge < end; edge += all_threads()) {
    int64 place = (edge ? ends[edge - 1] : 0) - first;
    if (place == ends[edge] - first) { continue; }
    int64 group = row_at(group_starts, 0, groups, edge), row = t.begin + group * t.step;
    int64 p = t.index.offsets[row] + edge - group_starts[group];
    int64 u = row_at(t.index.offsets, row, row + min(GROUP, t.rows - group * GROUP), p);
    each_triangle(
        t, p, t.table.offsets[u], t.table.offsets[u + 1], sums, [&](int64 in_row, int64 in_list) {
          if (0 <= place && place < size) {
            rows[place] = int32(u);
            in_index[place] = p;
            in_table[place] = in_row;
            in_stream[place] = in_list;
          }
          place++;
        });
  }
}
