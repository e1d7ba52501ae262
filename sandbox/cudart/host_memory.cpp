// Memory that host and kernels share: managed, pinned, registered. The emulated device lives in this process, so a
// pointer is the same on both sides; only registered memory is seen by kernels at another address.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "work.h"

namespace {

constexpr size_t kPage = 4096;
constexpr unsigned kAttachGlobal = 1, kAttachHost = 2;

struct Registered {
    size_t bytes;
    unsigned flags;
    Address seen;  // by kernels
};

std::map<Address, Registered> &registered() {
    static auto *table = new std::map<Address, Registered>;
    return *table;
}

// The registered range that holds `pointer`; the map's end where there is none.
auto find_registered(const void *pointer) {
    auto after = registered().upper_bound(address_of(pointer));
    if (after == registered().begin()) return registered().end();
    auto found = std::prev(after);
    return address_of(pointer) < found->first + found->second.bytes ? found : registered().end();
}

// Puts the pages of [from, from + bytes) at `seen` as well. They are moved into shared memory first: only that can
// be mapped twice.
bool map_twice(Address from, size_t bytes, Address seen) {
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    std::memcpy(pages, reinterpret_cast<void *>(from), bytes);
    void *moved = mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void *>(from));
    if (moved == MAP_FAILED) {
        munmap(pages, bytes);
        return false;
    }
    return mremap(moved, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void *>(seen)) != MAP_FAILED;
}

cudaError_t shared_range(const void *pointer, size_t bytes, const char *name) {
    Call call;
    if (cudaError_t error = call.refused_in_records(name)) return error;
    const Allocation *allocation = find_allocation(pointer);
    Address start = 0;
    find_allocation(pointer, &start);
    bool inside = allocation && allocation->kind == Memory::managed && address_of(pointer) + bytes <= start + allocation->bytes;
    for (auto &[stub, variable] : runtime().variables) {
        if (!variable.managed || !*variable.managed) continue;
        Address at = address_of(*variable.managed);
        inside = inside || (address_of(pointer) >= at && address_of(pointer) + bytes <= at + variable.bytes);
    }
    return call.end(inside ? cudaSuccess : cudaErrorInvalidValue);
}

}  // namespace

void host_attributes(cudaPointerAttributes *attributes, const void *pointer) {
    auto found = find_registered(pointer);
    attributes->hostPointer = const_cast<void *>(pointer);
    if (found == registered().end()) {
        attributes->hostPointer = nullptr;
        return;
    }
    attributes->type = 1;
    attributes->device = 0;
    attributes->devicePointer = reinterpret_cast<void *>(found->second.seen + (address_of(pointer) - found->first));
}

EXPORT cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaMallocManaged")) return error;
    if (!pointer || !bytes || (flags != kAttachGlobal && flags != kAttachHost)) return call.end(cudaErrorInvalidValue);
    return allocate(pointer, bytes, Memory::managed, flags);
}

EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    Call call;
    if (!pointer || flags > 7) return call.end(cudaErrorInvalidValue);
    if (call.backend() && !call.backend()->records()) return allocate(pointer, bytes, Memory::host, flags);
    *pointer = std::malloc(bytes ? bytes : 1);
    return call.end(*pointer ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

EXPORT cudaError_t cudaFreeHost(void *pointer) {
    Call call;
    if (call.backend() && !call.backend()->records()) return release(pointer, Memory::host, "cudaFreeHost");
    std::free(pointer);
    return cudaSuccess;
}

EXPORT cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (call.backend()->records()) return cudaSuccess;
    if (!pointer || !bytes || on_device(pointer)) return call.end(cudaErrorInvalidValue);
    if (find_registered(pointer) != registered().end()) return call.end(cudaErrorHostMemoryAlreadyRegistered);
    Address from = address_of(pointer) / kPage * kPage;
    size_t pages = (address_of(pointer) + bytes - from + kPage - 1) / kPage * kPage;
    void *seen = nullptr;
    if (cudaError_t error = allocate(&seen, pages, Memory::host, flags)) return error;
    if (!map_twice(from, pages, address_of(seen))) {
        release(seen, Memory::host, "cudaHostRegister");
        return call.end(cudaErrorMemoryAllocation);
    }
    registered()[address_of(pointer)] = {bytes, flags, address_of(seen) + (address_of(pointer) - from)};
    return cudaSuccess;
}

EXPORT cudaError_t cudaHostUnregister(void *pointer) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (call.backend()->records()) return cudaSuccess;
    auto found = registered().find(address_of(pointer));
    if (found == registered().end()) return call.end(cudaErrorHostMemoryNotRegistered);
    auto *seen = reinterpret_cast<void *>(found->second.seen / kPage * kPage);
    registered().erase(found);
    return release(seen, Memory::host, "cudaHostUnregister");
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **seen, void *pointer, unsigned) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaHostGetDevicePointer")) return error;
    if (!seen) return call.end(cudaErrorInvalidValue);
    *seen = nullptr;
    const Allocation *allocation = find_allocation(pointer);
    if (allocation && allocation->kind != Memory::device) {
        *seen = pointer;
        return cudaSuccess;
    }
    auto found = find_registered(pointer);
    if (found == registered().end()) return call.end(cudaErrorInvalidValue);
    *seen = reinterpret_cast<void *>(found->second.seen + (address_of(pointer) - found->first));
    return cudaSuccess;
}

EXPORT cudaError_t cudaHostGetFlags(unsigned *flags, void *pointer) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaHostGetFlags")) return error;
    const Allocation *allocation = find_allocation(pointer);
    auto found = find_registered(pointer);
    if (!flags || (!allocation && found == registered().end())) return call.end(cudaErrorInvalidValue);
    *flags = allocation ? allocation->flags : found->second.flags;
    return cudaSuccess;
}

// Where pages are better kept changes nothing of what a program sees.

struct cudaMemLocation {
    int type, id;
};

EXPORT cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t) {
    return shared_range(pointer, bytes, "cudaMemPrefetchAsync");
}
ALSO(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync)

EXPORT cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int, cudaMemLocation) {
    return shared_range(pointer, bytes, "cudaMemAdvise");
}

EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void *pointer, size_t, unsigned) {
    return shared_range(pointer, 0, "cudaStreamAttachMemAsync");
}
ALSO(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync)

EXPORT cudaError_t cudaMemRangeGetAttribute(void *data, size_t bytes, int, const void *pointer, size_t range) {
    if (cudaError_t error = shared_range(pointer, range, "cudaMemRangeGetAttribute")) return error;
    std::memset(data, 0, bytes);  // no advice is kept
    return cudaSuccess;
}
