// Lanes of one warp that reach a barrier of the whole block by different instructions.
#include <cooperative_groups.h>

#include <cstdio>

namespace cg = cooperative_groups;

__global__ void halves(int *out) {
  __shared__ int s[64];
  auto block = cg::this_thread_block();
  int i = threadIdx.x;
  if ((i & 31) < 16) {
    s[i] = i;
    block.sync();
    out[i] = s[i ^ 16];
  } else {
    s[i] = 2 * i;
    block.sync();
    out[i] = s[i ^ 16] + 1;
  }
}

__global__ void thirds(int *out) {
  __shared__ int s[3][64];
  auto block = cg::this_thread_block();
  int i = threadIdx.x, sum = 0;
  for (int round = 0; round < 3; round++) s[round][i] = i + round;
  for (int round = 0; round < 3; round++) {
    if (i % 3 == 0 && i < 40) {
      block.sync();
      sum += s[round][63 - i];
    } else if (i % 3 == 1) {
      block.sync();
      sum += 10 * s[round][63 - i];
    } else {
      block.sync();
      sum += 100 * s[round][63 - i];
      if (round == 1) break;  // these leave: the others no longer wait for them
    }
  }
  out[i] = sum;
}

// The first lanes wait, behind the barrier, for what the last ones do there.
__global__ void hand_over(int *out) {
  __shared__ volatile int flag;
  auto block = cg::this_thread_block();
  int i = threadIdx.x;
  if (i == 0) flag = 0;
  block.sync();
  if ((i & 31) < 8) {
    block.sync();
    while (flag == 0) {
    }
    out[i] = 1;
  } else {
    block.sync();
    if (i == 63) flag = 1;
    out[i] = 2;
  }
}

int main() {
  int *out, host[64], wrong = 0;
  cudaMalloc(&out, sizeof host);
  halves<<<1, 64>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++) wrong += host[i] != ((i & 31) < 16 ? 2 * (i ^ 16) : (i ^ 16) + 1);
  thirds<<<1, 64>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++) {
    bool first = i % 3 == 0 && i < 40, second = !first && i % 3 == 1;
    int read = 63 - i, all = 3 * read + 3, two = 2 * read + 1;
    wrong += host[i] != (first ? all : second ? 10 * all : 100 * two);
  }
  hand_over<<<1, 64>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++) wrong += host[i] != ((i & 31) < 8 ? 1 : 2);
  printf("%d wrong\n", wrong);
  cudaFree(out);
  return wrong != 0 || cudaDeviceSynchronize() != cudaSuccess;
}
