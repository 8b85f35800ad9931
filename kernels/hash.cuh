// A hash table of interleaved buckets for a team of threads (H-INDEX, Pandey et al., HPEC 2019, section III,
// and TRUST, TPDS 2021, section 3.2). Prepended to hindex.cu; that of trust.cu has marks in place of lengths.
//
// A bucket x % BUCKETS holds up to `depth` entries; it is stored level by level, so that neighbouring threads
// touch neighbouring words. Lengths and the first LEVELS levels are in shared memory, the others in a fixed
// global scratch of each thread block. An entry whose bucket is full goes to the next one (the published code
// of TRUST drops it): counts are exact as long as the table has room for all entries.

#ifndef LEVELS
#define LEVELS 6  // levels in shared memory (TRUST, section 3.2)
#endif

// The threads that share a table: a warp, or a whole block.
template <uint32 THREADS_, uint32 BUCKETS_, bool BLOCK_> struct Team {
  static constexpr uint32 SIZE = THREADS_;
  static constexpr uint32 BUCKETS = BUCKETS_;

  __device__ static uint32 rank() { return threadIdx.x % SIZE; }
  __device__ static void sync() {
    if (BLOCK_) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }
};

template <class T> struct HashTable {
  uint32* fill;
  int32* near;
  int32* far;
  uint32 depth;

  // `fills` and `slots` are the block's, with BUCKETS words per team and LEVELS times as many; `scratch` is
  // the grid's, with depth - LEVELS times as many per team.
  __device__ HashTable(uint32* fills, int32* slots, int32* scratch, uint32 depth) : depth(depth) {
    uint32 team = threadIdx.x / T::SIZE;
    fill = fills + team * T::BUCKETS;
    near = slots + team * T::BUCKETS * LEVELS;
    uint64 table = uint64(blockIdx.x) * (blockDim.x / T::SIZE) + team;
    far = depth > LEVELS ? scratch + table * T::BUCKETS * (depth - LEVELS) : scratch;
  }

  __device__ int32& slot(uint32 level, uint32 bucket) {
    if (level < LEVELS) { return near[level * T::BUCKETS + bucket]; }
    return far[uint64(level - LEVELS) * T::BUCKETS + bucket];
  }

  __device__ void clear() {
    for (uint32 k = T::rank(); k < T::BUCKETS; k += T::SIZE) { fill[k] = 0; }
  }

  // `fill` may exceed the depth: such a bucket is full.
  __device__ uint32 insert(int32 x) {
    uint32 bucket = uint32(x) % T::BUCKETS, level;
    while ((level = atomicAdd(fill + bucket, 1u)) >= depth) { bucket = (bucket + 1) % T::BUCKETS; }
    slot(level, bucket) = x;
    return level + 1;
  }

  // Adds the number of compared entries to `reads`.
  __device__ bool contains(int32 x, uint64& reads) {
    uint32 bucket = uint32(x) % T::BUCKETS;
    for (;;) {
      uint32 size = fill[bucket];
      for (uint32 level = 0; level < min(size, depth); level++) {
        reads++;
        if (slot(level, bucket) == x) { return true; }
      }
      if (size < depth) { return false; }
      bucket = (bucket + 1) % T::BUCKETS;
    }
  }

  __device__ bool contains(int32 x) {
    uint64 reads = 0;
    return contains(x, reads);
  }

  // Builds the table of a list; all threads of the team call it. Returns the longest bucket that this thread filled.
  __device__ uint32 build(const int32* list, int64 size) {
    uint32 longest = 0;
    T::sync();
    clear();
    T::sync();
    for (int64 i = T::rank(); i < size; i += T::SIZE) { longest = max(longest, insert(list[i])); }
    T::sync();
    return longest;
  }
};
