// Shared by `hub`, which counts, and `support`, which attributes triangles to edges or vertices: settings, the hubs'
// bitmaps, records of short rows, and lists with the tables against which they are streamed. hub.cu explains them.

#ifndef SMALL
#define SMALL 16  // longest table row that gets no table
#endif
#ifndef LONG
#define LONG 8  // PLAIN: where B is this many times as long as A, it is searched and not streamed
#endif
#ifndef MERGED
#define MERGED 0  // longest B that is merged with the A of a short row; a longer one is searched for A's entries
#endif
#ifndef BLOCK
#define BLOCK 256  // threads per block of the kernels with a thread per edge or row
#endif
#ifndef PIECE
#define PIECE 32767  // most entries of a record, which has 15 bits for them; a longer list is cut
#endif
#ifndef ITEM_EDGES
#define ITEM_EDGES 1024  // index edges of a work item into which a row is cut
#endif
#ifndef ITEM_LISTS
#define ITEM_LISTS 1024  // lists of a work item into which a table's lists are cut
#endif
#ifndef TABLE_WARPS
#define TABLE_WARPS 2
#endif
#ifndef AHEAD
#define AHEAD 4  // with outputs: lists whose loads are under way together
#endif
#ifndef TABLE_BLOCKS
#define TABLE_BLOCKS 17  // blocks per multiprocessor for which registers must suffice, where it holds so many
#endif
#ifndef CHUNKS
#define CHUNKS 96  // chunks of its lists that a warp has at a time
#endif
#ifndef LANES
#define LANES 8  // lanes that stream a chunk of a list, eight ids each
#endif
#ifndef LISTS_AHEAD
#define LISTS_AHEAD 2  // chunks of such lanes whose loads are under way together
#endif
#ifndef TAIL_LANES
#define TAIL_LANES 8  // lanes that stream a chunk of a list beyond the bitmap
#endif
#ifndef TAIL_IDS
#define TAIL_IDS 2  // ids of it that each of them reads
#endif
#ifndef TAILS_AHEAD
#define TAILS_AHEAD 2  // chunks of these lanes whose loads are under way together
#endif
#ifndef PLAIN_WARPS
#define PLAIN_WARPS 8
#endif
#ifndef NEAR_WARPS
#define NEAR_WARPS 2
#endif
#ifndef NEIGHBOURS
#define NEIGHBOURS 4  // adjacent rows that a warp takes: the longest are adjacent, and 32 of them would keep it long
#endif
#ifndef FEW_ENTRIES
#define FEW_ENTRIES 128  // most entries of a row whose words are listed by them, not by its bitmap
#endif
#ifndef NEAR
#define NEAR 16384  // most near hubs
#endif
#ifndef SHORT
#define SHORT 64  // longest row of tasks that are counted with records alone
#endif
#ifndef FEW_PRINTS
#define FEW_PRINTS 11  // longest row up to which records are half a sector: the launch's choice
#endif
#ifndef RESIDENT
#define RESIDENT 4  // blocks of BLOCK threads that fit a multiprocessor, with records of a sector
#endif
#ifndef CAPACITY
#define CAPACITY 12  // bytes per edge, with offsets, that records of a sector may take; else they are half of one
#endif
#ifndef EDGES
#define EDGES 4  // records of half a sector that a thread has under way
#endif
#ifndef BITMAP
#define BITMAP 65536  // ids in a row's own bitmap, and most hubs
#endif
#ifndef FILTER
#define FILTER 16384  // bits of the filter for ids beyond it
#endif

constexpr uint32 NO_ENTRY = 0xffffffffu;  // in place of an entry beyond a row's end

constexpr uint32 BITMAP_WORDS = BITMAP / 32, FILTER_WORDS = FILTER / 32;
constexpr uint32 BYTES = BITMAP / 8 - 4;  // of a bitmap, in words: the word of id x is at x >> 3 & BYTES

// First word of hub v's bitmap. Row v has no bit beyond v, so it takes v / 32 + 1 words.
__device__ __forceinline__ uint32 bitmap_of(uint32 v) {
  uint32 group = v >> 5;
  return (group + 1) * ((group << 4) + (v & 31));
}

// Two bits in one word of a filter, which are set for an id beyond the bitmap.
struct FilterBits {
  uint32 word, bits;

  __device__ __forceinline__ explicit FilterBits(uint32 x) {
    uint32 hash = x * 2654435769u;
    word = uint32(uint64(hash) * FILTER_WORDS >> 32);
    bits = 1u << (hash >> 5 & 31) | 1u << (hash >> 12 & 31);
  }
  __device__ __forceinline__ bool in(const uint32* filter) const { return (filter[word] & bits) == bits; }
};

// 1. Sets the hubs' bitmaps, a warp per hub; they are initially zero.
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

// Where no row is longer than SHORT, every stream row has a record, one random read of which replaces three or more: of
// half a sector (`Record`), which a thread tests, or of a whole one (`Mark`), which as many lanes do as it has words.
// What they do not rule out is looked up in the row itself.

// A row's length and up to FEW fingerprints of 16 bits or, for a longer row, where it begins and which of MARKS marks
// its entries leave. Ids of 16 bits are their own fingerprints, and need no lookup.
struct Record {
  static constexpr uint32 WORDS = 4, FEW = 2 * WORDS - 1, MARKS = 32 * (WORDS - 3), LONGER = 0xffff;

  uint32 word[WORDS];

  __device__ __forceinline__ bool fits() const { return (word[0] & 0xffff) != LONGER; }
  __device__ __forceinline__ uint32 length() const { return fits() ? word[0] & 0xffff : word[1]; }
  __device__ __forceinline__ int64 begin() const { return int64(word[0] >> 16) << 32 | word[2]; }  // of a longer row
  __device__ __forceinline__ static uint32 mark_of(uint32 x) { return uint32(uint64(x * 2654435769u) * MARKS >> 32); }
};

__device__ __forceinline__ uint32 fingerprint(uint32 x, bool narrow) {
  return narrow ? x & 0xffff : (x * 2654435769u) >> 16;
}

__device__ __forceinline__ Record record_of(const uint4* records, int64 v) {
  uint4 words = __ldg(records + v);
  return {words.x, words.y, words.z, words.w};
}

// The length of the longest row of a block.
extern "C" __global__ void hub_longest(Task, const int64* offsets, int64 rows, uint32* longest) {
  uint32 mine = 0;
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 v = int64(blockIdx.x) * blockDim.x + threadIdx.x; v < rows; v += threads) {
    mine = max(mine, uint32(offsets[v + 1] - offsets[v]));
  }
  mine = warp_max(mine);
  if (threadIdx.x % 32 == 0 && mine) { atomicMax(longest, mine); }
}

// A row's fingerprints; unused ones repeat the first, so that they add no matches.
__device__ __forceinline__ void note_few(Record& record, const int32* row, uint32 size, bool narrow) {
  uint32 first = size ? fingerprint(row[0], narrow) : 0;
  record.word[0] = size | first << 16;
#pragma unroll
  for (uint32 k = 1; k < Record::WORDS; k++) {
    uint32 low = 2 * k - 1 < size ? fingerprint(row[2 * k - 1], narrow) : first;
    uint32 high = 2 * k < size ? fingerprint(row[2 * k], narrow) : first;
    record.word[k] = low | high << 16;
  }
}

__device__ __forceinline__ void note_marks(Record& record, const int32* row, uint32 size, int64 begin) {
  record.word[0] = record.LONGER | uint32(begin >> 32) << 16;
  record.word[1] = size;
  record.word[2] = uint32(begin);
#pragma unroll
  for (uint32 k = 3; k < Record::WORDS; k++) { record.word[k] = 0; }
  for (uint32 i = 0; i < size; i++) {
    uint32 mark = record.mark_of(row[i]);
#pragma unroll
    for (uint32 k = 3; k < Record::WORDS; k++) { record.word[k] |= mark >> 5 == k - 3 ? 1u << (mark & 31) : 0; }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_records(Task t, int64 rows, uint4* records, uint32 narrow) {
  for (int64 v = first_of(); v < rows; v += all_threads()) {
    int64 begin = t.stream.offsets[v];
    uint32 size = uint32(t.stream.offsets[v + 1] - begin);
    Record record;
    if (size <= record.FEW) {
      note_few(record, t.stream.columns + begin, size, narrow);
    } else {
      note_marks(record, t.stream.columns + begin, size, begin);
    }
    records[v] = {record.word[0], record.word[1], record.word[2], record.word[3]};
  }
}

// Whether a record contains a fingerprint: a half of some word is then zero after the exclusive or.
__device__ __forceinline__ bool has(const Record& record, uint32 print) {
  uint32 both = print << 16 | print, other = (record.word[0] ^ both) | 0xffff;  // its low half is the length
  uint32 zeros = (other - 0x10001u) & ~other;
#pragma unroll
  for (uint32 k = 1; k < Record::WORDS; k++) {
    other = record.word[k] ^ both;
    zeros |= (other - 0x10001u) & ~other;
  }
  return zeros & 0x80008000u;
}

// Counts entries of A that are in a record of row v, or in the row itself.
__device__ __forceinline__ uint32 in_record(
    const Task& t, int64 v, const int32* a, int64 size, const Record& record, bool narrow) {
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
    for (uint32 k = 3; k < Record::WORDS; k++) { word = mark >> 5 == k - 3 ? record.word[k] : word; }
    if (word >> (mark & 31) & 1) { found += contains(row, 0, record.length(), a[i]); }
  }
  return found;
}

// A thread per row u; the records of EDGES edges are under way together. `seen(u, p, v, first, a)` gets the edges that
// have triangles, and the `a` entries of A, from place `first` on, that are to be sought in B.
template <class Seen> __device__ __forceinline__ void count_short(
    const Task& t, const uint4* records, bool narrow, Totals* totals, const Seen& seen) {
  Sums sums;
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k < t.rows; k += threads) {
    int64 u = row_of(t, k), first = t.table.offsets[u], last = t.table.offsets[u + 1];
    int64 end = t.same ? last : t.index.offsets[u + 1];
    for (int64 p = t.same ? first : t.index.offsets[u]; p < end; p += EDGES) {
      Record record[EDGES];
#pragma unroll
      for (uint32 i = 0; i < EDGES; i++) {
        if (p + i < end) { record[i] = record_of(records, t.index.columns[p + i]); }
      }
#pragma unroll
      for (uint32 i = 0; i < EDGES; i++) {
        if (p + i >= end) { break; }
        sums.wedges += record[i].length();
        if (first == last || record[i].length() == 0) { continue; }
        int64 v = t.index.columns[p + i], a = before(t, p + i, first, last, v);
        sums.probes += a;
        uint32 found = in_record(t, v, t.table.columns + first, a, record[i], narrow);
        sums.triangles += found;
        if (found) { seen(u, p + i, v, first, a); }
      }
    }
  }
  sums.add_up(totals);
}

// A sector for a row of at most MOST entries: four marks of each in one word, below the highest bits, which together
// are the row's length.
struct Mark {
  static constexpr uint32 WORDS = 8, LENGTH = 1u << 31, MOST = (1 << WORDS) - 1;

  uint32 word, bits;

  __device__ __forceinline__ explicit Mark(uint32 x) {
    uint32 hash = x * 2654435769u;
    word = hash >> 29;
    bits = 1u << (hash >> 24 & 31) | 1u << (hash >> 19 & 31) | 1u << (hash >> 14 & 31) | 1u << (hash >> 10 & 15);
    bits &= ~LENGTH;  // the last one is never that bit
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) hub_marks(Task t, int64 rows, uint4* records) {
  __shared__ uint32 words[Mark::WORDS][BLOCK];
  for (int64 v = first_of(); v < rows; v += all_threads()) {
    int64 begin = t.stream.offsets[v];
    uint32 size = uint32(t.stream.offsets[v + 1] - begin), x = threadIdx.x;
#pragma unroll
    for (uint32 k = 0; k < Mark::WORDS; k++) { words[k][x] = size >> k & 1 ? Mark::LENGTH : 0; }
    for (uint32 i = 0; i < size; i++) {
      Mark mark(t.stream.columns[begin + i]);
      words[mark.word][x] |= mark.bits;
    }
    records[2 * v] = {words[0][x], words[1][x], words[2][x], words[3][x]};
    records[2 * v + 1] = {words[4][x], words[5][x], words[6][x], words[7][x]};
  }
}

// An entry of A that the marks of B do not rule out: w, at place `i` of the k-th row of the split, for the index edge at
// place p.
struct Suspect {
  int64 p;
  uint32 k, i, v, w;

  __device__ __forceinline__ bool found(const Task& t) const {
    return contains(t.stream.columns, t.stream.offsets[v], t.stream.offsets[v + 1], int32(w));
  }
};

constexpr uint32 MOST_SUSPECTS = 64;  // of a warp: fewer than 32 that wait, and one more of each lane
using Suspects = Suspect[BLOCK / 32][MOST_SUSPECTS];

// The index edges of a row.
struct GroupRow {
  int64 begin;
  uint32 edges;

  __device__ __forceinline__ GroupRow of_lane(uint32 lane) const {
    return {__shfl_sync(ALL, begin, lane), __shfl_sync(ALL, edges, lane)};
  }
};

// Each group of WORDS lanes takes as many rows, one after the other, and WORDS of a row's edges per step: a lane holds
// one word of every edge's record, and one entry of A at a time, whose word it gets from the lane that holds it. The
// edges of the next step are read ahead. Suspects gather until the warp has 32, for a lookup waits for several reads.
template <class Seen>
__device__ __forceinline__ void count_by_groups(
    const Task& t, const uint32* records, Suspects& all_suspects, Totals* totals, const Seen& seen) {
  constexpr uint32 WORDS = Mark::WORDS;
  Suspect* suspects = all_suspects[threadIdx.x / 32];
  uint32 warp_lane = threadIdx.x % 32, lane = threadIdx.x % WORDS, last = warp_lane - lane + WORDS, waiting = 0;
  bool triangle = t.same && t.shift == 0;  // then the e-th edge has the first e entries
  Sums sums;
  auto look_up = [&](uint32 count) {
    __syncwarp();
    waiting -= count;
    if (warp_lane < count) {
      Suspect suspect = suspects[waiting + warp_lane];
      if (suspect.found(t)) {
        int64 u = row_of(t, suspect.k);
        sums.triangles++;
        seen(u, suspect.p, suspect.v, t.table.offsets[u] + suspect.i, 1);
      }
    }
    __syncwarp();
  };
  for (int64 step = first_of() - warp_lane; step < t.rows; step += all_threads()) {
    GroupRow mine = {0, 0};
    if (step + warp_lane < t.rows) {
      int64 u = row_of(t, step + warp_lane);
      mine.begin = t.index.offsets[u];
      mine.edges = uint32(t.index.offsets[u + 1] - mine.begin);
    }
    uint32 next = last - WORDS, e_ahead = 0;
    GroupRow ahead = mine.of_lane(next);
    uint32 v_ahead = lane < ahead.edges ? t.index.columns[ahead.begin + lane] : NO_ENTRY;
    while (__any_sync(ALL, next < last)) {
      GroupRow row = ahead;
      uint32 k = uint32(step) + next, e = e_ahead, v = v_ahead, part[WORDS];
#pragma unroll
      for (uint32 j = 0; j < WORDS; j++) {
        uint32 hub = __shfl_sync(ALL, v, j, WORDS);
        part[j] = hub == NO_ENTRY ? 0 : __ldg(records + uint64(hub) * WORDS + lane);
      }
      bool over = e + WORDS >= row.edges;
      e_ahead = over ? 0 : e + WORDS;
      next = min(next + over, last);
      ahead = mine.of_lane(min(next, 31u));
      if (next == last) { ahead.edges = 0; }  // that lane's row is another group's, or none
      v_ahead = e_ahead + lane < ahead.edges ? t.index.columns[ahead.begin + e_ahead + lane] : NO_ENTRY;

      int64 first = row.begin;
      uint32 size = row.edges, a = e + lane, b = 0;
      if (!triangle && row.edges) {
        int64 u = row_of(t, k);
        first = t.table.offsets[u];
        size = uint32(t.table.offsets[u + 1] - first);
        a = v == NO_ENTRY ? 0 : uint32(before(t, row.begin + e + lane, first, first + size, v));
      }
#pragma unroll
      for (uint32 j = 0; j < WORDS; j++) {
        uint32 length = __ballot_sync(ALL, part[j] & Mark::LENGTH) >> (last - WORDS) & Mark::MOST;
        b = lane == j ? length : b;
      }
      sums.wedges += b;
      sums.probes += b ? a : 0;
      for (uint32 i = lane; __any_sync(ALL, v != NO_ENTRY && i - lane < a); i += WORDS) {
        uint32 w = i < size ? t.table.columns[first + i] : 0, hits = 0, untested = 0;
        Mark mark(w);
#pragma unroll
        for (uint32 j = 0; j < WORDS; j++) {
          hits |= uint32((mark.bits & ~__shfl_sync(ALL, part[j], mark.word, WORDS)) == 0) << j;
        }
        if (triangle) {
          untested = uint32(max(int32(i - e) + 1, 0));
        } else {
#pragma unroll
          for (uint32 j = 0; j < WORDS; j++) { untested += __shfl_sync(ALL, v == NO_ENTRY ? v : a, j, WORDS) <= i; }
        }
        hits = untested < WORDS ? hits >> untested << untested : 0;
        for (uint32 votes; (votes = __ballot_sync(ALL, hits != 0)) != 0; hits &= hits - 1) {
          uint32 edge = hits ? uint32(__ffs(int(hits))) - 1 : 0, hub = __shfl_sync(ALL, v, edge, WORDS);
          if (hits) {
            suspects[waiting + __popc(votes & ((1u << warp_lane) - 1))] = {row.begin + e + edge, k, i, hub, w};
          }
          waiting += __popc(votes);
          if (waiting >= 32) { look_up(32); }
        }
      }
    }
  }
  look_up(waiting);
  sums.add_up(totals);
}

// Lists: an edge of a long row that is tested against no bitmap has its shorter list streamed against a table of the
// longer one. All lists against one table are adjacent, as records. A table's key is its row: of the stream block for
// v, against which A is streamed, or of the table block for u.

constexpr int64 MOST = PIECE;
static_assert(PIECE < 1 << 15, "a record has 15 bits for a number of entries");

// A list in the form in which it is streamed: four ids are read together, and the first list entry is entry `skip` of
// the first four. `front` entries are below BITMAP, and `tail` others follow.
struct ListRecord {
  uint64 bits;

  __device__ __forceinline__ static ListRecord of(int64 start, int64 front, int64 tail) {
    return {uint64(start >> 2) << 32 | uint64(front) << 17 | uint64(tail) << 2 | uint64(start & 3)};
  }
  __device__ __forceinline__ uint32 fours() const { return uint32(bits >> 32); }
  __device__ __forceinline__ uint32 skip() const { return uint32(bits) & 3; }
  __device__ __forceinline__ uint32 front() const { return uint32(bits) >> 17; }
  __device__ __forceinline__ uint32 tail() const { return uint32(bits) >> 2 & 0x7fff; }
};

struct List {
  int64 key, start, size;
  int64 other;  // the end of the edge that is not the table's
  bool streamed;  // whether it is part of a stream row

  __device__ int64 records() const { return (size + MOST - 1) / MOST; }
};

__device__ __forceinline__ List shorter_list(
    const Task& t, int64 u, int64 v, int64 first, int64 a, int64 begin, int64 b) {
  return a < b ? List{v, first, a, u, false} : List{t.tables + u, begin, b, v, true};
}

// The number of entries of a row below BITMAP.
__device__ __forceinline__ uint32 front_of(const int32* row, int64 size) {
  return uint32(row[size - 1] < BITMAP ? size : lower_bound(row, 0, size, BITMAP));
}

// 2. All edges. Those of a short table row are passed to `visit(u, p, first, last)`, after `deal(row)` got the row from
// all lanes. Edges of longer ones are tested against the near hubs' bitmaps in work items of ITEM_EDGES edges, and the
// rest are counted by table; PLAIN leaves all to the items.
template <class Deal, class Visit> __device__ __forceinline__ void all_edges(const Task& t, uint2* items,
    uint32* items_end, int64 item_edges, uint64* lists, uint64* all_lists, uint32 plain, Sums& sums, const Deal& deal,
    const Visit& visit) {
  uint64 found = 0;
  auto prepare = [&](TaskRow& row) {
    bool longer = row.size > SMALL, cut = longer && row.edges && (plain || t.index.columns[row.begin] < t.near);
    uint32 count = cut ? uint32((row.edges + item_edges - 1) / item_edges) : 0;
    uint32 place = reserve(items_end, count);
    for (uint32 i = 0; i < count; i++) { items[place + i] = make_uint2(uint32(row.u), i); }
    if (longer && plain) { row.edges = 0; }
    deal(row);
  };
  each_edge<NEIGHBOURS>(t, prepare, [&](int64 u, int64 p, int64 first, int64 last, uint32) {
    if (last - first <= SMALL) { return visit(u, p, first, last); }
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
  add_to(all_lists, found);
}

// Calls `visit(list, p, front)` with the list of each edge that neither a short row nor a bitmap counts; `front` is
// the number of entries of its table row below BITMAP.
template <class Visit> __device__ __forceinline__ void each_list(const Task& t, const Visit& visit) {
  auto prepare = [&](TaskRow& row) {
    if (row.size <= SMALL) { row.edges = 0; }
    if (row.edges == 0) { return; }
    int64 last = row.begin + row.edges;
    row.begin = lower_bound(t.index.columns, row.begin, last, t.near);
    row.edges = last - row.begin;
    if (row.edges) { row.note = front_of(t.table.columns + row.first, row.size); }
  };
  each_edge<NEIGHBOURS>(t, prepare, [&](int64 u, int64 p, int64 first, int64 last, uint32 front) {
    int64 v = t.index.columns[p];
    int64 begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
    int64 a = before(t, p, first, last, v);
    if (a && b) { visit(shorter_list(t, u, v, first, a, begin, b), p, front); }
  });
}

// Counts the lists of some rows alone, where those of all rows are too many.
extern "C" __global__ void __launch_bounds__(BLOCK) hub_counts(Task t, uint64* lists, uint64* all_lists) {
  uint64 found = 0;
  each_list(t, [&](const List& list, int64, uint32) {
    found += list.records();
    atomicAdd(lists + list.key, uint64(list.records()));
  });
  add_to(all_lists, found);
}

// 3. The lists' records. `ends` holds, by key, the end of its records, and afterwards their begin.
// `note(place, list, p)` is called for each.
template <class Note>
__device__ __forceinline__ void put_lists(const Task& t, uint64* ends, uint64* records, const Note& note) {
  each_list(t, [&](const List& list, int64 p, int64 front) {
    if (list.streamed) { front = front_of(t.stream.columns + list.start, list.size); }
    uint64* place = records + atomicAdd(ends + list.key, uint64(-list.records())) - list.records();
    for (int64 i = 0; i < list.size; i += MOST) {
      int64 size = min(MOST, list.size - i), below = max(0ll, min(size, front - i));
      note(place - records, list, p);
      *place++ = ListRecord::of(list.start + i, below, size - below).bits;
    }
  });
}

// 4. Cuts tables with lists into work items.
extern "C" __global__ void hub_items(Task, const uint64* begins, int64 keys, uint2* items, uint32* items_end) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k - threadIdx.x % 32 < keys; k += threads) {
    uint64 size = k < keys ? begins[k + 1] - begins[k] : 0;
    uint32 count = uint32((size + ITEM_LISTS - 1) / ITEM_LISTS);
    uint32 place = reserve(items_end, count);
    for (uint32 i = 0; i < count; i++) { items[place + i] = make_uint2(uint32(k), i); }
  }
}

// Calls `work(w)` for the entries of a list; each thread reads AT_ONCE of them together.
template <class Row, class Work>
__device__ __forceinline__ void each_entry(const int32* columns, int64 size, const Work& work) {
  constexpr uint32 AT_ONCE = 4;
  for (int64 i = threadIdx.x; i < size; i += AT_ONCE * Row::THREADS) {
    uint32 w[AT_ONCE];
#pragma unroll
    for (uint32 k = 0; k < AT_ONCE; k++) {
      int64 place = i + k * Row::THREADS;
      w[k] = place < size ? columns[place] : NO_ENTRY;
    }
#pragma unroll
    for (uint32 k = 0; k < AT_ONCE; k++) {
      if (w[k] != NO_ENTRY) { work(w[k]); }
    }
  }
}

template <class Row> __device__ void set_entries(Row& row, const int32* columns, int64 size) {
  each_entry<Row>(columns, size, [&](uint32 w) {
    if (w < BITMAP) {
      atomicOr(row.bits + (w >> 5), 1u << (w & 31 ^ Row::MIRROR));
    } else {
      FilterBits mark(w);
      atomicOr(row.filter + mark.word, mark.bits);
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

// A long list has too many words for each to be looked up.
template <class Row> __device__ void clear_entries(Row& row, const int32* columns, int64 size) {
  if (size > Row::WORDS / 4) { return clear_all(row); }
  each_entry<Row>(columns, size, [&](uint32 w) {
    if (w < BITMAP) {
      RACY_WRITE(row.bits[w >> 5], 0, "all who write it write 0");
    } else {
      RACY_WRITE(row.filter[FilterBits(w).word], 0, "all who write it write 0");
    }
  });
}

__device__ __forceinline__ uint32 bit_of(const uint32* bits, uint32 byte, uint32 shift) {
  return *reinterpret_cast<const uint32*>(reinterpret_cast<const char*>(bits) + byte) >> (shift & 31) & 1;
}

// Which of four 16-bit ids have their bit set, as a mask with the first id lowest.
__device__ __forceinline__ uint32 test_four(const uint32* bits, uint2 ids) {
  uint32 found = bit_of(bits, ids.y >> 19 & BYTES, ids.y >> 16);
  found = found * 2 + bit_of(bits, ids.y >> 3 & BYTES, ids.y);
  found = found * 2 + bit_of(bits, ids.x >> 19 & BYTES, ids.x >> 16);
  return found * 2 + bit_of(bits, ids.x >> 3 & BYTES, ids.x);
}

// The low halves of columns; threads take four per step. One word more is written, for they are also read eight at a
// time.
extern "C" __global__ void hub_narrow(Task, const int32* columns, int64 size, uint2* narrow) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; 4 * k < size + 4; k += threads) {
    uint32 ids[4];
#pragma unroll
    for (int i = 0; i < 4; i++) { ids[i] = 4 * k + i < size ? columns[4 * k + i] & 0xffff : 0; }
    narrow[k] = make_uint2(ids[0] | ids[1] << 16, ids[2] | ids[3] << 16);
  }
}

// A long table row in shared memory: its bitmap and filter, and its hub words in ascending order.
template <uint32 WORDS_, uint32 FILTERS_, uint32 WARPS_> struct Row {
  static constexpr uint32 WORDS = WORDS_, FILTERS = FILTERS_, WARPS = WARPS_, THREADS = 32 * WARPS_;
  static constexpr uint32 MIRROR = 0;  // the bits of a word are in ascending order
  alignas(8) uint32 bits[WORDS];
  uint32 filter[FILTERS];
  unsigned short words[WORDS];
  uint32 sums[WARPS];
  uint32 used;
  uint32 item;
};

using FullRow = Row<BITMAP_WORDS, FILTER_WORDS, PLAIN_WARPS>;
using NearRow = Row<NEAR / 32, 1, NEAR_WARPS>;

// The same as `lower_bound`, by a warp, all of whose lanes must call it: some 32 entries per step.
__device__ __forceinline__ int64 lower_bound_of_warp(const int32* columns, int64 at, int64 end, int64 bound) {
  uint32 lane = threadIdx.x % 32;
  while (at < end) {
    int64 step = (end - at + 31) / 32, place = at + lane * step;
    uint32 below = __popc(__ballot_sync(ALL, place < end && columns[place] < bound));
    if (step == 1 || below == 0) { return at + below; }
    end = min(end, at + below * step);
    at += (below - 1) * step + 1;
  }
  return at;
}

// Lists the words below `most` that have a bit set. Each warp takes its share of them, in two passes.
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

// Takes work items until none is left: `work(u, first, last, begin, end)` gets a long table row and some of its
// index row's edges, with nothing set in `row`.
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
    work(u, t.table.offsets[u], t.table.offsets[u + 1], begin, min(begin + ITEM_EDGES, t.index.offsets[u + 1]));
  }
}
