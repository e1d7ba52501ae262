// Textures and surfaces: what an object describes, and the table that turns handles into them.
//
// Arrays are stored here as rows: texel (x, y, z) lies at base + z * slice + y * pitch + x * bytes of a texel.
// Layers of a layered array are its slices. Whoever makes objects fills `Device::images` between launches.
#pragma once

#include <deque>
#include <optional>

#include "abi.h"

namespace kw {

enum class TexelKind : u8 { unsigned_integer, signed_integer, floating };
enum class AddressMode : u8 { wrap = 0, clamp = 1, mirror = 2, border = 3 };  // numbered as cudaTextureAddressMode
enum class Filter : u8 { point = 0, linear = 1 };

struct TexelFormat {
  u8 channels = 1;  // 1, 2 or 4
  u8 bits = 32;     // of each channel: 8, 16 or 32
  TexelKind kind = TexelKind::floating;
  u32 bytes() const { return u32{channels} * bits / 8; }
};

// Texels in device memory. An extent of 0 means that the image does not have that dimension.
struct Image {
  u64 base = 0;
  TexelFormat format;
  u64 width = 0;  // in texels; of linear memory up to 2^31
  u32 height = 0;
  u32 depth = 0;
  u32 layers = 0;
  u64 pitch = 0;        // bytes from row to row
  u64 slice = 0;        // bytes from slice to slice, or layer to layer
  bool linear = false;  // linear memory (cudaResourceTypeLinear): integer coordinates, no filter
  u64 rows() const { return height ? height : 1; }
  u64 slices() const { return layers ? layers : depth ? depth : 1; }
  u64 bytes() const { return (slices() - 1) * slice + (rows() - 1) * pitch + width * format.bytes(); }
};

struct Texture {
  Image image;
  AddressMode address[3] = {AddressMode::clamp, AddressMode::clamp, AddressMode::clamp};
  Filter filter = Filter::point;
  bool normalized_coordinates = false;
  bool normalized_float = false;  // cudaReadModeNormalizedFloat: 8 and 16-bit integers become [0, 1] or [-1, 1]
  bool srgb = false;
  float border[4] = {0, 0, 0, 0};
};

struct Surface {
  Image image;
};

// A handle is an index into the table, plus one; a place is used again after it was removed.
class ImageTable {
 public:
  u64 add(const Texture& texture);
  u64 add(const Surface& surface);
  bool remove_texture(u64 handle);  // false: there is no such object
  bool remove_surface(u64 handle);
  // Null: there is no such object. Const during a launch.
  const Texture* texture(u64 handle) const;
  const Surface* surface(u64 handle) const;
  void clear();

 private:
  std::deque<std::optional<Texture>> textures_;
  std::deque<std::optional<Surface>> surfaces_;
};

}  // namespace kw
