#include "race_windows.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace kw {
using namespace race_marks;

namespace race_marks {

Look::Look(const Access& access, const Allocation& allocation)
    : access(access), first(access.races->first), blocks_stay(access.races->clock.load(std::memory_order_relaxed) == 1) {
  u32 launch = static_cast<u32>(segment_of(first));
  loaded = std::atomic_ref(allocation.loaded_by).load() >= launch;
  stored = std::atomic_ref(allocation.stored_by).load() >= launch;
}

}  // namespace race_marks

namespace {

bool any(Flags flags) {
#ifdef __AVX512F__
  return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(flags), reinterpret_cast<__m512i>(flags)) != 0;
#else
  i64 found = 0;
  for (u32 i = 0; i < PART; ++i) found |= flags[i];
  return found != 0;
#endif
}

Marks load(const RaceMark* from) {
  Marks marks;
  std::memcpy(&marks, from, sizeof marks);
  return marks;
}

// Marks of others' granules stay untouched: other workers may write them meanwhile.
void store(RaceMark* to, const Marks& marks, Flags which) {
  if (!any(~which)) {
    std::memcpy(to, &marks, sizeof marks);
    return;
  }
  for (u32 i = 0; i < PART; ++i)
    if (which[i]) to[i] = marks[i];
}

// Marks of this launch that are neither the thread's own nor from before the block's last barrier.
Flags unordered(const Look& look, Marks marks, Marks mine) {
  Marks changed = marks ^ mine;
  Flags own = (changed & (OWNER | (SEVERAL & ~BLOCKS))) == 0;
  Flags before = ((changed & SEGMENT) == 0) & ((changed & EPOCH) != 0);
  return (marks >= look.first) & (~(own | before) | ((marks & BLOCKS) != 0));
}

// The readers' marks after one more read: what `joined` says, for eight. `mine` says whole granules, read plainly.
bool read_part(const Look& look, u64 at, Marks mine, Flags touched) {
  if (look.stored && any(touched & unordered(look, load(writers(at)), mine))) return false;
  RaceMark* place = readers(at);
  Marks old = load(place), changed = old ^ mine;
  Flags fresh = old < look.first;
  if (look.blocks_stay) {
    Flags stays = (old & (BYTES_MASK | STRONG | NARROW | BLOCKS)) == (BYTES_MASK | BLOCKS);
    if (!any(touched & (fresh | ~stays))) return true;
  }
  Flags blocks = (old & BLOCKS) != 0;
  Flags whole = (old & (BYTES_MASK | STRONG | NARROW)) == BYTES_MASK;
  Flags segment = (changed & SEGMENT) == 0, epoch = (changed & EPOCH) == 0;
  Flags warp = (changed & WARP) == 0, moment = (changed & (WARP | SYNC)) == 0;
  Flags several = ((old & WARPS) != 0) | (((old & LANES_MARK) != 0) & moment);
  Flags known = ~fresh & whole & (blocks ? Flags{} - i64{look.blocks_stay} : segment & epoch & several);
  Flags open = touched & ~known;
  if (!any(open)) return true;

  Flags group = ~fresh & segment & epoch & ~blocks;
  Marks others = (old & LANES_MARK) | ((changed & THREAD) != 0 ? Marks{} + LANES_MARK : Marks{});
  others = warp ? (moment ? others : Marks{}) : (old & LANES_MARK) | WARPS;
  Marks next = group ? mine | others : mine;
  Flags closer = open & ~fresh & (blocks | ~segment | (epoch & ~whole));
  if (any(closer))
    for (u32 i = 0; i < PART; ++i)
      if (closer[i]) next[i] = joined(look.access, old[i], mine[i]);
  Flags changes = open & (next != old);
  if (any(changes)) store(place, next, changes);
  return true;
}

bool read_few(const Look& look, u64 at, RaceMark mine) {
  if (look.stored) {
    RaceMark wrote = *writers(at), changed = wrote ^ mine;
    bool before = (changed & SEGMENT) == 0 && (changed & EPOCH) != 0;
    if (wrote >= look.first && !before) return false;
  }
  RaceMark &place = *readers(at), old = place, changed = old ^ mine;
  bool whole = (old & (BYTES_MASK | STRONG | NARROW)) == BYTES_MASK;
  bool several = old & WARPS || (old & LANES_MARK && (changed & (WARP | SYNC)) == 0);
  bool known = old & BLOCKS ? look.blocks_stay : (changed & (SEGMENT | EPOCH)) == 0 && several;
  if (old < look.first || !whole || !known) place = joined(look.access, old, mine);
  return true;
}

RaceMark site_bits(u32 site) { return (site & (SITES - 1)) << SITE_SHIFT; }

}  // namespace

RaceReads::RaceReads(Warp* warp, u32 site, u32 bytes, const Allocation* allocation)
    : access_(begin(warp, site, bytes, allocation, 0, false)) {
  if (access_) mine_ = own(*access_);
  if (!mine_) return;
  mine_ = (mine_ & ~site_bits(SITES - 1)) | BYTES_MASK;
  look_.emplace(*access_, *allocation);
}

bool RaceReads::read(u32 site, i64 offset) const {
  if (access_->strong()) return false;
  RaceMark line = site_bits(site);
  for (int n = 0; n < count_; ++n) {
    const Window& window = windows_[n];
    u64 at = window.low + static_cast<u64>(offset);
    for (u32 k = 0; k < window.few; ++k)
      if (!read_few(*look_, at + 4 * k, window.mine[0][0] | line)) return false;
    if (window.few) continue;
    for (u32 part = 0; part < 2; ++part)
      if (!read_part(*look_, at + 4 * PART * part, window.mine[part] | line, window.touched[part])) return false;
  }
  return true;
}

bool race_read_row(const Access& access, RaceMark mine, u64 at) {
  if (access.strong()) return false;
  Look look(access, *access.common);
  u32 words = access.bytes / 4;
  for (u32 part = 0; part < LANES / PART * words; ++part)
    if (!read_part(look, at + 4 * PART * part, lanes_of(part, words) + (mine | BYTES_MASK), ~Flags{})) return false;
  return true;
}

bool race_write_rows(Warp* warp, u32 site, u32 bytes, const u64 (&at)[2], u32 silent, const Allocation* allocation,
                     const std::function<void()>& put) {
  std::optional<Access> access = begin(warp, site, bytes, allocation, 0, true);
  RaceMark mine = access ? own(*access) : 0;
  if (!mine) {
    put();
    return true;
  }
  Look look(*access, *allocation);
  u32 words = bytes / 4, parts = LANES / PART * words;
  auto place = [&](u32 part) { return at[part >= parts / 2] + 4 * PART * (part % (parts / 2)); };
  for (u32 part = 0; part < parts; ++part) {
    Marks marks = lanes_of(part, words) + (mine | BYTES_MASK);
    Flags bad = unordered(look, load(writers(place(part))), marks);
    if (look.loaded) bad |= unordered(look, load(readers(place(part))), marks);
    if (any(bad)) return false;
  }
  put();  // who sees the marks sees the values, too
  std::atomic_thread_fence(std::memory_order_release);
  for (u32 part = 0; part < parts; ++part) {
    Marks lanes = lanes_of(part, words);
    RaceMark* to = writers(place(part));
    Marks next = lanes + (mine | BYTES_MASK), old = load(to);
    if (silent) {  // A write that changed nothing does not hide one that did.
      Flags quiet = ((Marks{} + silent) >> (lanes >> static_cast<RaceMark>(THREAD_SHIFT)) & 1) != 0;
      Flags hides = (old >= look.first) & ((old & SILENT) == 0);
      next = quiet ? (hides ? old : next | SILENT) : next;
    }
    store(to, next, ~Flags{});
  }
  return true;
}

}  // namespace kw
