#include "run.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "fiber.h"
#include "order.h"

namespace kw {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Tally::add(u64 value) {
  ++count;
  minimum = std::min(minimum, value);
  maximum = std::max(maximum, value);
  sum += value;
  squares += static_cast<long double>(value) * value;
}

void Tally::merge(const Tally& other) {
  count += other.count;
  minimum = std::min(minimum, other.minimum);
  maximum = std::max(maximum, other.maximum);
  sum += other.sum;
  squares += other.squares;
}

// Names the kernel, and takes places apart.
static void name_source(const Launch& launch, Finding& finding) {
  finding.kernel = launch.request->kernel->name;
  finding.file = launch.module->file_of(finding.line);
  finding.line = line_of(finding.line);
  finding.other_line = line_of(finding.other_line);
}

u32 site_line(const Warp* warp, u32 site) { return warp->module->sites[site].line; }

void yield_to_scheduler(Warp* warp) { kw_switch_stack(&warp->stack_pointer, warp->worker->scheduler_stack); }

void leave_for_good(Warp* warp) {
  warp->status = Status::finished;
  yield_to_scheduler(warp);
  __builtin_unreachable();
}

void place_thread(const Warp* warp, u32 lane, u32 (&thread)[3]) {
  for (int axis = 0; axis < 3; ++axis) thread[axis] = warp->tid[axis][lane];
}

// An error that ends the launch here.
void record(const Block& block, Finding fault) {
  Launch& launch = *block.launch;
  std::memcpy(fault.block, block.index, sizeof fault.block);
  name_source(launch, fault);
  if (launch.findings) launch.findings->add(fault);
  std::lock_guard lock(launch.mutex);
  if (block.place >= launch.fault_place.load()) return;
  launch.fault = std::move(fault);
  launch.fault_place = block.place;
}

static void locate(Finding& finding, const Warp* warp, u32 lane) {
  std::memcpy(finding.block, warp->block->index, sizeof finding.block);
  place_thread(warp, lane, finding.thread);
}

void fail(Warp* warp, u32 lane, u32 line, const char* kind, const std::string& message, std::optional<u64> address,
          const char* space) {
  Finding fault{.kind = kind, .message = message, .line = line, .address = address, .space = space};
  locate(fault, warp, lane);
  record(*warp->block, std::move(fault));
  leave_for_good(warp);
}

void report(Warp* warp, u32 lane, u32 place_of, const char* kind, Finding finding) {
  Launch& launch = warp->worker->launch;
  if (finding.note && !launch.findings) return;
  finding.kind = kind;
  locate(finding, warp, lane);
  if (!launch.findings) {
    record(*warp->block, std::move(finding));
    leave_for_good(warp);
  }
  name_source(launch, finding);
  if (finding.fatal && !finding.note) {
    std::lock_guard lock(launch.mutex);
    if (!launch.fault) launch.fault = finding;
  }
  warp->worker->repeats[{kind, place_of}].number = launch.findings->add(std::move(finding));
}

bool repeated(Warp* warp, const char* kind, u32 place_of) {
  auto known = warp->worker->repeats.find({kind, place_of});
  if (known == warp->worker->repeats.end()) return false;
  ++known->second.times;
  return true;
}

void give_up(Warp* warp, const char* unsupported) {
  warp->worker->launch.unsupported = unsupported;
  leave_for_good(warp);
}

namespace {

// Rounds of turns that a block gets before others do, though its warps compute: those that only seem to (counting
// while they wait) must not keep the others away for ever.
constexpr int ROUNDS = 8;
constexpr size_t SEEDED_RESIDENTS = 4;

thread_local Warp* running = nullptr;

// Without checks an access is done, and the machine says when there is no memory. Neither lane nor line is known.
[[noreturn]] void report_wild_access(u64 address) {
  constexpr u64 NULL_BYTES = 1 << 20;
  wild_access = nullptr;
  std::string where = address ? "at " + hexadecimal(address) + ", where no memory is" : "at an address that no memory can have";
  fail(running, static_cast<u32>(std::countr_zero(running->started)), 0, address && address < NULL_BYTES ? "null" : "out of bounds",
       "access " + where + ", by a thread of this one's warp; run with checks to see which, and at which line",
       address, "generic");
}

// How many blocks a worker may hold: what the process may use, and what a warp's stack takes in earnest.
size_t most_residents(const Launch& launch) {
  constexpr u64 MOST_BYTES = u64{4} << 30;
  constexpr u64 STACK_IN_USE = 1 << 15, MARKS = 5;  // shared memory and its marks
  const LaunchRequest& request = *launch.request;
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  u64 bytes = limit.rlim_cur == RLIM_INFINITY ? MOST_BYTES : std::min<u64>(MOST_BYTES, limit.rlim_cur / 2);
  u64 per_warp = STACK_IN_USE + u64{request.kernel->local_bytes} * LANES;
  u64 per_block = warp_count(request) * per_warp + MARKS * shared_bytes(request) + sizeof(Block);
  return static_cast<size_t>(std::max<u64>(1, bytes / static_cast<u64>(launch.workers) / per_block));
}

}  // namespace

Worker::Worker(Launch& its_launch) : launch(its_launch), counters(its_launch.module->sites.size() * COUNTERS) {
  const Module* other = launch.uncounted_module ? launch.uncounted_module : launch.module;
  if (launch.sample) uncounted.resize(other->sites.size() * COUNTERS);
  spare_.push_back(std::make_unique<Block>(launch, *this));
  most_ = most_residents(launch);
}

// One round suffices where a seed mixes the blocks.
Worker::Turn Worker::run_turn(Block& block) {
  Turn turn = Turn::computes;
  bool progressed = false;
  for (int round = 0; round < (launch.seed ? 1 : ROUNDS) && turn == Turn::computes; ++round) {
    turn = run_round(block);
    progressed = progressed || turn != Turn::waits;
  }
  if (progressed) launch.watch.progressed();
  return turn;
}

// Every warp of the block that can run gets a turn.
Worker::Turn Worker::run_round(Block& block) {
  bool ran = false, unfinished = false, only_waits = true, at_barriers = false;
  if (launch.seed) shuffle_warps(block);
  for (Warp* warp : block.warps) {
    if (warp->status == Status::ready) {
      warp->spin.moved = warp->spin.waits = false;
      warp->spin.rotations = 0;
      running = warp;
      wild_access = checked(warp) ? nullptr : report_wild_access;
      kw_switch_stack(&scheduler_stack, warp->stack_pointer);
      wild_access = nullptr;
      ran = true;
      only_waits = only_waits && warp->status == Status::ready && warp->spin.waits;
      if (launch.stopped(block.place + 1)) return Turn::stopped;
    }
    unfinished = unfinished || warp->status != Status::finished;
    at_barriers = at_barriers || warp->status == Status::waiting;
  }
  if (!unfinished) return Turn::ended;
  if (at_barriers && block.complete_barriers()) return Turn::computes;
  if (ran) return only_waits ? Turn::waits : Turn::computes;
  block.report_stuck();
  return Turn::stopped;
}

void Worker::shuffle_warps(Block& block) {
  for (size_t left = block.warps.size(); left > 1; --left)
    std::swap(block.warps[left - 1], block.warps[next_random(block.random) % left]);
}

void Worker::run() {
  watch_stacks();
  size_t at = 0;
  bool all_wait = true;
  while (!launch.stopped(0)) {
    while (resident.size() < (launch.seed ? SEEDED_RESIDENTS : 1) && start_block()) {
    }
    if (resident.empty()) break;
    Turn turn = run_turn(*resident[at]);
    all_wait = all_wait && turn == Turn::waits;
    if (turn == Turn::ended && resident[at]->counted) count_ended(*resident[at]);
    if (turn == Turn::ended || turn == Turn::stopped) {
      spare_.push_back(std::move(resident[at]));
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
    if (at < resident.size()) continue;
    bool started = !resident.empty() && start_blocks(all_wait ? resident.size() : 1);
    if (!resident.empty() && !started && all_wait && !wait_for_others()) break;
    at = 0;
    all_wait = true;
  }
  launch.watch.leave();
}

bool Worker::start_blocks(size_t wanted) {
  bool started = false;
  while (wanted-- && start_block()) started = true;
  return started;
}

bool Worker::start_block() {
  if (launch.next.load() >= launch.blocks) return false;
  if (monotonic_seconds() > launch.deadline) {
    launch.timed_out = true;
    return false;
  }
  if (spare_.empty()) {
    if (resident.size() >= most_) return false;
    try {
      spare_.push_back(std::make_unique<Block>(launch, *this));
    } catch (const std::exception&) {  // no stack, no memory
      most_ = resident.size();
      return false;
    }
  }
  u64 place = launch.next.fetch_add(1);
  if (place >= launch.blocks || launch.stopped(place)) return false;
  resident.push_back(std::move(spare_.back()));
  spare_.pop_back();
  resident.back()->start(place);
  launch.watch.progressed();
  return true;
}

// Called when all that the worker has waits and there is nothing to start. False: that will not change.
bool Worker::wait_for_others() {
  // Perhaps they wait for a block that was given up; but of a deadlock each worker tells its own part.
  if (launch.fault_place.load() != ~u64{0} && !launch.watch.found()) return false;
  if (launch.watch.all_wait(*this)) {
    if (launch.next.load() < launch.blocks)
      launch.unsupported = "more blocks that wait for one another than the emulator can hold at once";
    else
      launch.deadlocked = true;
    return false;
  }
  if (launch.workers > 1) std::this_thread::yield();
  return true;
}

void Worker::count_ended(const Block& block) {
  auto useful = block.shared.useful.begin(), end = block.shared.useful.end();
  for (auto [epoch, place] : block.barrier_ends) {
    useful = std::lower_bound(useful, end, epoch);
    BarrierTally& tally = barriers[place];
    ++tally.executed;
    tally.useless += useful == end || *useful != epoch;
  }
  u64 instructions = 0;
  for (const Warp* warp : block.warps) {
    warps.add(warp->instructions);
    instructions += warp->instructions;
  }
  blocks.add(instructions);
}

}  // namespace kw
