// A convolution by cuFFT, between kernels, against the sum that defines it.
#include <cufft.h>

#include <cmath>
#include <vector>

#include "../check.h"

#define FFT(call) CHECK((call) == CUFFT_SUCCESS)

__global__ void multiply(cufftComplex *x, const cufftComplex *y, int n, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cufftComplex a = x[i], b = y[i];
    x[i] = {(a.x * b.x - a.y * b.y) * scale, (a.x * b.y + a.y * b.x) * scale};
}

int main() {
    const int n = 1000, taps = 11, half = n / 2 + 1;
    std::vector<float> signal(n), filter(n, 0.0f), got(n);
    for (int i = 0; i < n; i++) signal[i] = std::sin(0.1f * i) + (i * 7919 % 101) / 101.0f;
    for (int i = 0; i < taps; i++) filter[i] = 1.0f / (i + 1);
    float *x, *w;
    cufftComplex *spectrum, *response;
    OK(cudaMalloc(&x, n * sizeof(float)));
    OK(cudaMalloc(&w, n * sizeof(float)));
    OK(cudaMalloc(&spectrum, half * sizeof(cufftComplex)));
    OK(cudaMalloc(&response, half * sizeof(cufftComplex)));
    OK(cudaMemcpy(x, signal.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(w, filter.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    cufftHandle forth, back;
    FFT(cufftPlan1d(&forth, n, CUFFT_R2C, 1));
    FFT(cufftCreate(&back));
    size_t room;
    FFT(cufftMakePlan1d(back, n, CUFFT_C2R, 1, &room));
    FFT(cufftSetStream(forth, stream));
    FFT(cufftSetStream(back, stream));
    FFT(cufftExecR2C(forth, x, spectrum));
    FFT(cufftExecR2C(forth, w, response));
    multiply<<<(half + 127) / 128, 128, 0, stream>>>(spectrum, response, half, 1.0f / n);
    FFT(cufftExecC2R(back, spectrum, x));
    OK(cudaMemcpyAsync(got.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) {
        double want = 0;
        for (int j = 0; j < taps; j++) want += filter[j] * signal[(i - j + n) % n];
        CHECK(std::fabs(got[i] - want) < 1e-4);
    }
    FFT(cufftDestroy(forth));
    FFT(cufftDestroy(back));
    CHECK(cufftExecR2C(forth, x, spectrum) == CUFFT_INVALID_PLAN);
    for (void *one : {(void *)x, (void *)w, (void *)spectrum, (void *)response}) OK(cudaFree(one));
    OK(cudaStreamDestroy(stream));
    std::puts("right");
}
