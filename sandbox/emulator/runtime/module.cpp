#include "module.h"

#include <dlfcn.h>

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
  std::vector<u8> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
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
  site.relaxed = has(".volatile") || has(".relaxed") || has(".acquire") || has(".release");
  return site;
}

}  // namespace

Module::Module(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(std::string("cannot load the lowered module: ") + dlerror());
  addresses = static_cast<u64*>(symbol(library, "kw_addresses"));
  std::istringstream description(static_cast<const char*>(symbol(library, "kw_description")));
  std::string line;
  while (std::getline(description, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "kernel") {
      int module, narrow;
      std::string name;
      Kernel kernel;
      words >> module >> kernel.name >> name >> kernel.parameter_bytes >> kernel.static_shared >>
          kernel.dynamic_offset >> kernel.local_bytes >> narrow;
      kernel.narrow_shared = narrow != 0;
      kernel.function = reinterpret_cast<KernelFunction>(symbol(library, name));
      kernels_[{module, kernel.name}] = kernel;
    } else if (what == "variable") {
      Variable variable;
      std::string space, slot, data;
      words >> variable.module >> variable.name >> space >> variable.bytes >> variable.align >> slot >> data;
      if (slot != "-") variable.slot = std::stoi(slot);
      if (data != "-") variable.data = from_hex(data);
      variables.push_back(std::move(variable));
    } else if (what == "address") {
      Relocation relocation;
      words >> relocation.module >> relocation.variable >> relocation.offset >> relocation.target >>
          relocation.target_offset;
      relocations.push_back(std::move(relocation));
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

Variable* Module::variable(int module, const std::string& name) {
  for (Variable& variable : variables)
    if (variable.module == module && variable.name == name) return &variable;
  return nullptr;
}

}  // namespace kw
