#include <sstream>
#include <stdexcept>

#include "replay.h"

namespace kw {
namespace {

class Reader {
 public:
  Reader(const std::string& text, const u8* bytes) : size_(text.size()), bytes_(bytes) {
    std::istringstream start(text.substr(0, 64));
    std::string magic;
    start >> magic >> header_;
    if (magic != "kernelwright-replay" || header_ > size_) throw std::runtime_error("not a replay request");
    lines_.str(text.substr(0, header_));
  }

  bool next(std::string& word) {
    std::string line;
    if (!std::getline(lines_, line)) return false;
    words_ = std::istringstream(line);
    words_ >> word;
    return true;
  }

  template <class T>
  T get() {
    T value{};
    if (!(words_ >> value)) throw std::runtime_error("a malformed request");
    return value;
  }

  // Bytes behind the lines; offset -1 stands for none.
  const u8* piece(u64 size) {
    i64 offset = get<i64>();
    if (offset < 0) return nullptr;
    u64 start = header_ + static_cast<u64>(offset);
    if (start > size_ || size > size_ - start) throw std::runtime_error("a request that points outside itself");
    return bytes_ + start;
  }

  std::string rest() {
    std::string text;
    std::getline(words_ >> std::ws, text);
    return text;
  }

 private:
  u64 size_, header_ = 0;
  const u8* bytes_;
  std::istringstream lines_, words_;
};

Buffer read_buffer(Reader& in) {
  Buffer buffer;
  buffer.address = in.get<u64>();
  buffer.bytes = in.get<u64>();
  buffer.read_back = in.get<int>() != 0;
  buffer.initialised = in.get<int>() != 0;
  buffer.poison = static_cast<u8>(in.get<int>());
  buffer.data = in.piece(buffer.bytes);
  buffer.name = in.rest();
  return buffer;
}

Operation read_operation(Reader& in, const std::string& word) {
  Operation operation{};
  if (word == "allocate") {
    operation.kind = OperationKind::allocate;
    operation.to = in.get<u64>();
    operation.bytes = in.get<u64>();
  } else if (word == "free") {
    operation.kind = OperationKind::free;
    operation.to = in.get<u64>();
  } else if (word == "memset") {
    operation.kind = OperationKind::memset;
    operation.to = in.get<u64>();
    operation.value = static_cast<u8>(in.get<int>());
    operation.bytes = in.get<u64>();
  } else if (word == "copy") {
    operation.kind = OperationKind::copy;
    operation.to = in.get<u64>();
    operation.from = in.get<u64>();
    operation.bytes = in.get<u64>();
  } else if (word == "upload") {
    operation.kind = OperationKind::upload;
    operation.to = in.get<u64>();
    operation.bytes = in.get<u64>();
    operation.data = in.piece(operation.bytes);
  } else if (word == "write_symbol") {
    operation.kind = OperationKind::write_symbol;
    operation.module = in.get<int>();
    operation.name = in.get<std::string>();
    operation.offset = in.get<u64>();
    operation.bytes = in.get<u64>();
    operation.data = in.piece(operation.bytes);
  } else if (word == "launch") {
    operation.kind = OperationKind::launch;
    operation.module = in.get<int>();
    operation.name = in.get<std::string>();
    for (u32& extent : operation.grid) extent = in.get<u32>();
    for (u32& extent : operation.block) extent = in.get<u32>();
    operation.shared = in.get<u32>();
    operation.cooperative = in.get<int>() != 0;
    operation.bytes = in.get<u64>();
    operation.data = in.piece(operation.bytes);
  } else {
    throw std::runtime_error("an unknown operation: " + word);
  }
  return operation;
}

}  // namespace

Request parse_request(const std::string& text, const u8* bytes) {
  Reader in(text, bytes);
  Request request;
  std::string word;
  while (in.next(word)) {
    if (word == "kernelwright-replay") continue;
    if (word == "library") {
      request.library = in.rest();
    } else if (word == "seconds") {
      request.seconds = in.get<double>();
    } else if (word == "threads") {
      request.threads = in.get<int>();
    } else if (word == "multiprocessors") {
      request.multiprocessors = in.get<u32>();
    } else if (word == "plan") {
      request.plans.emplace_back();
      request.plans.back().count = in.get<int>() != 0;
      request.plans.back().keep_going = in.get<int>() != 0;
      request.plans.back().seed = in.get<u64>();
    } else if (request.plans.empty()) {
      throw std::runtime_error("an operation outside a plan");
    } else if (word == "buffer") {
      request.plans.back().buffers.push_back(read_buffer(in));
    } else if (word != "end") {
      request.plans.back().operations.push_back(read_operation(in, word));
    }
  }
  return request;
}

}  // namespace kw
