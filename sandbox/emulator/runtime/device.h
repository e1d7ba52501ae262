// Device memory: one reserved address range, the table of allocations in it, and what is known of every byte.
#pragma once

#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "abi.h"
#include "allocation.h"
#include "heap.h"
#include "races.h"
#include "texture.h"

namespace kw {

// Of a place outside all allocations: the one it is closest to (null: none is near), and where it lies from there.
struct Neighbour {
  const Allocation* allocation = nullptr;
  bool freed = false;  // the place lies inside of it, and it was freed
  std::string where;   // "12 bytes past the end of x (4,000 bytes)"
};

// The emulator's own limits; a device might have had the memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  Device();  // reserves the ranges; throws std::runtime_error
  // Places memory; `poison` fills it, where 0 says that its pages are new or were discarded. Returns an error message
  // or "". Throws OutOfMemory.
  std::string allocate(u64 address, u64 bytes, const std::string& name, bool initialised, u8 poison);
  std::string release(u64 address);
  std::string discard(u64 address);  // the same, and gives its pages back, in which nothing else may lie
  void clear();  // forgets everything
  // The host may change this allocation while kernels run.
  void share_with_host(u64 address);
  // Memory of the host, [from, from + bytes), that kernels may use at its own address: it is the one at `seen`.
  void lend(u64 from, u64 bytes, u64 seen) { lent_[from] = {bytes, seen}; }
  void take_back(u64 from) { lent_.erase(from); }
  // Where what the host has at this address is seen by kernels; the address itself where nothing is lent.
  u64 seen(u64 at) const;
  bool lends() const { return !lent_.empty(); }

  // The live allocation that holds [at, at + size), or null. Const during a launch.
  const Allocation* find(u64 at, u64 size) const;
  Neighbour neighbour(u64 at, u64 size) const;

  bool initialised(const Allocation& allocation, u64 at, u64 size) const;
  void mark(const Allocation& allocation, u64 at, u64 size);
  // Allocations of which every byte is written by now need no looking at the shadow in the next launch.
  void look_for_written() const;
  void copy_marks(const Allocation& to, u64 to_at, const Allocation& from, u64 from_at, u64 size);

  u64 checksum() const;  // of all that live allocations hold

  Heap heap;            // of kernels
  ImageTable images;  // texture and surface objects

  void clear_sectors();
  u64 count_sectors(bool stores) const;

  static u8* pointer(u64 at) { return reinterpret_cast<u8*>(at); }
  static u8* shadow(u64 at) { return reinterpret_cast<u8*>(at + SHADOW_OFFSET); }  // 1: written
  static u8* loaded(u64 at) { return reinterpret_cast<u8*>(LOADED_BASE + ((at - DEVICE_BASE) >> 5)); }
  static u8* stored(u64 at) { return reinterpret_cast<u8*>(STORED_BASE + ((at - DEVICE_BASE) >> 5)); }

  RaceMemory& races() { return races_; }

  // Each of these ranges has room for what belongs to all RANGE_BYTES.
  static constexpr u64 TERABYTE = u64{1} << 40;
  static constexpr u64 SHADOW_OFFSET = 2 * TERABYTE;
  static constexpr u64 LOADED_BASE = DEVICE_BASE + 4 * TERABYTE;
  static constexpr u64 STORED_BASE = DEVICE_BASE + 5 * TERABYTE;
  static constexpr u64 WRITERS_BASE = DEVICE_BASE + 6 * TERABYTE;
  static constexpr u64 READERS_BASE = DEVICE_BASE + 10 * TERABYTE;
  static constexpr u64 SEGMENTS_BASE = DEVICE_BASE + 14 * TERABYTE;
  static_assert(RANGE_BYTES <= SHADOW_OFFSET);

 private:
  struct Lent {
    u64 bytes, seen;
  };
  std::vector<Allocation> ranges() const;
  u64 gap_before(std::vector<Allocation>::const_iterator here, u64 address) const;
  u64 gap_after(std::vector<Allocation>::const_iterator here, u64 end) const;
  std::vector<Allocation>::iterator place(u64 address);  // of the first allocation that does not lie before

  RaceMemory races_;
  std::vector<Allocation> allocations_;  // by address
  std::map<u64, Lent> lent_;             // by the host's address
};

std::string with_commas(u64 number);
std::string hexadecimal(u64 number);

}  // namespace kw
