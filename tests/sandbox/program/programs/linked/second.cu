#include "../check.h"

__device__ int total = 100;
static __device__ int own = 100;

__device__ int twice(int x) { return 2 * x; }

__global__ void second(int *x) {
    x[threadIdx.x] += own;
    atomicAdd(&total, 1);
    if (threadIdx.x == 0) printf("second %s %d\n", "b", own);
}

void run_second(int *x) {
    second<<<1, 32>>>(x);
    OK(cudaDeviceSynchronize());
}
