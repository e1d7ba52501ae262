#include "execute.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "code.h"
#include "grid.h"
#include "service.h"
#include "trace.h"

namespace {

struct Options {
    bool profile = false;
    double seconds = 0;  // of all kernels together; 0: no limit
    int threads = 1;
};

cudaError_t error_of(const std::string &kind) {
    if (kind == "misaligned") return cudaErrorMisalignedAddress;
    if (kind == "assert") return cudaErrorAssert;
    for (const char *memory : {"out of bounds", "null", "use after free"})
        if (kind == memory) return cudaErrorIllegalAddress;
    return cudaErrorLaunchFailure;
}

class Executing final : public Backend {
  public:
    explicit Executing(int socket) : service_(socket), code_(service_, memory_) { configure(); }

    void look_up(Kernel &kernel) override {
        std::string problem;
        if (const Kernel *found = code_.find(kernel.module, kernel.symbol, problem)) {
            kernel = *found;
        } else {
            unsupported(kernel.symbol.c_str(), problem.c_str());
        }
    }

    cudaError_t allocate(Address address, size_t bytes) override {
        std::string name = "the allocation of call " + std::to_string(++allocations_);
        try {
            std::string problem = memory_.allocate(address, bytes, name, false, 0);
            return problem.empty() ? cudaSuccess : cudaErrorMemoryAllocation;
        } catch (const kw::OutOfMemory &) {
            return cudaErrorMemoryAllocation;
        }
    }

    cudaError_t release(Address address) override {
        return memory_.release(address).empty() ? cudaSuccess : cudaErrorInvalidValue;
    }

    cudaError_t fill(Address to, int value, size_t bytes) override {
        const kw::Allocation *allocation = memory_.find(to, bytes);
        if (!allocation) return outside("cudaMemset", "write", to, bytes);
        std::memset(kw::Device::pointer(to), value, bytes);
        memory_.mark(*allocation, to, bytes);
        return cudaSuccess;
    }

    cudaError_t copy(Address to, Address from, size_t bytes) override {
        const kw::Allocation *target = memory_.find(to, bytes), *source = memory_.find(from, bytes);
        if (!target) return outside("cudaMemcpy", "write", to, bytes);
        if (!source) return outside("cudaMemcpy", "read", from, bytes);
        std::memmove(kw::Device::pointer(to), kw::Device::pointer(from), bytes);
        memory_.copy_marks(*target, to, *source, from, bytes);
        return cudaSuccess;
    }

    cudaError_t upload(Address to, const void *from, size_t bytes) override {
        const kw::Allocation *target = memory_.find(to, bytes);
        if (!target) return outside("cudaMemcpy", "write", to, bytes);
        std::memcpy(kw::Device::pointer(to), from, bytes);
        memory_.mark(*target, to, bytes);
        return cudaSuccess;
    }

    cudaError_t download(void *to, Address from, size_t bytes, const char *call) override {
        if (!memory_.find(from, bytes)) return outside(call, "read", from, bytes);
        std::memcpy(to, kw::Device::pointer(from), bytes);
        return cudaSuccess;
    }

    cudaError_t locate(const Variable &variable, Address &address) override {
        std::string problem;
        address = code_.address(variable.module, variable.symbol, problem);
        return address ? cudaSuccess : unsupported(variable.symbol.c_str(), problem.c_str());
    }

    cudaError_t write_symbol(const Variable &, size_t, const void *, size_t) override { return cudaErrorUnknown; }
    cudaError_t launch(Launch launch) override;
    void dropped(const Launch &, cudaError_t, const std::string &) override {}
    void errors_were_read() override {}

    cudaError_t unsupported(const char *call, const char *why) override {
        std::string line = std::string("unsupported: ") + call + ": " + why;
        if (said_.insert(line).second) service_.ask("note\t" + line);
        return cudaErrorNotSupported;
    }

  private:
    void configure();
    cudaError_t outside(const char *call, const char *verb, Address at, size_t bytes);
    cudaError_t fault(const kw::Finding &fault, const std::string &where);

    Service service_;
    kw::Device memory_;
    DeviceCode code_;
    Options options_;
    double used_ = 0;  // seconds of kernels so far
    int allocations_ = 0;
    std::set<std::string> said_;
};

void Executing::configure() {
    Service::Answer answer = service_.ask("configure");
    if (!answer.ok()) {
        std::fprintf(stderr, "kernelwright: %s\n", answer.why().c_str());
        std::_Exit(1);
    }
    std::string text = service_.read(answer);
    read_tables(runtime().device, text);
    for (const std::string &line : split(text, '\n')) {
        std::vector<std::string> fields = split(line, '\t');
        if (fields.size() < 3 || fields[0] != "option") continue;
        if (fields[1] == "profile") options_.profile = fields[2] == "1";
        if (fields[1] == "seconds") options_.seconds = std::atof(fields[2].c_str());
        if (fields[1] == "threads") options_.threads = std::atoi(fields[2].c_str());
    }
}

cudaError_t Executing::outside(const char *call, const char *verb, Address at, size_t bytes) {
    kw::Finding found;
    kw::Neighbour near = memory_.neighbour(at, bytes);
    found.kind = near.freed ? "use after free" : "out of bounds";
    found.message =
        std::string(verb) + " of " + kw::with_commas(bytes) + " bytes at " + kw::hexadecimal(at) + ", " + near.where;
    found.address = at;
    found.space = "global";
    service_.ask("fault", kw::fault_json(found, call));
    return cudaErrorInvalidValue;
}

cudaError_t Executing::fault(const kw::Finding &fault, const std::string &kernel) {
    service_.ask("fault", kw::fault_json(fault, kernel));
    return error_of(fault.kind);
}

// A kernel that fails leaves its error to whatever is called next, as on the device.
cudaError_t Executing::launch(Launch launch) {
    std::string problem;
    DeviceCode::Lowered code = code_.lower(launch.kernel->module, launch.kernel->symbol, problem);
    if (!code.kernel) return unsupported(launch.kernel->symbol.c_str(), problem.c_str());
    kw::LaunchRequest request{};
    request.kernel = code.kernel;
    request.dynamic_shared = static_cast<kw::u32>(launch.shared);
    request.cooperative = launch.cooperative;
    const unsigned grid[3] = {launch.grid.x, launch.grid.y, launch.grid.z};
    const unsigned block[3] = {launch.block.x, launch.block.y, launch.block.z};
    std::memcpy(request.grid, grid, sizeof grid);
    std::memcpy(request.block, block, sizeof block);
    request.parameters.assign(launch.parameters.begin(), launch.parameters.end());
    request.parameters.resize(std::max<size_t>(launch.parameters.size(), code.kernel->parameter_bytes) + 16);
    kw::GridOptions options;
    options.count = options_.profile;
    options.threads = options_.threads;
    options.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
    double began = kw::monotonic_seconds();
    options.deadline = options_.seconds > 0 ? began + options_.seconds - used_ : INFINITY;
    kw::GridOutcome outcome = kw::run_grid(*code.module, memory_, request, options);
    used_ += kw::monotonic_seconds() - began;
    switch (outcome.end) {
    case kw::GridOutcome::End::fault:
        runtime().sticky = fault(*outcome.fault, launch.kernel->symbol);
        break;
    case kw::GridOutcome::End::unsupported:
        return unsupported(launch.kernel->symbol.c_str(), outcome.message.c_str());
    case kw::GridOutcome::End::timeout:
        service_.ask("note\t" + outcome.message);
        runtime().sticky = cudaErrorLaunchTimeout;
        break;
    case kw::GridOutcome::End::done:
        if (options.count) service_.ask("trace", outcome.trace);
        break;
    }
    return cudaSuccess;
}

// Lowered kernels call this library's helpers by name, also where the program loaded it for a plugin alone.
void show_symbols() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<void *>(&show_symbols), &self)) dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

}  // namespace

Backend *executing(int socket) {
    show_symbols();
    return new Executing(socket);
}
