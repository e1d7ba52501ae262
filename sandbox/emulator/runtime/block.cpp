// A resident block: its warps and stacks, and what its barriers do.
#include <bit>
#include <cstring>

#include "fiber.h"
#include "order.h"
#include "run.h"

namespace kw {
namespace {

constexpr u8 UNDEFINED = 0xFF;  // in every byte of a local variable at first: as a float not a number
constexpr u32 MOST_MARKED_LOCALS = 1 << 14;  // bytes a thread; with more, uninitialised reads are not looked for

void run_warp(void* argument) {
  Warp* warp = static_cast<Warp*>(argument);
  warp->shared = warp->block->shared.bytes.data();
  warp->block->kernel->function(warp);
  if (!warp->block->asynchronous.idle()) finish_copies(warp);
  leave_for_good(warp);
}

void prepare_warp(Warp& warp, const Launch& launch, u32 number) {
  const LaunchRequest& request = *launch.request;
  u32 threads = request.block[0] * request.block[1] * request.block[2];
  std::memset(static_cast<void*>(&warp), 0, sizeof warp);
  warp.parameters = request.parameters.data();
  for (int axis = 0; axis < 3; ++axis) {
    warp.nctaid[axis] = request.grid[axis];
    warp.ntid[axis] = request.block[axis];
  }
  warp.warpid = number;
  warp.nwarpid = warp_count(request);
  warp.shared_total = shared_bytes(request) - request.kernel->reserved_shared;
  warp.shared_dynamic = request.dynamic_shared;
  warp.nsmid = launch.multiprocessors;
  warp.gridid = launch.number;
  warp.workspace = launch.workspace;
  warp.in_order = launch.seed ? 0 : ~u32{0};
  for (u32 lane = 0; lane < LANES; ++lane) {
    u32 thread = number * LANES + lane;
    if (thread < threads) warp.started |= u32{1} << lane;
    warp.tid[0][lane] = thread % request.block[0];
    warp.tid[1][lane] = thread / request.block[0] % request.block[1];
    warp.tid[2][lane] = thread / request.block[0] / request.block[1];
  }
}

}  // namespace

u32 warp_count(const LaunchRequest& request) {
  return (request.block[0] * request.block[1] * request.block[2] + LANES - 1) / LANES;
}

u32 shared_bytes(const LaunchRequest& request) {
  const Kernel& kernel = *request.kernel;
  return request.dynamic_shared ? kernel.dynamic_offset + request.dynamic_shared : kernel.reserved_shared + kernel.static_shared;
}

Block::Block(Launch& its_launch, Worker& its_worker) : launch(&its_launch), worker(&its_worker) {
  const LaunchRequest& request = *launch->request;
  u32 count = warp_count(request);
  shared.prepare(shared_bytes(request), request.kernel->reserved_shared, request.kernel->narrow_shared);
  size_t stride = size_t{request.kernel->local_bytes} * LANES;
  locals_.assign(stride * count, UNDEFINED);
  bool asked = launch->checked(INITCHECK) && launch->module->checked && request.kernel->local_bytes <= MOST_MARKED_LOCALS;
  if (asked) local_marks_.assign(stride * count, 0);
  stacks_.reserve(count);
  for (u32 number = 0; number < count; ++number) {
    auto warp = std::make_unique<Warp>();
    prepare_warp(*warp, *launch, number);
    warp->block = this;
    warp->worker = worker;
    warp->locals = locals_.data() + stride * number;
    warp->local_marks = asked ? local_marks_.data() + stride * number : nullptr;
    warps.push_back(warp.get());
    warp_storage_.push_back(std::move(warp));
    stacks_.push_back(make_stack());
  }
}

Block::~Block() {
  for (u8* stack : stacks_) drop_stack(stack);
}

void Block::start(u64 its_place) {
  const LaunchRequest& request = *launch->request;
  place = its_place;
  linear = shuffled(place, launch->blocks, launch->seed);
  index[0] = static_cast<u32>(linear % request.grid[0]);
  index[1] = static_cast<u32>(linear / request.grid[0] % request.grid[1]);
  index[2] = static_cast<u32>(linear / request.grid[0] / request.grid[1]);
  random = launch->seed + linear;
  counted = launch->count && sampled(linear, launch->blocks, launch->sample, launch->seed + launch->number);
  bool other = !counted && launch->uncounted_module;
  kernel = other ? launch->uncounted_kernel : request.kernel;
  shared.start_block();
  races = {};
  if (!local_marks_.empty()) {
    std::fill(local_marks_.begin(), local_marks_.end(), 0);
    std::fill(locals_.begin(), locals_.end(), UNDEFINED);
  }
  asynchronous.start_block();
  cluster = {};
  global_epochs.clear();
  barriers_completed = 0;
  barrier_ends.clear();
  for (BarrierState& barrier : barriers) barrier = {};
  for (size_t number = 0; number < warps.size(); ++number) {
    Warp* warp = warps[number];
    std::memcpy(warp->ctaid, index, sizeof warp->ctaid);
    warp->module = other ? launch->uncounted_module : launch->module;
    warp->checked = warp->module->checked;
    warp->counts = counted;
    warp->counters = (counted || worker->uncounted.empty() ? worker->counters : worker->uncounted).data();
    warp->smid = static_cast<u32>(place % launch->multiprocessors);
    warp->instructions = 0;
    warp->live = warp->started;
    warp->synced = warp->arrived = 0;
    warp->passes = false;
    warp->clock_reads = warp->slept = 0;
    warp->spin = {};
    warp->spin.grant = warp->fuel = FIRST_FUEL;
    warp->spin.limit = 1;
    warp->status = Status::ready;
    warp->stack_end = stacks_[number] + STACK_BYTES;
    warp->stack_pointer = start_fiber(stacks_[number], run_warp, warp);
  }
}

// Completes every barrier whose threads are there. Exited threads are not waited for.
bool Block::complete_barriers() {
  bool released = false;
  for (int number = 0; number < BARRIERS; ++number) {
    BarrierState& barrier = barriers[number];
    if (!barrier.arrived) continue;
    bool full = true;
    if (barrier.expected)
      full = barrier.arrived >= barrier.expected;
    else
      for (Warp* warp : warps)
        full = full && (warp->status == Status::finished || (warp->status == Status::waiting && warp->barrier == number));
    if (!full) continue;
    complete(number);
    released = true;
  }
  return released;
}

void Block::complete(int number) {
  BarrierState& barrier = barriers[number];
  BarrierState next;
  next.result[0] = barrier.votes_count;
  next.result[1] = barrier.votes_all ? ~u32{0} : 0;
  next.result[2] = barrier.votes_any ? ~u32{0} : 0;
  barrier = next;
  if (counted)
    for (const Warp* warp : warps)
      if (warp->status == Status::waiting && warp->barrier == number) {
        barrier_ends.push_back({shared.epoch, warp->barrier_line});
        break;
      }
  ++shared.epoch;
  ++barriers_completed;
  for (Warp* warp : warps) {
    warp->synced = 0;
    if (warp->status != Status::waiting || warp->barrier != number) continue;
    warp->status = Status::ready;
    // Perhaps it waits for other blocks next: look soon.
    warp->spin.grant = std::min(warp->spin.grant, FIRST_FUEL);
    warp->fuel = std::min(warp->fuel, FIRST_FUEL);
  }
}

void Block::report_stuck() {
  Finding fault;
  fault.kind = "barrier";
  std::string where;
  u32 last = ~u32{0};
  for (Warp* warp : warps) {
    if (warp->status != Status::waiting) continue;
    if (where.empty()) {
      fault.line = warp->barrier_line;
      place_thread(warp, static_cast<u32>(std::countr_zero(warp->live | 0x80000000)), fault.thread);
    }
    if (warp->barrier_line == last) continue;
    last = warp->barrier_line;
    where += (where.empty() ? "barrier " : ", barrier ") + std::to_string(warp->barrier) + " at line " +
             std::to_string(line_of(warp->barrier_line));
  }
  fault.message = "the threads of the block wait at barriers that can never complete: " + where;
  record(*this, std::move(fault));
}

std::optional<u64> Block::waits_for_host() const {
  for (const Warp* warp : warps) {
    u64 at = warp->spin.polled;
    if (warp->status != Status::ready || !at) continue;
    const Allocation* allocation = launch->device->find(at, 1);
    if (allocation ? allocation->of_host : at - DEVICE_BASE >= RANGE_BYTES) return at;
  }
  return {};
}

void Block::report_deadlock() {
  Finding fault;
  fault.kind = "deadlock";
  u32 spinning = 0, waiting = 0;
  for (Warp* warp : warps) {
    waiting += warp->status == Status::waiting;
    if (warp->status != Status::ready || spinning++) continue;
    fault.line = warp->spin.line;
    place_thread(warp, warp->spin.lane, fault.thread);
  }
  if (!spinning) return;
  auto warps_text = [](u32 count) { return std::to_string(count) + (count == 1 ? " warp" : " warps"); };
  fault.message = "waits for what no thread will do any more: of its block, " + warps_text(spinning) +
                  " loop without any effect" + (waiting ? " and " + warps_text(waiting) + " wait at barriers" : "") +
                  ", and nothing changes in memory";
  record(*this, std::move(fault));
}

}  // namespace kw
