// Running one launch: workers, blocks, warps, faults.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi.h"
#include "asynchronous.h"
#include "device.h"
#include "findings.h"
#include "module.h"
#include "progress.h"
#include "races.h"
#include "shared.h"

namespace kw {

struct LaunchRequest {
  const Kernel* kernel;
  u32 grid[3];
  u32 block[3];
  u32 dynamic_shared;
  std::vector<u8> parameters;
  bool cooperative;
};

// Sums from which a spread over warps or blocks is made.
struct Tally {
  u64 count = 0, minimum = ~u64{0}, maximum = 0;
  long double sum = 0, squares = 0;
  void add(u64 value);
  void merge(const Tally& other);
};

// State that all workers of a launch share. Blocks start in the order of their places; place and linear index are
// the same unless a seed shuffles them (order.h).
struct Launch {
  const LaunchRequest* request;
  Module* module;
  Device* device;
  bool count;
  u64 sample = 0;  // count so many blocks, spread over the grid; 0: all
  // What blocks that are not counted run instead; null: the same code.
  const Module* uncounted_module = nullptr;
  const Kernel* uncounted_kernel = nullptr;
  double deadline;  // of the monotonic clock
  u64 seed;             // 0: in order
  u32 multiprocessors;  // that blocks are said to run on
  u32 number;           // %gridid
  u64 workspace;        // of a cooperative grid
  int workers;
  u64 blocks;
  u32 checks = ALL_CHECKS;
  Races* races = nullptr;                 // null: races in global memory are not looked for
  Findings* findings = nullptr;           // null: the first error ends the launch, notes are for nobody
  std::atomic<u64> next{0};               // place of the next block to start
  std::atomic<u64> fault_place{~u64{0}};  // the lowest place of a block with a fault: it is the one reported
  std::atomic<bool> timed_out{false}, deadlocked{false};
  std::atomic<const char*> unsupported{nullptr};
  std::mutex mutex;
  std::optional<Finding> fault;
  const std::function<void(std::string_view)>* print = nullptr;  // takes what kernels print
  std::mutex print_mutex;
  DeadlockWatch watch;

  bool checked(Check check) const { return checks & check; }
  bool keeps_going() const { return findings != nullptr; }
  bool stopped(u64 place) const {
    return fault_place.load(std::memory_order_relaxed) < place || timed_out.load(std::memory_order_relaxed) ||
           unsupported.load(std::memory_order_relaxed);
  }
};

struct BarrierState {
  u32 arrived = 0;   // threads, whole warps for those that are there
  u32 expected = 0;  // 0: all
  u32 votes_any = 0, votes_count = 0;
  bool votes_all = true;
  u32 result[3] = {};  // of the last reduction: count, all, any
};

constexpr int BARRIERS = 16;

// A block that is resident: its warps with their stacks, its shared memory. Used again for block after block.
struct Block {
  Block(Launch& launch, Worker& worker);  // throws OutOfStacks, std::bad_alloc
  ~Block();
  Block(const Block&) = delete;
  void start(u64 place);
  bool complete_barriers();  // true: some warps go on
  void report_stuck();       // every warp waits at a barrier
  void report_deadlock();
  // A place that the host can change and one of its warps waits for.
  std::optional<u64> waits_for_host() const;

  Launch* launch;
  Worker* worker;
  u64 place = 0, linear = 0;
  const Kernel* kernel = nullptr;  // that it runs
  bool counted = false;
  u32 index[3] = {};
  std::vector<Warp*> warps;  // in the order of their turns
  u64 random = 0;            // state of its random numbers, for a seed
  SharedMemory shared;
  BarrierState barriers[BARRIERS];
  Asynchronous asynchronous;
  ClusterBarrier cluster;
  u64 barriers_completed = 0;
  std::vector<std::pair<u32, u32>> barrier_ends;  // of a counted block: the epoch that each ended, and its place
  BlockRaces races;
  // Epochs of the block's last load and store of each allocation, to see what barriers order in global memory.
  std::vector<std::pair<const Allocation*, std::pair<u32, u32>>> global_epochs;

 private:
  void complete(int number);

  std::vector<std::unique_ptr<Warp>> warp_storage_;
  std::vector<u8*> stacks_;
  std::vector<u8> locals_, local_marks_;
};

u32 warp_count(const LaunchRequest& request);
u32 shared_bytes(const LaunchRequest& request);

// A finding that was told, and how often it came again.
struct Repeat {
  size_t number = Findings::NONE;
  u64 times = 0;
};

struct BarrierTally {
  u64 executed = 0, useless = 0;
};

// One thread. It runs one block to its end, each warp on a fiber of its own; where the warps of all its blocks only
// wait, it starts more blocks, for what they wait for may be done there.
struct Worker {
  explicit Worker(Launch& launch);  // throws as Block does
  Worker(const Worker&) = delete;
  void run();

  Launch& launch;
  std::vector<u64> counters;   // [site][COUNTERS]
  std::vector<u64> uncounted;  // the same of blocks outside the sample, which nobody reads
  Tally warps, blocks;
  std::map<u32, BarrierTally> barriers;  // by place
  void* scheduler_stack = nullptr;
  const Allocation* hint = nullptr;        // of the last access: the next one is likely to be there, too
  const Allocation* other_hint = nullptr;  // of one before
  // What was told, by kind and place.
  std::map<std::pair<const char*, u32>, Repeat> repeats;
  DeadlockWatch::Confirmation confirmation;
  std::vector<std::unique_ptr<Block>> resident;

 private:
  enum class Turn { ended, waits, computes, stopped };
  Turn run_turn(Block& block);
  Turn run_round(Block& block);
  void shuffle_warps(Block& block);
  bool start_block();
  bool start_blocks(size_t wanted);
  bool wait_for_others();
  void count_ended(const Block& block);

  std::vector<std::unique_ptr<Block>> spare_;
  size_t most_;  // blocks that it may hold
};

// Leaves the warp's fiber; it goes on when the scheduler picks it again.
void yield_to_scheduler(Warp* warp);
// The next basic block to run and, in state->mask, its lanes; -1 when all have left.
extern "C" i32 kw_schedule(Warp* warp, State* state);

// A finding about one lane that leaves the launch no way to go on. Never returns.
[[noreturn]] void fail(Warp* warp, u32 lane, u32 line, const char* kind, const std::string& message,
                       std::optional<u64> address = {}, const char* space = "");
// A finding that the launch can go on after. Returns when it does; else like `fail`. Notes always return.
void report(Warp* warp, u32 lane, u32 place, const char* kind, Finding finding);
// Has this worker told a finding of this kind and place? Then it is counted only.
bool repeated(Warp* warp, const char* kind, u32 place);
[[noreturn]] void leave_for_good(Warp* warp);
[[noreturn]] void give_up(Warp* warp, const char* unsupported);

// Records the fault of a block, unless one that started earlier has one.
void record(const Block& block, Finding fault);
void place_thread(const Warp* warp, u32 lane, u32 (&thread)[3]);

u32 site_line(const Warp* warp, u32 site);
// Whether its code is lowered with checks and counters.
inline bool checked(const Warp* warp) { return warp->checked; }
double monotonic_seconds();

}  // namespace kw
