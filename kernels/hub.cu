// hub: near hubs as bitmaps in the second level cache, all else as 16-bit lists. The default.
// bitmap: the same with the macro PLAIN, no lists: scratch is the bitmaps and work items alone.
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the
// blocks are unordered) and B = stream.row(v). In `degree` order most edges point to hubs, the
// first rows, and entries crowd into few words. So, each edge by the first rule that fits:
//
// * A table row of at most SMALL entries: a thread an edge. A is looked up in hub v's bitmap in
//   global memory, or A and B are merged.
// * A near hub, v < NEAR: row u is compressed to its words with a bit set; a lane keeps one word
//   in a register and meets the bitmaps of all near hubs of the row: 2 to 3 entries at a time, from
//   bitmaps that fit in the second level cache. No cut at v is needed, B ends there.
// * The shorter of A and B is streamed against a table of the longer. A counting sort brings all
//   lists against one table together, as (start, length); the table is a bitmap of 64K ids in shared
//   memory. Entries behind it, few, meet a filter, and those that pass are searched for.
// * bitmap: v < hubs like near hubs; else B is streamed against row u, without lists.
//
// * No row longer than SHORT in the whole task: records of the stream rows, a thread a row u.
//
//   hub     probes(u, v) = 0 if |A| = 0 or |B| = 0
//                          |A| if no row is longer than SHORT
//                          |A| if |table.row(u)| <= SMALL or v < min(hubs, NEAR); min(|A|, |B|) otherwise
//   bitmap  probes(u, v) = 0 if |A| = 0 or |B| = 0
//                          |A| if |table.row(u)| <= SMALL or v < hubs or |B| > LONG |A|; |B| otherwise
//
// One H200, ms of all kernels (allocation and sums included), medians of 3 to 5 after a warm-up.
// Kronecker, edge factor 16, scales 20, 22, 24: 1.2, 7.2 and 41.6 G probes; uniform random graph of
// 20 M vertices and 100 M edges; torus of 300^3.
//
//   version                            K20   K22   K24  uniform  torus
//   1 predicted                          -  10.0    55      4.8    0.5   1,057 M sectors at K22 by 113 G/s
//     all hubs' bitmaps in L2, measured 2.1  14.7   104      4.9    1.2   now `bitmap`
//     learnt: at K24 1.06e10 sectors, L2 hit rate 23 %: 256 MB of bitmaps do not fit, and for the
//     edges behind the hubs streaming all of B costs 3 times the probes of the shorter list
//   2 predicted                          -     9    40        -      -   K24: 83 GB, 25 ms; lists 15 ms
//     NEAR 8192, lists, measured       3.2  16.0    94      5.5    1.9
//     learnt: 83 instructions a list of 110 entries, compute 82 % busy, not the memory;
//     near hubs cost a third of that a probe: more of them; an empty sort costs the torus 0.7
//   3 predicted                          -     -    65        -      -   half the instructions a list
//     NEAR 16384, lists decoded by lanes 2.4  11.1  63      5.0    1.4   K24: edges 8, near 11.5, lists 8.3, tables 32
//   4 predicted, records                 -     -     -      2.7    1.0   1.0 to 1.5 sectors an edge, 38 G/s; RA 36
//     measured                           2.6  10.5    61      3.2    1.2   RA 121 to 46, RM 190 to 75 to 80
//     learnt: short rows never were for tables; 64 bytes cost little more than 32 (RA 56 with narrow ones);
//     RM: not lanes that wait for longer lists: dealt an entry of A each, RM took 75 and RA 53
//
//   5 predicted, fingerprints          -     -     -      2.6    1.0   RA 28, RM 55, torus of 464^3 3.0
//     measured                           2.6  10.6    61      2.6    1.2   RA 35, RM 62, 464^3 4.1 to 3.2
//     learnt: one sector an edge in place of two is worth a quarter, not a half: RA then takes 30 G random
//     sectors/s of the 38 that the card has; records of half a sector are for the cache, with 7 fingerprints they
//     serve rows of 11 on average better than whole ones (uniform 3.1)
//
//   6 predicted, a table's entries 4 at a time   10.4  60    -     -      8 splits of scale 26, each: 76 to 70
//     measured                           2.6  10.4  61    -       -      492 to 484 in one, 76 to 74 in 8
//     learnt: a split of 8 takes 13 ms at scale 26 that it would not take in one pass: tables that have few of its
//     lists; no table for lists of 32 to 256 entries (the other one, longer or not, streamed) changes it by 1 %
//
// RA, RM: the TRUST paper's graphs of 10^9 edges.
// Bounds of version 5 (Nsight Compute): RA: 72 GB come from DRAM, 64 bytes for each record of 32, the L2 is 71 % busy. RM:
// as many bytes; issue slots 59 % busy with 14 of 32 lanes on, from a third of the warps that fit. Torus of 300^3: records
// 0.25 ms at 81 % of DRAM's rate, counting 0.51 at 75 % of the L2's; 0.4 more are the host's, between launches.
// Bounds of version 3: tables: 2.5-way bank conflicts and 2.4 instructions a cycle; edges and lists: random
// reads of offsets. Uniform: L2 79 % busy with random sectors, torus: instructions.
// Tried without gain: 1 or 4 warps a table, 2 or 8 lists ahead, SMALL 8 or 32, 32K or 64K near hubs.

#ifndef SMALL
#define SMALL 16  // longest table row that gets no table
#endif
#ifndef LONG
#define LONG 8  // plain: B so many times as long as A is searched, not streamed
#endif
#ifndef BLOCK
#define BLOCK 256  // threads in a block of the kernels that take a thread an edge or a row
#endif
#ifndef PIECE
#define PIECE 16777216  // most entries of a record; a longer list is cut
#endif
#ifndef ITEM_EDGES
#define ITEM_EDGES 1024  // a row is cut into work items of so many index edges
#endif
#ifndef ITEM_LISTS
#define ITEM_LISTS 1024  // a table's lists are cut into work items of so many
#endif
#ifndef TABLE_WARPS
#define TABLE_WARPS 2
#endif
#ifndef AHEAD
#define AHEAD 4  // lists whose loads are under way together
#endif
#ifndef PLAIN_WARPS
#define PLAIN_WARPS 8
#endif
#ifndef NEAR_WARPS
#define NEAR_WARPS 2
#endif
#ifndef NEAR
#define NEAR 16384  // most near hubs
#endif
#ifndef SHORT
#define SHORT 64  // longest row of tasks that are counted with records alone
#endif
#ifndef WORDS4
#define WORDS4 11  // longest row up to which records have 4 words: the launch's choice
#endif
#ifndef WORDS8
#define WORDS8 22  // likewise 8 words; else 16
#endif
#ifndef CAPACITY
#define CAPACITY 12  // bytes an edge, with offsets, that records of 8 or 16 words may take; else they have 4
#endif
#ifndef EDGES
#define EDGES 2  // records that a thread has under way; of 4 words twice as many
#endif
#ifndef BITMAP
#define BITMAP 65536  // ids in a row's own bitmap, and most hubs
#endif
#ifndef FILTER
#define FILTER 8192  // bits of the filter behind it
#endif

constexpr uint32 BITMAP_WORDS = BITMAP / 32, FILTER_WORDS = FILTER / 32;
constexpr uint32 BYTES = BITMAP / 8 - 4;  // of a bitmap, by words: id x has its word at x >> 3 & BYTES

// First word of hub v's bitmap. Row v has no bit behind v, so it takes v / 32 + 1 words.
__device__ __forceinline__ uint32 bitmap_of(uint32 v) {
  uint32 group = v >> 5;
  return (group + 1) * ((group << 4) + (v & 31));
}

__device__ __forceinline__ uint32 filter_bit(uint32 x) { return (x * 2654435769u) >> 7 & (FILTER - 1); }

// 1. The hubs' bitmaps, a warp a hub; they come zeroed.
extern "C" __global__ void hub_bitmaps(Task t, uint32* bitmaps) {
  uint32 lane = threadIdx.x % 32;
  int64 warps = int64(gridDim.x) * blockDim.x / 32;
  for (int64 v = (int64(blockIdx.x) * blockDim.x + threadIdx.x) / 32; v < t.hubs; v += warps) {
    int64 last = t.stream.offsets[v + 1];
    for (int64 q = t.stream.offsets[v] + lane; q < last; q += 32) {
      uint32 w = t.stream.columns[q];
      atomicOr(bitmaps + bitmap_of(uint32(v)) + (w >> 5), 1u << (w & 31));
    }
  }
}

// Count A's entries found in hub v's bitmap.
__device__ __forceinline__ uint32 in_bitmap(const int32* a, int64 size, const uint32* bitmap) {
  uint32 found = 0;
#pragma unroll 4
  for (int64 i = 0; i < size; i++) {
    uint32 w = a[i];
    found += __ldg(bitmap + (w >> 5)) >> (w & 31) & 1;
  }
  return found;
}

// One edge (u, v) of a short table row [first, last), by one thread.
__device__ __forceinline__ void short_edge(
    const Task& t, const uint32* bitmaps, int64 p, int64 first, int64 last, Sums& sums) {
  int64 v = t.index.columns[p];
  int64 begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
  sums.wedges += b;
  if (first == last || b == 0) { return; }
  int64 a = before(t, p, first, last, v);
  if (a == 0) { return; }
  sums.probes += a;
  const int32* list = t.table.columns + first;
  if (v < t.hubs) {
    sums.triangles += in_bitmap(list, a, bitmaps + bitmap_of(uint32(v)));
  } else if (b <= 4 * SMALL) {
    sums.triangles += merged(list, a, t.stream.columns + begin, b);
  } else {
    sums.triangles += searched(list, a, t.stream.columns + begin, b);
  }
}

// Where no row is longer than SHORT, every stream row has a record of 4 * WORDS bytes, half a sector to two: its
// length and up to FEW fingerprints of 16 bits or, of a longer row, where it begins and which of MARKS marks its
// entries leave. What would take three random reads or more takes one, but for what is found, which is looked up in
// the row itself unless ids of 16 bits are their own fingerprints.
template <uint32 WORDS> struct Record {
  static constexpr uint32 FEW = 2 * WORDS - 1, MARKS = 32 * (WORDS - 3), LONGER = 0xffff;

  uint32 word[WORDS];

  __device__ __forceinline__ bool fits() const { return (word[0] & 0xffff) != LONGER; }
  __device__ __forceinline__ uint32 length() const { return fits() ? word[0] & 0xffff : word[1]; }
  __device__ __forceinline__ int64 begin() const { return int64(word[0] >> 16) << 32 | word[2]; }  // of a longer row
  __device__ __forceinline__ static uint32 mark_of(uint32 x) { return uint32(uint64(x * 2654435769u) * MARKS >> 32); }
};

__device__ __forceinline__ uint32 fingerprint(uint32 x, bool narrow) {
  return narrow ? x & 0xffff : (x * 2654435769u) >> 16;
}

template <uint32 WORDS> __device__ __forceinline__ Record<WORDS> record_of(const uint4* records, int64 v) {
  Record<WORDS> record;
#pragma unroll
  for (uint32 i = 0; i < WORDS / 4; i++) {
    uint4 part = __ldg(records + v * (WORDS / 4) + i);
    record.word[4 * i] = part.x;
    record.word[4 * i + 1] = part.y;
    record.word[4 * i + 2] = part.z;
    record.word[4 * i + 3] = part.w;
  }
  return record;
}

// The longest row of a block.
extern "C" __global__ void hub_longest(Task, const int64* offsets, int64 rows, uint32* longest) {
  uint32 mine = 0;
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 v = int64(blockIdx.x) * blockDim.x + threadIdx.x; v < rows; v += threads) {
    mine = max(mine, uint32(offsets[v + 1] - offsets[v]));
  }
  mine = warp_max(mine);
  if (threadIdx.x % 32 == 0 && mine) { atomicMax(longest, mine); }
}

// A row's fingerprints; the first one again where there are no more, so that none is found that is not there.
template <uint32 WORDS>
__device__ __forceinline__ void note_few(Record<WORDS>& record, const int32* row, uint32 size, bool narrow) {
  uint32 first = size ? fingerprint(row[0], narrow) : 0;
  record.word[0] = size | first << 16;
#pragma unroll
  for (uint32 k = 1; k < WORDS; k++) {
    uint32 low = 2 * k - 1 < size ? fingerprint(row[2 * k - 1], narrow) : first;
    uint32 high = 2 * k < size ? fingerprint(row[2 * k], narrow) : first;
    record.word[k] = low | high << 16;
  }
}

template <uint32 WORDS>
__device__ __forceinline__ void note_marks(Record<WORDS>& record, const int32* row, uint32 size, int64 begin) {
  record.word[0] = record.LONGER | uint32(begin >> 32) << 16;
  record.word[1] = size;
  record.word[2] = uint32(begin);
#pragma unroll
  for (uint32 k = 3; k < WORDS; k++) { record.word[k] = 0; }
  for (uint32 i = 0; i < size; i++) {
    uint32 mark = record.mark_of(row[i]);
#pragma unroll
    for (uint32 k = 3; k < WORDS; k++) { record.word[k] |= mark >> 5 == k - 3 ? 1u << (mark & 31) : 0; }
  }
}

template <uint32 WORDS>
__device__ __forceinline__ void make_records(const Task& t, int64 rows, uint4* records, bool narrow) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 v = int64(blockIdx.x) * blockDim.x + threadIdx.x; v < rows; v += threads) {
    int64 begin = t.stream.offsets[v];
    uint32 size = uint32(t.stream.offsets[v + 1] - begin);
    Record<WORDS> record;
    if (size <= record.FEW) {
      note_few(record, t.stream.columns + begin, size, narrow);
    } else {
      note_marks(record, t.stream.columns + begin, size, begin);
    }
#pragma unroll
    for (uint32 i = 0; i < WORDS; i += 4) {
      records[(v * WORDS + i) / 4] = {record.word[i], record.word[i + 1], record.word[i + 2], record.word[i + 3]};
    }
  }
}

// Whether a record has a fingerprint: a half of some word that is zero after the exclusive or.
template <uint32 WORDS> __device__ __forceinline__ bool has(const Record<WORDS>& record, uint32 print) {
  uint32 both = print << 16 | print, other = (record.word[0] ^ both) | 0xffff;  // its low half is the length
  uint32 zeros = (other - 0x10001u) & ~other;
#pragma unroll
  for (uint32 k = 1; k < WORDS; k++) {
    other = record.word[k] ^ both;
    zeros |= (other - 0x10001u) & ~other;
  }
  return zeros & 0x80008000u;
}

// Entries of A that are in a record of row v, or in the row itself.
template <uint32 WORDS> __device__ __forceinline__ uint32 in_record(
    const Task& t, int64 v, const int32* a, int64 size, const Record<WORDS>& record, bool narrow) {
  uint32 found = 0;
  if (record.fits()) {
    for (int64 i = 0; i < size; i++) {
      if (!has(record, fingerprint(a[i], narrow))) { continue; }
      found += narrow || contains(t.stream.columns, t.stream.offsets[v], t.stream.offsets[v + 1], a[i]);
    }
    return found;
  }
  const int32* row = t.stream.columns + record.begin();
  for (int64 i = 0; i < size; i++) {
    uint32 mark = record.mark_of(a[i]), word = 0;
#pragma unroll
    for (uint32 k = 3; k < WORDS; k++) { word = mark >> 5 == k - 3 ? record.word[k] : word; }
    if (word >> (mark & 31) & 1) { found += contains(row, 0, record.length(), a[i]); }
  }
  return found;
}

// A thread a row u; the records of EDGES edges, of 4 words twice as many, are under way together.
template <uint32 WORDS>
__device__ __forceinline__ void count_short(const Task& t, const uint4* records, bool narrow, Totals* totals) {
  constexpr uint32 AT_ONCE = WORDS == 4 ? 2 * EDGES : EDGES;
  Sums sums;
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k < t.rows; k += threads) {
    int64 u = row_of(t, k), first = t.table.offsets[u], last = t.table.offsets[u + 1];
    int64 end = t.same ? last : t.index.offsets[u + 1];
    for (int64 p = t.same ? first : t.index.offsets[u]; p < end; p += AT_ONCE) {
      Record<WORDS> record[AT_ONCE];
#pragma unroll
      for (uint32 i = 0; i < AT_ONCE; i++) {
        if (p + i < end) { record[i] = record_of<WORDS>(records, t.index.columns[p + i]); }
      }
#pragma unroll
      for (uint32 i = 0; i < AT_ONCE; i++) {
        if (p + i >= end) { break; }
        sums.wedges += record[i].length();
        if (first == last || record[i].length() == 0) { continue; }
        int64 v = t.index.columns[p + i], a = before(t, p + i, first, last, v);
        sums.probes += a;
        sums.triangles += in_record(t, v, t.table.columns + first, a, record[i], narrow);
      }
    }
  }
  sums.add_up(totals);
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_records4(Task t, int64 rows, uint4* records, uint32 narrow) {
  make_records<4>(t, rows, records, narrow);
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_records8(Task t, int64 rows, uint4* records, uint32 narrow) {
  make_records<8>(t, rows, records, narrow);
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_records16(Task t, int64 rows, uint4* records, uint32 narrow) {
  make_records<16>(t, rows, records, narrow);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_short4(Task t, const uint4* records, uint32 narrow, Totals* totals) {
  count_short<4>(t, records, narrow, totals);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_short8(Task t, const uint4* records, uint32 narrow, Totals* totals) {
  count_short<8>(t, records, narrow, totals);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_short16(Task t, const uint4* records, uint32 narrow, Totals* totals) {
  count_short<16>(t, records, narrow, totals);
}

// Lists: an edge of a long row that meets no bitmap has its shorter list streamed against a table
// of the longer one. All lists against one table lie together, as records: place of the first
// entry in its block, entries, and whether they stand behind the bitmap. A table's key is its row:
// of the stream block for v, which A is streamed against, of the table block for u.

// A list as it is streamed: four ids are read together, the first list entry is entry `skip` of
// the first four. `behind` is the list's place among the ids behind the bitmap.
__device__ __forceinline__ uint64 record(int64 start, int64 size, bool behind) {
  uint64 skip = start & 3;
  return uint64(start >> 2) << 32 | uint64(behind) << 31 | (skip + size) << 2 | skip;
}

constexpr int64 MOST = PIECE;

struct List {
  int64 key, start, front, size;  // the first `front` entries are below BITMAP

  __device__ int64 records() const { return (front + MOST - 1) / MOST + (size - front + MOST - 1) / MOST; }
};

__device__ __forceinline__ List shorter_list(
    const Task& t, int64 u, int64 v, int64 first, int64 a, int64 begin, int64 b) {
  List list = a < b ? List{v, first, a, a} : List{t.tables + u, begin, b, b};
  const int32* columns = (a < b ? t.table.columns : t.stream.columns) + list.start;
  if (columns[list.size - 1] >= BITMAP) { list.front = lower_bound(columns, 0, list.size, BITMAP); }
  return list;
}

// 2. All edges. Short table rows are counted. Edges of longer ones meet the near hubs' bitmaps in
// work items, and the rest are counted by table; plain, all is left to the work items.
extern "C" __global__ void __launch_bounds__(BLOCK) hub_edges(Task t, const uint32* bitmaps, uint2* items,
    uint32* items_end, uint64* lists, uint64* all_lists, uint32 plain, Totals* totals) {
  Sums sums;
  uint64 found = 0;
  auto keep = [&](const TaskRow& row) {
    bool cut = row.size > SMALL && row.edges && (plain || t.index.columns[row.begin] < t.near);
    uint32 count = cut ? uint32((row.edges + ITEM_EDGES - 1) / ITEM_EDGES) : 0;
    uint32 place = reserve(items_end, count);
    for (uint32 i = 0; i < count; i++) { items[place + i] = make_uint2(uint32(row.u), i); }
    return row.size <= SMALL || !plain;
  };
  each_edge(t, keep, [&](int64 u, int64 p, int64 first, int64 last) {
    if (last - first <= SMALL) { return short_edge(t, bitmaps, p, first, last, sums); }
    int64 v = t.index.columns[p], begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
    int64 a = before(t, p, first, last, v);
    sums.wedges += b;
    if (a == 0 || b == 0) { return; }
    sums.probes += v < t.near ? a : min(a, b);
    if (v < t.near) { return; }
    List list = shorter_list(t, u, v, first, a, begin, b);
    found += list.records();
    atomicAdd(lists + list.key, uint64(list.records()));
  });
  sums.add_up(totals);
  add_to(all_lists, found);
}

// The list of each edge that neither a short row nor a bitmap counts.
template <class Visit> __device__ __forceinline__ void each_list(const Task& t, const Visit& visit) {
  auto keep = [](const TaskRow& row) { return row.size > SMALL; };
  each_edge(t, keep, [&](int64 u, int64 p, int64 first, int64 last) {
    int64 v = t.index.columns[p];
    if (v < t.near) { return; }
    int64 begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
    int64 a = before(t, p, first, last, v);
    if (a && b) { visit(shorter_list(t, u, v, first, a, begin, b)); }
  });
}

// The lists of some rows alone, where those of all rows are too many.
extern "C" __global__ void __launch_bounds__(BLOCK) hub_counts(Task t, uint64* lists, uint64* all_lists) {
  uint64 found = 0;
  each_list(t, [&](const List& list) {
    found += list.records();
    atomicAdd(lists + list.key, uint64(list.records()));
  });
  add_to(all_lists, found);
}

// 3. The lists' records. `ends` holds, by key, where its records end; and then where they begin.
extern "C" __global__ void __launch_bounds__(BLOCK) hub_lists(Task t, uint64* ends, uint64* records) {
  each_list(t, [&](const List& list) {
    int64 count = list.records();
    uint64* place = records + atomicAdd(ends + list.key, uint64(-count)) - count;
    for (int64 i = 0; i < list.front; i += MOST) {
      *place++ = record(list.start + i, min(MOST, list.front - i), false);
    }
    for (int64 i = list.front; i < list.size; i += MOST) {
      *place++ = record(list.start + i, min(MOST, list.size - i), true);
    }
  });
}

// 4. Tables with lists, cut into work items.
extern "C" __global__ void hub_items(Task, const uint64* begins, int64 keys, uint2* items, uint32* items_end) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k - threadIdx.x % 32 < keys; k += threads) {
    uint64 size = k < keys ? begins[k + 1] - begins[k] : 0;
    uint32 count = uint32((size + ITEM_LISTS - 1) / ITEM_LISTS);
    uint32 place = reserve(items_end, count);
    for (uint32 i = 0; i < count; i++) { items[place + i] = make_uint2(uint32(k), i); }
  }
}

// A table row in shared memory, and lists streamed against it.
struct Streamed {
  static constexpr uint32 WORDS = BITMAP_WORDS, FILTERS = FILTER_WORDS, THREADS = 32 * TABLE_WARPS;
  alignas(8) uint32 bits[BITMAP_WORDS];
  uint32 filter[FILTER_WORDS];
  uint32 item;
};

// The entries of a list, AT_ONCE of each thread read together: `work(w)`.
template <class Row, class Work>
__device__ __forceinline__ void each_entry(const int32* columns, int64 size, const Work& work) {
  constexpr uint32 AT_ONCE = 4;
  for (int64 i = threadIdx.x; i < size; i += AT_ONCE * Row::THREADS) {
    uint32 w[AT_ONCE];
#pragma unroll
    for (uint32 k = 0; k < AT_ONCE; k++) {
      int64 place = i + k * Row::THREADS;
      w[k] = place < size ? columns[place] : ALL;
    }
#pragma unroll
    for (uint32 k = 0; k < AT_ONCE; k++) {
      if (w[k] != ALL) { work(w[k]); }
    }
  }
}

template <class Row> __device__ void set_entries(Row& row, const int32* columns, int64 size) {
  each_entry<Row>(columns, size, [&](uint32 w) {
    if (w < BITMAP) {
      atomicOr(row.bits + (w >> 5), 1u << (w & 31));
    } else {
      uint32 bit = filter_bit(w);
      atomicOr(row.filter + (bit >> 5), 1u << (bit & 31));
    }
  });
}

template <class Row> __device__ void clear_all(Row& row) {
  for (uint32 k = threadIdx.x; k < Row::WORDS / 2; k += Row::THREADS) {
    reinterpret_cast<uint2*>(row.bits)[k] = make_uint2(0, 0);
  }
  if (Row::WORDS % 2 && threadIdx.x == 0) { row.bits[Row::WORDS - 1] = 0; }
  for (uint32 k = threadIdx.x; k < Row::FILTERS; k += Row::THREADS) { row.filter[k] = 0; }
}

// Long lists' words are too many to be worth looking for.
template <class Row> __device__ void clear_entries(Row& row, const int32* columns, int64 size) {
  if (size > Row::WORDS / 4) { return clear_all(row); }
  each_entry<Row>(columns, size, [&](uint32 w) {
    if (w < BITMAP) {
      row.bits[w >> 5] = 0;
    } else {
      row.filter[filter_bit(w) >> 5] = 0;
    }
  });
}

__device__ __forceinline__ uint32 bit_of(const uint32* bits, uint32 byte, uint32 shift) {
  return *reinterpret_cast<const uint32*>(reinterpret_cast<const char*>(bits) + byte) >> (shift & 31) & 1;
}

// Which of four 16-bit ids have their bit set, the first one lowest.
__device__ __forceinline__ uint32 four(const uint32* bits, uint2 ids) {
  uint32 found = bit_of(bits, ids.y >> 19 & BYTES, ids.y >> 16);
  found = found * 2 + bit_of(bits, ids.y >> 3 & BYTES, ids.y);
  found = found * 2 + bit_of(bits, ids.x >> 19 & BYTES, ids.x >> 16);
  return found * 2 + bit_of(bits, ids.x >> 3 & BYTES, ids.x);
}

// Lists of the warp, a record a lane, `count` of them. `narrow` holds the low halves of `columns`,
// four by four.
__device__ __forceinline__ uint32 stream_lists(const Streamed& row, uint64 mine, uint32 count, const uint2* narrow,
    const int32* columns, const int32* table, int64 size) {
  uint32 lane = threadIdx.x % 32, found = 0;
  uint32 fours = uint32(mine >> 32), about = lane < count ? uint32(mine) : 0;
  bool behind = about >> 31;
  if (behind) { about = 0; }
  for (uint32 j = 0; j < count; j += AHEAD) {
    uint32 kind[AHEAD];
    const uint2* list[AHEAD];
    uint2 ids[AHEAD];
#pragma unroll
    for (uint32 i = 0; i < AHEAD; i++) {
      kind[i] = __shfl_sync(ALL, about, min(j + i, 31u));
      list[i] = narrow + __shfl_sync(ALL, fours, min(j + i, 31u)) + lane;
      ids[i] = make_uint2(0, 0);
      if (AHEAD > 1 && j + i > 31) { kind[i] = 0; }
      if (4 * lane < kind[i] >> 2) { ids[i] = __ldg(list[i]); }
    }
#pragma unroll
    for (uint32 i = 0; i < AHEAD; i++) {
      int32 left = int32(kind[i] >> 2) - int32(4 * lane);
      uint32 valid = lane == 0 ? 15u << (kind[i] & 3) : 15u;
      while (left > 0) {
        if (left < 4) { valid &= (1u << left) - 1; }
        found += __popc(four(row.bits, ids[i]) & valid & 15u);
        left -= 128;
        valid = 15u;
        list[i] += 32;
        if (left > 0) { ids[i] = __ldg(list[i]); }
      }
    }
  }
  for (uint32 left = __ballot_sync(ALL, behind); left; left &= left - 1) {
    uint64 list = __shfl_sync(ALL, mine, __ffs(int(left)) - 1);
    const int32* entries = columns + (list >> 32) * 4;
    for (uint32 q = uint32(list & 3) + lane; q < uint32(list) << 1 >> 3; q += 32) {
      uint32 w = entries[q], bit = filter_bit(w);
      if (row.filter[bit >> 5] >> (bit & 31) & 1) { found += contains(table, 0, size, w); }
    }
  }
  return found;
}

// The low halves of columns; threads take four at a time.
extern "C" __global__ void hub_narrow(Task, const int32* columns, int64 size, uint2* narrow) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; 4 * k < size; k += threads) {
    uint32 ids[4];
#pragma unroll
    for (int i = 0; i < 4; i++) { ids[i] = 4 * k + i < size ? columns[4 * k + i] & 0xffff : 0; }
    narrow[k] = make_uint2(ids[0] | ids[1] << 16, ids[2] | ids[3] << 16);
  }
}

// 5. A block takes a work item at a time: a table, and up to ITEM_LISTS lists streamed against it.
extern "C" __global__ void __launch_bounds__(Streamed::THREADS)
    hub_tables(Task t, const uint2* table_narrow, const uint2* stream_narrow, const uint64* begins,
        const uint64* records, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ Streamed row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = *items_end;
  clear_all(row);
  uint64 triangles = 0;
  for (;;) {
    if (threadIdx.x == 0) { row.item = atomicAdd(next, 1u); }
    __syncthreads();
    if (row.item >= count) { break; }
    uint2 item = items[row.item];
    bool of_table = t.tables && item.x >= t.tables;
    const Block& block = of_table ? t.table : t.stream;
    int64 x = of_table ? item.x - t.tables : item.x, size = block.length(x);
    const int32* table = block.columns + block.offsets[x];
    const int32* columns = of_table ? t.stream.columns : t.table.columns;
    const uint2* narrow = of_table ? stream_narrow : table_narrow;
    set_entries(row, table, size);
    uint64 begin = begins[item.x] + uint64(item.y) * ITEM_LISTS, end = min(begin + ITEM_LISTS, begins[item.x + 1]);
    __syncthreads();
    for (uint64 k = begin + 32 * warp; k < end; k += Streamed::THREADS) {
      uint64 mine = k + lane < end ? records[k + lane] : 0;
      triangles += stream_lists(row, mine, uint32(min(end - k, uint64(32))), narrow, columns, table, size);
    }
    __syncthreads();
    clear_entries(row, table, size);
  }
  add_to(&totals->triangles, triangles);
}

// A long table row in shared memory: its bitmap and filter, and its hub words in ascending order.
template <uint32 WORDS_, uint32 FILTERS_, uint32 WARPS_> struct Row {
  static constexpr uint32 WORDS = WORDS_, FILTERS = FILTERS_, WARPS = WARPS_, THREADS = 32 * WARPS_;
  alignas(8) uint32 bits[WORDS];
  uint32 filter[FILTERS];
  unsigned short words[WORDS];
  uint32 sums[WARPS];
  uint32 used;
  uint32 item;
};

using FullRow = Row<BITMAP_WORDS, FILTER_WORDS, PLAIN_WARPS>;
using NearRow = Row<NEAR / 32, 1, NEAR_WARPS>;

// List the words below `most` that have a bit set. A warp takes a quarter of them, twice over.
template <class Row> __device__ void list_words(Row& row, uint32 most) {
  constexpr uint32 THREADS = Row::THREADS, WARPS = Row::WARPS;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32 share = (most + THREADS - 1) / THREADS * 32, begin = warp * share;
  uint32 end = min(begin + share, most), mine = 0;
  for (uint32 k = begin; k < end; k += 32) {
    bool set = k + lane < end && row.bits[k + lane];
    mine += __popc(__ballot_sync(ALL, set));
  }
  if (lane == 0) { row.sums[warp] = mine; }
  __syncthreads();
  uint32 place = 0, all = 0;
  for (uint32 i = 0; i < WARPS; i++) {
    place += i < warp ? row.sums[i] : 0;
    all += row.sums[i];
  }
  for (uint32 k = begin; k < end; k += 32) {
    bool set = k + lane < end && row.bits[k + lane];
    uint32 votes = __ballot_sync(ALL, set);
    if (set) { row.words[place + __popc(votes & ((1u << lane) - 1))] = (unsigned short)(k + lane); }
    place += __popc(votes);
  }
  if (threadIdx.x == 0) { row.used = all; }
  __syncthreads();
}

// The row's words against the bitmaps of the hubs that the lanes hold, hubs ascending by lane;
// `hubs` lanes hold one, `top` is v / 32 there.
template <class Row> __device__ __forceinline__ uint32 meet_hubs(
    const Row& row, const uint32* bitmaps, uint32 hubs, uint32 base, uint32 top) {
  uint32 lane = threadIdx.x % 32, used = row.used, found = 0;
  for (uint32 k = 0; k < used; k += 32) {
    uint32 word = k + lane < used ? row.words[k + lane] : Row::WORDS;
    uint32 bits = k + lane < used ? row.bits[word] : 0;
    uint32 lowest = row.words[k];
    uint32 j = __popc(__ballot_sync(ALL, lane < hubs && top < lowest));
    if (j == hubs) { break; }
    for (; j < hubs; j += 8) {
      uint32 seen[8];
#pragma unroll
      for (uint32 i = 0; i < 8; i++) {
        uint32 from = min(j + i, 31u);
        uint32 hub_base = __shfl_sync(ALL, base, from);
        uint32 hub_top = __shfl_sync(ALL, top, from);
        seen[i] = j + i < hubs && word <= hub_top ? __ldg(bitmaps + hub_base + word) : 0;
      }
#pragma unroll
      for (uint32 i = 0; i < 8; i++) { found += __popc(seen[i] & bits); }
    }
  }
  return found;
}

// B, [begin, begin + b), streamed against the row by a warp.
__device__ __forceinline__ uint32 stream_list(
    const FullRow& row, const Task& t, int64 begin, int64 b, int64 first, int64 last) {
  uint32 lane = threadIdx.x % 32, found = 0;
#pragma unroll 2
  for (int64 q = lane; q < b; q += 32) {
    uint32 w = t.stream.columns[begin + q];
    if (w < BITMAP) {
      found += row.bits[w >> 5] >> (w & 31) & 1;
    } else {
      uint32 bit = filter_bit(w);
      if (row.filter[bit >> 5] >> (bit & 31) & 1) { found += contains(t.table.columns, first, last, w); }
    }
  }
  return found;
}

// Take work items until none is left: `work(row, u, first, last, begin, end)` gets a long table
// row and some of its index row's edges, with nothing set in `row`.
template <class Row, class Work> __device__ __forceinline__ void each_item(
    Row& row, const Task& t, const uint2* items, const uint32* items_end, uint32* next, const Work& work) {
  uint32 count = *items_end;
  clear_all(row);
  for (;;) {
    if (threadIdx.x == 0) { row.item = atomicAdd(next, 1u); }
    __syncthreads();
    uint32 k = row.item;
    if (k >= count) { break; }
    int64 u = items[k].x;
    int64 begin = t.index.offsets[u] + int64(items[k].y) * ITEM_EDGES;
    work(t.table.offsets[u], t.table.offsets[u + 1], begin, min(begin + ITEM_EDGES, t.index.offsets[u + 1]));
  }
}

// 6. Long table rows and near hubs: a block takes a work item at a time, its warps every
// NEAR_WARPSth edge. `near` is 0 or a multiple of 32, or the number of stream rows.
extern "C" __global__ void __launch_bounds__(NearRow::THREADS)
    hub_near(Task t, const uint32* bitmaps, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ NearRow row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = uint32((t.near + 31) >> 5);
  uint64 triangles = 0;
  each_item(row, t, items, items_end, next, [&](int64 first, int64 last, int64 begin, int64 end) {
    const int32* columns = t.table.columns + first;
    int64 size = lower_bound(columns, 0, last - first, 32 * words);
    end = lower_bound(t.index.columns, begin, end, t.near);
    each_entry<NearRow>(columns, size, [&](uint32 w) { atomicOr(row.bits + (w >> 5), 1u << (w & 31)); });
    __syncthreads();
    list_words(row, words);
    for (int64 p = begin + warp; p < end; p += NearRow::THREADS) {
      int64 place = p + lane * NearRow::WARPS;
      uint32 v = place < end ? t.index.columns[place] : 0;
      uint32 hubs = __popc(__ballot_sync(ALL, place < end));
      triangles += meet_hubs(row, bitmaps, hubs, bitmap_of(v), v >> 5);
    }
    __syncthreads();
    for (uint32 i = threadIdx.x; i < row.used; i += NearRow::THREADS) { row.bits[row.words[i]] = 0; }
  });
  add_to(&totals->triangles, triangles);
}

// The warp's 32 edges (u, v), one a lane.
__device__ __forceinline__ void meet_edges(
    const FullRow& row, const Task& t, const uint32* bitmaps, int64 p, int64 end, int64 first, int64 last, Sums& sums) {
  uint32 lane = threadIdx.x % 32;
  bool mine = p < end;
  int64 v = mine ? t.index.columns[p] : 0;
  int64 begin = mine ? t.stream.offsets[v] : 0;
  int64 b = mine ? t.stream.offsets[v + 1] - begin : 0;
  int64 a = mine ? before(t, p, first, last, v) : 0;
  bool hub = mine && v < t.near;
  sums.wedges += b;
  sums.probes += a && b ? (hub || b > LONG * a ? a : b) : 0;
  uint32 hubs = __popc(__ballot_sync(ALL, hub));
  uint32 found = meet_hubs(row, bitmaps, hubs, hub ? bitmap_of(uint32(v)) : 0, uint32(v) >> 5);
  for (uint32 left = __ballot_sync(ALL, mine && !hub && a && b); left; left &= left - 1) {
    int from = __ffs(int(left)) - 1;
    int64 list = __shfl_sync(ALL, begin, from), size = __shfl_sync(ALL, b, from);
    int64 entries = __shfl_sync(ALL, a, from);
    if (size > LONG * entries) {
      for (int64 i = lane; i < entries; i += 32) {
        found += contains(t.stream.columns, list, list + size, t.table.columns[first + i]);
      }
    } else {
      found += stream_list(row, t, list, size, first, last);
    }
  }
  sums.triangles += found;
}

// 7. Plain: long table rows, all hubs and all other edges.
extern "C" __global__ void __launch_bounds__(FullRow::THREADS, 32 / PLAIN_WARPS) hub_plain(
    Task t, const uint32* bitmaps, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ FullRow row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = uint32((t.near + 31) >> 5);
  Sums sums;
  each_item(row, t, items, items_end, next, [&](int64 first, int64 last, int64 begin, int64 end) {
    set_entries(row, t.table.columns + first, last - first);
    __syncthreads();
    list_words(row, words);
    for (int64 p = begin; p < end; p += FullRow::THREADS) {
      meet_edges(row, t, bitmaps, p + lane * PLAIN_WARPS + warp, end, first, last, sums);
    }
    __syncthreads();
    clear_entries(row, t.table.columns + first, last - first);
  });
  sums.add_up(totals);
}
