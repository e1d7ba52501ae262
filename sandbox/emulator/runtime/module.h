// A lowered module, loaded: kernels, variables, sites.
#pragma once

#include <functional>
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
  u32 reserved_shared = 0;  // bytes of the system's before a block's own; not in `static_shared`
  u32 local_bytes = 0;     // per thread
  bool narrow_shared = false;
};

struct Variable {
  int module = 0;
  std::string name;
  u64 bytes = 0;
  u64 align = 1;
  int slot = -1;  // of Module::addresses; -1: lowered code does not use it
  std::vector<u8> data;
  bool external = false;  // declared here, defined elsewhere
  u64 address = 0;        // once bound
};

// An address in a variable's initial value.
struct Relocation {
  int module;
  u64 offset;
  std::string target;
  u64 target_offset;
};

enum class SiteKind : u8 { block, guarded, branch, access, barrier };

// Lowered code and the description name places in the source by one number: file and line.
constexpr u32 LINE_BITS = 20;
constexpr u32 line_of(u32 place) { return place & ((u32{1} << LINE_BITS) - 1); }

struct Site {
  SiteKind kind;
  u32 line;  // a place
  char space = 'x';     // of accesses: g, s, l, c, x, p
  char direction = 'l';  // of accesses: l, s, a
  bool strong = false;  // volatile or with memory-model semantics
  enum Release : u8 { NONE, BLOCK, DEVICE } releases = NONE;  // what came before is visible to these when it is done
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
  const Kernel* kernel(const std::string& name) const;  // of whichever PTX text
  Variable* variable(int module, const std::string& name);

  // Tells lowered code where variables are. `where` is asked for each variable that the module defines, and for an
  // external one that no other of its PTX texts defines; 0: nobody knows.
  void bind(const std::function<u64(const Variable&)>& where);
  // What a variable starts as, the addresses in it filled in; zeros follow. After `bind`.
  std::vector<u8> image(const Variable& variable) const;
  // An external variable that lowered code uses and `bind` found nowhere, or "".
  const std::string& missing() const { return missing_; }

  // The file of a place; "" where there is none.
  std::string file_of(u32 place) const {
    return place && place >> LINE_BITS < files.size() ? files[place >> LINE_BITS] : std::string();
  }

  std::vector<std::string> files;
  std::vector<Variable> variables;
  std::vector<Site> sites;
  std::vector<Cost> costs;
  bool checked = true;  // lowered with checks and counters (lowering/module.py, mode)

 private:
  u64 target(const Relocation& relocation) const;
  const Variable* definition(int module, const std::string& name) const;

  u64* addresses_ = nullptr;  // the slots that lowered code reads
  std::string missing_;
  std::map<std::pair<int, std::string>, Kernel> kernels_;
  std::map<std::pair<int, std::string>, size_t> places_;  // of variables
  std::map<std::pair<int, std::string>, u64> functions_;  // addresses, of those that initialisers name
  std::multimap<std::pair<int, std::string>, Relocation> relocations_;
};

}  // namespace kw
