#include "shared_lanes.h"

#include <algorithm>

#include "checks.h"

namespace kw {
namespace {

using Marks = Eight;
constexpr Mark SEVERAL = MARK_SEVERAL_IN_WARP | MARK_SEVERAL_WARPS;
constexpr Mark WARP_BITS = MARK_THREAD & ~Mark{31};

u64 base_of(const std::vector<Mark>& marks) { return reinterpret_cast<u64>(marks.data()); }

Marks epochs(Marks marks) { return marks >> static_cast<Mark>(MARK_EPOCH_SHIFT); }

// As `unordered` says of one.
Flags unordered(const Warp* warp, Marks marks, Marks mine) {
  Marks changed = marks ^ mine;
  Flags here = epochs(changed) == 0;
  Flags own = ((changed & MARK_THREAD) == 0) & ((marks & SEVERAL) == 0);
  Flags synced = (marks >> static_cast<Mark>(MARK_SYNC_SHIFT) & MARK_SYNC_LIMIT) < warp->synced;
  Flags in_warp = ((marks & MARK_SEVERAL_WARPS) == 0) & ((changed & WARP_BITS) == 0) & synced;
  return here & ~(own | in_warp);
}

// As `with_reader` says of one.
Marks with_readers(Marks old, Marks mine) {
  Marks changed = old ^ mine;
  Flags here = epochs(changed) == 0, same_warp = (changed & WARP_BITS) == 0;
  Flags moment = same_warp & ((changed & (Mark{MARK_SYNC_LIMIT} << MARK_SYNC_SHIFT)) == 0);
  Flags lanes = here & moment & (((old & MARK_SEVERAL_IN_WARP) != 0) | ((changed & 31) != 0));
  Flags warps = here & (((old & MARK_SEVERAL_WARPS) != 0) | ~same_warp);
  return mine | (warps ? Marks{} + MARK_SEVERAL_WARPS : Marks{}) | (lanes ? Marks{} + MARK_SEVERAL_IN_WARP : Marks{});
}

void add_readers(u64 base, Marks place, Marks mine, Flags where) {
  Flags again = repeats(place, where), first = where & ~again;
  Marks old = gather(base, place, first);
  scatter(base, place, with_readers(old, mine), first);
  each_flag(again, [&](int i) {
    Mark& mark = *reinterpret_cast<Mark*>(base + place[i]);
    mark = with_reader(mark, mine[i]);
  });
}

// The newest epochs of other threads' marks: a barrier since then has ordered something.
void note_others(Marks& newest, Marks marks, Marks mine, Flags where) {
  Flags others = where & ((((marks ^ mine) & MARK_THREAD) != 0) | ((marks & SEVERAL) != 0));
  Marks epoch = others ? epochs(marks) : Marks{};
  newest = epoch > newest ? epoch : newest;
}

void note_newest(SharedMemory& shared, Marks newest) {
  Mark latest = 0;
  for (int i = 0; i < EIGHT; ++i) latest = std::max<Mark>(latest, newest[i]);
  shared.ordered(static_cast<u32>(latest));
}

// Lanes from `start` on: their marks, and where the marks of the words they access are.
struct Part {
  Part(const Lanes& lanes, int start, Mark lane_zero)
      : where(first_flags(lanes.count - start)), mine(widened(lanes.lane + start) + lane_zero),
        place(load_eight(lanes.address + start) >> u64{2} << u64{3}) {}
  Flags where;
  Marks mine, place;
};

bool wants_order(const Warp* warp) {
  const SharedMemory& shared = warp->block->shared;
  return warp->counts && shared.last_useful + 1 < shared.epoch;
}

}  // namespace

u32 mark_reads(Warp* warp, const Lanes& lanes, u32 bytes, bool strong) {
  SharedMemory& shared = warp->block->shared;
  shared.notes.before_read(shared, warp->counts, warp->synced);
  Mark lane_zero = own_mark(warp, 0, strong, false);
  u64 writers = base_of(shared.writers), readers = base_of(shared.readers);
  u32 rest = 0;
  Marks newest{};
  for (int start = 0; start < lanes.count; start += EIGHT) {
    Part part(lanes, start, lane_zero);
    Flags bad{}, written{};
    for (u32 at = 0; at < bytes; at += 4) {
      Marks wrote = gather(writers + u64{2} * at, part.place, part.where);
      Flags found = unordered(warp, wrote, part.mine);
      bad |= strong ? found & ((wrote & MARK_STRONG) == 0) : found;
      written |= epochs(wrote) >= shared.first_epoch;
    }
    bad = part.where & (bad | ~written);
    rest |= bits_of(bad) << start;
    Flags fine = part.where & ~bad;
    if (wants_order(warp))
      for (u32 at = 0; at < bytes; at += 4)
        note_others(newest, gather(writers + u64{2} * at, part.place, fine), part.mine, fine);
    for (u32 at = 0; at < bytes; at += 4) add_readers(readers + u64{2} * at, part.place, part.mine, fine);
  }
  note_newest(shared, newest);
  return rest;
}

void mark_noted(SharedMemory& shared, const u32* place, i32 offset, u32 bytes, Mark lane_zero) {
  const Marks order = {0, 1, 2, 3, 4, 5, 6, 7};
  for (u32 start = 0; start < LANES; start += EIGHT) {
    Marks at;
    for (int i = 0; i < EIGHT; ++i) at[i] = place[start + static_cast<u32>(i)] + static_cast<u32>(offset);
    for (u32 word = 0; word < bytes; word += 4)
      add_readers(base_of(shared.readers) + u64{2} * word, at >> u64{2} << u64{3}, order + (lane_zero + start), ~Flags{});
  }
}

SharedStores::SharedStores(Warp* warp, const Lanes& lanes, u32 bytes, bool strong)
    : warp_(warp), lanes_(lanes), bytes_(bytes), strong_(strong), plain_(warp->block->shared.granule_shift == 2) {
  SharedMemory& shared = warp->block->shared;
  u64 first = ~u64{0}, last = 0;
  for (int i = 0; i < lanes.count; ++i) {
    first = std::min(first, lanes.address[i]);
    last = std::max(last, lanes.address[i]);
  }
  if (plain_) shared.notes.before_any_write(shared, static_cast<u32>(first), static_cast<u32>(last) + bytes, warp->counts);
  else shared.settle();
}

u32 SharedStores::mark(int start) {
  SharedMemory& shared = warp_->block->shared;
  Part part(lanes_, start, own_mark(warp_, 0, strong_, false));
  if (any(repeats(part.place, part.where))) return 0;
  u64 writers = base_of(shared.writers), readers = base_of(shared.readers);
  Flags bad{};
  Marks newest{};
  for (u32 at = 0; at < bytes_; at += 4)
    for (u64 base : {writers, readers}) {
      Marks marks = gather(base + u64{2} * at, part.place, part.where);
      Flags found = unordered(warp_, marks, part.mine);
      bad |= strong_ ? found & ((marks & MARK_STRONG) == 0) : found;
      if (warp_->counts) note_others(newest, marks, part.mine, part.where);
    }
  Flags fine = part.where & ~bad;
  for (u32 at = 0; at < bytes_; at += 4) {
    Flags fresh = fine & (epochs(gather(writers + u64{2} * at, part.place, fine)) < shared.first_epoch);
    shared.unwritten -= static_cast<u32>(std::popcount(bits_of(fresh)));
    scatter(writers + u64{2} * at, part.place, part.mine, fine);
  }
  if (any(fine)) shared.last_write = shared.epoch;
  note_newest(shared, newest);
  return bits_of(fine);
}

}  // namespace kw
