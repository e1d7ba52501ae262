// CUDA arrays: texels in rows in device memory. 1D arrays have one row, layers are slices.
#pragma once

#include <vector>

#include "runtime.h"

struct cudaChannelFormatDesc {
    int x, y, z, w;
    int f;  // 0 signed, 1 unsigned, 2 floating, 3 none
};

struct Array {
    Address address = 0;
    cudaChannelFormatDesc format{};
    size_t width = 0, height = 0, depth = 0;  // 0: no such dimension
    unsigned flags = 0;
    size_t texel_bytes = 0, pitch = 0, slice = 0;
    bool owned = true;  // a level of a mipmapped array is not

    size_t rows() const { return height ? height : 1; }
    size_t slices() const { return depth ? depth : 1; }
    size_t row_bytes() const { return width * texel_bytes; }
};

constexpr unsigned kArrayLayered = 1, kArraySurface = 2, kArrayCubemap = 4;
