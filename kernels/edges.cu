// edges: from raw edges to oriented keys; each step takes one or two passes without intermediates.
//
// A raw edge is two ids, 32-bit or, with WIDE, 64-bit. From then on an edge is one int64 key of two dense
// ids, high << shift | low. Array arithmetic would hold several arrays of all edges at once, for which a
// device has no room, and move each of them through memory.
//
//   edges_facts     the smallest and largest id of edges that are not loops, and the number of loops
//   edges_mark      sets a bit for every id of such an edge
//   edges_counts    counts the bits in each warp's share; edges_ranks copies the words and adds their running sums
//   edges_dense     the dense id of an id: the number of bits before its own
//   edges_ends      adds 1 to both ends of each edge that is no loop
//   edges_bins, edges_deal, edges_tally: the same of many edges: ends are dealt to bins by their leading bits, and
//                   counted in shared memory
//   edges_keys      canonical keys: the smaller dense id is the high end; with ranks, oriented keys over these: the
//                   higher rank is the high end. A loop becomes key 0, also a loop. Counts them by range, if asked
//   keys_counts     counts the keys of each range; keys_scatter brings the keys of a range together, in no order, and
//                   takes out bits that are 0 in all of them
//   keys_distinct   counts, in each warp's share of ascending keys, those that are neither loops nor equal to the key
//                   before; keys_compact writes them
//   keys_rows       of these keys the columns; adds them to the lengths of their rows, and subtracts repeats from the
//                   degrees of their ends, which are by id
//   share_starts    one block: start of each share, from the counts of all shares
//   keys_degrees    adds 1 to both ends; high ends ascend, and a run of equal ones in a warp is added at once
//   keys_sources    adds 1 to the high end; of a run of equal ones in a warp at once
//   keys_orient     makes the higher rank the high end
//   keys_residues   counts the keys with each pair of remainders of their ends
//   keys_place      recodes keys by block, with ids dealt out by remainder: a block's first key + row * width + column
//   keys_offsets    start of each row of ascending keys; keys_columns: their columns
//
// One H200: ms from a raw edge array to ready blocks, and peak bytes per raw edge, these 8 included.
// Kronecker, edge factor 16, scales 20, 22, 24; uniform random graph of 20 M vertices and 100 M edges; torus of
// 300^3.
//
//   version                          K20         K22         K24         uniform     torus
//   array arithmetic, measured       14.4        36.9        127         -           -           30 to 62 bytes
//   1 predicted                      -           -           75          -           -           17 to 23 bytes
//     measured                       10.3  18.8  24.7  17.4  70.7  17.3  38.9  20.5  30.8  23.0
//   2 measured                       8.4  18.4  22.6  17.2  65.9  17.3  34.7  20.0  25.7  22.7
//   3 measured                       5.8   20.1  15.0  20.3  52.0  18.3  -           -     17.9  24.1
//     2 the same day                 8.7   18.4  23.1  17.2  67.0  17.3  -           -     26.6  22.7
//     3 is sort.cu, whose first digit reads all slices, and arrays of more edges: RA 312 -> 280 ms. With at least three
//     arrays, not two, the torus stays within 24 bytes (not measured again)
//   4 predicted                      5           9           28          18          12          at most 20 bytes
//     measured                       6.4   19.7  12.1  19.7  34.4  19.0  18.9  21.9  14.6  24.0
//     3 the same day                 12.2  18.9  20.0  19.0  54.8  18.5  29.9  21.2  21.3  22.8
//     4 ranks vertices by the rows that name them, repeats included, so that edges are directed before their only sort
//     (one block in degree order). RA 273 -> 146 ms (130 predicted), RM 269 -> 179 (130), 464^3 66 -> 43, Kronecker 26
//     221 -> 139, six copies of each row of Kronecker 20 16.1 -> 13.9. Since then two vectors of all vertices fewer are
//     held at the peak, 8 bytes a vertex (torus: 22.7 bytes in the emulation; not measured)
//     learnt of 4: counting ends by atomic operations at random addresses runs at 18 G/s where counts exceed the L2,
//     at 40 to 47 within: 11 ms of K24's 45, 60 of RA's 192, 111 of RM's 284, which was slower than 3. Dealt to bins
//     first, and then counted in shared memory, it takes 5.8, 25 and 27. Where rows name neighbours the atomic
//     operations were faster: torus 12.9 ms, 464^3 40. Copies of distinct keys, their sources and searched offsets were
//     4 of K24's ms, 15 of RA's; columns and lengths of rows, written from the sorted keys, are 1.8 and 4.6. Sixteen
//     pieces in place of four: K24 +17 %, three: no gain. Gathers of ranks, 38 G/s, are left: 48 of RM's ms; so are
//     waits and allocations between launches, 4 of K24's, 17 of RM's. Counting K24 took 1 % longer, RM 4 % less (12 %
//     with other pieces: where arrays lie in memory matters), RA 5 to 7 % longer, though its block is the same
//   5 predicted                      5           14.5        32          17.4        13.9        -
//     measured                       5.2   25.0  12.1  19.0  33.2  18.5  18.5  20.1  14.2  22.7
//     4 the same day                 9.2   19.6  15.5  19.7  34.1  18.9  17.7  21.2  14.2  22.8
//     5 waits less, has fewer bits to sort, and other arrays: at least five, or one of 2^24 edges. RA 153 -> 139 ms, RM
//     188 -> 172, Kronecker 26 146 -> 120 to 127; predicted: 145, 180, 125
//     learnt of 5: in a call of K26 the device waited 37 of 471 ms, of these 16 for memory, now 21 and 5 of 446, while
//     the next array is made before the sizes of one's ranges are known, and a range is sorted before the number of
//     columns of the last is. Both ends of a key in a range of rows are below its last row, so that its first rows need
//     2 digits fewer: K26 56 passes to 45 (50.2 ms to 40.7), K24 11.0 to 10.1, RM 48.2 to 45.8, RA, whose ranges need
//     as many, nothing. Sixteen million edges are bound by launches: one array takes half of them. Five arrays in place
//     of three, or of 2^25 edges: no gain, no loss. Ranks gathered of edges that are dealt by source, then by target
//     (2^28 of RM's: 12.8 to 7.8 and 4.2 ms; RA 7.3, 7.2 and 2.6; K26 4.7, 3.9 and 3.3; K24 3.9, 3.1 and 3.1), not
//     built: to deal 2^28 of them is estimated at 2 to 3 ms each time, so that RM alone would gain, some 10 of 172 ms
//   6 predicted                      4.7         10.5        31          17          12.5        -
//     measured                       4.0         10.0        29.0        16.0        12.9        -
//     5 the same day                 4.5         10.3        30.1        17.2        14.0        -
//     6: ranks are inverted once, not three times; generated edges are read in one call, where eight waited for facts
//     and a sample each; no running sum of all rows' lengths; keys are counted by range as they are made. Calls in turns
//     with 5, RA 182 -> 177 (inverses) -> 174 (reading, sums) -> 173 (counts), RM 243 -> 237 -> 233 -> 231, Kronecker 26
//     437 -> 432 -> 426 -> 427, Kronecker 24 82 -> 82 -> 79.5 -> 79, 464^3 45 -> 41; predicted -9, -12, -8, -2, -3
//     learnt of 6: between kernels the device waited 21 of RA's ms, 8 of these for the host where the plan is made and
//     columns are joined, and 3 in reading. Counting hides behind gathers of ranks (+0.1 of 29 ms), not behind those
//     of 2^24 vertices, half of which the L2 has (+0.4 of 3.9). Repeats dropped in one pass, whose tiles look back at
//     those before, in place of two: predicted -2.7 for RA, measured +0.6, since tiles wait for those before; dropped
//     learnt of 1: half the time was intermediates in memory; of K24's, two sorts of 64-bit keys are 32 ms. Vertex
//     vectors decide the torus: a sort of ids takes 20 bytes a vertex
//     learnt of 2, in which kernels also make vertex vectors, running sums and rows: ego-Facebook, 88,234 edges, from
//     4.0 ms to the answer to 2.4 (3.0 predicted). A launch takes the host 10 us, a wait for a number 20, a sort 110;
//     of 49 allocations, 6 us each, 24 are left

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef WIDE
#define WIDE 0  // 1: raw ids have 64 bits
#endif
#ifndef RANGES
#define RANGES 256  // most ranges to which keys are dealt
#endif
#ifndef SCAN
#define SCAN 1024  // threads of share_starts
#endif
#ifndef TILE
#define TILE 8  // keys per thread that are dealt to ranges together
#endif
#ifndef DEAL_BLOCK
#define DEAL_BLOCK 512
#endif
#ifndef DEAL_ROWS
#define DEAL_ROWS 8  // rows per thread whose ends are dealt to bins together
#endif
#ifndef BIN_BITS
#define BIN_BITS 10  // most bins are 1 << BIN_BITS
#endif
#ifndef TALLY_BLOCK
#define TALLY_BLOCK 1024
#endif
#ifndef TALLY_BATCH
#define TALLY_BATCH 8  // ends that a thread reads before it counts them
#endif
#ifndef TALLY_ENDS
#define TALLY_ENDS 262144  // ends that it counts before it adds to the counts of all
#endif

#if WIDE
using Id = int64;
#else
using Id = int32;
#endif

__device__ __forceinline__ int64 most_of(int64 x) {
  for (int delta = 16; delta > 0; delta >>= 1) { x = max(x, __shfl_down_sync(ALL, x, delta)); }
  return x;
}

constexpr int64 LEAST = int64(uint64(1) << 63);

// A number with its sign bit flipped: their order as unsigned numbers, of which 0 is the least, is theirs.
__device__ __forceinline__ uint64 unsigned_of(int64 x) { return uint64(x) ^ uint64(LEAST); }

// facts: ~(smallest id), so that both ids are maxima, and the largest id, as `unsigned_of`; loops. Initially 0.
extern "C" __global__ void __launch_bounds__(BLOCK)
    edges_facts(const Id* src, const Id* dst, int64 size, uint64* facts) {
  int64 low = LEAST, high = LEAST;
  uint64 loops = 0;
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 a = src[k], b = dst[k];
    if (a == b) {
      loops++;
    } else {
      low = max(low, ~min(a, b));
      high = max(high, max(a, b));
    }
  }
  low = most_of(low);
  high = most_of(high);
  add_to(facts + 2, loops);
  if (threadIdx.x % 32 == 0) {
    atomicMax(facts, unsigned_of(low));
    atomicMax(facts + 1, unsigned_of(high));
  }
}

// For each 32 ids: their bits, and the number of bits set in all words before.
__device__ __forceinline__ void mark(uint2* table, int64 x) {
  uint32 *word = &table[x >> 5].x, bit = 1u << (x & 31);
  if (!(RACY_READ(*word, "bits are only set; one not seen is set again") & bit)) { atomicOr(word, bit); }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    edges_mark(const Id* src, const Id* dst, int64 size, int64 low, uint2* table) {
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 a = src[k], b = dst[k];
    if (a == b) { continue; }
    mark(table, a - low);
    mark(table, b - low);
  }
}

// Stores the count of each warp's share, and a 0 after the last, so that running sums end with the total.
__device__ __forceinline__ void note_share(uint64* counts, uint64 of_lane) {
  uint64 all = warp_sum(of_lane);
  if (threadIdx.x % 32 == 0) { counts[first_of() / 32] = all; }
  if (first_of() == 0) { counts[all_threads() / 32] = 0; }
}

extern "C" __global__ void __launch_bounds__(SCAN) share_starts(uint64* counts, uint32 size) {
  __shared__ uint64 sums[SCAN / 32];
  starts_of<SCAN>(counts, size, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    edges_counts(const uint2* table, int64 words, int64 share, uint64* counts) {
  uint64 found = 0;
  int64 begin = first_of() / 32 * share, end = min(begin + share, words);
  for (int64 k = begin + threadIdx.x % 32; k < end; k += 32) { found += __popc(table[k].x); }
  note_share(counts, found);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    edges_ranks(const uint2* table, int64 words, int64 share, const uint64* starts, uint2* ranked) {
  uint32 lane = threadIdx.x % 32;
  int64 warp = first_of() / 32, begin = warp * share, end = min(begin + share, words);
  uint32 before = uint32(starts[warp]);
  for (int64 k = begin + lane; k - lane < end; k += 32) {
    uint32 bits = k < end ? table[k].x : 0, mine = __popc(bits), ends = warp_ends(mine);
    if (k < end) { ranked[k] = uint2{bits, before + ends - mine}; }
    before += __shfl_sync(ALL, ends, 31);
  }
}

// Without a table every id of the range occurs.
__device__ __forceinline__ int64 dense_of(const uint2* table, int64 x) {
  if (!table) { return x; }
  uint2 word = table[x >> 5];
  return word.y + __popc(word.x & ((1u << (x & 31)) - 1));
}

extern "C" __global__ void edges_dense(const Id* ids, int64 size, int64 low, const uint2* table, int32* dense) {
  for (int64 k = first_of(); k < size; k += all_threads()) { dense[k] = int32(dense_of(table, ids[k] - low)); }
}

// Adds a warp's lanes with the same id x as the lane before together; lanes with x = -1 add nothing. All lanes call it.
__device__ __forceinline__ void add_runs(uint32* counts, int64 x) {
  uint32 lane = threadIdx.x % 32;
  int64 before = __shfl_up_sync(ALL, x, 1);
  uint32 heads = __ballot_sync(ALL, lane == 0 || x != before);
  uint32 later = lane == 31 ? 0 : heads >> (lane + 1);
  uint32 run = later ? __ffs(int(later)) : 32 - lane;
  if (x >= 0 && heads >> lane & 1) { atomicAdd(counts + x, run); }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    edges_ends(const Id* src, const Id* dst, int64 size, int64 low, const uint2* table, uint32* counts) {
  for (int64 k = first_of(); k - threadIdx.x % 32 < size; k += all_threads()) {
    int64 a = k < size ? src[k] : 0, b = k < size ? dst[k] : 0;
    bool proper = a != b;
    add_runs(counts, proper ? dense_of(table, a - low) : -1);
    if (proper) { atomicAdd(counts + dense_of(table, b - low), 1u); }
  }
}

constexpr uint32 BINS = 1 << BIN_BITS, DEALT = 2 * DEAL_ROWS * DEAL_BLOCK, NO_ID = 0xffffffffu;

// counts: of the ends in each bin, 1 << shift ids; initially 0.
extern "C" __global__ void __launch_bounds__(DEAL_BLOCK) edges_bins(const Id* src, const Id* dst, int64 size, int64 low,
    const uint2* table, uint32 shift, uint64* counts) {
  __shared__ uint32 own[BINS];
  for (uint32 d = threadIdx.x; d < BINS; d += DEAL_BLOCK) { own[d] = 0; }
  __syncthreads();
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 a = src[k], b = dst[k];
    if (a == b) { continue; }
    atomicAdd(own + (dense_of(table, a - low) >> shift), 1u);
    atomicAdd(own + (dense_of(table, b - low) >> shift), 1u);
  }
  __syncthreads();
  for (uint32 d = threadIdx.x; d < BINS; d += DEAL_BLOCK) {
    if (own[d]) { atomicAdd(counts + d, uint64(own[d])); }
  }
}

// Brings the ends of a bin together, in no order; `next` is the next free place of each bin, in the end that of the one
// after it. A tile's ends are gathered by bin in shared memory, and written in runs.
extern "C" __global__ void __launch_bounds__(DEAL_BLOCK) edges_deal(const Id* src, const Id* dst, int64 size, int64 low,
    const uint2* table, uint32 shift, uint64* next, uint32* ends) {
  __shared__ uint32 starts[BINS + 1], staged[DEALT], sums[DEAL_BLOCK / 32];
  __shared__ uint64 places[BINS];
  for (int64 tile = int64(blockIdx.x) * DEAL_ROWS * DEAL_BLOCK; tile < size;
       tile += int64(gridDim.x) * DEAL_ROWS * DEAL_BLOCK) {
    for (uint32 d = threadIdx.x; d <= BINS; d += DEAL_BLOCK) { starts[d] = 0; }
    uint32 mine[2 * DEAL_ROWS], place[2 * DEAL_ROWS];
#pragma unroll
    for (uint32 i = 0; i < DEAL_ROWS; i++) {
      int64 k = tile + i * DEAL_BLOCK + threadIdx.x;
      int64 a = k < size ? src[k] : 0, b = k < size ? dst[k] : 0;
      mine[2 * i] = a != b ? uint32(dense_of(table, a - low)) : NO_ID;
      mine[2 * i + 1] = a != b ? uint32(dense_of(table, b - low)) : NO_ID;
    }
    __syncthreads();
#pragma unroll
    for (uint32 i = 0; i < 2 * DEAL_ROWS; i++) {
      if (mine[i] != NO_ID) { place[i] = atomicAdd(starts + (mine[i] >> shift), 1u); }
    }
    __syncthreads();
    for (uint32 d = threadIdx.x; d < BINS; d += DEAL_BLOCK) {
      places[d] = starts[d] ? atomicAdd(next + d, uint64(starts[d])) : 0;
    }
    starts_of<DEAL_BLOCK>(starts, BINS + 1, sums);
    for (uint32 d = threadIdx.x; d < BINS; d += DEAL_BLOCK) { places[d] -= starts[d]; }
#pragma unroll
    for (uint32 i = 0; i < 2 * DEAL_ROWS; i++) {
      if (mine[i] != NO_ID) { staged[starts[mine[i] >> shift] + place[i]] = mine[i]; }
    }
    __syncthreads();
    for (uint32 k = threadIdx.x; k < starts[BINS]; k += DEAL_BLOCK) {
      uint32 x = staged[k];
      ends[places[x >> shift] + k] = x;
    }
    __syncthreads();
  }
}

// Counts dealt ends: of those of a bin, some at a time, a block counts one range of 1 << bits ids in shared memory.
// `bin_ends` are the ends of the bins. Blocks of one bin are neighbours: all but the first find its ends in the cache.
extern "C" __global__ void __launch_bounds__(TALLY_BLOCK) edges_tally(const uint64* bin_ends, uint32 bins, uint32 shift,
    uint32 bits, uint32 pieces, const uint32* ends, int64 ids, uint32* counts) {
  extern __shared__ unsigned char memory[];
  uint32* const own = reinterpret_cast<uint32*>(memory);
  uint32 width = 1u << bits, ranges = 1u << (shift - bits);
  for (uint32 unit = blockIdx.x; unit < bins * pieces * ranges; unit += gridDim.x) {
    uint32 range = unit % ranges, piece = unit / ranges % pieces, bin = unit / ranges / pieces;
    int64 begin = bin ? bin_ends[bin - 1] : 0, size = int64(bin_ends[bin]) - begin;
    int64 each = max(int64(TALLY_ENDS), (size + pieces - 1) / pieces), first = piece * each;
    int64 id = (int64(bin) << shift) + (int64(range) << bits);
    if (first >= size || id >= ids) { continue; }
    int64 last = min(first + each, size);
    for (uint32 k = threadIdx.x; k < width; k += TALLY_BLOCK) { own[k] = 0; }
    __syncthreads();
    for (int64 k = first + threadIdx.x; k < last; k += TALLY_BATCH * TALLY_BLOCK) {
      uint32 mine[TALLY_BATCH];
#pragma unroll
      for (uint32 i = 0; i < TALLY_BATCH; i++) {
        int64 at = k + i * TALLY_BLOCK;
        mine[i] = at < last ? ends[begin + at] : NO_ID;
      }
#pragma unroll
      for (uint32 i = 0; i < TALLY_BATCH; i++) {
        uint32 x = mine[i] - uint32(id);
        if (x < width) { atomicAdd(own + x, 1u); }
      }
    }
    __syncthreads();
    for (uint32 k = threadIdx.x; k < width; k += TALLY_BLOCK) {
      if (own[k]) { atomicAdd(counts + id + k, own[k]); }
    }
    __syncthreads();
  }
}

// In shared memory: the borders between ranges, and a number for each range.
struct Ranges {
  int64 starts[RANGES];
  uint32 counts[RANGES];
  uint64 places[RANGES];

  __device__ void load(const int64* borders, uint32 size) {
    for (uint32 r = threadIdx.x; r < size; r += BLOCK) { starts[r] = borders[r]; }
  }

  __device__ void clear(uint32 ranges) {
    for (uint32 r = threadIdx.x; r < ranges; r += BLOCK) { counts[r] = 0; }
  }

  __device__ uint32 of(int64 key, uint32 borders) const {
    uint32 at = 0;
    while (at < borders) {
      uint32 middle = (at + borders) / 2;
      bool below = starts[middle] <= key;
      at = below ? middle + 1 : at;
      borders = below ? borders : middle;
    }
    return at;
  }

  __device__ void add_to(uint64* all, uint32 borders) {
    __syncthreads();
    for (uint32 r = threadIdx.x; r <= borders; r += BLOCK) {
      if (counts[r]) { atomicAdd(all + r, uint64(counts[r])); }
    }
  }
};

// With borders between ranges it also counts the keys of each range.
extern "C" __global__ void __launch_bounds__(BLOCK) edges_keys(const Id* src, const Id* dst, int64 size, int64 low,
    const uint2* table, uint32 shift, const int32* rank, int64* keys, const int64* starts, uint32 borders,
    uint64* counts) {
  __shared__ Ranges ranges;
  if (borders) {
    ranges.load(starts, borders);
    ranges.clear(borders + 1);
    __syncthreads();
  }
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 a = src[k], b = dst[k], key = 0;
    if (a != b) {
      a = dense_of(table, a - low);
      b = dense_of(table, b - low);
      if (rank) {
        a = rank[a];
        b = rank[b];
      }
      key = rank ? max(a, b) << shift | min(a, b) : min(a, b) << shift | max(a, b);
    }
    keys[k] = key;
    if (borders) { atomicAdd(ranges.counts + ranges.of(key, borders), 1u); }
  }
  if (borders) { ranges.add_to(counts, borders); }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_counts(const int64* keys, int64 size, const int64* starts, uint32 borders, uint64* counts) {
  __shared__ Ranges ranges;
  ranges.load(starts, borders);
  ranges.clear(borders + 1);
  __syncthreads();
  for (int64 k = first_of(); k < size; k += all_threads()) {
    atomicAdd(ranges.counts + ranges.of(keys[k], borders), 1u);
  }
  ranges.add_to(counts, borders);
}

// A block deals one tile of keys per step; `next` is the next free place of each range's array. The low end of a key
// has `shift` bits, and those of its range when it is written.
extern "C" __global__ void __launch_bounds__(BLOCK) keys_scatter(const int64* keys, int64 size, const int64* starts,
    uint32 borders, uint32 shift, const uint32* bits, int64* const* arrays, uint64* next) {
  __shared__ Ranges ranges;
  int64 low = (int64(1) << shift) - 1;
  ranges.load(starts, borders);
  for (int64 tile = int64(blockIdx.x) * BLOCK * TILE; tile < size; tile += int64(gridDim.x) * BLOCK * TILE) {
    int64 mine[TILE];
    uint32 range[TILE], place[TILE];
    ranges.clear(borders + 1);
    __syncthreads();
#pragma unroll
    for (uint32 i = 0; i < TILE; i++) {
      int64 k = tile + i * BLOCK + threadIdx.x;
      mine[i] = k < size ? keys[k] : 0;
    }
#pragma unroll
    for (uint32 i = 0; i < TILE; i++) {
      range[i] = ranges.of(mine[i], borders);
      if (tile + i * BLOCK + threadIdx.x < size) { place[i] = atomicAdd(ranges.counts + range[i], 1u); }
    }
    __syncthreads();
    for (uint32 r = threadIdx.x; r <= borders; r += BLOCK) {
      if (ranges.counts[r]) { ranges.places[r] = atomicAdd(next + r, uint64(ranges.counts[r])); }
    }
    __syncthreads();
#pragma unroll
    for (uint32 i = 0; i < TILE; i++) {
      if (tile + i * BLOCK + threadIdx.x < size) {
        int64 key = mine[i] >> shift << bits[range[i]] | (mine[i] & low);
        arrays[range[i]][ranges.places[range[i]] + place[i]] = key;
      }
    }
  }  // the next tile's places are written two barriers later
}

// Whether one of ascending keys is no loop and differs from the key before.
__device__ __forceinline__ bool is_new(const int64* keys, int64 k, uint32 shift) {
  int64 key = keys[k];
  return (k == 0 || keys[k - 1] != key) && key >> shift != (key & ((int64(1) << shift) - 1));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_distinct(const int64* keys, int64 size, uint32 shift, int64 share, uint64* counts) {
  uint64 found = 0;
  int64 begin = first_of() / 32 * share, end = min(begin + share, size);
  for (int64 k = begin + threadIdx.x % 32; k < end; k += 32) { found += is_new(keys, k, shift); }
  note_share(counts, found);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_compact(const int64* keys, int64 size, uint32 shift, int64 share, const uint64* starts, int64* kept) {
  uint32 lane = threadIdx.x % 32;
  int64 warp = first_of() / 32, begin = warp * share, end = min(begin + share, size);
  uint64 place = starts[warp];
  for (int64 k = begin; k < end; k += 32) {
    bool mine = k + lane < end && is_new(keys, k + lane, shift);
    uint32 votes = __ballot_sync(ALL, mine);
    if (mine) { kept[place + __popc(votes & ((1u << lane) - 1))] = keys[k + lane]; }
    place += __popc(votes);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) keys_rows(const int64* keys, int64 size, uint32 shift, int64 share,
    const uint64* starts, int32* columns, uint32* lengths, const int32* vertices, uint32* degrees) {
  uint32 lane = threadIdx.x % 32;
  int64 warp = first_of() / 32, begin = warp * share, end = min(begin + share, size);
  uint64 place = starts[warp];
  for (int64 k = begin; k < end; k += 32) {
    bool there = k + lane < end, mine = there && is_new(keys, k + lane, shift);
    int64 key = there ? keys[k + lane] : 0, high = key >> shift, low = key & ((int64(1) << shift) - 1);
    uint32 votes = __ballot_sync(ALL, mine);
    if (mine) { columns[place + __popc(votes & ((1u << lane) - 1))] = int32(low); }
    place += __popc(votes);
    add_runs(lengths, mine ? high : -1);
    // Neighbouring lanes with repeats have the same key: the first of them subtracts all.
    bool repeat = high != low && !mine;
    uint32 repeats = __ballot_sync(ALL, repeat);
    if (repeat && (lane == 0 || !(repeats >> (lane - 1) & 1))) {
      uint32 others = ~(repeats >> lane), run = others ? __ffs(int(others)) - 1 : 32;
      atomicAdd(degrees + vertices[high], 0u - run);
      atomicAdd(degrees + vertices[low], 0u - run);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_degrees(const int64* keys, int64 size, uint32 shift, uint32* degrees) {
  for (int64 k = first_of(); k - threadIdx.x % 32 < size; k += all_threads()) {
    int64 key = k < size ? keys[k] : -1;
    add_runs(degrees, key >> shift);
    if (key >= 0) { atomicAdd(degrees + (key & ((int64(1) << shift) - 1)), 1u); }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_sources(const int64* keys, int64 size, uint32 shift, uint32* degrees) {
  for (int64 k = first_of(); k - threadIdx.x % 32 < size; k += all_threads()) {
    add_runs(degrees, k < size ? keys[k] >> shift : -1);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_orient(const int64* keys, int64 size, uint32 shift, const int32* rank, int64* oriented) {
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 key = keys[k], a = rank[key >> shift], b = rank[key & ((int64(1) << shift) - 1)];
    oriented[k] = max(a, b) << shift | min(a, b);
  }
}

// counts: modulus * modulus, at most RANGES, by the high end's remainder and then the low end's; initially 0.
extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_residues(const int64* keys, int64 size, uint32 shift, uint32 modulus, uint64* counts) {
  __shared__ uint32 own[RANGES];
  uint32 bins = modulus * modulus;
  for (uint32 r = threadIdx.x; r < bins; r += BLOCK) { own[r] = 0; }
  __syncthreads();
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 key = keys[k];
    uint32 high = uint32(key >> shift), low = uint32(key & ((int64(1) << shift) - 1));
    atomicAdd(own + high % modulus * modulus + low % modulus, 1u);
  }
  __syncthreads();
  for (uint32 r = threadIdx.x; r < bins; r += BLOCK) {
    if (own[r]) { atomicAdd(counts + r, uint64(own[r])); }
  }
}

// firsts: first keys of the blocks, row-major; widths: keys per row in each column of the grid.
extern "C" __global__ void __launch_bounds__(BLOCK) keys_place(const int64* keys, int64 size, uint32 shift,
    uint32 modulus, const int64* firsts, const int64* widths, int64* placed) {
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 key = keys[k];
    uint32 high = uint32(key >> shift), low = uint32(key & ((int64(1) << shift) - 1));
    uint32 i = high % modulus, j = low % modulus;
    placed[k] = firsts[i * modulus + j] + high / modulus * widths[j] + low / modulus;
  }
}

// Row r has the keys from start + r * columns up to, but not including, start + (r + 1) * columns.
extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_offsets(const int64* keys, int64 size, int64 start, int64 columns, int64 rows, int64* offsets) {
  for (int64 r = first_of(); r <= rows; r += all_threads()) {
    int64 at = 0, end = size, bound = start + r * columns;
    while (at < end) {
      int64 middle = at + ((end - at) >> 1);
      bool below = keys[middle] < bound;
      at = below ? middle + 1 : at;
      end = below ? end : middle;
    }
    offsets[r] = at;
  }
}

// For a power of two a mask is used, because 64-bit division takes some dozens of instructions.
extern "C" __global__ void __launch_bounds__(BLOCK)
    keys_columns(const int64* keys, int64 size, int64 start, int64 columns, int32* found) {
  bool power = (columns & (columns - 1)) == 0;
  for (int64 k = first_of(); k < size; k += all_threads()) {
    uint64 place = keys[k] - start;
    found[k] = int32(power ? place & (columns - 1) : place % uint64(columns));
  }
}
