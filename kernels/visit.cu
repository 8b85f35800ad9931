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
//   visit_list      writes triangles (u, v, w) at the places that the running sums of these numbers give

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

// The place of index edge p, of row u, among the split's edges: `group_ends` are the running sums of its groups' edges.
__device__ __forceinline__ int64 place_of(const Task& t, const int64* group_ends, int64 u, int64 p) {
  int64 group = (u - t.begin) / t.step;
  return (group ? group_ends[group - 1] : 0) + p - t.index.offsets[t.begin + group * t.step];
}

extern "C" __global__ void visit_edges(Task t, const int64* group_ends, uint32* counts, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64 u, int64 p, int64 first, int64 last) {
    counts[place_of(t, group_ends, u, p)] = each_triangle(t, p, first, last, sums, [](int64, int64) {});
  });
  sums.add_up(totals);
}

// `ends` are the running sums of the numbers; the first `limit` triangles are written, three ids each.
extern "C" __global__ void visit_list(
    Task t, const int64* group_ends, const int64* ends, int64 limit, int32* list, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64 u, int64 p, int64 first, int64 last) {
    int64 edge = place_of(t, group_ends, u, p), place = edge ? ends[edge - 1] : 0;
    if (place >= limit || place == ends[edge]) { return; }
    each_triangle(t, p, first, last, sums, [&](int64 in_row, int64) {
      if (place < limit) {
        list[3 * place] = int32(u);
        list[3 * place + 1] = t.index.columns[p];
        list[3 * place + 2] = t.table.columns[in_row];
      }
      place++;
    });
  });
  sums.add_up(totals);
}
