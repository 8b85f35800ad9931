// sort: sorts non-negative 64-bit keys, by radix from the lowest digit up, with one pass over memory per digit.
//
// A pass deals one tile of TILE keys per block: it ranks them by digit in registers and shared memory, learns from the
// tiles before it where its keys of each digit go (decoupled look-back: Merrill and Garland 2016; "onesweep": Adinets
// and Merrill 2022), and writes each digit's keys as one run. The sort is stable, so bits below the sorted digits keep
// the order of the input.
//
//   sort_counts   counts the keys with each value of each digit, for all digits in one pass
//   sort_pass     one digit: deals the keys of several arrays, in succession, to one array
//
// A key is read once for all counts, and read and written once per digit: 8 + 16 * ceil(bits / BITS) bytes. Beside keys
// and result it takes 2 * 4 * BINS bytes per tile, a quarter of a byte per key.
//
// One H200, 2^26 keys of 48 random bits, ms, and the keys of random Kronecker edges:
//
//   version                                random  Kronecker
//   CuPy's sort: CUB, 64 bits              3.94    4.00
//   1 predicted: CUB's rate, 6 of 8 passes 3.0
//     measured: tiles of 256 * 16 keys     3.60    3.67
//   2 of 384 * 20, 64 registers or 80      2.92    3.02
//     learnt: a pass runs at 2.3 TB/s, as CUB's do; a copy at 4.2. Large tiles gain most: fewer of them wait for those
//     before. Little or no gain: 4 and 32 tiles looked back at together in place of 16 (-1 %, +3 %; 8 with four blocks
//     of 256 threads -3 %); counts shown before keys are ranked (-4 % with those, +15 % with 512 threads);
//     __match_any_sync in place of votes (+21 to +39 %); digits of 9 bits, with tiles of 512 * 16 (+9 % a pass); 1,024
//     threads (+36 %); six digits of 9 bits in place of seven of 8, for 2^27 keys of 54 bits (predicted -7 %): tiles of
//     512 * 14, 512 * 16, 384 * 20 +1 %, +2 %, +3 %. Keys of 30 ranges dealt by their 16 or 17 leading bits only, until
//     some 500 are together, and the rest in shared memory, a chunk of 3,300 a block (predicted -27 ms for RA's 10^9):
//     by value to 2,048 slots, in each of which a key counts those below it, 15.1 ms where slots are even, or by
//     digits there, 350 G keys and digits a second in place of 150. RA 50.6 to 38.9, but +3 to deal keys to 30 ranges;
//     464^3 15.9 to 11.7; Kronecker 24 10.8 to 11.5, 26 44.6 to 44.8 and +6; and 300 ms more where one block has all
//     copies of a key, as RM's loops. 180 lines, not kept. Few keys are bound by launches: 88,234 keys of 24 bits take 0.15
//     ms, CuPy's sort 0.11

#ifndef BLOCK
#define BLOCK 384
#endif
#ifndef ITEMS
#define ITEMS 20  // keys per thread
#endif
#ifndef BITS
#define BITS 8  // most bits of a digit
#endif
#ifndef DIGITS
#define DIGITS 8  // most digits
#endif
#ifndef ARRAYS
#define ARRAYS 32  // most arrays that are read as one
#endif
#ifndef LONG
#define LONG 0  // 1: 2^30 keys or more
#endif
#ifndef WINDOW
#define WINDOW 16  // preceding tiles that are looked at together
#endif
#ifndef RESIDENT
#define RESIDENT 2  // blocks per multiprocessor for which registers must suffice
#endif
#ifndef COUNT_BLOCK
#define COUNT_BLOCK 256
#endif

constexpr uint32 BINS = 1 << BITS, WARPS = BLOCK / 32, TILE = BLOCK * ITEMS;

// Keys of a digit in a tile, or in it and all before: a flag in the upper two bits, then the number.
#if LONG
using State = uint64;
#else
using State = uint32;
#endif
constexpr uint32 STATE_BITS = sizeof(State) * 8 - 2;
constexpr State VALUE = (State(1) << STATE_BITS) - 1, OWN = State(1) << STATE_BITS, ALL_BEFORE = State(2) << STATE_BITS;

// Arrays whose keys follow one another; each begins a tile of its own.
struct Arrays {
  const int64* keys[ARRAYS];
  int64 sizes[ARRAYS];
  int64 tiles[ARRAYS];  // running number of tiles at the end of each
  int64 count;
};

struct Share {
  const int64* keys;
  uint32 size;  // at most TILE
};

__device__ __forceinline__ Share share_of(const Arrays& arrays, int64 tile) {
  uint32 which = 0;
  while (tile >= arrays.tiles[which]) { which++; }
  int64 first = (tile - (which ? arrays.tiles[which - 1] : 0)) * TILE;
  return {arrays.keys[which] + first, uint32(min(arrays.sizes[which] - first, int64(TILE)))};
}

__device__ __forceinline__ uint32 digit_of(int64 key, uint32 shift, uint32 mask) { return uint32(key >> shift) & mask; }

__device__ __forceinline__ State seen(const State* state) { return *const_cast<const volatile State*>(state); }
__device__ __forceinline__ void show(State* state, State value) { *const_cast<volatile State*>(state) = value; }

// Adds up the counts of the tiles before this one, from the nearest on; `states` starts with tile 0's, `stride` apart.
__device__ __forceinline__ State before_tile(const State* states, int64 tile, int64 stride) {
  State sum = 0;
  for (int64 at = tile - 1;; at -= WINDOW) {
    State near[WINDOW];
#pragma unroll
    for (int32 k = 0; k < WINDOW; k++) { near[k] = at >= k ? seen(states + (at - k) * stride) : ALL_BEFORE; }
#pragma unroll
    for (int32 k = 0; k < WINDOW; k++) {
      while (near[k] == 0) { near[k] = seen(states + (at - k) * stride); }
      sum += near[k] & VALUE;
      if (near[k] & ALL_BEFORE) { return sum; }
    }
  }
}

// Tiles are taken in ascending order, in whatever order blocks start: earlier tiles are finished or under way.
__device__ __forceinline__ int64 next_tile(uint64* next, int64* shared) {
  if (threadIdx.x == 0) { *shared = int64(atomicAdd(next, uint64(1))); }
  __syncthreads();
  return *shared;
}

// counts: BINS per digit, initially 0. Digit d has the bits from low + d * width on.
extern "C" __global__ void __launch_bounds__(COUNT_BLOCK)
    sort_counts(Arrays arrays, uint32 low, uint32 width, uint32 digits, uint64* counts) {
  __shared__ uint32 own[DIGITS * BINS];
  for (uint32 k = threadIdx.x; k < digits * BINS; k += COUNT_BLOCK) { own[k] = 0; }
  __syncthreads();
  uint32 mask = (1u << width) - 1;
  int64 tiles = arrays.tiles[arrays.count - 1];
  for (int64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    Share share = share_of(arrays, tile);
#pragma unroll 4
    for (uint32 k = threadIdx.x; k < share.size; k += COUNT_BLOCK) {
      uint64 key = uint64(share.keys[k]) >> low;
      for (uint32 d = 0; d < digits; d++) {
        atomicAdd(own + d * BINS + (uint32(key) & mask), 1u);
        key >>= width;
      }
    }
  }
  __syncthreads();
  for (uint32 k = threadIdx.x; k < digits * BINS; k += COUNT_BLOCK) {
    if (own[k]) { atomicAdd(counts + k, uint64(own[k])); }
  }
}

// Exclusive running sums over BINS numbers in shared memory; all threads call it, between barriers of their own.
template <class Number> __device__ __forceinline__ void exclusive_sums(Number* numbers) {
  constexpr uint32 EACH = BINS / 32;
  if (threadIdx.x < 32) {
    Number mine[EACH], sum = 0;
#pragma unroll
    for (uint32 k = 0; k < EACH; k++) {
      mine[k] = sum;
      sum += numbers[threadIdx.x * EACH + k];
    }
    Number start = warp_ends(sum) - sum;
#pragma unroll
    for (uint32 k = 0; k < EACH; k++) { numbers[threadIdx.x * EACH + k] = start + mine[k]; }
  }
}

// Mask of the lanes of the warp with the same digit.
__device__ __forceinline__ uint32 peers_of(uint32 digit) {
  uint32 peers = ALL;
#pragma unroll
  for (uint32 bit = 0; bit < BITS; bit++) {
    uint32 set = __ballot_sync(ALL, digit >> bit & 1);
    peers &= digit >> bit & 1 ? set : ~set;
  }
  return peers;
}

// `states` holds BINS per tile, initially 0; `cleared`, of the same size, is set to 0 for the next pass.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) sort_pass(Arrays arrays, uint32 shift, uint32 width,
    const uint64* counts, State* states, State* cleared, uint64* next, int64* sorted) {
  extern __shared__ unsigned char memory[];
  int64* const keys = reinterpret_cast<int64*>(memory);  // TILE keys, by digit
  __shared__ uint32 ranks[WARPS][BINS];  // number of a digit's keys in the warps before
  __shared__ uint32 starts[BINS];  // start of each digit in the tile
  __shared__ int64 places[BINS];  // place of a digit's keys in `sorted`, less its start
  __shared__ int64 number;
  uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, mask = (1u << width) - 1;
  for (uint32 k = threadIdx.x; k < WARPS * BINS; k += BLOCK) { (&ranks[0][0])[k] = 0; }
  int64 tile = next_tile(next, &number);
  Share share = share_of(arrays, tile);

  // A warp has 32 * ITEMS neighbours. Padding after an array's last key has the highest digit, which goes last.
  int64 mine[ITEMS];
  uint32 rank[(ITEMS + 1) / 2], first = warp * 32 * ITEMS + lane, behind = TILE - share.size;
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) { mine[i] = first + i * 32 < share.size ? share.keys[first + i * 32] : -1; }
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    uint32 digit = digit_of(mine[i], shift, mask), peers = peers_of(digit);
    uint32 before = __popc(peers & ((1u << lane) - 1)), count = ranks[warp][digit];
    __syncwarp();
    if (before == 0) { ranks[warp][digit] = count + __popc(peers); }
    __syncwarp();
    rank[i / 2] = i % 2 ? rank[i / 2] | (count + before) << 16 : count + before;
  }
  __syncthreads();

  for (uint32 d = threadIdx.x; d < BINS; d += BLOCK) {
    uint32 sum = 0;
#pragma unroll
    for (uint32 w = 0; w < WARPS; w++) {
      uint32 of_warp = ranks[w][d];
      ranks[w][d] = sum;
      sum += of_warp;
    }
    starts[d] = sum;
    uint32 own = sum - (d == mask ? behind : 0);
    if (tile) { show(states + tile * BINS + d, OWN | own); }
    places[d] = tile ? own : int64(counts[d]);
    cleared[tile * BINS + d] = 0;
  }
  __syncthreads();
  exclusive_sums(starts);
  if (tile == 0) {
    __syncthreads();
    exclusive_sums(places);  // becomes the first place of each digit
  }
  __syncthreads();
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    uint32 digit = digit_of(mine[i], shift, mask);
    keys[starts[digit] + ranks[warp][digit] + (rank[i / 2] >> i % 2 * 16 & 0xffff)] = mine[i];
  }
  for (uint32 d = threadIdx.x; d < BINS; d += BLOCK) {
    int64 place = places[d];
    if (tile) {
      State before = before_tile(states + d, tile, BINS);
      show(states + tile * BINS + d, ALL_BEFORE | (before + State(place)));
      place = before;
    } else {
      uint32 end = d + 1 < BINS ? starts[d + 1] : TILE, own = end - starts[d] - (d == mask ? behind : 0);
      show(states + d, ALL_BEFORE | (State(place) + own));
    }
    places[d] = place - starts[d];
  }
  __syncthreads();
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    uint32 k = i * BLOCK + threadIdx.x;
    if (k < share.size) {
      int64 key = keys[k];
      sorted[places[digit_of(key, shift, mask)] + k] = key;
    }
  }
}
