// The checks and counts of accesses, for whoever accesses: loads, stores, atomics.
#pragma once

#include <cstring>

#include "access.h"
#include "shared_lanes.h"

namespace kw {

constexpr u64 NULL_BYTES = 1 << 20;  // addresses below are null pointers with an offset

inline const char* verb(char direction) { return direction == 'l' ? "read" : direction == 's' ? "write" : "atomic update"; }

inline std::string sized(char direction, u32 bytes) {
  return std::string(verb(direction)) + " of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// A check objects to one lane's access. Comes back only where the launch goes on; the caller then leaves the lane out.
template <class Describe>
void object(Warp* warp, u32 site, u32 lane, const char* kind, Finding finding, Describe&& describe) {
  if (finding.note && !warp->worker->launch.keeps_going()) return;
  u32 place = 2 * site + finding.note;
  if (repeated(warp, kind, place)) return;
  finding.line = site_line(warp, site);
  finding.message = describe();
  report(warp, lane, place, kind, std::move(finding));
}

inline char direction(const Warp* warp, u32 site) { return warp->module->sites[site].direction; }

// Is the access volatile, or has it memory-model semantics?
inline bool is_strong(const Warp* warp, u32 site) { return warp->module->sites[site].strong; }

template <class Bad>
void drop_lanes(Lanes& lanes, Bad&& bad) {
  int kept = 0;
  for (int i = 0; i < lanes.count; ++i) {
    if (bad(lanes.lane[i], lanes.address[i])) {
      lanes.dropped |= u32{1} << lanes.lane[i];
      continue;
    }
    lanes.lane[kept] = lanes.lane[i];
    lanes.address[kept++] = lanes.address[i];
  }
  lanes.count = kept;
}

// What a suppressed load gives its lane: not a number, and a pointer to nowhere.
template <u32 Size, u32 Count>
void poison_dropped(const Lanes& lanes, u8* out) {
  for (u32 rest = lanes.dropped; rest; rest &= rest - 1)
    for (u32 k = 0; k < Count; ++k) std::memset(out + (k * LANES + static_cast<u32>(std::countr_zero(rest))) * Size, 0xFF, Size);
}

// The lowest and highest address of a request, and all their bits.
struct Reached {
  u64 low = ~u64{0}, high = 0, bits = 0;

  explicit Reached(const Lanes& lanes) {
    Eight lows = ~Eight{}, highs{}, all{};
    for (int start = 0; start < lanes.count; start += EIGHT) {
      Flags where = first_flags(lanes.count - start);
      Eight at = load_eight(lanes.address + start), some = reinterpret_cast<Eight>(where);
      lows = (at | ~some) < lows ? at : lows;
      highs = (at & some) > highs ? at : highs;
      all |= at & some;
    }
    for (int i = 0; i < EIGHT; ++i) {
      low = std::min<u64>(low, lows[i]);
      high = std::max<u64>(high, highs[i]);
      bits |= all[i];
    }
  }
};

// All within `size` bytes, and aligned?
template <u32 Bytes>
bool all_within(const Lanes& lanes, u64 size) {
  Reached reached(lanes);
  return reached.high + Bytes <= size && !(reached.bits & (Bytes - 1));
}

inline void misaligned(Warp* warp, u32 site, u32 lane, u64 at, u32 bytes, const char* space) {
  object(warp, site, lane, "misaligned", {.address = at, .space = space, .bytes = bytes}, [&] {
    return sized(direction(warp, site), bytes) + " at " + hexadecimal(at) + ", which is not a multiple of " + std::to_string(bytes);
  });
}

template <u32 Bytes>
void drop_misaligned(Warp* warp, u32 site, Lanes& lanes, const char* space) {
  drop_lanes(lanes, [&](u32 lane, u64 at) {
    if (!(at & (Bytes - 1))) return false;
    misaligned(warp, site, lane, at, Bytes, space);
    return true;
  });
}

inline void bad_global(Warp* warp, u32 site, u32 lane, u64 at, u32 bytes) {
  Finding finding{.address = at, .space = "global", .bytes = bytes};
  auto what = [&] { return sized(direction(warp, site), bytes) + " at " + hexadecimal(at); };
  if (at < NULL_BYTES || at + NULL_BYTES < NULL_BYTES)
    return object(warp, site, lane, "null", std::move(finding),
                  [&] { return what() + ", which is a null pointer" + (at ? " plus an offset" : ""); });
  const Device& device = *warp->worker->launch.device;
  Neighbour neighbour = device.neighbour(at, bytes);
  if (neighbour.allocation) {
    finding.allocation = neighbour.allocation->name;
    finding.allocation_bytes = neighbour.allocation->bytes;
  }
  object(warp, site, lane, neighbour.freed ? "use after free" : "out of bounds", std::move(finding),
         [&] { return what() + ", " + neighbour.where; });
}

// Global -------------------------------------------------------------------------------------------------------

// The allocation that holds a range, often the one of the last access or of the one before; null: none.
inline const Allocation* allocation_around(Worker& worker, u64 at, u64 bytes) {
  if (worker.hint && worker.hint->holds(at, bytes)) return worker.hint;
  std::swap(worker.hint, worker.other_hint);
  if (worker.hint && worker.hint->holds(at, bytes)) return worker.hint;
  const Allocation* found = worker.launch.device->find(at, bytes);
  if (found && !found->in_heap) worker.hint = found;
  return found;
}

// Do all lanes access this allocation, aligned?
template <u32 Bytes>
bool all_in(const Lanes& lanes, const Allocation* allocation) {
  if (!allocation || allocation->bytes < Bytes) return false;
  const u64 first = allocation->address, most = allocation->bytes - Bytes;
  Flags bad{};
  for (int start = 0; start < lanes.count; start += EIGHT) {
    Eight at = load_eight(lanes.address + start);
    bad |= first_flags(lanes.count - start) & ((at - first > most) | ((at & (Bytes - 1)) != 0));
  }
  return !any(bad);
}

// Finds the allocation of each lane and drops lanes that have none (addresses that the host lends become those at
// which its memory is seen); the common case is that all share one, the one of the last access or of the one before.
template <u32 Bytes>
const Allocation* check_global(Warp* warp, u32 site, Lanes& lanes) {
  Worker& worker = *warp->worker;
  if (all_in<Bytes>(lanes, worker.hint)) return worker.hint;
  if (all_in<Bytes>(lanes, worker.other_hint)) {
    std::swap(worker.hint, worker.other_hint);
    return worker.hint;
  }
  Reached reached(lanes);
  if (reached.bits & (Bytes - 1)) drop_misaligned<Bytes>(warp, site, lanes, "global");
  const Device& device = *warp->worker->launch.device;
  u64 distance = reached.high - reached.low;
  if (reached.low <= reached.high && distance < RANGE_BYTES)
    if (const Allocation* common = allocation_around(worker, reached.low, distance + Bytes)) return common;
  if (device.lends()) {
    bool moved = false;
    for (int i = 0; i < lanes.count; ++i) {
      u64 seen = device.seen(lanes.address[i]);
      moved = moved || seen != lanes.address[i];
      lanes.address[i] = seen;
    }
    if (moved) return check_global<Bytes>(warp, site, lanes);
  }
  drop_lanes(lanes, [&](u32 lane, u64 at) {
    if (device.find(at, Bytes)) return false;
    bad_global(warp, site, lane, at, Bytes);
    return true;
  });
  return nullptr;  // several allocations
}

inline const Allocation* allocation_of(Warp* warp, const Allocation* common, u64 at, u32 bytes) {
  return common ? common : warp->worker->launch.device->find(at, bytes);
}

inline void note_global_order(Warp* warp, const Allocation* allocation, bool stores) {
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
  counters[REQUESTS] += 1;
  if (!lanes.count) return;
  u64 useful = u64{Bytes} * count_distinct(lanes.address, lanes.count);
  counters[BYTES] += useful;
  counters[IDEAL] += (useful + 31) / 32;
  u64 values[LANES] = {};
  for (int i = 0; i < lanes.count; ++i) values[i] = lanes.address[i] >> 5;
  counters[SECTORS] += count_distinct(values, lanes.count);
  for (int i = 0; i < lanes.count; ++i) *(stores ? Device::stored(values[i] << 5) : Device::loaded(values[i] << 5)) = 1;
  for (int i = 0; i < lanes.count; ++i) {
    const Allocation* allocation = allocation_of(warp, common, lanes.address[i], Bytes);
    note_global_order(warp, allocation, stores);
    if (common) break;
  }
}

// Is any byte of [at, at + Bytes) written? A read of the padding of a struct, or of a vector of which only some
// elements are in use, is no error: only a read of nothing but unwritten bytes is.
template <u32 Bytes>
bool any_written(const u8* shadow) {
  if constexpr (Bytes < 8) {
    u32 marks = 0;
    std::memcpy(&marks, shadow, Bytes);
    return marks;
  }
  u64 marks = 0;
  for (u32 at = 0; at + 8 <= Bytes; at += 8) {
    u64 more;
    std::memcpy(&more, shadow + at, 8);
    marks |= more;
  }
  return marks;
}

// The same for all lanes of an access within one allocation.
template <u32 Bytes>
bool all_have_written(const Lanes& lanes) {
  Flags bare{};
  for (int start = 0; start < lanes.count; start += EIGHT) {
    Flags where = first_flags(lanes.count - start);
    Eight at = load_eight(lanes.address + start), marks{};
    if constexpr (Bytes < 4) {
      marks = gather_words(Device::SHADOW_OFFSET, at & ~u64{3}, where) >> ((at & 3) << u64{3}) & ((u64{1} << 8 * Bytes) - 1);
    } else if constexpr (Bytes == 4) {
      marks = gather_words(Device::SHADOW_OFFSET, at, where);
    } else {
      for (u64 word = 0; word < Bytes; word += 8) marks |= gather(Device::SHADOW_OFFSET + word, at, where);
    }
    bare |= where & (marks == 0);
  }
  return !any(bare);
}

template <u32 Bytes>
void check_written(Warp* warp, u32 site, const Lanes& lanes, const Allocation* common) {
  if ((common && common->written()) || !warp->worker->launch.checked(INITCHECK)) return;
  if (common && all_have_written<Bytes>(lanes)) return;
  for (int i = 0; i < lanes.count; ++i) {
    u64 at = lanes.address[i];
    const Allocation* allocation = allocation_of(warp, common, at, Bytes);
    if (allocation->written() || any_written<Bytes>(Device::shadow(at))) continue;
    Finding finding{.address = at, .space = "global", .fatal = false, .bytes = Bytes,
                    .allocation = allocation->name, .allocation_bytes = allocation->bytes};
    object(warp, site, lanes.lane[i], "uninitialised", std::move(finding), [&] {
      return sized(direction(warp, site), Bytes) + " at " + hexadecimal(at) + ", " + with_commas(at - allocation->address) +
             " bytes into " + allocation->name + " (" + with_commas(allocation->bytes) +
             " bytes), where nothing was written before";
    });
  }
}

template <u32 Bytes>
void mark_written(Warp* warp, const Lanes& lanes, const Allocation* common) {
  if (common && common->written()) return;
  for (int i = 0; i < lanes.count; ++i) {
    const Allocation* allocation = allocation_of(warp, common, lanes.address[i], Bytes);
    if (!allocation->written()) std::memset(Device::shadow(lanes.address[i]), 1, Bytes);
  }
}

template <u32 Bytes>
void put_pieces(const Lanes& lanes, const LaneStores& stores, int first, int past) {
  for (int i = first; i < past; ++i) write_whole<Bytes>(Device::pointer(lanes.address[i]), stores.pieces[i]);
}

// Stores where races are looked for; `fill(i, to)` gives what the i-th lane stores. False: nobody looks, and nothing was
// stored.
template <u32 Bytes, class Fill>
bool store_watched(Warp* warp, u32 site, const Lanes& lanes, const Allocation* common, Fill&& fill) {
  if (!warp->worker->launch.races) return false;
  u8 pieces[LANES][16];
  LaneStores stores{pieces, 0, put_pieces<Bytes>};
  for (int i = 0; i < lanes.count; ++i) {
    fill(i, pieces[i]);
    stores.silent |= u32{std::memcmp(pieces[i], Device::pointer(lanes.address[i]), Bytes) == 0} << i;
  }
  return race_write(warp, site, lanes, Bytes, common, stores);
}

// Shared -------------------------------------------------------------------------------------------------------

template <u32 Bytes>
void check_shared(Warp* warp, u32 site, Lanes& lanes) {
  u32 size = warp->block->shared.size;
  if (all_within<Bytes>(lanes, size)) return;
  drop_lanes(lanes, [&](u32 lane, u64 at) {
    if (at + Bytes <= size && !(at & (Bytes - 1))) return false;
    if (at + Bytes <= size) {
      misaligned(warp, site, lane, at, Bytes, "shared");
      return true;
    }
    object(warp, site, lane, "out of bounds", {.address = at, .space = "shared", .bytes = Bytes}, [&] {
      std::string where = size == 0 ? std::string("but the block has no shared memory")
                                    : with_commas(at >= size ? at - size : 0) + " bytes past the end of the block's shared memory (" +
                                          with_commas(size) + " bytes)";
      return sized(direction(warp, site), Bytes) + " at shared address " + hexadecimal(at) + ", " + where;
    });
    return true;
  });
}

inline std::string thread_name(const Warp* warp, u32 linear) {
  u32 x = warp->ntid[0], y = warp->ntid[1];
  return "(" + std::to_string(linear % x) + ", " + std::to_string(linear / x % y) + ", " + std::to_string(linear / x / y) +
         ")";
}

inline void race(Warp* warp, u32 site, u32 lane, u64 at, const char* what, u32 other, bool note = false) {
  if (!warp->worker->launch.checked(RACECHECK)) return;
  object(warp, site, lane, "race", {.address = at, .space = "shared", .note = note, .fatal = false}, [&] {
    std::string whom = other == ~u32{0} ? "several other threads" : "thread " + thread_name(warp, other);
    return std::string(what) + " shared address " + hexadecimal(at) + ", which " + whom +
           (std::strcmp(what, "writes") == 0 ? " accesses" : " writes") + " without a barrier in between" +
           (note ? ": the same value" : "");
  });
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

inline Mark own_mark(const Warp* warp, u32 lane, bool strong, bool atomic) {
  return Mark{warp->block->shared.epoch} << MARK_EPOCH_SHIFT | Mark{warp->synced} << MARK_SYNC_SHIFT |
         (strong ? MARK_STRONG : 0) | (atomic ? MARK_ATOMIC : 0) | warp->thread(lane);
}

inline void note_order(SharedMemory& shared, Mark mark, u32 thread) {
  if (mark_thread(mark) != thread || (mark & (MARK_SEVERAL_IN_WARP | MARK_SEVERAL_WARPS))) shared.ordered(mark_epoch(mark));
}

inline void unwritten(Warp* warp, u32 site, u32 lane, u64 at, u32 bytes) {
  if (const PendingCopies* copy = warp->block->asynchronous.in_flight(static_cast<u32>(at), bytes)) {
    if (!warp->worker->launch.checked(RACECHECK)) return;
    return object(warp, site, lane, "race", {.address = at, .space = "shared", .fatal = false, .bytes = bytes}, [&] {
      return "reads shared address " + hexadecimal(at) + " before the asynchronous copy of line " +
             std::to_string(site_line(warp, copy->store)) + " to it was waited for";
    });
  }
  if (!warp->worker->launch.checked(INITCHECK)) return;
  object(warp, site, lane, "uninitialised", {.address = at, .space = "shared", .fatal = false, .bytes = bytes}, [&] {
    return sized(direction(warp, site), bytes) + " at shared address " + hexadecimal(at) +
           ", where no thread of the block has written yet: is a barrier missing?";
  });
}

template <u32 Bytes>
void shared_read(Warp* warp, u32 site, const Lanes& lanes) {
  SharedMemory& shared = warp->block->shared;
  bool strong = is_strong(warp, site);
  bool count = warp->counts;
  u32 rest = shared.granule_shift == 2 ? mark_reads(warp, lanes, Bytes, strong) : ~u32{0};
  for (int i = 0; i < lanes.count; ++i) {
    if (!(rest >> i & 1)) continue;
    u32 at = static_cast<u32>(lanes.address[i]);
    u32 thread = warp->thread(lanes.lane[i]);
    Mark mine = own_mark(warp, lanes.lane[i], strong, false);
    u32 last = (at + Bytes - 1) >> shared.granule_shift;
    bool written = false;
    for (u32 granule = at >> shared.granule_shift; granule <= last; ++granule) {
      Mark writer = shared.writers[granule];
      written |= shared.written(writer);
      if (unordered(warp, writer, shared.epoch, thread) && !(strong && writer & MARK_STRONG) && at >= shared.reserved)
        race(warp, site, lanes.lane[i], at, "reads", mark_thread(writer));
      if (count) note_order(shared, writer, thread);
      shared.readers[granule] = with_reader(shared.readers[granule], mine);
    }
    if (!written) unwritten(warp, site, lanes.lane[i], at, Bytes);
  }
}

// Checks and marks one lane's write; `data` is what it writes (null for atomics).
template <u32 Bytes>
void shared_write(Warp* warp, u32 site, u32 lane, u32 at, const u8* data, bool atomic) {
  SharedMemory& shared = warp->block->shared;
  bool strong = is_strong(warp, site);
  u32 thread = warp->thread(lane);
  Mark mine = own_mark(warp, lane, strong, atomic);
  u32 last = (at + Bytes - 1) >> shared.granule_shift;
  for (u32 granule = at >> shared.granule_shift; granule <= last; ++granule) {
    Mark writer = shared.writers[granule], reader = shared.readers[granule];
    bool excused = (atomic && writer & MARK_ATOMIC) || (strong && writer & MARK_STRONG) || at < shared.reserved;
    if (!excused && unordered(warp, writer, shared.epoch, thread)) {
      // Threads that store the same value do not harm each other.
      bool same = data && std::memcmp(&shared.bytes[at], data, Bytes) == 0;
      race(warp, site, lane, at, "writes", mark_thread(writer), same);
    }
    if (unordered(warp, reader, shared.epoch, thread) && !(strong && reader & MARK_STRONG) && at >= shared.reserved)
      race(warp, site, lane, at, "writes", reader & MARK_SEVERAL_WARPS ? ~u32{0} : mark_thread(reader));
    if (warp->counts) {
      note_order(shared, writer, thread);
      note_order(shared, reader, thread);
    }
    shared.write(granule, mine);
  }
}

// Generic addresses: split by window ---------------------------------------------------------------------------

inline void split(const Lanes& lanes, Lanes (&parts)[4]) {
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

}  // namespace kw
