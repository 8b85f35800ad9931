// hub: near hubs as bitmaps in the second level cache, all other edges as 16-bit lists. The default kernel.
// bitmap: the same with the macro PLAIN, without lists: its scratch is the bitmaps and work items alone.
//
// For an index edge (u, v) let A be the entries of table.row(u) before v (all of them if the
// blocks are unordered) and B = stream.row(v). In `degree` order most edges point to hubs, the
// first rows, and entries crowd into few words. So, each edge by the first rule that fits:
//
// * A table row of at most SMALL entries: a thread per entry of A, which is looked up in hub v's bitmap
//   in global memory; or a thread per edge, which searches B for the entries of A, or merges both.
// * A near hub, v < NEAR: row u is compressed to its words with a bit set; a lane keeps one word
//   in a register and ANDs it with the bitmaps of all near hubs of the row: 2 to 3 entries at a time,
//   from bitmaps that fit in the second level cache. No cut at v is needed, because B ends there.
// * The shorter of A and B is streamed against a table of the longer. A counting sort brings all
//   lists against one table together, as (start, length); the table is a bitmap of 64K ids in shared
//   memory. Entries beyond it, which are few, pass a filter first, and are searched if they pass.
// * bitmap: v < hubs is treated like near hubs; else B is streamed against row u, without lists.
//
// * If no row of the whole task is longer than SHORT: records of the stream rows; a thread per row u or, where rows are
//   longer than FEW_PRINTS, a group of lanes.
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
//   7 predicted, 4 tails at a time, filter -     -     55    -       -      scale 26: 440
//     measured                           2.7  10.4  57    -       -      one card: 61.7 to 57.7, another: 62.6 to 58.7;
//       scale 26: 487 to 383, and 503 to 398
//     learnt: a table's filter passed too much, and what passes is bisected in the row, some ten reads one after the
//     other: scale 26 took 427 with 4 tails and a bit an entry, 383 with two bits of one word; filters of 8K, 12K, 20K
//     bits: 401, 387, 387
//
//   8, on an H100, where 7 takes       2.9  11.0  60.8    -       -      tables 28, near 12.1, lists 10.2, edges 8.6
//     predicted                        2.0   8.0  50      -       -      rows dealt evenly, no read waits for another
//     counted, before its last edit    1.9   8.9  50.8    3.7     -      tables 24.2, near 9.2, lists 8.4, edges 7.2
//     counted, in turns with 7         2.5   9.5  52.3    3.8     -      which took 2.9, 11.2 and 62.2 on that card;
//       the last edit takes out pairs with entries that are no hubs, which had slowed `bitmap` on other graphs
//     measured                         2.7   8.8  47.4    2.8      -      on the H200 again; 62.6 before at scale 24
//     learnt: 85 % of issue slots were busy with near hubs, 67 % with tables: what helped were fewer instructions. Near
//     hubs: ends found by a warp's bisection (-1.3), a short row's words listed from its entries (-0.9). Tables: two
//     lists at a time, eight ids a lane, lists beyond the bitmap apart (-2), fewer loads ahead (-1.5). Lists: a record
//     for the entries below BITMAP and beyond it together (-2); half the steps alone changed nothing, because 114 M
//     atomics and as many writes at random take what the L2 gives, 75 G sectors a second. Edges: lanes of short rows
//     waited for the longest merge. Scale 20: a warp that had 32 of the longest rows was the last, lists 0.40 to 0.16.
//     Tables now read 50 GB from DRAM in 24 ms, with one L2 hit in 9. Power laws of 2 M vertices: 0.82 to 0.98 of 7's
//     time, a clique of 4,000 among 2 M: 0.4
//
//   9 predicted, groups of lanes       -     -     -      -      -         RM 27, RA 26: a random sector an edge
//     counted, in turns with 8           -     -     -      -      -         RM 56.2 to 37.6, the first time 68.5 to 41.8;
//       RM of 2^24 vertices 7.1 to 4.6; RA 32.1 to 31.9, the first time 34.9 to 35.7; RA of 10^7 vertices 3.14 to 3.06
//     learnt: a record is tested by as many lanes as it has words. A lane finds the word and the bits of its entry of A
//     once for 8 edges, and gets the word by a shuffle: RM takes some 20 G instructions of warps, 29 of 32 lanes on in
//     place of 14. The loads alone then take 25.0 ms (RM) and 25.9 (RA), 38.6 G sectors a second, all that the card
//     gives; tests add 5 and 2, and lookups of what the marks pass some 8 and 4: a test in 130 and in 280, on graphs of
//     10^6 vertices. Warps that fit decide over the rest: RM takes 43.4 with 74 registers, 37.6 with 64 (four blocks),
//     46 to 51 with 48 or 40, which spill. Unless the next edges are read ahead, the loads alone take 30. Records of RM
//     take 4.1 GB in place of 8.3.
//     a row's length in the highest bits of its words, so that all eight hold marks, and fewer registers, in turns with
//       8 and the first form, the first time: RM 71.2, 43.5, 39.8; RA 35.7, 38.3, 34.1; uniform 2.62, 2.68, 2.66
//
//  10 predicted, fewer instructions    1.6   7.4    42      -      -       tables -20 %, near hubs by half
//     counted, in turns with 9           -     -     -      -      -       tables 0.36, 2.92, 22.2 to 0.30, 2.53, 21.7
//     measured                           1.9   8.5  46.5    2.7     -      medians of 7, in turns with 7: 0.73 to 0.80 of it
//     learnt: a table has 27 lists on average at scale 22, and 86 % of them fewer than 64, so that one of two warps had
//     most: shared evenly -7 %. A byte of the bitmap, repeated in a word, is shifted by an id as it stands: 60
//     instructions for eight ids in place of 77, alone -4 %; both -13 %. At scale 24 neither helps: 9 of 16 cycles of a
//     warp wait for memory, at half the warps that fit
//     near hubs with 6.5 instructions a word in place of 15 (bitmaps' places read from shared memory, four at a time)
//     took 8.7 in place of 8.4: the L2 gives 72 % of its peak. 10.5, where words beyond a bitmap's end are read as well
//
//  11 predicted                         -     -    38      -      -       tables 17: reads of lists wait for no other;
//     edges 6: a thread searches where it merged, and the last blocks of a grid do not run alone
//     counted, in turns with 10           -     -     -      -      -       scale 24: tables 22.0 to 18.3, edges 7.7 to
//       5.9; scale 22: 2.57 to 2.23 and 1.85 to 1.43; scale 20: edges 0.53 to 0.43; scale 26: tables 226 to 168
//     measured                           1.9   7.8  41.0    2.9     -       in turns with 10, which took 2.4, 8.9, 46.6
//       and 2.9 on that card; scale 26: 281
//     learnt: tables hardly wait for DRAM: with all lists in one MB they took 18.7 of 21.9, without lists 2.3. Half
//     of the lists have ids beyond the bitmap, one id in 16 of all, and these took 5.6: each group of lanes waited
//     for the longest list of four, and read an id a lane at a time. Lists are now cut in chunks of 64 ids, and of 16
//     beyond the bitmap (chunks of 128: 0.6 more), so that groups have equal work; a warp has up to 64 of them (32:
//     0.7 more; 96: 0.2 less). The next item asked for ahead: 0.3 less, at scale 22 0.1. Of these tables, ids beyond
//     the bitmap take 3.9, and DRAM 1.9. Edges: a multiprocessor has room for five of its eight blocks, so the other
//     three ran alone; with eight times as many blocks 1.1 less. Merges in short rows took 4.3 of 7.7, searches of B
//     for A's entries take 3.2. But short lists are merged sooner: `bitmap`, which is for small graphs, took 1.1 to
//     1.2 times as long with searches, so it merges as before. On 27 graphs of `bench choose`, in turns with version 10,
//     `hub` takes 0.79 to 1.04 of its time, `bitmap` 0.91 to 1.07 (the worst ones take a quarter of a millisecond)
//
//  12 predicted, no wait before lists -     -    40      -       -       the lists' memory is allocated while near hubs
//     run: 1.0 less, at scale 20 0.25; 96 chunks of a warp's lists: 0.3
//     counted, with 64 and 96 chunks     -     -     -      -       -       scale 20: 1.62, 1.63; 22: 7.12, 7.05; 24: 40.1,
//       39.7; 26: 281.8, 278.5; with 128 chunks 1.63, 7.15, 40.1, 282.4
//     measured                           1.7   7.3  40.3    2.9     -       11 the same day: 2.4, 8.1, 41.4 and 2.9;
//       scale 26: 281 and 285
//     learnt: memory of another size than what was freed last takes 0.6 ms a GB: 0.7 of K24's lists, 3 of RM's records,
//     before which there is nothing else to do
//
// Tried in version 11 and not kept; tables, scale 24. What passes a filter, 1.3 M ids, looked up by 32 lanes
// together, of several tables if need be: 0.6 to 1.5 more, though without lookups they take 0.6 to 1.2 less. Three
// chunks ahead 0.2 to 1.5 more, one 2.6; 48 registers 1.1 more; four lanes a chunk 1.3. Lists, 6.9: 32 registers
// 6.7; more blocks 6.8, but tables 0.4 more; without the search for the entries below BITMAP 6.3; columns read to
// leave the L2 first 6.9; a pass for each of 2, 3 and 5 ranges of v, so that fewer tables' records are written at a
// time (predicted 5) 6.9, 7.1, 7.6, and at scale 26 44.0, 44.1, 45.9 in place of 45.3. Edges: two or four entries of
// A searched together 0.2 to 0.5 more, at scale 20 0.06 less; each from where the search before it ended: nothing.
//
// Tried in version 10 and not kept; tables, scale 24, beside 21.7: 4, 3 and 1 warps a table 25.6 to 27.6, 25.5, 30.6;
// the next item and its row's place asked for ahead 24.0; 64 and 48 registers 23.1, 26.5; 8 lanes a list 23.1 (scale
// 22 2.48 beside 2.53); four and two lists ahead 22.8, 22.9; one and three tails ahead 23.6, 22.9. hub_edges with 64,
// 48 and 40 registers: 7.7, 7.7, 9.0.
//
// Tried in version 9 and not kept; times of RM beside 40, without edges read ahead. Records of 64 bytes for 16 lanes:
// 55.8; of 16 for 4: 54. Three marks an entry: 0.6 more. Reads that leave the L2 first: 0.3 to 0.5 less. With edges
// read ahead: four of them a step 44.6, beside 42.1; rows from their offsets again, not by shuffles, in three blocks
// 42.1, in nine of 128 threads 40.1. Groups for fingerprints, too: uniform 2.44 beside 2.25, rows of 2 1.08 beside 0.91.
// Records of 4 bytes, with the length and two of 25 bits an entry, of the first 10 M or 5 M ranks, so that they stay in
// the L2 (predicted RA 25): RA 38.6 and 38.2 beside 33.8, RM 105 and 87 beside 40, uniform 2.98 and 2.56 beside 3.00.
// Rows of 15 entries fill 25 bits, reads of two kinds diverge, and 40 MB do not stay.
// Not built: RA's tests as messages to ranges of rows whose records stay in the L2. An edge with the entries of A, some
// 26 bytes, is written and read once, 12 ms at the rate of a copy and some 20 as keys are dealt; 10^9 reads from the L2
// take 9 more, beside 25.9 of random reads now.
// RA's first count depends on the pool, which holds the records' 3.2 GB or grows. Its order is not the cause: 108 of
// RA's 10^9 edges are duplicates, so that ranks by rows are those by edges but for some 200 vertices.
//
// Tried in version 8 and not kept. 8 lanes a list: scale 22 0.2 less, 24 1.2 more. Lists of up to 64, 256 and more ids
// by 8, 16 and 32 lanes: tables 27.9, because they take 64 registers and more. The longer lists of 32 first: 0.1 less.
// Near hubs' lengths in shared memory: edges as before. 20K near hubs: 0.5 less at scale 24, 0.1 at 22. A warp a row
// for near hubs: 0.2 less at most; their bitmaps in a square: 0.3 less, for 16 MB more. SMALL 24: lists 9.0, edges 12.3.
// Bitmaps of 16K hubs alone: edges 8.5. Items of 128 or 256 edges, more blocks of hub_edges with fewer registers, 4 or
// 16 lanes for lists beyond the bitmap: nothing.
// In the times of version 8, but taken out since: the next item asked for ahead (near hubs 0.35 less, `bitmap` 7 % more
// on rows of 400), and pairs of edges to others than hubs, searched in B (edges 7.2 in place of 8.6, `bitmap` 20 % more
// on a power law).
//
// Tried and not kept before. The dense core: triangles among hubs as a masked product of their matrix of bits (mma
// m16n8k256 and.popc), a tile's bits weighed against its edges' lists, tiles without edges left out; exact. It ran at
// 2.2 (tiles of 256 x 128) to 2.7 (128 x 128, two blocks) of the instruction's 5.1 P bits a second, all 64K hubs in 17
// ms at scale 22, 19 at 24. But 59 % of scale 24's tests, those among 64K hubs, are the cheapest: without all of them it
// takes 8 of 60 ms less, scale 20 0.4 of 2.8, scale 22 2.1 of 10.6. The best choice of tiles gave 1.6 ms at scale 24,
// 0.2 at 22, 8 of 466 at 26, none at 20, for 350 lines.
// Offsets and counters of lists in 32 bits (predicted 6 ms less at scale 24): 0.7 less there, 4 of 470 at 26. With each
// row's number of entries below BITMAP beside its offset, so that an edge reads none of its row: 7 at 26. One atomic
// for all lists of a row among 32 edges: 9. So neither random reads of offsets nor atomics bound edges and lists.
// RM with three marks an entry in one word of a record, looked up in shared memory (predicted 27 ms): records of 32
// bytes 58 to 61 beside 56, of 64 bytes 52 to 64; RA 38 beside 33. At 32 bytes a hundredth of the tests passes, and
// each then reads some 7 times at random; 64 bytes are two sectors, 52 ms at 38 G a second. The first count of a graph
// with records of 64 bytes takes 14 ms more: 8.6 GB are allocated in 10, and written in 5.5.
//
// RA, RM: the TRUST paper's graphs of 10^9 edges.
// Bounds of version 11 before its last steps (tables 20.6; Nsight Compute): issue slots 67 %, L2 69 %, shared memory
// 68 %, DRAM 49 %, one L2 hit in 9. The hottest 50 MB of rows are 29 % of what is streamed.
// Bounds of version 9, scale 24 (Nsight Compute): edges 7.6 ms: half the warps that fit, waiting; L2 52 % busy. Near
// hubs 8.4: L2 72 %, issue slots 82 %. Lists 6.8: random sectors, L2 60 %; a warp waits for 74 of 80 cycles. Tables
// 22.3: 48 GB from DRAM, 45 % of its rate, one L2 hit in 6; L2 64 %, shared memory 57 %, shifts and logic 66 %, issue
// slots 56 %; 56 % of the warps (registers and 12 KB of shared memory allow no more).
// Bounds of version 9 (Nsight Compute, rows from offsets, three blocks): RM: 80 GB from DRAM, the L2 57 % busy, issue
// slots 53 %; RA: 72 GB, 63 %, 52 %. DRAM reads 64 bytes for each sector of 32.
// Bounds of version 5 (Nsight Compute): RA: 72 GB come from DRAM, 64 bytes for each record of 32, the L2 is 71 % busy. RM:
// as many bytes; issue slots 59 % busy with 14 of 32 lanes on, from a third of the warps that fit. Torus of 300^3: records
// 0.25 ms at 81 % of DRAM's rate, counting 0.51 at 75 % of the L2's; 0.4 more are the host's, between launches.
// Bounds of version 7 on an H100, scale 24: tables 67 % of issue slots, a third of the cycles bank conflicts; near hubs
// 85 %; edges 58 registers, so half the warps; lists 0.9 instructions a cycle, all waiting.
// Bounds of version 3: tables: 2.5-way bank conflicts and 2.4 instructions a cycle. Uniform: L2 79 % busy with random
// sectors, torus: instructions.
// Tried without gain: 1 or 4 warps a table, 2, 3 or 8 lists ahead, SMALL 8 or 32, 32K or 64K near hubs; 24K near hubs
// (1 % at scales 24 and 26); 8 tails ahead (slower).

// Preludes: hub.cuh

// Deals the pairs of an edge (u, v) of a short table row to a hub and of an entry of A to the lanes of a warp: a thread
// for each edge would wait for the longest A. The hub's bitmap has the entry or not.
__device__ __forceinline__ void deal_pairs(const Task& t, const uint32* bitmaps, const TaskRow& row, Sums& sums) {
  static_assert(SMALL <= 1024, "the root of a pair's number is exact");
  bool triangle = t.same && t.shift == 0;  // then the e-th edge has the first e entries
  TaskRow pairs = {row.u, 0, 0, row.first, row.size, 0};
  if (row.size <= SMALL) {
    int64 hubs = lower_bound(t.index.columns, row.begin, row.begin + row.edges, t.hubs) - row.begin;
    pairs.edges = triangle ? hubs * (hubs - 1) / 2 : hubs * row.size;
  }
  deal_rows(pairs, [&](int64 u, int64 pair, int64 first, int64 last, uint32) {
    int64 p, i;
    if (triangle) {
      int32 e = int32((sqrtf(8.0f * float(pair) + 1) + 1) * 0.5f);
      p = first + e;
      i = pair - e * (e - 1) / 2;
    } else {
      p = t.index.offsets[u] + pair / (last - first);
      i = pair % (last - first);
    }
    int64 v = t.index.columns[p];
    uint32 w = t.table.columns[first + i];
    if (w >= v + t.shift) { return; }
    sums.triangles += __ldg(bitmaps + bitmap_of(uint32(v)) + (w >> 5)) >> (w & 31) & 1;
  });
}

// Processes one edge (u, v) of a short table row [first, last), by one thread; pairs find the triangles of hubs.
__device__ __forceinline__ void short_edge(const Task& t, int64 p, int64 first, int64 last, Sums& sums) {
  int64 v = t.index.columns[p], begin = t.stream.offsets[v], b = t.stream.offsets[v + 1] - begin;
  sums.wedges += b;
  if (first == last || b == 0) { return; }
  int64 a = before(t, p, first, last, v);
  sums.probes += a;
  if (a == 0 || v < t.hubs) { return; }
  const int32 *few = t.table.columns + first, *many = t.stream.columns + begin;
  sums.triangles += b <= MERGED ? merged(few, a, many, b) : searched(few, a, many, b);
}

struct NoVisitor {
  __device__ void operator()(int64, int64, int64, int64, int64) const {}
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    hub_short(Task t, const uint4* records, uint32 narrow, Totals* totals) {
  count_short(t, records, narrow, totals, NoVisitor());
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    hub_group(Task t, const uint32* records, Totals* totals) {
  __shared__ Suspects suspects;
  count_by_groups(t, records, suspects, totals, NoVisitor());
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_edges(Task t, const uint32* bitmaps, uint2* items,
    uint32* items_end, uint64* lists, uint64* all_lists, uint32 plain, Totals* totals) {
  Sums sums;
  all_edges(t, items, items_end, ITEM_EDGES, lists, all_lists, plain, sums,
      [&](const TaskRow& row) { deal_pairs(t, bitmaps, row, sums); },
      [&](int64, int64 p, int64 first, int64 last) { short_edge(t, p, first, last, sums); });
  sums.add_up(totals);
}

extern "C" __global__ void __launch_bounds__(BLOCK) hub_lists(Task t, uint64* ends, uint64* records) {
  put_lists(t, ends, records, [](int64, const List&, int64) {});
}

// Most blocks that a multiprocessor holds, of any architecture: those of compute capability 7.5, 8.6 and 8.7 hold 16.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || (__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 890))
constexpr uint32 BLOCKS_HELD = 16;
#else
constexpr uint32 BLOCKS_HELD = 24;
#endif

// A table row in shared memory, against which lists are streamed.
struct Streamed {
  static constexpr uint32 WORDS = BITMAP_WORDS, FILTERS = FILTER_WORDS, THREADS = 32 * TABLE_WARPS;
  static constexpr uint32 MIRROR = 7;  // the bits of a byte are in descending order
  static constexpr uint32 BLOCKS = TABLE_BLOCKS < BLOCKS_HELD ? TABLE_BLOCKS : BLOCKS_HELD;
  alignas(8) uint32 bits[BITMAP_WORDS];
  uint32 filter[FILTER_WORDS];
  uint2 chunks[TABLE_WARPS][CHUNKS];  // of the lists that each warp streams
  uint2 item;
};

// A chunk of a list, as two words: its first id is entry `place` of an array, and `size` ids less the first `skip` are
// the list's.
struct ListChunk {
  uint2 words;

  __device__ __forceinline__ static ListChunk of(uint64 place, uint32 skip, uint32 size) {
    return {make_uint2(uint32(place >> 3), uint32(place & 7) << 24 | skip << 16 | size)};
  }
  __device__ __forceinline__ uint32 eights() const { return words.x; }
  __device__ __forceinline__ uint64 place() const { return uint64(words.x) * 8 + (words.y >> 24); }
  __device__ __forceinline__ uint32 skip() const { return words.y >> 16 & 7; }
  __device__ __forceinline__ uint32 size() const { return words.y & 0xffff; }
};

// Cuts the warp's lists, one per lane, into chunks of at most SIZE ids, so that no group of lanes waits for another's
// longer list. `visit(count)` is called for some of the chunks at a time.
template <uint32 SIZE, class Visit>
__device__ __forceinline__ void each_chunk(
    uint2* chunks, uint64 place, uint32 skip, uint32 size, const Visit& visit) {
  constexpr uint32 MOST_CHUNKS = CHUNKS;
  uint32 own = (size + SIZE - 1) / SIZE, end = warp_ends(own), all = __shfl_sync(ALL, end, 31), begin = end - own;
  for (uint32 base = 0; base < all; base += MOST_CHUNKS) {
    for (uint32 k = max(base, begin); k < min(base + MOST_CHUNKS, end); k++) {
      uint32 before = (k - begin) * SIZE;
      chunks[k - base] = ListChunk::of(place + before, before ? 0 : skip, min(size - before, SIZE)).words;
    }
    __syncwarp();
    visit(min(all - base, MOST_CHUNKS));
    __syncwarp();
  }
}

// Shifts the bit of an id, which is the upper half of `id`, into `found`; `shift` ends with the id's lowest bits. A byte
// is repeated so that its three lowest bits suffice.
__device__ __forceinline__ uint32 shift_in(const uint32* bits, uint32 id, uint32 shift, uint32 found) {
  uint32 byte = reinterpret_cast<const unsigned char*>(bits)[id >> 19];
  return __funnelshift_l(byte * 0x01010101u << (shift & 31), found, 1);
}

__device__ __forceinline__ uint32 shift_in_two(const uint32* bits, uint32 ids, uint32 found) {
  uint32 low = __byte_perm(ids, 0, 0x1044);  // ids << 16; of two shifts the compiler would make three instructions
  return shift_in(bits, ids, ids >> 16, shift_in(bits, low, ids, found));
}

// Which of eight 16-bit ids have their bit set, as a mask with the first id highest.
__device__ __forceinline__ uint32 test_eight(const uint32* bits, uint4 ids) {
  uint32 found = shift_in_two(bits, ids.y, shift_in_two(bits, ids.x, 0));
  return shift_in_two(bits, ids.w, shift_in_two(bits, ids.z, found));
}

// Counts the ids of some chunks below BITMAP that are in the row; LANES lanes read a chunk, eight ids each.
__device__ __forceinline__ uint32 stream_fronts(
    const Streamed& row, const uint2* chunks, uint32 count, const uint4* narrow) {
  constexpr uint32 TOGETHER = 32 / LANES;
  uint32 lane = threadIdx.x % LANES, group = threadIdx.x % 32 / LANES, found = 0;
  for (uint32 j = 0; j < count; j += TOGETHER * LISTS_AHEAD) {
    int32 left[LISTS_AHEAD];
    uint32 valid[LISTS_AHEAD];
    uint4 ids[LISTS_AHEAD];
#pragma unroll
    for (uint32 i = 0; i < LISTS_AHEAD; i++) {
      uint32 k = j + i * TOGETHER + group;
      ListChunk chunk = {k < count ? chunks[k] : make_uint2(0, 0)};
      left[i] = int32(chunk.size() - 8 * lane);
      valid[i] = 255u >> (lane ? 0 : chunk.skip());
      if (left[i] > 0) { ids[i] = __ldg(narrow + chunk.eights() + lane); }
    }
#pragma unroll
    for (uint32 i = 0; i < LISTS_AHEAD; i++) {
      if (left[i] <= 0) { continue; }
      if (left[i] < 8) { valid[i] &= ~(255u >> left[i]); }
      found += __popc(test_eight(row.bits, ids[i]) & valid[i]);
    }
  }
  return found;
}

// The same for ids beyond it, which pass the filter first; TAIL_LANES lanes read a chunk, TAIL_IDS ids each.
__device__ __forceinline__ uint32 stream_tails(const Streamed& row, const uint2* chunks, uint32 count,
    const int32* columns, const int32* table, int64 size) {
  constexpr uint32 TOGETHER = 32 / TAIL_LANES;
  uint32 lane = threadIdx.x % TAIL_LANES, group = threadIdx.x % 32 / TAIL_LANES, found = 0;
  for (uint32 j = 0; j < count; j += TOGETHER * TAILS_AHEAD) {
    int32 left[TAILS_AHEAD];
    uint32 w[TAILS_AHEAD][TAIL_IDS];
#pragma unroll
    for (uint32 i = 0; i < TAILS_AHEAD; i++) {
      uint32 k = j + i * TOGETHER + group;
      ListChunk chunk = {k < count ? chunks[k] : make_uint2(0, 0)};
      left[i] = int32(chunk.size() - lane);
      const int32* place = columns + chunk.place() + lane;
#pragma unroll
      for (uint32 n = 0; n < TAIL_IDS; n++) {
        w[i][n] = left[i] > int32(n * TAIL_LANES) ? place[n * TAIL_LANES] : NO_ENTRY;
      }
    }
#pragma unroll
    for (uint32 i = 0; i < TAILS_AHEAD; i++) {
#pragma unroll
      for (uint32 n = 0; n < TAIL_IDS; n++) {
        if (w[i][n] != NO_ENTRY && FilterBits(w[i][n]).in(row.filter)) { found += contains(table, 0, size, w[i][n]); }
      }
    }
  }
  return found;
}

// Streams the warp's lists, one record per lane, 0 for none. `narrow` holds the low halves of `columns`, eight to a
// word.
__device__ __forceinline__ uint32 stream_lists(
    Streamed& row, ListRecord mine, const uint4* narrow, const int32* columns, const int32* table, int64 size) {
  uint2* chunks = row.chunks[threadIdx.x / 32];
  uint64 start = uint64(mine.fours()) * 4;
  uint32 skip = uint32(start & 4) + mine.skip(), front = mine.front(), found = 0;
  each_chunk<8 * LANES>(chunks, start & ~uint64(7), skip, front ? skip + front : 0,
      [&](uint32 count) { found += stream_fronts(row, chunks, count, narrow); });
  each_chunk<TAIL_IDS * TAIL_LANES>(chunks, start + mine.skip() + front, 0, mine.tail(),
      [&](uint32 count) { found += stream_tails(row, chunks, count, columns, table, size); });
  return found;
}

// 5. A block takes one work item per step: a table, and up to ITEM_LISTS lists streamed against it. What a thread has
// to know of an item is on its way while the block works on the one before.
extern "C" __global__ void __launch_bounds__(Streamed::THREADS, Streamed::BLOCKS)
    hub_tables(Task t, const uint4* table_narrow, const uint4* stream_narrow, const uint64* begins,
        const uint64* records, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ Streamed row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, all_items = *items_end, number = 0;
  const uint2 no_item = make_uint2(0, NO_ENTRY);
  uint2 ahead = no_item;
  clear_all(row);
  if (threadIdx.x == 0) {
    number = atomicAdd(next, 1u);
    if (number < all_items) { ahead = items[number]; }
    number = atomicAdd(next, 1u);
  }
  uint64 triangles = 0;
  for (;;) {
    if (threadIdx.x == 0) { row.item = ahead; }
    __syncthreads();
    uint2 item = row.item;
    if (item.y == NO_ENTRY) { break; }
    if (threadIdx.x == 0) {
      ahead = number < all_items ? items[number] : no_item;
      number = atomicAdd(next, 1u);
    }
    bool of_table = t.tables && item.x >= t.tables;
    const Block& block = of_table ? t.table : t.stream;
    int64 x = of_table ? item.x - t.tables : item.x, size = block.length(x);
    const int32* table = block.columns + block.offsets[x];
    const int32* columns = of_table ? t.stream.columns : t.table.columns;
    const uint4* narrow = of_table ? stream_narrow : table_narrow;
    uint64 begin = begins[item.x] + uint64(item.y) * ITEM_LISTS, end = min(begin + ITEM_LISTS, begins[item.x + 1]);
    uint32 lists = uint32(end - begin), rounds = (lists + Streamed::THREADS - 1) / Streamed::THREADS;
    uint32 share = (lists + TABLE_WARPS * rounds - 1) / (TABLE_WARPS * rounds);  // of a warp: most tables have few lists
    auto record_from = [&](uint64 k) { return ListRecord{lane < share && k + lane < end ? records[k + lane] : 0}; };
    uint64 k = begin + share * warp;
    ListRecord mine = record_from(k);
    set_entries(row, table, size);
    __syncthreads();
    while (k < end) {
      triangles += stream_lists(row, mine, narrow, columns, table, size);
      k += share * TABLE_WARPS;
      mine = record_from(k);
    }
    __syncthreads();
    clear_entries(row, table, size);
  }
  add_to(&totals->triangles, triangles);
}

// Tests the row's words against the bitmaps of the hubs that the lanes hold, ascending by lane; -1 for none.
template <class Row> __device__ __forceinline__ uint32 meet_hubs(const Row& row, const uint32* bitmaps, int32 hub) {
  uint32 lane = threadIdx.x % 32, used = row.used, found = 0, hubs = __popc(__ballot_sync(ALL, hub >= 0));
  uint32 bitmap = bitmap_of(uint32(max(hub, 0)));
  for (uint32 k = 0; k < used; k += 32) {
    uint32 word = k + lane < used ? row.words[k + lane] : Row::WORDS;
    uint32 bits = k + lane < used ? row.bits[word] : 0;
    int32 lowest = 32 * row.words[k], first = int32(32 * word);
    uint32 j = __popc(__ballot_sync(ALL, hub >= 0 && hub < lowest));
    if (j == hubs) { break; }
    const uint32* column = bitmaps + word;
    for (j &= ~7u; j < hubs; j += 8) {
      uint32 seen[8];
#pragma unroll
      for (uint32 i = 0; i < 8; i++) {
        int32 v = __shfl_sync(ALL, hub, j + i);
        uint32 place = __shfl_sync(ALL, bitmap, j + i);
        seen[i] = first <= v ? __ldg(column + place) : 0;
      }
#pragma unroll
      for (uint32 i = 0; i < 8; i++) { found += __popc(seen[i] & bits); }
    }
  }
  return found;
}

// Streams B, [begin, begin + b), against the row, by a warp.
__device__ __forceinline__ uint32 stream_list(
    const FullRow& row, const Task& t, int64 begin, int64 b, int64 first, int64 last) {
  uint32 lane = threadIdx.x % 32, found = 0;
#pragma unroll 2
  for (int64 q = lane; q < b; q += 32) {
    uint32 w = t.stream.columns[begin + q];
    if (w < BITMAP) {
      found += row.bits[w >> 5] >> (w & 31) & 1;
    } else {
      if (FilterBits(w).in(row.filter)) { found += contains(t.table.columns, first, last, w); }
    }
  }
  return found;
}

// Lists the words of a short row, from its entries; each warp passes over them all.
template <class Row> __device__ __forceinline__ void list_few(Row& row, const int32* columns, uint32 size) {
  uint32 lane = threadIdx.x % 32, used = 0;
  for (uint32 i = lane; i - lane < size; i += 32) {
    uint32 word = i < size ? uint32(columns[i]) >> 5 : 0;
    bool leads = i < size && (i == 0 || uint32(columns[i - 1]) >> 5 != word);
    uint32 votes = __ballot_sync(ALL, leads);
    if (leads && i / 32 % Row::WARPS == threadIdx.x / 32) {
      row.words[used + __popc(votes & ((1u << lane) - 1))] = (unsigned short)(word);
    }
    used += __popc(votes);
  }
  if (threadIdx.x == 0) { row.used = used; }
  __syncthreads();
}

// 6. Long table rows and near hubs: a block takes one work item per step, and each of its warps every
// NEAR_WARPSth edge.
extern "C" __global__ void __launch_bounds__(NearRow::THREADS)
    hub_near(Task t, const uint32* bitmaps, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ NearRow row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = uint32((t.near + 31) >> 5);
  uint64 triangles = 0;
  each_item(row, t, items, items_end, next, [&](int64, int64 first, int64 last, int64 begin, int64 end) {
    const int32* columns = t.table.columns + first;
    int64 size = lower_bound_of_warp(columns, 0, last - first, t.near);  // no near hub's row has an entry beyond
    end = t.same ? min(end, first + size) : lower_bound_of_warp(t.index.columns, begin, end, t.near);
    each_entry<NearRow>(columns, size, [&](uint32 w) { atomicOr(row.bits + (w >> 5), 1u << (w & 31)); });
    if (size > FEW_ENTRIES) {
      __syncthreads();
      list_words(row, words);
    } else {
      list_few(row, columns, uint32(size));
    }
    for (int64 p = begin + warp; p < end; p += NearRow::THREADS) {
      int64 place = p + lane * NearRow::WARPS;
      triangles += meet_hubs(row, bitmaps, place < end ? t.index.columns[place] : -1);
    }
    __syncthreads();
    for (uint32 i = threadIdx.x; i < row.used; i += NearRow::THREADS) { row.bits[row.words[i]] = 0; }
  });
  add_to(&totals->triangles, triangles);
}

// Tests the warp's 32 edges (u, v), one per lane.
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
  uint32 found = meet_hubs(row, bitmaps, hub ? int32(v) : -1);
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

// 7. PLAIN: long table rows, with all hubs and all other edges.
extern "C" __global__ void __launch_bounds__(FullRow::THREADS, 32 / PLAIN_WARPS) hub_plain(
    Task t, const uint32* bitmaps, const uint2* items, const uint32* items_end, uint32* next, Totals* totals) {
  __shared__ FullRow row;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = uint32((t.near + 31) >> 5);
  Sums sums;
  each_item(row, t, items, items_end, next, [&](int64, int64 first, int64 last, int64 begin, int64 end) {
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
