// Forward progress: who only waits, and whether what is waited for can still come.
//
// A warp is looked at after some back edges: after FIRST_FUEL, then twice as many each time, up to FULL_FUEL, as long
// as it is in a state (registers, stack, local memory, lanes) in which it was not seen before. A state seen before
// means that it went around without effect on itself: it waits, and others get their turns, at once.
#pragma once

#include <atomic>
#include <mutex>

#include "abi.h"

namespace kw {

struct Launch;
struct Worker;

// Decides that a launch is deadlocked: every warp left waits, came back to a state of its own, and device and shared
// memory hold the same bytes before and after. It looks three times, each time with other turns for the warps.
class DeadlockWatch {
 public:
  // A worker's part in it.
  struct Confirmation {
    u64 epoch = 0;
    u64 shared = 0;  // checksum of its blocks' shared memory
    bool given = false;
  };

  void join(int workers) { active_ = workers; }
  void leave() { --active_; }
  void progressed() { progress_.fetch_add(1, std::memory_order_relaxed); }
  u64 epoch() const { return epoch_.load(std::memory_order_relaxed); }

  // A worker had turns of waiting only, and can start nothing. True: nothing will ever change.
  bool all_wait(Worker& worker);
  bool found() const { return found_.load(); }

 private:
  void arm(const Launch& launch);

  std::atomic<int> active_{0};
  std::atomic<u64> progress_{0}, epoch_{0};
  std::mutex mutex_;
  bool armed_ = false;
  std::atomic<bool> found_{false};
  u64 progress_then_ = 0, memory_then_ = 0;
  int confirmations_ = 0, times_ = 0;
  double not_before_ = 0;
};

u64 hash_bytes(const void* bytes, size_t size, u64 seed);

}  // namespace kw
