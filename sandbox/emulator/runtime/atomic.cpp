// Atomic operations of lowered code: checked, counted, done.

#include <cmath>
#include <type_traits>
#include <utility>

#include "checks.h"
#include "narrow.h"

namespace kw {
namespace {

using u128 = unsigned __int128;

template <class Value, class Update>
Value update(Value* place, bool atomically, Update&& next) {
  if (!atomically) {
    Value old = *place;
    *place = next(old);
    return old;
  }
  if constexpr (sizeof(Value) == 16) {
    Value seen = *place;
    while (true) {
      Value old = __sync_val_compare_and_swap(place, seen, next(seen));
      if (old == seen) return old;
      seen = old;
    }
  } else {
    using Bits = std::conditional_t<sizeof(Value) == 2, u16, std::conditional_t<sizeof(Value) == 4, u32, u64>>;
    auto* bits = reinterpret_cast<Bits*>(place);
    Bits seen = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
    while (true) {
      Value old = std::bit_cast<Value>(seen);
      Bits wanted = std::bit_cast<Bits>(next(old));
      if (__atomic_compare_exchange_n(bits, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
    }
  }
}

// An operation on 16-bit floats through float32, which holds every sum of two closely enough to round only once.
template <class Format, class Operation>
u16 on_float(u16 a, u16 b, Operation&& operation) {
  return Format::narrow(operation(Format::wide(a), Format::wide(b)));
}
template <class Format, class Operation>
u32 on_floats(u32 a, u32 b, Operation&& operation) {
  u32 low = on_float<Format>(static_cast<u16>(a), static_cast<u16>(b), operation);
  return low | u32{on_float<Format>(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16), operation)} << 16;
}
constexpr auto sum = [](float a, float b) { return a + b; };
// NaN loses, and -0 is below +0.
constexpr auto lesser = [](float a, float b) { return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b; };
constexpr auto greater = [](float a, float b) { return a != a ? b : b != b ? a : a > b || (a == b && std::signbit(b)) ? a : b; };

void count_atomic(Warp* warp, u32 site, const Lanes& lanes, bool global) {
  u64* counters = warp->counters + size_t{site} * COUNTERS;
  counters[REQUESTS] += 1;
  counters[ACCESS_LANES] += lanes.count;
  counters[ADDRESSES] += lanes.count ? count_distinct(lanes.address, lanes.count) : 0;
  if (!global) counters[WAVEFRONTS] += 1;
  if (global)
    for (int i = 0; i < lanes.count; ++i) *Device::stored(lanes.address[i]) = *Device::loaded(lanes.address[i]) = 1;
}

template <u32 Bytes>
void check_atomic(Warp* warp, u32 site, Lanes& lanes) {
  const Allocation* common = check_global<Bytes>(warp, site, lanes);
  check_written<Bytes>(warp, site, lanes, common);
  race_atomic(warp, site, lanes, Bytes, common);
  if (!warp->counts) return;
  count_atomic(warp, site, lanes, true);
  for (int i = 0; i < lanes.count; ++i) {
    note_global_order(warp, allocation_of(warp, common, lanes.address[i], Bytes), true);
    if (common) break;
  }
}

template <class Value, class Update>
void atomic_global(Warp* warp, u32 site, Lanes& lanes, Value* out, Update&& next) {
  if (checked(warp)) {
    check_atomic<sizeof(Value)>(warp, site, lanes);
    if (out) poison_dropped<sizeof(Value), 1>(lanes, reinterpret_cast<u8*>(out));
  }
  for (int i = 0; i < lanes.count; ++i) {
    int lane = lanes.lane[i];
    warp->spin.polled = lanes.address[i];
    Value old = update(reinterpret_cast<Value*>(lanes.address[i]), true, [&](Value value) { return next(value, lane); });
    if (out) out[lane] = old;
  }
  race_acquire(warp);
}

template <u32 Bytes>
void check_shared_atomic(Warp* warp, u32 site, u32 lane, u32 at) {
  SharedMemory& shared = warp->block->shared;
  bool written = false;
  for (u32 granule = at >> shared.granule_shift; granule <= (at + Bytes - 1) >> shared.granule_shift; ++granule)
    written |= shared.written(shared.writers[granule]);
  if (!written) unwritten(warp, site, lane, at, Bytes);
  shared_write<Bytes>(warp, site, lane, at, nullptr, true);
}

// Checks and marks all lanes where none meets anything but atomic operations of this epoch. Else does nothing.
template <u32 Bytes>
bool check_plain_atomics(Warp* warp, u32 site, const Lanes& lanes) {
  SharedMemory& shared = warp->block->shared;
  if (Bytes < 4 || shared.granule_shift != 2) return false;
  auto each = [&](auto&& look) {
    for (int i = 0; i < lanes.count; ++i)
      for (u32 part = 0; part < Bytes; part += 4) look((static_cast<u32>(lanes.address[i]) + part) >> 2, warp->thread(lanes.lane[i]));
  };
  bool fine = true;
  each([&](u32 granule, u32) {
    Mark writer = shared.writers[granule];
    fine &= shared.written(writer) & (mark_epoch(writer) != shared.epoch || (writer & MARK_ATOMIC)) &
            (mark_epoch(shared.readers[granule]) != shared.epoch);
  });
  if (!fine) return false;
  if (warp->counts && shared.last_useful + 1 < shared.epoch)
    each([&](u32 granule, u32 thread) {
      note_order(shared, shared.writers[granule], thread);
      note_order(shared, shared.readers[granule], thread);
    });
  Mark mine = own_mark(warp, 0, warp->module->sites[site].strong, true);
  each([&](u32 granule, u32 thread) { shared.write(granule, mine - warp->thread(0) + thread); });
  return true;
}

template <class Value, class Update>
void atomic_shared(Warp* warp, u32 site, Lanes& lanes, Value* out, Update&& next) {
  bool checks = checked(warp);
  SharedMemory& shared = warp->block->shared;
  if (checks) {
    shared.settle();
    shared.arrive(lanes.address[0], warp->worker->launch.module->sites[site].releases != Site::NONE);
    check_shared<sizeof(Value)>(warp, site, lanes);
    if (out) poison_dropped<sizeof(Value), 1>(lanes, reinterpret_cast<u8*>(out));
    if (warp->counts) count_atomic(warp, site, lanes, false);
    if (check_plain_atomics<sizeof(Value)>(warp, site, lanes)) checks = false;
  }
  for (int i = 0; i < lanes.count; ++i) {
    u32 lane = lanes.lane[i], at = static_cast<u32>(lanes.address[i]);
    if (checks) check_shared_atomic<sizeof(Value)>(warp, site, lane, at);
    Value old =
        update(reinterpret_cast<Value*>(&shared.bytes[at]), false, [&](Value value) { return next(value, static_cast<int>(lane)); });
    if (out) out[lane] = old;
  }
  race_acquire(warp);
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
ATOMIC(exch, b128, u128, a)
ATOMIC(cas, b128, u128, old == a ? b() : old)
#define ATOMIC_HALVES(NAME, OPERATION)                              \
  ATOMIC(NAME, f16, u16, on_float<Half>(old, a, OPERATION))         \
  ATOMIC(NAME, bf16, u16, on_float<Bfloat>(old, a, OPERATION))      \
  ATOMIC(NAME, f16x2, u32, on_floats<Half>(old, a, OPERATION))      \
  ATOMIC(NAME, bf16x2, u32, on_floats<Bfloat>(old, a, OPERATION))
ATOMIC_HALVES(add, sum)
ATOMIC_HALVES(min, lesser)
ATOMIC_HALVES(max, greater)
ATOMIC(inc, u32, u32, old >= a ? 0 : old + 1)
ATOMIC(dec, u32, u32, old == 0 || old > a ? a : old - 1)
}
