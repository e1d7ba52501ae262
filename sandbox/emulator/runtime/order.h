// Random orders that a seed decides: of blocks, of warps, of lanes.
#pragma once

#include <bit>

#include "abi.h"

namespace kw {

// SplitMix64: one well-mixed number after another.
inline u64 next_random(u64& state) {
  u64 z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// A permutation of 0 .. count - 1, without a table: four Feistel rounds over the next power of four, again and again
// until the result is in range.
inline u64 shuffled(u64 place, u64 count, u64 seed) {
  if (seed == 0 || count < 2) return place;
  int half = (std::bit_width(count - 1) + 1) / 2;
  u64 mask = (u64{1} << half) - 1;
  do {
    u64 left = place >> half, right = place & mask;
    for (u64 round = 0; round < 4; ++round) {
      u64 state = seed * 4 + round + right * 0x632be59bd9b4e019;
      u64 mixed = left ^ (next_random(state) & mask);
      left = right;
      right = mixed;
    }
    place = left << half | right;
  } while (place >= count);
  return place;
}

// Is it in the sample? Of `count` places, cut into `wanted` parts, one place of each part is, which the seed decides.
inline bool sampled(u64 place, u64 count, u64 wanted, u64 seed) {
  if (!wanted || wanted >= count) return true;
  using Wide = unsigned __int128;
  auto start = [&](u64 part) { return static_cast<u64>(Wide{part} * count / wanted); };
  u64 part = static_cast<u64>((Wide{place + 1} * wanted - 1) / count);
  u64 state = seed * 0x9e3779b97f4a7c15 + part;
  return place == start(part) + next_random(state) % (start(part + 1) - start(part));
}

}  // namespace kw
