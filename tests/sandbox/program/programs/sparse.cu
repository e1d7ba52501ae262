// Takes 8 GiB and touches a little of it, here and there; prints how many MiB of memory the process has.
#include <fstream>
#include <string>

#include "check.h"

__global__ void touch(int *memory, size_t step) {
    size_t at = (blockIdx.x * size_t{blockDim.x} + threadIdx.x) * step;
    memory[at] = static_cast<int>(at % 1000);
    memory[at + 1] = memory[at] + 1;
}

int main() {
    size_t bytes = size_t{8} << 30, step = (size_t{8} << 20) / sizeof(int);
    int *memory, value;
    OK(cudaMalloc(&memory, bytes));
    for (int i = 0; i < 3; i++) touch<<<8, 128>>>(memory, step);
    OK(cudaMemcpy(&value, memory + 1, sizeof value, cudaMemcpyDeviceToHost));
    CHECK(value == 1);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) std::printf("%d\n", std::atoi(line.c_str() + 6) / 1024);
    OK(cudaFree(memory));
}
