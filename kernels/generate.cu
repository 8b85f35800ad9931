// generate: edges of generated graphs, a thread per edge; bit for bit the recipes of dasktc/backends/edge_functions.py.
//
// Array arithmetic takes a launch and a pass over memory for every operation of every level: some 250 of them for
// four million edges. Here an edge stays in its thread's registers until it is complete.
//
//   generate_kronecker  a descent into quadrants, with one draw of splitmix64 per level (Graph 500's shares)
//   generate_rmat       a descent by hashes of an arithmetic progression (TRUST's RM)
//   generate_random     a hash of the edge's index, hashed again while that makes a loop (TRUST's RA)
//   generate_grid3d     the torus: edge 3 v + axis joins v to its +1 neighbour (TRUST's 3D)
//
// One H200: a level of a Kronecker edge took 1.34 ps, so that 2^28 edges of scale 24 took 8.7 ms; now 0.90 (predicted
// 1.0). The units of shifts, logic and comparisons bound it: 15 of their instructions a level in place of 20, because
// counters are not carried, draws are compared in 32 bits, and a difference's sign is shifted into an id. RM's 10^9
// edges take 27.8 ms in place of 32.3 (predicted 21) with comparisons and ids of 32 bits: 13 of a level's 20
// instructions are the hash.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef WIDE
#define WIDE 0  // 1: ids have 64 bits
#endif
#ifndef REDRAWS
#define REDRAWS 1000  // most draws that replace a loop
#endif

#if WIDE
using Id = int64;
using Path = uint64;
#else
using Id = int32;
using Path = uint32;
#endif

// `made(i)` returns the two ends of edge i, first <= i < first + size.
template <class Made>
__device__ __forceinline__ void each_made(uint64 first, int64 size, Id* src, Id* dst, const Made& made) {
  int64 threads = int64(gridDim.x) * blockDim.x;
  for (int64 k = int64(blockIdx.x) * blockDim.x + threadIdx.x; k < size; k += threads) {
    uint64 source = 0, target = 0;
    made(first + k, source, target);
    src[k] = Id(source);
    dst[k] = Id(target);
  }
}

// The upper half of splitmix64 without its last step, which does not change the upper 24 bits.
__device__ __forceinline__ uint32 mixed(uint64 x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  return uint32((x ^ (x >> 27)) * 0x94D049BB133111EBull >> 32);
}

// Bob Jenkins' integer hash.
__device__ __forceinline__ uint32 jenkins(uint32 a) {
  a = (a + 0x7ed55d16u) + (a << 12);
  a = (a ^ 0xc761c23cu) ^ (a >> 19);
  a = (a + 0x165667b1u) + (a << 5);
  a = (a + 0xd3a2646cu) ^ (a << 9);
  a = (a + 0xfd7046c5u) + (a << 3);
  return (a ^ 0xb55a4f09u) ^ (a >> 16);
}

// Each level appends a bit to both ids: below `one` a draw sets neither, below `two` the column's, below `three` the
// row's, else both.

// `start`: the seed's counter and splitmix64's increment. Draws and cuts are halved, so that the sign of their
// difference, in 32 bits, tells whether a draw is below a cut. Bits are appended to ids with every bit flipped.
extern "C" __global__ void __launch_bounds__(BLOCK) generate_kronecker(
    uint64 first, int64 size, uint64 start, uint32 bits, uint64 one, uint64 two, uint64 three, Id* src, Id* dst) {
  uint32 cuts[] = {uint32(one >> 33), uint32(two >> 33), uint32(three >> 33)};
  Path every = (Path(1) << bits) - 1;
  each_made(first, size, src, dst, [&](uint64 i, uint64& source, uint64& target) {
    uint64 counter = 64 * i + start, high = counter >> 32 << 32;
    Path row = 0, column = 0;
    for (uint32 bit = bits; bit-- > 0;) {
      // The counter ends with the bits 010101, so that adding less than 43 changes the last six alone.
      uint64 x = WIDE ? counter + bit : high | (uint32(counter) + bit);
      uint32 draw = mixed(x) >> 1, below = draw - cuts[1];
      row = row << 1 | below >> 31;
      column = column << 1 | (below ^ (draw - cuts[0]) ^ (draw - cuts[2])) >> 31;
    }
    source = ~row & every;
    target = ~column & every;
  });
}

// The first cut is the draws' highest bit; a difference's sign tells whether a draw that has it is below a later one.
extern "C" __global__ void __launch_bounds__(BLOCK) generate_rmat(
    uint64 first, int64 size, uint32 seed, uint32 bits, uint32 two, uint32 three, Id* src, Id* dst) {
  each_made(first, size, src, dst, [&](uint64 i, uint64& source, uint64& target) {
    uint32 at = jenkins(uint32(2 * i) * seed), stride = jenkins(uint32(2 * i + 1) * seed);
    Path row = 0, column = 0;
    for (uint32 level = 0; level < bits; level++, at += stride) {
      uint32 draw = jenkins(at), both = draw & ~(draw - three), low = draw & ~(draw - two);
      row = row << 1 | low >> 31;
      column = column << 1 | (draw ^ low ^ both) >> 31;
    }
    source = row;
    target = column;
  });
}

// ~`failed` is the first edge that stays a loop however often it is drawn; `failed` is initially 0.
extern "C" __global__ void __launch_bounds__(BLOCK)
    generate_random(uint64 first, int64 size, uint64 vertices, uint64 of_each, uint64* failed, Id* src, Id* dst) {
  each_made(first, size, src, dst, [&](uint64 i, uint64& source, uint64& target) {
    uint32 draw = jenkins(uint32(i));
    source = i / of_each;
    target = draw % vertices;
    for (uint32 k = 0; target == source; k++) {
      if (k == REDRAWS) {
        atomicMax(failed, ~i);
        break;
      }
      draw = jenkins(draw);
      target = draw % vertices;
    }
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    generate_grid3d(uint64 first, int64 size, uint64 side, Id* src, Id* dst) {
  each_made(first, size, src, dst, [&](uint64 i, uint64& source, uint64& target) {
    uint64 axis = i % 3, step = axis == 0 ? 1 : axis == 1 ? side : side * side;
    source = i / 3;
    target = source / step % side == side - 1 ? source - (side - 1) * step : source + step;
  });
}
