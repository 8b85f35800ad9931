// Shared by all kernels; prepended to each as text, so that the cache key of a compiled kernel includes it.
//
// A task is a block triple: the sum, over the edges (u, v) of `index` whose row u is in the split, of
// |table.row(u) ∩ stream.row(v)|. Offsets are 64-bit, columns 32-bit and ascending in each row.

using int32 = int;
using int64 = long long;
using uint32 = unsigned int;
using uint64 = unsigned long long;

// A plain read of a word that others may change concurrently, and a plain write of a word that others may read or
// write. `why`: the reason why every order is correct. Tests report races without these macros
// (tests/support/emulation/races.hpp).
#ifndef RACY_READ
#define RACY_READ(word, why) (word)
#define RACY_WRITE(word, value, why) ((word) = (value))
#endif

constexpr uint32 ALL = 0xffffffffu;
constexpr int64 BEHIND = 1ll << 40;  // shift of unordered blocks: every column counts as before v
constexpr int64 GROUP = 32;          // rows that are dealt out to splits together

struct Block {
  const int64* offsets;
  const int32* columns;

  __device__ int64 length(int64 row) const { return offsets[row + 1] - offsets[row]; }
};

// Layout of the host's structured array, field by field.
struct Task {
  Block index, table, stream;
  int64 begin, step;  // index rows of this split: a group of GROUP rows from `begin` on, and every `step` rows another
  int64 skip, rows;  // rows of the first group that are left out, and number of rows that are not
  int64 shift;  // table entries before v in row u are those below v + shift
  int64 same;  // index and table are one block
  int64 hubs;  // hub kernel: stream rows with a bitmap
  int64 near;  // hub kernel: those of them against whose bitmaps long rows are tested
  int64 tables;  // hub kernel: key of table row 0; stream row 0 has key 0
};

// Sums over the whole grid, all 64-bit.
struct Totals {
  uint64 triangles, wedges, probes, collision;
};

// This thread's number in the grid, and the number of all threads.
__device__ __forceinline__ int64 first_of() { return int64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int64 all_threads() { return int64(gridDim.x) * blockDim.x; }

// The k-th row of the split, 0 <= k < rows.
__device__ __forceinline__ int64 row_of(const Task& t, int64 k) {
  uint64 place = k + t.skip;
  return t.begin + int64(place / GROUP) * t.step + int64(place % GROUP);
}

// First position from `at` on, below `end`, whose column is at least `bound`; else `end`.
__device__ __forceinline__ int64 lower_bound(const int32* columns, int64 at, int64 end, int64 bound) {
  while (at < end) {
    int64 middle = at + ((end - at) >> 1);
    bool below = columns[middle] < bound;
    at = below ? middle + 1 : at;
    end = below ? end : middle;
  }
  return at;
}

__device__ __forceinline__ bool contains(const int32* columns, int64 at, int64 end, int32 x) {
  int64 place = lower_bound(columns, at, end, x);
  return place < end && columns[place] == x;
}

// Number of entries of table.row(u) = [first, last) before v; p is the place of v in the index row.
__device__ __forceinline__ int64 before(const Task& t, int64 p, int64 first, int64 last, int64 v) {
  if (t.shift == BEHIND) { return last - first; }
  if (t.same && t.shift == 0) { return p - first; }
  return lower_bound(t.table.columns, first, last, v + t.shift) - first;
}

__device__ __forceinline__ uint64 warp_sum(uint64 x) {
  for (int delta = 16; delta > 0; delta >>= 1) { x += __shfl_down_sync(ALL, x, delta); }
  return x;
}

__device__ __forceinline__ uint32 warp_max(uint32 x) {
  for (int delta = 16; delta > 0; delta >>= 1) { x = max(x, __shfl_down_sync(ALL, x, delta)); }
  return x;
}

// Adds x of all lanes to *total; every thread of the warp must call it.
__device__ __forceinline__ void add_to(uint64* total, uint64 x) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0 && x) { atomicAdd(total, x); }
}

struct Sums {
  uint64 triangles = 0, wedges = 0, probes = 0;

  __device__ void add_up(Totals* totals) const {
    add_to(&totals->triangles, triangles);
    add_to(&totals->wedges, wedges);
    add_to(&totals->probes, probes);
  }
};

// Inclusive running sums over the lanes of a warp, all of which must call it.
template <class Number> __device__ __forceinline__ Number warp_ends(Number mine) {
  for (int delta = 1; delta < 32; delta <<= 1) {
    Number left = __shfl_up_sync(ALL, mine, delta);
    mine += threadIdx.x % 32 >= delta ? left : 0;
  }
  return mine;
}

// Replaces counts by the sums of those before each, tile by tile, with one block of `Threads` threads; `sums` is in
// shared memory, with an entry for each warp.
template <uint32 Threads, class Number>
__device__ __forceinline__ void starts_of(Number* counts, uint32 size, Number (&sums)[Threads / 32]) {
  uint32 warp = threadIdx.x / 32;
  Number before = 0;
  for (uint32 tile = 0; tile < size; tile += Threads) {
    uint32 k = tile + threadIdx.x;
    Number mine = k < size ? counts[k] : 0, ends = warp_ends(mine);
    if (threadIdx.x % 32 == 31) { sums[warp] = ends; }
    __syncthreads();
    Number start = before + ends - mine;
    for (uint32 i = 0; i < Threads / 32; i++) {
      start += i < warp ? sums[i] : 0;
      before += sums[i];
    }
    if (k < size) { counts[k] = start; }
    __syncthreads();
  }
}

// Reserves `mine` more places of an array that ends at *end; one atomic per warp, all of whose lanes must call it.
__device__ __forceinline__ uint32 reserve(uint32* end, uint32 mine) {
  uint32 sum = warp_ends(mine), all = __shfl_sync(ALL, sum, 31), first = 0;
  if (all == 0) { return 0; }
  if (threadIdx.x % 32 == 0) { first = atomicAdd(end, all); }
  return __shfl_sync(ALL, first, 0) + sum - mine;
}

// The row, among a warp's 32, that holds edge e of all their edges together: `ends` are running sums.
__device__ __forceinline__ uint32 owner_of(uint32 ends, uint32 e) {
  uint32 row = 0;
  for (uint32 step = 16; step > 0; step >>= 1) {
    uint32 end = __shfl_sync(ALL, ends, row + step - 1);
    row += end <= e ? step : 0;
  }
  return row;
}

// A lane's row: its index edges from place `begin` on, and the table entries that they are tested against. `note` is
// a number that each of its edges is visited with.
struct TaskRow {
  int64 u, begin, edges, first, size;
  uint32 note;
};

// Deals `edges` edges of each lane's row to the lanes in succession.
template <class Visit>
__device__ __forceinline__ void deal_edges(const TaskRow& mine, uint32 edges, const Visit& visit) {
  uint32 lane = threadIdx.x % 32, ends = warp_ends(edges), all = __shfl_sync(ALL, ends, 31);
  int64 origin = mine.begin - (ends - edges);
  for (uint32 e = lane; e - lane < all; e += 32) {
    uint32 row = owner_of(ends, e);
    int64 u = __shfl_sync(ALL, uint32(mine.u), row), p = __shfl_sync(ALL, origin, row) + e;
    int64 first = __shfl_sync(ALL, mine.first, row);
    uint32 size = __shfl_sync(ALL, uint32(mine.size), row), note = __shfl_sync(ALL, mine.note, row);
    if (e < all) { visit(u, p, first, first + size, note); }
  }
}

// The same for rows of any length.
template <class Visit> __device__ __forceinline__ void deal_rows(TaskRow row, const Visit& visit) {
  constexpr int64 MOST = 1 << 26;  // most edges of a row per step, so that 32 bits hold the sums
  while (__any_sync(ALL, row.edges > 0)) {
    uint32 now = uint32(min(row.edges, MOST));
    deal_edges(row, now, visit);
    row.begin += now;
    row.edges -= now;
  }
}

// Processes edges with a thread each. A warp takes 32 rows per step: ADJACENT adjacent ones at each of equally distant
// places. `prepare(row)` is called by all lanes, also for rows without edges; it may leave out edges and set the note.
// `visit(u, p, first, last, note)` gets an edge's place in the index and its table row.
template <int64 ADJACENT, class Prepare, class Visit>
__device__ __forceinline__ void each_edge(const Task& t, const Prepare& prepare, const Visit& visit) {
  int64 lane = threadIdx.x % 32, warp = first_of() / 32, warps = all_threads() / 32;
  int64 place = (lane / ADJACENT * warps + warp) * ADJACENT + lane % ADJACENT;
  for (int64 step = 0; step < t.rows; step += 32 * warps) {
    TaskRow row = {0, 0, 0, 0, 0, 0};
    if (step + place < t.rows) {
      row.u = row_of(t, step + place);
      row.begin = t.index.offsets[row.u];
      row.edges = t.index.offsets[row.u + 1] - row.begin;
      row.first = t.same ? row.begin : t.table.offsets[row.u];
      row.size = t.same ? row.edges : t.table.offsets[row.u + 1] - row.first;
    }
    prepare(row);
    deal_rows(row, visit);
  }
}

template <class Visit> __device__ __forceinline__ void each_edge(const Task& t, const Visit& visit) {
  each_edge<32>(
      t, [](TaskRow&) {}, [&](int64 u, int64 p, int64 first, int64 last, uint32) { visit(u, p, first, last); });
}

// Counts the common entries of two non-empty lists, walking both in step.
__device__ __forceinline__ uint32 merged(const int32* a, int64 a_size, const int32* b, int64 b_size) {
  uint32 found = 0;
  int32 x = a[0], y = b[0];
  for (int64 i = 0, j = 0;;) {
    bool up = x <= y, down = y <= x;
    found += up && down;
    if (up) {
      if (++i == a_size) { break; }
      x = a[i];
    }
    if (down) {
      if (++j == b_size) { break; }
      y = b[j];
    }
  }
  return found;
}

// Tests index edge p, whose table row is [first, last): walks both lists in step, |A| + |B| probes.
__device__ __forceinline__ void walk(const Task& t, int64 p, int64 first, int64 last, Sums& sums) {
  int64 v = t.index.columns[p], begin = t.stream.offsets[v], b = t.stream.length(v);
  int64 a = before(t, p, first, last, v);
  sums.wedges += b;
  if (a == 0 || b == 0) { return; }
  sums.probes += a + b;
  sums.triangles += merged(t.table.columns + first, a, t.stream.columns + begin, b);
}

// Counts the entries of `few` that occur in `many`, by bisection.
__device__ __forceinline__ uint32 searched(const int32* few, int64 few_size, const int32* many, int64 many_size) {
  uint32 found = 0;
  for (int64 i = 0; i < few_size; i++) { found += contains(many, 0, many_size, few[i]); }
  return found;
}
