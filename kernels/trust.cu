// trust: vertex-centric hashing (Pandey et al., TPDS 2021, sections 3 and 4, doi:10.1109/TPDS.2021.3064892).
//
// One hash table of table.row(u) serves every v of index.row(u); each entry of stream.row(v) is
// looked up in it.
//
//   VH  one table for all of a row; 0: built again for each edge
//   CO  a thread block and BLOCK_BUCKETS buckets for table rows above 100 entries, a warp and up to WARP_BUCKETS for
//       others (section 4.3), as many short rows at the same time as have buckets enough; 0: a warp for all
//   VC  lists of a row combined virtually and dealt to threads; 0: a subwarp of `lanes` threads per list; 2: combined
//       physically, i.e. first copied one after another, and one row at a time
//   COPIES          entries per thread that are copied in one step
//   STEPS           0: no table is built; 1: nothing is looked up; for the paper's figure 4
//   READS           1: `probes` are the bucket entries that lookups read, for the paper's figure 12
//   LEVELS          entries of a bucket in shared memory; the paper has 6, of 1024 and 32 buckets (figure 3)
//   AHEAD           entries that a thread reads, and looks up, at the same time
//   RUN             entries from which on a list is not combined: it fills the warp
//   RESIDENT        threads of a multiprocessor, from which the compiler finds the registers of each
//
// RO, the order of ids, is the caller's. A row is skipped if its table or index row is empty, or
// if both are the same row of a single entry; the length of a block's row only chooses between warp and block.
//
//   probes(u, v) = |stream.row(v)|, of rows that are not skipped
//
// Splits for several GPUs take groups of 32 rows in turn, where section 5.1 deals out single rows, u % g: a warp's rows
// stay adjacent (dasktc/backends/cpu/splits.py).
//
// Launch: trust_rows, a thread per four rows, sorts the rows by team; then trust_warp and trust_block, a block of
// THREADS per row, run with as many blocks as fit, which take a chunk of rows per turn until none is left. The first
// pass also adds up the cost of every 32nd row, from which the launch chooses the chunk and, where subwarps take lists,
// their size: 8, 16 or 32 lanes.
//
// One H200, ms, degree order, edge factor 16: Kronecker 20 (4.4 G probes) 4.2, Kronecker 22 26.2, Kronecker 24 174;
// uniform random graph of 20 M vertices and 100 M edges 6.6, torus of 300^3 2.4. The authors' program takes 93, 599 and
// 20 on Kronecker 22, 24 and the uniform graph.
//
//   version, on Kronecker 20                    all     VC 0    VC, CO 0   VC, CO, VH 0
//   1 bisection over all of a tile's sums       35.9    16.9      51.2         60.7
//   2 search from the last list on, warp sums   22.9    16.8        -            -
//   learnt: lists of 280 entries fill a warp, so combining them costs more than idle lanes do; a
//   block for long rows is 3 times as fast; one table per row gains little here, rows being short
//
//   version                                     K20   K22   K24   uniform  torus   RM 2^24
//   2, hash.cuh split off                       22.2  140.7 844     9.4    10.6    16.7
//   3 predicted: one word a lookup, 4 ahead        -   35   230     9         -       -
//     measured                                   5.8   36.2 264    13.1    15.7    16.9
//     learnt: issue slots are 79 % busy, with 32 instructions for the 32 lookups of a warp. With 1024, 2048 and 4096
//     buckets blocks take 30.8, 20.9 and 17.2 at scale 22: of the 128 lookups of a step one often goes on to a second
//     entry. A row of 3 to 5 entries takes a warp 500 instructions, so uniform and torus became slower
//   4 predicted: several short rows a warp,        -   31     -     5.5     4         9
//     4096 buckets, 4 rows a thread sorted
//     measured                                   5.4   32.3 214     8.6     2.6    16.9
//     learnt: chunks of 1,024 entries end in steps of two rows; with 4,096 uniform takes 7.5, RM 13.3
//   5 predicted: blocks combine as warps do        -   27     -     6.6      -     11.5
//     measured, after the choice of sizes        4.2   26.2 174     6.6     2.4    12.6
//     learnt: running sums over all lists of a block cost more than warps that wait for each other: 18 % of the blocks'
//     time at scale 22, 30 % on rows of 200. All of a warp's buckets for the only row that it has: warps 16.4 to 14.5
//
// Version 5 with fewer optimizations, Kronecker 22, in parentheses version 2: VC 0 28.5 (122.9), VC 2 116.5, CO 0 57.6,
// VC and CO 0 62.6 (349), VC, CO and VH 0 421 (702). With the paper's numbers of buckets and levels: 73.8.
//
// Bounds (Nsight Compute, scale 22). Blocks: issue slots 79 % busy, L1 and shared memory 85 %; 63 % of the wavefronts
// of shared memory are bank conflicts. With 4096 buckets half of the instructions are the loop of 128 lookups, 11 for
// each 32, 18 % the rest of a list, 17 % second entries. Warps: issue slots 72 %, L2 61 % at a hit rate of 46 %.
// Uniform, in version 4: L2 77 %, random sectors.
//
// Tried and not kept, ms at scale 22 unless said. Lists read from a multiple of 128 bytes on: 40.9 beside 40.1. The
// next step's entries read before this one's are looked up: 40.4 beside 40.9. AHEAD 2, 3, 8: 40.1, 34.8, 32.7 beside
// 32.3; 6: 25.5 beside 26.2, too little for its registers. RESIDENT 1024, 2048: 42.3, 34.1 beside 35.5, uniform with
// 2048 9.9 beside 8.6, where registers spill. THREADS 128, 512, 1024: 34.8, 39.0, 41.9 beside 36.2. BLOCK_BUCKETS 2048,
// 4096: blocks 15.8, 12.6 beside 11.4. WARP_BUCKETS 1024: warps 13.0 beside 14.4, but RM 14.4 beside 12.0: the L1 cache
// is smaller then. RUN 32, 128: a random graph of degree 100 8.9, 7.0 beside 7.3. Two levels in shared memory: 29.0
// beside 30.0. Buckets that are full with one entry: 33.8 beside 32.3.

#ifndef VH
#define VH 1
#endif
#ifndef CO
#define CO 1
#endif
#ifndef VC
#define VC 1
#endif
#ifndef COPIES
#define COPIES 256
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef READS
#define READS 0
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef LEVELS
#define LEVELS 1
#endif
#ifndef BLOCK_BUCKETS
#define BLOCK_BUCKETS 8192
#endif
#ifndef WARP_BUCKETS
#define WARP_BUCKETS 512
#endif
#ifndef AHEAD
#define AHEAD 4
#endif
#ifndef RESIDENT
#define RESIDENT 1536
#endif
#ifndef RUN
#define RUN 64
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr uint32 RESIDENT_BLOCKS = 1024 / THREADS;  // that a multiprocessor runs: those of Turing, fewer threads
#else
constexpr uint32 RESIDENT_BLOCKS = RESIDENT / THREADS;
#endif
constexpr int64 SMALL_ROW = 100, SAMPLE = 32;

// Rows by the team that counts them: `rows` holds the rows of warps from its front, those of blocks from its back.
struct Lists {
  uint32 warp_rows, block_rows, warp_next, block_next, longest, spare;
};

// Sample of the rows for a kind of team: their number, the entries that they hash and look up, and the steps that their
// lists take by subwarps of 8, 16 and 32 lanes.
struct Sampled {
  uint64 rows = 0, entries = 0, steps[3] = {0, 0, 0};

  // Assumes that all lists of the row are as long as its middle one, so that one read per row suffices.
  __device__ void add(const Task& t, int64 u, int64 size, int64 edges, int64 threads) {
    int64 list = t.stream.length(t.index.columns[t.index.offsets[u] + edges / 2]);
    rows++;
    entries += size + edges * list;
    for (int k = 0; k < 3 && VC == 0; k++) {
      int64 lanes = 8 << k, teams = threads / lanes;
      steps[k] += ((edges + teams - 1) / teams) * ((list + lanes - 1) / lanes);
    }
  }

  __device__ void add_up(Sampled* all) const {
    add_to(&all->rows, rows);
    add_to(&all->entries, entries);
    for (int k = 0; k < 3 && VC == 0; k++) { add_to(&all->steps[k], steps[k]); }
  }
};

extern "C" __global__ void trust_rows(Task t, uint32* rows, Lists* lists, Sampled* sampled, Totals* totals) {
  constexpr uint32 ROWS = 4;  // adjacent rows of a thread, so that a warp adds to the lists' ends once for 128 rows
  uint64 wedges = 0;
  uint32 longest = 0;
  Sampled narrow, wide;
  for (int64 begin = 0; begin < t.rows; begin += ROWS * all_threads()) {
    int64 first = begin + ROWS * first_of();
    uint32 narrow_rows = 0, wide_rows = 0;  // a bit per row
    for (uint32 j = 0; j < ROWS; j++) {
      int64 k = first + j;
      if (k >= t.rows) { break; }
      int64 u = row_of(t, k);
      int64 size = t.table.length(u), edges = t.index.length(u);
      if (edges == 0) { continue; }
      longest = max(longest, uint32(size));
      if (size == 0 || (t.same && size < 2)) {
        for (int64 p = t.index.offsets[u]; p < t.index.offsets[u + 1]; p++) {
          wedges += t.stream.length(t.index.columns[p]);
        }
      } else if (CO && size > SMALL_ROW) {
        wide_rows |= 1u << j;
        if (k % SAMPLE == 0) { wide.add(t, u, size, edges, THREADS); }
      } else {
        narrow_rows |= 1u << j;
        if (k % SAMPLE == 0) { narrow.add(t, u, size, edges, 32); }
      }
    }
    uint32* front = rows + reserve(&lists->warp_rows, __popc(narrow_rows));
    uint32* back = rows + t.rows - reserve(&lists->block_rows, __popc(wide_rows));
    for (uint32 j = 0; j < ROWS; j++) {
      if (narrow_rows >> j & 1) { *front++ = uint32(row_of(t, first + j)); }
      if (wide_rows >> j & 1) { *--back = uint32(row_of(t, first + j)); }
    }
  }
  narrow.add_up(sampled);
  wide.add_up(sampled + 1);
  add_to(&totals->wedges, wedges);
  longest = warp_max(longest);
  if (threadIdx.x % 32 == 0) { atomicMax(&lists->longest, longest); }
}

// The threads that share a table: a warp or a block.
template <bool WIDE> struct Team {
  static constexpr uint32 SIZE = WIDE ? THREADS : 32, BUCKETS = WIDE ? BLOCK_BUCKETS : WARP_BUCKETS;

  __device__ static uint32 rank() { return threadIdx.x % SIZE; }
  __device__ static void sync() {
    if (WIDE) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }
};

constexpr uint32 EMPTY = 0x7fffffffu;  // is no id
constexpr uint32 MORE = 0x80000000u;   // bit of a bucket's entry that another one follows it

// The buckets of a row's table, as many as a power of two, among those of a team: in 16 bits each the first one, and
// their number less one.
struct Part {
  uint32 bits;

  __device__ static constexpr Part of(uint32 begin, uint32 buckets) { return {begin | (buckets - 1) << 16}; }
  template <bool WIDE> __device__ static constexpr Part whole() { return of(0, Team<WIDE>::BUCKETS); }
  __device__ constexpr uint32 begin() const { return bits & 0xffff; }
  __device__ constexpr uint32 mask() const { return bits >> 16; }
  __device__ uint32 bucket(int32 x) const { return uint32(x) & mask(); }
};

// Hash tables of interleaved buckets (section 3.2): bucket x % (number of buckets) holds up to `depth` entries and is
// stored level by level, the first LEVELS levels in shared memory, the others in a fixed global scratch of each team.
// An entry whose bucket is full goes to the next one (the published code drops it): counts are exact as long as the
// table has room. In place of the buckets' lengths, which the paper stores beside them, an entry has a bit that another
// one follows it, and an empty place holds EMPTY: one read decides a lookup in a bucket of at most one entry.
template <class T> struct HashTable {
  uint32 *near, *far;
  uint32 depth;

  // `words` are the block's, with BUCKETS * LEVELS of each team; `scratch` is the grid's. All places become empty.
  __device__ HashTable(uint32* words, uint32* scratch, uint32 depth) : depth(depth) {
    uint32 team = T::SIZE < THREADS ? threadIdx.x / T::SIZE : 0, levels = depth > LEVELS ? depth - LEVELS : 0;
    near = words + team * T::BUCKETS * LEVELS;
    far = scratch + (uint64(blockIdx.x) * (THREADS / T::SIZE) + team) * T::BUCKETS * levels;
    for (uint32 k = T::rank(); k < T::BUCKETS * LEVELS; k += T::SIZE) { near[k] = EMPTY; }
    for (uint64 k = T::rank(); k < uint64(T::BUCKETS) * levels; k += T::SIZE) { far[k] = EMPTY; }
  }

  __device__ static bool same(uint32 word, int32 x) { return ((word ^ uint32(x)) & ~MORE) == 0; }

  __device__ uint32& first(const Part& row, int32 x) { return near[row.begin() + row.bucket(x)]; }

  // The place that follows another one in its bucket, or the first one of the row's next bucket.
  __device__ uint32& following(const Part& row, uint32& level, uint32& bucket) {
    if (++level == depth) {
      level = 0;
      bucket = (bucket + 1) & row.mask();
    }
    uint32 place = row.begin() + bucket;
    return level < LEVELS ? near[level * T::BUCKETS + place] : far[uint64(level - LEVELS) * T::BUCKETS + place];
  }

  // Returns the number of entries up to this one in the bucket to which it came.
  __device__ uint32 insert(const Part& row, int32 x) {
    uint32 bucket = row.bucket(x), level = 0;
    for (uint32* place = &first(row, x);; place = &following(row, level, bucket)) {
      uint32 old = atomicCAS(place, EMPTY, uint32(x));
      if (old == EMPTY) { return level + 1; }
      if (!(old & MORE)) { atomicOr(place, MORE); }
    }
  }

  // Empties the places up to that of x: of the threads whose entries share a place, the first one goes on.
  __device__ void remove(const Part& row, int32 x) {
    uint32 bucket = row.bucket(x), level = 0;
    for (uint32* place = &first(row, x); atomicExch(place, EMPTY) & MORE;) {
      place = &following(row, level, bucket);
    }
  }

  // Whether x is behind the first place of its bucket, which has the mark MORE. Adds the number of compared entries to
  // `reads`.
  __device__ bool follows(const Part& row, int32 x, uint32& reads) {
    uint32 bucket = row.bucket(x), level = 0;
    for (;;) {
      uint32 word = following(row, level, bucket);
      reads++;
      if (same(word, x)) { return true; }
      if (!(word & MORE)) { return false; }
    }
  }
};

template <bool WIDE> using Table = HashTable<Team<WIDE>>;

constexpr uint32 WARPS = THREADS / 32;
static_assert(BLOCK_BUCKETS <= 1 << 16 && WARP_BUCKETS <= 1 << 16, "16 bits tell a bucket of a team");

// Shared memory of a block: lists, one per thread, and behind them one table or one per warp.
struct Shared {
  int64 ends[THREADS];
  int64 starts[THREADS];
  uint32 row, split;

  __device__ uint32* words() { return reinterpret_cast<uint32*>(this + 1); }
};

struct Found {
  uint64 triangles = 0, probes = 0, reads = 0;
  uint32 collision = 0;
};

// Looks up a thread's next AHEAD entries, of which the bits of `valid` tell those that there are, each in its row's
// table.
template <bool WIDE> __device__ __forceinline__ uint32 look_up(
    Table<WIDE>& table, const Part (&rows)[AHEAD], const int32 (&x)[AHEAD], uint32 valid, Found& found) {
  uint32 words[AHEAD], marks = 0, hits = 0, reads = 0;
#pragma unroll
  for (uint32 j = 0; j < AHEAD; j++) { words[j] = valid >> j & 1 ? table.first(rows[j], x[j]) : EMPTY; }
#pragma unroll
  for (uint32 j = 0; j < AHEAD; j++) {
    if (Table<WIDE>::same(words[j], x[j])) { hits++; }
    marks |= words[j];
    reads += words[j] != EMPTY;
  }
  if (marks & MORE) {
    uint32 left = 0;
#pragma unroll
    for (uint32 j = 0; j < AHEAD; j++) {
      left |= uint32((words[j] & MORE) && (words[j] & ~MORE) != uint32(x[j])) << j;
    }
    for (; left; left &= left - 1) {
      uint32 place = __ffs(int(left)) - 1;
      Part row = rows[0];
      int32 entry = x[0];
#pragma unroll
      for (uint32 j = 1; j < AHEAD; j++) {
        entry = place == j ? x[j] : entry;
        row.bits = place == j ? rows[j].bits : row.bits;
      }
      hits += table.follows(row, entry, reads);
    }
  }
  if (READS) { found.reads += reads; }
  return hits;
}

// Looks up a list by a group of `step` threads, with `lane` from 0 to step - 1.
template <bool WIDE> __device__ __forceinline__ void look_up_list(
    Table<WIDE>& table, const Part& row, const int32* list, uint32 size, uint32 lane, uint32 step, Found& found) {
  Part rows[AHEAD];
  int32 x[AHEAD];
  uint32 hits = 0;
#pragma unroll
  for (uint32 j = 0; j < AHEAD; j++) { rows[j] = row; }
  for (list += lane; size >= AHEAD * step; size -= AHEAD * step, list += AHEAD * step) {
#pragma unroll
    for (uint32 j = 0; j < AHEAD; j++) { x[j] = list[j * step]; }
    hits += look_up<WIDE>(table, rows, x, (1u << AHEAD) - 1, found);
  }
  if (size) {
    uint32 valid = 0;
#pragma unroll
    for (uint32 j = 0; j < AHEAD; j++) {
      bool exists = j * step + lane < size;
      x[j] = exists ? list[j * step] : 0;
      valid |= uint32(exists) << j;
    }
    hits += look_up<WIDE>(table, rows, x, valid, found);
  }
  found.triangles += hits;
}

// Inclusive running sums over the team, one number per thread.
template <bool WIDE> __device__ void running_sums(int64* ends, int64 mine) {
  uint32 rank = Team<WIDE>::rank(), lane = threadIdx.x % 32;
  mine = warp_ends(mine);
  ends[rank] = mine;
  Team<WIDE>::sync();
  if constexpr (WIDE) {
    for (uint32 k = 31; k < rank - lane; k += 32) { mine += ends[k]; }
    __syncthreads();
    ends[rank] = mine;
    __syncthreads();
  }
}

// A team's lists, one per thread, one after another: the end of each, and the offset to add to a place to find it
// in the stream.
struct Combined {
  int64 *ends, *starts;
};

// Combines the lists [tile, tile + SIZE) of those before `end`; returns their number of entries.
template <bool WIDE> __device__ int64 combine(const Combined& lists, const Task& t, int64 tile, int64 end) {
  uint32 rank = Team<WIDE>::rank();
  int64 p = tile + rank, v = p < end ? t.index.columns[p] : 0;
  int64 size = p < end ? t.stream.length(v) : 0;
  running_sums<WIDE>(lists.ends, size);
  lists.starts[rank] = (p < end ? t.stream.offsets[v] : 0) - (lists.ends[rank] - size);
  Team<WIDE>::sync();
  return lists.ends[Team<WIDE>::SIZE - 1];
}

// Physical combination (section 4.2): lists are copied to the team's array, a warp per list, as many entries as
// fit there, and looked up from it.
template <bool WIDE> __device__ void by_copies(
    Table<WIDE>& table, const Part& row, const Combined& lists, const Task& t, int32* copies, int64 begin, int64 end,
    Found& found) {
  constexpr uint32 SIZE = Team<WIDE>::SIZE;
  constexpr int64 ROOM = int64(SIZE) * COPIES;
  uint32 rank = Team<WIDE>::rank();
  for (int64 tile = begin; tile < end; tile += SIZE) {
    int64 all = combine<WIDE>(lists, t, tile, end);
    for (int64 first = 0; first < all; first += ROOM) {
      int64 last = min(first + ROOM, all);
      for (uint32 list = rank / 32; list < SIZE; list += SIZE / 32) {
        int64 from = max(list ? lists.ends[list - 1] : 0ll, first), to = min(lists.ends[list], last);
        for (int64 i = from + threadIdx.x % 32; i < to; i += 32) {
          copies[i - first] = t.stream.columns[lists.starts[list] + i];
        }
      }
      Team<WIDE>::sync();
      look_up_list<WIDE>(table, row, copies, uint32(last - first), rank, SIZE, found);
      found.probes += rank == 0 ? last - first : 0;
      Team<WIDE>::sync();
    }
    if (all == 0) { Team<WIDE>::sync(); }  // before the next tile's sums overwrite this one's end, which was read
  }
}

// A run of places of a CSR block, of a lane's row, and the row's table.
struct Run {
  int64 first;
  uint32 size, part;
};

// Deals the places of all lanes' runs together to the lanes of a warp; `visit(place, part, valid)` is called by all
// lanes, also by those for which there is no place left.
template <class Visit> __device__ __forceinline__ void deal(const Run& mine, const Visit& visit) {
  uint32 lane = threadIdx.x % 32, ends = warp_ends(mine.size), all = __shfl_sync(ALL, ends, 31);
  int64 origin = mine.first - (ends - mine.size);
  for (uint32 e = lane; e - lane < all; e += 32) {
    uint32 row = owner_of(ends, e);
    int64 place = __shfl_sync(ALL, origin, row) + e;
    uint32 part = __shfl_sync(ALL, mine.part, row);
    visit(place, part, e < all);
  }
}

// Virtual combination (section 4.2) of a warp's lists, one per lane: each thread finds the list of its next entry by
// running sums of lengths. Lists of RUN entries or more, which fill the warp, are taken one by one.
template <bool WIDE> __device__ __forceinline__ void combine_lists(
    Table<WIDE>& table, const Task& t, const Run& list, Found& found) {
  uint32 lane = threadIdx.x % 32;
  for (uint32 left = __ballot_sync(ALL, list.size >= RUN); left; left &= left - 1) {
    uint32 from = __ffs(int(left)) - 1;
    int64 first = __shfl_sync(ALL, list.first, from);
    uint32 size = __shfl_sync(ALL, list.size, from);
    Part row = WIDE ? Part::whole<WIDE>() : Part{__shfl_sync(ALL, list.part, from)};
    look_up_list<WIDE>(table, row, t.stream.columns + first, size, lane, 32, found);
  }
  uint32 size = list.size < RUN ? list.size : 0, ends = warp_ends(size), all = __shfl_sync(ALL, ends, 31);
  int64 origin = list.first - (ends - size);
  for (uint32 e = lane; e - lane < all; e += 32 * AHEAD) {
    Part rows[AHEAD];
    int32 x[AHEAD];
    uint32 valid = 0;
#pragma unroll
    for (uint32 j = 0; j < AHEAD; j++) {
      uint32 k = e + 32 * j;
      x[j] = 0;
      rows[j] = Part::whole<WIDE>();
      if (k - lane < all) {
        uint32 own = owner_of(ends, k);
        int64 place = __shfl_sync(ALL, origin, own) + k;
        if (!WIDE) { rows[j] = {__shfl_sync(ALL, list.part, own)}; }
        if (k < all) {
          x[j] = t.stream.columns[place];
          valid |= 1u << j;
        }
      }
    }
    found.triangles += look_up<WIDE>(table, rows, x, valid, found);
  }
}

// `lanes` threads per list of a warp, whose lists are one per lane.
__device__ __forceinline__ void deal_lists(
    Table<false>& table, const Task& t, const Run& list, uint32 lanes, Found& found) {
  uint32 lane = threadIdx.x % 32, count = 32 - __clz(int(__ballot_sync(ALL, list.size > 0)));
  for (uint32 k = 0; k < count; k += 32 / lanes) {
    uint32 from = k + lane / lanes;
    int64 first = __shfl_sync(ALL, list.first, from);
    uint32 size = __shfl_sync(ALL, list.size, from), part = __shfl_sync(ALL, list.part, from);
    look_up_list<false>(table, Part{part}, t.stream.columns + first, size, lane & (lanes - 1), lanes, found);
  }
}

// A block's lists, from `begin` to `end`.
__device__ void count_lists(Table<true>& table, Shared& shared, const Task& t, int32* copies, uint32 lanes, int64 begin,
    int64 end, Found& found) {
  constexpr Part row = Part::whole<true>();
  constexpr uint32 SPLIT = 16 * THREADS;  // entries of a list that all warps share
  if (VC == 2) {
    by_copies<true>(table, row, {shared.ends, shared.starts}, t, copies, begin, end, found);
  } else if (VC) {
    for (int64 tile = begin; tile < end; tile += THREADS) {
      if (threadIdx.x == 0) { shared.split = 0; }
      __syncthreads();
      int64 p = tile + threadIdx.x % 32 * WARPS + threadIdx.x / 32;  // adjacent lists, which are alike, in all warps
      Run list = {0, 0, 0};
      if (p < end) {
        int64 v = t.index.columns[p];
        list.first = t.stream.offsets[v];
        list.size = uint32(t.stream.offsets[v + 1] - list.first);
      }
      found.probes += list.size;
      if (list.size >= SPLIT) {
        uint32 place = atomicAdd(&shared.split, 1u);
        shared.starts[place] = list.first;
        shared.ends[place] = list.size;
        list.size = 0;
      }
      combine_lists<true>(table, t, list, found);
      __syncthreads();
      for (uint32 k = 0; k < shared.split; k++) {
        const int32* entries = t.stream.columns + shared.starts[k];
        look_up_list<true>(table, row, entries, uint32(shared.ends[k]), threadIdx.x, THREADS, found);
      }
      __syncthreads();
    }
  } else {
    uint32 lane = threadIdx.x & (lanes - 1);
    for (int64 p = begin + threadIdx.x / lanes; p < end; p += THREADS / lanes) {
      int64 v = t.index.columns[p], size = t.stream.length(v);
      look_up_list<true>(table, row, t.stream.columns + t.stream.offsets[v], uint32(size), lane, lanes, found);
      found.probes += lane == 0 ? size : 0;
    }
  }
}

__device__ void count_row(
    Table<true>& table, Shared& shared, const Task& t, int32* copies, uint32 lanes, int64 u, Found& found) {
  constexpr Part row = Part::whole<true>();
  copies += int64(blockIdx.x) * THREADS * (VC == 2 ? COPIES : 0);
  int64 last = t.index.offsets[u + 1], step = VH ? t.index.length(u) : 1;
  const int32* entries = t.table.columns + t.table.offsets[u];
  int64 size = t.table.length(u);
  for (int64 begin = t.index.offsets[u]; begin < last; begin += step) {
    if (STEPS == 0) { continue; }
    __syncthreads();
    for (int64 i = threadIdx.x; i < size; i += THREADS) {
      found.collision = max(found.collision, table.insert(row, entries[i]));
    }
    __syncthreads();
    if (STEPS > 1) { count_lists(table, shared, t, copies, lanes, begin, begin + step, found); }
    __syncthreads();
    for (int64 i = threadIdx.x; i < size; i += THREADS) { table.remove(row, entries[i]); }
  }
}

// Least number of buckets of a short row's table: 4 to 8 times its entries, if a warp has so many.
__device__ __forceinline__ uint32 buckets_of(int64 size, int64 edges) {
  constexpr int64 FEW = WARP_BUCKETS / 4, MOST = 1 << 26;  // edges of 32 rows are counted in 32 bits
  if (size >= FEW || edges >= MOST) { return WARP_BUCKETS; }
  return 4u << (32 - __clz(int(size) - 1));
}

// Takes rows of a warp's chunk of `count`, one per lane, as many as have buckets enough; returns their number.
__device__ __forceinline__ uint32 count_rows(Table<false>& table, Shared& shared, const Task& t, const uint32* rows,
    uint32 count, int32* copies, uint32 lanes, Found& found) {
  uint32 lane = threadIdx.x % 32, buckets = WARP_BUCKETS;
  Run edges = {0, 0, 0}, entries = {0, 0, 0};
  if (lane < count) {
    int64 u = rows[lane], size = t.table.length(u);
    edges.first = t.index.offsets[u];
    edges.size = uint32(t.index.length(u));
    entries.first = t.table.offsets[u];
    entries.size = uint32(size);
    buckets = VH && VC < 2 ? buckets_of(size, edges.size) : WARP_BUCKETS;
  }
  uint32 ends = warp_ends(buckets), taken = __popc(__ballot_sync(ALL, lane < count && ends <= WARP_BUCKETS));
  uint32 used = __shfl_sync(ALL, ends, taken - 1), doublings = 31 - __clz(int(WARP_BUCKETS / used));
  edges.part = entries.part = Part::of((ends - buckets) << doublings, buckets << doublings).bits;
  if (lane >= taken) { edges.size = entries.size = 0; }
  uint32 rounds = VH ? 1 : __shfl_sync(ALL, edges.size, 0);
  if (!VH) { edges.size = lane == 0; }
  for (uint32 round = 0; round < rounds; round++, edges.first++) {
    if (STEPS == 0) { continue; }
    __syncwarp();
    deal(entries, [&](int64 place, uint32 part, bool valid) {
      if (valid) { found.collision = max(found.collision, table.insert(Part{part}, t.table.columns[place])); }
    });
    __syncwarp();
    if (STEPS > 1 && VC == 2) {
      uint32 team = threadIdx.x - lane;
      int64 begin = __shfl_sync(ALL, edges.first, 0), end = begin + __shfl_sync(ALL, edges.size, 0);
      Combined lists = {shared.ends + team, shared.starts + team};
      int32* room = copies + (int64(blockIdx.x) * THREADS + team) * COPIES;
      by_copies<false>(table, Part::whole<false>(), lists, t, room, begin, end, found);
    } else if (STEPS > 1) {
      deal(edges, [&](int64 place, uint32 part, bool valid) {
        Run list = {0, 0, part};
        if (valid) {
          int64 v = t.index.columns[place];
          list.first = t.stream.offsets[v];
          list.size = uint32(t.stream.offsets[v + 1] - list.first);
        }
        found.probes += list.size;
        if (VC) {
          combine_lists<false>(table, t, list, found);
        } else {
          deal_lists(table, t, list, lanes, found);
        }
      });
    }
    __syncwarp();
    deal(entries, [&](int64 place, uint32 part, bool valid) {
      if (valid) { table.remove(Part{part}, t.table.columns[place]); }
    });
  }
  return taken;
}

__device__ void report(const Found& found, Totals* totals) {
  add_to(&totals->triangles, found.triangles);
  add_to(&totals->probes, READS ? found.reads : found.probes);
  add_to(&totals->wedges, found.probes);
  uint32 longest = warp_max(found.collision);
  if (threadIdx.x % 32 == 0) { atomicMax(&totals->collision, uint64(longest)); }
}

// Rows below 101 entries (all, without CO), a warp per row.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
    trust_warp(Task t, const uint32* rows, Lists* lists, uint32* scratch, int32* copies, uint32 depth, uint32 chunk,
        uint32 lanes, Totals* totals) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Table<false> table(shared.words(), scratch, depth);
  Found found;
  for (;;) {
    uint32 next = 0;
    if (threadIdx.x % 32 == 0) { next = atomicAdd(&lists->warp_next, chunk); }
    next = __shfl_sync(ALL, next, 0);
    if (next >= lists->warp_rows) { break; }
    uint32 last = min(next + chunk, lists->warp_rows);
    while (next < last) { next += count_rows(table, shared, t, rows + next, last - next, copies, lanes, found); }
  }
  report(found, totals);
}

// Longer rows, a block per row.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
    trust_block(Task t, const uint32* rows, Lists* lists, uint32* scratch, int32* copies, uint32 depth, uint32 chunk,
        uint32 lanes, Totals* totals) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Table<true> table(shared.words(), scratch, depth);
  Found found;
  for (;;) {
    if (threadIdx.x == 0) { shared.row = atomicAdd(&lists->block_next, chunk); }
    __syncthreads();
    uint32 next = shared.row;
    __syncthreads();
    if (next >= lists->block_rows) { break; }
    for (uint32 k = next; k < min(next + chunk, lists->block_rows); k++) {
      count_row(table, shared, t, copies, lanes, rows[t.rows - 1 - k], found);
    }
  }
  report(found, totals);
}
