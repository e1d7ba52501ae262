// Stores of full warps to places in a row in global memory: checked and counted by the half, not by the lane.
#pragma once

#include "checks.h"

namespace kw {

// The regular half: 16 lanes at one place, or at places in a row. Most accesses of a full warp are two such halves, and
// then checks and marks are a few vector operations.
constexpr int HALF = LANES / 2;

template <u32 Bytes, class Address>
inline bool half_in_a_row(const Address* addresses) {
  u64 off = addresses[0] & (Bytes - 1);
  for (u64 i = 0; i < HALF; ++i) off |= addresses[i] ^ (addresses[0] + Bytes * i);
  return off == 0;
}

// Counts the sectors of two halves that write `bytes` each, and notes them as stored to.
inline u64 store_sectors(const u64 (&at)[2], u64 bytes) {
  u64 first[2], last[2], total = 0;
  for (int h = 0; h < 2; ++h) {
    first[h] = at[h] >> 5;
    last[h] = (at[h] + bytes - 1) >> 5;
    total += last[h] - first[h] + 1;
    std::memset(Device::stored(at[h]), 1, last[h] - first[h] + 1);
  }
  return total - (last[0] == first[1] || last[1] == first[0]);
}

// Which lanes would store what is there?
template <u32 Size, u32 Count>
u32 silent_lanes(const u64 (&at)[2], const u8* data) {
  u32 silent = 0;
  for (u32 lane = 0; lane < LANES; ++lane) {
    const u8* place = Device::pointer(at[lane / HALF]) + lane % HALF * (Size * Count);
    bool same = true;
    for (u32 k = 0; k < Count; ++k) same &= std::memcmp(place + k * Size, data + (k * LANES + lane) * Size, Size) == 0;
    silent |= u32{same} << lane;
  }
  return silent;
}

template <u32 Size, u32 Count>
void put_rows(const u64 (&at)[2], const u8* data, const Allocation& allocation) {
  constexpr u64 Bytes = Size * Count, All = Bytes * HALF;
  for (u32 h = 0; h < 2; ++h) {
    u8* to = Device::pointer(at[h]);
    const u8* from = data + h * HALF * Size;
    if constexpr (Count == 1) {
      std::memcpy(to, from, All);
    } else {
      for (u32 i = 0; i < HALF; ++i) {
        u8 piece[Bytes];
        for (u32 k = 0; k < Count; ++k) std::memcpy(piece + k * Size, from + (k * LANES + i) * Size, Size);
        write_whole<Bytes>(to + i * Bytes, piece);
      }
    }
    if (!allocation.written()) std::memset(Device::shadow(at[h]), 1, All);
  }
}

// A full warp whose halves each store to places in a row. False, and nothing done, where it takes a closer look.
template <u32 Size, u32 Count, class Address>
bool store_rows(Warp* warp, u32 site, const Address* addresses, i64 offset, const u8* data) {
  constexpr u64 Bytes = Size * Count, All = Bytes * HALF;
  if (!half_in_a_row<Bytes>(addresses) || !half_in_a_row<Bytes>(addresses + HALF) || offset & (Bytes - 1)) return false;
  const u64 at[2] = {addresses[0] + static_cast<u64>(offset), addresses[HALF] + static_cast<u64>(offset)};
  u64 low = std::min(at[0], at[1]), high = std::max(at[0], at[1]);
  const Site& what = warp->module->sites[site];
  if (high - low < All || what.strong || what.releases) return false;
  const Allocation* allocation = allocation_around(*warp->worker, low, high + All - low);
  if (!allocation) return false;
  auto put = [&] { put_rows<Size, Count>(at, data, *allocation); };
  if (!warp->worker->launch.races)
    put();
  else if (!race_write_rows(warp, site, Bytes, at, silent_lanes<Size, Count>(at, data), allocation, put))
    return false;
  if (warp->counts) {
    u64* counters = warp->counters + size_t{site} * COUNTERS;
    counters[REQUESTS] += 1;
    counters[BYTES] += Bytes * LANES;
    counters[IDEAL] += Bytes * LANES / 32;
    counters[SECTORS] += store_sectors(at, All);
    note_global_order(warp, allocation, true);
  }
  return true;
}

}  // namespace kw
