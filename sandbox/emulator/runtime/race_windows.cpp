#include "race_windows.h"

namespace kw {
using namespace race_marks;

namespace {

// Marks of others' granules stay untouched: other workers may write them meanwhile.
void store(RaceMark* to, const Marks& marks, Flags which) {
  if (!any(~which)) {
    std::memcpy(to, &marks, sizeof marks);
    return;
  }
  for (u32 i = 0; i < PART; ++i)
    if (which[i]) to[i] = marks[i];
}

// `mine` says whole granules, read plainly. False: the exact check has to look.
bool read_part(const Look& look, u64 at, Marks mine, Flags touched) {
  if (look.stored && any(disordered(look, load_eight(writers(at)), mine, touched))) return false;
  RaceMark* place = readers(at);
  Marks old = load_eight(place);
  if (all_read_widely(look, old, touched)) return true;
  Flags open = touched & ~known_read(look, old, mine);
  if (!any(open)) return true;
  Marks next = joined(look, old, mine, open);
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
    Flags bad = disordered(look, load_eight(writers(place(part))), marks, ~Flags{});
    if (look.loaded) bad |= disordered(look, load_eight(readers(place(part))), marks, ~Flags{});
    if (any(bad)) return false;
  }
  put();  // who sees the marks sees the values, too
  std::atomic_thread_fence(std::memory_order_release);
  for (u32 part = 0; part < parts; ++part) {
    Marks lanes = lanes_of(part, words);
    RaceMark* to = writers(place(part));
    Marks marks = lanes + (mine | BYTES_MASK);
    if (silent) {
      Flags quiet = ((Marks{} + silent) >> (lanes >> static_cast<RaceMark>(THREAD_SHIFT)) & 1) != 0;
      marks = after_write(look, load_eight(to), quiet ? marks | SILENT : marks);
    }
    store(to, marks, ~Flags{});
  }
  return true;
}

}  // namespace kw
