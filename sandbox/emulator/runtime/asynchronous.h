// Asynchronous copies and mbarriers of one block.
//
// A copy may be done at any time between its instruction and the wait for it. It is done as late as can be: at the wait
// of its thread, or when its mbarrier is asked whether a phase has completed. Until then its destination in shared
// memory holds poison and counts as never written, so a read that comes before the wait is found; its source is read
// at the end, so a change of the source before the wait shows in the data. Bounds, alignment, unwritten sources and
// what is counted belong to the instruction that issues the copy.
#pragma once

#include <vector>

#include "abi.h"

namespace kw {

enum class Reduction : u8 { none, add, min, max, bit_and, bit_or, bit_xor };
enum class Number : u8 { u32, s32, u64, s64, f32, f64, f16 };

// One copy instruction of a warp: what its lanes still have to copy.
struct PendingCopies {
  u64 sequence;
  u32 warp;
  u32 mask;   // lanes that have not completed
  u32 store;  // site of what is written
  char to;    // 's' or 'g'
  char from;
  bool bulk;
  bool by_barrier;  // completes on an mbarrier, else with its group
  Reduction reduction = Reduction::none;
  Number number = Number::u32;
  u32 group[LANES];    // of the lane that issued it
  u32 barrier[LANES];  // shared address
  u32 bytes[LANES];
  u32 read[LANES];  // bytes that are copied; zeros follow
  u64 source[LANES];
  u64 target[LANES];
};

// cp.async.mbarrier.arrive: arrives when the lane's earlier cp.async have completed.
struct PendingArrivals {
  u64 sequence;
  u32 warp;
  u32 mask;
  u32 site;
  u32 barrier[LANES];
};

// What lanes still have to do before it is seen.
struct Asynchronous {
  std::vector<PendingCopies> copies;
  std::vector<PendingArrivals> arrivals;
  std::vector<u32> groups[2];  // groups committed so far, by thread: of cp.async, of bulk copies
  u64 sequence = 0;

  bool idle() const { return copies.empty() && arrivals.empty(); }
  void start_block() {
    copies.clear();
    arrivals.clear();
    for (std::vector<u32>& threads : groups) threads.assign(threads.size(), 0);
  }
  u32& group(bool bulk, u32 thread) {
    std::vector<u32>& threads = groups[bulk];
    if (threads.empty()) threads.resize(1024);
    return threads[thread];
  }
  // The copy that is under way to this place in shared memory, or null.
  const PendingCopies* in_flight(u32 at, u32 bytes) const {
    for (const PendingCopies& copy : copies)
      for (u32 lane = 0; copy.to == 's' && lane < LANES; ++lane)
        if (copy.mask >> lane & 1 && at < copy.target[lane] + copy.bytes[lane] && copy.target[lane] < at + bytes) return &copy;
    return nullptr;
  }
};

// The state of an mbarrier is its 8 bytes in shared memory.
struct BarrierWord {
  u64 bits;
  static constexpr u32 MOST = (1 << 20) - 1;
  static BarrierWord of(u32 phase, u32 expected, u32 pending, i32 transactions) {
    return {u64{phase & 1} << 62 | u64{static_cast<u32>(transactions) & 0x3fffff} << 40 | u64{expected} << 20 | pending};
  }
  bool valid() const { return !(bits >> 63) && expected(); }
  u32 phase() const { return bits >> 62 & 1; }
  u32 pending() const { return bits & MOST; }
  u32 expected() const { return bits >> 20 & MOST; }
  i32 transactions() const { return static_cast<i32>(static_cast<u32>(bits >> 40) << 10) >> 10; }
};

// barrier.cluster of a cluster of one block.
struct ClusterBarrier {
  u32 arrived = 0;  // threads
  u32 phase = 0;
  u32 phase_of_warp[32] = {};  // at its last arrival
};

struct Warp;
// A warp leaves the kernel: its bulk copies to global memory are done.
void finish_copies(Warp* warp);

}  // namespace kw
