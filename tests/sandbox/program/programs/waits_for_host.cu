// A kernel that waits until the host has written, which on a device goes on while the kernel runs.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__managed__ int variable;

__global__ void wait(volatile int *flag) {
    while (*flag == 0) {
    }
}

__global__ void wait_atomically(int *flag) {
    if (threadIdx.x == 0)
        while (atomicAdd_system(flag, 0) == 0) {
        }
    __syncthreads();
}

int main(int, char **arguments) {
    const char *how = arguments[1];
    int *flag = &variable, *seen = nullptr;
    if (!std::strcmp(how, "managed") || !std::strcmp(how, "atomic")) cudaMallocManaged(&flag, sizeof *flag);
    if (!std::strcmp(how, "mapped")) cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped);
    if (!std::strcmp(how, "registered")) {
        flag = static_cast<int *>(std::malloc(sizeof *flag));
        cudaHostRegister(flag, sizeof *flag, cudaHostRegisterMapped);
    }
    *flag = 0;
    seen = flag;
    if (!std::strcmp(how, "mapped")) cudaHostGetDevicePointer(&seen, flag, 0);
    if (!std::strcmp(how, "atomic"))
        wait_atomically<<<2, 64>>>(seen);
    else
        wait<<<2, 64>>>(seen);
    std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    *static_cast<volatile int *>(flag) = 1;
    cudaDeviceSynchronize();
}
