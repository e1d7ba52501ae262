// Races in global memory, between blocks, between warps and inside a warp.
//
// Every 4-byte granule of device memory has a mark of its last write and one of its reads. Two accesses conflict when
// they overlap, one is a plain write, and nothing orders them. What orders them is known in terms of segments: the
// accesses of one block between two of its fences. A barrier or a warp-level synchronisation orders inside a block or
// warp; an access is ordered before one of another block when its segment was released (a fence or release came after
// it) before that other block last acquired (did an atomic, volatile or ordered access). That is what every correct
// hand-over does, so a correct program gives no alarm; it is coarser than happens-before, so some races are not seen
// (docs/checks.md).
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "abi.h"

namespace kw {

struct Allocation;
struct Lanes;
struct Site;

// segment 24 | thread 10 | epoch 6 | sync 6 | site 7 | flags 7 | bytes 4. Where several blocks read: segment 24 |
// segment of another block 24 | - | flags | bytes. A mark below the launch's first segment is of the past.
using RaceMark = u64;
constexpr int RACE_SEGMENT_SHIFT = 40;

struct Segment {
  u64 block;
  std::atomic<u64> released;           // when, for the whole device; 0: not yet
  std::atomic<u64> released_in_block;  // for the block's own threads
  u32 first_epoch;                     // barriers of the block before it
};

// The marks and segments of one process. Marks of launches that are over stay; segments are numbered on.
class RaceMemory {
 public:
  RaceMemory();  // reserves addresses; throws std::runtime_error
  u64 begin_launch();
  u32 new_segment(u64 block, u32 epoch);  // 0: no more of them, and nothing is tracked
  Segment& segment(u64 number) { return segments_[number]; }
  // Makes marks for an allocation. False where there is no room: then its races are not seen.
  bool track(const Allocation& allocation);
  void forget(const Allocation& allocation);
  // What was not watched since this was last asked, in words; each allocation is told once.
  std::vector<std::string> take_unwatched();

 private:
  bool open_segments(u64 upto);

  struct Tracked {
    u64 address, bytes;
  };
  std::mutex mutex_;
  std::vector<Tracked> tracked_;
  std::vector<std::string> unwatched_;
  std::atomic<bool> segments_ended_{false};
  u64 bytes_ = 0;
  std::atomic<u64> next_{1}, opened_{0};
  Segment* segments_ = nullptr;
};

// Of one launch.
struct Races {
  RaceMemory* memory;
  RaceMark first;               // marks below are of earlier launches
  std::atomic<u64> clock{1};    // releases so far, + 1
};

// Of one block, as long as it runs.
struct BlockRaces {
  u32 segment = 0;      // of the accesses since the last release; 0: there were none
  u32 last = 0;         // the last one
  u32 first_epoch = 0;  // of both
  bool plain = false;   // plain accesses since the last release
  u64 acquired = 0;
  std::vector<u32> open;  // segments that were not released to the device yet;
  size_t in_block = 0;    // of these were to the block
};

// What the lanes of an access are about to store.
struct LaneStores {
  const u8 (*pieces)[16];  // of each lane that takes part
  u32 silent;              // bit i: the i-th changes nothing
  void (*put)(const Lanes& lanes, const LaneStores& stores, int first, int past);
};

// One warp-wide access, before it is done. Common: the allocation of all lanes, or null.
void race_read(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common);
// True: it was stored, too.
bool race_write(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common, const LaneStores& stores);
// Each half of the warp writes places in a row, not the other half's; `put` stores them. Bit i of `silent`: lane i
// changes nothing. False, and nothing done, where race_write has to look.
bool race_write_rows(Warp* warp, u32 site, u32 bytes, const u64 (&at)[2], u32 silent, const Allocation* allocation,
                     const std::function<void()>& put);
void race_atomic(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common);
// To call after a strong access: atomic, volatile, ordered.
void race_acquire(Warp* warp);
// To call before a hand-over: a fence, or an access with release semantics. `device`: to other blocks, too.
void race_release(Warp* warp, bool device);

}  // namespace kw
