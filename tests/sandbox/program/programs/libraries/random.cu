// cuRAND: what the host's calls give is what curand_kernel.h gives in kernels, at the places that the documentation says.
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <vector>

#include "../check.h"

#define RAND(call) CHECK((call) == CURAND_STATUS_SUCCESS)

constexpr unsigned long long kSeed = 1234;
constexpr int kThreads = 128, kEach = 8;

template <class State>
__global__ void draw(unsigned *out) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    State state;
    curand_init(kSeed, thread, 0, &state);
    for (int i = 0; i < kEach; i++) out[thread * kEach + i] = curand(&state);
}

__global__ void draw_sobol(unsigned *out, curandDirectionVectors32_t *vectors) {
    curandStateSobol32 state;
    curand_init(vectors[threadIdx.x], 0, &state);
    for (int i = 0; i < kEach; i++) out[threadIdx.x * kEach + i] = curand(&state);
}

__global__ void moments(float *sums, int each) {
    curandStatePhilox4_32_10 state;
    curand_init(99, threadIdx.x, 0, &state);
    float sum = 0, squares = 0, uniform = 0, poisson = 0;
    for (int i = 0; i < each; i++) {
        float2 pair = curand_normal2(&state);
        sum += pair.x + pair.y, squares += pair.x * pair.x + pair.y * pair.y;
        uniform += curand_uniform(&state), poisson += curand_poisson(&state, 4.0);
    }
    atomicAdd(&sums[0], sum), atomicAdd(&sums[1], squares), atomicAdd(&sums[2], uniform), atomicAdd(&sums[3], poisson);
}

std::vector<unsigned> host_call(curandRngType_t type, curandOrdering_t order, size_t count) {
    unsigned *numbers;
    OK(cudaMalloc(&numbers, count * sizeof(unsigned)));
    curandGenerator_t generator;
    RAND(curandCreateGenerator(&generator, type));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, kSeed));
    RAND(curandSetGeneratorOrdering(generator, order));
    RAND(curandGenerate(generator, numbers, count));
    std::vector<unsigned> got(count);
    OK(cudaMemcpy(got.data(), numbers, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    RAND(curandDestroyGenerator(generator));
    OK(cudaFree(numbers));
    return got;
}

// Where number `i` of a thread's sequence is in the host's: `apart` threads take turns, `group` numbers at a time.
template <class State>
void compare(curandRngType_t type, curandOrdering_t order, size_t apart, int group, int most) {
    unsigned *out;
    OK(cudaMalloc(&out, kThreads * kEach * sizeof(unsigned)));
    draw<State><<<kThreads / 64, 64>>>(out);
    std::vector<unsigned> mine(kThreads * kEach), theirs = host_call(type, order, apart * most);
    OK(cudaMemcpy(mine.data(), out, mine.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (int thread = 0; thread < kThreads; thread++)
        for (int i = 0; i < most * group && i < kEach; i++) {
            size_t place = i / group * apart + static_cast<size_t>(thread) * group + i % group;
            if (place < theirs.size()) CHECK(mine[thread * kEach + i] == theirs[place]);
        }
    OK(cudaFree(out));
}

int main() {
    compare<curandStateXORWOW>(CURAND_RNG_PSEUDO_XORWOW, CURAND_ORDERING_PSEUDO_DEFAULT, 4096, 1, kEach);
    compare<curandStateMRG32k3a>(CURAND_RNG_PSEUDO_MRG32K3A, CURAND_ORDERING_PSEUDO_LEGACY, 4096, 1, kEach);
    compare<curandStateMRG32k3a>(CURAND_RNG_PSEUDO_MRG32K3A, CURAND_ORDERING_PSEUDO_DEFAULT, 81920, 1, 2);
    compare<curandStatePhilox4_32_10>(CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_ORDERING_PSEUDO_DEFAULT, 4 * 65536, 4, 1);

    // Sobol's sequences, one dimension a thread.
    const int dimensions = 4;
    curandDirectionVectors32_t *vectors, *on_device;
    RAND(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
    OK(cudaMalloc(&on_device, dimensions * sizeof *vectors));
    OK(cudaMemcpy(on_device, vectors, dimensions * sizeof *vectors, cudaMemcpyHostToDevice));
    unsigned *out, *numbers;
    OK(cudaMalloc(&out, dimensions * kEach * sizeof(unsigned)));
    OK(cudaMalloc(&numbers, dimensions * kEach * sizeof(unsigned)));
    draw_sobol<<<1, dimensions>>>(out, on_device);
    curandGenerator_t quasi;
    RAND(curandCreateGenerator(&quasi, CURAND_RNG_QUASI_SOBOL32));
    RAND(curandSetQuasiRandomGeneratorDimensions(quasi, dimensions));
    RAND(curandGenerate(quasi, numbers, dimensions * kEach));
    unsigned mine[dimensions * kEach], theirs[dimensions * kEach];
    OK(cudaMemcpy(mine, out, sizeof mine, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(theirs, numbers, sizeof theirs, cudaMemcpyDeviceToHost));
    for (int i = 0; i < dimensions * kEach; i++) CHECK(mine[i] == theirs[i]);
    RAND(curandDestroyGenerator(quasi));

    // What NVIDIA's documentation prints for its first example.
    const float documented[] = {0.1455f, 0.8202f, 0.5504f, 0.2948f, 0.9147f, 0.8690f, 0.3219f, 0.7829f, 0.0113f, 0.2855f};
    float uniform[10], *uniforms;
    OK(cudaMalloc(&uniforms, sizeof uniform));
    curandGenerator_t generator, on_host;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    RAND(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    RAND(curandSetStream(generator, stream));
    RAND(curandSetPseudoRandomGeneratorSeed(generator, kSeed));
    RAND(curandGenerateUniform(generator, uniforms, 10));
    OK(cudaMemcpyAsync(uniform, uniforms, sizeof uniform, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 10; i++) CHECK(std::fabs(uniform[i] - documented[i]) < 1e-4f);

    // A generator for the host writes there; the offset skips.
    float again[5];
    RAND(curandCreateGeneratorHost(&on_host, CURAND_RNG_PSEUDO_DEFAULT));
    RAND(curandSetPseudoRandomGeneratorSeed(on_host, kSeed));
    RAND(curandSetGeneratorOffset(on_host, 5));
    RAND(curandGenerateUniform(on_host, again, 5));
    for (int i = 0; i < 5; i++) CHECK(again[i] == uniform[5 + i]);

    const int many = 20000;
    std::vector<double> normal(many);
    double *normals, mean = 0, variance = 0;
    OK(cudaMalloc(&normals, many * sizeof(double)));
    RAND(curandGenerateNormalDouble(generator, normals, many, 3.0, 2.0));
    OK(cudaMemcpy(normal.data(), normals, many * sizeof(double), cudaMemcpyDeviceToHost));
    for (double one : normal) mean += one / many;
    for (double one : normal) variance += (one - mean) * (one - mean) / many;
    CHECK(std::fabs(mean - 3) < 0.06 && std::fabs(variance - 4) < 0.2);
    CHECK(curandGenerateNormal(generator, uniforms, 7, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);

    const int each = 200;
    float *sums, got[4];
    OK(cudaMalloc(&sums, sizeof got));
    OK(cudaMemset(sums, 0, sizeof got));
    moments<<<1, 64>>>(sums, each);
    OK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    float draws = 64.0f * each;
    CHECK(std::fabs(got[0] / (2 * draws)) < 0.03f && std::fabs(got[1] / (2 * draws) - 1) < 0.04f);
    CHECK(std::fabs(got[2] / draws - 0.5f) < 0.01f && std::fabs(got[3] / draws - 4) < 0.08f);

    RAND(curandDestroyGenerator(generator));
    RAND(curandDestroyGenerator(on_host));
    CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_NOT_INITIALIZED);
    for (void *one : {(void *)on_device, (void *)out, (void *)numbers, (void *)uniforms, (void *)normals, (void *)sums})
        OK(cudaFree(one));
    OK(cudaStreamDestroy(stream));
    std::puts("right");
}
