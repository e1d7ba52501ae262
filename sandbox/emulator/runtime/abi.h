// What lowered kernels and this runtime agree on. lowering/abi.py states the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kw {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr int LANES = 32;
constexpr int COUNTERS = 8;

// Device memory: sandbox/plan.py. Module variables lie behind what plans may address.
constexpr u64 DEVICE_BASE = 0x2000'0000'0000;
constexpr u64 TASK_BYTES = u64{1} << 36;
constexpr u64 SCRATCH_BYTES = u64{1} << 40;
constexpr u64 VARIABLE_BASE = DEVICE_BASE + TASK_BYTES + SCRATCH_BYTES;
constexpr u64 VARIABLE_BYTES = u64{1} << 32;
constexpr u64 HEAP_BASE = VARIABLE_BASE + VARIABLE_BYTES;  // what kernels allocate
constexpr u64 HEAP_BYTES = u64{1} << 32;
constexpr u64 RANGE_BYTES = TASK_BYTES + SCRATCH_BYTES + VARIABLE_BYTES + HEAP_BYTES;
constexpr u64 GUARD_BYTES = 1 << 16;

constexpr u64 SHARED_WINDOW = 0x1000'0000'0000;
constexpr u64 LOCAL_WINDOW = 0x1100'0000'0000;
constexpr u64 PARAMETER_WINDOW = 0x1200'0000'0000;
constexpr u64 FUNCTION_BASE = 0x1300'0000'0000;  // of functions' addresses: nothing lies there
constexpr u64 WINDOW_BYTES = LOCAL_WINDOW - SHARED_WINDOW;

// Back edges a warp runs before others get their turn: progress.h.
constexpr i32 FIRST_FUEL = 256;
constexpr i32 FULL_FUEL = 20'000;

class Module;
struct Block;
struct Worker;

enum class Status : u8 { ready, waiting, finished };

// What tells a warp that waits for others from one that computes: hashes of all that it knows, taken at back edges.
struct Spin {
  i32 grant;        // back edges until the next look
  bool moved;       // was in a state not seen before, since the scheduler picked it
  bool waits;       // gave its turn up because it waits
  u8 rotations;     // among its own lanes, since then
  u8 next;          // place in `recent`
  u64 recent[4];    // the last states
  u64 reference;    // an older one, for waits with many states: Brent's cycle finding
  u32 looks, limit;
  u64 epoch;        // of the deadlock watch, since when
  u64 anchor;       // was the first state
  u32 returns;      // times it was in that state again
  u32 epoch_looks;
  u32 line, lane;   // of the last back edge
  bool polls;       // its loop looks at what other threads may change
  u64 polled;       // where its last volatile, ordered or atomic access to global memory was
};

// One warp. The first part is read by lowered code at fixed offsets.
struct alignas(64) Warp {
  const u8* parameters;
  u64* counters;
  u64 instructions;
  u32 live;  // lanes that have not left the kernel
  i32 fuel;
  u32 ctaid[3];
  u32 nctaid[3];
  u32 ntid[3];
  u32 warpid;
  u32 nwarpid;
  u32 shared_total;
  u32 shared_dynamic;
  u32 smid;
  u8* shared;  // its block's shared memory
  u32 nsmid;
  u32 gridid;
  u64 workspace;  // of a cooperative grid: %envreg1 (high half) and %envreg2
  u32 in_order;   // all ones; 0 where a seed decides which lanes of a warp go first
  alignas(128) u32 tid[3][LANES];

  // Of the runtime alone.
  Block* block;
  Worker* worker;
  const Module* module;  // of the code that it runs
  bool checked;          // that code is lowered with checks and counters
  bool counts;           // what its block does is counted
  void* stack_pointer;  // of its fiber, while it does not run
  const u8* stack_end;  // one past the bytes of its fiber's stack
  u32 started;          // lanes it was started with
  u32 synced;           // warp-level synchronisations since the last barrier
  u32 arrived;          // lanes for which others of the warp have been at a barrier: they go on from theirs
  bool passes;          // those that run are such lanes, at their barrier
  Status status;
  u8 barrier;          // where it waits
  u32 barrier_line;
  u8* locals;          // [lane][local bytes]
  u8* local_marks;     // of the same shape; 1: written. Null: nobody asks
  u64 clock_reads, slept;  // what its clock counts besides instructions
  Spin spin;

  u32 thread(u32 lane) const { return warpid * LANES + lane; }
};

static_assert(offsetof(Warp, counters) == 8);
static_assert(offsetof(Warp, instructions) == 16);
static_assert(offsetof(Warp, live) == 24);
static_assert(offsetof(Warp, fuel) == 28);
static_assert(offsetof(Warp, ctaid) == 32);
static_assert(offsetof(Warp, nctaid) == 44);
static_assert(offsetof(Warp, ntid) == 56);
static_assert(offsetof(Warp, warpid) == 68);
static_assert(offsetof(Warp, nwarpid) == 72);
static_assert(offsetof(Warp, shared_total) == 76);
static_assert(offsetof(Warp, shared_dynamic) == 80);
static_assert(offsetof(Warp, smid) == 84);
static_assert(offsetof(Warp, shared) == 88);
static_assert(offsetof(Warp, nsmid) == 96);
static_assert(offsetof(Warp, gridid) == 100);
static_assert(offsetof(Warp, workspace) == 104);
static_assert(offsetof(Warp, in_order) == 112);
static_assert(offsetof(Warp, tid) == 128);

// Scheduling state of one lowered function, on its stack.
struct State {
  u32 mask;    // lanes that run
  u32 target;  // block they are about to enter
  u32 blocks;
  u32 rotate;  // first block to consider next, once
  u32 live;    // of a device function: lanes that have not returned
  u32 is_kernel;
  u32 forced;  // block + 1 of a warp collective that runs although lanes are missing
  u32 line;    // of the back edge where fuel ran out, times 2; + 1 if its loop polls (lowering/analysis.py)
  u32 lowest;  // no lanes wait at blocks below: lanes that go to one of them run on without the scheduler
  u32 waiting[1];  // [blocks], then parked[blocks], then notes[blocks]

  u32* parked() { return waiting + blocks; }
  u32* notes() { return waiting + 2 * blocks; }  // of parked lanes: source line * 2, + 1 at a warp collective, or APART
};

// At a barrier 0 of all threads that the lanes of a warp need not reach by one instruction (barrier.sync without .aligned).
constexpr u32 APART = u32{1} << 31;

static_assert(offsetof(State, live) == 16);
static_assert(offsetof(State, lowest) == 32);
static_assert(offsetof(State, waiting) == 36);

// Counters of a site, by kind (lowering/abi.py).
enum Counter { EXECUTIONS = 0, ACTIVE = 1 };
enum BranchCounter { BRANCHES = 0, DIVERGENT = 1 };
enum AccessCounter { REQUESTS = 0, SECTORS = 1, BYTES = 2, WAVEFRONTS = 3, IDEAL = 4, ACCESS_LANES = 5, ADDRESSES = 6 };

}  // namespace kw
