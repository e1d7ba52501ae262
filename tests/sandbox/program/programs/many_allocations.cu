// More allocations than the machine's kernel gives a process mappings for. Each lies apart from the others, holds its
// own, and is new when its place is used again.
#include <cstdio>
#include <vector>

#include "check.h"

__global__ void fill(int **all, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) *all[i] = i;
}

int main() {
  const int count = 40000;
  std::vector<int *> all(count);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i)
      OK(cudaMalloc(&all[i], 4));
    int **table;
    OK(cudaMalloc(&table, count * sizeof *table));
    OK(cudaMemcpy(table, all.data(), count * sizeof *table, cudaMemcpyHostToDevice));
    fill<<<(count + 255) / 256, 256>>>(table, count);
    OK(cudaDeviceSynchronize());
    for (int i = 0, got; i < count; i += 4999) {
      OK(cudaMemcpy(&got, all[i], 4, cudaMemcpyDeviceToHost));
      CHECK(got == i);
    }
    if (round) {
      OK(cudaDeviceReset());
      break;
    }
    for (int i = 0; i < count; i += 2) OK(cudaFree(all[i]));
    for (int i = 1; i < count; i += 2) OK(cudaFree(all[i]));
    OK(cudaFree(table));
  }
  int *again, host;
  OK(cudaMalloc(&again, 4));
  OK(cudaMemset(again, 0, 4));
  OK(cudaMemcpy(&host, again, 4, cudaMemcpyDeviceToHost));
  CHECK(host == 0);
  OK(cudaFree(again));
  puts("fine");
}
