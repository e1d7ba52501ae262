// A kernel that fails: its error stays with every later call, and a reset ends it.
#include "check.h"

__device__ int state = 5;

__global__ void write(int *x, int at) { x[at] = state++; }

int main() {
    int *x, host = 0;
    OK(cudaMalloc(&x, 400));
    write<<<1, 1>>>(x, 3);
    OK(cudaDeviceSynchronize());
    write<<<1, 1>>>(x, 100);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress && host == 0);
    CHECK(cudaMalloc(&x, 4) == cudaErrorIllegalAddress);
    write<<<1, 1>>>(x, 0);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    OK(cudaDeviceReset());
    OK(cudaGetLastError());
    OK(cudaMalloc(&x, 400));
    write<<<1, 1>>>(x, 0);
    OK(cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost));
    CHECK(host == 5);  // variables are as they were at first
    CHECK(cudaMemcpy(x, &host, 404, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    OK(cudaFree(x));
    CHECK(cudaFree(x) == cudaErrorInvalidValue);
    std::printf("went on\n");
    return 3;
}
