// Launches of clusters, by an attribute of the launch ("attribute") and of the kernel.
#include <cooperative_groups.h>

#include <cstdio>
#include <cstring>

__global__ void plain(int *out) { out[blockIdx.x] = 1; }
__global__ void __cluster_dims__(2, 1, 1) fixed(int *out) {
  out[blockIdx.x] = cooperative_groups::this_cluster().num_blocks();
}

int main(int, char **arguments) {
  int *out;
  cudaMalloc(&out, 64);
  cudaLaunchAttribute size{};
  size.id = cudaLaunchAttributeClusterDimension;
  cudaLaunchConfig_t config{};
  config.gridDim = 4, config.blockDim = 32, config.attrs = &size, config.numAttrs = 1;
  size.val.clusterDim = {1, 1, 1};
  cudaError_t one = cudaLaunchKernelEx(&config, plain, out), several;
  if (strcmp(arguments[1], "attribute") == 0) {
    size.val.clusterDim = {2, 2, 1};
    several = cudaLaunchKernelEx(&config, plain, out);
  } else {
    fixed<<<4, 32>>>(out);
    several = cudaGetLastError();
  }
  printf("%s, %s\n", cudaGetErrorName(one), cudaGetErrorName(several));
  cudaFree(out);
}
