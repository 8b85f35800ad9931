// See races.hpp. Compiled without the sanitizer.

#include "races.hpp"

#include <cstring>
#include <memory>
#include <unordered_map>

extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));
extern "C" char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));

namespace races {
namespace {

constexpr unsigned WARP = 32, MOST_THREADS = 1024, WORD = 4, SLOTS = 6, PAGE = 4096;
constexpr unsigned CONFLICTS[] = {1u << WRITES | 1u << CHANGES, 15, 1u << READS | 1u << WRITES, 1u << WRITES};
constexpr unsigned REPLACES[] = {1u << READS | 1u << READS_RACY, 15, 1u << CHANGES | 1u << READS_RACY, 1u << READS_RACY};

// Of some bytes of a word, in a mask.
struct Access {
  uint32_t block, clock, code;
  uint32_t thread : 10, kind : 2, bytes : 4, held : 1;
};

struct Word {
  Access slots[SLOTS];
};

struct Page {
  Word words[PAGE / WORD];
};

struct Range {
  uintptr_t begin = 0, end = 0;
  bool has(uintptr_t at) const { return at - begin < end - begin; }
};

Range stacks, dynamic_shared, static_shared;
Page* shared_pages = nullptr;  // dynamic, then static
std::unique_ptr<Page[]> shared_memory;
size_t shared_count, dynamic_count;
std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
uintptr_t last_number;
Page* last_page;

unsigned block, threads, base;  // accesses of the block before clock `base` are ordered before all that come
unsigned clocks[MOST_THREADS];
unsigned seen[MOST_THREADS][WARP];  // clock of each lane of the warp from which on its accesses are not ordered before

size_t page_count(const Range& range) { return range.end == range.begin ? 0 : (range.end - 1) / PAGE - range.begin / PAGE + 1; }

// Null of memory that is nobody else's.
Page* page_of(uintptr_t at, bool& shared) {
  if (stacks.has(at)) { return nullptr; }
  shared = true;
  if (dynamic_shared.has(at)) { return shared_pages + (at / PAGE - dynamic_shared.begin / PAGE); }
  if (static_shared.has(at)) { return shared_pages + dynamic_count + (at / PAGE - static_shared.begin / PAGE); }
  if (at - uintptr_t(__ehdr_start) < uintptr_t(_end) - uintptr_t(__ehdr_start)) { return nullptr; }
  shared = false;
  uintptr_t number = at / PAGE;
  if (!last_page || number != last_number) {
    std::unique_ptr<Page>& found = pages[number];
    if (!found) { found = std::make_unique<Page>(); }
    last_number = number;
    last_page = found.get();
  }
  return last_page;
}

bool ordered(const Access& before, unsigned thread) {
  if (before.block != block) { return false; }
  if (before.thread == thread || before.clock < base) { return true; }
  return before.thread / WARP == thread / WARP && before.clock < seen[thread][before.thread % WARP];
}

void note(Word& word, Access mine, uintptr_t at, unsigned size, bool shared) {
  Access* place = nullptr;
  for (Access& other : word.slots) {
    if (!other.held) {
      if (!place || place->held) { place = &other; }
      continue;
    }
    bool before = ordered(other, mine.thread);
    if (!before && other.bytes & mine.bytes && CONFLICTS[mine.kind] >> other.kind & 1) {
      races_found({shared, at, size, {block, mine.thread, mine.kind, mine.code}, {other.block, other.thread, other.kind, other.code}});
      return;
    }
    // What conflicts with the other conflicts with this one, or comes after both.
    if (before && !(other.bytes & ~mine.bytes) && REPLACES[mine.kind] >> other.kind & 1) {
      other.held = 0;
      if (!place || place->held) { place = &other; }
    }
  }
  // All are others that this one is not ordered with: the place of one of its own kind, so that kinds do not drive out
  // each other.
  if (!place) {
    place = &word.slots[mine.code % SLOTS];
    for (Access& other : word.slots) {
      if (other.kind == mine.kind) { place = &other; }
    }
  }
  *place = mine;
}

}  // namespace

void launch_begins(const void* stack, size_t stack_bytes, const void* shared, size_t shared_bytes) {
  stacks = {uintptr_t(stack), uintptr_t(stack) + stack_bytes};
  dynamic_shared = {uintptr_t(shared), uintptr_t(shared) + shared_bytes};
  static_shared = {uintptr_t(__start_shared_memory), uintptr_t(__stop_shared_memory)};
  dynamic_count = page_count(dynamic_shared);
  size_t count = dynamic_count + page_count(static_shared);
  if (count > shared_count || !shared_memory) { shared_memory = std::make_unique<Page[]>(count + 1); }
  shared_count = count;
  shared_pages = shared_memory.get();
  pages.clear();
  last_page = nullptr;
}

void block_begins(unsigned number, unsigned size) {
  block = number;
  threads = size;
  base = 1;
  for (unsigned t = 0; t < size; t++) { clocks[t] = 1; }
  std::memset(seen, 0, sizeof(seen[0]) * size);
  std::memset(static_cast<void*>(shared_pages), 0, shared_count * sizeof(Page));
}

void block_ordered() {
  for (unsigned t = 0; t < threads; t++) { base = clocks[t] >= base ? clocks[t] + 1 : base; }
  for (unsigned t = 0; t < threads; t++) { clocks[t] = base; }
}

void warp_ordered(unsigned warp, unsigned mask) {
  unsigned all[WARP] = {}, first = warp * WARP;
  for (unsigned left = mask; left; left &= left - 1) {
    unsigned mine = __builtin_ctz(left);
    for (unsigned lane = 0; lane < WARP; lane++) {
      if (seen[first + mine][lane] > all[lane]) { all[lane] = seen[first + mine][lane]; }
    }
    if (++clocks[first + mine] > all[mine]) { all[mine] = clocks[first + mine]; }
  }
  for (unsigned left = mask; left; left &= left - 1) {
    std::memcpy(seen[first + __builtin_ctz(left)], all, sizeof all);
  }
}

void access(const void* pointer, unsigned size, Kind kind, const void* code) {
  uintptr_t at = uintptr_t(pointer), end = at + size;
  unsigned thread = races_thread();
  for (uintptr_t word = at / WORD * WORD; word < end; word += WORD) {
    bool shared;
    Page* page = page_of(word, shared);
    if (!page) { return; }
    unsigned bytes = 15;
    if (word < at) { bytes &= 15u << (at - word); }
    if (word + WORD > end) { bytes &= (1u << (end - word)) - 1; }
    Access mine = {block, clocks[thread], uint32_t(uintptr_t(code) - uintptr_t(__ehdr_start)), thread, kind, bytes & 15, 1};
    note(page->words[word % PAGE / WORD], mine, at, size, shared);
  }
}

}  // namespace races

#define HERE __builtin_return_address(0)
#define WATCHED(size)                                                                                            \
  void __tsan_read##size(void* at) { races::access(at, size, races::READS, HERE); }                              \
  void __tsan_write##size(void* at) { races::access(at, size, races::WRITES, HERE); }                            \
  void __tsan_unaligned_read##size(void* at) { races::access(at, size, races::READS, HERE); }                    \
  void __tsan_unaligned_write##size(void* at) { races::access(at, size, races::WRITES, HERE); }                  \
  void __tsan_volatile_read##size(void* at) { races::access(at, size, races::READS_RACY, HERE); }                \
  void __tsan_volatile_write##size(void* at) { races::access(at, size, races::CHANGES, HERE); }                  \
  void __tsan_unaligned_volatile_read##size(void* at) { races::access(at, size, races::READS_RACY, HERE); }      \
  void __tsan_unaligned_volatile_write##size(void* at) { races::access(at, size, races::CHANGES, HERE); }

#pragma GCC visibility push(hidden)
extern "C" {
WATCHED(1)
WATCHED(2)
WATCHED(4)
WATCHED(8)
WATCHED(16)
void __tsan_init() {}
void __tsan_read_range(void* at, size_t size) { races::access(at, unsigned(size), races::READS, HERE); }
void __tsan_write_range(void* at, size_t size) { races::access(at, unsigned(size), races::WRITES, HERE); }
}
#pragma GCC visibility pop
