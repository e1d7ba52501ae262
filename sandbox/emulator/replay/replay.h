// Requests, and replaying their plans one operation after another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "run.h"

namespace kw {

struct Buffer {
  std::string name;
  u64 address = 0, bytes = 0;
  bool read_back = false, initialised = false;
  u8 poison = 0;
  const u8* data = nullptr;  // null: poison
};

enum class OperationKind { allocate, free, memset, copy, upload, write_symbol, launch };

struct Operation {
  OperationKind kind;
  u64 to = 0, from = 0, bytes = 0;
  u8 value = 0;
  const u8* data = nullptr;
  int module = 0;
  std::string name;  // symbol or kernel
  u64 offset = 0;
  u32 grid[3] = {}, block[3] = {}, shared = 0;
  bool cooperative = false;
};

struct Plan {
  bool count = false;
  bool keep_going = false;  // after findings that allow it
  u64 seed = 0;             // of the order of blocks, warps and diverged lanes; 0: in order
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;
};

struct Request {
  std::string library;
  double seconds = 0;
  int threads = 1;
  u32 multiprocessors = 0;
  std::vector<Plan> plans;
};

struct Output {
  std::string json;
  std::vector<std::pair<const u8*, size_t>> pieces;
};

Request parse_request(const std::string& text, const u8* bytes);  // throws std::runtime_error

class Replayer {
 public:
  explicit Replayer(const Request& request);
  Output run();  // stops after the first plan that does not end well

 private:
  struct Result;
  void replay(const Plan& plan, Result& result);
  void place(const Plan& plan);
  void place_variables();
  bool perform(const Operation& operation, const Plan& plan, Result& result);
  bool launch(const Operation& operation, const Plan& plan, Result& result);
  bool host_fault(Result& result, const char* call, const std::string& message, u64 address);

  const Request& request_;
  Module module_;
  Device device_;
  double deadline_;
  std::vector<std::vector<u8>> kept_;  // read-back bytes of all plans
};

}  // namespace kw
