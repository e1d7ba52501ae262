// The marks of races in global memory (races.h), for those who look at them.
#pragma once

#include <optional>

#include "checks.h"

namespace kw::race_marks {

constexpr int SEGMENT_SHIFT = RACE_SEGMENT_SHIFT, SECOND_SHIFT = 16, THREAD_SHIFT = 30, EPOCH_SHIFT = 24, SYNC_SHIFT = 18, SITE_SHIFT = 11;
constexpr RaceMark SEGMENT_BITS = 0xff'ffff, EPOCH_LIMIT = 63, SYNC_LIMIT = 63;
constexpr RaceMark ATOMIC = 1 << 4;
constexpr RaceMark ORDERED = 1 << 5;      // volatile or ordered
constexpr RaceMark SILENT = 1 << 6;       // a write of the value that was there
constexpr RaceMark LANES_MARK = 1 << 7;   // several lanes of the warp
constexpr RaceMark WARPS = 1 << 8;        // several warps of the block
constexpr RaceMark BLOCKS = 1 << 9;       // several blocks; of readers only
constexpr RaceMark NARROW = 1 << 10;      // of less than the granule, perhaps by several
constexpr RaceMark SITES = 1 << (18 - SITE_SHIFT);
constexpr RaceMark SEVERAL = LANES_MARK | WARPS | BLOCKS;
constexpr RaceMark STRONG = ATOMIC | ORDERED;
constexpr RaceMark BYTES_MASK = 15;
constexpr RaceMark OWNER = SEGMENT_BITS << SEGMENT_SHIFT | RaceMark{1023} << THREAD_SHIFT;
constexpr RaceMark THREAD = RaceMark{1023} << THREAD_SHIFT;
constexpr RaceMark WARP = RaceMark{1023 & ~31} << THREAD_SHIFT;
constexpr RaceMark EPOCH = EPOCH_LIMIT << EPOCH_SHIFT;
constexpr RaceMark SYNC = SYNC_LIMIT << SYNC_SHIFT;
constexpr RaceMark SEGMENT = SEGMENT_BITS << SEGMENT_SHIFT;

inline u64 segment_of(RaceMark mark) { return mark >> SEGMENT_SHIFT; }
inline u64 second_of(RaceMark mark) { return mark >> SECOND_SHIFT & SEGMENT_BITS; }
inline u32 thread_of(RaceMark mark) { return mark >> THREAD_SHIFT & 1023; }
inline u32 epoch_of(RaceMark mark) { return mark >> EPOCH_SHIFT & EPOCH_LIMIT; }
inline u32 sync_of(RaceMark mark) { return mark >> SYNC_SHIFT & SYNC_LIMIT; }

inline RaceMark* writers(u64 at) { return reinterpret_cast<RaceMark*>(Device::WRITERS_BASE + ((at - DEVICE_BASE) >> 2 << 3)); }
inline RaceMark* readers(u64 at) { return reinterpret_cast<RaceMark*>(Device::READERS_BASE + ((at - DEVICE_BASE) >> 2 << 3)); }

// An access at hand.
struct Access {
  Warp* warp;
  Races* races;
  u32 site;
  u32 bytes;
  RaceMark flags;
  bool writes;
  const Allocation* common;
  const u8* value = nullptr;  // what one lane is about to store

  BlockRaces& block() const { return warp->block->races; }
  bool strong() const { return flags & STRONG; }
};

// The access where it is to be looked at; `common` knows of it then.
std::optional<Access> begin(Warp* warp, u32 site, u32 bytes, const Allocation* common, RaceMark flags,
                            bool writes);
// The mark of lane 0 without its bytes; 0 where there are no segments left.
RaceMark own(const Access& access);
// Is what `segment` did ordered before what this block does now?
bool handed_over(const Access& access, const Segment& segment);
// The readers' mark after one more read.
RaceMark joined(const Access& access, RaceMark old, RaceMark mine);

// The exact check: one lane of an access. `mine` is of lane 0.
void read_lane(const Access& access, RaceMark mine, u32 lane, u64 at);
void check_write(const Access& access, u32 lane, u64 at);
// To call when the value is there: who sees the mark sees the value, too.
void mark_write(const Access& access, RaceMark mine, u32 lane, u64 at);
// All lanes, within one allocation (race_lanes.cpp).
void read_lanes(const Access& access, RaceMark mine, const Lanes& lanes);
void write_lanes(Access& access, RaceMark mine, const Lanes& lanes, const LaneStores& stores);
void update_lanes(const Access& access, RaceMark mine, const Lanes& lanes);
// One lane's write.
void write_lane(Access& access, RaceMark mine, const Lanes& lanes, int index, const LaneStores& stores);

}  // namespace kw::race_marks
