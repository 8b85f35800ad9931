// merge: both lists walked in step (Fox et al., HPEC 2018, Intersect-Path).
//
// A thread an edge (u, v), A = the entries of table.row(u) before v, B = stream.row(v). Short and
// plain: what the other kernels are verified with.
//
//   probes(u, v) = |A| + |B|; 0 if either is empty

extern "C" __global__ void merge_rows(Task t, Totals* totals) {
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
