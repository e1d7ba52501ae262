#include "progress.h"

#include <bit>
#include <cstring>

#include "order.h"
#include "run.h"

// What lowered code calls at a back edge without fuel. It keeps the registers that a call preserves next to the
// caller's frames, so that all that the warp knows lies in one piece.
asm(R"(
.text
.globl kw_fuel
.type kw_fuel, @function
kw_fuel:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, %rdx
  subq $8, %rsp
  call kw_out_of_fuel@PLT
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kw_fuel, .-kw_fuel
)");

namespace kw {
namespace {

constexpr i32 SHORT_FUEL[] = {64, 97, 151};  // of a warp that waits, by epoch: other turns each time
constexpr u32 OLDEST_REFERENCE = 64;
constexpr u8 MOST_ROTATIONS = 16;
constexpr u32 RETURNS = 2;  // of a warp to one state, until that counts as going around
constexpr int TIMES = 3;    // that a deadlock is seen, until it is one
constexpr double MEMORY_PAUSE = 20;  // times as long as reading all memory took, until it is read again

bool known(Spin& spin, u64 state) {
  bool found = state == spin.reference;
  for (u64 recent : spin.recent) found = found || recent == state;
  if (!found) spin.recent[spin.next++ & 3] = state;
  if (++spin.looks >= spin.limit) {
    spin.looks = 0;
    spin.limit = spin.limit < OLDEST_REFERENCE ? 2 * spin.limit : 1;
    spin.reference = state;
  }
  return found;
}

void note_for_watch(Spin& spin, u64 epoch, u64 state) {
  if (spin.epoch != epoch) {
    spin.epoch = epoch;
    spin.anchor = state;
    spin.returns = spin.epoch_looks = 0;
  } else if (state == spin.anchor) {
    ++spin.returns;
  } else if (spin.returns == 0 && std::has_single_bit(++spin.epoch_looks)) {
    spin.anchor = state;
  }
}

bool others_wait(const State* state, u32 here) {
  for (u32 block = 0; block < state->blocks; ++block)
    if (block != here && state->waiting[block]) return true;
  return false;
}

// Every ready warp of the worker's blocks looks for what others do, and came back to where it was. (The rest wait at
// barriers.) A loop that does not even look is endless, not waiting.
bool all_return(const Worker& worker, u64 epoch) {
  for (const auto& block : worker.resident)
    for (const Warp* warp : block->warps)
      if (warp->status == Status::ready && (!warp->spin.polls || warp->spin.epoch != epoch || warp->spin.returns < RETURNS))
        return false;
  return true;
}

u64 shared_checksum(const Worker& worker) {
  u64 sum = 0;
  for (const auto& block : worker.resident) sum = hash_bytes(block->shared.bytes.data(), block->shared.bytes.size(), sum);
  return sum;
}

}  // namespace

u64 hash_bytes(const void* bytes, size_t size, u64 seed) {
  constexpr int WAYS = 8;
  constexpr u64 PRIME = 0x9e3779b185ebca87;
  u64 sums[WAYS], words[WAYS];
  for (int way = 0; way < WAYS; ++way) sums[way] = seed + PRIME * (way + 1);
  auto* at = static_cast<const u8*>(bytes);
  auto mix = [&] {
    for (int way = 0; way < WAYS; ++way) {
      u64 mixed = (sums[way] ^ words[way]) * PRIME;
      sums[way] = mixed ^ mixed >> 29;
    }
  };
  size_t rest = size;
  for (; rest >= sizeof words; rest -= sizeof words, at += sizeof words) {
    std::memcpy(words, at, sizeof words);
    mix();
  }
  std::memset(words, 0, sizeof words);
  std::memcpy(words, at, rest);
  mix();
  u64 all = size;
  for (u64 sum : sums) {
    all = (all ^ sum) * PRIME;
    all ^= all >> 32;
  }
  return all;
}

extern "C" i32 kw_out_of_fuel(Warp* warp, State* state, const u8* registers) {
  Launch& launch = *warp->block->launch;
  Spin& spin = warp->spin;
  u32 here = state->target;
  spin.line = state->line >> 1;
  spin.polls = state->line & 1;
  spin.lane = static_cast<u32>(std::countr_zero(state->mask));
  if (monotonic_seconds() > launch.deadline) launch.timed_out = true;
  if (launch.stopped(warp->block->place + 1)) yield_to_scheduler(warp);

  state->waiting[here] |= state->mask;
  size_t local_bytes = size_t{launch.request->kernel->local_bytes} * LANES;
  size_t stack_bytes = static_cast<size_t>(warp->stack_end - registers);
  u64 known_by = hash_bytes(registers, stack_bytes, warp->live);
  if (local_bytes) known_by = hash_bytes(warp->locals, local_bytes, known_by);
  note_for_watch(spin, launch.watch.epoch(), known_by);
  i32 rotated = here + 1 < state->blocks ? here + 1 : 0;
  if (!known(spin, known_by)) {
    spin.moved = true;
    spin.grant = warp->fuel = std::min(2 * spin.grant, FULL_FUEL);
    bool goes_on = spin.grant < FULL_FUEL && !launch.seed;
    if (goes_on) {
      state->mask = std::exchange(state->waiting[here], 0);
      return static_cast<i32>(here);
    }
    state->rotate = rotated;
  } else {
    // A look costs as much as some back edges; where it is dear, it is taken less often.
    i32 dear = static_cast<i32>(std::min<size_t>((stack_bytes + local_bytes) / 128, FULL_FUEL / 2));
    spin.grant = warp->fuel = SHORT_FUEL[launch.watch.epoch() % std::size(SHORT_FUEL)] + dear;
    state->rotate = rotated;
    if (others_wait(state, here) && ++spin.rotations < MOST_ROTATIONS) return kw_schedule(warp, state);
    spin.waits = !spin.moved;
  }
  yield_to_scheduler(warp);
  return kw_schedule(warp, state);
}

bool DeadlockWatch::all_wait(Worker& worker) {
  std::lock_guard lock(mutex_);
  if (found_) return true;
  if (progress_.load() != progress_then_) {
    armed_ = false;
    times_ = 0;
  }
  if (!armed_) {
    if (monotonic_seconds() >= not_before_) arm(worker.launch);
    return false;
  }
  Confirmation& mine = worker.confirmation;
  u64 now = epoch_.load(), shared = shared_checksum(worker);
  if (mine.epoch != now || mine.shared != shared)
    mine = {now, shared, false};
  else if (!mine.given && all_return(worker, now)) {
    mine.given = true;
    ++confirmations_;
  }
  if (confirmations_ < active_) return false;
  bool same = worker.launch.device->checksum() == memory_then_ && progress_.load() == progress_then_;
  times_ = same ? times_ + 1 : 0;
  found_ = times_ == TIMES;
  if (!found_) arm(worker.launch);
  return found_;
}

void DeadlockWatch::arm(const Launch& launch) {
  double before = monotonic_seconds();
  progress_then_ = progress_.load();
  memory_then_ = launch.device->checksum();
  not_before_ = before + (monotonic_seconds() - before) * MEMORY_PAUSE;
  confirmations_ = 0;
  armed_ = true;
  ++epoch_;
}

}  // namespace kw
