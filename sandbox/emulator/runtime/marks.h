// What is known of an access to shared memory: who, when, how.
#pragma once

#include "abi.h"

namespace kw {

// A mark of an access: epoch (barriers so far), warp synchronisations, flags, thread. 0 is older than all.
using Mark = u64;

constexpr Mark MARK_THREAD = 0x3ff;
constexpr Mark MARK_SEVERAL_IN_WARP = 1 << 10;
constexpr Mark MARK_SEVERAL_WARPS = 1 << 11;
constexpr Mark MARK_STRONG = 1 << 12;
constexpr Mark MARK_ATOMIC = 1 << 13;
constexpr int MARK_SYNC_SHIFT = 14;
constexpr u32 MARK_SYNC_LIMIT = (1 << 18) - 1;
constexpr int MARK_EPOCH_SHIFT = 32;

// The readers' mark of a granule after one more read: who reads, and whether others have since the last barrier.
inline Mark with_reader(Mark old, Mark mine) {
  u64 changed = old ^ mine;
  bool same_epoch = changed >> MARK_EPOCH_SHIFT == 0;
  bool same_warp = (changed & (MARK_THREAD & ~Mark{31})) == 0;
  bool same_sync = (changed >> MARK_SYNC_SHIFT & MARK_SYNC_LIMIT) == 0;
  bool shared_in_warp = (old & MARK_SEVERAL_IN_WARP) != 0 || (changed & 31) != 0;
  Mark warps = same_epoch && ((old & MARK_SEVERAL_WARPS) != 0 || !same_warp) ? MARK_SEVERAL_WARPS : 0;
  Mark lanes = same_epoch && same_warp && same_sync && shared_in_warp ? MARK_SEVERAL_IN_WARP : 0;
  return mine | warps | lanes;
}

inline u32 mark_epoch(Mark mark) { return static_cast<u32>(mark >> MARK_EPOCH_SHIFT); }
inline u32 mark_sync(Mark mark) { return static_cast<u32>(mark >> MARK_SYNC_SHIFT) & MARK_SYNC_LIMIT; }
inline u32 mark_thread(Mark mark) { return mark & MARK_THREAD; }

}  // namespace kw
