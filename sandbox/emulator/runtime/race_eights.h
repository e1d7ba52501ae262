// The rules of races.cpp for eight marks at a time: what follows another mark, and which are in order for sure.
#pragma once

#include "eights.h"
#include "race_marks.h"

namespace kw::race_marks {

using Marks = Eight;
constexpr u32 PART = EIGHT;  // granules

// What all accesses of a warp to an allocation have in common.
struct Look {
  Look(const Access& access, const Allocation& allocation);
  const Access& access;
  RaceMark first;
  bool loaded, stored;  // in this launch, by anyone
  bool blocks_stay;     // once something was released, who of several blocks is meant may change
  u64 block, acquired;
  u32 epoch, synced;
};

// Marks that make a finding, or may: those are for the exact check. Of a write or of reads, against an access `mine`.
Flags disordered(const Look& look, Marks mark, Marks mine, Flags where);
// The readers' marks after one more read.
Marks joined(const Look& look, Marks old, Marks mine, Flags where);
// The writers' marks after one more write.
Marks after_write(const Look& look, Marks old, Marks mine);

// Do marks say of all of these granules that several blocks read them, and will a further read change nothing?
inline bool all_read_widely(const Look& look, Marks old, Flags where) {
  Flags widely = (old >= look.first) & ((old & (BYTES_MASK | STRONG | NARROW | BLOCKS)) == (BYTES_MASK | BLOCKS));
  return look.blocks_stay && !any(where & ~widely);
}

// Reads whose marks say all that there is to say.
inline Flags known_read(const Look& look, Marks old, Marks mine) {
  Marks changed = old ^ mine;
  Flags fresh = old < look.first, blocks = (old & BLOCKS) != 0;
  Flags whole = (old & (BYTES_MASK | STRONG | NARROW)) == BYTES_MASK;
  Flags moment = (changed & (WARP | SYNC)) == 0, here = (changed & (SEGMENT | EPOCH)) == 0;
  Flags several = ((old & WARPS) != 0) | (((old & LANES_MARK) != 0) & moment);
  return ~fresh & whole & (blocks ? Flags{} - i64{look.blocks_stay} : here & several);
}

}  // namespace kw::race_marks
