// A kernel that searches every entry of stream row v in table row u: the smallest one, for tests of registries.

extern "C" __global__ void toy_rows(Task t, Totals* totals) {
  Sums sums;
  each_edge(t, [&](int64, int64 p, int64 first, int64 last) {
    int64 v = t.index.columns[p];
    for (int64 q = t.stream.offsets[v]; q < t.stream.offsets[v + 1]; q++) {
      sums.triangles += contains(t.table.columns, first, last, t.stream.columns[q]);
      sums.wedges++;
      sums.probes++;
    }
  });
  sums.add_up(totals);
}
