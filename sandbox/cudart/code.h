// The program's device code: sent to the service that lowers it, loaded, its variables given their places.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "module.h"
#include "runtime.h"
#include "service.h"

class DeviceCode {
  public:
    DeviceCode(Service &service, kw::Device &memory) : service_(service), memory_(memory) {}

    // What the tables say of a kernel; null, and why, where there is no such code.
    const Kernel *find(int module, const std::string &symbol, std::string &problem);

    struct Lowered {
        kw::Module *module = nullptr;
        const kw::Kernel *kernel = nullptr;
    };
    // The kernel as native code (mode: "checked" or "plain"), lowered on its first launch. Null, and why: in words for people, or "" where
    // the service has told them.
    Lowered lower(int module, const std::string &symbol, const std::string &mode, std::string &problem);

    // Where a variable lies; 0, and why.
    Address address(int module, const std::string &name, std::string &problem);

    // What the machine code of the kernels that were launched uses, as a JSON list.
    std::string resources() const;

    // Gives the variables back what they held at first, where device memory was emptied.
    void reset();

  private:
    struct Unit {
        bool sent = false;
        std::string problem;
        std::map<std::string, Kernel, std::less<>> kernels;
        std::map<std::pair<std::string, std::string>, std::unique_ptr<kw::Module>> lowered;  // by kernel and mode
        bool placed = false;
        std::map<std::string, Address, std::less<>> variables;  // by name and first value
    };

    Unit &unit(int module);
    void place_variables(Unit &unit, kw::Module &code);
    void fill_variables(const kw::Module &code);
    void bind(const Unit &unit, kw::Module &code) const;

    Service &service_;
    kw::Device &memory_;
    std::map<int, Unit> units_;
    Address next_variable_ = kw::VARIABLE_BASE + kw::GUARD_BYTES;
};
