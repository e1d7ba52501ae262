#include "pieces.h"

#include "checks.h"
#include "races.h"
#include "store_order.h"

namespace kw {
namespace {

// Calls `action` with the piece's size as a constant.
template <class Action>
void by_size(u32 bytes, Action&& action) {
  switch (bytes) {
    case 1: return action.template operator()<1>();
    case 2: return action.template operator()<2>();
    case 4: return action.template operator()<4>();
    case 8: return action.template operator()<8>();
    default: return action.template operator()<16>();
  }
}

// Checks and counts what will be written; `value(i)`: what lane i's piece will hold, or null.
template <u32 Bytes, class Value>
const Allocation* claim(Warp* warp, u32 site, char space, Lanes& lanes, Value&& value) {
  if (!checked(warp)) return nullptr;
  bool count = warp->counts;
  if (space == 's') {
    warp->block->shared.settle();
    check_shared<Bytes>(warp, site, lanes);
    if (count) count_shared(warp, site, lanes, Bytes);
    for (int i = 0; i < lanes.count; ++i)
      shared_write<Bytes>(warp, site, lanes.lane[i], static_cast<u32>(lanes.address[i]), value(i), false);
    return nullptr;
  }
  const Allocation* common = check_global<Bytes>(warp, site, lanes);
  if (count) count_global<Bytes>(warp, site, lanes, common, true);
  return common;
}

// Stores what was claimed, unless the check for races has to do both at once.
template <u32 Bytes, class Piece>
void store_global(Warp* warp, u32 site, const Lanes& lanes, const Allocation* common, Piece&& piece) {
  if (!store_watched<Bytes>(warp, site, lanes, common, [&](int i, u8* to) { std::memcpy(to, piece(i), Bytes); }))
    for (int i = 0; i < lanes.count; ++i) std::memcpy(Device::pointer(lanes.address[i]), piece(i), Bytes);
  mark_written<Bytes>(warp, lanes, common);
}

// What is added to addresses of a space, as a number: nothing may be added to a null pointer.
u64 base_of(Warp* warp, char space) { return space == 's' ? reinterpret_cast<u64>(warp->block->shared.bytes.data()) : 0; }

// Where the data of each lane's piece start: the checks drop lanes, the data stay where they are.
struct Slots {
  u8 of[LANES];
  explicit Slots(const Lanes& lanes) {
    for (int i = 0; i < lanes.count; ++i) of[lanes.lane[i]] = static_cast<u8>(i);
  }
};

}  // namespace

char resolve_space(Warp* warp, char space, u64& address) {
  if (space != 'x') return space;
  if (address - SHARED_WINDOW < WINDOW_BYTES) {
    address -= SHARED_WINDOW;
    return 's';
  }
  if (address - LOCAL_WINDOW < WINDOW_BYTES || address - PARAMETER_WINDOW < WINDOW_BYTES)
    give_up(warp, "a matrix or an asynchronous copy in local memory");
  return 'g';
}

int read_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes, u8* data) {
  bool count = warp->counts;
  Slots slots(lanes);
  if (warp->worker->launch.keeps_going()) std::memset(data, 0xFF, size_t{bytes} * static_cast<size_t>(lanes.count));
  by_size(bytes, [&]<u32 Bytes>() {
    bool checks = checked(warp);
    if (checks && space == 's') {
      warp->block->shared.settle();
      check_shared<Bytes>(warp, site, lanes);
      shared_read<Bytes>(warp, site, lanes);
      if (count) count_shared(warp, site, lanes, Bytes);
    } else if (checks) {
      const Allocation* common = check_global<Bytes>(warp, site, lanes);
      check_written<Bytes>(warp, site, lanes, common);
      if (count) count_global<Bytes>(warp, site, lanes, common, false);
      race_read(warp, site, lanes, Bytes, common);
    }
    u64 base = base_of(warp, space);
    for (int i = 0; i < lanes.count; ++i)
      std::memcpy(data + slots.of[lanes.lane[i]] * Bytes, reinterpret_cast<const u8*>(base + lanes.address[i]), Bytes);
  });
  return lanes.count;
}

void write_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes, const u8* data) {
  Slots slots(lanes);
  by_size(bytes, [&]<u32 Bytes>() {
    auto piece = [&](int i) { return data + slots.of[lanes.lane[i]] * Bytes; };
    const Allocation* common = claim<Bytes>(warp, site, space, lanes, [&](int i) { return piece(i); });
    order_for_store<Bytes>(lanes);
    if (space == 'g' && checked(warp)) {
      store_global<Bytes>(warp, site, lanes, common, piece);
      return;
    }
    u64 base = base_of(warp, space);
    for (int i = 0; i < lanes.count; ++i) std::memcpy(reinterpret_cast<u8*>(base + lanes.address[i]), piece(i), Bytes);
  });
}

int claim_pieces(Warp* warp, u32 site, char space, Lanes lanes, u32 bytes) {
  by_size(bytes, [&]<u32 Bytes>() { claim<Bytes>(warp, site, space, lanes, [](int) { return nullptr; }); });
  return lanes.count;
}

void store_claimed(Warp* warp, u32 site, u64 address, u64 bytes, const u8* data) {
  address = warp->worker->launch.device->seen(address);
  for_pieces(address, bytes, [&](const Lanes& lanes, u32 piece, u64 at) {
    by_size(piece, [&]<u32 Bytes>() {
      const Allocation* common = warp->worker->launch.device->find(lanes.address[0], u64{Bytes} * static_cast<u64>(lanes.count));
      store_global<Bytes>(warp, site, lanes, common, [&](int i) { return data + at + static_cast<u64>(i) * Bytes; });
    });
  });
}

void require_full_warp(Warp* warp, u32 line, u32 mask, const char* what) {
  if (mask == ~u32{0}) return;
  int came = std::popcount(mask);
  fail(warp, std::countr_zero(mask), line, "barrier",
       std::string(what) + " needs all 32 lanes of the warp; " + std::to_string(came) +
           (came == 1 ? " lane executes it" : " lanes execute it"));
}

}  // namespace kw
