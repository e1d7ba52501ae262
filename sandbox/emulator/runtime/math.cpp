// Arithmetic helpers over 32 lanes: what LLVM would expand badly, slowly, or not at all.

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <immintrin.h>

#include "abi.h"

using namespace kw;

#define EACH for (int i = 0; i < LANES; ++i)

namespace {

// Division by zero gives what the hardware gives: all ones, and the dividend as remainder.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}

template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

// Rounding modes of one loop. The memory clobbers keep the loop between the switches.
class Rounding {
 public:
  explicit Rounding(u32 mode) : before_(_mm_getcsr()) {
    _mm_setcsr((before_ & ~u32{0x6000}) | mode << 13);
    asm volatile("" ::: "memory");
  }
  ~Rounding() {
    asm volatile("" ::: "memory");
    _mm_setcsr(before_);
  }

 private:
  u32 before_;
};
constexpr u32 rn = 0, rm = 1, rp = 2, rz = 3;

// Saturating conversion of an already integral value; NaN gives 0, or the lowest bit pattern of 64-bit results.
template <class To, class From>
To to_integer(From value) {
  constexpr bool wide = sizeof(To) == 8 || sizeof(From) == 8;
  if (value != value) return wide ? static_cast<To>(u64{1} << (8 * sizeof(To) - 1)) : To{0};
  constexpr From top = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;  // 2^bits, exact
  if (value >= top) return std::numeric_limits<To>::max();
  if constexpr (std::is_signed_v<To>) {
    if (value < -top) return std::numeric_limits<To>::min();
  } else {
    if (value <= 0) return 0;
  }
  return static_cast<To>(value);
}

// 2^x to far better than float32, without a branch, so that the loop becomes vector code.
inline double power_of_two(double x) {
  x = x > 1100 ? 1100 : x < -1100 ? -1100 : x;
  double whole = __builtin_nearbyint(x);
  double f = (x - whole) * 0.69314718055994530942;
  double p = 1.0 / 3628800;
  p = p * f + 1.0 / 362880;
  p = p * f + 1.0 / 40320;
  p = p * f + 1.0 / 5040;
  p = p * f + 1.0 / 720;
  p = p * f + 1.0 / 120;
  p = p * f + 1.0 / 24;
  p = p * f + 1.0 / 6;
  p = p * f + 0.5;
  p = p * f + 1;
  p = p * f + 1;
  whole = whole > 1023 ? 1023 : whole < -1022 ? -1022 : whole;
  i64 bits = static_cast<i64>(whole + 1023) << 52;
  double scale;
  std::memcpy(&scale, &bits, 8);
  return p * scale;
}

u16 to_bfloat(float value) {
  u32 bits;
  std::memcpy(&bits, &value, 4);
  if (value != value) return 0x7fff;
  return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// double to float, rounded to odd: rounding that again to 16 bits is rounding once.
float to_odd(double value) {
  float result = static_cast<float>(value);
  if (value != value || std::isinf(result) || static_cast<double>(result) == value) return result;
  u32 bits;
  std::memcpy(&bits, &result, 4);
  if (std::fabs(static_cast<double>(result)) > std::fabs(value)) --bits;
  bits |= 1;
  std::memcpy(&result, &bits, 4);
  return result;
}

u16 to_half(float value) {
  return static_cast<u16>(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
}

template <class T>
T bit_field(T a, u32 position, u32 length) {
  constexpr int bits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (length == 0) return 0;
    int sign = static_cast<int>(position + length - 1);
    if (sign > bits - 1) sign = bits - 1;
    U negative = static_cast<U>(a) >> sign & 1;
    U value = position < bits ? static_cast<U>(a) >> position : (negative ? ~U{0} : 0);
    if (length >= bits) return static_cast<T>(position < bits ? a >> position : (negative ? -1 : 0));
    U mask = (U{1} << length) - 1;
    value &= mask;
    if (position + length > static_cast<u32>(bits) && negative) value |= position < bits ? ~(~U{0} >> position) : ~U{0};
    return static_cast<T>(negative ? value | ~mask : value & mask);
  } else {
    if (length == 0 || position >= bits) return 0;
    U value = a >> position;
    return length >= bits ? value : value & ((U{1} << length) - 1);
  }
}

template <class T>
T insert_field(T a, T b, u32 position, u32 length) {
  constexpr u32 bits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  if (length == 0 || position >= bits) return b;
  T mask = length >= bits ? ~T{0} : (T{1} << length) - 1;
  mask <<= position;
  return (b & ~mask) | (a << position & mask);
}

u32 permute(u32 a, u32 b, u32 selector) {
  u64 source = u64{b} << 32 | a;
  u32 result = 0;
  for (int k = 0; k < 4; ++k) {
    u32 nibble = selector >> 4 * k & 15;
    u32 byte = static_cast<u32>(source >> 8 * (nibble & 7)) & 0xff;
    if (nibble & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * k;
  }
  return result;
}

u32 bit_mask(u32 position, u32 width, bool clamp) {
  if (clamp && position >= 32) return 0;
  position &= 31;
  u32 low = ~u32{0} << position;
  bool open = (clamp && width >= 32) || position + (width & 31) >= 32;
  return open ? low : low & ~(~u32{0} << (position + (width & 31)));
}

u32 extended(u32 a, u32 width, bool clamp, bool sign) {
  if (clamp && width >= 32) return a;
  width &= 31;
  u32 above = ~u32{0} << width;
  bool negative = sign && width && a >> (width - 1) & 1;
  return negative ? a | above : a & ~above;
}

template <class T>
u32 leading(T a, bool shift_amount) {
  using U = std::make_unsigned_t<T>;
  U value = static_cast<U>(a);
  if constexpr (std::is_signed_v<T>)
    if (a < 0) value = ~value;
  if (value == 0) return ~u32{0};
  int top = 63 - __builtin_clzll(value);
  return shift_amount ? static_cast<u32>(8 * sizeof(T) - 1 - top) : static_cast<u32>(top);
}

}  // namespace

extern "C" {

#define DIVISION(NAME, TYPE)                                                                              \
  void kw_div_##NAME(const TYPE* a, const TYPE* b, TYPE* out) { EACH out[i] = quotient<TYPE>(a[i], b[i]); } \
  void kw_rem_##NAME(const TYPE* a, const TYPE* b, TYPE* out) { EACH out[i] = remainder<TYPE>(a[i], b[i]); }
DIVISION(s16, i16)
DIVISION(u16, u16)
DIVISION(s32, i32)
DIVISION(u32, u32)
DIVISION(s64, i64)
DIVISION(u64, u64)

void kw_mulhi_s64(const i64* a, const i64* b, i64* out) { EACH out[i] = static_cast<i64>(static_cast<__int128>(a[i]) * b[i] >> 64); }
void kw_mulhi_u64(const u64* a, const u64* b, u64* out) {
  EACH out[i] = static_cast<u64>(static_cast<unsigned __int128>(a[i]) * b[i] >> 64);
}

void kw_ex2_f32(const float* a, float* out) { EACH out[i] = static_cast<float>(power_of_two(a[i])); }
void kw_lg2_f32(const float* a, float* out) { EACH out[i] = std::log2(a[i]); }
void kw_sin_f32(const float* a, float* out) { EACH out[i] = std::sin(a[i]); }
void kw_cos_f32(const float* a, float* out) { EACH out[i] = std::cos(a[i]); }
void kw_tanh_f32(const float* a, float* out) { EACH out[i] = std::tanh(a[i]); }
void kw_rsqrt_f32(const float* a, float* out) { EACH out[i] = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a[i]))); }
void kw_rsqrt_f64(const double* a, double* out) { EACH out[i] = 1.0 / __builtin_sqrt(a[i]); }

#define DIRECTED(MODE, NAME, TYPE)                                                         \
  void kw_add_##MODE##_##NAME(const TYPE* a, const TYPE* b, TYPE* out) {                   \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = a[i] + b[i];                                                             \
  }                                                                                        \
  void kw_sub_##MODE##_##NAME(const TYPE* a, const TYPE* b, TYPE* out) {                   \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = a[i] - b[i];                                                             \
  }                                                                                        \
  void kw_mul_##MODE##_##NAME(const TYPE* a, const TYPE* b, TYPE* out) {                   \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = a[i] * b[i];                                                             \
  }                                                                                        \
  void kw_div_##MODE##_##NAME(const TYPE* a, const TYPE* b, TYPE* out) {                   \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = a[i] / b[i];                                                             \
  }                                                                                        \
  void kw_fma_##MODE##_##NAME(const TYPE* a, const TYPE* b, const TYPE* c, TYPE* out) {    \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = std::fma(a[i], b[i], c[i]);                                              \
  }                                                                                        \
  void kw_rcp_##MODE##_##NAME(const TYPE* a, TYPE* out) {                                  \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = TYPE{1} / a[i];                                                          \
  }                                                                                        \
  void kw_sqrt_##MODE##_##NAME(const TYPE* a, TYPE* out) {                                 \
    Rounding rounding(MODE);                                                               \
    EACH out[i] = std::sqrt(a[i]);                                                         \
  }
#define CONVERSION(MODE, NAME, TYPE, FROM_NAME, FROM)                      \
  void kw_cvt_##MODE##_##NAME##_##FROM_NAME(const FROM* a, TYPE* out) {    \
    Rounding rounding(MODE);                                               \
    EACH out[i] = static_cast<TYPE>(a[i]);                                 \
  }
#define CONVERSIONS(MODE, NAME, TYPE)          \
  CONVERSION(MODE, NAME, TYPE, s32, i32)       \
  CONVERSION(MODE, NAME, TYPE, u32, u32)       \
  CONVERSION(MODE, NAME, TYPE, s64, i64)       \
  CONVERSION(MODE, NAME, TYPE, u64, u64)
#define ROUNDED(MODE)            \
  DIRECTED(MODE, f32, float)     \
  DIRECTED(MODE, f64, double)    \
  CONVERSIONS(MODE, f32, float)  \
  CONVERSIONS(MODE, f64, double) \
  CONVERSION(MODE, f32, float, f64, double)
ROUNDED(rm)
ROUNDED(rp)
ROUNDED(rz)
CONVERSIONS(rn, f32, float)
CONVERSIONS(rn, f64, double)

#define TO_INTEGER(NAME, TYPE)                                                                 \
  void kw_cvt_##NAME##_f32(const float* a, TYPE* out) { EACH out[i] = to_integer<TYPE>(a[i]); } \
  void kw_cvt_##NAME##_f64(const double* a, TYPE* out) { EACH out[i] = to_integer<TYPE>(a[i]); }
TO_INTEGER(s32, i32)
TO_INTEGER(u32, u32)
TO_INTEGER(s64, i64)
TO_INTEGER(u64, u64)

void kw_narrow_float_bfloat(const float* a, u16* out) { EACH out[i] = to_bfloat(a[i]); }
void kw_narrow_double_bfloat(const double* a, u16* out) { EACH out[i] = to_bfloat(to_odd(a[i])); }
void kw_narrow_double_half(const double* a, u16* out) { EACH out[i] = to_half(to_odd(a[i])); }

#define FIELD(NAME, TYPE)                                                                    \
  void kw_bfe_##NAME(const TYPE* a, const u32* position, const u32* length, TYPE* out) {     \
    EACH out[i] = bit_field<TYPE>(a[i], position[i], length[i]);                             \
  }                                                                                          \
  void kw_bfind_##NAME(const TYPE* a, u32* out) { EACH out[i] = leading<TYPE>(a[i], false); } \
  void kw_bfind_shiftamt_##NAME(const TYPE* a, u32* out) { EACH out[i] = leading<TYPE>(a[i], true); }
FIELD(s32, i32)
FIELD(u32, u32)
FIELD(s64, i64)
FIELD(u64, u64)
void kw_bfi_b32(const u32* a, const u32* b, const u32* position, const u32* length, u32* out) {
  EACH out[i] = insert_field<u32>(a[i], b[i], position[i], length[i]);
}
void kw_bfi_b64(const u64* a, const u64* b, const u32* position, const u32* length, u64* out) {
  EACH out[i] = insert_field<u64>(a[i], b[i], position[i], length[i]);
}
void kw_prmt_b32(const u32* a, const u32* b, const u32* c, u32* out) { EACH out[i] = permute(a[i], b[i], c[i]); }
void kw_bmsk_clamp_b32(const u32* a, const u32* b, u32* out) { EACH out[i] = bit_mask(a[i], b[i], true); }
void kw_bmsk_wrap_b32(const u32* a, const u32* b, u32* out) { EACH out[i] = bit_mask(a[i], b[i], false); }
void kw_szext_clamp_u32(const u32* a, const u32* b, u32* out) { EACH out[i] = extended(a[i], b[i], true, false); }
void kw_szext_wrap_u32(const u32* a, const u32* b, u32* out) { EACH out[i] = extended(a[i], b[i], false, false); }
void kw_szext_clamp_s32(const u32* a, const u32* b, u32* out) { EACH out[i] = extended(a[i], b[i], true, true); }
void kw_szext_wrap_s32(const u32* a, const u32* b, u32* out) { EACH out[i] = extended(a[i], b[i], false, true); }
#define DOT(A_NAME, A, B_NAME, B)                                                                          \
  void kw_dp4a_##A_NAME##_##B_NAME(const u32* a, const u32* b, const u32* c, u32* out) {                   \
    EACH {                                                                                                 \
      u32 sum = c[i];                                                                                      \
      for (int k = 0; k < 32; k += 8) sum += static_cast<u32>(static_cast<A>(a[i] >> k) * static_cast<B>(b[i] >> k)); \
      out[i] = sum;                                                                                        \
    }                                                                                                      \
  }
DOT(u32, u8, u32, u8)
DOT(u32, u8, s32, i8)
DOT(s32, i8, u32, u8)
DOT(s32, i8, s32, i8)
void kw_sad_u32(const u32* a, const u32* b, const u32* c, u32* out) { EACH out[i] = c[i] + (a[i] < b[i] ? b[i] - a[i] : a[i] - b[i]); }
void kw_sad_s32(const i32* a, const i32* b, const u32* c, u32* out) {
  EACH out[i] = c[i] + (a[i] < b[i] ? static_cast<u32>(b[i]) - static_cast<u32>(a[i]) : static_cast<u32>(a[i]) - static_cast<u32>(b[i]));
}
}  // extern "C"
