// Accesses to memory that is not there, to be run without checks.
#include <cstdio>
#include <cstring>

__global__ void write(int *p, long far) { p[far] = 1; }
__global__ void scattered(int *p, long far) {
  if (blockIdx.x == 2) p[(threadIdx.x * 7919 ^ far) % (far + 1)] = 1;
}
__global__ void update(int *p, long far) { atomicAdd(&p[far], 1); }
__global__ void fine(int *p) { p[threadIdx.x] = 1; }

int main(int, char **arguments) {
  int *p;
  cudaMalloc(&p, 4096);
  const char *which = arguments[1];
  if (!strcmp(which, "null")) write<<<2, 64>>>(nullptr, 5);
  if (!strcmp(which, "far")) scattered<<<4, 64>>>(p, 1l << 44);
  if (!strcmp(which, "beyond")) write<<<1, 1>>>(p, 1l << 58);
  if (!strcmp(which, "atomic")) update<<<1, 32>>>(p, 1l << 44);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  fine<<<1, 32>>>(p);
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  cudaDeviceReset();
  cudaMalloc(&p, 4096);
  fine<<<1, 32>>>(p);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
