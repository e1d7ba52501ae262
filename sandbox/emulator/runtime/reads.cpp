#include "reads.h"

#include <algorithm>

#include "shared.h"

namespace kw {
namespace {

// Does another thread than the one that writes a word read it? The lanes of warp `warpid` write places in a row.
bool conflicts(const NotedReads& note, u32 warpid, u32 first, u32 size) {
  for (u32 k = 0; k < note.count; ++k)
    for (u32 lane = 0; lane < LANES; ++lane) {
      u32 at = note.place[lane] + static_cast<u32>(note.items[k].offset), last = at + note.size - 1;
      if (last < first || at >= first + LANES * size) continue;
      if (note.warpid != warpid || at < first || (at - first) / size != lane || (last - first) / size != lane) return true;
    }
  return false;
}

}  // namespace

NotedReads& ReadNotes::add(SharedMemory& shared, bool count) {
  if (!notes_.empty() && notes_.back().epoch != shared.epoch) {
    if (!count || notes_.back().epoch <= shared.last_useful)
      notes_.clear();
    else
      settle(shared);
  }
  if (notes_.size() >= MOST) settle(shared);
  return notes_.emplace_back();
}

void ReadNotes::settle(SharedMemory& shared) {
  for (const NotedReads& note : notes_)
    for (u32 k = 0; k < note.count; ++k)
      for (u32 lane = 0; lane < LANES; ++lane) {
        u32 at = note.place[lane] + static_cast<u32>(note.items[k].offset);
        for (u32 granule = at >> 2; granule <= (at + note.size - 1) >> 2; ++granule)
          shared.readers[granule] = with_reader(shared.readers[granule], note.mark + lane);
      }
  notes_.clear();
}

void ReadNotes::before_write(SharedMemory& shared, u32 warpid, const u32* places, i64 offset, u32 size, bool count) {
  if (notes_.empty()) return;
  u32 epoch = notes_.back().epoch;
  if (epoch < shared.epoch && (!count || epoch <= shared.last_useful)) return clear();
  u32 first = ~u32{0}, last = 0;
  for (int lane = 0; lane < LANES; ++lane) {
    u32 at = places[lane] + static_cast<u32>(offset);
    first = std::min(first, at);
    last = std::max(last, at + size);
  }
  bool answer = false, near = false, unsure = last - first != LANES * size || epoch == shared.epoch;
  for (const NotedReads& note : notes_) {
    if (note.first >= last || note.last <= first) continue;
    near = true;
    // A __syncwarp may have ordered what this warp read: for the marks to say.
    unsure = unsure || (note.warpid == warpid && mark_sync(note.mark) != 0);
    if (unsure) break;
    answer = answer || conflicts(note, warpid, first, size);
  }
  if (!near) return;
  if (unsure || !answer) return settle(shared);
  shared.ordered(epoch);
  clear();
}

}  // namespace kw
