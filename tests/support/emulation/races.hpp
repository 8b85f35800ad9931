// Data races of kernels on the host: who read and wrote a word since what orders it.
//
// Kernels are compiled with -fsanitize=thread, which calls `__tsan_*` before each load and store; those functions are
// ours, in races.cpp, and no library of the sanitizer's is linked. Of each word of shared and of global memory they keep
// the accesses that a later one may conflict with. Two accesses conflict if one writes, not both are atomic, and nothing
// orders them: the end of the launch, __syncthreads of their block, or __syncwarp with both lanes in its mask. Shuffles
// and votes order nothing, as CUDA says of them. What was ordered is known whatever turns the threads took.
//
// An access to a volatile, and one that a kernel names by RACY_READ or RACY_WRITE, is as atomic as an atomic function.

#pragma once

#include <cstddef>
#include <cstdint>

namespace races {

enum Kind : unsigned { READS, WRITES, CHANGES, READS_RACY };  // CHANGES: atomic; READS_RACY: a read that is meant so

struct Report {
  bool shared;
  uintptr_t address;
  unsigned size;
  struct Side {
    unsigned block, thread, kind;
    uintptr_t code;  // from the library's first byte on
  } now, before;
};

// What the emulation says.
void launch_begins(const void* stacks, size_t stack_bytes, const void* shared, size_t shared_bytes);
void block_begins(unsigned block, unsigned threads);
void block_ordered();
void warp_ordered(unsigned warp, unsigned mask);
void access(const void* at, unsigned size, Kind kind, const void* code);

}  // namespace races

// What the emulation has: the thread that runs, and what to do about a race.
extern "C" unsigned races_thread();
extern "C" void races_found(const races::Report&);
