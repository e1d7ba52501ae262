// Device memory: allocation, filling, copying, symbols.
#include <cstdlib>
#include <cstring>

#include "runtime.h"

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMaxRows = 4096;  // of a two-dimensional copy, which becomes one operation a row

Address at(const void *pointer) { return reinterpret_cast<Address>(pointer); }

cudaError_t allocate(void **pointer, size_t bytes) {
    Call call;
    Runtime &state = runtime();
    if (cudaError_t error = call.refused()) return error;
    if (!pointer) return call.end(cudaErrorInvalidValue);
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    uint64_t room = kScratchBase + kScratchBytes - state.next;
    uint64_t taken = (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + kGuardBytes;
    if (bytes > kScratchBytes || taken > room || bytes > static_cast<uint64_t>(state.device["memory_bytes"]))
        return call.end(cudaErrorMemoryAllocation);
    Address address = state.next;
    if (cudaError_t error = call.backend()->allocate(address, bytes)) return call.end(error);
    state.next += taken;  // addresses are never used twice, so a stale pointer stays recognisable
    state.allocations[address] = bytes;
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}

cudaError_t release(void *pointer) {
    Call call;
    if (!pointer) return cudaSuccess;
    if (cudaError_t error = call.refused()) return error;
    if (!runtime().allocations.erase(at(pointer))) return call.end(cudaErrorInvalidValue);
    return call.end(call.backend()->release(at(pointer)));
}

cudaError_t fill(void *to, int value, size_t bytes) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (bytes == 0) return cudaSuccess;
    if (!on_device(to)) return call.end(cudaErrorInvalidValue);
    return call.end(call.backend()->fill(at(to), value & 0xff, bytes));
}

cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, const char *name) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return call.end(cudaErrorInvalidMemcpyDirection);
    if (bytes == 0) return cudaSuccess;
    if (!to || !from) return call.end(cudaErrorInvalidValue);
    bool to_device = on_device(to), from_device = on_device(from);
    bool says_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool says_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (says_to != to_device || says_from != from_device))
        return call.end(cudaErrorInvalidValue);
    if (to_device && from_device) return call.end(call.backend()->copy(at(to), at(from), bytes));
    if (to_device) return call.end(call.backend()->upload(at(to), from, bytes));
    if (from_device) return call.end(call.backend()->download(to, at(from), bytes, name));
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      cudaMemcpyKind kind, const char *name) {
    Call call;
    if (width > to_pitch || width > from_pitch) return call.end(cudaErrorInvalidPitchValue);
    if (width == to_pitch && width == from_pitch) return copy(to, from, width * height, kind, name);
    if (height > kMaxRows) {
        if (cudaError_t error = call.refused()) return error;
        return call.end(call.backend()->unsupported(name, "more than 4096 rows are not recorded"));
    }
    for (size_t row = 0; row < height; row++) {
        auto *target = static_cast<char *>(to) + row * to_pitch;
        auto *source = static_cast<const char *>(from) + row * from_pitch;
        if (cudaError_t error = copy(target, source, width, kind, name)) return error;
    }
    return cudaSuccess;
}

// Finds [offset, offset + bytes) of a variable; `address` is 0 where variables have none, when recording.
cudaError_t find_symbol(const void *symbol, size_t bytes, size_t offset, const Variable *&variable, Address &address) {
    auto found = runtime().variables.find(symbol);
    if (found == runtime().variables.end()) return cudaErrorInvalidSymbol;
    variable = &found->second;
    if (offset > variable->bytes || bytes > variable->bytes - offset) return cudaErrorInvalidValue;
    cudaError_t error = runtime().backend->locate(*variable, address);
    if (address) address += offset;
    return error;
}

cudaError_t to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    const Variable *variable = nullptr;
    Address address = 0;
    if (cudaError_t error = find_symbol(symbol, bytes, offset, variable, address)) return call.end(error);
    if (address) return copy(reinterpret_cast<void *>(address), from, bytes, kind, "cudaMemcpyToSymbol");
    if (kind == cudaMemcpyDeviceToDevice || on_device(from))
        return call.end(call.backend()->unsupported("cudaMemcpyToSymbol", "copies from device memory into a symbol are not recorded"));
    return call.end(call.backend()->write_symbol(*variable, offset, from, bytes));
}

cudaError_t from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, const char *name) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    const Variable *variable = nullptr;
    Address address = 0;
    if (cudaError_t error = find_symbol(symbol, bytes, offset, variable, address)) return call.end(error);
    if (address) return copy(to, reinterpret_cast<void *>(address), bytes, kind, name);
    return call.end(call.backend()->unsupported(name, "results that host code reads back are not recorded yet"));
}

}  // namespace

EXPORT cudaError_t cudaMalloc(void **pointer, size_t bytes) { return allocate(pointer, bytes); }
EXPORT cudaError_t cudaFree(void *pointer) { return release(pointer); }

EXPORT cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t) { return allocate(pointer, bytes); }
ALSO(cudaMallocAsync_ptsz, cudaMallocAsync)

EXPORT cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t, cudaStream_t) {
    return allocate(pointer, bytes);
}
ALSO(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync)

EXPORT cudaError_t cudaFreeAsync(void *pointer, cudaStream_t) { return release(pointer); }
ALSO(cudaFreeAsync_ptsz, cudaFreeAsync)

EXPORT cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    size_t bytes = 0;
    *pitch = (width + kAlignment - 1) / kAlignment * kAlignment;
    if (*pitch < width || __builtin_mul_overflow(*pitch, height, &bytes)) return Call().end(cudaErrorMemoryAllocation);
    return allocate(pointer, bytes);
}

EXPORT cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    *pointer = std::malloc(bytes ? bytes : 1);
    return Call().end(*pointer ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }

EXPORT cudaError_t cudaFreeHost(void *pointer) {
    std::free(pointer);
    return cudaSuccess;
}

EXPORT cudaError_t cudaHostRegister(void *, size_t, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }

EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes) { return fill(to, value, bytes); }
ALSO(cudaMemset_ptds, cudaMemset)

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) { return fill(to, value, bytes); }
ALSO(cudaMemsetAsync_ptsz, cudaMemsetAsync)

EXPORT cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    Call call;
    if (width == pitch) return fill(to, value, width * height);
    if (width > pitch) return call.end(cudaErrorInvalidValue);
    if (height > kMaxRows && call.backend())
        return call.end(call.backend()->unsupported("cudaMemset2D", "more than 4096 rows are not recorded"));
    for (size_t row = 0; row < height; row++)
        if (cudaError_t error = fill(static_cast<char *>(to) + row * pitch, value, width)) return error;
    return cudaSuccess;
}
ALSO(cudaMemset2D_ptds, cudaMemset2D)

EXPORT cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
    return cudaMemset2D(to, pitch, value, width, height);
}
ALSO(cudaMemset2DAsync_ptsz, cudaMemset2DAsync)

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return copy(to, from, bytes, kind, "cudaMemcpy with cudaMemcpyDeviceToHost");
}
ALSO(cudaMemcpy_ptds, cudaMemcpy)

EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    return copy(to, from, bytes, kind, "cudaMemcpyAsync with cudaMemcpyDeviceToHost");
}
ALSO(cudaMemcpyAsync_ptsz, cudaMemcpyAsync)

EXPORT cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, "cudaMemcpy2D with cudaMemcpyDeviceToHost");
}
ALSO(cudaMemcpy2D_ptds, cudaMemcpy2D)

EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
ALSO(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync)

EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind) {
    return to_symbol(symbol, from, bytes, offset, kind);
}
ALSO(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol)

EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t) {
    return to_symbol(symbol, from, bytes, offset, kind);
}
ALSO(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync)

EXPORT cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind) {
    return from_symbol(to, symbol, bytes, offset, kind, "cudaMemcpyFromSymbol");
}
ALSO(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol)

EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t) {
    return from_symbol(to, symbol, bytes, offset, kind, "cudaMemcpyFromSymbolAsync");
}
ALSO(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync)

EXPORT cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    Call call;
    auto found = runtime().variables.find(symbol);
    if (found == runtime().variables.end()) return call.end(cudaErrorInvalidSymbol);
    *bytes = found->second.bytes;
    return cudaSuccess;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    Call call;
    *total = runtime().device["memory_bytes"];
    size_t used = 0;
    for (auto [address, bytes] : runtime().allocations) used += bytes;
    *free = *total > used ? *total - used : 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    *attributes = cudaPointerAttributes{};
    attributes->type = on_device(pointer) ? 2 : 0;
    attributes->device = on_device(pointer) ? 0 : -2;
    attributes->devicePointer = on_device(pointer) ? const_cast<void *>(pointer) : nullptr;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    const Variable *variable = nullptr;
    Address address = 0;
    if (cudaError_t error = find_symbol(symbol, 0, 0, variable, address)) return call.end(error);
    if (!address) return call.end(call.backend()->unsupported("cudaGetSymbolAddress", "it is not recorded"));
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}
