// kw-emulate REQUEST_FD RESULT_FD: replays launch plans on lowered kernels.
//
// The request is lines of words, then raw bytes that the lines point into; the result is one JSON line, then the
// bytes of the buffers that were asked for. sandbox/emulator/wire.py is the other side.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "replay.h"

namespace {

std::string read_view(int descriptor, const kw::u8*& bytes) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || status.st_size == 0) throw std::runtime_error("no request");
  void* memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("the request cannot be read");
  bytes = static_cast<const kw::u8*>(memory);
  return {static_cast<const char*>(memory), static_cast<size_t>(status.st_size)};
}

void write_all(int descriptor, const void* data, size_t size) {
  auto* at = static_cast<const char*>(data);
  while (size) {
    ssize_t done = write(descriptor, at, size);
    if (done <= 0) throw std::runtime_error("the result cannot be written");
    at += done;
    size -= static_cast<size_t>(done);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) {
    std::fprintf(stderr, "usage: kw-emulate REQUEST_FD RESULT_FD\n");
    return 2;
  }
  const kw::u8* bytes = nullptr;
  std::string text = read_view(std::atoi(arguments[1]), bytes);
  kw::Request request = kw::parse_request(text, bytes);
  kw::Replayer replayer(request);
  kw::Output output = replayer.run();
  int result = std::atoi(arguments[2]);
  write_all(result, output.json.data(), output.json.size());
  for (const auto& [data, size] : output.pieces) write_all(result, data, size);
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "kw-emulate: %s\n", problem.what());
  return 3;
}
