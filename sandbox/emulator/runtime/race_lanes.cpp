// The check for races in global memory for lanes at any places of one allocation: eight of them at a time. Where there
// may be something to tell, and where two lanes write to one place, the exact check looks.

#include "race_eights.h"

namespace kw::race_marks {
namespace {

// Lanes of an access, from `start` on.
struct Part {
  Part(const Access& access, RaceMark lane_zero, const Lanes& lanes, int start)
      : where(first_flags(lanes.count - start)), address(load_eight(lanes.address + start)) {
    mine = lane_zero + (widened(lanes.lane + start) << static_cast<RaceMark>(THREAD_SHIFT));
    place = (address - DEVICE_BASE) >> u64{2} << u64{3};
    if (access.bytes >= 4) {
      mine |= BYTES_MASK;
    } else {
      Marks bytes = (Marks{} + ((1u << access.bytes) - 1)) << (address & 3);
      mine |= bytes | NARROW;
    }
  }
  template <class Each>
  static void each_word(const Access& access, Each&& each) {
    for (u32 at = 0; at < access.bytes; at += 4) each(u64{at} * 2);
  }

  Flags where;
  Eight address, place;  // of marks: from their base
  Marks mine;
};

Flags conflicts(const Look& look, const Part& part, bool reads_too) {
  Flags bad{};
  Part::each_word(look.access, [&](u64 word) {
    if (look.stored) bad |= disordered(look, gather(Device::WRITERS_BASE + word, part.place, part.where), part.mine, part.where);
    if (reads_too && look.loaded)
      bad |= disordered(look, gather(Device::READERS_BASE + word, part.place, part.where), part.mine, part.where);
  });
  return bad;
}

void mark_writes(const Look& look, const Part& part, Marks mine) {
  Part::each_word(look.access, [&](u64 word) {
    u64 base = Device::WRITERS_BASE + word;
    scatter(base, part.place, after_write(look, gather(base, part.place, part.where), mine), part.where);
  });
}

}  // namespace

void read_lanes(const Access& access, RaceMark mine, const Lanes& lanes) {
  Look look(access, *access.common);
  for (int start = 0; start < lanes.count; start += EIGHT) {
    Part part(access, mine, lanes, start);
    if (look.stored) {
      Flags bad = conflicts(look, part, false);
      each_flag(bad, [&](int i) { read_lane(access, mine, lanes.lane[start + i], lanes.address[start + i]); });
      part.where &= ~bad;
    }
    Part::each_word(access, [&](u64 word) {
      u64 base = Device::READERS_BASE + word;
      Marks old = gather(base, part.place, part.where);
      if (all_read_widely(look, old, part.where)) return;
      Flags open = part.where & ~known_read(look, old, part.mine);
      if (!any(open)) return;
      Flags again = repeats(part.place, open), first = open & ~again;
      Marks next = joined(look, old, part.mine, first);
      scatter(base, part.place, next, first & (next != old));
      each_flag(again, [&](int i) {
        RaceMark& reader = *reinterpret_cast<RaceMark*>(base + part.place[i]);
        reader = joined(access, reader, part.mine[i]);
      });
    });
  }
}

void write_lanes(Access& access, RaceMark mine, const Lanes& lanes, const LaneStores& stores) {
  Look look(access, *access.common);
  const Marks order = {0, 1, 2, 3, 4, 5, 6, 7};
  for (int start = 0; start < lanes.count; start += EIGHT) {
    int past = std::min(start + EIGHT, lanes.count);
    Part part(access, mine, lanes, start);
    if (any(repeats(part.place, part.where)) || any(conflicts(look, part, true))) {
      for (int i = start; i < past; ++i) write_lane(access, mine, lanes, i, stores);
      continue;
    }
    stores.put(lanes, stores, start, past);
    std::atomic_thread_fence(std::memory_order_release);
    Flags silent = ((Marks{} + (stores.silent >> start)) >> order & 1) != 0;
    mark_writes(look, part, silent ? part.mine | SILENT : part.mine);
  }
}

void update_lanes(const Access& access, RaceMark mine, const Lanes& lanes) {
  Look look(access, *access.common);
  for (int start = 0; start < lanes.count; start += EIGHT) {
    Part part(access, mine, lanes, start);
    bool several = access.bytes < 4 && any(repeats(part.place, part.where));
    if (!several && !any(conflicts(look, part, true))) {
      mark_writes(look, part, part.mine);
      continue;
    }
    for (int i = start; i < std::min(start + EIGHT, lanes.count); ++i) {
      check_write(access, lanes.lane[i], lanes.address[i]);
      mark_write(access, mine, lanes.lane[i], lanes.address[i]);
    }
  }
}

}  // namespace kw::race_marks
