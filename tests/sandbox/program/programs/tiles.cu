// Tiles of more than one warp, which meet in the part of shared memory that is the system's.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

template <int Size>
__global__ void tiles(int *out, unsigned *sizes) {
  __shared__ cg::block_tile_memory<512> memory;
  __shared__ int handed[512];
  extern __shared__ int last[];
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<Size>(block);
  int i = threadIdx.x, rank = tile.thread_rank();
  int sum = cg::reduce(tile, i, cg::plus<int>());
  int above = tile.shfl(i, 33);
  int before = cg::exclusive_scan(tile, i & 3, cg::plus<int>());
  for (int round = 0; round < 3; round++) {
    handed[i] = i + round;
    tile.sync();
    last[i] = handed[i - rank + Size - 1 - rank];
    tile.sync();
  }
  bool some = tile.any(i == 100), every = tile.all(i < 256);
  out[i] = sum + 7 * above + 11 * before + 13 * last[i] + (some << 28) + (every << 29) + tile.meta_group_rank();
  if (i == 0) {
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(sizes[0]));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(sizes[1]));
    sizes[2] = static_cast<unsigned>(sizeof handed);
  }
}

template <int Size>
int wrong() {
  int *out, host[512], found = 0;
  unsigned *sizes, told[3];
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&sizes, sizeof told);
  tiles<Size><<<1, 512, sizeof host>>>(out, sizes);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(told, sizes, sizeof told, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 512; i++) {
    int first = i / Size * Size, sum = 0, before = 0, last = first + Size - 1 - (i - first) + 2;
    for (int k = first; k < first + Size; k++) {
      sum += k;
      if (k < i) before += k & 3;
    }
    bool some = first <= 100 && 100 < first + Size, every = first + Size <= 256;
    int want = sum + 7 * (first + 33) + 11 * before + 13 * last + (some << 28) + (every << 29) + i / Size;
    found += host[i] != want;
  }
  // What a kernel is told of its shared memory does not hold the system's.
  found += told[1] != sizeof host || told[0] < told[1] + told[2] || told[0] >= told[1] + told[2] + 256;
  cudaFree(out);
  cudaFree(sizes);
  return found;
}

int main() {
#ifdef ONE_SIZE
  int found[] = {wrong<64>(), 0, 0, 0};
#else
  int found[] = {wrong<64>(), wrong<128>(), wrong<256>(), wrong<512>()};
#endif
  printf("%d %d %d %d wrong\n", found[0], found[1], found[2], found[3]);
  return found[0] + found[1] + found[2] + found[3] || cudaDeviceSynchronize() != cudaSuccess;
}
