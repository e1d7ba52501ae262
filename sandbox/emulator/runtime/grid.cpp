#include "grid.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "trace.h"

namespace kw {
namespace {

constexpr u32 MAX_SHARED = 232448;  // 227 KiB, the most a block can have on sm_90
constexpr u32 MULTIPROCESSORS = 132;  // of an H200
constexpr u64 WORKSPACE = VARIABLE_BASE + VARIABLE_BYTES - GUARD_BYTES;
constexpr u64 WORKSPACE_BYTES = 256;

std::atomic<u32> launches{0};

GridOutcome refused(const std::string& message) { return {GridOutcome::End::unsupported, message, {}, {}}; }

// Where the blocks of a cooperative grid meet: zeros, for one launch.
class Workspace {
 public:
  Workspace(Device& device, bool wanted) : device_(device) {
    if (!wanted) return;
    if (std::string problem = device_.allocate(WORKSPACE, WORKSPACE_BYTES, "the grid's workspace", true, 0); !problem.empty())
      throw OutOfMemory(problem);
    address = WORKSPACE;
    std::memset(Device::pointer(address), 0, WORKSPACE_BYTES);
  }
  ~Workspace() {
    if (address) device_.release(address);
  }
  Workspace(const Workspace&) = delete;
  u64 address = 0;

 private:
  Device& device_;
};

// Why nothing goes on, where that is because launches here end before the host does what comes after them; or "".
std::string host_waited_for(const Launch& launch, const std::vector<std::unique_ptr<Worker>>& workers) {
  for (const auto& worker : workers)
    for (const auto& block : worker->resident)
      if (std::optional<u64> at = block->waits_for_host()) {
        const Allocation* allocation = launch.device->find(*at, 1);
        return "a kernel that waits for the host: it reads " + (allocation ? allocation->name : "the host's memory") +
               " until the host changes it, and here a launch ends before the host goes on";
      }
  return "";
}

}  // namespace

GridOutcome run_grid(Module& module, Device& device, const LaunchRequest& request, const GridOptions& options) {
  const Kernel& kernel = *request.kernel;
  u64 threads = u64{request.block[0]} * request.block[1] * request.block[2];
  u64 blocks = u64{request.grid[0]} * request.grid[1] * request.grid[2];
  if (!module.missing().empty()) return refused("the external variable " + module.missing() + ", which nothing here defines");
  if (threads == 0 || threads > 1024) return refused("a block of " + std::to_string(threads) + " threads");
  if (u64{kernel.dynamic_offset} - kernel.reserved_shared + request.dynamic_shared > MAX_SHARED)
    return refused("more shared memory than a block can have");
  u64 wanted = std::min<u64>(blocks, static_cast<u64>(std::max(1, options.threads)));
  Workspace workspace(device, request.cooperative);
  Launch launch;
  launch.request = &request;
  launch.module = &module;
  launch.device = &device;
  launch.count = options.count && module.checked;
  if (launch.count && options.sample && options.sample < blocks) {
    launch.sample = options.sample;
    launch.uncounted_module = options.uncounted_module;
    launch.uncounted_kernel = options.uncounted_kernel;
  }
  launch.deadline = options.deadline;
  launch.checks = options.checks;
  launch.findings = options.findings;
  launch.print = &options.print;
  launch.seed = options.seed;
  launch.multiprocessors = options.multiprocessors ? options.multiprocessors : MULTIPROCESSORS;
  launch.number = ++launches;
  launch.workspace = workspace.address;
  launch.workers = static_cast<int>(wanted);
  Races races{&device.races(), device.races().begin_launch() << RACE_SEGMENT_SHIFT};
  if (launch.checked(RACECHECK) && module.checked && threads * blocks > 1) launch.races = &races;
  launch.blocks = blocks;
  launch.watch.join(launch.workers);
  if (launch.count) device.clear_sectors();
  if (launch.checked(INITCHECK) && module.checked) device.look_for_written();
  std::vector<std::unique_ptr<Worker>> workers;
  for (u64 i = 0; i < wanted; ++i) workers.push_back(std::make_unique<Worker>(launch));
  std::vector<std::thread> others;
  for (u64 i = 1; i < wanted; ++i) others.emplace_back([&worker = *workers[i]] { worker.run(); });
  workers[0]->run();
  for (std::thread& other : others) other.join();

  if (launch.deadlocked && !launch.unsupported.load()) {
    if (std::string host = host_waited_for(launch, workers); !host.empty()) return refused(host);
    for (const auto& worker : workers)
      for (const auto& block : worker->resident) block->report_deadlock();
  }
  if (options.findings)
    for (const auto& worker : workers)
      for (const auto& [what, repeat] : worker->repeats) options.findings->more(repeat.number, repeat.times);
  if (launch.fault) return {GridOutcome::End::fault, {}, launch.fault, {}};
  if (const char* what = launch.unsupported.load()) return refused(what);
  if (launch.timed_out) return {GridOutcome::End::timeout, "kernel " + kernel.name + " did not end in time", {}, {}};
  GridOutcome outcome;
  if (launch.count) {
    std::vector<const Worker*> all;
    for (const auto& worker : workers) all.push_back(worker.get());
    outcome.trace = trace_json(launch, all);
  }
  return outcome;
}

}  // namespace kw
