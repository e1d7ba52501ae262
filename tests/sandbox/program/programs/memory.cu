// Device memory in every shape: pitched, 3D, symbols, pools; copies and fills; wrong arguments.
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

__global__ void scale(cudaPitchedPtr volume, int width, int height, int depth) {
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    char *slice = (char *)volume.ptr + z * volume.pitch * height;
    float *row = (float *)(slice + y * volume.pitch);
    if (x < width) row[x] = row[x] * 2 + z;
}

__global__ void add(int *values, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] += 1;
}

__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int *where = &table[2];

static void volumes() {
    const int w = 33, h = 5, d = 3;
    std::vector<float> in(w * h * d), out(w * h * d, -1);
    for (size_t i = 0; i < in.size(); i++) in[i] = i;
    cudaExtent extent = make_cudaExtent(w * sizeof(float), h, d);
    cudaPitchedPtr volume;
    OK(cudaMalloc3D(&volume, extent));
    CHECK(volume.pitch >= w * sizeof(float) && volume.pitch % 512 == 0 && volume.ysize == h);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(in.data(), w * sizeof(float), w, h);
    copy.dstPtr = volume;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    scale<<<dim3(h, d), 64>>>(volume, w, h, d);
    copy = {};
    copy.srcPtr = volume;
    copy.srcPos = make_cudaPos(4, 1, 1);  // skips a float, a row, a slice
    copy.dstPtr = make_cudaPitchedPtr(out.data(), w * sizeof(float), w, h);
    copy.extent = make_cudaExtent((w - 1) * sizeof(float), h - 1, d - 1);
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    for (int z = 0; z < d - 1; z++)
        for (int y = 0; y < h - 1; y++)
            for (int x = 0; x < w; x++) {
                float wanted = x == w - 1 ? -1 : in[((z + 1) * h + y + 1) * w + x + 1] * 2 + z + 1;
                CHECK(out[(z * h + y) * w + x] == wanted);
            }
    OK(cudaMemset3D(volume, 0, extent));
    OK(cudaMemcpy2D(out.data(), w * 4, volume.ptr, volume.pitch, w * 4, h * d, cudaMemcpyDeviceToHost));
    for (float value : out) CHECK(value == 0);
    OK(cudaFree(volume.ptr));
}

static void planes() {
    size_t pitch;
    char *plane, host[10 * 7], back[10 * 7];
    for (int i = 0; i < 70; i++) host[i] = i;
    OK(cudaMallocPitch(&plane, &pitch, 10, 7));
    OK(cudaMemcpy2D(plane, pitch, host, 10, 10, 7, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(plane + pitch, pitch, 0x55, 4, 2));
    OK(cudaMemcpy2D(back, 10, plane, pitch, 10, 7, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 10; x++) CHECK(back[y * 10 + x] == ((y == 1 || y == 2) && x < 4 ? 0x55 : y * 10 + x));
    FAILS(cudaMemcpy2D(plane, pitch, host, 5, 10, 7, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    OK(cudaFree(plane));
}

static void symbols() {
    int host[8], *address;
    size_t bytes;
    OK(cudaGetSymbolSize(&bytes, table));
    CHECK(bytes == sizeof host);
    OK(cudaMemcpyFromSymbol(host, table, 8, 8));
    CHECK(host[0] == 3 && host[1] == 4);
    OK(cudaGetSymbolAddress((void **)&address, table));
    add<<<1, 32>>>(address, 8);
    OK(cudaMemcpyFromSymbol(host, table, sizeof host));
    for (int i = 0; i < 8; i++) CHECK(host[i] == i + 2);
    int *pointed;
    OK(cudaMemcpyFromSymbol(&pointed, where, sizeof pointed));
    CHECK(pointed == address + 2);
    OK(cudaMemcpyToSymbol(table, address + 4, 8, 0, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(host, address, 8, cudaMemcpyDefault));
    CHECK(host[0] == 6 && host[1] == 7);
}

static void pools() {
    cudaStream_t stream;
    cudaMemPool_t pool, own;
    int *values, host[100];
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = UINT64_MAX, used = 0;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMallocAsync(&values, sizeof host, stream));
    OK(cudaMemsetAsync(values, 0, sizeof host, stream));
    add<<<1, 32, 0, stream>>>(values, 100);
    OK(cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK(used == sizeof host);
    OK(cudaFreeAsync(values, stream));
    OK(cudaStreamSynchronize(stream));
    for (int value : host) CHECK(value == 1);
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&own, &properties));
    OK(cudaMallocFromPoolAsync(&values, 64, own, stream));
    OK(cudaFreeAsync(values, stream));
    OK(cudaMemPoolTrimTo(own, 0));
    OK(cudaMemPoolDestroy(own));
    OK(cudaStreamDestroy(stream));
}

static void arrays() {
    const int w = 20, h = 6;
    float in[h][w], out[h][w] = {}, piece[2][3];
    for (int i = 0; i < w * h; i++) in[i / w][i % w] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(), read;
    cudaArray_t one, two, volume;
    OK(cudaMallocArray(&one, &format, w, h));
    OK(cudaMallocArray(&two, &format, w, h));
    OK(cudaMemcpy2DToArray(one, 0, 0, in, sizeof in[0], sizeof in[0], h, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DArrayToArray(two, 4, 1, one, 8, 2, 12, 3));
    OK(cudaMemcpy2DFromArray(piece, sizeof piece[0], two, 4, 2, sizeof piece[0], 2, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++) CHECK(piece[y][x] == in[y + 3][x + 2]);
    cudaExtent extent;
    unsigned flags;
    OK(cudaArrayGetInfo(&read, &extent, &flags, one));
    CHECK(read.x == 32 && read.f == cudaChannelFormatKindFloat && extent.width == w && extent.height == h);
    FAILS(cudaMemcpy2DToArray(one, 4, 0, in, sizeof in[0], sizeof in[0], h, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    OK(cudaMalloc3DArray(&volume, &format, make_cudaExtent(w, h / 2, 2)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(in, sizeof in[0], w, h / 2);
    copy.dstArray = volume;
    copy.extent = make_cudaExtent(w, h / 2, 2);
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    copy = {};
    copy.srcArray = volume;
    copy.srcPos = make_cudaPos(0, 0, 1);
    copy.dstPtr = make_cudaPitchedPtr(out, sizeof out[0], w, h / 2);
    copy.extent = make_cudaExtent(w, h / 2, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    for (int y = 0; y < h / 2; y++)
        for (int x = 0; x < w; x++) CHECK(out[y][x] == in[y + h / 2][x]);
    for (cudaArray_t array : {one, two, volume}) OK(cudaFreeArray(array));
    FAILS(cudaFreeArray(one), cudaErrorInvalidResourceHandle);
}

static void mistakes() {
    int *values, host[4] = {};
    size_t free, total, after;
    OK(cudaMemGetInfo(&free, &total));
    OK(cudaMalloc(&values, 1 << 20));
    OK(cudaMemGetInfo(&after, &total));
    CHECK(free - after >= 1 << 20 && total >= free);
    FAILS(cudaMemcpy(values, host, 16, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpy(host, values, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(nullptr, values, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    FAILS(cudaMalloc(&values, size_t(1) << 50), cudaErrorMemoryAllocation);
    CHECK(values == nullptr);
    cudaPointerAttributes attributes;
    OK(cudaMalloc(&values, 64));
    OK(cudaPointerGetAttributes(&attributes, values + 3));
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == values + 3 && !attributes.hostPointer);
    OK(cudaPointerGetAttributes(&attributes, host));
    CHECK(attributes.type == cudaMemoryTypeUnregistered);
    OK(cudaMalloc(&values, 0));
    OK(cudaFree(nullptr));
}

// The device holds no more than it has, in however many pieces; managed memory may be more.
static void full() {
    size_t free, total, before;
    char *half, *other, *managed;
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMalloc(&half, total / 2));
    OK(cudaMemGetInfo(&free, &total));
    CHECK(free == before - total / 2);
    FAILS(cudaMalloc(&other, free + 1), cudaErrorMemoryAllocation);
    FAILS(cudaMallocAsync(&other, free + 1, 0), cudaErrorMemoryAllocation);
    OK(cudaMallocManaged(&managed, free + 1));
    OK(cudaMalloc(&other, free));
    FAILS(cudaMalloc(&managed, 1), cudaErrorMemoryAllocation);
    OK(cudaMemGetInfo(&free, &total));
    CHECK(free == 0);
    OK(cudaFree(half));
    OK(cudaFree(other));
    OK(cudaMemGetInfo(&free, &total));
    CHECK(free == before);
    OK(cudaMalloc(&half, total / 2));
    OK(cudaDeviceReset());
    OK(cudaMemGetInfo(&free, &total));
    CHECK(free == total);
}

int main() {
    volumes();
    planes();
    symbols();
    pools();
    arrays();
    mistakes();
    full();
    std::printf("fine\n");
    return 0;
}
