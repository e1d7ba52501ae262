// Eight 64-bit values at a time: what the compiler's vectors have no operator for, with AVX-512 or without.
#pragma once

#include <bit>
#include <cstring>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "abi.h"

namespace kw {

constexpr int EIGHT = 8;
using Eight = u64 __attribute__((vector_size(8 * EIGHT)));
using Flags = i64 __attribute__((vector_size(8 * EIGHT)));  // all ones or zero each, as comparisons give them

inline Eight load_eight(const void* from) {
  Eight values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

// Bit i: flag i.
inline u32 bits_of(Flags flags) {
#ifdef __AVX512F__
  return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(flags), reinterpret_cast<__m512i>(flags));
#else
  u32 bits = 0;
  for (int i = 0; i < EIGHT; ++i) bits |= u32{flags[i] != 0} << i;
  return bits;
#endif
}

inline bool any(Flags flags) { return bits_of(flags) != 0; }

inline Flags first_flags(int count) {
  const Flags order = {0, 1, 2, 3, 4, 5, 6, 7};
  return order < static_cast<i64>(count);
}

// Small numbers, as of lanes.
inline Eight widened(const u8* from) {
#ifdef __AVX512F__
  return reinterpret_cast<Eight>(_mm512_maskz_cvtepu8_epi64(0xff, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  Eight values;
  for (int i = 0; i < EIGHT; ++i) values[i] = from[i];
  return values;
#endif
}

// The 64-bit values at `base` + offset; zero for those that are not asked for.
inline Eight gather(u64 base, Eight offset, Flags where) {
#ifdef __AVX512F__
  return reinterpret_cast<Eight>(_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(bits_of(where)),
                                                             reinterpret_cast<__m512i>(offset), reinterpret_cast<const void*>(base), 1));
#else
  Eight values{};
  for (int i = 0; i < EIGHT; ++i)
    if (where[i]) std::memcpy(reinterpret_cast<u8*>(&values) + 8 * i, reinterpret_cast<const void*>(base + offset[i]), 8);
  return values;
#endif
}

// The same for 32-bit values.
inline Eight gather_words(u64 base, Eight offset, Flags where) {
#ifdef __AVX512F__
  __m256i words = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), static_cast<__mmask8>(bits_of(where)),
                                              reinterpret_cast<__m512i>(offset), reinterpret_cast<const void*>(base), 1);
  return reinterpret_cast<Eight>(_mm512_maskz_cvtepu32_epi64(0xff, words));
#else
  Eight values{};
  for (int i = 0; i < EIGHT; ++i)
    if (where[i]) std::memcpy(reinterpret_cast<u8*>(&values) + 8 * i, reinterpret_cast<const void*>(base + offset[i]), 4);
  return values;
#endif
}

// Of several values for one place the last stays.
inline void scatter(u64 base, Eight offset, Eight values, Flags where) {
#ifdef __AVX512F__
  _mm512_mask_i64scatter_epi64(reinterpret_cast<void*>(base), static_cast<__mmask8>(bits_of(where)), reinterpret_cast<__m512i>(offset),
                               reinterpret_cast<__m512i>(values), 1);
#else
  for (int i = 0; i < EIGHT; ++i)
    if (where[i]) std::memcpy(reinterpret_cast<void*>(base + offset[i]), reinterpret_cast<u8*>(&values) + 8 * i, 8);
#endif
}

// Which are equal to an earlier one?
inline Flags repeats(Eight values, Flags where) {
#if defined(__AVX512CD__)
  Eight earlier = reinterpret_cast<Eight>(_mm512_conflict_epi64(reinterpret_cast<__m512i>(values)));
  return where & ((earlier & u64{bits_of(where)}) != 0);
#else
  Flags found{};
  for (int i = 1; i < EIGHT; ++i)
    for (int k = 0; k < i; ++k) found[i] |= where[i] & where[k] & -i64{values[i] == values[k]};
  return found;
#endif
}

template <class Each>
void each_flag(Flags flags, Each&& each) {
  for (u32 rest = bits_of(flags); rest; rest &= rest - 1) each(std::countr_zero(rest));
}

}  // namespace kw
