// The one runtime of this process, and the tables it is configured with.
#include "runtime.h"

#include <cstring>

#include "recording.h"

Runtime &runtime() {
    static Runtime *instance = new Runtime;  // never destroyed: candidates' destructors may still call us
    return *instance;
}

int64_t Device::operator[](std::string_view name) const {
    auto found = limits.find(name);
    return found == limits.end() ? 0 : found->second;
}

namespace {

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    while (true) {
        size_t end = text.find(at);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
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

}  // namespace

// Lines of tab-separated fields:
//     product  <name>
//     limit    <name>    <number>
//     kernel   <symbol>  <registers> <shared> <local> <most threads>  <offset>:<size>,...
// Starts recording. Called once by the harness, before the candidate is loaded.
EXPORT void kernelwright_record(const char *tables) {
    Runtime &state = runtime();
    for (const std::string &line : split(tables, '\n')) {
        std::vector<std::string> fields = split(line, '\t');
        if (fields[0] == "product") state.device.product = fields[1];
        if (fields[0] == "limit") state.device.limits[fields[1]] = std::stoll(fields[2]);
        if (fields[0] == "kernel") state.device.kernels[fields[1]] = read_kernel(fields);
    }
    state.backend = recording();
}

int stream_id(cudaStream_t stream) {
    auto number = reinterpret_cast<uintptr_t>(stream);
    if (number <= 2) return 0;  // null, cudaStreamLegacy, cudaStreamPerThread
    return runtime().streams.count(stream) ? *reinterpret_cast<int *>(stream) : -1;
}
