// Loads and stores of lowered code: checked, counted, done.

#include "store_order.h"
#include "store_rows.h"

namespace kw {
namespace {

u64 number(const u8* at) { return reinterpret_cast<u64>(at); }

// Between memory (one piece of Size * Count bytes a lane) and registers ([element][lane]). The base is a number: to a
// null pointer nothing may be added, and GCC left out stores that did.
template <u32 Size, u32 Count>
inline void take(const Lanes& lanes, u64 base, u8* out) {
  for (int i = 0; i < lanes.count; ++i) {
    const u8* from = reinterpret_cast<const u8*>(base + lanes.address[i]);
    if constexpr (Count == 1) {
      std::memcpy(out + lanes.lane[i] * Size, from, Size);
    } else {
      u8 piece[Size * Count];
      read_whole<Size * Count>(piece, from);
      for (u32 k = 0; k < Count; ++k) std::memcpy(out + (k * LANES + lanes.lane[i]) * Size, piece + k * Size, Size);
    }
  }
}

template <u32 Size, u32 Count>
inline void put_lane(const Lanes& lanes, int i, u64 base, const u8* data) {
  u8* to = reinterpret_cast<u8*>(base + lanes.address[i]);
  if constexpr (Count == 1) {
    std::memcpy(to, data + lanes.lane[i] * Size, Size);
  } else {
    u8 piece[Size * Count];
    for (u32 k = 0; k < Count; ++k) std::memcpy(piece + k * Size, data + (k * LANES + lanes.lane[i]) * Size, Size);
    write_whole<Size * Count>(to, piece);
  }
}

template <u32 Size, u32 Count>
inline void put(const Lanes& lanes, u64 base, const u8* data) {
  in_store_order<Size * Count>(lanes, [&](int i) { put_lane<Size, Count>(lanes, i, base, data); });
}

// Global -------------------------------------------------------------------------------------------------------

template <u32 Size, u32 Count>
void load_global(Warp* warp, u32 site, Lanes& lanes, u8* out, bool counted = true) {
  if (checked(warp)) {
    const Allocation* common = check_global<Size * Count>(warp, site, lanes);
    poison_dropped<Size, Count>(lanes, out);
    check_written<Size * Count>(warp, site, lanes, common);
    if (counted && warp->counts) count_global<Size * Count>(warp, site, lanes, common, false);
    if (counted) race_read(warp, site, lanes, Size * Count, common);
  }
  take<Size, Count>(lanes, 0, out);
  if (!is_strong(warp, site)) return;
  race_acquire(warp);
  if (lanes.count) warp->spin.polled = lanes.address[0];
}

template <u32 Size, u32 Count>
void store_global(Warp* warp, u32 site, Lanes& lanes, const u8* data) {
  if (!checked(warp)) return put<Size, Count>(lanes, 0, data);
  const Allocation* common = check_global<Size * Count>(warp, site, lanes);
  if (warp->counts) count_global<Size * Count>(warp, site, lanes, common, true);
  order_for_store<Size * Count>(lanes);
  auto fill = [&](int i, u8* to) {
    for (u32 k = 0; k < Count; ++k) std::memcpy(to + k * Size, data + (k * LANES + lanes.lane[i]) * Size, Size);
  };
  if (!store_watched<Size * Count>(warp, site, lanes, common, fill))
    for (int i = 0; i < lanes.count; ++i) put_lane<Size, Count>(lanes, i, 0, data);
  mark_written<Size * Count>(warp, lanes, common);
}

// Shared -------------------------------------------------------------------------------------------------------

struct Half {
  u32 first;  // address of its first lane
  bool uniform;
};

template <u32 Bytes>
inline bool regular(const u32* addresses, u32 offset, u32 size, Half& half) {
  u32 base = addresses[0], spread = 0, steps = 0;
  for (u32 i = 0; i < HALF; ++i) {
    spread |= addresses[i] ^ base;
    steps |= addresses[i] ^ (base + Bytes * i);
  }
  half = {base + offset, spread == 0};
  u64 end = u64{half.first} + (half.uniform ? Bytes : Bytes * HALF);
  return (spread == 0 || steps == 0) && end <= size && half.first % Bytes == 0;
}

// Marks the reads of a half. False, and nothing done, where the exact checks have to look.
template <u32 Words>
bool read_half(SharedMemory& shared, const Half& half, Mark mine, u32& newest) {
  const Mark* writers = &shared.writers[half.first >> 2];
  Mark* readers = &shared.readers[half.first >> 2];
  u32 thread = mark_thread(mine), granules = half.uniform ? Words : Words * HALF, last = 0;
  bool exact = false;
  for (u32 k = 0; k < granules; ++k) {
    u32 epoch = mark_epoch(writers[k]);
    exact |= epoch == shared.epoch || epoch < shared.first_epoch;
    bool others = half.uniform || mark_thread(writers[k]) != thread + k / Words;
    last = std::max(last, others ? epoch : 0);
  }
  if (exact) return false;
  newest = std::max(newest, last);
  if (half.uniform)
    for (u32 k = 0; k < Words; ++k) readers[k] = with_reader(readers[k], mine) | MARK_SEVERAL_IN_WARP;
  else
    for (u32 k = 0; k < Words * HALF; ++k) readers[k] = with_reader(readers[k], mine + k / Words);
  return true;
}

// The same for writes, to places in a row only.
template <u32 Words>
bool write_half(SharedMemory& shared, const Half& half, Mark mine, u32& newest) {
  constexpr Mark SEVERAL = MARK_SEVERAL_IN_WARP | MARK_SEVERAL_WARPS;
  Mark* writers = &shared.writers[half.first >> 2];
  const Mark* readers = &shared.readers[half.first >> 2];
  u32 thread = mark_thread(mine), last = 0;
  bool exact = false;
  for (u32 k = 0; k < Words * HALF; ++k) {
    u32 wrote = mark_epoch(writers[k]), read = mark_epoch(readers[k]);
    exact |= wrote == shared.epoch || read == shared.epoch;
    last = std::max(last, mark_thread(writers[k]) != thread + k / Words ? wrote : 0);
    last = std::max(last, mark_thread(readers[k]) != thread + k / Words || readers[k] & SEVERAL ? read : 0);
  }
  if (exact) return false;
  newest = std::max(newest, last);
  u32 fresh = 0;
  for (u32 k = 0; k < Words * HALF; ++k) {
    fresh += mark_epoch(writers[k]) < shared.first_epoch;
    writers[k] = mine + k / Words;
  }
  shared.unwritten -= fresh;
  shared.last_write = shared.epoch;
  return true;
}

// Wavefronts of two regular halves; 0 when that takes a closer look.
template <u32 Words>
u64 regular_wavefronts(const Half& low, const Half& high) {
  if (Words > 1) return Words;
  u32 apart = (high.first - low.first) / 4;
  if (low.uniform && high.uniform) return apart != 0 && apart % 32 == 0 ? 2 : 1;
  if (!low.uniform && !high.uniform) return apart == 0 || apart % 32 == HALF ? 1 : 0;
  return 0;
}

template <u32 Words>
void count_regular(Warp* warp, u32 site, const Half& low, const Half& high, const u32* addresses, i64 offset) {
  u64 actual = regular_wavefronts<Words>(low, high), ideal = Words;
  if (!actual) {
    Lanes lanes;
    gather_lanes(lanes, ~u32{0}, addresses, offset);
    shared_wavefronts(lanes, 4 * Words, actual, ideal);
  }
  count_shared(warp, site, actual, ideal);
}

template <u32 Size, u32 Count>
inline void take_half(const Half& half, const u8* bytes, int lane, u8* out) {
  constexpr u32 Bytes = Size * Count;
  for (u32 k = 0; k < Count; ++k) {
    u8* to = out + (k * LANES + lane) * Size;
    const u8* from = bytes + half.first + k * Size;
    u32 step = half.uniform ? 0 : Bytes;
    if (Count == 1 && !half.uniform)
      std::memcpy(to, from, Size * HALF);
    else
      for (u32 i = 0; i < HALF; ++i) std::memcpy(to + i * Size, from + i * step, Size);
  }
}

template <u32 Size, u32 Count>
bool load_regular(Warp* warp, u32 site, const u32* addresses, i64 offset, u8* out) {
  constexpr u32 Bytes = Size * Count, Words = Bytes / 4;
  SharedMemory& shared = warp->block->shared;
  Half low, high;
  u32 moved = static_cast<u32>(offset), newest = 0;
  if (shared.granule_shift != 2 || !regular<Bytes>(addresses, moved, shared.size, low) ||
      !regular<Bytes>(addresses + HALF, moved, shared.size, high))
    return false;
  if (is_strong(warp, site)) return false;
  shared.settle();
  Mark mine = own_mark(warp, 0, false, false);
  if (!read_half<Words>(shared, low, mine, newest) || !read_half<Words>(shared, high, mine + HALF, newest)) return false;
  if (warp->counts) {
    shared.ordered(newest);
    count_regular<Words>(warp, site, low, high, addresses, offset);
  }
  take_half<Size, Count>(low, shared.bytes.data(), 0, out);
  take_half<Size, Count>(high, shared.bytes.data(), HALF, out);
  return true;
}

template <u32 Size, u32 Count>
bool store_regular(Warp* warp, u32 site, const u32* addresses, i64 offset, const u8* data) {
  constexpr u32 Bytes = Size * Count, Words = Bytes / 4;
  SharedMemory& shared = warp->block->shared;
  Half low, high;
  u32 moved = static_cast<u32>(offset), newest = 0;
  if (shared.granule_shift != 2 || !regular<Bytes>(addresses, moved, shared.size, low) ||
      !regular<Bytes>(addresses + HALF, moved, shared.size, high) || low.uniform || high.uniform)
    return false;
  if (std::max(low.first, high.first) - std::min(low.first, high.first) < Bytes * HALF) return false;  // halves that meet
  if (is_strong(warp, site)) return false;
  shared.notes.before_write(shared, warp->warpid, addresses, offset, Bytes, warp->counts);
  Mark mine = own_mark(warp, 0, false, false);
  if (!write_half<Words>(shared, low, mine, newest) || !write_half<Words>(shared, high, mine + HALF, newest)) return false;
  if (warp->counts) {
    shared.ordered(newest);
    count_regular<Words>(warp, site, low, high, addresses, offset);
  }
  u8* bytes = shared.bytes.data();
  for (u32 i = 0; i < HALF; ++i)
    for (u32 k = 0; k < Count; ++k) {
      std::memcpy(bytes + low.first + i * Bytes + k * Size, data + (k * LANES + i) * Size, Size);
      std::memcpy(bytes + high.first + i * Bytes + k * Size, data + (k * LANES + HALF + i) * Size, Size);
    }
  return true;
}

template <u32 Size, u32 Count>
void load_shared(Warp* warp, u32 site, Lanes& lanes, u8* out) {
  if (checked(warp)) {
    check_shared<Size * Count>(warp, site, lanes);
    poison_dropped<Size, Count>(lanes, out);
    shared_read<Size * Count>(warp, site, lanes);
    if (warp->counts) count_shared(warp, site, lanes, Size * Count);
  }
  take<Size, Count>(lanes, number(warp->block->shared.bytes.data()), out);
  if (is_strong(warp, site)) race_acquire(warp);
}

template <u32 Size, u32 Count>
void store_shared(Warp* warp, u32 site, Lanes& lanes, const u8* data) {
  u8* bytes = warp->block->shared.bytes.data();
  if (!checked(warp)) return put<Size, Count>(lanes, number(bytes), data);
  check_shared<Size * Count>(warp, site, lanes);
  if (warp->counts) count_shared(warp, site, lanes, Size * Count);
  order_for_store<Size * Count>(lanes);
  SharedStores stores(warp, lanes, Size * Count, is_strong(warp, site));
  for (int i = 0; i < lanes.count; ++i) {
    u8 piece[Size * Count];
    for (u32 k = 0; k < Count; ++k) std::memcpy(piece + k * Size, data + (k * LANES + lanes.lane[i]) * Size, Size);
    u32 at = static_cast<u32>(lanes.address[i]);
    if (!stores.marked(i)) shared_write<Size * Count>(warp, site, lanes.lane[i], at, piece, false);
    std::memcpy(bytes + at, piece, Size * Count);
  }
}

// Local --------------------------------------------------------------------------------------------------------

template <u32 Bytes>
void check_local(Warp* warp, u32 site, Lanes& lanes) {
  u32 size = warp->worker->launch.request->kernel->local_bytes;
  if (!all_within<Bytes>(lanes, size)) drop_lanes(lanes, [&](u32 lane, u64 at) {
    if (at + Bytes <= size && !(at & (Bytes - 1))) return false;
    if (at + Bytes <= size) {
      misaligned(warp, site, lane, at, Bytes, "local");
      return true;
    }
    object(warp, site, lane, "out of bounds", {.address = at, .space = "local", .bytes = Bytes}, [&] {
      return sized(direction(warp, site), Bytes) + " at local address " + hexadecimal(at) +
             ", outside the thread's local memory (" + with_commas(size) + " bytes)";
    });
    return true;
  });
  if (warp->counts) {
    u64* counters = warp->counters + size_t{site} * COUNTERS;
    counters[REQUESTS] += 1;
    counters[BYTES] += u64{Bytes} * lanes.count;
  }
}

void to_local(const Warp* warp, Lanes& lanes) {
  u64 stride = warp->worker->launch.request->kernel->local_bytes;
  for (int i = 0; i < lanes.count; ++i) lanes.address[i] += lanes.lane[i] * stride;
}

// A read of what was never written is a note: struct copies read unused parts, too. What unknown ways wrote is not
// poison any more.
template <u32 Bytes>
void check_local_written(Warp* warp, u32 site, const Lanes& lanes) {
  if (!warp->local_marks) return;
  u8 poison[Bytes];
  std::memset(poison, 0xFF, Bytes);
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    if (any_written<Bytes>(warp->local_marks + at) || std::memcmp(warp->locals + at, poison, Bytes) != 0) continue;
    u64 own = at - lanes.lane[i] * u64{warp->worker->launch.request->kernel->local_bytes};
    object(warp, site, lanes.lane[i], "uninitialised",
           {.address = own, .space = "local", .note = true, .fatal = false, .bytes = Bytes}, [&] {
             return sized(direction(warp, site), Bytes) + " at local address " + hexadecimal(own) +
                    ", where the thread has not written before";
           });
  }
}

template <u32 Bytes>
void mark_local(Warp* warp, const Lanes& lanes) {
  if (!warp->local_marks) return;
  for (int i = 0; i < lanes.count; ++i) std::memset(warp->local_marks + lanes.address[i], 1, Bytes);
}

template <u32 Size, u32 Count>
void load_local(Warp* warp, u32 site, Lanes& lanes, u8* out) {
  if (checked(warp)) {
    check_local<Size * Count>(warp, site, lanes);
    poison_dropped<Size, Count>(lanes, out);
  }
  to_local(warp, lanes);
  check_local_written<Size * Count>(warp, site, lanes);
  take<Size, Count>(lanes, number(warp->locals), out);
}

template <u32 Size, u32 Count>
void store_local(Warp* warp, u32 site, Lanes& lanes, const u8* data) {
  if (checked(warp)) check_local<Size * Count>(warp, site, lanes);
  to_local(warp, lanes);
  mark_local<Size * Count>(warp, lanes);
  put<Size, Count>(lanes, number(warp->locals), data);
}

// Generic addresses --------------------------------------------------------------------------------------------

template <u32 Size, u32 Count>
void load_parameter(Warp* warp, u32 site, Lanes& lanes, u8* out) {
  u64 size = warp->worker->launch.request->kernel->parameter_bytes;
  drop_lanes(lanes, [&](u32 lane, u64 at) {
    if (at <= size && size - at >= Size * Count) return false;
    object(warp, site, lane, "out of bounds", {.address = at, .space = "param", .bytes = Size * Count}, [&] {
      return sized('l', Size * Count) + " outside the kernel's parameters (" + with_commas(size) + " bytes)";
    });
    return true;
  });
  poison_dropped<Size, Count>(lanes, out);
  take<Size, Count>(lanes, number(warp->parameters), out);
}

template <u32 Size, u32 Count>
void load_generic(Warp* warp, u32 site, const Lanes& lanes, u8* out) {
  Lanes parts[4];
  split(lanes, parts);
  if (parts[0].count) load_global<Size, Count>(warp, site, parts[0], out);
  if (parts[1].count) load_shared<Size, Count>(warp, site, parts[1], out);
  if (parts[2].count) load_local<Size, Count>(warp, site, parts[2], out);
  if (parts[3].count) load_parameter<Size, Count>(warp, site, parts[3], out);
}

template <u32 Size, u32 Count>
void store_generic(Warp* warp, u32 site, const Lanes& lanes, const u8* data) {
  Lanes parts[4];
  split(lanes, parts);
  for (int i = 0; i < parts[3].count; ++i)
    bad_global(warp, site, parts[3].lane[i], parts[3].address[i] + PARAMETER_WINDOW, Size * Count);
  if (parts[0].count) store_global<Size, Count>(warp, site, parts[0], data);
  if (parts[1].count) store_shared<Size, Count>(warp, site, parts[1], data);
  if (parts[2].count) store_local<Size, Count>(warp, site, parts[2], data);
}

}  // namespace
}  // namespace kw

using namespace kw;

// The helpers that lowered code calls: kw_{ld,st}_{space}_{bytes}_{elements}.

#define GLOBAL_LIKE(SPACE, LOAD, STORE, ADDRESS, SIZE, COUNT)                                                            \
  void kw_ld_##SPACE##_##SIZE##_##COUNT(Warp* warp, u32 site, u32 mask, const ADDRESS* addresses, i64 offset, u8* out) { \
    if (!mask) return;                                                                                                   \
    Lanes lanes;                                                                                                         \
    gather_lanes(lanes, mask, addresses, offset);                                                                        \
    LOAD<SIZE, COUNT>(warp, site, lanes, out);                                                                           \
  }                                                                                                                      \
  void kw_st_##SPACE##_##SIZE##_##COUNT(Warp* warp, u32 site, u32 mask, const ADDRESS* addresses, i64 offset,            \
                                        const u8* data) {                                                                \
    if constexpr (#SPACE[0] == 'g' && SIZE * COUNT >= 4)                                                                 \
      if (mask == ~u32{0} && checked(warp) && store_rows<SIZE, COUNT>(warp, site, addresses, offset, data)) return;      \
    if (!mask) return;                                                                                                   \
    Lanes lanes;                                                                                                         \
    gather_lanes(lanes, mask, addresses, offset);                                                                        \
    STORE<SIZE, COUNT>(warp, site, lanes, data);                                                                         \
  }

#define SHARED(SIZE, COUNT)                                                                                              \
  void kw_ld_s_##SIZE##_##COUNT(Warp* warp, u32 site, u32 mask, const u32* addresses, i64 offset, u8* out) {             \
    if constexpr (SIZE >= 4)                                                                                             \
      if (mask == ~u32{0} && checked(warp) && load_regular<SIZE, COUNT>(warp, site, addresses, offset, out)) return;                      \
    if (!mask) return;                                                                                                   \
    Lanes lanes;                                                                                                         \
    gather_lanes(lanes, mask, addresses, offset);                                                                        \
    load_shared<SIZE, COUNT>(warp, site, lanes, out);                                                                    \
  }                                                                                                                      \
  void kw_st_s_##SIZE##_##COUNT(Warp* warp, u32 site, u32 mask, const u32* addresses, i64 offset, const u8* data) {      \
    if constexpr (SIZE >= 4)                                                                                             \
      if (mask == ~u32{0} && checked(warp) && store_regular<SIZE, COUNT>(warp, site, addresses, offset, data)) return;                    \
    if (!mask) return;                                                                                                   \
    Lanes lanes;                                                                                                         \
    gather_lanes(lanes, mask, addresses, offset);                                                                        \
    store_shared<SIZE, COUNT>(warp, site, lanes, data);                                                                  \
  }

#define LOAD_ONLY(SPACE, LOAD, SIZE, COUNT, ...)                                                                     \
  void kw_ld_##SPACE##_##SIZE##_##COUNT(Warp* warp, u32 site, u32 mask, const u64* addresses, i64 offset, u8* out) { \
    if (!mask) return;                                                                                               \
    Lanes lanes;                                                                                                     \
    gather_lanes(lanes, mask, addresses, offset);                                                                    \
    LOAD<SIZE, COUNT>(warp, site, lanes, out __VA_OPT__(, ) __VA_ARGS__);                                            \
  }

#define ALL_SPACES(SIZE, COUNT)                                        \
  GLOBAL_LIKE(g, load_global, store_global, u64, SIZE, COUNT)          \
  SHARED(SIZE, COUNT)                                                  \
  GLOBAL_LIKE(l, load_local, store_local, u32, SIZE, COUNT)            \
  GLOBAL_LIKE(x, load_generic, store_generic, u64, SIZE, COUNT)        \
  LOAD_ONLY(c, load_global, SIZE, COUNT, false)                        \
  LOAD_ONLY(p, load_parameter, SIZE, COUNT)

extern "C" {
ALL_SPACES(1, 1)
ALL_SPACES(1, 2)
ALL_SPACES(1, 4)
ALL_SPACES(2, 1)
ALL_SPACES(2, 2)
ALL_SPACES(2, 4)
ALL_SPACES(2, 8)
ALL_SPACES(4, 1)
ALL_SPACES(4, 2)
ALL_SPACES(4, 4)
ALL_SPACES(8, 1)
ALL_SPACES(8, 2)
}
