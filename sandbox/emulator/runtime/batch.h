// Accesses of full warps at regular addresses: checked and counted by the window, not by the lane.
//
// Lowered code found that each group of lanes stays within one window of 64 bytes around a base address
// (lowering/patterns.py). A batch is all its loads at constant offsets from that base, one after another with nothing
// in between that could change what a check says. Whatever these checks object to, they leave to the exact ones: they
// answer how many accesses of the batch, from the first, are checked and counted.
#pragma once

#include "checks.h"

namespace kw {

constexpr int MAX_GROUPS = 4;
constexpr u32 WINDOW_WORDS = 16;

// Written by lowered code (lowering/patterns.py).
struct alignas(64) Pattern {
  alignas(64) u8 index[LANES * 8];  // of each lane, in elements: u32s for 4-byte elements, u64s for 8-byte ones
  u64 origin[MAX_GROUPS];           // addresses of the windows in this process
  u32 words[MAX_GROUPS];            // bit i: some lane touches word i of the window
};

static_assert(offsetof(Pattern, origin) == 256);
static_assert(offsetof(Pattern, words) == 288);

// The pattern in words of 4 bytes.
struct Windows {
  u64 low[MAX_GROUPS];
  u32 words[MAX_GROUPS];
  u64 first, last;        // the lowest byte touched, and past the highest
};

template <u32 Size>
constexpr int GROUPS = LANES * static_cast<int>(Size) / 64;

template <u32 Size>
using PatternIndex = std::conditional_t<Size == 4, u32, u64>;

template <u32 Size>
inline Windows windows_of(const Pattern& pattern, u64 base) {
  Windows windows;
  windows.first = ~u64{0};
  windows.last = 0;
  for (int g = 0; g < GROUPS<Size>; ++g) {
    u64 low = pattern.origin[g] - base;
    windows.low[g] = low;
    windows.words[g] = pattern.words[g];
    windows.first = std::min(windows.first, low);
    windows.last = std::max<u64>(windows.last, low + 4 * (32 - std::countl_zero(windows.words[g])));
  }
  return windows;
}

}  // namespace kw
