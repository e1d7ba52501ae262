// Copies: all of them are one shape, rows in slices, between plain memory and arrays.
#include <algorithm>
#include <cstring>

#include "arrays.h"
#include "work.h"

namespace {

constexpr size_t kMaxRows = 4096;  // of one copy in a recording, which becomes one operation a row

struct Side {
    char *base;
    size_t pitch, slice;
    size_t room;  // bytes of a row from its start on
};

// One end of a copy, its position taken in. Positions are in texels in an array, in bytes elsewhere.
Side side(const Array *array, const cudaPos &at, const cudaPitchedPtr &plain, size_t height) {
    if (array) {
        size_t offset = at.z * array->slice + at.y * array->pitch + at.x * array->texel_bytes;
        return {reinterpret_cast<char *>(array->address) + offset, array->pitch, array->slice,
                array->row_bytes() - std::min(at.x * array->texel_bytes, array->row_bytes())};
    }
    size_t slice = plain.pitch * std::max(plain.ysize, height);
    return {static_cast<char *>(plain.ptr) + at.z * slice + at.y * plain.pitch + at.x, plain.pitch, slice, plain.pitch};
}

bool inside(const Array *array, const cudaPos &at, const cudaExtent &extent) {
    return !array || (at.x + extent.width <= array->width && at.y + extent.height <= array->rows() &&
                      at.z + extent.depth <= array->slices());
}

cudaError_t copy_row(void *to, const void *from, size_t bytes, const char *name) {
    Backend &backend = *runtime().backend;
    bool to_device = on_device(to), from_device = on_device(from);
    if (to_device && from_device) return backend.copy(address_of(to), address_of(from), bytes, name);
    if (to_device) return backend.upload(address_of(to), from, bytes, name);
    if (from_device) return backend.download(to, address_of(from), bytes, name);
    std::memmove(to, from, bytes);
    return cudaSuccess;
}

// Only cudaMalloc's memory is out of the host's reach; what both can reach may be called either.
bool agrees(const void *pointer, bool said_on_device) {
    if (said_on_device) return on_device(pointer);
    if (!on_device(pointer)) return true;
    const Allocation *allocation = find_allocation(pointer);
    return allocation && allocation->kind != Memory::device;
}

cudaError_t wrong_direction(const cudaMemcpy3DParms &copy) {
    cudaMemcpyKind kind = copy.kind;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (kind == cudaMemcpyDefault) return cudaSuccess;
    bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool right = (copy.dstArray ? to : agrees(copy.dstPtr.ptr, to)) &&
                 (copy.srcArray ? from : agrees(copy.srcPtr.ptr, from));
    return right ? cudaSuccess : cudaErrorInvalidValue;
}

cudaMemcpy3DParms linear(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return {nullptr, {}, {const_cast<void *>(from), bytes, bytes, 1}, nullptr, {}, {to, bytes, bytes, 1},
            {bytes, 1, 1}, kind};
}

cudaMemcpy3DParms plane(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                        cudaMemcpyKind kind) {
    return {nullptr, {}, {const_cast<void *>(from), from_pitch, width, height}, nullptr, {},
            {to, to_pitch, width, height}, {width, height, 1}, kind};
}

cudaError_t start(const cudaMemcpy3DParms &copy, cudaStream_t stream, const char *name) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    return call.end(submit(stream, copy, name));
}

// Copies to or from a variable.
cudaError_t with_symbol(void *to, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                        cudaStream_t stream, bool symbol_is_target, const char *name) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    const Variable *variable = nullptr;
    Address address = 0;
    const void *symbol = symbol_is_target ? to : from;
    if (cudaError_t error = find_symbol(symbol, bytes, offset, variable, address)) return call.end(error);
    if (address) {
        auto *place = reinterpret_cast<void *>(address);
        return start(linear(symbol_is_target ? place : to, symbol_is_target ? from : place, bytes, kind), stream, name);
    }
    if (!symbol_is_target)
        return call.end(call.backend()->unsupported(name, "results that host code reads back are not recorded yet"));
    if (kind == cudaMemcpyDeviceToDevice || on_device(from))
        return call.end(call.backend()->unsupported(name, "copies from device memory into a symbol are not recorded"));
    return call.end(call.backend()->write_symbol(*variable, offset, from, bytes));
}

cudaError_t array_copy(const cudaMemcpy3DParms &copy, cudaStream_t stream, const char *name) {
    Call call;
    if (cudaError_t error = call.refused_in_records(name)) return error;
    return call.end(submit(stream, copy, name));
}

// Widths and horizontal offsets of the older calls are in bytes, those of arrays in texels.
cudaMemcpy3DParms to_array(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                           size_t height, cudaMemcpyKind kind) {
    size_t texel = to ? to->texel_bytes : 1;
    return {nullptr, {}, {const_cast<void *>(from), pitch, width, height}, to, {x / texel, y, 0}, {},
            {width / texel, height, 1}, kind};
}

cudaMemcpy3DParms from_array(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                             cudaMemcpyKind kind) {
    size_t texel = from ? from->texel_bytes : 1;
    return {from, {x / texel, y, 0}, {}, nullptr, {}, {to, pitch, width, height}, {width / texel, height, 1}, kind};
}

}  // namespace

cudaError_t perform_copy(const cudaMemcpy3DParms &copy, const char *name) {
    const cudaExtent &extent = copy.extent;
    if (cudaError_t error = wrong_direction(copy)) return error;
    if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
    if (!(copy.dstArray || copy.dstPtr.ptr) || !(copy.srcArray || copy.srcPtr.ptr)) return cudaErrorInvalidValue;
    if (!inside(copy.dstArray, copy.dstPos, extent) || !inside(copy.srcArray, copy.srcPos, extent))
        return cudaErrorInvalidValue;
    const Array *array = copy.dstArray ? copy.dstArray : copy.srcArray;
    if (copy.dstArray && copy.srcArray && copy.dstArray->texel_bytes != copy.srcArray->texel_bytes)
        return cudaErrorInvalidValue;
    size_t bytes = extent.width * (array ? array->texel_bytes : 1);
    Side to = side(copy.dstArray, copy.dstPos, copy.dstPtr, extent.height);
    Side from = side(copy.srcArray, copy.srcPos, copy.srcPtr, extent.height);
    size_t rows = extent.height, slices = extent.depth;
    if (rows * slices > 1 && (bytes > to.room || bytes > from.room)) return cudaErrorInvalidPitchValue;
    if (bytes == to.pitch && bytes == from.pitch) {  // rows without gaps are one
        bytes *= std::exchange(rows, 1);
        if (bytes == to.slice && bytes == from.slice) bytes *= std::exchange(slices, 1);
    }
    if (runtime().backend->records() && rows * slices > kMaxRows)
        return runtime().backend->unsupported(name, "more than 4096 rows are not recorded");
    for (size_t slice = 0; slice < slices; slice++)
        for (size_t row = 0; row < rows; row++) {
            char *target = to.base + slice * to.slice + row * to.pitch;
            const char *source = from.base + slice * from.slice + row * from.pitch;
            if (cudaError_t error = copy_row(target, source, bytes, name)) return error;
        }
    return cudaSuccess;
}

cudaMemcpy3DParms linear_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return linear(to, from, bytes, kind);
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return start(linear(to, from, bytes, kind), nullptr, "cudaMemcpy");
}
ALSO(cudaMemcpy_ptds, cudaMemcpy)

EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return start(linear(to, from, bytes, kind), stream, "cudaMemcpyAsync");
}
ALSO(cudaMemcpyAsync_ptsz, cudaMemcpyAsync)

EXPORT cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    if (to_device || from_device) return Call().end(cudaErrorInvalidDevice);
    return start(linear(to, from, bytes, cudaMemcpyDeviceToDevice), nullptr, "cudaMemcpyPeer");
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                       cudaStream_t stream) {
    if (to_device || from_device) return Call().end(cudaErrorInvalidDevice);
    return start(linear(to, from, bytes, cudaMemcpyDeviceToDevice), stream, "cudaMemcpyPeerAsync");
}

EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    if (width > to_pitch || width > from_pitch) return Call().end(cudaErrorInvalidPitchValue);
    return start(plane(to, to_pitch, from, from_pitch, width, height, kind), stream, "cudaMemcpy2D");
}
ALSO(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync)

EXPORT cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
ALSO(cudaMemcpy2D_ptds, cudaMemcpy2D)

EXPORT cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *copy, cudaStream_t stream) {
    Call call;
    if (!copy) return call.end(cudaErrorInvalidValue);
    if ((copy->srcArray && copy->srcPtr.ptr) || (copy->dstArray && copy->dstPtr.ptr)) return call.end(cudaErrorInvalidValue);
    return start(*copy, stream, "cudaMemcpy3D");
}
ALSO(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync)

EXPORT cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *copy) { return cudaMemcpy3DAsync(copy, nullptr); }
ALSO(cudaMemcpy3D_ptds, cudaMemcpy3D)

EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind) {
    return with_symbol(const_cast<void *>(symbol), from, bytes, offset, kind, nullptr, true, "cudaMemcpyToSymbol");
}
ALSO(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol)

EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
    return with_symbol(const_cast<void *>(symbol), from, bytes, offset, kind, stream, true, "cudaMemcpyToSymbolAsync");
}
ALSO(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync)

EXPORT cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind) {
    return with_symbol(to, symbol, bytes, offset, kind, nullptr, false, "cudaMemcpyFromSymbol");
}
ALSO(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol)

EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream) {
    return with_symbol(to, symbol, bytes, offset, kind, stream, false, "cudaMemcpyFromSymbolAsync");
}
ALSO(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync)

EXPORT cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return array_copy(to_array(to, x, y, from, pitch, width, height, kind), stream, "cudaMemcpy2DToArray");
}
ALSO(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync)

EXPORT cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind) {
    return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, nullptr);
}
ALSO(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray)

EXPORT cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return array_copy(from_array(to, pitch, from, x, y, width, height, kind), stream, "cudaMemcpy2DFromArray");
}
ALSO(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync)

EXPORT cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                         size_t height, cudaMemcpyKind kind) {
    return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, nullptr);
}
ALSO(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray)

EXPORT cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x,
                                            size_t from_y, size_t width, size_t height, cudaMemcpyKind kind) {
    size_t texel = to ? to->texel_bytes : 1;
    return array_copy({from, {from_x / texel, from_y, 0}, {}, to, {to_x / texel, to_y, 0}, {}, {width / texel, height, 1}, kind},
                      nullptr, "cudaMemcpy2DArrayToArray");
}
ALSO(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray)

// These two fill an array row after row, from any place in a row on.
EXPORT cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
    auto *source = static_cast<const char *>(from);
    while (to && bytes) {
        size_t piece = std::min(bytes, to->row_bytes() - std::min(x, to->row_bytes()));
        if (!piece) return Call().end(cudaErrorInvalidValue);
        if (cudaError_t error = cudaMemcpy2DToArrayAsync(to, x, y, source, piece, piece, 1, kind, stream)) return error;
        source += piece, bytes -= piece, x = 0, y++;
    }
    return Call().end(to ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
ALSO(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync)

EXPORT cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                                     cudaMemcpyKind kind) {
    return cudaMemcpyToArrayAsync(to, x, y, from, bytes, kind, nullptr);
}
ALSO(cudaMemcpyToArray_ptds, cudaMemcpyToArray)

EXPORT cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_t from, size_t x, size_t y, size_t bytes,
                                            cudaMemcpyKind kind, cudaStream_t stream) {
    auto *target = static_cast<char *>(to);
    while (from && bytes) {
        size_t piece = std::min(bytes, from->row_bytes() - std::min(x, from->row_bytes()));
        if (!piece) return Call().end(cudaErrorInvalidValue);
        if (cudaError_t error = cudaMemcpy2DFromArrayAsync(target, piece, from, x, y, piece, 1, kind, stream)) return error;
        target += piece, bytes -= piece, x = 0, y++;
    }
    return Call().end(from ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
ALSO(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync)

EXPORT cudaError_t cudaMemcpyFromArray(void *to, cudaArray_t from, size_t x, size_t y, size_t bytes,
                                       cudaMemcpyKind kind) {
    return cudaMemcpyFromArrayAsync(to, from, x, y, bytes, kind, nullptr);
}
ALSO(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray)
