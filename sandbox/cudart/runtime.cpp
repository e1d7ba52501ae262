// The one runtime of this process, and the tables it is configured with.
#include "runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "execute.h"
#include "recording.h"
#include "service.h"

Runtime &runtime() {
    static Runtime *instance = new Runtime;  // never destroyed: candidates' destructors may still call us
    return *instance;
}

int64_t Device::operator[](std::string_view name) const {
    auto found = limits.find(name);
    return found == limits.end() ? 0 : found->second;
}

Kernel read_kernel(const std::vector<std::string> &fields) {
    Kernel kernel;
    kernel.symbol = fields[1];
    kernel.known = true;
    kernel.registers = std::stoi(fields[2]);
    kernel.static_shared = std::stoi(fields[3]);
    kernel.local_bytes = std::stoi(fields[4]);
    kernel.max_threads = std::stoi(fields[5]);
    if (fields.size() > 6 && !fields[6].empty()) {
        for (const std::string &piece : split(fields[6], ',')) {
            size_t colon = piece.find(':');
            kernel.parameters.emplace_back(std::stoi(piece.substr(0, colon)), std::stoi(piece.substr(colon + 1)));
        }
    }
    return kernel;
}

// Lines of tab-separated fields:
//     product  <name>
//     base     <address>   where the device's range begins; else kDeviceBase
//     limit    <name>    <number>
//     kernel   <symbol>  <registers> <shared> <local> <most threads>  <offset>:<size>,...
void read_tables(Device &device, std::string_view text) {
    for (const std::string &line : split(text, '\n')) {
        std::vector<std::string> fields = split(line, '\t');
        if (fields[0] == "product") device.product = fields[1];
        if (fields[0] == "base") device.base = std::stoull(fields[1]);
        if (fields[0] == "limit") device.limits[fields[1]] = std::stoll(fields[2]);
        if (fields[0] == "kernel") device.kernels[fields[1]] = read_kernel(fields);
    }
}

// Starts recording. Called once by the harness, before the candidate is loaded.
EXPORT void kernelwright_record(const char *tables) {
    read_tables(runtime().device, tables);
    if (Address base = runtime().device.base) {
        device_base = base;
        runtime().addresses = AddressSpace(base + kTaskBytes, kScratchBytes, false);
    }
    runtime().backend = recording();
}

Call::Call() : lock_(runtime().mutex) {
    Runtime &state = runtime();
    if (state.backend || state.asked) return;
    state.asked = true;
    if (const char *socket = std::getenv("KERNELWRIGHT_SERVICE"))
        state.backend = executing(std::atoi(socket));
    else
        std::fprintf(stderr, "kernelwright: no emulator: start this program with `kernelwright exec`\n");
}

cudaError_t Call::refused_in_records(const char *name) const {
    if (cudaError_t error = refused()) return error;
    return backend()->records() ? end(backend()->unsupported(name, "it is not recorded")) : cudaSuccess;
}
