#include "code.h"

#include <cstring>
#include <set>
#include <stdexcept>

#include "fatbin.h"
#include "trace.h"

namespace {

// Of linked object files, several may have a variable `$str` of their own: the first value tells them apart.
std::string key_of(const kw::Variable &variable) {
    return variable.name + '\0' + std::string(variable.data.begin(), variable.data.end());
}

}  // namespace

DeviceCode::Unit &DeviceCode::unit(int module) {
    Unit &unit = units_[module];
    if (unit.sent) return unit;
    unit.sent = true;
    const Device &device = runtime().device;
    Code code = read_fat_binary(runtime().fat_binaries.at(module),
                                static_cast<int>(device["major"] * 10 + device["minor"]));
    unit.problem = code.problem;
    if (!unit.problem.empty()) return unit;
    // Object files that were linked together (-rdc=true) are one module of several texts.
    std::string texts = code.ptx[0];
    for (size_t i = 1; i < code.ptx.size(); i++) texts += '\0' + code.ptx[i];
    Service::Answer answer = service_.ask("module\t" + std::to_string(module), texts);
    if (!answer.ok()) {
        unit.problem = answer.why();
        return unit;
    }
    for (const std::string &line : split(service_.read(answer), '\n')) {
        std::vector<std::string> fields = split(line, '\t');
        if (fields[0] != "kernel") continue;
        Kernel kernel = read_kernel(fields);
        kernel.module = module;
        if (auto found = code.resources.find(kernel.symbol); found != code.resources.end()) {
            kernel.registers = found->second.registers;
            kernel.local_bytes = found->second.local_bytes;
        }
        unit.kernels[kernel.symbol] = kernel;
    }
    return unit;
}

const Kernel *DeviceCode::find(int module, const std::string &symbol, std::string &problem) {
    Unit &code = unit(module);
    auto found = code.kernels.find(symbol);
    if (found != code.kernels.end()) return &found->second;
    problem = code.problem.empty() ? "the kernel is not in the PTX" : code.problem;
    return nullptr;
}

DeviceCode::Lowered DeviceCode::lower(int module, const std::string &symbol, const std::string &mode,
                                      std::string &problem) {
    Unit &code = unit(module);
    auto found = code.lowered.find({symbol, mode});
    if (found == code.lowered.end()) {
        Service::Answer answer = service_.ask("lower\t" + std::to_string(module) + "\t" + symbol + "\t" + mode);
        if (!answer.ok() || answer.file < 0) {
            problem = answer.said() ? "" : answer.why();
            return {};
        }
        // The file stays open: the loader knows libraries by their path, which must not come to mean another one.
        std::string path = "/proc/self/fd/" + std::to_string(answer.file);
        try {
            auto loaded = std::make_unique<kw::Module>(path);
            if (code.placed)
                bind(code, *loaded);
            else
                place_variables(code, *loaded);
            found = code.lowered.emplace(std::pair(symbol, mode), std::move(loaded)).first;
        } catch (const std::runtime_error &error) {
            problem = error.what();
            return {};
        }
    }
    const kw::Kernel *kernel = found->second->kernel(symbol);
    if (!kernel) problem = "the kernel is not in its lowered module";
    return {found->second.get(), kernel};
}

void DeviceCode::place_variables(Unit &unit, kw::Module &code) {
    unit.placed = true;
    for (const kw::Variable &variable : code.variables) {
        if (variable.external) continue;
        Address &at = unit.variables[key_of(variable)];
        if (at) continue;
        at = (next_variable_ + 255) & ~Address{255};
        next_variable_ = at + variable.bytes + kw::GUARD_BYTES;
    }
    bind(unit, code);
    fill_variables(code);
}

void DeviceCode::fill_variables(const kw::Module &code) {
    std::set<Address> filled;
    for (const kw::Variable &variable : code.variables) {
        if (variable.external || !filled.insert(variable.address).second) continue;
        std::string problem = memory_.allocate(variable.address, variable.bytes, variable.name, true, 0);
        if (!problem.empty()) throw std::runtime_error("no room for the variable " + variable.name + ": " + problem);
        std::vector<kw::u8> image = code.image(variable);
        if (!image.empty()) std::memcpy(kw::Device::pointer(variable.address), image.data(), image.size());
    }
}

void DeviceCode::reset() {
    for (auto &[module, unit] : units_)
        if (unit.placed) fill_variables(*unit.lowered.begin()->second);
}

void DeviceCode::bind(const Unit &unit, kw::Module &code) const {
    code.bind([&](const kw::Variable &variable) {
        auto found = unit.variables.find(key_of(variable));
        return found == unit.variables.end() ? Address{0} : found->second;
    });
}

Address DeviceCode::address(int module, const std::string &name, std::string &problem) {
    Unit &code = unit(module);
    // What variables hold at first is known with the first kernel that is lowered.
    for (auto kernel = code.kernels.begin(); !code.placed && kernel != code.kernels.end(); ++kernel)
        lower(module, kernel->first, "checked", problem);
    std::string start = name + '\0';
    auto found = code.variables.lower_bound(start);
    if (found != code.variables.end() && found->first.starts_with(start)) return found->second;
    if (problem.empty()) problem = code.problem.empty() ? "no kernel of its file could be lowered" : code.problem;
    return 0;
}

std::string DeviceCode::resources() const {
    std::string told;
    for (auto &[module, unit] : units_)
        for (auto &[symbol, kernel] : unit.kernels)
            if (auto code = unit.lowered.lower_bound({symbol, ""}); code != unit.lowered.end() && code->first.first == symbol)
                told += std::string(told.empty() ? "" : ",") + "{\"symbol\":" + kw::quoted(symbol) +
                        ",\"registers\":" + std::to_string(kernel.registers) +
                        ",\"shared_bytes\":" + std::to_string(kernel.static_shared) +
                        ",\"local_bytes\":" + std::to_string(kernel.local_bytes) + "}";
    return "[" + told + "]";
}
