// bitmatrix: counts the triangles of a graph of at most 2^15 vertices, by a symmetric bit matrix.
//
// Row x has bit y where x and y are neighbours. Setting the bits of an edge both ways removes duplicates: only the
// thread that finds the bit clear keeps the edge. No sort, no order and no rows of columns are needed, and an edge's
// common neighbours are the bits that both of its rows have. Each triangle is found at its three edges.
//
//   bitmatrix_set    sets the bits, writes each edge once as x << 16 | y, in no order, and counts degrees
//   bitmatrix_count  a group of lanes per edge: AND and popcount of two rows; edges by their end of lower degree
//   bitmatrix_sums   sums over the vertices, with which the counts are checked
//
// Keys are those of edges.cu, smaller << shift | larger; a loop's ends are equal. Sums: edges (32 bits), three times
// the triangles, bits read in both rows of all edges, vertices with an edge, sum of degrees, of their squares, and of
// in * out where edges point to the end of higher degree, or of equal degrees to the smaller id.
//
// The bits read must equal the sum of the squared degrees: each row is read as often as it has bits.
//
// One H200: ms from raw edges on the device, 32 bits, to the sums on the host, five launches and two waits.
// ego-Facebook; random edges: 200,000 over 20,000 and 32,000 vertices, 1,000,000 over 8,000.
//
//   version        ego-Facebook   200,000       200,000       1,000,000
//   1 predicted    0.15           0.3           0.5           0.5
//     measured     0.22           0.39          0.54          0.51
//     expected were 6 us a launch, 20 a wait, and 16 bytes a word at 4 TB/s
//     learnt: of ego-Facebook's 0.22, 0.11 pass between events around clearing and the last three launches. The host
//     makes the rest: a launch 6 us, an allocation 8, a wait 12

#ifndef BLOCK
#define BLOCK 256
#endif

enum Sum { EDGES, CORNERS, MET, VERTICES, ENDS, SQUARES, WEDGES };

extern "C" __global__ void __launch_bounds__(BLOCK) bitmatrix_set(const int64* keys, int64 size, uint32 shift,
    uint32 words, uint32* bits, uint32* degrees, uint32* edges, uint64* sums) {
  uint32 lane = threadIdx.x % 32;
  for (int64 k = first_of(); k - lane < size; k += all_threads()) {
    int64 key = k < size ? keys[k] : 0;
    uint32 x = uint32(key >> shift), y = uint32(key & ((int64(1) << shift) - 1)), bit = 1u << (y & 31);
    bool mine = x != y && !(atomicOr(bits + x * words + (y >> 5), bit) & bit);
    if (mine) {
      atomicOr(bits + y * words + (x >> 5), 1u << (x & 31));
      atomicAdd(degrees + x, 1u);
      atomicAdd(degrees + y, 1u);
    }
    uint32 place = reserve(reinterpret_cast<uint32*>(sums + EDGES), mine);
    if (mine) { edges[place] = x << 16 | y; }
  }
}

// `words` are 64 bits wide here; `lanes`, a power of two up to 32, process an edge together.
extern "C" __global__ void __launch_bounds__(BLOCK) bitmatrix_count(const uint32* edges, uint32 words, uint32 lanes,
    const uint64* bits, const uint32* degrees, uint32* outward, uint64* sums) {
  int64 groups = all_threads() / lanes, number = int64(sums[EDGES]);
  uint32 lane = threadIdx.x % lanes;
  uint64 corners = 0, met = 0;
  for (int64 e = first_of() / lanes; e < number; e += groups) {
    uint32 x = edges[e] >> 16, y = edges[e] & 0xffff;
    const uint64 *left = bits + x * words, *right = bits + y * words;
    for (uint32 w = lane; w < words; w += lanes) {
      uint64 of_x = left[w], of_y = right[w];
      corners += __popcll(of_x & of_y);
      met += __popcll(of_x) + __popcll(of_y);
    }
    if (lane == 0) { atomicAdd(outward + (degrees[x] < degrees[y] ? x : y), 1u); }
  }
  add_to(sums + CORNERS, corners);
  add_to(sums + MET, met);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bitmatrix_sums(int64 size, const uint32* degrees, const uint32* outward, uint64* sums) {
  uint64 vertices = 0, ends = 0, squares = 0, wedges = 0;
  for (int64 v = first_of(); v < size; v += all_threads()) {
    uint64 degree = degrees[v], out = outward[v];
    vertices += degree > 0;
    ends += degree;
    squares += degree * degree;
    wedges += (degree - out) * out;
  }
  add_to(sums + VERTICES, vertices);
  add_to(sums + ENDS, ends);
  add_to(sums + SQUARES, squares);
  add_to(sums + WEDGES, wedges);
}
