#include "module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace kw {
namespace {

void* symbol(void* library, const std::string& name) {
  void* found = dlsym(library, name.c_str());
  if (!found) throw std::runtime_error("lowered module lacks " + name);
  return found;
}

std::vector<u8> from_hex(const std::string& text) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<u8> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return bytes;
}

Variable parse_variable(std::istringstream& words) {
  Variable variable;
  std::string space, slot, data;
  words >> variable.module >> variable.name >> space >> variable.bytes >> variable.align >> slot >> data >> variable.external;
  if (slot != "-") variable.slot = std::stoi(slot);
  if (data != "-") variable.data = from_hex(data);
  return variable;
}

Site parse_site(std::istringstream& words) {
  std::string kind, opcode;
  Site site{};
  words >> kind >> site.line >> opcode;
  site.kind = kind == "block"     ? SiteKind::block
              : kind == "guarded" ? SiteKind::guarded
              : kind == "branch"  ? SiteKind::branch
              : kind == "barrier" ? SiteKind::barrier
                                  : SiteKind::access;
  auto has = [&](const char* part) { return opcode.find(part) != std::string::npos; };
  site.space = has(".global") ? 'g' : has(".shared") ? 's' : has(".local") ? 'l' : has(".const") ? 'c' : 'x';
  site.direction = opcode.starts_with("st") ? 's' : opcode.starts_with("ld") ? 'l' : 'a';
  if (has(".release") || has(".acq_rel")) site.releases = has(".cta") ? Site::BLOCK : Site::DEVICE;
  site.strong = has(".mmio") || has(".acq_rel") || has(".volatile") || has(".relaxed") || has(".acquire") || has(".release");
  return site;
}

}  // namespace

Module::Module(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(std::string("cannot load the lowered module: ") + dlerror());
  addresses_ = static_cast<u64*>(symbol(library, "kw_addresses"));
  std::istringstream description(static_cast<const char*>(symbol(library, "kw_description")));
  std::string line;
  while (std::getline(description, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "mode") {
      std::string mode;
      words >> mode;
      checked = mode == "checked";
    } else if (what == "kernel") {
      int module, narrow;
      std::string name;
      Kernel kernel;
      words >> module >> kernel.name >> name >> kernel.parameter_bytes >> kernel.static_shared >>
          kernel.dynamic_offset >> kernel.local_bytes >> narrow >> kernel.reserved_shared;
      kernel.narrow_shared = narrow != 0;
      kernel.function = reinterpret_cast<KernelFunction>(symbol(library, name));
      kernels_[{module, kernel.name}] = kernel;
    } else if (what == "variable") {
      Variable variable = parse_variable(words);
      places_[{variable.module, variable.name}] = variables.size();
      variables.push_back(std::move(variable));
    } else if (what == "address") {
      Relocation relocation;
      std::string variable;
      words >> relocation.module >> variable >> relocation.offset >> relocation.target >> relocation.target_offset;
      relocations_.insert({{relocation.module, variable}, relocation});
    } else if (what == "function") {
      int module;
      std::string name;
      words >> module >> name;
      words >> functions_[{module, name}];
    } else if (what == "file") {
      files.push_back(line.substr(what.size() + 1));
    } else if (what == "site") {
      sites.push_back(parse_site(words));
    } else if (what == "cost") {
      Cost cost{};
      words >> cost.site >> cost.line >> cost.instructions >> cost.flop16 >> cost.flop32 >> cost.flop64;
      costs.push_back(cost);
    }
  }
}

const Kernel* Module::kernel(int module, const std::string& name) const {
  auto found = kernels_.find({module, name});
  return found == kernels_.end() ? nullptr : &found->second;
}

const Kernel* Module::kernel(const std::string& name) const {
  for (const auto& [key, kernel] : kernels_)
    if (key.second == name) return &kernel;
  return nullptr;
}

Variable* Module::variable(int module, const std::string& name) {
  auto found = places_.find({module, name});
  return found == places_.end() ? nullptr : &variables[found->second];
}

// What `name` means in a module: its own variable, or what another one defines.
const Variable* Module::definition(int module, const std::string& name) const {
  auto own = places_.find({module, name});
  if (own != places_.end() && !variables[own->second].external) return &variables[own->second];
  for (const Variable& variable : variables)
    if (variable.name == name && !variable.external) return &variable;
  return own == places_.end() ? nullptr : &variables[own->second];
}

void Module::bind(const std::function<u64(const Variable&)>& where) {
  missing_.clear();
  for (Variable& variable : variables)
    if (!variable.external) variable.address = where(variable);
  for (Variable& variable : variables) {
    if (variable.external) {
      const Variable* defined = definition(variable.module, variable.name);
      variable.address = defined->external ? where(variable) : defined->address;
    }
    if (variable.slot < 0) continue;
    addresses_[variable.slot] = variable.address;
    if (!variable.address) missing_ = variable.name;
  }
}

u64 Module::target(const Relocation& relocation) const {
  auto function = functions_.find({relocation.module, relocation.target});
  if (function != functions_.end()) return function->second + relocation.target_offset;
  const Variable* variable = definition(relocation.module, relocation.target);
  return variable && variable->address ? variable->address + relocation.target_offset : 0;
}

std::vector<u8> Module::image(const Variable& variable) const {
  std::vector<u8> bytes = variable.data;
  auto [first, last] = relocations_.equal_range({variable.module, variable.name});
  for (auto entry = first; entry != last; ++entry) {
    u64 value = target(entry->second), end = entry->second.offset + sizeof value;
    if (end > variable.bytes) continue;
    bytes.resize(std::max<u64>(bytes.size(), end));
    std::memcpy(&bytes[end - sizeof value], &value, sizeof value);
  }
  return bytes;
}

}  // namespace kw
