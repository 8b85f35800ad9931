// vertices: functions on vertex vectors, one pass each.
//
// An element is a vertex, a degree or a rank, 32 bits.
//
//   vertices_keys      (most - weight) << 31 | v: they order vertices by descending weight, ties by v
//   vertices_order     the vertices of sorted keys
//   vertices_inverse   the place of each vertex in an order
//   vertices_wedges    sum of in * (out >> 20), and of in * (out & (1 << 20) - 1), where out = outward[rank[v]] and
//                      in = degree[v] - out: both stay below 2^61, since the degrees of each kind add up to the edges,
//                      fewer than 2^41. Each vertex reads its out-degree from a random place; computing in-degrees by
//                      rank first took a scatter, a gather and two passes more.
//   vertices_lengths   the number of elements with each value
//
// Array arithmetic launches some twenty kernels for these and waits three times for a number from the device, which is
// the cost of counting a small graph.

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

extern "C" __global__ void __launch_bounds__(BLOCK)
    vertices_wedges(int64 size, const int32* degree, const int32* rank, const int32* outward, uint64* sums) {
  uint64 high = 0, low = 0;
  for (int64 v = first_of(); v < size; v += all_threads()) {
    uint64 out = outward[rank[v]], in = degree[v] - out;
    high += in * (out >> 20);
    low += in * (out & ((1u << 20) - 1));
  }
  add_to(sums, high);
  add_to(sums + 1, low);
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
