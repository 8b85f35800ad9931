// CUDA C++ on the host, for tests: a fibre per CUDA thread, one thread block at a time.
//
// Kernels are compiled as they are, by a C++17 compiler. A fibre runs until it waits for others:
// at __syncthreads, or at a warp's vote, shuffle or __syncwarp. Threads take turns in ascending or
// descending order. What a GPU leaves undefined is an error here: threads of a block that wait at
// different barriers, or exit while others wait; lanes named in a mask that never come.
//
// It shows whether the logic is right. It shows neither memory-model races nor speed.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("shared_memory")))
#define CUDA_ON_HOST 1

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
struct dim3 { unsigned x, y, z; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

static dim3 threadIdx, blockIdx, blockDim, gridDim;
extern "C" char __start_shared_memory[] __attribute__((weak));
extern "C" char __stop_shared_memory[] __attribute__((weak));

namespace host {

constexpr unsigned WARP = 32, MOST_THREADS = 1024, STACK = 1 << 16, MOST_SHARED = 1 << 18, GUARD = 1 << 10;
alignas(128) static unsigned char dynamic_shared[MOST_SHARED + GUARD];
static size_t shared_bytes;

enum class State { ready, at_barrier, at_warp, done };

struct Fibre {
  State state;
  void* resume[5];           // as __builtin_setjmp leaves it, ten times as fast as setjmp
  int line;                  // where it waits
  unsigned mask;             // the lanes that it waits for
  uint64_t value, seen[WARP];
};

static Fibre fibres[MOST_THREADS];
static bool started[MOST_THREADS];
static char stacks[MOST_THREADS][STACK];
static void* scheduler[5];
static volatile bool failed;
static unsigned current;
static char error[256];
static void (*body)(void*);
static void* arguments;

[[noreturn, gnu::noinline]] inline void jump(void** to) { __builtin_longjmp(to, 1); }

[[noreturn]] inline void fail(const char* what, int line) {
  std::snprintf(error, sizeof error, "block %u, thread %u, line %d: %s", blockIdx.x, current, line, what);
  failed = true;
  jump(scheduler);
}

[[gnu::noinline]] inline void wait(State state, int line) {
  Fibre& me = fibres[current];
  me.state = state;
  me.line = line;
  if (__builtin_setjmp(me.resume) == 0) { jump(scheduler); }
}

// A fibre outlives its thread: it waits for the thread of the next block that has its number.
[[gnu::noinline]] inline void enter() {
  while (true) {
    body(arguments);
    Fibre& me = fibres[current];
    me.state = State::done;
    if (__builtin_setjmp(me.resume) == 0) { jump(scheduler); }
  }
}

inline void start(unsigned thread) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks[thread];
  context.uc_stack.ss_size = STACK - thread % 61 * 256;  // else all stacks share the same lines of the cache
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

inline void barrier(int line) { wait(State::at_barrier, line); }

// Exchange values with the lanes of `mask`; the last one to come lets all go on.
inline const uint64_t* exchange(unsigned mask, uint64_t value, int line) {
  unsigned lane = current % WARP, first = current - lane;
  Fibre& me = fibres[current];
  if (!(mask >> lane & 1)) { fail("a lane calls a warp function whose mask leaves it out", line); }
  me.value = value;
  me.mask = mask;
  me.line = line;
  for (unsigned k = 0; k < WARP; k++) {
    if (k == lane || !(mask >> k & 1)) { continue; }
    if (first + k >= blockDim.x) { fail("a mask names a lane that the block does not have", line); }
    const Fibre& other = fibres[first + k];
    if (other.state == State::done) { fail("a mask names a lane that has exited", line); }
    if (other.state != State::at_warp || other.line != line || other.mask != mask) {
      wait(State::at_warp, line);
      return me.seen;
    }
  }
  uint64_t values[WARP] = {};
  for (unsigned k = 0; k < WARP; k++) {
    if (mask >> k & 1) { values[k] = fibres[first + k].value; }
  }
  for (unsigned k = 0; k < WARP; k++) {
    if (!(mask >> k & 1)) { continue; }
    std::memcpy(fibres[first + k].seen, values, sizeof values);
    fibres[first + k].state = State::ready;
  }
  return me.seen;
}

template <class T> uint64_t as_bits(T x) {
  static_assert(sizeof(T) <= 8, "a warp function takes at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T> T from_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T> T shuffle(unsigned mask, T x, unsigned lane, int line) {
  const uint64_t* seen = exchange(mask, as_bits(x), line);
  if (!(mask >> lane & 1)) { fail("a shuffle reads a lane that its mask leaves out", line); }
  return from_bits<T>(seen[lane]);
}

template <class T> T shuffle_up(unsigned mask, T x, unsigned delta, int line) {
  unsigned lane = current % WARP;
  return shuffle(mask, x, lane >= delta ? lane - delta : lane, line);
}

template <class T> T shuffle_down(unsigned mask, T x, unsigned delta, int line) {
  unsigned lane = current % WARP;
  return shuffle(mask, x, lane + delta < WARP ? lane + delta : lane, line);
}

inline unsigned ballot(unsigned mask, bool vote, int line) {
  const uint64_t* seen = exchange(mask, vote, line);
  unsigned votes = 0;
  for (unsigned k = 0; k < WARP; k++) { votes |= unsigned(seen[k]) << k; }
  return votes;
}

inline void sync_warp(int line, unsigned mask = ~0u) { exchange(mask, 0, line); }

// Let the waiting threads go, once all wait at one barrier. False when nobody can go on.
inline bool release(unsigned threads) {
  unsigned done = 0;
  int line = -1;
  for (unsigned i = 0; i < threads; i++) {
    if (fibres[i].state == State::ready) { return true; }
  }
  for (unsigned i = 0; i < threads; i++) {
    const Fibre& f = fibres[i];
    current = i;
    if (f.state == State::done) { done++; continue; }
    if (f.state == State::at_warp) { fail("deadlock: a lane waits for lanes of its warp that do not come", f.line); }
    if (line >= 0 && line != f.line) { fail("divergent barrier: threads of a block wait at different barriers", f.line); }
    line = f.line;
  }
  if (done == threads) { return false; }
  if (done) { fail("divergent barrier: some threads of the block have exited", line); }
  for (unsigned i = 0; i < threads; i++) { fibres[i].state = State::ready; }
  return true;
}

// Run a thread until it waits.
[[gnu::noinline]] inline void run(unsigned thread) {
  if (__builtin_setjmp(scheduler)) { return; }
  current = thread;
  threadIdx = {thread, 0, 0};
  if (started[thread]) { jump(fibres[thread].resume); }
  started[thread] = true;
  start(thread);
}

inline bool run_block(bool reverse) {
  unsigned threads = blockDim.x;
  std::memset(dynamic_shared, 0xA5, shared_bytes + GUARD);
  if (__start_shared_memory) { std::memset(__start_shared_memory, 0xA5, __stop_shared_memory - __start_shared_memory); }
  for (unsigned i = 0; i < threads; i++) { fibres[i].state = State::ready; }
  do {
    for (unsigned turn = 0; turn < threads; turn++) {
      unsigned i = reverse ? threads - 1 - turn : turn;
      if (fibres[i].state != State::ready) { continue; }
      run(i);
      if (failed) { return false; }
    }
    if (__builtin_setjmp(scheduler)) { return false; }
  } while (release(threads));
  for (size_t k = shared_bytes; k < shared_bytes + GUARD; k++) {
    if (dynamic_shared[k] != 0xA5) {
      std::snprintf(error, sizeof error, "block %u writes past its %zu bytes of dynamic shared memory", blockIdx.x, shared_bytes);
      return false;
    }
  }
  return true;
}

template <class... P> struct Call {
  void (*kernel)(P...);
  void** values;
  template <size_t... I> void apply(std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<std::remove_reference_t<P>>*>(values[I])...);
  }
  static void run(void* self) { static_cast<Call*>(self)->apply(std::index_sequence_for<P...>{}); }
};

// Run a grid, block after block; the text of what went wrong, or null.
template <class... P>
const char* launch(void (*kernel)(P...), unsigned grid, unsigned block, size_t shared, bool reverse, void** values) {
  Call<P...> call{kernel, values};
  body = Call<P...>::run;
  arguments = &call;
  shared_bytes = shared;
  gridDim = {grid, 1, 1};
  blockDim = {block, 1, 1};
  if (block == 0 || block > MOST_THREADS || shared > MOST_SHARED) { return "bad launch: block or shared memory too large"; }
  for (unsigned b = 0; b < grid; b++) {
    blockIdx = {reverse ? grid - 1 - b : b, 0, 0};
    if (!run_block(reverse)) {
      failed = false;
      std::memset(started, 0, sizeof started);  // some are in the middle of a thread
      return error;
    }
  }
  return nullptr;
}

}  // namespace host

#define __syncthreads() host::barrier(__LINE__)
#define __syncwarp(...) host::sync_warp(__LINE__ __VA_OPT__(,) __VA_ARGS__)
#define __shfl_sync(mask, x, lane) host::shuffle(mask, x, lane, __LINE__)
#define __shfl_up_sync(mask, x, delta) host::shuffle_up(mask, x, delta, __LINE__)
#define __shfl_down_sync(mask, x, delta) host::shuffle_down(mask, x, delta, __LINE__)
#define __shfl_xor_sync(mask, x, bits) host::shuffle(mask, x, (threadIdx.x % 32) ^ (bits), __LINE__)
#define __ballot_sync(mask, vote) host::ballot(mask, vote, __LINE__)
#define __any_sync(mask, vote) (host::ballot(mask, vote, __LINE__) != 0)
#define __all_sync(mask, vote) (host::ballot(mask, !(vote), __LINE__) == 0)

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

template <class T> T exchanged(T* at, T with) { T old = *at; *at = with; return old; }
template <class T> T atomicAdd(T* at, T x) { return exchanged(at, T(*at + x)); }
template <class T> T atomicOr(T* at, T x) { return exchanged(at, T(*at | x)); }
template <class T> T atomicMax(T* at, T x) { return exchanged(at, max(*at, x)); }
template <class T> T atomicExch(T* at, T x) { return exchanged(at, x); }
template <class T> T atomicCAS(T* at, T expected, T x) { return exchanged(at, *at == expected ? x : *at); }
