// plain: both lists walked in step, a thread an edge. Short: what the other kernels are verified with.
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are
// unordered) and B = stream.row(v).
//
//   probes(u, v) = |A| + |B|; 0 if either is empty
//
// Launch: one grid, of which a warp takes 32 rows at a time and deals their edges to its lanes.

extern "C" __global__ void plain_rows(Task t, Totals* totals) {
  Sums sums;
  auto all = [](int64, int64, int64) { return true; };
  each_edge(t, all, [&](int64, int64 p, int64 first, int64 last) {
    int64 v = t.index.columns[p];
    int64 begin = t.stream.offsets[v], b = t.stream.length(v), a = before(t, p, first, last, v);
    sums.wedges += b;
    if (a == 0 || b == 0) { return; }
    const int32 *row = t.table.columns + first, *list = t.stream.columns + begin;
    sums.probes += a + b;
    sums.triangles += merged(row, a, list, b);
  });
  sums.add_up(totals);
}
