// merge: both lists walked in step, cut into parts, Intersect-Path (Fox et al., HPEC 2018, sections III-B and III-C,
// algorithm 1, doi:10.1109/HPEC.2018.8547759).
// Preludes: lrb.cuh
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are
// unordered) and B = stream.row(v). Merging them is a path of |A| + |B| steps, right for an entry of A, down
// for one of B, right first where they are equal. Step d ends on diagonal d, and a bisection along a diagonal
// finds where the path crosses it: so each thread walks a part of the path. An entry of B is in A if the last
// step to the right before it was for an equal entry. The thread that steps down checks that, even if another
// thread made the step to the right: no match is lost or counted twice where the path is cut.
//
//   probes(u, v) = |A| + |B|; 0 if either is empty
//
// Launch: the three passes of LRB by the work |A| + |B| (equation 1), then once for every bin with edges.
// 2^k / SUB threads of one grid work on each edge of bin k, at least one and at most MOST_TPI; below that a
// thread has at most SUB steps.
//
//   SUB  the paper's C: steps per thread
//   TPI  threads per edge, a power of two: static; 0: they grow with the bin
//   LRB  0: no binning, all edges in the order of the index; a thread per edge unless TPI says more
//
// One H200, ms of the launches, medians of 5, degree order: Kronecker 20 (edge factor 16) 16.6, Kronecker 22 106,
// the torus of 300^3 3.7, RA with 10^7 vertices 12.9. On Kronecker 20 that is 5.5 G steps, and a bisection of some
// 6 reads for each 16 of them. The paper's V100 took 162 ms for twice that graph.

#ifndef SUB
#define SUB 16
#endif
#ifndef TPI
#define TPI 0
#endif
#ifndef MOST_TPI
#define MOST_TPI 256  // most threads an edge
#endif

__device__ __forceinline__ int64 entries(const Task& t, int64 p, int64 first, int64 last, int64 v) {
  return before(t, p, first, last, v);
}

__device__ __forceinline__ int64 work_of(int64 a, int64 b) { return a + b; }

// Number of steps to the right among the first d.
__device__ __forceinline__ int64 crossing(const Pair& pair, int64 d) {
  int64 low = max(d - pair.b_size, 0ll), high = min(d, pair.a_size);
  while (low < high) {
    int64 middle = (low + high) >> 1;
    bool right = pair.a[middle] <= pair.b[d - 1 - middle];
    low = right ? middle + 1 : low;
    high = right ? high : middle;
  }
  return low;
}

// Number of matches in `steps` steps from diagonal d on.
__device__ __forceinline__ uint32 walk(const Pair& pair, int64 d, int64 steps) {
  uint32 found = 0;
  int64 i = crossing(pair, d), j = d - i;
  int32 last = i > 0 ? pair.a[i - 1] : -1;
  for (; steps > 0 && j < pair.b_size; steps--) {
    int32 y = pair.b[j];
    if (i < pair.a_size && pair.a[i] <= y) {
      last = pair.a[i++];
    } else {
      found += last == y;
      j++;
    }
  }
  return found;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    merge_bin(Task t, EdgeList list, uint32 begin, uint32 end, uint32 split, Totals* totals) {
  Sums sums;
  each_part(t, list, begin, end, split, [&](const Pair& pair, int64 part) {
    int64 all = pair.a_size + pair.b_size, share = (all + (1ll << split) - 1) >> split, d = part * share;
    if (d >= all) { return; }
    int64 steps = min(share, all - d);
    sums.triangles += walk(pair, d, steps);
    sums.probes += steps;
  });
  sums.add_up(totals);
}
