#include "asynchronous.h"

#include <cstring>

#include "checks.h"
#include "pieces.h"

namespace kw {
namespace {

template <class Each>
void for_lanes(u32 mask, Each&& each) {
  for (; mask; mask &= mask - 1) each(static_cast<u32>(std::countr_zero(mask)));
}

Asynchronous& state_of(Warp* warp) { return warp->block->asynchronous; }

u8* place(Warp* warp, char space, u64 at) { return space == 's' ? &warp->block->shared.bytes[at] : Device::pointer(at); }

// Shared memory that a copy will write: poison that counts as unwritten.
void take_target(Warp* warp, u64 at, u32 bytes) {
  if (!checked(warp)) return;
  SharedMemory& shared = warp->block->shared;
  for (u32 granule = static_cast<u32>(at) >> shared.granule_shift; granule <= (at + bytes - 1) >> shared.granule_shift; ++granule) {
    shared.unwritten += shared.written(shared.writers[granule]);
    shared.writers[granule] = 0;
  }
  std::memset(&shared.bytes[at], 0xA5, bytes);
}

template <class Value>
void reduce_values(Reduction reduction, u8* target, const u8* source, u32 bytes) {
  for (u32 at = 0; at < bytes; at += sizeof(Value)) {
    Value old, value;
    std::memcpy(&old, target + at, sizeof old);
    std::memcpy(&value, source + at, sizeof value);
    switch (reduction) {
      case Reduction::add: old = static_cast<Value>(old + value); break;
      case Reduction::min: old = value < old ? value : old; break;
      case Reduction::max: old = value > old ? value : old; break;
      default: break;
    }
    if constexpr (std::is_integral_v<Value>) {
      if (reduction == Reduction::bit_and) old &= value;
      if (reduction == Reduction::bit_or) old |= value;
      if (reduction == Reduction::bit_xor) old ^= value;
    }
    std::memcpy(target + at, &old, sizeof old);
  }
}

std::mutex reductions;  // of all blocks: a bulk reduction of global memory is atomic by element

void reduce(const PendingCopies& copy, u8* target, const u8* source, u32 bytes) {
  std::lock_guard lock(reductions);
  switch (copy.number) {
    case Number::u32: return reduce_values<u32>(copy.reduction, target, source, bytes);
    case Number::s32: return reduce_values<i32>(copy.reduction, target, source, bytes);
    case Number::u64: return reduce_values<u64>(copy.reduction, target, source, bytes);
    case Number::s64: return reduce_values<i64>(copy.reduction, target, source, bytes);
    case Number::f32: return reduce_values<float>(copy.reduction, target, source, bytes);
    case Number::f64: return reduce_values<double>(copy.reduction, target, source, bytes);
    case Number::f16: return reduce_values<_Float16>(copy.reduction, target, source, bytes);
  }
}

// Shared memory is written now, by the thread that asked for the copy.
void mark_arrived(Warp* warp, const PendingCopies& copy, u32 lane) {
  SharedMemory& shared = warp->block->shared;
  u32 at = static_cast<u32>(copy.target[lane]);
  Mark mine = Mark{shared.epoch} << MARK_EPOCH_SHIFT | Mark{warp->block->warps[copy.warp]->synced} << MARK_SYNC_SHIFT |
              (copy.warp * LANES + lane);
  for (u32 granule = at >> shared.granule_shift; granule <= (at + copy.bytes[lane] - 1) >> shared.granule_shift; ++granule) {
    if (shared.writers[granule] && copy.reduction == Reduction::none && warp->worker->launch.checked(RACECHECK)) {
      race(warp, copy.store, lane, at, "writes", mark_thread(shared.writers[granule]));
      return;
    }
    shared.write(granule, mine);
  }
}

void perform(Warp* warp, const PendingCopies& copy, u32 lane) {
  u8* target = place(warp, copy.to, copy.target[lane]);
  const u8* source = place(warp, copy.from, copy.source[lane]);
  if (copy.reduction != Reduction::none) {
    reduce(copy, target, source, copy.bytes[lane]);
  } else if (copy.to == 'g' && checked(warp)) {
    store_claimed(warp, copy.store, copy.target[lane], copy.bytes[lane], source);
  } else {
    std::memcpy(target, source, copy.read[lane]);
    std::memset(target + copy.read[lane], 0, copy.bytes[lane] - copy.read[lane]);
  }
  if (copy.to == 's' && checked(warp)) mark_arrived(warp, copy, lane);
}

// Does what `due(copy)` says is due, as a mask of lanes, in the order of issue.
template <class Due>
void complete(Warp* warp, Due&& due) {
  std::vector<PendingCopies>& copies = state_of(warp).copies;
  for (PendingCopies& copy : copies) {
    u32 mask = copy.mask & due(copy);
    for_lanes(mask, [&](u32 lane) { perform(warp, copy, lane); });
    copy.mask &= ~mask;
  }
  std::erase_if(copies, [](const PendingCopies& copy) { return !copy.mask; });
}

// Barriers -----------------------------------------------------------------------------------------------------

BarrierWord read_barrier(Warp* warp, u32 at) {
  BarrierWord word;
  std::memcpy(&word.bits, &warp->block->shared.bytes[at], 8);
  return word;
}

// Phases of mbarriers order accesses of shared memory as barriers of the whole block do.
void start_epoch(Block& block) {
  ++block.shared.epoch;
  for (Warp* warp : block.warps) warp->synced = 0;
}

void write_barrier(Warp* warp, u32 at, BarrierWord word) {
  if (word.pending() == 0 && word.transactions() == 0) {
    word = BarrierWord::of(word.phase() + 1, word.expected(), word.expected(), 0);
    start_epoch(*warp->block);
  }
  std::memcpy(&warp->block->shared.bytes[at], &word.bits, 8);
}

[[noreturn]] void bad_barrier(Warp* warp, u32 line, u32 lane, u64 at, const std::string& message) {
  fail(warp, lane, line, "barrier", message + " (mbarrier at shared address " + hexadecimal(at) + ")", at, "shared");
}

BarrierWord valid_barrier(Warp* warp, u32 line, u32 lane, u32 at) {
  BarrierWord word = read_barrier(warp, at);
  if (!word.valid()) bad_barrier(warp, line, lane, at, "what is used as an mbarrier was not initialised as one");
  return word;
}

void arrive(Warp* warp, u32 line, u32 lane, u32 at, u32 count, i32 transactions) {
  BarrierWord word = valid_barrier(warp, line, lane, at);
  if (count > word.pending())
    bad_barrier(warp, line, lane, at, "more threads arrive than the barrier expects (" + std::to_string(word.expected()) + ")");
  write_barrier(warp, at, BarrierWord::of(word.phase(), word.expected(), word.pending() - count, word.transactions() + transactions));
}

// A use of a barrier that another thread set up needs something in between. Uses leave the mark of what set it up.
void check_use(Warp* warp, u32 site, u32 lane, u32 at) {
  SharedMemory& shared = warp->block->shared;
  for (u32 granule = at >> shared.granule_shift; granule <= (at + 7) >> shared.granule_shift; ++granule) {
    Mark writer = shared.writers[granule];
    bool set_up = !(writer & MARK_ATOMIC) && mark_epoch(writer) == shared.epoch;
    if (set_up && unordered(warp, writer, shared.epoch, warp->thread(lane))) return race(warp, site, lane, at, "uses", mark_thread(writer));
    if (!set_up) shared.write(granule, own_mark(warp, lane, true, true));
  }
}

// Lanes with their barriers' shared addresses, checked as one access; `plain` for what sets the object up.
Lanes barrier_lanes(Warp* warp, u32 site, u32 mask, char space, const u64* addresses, i64 offset, bool plain) {
  Lanes lanes;
  for_lanes(mask, [&](u32 lane) {
    u64 at = addresses[lane] + static_cast<u64>(offset);
    if (space == 's') at = static_cast<u32>(at);
    if (resolve_space(warp, space, at) != 's') give_up(warp, "an mbarrier outside shared memory");
    lanes.lane[lanes.count] = static_cast<u8>(lane);
    lanes.address[lanes.count++] = at;
  });
  check_shared<8>(warp, site, lanes);
  if (!checked(warp)) return lanes;
  warp->block->shared.settle();
  for (int i = 0; i < lanes.count; ++i) {
    u32 at = static_cast<u32>(lanes.address[i]);
    if (plain)
      shared_write<8>(warp, site, lanes.lane[i], at, nullptr, false);
    else
      check_use(warp, site, lanes.lane[i], at);
  }
  return lanes;
}

// Everything that only waits for somebody to ask this barrier.
void make_progress(Warp* warp, u32 barrier) {
  Asynchronous& state = state_of(warp);
  for (size_t i = 0; i < state.arrivals.size(); ++i) {
    PendingArrivals& arrival = state.arrivals[i];
    for_lanes(arrival.mask, [&](u32 lane) {
      if (arrival.barrier[lane] != barrier) return;
      u32 owner = arrival.warp;
      u64 before = arrival.sequence;
      complete(warp, [&](const PendingCopies& copy) {
        return copy.warp == owner && !copy.bulk && copy.sequence < before ? u32{1} << lane : 0;
      });
      arrive(warp, site_line(warp, arrival.site), lane, barrier, 1, 0);
      arrival.mask &= ~(u32{1} << lane);
    });
  }
  std::erase_if(state.arrivals, [](const PendingArrivals& arrival) { return !arrival.mask; });
  i32 bytes = 0;
  complete(warp, [&](const PendingCopies& copy) {
    u32 due = 0;
    if (copy.by_barrier)
      for_lanes(copy.mask, [&](u32 lane) {
        if (copy.barrier[lane] != barrier) return;
        due |= u32{1} << lane;
        bytes += static_cast<i32>(copy.bytes[lane]);
      });
    return due;
  });
  if (bytes) {
    BarrierWord word = read_barrier(warp, barrier);
    write_barrier(warp, barrier, BarrierWord::of(word.phase(), word.expected(), word.pending(), word.transactions() - bytes));
  }
}

// Issue --------------------------------------------------------------------------------------------------------

u64 resolved(Warp* warp, char& space, u64 address) {
  if (space == 's') return static_cast<u32>(address);
  space = resolve_space(warp, space, address);
  return address;
}

// Checks and counts a read of what a copy will read; false where a check objects and the launch goes on.
bool check_source(Warp* warp, u32 site, char space, u64 at, u32 bytes) {
  bool fine = true;
  for_pieces(at, bytes, [&](const Lanes& lanes, u32 piece, u64) {
    u8 unused[LANES * 16];
    fine = read_pieces(warp, site, space, lanes, piece, unused) == lanes.count && fine;
  });
  return fine;
}

bool check_target(Warp* warp, u32 site, char space, u64 at, u32 bytes) {
  bool fine = true;
  for_pieces(at, bytes, [&](const Lanes& lanes, u32 piece, u64) {
    fine = claim_pieces(warp, site, space, lanes, piece) == lanes.count && fine;
  });
  return fine;
}

}  // namespace

void finish_copies(Warp* warp) {
  complete(warp, [&](const PendingCopies& copy) { return copy.warp == warp->warpid && copy.to == 'g' ? copy.mask : 0; });
}

}  // namespace kw

using namespace kw;

extern "C" {

// cp.async of 4, 8 or 16 bytes a lane; `read` says how many of them come from the source, null: all.
void kw_cp_async(Warp* warp, u32 load, u32 store, u32 mask, u32 bytes, const u64* targets, i64 target_offset, const u64* sources,
                 i64 source_offset, const u32* read) {
  if (!mask) return;
  Lanes from, to;
  PendingCopies copy{};
  for_lanes(mask, [&](u32 lane) {
    copy.target[lane] = static_cast<u32>(targets[lane] + static_cast<u64>(target_offset));
    copy.source[lane] = sources[lane] + static_cast<u64>(source_offset);
    copy.bytes[lane] = bytes;
    copy.read[lane] = read ? std::min(read[lane], bytes) : bytes;
    copy.group[lane] = state_of(warp).group(false, warp->thread(lane));
    to.lane[to.count] = static_cast<u8>(lane);
    to.address[to.count++] = copy.target[lane];
    if (copy.read[lane] != bytes) return;
    from.lane[from.count] = static_cast<u8>(lane);
    from.address[from.count++] = copy.source[lane];
  });
  u8 unused[LANES * 16];
  bool fine = true;
  if (from.count) fine = read_pieces(warp, load, 'g', from, bytes, unused) == from.count;
  for_lanes(mask, [&](u32 lane) {
    if (copy.read[lane] && copy.read[lane] < bytes) fine = check_source(warp, load, 'g', copy.source[lane], copy.read[lane]) && fine;
  });
  fine = claim_pieces(warp, store, 's', to, bytes) == to.count && fine;
  if (!fine) return;
  for_lanes(mask, [&](u32 lane) { take_target(warp, copy.target[lane], bytes); });
  copy.sequence = ++state_of(warp).sequence;
  copy.warp = warp->warpid;
  copy.mask = mask;
  copy.store = store;
  copy.to = 's';
  copy.from = 'g';
  state_of(warp).copies.push_back(copy);
}

// A bulk copy a lane. `how`: bit 0: completes on an mbarrier; then from bit 8 the reduction, from bit 16 its numbers.
void kw_cp_async_bulk(Warp* warp, u32 load, u32 store, u32 mask, u32 to, u32 from, u32 how, const u64* targets, i64 target_offset,
                      const u64* sources, i64 source_offset, const u32* sizes, const u64* barriers, i64 barrier_offset) {
  PendingCopies copy{};
  copy.to = static_cast<char>(to);
  copy.from = static_cast<char>(from);
  copy.bulk = true;
  copy.by_barrier = how & 1;
  copy.reduction = static_cast<Reduction>(how >> 8 & 0xff);
  copy.number = static_cast<Number>(how >> 16 & 0xff);
  for_lanes(mask, [&](u32 lane) {
    u64 target = resolved(warp, copy.to, targets[lane] + static_cast<u64>(target_offset));
    u64 source = resolved(warp, copy.from, sources[lane] + static_cast<u64>(source_offset));
    u32 bytes = sizes[lane];
    for (u64 value : {target, source, u64{bytes}})
      if (value % 16)
        fail(warp, lane, site_line(warp, store), "misaligned",
             "a bulk copy of " + with_commas(bytes) + " bytes from " + hexadecimal(source) + " to " + hexadecimal(target) +
                 ": addresses and size must be multiples of 16", value, "");
    if (!bytes) return;
    bool fine = check_source(warp, load, copy.from, source, bytes);
    if (!check_target(warp, store, copy.to, target, bytes) || !fine) return;
    if (copy.to == 's' && copy.reduction == Reduction::none) take_target(warp, target, bytes);
    copy.target[lane] = target;
    copy.source[lane] = source;
    copy.bytes[lane] = copy.read[lane] = bytes;
    copy.group[lane] = state_of(warp).group(true, warp->thread(lane));
    if (copy.by_barrier) copy.barrier[lane] = static_cast<u32>(barriers[lane] + static_cast<u64>(barrier_offset));
    copy.mask |= u32{1} << lane;
  });
  if (!copy.mask) return;
  copy.sequence = ++state_of(warp).sequence;
  copy.warp = warp->warpid;
  copy.store = store;
  state_of(warp).copies.push_back(copy);
}

void kw_commit_group(Warp* warp, u32 mask, u32 bulk) {
  for_lanes(mask, [&](u32 lane) { ++state_of(warp).group(bulk, warp->thread(lane)); });
}

// Until at most `recent` of the committed groups are pending; ~0: all copies, committed or not.
void kw_wait_group(Warp* warp, u32 mask, u32 bulk, u32 recent) {
  complete(warp, [&](const PendingCopies& copy) -> u32 {
    if (copy.warp != warp->warpid || copy.bulk != (bulk != 0) || copy.by_barrier) return 0;
    u32 due = 0;
    for_lanes(copy.mask & mask, [&](u32 lane) {
      u32 committed = state_of(warp).group(bulk, warp->thread(lane));
      if (recent == ~u32{0} || (copy.group[lane] < committed && committed - copy.group[lane] > recent)) due |= u32{1} << lane;
    });
    return due;
  });
}

void kw_cp_async_arrive(Warp* warp, u32 site, u32 mask, u32 space, u32 counted, const u64* addresses, i64 offset) {
  if (!mask) return;
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, false);
  PendingArrivals arrival{++state_of(warp).sequence, warp->warpid, 0, site, {}};
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    BarrierWord word = valid_barrier(warp, site_line(warp, site), lane, at);
    if (!counted)  // this arrival is one more than those the barrier expects
      write_barrier(warp, at, BarrierWord::of(word.phase(), word.expected(), word.pending() + 1, word.transactions()));
    arrival.barrier[lane] = at;
    arrival.mask |= u32{1} << lane;
  }
  state_of(warp).arrivals.push_back(arrival);
}

void kw_mbarrier_init(Warp* warp, u32 site, u32 mask, u32 space, const u64* addresses, i64 offset, const u32* counts) {
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, true);
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    if (counts[lane] == 0 || counts[lane] > BarrierWord::MOST)
      bad_barrier(warp, site_line(warp, site), lane, at, "a barrier cannot expect " + std::to_string(counts[lane]) + " arrivals");
    BarrierWord word = BarrierWord::of(0, counts[lane], counts[lane], 0);
    std::memcpy(&warp->block->shared.bytes[at], &word.bits, 8);
  }
}

void kw_mbarrier_inval(Warp* warp, u32 site, u32 mask, u32 space, const u64* addresses, i64 offset) {
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, true);
  for (int i = 0; i < lanes.count; ++i) std::memset(&warp->block->shared.bytes[lanes.address[i]], 0xFF, 8);
}

// arrive and arrive_drop. `transactions` (null: none) are expected first. `flags`: 1: drop, 2: must not complete.
void kw_mbarrier_arrive(Warp* warp, u32 site, u32 mask, u32 space, u32 flags, const u64* addresses, i64 offset, const u32* counts,
                        const u32* transactions, u64* states) {
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, false);
  u32 line = site_line(warp, site);
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]), count = counts ? counts[lane] : 1;
    BarrierWord word = valid_barrier(warp, line, lane, at);
    states[lane] = word.bits;
    if (flags & 2 && count == word.pending())
      bad_barrier(warp, line, lane, at, "an arrival that must not complete the phase completes it");
    if (flags & 1) {
      if (word.expected() <= count) bad_barrier(warp, line, lane, at, "more threads leave than the barrier expects");
      word = BarrierWord::of(word.phase(), word.expected() - count, word.pending(), word.transactions());
      std::memcpy(&warp->block->shared.bytes[at], &word.bits, 8);
    }
    arrive(warp, line, lane, at, count, transactions ? static_cast<i32>(transactions[lane]) : 0);
  }
}

// expect_tx adds to the bytes that the phase waits for, complete_tx takes away.
void kw_mbarrier_transact(Warp* warp, u32 site, u32 mask, u32 space, i32 sign, const u64* addresses, i64 offset, const u32* amounts) {
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, false);
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    BarrierWord word = valid_barrier(warp, site_line(warp, site), lane, at);
    i32 transactions = word.transactions() + sign * static_cast<i32>(amounts[lane]);
    write_barrier(warp, at, BarrierWord::of(word.phase(), word.expected(), word.pending(), transactions));
  }
}

// Lanes whose phase, named by a state or by its parity, has completed. Where none has, others get their turn soon.
u32 kw_mbarrier_test(Warp* warp, u32 site, u32 mask, u32 space, const u64* addresses, i64 offset, const u64* states, const u32* parities) {
  Lanes lanes = barrier_lanes(warp, site, mask, static_cast<char>(space), addresses, offset, false);
  u32 done = 0;
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    u32 phase = states ? BarrierWord{states[lane]}.phase() : parities[lane] & 1;
    BarrierWord word = valid_barrier(warp, site_line(warp, site), lane, at);
    if (word.phase() == phase && !state_of(warp).idle()) {
      make_progress(warp, at);
      word = read_barrier(warp, at);
    }
    done |= u32{word.phase() != phase} << lane;
  }
  if (mask & ~done) warp->fuel = 0;
  return done;
}

void kw_cluster_arrive(Warp* warp, u32 mask) {
  ClusterBarrier& barrier = warp->block->cluster;
  barrier.arrived += static_cast<u32>(std::popcount(mask));
  barrier.phase_of_warp[warp->warpid] = barrier.phase;
}

void kw_cluster_wait(Warp* warp, u32 mask) {
  ClusterBarrier& barrier = warp->block->cluster;
  while (mask && barrier.phase == barrier.phase_of_warp[warp->warpid]) {
    u32 threads = 0;
    for (const Warp* other : warp->block->warps) threads += static_cast<u32>(std::popcount(other->live));
    if (barrier.arrived >= threads) {
      barrier.arrived = 0;
      ++barrier.phase;
      start_epoch(*warp->block);
      return;
    }
    yield_to_scheduler(warp);
  }
}
}
