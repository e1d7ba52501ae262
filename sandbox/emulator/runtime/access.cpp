// Loads and stores of lowered code: checked, counted, done.

#include "access.h"

#include <cstring>

namespace kw {
namespace {

constexpr u64 NULL_BYTES = 1 << 20;  // addresses below are null pointers with an offset

const char* verb(char direction) { return direction == 'l' ? "read" : direction == 's' ? "write" : "atomic update"; }

std::string sized(char direction, u32 bytes) {
  return std::string(verb(direction)) + " of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

[[noreturn]] void misaligned(Warp* warp, u32 site, u32 lane, u64 at, u32 bytes, const char* space) {
  char direction = warp->worker->launch.module->sites[site].direction;
  fail(warp, lane, site_line(warp, site), "misaligned",
       sized(direction, bytes) + " at " + hexadecimal(at) + ", which is not a multiple of " + std::to_string(bytes), at,
       space);
}

[[noreturn]] void bad_global(Warp* warp, u32 site, u32 lane, u64 at, u32 bytes) {
  char direction = warp->worker->launch.module->sites[site].direction;
  std::string what = sized(direction, bytes) + " at " + hexadecimal(at);
  if (at < NULL_BYTES || at + NULL_BYTES < NULL_BYTES)
    fail(warp, lane, site_line(warp, site), "null", what + ", which is a null pointer" + (at ? " plus an offset" : ""), at,
         "global");
  bool freed = false;
  std::string where = warp->worker->launch.device->describe(at, bytes, freed);
  fail(warp, lane, site_line(warp, site), freed ? "use after free" : "out of bounds", what + ", " + where, at, "global");
}

// Finds the allocation of each lane; the common case is that all share one, the one of the last access.
template <u32 Bytes>
const Allocation* check_global(Warp* warp, u32 site, const Lanes& lanes) {
  u64 low = ~u64{0}, high = 0, all = 0;
  for (int i = 0; i < lanes.count; ++i) {
    low = std::min(low, lanes.address[i]);
    high = std::max(high, lanes.address[i]);
    all |= lanes.address[i];
  }
  if (all & (Bytes - 1))
    for (int i = 0; i < lanes.count; ++i)
      if (lanes.address[i] & (Bytes - 1)) misaligned(warp, site, lanes.lane[i], lanes.address[i], Bytes, "global");
  const Allocation* hint = warp->worker->hint;
  if (hint && low >= hint->address && hint->holds(high, Bytes)) return hint;
  hint = warp->worker->launch.device->find(low, Bytes);
  if (hint && hint->holds(high, Bytes)) return warp->worker->hint = hint;
  for (int i = 0; i < lanes.count; ++i)
    if (!warp->worker->launch.device->find(lanes.address[i], Bytes))
      bad_global(warp, site, lanes.lane[i], lanes.address[i], Bytes);
  return nullptr;  // several allocations
}

inline const Allocation* allocation_of(Warp* warp, const Allocation* common, u64 at, u32 bytes) {
  return common ? common : warp->worker->launch.device->find(at, bytes);
}

void note_global_order(Warp* warp, const Allocation* allocation, bool stores) {
  Block& block = *warp->block;
  u32 now = block.shared.epoch;
  for (auto& [known, epochs] : block.global_epochs) {
    if (known != allocation) continue;
    block.shared.ordered(epochs.second);
    if (stores) block.shared.ordered(epochs.first);
    (stores ? epochs.second : epochs.first) = now;
    return;
  }
  block.global_epochs.push_back({allocation, stores ? std::pair<u32, u32>{0, now} : std::pair<u32, u32>{now, 0}});
}

template <u32 Bytes>
void count_global(Warp* warp, u32 site, const Lanes& lanes, const Allocation* common, bool stores) {
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  u64 values[LANES];
  std::copy(lanes.address, lanes.address + lanes.count, values);
  counters[REQUESTS] += 1;
  u64 useful = u64{Bytes} * distinct(values, lanes.count);
  counters[BYTES] += useful;
  counters[IDEAL] += (useful + 31) / 32;
  for (int i = 0; i < lanes.count; ++i) values[i] >>= 5;
  counters[SECTORS] += distinct(values, lanes.count);
  for (int i = 0; i < lanes.count; ++i) *(stores ? Device::stored(values[i] << 5) : Device::loaded(values[i] << 5)) = 1;
  for (int i = 0; i < lanes.count; ++i) {
    const Allocation* allocation = allocation_of(warp, common, lanes.address[i], Bytes);
    note_global_order(warp, allocation, stores);
    if (common) break;
  }
}

// Is [at, at + Bytes) written? One comparison for the sizes that occur.
template <u32 Bytes>
bool all_written(const u8* shadow) {
  if constexpr (Bytes == 1) return *shadow;
  if constexpr (Bytes == 2) {
    u16 marks;
    std::memcpy(&marks, shadow, 2);
    return marks == 0x0101;
  }
  if constexpr (Bytes == 4) {
    u32 marks;
    std::memcpy(&marks, shadow, 4);
    return marks == 0x01010101;
  }
  u64 marks;
  for (u32 at = 0; at < Bytes; at += 8) {
    std::memcpy(&marks, shadow + at, 8);
    if (marks != 0x0101010101010101) return false;
  }
  return true;
}

template <u32 Bytes>
void check_written(Warp* warp, u32 site, const Lanes& lanes, const Allocation* common) {
  if (common && common->initialised) return;
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    const Allocation* allocation = allocation_of(warp, common, at, Bytes);
    if (allocation->initialised || all_written<Bytes>(Device::shadow(at))) continue;
    fail(warp, lanes.lane[i], site_line(warp, site), "uninitialised",
         sized(warp->worker->launch.module->sites[site].direction, Bytes) + " at " + hexadecimal(at) + ", " +
             with_commas(at - allocation->address) + " bytes into " + allocation->name + " (" +
             with_commas(allocation->bytes) + " bytes), where nothing was written before",
         at, "global");
  }
}

template <u32 Bytes>
void mark_written(Warp* warp, const Lanes& lanes, const Allocation* common) {
  if (common && common->initialised) return;
  for (int i = 0; i < lanes.count; ++i) {
    const Allocation* allocation = allocation_of(warp, common, lanes.address[i], Bytes);
    if (!allocation->initialised) std::memset(Device::shadow(lanes.address[i]), 1, Bytes);
  }
}

// Between memory (one piece of Size * Count bytes a lane) and registers ([element][lane]).
template <u32 Size, u32 Count>
inline void take(const Lanes& lanes, u8* base, u64 origin, u8* out) {
  for (int i = 0; i < lanes.count; ++i) {
    u8 piece[Size * Count];
    std::memcpy(piece, base + (lanes.address[i] - origin), Size * Count);
    for (u32 k = 0; k < Count; ++k) std::memcpy(out + (k * LANES + lanes.lane[i]) * Size, piece + k * Size, Size);
  }
}

template <u32 Size, u32 Count>
inline void put(const Lanes& lanes, u8* base, u64 origin, const u8* data) {
  for (int i = 0; i < lanes.count; ++i) {
    u8 piece[Size * Count];
    for (u32 k = 0; k < Count; ++k) std::memcpy(piece + k * Size, data + (k * LANES + lanes.lane[i]) * Size, Size);
    std::memcpy(base + (lanes.address[i] - origin), piece, Size * Count);
  }
}

// Global -------------------------------------------------------------------------------------------------------

template <u32 Size, u32 Count>
void load_global(Warp* warp, u32 site, const Lanes& lanes, u8* out, bool counted = true) {
  const Allocation* common = check_global<Size * Count>(warp, site, lanes);
  check_written<Size * Count>(warp, site, lanes, common);
  if (counted && warp->worker->launch.count) count_global<Size * Count>(warp, site, lanes, common, false);
  take<Size, Count>(lanes, nullptr, 0, out);
}

template <u32 Size, u32 Count>
void store_global(Warp* warp, u32 site, const Lanes& lanes, const u8* data) {
  const Allocation* common = check_global<Size * Count>(warp, site, lanes);
  if (warp->worker->launch.count) count_global<Size * Count>(warp, site, lanes, common, true);
  put<Size, Count>(lanes, nullptr, 0, data);
  mark_written<Size * Count>(warp, lanes, common);
}

// Shared -------------------------------------------------------------------------------------------------------

template <u32 Bytes>
void check_shared(Warp* warp, u32 site, const Lanes& lanes) {
  u32 size = warp->block->shared.size;
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    if (at + Bytes > size) {
      u64 past = at >= size ? at - size : 0;
      std::string where = size == 0 ? std::string("but the block has no shared memory")
                                    : with_commas(past) + " bytes past the end of the block's shared memory (" +
                                          with_commas(size) + " bytes)";
      fail(warp, lanes.lane[i], site_line(warp, site), "out of bounds",
           sized(warp->worker->launch.module->sites[site].direction, Bytes) + " at shared address " + hexadecimal(at) + ", " +
               where,
           at, "shared");
    }
    if (at & (Bytes - 1)) misaligned(warp, site, lanes.lane[i], at, Bytes, "shared");
  }
}

std::string thread_name(const Warp* warp, u32 linear) {
  u32 x = warp->ntid[0], y = warp->ntid[1];
  return "(" + std::to_string(linear % x) + ", " + std::to_string(linear / x % y) + ", " + std::to_string(linear / x / y) +
         ")";
}

[[noreturn]] void race(Warp* warp, u32 site, u32 lane, u64 at, const char* what, u32 other) {
  std::string whom = other == ~u32{0} ? "several other threads" : "thread " + thread_name(warp, other);
  fail(warp, lane, site_line(warp, site), "race",
       std::string(what) + " shared address " + hexadecimal(at) + ", which " + whom +
           (std::strcmp(what, "writes") == 0 ? " accesses" : " writes") + " without a barrier in between",
       at, "shared");
}

// Is an earlier access of another thread in this epoch unordered with one of `thread` now?
inline bool unordered(const Warp* warp, Mark mark, u32 epoch, u32 thread) {
  if (mark_epoch(mark) != epoch) return false;
  u32 other = mark_thread(mark);
  if (other == thread && !(mark & (MARK_SEVERAL_IN_WARP | MARK_SEVERAL_WARPS))) return false;
  if (mark & MARK_SEVERAL_WARPS) return true;
  if (other / LANES != warp->warpid) return true;
  return mark_sync(mark) >= warp->synced;  // the same warp, and no __syncwarp since
}

inline Mark own_mark(const Warp* warp, u32 lane, bool relaxed, bool atomic) {
  return Mark{warp->block->shared.epoch} << MARK_EPOCH_SHIFT | Mark{warp->synced} << MARK_SYNC_SHIFT |
         (relaxed ? MARK_RELAXED : 0) | (atomic ? MARK_ATOMIC : 0) | warp->thread(lane);
}

inline void note_order(SharedMemory& shared, Mark mark, u32 thread) {
  if (mark_thread(mark) != thread || (mark & (MARK_SEVERAL_IN_WARP | MARK_SEVERAL_WARPS))) shared.ordered(mark_epoch(mark));
}

template <u32 Bytes>
void shared_read(Warp* warp, u32 site, const Lanes& lanes) {
  SharedMemory& shared = warp->block->shared;
  bool relaxed = warp->worker->launch.module->sites[site].relaxed;
  bool count = warp->worker->launch.count;
  for (int i = 0; i < lanes.count; ++i) {
    u32 at = static_cast<u32>(lanes.address[i]);
    u32 thread = warp->thread(lanes.lane[i]);
    if (!all_written<Bytes>(&shared.written[at]))
      fail(warp, lanes.lane[i], site_line(warp, site), "uninitialised",
           sized('l', Bytes) + " at shared address " + hexadecimal(at) + ", where no thread of the block has written yet: is a barrier missing?", at, "shared");
    Mark mine = own_mark(warp, lanes.lane[i], relaxed, false);
    u32 last = (at + Bytes - 1) >> shared.granule_shift;
    for (u32 granule = at >> shared.granule_shift; granule <= last; ++granule) {
      Mark writer = shared.writers[granule];
      if (unordered(warp, writer, shared.epoch, thread) && !(relaxed && writer & MARK_RELAXED))
        race(warp, site, lanes.lane[i], at, "reads", mark_thread(writer));
      if (count) note_order(shared, writer, thread);
      Mark& reader = shared.readers[granule];
      if (mark_epoch(reader) != shared.epoch || reader == mine)
        reader = mine;
      else if (mark_thread(reader) / LANES != warp->warpid)
        reader = mine | MARK_SEVERAL_WARPS;
      else if (mark_thread(reader) != thread && mark_sync(reader) == warp->synced)
        reader = mine | MARK_SEVERAL_IN_WARP | (reader & MARK_SEVERAL_WARPS);
      else
        reader = mine | (reader & MARK_SEVERAL_WARPS);
    }
  }
}

// Checks and marks one lane's write; `data` is what it writes (null for atomics).
template <u32 Bytes>
void shared_write(Warp* warp, u32 site, u32 lane, u32 at, const u8* data, bool atomic) {
  SharedMemory& shared = warp->block->shared;
  bool relaxed = warp->worker->launch.module->sites[site].relaxed;
  u32 thread = warp->thread(lane);
  Mark mine = own_mark(warp, lane, relaxed, atomic);
  u32 last = (at + Bytes - 1) >> shared.granule_shift;
  for (u32 granule = at >> shared.granule_shift; granule <= last; ++granule) {
    Mark writer = shared.writers[granule], reader = shared.readers[granule];
    bool excused = (atomic && writer & MARK_ATOMIC) || (relaxed && writer & MARK_RELAXED);
    if (!excused && unordered(warp, writer, shared.epoch, thread)) {
      // Threads that store the same value do not harm each other.
      bool same = data && std::memcmp(&shared.bytes[at], data, Bytes) == 0;
      if (!same) race(warp, site, lane, at, "writes", mark_thread(writer));
    }
    if (unordered(warp, reader, shared.epoch, thread) && !(relaxed && reader & MARK_RELAXED))
      race(warp, site, lane, at, "writes", reader & MARK_SEVERAL_WARPS ? ~u32{0} : mark_thread(reader));
    if (warp->worker->launch.count) {
      note_order(shared, writer, thread);
      note_order(shared, reader, thread);
    }
    shared.writers[granule] = mine;
  }
  std::memset(&shared.written[at], 1, Bytes);
}

template <u32 Bytes>
void count_shared(Warp* warp, u32 site, const Lanes& lanes) {
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  u64 actual, ideal;
  shared_wavefronts(lanes, Bytes, actual, ideal);
  counters[REQUESTS] += 1;
  counters[WAVEFRONTS] += actual;
  counters[IDEAL] += ideal;
}

template <u32 Size, u32 Count>
void load_shared(Warp* warp, u32 site, const Lanes& lanes, u8* out) {
  check_shared<Size * Count>(warp, site, lanes);
  shared_read<Size * Count>(warp, site, lanes);
  if (warp->worker->launch.count) count_shared<Size * Count>(warp, site, lanes);
  take<Size, Count>(lanes, warp->block->shared.bytes.data(), 0, out);
}

template <u32 Size, u32 Count>
void store_shared(Warp* warp, u32 site, const Lanes& lanes, const u8* data) {
  check_shared<Size * Count>(warp, site, lanes);
  if (warp->worker->launch.count) count_shared<Size * Count>(warp, site, lanes);
  u8* bytes = warp->block->shared.bytes.data();
  for (int i = 0; i < lanes.count; ++i) {
    u8 piece[Size * Count];
    for (u32 k = 0; k < Count; ++k) std::memcpy(piece + k * Size, data + (k * LANES + lanes.lane[i]) * Size, Size);
    u32 at = static_cast<u32>(lanes.address[i]);
    shared_write<Size * Count>(warp, site, lanes.lane[i], at, piece, false);
    std::memcpy(bytes + at, piece, Size * Count);
  }
}

// Local --------------------------------------------------------------------------------------------------------

template <u32 Bytes>
void check_local(Warp* warp, u32 site, const Lanes& lanes) {
  u32 size = warp->worker->launch.request->kernel->local_bytes;
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    if (at + Bytes > size)
      fail(warp, lanes.lane[i], site_line(warp, site), "out of bounds",
           sized(warp->worker->launch.module->sites[site].direction, Bytes) + " at local address " + hexadecimal(at) +
               ", outside the thread's local memory (" + with_commas(size) + " bytes)",
           at, "local");
    if (at & (Bytes - 1)) misaligned(warp, site, lanes.lane[i], at, Bytes, "local");
  }
  if (warp->worker->launch.count) {
    u64* counters = warp->counters + size_t{site} * COUNTERS;
    counters[REQUESTS] += 1;
    counters[BYTES] += u64{Bytes} * lanes.count;
  }
}

void to_local(const Warp* warp, Lanes& lanes) {
  u64 stride = warp->worker->launch.request->kernel->local_bytes;
  for (int i = 0; i < lanes.count; ++i) lanes.address[i] += lanes.lane[i] * stride;
}

template <u32 Size, u32 Count>
void load_local(Warp* warp, u32 site, Lanes& lanes, u8* out) {
  check_local<Size * Count>(warp, site, lanes);
  to_local(warp, lanes);
  take<Size, Count>(lanes, warp->locals, 0, out);
}

template <u32 Size, u32 Count>
void store_local(Warp* warp, u32 site, Lanes& lanes, const u8* data) {
  check_local<Size * Count>(warp, site, lanes);
  to_local(warp, lanes);
  put<Size, Count>(lanes, warp->locals, 0, data);
}

// Generic addresses: split by window ---------------------------------------------------------------------------

void split(const Lanes& lanes, Lanes (&parts)[4]) {
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    int part = at - SHARED_WINDOW < WINDOW_BYTES      ? 1
               : at - LOCAL_WINDOW < WINDOW_BYTES     ? 2
               : at - PARAMETER_WINDOW < WINDOW_BYTES ? 3
                                                      : 0;
    u64 base = part == 1 ? SHARED_WINDOW : part == 2 ? LOCAL_WINDOW : part == 3 ? PARAMETER_WINDOW : 0;
    Lanes& to = parts[part];
    to.lane[to.count] = lanes.lane[i];
    to.address[to.count++] = at - base;
  }
}

template <u32 Size, u32 Count>
void load_parameter(Warp* warp, u32 site, const Lanes& lanes, u8* out) {
  u64 size = warp->worker->launch.request->kernel->parameter_bytes;
  for (int i = 0; i < lanes.count; ++i)
    if (lanes.address[i] > size || size - lanes.address[i] < Size * Count)
      fail(warp, lanes.lane[i], site_line(warp, site), "out of bounds",
           sized('l', Size * Count) + " outside the kernel's parameters (" + with_commas(size) + " bytes)", lanes.address[i],
           "param");
  take<Size, Count>(lanes, const_cast<u8*>(warp->parameters), 0, out);
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
  if (parts[3].count) bad_global(warp, site, parts[3].lane[0], parts[3].address[0] + PARAMETER_WINDOW, Size * Count);
  if (parts[0].count) store_global<Size, Count>(warp, site, parts[0], data);
  if (parts[1].count) store_shared<Size, Count>(warp, site, parts[1], data);
  if (parts[2].count) store_local<Size, Count>(warp, site, parts[2], data);
}

// Atomics ------------------------------------------------------------------------------------------------------

template <class Value, class Update>
Value update(Value* place, bool atomically, Update&& next) {
  if (!atomically) {
    Value old = *place;
    *place = next(old);
    return old;
  }
  using Bits = std::conditional_t<sizeof(Value) == 2, u16, std::conditional_t<sizeof(Value) == 4, u32, u64>>;
  auto* bits = reinterpret_cast<Bits*>(place);
  Bits seen = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
  while (true) {
    Value old = std::bit_cast<Value>(seen);
    Bits wanted = std::bit_cast<Bits>(next(old));
    if (__atomic_compare_exchange_n(bits, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
  }
}

void count_atomic(Warp* warp, u32 site, const Lanes& lanes, bool global) {
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  u64 values[LANES];
  std::copy(lanes.address, lanes.address + lanes.count, values);
  counters[REQUESTS] += 1;
  counters[ACCESS_LANES] += lanes.count;
  counters[ADDRESSES] += distinct(values, lanes.count);
  if (!global) counters[WAVEFRONTS] += 1;
  if (global)
    for (int i = 0; i < lanes.count; ++i) *Device::stored(lanes.address[i]) = *Device::loaded(lanes.address[i]) = 1;
}

template <class Value, class Update>
void atomic_global(Warp* warp, u32 site, const Lanes& lanes, Value* out, Update&& next) {
  const Allocation* common = check_global<sizeof(Value)>(warp, site, lanes);
  check_written<sizeof(Value)>(warp, site, lanes, common);
  if (warp->worker->launch.count) {
    count_atomic(warp, site, lanes, true);
    for (int i = 0; i < lanes.count; ++i) {
      note_global_order(warp, allocation_of(warp, common, lanes.address[i], sizeof(Value)), true);
      if (common) break;
    }
  }
  for (int i = 0; i < lanes.count; ++i) {
    int lane = lanes.lane[i];
    Value old = update(reinterpret_cast<Value*>(lanes.address[i]), true, [&](Value value) { return next(value, lane); });
    if (out) out[lane] = old;
  }
}

template <class Value, class Update>
void atomic_shared(Warp* warp, u32 site, const Lanes& lanes, Value* out, Update&& next) {
  check_shared<sizeof(Value)>(warp, site, lanes);
  SharedMemory& shared = warp->block->shared;
  if (warp->worker->launch.count) count_atomic(warp, site, lanes, false);
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    if (!all_written<sizeof(Value)>(&shared.written[at]))
      fail(warp, lane, site_line(warp, site), "uninitialised",
           sized('a', sizeof(Value)) + " at shared address " + hexadecimal(at) + ", where nothing was written before", at,
           "shared");
    shared_write<sizeof(Value)>(warp, site, lane, at, nullptr, true);
    Value old =
        update(reinterpret_cast<Value*>(&shared.bytes[at]), false, [&](Value value) { return next(value, static_cast<int>(lane)); });
    if (out) out[lane] = old;
  }
}

template <char Space, class Value, class Update>
void atomic(Warp* warp, u32 site, u32 mask, const void* addresses, i64 offset, Value* out, Update&& next) {
  if (!mask) return;
  Lanes lanes;
  if constexpr (Space == 's') {
    gather_lanes(lanes, mask, static_cast<const u32*>(addresses), offset);
    atomic_shared(warp, site, lanes, out, next);
  } else {
    gather_lanes(lanes, mask, static_cast<const u64*>(addresses), offset);
    if constexpr (Space == 'g') {
      atomic_global(warp, site, lanes, out, next);
    } else {
      Lanes parts[4];
      split(lanes, parts);
      if (parts[2].count + parts[3].count) give_up(warp, "an atomic operation on local memory");
      if (parts[0].count) atomic_global(warp, site, parts[0], out, next);
      if (parts[1].count) atomic_shared(warp, site, parts[1], out, next);
    }
  }
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
    if (!mask) return;                                                                                                   \
    Lanes lanes;                                                                                                         \
    gather_lanes(lanes, mask, addresses, offset);                                                                        \
    STORE<SIZE, COUNT>(warp, site, lanes, data);                                                                         \
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
  GLOBAL_LIKE(s, load_shared, store_shared, u32, SIZE, COUNT)          \
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

#define ATOMIC_IN(SPACE, SPACE_LETTER, NAME, TYPE_NAME, TYPE, EXPRESSION)                                                  \
  void kw_atom_##SPACE##_##NAME##_##TYPE_NAME(Warp* warp, u32 site, u32 mask, const void* addresses, i64 offset,           \
                                              const TYPE* first, const TYPE* second, TYPE* out) {                          \
    atomic<SPACE_LETTER>(warp, site, mask, addresses, offset, out, [=]([[maybe_unused]] TYPE old, int lane) -> TYPE {      \
      [[maybe_unused]] TYPE a = first[lane];                                                                               \
      [[maybe_unused]] auto b = [&] { return second[lane]; };                                                              \
      return EXPRESSION;                                                                                                   \
    });                                                                                                                    \
  }
#define ATOMIC(NAME, TYPE_NAME, TYPE, EXPRESSION)           \
  ATOMIC_IN(g, 'g', NAME, TYPE_NAME, TYPE, EXPRESSION)      \
  ATOMIC_IN(s, 's', NAME, TYPE_NAME, TYPE, EXPRESSION)      \
  ATOMIC_IN(x, 'x', NAME, TYPE_NAME, TYPE, EXPRESSION)

extern "C" {
ATOMIC(add, u32, u32, old + a)
ATOMIC(add, s32, u32, old + a)
ATOMIC(add, u64, u64, old + a)
ATOMIC(add, s64, u64, old + a)
ATOMIC(add, f32, float, old + a)
ATOMIC(add, f64, double, old + a)
ATOMIC(min, u32, u32, std::min(old, a))
ATOMIC(min, s32, i32, std::min(old, a))
ATOMIC(min, u64, u64, std::min(old, a))
ATOMIC(min, s64, i64, std::min(old, a))
ATOMIC(max, u32, u32, std::max(old, a))
ATOMIC(max, s32, i32, std::max(old, a))
ATOMIC(max, u64, u64, std::max(old, a))
ATOMIC(max, s64, i64, std::max(old, a))
ATOMIC(and, b32, u32, old & a)
ATOMIC(and, b64, u64, old & a)
ATOMIC(or, b32, u32, old | a)
ATOMIC(or, b64, u64, old | a)
ATOMIC(xor, b32, u32, old ^ a)
ATOMIC(xor, b64, u64, old ^ a)
ATOMIC(exch, b32, u32, a)
ATOMIC(exch, b64, u64, a)
ATOMIC(cas, b16, u16, static_cast<u16>(old == a ? b() : old))
ATOMIC(cas, b32, u32, old == a ? b() : old)
ATOMIC(cas, b64, u64, old == a ? b() : old)
ATOMIC(inc, u32, u32, old >= a ? 0 : old + 1)
ATOMIC(dec, u32, u32, old == 0 || old > a ? a : old - 1)
}

// Parameters of device functions: a block of `size` bytes a lane.
extern "C" void kw_parameter_read(const u8* block, u32 size, u32 offset, u32 bytes, u8* out) {
  for (u32 lane = 0; lane < LANES; ++lane) std::memcpy(out + lane * bytes, block + lane * size + offset, bytes);
}

extern "C" void kw_parameter_write(u8* block, u32 size, u32 offset, u32 bytes, u32 mask, const u8* data) {
  for (u32 lane = 0; lane < LANES; ++lane)
    if (mask >> lane & 1) std::memcpy(block + lane * size + offset, data + lane * bytes, bytes);
}
