// vertices: functions on vertex vectors, one pass each.
//
// An element is a vertex, a degree or a rank, 32 bits.
//
//   vertices_keys      (most - weight) << 31 | v: they order vertices by descending weight, ties by v
//   vertices_order     the vertices of sorted keys
//   vertices_inverse   the place of each vertex in an order
//   vertices_most      the largest weight
//   vertices_totals    vertices with an edge, edges, the longest row, the sum of in * (out >> 20), and that of
//                      in * (out & (1 << 20) - 1), where out = outward[r] and in = degree[order[r]] - out: the sums
//                      stay below 2^61, since the degrees of each kind add up to the edges, fewer than 2^41. Each rank
//                      reads its degree from a random place; computing in-degrees by rank first took a scatter, a
//                      gather and two passes more.
//   vertices_lengths   the number of elements with each value
//
// Array arithmetic launches some twenty kernels for these and waits three times for a number from the device, which is
// the cost of counting a small graph. On a new machine each of its sums and maxima is compiled, with the templates of
// CUB, in 2 s: of a first count's 13 s they took 8.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef USUAL
#define USUAL 1024  // values that a block counts in shared memory
#endif

constexpr int64 MOST = 0x7fffffff;

extern "C" __global__ void __launch_bounds__(BLOCK)
    vertices_keys(int64 size, const int32* weights, int64 most, int64* keys) {
  for (int64 v = first_of(); v < size; v += all_threads()) { keys[v] = (most - weights[v]) << 31 | v; }
}

extern "C" __global__ void __launch_bounds__(BLOCK) vertices_order(int64 size, const int64* keys, int32* order) {
  for (int64 k = first_of(); k < size; k += all_threads()) { order[k] = int32(keys[k] & MOST); }
}

extern "C" __global__ void __launch_bounds__(BLOCK) vertices_inverse(int64 size, const int32* order, int32* place) {
  for (int64 k = first_of(); k < size; k += all_threads()) { place[order[k]] = int32(k); }
}

// The larger of x of all lanes and *most; every thread of the warp must call it.
__device__ __forceinline__ void raise_to(uint64* most, uint32 x) {
  x = warp_max(x);
  if (threadIdx.x % 32 == 0 && x) { atomicMax(most, uint64(x)); }
}

extern "C" __global__ void __launch_bounds__(BLOCK) vertices_most(int64 size, const int32* weights, uint64* most) {
  uint32 mine = 0;
  for (int64 v = first_of(); v < size; v += all_threads()) { mine = max(mine, uint32(weights[v])); }
  raise_to(most, mine);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    vertices_totals(int64 size, const int32* degree, const int32* order, const int32* outward, uint64* totals) {
  uint64 vertices = 0, edges = 0, high = 0, low = 0;
  uint32 longest = 0;
  for (int64 r = first_of(); r < size; r += all_threads()) {
    uint64 all = degree[order[r]], out = outward[r], in = all - out;
    vertices += all > 0;
    edges += out;
    longest = max(longest, uint32(out));
    high += in * (out >> 20);
    low += in * (out & ((1u << 20) - 1));
  }
  add_to(totals, vertices);
  add_to(totals + 1, edges);
  raise_to(totals + 2, longest);
  add_to(totals + 3, high);
  add_to(totals + 4, low);
}

// Values are below `bins`. Most vertices have few neighbours, so each block counts small values by itself first.
extern "C" __global__ void __launch_bounds__(BLOCK)
    vertices_lengths(int64 size, const int32* values, uint64* counts, uint32 bins) {
  __shared__ uint32 usual[USUAL];
  for (uint32 k = threadIdx.x; k < USUAL; k += BLOCK) { usual[k] = 0; }
  __syncthreads();
  for (int64 v = first_of(); v < size; v += all_threads()) {
    uint32 value = values[v];
    if (value < USUAL) {
      atomicAdd(usual + value, 1u);
    } else {
      atomicAdd(counts + value, uint64(1));
    }
  }
  __syncthreads();
  for (uint32 k = threadIdx.x; k < min(bins, uint32(USUAL)); k += BLOCK) {
    if (usual[k]) { atomicAdd(counts + k, uint64(usual[k])); }
  }
}
