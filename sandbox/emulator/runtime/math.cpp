// Arithmetic helpers over 32 lanes: what LLVM would expand badly, slowly, or not at all.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <immintrin.h>

#include "abi.h"
#include "narrow.h"

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

// 1 / sqrt(x) of eight. A square root and a division in double precision are what kernels made of distances would spend
// most of their time with; an estimate of 14 bits, twice improved, is as close.
inline void inverse_roots(const float* from, float* to) {
#ifdef __AVX512F__
  constexpr __mmask8 all = 0xff;
  __m512d x = _mm512_maskz_cvtps_pd(all, _mm256_loadu_ps(from)), half = _mm512_mul_pd(x, _mm512_set1_pd(0.5));
  const __m512d estimate = _mm512_maskz_rsqrt14_pd(all, x);
  __m512d root = estimate;
  for (int step = 0; step < 2; ++step) {
    __m512d error = _mm512_fnmadd_pd(_mm512_mul_pd(half, root), root, _mm512_set1_pd(0.5));
    root = _mm512_fmadd_pd(root, error, root);
  }
  // Of zero and infinity the estimate is exact, and the steps made it NaN.
  root = _mm512_mask_mov_pd(root, _mm512_cmp_pd_mask(root, root, _CMP_UNORD_Q), estimate);
  _mm256_storeu_ps(to, _mm512_maskz_cvtpd_ps(all, root));
#else
  for (int i = 0; i < 8; ++i) to[i] = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(from[i])));
#endif
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

// a * b + c of bfloat16, rounded once. The product is exact in double; the sum is rounded to odd, since an addend far
// below the last place must still decide a tie.
u16 fused_bfloat(u16 a, u16 b, u16 c) {
  double product = double{Bfloat::wide(a)} * double{Bfloat::wide(b)}, addend = Bfloat::wide(c);
  double sum = product + addend, part = sum - product;
  double error = (product - (sum - part)) + (addend - part);
  u64 bits = std::bit_cast<u64>(sum);
  if (error == error && error != 0 && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return Bfloat::narrow(to_odd(std::bit_cast<double>(bits)));
}

// A narrow format: of `nan` is what operations give; without infinities the top exponent holds numbers too.
struct Format {
  int exponent_bits, fraction_bits;
  u32 nan;
  bool infinite;
  constexpr u32 sign() const { return u32{1} << (exponent_bits + fraction_bits); }
  constexpr u32 infinity() const { return ((u32{1} << exponent_bits) - 1) << fraction_bits; }
  constexpr u32 largest() const { return infinite ? infinity() - 1 : nan - 1; }
  constexpr int lowest() const { return 2 - (1 << (exponent_bits - 1)); }  // exponent of the smallest normal number
};
constexpr Format f16{5, 10, 0x7fff, true}, bf16{8, 7, 0x7fff, true}, tf32{8, 10, 0x3ffff, true};
constexpr Format e4m3{4, 3, 0x7f, false}, e5m2{5, 2, 0x7f, true};
enum Direction { to_nearest, to_nearest_away, to_zero, to_minus, to_plus };

template <Format F>
u32 rounded(double value, Direction direction, bool finite) {
  u64 bits = std::bit_cast<u64>(value);
  bool minus = bits >> 63;
  u32 sign = minus ? F.sign() : 0;
  if (value != value) return F.nan;
  if (value == 0) return sign;
  u32 beyond = finite ? F.largest() : F.infinite ? F.infinity() : F.nan;
  if (std::isinf(value)) return sign | beyond;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  u64 mantissa = (bits & ((u64{1} << 52) - 1)) | u64{exponent != -1023} << 52;
  int unit = std::max(exponent, F.lowest());
  int drop = std::min(52 - F.fraction_bits + unit - exponent, 55);
  u64 kept = mantissa >> drop, rest = mantissa & ((u64{1} << drop) - 1), half = u64{1} << (drop - 1);
  bool up = false;
  switch (direction) {
    case to_nearest: up = rest > half || (rest == half && kept & 1); break;
    case to_nearest_away: up = rest >= half; break;
    case to_zero: break;
    case to_minus: up = minus && rest; break;
    case to_plus: up = !minus && rest; break;
  }
  u64 magnitude = (u64(unit - F.lowest()) << F.fraction_bits) + kept + up;
  if (magnitude <= F.largest()) return sign | static_cast<u32>(magnitude);
  bool stays = direction == to_zero || (direction == to_minus && !minus) || (direction == to_plus && minus);
  return sign | (stays ? F.largest() : beyond);
}

template <Format F>
double widened(u32 bits) {
  u32 magnitude = bits & (F.sign() - 1);
  double sign = bits & F.sign() ? -1 : 1;
  if (magnitude > (F.infinite ? F.infinity() : F.largest())) return std::numeric_limits<double>::quiet_NaN();
  if (F.infinite && magnitude == F.infinity()) return sign * std::numeric_limits<double>::infinity();
  int field = static_cast<int>(magnitude >> F.fraction_bits);
  u32 fraction = magnitude & ((u32{1} << F.fraction_bits) - 1);
  if (field) fraction |= u32{1} << F.fraction_bits;
  return sign * std::ldexp(fraction, F.lowest() - F.fraction_bits + std::max(field - 1, 0));
}

// An integer as a double, rounded to odd: rounding that again to a narrower format is rounding once.
template <class T>
double odd_double(T value) {
  using U = std::make_unsigned_t<T>;
  U size = value < 0 ? U{0} - static_cast<U>(value) : static_cast<U>(value);
  int drop = 64 - std::countl_zero(size | 1) - 53;
  if (drop > 0) {
    U rest = size & ((U{1} << drop) - 1);
    size = (size - rest) | (rest ? U{1} << drop : 0);
  }
  return value < 0 ? -static_cast<double>(size) : static_cast<double>(size);
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

// The permutations that prmt names: the lower two bits of the selector choose.
constexpr u16 FORWARD[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr u16 BACKWARD[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr u16 REPLICATE_8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr u16 CLAMP_LEFT[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr u16 CLAMP_RIGHT[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr u16 REPLICATE_16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

// The offset-th set bit of the mask, counted upwards from `base`, or downwards when the offset is negative.
u32 nth_set_bit(u32 mask, u32 base, i32 offset) {
  if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~u32{0};
  i64 position = base, step = offset > 0 ? 1 : -1;
  i64 missing = offset > 0 ? i64{offset} : -i64{offset};
  for (; position >= 0 && position < 32; position += step)
    if (mask >> position & 1 && --missing == 0) return static_cast<u32>(position);
  return ~u32{0};
}

template <class A, class B>
u32 dot_two(u32 a, u32 b, u32 sum) {
  for (int k = 0; k < 2; ++k) sum += static_cast<u32>(i32{static_cast<A>(a >> 16 * k)} * i32{static_cast<B>(b >> 8 * k)});
  return sum;
}

// The upper 32 bits of a double: all that the approximations in double precision read and give.
double upper_word(double value) { return std::bit_cast<double>(std::bit_cast<u64>(value) & ~u64{0xffffffff}); }

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
void kw_rsqrt_f32(const float* a, float* out) {
  for (int i = 0; i < LANES; i += 8) inverse_roots(a + i, out + i);
}
void kw_rcp_coarse_f64(const double* a, double* out) { EACH out[i] = upper_word(1.0 / upper_word(a[i])); }
void kw_rsqrt_coarse_f64(const double* a, double* out) { EACH out[i] = upper_word(1.0 / __builtin_sqrt(upper_word(a[i]))); }
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

void kw_fma_bfloat(const u16* a, const u16* b, const u16* c, u16* out) { EACH out[i] = fused_bfloat(a[i], b[i], c[i]); }
void kw_narrow_float_bfloat(const float* a, u16* out) { EACH out[i] = Bfloat::narrow(a[i]); }
void kw_narrow_double_bfloat(const double* a, u16* out) { EACH out[i] = Bfloat::narrow(to_odd(a[i])); }
void kw_narrow_double_half(const double* a, u16* out) { EACH out[i] = Half::narrow(to_odd(a[i])); }

#define ROUND_TO(FORMAT, TYPE, SHIFT, MODE, DIRECTION)                        \
  void kw_round_##MODE##_##FORMAT(const double* a, TYPE* out) {               \
    EACH out[i] = static_cast<TYPE>(rounded<FORMAT>(a[i], DIRECTION, false) << SHIFT); \
  }                                                                           \
  void kw_round_##MODE##_##FORMAT##_finite(const double* a, TYPE* out) {      \
    EACH out[i] = static_cast<TYPE>(rounded<FORMAT>(a[i], DIRECTION, true) << SHIFT); \
  }
#define ROUND_TO_16(FORMAT)                          \
  ROUND_TO(FORMAT, u16, 0, rn, to_nearest)           \
  ROUND_TO(FORMAT, u16, 0, rz, to_zero)              \
  ROUND_TO(FORMAT, u16, 0, rm, to_minus)             \
  ROUND_TO(FORMAT, u16, 0, rp, to_plus)
ROUND_TO_16(f16)
ROUND_TO_16(bf16)
ROUND_TO_16(e4m3)
ROUND_TO_16(e5m2)
ROUND_TO(tf32, u32, 13, rn, to_nearest)
ROUND_TO(tf32, u32, 13, rna, to_nearest_away)
ROUND_TO(tf32, u32, 13, rz, to_zero)
void kw_widen_e4m3(const u16* a, u16* out) { EACH out[i] = static_cast<u16>(rounded<f16>(widened<e4m3>(a[i] & 0xff), to_nearest, false)); }
void kw_widen_e5m2(const u16* a, u16* out) { EACH out[i] = static_cast<u16>(rounded<f16>(widened<e5m2>(a[i] & 0xff), to_nearest, false)); }
void kw_odd_s64(const i64* a, double* out) { EACH out[i] = odd_double(a[i]); }
void kw_odd_u64(const u64* a, double* out) { EACH out[i] = odd_double(a[i]); }

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
#define PERMUTATION(NAME, TABLE) \
  void kw_prmt_##NAME(const u32* a, const u32* b, const u32* c, u32* out) { EACH out[i] = permute(a[i], b[i], TABLE[c[i] & 3]); }
PERMUTATION(f4e, FORWARD)
PERMUTATION(b4e, BACKWARD)
PERMUTATION(rc8, REPLICATE_8)
PERMUTATION(ecl, CLAMP_LEFT)
PERMUTATION(ecr, CLAMP_RIGHT)
PERMUTATION(rc16, REPLICATE_16)
void kw_fns_b32(const u32* mask, const u32* base, const i32* offset, u32* out) { EACH out[i] = nth_set_bit(mask[i], base[i], offset[i]); }
#define DOT_TWO(A_NAME, A, B_NAME, B)                                                                                             \
  void kw_dp2a_lo_##A_NAME##_##B_NAME(const u32* a, const u32* b, const u32* c, u32* out) { EACH out[i] = dot_two<A, B>(a[i], b[i], c[i]); } \
  void kw_dp2a_hi_##A_NAME##_##B_NAME(const u32* a, const u32* b, const u32* c, u32* out) { EACH out[i] = dot_two<A, B>(a[i], b[i] >> 16, c[i]); }
DOT_TWO(u32, u16, u32, u8)
DOT_TWO(u32, u16, s32, i8)
DOT_TWO(s32, i16, u32, u8)
DOT_TWO(s32, i16, s32, i8)
}  // extern "C"
