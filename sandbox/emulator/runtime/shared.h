// Shared memory of one block, with what is known of every byte: written or not, and who touched it last since when.
#pragma once

#include <vector>

#include "abi.h"
#include "marks.h"
#include "reads.h"

namespace kw {

struct SharedMemory {
  static constexpr u32 SLACK = 64;  // bytes past the end that a vector load of the last ones may read
  std::vector<u8> bytes;
  std::vector<Mark> readers, writers;  // one a granule
  ReadNotes notes;                     // of reads that `readers` does not know yet
  u32 size = 0;
  u32 reserved = 0;  // of these, bytes of the system's at the start: zeros at first
  u32 granule_shift = 2;
  u32 epoch = 1;        // grows over all blocks of a worker, so that marks need no clearing
  u32 first_epoch = 1;  // of this block
  u32 last_write = 0;   // epoch
  u32 unwritten = 0;    // granules that this block has not written yet
  // Where usefulness of barriers is wanted: the epochs whose ends, barriers, ordered something. Of several that would
  // have done, the last one.
  u32 last_useful = 0;
  std::vector<u32> useful;

  // Every access covers whole granules, so a granule was written in this block or it was not.
  bool written(Mark writer) const { return static_cast<u32>(writer >> MARK_EPOCH_SHIFT) >= first_epoch; }

  void prepare(u32 total, u32 of_system, bool by_byte);
  void start_block();
  // How a writer's mark is changed, here and in access.cpp (write_half).
  void write(u32 granule, Mark mine) {
    unwritten -= !written(writers[granule]);
    last_write = epoch;
    writers[granule] = mine;
  }
  void settle() {
    if (!notes.empty()) notes.settle(*this);
  }
  // Cooperative groups let warps of a block wait for each other by words in the system's part. Whoever arrives there is
  // taken to order what the whole block did before from what it does later, as at a named barrier.
  void arrive(u64 at, bool releases) {
    if (releases && at < reserved) ++epoch;
  }
  // Notes that accesses in epoch `before` (of this block) and now conflict: some barrier between them is needed.
  void ordered(u32 before) {
    if (before >= first_epoch && before < epoch && last_useful < before) {
      last_useful = epoch - 1;
      useful.push_back(last_useful);
    }
  }
};

}  // namespace kw
