// Registered host memory that kernels use at its own address.
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "check.h"

__global__ void scale(float *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= 2;
}

__global__ void scale_wide(float4 *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 value = values[i];
    values[i] = {value.x + 1, value.y + 1, value.z + 1, value.w + 1};
}

__global__ void gather(const float *from, float *to, const int *where, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[where[i]];
}

__global__ void add_up(const float *values, int count, int *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(sum, static_cast<int>(values[i]));
}

__global__ void read_last(const float *values, int count, float *to) { *to = values[count]; }  // one too far

int main(int arguments, char **words) {
    constexpr int count = 5000, bytes = count * sizeof(float);
    auto *host = static_cast<float *>(std::malloc(bytes));
    auto *where = static_cast<int *>(std::malloc(count * sizeof(int)));
    int *sum = static_cast<int *>(std::calloc(1, sizeof(int)));
    for (int i = 0; i < count; i++) host[i] = static_cast<float>(i), where[i] = (i * 7) % count;
    for (auto [pointer, size] : {std::pair<void *, size_t>{host, bytes}, {where, count * sizeof(int)}, {sum, sizeof(int)}}) {
        OK(cudaHostRegister(pointer, size, cudaHostRegisterMapped));
    }
    int says = 0;
    OK(cudaDeviceGetAttribute(&says, cudaDevAttrCanUseHostPointerForRegisteredMem, 0));
    CHECK(says == 1);
    float *device, *to;
    OK(cudaMalloc(&to, bytes));
    OK(cudaHostGetDevicePointer(&device, host, 0));
    if (arguments > 1 && !std::strcmp(words[1], "too far")) {
        read_last<<<1, 1>>>(host, count, to);
        return cudaDeviceSynchronize() == cudaSuccess;
    }
    int blocks = (count + 127) / 128;
    scale<<<blocks, 128>>>(host, count);
    scale<<<blocks, 128>>>(device, count);
    scale_wide<<<blocks, 128>>>(reinterpret_cast<float4 *>(host), count / 4);
    gather<<<blocks, 128>>>(host, to, where, count);
    add_up<<<blocks, 128>>>(host, count, sum);
    OK(cudaDeviceSynchronize());
    long expected = 0;
    for (int i = 0; i < count; i++) {
        CHECK(host[i] == static_cast<float>(4 * i + 1));
        expected += 4 * i + 1;
    }
    CHECK(*sum == expected);
    std::vector<float> back(count);
    OK(cudaMemcpy(back.data(), to, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) CHECK(back[i] == host[where[i]]);
    OK(cudaMemset(host, 0, bytes));
    CHECK(host[count - 1] == 0);
    for (void *pointer : {static_cast<void *>(host), static_cast<void *>(where), static_cast<void *>(sum)})
        OK(cudaHostUnregister(pointer));
    OK(cudaFree(to));
}
