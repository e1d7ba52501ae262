// Blocks that wait for each other: a cooperative launch of as many as the device holds at once.
#include <cooperative_groups.h>

#include "check.h"

__global__ void shift(int *x, int rounds) {
    auto grid = cooperative_groups::this_grid();
    for (int round = 0; round < rounds; round++) {
        int next = x[(grid.thread_rank() + blockDim.x) % grid.num_threads()];
        grid.sync();
        x[grid.thread_rank()] = next + 1;
        grid.sync();
    }
}

int main() {
    int blocks = 0, *x, host[64 * 64], rounds = 3;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shift, 64, 0));
    CHECK(blocks > 0);
    for (int i = 0; i < 64 * 64; i++) host[i] = i;
    OK(cudaMalloc(&x, sizeof host));
    OK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    void *arguments[] = {&x, &rounds};
    OK(cudaLaunchCooperativeKernel(shift, dim3(64), dim3(64), arguments, 0, 0));
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64 * 64; i++) CHECK(host[i] == (i + 3 * 64) % (64 * 64) + 3);
    OK(cudaFree(x));
    return 0;
}
