// Honest recursion that is deeper than a thread's stack is at first: the program asks for more of it.
#include <cstdlib>

#include "check.h"

__device__ __noinline__ int down(int n, volatile int *sink) {
    int own[16];
    for (int i = 0; i < 16; i++) own[i] = n + i;
    sink[0] = own[n & 15];
    int below = n ? down(n - 1, sink) : 0;
    return below + own[(n + 3) & 15];
}

__global__ void go(int n, int *out) { out[threadIdx.x] = down(n, out + 64 + threadIdx.x); }

int main(int, char **words) {
    const int depth = std::atoi(words[1]);
    int *out, host[64], expected = 0;
    size_t limit;
    if (std::atoi(words[2])) {
        OK(cudaDeviceSetLimit(cudaLimitStackSize, std::atoi(words[2])));
        OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
        CHECK(limit == size_t(std::atoi(words[2])));
    }
    OK(cudaMalloc(&out, 128 * sizeof(int)));
    go<<<1, 64>>>(depth, out);
    OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int n = 0; n <= depth; n++) expected += n + (n + 3) % 16;
    for (int one : host) CHECK(one == expected);
    OK(cudaFree(out));
    std::printf("fine\n");
}
