// tiles: running sums over tiles that blocks work on at the same time.
//
// Decoupled look-back (Merrill and Garland 2016): a tile shows its own number at once, adds up those of the tiles before
// it until one of them shows the sum of all up to it, and shows such a sum itself. A state is a number with a flag in its
// upper two bits; states are 0 at first.

#ifndef WINDOW
#define WINDOW 16  // preceding tiles that are looked at together
#endif

template <class State> constexpr uint32 STATE_BITS = sizeof(State) * 8 - 2;
template <class State> constexpr State VALUE = (State(1) << STATE_BITS<State>) - 1;
template <class State> constexpr State OWN = State(1) << STATE_BITS<State>;
template <class State> constexpr State ALL_BEFORE = State(2) << STATE_BITS<State>;

template <class State> __device__ __forceinline__ State seen(const State* state) {
  return *const_cast<const volatile State*>(state);
}
template <class State> __device__ __forceinline__ void show(State* state, State value) {
  *const_cast<volatile State*>(state) = value;
}

// Adds up the numbers of the tiles before this one, from the nearest on; `states` starts with tile 0's, `stride` apart.
template <class State>
__device__ __forceinline__ State before_tile(const State* states, int64 tile, int64 stride) {
  State sum = 0;
  for (int64 at = tile - 1;; at -= WINDOW) {
    State near[WINDOW];
#pragma unroll
    for (int32 k = 0; k < WINDOW; k++) {
      near[k] = at >= k ? seen(states + (at - k) * stride) : ALL_BEFORE<State>;
    }
#pragma unroll
    for (int32 k = 0; k < WINDOW; k++) {
      while (near[k] == 0) { near[k] = seen(states + (at - k) * stride); }
      sum += near[k] & VALUE<State>;
      if (near[k] & ALL_BEFORE<State>) { return sum; }
    }
  }
}

// Tiles are taken in ascending order, in whatever order blocks start: earlier tiles are finished or under way.
__device__ __forceinline__ int64 next_tile(uint64* next, int64* shared) {
  if (threadIdx.x == 0) { *shared = int64(atomicAdd(next, uint64(1))); }
  __syncthreads();
  return *shared;
}
