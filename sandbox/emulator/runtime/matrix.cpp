// mma and wmma: D = A * B + C over a warp's fragments.
//
// Arithmetic. Products of f16, bf16, tf32 and fp8 elements are exact in f32; a sum of f32 starts with C and adds
// the products in the order of k, each addition rounded to nearest. An f16 accumulator is such a sum, rounded once
// at the end. f64 is a fused multiply-add a step. (A device adds groups of products with truncation, in an order that
// is not documented: results differ in the last bits.) Integers wrap around, or saturate once with .satfinite.

#include "matrix.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "pieces.h"

namespace kw {

Place place_of(const Shape& shape, Part part, Element type, u32 lane, u32 index) {
  u32 group = lane / 4, member = lane % 4, packed = std::max(1u, 32 / element_bits(type));
  index %= std::max(1u, shape.rows(part) * shape.columns(part) / LANES);  // more elements than that are repetitions
  if (part == Part::c) {
    u32 halves = shape.m >= 16 ? 2 : 1, pair = index / 2, tile = pair / halves, columns = shape.n / 8;
    return {group + 8 * (pair % halves) + 16 * (tile / columns), 2 * member + index % 2 + 8 * (tile % columns)};
  }
  u32 chunks = shape.k / (4 * packed), word = index / packed;
  u32 k = member * packed + index % packed;
  if (part == Part::b) return {k + 4 * packed * (word % chunks), group + 8 * (word / chunks)};
  u32 halves = shape.m >= 16 ? 2 : 1, chunk = word / halves;
  return {group + 8 * (word % halves) + 16 * (chunk / chunks), k + 4 * packed * (chunk % chunks)};
}

namespace {

enum Flag : u32 { SATURATE = 1, XOR = 2, AND = 4, COLUMN_A = 8, ROW_B = 16 };

float from_f8(u32 bits, u32 mantissa_bits, u32 bias, bool finite_only) {
  u32 exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1u << mantissa_bits) - 1);
  u32 top = 0x7fu >> mantissa_bits;
  float sign = bits & 0x80 ? -1.0f : 1.0f;
  bool special = exponent == top && (!finite_only || mantissa == (1u << mantissa_bits) - 1);
  if (special) return mantissa ? std::nanf("") : sign * INFINITY;
  int shift = static_cast<int>(exponent ? exponent : 1) - static_cast<int>(bias + mantissa_bits);
  return sign * std::ldexp(static_cast<float>(mantissa | (exponent ? 1u << mantissa_bits : 0)), shift);
}

float as_float(Element type, u32 bits) {
  switch (type) {
    case Element::f16: return static_cast<float>(std::bit_cast<_Float16>(static_cast<u16>(bits)));
    case Element::bf16: return std::bit_cast<float>(bits << 16);
    case Element::tf32: return std::bit_cast<float>(bits & 0xffffe000);
    case Element::e4m3: return from_f8(bits, 3, 7, true);
    case Element::e5m2: return from_f8(bits, 2, 15, false);
    default: return std::bit_cast<float>(bits);
  }
}

i32 as_integer(Element type, u32 bits) {
  switch (type) {
    case Element::s8: return static_cast<i8>(bits);
    case Element::s4: return static_cast<i32>(bits << 28) >> 28;
    default: return static_cast<i32>(bits);
  }
}

template <class Number>
Number decoded(Element type, u32 bits) {
  if constexpr (std::is_same_v<Number, float>)
    return as_float(type, bits);
  else
    return as_integer(type, bits);
}

// One kind of mma instruction: where each element of each fragment goes in dense matrices.
struct Plan {
  Shape shape;
  Element a, b, c, d;
  u32 flags;
  struct Fragment {
    u32 count;  // elements a lane
    std::vector<u16> at;  // [index][lane] -> place in the dense matrix, by rows
  } fragments[4];

  Plan(u32 shape_code, u32 types, u32 counts, u32 flags_)
      : shape(shape_code), a(element(types, 0)), b(element(types, 1)), c(element(types, 2)), d(element(types, 3)), flags(flags_) {
    const Part parts[] = {Part::a, Part::b, Part::c, Part::c};
    const Element elements[] = {a, b, c, d};
    for (u32 i = 0; i < 4; ++i) {
      u32 bits = element_bits(elements[i]), registers = counts >> 8 * i & 0xff;
      Fragment& fragment = fragments[i];
      fragment.count = bits == 64 ? registers : registers * 32 / bits;
      for (u32 index = 0; index < fragment.count; ++index)
        for (u32 lane = 0; lane < LANES; ++lane) {
          Place place = place_of(shape, parts[i], elements[i], lane, index);
          fragment.at.push_back(static_cast<u16>(place.row * shape.columns(parts[i]) + place.column));
        }
    }
  }
  static Element element(u32 types, u32 index) { return static_cast<Element>(types >> 8 * index & 0xff); }
};

const Plan& plan_for(u32 shape, u32 types, u32 counts, u32 flags) {
  struct Key {
    u32 words[4];
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      size_t sum = 0;
      for (u32 word : key.words) sum = sum * 0x9e3779b97f4a7c15 + word;
      return sum;
    }
  };
  thread_local std::unordered_map<Key, std::unique_ptr<Plan>, Hash> plans;
  std::unique_ptr<Plan>& plan = plans[Key{{shape, types, counts, flags}}];
  if (!plan) plan = std::make_unique<Plan>(shape, types, counts, flags);
  return *plan;
}

constexpr u32 MOST = 16 * 256;  // elements of the largest matrix: m16n8k256 of bits

template <class Number>
void spread(const Plan::Fragment& fragment, Element type, const u32* registers, Number* dense) {
  u32 bits = element_bits(type), packed = 32 / bits;
  u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const u16* at = fragment.at.data();
  for (u32 index = 0; index < fragment.count; ++index, at += LANES) {
    const u32* word = registers + index / packed * LANES;
    u32 shift = index % packed * bits;
    for (u32 lane = 0; lane < LANES; ++lane) dense[at[lane]] = decoded<Number>(type, word[lane] >> shift & mask);
  }
}

template <class Number>
u32 encoded(Element type, Number value) {
  if constexpr (std::is_same_v<Number, float>) {
    if (type == Element::f16) return std::bit_cast<u16>(static_cast<_Float16>(value));
    return std::bit_cast<u32>(value);
  } else {
    return static_cast<u32>(value);
  }
}

template <class Number>
void gather(const Plan::Fragment& fragment, Element type, const Number* dense, u32* registers) {
  u32 bits = element_bits(type), packed = 32 / bits;
  const u16* at = fragment.at.data();
  for (u32 index = 0; index < fragment.count; ++index, at += LANES) {
    u32* word = registers + index / packed * LANES;
    u32 shift = index % packed * bits;
    for (u32 lane = 0; lane < LANES; ++lane) {
      u32 value = encoded<Number>(type, dense[at[lane]]) << shift;
      word[lane] = shift ? word[lane] | value : value;
    }
  }
}

// c += a * b, by rows; the innermost loop runs over n, so each sum adds in the order of k.
template <class Number, class Step>
void multiply(const Shape& shape, const Number* a, const Number* b, Number* c, Step&& step) {
  for (u32 m = 0; m < shape.m; ++m)
    for (u32 k = 0; k < shape.k; ++k) {
      Number left = a[m * shape.k + k];
      for (u32 n = 0; n < shape.n; ++n) c[m * shape.n + n] = step(left, b[k * shape.n + n], c[m * shape.n + n]);
    }
}

void multiply_floats(const Plan& plan, const u32* a, const u32* b, const u32* c, u32* d) {
  alignas(64) float left[MOST], right[MOST], sum[32 * 32];
  spread(plan.fragments[0], plan.a, a, left);
  spread(plan.fragments[1], plan.b, b, right);
  spread(plan.fragments[2], plan.c, c, sum);
  multiply(plan.shape, left, right, sum, [](float x, float y, float z) { return __builtin_fmaf(x, y, z); });
  gather(plan.fragments[3], plan.d, sum, d);
}

void multiply_integers(const Plan& plan, const u32* a, const u32* b, const u32* c, u32* d) {
  alignas(64) i32 left[MOST], right[MOST], start[32 * 32];
  spread(plan.fragments[0], plan.a, a, left);
  spread(plan.fragments[1], plan.b, b, right);
  spread(plan.fragments[2], plan.c, c, start);
  if (plan.flags & SATURATE) {
    const Shape& shape = plan.shape;
    for (u32 m = 0; m < shape.m; ++m)
      for (u32 n = 0; n < shape.n; ++n) {
        i64 sum = start[m * shape.n + n];
        for (u32 k = 0; k < shape.k; ++k) sum += i64{left[m * shape.k + k]} * right[k * shape.n + n];
        start[m * shape.n + n] = static_cast<i32>(std::clamp<i64>(sum, INT32_MIN, INT32_MAX));
      }
  } else {
    bool differ = plan.flags & XOR;
    multiply(plan.shape, left, right, start, [differ](i32 x, i32 y, i32 z) {
      return static_cast<i32>(static_cast<u32>(z) + (differ ? static_cast<u32>(x ^ y) : static_cast<u32>(x) * static_cast<u32>(y)));
    });
  }
  gather(plan.fragments[3], plan.d, start, d);
}

void multiply_doubles(const Plan& plan, const double* a, const double* b, const double* c, double* d) {
  double left[16 * 16], right[16 * 8], sum[16 * 8];
  const double* from[] = {a, b, c};
  double* to[] = {left, right, sum};
  for (int part = 0; part < 3; ++part)
    for (u32 i = 0; i < plan.fragments[part].count * LANES; ++i) to[part][plan.fragments[part].at[i]] = from[part][i];
  multiply(plan.shape, left, right, sum, [](double x, double y, double z) { return __builtin_fma(x, y, z); });
  for (u32 i = 0; i < plan.fragments[3].count * LANES; ++i) d[i] = sum[plan.fragments[3].at[i]];
}

// mma.m8n8k4 of f16: four products, each by four lanes of the warp's lower half and four of its upper.
void multiply_quads(u32 flags, Element type_c, Element type_d, const u32* a, const u32* b, const u32* c, u32* d) {
  auto half = [](const u32* registers, u32 lane, u32 index) {
    return as_float(Element::f16, registers[index / 2 * LANES + lane] >> index % 2 * 16 & 0xffff);
  };
  auto place = [](Element type, u32 lane, u32 index) -> Place {  // of an accumulator, within its 8 by 8
    u32 upper = lane >= 16 ? 4 : 0;
    if (type == Element::f16) return {lane % 4 + upper, index};
    return {(lane & 1) + (index & 2) + upper, (index & 4) + (lane & 2) + (index & 1)};
  };
  for (u32 quad = 0; quad < 4; ++quad) {
    float left[8][4], right[4][8], sum[8][8];
    auto for_lanes = [&](auto&& each) {
      for (u32 i = 0; i < 8; ++i) each(quad * 4 + i % 4 + (i < 4 ? 0 : 16), i % 4, i < 4 ? 0u : 4u);
    };
    for_lanes([&](u32 lane, u32 member, u32 upper) {
      for (u32 i = 0; i < 4; ++i) {
        (flags & COLUMN_A ? left[i + upper][member] : left[member + upper][i]) = half(a, lane, i);
        (flags & ROW_B ? right[member][i + upper] : right[i][member + upper]) = half(b, lane, i);
      }
      for (u32 i = 0; i < 8; ++i) {
        Place at = place(type_c, lane, i);
        sum[at.row][at.column] = type_c == Element::f16 ? half(c, lane, i) : std::bit_cast<float>(c[i * LANES + lane]);
      }
    });
    multiply(Shape(8 | 8 << 8 | 4 << 16), &left[0][0], &right[0][0], &sum[0][0],
             [](float x, float y, float z) { return __builtin_fmaf(x, y, z); });
    for_lanes([&](u32 lane, u32, u32) {
      for (u32 i = 0; i < 8; ++i) {
        Place at = place(type_d, lane, i);
        u32 value = encoded(type_d, sum[at.row][at.column]);
        if (type_d != Element::f16)
          d[i * LANES + lane] = value;
        else
          d[i / 2 * LANES + lane] = i % 2 ? d[i / 2 * LANES + lane] | value << 16 : value;
      }
    });
  }
}

}  // namespace
}  // namespace kw

using namespace kw;

extern "C" {

// Fragments are [register][lane]; `types` and `counts` hold a byte for each of a, b, c, d: elements and registers.
void kw_mma(Warp* warp, u32 line, u32 mask, u32 shape, u32 types, u32 counts, u32 flags, const void* a, const void* b,
            const void* c, void* d) {
  if (!mask) return;
  require_full_warp(warp, line, mask, "a matrix instruction");
  const auto *a32 = static_cast<const u32*>(a), *b32 = static_cast<const u32*>(b), *c32 = static_cast<const u32*>(c);
  auto* d32 = static_cast<u32*>(d);
  Element kind = Plan::element(types, 0);
  if (kind == Element::f16 && Shape(shape).k == 4) {
    multiply_quads(flags, Plan::element(types, 2), Plan::element(types, 3), a32, b32, c32, d32);
    return;
  }
  const Plan& plan = plan_for(shape, types, counts, flags);
  if (kind == Element::f64)
    multiply_doubles(plan, static_cast<const double*>(a), static_cast<const double*>(b), static_cast<const double*>(c),
                     static_cast<double*>(d));
  else if (plan.d == Element::s32)
    multiply_integers(plan, a32, b32, c32, d32);
  else
    multiply_floats(plan, a32, b32, c32, d32);
}
}
