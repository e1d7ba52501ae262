// Threads take memory from malloc; every second one gives it back.
#include "check.h"

__global__ void take(int **kept) {
    int *mine = static_cast<int *>(malloc(40));  // one each
    *mine = static_cast<int>(threadIdx.x);
    kept[threadIdx.x] = mine;
}

__global__ void give_back(int **kept, int step) {
    if (threadIdx.x % step == 0) free(kept[threadIdx.x]);
}

int main(int count, char **) {
    int **kept;
    OK(cudaMalloc(&kept, 64 * sizeof *kept));
    take<<<1, 64>>>(kept);
    give_back<<<1, 64>>>(kept, count > 1 ? 1 : 2);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(kept));
}
