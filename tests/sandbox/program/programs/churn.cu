// Far more memory over time than the machine has at once, and a large allocation that is hardly touched.
#include "check.h"

__global__ void mark(char *x, size_t at) { x[at] = 7; }

int main() {
    char *x, seen;
    for (int i = 0; i < 3000; i++) {
        OK(cudaMalloc(&x, 256 << 20));
        mark<<<1, 1>>>(x, (size_t(i) << 16) % (256 << 20));
        OK(cudaFree(x));
    }
    OK(cudaMalloc(&x, size_t(40) << 30));
    mark<<<1, 1>>>(x, (size_t(40) << 30) - 1);
    OK(cudaMemcpy(&seen, x + (size_t(40) << 30) - 1, 1, cudaMemcpyDeviceToHost));
    CHECK(seen == 7);
    OK(cudaFree(x));
    return 0;
}
