// cuBLAS in the order of streams, between kernels, in a graph, with its scalars on the device.
#include <cublas_v2.h>

#include <cmath>
#include <vector>

#include "../check.h"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

__global__ void fill(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value + i % 7;
}

__global__ void add(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}

int main() {
    const int m = 70, n = 50, k = 30;
    cublasHandle_t handle;
    BLAS(cublasCreate(&handle));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    BLAS(cublasSetStream(handle, stream));
    float *a, *b, *c, *norm;
    OK(cudaMalloc(&a, m * k * sizeof(float)));
    OK(cudaMalloc(&b, k * n * sizeof(float)));
    OK(cudaMalloc(&c, m * n * sizeof(float)));
    OK(cudaMalloc(&norm, sizeof(float)));

    fill<<<(m * k + 255) / 256, 256, 0, stream>>>(a, m * k, 1);
    fill<<<(k * n + 255) / 256, 256, 0, stream>>>(b, k * n, 2);
    float alpha = 0.5f, beta = 0;
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, m, b, k, &beta, c, m));
    add<<<(m * n + 255) / 256, 256, 0, stream>>>(c, m * n, 3);
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasSnrm2(handle, m * n, c, 1, norm));

    std::vector<float> got(m * n);
    float got_norm = 0;
    OK(cudaMemcpyAsync(got.data(), c, got.size() * sizeof(float), cudaMemcpyDeviceToHost, stream));
    OK(cudaMemcpyAsync(&got_norm, norm, sizeof(float), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    double squares = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += (1.0 + (i + l * m) % 7) * (2.0 + (l + j * k) % 7);
            double want = 0.5 * sum + 3;
            CHECK(std::fabs(got[i + j * m] - want) < 1e-3 * want);
            squares += want * want;
        }
    CHECK(std::fabs(got_norm - std::sqrt(squares)) < 1e-4 * got_norm);

    // Captured, it is done when the graph runs, and every time.
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    OK(cudaMemset(c, 0, m * n * sizeof(float)));
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    alpha = 1, beta = 1;
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, m, b, k, &beta, c, m));
    alpha = 100;  // was taken when the call was made
    OK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 1);
    cudaGraphNode_t node;
    cudaKernelNodeParams parameters;
    OK(cudaGraphGetNodes(graph, &node, &nodes));
    FAILS(cudaGraphKernelNodeGetParams(node, &parameters), cudaErrorInvalidValue);  // whose kernels nobody knows
    OK(cudaGraphInstantiate(&runnable, graph, 0));
    OK(cudaMemcpy(got.data(), c, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(got[0] == 0);
    for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(runnable, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(got.data(), c, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (int l = 0; l < k; l++) sum += (1.0 + l * m % 7) * (2.0 + l % 7);
    CHECK(got[0] == static_cast<float>(3 * sum));

    // A capture cannot wait for a result.
    float result = 0;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cublasSnrm2(handle, m * n, c, 1, &result) != CUBLAS_STATUS_SUCCESS);
    CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
    cudaGetLastError();

    cublasStatus_t status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, n, k, &alpha, a, m, b, k, &beta, c, m);
    CHECK(status == CUBLAS_STATUS_INVALID_VALUE);
    BLAS(cublasDestroy(handle));
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
    for (float *one : {a, b, c, norm}) OK(cudaFree(one));
    OK(cudaGraphExecDestroy(runnable));
    OK(cudaStreamDestroy(stream));
    std::puts("right");
}
