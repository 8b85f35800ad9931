// tcstream: the shorter list searched in the longer, whose search tree has its top in shared memory (TC-Stream,
// Huang et al., TPDS 2022, sections 4.2 and 4.3, doi:10.1109/TPDS.2021.3135329).
// Preludes: lrb.cuh
//
// Of an index edge (u, v) the lists are T = table.row(u) and B = stream.row(v), none cut at v. A warp counts an
// edge: it loads the top TOP levels of the longer list's search tree, 2^TOP - 1 entries evenly spaced, and its
// lanes look the entries of the shorter list up: TOP steps there, the others in global memory. The tree stays
// as long as edges that follow have the same longer list, as those of one row often do.
//
//   probes(u, v) = min(|T|, |B|)
//
// Launch: the three passes of LRB make the edge list, all in one bin, in about the order of the index, for
// TC-Stream balances nothing by length; then one grid that fills the GPU, whose warps stride over the edges, 32
// at a time. The edge buffer is double: while a warp counts 32 edges, the places of the next 32 edges' lists
// and the ids of the 32 after them are on their way, each lane's in its registers. (The paper's two buffers
// also hide the copy from host to device: that is between tasks, and not the kernel's.)
//
//   TOP  levels in shared memory
//   FEW  shorter lists of fewer entries are searched without them
//
// One H200, ms of the launches, medians of 5, degree order: Kronecker 20 (edge factor 16) 19.7, Kronecker 22 116,
// the torus of 300^3 13.9, RA with 10^7 vertices 25.4. Kronecker 20 has 2.0 G lookups, 1.6 times those of `search`
// for want of a cut at v, of which the tree's top saves 5 of some 9 reads: about as fast. Edges of short lists
// leave lanes idle, so on graphs of low degree it waits for memory, and one very long list keeps one warp busy.

#ifndef TOP
#define TOP 5
#endif
#ifndef FEW
#define FEW 8
#endif

constexpr uint32 NODES = 1u << TOP;

__device__ __forceinline__ int64 entries(const Task&, int64, int64 first, int64 last, int64) { return last - first; }

__device__ __forceinline__ int64 work_of(int64, int64) { return 1; }

// An edge's ids, the places of its lists, and its lists: the shorter one, and the longer one that it is
// searched in. Each is read or worked out one step after the other, so that no step waits for the last.
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

// Empty ones if the edge is none.
__device__ __forceinline__ Lists lists_of(const Task& t, const Places& places) {
  const int32 *row = t.table.columns + places.row, *list = t.stream.columns + places.begin;
  int64 a = places.a, b = places.end - places.begin;
  return a <= b ? Lists{row, list, a, b} : Lists{list, row, b, a};
}

// What another lane holds.
__device__ __forceinline__ Lists from_lane(const Lists& mine, uint32 lane) {
  return {reinterpret_cast<const int32*>(__shfl_sync(ALL, reinterpret_cast<uint64>(mine.few), lane)),
      reinterpret_cast<const int32*>(__shfl_sync(ALL, reinterpret_cast<uint64>(mine.many), lane)),
      __shfl_sync(ALL, mine.few_size, lane), __shfl_sync(ALL, mine.many_size, lane)};
}

// Node i, from 1 on, is the entry at i / 2^TOP of the list.
__device__ __forceinline__ void load_top(int32* nodes, const Lists& lists) {
  __syncwarp();
  for (uint32 i = threadIdx.x % 32; i < NODES; i += 32) { nodes[i] = lists.many[i * lists.many_size >> TOP]; }
  __syncwarp();
}

// One edge, by a warp; this lane's matches. The tree in `nodes`, if any, is that of the list `loaded`.
__device__ __forceinline__ uint32 count_edge(const Lists& lists, int32* nodes, const int32*& loaded, uint64& probes) {
  uint32 found = 0;
  bool cached = TOP > 0 && lists.few_size >= FEW;
  if (cached && loaded != lists.many) {
    load_top(nodes, lists);
    loaded = lists.many;
  }
  for (int64 i = threadIdx.x % 32; i < lists.few_size; i += 32) {
    int32 x = lists.few[i];
    int64 low = 0, high = lists.many_size;
    if (cached) {
      uint32 node = 0;
      for (uint32 step = NODES / 2; step > 0; step >>= 1) { node += nodes[node + step] <= x ? step : 0; }
      low = node * lists.many_size >> TOP;
      high = (node + 1) * lists.many_size >> TOP;
    }
    found += contains(lists.many, low, high, x);
    probes++;
  }
  return found;
}

extern "C" __global__ void __launch_bounds__(BLOCK) tcstream_edges(Task t, EdgeList list, Totals* totals) {
  __shared__ int32 trees[BLOCK / 32 * NODES];
  int32* nodes = trees + threadIdx.x / 32 * NODES;
  const int32* loaded = nullptr;
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
      sums.triangles += count_edge(from_lane(mine, lane), nodes, loaded, sums.probes);
    }
  }
  sums.add_up(totals);
}
