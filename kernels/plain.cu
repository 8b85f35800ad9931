// plain: both lists walked in step, a thread per edge. A short kernel, with which the others are verified.
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are
// unordered) and B = stream.row(v).
//
//   probes(u, v) = |A| + |B|; 0 if either is empty
//
// Launch: one grid, of which a warp takes 32 rows per step and deals their edges to its lanes.

extern "C" __global__ void plain_rows(Task t, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64, int64 p, int64 first, int64 last) { walk(t, p, first, last, sums); });
  sums.add_up(totals);
}
