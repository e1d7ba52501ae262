// Memory in the order of streams, and the pools it comes from. Everything happens at once, so a pool only counts.
#include <algorithm>
#include <cstring>
#include <memory>

#include "work.h"

struct Pool {
    size_t used_high = 0;
    std::map<int, uint64_t> settings;  // by attribute
};

namespace {

struct Pools {
    Pool standard;
    Pool *current = &standard;
    std::set<Pool *> made;
};

Pools &pools() {
    static auto *all = new Pools;
    return *all;
}

constexpr int kLastSetting = 4, kReservedCurrent = 5, kReservedHigh = 6, kUsedCurrent = 7, kUsedHigh = 8;

bool known(Pool *pool) { return pool == &pools().standard || pools().made.count(pool); }

size_t used(Pool *pool) {
    size_t bytes = 0;
    for (auto &[address, allocation] : runtime().allocations)
        if (allocation.pool == pool) bytes += allocation.bytes;
    return bytes;
}

cudaError_t from_pool(void **pointer, size_t bytes, Pool *pool, cudaStream_t stream) {
    Call call;
    if (!find_stream(stream)) return call.end(cudaErrorInvalidResourceHandle);
    if (!known(pool)) return call.end(cudaErrorInvalidValue);
    cudaError_t error = allocate(pointer, bytes, Memory::device, 0, pool);
    pool->used_high = std::max(pool->used_high, used(pool));
    return error;
}

}  // namespace

EXPORT cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    return from_pool(pointer, bytes, pools().current, stream);
}
ALSO(cudaMallocAsync_ptsz, cudaMallocAsync)

EXPORT cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return from_pool(pointer, bytes, pool, stream);
}
ALSO(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync)

// While a stream is captured its memory stays: the graph will use it at every launch.
EXPORT cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    Call call;
    Stream *found = find_stream(stream);
    if (!found) return call.end(cudaErrorInvalidResourceHandle);
    if (found->capture) return cudaSuccess;
    return release(pointer, Memory::device, "cudaFreeAsync");
}
ALSO(cudaFreeAsync_ptsz, cudaFreeAsync)

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    Call call;
    if (device) return call.end(cudaErrorInvalidDevice);
    *pool = &pools().standard;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    Call call;
    if (device) return call.end(cudaErrorInvalidDevice);
    *pool = pools().current;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    Call call;
    if (device) return call.end(cudaErrorInvalidDevice);
    if (!known(pool)) return call.end(cudaErrorInvalidValue);
    pools().current = pool;
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const void *properties) {
    Call call;
    if (!pool || !properties) return call.end(cudaErrorInvalidValue);
    *pool = *pools().made.insert(new Pool).first;
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    Call call;
    if (!pools().made.erase(pool)) return call.end(cudaErrorInvalidValue);
    if (pools().current == pool) pools().current = &pools().standard;
    for (auto &[address, allocation] : runtime().allocations)
        if (allocation.pool == pool) allocation.pool = &pools().standard;
    delete pool;
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
    Call call;
    if (!known(pool) || !value) return call.end(cudaErrorInvalidValue);
    uint64_t number = 0;
    std::memcpy(&number, value, attribute < kLastSetting ? 4 : 8);  // the first three are int
    if (attribute >= 1 && attribute <= kLastSetting) {
        pool->settings[attribute] = number;
    } else if (attribute == kUsedHigh || attribute == kReservedHigh) {
        if (number) return call.end(cudaErrorInvalidValue);  // it can be reset, no more
        pool->used_high = 0;
    } else {
        return call.end(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value) {
    Call call;
    if (!known(pool) || !value || attribute < 1 || attribute > kUsedHigh) return call.end(cudaErrorInvalidValue);
    if (attribute <= kLastSetting) {
        auto found = pool->settings.find(attribute);
        uint64_t number = found != pool->settings.end() ? found->second : attribute < kLastSetting;
        std::memcpy(value, &number, attribute < kLastSetting ? 4 : 8);
        return cudaSuccess;
    }
    bool high = attribute == kReservedHigh || attribute == kUsedHigh;
    uint64_t bytes = high ? pool->used_high : used(pool);
    std::memcpy(value, &bytes, sizeof bytes);
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
    return Call().end(known(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const void *, size_t) {
    return Call().end(known(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t pool, const int *location) {
    Call call;
    if (!known(pool) || !flags || !location) return call.end(cudaErrorInvalidValue);
    constexpr int kDevice = 1, kReadWrite = 3;
    *flags = location[0] == kDevice && location[1] == 0 ? kReadWrite : 0;
    return cudaSuccess;
}
