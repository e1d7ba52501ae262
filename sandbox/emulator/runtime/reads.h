// Reads of shared memory that are noted but not yet marked. Most reads are followed by a barrier before anybody
// writes, and then nobody looks at their marks: a batch (batch.h) leaves one note, and marks are made of the notes when
// an access comes that needs them.
#pragma once

#include <vector>

#include "marks.h"

namespace kw {

struct SharedMemory;

struct BatchItem {
  u32 site;
  i32 offset;
};

// Reads of a full warp: of `size` bytes at place + offset of each lane, for each of `count` offsets.
struct NotedReads {
  alignas(64) u32 place[LANES];
  const BatchItem* items;
  u32 count, size;
  u32 first, last;  // of all of them: the lowest byte, and past the highest
  u32 epoch, warpid;
  Mark mark;  // of lane 0
};

class ReadNotes {
 public:
  bool empty() const { return notes_.empty(); }
  void clear() { notes_.clear(); }
  // For a note of a read in the memory's present epoch.
  NotedReads& add(SharedMemory& shared, bool count);
  // A warp is about to mark reads, `synced` times synchronised since the last barrier: after notes of before.
  void before_read(SharedMemory& shared, bool count, u32 synced);
  // Something is about to write within [first, last).
  void before_any_write(SharedMemory& shared, u32 first, u32 last, bool count);
  // Makes marks of all notes.
  void settle(SharedMemory& shared);
  // A warp is about to write `size` bytes at each lane's place. Afterwards the marks hold what a check of the write
  // needs; what the write says about the usefulness of barriers (SharedMemory::ordered) is noted.
  void before_write(SharedMemory& shared, u32 warpid, const u32* places, i64 offset, u32 size, bool count);

 private:
  // Of the past, and nobody wants to know any more what barriers order them.
  bool useless(const SharedMemory& shared, bool count) const;

  static constexpr size_t MOST = 256;
  std::vector<NotedReads> notes_;  // all of one epoch
};

}  // namespace kw
