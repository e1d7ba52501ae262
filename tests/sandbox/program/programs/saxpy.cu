// The smallest whole program: memory, a launch, variables of every kind, results read back.
#include "check.h"

__device__ int launches = 7;
__constant__ float factor[4] = {1, 2, 3, 4};

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor[1] * a * x[i] + y[i];
    if (i == 0) atomicAdd(&launches, 1);
}

int main() {
    const int n = 10000;
    float x[n], y[n], *dx, *dy;
    for (int i = 0; i < n; i++) x[i] = i, y[i] = 2;
    OK(cudaMalloc(&dx, sizeof x));
    OK(cudaMalloc(&dy, sizeof y));
    OK(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(dy, y, sizeof y, cudaMemcpyHostToDevice));
    saxpy<<<(n + 255) / 256, 256>>>(n, 3, dx, dy);
    OK(cudaGetLastError());
    float half[1] = {0.5f};
    OK(cudaMemcpyToSymbol(factor, half, sizeof half, sizeof half));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2, dx, dy);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) CHECK(y[i] == 7.f * i + 2);
    int count = 0;
    OK(cudaMemcpyFromSymbol(&count, launches, sizeof count));
    CHECK(count == 9);
    int *address = nullptr;
    OK(cudaGetSymbolAddress((void **)&address, launches));
    OK(cudaMemcpy(&count, address, sizeof count, cudaMemcpyDeviceToHost));
    CHECK(count == 9);
    FAILS(cudaMemcpyToSymbol(factor, half, sizeof half, 16), cudaErrorInvalidValue);
    FAILS(cudaMemcpyToSymbol(x, half, sizeof half), cudaErrorInvalidSymbol);
    OK(cudaFree(dx));
    OK(cudaFree(dy));
    return 0;
}
