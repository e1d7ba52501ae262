// One warp-wide access: its lanes, addresses and what is counted of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "eights.h"
#include "run.h"

namespace kw {

// A vector access is one access of this machine, so that a thread sees all of another's or nothing: a flag and a value
// may be published together. The compiler would take a memcpy apart into elements.
using Wide = u64 __attribute__((vector_size(16), aligned(1), may_alias));
using Narrow = u64 __attribute__((aligned(1), may_alias));

template <u32 Bytes>
inline void read_whole(u8* piece, const u8* from) {
  if constexpr (Bytes == 16) {
    Wide value = *reinterpret_cast<const volatile Wide*>(from);
    std::memcpy(piece, &value, sizeof value);
  } else if constexpr (Bytes == 8) {
    u64 value = *reinterpret_cast<const volatile Narrow*>(from);
    std::memcpy(piece, &value, sizeof value);
  } else {
    std::memcpy(piece, from, Bytes);
  }
}

template <u32 Bytes>
inline void write_whole(u8* to, const u8* piece) {
  if constexpr (Bytes == 16) {
    Wide value;
    std::memcpy(&value, piece, sizeof value);
    *reinterpret_cast<volatile Wide*>(to) = value;
  } else if constexpr (Bytes == 8) {
    u64 value;
    std::memcpy(&value, piece, sizeof value);
    *reinterpret_cast<volatile Narrow*>(to) = value;
  } else {
    std::memcpy(to, piece, Bytes);
  }
}

// The lanes of a request, compacted.
struct Lanes {
  int count = 0;
  u32 dropped = 0;  // bit i: lane i, which a check objected to
  u8 lane[LANES];
  u64 address[LANES];
};

template <class Address>
inline void gather_lanes(Lanes& lanes, u32 mask, const Address* addresses, i64 offset) {
  if (mask == 0xffffffff) {
    lanes.count = LANES;
    for (int i = 0; i < LANES; ++i) {
      lanes.lane[i] = static_cast<u8>(i);
      lanes.address[i] = static_cast<Address>(addresses[i] + static_cast<u64>(offset));
    }
    return;
  }
  int n = 0;
#ifdef __AVX512F__  // n <= start, so whole vectors fit
  for (int start = 0; start < LANES; start += EIGHT) {
    u32 here = mask >> start & 0xff;
    __m512i all = sizeof(Address) == 8 ? _mm512_loadu_si512(addresses + start)
                                       : _mm512_maskz_cvtepu32_epi64(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addresses + start)));
    all = _mm512_add_epi64(all, _mm512_set1_epi64(offset));
    if (sizeof(Address) == 4) all = _mm512_and_si512(all, _mm512_set1_epi64(0xffff'ffff));
    all = _mm512_maskz_compress_epi64(static_cast<__mmask8>(here), all);
    std::memcpy(lanes.address + n, &all, sizeof all);
    u64 order = (0x0706'0504'0302'0100 + 0x0101'0101'0101'0101 * static_cast<u64>(start));
    order = _pext_u64(order, _pdep_u64(here, 0x0101'0101'0101'0101) * 0xff);
    std::memcpy(lanes.lane + n, &order, sizeof order);
    n += std::popcount(here);
  }
#else
  for (u32 rest = mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    lanes.lane[n] = static_cast<u8>(lane);
    lanes.address[n] = static_cast<Address>(addresses[lane] + static_cast<u64>(offset));
    ++n;
  }
#endif
  lanes.count = n;
}

// Distinct values among the first n. Sorts `values` unless they are sorted already.
inline int distinct(u64* values, int n) {
  bool sorted = true;
  for (int i = 1; i < n; ++i) sorted &= values[i - 1] <= values[i];
  if (!sorted) std::sort(values, values + n);
  int found = n > 0;
  for (int i = 1; i < n; ++i) found += values[i] != values[i - 1];
  return found;
}

// The number of distinct values among the first n > 0, in any order.
inline int count_distinct(const u64* values, int n) {
  int steps = 0;
  bool sorted = true;
  for (int i = 1; i < n; ++i) {
    sorted &= values[i - 1] <= values[i];
    steps += values[i - 1] != values[i];
  }
  if (sorted) return steps + 1;
  using Eight = u64 __attribute__((vector_size(64)));
  Eight all[LANES / 8], again[LANES / 8] = {};  // not zero for a value that an earlier lane has
  alignas(64) u64 padded[LANES];
  for (int i = 0; i < LANES; ++i) padded[i] = i < n ? values[i] : values[0];
  std::memcpy(all, padded, sizeof all);
  const Eight order = {0, 1, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < n; ++i) {
    Eight value = Eight{} + padded[i], place = Eight{} + static_cast<u64>(i);
    for (int part = i / 8; part < LANES / 8; ++part) {
      Eight later = order + static_cast<u64>(8 * part);
      again[part] |= reinterpret_cast<Eight>((all[part] == value) & (later > place));
    }
  }
  int found = LANES;
  for (const Eight& part : again)
    for (int i = 0; i < 8; ++i) found -= part[i] != 0;
  return found;
}

// Lanes whose accesses of `bytes` each go at once: two half-warps of 8 bytes, four quarters of 16.
constexpr int lanes_a_pass(u32 bytes) { return bytes <= 4 ? LANES : bytes == 8 ? LANES / 2 : LANES / 4; }

// Wavefronts that a shared-memory request of `bytes` a lane takes: 32 banks of 4 bytes; lanes on one word share it.
inline void shared_wavefronts(const Lanes& lanes, u32 bytes, u64& actual, u64& ideal) {
  int per_phase = lanes_a_pass(bytes);
  actual = ideal = 0;
  int i = 0;
  while (i < lanes.count) {
    int phase = lanes.lane[i] / per_phase;
    u64 words[2 * LANES];
    int n = 0;
    for (; i < lanes.count && lanes.lane[i] / per_phase == phase; ++i)
      for (u32 at = 0; at < bytes; at += 4) words[n++] = (lanes.address[i] + at) >> 2;
    int found = distinct(words, n);
    u8 load[32] = {};
    int most = 0;
    if (found == n) {
      for (int k = 0; k < n; ++k) most = std::max<int>(most, ++load[words[k] & 31]);
    } else {
      for (int k = 0; k < n; ++k)
        if (k == 0 || words[k] != words[k - 1]) most = std::max<int>(most, ++load[words[k] & 31]);
    }
    actual += most;
    ideal += 1;
  }
}

inline void count_shared(Warp* warp, u32 site, u64 actual, u64 ideal) {
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  counters[REQUESTS] += 1;
  counters[WAVEFRONTS] += actual;
  counters[IDEAL] += ideal;
}

inline void count_shared(Warp* warp, u32 site, const Lanes& lanes, u32 bytes) {
  u64 actual, ideal;
  shared_wavefronts(lanes, bytes, actual, ideal);
  count_shared(warp, site, actual, ideal);
}

}  // namespace kw
