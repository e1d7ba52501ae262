// Memory that host and kernels share: managed, pinned, registered. The emulated device lives in this process, so a
// pointer is the same on both sides. Registered memory has a second address, in the device's range; kernels may use
// either.
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

// What was moved into shared memory: first page -> behind the last. Two pieces of host memory that are registered may
// meet in one page.
std::map<Address, Address> &moved() {
    static auto *table = new std::map<Address, Address>;
    return *table;
}

bool move_to_shared(Address from, size_t bytes) {
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    std::memcpy(pages, reinterpret_cast<void *>(from), bytes);
    void *there = mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void *>(from));
    if (there == MAP_FAILED) munmap(pages, bytes);
    return there != MAP_FAILED;
}

// Works with shared memory alone.
bool map_again(Address from, size_t bytes, Address seen) {
    auto *at = reinterpret_cast<void *>(from);
    return mremap(at, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void *>(seen)) != MAP_FAILED;
}

// Puts the pages of [from, end) at `seen` as well. They are moved into shared memory first: only that can be mapped
// twice.
bool map_twice(Address from, Address end, Address seen) {
    while (from < end) {
        auto next = moved().upper_bound(from);
        Address stop = next == moved().end() ? end : std::min(end, next->first);
        if (auto known = next == moved().begin() ? next : std::prev(next); known != next && known->second > from) {
            auto [first, last] = *known;
            stop = std::min(end, last);
            if (!map_again(from, stop - from, seen)) {  // the host has other memory there by now
                moved().erase(known);
                if (first < from) moved()[first] = from;
                if (stop < last) moved()[stop] = last;
                continue;
            }
        } else {
            if (!move_to_shared(from, stop - from) || !map_again(from, stop - from, seen)) return false;
            moved()[from] = stop;
        }
        seen += stop - from;
        from = stop;
    }
    return true;
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

Address seen_by_kernels(const void *pointer) {
    auto found = find_registered(pointer);
    return found == registered().end() ? address_of(pointer) : found->second.seen + (address_of(pointer) - found->first);
}

void host_attributes(cudaPointerAttributes *attributes, const void *pointer) {
    auto found = find_registered(pointer);
    attributes->hostPointer = const_cast<void *>(pointer);
    if (found == registered().end()) {
        attributes->hostPointer = nullptr;
        return;
    }
    attributes->type = 1;
    attributes->device = 0;
    attributes->devicePointer = reinterpret_cast<void *>(seen_by_kernels(pointer));
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
    if (!map_twice(from, from + pages, address_of(seen))) {
        release(seen, Memory::host, "cudaHostRegister");
        return call.end(cudaErrorMemoryAllocation);
    }
    Address there = address_of(seen) + (address_of(pointer) - from);
    registered()[address_of(pointer)] = {bytes, flags, there};
    call.backend()->lend(pointer, bytes, there);
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
    call.backend()->take_back(pointer);
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
    *seen = reinterpret_cast<void *>(seen_by_kernels(pointer));
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
