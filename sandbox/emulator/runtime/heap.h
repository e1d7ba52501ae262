// The heap of `malloc` in kernels: a range of device memory of its own, used by all threads at once.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "allocation.h"

namespace kw {

class Module;

constexpr u64 DEFAULT_HEAP_BYTES = 8 << 20;  // cudaLimitMallocHeapSize

class Heap {
 public:
  enum class Release { done, twice, unknown };

  // Opens [from, to) of the heap's range for use; false: no memory.
  explicit Heap(bool (*open)(u64 from, u64 to)) : open_(open) {}

  void limit(u64 bytes) { limit_ = bytes; }
  u64 limit() const { return limit_; }
  // For a thread of `kernel` at `line`, a place in `module`'s source. 0 when there is no room.
  u64 allocate(u64 bytes, const Module& module, const std::string& kernel, u32 line);
  Release release(u64 address);
  void clear();

  // The live allocation that holds [at, at + size), or null. It stays in place until `clear`, though it may be freed.
  const Allocation* find(u64 at, u64 size) const;
  // The allocations on both sides of an address, freed ones too.
  std::vector<const Allocation*> around(u64 at) const;
  std::vector<const Allocation*> live() const;
  // What was allocated at one place and is live.
  struct Left {
    std::string kernel, file;
    u32 line;
    u64 address, bytes, count;  // address: of the first
  };
  std::vector<Left> left() const;
  u64 end() const { return opened_; }  // nothing beyond was ever in use

  static bool holds(u64 at) { return at - HEAP_BASE < HEAP_BYTES; }

 private:
  struct Origin {
    std::string kernel, file;
    u32 line;
    auto operator<=>(const Origin&) const = default;
  };
  u64 place(u64 room);

  bool (*open_)(u64, u64);
  mutable std::shared_mutex mutex_;
  std::map<u64, std::unique_ptr<Allocation>> allocations_;  // the last at each address
  std::vector<std::unique_ptr<Allocation>> former_;         // somebody may still look at them
  std::map<Origin, u32> origins_;                           // numbered
  std::map<u64, std::deque<u64>> freed_;                    // addresses by room, the oldest first
  u64 limit_ = DEFAULT_HEAP_BYTES, used_ = 0, resting_ = 0, next_ = HEAP_BASE;
  std::atomic<u64> opened_{HEAP_BASE};
};

}  // namespace kw
