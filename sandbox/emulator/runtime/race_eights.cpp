#include "race_eights.h"

#include <cstddef>

namespace kw::race_marks {

Look::Look(const Access& access, const Allocation& allocation)
    : access(access),
      first(access.races->first),
      blocks_stay(access.races->clock.load(std::memory_order_relaxed) == 1),
      block(access.warp->block->linear),
      acquired(access.block().acquired),
      epoch(access.warp->block->shared.epoch),
      synced(access.warp->synced) {
  u32 launch = static_cast<u32>(segment_of(first));
  loaded = std::atomic_ref(allocation.loaded_by).load() >= launch;
  stored = std::atomic_ref(allocation.stored_by).load() >= launch;
}

namespace {

// Segments by their numbers.
struct Segments {
  Segments(const Look& look, Marks numbers, Flags wanted) : where(wanted), place(numbers * sizeof(Segment)) {
    ours = field(offsetof(Segment, block)) == look.block;
    const Marks here = Marks{} + offsetof(Segment, released_in_block), elsewhere = Marks{} + offsetof(Segment, released);
    Marks released = gather(Device::SEGMENTS_BASE, place + (ours ? here : elsewhere), where);
    handed_over = (released != 0) & (released <= look.acquired);
  }
  Marks field(u64 offset) const { return gather(Device::SEGMENTS_BASE + offset, place, where); }

  Flags where, ours, handed_over;
  Marks place;
};

Marks across_blocks(const Look& look, Marks old, Marks mine, Flags where) {
  Marks other = old >> static_cast<RaceMark>(SEGMENT_SHIFT);
  Flags several = where & ((old & BLOCKS) != 0);
  if (any(several)) {
    Flags ours = Segments(look, other, several).ours;
    other = several & ours ? old >> static_cast<RaceMark>(SECOND_SHIFT) & SEGMENT_BITS : other;
  }
  Segments segments(look, other, where);
  Marks both = old & mine & BYTES_MASK;
  Flags past = segments.ours | (both == 0) | segments.handed_over;
  return past ? mine : (mine & SEGMENT) | other << static_cast<RaceMark>(SECOND_SHIFT) | (old & mine & STRONG) | BLOCKS | both;
}

}  // namespace

Marks joined(const Look& look, Marks old, Marks mine, Flags where) {
  Marks changed = old ^ mine;
  Flags fresh = old < look.first, apart = ((old & BLOCKS) != 0) | ((changed & SEGMENT) != 0);
  Marks merged = ((mine | (old & BYTES_MASK)) & (~STRONG | (old & mine & STRONG))) | (old & (SEVERAL | NARROW));
  Flags thread = (changed & THREAD) == 0, moment = ((changed & SYNC) == 0) | ((old & WARPS) != 0);
  Marks in_warp = moment ? (thread ? merged : merged | LANES_MARK) : mine;
  Marks in_epoch = (changed & WARP) == 0 ? in_warp : merged | WARPS;
  Marks next = fresh | ((changed & EPOCH) != 0) ? mine : in_epoch;
  Flags crossing = where & ~fresh & apart;
  return any(crossing) ? crossing ? across_blocks(look, old, mine, crossing) : next : next;
}

Flags disordered(const Look& look, Marks mark, Marks mine, Flags where) {
  Marks changed = mark ^ mine;
  Flags blocks = (mark & BLOCKS) != 0, strong = ((mark & STRONG) != 0) & ((mine & STRONG) != 0);
  Flags segment = ~blocks & ((changed & SEGMENT) == 0);
  Flags own = segment & ((changed & THREAD) == 0) & (((mark | mine) & (LANES_MARK | WARPS)) == 0);
  Flags before = segment & ((changed & EPOCH) != 0);
  Flags open = where & (mark >= look.first) & ((mark & mine & BYTES_MASK) != 0) & ~(strong | own | before);
  if (!any(open)) return open;
  Segments segments(look, mark >> static_cast<RaceMark>(SEGMENT_SHIFT), open);
  Marks epoch = segments.field(offsetof(Segment, first_epoch)) + (mark >> static_cast<RaceMark>(EPOCH_SHIFT) & EPOCH_LIMIT);
  Marks sync = mark >> static_cast<RaceMark>(SYNC_SHIFT) & SYNC_LIMIT;
  Flags barrier = (epoch & 0xffff'ffff) != look.epoch;
  Flags whose = ((mark & NARROW) != 0) & ((mark & SEVERAL) != 0);
  Flags lane = (((mark | mine) & LANES_MARK) == 0) & ((changed & THREAD) == 0);
  Flags warp = ((mark & WARPS) == 0) & ((changed & WARP) == 0) & (lane | (sync == SYNC_LIMIT) | (sync < look.synced));
  Flags fine = segments.ours ? segments.handed_over | barrier | whose | warp : segments.handed_over;
  if (any(open & blocks)) {
    Segments second(look, mark >> static_cast<RaceMark>(SECOND_SHIFT) & SEGMENT_BITS, open & blocks);
    fine = blocks ? (segments.ours | segments.handed_over) & (second.ours | second.handed_over) : fine;
  }
  return open & ~fine;
}

Marks after_write(const Look& look, Marks old, Marks mine) {
  Marks changed = old ^ mine;
  // A write that changed nothing does not hide one that did.
  Flags hides = ((mine & SILENT) != 0) & (old >= look.first) & ((old & SILENT) == 0);
  Flags alone = (old < look.first) | ((changed & (SEGMENT | EPOCH)) != 0) | ((mine & BYTES_MASK) == BYTES_MASK);
  Marks merged = (mine & ~SILENT) | (mine & old & SILENT) | (old & (SEVERAL | NARROW | BYTES_MASK));
  Marks others = (changed & THREAD) == 0 ? Marks{} : Marks{} + LANES_MARK;
  merged |= (changed & WARP) == 0 ? others : Marks{} + WARPS;
  return alone ? (hides ? old : mine) : merged;
}

}  // namespace kw::race_marks
