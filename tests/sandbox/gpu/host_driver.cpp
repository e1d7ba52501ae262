// A libcuda.so.1 whose device is this process: as much of CUDA's driver API as the GPU's replaying process calls,
// with host memory for device memory and functions below for kernels. No GPU, and no emulator: it shows that the
// replaying process asks the driver for the right things in the right order, and what it makes of the answers.
//
// A cubin is the text "host kernels", or any ELF file: what counts is what a kernel is called. Addresses are checked as a GPU's hardware does: what is not mapped faults.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

using u64 = uint64_t;
constexpr int kInvalid = 1, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kAssert = 710, kEcc = 214;
constexpr u64 kPage = 2 << 20, kWhere = 0x302000000;  // never where the caller wishes

struct Module {
    uint32_t counter = 5;  // a __device__ variable
};
using Work = std::function<void()>;
struct Graph {
    std::vector<Work> work;
};

int sticky = 0;
bool endless = false;
Graph *capture = nullptr;
sigjmp_buf out;

void on_fault(int) { siglongjmp(out, 1); }

void run(const Work &work) {
    if (sticky || endless) return;
    struct sigaction action{}, before[2];
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    if (sigsetjmp(out, 1))
        sticky = kIllegalAddress;
    else
        work();
    sigaction(SIGSEGV, &before[0], nullptr);
    sigaction(SIGBUS, &before[1], nullptr);
}

int enqueue(Work work) {
    if (sticky) return sticky;
    if (capture)
        capture->work.push_back(std::move(work));
    else
        run(work);
    return 0;
}

template <class T>
T parameter(const std::string &all, size_t at) {
    T value;
    memcpy(&value, all.data() + at, sizeof value);
    return value;
}

// add: y[i] = x[i] + a for i < n. Parameters: int n, float a, float *x, float *y.
void add(Module *, const std::string &p) {
    int n = parameter<int>(p, 0);
    float a = parameter<float>(p, 4), *x = parameter<float *>(p, 8), *y = parameter<float *>(p, 16);
    for (int i = 0; i < n; i++) y[i] = x[i] + a;
}
// __global__ void saxpy(int n, float a, const float *x, float *y), as nvcc calls it.
void saxpy(Module *, const std::string &p) {
    int n = parameter<int>(p, 0);
    float a = parameter<float>(p, 4), *x = parameter<float *>(p, 8), *y = parameter<float *>(p, 16);
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
// The two of sandbox/gpu/bench.py: so many vectors copied, and some of them again.
void copy(Module *, const std::string &p) {
    memcpy(parameter<void *>(p, 16), parameter<void *>(p, 8), 16 * parameter<u64>(p, 0));
}
void more(Module *module, const std::string &p) {
    std::string less = p.substr(0, 8) + p.substr(16);
    for (int i = 0; i < 2; i++) copy(module, less);
}
// count: *y = counter++. What a module keeps between launches.
void count(Module *module, const std::string &p) { *parameter<uint32_t *>(p, 0) = module->counter++; }
// poke: *address = value. Parameters: char *address, int value.
void poke(Module *, const std::string &p) { *parameter<unsigned char *>(p, 0) = parameter<int>(p, 8); }
void hang(Module *, const std::string &) { endless = true; }
void check(Module *, const std::string &) { sticky = kAssert; }
void rot(Module *, const std::string &) { sticky = kEcc; }
void die(Module *, const std::string &) { abort(); }
// wait: for so many microseconds. Parameters: int us.
void wait(Module *, const std::string &p) {
    timespec time{0, parameter<int>(p, 0) * 1000L};
    nanosleep(&time, nullptr);
}

using Kernel = void (*)(Module *, const std::string &);
const std::map<std::string, Kernel> kernels = {{"add", add},   {"count", count}, {"poke", poke}, {"hang", hang},
                                               {"check", check}, {"rot", rot},     {"die", die},   {"wait", wait},
                                               {"_Z5saxpyifPKfPf", saxpy},
                                               {"_Z4copyxPK6float4PS_", copy},
                                               {"_Z4morexxPK6float4PS_", more}};
struct Function {
    Module *module;
    Kernel kernel;
};

struct Config {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
};

double now_ms() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * time.tv_sec + 1e-6 * time.tv_nsec;
}

}  // namespace

API cuInit(unsigned) { return 0; }
API cuDeviceGet(int *device, int) { return *device = 0; }
API cuDeviceGetAttribute(int *value, int attribute, int) {
    *value = attribute == 38 ? 1 << 20 : attribute == 16 ? 2 : attribute == 108 ? 1 << 20 : 0;  // L2, SMs, persisting L2
    return 0;
}
API cuDevicePrimaryCtxRetain(void **context, int) { return *context = &sticky, 0; }
API cuCtxSetCurrent(void *) { return 0; }
API cuCtxSetLimit(int, size_t) { return 0; }
API cuCtxResetPersistingL2Cache() { return sticky; }
API cuStreamCreate(void **stream, unsigned) { return *stream = &endless, 0; }
API cuStreamQuery(void *) { return sticky ? sticky : endless ? kNotReady : 0; }
API cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = size_t{1} << 28, 0; }

API cuMemGetAllocationGranularity(size_t *size, const void *, int) { return *size = kPage, 0; }
API cuMemAddressReserve(u64 *address, size_t size, size_t, u64 wished, u64) {
    if (getenv("HOST_DRIVER_SMALL") && (wished || size > u64{1} << 38)) return 2;  // CUDA_ERROR_OUT_OF_MEMORY
    if (size % kPage) return kInvalid;
    void *got = mmap(reinterpret_cast<void *>(kWhere), size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    *address = reinterpret_cast<u64>(got);
    return got == MAP_FAILED ? kInvalid : 0;
}
API cuMemCreate(u64 *handle, size_t size, const void *, u64) { return *handle = 1, size % kPage ? kInvalid : 0; }
API cuMemMap(u64 address, size_t size, size_t, u64, u64) {
    if (address % kPage || size % kPage) return kInvalid;
    void *got = mmap(reinterpret_cast<void *>(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return got == MAP_FAILED ? kInvalid : 0;
}
API cuMemSetAccess(u64 address, size_t size, const void *, size_t count) {
    return count != 1 || mprotect(reinterpret_cast<void *>(address), size, PROT_READ | PROT_WRITE) ? kInvalid : 0;
}
API cuMemUnmap(u64 address, size_t size) {
    auto at = reinterpret_cast<void *>(address);
    mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return 0;
}
API cuMemRelease(u64) { return 0; }
API cuMemAlloc_v2(u64 *address, size_t size) { return *address = reinterpret_cast<u64>(malloc(size)), 0; }
API cuMemFree_v2(u64 address) { return free(reinterpret_cast<void *>(address)), 0; }
API cuMemHostAlloc(void **address, size_t size, unsigned) { return *address = malloc(size), 0; }
API cuMemFreeHost(void *address) { return free(address), 0; }

API cuMemsetD8Async(u64 to, unsigned char value, size_t size, void *) {
    return enqueue([=] { memset(reinterpret_cast<void *>(to), value, size); });
}
API cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t size, void *) {
    return enqueue([=] { memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size); });
}
API cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *) {
    return enqueue([=] { memcpy(reinterpret_cast<void *>(to), from, size); });
}
API cuMemcpyHtoD_v2(u64 to, const void *from, size_t size) {
    return enqueue([=] { memcpy(reinterpret_cast<void *>(to), from, size); });
}
API cuMemcpyDtoH_v2(void *to, u64 from, size_t size) {
    return enqueue([=] { memcpy(to, reinterpret_cast<void *>(from), size); });
}

API cuModuleLoadData(void **module, const void *image) {
    if (memcmp(image, "host kernels", 12) != 0 && memcmp(image, "\x7f" "ELF", 4) != 0) return 200;  // CUDA_ERROR_INVALID_IMAGE
    return *module = new Module, 0;
}
API cuModuleUnload(void *module) { return delete static_cast<Module *>(module), 0; }
API cuModuleGetFunction(void **function, void *module, const char *name) {
    auto found = kernels.find(name);
    if (found == kernels.end()) return kNotFound;
    *function = new Function{static_cast<Module *>(module), found->second};
    return 0;
}
API cuModuleGetGlobal_v2(u64 *address, size_t *size, void *module, const char *name) {
    if (strcmp(name, "counter") != 0) return kNotFound;
    *address = reinterpret_cast<u64>(&static_cast<Module *>(module)->counter);
    return *size = 4, 0;
}
API cuFuncSetAttribute(void *, int attribute, int value) { return attribute == 8 && value <= 232448 ? 0 : kInvalid; }
API cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    if (parameters || config->block[0] * config->block[1] * config->block[2] > 1024) return kInvalid;
    if (extra[0] != reinterpret_cast<void *>(1) || extra[2] != reinterpret_cast<void *>(2) || extra[4]) return kInvalid;
    std::string bytes(static_cast<char *>(extra[1]), *static_cast<size_t *>(extra[3]));
    auto *called = static_cast<Function *>(function);
    return enqueue([=] { called->kernel(called->module, bytes); });
}

API cuEventCreate(void **event, unsigned) { return *event = new double(0), 0; }
API cuEventDestroy_v2(void *event) { return delete static_cast<double *>(event), 0; }
API cuEventRecord(void *event, void *) { return *static_cast<double *>(event) = now_ms(), sticky; }
API cuEventElapsedTime_v2(float *ms, void *start, void *end) {
    return *ms = static_cast<float>(*static_cast<double *>(end) - *static_cast<double *>(start)), 0;
}
API cuStreamBeginCapture_v2(void *, int) {
    if (getenv("HOST_DRIVER_NO_GRAPHS")) return 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    return capture = new Graph, 0;
}
API cuStreamEndCapture(void *, void **graph) { return *graph = capture, capture = nullptr, 0; }
API cuGraphInstantiateWithFlags(void **ready, void *graph, u64) { return *ready = graph, 0; }
API cuGraphUpload(void *, void *) { return 0; }
API cuGraphLaunch(void *graph, void *) {
    for (const Work &work : static_cast<Graph *>(graph)->work) run(work);
    return sticky;
}
API cuGraphExecDestroy(void *) { return 0; }
API cuGraphDestroy(void *graph) { return delete static_cast<Graph *>(graph), 0; }
