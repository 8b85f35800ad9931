// lstc: the list of u in tiles in shared memory; every streamed entry is searched in the tile (LSTC, Tamboli and
// Jatala, ICPE 2026, section 4.4, algorithm 3, doi:10.1145/3777884.3797002).
//
// The lists of an index edge (u, v) are T = table.row(u) and B = stream.row(v), none cut at v. A tile of T is
// loaded, then every B of the row is streamed against it, its entries dealt round-robin to the threads, so that
// neighbouring threads read neighbouring words; then the next tile follows. Rows of vertices that are not local
// to a partition (proxies) have no index edges, so nothing is counted from them.
//
//   probes(u, v) = |B| for each tile of T: |B| ceil(|T| / TILE)
//
// Launch: one grid that fills the GPU. A thread block takes CHUNK vertices per turn, in order, when it has finished
// the last ones; the paper launches a block per vertex, which the hardware deals out in the same way.
//
//   TILE     entries of T in shared memory; in the paper, the threads of a block; 0: T is searched in place,
//            in global memory, as in the paper's figure 9: |B| probes per edge; kernel lstc-unshared
//   THREADS  threads of a block; the paper's figure 7 finds 128 best. 64, the default, is as fast on Kronecker graphs
//            and 1.4 to 1.7 times as fast on RM, RA and the torus, whose lists are shorter than either
//   CHUNK    vertices that a block takes per turn
//
// One H200, ms of the launches, medians of 3, degree order, with 64 threads (128): Kronecker 20 (edge factor 16) 17.5
// (17.3), Kronecker 22 109 (112), the torus of 300^3 22.2 (31.8), RA with 10^7 vertices 24.0 (41.1). Kronecker 22 with
// tiles of 128, 256, 512, 1,024, 2,048: 313, 192, 131, 109, 114; in global memory 178. Other graphs: no difference.
// Kronecker 20 has 4.4 G probes of up to ten reads of shared memory; the paper's V100 took 204 ms for a graph of scale
// 21. Lists shorter than THREADS leave threads idle, and each edge waits for three reads in a row: on graphs of low
// degree latency decides. Rows much longer than TILE cost a multiple of the wedges.

#ifndef TILE
#define TILE 1024
#endif
#ifndef THREADS
#define THREADS 64
#endif
#ifndef CHUNK
#define CHUNK 4
#endif

__device__ __forceinline__ bool in_tile(const int32* tile, int32 size, int32 x) {
  int32 place = 0;
  while (size > 1) {
    int32 half = size >> 1;
    place = tile[place + half] <= x ? place + half : place;
    size -= half;
  }
  return tile[place] == x;
}

// The block's next vertices are those of the rows from `next` on.
__device__ __forceinline__ int64 take(uint32* rows, uint32& next) {
  __syncthreads();
  if (threadIdx.x == 0) { next = atomicAdd(rows, uint32(CHUNK)); }
  __syncthreads();
  return next;
}

// Streams the row's lists, index places [begin, end), against one tile; returns this thread's probes.
__device__ __forceinline__ uint64 stream_lists(
    const Task& t, const int32* tile, int32 size, int64 begin, int64 end, uint64& triangles) {
  uint64 probes = 0;
  for (int64 p = begin; p < end; p++) {
    int64 v = t.index.columns[p], last = t.stream.offsets[v + 1];
    for (int64 q = t.stream.offsets[v] + threadIdx.x; q < last; q += THREADS) {
      triangles += in_tile(tile, size, t.stream.columns[q]);
      probes++;
    }
  }
  return probes;
}

__device__ void count_vertex(const Task& t, int32* tile, int64 u, Sums& sums) {
  int64 begin = t.index.offsets[u], end = t.index.offsets[u + 1];
  if (begin == end) { return; }
  for (int64 p = begin + threadIdx.x; p < end; p += THREADS) { sums.wedges += t.stream.length(t.index.columns[p]); }
  int64 first = t.table.offsets[u], last = t.table.offsets[u + 1], width = TILE > 0 ? TILE : last - first;
  for (; first < last; first += width) {
    int32 size = int32(min(last - first, width));
    const int32* list = t.table.columns + first;
    if (TILE > 0) {
      __syncthreads();
      for (int32 i = threadIdx.x; i < size; i += THREADS) { tile[i] = list[i]; }
      __syncthreads();
      list = tile;
    }
    sums.probes += stream_lists(t, list, size, begin, end, sums.triangles);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) lstc_rows(Task t, uint32* rows, Totals* totals) {
  __shared__ int32 tile[TILE > 0 ? TILE : 1];
  __shared__ uint32 next;
  Sums sums;
  for (int64 k = take(rows, next); k < t.rows; k = take(rows, next)) {
    int64 end = min(k + CHUNK, t.rows);
    for (int64 row = k; row < end; row++) { count_vertex(t, tile, row_of(t, row), sums); }
  }
  sums.add_up(totals);
}
