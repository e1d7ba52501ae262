// Batches of loads: kw_batch_{space}_{bytes}.

#include "batch.h"

#include "race_windows.h"

namespace kw {
namespace {

// Offsets of a batch: the furthest ones, and whether all keep elements aligned.
struct Reach {
  i64 least, most;
  bool aligned;
};

template <u32 Size>
Reach reach_of(const BatchItem* items, u32 count) {
  Reach reach{items[0].offset, items[0].offset, true};
  for (u32 k = 0; k < count; ++k) {
    reach.least = std::min<i64>(reach.least, items[k].offset);
    reach.most = std::max<i64>(reach.most, items[k].offset);
    reach.aligned = reach.aligned && items[k].offset % static_cast<i32>(Size) == 0;
  }
  return reach;
}

u64* counters_of(Warp* warp, u32 site) { return warp->counters + size_t{site} * COUNTERS; }

// Shared -------------------------------------------------------------------------------------------------------

// Wavefronts of a request: the same for every offset.
template <u32 Size>
u64 wavefronts_of(const Windows& windows) {
  u64 total = 0;
  for (int g = 0; g < GROUPS<Size>; g += 2) {
    u64 low = windows.low[g], high = windows.low[g + 1];
    bool near = (low > high ? low - high : high - low) <= 4 * WINDOW_WORDS;  // together within one word of each bank
    u32 first = std::rotl(windows.words[g], static_cast<int>(low / 4 % 32));
    u32 second = std::rotl(windows.words[g + 1], static_cast<int>(high / 4 % 32));
    total += near || !(first & second) ? 1 : 2;
  }
  return total;
}

// Eight marks at a time: GCC leaves loops over them scalar.
using Marks = Mark __attribute__((vector_size(64)));
constexpr u32 HALVES = WINDOW_WORDS / 8;

Marks load_marks(const Mark* from) {
  Marks marks;
  std::memcpy(&marks, from, sizeof marks);
  return marks;
}

Mark any_of(Marks marks) {
  Mark any = 0;
  for (int i = 0; i < 8; ++i) any |= marks[i];
  return any;
}

// Who wrote the words of windows.
struct Writers {
  const SharedMemory& shared;
  const Windows& windows;
  int groups;
  Marks touched[MAX_GROUPS][HALVES];  // all ones for the words that are touched
  Marks bad{};     // not zero where the exact checks have to look
  Marks newest{};  // the latest

  Writers(const SharedMemory& memory, const Windows& places, int count) : shared(memory), windows(places), groups(count) {
    const Marks bits = {1, 2, 4, 8, 16, 32, 64, 128};
    for (int g = 0; g < groups; ++g)
      for (u32 half = 0; half < HALVES; ++half) {
        Marks words = Marks{} + Mark{windows.words[g] >> (8 * half)};
        touched[g][half] = reinterpret_cast<Marks>((words & bits) != 0);
      }
  }

  void look(i32 offset) {
    Marks first = Marks{} + (Mark{shared.first_epoch} << MARK_EPOCH_SHIFT);
    Marks ages = Marks{} + (Mark{shared.epoch - shared.first_epoch} << MARK_EPOCH_SHIFT);
    for (int g = 0; g < groups; ++g) {
      const Mark* writers = &shared.writers[(windows.low[g] + static_cast<u64>(static_cast<i64>(offset))) >> 2];
      for (u32 half = 0; half < HALVES; ++half) {
        Marks wrote = load_marks(writers + 8 * half), here = touched[g][half];
        // Neither from before this block nor from this very epoch.
        bad |= reinterpret_cast<Marks>(wrote - first >= ages) & here;
        wrote &= here;
        newest = wrote > newest ? wrote : newest;
      }
    }
  }

  u32 newest_epoch() const {
    Mark latest = 0;
    for (int i = 0; i < 8; ++i) latest = std::max<Mark>(latest, newest[i]);
    return mark_epoch(latest);
  }
};

template <u32 Size>
void note_reads(Warp* warp, const Pattern& pattern, const Windows& windows, const BatchItem* items, u32 count, Reach reach) {
  SharedMemory& shared = warp->block->shared;
  NotedReads& note = shared.notes.add(shared, warp->counts);
  for (int g = 0; g < GROUPS<Size>; ++g) {
    PatternIndex<Size> index[64 / Size];
    std::memcpy(index, pattern.index + g * 64, sizeof index);
    for (u32 i = 0; i < 64 / Size; ++i)
      note.place[static_cast<u32>(g) * (64 / Size) + i] = static_cast<u32>(windows.low[g]) + static_cast<u32>(index[i]) * Size;
  }
  note.items = items;
  note.count = count;
  note.size = Size;
  note.first = static_cast<u32>(static_cast<i64>(windows.first) + reach.least);
  note.last = static_cast<u32>(static_cast<i64>(windows.last) + reach.most);
  note.epoch = shared.epoch;
  note.warpid = warp->warpid;
  note.mark = own_mark(warp, 0, false, false);
}

// An epoch after `since` in which another thread wrote what one reads now, or 0. Not asked often.
template <u32 Size>
u32 others_wrote(const Warp* warp, const Pattern& pattern, const Windows& windows, i32 offset, u32 since) {
  const SharedMemory& shared = warp->block->shared;
  for (int g = 0; g < GROUPS<Size>; ++g) {
    PatternIndex<Size> index[64 / Size];
    std::memcpy(index, pattern.index + g * 64, sizeof index);
    for (u32 i = 0; i < 64 / Size; ++i) {
      u32 at = static_cast<u32>(windows.low[g]) + static_cast<u32>(index[i]) * Size + static_cast<u32>(offset);
      u32 thread = warp->thread(static_cast<u32>(g) * (64 / Size) + i);
      for (u32 granule = at >> 2; granule <= (at + Size - 1) >> 2; ++granule) {
        Mark writer = shared.writers[granule];
        if (mark_epoch(writer) > since && mark_thread(writer) != thread) return mark_epoch(writer);
      }
    }
  }
  return 0;
}

// How many reads of a batch, from the first, nobody objects to.
template <u32 Size>
u32 look_at_writers(Warp* warp, const Pattern& pattern, const Windows& windows, const BatchItem* items, u32 count) {
  SharedMemory& shared = warp->block->shared;
  Writers writers(shared, windows, GROUPS<Size>);
  for (u32 k = 0; k < count; ++k) writers.look(items[k].offset);
  u32 done = count;
  if (any_of(writers.bad)) {
    Writers again(shared, windows, GROUPS<Size>);
    for (done = 0; done < count; ++done) {
      again.look(items[done].offset);
      if (any_of(again.bad)) break;
    }
  }
  if (warp->counts && writers.newest_epoch() > shared.last_useful)
    for (u32 k = 0; k < done; ++k) shared.ordered(others_wrote<Size>(warp, pattern, windows, items[k].offset, shared.last_useful));
  return done;
}

template <u32 Size>
u32 read_shared(Warp* warp, const Pattern& pattern, const BatchItem* items, u32 count) {
  SharedMemory& shared = warp->block->shared;
  Windows windows = windows_of<Size>(pattern, reinterpret_cast<u64>(shared.bytes.data()));
  Reach reach = reach_of<Size>(items, count);
  if (!reach.aligned || shared.granule_shift != 2 || static_cast<i64>(windows.first) + reach.least < 0 ||
      static_cast<i64>(windows.last) + reach.most > i64{shared.size})
    return 0;
  bool counted = warp->counts;
  u32 done = count;
  // With all of it written, but not since the last barrier, and that known to be useful, there is nothing to look for.
  bool quiet = shared.unwritten == 0 && shared.last_write < shared.epoch;
  if (!quiet || (counted && shared.last_useful + 1 < shared.epoch)) done = look_at_writers<Size>(warp, pattern, windows, items, count);
  if (counted) {
    u64 wavefronts = wavefronts_of<Size>(windows);
    for (u32 k = 0; k < done; ++k) {
      u64* counters = counters_of(warp, items[k].site);
      counters[REQUESTS] += 1;
      counters[WAVEFRONTS] += wavefronts;
      counters[IDEAL] += static_cast<u64>(GROUPS<Size> / 2);
    }
  }
  if (done) note_reads<Size>(warp, pattern, windows, items, done, reach);
  return done;
}

// Global -------------------------------------------------------------------------------------------------------

// Windows close to each other as one map of the words touched, from a common first word.
struct Area {
  u64 low;
  unsigned __int128 words;
};

// Joins windows into areas that share no sector whatever is added to them. 0 where that is not easy.
template <u32 Size>
int areas_of(const Windows& windows, Area (&areas)[MAX_GROUPS]) {
  int order[MAX_GROUPS] = {0, 1, 2, 3}, found = 0;
  for (int n = 1; n < GROUPS<Size>; ++n)
    for (int k = n; k && windows.low[order[k]] < windows.low[order[k - 1]]; --k) std::swap(order[k], order[k - 1]);
  for (int n = 0; n < GROUPS<Size>; ++n) {
    u64 low = windows.low[order[n]];
    unsigned __int128 words = windows.words[order[n]];
    if (found) {
      Area& last = areas[found - 1];
      u64 apart = (low - last.low) / 4;
      if (apart + WINDOW_WORDS + 7 <= 128) {
        last.words |= words << apart;
        continue;
      }
      u64 previous = windows.low[order[n - 1]];
      if (low - previous < 4 * WINDOW_WORDS + 32) return 0;
    }
    areas[found++] = {low, words};
  }
  return found;
}

// One byte a sector, 1 where any of its 8 words is touched.
u64 sectors_of(u64 words) {
  words |= words >> 4;
  words |= words >> 2;
  words |= words >> 1;
  return words & 0x0101010101010101;
}

// Other workers do the same: only ever writes ones.
void mark_sectors(u8* place, u64 sectors) {
  u64 known;
  std::memcpy(&known, place, 8);
  for (u64 rest = sectors & ~known; rest; rest &= rest - 1) place[std::countr_zero(rest) / 8] = 1;
}

u64 touch_sectors(const Area& area, i64 offset) {
  u64 low = area.low + static_cast<u64>(offset), sector = low & ~u64{31}, count = 0;
  unsigned __int128 words = area.words << (low / 4 % 8);
  int parts = words >> 64 ? 2 : 1;
  for (int part = 0; part < parts; ++part) {
    u64 sectors = sectors_of(static_cast<u64>(words >> (64 * part)));
    if (sectors) mark_sectors(Device::loaded(sector + static_cast<u64>(part) * 256), sectors);
    count += static_cast<u64>(std::popcount(sectors));
  }
  return count;
}

// Is a part of every element read written?
template <u32 Size>
bool written(const Pattern& pattern, const Windows& windows, i64 offset) {
  using Index = PatternIndex<Size>;
  for (int g = 0; g < GROUPS<Size>; ++g) {
    Index shadow[64 / Size], index[64 / Size], bits = 0, unwritten = 0;
    std::memcpy(shadow, Device::shadow(windows.low[g] + static_cast<u64>(offset)), 64);
    std::memcpy(index, pattern.index + g * 64, 64);
    for (u32 i = 0; i < 64 / Size; ++i) {
      bits |= Index{1} << index[i];
      unwritten |= static_cast<Index>(shadow[i] == 0) << i;
    }
    if (bits & unwritten) return false;
  }
  return true;
}

// For the check for races, lane by lane.
template <u32 Size>
void mark_reads_exactly(Warp* warp, const Pattern& pattern, const BatchItem& item, const Allocation* allocation) {
  u64 places[LANES];
  for (u32 lane = 0; lane < LANES; ++lane) {
    PatternIndex<Size> index;
    std::memcpy(&index, pattern.index + lane * Size, Size);
    places[lane] = pattern.origin[lane * Size / 64] + index * Size;
  }
  Lanes lanes;
  gather_lanes(lanes, ~u32{0}, places, item.offset);
  race_read(warp, item.site, lanes, Size, allocation);
}

template <u32 Size>
void mark_reads(Warp* warp, const Pattern& pattern, const BatchItem* items, u32 count, const Allocation* allocation) {
  RaceReads reads(warp, items[0].site, Size, allocation);
  if (!reads.wanted()) return;
  for (int g = 0; g < GROUPS<Size>; ++g) reads.add<Size>(pattern, g);
  for (u32 k = 0; k < count; ++k)
    if (!reads.read(items[k].site, items[k].offset)) mark_reads_exactly<Size>(warp, pattern, items[k], allocation);
}

template <u32 Size>
u32 read_global(Warp* warp, const Pattern& pattern, const BatchItem* items, u32 count, bool counted) {
  Windows windows = windows_of<Size>(pattern, 0);
  Reach reach = reach_of<Size>(items, count);
  u64 first = windows.first + static_cast<u64>(reach.least), last = windows.last + static_cast<u64>(reach.most);
  if (!reach.aligned || first > last) return 0;
  Worker& worker = *warp->worker;
  const Allocation* allocation = allocation_around(worker, first, last - first);
  if (!allocation) return 0;
  u32 done = 0;
  bool known = allocation->written() || !worker.launch.checked(INITCHECK);
  if (!known)
    while (done < count && written<Size>(pattern, windows, items[done].offset)) ++done;
  else
    done = count;
  if (!done || !counted) return done;
  Area areas[MAX_GROUPS];
  int found = areas_of<Size>(windows, areas);
  if (!found) return 0;
  mark_reads<Size>(warp, pattern, items, done, allocation);
  if (!warp->counts) return done;
  u64 useful = 0;
  for (int n = 0; n < found; ++n)
    useful += 4 * static_cast<u64>(std::popcount(static_cast<u64>(areas[n].words)) +
                                   std::popcount(static_cast<u64>(areas[n].words >> 64)));
  for (u32 k = 0; k < done; ++k) {
    u64* counters = counters_of(warp, items[k].site);
    counters[REQUESTS] += 1;
    counters[BYTES] += useful;
    counters[IDEAL] += (useful + 31) / 32;
    for (int n = 0; n < found; ++n) counters[SECTORS] += touch_sectors(areas[n], items[k].offset);
  }
  note_global_order(warp, allocation, false);
  return done;
}

}  // namespace
}  // namespace kw

using namespace kw;

#define BATCH(SIZE)                                                                                            \
  u32 kw_batch_s_##SIZE(Warp* warp, const Pattern* pattern, const BatchItem* items, u32 count) {               \
    return read_shared<SIZE>(warp, *pattern, items, count);                                                    \
  }                                                                                                            \
  u32 kw_batch_g_##SIZE(Warp* warp, const Pattern* pattern, const BatchItem* items, u32 count) {               \
    return read_global<SIZE>(warp, *pattern, items, count, true);                                              \
  }                                                                                                            \
  u32 kw_batch_c_##SIZE(Warp* warp, const Pattern* pattern, const BatchItem* items, u32 count) {               \
    return read_global<SIZE>(warp, *pattern, items, count, false);                                             \
  }

extern "C" {
BATCH(4)
BATCH(8)
}
