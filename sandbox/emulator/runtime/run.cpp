#include "run.h"

#include <chrono>
#include <cstring>

#include "fiber.h"

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

u32 site_line(const Warp* warp, u32 site) { return warp->worker->launch.module->sites[site].line; }

void yield_to_scheduler(Warp* warp) { kw_switch_stack(&warp->stack_pointer, warp->worker->scheduler_stack); }

namespace {

constexpr u8 UNDEFINED = 0xFF;  // in every byte of a local variable at first: as a float not a number

[[noreturn]] void leave_for_good(Warp* warp) {
  warp->status = Status::finished;
  yield_to_scheduler(warp);
  __builtin_unreachable();
}

void place_thread(const Warp* warp, u32 lane, u32 (&thread)[3]) {
  for (int axis = 0; axis < 3; ++axis) thread[axis] = warp->tid[axis][lane];
}

// An error that ends the launch here.
void record(Launch& launch, u64 block, Finding fault) {
  fault.kernel = launch.request->kernel->name;
  if (launch.findings) launch.findings->add(fault);
  std::lock_guard lock(launch.mutex);
  if (block >= launch.fault_block.load()) return;
  launch.fault = std::move(fault);
  launch.fault_block = block;
}

void run_warp(void* argument) {
  Warp* warp = static_cast<Warp*>(argument);
  warp->shared = warp->block->shared.bytes.data();
  warp->worker->launch.request->kernel->function(warp);
  leave_for_good(warp);
}

}  // namespace

static void place(Finding& finding, const Warp* warp, u32 lane) {
  std::memcpy(finding.block, warp->block->index, sizeof finding.block);
  place_thread(warp, lane, finding.thread);
}

void fail(Warp* warp, u32 lane, u32 line, const char* kind, const std::string& message, std::optional<u64> address,
          const char* space) {
  Finding fault{.kind = kind, .message = message, .line = line, .address = address, .space = space};
  place(fault, warp, lane);
  record(warp->worker->launch, warp->block->linear, std::move(fault));
  leave_for_good(warp);
}

void report(Warp* warp, u32 lane, u32 place_of, const char* kind, Finding finding) {
  Launch& launch = warp->worker->launch;
  if (finding.note && !launch.findings) return;
  finding.kind = kind;
  place(finding, warp, lane);
  if (!launch.findings) {
    record(launch, warp->block->linear, std::move(finding));
    leave_for_good(warp);
  }
  finding.kernel = launch.request->kernel->name;
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

Worker::Worker(Launch& shared_launch) : launch(shared_launch) { prepare(); }

Worker::~Worker() {
  for (u8* stack : stacks_) drop_stack(stack);
}

void Worker::prepare() {
  const LaunchRequest& request = *launch.request;
  const Kernel& kernel = *request.kernel;
  counters.assign(launch.module->sites.size() * COUNTERS, 0);
  u32 threads = request.block[0] * request.block[1] * request.block[2];
  u32 warp_count = (threads + LANES - 1) / LANES;
  u32 shared_total = request.dynamic_shared ? kernel.dynamic_offset + request.dynamic_shared : kernel.static_shared;
  block_.launch = &launch;
  block_.worker = this;
  block_.shared.prepare(shared_total, kernel.narrow_shared);
  local_stride_ = kernel.local_bytes * LANES;
  locals_.assign(size_t{local_stride_} * warp_count, UNDEFINED);
  for (u32 index = 0; index < warp_count; ++index) {
    auto warp = std::make_unique<Warp>();
    std::memset(static_cast<void*>(warp.get()), 0, sizeof(Warp));
    warp->parameters = request.parameters.data();
    warp->counters = counters.data();
    for (int axis = 0; axis < 3; ++axis) {
      warp->nctaid[axis] = request.grid[axis];
      warp->ntid[axis] = request.block[axis];
    }
    warp->warpid = index;
    warp->nwarpid = warp_count;
    warp->shared_total = shared_total;
    warp->shared_dynamic = request.dynamic_shared;
    warp->block = &block_;
    warp->worker = this;
    warp->locals = locals_.data() + size_t{local_stride_} * index;
    for (u32 lane = 0; lane < LANES; ++lane) {
      u32 thread = index * LANES + lane;
      if (thread < threads) warp->started |= u32{1} << lane;
      warp->tid[0][lane] = thread % request.block[0];
      warp->tid[1][lane] = thread / request.block[0] % request.block[1];
      warp->tid[2][lane] = thread / request.block[0] / request.block[1];
    }
    block_.warps.push_back(warp.get());
    warp_storage_.push_back(std::move(warp));
    stacks_.push_back(make_stack());
  }
}

void Worker::run() {
  watch_stacks();
  while (true) {
    u64 linear = launch.next.fetch_add(1);
    if (linear >= launch.blocks || launch.stopped(linear)) return;
    if (monotonic_seconds() > launch.deadline) {
      launch.timed_out = true;
      return;
    }
    run_block(linear);
  }
}

void Worker::run_block(u64 linear) {
  const LaunchRequest& request = *launch.request;
  block_.linear = linear;
  block_.index[0] = static_cast<u32>(linear % request.grid[0]);
  block_.index[1] = static_cast<u32>(linear / request.grid[0] % request.grid[1]);
  block_.index[2] = static_cast<u32>(linear / request.grid[0] / request.grid[1]);
  block_.shared.start_block();
  block_.global_epochs.clear();
  for (BarrierState& barrier : block_.barriers) barrier = {};
  u64 barriers_before = barriers;
  for (size_t index = 0; index < block_.warps.size(); ++index) {
    Warp* warp = block_.warps[index];
    std::memcpy(warp->ctaid, block_.index, sizeof warp->ctaid);
    warp->instructions = 0;
    warp->live = warp->started;
    warp->fuel = FUEL;
    warp->synced = 0;
    warp->status = Status::ready;
    warp->stack_end = stacks_[index] + STACK_BYTES;
    warp->stack_pointer = start_fiber(stacks_[index], run_warp, warp);
  }
  while (true) {
    bool unfinished = false, ran = false;
    for (Warp* warp : block_.warps) {
      if (warp->status == Status::ready) {
        kw_switch_stack(&scheduler_stack, warp->stack_pointer);
        ran = true;
        if (launch.stopped(linear + 1)) return;
      }
      unfinished = unfinished || warp->status != Status::finished;
    }
    if (!unfinished) break;
    if (!ran && !release_barriers()) {
      report_stuck();
      return;
    }
  }
  useless += barriers - barriers_before - std::min<u64>(block_.shared.useful, barriers - barriers_before);
  u64 instructions = 0;
  for (Warp* warp : block_.warps) {
    warps.add(warp->instructions);
    instructions += warp->instructions;
  }
  blocks.add(instructions);
}

// Completes every barrier whose threads are there. Exited threads are not waited for.
bool Worker::release_barriers() {
  bool released = false;
  for (int number = 0; number < 16; ++number) {
    BarrierState& barrier = block_.barriers[number];
    if (!barrier.arrived) continue;
    bool full = true;
    if (barrier.expected)
      full = barrier.arrived >= barrier.expected;
    else
      for (Warp* warp : block_.warps)
        full = full && (warp->status == Status::finished || (warp->status == Status::waiting && warp->barrier == number));
    if (!full) continue;
    complete(number, barrier);
    released = true;
  }
  return released;
}

void Worker::complete(int number, BarrierState& barrier) {
  BarrierState next;
  next.result[0] = barrier.votes_count;
  next.result[1] = barrier.votes_all ? ~u32{0} : 0;
  next.result[2] = barrier.votes_any ? ~u32{0} : 0;
  barrier = next;
  ++block_.shared.epoch;
  ++barriers;
  for (Warp* warp : block_.warps) {
    warp->synced = 0;
    if (warp->status == Status::waiting && warp->barrier == number) warp->status = Status::ready;
  }
}

void Worker::report_stuck() {
  Finding fault;
  fault.kind = "barrier";
  std::string where;
  u32 last = ~u32{0};
  for (Warp* warp : block_.warps) {
    if (warp->status != Status::waiting) continue;
    if (where.empty()) {
      fault.line = warp->barrier_line;
      place_thread(warp, static_cast<u32>(__builtin_ctz(warp->live | 0x80000000)), fault.thread);
    }
    if (warp->barrier_line == last) continue;
    last = warp->barrier_line;
    where += (where.empty() ? "barrier " : ", barrier ") + std::to_string(warp->barrier) + " at line " +
             std::to_string(warp->barrier_line);
  }
  fault.message = "the threads of the block wait at barriers that can never complete: " + where;
  std::memcpy(fault.block, block_.index, sizeof fault.block);
  record(launch, block_.linear, std::move(fault));
}

}  // namespace kw
