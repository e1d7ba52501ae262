// Texture and surface objects: handles into the emulated device's table of images.
#include "textures.h"

#include <algorithm>
#include <optional>

#include "execute.h"

namespace {

using Handle = unsigned long long;

struct TextureObject {
    cudaResourceDesc resource;
    cudaTextureDesc texture;
    std::optional<cudaResourceViewDesc> view;
};

std::map<Handle, TextureObject> &textures() {
    static auto *all = new std::map<Handle, TextureObject>;
    return *all;
}

std::map<Handle, cudaResourceDesc> &surfaces() {
    static auto *all = new std::map<Handle, cudaResourceDesc>;
    return *all;
}

std::optional<kw::TexelFormat> format_of(const cudaChannelFormatDesc &format) {
    kw::TexelFormat texel;
    texel.bits = static_cast<kw::u8>(format.x);
    texel.channels = format.w ? 4 : format.z ? 3 : format.y ? 2 : 1;
    texel.kind = format.f == 0   ? kw::TexelKind::signed_integer
                 : format.f == 1 ? kw::TexelKind::unsigned_integer
                                 : kw::TexelKind::floating;
    bool known = (format.x == 8 || format.x == 16 || format.x == 32) && texel.channels != 3 && format.f >= 0 && format.f <= 2;
    return known ? std::optional(texel) : std::nullopt;
}

// What an object shows; the error of a description that is none.
cudaError_t image_of(const cudaResourceDesc &resource, kw::Image &image) {
    const cudaChannelFormatDesc *format = nullptr;
    if (resource.resType == kArrayResource) {
        const Array *array = resource.res.array.array;
        if (!known_array(array)) return cudaErrorInvalidResourceHandle;
        bool layered = array->flags & (kArrayLayered | kArrayCubemap);
        format = &array->format;
        image.base = array->address;
        image.width = array->width;
        image.height = static_cast<kw::u32>(array->height);
        (layered ? image.layers : image.depth) = static_cast<kw::u32>(array->depth);
        image.pitch = array->pitch;
        image.slice = array->slice;
    } else if (resource.resType == kLinearResource) {
        format = &resource.res.linear.desc;
        image.base = address_of(resource.res.linear.devPtr);
        image.linear = true;
    } else if (resource.resType == kPitchResource) {
        const auto &plane = resource.res.pitch2D;
        format = &plane.desc;
        image.base = address_of(plane.devPtr);
        image.width = plane.width;
        image.height = static_cast<kw::u32>(plane.height);
        image.pitch = plane.pitchInBytes;
    } else {
        return runtime().backend->unsupported("cudaCreateTextureObject", "mipmapped arrays");
    }
    auto texel = format_of(*format);
    if (!texel) return cudaErrorInvalidChannelDescriptor;
    image.format = *texel;
    if (image.linear) image.width = resource.res.linear.sizeInBytes / texel->bytes();
    return on_device(reinterpret_cast<void *>(image.base)) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

EXPORT cudaError_t cudaCreateTextureObject(Handle *made, const cudaResourceDesc *resource, const cudaTextureDesc *description,
                                           const cudaResourceViewDesc *view) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaCreateTextureObject")) return error;
    if (!made || !resource || !description) return call.end(cudaErrorInvalidValue);
    if (view && view->format)
        return call.end(call.backend()->unsupported("cudaCreateTextureObject", "a resource view of another format"));
    kw::Texture texture;
    if (cudaError_t error = image_of(*resource, texture.image)) return call.end(error);
    bool integers = texture.image.format.kind != kw::TexelKind::floating;
    bool normalized_float = description->readMode == 1;
    if (description->filterMode && integers && !normalized_float) return call.end(cudaErrorInvalidValue);
    for (int axis = 0; axis < 3; axis++)
        texture.address[axis] = static_cast<kw::AddressMode>(std::clamp(description->addressMode[axis], 0, 3));
    texture.filter = description->filterMode ? kw::Filter::linear : kw::Filter::point;
    texture.normalized_coordinates = description->normalizedCoords != 0;
    texture.normalized_float = normalized_float && integers;
    texture.srgb = description->sRGB != 0;
    std::copy_n(description->borderColor, 4, texture.border);
    *made = images().add(texture);
    textures()[*made] = {*resource, *description, view ? std::optional(*view) : std::nullopt};
    return cudaSuccess;
}

EXPORT cudaError_t cudaDestroyTextureObject(Handle handle) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaDestroyTextureObject")) return error;
    if (!handle) return cudaSuccess;
    textures().erase(handle);
    return call.end(images().remove_texture(handle) ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaCreateSurfaceObject(Handle *made, const cudaResourceDesc *resource) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaCreateSurfaceObject")) return error;
    if (!made || !resource || resource->resType != kArrayResource) return call.end(cudaErrorInvalidValue);
    kw::Surface surface;
    if (cudaError_t error = image_of(*resource, surface.image)) return call.end(error);
    *made = images().add(surface);
    surfaces()[*made] = *resource;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDestroySurfaceObject(Handle handle) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaDestroySurfaceObject")) return error;
    if (!handle) return cudaSuccess;
    surfaces().erase(handle);
    return call.end(images().remove_surface(handle) ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, Handle handle) {
    Call call;
    auto found = textures().find(handle);
    if (found == textures().end() || !resource) return call.end(cudaErrorInvalidValue);
    *resource = found->second.resource;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *description, Handle handle) {
    Call call;
    auto found = textures().find(handle);
    if (found == textures().end() || !description) return call.end(cudaErrorInvalidValue);
    *description = found->second.texture;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc *view, Handle handle) {
    Call call;
    auto found = textures().find(handle);
    if (found == textures().end() || !found->second.view || !view) return call.end(cudaErrorInvalidValue);
    *view = *found->second.view;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource, Handle handle) {
    Call call;
    auto found = surfaces().find(handle);
    if (found == surfaces().end() || !resource) return call.end(cudaErrorInvalidValue);
    *resource = found->second;
    return cudaSuccess;
}
