// Thrust and CUB over a million keys: sort, reduce, scan, transform, and by key.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include "check.h"

struct Affine {
    __host__ __device__ unsigned operator()(unsigned x) const { return x * 3 + 1; }
};

int main(int argc, char **argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
    std::vector<unsigned> keys(n);
    uint64_t state = 88172645463325252ull;
    for (auto &key : keys) state ^= state << 13, state ^= state >> 7, state ^= state << 17, key = unsigned(state);
    thrust::device_vector<unsigned> device(keys.begin(), keys.end());
    thrust::sort(device.begin(), device.end());
    std::vector<unsigned> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    thrust::host_vector<unsigned> back = device;
    CHECK(std::equal(sorted.begin(), sorted.end(), back.begin()));
    unsigned total = thrust::reduce(device.begin(), device.end(), 0u, thrust::plus<unsigned>());
    CHECK(total == std::accumulate(keys.begin(), keys.end(), 0u));
    thrust::transform(device.begin(), device.end(), device.begin(), Affine());
    thrust::inclusive_scan(device.begin(), device.end(), device.begin());
    back = device;
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        sum += sorted[i] * 3 + 1;
        CHECK(back[i] == sum);
    }
    std::printf("fine\n");
    return 0;
}
