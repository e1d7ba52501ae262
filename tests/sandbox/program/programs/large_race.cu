// Two blocks that write the same words, three times over, in memory of so many MiB.
#include <cstdio>
#include <cstdlib>
__global__ void both(int *x) { x[threadIdx.x] = blockIdx.x + 1; }
int main(int argc, char **argv) {
  int *x;
  cudaMalloc(&x, size_t(atoi(argv[1])) << 20);
  for (int i = 0; i < 3; ++i) both<<<2, 32>>>(x);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaFree(x);
}
