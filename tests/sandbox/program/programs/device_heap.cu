// The heap that kernels allocate from is as large as the program says.
#include "check.h"
__global__ void take(size_t bytes, int *got) { char *p = (char *)malloc(bytes); *got = p != nullptr; free(p); }
int main() {
    int *got, host;
    OK(cudaMalloc(&got, 4));
    take<<<1, 1>>>(12 << 20, got);
    OK(cudaMemcpy(&host, got, 4, cudaMemcpyDeviceToHost));
    CHECK(host == 0);
    OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    take<<<1, 1>>>(12 << 20, got);
    OK(cudaMemcpy(&host, got, 4, cudaMemcpyDeviceToHost));
    CHECK(host == 1);
    OK(cudaFree(got));
    return 0;
}
