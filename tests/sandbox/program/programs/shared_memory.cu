// Memory that host and kernels both use: managed, pinned, mapped, registered.
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

__managed__ int counter = 40;
__managed__ float weights[4] = {1, 2, 3, 4};

__global__ void add(int *values, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += by;
    if (i == 0) atomicAdd(&counter, 1);
}

__global__ void weigh(float *to) { to[threadIdx.x] = weights[threadIdx.x]; }

struct Node {
    int value;
    Node *next;
};

__global__ void sum(const Node *list, int *total) {
    for (; list; list = list->next) *total += list->value;
}

static void managed() {
    CHECK(counter == 40 && weights[3] == 4);
    int *values;
    OK(cudaMallocManaged(&values, 1000 * sizeof(int)));
    for (int i = 0; i < 1000; i++) values[i] = i;
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemAdvise(values, 4000, cudaMemAdviseSetReadMostly, device));
    OK(cudaMemPrefetchAsync(values, 4000, device, 0));
    add<<<4, 256>>>(values, 1000, 7);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 1000; i++) CHECK(values[i] == i + 7);
    CHECK(counter == 41);
    counter = 1;
    weights[2] = 9;
    float *out;
    OK(cudaMallocManaged(&out, 16));
    weigh<<<1, 4>>>(out);
    OK(cudaDeviceSynchronize());
    CHECK(out[2] == 9 && out[1] == 2);
    Node *list = nullptr;
    for (int i = 1; i <= 10; i++) {
        Node *node;
        OK(cudaMallocManaged(&node, sizeof *node));
        *node = {i, list};
        list = node;
    }
    int *total;
    OK(cudaMallocManaged(&total, sizeof *total));
    *total = 0;
    sum<<<1, 1>>>(list, total);
    OK(cudaDeviceSynchronize());
    CHECK(*total == 55);
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, values));
    CHECK(attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == values);
    OK(cudaMemcpy(values, total, sizeof(int), cudaMemcpyHostToHost));
    CHECK(values[0] == 55);
    OK(cudaMemcpyToSymbol(counter, total, sizeof(int)));
    CHECK(counter == 55);
    OK(cudaFree(values));
}

static void pinned() {
    int *values, *seen;
    OK(cudaHostAlloc(&values, 400, cudaHostAllocMapped));
    for (int i = 0; i < 100; i++) values[i] = i;
    OK(cudaHostGetDevicePointer(&seen, values, 0));
    add<<<1, 128>>>(seen, 100, 1);
    add<<<1, 128>>>(values, 100, 1);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 100; i++) CHECK(values[i] == i + 2);
    int *device;
    OK(cudaMalloc(&device, 400));
    OK(cudaMemcpy(device, values, 400, cudaMemcpyHostToDevice));
    add<<<1, 128>>>(device, 100, 1);
    OK(cudaMemcpy(values, device, 400, cudaMemcpyDeviceToHost));
    CHECK(values[99] == 102);
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, values));
    CHECK(attributes.type == cudaMemoryTypeHost);
    unsigned flags;
    OK(cudaHostGetFlags(&flags, values));
    CHECK(flags & cudaHostAllocMapped);
    OK(cudaFreeHost(values));
    OK(cudaMallocHost(&values, 16));
    OK(cudaFreeHost(values));
}

static void registered() {
    std::vector<int> values(5000, 3);
    std::vector<char> neighbour(100, 'n');
    int *seen;
    OK(cudaHostRegister(values.data(), values.size() * sizeof(int), cudaHostRegisterMapped));
    FAILS(cudaHostRegister(values.data(), 4, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostGetDevicePointer(&seen, values.data(), 0));
    add<<<20, 256>>>(seen, 5000, 4);
    OK(cudaDeviceSynchronize());
    for (int value : values) CHECK(value == 7);
    values[17] = 100;
    add<<<20, 256>>>(seen, 5000, 1);
    OK(cudaDeviceSynchronize());
    CHECK(values[17] == 101 && values[18] == 8);
    OK(cudaHostUnregister(values.data()));
    FAILS(cudaHostUnregister(values.data()), cudaErrorHostMemoryNotRegistered);
    for (char c : neighbour) CHECK(c == 'n');
    values.resize(20000, 5);
    CHECK(values[17] == 101 && values[19999] == 5);
}

int main() {
    managed();
    pinned();
    registered();
    return 0;
}
