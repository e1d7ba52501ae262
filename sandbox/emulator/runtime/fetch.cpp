// Texture fetches and surface accesses of lowered code.
//
// Texture units read texels as floats or integers. The linear filter weighs its neighbours with fractions of 8 bits, as
// the hardware does; there are no mipmaps, so every level of detail is level 0.

#include <cmath>
#include <cstring>

#include "checks.h"
#include "pieces.h"
#include "texture.h"

namespace kw {
namespace {

// lowering/texture.py numbers them so.
struct Geometry {
  u32 dimensions;
  bool layered;
  explicit Geometry(u32 code) : dimensions(code & 3), layered(code & 4) {}
};

constexpr i64 OUTSIDE = -1;  // of an image, where the border is

struct Request {
  Warp* warp;
  u32 site, lane;
  const Allocation* allocation;
  int count = 0;
  u64 texels[8];
};

struct Colour {
  u32 bits[4];
};

float to_float(const TexelFormat& format, u32 raw, bool normalized, bool srgb) {
  bool sign = format.kind == TexelKind::signed_integer;
  if (format.kind == TexelKind::floating)
    return format.bits == 16 ? static_cast<float>(std::bit_cast<_Float16>(static_cast<u16>(raw))) : std::bit_cast<float>(raw);
  if (!normalized || format.bits == 32) return std::bit_cast<float>(raw);
  float most = static_cast<float>((u32{1} << (format.bits - (sign ? 1 : 0))) - 1);
  float value = sign ? std::max(static_cast<float>(static_cast<i32>(raw)) / most, -1.0f) : static_cast<float>(raw) / most;
  if (!srgb) return value;
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

// The place of texel `index` among `extent`, by address mode; OUTSIDE: the border's colour.
i64 addressed(i64 index, i64 extent, AddressMode mode, bool normalized) {
  if (index >= 0 && index < extent) return index;
  if (mode == AddressMode::border) return OUTSIDE;
  if (mode == AddressMode::clamp || !normalized) return index < 0 ? 0 : extent - 1;
  i64 around = index % extent + (index % extent < 0 ? extent : 0);
  if (mode == AddressMode::wrap) return around;
  bool odd = (index - around) / extent & 1;
  return odd ? extent - 1 - around : around;
}

struct Sampler {
  const Texture& texture;
  Geometry geometry;
  u32 layer;
  Request& request;

  i64 extent(u32 axis) const {
    const Image& image = texture.image;
    u64 value = axis == 0 ? image.width : axis == 1 ? image.height : image.depth;
    return static_cast<i64>(value ? value : 1);
  }

  Colour texel(const i64 (&index)[3]) const {
    const Image& image = texture.image;
    u64 at[3] = {};
    for (u32 axis = 0; axis < geometry.dimensions; ++axis) {
      i64 place = addressed(index[axis], extent(axis), texture.address[axis], texture.normalized_coordinates);
      if (place == OUTSIDE) return border();
      at[axis] = static_cast<u64>(place);
    }
    if (geometry.layered) at[2] = layer;
    return decode(image.base + at[2] * image.slice + at[1] * image.pitch + at[0] * image.format.bytes());
  }

  Colour border() const {
    Colour colour{};
    for (int channel = 0; channel < 4; ++channel) {
      float value = texture.border[channel];
      colour.bits[channel] = as_floats() ? std::bit_cast<u32>(value) : static_cast<u32>(static_cast<i32>(value));
    }
    return colour;
  }

  bool as_floats() const { return texture.image.format.kind == TexelKind::floating || texture.normalized_float; }

  Colour decode(u64 address) const {
    const TexelFormat& format = texture.image.format;
    request.texels[request.count++] = address;
    Colour colour{{0, 0, 0, as_floats() ? std::bit_cast<u32>(1.0f) : 1}};
    if (!readable(address, format.bytes())) return colour;
    for (u32 channel = 0; channel < format.channels; ++channel) {
      u32 raw = 0;
      std::memcpy(&raw, Device::pointer(address + channel * format.bits / 8), format.bits / 8);
      if (format.kind == TexelKind::signed_integer)
        raw = static_cast<u32>(static_cast<i32>(raw << (32 - format.bits)) >> (32 - format.bits));
      colour.bits[channel] =
          as_floats() ? std::bit_cast<u32>(to_float(format, raw, texture.normalized_float, texture.srgb && channel < 3)) : raw;
    }
    return colour;
  }

  // The texture is inside live memory as a whole; what is left to check of a texel is whether it was ever written.
  bool readable(u64 address, u32 bytes) const {
    Warp* warp = request.warp;
    const Allocation* allocation = request.allocation;
    if (allocation->written() || !checked(warp) || !warp->worker->launch.checked(INITCHECK)) return true;
    for (u32 at = 0; at < bytes; ++at)
      if (*Device::shadow(address + at)) return true;
    Finding finding{.address = address, .space = "global", .fatal = false, .bytes = bytes,
                    .allocation = allocation->name, .allocation_bytes = allocation->bytes};
    object(warp, request.site, request.lane, "uninitialised", std::move(finding), [&] {
      return "texture fetch of " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ", in " + allocation->name +
             ", where nothing was written before";
    });
    return false;
  }

  // Coordinates in texels: where the texture's coordinates are normalized, multiplied by its extents.
  void scale(float (&coordinates)[3]) const {
    for (u32 axis = 0; axis < geometry.dimensions; ++axis)
      if (texture.normalized_coordinates) coordinates[axis] *= static_cast<float>(extent(axis));
  }

  static i64 whole(float value) {
    if (std::isnan(value)) return 0;
    return static_cast<i64>(std::floor(std::clamp(value, -2147483648.0f, 2147483520.0f)));
  }

  Colour nearest(float (&coordinates)[3]) const {
    scale(coordinates);
    i64 index[3] = {};
    for (u32 axis = 0; axis < geometry.dimensions; ++axis) index[axis] = whole(coordinates[axis]);
    return texel(index);
  }

  Colour linear(float (&coordinates)[3]) const {
    scale(coordinates);
    i64 low[3] = {};
    float weight[3] = {};
    for (u32 axis = 0; axis < geometry.dimensions; ++axis) {
      float moved = coordinates[axis] - 0.5f;
      low[axis] = whole(moved);
      weight[axis] = std::nearbyint((moved - static_cast<float>(low[axis])) * 256.0f) / 256.0f;
    }
    float sum[4] = {};
    for (u32 corner = 0; corner < 1u << geometry.dimensions; ++corner) {
      i64 index[3] = {};
      float share = 1;
      for (u32 axis = 0; axis < geometry.dimensions; ++axis) {
        bool upper = corner >> axis & 1;
        index[axis] = low[axis] + upper;
        share *= upper ? weight[axis] : 1 - weight[axis];
      }
      Colour colour = texel(index);
      for (int channel = 0; channel < 4; ++channel) sum[channel] += share * std::bit_cast<float>(colour.bits[channel]);
    }
    Colour colour;
    for (int channel = 0; channel < 4; ++channel) colour.bits[channel] = std::bit_cast<u32>(sum[channel]);
    return colour;
  }

  // One channel of the four texels that a linear filter would weigh.
  Colour gather(float (&coordinates)[3], u32 channel) const {
    scale(coordinates);
    i64 x = whole(coordinates[0] - 0.5f), y = whole(coordinates[1] - 0.5f);
    const i64 corners[4][3] = {{x, y + 1, 0}, {x + 1, y + 1, 0}, {x + 1, y, 0}, {x, y, 0}};
    Colour colour;
    for (int corner = 0; corner < 4; ++corner) colour.bits[corner] = texel(corners[corner]).bits[channel];
    return colour;
  }
};

void count_fetch(Warp* warp, u32 site, u64* texels, int count, u32 bytes) {
  if (!warp->counts || !count) return;
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  counters[REQUESTS] += 1;
  u64 useful = u64{bytes} * static_cast<u64>(distinct(texels, count));
  counters[BYTES] += useful;
  counters[IDEAL] += (useful + 31) / 32;
  for (int i = 0; i < count; ++i) *Device::loaded(texels[i]) = 1;
  for (int i = 0; i < count; ++i) texels[i] >>= 5;
  counters[SECTORS] += static_cast<u64>(distinct(texels, count));
}

const Image& image_of(Warp* warp, u32 line, u32 lane, const Image* image, const char* what, u64 handle, Geometry geometry) {
  if (!image)
    fail(warp, lane, line, "out of bounds", std::string(what) + " object " + std::to_string(handle) + " does not exist", handle, "");
  u32 dimensions = image->depth ? 3 : image->height ? 2 : 1;
  if (dimensions != geometry.dimensions || (image->layers != 0) != geometry.layered)
    give_up(warp, "a texture or surface that is accessed with other dimensions than it has");
  return *image;
}

const Allocation* memory_of(Warp* warp, u32 site, u32 lane, const Image& image) {
  const Allocation* allocation = warp->worker->launch.device->find(image.base, image.bytes());
  if (!allocation) bad_global(warp, site, lane, image.base, 1);
  return allocation;
}

}  // namespace
}  // namespace kw

using namespace kw;

extern "C" {

// `how`: bits 0-2 geometry, bit 3 integer coordinates, bit 4 gather, bits 5-6 its channel. Coordinates and results are
// [number][lane]; a layer comes first.
void kw_tex(Warp* warp, u32 site, u32 mask, u32 how, const u64* handles, const u32* coordinates, u32* out) {
  u64 texels[LANES * 8];
  int count = 0;
  u32 bytes = 0;
  Geometry geometry(how);
  for (u32 rest = mask; rest; rest &= rest - 1) {
    u32 lane = static_cast<u32>(std::countr_zero(rest));
    const Texture* texture = warp->worker->launch.device->images.texture(handles[lane]);
    const Image& image = image_of(warp, site_line(warp, site), lane, texture ? &texture->image : nullptr, "texture", handles[lane], geometry);
    const Allocation* allocation = memory_of(warp, site, lane, image);
    Colour colour{};
    if (allocation) {
      u32 first = geometry.layered ? 1 : 0;
      u32 layer = first ? std::min(coordinates[lane], image.layers - 1) : 0;
      Request request{warp, site, lane, allocation, 0, {}};
      Sampler sampler{*texture, geometry, layer, request};
      const u32* given = coordinates + first * LANES + lane;
      if (how & 8) {
        i64 index[3] = {};
        bool inside = true;
        for (u32 axis = 0; axis < geometry.dimensions; ++axis) {
          index[axis] = static_cast<i32>(given[axis * LANES]);
          inside = inside && index[axis] >= 0 && index[axis] < sampler.extent(axis);
        }
        if (inside || !image.linear) colour = sampler.texel(index);
      } else {
        float position[3] = {};
        for (u32 axis = 0; axis < geometry.dimensions; ++axis) position[axis] = std::bit_cast<float>(given[axis * LANES]);
        bool filtered = texture->filter == Filter::linear && sampler.as_floats();
        colour = how & 16 ? sampler.gather(position, how >> 5 & 3) : filtered ? sampler.linear(position) : sampler.nearest(position);
      }
      bytes = image.format.bytes();
      std::copy(request.texels, request.texels + request.count, texels + count);
      count += request.count;
    }
    for (u32 channel = 0; channel < 4; ++channel) out[channel * LANES + lane] = colour.bits[channel];
  }
  count_fetch(warp, site, texels, count, bytes);
}

// What txq and suq ask: 0 width, 1 height, 2 depth, 3 layers, 4 whether coordinates are normalized; + 8 of surfaces.
void kw_image_query(Warp* warp, u32 line, u32 mask, u32 what, const u64* handles, u32* out) {
  for (u32 rest = mask; rest; rest &= rest - 1) {
    u32 lane = static_cast<u32>(std::countr_zero(rest));
    const ImageTable& images = warp->worker->launch.device->images;
    const Texture* texture = what & 8 ? nullptr : images.texture(handles[lane]);
    const Surface* surface = what & 8 ? images.surface(handles[lane]) : nullptr;
    if (!texture && !surface)
      fail(warp, lane, line, "out of bounds", "image object " + std::to_string(handles[lane]) + " does not exist", handles[lane], "");
    const Image& image = texture ? texture->image : surface->image;
    const u32 answers[] = {static_cast<u32>(image.width), image.height, image.depth, image.layers,
                           texture && texture->normalized_coordinates};
    out[lane] = answers[what & 7];
  }
}

// suld.b and sust.b of `count` elements of `size` bytes a lane. `how`: bits 0-2 geometry, bits 3-4: outside it 0 traps, 1 is clamped, 2 is zero;
// bit 5: stores. `data` is [element][lane].
void kw_surface(Warp* warp, u32 site, u32 mask, u32 how, u32 size, u32 count, const u64* handles, const u32* coordinates, u8* data) {
  u32 bytes = size * count;
  auto element = [&](u32 index, u32 lane) { return data + (index * LANES + lane) * size; };
  Geometry geometry(how);
  bool stores = how & 32;
  u32 outside = how >> 3 & 3;
  Lanes lanes;
  u8 pieces[LANES * 16];
  for (u32 rest = mask; rest; rest &= rest - 1) {
    u32 lane = static_cast<u32>(std::countr_zero(rest));
    const Surface* surface = warp->worker->launch.device->images.surface(handles[lane]);
    const Image& image = image_of(warp, site_line(warp, site), lane, surface ? &surface->image : nullptr, "surface", handles[lane], geometry);
    if (!memory_of(warp, site, lane, image)) continue;
    u32 first = geometry.layered ? 1 : 0;
    auto given = [&](u32 axis) { return i64{static_cast<i32>(coordinates[(first + axis) * LANES + lane])}; };
    i64 extents[3] = {static_cast<i64>(image.width * image.format.bytes()) - bytes + 1, i64{image.height}, i64{image.depth}};
    u64 at[3] = {0, 0, geometry.layered ? std::min(coordinates[lane], image.layers - 1) : 0};
    bool inside = true;
    for (u32 axis = 0; axis < geometry.dimensions; ++axis) {
      i64 index = given(axis);
      inside = inside && index >= 0 && index < extents[axis];
      at[axis] = static_cast<u64>(std::clamp<i64>(index, 0, extents[axis] - 1));
    }
    for (u32 k = 0; k < count && !stores; ++k) std::memset(element(k, lane), 0, size);
    if (!inside && outside == 0) {
      object(warp, site, lane, "out of bounds", {.address = image.base, .space = "global", .bytes = bytes}, [&] {
        std::string where;
        for (u32 axis = 0; axis < geometry.dimensions; ++axis) where += (axis ? ", " : "") + std::to_string(given(axis));
        return std::string(stores ? "write" : "read") + " of a surface at (" + where + "), outside it (x in bytes)";
      });
      continue;
    }
    if (!inside && outside == 2) continue;
    lanes.lane[lanes.count] = static_cast<u8>(lane);
    u8* piece = pieces + static_cast<u32>(lanes.count) * bytes;
    for (u32 k = 0; k < count && stores; ++k) std::memcpy(piece + k * size, element(k, lane), size);
    lanes.address[lanes.count++] = image.base + at[2] * image.slice + at[1] * image.pitch + at[0];
  }
  if (!lanes.count) return;
  if (stores) {
    write_pieces(warp, site, 'g', lanes, bytes, pieces);
    return;
  }
  read_pieces(warp, site, 'g', lanes, bytes, pieces);
  for (int i = 0; i < lanes.count; ++i)
    for (u32 k = 0; k < count; ++k)
      std::memcpy(element(k, lanes.lane[i]), pieces + static_cast<u32>(i) * bytes + k * size, size);
}
}
