// Running one launch on threads of this machine, for whoever launches: a replayed plan, or a CUDA program.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "run.h"

namespace kw {

struct GridOptions {
  bool count = false;    // fill in GridOutcome::trace
  u64 sample = 0;        // count only so many blocks, spread over the grid; 0: all
  // What the other blocks run, where it is not the same code: without counters, or without checks, too.
  const Module* uncounted_module = nullptr;
  const Kernel* uncounted_kernel = nullptr;
  double deadline = 0;   // of the monotonic clock, in seconds
  int threads = 1;       // of this machine, at most
  u32 checks = ALL_CHECKS;
  // Where findings go. Then the launch goes on after each that allows it (a bad load gives poison, a bad store is
  // dropped) and ends as `fault` all the same where a device would have failed. Null: the first error ends it.
  Findings* findings = nullptr;
  std::function<void(std::string_view)> print = {};  // takes what kernels print, piece by piece; from one thread at a time
  u64 seed = 0;          // not 0: blocks, warps and lanes take their turns in an order of their own
  u32 multiprocessors = 0;  // that the kernel is told of; 0: as many as an H200 has
};

struct GridOutcome {
  enum class End { done, fault, unsupported, timeout };
  End end = End::done;
  std::string message;         // unsupported, timeout: a sentence
  std::optional<Finding> fault;  // fault: the one that ended the launch, or the first
  std::string trace;           // done, counted: one JSON object (trace.h)
};

// Runs every block, or stops at the first error (that of the lowest block). Throws std::bad_alloc.
GridOutcome run_grid(Module& module, Device& device, const LaunchRequest& request, const GridOptions& options);

}  // namespace kw
