#include "reads.h"

#include <algorithm>

#include "shared.h"
#include "shared_lanes.h"

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

bool ReadNotes::useless(const SharedMemory& shared, bool count) const {
  u32 epoch = notes_.back().epoch;
  return epoch < shared.epoch && (!count || epoch <= shared.last_useful);
}

NotedReads& ReadNotes::add(SharedMemory& shared, bool count) {
  before_read(shared, count, 0);
  if (notes_.size() >= MOST) settle(shared);
  return notes_.emplace_back();
}

void ReadNotes::before_read(SharedMemory& shared, bool count, u32 synced) {
  if (notes_.empty()) return;
  if (useless(shared, count)) return clear();
  if (notes_.back().epoch != shared.epoch || synced) settle(shared);
}

void ReadNotes::before_any_write(SharedMemory& shared, u32 first, u32 last, bool count) {
  if (notes_.empty()) return;
  if (useless(shared, count)) return clear();
  for (const NotedReads& note : notes_)
    if (note.first < last && note.last > first) return settle(shared);
}

void ReadNotes::settle(SharedMemory& shared) {
  for (const NotedReads& note : notes_)
    for (u32 k = 0; k < note.count; ++k) mark_noted(shared, note.place, note.items[k].offset, note.size, note.mark);
  notes_.clear();
}

void ReadNotes::before_write(SharedMemory& shared, u32 warpid, const u32* places, i64 offset, u32 size, bool count) {
  if (notes_.empty()) return;
  u32 epoch = notes_.back().epoch;
  if (useless(shared, count)) return clear();
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
