// A million keys sorted by Thrust: a whole program with large kernels of its own.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/sort.h>

int main() {
  std::vector<uint32_t> keys(1 << 20);
  uint64_t state = 88172645463325252ull, sum = 0, sorted_sum = 0;
  for (uint32_t &key : keys) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    sum += key = uint32_t(state);
  }
  thrust::device_vector<uint32_t> device(keys.begin(), keys.end());
  thrust::sort(device.begin(), device.end());
  thrust::copy(device.begin(), device.end(), keys.begin());
  bool sorted = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    sorted = sorted && (i == 0 || keys[i - 1] <= keys[i]);
    sorted_sum += keys[i];
  }
  std::puts(sorted && sum == sorted_sum ? "sorted" : "NOT SORTED");
  return !sorted || sum != sorted_sum;
}
