// The device's limits, streams, events and errors.
#include <cstring>

#include "runtime.h"

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

}  // namespace

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) { return Call().end(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
EXPORT cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
EXPORT cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceSynchronize() { return Call().refused(); }
EXPORT cudaError_t cudaDeviceSetCacheConfig(int) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceSetSharedMemConfig(int) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceSetLimit(int, size_t) { return cudaSuccess; }
EXPORT cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStart() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStop() { return cudaSuccess; }

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
    return cudaSuccess;
}

// Streams and events. Everything happens in the order of the calls, which every dependency between streams
// allows; so a stream is a number, and an event is nothing but valid or not.

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) {
    Call call;
    auto *number = new int(static_cast<int>(runtime().streams.size()) + 1);
    runtime().streams.insert(number);
    *stream = reinterpret_cast<cudaStream_t>(number);
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

static cudaError_t known_stream(cudaStream_t stream) {
    Call call;
    return call.end(stream_id(stream) < 0 ? cudaErrorInvalidResourceHandle : cudaSuccess);
}

// A destroyed stream's number stays taken, so that two streams never share one.
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) { return known_stream(stream); }

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return known_stream(stream); }
ALSO(cudaStreamSynchronize_ptsz, cudaStreamSynchronize)

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) { return known_stream(stream); }
ALSO(cudaStreamQuery_ptsz, cudaStreamQuery)

EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    *flags = 0;
    return known_stream(stream);
}
ALSO(cudaStreamGetFlags_ptsz, cudaStreamGetFlags)

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    *priority = 0;
    return known_stream(stream);
}
ALSO(cudaStreamGetPriority_ptsz, cudaStreamGetPriority)

EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    *device = 0;
    return known_stream(stream);
}
ALSO(cudaStreamGetDevice_ptsz, cudaStreamGetDevice)

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
    *status = 0;
    return known_stream(stream);
}
ALSO(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing)

EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, ...) {
    *status = 0;
    return known_stream(stream);
}
ALSO(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo)

EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t stream, int, const void *) { return known_stream(stream); }
ALSO(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute)

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    Call call;
    *event = reinterpret_cast<cudaEvent_t>(new char);
    runtime().events.insert(*event);
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

static cudaError_t known_event(cudaEvent_t event) {
    Call call;
    return call.end(runtime().events.count(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
    Call call;
    return call.end(runtime().events.erase(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) { return known_event(event); }
ALSO(cudaEventRecord_ptsz, cudaEventRecord)

EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned) { return known_event(event); }
ALSO(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags)

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) { return known_event(event); }
EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) { return known_event(event); }

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) { return known_event(event); }
ALSO(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent)

EXPORT cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    return call.end(call.backend()->unsupported("cudaEventElapsedTime", "a recorded launch takes no time"));
}

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int) {
    static char only;
    *pool = reinterpret_cast<cudaMemPool_t>(&only);
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}

EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void *) { return cudaSuccess; }
EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

// Errors.

EXPORT cudaError_t cudaGetLastError() {
    Call call;
    if (call.backend()) call.backend()->errors_were_read();
    return std::exchange(runtime().last_error, cudaSuccess);
}

EXPORT cudaError_t cudaPeekAtLastError() {
    Call call;
    if (call.backend()) call.backend()->errors_were_read();
    return runtime().last_error;
}

EXPORT const char *cudaGetErrorName(cudaError_t error) { return error_name(error); }
EXPORT const char *cudaGetErrorString(cudaError_t error) { return error_text(error); }
