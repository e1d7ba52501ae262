// Device memory: allocation, filling, symbols, and what is known of a pointer.
#include <algorithm>
#include <cstring>

#include "work.h"

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMaxRows = 4096;  // of one fill in a recording, which becomes one operation a row
constexpr uint64_t kWidestGuard = uint64_t{1} << 30;

cudaError_t start(const cudaMemsetParams &fill, cudaStream_t stream, const char *name) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    return call.end(submit(stream, fill, name));
}

// Values of two and four bytes occur in graphs alone.
cudaError_t fill_row(char *to, const cudaMemsetParams &fill, size_t bytes, const char *name) {
    Backend &backend = *runtime().backend;
    if (fill.elementSize == 1) return backend.fill(address_of(to), static_cast<int>(fill.value & 0xff), bytes, name);
    std::string pattern(bytes, '\0');
    for (size_t i = 0; i < bytes; i += fill.elementSize) std::memcpy(&pattern[i], &fill.value, fill.elementSize);
    return backend.upload(address_of(to), pattern.data(), bytes, name);
}

// Managed memory moves to the host when the device has no room.
bool fills_device(Memory kind) { return kind == Memory::device || kind == Memory::array; }

}  // namespace

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

Address AddressSpace::take(size_t bytes) {
    auto rounded = [](uint64_t size) { return (size + kGuardBytes - 1) / kGuardBytes * kGuardBytes; };
    if (bytes > kDeviceBytes) return 0;
    uint64_t guard = widen_ ? std::clamp<uint64_t>(bytes, kGuardBytes, kWidestGuard) : kGuardBytes;
    uint64_t wanted = rounded(bytes) + rounded(guard);
    Address address = next_;
    if (wanted <= end_ - next_) {
        next_ += wanted;
    } else {
        auto fits = std::find_if(old_.begin(), old_.end(), [&](auto &old) { return old.second >= wanted; });
        if (fits == old_.end()) return 0;
        address = fits->first;
        uint64_t rest = fits->second - wanted;
        old_.erase(fits);
        if (rest) old_[address + wanted] = rest;
    }
    taken_[address] = wanted;
    return address;
}

void AddressSpace::give_back(Address address) {
    auto taken = taken_.find(address);
    if (taken == taken_.end()) return;
    auto place = old_.emplace(address, taken->second).first;
    taken_.erase(taken);
    if (auto next = std::next(place); next != old_.end() && place->first + place->second == next->first) {
        place->second += next->second;
        old_.erase(next);
    }
    if (place == old_.begin()) return;
    if (auto before = std::prev(place); before->first + before->second == place->first) {
        before->second += place->second;
        old_.erase(place);
    }
}

cudaError_t allocate(void **pointer, size_t bytes, Memory kind, unsigned flags, Pool *pool) {
    Call call;
    Runtime &state = runtime();
    if (cudaError_t error = call.refused()) return error;
    if (!pointer) return call.end(cudaErrorInvalidValue);
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    size_t room = static_cast<size_t>(state.device["memory_bytes"]);
    if (fills_device(kind)) room -= std::min(room, state.device_bytes);
    if (bytes > room) return call.end(cudaErrorMemoryAllocation);
    Address address = state.addresses.take(bytes);
    if (!address) return call.end(cudaErrorMemoryAllocation);
    if (cudaError_t error = call.backend()->allocate(address, bytes, kind)) return call.end(error);
    state.allocations[address] = {bytes, kind, flags, pool};
    if (fills_device(kind)) state.device_bytes += bytes;
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}

cudaError_t release(void *pointer, Memory kind, const char *name) {
    Call call;
    if (!pointer) return cudaSuccess;
    if (cudaError_t error = call.refused()) return error;
    auto found = runtime().allocations.find(address_of(pointer));
    bool freeable = found != runtime().allocations.end() &&
                    (found->second.kind == kind || (kind == Memory::device && found->second.kind == Memory::managed));
    if (!freeable) {
        call.backend()->bad_free(address_of(pointer), name);
        return call.end(cudaErrorInvalidValue);
    }
    if (fills_device(found->second.kind)) runtime().device_bytes -= found->second.bytes;
    runtime().addresses.give_back(found->first);
    runtime().allocations.erase(found);
    return call.end(call.backend()->release(address_of(pointer)));
}

const Allocation *find_allocation(const void *pointer, Address *start) {
    auto &allocations = runtime().allocations;
    auto after = allocations.upper_bound(address_of(pointer));
    if (after == allocations.begin()) return nullptr;
    auto &[address, allocation] = *std::prev(after);
    if (start) *start = address;
    return address_of(pointer) < address + allocation.bytes ? &allocation : nullptr;
}

cudaError_t perform_fill(const cudaMemsetParams &fill, const char *name) {
    size_t bytes = fill.width * fill.elementSize, rows = fill.height;
    if (!bytes || !rows) return cudaSuccess;
    auto *start = reinterpret_cast<char *>(seen_by_kernels(fill.dst));
    if (!on_device(start)) return cudaErrorInvalidValue;
    if (rows > 1 && bytes > fill.pitch) return cudaErrorInvalidValue;
    if (bytes == fill.pitch) bytes *= std::exchange(rows, 1);
    if (runtime().backend->records() && rows > kMaxRows)
        return runtime().backend->unsupported(name, "more than 4096 rows are not recorded");
    for (size_t row = 0; row < rows; row++)
        if (cudaError_t error = fill_row(start + row * fill.pitch, fill, bytes, name)) return error;
    return cudaSuccess;
}

// Finds [offset, offset + bytes) of a variable; `address` is 0 where variables have none, when recording.
cudaError_t find_symbol(const void *symbol, size_t bytes, size_t offset, const Variable *&variable, Address &address) {
    auto &variables = runtime().variables;
    auto found = variables.find(symbol);
    if (found == variables.end())  // a managed variable may also be named by its address
        found = std::find_if(variables.begin(), variables.end(),
                             [&](auto &one) { return one.second.managed && *one.second.managed == symbol; });
    if (found == variables.end()) return cudaErrorInvalidSymbol;
    variable = &found->second;
    if (offset > variable->bytes || bytes > variable->bytes - offset) return cudaErrorInvalidValue;
    cudaError_t error = runtime().backend->locate(*variable, address);
    if (address) address += offset;
    return error;
}

EXPORT cudaError_t cudaMalloc(void **pointer, size_t bytes) { return allocate(pointer, bytes); }
EXPORT cudaError_t cudaFree(void *pointer) {
    wait_for_host_calls(nullptr);
    return release(pointer, Memory::device, "cudaFree");
}

EXPORT cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    size_t bytes = 0;
    if (!pitch) return Call().end(cudaErrorInvalidValue);
    *pitch = (width + kAlignment - 1) / kAlignment * kAlignment;
    if (*pitch < width || __builtin_mul_overflow(*pitch, height, &bytes)) return Call().end(cudaErrorMemoryAllocation);
    return allocate(pointer, bytes);
}

EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr *made, cudaExtent extent) {
    size_t rows = 0;
    if (!made) return Call().end(cudaErrorInvalidValue);
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return Call().end(cudaErrorMemoryAllocation);
    *made = {nullptr, 0, extent.width, extent.height};
    return cudaMallocPitch(&made->ptr, &made->pitch, extent.width, rows);
}

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    return start({to, bytes, static_cast<unsigned>(value), 1, bytes, 1}, stream, "cudaMemset");
}
ALSO(cudaMemsetAsync_ptsz, cudaMemsetAsync)

EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }
ALSO(cudaMemset_ptds, cudaMemset)

EXPORT cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
    if (width > pitch) return Call().end(cudaErrorInvalidValue);
    return start({to, pitch, static_cast<unsigned>(value), 1, width, height}, stream, "cudaMemset2D");
}
ALSO(cudaMemset2DAsync_ptsz, cudaMemset2DAsync)

EXPORT cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}
ALSO(cudaMemset2D_ptds, cudaMemset2D)

EXPORT cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
    if (extent.width > to.pitch) return Call().end(cudaErrorInvalidValue);
    auto *slice = static_cast<char *>(to.ptr);
    size_t height = extent.height, slices = extent.depth;
    if (to.ysize == height) height *= std::exchange(slices, extent.depth ? 1 : 0);
    for (size_t z = 0; z < slices; z++, slice += to.pitch * std::max(to.ysize, height))
        if (cudaError_t error = start({slice, to.pitch, static_cast<unsigned>(value), 1, extent.width, height}, stream,
                                      "cudaMemset3D"))
            return error;
    return Call().refused();
}
ALSO(cudaMemset3DAsync_ptsz, cudaMemset3DAsync)

EXPORT cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    return cudaMemset3DAsync(to, value, extent, nullptr);
}
ALSO(cudaMemset3D_ptds, cudaMemset3D)

EXPORT cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    Call call;
    auto found = runtime().variables.find(symbol);
    if (found == runtime().variables.end()) return call.end(cudaErrorInvalidSymbol);
    *bytes = found->second.bytes;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaGetSymbolAddress")) return error;
    const Variable *variable = nullptr;
    Address address = 0;
    if (cudaError_t error = find_symbol(symbol, 0, 0, variable, address)) return call.end(error);
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    Call call;
    size_t all = runtime().device["memory_bytes"];
    if (total) *total = all;
    if (free) *free = all - runtime().device_bytes;
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    Call call;
    if (!attributes) return call.end(cudaErrorInvalidValue);
    *attributes = cudaPointerAttributes{};
    attributes->device = on_device(pointer) ? 0 : -2;
    if (!on_device(pointer)) {
        host_attributes(attributes, pointer);
        return cudaSuccess;
    }
    const Allocation *allocation = find_allocation(pointer);
    Memory kind = allocation ? allocation->kind : Memory::device;
    attributes->type = kind == Memory::host ? 1 : kind == Memory::managed ? 3 : 2;
    attributes->devicePointer = const_cast<void *>(pointer);
    attributes->hostPointer = attributes->type == 2 ? nullptr : attributes->devicePointer;
    return cudaSuccess;
}
