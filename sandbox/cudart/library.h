// What CUDA's libraries (sandbox/cudalibs) ask of this runtime. They compute in the program's own process, where device
// memory has the addresses that kernels see; what they read and write is checked like a kernel's accesses.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "abi.h"

// Pieces of memory: piece i begins `pitch` bytes after piece i - 1 and is `grow` bytes longer.
struct Rows {
    size_t bytes;
    size_t rows = 1;
    ptrdiff_t pitch = 0;
    ptrdiff_t grow = 0;
};

// What a library's call does to device memory. `what` is the name of the call's argument. False: a finding was
// reported, and the call must touch nothing.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    virtual bool reads(const char *what, const void *at, const Rows &rows) = 0;   // and every byte was written before
    virtual bool writes(const char *what, const void *at, const Rows &rows) = 0;  // they count as written from now on
};

struct LibraryCall {
    std::string name;  // as people know it: "cublasSgemm"
    std::function<void(DeviceMemory &)> work;
};

// Does `call` in the order of `stream`: now, or as a node while the stream is captured. `waits`: the host is given a
// result, which no capture can do.
EXPORT cudaError_t kernelwright_library_call(cudaStream_t stream, const LibraryCall &call, bool waits);
// Tells the person, once, that `call` cannot do something: `why` is a clause.
EXPORT void kernelwright_library_refuses(const char *call, const char *why);
// Tells the person one line, once.
EXPORT void kernelwright_library_note(const char *text);
// How many threads of this machine a call may use.
EXPORT int kernelwright_library_threads();
