// Matrices spread over the registers of a warp. lowering/matrix.py states the same numbers.
#pragma once

#include <array>

#include "abi.h"

namespace kw {

enum class Element : u8 { f16, bf16, tf32, f64, f32, s32, s8, u8, s4, u4, b1, e4m3, e5m2 };
enum class Part : u8 { a, b, c };  // c: also d

constexpr u32 element_bits(Element type) {
  switch (type) {
    case Element::f64: return 64;
    case Element::tf32:
    case Element::f32:
    case Element::s32: return 32;
    case Element::f16:
    case Element::bf16: return 16;
    case Element::s4:
    case Element::u4: return 4;
    case Element::b1: return 1;
    default: return 8;
  }
}

struct Shape {
  u32 m, n, k;
  explicit Shape(u32 code) : m(code & 0xff), n(code >> 8 & 0xff), k(code >> 16) {}
  u32 rows(Part part) const { return part == Part::b ? k : m; }
  u32 columns(Part part) const { return part == Part::a ? k : n; }
};

// Where the elements of a fragment lie in its matrix: the row and column of element `index` (low to high over the
// registers) of a lane. `registers` are 32 bits wide; those of f64 elements 64.
struct Place {
  u32 row, column;
};
Place place_of(const Shape& shape, Part part, Element type, u32 lane, u32 index);

}  // namespace kw
