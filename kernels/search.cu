// search: the shorter list looked up in the longer by bisection, Par-Search (Fox et al., HPEC 2018, sections
// III-B and III-C, algorithm 2, doi:10.1109/HPEC.2018.8547759).
// Preludes: lrb.cuh
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the blocks are
// unordered) and B = stream.row(v). The work of an edge is estimated as d_u alone, the length of the shorter
// list; the logarithm of the longer is left out, which the paper found better. Edges are binned by it. With LOG the
// estimate is d_u log2 d_v (equation 2): more threads per edge, and fewer entries for each.
//
//   probes(u, v) = min(|A|, |B|)
//
// Launch: the three passes of LRB, then once for every bin with edges. 2^k / SUB threads of one grid work on
// each edge of bin k, at least one, and at most as many as fill the GPU; below that a thread has at most SUB
// entries of the shorter list, in succession, and looks each up behind the place of the last.
//
//   SUB  the paper's C: entries of the shorter list per thread
//   TPI  threads per edge, a power of two: static as in the paper's figure 4; 0: they grow with the bin
//   LOG  1: equation 2's estimate; kernel search-log
//   LRB  0: no binning, all edges in the order of the index; a thread per edge unless TPI says more
//
// One H200, ms of the launches, medians of 5, degree order: Kronecker 20 (edge factor 16) 18.6, Kronecker 22 127,
// the torus of 300^3 2.9, RA with 10^7 vertices 14.0. On Kronecker 20 that is 1.22 G lookups of some 8 reads each,
// the last ones random: `hub`, whose bitmaps answer in one read, takes 2.3. The paper's V100 took 153 ms for twice
// that graph. LRB reads two random offsets per edge, twice: on graphs of low degree that is most of the time
// (figure 5).

#ifndef SUB
#define SUB 8
#endif
#ifndef TPI
#define TPI 0
#endif
#ifndef LOG
#define LOG 0
#endif

__device__ __forceinline__ int64 entries(const Task& t, int64 p, int64 first, int64 last, int64 v) {
  return before(t, p, first, last, v);
}

// The logarithm is rounded up, and at least 1, because a list of one entry is also read.
__device__ __forceinline__ int64 work_of(int64 a, int64 b) {
  int64 few = min(a, b), many = max(a, b);
  return LOG && many > 2 ? few * (32 - __clz(int(many) - 1)) : few;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_bin(Task t, EdgeList list, uint32 begin, uint32 end, uint32 split, Totals* totals) {
  Sums sums;
  each_part(t, list, begin, end, split, [&](const Pair& pair, int64 part) {
    bool swap = pair.b_size < pair.a_size;
    const int32 *few = swap ? pair.b : pair.a, *many = swap ? pair.a : pair.b;
    int64 few_size = swap ? pair.b_size : pair.a_size, many_size = swap ? pair.a_size : pair.b_size;
    int64 share = (few_size + (1ll << split) - 1) >> split, stop = min((part + 1) * share, few_size), at = 0;
    for (int64 i = part * share; i < stop; i++) {
      int32 x = few[i];
      at = lower_bound(many, at, many_size, x);
      sums.triangles += at < many_size && many[at] == x;
      sums.probes++;
    }
  });
  sums.add_up(totals);
}
