// One piece of device memory.
#pragma once

#include <atomic>
#include <string>

#include "abi.h"

namespace kw {

struct Allocation {
  u64 address;
  u64 bytes;
  std::string name;
  bool live;
  bool initialised;      // every byte, from the start; else the shadow knows
  bool in_heap = false;  // made by a kernel: another thread may free it at any time
  bool of_host = false;  // the host may change it while kernels run: managed, pinned, registered
  u32 origin = 0;        // in the heap: Heap::origins
  // Of its first bytes so many are written, as far as was looked, which is between launches.
  mutable u64 written_upto = 0;
  bool written() const { return initialised || written_upto >= bytes; }  // every byte
  // Does it have marks of races? They are made at the first access.
  enum Tracking : u8 { UNKNOWN, TRACKED, UNTRACKED };
  mutable u8 tracking = UNKNOWN;
  u8 tracked() const { return std::atomic_ref(tracking).load(std::memory_order_acquire); }
  // Segments that began the last launches that loaded from it, or stored to it, as far as races are looked for.
  mutable u32 loaded_by = 0, stored_by = 0;
  u64 end() const { return address + bytes; }
  bool holds(u64 at, u64 size) const { return at >= address && at - address <= bytes && size <= bytes - (at - address); }
};

}  // namespace kw
