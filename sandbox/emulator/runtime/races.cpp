#include "race_windows.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace kw {
using namespace race_marks;

namespace {

constexpr u64 SEGMENTS = u64{1} << 24;
constexpr u64 SEGMENT_CHUNK = 1 << 15;
constexpr u64 MOST_TRACKED = u64{512} << 20;  // bytes of device memory with marks, which take four times that
constexpr size_t MOST_ALLOCATIONS = 6000;      // each takes four mappings, which the kernel limits

void reserve(u64 base, u64 bytes) {
  void* got = mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != reinterpret_cast<void*>(base)) throw std::runtime_error("cannot reserve addresses for the marks of races");
}

// A window of granules (race_windows.h) may reach past the end of what it belongs to.
struct Pages {
  explicit Pages(u64 base, u64 address, u64 bytes) {
    from = (base + ((address - DEVICE_BASE) >> 2 << 3)) & ~u64{4095};
    size = ((base + (((address + bytes + 4 * WINDOW_WORDS - DEVICE_BASE) >> 2) << 3) + 4095) & ~u64{4095}) - from;
  }
  u64 from, size;
  bool open() const {
    void* at = reinterpret_cast<void*>(from);
    if (mprotect(at, size, PROT_READ | PROT_WRITE) != 0) return false;
    madvise(at, size, MADV_HUGEPAGE);  // a launch walks through all of them
    return true;
  }
  void drop(int protection) const {
    mmap(reinterpret_cast<void*>(from), size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
};

}  // namespace

RaceMemory::RaceMemory() {
  reserve(Device::WRITERS_BASE, 2 * RANGE_BYTES);
  reserve(Device::READERS_BASE, 2 * RANGE_BYTES);
  reserve(Device::SEGMENTS_BASE, SEGMENTS * sizeof(Segment));
  segments_ = reinterpret_cast<Segment*>(Device::SEGMENTS_BASE);
}

u64 RaceMemory::begin_launch() {
  std::lock_guard lock(mutex_);
  if (next_ > SEGMENTS / 4 * 3) {
    for (const Tracked& tracked : tracked_)
      for (u64 base : {Device::WRITERS_BASE, Device::READERS_BASE})
        Pages(base, tracked.address, tracked.bytes).drop(PROT_READ | PROT_WRITE);
    next_ = 1;
  }
  return next_;
}

bool RaceMemory::open_segments(u64 upto) {
  std::lock_guard lock(mutex_);
  while (opened_ <= upto) {
    if (mprotect(segments_ + opened_, SEGMENT_CHUNK * sizeof(Segment), PROT_READ | PROT_WRITE) != 0) return false;
    opened_ += SEGMENT_CHUNK;
  }
  return true;
}

u32 RaceMemory::new_segment(u64 block, u32 epoch) {
  u64 number = next_.load(std::memory_order_relaxed) < SEGMENTS ? next_.fetch_add(1) : SEGMENTS;
  if (number >= SEGMENTS || (number >= opened_.load(std::memory_order_acquire) && !open_segments(number))) {
    segments_ended_.store(true, std::memory_order_relaxed);
    return 0;
  }
  Segment& made = segments_[number];
  made.block = block;
  made.first_epoch = epoch;
  made.released.store(0, std::memory_order_relaxed);
  made.released_in_block.store(0, std::memory_order_relaxed);
  return static_cast<u32>(number);
}

bool RaceMemory::track(const Allocation& allocation) {
  std::lock_guard lock(mutex_);
  if (allocation.tracked() != Allocation::UNKNOWN) return allocation.tracked() == Allocation::TRACKED;
  bool room = tracked_.size() < MOST_ALLOCATIONS && allocation.bytes <= MOST_TRACKED - std::min(bytes_, MOST_TRACKED) &&
              Pages(Device::WRITERS_BASE, allocation.address, allocation.bytes).open() &&
              Pages(Device::READERS_BASE, allocation.address, allocation.bytes).open();
  if (room) {
    bytes_ += allocation.bytes;
    tracked_.push_back({allocation.address, allocation.bytes});
  } else {
    unwatched_.push_back(allocation.name + " (" + with_commas(allocation.bytes) + " bytes)");
  }
  std::atomic_ref(allocation.tracking).store(room ? Allocation::TRACKED : Allocation::UNTRACKED, std::memory_order_release);
  return room;
}

void RaceMemory::forget(const Allocation& allocation) {
  std::lock_guard lock(mutex_);
  auto found = std::find_if(tracked_.begin(), tracked_.end(),
                            [&](const Tracked& tracked) { return tracked.address == allocation.address; });
  if (found == tracked_.end()) return;
  for (u64 base : {Device::WRITERS_BASE, Device::READERS_BASE})
    Pages(base, found->address, found->bytes).drop(PROT_NONE);
  bytes_ -= found->bytes;
  tracked_.erase(found);
}

std::vector<std::string> RaceMemory::take_unwatched() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names = std::exchange(unwatched_, {}), told;
  if (!names.empty())
    told.push_back("races in " + names[0] + (names.size() > 1 ? " and in " + with_commas(names.size() - 1) + " more" : "") +
                   " are not looked for: at most " + with_commas(MOST_TRACKED >> 20) + " MiB of device memory in " +
                   with_commas(MOST_ALLOCATIONS) + " allocations are watched at a time; run a smaller problem to see them");
  if (segments_ended_.exchange(false))
    told.push_back("races in global memory were not looked for in a part of a launch: it has too many blocks and fences; "
                   "run a smaller problem to see them");
  return told;
}

namespace {

// Memory that kernels allocate passes from one thread to another by the heap's own order, which is not looked at.
bool tracked(const Access& access, const Allocation* allocation) {
  if (!allocation || allocation->in_heap) return false;
  u8 state = allocation->tracked();
  if (state == Allocation::UNTRACKED || (state == Allocation::UNKNOWN && !access.races->memory->track(*allocation))) return false;
  std::atomic_ref latest(access.writes ? allocation->stored_by : allocation->loaded_by);
  u32 launch = static_cast<u32>(segment_of(access.races->first));
  if (latest.load(std::memory_order_relaxed) < launch) latest.store(launch);
  return true;
}

}  // namespace

namespace race_marks {

RaceMark own(const Access& access) {
  Warp* warp = access.warp;
  BlockRaces& block = access.block();
  u32 epoch = warp->block->shared.epoch;
  u32 segment = block.segment || !access.strong() ? block.segment : block.last;
  if (!segment || epoch - block.first_epoch > EPOCH_LIMIT) {
    segment = block.segment = block.last = access.races->memory->new_segment(warp->block->linear, epoch);
    if (!segment) return 0;
    block.first_epoch = epoch;
    block.open.push_back(segment);
  }
  block.plain |= !access.strong();
  return RaceMark{segment} << SEGMENT_SHIFT | RaceMark{warp->thread(0)} << THREAD_SHIFT |
         RaceMark{epoch - block.first_epoch} << EPOCH_SHIFT | RaceMark{std::min<u32>(warp->synced, SYNC_LIMIT)} << SYNC_SHIFT |
         (access.site & (SITES - 1)) << SITE_SHIFT | access.flags;
}

bool handed_over(const Access& access, const Segment& segment) {
  u64 acquired = access.block().acquired;
  bool same = segment.block == access.warp->block->linear;
  u64 released = (same ? segment.released_in_block : segment.released).load(std::memory_order_acquire);
  return released && released <= acquired;
}

RaceMark joined(const Access& access, RaceMark old, RaceMark mine) {
  if (old < access.races->first) return mine;
  RaceMark weak = ~STRONG | (old & mine & STRONG);
  if (old & BLOCKS || segment_of(old) != segment_of(mine)) {
    auto block = [&](u64 number) { return access.races->memory->segment(number).block; };
    u64 here = access.warp->block->linear, other = segment_of(old);
    if (old & BLOCKS && block(other) == here) other = second_of(old);
    RaceMark both = old & mine & BYTES_MASK;
    if (block(other) == here || !both || handed_over(access, access.races->memory->segment(other))) return mine;
    return segment_of(mine) << SEGMENT_SHIFT | other << SECOND_SHIFT | (mine & weak & STRONG) | BLOCKS | both;
  }
  if (epoch_of(old) != epoch_of(mine)) return mine;
  RaceMark merged = ((mine | (old & BYTES_MASK)) & weak) | (old & (SEVERAL | NARROW));
  if (thread_of(old) / LANES != thread_of(mine) / LANES) return merged | WARPS;
  if (!(old & WARPS) && sync_of(old) != sync_of(mine)) return mine;
  return thread_of(old) != thread_of(mine) ? merged | LANES_MARK : merged;
}

std::optional<Access> begin(Warp* warp, u32 site, u32 bytes, const Allocation* common, RaceMark flags,
                            bool writes) {
  std::optional<Access> access;  // returned as it is: copies of it cost more than what it is made for
  Launch& launch = warp->worker->launch;
  if (!launch.races) return access;
  if (warp->module->sites[site].strong) flags |= ORDERED;
  access.emplace(Access{warp, launch.races, site, bytes, flags, writes, common});
  if (common && !tracked(*access, common)) access.reset();
  return access;
}

}  // namespace race_marks

namespace {

// Are all accesses that `mark` stands for, but those of lane `lane`, ordered before one of that lane now?
bool ordered(const Access& access, RaceMark mark, u32 lane) {
  Warp* warp = access.warp;
  u64 here = warp->block->linear;
  if (mark & BLOCKS) {
    for (u64 number : {segment_of(mark), second_of(mark)}) {
      const Segment& segment = access.races->memory->segment(number);
      if (segment.block != here && !handed_over(access, segment)) return false;
    }
    return true;
  }
  const Segment& segment = access.races->memory->segment(segment_of(mark));
  if (segment.block != here) return handed_over(access, segment);
  if (segment.first_epoch + epoch_of(mark) != warp->block->shared.epoch || handed_over(access, segment)) return true;
  if (mark & NARROW && mark & SEVERAL) return true;  // whose byte was it?
  if (mark & WARPS) return false;
  if (thread_of(mark) / LANES != warp->warpid) return false;
  if (!(mark & LANES_MARK) && thread_of(mark) % LANES == lane) return true;
  return sync_of(mark) == SYNC_LIMIT || sync_of(mark) < warp->synced;
}

// The line of the other access, if only one site of this kernel's can be meant.
u32 other_line(const Access& access, RaceMark mark, bool wrote) {
  if (mark & BLOCKS) return 0;
  const std::vector<Site>& sites = access.warp->module->sites;
  u32 hash = static_cast<u32>(mark >> SITE_SHIFT & (SITES - 1)), found = 0;
  for (size_t number = hash; number < sites.size(); number += SITES) {
    const Site& site = sites[number];
    bool fits = site.kind == SiteKind::access && (site.direction == 'l') != wrote && (site.space == 'g' || site.space == 'x');
    if (!fits) continue;
    if (found) return 0;
    found = site.line;
  }
  return found;
}

std::string actor(const Access& access, RaceMark mark) {
  const Segment& segment = access.races->memory->segment(segment_of(mark));
  const u32* grid = access.warp->nctaid;
  u64 x = segment.block % grid[0], y = segment.block / grid[0] % grid[1], z = segment.block / grid[0] / grid[1];
  std::string block = "block (" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  if (mark & BLOCKS) return "threads of several blocks, " + block + " among them,";
  if (mark & (LANES_MARK | WARPS)) return "several threads of " + block;
  return "thread " + thread_name(access.warp, thread_of(mark)) + " of " + block;
}

void tell(const Access& access, u32 lane, u64 at, RaceMark mark, bool wrote, bool note) {
  const Allocation* allocation = allocation_of(access.warp, access.common, at, access.bytes);
  Finding finding{.address = at, .space = "global", .note = note, .fatal = false, .bytes = access.bytes,
                  .other_line = other_line(access, mark, wrote), .allocation = allocation->name,
                  .allocation_bytes = allocation->bytes};
  u32 line = finding.other_line;
  object(access.warp, access.site, lane, "race", std::move(finding), [&] {
    return sized(direction(access.warp, access.site), access.bytes) + " at " + hexadecimal(at) + ", " +
           with_commas(at - allocation->address) + " bytes into " + allocation->name + ", which " + actor(access, mark) +
           (wrote ? " wrote" : " read") + (line ? " at line " + std::to_string(line) : "") +
           ", and nothing orders the two";
  });
}

// Compared once more: another thread of this machine may have stored the same value only just before its mark.
bool stores_what_is_there(const Access& access, u64 at) {
  if (access.flags & SILENT) return true;
  std::atomic_thread_fence(std::memory_order_acquire);
  return access.value && std::memcmp(access.value, Device::pointer(at), access.bytes) == 0;
}

// One lane against one mark. `wrote`: the mark is of a write.
void against(const Access& access, u32 lane, u64 at, RaceMark mark, RaceMark bytes, bool writes, bool wrote) {
  if (mark < access.races->first || !(mark & bytes & BYTES_MASK)) return;
  if (access.strong() && mark & STRONG) return;
  if (ordered(access, mark, lane)) return;
  bool same = writes ? stores_what_is_there(access, at) : mark & SILENT;  // no one can see the difference
  bool peek = writes ? access.flags & ATOMIC : mark & ATOMIC;       // a plain read of what atomics work on
  bool polled = !writes && access.strong();                         // a strong read of what was written plainly
  tell(access, lane, at, mark, wrote, same || (writes != wrote && peek) || polled);
}

RaceMark overwritten(const Access& access, RaceMark old, RaceMark mine) {
  if (old < access.races->first || segment_of(old) != segment_of(mine) || epoch_of(old) != epoch_of(mine)) {
    // A write that changed nothing does not hide one that did.
    bool hides = mine & SILENT && old >= access.races->first && !(old & SILENT);
    return hides ? old : mine;
  }
  if ((mine & BYTES_MASK) == BYTES_MASK) return mine & SILENT && !(old & SILENT) ? old : mine;
  RaceMark merged = (mine & ~SILENT) | (mine & old & SILENT) | (old & (SEVERAL | NARROW | BYTES_MASK));
  if (thread_of(old) / LANES != thread_of(mine) / LANES) return merged | WARPS;
  return thread_of(old) != thread_of(mine) ? merged | LANES_MARK : merged;
}

template <class Each>
void each_granule(u64 at, u32 bytes, Each&& each) {
  for (u64 granule = at & ~u64{3}; granule < at + bytes; granule += 4) {
    u64 low = std::max(at, granule) - granule, high = std::min(at + bytes, granule + 4) - granule;
    RaceMark mask = (1u << high) - (1u << low);
    each(granule, mask == BYTES_MASK ? mask : mask | NARROW);
  }
}

bool usable(const Access& access, u64 at) {
  return access.common || tracked(access, access.warp->worker->launch.device->find(at, access.bytes));
}

bool in_a_row(const Lanes& lanes, u32 bytes) {
  if (lanes.count != LANES || bytes < 4 || lanes.address[1] - lanes.address[0] != bytes) return false;
  u64 off = 0;
  for (u32 i = 0; i < LANES; ++i) off |= lanes.address[i] ^ (lanes.address[0] + u64{i} * bytes);
  return off == 0;
}

bool at_one_place(const Lanes& lanes) {
  u64 off = lanes.address[0] ^ lanes.address[1];
  for (int i = 2; !off && i < lanes.count; ++i) off = lanes.address[i] ^ lanes.address[0];
  return off == 0;
}

}  // namespace

namespace race_marks {

void read_lane(const Access& access, RaceMark mine, u32 lane, u64 at) {
  mine += RaceMark{lane} << THREAD_SHIFT;
  each_granule(at, access.bytes, [&](u64 granule, RaceMark bytes) {
    RaceMark &reader = *readers(granule), wrote = *writers(granule);
    if (wrote >= access.races->first && (wrote ^ mine) & (OWNER | LANES_MARK | WARPS)) against(access, lane, at, wrote, bytes, false, true);
    reader = joined(access, reader, mine | bytes);
  });
}

void check_write(const Access& access, u32 lane, u64 at) {
  each_granule(at, access.bytes, [&](u64 granule, RaceMark bytes) {
    RaceMark writer = *writers(granule), read = *readers(granule);
    if (writer >= access.races->first) against(access, lane, at, writer, bytes, true, true);
    if (read >= access.races->first) against(access, lane, at, read, bytes, true, false);
  });
}

void mark_write(const Access& access, RaceMark mine, u32 lane, u64 at) {
  mine += RaceMark{lane} << THREAD_SHIFT;
  each_granule(at, access.bytes, [&](u64 granule, RaceMark bytes) {
    RaceMark& writer = *writers(granule);
    writer = overwritten(access, writer, mine | bytes);
  });
}

void write_lane(Access& access, RaceMark mine, const Lanes& lanes, int index, const LaneStores& stores) {
  u64 at = lanes.address[index];
  u32 lane = lanes.lane[index];
  bool silent = std::memcmp(stores.pieces[index], Device::pointer(at), access.bytes) == 0;
  access.flags = silent ? access.flags | SILENT : access.flags & ~SILENT;
  access.value = stores.pieces[index];
  check_write(access, lane, at);
  stores.put(lanes, stores, index, index + 1);
  std::atomic_thread_fence(std::memory_order_release);
  mark_write(access, mine | (access.flags & SILENT), lane, at);
}

}  // namespace race_marks

void race_read(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common) {
  std::optional<Access> access = begin(warp, site, bytes, common, 0, false);
  if (!access || !lanes.count) return;
  RaceMark mine = own(*access);
  if (!mine) return;
  if (common && in_a_row(lanes, bytes) && race_read_row(*access, mine, lanes.address[0])) return;
  if (lanes.count > 1 && at_one_place(lanes)) {  // all read what one lane reads
    if (!usable(*access, lanes.address[0])) return;
    u32 lane = lanes.lane[0];  // one that did not write it itself
    if (thread_of(*writers(lanes.address[0])) == warp->thread(lane)) lane = lanes.lane[1];
    read_lane(*access, mine | LANES_MARK, lane, lanes.address[0]);
    return;
  }
  if (common) return read_lanes(*access, mine, lanes);
  for (int i = 0; i < lanes.count; ++i)
    if (usable(*access, lanes.address[i])) read_lane(*access, mine, lanes.lane[i], lanes.address[i]);
}

bool race_write(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common, const LaneStores& stores) {
  std::optional<Access> access = begin(warp, site, bytes, common, 0, true);
  if (!access || !lanes.count) return false;
  if (u8 scope = warp->module->sites[site].releases) race_release(warp, scope == Site::DEVICE);
  RaceMark mine = own(*access);
  if (!mine) return false;
  if (common) {
    write_lanes(*access, mine, lanes, stores);
    return true;
  }
  for (int i = 0; i < lanes.count; ++i)
    if (usable(*access, lanes.address[i]))
      write_lane(*access, mine, lanes, i, stores);
    else
      stores.put(lanes, stores, i, i + 1);
  return true;
}

void race_atomic(Warp* warp, u32 site, const Lanes& lanes, u32 bytes, const Allocation* common) {
  std::optional<Access> access = begin(warp, site, bytes, common, ATOMIC, true);
  if (!access || !lanes.count) return;
  if (u8 scope = warp->module->sites[site].releases) race_release(warp, scope == Site::DEVICE);
  RaceMark mine = own(*access);
  if (!mine) return;
  if (common) return update_lanes(*access, mine, lanes);
  for (int i = 0; i < lanes.count; ++i) {
    if (!usable(*access, lanes.address[i])) continue;
    check_write(*access, lanes.lane[i], lanes.address[i]);
    mark_write(*access, mine, lanes.lane[i], lanes.address[i]);
  }
}

void race_acquire(Warp* warp) {
  Races* races = warp->worker->launch.races;
  if (races) warp->block->races.acquired = races->clock.load(std::memory_order_acquire);
}

void race_release(Warp* warp, bool device) {
  Races* races = warp->worker->launch.races;
  BlockRaces& block = warp->block->races;
  if (!races || block.open.empty() || !(block.plain || device)) return;
  u64 now = races->clock.fetch_add(1) + 1;
  for (; block.in_block < block.open.size(); ++block.in_block)
    races->memory->segment(block.open[block.in_block]).released_in_block.store(now, std::memory_order_release);
  if (device) {
    for (u32 number : block.open) races->memory->segment(number).released.store(now, std::memory_order_release);
    block.open.clear();
    block.in_block = 0;
  }
  block.segment = 0;  // what comes next is not released
  block.plain = false;
}

}  // namespace kw

extern "C" void kw_fence(kw::Warp* warp, kw::u32 mask, kw::u32 device) {
  if (mask) kw::race_release(warp, device != 0);
}
