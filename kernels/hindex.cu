// hindex: for every edge the shorter list is hashed, and the longer one is looked up in the table (H-INDEX,
// Pandey et al., HPEC 2019, section III, algorithm 1, doi:10.1109/HPEC.2019.8916492).
// Preludes: lrb.cuh hash.cuh
//
// The lists of an index edge (u, v) are T = table.row(u) and B = stream.row(v). They need not be sorted, and
// none is cut at v. The shorter one goes into interleaved buckets, which keeps collisions rare (figure 3).
// The table is built anew for each edge.
//
//   probes(u, v) = max(|T|, |B|); 0 if either is empty. With LONGER min(|T|, |B|)
//
// Launch: the three passes of LRB make the edge list, in bins by the length of the hashed list; then
//
//   hindex_warp    a warp and 32 buckets per edge, for at most SHORT entries, all in shared memory: 32 buckets
//                  of LEVELS entries have room for more
//   hindex_block   a block of THREADS and 1024 buckets per edge, for the others
//
// Both stride over their edges from the longest lists on, so that the work left at the end is short. Without LRB the
// edge list is in the order of the index, as in the paper, and hindex_warp takes all of it: buckets continue in
// scratch beyond LEVELS entries.
//
//   SHORT    most entries that a warp hashes: the threshold is ours, the paper names none
//   THREADS  threads of a block
//   LRB      0: no binning; kernel hindex-unbinned, the baseline of TRUST's figure 12
//   LONGER   1: the longer list is hashed and the shorter looked up, for figure 3
//
// One H200, ms of the launches, medians of 5, degree order: Kronecker 20 (edge factor 16) 47.3, Kronecker 22 264,
// the torus of 300^3 23.4, RA with 10^7 vertices 35.2. On Kronecker 20 2.0 G entries are hashed and 4.9 G looked
// up, where `trust` hashes 16 M, one table per row, and looks up 4.4 G in 4.2 ms: hashing an entry costs more than
// looking one up (an atomic, and its share of clearing).

#ifndef SHORT
#define SHORT 128
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef LONGER
#define LONGER 0
#endif

constexpr uint32 WARPS = THREADS / 32, BUCKETS = 1024;
static_assert(SHORT < 32 * LEVELS, "a warp's table has to have room");

using Warp = Team<32, 32, false>;
using Wide = Team<THREADS, BUCKETS, true>;

__device__ __forceinline__ int64 entries(const Task&, int64, int64 first, int64 last, int64) { return last - first; }

__device__ __forceinline__ int64 work_of(int64 a, int64 b) { return LONGER ? max(a, b) : min(a, b); }

struct Found {
  uint64 triangles = 0, probes = 0;
  uint32 collision = 0;

  __device__ void add_up(Totals* totals) const {
    add_to(&totals->triangles, triangles);
    add_to(&totals->probes, probes);
    uint32 longest = warp_max(collision);
    if (threadIdx.x % 32 == 0) { atomicMax(&totals->collision, uint64(longest)); }
  }
};

// Counts edges `begin` to `end` of the list, a team per edge, from the last one on.
template <class T> __device__ void count_edges(
    HashTable<T>& table, const Task& t, const EdgeList& list, int64 begin, int64 end, Found& found) {
  uint32 teams = blockDim.x / T::SIZE;
  for (int64 k = end - 1 - blockIdx.x * teams - threadIdx.x / T::SIZE; k >= begin; k -= gridDim.x * teams) {
    Pair pair = pair_of(t, list, k);
    bool row = (pair.a_size <= pair.b_size) != LONGER;
    uint32 longest = table.build(row ? pair.a : pair.b, row ? pair.a_size : pair.b_size);
    found.collision = max(found.collision, min(longest, table.depth));
    const int32* other = row ? pair.b : pair.a;
    int64 size = row ? pair.b_size : pair.a_size;
    for (int64 i = T::rank(); i < size; i += T::SIZE) {
      found.triangles += table.contains(other[i]);
      found.probes++;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hindex_warp(Task t, EdgeList list, uint32 begin, uint32 end, int32* scratch, uint32 depth, Totals* totals) {
  __shared__ uint32 fill[WARPS * Warp::BUCKETS];
  __shared__ int32 slots[WARPS * Warp::BUCKETS * LEVELS];
  HashTable<Warp> table(fill, slots, LRB ? nullptr : scratch, LRB ? LEVELS : depth);
  Found found;
  count_edges(table, t, list, begin, end, found);
  found.add_up(totals);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hindex_block(Task t, EdgeList list, uint32 begin, uint32 end, int32* scratch, uint32 depth, Totals* totals) {
  __shared__ uint32 fill[BUCKETS];
  __shared__ int32 slots[BUCKETS * LEVELS];
  HashTable<Wide> table(fill, slots, scratch, depth);
  Found found;
  count_edges(table, t, list, begin, end, found);
  found.add_up(totals);
}
