// Device code in two files (-rdc=true): functions and variables of the other one, and variables of the same name.
#include "../check.h"

extern __device__ int total;
__device__ int twice(int);
void run_second(int *x);

static __device__ int own = 3;

__global__ void first(int *x) {
    x[threadIdx.x] = twice(x[threadIdx.x]) + own;
    atomicAdd(&total, 1);
    if (threadIdx.x == 0) printf("first %s %d\n", "a", own);
}

int main() {
    int *x, host[32], count;
    for (int i = 0; i < 32; i++) host[i] = i;
    OK(cudaMalloc(&x, sizeof host));
    OK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    std::printf("before\n");
    first<<<1, 32>>>(x);
    OK(cudaDeviceSynchronize());
    std::printf("between\n");
    run_second(x);
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) CHECK(host[i] == 2 * i + 3 + 100);
    OK(cudaMemcpyFromSymbol(&count, total, sizeof count));
    CHECK(count == 100 + 32 + 32);
    OK(cudaFree(x));
    return 0;
}
