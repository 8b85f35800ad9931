// support: counts the triangles of each edge or, with VERTICES, of each vertex, as `hub` and `bitmap` find them.
//
// Lists, tables and short rows are those of the count (hub.cuh). The number found for an index edge (u, v) is added
// once to u, v and the edge. For the third vertex w, and the edges (u, w) and (v, w):
//
// * Short table rows, a thread per edge: each match in the hub's bitmap, or of the walk, is added at once.
// * Lists against a table: each entry of the table's row has a counter of 16 bits in shared memory, at its place in the
//   row (the places of a bitmap's words are kept beside it); counters are added up when the item is done. Entries of a
//   list are added at their own places, which are adjacent for neighbours.
// * Rows of at most SHORT entries: an edge that has triangles according to the records is walked again, or with marks
//   each entry of A that was found is sought again.
// * PLAIN: table row u has the counters; B is streamed, or searched for A where A is far shorter.
//
// * By vertex, where the three blocks are one, near hubs are tested as in the count, but with a square of bits: each
//   hub's neighbours before and behind it. The triangles of an edge (u, x) are added to x, and half of them to u: one
//   atomic per edge, none per triangle. By edge this would not give (v, w), so all lists are streamed.
//
// Where there is no triangle nothing is added, and the count decides the time.
//
// One H200, ms of all kernels. Predicted from atomics: one a triangle for the list's entry, in 64 MB and more, but 8
// neighbours share a sector; one for the table's, in shared memory. Measured there, G/s of single atomics in random
// places: shared memory 2,700; L2 over 16, 64, 256 MB: 106, 37, 19; runs of 8 neighbours: 606, 289, 147; skewed over
// 4,096 numbers 5.
//
//   version                              K20   K22   K24   predicted at K22
//   count                                3.0  10.5    61
//   edges: all lists                     8.4    39   226   55: lists 8, tables 20, places 18, short rows 8
//     what is found not added             -     23     -   of it tables 13, lists 5, short rows 3
//     list's entries left out             -     30   157
//     table's entries left out            -     38     -   shared counters are all but free
//     table's entries by L2 too           -     65   347   2.07 G atomics: 26 ms, 80 G/s
//   vertices: all lists                   -     30   157   30
//   vertices: near hubs by squares       4.5    19   105   18: twice the count's near hubs, 6
//     8,192 near hubs                     -     21   113   12,288: 20
//   PLAIN: edges, vertices               11, 9  70, 55     -: B is streamed, not the shorter list
//   visit: edges, vertices at scale 22: 8,450, 794 with frames
//
// Learnt: by edge the main cost is the lists' entries in L2 (11 of 41 ms, 69 of 226), whose misses go to DRAM at K24,
// and the instructions of 2.07 G hits: a word's place, a count of bits, two atomics. Tried without gain: 2 or 8 warps a
// table; 2,048 or 8,192 counters; SMALL 8 or 32; 4,096 lists an item; 2 lists ahead; by vertex 512 or 2,048 of the
// lowest ids' sums in shared memory; eight warp sums as a butterfly.

// Preludes: hub.cuh support.cuh

#ifndef COUNTERS
#define COUNTERS 4096  // entries of a table row that have a counter in shared memory
#endif
#ifndef MET_WARPS
#define MET_WARPS 4  // warps of a table with counters
#endif

static_assert(ITEM_LISTS < 1 << 16 && ITEM_EDGES < 1 << 16, "a counter has 16 bits");
static_assert(SMALL <= 32, "what is found of a short row is bits of a word");

// Processes one edge (u, v) of a short table row [first, last), by one thread.
__device__ __forceinline__ void short_edge(
    const Task& t, const uint32* bitmaps, int64 u, int64 p, int64 first, int64 last, Sums& sums, const Out& out) {
  int64 v = t.index.columns[p], begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
  sums.wedges += b;
  if (first == last || b == 0) { return; }
  int64 a = before(t, p, first, last, v);
  if (a == 0) { return; }
  uint32 found = 0;
  if (v < t.hubs) {
    const int32* list = t.table.columns + first;
    const uint32* bitmap = bitmaps + bitmap_of(uint32(v));
    uint32 hits = 0;
#pragma unroll 4
    for (int64 i = 0; i < a; i++) {
      uint32 w = list[i];
      hits |= (__ldg(bitmap + (w >> 5)) >> (w & 31) & 1) << i;
    }
    for (uint32 left = hits; left; left &= left - 1) {
      int64 i = __ffs(int(left)) - 1;
      int64 in_stream = VERTICES ? 0 : lower_bound(t.stream.columns, begin, begin + b, list[i]);
      out.third_vertex(uint32(list[i]), first + i, in_stream);
    }
    found = __popc(hits);
  } else {
    found = meet_lists(t, first, a, begin, b, out);
  }
  sums.triangles += found;
  if (found) { out.edge(p, u, v, found); }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_edges(Task t, const uint32* bitmaps, uint2* items, uint32* items_end, uint64* lists, uint64* all_lists,
        uint32 plain, Totals* totals, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  Sums sums;
  Out out = {first_sums, second_sums, third_sums};
  int64 item_edges = plain ? ITEM_EDGES : BEHIND;  // rows that are tested against near hubs are not cut
  all_edges(t, items, items_end, item_edges, lists, all_lists, plain, sums, [](const TaskRow&) {},
      [&](int64 u, int64 p, int64 first, int64 last) { short_edge(t, bitmaps, u, p, first, last, sums, out); });
  sums.add_up(totals);
}

// Processes edges with triangles in rows of at most SHORT entries.
struct Seen {
  const Task& t;
  Out out;

  __device__ __forceinline__ void operator()(int64 u, int64 p, int64 v, int64 first, int64 a) const {
    meet_edge(t, u, p, v, first, a, out);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) hub_short(
    Task t, const uint4* records, uint32 narrow, Totals* totals, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  count_short(t, records, narrow, totals, Seen{t, {first_sums, second_sums, third_sums}});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_group(Task t, const uint32* records, Totals* totals, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  __shared__ Suspects suspects;
  count_by_groups(t, records, suspects, totals, Seen{t, {first_sums, second_sums, third_sums}});
}

// Beside each list's record it stores the owner: its index edge's place or, by vertex, the edge's end that is no table.
extern "C" __global__ void __launch_bounds__(BLOCK) hub_lists(Task t, uint64* ends, uint64* records, uint64* whose) {
  put_lists(t, ends, records,
      [&](int64 place, const List& list, int64 p) { whose[place] = uint64(VERTICES ? list.other : p); });
}

// A row in shared memory: its bitmap and filter, the place in the row of each word's first entry, and a counter
// per entry, two to a word.
template <uint32 WARPS_> struct Met {
  static constexpr uint32 WORDS = BITMAP_WORDS, FILTERS = FILTER_WORDS, WARPS = WARPS_, THREADS = 32 * WARPS_;
  alignas(8) uint32 bits[BITMAP_WORDS];
  uint32 filter[FILTER_WORDS];
  uint32 counters[(COUNTERS + 1) / 2];
  unsigned short below[BITMAP_WORDS];
  uint32 item;

  __device__ __forceinline__ void clear_counters() {
    for (uint32 k = threadIdx.x; k < (COUNTERS + 1) / 2; k += THREADS) { counters[k] = 0; }
  }

  __device__ __forceinline__ void set(const int32* columns, int64 size) {
    for (int64 i = threadIdx.x; i < size; i += THREADS) {
      uint32 w = columns[i];
      if (w < BITMAP) {
        atomicOr(bits + (w >> 5), 1u << (w & 31));
        if (i == 0 || uint32(columns[i - 1]) >> 5 != w >> 5) { below[w >> 5] = (unsigned short)(i); }
      } else {
        FilterBits mark(w);
        atomicOr(filter + mark.word, mark.bits);
      }
    }
  }

  // The place in the row of an entry below BITMAP.
  __device__ __forceinline__ uint32 place_of(uint32 w) const {
    return below[w >> 5] + __popc(bits[w >> 5] & ((1u << (w & 31)) - 1));
  }

  // The place of any w in the row; -1 where the row does not contain it.
  __device__ __forceinline__ int64 find(const int32* columns, int64 size, uint32 w) const {
    if (w < BITMAP) { return bits[w >> 5] >> (w & 31) & 1 ? int64(place_of(w)) : -1; }
    if (!FilterBits(w).in(filter)) { return -1; }
    int64 place = lower_bound(columns, 0, size, w);
    return place < size && uint32(columns[place]) == w ? place : -1;
  }
};

// Targets of additions for a row's entries in shared memory: by edge their places, by vertex their ids.
struct Entries {
  Sum* sums;
  const int32* columns;

  __device__ __forceinline__ void add(int64 place, uint32 count) const {
    atomicAdd(sums + (VERTICES ? int64(columns[place]) : place), Sum(count));
  }

  template <class Row> __device__ __forceinline__ void count(Row& row, int64 place) const {
    if (place < COUNTERS) {
      atomicAdd(row.counters + place / 2, 1u << 16 * (place & 1));
    } else {
      add(place, 1);
    }
  }

  // Adds up a row's counters, and resets them.
  template <class Row> __device__ __forceinline__ void collect(Row& row, int64 size) const {
    for (int64 k = threadIdx.x; 2 * k < min(size, int64(COUNTERS)); k += Row::THREADS) {
      uint32 both = row.counters[k];
      if (both == 0) { continue; }
      row.counters[k] = 0;
      if (both & 0xffff) { add(2 * k, both & 0xffff); }
      if (both >> 16) { add(2 * k + 1, both >> 16); }
    }
  }
};

// The k-th of four ids.
__device__ __forceinline__ uint32 id_of(uint2 ids, uint32 k) {
  return (k & 2 ? ids.y : ids.x) >> 16 * (k & 1) & 0xffff;
}

__device__ __forceinline__ uint32 of_warp(uint32 x) {
#if defined(CUDA_ON_HOST) || __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL, x);
#else
  for (int bits = 16; bits > 0; bits >>= 1) { x += __shfl_xor_sync(ALL, x, bits); }
  return x;
#endif
}

// Streams the warp's lists, one record per lane, as `hub` does; returns the triangles of each list, one list per lane.
// `places` are the sums of the lists' own entries, by edge.
template <class Row> __device__ __forceinline__ uint32 stream_lists(Row& row, ListRecord mine, uint32 count,
    const uint2* narrow, const int32* columns, const Entries& table, int64 size, Sum* places) {
  uint32 lane = threadIdx.x % 32, all = 0;
  uint32 fours = mine.fours(), about = mine.front() ? (mine.skip() + mine.front()) << 2 | mine.skip() : 0;
  for (uint32 j = 0; j < count; j += AHEAD) {
    uint32 kind[AHEAD];
    uint32 four_of[AHEAD];
    uint2 ids[AHEAD];
#pragma unroll
    for (uint32 i = 0; i < AHEAD; i++) {
      kind[i] = __shfl_sync(ALL, about, min(j + i, 31u));
      four_of[i] = __shfl_sync(ALL, fours, min(j + i, 31u));
      ids[i] = make_uint2(0, 0);
      if (AHEAD > 1 && j + i > 31) { kind[i] = 0; }
      if (4 * lane < kind[i] >> 2) { ids[i] = __ldg(narrow + four_of[i] + lane); }
    }
#pragma unroll
    for (uint32 i = 0; i < AHEAD; i++) {
      int32 left = int32(kind[i] >> 2) - int32(4 * lane);
      uint32 valid = lane == 0 ? 15u << (kind[i] & 3) : 15u, found = 0;
      int64 place = int64(four_of[i]) + lane;
      while (left > 0) {
        if (left < 4) { valid &= (1u << left) - 1; }
        uint32 hits = test_four(row.bits, ids[i]) & valid & 15u;
        found += __popc(hits);
        if (hits) {
#pragma unroll
          for (uint32 k = 0; k < 4; k++) {
            if (hits >> k & 1) {
              table.count(row, row.place_of(id_of(ids[i], k)));
              if (!VERTICES) { atomicAdd(places + 4 * place + k, Sum(1)); }
            }
          }
        }
        left -= 128;
        valid = 15u;
        place += 32;
        if (left > 0) { ids[i] = __ldg(narrow + place); }
      }
      found = of_warp(found);
      if (j + i == lane) { all = found; }
    }
  }
  for (uint32 left = __ballot_sync(ALL, mine.tail()); left; left &= left - 1) {
    uint32 from = __ffs(int(left)) - 1, found = 0;
    ListRecord list = {__shfl_sync(ALL, mine.bits, from)};
    int64 start = int64(list.fours()) * 4 + list.skip() + list.front();
    for (uint32 q = lane; q < list.tail(); q += 32) {
      int64 place = row.find(table.columns, size, columns[start + q]);
      if (place < 0) { continue; }
      found++;
      table.count(row, place);
      if (!VERTICES) { atomicAdd(places + start + q, Sum(1)); }
    }
    found = of_warp(found);
    if (lane == from) { all += found; }
  }
  return all;
}

// A block takes one work item per step: a table, and up to ITEM_LISTS lists streamed against it.
extern "C" __global__ void __launch_bounds__(Met<MET_WARPS>::THREADS)
    hub_tables(Task t, const uint2* table_narrow, const uint2* stream_narrow, const uint64* begins,
        const uint64* records, const uint2* items, const uint32* items_end, uint32* next, Totals* totals,
        const uint64* whose, Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  using Row = Met<MET_WARPS>;
  __shared__ Row row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = *items_end;
  Out out = {first_sums, second_sums, third_sums};
  clear_all(row);
  row.clear_counters();
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
#if VERTICES
    Entries entries = {out.third, table};
    Sum *places = nullptr, *ends = of_table ? out.columns : out.rows, *own = of_table ? out.rows : out.columns;
#else
    Entries entries = {(of_table ? out.table : out.stream) + block.offsets[x], table};
    Sum *places = of_table ? out.stream : out.table, *ends = out.index;
#endif
    row.set(table, size);
    uint64 begin = begins[item.x] + uint64(item.y) * ITEM_LISTS, end = min(begin + ITEM_LISTS, begins[item.x + 1]);
    __syncthreads();
    uint64 met = 0;
    for (uint64 k = begin + 32 * warp; k < end; k += Row::THREADS) {
      ListRecord mine = {k + lane < end ? records[k + lane] : 0};
      uint32 found = stream_lists(row, mine, uint32(min(end - k, uint64(32))), narrow, columns, entries, size, places);
      if (found) { atomicAdd(ends + whose[k + lane], Sum(found)); }
      met += found;
    }
#if VERTICES
    add_to(own + x, met);
#endif
    triangles += met;
    __syncthreads();
    entries.collect(row, size);
    clear_entries(row, table, size);
  }
  add_to(&totals->triangles, triangles);
}

// For each near hub, a bit for each other near hub that it is joined to, before and behind it. Initially zero.
extern "C" __global__ void hub_square(Task t, uint32* square) {
  uint32 lane = threadIdx.x % 32, words = uint32((t.near + 31) >> 5);
  int64 warps = all_threads() / 32;
  for (int64 v = first_of() / 32; v < t.near; v += warps) {
    int64 last = t.stream.offsets[v + 1];
    for (int64 q = t.stream.offsets[v] + lane; q < last; q += 32) {
      uint32 w = t.stream.columns[q];
      atomicOr(square + uint32(v) * words + (w >> 5), 1u << (w & 31));
      atomicOr(square + w * words + (uint32(v) >> 5), 1u << (v & 31));
    }
  }
}

// Tests the row's words against the squares of the lanes' hubs, one for each of `hubs` lanes; returns each hub's
// matches.
template <class Row> __device__ __forceinline__ uint32 meet_square(
    const Row& row, const uint32* square, uint32 words, uint32 hubs, uint32 hub) {
  uint32 lane = threadIdx.x % 32, used = row.used, all = 0;
  for (uint32 k = 0; k < used; k += 32) {
    uint32 word = k + lane < used ? row.words[k + lane] : 0;
    uint32 bits = k + lane < used ? row.bits[word] : 0;
    for (uint32 j = 0; j < hubs; j += 8) {
      uint32 seen[8];
#pragma unroll
      for (uint32 i = 0; i < 8; i++) {
        uint32 from = __shfl_sync(ALL, hub, j + i);
        seen[i] = bits && j + i < hubs ? __ldg(square + from * words + word) : 0;
      }
#pragma unroll
      for (uint32 i = 0; i < 8; i++) {
        uint32 found = of_warp(__popc(seen[i] & bits));
        all += j + i == lane ? found : 0;
      }
    }
  }
  return all;
}

// Long rows and near hubs, where the three blocks are one: a block takes one row per step. An edge (u, x) of it finds
// the entries y of the row to which x is joined; each triangle (u, v, w) is found by (u, v) and by (u, w): once for v,
// once for w, twice for u.
extern "C" __global__ void __launch_bounds__(NearRow::THREADS)
    hub_near(Task t, const uint32* square, const uint2* items, const uint32* items_end, uint32* next, Totals* totals,
        Sum* first_sums, Sum* second_sums, Sum*) {
  __shared__ NearRow row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = uint32((t.near + 31) >> 5);
  uint64 triangles = 0;
  each_item(row, t, items, items_end, next, [&](int64 u, int64 first, int64 last, int64, int64) {
    int64 end = lower_bound(t.table.columns, first, last, t.near);
    each_entry<NearRow>(
        t.table.columns + first, end - first, [&](uint32 w) { atomicOr(row.bits + (w >> 5), 1u << (w & 31)); });
    __syncthreads();
    list_words(row, words);
    uint32 met = 0;
    for (int64 p = first + warp; p < end; p += NearRow::THREADS) {
      int64 place = p + lane * NearRow::WARPS;
      uint32 x = place < end ? t.table.columns[place] : 0;
      uint32 hubs = __popc(__ballot_sync(ALL, place < end));
      uint32 found = meet_square(row, square, words, hubs, x);
      if (place < end && found) {
        atomicAdd(second_sums + (VERTICES ? int64(x) : place), Sum(found));
        met += found;
      }
    }
    met = of_warp(met);
    if (lane == 0) { row.sums[warp] = met; }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64 twice = 0;
      for (uint32 i = 0; i < NearRow::WARPS; i++) { twice += row.sums[i]; }
      triangles += twice / 2;
#if VERTICES
      if (twice) { atomicAdd(first_sums + u, Sum(twice / 2)); }
#endif
    }
    for (uint32 i = threadIdx.x; i < row.used; i += NearRow::THREADS) { row.bits[row.words[i]] = 0; }
  });
  add_to(&totals->triangles, triangles);
}

// PLAIN: a long table row, and some of its index edges, a warp per edge.
extern "C" __global__ void __launch_bounds__(Met<PLAIN_WARPS>::THREADS)
    hub_plain(Task t, const uint32*, const uint2* items, const uint32* items_end, uint32* next, Totals* totals,
        Sum* first_sums, Sum* second_sums, Sum* third_sums) {
  using Row = Met<PLAIN_WARPS>;
  __shared__ Row row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Out out = {first_sums, second_sums, third_sums};
  Sums sums;
  row.clear_counters();
  each_item(row, t, items, items_end, next, [&](int64 u, int64 first, int64 last, int64 begin, int64 end) {
    const int32* table = t.table.columns + first;
#if VERTICES
    Entries entries = {out.third, table};
#else
    Entries entries = {out.table + first, table};
#endif
    row.set(table, last - first);
    __syncthreads();
    for (int64 p = begin + warp; p < end; p += Row::WARPS) {
      int64 v = t.index.columns[p], list = t.stream.offsets[v], b = t.stream.offsets[v + 1] - list;
      int64 a = before(t, p, first, last, v);
      sums.wedges += lane == 0 ? b : 0;
      if (a == 0 || b == 0) { continue; }
      uint32 found = 0;
      bool searched = b > LONG * a;
      for (int64 k = lane; k < (searched ? a : b); k += 32) {
        int64 in_row = k, in_list = k;
        if (searched) {
          in_list = lower_bound(t.stream.columns, list, list + b, table[k]) - list;
          if (in_list == b || t.stream.columns[list + in_list] != table[k]) { continue; }
        } else {
          in_row = row.find(table, last - first, t.stream.columns[list + k]);
          if (in_row < 0) { continue; }
        }
        found++;
        entries.count(row, in_row);
#if !VERTICES
        atomicAdd(out.stream + list + in_list, 1u);
#endif
      }
      found = of_warp(found);
      if (lane == 0 && found) {
        out.edge(p, u, v, found);
        sums.triangles += found;
      }
    }
    __syncthreads();
    entries.collect(row, last - first);
    clear_entries(row, table, last - first);
  });
  sums.add_up(totals);
}
