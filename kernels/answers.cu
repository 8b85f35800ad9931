// answers: columns of result frames: numbers of a block's edges, or of vertices, under the caller's ids.
//
//   answers_facts       the sum and the maximum of non-negative numbers
//   answers_words       one word per edge: the smaller dense id of its ends, the larger one, and its number
//   answers_columns     splits sorted words into these three, with the caller's ids
//   answers_clustering  local clustering coefficients of vertices
//   answers_place       permutes numbers of vertices to dense ids
//
// One H200, torus of 200^3 (8 M vertices, 24 M edges). Array arithmetic instead of these moves some 5.5 GB for the
// 24 M edges in 45 launches with 6 waits: 8.1 ms from supports to cuDF columns, 1.1 of it the sort of 46 bits.
//
//   version      ms     predicted
//   1            3.1    0.1 facts and its wait, 0.3 words (0.2 of it looking ids up in the L2), 1.1 sort, 0.2 columns:
//                       1.7, and 0.2 on the host. Measured is the public call (8.9 before), 2.3 of it after the supports;
//                       Kronecker 22, 64 M edges, 46 ms (58 before). triangles() takes 1.1 (2.0), clustering() 1.7 (2.8).

// Preludes: rows.cuh

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef TILE
#define TILE 2048  // edges whose rows a block looks up together
#endif

extern "C" __global__ void __launch_bounds__(BLOCK) answers_facts(int64 size, const int32* numbers, uint64* facts) {
  uint64 sum = 0;
  uint32 most = 0;
  for (int64 k = first_of(); k < size; k += all_threads()) {
    sum += uint32(numbers[k]);
    most = max(most, uint32(numbers[k]));
  }
  add_to(facts, sum);
  most = warp_max(most);
  if (threadIdx.x % 32 == 0 && most) { atomicMax(facts + 1, uint64(most)); }
}

// `row_ids` and `column_ids` are the dense ids of the block's rows and columns.
extern "C" __global__ void __launch_bounds__(BLOCK) answers_words(
    int64 edges, int64 rows, const int64* offsets, const int32* columns, const int32* row_ids,
    const int32* column_ids, const int32* numbers, uint32 id_bits, uint32 number_bits, int64* words) {
  __shared__ int64 of_tile[2];
  for (int64 tile = int64(blockIdx.x) * TILE; tile < edges; tile += int64(gridDim.x) * TILE) {
    int64 end = min(tile + TILE, edges);
    __syncthreads();
    if (threadIdx.x < 2) { of_tile[threadIdx.x] = row_at(offsets, 0, rows, threadIdx.x ? end - 1 : tile); }
    __syncthreads();
    int64 first = of_tile[0], last = of_tile[1];
    for (int64 p = tile + threadIdx.x; p < end; p += BLOCK) {
      int64 u = row_ids[row_at(offsets, first, last + 1, p)], v = column_ids[columns[p]];
      words[p] = (min(u, v) << id_bits | max(u, v)) << number_bits | numbers[p];
    }
  }
}

// The caller's id of a dense id is its entry in `ids`, or without `ids` that many above `first`.
extern "C" __global__ void __launch_bounds__(BLOCK) answers_columns(
    int64 size, const int64* words, uint32 id_bits, uint32 number_bits, int64 first, const int64* ids, int64* src,
    int64* dst, int64* numbers) {
  int64 of_id = (1ll << id_bits) - 1, of_number = (1ll << number_bits) - 1;
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 word = words[k], ends = word >> number_bits, u = ends >> id_bits, v = ends & of_id;
    src[k] = ids ? ids[u] : first + u;
    dst[k] = ids ? ids[v] : first + v;
    numbers[k] = word & of_number;
  }
}

// Local clustering coefficients; degrees are given as two summands.
extern "C" __global__ void __launch_bounds__(BLOCK) answers_clustering(
    int64 size, const int64* triangles, const int32* outward, const int32* inward, double* coefficients) {
  for (int64 k = first_of(); k < size; k += all_threads()) {
    int64 degree = int64(outward[k]) + inward[k];
    coefficients[k] = double(2 * triangles[k]) / double(max(degree * (degree - 1), 1ll));
  }
}

// The numbers are 64-bit, of any type.
extern "C" __global__ void __launch_bounds__(BLOCK)
    answers_place(int64 size, const int32* order, const int64* numbers, int64* placed) {
  for (int64 k = first_of(); k < size; k += all_threads()) { placed[order[k]] = numbers[k]; }
}
