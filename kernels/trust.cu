// trust: vertex-centric hashing (Pandey et al., TPDS 2021, sections 3 and 4, doi:10.1109/TPDS.2021.3064892).
// Preludes: hash.cuh
//
// One hash table of table.row(u) serves every v of index.row(u); each entry of stream.row(v) is
// looked up in it.
//
//   VH  one table for all of a row; 0: built again for each edge
//   CO  a thread block and 1024 buckets for table rows above 100 entries, a warp and 32 for
//       others; 0: a warp and 32 buckets for all
//   VC  all lists of a row combined virtually and dealt to threads; 0: a warp a list
//
// RO, the order of ids, is the caller's. A row is skipped if its table or index row is empty, or
// if both are one row of a single entry; the length of a block's row chooses only warp or block.
//
//   probes(u, v) = |stream.row(v)|, of rows that are not skipped
//
// Launch: trust_rows, a thread a row, sorts the rows by team; then trust_warp, a warp a row, and trust_block, a
// block of THREADS a row, each as many blocks as fit, which take CHUNK rows at a time until none is left.
//
// One H200, ms, Kronecker 20 (edge factor 16, 4.4 G probes) in degree order, before hash.cuh was split off:
//
//   version                                     all     VC 0    VC, CO 0   VC, CO, VH 0
//   1 bisection over all of a tile's sums       35.9    16.9      51.2         60.7
//   2 search from the last list on, warp sums   22.9    16.8        -            -
//   learnt: lists of 280 entries fill a warp, so combining them costs more than idle lanes do; a
//   block for long rows pays 3 times; one table a row gains little here, rows being short

#ifndef VH
#define VH 1
#endif
#ifndef CO
#define CO 1
#endif
#ifndef VC
#define VC 1
#endif
#ifndef CHUNK
#define CHUNK 1  // rows that a team takes at a time (section 4.3)
#endif
#ifndef THREADS
#define THREADS 1024
#endif

constexpr int64 SMALL_ROW = 100;

// Rows by the team that counts them: `rows` holds warps' rows from its front, blocks' from its back.
struct Lists {
  uint32 warp_rows, block_rows, warp_next, block_next, longest, spare;
};

extern "C" __global__ void trust_rows(Task t, uint32* rows, Lists* lists, Totals* totals) {
  uint64 wedges = 0;
  uint32 longest = 0;
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k < t.rows; k += threads) {
    int64 u = row_of(t, k);
    int64 size = t.table.length(u), edges = t.index.length(u);
    if (edges == 0) { continue; }
    if (size > longest) { longest = uint32(size); }
    if (size == 0 || (t.same && size < 2)) {
      for (int64 p = t.index.offsets[u]; p < t.index.offsets[u + 1]; p++) {
        wedges += t.stream.length(t.index.columns[p]);
      }
    } else if (CO && size > SMALL_ROW) {
      rows[t.rows - 1 - atomicAdd(&lists->block_rows, 1u)] = uint32(u);
    } else {
      rows[atomicAdd(&lists->warp_rows, 1u)] = uint32(u);
    }
  }
  add_to(&totals->wedges, wedges);
  longest = warp_max(longest);
  if (threadIdx.x % 32 == 0) { atomicMax(&lists->longest, longest); }
}

// The threads that share a table: a warp of 32 or a block of 1024, a bucket a thread.
template <bool WIDE> using TeamOf = Team<WIDE ? THREADS : 32, WIDE ? 1024 : 32, WIDE>;
template <bool WIDE> using Table = HashTable<TeamOf<WIDE>>;

// Shared memory of a block: one table of 1024 buckets or THREADS / 32 tables of 32, and the virtual
// combination's lists, one a thread.
struct Shared {
  uint32 fill[1024];
  int32 slots[LEVELS * 1024];
  int64 ends[THREADS];
  int64 starts[THREADS];
  uint32 row;
};

struct Found {
  uint64 triangles = 0, probes = 0;
  uint32 collision = 0;
};

// A warp a list: lists p, p + warps, ... of [begin, end).
template <bool WIDE> __device__ void by_lists(Table<WIDE>& table, const Task& t, int64 begin, int64 end, Found& found) {
  uint32 lane = threadIdx.x % 32, warps = TeamOf<WIDE>::SIZE / 32;
  for (int64 p = begin + TeamOf<WIDE>::rank() / 32; p < end; p += warps) {
    int64 v = t.index.columns[p], last = t.stream.offsets[v + 1];
    for (int64 q = t.stream.offsets[v] + lane; q < last; q += 32) {
      found.triangles += table.contains(t.stream.columns[q]);
      found.probes++;
    }
  }
}

// Inclusive running sums over the team, one number a thread.
template <bool WIDE> __device__ void running_sums(int64* ends, int64 mine) {
  uint32 rank = TeamOf<WIDE>::rank(), lane = threadIdx.x % 32;
  for (int delta = 1; delta < 32; delta <<= 1) {
    int64 left = __shfl_up_sync(ALL, mine, delta);
    mine += lane >= delta ? left : 0;
  }
  ends[rank] = mine;
  TeamOf<WIDE>::sync();
  if constexpr (WIDE) {
    for (uint32 k = 31; k < rank - lane; k += 32) { mine += ends[k]; }
    __syncthreads();
    ends[rank] = mine;
    __syncthreads();
  }
}

// First place from `low` to `most` whose running sum is above i; the one at `most` is. Near first.
__device__ __forceinline__ uint32 first_above(const int64* ends, uint32 low, uint32 most, int64 i) {
  uint32 high = low;
  for (uint32 step = 1; ends[high] <= i; step *= 2) {
    low = high + 1;
    high = min(high + step, most);
  }
  while (low < high) {
    uint32 middle = (low + high) / 2;
    if (ends[middle] > i) { high = middle; } else { low = middle + 1; }
  }
  return low;
}

// Virtual combination (section 4.2): entry i of all lists together is in the first list whose
// running sum of lengths is above i.
template <bool WIDE>
__device__ void by_combination(Table<WIDE>& table, Shared& shared, const Task& t, int64 begin, int64 end,
    Found& found) {
  constexpr uint32 SIZE = TeamOf<WIDE>::SIZE;
  uint32 rank = TeamOf<WIDE>::rank();
  int64* ends = shared.ends + (threadIdx.x - rank);
  int64* starts = shared.starts + (threadIdx.x - rank);
  for (int64 tile = begin; tile < end; tile += SIZE) {
    int64 p = tile + rank, v = p < end ? t.index.columns[p] : 0;
    int64 size = p < end ? t.stream.length(v) : 0;
    running_sums<WIDE>(ends, size);
    starts[rank] = (p < end ? t.stream.offsets[v] : 0) - (ends[rank] - size);
    TeamOf<WIDE>::sync();
    int64 all = ends[SIZE - 1];
    uint32 list = 0;
    for (int64 i = rank; i < all; i += SIZE) {
      list = first_above(ends, list, SIZE - 1, i);
      found.triangles += table.contains(t.stream.columns[starts[list] + i]);
      found.probes++;
    }
    TeamOf<WIDE>::sync();
  }
}

template <bool WIDE>
__device__ void count_row(Table<WIDE>& table, Shared& shared, const Task& t, int64 u, Found& found) {
  int64 last = t.index.offsets[u + 1], step = VH ? t.index.length(u) : 1;
  for (int64 begin = t.index.offsets[u]; begin < last; begin += step) {
    uint32 longest = table.build(t.table.columns + t.table.offsets[u], t.table.length(u));
    found.collision = max(found.collision, min(longest, table.depth));
    if (VC) {
      by_combination<WIDE>(table, shared, t, begin, begin + step, found);
    } else {
      by_lists<WIDE>(table, t, begin, begin + step, found);
    }
  }
}

__device__ void report(const Found& found, Totals* totals) {
  add_to(&totals->triangles, found.triangles);
  add_to(&totals->probes, found.probes);
  add_to(&totals->wedges, found.probes);
  uint32 longest = warp_max(found.collision);
  if (threadIdx.x % 32 == 0) { atomicMax(&totals->collision, uint64(longest)); }
}

// Rows below 101 entries (all, without CO), a warp a row.
extern "C" __global__ void __launch_bounds__(THREADS)
trust_warp(Task t, const uint32* rows, Lists* lists, int32* scratch, uint32 depth, Totals* totals) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Table<false> table(shared.fill, shared.slots, scratch, depth);
  Found found;
  for (;;) {
    uint32 next = 0;
    if (threadIdx.x % 32 == 0) { next = atomicAdd(&lists->warp_next, uint32(CHUNK)); }
    next = __shfl_sync(ALL, next, 0);
    if (next >= lists->warp_rows) { break; }
    for (uint32 k = next; k < min(next + CHUNK, lists->warp_rows); k++) {
      count_row<false>(table, shared, t, rows[k], found);
    }
  }
  report(found, totals);
}

// Longer rows, a block a row.
extern "C" __global__ void __launch_bounds__(THREADS)
trust_block(Task t, const uint32* rows, Lists* lists, int32* scratch, uint32 depth, Totals* totals) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Table<true> table(shared.fill, shared.slots, scratch, depth);
  Found found;
  for (;;) {
    if (threadIdx.x == 0) { shared.row = atomicAdd(&lists->block_next, uint32(CHUNK)); }
    __syncthreads();
    uint32 next = shared.row;
    __syncthreads();
    if (next >= lists->block_rows) { break; }
    for (uint32 k = next; k < min(next + CHUNK, lists->block_rows); k++) {
      count_row<true>(table, shared, t, rows[t.rows - 1 - k], found);
    }
  }
  report(found, totals);
}
