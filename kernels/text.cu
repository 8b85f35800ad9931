// text: parses rows of integers from a text, in two passes over its bytes.
//
//   text_counts   counts, in each warp's share, the lines that are not blank
//   text_starts   one block: the first row of each share
//   text_rows     the two ids of each such line, 32-bit or, with WIDE, 64-bit
//
// A line belongs to the share with its first byte; a lane has BYTES neighbouring bytes. Texts are read as
// io/formats/rows.py reads them, and left to it where they differ from the plain case: odd[0] is set where a row does
// not hold two integers of at most DIGITS digits or begins with # or %, as a comment does, where a carriage return ends
// no line, and, with a separator, where a quote occurs anywhere. odd[1] is set where an id needs 64 bits.

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BYTES
#define BYTES 32  // bytes per lane
#endif
#ifndef DIGITS
#define DIGITS 18  // any integer of this many digits fits 64 bits
#endif
#ifndef SCAN
#define SCAN 1024  // threads of text_starts
#endif
#ifndef WIDE
#define WIDE 0
#endif

#if WIDE
using Id = int64;
#else
using Id = int32;
#endif
using uint8 = unsigned char;
constexpr uint8 NEWLINE = '\n', NO_SEPARATOR = NEWLINE;

__device__ __forceinline__ bool is_blank(uint8 c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != NEWLINE); }

struct Text {
  const uint8* bytes;
  int64 size;
  uint8 separator;  // NO_SEPARATOR: any run of blanks

  // The text is followed by the end of a line.
  __device__ uint8 at(int64 p) const { return p < size ? bytes[p] : NEWLINE; }
  __device__ bool starts_line(int64 p) const { return p == 0 || bytes[p - 1] == NEWLINE; }

  // Whether the line at p is a row.
  __device__ bool is_row(int64 p) const {
    uint8 c = at(p);
    while (is_blank(c)) { c = at(++p); }
    return c != NEWLINE;
  }

  __device__ int64 behind_blanks(int64 p) const {
    while (at(p) != separator && is_blank(at(p))) { p++; }
    return p;
  }

  // Skips what separates two fields; false where nothing does.
  __device__ bool next_field(int64& p) const {
    int64 from = p;
    p = behind_blanks(p);
    if (separator == NO_SEPARATOR) { return p > from; }
    if (at(p) != separator) { return false; }
    p = behind_blanks(p + 1);
    return true;
  }

  // Skips a field, whatever it contains.
  __device__ bool any_field(int64& p) const {
    int64 from = p;
    if (separator == NO_SEPARATOR) {
      while (at(p) != NEWLINE && !is_blank(at(p))) { p++; }
      return p > from;
    }
    while (at(p) != NEWLINE && at(p) != separator) { p++; }
    return true;
  }

  __device__ bool integer(int64& p, int64& value) const {
    bool negative = at(p) == '-';
    p += negative;
    int64 from = p, sum = 0;
    for (uint8 c = at(p); c >= '0' && c <= '9' && p - from <= DIGITS; c = at(++p)) { sum = 10 * sum + (c - '0'); }
    value = negative ? -sum : sum;
    return p > from && p - from <= DIGITS;
  }

  // The ids in the fields `first` and first + 1 + `between` of the row at p.
  __device__ bool row(int64 p, uint32 first, uint32 between, int64& a, int64& b) const {
    int64 head = p;
    while (is_blank(at(head))) { head++; }
    if (at(head) == '#' || at(head) == '%') { return false; }
    p = behind_blanks(p);
    for (uint32 k = 0; k < first; k++) {
      if (!any_field(p) || !next_field(p)) { return false; }
    }
    if (!integer(p, a) || !next_field(p)) { return false; }
    for (uint32 k = 0; k < between; k++) {
      if (!any_field(p) || !next_field(p)) { return false; }
    }
    if (!integer(p, b)) { return false; }
    uint8 c = at(p);
    if (separator == NO_SEPARATOR) { return c == NEWLINE || is_blank(c); }
    c = at(behind_blanks(p));
    return c == NEWLINE || c == separator;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    text_counts(const uint8* bytes, int64 size, int64 share, uint64* counts) {
  Text text{bytes, size, NO_SEPARATOR};
  uint64 rows = 0;
  int64 begin = first_of() / 32 * share, end = min(begin + share, size);
  for (int64 k = begin + threadIdx.x % 32 * BYTES; k < end; k += 32 * BYTES) {
    for (int64 p = k; p < min(k + BYTES, size); p++) { rows += text.starts_line(p) && text.is_row(p); }
  }
  rows = warp_sum(rows);
  if (threadIdx.x % 32 == 0) { counts[first_of() / 32] = rows; }
  if (first_of() == 0) { counts[all_threads() / 32] = 0; }
}

extern "C" __global__ void __launch_bounds__(SCAN) text_starts(uint64* counts, uint32 size) {
  __shared__ uint64 sums[SCAN / 32];
  starts_of<SCAN>(counts, size, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK) text_rows(const uint8* bytes, int64 size, int64 share,
    uint32 separator, uint32 first, uint32 between, const uint64* starts, Id* ids, Id* others, uint32* odd) {
  Text text{bytes, size, uint8(separator)};
  bool is_odd = false, is_wide = false;
  uint64 place = starts[first_of() / 32];
  int64 begin = first_of() / 32 * share, end = min(begin + share, size);
  for (int64 step = begin; step < end; step += 32 * BYTES) {
    uint32 lines = 0, rows = 0;
    int64 k = step + threadIdx.x % 32 * BYTES;
    for (uint32 i = 0; i < BYTES && k + i < size; i++) {
      uint8 c = bytes[k + i];
      is_odd |= (c == '"' && separator != NO_SEPARATOR) ||
                (c == '\r' && text.at(k + i + 1) != '\r' && text.at(k + i + 1) != NEWLINE);
      bool row = text.starts_line(k + i) && text.is_row(k + i);
      lines |= uint32(row) << i;
      rows += row;
    }
    uint32 ends = warp_ends(rows);
    uint64 mine = place + ends - rows;
    for (; lines; lines &= lines - 1, mine++) {
      int64 a = 0, b = 0;
      is_odd |= !text.row(k + __ffs(int(lines)) - 1, first, between, a, b);
      is_wide |= a != int32(a) || b != int32(b);
      ids[mine] = Id(a);
      others[mine] = Id(b);
    }
    place += __shfl_sync(ALL, ends, 31);
  }
  if (is_odd) { atomicOr(odd, 1u); }
  if (is_wide) { atomicOr(odd + 1, 1u); }
}
