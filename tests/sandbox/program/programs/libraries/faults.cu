// Calls of libraries that go wrong, one a run: argument 1 says which.
#include <cublas_v2.h>
#include <cufft.h>

#include <cstring>

#include "../check.h"

int main(int, char **arguments) {
    auto asked = [&](const char *name) { return !std::strcmp(arguments[1], name); };
    const int n = 32;
    const size_t bytes = n * n * sizeof(float);
    float *a, *b, *c, one = 1, none = 0;
    OK(cudaMalloc(&a, bytes));
    OK(cudaMalloc(&b, bytes));
    OK(cudaMalloc(&c, asked("small") ? bytes - 4 : bytes));
    OK(cudaMemset(a, 0, bytes));
    if (!asked("unwritten")) OK(cudaMemset(b, 0, bytes));
    if (asked("freed")) OK(cudaFree(a));
    float *from = asked("host") ? static_cast<float *>(std::calloc(n * n, sizeof(float))) : a;
    cublasHandle_t handle;
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    cufftHandle plan;
    CHECK(cufftPlan1d(&plan, n * n, CUFFT_C2C, 1) == CUFFT_SUCCESS);  // twice as much as there is
    int status = asked("fft") ? static_cast<int>(cufftExecC2C(plan, (cufftComplex *)a, (cufftComplex *)a, CUFFT_FORWARD))
                              : static_cast<int>(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, from, n, b, n,
                                                             asked("old") ? &one : &none, c, n));
    std::printf("%d %s\n", status, cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
