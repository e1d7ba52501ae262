// Blocks that do the same, and blocks of which each does more than the one before.
#include "check.h"

__global__ void same(const float *from, float *to) {
    __shared__ float turned[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    turned[255 - threadIdx.x] = from[i];
    __syncthreads();  // needed
    to[i] = turned[threadIdx.x];
    __syncthreads();  // for nothing
}

__global__ void more(float *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (unsigned k = 0; k < blockIdx.x; k++) sum = sum * 0.5f + static_cast<float>(k);
    to[i] = sum;
    if (threadIdx.x < 3) atomicAdd(&to[blockIdx.x], 1.0f);
}

int main() {
    constexpr int blocks = 1000;
    float *from, *to;
    OK(cudaMalloc(&from, blocks * 256 * sizeof *from));
    OK(cudaMalloc(&to, blocks * 256 * sizeof *to));
    OK(cudaMemset(from, 0, blocks * 256 * sizeof *from));
    for (int i = 0; i < 2; i++) same<<<blocks, 256>>>(from, to);
    OK(cudaDeviceSynchronize());
    more<<<blocks, 32>>>(to);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(from));
    OK(cudaFree(to));
}
