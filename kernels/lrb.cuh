// A list of edges, in bins of about equal work: logarithmic radix binning, LRB (Fox et al., HPEC 2018,
// section III, doi:10.1109/HPEC.2018.8547759). Prepended to the edge-centric kernels.
//
// Such a kernel defines for an edge (u, v), at place p of the index, with table.row(u) = [first, last)
//   entries(t, p, first, last, v)   how many entries of the row are tested: all, or those before v
//   work_of(a, b)                   the cost of testing a of them against b = |stream.row(v)|
//
// Bin 0 holds the edges of work 1, bin k those of work above 2^(k-1) and at most 2^k. Edges with an empty
// list are in no bin. The bins are adjacent in one list ("virtual bins"), each approximately in the order of
// the index; an edge of the list is u, v and a, 12 bytes. Three passes make it:
//
//   lrb_histogram   a thread per edge, a warp per 32 rows: a block's edges in each bin; also all wedges
//   lrb_starts      one block: running sums over the bins, and within a bin over the blocks
//   lrb_scatter     writes the edges, with the grid of the histogram, so that a block meets its edges again
//
// No pass has a counter that blocks share, and each edge's lengths are looked up twice.

#ifndef BLOCK
#define BLOCK 256  // threads in a block
#endif
#ifndef LRB
#define LRB 1  // 0: one bin for all edges
#endif
#ifndef STARTS
#define STARTS 1024  // threads of lrb_starts
#endif

constexpr uint32 BINS = 32;

__device__ __forceinline__ int64 entries(const Task& t, int64 p, int64 first, int64 last, int64 v);
__device__ __forceinline__ int64 work_of(int64 a, int64 b);

__device__ __forceinline__ uint32 bin_of(int64 work) {
  if (!LRB || work < 2) { return 0; }
  return 32 - __clz(int(min(work, 1ll << 31) - 1));
}

// Calls `visit(u, v, a, bin)` for each edge with work; returns this thread's wedges.
template <class Visit> __device__ __forceinline__ uint64 each_in_bin(const Task& t, const Visit& visit) {
  uint64 wedges = 0;
  each_edge(t, [&](int64 u, int64 p, int64 first, int64 last) {
    int64 v = t.index.columns[p], b = t.stream.length(v);
    wedges += b;
    if (first == last || b == 0) { return; }
    int64 a = entries(t, p, first, last, v);
    if (a) { visit(uint32(u), uint32(v), uint32(a), bin_of(work_of(a, b))); }
  });
  return wedges;
}

// Stores counts[bin * blocks + block].
extern "C" __global__ void __launch_bounds__(BLOCK) lrb_histogram(Task t, uint32* counts, Totals* totals) {
  __shared__ uint32 mine[BINS];
  for (uint32 k = threadIdx.x; k < BINS; k += BLOCK) { mine[k] = 0; }
  __syncthreads();
  uint64 wedges = each_in_bin(t, [&](uint32, uint32, uint32, uint32 bin) { atomicAdd(mine + bin, 1u); });
  add_to(&totals->wedges, wedges);
  __syncthreads();
  for (uint32 k = threadIdx.x; k < BINS; k += BLOCK) { counts[k * gridDim.x + blockIdx.x] = mine[k]; }
}

extern "C" __global__ void __launch_bounds__(STARTS) lrb_starts(Task, uint32* counts, uint32 size) {
  __shared__ uint32 sums[STARTS / 32];
  starts_of<STARTS>(counts, size, sums);
}

// `size` edges: first all u, then all v, then all a.
struct EdgeList {
  uint32* at;
  int64 size;

  __device__ uint32& u(int64 e) const { return at[e]; }
  __device__ uint32& v(int64 e) const { return at[size + e]; }
  __device__ uint32& a(int64 e) const { return at[2 * size + e]; }
};

extern "C" __global__ void __launch_bounds__(BLOCK) lrb_scatter(Task t, const uint32* starts, EdgeList list) {
  __shared__ uint32 next[BINS];
  for (uint32 k = threadIdx.x; k < BINS; k += BLOCK) { next[k] = starts[k * gridDim.x + blockIdx.x]; }
  __syncthreads();
  each_in_bin(t, [&](uint32 u, uint32 v, uint32 a, uint32 bin) {
    uint32 place = atomicAdd(next + bin, 1u);
    list.u(place) = u;
    list.v(place) = v;
    list.a(place) = a;
  });
}

// The two lists of an edge.
struct Pair {
  const int32 *a, *b;
  int64 a_size, b_size;
};

__device__ __forceinline__ Pair pair_of(const Task& t, const EdgeList& list, int64 e) {
  int64 v = list.v(e), begin = t.stream.offsets[v];
  return {t.table.columns + t.table.offsets[list.u(e)], t.stream.columns + begin, list.a(e),
      t.stream.offsets[v + 1] - begin};
}

// Logarithmic threads per intersection, Log-TPI (section III-B): 2^split threads for each of the edges from
// `begin` to `end`. `visit(pair, part)` counts part `part` of 2^split.
template <class Visit> __device__ __forceinline__ void each_part(
    const Task& t, const EdgeList& list, uint32 begin, uint32 end, uint32 split, const Visit& visit) {
  uint64 count = uint64(end - begin) << split, threads = uint64(gridDim.x) * blockDim.x;
  for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += threads) {
    visit(pair_of(t, list, begin + int64(k >> split)), int64(k & ((1ull << split) - 1)));
  }
}
