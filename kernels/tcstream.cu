// tcstream: the shorter list searched in the longer, the top of whose search tree is in shared memory (TC-Stream,
// Huang et al., TPDS 2022, sections 4.2 and 4.3, doi:10.1109/TPDS.2021.3135329).
// Preludes: lrb.cuh
//
// The lists of an index edge (u, v) are T = table.row(u) and B = stream.row(v), none cut at v. A warp counts an
// edge: it loads the top TOP levels of the longer list's search tree, 2^TOP - 1 evenly spaced entries, and its
// lanes look up the entries of the shorter list: TOP steps there, the others in global memory. The tree stays
// as long as the following edges have the same longer list, as those of one row often do.
//
// SEARCH 0, the default, bisects every entry for itself. 1, kernel tcstream-recursive, is the recursion of section 4.2: a
// lane has a share of the shorter list, searches its middle entry first and then both halves, each within what is left
// of the longer list; a half without any of it is done, its entries decided without a read. 2, kernel tcstream-backward,
// is Algorithm 5: the distance from the list's end grows from 2 to 6, 14, 30 ... until it is beyond the entry, which is
// bisected between the last two. (As printed the algorithm calls itself with one argument more than it takes; this is
// what its title, "backward unbounded search", says.)
//
//   probes(u, v) = min(|T|, |B|)
//
// A graph in device memory, one block in all three roles, is counted by vertices (section 4, algorithm 1 and the
// contributions of section 1): the newest vertex and the offset in its list are recorded in one word, the position in
// the columns, from which each warp takes TAKE edges at a time. So a hub's edges go to many warps, and a warp meets
// those of a vertex one after another, with the same row. No edge list is made.
//
// Launch of other triples, edge lists of the vertical partition (section 4.3): the three passes of LRB make the edge
// list, all in one bin and about in the order of the index, because TC-Stream does not balance by length. Then one grid
// fills the GPU, whose warps stride over the edges, 32 at a time. The edge buffer is double: while a warp counts 32
// edges, the places of the next 32 edges' lists and the ids of the 32 after them are being loaded into its lanes'
// registers. (The paper's two buffers also hide the copy from host to device; here that happens between tasks, not in
// the kernel.)
//
//   TOP    levels in shared memory; 0: none
//   FEW    shorter lists of fewer entries are searched without them
//   SHORT  a shorter list of at most SHORT entries is also held in shared memory, until another follows (section 4.2
//          and figure 5); 0, the default: none, which is as fast on Kronecker graphs and 1.1 to 1.3 times as fast on
//          others, because a list would be copied for each edge with another list, to be read only once
//   TAKE   edges that a warp takes per turn, by vertices
//   SEARCH 0: bisection, 1: recursion, 2: backward; only the first has been timed
//
// One H200, ms of the launches, medians of 3, degree order, by vertices (by an edge list): Kronecker 20 (edge factor 16)
// 15.3 (20.4), Kronecker 22 93 (117), the torus of 300^3 12.3 (16.0), RA with 10^7 vertices 20.3 (26.8). Kronecker 22
// by TOP 0, 2, 4, 5, 6, 8: 121, 122, 103, 93, 89, 95; RM with 2^22 vertices 7.2, 8.2, 7.6, 7.5, 8.2, 10.4. Kronecker 20
// has 2.0 G lookups, 1.6 times those of `search` because it does not cut at v; the tree's top saves 5 of some 9 reads
// for each: about as fast. Edges of short lists leave lanes idle, so on graphs of low degree it waits for memory, and
// one very long list keeps one warp busy.

#ifndef TOP
#define TOP 5
#endif
#ifndef FEW
#define FEW 8
#endif
#ifndef SHORT
#define SHORT 0
#endif
#ifndef TAKE
#define TAKE 256
#endif
#ifndef SEARCH
#define SEARCH 0
#endif

constexpr uint32 NODES = 1u << TOP, SHORTS = SHORT > 0 ? SHORT : 1;
constexpr int HALVES = 32;  // right halves that wait: no more than the bits of a row's length

__device__ __forceinline__ int64 entries(const Task&, int64, int64 first, int64 last, int64) { return last - first; }

__device__ __forceinline__ int64 work_of(int64, int64) { return 1; }

// An edge's ids, the places of its lists, and its lists: the shorter one, and the longer one in which it is
// searched. Each is read or computed one step after the other, so that no step waits for the last.
struct Ids {
  uint32 u, v, a;
};

struct Places {
  int64 row, begin, end, a;
};

struct Lists {
  const int32 *few, *many;
  int64 few_size, many_size;
};

__device__ __forceinline__ Ids ids_of(const EdgeList& list, int64 e) {
  if (e >= list.size) { return {0, 0, 0}; }
  return {list.u(e), list.v(e), list.a(e)};
}

__device__ __forceinline__ Places places_of(const Task& t, const Ids& ids) {
  if (ids.a == 0) { return {0, 0, 0, 0}; }
  return {t.table.offsets[ids.u], t.stream.offsets[ids.v], t.stream.offsets[ids.v + 1], ids.a};
}

// The lists are empty if there is no edge.
__device__ __forceinline__ Lists lists_of(const Task& t, const Places& places) {
  const int32 *row = t.table.columns + places.row, *list = t.stream.columns + places.begin;
  int64 a = places.a, b = places.end - places.begin;
  return a <= b ? Lists{row, list, a, b} : Lists{list, row, b, a};
}

// The lists that another lane holds.
__device__ __forceinline__ Lists from_lane(const Lists& mine, uint32 lane) {
  return {reinterpret_cast<const int32*>(__shfl_sync(ALL, reinterpret_cast<uint64>(mine.few), lane)),
      reinterpret_cast<const int32*>(__shfl_sync(ALL, reinterpret_cast<uint64>(mine.many), lane)),
      __shfl_sync(ALL, mine.few_size, lane), __shfl_sync(ALL, mine.many_size, lane)};
}

// Node i, counted from 1, is the entry at i / 2^TOP of the list.
__device__ __forceinline__ void load_top(int32* nodes, const Lists& lists) {
  __syncwarp();
  for (uint32 i = threadIdx.x % 32; i < NODES; i += 32) { nodes[i] = lists.many[i * lists.many_size >> TOP]; }
  __syncwarp();
}

// A warp's shared memory: the top of a tree, and a short list; and which lists these are.
struct Held {
  int32 *nodes, *list;
  const int32 *many = nullptr, *few = nullptr;
};

__device__ __forceinline__ void load_short(int32* list, const Lists& lists) {
  __syncwarp();
  for (int64 i = threadIdx.x % 32; i < lists.few_size; i += 32) { list[i] = lists.few[i]; }
  __syncwarp();
}

// The part of the longer list that can hold x, [low, high): by the tree's top, if it is loaded.
__device__ __forceinline__ void narrow(
    const int32* nodes, bool cached, int32 x, int64 many_size, int64& low, int64& high) {
  if (!cached) { return; }
  uint32 node = 0;
  for (uint32 step = NODES / 2; step > 0; step >>= 1) { node += nodes[node + step] <= x ? step : 0; }
  low = max(low, int64(node * many_size >> TOP));
  high = min(high, int64((node + 1) * many_size >> TOP));
}

// Whether x is among the entries [low, high), searched from their end in steps that double (Algorithm 5).
__device__ __forceinline__ bool found_backward(const int32* many, int64 low, int64 high, int32 x) {
  int64 end = high, back = 2;
  while (back <= end - low && many[end - back] > x) {
    high = end - back;
    back = 2 * back + 2;
  }
  return contains(many, max(low, end - back), high, x);
}

// Matches of the entries [begin, stop) of the shorter list, middle first, then both halves (section 4.2). A right half
// waits with its part of the longer list until the left one is done.
__device__ __forceinline__ uint32 found_by_halves(
    const int32* few, int64 begin, int64 stop, const Lists& lists, const int32* nodes, bool cached) {
  int64 begins[HALVES], stops[HALVES], lows[HALVES], highs[HALVES], low = 0, high = lists.many_size;
  uint32 found = 0;
  for (int waiting = 0;;) {
    while (begin < stop && low < high) {
      int64 middle = begin + ((stop - begin) >> 1), from = low, to = high;
      int32 x = few[middle];
      narrow(nodes, cached, x, lists.many_size, from, to);
      int64 place = lower_bound(lists.many, from, to, x);
      bool hit = place < to && lists.many[place] == x;
      found += hit;
      begins[waiting] = middle + 1;
      stops[waiting] = stop;
      lows[waiting] = place + hit;
      highs[waiting] = high;
      waiting++;
      stop = middle;
      high = place;
    }
    if (waiting == 0) { return found; }
    waiting--;
    begin = begins[waiting];
    stop = stops[waiting];
    low = lows[waiting];
    high = highs[waiting];
  }
}

// Counts one edge by a warp; returns this lane's matches.
__device__ __forceinline__ uint32 count_edge(const Lists& lists, Held& held, uint64& probes) {
  uint32 found = 0;
  const int32 *nodes = held.nodes, *few = lists.few;
  bool cached = TOP > 0 && lists.few_size >= FEW;
  if (cached && held.many != lists.many) {
    load_top(held.nodes, lists);
    held.many = lists.many;
  }
  if (SHORT > 0 && lists.few_size <= SHORT) {
    if (held.few != few) { load_short(held.list, lists); }
    held.few = few;
    few = held.list;
  }
  if (SEARCH == 1) {
    int64 lane = threadIdx.x % 32, begin = lane * lists.few_size >> 5, stop = (lane + 1) * lists.few_size >> 5;
    probes += stop - begin;
    found = found_by_halves(few, begin, stop, lists, nodes, cached);
  } else {
    for (int64 i = threadIdx.x % 32; i < lists.few_size; i += 32) {
      int32 x = few[i];
      int64 low = 0, high = lists.many_size;
      narrow(nodes, cached, x, lists.many_size, low, high);
      found += SEARCH == 2 ? found_backward(lists.many, low, high, x) : contains(lists.many, low, high, x);
      probes++;
    }
  }
  return found;
}

extern "C" __global__ void __launch_bounds__(BLOCK) tcstream_edges(Task t, EdgeList list, Totals* totals) {
  __shared__ int32 trees[BLOCK / 32 * NODES], lists[BLOCK / 32 * SHORTS];
  Held held = {trees + threadIdx.x / 32 * NODES, lists + threadIdx.x / 32 * SHORTS};
  Sums sums;
  int64 stride = int64(gridDim.x) * BLOCK, first = int64(blockIdx.x) * BLOCK + threadIdx.x;
  Places next = places_of(t, ids_of(list, first));
  Ids ids = ids_of(list, first + stride);
  for (int64 e = first; e - threadIdx.x % 32 < list.size; e += stride) {
    Lists mine = lists_of(t, next);
    next = places_of(t, ids);
    ids = ids_of(list, e + 2 * stride);
    uint32 edges = __popc(__ballot_sync(ALL, mine.few_size > 0));
    for (uint32 lane = 0; lane < edges; lane++) {
      sums.triangles += count_edge(from_lane(mine, lane), held, sums.probes);
    }
  }
  sums.add_up(totals);
}

// The row in [first, last] that contains the edge at a place of the columns.
__device__ __forceinline__ int64 row_at(const int64* offsets, int64 first, int64 last, int64 place) {
  while (first < last) {
    int64 middle = first + ((last - first) >> 1);
    bool behind = offsets[middle + 1] <= place;
    first = behind ? middle + 1 : first;
    last = behind ? last : middle;
  }
  return first;
}

// Whether row u is in this split.
__device__ __forceinline__ bool in_split(const Task& t, int64 u) {
  int64 from = u - t.begin, place = from / t.step * GROUP + from % t.step - t.skip;
  return from >= 0 && from % t.step < GROUP && place >= 0 && place < t.rows;
}

// The lists of the edge at a place, and its wedges; empty lists where its row is in another split.
__device__ __forceinline__ Lists lists_at(const Task& t, int64 place, int64 u, uint64& wedges) {
  if (!in_split(t, u)) { return lists_of(t, {0, 0, 0, 0}); }
  int64 v = t.index.columns[place], row = t.table.offsets[u];
  Places places = {row, t.stream.offsets[v], t.stream.offsets[v + 1], t.table.offsets[u + 1] - row};
  wedges += places.end - places.begin;
  return lists_of(t, places);
}

// `rows` are those of the whole block; *next is the number of edges that are taken.
extern "C" __global__ void __launch_bounds__(BLOCK)
    tcstream_vertices(Task t, int64 rows, uint64* next, Totals* totals) {
  __shared__ int32 trees[BLOCK / 32 * NODES], lists[BLOCK / 32 * SHORTS];
  Held held = {trees + threadIdx.x / 32 * NODES, lists + threadIdx.x / 32 * SHORTS};
  Sums sums;
  uint32 lane = threadIdx.x % 32;
  int64 edges = t.index.offsets[rows];
  for (;;) {
    uint64 taken = lane == 0 ? atomicAdd(next, uint64(TAKE)) : 0;
    int64 begin = int64(__shfl_sync(ALL, taken, 0)), end = min(begin + TAKE, edges);
    if (begin >= edges) { break; }
    int64 first = row_at(t.index.offsets, 0, rows - 1, begin), last = row_at(t.index.offsets, first, rows - 1, end - 1);
    for (int64 place = begin + lane; place - lane < end; place += 32) {
      Lists mine = lists_of(t, {0, 0, 0, 0});
      if (place < end) { mine = lists_at(t, place, row_at(t.index.offsets, first, last, place), sums.wedges); }
      for (uint32 with = __ballot_sync(ALL, mine.few_size > 0); with; with &= with - 1) {
        sums.triangles += count_edge(from_lane(mine, __ffs(int(with)) - 1), held, sums.probes);
      }
    }
  }
  sums.add_up(totals);
}
