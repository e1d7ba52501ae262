#include "heap.h"

#include <cstring>
#include <mutex>

#include "device.h"
#include "module.h"

namespace kw {
namespace {

constexpr u64 ALIGN = 16, GAP = 16;    // between two allocations lies memory that is nobody's
constexpr u64 STEP = 1 << 20;          // by which the range is opened
constexpr u64 MOST_RESTING = 4 << 20;  // freed memory is given out again when there is more, so that late uses are seen
constexpr u8 POISON = 0xCB;

u64 room_of(u64 bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP; }

}  // namespace

u64 Heap::allocate(u64 bytes, const Module& module, const std::string& kernel, u32 line) {
  std::unique_lock lock(mutex_);
  if (bytes > limit_ || used_ + room_of(bytes) > limit_) return 0;
  u64 at = place(room_of(bytes));
  if (!at) return 0;
  used_ += room_of(bytes);
  std::memset(Device::pointer(at), POISON, bytes);
  std::memset(Device::shadow(at), 0, bytes);
  std::unique_ptr<Allocation>& slot = allocations_[at];
  if (slot) former_.push_back(std::move(slot));
  slot = std::make_unique<Allocation>(Allocation{at, bytes, "malloc in a kernel", true, false, true});
  Origin origin{kernel, module.file_of(line), line_of(line)};
  slot->origin = origins_.emplace(std::move(origin), static_cast<u32>(origins_.size())).first->second;
  return at;
}

// Memory that was freed long ago, or that nobody had.
u64 Heap::place(u64 room) {
  auto known = freed_.find(room);
  if (known != freed_.end() && !known->second.empty() && resting_ > MOST_RESTING) {
    u64 at = known->second.front();
    known->second.pop_front();
    resting_ -= room;
    return at;
  }
  if (next_ + room > HEAP_BASE + HEAP_BYTES) return 0;
  if (next_ + room > opened_) {
    u64 end = std::min((next_ + room + STEP - 1) / STEP * STEP, HEAP_BASE + HEAP_BYTES);
    if (!open_(opened_, end)) return 0;
    opened_ = end;
  }
  u64 at = next_;
  next_ += room;
  return at;
}

Heap::Release Heap::release(u64 address) {
  std::unique_lock lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end()) return Release::unknown;
  Allocation& allocation = *found->second;
  if (!allocation.live) return Release::twice;
  allocation.live = false;
  u64 room = room_of(allocation.bytes);
  used_ -= room;
  resting_ += room;
  freed_[room].push_back(address);
  return Release::done;
}

void Heap::clear() {
  std::unique_lock lock(mutex_);
  allocations_.clear();
  former_.clear();
  origins_.clear();
  freed_.clear();
  used_ = resting_ = 0;
  next_ = HEAP_BASE;
  opened_ = HEAP_BASE;
}

const Allocation* Heap::find(u64 at, u64 size) const {
  std::shared_lock lock(mutex_);
  auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& candidate = *std::prev(after)->second;
  return candidate.live && candidate.holds(at, size) ? &candidate : nullptr;
}

std::vector<const Allocation*> Heap::around(u64 at) const {
  std::shared_lock lock(mutex_);
  std::vector<const Allocation*> found;
  auto after = allocations_.upper_bound(at);
  if (after != allocations_.begin()) found.push_back(std::prev(after)->second.get());
  if (after != allocations_.end()) found.push_back(after->second.get());
  return found;
}

std::vector<const Allocation*> Heap::live() const {
  std::shared_lock lock(mutex_);
  std::vector<const Allocation*> found;
  for (const auto& [address, allocation] : allocations_)
    if (allocation->live) found.push_back(allocation.get());
  return found;
}

std::vector<Heap::Left> Heap::left() const {
  std::shared_lock lock(mutex_);
  std::vector<Left> all(origins_.size());
  for (const auto& [origin, number] : origins_) all[number] = {origin.kernel, origin.file, origin.line, 0, 0, 0};
  for (const auto& [address, allocation] : allocations_) {
    if (!allocation->live) continue;
    Left& left = all[allocation->origin];
    if (!left.count++) left.address = address;
    left.bytes += allocation->bytes;
  }
  std::erase_if(all, [](const Left& left) { return !left.count; });
  return all;
}

}  // namespace kw
