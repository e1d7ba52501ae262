// A lowered module, loaded: kernels, variables, sites.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "abi.h"

namespace kw {

using KernelFunction = void (*)(Warp*);

struct Kernel {
  std::string name;
  KernelFunction function = nullptr;
  u32 parameter_bytes = 0;
  u32 static_shared = 0;
  u32 dynamic_offset = 0;  // where dynamic shared memory starts
  u32 local_bytes = 0;     // per thread
  bool narrow_shared = false;
};

struct Variable {
  int module = 0;
  std::string name;
  u64 bytes = 0;
  u64 align = 1;
  int slot = -1;
  std::vector<u8> data;
  u64 address = 0;
};

struct Relocation {
  int module;
  std::string variable;
  u64 offset;
  std::string target;
  u64 target_offset;
};

enum class SiteKind : u8 { block, guarded, branch, access, barrier };

struct Site {
  SiteKind kind;
  u32 line;
  char space = 'x';     // of accesses: g, s, l, c, x, p
  char direction = 'l';  // of accesses: l, s, a
  bool relaxed = false;  // volatile or with memory-model semantics
};

struct Cost {
  u32 site;
  u32 line;
  u64 instructions, flop16, flop32, flop64;
};

// Loaded once, used by all replays. Throws std::runtime_error with a message for people.
class Module {
 public:
  explicit Module(const std::string& path);
  const Kernel* kernel(int module, const std::string& name) const;
  Variable* variable(int module, const std::string& name);

  std::vector<Variable> variables;
  std::vector<Relocation> relocations;
  std::vector<Site> sites;
  std::vector<Cost> costs;
  u64* addresses = nullptr;  // the slots that lowered code reads

 private:
  std::map<std::pair<int, std::string>, Kernel> kernels_;
};

}  // namespace kw
