// What the checks find, collected over a program: equal findings are one, with a count.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "abi.h"

namespace kw {

// The checks that can be chosen, by compute-sanitizer's names of its tools.
enum Check : u32 { MEMCHECK = 1, RACECHECK = 2, INITCHECK = 4, SYNCCHECK = 8, ALL_CHECKS = 15 };

// Which of them looks for findings of this kind, and the name of that check.
Check check_of(const std::string& kind);
const char* name_of(Check check);

struct Finding {
  std::string kind = {};  // "out of bounds", "race", ...: docs/checks.md lists them
  std::string message = {};
  u32 line = 0;
  u32 block[3] = {};
  u32 thread[3] = {};
  std::optional<u64> address = {};
  std::string space = {};
  bool note = false;   // worth knowing, but no error
  bool fatal = true;   // a device would have ended the launch, or could have
  u32 bytes = 0;       // of the access
  u32 other_line = 0;  // of a race: the other access, where known
  std::string allocation = {};
  u64 allocation_bytes = 0;
  std::string kernel = {};  // or the call of the host
  std::string file = {};
  u64 count = 1;
};

// Safe to use from all threads.
class Findings {
 public:
  static constexpr size_t NONE = ~size_t{0};
  // Returns its number, for `more`; NONE when there are too many kinds already.
  size_t add(Finding finding);
  void more(size_t number, u64 times);
  std::vector<Finding> all() const;  // in the order in which they were first seen

 private:
  static constexpr size_t MOST = 100;  // kinds of one kernel

  using Key = std::tuple<std::string, std::string, u32, std::string, u32, bool>;
  mutable std::mutex mutex_;
  std::map<Key, size_t> known_;
  std::map<std::string, size_t> of_kernel_;
  std::vector<Finding> findings_;
};

std::string finding_json(const Finding& finding);

}  // namespace kw
