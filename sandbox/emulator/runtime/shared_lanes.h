// Marks of accesses to shared memory for lanes at any places, eight at a time. What they leave is for the exact checks:
// where there may be something to tell, and where two lanes write to one place.
#pragma once

#include "access.h"

namespace kw {

// Looks at and marks reads. Bit i of the result: not the i-th lane's.
u32 mark_reads(Warp* warp, const Lanes& lanes, u32 bytes, bool strong);
// The readers' marks of the words at `place` + offset of each lane of a warp, by the note of a read.
void mark_noted(SharedMemory& shared, const u32* place, i32 offset, u32 bytes, Mark lane_zero);

// Looks at and marks writes, eight lanes at a time, since what a lane stores is to be seen by the next.
class SharedStores {
 public:
  SharedStores(Warp* warp, const Lanes& lanes, u32 bytes, bool strong);
  // To ask in order, when the lanes before have stored. False: the exact check has to look at the i-th lane.
  bool marked(int i) {
    if (i % EIGHT == 0) marked_ = plain_ ? mark(i) : 0;
    return marked_ >> (i % EIGHT) & 1;
  }

 private:
  u32 mark(int start);

  Warp* warp_;
  const Lanes& lanes_;
  u32 bytes_;
  bool strong_, plain_;
  u32 marked_ = 0;
};

}  // namespace kw
