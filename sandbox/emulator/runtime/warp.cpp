// What lowered code asks of the runtime about lanes and warps: scheduling, collectives, barriers, traps.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "order.h"
#include "run.h"

using namespace kw;

namespace {

std::string line_text(u32 line) { return line ? "line " + std::to_string(line_of(line)) : "an unknown line"; }

std::string lanes_text(u32 mask) {
  int count = std::popcount(mask);
  return std::to_string(count) + (count == 1 ? " lane" : " lanes");
}

// A collective waits for every lane it names that is still in the kernel; those that cannot come are a fault, and
// so are lanes that come without being named.
void require_members(Warp* warp, u32 line, const char* what, u32 members, u32 group) {
  u32 missing = members & warp->live & ~group, uninvited = group & ~members;
  auto object = [&](u32 lanes, const std::string& message) {
    report(warp, std::countr_zero(lanes), line, "barrier", {.message = message, .line = line, .fatal = false});
  };
  if ((missing | uninvited) == 0 || !warp->worker->launch.checked(SYNCCHECK) || repeated(warp, "barrier", line)) return;
  if (missing) object(missing, std::string(what) + " names " + lanes_text(missing) + " of the warp that did not come to it");
  if (uninvited)
    object(uninvited, std::string(what) + " is executed by " + lanes_text(uninvited) + " that its member mask does not name");
}

// Lanes that give the same member mask are one group: a warp may hold several. Calls `each(group)`.
template <class Each>
void by_group(Warp* warp, u32 line, const char* what, const u32* members, u32 mask, Each&& each) {
  if (!mask) return;
  for (u32 rest = mask; rest;) {
    u32 named = members[std::countr_zero(rest)], group = 0;
    for (int lane = 0; lane < LANES; ++lane) group |= u32{members[lane] == named} << lane;
    group &= rest;
    require_members(warp, line, what, named, group);
    each(group);
    rest &= ~group;
  }
  if (warp->synced < MARK_SYNC_LIMIT) ++warp->synced;
}

template <class Each>
void for_lanes(u32 mask, Each&& each) {
  for (; mask; mask &= mask - 1) each(std::countr_zero(mask));
}

int run_at(State* state, u32 block, u32 mask) {
  state->mask = mask;
  return static_cast<int>(block);
}

// The first block from `from` on at which lanes wait; as many as there are blocks: none.
u32 first_waiting(const State* state, u32 from) {
#ifdef __AVX512F__
  for (; from < state->blocks; from += 16) {
    u32 here = std::min<u32>(state->blocks - from, 16);
    __m512i masks = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((u32{1} << here) - 1), state->waiting + from);
    if (u32 found = _mm512_test_epi32_mask(masks, masks)) return from + static_cast<u32>(std::countr_zero(found));
  }
  return state->blocks;
#else
  while (from < state->blocks && !state->waiting[from]) ++from;
  return from;
#endif
}

[[noreturn]] void divergent_barrier(Warp* warp, State* state) {
  std::string where;
  u32 first_lane = 0, first_line = 0;
  int found = 0;
  for (u32 block = 0; block < state->blocks; ++block) {
    u32 mask = state->parked()[block];
    if (!mask) continue;
    u32 line = (state->notes()[block] & ~APART) >> 1;
    if (!found++) {
      first_lane = std::countr_zero(mask);
      first_line = line;
    }
    where += (where.empty() ? "" : ", ") + lanes_text(mask) + " at " + line_text(line);
  }
  fail(warp, first_lane, first_line, "barrier", "lanes of one warp wait at different barriers: " + where);
}

// Nothing is waiting to run: lanes are parked at barriers and collectives, or all have left.
int schedule_parked(Warp* warp, State* state) {
  u32 barriers = 0, barrier = 0;
  bool apart = true;
  for (u32 block = 0; block < state->blocks; ++block) {
    u32& mask = state->parked()[block];
    if (!mask) continue;
    if (state->notes()[block] & 1) {
      state->forced = block + 1;
      return run_at(state, block, std::exchange(mask, 0));
    }
    ++barriers;
    barrier = block;
    apart = apart && (state->notes()[block] & APART);
  }
  if (barriers == 0) return -1;
  if (barriers > 1) {
    if (!apart) divergent_barrier(warp, state);
    // The warp arrives by the last of them.
    for (u32 block = 0; block < barrier; ++block) {
      u32 mask = std::exchange(state->parked()[block], 0);
      state->waiting[block] |= mask;
      warp->arrived |= mask;
    }
    state->forced = barrier + 1;
  }
  return run_at(state, barrier, std::exchange(state->parked()[barrier], 0));
}

}  // namespace

extern "C" {

i32 kw_schedule(Warp* warp, State* state) {
  u32 start = state->rotate;
  bool random = warp->worker->launch.seed != 0;
  state->rotate = 0;
  state->forced = 0;  // what was forced has run, also when all its lanes were there after all
  state->lowest = 0;  // what runs next comes back here
  if (random) start = static_cast<u32>(next_random(warp->block->random) % state->blocks);
  u32 block = first_waiting(state, start);
  if (block == state->blocks && start) block = first_waiting(state, 0);
  if (block == state->blocks) return schedule_parked(warp, state);
  u32 mask = std::exchange(state->waiting[block], 0);
  if (!random) state->lowest = first_waiting(state, start ? 0 : block + 1);
  return run_at(state, block, mask);
}

void kw_split(Warp*, State* state, u32 taken, u32 target, u32 next) {
  state->waiting[target] |= taken;
  state->waiting[next] |= state->mask & ~taken;
}

// A warp that sleeps waits for others, most likely.
void kw_sleep(Warp* warp, u32 mask, const u32* nanoseconds) {
  if (!mask) return;
  warp->slept += nanoseconds[std::countr_zero(mask)];
  warp->spin.waits = !warp->spin.moved;
  yield_to_scheduler(warp);
}

// Lanes at the start of a block that needs more of them. 1: run all the same.
i32 kw_park(Warp* warp, State* state, u32 block, u32 note) {
  if (state->forced == block + 1) {
    state->forced = 0;
    return 1;
  }
  if (u32 arrived = state->mask & warp->arrived) {
    if (arrived == state->mask) {
      warp->arrived &= ~arrived;
      warp->passes = true;
      return 1;
    }
    state->waiting[block] |= arrived;
    state->mask &= ~arrived;
  }
  if (!(note & 1) && !state->is_kernel && state->mask == state->live)
    give_up(warp, "a barrier in a device function that only some lanes of a warp have entered");
  state->parked()[block] |= state->mask;
  state->notes()[block] = note;
  return 0;
}

u32 kw_first_lane(u32 mask, const u32* values) { return values[std::countr_zero(mask | 0x80000000)]; }

void kw_syncwarp(Warp* warp, u32 line, const u32* members, u32 mask) {
  by_group(warp, line, "__syncwarp", members, mask, [](u32) {});
}

#define VOTE(NAME, EXPRESSION)                                                                            \
  u32 kw_vote_##NAME(Warp* warp, u32 line, const u32* members, u32 mask, u32 votes, u32* out) {           \
    u32 yes = 0;                                                                                          \
    by_group(warp, line, "a warp vote", members, mask, [&](u32 group) {                                   \
      u32 voted = votes & group;                                                                          \
      if (EXPRESSION) yes |= group;                                                                       \
      for_lanes(group, [&](int lane) { out[lane] = voted; });                                             \
    });                                                                                                   \
    return yes;                                                                                           \
  }
VOTE(ballot, voted != 0)
VOTE(any, voted != 0)
VOTE(all, voted == group)
VOTE(uni, voted == group || voted == 0)

// What a lane gets from one that takes no part is undefined: these bits are as large a number as a float, a double
// or an integer holds, of either sign, so that no sum, minimum or maximum hides them.
static u32 undefined_bits(int lane) { return lane & 1 ? 0xff6dc0de : 0x7f6dc0de; }

u32 kw_shfl(Warp* warp, u32 line, u32 mode, const u32* members, u32 mask, const u32* value, const u32* lanes, const u32* clamps,
            u32* out) {
  u32 valid = 0;
  by_group(warp, line, "a warp shuffle", members, mask, [&](u32 group) {
    for_lanes(group, [&](int lane) {
      int segment = clamps[lane] >> 8 & 31, clamp = clamps[lane] & 31, b = lanes[lane] & 31;
      int low = lane & segment, high = low | (clamp & ~segment);
      int from = mode == 0 ? lane - b : mode == 1 ? lane + b : mode == 2 ? lane ^ b : low | (b & ~segment);
      bool inside = mode == 0 ? from >= high : from <= high;
      valid |= u32{inside} << lane;
      if (!inside) from = lane;
      out[lane] = group >> (from & 31) & 1 ? value[from & 31] : undefined_bits(from);
    });
  });
  return valid;
}

#define MATCH(KIND, TYPE)                                                                                     \
  u32 kw_match_any_##KIND(Warp* warp, u32 line, const u32* members, u32 mask, const TYPE* value, u32* out) {  \
    by_group(warp, line, "a warp match", members, mask, [&](u32 group) {                                      \
      for_lanes(group, [&](int lane) {                                                                        \
        u32 same = 0;                                                                                         \
        for (int other = 0; other < LANES; ++other) same |= u32{value[other] == value[lane]} << other;        \
        out[lane] = same & group;                                                                             \
      });                                                                                                     \
    });                                                                                                       \
    return mask;                                                                                              \
  }                                                                                                           \
  u32 kw_match_all_##KIND(Warp* warp, u32 line, const u32* members, u32 mask, const TYPE* value, u32* out) {  \
    u32 yes = 0;                                                                                              \
    by_group(warp, line, "a warp match", members, mask, [&](u32 group) {                                      \
      bool same = true;                                                                                       \
      for_lanes(group, [&](int lane) { same = same && value[lane] == value[std::countr_zero(group)]; });      \
      if (same) yes |= group;                                                                                 \
      for_lanes(group, [&](int lane) { out[lane] = same ? group : 0; });                                      \
    });                                                                                                       \
    return yes;                                                                                               \
  }
MATCH(i32, u32)
MATCH(i64, u64)

#define REDUX(NAME, TYPE_NAME, TYPE, START, EXPRESSION)                                                             \
  void kw_redux_##NAME##_##TYPE_NAME(Warp* warp, u32 line, const u32* members, u32 mask, const TYPE* value, u32* out) { \
    by_group(warp, line, "a warp reduction", members, mask, [&](u32 group) {                                        \
      TYPE sum = START;                                                                                             \
      for_lanes(group, [&](int lane) {                                                                              \
        TYPE a = value[lane];                                                                                       \
        sum = EXPRESSION;                                                                                           \
      });                                                                                                           \
      for_lanes(group, [&](int lane) { out[lane] = static_cast<u32>(sum); });                                       \
    });                                                                                                             \
  }
REDUX(add, u32, u32, 0, sum + a)
REDUX(add, s32, u32, 0, sum + a)
REDUX(min, u32, u32, ~u32{0}, a < sum ? a : sum)
REDUX(max, u32, u32, 0, a > sum ? a : sum)
REDUX(min, s32, i32, INT32_MAX, a < sum ? a : sum)
REDUX(max, s32, i32, INT32_MIN, a > sum ? a : sum)
REDUX(and, b32, u32, ~u32{0}, sum & a)
REDUX(or, b32, u32, 0, sum | a)
REDUX(xor, b32, u32, 0, sum ^ a)

// Barriers: the warp arrives as a whole and waits on its fiber.

static BarrierState& arrive(Warp* warp, u32 site, u32 number, u32 threads) {
  warp->counters[size_t{site} * COUNTERS] += 1;
  if (number > 15)
    fail(warp, std::countr_zero(warp->live), site_line(warp, site), "barrier",
         "there are barriers 0 to 15, not " + std::to_string(number));
  BarrierState& barrier = warp->block->barriers[number];
  auto wrong = [&](const std::string& what) {
    fail(warp, std::countr_zero(warp->live), site_line(warp, site), "barrier", "barrier " + std::to_string(number) + what);
  };
  if (threads % LANES) wrong(" for " + std::to_string(threads) + " threads, which are not whole warps");
  if (threads && barrier.arrived && barrier.expected && barrier.expected != threads)
    wrong(" for " + std::to_string(threads) + " threads, where others wait for " + std::to_string(barrier.expected));
  barrier.arrived += LANES;
  if (threads) barrier.expected = threads;
  return barrier;
}

static void wait_at(Warp* warp, u32 site, u32 number) {
  warp->status = Status::waiting;
  warp->barrier = static_cast<u8>(number);
  warp->barrier_line = site_line(warp, site);
  yield_to_scheduler(warp);
}

void kw_barrier(Warp* warp, u32 site, u32 number, u32 threads) {
  // Where the lanes that arrived are all that are left, nothing had to be parked.
  if (warp->passes || (warp->arrived & warp->live) == warp->live) {
    if (!warp->passes) warp->arrived = 0;
    warp->passes = false;
    return;
  }
  arrive(warp, site, number, threads);
  wait_at(warp, site, number);
}

void kw_barrier_arrive(Warp* warp, u32 site, u32 number, u32 threads) { arrive(warp, site, number, threads); }

u32 kw_barrier_reduce(Warp* warp, u32 site, u32 number, u32 threads, u32 mode, u32 votes) {
  BarrierState& barrier = arrive(warp, site, number, threads);
  votes &= warp->live;
  barrier.votes_count += std::popcount(votes);
  barrier.votes_any |= votes;
  barrier.votes_all = barrier.votes_all && votes == warp->live;
  wait_at(warp, site, number);
  return barrier.result[mode];
}

// Cycles of a warp: what it issued, how often it looked, what it slept. The same in each run.
u64 kw_clock(Warp* warp) { return 1000 + 4 * warp->instructions + 16 * ++warp->clock_reads + 2 * warp->slept; }

u64 kw_globaltimer() {
  return static_cast<u64>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
}
