// CUDA C++ on the host, for tests: a fibre per CUDA thread, one thread block at a time.
//
// Kernels are compiled as they are, by a C++17 compiler. A fibre runs until it waits for others:
// at __syncthreads, or at a warp's vote, shuffle or __syncwarp. Threads take turns in ascending or
// descending order. What a GPU leaves undefined is an error here: threads of a block that wait at
// different barriers, or exit while others wait; lanes named in a mask that never come.
//
// It shows whether the logic is right, and with DETECT_RACES (`races.hpp`) what two threads do to a word that nothing
// orders. It does not show speed.

#pragma once

#include <cmath>
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

#ifdef DETECT_RACES
#include "races.hpp"
#define UNWATCHED [[gnu::noinline, gnu::no_sanitize("thread")]]
#define IF_RACES(...) __VA_ARGS__
#else
#define UNWATCHED inline
#define IF_RACES(...)
#endif

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

enum class State { at_barrier, at_warp, done };  // of a thread that does not run

struct Fibre {
  State state;
  int line;                  // where it waits
  void* resume[5];           // as __builtin_setjmp leaves it, ten times as fast as setjmp
};

// Lanes of a warp that exchange values: they gather until all of `mask` have come, then each reads.
struct Meeting {
  unsigned mask, came, unread, votes;
  int line;
  uint64_t values[WARP];
};

// Sets are bits, of a warp's lanes or of its meetings: a lane is in at most one.
struct Warp {
  unsigned there, ready, gone, held;
  Meeting meetings[WARP];
};

static Fibre fibres[MOST_THREADS];
static Warp warps[MOST_THREADS / WARP];
static bool started[MOST_THREADS];
static char stacks[MOST_THREADS][STACK];
static void* scheduler[5];
static volatile bool failed;
static bool backwards;             // whether threads take turns in descending order
static unsigned current, to_come;  // the thread that runs; the lanes of its warp whose turn is still to come
static char error[256];
static void (*body)(void*);
static void* arguments;

[[noreturn, gnu::noinline]] inline void jump(void** to) { __builtin_longjmp(to, 1); }

[[noreturn]] inline void fail(const char* what, int line) {
  std::snprintf(error, sizeof error, "block %u, thread %u, line %d: %s", blockIdx.x, current, line, what);
  failed = true;
  jump(scheduler);
}

UNWATCHED void start(unsigned thread);

// Let the next lane of the warp run that can and has not had its turn; else the scheduler.
[[noreturn, gnu::always_inline]] inline void next(unsigned w) {
  unsigned can = warps[w].ready & to_come;
  if (!can) { jump(scheduler); }
  unsigned lane = backwards ? WARP - 1 - __builtin_clz(can) : __builtin_ctz(can);
  to_come = backwards ? (1u << lane) - 1 : ~0u << lane << 1;
  warps[w].ready &= ~(1u << lane);
  current = w * WARP + lane;
  threadIdx = {current, 0, 0};
  if (!started[current]) { start(current); }
  jump(fibres[current].resume);
}

[[gnu::noinline]] inline void wait(State state, int line) {
  Fibre& me = fibres[current];
  me.state = state;
  me.line = line;
  if (__builtin_setjmp(me.resume) == 0) { next(current / WARP); }
}

// A fibre outlives its thread: it waits for the thread of the next block that has its number.
[[gnu::noinline]] inline void enter() {
  while (true) {
    body(arguments);
    Fibre& me = fibres[current];
    me.state = State::done;
    warps[current / WARP].gone |= 1u << current % WARP;
    if (__builtin_setjmp(me.resume) == 0) { next(current / WARP); }
  }
}

[[gnu::noinline]] UNWATCHED void start(unsigned thread) {
  started[thread] = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks[thread];
  context.uc_stack.ss_size = STACK - thread % 61 * 256;  // else all stacks share the same lines of the cache
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

inline void barrier(int line) { wait(State::at_barrier, line); }

// The meeting of the lanes of `mask` at this line that are still to come together; a new one if there is none.
inline Meeting& meeting(Warp& warp, unsigned mask, int line) {
  for (unsigned held = warp.held; held; held &= held - 1) {
    Meeting& found = warp.meetings[__builtin_ctz(held)];
    if (found.mask == mask && found.line == line && found.came != mask) { return found; }
  }
  unsigned free = __builtin_ctz(~warp.held);
  warp.held |= 1u << free;
  Meeting& made = warp.meetings[free];
  made.mask = mask;
  made.line = line;
  made.came = made.votes = 0;
  return made;
}

// Exchange values with the lanes of `mask`; the last one to come lets all go on. To be read at once.
inline const Meeting& exchange(unsigned mask, uint64_t value, int line, [[maybe_unused]] bool orders = false) {
  unsigned lane = current % WARP, me = 1u << lane;
  Warp& warp = warps[current / WARP];
  if (!(mask & me)) { fail("a lane calls a warp function whose mask leaves it out", line); }
  if (mask & ~warp.there) { fail("a mask names a lane that the block does not have", line); }
  if (mask & warp.gone) { fail("a mask names a lane that has exited", line); }
  Meeting& all = meeting(warp, mask, line);
  all.values[lane] = value;
  all.votes |= unsigned(value != 0) << lane;
  all.came |= me;
  if (all.came != mask) {
    wait(State::at_warp, line);
  } else {
    IF_RACES(if (orders) { races::warp_ordered(current / WARP, mask); })
    all.unread = mask;
    warp.ready |= mask & ~me;
  }
  all.unread &= ~me;
  if (!all.unread) { warp.held &= ~(1u << (&all - warp.meetings)); }
  return all;
}

inline void escapes(void* variable) { asm volatile("" ::"r"(variable)); }

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
  const Meeting& all = exchange(mask, as_bits(x), line);
  if (!(mask >> lane & 1)) { fail("a shuffle reads a lane that its mask leaves out", line); }
  return from_bits<T>(all.values[lane]);
}

// The lane of a warp that is lane `lane` of its part of `width` lanes.
inline unsigned lane_of(unsigned lane, unsigned width = WARP) {
  return (current % WARP & ~(width - 1)) | (lane & (width - 1));
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
  return exchange(mask, vote, line).votes;
}

inline unsigned reduce_add(unsigned mask, unsigned x, int line) {
  const Meeting& all = exchange(mask, as_bits(x), line);
  unsigned sum = 0;
  for (unsigned left = mask; left; left &= left - 1) { sum += unsigned(all.values[__builtin_ctz(left)]); }
  return sum;
}

inline void sync_warp(int line, unsigned mask = ~0u) { exchange(mask, 0, line, true); }

// Let the waiting threads go, once all wait at one barrier. False when nobody can go on.
UNWATCHED bool release(unsigned threads) {
  unsigned done = 0;
  int line = -1;
  for (unsigned w = 0; w * WARP < threads; w++) {
    if (warps[w].ready) { return true; }
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
  IF_RACES(races::block_ordered();)
  for (unsigned w = 0; w * WARP < threads; w++) { warps[w].ready = warps[w].there; }
  return true;
}

// Run each thread of a warp that can once, in turn; those that this lets go on have theirs if it is still to come.
[[gnu::noinline]] UNWATCHED bool run_warp(unsigned w) {
  to_come = ~0u;
  if (__builtin_setjmp(scheduler) == 0) { next(w); }
  return !failed;
}

UNWATCHED bool run_block() {
  unsigned threads = blockDim.x, count = (threads + WARP - 1) / WARP;
  std::memset(dynamic_shared, 0xA5, shared_bytes + GUARD);
  if (__start_shared_memory) { std::memset(__start_shared_memory, 0xA5, __stop_shared_memory - __start_shared_memory); }
  for (unsigned w = 0; w < count; w++) {
    warps[w].there = warps[w].ready = threads - w * WARP < WARP ? (1u << threads % WARP) - 1 : ~0u;
    warps[w].gone = warps[w].held = 0;
  }
  IF_RACES(races::block_begins(blockIdx.x, threads);)
  do {
    for (unsigned turn = 0; turn < count; turn++) {
      if (!run_warp(backwards ? count - 1 - turn : turn)) { return false; }
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
UNWATCHED const char* launch(void (*kernel)(P...), unsigned grid, unsigned block, size_t shared, bool reverse, void** values) {
  Call<P...> call{kernel, values};
  body = Call<P...>::run;
  arguments = &call;
  shared_bytes = shared;
  backwards = reverse;
  gridDim = {grid, 1, 1};
  blockDim = {block, 1, 1};
  if (block == 0 || block > MOST_THREADS || shared > MOST_SHARED) { return "bad launch: block or shared memory too large"; }
  IF_RACES(races::launch_begins(stacks, sizeof stacks, dynamic_shared, shared + GUARD);)
  for (unsigned b = 0; b < grid; b++) {
    blockIdx = {reverse ? grid - 1 - b : b, 0, 0};
    if (!run_block()) {
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
#define __shfl_sync(mask, x, lane, ...) host::shuffle(mask, x, host::lane_of(lane __VA_OPT__(,) __VA_ARGS__), __LINE__)
#define __shfl_up_sync(mask, x, delta) host::shuffle_up(mask, x, delta, __LINE__)
#define __shfl_down_sync(mask, x, delta) host::shuffle_down(mask, x, delta, __LINE__)
#define __shfl_xor_sync(mask, value, bits) host::shuffle(mask, value, (threadIdx.x % 32) ^ (bits), __LINE__)
#define __reduce_add_sync(mask, x) host::reduce_add(mask, x, __LINE__)
#define __ballot_sync(mask, vote) host::ballot(mask, vote, __LINE__)
#define __any_sync(mask, vote) (host::ballot(mask, vote, __LINE__) != 0)
#define __all_sync(mask, vote) (host::ballot(mask, !(vote), __LINE__) == 0)

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (int k = 0; k < 4; k++) { result |= unsigned(bytes >> 8 * (selector >> 4 * k & 7) & 255) << 8 * k; }
  return result;
}
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
using std::sqrt;
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

namespace host {

// Change *at, and return what it was.
template <class T, class Change> UNWATCHED T changed(T* at, const Change& change) {
  IF_RACES(races::access(at, sizeof(T), races::CHANGES, __builtin_return_address(0));)
  T old = *at;
  *at = change(old);
  return old;
}

}  // namespace host

template <class T> [[gnu::always_inline]] inline T atomicAdd(T* at, T x) { return host::changed(at, [x](T old) { return T(old + x); }); }
template <class T> [[gnu::always_inline]] inline T atomicOr(T* at, T x) { return host::changed(at, [x](T old) { return T(old | x); }); }
template <class T> [[gnu::always_inline]] inline T atomicMax(T* at, T x) { return host::changed(at, [x](T old) { return max(old, x); }); }
template <class T> [[gnu::always_inline]] inline T atomicExch(T* at, T x) { return host::changed(at, [x](T) { return x; }); }
template <class T> [[gnu::always_inline]] inline T atomicCAS(T* at, T expected, T x) {
  return host::changed(at, [expected, x](T old) { return old == expected ? x : old; });
}

#ifdef DETECT_RACES
namespace host {

template <class T> UNWATCHED T racy_read(const T* at) {
  races::access(at, sizeof(T), races::READS_RACY, __builtin_return_address(0));
  return *at;
}

template <class T, class Value> UNWATCHED void racy_write(T* at, Value value) {
  races::access(at, sizeof(T), races::CHANGES, __builtin_return_address(0));
  *at = T(value);
}

}  // namespace host

#define RACY_READ(word, why) host::racy_read(&(word))
#define RACY_WRITE(word, value, why) host::racy_write(&(word), value)

extern "C" UNWATCHED unsigned races_thread() { return host::current; }

// Read by tests/support/emulation/host.py.
extern "C" UNWATCHED void races_found(const races::Report& race) {
  const auto &now = race.now, &before = race.before;
  std::snprintf(host::error, sizeof host::error, "race %d %zx %u %u %u %u %zx %u %u %u %zx", race.shared, size_t(race.address),
      race.size, now.block, now.thread, now.kind, size_t(now.code), before.block, before.thread, before.kind, size_t(before.code));
  host::failed = true;
  host::jump(host::scheduler);
}
#endif
