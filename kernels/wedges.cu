// wedges: tests sampled wedges for a closing edge; see dasktc/backends/wedge_sample.py.
//
// A thread per stratum: a hash of its number draws a wedge of it, a bisection of the running sums of the rows' wedges
// finds the row, and another bisection, in the stream block, the edge. `triangles` counts closed wedges, `wedges` all.

__device__ __forceinline__ uint64 splitmix(uint64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ __forceinline__ int64 drawn(int64 k, int64 width, uint64 key) {
  return k * width + int64(splitmix(key + uint64(k + 1) * 0x9e3779b97f4a7c15ull) % uint64(width));
}

extern "C" __global__ void wedges_closed(
    Task t, const int64* ends, int64 rows, int64 first, int64 end, int64 before, int64 width, uint64 key, int64 one,
    Totals* totals) {
  Sums sums;
  int64 mine = ends[rows - 1];
  for (int64 base = first + first_of() / 32 * 32; base < end; base += all_threads()) {
    int64 k = base + threadIdx.x % 32;
    int64 wedge = k < end ? drawn(k, width, key) - before : -1;
    if (wedge < 0 || wedge >= mine) { continue; }
    int64 u = 0, behind = rows;  // the first row whose running sum is above the wedge
    while (u < behind) {
      int64 middle = u + ((behind - u) >> 1);
      bool below = ends[middle] <= wedge;
      u = below ? middle + 1 : u;
      behind = below ? behind : middle;
    }
    int64 place = wedge - (u ? ends[u - 1] : 0), high, low;
    if (one) {
      high = int64((1 + sqrt(1 + 8.0 * double(place))) / 2);
      high -= high * (high - 1) / 2 > place;
      high += (high + 1) * high / 2 <= place;
      low = place - high * (high - 1) / 2;
    } else {
      high = place / t.table.length(u);
      low = place % t.table.length(u);
    }
    int32 v = t.index.columns[t.index.offsets[u] + high], w = t.table.columns[t.table.offsets[u] + low];
    bool found = contains(t.stream.columns, t.stream.offsets[v], t.stream.offsets[v + 1], w);
    if (one && t.shift == BEHIND && !found) {
      found = contains(t.stream.columns, t.stream.offsets[w], t.stream.offsets[w + 1], v);
    }
    sums.triangles += found;
    sums.wedges++;
  }
  sums.add_up(totals);
}
