// Matrices between memory and registers: wmma.load and wmma.store, ldmatrix, stmatrix, movmatrix.
//
// wmma accesses count as requests of 32 pieces of up to 16 bytes, which is what a warp moves at once; an 8 by 8 matrix
// of ldmatrix is one phase of eight rows.

#include <cstring>

#include "matrix.h"
#include "pieces.h"

namespace kw {
namespace {

// A matrix in memory: lines (rows, or columns) of `bytes` each, `stride` bytes apart.
struct Lines {
  u64 address;
  u64 stride;
  u32 count;
  u32 bytes;
};

constexpr u32 LINE_BYTES = 32 * 8;  // the longest line: 32 elements of 8 bytes
constexpr u32 MOST_LINES = 32;

// Calls `each` for requests of up to 32 pieces with where the pieces lie in a buffer of lines.
template <class Each>
void for_requests(const Lines& lines, Each&& each) {
  u32 piece = 16;
  while (piece > 4 && (lines.bytes % piece || lines.address % piece || lines.stride % piece)) piece /= 2;
  Lanes lanes;
  u32 places[LANES];
  for (u32 line = 0; line < lines.count; ++line)
    for (u32 at = 0; at < lines.bytes; at += piece) {
      places[lanes.count] = line * LINE_BYTES + at;
      lanes.lane[lanes.count] = static_cast<u8>(lanes.count);
      lanes.address[lanes.count++] = lines.address + line * lines.stride + at;
      bool last = line + 1 == lines.count && at + piece >= lines.bytes;
      if (lanes.count < LANES && !last) continue;
      each(lanes, piece, places);
      lanes.count = 0;
    }
}

void load_lines(Warp* warp, u32 site, char space, const Lines& lines, u8* buffer) {
  for_requests(lines, [&](const Lanes& lanes, u32 piece, const u32* places) {
    u8 data[LANES * 16];
    read_pieces(warp, site, space, lanes, piece, data);
    for (int i = 0; i < lanes.count; ++i) std::memcpy(buffer + places[i], data + i * piece, piece);
  });
}

void store_lines(Warp* warp, u32 site, char space, const Lines& lines, const u8* buffer) {
  for_requests(lines, [&](const Lanes& lanes, u32 piece, const u32* places) {
    u8 data[LANES * 16];
    for (int i = 0; i < lanes.count; ++i) std::memcpy(data + i * piece, buffer + places[i], piece);
    write_pieces(warp, site, space, lanes, piece, data);
  });
}

// What a wmma access names: `code` holds part, element type, whether lines are columns, and the space.
struct Access {
  Shape shape;
  Part part;
  Element type;
  bool by_column;
  char space;
  u32 unit, packed;  // bytes that move together, and the elements in them

  Access(u32 shape_code, u32 code)
      : shape(shape_code), part(static_cast<Part>(code & 3)), type(static_cast<Element>(code >> 4 & 15)),
        by_column(code >> 8 & 1), space(static_cast<char>(code >> 16)) {
    u32 bits = element_bits(type);
    unit = bits < 8 ? 4 : bits / 8;
    packed = bits < 8 ? 32 / bits : 1;
  }
  Lines lines(u64 address, u64 stride_elements) const {
    u32 rows = shape.rows(part), columns = shape.columns(part), bits = element_bits(type);
    u32 count = by_column ? columns : rows, length = by_column ? rows : columns;
    u64 stride = stride_elements ? stride_elements : length;
    return {address, stride * bits / 8, count, length * bits / 8};
  }
  // Where the unit that starts with this element lies in a buffer of lines.
  u32 offset(u32 lane, u32 index) const {
    Place at = place_of(shape, part, type, lane, index);
    u32 line = by_column ? at.column : at.row, position = by_column ? at.row : at.column;
    return line * LINE_BYTES + position / packed * unit;
  }
};

Lines whole_matrix(Warp* warp, u32 line, const Access& access, const u64* addresses, i64 offset, const u32* strides,
                   char& space) {
  for (u32 lane = 1; lane < LANES; ++lane)
    if (addresses[lane] != addresses[0] || (strides && strides[lane] != strides[0]))
      fail(warp, lane, line, "barrier", "the lanes of the warp give different addresses or strides of one matrix");
  u64 address = addresses[0] + static_cast<u64>(offset);
  space = access.space;
  if (space == 's') address = static_cast<u32>(address);
  space = resolve_space(warp, space, address);
  return access.lines(address, strides ? strides[0] : 0);
}

constexpr u32 ROWS = 8, ROW_BYTES = 16;  // of the matrices of ldmatrix

Lanes matrix_rows(Warp* warp, u32 count, const u64* addresses, i64 offset, char space) {
  Lanes lanes;
  for (u32 lane = 0; lane < ROWS * count; ++lane) {
    u64 address = addresses[lane] + static_cast<u64>(offset);
    if (resolve_space(warp, space, address) != 's') give_up(warp, "ldmatrix or stmatrix outside shared memory");
    lanes.lane[lanes.count] = static_cast<u8>(lane);
    lanes.address[lanes.count++] = static_cast<u32>(address);
  }
  return lanes;
}

// Where in an 8 by 8 matrix of 16-bit elements the two halves of a lane's register lie.
u32 half_offset(u32 lane, u32 half, bool transposed) {
  u32 row = transposed ? 2 * (lane % 4) + half : lane / 4, column = transposed ? lane / 4 : 2 * (lane % 4) + half;
  return row * ROW_BYTES + 2 * column;
}

}  // namespace
}  // namespace kw

using namespace kw;

extern "C" {

void kw_wmma_load(Warp* warp, u32 site, u32 mask, u32 shape, u32 code, u32 registers, const u64* addresses, i64 offset,
                  const u32* strides, u8* out) {
  if (!mask) return;
  require_full_warp(warp, site_line(warp, site), mask, "wmma.load");
  Access access(shape, code);
  char space;
  Lines lines = whole_matrix(warp, site_line(warp, site), access, addresses, offset, strides, space);
  u8 buffer[MOST_LINES * LINE_BYTES];
  load_lines(warp, site, space, lines, buffer);
  u32 word = std::max(4u, access.unit), units = word / access.unit;  // registers of 4 or 8 bytes
  for (u32 index = 0; index < registers; ++index)
    for (u32 lane = 0; lane < LANES; ++lane)
      for (u32 k = 0; k < units; ++k)
        std::memcpy(out + (index * LANES + lane) * word + k * access.unit,
                    buffer + access.offset(lane, (index * units + k) * access.packed), access.unit);
}

void kw_wmma_store(Warp* warp, u32 site, u32 mask, u32 shape, u32 code, u32 registers, const u64* addresses, i64 offset,
                   const u32* strides, const u8* data) {
  if (!mask) return;
  require_full_warp(warp, site_line(warp, site), mask, "wmma.store");
  Access access(shape, code);
  char space;
  Lines lines = whole_matrix(warp, site_line(warp, site), access, addresses, offset, strides, space);
  u8 buffer[MOST_LINES * LINE_BYTES];
  u32 word = std::max(4u, access.unit), units = word / access.unit;
  for (u32 index = 0; index < registers; ++index)
    for (u32 lane = 0; lane < LANES; ++lane)
      for (u32 k = 0; k < units; ++k)
        std::memcpy(buffer + access.offset(lane, (index * units + k) * access.packed),
                    data + (index * LANES + lane) * word + k * access.unit, access.unit);
  store_lines(warp, site, space, lines, buffer);
}

void kw_ldmatrix(Warp* warp, u32 site, u32 mask, u32 count, u32 transposed, u32 space, const u64* addresses, i64 offset,
                 u32* out) {
  if (!mask) return;
  require_full_warp(warp, site_line(warp, site), mask, "ldmatrix");
  Lanes lanes = matrix_rows(warp, count, addresses, offset, static_cast<char>(space));
  u8 data[4 * ROWS * ROW_BYTES];
  read_pieces(warp, site, 's', lanes, ROW_BYTES, data);
  for (u32 matrix = 0; matrix < count; ++matrix)
    for (u32 lane = 0; lane < LANES; ++lane)
      for (u32 half = 0; half < 2; ++half)
        std::memcpy(reinterpret_cast<u8*>(out + matrix * LANES + lane) + 2 * half,
                    data + matrix * ROWS * ROW_BYTES + half_offset(lane, half, transposed), 2);
}

void kw_stmatrix(Warp* warp, u32 site, u32 mask, u32 count, u32 transposed, u32 space, const u64* addresses, i64 offset,
                 const u32* values) {
  if (!mask) return;
  require_full_warp(warp, site_line(warp, site), mask, "stmatrix");
  Lanes lanes = matrix_rows(warp, count, addresses, offset, static_cast<char>(space));
  u8 data[4 * ROWS * ROW_BYTES];
  for (u32 matrix = 0; matrix < count; ++matrix)
    for (u32 lane = 0; lane < LANES; ++lane)
      for (u32 half = 0; half < 2; ++half)
        std::memcpy(data + matrix * ROWS * ROW_BYTES + half_offset(lane, half, transposed),
                    reinterpret_cast<const u8*>(values + matrix * LANES + lane) + 2 * half, 2);
  write_pieces(warp, site, 's', lanes, ROW_BYTES, data);
}

void kw_movmatrix(Warp* warp, u32 line, u32 mask, const u32* values, u32* out) {
  if (!mask) return;
  require_full_warp(warp, line, mask, "movmatrix");
  u8 data[ROWS * ROW_BYTES];
  for (u32 lane = 0; lane < LANES; ++lane) std::memcpy(data + half_offset(lane, 0, false), values + lane, 4);
  for (u32 lane = 0; lane < LANES; ++lane)
    for (u32 half = 0; half < 2; ++half)
      std::memcpy(reinterpret_cast<u8*>(out + lane) + 2 * half, data + half_offset(lane, half, true), 2);
}
}
