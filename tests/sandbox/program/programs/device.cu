// What programs ask of the device before they start: properties, attributes, limits, occupancy, functions.
#include <cooperative_groups.h>
#include <cstring>

#include "check.h"

__global__ void plain(float *x) { x[threadIdx.x] *= 2; }

__global__ void __launch_bounds__(128) bounded(float *x) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[127 - threadIdx.x];
}

__global__ void dynamic(int *x) {
    extern __shared__ int room[];
    room[threadIdx.x] = threadIdx.x;
    __syncthreads();
    x[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

__global__ void together(int *x) {
    auto grid = cooperative_groups::this_grid();
    x[grid.thread_rank()] = 1;
    grid.sync();
    int other = x[(grid.thread_rank() + 64) % grid.num_threads()];
    grid.sync();
    x[grid.thread_rank()] += other;
}

int main() {
    int count, value, blocks, threads;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 1);
    OK(cudaSetDevice(0));
    FAILS(cudaSetDevice(1), cudaErrorInvalidDevice);
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    CHECK(properties.major == 9 && properties.warpSize == 32 && properties.multiProcessorCount > 100);
    CHECK(properties.managedMemory && properties.canMapHostMemory && std::strstr(properties.name, "NVIDIA"));
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    CHECK(value == properties.multiProcessorCount);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, 0));
    CHECK(value == 1);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrCooperativeLaunch, 0));
    CHECK(value == 1);
    size_t limit;
    OK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    CHECK(limit == 8 << 20);
    OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    CHECK(limit == 4096);
    OK(cudaDeviceCanAccessPeer(&value, 0, 0));
    CHECK(value == 0);
    FAILS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
    OK(cudaDriverGetVersion(&value));
    CHECK(value >= 13000);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, bounded));
    CHECK(attributes.maxThreadsPerBlock == 128 && attributes.sharedSizeBytes == 1024 && attributes.numRegs > 0);
    CHECK(attributes.ptxVersion == 90 && attributes.binaryVersion == 90);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
    CHECK(blocks == 8);
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, plain, 0, 0));
    CHECK(threads >= 256 && blocks >= properties.multiProcessorCount);
    int *x, host[128];
    OK(cudaMalloc(&x, sizeof host));
    OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    dynamic<<<1, 128, 100000>>>(x);
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(host[0] == 127 && host[127] == 0);
    void *arguments[] = {&x};
    FAILS(cudaLaunchCooperativeKernel(together, dim3(100000), dim3(64), arguments, 0, 0),
          cudaErrorCooperativeLaunchTooLarge);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1), config.blockDim = dim3(128), config.dynamicSmemBytes = 512;
    OK(cudaLaunchKernelEx(&config, dynamic, x));
    void *entry = &x;
    cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found));
    CHECK(found == cudaDriverEntryPointSymbolNotFound && !entry);
    OK(cudaDeviceReset());
    return 0;
}
