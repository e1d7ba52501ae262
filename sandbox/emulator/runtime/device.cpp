#include "device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "progress.h"

namespace kw {
namespace {

constexpr u64 PAGE = 4096;
constexpr u64 SLACK = 64;  // bytes past an allocation's end that a vector load of its last ones may read
constexpr u64 SPARSE = u64{1} << 30;  // larger memory may be touched here and there alone
constexpr u64 LARGE_MARKS = 1 << 20;
constexpr size_t MANY = 8192;  // allocations beyond which those close together share a mapping: the kernel limits mappings
constexpr u64 FAR = 1 << 20;  // beyond this distance, or its own size, an allocation is not worth naming

void reserve(u64 base, u64 bytes) {
  void* got = mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != reinterpret_cast<void*>(base))
    throw std::runtime_error("cannot reserve device addresses at " + hexadecimal(base) + ": " + std::strerror(errno));
}

bool open(u64 from, u64 to) {
  from &= ~(PAGE - 1);
  to = (to + PAGE - 1) & ~(PAGE - 1);
  void* at = reinterpret_cast<void*>(from);
  if (mprotect(at, to - from, PROT_READ | PROT_WRITE) != 0) return false;
  // A huge page would be used up by one byte.
  if (to - from >= SPARSE) madvise(at, to - from, MADV_NOHUGEPAGE);
  return true;
}

void forget(u64 from, u64 to) {
  from &= ~(PAGE - 1);
  to = (to + PAGE - 1) & ~(PAGE - 1);
  // A new mapping also gives the pages back and takes them off RLIMIT_DATA. Where the process has as many mappings as
  // it may have, the pages at least are given back, and are zero when they are used again.
  void* at = reinterpret_cast<void*>(from);
  if (mmap(at, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED) return;
  madvise(at, to - from, MADV_DONTNEED);
  mprotect(at, to - from, PROT_NONE);
}

// Large ranges are given back where they are whole pages, so that what nobody touches takes no memory.
void zero(u64 from, u64 to) {
  u64 first = (from + PAGE - 1) & ~(PAGE - 1), last = to & ~(PAGE - 1);
  if (to - from < LARGE_MARKS || madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) first = last = to;
  std::memset(reinterpret_cast<void*>(from), 0, first - from);
  std::memset(reinterpret_cast<void*>(last), 0, to - last);
}

u64 sector_place(u64 base, u64 at) { return base + ((at - DEVICE_BASE) >> 5); }

}  // namespace

std::string with_commas(u64 number) {
  std::string text = std::to_string(number);
  for (int place = static_cast<int>(text.size()) - 3; place > 0; place -= 3) text.insert(place, ",");
  return text;
}

std::string hexadecimal(u64 number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

static bool open_heap(u64 from, u64 to) {
  return open(from, to) && open(from + Device::SHADOW_OFFSET, to + Device::SHADOW_OFFSET) &&
         open(sector_place(Device::LOADED_BASE, from), sector_place(Device::LOADED_BASE, to) + 1) &&
         open(sector_place(Device::STORED_BASE, from), sector_place(Device::STORED_BASE, to) + 1);
}

Device::Device() : heap(open_heap) {
  reserve(DEVICE_BASE, RANGE_BYTES);
  reserve(DEVICE_BASE + SHADOW_OFFSET, RANGE_BYTES);
  reserve(LOADED_BASE, RANGE_BYTES >> 5);
  reserve(STORED_BASE, RANGE_BYTES >> 5);
}

std::string Device::allocate(u64 address, u64 bytes, const std::string& name, bool initialised, u8 poison) {
  constexpr u64 MOST = HEAP_BASE - DEVICE_BASE;
  if (address < DEVICE_BASE || bytes > MOST || address - DEVICE_BASE > MOST - bytes)
    return "an allocation outside the device's addresses";
  auto overlaps = [&](const Allocation& other) {
    return other.address < address + std::max<u64>(bytes, 1) && address < other.address + std::max<u64>(other.bytes, 1);
  };
  // The table is in order and nothing in it overlaps, so what is in the way lies around the place of the new one.
  auto first = place(address), last = first;
  if (first != allocations_.begin() && overlaps(*std::prev(first))) --first;
  while (last != allocations_.end() && overlaps(*last)) ++last;
  for (auto other = first; other != last; ++other)
    if (other->live) return "an allocation over " + other->name;
  first = allocations_.erase(first, last);
  if (bytes) {
    u64 end = address + bytes + SLACK;
    bool many = allocations_.size() >= MANY && first != allocations_.begin() && std::prev(first)->live;
    u64 from = many ? gap_before(first, address) : address;  // the gap makes one mapping of the two
    bool opened = open(from, end) && open(sector_place(LOADED_BASE, address), sector_place(LOADED_BASE, end) + SLACK) &&
                  open(sector_place(STORED_BASE, address), sector_place(STORED_BASE, end) + SLACK);
    if (!initialised) opened = opened && open(from + SHADOW_OFFSET, end + SHADOW_OFFSET);
    int why = errno;
    if (!opened) throw OutOfMemory("no room here for " + with_commas(bytes) + " bytes (" + name + "): " + std::strerror(why));
    if (!initialised && poison) {
      std::memset(pointer(address), poison, bytes);
      std::memset(shadow(address), 0, bytes);
    }
  }
  Allocation made{.address = address, .bytes = bytes, .name = name, .live = true, .initialised = initialised};
  allocations_.insert(place(address), made);
  return "";
}

std::vector<Allocation>::iterator Device::place(u64 address) {
  return std::lower_bound(allocations_.begin(), allocations_.end(), address,
                          [](const Allocation& a, u64 value) { return a.address < value; });
}

// Where the pages begin that nothing lives on before `address`, as far as the allocation before this place: one that is
// dead may have left its pages open (see forget). `address` itself where that allocation lies far away.
u64 Device::gap_before(std::vector<Allocation>::const_iterator here, u64 address) const {
  if (here == allocations_.begin()) return address;
  const Allocation& before = *std::prev(here);
  u64 from = (before.end() + SLACK + PAGE - 1) & ~(PAGE - 1);
  if (from > address || address - from > 2 * GUARD_BYTES) return address;
  return before.live ? from : before.address;
}

// The same, after it.
u64 Device::gap_after(std::vector<Allocation>::const_iterator here, u64 end) const {
  if (std::next(here) == allocations_.end()) return end;
  const Allocation& after = *std::next(here);
  u64 to = after.address & ~(PAGE - 1);
  if (to < end || to - end > 2 * GUARD_BYTES) return end;
  return after.live ? to : after.end() + SLACK;
}

std::string Device::release(u64 address) {
  auto found = place(address);
  if (found == allocations_.end() || found->address != address || !found->live)
    return "a free of " + hexadecimal(address) + ", which is not an allocation";
  found->live = false;
  races_.forget(*found);
  return "";
}

std::string Device::discard(u64 address) {
  std::string problem = release(address);
  auto found = place(address);
  if (!problem.empty() || !found->bytes) return problem;
  bool many = allocations_.size() >= MANY;  // then its gaps may be open
  u64 end = found->end() + SLACK, from = many ? gap_before(found, address) : address, to = many ? gap_after(found, end) : end;
  forget(from, to);
  if (many || !found->initialised) forget(from + SHADOW_OFFSET, to + SHADOW_OFFSET);
  return "";
}

void Device::share_with_host(u64 address) {
  auto found = place(address);
  if (found != allocations_.end() && found->address == address) found->of_host = true;
}

u64 Device::seen(u64 at) const {
  auto after = lent_.upper_bound(at);
  if (after == lent_.begin()) return at;
  auto& [from, lent] = *std::prev(after);
  return at - from < lent.bytes ? lent.seen + (at - from) : at;
}

void Device::clear() {
  images.clear();
  lent_.clear();
  bool many = allocations_.size() >= MANY;  // then gaps may be open; with them all is one piece, growing from its start
  size_t number = 0;
  for (const Allocation& allocation : ranges()) {
    auto here = allocations_.cbegin() + static_cast<std::ptrdiff_t>(number++);  // the end for the heap, which comes last
    races_.forget(allocation);
    if (!allocation.bytes) continue;
    u64 end = allocation.end() + SLACK;
    u64 from = many && here != allocations_.cend() ? gap_before(here, allocation.address) : allocation.address;
    forget(from, end);
    if (many || !allocation.initialised) forget(from + SHADOW_OFFSET, end + SHADOW_OFFSET);
    for (u64 base : {LOADED_BASE, STORED_BASE})
      forget(sector_place(base, allocation.address), sector_place(base, end) + SLACK);
  }
  allocations_.clear();
  heap.clear();
}

// All memory that is or was in use: the allocations, and the heap as one.
std::vector<Allocation> Device::ranges() const {
  std::vector<Allocation> all = allocations_;
  if (heap.end() > HEAP_BASE) all.push_back({HEAP_BASE, heap.end() - HEAP_BASE, "heap", true, false});
  return all;
}

const Allocation* Device::find(u64 at, u64 size) const {
  if (Heap::holds(at)) return heap.find(at, size);
  auto after = std::upper_bound(allocations_.begin(), allocations_.end(), at,
                                [](u64 value, const Allocation& a) { return value < a.address; });
  if (after == allocations_.begin()) return nullptr;
  const Allocation& candidate = *std::prev(after);
  return candidate.live && candidate.holds(at, size) ? &candidate : nullptr;
}

Neighbour Device::neighbour(u64 at, u64 size) const {
  Neighbour found;
  u64 best = ~u64{0};
  auto consider = [&](const Allocation& allocation) {
    u64 distance = at + size <= allocation.address ? allocation.address - (at + size)
                   : at >= allocation.end()        ? at - allocation.end()
                                                   : 0;
    if (distance >= (found.allocation ? best : std::max(FAR, allocation.bytes))) return;
    best = distance;
    found.allocation = &allocation;
  };
  for (const Allocation& allocation : allocations_) consider(allocation);
  for (const Allocation* allocation : heap.around(at)) consider(*allocation);
  if (!found.allocation) {
    found.where = "which is far from every allocation";
    return found;
  }
  const Allocation& near = *found.allocation;
  std::string what = near.name + " (" + with_commas(near.bytes) + " bytes)";
  auto bytes = [](u64 n) { return with_commas(n) + (n == 1 ? " byte" : " bytes"); };
  found.freed = !near.live && at < near.end() && at + size > near.address;
  if (found.freed)
    found.where = "inside " + what + ", which was freed";
  else if (at >= near.end())
    found.where = best ? bytes(best) + " past the end of " + what : "right behind the end of " + what;
  else if (at + size <= near.address)
    found.where = best ? bytes(best) + " before the start of " + what : "right before the start of " + what;
  else
    found.where = "across the edge of " + what;
  return found;
}

bool Device::initialised(const Allocation& allocation, u64 at, u64 size) const {
  return allocation.written() || !size || !std::memchr(shadow(at), 0, size);
}

void Device::mark(const Allocation& allocation, u64 at, u64 size) {
  if (!allocation.written()) std::memset(shadow(at), 1, size);
}

void Device::copy_marks(const Allocation& to, u64 to_at, const Allocation& from, u64 from_at, u64 size) {
  if (to.initialised) return;
  if (from.written()) return mark(to, to_at, size);
  std::memmove(shadow(to_at), shadow(from_at), size);
  to.written_upto = std::min(to.written_upto, to_at - to.address);  // what was copied may not be written
}

void Device::look_for_written() const {
  for (const Allocation& allocation : allocations_) {
    if (!allocation.live || allocation.written()) continue;
    u64 from = allocation.written_upto;
    const u8* start = shadow(allocation.address);
    const void* bare = std::memchr(start + from, 0, allocation.bytes - from);
    allocation.written_upto = bare ? static_cast<u64>(static_cast<const u8*>(bare) - start) : allocation.bytes;
  }
}

u64 Device::checksum() const {
  u64 sum = 0;
  for (const Allocation& allocation : allocations_)
    if (allocation.live) sum = hash_bytes(pointer(allocation.address), allocation.bytes, sum);
  for (const Allocation* allocation : heap.live()) sum = hash_bytes(pointer(allocation->address), allocation->bytes, sum);
  return sum;
}

void Device::clear_sectors() {
  for (const Allocation& allocation : ranges())
    if (allocation.bytes)
      for (u64 base : {LOADED_BASE, STORED_BASE}) {
        u64 from = sector_place(base, allocation.address);
        zero(from, sector_place(base, allocation.end() - 1) + 1);
      }
}

u64 Device::count_sectors(bool stores) const {
  u64 total = 0;
  for (const Allocation& allocation : ranges()) {
    if (!allocation.bytes) continue;
    u64 base = stores ? STORED_BASE : LOADED_BASE;
    const u8* from = reinterpret_cast<u8*>(sector_place(base, allocation.address));
    const u8* to = reinterpret_cast<u8*>(sector_place(base, allocation.end() - 1) + 1);
    for (const u8* place = from; place < to; ++place) total += *place;
  }
  return total;
}

}  // namespace kw
