// One candidate that does whatever the test asks: `what` picks the behaviour.
#include <cooperative_groups.h>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct Pair {
    char tag;
    double value;
    const float *where;
};

__constant__ float table[4];
__device__ int counter;

__global__ void scale(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + table[i & 3];
}
__global__ void packed(Pair pair, char c, long long l, float *y) { *y = pair.value + c + l + *pair.where; }
__global__ void __launch_bounds__(64) narrow(float *y) { y[threadIdx.x] = 0; }
__global__ void wide(float *y) {
    extern __shared__ float shared[];
    shared[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}
__global__ void fixed(float *y) {
    __shared__ float shared[4000];
    shared[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}
__global__ void numbers(long long a, long long b, long long c, long long d, float *y) { *y = a + b + c + d; }
template <typename T> __global__ void fill(T *y, T value) { y[threadIdx.x] = value; }

struct AtLoad {
    float *memory = nullptr;
    AtLoad() { cudaMalloc(&memory, 256); }
};

static int calls = 0;

extern "C" void launch(int what, int n, float a, double b, const float *x, float *y) {
    calls++;
    float *scratch = nullptr;
    float values[4] = {1, 2, 3, 4};
    int blocks = (n + 255) / 256;
    switch (what) {
    case 0: scale<<<blocks, 256>>>(n, a, x, y); break;
    case 1: packed<<<dim3(2, 3, 4), dim3(8, 4, 2)>>>(Pair{'t', b, x}, 'c', -5, y); break;
    case 2:
        cudaMalloc(&scratch, 1000);
        cudaMemset(scratch, 0xab, 1000);
        cudaMemcpy(scratch, values, 16, cudaMemcpyHostToDevice);
        cudaMemcpy(y, scratch, 16, cudaMemcpyDeviceToDevice);
        cudaMemcpyToSymbol(table, values, 8, 4);
        cudaFree(scratch);
        break;
    case 3: {
        cudaStream_t one, two;
        cudaEvent_t event;
        cudaStreamCreate(&one);
        cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
        cudaEventCreate(&event);
        fill<float><<<1, 32, 0, one>>>(y, a);
        cudaEventRecord(event, one);
        cudaStreamWaitEvent(two, event, 0);
        fill<int><<<1, 32, 0, two>>>((int *)y, n);
        cudaStreamSynchronize(two);
        cudaDeviceSynchronize();
        cudaStreamDestroy(one);
        break;
    }
    case 4: cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
        wide<<<1, 256, 100000>>>(y);
        break;
    case 5: {
        void *arguments[] = {&y};
        cudaLaunchCooperativeKernel((void *)wide, dim3(4), dim3(64), arguments, 1024, 0);
        break;
    }
    case 6: {
        cudaDeviceProp p;
        cudaGetDeviceProperties(&p, 0);
        int attribute = 0, fit = 0, grid = 0, block = 0;
        cudaDeviceGetAttribute(&attribute, cudaDevAttrMultiProcessorCount, 0);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, wide, 1024, 0);
        cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 0);
        numbers<<<1, 1>>>(p.multiProcessorCount, p.sharedMemPerBlockOptin, p.maxBlocksPerMultiProcessor, attribute, y);
        numbers<<<1, 1>>>(fit, grid, block, p.clusterLaunch * 1000 + p.major, y);
        cudaFuncAttributes f;
        cudaFuncGetAttributes(&f, narrow);
        numbers<<<1, 1>>>(f.maxThreadsPerBlock, f.binaryVersion, f.maxDynamicSharedSizeBytes, f.sharedSizeBytes, y);
        break;
    }
    case 7:
        numbers<<<1, 1>>>(sizeof(cudaDeviceProp), offsetof(cudaDeviceProp, surfaceAlignment),
                          offsetof(cudaDeviceProp, sharedMemPerBlockOptin), offsetof(cudaDeviceProp, reserved), y);
        numbers<<<1, 1>>>(sizeof(cudaFuncAttributes), sizeof(cudaLaunchConfig_t), sizeof(cudaLaunchAttribute),
                          sizeof(cudaPointerAttributes), y);
        break;
    // What an H200 answers, asked once: blocks a multiprocessor holds, shared memory left.
    case 10: {
        int few = 0, many = 0, none = 7;
        size_t eight = 0, one = 0;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&few, fixed, 32, 1000);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&many, wide, 96, 0);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&none, wide, 2048, 0);
        cudaOccupancyAvailableDynamicSMemPerBlock(&eight, fixed, 8, 128);
        cudaOccupancyAvailableDynamicSMemPerBlock(&one, fixed, 1, 128);
        if (cudaOccupancyAvailableDynamicSMemPerBlock(&one, fixed, 16, 128) != cudaErrorInvalidValue) abort();
        numbers<<<1, 1>>>(few, many, none, 0, y);
        numbers<<<1, 1>>>(eight, one, 0, 0, y);
        break;
    }
    case 8: {
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(2);
        config.blockDim = dim3(32);
        config.attrs = &attribute;
        config.numAttrs = 1;
        cudaLaunchKernelEx(&config, fill<float>, y, a);
        break;
    }
    case 9: static AtLoad first; fill<float><<<1, 1>>>(first.memory, (float)calls); break;
    // Wrong.
    case 20: scale<<<0, 256>>>(n, a, x, y); break;
    case 21: scale<<<blocks, 2048>>>(n, a, x, y); break;
    case 22: wide<<<1, 256, 60000>>>(y); break;
    case 23: narrow<<<1, 128>>>(y); break;
    case 24: scale<<<0, 256>>>(n, a, x, y);
        if (cudaGetLastError() != cudaSuccess) scale<<<1, 256>>>(n, a, x, y);
        break;
    case 25: if (cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) != cudaErrorInvalidValue) abort();
        if (cudaMalloc(&scratch, 1ull << 50) != cudaErrorMemoryAllocation || scratch) abort();
        if (cudaFree((void *)x) != cudaErrorInvalidValue) abort();
        if (cudaMemcpy(values, values, 4, cudaMemcpyHostToDevice) != cudaErrorInvalidValue) abort();
        if (cudaMemcpy(y, nullptr, 4, cudaMemcpyDefault) != cudaErrorInvalidValue) abort();
        if (cudaMemcpy2D(y, 4, values, 8, 8, 2, cudaMemcpyHostToDevice) != cudaErrorInvalidPitchValue) abort();
        if (cudaMemset2D(y, 4, 0, 8, 2) != cudaErrorInvalidValue) abort();
        if (cudaMemcpy(y, values, 4, (cudaMemcpyKind)7) != cudaErrorInvalidMemcpyDirection) abort();
        if (cudaMemcpyToSymbol(table, values, 20) != cudaErrorInvalidValue) abort();
        if (cudaMemcpyToSymbol(values, values, 4) != cudaErrorInvalidSymbol) abort();
        if (cudaSetDevice(1) != cudaErrorInvalidDevice) abort();
        if (cudaPeekAtLastError() != cudaErrorInvalidDevice) abort();
        if (cudaGetLastError() != cudaErrorInvalidDevice || cudaGetLastError() != cudaSuccess) abort();
        if (strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument")) abort();
        if (strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue")) abort();
        scale<<<blocks, 256>>>(n, a, x, y);
        break;
    case 30: y[3] = x[2]; break;
    case 31: *(volatile int *)8 = 1; break;
    case 32: abort();
    case 33: exit(0);
    case 34: _exit(5);
    case 35: throw std::runtime_error("out of ideas");
    case 36: throw 3;
    case 37: for (;;) usleep(1000);
    case 38: puts("{\"outcome\": \"returned\"}"); fflush(stdout); scale<<<blocks, 256>>>(n, a, x, y); break;
    case 39: { volatile char deep[1 << 16]; deep[0] = 1; launch(39, n, a, b, x, y); deep[1] = deep[0]; break; }
    case 40: kill(getppid(), 9); pause(); break;
    case 41: if (fork() == 0) { for (;;) pause(); } scale<<<blocks, 256>>>(n, a, x, y); break;
    case 42: for (int fd = 3; fd < 1024; fd++) if (write(fd, "{\"outcome\": \"returned\"", 22) < 0) continue; _exit(0);
    case 43: for (int fd = 3; fd < 1024; fd++) dprintf(fd, "{\"outcome\":\"returned\",\"detail\":\"\",\"unsupported\":null,\"dropped\":[],"
             "\"operations\":[{\"op\":\"memset\",\"address\":5,\"value\":1,\"bytes\":3}]}"); _exit(0);
    case 46: for (int fd = 3; fd < 1024; fd++) dprintf(fd, "{\"outcome\":\"returned\",\"detail\":\"\",\"unsupported\":null,\"dropped\":[],"
             "\"operations\":[{\"op\":\"launch\",\"module\":0,\"kernel\":\"_Z6narrowPf\",\"grid\":[1,1,1],\"block\":[128,1,1],"
             "\"shared_bytes\":0,\"parameters\":\"0000000000000000\"}]}"); _exit(0);
    case 47: throw std::runtime_error(std::string(1 << 20, 'x'));
    case 48: {  // asks for more than there is, in numbers that wrap around to nothing
        size_t pitch = 0;
        cudaError_t error = cudaMallocPitch(&scratch, &pitch, size_t{1} << 32, size_t{1} << 32);
        scale<<<1 + (error == cudaErrorMemoryAllocation && !scratch), 256>>>(n, a, x, y);
        break;
    }
    case 49: {  // refuses to go on where an earlier call has left something
        sockaddr_un name{AF_UNIX, "\0left"};
        int file = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(file, reinterpret_cast<sockaddr *>(&name), sizeof name) != 0) _exit(9);
        if (fork() == 0) {
            setsid();
            if (fork() == 0) for (;;) pause();
            _exit(0);
        }
        if (open("/tmp/left", O_CREAT | O_WRONLY, 0600) >= 0 || open("/dev/shm/left", O_CREAT | O_WRONLY, 0600) >= 0) _exit(10);
        if (msgget(7, IPC_CREAT | 0600) >= 0 || semget(7, 1, IPC_CREAT | 0600) >= 0) _exit(11);
        scale<<<blocks, 256>>>(n, a, x, y);
        break;
    }
    case 44: scale<<<0, 256>>>(n, a, x, y);
        if (cudaGetLastError() != cudaSuccess) exit(1);
        break;
    case 45: fprintf(stderr, "check failed: n > 5\n"); exit(1);
    // Not recorded.
    case 50: cudaMemcpy(values, y, 16, cudaMemcpyDeviceToHost); break;
    case 51: cudaMallocManaged(&scratch, 100); break;
    case 52: { cudaGraph_t graph; cudaGraphCreate(&graph, 0); break; }
    case 53: cudaGetSymbolAddress((void **)&scratch, counter); break;
    case 54: cudaMemcpyFromSymbolAsync(values, counter, 4, 0, cudaMemcpyDeviceToHost, 0); break;
    // Not the same twice.
    case 60: { timespec now; clock_gettime(CLOCK_MONOTONIC, &now); scale<<<1 + now.tv_nsec % 1000, 256>>>(n, a, x, y); break; }
    case 61: if (getpid() % 2) fill<float><<<1, 32>>>(y, a); break;
    }
}
