// What the runtime knows of the device, the modules and the launches; shared by all parts of this library.
//
// The front (registration, memory, launch, device) gives every call the meaning and the errors of the real
// runtime. What the device is asked to do then goes to one of two Backends: Recording writes it down for the judge,
// Executing does it on the emulator.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi.h"

using Address = uint64_t;

constexpr Address kDeviceBase = 0x2000'0000'0000;  // of the emulator, and of what operations of a plan name
constexpr uint64_t kTaskBytes = uint64_t{1} << 36;
constexpr Address kScratchBase = kDeviceBase + kTaskBytes;
constexpr uint64_t kScratchBytes = uint64_t{1} << 40;
constexpr uint64_t kDeviceBytes = kTaskBytes + kScratchBytes;
constexpr uint64_t kVariableBytes = uint64_t{1} << 32;  // behind it, where the emulator places variables
constexpr uint64_t kGuardBytes = 1 << 16;

// Where the range really begins: a GPU's driver chooses that itself, and the judge says it to the recorder.
inline Address device_base = kDeviceBase;

inline bool on_device(const void *pointer) {
    auto address = reinterpret_cast<Address>(pointer);
    return address >= device_base && address < device_base + kDeviceBytes + kVariableBytes;
}

struct Kernel {
    int module = 0;
    std::string symbol;  // mangled
    bool known = false;  // it was found in the PTX; only then is the rest filled
    int registers = 0;
    int static_shared = 0;
    int local_bytes = 0;
    int max_threads = 1024;  // __launch_bounds__
    std::vector<std::pair<int, int>> parameters;  // offset and size in the parameter block
    int dynamic_shared_allowed = -1;              // set by cudaFuncSetAttribute; -1: the default
    int carveout = -1;
};

struct Variable {
    int module = 0;
    std::string symbol;
    size_t bytes = 0;
    void **managed = nullptr;  // where the host keeps the address of a __managed__ variable
};

enum class Memory : uint8_t { device, managed, host, array };

struct Allocation {
    size_t bytes = 0;
    Memory kind = Memory::device;
    unsigned flags = 0;
    struct Pool *pool = nullptr;
};

struct Stream {
    int number = 0;
    unsigned flags = 0;
    int priority = 0;
    struct Capture *capture = nullptr;
    std::vector<struct Node *> tails;  // while captured: what the next node follows
};

struct Event {
    unsigned flags = 0;
    bool recorded = false;
    double time = 0;
    struct Capture *capture = nullptr;
    std::vector<struct Node *> tails;
};

struct Launch {
    const Kernel *kernel = nullptr;
    dim3 grid{}, block{};
    size_t shared = 0;
    bool cooperative = false;
    int stream = 0;
    std::string parameters;  // raw bytes
};

class Backend {
  public:
    virtual ~Backend() = default;
    // Fills in what the code says of a kernel, where the tables of the start do not.
    virtual void look_up(Kernel &) {}
    virtual bool records() const = 0;
    virtual cudaError_t allocate(Address address, size_t bytes, Memory kind) = 0;
    virtual cudaError_t release(Address address) = 0;
    // `call` is the name of what the program called.
    virtual cudaError_t fill(Address to, int value, size_t bytes, const char *call) = 0;
    virtual cudaError_t copy(Address to, Address from, size_t bytes, const char *call) = 0;
    virtual cudaError_t upload(Address to, const void *from, size_t bytes, const char *call) = 0;
    virtual cudaError_t download(void *to, Address from, size_t bytes, const char *call) = 0;
    // One of these two: where a variable lies, or a write to one that has no address.
    virtual cudaError_t locate(const Variable &variable, Address &address) = 0;
    virtual cudaError_t write_symbol(const Variable &to, size_t offset, const void *from, size_t bytes) = 0;
    virtual cudaError_t launch(Launch launch) = 0;
    // A launch the device would have refused: `reason` is a clause, "the grid is empty".
    virtual void dropped(const Launch &launch, cudaError_t error, const std::string &reason) = 0;
    virtual void errors_were_read() = 0;
    // A free of what is no allocation, or none any more.
    virtual void bad_free(Address, const char *) {}
    virtual void note(const char *) {}  // one line for the person, once
    virtual void limit(int, size_t) {}  // cudaDeviceSetLimit
    // Kernels may use host memory at its own address, until it is taken back: it is the allocation at `seen`.
    virtual void lend(const void *, size_t, Address) {}
    virtual void take_back(const void *) {}
    virtual void reset() {}             // all memory is gone, variables are as they were at first
    virtual cudaError_t library(const struct LibraryCall &) { return cudaErrorNotSupported; }
    virtual int threads() const { return 1; }  // of this machine, for one call
    // Something real CUDA offers and this library does not: it must say so, not blame the program.
    virtual cudaError_t unsupported(const char *call, const char *why) = 0;
};

// The judge's tables, as `configure` read them.
struct Device {
    std::string product;
    Address base = 0;  // 0: not said
    std::map<std::string, int64_t, std::less<>> limits;
    std::map<std::string, Kernel, std::less<>> kernels;
    int64_t operator[](std::string_view name) const;
};

// Hands out device addresses. None is used twice while there are others, so a stale pointer stays recognisable.
class AddressSpace {
  public:
    // `widen`: guards as wide as what they guard, so that an index that runs out of one allocation is not in another.
    AddressSpace(Address begin, uint64_t bytes, bool widen)
        : next_(begin + kGuardBytes), end_(begin + bytes), widen_(widen) {}
    Address take(size_t bytes);  // 0: there is no room
    void give_back(Address address);

  private:
    Address next_, end_;
    bool widen_;
    std::map<Address, uint64_t> taken_, old_;  // with their guards
};

struct Runtime {
    std::recursive_mutex mutex;
    Device device;
    Backend *backend = nullptr;
    bool asked = false;                       // for the emulator's service, at the first call
    cudaError_t sticky = cudaSuccess;         // of a kernel that failed: every later call says so
    std::vector<const void *> fat_binaries;  // by module
    std::map<const void *, Kernel> kernels;  // by host stub
    std::map<const void *, Variable> variables;
    std::map<Address, Allocation> allocations;
    size_t device_bytes = 0;  // of them, those that take the device's own memory
    AddressSpace addresses{kScratchBase, kScratchBytes, false};
    int last_stream = 0;
    unsigned device_flags = 0;
    std::map<int, size_t> limits;  // that were set, by cudaLimit
    std::set<const void *> streams, events;
};

Runtime &runtime();

// Takes the lock and remembers an error as the runtime does. Use: `return Call().end(error);`
class Call {
  public:
    Call();
    cudaError_t end(cudaError_t error) const;
    // Why nothing can be done; cudaSuccess when something can.
    cudaError_t refused() const {
        return end(backend() ? runtime().sticky : cudaErrorInitializationError);
    }
    // The same for what only whole programs may call, and recordings do not hold.
    cudaError_t refused_in_records(const char *name) const;
    Backend *backend() const { return runtime().backend; }

  private:
    std::unique_lock<std::recursive_mutex> lock_;
};

Kernel *find_kernel(const void *function);  // host stub or kernel handle; nullptr when unknown
Stream *find_stream(cudaStream_t stream);    // also of the default streams; nullptr when it is none
Address address_of(const void *pointer);
// The live allocation that holds an address, and where it starts; nullptr when there is none.
const Allocation *find_allocation(const void *pointer, Address *start = nullptr);
cudaError_t allocate(void **pointer, size_t bytes, Memory kind = Memory::device, unsigned flags = 0,
                     struct Pool *pool = nullptr);
cudaError_t release(void *pointer, Memory kind, const char *name);
Address seen_by_kernels(const void *pointer);  // of registered memory; else the address itself
void host_attributes(cudaPointerAttributes *attributes, const void *pointer);  // of memory that is not the device's
cudaError_t find_symbol(const void *symbol, size_t bytes, size_t offset, const Variable *&variable, Address &address);
Kernel read_kernel(const std::vector<std::string> &fields);  // of a line `kernel`
void read_tables(Device &device, std::string_view text);
int blocks_per_multiprocessor(const Kernel &kernel, int threads, size_t dynamic_shared);
const char *error_name(cudaError_t error);
const char *error_text(cudaError_t error);
