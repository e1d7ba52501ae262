// The device: how many, what it is, what it can do.
#include <cstring>

#include "work.h"

namespace {

int as_int(int64_t value) { return value > 0x7fffffff ? 0x7fffffff : static_cast<int>(value); }

// The CUDA attribute number and the name of the limit that answers it; limits are the judge's target table.
const std::map<int, const char *> &attribute_limits() {
    static const auto *table = new std::map<int, const char *>{
        {1, "max_threads_per_block"},
        {8, "default_shared_bytes_per_block"},
        {9, "constant_bytes"},
        {10, "warp_size"},
        {12, "max_registers_per_block"},
        {13, "clock_khz"},
        {16, "sm_count"},
        {38, "l2_bytes"},
        {39, "max_threads_per_sm"},
        {75, "major"},
        {76, "minor"},
        {81, "shared_bytes_per_sm"},
        {82, "registers_per_sm"},
        {97, "max_shared_bytes_per_block"},
        {106, "max_blocks_per_sm"},
        {111, "reserved_shared_bytes_per_block"},
    };
    return *table;
}

// Attributes that are the same on every architecture here. Those not listed are zero.
const std::map<int, int> &attribute_constants() {
    static const auto *table = new std::map<int, int>{
        {2, 1024},       // block x
        {3, 1024},       // block y
        {4, 64},         // block z
        {5, 0x7fffffff},  // grid x
        {6, 65535},      // grid y
        {7, 65535},      // grid z
        {11, 0x7fffffff},  // pitch
        {14, 512},       // texture alignment
        {15, 1},         // copies overlap kernels
        {30, 512},       // surface alignment
        {31, 1},         // concurrent kernels
        {40, 3},         // copy engines
        {41, 1},         // unified addressing
        {51, 32},        // texture pitch alignment
        {78, 1},         // stream priorities
        {79, 1},         // L1 caches globals
        {80, 1},         // L1 caches locals
        {90, 1},         // compute preemption
        {95, 1},         // cooperative launch
        {115, 1},        // memory pools
    };
    return *table;
}

// What programs may do besides and recordings do not hold: shared memory of host and device, textures.
const std::map<int, int> &program_attributes() {
    static const auto *table = new std::map<int, int>{
        {19, 1},  // maps host memory
        {21, 131072}, {22, 131072}, {23, 65536}, {24, 16384}, {25, 16384}, {26, 16384},  // textures: 1D, 2D, 3D
        {27, 32768},  {28, 32768},  {29, 2048},                                          // 2D layered
        {42, 32768},  {43, 2048},                                                        // 1D layered
        {53, 32768},  {54, 32768},  {55, 16384}, {56, 16384}, {57, 16384}, {58, 16384},  // surfaces: 1D, 2D, 3D
        {59, 32768},  {60, 2048},   {61, 32768}, {62, 32768}, {63, 2048},
        {69, 268435456}, {70, 131072}, {71, 65000}, {72, 2097120},  // linear textures
        {83, 1},   // managed memory
        {86, 1},   // native atomics between host and device
        {89, 1},   // managed memory while kernels run
        {91, 1},   // kernels use registered host memory at its own address
        {99, 1},   // registers host memory
        {101, 1},  // the host reads managed memory in place
        {108, 1}, {113, 1},
    };
    return *table;
}

}  // namespace

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

static cudaError_t known_device(int device) { return Call().end(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }

EXPORT cudaError_t cudaSetDevice(int device) { return known_device(device); }
EXPORT cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return known_device(device); }

EXPORT cudaError_t cudaSetValidDevices(int *devices, int count) {
    Call call;
    for (int i = 0; i < count; i++)
        if (devices[i]) return call.end(cudaErrorInvalidDevice);
    return cudaSuccess;
}

EXPORT cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) {
    *device = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaSetDeviceFlags(unsigned flags) {
    runtime().device_flags = flags;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    constexpr unsigned kMapHost = 8;
    *flags = runtime().device_flags | kMapHost;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetLastError();

EXPORT cudaError_t cudaDeviceReset() {
    wait_for_host_calls(nullptr);
    Call call;
    Runtime &state = runtime();
    if (!call.backend()) return call.end(cudaErrorInitializationError);
    if (cudaError_t error = state.sticky ? cudaSuccess : call.refused_in_records("cudaDeviceReset")) return error;
    call.backend()->reset();
    for (auto &[address, allocation] : state.allocations) state.addresses.give_back(address);
    state.allocations.clear();
    state.device_bytes = 0;
    state.streams.clear();
    state.events.clear();
    state.sticky = cudaSuccess;
    cudaGetLastError();
    return cudaSuccess;
}

// How caches are split changes nothing of what a program sees.

EXPORT cudaError_t cudaDeviceSetCacheConfig(int) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceSetSharedMemConfig(int) { return cudaSuccess; }
EXPORT cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStart() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStop() { return cudaSuccess; }

EXPORT cudaError_t cudaDeviceGetCacheConfig(int *config) {
    *config = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetSharedMemConfig(int *config) {
    constexpr int kFourByteBanks = 1;
    *config = kFourByteBanks;
    return cudaSuccess;
}

// Limits, by number: stack of a thread, printf's buffer, the device heap, two of device-side launches, two of L2.
static const size_t kLimits[] = {1024, 7340032, 8388608, 2, 2048, 64, 0};

EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, int limit) {
    Call call;
    if (limit < 0 || limit > 6 || !value) return call.end(cudaErrorInvalidValue);
    auto set = runtime().limits.find(limit);
    *value = set == runtime().limits.end() ? kLimits[limit] : set->second;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
    Call call;
    if (limit < 0 || limit > 6) return call.end(cudaErrorInvalidValue);
    runtime().limits[limit] = value;
    if (call.backend()) call.backend()->limit(limit, value);
    return cudaSuccess;
}

// There is one device, so there are no peers.

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = 0;
    return known_device(device ? device : peer);
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return Call().end(cudaErrorInvalidDevice); }
EXPORT cudaError_t cudaDeviceDisablePeerAccess(int) { return Call().end(cudaErrorInvalidDevice); }
EXPORT cudaError_t cudaDeviceGetP2PAttribute(int *, int, int, int) { return Call().end(cudaErrorInvalidDevice); }

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int room, int device) {
    if (!id || room < 13) return Call().end(cudaErrorInvalidValue);
    std::strncpy(id, "0000:00:00.0", static_cast<size_t>(room));
    return known_device(device);
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    *device = 0;
    return Call().end(id && std::strstr(id, "00:00") ? cudaSuccess : cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const void *, int device) {
    *width = size_t{1} << 28;
    return known_device(device);
}

// There is no driver behind this library: who asks for its functions finds none.

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *, void **function, unsigned long long, int *result) {
    constexpr int kNotFound = 1;
    if (function) *function = nullptr;
    if (result) *result = kNotFound;
    return result ? cudaSuccess : Call().end(cudaErrorSymbolNotFound);
}
ALSO(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint)

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long flags,
                                                    int *result) {
    return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
ALSO(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion)

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
    Call call;
    if (device != 0) return call.end(cudaErrorInvalidDevice);
    if (attribute < 1 || attribute > 147) return call.end(cudaErrorInvalidValue);
    *value = 0;
    if (auto limit = attribute_limits().find(attribute); limit != attribute_limits().end())
        *value = as_int(runtime().device[limit->second]);
    if (auto constant = attribute_constants().find(attribute); constant != attribute_constants().end())
        *value = constant->second;
    bool program = call.backend() && !call.backend()->records();
    if (auto own = program_attributes().find(attribute); program && own != program_attributes().end()) *value = own->second;
    if (attribute == 120) *value = runtime().device["major"] >= 9;  // clusters
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    Call call;
    if (device != 0) return call.end(cudaErrorInvalidDevice);
    const Device &limits = runtime().device;
    cudaDeviceProp &p = *properties;
    p = cudaDeviceProp{};
    std::strncpy(p.name, ("NVIDIA " + limits.product).c_str(), sizeof p.name - 1);
    p.totalGlobalMem = limits["memory_bytes"];
    p.sharedMemPerBlock = limits["default_shared_bytes_per_block"];
    p.regsPerBlock = as_int(limits["max_registers_per_block"]);
    p.warpSize = 32;
    p.memPitch = 0x7fffffff;
    p.maxThreadsPerBlock = as_int(limits["max_threads_per_block"]);
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = limits["constant_bytes"];
    p.major = as_int(limits["major"]);
    p.minor = as_int(limits["minor"]);
    p.textureAlignment = p.surfaceAlignment = 512;
    p.texturePitchAlignment = 32;
    p.multiProcessorCount = as_int(limits["sm_count"]);
    p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
    p.asyncEngineCount = 3;
    p.l2CacheSize = as_int(limits["l2_bytes"]);
    p.maxThreadsPerMultiProcessor = as_int(limits["max_threads_per_sm"]);
    p.globalL1CacheSupported = p.localL1CacheSupported = 1;
    p.sharedMemPerMultiprocessor = limits["shared_bytes_per_sm"];
    p.regsPerMultiprocessor = as_int(limits["registers_per_sm"]);
    p.computePreemptionSupported = p.cooperativeLaunch = p.memoryPoolsSupported = 1;
    p.sharedMemPerBlockOptin = limits["max_shared_bytes_per_block"];
    p.maxBlocksPerMultiProcessor = as_int(limits["max_blocks_per_sm"]);
    p.reservedSharedMemPerBlock = limits["reserved_shared_bytes_per_block"];
    p.clusterLaunch = p.major >= 9;
    if (call.backend() && !call.backend()->records()) {
        p.canMapHostMemory = p.managedMemory = p.concurrentManagedAccess = p.hostRegisterSupported = 1;
        p.canUseHostPointerForRegisteredMem = 1;
        p.directManagedMemAccessFromHost = p.hostNativeAtomicSupported = 1;
    }
    return cudaSuccess;
}
