// peel: peels a graph level by level, in rounds: vertices by their degrees, edges by their triangles.
//
// Every vertex has a row of all its neighbours, ascending, each with the edge that leads to it. A round removes the
// frontier, a list. `when` has the round in which something is removed, STAYS until then; `left` has its remaining
// neighbours or triangles. Whatever drops to the level joins the next round's frontier; whatever drops below `end`
// joins the window, the list in which the next levels look for their frontiers.
//
//   peel_rows      the row of every edge of oriented CSR rows, by bisection of their offsets
//   peel_entries   the rows of all neighbours, from the rows of smaller ones, and from edges sorted by column
//   peel_window    begins a level: moves entries at the level from the window to the frontier, and drops removed ones
//   peel_vertices  a round of vertices: subtracts one from every neighbour that stays
//   peel_edges     a round of edges: each entry of the shorter row of an edge's ends is bisected in the longer one; a
//                  triangle with two or three edges removed in this round is counted by the first of them
//
// A warp takes up to 32 entries of the frontier and deals the entries of their rows to its lanes.

// Preludes: rows.cuh

#ifndef BLOCK
#define BLOCK 256
#endif

constexpr int32 STAYS = 0x7fffffff;
constexpr int64 EDGE_BITS = 32;

extern "C" __global__ void __launch_bounds__(BLOCK)
    peel_rows(int64 edges, int64 rows, const int64* offsets, int32* row_of_edge) {
  for (int64 p = first_of(); p < edges; p += all_threads()) {
    row_of_edge[p] = int32(row_at(offsets, 0, rows, p));
  }
}

// `by_column` are column << 32 | edge, ascending; `starts` are the starts of the rows of all neighbours.
extern "C" __global__ void __launch_bounds__(BLOCK) peel_entries(
    int64 edges, const int64* offsets, const int64* starts, const int32* rows, const int32* columns,
    const int64* by_column, int32* neighbours, int32* ids) {
  for (int64 p = first_of(); p < edges; p += all_threads()) {
    int64 at = starts[rows[p]] + p - offsets[rows[p]];
    neighbours[at] = columns[p];
    ids[at] = int32(p);
    int64 key = by_column[p], column = key >> EDGE_BITS, edge = key & 0xffffffffll;
    at = offsets[column + 1] + p;  // starts[column] = offsets[column] + larger neighbours of the columns before
    neighbours[at] = rows[edge];
    ids[at] = int32(edge);
  }
}

// Working memory of a round, with the layout of the host's structured array.
struct Round {
  const uint32* size;  // size of the frontier
  const int32* frontier;
  uint32* next_size;
  int32* next;
  uint32* window_size;
  int32* window;
  int32* left;
  int32* when;
  int64 round, level, end, together;  // `together`: most entries of the frontier that a warp takes

  __device__ void lower(int32 x) const {
    int64 before = atomicAdd(left + x, -1);
    if (before == level + 1) {
      RACY_WRITE(when[x], int32(round) + 1, "by one thread; its readers ask whether it is above the round, as before");
      next[atomicAdd(next_size, 1u)] = x;
    } else if (before == end) {
      window[atomicAdd(window_size, 1u)] = x;
    }
  }

  __device__ int64 share() const {
    int64 warps = all_threads() / 32;
    return max(int64(1), min(together, (int64(*size) + warps - 1) / warps));
  }
};

// Reads the window of the level before; `r.window` is the window of this level, `r.next` its frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) peel_window(Round r) {
  int64 size = *r.size;
  for (int64 k = first_of() / 32 * 32; k < size; k += all_threads()) {
    int64 mine = k + threadIdx.x % 32;
    int32 x = mine < size ? r.frontier[mine] : 0;
    bool stays = mine < size && r.when[x] == STAYS, goes = stays && r.left[x] <= r.level;
    uint32 at = reserve(r.next_size, goes);
    if (goes) {
      r.next[at] = x;
      r.when[x] = int32(r.round);
    }
    at = reserve(r.window_size, stays && !goes);
    if (stays && !goes) { r.window[at] = x; }
  }
}

// Deals entries of rows to the lanes of a warp, all of which call it; each lane has `length` entries. `visit` gets the
// lane that has the entry, and the entry's number there; all lanes call it, with `there` false where there is none.
template <class Visit> __device__ __forceinline__ void deal_entries(uint32 length, const Visit& visit) {
  uint32 lane = threadIdx.x % 32, ends = warp_ends(length), all = __shfl_sync(ALL, ends, 31);
  for (uint32 x = lane; x - lane < all; x += 32) {
    uint32 whose = owner_of(ends, x);
    visit(whose, x - __shfl_sync(ALL, ends - length, whose), x < all);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    peel_vertices(Round r, const int64* starts, const int32* neighbours) {
  int64 size = *r.size, share = r.share(), lane = threadIdx.x % 32;
  for (int64 k = first_of() / 32 * share; k < size; k += all_threads() / 32 * share) {
    int64 first = 0;
    uint32 length = 0;
    if (lane < share && k + lane < size) {
      int32 v = r.frontier[k + lane];
      first = starts[v];
      length = uint32(starts[v + 1] - first);
    }
    deal_entries(length, [&](uint32 whose, uint32 number, bool there) {
      int64 at = __shfl_sync(ALL, first, whose) + number;
      if (!there) { return; }
      int32 w = neighbours[at];
      if (RACY_READ(r.when[w], "another may write round + 1: above the round too") > r.round) { r.lower(w); }
    });
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) peel_edges(
    Round r, const int64* starts, const int32* neighbours, const int32* ids, const int32* rows, const int32* columns,
    uint64* triangles) {
  int64 size = *r.size, share = r.share(), lane = threadIdx.x % 32;
  uint64 went = 0;
  for (int64 k = first_of() / 32 * share; k < size; k += all_threads() / 32 * share) {
    int32 edge = 0;
    int64 few = 0, many = 0, end = 0;
    uint32 length = 0;
    if (lane < share && k + lane < size) {
      edge = r.frontier[k + lane];
      int64 u = rows[edge], v = columns[edge];
      int64 a = starts[u], of_u = starts[u + 1] - a, b = starts[v], of_v = starts[v + 1] - b;
      bool swap = of_u > of_v;
      few = swap ? b : a;
      many = swap ? a : b;
      end = many + max(of_u, of_v);
      length = uint32(min(of_u, of_v));
    }
    deal_entries(length, [&](uint32 whose, uint32 number, bool there) {
      int32 e = __shfl_sync(ALL, edge, whose);
      int64 at = __shfl_sync(ALL, few, whose) + number;
      int64 first = __shfl_sync(ALL, many, whose), last = __shfl_sync(ALL, end, whose);
      if (!there) { return; }
      int32 f = ids[at], w = neighbours[at], of_f = RACY_READ(r.when[f], "as of_g");
      if (of_f < r.round) { return; }
      int64 place = lower_bound(neighbours, first, last, w);
      if (place == last || neighbours[place] != w) { return; }
      int32 g = ids[place], of_g = RACY_READ(r.when[g], "another may write round + 1: above the round too");
      if (of_g < r.round) { return; }
      bool f_goes = of_f == r.round, g_goes = of_g == r.round;
      if ((f_goes && f < e) || (g_goes && g < e)) { return; }
      went++;
      if (!f_goes) { r.lower(f); }
      if (!g_goes) { r.lower(g); }
    });
  }
  add_to(triangles, went);
}
