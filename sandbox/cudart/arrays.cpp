// CUDA arrays: made, freed, asked about.
#include "arrays.h"

#include <algorithm>

#include "textures.h"
#include "work.h"

struct MipmappedArray {
    std::vector<Array *> levels;
};
using cudaMipmappedArray_t = MipmappedArray *;

namespace {

constexpr size_t kPitchAlignment = 32;
constexpr size_t kWidest = 1 << 17;
constexpr int kNone = 3;

std::set<Array *> &arrays() {
    static auto *all = new std::set<Array *>;
    return *all;
}

std::set<MipmappedArray *> &mipmaps() {
    static auto *all = new std::set<MipmappedArray *>;
    return *all;
}

size_t texel_bytes(const cudaChannelFormatDesc &format) {
    int bits = format.x + format.y + format.z + format.w;
    bool even = (!format.y || format.y == format.x) && (!format.w || format.w == format.z) && (!format.z || format.z == format.x);
    bool known = (format.x == 8 || format.x == 16 || format.x == 32) && even && format.f >= 0 && format.f < kNone;
    bool three = format.z && !format.w;
    return known && !three ? static_cast<size_t>(bits) / 8 : 0;
}

cudaError_t make(cudaArray_t *made, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags) {
    if (!made || !format || !extent.width) return cudaErrorInvalidValue;
    *made = nullptr;
    size_t texel = texel_bytes(*format);
    if (!texel) return cudaErrorInvalidChannelDescriptor;
    if (extent.width > kWidest || extent.height > kWidest || extent.depth > kWidest) return cudaErrorInvalidValue;
    auto *array = new Array{0, *format, extent.width, extent.height, extent.depth, flags, texel, 0, 0, true};
    array->pitch = (array->row_bytes() + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    array->slice = array->pitch * array->rows();
    void *pointer = nullptr;
    if (cudaError_t error = allocate(&pointer, array->slice * array->slices(), Memory::array)) {
        delete array;
        return error;
    }
    array->address = address_of(pointer);
    arrays().insert(array);
    *made = array;
    return cudaSuccess;
}

cudaError_t drop(Array *array) {
    if (!arrays().erase(array)) return cudaErrorInvalidResourceHandle;
    cudaError_t error = release(reinterpret_cast<void *>(array->address), Memory::array, "cudaFreeArray");
    delete array;
    return error;
}

}  // namespace

bool known_array(const Array *array) { return arrays().count(const_cast<Array *>(array)) != 0; }

EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                                     unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaMalloc3DArray")) return error;
    return call.end(make(array, format, extent, flags));
}

EXPORT cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *format, size_t width, size_t height,
                                   unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaMallocArray")) return error;
    return call.end(make(array, format, {width, height, 0}, flags));
}

EXPORT cudaError_t cudaFreeArray(cudaArray_t array) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaFreeArray")) return error;
    return call.end(array ? drop(array) : cudaSuccess);
}

EXPORT cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags,
                                    cudaArray_t array) {
    Call call;
    if (!known_array(array)) return call.end(cudaErrorInvalidResourceHandle);
    if (format) *format = array->format;
    if (extent) *extent = {array->width, array->height, array->depth};
    if (flags) *flags = array->flags;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *format, cudaArray_t array) {
    return cudaArrayGetInfo(format, nullptr, nullptr, array);
}

EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind) { return {x, y, z, w, kind}; }

struct cudaArrayMemoryRequirements {
    size_t size, alignment;
    unsigned reserved[4];
};

EXPORT cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements *needs, cudaArray_t array, int device) {
    Call call;
    if (device) return call.end(cudaErrorInvalidDevice);
    if (!known_array(array) || !needs) return call.end(cudaErrorInvalidValue);
    *needs = {array->slice * array->slices(), kPitchAlignment, {}};
    return cudaSuccess;
}

// Levels halve in every direction; each is an array of its own. Kernels read the first one: choosing a level by a
// coordinate's derivative is not emulated.
EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *made, const cudaChannelFormatDesc *format,
                                            cudaExtent extent, unsigned levels, unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaMallocMipmappedArray")) return error;
    if (!made || !levels) return call.end(cudaErrorInvalidValue);
    auto *mipmap = new MipmappedArray;
    for (unsigned level = 0; level < levels; level++) {
        Array *array = nullptr;
        if (cudaError_t error = make(&array, format, extent, flags)) {
            for (Array *other : mipmap->levels) drop(other);
            delete mipmap;
            return call.end(error);
        }
        mipmap->levels.push_back(array);
        for (size_t *side : {&extent.width, &extent.height, &extent.depth})
            if (*side && !(side == &extent.depth && (flags & kArrayLayered))) *side = std::max<size_t>(*side / 2, 1);
    }
    mipmaps().insert(mipmap);
    *made = mipmap;
    return cudaSuccess;
}

EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap) {
    Call call;
    if (!mipmaps().erase(mipmap)) return call.end(cudaErrorInvalidResourceHandle);
    for (Array *array : mipmap->levels) drop(array);
    delete mipmap;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t mipmap, unsigned level) {
    Call call;
    if (!mipmaps().count(mipmap) || level >= mipmap->levels.size()) return call.end(cudaErrorInvalidValue);
    *array = mipmap->levels[level];
    return cudaSuccess;
}
