#include "replay.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#include "grid.h"
#include "trace.h"

namespace kw {

constexpr size_t OUTPUT_BYTES = 1 << 16;

struct Replayer::Result {
  std::string status = "ok";
  std::string fault = "null";
  std::string message;
  std::vector<std::string> traces;
  Findings findings;
  std::string output;  // what kernels printed, the first of it
};

Replayer::Replayer(const Request& request)
    : request_(request), module_(request.library), deadline_(monotonic_seconds() + request.seconds) {}

Output Replayer::run() {
  Output output;
  std::string results, pieces;
  for (size_t index = 0; index < request_.plans.size(); ++index) {
    const Plan& plan = request_.plans[index];
    Result result;
    device_.clear();
    try {
      replay(plan, result);
    } catch (const OutOfMemory& problem) {
      result.status = "unsupported";
      result.message = problem.what();
    } catch (const std::bad_alloc&) {
      result.status = "unsupported";
      result.message = "the plan needs more memory than the emulator has";
    }
    std::string names;
    for (const Buffer& buffer : plan.buffers) {
      if (!buffer.read_back || result.status != "ok") continue;
      const u8* at = Device::pointer(buffer.address);
      kept_.emplace_back(at, at + buffer.bytes);
      names += std::string(names.empty() ? "" : ",") + "[" + quoted(buffer.name) + "," + std::to_string(buffer.bytes) + "]";
    }
    std::string traces, findings;
    for (const std::string& trace : result.traces) traces += (traces.empty() ? "" : ",") + trace;
    for (const Finding& finding : result.findings.all())
      findings += (findings.empty() ? "" : ",") + finding_json(finding);
    results += std::string(results.empty() ? "" : ",") + "{\"result\":{\"status\":" + quoted(result.status) +
               ",\"fault\":" + result.fault + ",\"message\":" + quoted(result.message) + ",\"launches\":[" + traces +
               "],\"findings\":[" + findings + "],\"output\":" + quoted(result.output) + "},\"buffers\":[" + names + "]}";
    std::printf("progress %zu %zu\n", index + 1, request_.plans.size());
    std::fflush(stdout);
    if (result.status != "ok") break;
  }
  output.json = "[" + results + "]\n";
  for (const std::vector<u8>& bytes : kept_) output.pieces.push_back({bytes.data(), bytes.size()});
  return output;
}

void Replayer::replay(const Plan& plan, Result& result) {
  place(plan);
  place_variables();
  for (const Operation& operation : plan.operations)
    if (!perform(operation, plan, result)) return;
}

void Replayer::place(const Plan& plan) {
  for (const Buffer& buffer : plan.buffers) {
    std::string problem = device_.allocate(buffer.address, buffer.bytes, buffer.name, buffer.initialised, buffer.poison);
    if (!problem.empty()) throw std::runtime_error("buffer " + buffer.name + ": " + problem);
    if (!buffer.bytes) continue;
    if (buffer.data)
      std::memcpy(Device::pointer(buffer.address), buffer.data, buffer.bytes);
    else
      std::memset(Device::pointer(buffer.address), buffer.poison, buffer.bytes);
  }
}

void Replayer::place_variables() {
  u64 next = VARIABLE_BASE + GUARD_BYTES;
  module_.bind([&](const Variable& variable) {
    if (variable.external) return u64{0};
    u64 at = (next + 255) & ~u64{255};
    std::string problem = device_.allocate(at, variable.bytes, variable.name, true, 0);
    if (!problem.empty()) throw OutOfMemory("no room here for the variable " + variable.name + ": " + problem);
    next = at + variable.bytes + GUARD_BYTES;
    return at;
  });
  for (const Variable& variable : module_.variables) {
    std::vector<u8> image = variable.external ? std::vector<u8>() : module_.image(variable);
    if (!image.empty()) std::memcpy(Device::pointer(variable.address), image.data(), image.size());
  }
}

bool Replayer::host_fault(Result& result, const char* call, const std::string& message, u64 address) {
  Finding fault;
  fault.kind = "out of bounds";
  fault.message = message;
  fault.address = address;
  fault.space = "global";
  result.status = "fault";
  result.fault = fault_json(fault, call);
  return false;
}

bool Replayer::perform(const Operation& operation, const Plan& plan, Result& result) {
  auto where = [&](u64 at) {
    return with_commas(operation.bytes) + " bytes at " + hexadecimal(at) + ", " + device_.neighbour(at, operation.bytes).where;
  };
  const Allocation* to = nullptr;
  switch (operation.kind) {
    case OperationKind::allocate: {
      std::string problem = device_.allocate(operation.to, operation.bytes, "scratch at " + hexadecimal(operation.to), false, 0xCB);
      if (!problem.empty()) return host_fault(result, "cudaMalloc", problem, operation.to);
      return true;
    }
    case OperationKind::free: {
      std::string problem = device_.release(operation.to);
      if (!problem.empty()) return host_fault(result, "cudaFree", problem, operation.to);
      return true;
    }
    case OperationKind::memset:
    case OperationKind::upload:
    case OperationKind::copy:
      if (!operation.bytes) return true;
      to = device_.find(operation.to, operation.bytes);
      if (!to)
        return host_fault(result, operation.kind == OperationKind::memset ? "cudaMemset" : "cudaMemcpy",
                          "write of " + where(operation.to), operation.to);
      if (operation.kind == OperationKind::copy) {
        const Allocation* from = device_.find(operation.from, operation.bytes);
        if (!from) return host_fault(result, "cudaMemcpy", "read of " + where(operation.from), operation.from);
        std::memmove(Device::pointer(operation.to), Device::pointer(operation.from), operation.bytes);
        device_.copy_marks(*to, operation.to, *from, operation.from, operation.bytes);
        return true;
      }
      if (operation.kind == OperationKind::memset)
        std::memset(Device::pointer(operation.to), operation.value, operation.bytes);
      else
        std::memcpy(Device::pointer(operation.to), operation.data, operation.bytes);
      device_.mark(*to, operation.to, operation.bytes);
      return true;
    case OperationKind::write_symbol: {
      Variable* variable = module_.variable(operation.module, operation.name);
      if (!variable || operation.offset > variable->bytes || operation.bytes > variable->bytes - operation.offset)
        return host_fault(result, "cudaMemcpyToSymbol", "write outside the variable " + operation.name, 0);
      if (operation.bytes) std::memcpy(Device::pointer(variable->address + operation.offset), operation.data, operation.bytes);
      return true;
    }
    case OperationKind::launch:
      return launch(operation, plan, result);
  }
  return false;
}

bool Replayer::launch(const Operation& operation, const Plan& plan, Result& result) {
  auto refuse = [&](const std::string& message) {
    result.status = "unsupported";
    result.message = message;
    return false;
  };
  const Kernel* kernel = module_.kernel(operation.module, operation.name);
  if (!kernel) return refuse("kernel " + operation.name + " is not in the lowered module");
  if (operation.bytes < kernel->parameter_bytes) return refuse("a launch of " + operation.name + " with too few parameter bytes");
  LaunchRequest request{kernel, {}, {}, operation.shared, {}, operation.cooperative};
  std::memcpy(request.grid, operation.grid, sizeof request.grid);
  std::memcpy(request.block, operation.block, sizeof request.block);
  request.parameters.assign(operation.data, operation.data + operation.bytes);
  request.parameters.resize(request.parameters.size() + 16);
  GridOptions options{.count = plan.count,
                      .deadline = deadline_,
                      .threads = request_.threads,
                      .seed = plan.seed,
                      .multiprocessors = request_.multiprocessors};
  if (plan.keep_going) options.findings = &result.findings;
  options.print = [&](std::string_view text) { result.output += text.substr(0, OUTPUT_BYTES - result.output.size()); };
  GridOutcome outcome = run_grid(module_, device_, request, options);
  switch (outcome.end) {
    case GridOutcome::End::fault:
      result.status = "fault";
      result.fault = fault_json(*outcome.fault, kernel->name);
      return false;
    case GridOutcome::End::unsupported:
      return refuse(outcome.message);
    case GridOutcome::End::timeout:
      result.status = "timeout";
      result.message = outcome.message;
      return false;
    case GridOutcome::End::done:
      if (plan.count) result.traces.push_back(std::move(outcome.trace));
      return true;
  }
  return false;
}

}  // namespace kw
