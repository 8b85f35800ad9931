// cliques: counts cliques of 3 to 5 vertices, by the bits of the edges among a row's targets; see
// backends/cpu/cliques.py.
//
// A block per row, which takes rows in succession from a counter. Bit i of line j says that the row's j-th target
// points to its i-th: the shorter of both lists is searched in the other, by a warp per line. Lines of 32 words and
// more are ANDed by a warp, shorter ones by a thread. `triangles` counts the cliques; `probes` counts the words that
// ANDs for cliques with one vertex more would read.

#ifndef BLOCK
#define BLOCK 256
#endif

__device__ __forceinline__ int64 lowest(uint64 word) { return __popcll((word & (~word + 1)) - 1); }

struct Matrix {
  uint64* bits;
  int64 degree, words;
  bool ordered;  // a lower triangle: no bit is set beyond the line's own number

  __device__ uint64* line(int64 j) const { return bits + j * words; }
  // Words of a line that are read up to `word`: all of them where the matrix is no lower triangle.
  __device__ int64 reach(int64 word) const { return ordered ? word + 1 : words; }
};

__device__ __forceinline__ void fill(const Block& graph, int64 first, const Matrix& matrix) {
  for (int64 j = threadIdx.x / 32; j < matrix.degree; j += blockDim.x / 32) {
    int64 v = graph.columns[first + j], begin = graph.offsets[v], b = graph.length(v);
    int64 a = matrix.ordered ? j : matrix.degree;
    for (int64 k = threadIdx.x % 32; k < min(a, b); k += 32) {
      int64 i = k;
      if (a <= b) {
        if (!contains(graph.columns, begin, begin + b, graph.columns[first + k])) { continue; }
      } else {
        int32 x = graph.columns[begin + k];
        i = lower_bound(graph.columns, first, first + a, x) - first;
        if (i == a || graph.columns[first + i] != x) { continue; }
      }
      atomicOr(matrix.line(j) + i / 64, uint64(1) << i % 64);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) cliques_rows(
    Task t, int64 rows, int64 size, int64 ordered, int64 longest, uint64* scratch, uint64* next, Totals* totals) {
  __shared__ int64 taken;
  uint64 cliques = 0, work = 0, wedges = 0;
  const Block& graph = t.stream;
  Matrix matrix = {scratch + int64(blockIdx.x) * longest * ((longest + 63) / 64), 0, 0, ordered != 0};
  while (true) {
    if (threadIdx.x == 0) { taken = int64(atomicAdd(next, uint64(1))); }
    __syncthreads();
    int64 u = taken;
    __syncthreads();
    if (u >= rows) { break; }
    int64 first = graph.offsets[u], degree = graph.length(u), words = (degree + 63) / 64;
    for (int64 j = threadIdx.x; j < degree; j += blockDim.x) { wedges += graph.length(graph.columns[first + j]); }
    if (degree < size - 1) { continue; }
    matrix.degree = degree;
    matrix.words = words;
    for (int64 k = threadIdx.x; k < degree * words; k += blockDim.x) { matrix.bits[k] = 0; }
    __syncthreads();
    fill(graph, first, matrix);
    __syncthreads();
    int64 lanes = words >= 32 ? 32 : 1, lane = threadIdx.x % lanes;
    for (int64 j = threadIdx.x / lanes; j < degree; j += blockDim.x / lanes) {
      const uint64* line = matrix.line(j);
      int64 end = matrix.ordered ? (j + 63) / 64 : words;
      for (int64 w = size == 3 ? lane : 0; w < end; w += size == 3 ? lanes : 1) {
        uint64 word = line[w];
        if (size == 3) {
          cliques += __popcll(word);
          work += uint64(__popcll(word)) * matrix.reach(w);
          continue;
        }
        for (; word; word &= word - 1) {
          const uint64* other = matrix.line(64 * w + lowest(word));
          for (int64 k = lane; k < matrix.reach(w); k += lanes) {
            uint64 common = line[k] & other[k];
            if (size == 4) {
              cliques += __popcll(common);
              work += uint64(__popcll(common)) * matrix.reach(k);
              continue;
            }
            for (; common; common &= common - 1) {
              const uint64* third = matrix.line(64 * k + lowest(common));
              for (int64 m = 0; m < matrix.reach(k); m++) { cliques += __popcll(line[m] & other[m] & third[m]); }
            }
          }
        }
      }
    }
    __syncthreads();
  }
  add_to(&totals->triangles, cliques);
  add_to(&totals->wedges, wedges);
  add_to(&totals->probes, work);
}
