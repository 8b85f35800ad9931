// short: rows of a handful of entries, as in roads and meshes: a thread per row, in registers.
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are
// unordered) and B = stream.row(v).
//
//   probes(u, v) = |A| + |B|; 0 if either is empty
//
// A thread holds row u of at most FEW entries, then the first FEW of each B, and compares all pairs: there is no
// branch, and the loads of all edges are under way together, four in succession whatever the row. Neighbouring threads
// have neighbouring rows; where ids follow the mesh so do the lists. Entries of A are also searched for among the
// entries of B beyond its first FEW. A longer row: a thread per edge, both lists walked in step, with its whole warp.
//
// One H200, ms, torus of 464^3 (10^8 rows of 3): `hub`'s records, made for such rows, take 3.24 and `plain` 3.9; with
// `hub` every split makes the records of all rows. One of 8 splits is the share of a GPU among eight.
//
//   version                                464^3   300^3   one of 8 splits
//   1 predicted                              1.1    0.35   0.20   150 instructions a warp's 32 rows: 0.5; 48 L1 wavefronts:
//                                                                 0.65; 2 GB from DRAM: 0.47; L2 to L1 4.8 GB: 0.8
//     measured, FEW = 4                      2.4    0.65   0.48   250 instructions, 70 registers: 3 blocks of a processor
//     learnt: time goes with the blocks that fit (5 warps a scheduler: 3.0), for it waits for loads
//   2 predicted, rows that are cut at v apart  1.0  0.30   0.20   130 instructions, 46 registers
//     measured                               1.04   0.30   0.23   as many blocks as fit, not more that follow: 1.23 to 1.04
//     40 registers, 12 blocks of 128         0.91   0.28   0.21   62 to 73 % of the warps that fit; random rows 1.17 to 1.33
//     FEW = 4                                1.11   0.29   0.25
//     the next row's offsets loaded ahead    0.96   0.33   0.24   left out
//
// Bounds of version 2 (Nsight Compute, 10 blocks): L2 67 % busy, DRAM 39 %, issue slots 54 %, 13 of 18 cycles between two
// instructions of a warp waiting for a load: latency.
//
// Launch: one grid of the blocks that fit at the same time, of which a warp takes 32 rows per step.
//
// With outputs (`short_*_each`) a row that has triangles is walked again.

// Preludes: support.cuh

#ifndef FEW
#define FEW 3  // longest row that is held in registers
#endif
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef BLOCKS
#define BLOCKS 12  // blocks per processor at the same time, which keeps registers few
#endif

constexpr int32 NONE = -1;  // no column

// A row's entries, followed by `none`.
struct Held {
  int32 entry[FEW];

  __device__ __forceinline__ Held(const int32* columns, int32 size, int32 none) {
#pragma unroll
    for (int32 k = 0; k < FEW; k++) { entry[k] = k < size ? columns[k] : none; }
  }
  __device__ __forceinline__ bool has(int32 x) const {
    bool found = false;
#pragma unroll
    for (int32 k = 0; k < FEW; k++) { found |= entry[k] == x; }
    return found;
  }
};

// Compares an index row and a table row of at most FEW entries each with the first FEW of each B. Returns whether some
// B has more. `Cut`: the two rows are one, and A is the entries before v in it.
template <bool Cut> __device__ __forceinline__ bool short_row(const Task& t, const TaskRow& row, Sums& sums) {
  int32 edges = int32(row.edges), size = int32(row.size);
  Held index(t.index.columns + row.begin, edges, NONE);
  Held table = Cut ? index : Held(t.table.columns + row.first, size, NONE);
  const int32* list[FEW];
  int32 a[FEW], b[FEW];
#pragma unroll
  for (int32 i = 0; i < FEW; i++) {
    b[i] = 0;
    list[i] = t.stream.columns;
    if (i < edges) {
      const int64* at = t.stream.offsets + index.entry[i];
      list[i] += at[0];
      b[i] = int32(at[1]) - int32(at[0]);
    }
    a[i] = i;
    if (!Cut) {
      a[i] = 0;
#pragma unroll
      for (int32 j = 0; j < FEW; j++) { a[i] += j < size && table.entry[j] < index.entry[i] + t.shift; }
    }
  }
  uint32 found = 0;
  bool more = false;
#pragma unroll
  for (int32 i = 0; i < FEW; i++) {
    sums.wedges += b[i];
    if (Cut && i == 0) { continue; }
    bool both = a[i] && b[i];
    sums.probes += both ? uint32(a[i]) + uint32(b[i]) : 0;
    more |= both && b[i] > FEW;
    Held of(list[i], both ? b[i] : 0, NONE - 1);
#pragma unroll
    for (int32 j = 0; j < (Cut ? i : FEW); j++) { found += of.has(table.entry[j]); }
  }
  sums.triangles += found;
  return more;
}

// For such a row, tests the entries of each B beyond its first FEW.
__device__ __forceinline__ uint32 behind_few(const Task& t, const TaskRow& row) {
  uint32 found = 0;
  for (int64 p = row.begin; p < row.begin + row.edges; p++) {
    int64 v = t.index.columns[p], b = t.stream.length(v);
    if (b <= FEW) { continue; }
    int64 a = before(t, p, row.first, row.first + row.size, v);
    found += searched(t.table.columns + row.first, a, t.stream.columns + t.stream.offsets[v] + FEW, b - FEW);
  }
  return found;
}

// `seen(u, p, first, last)` gets each edge that may have triangles.
template <bool Cut, class Visit>
__device__ __forceinline__ void each_row(const Task& t, Totals* totals, const Visit& seen) {
  Sums sums;
  uint32 threads = uint32(all_threads()), rows = uint32(t.rows), lane = threadIdx.x % 32;
  int64 u = row_of(t, first_of()), hop = threads / GROUP * t.step;
  for (uint32 k = uint32(first_of()); k - lane < rows; k += threads, u += hop) {
    TaskRow row = {u, 0, 0, 0, 0, 0};
    if (k < rows) {
      row.begin = t.index.offsets[u];
      row.edges = t.index.offsets[u + 1] - row.begin;
      row.first = Cut ? row.begin : t.table.offsets[u];
      row.size = Cut ? row.edges : t.table.offsets[u + 1] - row.first;
    }
    if (row.edges <= FEW && row.size <= FEW) {
      uint64 before_row = sums.triangles;
      if (short_row<Cut>(t, row, sums)) { sums.triangles += behind_few(t, row); }
      if (sums.triangles != before_row) {
        for (int64 p = row.begin; p < row.begin + row.edges; p++) { seen(u, p, row.first, row.first + row.size); }
      }
      row.edges = 0;
    }
    deal_rows(row, [&](int64 of, int64 p, int64 first, int64 last, uint32) {
      uint64 before_edge = sums.triangles;
      walk(t, p, first, last, sums);
      if (sums.triangles != before_edge) { seen(of, p, first, last); }
    });
  }
  sums.add_up(totals);
}

struct NoVisitor {
  __device__ void operator()(int64, int64, int64, int64) const {}
};

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) short_rows(Task t, Totals* totals) {
  each_row<true>(t, totals, NoVisitor());
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) short_blocks(Task t, Totals* totals) {
  each_row<false>(t, totals, NoVisitor());
}

struct Seen {
  const Task& t;
  Out out;

  __device__ __forceinline__ void operator()(int64 u, int64 p, int64 first, int64 last) const {
    int64 v = t.index.columns[p], a = before(t, p, first, last, v);
    if (a && t.stream.length(v)) { meet_edge(t, u, p, v, first, a, out); }
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    short_rows_each(Task t, Totals* totals, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  each_row<true>(t, totals, Seen{t, {first_sums, second_sums, third_sums}});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    short_blocks_each(Task t, Totals* totals, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  each_row<false>(t, totals, Seen{t, {first_sums, second_sums, third_sums}});
}
