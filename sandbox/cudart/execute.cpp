#include "execute.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "code.h"
#include "grid.h"
#include "service.h"
#include "trace.h"
#include "work.h"

namespace {

constexpr size_t kMostStackBytes = 512 << 10;  // local memory of a thread, of every architecture
constexpr kw::u32 kNestedBytes = 1 << 14;      // DYNAMIC_LOCALS of lowering/layout.py

struct Options {
    bool profile = false, stop_at_first = false;
    std::string mode = "checked";
    kw::u32 checks = 0;
    uint64_t seed = 0, sample_blocks = 0;
    int threads = 1;
};

cudaError_t error_of(const std::string &kind) {
    if (kind == "misaligned") return cudaErrorMisalignedAddress;
    if (kind == "assert") return cudaErrorAssert;
    for (const char *memory : {"out of bounds", "null", "use after free"})
        if (kind == memory) return cudaErrorIllegalAddress;
    return cudaErrorLaunchFailure;
}

kw::u32 checks_named(const std::string &list) {
    kw::u32 checks = 0;
    for (const std::string &name : split(list, ',')) {
        if (name == "memcheck") checks |= kw::MEMCHECK;
        if (name == "racecheck") checks |= kw::RACECHECK;
        if (name == "initcheck") checks |= kw::INITCHECK;
        if (name == "synccheck") checks |= kw::SYNCCHECK;
    }
    return checks;
}

const char *noun(Memory kind) {
    switch (kind) {
    case Memory::managed:
        return "managed memory";
    case Memory::host:
        return "pinned host memory";
    case Memory::array:
        return "the array";
    case Memory::device:
        break;
    }
    return "the memory";
}

class Executing final : public Backend {
  public:
    explicit Executing(int socket) : service_(socket), code_(service_, memory_) { configure(); }

    bool records() const override { return false; }
    void look_up(Kernel &kernel) override;
    cudaError_t allocate(Address address, size_t bytes, Memory kind) override;
    cudaError_t release(Address address) override;
    cudaError_t fill(Address to, int value, size_t bytes, const char *call) override;
    cudaError_t copy(Address to, Address from, size_t bytes, const char *call) override;
    cudaError_t upload(Address to, const void *from, size_t bytes, const char *call) override;
    cudaError_t download(void *to, Address from, size_t bytes, const char *call) override;
    cudaError_t locate(const Variable &variable, Address &address) override;
    cudaError_t write_symbol(const Variable &, size_t, const void *, size_t) override { return cudaErrorUnknown; }
    cudaError_t launch(Launch launch) override;
    void dropped(const Launch &, cudaError_t, const std::string &) override {}
    void errors_were_read() override {}
    void bad_free(Address address, const char *call) override;
    void note(const char *text) override { service_.ask(std::string("note\t") + text); }
    cudaError_t unsupported(const char *call, const char *why) override;
    void limit(int which, size_t value) override {
        constexpr int kStackSize = 0, kMallocHeapSize = 2;
        if (which == kStackSize) stack_bytes_ = (std::min(value, kMostStackBytes) + 15) / 16 * 16;
        if (which == kMallocHeapSize) memory_.heap.limit(value);
    }
    void lend(const void *from, size_t bytes, Address seen) override { memory_.lend(address_of(from), bytes, seen); }
    void take_back(const void *from) override { memory_.take_back(address_of(from)); }
    void reset() override;
    cudaError_t library(const LibraryCall &call) override;
    int threads() const override { return options_.threads; }
    void finish();

    kw::ImageTable &images() { return memory_.images; }

  private:
    class LibraryMemory;

    void configure();
    // `access`: "read of".
    cudaError_t outside(const char *call, const std::string &access, Address at, size_t bytes);
    bool looks_for(const std::string &kind) const { return options_.checks & kw::check_of(kind); }
    void report_findings(const std::string &kernel);
    void report_failure(const kw::Finding &fault, const std::string &kernel);
    void report(const char *kind, const std::string &message, Address at, const char *call);

    Service service_;
    kw::Device memory_;
    DeviceCode code_;
    Options options_;
    kw::Findings findings_;
    size_t reported_ = 0;  // of them
    size_t stack_bytes_ = 0;  // of a thread, where the program set it
    double used_ = 0;  // seconds of kernels so far
    uint64_t launches_ = 0, allocations_ = 0;
    std::map<std::string, uint64_t> library_calls_;
    std::set<std::string> said_;
    pid_t process_ = getpid();
};

void Executing::configure() {
    Service::Answer answer = service_.ask("configure");
    if (!answer.ok()) {
        std::fprintf(stderr, "kernelwright: %s\n", answer.why().c_str());
        std::_Exit(3);
    }
    std::string text = service_.read(answer);
    read_tables(runtime().device, text);
    for (const std::string &line : split(text, '\n')) {
        std::vector<std::string> fields = split(line, '\t');
        if (fields.size() < 3 || fields[0] != "option") continue;
        if (fields[1] == "checks") options_.checks = checks_named(fields[2]);
        if (fields[1] == "mode") options_.mode = fields[2];
        if (fields[1] == "sample_blocks") options_.sample_blocks = std::strtoull(fields[2].c_str(), nullptr, 10);
        if (fields[1] == "seed") options_.seed = std::strtoull(fields[2].c_str(), nullptr, 10);
        if (fields[1] == "profile") options_.profile = fields[2] == "1";
        if (fields[1] == "stop_at_first") options_.stop_at_first = fields[2] == "1";
        if (fields[1] == "threads") options_.threads = std::atoi(fields[2].c_str());
    }
}

void Executing::look_up(Kernel &kernel) {
    std::string problem;
    if (const Kernel *found = code_.find(kernel.module, kernel.symbol, problem))
        kernel = *found;
    else if (said_.insert(kernel.symbol + " " + problem).second)
        service_.ask("refused\t" + kernel.symbol + "\t" + problem);
}

cudaError_t Executing::allocate(Address address, size_t bytes, Memory kind) {
    std::string name = std::string(noun(kind)) + " of allocation " + std::to_string(++allocations_);
    // What the host writes into shared memory is not seen here.
    bool shared = kind == Memory::managed || kind == Memory::host;
    try {
        if (!memory_.allocate(address, bytes, name, shared, 0).empty()) return cudaErrorMemoryAllocation;
        if (shared) memory_.share_with_host(address);
        return cudaSuccess;
    } catch (const kw::OutOfMemory &problem) {
        if (said_.insert("no room").second)
            note((std::string(problem.what()) + ". The machine has too little memory for it, --memory is too low, or the " +
                  "program has more allocations than vm.max_map_count lets a process map")
                     .c_str());
        return cudaErrorMemoryAllocation;
    }
}

cudaError_t Executing::release(Address address) {
    return memory_.discard(address).empty() ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t Executing::fill(Address to, int value, size_t bytes, const char *call) {
    const kw::Allocation *allocation = memory_.find(to, bytes);
    if (!allocation) return outside(call, "write of", to, bytes);
    std::memset(kw::Device::pointer(to), value, bytes);
    memory_.mark(*allocation, to, bytes);
    return cudaSuccess;
}

cudaError_t Executing::copy(Address to, Address from, size_t bytes, const char *call) {
    const kw::Allocation *target = memory_.find(to, bytes), *source = memory_.find(from, bytes);
    if (!target) return outside(call, "write of", to, bytes);
    if (!source) return outside(call, "read of", from, bytes);
    std::memmove(kw::Device::pointer(to), kw::Device::pointer(from), bytes);
    memory_.copy_marks(*target, to, *source, from, bytes);
    return cudaSuccess;
}

cudaError_t Executing::upload(Address to, const void *from, size_t bytes, const char *call) {
    const kw::Allocation *target = memory_.find(to, bytes);
    if (!target) return outside(call, "write of", to, bytes);
    std::memcpy(kw::Device::pointer(to), from, bytes);
    memory_.mark(*target, to, bytes);
    return cudaSuccess;
}

cudaError_t Executing::download(void *to, Address from, size_t bytes, const char *call) {
    if (!memory_.find(from, bytes)) return outside(call, "read of", from, bytes);
    std::memcpy(to, kw::Device::pointer(from), bytes);
    return cudaSuccess;
}

cudaError_t Executing::locate(const Variable &variable, Address &address) {
    std::string problem;
    address = code_.address(variable.module, variable.symbol, problem);
    if (!address) return unsupported(variable.symbol.c_str(), problem.c_str());
    if (variable.managed) memory_.share_with_host(address);
    return cudaSuccess;
}

cudaError_t Executing::unsupported(const char *call, const char *why) {
    std::string line = std::string("unsupported: ") + call + ": " + why;
    if (*why && said_.insert(line).second) service_.ask("note\t" + line);
    return cudaErrorNotSupported;
}

// What the host got wrong is in the words of what kernels get wrong.
void Executing::report(const char *kind, const std::string &message, Address at, const char *call) {
    if (!looks_for(kind)) return;
    service_.ask("fault", "{\"kind\":" + kw::quoted(kind) + ",\"message\":" + kw::quoted(std::string(call) + ": " + message) +
                              ",\"address\":" + std::to_string(at) + ",\"space\":\"global\",\"call\":" + kw::quoted(call) + "}");
}

cudaError_t Executing::outside(const char *call, const std::string &access, Address at, size_t bytes) {
    kw::Neighbour near = memory_.neighbour(at, bytes);
    report(near.freed ? "use after free" : "out of bounds",
           access + " " + kw::with_commas(bytes) + " bytes at " + kw::hexadecimal(at) + ", " + near.where, at, call);
    return cudaErrorInvalidValue;
}

void Executing::bad_free(Address at, const char *call) {
    if (!on_device(reinterpret_cast<void *>(at))) {
        report("bad free", "of " + kw::hexadecimal(at) + ", which is no device memory", at, call);
        return;
    }
    report("bad free", "of " + kw::hexadecimal(at) + ", " + memory_.neighbour(at, 1).where, at, call);
}

// A kernel that fails leaves its error to whatever is called next, as on the device.
cudaError_t Executing::launch(Launch launch) {
    std::string problem;
    const std::string &name = launch.kernel->symbol;
    DeviceCode::Lowered code = code_.lower(launch.kernel->module, name, options_.mode, problem);
    if (!code.kernel) return unsupported(name.c_str(), problem.c_str());
    kw::Kernel kernel = *code.kernel;
    // Where calls nest without a known end it has this much for them; cudaLimitStackSize can make it more.
    if (kernel.local_bytes >= kNestedBytes) {
        kernel.local_bytes = std::max(kernel.local_bytes, static_cast<kw::u32>(stack_bytes_));
        uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z, blocks = options_.threads;
        rlimit room{};
        getrlimit(RLIMIT_DATA, &room);
        if ((threads + 31) / 32 * 32 * kernel.local_bytes * blocks > room.rlim_cur / 2) {
            std::string why = "no room here for stacks of " + kw::with_commas(kernel.local_bytes) + " bytes for " +
                              kw::with_commas(threads) + " threads a block, " + std::to_string(blocks) + " blocks at a time: --memory is too low";
            return unsupported(name.c_str(), why.c_str());
        }
    }
    kw::LaunchRequest request{};
    request.kernel = &kernel;
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
    options.sample = options_.sample_blocks;
    DeviceCode::Lowered plain;
    if (options.count && options.sample && !options_.checks) {
        plain = code_.lower(launch.kernel->module, name, "plain", problem);
        if (!plain.kernel) return unsupported(name.c_str(), problem.c_str());
        options.uncounted_module = plain.module;
        options.uncounted_kernel = plain.kernel;
    }
    options.threads = options_.threads;
    options.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
    options.checks = options_.checks;
    options.seed = options_.seed;
    options.multiprocessors = static_cast<kw::u32>(runtime().device["sm_count"]);
    if (options_.checks && !options_.stop_at_first) options.findings = &findings_;
    double began = kw::monotonic_seconds();
    options.deadline = INFINITY;  // the jail keeps the time, also of what runs on the host
    kw::GridOutcome outcome = kw::run_grid(*code.module, memory_, request, options);
    used_ += kw::monotonic_seconds() - began;
    launches_++;
    report_findings(name);
    for (const std::string &what : memory_.races().take_unwatched()) note(what.c_str());
    switch (outcome.end) {
    case kw::GridOutcome::End::fault:
        report_failure(*outcome.fault, name);
        runtime().sticky = error_of(outcome.fault->kind);
        break;
    case kw::GridOutcome::End::unsupported:
        return unsupported(name.c_str(), outcome.message.c_str());
    case kw::GridOutcome::End::timeout:  // there is no deadline
    case kw::GridOutcome::End::done:
        if (options.count) service_.ask("trace", outcome.trace);
        break;
    }
    return cudaSuccess;
}

// What a call of a library does to memory. One finding of a kind is enough for an argument of a call.
class Executing::LibraryMemory final : public DeviceMemory {
  public:
    LibraryMemory(Executing &device, const std::string &call) : device_(device), call_(call) {}

    bool reads(const char *what, const void *at, const Rows &rows) override {
        bool initcheck = device_.options_.checks & kw::INITCHECK;
        return each(at, rows, [&](const kw::Allocation *allocation, Address from, size_t bytes) {
            if (!allocation) return outside("read of", what, from, bytes);
            if (initcheck && !device_.memory_.initialised(*allocation, from, bytes)) unwritten(what, *allocation, from, bytes);
            return true;
        });
    }

    bool writes(const char *what, const void *at, const Rows &rows) override {
        return each(at, rows, [&](const kw::Allocation *allocation, Address from, size_t bytes) {
            if (!allocation) return outside("write of", what, from, bytes);
            device_.memory_.mark(*allocation, from, bytes);
            return true;
        });
    }

    bool failed = false;  // as a kernel fails that leaves its memory

  private:
    template <class Visit>
    bool each(const void *at, const Rows &rows, Visit visit) {
        Address from = device_.memory_.seen(address_of(at));
        size_t bytes = rows.bytes, left = rows.rows;
        // Rows without a gap are one.
        if (rows.grow == 0 && rows.pitch == static_cast<ptrdiff_t>(bytes) && left) bytes *= std::exchange(left, 1);
        const kw::Allocation *allocation = nullptr;
        for (; left; --left, from += rows.pitch, bytes += rows.grow) {
            if (!bytes) continue;
            if (!allocation || !allocation->holds(from, bytes)) allocation = device_.memory_.find(from, bytes);
            if (!visit(allocation, from, bytes)) return false;
        }
        return true;
    }

    bool outside(const char *access, const char *what, Address at, size_t bytes) {
        failed = true;
        device_.outside(call_.c_str(), std::string(access) + " " + what + ",", at, bytes);
        return false;
    }

    void unwritten(const char *what, const kw::Allocation &allocation, Address at, size_t bytes) {
        if (!device_.said_.insert(call_ + " " + what + " " + std::to_string(allocation.address)).second) return;
        device_.report("uninitialised",
                       std::string("read of ") + what + ", " + kw::with_commas(bytes) + " bytes at " + kw::hexadecimal(at) +
                           ", in " + allocation.name + ", not all of which were written before",
                       at, call_.c_str());
    }

    Executing &device_;
    const std::string &call_;
};

cudaError_t Executing::library(const LibraryCall &call) {
    LibraryMemory memory(*this, call.name);
    library_calls_[call.name]++;
    try {
        call.work(memory);
    } catch (const std::bad_alloc &) {
        return cudaErrorMemoryAllocation;
    }
    if (memory.failed) runtime().sticky = cudaErrorIllegalAddress;
    return memory.failed ? cudaErrorIllegalAddress : cudaSuccess;
}

// What the launch found that was not found before.
void Executing::report_findings(const std::string &kernel) {
    std::vector<kw::Finding> all = findings_.all();
    for (; reported_ < all.size(); reported_++) {
        kw::Finding &finding = all[reported_];
        if (finding.kernel.empty()) finding.kernel = kernel;
        if (finding.kind == "stack overflow" && stack_bytes_ < kMostStackBytes)
            finding.message += ". cudaDeviceSetLimit(cudaLimitStackSize, ...) gives a thread up to " + kw::with_commas(kMostStackBytes);
        if (looks_for(finding.kind)) service_.ask("fault", kw::finding_json(finding));
    }
}

// A device fails, too, where nobody asked for the check that says why.
void Executing::report_failure(const kw::Finding &fault, const std::string &kernel) {
    if (looks_for(fault.kind)) {
        if (options_.stop_at_first) service_.ask("fault", kw::fault_json(fault, kernel));
        return;
    }
    std::string where = " in block (" + std::to_string(fault.block[0]) + ", " + std::to_string(fault.block[1]) + ", " +
                        std::to_string(fault.block[2]) + ")";
    if (fault.line) where = " at " + fault.file.substr(fault.file.rfind('/') + 1) + ":" + std::to_string(fault.line);
    note((kernel + " failed, as it would on a device: " + fault.kind + where + "; --check=" +
          kw::name_of(kw::check_of(fault.kind)) + " tells more")
             .c_str());
}

// As if the device were new: no memory, no objects, variables as they were at first.
void Executing::reset() {
    memory_.clear();
    memory_.images.clear();
    code_.reset();
}

void Executing::finish() {
    if (getpid() != process_) return;  // a child that the program forked is not the program
    std::string left;
    for (auto &[address, allocation] : runtime().allocations)
        left += std::string(left.empty() ? "" : ",") + "{\"address\":" + std::to_string(address) +
                ",\"bytes\":" + std::to_string(allocation.bytes) + "}";
    std::string calls;
    for (auto &[name, times] : library_calls_)
        calls += std::string(calls.empty() ? "" : ",") + kw::quoted(name) + ":" + std::to_string(times);
    std::string heap;
    for (const kw::Heap::Left &one : memory_.heap.left())
        heap += std::string(heap.empty() ? "" : ",") + "{\"kernel\":" + kw::quoted(one.kernel) + ",\"file\":" + kw::quoted(one.file) +
                ",\"line\":" + (one.line ? std::to_string(one.line) : "null") + ",\"address\":" + std::to_string(one.address) +
                ",\"bytes\":" + std::to_string(one.bytes) + ",\"count\":" + std::to_string(one.count) + "}";
    service_.ask("finish", "{\"library_calls\":{" + calls + "},\"launches\":" + std::to_string(launches_) + ",\"kernel_seconds\":" + std::to_string(used_) +
                               ",\"kernels\":" + code_.resources() + ",\"left_allocated\":[" + left + "],\"left_in_heap\":[" + heap + "]}");
}

// Lowered kernels call this library's helpers by name, also where the program loaded it for a plugin alone.
void show_symbols() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<void *>(&show_symbols), &self)) dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

Executing *instance = nullptr;

struct AtExit {
    ~AtExit() {
        if (!instance) return;
        wait_for_host_calls(nullptr);
        Call call;
        instance->finish();
    }
} at_exit;

}  // namespace

Backend *executing(int socket) {
    show_symbols();
    runtime().addresses = AddressSpace(kDeviceBase, kDeviceBytes, true);
    return instance = new Executing(socket);
}

kw::ImageTable &images() { return instance->images(); }
