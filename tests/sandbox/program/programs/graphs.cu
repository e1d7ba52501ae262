// Graphs: captured from streams, built by hand, changed after they were made ready.
#include <vector>

#include "check.h"

__global__ void affine(int *values, int n, int factor, int term) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * factor + term;
}

__global__ void add(int *to, const int *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

const int n = 300;
static int calls = 0;
static void CUDART_CB count(void *by) { calls += *(int *)by; }

static int first(const int *device) {
    int value;
    OK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static void captured(int *a, int *b) {
    cudaStream_t one, two;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    OK(cudaStreamCreate(&one));
    OK(cudaStreamCreate(&two));
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(one, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    OK(cudaMemsetAsync(a, 0, n * 4, one));
    OK(cudaEventRecord(fork, one));
    OK(cudaStreamWaitEvent(two, fork, 0));
    affine<<<3, 128, 0, one>>>(a, n, 1, 5);
    OK(cudaMemsetAsync(b, 0, n * 4, two));
    affine<<<3, 128, 0, two>>>(b, n, 1, 7);
    OK(cudaEventRecord(join, two));
    OK(cudaStreamWaitEvent(one, join, 0));
    add<<<3, 128, 0, one>>>(a, b, n);
    int one_call = 1;
    OK(cudaLaunchHostFunc(one, count, &one_call));
    OK(cudaStreamEndCapture(one, &graph));
    OK(cudaStreamIsCapturing(two, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    size_t nodes, edges;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(nodes == 6 && edges == 6);
    OK(cudaMemset(a, 0xff, n * 4));
    OK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(first(a) == -1 && calls == 0);  // nothing has run yet
    OK(cudaGraphLaunch(ready, one));
    OK(cudaGraphLaunch(ready, one));
    OK(cudaStreamSynchronize(one));
    CHECK(first(a) == 12 && first(b) == 7 && calls == 2);
    cudaGraph_t second;  // the same shape with another number
    OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    affine<<<3, 128, 0, one>>>(a, n, 1, 5);
    OK(cudaStreamEndCapture(one, &second));
    cudaGraphExecUpdateResultInfo result;
    FAILS(cudaGraphExecUpdate(ready, second, &result), cudaErrorGraphExecUpdateFailure);
    CHECK(result.result == cudaGraphExecUpdateErrorTopologyChanged);
    FAILS(cudaStreamEndCapture(one, &second), cudaErrorIllegalState);
    OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    FAILS(cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
    FAILS(cudaStreamEndCapture(one, &second), cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(fork, one));
    OK(cudaStreamWaitEvent(two, fork, 0));
    affine<<<3, 128, 0, two>>>(b, n, 1, 7);
    FAILS(cudaStreamEndCapture(one, &second), cudaErrorStreamCaptureUnjoined);
    OK(cudaGraphExecDestroy(ready));
    OK(cudaGraphDestroy(graph));
}

static void built(int *a, int *b) {
    cudaGraph_t graph;
    cudaGraphNode_t clear, copy, compute, host, back;
    cudaGraphExec_t ready;
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = i;
    OK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams fill = {};
    fill.dst = b, fill.value = 3, fill.elementSize = 4, fill.width = n, fill.height = 1;
    OK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, a, in.data(), n * 4, cudaMemcpyHostToDevice));
    int count_ = n;
    void *arguments[] = {&a, &b, &count_};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(3), kernel.blockDim = dim3(128), kernel.kernelParams = arguments;
    cudaGraphNode_t both[] = {clear, copy};
    OK(cudaGraphAddKernelNode(&compute, graph, both, 2, &kernel));
    OK(cudaGraphAddMemcpyNode1D(&back, graph, &compute, 1, out.data(), a, n * 4, cudaMemcpyDeviceToHost));
    int ten = 10;
    cudaHostNodeParams function = {count, &ten};
    OK(cudaGraphAddHostNode(&host, graph, &back, 1, &function));
    OK(cudaGraphInstantiate(&ready, graph, 0));
    calls = 0;
    OK(cudaGraphLaunch(ready, 0));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) CHECK(out[i] == i + 3);
    CHECK(calls == 10);
    cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(compute, &type));
    CHECK(type == cudaGraphNodeTypeKernel);
    cudaKernelNodeParams read;
    OK(cudaGraphKernelNodeGetParams(compute, &read));
    CHECK(read.blockDim.x == 128 && *(int *)read.kernelParams[2] == n);
    int factor = 2, term = 1;
    void *others[] = {&a, &count_, &factor, &term};
    kernel.func = (void *)affine, kernel.kernelParams = others;
    OK(cudaGraphExecKernelNodeSetParams(ready, compute, &kernel));
    OK(cudaGraphLaunch(ready, 0));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) CHECK(out[i] == 2 * i + 1);
    OK(cudaGraphKernelNodeSetParams(compute, &kernel));
    fill.value = 9;
    OK(cudaGraphMemsetNodeSetParams(clear, &fill));
    cudaGraphExecUpdateResultInfo result;
    OK(cudaGraphExecUpdate(ready, graph, &result));
    OK(cudaGraphLaunch(ready, 0));
    CHECK(first(b) == 9);
    cudaGraph_t whole, clone;
    cudaGraphNode_t child, twin;
    OK(cudaGraphCreate(&whole, 0));
    OK(cudaGraphAddChildGraphNode(&child, whole, nullptr, 0, graph));
    OK(cudaGraphClone(&clone, whole));
    OK(cudaGraphNodeFindInClone(&twin, child, clone));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(whole));
    cudaGraphExec_t nested;
    OK(cudaGraphInstantiate(&nested, clone, 0));
    calls = 0;
    OK(cudaGraphLaunch(nested, 0));
    OK(cudaDeviceSynchronize());
    CHECK(calls == 10);
}

int main() {
    int *a, *b;
    OK(cudaMalloc(&a, n * 4));
    OK(cudaMalloc(&b, n * 4));
    captured(a, b);
    built(a, b);
    return 0;
}
