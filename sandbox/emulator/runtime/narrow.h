// 16-bit floats, to and from float32. NaN becomes 0x7fff.
#pragma once

#include <bit>

#include <immintrin.h>

#include "abi.h"

namespace kw {

struct Half {
  static float wide(u16 bits) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))); }
  static u16 narrow(float value) {
    if (value != value) return 0x7fff;
    return static_cast<u16>(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
  }
};

struct Bfloat {
  static float wide(u16 bits) { return std::bit_cast<float>(u32{bits} << 16); }
  static u16 narrow(float value) {
    if (value != value) return 0x7fff;
    u32 bits = std::bit_cast<u32>(value);
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

}  // namespace kw
