// Streams, events, host functions; launches that the device refuses.
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "check.h"

__global__ void fill(int *values, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = value;
}

__global__ void __launch_bounds__(64) small(int *values) { values[threadIdx.x] = 1; }

static std::mutex mutex;
static std::vector<int> order;

static void CUDART_CB note(void *what) {
    std::lock_guard<std::mutex> lock(mutex);
    order.push_back((int)(size_t)what);
}

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *what) {
    CHECK(status == cudaSuccess);
    note(what);
}

static void events(cudaStream_t stream, int *values) {
    cudaEvent_t start, end, untimed;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    float passed = -1;
    FAILS(cudaEventElapsedTime(&passed, start, end), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(start, stream));
    fill<<<4, 256, 0, stream>>>(values, 1000, 5);
    OK(cudaEventRecord(end, stream));
    OK(cudaEventRecord(untimed, stream));
    OK(cudaEventSynchronize(end));
    OK(cudaEventQuery(end));
    OK(cudaEventElapsedTime(&passed, start, end));
    CHECK(passed > 0 && passed < 60000);
    OK(cudaEventElapsedTime(&passed, start, start));
    CHECK(passed > 0);
    FAILS(cudaEventElapsedTime(&passed, start, untimed), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    OK(cudaEventDestroy(untimed));
    FAILS(cudaEventRecord(untimed, stream), cudaErrorInvalidResourceHandle);
}

static void host_functions(cudaStream_t one, cudaStream_t two, int *values) {
    int host[10] = {};
    {
        std::lock_guard<std::mutex> lock(mutex);  // a host function may have to wait for its caller
        OK(cudaLaunchHostFunc(one, note, (void *)1));
        OK(cudaStreamAddCallback(one, called, (void *)2, 0));
    }
    fill<<<1, 32, 0, one>>>(values, 10, 8);
    OK(cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, one));
    OK(cudaLaunchHostFunc(one, note, (void *)3));
    OK(cudaStreamSynchronize(one));
    CHECK((order == std::vector<int>{1, 2, 3}) && host[9] == 8);
    OK(cudaLaunchHostFunc(two, note, (void *)4));
    OK(cudaDeviceSynchronize());
    CHECK(order.back() == 4);
}

static void refusals(int *values) {
    fill<<<1, 2000>>>(values, 10, 1);
    FAILS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    fill<<<0, 32>>>(values, 10, 1);
    FAILS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    small<<<1, 128>>>(values);
    FAILS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    fill<<<1, 32, 1 << 20>>>(values, 10, 1);
    FAILS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
    cudaStream_t gone = (cudaStream_t)0x1234;
    FAILS(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
    CHECK(!std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue"));
    CHECK(!std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
    CHECK(!std::strcmp(cudaGetErrorString((cudaError_t)4321), "unrecognized error code"));
}

int main() {
    cudaStream_t one, two;
    int *values, least, greatest, priority;
    unsigned flags;
    OK(cudaMalloc(&values, 4000));
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest < 0);
    OK(cudaStreamCreateWithPriority(&one, cudaStreamNonBlocking, greatest));
    OK(cudaStreamCreate(&two));
    OK(cudaStreamGetPriority(one, &priority));
    OK(cudaStreamGetFlags(one, &flags));
    CHECK(priority == greatest && flags == cudaStreamNonBlocking);
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, one));
    OK(cudaStreamWaitEvent(two, event, 0));
    OK(cudaStreamQuery(two));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    events(one, values);
    host_functions(one, two, values);
    refusals(values);
    OK(cudaStreamDestroy(one));
    OK(cudaStreamDestroy(two));
    OK(cudaFree(values));
    return 0;
}
